"""Threads that are lent: after an error, what has not begun is not begun any more."""

from __future__ import annotations

import threading

import numpy as np
import pytest

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
