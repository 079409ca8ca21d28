"""The nearest whole numbers for which all sums of an area hold, compiled: the best table, not the sum over all tables.

Sums that form a forest, pairs of men and women as nodes, are gone through once from the leaves to the roots and once back,
exactly as for probabilities (`engines.messages`), with the largest product in place of the sum of products: the weight of a
count is exp(−(count − mean)²), so that the table with the largest product has the least sum of squares.
"""

from __future__ import annotations

import math

import numpy as np

from unround.engines.marginals import is_linked
from unround.engines.messages import (
    ABOVE,
    ABSENT,
    ARRAY,
    BELIEF,
    BOX,
    FREE,
    MESSAGE,
    MODE,
    ORDER,
    PARTIAL,
    PARTIAL_BOX,
    SINGLE,
    USED,
    Buffers,
    arrange,
    box_at,
    buffers_for,
    collect_belief,
    set_local_evidence,
    turned,
)
from unround.evidence.block import Ints, PriorWeights, Windows
from unround.evidence.cells import Evidence, evidence_of, plain, weight
from unround.evidence.convolution import Box, copy, crop, fill, scale
from unround.jit import MINUS_ONE, ZERO, in_threads, inner, kernel
from unround.mechanisms.base import BoolArray, FloatArray
from unround.sums.compiled import (
    BELOW,
    CHILD,
    END,
    HOME,
    HOME_LAYER,
    LAYER,
    PARENT,
    PARENT_LAYER,
    SIGN,
    CompiledSums,
    Forest,
    Table,
    forest_of,
)
from unround.sums.forest import FIRST, PAIR, TOTAL

HAIR = 1e-7
"""A mean that is so near a whole number is that number."""


def windows_around(mean: FloatArray, low: Ints, high: Ints, margin: int) -> tuple[Ints, Ints]:
    """Return the whole numbers on both sides of every mean and so many more, as far as bounds allow; never none."""
    first = np.clip(np.floor(mean + HAIR) - margin, low, high).astype(np.int32)
    last = np.clip(np.ceil(mean - HAIR) + margin, low, high).astype(np.int32)
    return first, np.maximum(first, last)


def nearest_tables(
    compiled: CompiledSums, mean: FloatArray, low: Ints, high: Ints, active: BoolArray
) -> tuple[Ints, BoolArray]:
    """Return for every area the whole numbers between `low` and `high` that are nearest to the means and add up.

    In the sums of the forest, that is; and in which areas there are such numbers.
    """
    areas, columns = mean.shape
    width = int((high - low).max(initial=0)) + 1
    far = np.abs(low[:, :, None] + np.arange(width) - mean[:, :, None])
    least = np.where(np.arange(width) <= (high - low)[:, :, None], far, np.inf).min(axis=2, keepdims=True)
    weights = np.exp(np.maximum(least**2 - far**2, -300.0)).ravel()
    start = (np.arange(areas * columns, dtype=np.int64) * width).reshape(areas, columns)
    forest = forest_of(compiled)
    nothing = Windows(low, high, np.full(low.shape, -1, dtype=np.int64), np.ones(1), np.ones(columns, dtype=np.bool_))
    evidence = evidence_of(compiled, nothing, PriorWeights(low, start, weights))
    best, possible = np.full(low.shape, -1, dtype=np.int32), np.zeros(areas, dtype=np.bool_)
    lows, highs, holds = plain(low, np.int32), plain(high, np.int32), plain(active, np.bool_)

    def job(first: int, last: int) -> None:
        _areas(first, last, forest, buffers_for(forest), evidence, lows, highs, holds, best, possible)

    in_threads(job, areas)
    return best, possible


@kernel
def _areas(
    first: int,
    last: int,
    forest: Forest,
    buffers: Buffers,
    evidence: Evidence,
    lows: Ints,
    highs: Ints,
    holds: BoolArray,
    best: Ints,
    possible: BoolArray,
) -> None:
    """Fill in the best tables of a range of areas."""
    arena, state = np.empty(1 << 16), np.zeros((len(forest.nodes), 2), dtype=np.int64)
    for a in range(first, last):
        low, high = lows[a], highs[a]
        size, _, cut = arrange(forest, buffers, low, high, holds[a])
        if size < 0 or cut > 0:
            continue
        if size > len(arena):
            arena = np.empty(size + size // 4)
        if not set_local_evidence(forest, buffers, arena, evidence, a, low, high) or not _upward(forest, buffers, arena):
            continue
        _choose(forest, buffers, arena, evidence, a, low, high, state, best[a])
        possible[a] = True


@inner
def _layer_value(own: Box, row: int, column: int, layer: int) -> int:
    """Return the count of one layer in a state of a pair."""
    if layer == FIRST:
        return own[0] + row
    return own[1] + column + (own[0] + row if layer == TOTAL else 0)


@inner
def _best_of_layer(arena: FloatArray, at: int, own: Box, layer: int, to: int, low: int, size: int) -> None:
    """Keep the best of all pairs with the same count in one layer, from `low` on."""
    fill(arena, to, size, 0.0)
    for r in range(own[2]):
        for c in range(own[3]):
            k = _layer_value(own, r, c, layer) - low
            if 0 <= k < size:
                arena[to + k] = max(arena[to + k], arena[at + r * own[3] + c])


@inner
def _best_sum(arena: FloatArray, one: int, before: Box, two: int, box: Box, to: int, after: Box) -> float:
    """Keep the best way in which two arrays add up to each sum."""
    fill(arena, to, after[2] * after[3], 0.0)
    for row in range(before[2]):
        for column in range(before[3]):
            known = arena[one + row * before[3] + column]
            if known == 0.0:
                continue
            down, right = before[0] + row + box[0] - after[0], before[1] + column + box[1] - after[1]
            for r in range(max(0, -down), min(box[2], after[2] - down)):
                line, goal = two + r * box[3], to + (down + r) * after[3] + right
                for c in range(max(0, -right), min(box[3], after[3] - right)):
                    arena[goal + c] = max(arena[goal + c], known * arena[line + c])
    return scale(arena, to, after[2] * after[3])


@inner
def _send_up(forest: Forest, buffers: Buffers, arena: FloatArray, i: int) -> bool:
    """Send the message of a link to its parent; return False if nothing is possible."""
    slots = buffers.slots
    start, free, to = forest.links[i, END], buffers.links[i, FREE], buffers.links[i, MESSAGE]
    if free == 0:
        arena[to] = 1.0
        return True
    for s in range(start, start + free):
        e, box = slots[s, ORDER], box_at(slots, s, BOX)
        n, layer, sign = forest.ends[e, CHILD], forest.ends[e, LAYER], forest.ends[e, SIGN]
        own, size = box_at(buffers.nodes, n, BOX), box[2] * box[3]
        if layer != PAIR and buffers.nodes[n, MODE] != SINGLE:
            low = turned(box)[1] if sign < 0 else box[1]
            _best_of_layer(arena, buffers.nodes[n, BELIEF], own, layer, slots[s, ARRAY], low, box[3])
        else:
            copy(arena, buffers.nodes[n, BELIEF], slots[s, ARRAY], size)
        if sign < 0:
            for k in range(size // 2):
                here, there = slots[s, ARRAY] + k, slots[s, ARRAY] + size - 1 - k
                arena[here], arena[there] = arena[there], arena[here]
    box, part = box_at(slots, start, BOX), box_at(slots, start, PARTIAL_BOX)
    crop(arena, slots[start, ARRAY], box, part[0] - box[0], part[1] - box[1], arena, slots[start, PARTIAL], part[3], part)
    for s in range(start + 1, start + free):
        before, box, after = box_at(slots, s - 1, PARTIAL_BOX), box_at(slots, s, BOX), box_at(slots, s, PARTIAL_BOX)
        if _best_sum(arena, slots[s - 1, PARTIAL], before, slots[s, ARRAY], box, slots[s, PARTIAL], after) == 0.0:
            return False
    end = start + free - 1
    copy(arena, slots[end, PARTIAL], to, slots[end, PARTIAL_BOX + 2] * slots[end, PARTIAL_BOX + 3])
    return True


@inner
def _upward(forest: Forest, buffers: Buffers, arena: FloatArray) -> bool:
    """Send messages from the leaves to the roots; return False where no values add up."""
    for i in range(len(forest.links) - 2, -1, -1):
        n = forest.links[i, PARENT]
        if buffers.links[i, USED] and not _send_up(forest, buffers, arena, i):
            return False
        complete = i == forest.nodes[n, BELOW] and buffers.nodes[n, MODE] != ABSENT
        if complete and collect_belief(forest, buffers, arena, n, buffers.nodes[n, BELIEF], MINUS_ONE) == 0.0:
            return False
    return True


@inner
def _best_pair(buffers: Buffers, arena: FloatArray, n: int, layer: int, value: int, state: Table) -> None:
    """Choose the best state of a node, of those with a count in one layer; of all, if the layer is that of a pair."""
    own, at = box_at(buffers.nodes, n, BOX), buffers.nodes[n, BELIEF]
    best = -1.0
    for r in range(own[2]):
        for c in range(own[3]):
            here = arena[at + r * own[3] + c]
            if here > best and (layer == PAIR or _layer_value(own, r, c, layer) == value):
                best = here
                state[n, 0], state[n, 1] = own[0] + r, own[1] + c


@inner
def _divide(forest: Forest, buffers: Buffers, arena: FloatArray, i: int, state: Table) -> None:
    """Choose the states of a link's children, given that of its parent."""
    slots = buffers.slots
    n, layer = forest.links[i, PARENT], forest.links[i, PARENT_LAYER]
    start, free = forest.links[i, END], buffers.links[i, FREE]
    row, column = 0, state[n, 1]
    if layer == PAIR:
        row = state[n, 0]
    elif buffers.nodes[n, MODE] != SINGLE:
        column = state[n, 0] if layer == FIRST else state[n, 1] if layer != TOTAL else state[n, 0] + state[n, 1]
    # What the ends that have one value add up to is left out of partial sums.
    row -= buffers.links[i, BOX] - slots[start + free - 1, PARTIAL_BOX]
    column -= buffers.links[i, BOX + 1] - slots[start + free - 1, PARTIAL_BOX + 1]
    for s in range(start + free - 1, start - 1, -1):
        box, at = box_at(slots, s, BOX), slots[s, ARRAY]
        down, right = row, column
        if s > start:
            before, partial, best = box_at(slots, s - 1, PARTIAL_BOX), slots[s - 1, PARTIAL], -1.0
            for r in range(max(0, row - before[0] - before[2] + 1 - box[0]), min(box[2], row - before[0] - box[0] + 1)):
                line = partial + (row - box[0] - r - before[0]) * before[3] + column - box[1] - before[1]
                for c in range(
                    max(0, column - before[1] - before[3] + 1 - box[1]), min(box[3], column - before[1] - box[1] + 1)
                ):
                    here = arena[at + r * box[3] + c] * arena[line - c]
                    if here > best:
                        best, down, right = here, box[0] + r, box[1] + c
            row -= down
            column -= right
        e = slots[s, ORDER]
        n, layer, sign = forest.ends[e, CHILD], forest.ends[e, LAYER], forest.ends[e, SIGN]
        if layer == PAIR or buffers.nodes[n, MODE] == SINGLE:
            state[n, 0], state[n, 1] = sign * down, sign * right
        else:
            _best_pair(buffers, arena, n, layer, sign * right, state)


@inner
def _choose(
    forest: Forest,
    buffers: Buffers,
    arena: FloatArray,
    evidence: Evidence,
    area: int,
    low: Ints,
    high: Ints,
    state: Table,
    into: Ints,
) -> None:
    """Choose the best value of every cell of an area, all together, after the upward pass."""
    for n in range(len(forest.nodes)):
        if buffers.nodes[n, MODE] != ABSENT and buffers.nodes[n, ABOVE] < 0:
            _best_pair(buffers, arena, n, MINUS_ONE, ZERO, state)
    for i in range(len(forest.links) - 1):
        if buffers.links[i, USED] and buffers.links[i, FREE] > 0:
            _divide(forest, buffers, arena, i, state)
    for cell in range(len(forest.homes)):
        n, layer = forest.homes[cell, HOME], forest.homes[cell, HOME_LAYER]
        if low[cell] == high[cell]:
            into[cell] = low[cell]
        elif not is_linked(forest, buffers, cell):
            largest = -math.inf
            for count in range(low[cell], high[cell] + 1):
                here = weight(evidence, area, cell, count)
                if here > largest:
                    largest, into[cell] = here, count
        elif buffers.nodes[n, MODE] == SINGLE:
            into[cell] = state[n, 1]
        else:
            into[cell] = state[n, 0] + state[n, 1] if layer == TOTAL else state[n, 0] if layer == FIRST else state[n, 1]
