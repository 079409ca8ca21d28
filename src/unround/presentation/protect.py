"""A protected table as text in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unround.protection.release import HEADINGS, Protected, error_rows


def show_protected(made: Protected, console: Console) -> None:
    """Print what was done, and what it cost."""
    how = made.choices.how
    exact = f", {len(made.exact):,} of them as they are ({_few(made.exact)})" if made.exact else ""
    console.print(Text(f"{made.areas:,} areas, {made.columns:,} columns{exact}, {made.sums:,} sums. {how.sentence}"))
    console.print(Text(f"Chance came from {made.choices.chance}."), style="dim")
    console.print("\n[bold]Published less true counts[/]")
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for row in error_rows(made.steps.items()):
        table.add_row(*row)
    console.print(table)
    console.print(
        Text(
            "Mean error: how far counts are off, either way; bias: with its sign, also for true counts under 5 alone; sums "
            "off: totals that are not the sum of their parts."
        ),
        style="dim",
    )
    hidden = list(made.steps.values())[-1].hidden
    if hidden:
        console.print(f"{hidden:,} counts are not published.")
    for note in made.notes:
        console.print(Text(f"Note: {note}"), style="yellow")
    console.print("\nWritten:")
    for path, what in (
        (made.table, "the table"),
        (made.about, f"what it says about itself: {made.declared}, and its sums"),
        (made.note, "the above, for you; not to be published"),
    ):
        console.print(Text(f"  {path}").append(f"  {what}", style="dim"), soft_wrap=True)


def _few(keys: tuple[str, ...]) -> str:
    return ", ".join(keys[:6]) + (" …" if len(keys) > 6 else "")
