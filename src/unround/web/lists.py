"""The lists: findings with their facets, areas, and what a search finds; and their rows as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unround.errors import InputError
from unround.explanation.cell import InferredArea
from unround.score.summary import CLAIMS
from unround.show.audit import zeros_unlisted
from unround.show.page import html
from unround.show.parts import LEAD, Columns, Links, Part, Piece, Section, Table, TableCell, TableRow, Text, tabulated
from unround.show.site import chance, with_query
from unround.show.words import by_several, number, probabilities, several, span
from unround.web.claims import PROBABILITIES, SIZES, SORTS, Filter, Found, find, size_of
from unround.web.explorer import Explorer
from unround.web.page import PER_PAGE, Asked, ListPart, Page, area_address, cell_address, pager


def area_data(explorer: Explorer, row: int) -> dict[str, Any]:
    """Return one area as a row of a list."""
    place, by_size = explorer.place(row), explorer.by_area_and_size[row].tolist()
    return {
        "code": explorer.codes[row],
        "name": place["name"],
        "level": place["level"],
        "within": place["within"],
        "findings": sum(by_size),
        "small": by_size[0],
        "zeros": by_size[-1],
        "address": area_address(explorer.codes[row]),
    }


def finding_data(explorer: Explorer, finding: dict[str, Any]) -> dict[str, Any]:
    """Return one finding as a row of a list."""
    row, column = finding["row"], explorer.folder.model.columns[finding["cell"]]
    return {
        **explorer.place(row),
        **dict(zip(explorer.folder.axes, column.codes, strict=True)),
        "key": column.key,
        "label": column.label,
        "table": explorer.outline.tables[finding["table"]].name,
        **{name: finding[name] for name in ("published", "low", "high", "value", *PROBABILITIES, "due_to_sums")},
        "kind": CLAIMS[finding["kind"]],
        "size": size_of(finding["value"]),
        "area_address": area_address(explorer.codes[row]),
        "address": cell_address(explorer.codes[row], column.key),
    }


def line_data(explorer: Explorer, at: int) -> dict[str, Any]:
    """Return one characteristic as a row of a list; its address lists the findings about it."""
    line = explorer.lines[at]
    table = explorer.outline.tables[explorer.outline.table_of[next(cell for cell in line.cells if cell is not None)]]
    return {
        "line": at,
        "code": line.code,
        "name": line.label,
        "table": table.name,
        "findings": int(explorer.by_line[at]),
        "address": f"/findings?line={at}",
    }


def cell_data(explorer: Explorer, row: int, seen: InferredArea, cell: int) -> dict[str, Any]:
    """Return what is known of one cell, without its argument."""
    column, known = explorer.folder.model.columns[cell], seen.finding(cell)
    return {
        **dict(zip(explorer.folder.axes, column.codes, strict=True)),
        "key": column.key,
        "label": column.label,
        "published": known.published,
        "why_absent": known.why_absent,
        "low": known.low,
        "high": known.high,
        "value": known.value,
        **{name: getattr(known, name) for name in (*PROBABILITIES, "due_to_sums")},
        "kind": known.kind,
        "address": cell_address(explorer.codes[row], column.key),
    }


def areas_table(areas: Sequence[Mapping[str, Any]], label: str = "Areas with the most findings") -> Table:
    """Return areas with how many findings they have."""
    columns: Columns = [
        ("Area", lambda area: TableCell(area["name"], small=_unless(area["code"], area["name"]), link=area["address"])),
        ("In", "within"),
        ("Level", "level"),
        ("Findings", lambda area: TableCell(number(area["findings"]), tone="strong")),
        ("of one or two", "small"),
        ("zeros", "zeros"),
    ]
    empty = {head for head, name in (("In", "within"), ("Level", "level")) if not any(area[name] for area in areas)}
    shown = [column for column in columns if column[0] not in empty]
    return tabulated(areas, shown, label, left=("In", "Level"), style="list")


def _unless(code: str, name: str) -> str:
    return "" if code in name else code


def counts_table(cells: Sequence[Mapping[str, Any]], label: str, here: str = "", name: str = "label") -> Table:
    """Return counts: what was published, is possible, and is likeliest."""
    rows = []
    for cell in cells:
        kind, sex = cell["kind"], cell.get("sex", "")
        called = f"{cell[name]}, {sex}" if sex and name == "label" else cell[name]
        is_here = cell["key"] == here
        first = TableCell(called, small="this count" if is_here else "", link="" if is_here else cell["address"])
        absent = TableCell(cell["why_absent"] or "not published", tone="absent")
        printed = absent if cell["published"] is None else number(cell["published"])
        title = probabilities(cell) if by_several(cell) else ""
        chances = TableCell(str(chance(cell).striptags()), tone=kind, title=title)
        value = TableCell(number(cell["value"]), tone=kind)
        rows.append(TableRow([first, printed, span(cell["low"], cell["high"]), value, chances], "here" if is_here else ""))
    heads = ("Count" if name == "label" else name.capitalize(), "Published", "Possible", "Most likely", "Probability")
    return Table(heads, rows, label, left=("Probability",), style="list small")


MOST_EXPORTED = 100_000
"""Findings that can be exported at once."""
SUGGESTED, LINES_SUGGESTED = 9, 5
"""Areas, and characteristics, suggested while typing."""
LINES_FOUND = 20
"""Characteristics that a search shows."""
FIRST_CHOICES, MOST_CHOICES = 6, 60
"""Classes of a facet that are shown at first, and at all."""
AREA_SORTS = {"findings": "most findings first", "file": "as in the file"}


def findings(asked: Asked) -> Page:
    """List findings, as filtered; a row opens its argument beside the list."""
    explorer = asked.explorer
    wanted = Filter.read(asked.query, explorer.facets, len(explorer.lines))
    matches = find(explorer.claims, wanted, explorer.facets, explorer.index, explorer.cell_index)
    if asked.whole and len(matches.places) > MOST_EXPORTED:
        raise InputError(
            f"{len(matches.places):,} findings are more than the {MOST_EXPORTED:,} that can be exported at once: filter "
            "them, or take findings.csv from the folder of the audit."
        )
    part = ListPart.of(asked.query, len(matches.places))
    chosen = matches.places if asked.whole else matches.places[part.first : part.last]
    rows = [finding_data(explorer, finding) for finding in explorer.claims.rows(chosen)]
    parameters = wanted.query()
    answer = {
        "filter": {name: value for name, value in parameters.items() if value not in ("", None, ())},
        **part.to_json(),
        "facets": {
            name: [{"key": choice.key, "label": choice.label, "number": choice.number} for choice in offered]
            for name, offered in matches.choices.items()
        },
        "findings": rows,
    }
    sheet = with_query("/findings.csv", {**parameters, "page": asked.query.get("page")})
    shown: dict[str, Any] = {
        "wanted": wanted,
        "part": part,
        "parameters": parameters,
        "facets": shown_facets(explorer, wanted, matches),
        "steps": matches.steps,
        "chips": chips(explorer, wanted),
        "sorts": SORTS,
        "zeros": folded_zeros(wanted, matches),
        "unlisted": zeros_unlisted(explorer.summary["zeros_not_listed"]),
        "open": opened(asked),
        "all_exported": part.total <= MOST_EXPORTED,
        "data": answer,
        "summary": explorer.summary,
        "sheet": sheet,
        "pager": html([pager(part, "/findings", parameters)]),
    }

    def table() -> list[dict[str, Any]]:
        return [{name: value for name, value in row.items() if not name.endswith("address")} for row in rows]

    return Page("Findings", [Piece("listing", named=shown)], answer, table, wide=True)


def opened(asked: Asked) -> str:
    """Return the address of the count whose argument stands beside the list; "" where none does."""
    address = asked.query.get("open", "")
    if address and not address.startswith("/area/"):
        raise InputError(
            f"only a count can be opened beside the list, by an address that begins with /area/; not {address!r}."
        )
    return address


def first_choice(summary: Mapping[str, Any]) -> str:
    """Return where to begin: the findings about the smallest counts that there are, zeros apart."""
    numbers = summary["sensitive_claims"]["by_value"]
    first = next((key for key in SIZES if key in numbers and sum(numbers[key].values())), "")
    return with_query("/findings", {"size": first})


def shown_facets(explorer: Explorer, wanted: Filter, matches: Found) -> list[dict[str, Any]]:
    """Return the facets that sort the findings into more than one class, or that something is chosen of."""
    shown = []
    for name, facet in explorer.facets.items():
        offered = matches.choices[name]
        if len(offered) < 2 and name not in wanted.chosen:
            continue
        first = max(FIRST_CHOICES, len(wanted.chosen.get(name, ()))) if facet.by_number else len(offered)
        shown_first = {"first": offered[:first], "rest": offered[first:MOST_CHOICES]}
        left = max(0, len(offered) - max(first, MOST_CHOICES))
        shown.append({"name": name, "title": facet.title, **shown_first, "more": left})
    return shown


def chips(explorer: Explorer, wanted: Filter) -> list[tuple[str, str]]:
    """Return what is filtered by besides the facets, each with the address without it."""
    parameters = wanted.query()
    said = []
    if wanted.words:
        said.append((f"“{wanted.words}”", "q"))
    if wanted.area:
        said.append((f"areas with “{wanted.area}”", "area"))
    if wanted.line is not None:
        said.append((explorer.lines[wanted.line].label, "line"))
    return [(text, with_query("/findings", {**parameters, name: ""})) for text, name in said]


def folded_zeros(wanted: Filter, matches: Found) -> dict[str, Any] | None:
    """Return how many zeros are left out because another size was chosen, and where they are listed."""
    sizes = wanted.chosen.get("size", ())
    number = next((choice.number for choice in matches.choices.get("size", ()) if choice.key == "0"), 0)
    if not sizes or "0" in sizes or not number:
        return None
    return {"number": number, "address": with_query("/findings", {**wanted.query(), "size": "0"})}


def areas(asked: Asked) -> Page:
    """Search areas and characteristics; or list all areas, those with the most findings first."""
    explorer, query = asked.explorer, asked.query.get("q", "").strip()
    sort = asked.query.get("sort") or "findings"
    if sort not in AREA_SORTS:
        raise InputError(f"there is no sort {sort!r}: choose among {', '.join(AREA_SORTS)}.")
    few = bool(asked.query.get("few"))
    rows = explorer.index.find(query, explorer.area_weights if sort == "findings" else None)
    part = ListPart.of(asked.query, len(rows), SUGGESTED if few else PER_PAGE)
    matches = [area_data(explorer, int(row)) for row in rows[part.first : part.last]]
    lines = explorer.line_index.find(query, explorer.by_line).tolist() if query else []
    most = LINES_SUGGESTED if few else LINES_FOUND
    counts = [line_data(explorer, at) for at in lines[:most]]
    answer = {
        "query": query,
        **part.to_json(),
        "areas": matches,
        "characteristics": counts,
        "characteristics_total": len(lines),
    }
    lead = (
        f"{several(part.total, 'area')}, {AREA_SORTS[sort]}. To search, type any part of a name or code into the box above."
    )
    parts: list[Part] = []
    if query:
        also = several(len(lines), "characteristic does", "characteristics do")
        lead = f"{several(part.total, 'area matches', 'areas match')} “{query}”{f', and {also}' if lines else ''}."
    if counts:
        columns: Columns = [
            ("Characteristic", lambda line: TableCell(line["name"], link=line["address"] if line["findings"] else "")),
            ("Table", "table"),
            ("Findings", "findings"),
        ]
        left = len(lines) - len(counts)
        more = f"{left:,} more characteristics match: add a word to narrow them down." if left else ""
        table = tabulated(counts, columns, "Characteristics", left=("Table",), style="list")
        parts.append(Section("Characteristics", [table, Text(more, "hint")]))
    if matches:
        orders = [(name.capitalize(), with_query("/areas", {"q": query, "sort": key})) for key, name in AREA_SORTS.items()]
        tabs = Links(orders, "tabs", "Order", "", AREA_SORTS[sort].capitalize())
        shown: list[Part] = [
            tabs,
            areas_table(matches, "Areas"),
            pager(part, "/areas", {"q": query, "sort": asked.query.get("sort", "")}),
        ]
        parts += [Section("Areas", shown)] if counts else shown
    else:
        parts += [Text("No area has all these words in its name or code."), Links([("All areas", "/areas")])]
    heading = Section("Search" if query else "Areas", [Text(lead, LEAD), *parts], level=1)
    return Page(f"Search: {query}" if query else "Areas", [heading], answer, lambda: matches)
