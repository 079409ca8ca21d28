"""Comparisons and calibrations as pages: pictures and tables in one file that needs nothing else, light or dark."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from unround.compare.measure import LARGE
from unround.compare.verdict import number, sentences
from unround.report.compare import calibration_sentences, footnotes

if TYPE_CHECKING:
    import altair

INK, FAINT = "#0a0b0c", "#0d0e0f"
"""Stand for the colours of text and of grid lines until the page's own take their place."""

FAMILIES = {"rounding": "#d9822b", "controlled": "#2e9e6b", "nearest": "#c8506e", "noise": "#4a86d8", "other": "#9a6fc9"}
"""Colours that can be told apart on white as on black."""

NAMES = {
    "rounding": "random rounding",
    "controlled": "controlled rounding",
    "nearest": "rounding without chance",
    "noise": "noise",
    "other": "other",
}

SHOWN = 10
"""Signed distances up to this one are drawn."""

STYLE = """
:root { --ink: #1d2127; --soft: #5c6570; --grid: #d9dde2; --paper: #ffffff; --card: #f6f7f9; --line: #e3e6ea; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaed; --soft: #a2abb5; --grid: #3a4048; --paper: #15181c; --card: #1d2126; --line: #30363d; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: 28px; line-height: 1.2; margin: 0 0 8px; }
h2 { font-size: 19px; margin: 44px 0 4px; }
p.lead, p.what { color: var(--soft); margin: 0 0 14px; max-width: 78ch; }
figure { margin: 0; overflow-x: auto; }
figure svg { color: var(--ink); max-width: 100%; height: auto; display: block; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 7px 10px; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; vertical-align: bottom; white-space: normal; }
th:first-child, td:first-child { text-align: left; font-weight: 600; padding-left: 0; }
td small { color: var(--soft); }
tr:first-child td { background: var(--card); }
i.dot { display: inline-block; width: 10px; height: 10px; border-radius: 50%; margin-right: 8px; }
ul { padding-left: 20px; max-width: 92ch; }
li { margin: 6px 0; }
footer { margin-top: 44px; padding-top: 14px; border-top: 1px solid var(--line); color: var(--soft); font-size: 14px; }
"""


def comparison_page(told: dict[str, Any]) -> str:
    """Return a comparison as a page.

    Parameters
    ----------
    told : dict
        `Comparison.to_json()`.
    """
    rows = told["mechanisms"]
    many = f"{told['seeds']} releases each" if told["seeds"] > 1 else "one release each"
    lead = (
        f"{told['areas']:,} areas with {told['cells']:,} counts, from {told['source']}; {many}. Whoever infers has the published "
        "table, the sums that hold in it, and the mechanism."
    )
    parts = [
        _section(
            "What it costs, and what it gives away",
            "To the left: nearer to the truth. Down: less given away. Bars are one standard error over releases, where they "
            "are wide enough to be seen. A ring marks ways under which some counts can be proved.",
            _svg(risk_chart(rows)),
        ),
        _section(
            "What the sums add",
            "The average probability that is put on the true count: from the published count alone (hollow), and with all "
            "sums (filled).",
            _svg(sums_chart(rows)),
        ),
        _section(
            "How far published counts lie from the truth",
            "Shares of all counts by signed distance; lines show what the mechanism promises of large counts. Rounding leaves "
            "0 as it is, so that more counts are right than it promises.",
            _svg(distance_chart(rows)),
        ),
        "<h2>How far off</h2>" + _errors_table(rows),
        "<h2>What it gives away</h2>" + _risks_table(rows),
    ]
    if any(row["negative"] > 0 for row in rows):
        what = "<p class='what'>Noise makes some counts negative. Hiding that makes them look better, and totals too large.</p>"
        parts.append("<h2>Negative counts published as 0</h2>" + what + _clamped_table(rows))
    parts.append(_list("In words", sentences(told)))
    parts.append(_list("How to read it", footnotes(told)))
    return _page("Ways of publishing, side by side", lead, parts)


def calibration_page(told: dict[str, Any]) -> str:
    """Return a calibration as a page.

    Parameters
    ----------
    told : dict
        `Calibration.to_json()`.
    """
    lead = f"{told['areas']:,} areas published by {told['mechanism']}, from {told['source']}."
    heads = ("", "counts", "flat: off by", "log loss", "fitted: off by", "log loss", "by chance", "trust")
    cells = [
        [
            _text(name),
            f"{group['fitted']['cells']:,}",
            f"{100 * group['flat']['calibration_error']:.2f}",
            f"{group['flat']['log_loss']:.3f}",
            f"{100 * group['fitted']['calibration_error']:.2f}",
            f"{group['fitted']['log_loss']:.3f}",
            f"{100 * group['fitted']['by_chance']:.2f}",
            _text(group["trust"]),
        ]
        for name, group in told["groups"].items()
    ]
    parts = [
        _section(
            "How often claims are right",
            "On the diagonal, claims are right as often as they state; below it they are overconfident. Points are as large as "
            "there are claims.",
            _svg(reliability_chart(told["groups"])),
        ),
        "<h2>By kind of count</h2><p class='what'>Off by: the expected calibration error, in points. By chance: what perfectly "
        "calibrated claims, as many as these, would show.</p>" + _table(heads, cells),
        _list("Which prior to trust", calibration_sentences(told)),
    ]
    return _page("How often claims are right", lead, parts)


# -- pictures ----------------------------------------------------------------------------------------------------------


def family(name: str) -> str:
    """Return what kind of mechanism a name belongs to."""
    first = name.split(":")[0].split("=")[0]
    known = {"laplace": "noise", "gaussian": "noise", "nearest-even": "nearest", "digits": "nearest", "controlled": "controlled"}
    found = known.get(first, first)
    return found if found in FAMILIES else "rounding" if first in ("base", "graduated", "sample", "residues") else "other"


def _colour() -> Any:
    import altair as alt

    return alt.Color(
        "family:N", scale=alt.Scale(domain=list(FAMILIES), range=list(FAMILIES.values())), legend=None
    )


def risk_chart(rows: list[dict[str, Any]]) -> altair.LayerChart:
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
    base = alt.Chart(alt.InlineData(values=points), width=860, height=380)
    x = alt.X("error:Q", title="mean error of a published count", scale=alt.Scale(domain=[0, 1.15 * largest], nice=False))
    y = alt.Y(
        "risk:Q", title="probability put on the truth", scale=alt.Scale(domain=[0, 1.12 * top]), axis=alt.Axis(format=".0%")
    )
    dots = base.mark_circle(size=190, opacity=1).encode(x=x, y=y, color=_colour())
    rings = (
        base.mark_point(size=520, strokeWidth=2, opacity=1, filled=False)
        .encode(x=x, y=y, color=_colour())
        .transform_filter("datum.proved")
    )
    up = base.mark_rule(strokeWidth=2).encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=_colour())
    across = base.mark_rule(strokeWidth=2).encode(x=alt.X("left:Q"), x2="right:Q", y=y, color=_colour())
    names = base.mark_text(align="left", dx=16, dy=1, fontSize=14, fontWeight=600, color=INK).encode(x=x, y=y, text="name:N")
    return alt.layer(up, across, rings, dots, names)


def sums_chart(rows: list[dict[str, Any]]) -> altair.LayerChart:
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
        y=alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelFontSize=14, labelFontWeight=600, domain=False, ticks=False))
    )
    top = max(max(value["sums"], value["alone"]) for value in values)
    scale = alt.Scale(domain=[0, 1.12 * top], nice=False)
    axis = alt.Axis(format=".0%")
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

    from unround.compare.distances import distances
    from unround.protect.table import protection

    tallest = 0.0
    panels = []
    for row in rows:
        bars = [{"d": int(d), "share": share} for d, share in row["distances"].items() if abs(int(d)) <= SHOWN]
        tallest = max(tallest, *(bar["share"] for bar in bars))
        promised = None
        if row["expected"] is not None:
            name = row["name"]
            spec = f"rounding:{name[5:]}" if name.startswith("base=") else name if ":" in name else "rounding:5"
            promised = distances(protection(spec).mechanism)
        lines = [
            {"d": d, "share": promised.shares.get(d, 0.0)} for d in range(-SHOWN, SHOWN + 1) if promised is not None
        ]
        panels.append((row["name"], bars, lines))
    charts = []
    for name, bars, lines in panels:
        x = alt.X("d:Q", title=None, scale=alt.Scale(domain=[-SHOWN - 0.7, SHOWN + 0.7]), axis=alt.Axis(values=list(range(-10, 11, 5)), grid=False))
        y = alt.Y("share:Q", title=None, scale=alt.Scale(domain=[0, 1.05 * tallest]), axis=alt.Axis(format=".0%", tickCount=4))
        title = alt.TitleParams(name, anchor="start", fontSize=14, fontWeight=600, color=INK)
        chart = alt.Chart(alt.InlineData(values=bars), width=255, height=150, title=title)
        layers: list[Any] = [chart.mark_bar(size=9, color=FAMILIES[family(name)], opacity=0.85).encode(x=x, y=y)]
        if lines:
            line = alt.Chart(alt.InlineData(values=lines)).mark_line(strokeWidth=1.4, color=INK, interpolate="step-after" if False else "linear")
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
            .encode(x=alt.X("a:Q", scale=scale, title="stated", axis=axis), y=alt.Y("b:Q", scale=scale, title="right", axis=axis))
        )
        colour = alt.Color(
            "prior:N",
            scale=alt.Scale(domain=["flat", "fitted"], range=[FAMILIES["rounding"], FAMILIES["noise"]]),
            legend=alt.Legend(title=None, orient="bottom-right", labelColor=INK, labelFontSize=13, symbolSize=120),
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


def _svg(chart: Any) -> str:
    """Render a chart; text and grid take the page's colours."""
    import vl_convert

    dressed = chart.configure(background="transparent", font="system-ui, sans-serif").configure_view(stroke=None)
    dressed = dressed.configure_axis(
        labelColor=INK, titleColor=INK, gridColor=FAINT, domainColor=FAINT, tickColor=FAINT, labelFontSize=12, titleFontSize=13,
        titleFontWeight=500, titlePadding=10,
    )
    drawn = str(vl_convert.vegalite_to_svg(dressed.to_dict()))
    return drawn.replace(INK, "currentColor").replace(FAINT, "var(--grid)")


# -- tables and text ---------------------------------------------------------------------------------------------------


def _errors_table(rows: list[dict[str, Any]]) -> str:
    heads = ("", "mean error", f"of counts over {LARGE}", "promised", "root mean square", "within 4", "bias", "sums that do not add up", "ε, whole release")
    cells = [
        [
            _named(row),
            _with_error(row, "mean_error", 3),
            _with_error(row, f"mean_error_over_{LARGE}", 3),
            "" if row["expected"] is None else f"{row['expected']['mean_error']:.3f}",
            _with_error(row, "rmse", 3),
            f"{100 * row['within_4']:.1f} %",
            _with_error(row, "bias", 3, "+"),
            f"{100 * row['sums_broken']:.1f} %",
            "none" if row["epsilon"] is None else f"{row['epsilon']:.1f}",
        ]
        for row in rows
    ]
    return _table(heads, cells)


def _risks_table(rows: list[dict[str, Any]]) -> str:
    heads = ("", "proved", "of these wrong", "likely", "of these right", "probability put on the truth", "without sums", "best guess is right", "1s and 2s disclosed")
    cells = [
        [
            _named(row),
            number(row["proved"]),
            number(row["proved_wrong"]),
            number(row["likely"]),
            f"{100 * row['likely_right'] / row['likely']:.1f} %" if row["likely"] else "",
            _with_error(row, "truth_probability", 3),
            f"{row['truth_probability_alone']:.3f}",
            f"{100 * row['guessed']:.1f} %",
            number(row["small_disclosed"]),
        ]
        for row in rows
    ]
    return _table(heads, cells)


def _clamped_table(rows: list[dict[str, Any]]) -> str:
    heads = ("", "negative", "mean error as drawn", "clamped", "root mean square as drawn", "clamped", "bias as drawn", "clamped", "bias of true zeros, clamped")
    cells = [
        [
            _named(row),
            f"{100 * row['negative']:.1f} %",
            f"{row['mean_error']:.3f}",
            f"{row['clamped_mean_error']:.3f}",
            f"{row['rmse']:.3f}",
            f"{row['clamped_rmse']:.3f}",
            f"{row['bias']:+.3f}",
            f"{row['clamped_bias']:+.3f}",
            f"{row['clamped_bias_of_zeros']:+.2f}",
        ]
        for row in rows
        if row["negative"] > 0
    ]
    return _table(heads, cells)


def _named(row: dict[str, Any]) -> str:
    return f"<i class='dot' style='background:{FAMILIES[family(row['name'])]}'></i>{_text(row['name'])}"


def _with_error(row: dict[str, Any], name: str, digits: int, sign: str = "") -> str:
    spread = row["standard_error"][name]
    shown = f"{row[name]:{sign}.{digits}f}"
    return shown if spread is None else f"{shown} <small>± {spread:.{digits}f}</small>"


def _table(heads: tuple[str, ...], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{_text(one)}</th>" for one in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _section(title: str, what: str, content: str) -> str:
    return f"<h2>{_text(title)}</h2><p class='what'>{_text(what)}</p><figure>{content}</figure>"


def _list(title: str, items: list[str]) -> str:
    return f"<h2>{_text(title)}</h2><ul>" + "".join(f"<li>{_text(item)}</li>" for item in items) + "</ul>"


def _text(text: str) -> str:
    return html.escape(str(text))


def _page(title: str, lead: str, parts: list[str]) -> str:
    from unround._version import __version__

    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'><meta name='color-scheme' content='light dark'>"
        f"<title>{_text(title)}</title><style>{STYLE}</style></head><body><main><h1>{_text(title)}</h1>"
        f"<p class='lead'>{_text(lead)}</p>{''.join(parts)}"
        f"<footer>unround {__version__}. Model estimates; not official counts.</footer></main></body></html>\n"
    )
