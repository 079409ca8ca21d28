"""Messages through the forest of one area, compiled. See `tree` for the same in plain numpy, one system at a time.

Everything lies in one long vector, the arena, at the places that `buffers` sets aside.
"""

from __future__ import annotations

import numpy as np

from unround.batch.buffers import (
    ABOVE,
    ABSENT,
    ARRAY,
    BELIEF,
    BOX,
    DOWN,
    FREE,
    LOCAL,
    LOOSE,
    MESSAGE,
    MODE,
    NODE_DISTANCE,
    ORDER,
    PAIRED,
    PARTIAL,
    PARTIAL_BOX,
    SILENT,
    SINGLE,
    USED,
    Buffers,
    box_at,
    layer_box,
    turned,
)
from unround.batch.compiled_sums import (
    BELOW,
    BELOW_END,
    CELL,
    CHILD,
    COPY,
    END,
    HOME,
    LAYER,
    PARENT,
    PARENT_LAYER,
    SIGN,
    Forest,
)
from unround.batch.convolution import Box, convolve, copy, correlate, crop, fill, scale
from unround.batch.evidence import Evidence, weight
from unround.batch.keys import weigh_keys
from unround.batch.types import Ints
from unround.infer.plan import FIRST, PAIR, SECOND, TOTAL
from unround.jit import MINUS_ONE, ZERO, inner
from unround.mechanisms.base import BoolArray, FloatArray


@inner
def set_local_evidence(
    forest: Forest, buffers: Buffers, arena: FloatArray, evidence: Evidence, area: int, low: Ints, high: Ints
) -> bool:
    """Weigh every state of every node by its own cells; return False where one has no state left."""
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
        if mode == PAIRED and not np.isnan(evidence.keys.constant[n]) and not forest.nodes[n, COPY]:
            cells = forest.nodes[n, CELL : CELL + 3]
            weigh_keys(evidence.keys, evidence.low, evidence.start, evidence.weights, area, n, cells, arena, at, box)
        if scale(arena, at, rows * columns) == 0.0:
            return False
    return True


@inner
def reduce_to(arena: FloatArray, at: int, own: Box, layer: int, to: FloatArray, goal: int, low: int, size: int) -> None:
    """Sum an array over pairs to one over the counts of one layer, from `low` on."""
    fill(to, goal, size, 0.0)
    for r in range(own[2]):
        start = at + r * own[3]
        if layer == FIRST:
            k = own[0] + r - low
            if 0 <= k < size:
                for c in range(own[3]):
                    to[goal + k] += arena[start + c]
        else:
            shift = own[1] - low + (own[0] + r if layer == TOTAL else 0)
            for c in range(max(0, -shift), min(own[3], size - shift)):
                to[goal + shift + c] += arena[start + c]


@inner
def _multiply(arena: FloatArray, at: int, own: Box, layer: int, message: int, box: Box) -> float:
    """Multiply a belief by a message about one of its layers; return 0 if nothing is left."""
    for r in range(own[2]):
        start = at + r * own[3]
        if layer == FIRST:
            k = own[0] + r - box[1]
            factor = arena[message + k] if 0 <= k < box[3] else 0.0
            for c in range(own[3]):
                arena[start + c] *= factor
            continue
        line, shift, width = message, own[1] - box[1], box[3]
        if layer == TOTAL:
            shift += own[0] + r
        elif layer == PAIR:
            line += (own[0] + r - box[0]) * width
            width *= 0 <= own[0] + r - box[0] < box[2]
        for c in range(own[3]):
            arena[start + c] *= arena[line + shift + c] if 0 <= shift + c < width else 0.0
    return scale(arena, at, own[2] * own[3])


@inner
def absorb_from_above(forest: Forest, buffers: Buffers, arena: FloatArray, n: int, at: int, sent: int) -> float:
    """Multiply a node's belief by the message from the link above it; return 0 if nothing is left.

    `sent` is the round in which the message was sent, counted from 0; at -1 there is none yet.
    """
    s = buffers.nodes[n, ABOVE]
    if s < 0 or sent < 0:
        return 1.0
    e, box = buffers.slots[s, ORDER], box_at(buffers.slots, s, BOX)
    layer = SECOND if buffers.nodes[n, MODE] == SINGLE else forest.ends[e, LAYER]
    message = buffers.slots[s, DOWN] + sent * box[2] * box[3]
    return _multiply(
        arena, at, box_at(buffers.nodes, n, BOX), layer, message, turned(box) if forest.ends[e, SIGN] < 0 else box
    )


@inner
def absorb_from_below(forest: Forest, buffers: Buffers, arena: FloatArray, i: int, at: int, sent: int) -> float:
    """Multiply the belief of a link's parent by the link's message; return 0 if nothing is left."""
    n, box = forest.links[i, PARENT], box_at(buffers.links, i, BOX)
    layer = SECOND if buffers.nodes[n, MODE] == SINGLE else forest.links[i, PARENT_LAYER]
    message = buffers.links[i, MESSAGE] + sent * box[2] * box[3]
    return _multiply(arena, at, box_at(buffers.nodes, n, BOX), layer, message, box)


@inner
def collect_belief(forest: Forest, buffers: Buffers, arena: FloatArray, n: int, at: int, sent: int, but: int) -> float:
    """Multiply a node's local evidence by the messages from all links below it but one; return 0 if nothing is left."""
    own = box_at(buffers.nodes, n, BOX)
    copy(arena, buffers.nodes[n, LOCAL], at, own[2] * own[3])
    left = 1.0
    for i in range(forest.nodes[n, BELOW], forest.nodes[n, BELOW_END]):
        if i != but and buffers.links[i, USED] and sent >= 0:
            left = min(left, absorb_from_below(forest, buffers, arena, i, at, sent))
    return left


@inner
def _turn(arena: FloatArray, at: int, size: int) -> None:
    """Reverse an array in its place."""
    for k in range(size // 2):
        arena[at + k], arena[at + size - 1 - k] = arena[at + size - 1 - k], arena[at + k]


@inner
def send_up(forest: Forest, buffers: Buffers, arena: FloatArray, scratch: FloatArray, i: int, sent: int) -> bool:
    """Send the message of a link to its parent, from its children's beliefs; return False if nothing is possible."""
    slots = buffers.slots
    start, free = forest.links[i, END], buffers.links[i, FREE]
    to = buffers.links[i, MESSAGE] + sent * buffers.links[i, BOX + 2] * buffers.links[i, BOX + 3]
    if free == 0:
        arena[to] = 1.0
        return True
    for s in range(start, start + free):
        e, box = slots[s, ORDER], box_at(slots, s, BOX)
        n, layer, sign = forest.ends[e, CHILD], forest.ends[e, LAYER], forest.ends[e, SIGN]
        if layer != PAIR and buffers.nodes[n, MODE] != SINGLE:
            low = turned(box)[1] if sign < 0 else box[1]
            reduce_to(
                arena, buffers.nodes[n, BELIEF], box_at(buffers.nodes, n, BOX), layer, arena, slots[s, ARRAY], low, box[3]
            )
        elif sign < 0:
            copy(arena, buffers.nodes[n, BELIEF], slots[s, ARRAY], box[2] * box[3])
        else:
            slots[s, ARRAY] = buffers.nodes[n, BELIEF]
        if sign < 0:
            _turn(arena, slots[s, ARRAY], box[2] * box[3])
    box, part = box_at(slots, start, BOX), box_at(slots, start, PARTIAL_BOX)
    crop(arena, slots[start, ARRAY], box, part[0] - box[0], part[1] - box[1], arena, slots[start, PARTIAL], part[3], part)
    for s in range(start + 1, start + free):
        before, box, after = box_at(slots, s - 1, PARTIAL_BOX), box_at(slots, s, BOX), box_at(slots, s, PARTIAL_BOX)
        one, two, sum_of_both = slots[s - 1, PARTIAL], slots[s, ARRAY], slots[s, PARTIAL]
        if convolve(arena, one, before, two, box, sum_of_both, after, scratch) == 0.0:
            return False
    last = start + free - 1
    copy(arena, slots[last, PARTIAL], to, slots[last, PARTIAL_BOX + 2] * slots[last, PARTIAL_BOX + 3])
    return True


@inner
def send_down(
    forest: Forest,
    buffers: Buffers,
    arena: FloatArray,
    scratch: FloatArray,
    i: int,
    low: Ints,
    high: Ints,
    received: int,
    sent: int,
) -> None:
    """Send messages from a link to its children, from its parent's belief without the link's own message.

    It uses the partial sums that `send_up` left.
    """
    slots = buffers.slots
    n, layer = forest.links[i, PARENT], forest.links[i, PARENT_LAYER]
    start, free = forest.links[i, END], buffers.links[i, FREE]
    if free == 0:
        return
    known, spare, node = buffers.spare[0, 0], buffers.spare[0, 1], buffers.spare[0, 2]
    collect_belief(forest, buffers, arena, n, node, received, i)
    absorb_from_above(forest, buffers, arena, n, node, received)
    box, message = layer_box(forest, buffers, n, layer, low, high), box_at(buffers.links, i, BOX)
    if layer != PAIR and buffers.nodes[n, MODE] != SINGLE:
        reduce_to(arena, node, box_at(buffers.nodes, n, BOX), layer, arena, buffers.spare[0, 3], box[1], box[3])
        node = buffers.spare[0, 3]
    crop(arena, node, box, message[0] - box[0], message[1] - box[1], arena, known, message[3], message)
    for s in range(start + free - 1, start - 1, -1):
        box, after = box_at(slots, s, BOX), box_at(slots, s, PARTIAL_BOX)
        to = slots[s, DOWN] + sent * box[2] * box[3]
        if s > start:
            before = box_at(slots, s - 1, PARTIAL_BOX)
            scale(arena, known, after[2] * after[3])
            correlate(arena, known, after, slots[s - 1, PARTIAL], before, spare, slots[s, ARRAY], box, to, scratch)
            known, spare = spare, known
        else:
            fill(arena, to, box[2] * box[3], 0.0)
            crop(arena, known, after, box[0] - after[0], box[1] - after[1], arena, to, box[3], box)
        if forest.ends[slots[s, ORDER], SIGN] < 0:
            _turn(arena, to, box[2] * box[3])


@inner
def prune_to(forest: Forest, buffers: Buffers, wanted: BoolArray) -> None:
    """Skip messages that do not reach a wanted cell, after `arrange`; `wanted` is by cell.

    All messages to the root are needed, but only those back to such cells: most of the work is on the way back.
    """
    nodes, links = buffers.nodes, buffers.links
    for n in range(len(nodes)):
        nodes[n, NODE_DISTANCE] = 0
    for c in range(len(forest.homes)):
        if wanted[c]:
            nodes[forest.homes[c, HOME], NODE_DISTANCE] = 1
    for i in range(len(forest.links) - 2, -1, -1):
        heard = 0
        for e in range(forest.links[i, END], forest.links[i + 1, END]):
            heard |= nodes[forest.ends[e, CHILD], NODE_DISTANCE]
        links[i, SILENT] = heard == 0
        nodes[forest.links[i, PARENT], NODE_DISTANCE] |= heard
    for i in range(len(forest.links) - 1):
        # By now every root knows whether anything is wanted in its piece; where nothing is, no message is sent.
        wanted_here = nodes[forest.links[i, PARENT], NODE_DISTANCE]
        links[i, USED] &= wanted_here
        for e in range(forest.links[i, END], forest.links[i + 1, END]):
            n = forest.ends[e, CHILD]
            nodes[n, NODE_DISTANCE] = wanted_here
            if links[i, SILENT] or not wanted_here:
                nodes[n, ABOVE] = -1


@inner
def upward_pass(forest: Forest, buffers: Buffers, arena: FloatArray, scratch: FloatArray) -> bool:
    """Send messages from the leaves to the roots; return False where no values add up."""
    for i in range(len(forest.links) - 2, -1, -1):
        n = forest.links[i, PARENT]
        if buffers.links[i, USED] and not send_up(forest, buffers, arena, scratch, i, ZERO):
            return False
        # All links below a node are contiguous, and this is the last of them to be visited.
        complete = i == forest.nodes[n, BELOW] and buffers.nodes[n, MODE] != ABSENT
        if complete and collect_belief(forest, buffers, arena, n, buffers.nodes[n, BELIEF], ZERO, MINUS_ONE) == 0.0:
            return False
    return True


@inner
def downward_pass(forest: Forest, buffers: Buffers, arena: FloatArray, scratch: FloatArray, low: Ints, high: Ints) -> bool:
    """Send messages back, after the upward pass: every belief is then exact. False where no values add up."""
    for i in range(len(forest.links) - 1):
        if buffers.links[i, USED] and not buffers.links[i, SILENT]:
            send_down(forest, buffers, arena, scratch, i, low, high, ZERO, ZERO)
    for n in range(len(forest.nodes)):
        if (
            buffers.nodes[n, MODE] != ABSENT
            and absorb_from_above(forest, buffers, arena, n, buffers.nodes[n, BELIEF], ZERO) == 0.0
        ):
            return False
    return True
