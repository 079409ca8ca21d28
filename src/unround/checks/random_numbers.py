"""What the agency's random numbers do, table by table: from sums, from repeated counts, and from both together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from unround.checks.expected import ExpectedShares
from unround.checks.families import ALIKE, INDEPENDENT, KEYED, UNKNOWN, TableRounding
from unround.checks.gather import ResidualCounter
from unround.checks.keys import LEAST, KeyedSums, table_roundings
from unround.checks.law import Laws
from unround.checks.repeated import RepeatRounding, RepeatTally, repeat_roundings
from unround.checks.sums import ADDED, NO_TABLE
from unround.release import Release
from unround.structure import Structure


class FamilyRounding(NamedTuple):
    """What is known of a family's table: its name, what its random numbers do, and the same by sum (see `Family`)."""

    table: str | None = None
    rounding: TableRounding | None = None
    by_sum: tuple[tuple[str, int, TableRounding], ...] = ()


@dataclass(frozen=True)
class RandomNumbers:
    """What was found.

    - `tables`: By table; columns outside tables are one, but need not have one constant.
    - `by_sum`: By position among the tested sums, of those that are frequent enough.
    - `repeats`: By count that appears in several columns.
    """

    tables: Mapping[str, TableRounding]
    by_sum: Mapping[int, TableRounding]
    repeats: tuple[RepeatRounding, ...]

    def of_family(self, release: Release, gathered: ResidualCounter, those: Sequence[int]) -> FamilyRounding:
        """Return what is known of a family's table."""
        blocks = {gathered.sums[s].block for s in those}
        if len(blocks) > 1:
            return FamilyRounding()
        (block,) = blocks
        by_sum = tuple(
            (release.columns[gathered.sums[s].total].key, int(gathered.stepped[s].sum()), self.by_sum[s])
            for s in those
            if s in self.by_sum
        )
        if all(len(gathered.sums[s].parts) == 1 for s in those):
            return FamilyRounding(block or None, self._of_repeats(release, gathered, those), by_sum)
        return FamilyRounding(block or None, self.tables.get(block or NO_TABLE), by_sum)

    def _of_repeats(self, release: Release, gathered: ResidualCounter, those: Sequence[int]) -> TableRounding | None:
        """Return what a family of repeated counts does; with two columns, how far apart their constants are."""
        keys = {release.columns[c].key for s in those for c in gathered.sums[s].members}
        mine = [one for one in self.repeats if keys & set(one.columns)]
        if not mine:
            return None
        models = {one.model for one in mine}
        if len(models) > 1:
            return TableRounding(UNKNOWN, why="some of these counts do one thing, and some another")
        first = mine[0]
        if len(mine) > 1 or first.model != KEYED or len(first.constants) > 2:
            return TableRounding(first.model, whole=first.whole, p_value=first.p_value, why=first.why)
        one, other = first.constants
        error = (first.errors[0] ** 2 + first.errors[1] ** 2) ** 0.5
        return TableRounding(KEYED, abs((other - one + 0.5) % 1.0 - 0.5), error, first.whole, first.p_value, first.why)


def random_numbers(
    release: Release,
    structure: Structure,
    gathered: ResidualCounter,
    laws: Laws,
    expected: Sequence[ExpectedShares],
    members: Mapping[str, Sequence[int]],
    repeated: RepeatTally,
) -> RandomNumbers:
    """Find out what the random numbers of every table do."""
    blocks = [column.block for column in release.columns]
    sums = KeyedSums(gathered, structure.mechanisms, blocks, laws, [one.doubt for one in expected])
    tables: dict[str, list[int]] = {}
    for s, one in enumerate(gathered.sums):
        if len(one.parts) > 1 and (one.used or one.kind == ADDED):
            tables.setdefault(one.block or NO_TABLE, []).append(s)
    alike = dict.fromkeys(tables, 1.0)
    for place, those in enumerate(members.values()):
        those_blocks = {gathered.sums[s].block or NO_TABLE for s in those}
        if len(those_blocks) == 1 and (block := those_blocks.pop()) in alike:
            alike[block] = max(alike[block], gathered.alike(place))
    found, curves = table_roundings(sums, tables, alike)
    single = {str(s): [s] for s in sorted(sums.usable) if gathered.stepped[s].sum() >= LEAST}
    by_sum, _ = table_roundings(sums, single, dict.fromkeys(single, 1.0))
    repeats, constants = repeat_roundings(release, repeated, found, curves)
    for table, (constant, error) in constants.items():
        before = found.get(table, TableRounding(UNKNOWN))
        if table in curves or before.p_value is None:  # its own sums do not refute it
            why = "counts that are in other tables too" + (f"; {before.why}" if before.model == KEYED else "")
            found[table] = replace(before, model=KEYED, constant=constant, error=error, why=why)
    for table in _always_the_same(release, structure):
        if table in found and found[table].model == INDEPENDENT:
            found[table] = replace(found[table], model=ALIKE)
    return RandomNumbers(found, {int(s): one for s, one in by_sum.items()}, tuple(repeats))


def _always_the_same(release: Release, structure: Structure) -> set[str]:
    """Return the tables with a count that other tables show as well, always as the same number."""
    found = set[str]()
    for repeat in structure.repeats:
        blocks = {release.columns[c].block or NO_TABLE for c in repeat.columns}
        if repeat.alike and len(blocks) > 1:
            found |= blocks
    return found
