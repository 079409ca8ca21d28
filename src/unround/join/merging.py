"""The counts of several files, on disk, read together: one row per area, whichever files it is in."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unround.release import (
    ABSENT,
    NOT_APPLICABLE,
    NOT_AVAILABLE,
    SUPPRESSED,
    UNRELIABLE,
    Block,
    Counts,
    Progress,
    Release,
)  # fmt: skip

if TYPE_CHECKING:
    import polars as pl

Places = NDArray[np.int64]

_CELLS = 1_000_000
"""Counts that are processed at once."""
_RANK = {SUPPRESSED: 3, UNRELIABLE: 2, NOT_APPLICABLE: 1, NOT_AVAILABLE: -1}
"""Of several reasons why a count is absent, the most informative first: that it exists, and is hidden."""


class StoredReleases:
    """The counts of all files, in a folder that is removed when it is no longer needed.

    Parameters
    ----------
    releases : sequence of Release
        The files; each is read once.
    progress : function
        Called with the number of bytes read so far, of all files.
    """

    def __init__(self, releases: Sequence[Release], progress: Progress) -> None:
        import polars as pl

        self._folder = Path(tempfile.mkdtemp(prefix="unround-join-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self.frames: list[pl.DataFrame] = []
        self._shapes: list[tuple[int, int]] = []
        before = 0
        for number, release in enumerate(releases):
            frames, rows = list[pl.DataFrame](), 0
            with self._path(number).open("wb") as file:
                for block in release.blocks(lambda done, before=before: progress(before + done)):  # type: ignore[misc]
                    np.ascontiguousarray(block.counts, dtype=np.int32).tofile(file)
                    frames.append(block.areas)
                    rows += len(block.counts)
            before += release.size
            self.frames.append(pl.concat(frames, how="vertical_relaxed") if frames else pl.DataFrame())
            self._shapes.append((rows, len(release.columns)))

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.bin"

    def counts(self, number: int, rows: Places, columns: Places) -> Counts:
        """Return some counts of some areas of a file; nothing available where a row is -1."""
        shape = self._shapes[number]
        there = rows >= 0
        found = np.full((len(rows), len(columns)), NOT_AVAILABLE, dtype=np.int32)
        if there.any() and len(columns):
            table = np.memmap(self._path(number), dtype=np.int32, mode="r", shape=shape)
            found[there] = table[rows[there]][:, columns]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class FileGroup:
    """Counts that are in the same files, how often an area can show them, and where they go.

    Parameters
    ----------
    files : tuple of int
        The files.
    columns : array
        Files × counts: the column of each.
    places : array
        Depth × counts: the columns of the joined release for the first number that is published, the second, ….
    """

    files: tuple[int, ...]
    columns: Places
    places: Places


@dataclass(eq=False)
class Dropped:
    """Published numbers for which there was no room: how many, and how many of them differed."""

    areas: int = 0
    counts: int = 0
    different: int = 0
    told: bool = field(default=False, repr=False)


def merged(
    stored: StoredReleases,
    areas: pl.DataFrame,
    rows: Sequence[Places],
    groups: Sequence[FileGroup],
    columns: int,
    dropped: Dropped,
) -> Iterator[Block]:
    """Go through the areas of all files.

    Parameters
    ----------
    stored : StoredReleases
        The counts.
    areas : DataFrame
        All areas.
    rows : sequence of array
        For every file the row of each area in it, or -1.
    groups : sequence of FileGroup
        Which counts go where.
    columns : int
        How many columns there are.
    dropped : Dropped
        Counts what there was no room for.
    """
    at_once = max(16, min(4096, _CELLS // max(1, columns)))
    first_time = not dropped.told
    for start in range(0, areas.height, at_once):
        here = slice(start, min(start + at_once, areas.height))
        counts = np.full((here.stop - start, columns), NOT_AVAILABLE, dtype=np.int32)
        lost = np.zeros(here.stop - start, dtype=np.bool_)
        for group in groups:
            _fill(
                counts,
                group,
                [stored.counts(f, rows[f][here], c) for f, c in zip(group.files, group.columns, strict=True)],
                lost,
                dropped if first_time else Dropped(),
            )
        if first_time:
            dropped.areas += int(lost.sum())
        yield Block(areas[here], counts)
    dropped.told = True


def _fill(counts: Counts, group: FileGroup, found: Sequence[Counts], lost: NDArray[np.bool_], dropped: Dropped) -> None:
    """Put what files publish of some counts into their places: the first number first, and so on."""
    depth = len(group.places)
    if len(found) == 1:
        counts[:, group.places[0]] = found[0]
        return
    layers = np.full((depth, *found[0].shape), NOT_AVAILABLE, dtype=np.int32)
    number = np.zeros(found[0].shape, dtype=np.int64)
    for values in found:
        shown = values > ABSENT
        for layer in range(depth):
            new = shown & (number == layer)
            layers[layer][new] = values[new]
        over = shown & (number >= depth)
        if over.any():
            lost |= over.any(axis=1)
            dropped.counts += int(over.sum())
            dropped.different += int((over & (values != layers[0])).sum())
        number += shown
    for values in found:  # where nobody publishes a number, the best reason for that
        absent = (number == 0) & (_rank(values) > _rank(layers[0]))
        layers[0][absent] = values[absent]
    for layer, places in enumerate(group.places):
        counts[:, places] = layers[layer]


def _rank(values: Counts) -> NDArray[np.int8]:
    found = np.zeros(values.shape, dtype=np.int8)
    for code, rank in _RANK.items():
        found[values == code] = rank
    return found
