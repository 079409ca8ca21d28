"""The depth of likely claims: belief propagation on a flooding schedule, compiled.

After k rounds a node's belief includes everything within k links, and nothing else. A message is only computed if it can
still reach a cell in question.
"""

from __future__ import annotations

from unround.batch.buffers import (
    BELIEF,
    DISTANCE,
    DONE,
    MODE,
    NODE_DISTANCE,
    SINGLE,
    USED,
    Buffers,
)
from unround.batch.compiled_sums import BELOW, BELOW_END, CHILD, END, HOME, PARENT, Forest
from unround.batch.evidence import Evidence
from unround.batch.sum_product import absorb_from_above, collect_belief, send_down, send_up
from unround.batch.summary import is_linked, marginal, own_share
from unround.batch.types import Ints
from unround.jit import MINUS_ONE, inner
from unround.mechanisms.base import FloatArray

DEEPEST = 6
"""Stands for this depth or any greater one."""

OPEN_YET = -2
"""Stands for a depth that is wanted and not yet known."""

_FAR = 1 << 30
"""A distance greater than any."""


@inner
def _measure(forest: Forest, buffers: Buffers, depth: Ints) -> None:
    """Compute how far nodes and links are from the cells in question."""
    nodes, links = buffers.nodes, buffers.links
    for n in range(len(nodes)):
        nodes[n, NODE_DISTANCE] = _FAR
    for column in range(len(depth)):
        if depth[column] == OPEN_YET:
            nodes[forest.homes[column, HOME], NODE_DISTANCE] = 0
    for i in range(len(forest.links) - 1):
        links[i, DISTANCE] = _FAR
    for distance in range(1, DEEPEST):
        for i in range(len(forest.links) - 1):
            if not links[i, USED] or links[i, DISTANCE] < distance:
                continue
            nearest = nodes[forest.links[i, PARENT], NODE_DISTANCE]
            for e in range(forest.links[i, END], forest.links[i + 1, END]):
                nearest = min(nearest, nodes[forest.ends[e, CHILD], NODE_DISTANCE])
            if nearest == distance - 1:
                links[i, DISTANCE] = distance
                _approach(forest, buffers, i, distance)


@inner
def _approach(forest: Forest, buffers: Buffers, i: int, distance: int) -> None:
    """Bring the nodes of a link to at most this distance."""
    n = forest.links[i, PARENT]
    buffers.nodes[n, NODE_DISTANCE] = min(buffers.nodes[n, NODE_DISTANCE], distance)
    for e in range(forest.links[i, END], forest.links[i + 1, END]):
        n = forest.ends[e, CHILD]
        buffers.nodes[n, NODE_DISTANCE] = min(buffers.nodes[n, NODE_DISTANCE], distance)


@inner
def _send(
    forest: Forest, buffers: Buffers, arena: FloatArray, scratch: FloatArray, low: Ints, high: Ints, radius: int
) -> None:
    """Send all messages that reach the cells in question from within this radius."""
    for sent in range(radius):
        for i in range(len(forest.links) - 1):
            if not buffers.links[i, USED] or buffers.links[i, DONE] > sent or buffers.links[i, DISTANCE] > radius - sent:
                continue
            for e in range(forest.links[i, END], forest.links[i + 1, END]):
                n = forest.ends[e, CHILD]
                if forest.nodes[n, BELOW] < forest.nodes[n, BELOW_END]:
                    collect_belief(forest, buffers, arena, n, buffers.nodes[n, BELIEF], sent - 1, MINUS_ONE)
            send_up(forest, buffers, arena, scratch, i, sent)
            send_down(forest, buffers, arena, scratch, i, low, high, sent - 1, sent)
            buffers.links[i, DONE] = sent + 1


@inner
def find_depths(
    forest: Forest,
    buffers: Buffers,
    arena: FloatArray,
    scratch: FloatArray,
    evidence: Evidence,
    area: int,
    low: Ints,
    high: Ints,
    value: Ints,
    threshold: float,
    depth: Ints,
) -> None:
    """Fill in the depths of one area, where they are `OPEN_YET`."""
    columns = len(depth)
    for column in range(columns):
        if (
            depth[column] == OPEN_YET
            and own_share(evidence, area, column, low[column], high[column], value[column]) >= threshold
        ):
            depth[column] = 0
    for i in range(len(forest.links) - 1):
        buffers.links[i, DONE] = 0
    for radius in range(DEEPEST):
        waiting = False
        for column in range(columns):
            if depth[column] == OPEN_YET:
                pair = is_linked(forest, buffers, column) and buffers.nodes[forest.homes[column, HOME], MODE] != SINGLE
                waiting |= radius + pair < DEEPEST
        if not waiting:
            break
        if radius:
            _measure(forest, buffers, depth)
            _send(forest, buffers, arena, scratch, low, high, radius)
        for column in range(columns):
            if depth[column] != OPEN_YET or not is_linked(forest, buffers, column):
                continue
            n, at = forest.homes[column, HOME], buffers.spare[0, 2]
            collect_belief(forest, buffers, arena, n, at, radius - 1, MINUS_ONE)
            absorb_from_above(forest, buffers, arena, n, at, radius - 1)
            start, size = marginal(forest, buffers, arena, at, column, low, high, scratch[0])
            if start <= value[column] < start + size:
                everything = 0.0
                for k in range(size):
                    everything += scratch[0, k]
                if scratch[0, value[column] - start] >= threshold * everything:
                    depth[column] = min(radius + (buffers.nodes[n, MODE] != SINGLE), DEEPEST)
    for column in range(columns):
        if depth[column] == OPEN_YET:
            depth[column] = DEEPEST
