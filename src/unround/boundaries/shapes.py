"""Boundaries: the shapes of an audit's areas, on a grid fine enough for any page and small enough to keep."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unround.audits.folder import MODEL
from unround.boundaries.matching import match
from unround.boundaries.projecting import projected
from unround.boundaries.reading import Shape, read_shapes
from unround.errors import InputError

if TYPE_CHECKING:
    from unround.audits import AuditFolder

GRID = 1 << 15
"""The longer side of the grid. At a thousand pixels a page, one can look thirty times as closely before steps show."""
KEPT = f"{MODEL}/boundaries.npz"
"""Where they are kept in the folder of an audit."""

Grid = NDArray[np.int32]
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Boundaries:
    """The shapes of areas.

    - `points`: All points, in whole numbers of the grid: x to the right, y downwards.
    - `starts`: Where every ring starts among them, and the end of the last.
    - `rows`: For every ring, its area.
    - `told`: What came of matching them, `Matched.to_json()`, and where they come from.
    """

    points: Grid
    starts: Rows
    rows: Rows
    told: Mapping[str, Any]

    @property
    def there(self) -> Rows:
        """The areas that have a shape."""
        return np.unique(self.rows)

    def save(self, path: Path) -> None:
        """Write them into a file; the same ones always give the same file."""
        said = json.dumps(dict(self.told), ensure_ascii=False)
        steps = np.diff(self.points, axis=0, prepend=self.points[:1] * 0)  # small numbers, which pack well
        with path.open("wb") as file:
            np.savez_compressed(file, steps=steps.astype(np.int32), starts=self.starts, rows=self.rows, told=np.array(said))

    @classmethod
    def load(cls, content: bytes) -> Boundaries:
        """Read what `save` wrote."""
        with np.load(io.BytesIO(content), allow_pickle=False) as kept:
            points = np.cumsum(kept["steps"], axis=0, dtype=np.int32)
            return cls(points, kept["starts"], kept["rows"], json.loads(str(kept["told"])))

    def of(self, rows: Rows) -> Boundaries:
        """Return those of some areas only."""
        kept = np.flatnonzero(np.isin(self.rows, rows))
        sizes = np.diff(self.starts)[kept]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        at = np.repeat(self.starts[kept] - starts[:-1], sizes) + np.arange(starts[-1])
        return Boundaries(self.points[at], starts, self.rows[kept], self.told)

    def box(self) -> tuple[int, int, int, int]:
        """Return the smallest rectangle around them: left, top, right, bottom."""
        (left, top), (right, bottom) = self.points.min(axis=0), self.points.max(axis=0)
        return int(left), int(top), int(right), int(bottom)

    def at(self, x: float, y: float) -> int:
        """Return the area at a point of the grid; -1 where there is none.

        A ray to the right crosses the rings of the area around the point an odd number of times.
        """
        ends = np.arange(1, len(self.points) + 1)
        ends[self.starts[1:] - 1] = self.starts[:-1]  # every ring closes
        here, there = self.points, self.points[ends]
        crosses = (here[:, 1] > y) != (there[:, 1] > y)
        places = np.flatnonzero(crosses)
        (x1, y1), (x2, y2) = here[places].T.astype(float), there[places].T.astype(float)
        right = places[x1 + (y - y1) / (y2 - y1) * (x2 - x1) > x]
        rings = np.searchsorted(self.starts, right, side="right") - 1
        areas, times = np.unique(self.rows[rings], return_counts=True)
        inside = areas[times % 2 == 1]
        return int(inside[0]) if len(inside) else -1


def boundaries_of(folder: AuditFolder, path: str | Path, shapes: Sequence[Shape] | None = None) -> Boundaries:
    """Read the boundaries of an audit's areas; `shapes` are those of the file, where they have been read already.

    Raises `InputError` if the file cannot be read, or none of its shapes is one of the areas.
    """
    import polars as pl

    shapes, areas = shapes or read_shapes(path), folder.areas
    axis = folder.told["areas"][0]
    columns = [areas[name].cast(pl.String).fill_null("").to_list() for name in (axis, "code") if name in areas.columns]
    found = match(shapes, list(zip(*columns, strict=True)), str(path))
    mine = [(shape, row) for shape, row in zip(shapes, found.rows, strict=True) if row >= 0]
    rings = [(ring, row) for shape, row in mine for ring in shape.rings]
    points, starts = _on_grid(np.concatenate([ring for ring, _ in rings]), np.array([len(ring) for ring, _ in rings]))
    rows = np.array([row for _, row in rings], dtype=np.int64)
    told = {**found.to_json(), "source": Path(path).name}
    return _without_empty(Boundaries(points, starts, rows, told))


def _on_grid(points: NDArray[np.float64], sizes: NDArray[np.int64]) -> tuple[Grid, Rows]:
    """Put points on the grid, and leave out those that fall together with the one before."""
    flat = projected(points)
    least = flat.min(axis=0)
    span = float((flat.max(axis=0) - least).max()) or 1.0
    grid = np.rint((flat - least) * (GRID / span)).astype(np.int32)
    return _thinned(grid, np.concatenate([[0], np.cumsum(sizes)]))


def _thinned(grid: Grid, starts: Rows) -> tuple[Grid, Rows]:
    """Leave out points that repeat the one before in their ring, and the last where it repeats the first."""
    keep = np.ones(len(grid), dtype=bool)
    keep[1:] = (grid[1:] != grid[:-1]).any(axis=1)
    keep[starts[:-1]] = True
    last = starts[1:] - 1
    closed = (grid[last] == grid[starts[:-1]]).all(axis=1) & (last > starts[:-1])
    keep[last[closed]] = False
    kept = np.concatenate([[0], np.cumsum(keep)])
    return grid[keep], kept[starts]


def _without_empty(found: Boundaries) -> Boundaries:
    """Leave out rings of less than three points, unless an area has no other: then it is a dot, but it is there."""
    large = np.diff(found.starts) >= 3
    with_large = np.isin(found.rows, found.rows[large])
    keep = np.flatnonzero(large | ~with_large)
    sizes = np.diff(found.starts)[keep]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    at = np.repeat(found.starts[keep] - starts[:-1], sizes) + np.arange(starts[-1])
    return Boundaries(found.points[at], starts, found.rows[keep], found.told)


def scaled(found: Boundaries, box: tuple[int, int, int, int], wide: int) -> tuple[Boundaries, int]:
    """Return shapes at the size of a drawing: its units are whole, its width is given, and its height follows.

    Neighbours stay neighbours: both sides of a border move to the same points.
    """
    left, top, right, bottom = box
    scale = wide / max(right - left, 1)
    grid = np.rint((found.points - np.array([left, top])) * scale).astype(np.int32)
    points, starts = _thinned(grid, found.starts)
    tall = max(1, round((bottom - top) * scale))
    return _without_empty(Boundaries(points, starts, found.rows, found.told)), tall


def keep_boundaries(folder: AuditFolder, path: str | Path, shapes: Sequence[Shape] | None = None) -> Boundaries:
    """Read boundaries, and keep them in the folder of the audit."""
    found = boundaries_of(folder, path, shapes)
    found.save(folder.path / KEPT)
    folder.reseal(KEPT)
    return found


def kept_boundaries(folder: AuditFolder) -> Boundaries | None:
    """Return the boundaries that are kept in the folder of an audit, if any.

    Raises `InputError` if the file is damaged.
    """
    from unround.audits.integrity import FILES

    if KEPT not in folder.summary[FILES]:
        return None
    try:
        return Boundaries.load(folder.file(KEPT).read_bytes())
    except (OSError, ValueError, KeyError) as problem:
        raise InputError(f"the audit in {folder.path} is damaged: {KEPT} cannot be read. Run it again.") from problem
