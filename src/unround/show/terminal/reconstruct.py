"""What `unround reconstruct` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from unround.show.reconstruct import (
    Rows,
    agreement_table,
    confidence_table,
    footnotes,
    lead,
    sentences,
    ways_table,
    without_table,
)
from unround.show.terminal.layout import bullets, plain_table


def show_reconstruction(told: Mapping[str, Any], console: Console) -> None:
    """Print the four guesses, what confidence is worth, and what other ways of publishing would give away."""
    console.print(Text(lead(told)))
    _show("Records found exactly", agreement_table(told, "agreement"), console)
    if told["has_ages"]:
        _show("Records found but for a year of age", agreement_table(told, "within_one_year"), console)
    _show("By confidence", confidence_table(told), console)
    sampled = (told["compared"] or {"areas": 0})["areas"]
    for title, rows in (
        (f"Published in other ways, {sampled:,} areas", ways_table(told)),
        (f"Without one of the tables, {sampled:,} areas", without_table(told)),
    ):
        if rows is not None:
            _show(title, rows, console)
    console.print()
    bullets(sentences(told), console)
    bullets(footnotes(told), console, "dim")


def _show(title: str, rows: Rows, console: Console) -> None:
    console.print(f"\n[bold]{title}[/]")
    heads, lines = rows
    table = plain_table(*heads)
    for line in lines:
        table.add_row(*line)
    console.print(table)
