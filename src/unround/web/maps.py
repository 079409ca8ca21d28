"""The map: every area by its worst finding, or by how many findings there are among its counts."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from unround.boundaries import Boundaries
from unround.errors import InputError
from unround.show.maps import (
    LARGEST,
    SMALL,
    WORST,
    DrawnMap,
    draw,
    map_chart,
    map_data,
    rate_classes,
    smallest_level,
    worst_classes,
)
from unround.show.page import html
from unround.show.parts import Links, Part, Piece, Section
from unround.web.explorer import Explorer
from unround.web.lists import area_data, areas_table
from unround.web.outline import level_named
from unround.web.page import Asked, Missing, Page

MEASURES = {"worst": "worst finding", "rate": "findings per 1,000 counts"}
MOST_PLACES = 200
"""Places that can be chosen to look closer at."""


def whole_map(asked: Asked) -> Page:
    """Show the map of all areas of a level, or of one place."""
    explorer = asked.explorer
    measure, place = asked.query.get("measure") or "worst", asked.query.get("place", "")
    if measure not in MEASURES:
        raise InputError(f"there is no measure {measure!r}: choose among {', '.join(MEASURES)}.")
    if explorer.boundaries is None:
        raise Missing("there is no map: give the shapes of the areas with `unround serve DIR --boundaries FILE`.")
    rows = _rows(explorer, asked.query.get("level"), place)
    drawn = drawn_map(explorer, measure, rows, LARGEST)
    levels = list(dict.fromkeys(str(explorer.levels[row]) for row in explorer.boundaries.there.tolist()))
    level = str(explorer.levels[rows[0]])
    answer = {"measure": MEASURES[measure], "level": level, "place": place, **map_data(drawn)}
    named = [(level, level_named(level)) for level in levels]
    worst = f"{drawn.caption}." if measure == "worst" else "Findings per 1,000 published counts of each area."
    parts: list[Part] = [
        Piece("map_form", (MEASURES, measure, named, level, _places(explorer), place)),
        Piece("mapped", (html([map_chart(drawn, worst)]), level, place)),
    ]
    riskiest = [area_data(explorer, row) for row in _worst(explorer, rows)]
    if riskiest:
        every = Links([("All areas, by their findings", "/areas")], "more")
        parts.append(Section("Areas with the most findings", [areas_table(riskiest), every]))
    return Page("Map", [Section("Map", parts, level=1)], answer)


def small_map(explorer: Explorer) -> DrawnMap | None:
    """Return the map for the first page; None where there are no boundaries."""
    if explorer.boundaries is None:
        return None
    return drawn_map(explorer, "worst", _rows(explorer, None, ""), SMALL)


def area_at(asked: Asked) -> Page:
    """Say which area is at a point of the map."""
    explorer = asked.explorer
    if explorer.boundaries is None:
        raise Missing("there is no map.")
    try:
        x, y = float(asked.query.get("x", "")), float(asked.query.get("y", ""))
    except ValueError:
        raise InputError("a point of the map is given by two numbers, x and y.") from None
    if not (math.isfinite(x) and math.isfinite(y)):
        raise InputError("a point of the map is given by two numbers, x and y.")
    row = _shapes(explorer, asked.query.get("level", ""), asked.query.get("place", "")).at(x, y)
    if row < 0:
        raise Missing("there is no area at this point of the map.")
    return Page("Map", [], area_data(explorer, row))


def _shapes(explorer: Explorer, level: str, place: str) -> Boundaries:
    """Return the shapes of a level and a place: kept, as whoever points at a map asks for them again and again."""
    assert explorer.boundaries is not None
    kept = explorer.mapped.get((level, place))
    if kept is None:
        kept = explorer.mapped.put((level, place), explorer.boundaries.of(_rows(explorer, level, place)), 1)
    return kept


def _rows(explorer: Explorer, level: str | None, place: str) -> NDArray[np.int64]:
    """Return the areas of a level, and of a place."""
    assert explorer.boundaries is not None
    rows = smallest_level(explorer.boundaries, explorer.levels.tolist(), level or None)
    if not len(rows):
        raise InputError(f"there is no level {level!r} on this map.")
    if place:
        grouping = explorer.grouping
        if grouping is None or place not in grouping.keys:
            raise InputError(f"there is no place {place!r} in this audit.")
        rows = rows[grouping.of[rows] == grouping.keys.index(place)]
        if not len(rows):
            raise Missing(f"no area of {place} has a shape.")
    return rows


def _places(explorer: Explorer) -> list[tuple[str, str]]:
    """Return the places that one can look closer at: those with the most areas."""
    grouping = explorer.grouping
    if grouping is None:
        return []
    numbers = np.bincount(grouping.of, minlength=len(grouping.keys))
    largest = np.argsort(-numbers, kind="stable")[:MOST_PLACES]
    return sorted(
        ((grouping.keys[at], grouping.names[at]) for at in largest.tolist() if numbers[at] > 1), key=lambda place: place[1]
    )


def _worst(explorer: Explorer, rows: NDArray[np.int64]) -> list[int]:
    """Return the areas with the most findings among some."""
    order = rows[np.argsort(-explorer.area_weights[rows], kind="stable")][:8]
    return [row for row in order.tolist() if explorer.by_area[row]]


def classes_of(explorer: Explorer, measure: str) -> tuple[NDArray[np.int64], tuple[tuple[str, str], ...]]:
    """Return the class of every area by a measure, and the classes."""
    claims = explorer.claims
    if measure == "worst":
        return worst_classes(claims.row, claims.kind, claims.size, explorer.by_area), WORST
    return rate_classes(1000 * explorer.by_area / np.maximum(explorer.published, 1))


def drawn_map(explorer: Explorer, measure: str, rows: NDArray[np.int64], largest: int) -> DrawnMap:
    """Draw some areas by a measure."""
    assert explorer.boundaries is not None
    classes, named = classes_of(explorer, measure)
    return draw(explorer.boundaries.of(rows), classes, named, f"Map of the areas by {MEASURES[measure]}.", largest)
