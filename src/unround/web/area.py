"""One area: its cells in the order of the table or by risk, as plain data."""

from __future__ import annotations

from typing import Any

from unround.explanation.cell import InferredArea
from unround.web.addresses import cell_address
from unround.web.explorer import Explorer
from unround.web.outline import OutlineTable

RISK = ("proved", "conditional", "likely", "open", "given")
"""Kinds, the riskiest first."""


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
        "probability": found.probability,
        "kind": found.kind,
        "address": cell_address(explorer.codes[row], column.key),
    }


def table_told(explorer: Explorer, row: int, table: int) -> dict[str, Any]:
    """Return one table of an area: a line a characteristic, a cell a sex."""
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
            "cells": [cell_told(explorer, row, seen, cell) if cell is not None else None for cell in picked],
        }
        for line in shown.lines
        for picked in ([line.cells[k] for k in used],)
    ]
    return {"at": table, "name": shown.name, "variants": [variants[k] for k in used], "lines": lines}


def _claims_below(table: OutlineTable, seen: InferredArea) -> dict[int, int]:
    """Return for every line how many claims stand under it: a folded table must not hide what it holds."""
    below = dict.fromkeys((line.at for line in table.lines), 0)
    for line in reversed(table.lines):  # children come after their parents
        own = sum(bool(seen.inferred.claims.kinds[0, cell]) for cell in line.cells if cell is not None)
        if line.parent is not None:
            below[line.parent] += own + below[line.at]
    return below


def by_risk(explorer: Explorer, row: int) -> list[int]:
    """Return all cells of an area, the riskiest first: by kind, then by probability, then as published."""
    seen = explorer.look(row)
    ranks = [RISK.index(seen.finding(cell).kind) for cell in range(len(explorer.folder.model.columns))]
    probability = seen.inferred.probabilities.posterior.probability[0]
    return sorted(range(len(ranks)), key=lambda cell: (ranks[cell], -probability[cell], cell))


def claims_by_table(explorer: Explorer, row: int) -> list[int]:
    """Return how many claims each table of an area has."""
    found = [0] * len(explorer.outline.tables)
    for cell in (explorer.look(row).inferred.claims.kinds[0] > 0).nonzero()[0].tolist():
        found[explorer.outline.table_of[cell]] += 1
    return found
