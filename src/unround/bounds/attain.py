"""Tables that attain the ends of bounds: found by setting one cell after the other to an end of what is left to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unround.bounds.propagation import MOST_SWEEPS
from unround.bounds.tighten import BoundsInput, CellState, Lists, lists_of, revise
from unround.evidence.block import NO_UPPER_BOUND, CellBounds
from unround.jit import kernel
from unround.sums.forest import Equations

FAR = NO_UPPER_BOUND // 2
"""An end beyond this is none: only the largest number that a solver knows stopped it."""

Longs = NDArray[np.int64]


def attained_ends(
    bounds: Sequence[tuple[int, int]], equations: Equations, wanted: Sequence[int]
) -> tuple[Longs, Longs] | None:
    """Return the least and the greatest that cells are in tables that fit, made to have wanted cells at their ends.

    All counts between two bounds are possible. None if no table was found, which does not mean that there is none.
    """
    low, high = np.array(bounds, dtype=np.int64).T
    if high.max() > NO_UPPER_BOUND:
        return None
    shape = 1, low.size
    given = BoundsInput(
        low[None, :].astype(np.int32),
        high[None, :].astype(np.int32),
        np.full(shape, -1, dtype=np.int64),
        np.empty(0),
        np.zeros(1, dtype=np.int64),
        np.ones((1, len(equations)), dtype=np.bool_),
    )
    nobody = np.zeros(shape, dtype=np.int32)  # what set a bound is not asked
    found = CellBounds(nobody, nobody, nobody, nobody, nobody, nobody, np.ones(1, dtype=np.bool_))
    least, most = high.copy(), low.copy()
    tables = _attain(lists_of(low.size, equations), given, found, np.array(wanted, dtype=np.int64), least, most)
    return (least, most) if tables else None


@kernel
def _attain(sums: Lists, given: BoundsInput, found: CellBounds, wanted: Longs, least: Longs, most: Longs) -> int:
    """Look for a table for each end of each wanted cell that no table so far attains; return how many were found."""
    columns, tables = given.low.shape[1], 0
    low, high = np.empty(columns, dtype=np.int64), np.empty(columns, dtype=np.int64)
    before = np.empty((2, columns), dtype=np.int64)
    own = CellState(low, high, np.zeros(columns, dtype=np.bool_), np.zeros(sums.order.size, dtype=np.bool_))
    for side in range(2):
        for cell in wanted:
            end = min(given.high[0, cell], FAR + 1) if side == 0 else given.low[0, cell]
            if tables and (most[cell] >= end if side == 0 else least[cell] == end):
                continue
            for upwards in (True, False):
                low[:], high[:] = given.low[0], given.high[0]
                if _set(sums, given, own, found, cell, end) and _complete(sums, given, own, found, before, most, upwards):
                    tables += 1
                    for c in range(columns):
                        least[c], most[c] = min(least[c], low[c]), max(most[c], low[c])
                    break
    return tables


@kernel
def _complete(
    sums: Lists, given: BoundsInput, own: CellState, found: CellBounds, before: Longs, most: Longs, upwards: bool
) -> bool:
    """Set every open cell to the upper end of what others leave to it, or to the lower; to the other where that fails.

    Cells that can still reach an upper end which no table attains so far come first: one table then attains many.
    """
    low, high = own.low, own.high
    for late in (False, True):
        for c in range(low.size):
            top, bottom = high[c], low[c]
            if top == bottom or not (late or (top == given.high[0, c] and top > most[c])):
                continue
            before[0], before[1] = low, high
            up = upwards and top < FAR
            if not _set(sums, given, own, found, c, top if up else bottom):
                low[:], high[:] = before[0], before[1]
                if top >= FAR or not _set(sums, given, own, found, c, bottom if up else top):
                    return False
    for e in range(sums.first.size - 1):
        total = 0
        for k in range(sums.first[e] + 1, sums.first[e + 1]):
            total += low[sums.cells[k]]
        if total != low[sums.cells[sums.first[e]]]:
            return False
    return True


@kernel
def _set(sums: Lists, given: BoundsInput, own: CellState, found: CellBounds, cell: int, value: int) -> bool:
    """Give a cell a value, and tighten what its sums reach; False if some cell is left without a possible value."""
    own.low[cell] = own.high[cell] = value
    waiting, number, use = own.waiting, sums.order.size, given.use[0]
    waiting[:] = False
    for k in range(sums.at[cell], sums.at[cell + 1]):
        waiting[sums.touching[k]] = True
    quiet, sweep = False, 0
    while not quiet and sweep < MOST_SWEEPS:
        quiet = True
        for k in range(number):
            e = sums.order[k] if sweep % 2 == 0 else sums.order[number - 1 - k]
            if waiting[e]:
                waiting[e] = quiet = False
                if not revise(0, e, sums, use, given, own, found):
                    return False
        sweep += 1
    return True
