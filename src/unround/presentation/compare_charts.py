"""The pictures of comparisons and calibrations: Altair specifications, rendered for a page that is light or dark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import altair

INK, FAINT = "#0a0b0c", "#0d0e0f"
"""Stand for the colours of text and of grid lines until the page's own take their place."""

FAMILIES = {"rounding": "#d9822b", "controlled": "#2e9e6b", "nearest": "#c8506e", "noise": "#4a86d8", "other": "#9a6fc9"}
"""Colours that can be told apart on white as on black."""

SHOWN = 10
"""Signed distances up to this one are drawn."""


def family(name: str) -> str:
    """Return what kind of mechanism a name belongs to."""
    first = name.split(":")[0].split("=")[0]
    known = {
        "laplace": "noise",
        "gaussian": "noise",
        "nearest-even": "nearest",
        "digits": "nearest",
        "controlled": "controlled",
    }
    found = known.get(first, first)
    return found if found in FAMILIES else "rounding" if first in ("base", "graduated", "sample", "residues") else "other"


def _colour() -> Any:
    import altair as alt

    return alt.Color("family:N", scale=alt.Scale(domain=list(FAMILIES), range=list(FAMILIES.values())), legend=None)


def risk_chart(rows: list[dict[str, Any]]) -> altair.LayerChart | altair.FacetChart:
    """Draw risk against error."""
    import altair as alt

    points = []
    for row in rows:
        error, risk = (row["standard_error"][name] or 0.0 for name in ("mean_error", "truth_probability"))
        points.append(
            {
                "name": row["name"],
                "family": family(row["name"]),
                "error": row["mean_error"],
                "risk": row["truth_probability"],
                "low": row["truth_probability"] - risk,
                "high": row["truth_probability"] + risk,
                "left": row["mean_error"] - error,
                "right": row["mean_error"] + error,
                "proved": row["proved"] > 0,
            }
        )
    largest = max(point["error"] for point in points)
    top = max(point["risk"] for point in points)
    _place_names(points, largest, top)
    base = alt.Chart(alt.InlineData(values=points), width=860, height=380)
    x = alt.X(
        "error:Q",
        title="mean error of a published count",
        scale=alt.Scale(domain=[0, 1.18 * largest], nice=False),
        axis=alt.Axis(tickCount=8),
    )
    y = alt.Y(
        "risk:Q",
        title="probability put on the truth",
        scale=alt.Scale(domain=[0, 1.12 * top]),
        axis=alt.Axis(format=".0%", tickCount=6),
    )
    dots = base.mark_circle(size=190, opacity=1).encode(x=x, y=y, color=_colour())
    rings = (
        base.mark_point(size=520, strokeWidth=2, opacity=1, filled=False)
        .encode(x=x, y=y, color=_colour())
        .transform_filter("datum.proved")
    )
    up = base.mark_rule(strokeWidth=2).encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=_colour())
    across = base.mark_rule(strokeWidth=2).encode(x=alt.X("left:Q"), x2="right:Q", y=y, color=_colour())
    sides: tuple[tuple[Literal["left", "right"], int], ...] = (("left", 16), ("right", -16))
    names = [
        base.mark_text(align=align, dx=dx, dy=1, fontSize=14, fontWeight=600, color=INK)
        .encode(x=x, y=alt.Y("at:Q"), text="name:N")
        .transform_filter(f"datum.side == '{align}'")
        for align, dx in sides
    ]
    return alt.layer(up, across, rings, dots, *names)


def _place_names(points: list[dict[str, Any]], largest: float, top: float) -> None:
    """Decide on which side of its point each name goes, and how far up or down, so that none covers another."""
    placed: list[dict[str, Any]] = []
    for point in sorted(points, key=lambda one: -float(one["risk"])):
        near = [one for one in points if one is not point and abs(one["risk"] - point["risk"]) < 0.12 * top]
        crowded = any(0 <= one["error"] - point["error"] < 0.15 * largest for one in near)
        point["side"], point["at"] = "right" if crowded and point["error"] > 0.3 * largest else "left", point["risk"]
        while any(
            one["side"] == point["side"]
            and abs(one["at"] - point["at"]) < 0.05 * top
            and abs(one["error"] - point["error"]) < 0.3 * largest
            for one in placed
        ):
            point["at"] -= 0.01 * top
        placed.append(point)


def sums_chart(rows: list[dict[str, Any]]) -> altair.LayerChart | altair.FacetChart:
    """Draw what is thought of the truth, from a count alone and with all sums."""
    import altair as alt

    values = [
        {
            "name": row["name"],
            "family": family(row["name"]),
            "alone": row["truth_probability_alone"],
            "sums": row["truth_probability"],
            "said": f"{100 * row['truth_probability']:.1f} %",
        }
        for row in rows
    ]
    base = alt.Chart(alt.InlineData(values=values), width=760, height=34 * len(rows)).encode(
        y=alt.Y(
            "name:N",
            sort=None,
            title=None,
            axis=alt.Axis(labelFontSize=14, labelFontWeight=600, domain=False, ticks=False, minExtent=150, labelPadding=12),
        )
    )
    top = max(max(value["sums"], value["alone"]) for value in values)
    scale = alt.Scale(domain=[0, 1.12 * top], nice=False)
    axis = alt.Axis(format=".0%", tickCount=8)
    line = base.mark_rule(strokeWidth=3).encode(
        x=alt.X("alone:Q", scale=scale, title="probability put on the truth", axis=axis), x2="sums:Q", color=_colour()
    )
    hollow = base.mark_point(size=110, strokeWidth=2.5, filled=False, opacity=1).encode(x="alone:Q", color=_colour())
    filled = base.mark_circle(size=170, opacity=1).encode(x="sums:Q", color=_colour())
    said = base.mark_text(align="left", dx=13, fontSize=13, color=INK).encode(x="sums:Q", text="said:N")
    return alt.layer(line, hollow, filled, said)


def distance_chart(rows: list[dict[str, Any]]) -> altair.VConcatChart:
    """Draw signed distances, one panel a mechanism."""
    import altair as alt

    from unround.comparison.distances import distances
    from unround.protection.table import parse_protection

    tallest = 0.0
    panels = []
    for row in rows:
        bars = [{"d": int(d), "share": share} for d, share in row["distances"].items() if abs(int(d)) <= SHOWN]
        tallest = max(tallest, *(bar["share"] for bar in bars))
        promised = None
        if row["expected"] is not None:
            name = row["name"]
            spec = f"rounding:{name[5:]}" if name.startswith("base=") else name if ":" in name else "rounding:5"
            promised = distances(parse_protection(spec).mechanism)
        lines = [{"d": d, "share": promised.shares.get(d, 0.0)} for d in range(-SHOWN, SHOWN + 1) if promised is not None]
        panels.append((row["name"], bars, lines))
    charts = []
    for name, bars, lines in panels:
        x = alt.X(
            "d:Q",
            title=None,
            scale=alt.Scale(domain=[-SHOWN - 0.7, SHOWN + 0.7]),
            axis=alt.Axis(values=list(range(-10, 11, 5)), grid=False),
        )
        y = alt.Y(
            "share:Q", title=None, scale=alt.Scale(domain=[0, 1.05 * tallest]), axis=alt.Axis(format=".0%", tickCount=4)
        )
        title = alt.TitleParams(name, anchor="start", fontSize=14, fontWeight=600, color=INK)
        chart = alt.Chart(alt.InlineData(values=bars), width=255, height=150, title=title)
        layers: list[Any] = [chart.mark_bar(size=9, color=FAMILIES[family(name)], opacity=0.85).encode(x=x, y=y)]
        if lines:
            line = alt.Chart(alt.InlineData(values=lines)).mark_line(strokeWidth=1.4, color=INK)
            layers.append(line.encode(x=x, y=y))
        charts.append(alt.layer(*layers))
    stacked = [alt.hconcat(*charts[i : i + 3], spacing=34) for i in range(0, len(charts), 3)]
    return alt.vconcat(*stacked, spacing=22)


def reliability_chart(groups: dict[str, Any]) -> altair.HConcatChart:
    """Draw how often claims are right against what they state, for all cells and for the totals of sparse sums."""
    import altair as alt

    charts = []
    for name in ("all cells", "totals of sparse sums"):
        if name not in groups:
            continue
        values = [
            {"prior": prior, **{key: row[key] for key in ("stated", "right", "claims")}}
            for prior in ("flat", "fitted")
            for row in groups[name][prior]["bins"]
            if row["claims"] >= 10
        ]
        scale = alt.Scale(domain=[0, 1])
        axis = alt.Axis(format=".0%", tickCount=5)
        title = alt.TitleParams(name, anchor="start", fontSize=14, fontWeight=600, color=INK)
        diagonal = (
            alt.Chart(alt.InlineData(values=[{"a": 0, "b": 0}, {"a": 1, "b": 1}]), width=360, height=360, title=title)
            .mark_line(strokeDash=[5, 4], color=INK, opacity=0.6, strokeWidth=1.2)
            .encode(
                x=alt.X("a:Q", scale=scale, title="stated", axis=axis), y=alt.Y("b:Q", scale=scale, title="right", axis=axis)
            )
        )
        colour = alt.Color(
            "prior:N",
            scale=alt.Scale(domain=["flat", "fitted"], range=[FAMILIES["rounding"], FAMILIES["noise"]]),
            legend=alt.Legend(title=None, orient="top", labelColor=INK, labelFontSize=13, symbolSize=120),
        )
        data = alt.Chart(alt.InlineData(values=values))
        curve = data.mark_line(strokeWidth=1.6, opacity=0.7).encode(x="stated:Q", y="right:Q", color=colour)
        dots = data.mark_circle(opacity=0.9).encode(
            x="stated:Q",
            y="right:Q",
            color=colour,
            size=alt.Size("claims:Q", scale=alt.Scale(type="sqrt", range=[25, 420]), legend=None),
        )
        charts.append(alt.layer(diagonal, curve, dots))
    return alt.hconcat(*charts, spacing=50)


def drawn(chart: Any) -> str:
    """Render a chart; text and grid take the page's colours."""
    import vl_convert

    dressed = chart.configure(background="transparent", font="system-ui, sans-serif").configure_view(stroke=None)
    dressed = dressed.configure_axis(
        labelColor=INK,
        titleColor=INK,
        gridColor=FAINT,
        domainColor=FAINT,
        tickColor=FAINT,
        labelFontSize=12,
        titleFontSize=13,
        titleFontWeight=500,
        titlePadding=10,
    )
    picture = str(vl_convert.vegalite_to_svg(dressed.to_dict()))
    return picture.replace(INK, "currentColor").replace(FAINT, "var(--grid)")
