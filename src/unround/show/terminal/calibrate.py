"""What `unround calibrate` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from unround.show.calibrate import (
    CALIBRATION_NOTE,
    CLAIMS_NOTE,
    OVERSTATED,
    calibration_lead,
    calibration_sentences,
    calibration_table,
    claims_sentences,
    claims_table,
    worlds_table,
)
from unround.show.terminal.layout import bullets, items, plain_table


def show_calibration(told: dict[str, Any], console: Console) -> None:
    """Print how often claims are right, the worst world first, and which prior to trust when."""
    if len(told["worlds"]) > 1:
        console.print("[bold]Likely claims, the worst world first[/]")
        heads, rows = worlds_table(told["worlds"])
        table = plain_table(*heads, left=["worst band", "verdict"])
        for row in rows:
            table.add_row(*row, style="red" if row[-1].endswith(OVERSTATED) else "")
        console.print(table)
        console.print()
    for line in calibration_lead(told):
        console.print(Text(line))
    console.print("\n[bold]Likely claims, by the count claimed[/]")
    show_claims(told["claims_by_value"], console)
    console.print("\n[bold]Likeliest counts of all cells, whether likely or not[/]")
    heads, rows = calibration_table(told)
    table = plain_table(*heads, left=["trust"])
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print("\n[bold]Of claims made at this probability, this share is right[/]")
    _reliability(told["groups"]["all cells"], console)
    console.print()
    bullets([*claims_sentences(told), *calibration_sentences(told)], console)
    bullets([CLAIMS_NOTE, CALIBRATION_NOTE, *told["notes"]], console, "dim")


def show_claims(by_value: list[dict[str, Any]], console: Console) -> None:
    """Print how often likely claims are right, by the count claimed and by band."""
    if not by_value:
        console.print("There are none.")
        return
    heads, rows = claims_table(by_value)
    table = plain_table(*heads, left=["stated between", "verdict"])
    above = ""
    for value, *numbers in rows:
        table.add_row("" if value == above else value, *numbers, style="red" if numbers[-1] else "")
        above = value
    console.print(table)


def show_worlds(sentences: Mapping[str, str], console: Console) -> None:
    """Print the worlds that there are."""
    items(list(sentences.items()), console)


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
