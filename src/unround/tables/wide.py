"""Wide tables: a header, then one line per area. What the formats of this kind share."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError
from unround.release import ABSENT, UNREADABLE, Block, Counts, FigureValues, Progress
from unround.small_files import LONGEST_NAME
from unround.tables.source import Source, called
from unround.tables.symbols import as_counts

AREAS_AT_ONCE = 2_000
CELLS_AT_ONCE = 500_000
MOST_COLUMNS = 50_000
"""A census has six thousand counts an area: a table with more columns than this has its areas there."""
FRACTIONS = 0.02
"""A column in which more of the numbers than this have a fraction holds no counts; fewer are slips in a column of counts."""


@dataclass(frozen=True, slots=True)
class WideTable:
    """A wide table as text: the header as it stands in the file, without blanks around it, and the cells.

    The columns of `cells` are called "0", "1", … by their place, for names in a header may be anything.
    """

    header: tuple[str, ...]
    cells: pl.DataFrame

    def column(self, at: int) -> pl.Series:
        """Return the cells of one column; what is empty is null."""
        return self.cells[str(at)]


def read_wide(source: Source) -> WideTable:
    """Read a table whole.

    Raises `InputError` where lines differ in length, names in the header repeat, or there are no lines below it.
    """
    text = source.whole()
    # Not from the head of the file: a header of thousands of columns is longer than that. Blanks side by side are one, or
    # patterns that look for something between blanks take for ever.
    header = tuple(" ".join(name.split()) for name in next(rows_of(source, text), (1, list[str]()))[1])
    if len(header) > MOST_COLUMNS:
        raise InputError(
            f"{source.path} has {len(header):,} columns; at most {MOST_COLUMNS:,} can be read. Put areas into rows, not "
            "into columns."
        )
    if longest := next((name for name in header if len(name) > LONGEST_NAME), ""):
        raise InputError(
            f"{source.path} has a column whose name begins {longest[:60]!r} and has {len(longest):,} characters. Look for a "
            "quote in the header that is not closed."
        )
    twice = [name for name, times in Counter(header).items() if name and times > 1]
    if twice:
        raise InputError(f"{source.path} has more than one column called {twice[0]!r}; keep one, or rename the others.")
    try:
        cells = pl.read_csv(text, infer_schema=False, separator=source.delimiter)
    except pl.exceptions.PolarsError as error:
        _refuse_ragged(source, text, len(header))
        raise InputError(f"{source.path} is not proper CSV ({str(error).splitlines()[0]}); export it again.") from None
    if cells.width != len(header):
        raise InputError(f"{source.path}: the header cannot be read, because a quote in it is not closed; export it again.")
    cells.columns = [str(at) for at in range(cells.width)]
    # A short line lacks its last column, which then reads as empty: only if there are such lines need they be counted out.
    if cells.width and cells[str(cells.width - 1)].null_count():
        _refuse_ragged(source, text, len(header))
        cells = cells.filter(~pl.all_horizontal(pl.all().is_null()))
    if cells.is_empty():
        raise InputError(f"{source.path} has a header but no lines of data below it; download it again.")
    return WideTable(header, cells)


def read_table(source: Source, advice: str) -> pl.DataFrame:
    """Read a long table whole: every cell as text, names of columns without blanks around them.

    Raises `InputError` where it is no table, or two columns are called alike.
    """
    text = source.whole()
    try:
        first = text.partition(b"\n")[0]
        if first.count(source.delimiter.encode()) >= MOST_COLUMNS:
            raise InputError(f"{source.path} has over {MOST_COLUMNS:,} columns; reshape it to one count per line.")
        table = pl.read_csv(io.BytesIO(text), separator=source.delimiter, infer_schema=False)
        names = [column.strip() for column in table.columns]
        twice = [name for name, times in Counter(names).items() if times > 1]
        if twice or any(len(name) > LONGEST_NAME for name in names):
            wrong = f"two columns called {twice[0][:100]!r}" if twice else "a column whose name never ends"
            raise InputError(f"{source.path} has {wrong}; rename it, or look for a quote that is not closed.")
    except pl.exceptions.PolarsError as error:
        said = (str(error).splitlines() or [""])[0][:200]
        raise InputError(f"{source.path} cannot be read as a table ({said}); {advice}.") from None
    table.columns = names
    # An empty line reads as one of empty cells.
    return table.filter(~pl.all_horizontal(pl.all().is_null()))


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


def refuse_repeated(source: Source, areas: pl.DataFrame, axes: Sequence[str], what: str = "area") -> None:
    """Complain of areas without a code, and of the first that stands there twice."""
    for axis in axes:
        empty = areas[axis].is_null() | (areas[axis] == "")
        if empty.any():
            number = int(empty.arg_true()[0]) + 1
            raise InputError(f"{source.path}: line {number} below the header has no {axis}; add it, or remove the line.")
    again = areas.select(axes).is_duplicated()
    if again.any():
        first = ", ".join(str(code) for code in areas.select(axes).filter(again).row(0))
        raise InputError(
            f"{source.path} has the {what} {first} more than once; {int(again.sum()):,} lines are affected. "
            f"Each {what} may occur only once: remove the copies, or split the file."
        )


def counts_of(table: WideTable, places: Sequence[int]) -> tuple[Counts, NDArray[np.float64]]:
    """Turn columns into counts; also return, for every column, the share of its numbers that have a fraction.

    A point alone proves nothing here: pandas writes whole numbers as `15.0` in columns with gaps.
    """
    lines = len(table.cells)
    counts = np.empty((lines, len(places)), dtype=np.int32)
    shares = np.zeros(len(places))
    # Many short columns end to end are read far faster than one by one.
    step = max(1, CELLS_AT_ONCE // lines)
    for start in range(0, len(places), step):
        few = places[start : start + step]
        read, decimals = as_counts(pl.concat([table.column(place).alias("") for place in few]))
        cells = read.reshape(len(few), lines)
        broken = np.count_nonzero(decimals.reshape(len(few), lines) & (cells == UNREADABLE), axis=1)
        shares[start : start + step] = broken / np.maximum(1, broken + np.count_nonzero(cells > ABSENT, axis=1))
        counts[:, start : start + step] = cells.T
    return counts, shares


def in_blocks(
    areas: pl.DataFrame, counts: Counts, size: int, figures: FigureValues | None = None
) -> Callable[[Progress], Iterator[Block]]:
    """Return what goes through a table in memory as `Release.read` does through a file."""
    kept = figures if figures is not None and figures.shape[1] else None

    def blocks(progress: Progress) -> Iterator[Block]:
        for start in range(0, len(areas), AREAS_AT_ONCE):
            end = min(start + AREAS_AT_ONCE, len(areas))
            progress(size * end // len(areas))
            yield Block(areas[start:end], counts[start:end], None if kept is None else kept[start:end])

    return blocks


def unreadable(counts: Counts) -> list[str]:
    """Return the note that some cells hold no counts, or none."""
    cells = int(np.count_nonzero(counts == UNREADABLE))
    note = f"{cells:,} cells in columns of counts hold text or numbers with decimals; they are treated as unknown."
    return [note] if cells else []
