"""What `unround solve` prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unround.proofs import figure_value
from unround.show.terminal.layout import bullets, sparkline
from unround.show.words import STYLES, argument, either, large, number, percent, percent_with_error, span
from unround.solution import ALIKE, CellAnswer, FigureAnswer, Solution

MOST_PROOFS = 12
"""Proofs that are printed in full."""


def show_solution(solution: Solution, console: Console) -> None:
    """Print everything that a person wants to know: the cells, the best solutions, the proofs, the assumptions."""
    if not solution.feasible:
        _show_clash(solution, console)
        return
    console.print(_cells_table(solution, console.width))
    if solution.figures:
        console.print()
        bullets([figure_in_words(one) for one in solution.figures], console)
    console.print(f"\n{solutions_counted(solution)} [dim]({solution.engine} engine: {solution.why})[/]")
    if solution.method == "none":
        console.print("[bold]No probabilities:[/] possible ranges and proofs are all that can be said.")
    if solution.solutions != 1 and solution.top:
        console.print()
        console.print(_top_table(solution))
    if solution.proofs:
        figures = ", and figures were computed from true counts" if solution.figures else ""
        console.print(f"\n[bold]Proved[/], provided that the sums hold and exact cells are exact{figures}:")
        proofs = Table.grid(padding=(0, 1, 0, 0))
        for proof in solution.proofs[:MOST_PROOFS]:
            through = f", through {', '.join(proof.rests_on)}" if proof.rests_on else ""
            deep = f" ({argument(proof.depth).capitalize()}{through}.)" if proof.depth > 1 else ""
            proofs.add_row(" •", Text(proof.text).append(deep, style="dim"))
        console.print(proofs)
        if len(solution.proofs) > MOST_PROOFS:
            console.print(f"   and {len(solution.proofs) - MOST_PROOFS} more; --json gives them all.")
    console.print("\n[bold]Assumed:[/]")
    bullets(solution.assumptions, console, "dim")


def figure_in_words(one: FigureAnswer) -> str:
    """Write for example: x / T = 12.4%, from 12.35% to 12.45% before rounding."""
    figure = one.published.figure
    value, low, high = (figure_value(figure, number) for number in (one.published.value, one.low, one.high))
    name = figure.name if figure.kind.value in (figure.name, "rate") else f"{figure.kind.value} {figure.name}"
    aside = "" if one.in_probabilities else "; used for possible ranges alone"
    return f"{name} = {value}: from {low} to {high} before rounding{aside}"


def _cells_table(solution: Solution, width: int) -> Table:
    """Lay out the cells, one per row; a narrow terminal gets fewer columns, never numbers cut short."""
    columns: list[tuple[str, Literal["left", "right"], Callable[[CellAnswer], str | Text]]] = [
        ("cell", "left", lambda cell: Text(cell.name)),
        ("published", "right", lambda cell: number(cell.published)),
        ("possible", "right", lambda cell: span(cell.low, cell.high)),
        ("likeliest", "right", likeliest),
        ("prob.", "right", lambda cell: percent_with_error(cell.probability, cell.error)),
        ("distribution", "left", lambda cell: "" if cell.kind == "given" else sparkline(cell.distribution)),
        ("90% range", "left", lambda cell: "" if cell.kind == "given" else either(cell.sure)),
        ("", "left", lambda cell: Text(cell.kind, style=STYLES[cell.kind])),
    ]
    left_out = {"distribution"} if width < 80 else set()
    left_out |= {"90% range"} if width < 60 else set()
    table = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    shown = [column for column in columns if column[0] not in left_out]
    for heading, justify, _ in shown:
        table.add_column(heading, justify=justify, overflow="fold", no_wrap=heading == "distribution")
    for cell in solution.cells:
        table.add_row(*(show(cell) for _, _, show in shown))
    return table


def likeliest(cell: CellAnswer) -> str:
    """Return the likeliest value, or all of them if a few are equally likely."""
    if cell.mode is None or cell.probability is None:
        return ""
    alike = [value for value, p in cell.distribution if p >= cell.probability * (1 - ALIKE)]
    return either(alike) if len(alike) <= 3 else f"{len(alike)} alike"


def solutions_counted(solution: Solution) -> str:
    """Say how many solutions there are."""
    if solution.solutions is None:
        unbounded = [cell.name for cell in solution.cells if cell.high is None]
        if unbounded:
            return f"There are infinitely many solutions: nothing limits {', '.join(unbounded)} from above."
        return "There are too many solutions to count."
    if solution.solutions == 1:
        return "This is the only solution."
    return f"{large(solution.solutions)} solutions."


def _top_table(solution: Solution) -> Table:
    """Lay out the best solutions, one per row; with many cells, one per column."""
    shown = [cell.name for cell in solution.cells if cell.kind != "given"]
    title = "The best solution" if len(solution.top) == 1 else f"The {len(solution.top)} best solutions"
    known = all(one.probability is not None for one in solution.top)
    title += "" if known else " found; there may be better ones"
    table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left", title_style="bold")
    if len(shown) <= 8:
        for name in shown:
            table.add_column(Text(name), justify="right")
        if known:
            table.add_column("prob.", justify="right")
        table.add_column("times the next", justify="right")
        for one in solution.top:
            times = "" if one.times_next is None else f"{one.times_next:.3g}"
            probability = [] if one.probability is None else [percent(one.probability)]
            table.add_row(*(f"{one.values[name]:,}" for name in shown), *probability, times)
        return table
    table.add_column("cell")
    for rank in range(1, len(solution.top) + 1):
        table.add_column(f"{rank}.", justify="right")
    for name in shown:
        table.add_row(Text(name), *(f"{one.values[name]:,}" for one in solution.top))
    if known:
        table.add_row("prob.", *(percent(one.probability or 0.0) for one in solution.top))
    table.add_row("times the next", *("" if t.times_next is None else f"{t.times_next:.3g}" for t in solution.top))
    return table


def _show_clash(solution: Solution, console: Console) -> None:
    console.print("[bold red]No true counts fit.[/]")
    if solution.clash is None:
        console.print(f"{solution.why[0].upper()}{solution.why[1:]}.")
        return
    clash = solution.clash
    between = " in" if clash.sums else " and"
    console.print(Text("These cannot all hold: ").append(", ".join(clash.cells)).append(between))
    for one in clash.sums:
        console.print(Text(f"  {one}"))
    for stated in clash.figures:
        console.print(Text(f"  {stated.figure.name} = {figure_value(stated.figure, stated.value)}"))
    if solution.argument:
        console.print(Text(solution.argument))
    if not clash.minimum and not clash.figures:
        console.print("(A smaller set of cells and sums may already clash; the search for it was stopped.)")
    if clash.figures:
        console.print("The figure may have been computed from rounded counts, or be of other people, or have another step.")
    console.print(
        "Check the numbers, whether the parts really add up to the total, and how the counts were protected "
        "(! exact, @BASE, ~K within K, ? not published)."
    )
