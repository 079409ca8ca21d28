"""What areas tell each other, compiled: one step of messages within a family at a time. See `loopy`."""

from __future__ import annotations

import math
from typing import NamedTuple

from unround.batch.forest import HOME, Forest, Table
from unround.batch.jit import ZERO, inner
from unround.batch.room import BELIEF, Room
from unround.batch.summary import is_linked, list_own, marginal, put_chances, summary
from unround.batch.sweeps import Evidence
from unround.batch.types import Ints
from unround.mechanisms.base import BoolArray, FloatArray

LEAST = 1e-9
"""No message says that a count is less likely than this share of the likeliest: what is ruled out is in the bounds."""

LEAN = 0.7
"""How much of what totals are off is made up for at a time: totals of several levels share their parts."""

FARTHEST = 2.0
"""Standard deviations by which totals are moved at a time, at most."""


class Cells(NamedTuple):
    """What the kernel is given of all areas: what is known of cells by themselves, bounds, and which sums hold.

    The weights of area a are those from `begin[a]` on; those of one of its cells, `width` of them, from `start` on.
    """

    evidence: Evidence
    low: Ints
    high: Ints
    begin: Table
    start: Table
    width: Table
    holds: BoolArray


class Told(NamedTuple):
    """What the kernel works with, and in the end fills in.

    An area may be a child here and a parent there, so that there are two messages to it, and two things that it
    knows apart from what it was told. `mean` and `variance` are those of the totals whose turn it is; `chances` what is
    known of every cell in the end.
    """

    messages: FloatArray
    apart: FloatArray
    mean: FloatArray
    variance: FloatArray
    chances: FloatArray


@inner
def hear(cells: Cells, messages: FloatArray, area: int, start: Table, weights: FloatArray) -> None:
    """Put together what is known of an area's cells by themselves and what its families told it."""
    begin = cells.begin[area]
    for c in range(len(start)):
        start[c] = cells.start[area, c] - begin if cells.start[area, c] >= 0 else -1
    for k in range(begin, cells.begin[area + 1]):
        weights[k - begin] = cells.evidence.weights[k] * messages[0, k] * messages[1, k]


@inner
def known(
    forest: Forest, room: Room, arena: FloatArray, own: Evidence, column: int, low: Ints, high: Ints, to: FloatArray
) -> tuple[int, int]:
    """Put the weights of a cell's counts, given all of its area, into a vector; return the first and how many."""
    if low[column] < high[column] and is_linked(forest, room, column):
        return marginal(forest, room, arena, room.nodes[forest.homes[column, HOME], BELIEF], column, low, high, to)
    list_own(own, ZERO, column, int(low[column]), int(high[column]), to)
    return int(low[column]), int(high[column]) - int(low[column]) + 1


@inner
def _set_apart(told: Told, start: int, width: int, shift: int, length: int, weights: FloatArray) -> None:
    """Take what an area was told out of what it knows of a cell."""
    everything = 0.0
    for k in range(length):
        everything += weights[k]
    for k in range(start, start + width):
        told.apart[0, k] = told.apart[1, k] = 0.0
    for k in range(length):
        at, one = start + shift + k, weights[k] / everything if everything > 0.0 else 1.0
        told.apart[0, at] = one / told.messages[0, at]
        told.apart[1, at] = one / told.messages[1, at]


@inner
def write_down(
    forest: Forest,
    room: Room,
    arena: FloatArray,
    own: Evidence,
    area: int,
    complete: bool,
    cells: Cells,
    columns: Table,
    totals: Table,
    told: Told,
    spare: FloatArray,
) -> None:
    """Write down what families have to hear of an area: what it knows apart from what they told it, and its totals.

    Of totals, only if no sum was left out of the area: or else they would not move with their parts.
    """
    low, high = cells.low[area], cells.high[area]
    for c in columns:
        if cells.start[area, c] >= 0:
            begin, length = known(forest, room, arena, own, c, low, high, spare)
            _set_apart(told, cells.start[area, c], cells.width[area, c], begin - low[c], length, spare)
    for c in totals:
        told.variance[area, c] = math.nan
        if complete and cells.start[area, c] >= 0:
            begin, length = known(forest, room, arena, own, c, low, high, spare)
            _, _, told.mean[area, c], spread = summary(spare, begin, length)
            told.variance[area, c] = spread**2


@inner
def write_all(
    forest: Forest, room: Room, arena: FloatArray, own: Evidence, area: int, cells: Cells, told: Told, spare: FloatArray
) -> None:
    """Write down all that an area knows in the end."""
    low, high = cells.low[area], cells.high[area]
    for c in range(len(low)):
        if cells.start[area, c] >= 0:
            begin, length = known(forest, room, arena, own, c, low, high, spare)
            put_chances(spare, begin, length, told.chances, cells.start[area, c], int(low[c]))


@inner
def _set(message: FloatArray, start: int, width: int) -> None:
    """Bring the largest weight of a message to 1, and none below `LEAST`."""
    most = 0.0
    for k in range(start, start + width):
        most = max(most, message[k])
    for k in range(start, start + width):
        message[k] = max(message[k] / most, LEAST) if most > 0.0 else 1.0


@inner
def add_up(rows: Table, holds: BoolArray, equations: Table) -> bool:
    """Say whether sums hold in every area of a family."""
    for row in rows:
        for e in equations:
            if not holds[row if len(holds) > 1 else 0, e]:
                return False
    return True


@inner
def lean(rows: Table, cells: Cells, total: int, parts: Table, told: Told) -> None:
    """Tilt messages about the parts of a total such that the children's totals add up to the parent's, on average."""
    parent = rows[0]
    off, variance = -told.mean[parent, total], told.variance[parent, total]
    for j in range(1, len(rows)):
        off += told.mean[rows[j], total]
        variance += told.variance[rows[j], total]
    if not variance > 0.0:
        return
    most = FARTHEST / variance**0.5
    tilt = min(max(-LEAN * off / variance, -most), most)
    for c in parts:
        for row in rows:
            if cells.start[row, c] < 0:
                break
        else:
            for row in rows:
                start, width = cells.start[row, c], cells.width[row, c]
                message = told.messages[1 if row == parent else 0]
                factor, step = 1.0, math.exp(-tilt if row == parent else tilt)
                for k in range(start, start + width):
                    message[k] *= factor
                    factor *= step
                _set(message, start, width)


@inner
def tell(rows: Table, cells: Cells, columns: Table, told: Told, sums: FloatArray, spare: FloatArray) -> None:
    """Work out the new messages of a family."""
    number, parent = len(rows) - 1, rows[0]
    for c in columns:
        for row in rows:
            if cells.start[row, c] < 0:
                break
        else:
            # sums[j] is the distribution of what the first j children add up to, above their least counts.
            sums[0, 0] = 1.0
            length, least = 1, 0
            for j in range(number):
                row = rows[1 + j]
                start, width = cells.start[row, c], cells.width[row, c]
                most = 0.0
                for s in range(length + width - 1):
                    sums[j + 1, s] = 0.0
                for k in range(width):
                    one = told.apart[0, start + k]
                    for s in range(length):
                        sums[j + 1, s + k] += one * sums[j, s]
                length += width - 1
                least += cells.low[row, c]
                for s in range(length):
                    most = max(most, sums[j + 1, s])
                if most > 0.0:
                    for s in range(length):
                        sums[j + 1, s] /= most
            start, width = cells.start[parent, c], cells.width[parent, c]
            shift = cells.low[parent, c] - least
            known, other = spare[0], spare[1]
            for s in range(length):
                known[s] = 0.0
            for k in range(width):
                inside = 0 <= shift + k < length
                told.messages[1, start + k] = sums[number, shift + k] if inside else 0.0
                if inside:
                    known[shift + k] = told.apart[1, start + k]
            _set(told.messages[1], start, width)
            # `known` is what is known of the sum of the first children, if that of all is known as the parent knows it.
            for j in range(number - 1, -1, -1):
                row = rows[1 + j]
                start, width = cells.start[row, c], cells.width[row, c]
                before = length - width + 1
                for s in range(before):
                    other[s] = 0.0
                for k in range(width):
                    heard = 0.0
                    one = told.apart[0, start + k]
                    for s in range(before):
                        heard += sums[j, s] * known[s + k]
                        other[s] += one * known[s + k]
                    told.messages[0, start + k] = heard
                _set(told.messages[0], start, width)
                length = before
                most = 0.0
                for s in range(length):
                    most = max(most, other[s])
                for s in range(length):
                    known[s] = other[s] / most if most > 0.0 else 1.0
