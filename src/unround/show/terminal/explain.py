"""What `unround explain` prints."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from unround.explanation.cell import Explanation
from unround.explanation.family import FamilyEvidence
from unround.explanation.posterior import Posterior
from unround.show.terminal.layout import bullets, items, plain_table, sparkline
from unround.show.words import (
    STYLES,
    again,
    arithmetic,
    by_several,
    conclusion,
    due,
    growth,
    number,
    percent,
    percent_with_error,
    span,
    why_several,
)

BAR = 40
"""Characters in the longest bar of a histogram."""


def show_explanation(one: Explanation, console: Console) -> None:
    """Print the argument for one cell."""
    console.print(Text(title(one), style="bold"))
    if one.cell["block"] and one.cell["block"] != one.cell["label"]:
        console.print(Text(f"table: {one.cell['block']}"), style="dim")
    published = f"{one.published:,}" if one.published is not None else f"nothing ({one.why_absent})"
    console.print(Text(f"\nPublished: {published}{again(one)}. {one.mechanism}"))
    console.print(Text(conclusion(one), style=STYLES[one.kind]))
    if one.sums:
        console.print("\n[bold]Totals that include this count[/]")
        items([(f"{shown.sum}{'' if shown.used else ' (not used)'}", arithmetic(shown)) for shown in one.sums], console)
    if one.others:
        _others(one.others, console)
    if one.argument:
        console.print("\n[bold]The argument[/]")
        bullets([one.argument], console)
    elif one.growth and one.value is not None and one.probability is not None:
        _growth(one, console)
    if not one.argument and due(one):
        console.print(Text(f"\n{due(one)}"))
    if not one.argument and by_several(one):
        console.print(Text(f"\n{why_several(one.priors)}"), style="dim")
    if one.distribution and one.low != one.high:
        console.print("\n[bold]How likely each count is[/]")
        _histogram(one.distribution, console)
    if one.contradictions:
        console.print("\n[bold red]Inconsistent published figures[/]")
        bullets(one.contradictions, console)
    console.print("\n[bold]Assumed[/]")
    bullets(one.assumptions, console)


def show_posterior(found: Posterior, console: Console) -> None:
    """Print every count of an area: what was published, what is possible, and how likely."""
    console.print(Text(" ".join(str(name) for name in found.area.values()), style="bold"))
    table = plain_table("cell", "published", "possible", "likeliest", "prob.", "distribution", "", left=["distribution", ""])
    for one in found.cells.values():
        sure = percent_with_error(one.probability, one.error)
        bars = (
            "" if one.kind == "given" else sparkline(list(zip(one.counts.tolist(), one.probabilities.tolist(), strict=True)))
        )
        kind = Text(one.kind, style=STYLES[one.kind])
        shown = number(one.published), span(one.low, one.high), number(one.mode), sure, bars, kind
        table.add_row(Text(one.key), *shown)
    console.print(table)


def title(one: Explanation) -> str:
    """Say which count it is: its area, its label, its codes, each once."""
    names = [str(part) for part in one.area.values()]
    where = " ".join(name for i, name in enumerate(names) if not any(name in other for other in names[:i]))
    codes = [str(code) for axis, code in one.cell.items() if axis not in ("label", "block") and code != one.cell["label"]]
    listed = f" ({', '.join(codes)})" if codes else ""
    return f"{where} · {one.cell['label']}{listed}"


def _others(others: FamilyEvidence, console: Console) -> None:
    """Print which other areas bear on the count, and what they published for it."""
    console.print("\n[bold]Other areas[/]")
    bullets(others.said, console)
    if not others.areas:
        return
    table = plain_table("  area", "", "published", "possible", "likeliest", "probability", left=[""])
    for area in others.areas:
        sure = "" if area.probability is None else percent(area.probability)
        possible = span(area.low, area.high)
        table.add_row(Text(f"  {area.name}"), area.role, number(area.published), possible, number(area.value), sure)
    console.print(table)
    if others.more:
        console.print(f"  … and {others.more:,} more areas.")


def _growth(one: Explanation, console: Console) -> None:
    """Print how the probability of the likeliest count changes as more sums are used."""
    console.print(f"\n[bold]How probable {one.value:,} becomes[/]")
    for said, probability in growth(one):
        console.print(f"  {percent(probability):>8}  {said}")


def _histogram(distribution: tuple[tuple[int, float], ...], console: Console) -> None:
    largest = max(p for _, p in distribution)
    shown = [(value, p) for value, p in distribution if p >= largest / 200] if len(distribution) > 30 else distribution
    for value, p in shown:
        bar = "█" * round(BAR * p / largest) or "▏"
        console.print(Text(f"  {value:>7,} {percent(p):>8}  {bar}"))
