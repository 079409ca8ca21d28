"""Hidden counts in tables with margins: the interval that a reader can work out, against an integer program."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from tests.shapes import examples
from unround import audit, check_proof
from unround.audits import bounds as nested_module
from unround.audits.bounds import links_to_use, nesting_levels
from unround.bounds import linked as hidden_module
from unround.bounds.linked import LinkedBounds, linked_bounds, with_hidden
from unround.bounds.prover import Prover
from unround.bounds.tighten import tighten
from unround.evidence.block import NO_UPPER_BOUND, WindowTable
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms import Exact, Mechanism, Rounding, Suppressed, Unpublished
from unround.release import SUPPRESSED, between, told_range
from unround.structure import Nesting
from unround.sums.compiled import CompiledSums, compile_sums
from unround.sums.forest import Equations
from unround.system import Cell

Table = NDArray[np.int64]

SHAPES: dict[str, tuple[Equations, list[int]]] = {
    "categories": (((0, (1, 2, 3, 4)),), [-1, 0, 0, 0, 0, 0]),
    "groups of categories": (((0, (1, 2)), (1, (3, 4)), (2, (5, 6))), [-1, 0, 0, 0, 0]),
    "categories by sex": (
        ((0, (1, 2)), (3, (4, 5)), (6, (7, 8)), (0, (3, 6)), (1, (4, 7)), (2, (5, 8))),
        [-1, 0, 0, 0],
    ),
    "districts in regions": (((0, (1, 2, 3)),), [-1, 0, 0, 1, 1, 1, 2, 2, 2]),
    "sums within sums": (((0, (1, 2, 3, 4, 5)), (6, (3, 4, 5)), (3, (7, 8)), (9, (1, 6))), [-1]),
    "one area, three axes": (
        tuple(
            (9 * a + 3 * b + c, parts)
            for a in range(3)
            for b in range(3)
            for c in range(3)
            for axis, here in enumerate((a, b, c))
            if here == 0
            for parts in [tuple(9 * a + 3 * b + c + k * (9, 3, 1)[axis] for k in (1, 2))]
        ),
        [-1],
    ),
}


def suppressed(shape: str, seed: int) -> tuple[CompiledSums, list[int], Table, NDArray[np.int32]]:
    """Return the sums of a random table, which area lies in which, its true counts, and what is printed of them."""
    equations, parent = SHAPES[shape]
    rng = np.random.default_rng([seed, len(parent)])
    columns = 1 + max(cell for total, parts in equations for cell in (total, *parts))
    compiled = compile_sums(columns, equations, frozenset())
    totals = {total for total, _ in equations}
    true = rng.poisson(rng.choice([1, 3, 20]), size=(len(parent), columns))
    for area in reversed(range(len(parent))):
        children = [row for row, above in enumerate(parent) if above == area]
        if children:
            true[area] = true[children].sum(axis=0)
            continue
        for _ in range(3):  # totals of totals
            for total, parts in equations:
                if total in totals:
                    true[area, total] = true[area, list(parts)].sum()
    printed = true.astype(np.int32)
    gone = rng.random(true.shape) < rng.choice([0.2, 0.4, 0.6])
    printed[gone] = SUPPRESSED
    small = gone & (true >= 1) & (true <= 4) & (rng.random(true.shape) < 0.3)
    printed[small] = between(1, 4)
    return compiled, parent, true, printed


def worked_out(
    compiled: CompiledSums, parent: list[int], printed: NDArray[np.int32], how: Mechanism | None = None
) -> LinkedBounds:
    windows, _ = WindowTable([how or Exact()] * compiled.columns).of(printed)
    every = np.full(compiled.columns, len(parent) > 1)
    block = EvidenceBlock(compiled, windows, tighten(compiled, windows))
    bounds = linked_bounds(block, np.array(parent), every, proofs_only=True)
    bounds_found, clashing = with_hidden(block, bounds, every, printed < 0)
    assert not clashing
    return bounds_found


def interval(
    compiled: CompiledSums, parent: list[int], printed: NDArray[np.int32], place: tuple[int, int]
) -> tuple[int, int | None]:
    """Return the least and the greatest that a cell can be: an integer program over all cells and sums."""
    areas, columns = printed.shape
    rows = []
    for area in range(areas):
        for total, parts in compiled.equations:
            row = np.zeros(printed.shape)
            row[area, total], row[area, list(parts)] = 1, -1
            rows.append(row.ravel())
        children = [one for one, above in enumerate(parent) if above == area]
        for column in range(columns) if children else ():
            row = np.zeros(printed.shape)
            row[area, column], row[children, column] = 1, -1
            rows.append(row.ravel())
    told = [told_range(int(code)) or ((0, np.inf) if code < 0 else (code, code)) for code in printed.ravel()]
    limits = Bounds(np.array([low for low, _ in told], dtype=float), np.array([high for _, high in told], dtype=float))
    ends = []
    for sign in (1, -1):
        goal = np.zeros(printed.shape)
        goal[place] = sign
        solved = milp(
            goal.ravel(),
            integrality=np.ones(printed.size),
            bounds=limits,
            constraints=LinearConstraint(np.array(rows), 0, 0),
        )
        ends.append(None if solved.x is None else round(sign * solved.fun))
    assert ends[0] is not None
    return ends[0], ends[1]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(examples(6)))
def test_intervals_are_those_of_an_integer_program(shape: str, seed: int) -> None:
    compiled, parent, true, printed = suppressed(shape, seed)
    bounds = worked_out(compiled, parent, printed)
    assert not bounds.limited.any()
    for area, column in np.argwhere(printed < 0).tolist():
        low, high = int(bounds.tight.low[area, column]), int(bounds.tight.high[area, column])
        assert low <= true[area, column] <= high
        wanted = interval(compiled, parent, printed, (area, column))
        assert (low, None if high >= NO_UPPER_BOUND else high) == wanted, (area, column)


@pytest.mark.parametrize("shape", ["categories by sex", "one area, three axes"])
@pytest.mark.parametrize("most", [NO_UPPER_BOUND, 30])
@pytest.mark.parametrize("total", [SUPPRESSED, 20])
def test_a_table_that_is_hidden_as_a_whole_or_but_for_its_total_needs_no_integer_program(
    shape: str, most: int, total: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hidden_module._Loop, "_solve", None)
    monkeypatch.setattr(hidden_module, "_as_tree", lambda *_: None)
    equations = SHAPES[shape][0]
    cells = {cell for total, parts in equations for cell in (total, *parts)}
    compiled = compile_sums(len(cells), equations, frozenset())
    printed = np.full((1, compiled.columns), SUPPRESSED, dtype=np.int32)
    printed[0, equations[0][0]] = total
    windows, _ = WindowTable([Exact()] * compiled.columns).of(printed)
    windows.high[printed < 0] = most
    block = EvidenceBlock(compiled, windows, tighten(compiled, windows))
    alone = np.zeros(compiled.columns, dtype=np.bool_)
    found, _ = with_hidden(block, linked_bounds(block, np.array([-1]), alone), alone, printed < 0)
    assert not found.limited.any()
    assert (found.tight.low[printed < 0] == 0).all()
    assert (found.tight.high[printed < 0] == (most if total < 0 else total)).all()


@pytest.mark.parametrize("copies", [1, 3])
def test_sums_that_contain_each_other_need_no_integer_program(copies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of the cells 0 to 8, the sixth in the place of its parts leaves 29 = 1 + 2 + 6, where 1 and 2 are 6 at least.
    monkeypatch.setattr(hidden_module._Loop, "_solve", None)
    hidden_module._as_tree.cache_clear()
    table = ((0, (1, 2, 3, 4, 5)), (6, (3, 4, 5)), (6, (7, 8)))
    beside = tuple(
        (9 * copy + total, tuple(9 * copy + part for part in parts)) for copy in range(copies) for total, parts in table
    )
    compiled = compile_sums(9 * copies, beside, frozenset())
    printed = np.array([[29, 10, 10, 10, 5, 5, SUPPRESSED, 10, 15] * copies], dtype=np.int32)
    windows, _ = WindowTable([Exact(), *[Rounding(5)] * 8] * copies).of(printed)
    alone = np.zeros(9 * copies, dtype=np.bool_)
    block = EvidenceBlock(compiled, windows, tighten(compiled, windows))
    before = linked_bounds(block, np.array([-1]), alone)
    after, _ = with_hidden(block, before, alone, printed < 0)
    for cell in range(6, 9 * copies, 9):
        assert (before.tight.low[0, cell], before.tight.high[0, cell]) == (17, 32)
        assert (after.tight.low[0, cell], after.tight.high[0, cell]) == (17, 17)
    assert not after.limited.any()
    assert {place: set(loop) for place, loop in after.loops.items()} == {
        (0, 9 * copy + 6): {3 * copy, 3 * copy + 1, 3 * copy + 2} for copy in range(copies)
    }
    assert hidden_module._as_tree.cache_info().misses == 1  # tables of one shape are one tree, however wide the release is


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(examples(4)))
def test_one_value_has_a_certificate(shape: str, seed: int) -> None:
    compiled, parent, true, printed = suppressed(shape, seed)
    bounds = worked_out(compiled, parent, printed)
    windows, _ = WindowTable([Exact()] * compiled.columns).of(printed)

    def cell_of(area: int, column: int) -> Cell:
        code = int(printed[area, column])
        ends = told_range(code)
        how = Exact() if code >= 0 else Unpublished() if ends is None else Suppressed(*ends)
        return Cell(f"c{column}", code if code >= 0 else None, how)

    names = [f"area {row}" for row in range(len(parent))]
    every = np.full(compiled.columns, len(parent) > 1)
    block = EvidenceBlock(compiled, windows, bounds.tight)
    prover = Prover(block, bounds, every, cell_of, names)
    pinned = (printed < 0) & (bounds.tight.low == bounds.tight.high) & (windows.low < windows.high)
    for area in np.flatnonzero(pinned.any(axis=1)).tolist():
        columns = np.flatnonzero(pinned[area]).tolist()
        proved = prover.prove(area, columns)
        assert sorted(column for column, _, _ in proved) == columns
        for column, system, proof in proved:
            assert proof.value == true[area, column]
            assert check_proof(system, proof)


def test_several_sums_together_say_what_none_says_alone() -> None:
    """In rows a + b = 2, c + d = 3, e + f = 2 and the sums of columns and corners, only all of them together tell."""
    # Hidden: x, y, z with x + y = 5, y + z = 7, x + z = 6, in a table whose other counts are printed.
    equations = ((0, (3, 4)), (1, (4, 5)), (2, (3, 5)))
    compiled = compile_sums(6, equations, frozenset())
    printed = np.array([[5, 7, 6, SUPPRESSED, SUPPRESSED, SUPPRESSED]], dtype=np.int32)
    bounds = worked_out(compiled, [-1], printed)
    assert bounds.tight.low[0].tolist() == bounds.tight.high[0].tolist() == [5, 7, 6, 2, 3, 4]
    assert bounds.moved[0, 3:].all()


def test_what_was_not_looked_at_to_the_end_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, parent, _, printed = suppressed("categories", 5)
    limited = worked_out(compiled, parent, printed).limited
    assert not limited.any()
    monkeypatch.setattr(hidden_module, "MOST_OPEN", 2)
    bounds = worked_out(compiled, parent, printed)
    assert bounds.limited.any()


def test_rounded_counts_around_hidden_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, parent, true, _ = suppressed("categories", 5)
    printed = Rounding(3).publish(true, np.random.default_rng(1)).astype(np.int32)
    gone = ((1, 2), (1, 3), (2, 2), (2, 3))
    for place in gone:
        printed[place] = SUPPRESSED
    bounds = worked_out(compiled, parent, printed, Rounding(3))
    assert not bounds.limited.any()
    assert all(bounds.tight.low[place] <= true[place] <= bounds.tight.high[place] for place in gone)
    monkeypatch.setattr(hidden_module, "MIXED", 2)
    bounds = worked_out(compiled, parent, printed, Rounding(3))
    assert all(bounds.limited[place] for place in gone)


def districts(number: int, hidden: list[int]) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    men, women = rng.integers(20, 60, number), rng.integers(20, 60, number)
    names = [f"District {k}" for k in range(number)]
    shown = {"District": [*names, "Total"]}
    for name, counts in (("Total", men + women), ("Men", men), ("Women", women)):
        text = [str(count) for count in (*counts, counts.sum())]
        if name != "Total":
            for row in hidden:
                text[row] = "c"
        shown[name] = text
    return pl.DataFrame(shown)


def test_a_margin_over_thousands_of_districts_gives_hidden_counts_away(tmp_path: Path) -> None:
    frame = districts(3_000, [1_234])
    frame.write_csv(tmp_path / "draft.csv")
    audited = audit(tmp_path / "draft.csv", out=tmp_path / "audit", prior="flat")
    claims = audited.findings.filter(pl.col("district") == "District 1234")
    true = np.random.default_rng(3)
    men, women = true.integers(20, 60, 3_000), true.integers(20, 60, 3_000)
    assert dict(zip(claims["sex"], claims["value"], strict=True)) == {"Men": men[1_234], "Women": women[1_234]}
    assert set(claims["kind"]) <= {"proved", "conditional"}
    listed = pl.read_parquet(tmp_path / "audit" / "hidden.parquet")
    assert listed.select("low", "high", "settled").rows() == [
        (men[1_234], men[1_234], True),
        (women[1_234], women[1_234], True),
    ]
    summary = json.loads((tmp_path / "audit" / "summary.json").read_text(encoding="utf-8"))
    assert summary["hidden"] == {"counts": 2, "with_one_value": 2, "unbounded": 0, "not_settled": 0}


def test_two_hidden_districts_keep_their_intervals(tmp_path: Path) -> None:
    frame = districts(12, [3, 7])
    frame.write_csv(tmp_path / "draft.csv")
    audit(tmp_path / "draft.csv", out=tmp_path / "audit", prior="flat")
    listed = pl.read_parquet(tmp_path / "audit" / "hidden.parquet")
    assert listed.height == 4
    assert (listed["low"] < listed["high"]).all()
    assert listed["settled"].all()


def families(sizes: list[int]) -> Nesting:
    """Return a country of regions, and regions of so many districts each."""
    parent = [-1, *[0] * len(sizes), *(1 + region for region, size in enumerate(sizes) for _ in range(size))]
    level = [-1, *[1] * len(sizes), *[0] * sum(sizes)]
    columns = np.ones(4, dtype=np.bool_)
    levels = [replace_level(columns), replace_level(columns)]
    return SimpleNamespace(parent=np.array(parent), level=np.array(level), levels=levels)  # type: ignore[return-value]


def replace_level(columns: NDArray[np.bool_]) -> SimpleNamespace:
    return SimpleNamespace(columns=columns, to_json=dict)


def test_large_families_are_used_unless_they_tell_nothing_or_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    nesting = families([3, 40, 50])
    model: Any = SimpleNamespace(columns=[0] * 4, positions=np.arange(4))
    asked = []

    def telling(heads: NDArray[np.int64]) -> NDArray[np.bool_]:
        asked.append(heads.tolist())
        return heads == 3

    parent, nothing = links_to_use(nesting, model, telling)
    assert (parent == nesting.parent).all()  # few enough to be worked on together: nobody asks
    assert not nothing.size
    assert not asked
    monkeypatch.setattr(nested_module, "ALWAYS_TOGETHER", 4 * 60)
    parent, nothing = links_to_use(nesting, model, telling)
    assert asked == [[2, 3]]
    assert nothing.tolist() == [2]
    assert (parent[nesting.parent == 2] == -1).all()
    assert (parent[nesting.parent == 3] == 3).all()
    assert [level["used"] for level in nesting_levels(nesting, parent, nothing)] == [3, 1]
    monkeypatch.setattr(nested_module, "MOST_TOGETHER", 4 * 40)
    parent, nothing = links_to_use(nesting, model, telling)
    assert (parent[nesting.parent == 3] == -1).all()  # too large after all: said to be unused
    assert [level["used"] for level in nesting_levels(nesting, parent, nothing)] == [2, 1]


def test_a_large_family_does_not_cost_small_ones_their_columns() -> None:
    nesting = families([3] * 12)
    nesting.levels[1].columns = np.array([True, True, False, True])
    model: Any = SimpleNamespace(columns=[0] * 4, positions=np.arange(4))
    parent, _ = links_to_use(nesting, model, lambda heads: np.ones(heads.size, dtype=np.bool_))
    assert (parent[1:13] == -1).all()
    assert (parent[13:] == nesting.parent[13:]).all()
