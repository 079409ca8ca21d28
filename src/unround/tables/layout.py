"""Layout: where in a sheet the header stands, and where the table begins and ends, between titles and footnotes.

How numbers are written in a table: what groups their digits, what parts decimals, which signs stand in their place.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import polars as pl

from unround.errors import InputError
from unround.tables.grid import Grid, letters
from unround.tables.symbols import FLAGGED, RANGED, SIGNS

NUMBER = "^[+−-]?(?:[0-9]{1,3}(?:[.,'\u2019 \u00a0\u202f\u2009][0-9]{3})+|[0-9]+)(?:[.,][0-9]*)?(?:[eE][+-]?[0-9]{1,3})?%?$"
"""What may be a number, in any country's writing."""
PADDING = " \t\r\n\u00a0\u202f\u2009\"'\ufeff"
MOST_SIGNS, LONGEST_SIGN = 30, 24
"""Other texts of a column of counts that are listed; longer ones are text."""
_PLAIN_SHARE = 0.02
"""At least so many of the counts are below 1,000, or a point before three digits is one of decimals."""
_MANY = 15
"""Unless there are so many of them: one decimal in ten ends in a zero, which few programs write."""


@dataclass(frozen=True, slots=True)
class Writing:
    """How numbers are written.

    `signs` are texts in place of a number, and how often each occurs; `blank` is how many cells are empty.
    """

    thousands: str = ""
    decimal: str = ""
    signs: Mapping[str, int] = field(default_factory=dict)
    blank: int = 0


# What is asked of every cell, as one expression each: asked a step at a time, each step would take as long as all of them.
_BARE = pl.all().cast(pl.String).str.strip_chars(PADDING)
_IS_FILLED = (pl.all() != "").fill_null(False)
_IS_NUMBER = pl.all().str.contains(NUMBER).fill_null(False)
_IS_COUNT = pl.all().str.contains(f"{NUMBER}|{FLAGGED}").fill_null(False)
_IS_SYMBOL = (pl.all().str.to_lowercase().is_in([*SIGNS, ":", "."]) | pl.all().str.contains(RANGED)).fill_null(False)
_STANDS_FOR_COUNT = _IS_SYMBOL & (pl.all().str.to_lowercase() != "none").fill_null(True)
"""Where the header is still looked for: there "None" is a category, not an empty cell."""

Cells = TypeVar("Cells", pl.Series, pl.DataFrame)
"""A column, or several."""


def _asked(cells: Cells, what: pl.Expr) -> Cells:
    return cells.select(what) if isinstance(cells, pl.DataFrame) else cells.to_frame().select(what).to_series()


def bare_text(cells: Cells) -> Cells:
    """Return the cells without what surrounds them."""
    return _asked(cells, _BARE)


def are_numbers(bare: Cells) -> Cells:
    """Return which cells may be numbers."""
    return _asked(bare, _IS_NUMBER)


def are_counts(bare: Cells) -> Cells:
    """Return which cells hold a number, perhaps with a flag."""
    return _asked(bare, _IS_COUNT)


def are_signs(bare: Cells) -> Cells:
    """Return which cells hold a symbol or a range that stands in place of a count."""
    return _asked(bare, _IS_SYMBOL)


def find_writing(columns: Iterable[pl.Series]) -> Writing:
    """Find out how the numbers of some columns are written.

    >>> find_writing([pl.Series(["1.234", "15", "x", "990"])])
    Writing(thousands='.', decimal=',', signs={'x': 1}, blank=0)
    >>> find_writing([pl.Series(["0.125", "0.5"])]).thousands
    ''
    >>> find_writing([pl.Series(["1,234.5", "15"])]).decimal, find_writing([pl.Series(["12,5", "15"])]).decimal
    ('', ',')
    """
    numbers: Counter[str] = Counter()
    signs: Counter[str] = Counter()
    blank = 0
    for column in columns:
        if column.dtype != pl.String:
            blank += column.null_count()
            continue
        bare = bare_text(column)
        empty = (bare.is_null() | (bare == "")).fill_null(True)
        blank += int(empty.sum())
        fits = are_numbers(bare)
        shapes = bare.filter(fits).str.replace_all("[0-9]", "9").str.strip_chars("+-−%").value_counts()
        for shape, times in shapes.iter_rows():
            numbers[shape] += times
        for sign, times in bare.filter(~fits & ~empty).value_counts().iter_rows():
            signs[sign] += times
    zeros = any(_starts_with_zero(column) for column in columns if column.dtype == pl.String)
    thousands, decimal = _marks(numbers, zeros)
    return Writing(thousands, decimal, dict(signs.most_common(MOST_SIGNS)), blank)


def _starts_with_zero(column: pl.Series) -> bool:
    """Return whether a number such as 0.125 or 0,125 is there, in which the mark cannot group digits."""
    return bool(bare_text(column).str.contains("^[+−-]?0+[.,][0-9]").fill_null(False).any())


def _marks(shapes: Mapping[str, int], zeros: bool) -> tuple[str, str]:
    """Return what groups digits and what parts decimals, told by the shapes of the numbers."""

    def any_like(pattern: str) -> bool:
        return bool(pl.Series([*shapes], dtype=pl.String).str.contains(pattern).any())

    if any_like(r"^9{1,3}(?:\.999){2,}|\.999,") and not any_like(r",999(?:\.|,)"):
        return ".", ","
    if any_like(r"^9{1,3}(?:,999){2,}|,999\.") and not any_like(r"\.999,"):
        return ",", ""
    point, comma = _three_digits(shapes, "."), _three_digits(shapes, ",")
    if any_like(r",(?:9{1,2}|9{4,})$") and not any_like(r"\.9{1,2}$"):
        return ("." if point and not zeros else ""), ","  # 12,5: the comma parts decimals
    if point and not zeros and not any_like(r"\.(?:9{1,2}|9{4,})$"):
        return ".", ","
    if comma and not zeros:
        return ",", ""
    if zeros and any_like(",9") and not any_like(r"\.9"):
        return "", ","
    return "", ""


def _three_digits(shapes: Mapping[str, int], mark: str) -> bool:
    """Return whether a mark stands before three digits wherever it stands, and numbers without it are below 1,000.

    Decimals of three places have it everywhere, so that some counts must do without; or there are so many numbers that
    some of the decimals would end in a zero, which is not written.
    """
    grouped = sum(times for shape, times in shapes.items() if mark in shape)
    plain = sum(times for shape, times in shapes.items() if set(shape) == {"9"} and len(shape) <= 3)
    long = sum(times for shape, times in shapes.items() if set(shape) == {"9"} and len(shape) > 3)
    fits = all(len(shape) - shape.rindex(mark) == 4 for shape in shapes if mark in shape)
    return grouped > 0 and fits and not long and (plain >= _PLAIN_SHARE * (grouped + plain) or grouped >= _MANY)


HEAD = 200
"""Rows that are looked at to find the header."""
MOST_HEADER_ROWS = 4
MOST_ROWS, MOST_NOTES = 20_000, 100
"""Rows of a sheet up to which further tables and headings of groups are looked for; rows of notes that are read."""
_NUMBERS = 0.6
"""A column in which so many of the filled cells of the lower half are numbers is one of numbers."""
_RANGED = re.compile(RANGED)
_UNIT = re.compile(
    r"\(?(?:numbers?|no\.?|n|counts?|persons?|people|households?|anzahl|personen|nombre|effectifs?|número|aantal|units?)\)?",
    re.I,
)
_YEAR = re.compile(r"(?:18|19|20|21)\d\d")
_NARROWEST = 4
"""Columns of two tables that stand side by side, at least."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a table stands: rows, from 1, of its header, its first and its last one; and the texts above and below it.

    `skip` are rows within that hold a text and no number. `heading` is what a single cell above the header says of all
    columns of counts: "Age". `above` and `below` are by row.
    """

    header: tuple[int, ...]
    rows: tuple[int, int]
    above: Mapping[int, str] = field(default_factory=dict)
    below: Mapping[int, str] = field(default_factory=dict)
    heading: str = ""
    skip: tuple[int, ...] = ()
    percentages: tuple[int, ...] = ()
    """Rows of percentages, each of the row above."""
    columns: tuple[int, int] | None = None
    """The first and the last column, from 0, where tables stand side by side."""
    continued: bool = False
    """Whether the same headings stand beside it, over other rows: one list that goes on there."""
    sheet: str | None = None

    @property
    def name(self) -> str:
        """What to call the place where it stands in its file."""
        rows = f"rows {self.rows[0]}–{self.rows[1]}" + (f", columns {self.letters}" if self.letters else "")
        return rows if self.sheet is None else f"sheet {self.sheet}, {rows}"

    @property
    def letters(self) -> str | None:
        """The letters of its columns, where tables stand side by side."""
        return None if self.columns is None else "-".join(map(letters, self.columns))

    @property
    def options(self) -> str:
        """The options that choose it."""
        header = f"{self.header[0]}-{self.header[-1]}" if len(self.header) > 1 else self.header[0]
        beside = f" --columns {self.letters}" if self.letters else ""
        return ("" if self.sheet is None else f'--sheet "{self.sheet}" ') + f"--header {header}{beside}"

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts around the table, in which notes stand."""
        return (*self.above.values(), *self.below.values())


def find_layouts(grid: Grid) -> list[Layout]:
    """Find all tables of a grid that stand below each other or side by side."""
    layouts: list[Layout] = []
    for columns in _side_by_side(grid):
        alone = grid.only(columns)
        starts = _headers_below(alone)
        for first, last in itertools.pairwise([0, *starts, grid.cells.height]):
            layout = find_layout(replace(alone, cells=alone.cells[:last]), None, first)
            if (
                layouts and columns is not None
            ):  # texts on the left are about all that stand side by side, unless they have some
                layout = replace(layout, above=layout.above or layouts[0].above, below=layout.below or layouts[0].below)
            layouts.append(replace(layout, columns=columns))
    if len({layout.columns for layout in layouts}) > 1:
        names = [_names_of(grid, layout) for layout in layouts]
        alike = [(head, at) for at, (head, _) in enumerate(names)]
        for at, (head, rows) in enumerate(names):
            beside = [names[other][1] for other_head, other in alike if other != at and other_head == head]
            layouts[at] = replace(layouts[at], continued=any(not rows & others for others in beside))
    return layouts


def _names_of(grid: Grid, layout: Layout) -> tuple[list[str], set[str]]:
    """Return the headings of a table that stands beside others, and the names of its rows."""
    first, last = layout.columns or (0, grid.cells.width - 1)
    headings = [cell for row in layout.header for cell in grid.row(row - 1)[first : last + 1] if cell]
    rows = {grid.row(row - 1)[first] for row in range(layout.rows[0], layout.rows[1] + 1)}
    return headings, rows - {""}


def _side_by_side(grid: Grid) -> list[tuple[int, int]] | list[None]:
    """Return the columns of each table, where several stand side by side: each begins with names of its own."""
    if grid.cells.height > MOST_ROWS or grid.cells.width < _NARROWEST:
        return [None]
    bare = bare_text(grid.cells)
    filled, counted = bare.select(_IS_FILLED).get_columns(), are_counts(bare).get_columns()
    first = next((at for at, cells in enumerate(filled) if cells.any()), 0)
    heads = grid.cells[str(first)].to_list()
    starts = [first]
    for at in range(first + 2, bare.width - 1):
        body = counted[at + 1]
        names = int((filled[at] & ~counted[at] & body).sum())
        gap = not filled[at - 1].any()
        again = any(head and head == grid.cells[str(at)][row] for row, head in enumerate(heads) if not body[row])
        held = int(body.sum())
        if (gap or again) and held > 1 and (names > held / 2 or (again and int((filled[at] & body).sum()) == held)):
            starts.append(at)
    ends = [*(start - 1 for start in starts[1:]), bare.width - 1]
    return list(zip(starts, ends, strict=True)) if len(starts) > 1 else [None]


def _headers_below(grid: Grid) -> list[int]:
    """Return the rows, from 0, with which a further table begins: its title, or the header itself."""
    if not 0 < grid.cells.height <= MOST_ROWS:
        return []
    bare = bare_text(grid.cells)
    # "0-14" may be a range in place of a count, or an age in a header.
    counts = _IS_COUNT | (_STANDS_FOR_COUNT & ~pl.all().str.contains("^[0-9]"))
    filled, counted = ([cells.to_list() for cells in bare.select(what)] for what in (_IS_FILLED, counts))
    height, width = grid.cells.height, grid.cells.width
    stub = next((at for at in range(width) if any(filled[at])), 0)
    data = [
        any(counted[at][row] for at in range(stub + 1, width)) and not _only_years(grid.row(row)) for row in range(height)
    ]
    top = data.index(True) if True in data else 0
    if _only_years(["", *grid.row(top)[stub + 1 :]]) and top + 1 < height and not data[top + 1]:
        data[top] = False  # "District | 2022 | 2023" above a second row of headings
    texts = [sum(filled[at][row] and not counted[at][row] for at in range(width)) for row in range(height)]
    starts = []
    first = next((row for row in range(height) if data[row]), height)
    header = grid.row(first - 1) if first else []
    row = first
    while row < height:
        named = [at for at in range(stub + 1, width) if filled[at][row] and not counted[at][row]]
        after = next((lower for lower in range(row + 1, min(height, row + 1 + MOST_HEADER_ROWS)) if data[lower]), None)
        apart = row > 0 and not any(cells[row - 1] for cells in filled)
        if not data[row] and texts[row] > 1 and after is not None and named:
            below = [at for at in range(stub + 1, width) if counted[at][after]]
            over = sum(at in named for at in below)
            title = row > 1 and texts[row - 1] == 1 and not data[row - 1]
            again = grid.row(row) == header
            if again and not title and _continues(grid, first, row, height):
                row = after
                continue
            ranges = all(_RANGED.search(grid.row(row)[at]) for at in named)
            if again or (over >= max(1, len(below) / 2) and (apart or title or (over > 1 and not ranges))):
                starts.append(_title(row, data, filled))
                header, row = grid.row(after - 1), after
        row += 1
    return starts


def _only_years(cells: list[str]) -> bool:
    """Return whether a row names years and nothing else: it is part of a header."""
    named = [cell for cell in cells if cell]
    return not cells[0] and bool(named) and all(_YEAR.fullmatch(cell) for cell in named)


def _continues(grid: Grid, first: int, row: int, height: int) -> bool:
    """Return whether the rows below a header that is repeated are named otherwise than those above: one table goes on."""
    above = {grid.row(at)[0] for at in range(first, row)}
    below = {grid.row(at)[0] for at in range(row + 1, height)}
    return not (above & below) - {""}


def _title(row: int, data: list[bool], filled: list[list[bool]]) -> int:
    """Return the first row of the title above a header: what stands there without an empty row between."""
    top = row
    while top > 0 and not data[top - 1] and any(cells[top - 1] for cells in filled):
        top -= 1
    if top > 0 and data[top - 1]:
        return row  # notes of the table above, or no title at all
    return top


def find_layout(grid: Grid, header: tuple[int, ...] | None = None, start: int = 0) -> Layout:
    """Find the header of a grid from a row on, counted from 0, and the end of its table."""
    head = grid.cells[start : start + HEAD]
    bare = bare_text(head)
    filled, numbers, signs = (
        [cells.to_list() for cells in bare.select(what)] for what in (_IS_FILLED, _IS_COUNT, _STANDS_FOR_COUNT)
    )
    values = _number_columns(filled, numbers, signs, head.height)
    if not values or _is_list([replace(grid, cells=head).row(row) for row in range(head.height)], values):
        other = (
            "" if grid.sheet is None else f" If the table is on another sheet: unround describe {grid.source} --sheet NAME"
        )
        raise InputError(f"{grid.place} has no column of numbers below a header, so there are no counts in it.{other}")
    part = replace(grid, cells=grid.cells[start:])
    first = max(header) - start if header else _first_row(part, values, filled, numbers, signs)
    rows = tuple(row - start for row in header) if header else _header_rows(part, first, values, filled)
    last = _last_row(part, values)
    spanning = ""
    above = [row for row in range(min(rows) - 1) if any(cells[row] for cells in filled)]
    if above and above[-1] == min(rows) - 2:
        within = [at for at, cells in enumerate(filled) if cells[above[-1]]]
        if len(within) == 1 and 0 < within[0] in values and len(part.row(above[-1])[within[0]]) <= 40:
            spanning = part.row(above.pop())[within[0]]
    between = range(max(rows), max(first, max(rows)))
    headed = all(not any(row := part.row(at)) or _is_heading(row, values) for at in between)
    begin = max(rows) if headed else max(first, max(rows))

    def said(rows: Iterable[int]) -> dict[int, str]:
        return {row + start + 1: text for row in rows if (text := " ".join(c for c in part.row(row) if c))}

    named = part.row(max(rows) - 1)
    inside = range(begin, last) if last - begin <= MOST_ROWS else range(0)
    skip = [row for row in inside if (cells := part.row(row)) == named or _is_heading(cells, values)]
    shares = _percentages(part, inside, values)
    return Layout(
        tuple(row + start for row in rows),
        (begin + start + 1, last + start),
        said(above),
        said(range(last, min(part.cells.height, last + MOST_NOTES))),
        spanning,
        tuple(row + start + 1 for row in skip),
        tuple(row + start + 1 for row in shares),
        sheet=grid.sheet,
    )


_PERCENT = re.compile(
    r"(?:in )?%.*|\(%\)|(?:row |column |col\.? )?(?:%|per ?cents?|percentages?)\b.*|pct\.?|prozent|anteil.*|"
    r"pourcentages?|porcentajes?|porcentagem|por ?cento|percentuale|procent",
    re.I,
)


def _percentages(grid: Grid, rows: range, values: list[int]) -> list[int]:
    """Return the rows that hold percentages of the row right above, if the table has them throughout."""
    percentages: list[int] = []
    counted, sure = 0, False  # rows of signs alone may be hidden counts
    for row in rows:
        cells = grid.row(row)
        shown = [cells[at] for at in values if cells[at]]
        named = any(_PERCENT.fullmatch(cell) for at, cell in enumerate(cells) if at not in values)
        signed = bool(shown) and all(cell.endswith("%") or cell in SIGNS for cell in shown)
        if shown and (named or signed) and counted and (not percentages or percentages[-1] != row - 1):
            percentages.append(row)
            sure = sure or named or any(cell.endswith("%") for cell in shown)
        elif shown:
            counted += 1
    return percentages if sure and len(percentages) > 1 and len(percentages) >= counted - 2 else []


def _is_list(rows: list[list[str]], values: list[int]) -> bool:
    """Return whether the only numbers are those of numbered texts, such as notes."""
    first, *more = values
    numbers = [row[first] for row in rows if row[first].rstrip(".").isdigit()]
    counted = [str(number) for number in range(1, len(numbers) + 1)] == [number.rstrip(".") for number in numbers]
    return not more and counted and any(len(cell) > LONGEST_SIGN for row in rows for cell in row[first + 1 :])


def _is_heading(cells: list[str], values: list[int]) -> bool:
    """Return whether a row holds one text and no number: it heads the rows below, or is a remark."""
    return sum(bool(cell) for cell in cells) == 1 and not any(cells[at] for at in values)


def _number_columns(filled: list[list[bool]], numbers: list[list[bool]], signs: list[list[bool]], height: int) -> list[int]:
    """Return the columns whose lower part holds numbers."""
    columns = []
    for at in range(len(filled)):
        for lower in (range(height // 2, height), range(height)):
            there = sum(filled[at][row] and not signs[at][row] for row in lower)
            counted = sum(numbers[at][row] for row in lower)
            if counted:
                break
        if counted and counted >= _NUMBERS * there:
            columns.append(at)
    return columns


def _first_row(
    grid: Grid, values: list[int], filled: list[list[bool]], numbers: list[list[bool]], signs: list[list[bool]]
) -> int:
    """Return the row, from 0, that the table below the header begins with."""
    height = len(filled[0])

    def counts(row: int) -> bool:
        there = [at for at in values if filled[at][row]]
        some = any(numbers[at][row] for at in there)
        return some and sum(numbers[at][row] or signs[at][row] for at in there) >= max(1, len(values) / 2)

    def is_hidden(row: int) -> bool:
        cells = grid.row(row)
        named = any(cells[at] for at in range(values[0]))
        return named and all(signs[at][row] and not re.search(r"\d", cells[at]) for at in values)

    first = next((row for row in range(height) if counts(row)), 0)
    top = first
    while top > 1 and is_hidden(top - 1) and any(filled[at][top - 2] for at in values):
        top -= 1
    if top < first:
        return top  # all counts are hidden in the first rows
    if first + 1 < height:
        row = grid.row(first)
        shown = [row[at] for at in values if numbers[at][first]]
        alone = not any(sum(cells[above] for cells in filled) > 1 for above in range(first)[-1:])
        runs = [year for year, _ in itertools.groupby(shown)]  # a merged cell names several columns
        years = all(_YEAR.fullmatch(cell) for cell in shown) and len(set(runs)) == len(runs) > 1
        beyond = [grid.row(first + 1)[at] for at in values]
        if years and (alone or first == 0) and not all(_YEAR.fullmatch(cell) for cell in beyond if cell):
            # Years are numbers, but these name the columns.
            return next((row for row in range(first + 1, height) if counts(row)), first + 1)
        bracketed = all(cell[0] in "([" for cell in shown)
        shown = [cell.strip("()[]") for cell in shown]
        begin = int(shown[0]) if shown[0].isdigit() else 1
        counted = shown == [str(number) for number in range(begin, begin + len(shown))]
        if counted and (bracketed or len(shown) > 3) and len(shown) > 2 and (not alone or first == 0):
            return first + 1  # 1, 2, 3, …: some agencies number their columns, and single years of age name them
    return first


def _header_rows(grid: Grid, first: int, values: list[int], filled: list[list[bool]]) -> tuple[int, ...]:
    """Return the rows above the table that name its columns, from 1."""
    rows: list[int] = []
    at = first - 1
    while at >= 0 and not any(cells[at] for cells in filled):
        at -= 1  # an empty row between header and table
    top = at
    while top > 0 and _is_heading(grid.row(top), values):
        top -= 1  # a row that heads the first group
    if top < at and len(set(filter(None, grid.row(top)))) > 1 and any(filled[c][top] for c in values):
        at = top
    while at >= 0 and len(rows) < MOST_HEADER_ROWS:
        cells = [cell for cell in grid.row(at) if cell]
        if at > 0 and len(cells) > 1 and len(set(cells)) == 1 and _UNIT.fullmatch(cells[0]):
            at -= 1  # a row of units, the same for all
            continue
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
    """Return whether cells only number the columns, as in (1), (2), (3)."""
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
            | bare.str.to_lowercase().is_in([*SIGNS, ":", "."])
        )
    held = grid.cells.select(there.fill_null(False).alias("held"))["held"]
    last = held.arg_true()
    return int(last[-1]) + 1 if len(last) else grid.cells.height
