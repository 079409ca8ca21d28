"""The outline: the counts of a release as lines with levels, as they were published, a column a sex."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from unround.audits import Model

SEX = "sex"
UNNAMED = "Other counts"
"""What a table without a name is called."""


@dataclass(frozen=True, slots=True)
class OutlineLine:
    """One characteristic.

    - `at`: Its place in the outline.
    - `label`, `code`: What it counts, and its code.
    - `level`: How deep it stands under the first line of its table.
    - `parent`: The line it stands under.
    - `cells`: Its cell for each of the outline's variants; None where there is none.
    """

    at: int
    label: str
    code: str
    level: int
    parent: int | None
    cells: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class OutlineTable:
    """One table of the release: its name and its lines, parents before children."""

    at: int
    name: str
    lines: tuple[OutlineLine, ...]

    @property
    def parents(self) -> frozenset[int]:
        """The lines that have others under them."""
        return frozenset(line.parent for line in self.lines if line.parent is not None)


@dataclass(frozen=True)
class Outline:
    """All tables of a release.

    - `variants`: The sexes, or ("",) for tables that are not by sex.
    - `tables`: In the order in which they were published.
    - `table_of`: For every cell, the table that it stands in.
    """

    variants: tuple[str, ...]
    tables: tuple[OutlineTable, ...]
    table_of: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many lines there are."""
        return sum(len(table.lines) for table in self.tables)

    @property
    def lines(self) -> tuple[OutlineLine, ...]:
        """All lines, in order."""
        return tuple(line for table in self.tables for line in table.lines)


def outline_of(model: Model, axes: list[str]) -> Outline:
    """Put the cells of a model into lines: indentation tells which stands under which, and sums where there is none."""
    at = axes.index(SEX) if SEX in axes and len(axes) > 1 else None
    variants = tuple(dict.fromkeys(one.codes[at] for one in model.columns)) if at is not None else ("",)
    rows: dict[tuple[str, tuple[str, ...]], dict[str, int]] = {}
    for cell, column in enumerate(model.columns):
        codes = column.codes if at is None else column.codes[:at] + column.codes[at + 1 :]
        rows.setdefault((column.block, codes), {})[column.codes[at] if at is not None else ""] = cell
    blocks: dict[str, list[tuple[str, dict[str, int]]]] = {}
    for (block, codes), cells in rows.items():
        blocks.setdefault(block, []).append((", ".join(codes), cells))
    tables: list[OutlineTable] = []
    table_of, number = [0] * len(model.columns), 0
    for block, found in blocks.items():
        placed = _placed(model, [next(iter(cells.values())) for _, cells in found])
        lines: list[OutlineLine] = []
        where: dict[int, int] = {}
        for old, parent, level in placed:
            code, cells = found[old]
            label = model.columns[next(iter(cells.values()))].label or code
            where[old] = number
            above = where[parent] if parent is not None else None
            lines.append(OutlineLine(number, label, code, level, above, tuple(cells.get(one) for one in variants)))
            number += 1
            for cell in cells.values():
                table_of[cell] = len(tables)
        tables.append(OutlineTable(len(tables), block or UNNAMED, tuple(lines)))
    return Outline(variants, tuple(tables), tuple(table_of))


def _placed(model: Model, cells: list[int]) -> list[tuple[int, int | None, int]]:
    """Return the order of a table's lines, and for each its parent and level."""
    depths = [model.columns[cell].depth for cell in cells]
    parents = _by_depth(depths) if any(depths) else _by_sums(model, cells)
    children: dict[int | None, list[int]] = {}
    for child, parent in enumerate(parents):
        children.setdefault(parent, []).append(child)
    order: list[tuple[int, int | None, int]] = []
    waiting = [(child, 0) for child in reversed(children.get(None, []))]
    while waiting:
        line, level = waiting.pop()
        order.append((line, parents[line], level))
        waiting += [(child, level + 1) for child in reversed(children.get(line, []))]
    return order


def _by_depth(depths: Iterable[int]) -> list[int | None]:
    """Return for every line the nearest one above it that is less indented."""
    parents: list[int | None] = []
    stack: list[tuple[int, int]] = []
    for line, depth in enumerate(depths):
        while stack and stack[-1][0] >= depth:
            stack.pop()
        parents.append(stack[-1][1] if stack else None)
        stack.append((depth, line))
    return parents


def _by_sums(model: Model, cells: list[int]) -> list[int | None]:
    """Return for every line the total of the smallest sum that it is a part of."""
    at = {cell: line for line, cell in enumerate(cells)}
    parents: list[int | None] = [None] * len(cells)
    sums = [(total, parts) for total, parts in model.equations if total in at and len(parts) > 1]
    for total, parts in sorted(sums, key=lambda one: len(one[1])):
        for part in parts:
            if part in at and parents[at[part]] is None and not _stands_under(parents, at[total], at[part]):
                parents[at[part]] = at[total]
    return parents


def _stands_under(parents: list[int | None], line: int | None, above: int) -> bool:
    """Whether a line is another one, or stands somewhere under it."""
    while line is not None:
        if line == above:
            return True
        line = parents[line]
    return False
