"""What `unround review` prints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unround.reviews.decision import PUBLISH
from unround.reviews.policy import REVISE, STOP, UNDECIDED
from unround.show.review import (
    FEW_CELLS,
    cell_rows,
    check_status,
    example,
    exceptions,
    footnotes,
    headline,
    masthead,
    meaning,
    not_worked_out,
    open_questions,
    reading_rows,
    refusals,
    repair_rows,
    self_check_status,
)
from unround.show.terminal.layout import bullets, plain_table
from unround.show.words import several

STYLES = {PUBLISH: "bold", UNDECIDED: "bold dark_orange3", REVISE: "bold dark_orange3", STOP: "bold red"}


def show_review(told: Mapping[str, Any], console: Console, out: Path | None) -> None:
    """Print the decision first, then why, what to do, and where to look."""
    head = masthead(told)
    console.print(
        Text(f"DRAFT RELEASE REVIEW · {head['file']} · sha256 {head['sha256']} · {head['date']} · {head['mechanism']}"),
        style="dim",
    )
    console.print(Text(f"■ {headline(told).upper()}", style=STYLES[told["decision"]]))
    console.print(Text(meaning(told)))
    console.print()
    if told["unsettled"]:
        console.print(Text("Not settled", style="bold"))
        bullets(open_questions(told), console)
    reasons = [one["sentence"] for one in told["reasons"] if one["action"] != UNDECIDED]
    if reasons:
        bullets(reasons, console)
    else:
        bullets([f"{one['found']}." for one in told["limits"]], console)
    console.print(
        Text(f"Policy “{told['policy']['name']}”: {' '.join(one['sentence'] for one in told['limits'])}"), style="dim"
    )
    if told["check"]["clashes"]:
        console.print(Text("\nWhat contradicts", style="bold"))
        bullets(told["check"]["clashes"], console)
    _show_example(told, console)
    _show_repairs(told, console)
    _show_cells(told, console)
    console.print()
    for name, (state, said) in (("Mechanism check", check_status(told)), ("Self-check", self_check_status(told))):
        console.print(Text(f"{name}: {state}. ").append(said, style="dim"))
    if not_worked_out(told):
        console.print(Text("Probabilities: NOT COMPLETE. ").append(not_worked_out(told), style="dim"))
    console.print(Text("\nHow this table was read", style="bold"))
    bullets([f"{name}: {said}" for name, said in reading_rows(told)], console, "dim")
    if exceptions(told):
        console.print(Text("\nExceptions on record", style="bold"))
        bullets(exceptions(told), console)
    for note in told["notes"]:
        console.print(Text(f"Note: {note}"), style="dim")
    if out is not None:
        _show_files(console, out)


def _show_example(told: Mapping[str, Any], console: Console) -> None:
    shown = example(told)
    if shown is None:
        return
    console.print(Text("\nIn one example", style="bold"))
    console.print(Text(shown["sentence"]))
    bullets(shown["steps"], console, "dim")


def _show_repairs(told: Mapping[str, Any], console: Console) -> None:
    rows = repair_rows(told)
    if rows:
        console.print()
        title = "do this" if told["decision"] == REVISE else "tried"
        table = plain_table("", title, "within policy", "leaves", "costs", left=[title, "within policy", "leaves", "costs"])
        for row in rows:
            style = "" if row["within"] else "dim"
            action = Text(row["action"])
            table.add_row(
                str(row["rank"]), action, "yes" if row["within"] else "no", row["leaves"], row["costs"], style=style
            )
        console.print(table)
    bullets([*footnotes(told), *refusals(told)], console, "dim")


def _show_cells(told: Mapping[str, Any], console: Console) -> None:
    rows = cell_rows(told, FEW_CELLS)
    if not rows:
        return
    console.print(Text(f"\nCells to act on: {told['cells_to_act_on']:,}", style="bold"))
    table = plain_table("cell", "you print", "readers learn", "claim", left=["claim"])
    for row in rows:
        claim = f"likely, up to {row['chance']}" if row["kind"] == "likely" else row["kind"]
        table.add_row(Text(row["cell"]), row["published"], row["value"], claim)
    console.print(table)
    more = told["cells_to_act_on"] - len(rows)
    if more:
        console.print(Text(f"and {several(more, 'more cell')}"), style="dim")


def _show_files(console: Console, out: Path) -> None:
    what = {
        "review.html": "the decision on one page, to be signed; then the details",
        "cells.xlsx": "every cell to act on, with the proposed action and room for your word",
        "review.json": "every number",
        "decisions.jsonl": "the exceptions on record",
        "audit/report.html": "the audit of the draft",
    }
    console.print(Text(f"\nWritten to {out}/:"))
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, text in what.items():
        if (out / name).exists():
            table.add_row(f"  {name}", Text(text, style="dim"))
    console.print(table)
