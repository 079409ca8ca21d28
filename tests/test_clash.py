"""Clashes are certified: they do contradict each other, and no smaller set of cells and sums of the system does."""

from __future__ import annotations

import dataclasses
from itertools import combinations

import numpy as np
import pytest
import z3
from hypothesis import assume
from hypothesis import strategies as st

from tests import shapes
from tests.shapes import examples
from unround.bounds.clash import Clash, smallest_clash
from unround.equations import parse
from unround.errors import InputError
from unround.mechanisms import Exact, Laplace, Mechanism, Nearest, Rounding, Suppressed, Unpublished, Within
from unround.system import Cell, Sum, System


class Judge:
    """Says by Z3, which unround's search for clashes does not use, whether cells and sums can hold together."""

    def __init__(self, system: System) -> None:
        self.solver = z3.SolverFor("QF_LIA")
        values = {cell.name: z3.Int(cell.name) for cell in system.cells}
        self.members: dict[str | Sum, z3.BoolRef] = {}
        for cell, window in zip(system.cells, system.windows, strict=True):
            x = values[cell.name]
            self.solver.add(x >= 0)
            if window.high is not None:
                holes = [x != window.low + int(k) for k in np.flatnonzero(window.weights == 0)]
                fits = z3.And(x >= window.low, x <= window.high, *holes)
                self.members[cell.name] = self._guard(fits)
        for sum_ in system.sums:
            fits = values[sum_.total] == z3.Sum([values[part] for part in sum_.parts])
            self.members[sum_] = self._guard(fits)

    def _guard(self, fact: z3.BoolRef) -> z3.BoolRef:
        guard = z3.FreshBool()
        self.solver.add(z3.Implies(guard, fact))
        return guard

    def holds(self, members: tuple[str | Sum, ...]) -> bool:
        verdict = self.solver.check(*(self.members[m] for m in members))
        assert verdict in (z3.sat, z3.unsat)
        return bool(verdict == z3.sat)


def clashes(system: System) -> bool:
    return certify(system) is not None


def certify(system: System) -> Clash | None:
    """Check the clash of a system, or that there is none."""
    judge = Judge(system)
    if judge.holds(tuple(judge.members)):
        with pytest.raises(InputError, match="it is consistent"):
            smallest_clash(system)
        return None
    clash = smallest_clash(system)
    assert clash == smallest_clash(system)
    assert clash.minimum
    members = (*clash.cells, *clash.sums)
    assert len(set(members)) == len(members)
    assert not judge.holds(members)
    # Whatever contains a contradiction is one: looking at the sets one smaller covers all smaller ones.
    for fewer in combinations(judge.members, len(members) - 1):
        assert judge.holds(fewer), f"{fewer} is smaller than {members}"
    assert list(clash.cells) == [cell.name for cell in system.cells if cell.name in clash.cells]
    assert list(clash.sums) == [sum_ for sum_ in system.sums if sum_ in clash.sums]
    return clash


SHAPES = [
    [Sum("t", ("a", "b", "c"))],
    [Sum("t", ("a", "b")), Sum("b", ("c", "d"))],
    [Sum("t", ("a", "b")), Sum("t", ("c", "d"))],
    [Sum("t", ("a", "b")), Sum("u", ("b", "c"))],
    [Sum("t", ("a",)), Sum("t", ("a", "b")), Sum("c", ("t",))],
    [Sum("a", ("b", "c")), Sum("b", ("a", "d")), Sum("t", ("d", "c"))],
    [Sum("t", ("a", "b", "c")), Sum("u", ("b", "c")), Sum("d", ("a", "b"))],
    [Sum("t", ("a",)), Sum("a", ("b",)), Sum("b", ("c",)), Sum("c", ("d",))],
    [Sum("t", ("a", "b")), Sum("u", ("c", "d"))],
    [Sum("t", ("a", "b")), Sum("t", ("b", "c")), Sum("t", ("a", "c"))],
]


HOW = [
    Exact(),
    Rounding(2),
    Rounding(3),
    Rounding(5),
    Nearest(4),
    Suppressed(1, 3),
    Suppressed(4, 6, Rounding(5)),
    Laplace(0.3),
    Unpublished(),
]


@st.composite
def small_systems(draw: st.DrawFn, hows: list[Mechanism]) -> System:
    """Six cells with numbers drawn freely; most systems have no solution."""

    def cell(name: str) -> Cell:
        how = draw(st.sampled_from(hows))
        hidden = isinstance(how, Unpublished) or how == Suppressed(1, 3)
        step = 5 if isinstance(how, Suppressed) else getattr(how, "base", 1)
        return Cell(name, None if hidden else step * draw(st.integers(0, 24 // step)), how)

    return System([cell(name) for name in "tuabcd"], draw(st.sampled_from(SHAPES)))


def test_no_smaller_set_clashes() -> None:
    assert shapes.judge(small_systems(HOW), 100, clashes)[True] >= examples(40)


def test_no_smaller_set_clashes_where_much_is_unpublished() -> None:
    """Then clashes span several sums."""
    judged = shapes.judge(small_systems([*HOW, *[Unpublished()] * 8]), 200, clashes)
    assert min(judged[True], judged[False]) >= examples(20)


def test_two_levels() -> None:
    assert shapes.judge(shapes.any_numbers(), 60, clashes)[True] >= examples(20)


def table(rows: int, columns: int, seed: int, base: int = 5, most: int = 30) -> System:
    """A rounded table with all its margins."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, most, (rows, columns))
    true = np.vstack([true, true.sum(0)])
    true = np.hstack([true, true.sum(1)[:, None]])
    how = Rounding(base)
    shown = how.publish(true, rng)
    cells = [Cell(f"r{i}c{j}", int(shown[i, j]), how) for i in range(rows + 1) for j in range(columns + 1)]
    sums = [Sum(f"r{i}c{columns}", tuple(f"r{i}c{j}" for j in range(columns))) for i in range(rows + 1)]
    sums += [Sum(f"r{rows}c{j}", tuple(f"r{i}c{j}" for i in range(rows))) for j in range(columns + 1)]
    return System(cells, sums)


def changed(system: System, by: dict[str, int]) -> System:
    """Add to published values."""
    return System(
        [
            dataclasses.replace(cell, published=(cell.published or 0) + by[cell.name]) if cell.name in by else cell
            for cell in system.cells
        ],
        system.sums,
    )


def test_tables_with_one_wrong_value() -> None:
    wrong = st.builds(
        lambda seed, cell, by: changed(table(2, 2, seed, base=2, most=8), {cell: by}),
        shapes.SEEDS,
        st.sampled_from(["r0c0", "r0c2", "r2c0", "r2c2"]),
        st.sampled_from([2, 4, 8]),
    )
    judged = shapes.judge(wrong, 12, lambda system: assume(clashes(system)))
    assert judged[True] >= examples(12)  # whatever does not clash is left out


@pytest.mark.parametrize(
    ("text", "cells", "sums"),
    [
        ("100! = 20 + 20", ("total", "part1", "part2"), 1),
        ("10! = 50 + 50", ("total", "part1"), 1),
        ("10! = 5 + 10 + 10 + 10", ("total", "part2", "part3"), 1),
        ("7! = ?1..3 + ?1..3", ("total", "part1", "part2"), 1),
        ("10! = ? + 30", ("total", "part2"), 1),
        ("a: ?; b: ?; a = b + c: 1!; b = a + d: 1!", ("c",), 2),
        ("a: ?; b: ?; a = b; a = b + c: 5 + ?", ("c",), 2),
        ("t: 50! = a: ? + b: 20; a = c: 5 + d: 5", ("t", "b", "c", "d"), 2),
        ("a: 50! = b: ?; b = c: ?; c = d: ?; d = e: 20", ("a", "e"), 4),
    ],
)
def test_by_hand(text: str, cells: tuple[str, ...], sums: int) -> None:
    clash = certify(parse(text))
    assert clash is not None
    assert clash.cells == cells
    assert len(clash.sums) == sums


def test_holes_clash_too() -> None:
    holed = Suppressed(4, 6, Rounding(5))  # published as 5: from 1 to 9, but not from 4 to 6
    assert list(holed.window(5)) == [1, 2, 3, 7, 8, 9]
    for total, parts in ((5, ("a",)), (14, ("a", "b")), (4, ("a",))):
        cells = [Cell("t", total, Exact()), *(Cell(part, 5, holed) for part in parts)]
        system = System(cells, [Sum("t", parts)])
        if total == 14:  # 7 + 7: no clash, unless the other part is known
            assert certify(system) is None
            system = System([cells[0], cells[1], Cell("b", 9, Exact())], [Sum("t", parts)])
        clash = certify(system)
        assert clash is not None
        assert clash.cells == ("t", *parts)


def test_holes_that_bounds_do_not_show() -> None:
    even = Suppressed(1, 1, Within(1))  # published as 1: 0 or 2
    cells = [Cell("t", 3, Exact()), *(Cell(part, 1, even) for part in "abc")]
    clash = certify(System(cells, [Sum("t", ("a", "b", "c"))]))
    assert clash is not None
    assert clash.cells == ("t", "a", "b", "c")


def test_cut_tails_clash_like_any_window() -> None:
    noise = Laplace(1.45)
    system = System([Cell("t", 500, noise), Cell("a", 10, noise), Cell("b", 10, noise)], [Sum("t", ("a", "b"))])
    clash = smallest_clash(system)
    assert clash.cells == ("t", "a", "b")


def test_the_first_of_several_alike_is_named() -> None:
    clash = smallest_clash(parse("10! = 50 + 50; 20! = a: 90 + b: 90"))
    assert clash.cells == ("total", "part1")
    assert [str(sum_) for sum_ in clash.sums] == ["total = part1 + part2"]


def test_a_smaller_clash_across_sums_beats_one_within_a_sum() -> None:
    large = "t: 100! = 5 + 5 + 5 + 5 + 5 + 5"
    loop = "x: ?; y: ?; x = y; x = y + z: 5 + ?"
    tree = "v: 10! = w: ? + ?; w = u: 50 + ?"
    for text, cells in ((f"{large}; {loop}", ("z",)), (f"{large}; {tree}", ("v", "u"))):
        clash = smallest_clash(parse(text))
        assert clash.minimum
        assert clash.cells == cells
        assert len(clash.sums) == 2


def test_one_bad_sum_in_a_large_table() -> None:
    system = table(12, 8, seed=3)
    assert all(smallest_clash(changed(system, {"r4c8": by})).sums == (system.sums[4],) for by in (200, -100))
    clash = smallest_clash(changed(system, {"r4c8": 200}))
    assert clash.minimum
    assert clash.cells == tuple(f"r4c{j}" for j in range(9))


def test_a_bad_split_by_sex_in_a_long_tree_is_found_at_once() -> None:
    rounding = Rounding(5)
    cells, sums = [], []
    for i in range(300):
        cells += [Cell(f"t{i}", 100, rounding), Cell(f"m{i}", 50, rounding), Cell(f"w{i}", 50, rounding)]
        sums.append(Sum(f"t{i}", (f"m{i}", f"w{i}")))
        if i:
            sums += [Sum(f"{sex}{i - 1}", (f"{sex}{i}",)) for sex in "tmw"]
    cells[3 * 200] = Cell("t200", 130, rounding)
    clash = smallest_clash(System(cells, sums), effort=0)
    assert clash.minimum
    assert len(clash.cells) + len(clash.sums) == 3  # 126 at least, where the row before and after says 104 at most
    assert clash.cells == ("t199", "t200")


def test_without_effort_every_member_is_still_needed() -> None:
    system = parse("t: 50! = a: ? + b: 20; a = c: 5 + d: 5; b = e: 20; e = f: 20; c = g: 10")
    clash = smallest_clash(system, effort=0)
    assert not clash.minimum
    judge = Judge(system)
    members = (*clash.cells, *clash.sums)
    assert not judge.holds(members)
    assert all(judge.holds(fewer) for fewer in combinations(members, len(members) - 1))
    assert smallest_clash(system).minimum


def test_a_system_without_sums_has_no_clash() -> None:
    with pytest.raises(InputError, match="it is consistent"):
        smallest_clash(parse("a: 5"))
