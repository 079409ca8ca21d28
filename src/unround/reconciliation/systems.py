"""Sums of several areas as one sparse system: means made to add up, and whole numbers by an integer program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.evidence.block import Ints
from unround.mechanisms.base import BoolArray, FloatArray
from unround.reconciliation.nearest import windows_around
from unround.sums.forest import Equations

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Rows = NDArray[np.int64]

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


class Family(NamedTuple):
    """An area that is the sum of others, by their rows, and the columns in which it is."""

    parent: int
    children: Rows
    columns: BoolArray


def sums_matrix(columns: int, equations: Equations, active: BoolArray, families: Iterable[Family] = ()) -> csr_array:
    """Return the sums of some areas as a matrix: a row for every sum that holds in an area, and for every sum over areas.

    Cells are counted area by area. A sum holds where its row times the counts is 0.
    """
    from scipy.sparse import csr_array

    size = np.array([len(parts) + 1 for _, parts in equations], dtype=np.int64)
    first = np.cumsum(size) - size
    cells = np.array([cell for total, parts in equations for cell in (total, *parts)], dtype=np.int64)
    signs = np.array([sign for _, parts in equations for sign in (1.0, *(-1.0 for _ in parts))])
    where, which = np.nonzero(active)
    lengths = size[which]
    begin = np.cumsum(lengths) - lengths
    inside = np.arange(lengths.sum()) - np.repeat(begin, lengths) + np.repeat(first[which], lengths)
    row = [np.repeat(np.arange(len(where)), lengths)]
    column = [np.repeat(where, lengths) * columns + cells[inside]] if len(cells) else [np.zeros(0, dtype=np.int64)]
    value = [signs[inside]] if len(cells) else [np.zeros(0)]
    rows = len(where)
    for family in families:
        adding = np.flatnonzero(family.columns)
        members = np.r_[family.parent, family.children]
        row.append(np.repeat(rows + np.arange(len(adding)), len(members)))
        column.append((members[None, :] * columns + adding[:, None]).ravel())
        value.append(np.tile(np.r_[1.0, -np.ones(len(family.children))], len(adding)))
        rows += len(adding)
    parts = np.concatenate(value), (np.concatenate(row), np.concatenate(column))
    return csr_array(parts, shape=(rows, len(active) * columns))


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
    found = np.clip(mean.ravel(), low.ravel(), high.ravel())
    for _ in range(_ROUNDS):
        off = matrix @ found
        scaled = matrix @ diags_array(variance) @ matrix.T
        diagonal = scaled.diagonal()
        movable = np.flatnonzero(diagonal > 0)  # where nothing can move, an integer program will say so
        if np.abs(off[movable]).max(initial=0.0) < CLOSE:
            break
        shrink = diags_array(1.0 / np.sqrt(diagonal[movable]))
        some = shrink @ scaled[movable][:, movable] @ shrink
        solved, _ = cg(some, shrink @ off[movable], rtol=1e-10, maxiter=_STEPS)
        moved = found - variance * (matrix[movable].T @ (shrink @ solved))
        found = np.clip(moved, low.ravel(), high.ravel())
        outside = np.abs(found - moved) > CLOSE
        if not outside.any():
            break
        variance[outside] = 0.0
    return found.reshape(mean.shape)


def whole_numbers(matrix: csr_array, mean: FloatArray, low: Ints, high: Ints) -> Ints | None:
    """Return the whole numbers inside bounds that add up and are nearest to the means in squares; None if none are found.

    Every count is its least value plus steps of 1, each with the increase of the square that it brings: these grow, so that
    the first steps are taken first.
    """
    from scipy.optimize import LinearConstraint, milp
    from scipy.sparse import csc_array

    found: Ints | None = None
    for margin in MARGINS:
        first, last = windows_around(mean, low, high, margin)
        width = (last.astype(np.int64) - first).ravel()
        if width.sum() > MOST_VARIABLES:
            return found
        cell = np.repeat(np.arange(width.size), width)
        step = np.arange(width.sum()) - np.repeat(np.cumsum(width) - width, width)
        cost = 2 * (first.ravel()[cell] + step - mean.ravel()[cell]) + 1
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
            found = first + taken.reshape(mean.shape)
            if (matrix @ found.ravel().astype(np.float64)).any():
                found = None
            elif solved.success and not _at_the_edge(found, first, last, low, high):
                return found
    return found


def _at_the_edge(found: Ints, first: Ints, last: Ints, low: Ints, high: Ints) -> bool:
    """Return whether a count might be better outside the steps that it was given."""
    return bool((((found == first) & (first > low)) | ((found == last) & (last < high))).any())
