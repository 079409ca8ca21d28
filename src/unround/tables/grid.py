"""Grids: a sheet or a delimited file as rows of text, before anybody says which of them are its header.

Every cell is text, as it stands in the file; an empty one is null. Rows are numbered as people see them, from 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import polars as pl

from unround.errors import InputError

NAMES_JOINED = " / "
"""What stands between the cells of several header rows, in the name of a column."""

_PADDING = " \t\r\n\u00a0\u202f\u2009\ufeff"


@dataclass(frozen=True, slots=True)
class Merged:
    """Cells that were merged into one: rows and columns, from 0, both ends included."""

    top: int
    left: int
    bottom: int
    right: int

    @property
    def name(self) -> str:
        """What spreadsheets call the range: "B4:D4"."""
        return f"{letters(self.left)}{self.top + 1}:{letters(self.right)}{self.bottom + 1}"


@dataclass(frozen=True, slots=True)
class Marks:
    """What a spreadsheet says of cells beside their content; rows and columns from 0.

    - `indents`: How far cells are indented by their format.
    - `unstored`: Cells with a formula whose value is not in the file.
    - `hidden_rows`, `hidden_columns`: Those that people do not see, but get with the file.
    - `comments`: What is written beside cells, by their names, such as C5.
    - `masked`: Formats that show a text in place of a number, each with the cells where they do.
    """

    indents: Mapping[tuple[int, int], int] = field(default_factory=dict)
    unstored: frozenset[tuple[int, int]] = frozenset()
    hidden_rows: tuple[int, ...] = ()
    hidden_columns: tuple[int, ...] = ()
    comments: Mapping[str, str] = field(default_factory=dict)
    masked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Rows of text.

    - `cells`: Columns "0", "1", … of strings; row 0 is the first row of the file.
    - `source`: The file.
    - `size`: Of the file, in bytes.
    - `sheet`: Which sheet of a spreadsheet it is.
    - `merged`: Cells that are one, where the file says so. Only the first of them holds their content.
    - `marks`: What the file says of cells beside their content.
    - `notes`: What a user should know about how the file was read.
    """

    cells: pl.DataFrame
    source: str
    size: int = 0
    sheet: str | None = None
    merged: tuple[Merged, ...] = ()
    marks: Marks = field(default_factory=lambda: Marks(), repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)

    @property
    def place(self) -> str:
        """What to call the grid in errors."""
        return self.source if self.sheet is None else f"{self.source}, sheet {self.sheet!r}"

    def only(self, columns: tuple[int, int] | None) -> Grid:
        """Return the grid with nothing left in it but some columns, from the first to the last; None keeps all."""
        if columns is None:
            return self
        first, last = columns
        outside = [name for at, name in enumerate(self.cells.columns) if not first <= at <= last]
        cells = self.cells.with_columns(pl.lit(None, dtype=pl.String).alias(name) for name in outside)
        return replace(self, cells=cells, merged=tuple(merged for merged in self.merged if first <= merged.left <= last))

    def heading(self, row: int, column: int) -> str:
        """Return what stands in a cell, or in the one over several columns that it is part of; a title is over all."""
        inside = (
            merged
            for merged in self.merged
            if merged.top <= row <= merged.bottom and 0 < merged.left <= column <= merged.right
        )
        cell = next(inside, Merged(row, column, row, column))
        return self.row(cell.top)[cell.left]

    def row(self, at: int) -> list[str]:
        """Return one row; what is empty is ""."""
        return ["" if cell is None else " ".join(cell.replace("\ufeff", "").split()) for cell in self.cells.row(at)]


@dataclass(frozen=True, slots=True, eq=False)
class HeadedTable:
    """A table whose header is known: the cells of every row of the header, column by column, and the cells below.

    `header[i][j]` is what the i-th row of the header says of column j, with spanning cells repeated over what they span.
    `cells` has columns "0", "1", …, of text or, for frames, of numbers. `numbers` are those of its rows in the file,
    `texts` notes on the counts that came with it, and `depths` how far rows are indented, in each column where any is.
    """

    header: tuple[tuple[str, ...], ...]
    cells: pl.DataFrame
    source: str
    size: int = 0
    merged: tuple[Merged, ...] = ()
    numbers: tuple[int, ...] = field(default=(), repr=False)
    depths: Mapping[int, tuple[int, ...]] = field(default_factory=dict, repr=False)
    marks: Marks = field(default_factory=Marks, repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)
    texts: tuple[str, ...] = field(default=(), repr=False)

    def number(self, at: int) -> int:
        """Return the number of a row in the file, as people count."""
        return self.numbers[at] if self.numbers else at + 2

    @property
    def names(self) -> list[str]:
        """What every column is called: the cells of its header, each once; or "column A", if there are none.

        Of several that are called alike, only the first keeps the name.
        """
        joined = [
            NAMES_JOINED.join(dict.fromkeys(cell for cell in column if cell)) for column in zip(*self.header, strict=True)
        ]
        named = [name or f"column {letters(at)}" for at, name in enumerate(joined)]
        first = {name: at for at, name in reversed(list(enumerate(named)))}
        return [name if first[name] == at else f"{name} (column {letters(at)})" for at, name in enumerate(named)]

    @property
    def frame(self) -> pl.DataFrame:
        """The cells, in columns called by their names."""
        return self.cells.rename({str(at): name for at, name in enumerate(self.names)})

    def is_named(self, at: int) -> bool:
        """Return whether the header names a column."""
        return any(row[at] for row in self.header)

    def column(self, at: int) -> pl.Series:
        """Return the cells of one column."""
        return self.cells[str(at)]


_SHARED = r"^([0-9][0-9., \u00a0\u202f]*) ?\(([0-9]+(?:[.,][0-9]+)?) ?%?\)$"
"""A count with its percentage in the same cell: 77 (38.7%)."""
_BOTH = re.compile(r"[,;]?\s*\(?\b(?:n|no\.?|number)\s*[,(/]\s*(?:%|per ?cent)\)*\s*$", re.IGNORECASE)
"""What headings say of such cells: n (%)."""
_FEWEST_SHARED = 2


_DIGITS = "０１２３４５６７８９．，－％", "٠١٢٣٤٥٦٧٨٩٫٬-٪", "۰۱۲۳۴۵۶۷۸۹٫٬-٪"
"""Digits, point, comma, minus and percent sign as they are written in other scripts."""


def told_apart(grid: Grid) -> Grid:
    """Return a grid with digits as in English, and with a column for everything that shares its cells with something else.

    What shared them stands at the end, so that no column moves.
    """
    written = dict[str, str]()
    for digits in _DIGITS:
        written |= dict(zip(digits, "0123456789.,-%", strict=True))
    foreign = [cells.name for cells in grid.cells.select(pl.all().str.contains("[０-９٠-٩۰-۹]").any()) if cells.any()]
    grid = replace(grid, cells=grid.cells.with_columns(pl.col(foreign).str.replace_many(written)))
    return _shares_apart(_keys_apart(grid))


def _keys_apart(grid: Grid) -> Grid:
    r"""Return a grid in which the keys of a row, written as "freq,geo\TIME_PERIOD" in its first cell, have a column each."""
    first = grid.cells["0"].str.strip_chars(_PADDING)
    names = (first[0] or "").partition("\\")[0].split(",") if len(first) else []
    if (
        len({*names} - {""}) < len(names)
        or len(names) < 2
        or "\\" not in (first[0] or "")
        or (first.str.count_matches(",") != len(names) - 1).any()
    ):
        return grid
    keys = pl.concat([pl.Series([",".join(names)]), first[1:].alias("")]).str.split(",").list.to_struct(fields=names).struct
    width = grid.cells.width
    columns = [keys.field(name).alias("0" if not at else str(width + at - 1)) for at, name in enumerate(names)]
    return replace(grid, cells=grid.cells.with_columns(columns))


def _shares_apart(grid: Grid) -> Grid:
    """Return a grid in which counts and percentages that share cells stand in columns of their own, the latter at the end.

    Where an empty column parts what may be two tables, it is not known to which one the end belongs.
    """
    cells, added = grid.cells, list[pl.Series]()
    empty = [cells[name].null_count() == cells.height for name in cells.columns]
    used = [at for at, nothing in enumerate(empty) if not nothing]
    if not used or any(empty[used[0] : used[-1]]):
        return grid
    padded = pl.all().str.strip_chars(_PADDING)
    percentages = padded.str.contains("%", literal=True) | padded.str.contains(r"[.,][0-9]+\)$")
    for at, both in enumerate(cells.select((padded.str.contains(_SHARED) & percentages).fill_null(False))):
        rows, name = both.arg_true().to_list(), both.name
        if len(rows) < _FEWEST_SHARED:
            continue
        bare = cells[name].str.strip_chars(_PADDING)
        share = bare.str.extract(_SHARED, 2).zip_with(both, pl.Series([None], dtype=pl.String)).to_list()
        count = bare.str.extract(_SHARED, 1).zip_with(both, cells[name]).to_list()
        heads = [(row, text) for row in range(rows[0]) if (text := grid.heading(row, at))]
        for row, text in heads:
            said = _BOTH.sub("", text) or "n"
            count[row] = None if count[row] is None else said
            share[row] = f"{said} (%)" if row == heads[-1][0] else said
        cells = cells.with_columns(pl.Series(name, count, dtype=pl.String))
        added.append(pl.Series(str(grid.cells.width + len(added)), share, dtype=pl.String))
    return replace(grid, cells=cells.hstack(added)) if added else grid


def letters(column: int) -> str:
    """Return what spreadsheets call a column, counted from 0.

    >>> letters(0), letters(27)
    ('A', 'AB')
    """
    name, left = "", column + 1
    while left:
        left, digit = divmod(left - 1, 26)
        name = chr(65 + digit) + name
    return name


@lru_cache(1 << 14)
def column_number(letters: str) -> int:
    """Return the number of a column, from 0, by its letters; those beyond the last column are left out.

    >>> column_number("A"), column_number("ab")
    (0, 27)
    """
    number = 0
    for letter in letters[:8].upper():
        number = number * 26 + ord(letter) - 64
    return number - 1


def columns_between(text: str) -> tuple[int, int]:
    """Return the first and the last of some columns, counted from 0.

    >>> columns_between("A-C"), columns_between("aa")
    ((0, 2), (26, 26))
    """
    ends = text.upper().replace(" ", "").replace(":", "-").split("-")
    numbers = [column_number(end) for end in ends]
    if not all(end.isascii() and end.isalpha() for end in ends) or len(ends) > 2 or numbers[0] > numbers[-1]:
        raise InputError(f"columns are given by their letters, such as F-I; not {text!r}.")
    return numbers[0], numbers[-1]


def blank_to_null(cells: pl.DataFrame) -> pl.DataFrame:
    """Return cells of text in which those of blanks are null."""
    bare = pl.all().str.strip_chars(_PADDING)
    return cells.with_columns(pl.when(bare == "").then(None).otherwise(pl.all()).name.keep())


def with_header(
    grid: Grid,
    header: Sequence[int],
    rows: tuple[int, int] | None = None,
    skip: Sequence[int] = (),
    headings: Mapping[str, Sequence[int]] | None = None,
    percentages: Sequence[int] = (),
) -> HeadedTable:
    """Cut a grid into its header and the rows below, without those to skip.

    `percentages` are rows of percentages of the row above: they become columns beside it.

    `headings` are rows that name a group, by the name of the group's axis: they become a column, in which every row below
    has the name of its group.
    """
    first, last = rows or (max(header) + 1, grid.cells.height)
    if min(header) < 1 or max(header) >= first or last > grid.cells.height or first > last:
        raise InputError(
            f"{grid.place} has {grid.cells.height:,} rows: a header in {_rows(header)} and a table from row {first} to "
            f"{last} cannot be. `unround describe {grid.source}` finds them."
        )
    spans = _spanned([grid.row(at - 1) for at in header], [at - 1 for at in header], grid.merged)
    spans = [_measured(row) for row in spans] if len(spans) == 1 else spans
    cells = grid.cells[first - 1 : last]
    for axis, those in (headings or {}).items():
        named = {row: next((cell for cell in grid.row(row - 1) if cell), "") for row in those}
        groups = pl.Series([named.get(row) for row in range(first, last + 1)], dtype=pl.String).forward_fill()
        cells = cells.with_columns(groups.alias(str(cells.width)))
        spans = [[*row, axis] for row in spans]
    gone = {*skip, *(row for those in (headings or {}).values() for row in those)}
    there = (~cells.select(pl.all_horizontal(pl.col(grid.cells.columns).is_null())).to_series()).to_list()
    kept = [at for at in range(cells.height) if there[at] and at + first not in gone]
    shares = [at for at in kept if at + first in set(percentages)]
    kept = [at for at in kept if at not in set(shares)]
    beside = _beside(cells, kept, shares)
    cells = cells[kept].with_columns(column.alias(str(cells.width + at)) for at, column in enumerate(beside.values()))
    spans = [[*row, *(f"{row[at]} (%)" if row is spans[-1] else row[at] for at in beside)] for row in spans]
    numbers = tuple(at + first for at in kept)
    cells, stepped = _one_stub(cells)
    return HeadedTable(
        tuple(tuple(row) for row in spans), cells, grid.source, grid.size, grid.merged, numbers,
        _depths(grid, numbers) | stepped, grid.marks, grid.notes,
    )  # fmt: skip


def _one_stub(cells: pl.DataFrame) -> tuple[pl.DataFrame, dict[int, tuple[int, ...]]]:
    """Put the names of groups and totals, which stand in a column before that of finer names, there; say who is indented."""
    depths: dict[int, tuple[int, ...]] = {}
    for at in range(1, cells.width):
        outer, inner = cells[str(at - 1)], cells[str(at)]
        there = inner.drop_nulls()
        if (
            outer.dtype != pl.String
            or not outer.str.contains(r"\p{L}").any()
            or 2 * there.str.contains(r"\p{L}").sum() < len(there)
        ):
            break  # numbers begin
        above = inner.is_null() & outer.is_not_null()
        names = outer.filter(above)
        staggered = not (outer.is_not_null() & inner.is_not_null()).any()
        if not len(names) or not len(there) or not (staggered or 2 * len(names) < cells.height):
            continue
        named = pl.concat([names.rename("name"), there.rename("name")])
        if named.n_unique() == len(named):
            before = depths.get(at - 1, (0,) * cells.height)
            depths[at] = tuple(depth + (not is_above) for depth, is_above in zip(before, above, strict=True))
            cells = cells.with_columns(inner.zip_with(~above, outer))
    return cells, depths


def _beside(cells: pl.DataFrame, kept: Sequence[int], shares: Sequence[int]) -> dict[int, pl.Series]:
    """Return the percentages of every column that has any, in the rows of the counts right above them."""
    above = {max(at for at in kept if at < share): share for share in shares if kept[0] < share}
    percentages = {}
    for at, name in enumerate(cells.columns if shares else ()):
        numbers = pl.Series([cells[name][above[row]] if row in above else None for row in kept], dtype=pl.String)
        if numbers.str.contains("[0-9]").any():
            percentages[at] = numbers
    return percentages


_MEASURE = re.compile(r"%|\(%\)|per ?cent|pct\.?|share|rate|n|number", re.IGNORECASE)


def _measured(row: list[str]) -> list[str]:
    """Return a row of the header in which "%" after several columns says of which: "Owned %", "Rented %"."""
    made, before = list(row), ""
    for at, cell in enumerate(row):
        if _MEASURE.fullmatch(cell) and row.count(cell) > 1 and before and row[at - 1] != cell:
            made[at] = f"{before} {cell}"
        elif not _MEASURE.fullmatch(cell):
            before = cell
    return made


_LED = r"^[\s\u00a0\u202f.·•>»–—…-]"
_LEADERS = (r"^([\s\u00a0\u202f.·•>»–—…-]+)\p{L}", r"^((?:\s|[.·•>»–—…-]+\s)+)")
"""What indents a text: blanks, and dots, dashes or arrows before it."""


def _depths(grid: Grid, numbers: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Return how far rows are indented, in every column of text: by what stands before the text, or by format."""
    depths = {}
    by_format = {column for _, column in grid.marks.indents}
    for at, name in enumerate(grid.cells.columns):
        column = grid.cells[name]
        if at not in by_format and not column.str.contains(_LED).any():
            continue
        before = column.str.extract(_LEADERS[0]), column.str.extract(_LEADERS[1])
        blanks = before[0].zip_with(before[0].is_not_null(), before[1]).str.len_chars().fill_null(0)
        if at in by_format or (blanks > 0).any():
            levels = [int(blanks[row - 1]) + 100 * grid.marks.indents.get((row - 1, at), 0) for row in numbers]
            order = {level: depth for depth, level in enumerate(sorted(set(levels)))}
            if len(order) > 1:
                depths[at] = tuple(order[level] for level in levels)
    return depths


def _rows(rows: Sequence[int]) -> str:
    return f"row {rows[0]}" if len(rows) == 1 else f"rows {', '.join(map(str, rows))}"


def _spanned(rows: list[list[str]], places: Sequence[int], merged: Sequence[Merged]) -> list[list[str]]:
    """Repeat cells of a header over what they span: merged cells, or cells that are empty beside a heading of several."""
    for span in merged:
        for at, place in enumerate(places):
            if span.top <= place <= span.bottom:
                columns = range(span.left, min(span.right + 1, len(rows[at])))  # none, where a range runs from right to left
                origin = rows[places.index(span.top)][span.left] if columns and span.top in places else ""
                for column in columns:
                    rows[at][column] = rows[at][column] or origin
    for at in range(len(rows) - 1):
        row, below = rows[at], rows[at + 1]
        for column in range(1, len(row)):
            # A heading of several has something below it, and so has what it spans; a name of its own has not.
            if not row[column] and row[column - 1] and below[column] and below[column - 1]:
                row[column] = row[column - 1]
    # A column with a name of its own in one row only, such as a total beside groups, has that name in all rows.
    for column in range(len(rows[0])):
        named = [row[column] for row in rows if row[column]]
        for row in rows:
            if not row[column] and named:
                row[column] = named[-1]
    return rows


def refuse_merged_counts(table: HeadedTable, columns: Sequence[int], place: str) -> None:
    """Raise if cells are merged where counts are: one count for several cells belongs to none of them."""
    wanted, rows = set(columns), set(table.numbers)
    for merged in table.merged:
        if merged.top + 1 in rows and any(column in wanted for column in range(merged.left, merged.right + 1)):
            raise InputError(
                f"{place}: the cells {merged.name} are merged, and counts stand there. It is not known which of them the "
                f"count belongs to: unmerge them in the spreadsheet, then run: unround describe {table.source}"
            )


def as_text(value: object) -> str | None:
    """Return a value of a spreadsheet as text: 12 for 12.0, nothing for an empty cell.

    >>> as_text(12.0), as_text(0.5), as_text(""), as_text(" x "), as_text(float("inf"))
    ('12', '0.5', None, ' x ', 'inf')
    """
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return str(int(value)) if abs(value) < 1e15 and value == int(value) else repr(value)  # which may be inf or nan
    text = str(value)
    return text if text.strip(_PADDING) else None
