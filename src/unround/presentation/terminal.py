"""A Solution as text in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unround.solution import ALIKE, CellAnswer, Solution

BARS = "▁▂▃▄▅▆▇█"
WIDEST = 24
"""Bars in a small histogram; a wider distribution is shown in bins."""

MOST_PROOFS = 12
"""Proofs that are printed in full."""

COLOURS = {"given": "dim", "proved": "bold green", "likely": "yellow", "open": ""}


def show_solution(solution: Solution, console: Console) -> None:
    """Print everything that a person wants to know: the cells, the best solutions, the proofs, the assumptions."""
    if not solution.feasible:
        _show_clash(solution, console)
        return
    console.print(_cells_table(solution, console.width))
    console.print(f"\n{_count(solution)} [dim]({solution.engine} engine: {solution.why})[/]")
    if solution.solutions != 1 and solution.top:
        console.print()
        console.print(_top_table(solution))
    if solution.proofs:
        console.print("\n[bold]Proved[/], if the sums hold and what is called exact is exact:")
        proofs = Table.grid(padding=(0, 1, 0, 0))
        for proof in solution.proofs[:MOST_PROOFS]:
            through = f", through {', '.join(proof.rests_on)}" if proof.rests_on else ""
            deep = f" (A chain of {proof.depth} sums{through}.)" if proof.depth > 1 else ""
            proofs.add_row(" •", Text(proof.text).append(deep, style="dim"))
        console.print(proofs)
        if len(solution.proofs) > MOST_PROOFS:
            console.print(f"   and {len(solution.proofs) - MOST_PROOFS} more; --json gives them all.")
    console.print("\n[bold]Assumed:[/]")
    assumed = Table.grid(padding=(0, 1, 0, 0))
    for sentence in solution.assumptions:
        assumed.add_row(" •", Text(sentence))
    console.print(assumed, style="dim")


def _cells_table(solution: Solution, width: int) -> Table:
    """Lay out the cells, one a row; a narrow terminal gets fewer columns, never numbers cut short."""
    columns: list[tuple[str, Literal["left", "right"], Callable[[CellAnswer], str | Text]]] = [
        ("cell", "left", lambda cell: Text(cell.name)),
        ("published", "right", lambda cell: "–" if cell.published is None else f"{cell.published:,}"),
        ("possible", "right", _range),
        ("likeliest", "right", _likeliest),
        ("prob.", "right", lambda cell: "" if cell.probability is None else percent(cell.probability)),
        ("distribution", "left", lambda cell: "" if cell.kind == "given" else histogram(cell.distribution)),
        ("90 % sure", "left", lambda cell: "" if cell.kind == "given" else either(cell.sure)),
        ("", "left", lambda cell: Text(cell.kind, style=COLOURS[cell.kind])),
    ]
    left_out = {"distribution"} if width < 80 else set()
    left_out |= {"90 % sure"} if width < 60 else set()
    table = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    shown = [column for column in columns if column[0] not in left_out]
    for heading, justify, _ in shown:
        table.add_column(heading, justify=justify, overflow="fold", no_wrap=heading == "distribution")
    for cell in solution.cells:
        table.add_row(*(show(cell) for _, _, show in shown))
    return table


def _likeliest(cell: CellAnswer) -> str:
    """Return the likeliest value, or all of them if a few are equally likely."""
    if cell.mode is None or cell.probability is None:
        return ""
    alike = [value for value, p in cell.distribution if p >= cell.probability * (1 - ALIKE)]
    return either(alike) if len(alike) <= 3 else f"{len(alike)} alike"


def _range(cell: CellAnswer) -> str:
    if cell.high is None:
        return f"{cell.low:,} or more"
    return f"{cell.low:,}" if cell.low == cell.high else f"{cell.low:,}–{cell.high:,}"


def _count(solution: Solution) -> str:
    if solution.solutions is None:
        unbounded = [cell.name for cell in solution.cells if cell.high is None]
        if unbounded:
            return f"There is no end of solutions: nothing bounds {', '.join(unbounded)} from above."
        return "The solutions are too many to be counted here."
    if solution.solutions == 1:
        return "This is the only solution."
    return f"{count(solution.solutions)} solutions."


def _top_table(solution: Solution) -> Table:
    """Lay out the best solutions, one a row; with many cells one a column."""
    shown = [cell.name for cell in solution.cells if cell.kind != "given"]
    title = "The best solution" if len(solution.top) == 1 else f"The {len(solution.top)} best solutions"
    table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left", title_style="bold")
    if len(shown) <= 8:
        for name in shown:
            table.add_column(Text(name), justify="right")
        table.add_column("prob.", justify="right")
        table.add_column("times the next", justify="right")
        for one in solution.top:
            times = "" if one.times_next is None else f"{one.times_next:.3g}"
            table.add_row(*(f"{one.values[name]:,}" for name in shown), percent(one.probability), times)
        return table
    table.add_column("cell")
    for rank in range(1, len(solution.top) + 1):
        table.add_column(f"{rank}.", justify="right")
    for name in shown:
        table.add_row(Text(name), *(f"{one.values[name]:,}" for one in solution.top))
    table.add_row("prob.", *(percent(one.probability) for one in solution.top))
    table.add_row("times the next", *("" if t.times_next is None else f"{t.times_next:.3g}" for t in solution.top))
    return table


def _show_clash(solution: Solution, console: Console) -> None:
    console.print("[bold red]No true counts fit.[/]")
    if solution.clash is None:
        console.print(f"{solution.why[0].upper()}{solution.why[1:]}.")
        return
    clash = solution.clash
    console.print(Text("These cannot all hold: ").append(", ".join(clash.cells)).append(" in"))
    for one in clash.sums:
        console.print(Text(f"  {one}"))
    if solution.argument:
        console.print(Text(solution.argument))
    if not clash.minimum:
        console.print("(There may be a smaller set of cells and sums that clashes; looking for it took too long.)")
    console.print(
        "Check the numbers, whether the parts really make up the total, and how the counts were protected "
        "(! exact, @BASE, ~K within K, ? not published)."
    )


# -- small pieces of text ---------------------------------------------------------------------------------------------


def percent(probability: float) -> str:
    """Return a probability as a percentage that never rounds up to certainty nor down to impossibility.

    Examples
    --------
    >>> percent(1.0), percent(0.75), percent(0.99999), percent(0.004), percent(1e-7)
    ('100 %', '75.0 %', '>99.9 %', '0.4 %', '<0.1 %')
    """
    if probability >= 1:
        return "100 %"
    if probability > 0.9995:
        return ">99.9 %"
    return "<0.1 %" if probability < 0.0005 else f"{100 * probability:.1f} %"


def count(number: int) -> str:
    """Return a count with separators, and very large ones as a power of ten.

    Examples
    --------
    >>> count(1956), count(5080139920398031514507613398246)
    ('1,956', 'about 5.08 × 10^30')
    """
    if number < 10**12:
        return f"{number:,}"
    exponent = len(str(number)) - 1
    return f"about {number // 10 ** (exponent - 2) / 100} × 10^{exponent}"


def either(values: Sequence[int]) -> str:
    """Say which values are meant, runs of more than three as a range.

    Examples
    --------
    >>> either([27, 28, 29]), either([16]), either([1, 3, 4, 5, 6])
    ('27, 28 or 29', '16', '1 or 3–6')
    """
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    said: list[str] = []
    for run in runs:
        said += [f"{value:,}" for value in run] if len(run) <= 3 else [f"{run[0]:,}–{run[-1]:,}"]
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} or {said[-1]}" if said else ""


def histogram(distribution: Sequence[tuple[int, float]]) -> str:
    """Draw a distribution in one line, one bar a value where there is room.

    Examples
    --------
    >>> histogram([(33, 0.25), (34, 0.75)])
    '▃█'
    """
    if not distribution:
        return ""
    if distribution[-1][0] - distribution[0][0] >= WIDEST:  # long thin tails would leave no room for the rest
        least = max(p for _, p in distribution) / 100
        worth = [k for k, (_, p) in enumerate(distribution) if p >= least]
        distribution = distribution[worth[0] : worth[-1] + 1]
    low, high = distribution[0][0], distribution[-1][0]
    width = -(-(high - low + 1) // WIDEST)
    bins = [0.0] * ((high - low) // width + 1)
    for value, probability in distribution:
        bins[(value - low) // width] += probability
    tallest = max(bins)
    return "".join(" " if b == 0 else BARS[min(7, int(b / tallest * 8))] for b in bins)


def items(rows: Sequence[tuple[str, str]], console: Console) -> None:
    """Print names with what is to be said of each, so that wrapped lines stay indented."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    for name, text in rows:
        grid.add_row(" •", Text(name).append(f": {text}" if text else "", style="dim"))
    console.print(grid)


def counted(number: int, one: str, many: str) -> str:
    """Return a number with the words that go with it.

    Examples
    --------
    >>> counted(1, "area", "areas"), counted(61029, "area", "areas")
    ('1 area', '61,029 areas')
    """
    return f"{number:,} {one if number == 1 else many}"
