"""Claims: one threshold for all, reasons that are kept, and assumptions that are true of the area they are said of."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from unround.audits import Auditor, Model, block, bounds, weigh
from unround.audits.claims import HeldBecause, known_alone
from unround.audits.findings import INDEPENDENCE, Labels
from unround.audits.keys import BY_KEYS
from unround.audits.selfcheck import FAILED, table_named
from unround.checks.run import NOT_INDEPENDENT
from unround.explanation.cell import _withheld
from unround.mechanisms import Exact, Rounding
from unround.mechanisms.base import reaches
from unround.options import AuditOptions
from unround.prior import Prior
from unround.release import Column


def _model() -> Model:
    """Return a total that stands in a table of its own, and its parts in another."""
    columns = tuple(
        Column(key, (key,), key, table) for key, table in (("all", "Heads"), ("a", "Parts"), ("b", "Parts"), ("c", "Parts"))
    )
    return Model.build(columns, (Rounding(5),) * 4, ((0, (1, 2, 3)),), ("file",))


def test_a_probability_one_bit_below_the_threshold_reaches_it() -> None:
    """Arithmetic in another order gives another last bit, which must not decide what is claimed."""
    below = np.nextafter(0.66, 0)
    assert reaches(below, 0.66)
    assert not reaches(0.66 - 1e-9, 0.66)
    assert reaches(np.array([below, np.nan, 0.5]), 0.66).tolist() == [True, False, False]
    assert known_alone(np.array([below]), np.array([below]), 0.66).tolist() == [True]


def test_explain_finds_the_reason_that_the_self_check_gave() -> None:
    """The self-check names connected columns after the table that most are in, which need not be that of the first."""
    model = _model()
    assert table_named(model, range(4)) == "Parts"
    tables = [{"table": "Parts", "verdict": FAILED, "why": "zeros were published more often than predicted"}]
    folder: Any = SimpleNamespace(
        prior=SimpleNamespace(withheld=(0, 1, 2, 3)), model=model, summary={"selfcheck": {"tables": tables}}
    )
    held = np.full((1, 4), HeldBecause.SELFCHECK, dtype=np.int8)
    inferred: Any = SimpleNamespace(claims=SimpleNamespace(held_because=held))
    assert [_withheld(folder, inferred, cell) for cell in range(4)] == [tables[0]["why"]] * 4


def test_linked_areas_do_not_say_that_keys_are_accounted_for() -> None:
    """Probabilities of linked areas take roundings as independent: there the doubt of the check stands."""
    labels = Labels.of(_model(), ("characteristic_id",), dict.fromkeys(range(4), BY_KEYS))
    said = labels.doubted(pl.Series([INDEPENDENCE] * 2), [1, 1], np.zeros(2, dtype=bool), np.array([False, True]))
    assert cast(list[str], said.to_list()) == [BY_KEYS, f"{INDEPENDENCE} (the check: {NOT_INDEPENDENT})"]


def test_a_block_goes_through_the_engines_as_often_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody should wait for a pass that no claim needs: see the table in `audits.block`."""
    passes = Counter[str]()

    def counted(module: Any, name: str) -> None:
        usual = getattr(module, name)

        def again(*given: Any, **named: Any) -> Any:
            passes[name] += 1
            return usual(*given, **named)

        monkeypatch.setattr(module, name, again)

    for module, name in ((bounds, "tighten"), (block, "tighten"), (weigh, "tighten"), (weigh, "posteriors")):
        counted(module, name)
    counts = np.array([[40, 15, 10, 10], [35, 10, 10, 10]], dtype=np.int32)
    nobody, everybody = np.zeros(2, dtype=np.bool_), np.ones(2, dtype=np.bool_)
    Auditor(_model(), Prior.flat(), AuditOptions(threshold=1.0)).audit(counts, nobody)
    assert passes == {"tighten": 1, "posteriors": 1}
    passes.clear()
    Auditor(_model(), Prior.flat(), AuditOptions(threshold=0.2)).audit(counts, nobody)
    assert passes == {"tighten": 2, "posteriors": 2}  # what is near the threshold, without its sums
    passes.clear()
    columns = (replace(_model().columns[0], adjusted=5), *_model().columns[1:])
    model = Model.build(columns, (Exact(), *[Rounding(5)] * 3), ((0, (1, 2, 3)),), ("file",))
    Auditor(model, Prior.flat(), AuditOptions(threshold=1.0)).audit(counts, everybody)
    assert passes == {"tighten": 2, "posteriors": 1}  # as documented, and if the total is exact
