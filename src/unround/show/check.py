"""What `check` and `describe` say of a file: how it was read, which sums hold, and whether the data fit the mechanism.

An audit says the last of these in a sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unround.audits.model import display_name
from unround.checks import Check
from unround.checks.families import (
    ALL_TABLES,
    CONTRADICTS,
    DEPARTS,
    FITS,
    KEYED,
    LEAST_STEPS,
    LEAST_SUMS,
    PARTLY,
    UNKNOWN,
    UNTESTED,
)
from unround.release import AREA, Entry
from unround.show import charts
from unround.show import parts as doc
from unround.show.words import NO_INCONSISTENCIES, ORIGINS, cut, few, notice, percent, plural, several
from unround.structure.evidence import FILES, FOUND
from unround.structure.nesting import SIZES
from unround.tables.account import account

if TYPE_CHECKING:
    from unround.checks import Family
    from unround.inspection import Inspection
    from unround.structure import JudgedFigure, JudgedSum, MechanismEvidence, Nesting
    from unround.tables import Described

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
    """Tell in words whether the data fit the mechanism, and how many families of sums and counts were tested."""
    if check is None:
        return (
            "Not checked: the sums were verified one by one, but whether their residuals are distributed as the mechanism "
            "implies was not tested. A wrong mechanism would make claims wrong."
        )
    mechanism, untested = f"the {known_by(check)} mechanism", len(check["untested"])
    if check["verdict"] == UNTESTED:
        return (
            f"Not tested: there are too few sums to say whether the data fit {mechanism}. A wrong mechanism would make "
            "claims wrong."
        )
    families = check["families"]
    fitting = sum(family["verdict"] == FITS for family in families)
    more = f", and {untested:,} could not be tested" if untested else ""
    consequence = CONSEQUENCES[check["verdict"]]
    if check["verdict"] == DEPARTS and keys_explain(families):
        consequence = " Keys explain it: random numbers add up as counts do."
    return (
        f"The data {VERBS[check['verdict']]} {mechanism}: {fitting:,} of {several(len(families), 'family', 'families')} of "
        f"sums and counts {'fits' if fitting == 1 else 'fit'}{more}.{consequence}"
    )


def rounded_independently(summary: Mapping[str, Any]) -> bool:
    """Whether nothing speaks against roundings that are independent of each other."""
    families = (summary["check"] or {"families": ()})["families"]
    return not any(family["otherwise"] == DEPARTS for family in families)


def keys_explain(families: Sequence[Mapping[str, Any]]) -> bool:
    """Whether keys explain all departures; families of all tables depart because their tables do."""
    departing = [family for family in families if family["verdict"] == DEPARTS and ALL_TABLES not in family["family"]]
    return bool(departing) and all((family["rounding"] or {"model": None})["model"] == KEYED for family in departing)


def known_by(check: Mapping[str, Any]) -> str:
    """Say how the mechanism is known: declared, inferred from the data, or assumed (some tables each way)."""
    ways = {bool(table["declared"]) for table in check["mechanism"]["tables"]}
    return {frozenset((True,)): "declared", frozenset((False,)): "inferred"}.get(frozenset(ways), "assumed")


def family_verdict(family: Family) -> str:
    """Tell in words whether a family fits; of one that contradicts the mechanism, also whether the rest of it fits."""
    if family.verdict != CONTRADICTS or family.otherwise in (UNTESTED, family.verdict):
        return family.verdict
    return f"{family.verdict}, otherwise {family.otherwise}"


# -- the document -----------------------------------------------------------------------------------------------------


def check(result: Check, everything: bool = False) -> doc.Document:
    """Give the verdict on every family, and what speaks for it."""
    return doc.Document("Do the data fit the mechanism?", list(_check(result, everything)), notice=notice(result.product))


def _check(result: Check, everything: bool) -> Iterator[doc.Part]:
    yield doc.Text(fit_in_words(result.to_json()), "lead")
    shown = result.ordered
    most = 10**9 if everything else MOST_ROWS
    few = 10**9 if everything else MOST_NOTES
    yield _families(shown[:most])
    yield doc.rest(len(shown), most, "all fitting; --all lists them")
    yield from _residuals(result)
    yield from _figures(result.figures, everything)
    yield from _random_numbers(result, everything)
    odd = [entry for entry in shown if entry.verdict != FITS or entry.impossible]
    if odd:
        notes = [
            (family.family, " ".join(filter(None, (family.note, family.clash, _sizes(family))))) for family in odd[:few]
        ]
        yield doc.Section("What does not fit", [doc.Bullets(notes), doc.rest(len(odd), few)])
    yield from _estimates(result, few)
    if result.untested:
        untested = [(family.family, family.note) for family in result.untested[:few]]
        yield doc.Section("Not tested", [doc.Bullets(untested), doc.rest(len(result.untested), few)])
    if result.product:
        yield doc.Only(doc.TERMINAL, [doc.Text(notice(result.product), doc.QUIET)])


def _families(families: Sequence[Family]) -> doc.Part:
    columns: doc.Columns = [
        ("family", "family"),
        ("sums", "sums"),
        ("off", lambda family: "" if family.distance is None else f"{family.distance:.1%}"),
        ("p", lambda family: "" if family.p_value is None else _chance(family.p_value)),
        ("tail", lambda family: "" if family.tail_ratio is None else f"{family.tail_ratio:.2f}"),
        ("impossible", lambda family: f"{family.impossible:,}" if family.impossible else ""),
        ("verdict", lambda family: doc.TableCell(family_verdict(family), tone=TONES[family.verdict])),
    ]
    legend = (
        "off: the distance between observed and expected shares of |total − parts|; tail: how often the largest residuals "
        f"occur, relative to expectation. Tested: sums whose total is at least {LEAST_STEPS} times the base, in families of "
        f"at least {LEAST_SUMS}; impossible sums are left out. A family fits, too, where what rounding hides of small "
        "counts may explain the distance."
    )
    return doc.tabulated(families, columns, "Families of sums", left=("verdict",), legend=legend)


def _residuals(result: Check) -> Iterator[doc.Part]:
    """Draw observed and expected shares of every family, the worst first."""
    tested = [family for family in result.ordered if len(family.expected) > 1]
    if tested:
        how = known_by(result.to_json())
        note = doc.Text(f"Columns: observed shares. Lines: what the {how} mechanism implies.", doc.QUIET)
        drawn = doc.Charts([_shares_of(family) for family in tested[:MOST_PANELS]])
        parts: list[doc.Part] = [note, drawn, doc.rest(len(tested), MOST_PANELS, "the table has them all")]
        yield doc.Fold("Observed and expected residuals", parts, only=doc.CARD, is_open=True)


def _shares_of(family: Family) -> doc.Chart:
    sums = max(family.sums, 1)
    observed = {far: number / sums for far, number in family.observed.items()}
    places = [
        far
        for far in sorted({*observed, *family.expected})
        if max(observed.get(far, 0.0), family.expected.get(far, 0.0)) >= RARE
    ]
    tail = "" if family.tail_ratio is None else f", largest × {family.tail_ratio:.2f}"
    kind, _, table = family.family.partition(": ")
    what = "remainder (modulo twice the base)" if family.family.startswith("published") else "|total − parts|"
    shares = "; ".join(f"{far}: {percent(observed.get(far, 0.0))}" for far in places[:6])
    drawn = charts.columns(
        {far: observed.get(far, 0.0) for far in places},
        f"{family.family}, {family_verdict(family)}. {shares}",
        kind=COLOURS[family.verdict],
        expected={far: family.expected.get(far, 0.0) for far in places},
        below=what,
    )
    said = f"{family.sums:,} sums{tail}: {family_verdict(family)}"
    return doc.Chart(drawn, kind, f"{cut(table, 46)}\n{said}" if table else said)


def _random_numbers(result: Check, everything: bool) -> Iterator[doc.Part]:
    """Say what the random numbers of every table do, as far as that can be told."""
    known = {name: known_of for name, known_of in result.numbers.tables.items() if everything or known_of.model != UNKNOWN}
    if not known:
        return
    rows = []
    for name, known_of in known.items():
        counts = {True: "whole", False: "weighted", None: ""}[known_of.whole]
        p = "" if known_of.p_value is None else _chance(known_of.p_value)
        rows.append([name, known_of.in_words.removesuffix(", weighted"), counts, p])
    unknown = len(result.numbers.tables) - len(known)
    more = f" Of {several(unknown, 'more table')} it cannot be told; --all lists them." if unknown else ""
    some = any(known_of.model == PARTLY for known_of in known.values())
    partly = "; partly controlled: rounded so that more sums add up than would by chance" if some else ""
    legend = (
        "independent: each count has a random number of its own; alike: the same count rounds alike everywhere; keyed: "
        f"random numbers add up as counts do, with a constant of the table (shown with its standard error){partly}.{more}"
    )
    title = "What the random numbers of each table do"
    table = doc.Table(
        ("table", "random numbers", "counts", "p"), rows, title, left=("random numbers", "counts"), legend=legend
    )
    yield doc.Section(title, [table])


def _chance(p: float) -> str:
    return "0" if p == 0 else f"{p:.2f}" if p >= 0.01 else f"{p:.0e}"


def _sizes(family: Family) -> str:
    """Say how the shares of |r| vary with the size of the total, where the family departs."""
    if family.otherwise != DEPARTS or not any(size.tail_ratio is not None for size in family.by_size):
        return ""
    said = []
    for size in family.by_size:
        shares = ", ".join(f"{far}: {share:.2%}" for far, share in list(size.shares.items())[:4])
        ratio = "" if size.tail_ratio is None else f", tail {size.tail_ratio:.2f}"
        said.append(f"from {size.least:,} ({size.sums:,} sums) {shares}{ratio}")
    return f"Shares of |r| by size of the total: {'; '.join(said)}."


def _estimates(result: Check, few: int) -> Iterator[doc.Part]:
    """Say which mechanism was inferred, and what repeated counts do."""
    estimates, said = result.estimates, []
    kinds: dict[str, list[dict[str, Any]]] = {}
    for table in estimates.tables:
        if not table["declared"]:
            kinds.setdefault(table["mechanism"] or "not known", []).append(table)
    for name, tables in kinds.items():
        columns = sum(table["columns"] for table in tables)
        most = max(tables, key=lambda table: int(table["columns"]))
        more = f"; likewise in {several(len(tables) - 1, 'more table')}" if len(tables) > 1 else ""
        said.append((f"{name} ({columns:,} columns)", f"{most['why']}{more}"))
    if said:
        yield doc.Section("The mechanism, inferred from the data", [doc.Bullets(said)])
    notes = list(_repeats(result, few))
    if notes:
        yield doc.Section(
            "Counts that appear more than once", [doc.Bullets(notes), doc.rest(len(result.numbers.repeats), few)]
        )


def _repeats(result: Check, few: int) -> Iterator[str]:
    estimates = result.estimates
    if estimates.repeats:
        alike = sum(repeat["alike"] for repeat in estimates.repeats)
        yield f"{alike:,} always the same, {len(estimates.repeats) - alike:,} rounded anew each time."
    for repeat in result.numbers.repeats[:few]:
        names = ", ".join(repeat.columns[:6]) + (f" … ({len(repeat.columns)} columns)" if len(repeat.columns) > 6 else "")
        said = repeat.model
        if repeat.constants:
            apart = ", ".join(f"{(c - repeat.constants[0]) % 1:.3f}" for c in repeat.constants[1:])
            said = f"{said}, constants that differ from the first by {apart} (± {max(repeat.errors):.3f})"
        p = "" if repeat.p_value is None else f"; p = {_chance(repeat.p_value)}"
        yield f"{names}, the same count: {said}; {repeat.why}{p}"
    for rated in [rate for rate in estimates.rates if rate["by_remainder"]][:few]:
        rates = ", ".join(f"{remainder}: {of['up']:.1%}" for remainder, of in rated["by_remainder"].items())
        p = "" if rated["p_value"] is None else f"; p = {_chance(rated['p_value'])} against unbiased rounding"
        yield f"{rated['rounded']} is {rated['exact']} rounded: share rounded up, by remainder: {rates}{p}"
    for pair in [pair for pair in estimates.together if pair["by_remainder"]][:few]:
        words = ", ".join(
            f"{remainder}: {of['both_up']:,}/{of['both_down']:,} "
            f"({of['both_up_expected']:,.0f}/{of['both_down_expected']:,.0f})"
            for remainder, of in pair["by_remainder"].items()
        )
        p = "" if pair["p_value"] is None else f"; p = {_chance(pair['p_value'])}"
        names = " and ".join(pair["rounded"])
        yield f"{names}, both {pair['exact']} rounded: both up/both down by remainder (if independent): {words}{p}"


# -- rates, means and medians -----------------------------------------------------------------------------------------


def _figures(figures: Sequence[JudgedFigure], everything: bool) -> Iterator[doc.Part]:
    """Say what every figure was computed from, and what it tells."""
    if not figures:
        return
    order = sorted(figures, key=lambda figure: ORDER[figure.verdict])
    listed = [family for family in order if everything or family.verdict != "unclear"]
    listed = listed if everything else listed[:MOST_FIGURES]
    columns: doc.Columns = [
        ("figure", lambda entry: _named(entry.figure.name, entry.figure.label)),
        ("kind", lambda entry: str(entry.figure.kind)),
        ("step", lambda entry: "" if entry.step is None else f"{float(entry.step):,g}"),
        ("hits", lambda entry: _share(entry.hits, entry.compared)),
        ("by chance", lambda entry: _share(entry.hits_by_chance, entry.compared)),
        ("impossible", lambda entry: f"{entry.contradictions:,}" if entry.contradictions_by_chance else ""),
        ("by chance", lambda entry: f"{entry.contradictions_by_chance:,.0f}" if entry.contradictions_by_chance else ""),
        ("values", lambda entry: "" if entry.left is None else f"{entry.left[0]:.1f} → {entry.left[1]:.1f}"),
        ("verdict", _verdict),
    ]
    legend = (
        "hits: areas in which the published counts give the figure; impossible: areas in which no true counts could; by "
        "chance: the same for the figures of other areas of like size. step: what most of them are rounded to; values: how "
        "many the numerator of a rate may have, without the rate and with it. Evidence was computed from true counts, and "
        "is used where the counts that it is of were published; what is recomputable tells nothing new; what is unclear is "
        "not used."
    )
    title = "What rates, means and medians tell"
    table = doc.tabulated(listed, columns, title, left=("kind", "verdict"))
    more, reasons = doc.rest(len(order), len(listed)), doc.Bullets(_reasons(order, everything))
    yield doc.Section(title, [doc.Text(figures_in_words(figures)), table, more, doc.Text(legend, doc.QUIET), reasons])


def figures_in_words(figures: Sequence[JudgedFigure]) -> str:
    """Say how many figures are what.

    >>> figures_in_words([])
    'No rates, means or medians.'
    """
    if not figures:
        return "No rates, means or medians."
    times = Counter(figure.verdict for figure in figures)
    idle = sum(figure.verdict == "evidence" and not figure.is_evidence for figure in figures)
    aside = f" ({idle:,} of them not used: the file lacks counts that they are of)" if idle else ""
    return (
        f"{several(len(figures), 'figure')}: {times['evidence']:,} computed from true counts{aside}, "
        f"{times['recomputable']:,} from the published ones, {times['unclear']:,} unclear."
    )


def _verdict(figure: JudgedFigure) -> doc.TableCell:
    unused = ", not used" if figure.verdict == "evidence" and not figure.is_evidence else ""
    return doc.TableCell(f"{figure.verdict}{unused}", tone="strong" if figure.verdict == "evidence" else "")


def _named(key: str, label: str) -> str:
    """Return what to call a figure in a line: its label alone where the key is as long as a sentence."""
    whole = f"{key} {label}".strip() if len(key) < SHORT_KEY else label or key
    return whole if len(whole) <= LONGEST else f"{whole[: LONGEST - 1].rstrip()}…"


def _share(number: float, of: int) -> str:
    return f"{number / of:.1%}" if of else ""


def _reasons(figures: Sequence[JudgedFigure], everything: bool) -> list[tuple[str, str]]:
    """Say what figures reveal, and why they are unclear or not used, each reason once."""
    said: dict[str, list[str]] = {}
    for figure in figures:
        name = figure.figure.name
        short = name if len(name) < SHORT_KEY else _named(name, figure.figure.label)
        for revealed in figure.reveals:
            said.setdefault(f"reveals {revealed}", []).append(short)
        if not figure.is_evidence and figure.verdict != "recomputable":
            said.setdefault(figure.why.rstrip("."), []).append(short)
    return [
        (few(list(dict.fromkeys(names)), 4), f"{why}.")
        for why, names in (said.items() if everything else list(said.items())[:MOST_FIGURES])
    ]


# -- what is in a release ----------------------------------------------------------------------------------------------

FEW_CODES = 6
"""Codes of an axis that are shown."""
MOST_ENTRIES = 40
"""Entries of an account that are listed."""


def how_it_was_read(entries: Sequence[Entry], most: int = MOST_ENTRIES) -> doc.Section:
    """Return the account of a reading; what was not understood or not used comes first."""
    ordered = sorted(entries, key=lambda entry: (not entry.settle, entry.used))
    rows = [(entry.place, entry.what.value, "yes" if entry.used else "no", entry.why) for entry in ordered[:most]]
    table = doc.Table(("where", "what", "used", "why"), rows, "How it was read", left=("what", "used", "why"))
    settle = [(entry.place, f"settle it with {entry.settle}") for entry in ordered if entry.settle]
    return doc.Section(
        "How it was read", [table, doc.rest(len(ordered), most, "the JSON lists them"), doc.Bullets(settle[:most])]
    )


def description(described: Described, draft: bool = True) -> doc.Document:
    """Say what a table is taken for; with `draft` also the text of its description."""
    parts = [*_description(described)]
    if draft:
        parts.append(doc.Section("The description", [doc.Code(described.toml())], aside="(write it into a file with -o)"))
    return doc.Document("What the table is taken for", parts)


def _description(described: Described) -> Iterator[doc.Part]:
    opened, layout, release, how = described.opened, described.opened.layout, described.release, described.protection
    where = [release.source, *([f"sheet {opened.sheet!r}"] if opened.sheet is not None else [])]
    if layout is not None:
        first, last = layout.header[0], layout.header[-1]
        rows = f"rows {first}–{last}" if len(layout.header) > 1 else f"row {first}"
        where.append(f"header in {rows}, table in rows {layout.rows[0]}–{layout.rows[1]}")
    axes = {
        axis.name: f"{axis.name} ({several(len(axis.codes), 'code')}: {_few(axis.codes, ', ', ', …')})"
        for axis in described.axes.all
    }
    by_rows, by_columns = (
        "; ".join(said for name, said in axes.items() if name in names) or "one: the table is of a single area"
        for names in (release.areas, release.axes)
    )
    rules = [(name, codes) for rule in described.draft.keys.get("exact", ()) for name, codes in rule.items()]
    exact = [f"{axis} {_few(codes)}" for axis, codes in rules if axis != "inferred"]
    others = dict.fromkeys(rule["mechanism"] for rule in described.draft.keys.get("mechanisms", ()))
    also = (f"; exact: {', '.join(exact)}" if exact else "") + (f"; elsewhere {', '.join(others)}" if others else "")
    unknown = f"not known: {how.why}. Say it with --base"
    published = unknown if how.default is None else f"{how.default.name}{also} ({how.why})"
    facts = {"file": ", ".join(where), "rows": by_rows, "columns": by_columns, "published": published}
    yield doc.Terms(list(facts.items()), "wide")
    used = [verdict for verdict in described.verdicts if verdict.used]
    sums = [(f"{figure.axis}: {figure.shown}", f"{figure.suggested_by}; {figure.why}") for figure in used]
    yield doc.Section(f"Sums: {len(used)}", [doc.Bullets(sums)], aside="" if used else "so that nothing can be inferred")
    refused = [(f"{verdict.axis}: {verdict.shown}", verdict.why) for verdict in described.verdicts if not verdict.used]
    answers = [(question.text, answer) for question, answer in described.answers]
    for title, items in (("Not used", refused), ("Answered, or assumed", answers)):
        if items:
            yield doc.Section(title, [doc.Bullets(items)])
    yield how_it_was_read(account(release, described.structure))
    notes = release.notes[1:]  # the first is about describing on the way
    yield doc.Bullets([*notes, *described.structure.notes], doc.QUIET)


def _few(codes: str | Sequence[str], mark: str = " or ", more: str = " …") -> str:
    """Return some codes, shortened."""
    listed = [codes] if isinstance(codes, str) else codes
    return mark.join(listed[:FEW_CODES]) + (more if len(listed) > FEW_CODES else "")


EXAMPLES = 8
"""Sums, repeats or contradictions that are listed unless all are asked for."""

_MARKS = {FOUND: "found", FILES: "files"}
"""What is put behind a sum that nobody says holds; of others, labels suggest it."""


def inspection(seen: Inspection, everything: bool = False) -> doc.Document:
    """Say what is in a release, and whether the data fit the way in which it was published."""
    fit = check(seen.fit, everything)
    return doc.Document(
        "What is in the release",
        [*_inspection(seen, 10**9 if everything else EXAMPLES), doc.Section(fit.title, fit.parts)],
        notice=fit.notice,
    )


def _inspection(seen: Inspection, most: int) -> Iterator[doc.Part]:
    structure = seen.structure
    yield doc.Text(_in_short(seen), "lead")
    yield _overview(seen)
    yield how_it_was_read(account(seen.release, structure), max(most, MOST_ENTRIES))
    yield doc.Section("How counts were published", [_mechanisms(seen, most)])
    yield _used_sums(seen, most)
    if structure.rejected:
        sums = [
            (f"{seen.sum_in_words(rejected)} ({_known(rejected)})", rejected.why) for rejected in structure.rejected[:most]
        ]
        yield doc.Section(
            f"Sums not used: {len(structure.rejected):,}", [doc.Bullets(sums), doc.rest(len(structure.rejected), most)]
        )
    if structure.repeats:
        anew = sum(not repeat.alike for repeat in structure.repeats)
        repeats = [(_same(seen, repeat.columns), repeat.why) for repeat in structure.repeats[:most]]
        yield doc.Section(
            f"Counts that appear more than once: {len(structure.repeats):,}",
            [doc.Bullets(repeats), doc.rest(len(structure.repeats), most)],
            aside=f"({anew:,} rounded anew each time, {len(structure.repeats) - anew:,} always the same number)",
        )
    yield from _nesting(seen.nesting)
    yield _contradictions(seen, most)
    yield doc.Text("\n".join(f"Note: {note}" for note in seen.notes), doc.QUIET)


IN_SHORT = {
    FITS: "The data fit the {how} mechanism.",
    DEPARTS: "The data depart from the {how} mechanism: probabilities may be off.",
    CONTRADICTS: "The data contradict the {how} mechanism: some published figures cannot come from it.",
    UNTESTED: "Whether the data fit the {how} mechanism could not be tested.",
}


def _in_short(seen: Inspection) -> str:
    """Say what matters most: how much adds up, what cannot be, and whether the data fit."""
    sums, clashes, fit = len(seen.structure.sums), len(seen.contradictions), seen.fit.to_json()
    used = f"{several(sums, 'sum holds', 'sums hold')} between columns" if sums else "no sum between columns is used"
    wrong = f", and {several(clashes, 'inconsistency was', 'inconsistencies were')} found" if clashes else ""
    counts = several(seen.cells.get("published", 0), "published count")
    return f"{counts} in {several(seen.areas, 'area')}; {used}{wrong}. {IN_SHORT[fit['verdict']].format(how=known_by(fit))}"


def _overview(seen: Inspection) -> doc.Part:
    release, structure = seen.release, seen.structure
    files, what = release.source.split(" + "), release.areas[0].replace("_", " ")
    levels = [f"{number:,} {level}" for level, number in list(seen.levels.items())[:6]]
    in_levels = f" ({', '.join(levels)})" if len(levels) > 1 else f" ({next(iter(seen.levels))})" if levels else ""
    kinds = Counter(str(figure.kind) for figure in release.figures)
    evidence = sum(figure.is_evidence for figure in structure.figures)
    figures = ", ".join(several(kinds[kind], kind) for kind in ("rate", "mean", "median") if kinds[kind])
    figures = f"; {figures}" + (f" ({evidence:,} computed from true counts)" if evidence else "") if kinds else ""
    left = ", ".join(f"{why} ({len(labels):,})" for why, labels in release.left_out.items() if labels)
    inside = [column for column in release.columns if column.is_in_file]
    absent = ", ".join(f"{number:,} {why}" for why, number in seen.cells.items() if why != "published")
    outside, added = sum(column.block == "" for column in inside), len(release.columns) - len(inside)
    tables = f"{len({column.block for column in release.columns} - {''}):,}"
    tables += f"; {several(outside, 'column')} in none" if outside else ""
    shared = "two tables share it" if added == 1 else "each is shared by two tables"
    missing = several(added, "total that is not in the file", "totals that are not in the file")
    tables += f"; {missing} added: {shared}" if added else ""
    return doc.Terms(
        [
            ("file", f"{files[0]} ({release.file_format})") if len(files) == 1 else ("files", "\n".join(files)),
            ("areas" if what == AREA else plural(what), f"{seen.areas:,}{in_levels}"),
            ("columns", f"{len(inside):,} of counts{figures}{f'; not counts: {left}' if left else ''}"),
            ("tables", tables),
            ("counts", f"{seen.cells.get('published', 0):,} published{f'; {absent}' if absent else ''}"),
        ],
        "wide",
    )


def _known(judged: JudgedSum) -> str:
    """Return who announces a sum: the agency or the user, and by what; labels; or nobody."""
    if judged.is_documented:
        return f"{judged.ground}: {ORIGINS[judged.origin]}"
    return "found in the counts" if judged.origin == FOUND else f"suggested by {ORIGINS[judged.origin]}"


def _same(seen: Inspection, columns: tuple[int, ...]) -> str:
    names = [display_name(seen.release.columns[c]) for c in columns]
    return " = ".join(names) if len(names) <= 4 else f"{' = '.join(names[:3])} = … ({len(names)} columns)"


def _mechanisms(seen: Inspection, most: int) -> doc.Part:
    """Say how the columns were published: one line per mechanism, or one per table if all are asked for."""
    rows = []
    groups: dict[str, list[MechanismEvidence]] = {}
    for evidence in seen.structure.how:
        if not any(seen.release.columns[at].is_in_file for at in evidence.columns):
            continue
        groups.setdefault(evidence.mechanism.name if evidence.mechanism else "unknown, so not audited", []).append(evidence)
    for name, alike in sorted(groups.items(), key=lambda item: -sum(len(evidence.columns) for evidence in item[1])):
        alike.sort(key=lambda evidence: -len(evidence.columns))
        shown = alike if len(alike) <= 3 or most > EXAMPLES else alike[:1]
        for evidence in shown:
            where = f" ({evidence.block})" if evidence.block and len(alike) > 1 else ""
            rows.append([name, f"{len(evidence.columns):,}", f"{evidence.why}{where}"])
        left = alike[len(shown) :]
        if left:
            columns = sum(len(step.columns) for step in left)
            rows.append([name, f"{columns:,}", f"likewise, in {several(len(left), 'more table')}"])
    return doc.Table(("mechanism", "columns", "evidence"), rows, "Mechanisms", left=("evidence",))


def _used_sums(seen: Inspection, most: int) -> doc.Part:
    """List the sums that hold, with the evidence: how far totals are from their parts, and how much of that is rounding."""
    sums = seen.structure.sums
    if not sums:
        return doc.Section("No sums are used", [])
    judged = sum(not total_and_parts.unjudged for total_and_parts in sums)
    taken = f", {len(sums) - judged:,} too small to judge, taken on trust" if judged < len(sums) else ""
    kept = Counter(total_and_parts.origin for total_and_parts in sums if total_and_parts.is_documented)
    origins = ", ".join(f"{number:,} by {ORIGINS[origin]}" for origin, number in kept.most_common())
    inferred = Counter(total_and_parts.origin for total_and_parts in sums if not total_and_parts.is_documented)
    by_counts, matched = inferred[FOUND], inferred[FILES]
    labels = inferred.total() - by_counts - matched
    known = [f"{kept.total():,} documented or declared ({origins})"] if kept else []
    known += [f"{labels:,} suggested by labels alone"] if labels else []
    known += [f"{matched:,} by {ORIGINS[FILES]} under one name"] if matched else []
    known += [f"{by_counts:,} found in the counts"] if by_counts else []
    rows: list[doc.Line] = []
    for kept_sum in sums[:most]:
        error = kept_sum.spread / kept_sum.areas**0.5 if kept_sum.areas else 0.0
        marks = [
            *([] if kept_sum.is_documented else [_MARKS.get(kept_sum.origin, "labels")]),
            *(["on trust"] if kept_sum.unjudged else []),
        ]
        name = doc.TableCell(seen.sum_in_words(kept_sum), small=f"({', '.join(marks)})" if marks else "")
        off = f"{kept_sum.mean:+.2f} ± {error:.2f}".replace("-", "−")
        numbers = (off, f"{kept_sum.spread:.2f}", f"{kept_sum.expected:.2f}")
        rows.append([name, f"{kept_sum.areas:,}", *numbers, f"{kept_sum.impossible:,}"])
    legend = "off by: mean of total − parts, ± its standard error; expected: the spread that rounding alone causes."
    if any(total_and_parts.against for total_and_parts in sums):
        legend += " Of a total that is not in the file, the parts in one table are compared with those in the other."
    table = doc.Table(("sum", "areas", "off by", "spread", "expected", "impossible"), rows, "Sums", legend=legend)
    aside = f"{', '.join(known)}. {judged:,} confirmed by the counts{taken}"
    return doc.Section(f"{several(len(sums), 'sum')} used:", [table, doc.rest(len(sums), most)], aside=aside)


def _nesting(nesting: Nesting) -> Iterator[doc.Part]:
    """Say which areas add up to which, and which do not although they seem to."""
    if not nesting.levels:
        return
    rows, reasons = [], []
    for level in nesting.levels:
        sizes = [f"{level.by_k[size]:,}" if size in level.by_k else "-" for size in SIZES]
        left = f"{sum(level.rejected.values()):,}"
        rows.append([level.name, level.by, f"{level.parents:,}", *sizes, f"{int(level.columns.sum()):,}", left])
        reasons.append((level.name, level.why))
        reasons += [(level.name, f"{number:,} left out: {why}") for why, number in level.rejected.items()]
    heads = ("areas in areas", "known from", "parents", *SIZES, "columns", "left out")
    legend = f"{', '.join(SIZES)}: parents with this many areas; columns: those that add up."
    aside = several(nesting.linked, "area is part of another", "areas are parts of others")
    yield doc.Section(
        "Areas within areas:",
        [doc.Table(heads, rows, "Levels", left=("known from",), legend=legend), doc.Bullets(reasons)],
        aside=aside,
    )


def _contradictions(seen: Inspection, most: int) -> doc.Part:
    rows = seen.contradictions
    if not rows:
        unknown = "No sum is used, so it is not known whether the published figures are consistent."
        return doc.Text(NO_INCONSISTENCIES if seen.structure.equations else unknown)
    clashes = [(str(next(iter(row.values()))), row["clash"]) for row in rows[:most]]
    return doc.Section(
        f"Inconsistencies in the published figures: {len(rows):,}", [doc.Bullets(clashes), doc.rest(len(rows), most)]
    )
