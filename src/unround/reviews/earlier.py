"""A draft beside a release that is already out: both as one, what was known before, and the earlier numbers used again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from unround.mechanisms.base import BoolArray
from unround.release import ABSENT, Counts, Release
from unround.reviews.exposure import Exposure
from unround.reviews.policy import KINDS, LIKELY, SURENESS
from unround.reviews.repairs import SAME, Repair
from unround.reviews.table import ReviewedTable, selected
from unround.scenarios.join import aligned, joined, names_in, original
from unround.scenarios.scenario import check_areas
from unround.scenarios.tables import Numbers, kept, renamed, spooled

NEARLY = 0.01
"""A probability that rises by no more is no news."""


@dataclass(frozen=True, eq=False)
class BesideEarlier:
    """A draft and an earlier release as one.

    - `both`: The two as one; a count that both have stands in two columns.
    - `before`: The earlier release alone.
    - `own`: The keys of the draft's columns in `both`.
    - `truth`: The true counts under the names of `both`.
    """

    both: Release
    before: Release
    own: frozenset[str]
    truth: Release | None


def beside_earlier(draft: Release, earlier: Release, truth: Release | None, work: Path) -> BesideEarlier:
    """Put a draft beside an earlier release.

    Raises `InputError` where the two have no area in common.
    """
    old = Numbers.of(earlier, spooled(earlier, work / "earlier.bin"))
    before = kept(earlier, old)
    draft, new = _aligned(draft, before, old, work / "draft.bin")
    check_areas(before, draft, old, new)
    both = joined(before, draft)
    own = frozenset(names_in(both, draft, before).values())
    if truth is not None:
        truth, known = _aligned(truth, before, old, work / "true.bin")
        truth = renamed(truth, known, both, {column.key: original(column.key) for column in both.columns})
    return BesideEarlier(both, before, own, truth)


def _aligned(table: Release, release: Release, old: Numbers, path: Path) -> tuple[Release, Numbers]:
    """Read a table onto disk, under the names of the earlier release."""
    spool = spooled(table, path)
    table = aligned(kept(table, Numbers.of(table, spool)), spool.areas, release, old.spool.areas)
    numbers = Numbers.of(table, spooled(table, path.with_suffix(".aligned")))
    return kept(table, numbers), numbers


@dataclass(frozen=True, eq=False)
class KnownBefore:
    """What readers know from the earlier release alone.

    - `table`: The earlier release.
    - `exposures`: What it tells, under one prior or several.
    """

    table: ReviewedTable
    exposures: tuple[Exposure, ...]

    def mask(self, table: ReviewedTable, exposure: Exposure) -> BoolArray:
        """Return the cells of a table of which readers learn nothing new."""
        rows = {code: at for at, code in enumerate(self.table.area_codes)}
        places = {column.key: at for at, column in enumerate(self.table.columns)}
        found = np.zeros(exposure.kinds.shape, dtype=np.bool_)
        for row, at in np.argwhere(exposure.kinds > 0).tolist():
            code, key = table.area_codes[row], original(table.columns[at].key)
            if code in rows and key in places:
                there = rows[code], places[key]
                found[row, at] = any(_no_news(exposure, (row, at), then, there) for then in self.exposures)
        return found


def _no_news(now: Exposure, here: tuple[int, int], then: Exposure, there: tuple[int, int]) -> bool:
    """Whether a claim was as sure before."""
    kind, was = KINDS[now.kinds[here]], KINDS[then.kinds[there]]
    if SURENESS.get(was, 0) != SURENESS[kind]:
        return SURENESS.get(was, 0) > SURENESS[kind]
    return kind != LIKELY or bool(then.highest[there] >= now.highest[here] - NEARLY)


def same_numbers(table: ReviewedTable) -> Repair | None:
    """Return the repair that prints counts of the earlier release with its numbers; None where there are none."""
    first = copies(table)
    if not first:
        return None

    def change(here: ReviewedTable, _true: Counts, _rng: np.random.Generator) -> ReviewedTable:
        return _as_before(here, copies(here))

    action = "Print counts that are in the earlier release with the same numbers (the same random numbers)."
    return Repair(SAME, action, change)


def copies(table: ReviewedTable) -> dict[int, int]:
    """Return the draft's columns that the earlier release has too, and where it has them."""
    places = {column.key: at for at, column in enumerate(table.columns)}
    return {
        at: places[first]
        for at in table.mine
        if (first := original(table.columns[at].key)) != table.columns[at].key and first in places
    }


def _as_before(table: ReviewedTable, first: Mapping[int, int]) -> ReviewedTable:
    """Return the table in which each copy shows the earlier number, and so is no count of its own."""
    sums: dict[tuple[int, tuple[int, ...]], tuple[str, bool]] = {}
    for (total, parts), origin, doubt in zip(table.equations, table.origins, table.doubtful, strict=True):
        new = first.get(total, total), tuple(dict.fromkeys(first.get(part, part) for part in parts))
        if new[1] != (new[0],):
            sums.setdefault(new, (origin, doubt))
    counts = table.counts.copy()
    for copy, there in first.items():  # where only the draft has the area, its number is all that there is
        counts[:, there] = np.where(counts[:, there] > ABSENT, counts[:, there], counts[:, copy])
    whole = replace(
        table,
        counts=counts,
        equations=tuple(sums),
        origins=tuple(origin for origin, _ in sums.values()),
        doubtful=tuple(doubt for _, doubt in sums.values()),
        own=frozenset((table.own or frozenset()) | {table.columns[there].key for there in first.values()}),
    )
    return selected(whole, [at for at in range(len(table.columns)) if at not in first])
