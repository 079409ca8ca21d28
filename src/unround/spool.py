"""The spool: a release as it was read, on disk, to be gone through again block by block.

Parsing takes far longer than inference on most files, and a release may be larger than memory. So the file is read once; its
counts wait as plain integers in the folder that the audit works in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.release import Block, Counts, Release
from unround.structure import PlanFile, Structure, Survey

if TYPE_CHECKING:
    import polars as pl

COUNTS = "counts.bin"
"""The file of counts in the folder that is worked in."""

Stage = Callable[[str, int, int], None]
"""Is told what is being done, how much of it is done, and out of how much."""


class Spool:
    """Counts on disk, areas in memory.

    Parameters
    ----------
    path : Path
        Where the counts go.
    columns : int
        How many counts an area has.
    """

    def __init__(self, path: Path, columns: int) -> None:
        self.path = path
        self.columns = columns
        self.rows = 0
        self._frames: list[pl.DataFrame] = []
        self._areas: pl.DataFrame | None = None
        self._file: BinaryIO | None = None

    @classmethod
    def open(cls, path: Path, columns: int, areas: pl.DataFrame | int) -> Spool:
        """Open counts that were written before, of these areas, or of so many."""
        spool = cls(path, columns)
        if isinstance(areas, int):
            spool.rows = areas
        else:
            spool.rows, spool._areas = areas.height, areas
        return spool

    def add(self, block: Block) -> None:
        """Append a block."""
        if self._file is None:
            self._file = self.path.open("wb")
        np.ascontiguousarray(block.counts, dtype=np.int32).tofile(self._file)
        self._frames.append(block.areas)
        self.rows += len(block.counts)

    def close(self, axes: tuple[str, ...]) -> None:
        """End writing, and see that no area came twice.

        Raises
        ------
        InputError
            If there are no areas, or one stands in the file twice.
        """
        import polars as pl

        if self._file is not None:
            self._file.close()
        if not self.rows:
            raise InputError("there is no area in this file: it has a header, but no counts.")
        self._areas = pl.concat(self._frames, how="vertical_relaxed")
        twice = self._areas.filter(self._areas.select(axes).is_duplicated())
        if twice.height:
            named = ", ".join(str(twice[axis][0]) for axis in axes)
            raise InputError(f"{named} occurs more than once in the file; each area must have all its counts in one place.")

    @property
    def areas(self) -> pl.DataFrame:
        """All areas, in the order of the file."""
        assert self._areas is not None, "the spool is still being written"
        return self._areas

    def counts(self, start: int, stop: int) -> Counts:
        """Return the counts of some areas."""
        read = np.fromfile(self.path, dtype=np.int32, count=(stop - start) * self.columns, offset=start * self.columns * 4)
        return read.reshape(stop - start, self.columns)

    def pick(self, rows: NDArray[np.int64]) -> Counts:
        """Return the counts of the areas at these places; those that follow one upon the other are read at once."""
        if rows.size and (np.diff(rows) == 1).all():
            return self.counts(int(rows[0]), int(rows[-1]) + 1)
        return np.array(np.memmap(self.path, dtype=np.int32, mode="r", shape=(self.rows, self.columns))[rows])

    def blocks(self, size: int) -> Iterator[Block]:
        """Go through the areas again, so many at a time."""
        for start in range(0, self.rows, size):
            stop = min(start + size, self.rows)
            yield Block(self.areas[start:stop], self.counts(start, stop))


def survey(
    release: Release,
    work: Path,
    plan_file: PlanFile | None = None,
    progress: Stage = lambda *_: None,
    *,
    insist: bool = True,
) -> tuple[Spool, Structure]:
    """Read a release once: put its counts on disk, and find out which sums hold in it.

    Parameters
    ----------
    release : Release
        What was published.
    work : Path
        The folder for the counts.
    plan_file : PlanFile, optional
        The user's word on sums and mechanisms.
    progress : function
        Is told how far it is.
    insist : bool
        Whether a sum of the user's that cannot be is an error; else it is among those rejected.
    """
    spool = Spool(work / COUNTS, len(release.columns))
    seen = Survey(release, plan_file, insist=insist)
    for block in release.blocks(lambda done: progress("Reading", done, release.size)):
        spool.add(block)
        seen.add(block)
    spool.close(release.areas)
    return spool, seen.structure()
