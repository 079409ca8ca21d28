"""Profile page: what the download button of a page of the Canadian Census Profile gives, for one or a few areas.

Three lines of titles (the census; the areas, each above its columns; "Counts" or "Rates"), a header, a line a
characteristic, and footnotes. Names are indented by two blanks a level, numbers are padded. There are no IDs: a line's
number takes their place, which for the whole page of 2021 is its CHARACTERISTIC_ID.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError
from unround.regions import areas_frame, with_limits
from unround.release import FIGURE_ABSENT, NOT_APPLICABLE, Column, Counts, Release
from unround.small_files import LONGEST_NAME
from unround.tables.delimited import ragged, rows_of
from unround.tables.profile import (
    COUNT,
    MEN,
    TOTAL,
    WOMEN,
    TableLine,
    as_figures,
    by_sex,
    census,
    columns_of,
    in_memory,
    indented,
    profile_lines,
    told_apart,
    universes,
    unreadable,
)
from unround.tables.source import Source
from unround.tables.symbols import as_counts

LAYOUT = "profile-page"
_SEXES = {"total": TOTAL, "men+": MEN, "men": MEN, "male": MEN, "women+": WOMEN, "women": WOMEN, "female": WOMEN}
_CHARACTERISTIC = ("characteristic", "characteristics")
_BELOW = ("symbols", "symbol", "notes", "note", "footnotes", "data quality")
_AREA = re.compile(r"(.*?)\s*\[([^\]]*)\]\s*(.*)", re.DOTALL)
_SOURCE = re.compile(r'"?Source: *(Statistics Canada[^"\n]*)', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _PageValues:
    """A column of numbers: its area, whether it holds counts or rates, its sex, its place and that of its flags."""

    area: str
    measure: str
    sex: str
    place: int
    flag: int | None


@dataclass(frozen=True, slots=True)
class _Page:
    """A page as text: its columns of numbers, its lines and their fields, and all that is written below them."""

    values: tuple[_PageValues, ...]
    lines: list[TableLine]
    rows: tuple[list[str], ...]
    below: str

    def cells(self, values: _PageValues) -> tuple[pl.Series, pl.Series | None]:
        """Return a column of numbers, and its flags."""
        cells, flags = (
            None if place is None else pl.Series([row[place] for row in self.rows], dtype=pl.String)
            for place in (values.place, values.flag)
        )
        assert cells is not None, "every column has a place"
        return cells, flags


def load(source: Source) -> Release:
    """Read the download of a profile page."""
    page = _page(source)
    titles = list(dict.fromkeys(values.area for values in page.values))
    counted = [values for values in page.values if values.measure == COUNT]
    sexes = [sex for sex in (TOTAL, MEN, WOMEN) if any(values.sex == sex for values in counted)]
    # The page writes counts without a decimal point: where there is one, there is no count.
    counts = np.full((len(titles), len(page.lines), len(sexes)), NOT_APPLICABLE, dtype=np.int32)
    printed = np.full(counts.shape, FIGURE_ABSENT, dtype=np.int64)
    decimals = np.zeros(len(page.lines), dtype=bool)
    for values in counted:
        area, sex = titles.index(values.area), sexes.index(values.sex)
        cells = page.cells(values)
        counts[area, :, sex], shown = as_counts(*cells)
        printed[area, :, sex] = as_figures(*cells)
        decimals |= shown
    lines, figures, left_out = told_apart(page.lines, sexes, decimals, (counts == NOT_APPLICABLE).all(axis=0))
    columns = columns_of(lines)
    if not columns:
        raise InputError(f"{source.path} has no lines of counts; download the page with its counts.")
    rates = dict.fromkeys((values.measure, values.sex) for values in page.values if values.measure != COUNT)
    for measure in dict.fromkeys(measure for measure, _ in rates):
        left_out[measure] = tuple(f"all lines, {sex}" for other, sex in rates if other == measure)

    def placed(table: NDArray[Any], codes: Iterable[tuple[str, ...]]) -> NDArray[Any]:
        places = [(int(number) - 1, sexes.index(sex)) for number, sex in codes]
        return np.ascontiguousarray(table[:, [line for line, _ in places], [sex for _, sex in places]])

    kept = placed(counts, (column.codes for column in columns))
    names = (figure.name.partition("/") for figure in figures)
    shown_figures = placed(printed, ((number, sex or TOTAL) for number, _, sex in names))
    year = _year(source.head())
    return census(
        source,
        LAYOUT,
        with_limits(columns),
        read=in_memory(_areas(titles, columns, kept), kept, source.size, shown_figures),
        figures=tuple(figures),
        proposals=(*indented(columns), *by_sex(columns), *universes(columns, year)),
        product=_product(page, year),
        left_out=left_out,
        notes=[*source.notes, "The file has no IDs: characteristics are numbered by their lines.", *unreadable(kept)],
    )


# The text


def _page(source: Source) -> _Page:
    """Take the file apart."""
    text = source.whole()
    reader = rows_of(source, text)
    titles: list[list[str]] = []
    for end, header in reader:  # noqa: B007 - the line is where the data end, if none follow
        if len(header) > 1 and header[1].strip().lower() in _CHARACTERISTIC:
            break
        titles.append(header)
    else:
        raise InputError(f"{source.path} has no line Topic,Characteristic,…; download the page again as CSV.")
    values = _values(source, titles, header)
    rows: list[list[str]] = []
    for end, row in reader:
        empty = not any(field.strip() for field in row)
        if (rows and empty) or (row and row[0].strip().rstrip(":").lower() in _BELOW):
            break
        if empty:
            continue
        if len(row) != len(header):
            raise ragged(source, end, len(row), len(header))
        if not row[1].strip():
            raise InputError(f"{source.path}, line {end}: no characteristic is named; download the page again.")
        if len(row[1]) > LONGEST_NAME:
            raise InputError(
                f"{source.path}, line {end}: the characteristic has a name of {len(row[1]):,} characters. Look for a quote "
                "before that line that is not closed."
            )
        rows.append(row)
    if not rows:
        raise InputError(f"{source.path} has a header but no lines of data below it; download the page again.")
    # Footnotes are free text, and their quotes may not close: they are looked at line by line.
    below = text.decode("utf-8").split("\n")[end:]
    for number, line in enumerate(below, start=end + 1):
        try:
            row = next(csv.reader([line], delimiter=source.delimiter), [])
        except csv.Error:  # free text of any length
            continue
        if len(row) == len(header) and row[0].strip() and row[1].strip() and _is_number(row[values[0].place]):
            raise InputError(f"{source.path}, line {number}: there are data after the footnotes. Remove what is in between.")
    lines = profile_lines((str(number), row[1]) for number, row in enumerate(rows, start=1))
    return _Page(values, lines, tuple(rows), "\n".join(below))


def _is_number(field: str) -> bool:
    return re.fullmatch(r"\s*-?\d[\d,]*(?:\.\d+)?\s*", field) is not None


def _values(source: Source, titles: Sequence[Sequence[str]], header: Sequence[str]) -> tuple[_PageValues, ...]:
    """Find the columns of numbers: titles hold for all columns up to the next title."""
    width = len(header)
    areas = next((list(_carried(line, width)) for line in titles[1:] if any("[" in field for field in line)), None)
    if areas is None:
        # An area may have no level in brackets: then its name is the first title above a column.
        named = [line for line in titles[1:] if any(field.strip() for field in line)]
        areas = list(_carried(named[0], width)) if named else [""] * width
    measures = next((list(_carried(line, width)) for line in titles if _measures(line)), [""] * width)
    columns: list[_PageValues] = []
    for place, name in enumerate(header):
        sex = _SEXES.get(name.strip().lower())
        if sex is None:
            continue
        after = header[place + 1].lower() if place + 1 < width else ""
        flag = place + 1 if "flag" in after or "symbol" in after else None
        measure = "rate" if measures[place].lower().startswith(("rate", "percent", "%")) else COUNT
        if not areas[place]:
            raise InputError(
                f"{source.path} does not say which area column {place + 1} ({name}) belongs to; download it again."
            )
        columns.append(_PageValues(areas[place], measure, sex, place, flag))
    if not any(values.measure == COUNT for values in columns):
        raise InputError(f"{source.path} has no column called Total, Men+ or Women+; download the page with its counts.")
    known = {place for values in columns for place in (values.place, values.flag)} | {0, 1}
    others = [
        name for place, name in enumerate(header) if place not in known and name.strip() and name.strip().lower() != "note"
    ]
    if others:
        raise InputError(f"{source.path} has a column {others[0]!r} that is neither counts nor flags; remove it.")
    twice = [
        key for key, times in Counter((values.area, values.measure, values.sex) for values in columns).items() if times > 1
    ]
    if twice:
        raise InputError(f"{source.path} has the area {twice[0][0]} more than once; remove its copies.")
    return tuple(columns)


def _measures(line: Sequence[str]) -> bool:
    return any(field.strip().lower() in ("counts", "count", "rates", "rate") for field in line)


def _carried(line: Sequence[str], width: int) -> Iterator[str]:
    """Go through the titles above all columns: one holds until the next."""
    title = ""
    for place in range(width):
        title = (" ".join(line[place].split())[:LONGEST_NAME] if place < len(line) else "") or title
        yield title


def _areas(titles: Sequence[str], columns: Sequence[Column], counts: Counts) -> pl.DataFrame:
    """Return one row per area. The file has no codes: the name, and the province if it is given, take their place."""
    parsed = [matched.groups() if (matched := _AREA.fullmatch(title)) else (title, "", "") for title in titles]
    short = [f"{name}{rest if rest.startswith(',') or not rest else f', {rest}'}" for name, _, rest in parsed]
    often = Counter(short)
    population = next((at for at, column in enumerate(columns) if column.adjusted), None)
    people = [0] * len(titles) if population is None else counts[:, population].tolist()
    codes = [code if often[code] == 1 else title for code, title in zip(short, titles, strict=True)]
    return areas_frame(codes, [name for name, _, _ in parsed], [level for _, level, _ in parsed], people)


def _year(head: str) -> str:
    """Return the year of the census, from the first title."""
    matched = re.search(r"\b((?:19|20)\d\d) Census\b", head.split("\n", 1)[0])
    return matched[1] if matched else ""


def _product(page: _Page, year: str) -> str | None:
    if matched := _SOURCE.search(page.below):
        return matched[1].rstrip('." \t\r')
    return f"Statistics Canada, {year} Census of Population" if year else None
