"""Messages up and down the forest of one area, compiled. `tree` is the same in plain numpy, for one system.

Everything lies in one long vector, the arena. Bounds determine which links are used, in which order, and where each array
is: a partial sum is cropped to what the parts before it can give and what the parts after it and the total still allow. Ends
with one possible value take no part: they shift the total.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unround.evidence.block import MOST_VALUES, Ints
from unround.evidence.cells import Evidence, same_records, weigh_keys, weight
from unround.evidence.convolution import GUARD, Box, convolve, copy, correlate, crop, fill, halvings, scale
from unround.evidence.keys import KeyInput
from unround.jit import MINUS_ONE, ZERO, inner, kernel
from unround.mechanisms.base import BoolArray, FloatArray
from unround.sums.compiled import (
    BELOW,
    BELOW_END,
    CELL,
    CHILD,
    COPY,
    END,
    EQUATION,
    HOME,
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
from unround.sums.forest import FIRST, PAIR, SECOND, TOTAL

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

MODE, LOCAL, BELIEF, ABOVE, HEARD = 4, 5, 6, 7, 8
"""Further columns of `Buffers.nodes`: what the node is; where its local evidence and its belief are; the slot of the message
from above (-1: none); and whether a cell that is wanted hears of it."""

USED, FREE, MESSAGE, SILENT = 4, 5, 6, 7
"""Further columns of `Buffers.links`, where the box is that of the message to the parent: whether the link is used; how many
of its ends have more than one value; where the message is; and whether its messages to its children can be skipped."""

ORDER, ARRAY, DOWN, PARTIAL, PARTIAL_BOX, HALVED = 4, 5, 6, 7, 8, 12
"""Further columns of `Buffers.slots`. The slots of a link are its ends, those with more than one value first, from narrow to
wide: which end it is; where its array lies, the message back to it, and the partial sum up to it, and how often that was
halved."""


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

    return Buffers(table(len(forest.nodes), 9), table(len(forest.links), 8), table(len(forest.ends), 13), table(1, 4))


class Here(NamedTuple):
    """The area at hand: where its arrays are, what is known of each of its cells (a row of the evidence), and bounds."""

    forest: Forest
    buffers: Buffers
    arena: FloatArray
    scratch: FloatArray
    evidence: Evidence
    row: int
    low: Ints
    high: Ints


@kernel
def make_room(arena: FloatArray, scratch: FloatArray, size: int, needed: int) -> tuple[FloatArray, FloatArray]:
    """Return an arena and scratch vectors that are long enough for an area."""
    if size > len(arena):
        arena = np.empty(size + size // 4)
    if needed > scratch.shape[1]:
        scratch = np.empty((3, 2 * needed))
    return arena, scratch


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
    box = box_at(buffers.nodes, node, BOX)
    if layer == PAIR or buffers.nodes[node, MODE] == SINGLE:
        return box
    first, last = box[1], box[1] + box[3] - 1
    if layer == FIRST:
        first, last = box[0], box[0] + box[2] - 1
    elif layer == TOTAL:
        total = forest.nodes[node, CELL]
        first = max(int(low[total]), box[0] + box[1])
        last = min(int(high[total]), box[0] + box[2] + box[1] + box[3] - 2)
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
def arrange(forest: Forest, buffers: Buffers, low: Ints, high: Ints, active: BoolArray) -> tuple[int, int, int]:
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
        buffers.links[i, FREE], buffers.links[i, MESSAGE] = free, size
        size += message[2] * message[3]
        for s in range(start, start + free):
            buffers.nodes[forest.ends[slots[s, ORDER], CHILD], ABOVE] = s
            height, width = slots[s, BOX + 2], slots[s, BOX + 3]
            tall, wide = slots[s, PARTIAL_BOX + 2], slots[s, PARTIAL_BOX + 3]
            entries = height * width
            slots[s, ARRAY], slots[s, DOWN], slots[s, PARTIAL] = size, size + entries, size + 2 * entries
            size += 2 * entries + tall * wide
            widest = max(widest, tall * wide)
            if s > start:
                tall, wide = tall + slots[s - 1, PARTIAL_BOX + 2], wide + slots[s - 1, PARTIAL_BOX + 3]
                scratch = max(scratch, (tall + height) * (wide + width) + GUARD)
    for k in range(4):
        buffers.spare[0, k] = size
        size += widest if k < 2 else MOST_STATES
    return size, max(scratch, 2 * MOST_STATES), cut


@inner
def set_local_evidence(here: Here) -> bool:
    """Weigh every state of every node by its own cells; return False where one has no state left."""
    forest, buffers, arena, _, evidence, area, low, high = here
    for n in range(len(forest.nodes)):
        mode, box, at = buffers.nodes[n, MODE], box_at(buffers.nodes, n, BOX), buffers.nodes[n, LOCAL]
        if mode == ABSENT:
            continue
        rows, columns = box[2], box[3]
        fill(arena, at, rows * columns, 1.0)
        for k in range(3):
            # A single count is a row; of a pair, the first count runs down, the second to the right.
            cell = forest.nodes[n, CELL + k]
            if forest.nodes[n, COPY] or (mode == SINGLE and k != TOTAL) or (mode == LOOSE and k == TOTAL):
                continue
            across, down = mode == SINGLE or k != FIRST, mode != SINGLE and k != SECOND
            first = box[1] * across + box[0] * down
            for step in range((columns - 1) * across + (rows - 1) * down + 1):
                count = first + step
                factor = weight(evidence, area, cell, count) if low[cell] <= count <= high[cell] else 0.0
                if not down:
                    for r in range(rows):
                        arena[at + r * columns + step] *= factor
                elif not across:
                    for c in range(columns):
                        arena[at + step * columns + c] *= factor
                else:
                    for r in range(max(0, step - columns + 1), min(rows, step + 1)):
                        arena[at + r * columns + step - r] *= factor
        if mode == PAIRED and not forest.nodes[n, COPY]:
            weigh_keys(evidence.keys, evidence, area, n, forest.nodes[n, CELL : CELL + 3], arena, at, box)
        if scale(arena, at, rows * columns) == 0.0:
            return False
    return True


@inner
def layer_value(box: Box, row: int, column: int, layer: int) -> int:
    """Return the count of one layer in a state of a pair."""
    if layer == FIRST:
        return box[0] + row
    return box[1] + column + (box[0] + row if layer == TOTAL else 0)


@inner
def reduce_to(arena: FloatArray, at: int, box: Box, layer: int, to: FloatArray, goal: int, low: int, size: int) -> None:
    """Sum an array over pairs to one over the counts of one layer, from `low` on."""
    fill(to, goal, size, 0.0)
    for r in range(box[2]):
        start = at + r * box[3]
        if layer == FIRST:
            k = box[0] + r - low
            if 0 <= k < size:
                for c in range(box[3]):
                    to[goal + k] += arena[start + c]
        else:
            shift = box[1] - low + (box[0] + r if layer == TOTAL else 0)
            for c in range(max(0, -shift), min(box[3], size - shift)):
                to[goal + shift + c] += arena[start + c]


@inner
def _multiply(arena: FloatArray, at: int, belief: Box, layer: int, message: int, box: Box) -> float:
    """Multiply a belief by a message about one of its layers; return 0 if nothing is left."""
    for r in range(belief[2]):
        start = at + r * belief[3]
        if layer == FIRST:
            k = belief[0] + r - box[1]
            factor = arena[message + k] if 0 <= k < box[3] else 0.0
            for c in range(belief[3]):
                arena[start + c] *= factor
            continue
        line, shift, width = message, belief[1] - box[1], box[3]
        if layer == TOTAL:
            shift += belief[0] + r
        elif layer == PAIR:
            line += (belief[0] + r - box[0]) * width
            width *= 0 <= belief[0] + r - box[0] < box[2]
        for c in range(belief[3]):
            arena[start + c] *= arena[line + shift + c] if 0 <= shift + c < width else 0.0
    return scale(arena, at, belief[2] * belief[3])


@inner
def absorb_from_above(here: Here, n: int, at: int) -> float:
    """Multiply a node's belief by the message from the link above it; return 0 if nothing is left."""
    forest, buffers = here.forest, here.buffers
    s = buffers.nodes[n, ABOVE]
    if s < 0:
        return 1.0
    e, box = buffers.slots[s, ORDER], box_at(buffers.slots, s, BOX)
    layer = SECOND if buffers.nodes[n, MODE] == SINGLE else forest.ends[e, LAYER]
    box = turned(box) if forest.ends[e, SIGN] < 0 else box
    return _multiply(here.arena, at, box_at(buffers.nodes, n, BOX), layer, buffers.slots[s, DOWN], box)


@inner
def absorb_from_below(here: Here, i: int, at: int) -> float:
    """Multiply the belief of a link's parent by the link's message; return 0 if nothing is left."""
    forest, buffers = here.forest, here.buffers
    n, box = forest.links[i, PARENT], box_at(buffers.links, i, BOX)
    layer = SECOND if buffers.nodes[n, MODE] == SINGLE else forest.links[i, PARENT_LAYER]
    return _multiply(here.arena, at, box_at(buffers.nodes, n, BOX), layer, buffers.links[i, MESSAGE], box)


@inner
def collect_belief(here: Here, n: int, at: int, but: int) -> float:
    """Multiply a node's local evidence by the messages from all links below it but one; return 0 if nothing is left."""
    forest, buffers = here.forest, here.buffers
    box = box_at(buffers.nodes, n, BOX)
    copy(here.arena, buffers.nodes[n, LOCAL], at, box[2] * box[3])
    left = 1.0
    for i in range(forest.nodes[n, BELOW], forest.nodes[n, BELOW_END]):
        if i != but and buffers.links[i, USED]:
            left = min(left, absorb_from_below(here, i, at))
    return left


@inner
def _turn(arena: FloatArray, at: int, size: int) -> None:
    """Reverse an array in its place."""
    for k in range(size // 2):
        arena[at + k], arena[at + size - 1 - k] = arena[at + size - 1 - k], arena[at + k]


ANY, SEVERAL = -1, -2
"""Which end of a link alone has people: any may; none, as several have some."""


@inner
def _best_of_layer(arena: FloatArray, at: int, box: Box, layer: int, goal: int, low: int, size: int) -> None:
    """Keep the largest of all pairs with the same count in one layer, from `low` on, where `reduce_to` adds them up."""
    fill(arena, goal, size, 0.0)
    for r in range(box[2]):
        for c in range(box[3]):
            k = layer_value(box, r, c, layer) - low
            if 0 <= k < size:
                arena[goal + k] = max(arena[goal + k], arena[at + r * box[3] + c])


@inner
def _best_sums(arena: FloatArray, first: int, before: Box, second: int, box: Box, to: int, after: Box) -> float:
    """Keep the largest product in which two arrays add up to each sum, where `convolve` adds these up."""
    fill(arena, to, after[2] * after[3], 0.0)
    for row in range(before[2]):
        for column in range(before[3]):
            factor = arena[first + row * before[3] + column]
            if factor == 0.0:
                continue
            down, right = before[0] + row + box[0] - after[0], before[1] + column + box[1] - after[1]
            for r in range(max(0, -down), min(box[2], after[2] - down)):
                line, goal = second + r * box[3], to + (down + r) * after[3] + right
                for c in range(max(0, -right), min(box[3], after[3] - right)):
                    arena[goal + c] = max(arena[goal + c], factor * arena[line + c])
    return scale(arena, to, after[2] * after[3])


@inner
def _at_zero(arena: FloatArray, at: int, box: Box) -> float:
    """Return the entry of an array for no people at all."""
    inside = box[0] <= 0 < box[0] + box[2] and box[1] <= 0 < box[1] + box[3]
    return arena[at - box[0] * box[3] - box[1]] if inside else 0.0


@inner
def _people_in_one(here: Here, i: int) -> tuple[int, float, int, int]:
    """Return which part of a link alone may have people, how much it weighs that all others have none, and a fixed count."""
    forest, buffers, arena, _, _, _, low, high = here
    only, weight_of_none, row, column = ANY, 1.0, 0, 0
    start = forest.links[i, END]
    for e in range(start, forest.links[i + 1, END]):
        box = layer_box(forest, buffers, forest.ends[e, CHILD], forest.ends[e, LAYER], low, high)
        if box[2] * box[3] == 1 and (box[0] != 0 or box[1] != 0):
            if only != ANY:
                return SEVERAL, 0.0, 0, 0
            only, row, column = e, box[0], box[1]
    for s in range(start, start + buffers.links[i, FREE]):
        none = _at_zero(arena, buffers.slots[s, ARRAY], box_at(buffers.slots, s, BOX))
        if none > 0.0:
            weight_of_none *= none
        elif only != ANY:
            return SEVERAL, 0.0, 0, 0
        else:
            only = buffers.slots[s, ORDER]
    return only, weight_of_none, row, column


@inner
def _gain(keys: KeyInput, here: Here, i: int, e: int, row: int, column: int) -> float:
    """Return how much likelier, less 1, keys make what was published if all people of a total are in one part."""
    forest, buffers = here.forest, here.buffers
    total, part = forest.links[i, PARENT], forest.ends[e, CHILD]
    layer, part_layer = forest.links[i, PARENT_LAYER], forest.ends[e, LAYER]
    if layer == PAIR and (buffers.nodes[total, MODE] != PAIRED or buffers.nodes[part, MODE] != PAIRED):
        return 0.0
    whole, cells = forest.nodes[total, CELL : CELL + 3], forest.nodes[part, CELL : CELL + 3]
    if layer != PAIR:
        whole, cells = whole[layer : layer + 1], cells[part_layer : part_layer + 1]
    return same_records(keys, here.evidence, here.row, part, whole, cells, row, column) - 1.0


@inner
def _add_people_in_one(keys: KeyInput | None, here: Here, i: int, halved: int) -> None:
    """Correct the message to a total for the cases in which one part has all people, and so the same random number."""
    if keys is None:
        return
    if i >= len(keys.chained) or not keys.chained[i]:
        return
    buffers, arena = here.buffers, here.arena
    only, weight_of_none, row, column = _people_in_one(here, i)
    if only == SEVERAL:
        return
    to, goal, unit = buffers.links[i, MESSAGE], box_at(buffers.links, i, BOX), math.ldexp(1.0, -halved)
    if row > 0 or column > 0:
        at = _place(goal, row, column)
        if at >= 0:
            gain = _gain(keys, here, i, only, row, column)
            arena[to + at] = max(0.0, arena[to + at] + gain * weight_of_none * unit)
        return
    start = here.forest.links[i, END]
    for s in range(start, start + buffers.links[i, FREE]):
        e, box, array = buffers.slots[s, ORDER], box_at(buffers.slots, s, BOX), buffers.slots[s, ARRAY]
        if only not in (ANY, e):
            continue
        others = weight_of_none * unit / (1.0 if only == e else _at_zero(arena, array, box))
        for r in range(box[2]):
            for c in range(box[3]):
                at, weight_here = _place(goal, box[0] + r, box[1] + c), arena[array + r * box[3] + c]
                if at >= 0 and weight_here > 0.0 and (box[0] + r > 0 or box[1] + c > 0):
                    gain = _gain(keys, here, i, e, box[0] + r, box[1] + c)
                    arena[to + at] = max(0.0, arena[to + at] + gain * weight_here * others)


@inner
def _place(box: Box, row: int, column: int) -> int:
    """Return where in an array a pair of counts is; -1 if outside."""
    inside = box[0] <= row < box[0] + box[2] and box[1] <= column < box[1] + box[3]
    return (row - box[0]) * box[3] + column - box[1] if inside else -1


@inner
def _send_up(here: Here, i: int, best: bool) -> bool:
    """Send the message of a link to its parent, from its children's beliefs; return False if nothing is possible."""
    forest, buffers, arena, scratch, evidence, _, _, _ = here
    slots = buffers.slots
    start, free = forest.links[i, END], buffers.links[i, FREE]
    to = buffers.links[i, MESSAGE]
    if free == 0:
        arena[to] = 1.0
        return True
    for s in range(start, start + free):
        e, box = slots[s, ORDER], box_at(slots, s, BOX)
        n, layer, sign = forest.ends[e, CHILD], forest.ends[e, LAYER], forest.ends[e, SIGN]
        if layer != PAIR and buffers.nodes[n, MODE] != SINGLE:
            least = turned(box)[1] if sign < 0 else box[1]
            belief_box, at, goal = box_at(buffers.nodes, n, BOX), buffers.nodes[n, BELIEF], slots[s, ARRAY]
            if best:
                _best_of_layer(arena, at, belief_box, layer, goal, least, box[3])
            else:
                reduce_to(arena, at, belief_box, layer, arena, goal, least, box[3])
        elif sign < 0:
            copy(arena, buffers.nodes[n, BELIEF], slots[s, ARRAY], box[2] * box[3])
        else:
            slots[s, ARRAY] = buffers.nodes[n, BELIEF]
        if sign < 0:
            _turn(arena, slots[s, ARRAY], box[2] * box[3])
    box, part = box_at(slots, start, BOX), box_at(slots, start, PARTIAL_BOX)
    crop(arena, slots[start, ARRAY], box, (part[0] - box[0], part[1] - box[1]), arena, slots[start, PARTIAL], part[3], part)
    slots[start, HALVED] = 0
    for s in range(start + 1, start + free):
        before, box, after = box_at(slots, s - 1, PARTIAL_BOX), box_at(slots, s, BOX), box_at(slots, s, PARTIAL_BOX)
        first, second, sum_of_both = slots[s - 1, PARTIAL], slots[s, ARRAY], slots[s, PARTIAL]
        if best:
            largest = _best_sums(arena, first, before, second, box, sum_of_both, after)
        else:
            largest = convolve(arena, first, before, second, box, sum_of_both, after, scratch)
        if largest == 0.0:
            return False
        slots[s, HALVED] = slots[s - 1, HALVED] + halvings(largest)
    last = start + free - 1
    copy(arena, slots[last, PARTIAL], to, slots[last, PARTIAL_BOX + 2] * slots[last, PARTIAL_BOX + 3])
    if not best:
        _add_people_in_one(evidence.keys, here, i, slots[last, HALVED])
    return True


@inner
def _gains(keys: KeyInput, here: Here, i: int, s: int, known: int, box: Box, to: int, factor: float) -> float:
    """Return what keys add if all people are in one part; with a factor, add it to the message back to that part."""
    slots, arena = here.buffers.slots, here.arena
    part, array, total = box_at(slots, s, BOX), slots[s, ARRAY], 0.0
    for r in range(part[2]):
        for c in range(part[3]):
            at, weight_of = _place(box, part[0] + r, part[1] + c), arena[array + r * part[3] + c]
            if at < 0 or weight_of == 0.0 or arena[known + at] == 0.0 or (part[0] + r == 0 and part[1] + c == 0):
                continue
            gain = arena[known + at] * _gain(keys, here, i, slots[s, ORDER], part[0] + r, part[1] + c)
            total += gain * weight_of
            if factor > 0.0:
                into = to + r * part[3] + c
                arena[into] = max(0.0, arena[into] + gain * factor)
    return total


@inner
def _gained(keys: KeyInput | None, here: Here, i: int, node: int, box: Box) -> tuple[int, float, float]:
    """Return which part alone may have people, the weight of the others being empty, and what keys add over such parts."""
    if keys is None:
        return SEVERAL, 0.0, 0.0
    if i >= len(keys.chained) or not keys.chained[i]:
        return SEVERAL, 0.0, 0.0
    slots, arena, gains = here.buffers.slots, here.arena, 0.0
    only, none, row, column = _people_in_one(here, i)
    if row > 0 or column > 0:
        at = _place(box, row, column)
        gains = arena[node + at] * _gain(keys, here, i, only, row, column) if at >= 0 else 0.0
    start = here.forest.links[i, END]
    for s in range(start, start + here.buffers.links[i, FREE]):
        if only in (ANY, slots[s, ORDER]):
            gained = _gains(keys, here, i, s, node, box, ZERO, 0.0)
            gains += gained if only != ANY else gained / _at_zero(arena, slots[s, ARRAY], box_at(slots, s, BOX))
    return only, none, gains


@inner
def _correct_down(
    keys: KeyInput | None, here: Here, i: int, s: int, known: int, box: Box, people: tuple[int, float, float], halved: int
) -> None:
    """Correct the message back to one part, as `_add_people_in_one` does upwards; `people` is what `_gained` returned."""
    if keys is None:
        return
    if people[0] == SEVERAL:
        return
    slots, arena = here.buffers.slots, here.arena
    part, to, (only, none, left) = box_at(slots, s, BOX), slots[s, DOWN], people
    empty, unit = _at_zero(arena, slots[s, ARRAY], part), math.ldexp(1.0, -halved)
    if only == slots[s, ORDER]:
        _gains(keys, here, i, s, known, box, to, none * unit)
        return
    if only == ANY:
        left -= _gains(keys, here, i, s, known, box, to, none / empty * unit) / empty
    at = to - part[0] * part[3] - part[1]
    arena[at] = max(0.0, arena[at] + left * none / empty * unit)


@inner
def _send_down(here: Here, i: int) -> None:
    """Send messages from a link to its children, from its parent's belief without the link's own message.

    It uses the partial sums that `_send_up` left.
    """
    forest, buffers, arena, scratch, evidence, _, low, high = here
    slots = buffers.slots
    n, layer = forest.links[i, PARENT], forest.links[i, PARENT_LAYER]
    start, free = forest.links[i, END], buffers.links[i, FREE]
    if free == 0:
        return
    known, spare, node = buffers.spare[0, 0], buffers.spare[0, 1], buffers.spare[0, 2]
    collect_belief(here, n, node, i)
    absorb_from_above(here, n, node)
    box, message = layer_box(forest, buffers, n, layer, low, high), box_at(buffers.links, i, BOX)
    if layer != PAIR and buffers.nodes[n, MODE] != SINGLE:
        reduce_to(arena, node, box_at(buffers.nodes, n, BOX), layer, arena, buffers.spare[0, 3], box[1], box[3])
        node = buffers.spare[0, 3]
    crop(arena, node, box, (message[0] - box[0], message[1] - box[1]), arena, known, message[3], message)
    whole, people = box, _gained(evidence.keys, here, i, node, box)
    halved = 0
    for s in range(start + free - 1, start - 1, -1):
        box, after = box_at(slots, s, BOX), box_at(slots, s, PARTIAL_BOX)
        to, less = slots[s, DOWN], halved
        if s > start:
            before = box_at(slots, s - 1, PARTIAL_BOX)
            halved += halvings(scale(arena, known, after[2] * after[3]))
            sum_before, part = (slots[s - 1, PARTIAL], before, spare), (slots[s, ARRAY], box, to)
            by, less = correlate(arena, known, after, sum_before, part, scratch)
            less, halved = less + halved + slots[s - 1, HALVED], halved + by
            known, spare = spare, known
        else:
            fill(arena, to, box[2] * box[3], 0.0)
            crop(arena, known, after, (box[0] - after[0], box[1] - after[1]), arena, to, box[3], box)
        _correct_down(evidence.keys, here, i, s, node, whole, people, less)
        if forest.ends[slots[s, ORDER], SIGN] < 0:
            _turn(arena, to, box[2] * box[3])


@inner
def prune_to(forest: Forest, buffers: Buffers, wanted: BoolArray) -> None:
    """Leave out what does not reach a wanted cell, after `arrange`; `wanted` is by cell.

    Nothing is worked out in pieces without such a cell. Elsewhere all messages to the root are needed, but only those back
    to such cells: most of the work is on the way back.
    """
    nodes, links = buffers.nodes, buffers.links
    for n in range(len(nodes)):
        nodes[n, HEARD] = 0
    for c in range(len(forest.homes)):
        if wanted[c]:
            nodes[forest.homes[c, HOME], HEARD] = 1
    for i in range(len(forest.links) - 2, -1, -1):
        heard = 0
        for e in range(forest.links[i, END], forest.links[i + 1, END]):
            heard |= nodes[forest.ends[e, CHILD], HEARD]
        links[i, SILENT] = heard == 0
        nodes[forest.links[i, PARENT], HEARD] |= heard
    for i in range(len(forest.links) - 1):
        # By now every root knows whether anything is wanted in its piece; where nothing is, no message is sent.
        wanted_here = nodes[forest.links[i, PARENT], HEARD]
        links[i, USED] &= wanted_here
        for e in range(forest.links[i, END], forest.links[i + 1, END]):
            n = forest.ends[e, CHILD]
            nodes[n, HEARD] = wanted_here
            if links[i, SILENT] or not wanted_here:
                nodes[n, ABOVE] = -1
    for n in range(len(nodes)):
        if not nodes[n, HEARD]:
            nodes[n, MODE] = ABSENT


@inner
def upward_pass(here: Here, best: bool) -> bool:
    """Send messages from the leaves to the roots; return False where no values add up.

    They weigh all states together, or hold the weight of the best one alone.
    """
    forest, buffers = here.forest, here.buffers
    for i in range(len(forest.links) - 2, -1, -1):
        n = forest.links[i, PARENT]
        if buffers.links[i, USED] and not _send_up(here, i, best):
            return False
        # All links below a node are contiguous, and this is the last of them to be visited.
        complete = i == forest.nodes[n, BELOW] and buffers.nodes[n, MODE] != ABSENT
        if complete and collect_belief(here, n, buffers.nodes[n, BELIEF], MINUS_ONE) == 0.0:
            return False
    return True


@inner
def downward_pass(here: Here) -> bool:
    """Send messages back, after the upward pass: every belief is then exact. False where no values add up."""
    forest, buffers = here.forest, here.buffers
    for i in range(len(forest.links) - 1):
        if buffers.links[i, USED] and not buffers.links[i, SILENT]:
            _send_down(here, i)
    for n in range(len(forest.nodes)):
        there = buffers.nodes[n, MODE] != ABSENT
        if there and absorb_from_above(here, n, buffers.nodes[n, BELIEF]) == 0.0:
            return False
    return True
