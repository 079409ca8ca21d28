"""The views of an audit: each takes what was asked for, and returns a page. They hold no logic of their own."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from unround.audits.certificates import proof_lines
from unround.errors import InputError
from unround.explanation.cell import Explanation, InferredArea
from unround.explanation.family import how_linked
from unround.show import selfcheck
from unround.show.audit import next_steps, picture, to_quote
from unround.show.charts import histogram, shown_part
from unround.show.page import html
from unround.show.report import about as sections
from unround.show.report import against_truth, name_of
from unround.show.words import (
    CLAIMS,
    INCONSISTENCIES,
    ORIGINS,
    again,
    arithmetic,
    conclusion,
    count_to_quote,
    growth,
    headline,
    inconsistencies,
    not_listed,
    notice,
    verdict,
)
from unround.web.claims import SIZES
from unround.web.explorer import Explorer
from unround.web.lists import area_data, cell_data, finding_data, opened
from unround.web.maps import small_map
from unround.web.outline import UNNAMED, OutlineTable
from unround.web.page import PER_PAGE, Asked, Missing, Page, Part, area_address, cell_address, key_meant, meant, with_query
from unround.web.structure import map_of, shapes, sum_data, sums_by_table
from unround.web.trial import LONGEST, MOST_CELLS

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
    names = {table.name: table.at for table in explorer.outline.tables}
    blocks = [
        {"name": name or UNNAMED, "table": names.get(name or UNNAMED), "claims": numbers}
        for name, numbers in summary["by_block"].items()
    ]
    more = {
        "best": best,
        "riskiest": riskiest,
        "blocks": blocks,
        "largest": max((sum(block["claims"].values()) for block in blocks), default=1),
        "tables": len(explorer.outline.tables),
        "sizes": SIZES,
        "headline": headline(summary),
        "tone": next((kind for kind in CLAIMS if summary[kind]), ""),
        "picture": html(picture(summary)),
        "next_steps": next_steps(summary, public=False),
        "against_truth": against_truth(summary["truth"]) if "truth" in summary else "",
        "quote_text": to_quote(summary, name_of(summary)),
        "map": small_map(explorer),
        "doubts": [
            *not_listed(summary),
            *([selfcheck.in_short(summary)] if "selfcheck" in summary else []),
            *selfcheck.withheld(summary),
        ],
    }
    answer = {
        "verdict": " ".join(verdict(summary)),
        "notice": notice(summary["product"]),
        "summary": summary,
        "strongest": best,
    }
    return Page("explorer/start.html", "Overview", answer | {"areas": riskiest}, more)


def strongest(explorer: Explorer) -> NDArray[np.int64]:
    """Return the findings to look at first: about counts of one or two, then others by rank; at most one of an area.

    No single area must fill them.
    """
    claims = explorer.claims
    head = np.concatenate([np.flatnonzero(claims.size == 0)[:MOST_LOOKED], np.flatnonzero(claims.size)[:MOST_LOOKED]])
    _, first = np.unique(claims.row[head], return_index=True)
    chosen = np.sort(first)[:STRONGEST]
    rest = np.setdiff1d(np.arange(min(len(head), STRONGEST)), chosen)
    places: NDArray[np.int64] = head[np.concatenate([chosen, rest])[:STRONGEST]]
    return places


def area(asked: Asked) -> Page:
    """Show one area: its findings, and all its counts, as published or by risk."""
    explorer, row = asked.explorer, _row(asked)
    outline, sort = explorer.outline, asked.query.get("sort") or "published"
    seen, claims = explorer.look(row), claims_by_table(asked.explorer, row)
    findings = [finding_data(explorer, finding) for finding in explorer.claims.rows(explorer.claims.of_area(row))]
    answer: dict[str, Any] = {"area": explorer.place(row), "sort": sort, "findings": findings}
    more: dict[str, Any] = {
        "open": opened(asked),
        "whole": bool(asked.query.get("sort") or asked.query.get("table")),
        "telling": [finding for finding in findings if finding["value"]],
        "zeros": [finding for finding in findings if not finding["value"]],
        "unlisted": int(explorer.by_area[row]) - len(findings),
        "row": row,
        "variants": outline.variants,
        "claims": claims,
        "everything": outline.size <= MOST_LINES,
        "outline": outline,
        "contradictions": [clash.text for clash in seen.inferred.contradictions if clash.area == 0],
        "linked": how_linked(explorer.folder, seen.inferred, seen.rows),
        "above": _above(explorer, row),
    }
    if sort == "risk":
        order = by_risk(explorer, row)
        part = Part.of(asked.query, len(order), 2 * PER_PAGE)
        cells = [cell_data(explorer, row, seen, cell) for cell in order[part.first : part.last]]
        answer |= {**part.to_json(), "cells": cells}
        more |= {"part": part, "parameters": {"sort": "risk"}}
    elif sort == "published":
        wanted = range(len(outline.tables)) if more["everything"] else [_table(asked, claims)]
        tables = [table_data(explorer, row, at) for at in wanted]
        cells = [cell for table in tables for line in table["lines"] for cell in line["cells"] if cell]
        answer |= {"tables": tables}
        more |= {"chosen": None if more["everything"] else wanted[0]}
    else:
        raise InputError(f"there is no order {sort!r}: choose published or risk.")
    answer["contradictions"] = more["contradictions"]

    def table() -> list[dict[str, Any]]:
        return [{**answer["area"], **{k: v for k, v in cell.items() if k != "address"}} for cell in cells]

    return Page("explorer/area.html", explorer.title(row), answer, more, table)


def cell(asked: Asked) -> Page:
    """Explain one cell; its JSON twin is what `unround explain --json` prints."""
    explorer, row = asked.explorer, _row(asked)
    at = _cell(asked)
    explained, seen, model = explorer.explain(row, at), explorer.look(row), explorer.folder.model
    column = model.columns[at]
    sums = []
    for e, shown in zip(model.touching[at], explained.sums, strict=True):
        members = [cell_data(explorer, row, seen, c) for c in model.members(e)]
        said = f"{shown.sum}: {arithmetic(shown)}"
        sums.append({**sum_data(model, e), "shown": shown, "said": said, "total": members[0], "parts": members[1:]})
    twins = [
        cell_data(explorer, row, seen, c)
        for table in explorer.outline.tables
        for line in table.lines
        if at in line.cells
        for c in line.cells
        if c is not None
    ]
    variant = _variant(explorer, at)
    name = ", ".join(filter(None, (column.label, variant, explorer.title(row))))
    drawn = bool(explained.distribution) and explained.kind != "given"
    more = {
        "area_name": explorer.title(row),
        "level": explorer.place(row)["level"],
        "within": explorer.place(row)["within"],
        "area_link": area_address(explorer.codes[row]),
        "count": explained,
        "conclusion": conclusion(explained),
        "quote_text": count_to_quote(explained, name),
        "again": again(explained),
        "same_as": cell_address(explorer.codes[row], explained.same_as) if explained.same_as else "",
        "sums": sums,
        "sentences": explained.argument.replace(". ", ".\n").split("\n") if explained.argument else [],
        "growth": list(growth(explained)),
        "named": _named(explorer, row, explained),
        "others": _others(explorer, column.key, explained),
        "shown_part": shown_part(explained.distribution),
        "twins": twins if len(twins) > 1 else [],
        "drawing": histogram(explained.distribution, name=name, kind=explained.kind, published=explained.published)
        if drawn
        else "",
        "table": explorer.outline.tables[explorer.outline.table_of[at]],
        "variant": variant,
        "certificate": cell_address(explorer.codes[row], column.key, "certificate") + ".json" if explained.proof else "",
    }
    return Page("explorer/cell.html", f"{column.label} · {explorer.title(row)}", explained.to_json(), more)


def certificate(asked: Asked) -> Page:
    """Return the certificate of a proved cell, as it stands in proofs.jsonl."""
    explorer, row, at = asked.explorer, _row(asked), _cell(asked)
    seen, axes = explorer.look(row), tuple(explorer.folder.told["areas"])
    written = [certificate for certificate in seen.certificates if certificate.cell == at]
    if not written:
        raise Missing("this count is not proved, so there is no certificate.")
    answer = next(proof_lines(explorer.folder.model, written, explorer.folder.areas[row : row + 1], axes))
    return Page("explorer/cell.html", "Certificate", answer)


def structure(asked: Asked) -> Page:
    """Show which sums were used: all tables in small, or one of them in full."""
    explorer, model, outline = asked.explorer, asked.explorer.folder.model, asked.explorer.outline
    sorted_sums = sums_by_table(model, outline)
    chosen = asked.path.get("table")
    if chosen is not None:
        at = int(chosen) if chosen.isascii() and chosen.isdecimal() and len(chosen) < 10 else len(outline.tables)
        if at >= len(outline.tables):
            raise Missing(f"there is no table {chosen}: this release has {len(outline.tables):,}.")
        table, sums = outline.tables[at], sorted_sums[at]
        listed = [sum_data(model, e) for e in sums.sums]
        lines = [{"label": line.label, "code": line.code, "level": line.level} for line in table.lines]
        answer: dict[str, Any] = {"table": table.name, "lines": lines, "split_by_sex": sums.splits, "sums": listed}
        drawing = map_of(table, sums.heads, sums.parts, labels=True)
        mechanisms = dict.fromkeys(model.mechanisms[c] for line in table.lines for c in line.cells if c is not None)
        once = [(sum_data(model, e), sexes) for e, sexes in shapes(model, outline, sums.sums)]
        more = {"table": table, "drawing": drawing, "mechanisms": [how.sentence for how in mechanisms], "shapes": once}
        return Page("explorer/table.html", table.name, answer, more)
    tables = [
        {
            "at": table.at,
            "name": table.name,
            "lines": len(table.lines),
            "sums": len(sums.sums),
            "split_by_sex": sums.splits,
            "findings": int(explorer.claims.by_table[table.at]),
        }
        for table, sums in zip(outline.tables, sorted_sums, strict=True)
    ]
    origins: dict[str, int] = {}
    for origin in model.origins:
        origins[origin] = origins.get(origin, 0) + 1
    answer = {**explorer.summary["structure"], "origins": origins, "tables": tables}
    drawings = [map_of(t, s.heads, s.parts, labels=False) for t, s in zip(outline.tables, sorted_sums, strict=True)]
    return Page("explorer/structure.html", "Structure", answer, {"drawings": drawings, "origin_words": ORIGINS})


def contradictions(asked: Asked) -> Page:
    """List inconsistent published figures, and areas whose figures are possible but absurd."""
    explorer = asked.explorer
    part = Part.of(asked.query, explorer.contradictions.height)
    rows = explorer.contradictions[part.first : part.last].to_dicts()
    suspects = explorer.suspects.head(PER_PAGE).to_dicts() if part.number == 1 else []
    axes = explorer.folder.told["areas"]
    said = inconsistencies(explorer.summary) if explorer.summary["contradictions"] else ""
    more = {
        "part": part,
        "parameters": {},
        "said": said,
        "kinds": INCONSISTENCIES,
        "addresses": [_address(row, axes) for row in rows],
        "titles": [_titled(explorer, row, axes) for row in rows],
        "suspects": [{**row, "title": _titled(explorer, row, axes), "address": _address(row, axes)} for row in suspects],
        "more_suspects": explorer.suspects.height - len(suspects),
        "suspect": explorer.summary["suspect"],
    }
    answer = {**part.to_json(), "contradictions": rows, "suspects": suspects, "suspects_total": explorer.suspects.height}
    return Page("explorer/contradictions.html", "Faults in the data", answer, more, lambda: rows)


def _address(row: dict[str, str], axes: list[str]) -> str:
    return area_address("/".join(row[axis] for axis in axes))


def _titled(explorer: Explorer, row: dict[str, str], axes: list[str]) -> str:
    """Return what an area that a file names is called."""
    return explorer.title(explorer.row("/".join(row[axis] for axis in axes)))


def about(asked: Asked) -> Page:
    """Say what the values are, what they are not, and how they may be used."""
    summary = asked.explorer.summary
    names = ("unround", "command", "source", "product", "threshold", "prior_in_words", "priors")
    kept = {name: summary[name] for name in names} | {"selfcheck": summary.get("selfcheck")}
    answer = {"notice": notice(summary["product"]), **kept, "population": summary["population"], "notes": summary["notes"]}
    more = {
        "folder": str(asked.explorer.folder.path),
        "content": Markup("\n").join(map(html, sections(asked.explorer.folder))),
    }
    return Page("explorer/about.html", "About these values", answer, more)


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
    drawings = {
        cell["name"]: histogram(cell["distribution"], name=cell["name"], kind=cell["kind"], published=cell["published"])
        for cell in (solution or {}).get("cells", ())
        if cell["distribution"] and cell["kind"] != "given"
    }
    more = {
        "text": text,
        "mechanism": mechanism,
        "mechanisms": OFFERED,
        "examples": {
            name: with_query("/try", {"system": system, "mechanism": how}) for name, (system, how) in EXAMPLES.items()
        },
        "solution": solution,
        "error": error,
        "drawings": drawings,
        "longest": LONGEST,
        "most_cells": MOST_CELLS,
        "seconds": asked.bench.seconds,
    }
    return Page(
        "explorer/try.html", "Try it", solution or ({"error": error} if error else {}), more, status=422 if error else 200
    )


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
    if not (text.isascii() and text.isdecimal()) or int(text) >= len(claims):
        raise Missing(f"there is no table {text}: this release has {len(claims):,}.")
    return int(text)


def _above(explorer: Explorer, row: int) -> dict[str, Any] | None:
    """Return the area that an area lies in, if it is in the release."""
    areas = explorer.folder.areas
    parent = areas["parent"][row] if "parent" in areas.columns else None
    try:
        return area_data(explorer, explorer.row(str(parent))) if parent else None
    except InputError:
        return None  # the file names it, but does not hold it


def _named(explorer: Explorer, row: int, explained: Explanation) -> list[dict[str, Any]]:
    """Return the cells that an argument speaks of by their keys; where it needs other areas, they have names in it."""
    model, seen = explorer.folder.model, explorer.look(row)
    keys = dict.fromkeys(step["cell"] for step in explained.proof["steps"]) if explained.proof else {}
    return [cell_data(explorer, row, seen, model.index[key]) for key in keys if key in model.index]


def _others(explorer: Explorer, key: str, explained: Explanation) -> list[dict[str, Any]]:
    """Return the other areas that take part in what is said of a cell, with the addresses of the same count there."""
    areas = explained.others.areas if explained.others else ()
    return [{**asdict(area), "address": cell_address(explorer.codes[area.row], key)} for area in areas]


def _variant(explorer: Explorer, at: int) -> str:
    axes = explorer.folder.told["axes"]
    return explorer.folder.model.columns[at].codes[axes.index("sex")] if "sex" in axes and len(axes) > 1 else ""


RISK = ("proved", "conditional", "likely", "open", "given")
"""Kinds, the riskiest first."""


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


def by_risk(explorer: Explorer, row: int) -> list[int]:
    """Return all cells of an area, the riskiest first: by kind, then by probability, then as published."""
    seen = explorer.look(row)
    ranks = [RISK.index(seen.finding(cell).kind) for cell in range(len(explorer.folder.model.columns))]
    probability = seen.inferred.probabilities.posterior.probability[0]
    return sorted(range(len(ranks)), key=lambda cell: (ranks[cell], -probability[cell], cell))


def claims_by_table(explorer: Explorer, row: int) -> list[int]:
    """Return how many claims each table of an area has."""
    numbers = [0] * len(explorer.outline.tables)
    for cell in (explorer.look(row).inferred.claims.kinds[0] > 0).nonzero()[0].tolist():
        numbers[explorer.outline.table_of[cell]] += 1
    return numbers
