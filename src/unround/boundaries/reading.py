"""Reading shapes: GeoJSON as most offices publish it, and TopoJSON, gzipped or not."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.small_files import require_file

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
    """Read all shapes of a file.

    Raises `InputError` if it is not GeoJSON or TopoJSON, too large, or has no areas in it.
    """
    path = Path(path)
    told = _parsed(path)
    try:
        if told.get("type") == "Topology":
            found = list(_of_topology(told))
        elif told.get("type") == "FeatureCollection":
            found = list(_of_features(told["features"]))
        else:
            raise InputError(
                f"{path} is neither GeoJSON (a FeatureCollection) nor TopoJSON (a Topology), but {told.get('type')!r}."
            )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError):
        raise InputError(f"{path} has shapes that are not written as GeoJSON or TopoJSON writes them. {HELP}") from None
    if not found:
        raise InputError(f"{path} has no areas in it: boundaries are polygons, and it has none.")
    return found


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
        told = json.loads(content)
    except (ValueError, RecursionError):
        raise InputError(f"{path} is not JSON, as GeoJSON and TopoJSON are. {HELP}") from None
    if not isinstance(told, dict):
        raise InputError(f"{path} is JSON, but neither GeoJSON nor TopoJSON.")
    return told


def _text(value: object) -> str:
    """Return a property as text: codes that were saved as numbers are codes again."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None or isinstance(value, dict | list) else str(value).strip()


def _properties(told: Mapping[str, Any]) -> dict[str, str]:
    found = {str(name): _text(value) for name, value in (told.get("properties") or {}).items()}
    if "id" in told:
        found.setdefault("id", _text(told["id"]))
    return found


def _ring(points: Any) -> Ring:
    ring = np.asarray([point[:2] for point in points], dtype=np.float64)
    if ring.ndim != 2 or ring.shape[1] != 2 or not np.isfinite(ring).all():
        raise ValueError("a ring is a list of points")
    return ring


# -- GeoJSON ----------------------------------------------------------------------------------------------------------


def _of_features(features: list[dict[str, Any]]) -> Iterator[Shape]:
    for feature in features:
        rings = tuple(_rings(feature.get("geometry")))
        if rings:
            yield Shape(_properties(feature), rings)


def _rings(geometry: Mapping[str, Any] | None) -> Iterator[Ring]:
    if geometry is None:
        return
    kind = geometry["type"]
    if kind == "GeometryCollection":
        for one in geometry["geometries"]:
            yield from _rings(one)
    elif kind in ("Polygon", "MultiPolygon"):
        polygons = [geometry["coordinates"]] if kind == "Polygon" else geometry["coordinates"]
        for polygon in polygons:
            yield from (_ring(points) for points in polygon if len(points) > 2)


# -- TopoJSON ---------------------------------------------------------------------------------------------------------


def _of_topology(told: Mapping[str, Any]) -> Iterator[Shape]:
    arcs = [_arc(points, told.get("transform")) for points in told["arcs"]]
    for geometry in told["objects"].values():
        yield from _of_geometry(geometry, arcs)


def _arc(points: Any, transform: Mapping[str, Any] | None) -> Ring:
    arc = _ring(points)
    if transform is None:
        return arc
    scale, start = (np.asarray(transform[name], dtype=np.float64) for name in ("scale", "translate"))
    return np.asarray(np.cumsum(arc, axis=0) * scale + start)


def _of_geometry(geometry: Mapping[str, Any], arcs: list[Ring]) -> Iterator[Shape]:
    kind = geometry.get("type")
    if kind == "GeometryCollection":
        for one in geometry["geometries"]:
            yield from _of_geometry(one, arcs)
    elif kind in ("Polygon", "MultiPolygon"):
        polygons = [geometry["arcs"]] if kind == "Polygon" else geometry["arcs"]
        rings = tuple(_joined(ring, arcs) for polygon in polygons for ring in polygon)
        if rings:
            yield Shape(_properties(geometry), rings)


def _joined(ring: list[int], arcs: list[Ring]) -> Ring:
    """Put a ring together: each arc starts where the one before ends; a negative number means one that runs backwards."""
    pieces = [arcs[at] if at >= 0 else arcs[~at][::-1] for at in ring]
    return np.concatenate([pieces[0], *(piece[1:] for piece in pieces[1:])])
