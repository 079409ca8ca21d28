"""Several tables as one: drafts, and what is already out; what was known before, and the earlier numbers used again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from unround.errors import InputError
from unround.mechanisms import Exact, Rounding
from unround.mechanisms.base import BoolArray
from unround.release import ABSENT, LARGEST, Column, Counts, Release
from unround.reviews.exposure import Exposure
from unround.reviews.policy import KINDS, LIKELY, SURENESS
from unround.reviews.repairs import SAME, Repair
from unround.reviews.table import ReviewedTable, selected
from unround.scenarios.scenario import check_areas
from unround.scenarios.tables import (
    AT_A_TIME,
    Numbers,
    aligned,
    declared,
    joined,
    kept,
    names_in,
    original,
    renamed,
    spooled,
)
from unround.structure import find_structure

SLIPS = 0.1
"""The share of areas in which two numbers of one count may contradict each other before they are two counts."""

NEARLY = 0.01
"""A probability that rises by no more is no news."""


@dataclass(frozen=True, eq=False)
class Together:
    """Several tables as one: those that are already out, and drafts.

    - `all`: All of them as one; a count that several have stands in several columns.
    - `before`: Those alone that are out; None where none is.
    - `own`: The keys of the drafts' columns in `all`; `names`: for each draft, its keys and what they are called there.
    - `truth`: The true counts under the names of `all`.
    """

    all: Release
    before: Release | None
    own: frozenset[str]
    names: tuple[Mapping[str, str], ...]
    truth: Release | None


def together(drafts: Sequence[Release], earlier: Sequence[Release], truth: Release | None, work: Path) -> Together:
    """Put tables together, each with what is found out about its mechanisms from its own counts.

    Raises `InputError` where a table has no area in common with those before it.
    """
    tables = [_with_mechanisms(release) for release in (*earlier, *drafts)]
    if len({table.axes for table in tables}) > 1 or len({len(table.areas) for table in tables}) > 1:
        tables = [_flat(table) for table in tables]
    whole = kept(tables[0], old := Numbers.of(tables[0], spooled(tables[0], work / "table0.bin")))
    before = whole if len(earlier) == 1 else None
    keys = [[column.key for column in release.columns] for release in (*earlier, *drafts)]
    first = [column.key for column in whole.columns]
    names: list[Mapping[str, str]] = [] if earlier else [dict(zip(keys[0], first, strict=True))]
    for at, table in enumerate(tables[1:], 1):
        table, new = _aligned(table, whole, old, work / f"table{at}.bin")
        check_areas(whole, table, old, new)
        table = _told_apart(table, new, whole, old)
        both = joined(whole, table)
        named = names_in(both, table, whole)
        whole = kept(both, old := Numbers.of(both, spooled(both, work / f"joined{at}.bin")))
        if at == len(earlier) - 1:
            before = whole
        elif at >= len(earlier):
            names.append({key: named[column.key] for key, column in zip(keys[at], table.columns, strict=True)})
    if truth is not None:
        truth, known = _aligned(truth, whole, old, work / "true.bin")
        truth = renamed(truth, known, whole, {column.key: original(column.key) for column in whole.columns})
    return Together(whole, before, frozenset(key for named in names for key in named.values()), tuple(names), truth)


def _with_mechanisms(release: Release) -> Release:
    """Say of every count how it was published, as its own table tells: else one table is taken to be like the other."""
    how = find_structure(release).mechanisms
    return declared(release, {column.key: m for column, m in zip(release.columns, how, strict=True) if m is not None})


_WHOLE = ("total", "all", "both", "persons", "people", "everyone", "overall")


def _flat(release: Release) -> Release:
    """Return a release with one axis of counts, named by what each is of, totals left out: then any two can be matched."""
    keys: list[str] = []
    for column in release.columns:
        parts = [code for code in column.codes if code.strip().lower().split(" ")[0] not in _WHOLE]
        keys.append("/".join(parts) or "Total")
    columns = tuple(
        replace(column, key=key, codes=(key,), label=key) if keys.count(key) == 1 else replace(column, codes=(column.key,))
        for column, key in zip(release.columns, keys, strict=True)
    )
    if len(release.areas) > 1:
        raise InputError(
            f"{release.source} has its rows by {', '.join(release.areas)}: its cells cannot be matched with those of tables "
            "that have other axes. Describe all with the same axes (see docs/audit-reference.md)."
        )
    return replace(release, columns=columns, axes=("count",), figures=())


def _told_apart(table: Release, new: Numbers, whole: Release, old: Numbers) -> Release:
    """Give counts other names that are called like others, but cannot be the same: of households, or of another year."""
    shared = [at for at, column in enumerate(table.columns) if column.key in whole.index]
    keys = [table.columns[at].key for at in shared]
    apart = np.zeros(len(keys), dtype=np.int64)
    both = apart.copy()
    reach = np.array(
        [_reach(table.columns[at]) + _reach(whole.columns[whole.index[table.columns[at].key]]) for at in shared]
    )
    for block in new.spool.blocks(AT_A_TIME):
        here, there = block.counts[:, shared].astype(np.int64), old.of_areas(block.areas, keys).astype(np.int64)
        known = (here > ABSENT) & (there > ABSENT)
        both += known.sum(axis=0)
        apart += (known & (np.abs(here - there) > reach)).sum(axis=0)
    columns = list(table.columns)
    for place, at in enumerate(shared):
        if apart[place] > SLIPS * both[place]:
            key = f"{columns[at].key} ({Path(table.source).name})"
            columns[at] = replace(columns[at], key=key, codes=(key, *columns[at].codes[1:]), label=key)
    return replace(table, columns=tuple(columns))


def _reach(column: Column) -> int:
    """Return how far a printed count can be from the true one; very far where that is not known."""
    how = column.mechanism
    return how.base - 1 if isinstance(how, Rounding) else 0 if isinstance(how, Exact) else LARGEST


def _aligned(table: Release, release: Release, old: Numbers, path: Path) -> tuple[Release, Numbers]:
    """Read a table onto disk, under the names of those before it."""
    spool = spooled(table, path)
    table = aligned(kept(table, Numbers.of(table, spool)), spool.areas, release, old.spool.areas)
    numbers = Numbers.of(table, spooled(table, path.with_suffix(".aligned")))
    return kept(table, numbers), numbers


Known = tuple[ReviewedTable, tuple[Exposure, ...], Mapping[str, str] | None]
"""A table, what it tells under one prior or several, and its names for counts, where they differ."""


@dataclass(frozen=True, eq=False)
class KnownBefore:
    """What readers know from one or several tables alone."""

    tables: tuple[Known, ...]

    def mask(self, table: ReviewedTable, exposure: Exposure) -> BoolArray:
        """Return the cells of a table of which readers learn nothing new."""
        found = np.zeros(exposure.kinds.shape, dtype=np.bool_)
        for known, exposures, names in self.tables:
            rows = {code: at for at, code in enumerate(known.area_codes)}
            places = {(names or {}).get(column.key, column.key): at for at, column in enumerate(known.columns)}
            for row, at in np.argwhere((exposure.kinds > 0) & ~found).tolist():
                code, key = table.area_codes[row], table.columns[at].key
                key = key if key in places else original(key)
                if code in rows and key in places:
                    there = rows[code], places[key]
                    found[row, at] = any(_no_news(exposure, (row, at), then, there) for then in exposures)
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
