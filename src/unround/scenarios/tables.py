"""A table changed in one respect: columns left out, numbers taken from elsewhere, counts published anew."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.mechanisms import HIDDEN, Mechanism
from unround.release import ABSENT, NOT_AVAILABLE, SUPPRESSED, Block, Column, Counts, Progress, Proposal, Release
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
        Proposal(place[one.total], tuple(place[part] for part in one.parts), one.origin)
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
