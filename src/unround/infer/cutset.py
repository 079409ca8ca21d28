"""Loops, cut open: fix a few cells, solve the tree that is left for each of their values, and add up.

Exact for any system; the work is that of one tree times the number of values that the cut cells can take together. It suits
trees with a few overlapping sums (15 and over = 15 to 64 + 65 and over, beside total = under 15 + 15 to 64 + 65 and over):
cutting one cell opens that loop. Whole tables of rows by columns have too many loops for it.

Inequalities, which figures give, are cut open in the same way: once all their cells but one are known, they bound that one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from unround.infer.answer import Answer
from unround.infer.bounds import Bounds, Equations, propagate
from unround.infer.plan import Plan, plan_for
from unround.infer.tree import Impossible, Tree
from unround.mechanisms.base import FloatArray
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
    equations: Equations,
    bounds: Bounds,
    weights: list[FloatArray],
    cut: list[int],
    plan: Plan,
    top: int,
    rows: tuple[Row, ...] = (),
) -> tuple[Answer, list[tuple[int, int]]]:
    """Add up the answers of all cases; return them with the least and the greatest value of every cell."""
    sums = [np.zeros(one.size) for one in weights]
    solutions: int | None = 0
    mass, exponent = 0.0, 0
    best: list[tuple[tuple[int, ...], float, int]] = []
    ends: list[tuple[int, int]] = []
    for case in _cases(equations, bounds, cut, rows):
        starts = [low - first for low, first in zip(case.lows, bounds.lows, strict=True)]
        inside = [
            one[start : start + high - low + 1]
            for one, start, low, high in zip(weights, starts, case.lows, case.highs, strict=True)
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
            mass, sums, exponent = mass * scale, [one * scale for one in sums], shift
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
    one: list[tuple[tuple[int, ...], float, int]], other: list[tuple[tuple[int, ...], float, int]], top: int
) -> list[tuple[tuple[int, ...], float, int]]:
    # A probability of 0.0 is one below any double: it comes last.
    return sorted(one + other, key=lambda entry: (-math.log2(entry[1] or 1e-320) - entry[2], entry[0]))[:top]
