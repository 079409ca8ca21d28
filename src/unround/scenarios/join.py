"""A release and a table as one: names that both understand, and counts that both have found out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from unround.errors import InputError
from unround.mechanisms import Mechanism
from unround.release import Block, Column, Progress, Proposal, Release
from unround.structure.evidence import FILES
from unround.tables import join
from unround.tables.joining import match_areas, match_columns

if TYPE_CHECKING:
    import polars as pl

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
