"""The picture of docs/speed.md: how the time and memory of an audit grow with areas and with counts per area."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import linear_regression
from typing import Any

from markupsafe import Markup

from docs.panels import Plot
from unround.show.charts import Picture, Scale
from unround.show.parts import Chart

LARGEST = 3
"""How many of the largest runs a slope is fitted to: in smaller ones, most of the time is that of any run at all."""


def growth_plot(growth: Mapping[str, Sequence[Mapping[str, Any]]]) -> Plot:
    """Draw time and memory against areas, and against counts per area; all scales are logarithmic."""
    panels = []
    for by, across in (("areas", "areas, ages by sex"), ("counts", "counts per area, 1,000 areas")):
        for what, up, unit in (("wall", "Time", "s"), ("peak_mb", "Memory", "MB")):
            points = [(float(one[by]), float(one[what])) for one in growth[by]]
            lines = (f"slope {slope(points):.2f} at the right; 1 is in proportion",)
            panels.append(Chart(_chart(points, f"{up} by {across}", across, unit), f"{up} by {across}", "\n".join(lines)))
    note = "Each dot is an audit, from the file to the report. Scales are logarithmic; a slope is of the last three dots."
    return Plot("An audit grows no faster than its table", note, tuple(panels))


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the power of x with which y grows, by the largest runs.

    Examples
    --------
    >>> round(slope([(1, 50), (10, 10), (100, 100), (1000, 1000)]), 2)
    1.0
    """
    logs = [(math.log(x), math.log(y)) for x, y in points[-LARGEST:]]
    return linear_regression(*zip(*logs, strict=True)).slope


def _chart(points: Sequence[tuple[float, float]], said: str, across: str, unit: str) -> Markup:
    """Draw one curve on logarithmic scales."""
    wide, tall = 400, 240
    drawn = Picture(wide, tall, said)
    x = Scale(math.log10(points[0][0]) - 0.1, math.log10(points[-1][0]) + 0.1, 74, wide - 12)
    values = [math.log10(y) for _, y in points]
    y = Scale(math.floor(min(values)), math.ceil(max(values)), tall - 44, 12)
    for power in range(math.floor(y.low), math.ceil(y.high) + 1):
        drawn.line(x.start, y(power), x.end, y(power), "grid")
        drawn.text(x.start - 6, y(power) + 4, f"{10**power:,} {unit}", "soft", "end")
    for power in range(math.ceil(x.low), math.floor(x.high) + 1):
        drawn.line(x(power), y.start, x(power), y.end, "grid")
        drawn.text(x(power), y.start + 18, f"{10**power:,}", "soft", "middle")
    drawn.text(x.end, tall - 6, across, "soft", "end")
    places = [(x(math.log10(one)), y(math.log10(other))) for one, other in points]
    drawn.path(places, "stroke s1")
    for place, (one, other) in zip(places, points, strict=True):
        drawn.dot(*place, 4, "bar s1", f"{one:,.0f}: {other:,.1f} {unit}")
    return drawn.done()
