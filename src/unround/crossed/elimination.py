"""Exact probabilities where one axis is long and the others have few leaves together: a tree whose nodes are vectors.

Along the longest axis, the state of a node (a leaf of that axis, or a group) is the vector of its counts in all rows, the
leaves of the other axes together. What is published of a node, for single rows or for several, weighs vectors; vectors of
parts add up to those of their totals. So messages are convolutions in as many dimensions as there are rows, by Fourier
transforms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from unround.crossed.table import CrossedTable
from unround.mechanisms.base import FloatArray

MOST_ROWS = 6
"""Rows of a state."""

MOST_STATES = 600_000
"""Vectors of a partial sum."""

NOISE = 1e-13
"""Relative to the largest weight, what transforms leave where there is nothing."""


class Contradicting(Exception):  # noqa: N818 - it is an answer, and no error
    """No counts add up."""


Box = tuple[FloatArray, NDArray[np.int64]]
"""Weights of vectors, and the least count in each row."""


@dataclass(slots=True)
class _Node:
    """A leaf of the long axis, or a group of them."""

    cells: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    """The cells of this node, each with the rows that it adds up."""
    parts: list[int] = field(default_factory=list)
    low: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    high: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Slices:
    """A table as a tree of vectors; parts come before their totals, the whole table is last."""

    nodes: tuple[_Node, ...]


def marginals(
    table: CrossedTable, lows: Sequence[int], weights: Sequence[FloatArray]
) -> tuple[tuple[int, FloatArray], ...] | None:
    """Return the exact distribution of every cell: its least count, and probabilities.

    None where there are too many states, or cells that are no rectangles of a tree along the longest axis. Raises
    `Contradicting` if no counts add up.
    """
    slices = _slices(table, lows, weights)
    if slices is None:
        return None
    up: list[Box] = []
    prefixes: list[list[Box]] = []
    for node in slices.nodes:
        own, steps = _local(node, lows, weights), list[Box]()
        if node.parts:
            so_far = up[node.parts[0]]
            steps.append(so_far)
            for k, part in enumerate(node.parts[1:], 1):
                rest = [slices.nodes[other] for other in node.parts[k + 1 :]]
                so_far = _added(so_far, up[part], node, rest)
                steps.append(so_far)
            own = _times(own, so_far)
        up.append(own)
        prefixes.append(steps)
    found: list[tuple[int, FloatArray]] = [(0, np.zeros(0))] * len(lows)
    down: list[Box | None] = [None] * len(slices.nodes)
    for n in range(len(slices.nodes) - 1, -1, -1):
        node, above = slices.nodes[n], down[n]
        belief = up[n] if above is None else _times(up[n], above)
        for cell, rows in node.cells:
            found[cell] = lows[cell], _distribution(belief, rows, lows[cell], weights[cell].size)
        if not node.parts:
            continue
        local = _local(node, lows, weights)
        message = local if above is None else _times(local, above)
        for k in range(len(node.parts) - 1, 0, -1):
            part, before = node.parts[k], prefixes[n][k - 1]
            down[part] = _difference(message, before, slices.nodes[part].low, slices.nodes[part].high)
            ends = before[1] + np.array(before[0].shape) - 1
            message = _difference(message, up[part], before[1], ends)
        down[node.parts[0]] = message
    return tuple(found)


def _slices(table: CrossedTable, lows: Sequence[int], weights: Sequence[FloatArray]) -> Slices | None:
    """Read a table as a tree of vectors."""
    long = int(np.argmax(table.shape))
    others = np.delete(table.coordinates, long, axis=1)
    kinds, row = np.unique(others, axis=0, return_inverse=True)
    row, column = row.ravel(), table.coordinates[:, long]
    if table.axes < 2 or len(kinds) > MOST_ROWS:
        return None
    belongs = table.belongs()
    columns: dict[frozenset[int], list[tuple[int, tuple[int, ...]]]] = {frozenset([j]): [] for j in set(column.tolist())}
    columns.setdefault(frozenset(column.tolist()), [])
    for cell, members in enumerate(belongs):
        rows, places = frozenset(row[members].tolist()), frozenset(column[members].tolist())
        if len(rows) * len(places) != int(members.sum()):
            return None
        columns.setdefault(places, []).append((cell, tuple(sorted(rows))))
    sets = sorted(columns, key=lambda places: (len(places), sorted(places)))
    nodes = [_Node(columns[places]) for places in sets]
    for n, places in enumerate(sets):
        above = next((m for m in range(n + 1, len(sets)) if not places.isdisjoint(sets[m])), None)
        if above is not None:
            if not places < sets[above]:
                return None
            nodes[above].parts.append(n)
    for node in nodes:
        _bound(node, nodes, len(kinds), lows, weights)
        if any(_states(node, nodes, k) > MOST_STATES for k in range(len(node.parts) + 1)):
            return None
    return Slices(tuple(nodes))


def _bound(node: _Node, nodes: list[_Node], rows: int, lows: Sequence[int], weights: Sequence[FloatArray]) -> None:
    """Work out the bounds of a node's vectors."""
    single = {which[0]: cell for cell, which in node.cells if len(which) == 1}
    node.low, node.high = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    for i in range(rows):
        if i in single:
            node.low[i], node.high[i] = lows[single[i]], lows[single[i]] + weights[single[i]].size - 1
        else:
            node.low[i] = sum(int(nodes[part].low[i]) for part in node.parts)
            node.high[i] = sum(int(nodes[part].high[i]) for part in node.parts)


def _range(node: _Node, before: Sequence[_Node], rest: Sequence[_Node]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the bounds of what some parts of a node add up to."""
    low, high = sum(one.low for one in before), sum(one.high for one in before)
    low = np.maximum(low, node.low - sum(one.high for one in rest))
    high = np.minimum(high, node.high - sum(one.low for one in rest))
    return np.asarray(low), np.asarray(high)


def _states(node: _Node, nodes: list[_Node], number: int) -> int:
    if not node.parts or not number:
        return int(np.prod(node.high - node.low + 1))
    parts = [nodes[part] for part in node.parts]
    low, high = _range(node, parts[:number], parts[number:])
    return int(np.prod(np.maximum(high - low + 1, 0)))


def _local(node: _Node, lows: Sequence[int], weights: Sequence[FloatArray]) -> Box:
    """Return what is published of a node, as weights of its vectors."""
    shape = node.high - node.low + 1
    found = np.ones(shape)
    grid = np.indices(found.shape, sparse=True)
    for cell, rows in node.cells:
        at = sum(grid[i] + int(node.low[i]) for i in rows) - lows[cell]
        inside = (at >= 0) & (at < weights[cell].size)
        found = found * np.where(inside, weights[cell][np.clip(at, 0, weights[cell].size - 1)], 0.0)
    return _level(found), node.low


def _level(weights: FloatArray) -> FloatArray:
    largest = weights.max(initial=0.0)
    if largest <= 0:
        raise Contradicting
    return np.asarray(weights / largest)


def _added(one: Box, other: Box, node: _Node, rest: list[_Node]) -> Box:
    """Return the weights of sums of two vectors, as far as the node and its other parts allow."""
    low = one[1] + other[1]
    found = _convolved(one[0], other[0])
    high = low + np.array(found.shape) - 1
    least = np.maximum(low, node.low - sum(part.high for part in rest))
    most = np.minimum(high, node.high - sum(part.low for part in rest))
    if (least > most).any():
        raise Contradicting
    cut = tuple(slice(int(a), int(b) + 1) for a, b in zip(least - low, most - low, strict=True))
    return _level(found[cut]), least


def _difference(total: Box, known: Box, low: NDArray[np.int64], high: NDArray[np.int64]) -> Box:
    """Return the weights of x between bounds, where x + y is weighed by one array and y by another."""
    backwards = known[0][tuple([slice(None, None, -1)] * known[0].ndim)]
    found = _convolved(total[0], backwards)
    first = total[1] - known[1] - np.array(known[0].shape) + 1
    result = np.zeros(high - low + 1)
    begin = np.maximum(low, first)
    end = np.minimum(high, first + np.array(found.shape) - 1)
    if (begin > end).any():
        raise Contradicting
    to = tuple(slice(int(a), int(b) + 1) for a, b in zip(begin - low, end - low, strict=True))
    cut = tuple(slice(int(a), int(b) + 1) for a, b in zip(begin - first, end - first, strict=True))
    result[to] = found[cut]
    return _level(result), low


def _convolved(one: FloatArray, other: FloatArray) -> FloatArray:
    from scipy import fft

    shape = [a + b - 1 for a, b in zip(one.shape, other.shape, strict=True)]
    fast = [fft.next_fast_len(size, real=True) for size in shape]
    found = fft.irfftn(fft.rfftn(one, fast) * fft.rfftn(other, fast), fast)
    found = found[tuple(slice(size) for size in shape)]
    found[found < NOISE * found.max()] = 0.0
    return np.asarray(found)


def _times(one: Box, other: Box) -> Box:
    """Multiply weights of the same vectors."""
    low = np.maximum(one[1], other[1])
    high = np.minimum(one[1] + np.array(one[0].shape), other[1] + np.array(other[0].shape))
    if (low >= high).any():
        raise Contradicting
    first = tuple(slice(int(a), int(b)) for a, b in zip(low - one[1], high - one[1], strict=True))
    second = tuple(slice(int(a), int(b)) for a, b in zip(low - other[1], high - other[1], strict=True))
    return _level(one[0][first] * other[0][second]), low


def _distribution(belief: Box, rows: tuple[int, ...], low: int, size: int) -> FloatArray:
    """Return how likely each count of a cell is, from the weights of its node's vectors."""
    others = tuple(i for i in range(belief[0].ndim) if i not in rows)
    weights = belief[0].sum(axis=others)
    at = np.indices(weights.shape).sum(axis=0).ravel() + int(sum(belief[1][i] for i in rows)) - low
    inside = (at >= 0) & (at < size)
    found = np.bincount(at[inside], weights.ravel()[inside], minlength=size)
    return np.asarray(found / found.sum())
