"""What is known once both audits are done: the tables on disk, which counts both have, and how they were published."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from unround.differences import Diff
from unround.errors import InputError
from unround.job import AuditFolder
from unround.mechanisms import Mechanism, Rounding, mechanism
from unround.release import ABSENT, Release
from unround.scenarios.tables import Numbers, names_in, original

MISFIT = 0.01
"""The share of counts from which on a truth cannot be the truth of what was published."""


@dataclass(frozen=True, eq=False)
class Scenario:
    """A release, a table that may be added to it, and their audits.

    - `release`, `table`: Both tables.
    - `release_numbers`, `table_numbers`: Their counts.
    - `both`: The two as one.
    - `after`: The audit of that.
    - `diff`: What the table exposes.
    - `truth`: The true counts, under the names that both tables use.
    - `seed`: Where chance comes from.
    """

    release: Release
    table: Release
    release_numbers: Numbers
    table_numbers: Numbers
    both: Release
    after: AuditFolder
    diff: Diff
    truth: Numbers | None
    seed: int
    notes: list[str] = field(default_factory=list)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """How the columns of the table are called where both tables are one."""
        return tuple(names_in(self.both, self.table, self.release).values())

    @cached_property
    def shared(self) -> dict[int, int]:
        """The columns of the table that the release has too, and where it has them."""
        known = self.release.index
        return {at: known[column.key] for at, column in enumerate(self.table.columns) if column.key in known}

    @cached_property
    def published_by(self) -> dict[str, Mechanism]:
        """How each column of both was published, as the audit has it."""
        return published_by(self.after)

    def of_table(self, at: int) -> Mechanism | None:
        """Return how a column of the table was published."""
        return self.published_by.get(self.names[at])

    def of_release(self, at: int) -> Mechanism | None:
        """Return how a column of the release was published."""
        return self.published_by.get(self.release.columns[at].key)

    @cached_property
    def equations(self) -> list[tuple[str, tuple[str, ...]]]:
        """The sums of the audit with more than one part, by the names that counts have in their own table."""
        columns = [original(one["key"]) for one in self.after.told["columns"]]
        sums = ((columns[total], tuple(columns[part] for part in parts)) for total, parts in self.after.told["equations"])
        return [(total, parts) for total, parts in dict.fromkeys(sums) if len(parts) > 1]

    @cached_property
    def totals(self) -> frozenset[int]:
        """The columns of the table that others of its columns add up to."""
        place = self.table.index
        return frozenset(
            place[total] for total, parts in self.equations if total in place and all(part in place for part in parts)
        )


def published_by(folder: AuditFolder) -> dict[str, Mechanism]:
    """Return how each column of an audit was published, by its key."""
    found = {one["key"]: mechanism(one["mechanism"]) for one in folder.told["columns"]}
    return found | {copy: found[first] for copy, first in folder.told["alias"].items() if first in found}


def check_areas(release: Release, table: Release, old: Numbers, new: Numbers) -> None:
    """Raise InputError where a table has none of the areas of a release."""
    if not any(key in old.row for key in new.row):
        one, other = (", ".join(next(iter(numbers.row))) for numbers in (old, new))
        raise InputError(
            f"{table.source} and {release.source} have no area in common: the table has {other} …, the release {one} … "
            "Areas are "
            "matched by code; check that both files use the same codes. For a table of larger or smaller areas, audit "
            "the release, audit both files together (unround audit A B --nesting FILE), and compare "
            "the two (unround review AFTER --against BEFORE)."
        )


def check_truth(setting: Scenario, source: str) -> None:
    """Raise InputError where the truth lacks what the table counts, or cannot be the truth of it."""
    truth = setting.truth
    assert truth is not None
    missing = [column.key for column in setting.table.columns if column.key not in truth.columns]
    if missing:
        few = ", ".join(missing[:4]) + (" …" if len(missing) > 4 else "")
        raise InputError(
            f"{len(missing):,} of the {len(setting.table.columns):,} columns of the table are missing from the truth in "
            f"{source} ({few}): give the true counts of all columns, under the same names, or leave out --truth."
        )
    for release, numbers, how in (
        (setting.table, setting.table_numbers, setting.of_table),
        (setting.release, setting.release_numbers, setting.of_release),
    ):
        setting.notes.extend(check_fit(release, numbers, how, truth, source))


def check_fit(
    release: Release, numbers: Numbers, how: Callable[[int], Mechanism | None], truth: Numbers, source: str
) -> list[str]:
    """Raise InputError where a release cannot have been rounded from a truth; return what a user should know otherwise."""
    seen = off = 0
    for published, true, base in _compared(release, numbers, how, truth):
        apart = np.abs(published.astype(np.int64) - true)
        seen, off = seen + apart.size, off + int((apart >= base).sum())
    if not seen:
        raise InputError(
            f"the truth in {source} has none of the counts of {release.source}: its areas or columns have other codes. "
            "Give a truth with the same codes, or leave out --truth."
        )
    if off > MISFIT * seen:
        raise InputError(
            f"{off:,} of {seen:,} counts of {release.source} cannot have been rounded from the truth in {source}: it "
            "belongs to another table, or was rounded itself. Give the true counts, or leave out --truth."
        )
    return [f"{off:,} of {seen:,} counts of {release.source} do not fit the truth."] if off else []


def _compared(
    release: Release, numbers: Numbers, how: Callable[[int], Mechanism | None], truth: Numbers
) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Yield published and true counts of every column that was rounded, a block of areas at a time, with its base."""
    rounded: Mapping[int, int] = {at: by.base for at in range(len(release.columns)) if isinstance(by := how(at), Rounding)}
    names = [release.columns[at].key for at in rounded]
    for block in numbers.spool.blocks(4096):
        true = truth.of_areas(block.areas, names)
        for place, (at, base) in enumerate(rounded.items()):
            known = (block.counts[:, at] > ABSENT) & (true[:, place] > ABSENT)
            yield block.counts[known, at], true[known, place], base
