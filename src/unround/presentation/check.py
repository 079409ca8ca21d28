"""The verdicts of a check, in the terminal and as small multiples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from unround.checks.families import CONTRADICTS, DEPARTS, FITS, LEAST_SUMS, UNTESTED
from unround.checks.sums import ALL_TABLES, LEAST_STEPS
from unround.errors import InputError

if TYPE_CHECKING:
    import altair
    from rich.console import Console

    from unround.checks import Check, Family

COLOURS = {FITS: "green", DEPARTS: "yellow", CONTRADICTS: "red", UNTESTED: "dim"}
MOST_ROWS = 24
"""Families that fit are not all listed."""
MOST_NOTES = 8
MOST_PANELS = 24
RARE = 0.002
"""Residuals that are expected and seen less often than this are left out of a picture."""


def sentence(check: Check | dict[str, Any]) -> str:
    """Say in a sentence what was found."""
    told = check if isinstance(check, dict) else check.to_json()
    families, verdict = told["families"], told["verdict"]
    if verdict == UNTESTED:
        return "There are too few sums to test whether counts were published as declared: nothing is known about it."
    counts = {name: sum(one["verdict"] == name for one in families) for name in (FITS, DEPARTS, CONTRADICTS)}
    said = ", ".join(f"{number:,} {name if number == 1 else name[:-1]}" for name, number in counts.items() if number)
    families_ = "1 family" if len(families) == 1 else f"{len(families):,} families"
    end = "the data fit the declared mechanism" if verdict == FITS else f"the data {_verb(verdict)} the declared mechanism"
    return f"{families_} of sums and counts tested: {said}. {end[0].upper()}{end[1:]}."


def _verb(verdict: str) -> str:
    return "contradict" if verdict == CONTRADICTS else "depart from"


def show_check(check: Check, console: Console, everything: bool = False) -> None:
    """Print the verdict on every family, and what speaks for it."""
    console.print(Text(sentence(check), style="bold"))
    console.print()
    shown = _ordered(check.families)
    listed = shown if everything else shown[:MOST_ROWS]
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("family", "sums", "off", "p", "tail", "impossible", "verdict"):
        table.add_column(heading, justify="left" if heading in ("family", "verdict") else "right")
    for one in listed:
        table.add_row(
            Text(one.family),
            f"{one.sums:,}",
            "" if one.distance is None else f"{one.distance:.1%}",
            "" if one.p_value is None else _chance(one.p_value),
            "" if one.tail_ratio is None else f"{one.tail_ratio:.2f}",
            f"{one.impossible:,}" if one.impossible else "",
            Text(_verdict(one), style=COLOURS[one.verdict]),
        )
    console.print(table)
    if len(shown) > len(listed):
        console.print(f"… and {len(shown) - len(listed):,} more, all of which fit; --all lists them.", style="dim")
    console.print(
        f"off: how far the shares of |total - parts| are from the expected ones; tail: how often the largest residuals "
        f"come, next to how often they should. Compared are sums whose total is at least {LEAST_STEPS} times the base, in "
        f"families of at least {LEAST_SUMS}.",
        style="dim",
    )
    _notes([one for one in shown if one.verdict != FITS], console, everything)
    _estimates(check, console, everything)
    if check.untested:
        console.print("\n[bold]Not tested[/]")
        most = len(check.untested) if everything else MOST_NOTES
        for one in check.untested[:most]:
            console.print(Text(f"  {one.family}: {one.note}"))
        if len(check.untested) > most:
            console.print(f"  … and {len(check.untested) - most:,} more; --all lists them.", style="dim")

    if check.product:
        from unround.presentation.release import notice  # that module shows the verdict of an audit, and so imports this one

        console.print(Text(f"\n{notice(check.product)}"), style="dim")


def _ordered(families: tuple[Family, ...]) -> list[Family]:
    """Return the worst first, then those of all tables, then the largest."""
    rank = {CONTRADICTS: 0, DEPARTS: 1, FITS: 2}
    return sorted(families, key=lambda one: (rank[one.verdict], ALL_TABLES not in one.family, -one.sums))


def _verdict(one: Family) -> str:
    if one.verdict != CONTRADICTS or one.otherwise in (UNTESTED, one.verdict):
        return one.verdict
    return f"{one.verdict}, else {one.otherwise}"


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
    """Say how the shares of |r| go with the size of the total."""
    said = []
    for size in one.by_size:
        shares = ", ".join(f"{far}: {share:.2%}" for far, share in list(size.shares.items())[:4])
        ratio = "" if size.tail_ratio is None else f", tail {size.tail_ratio:.2f}"
        said.append(f"from {size.least:,} ({size.sums:,} sums) {shares}{ratio}")
    return f"Shares of |r| by the total: {'; '.join(said)}"


def _estimates(check: Check, console: Console, everything: bool) -> None:
    """Print what the mechanism seems to be."""
    told = check.estimates
    open_ = [one for one in told.tables if not one["declared"]]
    if open_:
        console.print("\n[bold]What the mechanism seems to be[/]")
        kinds: dict[str, list[dict[str, Any]]] = {}
        for one in open_:
            kinds.setdefault(one["mechanism"] or "not known", []).append(one)
        for name, found in kinds.items():
            columns = sum(one["columns"] for one in found)
            most = max(found, key=lambda one: int(one["columns"]))
            more = f"; likewise in {_tables(len(found) - 1)}" if len(found) > 1 else ""
            console.print(Text(f"  {name} ({columns:,} columns): {most['why']}{more}"))
    if told.repeats:
        alike = sum(one["alike"] for one in told.repeats)
        console.print(f"  Counts that appear more than once: {alike:,} rounded alike, {len(told.repeats) - alike:,} anew.")
    rated = [one for one in told.rates if one["by_remainder"]]
    for one in rated if everything else rated[:MOST_NOTES]:
        rates = ", ".join(f"{rest}: {of['up']:.1%}" for rest, of in one["by_remainder"].items())
        p = "" if one["p_value"] is None else f"; p = {_chance(one['p_value'])} against unbiased rounding"
        console.print(Text(f"  {one['rounded']} shows {one['exact']} rounded: up by remainder {rates}{p}"))
    pairs = [one for one in told.together if one["by_remainder"]]
    for one in pairs if everything else pairs[:MOST_NOTES]:
        words = ", ".join(
            f"{rest}: {of['both_up']:,}/{of['both_down']:,} ({of['both_up_expected']:,.0f}/{of['both_down_expected']:,.0f})"
            for rest, of in one["by_remainder"].items()
        )
        p = "" if one["p_value"] is None else f"; p = {_chance(one['p_value'])}"
        names = " and ".join(one["rounded"])
        console.print(
            Text(f"  {names}, both {one['exact']} rounded: both up/both down by remainder (if independent) {words}{p}")
        )


def _tables(number: int) -> str:
    return "1 more table" if number == 1 else f"{number:,} more tables"


def residual_charts(check: Check) -> altair.VConcatChart:
    """Draw observed against expected shares of every family, several to a row, the worst first."""
    import altair as alt

    panels = []
    drawn = [one for one in _ordered(check.families) if len(one.expected) > 1]
    for one in drawn[:MOST_PANELS]:
        number = max(one.sums, 1)
        bars = [
            {"r": far, "share": one.observed.get(far, 0) / number, "expected": one.expected.get(far, 0.0)}
            for far in sorted({*one.observed, *one.expected})
            if max(one.observed.get(far, 0) / number, one.expected.get(far, 0.0)) >= RARE
        ]
        tail = "" if one.tail_ratio is None else f", largest × {one.tail_ratio:.2f}"
        title = alt.TitleParams(
            _lines(one.family), subtitle=[f"{one.sums:,} sums{tail}", _verdict(one)], anchor="start", limit=300
        )
        what = "remainder (by twice the base)" if one.family.startswith("published") else "|total − parts|"
        base = alt.Chart(alt.InlineData(values=bars), title=title, width=240, height=130).encode(
            x=alt.X("r:O", title=what, axis=alt.Axis(labelAngle=0, labelOverlap=True))
        )
        share = alt.Y("share:Q", title="share", axis=alt.Axis(format="%", tickCount=4))
        tips = [alt.Tooltip("r:Q"), alt.Tooltip("share:Q", format=".4f"), alt.Tooltip("expected:Q", format=".4f")]
        colour = {FITS: "#4575b4", DEPARTS: "#b35806", CONTRADICTS: "#b2182b"}[one.verdict]
        panel = base.mark_bar(color=colour, opacity=0.75).encode(y=share, tooltip=tips) + base.mark_tick(
            color="black", thickness=2
        ).encode(y=alt.Y("expected:Q", title="share"), tooltip=tips)
        panels.append(panel)
    if not panels:
        raise InputError("there is nothing to draw: no family of sums could be tested.")
    rows = [alt.hconcat(*panels[i : i + 3], spacing=30) for i in range(0, len(panels), 3)]
    subtitle = "Bars: observed. Black lines: what the declared mechanism implies."
    if len(drawn) > len(panels):
        subtitle += f" {len(drawn) - len(panels)} more families are not drawn."
    title = alt.TitleParams(
        "Does the data fit the declared mechanism?", subtitle=subtitle, anchor="start", offset=16, fontSize=16
    )
    chart: altair.VConcatChart = (
        alt.vconcat(*rows, spacing=25, padding=12, title=title)
        .configure_view(strokeOpacity=0)
        .configure_title(fontSize=12, subtitleColor="#666666")
    )
    return chart


def _lines(family: str) -> list[str]:
    """Break a family's name before its table."""
    kind, _, table = family.partition(": ")
    return [kind, table if len(table) <= 46 else f"{table[:45]}…"] if table else [kind]
