"""Loopy belief propagation between the areas of a family, each area being one exact block (Murphy, Weiss and Jordan 1999).

In every round each area computes its exact beliefs by sum-product, given its own table and the messages it has received.
Its cavity distributions (the beliefs with the incoming message divided out) of all cells without parts are then combined
over the family: the parent receives the distribution of the sum of its children, and each child what the parent and the
other children leave for it.

Messages about cells without parts converge quickly, totals slowly: that the children's totals must add up to the parent's
shows only a little in each of the parts. So after every round messages about the parts of a total are tilted exponentially:
if the children's means add up to more than the parent's, until they no longer do. The tilts cancel wherever the counts
add up, so they speed up convergence without changing the fixed point.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from unround.engines.linked_weights import CountWeights
from unround.engines.marginals import belief_of, put_probabilities, summary
from unround.engines.messages import (
    Buffers,
    Here,
    arrange,
    buffers_for,
    downward_pass,
    make_room,
    set_local_evidence,
    upward_pass,
)
from unround.evidence.block import Distributions
from unround.evidence.cells import BlockArrays, Evidence
from unround.jit import ZERO, in_threads, inner, kernel
from unround.mechanisms.base import BoolArray, FloatArray
from unround.sums.compiled import CompiledSums, Forest, Table, forest_of
from unround.sums.families import Rows, pieces_of
from unround.sums.forest import Equations

ROUNDS = 6
"""Rounds of messages: enough for totals to agree at all levels of ages by sex; see `docs/linked-methods.md`."""

LEAST = 1e-9
"""Floor of a message, relative to its largest weight: only bounds rule a count out."""

TILT = 0.7
"""Share of a total's discrepancy that one tilt removes (damping): totals of several levels share their parts."""

FARTHEST = 2.0
"""The most standard deviations by which one tilt moves a total."""


class _FamilyPieces(NamedTuple):
    """Families grouped into connected pieces: no piece shares an area with another.

    The areas of piece p are `areas[first_area[p]:first_area[p + 1]]`, those from `first_head[p]` on with children; its
    families are those from `first_family[p]` on; the rows of family f are `rows[first[f]:first[f + 1]]`, the parent's first.
    """

    first_area: Table
    first_head: Table
    areas: Table
    first_family: Table
    first: Table
    rows: Table


class TiltSchedule(NamedTuple):
    """Which totals are tilted when: those of turn t start at `columns[first[t]]`.

    The parts of total i are `cells[begin[i]:begin[i + 1]]`; it is their sum by `equations[origin[i]:origin[i + 1]]`.
    """

    first: Table
    columns: Table
    begin: Table
    cells: Table
    origin: Table
    equations: Table


class _Rounds(NamedTuple):
    """How many rounds there are, the columns that messages are about, which totals are tilted when, and sizes of buffers.

    `longest` is the room for the sum of a family's children, `most_weights` that for all weights of an area.
    """

    rounds: int
    columns: Table
    totals: TiltSchedule
    longest: int
    most_weights: int


class _Due(NamedTuple):
    """The columns that messages are about, and the totals whose turn it is."""

    columns: Table
    totals: Table


class BlockCells(NamedTuple):
    """The kernel's input for all areas: the weights of area a start at `begin[a]`; those of a cell, `width`, at `start`."""

    block: BlockArrays
    begin: Table
    start: Table
    width: Table


class Messages(NamedTuple):
    """The kernel's state and result.

    An area may be a child in one family and the parent of another, so it has two incoming messages and two cavity
    distributions: [0] as a child, [1] as a parent. `mean` and `variance` are those of the totals whose turn it is; `beliefs`
    are the final distributions.
    """

    incoming: FloatArray
    cavity: FloatArray
    mean: FloatArray
    variance: FloatArray
    beliefs: FloatArray


def exchange_messages(
    listed: CountWeights, families: dict[int, Rows], linked: BoolArray, rounds: int = ROUNDS
) -> tuple[Distributions, FloatArray]:
    """Run loopy belief propagation in all families at once.

    The final beliefs, zero in areas where no counts add up; and the product of the incoming messages, which is the
    factor by which families changed the weights of counts.
    """
    areas, number = listed.low.shape
    heads = np.zeros(areas, dtype=np.bool_)
    heads[list(families)] = True
    block = listed.block()
    if block.prior is not None:
        block = replace(block, prior=block.prior.without(heads, linked))
    pieces = _family_pieces(listed, families, heads)
    forest, size = forest_of(block.compiled), listed.weights.size
    cells = BlockCells(block.arrays(), listed.begin, listed.start, listed.width)
    unknown = np.full((areas, number), np.nan)
    messages = Messages(np.ones((2, size)), np.ones((2, size)), unknown, unknown.copy(), np.zeros(size))
    columns = without_parts(block.compiled, linked)
    plan = _Rounds(
        rounds,
        columns,
        _tilt_schedule(block.compiled.equations, tuple(columns.tolist())),
        int(listed.width.max(initial=1)) * (1 + int(np.diff(pieces.first).max(initial=1))),
        int(np.diff(listed.begin).max(initial=1)),
    )

    def job(first: int, last: int) -> None:
        _propagate(first, last, forest, buffers_for(forest), cells, pieces, plan, messages)

    in_threads(job, len(pieces.first_head), fewest=2)
    factor = messages.incoming[0] * messages.incoming[1]
    return Distributions(listed.low, listed.high, listed.start, messages.beliefs), factor


def without_parts(compiled: CompiledSums, linked: BoolArray) -> Rows:
    """Return the columns that add up across areas and have no parts: those that messages concern."""
    totals = {total for total, _ in compiled.equations}
    return np.array([column for column in np.flatnonzero(linked).tolist() if column not in totals], dtype=np.int64)


def _family_pieces(listed: CountWeights, families: dict[int, Rows], heads: BoolArray) -> _FamilyPieces:
    """Sort areas and families by piece, areas without children before parents."""
    piece = pieces_of(families, len(listed.low))
    areas = np.lexsort((heads, piece))
    pieces = sorted(families, key=lambda parent: int(piece[parent]))
    members = [[parent, *listed.in_own_order(families[parent])] for parent in pieces]
    every = np.arange(int(piece.max(initial=-1)) + 1)
    first_area = np.searchsorted(piece[areas], [*every, len(every)])
    return _FamilyPieces(
        first_area,
        first_area[1:] - np.bincount(piece[heads], minlength=len(every)),
        areas,
        np.searchsorted(piece[pieces], [*every, len(every)]),
        np.cumsum([0, *map(len, members)]).astype(np.int64),
        np.array([row for family in members for row in family], dtype=np.int64),
    )


@lru_cache(maxsize=16)
def _tilt_schedule(equations: Equations, columns: tuple[int, ...]) -> TiltSchedule:
    """Schedule totals: those without a common part take the same turn, large totals first."""
    parts: dict[int, frozenset[int]] = {}
    sums: dict[int, frozenset[int]] = {}
    split = {total: number for number, (total, _) in reversed(list(enumerate(equations)))}

    def find_parts(column: int, above: frozenset[int]) -> None:
        if column in parts:
            return
        parts[column], sums[column] = frozenset([column]), frozenset()
        if column in split and column not in above:
            below = equations[split[column]][1]
            for part in below:
                find_parts(part, above | {column})
            parts[column] = frozenset().union(*(parts[part] for part in below))
            sums[column] = frozenset([split[column]]).union(*(sums[part] for part in below))

    for total in split:
        find_parts(total, frozenset())
    turns: list[list[int]] = []
    concerned = set(columns)
    totals = [total for total in split if len(parts[total]) > 1 and parts[total] <= concerned]
    for total in sorted(totals, key=lambda part: (-len(parts[part]), part)):
        for turn in turns:
            # Much smaller totals get a turn of their own, after the large ones have moved.
            if len(parts[turn[0]]) < 2.5 * len(parts[total]) and not any(parts[total] & parts[part] for part in turn):
                turn.append(total)
                break
        else:
            turns.append([total])
    order = [total for turn in turns for total in turn]
    turns = turns or [[]]  # there is always a turn, if only an empty one
    return TiltSchedule(
        np.cumsum([0, *map(len, turns)]).astype(np.int64),
        np.array(order, dtype=np.int64),
        np.cumsum([0, *(len(parts[total]) for total in order)]).astype(np.int64),
        np.array([cell for total in order for cell in sorted(parts[total])], dtype=np.int64),
        np.cumsum([0, *(len(sums[total]) for total in order)]).astype(np.int64),
        np.array([number for total in order for number in sorted(sums[total])], dtype=np.int64),
    )


# -- compiled --------------------------------------------------------------------------------------------------------


@inner
def _multiply_messages(cells: BlockCells, incoming: FloatArray, area: int, start: Table, weights: FloatArray) -> None:
    """Multiply the local evidence of an area's cells by the incoming messages."""
    begin = cells.begin[area]
    for c in range(len(start)):
        start[c] = cells.start[area, c] - begin if cells.start[area, c] >= 0 else -1
    for k in range(begin, cells.begin[area + 1]):
        weights[k - begin] = cells.block.evidence.weights[k] * incoming[0, k] * incoming[1, k]


@inner
def _divide_out_messages(messages: Messages, start: int, width: int, shift: int, length: int, weights: FloatArray) -> None:
    """Set the cavity distributions of a cell: its belief divided by either incoming message."""
    everything = 0.0
    for k in range(length):
        everything += weights[k]
    for k in range(start, start + width):
        messages.cavity[0, k] = messages.cavity[1, k] = 0.0
    for k in range(length):
        at, belief = start + shift + k, weights[k] / everything if everything > 0.0 else 1.0
        messages.cavity[0, at] = belief / messages.incoming[0, at]
        messages.cavity[1, at] = belief / messages.incoming[1, at]


@inner
def _record_cavities(here: Here, area: int, complete: bool, cells: BlockCells, due: _Due, messages: Messages) -> None:
    """Record an area's cavity distributions, and mean and variance of the totals whose turn it is.

    Totals count only if no link of the area was cut: otherwise they would not move with their parts.
    """
    spare = here.scratch[0]
    for c in due.columns:
        if cells.start[area, c] >= 0:
            begin, length = belief_of(here, c, spare)
            _divide_out_messages(messages, cells.start[area, c], cells.width[area, c], begin - here.low[c], length, spare)
    for c in due.totals:
        messages.variance[area, c] = math.nan
        if complete and cells.start[area, c] >= 0:
            begin, length = belief_of(here, c, spare)
            _, _, messages.mean[area, c], spread = summary(spare, begin, length)
            messages.variance[area, c] = spread**2


@inner
def _record_beliefs(here: Here, start: Table, beliefs: FloatArray) -> None:
    """Record the final beliefs of an area."""
    for c in range(len(start)):
        if start[c] >= 0:
            begin, length = belief_of(here, c, here.scratch[0])
            put_probabilities(here.scratch[0], begin, length, beliefs, start[c], int(here.low[c]))


@inner
def _scale_message(message: FloatArray, start: int, width: int) -> None:
    """Scale the largest weight of a message to 1, with `LEAST` as a floor."""
    most = 0.0
    for k in range(start, start + width):
        most = max(most, message[k])
    for k in range(start, start + width):
        message[k] = max(message[k] / most, LEAST) if most > 0.0 else 1.0


@inner
def _sums_hold(rows: Table, holds: BoolArray, equations: Table) -> bool:
    """Return whether sums hold in every area of a family."""
    for row in rows:
        for e in equations:
            if not holds[row if len(holds) > 1 else 0, e]:
                return False
    return True


@inner
def _tilt(rows: Table, cells: BlockCells, total: int, parts: Table, messages: Messages) -> None:
    """Tilt messages about the parts of a total so that the children's totals add up to the parent's on average."""
    parent = rows[0]
    off, variance = -messages.mean[parent, total], messages.variance[parent, total]
    for j in range(1, len(rows)):
        off += messages.mean[rows[j], total]
        variance += messages.variance[rows[j], total]
    if not variance > 0.0:
        return
    most = FARTHEST / variance**0.5
    tilt = min(max(-TILT * off / variance, -most), most)
    for c in parts:
        for row in rows:
            if cells.start[row, c] < 0:
                break
        else:
            for row in rows:
                start, width = cells.start[row, c], cells.width[row, c]
                message = messages.incoming[1 if row == parent else 0]
                factor, step = 1.0, math.exp(-tilt if row == parent else tilt)
                for k in range(start, start + width):
                    message[k] *= factor
                    factor *= step
                _scale_message(message, start, width)


@inner
def _send_messages(
    rows: Table, cells: BlockCells, columns: Table, messages: Messages, sums: FloatArray, spare: FloatArray
) -> None:
    """Compute the new messages of a family, by convolution and correlation."""
    number, parent = len(rows) - 1, rows[0]
    for c in columns:
        for row in rows:
            if cells.start[row, c] < 0:
                break
        else:
            # sums[j] is the distribution of the sum of the first j children, above their least counts.
            sums[0, 0] = 1.0
            length, least = 1, 0
            for j in range(number):
                row = rows[1 + j]
                start, width = cells.start[row, c], cells.width[row, c]
                most = 0.0
                for s in range(length + width - 1):
                    sums[j + 1, s] = 0.0
                for k in range(width):
                    cavity = messages.cavity[0, start + k]
                    for s in range(length):
                        sums[j + 1, s + k] += cavity * sums[j, s]
                length += width - 1
                least += cells.block.low[row, c]
                for s in range(length):
                    most = max(most, sums[j + 1, s])
                if most > 0.0:
                    for s in range(length):
                        sums[j + 1, s] /= most
            start, width = cells.start[parent, c], cells.width[parent, c]
            shift = cells.block.low[parent, c] - least
            known, other = spare[0], spare[1]
            for s in range(length):
                known[s] = 0.0
            for k in range(width):
                inside = 0 <= shift + k < length
                messages.incoming[1, start + k] = sums[number, shift + k] if inside else 0.0
                if inside:
                    known[shift + k] = messages.cavity[1, start + k]
            _scale_message(messages.incoming[1], start, width)
            # `known` is the message about the sum of the first j children, from the parent and the children after them.
            for j in range(number - 1, -1, -1):
                row = rows[1 + j]
                start, width = cells.start[row, c], cells.width[row, c]
                before = length - width + 1
                for s in range(before):
                    other[s] = 0.0
                for k in range(width):
                    message = 0.0
                    cavity = messages.cavity[0, start + k]
                    for s in range(before):
                        message += sums[j, s] * known[s + k]
                        other[s] += cavity * known[s + k]
                    messages.incoming[0, start + k] = message
                _scale_message(messages.incoming[0], start, width)
                length = before
                most = 0.0
                for s in range(length):
                    most = max(most, other[s])
                for s in range(length):
                    known[s] = other[s] / most if most > 0.0 else 1.0


@kernel
def _propagate(
    first: int,
    last: int,
    forest: Forest,
    buffers: Buffers,
    cells: BlockCells,
    pieces: _FamilyPieces,
    plan: _Rounds,
    messages: Messages,
) -> None:
    """Run all rounds in a range of pieces, and record the final beliefs."""
    rounds, columns, totals, _, _ = plan
    spare, weights = np.empty((2, plan.longest)), np.empty(plan.most_weights)
    arena, scratch = np.empty(1 << 16), np.empty((3, 1 << 13))
    block, turns = cells.block, len(totals.first) - 1
    start, given = np.zeros((1, block.low.shape[1]), dtype=np.int64), block.evidence
    for p in range(first, last):
        longest = 0
        for f in range(pieces.first_family[p], pieces.first_family[p + 1]):
            longest = max(longest, pieces.first[f + 1] - pieces.first[f])
        sums = np.zeros((longest, spare.shape[1]))
        for turn in range(rounds + 1):
            at_end, step = turn == rounds, turn % turns
            due = _Due(columns, totals.columns[totals.first[step] : totals.first[step + 1]])
            families = range(pieces.first_family[p], pieces.first_family[p + 1] if not at_end else 0)
            # Children first, then parents, who receive the new messages at once: this halves the number of rounds.
            for half in range(2):
                from_, to = pieces.first_area[p], pieces.first_head[p]
                if half == 1:
                    from_, to = to, pieces.first_area[p + 1]
                for i in range(from_, to):
                    a = pieces.areas[i]
                    evidence = Evidence(
                        block.low[a : a + 1],
                        start,
                        weights,
                        given.prior_low[a : a + 1],
                        given.prior_start[a : a + 1],
                        given.prior_weights,
                        given.keys,
                    )
                    _multiply_messages(cells, messages.incoming, a, start[0], weights)
                    use = block.holds[a if len(block.holds) > 1 else 0]
                    size, needed, cut = arrange(forest, buffers, block.low[a], block.high[a], use)
                    arena, scratch = make_room(arena, scratch, size, needed)
                    here = Here(forest, buffers, arena, scratch, evidence, ZERO, block.low[a], block.high[a])
                    if size < 0 or not (set_local_evidence(here) and upward_pass(here, False) and downward_pass(here)):
                        continue
                    if at_end:
                        _record_beliefs(here, cells.start[a], messages.beliefs)
                    else:
                        _record_cavities(here, a, cut == 0, cells, due, messages)
                for f in families:
                    _send_messages(pieces.rows[pieces.first[f] : pieces.first[f + 1]], cells, columns, messages, sums, spare)
            for f in families:
                rows = pieces.rows[pieces.first[f] : pieces.first[f + 1]]
                for k in range(totals.first[step], totals.first[step + 1]):
                    if _sums_hold(rows, block.holds, totals.equations[totals.origin[k] : totals.origin[k + 1]]):
                        parts = totals.cells[totals.begin[k] : totals.begin[k + 1]]
                        _tilt(rows, cells, totals.columns[k], parts, messages)
