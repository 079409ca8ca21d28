"""What `unround whatif` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unround.show.terminal.diff import show_diff
from unround.show.terminal.layout import bullets, plain_table
from unround.show.whatif import HEADINGS, advice, file_names, footnotes, refusals, rows

CALLED = ("release alone", "with the table")


def show_whatif(told: Mapping[str, Any], console: Console) -> None:
    """Print what the table would expose, and what each repair of it leaves."""
    release, table = file_names(told)
    console.print(Text(f"What would {table} expose, next to {release}?\n"))
    show_diff(told["diff"], console, CALLED)
    console.print(Text(f"\n{advice(told)}", style="bold"))
    if told["repairs"]:
        console.print()
        console.print(_ranking(told))
        said = Table.grid(padding=(0, 2, 0, 0))
        for row in told["repairs"]:
            said.add_row(f"  {row['name']}", Text(row["sentence"]))
        console.print("\nThe repairs")
        console.print(said, style="dim")
    console.print()
    bullets((*footnotes(told), *refusals(told)), console, "dim")


def _ranking(told: Mapping[str, Any]) -> Table:
    table = plain_table(*HEADINGS, left=["repair"])
    for row in rows(told):
        table.add_row(*row["cells"], style="" if row["method"] else "dim")
    return table
