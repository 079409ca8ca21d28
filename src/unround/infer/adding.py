"""Bounds by adding sums up: what several sums say together, and none alone.

x + y = a, y + z = c and x + z = b leave each of x, y and z open if looked at one by one; added up with the right signs
they give 2y = a + c − b. Which multiples to add is what a linear program finds; that they prove the bound is then
exact arithmetic with fractions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from unround.infer.bounds import UNBOUNDED, Bounds, Equations, Side

FINEST = 64
"""The largest denominator of a multiple that is tried."""


@dataclass(frozen=True, slots=True)
class Added:
    """A bound of one cell, the sums that give it with their multiples, and the bounds of other cells that it needs."""

    bound: int
    sums: tuple[tuple[int, Fraction], ...]
    uses: tuple[tuple[int, Side], ...]


def added_up(equations: Equations, bounds: Bounds, cell: int, side: Side) -> Added | None:
    """Find the best bound of a cell that adding up sums can give.

    Parameters
    ----------
    equations : tuple
        The sums, as (total, parts) in positions of cells.
    bounds : Bounds
        What is known of every cell so far.
    cell, side
        Which bound is wanted.

    Returns
    -------
    Added or None
        None where no finite bound is found.
    """
    from scipy.optimize import linprog
    from scipy.sparse import lil_array

    sign = 1 if side == "low" else -1
    cells = len(bounds.lows)
    objective = [0.0] * cells
    objective[cell] = float(sign)
    matrix = lil_array((len(equations), cells))
    for e, (total, parts) in enumerate(equations):
        matrix[e, total] = 1
        for part in parts:
            matrix[e, part] = -1
    ranges = [(low, None if high >= UNBOUNDED else high) for low, high in zip(bounds.lows, bounds.highs, strict=True)]
    solved = linprog(objective, A_eq=matrix.tocsr(), b_eq=[0] * len(equations), bounds=ranges, method="highs")
    if solved.status != 0:
        return None
    multiples = [Fraction(-sign * float(y)).limit_denominator(FINEST) for y in solved.eqlin.marginals]
    return _exact(equations, bounds, cell, side, [(e, times) for e, times in enumerate(multiples) if times])


def _exact(equations: Equations, bounds: Bounds, cell: int, side: Side, sums: list[tuple[int, Fraction]]) -> Added | None:
    """Work out in fractions what multiples of (total − parts = 0), added to a cell, say about it."""
    factors = {cell: Fraction(1)}
    for e, times in sums:
        total, parts = equations[e]
        factors[total] = factors.get(total, Fraction(0)) + times
        for part in parts:
            factors[part] = factors.get(part, Fraction(0)) - times
    limit = Fraction(0)
    uses: list[tuple[int, Side]] = []
    for other, factor in factors.items():
        if not factor:
            continue
        end: Side = "low" if (factor > 0) == (side == "low") else "high"
        value = bounds.lows[other] if end == "low" else bounds.highs[other]
        if value >= UNBOUNDED:
            return None
        limit += factor * value
        uses.append((other, end))
    return Added(ceil(limit) if side == "low" else floor(limit), tuple(sums), tuple(uses))
