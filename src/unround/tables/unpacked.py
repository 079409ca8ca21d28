"""XLSX and ODS before they are read: unpacked once, within limits, and counted on the way.

Whatever reads a spreadsheet holds everything between its outermost cells in memory. So each part is gone through first, and
only what was gone through is handed on: an archive of our own making, which cannot unpack to anything else.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO
from xml.parsers import expat

from unround.errors import InputError
from unround.tables.grid import column_number
from unround.tables.source import PACKED_TIGHTEST

MOST_BYTES = 1 << 29
"""Bytes to which the parts of a spreadsheet may unpack, all together."""
SUSPICIOUS = 1 << 26
"""Beyond so many bytes, none may unpack to `PACKED_TIGHTEST` times its size."""
MOST_CELLS = 20_000_000
"""Cells up to the last one of each sheet, over all sheets; and elements of any kind in all parts."""
FEW_CELLS, EMPTIEST = 1_000_000, 50
"""Beyond so many cells, a sheet may have so many empty ones for each that holds something."""
MOST_ROWS, MOST_COLUMNS = 1 << 20, 1 << 14
"""No program that people use makes larger sheets, and what lies beyond would be left out by the reader without a word."""
MOST_SHEETS, MOST_MERGED, MOST_PARTS = 1_000, 50_000, 10_000

_CHUNK = 1 << 20
_READ = (".xml", ".rels", "mimetype")
"""How the parts end that hold cells, or what belongs to them. Pictures are not needed."""
_Start = Callable[[str, Mapping[str, str]], None]
_End = Callable[[str], None]


def unpacked(path: Path) -> io.BytesIO:
    """Return an archive of what is read of a spreadsheet."""
    clean, extent, size = io.BytesIO(), _Extent(path), 0
    with zipfile.ZipFile(path) as packed, zipfile.ZipFile(clean, "w") as target:
        parts = packed.infolist()
        names = [part.filename.lower().replace("\\", "/") for part in parts]
        if len(names) > MOST_PARTS or len(set(names)) < len(names):
            raise InputError(f"{path} is packed as no program packs a spreadsheet; open it in one, and save it again.")
        if "xl/workbook.bin" in names:
            raise InputError(f"{path} is a binary workbook (XLSB), which is not read here; save it as XLSX.")
        for part, name in zip(parts, names, strict=True):
            if not name.endswith(_READ):
                continue
            most = min(MOST_BYTES - size, max(SUSPICIOUS, PACKED_TIGHTEST * part.compress_size))
            with packed.open(part) as origin, target.open(part.filename, "w", force_zip64=True) as copy:
                size += _copied(origin, copy, extent.parser(name), part.file_size, most, path)
            extent.end_sheet()
    clean.seek(0)
    return clean


def _copied(
    origin: IO[bytes], copy: IO[bytes], parser: expat.XMLParserType | None, declared: int, most: int, path: Path
) -> int:
    """Copy a part of a spreadsheet while its elements are counted; return its size, which may not be the declared one."""
    size = 0
    while True:
        if max(size, declared) > most:
            raise InputError(
                f"{path} unpacks to {max(size, declared):,} bytes or more; is it really a table? Save it as CSV."
            )
        piece = origin.read(_CHUNK)
        if parser is not None:
            parser.Parse(piece, not piece)
        if not piece:
            return size
        copy.write(piece)
        size += len(piece)


class _Extent:
    """How far the sheets of a spreadsheet reach, and how much is in them; rows and columns from 1.

    - `path`: The file, for the words with which it is refused.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows = self._columns = self._filled = self._cells = self._sheets = self._elements = 0

    def parser(self, part: str) -> expat.XMLParserType | None:
        """Return what counts the elements of a part."""
        parser = expat.ParserCreate("utf-8")  # whatever a part says of its encoding: readers take it for UTF-8
        if part == "content.xml":
            parser.StartElementHandler, parser.EndElementHandler = self._open_document()
        else:
            parser.StartElementHandler = self._office()
        return None if part == "mimetype" else parser

    def _office(self) -> _Start:
        """Count a part of an XLSX; what does not say where it is comes after what is before it."""
        row, column, place, merged = 0, 0, "", 0

        def count(tag: str, attributes: Mapping[str, str]) -> None:
            nonlocal row, column, place, merged
            self._add_element()
            if ":" in tag:
                tag = tag.rpartition(":")[2]
            if tag in ("c", "v", "is", "f"):
                if place:
                    letters = place.rstrip("0123456789")
                    row, column, place = int(place[len(letters) :]), column_number(letters) + 1, ""
                if tag != "c":
                    self._fill(row, column, 1)
                elif "r" in attributes:
                    place = attributes["r"]
                else:
                    column += 1
            elif tag == "row":
                row, column, place = int(attributes.get("r", row + 1)), 0, ""
            elif tag == "mergeCell":
                merged += 1
                if merged > MOST_MERGED:
                    self._refuse(f"a sheet with over {MOST_MERGED:,} merged cells; save the table as CSV.")
            elif tag == "sheet":
                self._add_sheet()

        return count

    def _open_document(self) -> tuple[_Start, _End]:
        """Count the content of an ODS, whose rows and cells may stand for many alike."""
        row = column = row_times = times = depth = 0

        def start(tag: str, attributes: Mapping[str, str]) -> None:
            nonlocal row, column, row_times, times, depth
            self._add_element()
            tag = tag.rpartition(":")[2]
            filled = tag == "p"
            if tag in ("table-cell", "covered-table-cell"):
                column += times
                times = _repeated(attributes, "number-columns-repeated")
                filled = any(name.endswith(("value-type", ":formula")) for name in attributes)
            elif tag == "table-row":
                row, column, times = row + row_times, 0, 0
                row_times = _repeated(attributes, "number-rows-repeated")
            elif tag == "table":
                self._add_sheet()
                row = column = row_times = times = 0
                depth += 1
                if depth > 1:
                    self._refuse("a table within a cell, which is not read; save the table as CSV.")
            if filled and times:
                self._fill(row + row_times, column + times, row_times * times)

        def end(tag: str) -> None:
            nonlocal depth
            if tag.endswith(":table"):
                depth -= 1
                self.end_sheet()

        return start, end

    def _fill(self, row: int, column: int, cells: int) -> None:
        """Take note of cells that hold something; of the last of several, where it is."""
        self._filled += cells
        if row > self._rows or column > self._columns:
            self._rows, self._columns = max(row, self._rows), max(column, self._columns)
            room = self._cells + self._rows * self._columns
            if self._rows > MOST_ROWS or self._columns > MOST_COLUMNS or room > MOST_CELLS:
                self._refuse_extent()

    def end_sheet(self) -> None:
        """Add the room that a sheet takes to that of the others."""
        room = self._rows * self._columns
        if room > max(FEW_CELLS, EMPTIEST * self._filled):
            self._refuse_extent()
        self._cells += room
        self._rows = self._columns = self._filled = 0

    def _add_element(self) -> None:
        self._elements += 1
        if self._elements > MOST_CELLS:
            self._refuse(f"over {MOST_CELLS:,} elements; is it really a table? Save it as CSV.")

    def _add_sheet(self) -> None:
        self._sheets += 1
        if self._sheets > MOST_SHEETS:
            self._refuse(f"over {MOST_SHEETS:,} sheets; save those that you mean as a file of their own.")

    def _refuse_extent(self) -> None:
        self._refuse(
            f"a sheet that reaches to row {self._rows:,} and column {self._columns:,}, too far for a table. Delete what "
            "stands there by mistake, or save the table as CSV."
        )

    def _refuse(self, what: str) -> None:
        raise InputError(f"{self._path} has {what}")


def _repeated(attributes: Mapping[str, str], name: str) -> int:
    """Return how often a row or a cell of an ODS is repeated."""
    return next((int(value) for key, value in attributes.items() if key.endswith(name)), 1)
