"""What `unround protect` prints."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from unround.protection.release import HEADINGS, Protected, error_rows
from unround.show.terminal.layout import plain_table


def show_protected(made: Protected, console: Console) -> None:
    """Print what was done, and what it cost."""
    how = made.choices.how
    exact = f", {len(made.exact):,} of them unrounded ({_few(made.exact)})" if made.exact else ""
    console.print(Text(f"{made.areas:,} areas, {made.columns:,} columns{exact}, {made.sums:,} sums. {how.sentence}"))
    console.print(Text(f"Random numbers came from {made.choices.chance}."), style="dim")
    console.print("\n[bold]Published minus true counts[/]")
    table = plain_table(*HEADINGS)
    for row in error_rows(made.steps.items()):
        table.add_row(*row)
    console.print(table)
    console.print(
        Text(
            "Mean error: the mean absolute difference; bias: the mean difference with its sign, for all counts and for true "
            "counts under 5; sums off: totals that are not the sum of their parts."
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
        (made.about, f"its description: {made.declared}, and its sums"),
        (made.note, "the above, for you; do not publish it"),
    ):
        console.print(Text(f"  {path}").append(f"  {what}", style="dim"), soft_wrap=True)


def _few(keys: tuple[str, ...]) -> str:
    return ", ".join(keys[:6]) + (" …" if len(keys) > 6 else "")
