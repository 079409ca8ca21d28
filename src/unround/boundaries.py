"""Boundaries: the shapes of areas, so that findings can be shown on a map.

GeoJSON as most offices publish it, or TopoJSON, gzipped or not, becomes shapes with properties; degrees become a plane on
which areas keep their size; the codes in one property say which shape is which area; and `Boundaries` keeps the shapes on a
grid that is fine enough for any page and small enough for the folder of an audit. Everything happens on this machine: no
tiles, no network.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.job.folder import MODEL
from unround.small_files import misfit, plain_arrays, require_file, shortened

if TYPE_CHECKING:
    from unround.job import AuditFolder

MOST = 400_000_000
"""Bytes of a file, unpacked: enough for a country in detail, and not more than fits into memory several times over."""
HELP = "Save a simplified copy, for instance with mapshaper -simplify 10% -o format=topojson."

Ring = NDArray[np.float64]
"""The points of a closed line, two columns; the last point need not repeat the first."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """One shape of a file: its properties, and its rings, holes among them."""

    properties: Mapping[str, str]
    rings: tuple[Ring, ...]


def read_shapes(path: str | Path) -> list[Shape]:
    """Read all shapes of a file."""
    path = Path(path)
    content = _parsed(path)
    try:
        if content.get("type") == "Topology":
            arcs = [_arc(points, content.get("transform")) for points in content["arcs"]]
            named = [(geometry, geometry) for layer in content["objects"].values() for geometry in _geometries(layer)]
        elif content.get("type") == "FeatureCollection":
            arcs = []
            named = [(feature, feature.get("geometry")) for feature in content["features"]]
        else:
            raise InputError(
                f"{path} is neither GeoJSON (a FeatureCollection) nor TopoJSON (a Topology), but {content.get('type')!r}."
            )
        shapes = [Shape(_properties(about), rings) for about, geometry in named if (rings := tuple(_rings(geometry, arcs)))]
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError):
        raise InputError(f"{path} has shapes that are not written as GeoJSON or TopoJSON writes them. {HELP}") from None
    if not shapes:
        raise InputError(f"{path} has no areas in it: boundaries are polygons, and it has none.")
    return shapes


def _parsed(path: Path) -> dict[str, Any]:
    require_file(path)
    try:
        with path.open("rb") as opened:
            packed = opened.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as file:
            content = file.read(MOST + 1)
    except (OSError, EOFError, zlib.error) as problem:
        raise InputError(f"{path} cannot be read: {getattr(problem, 'strerror', None) or problem}.") from None
    if len(content) > MOST:
        raise InputError(f"{path} has more than {MOST:,} bytes, which is too detailed for a map on a page. {HELP}")
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError):
        raise InputError(f"{path} is not JSON, as GeoJSON and TopoJSON are. {HELP}") from None
    if not isinstance(parsed, dict):
        raise InputError(f"{path} is JSON, but neither GeoJSON nor TopoJSON.")
    return parsed


def _text(value: object) -> str:
    """Return a property as text: codes that were saved as numbers are codes again."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None or isinstance(value, dict | list) else str(value).strip()


def _properties(element: Mapping[str, Any]) -> dict[str, str]:
    properties = {str(name): _text(value) for name, value in (element.get("properties") or {}).items()}
    if "id" in element:
        properties.setdefault("id", _text(element["id"]))
    return properties


def _ring(points: Any) -> Ring:
    ring = np.asarray([point[:2] for point in points], dtype=np.float64)
    if ring.ndim != 2 or ring.shape[1] != 2 or not np.isfinite(ring).all():
        raise ValueError("a ring is a list of points")
    return ring


def _geometries(geometry: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    """Yield the geometries of a collection, or the one that is none."""
    if geometry is not None and geometry.get("type") == "GeometryCollection":
        for part in geometry["geometries"]:
            yield from _geometries(part)
    elif geometry is not None:
        yield geometry


def _rings(geometry: Mapping[str, Any] | None, arcs: list[Ring]) -> Iterator[Ring]:
    """Yield the rings of polygons, written as points (GeoJSON) or as numbers of arcs (TopoJSON)."""
    for part in _geometries(geometry):
        if (kind := part.get("type")) in ("Polygon", "MultiPolygon"):
            shape = part["arcs"] if "arcs" in part else part["coordinates"]
            for ring in (ring for polygon in ([shape] if kind == "Polygon" else shape) for ring in polygon):
                if "arcs" in part:
                    yield _joined(ring, arcs)
                elif len(ring) > 2:
                    yield _ring(ring)


def _arc(points: Any, transform: Mapping[str, Any] | None) -> Ring:
    arc = _ring(points)
    if transform is None:
        return arc
    scale, start = (np.asarray(transform[name], dtype=np.float64) for name in ("scale", "translate"))
    return np.asarray(np.cumsum(arc, axis=0) * scale + start)


def _joined(ring: list[int], arcs: list[Ring]) -> Ring:
    """Put a ring together: each arc starts where the one before ends; a negative number means one that runs backwards."""
    pieces = [arcs[at] if at >= 0 else arcs[~at][::-1] for at in ring]
    return np.concatenate([pieces[0], *(piece[1:] for piece in pieces[1:])])


STANDARD = 1 / 6
"""The standard parallels lie so far from both ends of the map, as a share of its height: a common choice."""


def projected(points: Ring) -> Ring:
    """Return points on a plane, north up and y growing downwards, as drawings have it.

    What is not in degrees has been projected before, and is only turned over.
    """
    x, y = points[:, 0], points[:, 1]
    if np.abs(x).max() > 360 or np.abs(y).max() > 90:
        return np.column_stack([x, -y])
    if x.max() - x.min() > 180:  # on both sides of the antimeridian
        x = np.where(x < 0, x + 360, x)
    low, high = np.radians(y.min()), np.radians(y.max())
    first, second = low + STANDARD * (high - low), high - STANDARD * (high - low)
    n = (np.sin(first) + np.sin(second)) / 2
    angle, latitude = np.radians(x - (x.min() + x.max()) / 2), np.radians(y)
    if abs(n) < 1e-6:  # around the equator the cone becomes a cylinder
        return np.column_stack([angle, -np.sin(latitude)])
    c = np.cos(first) ** 2 + 2 * n * np.sin(first)
    radius = np.sqrt(np.maximum(c - 2 * n * np.sin(latitude), 0)) / n
    return np.column_stack([radius * np.sin(n * angle), radius * np.cos(n * angle)])


NAMED = 5
"""Codes that are named where some do not match."""


def matched_in_words(matched: Mapping[str, Any]) -> str:
    """Say how many shapes and areas match, and name those that do not.

    >>> matching = {"by": "DAUID", "matched": 3, "shapes_without_area": 1, "areas_without_shape": 0,
    ...         "first_shapes_without_area": ["9"], "first_areas_without_shape": []}
    >>> matched_in_words(matching)
    '3 areas have a shape, matched by DAUID. 1 shape has a code that no area has (9).'
    """
    number = matched["matched"]
    said = [f"{number:,} {'area has' if number == 1 else 'areas have'} a shape, matched by {matched['by']}."]
    for key, single, more in (
        ("shapes_without_area", "shape has a code that no area has", "shapes have codes that no area has"),
        ("areas_without_shape", "area has no shape", "areas have no shape"),
    ):
        if matched[key]:
            first = matched[f"first_{key}"]
            named = ", ".join(first) + (" …" if matched[key] > len(first) else "")
            said.append(f"{matched[key]:,} {single if matched[key] == 1 else more} ({named}).")
    return " ".join(said)


def match(shapes: Sequence[Shape], names: Sequence[Sequence[str]], source: str) -> tuple[list[int], dict[str, Any]]:
    """Return the area of every shape, -1 where no area has its code; and what came of matching them, as plain data."""
    rows: dict[str, int] = {}
    for row, codes in reversed(list(enumerate(names))):
        rows |= {code: row for code in codes if code}
    bare = {code.lstrip("0"): row for code, row in rows.items()}
    properties = list(dict.fromkeys(name for shape in shapes for name in shape.properties))
    areas_by = {name: [_row(shape.properties.get(name, ""), rows, bare) for shape in shapes] for name in properties}
    number = {name: len({row for row in at if row >= 0}) for name, at in areas_by.items()}
    by = max(properties, key=lambda name: number[name], default="")
    if not by or not number[by]:
        some = {name: next((s.properties[name] for s in shapes if s.properties.get(name)), "") for name in properties}
        listed = shortened([f"{name} = {value!r}" for name, value in some.items()], 6) or "none"
        raise InputError(
            f"no property of the shapes in {source} holds codes of this audit's areas, which look like {names[0][0]}. "
            f"Its properties: {listed}."
        )
    at = areas_by[by]
    taken = set(at)
    strange = [shape.properties.get(by, "") or "no code" for shape, row in zip(shapes, at, strict=True) if row < 0]
    without = [codes[0] for row, codes in enumerate(names) if row not in taken]
    return at, {
        "by": by,
        "matched": number[by],
        "shapes_without_area": len(strange),
        "areas_without_shape": len(without),
        "first_shapes_without_area": strange[:NAMED],
        "first_areas_without_shape": without[:NAMED],
    }


def _row(code: str, rows: Mapping[str, int], bare: Mapping[str, int]) -> int:
    """Return the area of a code; one that was read as a number has lost the zeros before it."""
    if not code:
        return -1
    row = rows.get(code)
    return row if row is not None else bare.get(code.lstrip("0") or "-", -1) if code.isdecimal() else -1


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
    - `matching`: What came of matching them, see `match`, and where they come from.
    """

    points: Grid
    starts: Rows
    rows: Rows
    matching: Mapping[str, Any]

    @property
    def there(self) -> Rows:
        """The areas that have a shape."""
        return np.unique(self.rows)

    def packed(self) -> bytes:
        """Return them as the content of a file; the same ones always give the same."""
        said, file = json.dumps(dict(self.matching), ensure_ascii=False), io.BytesIO()
        steps = np.diff(self.points, axis=0, prepend=self.points[:1] * 0)  # small numbers, which pack well
        np.savez_compressed(file, steps=steps.astype(np.int32), starts=self.starts, rows=self.rows, matching=np.array(said))
        return file.getvalue()

    @classmethod
    def load(cls, path: Path) -> Boundaries:
        """Read what `packed` gave."""
        with plain_arrays(path) as kept:
            points = np.cumsum(kept["steps"], axis=0, dtype=np.int32)
            return cls(points, kept["starts"], kept["rows"], json.loads(str(kept["matching"])))

    def check(self, areas: int) -> None:
        """Raise ValueError unless they are rings of points, each of one of so many areas."""
        starts, rows = self.starts, self.rows
        whole = all(array.ndim == 1 and array.dtype == np.int64 for array in (starts, rows)) and len(starts) == len(rows) + 1
        if self.points.ndim != 2 or self.points.shape[1] != 2 or not whole or not len(rows):
            raise ValueError("these are not rings of points")
        if starts[0] != 0 or starts[-1] != len(self.points) or (np.diff(starts) < 1).any():
            raise ValueError("a ring has no points")
        if ((rows < 0) | (rows >= areas)).any() or misfit(self.matching, {"source": str, "matched": int}) is not None:
            raise ValueError("these are the shapes of other areas")

    def of(self, rows: Rows) -> Boundaries:
        """Return those of some areas only."""
        return self.some(np.isin(self.rows, rows))

    def some(self, rings: NDArray[np.bool_]) -> Boundaries:
        """Return some of the rings."""
        kept = np.flatnonzero(rings)
        sizes = np.diff(self.starts)[kept]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        at = np.repeat(self.starts[kept] - starts[:-1], sizes) + np.arange(starts[-1])
        return Boundaries(self.points[at], starts, self.rows[kept], self.matching)

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
    """Read the boundaries of an audit's areas; `shapes` are those of the file, where they have been read already."""
    import polars as pl

    shapes, areas = shapes or read_shapes(path), folder.areas
    axis = folder.area_axes[0]
    columns = [areas[name].cast(pl.String).fill_null("").to_list() for name in (axis, "code") if name in areas.columns]
    at, matched = match(shapes, list(zip(*columns, strict=True)), str(path))
    mine = [(shape, row) for shape, row in zip(shapes, at, strict=True) if row >= 0]
    rings = [(ring, row) for shape, row in mine for ring in shape.rings]
    flat = projected(np.concatenate([ring for ring, _ in rings]))
    least = flat.min(axis=0)
    span = float((flat.max(axis=0) - least).max()) or 1.0
    grid = np.rint((flat - least) * (GRID / span)).astype(np.int32)
    points, starts = _thinned(grid, np.cumsum([0, *(len(ring) for ring, _ in rings)]))
    rows = np.array([row for _, row in rings], dtype=np.int64)
    return _without_empty(Boundaries(points, starts, rows, matched | {"source": Path(path).name}))


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


def _without_empty(shapes: Boundaries) -> Boundaries:
    """Leave out rings of less than three points, unless an area has no other: then it is a dot, but it is there."""
    large = np.diff(shapes.starts) >= 3
    return shapes.some(large | ~np.isin(shapes.rows, shapes.rows[large]))


def scaled(shapes: Boundaries, box: tuple[int, int, int, int], wide: int) -> tuple[Boundaries, int]:
    """Return shapes at the size of a drawing: its units are whole, its width is given, and its height follows.

    Neighbours stay neighbours: both sides of a border move to the same points.
    """
    left, top, right, bottom = box
    scale = wide / max(right - left, 1)
    grid = np.rint((shapes.points - np.array([left, top])) * scale).astype(np.int32)
    points, starts = _thinned(grid, shapes.starts)
    tall = max(1, round((bottom - top) * scale))
    return _without_empty(Boundaries(points, starts, shapes.rows, shapes.matching)), tall


def keep_boundaries(folder: AuditFolder, path: str | Path, shapes: Sequence[Shape] | None = None) -> Boundaries:
    """Read boundaries, and keep them in the folder of the audit."""
    kept = boundaries_of(folder, path, shapes)
    folder.put({KEPT: kept.packed()})
    return kept


def kept_boundaries(folder: AuditFolder) -> Boundaries | None:
    """Return the boundaries that are kept in the folder of an audit, if any."""
    from unround.job.folder import FILES

    if KEPT not in folder.summary[FILES]:
        return None
    with folder.undamaged(KEPT):
        kept = Boundaries.load(folder.file(KEPT))
        kept.check(folder.areas.height)
        return kept
