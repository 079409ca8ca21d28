"""Threads that are lent: after an error, what has not begun is not begun any more; and kernels compiled elsewhere."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import unround
from unround import jit
from unround.engines import ahead
from unround.engines.forest import areas_of_block
from unround.machine import threads
from unround.mechanisms import Rounding
from unround.prior import PriorFit
from unround.sums.compiled import compile_sums


def test_threads_begin_nothing_after_an_error() -> None:
    begun, goes_on = list[int](), threading.Event()

    def job(number: int) -> None:
        begun.append(number)
        goes_on.wait()

    with pytest.raises(KeyboardInterrupt), threads(1) as pool:  # noqa: PT012 - what is asked for before the error matters
        for number in range(9):
            pool.submit(job, number)
        threading.Timer(0.2, goes_on.set).start()
        raise KeyboardInterrupt
    assert len(begun) <= 1


def test_another_process_compiles_the_kernel_that_every_audit_uses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    unround.audit(Path(__file__).parents[1] / "examples" / "survey.toml", tmp_path / "audit")
    compiled = list(areas_of_block.signatures)
    assert ahead.compiled_now(None)
    assert areas_of_block.signatures == compiled  # for those very types
    never_kept = SimpleNamespace(_cache=SimpleNamespace(_cache_file=SimpleNamespace(_load_index=dict)))
    monkeypatch.setattr(ahead, "areas_of_block", never_kept)
    monkeypatch.setattr(jit, "processors", lambda: 2)
    ahead.compile_ahead()
    assert jit.is_compiling()
    jit.wait_for_others()
    assert not jit.is_compiling()


def test_who_stops_a_fit_does_not_wait_for_all_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    from unround.prior.columns import ColumnFitter

    begun, begin = list[int](), ColumnFitter._begin
    monkeypatch.setattr(ColumnFitter, "_begin", lambda self, c, leaf: begun.append(c) or begin(self, c, leaf=leaf))
    fit, columns = PriorFit(columns=601), 601
    fit.add(np.random.default_rng(1).choice([0, 5, 10], size=(30, columns)).astype(np.int32))

    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit.finish(compile_sums(columns, ((0, tuple(range(1, columns))),), frozenset()), [Rounding(5)] * columns, stop)
    assert len(begun) < columns
