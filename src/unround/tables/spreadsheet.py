"""Spreadsheets: XLSX, XLS and ODS become grids of text, sheet by sheet; and formats that mask the numbers in the file.

Whatever reads a spreadsheet holds everything between its outermost cells in memory. So each part of an XLSX or ODS is gone
through first, and only what was gone through is handed on: an archive of our own making, which cannot unpack to anything
else.
"""

from __future__ import annotations

import io
import os
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree
from xml.parsers import expat
from xml.parsers.expat import ExpatError

import polars as pl

from unround.errors import InputError
from unround.small_files import open_plain, require_file, shortened
from unround.tables.delimited import read_rows
from unround.tables.grid import Grid, Marks, Merged, as_text, column_number, told_apart
from unround.tables.source import BROKEN, PACKED_TIGHTEST, Source

_ZIP, _OLD = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_OFFICE = (".xlsx", ".xlsm", ".xls", ".ods")


def is_spreadsheet(path: Path) -> bool:
    """Return whether a file is a spreadsheet, by its name and its first bytes; a zip is one if it is an Office document."""
    if not os.path.isfile(path):
        return False
    try:
        with open_plain(path) as file:
            magic = file.read(4)
    except OSError:
        return False
    if path.suffix.lower() in _OFFICE:
        return magic in (_ZIP, _OLD)
    if magic != _ZIP:
        return False
    try:
        with zipfile.ZipFile(path) as packed:
            return bool({"[Content_Types].xml", "content.xml"} & set(packed.namelist()))
    except (OSError, NotImplementedError, *BROKEN):
        return False  # what is wrong with it, `Source` tells


def read_grid(path: Path, sheet: str | None = None) -> Grid:
    """Read a file as rows of text: a sheet, the first by default, or a delimited file."""
    if is_spreadsheet(path):
        return Workbook(path).grid(sheet)
    if sheet is not None:
        raise InputError(f"{path} is not a spreadsheet, so it has no sheet {sheet!r}; leave the sheet out.")
    return told_apart(read_rows(Source(path)))


class Workbook:
    """A spreadsheet, opened once for all of its sheets: `names`, those that people see first."""

    def __init__(self, path: Path) -> None:
        from python_calamine import CalamineWorkbook  # only here: few files are spreadsheets

        self._path, self._size, self._parts = path, require_file(path), None
        with _damage_reported(path):
            if zipfile.is_zipfile(path):
                self._parts = unpacked(path)
                self._book: Any = CalamineWorkbook.from_filelike(self._parts)
            else:  # an XLS, whose sheets end at 65,536 rows of 256 columns; or one that is locked
                self._book = CalamineWorkbook.from_path(path)
            sheets = [(str(listed.visible).endswith(".Visible"), listed.name) for listed in self._book.sheets_metadata]
            # What is hidden goes out with the file all the same: it is read, after what people see.
            self.names = [name for _, name in sorted(sheets, key=lambda sheet: not sheet[0])]

    def grid(self, sheet: str | None = None) -> Grid:
        """Return one sheet; the first by default."""
        path, names = self._path, self.names
        if not names:
            raise InputError(f"{path} has no sheet; save the table into one.")
        name = names[0] if sheet is None else sheet
        if name not in names:
            raise InputError(f"{path} has no sheet {name!r}; its sheets are {shortened(names)}. Choose one with --sheet.")
        with _damage_reported(path):
            read: Any = self._book.get_sheet_by_name(name)
            room = read.total_height * read.total_width
            # Of others, cells were counted while they were unpacked.
            if self._parts is None and room > FEW_CELLS:
                filled = sum(cell != "" for row in read.iter_rows() for cell in row)
                if room > EMPTIEST * filled:
                    raise InputError(
                        f"{path}: the last cell of the sheet {name!r} is so far away from the others that it would take "
                        f"{room:,} cells; remove what is there by mistake, or save the table as CSV."
                    )
            texts = read.to_python(skip_empty_area=False)
            merged = read.merged_cell_ranges or []
        for row in texts:
            row[:] = map(as_text, row)
        if not any(cell is not None for row in texts for cell in row):
            others = [other for other in names if other != name]
            hint = f" Its other sheets are {shortened(others)}: choose one with --sheet." if others else ""
            raise InputError(f"{path}: the sheet {name!r} is empty.{hint}")
        with _damage_reported(path):
            marks, notes = (Marks(), ()) if self._parts is None else _marks(self._parts, name)
        for at, column in marks.unstored:
            if at < len(texts) and column < len(texts[at]):
                texts[at][column] = UNSTORED
        columns = {str(at): pl.Series(list(cells), dtype=pl.String) for at, cells in enumerate(zip(*texts, strict=True))}
        spans = tuple(Merged(*start, *end) for start, end in merged)
        return told_apart(Grid(pl.DataFrame(columns), str(path), self._size, name, spans, marks, notes))


UNSTORED = "=?"
"""Stands in a cell with a formula whose value is not in the file: there is a number, but nobody knows which."""
LARGEST_MARKED = 1 << 26
"""Bytes of a sheet up to which formats and formulas are looked at."""
_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_LINK = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def _marks(parts: IO[bytes], sheet: str) -> tuple[Marks, tuple[str, ...]]:
    """Return what the sheet of an XLSX says of its cells beside their content, and what could not be looked at."""
    with zipfile.ZipFile(parts) as packed:
        if "xl/workbook.xml" not in packed.namelist():
            content = packed.read("content.xml") if "content.xml" in packed.namelist() else b"<none/>"
            if len(content) > LARGEST_MARKED:
                return Marks(), (f"{_so_large(sheet)} formats that hide numbers are not looked for.",)
            return Marks(masked=dict.fromkeys(masking_styles(content), ("some cells",))), ()
        book = ElementTree.fromstring(packed.read("xl/workbook.xml"))
        links = ElementTree.fromstring(packed.read("xl/_rels/workbook.xml.rels"))
        targets = {node.get("Id"): node.get("Target", "") for node in links}
        named = next((node for node in book.iter(f"{_MAIN}sheet") if node.get("name") == sheet), None)
        target = "" if named is None else targets.get(named.get(_LINK), "")
        part = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
        if part not in packed.namelist():
            return Marks(), ()
        if packed.getinfo(part).file_size > LARGEST_MARKED:
            unseen = "indentation by format, formats that hide numbers and formulas without values"
            return Marks(), (f"{_so_large(sheet)} {unseen} are not looked for.",)
        calculated = any(node.get("fullCalcOnLoad") in ("1", "true") for node in book.iter(f"{_MAIN}calcPr"))
        styles = packed.read("xl/styles.xml") if "xl/styles.xml" in packed.namelist() else b"<none/>"
        comments = _comments(packed, part)
        with packed.open(part) as file:
            return replace(_marks_of_sheet(file, ElementTree.fromstring(styles), calculated), comments=comments), ()


def _comments(packed: zipfile.ZipFile, sheet: str) -> dict[str, str]:
    """Return the comments on the cells of a sheet."""
    folder, _, name = sheet.rpartition("/")
    linked, comments = f"{folder}/_rels/{name}.rels", dict[str, str]()
    if linked not in packed.namelist():
        return comments
    for link in ElementTree.fromstring(packed.read(linked)):
        target = link.get("Target", "")
        part = target.lstrip("/") if target.startswith("/") else posixpath.normpath(f"{folder}/{target}")
        if link.get("Type", "").endswith("/comments") and part in packed.namelist():
            for comment in ElementTree.fromstring(packed.read(part)).iter(f"{_MAIN}comment"):
                comments[comment.get("ref", "")] = " ".join("".join(comment.itertext()).split())
    return comments


def _so_large(sheet: str) -> str:
    return f"The sheet {sheet!r} is so large that"


def _indents(styles: ElementTree.Element) -> dict[str, int]:
    """Return the formats of cells that indent them, by number."""
    indents = {}
    for number, cell_format in enumerate(styles.iterfind(f"{_MAIN}cellXfs/*")):
        alignment = cell_format.find(f"{_MAIN}alignment")
        if alignment is not None and int(alignment.get("indent", "0")):
            indents[str(number)] = int(alignment.get("indent", "0"))
    return indents


def _number_formats(styles: ElementTree.Element) -> tuple[dict[str, str], dict[str, str]]:
    """Return the number formats that a file defines: by the formats of cells that use them, and by those on condition."""
    codes = {node.get("numFmtId"): node.get("formatCode", "") for node in styles.iterfind(f"{_MAIN}numFmts/*")}
    cells = {str(at): codes.get(node.get("numFmtId"), "") for at, node in enumerate(styles.iterfind(f"{_MAIN}cellXfs/*"))}
    on_condition = {
        str(at): code.get("formatCode", "")
        for at, node in enumerate(styles.iterfind(f"{_MAIN}dxfs/*"))
        if (code := node.find(f"{_MAIN}numFmt")) is not None
    }
    return {at: code for at, code in cells.items() if code}, on_condition


def _marks_of_sheet(file: IO[bytes], styles: ElementTree.Element, calculated: bool) -> Marks:
    """Go through a sheet; where a file is to be calculated when it is opened, a stored 0 only fills the place."""
    indents, (formats, on_condition) = _indents(styles), _number_formats(styles)
    masked: dict[str, list[str]] = {}
    indented: dict[tuple[int, int], int] = {}
    unstored: set[tuple[int, int]] = set()
    rows: list[int] = []
    columns: list[int] = []
    for _, node in ElementTree.iterparse(file):
        if node.tag == f"{_MAIN}c":
            place = re.fullmatch(r"([A-Z]+)([0-9]+)", node.get("r", ""))
            if place is None:
                continue
            at = int(place[2]) - 1, column_number(place[1])
            if node.get("s", "") in indents:
                indented[at] = indents[node.get("s", "")]
            value = node.find(f"{_MAIN}v")
            shown = "" if value is None else value.text or ""
            if node.find(f"{_MAIN}f") is not None and (not shown or (calculated and shown == "0")):
                unstored.add(at)
            code = formats.get(node.get("s", ""), "")
            if code and shown and node.get("t", "n") == "n" and masks(code, float(shown)):
                masked.setdefault(code, []).append(place[0])
            node.clear()
        elif node.tag == f"{_MAIN}conditionalFormatting":
            codes = [on_condition.get(rule.get("dxfId", ""), "General") for rule in node]
            for code in codes:
                if masks(code, 1):
                    masked.setdefault(code, []).append(node.get("sqref", ""))
        elif node.tag == f"{_MAIN}row" and node.get("hidden") in ("1", "true"):
            rows.append(int(node.get("r", "0")) - 1)
        elif node.tag == f"{_MAIN}col" and node.get("hidden") in ("1", "true"):
            columns += range(int(node.get("min", "1")) - 1, min(int(node.get("max", "1")), MOST_COLUMNS))
    return Marks(
        indented,
        frozenset(unstored),
        tuple(rows),
        tuple(columns),
        masked={code: tuple(cells) for code, cells in masked.items()},
    )


@contextmanager
def _damage_reported(path: Path) -> Iterator[None]:
    """Turn what is raised at damaged or locked files into something a user can act upon."""
    try:
        yield
    except InputError:
        raise
    except (ElementTree.ParseError, ExpatError, OSError, KeyError, NotImplementedError, *BROKEN) as error:
        raise InputError(f"{path} cannot be read as a spreadsheet ({error}); save it again.") from None
    except BaseException as error:
        kind = type(error)
        if kind.__name__ == "PasswordError":
            raise InputError(f"{path} is locked with a password; save it without one.") from None
        if kind.__module__.startswith("python_calamine") or kind.__name__ == "PanicException":
            said = (str(error).splitlines() or [kind.__name__])[0][:200]
            raise InputError(f"{path} cannot be read as a spreadsheet ({said}); save it again.") from None
        raise


_CONDITION = re.compile(r"\[(<=|>=|<>|<|>|=)(-?[0-9.]+)\]")
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[[^\]]*\]')
_NUMBER = re.compile(r"[0#?@ymdhsge/]|general", re.IGNORECASE)
_NIL = frozenset(("", "-", "–", "—", "0", "nil"))
"""What a nought may well be shown as."""
_ODF = "{urn:oasis:names:tc:opendocument:xmlns:datastyle:1.0}"


def masks(code: str, value: float) -> bool:
    """Return whether a number format shows a number as a text, as a rounder number, or not at all.

    >>> masks('[<5]"<5";0', 3), masks('[<5]"<5";0', 7), masks(";;;", 3), masks('#,##0;-#,##0;"-"', 0), masks("General", 3)
    (True, False, True, False, False)
    >>> masks("#,##0,", 12345), masks("#,##0,", 12000), masks("#,##0", 12345)
    (True, False, False)
    """
    sections = re.split(r";(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", code)
    conditions = [_CONDITION.search(section) for section in sections]
    if any(conditions):
        at = next(
            (
                at
                for at, condition in enumerate(conditions)
                if condition and _holds(condition[1], value, float(condition[2]))
            ),
            -1,
        )
        if at < 0:
            at = next((at for at, condition in enumerate(conditions) if condition is None), len(sections) - 1)
    else:
        at = 0 if value > 0 or len(sections) < 2 else 1 if value < 0 else 2 if len(sections) > 2 else 0
    section = sections[at]
    shown = "".join(re.findall(r'"([^"]*)"', section)).strip()
    thousands = re.search(r"[0#](,+)(?![0#,])", _LITERAL.sub("", section))
    if thousands and value % 1000 ** len(thousands[1]):
        return True
    return not _NUMBER.search(_LITERAL.sub("", section)) and not (value == 0 and shown in _NIL)


def _holds(sign: str, value: float, bound: float) -> bool:
    below, above = "<" in sign and value < bound, ">" in sign and value > bound
    return below or above or ("=" in sign and value == bound)


def masking_styles(content: bytes) -> tuple[str, ...]:
    """Return the texts that the number styles of an ODS file show in place of any number."""
    shown = []
    for style in ElementTree.fromstring(content).iter(f"{_ODF}number-style"):
        texts = "".join(text for part in style.iter(f"{_ODF}text") for text in part.itertext()).strip()
        digits = any(part.tag != f"{_ODF}text" and part.tag.startswith(_ODF) for part in style)
        if not digits and texts not in _NIL:
            shown.append(texts)
    return tuple(dict.fromkeys(shown))


# Unpacked once, within limits, and counted on the way

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
