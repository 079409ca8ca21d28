"""The views of an audit: each takes what was asked for, and returns a page. They hold no logic of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from unround.audits.certificates import proof_lines
from unround.errors import InputError
from unround.explanation.cell import Explanation, InferredArea
from unround.explanation.family import how_linked
from unround.show import audit, selfcheck
from unround.show import parts as doc
from unround.show.explain import SUMS, argued, likelihoods, others, published
from unround.show.maps import map_chart
from unround.show.page import html
from unround.show.report import SUSPECT, name_of
from unround.show.report import about as sections
from unround.show.site import with_query
from unround.show.strongest import suspects_table
from unround.show.words import (
    CLAIMS,
    INCONSISTENCIES,
    arithmetic,
    conclusion,
    count_to_quote,
    notice,
    product_named,
    several,
    share,
)
from unround.web.claims import SIZES
from unround.web.explorer import Explorer
from unround.web.lists import area_data, areas_table, cell_data, counts_table, finding_data, opened
from unround.web.maps import small_map
from unround.web.outline import UNNAMED, OutlineTable
from unround.web.page import (
    PER_PAGE,
    Asked,
    ListPart,
    Missing,
    Page,
    area_address,
    cell_address,
    crumbs,
    key_meant,
    meant,
    pager,
    whole,
)
from unround.web.structure import how_proposed
from unround.web.trial import LONGEST, MOST_CELLS

OF_SIZE = dict(zip(SIZES, ("of one or two", "of three to nine", "of ten or more", "zeros"), strict=True))
"""What findings of a size are called in a list."""
MOST_TABLES = 8
"""Tables that the start page names."""
MOST_LINES = 400
"""Lines of an area that are shown at once; a longer profile is shown one table at a time."""
STRONGEST = 6
"""Findings and areas that the start page names."""
MOST_LOOKED = 1000
"""Findings among which these are chosen."""


def start(asked: Asked) -> Page:
    """Show the verdict, and where to go from it."""
    explorer, summary = asked.explorer, asked.explorer.summary
    best = [finding_data(explorer, finding) for finding in explorer.claims.rows(strongest(explorer))]
    order = np.argsort(-explorer.area_weights, kind="stable")[:STRONGEST]
    riskiest = [area_data(explorer, int(row)) for row in order if explorer.by_area[row]]
    answer = {
        "verdict": " ".join(audit.verdict(summary)),
        "notice": notice(summary["product"]),
        "summary": summary,
        "strongest": best,
        "areas": riskiest,
    }
    steps = doc.Section(
        "What to do next", [doc.Bullets(audit.next_steps(summary, public=False), style="next")], style=doc.INLINE
    )
    by_value, drawn = summary["sensitive_claims"]["by_value"], small_map(explorer)
    first: list[doc.Part] = [doc.Text(" ".join(audit.verdict(summary)), doc.LEAD)]
    if best:
        beside = [with_query("/findings", {"size": finding["size"], "open": finding["address"]}) for finding in best]
        totals = [
            (f"{sum(by_value[size].values()):,} {named}", with_query("/findings", {"size": size}))
            for size, named in OF_SIZE.items()
            if sum(by_value[size].values())
        ]
        first.append(
            doc.Section(
                "Look at these first",
                [doc.Piece("rows", (best, beside)), doc.Piece("drawn"), doc.Links(totals, "onwards")],
                style=doc.INLINE,
            )
        )
    else:
        first += [
            steps,
            doc.Links([("Look for yourself:", ""), ("any area", "/areas"), ("the sums", "/structure")], between=" "),
        ]
    parts: list[doc.Part] = [
        doc.Side([first, [audit.picture(summary)]], "front"),
        doc.Section("To quote", [doc.Text(audit.to_quote(summary, name_of(summary)), doc.QUOTE)]),
    ]
    if drawn is not None:
        more = doc.Links([("A larger map, by rate and place", "/map")], "more")
        chart = map_chart(drawn, f"{drawn.caption}. Select an area to see its findings.")
        parts.append(doc.Section("Where they are", [doc.Piece("mapped", [html([chart])]), more]))
    if best:
        by_table, by_count = _breakdown(explorer)
        parts.append(doc.Side([by_table, [*by_count, steps]], "columns"))
        every = doc.Links([(f"All {several(summary['areas'], 'area')}, by their findings", "/areas")], "more")
        parts.append(doc.Section("Areas with the most findings", [areas_table(riskiest), every]))
    doubts = [*audit.not_listed(summary), selfcheck.in_short(summary), *selfcheck.withheld(summary)]
    title = "What is not in these lists" if best else "How far to trust this"
    parts.append(doc.Section(title, [doc.Text(sentence) for sentence in doubts]))
    parts.append(doc.Text(audit.against_truth(summary["truth"]) if "truth" in summary else "", "hint"))
    what = f"{several(summary['areas'], 'area')}, {several(summary['cells_published'], 'published count')}"
    sums = f"{several(summary['structure']['sums_kept'], 'sum')} per area"
    links = [(what, ""), (sums, "/structure"), ("What these values are, and what they rest on", "/about")]
    parts.append(doc.Links(links, "hint"))
    tone = next((kind for kind in CLAIMS if summary[kind]), "open")
    return Page("Overview", [doc.Section(audit.headline(summary), parts, level=1, tone=tone)], answer)


def _breakdown(explorer: Explorer) -> tuple[list[doc.Part], list[doc.Part]]:
    """Return how many findings there are, by table and by inferred count, each with where they are listed."""
    tables = {table.name: table.at for table in explorer.outline.tables}
    by_value = explorer.summary["sensitive_claims"]["by_value"]

    def listed(said: str, **chosen: object) -> doc.TableCell:
        return doc.TableCell(said, link=with_query("/findings", chosen) if said != "0" else "")

    blocks = [
        doc.TableRow([listed(name or UNNAMED, table=tables.get(name or UNNAMED)), f"{sum(row.values()):,}"], claims=row)
        for name, row in explorer.summary["by_block"].items()
    ]
    sizes = [
        [listed(named, size=size), *(listed(f"{by_value[size][kind]:,}", size=size, kind=kind) for kind in CLAIMS)]
        for size, named in SIZES.items()
    ]
    others = doc.Links([(f"All {len(tables):,} tables", "/structure")] if len(blocks) > MOST_TABLES else [], "more")
    by_table = doc.Table(("Table", "findings"), blocks[:MOST_TABLES], "By table")
    by_count = doc.Table(("Inferred count", *CLAIMS), sizes, "By inferred count", style="list small")
    return [doc.Section("By table", [by_table, others])], [doc.Section("By inferred count", [by_count])]


def strongest(explorer: Explorer) -> NDArray[np.int64]:
    """Return the findings to look at first: about counts of one or two, then others by rank; at most one of an area.

    No single area must fill them.
    """
    claims = explorer.claims
    head = np.concatenate([np.flatnonzero(claims.size == 0)[:MOST_LOOKED], np.flatnonzero(claims.size)[:MOST_LOOKED]])
    _, first = np.unique(claims.row[head], return_index=True)
    chosen = np.sort(first)[:STRONGEST]
    others = np.setdiff1d(np.arange(min(len(head), STRONGEST)), chosen)
    places: NDArray[np.int64] = head[np.concatenate([chosen, others])[:STRONGEST]]
    return places


def area(asked: Asked) -> Page:
    """Show one area: its findings, and all its counts, as published."""
    explorer, row = asked.explorer, _row(asked)
    seen, title = explorer.look(row), explorer.title(row)
    findings = [finding_data(explorer, finding) for finding in explorer.claims.rows(explorer.claims.of_area(row))]
    clashes = [clash.text for clash in seen.inferred.contradictions if clash.area == 0]
    place, claims = explorer.place(row), claims_by_table(explorer, row)
    counts, tables = _counts(asked, row, claims)
    answer = {"area": place, "findings": findings, "contradictions": clashes, "tables": tables}
    codes = " ".join(str(value) for name, value in place.items() if name not in ("name", "level", "within"))
    within = [place["level"], codes if codes != title else "", f"in {place['within']}" if place["within"] else ""]
    unlisted = int(explorer.by_area[row]) - len(findings)
    above = _above(explorer, row)
    sure = f"{several(sum(claims), 'count')} can be proved, or inferred at {share(explorer.summary['threshold'])} or more."
    parts: list[doc.Part] = [
        doc.Text(", ".join(filter(None, within)), "where"),
        doc.Text(sure if sum(claims) else "The sums reveal none of its counts.", doc.LEAD),
        *(doc.Text(f"Inconsistent published figures. {text}", "warning") for text in clashes),
        *(doc.Text(sentence, "hint") for sentence in how_linked(explorer.folder, seen.inferred, seen.rows)),
        doc.Text(f"{audit.zeros_unlisted(unlisted)}; the tables below mark them." if unlisted else "", "hint"),
        *([doc.Piece("findings_of_area", (findings, opened(asked)))] if findings else []),
        doc.Fold(
            f"All counts of this area, in {several(explorer.outline.size, 'line')}",
            [counts],
            "counts",
            style="all-counts",
            is_open=not findings or bool(asked.query.get("table")),
        ),
    ]
    around = [("Areas", "/areas"), *([(above["name"], above["address"])] if above else []), (title, "")]

    def table() -> list[dict[str, Any]]:
        cells = [cell for table in tables for line in table["lines"] for cell in line["cells"] if cell]
        return [{**place, **{k: v for k, v in cell.items() if k != "address"}} for cell in cells]

    return Page(title, [crumbs(around), doc.Section(title, parts, level=1)], answer, table, wide=True)


def _counts(asked: Asked, row: int, claims: list[int]) -> tuple[doc.Part, list[dict[str, Any]]]:
    """Return all counts of an area, or those of one table of a long profile: for its page, and as plain data."""
    explorer, tables = asked.explorer, asked.explorer.outline.tables
    everything = explorer.outline.size <= MOST_LINES
    wanted = range(len(tables)) if everything else [_table(asked, claims)]
    shown = [table_data(explorer, row, at) for at in wanted]
    offered = [
        (table.at, f"{table.name} ({several(findings, 'finding')})" if findings else table.name, table.at == wanted[0])
        for table, findings in zip(tables, claims, strict=True)
    ]
    several_priors = len(explorer.summary["priors"]["variants"]) > 1
    tree = shown, [] if everything else offered, area_address(explorer.codes[row]), several_priors
    return doc.Piece("trees", tree), shown


def cell(asked: Asked) -> Page:
    """Explain one cell; its JSON twin is what `unround explain --json` prints."""
    explorer, row, at = asked.explorer, _row(asked), _cell(asked)
    explained, seen, model = explorer.explain(row, at), explorer.look(row), explorer.folder.model
    column, code, place = model.columns[at], explorer.codes[row], explorer.place(row)
    table, line = explorer.outline.tables[explorer.outline.table_of[at]], explorer.lines[explorer.line_of[at]]
    variant = _variant(explorer, at)
    name = ", ".join(filter(None, (column.label, variant, explorer.title(row))))
    twins = [cell_data(explorer, row, seen, c) for c in line.cells if c is not None]
    where = [explorer.title(row), *([place["level"]] if place["level"] not in explorer.title(row) else [])]
    where += [f"in {place['within']}"] if place["within"] else []
    beside: list[doc.Part] = list(argued(explained, more=list(_proof(explorer, row, explained))))
    if len(twins) > 1:
        beside.append(doc.Section("By sex", [counts_table(twins, "By sex", column.key, "sex")]))
    drawn = [likelihoods(explained, name)] if explained.distribution and explained.kind != "given" else []
    same = [("The same count, where it is listed", cell_address(code, explained.same_as))] if explained.same_as else []
    parts: list[doc.Part] = [
        doc.Links([*((text, "") for text in where), (table.name, f"/structure/{table.at}")], "where"),
        doc.Text(conclusion(explained), doc.LEAD, explained.kind),
        doc.Text(published(explained)),
        doc.Links(same),
        doc.Text(count_to_quote(explained, name), doc.QUOTE),
        *(doc.Text(f"Inconsistent published figures. {text}", "warning") for text in explained.contradictions),
        doc.Side([drawn, beside], "columns"),
    ]
    if explained.others:
        parts.append(
            doc.Section("Other areas", list(others(explained, lambda at: cell_address(explorer.codes[at], column.key))))
        )
    sums: list[doc.Part] = []
    for e, shown in zip(model.touching[at], explained.sums, strict=True):
        members = [cell_data(explorer, row, seen, c) for c in model.members(e)]
        used = "" if shown.used else "not used"
        listed: list[doc.Part] = [counts_table(members, shown.sum, column.key), doc.Text(how_proposed(model, e), "hint")]
        sums.append(doc.Fold(f"{shown.sum}: {arithmetic(shown)}", listed, style="sum", is_open=True, aside=used))
    parts.append(doc.Section(SUMS, sums or [doc.Text("None: only its own published value says anything about it.")]))
    parts.append(doc.Section("Assumed", [doc.Bullets(explained.assumptions)]))
    around = crumbs([("Areas", "/areas"), (explorer.title(row), area_address(code)), (column.label, "")])
    heading = f"{column.label}, {variant}" if variant else column.label
    title = f"{column.label} · {explorer.title(row)}"
    return Page(title, [around, doc.Section(heading, parts, level=1)], explained.to_json())


def _proof(explorer: Explorer, row: int, explained: Explanation) -> Iterator[doc.Part]:
    """Name the cells that a proof speaks of by their keys, and lead to its certificate."""
    if explained.proof:
        model, code = explorer.folder.model, explorer.codes[row]
        keys = [step["cell"] for step in explained.proof["steps"]]  # those of other areas have names in the argument itself
        cells = {key: model.index[key] for key in keys if key in model.index}
        named = {key: [model.columns[at].label, _variant(explorer, at)] for key, at in cells.items()}
        yield doc.Terms([(key, ", ".join(filter(None, words))) for key, words in named.items()], "keys")
        address = f"{cell_address(code, explained.key, 'certificate')}.json"
        yield doc.Links([("The certificate as JSON", address), ("it can be checked without unround", "")], between="; ")


def _variant(explorer: Explorer, at: int) -> str:
    """Return the sex that a cell counts; nothing where tables are not by sex."""
    axes = explorer.folder.axes
    return explorer.folder.model.columns[at].codes[axes.index("sex")] if "sex" in axes and len(axes) > 1 else ""


def certificate(asked: Asked) -> Page:
    """Return the certificate of a proved cell, as it stands in proofs.jsonl.gz."""
    explorer, row, at = asked.explorer, _row(asked), _cell(asked)
    seen, axes = explorer.look(row), tuple(explorer.folder.area_axes)
    written = [certificate for certificate in seen.certificates if certificate.cell == at]
    if not written:
        raise Missing("this count is not proved, so there is no certificate.")
    return Page(
        "Certificate", [], next(proof_lines(explorer.folder.model, written, explorer.folder.areas[row : row + 1], axes))
    )


def contradictions(asked: Asked) -> Page:
    """List inconsistent published figures, and areas whose figures are possible but absurd."""
    explorer, axes = asked.explorer, asked.explorer.folder.area_axes
    part = ListPart.of(asked.query, explorer.contradictions.height)
    rows = explorer.contradictions[part.first : part.last].to_dicts()
    suspects = explorer.suspects.head(PER_PAGE).to_dicts() if part.number == 1 else []

    def where(row: dict[str, str]) -> doc.TableCell:
        code = "/".join(row[axis] for axis in axes)
        return doc.TableCell(explorer.title(explorer.row(code)), link=area_address(code))

    clashes: doc.Columns = [
        ("Area", where),
        ("What is inconsistent", lambda row: doc.TableCell(row["clash"], small=f"{row['sums']} {row['cells']}".strip())),
        ("Kind", lambda row: INCONSISTENCIES.get(row["kind"], (row["kind"],))[0]),
    ]
    parts: list[doc.Part] = [
        doc.Text(
            "Figures that cannot have come about as documented say nothing about anybody's true counts. They are set apart "
            "here, and make no findings.",
            "hint",
        ),
        doc.Section(
            "Inconsistencies: figures that cannot all be right",
            [
                doc.Text(audit.inconsistencies(explorer.summary), doc.LEAD),
                doc.tabulated(rows, clashes, "Inconsistencies", left=("What is inconsistent", "Kind")),
                pager(part, "/contradictions", {}),
            ],
        ),
    ]
    if suspects:
        table = suspects_table(suspects, where)
        more = doc.rest(explorer.suspects.height, len(suspects), "`suspects.csv` has them all")
        parts.append(doc.Section(SUSPECT, [doc.Text(audit.suspected(explorer.summary), doc.LEAD), table, more]))
    answer = {**part.to_json(), "contradictions": rows, "suspects": suspects, "suspects_total": explorer.suspects.height}
    return Page("Faults in the data", [doc.Section("Faults in the data", parts, level=1)], answer, lambda: rows)


def about(asked: Asked) -> Page:
    """Say what the values are, what they are not, and how they may be used."""
    summary, folder = asked.explorer.summary, str(asked.explorer.folder.path)
    names = ("unround", "command", "source", "product", "threshold", "prior_in_words", "priors", "population", "notes")
    kept = {name: summary[name] for name in names} | {"selfcheck": summary.get("selfcheck")}
    answer = {"notice": notice(summary["product"]), **kept}
    facts = {"Source": summary["source"], "Product": product_named(summary["product"]), "Folder": folder}
    programs = (
        "Every view is also available as JSON, at its address followed by `.json`, and lists also as CSV. "
        f"`unround serve {folder} --get /findings.json` prints one without a server."
    )
    parts: list[doc.Part] = [
        doc.Text(answer["notice"], doc.LEAD),
        doc.Section("This audit", [doc.Terms([(name, value) for name, value in facts.items() if value], "wide")], "verdict"),
        *sections(asked.explorer.folder),
        doc.Section("For programs", [doc.Text(programs)]),
    ]
    return Page("About these values", [doc.Section("About these values", parts, level=1)], answer)


# -- try it -----------------------------------------------------------------------------------------------------------

OFFERED = {
    "rounding:5": "random rounding to base 5 (Canada)",
    "rounding:3": "random rounding to base 3 (New Zealand)",
    "sample:5": "base 5, but 0 or 10 below 10 (Canada's sample data)",
    "graduated": "graduated random rounding",
    "nearest:5": "rounding to the nearest 5",
    "nearest:10": "rounding to the nearest 10",
    "laplace:1.45": "discrete Laplace noise, scale 1.45",
    "exact": "unrounded",
}
EXAMPLES = {
    "All parts proved": ("48! = 20 + 20 + 20", "rounding:5"),
    "Two solutions": ("87! = men: 35 + women: 45", "rounding:5"),
    "Base 3": ("6 = 6 + 6", "rounding:3"),
    "Ages, with a subdivision": (
        "110! = young: 30 + 65 + 10\nyoung = under_5: 10 + under_10: 10 + under_15: 10",
        "rounding:5",
    ),
    "Inconsistent numbers": ("60! = 20 + 20", "rounding:5"),
}


def try_it(asked: Asked) -> Page:
    """Solve what was typed; the JSON twin is what `unround solve --json` prints, and an error where there is one."""
    text, mechanism = asked.query.get("system", ""), asked.query.get("mechanism") or "rounding:5"
    if mechanism not in OFFERED:
        raise InputError(f"this page does not offer {mechanism!r}; choose one of {', '.join(OFFERED)}.")
    answer: dict[str, Any] = asked.bench.solve(text, mechanism) if text.strip() else {}
    solution, error = answer.get("solution"), answer.get("error", "")
    examples = {name: with_query("/try", {"system": system, "mechanism": how}) for name, (system, how) in EXAMPLES.items()}
    limits = {"longest": LONGEST, "most_cells": MOST_CELLS, "seconds": asked.bench.seconds}
    shown = Markup(answer.get("shown", ""))  # what the same process made of it, as a document
    form = doc.Piece("trial", (text, mechanism, OFFERED, examples, limits, error, shown))
    return Page("Try it", [form], solution or ({"error": error} if error else {}), status=422 if error else 200)


# -- what an address means --------------------------------------------------------------------------------------------


def _row(asked: Asked) -> int:
    try:
        return asked.explorer.row(meant(asked.path["code"]))
    except InputError as problem:
        raise Missing(str(problem)) from None


def _cell(asked: Asked) -> int:
    try:
        return asked.explorer.cell(key_meant(asked.path["key"]))
    except InputError as problem:
        raise Missing(str(problem)) from None


def _table(asked: Asked, claims: list[int]) -> int:
    """Return the table of an area that is wanted; unless said, the one with the most claims."""
    text = asked.query.get("table", "")
    if not text:
        return claims.index(max(claims))
    if (at := whole(text)) is None or at >= len(claims):
        raise Missing(f"there is no table {text[:20]}: this release has {len(claims):,}.")
    return at


def _above(explorer: Explorer, row: int) -> dict[str, Any] | None:
    """Return the area that an area lies in, if it is in the release."""
    areas = explorer.folder.areas
    parent = areas["parent"][row] if "parent" in areas.columns else None
    try:
        return area_data(explorer, explorer.row(str(parent))) if parent else None
    except InputError:
        return None  # the file names it, but does not hold it


def table_data(explorer: Explorer, row: int, table: int) -> dict[str, Any]:
    """Return one table of an area: one line per characteristic, one cell per sex."""
    seen, shown = explorer.look(row), explorer.outline.tables[table]
    parents, variants = shown.parents, explorer.outline.variants
    used = [k for k in range(len(variants)) if any(line.cells[k] is not None for line in shown.lines)]
    below = _claims_below(shown, seen)
    lines = [
        {
            "at": line.at,
            "label": line.label,
            "code": line.code,
            "level": line.level,
            "parent": line.parent,
            "has_parts": line.at in parents,
            "claims_below": below[line.at],
            "cells": [cell_data(explorer, row, seen, cell) if cell is not None else None for cell in picked],
        }
        for line in shown.lines
        for picked in ([line.cells[k] for k in used],)
    ]
    return {"at": table, "name": shown.name, "variants": [variants[k] for k in used], "lines": lines}


def _claims_below(table: OutlineTable, seen: InferredArea) -> dict[int, int]:
    """Return for every line how many claims stand under it: a folded table must not hide what it holds."""
    below = dict.fromkeys((line.at for line in table.lines), 0)
    for line in reversed(table.lines):  # children come after their parents
        claims = sum(bool(seen.inferred.claims.kinds[0, cell]) for cell in line.cells if cell is not None)
        if line.parent is not None:
            below[line.parent] += claims + below[line.at]
    return below


def claims_by_table(explorer: Explorer, row: int) -> list[int]:
    """Return how many claims each table of an area has."""
    numbers = [0] * len(explorer.outline.tables)
    for cell in (explorer.look(row).inferred.claims.kinds[0] > 0).nonzero()[0].tolist():
        numbers[explorer.outline.table_of[cell]] += 1
    return numbers
