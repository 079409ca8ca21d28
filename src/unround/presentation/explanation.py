"""An explanation as text in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unround.explanation.cell import Explanation
from unround.explanation.family import FamilyEvidence
from unround.presentation.terminal import COLOURS, items, percent
from unround.presentation.words import again, arithmetic, conclusion, growth, span

BAR = 40
"""The longest bar of a histogram."""


def show_explanation(one: Explanation, console: Console) -> None:
    """Print the argument for one cell."""
    console.print(Text(_title(one), style="bold"))
    if one.cell["block"] and one.cell["block"] != one.cell["label"]:
        console.print(Text(f"in {one.cell['block']}"), style="dim")
    published = f"{one.published:,}" if one.published is not None else f"nothing ({one.why_absent})"
    console.print(Text(f"\nPublished: {published}{again(one)}. {one.mechanism}"))
    console.print(Text(conclusion(one), style=COLOURS.get(one.kind, "")))
    if one.sums:
        console.print("\n[bold]The sums it stands in[/]")
        items([(f"{shown.sum}{'' if shown.used else ' (not used here)'}", arithmetic(shown)) for shown in one.sums], console)
    if one.others:
        _others(one.others, console)
    if one.argument:
        console.print("\n[bold]The argument[/]")
        items([(one.argument, "")], console)
    elif one.growth and one.value is not None and one.probability is not None:
        _growth(one, console)
    if one.distribution and one.low != one.high:
        console.print("\n[bold]How likely each count is[/]")
        _histogram(one.distribution, console)
    if one.contradictions:
        console.print("\n[bold red]What cannot be, around here[/]")
        items([(text, "") for text in one.contradictions], console)
    console.print("\n[bold]Assumed[/]")
    items([(sentence, "") for sentence in one.assumptions], console)


def _title(one: Explanation) -> str:
    """Say which count it is: its area, its label, its codes, each once."""
    names = [str(part) for part in one.area.values()]
    where = " ".join(name for i, name in enumerate(names) if not any(name in other for other in names[:i]))
    codes = [str(code) for axis, code in one.cell.items() if axis not in ("label", "block") and code != one.cell["label"]]
    listed = f" ({', '.join(codes)})" if codes else ""
    return f"{where} · {one.cell['label']}{listed}"


def _others(others: FamilyEvidence, console: Console) -> None:
    """Print which other areas take part, and what was published of the same count there."""
    console.print("\n[bold]Other areas[/]")
    items([(sentence, "") for sentence in others.said], console)
    if not others.areas:
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("  area", "", "published", "possible", "likeliest", "sure"):
        table.add_column(heading, justify="left" if heading in ("  area", "") else "right")
    for area in others.areas:
        published = "–" if area.published is None else f"{area.published:,}"
        value = "–" if area.value is None else f"{area.value:,}"
        sure = "" if area.probability is None else percent(area.probability)
        table.add_row(Text(f"  {area.name}"), area.role, published, span(area.low, area.high), value, sure)
    console.print(table)
    if others.more:
        console.print(f"  … and {others.more:,} more areas.")


def _growth(one: Explanation, console: Console) -> None:
    """Print how the probability of the likeliest count changes with every sum that is used."""
    console.print(f"\n[bold]How sure {one.value:,} becomes[/]")
    for said, probability in growth(one):
        console.print(f"  {percent(probability):>8}  {said}")


def _histogram(distribution: tuple[tuple[int, float], ...], console: Console) -> None:
    largest = max(p for _, p in distribution)
    shown = [(value, p) for value, p in distribution if p >= largest / 200] if len(distribution) > 30 else distribution
    for value, p in shown:
        bar = "█" * round(BAR * p / largest) or "▏"
        console.print(Text(f"  {value:>7,} {percent(p):>8}  {bar}"))
