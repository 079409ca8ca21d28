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

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from unround.batch.evidence import evidence_of, plain
from unround.batch.forest import Forest, Table, forest_of
from unround.batch.jit import ZERO, kernel
from unround.batch.room import Room, arrange, room_for
from unround.batch.sweeps import Evidence, down, set_local, up
from unround.batch.threads import in_threads
from unround.batch.types import CompiledSums, Distributions, PriorTable
from unround.infer.bounds import Equations
from unround.linked.bounds import Rows
from unround.linked.families import pieces_of
from unround.linked.telling import Cells, Told, add_up, hear, lean, tell, write_all, write_down
from unround.linked.weights import Listed
from unround.mechanisms.base import BoolArray, FloatArray

ROUNDS = 6
"""Rounds of messages: enough for totals to agree at all levels of ages by sex; see `docs/linked.md`."""


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


class Totals(NamedTuple):
    """Totals that lean on their parts: in turn t those from `first[t]` on.

    Those of number i are `cells[begin[i]:begin[i + 1]]`, and it is their sum by `equations[origin[i]:origin[i + 1]]`.
    """

    first: Table
    columns: Table
    begin: Table
    cells: Table
    origin: Table
    equations: Table


def exchange(
    compiled: CompiledSums,
    listed: Listed,
    prior: PriorTable | None,
    active: BoolArray | None,
    families: dict[int, Rows],
    linked: BoolArray,
    rounds: int = ROUNDS,
) -> tuple[Distributions, FloatArray]:
    """Send messages within all families at once.

    Parameters
    ----------
    compiled, prior, active
        As for `posteriors`, for the areas at hand. Of parents, the children's prior says all that there is to say
        beforehand: they have none of their own.
    listed : Listed
        What is known of their cells. All areas must be in families.
    families : dict
        The rows of the children, by the row of the parent.
    linked : array of bool
        By column, whether the counts of children add up to that of their parent. Messages are about those without parts.
    rounds : int
        How often.

    Returns
    -------
    Distributions, array
        What is known of every cell in the end, zeros in areas where nothing adds up; and by which factor the families
        changed the weights of counts.
    """
    areas, number = listed.low.shape
    heads = np.zeros(areas, dtype=np.bool_)
    heads[list(families)] = True
    weights = listed.weights if prior is None else listed.without_prior(prior, heads, linked)
    houses = _houses(listed, families, heads)
    forest = forest_of(compiled)
    windows = listed.windows(weights)
    cells = Cells(
        evidence_of(windows, prior, number, len(forest.nodes)),
        plain(listed.low, np.int32),
        plain(listed.high, np.int32),
        listed.begin,
        listed.start,
        listed.width,
        np.ones((1, len(compiled.equations)), dtype=np.bool_) if active is None else plain(active, np.bool_),
    )
    told = Told(
        np.ones((2, weights.size)),
        np.ones((2, weights.size)),
        np.full((areas, number), np.nan),
        np.full((areas, number), np.nan),
        np.zeros(weights.size),
    )
    most = int(listed.width.max(initial=1)) * (1 + int(np.diff(houses.first).max(initial=1)))
    room_needed = int(np.diff(listed.begin).max(initial=1))
    columns = without_parts(compiled, linked)
    totals = _leaning(compiled.equations, tuple(columns.tolist()))

    def job(first: int, last: int) -> None:
        spare = np.empty((2, most)), np.empty(room_needed)
        _talk(first, last, forest, room_for(forest), cells, houses, columns, totals, rounds, *spare, told)

    in_threads(job, len(houses.first_head), fewest=2)
    return Distributions(listed.low, listed.high, listed.start, told.chances), told.messages[0] * told.messages[1]


def without_parts(compiled: CompiledSums, linked: BoolArray) -> Rows:
    """Return the columns that add up across areas and have no parts: messages are about these."""
    totals = {total for total, _ in compiled.equations}
    return np.array([column for column in np.flatnonzero(linked).tolist() if column not in totals], dtype=np.int64)


def _houses(listed: Listed, families: dict[int, Rows], heads: BoolArray) -> _Families:
    """Sort areas and families by piece; parents after those who have no children."""
    piece = pieces_of(families, len(listed.low))
    areas = np.lexsort((heads, piece))
    houses = sorted(families, key=lambda parent: int(piece[parent]))
    members = [[parent, *listed.in_own_order(families[parent])] for parent in houses]
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
def _leaning(equations: Equations, columns: tuple[int, ...]) -> Totals:
    """Sort totals by turns: those that have no parts in common take the same turn, large ones first."""
    parts: dict[int, frozenset[int]] = {}
    sums: dict[int, frozenset[int]] = {}
    split = {total: number for number, (total, _) in reversed(list(enumerate(equations)))}

    def take_apart(column: int, above: frozenset[int]) -> None:
        if column in parts:
            return
        parts[column], sums[column] = frozenset([column]), frozenset()
        if column in split and column not in above:
            below = equations[split[column]][1]
            for one in below:
                take_apart(one, above | {column})
            parts[column] = frozenset().union(*(parts[one] for one in below))
            sums[column] = frozenset([split[column]]).union(*(sums[one] for one in below))

    for total in split:
        take_apart(total, frozenset())
    turns: list[list[int]] = []
    told = set(columns)
    totals = [total for total in split if len(parts[total]) > 1 and parts[total] <= told]
    for total in sorted(totals, key=lambda one: (-len(parts[one]), one)):
        for turn in turns:
            # Much smaller ones have a turn of their own: they move once the large ones have moved.
            if len(parts[turn[0]]) < 2.5 * len(parts[total]) and not any(parts[total] & parts[one] for one in turn):
                turn.append(total)
                break
        else:
            turns.append([total])
    order = [total for turn in turns for total in turn]
    turns = turns or [[]]  # there is always a turn, if only an empty one
    return Totals(
        np.cumsum([0, *map(len, turns)]).astype(np.int64),
        np.array(order, dtype=np.int64),
        np.cumsum([0, *(len(parts[total]) for total in order)]).astype(np.int64),
        np.array([cell for total in order for cell in sorted(parts[total])], dtype=np.int64),
        np.cumsum([0, *(len(sums[total]) for total in order)]).astype(np.int64),
        np.array([number for total in order for number in sorted(sums[total])], dtype=np.int64),
    )


@kernel
def _talk(
    first: int,
    last: int,
    forest: Forest,
    room: Room,
    cells: Cells,
    houses: _Families,
    columns: Table,
    totals: Totals,
    rounds: int,
    spare: FloatArray,
    weights: FloatArray,
    told: Told,
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
            leaning = turn % turns
            waiting = totals.columns[totals.first[leaning] : totals.first[leaning + 1]]
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
                    hear(cells, told.messages, a, start[0], weights)
                    use = cells.holds[a if len(cells.holds) > 1 else 0]
                    size, needed, cut = arrange(forest, room, low, high, use, 1)
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
                        write_all(forest, room, arena, own, a, cells, told, scratch[0])
                    else:
                        write_down(forest, room, arena, own, a, cut == 0, cells, columns, waiting, told, scratch[0])
                for f in range(houses.first_house[p], houses.first_house[p + 1] if not at_end else 0):
                    tell(houses.rows[houses.first[f] : houses.first[f + 1]], cells, columns, told, sums, spare)
            for f in range(houses.first_house[p], houses.first_house[p + 1] if not at_end else 0):
                rows = houses.rows[houses.first[f] : houses.first[f + 1]]
                for k in range(totals.first[leaning], totals.first[leaning + 1]):
                    if add_up(rows, cells.holds, totals.equations[totals.origin[k] : totals.origin[k + 1]]):
                        parts = totals.cells[totals.begin[k] : totals.begin[k + 1]]
                        lean(rows, cells, totals.columns[k], parts, told)
