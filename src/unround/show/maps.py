"""Maps: areas coloured by their worst finding, or by how many there are among their counts; drawn here, without tiles.

All areas of one colour are one path, in whole units of the drawing, so that a country of 27,000 areas makes a page of some
hundred kilobytes. A drawing is made coarser until it is small enough; areas that become too small to have a form are dots,
and dots of one colour that lie side by side are one line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import ArrayLike, NDArray

from unround.boundaries import Boundaries, kept_boundaries, matched_in_words, scaled
from unround.show.parts import Chart
from unround.show.words import CLAIMS, several

if TYPE_CHECKING:
    from unround.job import AuditFolder

Ints = NDArray[np.int64]

WORST = (
    ("proved", "a proved count"),
    ("conditional", "a count proved on an assumption"),
    ("small", "a likely count of one or two"),
    ("likely", "a larger likely count"),
    ("zeros", "likely zeros only"),
    ("none", "no finding"),
)
"""The classes of areas by their worst finding: what the stylesheet calls them, and what people read."""
RATES = ("r5", "r4", "r3", "r2", "r1", "none")
"""What the stylesheet calls classes of areas by their rate, the highest first."""
TINY = 2
"""Units within which the form of a shape cannot be seen."""
NOTHING = 127
"""The class of a unit that no shape covers."""
UNITS = (2400, 1600, 1100, 800, 560, 400, 280, 200)
"""Widths of a drawing in its own units, the finest first."""
LARGEST = 500_000
"""Bytes of a drawing on a page of its own."""
SMALL = 120_000
"""Bytes of one among other things."""
DOT = 0.004
"""The side of an area that is too small to be drawn, as a share of the width."""
FEW = 1500
"""Areas whose borders are drawn; of more there would be nothing but borders."""


@dataclass(frozen=True, slots=True)
class DrawnMap:
    """A map.

    - `picture`: The drawing.
    - `key`: For each class that occurs what the stylesheet calls it, what people read, and how many areas are in it.
    - `sentences`: What it shows, and which codes did not match.
    """

    picture: Markup
    key: tuple[tuple[str, str, int], ...]
    sentences: tuple[str, ...]

    @property
    def caption(self) -> str:
        """What a map of worst findings shows, in a sentence."""
        classes = [(label, number) for name, label, number in self.key if name != "none"][:2]
        if not classes:
            return "No area has a finding"
        whole = sum(number for _, _, number in self.key)
        more = f"; {classes[1][1]:,} more {_have(classes[1][1])} {classes[1][0]}" if len(classes) > 1 else ""
        return f"{classes[0][1]:,} of {several(whole, 'area')} {_have(classes[0][1])} {classes[0][0]}{more}"


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def worst_classes(rows: ArrayLike, kinds: ArrayLike, sizes: ArrayLike, by_area: ArrayLike) -> Ints:
    """Return for every area the place of its worst finding in `WORST`; `by_area` counts zeros that are not listed, too."""
    areas, first = np.unique(np.asarray(rows), return_index=True)
    kind, size = np.asarray(kinds)[first], np.asarray(sizes)[first]
    classes = np.where(np.asarray(by_area) > 0, len(WORST) - 2, len(WORST) - 1)
    classes[areas] = np.where(kind < 2, kind, np.array([2, 3, 3, 4])[size])
    return classes


def rate_classes(rates: NDArray[np.float64]) -> tuple[Ints, tuple[tuple[str, str], ...]]:
    """Return for every area the class of its rate, and the classes: fifths of the areas with findings, and none."""
    some = rates[rates > 0]
    ends = sorted({_rounded(end) for end in np.quantile(some, [0.2, 0.4, 0.6, 0.8])}) if len(some) else []
    number = len(ends) + 1
    place = np.searchsorted(ends, rates, side="right")
    names = RATES[len(RATES) - 1 - number : -1]
    said = [f"{ends[-1]:g} or more"] if ends else ["any"]
    said += [f"{low:g} to {high:g}" for low, high in zip(reversed(ends[:-1]), reversed(ends[1:]), strict=True)]
    said += [f"under {ends[0]:g}"] if ends else []
    classes = np.where(rates > 0, number - 1 - place, number)
    return classes, (*zip(names, said, strict=True), ("none", "no finding"))


def _rounded(number: float) -> float:
    """Return a number with two digits that count."""
    return float(f"{number:.2g}")


def draw(
    boundaries: Boundaries,
    classes: Ints,
    named: Sequence[tuple[str, str]],
    said: str,
    largest: int = LARGEST,
) -> DrawnMap:
    """Draw a map."""
    box, there = boundaries.box(), boundaries.there
    units, shapes, tall = _fitting(boundaries, box, classes, largest)
    large, dots = _paths(shapes, classes, len(named)), _runs(_raster(shapes, classes, (units, tall)), len(named))
    borders = " bordered" if len(there) <= FEW else ""
    parts = "".join(
        f'<path class="area {escape(name)}{how}" d="{path}"/>'
        for kinds, how in ((large, borders), (dots, " dots"))
        for (name, _), path in reversed(list(zip(named, kinds, strict=True)))
        if path
    )
    left, top, right, _ = box
    where = f'data-left="{left}" data-top="{top}" data-scale="{max(right - left, 1) / units:.6g}"'
    numbers = np.bincount(classes[there], minlength=len(named))
    key = tuple((name, label, int(number)) for (name, label), number in zip(named, numbers, strict=True) if number)
    listed = "; ".join(f"{label}: {several(number, 'area')}" for _, label, number in key)
    picture = Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart choropleth" role="img" aria-label="{escape(said)} '
        f'{escape(listed)}." viewBox="0 0 {units} {tall}" {where}>{parts}</svg>'
    )
    return DrawnMap(picture, key, (matched_in_words(boundaries.matching),))


def _fitting(
    boundaries: Boundaries, box: tuple[int, int, int, int], classes: Ints, largest: int
) -> tuple[int, Boundaries, int]:
    """Return the finest drawing that is small enough, by halving: its width, its shapes and its height."""
    low, high = 0, len(UNITS) - 1
    while low < high:
        middle = (low + high) // 2
        shapes, tall = scaled(boundaries, box, UNITS[middle])
        fits = _bytes(shapes, classes, (UNITS[middle], tall)) <= largest
        low, high = (low, middle) if fits else (middle + 1, high)
    return (UNITS[low], *scaled(boundaries, box, UNITS[low]))


def _extents(shapes: Boundaries) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
    """Return the upper left corner of every ring, its width and height, and whether it is too small to have a form."""
    low = np.minimum.reduceat(shapes.points, shapes.starts[:-1])
    wide = np.maximum.reduceat(shapes.points, shapes.starts[:-1]) - low
    return low, wide, np.asarray((wide <= TINY).all(axis=1))


def _bytes(shapes: Boundaries, classes: Ints, size: tuple[int, int]) -> int:
    """Return about how long the paths of some shapes are: a point takes four characters or five, a run of dots eight."""
    _, _, tiny = _extents(shapes)
    grid = _raster(shapes, classes, size)
    runs = int((np.diff(grid, axis=1) != 0).sum())
    return int(4.5 * np.diff(shapes.starts)[~tiny].sum() + 10 * (~tiny).sum() + 8 * runs)


def _raster(shapes: Boundaries, classes: Ints, size: tuple[int, int]) -> NDArray[np.int8]:
    """Return the class of every unit of the drawing that shapes without a form cover; the worst, where several do."""
    wide, tall = size
    dot = max(1, round(DOT * wide))
    low, sides, tiny = _extents(shapes)
    low, kinds = low[tiny], classes[shapes.rows[tiny]].astype(np.int8)
    sides = np.where((sides[tiny] > 0).any(axis=1, keepdims=True), np.maximum(sides[tiny], 1), dot)
    grid = np.full((tall + TINY + dot, wide + TINY + dot), NOTHING, dtype=np.int8)
    for x in range(max(dot, TINY)):
        for y in range(max(dot, TINY)):
            inside = (sides[:, 0] > x) & (sides[:, 1] > y)
            np.minimum.at(grid, (low[inside, 1] + y, low[inside, 0] + x), kinds[inside])
    return grid


def _runs(grid: NDArray[np.int8], number: int) -> list[str]:
    """Return units of each class as lines, one for each run of them in a row."""
    change = np.diff(grid, axis=1, prepend=NOTHING)
    row, start = np.nonzero(change)
    kind = grid[row, start]
    end = np.where(np.append(row[1:] == row[:-1], False), np.append(start[1:], 0), grid.shape[1])
    paths = []
    for colour in range(number):
        here = kind == colour
        y, x, long = row[here], start[here], (end - start)[here]
        across = np.diff(x, prepend=0) - np.append(0, long[:-1])  # a line ends where the next begins to move from
        down = np.diff(y, prepend=0)
        steps = zip(across.tolist(), down.tolist(), long.tolist(), strict=True)
        paths.append("M0 .5" + "".join([f"m{dx} {dy}h{n}" for dx, dy, n in steps]).replace(" -", "-") if here.any() else "")
    return paths


def _paths(shapes: Boundaries, classes: Ints, number: int) -> list[str]:
    """Return the shapes of each class that have a form as one path, each beginning where it lies from the one before."""
    _, _, tiny = _extents(shapes)
    kinds = classes[shapes.rows].tolist()
    steps = np.diff(shapes.points, axis=0, prepend=shapes.points[:1])
    starts = shapes.starts.tolist()
    paths: list[list[str]] = [[] for _ in range(number)]
    last: list[tuple[int, int]] = [(0, 0)] * number
    for at in np.flatnonzero(~tiny).tolist():
        kind = kinds[at]
        (x, y), before = shapes.points[starts[at]].tolist(), last[kind]
        outline = " ".join([f"{dx} {dy}" for dx, dy in steps[starts[at] + 1 : starts[at + 1]].tolist()])
        paths[kind].append(f"m{x - before[0]} {y - before[1]}l{outline}z".replace(" -", "-"))
        last[kind] = x, y
    return ["".join(path) for path in paths]


def map_of_report(folder: AuditFolder) -> DrawnMap | None:
    """Return the map of an audit for its report: every area by its worst finding; None where no boundaries were given."""
    shapes = kept_boundaries(folder)
    if shapes is None:
        return None
    import polars as pl

    from unround.audits.findings import size_class
    from unround.job.folder import FINDINGS, PUBLISHED, ZEROS_NOT_LISTED

    axes, listed = folder.area_axes, folder.areas
    claims = folder.table(FINDINGS).select(*axes, "kind", "value")  # in the order of their rank
    areas = listed.lazy().select(axes).with_row_index("row")
    ranked = claims.join(areas, on=axes, how="left", maintain_order="left").collect()
    kinds = ranked["kind"].replace_strict(CLAIMS, range(len(CLAIMS)), return_dtype=pl.Int64)
    zeros = folder.table(PUBLISHED).select(ZEROS_NOT_LISTED).collect()[ZEROS_NOT_LISTED]
    classes = worst_classes(ranked["row"], kinds, size_class(ranked["value"].to_numpy()), zeros)
    levels = listed["level"].fill_null("").to_list() if "level" in listed.columns else [""] * listed.height
    smallest = shapes.of(smallest_level(shapes, levels))
    return draw(smallest, classes, WORST, "Map of the areas by their worst finding.", SMALL)


def smallest_level(shapes: Boundaries, levels: Sequence[str], wanted: str | None = None) -> Ints:
    """Return the areas with shapes of one level: of larger ones the smaller would be hidden, or hide them.

    Unless a level is wanted, it is the one with the most areas.
    """
    by_level: dict[str, list[int]] = {}
    for row in shapes.there.tolist():
        by_level.setdefault(levels[row], []).append(row)
    level = max(by_level, key=lambda name: len(by_level[name])) if wanted is None else wanted
    return np.array(by_level.get(level, []), dtype=np.int64)


def map_chart(drawn: DrawnMap, caption: str) -> Chart:
    """Return a map as a part of a document."""
    key = [(name, label, f"{many:,}", "") for name, label, many in drawn.key]
    return Chart(drawn.picture, caption, key=key, style="map-figure", below=drawn.sentences)


def map_data(drawn: DrawnMap) -> Mapping[str, Any]:
    """Return what a map shows as plain data."""
    return {"classes": [{"class": label, "areas": number} for _, label, number in drawn.key], "notes": list(drawn.sentences)}
