"""The charts of an audit: Altair specifications, and the same as SVG, drawn here without any network or browser.

Every function that draws returns an Altair chart as wide as a small telephone; `svg` turns one into text that can stand
in a page. Colours come from `PALETTE` alone. The SVG carries the light ones; a page that includes `theme_css()` shows it in
the reader's own scheme, light or dark, without a script and without drawing it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair

PALETTE: dict[str, tuple[str, str]] = {
    "ink": ("#1b2430", "#e8ebef"),
    "muted": ("#566171", "#a3adba"),
    "rule": ("#dde1e7", "#36404d"),
    "chance": ("#b9c1cb", "#5d6876"),
    "proved": ("#0b3c5d", "#8ecbff"),
    "conditional": ("#2f80b7", "#4f93c4"),
    "likely": ("#d97706", "#f0a53a"),
}
"""What is drawn, and its colour on a light and on a dark page. Blue and orange are told apart by nearly everybody; each
stands out from the page by 3 to 1, and text by 4.5 to 1."""

CLAIMS = ("proved", "conditional", "likely")
WIDTH = 340
"""Of a chart, in pixels, axes included."""

FONT = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif"


# -- charts -----------------------------------------------------------------------------------------------------------


def claims_by_class(rows: Mapping[str, Mapping[str, float]], axis: str, digits: int = 0) -> altair.LayerChart:
    """Draw stacked bars: for each class of counts, areas or arguments how many claims of each kind there are.

    Parameters
    ----------
    rows : mapping
        For each class, in the order in which they are drawn, a number for each of `CLAIMS`.
    axis : str
        What the numbers are.
    digits : int
        Decimals of the numbers at the ends of the bars.
    """
    import altair as alt

    kinds = [kind for kind in CLAIMS if any(row[kind] for row in rows.values())] or [CLAIMS[-1]]
    bars = [
        {"class": name, "kind": kind, "number": row[kind], "order": CLAIMS.index(kind)}
        for name, row in rows.items()
        for kind in kinds
    ]
    totals = {name: sum(row[kind] for kind in kinds) for name, row in rows.items()}
    ends = [{"class": name, "number": number} for name, number in totals.items()]
    largest = max(totals.values(), default=0) or 1
    x = alt.X("number:Q", title=axis, axis=_few_ticks(), scale=alt.Scale(domain=[0, largest * 1.18]))
    y = alt.Y("class:N", title=None, sort=None, axis=alt.Axis(labelPadding=6), scale=alt.Scale(paddingInner=0.3))
    colour = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=kinds, range=[PALETTE[kind][0] for kind in kinds]),
        legend=alt.Legend(orient="top") if len(kinds) > 1 else None,
    )
    drawn = alt.Chart(alt.InlineData(values=bars)).mark_bar().encode(x=x, y=y, color=colour, order="order:Q")
    labels = (
        alt.Chart(alt.InlineData(values=ends))
        .mark_text(align="left", dx=4, fontSize=12, color=PALETTE["ink"][0])
        .encode(x=alt.X("number:Q"), y=alt.Y("class:N", sort=None), text=alt.Text("number:Q", format=f",.{digits}f"))
    )
    return _finished([drawn, labels], 30 * len(rows) + 70)


def against_chance(rows: Sequence[Mapping[str, Any]]) -> altair.LayerChart:
    """Draw how many sums of each kind give everything away, against the range that chance predicts.

    Parameters
    ----------
    rows : sequence of mappings
        Of each kind its "label", how many were "found", and the "low" and "high" end of what chance gives.
    """
    import altair as alt

    data = alt.InlineData(values=[{**row, "end": max(row["found"], row["high"])} for row in rows])
    # Square roots: chance scatters by about as much everywhere on this scale, and 0 has its place.
    scale = alt.Scale(type="sqrt", domain=[0, 1.5 * max(1, *(max(row["found"], row["high"]) for row in rows))])
    x = alt.X("low:Q", title="proofs from one sum", axis=_few_ticks(), scale=scale)
    y = alt.Y("label:N", title=None, sort=None, axis=alt.Axis(labelLimit=150, labelPadding=8))
    expected = alt.Chart(data).mark_bar(height=10, cornerRadius=3, color=PALETTE["chance"][0]).encode(x=x, x2="high:Q", y=y)
    found = alt.Chart(data).mark_point(shape="diamond", filled=True, opacity=1, size=95, color=PALETTE["proved"][0])
    number = alt.Chart(data).mark_text(align="left", dx=9, fontSize=12, color=PALETTE["ink"][0])
    drawn = (
        expected,
        found.encode(x=alt.X("found:Q", scale=scale), y=y),
        number.encode(x=alt.X("end:Q", scale=scale), y=y, text=alt.Text("found:Q", format=",")),
    )
    return _finished(drawn, 32 * len(rows) + 50)


def calibration(bands: Sequence[Mapping[str, Any]]) -> altair.LayerChart:
    """Draw how often likely counts were right against how often they said they would be.

    Parameters
    ----------
    bands : sequence of mappings
        Of each band of probabilities what was "stated" and how often it was "right" on average, and the "low" and "high" end
        of the error bar.
    """
    import altair as alt

    least = min([0.6, *(band["low"] for band in bands)])
    scale = alt.Scale(domain=[least, 1], nice=False, zero=False)
    axis = alt.Axis(format=".0%", tickCount=5)
    y = alt.Y("right:Q", title="right", scale=scale, axis=axis)
    line = alt.Chart(alt.InlineData(values=[{"at": least}, {"at": 1}])).mark_line(
        color=PALETTE["muted"][0], strokeDash=[4, 4], strokeWidth=1
    )
    diagonal = line.encode(x=alt.X("at:Q", title="stated probability", scale=scale, axis=axis), y=alt.Y("at:Q", scale=scale))
    data = alt.InlineData(values=[dict(band) for band in bands])
    x = alt.X("stated:Q", scale=scale)
    bars = alt.Chart(data).mark_rule(strokeWidth=2, color=PALETTE["likely"][0])
    points = alt.Chart(data).mark_point(filled=True, opacity=1, size=70, color=PALETTE["likely"][0])
    drawn = (diagonal, bars.encode(x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q"), points.encode(x=x, y=y))
    return _finished(drawn, 260)


def distribution(chances: Sequence[tuple[int, float]], kind: str = "likely", width: int = 260) -> altair.LayerChart:
    """Draw how likely each count of one cell is.

    Parameters
    ----------
    chances : sequence of pairs
        Counts and their probabilities.
    kind : str
        What is claimed of the cell, for the colour.
    width : int
        In pixels, axes included.
    """
    import altair as alt

    colour = PALETTE.get(kind, PALETTE["muted"])[0]
    bars = [{"count": value, "probability": probability} for value, probability in chances]
    few = len(bars) <= 24
    x = alt.X("count:O" if few else "count:Q", title=None, axis=alt.Axis(labelAngle=0, labelOverlap=True, grid=False))
    y = alt.Y("probability:Q", title=None, axis=alt.Axis(format=".0%", tickCount=3), scale=alt.Scale(zero=True))
    drawn = alt.Chart(alt.InlineData(values=bars)).mark_bar(color=colour).encode(x=x, y=y)
    return _finished([drawn], 120, width)


def _few_ticks() -> altair.Axis:
    import altair as alt

    return alt.Axis(tickCount=4, format=",~r", labelOverlap=True)


def _finished(layers: Sequence[altair.Chart], height: int, width: int = WIDTH) -> altair.LayerChart:
    """Lay charts over each other, and give the whole its size and the common look: no frame, no background, quiet axes."""
    import altair as alt

    ink, muted, rule = (PALETTE[name][0] for name in ("ink", "muted", "rule"))
    sized = alt.LayerChart(layer=list(layers)).properties(
        width=width, height=height, autosize=alt.AutoSizeParams(type="fit", contains="padding")
    )
    finished: altair.LayerChart = sized.configure(
        background="transparent",
        font=FONT,
        padding={"left": 8, "top": 2, "right": 8, "bottom": 2},
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            labelColor=ink,
            titleColor=muted,
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            gridColor=rule,
            domain=False,
            ticks=False,
            labelPadding=5,
            titlePadding=8,
        ),
        axisBand=alt.AxisConfig(grid=False),
        legend=alt.LegendConfig(
            labelColor=ink, labelFontSize=12, symbolType="square", symbolSize=90, columnPadding=14, offset=6
        ),
    )
    return finished


# -- SVG --------------------------------------------------------------------------------------------------------------


def specification(chart: altair.LayerChart) -> dict[str, Any]:
    """Return a chart as plain data. It is not validated here, which takes longer than drawing it; the tests do that."""
    told: dict[str, Any] = chart.to_dict(validate=False)
    return told


def svg(chart: altair.LayerChart) -> str:
    """Return a chart as SVG that can stand in a page; whoever puts it there says in words what it shows."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(specification(chart))
    return drawn.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)


def theme_css() -> str:
    """Return the style sheet that gives a page the colours of `PALETTE`, and charts in it those of the reader's scheme."""
    light = "".join(f"--{name}:{colours[0]};" for name, colours in PALETTE.items())
    dark = "".join(f"--{name}:{colours[1]};" for name, colours in PALETTE.items())
    rules = [
        f"svg.marks [{what}='{colours[0]}']{{{what}:var(--{name})}}"
        for name, colours in PALETTE.items()
        for what in ("fill", "stroke")
    ]
    return "\n".join([f":root{{{light}}}", f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}", *rules])
