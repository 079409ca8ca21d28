"""Charts as files and in notebooks: several panels under a heading, as svg, or as a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unround.errors import InputError
from unround.output import write_whole
from unround.show.page import page
from unround.show.parts import QUIET, Chart, Charts, Document, Text

if TYPE_CHECKING:
    from unround.explanation.cell import Explanation
    from unround.explanation.posterior import Posterior
    from unround.job import AuditFolder
    from unround.solution import Solution

MOST_PANELS = 60
"""Cells that are drawn; more would make a picture that nobody can look at."""

FORMATS = (".svg", ".html")
GAP, MARGIN, ACROSS = 28, 16, 3
"""Pixels between panels, and around all of them; panels side by side."""

VARIABLE = re.compile(r"var\(--([\w-]+)\)")


@dataclass(frozen=True, slots=True)
class Plot:
    """Several panels under a heading."""

    title: str
    note: str
    panels: tuple[Chart, ...]

    def save(self, path: Path | str) -> None:
        """Write it as .svg or .html, by the ending of the file's name."""
        save(self, Path(path))

    def _repr_svg_(self) -> str:
        return svg(self)


def _distributions(title: str, cells: Iterable[Any]) -> Plot:
    """Draw how likely each count is, a panel for every cell that was not published exactly."""
    from unround.show.charts import histogram
    from unround.show.words import span

    drawn = [cell for cell in cells if cell.kind != "given" and len(cell.distribution)]
    if not drawn:
        raise InputError("there is nothing to draw: no cell has a distribution.")
    panels = []
    for cell in drawn[:MOST_PANELS]:
        name = cell.name if hasattr(cell, "name") else cell.key
        published = "not published" if cell.published is None else f"published {cell.published:,}"
        chart = histogram(cell.distribution, name=name, kind=cell.kind, published=cell.published, height=120)
        panels.append(Chart(chart, name, f"{published}, possible {span(cell.low, cell.high)}, {cell.kind}"))
    more = f" The first {MOST_PANELS} of {len(drawn)} cells." if len(drawn) > MOST_PANELS else ""
    return Plot(title, f"Inferred from published values; not official counts.{more}", tuple(panels))


def posterior_plot(result: Solution | Posterior | Explanation) -> Plot:
    """Draw the distribution of every count of a system or an area, or of one count."""
    from unround.explanation.cell import Explanation
    from unround.show.explain import title
    from unround.solution import Solution

    if isinstance(result, Explanation):
        return _distributions(title(result), [result])
    if isinstance(result, Solution):
        return _distributions("Possible true counts", result.cells)
    return _distributions(" ".join(map(str, result.area.values())), result.cells.values())


def claims_plot(folder: AuditFolder) -> Plot:
    """Draw how many counts an audit claims, by their size and by how certain they are."""
    from unround.show.charts import stacked_bars
    from unround.show.words import size_named

    rows = {size_named(size): numbers for size, numbers in folder.summary["sensitive_claims"]["by_value"].items()}
    chart = stacked_bars(rows, "Claims by inferred count")
    note = "Inferred from published values; not official counts."
    return Plot("Counts that can be inferred, by their size", note, (Chart(chart, "inferred count"),))


def check_plot(path: Path) -> None:
    """Raise InputError unless the file's ending names a format that can be drawn here, and its folder exists."""
    if path.suffix.lower() not in FORMATS:
        convert = " A browser or a drawing program makes a .png of an .svg." if path.suffix.lower() == ".png" else ""
        raise InputError(f"a plot is written as .svg or .html: give the file such a name, not {path.name!r}.{convert}")
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}.")


def save(plot: Plot, path: Path) -> None:
    """Write a plot as svg or html, by the file's ending. The html needs no other file, and follows the reader's scheme."""
    check_plot(path)
    content = page(document(plot)) if path.suffix.lower() == ".html" else svg(plot)
    try:
        write_whole(path, content)
    except OSError as problem:
        raise InputError(f"{path} cannot be written: {problem.strerror}.") from None


def document(plot: Plot) -> Document:
    """Return a plot as a document: a page of panels."""
    return Document(plot.title, [Text(plot.note, QUIET), Charts(plot.panels)], "unround")


def svg(plot: Plot) -> str:
    """Return a plot as one SVG that needs nothing else: on white, in the light colours."""
    from unround.show.charts import LETTER, Picture

    lines = [panel.note.splitlines() for panel in plot.panels]
    heads = 20 + 16 * max(map(len, lines))
    sizes = [_size(panel.picture) for panel in plot.panels]
    named = [LETTER * 1.15 * max(map(len, (panel.caption, *said))) for panel, said in zip(plot.panels, lines, strict=True)]
    wide = max(max(size[0], name) for size, name in zip(sizes, named, strict=True))
    across = min(ACROSS, len(plot.panels))
    rows = [range(start, min(start + across, len(plot.panels))) for start in range(0, len(plot.panels), across)]
    tall = [heads + max(sizes[at][1] for at in row) for row in rows]
    notes = _wrapped(plot.note, int((across * (wide + GAP)) / LETTER))
    top = MARGIN + 34 + 18 * len(notes)
    width = max(2 * MARGIN + across * wide + (across - 1) * GAP, 2 * MARGIN + 9.5 * len(plot.title))
    drawn = Picture(round(width), round(top + sum(tall) + GAP * (len(rows) - 1) + MARGIN), f"{plot.title}. {plot.note}")
    drawn.parts.append(f"<style>{plain_css()}</style>")
    drawn.rect(0, 0, drawn.width, drawn.height, "ground")
    drawn.text(MARGIN, MARGIN + 16, plot.title, "heading")
    for at, line in enumerate(notes):
        drawn.text(MARGIN, MARGIN + 38 + 18 * at, line, "soft")
    y = float(top)
    for row, height in zip(rows, tall, strict=True):
        for column, at in enumerate(row):
            x = MARGIN + column * (wide + GAP)
            drawn.text(x, y + 14, plot.panels[at].caption, "title")
            for k, line in enumerate(lines[at]):
                drawn.text(x, y + 31 + 16 * k, line, "soft")
            drawn.parts.append(str(plot.panels[at].picture).replace("<svg ", f'<svg x="{x:g}" y="{y + heads:g}" ', 1))
        y += height + GAP
    return f"{drawn.done()}\n"


def plain_css() -> str:
    """Return the stylesheet of charts without variables, in the light colours."""
    from unround.show.palette import PALETTE
    from unround.show.site import static

    text = VARIABLE.sub(lambda match: PALETTE[match[1]][0], static("charts.css").decode())
    return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", text)).strip()


def _size(chart: str) -> tuple[float, float]:
    match = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', chart)
    assert match is not None
    return float(match[1]), float(match[2])


def _wrapped(text: str, letters: int) -> Sequence[str]:
    import textwrap

    return textwrap.wrap(text, max(30, letters))
