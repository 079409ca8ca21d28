"""The spool: a release on disk, once parsed, to be read again block by block.

Parsing takes far longer than inference on most files, and a release may be larger than memory. So the file is read once; its
counts are kept as plain integers in the audit's working folder, and its figures beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.release import Block, Counts, FigureValues, Release
from unround.structure import Structure, Survey

if TYPE_CHECKING:
    import polars as pl

COUNTS = "counts.bin"
"""The file of counts in the working folder."""
FIGURES = "figures.bin"
"""The file of rates, means and medians, beside that of the counts."""

Stage = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and out of how much."""


class Spool:
    """Counts on disk, areas in memory; figures, where a release has some, in a second file."""

    def __init__(self, path: Path, columns: int, figures: int = 0) -> None:
        self.path = path
        self.columns = columns
        self.figure_columns = figures
        self.rows = 0
        self._frames: list[pl.DataFrame] = []
        self._areas: pl.DataFrame | None = None
        self._file: BinaryIO | None = None
        self._figures: BinaryIO | None = None

    @property
    def figures_path(self) -> Path:
        """Where the figures are."""
        return self.path.with_name(FIGURES)

    @classmethod
    def open(cls, path: Path, columns: int, areas: pl.DataFrame | int, figures: int = 0) -> Spool:
        """Open counts that were written before; `areas` are the areas, or their number."""
        spool = cls(path, columns, figures)
        if isinstance(areas, int):
            spool.rows = areas
        else:
            spool.rows, spool._areas = areas.height, areas
        return spool

    def add(self, block: Block) -> None:
        """Append a block."""
        if self._file is None:
            self._file = self.path.open("wb")
        self._file.write(np.ascontiguousarray(block.counts, dtype=np.int32).data)  # `tofile` is silent where a disk is full
        if self.figure_columns:
            if self._figures is None:
                self._figures = self.figures_path.open("wb")
            assert block.figures is not None, "a release with figures has them in every block"
            self._figures.write(np.ascontiguousarray(block.figures, dtype=np.int64).data)
        self._frames.append(block.areas)
        self.rows += len(block.counts)

    def close(self, axes: tuple[str, ...], called: str = "the file") -> None:
        """Finish writing, and check that no area occurred twice."""
        import polars as pl

        for file in (self._file, self._figures):
            if file is not None:
                file.close()
        if not self.rows:
            raise InputError(f"there is no area in {called}: it has a header, but no counts.")
        self._areas = pl.concat(self._frames, how="vertical_relaxed")
        twice = self._areas.filter(self._areas.select(axes).is_duplicated())
        if twice.height:
            named = ", ".join(str(twice[axis][0]) for axis in axes)
            raise InputError(f"{named} occurs more than once in {called}; each area must have all its counts in one place.")

    @property
    def areas(self) -> pl.DataFrame:
        """All areas, in the order of the file."""
        assert self._areas is not None, "the spool is still being written"
        return self._areas

    def counts(self, start: int, stop: int) -> Counts:
        """Return the counts of some areas."""
        read = np.fromfile(self.path, dtype=np.int32, count=(stop - start) * self.columns, offset=start * self.columns * 4)
        return read.reshape(stop - start, self.columns)

    def figures(self, start: int, stop: int) -> FigureValues | None:
        """Return the figures of some areas, in units of `FIGURE_UNIT`; None where the release has none."""
        width = self.figure_columns
        if not width:
            return None
        read = np.fromfile(self.figures_path, dtype=np.int64, count=(stop - start) * width, offset=start * width * 8)
        return read.reshape(stop - start, width)

    def pick_figures(self, rows: NDArray[np.int64]) -> FigureValues | None:
        """Return the figures of the areas at these positions; None where the release has none."""
        if not self.figure_columns:
            return None
        if rows.size and (np.diff(rows) == 1).all():
            return self.figures(int(rows[0]), int(rows[-1]) + 1)
        shape = (self.rows, self.figure_columns)
        return np.array(np.memmap(self.figures_path, dtype=np.int64, mode="r", shape=shape)[rows])

    def pick(self, rows: NDArray[np.int64]) -> Counts:
        """Return the counts of the areas at these positions; consecutive ones are read at once."""
        if rows.size and (np.diff(rows) == 1).all():
            return self.counts(int(rows[0]), int(rows[-1]) + 1)
        return np.array(np.memmap(self.path, dtype=np.int32, mode="r", shape=(self.rows, self.columns))[rows])

    def blocks(self, size: int) -> Iterator[Block]:
        """Iterate over the areas again, `size` at a time."""
        for start in range(0, self.rows, size):
            stop = min(start + size, self.rows)
            yield Block(self.areas[start:stop], self.counts(start, stop), self.figures(start, stop))


def survey(
    release: Release, work: Path, progress: Stage = lambda *_: None, *, insist: bool = True
) -> tuple[Spool, Structure]:
    """Read a release once: put its counts on disk, and find the sums that hold in it."""
    spool = Spool(work / COUNTS, len(release.columns), len(release.figures))
    seen = Survey(release, insist=insist)
    for block in release.blocks(lambda done: progress("Reading", done, release.size)):
        spool.add(block)
        seen.add(block)
    spool.close(release.areas)
    return spool, seen.structure()
