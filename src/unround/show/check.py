"""Do the data fit the mechanism? What `check` says, the sentence that an audit says of it, and the picture of residuals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unround.checks import Check
from unround.checks.families import (
    ALL_TABLES,
    CONTRADICTS,
    DEPARTS,
    FITS,
    KEYED,
    LEAST_STEPS,
    LEAST_SUMS,
    UNKNOWN,
    UNTESTED,
)
from unround.errors import InputError
from unround.show.parts import QUIET, TERMINAL, Bullets, Cell, Document, Line, Only, Part, Section, Table, Text, rest
from unround.show.words import notice, percent, several

if TYPE_CHECKING:
    from unround.checks import Family
    from unround.inspection import Inspection
    from unround.show.plots import Plot
    from unround.structure import JudgedFigure

MOST_PANELS = 24
MOST_ROWS, MOST_NOTES, MOST_FIGURES = 24, 8, 16
"""What is listed unless everything is asked for."""

LONGEST, SHORT_KEY = 48, 24
"""Characters of a figure's name, and of a key that goes with it."""

ORDER = {"evidence": 0, "recomputable": 1, "unclear": 2}
TONES = {FITS: "", DEPARTS: "alarm", CONTRADICTS: "alarm", UNTESTED: "quiet"}
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


def family_verdict(one: Family) -> str:
    """Say whether a family fits; of one that contradicts the mechanism, also whether the rest of it fits."""
    if one.verdict != CONTRADICTS or one.otherwise in (UNTESTED, one.verdict):
        return one.verdict
    return f"{one.verdict}, otherwise {one.otherwise}"


def residual_plot(check: Check | Inspection) -> Plot:
    """Draw observed and expected shares of every family, the worst first."""
    from unround.show.charts import columns
    from unround.show.plots import Panel, Plot

    panels = []
    drawn = [one for one in (check if isinstance(check, Check) else check.fit).ordered if len(one.expected) > 1]
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


# -- the document -----------------------------------------------------------------------------------------------------


def check(found: Check, everything: bool = False) -> Document:
    """Give the verdict on every family, and what speaks for it."""
    return Document("Do the data fit the mechanism?", list(_check(found, everything)), notice=notice(found.product))


def _check(found: Check, everything: bool) -> Iterator[Part]:
    yield Text(fit_in_words(found.to_json()), "lead")
    shown = found.ordered
    most = 10**9 if everything else MOST_ROWS
    few = 10**9 if everything else MOST_NOTES
    yield _families(shown[:most])
    yield rest(len(shown), most, "all fitting; --all lists them")
    yield from _figures(found.figures, everything)
    yield from _random_numbers(found, everything)
    odd = [one for one in shown if one.verdict != FITS or one.impossible]
    if odd:
        notes = [(one.family, " ".join(filter(None, (one.note, one.clash, _sizes(one))))) for one in odd[:few]]
        yield Section("What does not fit", [Bullets(notes), rest(len(odd), few)])
    yield from _estimates(found, few)
    if found.untested:
        untested = [(one.family, one.note) for one in found.untested[:few]]
        yield Section("Not tested", [Bullets(untested), rest(len(found.untested), few)])
    if found.product:
        yield Only(TERMINAL, [Text(notice(found.product), QUIET)])


def _families(families: Sequence[Family]) -> Part:
    rows: list[Line] = [
        [
            one.family,
            f"{one.sums:,}",
            "" if one.distance is None else f"{one.distance:.1%}",
            "" if one.p_value is None else _chance(one.p_value),
            "" if one.tail_ratio is None else f"{one.tail_ratio:.2f}",
            f"{one.impossible:,}" if one.impossible else "",
            Cell(family_verdict(one), tone=TONES[one.verdict]),
        ]
        for one in families
    ]
    legend = (
        "off: the distance between observed and expected shares of |total − parts|; tail: how often the largest residuals "
        f"occur, relative to expectation. Tested: sums whose total is at least {LEAST_STEPS} times the base, in families of "
        f"at least {LEAST_SUMS}; impossible sums are left out. A family fits, too, where what rounding hides of small "
        "counts may explain the distance."
    )
    heads = ("family", "sums", "off", "p", "tail", "impossible", "verdict")
    return Table(heads, rows, "Families of sums", left=("verdict",), legend=legend)


def _random_numbers(found: Check, everything: bool) -> Iterator[Part]:
    """Say what the random numbers of every table do, as far as that can be told."""
    known = {name: one for name, one in found.numbers.tables.items() if everything or one.model != UNKNOWN}
    if not known:
        return
    rows = []
    for name, one in known.items():
        counts = {True: "whole", False: "weighted", None: ""}[one.whole]
        p = "" if one.p_value is None else _chance(one.p_value)
        rows.append([name, one.in_words.removesuffix(", weighted"), counts, p])
    unknown = len(found.numbers.tables) - len(known)
    more = f" Of {several(unknown, 'more table')} it cannot be told; --all lists them." if unknown else ""
    legend = (
        "independent: each count has a random number of its own; alike: the same count rounds alike everywhere; keyed: "
        f"random numbers add up as counts do, with a constant of the table (shown with its standard error).{more}"
    )
    title = "What the random numbers of each table do"
    table = Table(("table", "random numbers", "counts", "p"), rows, title, left=("random numbers", "counts"), legend=legend)
    yield Section(title, [table])


def _chance(p: float) -> str:
    return "0" if p == 0 else f"{p:.2f}" if p >= 0.01 else f"{p:.0e}"


def _sizes(one: Family) -> str:
    """Say how the shares of |r| vary with the size of the total, where the family departs."""
    if one.otherwise != DEPARTS or not any(size.tail_ratio is not None for size in one.by_size):
        return ""
    said = []
    for size in one.by_size:
        shares = ", ".join(f"{far}: {share:.2%}" for far, share in list(size.shares.items())[:4])
        ratio = "" if size.tail_ratio is None else f", tail {size.tail_ratio:.2f}"
        said.append(f"from {size.least:,} ({size.sums:,} sums) {shares}{ratio}")
    return f"Shares of |r| by size of the total: {'; '.join(said)}."


def _estimates(found: Check, few: int) -> Iterator[Part]:
    """Say which mechanism was inferred, and what repeated counts do."""
    estimates, said = found.estimates, []
    kinds: dict[str, list[dict[str, Any]]] = {}
    for one in estimates.tables:
        if not one["declared"]:
            kinds.setdefault(one["mechanism"] or "not known", []).append(one)
    for name, tables in kinds.items():
        columns = sum(one["columns"] for one in tables)
        most = max(tables, key=lambda one: int(one["columns"]))
        more = f"; likewise in {several(len(tables) - 1, 'more table')}" if len(tables) > 1 else ""
        said.append((f"{name} ({columns:,} columns)", f"{most['why']}{more}"))
    if said:
        yield Section("The mechanism, inferred from the data", [Bullets(said)])
    notes = list(_repeats(found, few))
    if notes:
        yield Section("Counts that appear more than once", [Bullets(notes), rest(len(found.numbers.repeats), few)])


def _repeats(found: Check, few: int) -> Iterator[str]:
    estimates = found.estimates
    if estimates.repeats:
        alike = sum(one["alike"] for one in estimates.repeats)
        yield f"{alike:,} always the same, {len(estimates.repeats) - alike:,} rounded anew each time."
    for one in found.numbers.repeats[:few]:
        names = ", ".join(one.columns[:6]) + (f" … ({len(one.columns)} columns)" if len(one.columns) > 6 else "")
        said = one.model
        if one.constants:
            apart = ", ".join(f"{(c - one.constants[0]) % 1:.3f}" for c in one.constants[1:])
            said = f"{said}, constants that differ from the first by {apart} (± {max(one.errors):.3f})"
        p = "" if one.p_value is None else f"; p = {_chance(one.p_value)}"
        yield f"{names}, the same count: {said}; {one.why}{p}"
    for rated in [one for one in estimates.rates if one["by_remainder"]][:few]:
        rates = ", ".join(f"{remainder}: {of['up']:.1%}" for remainder, of in rated["by_remainder"].items())
        p = "" if rated["p_value"] is None else f"; p = {_chance(rated['p_value'])} against unbiased rounding"
        yield f"{rated['rounded']} is {rated['exact']} rounded: share rounded up, by remainder: {rates}{p}"
    for pair in [one for one in estimates.together if one["by_remainder"]][:few]:
        words = ", ".join(
            f"{remainder}: {of['both_up']:,}/{of['both_down']:,} "
            f"({of['both_up_expected']:,.0f}/{of['both_down_expected']:,.0f})"
            for remainder, of in pair["by_remainder"].items()
        )
        p = "" if pair["p_value"] is None else f"; p = {_chance(pair['p_value'])}"
        names = " and ".join(pair["rounded"])
        yield f"{names}, both {pair['exact']} rounded: both up/both down by remainder (if independent): {words}{p}"


# -- rates, means and medians -----------------------------------------------------------------------------------------


def _figures(figures: Sequence[JudgedFigure], everything: bool) -> Iterator[Part]:
    """Say what every figure was computed from, and what it tells."""
    if not figures:
        return
    order = sorted(figures, key=lambda one: ORDER[one.verdict])
    listed = [one for one in order if everything or one.verdict != "unclear"]
    listed = listed if everything else listed[:MOST_FIGURES]
    rows: list[Line] = [
        [
            _named(one.figure.name, one.figure.label),
            str(one.figure.kind),
            "" if one.step is None else f"{float(one.step):,g}",
            _share(one.hits, one.compared),
            _share(one.hits_by_chance, one.compared),
            f"{one.contradictions:,}" if one.contradictions_by_chance else "",
            f"{one.contradictions_by_chance:,.0f}" if one.contradictions_by_chance else "",
            "" if one.left is None else f"{one.left[0]:.1f} → {one.left[1]:.1f}",
            Cell(_verdict(one), tone="strong" if one.verdict == "evidence" else ""),
        ]
        for one in listed
    ]
    heads = ("figure", "kind", "step", "hits", "by chance", "impossible", "by chance", "values", "verdict")
    legend = (
        "hits: areas in which the published counts give the figure; impossible: areas in which no true counts could; by "
        "chance: the same for the figures of other areas of like size. step: what most of them are rounded to; values: how "
        "many the numerator of a rate may have, without the rate and with it. Evidence was computed from true counts, and "
        "is used where the counts that it is of were published; what is recomputable tells nothing new; what is unclear is "
        "not used."
    )
    title = "What rates, means and medians tell"
    table = Table(heads, rows, title, left=("kind", "verdict"))
    more = rest(len(order), len(listed))
    reasons = Bullets(_reasons(order, everything))
    yield Section(title, [Text(figures_in_words(figures)), table, more, Text(legend, QUIET), reasons])


def figures_in_words(figures: Sequence[JudgedFigure]) -> str:
    """Say how many figures are what.

    Examples
    --------
    >>> figures_in_words([])
    'No rates, means or medians.'
    """
    if not figures:
        return "No rates, means or medians."
    times = Counter(one.verdict for one in figures)
    idle = sum(one.verdict == "evidence" and not one.is_evidence for one in figures)
    aside = f" ({idle:,} of them not used: the file lacks counts that they are of)" if idle else ""
    return (
        f"{several(len(figures), 'figure')}: {times['evidence']:,} computed from true counts{aside}, "
        f"{times['recomputable']:,} from the published ones, {times['unclear']:,} unclear."
    )


def _verdict(one: JudgedFigure) -> str:
    return f"{one.verdict}, not used" if one.verdict == "evidence" and not one.is_evidence else one.verdict


def _named(key: str, label: str) -> str:
    """Return what to call a figure in a line: its label alone where the key is as long as a sentence."""
    whole = f"{key} {label}".strip() if len(key) < SHORT_KEY else label or key
    return whole if len(whole) <= LONGEST else f"{whole[: LONGEST - 1].rstrip()}…"


def _share(number: float, of: int) -> str:
    return f"{number / of:.1%}" if of else ""


def _reasons(figures: Sequence[JudgedFigure], everything: bool) -> list[tuple[str, str]]:
    """Say what figures reveal, and why they are unclear or not used, each reason once."""
    said: dict[str, list[str]] = {}
    for one in figures:
        name = one.figure.name
        short = name if len(name) < SHORT_KEY else _named(name, one.figure.label)
        for revealed in one.reveals:
            said.setdefault(f"reveals {revealed}", []).append(short)
        if not one.is_evidence and one.verdict != "recomputable":
            said.setdefault(one.why.rstrip("."), []).append(short)
    return [
        (", ".join(dict.fromkeys(names[:4])) + (f" and {len(names) - 4:,} more" if len(names) > 4 else ""), f"{why}.")
        for why, names in (said.items() if everything else list(said.items())[:MOST_FIGURES])
    ]
