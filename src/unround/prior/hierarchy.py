"""Which counts carry weight of their own: the leaves of the sums, and how leaves split by sex.

A total follows from its parts, so that a weight of its own would count the same people twice. Two cases need care. Where a
total has several partitions (by age, and by marital status), each of them says by itself how large the total is: all but one
of these statements are divided out. And where two cells show the same count, only one of them carries its weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from unround.batch.types import CompiledSums
from unround.infer.plan import TOTAL


class Split(NamedTuple):
    """One sum as the prior sees it: between totals, where it runs through all sexes."""

    total: int
    parts: tuple[int, ...]


class Pair(NamedTuple):
    """A count that is published for both sexes: the columns of the total, of men, and of women."""

    total: int
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The sums that carry probabilities, read from the top.

    Parameters
    ----------
    columns : int
        How many columns there are.
    sums : tuple of Split
        The sums, parallel ones (total, men, women) as one.
    pairs : tuple of Pair
        The counts published by sex whose sexes are joined in one node.
    leaves : tuple of int
        The columns whose counts carry weight in the prior: parts that are no totals; of a pair, the total.
    split : tuple of Pair
        The pairs that split by sex on their own: no sum of pairs below says how.
    halves : tuple of Pair
        Totals of two leaves, and nothing else: they may split as pairs do, if that explains the published counts better.
    repeated : dict
        For columns that head several partitions, how many more than one: so often their own distribution is divided out.
    parent, top : tuple of int
        For every column the total directly above it, and the one at the top; the column itself where there is none.
    """

    columns: int
    sums: tuple[Split, ...]
    pairs: tuple[Pair, ...]
    leaves: tuple[int, ...]
    split: tuple[Pair, ...]
    halves: tuple[Pair, ...]
    repeated: dict[int, int]
    parent: tuple[int, ...]
    top: tuple[int, ...]

    @classmethod
    def of(cls, compiled: CompiledSums) -> Hierarchy:
        """Read the sums that carry probabilities; those that would close a loop do not."""
        sums, pairs, crossed = _read(compiled)
        same = _same_counts(compiled.columns, sums)
        partitions = [one for one in sums if len(one.parts) > 1]
        heads: dict[int, int] = {}
        for one in partitions:
            heads[same[one.total]] = heads.get(same[one.total], 0) + 1
        sexes = {column for pair in pairs for column in (pair.first, pair.second)}
        pair_of = {pair.total: pair for pair in pairs}
        repeated: dict[int, int] = {}
        for column, number in heads.items():
            if number > 1:
                # Where the partitions run through both sexes, it is men and women that are counted several times.
                pair = pair_of.get(column)
                where = (pair.first, pair.second) if pair is not None and crossed[column] else (column,)
                repeated |= dict.fromkeys(where, number - 1)
        parent, top = _above(compiled.columns, sums, pairs, same)
        leaves = tuple(c for c in range(compiled.columns) if same[c] == c and c not in heads and c not in sexes)
        return cls(
            compiled.columns,
            tuple(sums),
            tuple(pairs),
            leaves,
            tuple(pair for pair in pairs if not crossed[pair.total]),
            tuple(
                Pair(one.total, *one.parts)
                for one in partitions
                if len(one.parts) == 2 and heads[same[one.total]] == 1 and set(one.parts) <= set(leaves)
            ),
            repeated,
            parent,
            top,
        )


def _read(compiled: CompiledSums) -> tuple[list[Split], list[Pair], dict[int, int]]:
    """Return the sums, the pairs, and for the total of each pair how many sums of pairs it heads."""
    plan = compiled.plan
    pairs = [Pair(*node.cells) for node in plan.nodes if node.is_pair and not node.copy]
    crossed = {pair.total: 0 for pair in pairs}
    sums = []
    for link, equations in zip(plan.links, compiled.links_of, strict=True):
        total, parts = compiled.equations[equations[0]]
        if link.is_pair:
            total, *rest = (plan.nodes[plan.home[cell][0]].cells[TOTAL] for cell in (total, *parts))
            parts = tuple(rest)
            crossed[total] += 1
        sums.append(Split(total, parts))
    return sums, pairs, crossed


def _same_counts(columns: int, sums: Sequence[Split]) -> list[int]:
    """Return, for every column, the first of the columns that show the same count: sums of one part say so."""
    first = list(range(columns))

    def find(column: int) -> int:
        while first[column] != column:
            column = first[column]
        return column

    for one in sums:
        if len(one.parts) == 1:
            low, high = sorted((find(one.total), find(one.parts[0])))
            first[high] = low
    return [find(column) for column in range(columns)]


def _above(
    columns: int, sums: Sequence[Split], pairs: Sequence[Pair], same: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return, for every column, the total above it and the one at the top; men and women go with their total."""
    up: dict[int, int] = {}
    for one in sums:
        if len(one.parts) > 1:
            for part in one.parts:
                up.setdefault(same[part], same[one.total])
    goes_with = {column: pair.total for pair in pairs for column in (pair.first, pair.second)}
    parents, tops = [], []
    for column in range(columns):
        place = same[goes_with.get(column, column)]
        parents.append(up.get(place, place))
        seen = {place}
        while place in up and up[place] not in seen:  # through exact counts sums may form a circle, which has no top
            place = up[place]
            seen.add(place)
        tops.append(place)
    return tuple(parents), tuple(tops)
