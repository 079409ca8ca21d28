"""A table written back as it came: the same file, sheet, headings and formats, with other counts in its cells."""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, unescape

from unround.errors import InputError, InternalError
from unround.release import ABSENT, SUPPRESSED, Release, told_range
from unround.tables import describe
from unround.tables.description_file import make_description, read_description, without_decisions
from unround.tables.grid import HeadedTable, letters
from unround.tables.pcaxis import is_pcaxis
from unround.tables.reshape import read_headed, value_columns
from unround.tables.source import Source
from unround.tables.spreadsheet import Workbook, is_spreadsheet
from unround.tables.tidy import companion, headed_table

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from unround.tables.description import Description

SUFFIXES = (".xlsx", ".xlsm", ".ods", ".px", ".csv", ".tsv", ".txt")
"""How the names of files end that can be written back."""

HIDDEN_SIGNS = ("c", "x", "s", "..")
"""What stands for a hidden count in a table that has no sign for it yet."""

Cells = Mapping[tuple[str, str], int | float]
"""Counts by area and key, or means of them with decimals; a code of `release` where none is to be printed."""


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


def write_back(origin: Origin, release: Release, cells: Cells, folder: Path) -> Path:
    """Write the file that a release was read from again, with these counts in place of its own; return the new file.

    Raises `InputError` where the file is of a kind that cannot be written so.
    """
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
        _write_px(path, target, {row: text for (row, _), text in texts.items()})
    elif is_spreadsheet(path):
        sheet = description.sheet or origin.sheet or Workbook(path).names[0]
        placed = {(table.number(row), at): text for (row, at), text in texts.items()}
        (_write_ods if path.suffix.lower() == ".ods" else _write_sheet)(path, target, sheet, placed)
    else:
        _write_text(path, target, table, texts)
    others = {cell: count for cell, count in counts_by_name(release).items() if cell in places}
    _verify(target, description, others | dict(cells))
    return target


def opened(origin: Origin) -> tuple[Path, HeadedTable, Description]:
    """Return the file, its cells under their headings, and what these mean."""
    path, toml = without_decisions(origin.path, origin.toml)
    if path.suffix.lower() == ".toml":
        toml, found = path, read_description(path)
        path = found.data or path
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


def _places(table: HeadedTable, description: Description) -> dict[tuple[str, str], tuple[int, int]]:
    """Return in which row and column of a table each count stands.

    The table is read once more with a number of its own in every cell, as the description says: wherever that comes out, the
    count came from this cell. So whatever the layout is, nobody has to know it here.
    """
    import polars as pl

    columns = value_places(table, description)
    cells = table.cells
    width = len(cells.columns) + 1
    for at in columns:
        there = cells[str(at)]
        marks = [None if text is None else str((row + 1) * width + at) for row, text in enumerate(there.to_list())]
        cells = cells.with_columns(pl.Series(str(at), marks, dtype=pl.String))
    release = read_headed(replace(table, cells=cells, texts=()), description)
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for (area, key), mark in counts_by_name(release).items():
        if isinstance(number := _text(mark, ""), int):
            found[area, key] = number // width - 1, number % width
    return found


def counts_by_name(release: Release) -> dict[tuple[str, str], int]:
    """Return the counts of a release by the name of their area, and their key."""
    found: dict[tuple[str, str], int] = {}
    for block in release.blocks():
        areas = ["/".join(map(str, key)) for key in block.areas.select(release.areas).iter_rows()]
        for row, area in enumerate(areas):
            found |= {(area, column.key): int(block.counts[row, at]) for at, column in enumerate(release.columns)}
    return found


def _text(count: int | float, sign: str) -> Printed:
    """Return what to print of a count: a number, or the sign for hidden ones."""
    if isinstance(count, float):
        return round(count, 4)
    if count > ABSENT:
        return count
    known = told_range(count)
    return known[0] if known is not None and known[0] == known[1] else sign


def _sign(release: Release, table: HeadedTable, places: Mapping[tuple[str, str], tuple[int, int]]) -> str:
    """Return what the table prints for hidden counts; not a sign that tells their range, as in “c = fewer than 5”."""
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
            continue  # a mean is no count, and does not read as one
        wanted, printed = _text(count, ""), _text(read.get(cell, ABSENT), "")
        if printed != wanted:
            raise InternalError(f"{target}: {':'.join(cell)} was written as {wanted!r}, and reads as {printed!r}.")


# -- delimited files --------------------------------------------------------------------------------------------------


def _write_text(path: Path, target: Path, table: HeadedTable, texts: Mapping[tuple[int, int], Printed]) -> None:
    """Put texts into the cells of a delimited file; everything else stays as it is, byte for byte."""
    data = path.read_bytes()
    source = Source(path)
    whole = data.decode(source.encoding)
    spans = _spans(whole, source.delimiter)
    mark = _thousands(table)
    pieces: list[tuple[int, int, str]] = []
    for (row, at), text in texts.items():
        line = table.number(row) - 1
        if line >= len(spans) or at >= len(spans[line]):
            raise InputError(f"{path}: row {line + 1} cannot be found again, so that the table cannot be written back.")
        start, end = spans[line][at]
        printed = f"{text:,}".replace(",", mark) if isinstance(text, int | float) else text
        quoted = f'"{printed}"' if whole[start : start + 1] == '"' or source.delimiter in printed else printed
        pieces.append((start, end, quoted))
    kept, last = list[str](), 0
    for start, end, text in sorted(pieces):
        kept += [whole[last:start], text]
        last = end
    target.write_bytes("".join([*kept, whole[last:]]).encode(source.encoding))


def _thousands(table: HeadedTable) -> str:
    """Return what stands between thousands in a table; nothing where nothing does."""
    for column in table.cells.get_columns():
        for text in column.to_list():
            if found := re.fullmatch(r"\d{1,3}([ ,.'\u00a0\u202f\u2009])\d{3}(?:\1\d{3})*", str(text or "").strip()):
                return found[1]
    return ""


def _spans(text: str, delimiter: str) -> list[list[tuple[int, int]]]:
    """Return where each cell of each row begins and ends."""
    rows: list[list[tuple[int, int]]] = [[]]
    start, at, quoted = 0, 0, False
    while at < len(text):
        sign = text[at]
        if sign == '"':
            quoted = not quoted
        elif not quoted and sign in (delimiter, "\n"):
            end = at - 1 if sign == "\n" and text[at - 1 : at] == "\r" else at
            rows[-1].append((start, end))
            start = at + 1
            if sign == "\n":
                rows.append([])
        at += 1
    rows[-1].append((start, len(text)))
    return rows


# -- spreadsheets -----------------------------------------------------------------------------------------------------


def _write_sheet(path: Path, target: Path, sheet: str, texts: Mapping[tuple[int, int], Printed]) -> None:
    """Put texts into the cells of a sheet; formats, headings and all other sheets stay as they are, byte for byte."""
    with zipfile.ZipFile(path) as book:
        part = _part_of(book, sheet)
        xml = book.read(part).decode("utf-8")
        wanted = {f"{letters(at)}{row}": text for (row, at), text in texts.items()}

        def put(found: re.Match[str]) -> str:
            text = wanted.pop(found[2], None)
            if text is None:
                return found[0]
            kept = re.sub(r'\s(?:t|cm|vm)="[^"]*"', "", found[1] + found[3])
            if isinstance(text, int | float):
                return f'<c{kept} r="{found[2]}"><v>{text}</v></c>'
            return f'<c{kept} r="{found[2]}" t="inlineStr"><is><t>{escape(text)}</t></is></c>'

        xml = re.sub(r'<c\b([^>]*?)\sr="([A-Z]+\d+)"([^>]*?)(?:/>|>.*?</c>)', put, xml, flags=re.DOTALL)
        if wanted:
            raise InputError(
                f"{path}: the cell {next(iter(wanted))} cannot be found again, so that nothing is written back."
            )
        _write_zip(book, target, part, xml.encode())


def _write_zip(book: zipfile.ZipFile, target: Path, part: str, data: bytes) -> None:
    """Write a workbook again, with another content of one of its parts."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for item in book.infolist():
            old = book.read(item.filename)
            if item.filename == "xl/calcChain.xml":
                continue  # a formula may be a number now
            if item.filename in ("[Content_Types].xml", "xl/_rels/workbook.xml.rels"):
                old = re.sub(rb"<(?:Override|Relationship)\b[^>]*calcChain[^>]*/>", b"", old)
            new.writestr(item, data if item.filename == part else old)


def _write_ods(path: Path, target: Path, sheet: str, texts: Mapping[tuple[int, int], Printed]) -> None:
    """Put texts into the cells of a sheet of an ODS; styles, headings and all other sheets stay as they are."""
    from xml.etree import ElementTree

    with zipfile.ZipFile(path) as book:
        content = book.read("content.xml")
        names = dict(pair for _, pair in ElementTree.iterparse(io.BytesIO(content), ["start-ns"]))
        for prefix, name in names.items():
            ElementTree.register_namespace(prefix, name)
        table, office, text = (f"{{{names[prefix]}}}" for prefix in ("table", "office", "text"))
        tree = ElementTree.fromstring(content)
        found = next((one for one in tree.iter(f"{table}table") if one.get(f"{table}name") == sheet), None)
        lines = list(_unfolded(found, f"{table}table-row", f"{table}number-rows-repeated", max(row for row, _ in texts)))
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
        _write_zip(book, target, "content.xml", ElementTree.tostring(tree, encoding="utf-8", xml_declaration=True))


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
