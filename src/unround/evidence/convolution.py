"""Convolutions of arrays over pairs of counts, compiled: the inner loops of messages for whole releases.

An array is part of a long vector (the arena), row by row; its box (first row, first column, rows, columns) says which pair
of counts its first entry belongs to. A single count is a box of one row. If the rows of both factors are equally spaced,
with zeros in between, a convolution over two axes becomes one over a single long axis: long loops are fast loops.

All terms are non-negative, so nothing cancels. Results are scaled by powers of two, which loses no digit.
"""

from __future__ import annotations

import math

from unround.jit import ZERO, adding, inner
from unround.mechanisms.base import FloatArray

Box = tuple[int, int, int, int]
Four = tuple[float, float, float, float]
Five = tuple[float, float, float, float, float]
Factor = tuple[int, Box, int]
"""Where an array is, its box, and where what becomes known of it goes."""

GUARD = 4
"""Entries behind a scratch vector that may be read, and count for nothing: coefficients are taken four at a time."""


@inner
def fill(vector: FloatArray, at: int, size: int, value: float) -> None:
    """Set a stretch of a vector to one value."""
    for k in range(at, at + size):
        vector[k] = value


@inner
def copy(vector: FloatArray, at: int, to: int, size: int) -> None:
    """Copy a stretch of a vector to another place in it."""
    for k in range(size):
        vector[to + k] = vector[at + k]


@inner
def scale(arena: FloatArray, at: int, size: int) -> float:
    """Bring the largest number to between 1/2 and 1; return 0 if there is none but zero."""
    largest = 0.0
    for k in range(at, at + size):
        largest = max(largest, arena[k])
    if largest > 0.0 and (largest > 1.0 or largest < 0.5):
        factor = math.ldexp(1.0, -math.frexp(largest)[1])
        for k in range(at, at + size):
            arena[k] *= factor
    return largest


@inner
def halvings(largest: float) -> int:
    """Return how often `scale` halved numbers of which this was the largest; less than 0 where it doubled them."""
    return math.frexp(largest)[1] if largest > 1.0 or 0.0 < largest < 0.5 else 0


@inner
def crop(
    vector: FloatArray, at: int, box: Box, begin: tuple[int, int], out: FloatArray, to: int, stride: int, goal: Box
) -> None:
    """Copy the part of an array from (row, column) on, in rows and columns of its own, into a box at some stride.

    Where nothing lies, nothing is written.
    """
    row, column = begin
    for r in range(max(0, -row), min(goal[2], box[2] - row)):
        start, end = at + (row + r) * box[3] + column, to + r * stride
        for c in range(max(0, -column), min(goal[3], box[3] - column)):
            out[end + c] = vector[start + c]


@adding
def _spread(x: FloatArray, at: int, out: FloatArray, to: int, n: int, b: Four) -> None:
    """Add b × x, shifted by four steps in turn."""
    target, at = out[to : to + n], at + to
    x0, x1, x2, x3 = x[at : at + n], x[at + 1 : at + 1 + n], x[at + 2 : at + 2 + n], x[at + 3 : at + 3 + n]
    for k in range(n):
        target[k] += b[0] * x0[k] + b[1] * x1[k] + b[2] * x2[k] + b[3] * x3[k]


@adding
def _spread_five(x: FloatArray, at: int, out: FloatArray, to: int, n: int, b: Five) -> None:
    """Do the same by five steps."""
    target, at = out[to : to + n], at + to
    x0, x1, x2, x3 = x[at : at + n], x[at + 1 : at + 1 + n], x[at + 2 : at + 2 + n], x[at + 3 : at + 3 + n]
    x4 = x[at + 4 : at + 4 + n]
    for k in range(n):
        target[k] += b[0] * x0[k] + b[1] * x1[k] + b[2] * x2[k] + b[3] * x3[k] + b[4] * x4[k]


@adding
def _gather(x: FloatArray, at: int, out: FloatArray, to: int, other: FloatArray, n: int, b: Four) -> Four:
    """Do the same by four steps, and return the sums of x × the other factor for the same shifts."""
    target, factor, at = out[to : to + n], other[to : to + n], at + to
    x0, x1, x2, x3 = x[at : at + n], x[at + 1 : at + 1 + n], x[at + 2 : at + 2 + n], x[at + 3 : at + 3 + n]
    d0 = d1 = d2 = d3 = 0.0
    for k in range(n):
        target[k] += b[0] * x0[k] + b[1] * x1[k] + b[2] * x2[k] + b[3] * x3[k]
        d0 += factor[k] * x0[k]
        d1 += factor[k] * x1[k]
        d2 += factor[k] * x2[k]
        d3 += factor[k] * x3[k]
    return d0, d1, d2, d3


@adding
def _gather_five(x: FloatArray, at: int, out: FloatArray, to: int, other: FloatArray, n: int, b: Five) -> Five:
    """Do the same by five steps."""
    target, factor, at = out[to : to + n], other[to : to + n], at + to
    x0, x1, x2, x3 = x[at : at + n], x[at + 1 : at + 1 + n], x[at + 2 : at + 2 + n], x[at + 3 : at + 3 + n]
    x4 = x[at + 4 : at + 4 + n]
    d0 = d1 = d2 = d3 = d4 = 0.0
    for k in range(n):
        target[k] += b[0] * x0[k] + b[1] * x1[k] + b[2] * x2[k] + b[3] * x3[k] + b[4] * x4[k]
        d0 += factor[k] * x0[k]
        d1 += factor[k] * x1[k]
        d2 += factor[k] * x2[k]
        d3 += factor[k] * x3[k]
        d4 += factor[k] * x4[k]
    return d0, d1, d2, d3, d4


@inner
def _groups(first: int, last: int) -> tuple[int, int]:
    """Return into how many groups of five or four the coefficients of a row are put, and how many of them have five.

    Only the last can have fewer than four, the rest of it zeros. Windows of base 5 have nine values, or ten.
    """
    size = last + 1 - first
    groups = (size + 4) // 5
    return groups, max(0, size - 4 * groups)


@inner
def _pack(x: FloatArray, arena: FloatArray, at: int, box: Box, row: int, column: int, rows: int, columns: int) -> int:
    """Copy the rows and columns from (row, column) on into a scratch vector, zeros where there are none; return the stride.

    The zeros right of one row serve as those left of the next.
    """
    stride = columns - min(max(0, -column), max(0, column + columns - box[3]))
    fill(x, ZERO, (rows - 1) * stride + columns + GUARD, 0.0)
    crop(arena, at, box, (row, column), x, ZERO, stride, (ZERO, ZERO, rows, columns))
    return stride


@inner
def _range(arena: FloatArray, at: int, width: int) -> tuple[int, int]:
    """Return the first and the last column of a row that is not zero; the last is before the first where all are."""
    first, last = 0, width - 1
    while first <= last and arena[at + first] == 0.0:
        first += 1
    while last >= first and arena[at + last] == 0.0:
        last -= 1
    return first, last


@inner
def _rows(box: Box, row: int, shift: int, rows: int, columns: int, stride: int) -> tuple[int, int]:
    """Return where a result begins and how long it is, if only the rows count that meet a row of the packed factor.

    `row` is the first packed row of that factor's box, and `shift` the row of the other factor; beyond, all is zero. For
    narrow windows, such as those of counts published as 0, this is half of all rows.
    """
    first = max(0, max(0, -row) - shift)
    last = min(rows, box[2] - row - shift)
    return first * stride, (last - 1 - first) * stride + columns if first < last else 0


@inner
def convolve(
    arena: FloatArray, first_at: int, one_box: Box, second_at: int, two_box: Box, to: int, to_box: Box, scratch: FloatArray
) -> float:
    """Put the distribution of the sum of two independent pairs into a box; return 0 if nothing falls into it."""
    if one_box[2] * one_box[3] < two_box[2] * two_box[3]:
        first_at, second_at, one_box, two_box = second_at, first_at, two_box, one_box
    x, out = scratch[0], scratch[1]
    height, width = two_box[2], two_box[3]
    row = to_box[0] - one_box[0] - two_box[0] - height + 1
    column = to_box[1] - one_box[1] - two_box[1] - width + 1
    stride = _pack(x, arena, first_at, one_box, row, column, to_box[2] + height - 1, to_box[3] + width - 1)
    n = (to_box[2] - 1) * stride + to_box[3]
    fill(out, ZERO, n, 0.0)
    for r in range(height):
        start = second_at + (height - 1 - r) * width
        first, last = _range(arena, start, width)
        begin, size = _rows(one_box, row, r, to_box[2], to_box[3], stride)
        if size == 0:
            continue
        # The smaller factor is read backwards.
        c, shift = start + last, r * stride + width - 1 - last
        groups, fives = _groups(first, last)
        for g in range(groups):
            if g < fives:
                b = arena[c - 4 : c + 1]
                _spread_five(x, shift, out, begin, size, (b[4], b[3], b[2], b[1], b[0]))
                c, shift = c - 5, shift + 5
            else:
                left = c - start - first
                b1 = arena[c - 1] if left >= 1 else 0.0
                b2 = arena[c - 2] if left >= 2 else 0.0
                b3 = arena[c - 3] if left >= 3 else 0.0
                _spread(x, shift, out, begin, size, (arena[c], b1, b2, b3))
                c, shift = c - 4, shift + 4
    crop(out, ZERO, (ZERO, ZERO, to_box[2], stride), (ZERO, ZERO), arena, to, to_box[3], to_box)
    return scale(arena, to, to_box[2] * to_box[3])


@inner
def correlate(
    arena: FloatArray, known: int, known_box: Box, left: Factor, right: Factor, scratch: FloatArray
) -> tuple[int, int]:
    """Put down what is known of one pair if something is known of its sum with another, and the reverse.

    Where a factor is zero, nothing is worked out for it: that pair is impossible anyway. Returns how often each result was
    halved.
    """
    swapped = left[1][2] * left[1][3] < right[1][2] * right[1][3]
    (first_at, one_box, to_one), (second_at, two_box, to_two) = (right, left) if swapped else (left, right)
    x, out, other = scratch[0], scratch[1], scratch[2]
    height, width = two_box[2], two_box[3]
    row = one_box[0] + two_box[0] - known_box[0]
    column = one_box[1] + two_box[1] - known_box[1]
    stride = _pack(x, arena, known, known_box, row, column, one_box[2] + height - 1, one_box[3] + width - 1)
    n = (one_box[2] - 1) * stride + one_box[3]
    fill(out, ZERO, n, 0.0)
    fill(other, ZERO, n, 0.0)
    crop(arena, first_at, one_box, (ZERO, ZERO), other, ZERO, stride, one_box)
    fill(arena, to_two, height * width, 0.0)
    for r in range(height):
        start, goal = second_at + r * width, to_two + r * width
        first, last = _range(arena, start, width)
        begin, size = _rows(known_box, row, r, one_box[2], one_box[3], stride)
        if size == 0:
            continue
        c, shift = first, r * stride + first
        groups, fives = _groups(first, last)
        for g in range(groups):
            if g < fives:
                b, to = arena[start + c : start + c + 5], arena[goal + c : goal + c + 5]
                b5 = b[0], b[1], b[2], b[3], b[4]
                to[0], to[1], to[2], to[3], to[4] = _gather_five(x, shift, out, begin, other, size, b5)
                c, shift = c + 5, shift + 5
            else:
                b1 = arena[start + c + 1] if c + 1 <= last else 0.0
                b2 = arena[start + c + 2] if c + 2 <= last else 0.0
                b3 = arena[start + c + 3] if c + 3 <= last else 0.0
                sums = _gather(x, shift, out, begin, other, size, (arena[start + c], b1, b2, b3))
                for k in range(min(4, last + 1 - c)):
                    arena[goal + c + k] = sums[k]
                c, shift = c + 4, shift + 4
    crop(out, ZERO, (ZERO, ZERO, one_box[2], stride), (ZERO, ZERO), arena, to_one, one_box[3], one_box)
    halved = halvings(scale(arena, to_one, one_box[2] * one_box[3]))
    other_halved = halvings(scale(arena, to_two, height * width))
    return (other_halved, halved) if swapped else (halved, other_halved)
