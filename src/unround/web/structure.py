"""The structure of a release: which sums were used, table by table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unround.audits import Model
from unround.web.outline import Outline

ORIGINS = {
    "indentation": "the table's indentation",
    "sex": "the split by sex",
    "names": "names that make up another",
    "universe": "a count that is shown twice",
    "files": "a count that stands in several files",
    "data": "a search through the counts",
    "file": "your description of the table",
}
"""Who proposed a sum, in words."""


@dataclass(frozen=True, slots=True)
class TableSums:
    """The sums of one table.

    Parameters
    ----------
    sums : tuple of int
        Between its lines, and of counts that are shown twice, by position.
    splits : int
        How many lines are split by sex.
    heads, parts : frozenset of int
        The lines that are totals of these sums, and those that are parts of one.
    """

    sums: tuple[int, ...]
    splits: int
    heads: frozenset[int]
    parts: frozenset[int]


def sums_by_table(model: Model, outline: Outline) -> tuple[TableSums, ...]:
    """Sort sums by the table that their total stands in."""
    line_of = {cell: line.at for table in outline.tables for line in table.lines for cell in line.cells if cell is not None}
    sums: list[list[int]] = [[] for _ in outline.tables]
    splits: list[set[int]] = [set() for _ in outline.tables]
    for e, (total, parts) in enumerate(model.equations):
        at = outline.table_of[total]
        if all(line_of[part] == line_of[total] for part in parts):
            splits[at].add(line_of[total])
        else:
            sums[at].append(e)
    return tuple(
        TableSums(
            tuple(found),
            len(split),
            frozenset(line_of[model.equations[e][0]] for e in found),
            frozenset(line_of[part] for e in found for part in model.equations[e][1]),
        )
        for found, split in zip(sums, splits, strict=True)
    )


def shapes(model: Model, outline: Outline, equations: tuple[int, ...]) -> list[tuple[int, list[str]]]:
    """Return sums that differ only in sex once each: the first of them, and the sexes that it holds for."""
    at = {
        cell: (line.at, variant)
        for table in outline.tables
        for line in table.lines
        for variant, cell in zip(outline.variants, line.cells, strict=True)
        if cell is not None
    }
    found: dict[tuple[int, ...], tuple[int, list[str]]] = {}
    for e in equations:
        members = model.members(e)
        found.setdefault(tuple(at[cell][0] for cell in members), (e, []))[1].append(at[members[0]][1])
    return list(found.values())


def sum_told(model: Model, equation: int) -> dict[str, Any]:
    """Return a sum as plain data."""
    total, parts = model.equations[equation]
    return {
        "total": model.columns[total].key,
        "total_label": model.columns[total].label,
        "parts": [model.columns[part].key for part in parts],
        "part_labels": [model.columns[part].label for part in parts],
        "origin": model.origins[equation],
        "proposed_by": ORIGINS.get(model.origins[equation], model.origins[equation]),
        "carries_probabilities": equation not in model.compiled.unused,
    }
