"""Families of areas: messages between areas, each of which is one exact block (loopy belief propagation).

Every area works out the distributions of its cells from all it knows, its own sums among it. Of each cell that has no
parts, what an area knows apart from what the family told it is then added up over the family: the parent is told
how its children's counts add up, each child what the parent and the other children leave to it. So it goes for some rounds.

By themselves such messages settle quickly for cells without parts, slowly for totals: that children's totals are to
add up to the parent's shows in each of their parts only a little. So after every round totals lean on their parts: if the
children's add up to more than the parent's, on average, all messages about their parts are tilted so that they no longer
do. What is tilted cancels wherever the counts add up; so only the way changes, not where it leads.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from unround.batch.compiled import ZERO, inner, kernel
from unround.batch.evidence import evidence_of, plain
from unround.batch.forest import HOME, Forest, Table, forest_of
from unround.batch.room import BELIEF, Room, arrange, room_for
from unround.batch.summary import is_linked, list_own, marginal, put_chances, summary
from unround.batch.sweeps import Evidence, down, set_local, up
from unround.batch.threads import in_threads
from unround.batch.types import Distributions, Ints, Layout, PriorTable
from unround.infer.bounds import Equations
from unround.linked.bounds import Rows
from unround.linked.kin import in_own_order, pieces_of
from unround.linked.weights import Listed
from unround.mechanisms.base import BoolArray, FloatArray

ROUNDS = 6
"""Rounds of messages: enough for totals to agree at all levels of ages by sex; see `docs/linked.md`."""

LEAST = 1e-9
"""No message says that a count is less likely than this share of the likeliest: what is ruled out is in the bounds."""

LEAN = 0.7
"""How much of what totals are off is made up for at a time: totals of several levels share their parts."""

FARTHEST = 2.0
"""Standard deviations by which totals are moved at a time, at most."""


class _Families(NamedTuple):
    """Families that share no area with others, piece by piece.

    The areas of piece p are `areas[first_area[p]:first_area[p + 1]]`, those from `first_head[p]` on with children; its
    families are those from `first_house[p]` on; the rows of family f are `rows[first[f]:first[f + 1]]`, the parent's first.
    """

    first_area: Table
    first_head: Table
    areas: Table
    first_house: Table
    first: Table
    rows: Table


class _Totals(NamedTuple):
    """Totals that lean on their parts: in turn t those from `first[t]` on; `cells[begin[i]:begin[i + 1]]` are parts."""

    first: Table
    columns: Table
    begin: Table
    cells: Table


class _Cells(NamedTuple):
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


class _Told(NamedTuple):
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


def exchange(
    layout: Layout,
    listed: Listed,
    prior: PriorTable | None,
    active: BoolArray | None,
    families: dict[int, Rows],
    columns: Rows,
    rounds: int = ROUNDS,
) -> tuple[Distributions, FloatArray]:
    """Send messages within all families at once.

    Parameters
    ----------
    layout, prior, active
        As for `posteriors`, for the areas at hand. Of parents, the children's prior says all that there is to say
        beforehand: they have none of their own.
    listed : Listed
        What is known of their cells. All areas must be in families.
    families : dict
        The rows of the children, by the row of the parent.
    columns : array
        The cells that messages are about.
    rounds : int
        How often.

    Returns
    -------
    Distributions, array
        What is known of every cell in the end; and by which factor the families changed the weights of counts.
    """
    areas, number = listed.low.shape
    heads = np.zeros(areas, dtype=np.bool_)
    heads[list(families)] = True
    weights = listed.weights if prior is None else listed.without_prior(prior, heads)
    houses = _houses(listed, families, heads)
    forest = forest_of(layout)
    windows = listed.windows(weights)
    begin = np.concatenate([[0], np.cumsum(listed.width.sum(axis=1))])
    cells = _Cells(
        evidence_of(windows, prior, number, len(forest.nodes)),
        plain(listed.low, np.int32),
        plain(listed.high, np.int32),
        begin,
        listed.start,
        listed.width,
        np.ones((1, len(layout.equations)), dtype=np.bool_) if active is None else plain(active, np.bool_),
    )
    told = _Told(
        np.ones((2, weights.size)),
        np.ones((2, weights.size)),
        np.zeros((areas, number)),
        np.zeros((areas, number)),
        np.zeros(weights.size),
    )
    most = int(listed.width.max(initial=1)) * (1 + int(np.diff(houses.first).max(initial=1)))
    room_needed = int(np.diff(begin).max(initial=1))
    totals = _leaning(layout.equations, tuple(columns.tolist()))

    def job(first: int, last: int) -> None:
        spare = np.empty((2, most)), np.empty(room_needed)
        _talk(first, last, forest, room_for(forest), cells, houses, columns, totals, rounds, *spare, told)

    in_threads(job, len(houses.first_head), fewest=2)
    return Distributions(listed.low, listed.high, listed.start, told.chances), told.messages[0] * told.messages[1]


def without_parts(layout: Layout, linked: BoolArray) -> Rows:
    """Return the columns that add up across areas and have no parts: messages are about these."""
    totals = {total for total, _ in layout.equations}
    return np.array([column for column in np.flatnonzero(linked).tolist() if column not in totals], dtype=np.int64)


def _houses(listed: Listed, families: dict[int, Rows], heads: BoolArray) -> _Families:
    """Sort areas and families by piece; parents after those who have no children."""
    piece = pieces_of(families, len(listed.low))
    areas = np.lexsort((heads, piece))
    houses = sorted(families, key=lambda parent: int(piece[parent]))
    members = [[parent, *in_own_order(families[parent], listed.low, listed.high)] for parent in houses]
    every = np.arange(int(piece.max(initial=-1)) + 1)
    first_area = np.searchsorted(piece[areas], [*every, len(every)])
    return _Families(
        first_area,
        first_area[1:] - np.bincount(piece[heads], minlength=len(every)),
        areas,
        np.searchsorted(piece[houses], [*every, len(every)]),
        np.cumsum([0, *map(len, members)]).astype(np.int64),
        np.array([row for family in members for row in family], dtype=np.int64),
    )


@lru_cache(maxsize=16)
def _leaning(equations: Equations, columns: tuple[int, ...]) -> _Totals:
    """Sort totals by turns: those that have no parts in common take the same turn, large ones first."""
    parts: dict[int, frozenset[int]] = {}
    split = dict(reversed(equations))

    def parts_of(column: int, above: frozenset[int]) -> frozenset[int]:
        if column not in split or column in above:
            return frozenset([column])
        if column not in parts:
            parts[column] = frozenset().union(*(parts_of(one, above | {column}) for one in split[column]))
        return parts[column]

    turns: list[list[int]] = []
    told = set(columns)
    totals = [total for total in split if len(parts_of(total, frozenset())) > 1 and parts[total] <= told]
    for total in sorted(totals, key=lambda one: (-len(parts[one]), one)):
        for turn in turns:
            # Much smaller ones have a turn of their own: they move once the large ones have moved.
            if len(parts[turn[0]]) < 2.5 * len(parts[total]) and not any(parts[total] & parts[one] for one in turn):
                turn.append(total)
                break
        else:
            turns.append([total])
    order = [total for turn in turns for total in turn]
    return _Totals(
        np.cumsum([0, *map(len, turns)]).astype(np.int64),
        np.array(order, dtype=np.int64),
        np.cumsum([0, *(len(parts[total]) for total in order)]).astype(np.int64),
        np.array([cell for total in order for cell in sorted(parts[total])], dtype=np.int64),
    )


@kernel
def _talk(
    first: int,
    last: int,
    forest: Forest,
    room: Room,
    cells: _Cells,
    houses: _Families,
    columns: Table,
    totals: _Totals,
    rounds: int,
    spare: FloatArray,
    weights: FloatArray,
    told: _Told,
) -> None:
    """Let some pieces exchange messages, and write down what every area knows in the end."""
    arena, scratch = np.empty(1 << 16), np.empty((3, 1 << 13))
    start = np.zeros((1, cells.low.shape[1]), dtype=np.int64)
    given, turns = cells.evidence, len(totals.first) - 1
    for p in range(first, last):
        longest = 0
        for f in range(houses.first_house[p], houses.first_house[p + 1]):
            longest = max(longest, houses.first[f + 1] - houses.first[f])
        sums = np.zeros((longest, spare.shape[1]))
        for turn in range(rounds + 1):
            at_end = turn == rounds
            leaning = turn % turns if turns else 0
            # Children first, then parents, who hear at once what these have to say: half as many rounds do.
            for half in range(2):
                from_, to = houses.first_area[p], houses.first_head[p]
                if half == 1:
                    from_, to = to, houses.first_area[p + 1]
                for i in range(from_, to):
                    a = houses.areas[i]
                    low, high = cells.low[a], cells.high[a]
                    own = Evidence(
                        cells.low[a : a + 1],
                        start,
                        weights,
                        given.prior_offset,
                        given.prior_size,
                        given.prior_weights,
                        given.draws,
                    )
                    _hear(cells, told.messages, a, start[0], weights)
                    use = cells.holds[a if len(cells.holds) > 1 else 0]
                    size, needed, _ = arrange(forest, room, low, high, use, 1)
                    if size > len(arena):
                        arena = np.empty(size + size // 4)
                    if needed > scratch.shape[1]:
                        scratch = np.empty((3, 2 * needed))
                    if (
                        size < 0
                        or not set_local(forest, room, arena, own, ZERO, low, high)
                        or not up(forest, room, arena, scratch)
                        or not down(forest, room, arena, scratch, low, high)
                    ):
                        continue
                    if at_end:
                        for c in range(len(low)):
                            if cells.start[a, c] >= 0:
                                begin, length = _known(forest, room, arena, own, c, low, high, scratch[0])
                                put_chances(scratch[0], begin, length, told.chances, cells.start[a, c], int(low[c]))
                        continue
                    for c in columns:
                        if cells.start[a, c] >= 0:
                            begin, length = _known(forest, room, arena, own, c, low, high, scratch[0])
                            _set_apart(told, cells.start[a, c], cells.width[a, c], begin - low[c], length, scratch[0])
                    for k in range(totals.first[leaning], totals.first[leaning + 1] if turns else 0):
                        c = totals.columns[k]
                        told.variance[a, c] = math.nan
                        if cells.start[a, c] >= 0:
                            begin, length = _known(forest, room, arena, own, c, low, high, scratch[0])
                            _, _, told.mean[a, c], spread = summary(scratch[0], begin, length)
                            told.variance[a, c] = spread**2
                for f in range(houses.first_house[p], houses.first_house[p + 1] if not at_end else 0):
                    _tell(houses.rows[houses.first[f] : houses.first[f + 1]], cells, columns, told, sums, spare)
            if turns and not at_end:
                for f in range(houses.first_house[p], houses.first_house[p + 1]):
                    rows = houses.rows[houses.first[f] : houses.first[f + 1]]
                    for k in range(totals.first[leaning], totals.first[leaning + 1]):
                        parts = totals.cells[totals.begin[k] : totals.begin[k + 1]]
                        _lean(rows, cells, totals.columns[k], parts, told)


@inner
def _hear(cells: _Cells, messages: FloatArray, area: int, start: Table, weights: FloatArray) -> None:
    """Put together what is known of an area's cells by themselves and what its families told it."""
    begin = cells.begin[area]
    for c in range(len(start)):
        start[c] = cells.start[area, c] - begin if cells.start[area, c] >= 0 else -1
    for k in range(begin, cells.begin[area + 1]):
        weights[k - begin] = cells.evidence.weights[k] * messages[0, k] * messages[1, k]


@inner
def _known(
    forest: Forest, room: Room, arena: FloatArray, own: Evidence, column: int, low: Ints, high: Ints, to: FloatArray
) -> tuple[int, int]:
    """Put the weights of a cell's counts, given all of its area, into a vector; return the first and how many."""
    if low[column] < high[column] and is_linked(forest, room, column):
        return marginal(forest, room, arena, room.nodes[forest.homes[column, HOME], BELIEF], column, low, high, to)
    list_own(own, ZERO, column, int(low[column]), int(high[column]), to)
    return int(low[column]), int(high[column]) - int(low[column]) + 1


@inner
def _set_apart(told: _Told, start: int, width: int, shift: int, length: int, weights: FloatArray) -> None:
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
def _set(message: FloatArray, start: int, width: int) -> None:
    """Bring the largest weight of a message to 1, and none below `LEAST`."""
    most = 0.0
    for k in range(start, start + width):
        most = max(most, message[k])
    for k in range(start, start + width):
        message[k] = max(message[k] / most, LEAST) if most > 0.0 else 1.0


@inner
def _lean(rows: Table, cells: _Cells, total: int, parts: Table, told: _Told) -> None:
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
def _tell(rows: Table, cells: _Cells, columns: Table, told: _Told, sums: FloatArray, spare: FloatArray) -> None:
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
