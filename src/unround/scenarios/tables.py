"""A table changed in one respect: columns left out, numbers taken from elsewhere, counts published anew.

A release and a table as one: names that both understand, and counts that both have found out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.mechanisms import HIDDEN, Mechanism
from unround.release import ABSENT, NOT_AVAILABLE, SUPPRESSED, Block, Column, Counts, Progress, Proposal, Release
from unround.structure.evidence import FILES
from unround.tables import join
from unround.tables.joining import match_areas, match_columns
from unround.tables.spool import Spool

if TYPE_CHECKING:
    import polars as pl

AT_A_TIME = 4096
"""Areas that are read together."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """The counts of a release on disk, to be looked up by area and column."""

    spool: Spool
    row: dict[tuple[str, ...], int]
    columns: dict[str, int]
    axes: tuple[str, ...]

    @classmethod
    def of(cls, release: Release, spool: Spool) -> Numbers:
        """Take in a release that was read into a spool."""
        row = {key: at for at, key in enumerate(keys_of(spool.areas, release.areas))}
        return cls(spool, row, release.index, release.areas)

    def of_areas(self, areas: pl.DataFrame, keys: Iterable[str]) -> Counts:
        """Return the counts of some areas in some columns; `NOT_AVAILABLE` where there is none."""
        rows = np.array([self.row.get(key, -1) for key in keys_of(areas, self.axes)], dtype=np.int64)
        places = np.array([self.columns.get(key, -1) for key in keys], dtype=np.int64)
        found = self.spool.pick(np.maximum(rows, 0))[:, np.maximum(places, 0)]
        found[rows < 0] = NOT_AVAILABLE
        found[:, places < 0] = NOT_AVAILABLE
        return found


def spooled(release: Release, path: Path, progress: Progress = lambda _: None) -> Spool:
    """Read a release once, onto disk."""
    spool = Spool(path, len(release.columns))
    for block in release.blocks(progress):
        spool.add(block)
    spool.close(release.areas)
    return spool


def keys_of(areas: pl.DataFrame, axes: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    """Return what names each area."""
    return (tuple(map(str, key)) for key in areas.select(axes).iter_rows())


def kept(release: Release, numbers: Numbers) -> Release:
    """Return a release that is read from what is on disk already."""

    def read(_: Progress) -> Iterable[Block]:
        return numbers.spool.blocks(AT_A_TIME)

    return replace(release, read=read, figures=())


def repeated(release: Release, numbers: Numbers, rows: NDArray[np.int64], times: int) -> Release:
    """Return some areas of a release, several times over, as if they were so many areas; `called` names them."""

    def read(_: Progress) -> Iterable[Block]:
        for time in range(times):
            for start in range(0, len(rows), AT_A_TIME):
                here = rows[start : start + AT_A_TIME]
                yield Block(called(numbers.spool.areas[here], release.areas, time), numbers.spool.pick(here))

    return replace(release, read=read, figures=())


def called(areas: pl.DataFrame, axes: tuple[str, ...], time: int) -> pl.DataFrame:
    """Return areas with names for their first, second … time, on their own: inside no other area."""
    import polars as pl

    named = areas.with_columns(pl.concat_str(pl.lit(f"{time + 1}~"), pl.col(axes[0]).cast(pl.String)).alias(axes[0]))
    return named.with_columns(pl.lit(None, pl.String).alias("parent")) if "parent" in areas.columns else named


def renamed(release: Release, numbers: Numbers, like: Release, own: Mapping[str, str]) -> Release:
    """Return a release with the columns of another one, whose numbers stand under other names in it."""
    there = [column for column in like.columns if own.get(column.key) in numbers.columns]

    def read(_: Progress) -> Iterable[Block]:
        for block in numbers.spool.blocks(AT_A_TIME):
            yield Block(block.areas, numbers.of_areas(block.areas, [own[column.key] for column in there]))

    return replace(release, columns=tuple(there), axes=like.axes, proposals=(), read=read, figures=())


def without(table: Release, dropped: Collection[int]) -> Release:
    """Return a table that does not have some of its columns."""
    stay = [at for at in range(len(table.columns)) if at not in dropped]
    if not stay:
        raise InputError("nothing would be left of the table.")
    place = {at: new for new, at in enumerate(stay)}
    proposals = tuple(
        Proposal(place[one.total], tuple(place[part] for part in one.parts), one.origin, declared=one.declared)
        for one in table.proposals
        if all(at in place for at in (one.total, *one.parts))
    )

    def read(progress: Progress) -> Iterable[Block]:
        for block in table.blocks(progress):
            yield Block(block.areas, np.ascontiguousarray(block.counts[:, stay]))

    return replace(table, columns=tuple(table.columns[at] for at in stay), proposals=proposals, read=read, figures=())


def with_numbers_of(table: Release, old: Numbers, mechanisms: Mapping[int, Mechanism | None]) -> Release:
    """Return a table that shows the old number wherever there is one: the same count, rounded once."""
    shared = sorted(mechanisms)
    names = [table.columns[at].key for at in shared]

    def read(progress: Progress) -> Iterable[Block]:
        for block in table.blocks(progress):
            counts = block.counts.copy()
            before = old.of_areas(block.areas, names)
            counts[:, shared] = np.where(before == NOT_AVAILABLE, counts[:, shared], before)
            yield Block(block.areas, counts)

    return replace(table, columns=_published_by(table, mechanisms), read=read, figures=())


def published_anew(table: Release, true: Numbers, mechanisms: Mapping[int, Mechanism], seed: int) -> Release:
    """Return a table whose columns are published from true counts, each count on its own.

    What was not published stays so; a count whose truth is not known is not published. Whenever the table is read, the
    same seed gives the same numbers.
    """
    which = sorted(mechanisms)
    names = [table.columns[at].key for at in which]
    groups: dict[Mechanism, list[int]] = {}
    for place, at in enumerate(which):
        groups.setdefault(mechanisms[at], []).append(place)

    def read(progress: Progress) -> Iterable[Block]:
        rng = np.random.default_rng(seed)
        for block in table.blocks(progress):
            known = true.of_areas(block.areas, names)
            drawn = np.empty(known.shape, dtype=np.int64)
            for how, places in groups.items():
                drawn[:, places] = how.publish(np.maximum(known[:, places], 0).astype(np.int64), rng)
            drawn[drawn == HIDDEN] = SUPPRESSED
            counts = block.counts.copy()
            shown = counts[:, which] > ABSENT
            fresh = np.where(known > ABSENT, drawn, NOT_AVAILABLE).astype(np.int32)
            counts[:, which] = np.where(shown, fresh, counts[:, which])
            yield Block(block.areas, counts)

    return replace(table, columns=_published_by(table, mechanisms), read=read, figures=())


def _published_by(table: Release, mechanisms: Mapping[int, Mechanism | None]) -> tuple[Column, ...]:
    return tuple(
        replace(column, mechanism=mechanisms[at]) if at in mechanisms else column for at, column in enumerate(table.columns)
    )


_TAIL = re.compile(r"@(file)?\d+'*$")
"""What a join puts behind the key of a count that was published before."""


def joined(release: Release, table: Release) -> Release:
    """Return one release with the counts of both; the table, from `aligned`, uses the names of the release.

    A count that both have stands in two columns, which are proposed to be the same: also where it was published in
    different ways.
    """
    both = join([release, table])
    known = {(one.total, one.parts) for one in both.proposals}
    index, more = both.index, []
    for key, name in names_in(both, table, release).items():
        pair = (index[name], (index[key],)) if key in index and name != key else None
        if pair is not None and pair not in known:
            more.append(Proposal(*pair, FILES))
    return replace(both, proposals=(*both.proposals, *more))


def names_in(both: Release, table: Release, release: Release) -> dict[str, str]:
    """Return how the columns of a table are called where it is joined with a release."""
    second: dict[str, str] = {}
    shared = release.index
    for column in both.columns:
        first = original(column.key)
        if first != column.key and column.key not in shared:
            second.setdefault(first, column.key)
    return {
        column.key: second.get(column.key, column.key) if column.key in shared else column.key for column in table.columns
    }


def original(key: str) -> str:
    """Return the name that a column had before it was joined.

    Examples
    --------
    >>> original("10/men@2"), original("10@file2"), original("10")
    ('10/men', '10', '10')
    """
    return _TAIL.sub("", key)


def aligned(table: Release, frame: pl.DataFrame, release: Release, areas: pl.DataFrame) -> Release:
    """Return a table whose areas, axes and columns are called as those of a release, where they are the same."""
    if len(table.axes) != len(release.axes) or len(table.areas) != len(release.areas):
        raise InputError(
            f"{table.source} has its counts by {', '.join((*table.areas, *table.axes))}, {release.source} by "
            f"{', '.join((*release.areas, *release.axes))}: their cells cannot be matched. Describe both with the same axes "
            "in a TOML file (see docs/audit-reference.md)."
        )
    table = replace(table, columns=tuple(_labelled(table.columns, release)))
    # How a count was published does not make it another one; that is for `joined`.
    plain = [replace(one, columns=tuple(replace(c, mechanism=None) for c in one.columns)) for one in (release, table)]
    columns = list(table.columns)
    for slot in match_columns(plain):
        if 0 in slot.columns and 1 in slot.columns:
            own, there = columns[slot.columns[1]], release.columns[slot.columns[0]]
            columns[slot.columns[1]] = replace(own, key=there.key, codes=there.codes, label=there.label)
    renamed = _areas(table, frame, release, areas)

    def read(progress: Progress) -> Iterable[Block]:
        start = 0
        for block in table.blocks(progress):
            stop = start + len(block.counts)
            yield Block(renamed[start:stop], block.counts)
            start = stop

    return replace(table, columns=tuple(columns), axes=release.axes, areas=release.areas, read=read, figures=())


def _labelled(columns: Iterable[Column], release: Release) -> Iterable[Column]:
    """Give columns that have a code but no name the names that the release has for these codes."""
    known = {column.key: column.label for column in release.columns}
    for column in columns:
        bare = column.label in ("", column.key, *column.codes)
        yield replace(column, label=known[column.key]) if bare and column.key in known else column


def _areas(table: Release, frame: pl.DataFrame, release: Release, areas: pl.DataFrame) -> pl.DataFrame:
    """Return the areas of a table under the codes of the release; those that it does not have keep their own."""
    import polars as pl

    _, (first, second) = match_areas([areas, frame], [release, table])
    at = {place: row for row, place in enumerate(first)}
    rows = [at.get(place) for place in second]
    named = frame.rename(dict(zip(table.areas, release.areas, strict=True)))
    there = pl.Series(rows, dtype=pl.UInt32)
    codes = [
        areas[axis].cast(pl.String).gather(there).fill_null(named[axis].cast(pl.String)).alias(axis)
        for axis in release.areas
    ]
    return named.with_columns(codes)


def declared(release: Release, mechanisms: Mapping[str, Mechanism]) -> Release:
    """Return a release that says of these columns, by their keys, how they were published."""
    return replace(
        release,
        columns=tuple(replace(c, mechanism=mechanisms[c.key]) if c.key in mechanisms else c for c in release.columns),
    )
