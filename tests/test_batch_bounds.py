"""Layouts, windows, bounds and look-ups for many areas, against the engines for one system."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import int64, njit
from numpy.typing import NDArray

from tests import shapes
from unround.bounds.certificates import certain_windows
from unround.bounds.linked import LinkedBounds
from unround.bounds.propagation import UNBOUNDED, Bounds, Trace, propagate
from unround.bounds.prover import Prover
from unround.bounds.tighten import tighten
from unround.errors import InputError, InternalError
from unround.evidence.block import NO_UPPER_BOUND, CellBounds, Windows, WindowTable
from unround.evidence.cells import EvidenceBlock
from unround.jit import in_threads, inner
from unround.mechanisms import (
    Exact,
    Laplace,
    Mechanism,
    Nearest,
    Rounding,
    Sample,
    Suppressed,
    Unpublished,
    Within,
    mechanism,
)
from unround.proofs import check_proof
from unround.release import NOT_APPLICABLE, NOT_AVAILABLE, SUPPRESSED, UNREADABLE, Counts
from unround.simulation import schema
from unround.sums.compiled import CompiledSums, compile_sums
from unround.sums.forest import Equations, plan_for
from unround.system import Cell, Sum, System


def fixed(mechanisms: Sequence[Mechanism]) -> frozenset[int]:
    return frozenset(c for c, one in enumerate(mechanisms) if isinstance(one, Exact))


def as_batch(system: System) -> tuple[CompiledSums, Windows]:
    """Turn one system into a batch of one area."""
    mechanisms = [cell.mechanism for cell in system.cells]
    values = [[NOT_AVAILABLE if cell.published is None else cell.published for cell in system.cells]]
    layout = compile_sums(len(system.cells), system.equations, fixed(mechanisms))
    windows, misfits = WindowTable(mechanisms).of(np.array(values, dtype=np.int32))
    assert not misfits.any()
    return layout, windows


def as_system(
    layout: CompiledSums, mechanisms: Sequence[Mechanism], row: Counts, sums: Sequence[int] | None = None
) -> System:
    """Turn one area of a batch into a system, of some of its sums and their cells or of all."""
    some = [layout.equations[e] for e in (range(len(layout.equations)) if sums is None else sums)]
    used = sorted({c for total, parts in some for c in (total, *parts)}) if sums is not None else range(layout.columns)
    cells = [Cell(f"c{c}", *_published(int(row[c]), mechanisms[c])) for c in used]
    return System(cells, [Sum(f"c{total}", tuple(f"c{part}" for part in parts)) for total, parts in some])


def _published(value: int, how: Mechanism) -> tuple[int | None, Mechanism]:
    return (value, how) if value > UNREADABLE else (None, Unpublished())


def random_equations(rng: np.random.Generator, columns: int, number: int) -> Equations:
    """Draw sums over cells in an order, totals before parts, so that they can all hold; loops are common."""
    equations = set()
    for _ in range(number):
        total = int(rng.integers(0, columns - 2))
        size = int(rng.integers(1, min(4, columns - total - 1) + 1))
        equations.add((total, tuple(map(int, rng.choice(np.arange(total + 1, columns), size, replace=False)))))
    return tuple(sorted(equations))


# -- layouts -----------------------------------------------------------------------------------------------------------


def in_forest(layout: CompiledSums) -> list[int]:
    """Return the equations that nodes and links stand for, checking each link against its equations."""
    equations, nodes = layout.equations, layout.plan.nodes
    assert len(layout.links_of) == len(layout.plan.links)
    edges = [e for link in layout.links_of for e in link]
    for link, standing_for in zip(layout.plan.links, layout.links_of, strict=True):
        ends = (link.parent, *link.children)
        layers = range(3) if link.is_pair else [None]
        sides = [[nodes[end.node].cells[end.layer if layer is None else layer] for end in ends] for layer in layers]
        sums = [{equations[e][0], *equations[e][1]} for e in standing_for]
        assert len(standing_for) <= len(sides)
        assert all(sum_ in map(set, sides) for sum_ in sums)
        for e in standing_for:
            total, _ = equations[e]
            signs = {
                nodes[end.node].cells[end.layer if layer is None else layer]: 1 if end is link.parent else -end.sign
                for layer in layers
                for end in ends
            }
            # All parts are on one side of the equation, the total is on the other.
            assert all(signs[part] == -signs[total] for part in equations[e][1])
    pairs = {(node.cells[0], frozenset(node.cells[1:])) for node in nodes if node.is_pair and not node.copy}
    splits = {}
    for e, (total, parts) in enumerate(equations):
        if (total, frozenset(parts)) in pairs:
            splits.setdefault((total, frozenset(parts)), e)
    return edges + list(splits.values())


def assert_forest(layout: CompiledSums, exact: frozenset[int]) -> None:
    """Check that every equation is in the forest or unused, and that the plan is what the tree engine would make of it."""
    used = in_forest(layout)
    assert sorted([*used, *layout.unused]) == list(range(len(layout.equations)))
    kept = tuple(layout.equations[e] for e in sorted(used))
    assert plan_for(layout.columns, kept, exact) is not None
    for e in layout.unused:  # nothing was left out without need
        again = compile_sums(layout.columns, tuple(layout.equations[i] for i in sorted([*used, e])), exact)
        assert again.unused


@pytest.mark.parametrize("shape", {**shapes.ACYCLIC, **shapes.CROSSED})
@settings(max_examples=shapes.examples(20))
@given(data=st.data())
def test_without_loops_the_layout_is_the_plan(shape: str, data: st.DataObject) -> None:
    system, _ = data.draw({**shapes.ACYCLIC, **shapes.CROSSED}[shape])
    layout, _ = as_batch(system)
    assert layout.unused == ()
    exact = fixed([cell.mechanism for cell in system.cells])
    assert layout.plan == plan_for(len(system.cells), system.equations, exact)
    assert_forest(layout, exact)


@settings(max_examples=shapes.examples(150))
@given(seed=shapes.SEEDS)
def test_loops_are_left_out_of_the_forest_and_listed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = int(rng.integers(4, 14))
    equations = random_equations(rng, columns, int(rng.integers(1, 9)))
    exact = frozenset(map(int, np.flatnonzero(rng.random(columns) < 0.15)))
    assert_forest(compile_sums(columns, equations, exact), exact)


def by_sex(sums: Equations, columns: int) -> Equations:
    """Repeat sums for men and women, and split every column: column c becomes c, c + columns and c + 2 columns."""
    layers = [(total + k * columns, tuple(part + k * columns for part in parts)) for k in range(3) for total, parts in sums]
    return (*layers, *((c, (c + columns, c + 2 * columns)) for c in range(columns)))


def test_a_profile_is_one_forest() -> None:
    """A tree, a repeat of its total, a second partition of that, all by sex, under an exact population without sexes."""
    tree = ((0, (1, 2, 3)), (1, (4, 5)), (3, (6, 7, 8)), (9, (0,)), (9, (10, 11)))
    equations = (*by_sex(tree, 12), (0, (36,)), (9, (36,)))
    layout = compile_sums(37, equations, frozenset([36]))
    assert layout.unused == ()
    assert sum(node.is_pair for node in layout.plan.nodes) == 12
    assert sorted(map(len, layout.links_of)) == [1, 1, 3, 3, 3, 3, 3]
    assert_forest(layout, frozenset([36]))


def test_pairs_come_before_the_rest_and_short_sums_before_long_ones() -> None:
    """The total of a tree by sex, added up from its leaves too: the leaves' sum would close a loop."""
    tree = ((0, (1, 2)), (1, (3, 4)), (0, (3, 4, 2)))
    layout = compile_sums(15, by_sex(tree, 5), frozenset())
    assert {layout.equations[e][1] for e in layout.unused} == {(3, 4, 2), (8, 9, 7), (13, 14, 12)}
    # Of two sums with the same parts the one with an exact total is kept, though it has more of them.
    sums: Equations = ((0, (2, 3)), (1, (2, 3, 4)))
    assert compile_sums(5, sums, frozenset()).unused == (1,)
    assert compile_sums(5, sums, frozenset([1])).unused == (0,)


def test_a_sum_that_repeats_another_is_listed() -> None:
    layout = compile_sums(3, ((0, (1, 2)), (0, (2, 1))), frozenset())
    assert (layout.links_of, layout.unused) == (((0,),), (1,))


def profile(rows: str) -> tuple[CompiledSums, list[Mechanism], NDArray[np.int64]]:
    """Return the layout of a simulated profile, sums and sexes, its mechanisms, and each column's row and sex."""
    made = schema(rows)
    places = np.argwhere(made.shown)
    at = {(made.rows[row].id, sex): column for column, (row, sex) in enumerate(places.tolist())}
    sums = [((sum_.total, sex), [(part, sex) for part in sum_.parts]) for sum_ in made.sums for sex in range(3)]
    sums += [((row.id, 0), [(row.id, 1), (row.id, 2)]) for row in made.rows if row.is_count and row.has_sex]
    equations = tuple(
        (at[total], tuple(at[part] for part in parts)) for total, parts in sums if at.keys() >= {total, *parts}
    )
    mechanisms = [mechanism(made.rows[row].mechanism) for row, _ in places.tolist()]
    return compile_sums(len(places), equations, fixed(mechanisms)), mechanisms, places


@pytest.mark.parametrize(("rows", "most_unused"), [("age", 0), ("short", 0), ("all", 20)])
def test_the_simulated_profile_has_hardly_any_loops(rows: str, most_unused: int) -> None:
    layout, _, _ = profile(rows)
    assert len(layout.unused) <= most_unused
    used = in_forest(layout)
    assert sorted([*used, *layout.unused]) == list(range(len(layout.equations)))
    assert sum(link.is_pair for link in layout.plan.links) > len(layout.plan.links) / 3


# -- windows -----------------------------------------------------------------------------------------------------------

MECHANISMS: list[Mechanism] = [Exact(), Rounding(5), Rounding(3), Sample(5), Nearest(5), Within(2), Laplace(1.45)]
MECHANISMS += [Suppressed(1, 7, Rounding(5)), Unpublished(), mechanism("graduated"), mechanism("digits:4")]


def assert_windows(windows: Windows, misfits: NDArray[np.bool_], counts: Counts, mechanisms: Sequence[Mechanism]) -> None:
    for (a, c), value in np.ndenumerate(counts):
        low, high, start = windows.low[a, c], windows.high[a, c], windows.start[a, c]
        published = None if value == SUPPRESSED else int(value)
        try:
            if SUPPRESSED < value <= UNREADABLE:
                raise InputError("nothing is known")
            window = mechanisms[c].window(published)
        except InputError:
            assert (low, high, start) == (0, NO_UPPER_BOUND, -1)
            assert misfits[a, c] == (value > UNREADABLE)
            continue
        assert not misfits[a, c]
        assert window.certain or not windows.certain[c]
        assert (low, high) == (window.low, NO_UPPER_BOUND if window.high is None else window.high)
        if window.weights is None:
            assert start == -1
        else:
            np.testing.assert_array_equal(windows.weights[start : start + high - low + 1], window.weights)


def test_every_window_is_that_of_its_mechanism_block_after_block() -> None:
    rng = np.random.default_rng(1)
    mechanisms = [MECHANISMS[i] for i in rng.integers(0, len(MECHANISMS), 40)]
    table = WindowTable(mechanisms)
    codes = [SUPPRESSED, NOT_APPLICABLE, NOT_AVAILABLE, UNREADABLE, 0, 5, 70_000, 999_999_000, -3]
    for _ in range(3):
        counts = (5 * rng.integers(0, 400, (30, 40))).astype(np.int32)
        odd = rng.random(counts.shape)
        counts[odd < 0.2] = rng.integers(0, 70, counts.shape)[odd < 0.2]
        counts[odd > 0.8] = rng.choice(codes, counts.shape)[odd > 0.8]
        windows, misfits = table.of(counts)
        assert misfits.any()
        assert_windows(windows, misfits, counts, mechanisms)
    again, _ = table.of(counts)
    assert again.weights is windows.weights  # nothing new: nothing grew


def test_several_threads_ask_one_table() -> None:
    """As the explorer does: every thread meets counts that no other has met yet, and gets its own windows."""
    wrong = []
    for attempt in range(20):
        table = WindowTable([Rounding(5), Rounding(3), Exact()])
        ready = Barrier(4)

        def ask(thread: int, table: WindowTable = table, ready: Barrier = ready, attempt: int = attempt) -> None:
            rng = np.random.default_rng([attempt, thread])
            ready.wait()
            for _ in range(20):
                counts = (rng.integers(0, 4_000, size=(20, 3)) * 15).astype(np.int32)
                windows, misfits = table.of(counts)
                low = np.maximum(counts - np.array([4, 2, 0]), 0)
                if misfits.any() or (windows.low != low).any() or windows.start.max() >= windows.weights.size:
                    wrong.append(counts)

        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(ask, thread) for thread in range(4)]:
                done.result()
    assert not wrong


def test_one_mechanism_for_all_columns() -> None:
    counts = np.array([[0, 10, SUPPRESSED], [7, 70_005, NOT_APPLICABLE]], dtype=np.int32)
    for block in (counts, np.asfortranarray(counts)):
        windows, misfits = WindowTable([Rounding(5)] * 3).of(block)
        assert_windows(windows, misfits, counts, [Rounding(5)] * 3)
        assert misfits.tolist() == [[False, False, False], [True, False, False]]


def test_what_an_agency_may_have_changed() -> None:
    counts = np.array([[100, 3, 20], [100, NOT_AVAILABLE, 20]], dtype=np.int32)
    mechanisms = [Exact(), Exact(), Rounding(5)]
    windows, _ = WindowTable(mechanisms).of(counts, np.array([[5, 5, 5], [0, 5, 0]]))
    assert windows.low.tolist() == [[95, 0, 16], [100, 0, 16]]
    assert windows.high.tolist() == [[105, 8, 24], [100, NO_UPPER_BOUND, 24]]
    for a, c in ((0, 0), (0, 1)):
        start, size = windows.start[a, c], windows.high[a, c] - windows.low[a, c] + 1
        np.testing.assert_allclose(windows.weights[start : start + size], 1 / 11)
    assert windows.start[1, 1] == -1


def test_counts_beyond_the_largest_are_reported() -> None:
    windows, misfits = WindowTable([Exact()]).of(np.array([[1_999_999_999]], dtype=np.int32))
    assert misfits.all()
    assert (windows.low, windows.high) == (0, NO_UPPER_BOUND)


def test_columns_without_mechanism_are_refused() -> None:
    with pytest.raises(InputError, match=r"2 columns have a mechanism, but the counts have shape \(1, 3\)"):
        WindowTable([Exact(), Exact()]).of(np.zeros((1, 3), dtype=np.int32))


# -- bounds ------------------------------------------------------------------------------------------------------------


def assert_tight(
    layout: CompiledSums, tight: CellBounds, systems: Sequence[System], active: NDArray[np.bool_] | None = None
) -> None:
    """Compare with the engine for one system, bound by bound, and sum by sum that gave it."""
    for area, system in enumerate(systems):
        bounds, trace = Bounds.of(certain_windows(system)), Trace()
        equations = [e for e in range(len(layout.equations)) if active is None or active[area, e]]
        possible = propagate(tuple(layout.equations[e] for e in equations), bounds, trace)
        possible = possible and max(bounds.lows) < NO_UPPER_BOUND
        assert tight.feasible[area] == possible
        if not possible:
            continue
        assert tight.low[area].tolist() == bounds.lows
        assert tight.high[area].tolist() == [NO_UPPER_BOUND if high >= UNBOUNDED else high for high in bounds.highs]
        if active is not None:
            continue  # fewer sums are gone through in another order there, so that another one may come last
        for cell in range(layout.columns):
            for side, by in (("low", tight.by_low), ("high", tight.by_high)):
                at = trace.latest.get((cell, side), -1)  # type: ignore[call-overload]
                while at >= 0 and trace.steps[at].equation is None:
                    at = trace.steps[at].uses[0][2]
                last = trace.steps[at].equation if at >= 0 else None
                assert by[area, cell] == (-1 if last is None else equations[last])


@pytest.mark.parametrize("shape", shapes.ALL)
@settings(max_examples=shapes.examples(25))
@given(data=st.data())
def test_bounds_of_one_area_are_those_of_its_system(shape: str, data: st.DataObject) -> None:
    system, true = data.draw(shapes.ALL[shape])
    layout, windows = as_batch(system)
    tight = tighten(layout, windows)
    assert_tight(layout, tight, [system])
    assert (tight.low[0] <= true).all()
    assert (tight.high[0] >= true).all()


def test_areas_without_solution_are_not_feasible() -> None:
    possible = shapes.judge(shapes.any_numbers(), 60, bounds_agree)
    assert min(possible[True], possible[False]) >= shapes.examples(5)


def bounds_agree(system: System) -> bool:
    """Return whether the system has a solution, as far as bounds tell."""
    layout, windows = as_batch(system)
    tight = tighten(layout, windows)
    assert_tight(layout, tight, [system])
    return bool(tight.feasible[0])


HOWS: list[Mechanism] = [Exact(), Rounding(5), Rounding(3), Nearest(5), Sample(3), Within(1), Laplace(0.7)]
HOWS += [Suppressed(1, 3), mechanism("digits:1")]


def random_batch(seed: int, areas: int) -> tuple[CompiledSums, list[Mechanism], Counts, NDArray[np.bool_]]:
    """Draw sums, true counts that obey them in most areas, and publish these with some cells missing."""
    rng = np.random.default_rng(seed)
    columns = int(rng.integers(4, 16))
    equations = random_equations(rng, columns, int(rng.integers(1, 8)))
    true = rng.integers(0, 12, (areas, columns))
    for total, parts in reversed(equations):  # later columns first, so that no part changes afterwards
        true[:, total] = true[:, list(parts)].sum(axis=1)
    mechanisms: list[Mechanism] = [HOWS[i] for i in rng.integers(0, len(HOWS), columns)]
    counts = np.empty(true.shape, dtype=np.int32)
    for c, how in enumerate(mechanisms):
        drawn = how.publish(true[:, c], rng)
        counts[:, c] = np.where(drawn < -1_000, NOT_AVAILABLE, drawn)
    counts[rng.random(counts.shape) < 0.1] = NOT_AVAILABLE
    active = rng.random((areas, len(equations))) < 0.9
    return compile_sums(columns, equations, fixed(mechanisms)), mechanisms, counts, active


@settings(max_examples=shapes.examples(60), deadline=None)
@given(seed=shapes.SEEDS)
def test_bounds_of_many_areas_are_those_of_each(seed: int) -> None:
    layout, mechanisms, counts, active = random_batch(seed, 40)
    windows, _ = WindowTable(mechanisms).of(counts)
    systems = [as_system(layout, mechanisms, row) for row in counts]
    assert_tight(layout, tighten(layout, windows, proofs_only=True), systems)
    assert_tight(layout, tighten(layout, windows, active, proofs_only=True), systems, active)


def test_a_cut_tail_lends_nothing_to_proofs() -> None:
    layout = compile_sums(3, ((0, (1, 2)),), frozenset([0]))
    counts = np.array([[500, 20, 100]], dtype=np.int32)
    windows, _ = WindowTable([Exact(), Rounding(5), Laplace(1.45)]).of(counts)
    assert not tighten(layout, windows).feasible[0]
    proofs = tighten(layout, windows, proofs_only=True)
    assert proofs.feasible[0]
    assert (proofs.low[0, 2], proofs.high[0, 2]) == (500 - 24, 500 - 16)


def test_creeping_bounds_neither_overflow_nor_last_for_ever() -> None:
    """Around this loop a lower bound doubles at every turn, and nothing bounds it from above."""
    equations = ((0, (1, 2)), (1, (0, 3)), (2, (0, 4)))
    layout = compile_sums(5, equations, frozenset())
    counts = np.array([[NOT_AVAILABLE] * 3 + [5, 5]], dtype=np.int32)
    windows, _ = WindowTable([Rounding(5)] * 5).of(counts)
    tight = tighten(layout, windows)
    assert not tight.feasible[0]
    assert tight.low.max() == NO_UPPER_BOUND


def test_errors_in_threads_are_raised() -> None:
    seen: list[tuple[int, int]] = []
    in_threads(lambda first, last: seen.append((first, last)), 1000, 3)
    assert sorted(a for first, last in seen for a in range(first, last)) == list(range(1000))
    assert len(seen) > 3

    def fail(first: int, last: int) -> None:
        raise InputError(f"not {first} to {last}")

    with pytest.raises(InputError, match="not 0 to"):
        in_threads(fail, 1000)


# -- what bounds rest on ------------------------------------------------------------------------------------------------


def prover_of(
    layout: CompiledSums,
    windows: Windows,
    tight: CellBounds,
    mechanisms: Sequence[Mechanism],
    counts: Counts,
    use: NDArray[np.bool_] | None,
) -> Prover:
    def cell_of(area: int, cell: int) -> Cell:
        return Cell(f"c{cell}", *_published(int(counts[area, cell]), mechanisms[cell]))

    block = EvidenceBlock(layout, windows, tight, active=use)
    return Prover(block, LinkedBounds.none(tight), np.zeros(layout.columns, dtype=np.bool_), cell_of, ())


def test_what_moved_a_bound_proves_it() -> None:
    proved = shapes.judge(shapes.SEEDS, 60, values_are_proved)
    assert sum(number * times for number, times in proved.items()) >= shapes.examples(500)


def values_are_proved(seed: int) -> int:
    """Return how many cells were proved."""
    judged = 0
    layout, mechanisms, counts, active = random_batch(seed, 12)
    windows, _ = WindowTable(mechanisms).of(counts)
    for use in (None, active):
        tight = tighten(layout, windows, use, proofs_only=True)
        prover = prover_of(layout, windows, tight, mechanisms, counts, use)
        moved = (tight.by_low >= 0) | (tight.by_high >= 0)
        for area, cell in np.argwhere((tight.low == tight.high) & tight.feasible[:, None] & moved).tolist():
            ((column, small, proof),) = prover.prove(area, [cell])
            assert column == cell
            assert proof.cell == f"c{cell}"
            usable = range(len(layout.equations)) if use is None else np.flatnonzero(use[area]).tolist()
            assert set(small.sums) <= set(as_system(layout, mechanisms, counts[area], usable).sums)
            assert check_proof(small, proof)
            assert proof.value == tight.low[area, cell]
            judged += 1
    return judged


def test_without_holes_what_moved_bounds_last_is_what_they_depend_on() -> None:
    checked = 0
    for seed in range(60):
        layout, mechanisms, counts, _ = random_batch(seed, 6)
        windows, _ = WindowTable(mechanisms).of(counts)
        tight = tighten(layout, windows, proofs_only=True)
        prover = prover_of(layout, windows, tight, mechanisms, counts, None)
        for area in np.flatnonzero(tight.feasible).tolist():
            system = as_system(layout, mechanisms, counts[area])
            for cell in range(layout.columns):
                sums = prover.moved_last(area, [cell])
                bounds = Bounds.of(certain_windows(system))
                propagate(tuple(layout.equations[e] for e in sums), bounds)
                assert (bounds.lows[cell], min(bounds.highs[cell], NO_UPPER_BOUND)) == (
                    tight.low[area, cell],
                    tight.high[area, cell],
                )
                checked += len(sums) > 1
    assert checked > 100


def test_where_a_bound_jumped_over_a_hole_more_sums_are_taken() -> None:
    """Rows 1 to 3 and columns 4 to 6 of a table; the last sum that moved the first column's bound is not enough."""
    hidden = [(4, 4), (4, 5), (8, 10), (4, 6), (8, 10), None, None, (6, 6), None, (6, 8), None, (1, 3), (1, 1), (2, 4)]
    hidden += [(1, 1), (5, 5)]
    mechanisms = [Suppressed(*one, Rounding(5)) if one else Rounding(5) for one in hidden]
    row = [25, 15, 5, 0, 10, 10, 10, SUPPRESSED, 5, 0, 0, 5, NOT_AVAILABLE, 0, 0, 0]
    sums = [(0, (1, 2, 3)), (0, (4, 5, 6)), *((1 + i, (7 + 3 * i, 8 + 3 * i, 9 + 3 * i)) for i in range(3))]
    layout = compile_sums(16, (*sums, *((4 + j, (7 + j, 10 + j, 13 + j)) for j in range(3))), frozenset())
    counts = np.array([row], dtype=np.int32)
    windows, _ = WindowTable(mechanisms).of(counts)
    tight = tighten(layout, windows)
    assert (tight.by_low[0, 4], tight.by_high[0, 4]) == (-1, 5)
    last = prover_of(layout, windows, tight, mechanisms, counts, None).moved_last(0, [4])
    anything, shown = Unpublished(), [None if count == SUPPRESSED else count for count in row]
    known = zip(mechanisms, shown, row, strict=True)
    alone = [anything.window(None) if count == NOT_AVAILABLE else how.window(told) for how, told, count in known]
    for used, same in ((last, False), (range(8), True)):
        bounds = Bounds.of(alone)
        propagate(tuple(layout.equations[e] for e in used), bounds)
        assert ((bounds.lows[4], bounds.highs[4]) == (tight.low[0, 4], tight.high[0, 4])) is same


def test_where_what_moved_bounds_last_is_not_enough_all_sums_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = compile_sums(7, ((0, (1, 2)), (2, (3, 4, 5, 6))), frozenset())
    mechanisms = [Exact(), *[Rounding(5)] * 6]
    counts = np.array([[38, 15, 15, 10, 10, 10, 5]], dtype=np.int32)
    windows, _ = WindowTable(mechanisms).of(counts)
    tight = tighten(layout, windows, proofs_only=True)
    assert tight.low[0].tolist() == tight.high[0].tolist() == [38, 19, 19, 6, 6, 6, 1]
    prover = prover_of(layout, windows, tight, mechanisms, counts, None)
    monkeypatch.setattr(prover, "moved_last", lambda *_: [1])
    proved = prover.prove(0, [1])
    assert [(column, proof.value, len(small.sums)) for column, small, proof in proved] == [(1, 19, 1)]
    monkeypatch.setattr(prover, "_of_area", lambda *_: iter([([[(0, 2), (0, 3), (0, 4), (0, 5), (0, 6)]], [], True)]))
    with pytest.raises(InternalError, match="no certificate was found for c1"):
        prover.prove(0, [1])


def test_an_inner_function_is_machine_code_only_in_what_calls_it() -> None:
    def root(x: int) -> int:
        return int(x**0.5)

    called, alone = inner(root), njit(root)
    for compiled in (called, alone):
        compiled.compile((int64,))
    symbols = []
    for compiled in (called, alone):
        (made,) = compiled.overloads.values()
        engine = alone.targetctx.codegen()._engine
        symbols.append(engine.is_symbol_defined(made.fndesc.llvm_func_name))
    assert symbols == [False, True]
    assert njit(lambda x: called(x) + 1)(50) == 8
