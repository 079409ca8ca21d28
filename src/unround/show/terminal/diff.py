"""What `unround diff` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unround.show.diff import (
    alarms,
    area_of,
    change_of,
    changes,
    count_of,
    details,
    differing,
    one_side,
    scope,
    verdict,
)
from unround.show.terminal.layout import bullets, plain_table
from unround.show.words import CLAIMS, block_named, notice, number, size_named

MOST_BLOCKS = 10
"""Tables that are listed; the others are counted."""

HEADINGS = ("newly proved", "conditional", "likely", "lost")


def show_diff(told: Mapping[str, Any], console: Console, called: tuple[str, str] = ("before", "after")) -> None:
    """Print what changed; `called` are the names of the two audits."""
    sides = Table.grid(padding=(0, 2, 0, 0))
    for name, side in zip(called, ("before", "after"), strict=True):
        sides.add_row(name, Text(one_side(told[side])))
    console.print(sides)
    console.print()
    console.print(Text(verdict(told), style="bold"))
    for said in alarms(told):
        console.print(Text(f"\n{said}"), style="bold red")
    if any(changes(row) for row in told["by_value"].values()):
        console.print()
        console.print(
            _table("inferred count", {size_named(name): row for name, row in told["by_value"].items()}, total=told)
        )
        _more_tables(told, console)
    if told["strongest"]:
        console.print("\n[bold]The most serious new claims[/] (proved first, then counts of one or two)")
        console.print(_strongest(told))
    console.print()
    bullets((*details(told), *scope(told)), console, "dim")
    if told["differences"]:
        bullets(differing(told), console, "yellow")
    console.print(Text(f"\n{notice(told['after']['product'])}"), style="dim")


def _more_tables(told: Mapping[str, Any], console: Console) -> None:
    blocks = {block_named(name, told["by_block"]): row for name, row in told["by_block"].items() if changes(row)}
    shown = dict(list(blocks.items())[:MOST_BLOCKS])
    console.print()
    console.print(_table("table", shown))
    if len(blocks) > len(shown):
        console.print(f"   and {len(blocks) - len(shown):,} more tables; --json gives them all.", style="dim")
    sizes = {size_named(name): row for name, row in told["by_area_size"].items() if changes(row)}
    console.print()
    console.print(_table("size of area", sizes))


def _table(first: str, rows: Mapping[str, Mapping[str, Any]], total: Mapping[str, Any] | None = None) -> Table:
    table = plain_table(first, *HEADINGS)
    table.columns[0].max_width = 44
    for name, row in rows.items():
        table.add_row(Text(name), *_numbers(row))
    if total is not None:
        table.add_row("all", *_numbers(total), style="bold")
    return table


def _numbers(row: Mapping[str, Any]) -> list[str]:
    return [*(f"{row['newly'][kind]:,}" for kind in CLAIMS), f"{sum(row['lost'].values()):,}"]


def _strongest(told: Mapping[str, Any]) -> Table:
    table = plain_table("area", "count", "published", "inferred", "now", "before", left=["count", "now", "before"])
    for row in told["strongest"]:
        now, before = change_of(row)
        where, published = Text(area_of(row)), number(row["published"])
        table.add_row(where, Text(count_of(row)), published, f"{row['value']:,}", Text(now), Text(before))
    return table
