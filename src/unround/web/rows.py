"""Rows of lists, as plain data: areas, characteristics, findings, counts."""

from __future__ import annotations

from typing import Any

from unround.explanation.cell import InferredArea
from unround.score.summary import CLAIMS
from unround.web.claims import PROBABILITIES, size_of
from unround.web.explorer import Explorer
from unround.web.page import area_address, cell_address


def area_told(explorer: Explorer, row: int) -> dict[str, Any]:
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


def finding_told(explorer: Explorer, one: dict[str, Any]) -> dict[str, Any]:
    """Return one finding as a row of a list."""
    row, column = one["row"], explorer.folder.model.columns[one["cell"]]
    return {
        **explorer.place(row),
        **dict(zip(explorer.folder.told["axes"], column.codes, strict=True)),
        "key": column.key,
        "label": column.label,
        "table": explorer.outline.tables[one["table"]].name,
        **{name: one[name] for name in ("published", "low", "high", "value", *PROBABILITIES, "due_to_sums")},
        "kind": CLAIMS[one["kind"]],
        "size": size_of(one["value"]),
        "area_address": area_address(explorer.codes[row]),
        "address": cell_address(explorer.codes[row], column.key),
    }


def line_told(explorer: Explorer, at: int) -> dict[str, Any]:
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


def cell_told(explorer: Explorer, row: int, seen: InferredArea, cell: int) -> dict[str, Any]:
    """Return what is known of one cell, without its argument."""
    column, found = explorer.folder.model.columns[cell], seen.finding(cell)
    return {
        **dict(zip(explorer.folder.told["axes"], column.codes, strict=True)),
        "key": column.key,
        "label": column.label,
        "published": found.published,
        "why_absent": found.why_absent,
        "low": found.low,
        "high": found.high,
        "value": found.value,
        **{name: getattr(found, name) for name in (*PROBABILITIES, "due_to_sums")},
        "kind": found.kind,
        "address": cell_address(explorer.codes[row], column.key),
    }
