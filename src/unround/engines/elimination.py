"""Exact probabilities where one axis is long and the others have few leaves together: a tree whose nodes are vectors.

Along the longest axis, the state of a node (a leaf of that axis, or a group) is the vector of its counts in all rows, the
leaves of the other axes together. What is published of a node, for single rows or for several, weighs vectors; vectors of
parts add up to those of their totals. So messages are convolutions in as many dimensions as there are rows: by Fourier
transforms, or product by product where totals are so extreme that what they leave is tiny next to what they rule out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms.base import FloatArray
from unround.sums.multiway import CrossedTable

Longs = NDArray[np.int64]

MOST_ROWS = 6
"""Rows of a state."""

MOST_STATES = 600_000
"""Vectors of a partial sum."""

MOST_PRODUCTS = 20_000_000
"""Products of one convolution that are added up one by one, where transforms are not precise enough."""

PRECISION = 1e-15
"""The error of a transform, relative to the size of what is transformed."""

TOLERANCE = 1e-7
"""The largest error, relative to the largest weight, with which probabilities are still called exact."""


class Contradicting(Exception):  # noqa: N818 - it is an answer, and no error
    """No counts add up."""


class _Imprecise(Exception):  # noqa: N818 - it is an answer, and no error
    """What is left is not told from the errors of transforms."""


class Box(NamedTuple):
    """Weights of vectors, the largest 1; the least count in each row; and how far weights may be off."""

    weights: FloatArray
    low: Longs
    error: float


Convolution = Callable[[FloatArray, FloatArray, Longs, Longs], tuple[FloatArray, float]]
"""Convolves two arrays; returns the part of the result between two places, and how far it may be off."""


@dataclass(slots=True)
class _Node:
    """A leaf of the long axis, or a group of them. In a list of nodes, parts come before totals, the whole table is last."""

    cells: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    """The cells of this node, each with the rows that it adds up."""
    parts: list[int] = field(default_factory=list)
    low: Longs = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    high: Longs = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def marginals(
    table: CrossedTable, lows: Sequence[int], weights: Sequence[FloatArray]
) -> tuple[tuple[int, FloatArray], ...] | None:
    """Return the exact distribution of every cell: its least count, and probabilities.

    None where there are too many states, cells that are not rectangles of a tree along the longest axis, or weights too
    far apart for transforms. Raises `Contradicting` if no counts add up.
    """
    nodes = _slices(table, lows, weights)
    if nodes is None:
        return None
    for convolve in (_by_transforms, _by_products):
        try:
            return _passes(nodes, lows, weights, convolve)
        except _Imprecise:
            continue
    return None


def _passes(
    nodes: list[_Node], lows: Sequence[int], weights: Sequence[FloatArray], convolve: Convolution
) -> tuple[tuple[int, FloatArray], ...]:
    """Pass messages up the tree of vectors, and down again."""
    up: list[Box] = []
    prefixes: list[list[Box]] = []
    for node in nodes:
        own, steps = _local(node, lows, weights), list[Box]()
        if node.parts:
            so_far = up[node.parts[0]]
            steps.append(so_far)
            for k, part in enumerate(node.parts[1:], 1):
                rest = [nodes[other] for other in node.parts[k + 1 :]]
                so_far = _added(convolve, so_far, up[part], node, rest)
                steps.append(so_far)
            own = _times(own, so_far)
        up.append(own)
        prefixes.append(steps)
    found: list[tuple[int, FloatArray]] = [(0, np.zeros(0))] * len(lows)
    down: list[Box | None] = [None] * len(nodes)
    for n in range(len(nodes) - 1, -1, -1):
        node, above = nodes[n], down[n]
        belief = up[n] if above is None else _times(up[n], above)
        for cell, rows in node.cells:
            found[cell] = lows[cell], _distribution(belief, rows, lows[cell], weights[cell].size)
        if not node.parts:
            continue
        local = _local(node, lows, weights)
        message = local if above is None else _times(local, above)
        for k in range(len(node.parts) - 1, 0, -1):
            part, before = node.parts[k], prefixes[n][k - 1]
            down[part] = _difference(convolve, message, before, nodes[part].low, nodes[part].high)
            ends = before.low + np.array(before.weights.shape) - 1
            message = _difference(convolve, message, up[part], before.low, ends)
        down[node.parts[0]] = message
    return tuple(found)


def _slices(table: CrossedTable, lows: Sequence[int], weights: Sequence[FloatArray]) -> list[_Node] | None:
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
    return nodes


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


def _range(node: _Node, before: Sequence[_Node], rest: Sequence[_Node]) -> tuple[Longs, Longs]:
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
    return _level(found, node.low, 0.0)


def _level(weights: FloatArray, low: Longs, error: float) -> Box:
    """Scale the largest weight to 1; weights that are no larger than their error are not told from nothing."""
    largest = weights.max(initial=0.0)
    if largest <= 0 and not error:
        raise Contradicting
    if largest * TOLERANCE <= error:
        raise _Imprecise
    return Box(np.asarray(np.where(weights <= error, 0.0, weights) / largest), low, error / largest)


def _added(convolve: Convolution, one: Box, other: Box, node: _Node, rest: list[_Node]) -> Box:
    """Return the weights of sums of two vectors, as far as the node and its other parts allow."""
    low = one.low + other.low
    high = low + np.array(one.weights.shape) + np.array(other.weights.shape) - 2
    least = np.maximum(low, node.low - sum(part.high for part in rest))
    most = np.minimum(high, node.high - sum(part.low for part in rest))
    if (least > most).any():
        raise Contradicting
    found, error = convolve(one.weights, other.weights, least - low, most - low)
    return _level(found, least, error + _carried(one, other))


def _difference(convolve: Convolution, total: Box, known: Box, low: Longs, high: Longs) -> Box:
    """Return the weights of x between bounds, where x + y is weighed by one array and y by another."""
    backwards = known.weights[tuple([slice(None, None, -1)] * known.weights.ndim)]
    size = np.array(known.weights.shape)
    first = total.low - known.low - size + 1
    begin = np.maximum(low, first)
    end = np.minimum(high, first + np.array(total.weights.shape) + size - 2)
    if (begin > end).any():
        raise Contradicting
    found, error = convolve(total.weights, backwards, begin - first, end - first)
    result = np.zeros(high - low + 1)
    result[_between(begin - low, end - low)] = found
    return _level(result, low, error + _carried(total, known))


def _carried(one: Box, other: Box) -> float:
    """Return how far the convolution of two arrays may be off because they are."""
    return one.error * float(other.weights.sum()) + other.error * float(one.weights.sum())


def _between(begin: Longs, end: Longs) -> tuple[slice, ...]:
    return tuple(slice(int(a), int(b) + 1) for a, b in zip(begin, end, strict=True))


def _by_transforms(one: FloatArray, other: FloatArray, begin: Longs, end: Longs) -> tuple[FloatArray, float]:
    """Convolve quickly, and keep a part of the result; errors are relative to all of it."""
    from scipy import fft

    shape = [a + b - 1 for a, b in zip(one.shape, other.shape, strict=True)]
    fast = [fft.next_fast_len(size, real=True) for size in shape]
    found = fft.irfftn(fft.rfftn(one, fast) * fft.rfftn(other, fast), fast)
    return found[_between(begin, end)], PRECISION * float(np.sqrt((one**2).sum() * (other**2).sum()))


def _by_products(one: FloatArray, other: FloatArray, begin: Longs, end: Longs) -> tuple[FloatArray, float]:
    """Convolve by adding up products one by one: no weight is lost, however small."""
    few, many = (one, other) if np.count_nonzero(one) < np.count_nonzero(other) else (other, one)
    if np.count_nonzero(few) * many.size > MOST_PRODUCTS:
        raise _Imprecise
    found, last_place = np.zeros(end - begin + 1), np.array(many.shape) - 1
    for at in np.argwhere(few):
        first, last = np.maximum(begin - at, 0), np.minimum(end - at, last_place)
        if (first <= last).all():
            found[_between(first + at - begin, last + at - begin)] += few[tuple(at)] * many[_between(first, last)]
    return found, 0.0


def _times(one: Box, other: Box) -> Box:
    """Multiply weights of the same vectors."""
    low = np.maximum(one.low, other.low)
    high = np.minimum(one.low + np.array(one.weights.shape), other.low + np.array(other.weights.shape))
    if (low >= high).any():
        raise Contradicting
    first, second = _between(low - one.low, high - one.low - 1), _between(low - other.low, high - other.low - 1)
    return _level(one.weights[first] * other.weights[second], low, one.error + other.error)


def _distribution(belief: Box, rows: tuple[int, ...], low: int, size: int) -> FloatArray:
    """Return how likely each count of a cell is, from the weights of its node's vectors."""
    others = tuple(i for i in range(belief.weights.ndim) if i not in rows)
    weights = belief.weights.sum(axis=others)
    at = np.indices(weights.shape).sum(axis=0).ravel() + int(sum(belief.low[i] for i in rows)) - low
    inside = (at >= 0) & (at < size)
    found = np.bincount(at[inside], weights.ravel()[inside], minlength=size)
    return np.asarray(found / found.sum())
