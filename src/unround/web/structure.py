"""The structure of a release: which sums were used, table by table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from unround.audits import Model
from unround.show import parts as doc
from unround.show.charts import Picture
from unround.show.words import ORIGINS, cut, several
from unround.web.outline import Outline, OutlineTable
from unround.web.page import Asked, Missing, Page, crumbs, whole

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


def _sums_by_table(model: Model, outline: Outline) -> tuple[TableSums, ...]:
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


def _shapes(model: Model, outline: Outline, equations: tuple[int, ...]) -> list[tuple[int, list[str]]]:
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


def _sum_data(model: Model, equation: int) -> dict[str, Any]:
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


MAP_KEY = (doc.Text("Each rectangle is a count; the counts within it are to its right.", "hint"), doc.Piece("map_key"))
"""How to read it."""


def _map_of(table: OutlineTable, heads: frozenset[int], parts: frozenset[int], *, labels: bool) -> Markup:
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


def structure(asked: Asked) -> Page:
    """Show which sums were used: all tables in small, or one of them in full."""
    explorer, model, outline = asked.explorer, asked.explorer.folder.model, asked.explorer.outline
    sorted_sums = _sums_by_table(model, outline)
    if "table" in asked.path:
        return _table_of_sums(asked, sorted_sums)
    tables, charts = [], []
    for table, sums in zip(outline.tables, sorted_sums, strict=True):
        findings = int(explorer.claims.by_table[table.at])
        numbers = {"lines": len(table.lines), "sums": len(sums.sums), "split_by_sex": sums.splits, "findings": findings}
        tables.append({"at": table.at, "name": table.name, **numbers})
        split = f", {sums.splits:,} split by sex" if sums.splits else ""
        revealed = f" · {several(findings, 'finding')}" if findings else ""
        note = f"{several(len(table.lines), 'line')}, {several(len(sums.sums), 'sum')}{split}{revealed}"
        charts.append(doc.Chart(_map_of(table, sums.heads, sums.parts, labels=False), table.name, note))
    read, origins = explorer.summary["structure"], dict(Counter(model.origins))
    said = [f"{many:,} from {ORIGINS.get(origin, origin)}" for origin, many in origins.items()]
    loops, repeats = read["sums_for_bounds_only"], read["repeats"]
    if loops:
        said.append(f"{loops:,} of them would close a loop: they are used for bounds and proofs, not for probabilities")
    if repeats and "universe" not in origins:
        said.append(f"{several(repeats, 'count appears', 'counts appear')} more than once")
    rejected = several(read["sums_rejected"], "proposed sum was", "proposed sums were")
    lead = f"{several(read['sums_kept'], 'sum holds', 'sums hold')} among {several(read['audited'], 'count')} per area"
    parts: list[doc.Part] = [
        doc.Text(f"{lead}{f'; {rejected} rejected by the data' if read['sums_rejected'] else ''}.", doc.LEAD),
        doc.Bullets(said),
        doc.Section("Map", [*MAP_KEY, doc.Charts(charts, "maps", [f"/structure/{table['at']}" for table in tables])]),
    ]
    heading = doc.Section("Structure: which sums were used", parts, level=1)
    return Page("Structure", [heading], {**read, "origins": origins, "tables": tables})


def _table_of_sums(asked: Asked, sorted_sums: Sequence[TableSums]) -> Page:
    model, outline, chosen = asked.explorer.folder.model, asked.explorer.outline, asked.path["table"]
    if (at := whole(chosen)) is None or at >= len(outline.tables):
        raise Missing(f"there is no table {chosen}: this release has {len(outline.tables):,}.")
    table, sums = outline.tables[at], sorted_sums[at]
    lines = [{"label": line.label, "code": line.code, "level": line.level} for line in table.lines]
    listed = [_sum_data(model, e) for e in sums.sums]
    answer: dict[str, Any] = {"table": table.name, "lines": lines, "split_by_sex": sums.splits, "sums": listed}
    folds: list[doc.Part] = []
    for e, sexes in _shapes(model, outline, sums.sums):
        known = _sum_data(model, e)
        number = len(known["parts"])
        also = f"; the same for {', '.join(sexes)}" if len(sexes) > 1 else ""
        said = f"{'is published twice' if number == 1 else f'is the sum of {number} parts'}{also}"
        parts_of = doc.Bullets(list(zip(known["part_labels"], known["parts"], strict=True)))
        hint = doc.Text(how_proposed(model, e), "hint")
        folds.append(doc.Fold(known["total_label"], [parts_of, hint], style="sum", is_open=len(folds) < 3, aside=said))
    mechanisms = dict.fromkeys(model.mechanisms[c].sentence for line in table.lines for c in line.cells if c is not None)
    split = f"; {sums.splits:,} lines are split by sex" if sums.splits else ""
    between = f"{several(len(lines), 'line')} with {several(len(listed), 'sum')} between them{split}."
    parts: list[doc.Part] = [
        doc.Links([(between, ""), ("Findings in this table", f"/findings?table={at}")], doc.LEAD, between=" "),
        doc.Bullets(list(mechanisms)),
        doc.Section(
            "Map", [*MAP_KEY, doc.Chart(_map_of(table, sums.heads, sums.parts, labels=True), f"Sums of {table.name}")]
        ),
        doc.Section("The sums", folds or [doc.Text("There are none between its lines.")]),
    ]
    here = crumbs([("Structure", "/structure"), (table.name, "")])
    return Page(table.name, [here, doc.Section(table.name, parts, level=1)], answer)
