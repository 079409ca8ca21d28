"""The buffers of one area: which links are used, in which order, and where each array is in the arena.

Bounds determine all of this. A partial sum is cropped to what the parts before it can give and what the parts after it and
the total still allow (see `chain`). Ends with one possible value take no part: they shift the total.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unround.batch.compiled_sums import (
    BELOW,
    BELOW_END,
    CELL,
    CHILD,
    END,
    EQUATION,
    LAYER,
    PARENT,
    PARENT_LAYER,
    SIGN,
    SPLIT,
    SUM,
    SUM_LAYER,
    Forest,
    Table,
)
from unround.batch.convolution import GUARD, Box
from unround.batch.types import Ints
from unround.infer.plan import FIRST, PAIR, TOTAL
from unround.jit import inner
from unround.mechanisms.base import BoolArray

MOST_VALUES = 600
"""Possible values of a cell above which the links that touch it are not used."""

MOST_STATES = 2_500
"""Possible pairs of a node above which it is taken for its total alone."""

MOST_WORK = 500_000_000
"""Multiplications, going up, above which a link is not used: a few tenths of a second."""

ABSENT, SINGLE, PAIRED, LOOSE = 0, 1, 2, 3
"""What a node is in the area at hand: nothing, because it has too many values; one count (of a pair: its total); a pair of
counts; or a pair whose total need not be their sum."""

IMPOSSIBLE = -1
"""Returned in place of a size where no values add up."""

BOX = 0
"""The first of the four columns that hold a box, in all tables."""

MODE, LOCAL, BELIEF, ABOVE, NODE_DISTANCE = 4, 5, 6, 7, 8
"""Further columns of `Buffers.nodes`: what the node is; where its local evidence and its belief are; the slot of the message
from above (-1: none); and how far it is from a cell in question (see `depth`)."""

USED, FREE, MESSAGE, DISTANCE, DONE, SILENT = 4, 5, 6, 7, 8, 9
"""Further columns of `Buffers.links`, where the box is that of the message to the parent: whether the link is used; how many
of its ends have more than one value; where the message is; how far the link is from a cell in question; how many rounds of
messages it has sent; and whether its messages to its children can be skipped."""

ORDER, ARRAY, DOWN, PARTIAL, PARTIAL_BOX = 4, 5, 6, 7, 8
"""Further columns of `Buffers.slots`. The slots of a link are its ends, those with more than one value first, from narrow to
wide: which end it is; where its array lies, the message back to it, and the partial sum up to it. Where messages travel in
rounds, those of later rounds follow."""


class Buffers(NamedTuple):
    """Where all arrays of the area at hand are; the columns of the tables are named above.

    `spare` has the places of temporary arrays: for a sum (twice), for a node, and for one of its layers.
    """

    nodes: Table
    links: Table
    slots: Table
    spare: Table


def buffers_for(forest: Forest) -> Buffers:
    """Make the tables that one thread needs; they are reused for every area."""

    def table(rows: int, columns: int) -> Table:
        return np.zeros((rows, columns), dtype=np.int64)

    return Buffers(table(len(forest.nodes), 9), table(len(forest.links), 10), table(len(forest.ends), 12), table(1, 4))


@inner
def box_at(table: Table, i: int, column: int) -> Box:
    """Read a box."""
    return table[i, column], table[i, column + 1], table[i, column + 2], table[i, column + 3]


@inner
def _put_box(table: Table, i: int, column: int, box: Box) -> None:
    for k in range(4):
        table[i, column + k] = box[k]


@inner
def layer_box(forest: Forest, buffers: Buffers, node: int, layer: int, low: Ints, high: Ints) -> Box:
    """Return the box of one layer of a node."""
    own = box_at(buffers.nodes, node, BOX)
    if layer == PAIR or buffers.nodes[node, MODE] == SINGLE:
        return own
    first, last = own[1], own[1] + own[3] - 1
    if layer == FIRST:
        first, last = own[0], own[0] + own[2] - 1
    elif layer == TOTAL:
        total = forest.nodes[node, CELL]
        first = max(int(low[total]), own[0] + own[1])
        last = min(int(high[total]), own[0] + own[2] + own[1] + own[3] - 2)
    return 0, first, 1, last - first + 1


@inner
def turned(box: Box) -> Box:
    """Return the box of the same array with all signs reversed."""
    return -(box[0] + box[2] - 1), -(box[1] + box[3] - 1), box[2], box[3]


@inner
def _set_nodes(forest: Forest, buffers: Buffers, low: Ints, high: Ints, active: BoolArray) -> int:
    """Decide what every node is, and place its arrays; return their size."""
    size = 0
    for n in range(len(forest.nodes)):
        total, first, second = forest.nodes[n, CELL], forest.nodes[n, CELL + 1], forest.nodes[n, CELL + 2]
        mode, box = ABSENT, (0, 0, 0, 0)
        if second >= 0:
            rows, columns = int(high[first]) - int(low[first]) + 1, int(high[second]) - int(low[second]) + 1
            if rows * columns <= MOST_STATES:
                split = forest.nodes[n, SPLIT]
                mode = PAIRED if split < 0 or active[split] else LOOSE
                box = (int(low[first]), int(low[second]), rows, columns)
        if mode == ABSENT and high[total] - low[total] < MOST_VALUES:
            mode, box = SINGLE, (0, int(low[total]), 1, int(high[total]) - int(low[total]) + 1)
        entries = box[2] * box[3]
        inner = forest.nodes[n, BELOW] < forest.nodes[n, BELOW_END]
        _put_box(buffers.nodes, n, BOX, box)
        buffers.nodes[n, MODE], buffers.nodes[n, ABOVE] = mode, -1
        buffers.nodes[n, LOCAL], buffers.nodes[n, BELIEF] = size, size + entries if inner else size
        size += 2 * entries if inner else entries
    return size


@inner
def _use(forest: Forest, buffers: Buffers, i: int, active: BoolArray) -> int:
    """Decide whether a link is used: 1 if so, 0 if its sums do not hold here, -1 if its nodes have too many values."""
    holding = parts = 0
    for k in range(forest.links[i, SUM], forest.links[i + 1, SUM]):
        if active[forest.sums[k, EQUATION]]:
            holding += 1
            parts += forest.sums[k, SUM_LAYER] != TOTAL
    first = forest.links[i, END]
    fits, loose = True, False
    for e in range(first - 1, forest.links[i + 1, END]):
        node, layer = forest.links[i, PARENT], forest.links[i, PARENT_LAYER]
        if e >= first:
            node, layer = forest.ends[e, CHILD], forest.ends[e, LAYER]
        mode = buffers.nodes[node, MODE]
        loose |= mode == LOOSE
        # A single count, or the total that is left of a pair, has one layer; a loose total is not linked to anything.
        fits &= mode == PAIRED or (mode == LOOSE and layer != TOTAL) or (mode == SINGLE and layer == TOTAL)
    if forest.links[i, PARENT_LAYER] == PAIR:
        # Two of three parallel sums imply the third, but only where every total is the sum of its parts.
        if holding < 2 or (loose and parts < 2):
            return 0
    elif holding < 1:
        return 0
    return 1 if fits else -1


@inner
def _sort_ends(forest: Forest, buffers: Buffers, i: int, low: Ints, high: Ints) -> tuple[int, int, int]:
    """Put the ends of a link that have more than one value in order; return how many, and what the others add up to.

    The number is -1 where an end has no value.
    """
    slots = buffers.slots
    start = forest.links[i, END]
    free = rows = columns = 0
    for e in range(start, forest.links[i + 1, END]):
        box = layer_box(forest, buffers, forest.ends[e, CHILD], forest.ends[e, LAYER], low, high)
        entries = box[2] * box[3]
        if box[2] < 1 or box[3] < 1:
            return -1, 0, 0
        if forest.ends[e, SIGN] < 0:
            box = turned(box)
        if entries == 1:
            rows += box[0]
            columns += box[1]
            continue
        at = start + free
        while at > start and slots[at - 1, BOX + 2] * slots[at - 1, BOX + 3] > entries:
            for k in range(BOX, ORDER + 1):
                slots[at, k] = slots[at - 1, k]
            at -= 1
        _put_box(slots, at, BOX, box)
        slots[at, ORDER] = e
        free += 1
    return free, rows, columns


@inner
def _set_partials(slots: Table, start: int, free: int, goal: Box) -> float:
    """Work out the boxes of the partial sums; return the multiplications of one pass, or -1 where none is possible."""
    for axis in range(2):
        after_low = after_high = least = most = 0
        for s in range(start, start + free):
            after_low += slots[s, BOX + axis]
            after_high += slots[s, BOX + axis] + slots[s, BOX + axis + 2] - 1
        for s in range(start, start + free):
            part_low = slots[s, BOX + axis]
            part_high = part_low + slots[s, BOX + axis + 2] - 1
            least += part_low
            most += part_high
            after_low -= part_low
            after_high -= part_high
            first = max(least, goal[axis] - after_high)
            last = min(most, goal[axis] + goal[axis + 2] - 1 - after_low)
            if first > last:
                return -1.0
            slots[s, PARTIAL_BOX + axis], slots[s, PARTIAL_BOX + axis + 2] = first, last - first + 1
    work = 0.0
    for s in range(start + 1, start + free):
        entries = float(slots[s, BOX + 2] * slots[s, BOX + 3])
        work += entries * slots[s, PARTIAL_BOX + 2] * slots[s, PARTIAL_BOX + 3]
    return work


@inner
def arrange(forest: Forest, buffers: Buffers, low: Ints, high: Ints, active: BoolArray, rounds: int) -> tuple[int, int, int]:
    """Place the arrays of one area; return the sizes of arena and scratch, and how many links are cut.

    The first number is `IMPOSSIBLE` where no values add up.
    """
    slots = buffers.slots
    size = _set_nodes(forest, buffers, low, high, active)
    cut = scratch = widest = 0
    for i in range(len(forest.links) - 1):
        use = _use(forest, buffers, i, active)
        buffers.links[i, USED] = use == 1
        cut += use < 0
        if use != 1:
            continue
        free, rows, columns = _sort_ends(forest, buffers, i, low, high)
        goal = layer_box(forest, buffers, forest.links[i, PARENT], forest.links[i, PARENT_LAYER], low, high)
        if free < 0 or goal[2] < 1 or goal[3] < 1:
            return IMPOSSIBLE, 0, cut
        start = forest.links[i, END]
        work = _set_partials(slots, start, free, (goal[0] - rows, goal[1] - columns, goal[2], goal[3]))
        if work < 0:
            return IMPOSSIBLE, 0, cut
        if work > MOST_WORK:
            buffers.links[i, USED] = 0
            cut += 1
            continue
        message = box_at(slots, start + free - 1, PARTIAL_BOX) if free else (0, 0, 1, 1)
        _put_box(buffers.links, i, BOX, (message[0] + rows, message[1] + columns, message[2], message[3]))
        entries = message[2] * message[3]
        buffers.links[i, FREE], buffers.links[i, MESSAGE] = free, size
        size += rounds * entries
        for s in range(start, start + free):
            buffers.nodes[forest.ends[slots[s, ORDER], CHILD], ABOVE] = s
            height, width = slots[s, BOX + 2], slots[s, BOX + 3]
            tall, wide = slots[s, PARTIAL_BOX + 2], slots[s, PARTIAL_BOX + 3]
            entries = height * width
            slots[s, ARRAY], slots[s, DOWN], slots[s, PARTIAL] = size, size + entries, size + (1 + rounds) * entries
            size += (1 + rounds) * entries + tall * wide
            widest = max(widest, tall * wide)
            if s > start:
                tall, wide = tall + slots[s - 1, PARTIAL_BOX + 2], wide + slots[s - 1, PARTIAL_BOX + 3]
                scratch = max(scratch, (tall + height) * (wide + width) + GUARD)
    for k in range(4):
        buffers.spare[0, k] = size
        size += widest if k < 2 else MOST_STATES
    return size, max(scratch, 2 * MOST_STATES), cut
