"""Which other counts to hide beside hidden ones, so that sums do not tell them: secondary suppression of unrounded counts.

For every hidden count another table is looked for that readers must think possible: all sums hold in it, it differs from
the draft in hidden counts only, and this count is larger or smaller by so many. Printed counts that have to differ as well
are hidden, too: as few, and as small ones, as a linear program finds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms.base import BoolArray, FloatArray
from unround.release import ABSENT, SUPPRESSED, Counts, told_range
from unround.reviews.table import ReviewedTable
from unround.sums.families import AreaFamily, sums_matrix

MOST_CELLS, MOST_HIDDEN = 6_000, 400
"""Counts that sums connect, and hidden ones among them, up to which this is done."""

TOTAL, ZERO = 4.0, 3.0
"""What it costs to hide a total, or a zero, beside any other count."""

_MOVED = 1e-6
UNBOUNDED = 3
"""What a linear program says where its goal has no end."""


def hide_complements(table: ReviewedTable, counts: Counts, wrong: Mapping[tuple[int, int], int]) -> bool:
    """Hide counts, in place, so that what readers know of these hidden ones is so wide; return whether that can be."""
    sums = _Sums(table)
    if sums.size > MOST_CELLS or len(wrong) > MOST_HIDDEN:
        return False
    for (row, at), wide in wrong.items():
        place, room = sums.place(row, at), sums.room(counts)
        least = most = int(table.printed[row, at])
        if least < 0:  # it was hidden before
            ends = [sums.end(room, place, sign) for sign in (1.0, -1.0)]
            if None in ends:
                return False
            least, most = (round(end) if end is not None and np.isfinite(end) else -1 for end in ends)
        if most < 0:  # nothing bounds it
            continue
        ways = [sums.changed(room, place, least + wide, np.inf)]
        ways += [sums.changed(room, place, 0, most - wide)] if most >= wide else []
        possible_ways = [way for way in ways if way is not None]
        if not possible_ways:
            return False
        _, hidden = min(possible_ways, key=lambda way: way[0])
        for line, column in sums.cells[hidden].tolist():
            counts[line, column] = SUPPRESSED
    return True


@dataclass(frozen=True, eq=False)
class _Room:
    """What readers think possible of each count, least and most; which printed ones could be hidden, and at what cost."""

    low: FloatArray
    high: FloatArray
    free: BoolArray
    cost: FloatArray


class _Sums:
    """All sums of a table over its cells: within areas, and of areas within areas."""

    def __init__(self, table: ReviewedTable) -> None:
        self.table, (rows, columns) = table, table.counts.shape
        self.size = rows * columns
        self.cells: NDArray[np.int64] = np.argwhere(np.ones((rows, columns), dtype=np.bool_))
        families, active = list[AreaFamily](), np.ones((rows, len(table.equations)), dtype=np.bool_)
        if table.nested is not None:
            parent = table.nested.parent
            heads = np.unique(parent[parent >= 0]).tolist()
            families = [AreaFamily(head, np.flatnonzero(parent == head), table.nested.cells) for head in heads]
        self.matrix = sums_matrix(columns, table.equations, active, families)
        self.right = np.zeros(self.matrix.shape[0])

    def place(self, row: int, at: int) -> int:
        """Return the number of a cell."""
        return row * len(self.table.columns) + at

    def end(self, room: _Room, place: int, sign: float) -> float | None:
        """Return the least that a count can be, or the most; infinite where nothing bounds it, None where nothing fits."""
        from scipy.optimize import linprog

        goal = np.zeros(self.size)
        goal[place] = sign
        solved = linprog(goal, A_eq=self.matrix, b_eq=self.right, bounds=np.c_[room.low, room.high], method="highs")
        return float(np.inf) if solved.status == UNBOUNDED else None if solved.x is None else sign * float(solved.fun)

    def changed(self, room: _Room, place: int, least: float, most: float) -> tuple[float, BoolArray] | None:
        """Return what it costs to have another table in which a count lies within these, and which counts to hide for it.

        Every printed count of the draft can move up and down at a cost; what is hidden can move as far as is known.
        """
        from scipy.optimize import linprog
        from scipy.sparse import hstack

        up, down = np.where(room.free, np.inf, 0.0), np.where(room.free, room.low, 0.0)
        bounds = np.c_[np.r_[room.low, np.zeros(2 * self.size)], np.r_[room.high, up, down]]
        bounds[place] = least, most
        bounds[[self.size + place, 2 * self.size + place]] = 0.0
        sums = hstack([self.matrix, self.matrix, -self.matrix]).tocsr()
        goal = np.r_[np.zeros(self.size), room.cost, room.cost]
        solved = linprog(goal, A_eq=sums, b_eq=self.right, bounds=bounds, method="highs")
        if solved.x is None:
            return None
        up, down = solved.x[self.size : 2 * self.size], solved.x[2 * self.size :]
        return float(solved.fun), np.asarray(room.free & (up + down > _MOVED))

    def room(self, counts: Counts) -> _Room:
        """Return how far each count can move."""
        table = self.table
        shown = (counts == table.counts) & (table.printed >= 0)
        low, high = np.where(shown, table.printed, 0).astype(float), np.where(shown, table.printed, np.inf)
        for row, at in np.argwhere(~shown & (counts == table.counts)).tolist():
            known = told_range(int(counts[row, at]))
            if known is not None:
                low[row, at], high[row, at] = known
        heads = {total for total, parts in table.equations if len(parts) > 1}
        over = set() if table.nested is None else set(table.nested.parent.tolist())
        cost = np.where(table.printed == 0, ZERO, 1.0) + np.log1p(np.maximum(table.printed, 0)) / 50
        cost[:, sorted(heads)] *= TOTAL
        cost[[row for row in over if row >= 0]] *= TOTAL
        mine = np.zeros(counts.shape, dtype=np.bool_)
        mine[:, list(table.mine)] = True
        return _Room(low.ravel(), high.ravel(), (shown & mine & (counts > ABSENT)).ravel(), cost.ravel())
