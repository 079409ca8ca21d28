"""Bounds of many areas at once: the bound propagation of `bounds.propagation`, as a compiled kernel over arrays.

It visits the sums in the same order and stops at the same point, so that both find the same bounds. So it does with what
figures say: inequalities between the same cells in all areas, with factors of their own in each.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.bounds.propagation import MOST_SWEEPS
from unround.evidence.block import NO_UPPER_BOUND, CellBounds, Ints, Windows
from unround.jit import in_threads, kernel
from unround.mechanisms.base import BoolArray, FloatArray
from unround.sums.compiled import CompiledSums
from unround.sums.forest import Equations, neighbours
from unround.system import Row

_NO_LIMIT = 1 << 45
"""No upper bound, inside the kernel: far above any sum of counts, yet many of them still add up without overflow."""


OFF = (1 << 63) - 1
"""The limit of an inequality that says nothing in an area."""

LARGEST_FACTORS = 1 << 31
"""The largest sum of an inequality's factors: times any count, they stay within 64 bits."""


class BlockRows(NamedTuple):
    """Inequalities that figures give in a block of areas: the sum of factors times counts is at most a limit.

    Those of row r are about the cells `cells[first[r]:first[r + 1]]`; `factors` are areas × these places, 0 for a cell that
    takes no part, and `limits` areas × rows, `OFF` where there is no such inequality. `figures` says which figure a row is
    of. No row names a cell twice, and the factors of no row add up to more than `LARGEST_FACTORS`.
    """

    first: NDArray[np.int64]
    cells: NDArray[np.int64]
    factors: NDArray[np.int64]
    limits: NDArray[np.int64]
    figures: NDArray[np.int64]

    def of(self, rows: NDArray[np.integer]) -> BlockRows:
        """Return those of some areas."""
        return self._replace(factors=self.factors[rows], limits=self.limits[rows])

    def of_figures(self, used: BoolArray) -> BlockRows:
        """Return the same with figures switched off: `used` is by figure, or areas × figures."""
        return self._replace(limits=np.where(used[..., self.figures], self.limits, OFF))

    def members(self) -> tuple[tuple[int, ...], ...]:
        """Return the cells of every row."""
        return _cut(self.first.tobytes(), self.cells.tobytes())

    def row(self, area: int, r: int) -> Row:
        """Return an inequality of one area as `bounds.propagation` takes it; without terms where it says nothing."""
        here = slice(int(self.first[r]), int(self.first[r + 1]))
        pairs = zip(self.cells[here].tolist(), self.factors[area, here].tolist(), strict=True)
        terms = tuple((cell, factor) for cell, factor in pairs if factor)
        limit = int(self.limits[area, r])
        return Row(() if limit == OFF else terms, 0 if limit == OFF else limit, int(self.figures[r]), r)


@lru_cache(maxsize=16)
def _cut(first: bytes, cells: bytes) -> tuple[tuple[int, ...], ...]:
    """Return the cells of every row; all blocks of an audit have the same."""
    ends = np.frombuffer(first, dtype=np.int64).tolist()
    flat = np.frombuffer(cells, dtype=np.int64).tolist()
    return tuple([tuple(flat[start:end]) for start, end in pairwise(ends)])


class Lists(NamedTuple):
    """The sums as arrays. Of sum e, `cells[first[e]]` is the total, and those up to `first[e + 1]` are the parts.

    `order` goes from neighbour to neighbour; `touching[at[c]:at[c + 1]]` are the sums that the column c is in. Inequalities
    are numbered after the sums; the last four arrays are those of `BlockRows`.
    """

    first: NDArray[np.int64]
    cells: NDArray[np.int64]
    order: NDArray[np.int64]
    at: NDArray[np.int64]
    touching: NDArray[np.int64]
    row_first: NDArray[np.int64]
    row_cells: NDArray[np.int64]
    factors: NDArray[np.int64]
    limits: NDArray[np.int64]


class BoundsInput(NamedTuple):
    """The kernel's input: the windows of a block. `zeros[i]` counts the zeros among the first i weights."""

    low: Ints
    high: Ints
    start: NDArray[np.int64]
    weights: FloatArray
    zeros: NDArray[np.int64]
    use: BoolArray


class CellState(NamedTuple):
    """The kernel's state for one area: bounds, which cells have holes, and which sums are queued."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    holes: BoolArray
    waiting: BoolArray


@lru_cache(maxsize=128)
def lists_of(columns: int, equations: Equations, more: tuple[tuple[int, ...], ...] = ()) -> Lists:
    """Put sums into arrays, and room for inequalities about these cells."""
    order, touching = neighbours(equations, more)
    sizes = [1 + len(parts) for _, parts in equations]
    cells = [cell for total, parts in equations for cell in (total, *parts)]
    near = [touching.get(column, []) for column in range(columns)]
    return Lists(
        np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        np.array(cells, dtype=np.int64),
        np.array(order, dtype=np.int64),
        np.concatenate(([0], np.cumsum([len(members) for members in near]))).astype(np.int64),
        np.array([e for members in near for e in members], dtype=np.int64),
        np.concatenate(([0], np.cumsum([len(members) for members in more]))).astype(np.int64),
        np.array([cell for members in more for cell in members], dtype=np.int64),
        np.zeros((0, 0), dtype=np.int64),
        np.zeros((0, 0), dtype=np.int64),
    )


class PlainSums(NamedTuple):
    """Sums of which only bounds are asked: there is no plan how probabilities travel."""

    columns: int
    equations: Equations


def tighten(
    compiled: CompiledSums | PlainSums,
    windows: Windows,
    active: BoolArray | None = None,
    *,
    proofs_only: bool = False,
    rows: BlockRows | None = None,
) -> CellBounds:
    """Tighten the bounds of every area by the sums until nothing changes.

    Notes
    -----
    An upper bound of `NO_UPPER_BOUND` or more is not a bound, and an area in which some count would have to be that large is
    not feasible. Time is linear in the number of areas, and in that of sums where these form no loop.
    """
    lists = lists_of(compiled.columns, compiled.equations)
    if rows is not None:
        lists = lists_of(compiled.columns, compiled.equations, rows.members())
        lists = lists._replace(factors=np.ascontiguousarray(rows.factors), limits=np.ascontiguousarray(rows.limits))
    areas, columns = windows.low.shape
    shape = areas, columns
    low, high, start = windows.low.astype(np.int32), windows.high.astype(np.int32), windows.start
    if proofs_only and not windows.certain.all():
        low[:, ~windows.certain] = 0
        high[:, ~windows.certain] = NO_UPPER_BOUND
        start = np.where(windows.certain, start, -1)
    # How many impossible counts come before each place: the difference over a window says whether it has holes.
    zeros = np.concatenate(([0], np.cumsum(windows.weights == 0)))
    use = np.ones((1, len(compiled.equations)), dtype=np.bool_) if active is None else np.ascontiguousarray(active)
    given = BoundsInput(low, high, start, windows.weights, zeros, use)
    nobody = np.full(shape, -1, dtype=np.int32)
    tight = CellBounds(low.copy(), high.copy(), nobody, nobody.copy(), np.ones(areas, dtype=np.bool_))
    in_threads(lambda first, last: tighten_areas(first, last, lists, given, tight), areas, cells=compiled.columns)
    return tight


@kernel
def tighten_areas(begin: int, end: int, sums: Lists, given: BoundsInput, tight: CellBounds) -> None:
    """Tighten the areas from `begin` up to `end`."""
    columns, number = tight.low.shape[1], sums.order.size
    low, high = np.empty(columns, dtype=np.int64), np.empty(columns, dtype=np.int64)
    holes, waiting = np.zeros(columns, dtype=np.bool_), np.empty(number, dtype=np.bool_)
    state = CellState(low, high, holes, waiting)
    for area in range(begin, end):
        use = given.use[area if given.use.shape[0] > 1 else 0]
        for c in range(columns):
            low[c] = given.low[area, c]
            high[c] = given.high[area, c] if given.high[area, c] < NO_UPPER_BOUND else _NO_LIMIT
            first = given.start[area, c]
            if given.zeros[-1] > 0:
                holes[c] = first >= 0 and given.zeros[first + high[c] - low[c] + 1] > given.zeros[first]
        for e in range(number):
            waiting[e] = e >= use.size or use[e]
        possible, quiet, sweep = True, False, 0
        while possible and not quiet and sweep < MOST_SWEEPS:
            quiet = True
            for k in range(number):
                e = sums.order[k] if sweep % 2 == 0 else sums.order[number - 1 - k]
                if waiting[e]:
                    waiting[e] = quiet = False
                    if e < use.size:
                        possible = revise(area, e, sums, use, given, state, tight)
                    else:
                        possible = _apply(area, e, sums, use, given, state, tight)
                    if not possible:
                        break
            sweep += 1
        for c in range(columns):
            # Around a loop of cells that nothing bounds, a contradiction shows as a bound that grows without end.
            possible = possible and low[c] < NO_UPPER_BOUND
            tight.low[area, c] = min(low[c], NO_UPPER_BOUND)
            tight.high[area, c] = min(high[c], NO_UPPER_BOUND)
        tight.feasible[area] = possible


@kernel
def revise(area: int, e: int, sums: Lists, use: BoolArray, given: BoundsInput, state: CellState, tight: CellBounds) -> bool:
    """Apply one sum to the bounds of its cells; False if it leaves some cell without a possible value."""
    low, high = state.low, state.high
    by_low, by_high = tight.by_low[area], tight.by_high[area]
    cells = sums.cells[sums.first[e] : sums.first[e + 1]]
    total = cells[0]
    low_sum = high_sum = 0
    for part in cells[1:]:
        low_sum += low[part]
        high_sum += high[part]
    moved = False
    if low_sum > low[total]:
        low[total], by_low[total] = min(low_sum, _NO_LIMIT), e
        moved = True
    if high_sum < high[total]:
        high[total], by_high[total] = high_sum, e
        moved = True
    # Each part gets what the total leaves when all the others are at their opposite ends. With one unbounded part
    # _NO_LIMIT cancels out of `high_sum - high[part]`; with two it makes the new bound harmlessly low.
    bounded, spare, need = high[total] < _NO_LIMIT, high[total] - low_sum, low[total] - high_sum
    if moved and not _queue_others(area, total, e, sums, use, given, state):
        return False
    for part in cells[1:]:
        part_low, part_high = low[part], high[part]
        moved = False
        if bounded and part_low + spare < part_high:
            high[part], by_high[part] = part_low + spare, e
            moved = True
        if need + part_high > part_low:
            low[part], by_low[part] = min(need + part_high, _NO_LIMIT), e
            moved = True
        if moved and not _queue_others(area, part, e, sums, use, given, state):
            return False
    return True


@kernel
def _apply(area: int, e: int, sums: Lists, use: BoolArray, given: BoundsInput, state: CellState, tight: CellBounds) -> bool:
    """Apply one inequality to the bounds of its cells; False if it leaves some cell without a possible value."""
    low, high = state.low, state.high
    by_low, by_high = tight.by_low[area], tight.by_high[area]
    limit = sums.limits[area, e - use.size]
    if limit == OFF:
        return True
    start, end = sums.row_first[e - use.size], sums.row_first[e - use.size + 1]
    least = unbounded = 0
    for k in range(start, end):
        cell, factor = sums.row_cells[k], sums.factors[area, k]
        if factor == 0:
            continue
        if low[cell] >= NO_UPPER_BOUND:
            return True  # the area is not feasible; products might no longer fit
        if factor > 0:
            least += factor * low[cell]
        elif high[cell] >= NO_UPPER_BOUND:
            unbounded += 1
        else:
            least += factor * high[cell]
    for k in range(start, end):
        cell, factor = sums.row_cells[k], sums.factors[area, k]
        free = factor < 0 and high[cell] >= NO_UPPER_BOUND
        if factor == 0 or unbounded - free > 0:
            continue
        # What the others leave when each is at the end that leaves most room.
        spare = limit - least
        moved = False
        if factor > 0:
            bound = (spare + factor * low[cell]) // factor
            if bound < high[cell]:
                high[cell], by_high[cell] = bound, e
                moved = True
        else:
            spare += 0 if free else factor * high[cell]
            bound = -(spare // -factor)
            if bound > low[cell]:
                low[cell], by_low[cell] = min(bound, _NO_LIMIT), e
                moved = True
        if moved and not _queue_others(area, cell, e, sums, use, given, state):
            return False
    return True


@kernel
def _queue_others(area: int, cell: int, e: int, sums: Lists, use: BoolArray, given: BoundsInput, state: CellState) -> bool:
    """Queue the other sums of a cell whose bounds moved; False if it has no possible value."""
    again = state.holes[cell] and _snap(area, cell, given, state)
    if state.low[cell] > state.high[cell]:
        return False
    for k in range(sums.at[cell], sums.at[cell + 1]):
        other = sums.touching[k]
        if (again or other != e) and (other >= use.size or use[other]):
            state.waiting[other] = True
    return True


@kernel
def _snap(area: int, cell: int, given: BoundsInput, state: CellState) -> bool:
    """Move bounds that fell into a hole to the next possible value; return whether one moved."""
    low, high = state.low, state.high
    # Where the weight of the count 0 would be.
    origin = given.start[area, cell] - given.low[area, cell]
    moved = False
    while low[cell] <= given.high[area, cell] and given.weights[origin + low[cell]] == 0:
        low[cell] += 1
        moved = True
    while high[cell] >= given.low[area, cell] and given.weights[origin + high[cell]] == 0:
        high[cell] -= 1
        moved = True
    return moved
