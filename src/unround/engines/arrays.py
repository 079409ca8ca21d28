"""Arithmetic on arrays over counts: one axis for a count, two for a pair of counts.

All terms are non-negative, so nothing cancels and every result is accurate to a few units in the last place, however small
it is. Only the span of a result that is needed is computed, except for short arrays, where that would take longer.

A link parent = x₁ + … + xₙ is gone through part by part: s₀ = 0, sⱼ = sⱼ₋₁ + xⱼ, sₙ = parent. Each partial sum is cut to
what the parts before it can give and what the parts after it and the parent still allow. The spans depend on the bounds
alone, so that one geometry serves every pass over the numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from unround.mechanisms.base import FloatArray

Span = tuple[Any, Any]
"""Where to start and how long to be: two numbers for one axis, two pairs of them for two."""

Convolve = Callable[[FloatArray, FloatArray, Span], FloatArray]

SMALL = 4096
"""Multiplications below which the whole result is computed and cut: that is faster than padding."""


def fit(array: FloatArray, span: Span) -> FloatArray:
    """Cut or pad with zeros, so that the result starts at span[0] (negative: before the array) and has length span[1]."""
    start, length = span
    if array.ndim == 2:
        return _fit_pair(array, start, length)
    stop = start + length
    size = array.size
    if start >= 0 and stop <= size:
        return array[start:stop]
    out = np.zeros(length)
    first = start if start > 0 else 0
    last = stop if stop < size else size
    if last > first:
        out[first - start : last - start] = array[first:last]
    return out


def _fit_pair(array: FloatArray, start: tuple[int, int], length: tuple[int, int]) -> FloatArray:
    (r, c), (height, width) = start, length
    rows, columns = array.shape
    if r >= 0 and c >= 0 and r + height <= rows and c + width <= columns:
        return array[r : r + height, c : c + width]
    out = np.zeros((height, width))
    r0, r1 = max(r, 0), min(r + height, rows)
    c0, c1 = max(c, 0), min(c + width, columns)
    if r1 > r0 and c1 > c0:
        out[r0 - r : r1 - r, c0 - c : c1 - c] = array[r0:r1, c0:c1]
    return out


def flip(array: FloatArray) -> FloatArray:
    """Reverse every axis."""
    return array[::-1] if array.ndim == 1 else array[::-1, ::-1]


def convolve(a: FloatArray, b: FloatArray, span: Span) -> FloatArray:
    """Return a span of Σ_k a[k] × b[i − k], counted from i = 0."""
    if a.ndim == 1:
        size, (start, length) = a.size, span
        if size * b.size < SMALL or size <= length:
            whole = np.correlate(a, b[::-1], "full")
            return whole[start : start + length] if 0 <= start <= whole.size - length else fit(whole, span)
    return _valid(fit(a, _padded(span, b)), flip(b))


def correlate(a: FloatArray, b: FloatArray, span: Span) -> FloatArray:
    """Return a span of Σ_k a[i + k] × b[k], counted from the first i where it is not zero: 1 − len(b)."""
    if a.ndim == 1:
        size, (start, length) = a.size, span
        if size * b.size < SMALL or size <= length:
            whole = np.correlate(a, b, "full")
            return whole[start : start + length] if 0 <= start <= whole.size - length else fit(whole, span)
    return _valid(fit(a, _padded(span, b)), b)


def convolve_max(a: FloatArray, b: FloatArray, span: Span) -> FloatArray:
    """Return a span of max_k a[k] × b[i − k], counted from i = 0."""
    big, small = fit(a, _padded(span, b)), flip(b)
    if big.ndim == 2:
        height, width = big.shape[0] - small.shape[0] + 1, big.shape[1] - small.shape[1] + 1
        out = np.zeros((height, width))
        product = np.empty((height, width))
        for r, c in zip(*np.nonzero(small), strict=True):
            np.multiply(big[r : r + height, c : c + width], small[r, c], out=product)
            np.maximum(out, product, out=out)
        return out
    size = big.size - small.size + 1
    if size * small.size < SMALL:  # all products at once: every call of numpy takes a microsecond
        step = big.itemsize
        shifted: FloatArray = np.ndarray((size, small.size), big.dtype, np.ascontiguousarray(big), 0, (step, step))
        return np.asarray((shifted * small).max(axis=1))
    if small.size <= size:
        out = np.asarray(big[:size] * small[0])
        for k in range(1, small.size):
            np.maximum(out, big[k : k + size] * small[k], out=out)
        return out
    return np.array([(big[i : i + small.size] * small).max() for i in range(size)])


def _padded(span: Span, b: FloatArray) -> Span:
    """Return the span of the other array that a span of the result depends on."""
    start, length = span
    if b.ndim == 1:
        return start - b.size + 1, length + b.size - 1
    rows, columns = b.shape
    return (start[0] - rows + 1, start[1] - columns + 1), (length[0] + rows - 1, length[1] + columns - 1)


def _valid(big: FloatArray, small: FloatArray) -> FloatArray:
    """Return Σ_k big[i + k] × small[k] for every i where all terms exist."""
    if big.ndim == 1:
        return np.correlate(big, small, "valid")
    # As one matrix product: a band of rows of `big` is a contiguous run of its memory, and shifting `small` along that
    # run by j columns gives column j of the other factor.
    rows, columns = small.shape
    width = big.shape[1]
    out_rows, out_columns = big.shape[0] - rows + 1, width - columns + 1
    run = np.zeros(out_columns - 1 + rows * width)
    run[out_columns - 1 :].reshape(rows, width)[:, :columns] = small
    step = run.itemsize
    shifted = as_strided(run[out_columns - 1 :], (rows * width, out_columns), (step, -step))
    bands = as_strided(np.ascontiguousarray(big), (out_rows, rows * width), (width * step, step))
    return np.asarray(np.ascontiguousarray(bands) @ np.ascontiguousarray(shifted))


def along_diagonals(vector: FloatArray, rows: int, columns: int) -> FloatArray:
    """Return the matrix whose entry (i, j) is vector[i + j]."""
    step = vector.strides[0]
    return np.asarray(as_strided(vector, (rows, columns), (step, step)))


def sum_diagonals(matrix: FloatArray) -> FloatArray:
    """Return Σ matrix[i, j] over i + j = k, for every k."""
    return np.asarray(_skewed(matrix).sum(axis=0))


def max_diagonals(matrix: FloatArray) -> FloatArray:
    """Return max matrix[i, j] over i + j = k, for every k."""
    return np.asarray(_skewed(matrix).max(axis=0))


def _skewed(matrix: FloatArray) -> FloatArray:
    """Move row i to the right by i, so that diagonals become columns."""
    rows, columns = matrix.shape
    wide = np.zeros((rows, rows + columns))
    wide[:, :columns] = matrix
    # Read with rows one shorter, every row starts one column to the right of the row above it.
    return wide.ravel()[: rows * (rows + columns - 1)].reshape(rows, rows + columns - 1)


@dataclass(slots=True)
class Chain:
    """Spans for `arrays.fit`, one a child, and the cost of one pass.

    - `first`: From the first child's array to the first partial sum.
    - `forward`: forward[j] is the span of the convolution of the sum of the first j children with child j that is the sum
      of j + 1.
    - `backward`: backward[j] is the span of the correlation of what is known of the sum of j + 1 children with child j
      that is known of the sum of j.
    - `child`: child[j] is the span of the correlation of the former with the sum of the first j children that is known of
      child j; child[0] cuts it out of what is known of the first partial sum.
    - `lows`: lows[j] is the least partial sum of j + 1 children that the arrays hold.
    - `work`: Multiplications in a forward pass.
    """

    first: Span
    forward: list[Span]
    backward: list[Span]
    child: list[Span]
    lows: list[Any]
    work: int


def chain(lows: list[int], highs: list[int], parent_low: int, parent_high: int) -> Chain:
    """Lay out a link of single counts, its children in the order given."""
    last = len(lows) - 1
    least, most = lows[0], highs[0]
    after_low, after_high = sum(lows) - least, sum(highs) - most
    if last:
        low = max(least, parent_low - after_high)
        high = min(most, parent_high - after_low)
    else:
        low, high = parent_low, parent_high
    first: Span = (low - least, high - low + 1)
    forward: list[Span] = [(0, 0)]
    backward: list[Span] = [(0, 0)]
    child: list[Span] = [(least - low, most - least + 1)]
    starts = [low]
    work = 0
    for j in range(1, last + 1):
        part_low, part_high = lows[j], highs[j]
        after_low -= part_low
        after_high -= part_high
        least += part_low
        most += part_high
        if j < last:
            next_low = least if least > parent_low - after_high else parent_low - after_high
            next_high = most if most < parent_high - after_low else parent_high - after_low
        else:
            next_low, next_high = parent_low, parent_high
        length, width = next_high - next_low + 1, part_high - part_low + 1
        forward.append((next_low - low - part_low, length))
        backward.append((low - next_low + part_high, high - low + 1))
        child.append((part_low - next_low + high, width))
        starts.append(next_low)
        work += length * width
        low, high = next_low, next_high
    return Chain(first, forward, backward, child, starts, work)


def pair_chain(
    lows: list[tuple[int, int]],
    highs: list[tuple[int, int]],
    parent_low: tuple[int, int],
    parent_high: tuple[int, int],
) -> Chain:
    """Lay out a link of pairs of counts: a chain along each axis, joined."""
    rows = chain([low[0] for low in lows], [high[0] for high in highs], parent_low[0], parent_high[0])
    columns = chain([low[1] for low in lows], [high[1] for high in highs], parent_low[1], parent_high[1])
    work = 0
    for j in range(1, len(lows)):
        height, width = rows.forward[j][1], columns.forward[j][1]
        work += height * width * (highs[j][0] - lows[j][0] + 1) * (highs[j][1] - lows[j][1] + 1)
    return Chain(
        _joined(rows.first, columns.first),
        [_joined(a, b) for a, b in zip(rows.forward, columns.forward, strict=True)],
        [_joined(a, b) for a, b in zip(rows.backward, columns.backward, strict=True)],
        [_joined(a, b) for a, b in zip(rows.child, columns.child, strict=True)],
        list(zip(rows.lows, columns.lows, strict=True)),
        work,
    )


def _joined(a: Span, b: Span) -> Span:
    return (a[0], b[0]), (a[1], b[1])
