"""Means made to add up, and the nearest whole numbers that do: along a forest of sums, or by an integer program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from unround.additive.costs import Costs
from unround.engines.forest import best_tables
from unround.evidence.block import CellBounds, Ints, PriorWeights, Windows
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms.base import BoolArray, FloatArray
from unround.sums.compiled import CompiledSums
from unround.sums.forest import Equations

if TYPE_CHECKING:
    from scipy.sparse import csr_array

HAIR = 1e-7
"""A mean that is so near a whole number is that number."""

SKEW = 2
"""How much farther from its mean a count may go where errors are minimised, not squares."""

CLOSE = 1e-6
"""Sums of means that are off by less than this hold."""

MARGINS = (1, 4, 16, 64)
"""How far beyond the neighbours of its mean a count may go in an integer program, tried one after the other."""

SECONDS = 20.0
"""How long one integer program may take."""

MOST_VARIABLES = 60_000
"""Steps of counts in an integer program; a larger one would not be solved in that time."""

_ROUNDS, _STEPS = 5, 400
"""How often means that left their bounds are put back and the others adjusted, and steps of each adjustment."""


def windows_around(costs: Costs, low: Ints, high: Ints, margin: int) -> tuple[Ints, Ints]:
    """Return the whole numbers on both sides of every mean and so many more, as far as bounds allow; never none.

    What is best by errors may be farther from the mean than what is best by squares.
    """
    reach = margin + np.where(costs.absolute, SKEW, 0)
    first = np.clip(np.floor(costs.target + HAIR) - reach, low, high).astype(np.int32)
    last = np.clip(np.ceil(costs.target - HAIR) + reach, low, high).astype(np.int32)
    return first, np.maximum(first, last)


def nearest_tables(compiled: CompiledSums, costs: Costs, low: Ints, high: Ints, active: BoolArray) -> tuple[Ints, BoolArray]:
    """Return for every area the whole numbers between `low` and `high` that cost least and add up.

    In the sums of the forest, that is; and in which areas there are such numbers. A count weighs exp(−cost), so that the
    table that weighs most costs least.
    """
    areas, columns = low.shape
    width = int((high - low).max(initial=0)) + 1
    cost = costs.of(low[:, :, None] + np.arange(width))
    least = np.where(np.arange(width) <= (high - low)[:, :, None], cost, np.inf).min(axis=2, keepdims=True)
    start = (np.arange(areas * columns, dtype=np.int64) * width).reshape(areas, columns)
    weights = PriorWeights(low, start, np.exp(np.maximum(least - cost, -300.0)).ravel())
    unpublished = np.full(low.shape, -1, dtype=np.int64)
    windows = Windows(low, high, unpublished, np.ones(1), np.ones(columns, dtype=np.bool_))
    bounds = CellBounds(low, high, low, low, np.ones(areas, dtype=np.bool_))  # nobody asks for reasons
    return best_tables(EvidenceBlock(compiled, windows, bounds, weights, active))


def narrowed(equations: Equations, spread: FloatArray, active: BoolArray) -> FloatArray:
    """Return standard deviations given that sums hold, as for normal counts: of areas with sums that were left out.

    Noise may leave too much possible for exact answers; means are made to add up afterwards, and so are better than this.

    Examples
    --------
    >>> narrowed(((0, (1, 2)),), np.array([[1.0, 1.0, 1.0]]), np.array([[True]])).round(3)
    array([[0.816, 0.816, 0.816]])
    """
    sums = np.zeros((len(equations), spread.shape[1]))
    for e, (total, parts) in enumerate(equations):
        sums[e, total] = 1.0
        sums[e, list(parts)] = -1.0
    narrower = spread.copy()
    for area, deviation in enumerate(spread):
        here = sums[active[area]] * deviation
        narrower[area] *= np.sqrt(np.maximum(1.0 - np.einsum("ec,ec->c", here, np.linalg.pinv(here).T), 0.0))
    return narrower


def additive_means(matrix: csr_array, mean: FloatArray, spread: FloatArray, low: Ints, high: Ints) -> FloatArray:
    """Return the nearest numbers that add up, each difference divided by its standard error; inside bounds.

    Means that leave their bounds are put on them, and the others adjusted again.
    """
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import cg

    variance = np.maximum(spread.ravel() ** 2, 0.0)
    fixed = low.ravel() >= high.ravel()
    variance[fixed] = 0.0
    variance[~fixed & (variance < 1e-4)] = 1e-4
    numbers = np.clip(mean.ravel(), low.ravel(), high.ravel())
    for _ in range(_ROUNDS):
        off = matrix @ numbers
        scaled = matrix @ diags_array(variance) @ matrix.T
        diagonal = scaled.diagonal()
        movable = np.flatnonzero(diagonal > 0)  # where nothing can move, an integer program will say so
        if np.abs(off[movable]).max(initial=0.0) < CLOSE:
            break
        shrink = diags_array(1.0 / np.sqrt(diagonal[movable]))
        some = shrink @ scaled[movable][:, movable] @ shrink
        with np.errstate(over="ignore", invalid="ignore"):
            solved, _ = cg(some, shrink @ off[movable], rtol=1e-10, maxiter=_STEPS)
            moved = numbers - variance * (matrix[movable].T @ (shrink @ solved))
        if not np.isfinite(moved).all():
            break  # counts that are left as published contradict each other: integer programs will say where
        numbers = np.clip(moved, low.ravel(), high.ravel())
        outside = np.abs(numbers - moved) > CLOSE
        if not outside.any():
            break
        variance[outside] = 0.0
    return numbers.reshape(mean.shape)


def whole_numbers(matrix: csr_array, costs: Costs, low: Ints, high: Ints) -> Ints | None:
    """Return the whole numbers inside bounds that add up and cost least; None if none are found.

    Every count is its least value plus steps of 1, each with the cost that it adds: these grow, so that the first steps are
    taken first.
    """
    from scipy.optimize import LinearConstraint, milp
    from scipy.sparse import csc_array

    numbers: Ints | None = None
    for margin in MARGINS:
        first, last = windows_around(costs, low, high, margin)
        width = (last.astype(np.int64) - first).ravel()
        if width.sum() > MOST_VARIABLES:
            return numbers
        cell = np.repeat(np.arange(width.size), width)
        step = np.arange(width.sum()) - np.repeat(np.cumsum(width) - width, width)
        each = costs.of(first[:, :, None] + np.arange(int(width.max(initial=0)) + 1)).reshape(width.size, -1)
        cost = each[cell, step + 1] - each[cell, step]
        target = -(matrix @ first.ravel().astype(np.float64))
        spread = csc_array(matrix)[:, cell]
        if not width.sum():
            return first if not target.any() else None
        solved: Any = milp(
            cost,
            integrality=np.ones(width.sum()),
            bounds=(0, 1),
            constraints=LinearConstraint(spread, target, target),
            options={"mip_rel_gap": 0.0, "time_limit": SECONDS},
        )
        if solved.x is not None:
            taken = np.bincount(cell, weights=np.rint(solved.x), minlength=width.size).astype(np.int32)
            numbers = first + taken.reshape(first.shape)
            if (matrix @ numbers.ravel().astype(np.float64)).any():
                numbers = None
            elif solved.success and not _at_the_edge(numbers, first, last, low, high):
                return numbers
    return numbers


def _at_the_edge(numbers: Ints, first: Ints, last: Ints, low: Ints, high: Ints) -> bool:
    """Return whether a count might be better outside the steps that it was given."""
    return bool((((numbers == first) & (first > low)) | ((numbers == last) & (last < high))).any())
