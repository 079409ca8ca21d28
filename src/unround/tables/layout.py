"""Layout: where in a sheet the header stands, and where the table begins and ends, between titles and footnotes."""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from unround.errors import InputError
from unround.tables.grid import Grid
from unround.tables.number_style import are_numbers, are_signs, bare_text

HEAD = 200
"""Rows that are looked at to find the header."""
MOST_HEADER_ROWS = 4
_NUMBERS = 0.6
"""A column in which so many of the filled cells of the lower half are numbers is one of numbers."""
_YEAR = re.compile(r"(?:18|19|20|21)\d\d")


@dataclass(frozen=True, slots=True)
class Layout:
    """Rows, from 1: those of the header, the first and the last of the table; and the texts above and below it."""

    header: tuple[int, ...]
    rows: tuple[int, int]
    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    heading: str = ""
    """What a single cell above the header says of all columns of counts: "Age"."""


def find_layout(grid: Grid, header: tuple[int, ...] | None = None) -> Layout:
    """Find the header of a grid, and the end of its table.

    Raises `InputError` where there are no numbers, or no header above them.
    """
    head = grid.cells[:HEAD]
    bare = [bare_text(head[name]) for name in head.columns]
    filled = [(~cells.is_null() & (cells != "")).fill_null(False).to_list() for cells in bare]
    numbers = [are_numbers(cells).to_list() for cells in bare]
    signs = [are_signs(cells).to_list() for cells in bare]
    values = _number_columns(filled, numbers, signs, head.height)
    if not values:
        other = (
            "" if grid.sheet is None else f" If the table is on another sheet: unround describe {grid.source} --sheet NAME"
        )
        raise InputError(f"{grid.place} has no column of numbers below a header, so there are no counts in it.{other}")
    first = max(header) if header else _first_row(grid, values, filled, numbers, signs)
    rows = header or _header_rows(grid, first, values, filled)
    last = _last_row(grid, values)
    spanning = ""
    above = [row for row in range(min(rows) - 1) if any(cells[row] for cells in filled)]
    if above and above[-1] == min(rows) - 2:
        within = [at for at, cells in enumerate(filled) if cells[above[-1]]]
        if len(within) == 1 and within[0] in values and len(grid.row(above[-1])[within[0]]) <= 40:
            spanning = grid.row(above.pop())[within[0]]
    texts = tuple(" ".join(cell for cell in grid.row(row) if cell) for row in above)
    below = tuple(
        text for row in range(last, min(grid.cells.height, last + 20)) if (text := " ".join(c for c in grid.row(row) if c))
    )
    return Layout(tuple(rows), (max(first, max(rows)) + 1, last), texts, below, spanning)


def _number_columns(filled: list[list[bool]], numbers: list[list[bool]], signs: list[list[bool]], height: int) -> list[int]:
    """Return the columns whose lower part holds numbers."""
    found = []
    for at in range(len(filled)):
        for lower in (range(height // 2, height), range(height)):
            there = sum(filled[at][row] and not signs[at][row] for row in lower)
            counted = sum(numbers[at][row] for row in lower)
            if counted:
                break
        if counted and counted >= _NUMBERS * there:
            found.append(at)
    return found


def _first_row(
    grid: Grid, values: list[int], filled: list[list[bool]], numbers: list[list[bool]], signs: list[list[bool]]
) -> int:
    """Return the row, from 0, that the table below the header begins with."""
    height = len(filled[0])

    def counts(row: int) -> bool:
        there = [at for at in values if filled[at][row]]
        some = any(numbers[at][row] for at in there)
        return some and sum(numbers[at][row] or signs[at][row] for at in there) >= max(1, len(values) / 2)

    first = next((row for row in range(height) if counts(row)), 0)
    if first + 1 < height:
        row = grid.row(first)
        shown = [row[at] for at in values if row[at]]
        alone = not any(sum(cells[above] for cells in filled) > 1 for above in range(first)[-1:])
        years = all(_YEAR.fullmatch(cell) for cell in shown) and len(set(shown)) == len(shown) > 1
        beyond = [grid.row(first + 1)[at] for at in values]
        if years and alone and not all(_YEAR.fullmatch(cell) for cell in beyond if cell):
            return first + 1  # years are numbers, but these name the columns
        if shown == [str(number) for number in range(int(shown[0]) if shown[0].isdigit() else 1, 10**6)[: len(shown)]] and (
            len(shown) > 3 and not alone
        ):
            return first + 1  # 1, 2, 3, …: some agencies number their columns
    return first


def _header_rows(grid: Grid, first: int, values: list[int], filled: list[list[bool]]) -> tuple[int, ...]:
    """Return the rows above the table that name its columns, from 1."""
    rows: list[int] = []
    at = first - 1
    while at >= 0 and not any(cells[at] for cells in filled):
        at -= 1  # an empty row between header and table
    while at >= 0 and len(rows) < MOST_HEADER_ROWS:
        cells = [cell for cell in grid.row(at) if cell]
        if len(set(cells)) < 2 and not (len(cells) == 1 and not rows and any(filled[c][at] for c in values)):
            break
        rows.append(at + 1)
        at -= 1
    rows = [row for row in rows if not _numbered([grid.row(row - 1)[c] for c in values])]
    if not rows:
        raise InputError(
            f"{grid.place} has no header: nothing above row {first + 1} names its columns. Write their names into a row "
            f"above, then run: unround describe {grid.source}"
        )
    return tuple(sorted(rows))


def _numbered(cells: list[str]) -> bool:
    """Say whether cells only number the columns, as in (1), (2), (3)."""
    bare = [cell.strip("()[]") for cell in cells if cell]
    return len(bare) > 2 and all(cell.isdigit() for cell in bare) and [int(cell) for cell in bare] == list(
        range(int(bare[0]), int(bare[0]) + len(bare))
    ) and int(bare[0]) <= 10  # fmt: skip


def _last_row(grid: Grid, values: list[int]) -> int:
    """Return the last row of the table, from 1: below it nothing stands where numbers were."""
    there = pl.lit(False)
    for at in values:
        bare = pl.col(str(at)).str.strip_chars(" \t\r\n\u00a0")
        there = (
            there
            | (bare.str.contains(r"[0-9]") & (bare.str.len_chars() <= 25))
            | bare.str.to_lowercase().is_in(["x", "..", "...", "…", "-", "–", "c", "s", ":", "*", "na", "n/a"])
        )
    held = grid.cells.select(there.fill_null(False).alias("held"))["held"]
    last = held.arg_true()
    return int(last[-1]) + 1 if len(last) else grid.cells.height
