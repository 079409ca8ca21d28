"""From the belief of a node to the marginals of its cells and their summaries, compiled.

Draws of a whole area from its exact joint posterior, compiled: forward filtering, backward sampling on a forest.

After the upward pass, values are drawn from the roots to the leaves; after one for the best state alone, chosen.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unround.engines.messages import (
    ABOVE,
    ABSENT,
    ARRAY,
    BELIEF,
    BOX,
    FREE,
    LOOSE,
    MODE,
    ORDER,
    PARTIAL,
    PARTIAL_BOX,
    SINGLE,
    USED,
    Buffers,
    Here,
    box_at,
    layer_box,
    layer_value,
    reduce_to,
)
from unround.evidence.block import NO_UPPER_BOUND, NONE, Ints
from unround.evidence.cells import weight
from unround.jit import ZERO, RandomState, inner, mixed, uniform
from unround.mechanisms.base import ALIKE, FloatArray
from unround.sums.compiled import (
    CHILD,
    END,
    HOME,
    HOME_LAYER,
    LAYER,
    PARENT,
    PARENT_LAYER,
    SIGN,
    Forest,
    Table,
)
from unround.sums.forest import FIRST, PAIR, SECOND, TOTAL

Summary = tuple[int, float, float, float]
"""The mode, its probability, the mean and the standard deviation."""


@inner
def is_linked(forest: Forest, buffers: Buffers, column: int) -> bool:
    """Return whether a cell is part of its node's state in this area."""
    mode, is_total = buffers.nodes[forest.homes[column, HOME], MODE], forest.homes[column, HOME_LAYER] == TOTAL
    return mode != ABSENT and (is_total or mode != SINGLE) and not (is_total and mode == LOOSE)


@inner
def belief_of(here: Here, column: int, to: FloatArray) -> tuple[int, int]:
    """Put what is known of a cell into a vector, not normalised; return its first count and how many there are.

    After both passes that is its marginal, or its local evidence where no link reaches it.
    """
    forest, buffers = here.forest, here.buffers
    first, last = int(here.low[column]), int(here.high[column])
    if first == last:
        to[0] = 1.0
    elif is_linked(forest, buffers, column):
        n, layer = forest.homes[column, HOME], forest.homes[column, HOME_LAYER]
        box = layer_box(forest, buffers, n, layer, here.low, here.high)
        if buffers.nodes[n, MODE] == SINGLE:
            layer = SECOND
        reduce_to(here.arena, buffers.nodes[n, BELIEF], box_at(buffers.nodes, n, BOX), layer, to, ZERO, box[1], box[3])
        return box[1], box[3]
    else:
        for count in range(first, last + 1):
            to[count - first] = weight(here.evidence, here.row, column, count)
    return first, last - first + 1


@inner
def summary(weights: FloatArray, low: int, size: int) -> Summary:
    """Summarise a distribution that is not normalised."""
    everything = largest = first = 0.0
    for k in range(size):
        everything += weights[k]
        first += k * weights[k]
        largest = max(largest, weights[k])
    if everything == 0.0:
        return NONE, 0.0, math.nan, math.nan
    likeliest = 0
    while weights[likeliest] < largest * (1 - ALIKE):
        likeliest += 1
    mean = first / everything
    second = 0.0
    for k in range(size):
        second += (k - mean) ** 2 * weights[k]
    return low + likeliest, weights[likeliest] / everything, low + mean, math.sqrt(second / everything)


@inner
def own_summary(here: Here, column: int) -> Summary:
    """Summarise a cell's local evidence."""
    evidence, area, low, high = here.evidence, here.row, int(here.low[column]), int(here.high[column])
    if high >= NO_UPPER_BOUND:
        return NONE, 0.0, math.nan, math.nan
    # Where nothing was published, and the prior is flat, all counts weigh the same.
    end = low if evidence.start[area, column] < 0 and evidence.prior_start[area, column] < 0 else high
    rest, each = high - end, 0.0
    if rest > 0:
        each = weight(evidence, area, column, high)
    everything, first, largest, likeliest = 0.0, 0.0, 0.0, NONE
    for count in range(low, end + 1):
        likely = weight(evidence, area, column, count)
        everything += likely
        first += likely * (count - low)
        if likely > largest * (1 + ALIKE):
            largest, likeliest = likely, count
    if each > largest * (1 + ALIKE):
        largest, likeliest = each, end + 1
    middle = 0.5 * (end + 1 + high) - low
    everything += rest * each
    first += rest * each * middle
    if everything == 0.0:
        return NONE, 0.0, math.nan, math.nan
    mean = first / everything
    second = rest * each * ((middle - mean) ** 2 + (float(rest) ** 2 - 1) / 12)
    for count in range(low, end + 1):
        second += (count - low - mean) ** 2 * weight(evidence, area, column, count)
    return likeliest, largest / everything, low + mean, math.sqrt(second / everything)


@inner
def share_of(weights: FloatArray, low: int, size: int, value: int) -> float:
    """Return the probability of one count, from a distribution that is not normalised."""
    everything = 0.0
    for k in range(size):
        everything += weights[k]
    inside = low <= value < low + size
    return weights[value - low] / everything if inside and everything > 0.0 else 0.0


@inner
def own_share(here: Here, column: int, value: int) -> float:
    """Return the probability of one count by local evidence alone; 0 where nothing bounds the cell."""
    evidence, area, low, high = here.evidence, here.row, int(here.low[column]), int(here.high[column])
    if not low <= value <= high or high >= NO_UPPER_BOUND:
        return 0.0
    end = low if evidence.start[area, column] < 0 and evidence.prior_start[area, column] < 0 else high
    everything = 0.0
    for count in range(low, end + 1):
        everything += weight(evidence, area, column, count)
    if high > end:
        everything += (high - end) * weight(evidence, area, column, high)
    return weight(evidence, area, column, value) / everything if everything > 0.0 else 0.0


@inner
def put_probabilities(weights: FloatArray, first: int, size: int, chances: FloatArray, at: int, low: int) -> None:
    """Write a distribution that is not normalised, of counts from `first` on, to a place for counts from `low` on.

    Where no count has any weight there is no distribution: all probabilities are zero.
    """
    everything = 0.0
    for k in range(size):
        everything += weights[k]
    for k in range(size):
        chances[at + first - low + k] = weights[k] / everything if everything > 0.0 else 0.0


@inner
def seed_for(seed: np.uint64, area: int, random_state: RandomState) -> None:
    """Begin an area's own stream of random numbers: mixed twice, so that no two streams run one behind the other."""
    random_state[0] = mixed(seed ^ mixed(np.uint64(area + 1)))


class Draw(NamedTuple):
    """Random numbers, and the states of all nodes that are being drawn; or, with `best`, chosen as those that weigh most."""

    random: RandomState
    state: Table
    best: bool


def draw_for(forest: Forest, best: bool) -> Draw:
    """Make what one thread needs to draw areas."""
    return Draw(np.zeros(1, dtype=np.uint64), np.zeros((len(forest.nodes), 2), dtype=np.int64), best)


@inner
def _set_from_layer(here: Here, draw: Draw, n: int, layer: int, value: int) -> None:
    """Draw the state of a node, conditional on one layer; from all its states if the layer is that of a pair."""
    buffers, arena, (random_state, state, best) = here.buffers, here.arena, draw
    box, at = box_at(buffers.nodes, n, BOX), buffers.nodes[n, BELIEF]
    everything, left, drawn = 0.0, 0.0, False
    for turn in range(2):
        if turn == 1:
            left = uniform(random_state) * everything
        for r in range(box[2]):
            for c in range(box[3]):
                if drawn or (layer != PAIR and layer_value(box, r, c, layer) != value):
                    continue
                weight_here = arena[at + r * box[3] + c]
                if turn == 0:
                    everything = max(everything, weight_here) if best else everything + weight_here
                elif weight_here > 0.0:
                    left -= weight_here
                    drawn = weight_here == everything if best else left < 0.0
                    state[n, 0], state[n, 1] = box[0] + r, box[1] + c


@inner
def _divide(here: Here, draw: Draw, i: int) -> None:
    """Draw the states of a link's children, conditional on that of its parent."""
    forest, buffers, arena, (random_state, state, best) = here.forest, here.buffers, here.arena, draw
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
            before, partial = box_at(slots, s - 1, PARTIAL_BOX), slots[s - 1, PARTIAL]
            everything, left, drawn = 0.0, 0.0, False
            for turn in range(2):
                if turn == 1:
                    left = uniform(random_state) * everything
                for r in range(max(0, row - before[0] - before[2] + 1 - box[0]), min(box[2], row - before[0] - box[0] + 1)):
                    line = partial + (row - box[0] - r - before[0]) * before[3] + column - box[1] - before[1]
                    first = max(0, column - before[1] - before[3] + 1 - box[1])
                    for c in range(first, min(box[3], column - before[1] - box[1] + 1)):
                        weight_here = arena[at + r * box[3] + c] * arena[line - c]
                        if turn == 0:
                            everything = max(everything, weight_here) if best else everything + weight_here
                        elif weight_here > 0.0 and not drawn:
                            left -= weight_here
                            drawn = weight_here == everything if best else left < 0.0
                            down, right = box[0] + r, box[1] + c
            row -= down
            column -= right
        e = slots[s, ORDER]
        n, layer, sign = forest.ends[e, CHILD], forest.ends[e, LAYER], forest.ends[e, SIGN]
        if layer == PAIR or buffers.nodes[n, MODE] == SINGLE:
            state[n, 0], state[n, 1] = sign * down, sign * right
        else:
            _set_from_layer(here, draw, n, layer, sign * right)


@inner
def sample(here: Here, draw: Draw, into: Ints) -> None:
    """Draw one value for every cell of an area, all together, after the upward pass and before the downward pass.

    Or choose the values that weigh most together, after an upward pass for these.
    """
    forest, buffers, state, low = here.forest, here.buffers, draw.state, here.low
    for n in range(len(forest.nodes)):
        if buffers.nodes[n, MODE] != ABSENT and buffers.nodes[n, ABOVE] < 0:
            _set_from_layer(here, draw, n, PAIR, ZERO)
    for i in range(len(forest.links) - 1):
        if buffers.links[i, USED] and buffers.links[i, FREE] > 0:
            _divide(here, draw, i)
    for c in range(len(forest.homes)):
        n, layer = forest.homes[c, HOME], forest.homes[c, HOME_LAYER]
        if low[c] == here.high[c]:
            into[c] = low[c]
        elif not is_linked(forest, buffers, c):
            into[c] = _own_value(here, draw, c, into[c])
        elif buffers.nodes[n, MODE] == SINGLE:
            into[c] = state[n, 1]
        else:
            into[c] = state[n, 0] + state[n, 1] if layer == TOTAL else state[n, 0] if layer == FIRST else state[n, 1]


@inner
def _own_value(here: Here, draw: Draw, column: int, otherwise: int) -> int:
    """Draw the value of a cell that no link reaches; cells with very many values are left unchanged."""
    low, high, best = int(here.low[column]), int(here.high[column]), draw.best
    if high - low > 1000:
        return otherwise
    everything = 0.0
    for count in range(low, high + 1):
        weight_here = weight(here.evidence, here.row, column, count)
        everything = max(everything, weight_here) if best else everything + weight_here
    left, value = uniform(draw.random) * everything, low
    for count in range(low, high + 1):
        weight_here = weight(here.evidence, here.row, column, count)
        if weight_here > 0.0:
            left -= weight_here
            value = count
            if weight_here == everything if best else left < 0.0:
                break
    return value
