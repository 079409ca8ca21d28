"""What `unround whatif --rates` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from unround.show.rate_steps import HEADINGS, answer, footnotes, question, rows
from unround.show.terminal.layout import bullets, plain_table


def show_rate_steps(told: Mapping[str, Any], console: Console) -> None:
    """Print how coarse rates must be to add nothing."""
    console.print(Text(f"{question(told)}\n"))
    console.print(Text(f"{answer(told)}\n", style="bold"))
    table = plain_table(*HEADINGS)
    for row in rows(told):
        table.add_row(*row)
    console.print(table)
    console.print()
    bullets(footnotes(told), console, "dim")
