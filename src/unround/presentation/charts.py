"""Charts, as Altair specifications: one for the screen, for pictures and for pages alike, all offline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from unround.errors import InputError

if TYPE_CHECKING:
    import altair

    from unround.solution import Solution

MOST_PANELS = 60
"""Cells that are drawn; more would make a picture that nobody can look at."""

FORMATS = (".svg", ".png", ".html")

KINDS = {"given": "#8c8c8c", "proved": "#1b7837", "likely": "#b35806", "open": "#4575b4"}


def histograms(solution: Solution) -> altair.VConcatChart:
    """Draw every cell's distribution, several to a row."""
    import altair as alt

    panels = []
    for cell in solution.cells[:MOST_PANELS]:
        if cell.kind == "given" or not cell.distribution:
            continue
        bars = [{"value": value, "probability": probability} for value, probability in cell.distribution]
        range_text = str(cell.low) if cell.low == cell.high else f"{cell.low}–{cell.high}"
        published = "not published" if cell.published is None else f"published {cell.published:,}"
        title = alt.TitleParams(cell.name, subtitle=f"{published}, possible {range_text}, {cell.kind}", anchor="start")
        step = len(bars) <= 30
        value = alt.X(
            "value:O" if step else "value:Q",
            title="true count",
            axis=alt.Axis(labelAngle=0, labelOverlap=True),
        )
        panel = (
            alt.Chart(alt.InlineData(values=bars), title=title, width=220, height=130)
            .mark_bar(color=KINDS[cell.kind])
            .encode(
                x=value,
                y=alt.Y(
                    "probability:Q",
                    title="probability",
                    axis=alt.Axis(format=".2~%", tickCount=4),
                    scale=alt.Scale(zero=True, nice=True),
                ),
                tooltip=[alt.Tooltip("value:Q", format=","), alt.Tooltip("probability:Q", format=".4f")],
            )
        )
        panels.append(panel)
    if not panels:
        raise InputError("there is nothing to draw: no cell has a distribution.")
    rows = [alt.hconcat(*panels[i : i + 3], spacing=30) for i in range(0, len(panels), 3)]
    title = alt.TitleParams(
        "What the true counts can have been",
        subtitle="Inferred from published values; not official counts.",
        anchor="start",
        offset=16,
        fontSize=16,
    )
    chart: altair.VConcatChart = (
        alt.vconcat(*rows, spacing=25, padding=12, title=title)
        .configure_view(strokeOpacity=0)
        .configure_title(fontSize=13, subtitleColor="#666666")
    )
    return chart


def check_plot(path: Path) -> None:
    """Raise InputError unless the file's ending names a format that can be drawn, and its folder exists."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"a plot is written as .svg, .png or .html: give the file such a name, not {path.name!r}.")
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}.")


def save(chart: altair.VConcatChart, path: Path) -> None:
    """Write a chart as svg, png or html, by the file's ending. The html holds everything it needs.

    Raises
    ------
    InputError
        If the ending is another one, or the file cannot be written.
    """
    check_plot(path)
    import vl_convert

    spec = chart.to_dict()
    kind = path.suffix.lower()
    content: bytes
    if kind == ".png":
        content = vl_convert.vegalite_to_png(spec, scale=2)
    elif kind == ".svg":
        content = vl_convert.vegalite_to_svg(spec).encode()
    else:
        content = vl_convert.vegalite_to_html(spec, bundle=True).encode()
    try:
        path.write_bytes(content)
    except OSError as problem:
        raise InputError(f"{path} cannot be written: {problem.strerror}.") from None
