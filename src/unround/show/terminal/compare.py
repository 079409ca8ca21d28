"""What `unround compare` prints."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from unround.show.compare import (
    RATES,
    errors_table,
    footnotes,
    lead,
    rates_table,
    risks_table,
    sentences,
)
from unround.show.terminal.layout import bullets, plain_table


def show_comparison(told: dict[str, Any], console: Console) -> None:
    """Print a comparison: the tables, and what to make of them."""
    console.print(Text(lead(told)))
    for title, (heads, rows) in (
        ("How far off", _without_errors(errors_table(told["mechanisms"]))),
        ("What can be inferred", risks_table(told["mechanisms"])),
        (RATES, rates_table(told["mechanisms"])),
    ):
        if not rows:
            continue
        console.print(f"\n[bold]{title}[/]")
        table = plain_table(*heads)
        for row in rows:
            table.add_row(*row)
        console.print(table)
    console.print()
    bullets(sentences(told), console)
    bullets(footnotes(told), console, "dim")


def _without_errors(table: tuple[list[str], list[list[str]]]) -> tuple[list[str], list[list[str]]]:
    """Return a table without standard errors, for which a terminal is too narrow."""
    heads, rows = table
    return heads, [[cell.split(" ± ")[0] for cell in row] for row in rows]
