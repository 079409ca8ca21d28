"""Tables that attain the ends of bounds: found by setting one cell after the other to an end of what is left to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.bounds.propagation import MOST_SWEEPS
from unround.bounds.tighten import Lists, lists_of
from unround.evidence.block import NO_UPPER_BOUND
from unround.jit import inner, kernel
from unround.mechanisms.base import BoolArray
from unround.sums.forest import Equations

FAR = NO_UPPER_BOUND // 2
"""An end beyond this is none: only the largest number that a solver knows stopped it."""

Longs = NDArray[np.int64]


class _State(NamedTuple):
    """What is left to every cell, and how to take back what setting one cell changed.

    - `low`, `high`: The bounds.
    - `before`: The bounds before, of the cells in `changed`, whose last place holds their number; `moved` marks them.
    - `waiting`, `queue`: The sums that are to be looked at, marked and in their order.
    """

    low: Longs
    high: Longs
    before: Longs
    changed: Longs
    moved: BoolArray
    waiting: BoolArray
    queue: Longs


def attained_ends(
    bounds: Sequence[tuple[int, int]], equations: Equations, wanted: Sequence[int]
) -> tuple[Longs, Longs] | None:
    """Return the least and the greatest that cells are in tables that fit, made to have wanted cells at their ends.

    All counts between two bounds are possible. None if no table was found, which does not mean that there is none.
    """
    low, high = np.array(bounds, dtype=np.int64).T.copy()
    if high.max() > NO_UPPER_BOUND:
        return None
    least, most = high.copy(), low.copy()
    tables = _attain(lists_of(low.size, equations), low, high, np.array(wanted, dtype=np.int64), least, most)
    return (least, most) if tables else None


@kernel
def _attain(sums: Lists, lowest: Longs, highest: Longs, wanted: Longs, least: Longs, most: Longs) -> int:
    """Look for a table for each end of each wanted cell that no table so far attains; return how many were found."""
    cells, number, tables = lowest.size, sums.order.size, 0
    low, high, before = np.empty(cells, np.int64), np.empty(cells, np.int64), np.empty((2, cells), np.int64)
    changed, moved = np.zeros(cells + 1, np.int64), np.zeros(cells, np.bool_)
    state = _State(low, high, before, changed, moved, np.zeros(number, np.bool_), np.empty(number, np.int64))
    for side in range(2):
        for cell in wanted:
            end = min(highest[cell], FAR + 1) if side == 0 else lowest[cell]
            if tables and (most[cell] >= end if side == 0 else least[cell] == end):
                continue
            for upwards in (True, False):
                low[:], high[:] = lowest, highest
                if _set(sums, state, cell, end) and _complete(sums, state, highest, most, upwards):
                    tables += 1
                    for c in range(cells):
                        least[c], most[c] = min(least[c], low[c]), max(most[c], low[c])
                    break
    return tables


@inner
def _complete(sums: Lists, state: _State, highest: Longs, most: Longs, upwards: bool) -> bool:
    """Set every open cell to the upper end of what others leave to it, or to the lower; to the other where that fails.

    Cells that can still reach an upper end which no table attains so far come first: one table then attains many.
    """
    low, high = state.low, state.high
    for late in (False, True):
        for c in range(low.size):
            top, bottom = high[c], low[c]
            if top == bottom or not (late or (top == highest[c] and top > most[c])):
                continue
            up = upwards and top < FAR
            if not _set(sums, state, c, top if up else bottom) and (
                top >= FAR or not _set(sums, state, c, bottom if up else top)
            ):
                return False
    for e in range(sums.first.size - 1):
        total = 0
        for k in range(sums.first[e] + 1, sums.first[e + 1]):
            total += low[sums.cells[k]]
        if total != low[sums.cells[sums.first[e]]]:
            return False
    return True


@inner
def _set(sums: Lists, state: _State, cell: int, value: int) -> bool:
    """Give a cell a value, and tighten what its sums reach; False, and all as before, if a cell is left without one."""
    low, high, waiting, queue, number = state.low, state.high, state.waiting, state.queue, state.queue.size
    added, done, fits, most = _move(sums, state, cell, value, value, 0), 0, True, MOST_SWEEPS * number
    while done < added and fits and done < most:
        e = queue[done % number]
        done += 1
        waiting[e] = False
        first, last = sums.first[e], sums.first[e + 1]
        total, least, greatest = sums.cells[first], 0, 0
        for k in range(first + 1, last):
            least += low[sums.cells[k]]
            greatest += high[sums.cells[k]]
        if least > low[total] or greatest < high[total]:
            added = _move(sums, state, total, max(least, low[total]), min(greatest, high[total]), added)
            fits = low[total] <= high[total]
        # Each part gets what the total leaves when all the others are at their opposite ends.
        spare, need = high[total] - least, low[total] - greatest
        for k in range(first + 1, last):
            part = sums.cells[k]
            bottom, top = max(low[part], need + high[part]), min(high[part], spare + low[part])
            if bottom > low[part] or top < high[part]:
                added = _move(sums, state, part, bottom, top, added)
                fits = fits and bottom <= top
    while done < added:  # nothing fits, or it takes too long
        waiting[queue[done % number]] = False
        done += 1
    changed = state.changed
    for i in range(changed[-1]):
        c = changed[i]
        state.moved[c] = False
        if not fits:
            low[c], high[c] = state.before[0, c], state.before[1, c]
    changed[-1] = 0
    return fits


@inner
def _move(sums: Lists, state: _State, cell: int, bottom: int, top: int, added: int) -> int:
    """Move the bounds of a cell, and queue its sums; return how many have been queued since a cell was set."""
    if not state.moved[cell]:
        state.moved[cell], state.changed[state.changed[-1]] = True, cell
        state.changed[-1] += 1
        state.before[0, cell], state.before[1, cell] = state.low[cell], state.high[cell]
    state.low[cell], state.high[cell] = bottom, top
    for k in range(sums.at[cell], sums.at[cell + 1]):
        e = sums.touching[k]
        if not state.waiting[e]:
            state.waiting[e] = True
            state.queue[added % state.queue.size] = e
            added += 1
    return added
