"""`report.html` and `report-public.html`: an audit as one page each, complete in itself; and its short form.

Whatever the release, a page stays small: it shows a limited number of tables, findings and inconsistencies and counts the
rest, and it shortens very long names. The public page is made from the summary alone, which names no area; anything in the
summary that could name one is left out as well. The terminal shows the short form, and with --verbose the whole report.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unround._version import __version__
from unround.audits.findings import SMALL_FIRST
from unround.expectation import interval, surprise
from unround.job import AuditFolder
from unround.job.folder import PUBLIC_REPORT, REPORT
from unround.show import audit, charts, selfcheck
from unround.show.check import fit_in_words, rounded_independently
from unround.show.claims import claims_parts
from unround.show.diff import changed
from unround.show.maps import map_of_report
from unround.show.page import page as html_page
from unround.show.parts import (
    ALARM,
    CARD,
    LEAD,
    QUIET,
    QUOTE,
    TERMINAL,
    Bullets,
    Chart,
    Code,
    Document,
    Fact,
    Facts,
    Files,
    Fold,
    Frame,
    Line,
    Only,
    Part,
    Section,
    Side,
    Table,
    TableCell,
    TableColumn,
    TableRow,
    Terms,
    Text,
    rest,
)
from unround.show.strongest import MOST, Strong, first_contradictions, first_suspects, first_zeros, strongest
from unround.show.words import (
    CLAIMS,
    INCONSISTENCIES,
    MEANINGS,
    NO_INCONSISTENCIES,
    block_named,
    by_several,
    conditions,
    due,
    figures_used,
    headline,
    inconsistencies,
    likely_means,
    not_listed,
    notice,
    number,
    percent,
    product_named,
    rate,
    settling,
    several,
    share,
    size_named,
    span_of,
    spelled,
    tables_in_words,
    verdict,
    why_several,
)

MOST_BLOCKS = 8
MOST_ROUTES = 14
MOST_ZEROS = 40
MOST_SUSPECTS = 12
MOST_FAMILIES = 10
MOST_CLASHES = 20
MOST_NOTES = 12
MOST_ODD = 8
"""Rows that are shown; the others are counted."""

FEWEST_AREAS = 10
"""With fewer areas the public page does not say how claims are spread over counts: that would nearly reveal the counts."""

CHANCE = 0.99
"""The probability of the range that the chart shows for chance."""

POPULATION = {
    "exact": "Counts published unrounded are taken as exact. Where the agency may have adjusted such a count slightly, "
    "whatever depends on it is called conditional, not proved.",
    "within5": "Counts published unrounded that may have been adjusted are taken as within 5 of the truth.",
}
"""What is assumed of unrounded counts."""

FILES = {
    REPORT: "the result as a page; open it in a browser",
    PUBLIC_REPORT: "the same without any area or inferred value, to share",
    "findings.csv": "every listed claim, those that matter most first (also as findings.parquet)",
    "contradictions.csv": "inconsistent published figures, with the smallest clash",
    "suspects.csv": "areas whose counts are possible, but add up absurdly badly",
    "proofs.jsonl": "a certificate for every proved count",
    "estimates.parquet": "an estimate of every count, with error bars",
    "summary.json": "the numbers above, and more",
}
"""What an audit writes, and what it is good for."""


def write_pages(
    folder: AuditFolder, diff: Mapping[str, Any] | None = None, decision: str | None = None
) -> tuple[Path, Path]:
    """Write both pages into an audit folder, replacing older ones."""
    decision = decision or audit.decision_of(folder)
    pages = {REPORT: False, PUBLIC_REPORT: True}
    folder.put({name: page(folder, public=public, diff=diff, decision=decision) for name, public in pages.items()})
    return folder.path / REPORT, folder.path / PUBLIC_REPORT


def page(
    folder: AuditFolder, *, public: bool = False, diff: Mapping[str, Any] | None = None, decision: str | None = None
) -> str:
    """Return the report of an audit as one HTML document."""
    return html_page(report(folder, public=public, diff=diff, decision=decision))


def files_of(source: str) -> str:
    """Name the files of a release without their folders; several were audited as one.

    >>> files_of("census/profile.csv + table.csv")
    'profile.csv + table.csv'
    """
    return " + ".join(Path(piece).name for piece in source.split(" + "))


def name_of(summary: Mapping[str, Any]) -> str:
    """Return what the release is called in a sentence: the product, or its files."""
    return product_named(summary["product"]) or files_of(summary["source"])


def title_of(summary: Mapping[str, Any]) -> str:
    """Return what the release is called in a title; files are called as they are."""
    name = name_of(summary)
    return f"{name[:1].upper()}{name[1:]}" if summary["product"] else name


def report(
    folder: AuditFolder, *, public: bool = False, diff: Mapping[str, Any] | None = None, decision: str | None = None
) -> Document:
    """Return everything that an audit has to say."""
    summary = folder.summary
    strong = {} if public else {kind: shown for kind in CLAIMS if (shown := _strongest(folder, kind))}
    parts: list[Part] = [_sheet(summary, strong, decision, public)]
    if diff is not None:
        since = f"What changed since {Path(diff['before']['path']).name}"
        parts.append(Section(since, list(changed(diff, public=public)), "changed", "What changed"))
    parts += [_claims(summary), _risk(folder, public)]
    parts += [_findings(folder, strong)] if strong else []
    parts += [_faults(folder, public), *_truth(summary, public)]
    parts += [*_grounds(summary, strong, public), _method(summary, public)]
    hidden = f" ({summary['areas_hidden']:,} without any count)" if summary["areas_hidden"] else ""
    facts = [
        files_of(summary["source"]),
        f"{several(summary['areas'], 'area')}{hidden}",
        several(summary["cells_published"], "published count"),
        f"{several(summary['structure']['sums_kept'], 'sum')} per area",
    ]
    return Document(
        title_of(summary),
        parts,
        "Audit report, public version" if public else "Audit report: not for publication",
        " · ".join(facts),
        notice(summary["product"]),
        "report",
        contents=True,
        window=f"{'Public audit report' if public else 'Audit report'}: {title_of(summary)}",
    )


# -- the short form ---------------------------------------------------------------------------------------------------


def short(folder: AuditFolder, verbose: bool = False) -> Document:
    """Say what was found, what it rests on and what to do next, in some 25 lines; with `verbose` everything, before that."""
    summary, decision = folder.summary, audit.decision_of(folder)
    footing = audit.footing(summary, decision)
    entries = [replace(fact, what=fact.what.lower(), said="", tone=TONES[fact.tone], anchor="") for fact in footing]
    parts: list[Part] = [
        Text(headline(summary), LEAD),
        Text(" ".join(verdict(summary))),
        Facts(entries, "claim", "What this rests on"),
    ]
    if any(summary[kind] for kind in CLAIMS):
        parts.append(_by_value(summary, "inferred count"))
    parts.append(Text("\n".join(conditions(summary))))
    parts.append(Text("\n".join([*settling(summary), *not_used(summary), *selfcheck.withheld(summary)]), ALARM))
    score = summary.get("truth")
    if score is not None:
        parts.append(Text(against_truth(score), "wrong" if score["wrong"]["proved"] else ""))
    if verbose:
        parts += [part for part in report(folder, decision=decision).parts[1:] if isinstance(part, Section)]
    else:
        parts.append(Text("\n".join(_also(summary)), QUIET))
    parts.append(Only(TERMINAL, [_next(summary, public=False)]))
    if folder.run.get("started_anew"):
        parts.append(Text(f"Note: {folder.run['started_anew']}, so that everything was done again.", QUIET))
    parts += [_first_claims(folder), Text(notice(summary["product"]), QUIET), _files(folder, verbose)]
    return Document(title_of(summary), parts)


TONES = {audit.FINE: "", audit.DOUBT: ALARM, audit.UNKNOWN: "strong"}
"""How the state of what claims rest on is printed."""


def _by_value(summary: Mapping[str, Any], first: str) -> Part:
    by_value = summary["sensitive_claims"]["by_value"]
    rows = [TableRow([size_named(size), *(f"{by_value[size][kind]:,}" for kind in CLAIMS)]) for size in SMALL_FIRST]
    return Table((first, *CLAIMS), rows, first, foot=TableRow(["all", *(f"{summary[kind]:,}" for kind in CLAIMS)], "strong"))


def _also(summary: Mapping[str, Any]) -> list[str]:
    """Say in a line each what --verbose tells at length."""
    said = [*not_listed(summary), *tables_in_words(summary), *audit.key_sentences(summary)[:1], *figures_used(summary)]
    said += [inconsistencies(summary)] if summary["contradictions"] else []
    notes = len(summary["notes"])
    more = f" There {'is' if notes == 1 else 'are'} {several(notes, 'note')} about the file." if notes else ""
    return [*said, f"--verbose tells all of it: by table, beside chance, the strongest findings, assumptions.{more}"]


def against_truth(score: Mapping[str, Any]) -> str:
    """Say in a line how claims compare with the truth."""
    said = []
    for kind in CLAIMS:
        checked, wrong = score["checked"][kind], score["wrong"][kind]
        if checked:
            said.append(
                f"{kind}: {checked:,} checked, "
                + (f"{wrong:,} wrong ({percent(wrong / checked)})" if wrong else "none wrong")
            )
    failed = f" An assumption failed: {score['assumption_failed']}." if score["assumption_failed"] else ""
    return f"Compared with the truth: {'; '.join(said) or 'nothing to compare'}.{failed}"


def not_used(summary: Mapping[str, Any]) -> list[str]:
    """Say which sums told nothing, and where there were too many possibilities to use them."""
    sentences = []
    added, unweighed = summary["structure"]["sums_added_up_afterwards"], summary["areas_not_weighed"]
    if added:
        sentences.append(
            f"{several(added, 'sum adds', 'sums add')} up exactly in all areas: totals were added up after rounding, or all "
            "counts were rounded together. Such totals add no information to their parts, and their sums are not used."
        )
    singly = summary["cells_judged_singly"]
    if singly and not unweighed:
        sentences.append(
            f"{several(singly, 'count is', 'counts are')} cut off from a sum, mostly by counts that are hidden. What sums "
            "make likely there was not computed: that is no sign of safety."
        )
    apart = summary["areas_where_chains_disagree"]
    if apart:
        sentences.append(
            f"In {several(apart, 'area')} the Markov chains for tables by several axes do not agree. What sums make likely "
            "there is not known: that is no sign of safety."
        )
    if unweighed:
        sentences.append(
            f"In {unweighed:,} of {summary['areas']:,} areas the noise leaves too many counts possible to use all sums at "
            "once. What sums make likely there was not computed: that is no sign of safety."
        )
    return sentences


def _first_claims(folder: AuditFolder) -> Part:
    """Return the first claims, for the card of a notebook."""
    findings = folder.first_findings(8)
    axes = findings.columns[: findings.columns.index("published")]  # what says where: codes and names
    rows: list[Line] = [
        [
            *("" if row[axis] is None else str(row[axis]) for axis in axes),
            number(row["published"]),
            number(row["value"]),
            percent(row["probability_low"]),
            TableCell(row["kind"], badge=row["kind"]),
        ]
        for row in findings.to_dicts()
    ]
    more = folder.summary["listed"]["claims"] - len(rows)
    heads: tuple[str | TableColumn, ...] = (
        *(TableColumn(axis, left=True) for axis in axes),
        "published",
        "inferred",
        "probability at least",
        TableColumn("", left=True),
    )
    title = f"The first claims{f'; {more:,} more in .findings' if more > 0 else ''}"
    return Fold(title, [Table(heads, rows, "The first claims")], only=CARD) if rows else Text("")


def _files(folder: AuditFolder, verbose: bool) -> Part:
    """Say where to look next."""
    summary = folder.summary
    claims = any(summary[kind] for kind in CLAIMS)
    useful = {"contradictions.csv": summary["contradictions"], "suspects.csv": summary["suspect"]["areas"]}
    useful |= {"proofs.jsonl": claims, "findings.csv": claims}
    if not verbose:
        useful |= dict.fromkeys(("proofs.jsonl", "estimates.parquet", "summary.json"), False)
    listed, in_csv = summary["listed"]["claims"], summary["listed"]["in_csv"]
    said = FILES | (
        {"findings.csv": f"the first {in_csv:,} of {listed:,} claims; findings.parquet has all"} if listed > in_csv else {}
    )
    there = [(name, what) for name, what in said.items() if (folder.path / name).exists() and useful.get(name, True)]
    example = _an_example(folder)
    commands = [f"unround explain {example}"] if example is not None else []
    return Files(f"{folder.path}/", there, [*commands, shlex.join(["unround", "serve", str(folder.path), "--open"])])


def _an_example(folder: AuditFolder) -> str | None:
    """Return the arguments of `explain` for the claim that matters most."""
    axes = folder.told["axes"]
    rows = folder.first_findings(1).to_dicts()
    if not rows or len(folder.told["areas"]) > 1:
        return None
    row = rows[0]
    area = row[folder.told["areas"][0]]
    if axes == ["characteristic_id", "sex"]:
        sex = [] if row["sex"] == "total" else ["--sex", row["sex"]]
        return shlex.join([str(folder.path), str(area), str(row["characteristic_id"]), *sex])
    codes = tuple(row[axis] for axis in axes)
    key = next(column.key for column in folder.model.columns if column.codes == codes)
    return shlex.join([str(folder.path), str(area), key])


# -- the first page ---------------------------------------------------------------------------------------------------


def _sheet(
    summary: Mapping[str, Any], strong: Mapping[str, Sequence[Strong]], decision: str | None, public: bool
) -> Section:
    left: list[Part] = [
        Text(" ".join(verdict(summary)), LEAD),
        Section("For example", audit.example(strong), level=3),
        _next(summary, public=public),
        Section("To quote", [Text(audit.to_quote(summary, name_of(summary)), QUOTE)], level=3),
    ]
    status = (
        "Public version. It names no area and shows no inferred value, so it can be shared while the agency decides what to "
        "do. The full report, with findings and proofs, stays with those who need it."
        if public
        else f"Not for publication. This page {'shows inferred values for' if summary['by_block'] else 'may name'} single "
        "areas. To share the result, use `report-public.html`, and tell the agency first."
    )
    parts: list[Part] = [
        Facts(audit.footing(summary, decision), "footing", "What the claims rest on"),
        Side([left, [audit.picture(summary)]], "front"),
        Text(status, "status" if public else "status alarm"),
        Text(notice(summary["product"]), "made"),
    ]
    tone = next((kind for kind in CLAIMS if summary[kind]), "open")
    return Section(headline(summary), parts, "verdict", "In short", style="sheet", tone=tone)


def _next(summary: Mapping[str, Any], *, public: bool) -> Part:
    return Section("What to do next", [Bullets(audit.next_steps(summary, public=public), style="next")], level=3)


# -- claims by table, and next to chance ------------------------------------------------------------------------------


def _kinds(summary: Mapping[str, Any]) -> list[str]:
    return [kind for kind in CLAIMS if summary[kind]]


def _claims(summary: Mapping[str, Any]) -> Section:
    title = "Findings by table, beside chance"
    chance = summary.get("chance_by_block", {})
    parts: list[Part] = []
    if summary["by_block"]:
        said = {**MEANINGS, "likely": likely_means(summary)}
        parts.append(Facts([Fact(kind, f"{summary[kind]:,}", said[kind], kind) for kind in CLAIMS], "tiles"))
        parts.append(
            Text(
                "For each table, what is claimed; and how many of its sums have only one solution on their own, next to the "
                "number expected by chance."
            )
        )
        rows = [(block_named(name, chance), numbers, chance.get(name)) for name, numbers in summary["by_block"].items()]
        lines = [
            TableRow([name, *_numbers(summary, numbers), *_beside(by_chance)], claims=numbers)
            for name, numbers, by_chance in rows
        ]
        heads = ("Table", *_kinds(summary), "proofs from one sum", "by chance")
        parts.append(_limited(heads, lines, [numbers for _, numbers, _ in rows], MOST_BLOCKS, summary, "more tables"))
        silent = sum(name not in summary["by_block"] for name in chance)
        parts.append(Text(f"{several(silent, 'table reveals', 'tables reveal')} nothing." if silent else "", QUIET))
    else:
        parts.append(Text("No table reveals a count."))
    return Section(title, [*parts, *_families(summary)], "claims", "Findings by table")


def _numbers(summary: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    return [f"{row[kind]:,}" for kind in _kinds(summary)]


def _beside(chance: Mapping[str, Any] | None) -> list[str]:
    return [f"{chance['proved']:,}", rate(chance["proved_expected"])] if chance and chance["groups"] else ["–", "–"]


def _limited(
    heads: Sequence[str],
    lines: Sequence[TableRow],
    claims: Sequence[Mapping[str, Any]],
    most: int,
    summary: Mapping[str, Any],
    more: str,
) -> Part:
    """Keep the first rows, and sum up the others."""
    left = claims[most:]
    sums = {kind: sum(row[kind] for row in left) for kind in CLAIMS}
    foot = TableRow([f"{len(left):,} {more}", *_numbers(summary, sums)]) if left else None
    return Table(heads, lines[:most], f"Claims by {heads[0].lower()}", foot=foot)


def _families(summary: Mapping[str, Any]) -> Iterator[Part]:
    """Say what single sums reveal, one row per kind of sum, with what chance predicts."""
    met = sorted((family for family in summary["chance"] if family["groups"]), key=lambda family: -family["groups"])
    if not met:
        return
    one_base = len({family["base"] for family in met}) == 1
    drawn = []
    for family in [family for family in met if family["proved"] or family["proved_expected"] >= 0.05][:MOST_FAMILIES]:
        low, high = interval(family["proved_expected"], CHANCE)
        base = "" if one_base else f", base {family['base']}"
        label = f"{family['parts']} parts, {'exact' if family['exact_total'] else 'rounded'} total{base}"
        drawn.append({"label": label, "found": family["proved"], "low": low, "high": high})
    parts: list[Part] = []
    if drawn:
        note = "single sums that prove all their counts, by kind; diamond: found; grey: the range of chance, 99 times in 100"
        parts.append(Chart(charts.against_chance(drawn), "", note))
    proved, expected = (sum(family[name] for family in met) for name in ("proved", "proved_expected"))
    predicted = rate(expected) if expected == 0 or expected >= 0.05 else "fewer than 0.1"
    folded: list[Part] = [
        Text(
            "Random rounding alone makes some sums reveal all their counts; how often depends on the number of parts and "
            f"the kind of total. Here {f'{proved:,}' if proved else 'no'} {'sum does' if proved <= 1 else 'sums do'}; "
            f"chance predicts {predicted}. This covers only sums whose counts are all well above 0; there is no such "
            "benchmark for claims that combine several sums."
        )
    ]
    odd = [family for family in met if surprise(family["proved"], family["proved_expected"]) < 1 - CHANCE][:MOST_FAMILIES]
    if odd:
        said = [
            f"{family['family']}: {family['proved']:,} found, {family['proved_expected']:,.1f} predicted" for family in odd
        ]
        folded += [Text("By chance, a number this far off occurs less than once in a hundred times for:"), Bullets(said)]
    else:
        folded.append(Text("No kind of sum departs from what chance predicts."))
    rows = [
        [
            family["family"],
            f"{family['groups']:,}",
            f"{family['proved']:,}",
            rate(family["proved_expected"]),
            f"{family['strong']:,}",
            rate(family["strong_expected"]),
        ]
        for family in met[:MOST_FAMILIES]
    ]
    heads = ("Kind of sum", "sums", "proved", "by chance", "likely", "by chance")
    more = rest(len(met), MOST_FAMILIES, "`summary.json` has them all")
    folded += [Table(heads, rows, "Single sums compared with chance"), more]
    fold = Fold(f"{several(len(rows), 'kind of sum', 'kinds of sums')}, compared with chance", folded)
    yield Section(audit.chance_caption(met), [*parts, fold], level=3)


# -- where the risk sits ----------------------------------------------------------------------------------------------


def _risk(folder: AuditFolder, public: bool) -> Section:
    summary, parts = folder.summary, list[Part]()
    drawn = None if public else map_of_report(folder)
    if drawn is not None:
        key = [(name, label, f"{many:,}", "") for name, label, many in drawn.key]
        parts.append(Chart(drawn.picture, drawn.caption, key=key, style="map-figure", below=drawn.sentences))
    if summary["by_block"]:
        few = public and summary["areas"] < FEWEST_AREAS
        parts.append(Side([_sizes(summary), [] if few else _values(summary)]))
        sensitive = summary["sensitive_claims"]
        zeros, whole = sensitive["zeros_proved"], sensitive["parts_proved_to_be_their_total"]
        if few:
            parts.append(
                Text(
                    "With so few areas, the distribution of claims over counts would nearly reveal the counts; it is in the "
                    "full report.",
                    QUIET,
                )
            )
        elif zeros or whole:
            parts.append(
                Text(
                    f"{several(zeros, 'zero is', 'zeros are')} proved: nobody there has that property. "
                    f"{several(whole, 'part is', 'parts are')} proved to equal their total: everybody there has it."
                )
            )
        routes = list(summary["by_route"].items())
        lines = [TableRow([name, *_numbers(summary, row)], claims=row) for name, row in routes]
        table = _limited(("Argument", *_kinds(summary)), lines, [row for _, row in routes], MOST_ROUTES, summary, "more")
        how = Text("How many sums a proof combines. Arguments of several steps reveal counts that no single sum does.")
        parts.append(Fold("By kind of argument", [how, table]))
    else:
        parts.append(Text("Nothing is claimed, so there is nothing to break down. That rests on the assumptions below."))
    return Section("Where the risk is", parts, "risk", "Where the risk is")


def _sizes(summary: Mapping[str, Any]) -> list[Part]:
    """Return claims by the size of their area, and their number per 1,000 counts, published or suppressed."""
    rows = {size_named(name): row for name, row in summary.get("by_area_size", {}).items() if row["areas"]}
    if not rows:
        return []
    rates = {size: {kind: 1000 * row[kind] / max(1, row["cells"]) for kind in CLAIMS} for size, row in rows.items()}
    what, note = "Claims per 1,000 counts by size of area", "claims per 1,000 counts, by the area's largest published count"
    lines = [[size, f"{row['areas']:,}", *_numbers(summary, row)] for size, row in rows.items()]
    table = Table(("Size of area", "areas", *_kinds(summary)), lines, "Claims by size of area")
    drawn = Chart(charts.stacked_bars(rates, what, digits=1), audit.size_caption(rates), note)
    return [drawn, Fold("The numbers by size of area", [table])]


def _values(summary: Mapping[str, Any]) -> list[Part]:
    rows = {size_named(size): summary["sensitive_claims"]["by_value"][size] for size in SMALL_FIRST}
    drawn = charts.stacked_bars(rows, "Claims by inferred count")
    table = Fold("The numbers by inferred count", [_by_value(summary, "Inferred count")])
    return [Chart(drawn, audit.value_caption(summary), "number of claims, by inferred count"), table]


# -- the strongest findings -------------------------------------------------------------------------------------------


def _strongest(folder: AuditFolder, kind: str) -> list[Strong]:
    """Return the strongest findings of a kind, none where there are none or none are shown."""
    return strongest(folder, kind) if folder.summary[kind] and MOST[kind] else []


def _findings(folder: AuditFolder, strong: Mapping[str, Sequence[Strong]]) -> Section:
    summary = folder.summary
    parts: list[Part] = [
        Text(
            "Small counts come first, zeros last; one finding stands for all that rest on the same sums of an area. In each "
            "argument, A is the count in question. Claims are in `findings.csv`, all proofs in `proofs.jsonl`; `unround "
            "explain` gives the argument for any count."
        )
    ]
    for kind, cards_of in strong.items():
        why = Text(why_several(summary["priors"]["variants"]) if kind == "likely" else "")
        cards = Frame([Frame(_card(finding), f"card {kind}", "li") for finding in cards_of], "cards", "ol")
        parts.append(Section(f"{kind.capitalize()}: {len(cards_of)} of {summary[kind]:,}", [why, cards], level=3))
    zeros = summary["sensitive_claims"]["by_value"]["0"]["likely"] - summary["zeros_not_listed"]
    if zeros:
        shown = first_zeros(folder, MOST_ZEROS)
        more = f" The first {len(shown)}; all of them are at the end of `findings.csv`." if zeros > len(shown) else ""
        table = Table(("Area", "Count", "published", "probability of 0"), shown, "Likely zeros", left=("Count",))
        said = Text(f"Nobody is counted there, if the claim is right.{more}")
        parts.append(Fold(several(zeros, "likely zero"), [said, table], "zeros"))
    return Section("The strongest findings, with their arithmetic", parts, "findings", "Strongest findings")


def _card(strong: Strong) -> list[Part]:
    """Return a finding: what is claimed, where, and the argument for it."""
    row, kind = strong.finding, strong.finding["kind"]
    where = [strong.area or strong.code, *([strong.code] if strong.area else []), *([strong.table] if strong.table else [])]
    must = {"proved": "must be", "conditional": "must be, on this condition", "likely": "most likely"}[kind]
    facts = [Fact("published", "nothing" if row["published"] is None else number(row["published"]))]
    facts.append(Fact(must, number(row["value"])))
    if kind == "likely" and by_several(row):
        facts += [
            Fact("at least", percent(row["probability_low"])),
            Fact("on average", percent(row["probability"])),
            Fact("highest found", percent(row["probability_high"])),
        ]
    elif kind == "likely":
        facts.append(Fact("probability", percent(row["probability"])))
    facts += [Fact("possible", span_of(row))] if kind == "likely" else []
    facts += [Fact("condition", row["assumptions"])] if kind == "conditional" else []
    title = "The argument" if kind != "likely" else "The argument, and how likely each count is"
    fold = Fold(title, [Text(due(row), QUIET), Side([_argument(strong), _evidence(strong)], "two")])
    return [Section(strong.what, [Text(" · ".join(where), "where"), Facts(facts, "claim")], level=4), fold]


def _argument(strong: Strong) -> list[Part]:
    likely = strong.finding["kind"] == "likely"
    more = f" and {len(strong.sums) - 4} more" if len(strong.sums) > 4 else ""
    title = "Totals that include this count" if likely else f"The argument, from {', '.join(strong.sums[:4])}{more}"
    left = f"{strong.more_steps} more {'sums' if likely else 'steps'} are not shown." if strong.more_steps else ""
    parts: list[Part] = [Section(title, [Bullets(strong.steps, style="steps"), Text(left, QUIET)], level=5)]
    if strong.others:
        parts.append(Section("Other areas", [Bullets(strong.others)], level=5))
    if strong.growth:
        value = number(strong.finding["value"])
        grown = Table(
            (f"How probable {value} becomes", ""), [[step, percent(p)] for step, p in strong.growth], style="small"
        )
        parts.append(grown)
    return parts


def _evidence(strong: Strong) -> list[Part]:
    parts: list[Part] = []
    if strong.distribution:
        finding = strong.finding
        drawn = charts.histogram(
            strong.distribution, name=strong.what, kind=finding["kind"], published=finding["published"], height=120
        )
        parts.append(Section("How likely each count is", [Chart(drawn)], level=5))
    lines = [
        [cell.letter, cell.what, f"{number(cell.published)}{' (exact)' if cell.mechanism == 'exact' else ''}"]
        for cell in strong.cells
    ]
    heads = (TableColumn("cell", left=True), "what it counts", "published")
    table = Table(heads, lines, "Cells", left=("what it counts",), style="small letters")
    return [*parts, table, Text(f"and {strong.more_cells:,} more cells." if strong.more_cells else "", QUIET)]


# -- faults -----------------------------------------------------------------------------------------------------------


def _faults(folder: AuditFolder, public: bool) -> Section:
    summary = folder.summary
    clashes, suspect = summary["contradictions"], summary["suspect"]
    left: list[Part] = [Text(NO_INCONSISTENCIES)]
    if clashes:
        kinds = summary["contradictions_by_kind"]
        named = ", ".join(several(times, *INCONSISTENCIES.get(kind, (kind, kind))) for kind, times in kinds.items())
        many = several(clashes, "inconsistency was", "inconsistencies were")
        left = [
            Text(
                f"{many} found: {named}. No true counts could have been published in this way. The sums in question are "
                "left out for that area; everything else was audited."
            )
        ]
        rows = [] if public else first_contradictions(folder, MOST_CLASHES)
        if rows:
            table = Table(("Area", "What is inconsistent"), rows, "Inconsistencies", left=("What is inconsistent",))
            more = rest(clashes, len(rows), "`contradictions.csv` has them all")
            title = f"Which figures: {several(clashes, 'inconsistency', 'inconsistencies')}"
            left.append(Fold(title, [table, more], "clashes"))
    columns: list[list[Part]] = [[Section("Figures that cannot all be right", left, "contradictions", level=3)]]
    if suspect["areas"]:
        columns.append([Section("Suspect data: possible, but absurd", _suspects(folder, public), "suspects", level=3)])
    return Section("Faults in the data", [Side(columns)], "faults", "Faults in the data")


def _suspects(folder: AuditFolder, public: bool) -> list[Part]:
    suspect = folder.summary["suspect"]
    areas = suspect["areas"]
    said = (
        f"In {several(areas, 'area')}, counts add up so badly that rounding does not explain it: by chance, any such area "
        f"would appear in fewer than {share(suspect['level'])} of releases. {'It makes' if areas == 1 else 'They make'} no "
        "likely and no conditional claims."
    )
    if public:
        return [Text(said)]
    rows = first_suspects(folder, MOST_SUSPECTS)
    heads = ("Area", "Sum", "published total", "parts add up to", "chance at most")
    more = rest(suspect["sums"], len(rows), "`suspects.csv` has them all")
    table = Table(heads, rows, "Suspect data", left=("Sum",))
    return [Text(said), Fold(f"Which figures: {several(areas, 'area')}", [table, more], "absurd")]


# -- the truth --------------------------------------------------------------------------------------------------------


def _truth(summary: Mapping[str, Any], public: bool) -> Iterator[Part]:
    """Say how claims compare with the truth, if it was given."""
    score = summary.get("truth")
    if score is None:
        return
    bands = [
        {**band, **charts.wilson(band["right"], band["claims"])}
        for band in score["calibration"].get("findings", [])
        if band["claims"]
    ]
    failed = score["assumption_failed"]
    parts: list[Part] = [Text(f"An assumption failed: {failed}." if failed else "", ALARM)]
    lines = []
    for kind in _kinds(summary):
        checked, wrong = score["checked"][kind], score["wrong"][kind]
        if checked:
            lines.append([kind, f"{checked:,}", f"{wrong:,}", percent(1 - wrong / checked)])
    left: list[Part] = [
        Text(
            "Every claim was compared with the unrounded table. No proved claim may be wrong; likely ones should be right "
            "as often as they state."
        ),
        Table(("Claims", "checked", "wrong", "right"), lines, "Claims compared with the truth"),
    ]
    heads = ("Likeliest counts", "stated", "right", "off")
    left.append(Table(heads, audit.by_part(score), "Totals and parts compared with the truth"))
    right: list[Part] = []
    if bands:
        drawn = charts.reliability({"": ("likely", bands)}, "stated probability", "share that is right")
        note = "each point is a band of stated probability; bars: 95% sampling error"
        right.append(Chart(drawn, audit.truth_caption(bands), note))
    parts.append(Side([left, right]))
    if score.get("claims_by_value"):
        parts.append(Fold("Likely claims, by the count claimed", claims_parts(score["claims_by_value"])))
    if score["proved_wrong"] and not public:
        wrongs = [", ".join(f"{name} {value}" for name, value in claim.items()) for claim in score["proved_wrong"]]
        parts.append(Section("Proved claims that are wrong", [Bullets(wrongs)], level=3))
    yield Section("Compared with the truth", parts, "truth", "Compared with the truth")


# -- assumptions and method -------------------------------------------------------------------------------------------


def about(folder: AuditFolder) -> list[Part]:
    """Return what the values of an audit rest on, for the explorer: the sections of the report on it."""
    method = _method(folder.summary, public=False)
    return [method, *_grounds(folder.summary, {}, public=False), _faults(folder, public=True)]


def _grounds(summary: Mapping[str, Any], strong: Mapping[str, Any], public: bool) -> list[Part]:
    return [_assumed(summary, strong, public), *selfcheck.parts(summary), *_areas(summary)]


def _assumed(summary: Mapping[str, Any], strong: Mapping[str, Any], public: bool) -> Section:
    structure, priors = summary["structure"], summary["priors"]["variants"]
    mechanisms = [f"`{name}` {sentence}" for name, sentence in list(summary["mechanisms"].items())[:8]]
    more = len(summary["mechanisms"]) - len(mechanisms)
    mechanisms += [f"{more} more are in `summary.json`."] if more else []
    loops = structure["sums_for_bounds_only"]
    serves = several(loops, "sum closes a loop, and serves", "sums close loops, and serve")
    sums = (
        f"After checking all areas, {several(structure['sums_kept'], 'sum was', 'sums were')} kept and "
        f"{structure['sums_rejected']:,} rejected; {structure['audited']:,} of {structure['columns']:,} columns are audited."
        + (f" {serves} bounds and proofs, not probabilities." if loops else "")
    )
    why = f" {why_several(priors)}" if len(priors) > 1 and "likely" not in strong else ""
    check = summary.get("check")
    unfit = [family for family in (check or {"families": ()})["families"] if family["verdict"] != "fits"]
    parts: list[Part] = [
        Terms(
            [
                ("How counts were published", "\n".join(mechanisms)),
                ("Which sums hold", " ".join([sums, *tables_in_words(summary)])),
                ("Exact counts", POPULATION[summary["population"]]),
                ("Prior (for likely counts only)", f"{summary['prior_in_words']}.{why}"),
                ("Do the data fit these assumptions?", Text(fit_in_words(check), ALARM if unfit else "")),
            ],
            "wide",
            {"Do the data fit these assumptions?": "check"},
        )
    ]
    if unfit:
        odd = [
            (f"{family['family']} ({family['verdict']})", "" if public else family["note"]) for family in unfit[:MOST_ODD]
        ]
        families = several(len(odd), "family of sums that does", "families of sums that do")
        parts.append(Fold(f"{families} not fit", [Bullets(odd), rest(len(unfit), MOST_ODD, "`summary.json` has them all")]))
    return Section(
        "Assumptions, and whether the data support them",
        [*parts, Side([_keys(summary), _conditions(summary), _held(summary, public)])],
        "assumed",
        "Assumptions",
    )


def _keys(summary: Mapping[str, Any]) -> list[Part]:
    said, rows = audit.key_sentences(summary), audit.key_rows(summary)
    if not said:
        return []
    first = said[:1] if rows else said
    parts: list[Part] = [Text(sentence) for sentence in first]
    if rows:
        more = ", and what else is known of them" if said[1:] else ""
        table = Table(("Table", "Constant", "By"), rows, "Keys by table", left=("By",))
        title = f"The constants of {several(len(rows), 'table')}{more}"
        parts.append(Fold(title, [*(Text(sentence) for sentence in said[1:]), table]))
    return [Section("Random numbers that add up", parts, level=3)]


def _conditions(summary: Mapping[str, Any]) -> list[Part]:
    said: list[Part] = [
        *(Text(sentence, ALARM) for sentence in settling(summary)),
        *(Text(sentence) for sentence in conditions(summary)),
    ]
    return [Section("What is not settled, and what conditional claims rest on", said, "conditions", level=3)] if said else []


def _held(summary: Mapping[str, Any], public: bool) -> list[Part]:
    parts: list[Part] = [Text(sentence) for sentence in not_listed(summary) or ["Nothing is held back."]]
    parts += [Text(sentence) for sentence in (*not_used(summary), *figures_used(summary))]
    failed = sum(table["verdict"] == "failed" for table in (summary.get("selfcheck") or {"tables": ()})["tables"])
    if failed:
        parts.append(
            Text(
                f"Likely claims of {several(failed, 'table')} are withheld, because the prior failed its self-check there. "
                "That is no sign of safety.",
                ALARM,
            )
        )
    left = ", ".join(f"{many:,} {why}" for why, many in summary["left_out"].items())
    parts.append(Text(f"Columns left out: {left}." if left else "", QUIET))
    notes = [] if public else summary["notes"][:MOST_NOTES]
    if notes:
        parts.append(Fold(f"{several(len(notes), 'note')} about the file", [Bullets(notes, QUIET)]))
    return [Section("What is not listed", parts, "held", level=3)]


def _areas(summary: Mapping[str, Any]) -> Iterator[Part]:
    if not audit.is_nested(summary):
        return
    heads = ("Areas in areas", "families", "linked", "columns that add up", "left out", "because")
    levels = Table(heads, audit.levels(summary["linked"]), "Levels of areas", left=("because",))
    heads = ("Method", "What it does", "areas", "likely counts", "mean error", "largest error")
    legend = (
        "Error: the distance between a count's distribution and the exact one (total variation), measured over many "
        "families for which the exact one is known. The column `method` of `findings.csv` names the method of each claim."
    )
    how = Table(heads, audit.methods(summary["linked"]), "Methods", left=("What it does",), legend=legend)
    title = "How probabilities were obtained, and how exact they are"
    said = [Text(sentence) for sentence in audit.nesting_sentences(summary)]
    parts: list[Part] = [*said, Fold("Which areas were linked", [levels]), Fold(title, [how])]
    yield Section("Areas within areas", parts, "areas", "Areas within areas")


def _method(summary: Mapping[str, Any], public: bool) -> Section:
    priors, nested = summary["priors"]["variants"], audit.is_nested(summary)
    rounding = (
        "assume that counts were rounded independently of each other."
        if rounded_independently(summary)
        else "account for the dependence between roundings that the check found where they can: see Assumptions."
    )
    likely = [
        "Model estimates: exact probabilities given all sums of an area at once, by message passing over the tree of "
        f"characteristics. They use the prior, and {rounding}"
    ]
    if len(priors) > 1:
        likely.append(
            f"A count is likely only if all {spelled(len(priors))} priors give it {share(summary['threshold'])} or more; "
            "counts that only some of them make likely are not listed, which does not make them safe."
        )
    if nested:
        likely.append("Where areas are linked, the sums of all of them are used, by methods that are not all exact.")
    said = {"Proved": PROVED, "Conditional": CONDITIONAL, "Likely": " ".join(likely)}
    said |= {kind.capitalize(): f"{MEANINGS[kind].capitalize()}." for kind in ("open", "given")}
    terms = Terms(list(said.items()))
    version = summary["unround"]
    made = (
        f"unround {version}{f' (page by {__version__})' if version != __version__ else ''}, file format {summary['format']}"
        f", threshold {share(summary['threshold'])}, prior {summary['prior']}."
    )
    command: list[Part] = [Code(summary["command"])] if summary["command"] and not public else []
    parts: list[Part] = [
        Fold("How each kind of claim is made", [terms]),
        Section("Responsible use", [Bullets(RESPONSIBLE, style="plain halves")], level=3),
        Section("How this was made", [Text(made), *command], level=3),
    ]
    return Section("Method, and responsible use", parts, "method", "Method and use")


PROVED = (
    "Bounds from every published count are carried through all sums until nothing changes. Where one value is left, it is "
    "the only one possible under every dataset consistent with the agency's documentation. Each proof has a certificate "
    "that an independent checker verified. It uses no probability and no prior."
)
CONDITIONAL = (
    "Proved, given an assumption the agency does not guarantee: that a population which may have been adjusted was not, "
    "that a sum suggested only by the data holds, or that counts next to an inconsistency are right."
)
RESPONSIBLE = (
    "All of this is about cells of published tables, never about persons. Do not link it with other data to identify "
    "anyone; licences such as Statistics Canada’s forbid it.",
    "Tell the agency before publishing findings about a real release, and give it time.",
    "Inferred values are not official counts, and must not be presented as such.",
    "A count that is not listed is not therefore safe: other tables and other knowledge were not considered.",
)
