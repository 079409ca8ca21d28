"""One area: its cells in the order of the table or by risk, as plain data."""

from __future__ import annotations

from typing import Any

from unround.batch.types import NO_UPPER_BOUND
from unround.explanation.cell import AreaSeen, kind_of
from unround.release import ABSENT, WHY_ABSENT
from unround.web.addresses import cell_address
from unround.web.explorer import Explorer
from unround.web.outline import OutlineTable

RISK = ("proved", "conditional", "likely", "open", "given")
"""Kinds, the riskiest first."""


def cell_told(explorer: Explorer, row: int, seen: AreaSeen, cell: int) -> dict[str, Any]:
    """Return what is known of one cell, without its argument."""
    model, inferred = explorer.folder.model, seen.inferred
    column, published = model.columns[cell], int(inferred.counts[0, cell])
    low, high = int(inferred.reach.low[0, cell]), int(inferred.reach.high[0, cell])
    probability = float(inferred.posterior.probability[0, cell])
    kind = kind_of(model, inferred, cell)
    certain = kind in ("proved", "conditional", "given")
    known = certain or probability > 0
    value = int(inferred.value[0, cell]) if kind != "given" else published
    if certain:
        low = high = value
    return {
        **dict(zip(explorer.folder.told["axes"], column.codes, strict=True)),
        "key": column.key,
        "label": column.label,
        "published": published if published > ABSENT else None,
        "why_absent": WHY_ABSENT.get(published) if published <= ABSENT else None,
        "low": low,
        "high": None if high >= NO_UPPER_BOUND else high,
        "value": value if known else None,
        "probability": (1.0 if certain else probability) if known else None,
        "kind": kind,
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


def _claims_below(table: OutlineTable, seen: AreaSeen) -> dict[int, int]:
    """Return for every line how many claims stand under it: a folded table must not hide what it holds."""
    below = dict.fromkeys((line.at for line in table.lines), 0)
    for line in reversed(table.lines):  # children come after their parents
        own = sum(bool(seen.inferred.kinds[0, cell]) for cell in line.cells if cell is not None)
        if line.parent is not None:
            below[line.parent] += own + below[line.at]
    return below


def by_risk(explorer: Explorer, row: int) -> list[int]:
    """Return all cells of an area, the riskiest first: by kind, then by probability, then as published."""
    model, inferred = explorer.folder.model, explorer.look(row).inferred
    ranks = [RISK.index(kind_of(model, inferred, cell)) for cell in range(len(model.columns))]
    probability = inferred.posterior.probability[0]
    return sorted(range(len(ranks)), key=lambda cell: (ranks[cell], -probability[cell], cell))


def claims_by_table(explorer: Explorer, row: int) -> list[int]:
    """Return how many claims each table of an area has."""
    found = [0] * len(explorer.outline.tables)
    for cell in (explorer.look(row).inferred.kinds[0] > 0).nonzero()[0].tolist():
        found[explorer.outline.table_of[cell]] += 1
    return found
