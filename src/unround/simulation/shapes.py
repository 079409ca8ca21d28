"""Made-up shapes for the areas of a simulated country: they tile a plane, and every area lies exactly within its parent.

The country is cut into provinces, these into census divisions and these into subdivisions by straight cuts, each part as
large as its dissemination areas are many; subdivisions are divided into the Voronoi cells of their dissemination areas. All
of these are convex, so that a cut leaves nothing over.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unround.simulation.geography import LEVEL_NAMES, Geography

BOUNDARIES = "boundaries.geojson.gz"
MIDDLE, ACROSS = (-30.0, 44.0), (9.0, 5.0)
"""Where the country lies: in the middle of an ocean, so that nobody takes it for a real one."""
CORNERS = 14
RELAXED = 2
"""How often sites move to the middles of their cells' corners, which makes cells rounder."""
STEPS = 20
"""Halvings until a cut is where it should be: to a millionth of the width."""
DIGITS = 6
"""Decimals of a degree: a tenth of a metre."""

Polygon = NDArray[np.float64]
"""Corners in order, against the clock; convex."""


def area_of(polygon: Polygon) -> float:
    """Return the area of a polygon, in square units."""
    (x, y), after = polygon.T, np.concatenate([polygon[1:], polygon[:1]])
    return float(x @ after[:, 1] - y @ after[:, 0]) / 2


def halves(polygon: Polygon, along: NDArray[np.float64], share: float) -> tuple[Polygon, Polygon]:
    """Cut a polygon by a straight line across a direction, so that the first part has a given share of its area."""
    heights = polygon @ along
    low, high = float(heights.min()), float(heights.max())
    wanted = share * area_of(polygon)
    for _ in range(STEPS):
        level = (low + high) / 2
        below, _ = _cut(polygon, heights, level)
        low, high = (level, high) if len(below) < 3 or area_of(below) < wanted else (low, level)
    return _cut(polygon, heights, (low + high) / 2)


def _cut(polygon: Polygon, heights: NDArray[np.float64], level: float) -> tuple[Polygon, Polygon]:
    """Return what lies below a level, and above it."""
    below: list[NDArray[np.float64]] = []
    above: list[NDArray[np.float64]] = []
    for k, corner in enumerate(polygon):
        other = (k + 1) % len(polygon)
        here, there = heights[k] - level, heights[other] - level
        if here <= 0:
            below.append(corner)
        if here >= 0:
            above.append(corner)
        if here * there < 0:
            crossing = corner + (polygon[other] - corner) * (here / (here - there))
            below.append(crossing)
            above.append(crossing)
    return np.array(below).reshape(-1, 2), np.array(above).reshape(-1, 2)


def divided(polygon: Polygon, weights: NDArray[np.float64], rng: np.random.Generator) -> list[Polygon]:
    """Cut a polygon into parts of such weights, across its longer side each time."""
    if len(weights) == 1:
        return [polygon]
    middle = int(np.argmin(np.abs(np.cumsum(weights) - weights.sum() / 2)[:-1])) + 1
    spread = polygon - polygon.mean(axis=0)
    along = np.linalg.eigh(spread.T @ spread)[1][:, 1]
    turn = rng.normal(0.0, 0.25)
    along = np.array([np.cos(turn) * along[0] - np.sin(turn) * along[1], np.sin(turn) * along[0] + np.cos(turn) * along[1]])
    first, second = halves(polygon, along, float(weights[:middle].sum() / weights.sum()))
    return divided(first, weights[:middle], rng) + divided(second, weights[middle:], rng)


def cells(polygon: Polygon, number: int, rng: np.random.Generator) -> list[Polygon]:
    """Divide a polygon into the Voronoi cells of random sites in it."""
    if number == 1:
        return [polygon]
    if number == 2:
        return divided(polygon, rng.uniform(0.6, 1.4, 2), rng)
    sites = _sites(polygon, number, rng)
    found = _voronoi(polygon, sites)
    for _ in range(RELAXED):
        found = _voronoi(polygon, np.array([cell.mean(axis=0) for cell in found]))
    return found


def _sites(polygon: Polygon, number: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw points in a convex polygon: in triangles of it, each with a chance as large as its area."""
    triangles = np.array([[polygon[0], polygon[k], polygon[k + 1]] for k in range(1, len(polygon) - 1)])
    sizes = np.array([max(area_of(triangle), 0.0) for triangle in triangles])
    chosen = triangles[rng.choice(len(triangles), number, p=sizes / sizes.sum())]
    a, b = rng.random((2, number, 1))
    a, b = np.where(a + b > 1, 1 - a, a), np.where(a + b > 1, 1 - b, b)
    return np.asarray(chosen[:, 0] + a * (chosen[:, 1] - chosen[:, 0]) + b * (chosen[:, 2] - chosen[:, 0]))


def _voronoi(polygon: Polygon, sites: NDArray[np.float64]) -> list[Polygon]:
    """Return the cells of sites within a convex polygon.

    Mirrored at every side, sites and their images are equally far from that side: so the sides become borders of cells, and
    no cell reaches beyond them.
    """
    from scipy.spatial import Voronoi

    here, there = polygon, np.concatenate([polygon[1:], polygon[:1]])
    side = there - here
    normal = np.column_stack([side[:, 1], -side[:, 0]]) / np.linalg.norm(side, axis=1, keepdims=True)
    images = [sites - 2 * ((sites - at) @ out)[:, None] * out for at, out in zip(here, normal, strict=True)]
    found = Voronoi(np.concatenate([sites, *images]))
    shapes = []
    for site in range(len(sites)):
        corners = found.vertices[found.regions[found.point_region[site]]]
        angles = np.arctan2(*(corners - sites[site]).T[::-1])
        shapes.append(corners[np.argsort(angles)])
    return shapes


def shapes_of(place: Geography, seed: int) -> list[Polygon]:
    """Return a shape for every area of a country."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(77,)))
    angles = np.linspace(0, 2 * np.pi, CORNERS, endpoint=False) + rng.uniform(-0.12, 0.12, CORNERS)
    country = np.array(MIDDLE) + np.array(ACROSS) * np.column_stack([np.cos(angles), np.sin(angles)])
    children, leaves, roots = _tree(place)
    shapes: list[Polygon | None] = [None] * len(place)
    waiting = list(zip(roots, _shared(country, [leaves[row] for row in roots], rng), strict=True))
    while waiting:
        row, polygon = waiting.pop()
        shapes[row] = polygon
        below = children[row]
        if below and place.level[below[0]] == 0:
            parts = cells(polygon, len(below), rng)
        else:
            parts = _shared(polygon, [leaves[one] for one in below], rng) if below else []
        waiting += zip(below, parts, strict=True)
    return [shape for shape in shapes if shape is not None]


def _shared(polygon: Polygon, leaves: list[int], rng: np.random.Generator) -> list[Polygon]:
    return divided(polygon, np.array(leaves, dtype=np.float64), rng)


def _tree(place: Geography) -> tuple[list[list[int]], list[int], list[int]]:
    """Return the children of every area, how many of the smallest areas are in it, and the areas without a parent."""
    regions = place.regions
    at = {region: row for row, region in enumerate(regions["region"])}
    children: list[list[int]] = [[] for _ in range(len(place))]
    leaves, roots = [0] * len(place), list[int]()
    for row, parent in enumerate(regions["parent"]):  # children come first
        leaves[row] = leaves[row] or 1
        if parent in at:
            children[at[parent]].append(row)
            leaves[at[parent]] += leaves[row]
        else:
            roots.append(row)
    return children, leaves, roots


def write_boundaries(path: Path, place: Geography, levels: tuple[str, ...], seed: int) -> None:
    """Write the shapes of all areas of some levels as GeoJSON, the same bytes every time."""
    shapes = shapes_of(place, seed)
    rows = place.regions.select("region", "code", "name", "level").rows()
    lines = []
    for (region, code, name, level), shape in zip(rows, shapes, strict=True):
        if level in levels:
            corners = [[round(float(x), DIGITS), round(float(y), DIGITS)] for x, y in shape]
            said = {"DGUID": region, "code": code, "name": name, "level": LEVEL_NAMES[level]}
            geometry = {"type": "Polygon", "coordinates": [[*corners, corners[0]]]}
            told = {"type": "Feature", "properties": said, "geometry": geometry}
            lines.append(json.dumps(told, ensure_ascii=False, separators=(",", ":")))
    text = '{"type":"FeatureCollection","note":"simulated: these shapes are invented","features":[\n' + ",\n".join(lines)
    with path.open("wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
        packed.write(f"{text}\n]}}\n".encode())
