"""What `unround check` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from unround.checks.families import CONTRADICTS, DEPARTS, FITS, LEAST_STEPS, LEAST_SUMS, UNKNOWN, UNTESTED
from unround.show.check import family_verdict, fit_in_words, ordered
from unround.show.terminal.figures import show_figures
from unround.show.terminal.layout import plain_table
from unround.show.words import notice, several

if TYPE_CHECKING:
    from rich.console import Console

    from unround.checks import Check, Family

COLOURS = {FITS: "", DEPARTS: "magenta", CONTRADICTS: "bold magenta", UNTESTED: "dim"}
MOST_ROWS = 24
"""Families that fit are not all listed."""
MOST_NOTES = 8


def show_check(check: Check, console: Console, everything: bool = False) -> None:
    """Print the verdict on every family, and what speaks for it."""
    console.print(Text(fit_in_words(check.to_json()), style="bold"))
    console.print()
    shown = ordered(check.families)
    listed = shown if everything else shown[:MOST_ROWS]
    table = plain_table("family", "sums", "off", "p", "tail", "impossible", "verdict", left=["verdict"])
    for one in listed:
        table.add_row(
            Text(one.family),
            f"{one.sums:,}",
            "" if one.distance is None else f"{one.distance:.1%}",
            "" if one.p_value is None else _chance(one.p_value),
            "" if one.tail_ratio is None else f"{one.tail_ratio:.2f}",
            f"{one.impossible:,}" if one.impossible else "",
            Text(family_verdict(one), style=COLOURS[one.verdict]),
        )
    console.print(table)
    if len(shown) > len(listed):
        console.print(f"… and {len(shown) - len(listed):,} more, all fitting; --all lists them.", style="dim")
    console.print(
        f"off: the distance between observed and expected shares of |total − parts|; tail: how often the largest residuals "
        f"occur, relative to expectation. Tested: sums whose total is at least {LEAST_STEPS} times the base, in families of "
        f"at least {LEAST_SUMS}; impossible sums are left out. A family fits, too, where what rounding hides of small "
        "counts may explain the distance.",
        style="dim",
    )
    show_figures(check.figures, console, everything)
    _random_numbers(check, console, everything)
    _notes([one for one in shown if one.verdict != FITS or one.impossible], console, everything)
    _estimates(check, console, everything)
    if check.untested:
        console.print("\n[bold]Not tested[/]")
        most = len(check.untested) if everything else MOST_NOTES
        for one in check.untested[:most]:
            console.print(Text(f"  {one.family}: {one.note}"))
        if len(check.untested) > most:
            console.print(f"  … and {len(check.untested) - most:,} more; --all lists them.", style="dim")
    if check.product:
        console.print(Text(f"\n{notice(check.product)}"), style="dim")


def _random_numbers(check: Check, console: Console, everything: bool) -> None:
    """Print what the random numbers of every table do, as far as that can be told."""
    told = {name: one for name, one in check.numbers.tables.items() if everything or one.model != UNKNOWN}
    if not told:
        return
    console.print("\n[bold]What the random numbers of each table do[/]")
    table = plain_table("table", "random numbers", "counts", "p", left=["random numbers", "counts"])
    for name, one in told.items():
        counts = {True: "whole", False: "weighted", None: ""}[one.whole]
        p = "" if one.p_value is None else _chance(one.p_value)
        table.add_row(Text(name), Text(one.in_words.removesuffix(", weighted")), counts, p)
    console.print(table)
    unknown = len(check.numbers.tables) - len(told)
    more = f" Of {several(unknown, 'more table')} it cannot be told; --all lists them." if unknown else ""
    console.print(
        "independent: each count has a random number of its own; alike: the same count rounds alike everywhere; keyed: "
        f"random numbers add up as counts do, with a constant of the table (shown with its standard error).{more}",
        style="dim",
    )


def _chance(p: float) -> str:
    return "0" if p == 0 else f"{p:.2f}" if p >= 0.01 else f"{p:.0e}"


def _notes(families: list[Family], console: Console, everything: bool) -> None:
    if not families:
        return
    console.print("\n[bold]What does not fit[/]")
    most = len(families) if everything else MOST_NOTES
    for one in families[:most]:
        console.print(Text(f"  {one.family}: ", style="bold").append(one.note, style="not bold"))
        if one.clash:
            console.print(Text(f"    {one.clash}", style="dim"))
        if one.otherwise == DEPARTS and any(size.tail_ratio is not None for size in one.by_size):
            console.print(Text(f"    {_sizes(one)}", style="dim"))
    if len(families) > most:
        console.print(f"  … and {len(families) - most:,} more; --all lists them.", style="dim")


def _sizes(one: Family) -> str:
    """Say how the shares of |r| vary with the size of the total."""
    said = []
    for size in one.by_size:
        shares = ", ".join(f"{far}: {share:.2%}" for far, share in list(size.shares.items())[:4])
        ratio = "" if size.tail_ratio is None else f", tail {size.tail_ratio:.2f}"
        said.append(f"from {size.least:,} ({size.sums:,} sums) {shares}{ratio}")
    return f"Shares of |r| by size of the total: {'; '.join(said)}"


def _estimates(check: Check, console: Console, everything: bool) -> None:
    """Print the mechanism, where it was inferred."""
    told = check.estimates
    open_ = [one for one in told.tables if not one["declared"]]
    if open_:
        console.print("\n[bold]The mechanism, inferred from the data[/]")
        kinds: dict[str, list[dict[str, Any]]] = {}
        for one in open_:
            kinds.setdefault(one["mechanism"] or "not known", []).append(one)
        for name, found in kinds.items():
            columns = sum(one["columns"] for one in found)
            most = max(found, key=lambda one: int(one["columns"]))
            more = f"; likewise in {several(len(found) - 1, 'more table')}" if len(found) > 1 else ""
            console.print(Text(f"  {name} ({columns:,} columns): {most['why']}{more}"))
    if told.repeats:
        alike = sum(one["alike"] for one in told.repeats)
        anew = len(told.repeats) - alike
        console.print(f"  Counts that appear more than once: {alike:,} always the same, {anew:,} rounded anew each time.")
    _repeated(check, console, everything)
    rated = [one for one in told.rates if one["by_remainder"]]
    for one in rated if everything else rated[:MOST_NOTES]:
        rates = ", ".join(f"{rest}: {of['up']:.1%}" for rest, of in one["by_remainder"].items())
        p = "" if one["p_value"] is None else f"; p = {_chance(one['p_value'])} against unbiased rounding"
        console.print(Text(f"  {one['rounded']} is {one['exact']} rounded: share rounded up, by remainder: {rates}{p}"))
    pairs = [one for one in told.together if one["by_remainder"]]
    for one in pairs if everything else pairs[:MOST_NOTES]:
        words = ", ".join(
            f"{rest}: {of['both_up']:,}/{of['both_down']:,} ({of['both_up_expected']:,.0f}/{of['both_down_expected']:,.0f})"
            for rest, of in one["by_remainder"].items()
        )
        p = "" if one["p_value"] is None else f"; p = {_chance(one['p_value'])}"
        names = " and ".join(one["rounded"])
        console.print(
            Text(f"  {names}, both {one['exact']} rounded: both up/both down by remainder (if independent): {words}{p}")
        )


def _repeated(check: Check, console: Console, everything: bool) -> None:
    """Print what the random numbers of repeated counts do."""
    found = check.numbers.repeats
    for one in found if everything else found[:MOST_NOTES]:
        names = ", ".join(one.columns[:6]) + (f" … ({len(one.columns)} columns)" if len(one.columns) > 6 else "")
        said = one.model
        if one.constants:
            apart = ", ".join(f"{(c - one.constants[0]) % 1:.3f}" for c in one.constants[1:])
            said = f"{said}, constants that differ from the first by {apart} (± {max(one.errors):.3f})"
        p = "" if one.p_value is None else f"; p = {_chance(one.p_value)}"
        console.print(Text(f"  {names}, the same count: {said}; {one.why}{p}"))
    if len(found) > MOST_NOTES and not everything:
        console.print(f"  … and {len(found) - MOST_NOTES:,} more; --all lists them.", style="dim")
