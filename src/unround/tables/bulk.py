"""The Canadian bulk format: Statistics Canada's census profile, a line a characteristic and area, of any size.

The columns are found by their names in the first line, except the seven that are all called SYMBOL: each belongs to the
column before it. What an area can have is decided from the first areas; the rest of the file then streams through, some
hundred areas at a time, and nothing in it that does not fit passes without an error or a note.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError
from unround.figures import Figure
from unround.regions import with_limits
from unround.release import ABSENT, NOT_APPLICABLE, UNREADABLE, Column, Release
from unround.small_files import LONGEST_NAME
from unround.tables.lines import COUNT, TableLine, by_sex, indented, profile_lines, universes
from unround.tables.making import census, columns_of, told_apart
from unround.tables.source import Source
from unround.tables.stream import DESCRIBED, BulkHeader, TakenRows, blocks
from unround.tables.symbols import as_counts

NAME = "statcan"
SEXES = ("total", "men", "women")
CHUNK = 1 << 22
SAMPLE = 1 << 26
"""Bytes, at most, from which to tell what an area has."""
LAST_ID = 1_000_000
"""There is room for every characteristic up to the last: a number that is no number of one must not ask for gigabytes."""
DECIMALS = 0.25
"""If so large a share of a line's numbers have decimals, it is no count, whatever it is called."""

_FIELDS = {
    "year": "CENSUS_YEAR", "region": "DGUID", "code": "ALT_GEO_CODE", "level": "GEO_LEVEL", "name": "GEO_NAME",
    "id": "CHARACTERISTIC_ID", "label": "CHARACTERISTIC_NAME",
}  # fmt: skip
_ID, _SYMBOL = "CHARACTERISTIC_ID", "SYMBOL"
_COUNTS = ("C1_COUNT_TOTAL", "C2_COUNT_MEN+", "C3_COUNT_WOMEN+")
_NEEDED = (*(name for called, name in _FIELDS.items() if called != "code"), _COUNTS[0])


def load(source: Source) -> Release:
    """Read what an area has; the counts come with the blocks."""
    header = _header(source)
    sample, complete = _sample(source, header)
    lines, alike = _lines(sample, source)
    if not alike and not complete:
        lines = _all_lines(source, header)
    year = str(sample["year"][0]).strip()
    columns, figures, taken, left_out = _take(header, sample, lines, year)
    notes = list(source.notes)
    return census(
        source,
        NAME,
        columns,
        read=partial(blocks, source, taken, notes),
        proposals=(*indented(columns), *by_sex(columns), *universes(columns, year)),
        product=f"Statistics Canada, {year} Census of Population, Census Profile",
        figures=figures,
        left_out=left_out,
        notes=notes,
    )


def _header(source: Source) -> BulkHeader:
    first = source.head().partition("\n")[0].rstrip("\r")
    names = [name.strip() for name in next(csv.reader([first], delimiter=source.delimiter))]
    at = {name: place for place, name in reversed(list(enumerate(names)))}
    missing = [name for name in _NEEDED if name not in at]
    if missing:
        raise InputError(
            f"{source.path} does not have the column {missing[0]} of a bulk file; its first line is\n    {first[:200]}\n"
            "Give the file as downloaded, with its columns separated by commas or tabs."
        )
    men, women = (name in at for name in _COUNTS[1:])
    if men != women:  # a column taken for its neighbour would be men for women
        raise InputError(f"{source.path} has {_COUNTS[2 - men]} but not {_COUNTS[1 + men]}; give the file as downloaded.")
    before = [_FIELDS[called] for called in DESCRIBED if at.get(_FIELDS[called], -1) > at[_ID]]
    if before:
        raise InputError(f"{source.path} has {before[0]} after {_ID}; give the file with its columns as downloaded.")

    cells = [at[name] for name in _COUNTS if name in at]
    signs = [place + 1 if names[place + 1 : place + 2] == [_SYMBOL] else -1 for place in cells]
    known = {called: at[name] for called, name in _FIELDS.items() if name in at}
    return BulkHeader(len(names), source.delimiter, known, tuple(zip(cells, signs, strict=True)))


# What an area has


def _frame(chunk: bytes, header: BulkHeader, wanted: Mapping[str, int], source: Source) -> pl.DataFrame:
    """Read some columns of a chunk, all as text."""
    try:
        frame = pl.read_csv(
            chunk,
            has_header=False,
            schema={str(at): pl.String for at in range(header.width)},
            columns=sorted(set(wanted.values())),
            separator=header.delimiter,
        )
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"{source.path} has lines that do not match its first one ({str(error).splitlines()[0]}); download it again."
        ) from None
    return frame.select(pl.col(str(at)).alias(name) for name, at in wanted.items()).drop_nulls("region")


def _body(source: Source) -> Iterator[bytes]:
    """Go through the file without its first line."""
    for number, chunk in enumerate(source.chunks(size=CHUNK)):
        body = chunk if number else chunk[chunk.index(b"\n") + 1 :]
        # Polars would take an empty line at the beginning for a table of one column.
        if body := body.lstrip(b"\r\n"):
            yield body


def _sample(source: Source, header: BulkHeader) -> tuple[pl.DataFrame, bool]:
    """Read the first areas, whole; say whether they are all."""
    wanted = {name: header.at[name] for name in ("region", "id", "label", "year")}
    for sex, places in enumerate(header.cells):
        wanted |= {f"{what} {sex}": at for what, at in zip(("count", "symbol"), places, strict=True) if at >= 0}
    chunks = _body(source)
    sample, size = pl.DataFrame(), 0
    while (chunk := next(chunks, None)) is not None:
        sample = sample.vstack(_frame(chunk, header, wanted, source)) if size else _frame(chunk, header, wanted, source)
        size += len(chunk)
        if len(sample) and sample["region"][-1] != sample["region"][0]:
            # The last area may go on in the next chunk, if there is one.
            complete = next(chunks, None) is None
            return (sample if complete else sample.filter(pl.col("region") != sample["region"][-1])), complete
        if size > SAMPLE:
            raise InputError(f"{source.path} has no second area in its first {SAMPLE:,} bytes; download it again.")
    if sample.is_empty():
        raise InputError(f"{source.path} has a first line, but no counts below it; download it again.")
    return sample, True


def _lines(sample: pl.DataFrame, source: Source) -> tuple[list[TableLine], bool]:
    """Return the characteristics in the order of the file, and whether every area has the same ones."""
    distinct = sample.unique("id", keep="first", maintain_order=True)
    first = sample.filter(pl.col("region") == sample["region"][0])
    alike = len(first) == len(distinct) and len(sample) == sample["region"].n_unique() * len(distinct)
    rows = [_checked(number, label, source) for number, label in distinct.select("id", "label").iter_rows()]
    # Where areas differ, the order of the numbers is the order of the table.
    return _profile(rows if len(first) == len(distinct) else sorted(rows, key=lambda row: row[0])), alike


def _profile(rows: Iterable[tuple[int, str]]) -> list[TableLine]:
    return profile_lines((str(number), label) for number, label in rows)


def _checked(number: str | None, label: str | None, source: Source) -> tuple[int, str]:
    if number is None or not number.isascii() or not number.isdigit() or len(number) > 9 or int(number) > LAST_ID:
        shown = number if number is None or len(number) < 40 else f"{number[:39]}…"
        raise InputError(
            f"{source.path} has a line whose {_ID} is {shown!r}, not a number up to {LAST_ID:,}; download it again."
        )
    if label is not None and len(label) > LONGEST_NAME:
        raise InputError(
            f"{source.path}: the name of characteristic {number} has {len(label):,} characters. Look there for a quote that "
            "is not closed, or download the file again."
        )
    return int(number), label or ""


def _all_lines(source: Source, header: BulkHeader) -> list[TableLine]:
    """Go through the whole file for its characteristics: areas differ in what they have."""
    wanted = {name: header.at[name] for name in ("region", "id", "label")}
    found: dict[int, str] = {}
    for chunk in _body(source):
        for number, label in _frame(chunk, header, wanted, source).unique("id").select("id", "label").iter_rows():
            found.setdefault(*_checked(number, label, source))
    return _profile(sorted(found.items()))


# What is taken of it


def _take(
    header: BulkHeader, sample: pl.DataFrame, lines: Sequence[TableLine], year: str
) -> tuple[tuple[Column, ...], tuple[Figure, ...], TakenRows, dict[str, tuple[str, ...]]]:
    """Decide which cells are columns of counts, and which are figures."""
    fractions, nothing = _looked_at(header, sample, lines)
    lines, figures, left_out = told_apart(lines, SEXES[: len(header.cells)], fractions, nothing)
    columns = columns_of(lines)
    if not columns:
        raise InputError("none of the characteristics in this file is a count; choose a profile that has counts.")
    line_of = {line.id: at for at, line in enumerate(lines)}
    names = [figure.name.partition("/") for figure in figures]
    counted = np.array([line.kind == COUNT for line in lines])

    def places(codes: Iterable[tuple[str, ...]]) -> NDArray[np.int64]:
        return np.array([(line_of[number], SEXES.index(sex)) for number, sex in codes], dtype=np.int64).reshape(-1, 2)

    taken = TakenRows(
        header=header,
        ids=np.array([int(line.id) for line in lines], dtype=np.int32),
        counted=counted,
        places=places(column.codes for column in columns),
        figures=places((number, sex or SEXES[0]) for number, _, sex in names),
        nothing=nothing & counted[:, None],
        keys=tuple(column.key for column in columns),
        population=next((at for at, column in enumerate(columns) if column.label == f"Population, {year}"), None),
    )
    return tuple(with_limits(columns)), tuple(figures), taken, left_out


def _looked_at(
    header: BulkHeader, sample: pl.DataFrame, lines: Sequence[TableLine]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which lines show decimals, and which lines × sexes are not applicable in any of the first areas."""
    place = {int(line.id): at for at, line in enumerate(lines)}
    at = sample["id"].cast(pl.Int64).replace_strict(place, return_dtype=pl.Int64).to_numpy()
    shown, readable = np.zeros(len(lines)), np.zeros(len(lines))
    # Of what the first areas do not have, nobody knows yet.
    nothing = np.repeat(np.bincount(at, minlength=len(lines))[:, None] > 0, len(header.cells), axis=1)
    for sex in range(len(header.cells)):
        signs = sample[f"symbol {sex}"] if f"symbol {sex}" in sample.columns else None
        counts, decimals = as_counts(sample[f"count {sex}"], signs)
        shown += np.bincount(at, weights=decimals, minlength=len(lines))
        readable += np.bincount(at, weights=(counts > ABSENT) | (counts == UNREADABLE), minlength=len(lines))
        nothing[:, sex] &= np.bincount(at, weights=counts != NOT_APPLICABLE, minlength=len(lines)) == 0
    return shown > DECIMALS * readable, nothing
