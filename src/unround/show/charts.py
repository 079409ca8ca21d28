"""Every chart of unround, drawn by hand as a small SVG.

There is one way of drawing, for the report, the comparison pages, the explorer and files alike: text is put together here,
which takes well under a millisecond per chart. A charting library in between (Altair, with a browser engine behind it to
render) took half the time of a small audit. Colours are CSS classes whose values come from the page's own tokens, so that a
chart follows the reader's scheme, light or dark, and prints; nothing is drawn twice. Charts are at most 440 pixels wide, and
readable on a telephone. Each says in `aria-label` what it shows, and its marks say their numbers in `<title>`.

All texts come from somebody's file and are escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from unround.show.parts import CARD, Chart, Charts, Fold, Part, rest
from unround.show.words import CLAIMS, cut, number, percent, span

WIDE, LETTER = 440, 6.4
"""Pixels of the widest chart, and about those of a letter."""

FEW, FAR, MOST_BARS = 30, 12, 320
"""Counts of a distribution that are all drawn, however unlikely; how far from them the published one may be to be drawn
beside them; and bars that fit side by side: where there are more counts, several share one."""

MOST_DRAWN = 60
"""Cells whose distributions are drawn; more would make a page that nobody can look at."""

ALIKE = 1e-9
"""Probabilities that differ by less than this share are equal."""


class Picture:
    """A picture that is being put together.

    - `width`, `height`: In pixels; a page may scale it.
    - `said`: What it shows, for those who cannot see it.
    - `kind`: Further CSS classes.
    """

    def __init__(self, width: float, height: float, said: str, kind: str = "") -> None:
        self.width, self.height, self.said, self.kind = width, height, said, kind
        self.parts: list[str] = []

    def text(self, x: float, y: float, text: object, kind: str = "", anchor: str = "start") -> None:
        """Write something."""
        side = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self.parts.append(f'<text{_class(kind)} x="{x:.1f}" y="{y:.1f}"{side}>{escape(text)}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """Draw a line."""
        self.parts.append(f'<line{_class(kind)} x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')

    def rect(self, x: float, y: float, wide: float, tall: float, kind: str, title: str = "", round_by: float = 0) -> None:
        """Draw a rectangle; its title is shown when somebody points at it."""
        corner = f' rx="{round_by:g}"' if round_by else ""
        place = f'x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}"{corner}'
        self.parts.append(f"<rect{_class(kind)} {place}>{_title(title)}</rect>")

    def dot(self, x: float, y: float, radius: float, kind: str, title: str = "") -> None:
        """Draw a circle."""
        self.parts.append(f'<circle{_class(kind)} cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">{_title(title)}</circle>')

    def path(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """Draw a line through points."""
        steps = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.parts.append(f'<path{_class(kind)} d="M{steps}"/>')

    def shape(self, steps: str, kind: str, title: str = "") -> None:
        """Draw a shape by its own path."""
        self.parts.append(f'<path{_class(kind)} d="{steps}">{_title(title)}</path>')

    def done(self) -> Markup:
        """Return the picture."""
        return Markup(
            f'<svg xmlns="http://www.w3.org/2000/svg" class="chart {escape(self.kind)}" role="img" '
            f'aria-label="{escape(self.said)}" viewBox="0 0 {self.width:g} {self.height:g}" width="{self.width:g}" '
            f'height="{self.height:g}">{"".join(self.parts)}</svg>'
        )


def _class(kind: str) -> str:
    return f' class="{escape(kind)}"' if kind else ""


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>" if text else ""


class Scale(NamedTuple):
    """Where numbers go between two ends of an axis, by their square roots if need be."""

    low: float
    high: float
    start: float
    end: float
    root: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a number."""
        share = (value - self.low) / ((self.high - self.low) or 1)
        return self.start + (self.end - self.start) * (math.sqrt(max(0.0, share)) if self.root else share)


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Return round numbers between two others, about so many.

    >>> ticks(0, 0.37), ticks(0, 1900), ticks(0.6, 1)
    ([0.0, 0.1, 0.2, 0.3], [0.0, 500.0, 1000.0, 1500.0], [0.6, 0.7, 0.8, 0.9, 1.0])
    """
    span = (high - low) or 1
    rough = span / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1, 2, 5, 10) if power * k >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _label_room(labels: Sequence[str], most: int = 30) -> tuple[list[str], float]:
    """Return labels that are short enough, and the room that they need."""
    short = [cut(label, most) for label in labels]
    return short, LETTER * max(map(len, short), default=0) + 16


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


# -- rows: bars, ranges, pairs of dots --------------------------------------------------------------------------------


def stacked_bars(rows: Mapping[str, Mapping[str, float]], what: str, digits: int = 0) -> Markup:
    """Draw a bar per class, made up of its claims of each kind, with the sum at its end."""
    kinds = [kind for kind in CLAIMS if any(row[kind] for row in rows.values())]
    labels, left = _label_room(list(rows))
    sums = [sum(row[kind] for kind in kinds) for row in rows.values()]
    top = 22 if len(kinds) > 1 else 2
    right = 10 + LETTER * max((len(f"{number:,.{digits}f}") for number in sums), default=1)
    said = "; ".join(f"{name}: {_listed(row, digits)}" for name, row in rows.items())
    drawn = Picture(360, top + 26 * len(rows) + 2, f"{what}. {said}")
    x = left
    if top > 2:
        for kind in kinds:
            drawn.rect(x, 4, 10, 10, f"bar {kind}")
            drawn.text(x + 15, 13, kind, "soft")
            x += 15 + LETTER * len(kind) + 16
    scale = Scale(0, max(sums, default=0) or 1, left, 360 - right)
    for at, (name, row) in enumerate(rows.items()):
        y, x = top + 26 * at, left
        drawn.text(left - 8, y + 15, labels[at], anchor="end")
        for kind in kinds:
            wide = scale(row[kind]) - left
            if wide > 0:
                drawn.rect(x, y + 2, max(wide, 0.5), 18, f"bar {kind}", f"{name}: {row[kind]:,.{digits}f} {kind}")
            x += wide
        drawn.text(x + 6, y + 15, f"{sums[at]:,.{digits}f}")
    return drawn.done()


def _listed(numbers: Mapping[str, float], digits: int = 0) -> str:
    return ", ".join(f"{numbers[kind]:,.{digits}f} {kind}" for kind in CLAIMS if numbers[kind]) or "none"


def against_chance(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Draw what was found as diamonds over the range that chance predicts."""
    labels, left = _label_room([row["label"] for row in rows])
    said = "; ".join(f"{row['label']}: {row['found']:,} found, {row['low']:,} to {row['high']:,} by chance" for row in rows)
    drawn = Picture(380, 28 * len(rows) + 20, f"Proofs from one sum. {said}")
    largest = max(1, *(max(row["found"], row["high"]) for row in rows))
    # Square roots: chance scatters by about as much everywhere on this scale, and 0 has its place.
    scale = Scale(0, largest, left + 6, 380 - 12 - LETTER * len(f"{largest:,}"), root=True)
    _vertical(drawn, scale, [t for t in ticks(0, largest) if t == int(t)], 0, 28 * len(rows), _plain)
    for at, row in enumerate(rows):
        y = 28 * at + 14
        x, end = scale(row["found"]), scale(max(row["found"], row["high"]))
        drawn.text(left - 8, y + 4, labels[at], anchor="end")
        title = f"{row['label']}: {row['found']:,} found; chance gives {row['low']:,} to {row['high']:,}"
        drawn.rect(scale(row["low"]) - 3, y - 5, scale(row["high"]) - scale(row["low"]) + 6, 10, "range", title, 4)
        drawn.shape(f"M{x:.1f} {y - 6} l6 6 l-6 6 l-6 -6 z", "bar proved", title)
        drawn.text(end + 10, y + 4, f"{row['found']:,}")
    return drawn.done()


def _vertical(drawn: Picture, scale: Scale, at: Sequence[float], top: float, bottom: float, show: Any) -> None:
    """Draw vertical grid lines, with their numbers below; numbers that would touch are left out."""
    end = -math.inf
    for tick in at:
        x, said = scale(tick), show(tick)
        drawn.line(x, top, x, bottom, "grid")
        half = LETTER * len(said) / 2 + 4
        if x - half >= end:
            drawn.text(x, bottom + 14, said, "soft", "middle")
            end = x + half


def _horizontal(drawn: Picture, scale: Scale, at: Sequence[float], left: float, right: float) -> None:
    """Draw horizontal grid lines, with their shares to the left."""
    for tick in at:
        drawn.line(left, scale(tick), right, scale(tick), "grid")
        drawn.text(left - 6, scale(tick) + 4, f"{tick:.0%}", "soft", "end")


def pairs(rows: Sequence[tuple[str, str, float, float]], what: str) -> Markup:
    """Draw two probabilities per row, joined: hollow for the first, filled for the second, whose number is written."""
    labels, left = _label_room([row[0] for row in rows], 22)
    said = "; ".join(
        f"{name}: {percent(first)} without sums, {percent(second)} with them" for name, _, first, second in rows
    )
    height = 30 * len(rows)
    drawn = Picture(WIDE, height + 36, f"{what}. {said}")
    largest = max(max(row[2:]) for row in rows)
    scale = Scale(0, largest, left + 4, WIDE - 56)
    _vertical(drawn, scale, ticks(0, largest), 0, height, lambda tick: f"{tick:.0%}")
    drawn.text((left + WIDE - 56) / 2, height + 31, what, "soft", "middle")
    for at, (name, kind, first, second) in enumerate(rows):
        y = 30 * at + 15
        drawn.text(left - 8, y + 4, labels[at], anchor="end")
        title = f"{name}: {percent(first)} from the published count alone, {percent(second)} with all sums"
        drawn.line(scale(first), y, scale(second), y, f"stroke {kind}")
        drawn.dot(scale(first), y, 4.5, f"stroke {kind}", title)
        drawn.dot(scale(second), y, 6, f"bar {kind}", title)
        drawn.text(max(scale(first), scale(second)) + 11, y + 4, percent(second))
    return drawn.done()


# -- points -----------------------------------------------------------------------------------------------------------


def risk_against_error(points: Sequence[Mapping[str, Any]], across: str, up: str) -> Markup:
    """Draw ways of publishing as named points: error to the right, risk upwards, each with its standard error."""
    left, top, right, bottom = 40.0, 22.0, WIDE - 12.0, 300.0
    said = "; ".join(f"{point['name']}: error {point['error']:.2f}, {percent(point['risk'])}" for point in points)
    drawn = Picture(WIDE, bottom + 38, f"{up}, by {across}. {said}")
    most, high = 1.12 * max(point["error"] for point in points) or 1, 1.12 * max(point["risk"] for point in points) or 1
    x, y = Scale(0, most, left, right), Scale(0, high, bottom, top)
    _horizontal(drawn, y, ticks(0, high), left, right)
    _vertical(drawn, x, ticks(0, most), top, bottom, _plain)
    drawn.text(0, 12, f"↑ {up}", "soft")
    drawn.text(right, bottom + 32, f"{across} →", "soft", "end")
    for point in points:
        at, size, kind = (x(point["error"]), y(point["risk"])), 6 if point.get("named", True) else 3, point["kind"]
        low, high = (y(point["risk"] + side * point["risk_by"]) for side in (-1, 1))
        first, last = (x(point["error"] + side * point["error_by"]) for side in (-1, 1))
        drawn.line(at[0], low, at[0], high, f"stroke {kind}")
        drawn.line(first, at[1], last, at[1], f"stroke {kind}")
        title = f"{point['name']}: mean error {point['error']:.3f}, {up} {percent(point['risk'])}"
        if point["proved"]:
            drawn.dot(*at, size + 4, f"stroke {kind}", f"{title}; some counts can be proved")
        drawn.dot(*at, size, f"bar {kind}", title)
    points = [point for point in points if point.get("named", True)]
    for (name_x, name_y, anchor), point in zip(_names_apart(points, x, y, right), points, strict=True):
        drawn.text(name_x, name_y, point["name"], "title", anchor)
    return drawn.done()


def _names_apart(points: Sequence[Mapping[str, Any]], x: Scale, y: Scale, right: float) -> list[tuple[float, float, str]]:
    """Return where each point's name goes, so that it covers neither a point nor another name."""
    taken = [
        (x(point["error"]) - 10, y(point["risk"]) - 9, x(point["error"]) + 10, y(point["risk"]) + 9) for point in points
    ]
    names: dict[int, tuple[float, float, str]] = {}
    for at, point in sorted(enumerate(points), key=lambda pair: y(pair[1]["risk"])):
        wide, px, py = 7.2 * len(point["name"]), x(point["error"]), y(point["risk"])
        places = [
            (start, py + 5 + dy, side)
            for dy in (0, -16, 16, -24, 24, -34, 34, -46, 46)
            for side, start in (("start", px + 14), ("end", px - 14), ("middle", px))
        ]
        boxes = [
            (start - {"start": 0, "end": wide, "middle": wide / 2}[side], base - 12, base + 3)
            for start, base, side in places
        ]
        free = [
            (place, box)
            for place, box in zip(places, boxes, strict=True)
            if box[0] >= 0
            and box[0] + wide <= right + 10
            and not any(
                box[0] < end and box[0] + wide > start and box[1] < bottom and box[2] > top
                for k, (start, top, end, bottom) in enumerate(taken)
                if k != at or place[2] == "middle"
            )
        ]
        place, box = free[0] if free else (places[0], boxes[0])
        names[at] = place
        taken.append((box[0], box[1], box[0] + wide, box[2]))
    return [names[at] for at in range(len(points))]


def reliability(series: Mapping[str, tuple[str, Sequence[Mapping[str, Any]]]], across: str, up: str) -> Markup:
    """Draw how often claims are right against the probability that they state; on the diagonal both agree."""
    bands = [band for _, of_series in series.values() for band in of_series]
    least = min([0.6, *(band.get("low", band["right"]) for band in bands), *(band["stated"] for band in bands)])
    least = math.floor(least * 10 + 1e-9) / 10
    left, top, side = 40.0, 40.0 if len(series) > 1 else 22.0, 270.0
    said = "; ".join(
        f"{name}: " + ", ".join(f"stated {percent(band['stated'])}, right {percent(band['right'])}" for band in of_series)
        for name, (_, of_series) in series.items()
    )
    drawn = Picture(left + side + 30, top + side + 38, f"{up}, by {across}. {said}")
    x, y = Scale(least, 1, left, left + side), Scale(least, 1, top + side, top)
    _horizontal(drawn, y, ticks(least, 1), left, left + side)
    _vertical(drawn, x, ticks(least, 1), top, top + side, lambda tick: f"{tick:.0%}")
    drawn.line(x(least), y(least), x(1), y(1), "diagonal")
    drawn.text(0, 12, f"↑ {up}", "soft")
    drawn.text(left + side, top + side + 32, f"{across} →", "soft", "end")
    most = max((band["claims"] for band in bands), default=1)
    start = left
    for name, (kind, of_series) in series.items():
        if len(series) > 1:
            drawn.dot(start + 5, 27, 5, f"bar {kind}")
            drawn.text(start + 15, 31, name)
            start += 15 + LETTER * len(name) + 18
        if len(series) > 1:
            drawn.path([(x(band["stated"]), y(band["right"])) for band in of_series], f"stroke {kind}")
        for band in of_series:
            at = x(band["stated"]), y(band["right"])
            if "low" in band:
                drawn.line(at[0], y(band["low"]), at[0], y(band["high"]), f"stroke {kind}")
            title = f"stated {percent(band['stated'])}, right {percent(band['right'])} of {band['claims']:,}"
            drawn.dot(*at, 3 + 5 * math.sqrt(band["claims"] / most), f"bar {kind}", f"{name}: {title}" if name else title)
    return drawn.done()


def wilson(share: float, number: int) -> dict[str, float]:
    """Return the ends of Wilson's 95% interval around a share, as `reliability` takes them.

    >>> {name: round(end, 2) for name, end in wilson(0.5, 100).items()}
    {'low': 0.4, 'high': 0.6}
    """
    z = 1.96
    middle = (share + z * z / (2 * number)) / (1 + z * z / number)
    half = z * math.sqrt(share * (1 - share) / number + z * z / (4 * number * number)) / (1 + z * z / number)
    return {"low": max(0.0, middle - half), "high": min(1.0, middle + half)}


# -- columns ----------------------------------------------------------------------------------------------------------


def columns(
    shares: Mapping[int, float],
    said: str,
    *,
    kind: str = "s1",
    expected: Mapping[int, float] | None = None,
    top: float | None = None,
    below: str = "",
    marked: Mapping[int, str] | None = None,
) -> Markup:
    """Draw shares as columns, with what is expected as short lines over them."""
    places = sorted({*shares, *(expected or {})})
    left, height, wide = 38.0, 120.0, 300.0
    high, lines = _share_scale(top or max([*shares.values(), *(expected or {}).values()]))
    drawn = Picture(wide, height + (38 if below else 24), said)
    step = (wide - left - 4) / max(1, len(places))
    y = Scale(0, high, height, 6)
    _horizontal(drawn, y, lines, left, wide)
    every = max(1, math.ceil((LETTER * max(len(f"{place:,}") for place in places) + 8) / step))
    middle = places.index(0) if 0 in places else 0
    for at, place in enumerate(places):
        x, share = left + 2 + at * step, shares.get(place, 0.0)
        title = f"{place:,}: {percent(share)}" + (f", expected {percent(expected.get(place, 0.0))}" if expected else "")
        drawn.rect(
            x + step * 0.12, y(share), step * 0.76, height - y(share), f"bar {(marked or {}).get(place, kind)}", title
        )
        if expected:
            level = y(expected.get(place, 0.0))
            drawn.line(x, level, x + step, level, "expected")
        if (at - middle) % every == 0:
            drawn.text(x + step / 2, height + 15, f"{place:,}".replace("-", "−"), "soft", "middle")
    drawn.line(left, height, wide, height, "axis")
    if below:
        drawn.text((left + wide) / 2, height + 32, below, "soft", "middle")
    return drawn.done()


def _share_scale(largest: float) -> tuple[float, list[float]]:
    """Return the top of an axis of shares, and where to draw its lines."""
    for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5):
        if largest <= 4 * step:
            steps = max(1, -int(-largest // step))
            return step * steps, [step * k for k in range(steps + 1)]
    return 1.0, [0.0, 0.5, 1.0]


def shown_part(distribution: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return the part of a long distribution that can be seen: a tail of less than a 200th of the peak is not drawn."""
    if len(distribution) <= FEW:
        return list(distribution)
    least = max(p for _, p in distribution) / 200
    return [(value, p) for value, p in distribution if p >= least]


def histogram(
    distribution: Sequence[tuple[int, float]], *, name: str, kind: str, published: int | None, height: int = 190
) -> Markup:
    """Draw how likely each count is."""
    counts = shown_part(distribution)
    first, last = counts[0][0], counts[-1][0]
    if published is not None and first - FAR <= published <= last + FAR:
        first, last = min(first, published), max(last, published)
    each = -(-(last - first + 1) // MOST_BARS)  # counts that share a bar: one, unless there are very many
    places = -(-(last - first + 1) // each)
    bars: dict[int, float] = {}
    for value, p in counts:
        at = (value - first) // each
        bars[at] = bars.get(at, 0.0) + p
    left, top = 46, 16
    step = 44 if places <= 5 else 36 if places <= 7 else 30 if places <= 10 else max(2.0, 300 / places)
    wide = max(places * step, 200)
    largest = max(bars.values())
    high, lines = _share_scale(largest)
    start, floor = left + (wide - places * step) / 2, top + height
    drawn = Picture(left + wide + 8, floor + 44, f"{name}: {in_words(distribution, published)}", "histogram")
    _horizontal(drawn, Scale(0, high, floor, top), lines, left, left + wide)
    for at, p in bars.items():
        x, tall = start + at * step, max(height * p / high, 0.8)
        gap = 2 if step > 8 else 0.3
        best = "best" if p >= largest * (1 - ALIKE) else "faint"
        low = first + at * each
        counted = f"{low:,}" if each == 1 else f"{low:,}–{low + each - 1:,}"
        corner = 2 if step > 8 else 0
        drawn.rect(x + gap, floor - tall, step - 2 * gap, tall, f"bar {kind} {best}", f"{counted}: {percent(p)}", corner)
        if step >= 26 and p >= largest / 50:
            drawn.text(x + step / 2, floor - tall - 4, f"{100 * p:.0f}", anchor="middle")
    every = max(1, -(-(8 * len(f"{last:,}") + 10) // int(step)))
    for at in range(0, places, every):
        drawn.text(start + (at + 0.5) * step, floor + 16, f"{first + at * each:,}", "soft", "middle")
    drawn.line(left, floor, left + wide, floor, "axis")
    if published is not None and first <= published <= last:
        x = start + ((published - first) // each + 0.5) * step
        drawn.shape(f"M{x:.1f} {floor + 21} l5 8 h-10 z", "mark")
        anchor = "start" if x < left + 40 else "end" if x > left + wide - 40 else "middle"
        drawn.text(x, floor + 41, "published", "soft", anchor)
    return drawn.done()


def histograms(cells: Iterable[Any]) -> Iterator[Part]:
    """Draw how likely each count is, for every cell that was not published exactly."""
    charts = []
    for cell in [cell for cell in cells if cell.kind != "given" and len(cell.distribution)]:
        name = cell.name if hasattr(cell, "name") else cell.key
        published = "not published" if cell.published is None else f"published {cell.published:,}"
        drawn = histogram(cell.distribution, name=name, kind=cell.kind, published=cell.published, height=120)
        charts.append(Chart(drawn, name, f"{published}, possible {span(cell.low, cell.high)}, {cell.kind}"))
    more = rest(len(charts), MOST_DRAWN, "the table has them all")
    if charts:
        title = "How likely each count is"
        yield Fold(title, [Charts(charts[:MOST_DRAWN]), more], only=CARD, is_open=True)


def in_words(distribution: Sequence[tuple[int, float]], published: int | None) -> str:
    """Say what a histogram shows, the likeliest counts first."""
    best = sorted(distribution, key=lambda pair: -pair[1])[:5]
    listed = ", ".join(f"{value:,} with {percent(p)}" for value, p in best)
    more = f", and {len(distribution) - len(best)} more possible counts" if len(distribution) > len(best) else ""
    before = "nothing was published" if published is None else f"{number(published)} was published"
    return f"histogram of the possible true counts; {before}; {listed}{more}"


def strip(numbers: Mapping[str, float], largest: float) -> Markup:
    """Draw a thin bar for a row of a table: its claims of each kind, next to the largest row's."""
    ends, kinds = [0.0], (*CLAIMS, "open")
    for kind in kinds:
        ends.append(ends[-1] + 100 * numbers.get(kind, 0) / (largest or 1))
    bars = "".join(
        f'<rect class="bar {kind}" x="{start:.2f}" width="{end - start:.2f}" height="6"/>'
        for kind, (start, end) in zip(kinds, pairwise(ends), strict=True)
        if end > start
    )
    return Markup(f'<svg class="chart strip" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">{bars}</svg>')


SPARK, SLOTS = (96.0, 30.0), 21
"""The size of a histogram in a row of a list, and the counts that fit side by side in it."""


def spark(point: Mapping[str, Any]) -> Markup:
    """Draw a finding in a row of a list: its possible counts as ticks, the claimed one as tall as it is probable.

    How probable each other count is, is not drawn here: that takes an inference of the whole area. The page of the count
    shows it. The sentence beside it says the same, so that the drawing is hidden from those who listen.
    """
    value, published = point["value"], point["published"]
    low, high = point["low"], point["high"] if point["high"] is not None else value + SLOTS
    if published is not None:
        low, high = min(low, published), max(high, published)
    low, high = max(low, value - SLOTS // 2), min(high, value + SLOTS // 2)
    wide, tall = SPARK
    step = min(12.0, wide / (high - low + 1))
    start, floor = (wide - step * (high - low + 1)) / 2, tall - 6
    least = point["probability_low"] if point["probability_low"] is not None else point["probability"]
    parts = [f'<rect class="ground-line" x="0" y="{floor:.1f}" width="{wide:g}" height="1"/>']
    for count in range(low, high + 1):
        x = start + (count - low) * step
        if count == value:
            up = max(2.0, floor * least)
            parts.append(_bar(f"bar {point['kind']}", x, floor - up, step, up))
        elif count >= point["low"] and (point["high"] is None or count <= point["high"]):
            parts.append(_bar("tick", x, floor - 2, step, 2))
    if published is not None and low <= published <= high:
        x = start + (published - low + 0.5) * step
        parts.append(f'<path class="mark" d="M{x:.1f} {floor + 1.4:.1f} l3 4 h-6 z"/>')
    return Markup(f'<svg class="chart spark" viewBox="0 0 {wide:g} {tall:g}" aria-hidden="true">{"".join(parts)}</svg>')


def _bar(kind: str, x: float, y: float, step: float, tall: float) -> str:
    return f'<rect class="{kind}" x="{x + 0.5:.1f}" y="{y:.1f}" width="{step - 1:.1f}" height="{tall:.1f}"/>'


# -- of 10,000 counts -------------------------------------------------------------------------------------------------


SIDE, PIXELS = 100, 3
"""Squares on a side, and the width of one, with the line between it and the next."""

ALL = SIDE * SIDE


class Share(NamedTuple):
    """Some of all counts: what they are called, their colour class, and how many there are."""

    name: str
    kind: str
    number: int


def squares(shares: Sequence[Share], whole: int, number: int = ALL) -> list[int]:
    """Return how many squares each share gets: at least one where there is anything; the last makes up the difference.

    >>> squares([Share("proved", "proved", 3), Share("open", "open", 999_997)], 1_000_000)
    [1, 9999]
    """
    numbers = [max(1, round(number * share.number / whole)) if share.number else 0 for share in shares[:-1]]
    while sum(numbers) > number:
        numbers[numbers.index(max(numbers))] -= 1
    return [*numbers, number - sum(numbers)]


def waffle(shares: Sequence[Share], whole: int, said: str) -> Markup:
    """Draw 10,000 squares, the first shares on top; rows that are alike are one rectangle."""
    size = SIDE * PIXELS
    drawn = Picture(size, size, said, "waffle")
    start = 0
    for share, many in zip(shares, squares(shares, whole), strict=True):
        for x, y, wide, tall in _runs(start, start + many):
            place = (x * PIXELS, y * PIXELS, wide * PIXELS, tall * PIXELS)
            drawn.rect(*place, f"bar {share.kind}", f"{share.name}: {per_10_000(share.number, whole)} of 10,000")
        start += many
    lines = "".join(f"M{at * PIXELS} 0V{size}M0 {at * PIXELS}H{size}" for at in range(1, SIDE))
    drawn.shape(lines, "seams")
    return drawn.done()


def _runs(start: int, end: int) -> list[tuple[int, int, int, int]]:
    """Cover a range of squares, counted row by row, with at most three rectangles."""
    runs = []
    while start < end:
        row, column = divmod(start, SIDE)
        if column or end - start < SIDE:
            wide = min(SIDE - column, end - start)
            runs.append((column, row, wide, 1))
            start += wide
        else:
            rows = (end - start) // SIDE
            runs.append((0, row, SIDE, rows))
            start += rows * SIDE
    return runs


def per_10_000(number: int, whole: int) -> str:
    """Say how many of 10,000 a number is; never 0 where there is something, never all where there is more.

    >>> per_10_000(3, 1_000_000), per_10_000(45_302, 7_794_742), per_10_000(0, 10), per_10_000(999_999, 1_000_000)
    ('fewer than 1', '58', '0', 'more than 9,999')
    """
    number_of_them = ALL * number / whole
    if number and number_of_them < 0.5:
        return "fewer than 1"
    return "more than 9,999" if number < whole and number_of_them > ALL - 0.5 else f"{number_of_them:,.0f}"
