"""Do the data fit the mechanism? The sentence that terminal and report say, and the chart of residuals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unround.checks.families import ALL_TABLES, CONTRADICTS, DEPARTS, FITS, KEYED, UNTESTED
from unround.errors import InputError
from unround.show.words import percent, several

if TYPE_CHECKING:
    from unround.checks import Check, Family
    from unround.show.plots import Plot

MOST_PANELS = 24
RARE = 0.002
"""Residuals that are expected and observed less often than this are left out of a chart."""

VERBS = {FITS: "fit", DEPARTS: "depart from", CONTRADICTS: "contradict"}
CONSEQUENCES = {
    FITS: "",
    DEPARTS: " Probabilities may be off.",
    CONTRADICTS: " Some published figures cannot come from it.",
}
COLOURS = {FITS: "s1", DEPARTS: "s2", CONTRADICTS: "s3"}
"""Of the chart's columns: none of these is a claim about a count."""


def fit_in_words(check: Mapping[str, Any] | None) -> str:
    """Say whether the data fit the mechanism, and how many families of sums and counts were tested."""
    if check is None:
        return (
            "Not checked: the sums were verified one by one, but whether their residuals are distributed as the mechanism "
            "implies was not tested. A wrong mechanism would make claims wrong."
        )
    mechanism, untested = f"the {known_by(check)} mechanism", len(check.get("untested", ()))
    if check["verdict"] == UNTESTED:
        return (
            f"Not tested: there are too few sums to say whether the data fit {mechanism}. A wrong mechanism would make "
            "claims wrong."
        )
    families = check["families"]
    fitting = sum(one["verdict"] == FITS for one in families)
    more = f", and {untested:,} could not be tested" if untested else ""
    consequence = CONSEQUENCES[check["verdict"]]
    if check["verdict"] == DEPARTS and keys_explain(families):
        consequence = " Keys explain it: random numbers add up as counts do."
    return (
        f"The data {VERBS[check['verdict']]} {mechanism}: {fitting:,} of {several(len(families), 'family', 'families')} of "
        f"sums and counts {'fits' if fitting == 1 else 'fit'}{more}.{consequence}"
    )


def rounded_independently(told: Mapping[str, Any]) -> bool:
    """Whether nothing speaks against roundings that are independent of each other."""
    families = (told.get("check") or {}).get("families", ())
    return not any(one.get("otherwise") == DEPARTS for one in families)


def keys_explain(families: Sequence[Mapping[str, Any]]) -> bool:
    """Whether keys explain all departures; families of all tables depart because their tables do."""
    departing = [one for one in families if one["verdict"] == DEPARTS and ALL_TABLES not in one["family"]]
    return bool(departing) and all((one.get("rounding") or {}).get("model") == KEYED for one in departing)


def known_by(check: Mapping[str, Any]) -> str:
    """Say how the mechanism is known: declared, inferred from the data, or assumed (some tables each way)."""
    ways = {bool(table["declared"]) for table in check.get("mechanism", {}).get("tables", ())}
    return {frozenset((True,)): "declared", frozenset((False,)): "inferred"}.get(frozenset(ways), "assumed")


def ordered(families: tuple[Family, ...]) -> list[Family]:
    """Return the worst first, then those of all tables, then the largest."""
    rank = {CONTRADICTS: 0, DEPARTS: 1, FITS: 2}
    return sorted(families, key=lambda one: (rank[one.verdict], ALL_TABLES not in one.family, -one.sums))


def family_verdict(one: Family) -> str:
    """Say whether a family fits; of one that contradicts the mechanism, also whether the rest of it fits."""
    if one.verdict != CONTRADICTS or one.otherwise in (UNTESTED, one.verdict):
        return one.verdict
    return f"{one.verdict}, otherwise {one.otherwise}"


def residual_plot(check: Check) -> Plot:
    """Draw observed and expected shares of every family, the worst first."""
    from unround.show.charts import columns
    from unround.show.plots import Panel, Plot

    panels = []
    drawn = [one for one in ordered(check.families) if len(one.expected) > 1]
    for one in drawn[:MOST_PANELS]:
        sums = max(one.sums, 1)
        observed = {far: number / sums for far, number in one.observed.items()}
        places = [
            far
            for far in sorted({*observed, *one.expected})
            if max(observed.get(far, 0.0), one.expected.get(far, 0.0)) >= RARE
        ]
        tail = "" if one.tail_ratio is None else f", largest × {one.tail_ratio:.2f}"
        kind, _, table = one.family.partition(": ")
        what = "remainder (modulo twice the base)" if one.family.startswith("published") else "|total − parts|"
        shares = "; ".join(f"{far}: {percent(observed.get(far, 0.0))}" for far in places[:6])
        chart = columns(
            {far: observed.get(far, 0.0) for far in places},
            f"{one.family}, {family_verdict(one)}. {shares}",
            kind=COLOURS[one.verdict],
            expected={far: one.expected.get(far, 0.0) for far in places},
            below=what,
        )
        lines = (table if len(table) <= 46 else f"{table[:45]}…", f"{one.sums:,} sums{tail}: {family_verdict(one)}")
        panels.append(Panel(kind, lines if table else lines[1:], chart))
    if not panels:
        raise InputError("there is nothing to draw: no family of sums could be tested.")
    how = known_by(check.to_json())
    note = f"Columns: observed shares. Lines: what the {how} mechanism implies."
    if len(drawn) > len(panels):
        note += f" {len(drawn) - len(panels)} more families are not drawn."
    return Plot(f"Do the data fit the {how} mechanism?", note, tuple(panels))
