"""Loops and figures, cut open: fix a few cells, solve the tree that is left for each of their values, and add up.

Exact for any system; the work is that of one tree times the number of values that the cut cells can take together. It suits
trees with a few overlapping sums (15 and over = 15 to 64 + 65 and over, beside total = under 15 + 15 to 64 + 65 and over):
cutting one cell opens that loop. Whole tables of rows by columns have too many loops for it.

Once all cells of a figure's inequality but one are known, it is a bound of that one. A rate takes the values of its
universe, a median the running count up to one group, which gets a cell of its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unround.bounds.propagation import UNBOUNDED, Bounds, propagate
from unround.engines.answer import Answer, Inference, Problem
from unround.engines.tree import Impossible, TooWide, Tree
from unround.mechanisms.base import FloatArray
from unround.sums.forest import Equations, Plan, plan_for
from unround.system import Row

MOST_CASES = 20_000
"""Cases that are gone through before the system is left to other engines."""


def cut_cells(
    equations: Equations, lows: list[int], highs: list[int], rows: tuple[Row, ...] = ()
) -> tuple[list[int], Plan] | None:
    """Choose cells so that the system has no loops once they are known; None if they have too many values.

    A cell in d sums lies on up to d − 1 independent loops: the cheapest loops are cut first. Before that, all cells but one
    of every inequality are cut.
    """
    fixed = {i for i, low in enumerate(lows) if low == highs[i]}
    meeting: dict[int, int] = {}
    for total, parts in equations:
        for cell in (total, *parts):
            meeting[cell] = meeting.get(cell, 0) + 1
    cost = {c: math.log(highs[c] - lows[c] + 1) / (d - 1) for c, d in meeting.items() if d > 1 and c not in fixed}
    chosen: list[int] = []
    cases = 1
    while True:
        tied = [free for row in rows if len(free := [c for c in row.cells if c not in fixed]) > 1]
        plan = None if tied else plan_for(len(lows), equations, frozenset(fixed))
        if plan is not None:
            return chosen, plan
        times = Counter(c for free in tied for c in free)
        options = {c: math.log(highs[c] - lows[c] + 1) / number for c, number in times.items()} if tied else cost
        if not options:
            return None
        cell = min(options, key=lambda c: (options[c], c))
        cost.pop(cell, None)
        cases *= highs[cell] - lows[cell] + 1
        if cases > MOST_CASES:
            return None
        chosen.append(cell)
        fixed.add(cell)


def solve_by_cutset(
    ties: Ties, bounds: Bounds, weights: list[FloatArray], cut: list[int], plan: Plan, top: int
) -> tuple[Answer, list[tuple[int, int]]]:
    """Add up the answers of all cases; return them with the least and the greatest value of every cell."""
    sums = [np.zeros(array.size) for array in weights]
    solutions: int | None = 0
    mass, exponent = 0.0, 0
    best: list[tuple[tuple[int, ...], float, int]] = []
    ends: list[tuple[int, int]] = []
    for case in _cases(ties.equations, bounds, cut, ties.rows):
        starts = [low - first for low, first in zip(case.lows, bounds.lows, strict=True)]
        inside = [
            array[start : start + high - low + 1]
            for array, start, low, high in zip(weights, starts, case.lows, case.highs, strict=True)
        ]
        tree = Tree(plan, case.lows, inside)
        try:
            answer = tree.solve(top)
        except Impossible:
            continue
        assert answer.marginals is not None
        there = tree.ends(answer)
        ends = [(min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(ends, there, strict=True)] if ends else there
        solutions = None if solutions is None or answer.solutions is None else solutions + answer.solutions
        mantissa, shift = tree.evidence
        if mass == 0 or shift > exponent:  # keep the largest case near 1
            scale = 2.0 ** (exponent - shift) if mass else 0.0
            mass, sums, exponent = mass * scale, [array * scale for array in sums], shift
        share = math.ldexp(mantissa, shift - exponent)
        mass += share
        for total, start, marginal in zip(sums, starts, answer.marginals, strict=True):
            assert marginal is not None
            total[start : start + marginal[1].size] += share * marginal[1]
        best = _merged(best, [(values, p * mantissa, shift) for values, p in answer.best], top)
    if mass == 0:
        raise Impossible
    ranked = tuple((values, math.ldexp(weight / mass, shift - exponent)) for values, weight, shift in best)
    marginals = tuple((low, total / mass) for low, total in zip(bounds.lows, sums, strict=True))
    return Answer(solutions, marginals, ranked), ends


def _cases(equations: Equations, bounds: Bounds, cut: list[int], rows: tuple[Row, ...]) -> Iterator[Bounds]:
    """Go through the values of the cut cells, leaving out those that sums and figures already rule out."""
    if not cut:
        # Each inequality has one cell left, and applied once more it says all that it can, wherever propagation stopped.
        alone = bounds.copy()
        if not rows or propagate((), alone, None, rows):
            yield alone
        return
    cell, rest = cut[0], cut[1:]
    for value in range(bounds.lows[cell], bounds.highs[cell] + 1):
        case = bounds.copy()
        case.lows[cell] = case.highs[cell] = value
        if propagate(equations, case, None, rows):
            yield from _cases(equations, case, rest, rows)


def _merged(
    first: list[tuple[tuple[int, ...], float, int]], second: list[tuple[tuple[int, ...], float, int]], top: int
) -> list[tuple[tuple[int, ...], float, int]]:
    # A probability of 0.0 is one below any double: it comes last.
    return sorted(first + second, key=lambda entry: (-math.log2(entry[1] or 1e-320) - entry[2], entry[0]))[:top]


MOST_VALUES = 10_000_000
"""Possible values of all cells together above which distributions are not computed."""


@dataclass(frozen=True, slots=True)
class Ties:
    """Sums and inequalities, over the cells of a system and some running counts after them."""

    cells: int
    equations: Equations
    rows: tuple[Row, ...]


def with_running_counts(cells: int, equations: Equations, rows: Sequence[Row]) -> Ties:
    """Write inequalities with fewer cells.

    Where all parts of a total have the same factor, the total takes their place. Where some of them have, their sum becomes
    a cell of its own, and a part of the total: what was one sum of many parts is then two.

    Examples
    --------
    >>> ties = with_running_counts(5, ((0, (1, 2, 3, 4)),), [Row(((1, 2), (2, 2), (0, -1)), 1, 0, 0)])
    >>> ties.equations, ties.rows[0].terms
    (((0, (5, 3, 4)), (5, (1, 2))), ((0, -1), (5, 2)))
    """
    sums = list(equations)
    shorter = []
    for row in rows:
        factors = dict(row.terms)
        _lift(factors, sums)
        for e, (total, parts) in enumerate(list(sums)):
            alike: dict[int, list[int]] = {}
            for part in parts:
                alike.setdefault(factors.get(part, 0), []).append(part)
            for factor, some in alike.items():
                if factor and 1 < len(some) < len(parts):
                    chosen = frozenset(some)
                    sums[e] = (total, (cells, *(part for part in sums[e][1] if part not in chosen)))
                    sums.append((cells, tuple(some)))
                    cells += 1
        _lift(factors, sums)
        shorter.append(row._replace(terms=tuple(sorted(factors.items()))))
    return Ties(cells, tuple(sums), tuple(shorter))


def _lift(factors: dict[int, int], sums: Sequence[tuple[int, tuple[int, ...]]]) -> None:
    """Let totals take the place of all their parts, in place; of sums that share parts, the first."""
    moved = True
    while moved:
        moved = False
        for total, parts in sums:
            factor = factors.get(parts[0], 0)
            if len(parts) > 1 and factor and all(factors.get(part) == factor for part in parts):
                for part in parts:
                    del factors[part]
                factors[total] = factors.get(total, 0) + factor
                if not factors[total]:
                    del factors[total]
                moved = True


def by_cutset(problem: Problem) -> Inference | str:
    """Answer by fixing cells until loops, and figures, are cut open."""
    system, bounds, rows = problem.system, problem.bounds, problem.rows
    too_much = "that takes too many combinations of values"
    if max(bounds.highs) >= UNBOUNDED or sum(bounds.highs) - sum(bounds.lows) > MOST_VALUES:
        return too_much
    cells = len(bounds.lows)
    best: tuple[int, Ties, Bounds, list[int], Plan] | None = None
    plain = Ties(cells, system.equations, rows)
    for ties in (plain, with_running_counts(cells, system.equations, rows)) if rows else (plain,):
        more = ties.cells - cells
        wide = Bounds([*bounds.lows, *[0] * more], [*bounds.highs, *[UNBOUNDED] * more], bounds.holes)
        if not propagate(ties.equations, wide, None, ties.rows):
            return Inference(False, "cutset", "no combination of the possible values adds up")
        cells_and_plan = cut_cells(ties.equations, wide.lows, wide.highs, ties.rows)
        if cells_and_plan is not None:
            cases = int(np.prod([wide.highs[c] - wide.lows[c] + 1 for c in cells_and_plan[0]], dtype=np.float64))
            if best is None or cases < best[0]:
                best = cases, ties, wide, *cells_and_plan
    if best is None:
        return too_much
    _, ties, wide, cut, plan = best
    weights = problem.weights(wide.lows, wide.highs)
    weights += [np.ones(wide.highs[i] - wide.lows[i] + 1) for i in range(cells, ties.cells)]
    try:
        answer, ends = solve_by_cutset(ties, wide, weights, cut, plan, problem.top)
    except TooWide:
        return too_much
    except Impossible:
        return Inference(False, "cutset", "no combination of the possible values adds up")
    assert answer.marginals is not None
    answer = Answer(answer.solutions, answer.marginals[:cells], tuple((values[:cells], p) for values, p in answer.best))
    names = ", ".join([system.cells[i].name if i < cells else "a running count" for i in cut])
    why = f"the sums form loops, cut open at {names}"
    if rows:
        why = f"{', '.join(problem.figures)}: exact for each value of {names}" if cut else "figures that bounds express"
    lows, highs = tuple([low for low, _ in ends[:cells]]), tuple([high for _, high in ends[:cells]])
    return Inference(True, "cutset", why, lows, highs, answer)
