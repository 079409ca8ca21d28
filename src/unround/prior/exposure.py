"""How many people of an area a count is about: the exposure that its rate is multiplied with.

Each column takes the kind that explains its published counts best: the size of the area, that size corrected by what a
total above the count shows (the one of its table, or the one directly above), the square root of the size, or none. A total
above is mostly rounded, and its rounding is evidence of its own, which the sums bring in: taken as it is, it would count
twice where it is small. So it corrects the size only as far as it is large beside `CAUTION`, and a rounded size counts as
`LEAST_STEPS` steps of the rounding at least.

Which counts carry weight of their own: the leaves of the sums, and how leaves split by sex.

A total follows from its parts, so that a weight of its own would count the same people twice. Two cases need care. Where a
total has several partitions (by age, and by marital status), each of them says by itself how large the total is: all but one
of these statements are divided out. The same goes for men or women who are divided further without the other sex: how their
total splits has said already how many they are. And where two cells show the same count, only one of them carries weight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unround.mechanisms import Exact, Mechanism
from unround.mechanisms.base import FloatArray, step_of
from unround.release import ABSENT, Counts
from unround.sums.compiled import CompiledSums
from unround.sums.forest import TOTAL
from unround.system import connected


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

    - `columns`: How many columns there are.
    - `sums`: The sums, parallel ones (total, men, women) as one.
    - `pairs`: The counts published by sex whose sexes are joined in one node.
    - `leaves`: The columns whose counts carry weight in the prior: parts that are not totals; of a pair, the total.
    - `split`: The pairs that split by sex on their own: no sum of pairs below says how.
    - `halves`: Totals of two leaves, and nothing else, where none is published by sex: they may split as pairs do, if
      that explains the published counts better.
    - `repeated`: For columns of which several partitions or splits say how large they are, how many more than one: so
      often their own distribution is divided out.
    - `parent`, `top`: For every column the total directly above it, and the one at the top; the column itself where there
      is none.
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
        plan = compiled.plan
        # In multi-way tables, which chains answer, the innermost cells carry all weight, and nothing splits by itself.
        inside = {cell for table in compiled.multiway for cell in table.cells.tolist()}
        innermost = {cell for table in compiled.multiway for cell in table.cells[table.leaves].tolist()}
        pairs = [Pair(*node.cells) for node in plan.nodes if node.is_pair and not node.copy]
        pairs = [pair for pair in pairs if pair.total not in inside]
        sums: list[Split] = []
        crossed: list[tuple[Pair, Split]] = []
        equal: list[tuple[int, int]] = []
        for link, equations in zip(plan.links, compiled.links_of, strict=True):
            total, parts = compiled.equations[equations[0]]
            if total in inside:
                continue
            if link.is_pair:
                nodes = [plan.nodes[plan.home[cell][0]].cells for cell in (total, *parts)]
                total, *rest = (cells[TOTAL] for cells in nodes)
                parts = tuple(rest)
                crossed.append((Pair(*nodes[0]), Split(total, parts)))
                if len(parts) == 1:
                    equal += zip(*nodes, strict=True)
            elif len(parts) == 1:
                equal.append((total, parts[0]))
            sums.append(Split(total, parts))
        same = _same_counts(compiled.columns, equal)
        by_sex = {_kind(pair, same): pair for pair in reversed(pairs)}
        sums_by_sex = Counter(_kind(pair, same) for pair, partition in crossed if len(partition.parts) > 1)
        said = _said(sums, [partition for _, partition in crossed], by_sex, sums_by_sex, same)
        said.update(inside - innermost)
        of_tables = [Split(*compiled.equations[e]) for table in compiled.multiway for e in table.equations]
        parent, top = _above(compiled.columns, [*sums, *of_tables], pairs, same)
        leaves = tuple(c for c in range(compiled.columns) if same[c] == c and c not in said)
        paired = {column for pair in pairs for column in pair}
        return cls(
            compiled.columns,
            (*sums, *of_tables),
            tuple(pairs),
            leaves,
            tuple(pair for pair in pairs if by_sex[_kind(pair, same)] == pair and _kind(pair, same) not in sums_by_sex),
            tuple(
                Pair(partition.total, *partition.parts)
                for partition in sums
                if len(partition.parts) == 2
                and said[same[partition.total]] == 1
                and set(partition.parts) <= set(leaves) - paired
            ),
            {column: number - 1 for column, number in sorted(said.items()) if number > 1},
            parent,
            top,
        )


def _kind(pair: Pair, same: Sequence[int]) -> Pair:
    """Return the first of the pairs that show the same counts."""
    return Pair(*(same[column] for column in pair))


def _said(
    sums: Sequence[Split],
    crossed: Sequence[Split],
    by_sex: Iterable[Pair],
    sums_by_sex: Counter[Pair],
    same: Sequence[int],
) -> Counter[int]:
    """Return how many partitions and splits say how large a count is; leaves, of which none does, are left out.

    Of men and of women, every sum of pairs does; without one, how their total splits. All sums of pairs together are one
    statement about their total.
    """
    said = Counter(same[partition.total] for partition in sums if len(partition.parts) > 1)
    said -= Counter(same[partition.total] for partition in crossed if len(partition.parts) > 1)
    for pair in by_sex:
        if sums_by_sex[pair]:
            said[pair.total] += 1
        for column in (pair.first, pair.second):
            said[column] += max(sums_by_sex[pair], 1)
    return said


def _same_counts(columns: int, equal: Iterable[tuple[int, int]]) -> list[int]:
    """Return, for every column, the first of the columns that show the same count: sums of one part say so."""
    return connected(columns, equal)


def _above(
    columns: int, sums: Sequence[Split], pairs: Sequence[Pair], same: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return, for every column, the total above it and the one at the top; men and women go with their total."""
    up: dict[int, int] = {}
    for partition in sums:
        if len(partition.parts) > 1:
            for part in partition.parts:
                up.setdefault(same[part], same[partition.total])
    goes_with = {same[column]: same[pair.total] for pair in pairs for column in (pair.first, pair.second)}
    parents, tops = [], []
    for column in range(columns):
        place = goes_with.get(same[column], same[column])
        parents.append(up.get(place, place))
        seen = {place}
        while place in up and up[place] not in seen:  # through exact counts sums may form a circle, which has no top
            place = up[place]
            seen.add(place)
        tops.append(place)
    return tuple(parents), tuple(tops)


KINDS = NONE, SIZE, ROOT, CORRECTED = tuple(range(4))
"""Kinds of exposure."""

CAUTION = 25.0
"""Persons that are added to a rounded total above, and to what is expected of it, before the two are compared."""

LEAST_STEPS = 4
"""A smaller rounded size says more about its rounding than about the area."""


class ColumnExposure(NamedTuple):
    """The exposure of one column.

    - `kind`: `NONE`, `SIZE`, `ROOT` or `CORRECTED`.
    - `above`: The column of the total that corrects the size.
    - `share`: That total, as a share of the size, over all areas.
    - `caution`: How many persons are added before it is compared with what is expected.
    """

    kind: int
    above: int = 0
    share: float = 1.0
    caution: float = 0.0


@dataclass(frozen=True, slots=True)
class AreaSizes:
    """Where the size of an area is found.

    - `column`: The column that shows it: the largest total, or an exact one of comparable size.
    - `least`: What smaller sizes count as.
    - `usual`: What to assume where none was published.
    """

    column: int
    least: float
    usual: float

    @classmethod
    def find(cls, counts: Counts, mechanisms: tuple[Mechanism, ...], hierarchy: Hierarchy) -> AreaSizes:
        """Choose the column that shows how large areas are."""
        tops = sorted(set(hierarchy.top))
        means = {top: _mean(counts, top) for top in tops}
        largest = max(means.values())
        exact = {top for top in tops if isinstance(mechanisms[top], Exact) and means[top] >= largest / 2}
        column = max(tops, key=lambda top: (top in exact, means[top], -top))
        how = mechanisms[column]
        sizes = counts[:, column][counts[:, column] > ABSENT]
        usual = float(max(np.median(sizes), 1)) if sizes.size else 1.0
        return cls(column, 1.0 if isinstance(how, Exact) else LEAST_STEPS * float(step_of(how)), usual)

    def of(self, counts: Counts) -> FloatArray:
        """Return the sizes of some areas."""
        sizes = counts[:, self.column]
        return np.maximum(np.where(sizes > ABSENT, sizes, self.usual), self.least)

    def kinds_for(
        self, column: int, counts: Counts, mechanisms: tuple[Mechanism, ...], hierarchy: Hierarchy
    ) -> list[ColumnExposure]:
        """Return the exposures that a column can have, besides none."""
        if column == self.column:
            return []
        exposures = [ColumnExposure(SIZE), ColumnExposure(ROOT)]
        for above in dict.fromkeys((hierarchy.top[column], hierarchy.parent[column])):
            if above not in (self.column, column):
                known = (counts[:, self.column] > ABSENT) & (counts[:, above] > ABSENT)
                whole = float(np.maximum(counts[known, self.column], 0).sum(dtype=np.float64))
                part = float(np.maximum(counts[known, above], 0).sum(dtype=np.float64))
                if whole > 0 and part > 0:
                    caution = 0.5 if isinstance(mechanisms[above], Exact) else CAUTION
                    exposures.append(ColumnExposure(CORRECTED, above, part / whole, caution))
        return exposures

    def of_all(self, counts: Counts, chosen: Sequence[ColumnExposure]) -> FloatArray:
        """Return areas × columns: the exposures of some areas in all columns, those of one kind at once."""
        sizes = self.of(counts)
        exposures = np.ones((len(counts), len(chosen)))
        kind, above, share, caution = (np.array(field) for field in zip(*chosen, strict=True))
        exposures[:, kind == SIZE] = sizes[:, np.newaxis]
        exposures[:, kind == ROOT] = np.sqrt(sizes)[:, np.newaxis]
        here = np.flatnonzero(kind == CORRECTED)
        if here.size:
            expected = share[here] * sizes[:, np.newaxis]
            shown = counts[:, above[here]]
            seen = np.where(shown > ABSENT, np.maximum(shown, 0), expected)
            exposures[:, here] = expected * (seen + caution[here]) / (expected + caution[here])
        return exposures

    def exposures(self, counts: Counts, chosen: ColumnExposure, sizes: FloatArray | None = None) -> FloatArray:
        """Return the exposures of some areas; `sizes` saves working them out again."""
        if chosen.kind == NONE:
            return np.ones(len(counts))
        sizes = self.of(counts) if sizes is None else sizes
        if chosen.kind == SIZE:
            return sizes
        if chosen.kind == ROOT:
            return np.sqrt(sizes)
        expected = chosen.share * sizes
        shown = counts[:, chosen.above]
        above = np.where(shown > ABSENT, np.maximum(shown, 0), expected)
        return np.asarray(expected * (above + chosen.caution) / (expected + chosen.caution))


def _mean(counts: Counts, column: int) -> float:
    known = counts[:, column] > ABSENT
    return float(counts[known, column].mean()) if known.any() else 0.0
