"""The best solutions, in order, without listing the others.

The pass up with maxima tells, for every choice that is still open, the weight of the best way to complete it. A search that
always follows the most promising choice therefore walks straight to the best solution, and from there to the next.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unround.infer.plan import PAIR, End
from unround.mechanisms.base import FloatArray

if TYPE_CHECKING:
    from unround.infer.tree import Pass, Tree


class Goal(NamedTuple):
    """Something still to be decided.

    With a link: the values of its children up to number `j`, which add up to `at`. Without: the state of node `j`, given
    that its layer `layer` has the value `at` (None: no condition).
    """

    link: int
    j: int
    layer: int
    at: Any


class Choice(NamedTuple):
    """One entry of the search: the options of the goal in hand, best first, and which of them is meant here."""

    cost: float
    tie: int
    which: int
    options: list[tuple[float, Any]]
    goal: Goal
    rest: Any
    chosen: Any


def best_solutions(tree: Tree, up: Pass, evidence: tuple[float, int], top: int) -> tuple[Any, ...]:
    """Return the `top` best solutions as (values, probability), the best first."""
    found = []
    for values in _in_order(tree, up):
        found.append((values, *_probability(tree, values, evidence)))
        if len(found) == top:
            break
    return tuple((values, math.ldexp(mantissa, exponent)) for values, mantissa, exponent in _tidy(found))


def _tidy(found: list[tuple[tuple[int, ...], float, int]]) -> Iterator[tuple[tuple[int, ...], float, int]]:
    """Put solutions of equal probability into the order of their values; they may differ in the last digit."""
    run: list[tuple[tuple[int, ...], float, int]] = []
    for one in found:
        if run and abs(math.log2(one[1] / run[0][1]) + one[2] - run[0][2]) > 1e-11:
            yield from sorted(run)
            run = []
        run.append(one)
    yield from sorted(run)


def _probability(tree: Tree, values: tuple[int, ...], evidence: tuple[float, int]) -> tuple[float, int]:
    """Return a solution's probability as a mantissa and a power of two: with very many cells it is below any double."""
    mantissa, exponent = 1.0, 0
    for value, low, weights in zip(values, tree.lows, tree.weights, strict=True):
        mantissa, shift = math.frexp(mantissa * weights[value - low])
        exponent += shift
    return mantissa / evidence[0], exponent - evidence[1]


def _in_order(tree: Tree, up: Pass) -> Iterator[tuple[int, ...]]:
    rest: Any = None
    for root in reversed(tree.plan.roots):
        rest = (Goal(-1, root, 0, None), rest)
    heap: list[Choice] = []
    known: dict[Goal, list[tuple[float, Any]]] = {}  # solutions that differ in one place share the rest
    ties = 0
    pending: tuple[float, Any, Any] | None = (0.0, rest, None)
    while True:
        # Follow the best option of every goal that is left, noting each on the heap for its other options.
        while pending is not None:
            cost, rest, chosen = pending
            if rest is None:
                yield _values(tree, chosen)
                break
            goal, rest = rest
            options = known.get(goal)
            if options is None:
                options = known[goal] = _options(tree, up, goal)
            if len(options) > 1:
                ties -= 1  # among equals the latest first: finish one solution before starting the next
                second = cost + math.log2(options[0][0] / options[1][0])
                heapq.heappush(heap, Choice(second, ties, 1, options, goal, rest, chosen))
            pending = (cost, *_decided(tree, goal, options[0][1], rest, chosen))
        if not heap:
            return
        entry = heapq.heappop(heap)
        which, options = entry.which, entry.options
        if which + 1 < len(options):
            ties -= 1
            later = entry.cost + math.log2(options[which][0] / options[which + 1][0])
            heapq.heappush(heap, entry._replace(cost=later, tie=ties, which=which + 1))
        pending = (entry.cost, *_decided(tree, entry.goal, options[which][1], entry.rest, entry.chosen))


def _options(tree: Tree, up: Pass, goal: Goal) -> list[tuple[float, Any]]:
    """List what a goal can be decided to: (the best weight that follows, value), best first, then the lowest."""
    if goal.link < 0:
        return _states(tree, up.belief[goal.j], goal)
    if goal.j == 0:
        return [(1.0, goal.at)]
    child = up.arrays[goal.link][goal.j]
    before = up.partial[goal.link][goal.j - 1]
    child_low = tree.child_low(tree.order[goal.link][goal.j])
    before_low = tree.chains[goal.link].lows[goal.j - 1]
    if child.ndim == 1:
        # child value x goes with a partial sum of at - x
        first = max(0, goal.at - before_low - before.size + 1 - child_low)
        last = min(child.size, goal.at - before_low - child_low + 1)
        start = goal.at - child_low - first - before_low
        there = child[first:last] * before[start - (last - first) + 1 : start + 1][::-1]
        return _ranked(there, child_low + first)
    spans = [
        (max(0, s - b - n + 1 - c), min(m, s - b - c + 1))
        for s, b, c, m, n in zip(goal.at, before_low, child_low, child.shape, before.shape, strict=True)
    ]
    (r0, r1), (c0, c1) = spans
    r, c = goal.at[0] - child_low[0] - r0 - before_low[0], goal.at[1] - child_low[1] - c0 - before_low[1]
    there = child[r0:r1, c0:c1] * before[r - (r1 - r0) + 1 : r + 1, c - (c1 - c0) + 1 : c + 1][::-1, ::-1]
    return _ranked(there, (child_low[0] + r0, child_low[1] + c0))


def _states(tree: Tree, belief: FloatArray, goal: Goal) -> list[tuple[float, Any]]:
    cells = tree.plan.nodes[goal.j].cells
    if belief.ndim == 1:
        return _ranked(belief, tree.lows[cells[0]])
    _, first, second = cells
    low = (tree.lows[first], tree.lows[second])
    if goal.at is not None:
        rows, columns = np.indices(belief.shape)
        value = (rows + columns + sum(low), rows + low[0], columns + low[1])[goal.layer]
        belief = np.where(value == goal.at, belief, 0.0)
    return _ranked(belief, low)


def _ranked(weights: FloatArray, low: Any) -> list[tuple[float, Any]]:
    flat = weights.ravel().tolist()
    order = sorted(range(len(flat)), key=flat.__getitem__, reverse=True)  # stable: the lowest of equals first
    if weights.ndim == 1:
        return [(flat[k], low + k) for k in order if flat[k] > 0]
    (row, column), columns = low, weights.shape[1]
    return [(flat[k], (row + k // columns, column + k % columns)) for k in order if flat[k] > 0]


def _decided(tree: Tree, goal: Goal, value: Any, rest: Any, chosen: Any) -> tuple[Any, Any]:
    """Return the goals that are left, and what has been chosen, once a goal is decided."""
    if goal.link >= 0:
        end = tree.order[goal.link][goal.j]
        if goal.j:
            before = goal.at - value if end.layer != PAIR else (goal.at[0] - value[0], goal.at[1] - value[1])
            rest = (Goal(goal.link, goal.j - 1, 0, before), rest)
        if end.sign < 0:
            value = -value if end.layer != PAIR else (-value[0], -value[1])
        if tree.plan.nodes[end.node].is_pair and end.layer != PAIR:
            return (Goal(-1, end.node, end.layer, value), rest), chosen
        node = end.node
    else:
        node = goal.j
    for link in reversed(tree.plan.below[node]):
        parent = tree.plan.links[link].parent
        rest = (Goal(link, len(tree.order[link]) - 1, 0, _seen(value, parent)), rest)
    return rest, ((node, value), chosen)


def _seen(value: Any, end: End) -> Any:
    """Return the value that a link sees of a node's state."""
    if end.layer == PAIR or not isinstance(value, tuple):
        return value
    return (value[0] + value[1], *value)[end.layer]


def _values(tree: Tree, chosen: Any) -> tuple[int, ...]:
    values = [0] * len(tree.lows)
    while chosen is not None:
        (n, value), chosen = chosen
        node = tree.plan.nodes[n]
        if node.is_pair:
            total, first, second = node.cells
            values[total], values[first], values[second] = value[0] + value[1], value[0], value[1]
        else:
            values[node.cells[0]] = value
    return tuple(values)
