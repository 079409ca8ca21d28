"""The pictures of the docs: several panels under a heading, as one SVG."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unround.show.parts import Chart

if TYPE_CHECKING:
    pass

GAP, MARGIN, ACROSS = 28, 16, 3
"""Pixels between panels, and around all of them; panels side by side."""

VARIABLE = re.compile(r"var\(--([\w-]+)\)")


@dataclass(frozen=True, slots=True)
class Plot:
    """Several panels under a heading."""

    title: str
    note: str
    panels: tuple[Chart, ...]


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
