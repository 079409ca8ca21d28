"""Delimited files as tables: with a header in the first line, or as rows of text before anybody says where one is."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator

import polars as pl

from unround.errors import InputError
from unround.small_files import LONGEST_NAME
from unround.tables.grid import Grid, HeadedTable, blank_to_null
from unround.tables.source import MOST_AREAS, Source, called

MOST_COLUMNS = 50_000
"""A census has six thousand counts an area: a table with more columns than this has its areas there."""
_BY_REGION = (
    "Split it by region, and give the parts one by one. If it has one line per count, describe its first lines "
    "(`unround describe`), and give that description with all of it."
)


def read_table(source: Source, advice: str = "export it again", *, wide: bool = False) -> HeadedTable:
    """Read a table whose header is its first line: every cell as text, what is empty as null, and no empty lines.

    A wide table has one line per area, which must have as many fields as the header.
    """
    text = source.whole(MOST_AREAS, _BY_REGION) if wide else source.whole()
    # Not from the head of the file: a header of thousands of columns is longer than that. Blanks side by side are one, or
    # patterns that look for something between blanks take for ever.
    _, header = next(rows_of(source, text), (1, list[str]()))
    names = tuple(" ".join(name.split()) for name in header)
    if len(names) > MOST_COLUMNS:
        raise InputError(
            f"{source.path} has {len(names):,} columns; at most {MOST_COLUMNS:,} can be read. Put areas into rows, not "
            "into columns."
        )
    if longest := next((name for name in names if len(name) > LONGEST_NAME), ""):
        raise InputError(
            f"{source.path} has a column whose name begins {longest[:60]!r} and has {len(longest):,} characters. Look for a "
            "quote in the header that is not closed."
        )
    try:
        cells = pl.read_csv(io.BytesIO(text), infer_schema=False, separator=source.delimiter)
    except pl.exceptions.PolarsError as error:
        if wide:
            _refuse_ragged(source, text, len(names))
        said = (str(error).splitlines() or [""])[0][:200]
        raise InputError(f"{source.path} cannot be read as a table ({said}); {advice}.") from None
    if cells.width != len(names):
        raise InputError(f"{source.path}: the header cannot be read, because a quote in it is not closed; {advice}.")
    if not wide:  # one may have columns of one name that nobody asks for: polars numbers them
        names = tuple(" ".join(name.split()) for name in cells.columns)
    if twice := [name for name, times in Counter(names).items() if name and times > 1]:
        raise InputError(f"{source.path} has more than one column called {twice[0]!r}; keep one, or rename the others.")
    cells.columns = [str(at) for at in range(cells.width)]
    # A short line lacks its last column, which then reads as empty: only if there are such lines need they be counted out.
    if cells.width and cells[str(cells.width - 1)].null_count():
        if wide:
            _refuse_ragged(source, text, len(names))
        cells = cells.filter(~pl.all_horizontal(pl.all().is_null()))
    if wide and cells.is_empty():
        raise InputError(f"{source.path} has a header but no lines of data below it; download it again.")
    return HeadedTable((names,), cells, str(source.path), source.size, notes=tuple(source.notes))


def read_rows(source: Source) -> Grid:
    """Read a file as rows of text. Rows may differ in length: titles and notes are shorter than the table."""
    text = source.whole(MOST_AREAS, _BY_REGION)
    width = max((len(row) for _, row in rows_of(source, text)), default=0)
    if width > MOST_COLUMNS:
        raise InputError(f"{source.path} has over {MOST_COLUMNS:,} columns; put areas into rows, not into columns.")
    # Polars takes the number of columns from the first row, so that one of full width is put above.
    full = source.delimiter.encode() * max(0, width - 1) + b"\n"
    try:
        cells = pl.read_csv(io.BytesIO(full + text), separator=source.delimiter, has_header=False, infer_schema=False)
    except pl.exceptions.PolarsError as error:
        said = (str(error).splitlines() or [""])[0][:200]
        raise InputError(f"{source.path} cannot be read as a table ({said}); check its delimiters and quotes.") from None
    cells = cells[1:]
    cells.columns = [str(at) for at in range(cells.width)]
    return Grid(blank_to_null(cells), str(source.path), source.size, notes=tuple(source.notes))


def _refuse_ragged(source: Source, text: bytes, width: int) -> None:
    """Complain of the first line that has more or fewer fields than the header."""
    for line, row in rows_of(source, text):
        if len(row) != width and any(field.strip() for field in row):
            raise ragged(source, line, len(row), width)


def rows_of(source: Source, text: bytes) -> Iterator[tuple[int, list[str]]]:
    """Go through a table field by field, each row with the number of its (last) line."""
    reader = csv.reader(io.TextIOWrapper(io.BytesIO(text), "utf-8", newline=""), delimiter=source.delimiter)
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise InputError(
            f"{source.path}, line {reader.line_num}: {error}. Look for a quote before that line that is not closed."
        ) from None


def ragged(source: Source, line: int, found: int, width: int) -> InputError:
    """Return the error for a line that is longer or shorter than the header."""
    return InputError(
        f"{source.path}, line {line}: {found} fields where the header has {width}. Look for a missing or extra "
        f"{called(source.delimiter)} in that line, or for a file that was cut short, and download or export it again."
    )
