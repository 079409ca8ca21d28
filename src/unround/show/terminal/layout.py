"""What the output of several commands is made of: tables without lines, bullet points, and small histograms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

BARS = "▁▂▃▄▅▆▇█"
WIDEST = 24
"""Bars in a small histogram; a wider distribution is shown in bins."""


def plain_table(*headings: str, left: Iterable[str] = (), title: str = "") -> Table:
    """Return a table without lines: the first column is text, the others are numbers unless named in `left`."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0), title=title or None)
    table.title_justify, table.title_style = "left", "bold"
    words = {headings[0], *left}
    for heading in headings:
        table.add_column(heading, justify="left" if heading in words else "right")
    return table


def bullets(sentences: Iterable[str], console: Console, style: str = "") -> None:
    """Print sentences, one point each, so that wrapped lines stay indented."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    for sentence in sentences:
        grid.add_row(" •", Text(sentence))
    console.print(grid, style=style)


def items(rows: Sequence[tuple[str, str]], console: Console) -> None:
    """Print names with what is to be said of each, so that wrapped lines stay indented."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    for name, text in rows:
        grid.add_row(" •", Text(name).append(f": {text}" if text else "", style="dim"))
    console.print(grid)


def sparkline(distribution: Sequence[tuple[int, float]]) -> str:
    """Draw a distribution in one line, one bar per value where there is room.

    Examples
    --------
    >>> sparkline([(33, 0.25), (34, 0.75)])
    '▃█'
    """
    if not distribution:
        return ""
    if distribution[-1][0] - distribution[0][0] >= WIDEST:  # long thin tails would leave no room for the rest
        least = max(p for _, p in distribution) / 100
        worth = [k for k, (_, p) in enumerate(distribution) if p >= least]
        distribution = distribution[worth[0] : worth[-1] + 1]
    low, high = distribution[0][0], distribution[-1][0]
    width = -(-(high - low + 1) // WIDEST)
    bins = [0.0] * ((high - low) // width + 1)
    for value, probability in distribution:
        bins[(value - low) // width] += probability
    tallest = max(bins)
    return "".join(" " if b == 0 else BARS[min(7, int(b / tallest * 8))] for b in bins)
