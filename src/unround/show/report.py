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

from markupsafe import Markup

from unround._version import __version__
from unround.audits.findings import SMALL_FIRST
from unround.expectation import interval, surprise
from unround.job import AuditFolder
from unround.job.folder import PUBLIC_REPORT, REPORT
from unround.show import audit, charts, selfcheck
from unround.show import parts as doc
from unround.show.check import fit_in_words, rounded_independently
from unround.show.diff import FEWEST_AREAS, changed
from unround.show.maps import map_chart, map_of_report
from unround.show.page import page as html_page
from unround.show.strongest import MOST, Strong, first_contradictions, first_suspects, first_zeros, strongest
from unround.show.words import (
    CLAIMS,
    MEANINGS,
    block_named,
    by_several,
    due,
    few,
    notice,
    number,
    percent,
    product_named,
    rate,
    several,
    share,
    size_named,
    span_of,
    spelled,
    why_several,
)

MOST_BLOCKS, MOST_ROUTES, MOST_ZEROS, MOST_SUSPECTS, MOST_FAMILIES, MOST_CLASHES, MOST_NOTES = 8, 14, 40, 12, 10, 20, 12
"""Rows that are shown; the others are counted."""

SUMMARY_HAS = "`summary.json` has them all"

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
    "hidden.parquet": "the range of every count that was not published",
    "proofs.jsonl.gz": "a certificate for every proved count",
    "estimates.parquet": "an estimate of every count, with error bars",
    "summary.json": "the numbers above, and more",
}
"""What an audit writes, and what it is good for."""


def write_pages(folder: AuditFolder, **options: Any) -> tuple[Path, Path]:
    """Write both pages into an audit folder, replacing older ones; options as for `report`."""
    options["decision"] = options.get("decision") or audit.decision_of(folder)
    folder.put({REPORT: page(folder, **options), PUBLIC_REPORT: page(folder, public=True, **options)})
    return folder.path / REPORT, folder.path / PUBLIC_REPORT


def page(folder: AuditFolder, **options: Any) -> str:
    """Return the report of an audit as one HTML document."""
    return html_page(report(folder, **options))


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
) -> doc.Document:
    """Return everything that an audit has to say."""
    summary = folder.summary
    kinds = [] if public else [kind for kind in CLAIMS if summary[kind] and MOST[kind]]
    strong = {kind: findings for kind in kinds if (findings := strongest(folder, kind))}
    parts: list[doc.Part] = [_sheet(summary, strong, decision, public)]
    if diff is not None:
        since = f"What changed since {Path(diff['before']['path']).name}"
        parts.append(doc.Section(since, list(changed(diff, public=public)), "changed", "What changed"))
    parts += [_claims(summary), _risk(folder, public), *([_findings(folder, strong)] if strong else [])]
    parts += [_faults(folder, public), *_truth(summary, public)]
    parts += [*_grounds(summary, strong, public), _method(summary, public)]
    hidden = f" ({summary['areas_hidden']:,} without any count)" if summary["areas_hidden"] else ""
    facts = (
        f"{files_of(summary['source'])} · {several(summary['areas'], 'area')}{hidden} · "
        f"{several(summary['cells_published'], 'published count')} · "
        f"{several(summary['structure']['sums_kept'], 'sum')} per area"
    )
    title = title_of(summary)
    return doc.Document(
        title,
        parts,
        "Audit report, public version" if public else "Audit report: not for publication",
        facts,
        notice(summary["product"]),
        "report",
        contents=True,
        window=f"{'Public audit report' if public else 'Audit report'}: {title}",
    )


# -- the short form ---------------------------------------------------------------------------------------------------


def short(folder: AuditFolder, verbose: bool = False) -> doc.Document:
    """Say what was found, what it rests on and what to do next, in some 25 lines; with `verbose` everything, before that."""
    summary, decision = folder.summary, audit.decision_of(folder)
    footing = [
        replace(fact, what=fact.what.lower(), value=f"({fact.value})", said="", tone=TONES[fact.tone], anchor="")
        for fact in audit.footing(summary, decision)
    ]
    where = f"Of {several(summary['cells_published'], 'published count')} in {several(summary['areas'], 'area')}."
    counted: list[doc.Part] = [_by_value(summary, "inferred count", where), doc.Chart(_by_value_drawn(summary))]
    parts: list[doc.Part] = [
        doc.Text(audit.headline(summary), doc.LEAD),
        doc.Text("" if _kinds(summary) else f"{where} {audit.verdict(summary)[1]}"),
        doc.Facts(footing, "claim", "What this rests on"),
        *(counted if _kinds(summary) else []),
        doc.Text("\n".join(audit.conditions(summary))),
        doc.Text("\n".join([*audit.settling(summary), *audit.not_used(summary), *selfcheck.withheld(summary)]), doc.ALARM),
    ]
    score = summary.get("truth")
    if score is not None:
        parts.append(doc.Text(audit.against_truth(score), "wrong" if score["wrong"]["proved"] else ""))
    if verbose:
        parts += [part for part in report(folder, decision=decision).parts[1:] if isinstance(part, doc.Section)]
    else:
        also = [*audit.not_listed(summary), *audit.tables_in_words(summary), *audit.key_sentences(summary)[:1]]
        also += audit.figures_used(summary)
        also += [audit.inconsistencies(summary)] if summary["contradictions"] else []
        notes = len(summary["notes"])
        more = f" There {'is' if notes == 1 else 'are'} {several(notes, 'note')} about the file." if notes else ""
        whole = f"--verbose prints the whole report: by table, against chance, the strongest findings, assumptions.{more}"
        parts += [doc.Text("\n".join(also), doc.QUIET), doc.Only(doc.TERMINAL, [doc.Text(whole, doc.QUIET)])]
    parts.append(doc.Only(doc.TERMINAL, [_next(summary, public=False)]))
    if folder.run["started_anew"]:
        parts.append(doc.Text(f"Note: {folder.run['started_anew']}, so that everything was done again.", doc.QUIET))
    parts += [_first_claims(folder), doc.Text(notice(summary["product"]), doc.QUIET), _files(folder, verbose)]
    return doc.Document(title_of(summary), parts)


TONES = {audit.FINE: "", audit.DOUBT: doc.ALARM, audit.UNKNOWN: "strong"}
"""How the state of what claims rest on is printed."""


def _by_value(summary: Mapping[str, Any], first: str, legend: str = "") -> doc.Part:
    by_value = summary["sensitive_claims"]["by_value"]
    rows = [doc.TableRow([size_named(size), *(f"{by_value[size][kind]:,}" for kind in CLAIMS)]) for size in SMALL_FIRST]
    foot = doc.TableRow(["all", *(f"{summary[kind]:,}" for kind in CLAIMS)], "strong")
    return doc.Table((first, *CLAIMS), rows, first, foot=foot, legend=legend)


def _by_value_drawn(summary: Mapping[str, Any]) -> Markup:
    by_value = summary["sensitive_claims"]["by_value"]
    return charts.stacked_bars({size_named(size): by_value[size] for size in SMALL_FIRST}, "Claims by inferred count")


def _first_claims(folder: AuditFolder) -> doc.Part:
    """Return the first claims, for the card of a notebook."""
    findings = folder.first_findings(8)
    axes = findings.columns[: findings.columns.index("published")]  # what says where: codes and names
    columns: doc.Columns = [
        *((doc.TableColumn(axis, left=True), lambda row, axis=axis: str(row[axis] or "")) for axis in axes),
        ("published", "published"),
        ("inferred", "value"),
        ("probability at least", lambda row: percent(row["probability_low"])),
        (doc.TableColumn("", left=True), lambda row: doc.TableCell(row["kind"], badge=row["kind"])),
    ]
    more = folder.summary["listed"]["claims"] - findings.height
    title = f"The first claims{f'; {more:,} more in .findings' if more > 0 else ''}"
    table = doc.tabulated(findings.to_dicts(), columns, "The first claims")
    return doc.Fold(title, [table], only=doc.CARD) if table.rows else doc.Text("")


def _files(folder: AuditFolder, verbose: bool) -> doc.Part:
    """Say where to look next: what was written, and how to ask for the argument of the claim that matters most."""
    summary, path = folder.summary, str(folder.path)
    claims = any(summary[kind] for kind in CLAIMS)
    useful = {"contradictions.csv": summary["contradictions"], "suspects.csv": summary["suspect"]["areas"]}
    listed, in_csv = summary["listed"]["claims"], summary["listed"]["in_csv"]
    useful |= {"proofs.jsonl.gz": claims, "findings.csv": listed, "hidden.parquet": summary["hidden"]["counts"]}
    aside = ("hidden.parquet", "proofs.jsonl.gz", "estimates.parquet", "summary.json")
    useful |= {} if verbose else dict.fromkeys(aside, False)
    first = f"the first {in_csv:,} of {listed:,} claims; findings.parquet has all"
    said = FILES | ({"findings.csv": first} if listed > in_csv else {})
    files = [(name, what) for name, what in said.items() if (folder.path / name).exists() and useful.get(name, True)]
    commands = [["unround", "serve", path, "--open"]]
    axes, areas = folder.axes, folder.area_axes
    for row in folder.first_findings(1).to_dicts() if len(areas) == 1 else ():
        if axes == ["characteristic_id", "sex"]:
            cell = [str(row["characteristic_id"]), *([] if row["sex"] == "total" else ["--sex", row["sex"]])]
        else:
            codes = tuple(row[axis] for axis in axes)
            cell = [next(column.key for column in folder.model.columns if column.codes == codes)]
        commands.insert(0, ["unround", "explain", path, str(row[areas[0]]), *cell])
    return doc.Files(f"{path}/", files, [shlex.join(command) for command in commands])


# -- the first page ---------------------------------------------------------------------------------------------------


def _sheet(
    summary: Mapping[str, Any], strong: Mapping[str, Sequence[Strong]], decision: str | None, public: bool
) -> doc.Section:
    left: list[doc.Part] = [
        doc.Text(" ".join(audit.verdict(summary)), doc.LEAD),
        doc.Section("For example", audit.example(strong), level=3),
        _next(summary, public=public),
        doc.Section("To quote", [doc.Text(audit.to_quote(summary, name_of(summary)), doc.QUOTE)], level=3),
    ]
    status = (
        "Public version. It names no area and shows no inferred value, so it can be shared while the agency decides what to "
        "do. The full report, with findings and proofs, stays with those who need it."
        if public
        else f"Not for publication. This page {'shows inferred values for' if summary['by_block'] else 'may name'} single "
        "areas. To share the result, use `report-public.html`, and tell the agency first."
    )
    parts: list[doc.Part] = [
        doc.Facts(audit.footing(summary, decision), "footing", "What the claims rest on"),
        doc.Side([left, [audit.picture(summary)]], "front"),
        doc.Text(status, "status" if public else "status alarm"),
        doc.Text(notice(summary["product"]), "made"),
    ]
    tone = next((kind for kind in CLAIMS if summary[kind]), "open")
    return doc.Section(audit.headline(summary), parts, "verdict", "In short", style="sheet", tone=tone)


def _next(summary: Mapping[str, Any], *, public: bool) -> doc.Part:
    return doc.Section("What to do next", [doc.Bullets(audit.next_steps(summary, public=public), style="next")], level=3)


# -- claims by table, and next to chance ------------------------------------------------------------------------------


def _kinds(summary: Mapping[str, Any]) -> list[str]:
    return [kind for kind in CLAIMS if summary[kind]]


def _claims(summary: Mapping[str, Any]) -> doc.Section:
    chance, kinds = summary["chance_by_block"], _kinds(summary)
    parts: list[doc.Part] = [doc.Text("No table reveals a count.")]
    if summary["by_block"]:
        meant = {**MEANINGS, "likely": audit.likely_means(summary)}
        lines = []
        for name, numbers in summary["by_block"].items():
            alone = chance.get(name) or {"groups": 0}
            beside = [f"{alone['proved']:,}", rate(alone["proved_expected"])] if alone["groups"] else ["–", "–"]
            lines.append(doc.TableRow([block_named(name, chance), *_numbers(kinds, numbers), *beside], claims=numbers))
        silent = sum(name not in summary["by_block"] for name in chance)
        parts = [
            doc.Facts([doc.Fact(kind, f"{summary[kind]:,}", meant[kind], kind) for kind in CLAIMS], "tiles"),
            doc.Text(
                "For each table, what is claimed; and how many of its sums have only one solution on their own, next to the "
                "number expected by chance."
            ),
            _limited(("Table", *kinds, "proofs from one sum", "by chance"), lines, MOST_BLOCKS, kinds, "more tables"),
            doc.Text(f"{several(silent, 'table reveals', 'tables reveal')} nothing." if silent else "", doc.QUIET),
        ]
    return doc.Section(
        "Findings by table, compared with chance", [*parts, *_families(summary)], "claims", "Findings by table"
    )


def _numbers(kinds: Sequence[str], row: Mapping[str, Any]) -> list[str]:
    return [f"{row[kind]:,}" for kind in kinds]


def _limited(heads: Sequence[str], lines: Sequence[doc.TableRow], most: int, kinds: Sequence[str], more: str) -> doc.Part:
    """Keep the first rows, and sum up the others."""
    left = [line.claims or {} for line in lines[most:]]
    sums = {kind: sum(row[kind] for row in left) for kind in kinds}
    foot = doc.TableRow([f"{len(left):,} {more}", *_numbers(kinds, sums)]) if left else None
    return doc.Table(heads, lines[:most], f"Claims by {heads[0].lower()}", foot=foot)


def _families(summary: Mapping[str, Any]) -> Iterator[doc.Part]:
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
    note = "single sums that prove all their counts, by kind; diamond: found; grey: the range of chance, 99 times in 100"
    chart = [doc.Chart(charts.against_chance(drawn), "", note)] if drawn else []
    proved, expected = (sum(family[name] for family in met) for name in ("proved", "proved_expected"))
    predicted = rate(expected) if expected == 0 or expected >= 0.05 else "fewer than 0.1"
    odd = [
        f"{family['family']}: {family['proved']:,} found, {family['proved_expected']:,.1f} predicted"
        for family in met
        if surprise(family["proved"], family["proved_expected"]) < 1 - CHANCE
    ]
    fitting = "No kind of sum departs from what chance predicts."
    columns: doc.Columns = [
        ("Kind of sum", "family"),
        ("sums", "groups"),
        ("proved", "proved"),
        ("by chance", lambda family: rate(family["proved_expected"])),
        ("likely", "strong"),
        ("by chance", lambda family: rate(family["strong_expected"])),
    ]
    table = doc.tabulated(met[:MOST_FAMILIES], columns, "Single sums compared with chance")
    folded: list[doc.Part] = [
        doc.Text(
            "Random rounding alone makes some sums reveal all their counts; how often depends on the number of parts and "
            f"the kind of total. Here {f'{proved:,}' if proved else 'no'} {'sum does' if proved <= 1 else 'sums do'}; "
            f"chance predicts {predicted}. This covers only sums whose counts are all well above 0; there is no such "
            "benchmark for claims that combine several sums."
        ),
        doc.Text("By chance, a number this far off occurs less than once in a hundred times for:" if odd else fitting),
        doc.Bullets(odd[:MOST_FAMILIES]),
        table,
        doc.rest(len(met), MOST_FAMILIES, SUMMARY_HAS),
    ]
    fold = doc.Fold(f"{several(len(table.rows), 'kind of sum', 'kinds of sums')}, compared with chance", folded)
    proofs = several(proved, "single sum proves its counts", "single sums prove their counts")
    title = f"{proofs if proved else 'No single sum proves its counts'}; chance predicts {rate(expected)}"
    yield doc.Section(title, [*chart, fold], level=3)


# -- where the risk sits ----------------------------------------------------------------------------------------------


def _risk(folder: AuditFolder, public: bool) -> doc.Section:
    summary, parts, drawn = folder.summary, list[doc.Part](), None if public else map_of_report(folder)
    if drawn is not None:
        parts.append(map_chart(drawn, drawn.caption))
    if not summary["by_block"]:
        parts.append(doc.Text("Nothing is claimed, so there is nothing to break down. That rests on the assumptions below."))
        return doc.Section("Where the risk is", parts, "risk", "Where the risk is")
    few, kinds, sensitive = public and summary["areas"] < FEWEST_AREAS, _kinds(summary), summary["sensitive_claims"]
    parts.append(doc.Side([_sizes(summary), [] if few else _values(summary)]))
    zeros, whole = sensitive["zeros_proved"], sensitive["parts_proved_to_be_their_total"]
    if few:
        said = "With so few areas, how claims spread over counts would nearly reveal the counts; it is in the full report."
        parts.append(doc.Text(said, doc.QUIET))
    elif zeros or whole:
        parts.append(
            doc.Text(
                f"{several(zeros, 'zero is', 'zeros are')} proved: nobody there has that property. "
                f"{several(whole, 'part is', 'parts are')} proved to equal their total: everybody there has it."
            )
        )
    lines = [doc.TableRow([name, *_numbers(kinds, row)], claims=row) for name, row in summary["by_route"].items()]
    how = doc.Text("How many sums a proof combines. Arguments of several steps reveal counts that no single sum does.")
    parts.append(doc.Fold("By kind of argument", [how, _limited(("Argument", *kinds), lines, MOST_ROUTES, kinds, "more")]))
    return doc.Section("Where the risk is", parts, "risk", "Where the risk is")


def _sizes(summary: Mapping[str, Any]) -> list[doc.Part]:
    """Return claims by the size of their area, and their number per 1,000 counts, published or suppressed."""
    rows = {size_named(name): row for name, row in summary["by_area_size"].items() if row["areas"]}
    if not rows:
        return []
    rates = {size: {kind: 1000 * row[kind] / max(1, row["cells"]) for kind in CLAIMS} for size, row in rows.items()}
    sums = {size: sum(row.values()) for size, row in rates.items()}
    most = max(sums, key=lambda size: sums[size])
    caption = f"Areas of {most} give most away: {rate(sums[most])} of 1,000 counts" if sums[most] else "Nothing is claimed"
    if len(sums) == 1 and sums[most]:
        caption = f"All areas are of one size; {rate(sums[most])} of 1,000 counts are given away"
    drawn = charts.stacked_bars(rates, "Claims per 1,000 counts by size of area", digits=1)
    lines = [[size, f"{row['areas']:,}", *_numbers(_kinds(summary), row)] for size, row in rows.items()]
    table = doc.Table(("Size of area", "areas", *_kinds(summary)), lines, "Claims by size of area")
    note = "claims per 1,000 counts, by the area's largest published count"
    return [doc.Chart(drawn, caption, note), doc.Fold("The numbers by size of area", [table])]


def _values(summary: Mapping[str, Any]) -> list[doc.Part]:
    """Return claims by the count that is claimed: how many are zeros, and how many of one or two people."""
    sizes = {size: sum(row.values()) for size, row in summary["sensitive_claims"]["by_value"].items()}
    small, claims = sizes["1-2"], sum(sizes.values())
    caption = f"{percent(sizes['0'] / (claims or 1))} of the claims are zeros" if sizes["0"] else "No claim is a zero"
    caption += f"; {several(small, 'is a count', 'are counts') if small else 'none is a count'} of one or two"
    table = doc.Fold("The numbers by inferred count", [_by_value(summary, "Inferred count")])
    caption = caption if claims else "Nothing is claimed"
    return [doc.Chart(_by_value_drawn(summary), caption, "number of claims, by inferred count"), table]


# -- the strongest findings -------------------------------------------------------------------------------------------


def _findings(folder: AuditFolder, strong: Mapping[str, Sequence[Strong]]) -> doc.Section:
    summary = folder.summary
    parts: list[doc.Part] = [
        doc.Text(
            "Small counts come first, zeros last; one finding stands for all that rest on the same sums of an area. In each "
            "argument, A is the count in question. Claims are in `findings.csv`, all proofs in `proofs.jsonl.gz`; `unround "
            "explain` gives the argument for any count."
        )
    ]
    for kind, cards_of in strong.items():
        why = doc.Text(why_several(summary["priors"]["variants"]) if kind == "likely" else "")
        cards = doc.Frame([doc.Frame(_card(finding), f"card {kind}", "li") for finding in cards_of], "cards", "ol")
        parts.append(doc.Section(f"{kind.capitalize()}: {len(cards_of)} of {summary[kind]:,}", [why, cards], level=3))
    zeros = summary["sensitive_claims"]["by_value"]["0"]["likely"] - summary["zeros_not_listed"]
    if zeros:
        shown = first_zeros(folder, MOST_ZEROS)
        more = f" The first {len(shown)}; all of them are at the end of `findings.csv`." if zeros > len(shown) else ""
        table = doc.Table(("Area", "Count", "published", "probability of 0"), shown, "Likely zeros", left=("Count",))
        said = doc.Text(f"Nobody is counted there, if the claim is right.{more}")
        parts.append(doc.Fold(several(zeros, "likely zero"), [said, table], "zeros"))
    return doc.Section("The strongest findings, with their arithmetic", parts, "findings", "Strongest findings")


def _card(strong: Strong) -> list[doc.Part]:
    """Return a finding: what is claimed, where, and the argument for it."""
    row, kind = strong.finding, strong.finding["kind"]
    where = [strong.area or strong.code, *([strong.code] if strong.area else []), *([strong.table] if strong.table else [])]
    must = {"proved": "must be", "conditional": "must be, on this condition", "likely": "most likely"}[kind]
    facts = {"published": "nothing" if row["published"] is None else number(row["published"]), must: number(row["value"])}
    if kind == "likely" and by_several(row):
        said = {"at least": "probability_low", "on average": "probability", "highest found": "probability_high"}
        facts |= {what: percent(row[name]) for what, name in said.items()}
    elif kind == "likely":
        facts["probability"] = percent(row["probability"])
    facts |= {"possible": span_of(row)} if kind == "likely" else {}
    facts |= {"condition": row["assumptions"]} if kind == "conditional" else {}
    title = "The argument" if kind != "likely" else "The argument, and how likely each count is"
    claim = doc.Facts([doc.Fact(what, value) for what, value in facts.items()], "claim")
    fold = doc.Fold(
        title, [doc.Text(due(row), doc.QUIET), doc.Side([_argument(strong, kind == "likely"), _evidence(strong)], "two")]
    )
    return [doc.Section(strong.what, [doc.Text(" · ".join(where), "where"), claim], level=4), fold]


def _argument(strong: Strong, likely: bool) -> list[doc.Part]:
    title = "Totals that include this count" if likely else f"The argument, from {few(strong.sums, 4)}"
    left = f"{strong.more_steps} more {'sums' if likely else 'steps'} are not shown." if strong.more_steps else ""
    parts: list[doc.Part] = [
        doc.Section(title, [doc.Bullets(strong.steps, style="steps"), doc.Text(left, doc.QUIET)], level=5)
    ]
    if strong.others:
        parts.append(doc.Section("Other areas", [doc.Bullets(strong.others)], level=5))
    grown = [[step, percent(p)] for step, p in strong.growth]
    return [*parts, doc.Table((f"How probable {number(strong.finding['value'])} becomes", ""), grown, style="small")]


def _evidence(strong: Strong) -> list[doc.Part]:
    parts, finding = list[doc.Part](), strong.finding
    if strong.distribution:
        drawn = charts.histogram(
            strong.distribution, name=strong.what, kind=finding["kind"], published=finding["published"], height=120
        )
        parts.append(doc.Section("How likely each count is", [doc.Chart(drawn)], level=5))
    heads = (doc.TableColumn("cell", left=True), "what it counts", "published")
    table = doc.Table(heads, strong.cells, "Cells", left=("what it counts",), style="small letters")
    return [*parts, table, doc.Text(f"and {strong.more_cells:,} more cells." if strong.more_cells else "", doc.QUIET)]


# -- faults -----------------------------------------------------------------------------------------------------------


def _faults(folder: AuditFolder, public: bool) -> doc.Section:
    summary = folder.summary
    clashes, suspect = summary["contradictions"], summary["suspect"]
    left: list[doc.Part] = [doc.Text(audit.inconsistencies(summary))]
    if clashes:
        aside = "No true counts could have been published in this way: the sums in question are left out for that area."
        left.append(doc.Text(aside))
        if not public:
            title = f"Which figures: {several(clashes, 'inconsistency', 'inconsistencies')}"
            left.append(doc.Fold(title, first_contradictions(folder, MOST_CLASHES), "clashes"))
    columns: list[list[doc.Part]] = [[doc.Section("Figures that cannot all be right", left, "contradictions", level=3)]]
    if suspect["areas"]:
        columns.append([doc.Section(SUSPECT, _suspects(folder, public), "suspects", level=3)])
    return doc.Section("Faults in the data", [doc.Side(columns)], "faults", "Faults in the data")


SUSPECT = "Suspect data: possible, but absurd"


def _suspects(folder: AuditFolder, public: bool) -> list[doc.Part]:
    suspect, said = folder.summary["suspect"], doc.Text(audit.suspected(folder.summary))
    if public:
        return [said]
    title = f"Which figures: {several(suspect['areas'], 'area')}"
    return [said, doc.Fold(title, first_suspects(folder, MOST_SUSPECTS), "absurd")]


# -- the truth --------------------------------------------------------------------------------------------------------


def _truth(summary: Mapping[str, Any], public: bool) -> Iterator[doc.Part]:
    """Say how claims compare with the truth, if it was given."""
    score = summary.get("truth")
    if score is None:
        return
    failed, checked, wrong = score["assumption_failed"], score["checked"], score["wrong"]
    lines = [
        [kind, f"{checked[kind]:,}", f"{wrong[kind]:,}", percent(1 - wrong[kind] / checked[kind])]
        for kind in _kinds(summary)
        if checked[kind]
    ]
    parted = [
        [name, percent(part["all"]["stated"]), percent(part["all"]["right"]), _points(part["all"])]
        for name, part in score["by_part"].items()
        if part["all"]["cells"]
    ]
    left: list[doc.Part] = [
        doc.Text(
            "Every claim was compared with the unrounded table. No proved claim may be wrong; likely ones should be right "
            "as often as they state."
        ),
        doc.Table(("Claims", "checked", "wrong", "right"), lines, "Claims compared with the truth"),
        doc.Table(("Likeliest counts", "stated", "right", "off"), parted, "Totals and parts compared with the truth"),
    ]
    bands = [band for band in score["calibration"].get("findings", []) if band["claims"]]
    right: list[doc.Part] = []
    if bands:
        drawn = charts.reliability(
            {"": ("likely", [{**band, **charts.wilson(band["right"], band["claims"])} for band in bands])},
            "stated probability",
            "share that is right",
        )
        best = max(bands, key=lambda band: int(band["claims"]))
        stated = f"Of {several(best['claims'], 'claim')} stated at {percent(best['stated'])} on average"
        note = "each point is a band of stated probability; bars: 95% sampling error"
        right.append(doc.Chart(drawn, f"{stated}, {percent(best['right'])} are right", note))
    parts: list[doc.Part] = [
        doc.Text(f"An assumption failed: {failed}." if failed else "", doc.ALARM),
        doc.Side([left, right]),
    ]
    if score["claims_by_value"]:
        parts.append(doc.Fold("Likely claims, by the count claimed", selfcheck.claims_parts(score["claims_by_value"])))
    if score["proved_wrong"] and not public:
        wrongs = [", ".join(f"{name} {value}" for name, value in claim.items()) for claim in score["proved_wrong"]]
        parts.append(doc.Section("Proved claims that are wrong", [doc.Bullets(wrongs)], level=3))
    yield doc.Section("Compared with the truth", parts, "truth", "Compared with the truth")


def _points(part: Mapping[str, Any]) -> str:
    """Return the share that was right less what was stated, in points."""
    off = round(100 * (part["right"] - part["stated"]), 1) + 0.0  # no negative zero
    return f"{off:+.1f}".replace("-", "−") if off else "0.0"


# -- assumptions and method -------------------------------------------------------------------------------------------


def about(folder: AuditFolder) -> list[doc.Part]:
    """Return what the values of an audit rest on, for the explorer: the sections of the report on it."""
    method = _method(folder.summary, public=False)
    return [method, *_grounds(folder.summary, {}, public=False), _faults(folder, public=True)]


def _grounds(summary: Mapping[str, Any], strong: Mapping[str, Any], public: bool) -> list[doc.Part]:
    return [_assumed(summary, strong, public), *selfcheck.parts(summary), *_areas(summary)]


def _assumed(summary: Mapping[str, Any], strong: Mapping[str, Any], public: bool) -> doc.Section:
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
    check = summary["check"]
    unfit = [family for family in (check or {"families": ()})["families"] if family["verdict"] != "fits"]
    parts: list[doc.Part] = [
        doc.Terms(
            [
                ("How counts were published", "\n".join(mechanisms)),
                ("Which sums hold", " ".join([sums, *audit.tables_in_words(summary)])),
                ("Exact counts", POPULATION[summary["population"]]),
                ("Prior (for likely counts only)", f"{summary['prior_in_words']}.{why}"),
                ("Do the data fit these assumptions?", doc.Text(fit_in_words(check), doc.ALARM if unfit else "")),
            ],
            "wide",
            {"Do the data fit these assumptions?": "check"},
        )
    ]
    if unfit:
        odd = [
            (f"{family['family']} ({family['verdict']})", "" if public else family["note"]) for family in unfit[:MOST_BLOCKS]
        ]
        families = several(len(unfit), "family of sums that does", "families of sums that do")
        parts.append(doc.Fold(f"{families} not fit", [doc.Bullets(odd), doc.rest(len(unfit), MOST_BLOCKS, SUMMARY_HAS)]))
    said = audit.settling(summary), audit.conditions(summary)
    texts = [*(doc.Text(sentence, doc.ALARM) for sentence in said[0]), *map(doc.Text, said[1])]
    title = "What is not settled, and what conditional claims rest on"
    unsettled: list[doc.Part] = [doc.Section(title, texts, "conditions", level=3)]
    return doc.Section(
        "Assumptions, and whether the data support them",
        [*parts, doc.Side([_keys(summary), unsettled if any(said) else [], _held(summary, public)])],
        "assumed",
        "Assumptions",
    )


def _keys(summary: Mapping[str, Any]) -> list[doc.Part]:
    said, rows = audit.key_sentences(summary), audit.key_rows(summary)
    if not said:
        return []
    first = said[:1] if rows else said
    parts: list[doc.Part] = [doc.Text(sentence) for sentence in first]
    if rows:
        more = ", and what else is known of them" if said[1:] else ""
        table = doc.Table(("Table", "Constant", "By"), rows, "Keys by table", left=("By",))
        title = f"The constants of {several(len(rows), 'table')}{more}"
        parts.append(doc.Fold(title, [*(doc.Text(sentence) for sentence in said[1:]), table]))
    return [doc.Section("Random numbers that add up", parts, level=3)]


def _held(summary: Mapping[str, Any], public: bool) -> list[doc.Part]:
    parts: list[doc.Part] = [doc.Text(sentence) for sentence in audit.not_listed(summary) or ["Nothing is held back."]]
    parts += [doc.Text(sentence) for sentence in (*audit.not_used(summary), *audit.figures_used(summary))]
    left = ", ".join(f"{many:,} {why}" for why, many in summary["left_out"].items())
    parts.append(doc.Text(f"Columns left out: {left}." if left else "", doc.QUIET))
    notes = [] if public else summary["notes"][:MOST_NOTES]
    if notes:
        parts.append(doc.Fold(f"{several(len(notes), 'note')} about the file", [doc.Bullets(notes, doc.QUIET)]))
    return [doc.Section("What is not listed", parts, "held", level=3)]


def _areas(summary: Mapping[str, Any]) -> Iterator[doc.Part]:
    if not audit.is_nested(summary):
        return
    linked = summary["linked"]
    by_level: doc.Columns = [
        ("Areas in areas", lambda level: f"{level['child'] or 'areas'} in {level['parent'] or 'areas'}"),
        ("families", "parents"),
        ("linked", "used"),
        ("columns that add up", "columns"),
        ("left out", lambda level: f"{sum(level['rejected'].values()):,}"),
        ("because", lambda level: "; ".join(f"{many:,}: {why}" for why, many in level["rejected"].items()) or "–"),
    ]
    by_method: doc.Columns = [
        ("Method", "name"),
        ("What it does", "sentence"),
        ("areas", lambda method: f"{linked['areas_by_method'][method['name']]:,}"),
        ("likely counts", lambda method: f"{linked['likely_by_method'].get(method['name'], 0):,}"),
        ("mean error", lambda method: percent(method["mean"]) if method["mean"] else "exact"),
        ("largest error", lambda method: percent(method["worst"]) if method["worst"] else "exact"),
    ]
    used = [method for method in linked["methods"] if linked["areas_by_method"].get(method["name"])]
    legend = (
        "Error: the distance between a count's distribution and the exact one (total variation), measured over many "
        "families for which the exact one is known. The column `method` of `findings.csv` names the method of each claim."
    )
    parts: list[doc.Part] = [
        *(doc.Text(sentence) for sentence in audit.nesting_sentences(summary)),
        doc.Fold(
            "Which areas were linked", [doc.tabulated(linked["levels"], by_level, "Levels of areas", left=("because",))]
        ),
        doc.Fold(
            "How probabilities were obtained, and how exact they are",
            [doc.tabulated(used, by_method, "Methods", left=("What it does",), legend=legend)],
        ),
    ]
    yield doc.Section("Areas within areas", parts, "areas", "Areas within areas")


def _method(summary: Mapping[str, Any], public: bool) -> doc.Section:
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
    terms = doc.Terms(list(said.items()))
    version = summary["unround"]
    made = (
        f"unround {version}{f' (page by {__version__})' if version != __version__ else ''}, file format {summary['format']}"
        f", threshold {share(summary['threshold'])}, prior {summary['prior']}."
    )
    command: list[doc.Part] = [doc.Code(summary["command"])] if summary["command"] and not public else []
    parts: list[doc.Part] = [
        doc.Fold("How each kind of claim is made", [terms]),
        doc.Section("Responsible use", [doc.Bullets(RESPONSIBLE, style="plain halves")], level=3),
        doc.Section("How this was made", [doc.Text(made), *command], level=3),
    ]
    return doc.Section("Method, and responsible use", parts, "method", "Method and use")


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
