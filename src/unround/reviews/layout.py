"""A table written back as it came: the same file, sheet, headings and formats, other counts, fewer rows or columns."""

from __future__ import annotations

import io
import re
import zipfile
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, unescape

import numpy as np

from unround.errors import InputError, InternalError
from unround.release import ABSENT, SUPPRESSED, Release, told_range
from unround.tables import describe
from unround.tables.cells import read_headed, value_columns
from unround.tables.delimited import is_pcaxis
from unround.tables.description import make_description, read_description, without_decisions
from unround.tables.grid import Grid, HeadedTable, column_number, letters
from unround.tables.source import Source
from unround.tables.spreadsheet import Workbook, is_spreadsheet, read_grid
from unround.tables.tidy import companion, headed_table

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from unround.tables.description import Description

SUFFIXES = (".xlsx", ".xlsm", ".ods", ".px", ".csv", ".tsv", ".txt")
"""How the names of files end that can be written back."""

HIDDEN_SIGNS = ("c", "x", "s", "..")
"""What stands for a hidden count in a table that has no symbol for it yet."""

Cell = tuple[str, str]
"""The name of an area, and the key of a count."""

Cells = Mapping[Cell, int | float]
"""Counts, or means of them with decimals; a code of `release` where none is to be printed."""

Place = tuple[int, int]
"""A row and a column: of a table, from 0; of a file, rows as people number them."""

Printed = int | float | str
"""What stands in a cell."""


@dataclass(frozen=True)
class Origin:
    """Where a table stands: its file, or the TOML that describes it, its sheet and the rows of its header."""

    path: Path
    toml: Path | None = None
    sheet: str | None = None
    header: tuple[int, ...] | None = None
    columns: str | None = None


@dataclass(frozen=True)
class Edit:
    """What changes in a file: texts of cells, then rows and columns that are taken out."""

    texts: dict[Place, Printed]
    rows: frozenset[int] = frozenset()
    columns: frozenset[int] = frozenset()

    @property
    def shrinks(self) -> bool:
        """Whether cells move."""
        return bool(self.rows or self.columns)


def write_back(
    origin: Origin,
    release: Release,
    cells: Cells,
    folder: Path,
    gone: Collection[Cell] = (),
    merged: Mapping[Cell, Cell] | None = None,
) -> Path:
    """Write the file that a release was read from again, with these counts in place of its own; return the new file.

    `gone` are counts that are left out with their row or column; of those that were `merged`, with which.
    Raises `InputError` where the file is of a kind that cannot be written so.
    """
    try:
        return _written_back(origin, release, cells, folder, gone, merged or {})
    except (LookupError, ValueError, SyntaxError, zipfile.BadZipFile) as error:  # it was read, but is laid out oddly
        raise InputError(
            f"{origin.path} is written in an unusual way ({error}), so that nothing can be written back: open it in a "
            "spreadsheet program, save it again, and review that."
        ) from error


def _written_back(
    origin: Origin, release: Release, cells: Cells, folder: Path, gone: Collection[Cell], merged: Mapping[Cell, Cell]
) -> Path:
    path, table, description = opened(origin)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path} cannot be written back: save it as XLSX, ODS, PX or a delimited file, and review that.")
    places = _places(table, description)
    missing = [cell for cell in cells if cell not in places]
    if missing:
        raise InputError(
            f"{path}: the cell {':'.join(missing[0])} was not found again, so that nothing can be written back."
        )
    sign = _sign(release, table, places)
    texts = {places[cell]: _text(count, sign) for cell, count in cells.items()}
    target = folder / path.name
    folder.mkdir(parents=True, exist_ok=True)
    if is_pcaxis(path):
        _refuse_layout(path, gone)
        _write_px(path, target, {row: text for (row, _), text in texts.items()})
        _verify(target, description, _after(release, places, cells))
        return target
    sheet = (description.sheet or origin.sheet or Workbook(path).names[0]) if is_spreadsheet(path) else None
    edit = Edit({(table.number(row), at): text for (row, at), text in texts.items()})
    if gone:
        _refuse_layout(path, gone)
        edit = _shrunk(path, sheet, table, description, places, edit, gone, merged)
    if sheet is None:
        _write_text(path, target, table, description, edit)
    else:
        (_write_ods if path.suffix.lower() == ".ods" else _write_sheet)(path, target, sheet, edit)
    if gone:
        _verify_cells(path, target, sheet, edit)
    else:
        _verify(target, description, _after(release, places, cells))
    return target


def _after(release: Release, places: Mapping[Cell, Place], cells: Cells) -> dict[Cell, int | float]:
    return {cell: count for cell, count in counts_by_name(release).items() if cell in places} | dict(cells)


def _refuse_layout(path: Path, gone: Collection[Cell]) -> None:
    if gone and path.suffix.lower() in (".px", ".ods"):
        raise InputError(
            f"rows and columns of {path.name} cannot be taken out of a file of this kind: save it as XLSX or CSV, and "
            "review that; or leave them out yourself, and review the result."
        )


def opened(origin: Origin) -> tuple[Path, HeadedTable, Description]:
    """Return the file, its cells under their headings, and what these mean."""
    path, toml = without_decisions(origin.path, origin.toml)
    if path.suffix.lower() == ".toml":
        toml, description_read = path, read_description(path)
        path = description_read.data or path
    toml = toml or companion(path)
    if toml is not None:
        description = read_description(toml)
        return path, headed_table(path, description), description
    described = describe(path, sheet=origin.sheet, header=origin.header, columns=origin.columns)
    description = make_description(described.draft.keys, where="the description", folder=path.parent)
    return path, described.opened.table, description


def value_places(table: HeadedTable, description: Description) -> list[int]:
    """Return the columns that hold counts."""
    return value_columns(table, description) if description.wide else [table.names.index(description.value)]


def with_marks(table: HeadedTable, columns: Sequence[int], first: int = 1) -> HeadedTable:
    """Return a table with a number of its own in every cell of some columns, column by column.

    Read as its description says, wherever that number comes out, the count came from this cell. So whatever the layout is,
    nobody has to know it here.
    """
    import polars as pl

    cells = table.cells
    for number, at in enumerate(columns):
        marks = pl.Series(str(at), first + number * len(cells) + np.arange(len(cells))).cast(pl.String)
        there = cells[str(at)].is_not_null()
        cells = cells.with_columns(pl.select(pl.when(there).then(marks)).to_series().alias(str(at)))
    return replace(table, cells=cells, texts=())


def _places(table: HeadedTable, description: Description) -> dict[Cell, Place]:
    """Return in which row and column of a table each count stands."""
    columns = value_places(table, description)
    read = counts_by_name(read_headed(with_marks(table, columns), description))
    marks = {cell: mark for cell, count in read.items() if isinstance(mark := _text(count, ""), int)}
    return {cell: ((mark - 1) % len(table.cells), columns[(mark - 1) // len(table.cells)]) for cell, mark in marks.items()}


def counts_by_name(release: Release) -> dict[Cell, int]:
    """Return the counts of a release by the name of their area, and their key."""
    counts: dict[Cell, int] = {}
    for block in release.blocks():
        areas = ["/".join(map(str, key)) for key in block.areas.select(release.areas).iter_rows()]
        for row, area in enumerate(areas):
            counts |= {(area, column.key): int(block.counts[row, at]) for at, column in enumerate(release.columns)}
    return counts


def _text(count: int | float, sign: str) -> Printed:
    """Return what to print of a count: a number, or the symbol for hidden ones."""
    if isinstance(count, float):
        return round(count, 4)
    if count > ABSENT:
        return count
    known = told_range(count)
    return known[0] if known is not None and known[0] == known[1] else sign


def _sign(release: Release, table: HeadedTable, places: Mapping[Cell, Place]) -> str:
    """Return what the table prints for hidden counts; not a symbol that tells their range, as in “c = fewer than 5”."""
    signs: Counter[str] = Counter()
    taken: set[str] = set()
    for cell, count in counts_by_name(release).items():
        if count <= ABSENT and cell in places:
            row, at = places[cell]
            text = str(table.cells[str(at)][row] or "").strip()
            taken.add(text)
            signs.update([text] if count == SUPPRESSED and text else [])
    free = [sign for sign in HIDDEN_SIGNS if sign not in taken and (sign == ".." or not table.source.endswith(".px"))]
    return signs.most_common(1)[0][0] if signs else free[0] if free else HIDDEN_SIGNS[-1]


def _verify(target: Path, description: Description, cells: Cells) -> None:
    """Read the new file, and compare: a table that says something else than was decided on must not go out."""
    read = counts_by_name(read_headed(headed_table(target, description), description))
    for cell, count in cells.items():
        if isinstance(count, float):
            continue  # a mean is not a count, and does not read as one
        wanted, printed = _text(count, ""), _text(read.get(cell, ABSENT), "")
        if printed != wanted:
            raise InternalError(f"{target}: {':'.join(cell)} was written as {wanted!r}, and reads as {printed!r}.")


# -- fewer rows and columns -------------------------------------------------------------------------------------------


def _shrunk(
    path: Path,
    sheet: str | None,
    table: HeadedTable,
    description: Description,
    places: Mapping[Cell, Place],
    edit: Edit,
    gone: Collection[Cell],
    merged: Mapping[Cell, Cell],
) -> Edit:
    """Find the rows and columns that counts are left out with, and what headings say then.

    Raises `InputError` where other counts, or anything else, stand in the same rows and columns.
    """
    taken = {places[cell] for cell in gone if cell in places}
    rest = set(places.values()) - taken
    columns = {at for _, at in taken} - {at for _, at in rest}
    rows = {row for row, at in taken if at not in columns} - {row for row, _ in rest}
    if any(row not in rows and at not in columns for row, at in taken):
        raise InputError(
            f"{path.name}: what is to be left out stands in rows and columns with other counts, so that it cannot be taken "
            "out. Make the change yourself, and review the result."
        )
    grid = read_grid(path, sheet)
    heads = [(number, grid.row(number - 1)) for number in description.header]
    last = max(table.number(row) for row in range(table.cells.height))
    above = [number for number in range(1, grid.cells.height + 1) if not min(description.header) <= number <= last]
    texts = edit.texts | (_headings_moved(path, grid, columns, above) if sheet is not None else {})
    labels = [at for at in range(min(table.cells.width, grid.cells.width)) if at not in value_places(table, description)]
    called: dict[Place, list[str]] = {}  # what merged categories are called
    for lost, kept in merged.items():
        if lost not in places or kept not in places:
            continue
        (row, at), (first, place) = places[lost], places[kept]
        if at in columns:
            pairs = [((number, place), names[place], names[at]) for number, names in heads]
        else:
            cells = [table.cells[str(label)] for label in labels]
            pairs = [
                ((table.number(first), label), str(column[first] or "").strip(), str(column[row] or "").strip())
                for label, column in zip(labels, cells, strict=True)
            ]
        for spot, after_it, other in pairs:
            if after_it and other and after_it != other:
                called.setdefault(spot, [after_it]).append(other)
    texts |= {spot: reduce(_both, dict.fromkeys(names)) for spot, names in called.items()}
    # A heading over several columns, or beside several rows, moves on where the first of them is taken out.
    for level, (number, names) in enumerate(heads):
        for at in sorted(columns):
            after = next((after_it for after_it in range(at + 1, len(names)) if after_it not in columns), None)
            if (
                names[at]
                and after is not None
                and not names[after]
                and table.header[level][after] == table.header[level][at]
            ):
                texts[number, after] = names[at]
    for label in labels:
        column = table.cells[str(label)].to_list()
        for row in sorted(rows):
            after = next((after_it for after_it in range(row + 1, len(column)) if after_it not in rows), None)
            if column[row] is not None and after is not None and column[after] is None:
                texts[table.number(after), label] = column[row]
    return Edit(texts, frozenset(table.number(row) for row in rows), frozenset(columns))


def _both(first_text: str, other: str) -> str:
    """Return what two categories are called together: ranges that follow each other as one, all else with a plus.

    >>> _both("15 to 19 years", "20 to 24 years"), _both("65-79", "80+"), _both("Owned", "Rented")
    ('15 to 24 years', '65+', 'Owned + Rented')
    """
    ends, after = ([int(end) for end in re.findall(r"\d+", text)] for text in (first_text, other))
    if len(ends) == 2 and len(after) in (1, 2) and after[0] == ends[1] + 1:
        first, last = (re.search(rf"\b{ends[1]}\b", first_text), re.search(rf"\b{after[0]}\b", other))
        if len(after) == 2 and first:
            return f"{first_text[: first.start()]}{after[1]}{first_text[first.end() :]}"
        if len(after) == 1 and last:
            return f"{other[: last.start()]}{ends[0]}{other[last.end() :]}"
    return f"{first_text} + {other}"


def _headings_moved(path: Path, grid: Grid, columns: Collection[int], rows: Iterable[int]) -> dict[Place, Printed]:
    """Return where texts around a table move that stand over several columns when the first of these is taken out.

    Raises `InputError` where anything else around the table stands in such a column.
    """
    texts: dict[Place, Printed] = {}
    for number in rows:
        row = grid.cells.row(number - 1)
        for at in (at for at in sorted(columns) if row[at] is not None):
            over = [cell_range for cell_range in grid.merged if (cell_range.top, cell_range.left) == (number - 1, at)]
            left = [
                place
                for cell_range in over
                for place in range(cell_range.left, cell_range.right + 1)
                if place not in columns
            ]
            if not left:
                raise InputError(
                    f"{path.name}: something else stands in column {letters(at)}, row {number}, so that the column cannot "
                    "be taken out. Make the change yourself, and review the result."
                )
            texts[number, left[0]] = row[at]
    return texts


def _verify_cells(path: Path, target: Path, sheet: str | None, edit: Edit) -> None:
    """Read the new file cell by cell, and compare: everything else must be as it was."""
    old, new = (read_grid(file, sheet).cells.rows() for file in (path, target))
    lines = [(number, row) for number, row in enumerate(old, 1) if number not in edit.rows]
    for (number, row), read in zip(lines, new, strict=False):
        kept = [at for at in range(len(row)) if at not in edit.columns]
        for at, text in zip(kept, read, strict=False):
            wanted = edit.texts.get((number, at), row[at])
            alike = (
                re.sub(r"\D", "", text or "") == str(wanted) if isinstance(wanted, int) else (text or "") == (wanted or "")
            )
            if not alike and (sheet is not None or number in {there for there, _ in edit.texts}):
                raise InternalError(f"{target}: row {number} was to say {wanted!r}, and says {text!r}.")


# -- delimited files --------------------------------------------------------------------------------------------------


def _write_text(path: Path, target: Path, table: HeadedTable, description: Description, edit: Edit) -> None:
    """Change cells of a delimited file; everything else stays as it is, byte for byte."""
    source = Source(path)
    whole = path.read_bytes().decode(source.encoding)
    spans, mark = _spans(whole, source.delimiter), _thousands(table)
    wide = {*description.header, *(table.number(row) for row in range(table.cells.height))}
    pieces: list[tuple[int, int, str]] = []
    for (number, at), text in edit.texts.items():
        if number > len(spans) or at >= len(spans[number - 1]):
            raise InputError(f"{path}: row {number} cannot be found again, so that the table cannot be written back.")
        start, end = spans[number - 1][at]
        printed = f"{text:,}".replace(",", mark) if isinstance(text, int | float) else text
        pieces.append(
            (start, end, f'"{printed}"' if whole[start : start + 1] == '"' or source.delimiter in printed else printed)
        )
    for number, line in enumerate(spans, 1):
        if number in edit.rows:
            end = spans[number][0][0] if number < len(spans) else line[-1][1]
            pieces = [piece for piece in pieces if not line[0][0] <= piece[0] < end]
            pieces.append((line[0][0], end, ""))
        elif number in wide or all(line[at][0] == line[at][1] for at in edit.columns if at < len(line)):
            for at in edit.columns:  # with the delimiter after it: the first column is never a count
                if 0 < at < len(line):
                    pieces.append((line[at][0] - 1, line[at][1], ""))
    kept, last = list[str](), 0
    for start, end, text in sorted(pieces):
        kept += [whole[last:start], text]
        last = end
    target.write_bytes("".join([*kept, whole[last:]]).encode(source.encoding))


def _thousands(table: HeadedTable) -> str:
    """Return what stands between thousands in a table; nothing where nothing does."""
    for column in table.cells.get_columns():
        for text in column.to_list():
            if grouped := re.fullmatch(r"\d{1,3}([ ,.'\u00a0\u202f\u2009])\d{3}(?:\1\d{3})*", str(text or "").strip()):
                return grouped[1]
    return ""


def _spans(text: str, delimiter: str) -> list[list[tuple[int, int]]]:
    """Return where each cell of each row begins and ends; quotes count where a cell begins with one, as in reading."""
    rows: list[list[tuple[int, int]]] = [[]]
    start, at, quoted = 0, 0, False
    while at < len(text):
        sign = text[at]
        if sign == '"':
            quoted = not quoted and text[start] == '"' and (at == start or text[at - 1] == '"')
        elif not quoted and sign in (delimiter, "\n", "\r"):
            rows[-1].append((start, at))
            at += text.startswith("\r\n", at)
            start = at + 1
            if sign != delimiter:
                rows.append([])
        at += 1
    rows[-1].append((start, len(text)))
    return rows


# -- spreadsheets -----------------------------------------------------------------------------------------------------


_ROW = re.compile(r"<row\b([^>]*?)(?:/>|>(.*?)</row>)", re.DOTALL)
_CELL = re.compile(r"<c\b([^>]*?)(?:/>|>(.*?)</c>)", re.DOTALL)
_FORMULA = re.compile(r"<f\b[^>]*?(?:/>|>.*?</f>)", re.DOTALL)
KEEPING = ("xl/pivotCache/", "xl/embeddings/", "xl/model/")
"""Parts of a workbook that keep numbers of its sheets, or the records behind them."""


def _write_sheet(path: Path, target: Path, sheet: str, edit: Edit) -> None:
    """Change cells of a sheet; formats, headings and all other sheets stay as they are, byte for byte.

    Formulas become the numbers that they show: they would not be the same again. Texts that no cell shows any more are
    taken out of the file.
    """
    with zipfile.ZipFile(path) as book:
        parts = book.namelist()
        if any(part.startswith(KEEPING) for part in parts):
            raise InputError(
                f"{path.name} has a pivot table or an embedded file, which keeps old numbers, or the records behind them: "
                "take it out, and try again."
            )
        part = _part_of(book, sheet)
        xml = plain_xml(path, book, part)
        if edit.shrinks:
            _refuse_anchored(path, book, part, sheet, xml)
        head, middle, tail = re.split(r"(?<=<sheetData>)(.*)(?=</sheetData>)", xml, maxsplit=1, flags=re.DOTALL)
        wanted, at = dict[int, dict[int, Printed]](), 0
        for (row, column), text in edit.texts.items():
            wanted.setdefault(row, {})[column] = text
        lines: list[str] = []
        for matched in _ROW.finditer(middle):
            before, at = at, int(number[1]) if (number := re.search(r'\br="(\d+)"', matched[1])) else at + 1
            if at <= before:
                raise ValueError(f"row {at} comes after row {before}")
            texts = wanted.pop(at, {})
            if at not in edit.rows:
                row = at - bisect_left(sorted(edit.rows), at)
                attributes = re.sub(r'\s(?:r|spans)="[^"]*"', "", matched[1])
                lines.append(f'<row r="{row}"{attributes}>{_cells_of(matched[2] or "", row, texts, edit.columns)}</row>')
        if wanted:
            raise InputError(f"{path}: row {next(iter(wanted))} cannot be found again, so that nothing is written back.")
        changed = {part: (_around(head, edit) + "".join(lines) + _around(tail, edit)).encode()}
        if edit.shrinks:
            changed["xl/workbook.xml"] = _names_moved(book.read("xl/workbook.xml").decode("utf-8"), sheet, edit).encode()
        if "xl/sharedStrings.xml" in parts:
            sheets = [name for name in parts if name.startswith("xl/worksheets/") and name.endswith(".xml")]
            shown = [changed[name].decode() if name in changed else plain_xml(path, book, name) for name in sheets]
            changed["xl/sharedStrings.xml"] = _only_shown(plain_xml(path, book, "xl/sharedStrings.xml"), shown)
        for chart in (name for name in parts if name.startswith("xl/charts/chart")):  # drawn from the cells again
            xml = plain_xml(path, book, chart)
            changed[chart] = re.sub(r"<c:(num|str)Cache>.*?</c:\1Cache>", "", xml, flags=re.DOTALL).encode()
        _write_zip(book, target, changed)


def _cells_of(xml: str, row: int, texts: dict[int, Printed], gone: Collection[int]) -> str:
    """Return the cells of a row with other texts, without some columns."""
    made: dict[int, tuple[str, str]] = {}
    at = -1
    for matched in _CELL.finditer(xml):
        name = re.search(r'\br="([A-Z]+)\d+"', matched[1])
        before, at = at, column_number(name[1]) if name else at + 1
        if at <= before:
            raise ValueError(f"cell {letters(at)}{row} comes after {letters(before)}{row}")
        inside = matched[2] or ""
        if "<v" in inside:
            inside = _FORMULA.sub("", inside)
        made[at] = re.sub(r'\s(?:r|cm|vm)="[^"]*"', "", matched[1]), inside
    for at, text in texts.items():
        attributes = re.sub(r'\st="[^"]*"', "", made[at][0] if at in made else "")
        if isinstance(text, int | float):
            made[at] = attributes, f"<v>{text}</v>"
        else:
            made[at] = f'{attributes} t="inlineStr"', f"<is><t>{escape(text)}</t></is>"
    places = sorted(gone)
    return "".join(
        f'<c r="{letters(at - bisect_left(places, at))}{row}"{attributes}>{inside}</c>'
        for at, (attributes, inside) in sorted(made.items())
        if at not in gone
    )


def plain_xml(path: Path, book: zipfile.ZipFile, part: str) -> str:
    """Return a part of a workbook, which must have elements only: between the marks of others, anything may stand."""
    xml = book.read(part).decode("utf-8")
    if (odd := re.search(r"<!--|<!\[CDATA\[|<!DOCTYPE", xml)) is not None:
        raise InputError(
            f"{path.name} has {odd[0]} in {part}, which no spreadsheet program writes: open it in one, and save it again."
        )
    return xml


def _refuse_anchored(path: Path, book: zipfile.ZipFile, part: str, sheet: str, xml: str) -> None:
    """Raise if something stands at a place on the sheet, or refers to one, and would not move with its cells."""
    if re.search(r"<(?:drawing|legacyDrawing|tableParts)\b", xml):
        raise InputError(
            f"{path.name}: the sheet {sheet!r} has a drawing, a comment or a table object, which would not move with its "
            "cells. Take it out, or make the change yourself, and review the result."
        )
    for other in book.namelist():
        if other.startswith(("xl/worksheets/", "xl/charts/")) and other.endswith(".xml") and other != part:
            formulas = " ".join(re.findall(r"<(?:c:)?f\b[^>]*>.*?</(?:c:)?f>", book.read(other).decode("utf-8"), re.DOTALL))
            if f"{escape(sheet)}!" in formulas or f"{escape(sheet)}'!" in formulas:
                raise InputError(
                    f"{path.name}: formulas or charts on another sheet refer to {sheet!r}, and would not find their cells "
                    "again. Take them out, or make the change yourself, and review the result."
                )


def _moved(area: str, edit: Edit) -> str | None:
    """Return where a range is once rows and columns are gone; None where nothing is left of it.

    >>> edit = Edit({}, frozenset({3}), frozenset({1, 2}))
    >>> _moved("A1:D5", edit), _moved("B1:C1", edit), _moved("D4", edit), _moved("B2:D2", edit)
    ('A1:B4', None, 'B3', 'B2')
    """
    ends = re.findall(r"([A-Z]+)(\d+)", area)
    columns = [at for at in range(column_number(ends[0][0]), column_number(ends[-1][0]) + 1) if at not in edit.columns]
    rows = [at for at in range(int(ends[0][1]), int(ends[-1][1]) + 1) if at not in edit.rows]
    if not columns or not rows:
        return None
    first, last = (
        f"{letters(at - bisect_left(sorted(edit.columns), at))}{row - bisect_left(sorted(edit.rows), row)}"
        for at, row in ((columns[0], rows[0]), (columns[-1], rows[-1]))
    )
    return first if first == last else f"{first}:{last}"


def _around(xml: str, edit: Edit) -> str:
    """Return what stands around the cells of a sheet, with its ranges moved: merged cells, widths, rules, filters."""
    if not edit.shrinks:
        return xml

    def ranges(matched: re.Match[str]) -> str:
        areas = [moved for area in matched[3].split() if (moved := _moved(area, edit))]
        if matched[1] == "mergeCell":
            areas = [area for area in areas if ":" in area]
        return matched[0].replace(f'{matched[2]}="{matched[3]}"', f'{matched[2]}="{" ".join(areas)}"') if areas else ""

    def widths(matched: re.Match[str]) -> str:
        first, last = (
            int(end[1]) for end in (re.search(rf'\b{name}="(\d+)"', matched[0]) for name in ("min", "max")) if end
        )
        kept = [at for at in range(first, min(last, 16384) + 1) if at - 1 not in edit.columns]
        if not kept:
            return ""
        ends = [at - bisect_left(sorted(edit.columns), at - 1) for at in (kept[0], kept[-1])]
        return re.sub(r'\bmax="\d+"', f'max="{ends[1]}"', re.sub(r'\bmin="\d+"', f'min="{ends[0]}"', matched[0]))

    placed = "mergeCell|conditionalFormatting|dataValidation|hyperlink|ignoredError|autoFilter|dimension"
    element = rf'<({placed})\b[^>]*?\b(ref|sqref)="([^"]*)"[^>]*?(?:/>|>.*?</\1>)'
    xml = re.sub(element, ranges, xml, flags=re.DOTALL)
    xml = re.sub(r"<selection\b[^>]*/>", "", xml)
    xml = re.sub(r"<col\b[^>]*/>", widths, xml)
    return re.sub(r"<(mergeCells|cols|hyperlinks|dataValidations|ignoredErrors)\b[^>]*>\s*</\1>", "", xml)


def _names_moved(xml: str, sheet: str, edit: Edit) -> str:
    """Return a workbook in which named ranges of a sheet, such as what is printed, are where their cells are now."""
    refers = re.compile(rf"('?{re.escape(escape(sheet))}'?!)(\$[A-Z]+\$\d+(?::\$[A-Z]+\$\d+)?)")

    def moved(matched: re.Match[str]) -> str:
        area = _moved(matched[2].replace("$", ""), edit)
        return matched[1] + re.sub(r"([A-Z]+)(\d+)", r"$\1$\2", area) if area else "#REF!"

    return refers.sub(moved, xml)


def _only_shown(strings: str, sheets: list[str]) -> bytes:
    """Return the texts of a workbook without those that no cell shows: what was hidden must not stay in the file."""
    shown = {
        int(matched[2])
        for sheet in sheets
        for matched in re.finditer(r'<c\b([^>]*\bt="s"[^>]*)>.*?<v>(\d+)</v>', sheet, flags=re.DOTALL)
    }
    number = iter(range(1 << 31))

    def kept(matched: re.Match[str]) -> str:
        return matched[0] if next(number) in shown else "<si><t></t></si>"

    return re.sub(r"<si\b[^>]*?(?:/>|>.*?</si>)", kept, strings, flags=re.DOTALL).encode()


def _write_zip(book: zipfile.ZipFile, target: Path, changed: Mapping[str, bytes]) -> None:
    """Write a workbook again, with another content of some of its parts."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for item in book.infolist():
            old = changed.get(item.filename) or book.read(item.filename)
            if item.filename == "xl/calcChain.xml":
                continue  # a formula may be a number now
            if item.filename in ("[Content_Types].xml", "xl/_rels/workbook.xml.rels"):
                old = re.sub(rb"<(?:Override|Relationship)\b[^>]*calcChain[^>]*/>", b"", old)
            new.writestr(item, old)


def _write_ods(path: Path, target: Path, sheet: str, edit: Edit) -> None:
    """Put texts into the cells of a sheet of an ODS; styles, headings and all other sheets stay as they are."""
    from xml.etree import ElementTree

    texts = edit.texts
    with zipfile.ZipFile(path) as book:
        content = book.read("content.xml")
        names = dict(pair for _, pair in ElementTree.iterparse(io.BytesIO(content), ["start-ns"]))
        for prefix, name in names.items():
            ElementTree.register_namespace(prefix, name)
        table, office, text = (f"{{{names[prefix]}}}" for prefix in ("table", "office", "text"))
        tree = ElementTree.fromstring(content)
        sheet_node = next((node for node in tree.iter(f"{table}table") if node.get(f"{table}name") == sheet), None)
        lines = list(
            _unfolded(sheet_node, f"{table}table-row", f"{table}number-rows-repeated", max(row for row, _ in texts))
        )
        for row in {row for row, _ in texts}:
            kinds = f"{table}table-cell {table}covered-table-cell"
            most = 1 + max(at for there, at in texts if there == row)
            line = list(_unfolded(lines[row - 1], kinds, f"{table}number-columns-repeated", most))
            for at in (at for there, at in texts if there == row):
                cell, said = line[at], texts[row, at]
                for name in ("value-type", "value", "string-value"):
                    cell.attrib.pop(f"{office}{name}", None)
                for name in [name for name in cell.attrib if name.endswith(("}formula", "}value-type"))]:
                    del cell.attrib[name]
                cell.set(f"{office}value-type", "string" if isinstance(said, str) else "float")
                if not isinstance(said, str):
                    cell.set(f"{office}value", str(said))
                for paragraph in cell.findall(f"{text}p"):
                    cell.remove(paragraph)
                ElementTree.SubElement(cell, f"{text}p").text = str(said)
        _write_zip(book, target, {"content.xml": ElementTree.tostring(tree, encoding="utf-8", xml_declaration=True)})


def _unfolded(parent: Element | None, kinds: str, repeated: str, most: int) -> Iterator[Element]:
    """Yield the rows of a sheet, or the cells of a row; those that stand for several are written out, as far as needed."""
    from copy import deepcopy

    if parent is None:
        raise InputError("the sheet cannot be found again, so that the table cannot be written back.")
    nested = [(above, child) for above in parent.iter() for child in above if child.tag in kinds.split()]
    done = 0
    for above, child in nested:
        times = int(child.attrib.pop(repeated, "1"))
        at = list(above).index(child)
        while times > 1 and done < most:
            copy = deepcopy(child)
            above.insert(at, copy)
            yield copy
            at, times, done = at + 1, times - 1, done + 1
        if times > 1:
            child.set(repeated, str(times))
        yield child
        done += times


# -- PX ---------------------------------------------------------------------------------------------------------------


def _write_px(path: Path, target: Path, texts: Mapping[int, Printed]) -> None:
    """Put numbers, or quoted signs, into the list of data of a PX file; everything else stays as it is, byte for byte."""
    data = path.read_bytes()
    start = re.search(rb"(?:^|[\r\n;])\s*DATA\s*=", data)
    assert start is not None  # it was read
    pieces = [start.end()]
    done = data[: pieces[0]]
    for at, value in enumerate(re.finditer(rb'"[^"]*"|[^\s;,]+', data[pieces[0] :])):
        first, last = (pieces[0] + place for place in value.span())
        new = texts.get(at)
        said = value[0] if new is None else (f'"{new}"' if isinstance(new, str) else str(new)).encode()
        done += data[pieces[-1] : first] + said
        pieces.append(last)
    target.write_bytes(done + data[pieces[-1] :])


def _part_of(book: zipfile.ZipFile, sheet: str) -> str:
    """Return the part of a workbook that holds a sheet."""
    listed = book.read("xl/workbook.xml").decode("utf-8")
    for tag in re.findall(r"<(?:\w+:)?sheet\b[^>]*>", listed):
        name = re.search(r'\bname="([^"]*)"', tag)
        known = re.search(r'\br:id="([^"]*)"', tag)
        if name and known and unescape(name[1], {"&quot;": '"', "&apos;": "'"}) == sheet:
            for related in re.findall(r"<Relationship\b[^>]*>", book.read("xl/_rels/workbook.xml.rels").decode("utf-8")):
                if f'Id="{known[1]}"' in related and (target := re.search(r'Target="([^"]*)"', related)):
                    return target[1].lstrip("/") if target[1].startswith("/") else f"xl/{target[1]}"
    raise InputError(f"the sheet {sheet!r} cannot be found again, so that the table cannot be written back.")
