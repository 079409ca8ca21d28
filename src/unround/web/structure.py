"""The structure of a release: which sums were used, table by table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from unround.audits import Model
from unround.show.charts import Picture
from unround.show.parts import Piece, Text
from unround.show.words import ORIGINS, cut
from unround.web.outline import Outline, OutlineTable

ROW, LABELS, WIDTH = 22, 260, 26
"""Of a map with names: how high a line is, the room for names, and how wide a level is."""


@dataclass(frozen=True, slots=True)
class TableSums:
    """The sums of one table.

    - `sums`: Between its lines, and of counts that are shown twice, by position.
    - `splits`: How many lines are split by sex.
    - `heads`, `parts`: The lines that are totals of these sums, and those that are parts of one.
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
            tuple(inside),
            len(split),
            frozenset(line_of[model.equations[e][0]] for e in inside),
            frozenset(line_of[part] for e in inside for part in model.equations[e][1]),
        )
        for inside, split in zip(sums, splits, strict=True)
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
    shapes_found: dict[tuple[int, ...], tuple[int, list[str]]] = {}
    for e in equations:
        members = model.members(e)
        shapes_found.setdefault(tuple(at[cell][0] for cell in members), (e, []))[1].append(at[members[0]][1])
    return list(shapes_found.values())


def sum_data(model: Model, equation: int) -> dict[str, Any]:
    """Return a sum as plain data."""
    total, parts = model.equations[equation]
    return {
        "total": model.columns[total].key,
        "total_label": model.columns[total].label,
        "parts": [model.columns[part].key for part in parts],
        "part_labels": [model.columns[part].label for part in parts],
        "origin": model.origins[equation],
        "proposed_by": ORIGINS.get(model.origins[equation], model.origins[equation]),
        "carries_probabilities": equation not in model.compiled.left_out,
    }


def how_proposed(model: Model, equation: int) -> str:
    """Say where a sum comes from, and what it is used for."""
    loop = " It would close a loop, so it is used for bounds and proofs only." if equation in model.compiled.left_out else ""
    return f"Proposed by {ORIGINS.get(model.origins[equation], model.origins[equation])}; verified in all areas.{loop}"


MAP_KEY = (Text("Each rectangle is a count; the counts within it are to its right.", "hint"), Piece("map_key"))
"""How to read it."""


def map_of(table: OutlineTable, heads: frozenset[int], parts: frozenset[int], *, labels: bool) -> Markup:
    """Draw the sums of a table: a rectangle per line, and to its right the lines under it, which add up to its height."""
    leaves = [line for line in table.lines if line.at not in table.parents]
    row = ROW if labels else max(1.0, min(6.0, 90 / max(1, len(leaves))))
    wide = WIDTH if labels else 14
    top: dict[int, float] = {line.at: place * row for place, line in enumerate(leaves)}
    tall: dict[int, float] = {line.at: row for line in leaves}
    under: dict[int, list[int]] = {}
    for line in table.lines:
        if line.parent is not None:
            under.setdefault(line.parent, []).append(line.at)
    for line in reversed(table.lines):  # children come after their parents
        if line.at in under:
            top[line.at] = min(top[child] for child in under[line.at])
            tall[line.at] = sum(tall[child] for child in under[line.at])
    levels = 1 + max(line.level for line in table.lines)
    used = sum(line.at in heads for line in table.lines)
    said = f"Map of {table.name}: {len(table.lines)} lines, {used} of them sums of their parts"
    width, height = levels * wide + (LABELS if labels else 0), max(len(leaves) * row, 4)
    drawn = Picture(width, height, said, "map")
    for line in table.lines:
        kind = "head" if line.at in heads else "part" if line.at in parts else "alone"
        end = levels * wide if line.at not in under else (line.level + 1) * wide
        x, y, gap = line.level * wide, top[line.at], 1 if labels else 0.4
        tall_as = max(tall[line.at] - 2 * gap, 0.5)
        drawn.rect(x + gap, y + gap, end - x - 2 * gap, tall_as, kind, line.label if labels else "", 2 if labels else 0)
        if labels and line.at not in under:
            drawn.text(levels * wide + 8, y + row * 0.7, cut(line.label, 44))
    return drawn.done()
