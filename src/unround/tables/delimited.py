"""Files that are one table: delimited text, Parquet, and PC-Axis (PX).

Delimited files have a header in the first line, or are rows of text before anybody says where one is.
"""

from __future__ import annotations

import atexit
import csv
import io
import os
import re
import threading
from collections import Counter
from collections.abc import Iterator
from itertools import product
from math import prod
from pathlib import Path

import polars as pl

from unround.errors import InputError
from unround.machine import Worker, serve
from unround.small_files import LONGEST_NAME, require_file
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
    """Raise if a line has more or fewer fields than the header."""
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


def ragged(source: Source, line: int, fields: int, width: int) -> InputError:
    """Return the error for a line that is longer or shorter than the header."""
    return InputError(
        f"{source.path}, line {line}: {fields} fields where the header has {width}. Look for a missing or extra "
        f"{called(source.delimiter)} in that line, or for a file that was cut short, and download or export it again."
    )


MANY_ROWS, ROWS_A_BYTE = 10_000_000, 50
"""Rows above which a Parquet file is looked at: it may have so many for each of its bytes."""

KEEP_BELOW = 32 << 20
"""Bytes of a file up to which the worker is kept for the next one: what it read of a large one is better given back."""

DAMAGED = "{} is damaged: it cannot be read as Parquet. Write it again."
FATAL = "{} is damaged: whatever reads it as Parquet runs out of memory. Write it again."


def read_parquet(path: Path, size: int) -> pl.DataFrame:
    """Return a Parquet file as a table, unless it is damaged or would fill the memory."""
    fault = fault_in(path, size)
    if fault is not None:
        raise InputError(fault)
    return _table(path, size)


def fault_in(path: Path, size: int) -> str | None:
    """Return why a Parquet file cannot be read, as another process finds out; None where it can."""
    with _TURN:
        fault, answered = _WORKER.ask([str(path.resolve()), str(path), size])
        if size > KEEP_BELOW:
            _WORKER.end()
    return fault if answered else FATAL.format(path)


def _table(path: Path, size: int) -> pl.DataFrame:
    try:
        rows = int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
        if rows > max(MANY_ROWS, ROWS_A_BYTE * size):
            raise InputError(f"{path} has {rows:,} rows in {size:,} bytes; no table of counts is as repetitive as that.")
        return pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{path} cannot be read as Parquet ({said[:200]}); write it again.") from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # what polars raises where it did not expect damage
            raise
        raise InputError(DAMAGED.format(path)) from None


_WORKER, _TURN = Worker("unround.tables.delimited"), threading.Lock()
atexit.register(_WORKER.end)


def _fault(asked: tuple[str, str, int]) -> str | None:
    path, name, size = asked
    try:
        _table(Path(path), size)
    except InputError as found:
        return str(found).replace(path, name)
    except MemoryError:
        return FATAL.format(name)
    return None


if __name__ == "__main__":
    serve(_fault)


LARGEST = 1 << 29
"""Bytes of a PX file that are read at once."""
MOST_CELLS = 50_000_000
VALUE = "VALUE"
"""What the column of counts is called."""

_KEYWORD = re.compile(r'([A-Z][A-Z0-9-]*)(?:\[([a-z-]+)\])?(?:\(((?:"[^"]*"|[^)"])*)\))?\s*=', re.ASCII)
_STRING = re.compile(r'"([^"]*)"')
_CHARSET = re.compile(rb'CODEPAGE\s*=\s*"([^"]*)"')


def is_pcaxis(path: Path) -> bool:
    """Return whether a file is a PX file, by its name."""
    return path.suffix.lower() == ".px" and os.path.isfile(path)


def read_px(path: Path) -> HeadedTable:
    """Read a PX file as a table with one row per cell: a column for every variable, and one of counts."""
    size = require_file(path)
    if size > LARGEST:
        raise InputError(f"{path} has {size:,} bytes, too many for a PX file that is read at once; save it as CSV.")
    keywords = _keywords(_decoded(path))
    stub, heading = _strings(keywords.get("STUB", "")), _strings(keywords.get("HEADING", ""))
    variables = [*stub, *heading]
    if not variables or "DATA" not in keywords:
        raise InputError(f"{path} is not a PX file: it has no STUB or HEADING, or no DATA. Save the table as CSV.")
    if twice := next((name for name in variables if variables.count(name) > 1), None):
        raise InputError(f"{path} names the variable {twice!r} twice in STUB and HEADING; download it again.")
    values = {name: _strings(keywords.get(f"VALUES({name})", "")) for name in variables}
    if empty := next((name for name, those in values.items() if not those), None):
        raise InputError(f"{path}: there are no VALUES for the variable {empty!r}; download it again.")
    cells = prod(len(those) for those in values.values())
    if cells > MOST_CELLS:
        raise InputError(f"{path} has {cells:,} cells, more than can be read at once; save a part of it.")
    numbers = _numbers(keywords["DATA"])
    if len(numbers) != cells:
        raise InputError(f"{path} has {len(numbers):,} numbers where its variables make {cells:,}; download it again.")
    rows = product(*values.values())
    columns = dict(zip(map(str, range(len(variables))), map(list, zip(*rows, strict=True)), strict=True))
    frame = pl.DataFrame({**columns, str(len(variables)): numbers}, schema_overrides={str(len(variables)): pl.String})
    said = [text for name, text in keywords.items() if re.match(r"(?:CELL|VALUE|DATA)?NOTE|INFO|DATASYMBOL", name)]
    texts = tuple(" ".join(_strings(text)) for text in said)
    return HeadedTable(((*variables, VALUE),), frame, str(path), size, texts=texts)


def _decoded(path: Path) -> str:
    content = path.read_bytes()
    named = _CHARSET.search(content[:10_000])
    for charset in ("utf-8-sig", named[1].decode("ascii", "replace") if named else "cp1252", "cp1252", "latin-1"):
        try:
            return content.decode(charset)
        except (UnicodeDecodeError, LookupError):
            continue
    raise InputError(f"{path} is not text; save the table as CSV.")


def _keywords(text: str) -> dict[str, str]:
    """Return the keywords of the main language, each with what stands behind it up to the semicolon."""
    keywords: dict[str, str] = {}
    at = 0
    while (match := _KEYWORD.search(text, at)) is not None:
        end, quoted = match.end(), False
        if match[1] == "DATA":
            keywords["DATA"] = text[end:].rpartition(";")[0] or text[end:]
            break
        while end < len(text) and (quoted or text[end] != ";"):
            quoted ^= text[end] == '"'
            end += 1
        name = match[1] if match[3] is None else f"{match[1]}({', '.join(_strings(match[3]))})"
        if match[2] is None:  # in brackets stand other languages
            keywords.setdefault(name, text[match.end() : end])
        at = end + 1
    return keywords


def _strings(text: str) -> list[str]:
    return [" ".join(quoted.split()) for quoted in _STRING.findall(text)]


def _numbers(text: str) -> list[str]:
    """Return the cells of the table: numbers, and dots in quotes for what is missing."""
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|([^\s",;]+)', text)]
