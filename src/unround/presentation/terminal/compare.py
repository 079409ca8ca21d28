"""What `unround compare` and `unround calibrate` print."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from unround.comparison.calibration import Calibration
from unround.presentation.compare import (
    CALIBRATION_NOTE,
    calibration_sentences,
    calibration_table,
    errors_table,
    footnotes,
    lead,
    risks_table,
    sentences,
)
from unround.presentation.terminal.layout import bullets, plain_table


def show_comparison(told: dict[str, Any], console: Console) -> None:
    """Print a comparison: the tables, and what to make of them."""
    console.print(Text(lead(told)))
    for title, (heads, rows) in (
        ("How far off", _without_errors(errors_table(told["mechanisms"]))),
        ("What can be inferred", risks_table(told["mechanisms"])),
    ):
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


def show_calibration(found: Calibration, console: Console) -> None:
    """Print how often claims are right, and which prior to trust when."""
    told = found.to_json()
    console.print(Text(f"{found.areas:,} areas published with {found.mechanism}, from {found.source}."))
    console.print()
    heads, rows = calibration_table(told)
    table = plain_table(*heads, left=["trust"])
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print("\n[bold]Of claims made at this probability, this share is right[/]")
    _reliability(told["groups"]["all cells"], console)
    console.print()
    bullets(calibration_sentences(told), console)
    bullets([CALIBRATION_NOTE, *told["notes"]], console, "dim")


def _reliability(group: dict[str, Any], console: Console) -> None:
    table = plain_table("stated", "flat: claims", "right", "fitted: claims", "right", "", left=[""])
    by_bin = {prior: {row["from"]: row for row in group[prior]["bins"]} for prior in ("flat", "fitted")}
    for start in sorted({*by_bin["flat"], *by_bin["fitted"]}):
        cells = [f"{100 * start:.0f}–{100 * start + 5:.0f}%"]
        for prior in ("flat", "fitted"):
            row = by_bin[prior].get(start)
            cells += [f"{row['claims']:,}", f"{100 * row['right']:.1f}%"] if row else ["", ""]
        fitted = by_bin["fitted"].get(start)
        table.add_row(*cells, _ruler(fitted["stated"], fitted["right"]) if fitted else "")
    console.print(table)


def _ruler(stated: float, right: float, width: int = 40) -> str:
    """Draw a bar of the share that is right, with a mark where it should end."""
    bar = ["█" if k < round(width * right) else " " for k in range(width + 1)]
    bar[round(width * stated)] = "│"
    return "".join(bar).rstrip()
