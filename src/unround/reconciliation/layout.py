"""Tables written as they came, with other counts: the same columns, rows, names and order.

Where a count stands is not looked up in any description of a format. The table is read once more with a number of its own
in every cell; wherever that number comes out in the release, the count came from this cell.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError, InternalError
from unround.release import ABSENT, Match, Release
from unround.reviews.layout import SUFFIXES, Origin, opened, value_places, with_marks, write_back
from unround.tables import census_format, join, read_frame, read_marked
from unround.tables import describe as describe_table
from unround.tables.cells import read_headed
from unround.tables.delimited import rows_of
from unround.tables.description import make_description, without_decisions
from unround.tables.frames import as_polars, from_frame
from unround.tables.grid import HeadedTable
from unround.tables.source import Source
from unround.tables.tidy import companion, headed_table

COUNT_COLUMNS = {
    "statcan": r"C\d+_(COUNT|CHIFFRE).*",
    "profile-page": r"(total|men\+?|male|women\+?|female)",
    "censusmapper": r"v_.*|pop(ulation)?|dwellings|dw|households|hh",
    "indicators": r"indicator_.*",
    "first-names": r".*_COUNT",
    "data-table": r"VALUE|VALEUR",
    "statsnz": r"count",
    "datapack": r"(?!.*code).*",
}
"""What columns of counts are called in formats that are known; other numbers in them are codes and figures."""

_NUMBER = re.compile(rb'[" ]*(\d+(?:\.0+)?)[" ]*')
_HEADER_WITHIN = 20
"""Lines of titles that may stand above a header."""

Marks = NDArray[np.int64]
Reader = Callable[[Path], pl.DataFrame]
"""Reads a file that was written as a frame."""


@dataclass(eq=False)
class MarkedTable:
    """A table with a number of its own in every cell: the release of these numbers, and what puts others in their place.

    `put` takes a number for every mark from `first` on, NaN to leave the cell, and a folder; it returns the new file, which
    `frame` reads as a frame.
    """

    release: Release
    first: int
    many: int
    put: Callable[[NDArray[Any], Path], Path]
    frame: Reader


def tables_of(
    tables: Sequence[Any], describe: Any, sheet: str | None, toml: Path | None, matches: Sequence[Match], kind: str
) -> Callable[[Path, Release, NDArray[Any]], Mapping[str, Reader]]:
    """Return what writes tables that were read as one release, with other counts, in a format: "input", "csv" and so on.

    Frames are written as Parquet files called table.parquet.
    """

    def write(folder: Path, release: Release, shown: NDArray[Any]) -> dict[str, Reader]:
        if any(isinstance(table, Release) for table in tables):
            return {}
        numbered, first = list[MarkedTable](), 1
        for table in tables:
            numbered.append(_marked(table, describe, sheet, toml, first))
            first += numbered[-1].many
        files = write_tables(numbered, matches, release, shown, folder)
        clash = next((file for file in files if files.count(file) > 1), None)
        if clash is not None:
            raise InputError(f"two of the files are called {clash.name}: rename one of them.")
        return dict(_converted(table, file, kind) for table, file in zip(numbered, files, strict=True))

    return write


def _marked(table: Any, describe: Any, sheet: str | None, toml: Path | None, first: int) -> MarkedTable:
    """Return a table with marks from `first` on."""
    if not isinstance(table, str | os.PathLike):
        return _marked_frame(table, describe, first)
    path, toml = without_decisions(Path(table), toml)
    origin = Origin(path, toml, sheet)
    if toml is None and sheet is None and path.suffix.lower() != ".toml" and companion(path) is None:
        known = census_format(path)
        if known in COUNT_COLUMNS:
            return _marked_text(path, str(known), first)
    return _marked_cells(origin, first)


def write_tables(
    tables: Sequence[MarkedTable], matches: Sequence[Match], release: Release, shown: NDArray[Any], folder: Path
) -> list[Path]:
    """Write tables with other counts into a folder; return the files."""
    whole = join([table.release for table in tables], matches) if len(tables) > 1 else tables[0].release
    values = np.full(sum(table.many for table in tables) + 1, np.nan)
    index, row = whole.index, 0
    columns = [(at, index[column.key]) for at, column in enumerate(release.columns) if column.key in index]
    here, there = (np.array(side, dtype=np.int64) for side in zip(*columns, strict=True))
    for block in whole.blocks():
        marks, new = block.counts[:, there], shown[row : row + len(block.counts)][:, here]
        use = (marks > ABSENT) & (new > ABSENT)
        values[marks[use]] = new[use]
        row += len(block.counts)
    if row != len(shown):
        raise InternalError("the table has other areas when it is read again.")
    folder.mkdir(parents=True, exist_ok=True)
    return [table.put(values[table.first : table.first + table.many], folder) for table in tables]


def _converted(table: MarkedTable, file: Path, kind: str) -> tuple[str, Reader]:
    """Write a table once more, in another format; return the name of the new file, and what reads it."""
    ending = "" if kind == "input" else f".{kind}"
    if not ending or file.suffix.lower() == ending:
        return file.name, table.frame
    target, frame = file.with_name(file.name.removesuffix(".gz")).with_suffix(ending), table.frame(file)
    file.unlink()
    write = {"csv": frame.write_csv, "parquet": frame.write_parquet, "xlsx": frame.write_excel}[kind]
    write(target)  # type: ignore[operator]
    return target.name, lambda _: frame


def _numbers(frame: pl.DataFrame, columns: Iterable[str]) -> pl.DataFrame:
    """Return a frame of text with numbers in some columns, where all that they hold are numbers."""
    for name in columns:
        for kind in (pl.Int64, pl.Float64):
            new = frame[name].cast(kind, strict=False)
            if new.null_count() == frame[name].null_count():
                frame = frame.with_columns(new)
                break
    return frame


# -- tables that a description explains -------------------------------------------------------------------------------


def _marked_cells(origin: Origin, first: int) -> MarkedTable:
    path, table, description = opened(origin)
    columns = value_places(table, description)
    numbered = read_headed(with_marks(table, columns, first), description)

    def put(values: NDArray[Any], folder: Path) -> Path:
        if path.suffix.lower() in (".parquet", ".pq"):
            target = folder / path.name
            _put_in_frame(pl.read_parquet(path, glob=False), columns, values).write_parquet(target)
            return target
        if path.suffix.lower() not in SUFFIXES:
            target = folder / f"{path.stem}.csv"  # a kind of file that nobody writes
            _put_in_frame(_framed(table), columns, values).write_csv(target)
            return target
        new: dict[tuple[str, str], int | float] = {}
        for block in numbered.blocks():
            areas = ["/".join(map(str, key)) for key in block.areas.select(numbered.areas).iter_rows()]
            for row, at in zip(*np.nonzero(block.counts > ABSENT), strict=True):
                value = float(values[block.counts[row, at] - first])
                if np.isfinite(value):
                    new[areas[row], numbered.columns[at].key] = value if value % 1 else int(value)
        return write_back(origin, read_headed(table, description), new, folder)

    def frame(file: Path) -> pl.DataFrame:
        if file.suffix == ".csv" and path.suffix.lower() not in SUFFIXES:
            return pl.read_csv(file)
        if file.suffix in (".parquet", ".pq"):
            return pl.read_parquet(file, glob=False)
        return _numbers(_framed(headed_table(file, description)), [table.names[at] for at in columns])

    return MarkedTable(numbered, first, len(columns) * len(table.cells), put, frame)


def _framed(table: HeadedTable) -> pl.DataFrame:
    return table.cells.rename({str(at): name for at, name in enumerate(table.names)})


def _marked_frame(table: Any, describe: Any, first: int) -> MarkedTable:
    """Return a frame with marks: of a known format, described by its user, or looked at."""
    frame = as_polars(table)
    known = census_format(frame)
    if known in COUNT_COLUMNS:
        columns = [
            at for at, name in enumerate(frame.columns) if re.fullmatch(COUNT_COLUMNS[str(known)], name, re.IGNORECASE)
        ]
    elif describe is not None:
        codes = {str(name) for key in ("area", "areas") for name in np.atleast_1d(describe.get(key) or [])}
        columns = [at for at, (name, kind) in enumerate(frame.schema.items()) if kind.is_numeric() and name not in codes]
    else:
        looked = describe_table(frame)
        headed, description = (
            looked.opened.table,
            make_description(looked.draft.keys, where="the description", folder=Path()),
        )
        columns = value_places(headed, description)
    marks = {
        frame.columns[at]: pl.Series(first + number * len(frame) + np.arange(len(frame)))
        for number, at in enumerate(columns)
    }
    there = {name: pl.when(frame[name].is_not_null()).then(new).alias(name) for name, new in marks.items()}
    if known in COUNT_COLUMNS or describe is not None:
        new = frame.with_columns(list(there.values()))
        numbered = from_frame(new, describe) if describe is not None else read_frame(new)
        assert numbered is not None  # it is of a format that is known
    else:
        numbered = read_headed(with_marks(headed, columns, first), description)

    def put(values: NDArray[Any], folder: Path) -> Path:
        _put_in_frame(frame, columns, values).write_parquet(folder / "table.parquet")
        return folder / "table.parquet"

    return MarkedTable(numbered, first, len(columns) * len(frame), put, pl.read_parquet)


def _put_in_frame(frame: pl.DataFrame, columns: Sequence[int], values: NDArray[Any]) -> pl.DataFrame:
    """Return a frame with other numbers in some columns; NaN leaves a cell as it is."""
    for at, numbers in zip(columns, values.reshape(len(columns), -1), strict=True):
        name = frame.columns[at]
        new = pl.Series(numbers).fill_nan(None)
        kind = frame.schema[name]
        if kind.is_integer() and not (new.drop_nulls() % 1 == 0).all():
            kind = pl.Float64()
        shown = new.cast(pl.Int64).cast(kind) if (new.drop_nulls() % 1 == 0).all() else new.cast(kind)
        frame = frame.with_columns(pl.coalesce(shown, pl.col(name).cast(kind)).alias(name))
    return frame


# -- files of known formats -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CountSpans:
    """The cells of some whole lines of text that hold counts: where each begins and ends."""

    text: bytes
    start: Marks
    end: Marks


def _marked_text(path: Path, file_format: str, first: int) -> MarkedTable:
    pieces, many = list[bytes](), 0
    for cells in _count_cells(path, file_format):
        marks = np.arange(first + many, first + many + len(cells.start))
        pieces.append(_spliced(cells, marks))
        many += len(cells.start)
    numbered = read_marked(path, b"".join(pieces), file_format)

    def put(values: NDArray[Any], folder: Path) -> Path:
        target, done = folder / Source(path).name.removesuffix(".zip"), 0
        packed = path.suffix.lower() == ".gz"
        with gzip.open(target, "wb", compresslevel=1) if packed else target.open("wb") as file:
            for cells in _count_cells(path, file_format):
                file.write(_spliced(cells, values[done : done + len(cells.start)]))
                done += len(cells.start)
        return target

    def frame(file: Path) -> pl.DataFrame:
        source = Source(file)
        line, places = _header(source, file_format)
        text = b"".join(source.chunks()).split(b"\n", line)[line]
        if file_format == "profile-page":  # with notes below the table
            names, *rows = (row for _, row in rows_of(source, text))
            fields = zip(*(row for row in rows if len(row) == len(names)), strict=True)
            cells = pl.DataFrame(
                {name or f"column {at}": field for at, (name, field) in enumerate(zip(names, fields, strict=True))}
            )
        else:
            cells = pl.read_csv(text, infer_schema=False, separator=source.delimiter)
        return _numbers(cells, [cells.columns[at] for at in places])  # codes keep their leading zeros

    return MarkedTable(numbered, first, many, put, frame)


def _header(source: Source, file_format: str) -> tuple[int, list[int]]:
    """Return the line of the header of a known format, and its columns of counts."""
    wanted = re.compile(COUNT_COLUMNS[file_format], re.IGNORECASE)
    for line, (_, names) in zip(range(_HEADER_WITHIN), rows_of(source, next(source.chunks())), strict=False):
        places = [at for at, name in enumerate(names) if wanted.fullmatch(name.strip())]
        if places and (file_format != "profile-page" or names[0].lower() == "topic"):
            return line, places
    raise InternalError(f"{source.path}: no column of counts was found again.")


def _count_cells(path: Path, file_format: str) -> Iterator[CountSpans]:
    """Go through a file in pieces of whole lines, with the cells that hold counts."""
    source = Source(path)
    begin, places = _header(source, file_format)
    for text in source.chunks(decode=False):
        start, end, row, column = _spans(text, source.delimiter)
        use = np.flatnonzero((row > begin) & np.isin(column, places) & (end > start))
        start, end = start[use], end[use]
        other = np.r_[0, np.cumsum(np.frombuffer(text, dtype=np.uint8) - np.uint8(ord("0")) > 9)]
        number = other[end] == other[start]  # digits only; quotes and blanks around a number are not of it
        for at in np.flatnonzero(~number).tolist():
            inside = _NUMBER.fullmatch(text, start[at], end[at])
            if inside is not None:
                number[at], (start[at], end[at]) = True, inside.span(1)
        begin = -1  # there is one header, in the first piece
        yield CountSpans(text, start[number], end[number])


def _spans(text: bytes, delimiter: str) -> tuple[Marks, Marks, Marks, Marks]:
    """Return where each cell begins and ends, and its row and column."""
    signs = np.frombuffer(text, dtype=np.uint8)
    outside = (np.cumsum(signs == ord('"'), dtype=np.int64) & 1) == 0
    lines = (signs == ord("\n")) & outside
    end = np.flatnonzero(lines | ((signs == ord(delimiter)) & outside))
    start = np.r_[0, end[:-1] + 1]
    last = lines[end]
    row = np.cumsum(last) - last
    first = np.flatnonzero(np.r_[True, last[:-1]])
    column = np.arange(len(end)) - first[row]
    end = end - (last & (signs[end - 1] == ord("\r")) & (end > start))
    return start, end, row, column


def _spliced(cells: CountSpans, numbers: NDArray[Any]) -> bytes:
    """Put numbers into cells; NaN leaves one as it is."""
    put = np.flatnonzero(~np.isnan(numbers)) if numbers.dtype.kind == "f" else slice(None)
    text, new = cells.text, numbers[put]
    pieces = [b""] * (2 * len(new) + 1)
    gaps = zip([0, *cells.end[put].tolist()], [*cells.start[put].tolist(), len(text)], strict=True)
    pieces[::2] = [text[end:start] for end, start in gaps]
    pieces[1::2] = [b"%d" % number if number % 1 == 0 else b"%.4f" % number for number in new.tolist()]
    return b"".join(pieces)
