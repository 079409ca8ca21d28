"""Whole numbers on disk, a row for every area or person: areas may be many, and only a few are in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

AT_ONCE = 256
"""Areas that are in memory at a time where all are gone through."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of whole numbers in a file.

    - `path`: The file; a full path, so that workers elsewhere find it.
    - `number`, `width`: How many rows there are, and numbers in each.
    - `kind`: The type of the numbers, as numpy calls it.
    """

    path: Path
    number: int
    width: int
    kind: str

    @classmethod
    def new(cls, path: Path, number: int, width: int, kind: str) -> Rows:
        """Make a file of zeros."""
        rows = cls(path.resolve(), number, width, kind)
        with rows.path.open("wb") as file:
            file.truncate(number * rows._bytes)
        return rows

    @property
    def _bytes(self) -> int:
        return self.width * np.dtype(self.kind).itemsize

    @contextmanager
    def writing(self) -> Iterator[BinaryIO]:
        """Open the file for `put`."""
        with self.path.open("r+b") as file:
            yield file

    def put(self, file: BinaryIO, row: int, values: NDArray[Any], first: int = 0) -> None:
        """Write numbers from one place of a row on: part of it, or several whole rows."""
        file.seek(row * self._bytes + first * np.dtype(self.kind).itemsize)
        file.write(np.ascontiguousarray(values, dtype=self.kind).tobytes())

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return some rows."""
        found = np.fromfile(self.path, self.kind, (stop - start) * self.width, offset=start * self._bytes)
        return found.reshape(stop - start, self.width)

    def pick(self, places: Ints) -> NDArray[Any]:
        """Return the rows at these places, which ascend; those between are not kept."""
        found = np.empty((len(places), self.width), dtype=self.kind)
        size = max(1, (1 << 20) // max(1, self._bytes))
        at = 0
        while at < len(places):
            start = int(places[at])
            stop = min(start + size, int(places[-1]) + 1)
            last = int(np.searchsorted(places, stop))
            found[at:last] = self.read(start, stop)[places[at:last] - start]
            at = last
        return found


@dataclass(frozen=True, slots=True, eq=False)
class CountTable:
    """Counts of all areas: some columns of a file.

    - `rows`: The file, one row for every area.
    - `columns`: The columns that are used, in their order.
    """

    rows: Rows
    columns: Ints

    def picked(self, kept: Sequence[int]) -> CountTable:
        """Pick some columns."""
        return CountTable(self.rows, self.columns[np.array(kept, dtype=np.int64)])

    def read(self, start: int, stop: int) -> Ints:
        """Return the counts of some areas in a row: areas × columns."""
        return self.rows.read(start, stop)[:, self.columns].astype(np.int64)

    def area(self, area: int) -> Ints:
        """Return the counts of one area."""
        return np.asarray(self.read(area, area + 1)[0])

    def blocks(self) -> Iterator[tuple[int, Ints]]:
        """Go through all areas: the first of some, and their counts."""
        for start in range(0, self.rows.number, AT_ONCE):
            yield start, self.read(start, min(start + AT_ONCE, self.rows.number))

    def whole(self) -> Ints:
        """Return the counts of all areas: for a few columns alone."""
        found = np.empty((self.rows.number, len(self.columns)), dtype=np.int64)
        for start, counts in self.blocks():
            found[start : start + len(counts)] = counts
        return found
