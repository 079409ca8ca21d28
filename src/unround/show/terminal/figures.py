"""What `unround check` prints of rates, means and medians."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from unround.show.terminal.layout import plain_table
from unround.show.words import several

if TYPE_CHECKING:
    from rich.console import Console

    from unround.structure import JudgedFigure

ORDER = {"evidence": 0, "recomputable": 1, "unclear": 2}
COLOURS = {"evidence": "magenta", "recomputable": "", "unclear": "dim"}
MOST_ROWS = 16
"""Figures are not all listed, and those that are unclear only where everything is."""
LONGEST, SHORT_KEY = 48, 24
"""Characters of a name, and of a key that goes with it."""


def show_figures(figures: Sequence[JudgedFigure], console: Console, everything: bool = False) -> None:
    """Print what every figure was computed from, and what it tells."""
    if not figures:
        return
    console.print("\n[bold]What rates, means and medians tell[/]")
    console.print(Text(figures_in_words(figures)))
    order = sorted(range(len(figures)), key=lambda at: (ORDER[figures[at].verdict], at))
    listed = [figures[at] for at in order if everything or figures[at].verdict != "unclear"]
    listed = listed if everything else listed[:MOST_ROWS]
    names = ("figure", "kind", "step", "hits", "by chance", "impossible", "by chance", "values", "verdict")
    table = plain_table(*names, left=["verdict"])
    for one in listed:
        table.add_row(
            Text(_named(one.figure.name, one.figure.label)),
            str(one.figure.kind),
            "" if one.step is None else f"{float(one.step):,g}",
            _share(one.hits, one.compared),
            _share(one.hits_by_chance, one.compared),
            f"{one.contradictions:,}" if one.contradictions_by_chance else "",
            f"{one.contradictions_by_chance:,.0f}" if one.contradictions_by_chance else "",
            "" if one.left is None else f"{one.left[0]:.1f} → {one.left[1]:.1f}",
            Text(_verdict(one), style=COLOURS[one.verdict]),
        )
    if listed:
        console.print(table)
    if len(order) > len(listed):
        console.print(f"… and {len(order) - len(listed):,} more; --all lists them.", style="dim")
    console.print(
        "hits: areas in which the published counts give the figure; impossible: areas in which no true counts could; by "
        "chance: the same for the figures of other areas of like size. step: what most of them are rounded to; values: how "
        "many the numerator of a rate may have, without the rate and with it. Evidence was computed from true counts, and "
        "is used where the counts that it is of were published; what is recomputable tells nothing new; what is unclear is "
        "not used.",
        style="dim",
    )
    _reasons([figures[at] for at in order], console, everything)


def figures_in_words(figures: Sequence[JudgedFigure]) -> str:
    """Say how many figures are what.

    Examples
    --------
    >>> figures_in_words([])
    'No rates, means or medians.'
    """
    number = Counter(one.verdict for one in figures)
    if not figures:
        return "No rates, means or medians."
    idle = sum(one.verdict == "evidence" and not one.is_evidence for one in figures)
    aside = f" ({idle:,} of them not used: the file lacks counts that they are of)" if idle else ""
    return (
        f"{several(len(figures), 'figure')}: {number['evidence']:,} computed from true counts{aside}, "
        f"{number['recomputable']:,} from the published ones, {number['unclear']:,} unclear."
    )


def _verdict(one: JudgedFigure) -> str:
    return f"{one.verdict}, not used" if one.verdict == "evidence" and not one.is_evidence else one.verdict


def _named(key: str, label: str) -> str:
    """Return what to call a figure in a line: its label alone where the key is as long as a sentence."""
    whole = f"{key} {label}".strip() if len(key) < SHORT_KEY else label or key
    return whole if len(whole) <= LONGEST else f"{whole[: LONGEST - 1].rstrip()}…"


def _short(one: JudgedFigure) -> str:
    name = one.figure.name
    return name if len(name) < SHORT_KEY else _named(name, one.figure.label)


def _share(number: float, of: int) -> str:
    return f"{number / of:.1%}" if of else ""


def _reasons(listed: Sequence[JudgedFigure], console: Console, everything: bool) -> None:
    """Print what figures reveal, and why they are unclear or not used, each reason once."""
    said: dict[str, list[str]] = {}
    for one in listed:
        for revealed in one.reveals:
            said.setdefault(f"reveals {revealed}", []).append(_short(one))
        if not one.is_evidence and one.verdict != "recomputable":
            said.setdefault(one.why.rstrip("."), []).append(_short(one))
    for why, names in said.items() if everything else list(said.items())[:MOST_ROWS]:
        few = ", ".join(dict.fromkeys(names[:4])) + (f" and {len(names) - 4:,} more" if len(names) > 4 else "")
        console.print(Text(f"  {few}: ", style="bold").append(f"{why}.", style="not bold"))
