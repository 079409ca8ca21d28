"""Verified claims: so many persons with these attributes live here, in every world that fits the tables.

A claim follows from bounds that were propagated, or from a solver's proof that no world has fewer. Claims of few persons
alone are counted: they single people out. Every claim that bounds prove is checked again, for a few of them, by a linear
program over the columns alone, which shares no code with the propagation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms import Mechanism
from unround.reconstruction.bounds import MOST_PASSES, UNBOUNDED, CrossTable, column_bounds, propagate

Ints = NDArray[np.int64]

SMALL = 3
"""Claims of at most so many persons are counted."""

CHECKED_CELLS = 20_000
"""Open cells up to which the linear program is tried."""


@dataclass(frozen=True, slots=True, eq=False)
class AreaBounds:
    """The bounds of one area: the smallest and the largest count of every cell, and the columns' own.

    `least_by` and `most_by` are the columns that gave the bounds of the cells; −1 for none.
    """

    least: Ints
    most: Ints
    low: Ints
    high: Ints
    fits: bool
    least_by: NDArray[np.int32]
    most_by: NDArray[np.int32]

    @property
    def open(self) -> Ints:
        """The cells that are not determined."""
        return np.flatnonzero(self.least < self.most)

    def claims(self) -> list[tuple[int, int, bool]]:
        """Return cells with at least one person, how many that are at least, and whether it is exactly so many."""
        there = np.flatnonzero((self.least > 0) & (self.least <= SMALL))
        return [(int(cell), int(self.least[cell]), bool(self.least[cell] == self.most[cell])) for cell in there]


def area_bounds(table: CrossTable, counts: Sequence[int], mechanisms: Sequence[Mechanism]) -> AreaBounds:
    """Work out the bounds of an area; `counts` and `mechanisms` are those of the columns that the cross table uses."""
    low, high = column_bounds(counts, mechanisms)
    found, fits = propagate(table.layout, low, high, MOST_PASSES)
    return AreaBounds(found.least, np.minimum(found.most, UNBOUNDED), low, high, bool(fits), found.least_by, found.most_by)


def checked(table: CrossTable, found: AreaBounds, cell: int, least: int) -> bool | None:
    """Prove a claim again with a linear program over the columns; None where it is too large to try.

    In the reals a cell can be less than in whole numbers, so that a claim the program does not confirm may still be true;
    one that it confirms is.
    """
    import scipy.sparse
    from scipy.optimize import linprog

    # A column of nobody rules out its cells; nothing that was propagated is used here.
    nobody = np.zeros(len(table.layout.starts) - 1, dtype=bool)
    atom = np.repeat(np.arange(len(nobody)), np.diff(table.layout.starts))
    nobody[atom[found.high[table.layout.held] == 0]] = True
    open_cells = np.flatnonzero(~nobody[table.layout.atom].any(axis=0))
    if len(open_cells) > CHECKED_CELLS:
        return None
    rows, columns = members(table, open_cells)
    matrix = scipy.sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(table.layout.columns, len(open_cells)))
    bounded = found.high < UNBOUNDED
    above = scipy.sparse.vstack([matrix[bounded], -matrix])
    limits = np.concatenate([found.high[bounded], -found.low])
    wanted = (open_cells == cell).astype(float)
    answer = linprog(wanted, A_ub=above, b_ub=limits, bounds=(0, None), method="highs")
    return bool(answer.status == 0 and np.ceil(answer.fun - 1e-6) >= least)


def members(table: CrossTable, cells: Ints) -> tuple[Ints, Ints]:
    """Return pairs of a column and the position of a cell that it counts."""
    layout = table.layout
    columns, places = [], []
    for m in range(layout.atom.shape[0]):
        atoms = layout.atom[m, cells]
        sizes = layout.starts[atoms + 1] - layout.starts[atoms]
        at = np.repeat(layout.starts[atoms], sizes) + _counting(sizes)
        columns.append(layout.held[at].astype(np.int64))
        places.append(np.repeat(np.arange(len(cells)), sizes))
    return np.concatenate(columns), np.concatenate(places)


def _counting(sizes: Ints) -> Ints:
    """Return 0, 1, … for every size, one after the other."""
    ends = np.cumsum(sizes)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - sizes, sizes)
