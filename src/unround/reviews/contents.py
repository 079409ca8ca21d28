"""Everything that a file holds beside the counts of its tables: texts, formulas, drawings, caches. It goes out with them.

A part of a workbook is read here, or harmless by what it is for, or named as one that nobody has read. New kinds of parts
are therefore asked about until somebody says here what they hold.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, NamedTuple
from xml.etree import ElementTree

from unround.errors import InputError
from unround.tables.delimited import is_pcaxis
from unround.tables.grid import column_number, letters
from unround.tables.spreadsheet import Workbook, is_spreadsheet, read_grid, unpacked

FORMULA = "a formula"
"""The place of what stands in formulas."""

NAMED, HINTED = "a defined name that holds a number", "an input hint that holds a number"
"""What nobody sees who looks at a table: it is asked about also where no count is hidden or rounded."""

MOST_BYTES = 5_000_000
"""Bytes of a file of text whose lines are looked at: a table has a few, and records have more."""

ReadCells = Mapping[str | None, Collection[tuple[int, int]]] | None
"""The cells of each sheet that hold counts or figures of a table, by their rows, from 1, and columns, from 0.

None where nobody can say which: then only cells with words are looked at.
"""


class Saying(NamedTuple):
    """Something that goes out with a table: where it stands, and what it says.

    `unread` is why nobody knows what it says. `comment` tells a remark on a single cell.
    """

    place: str
    text: str
    unread: str = ""
    comment: bool = False


def contents_of(path: Path, counted: ReadCells) -> Iterator[Saying]:
    """Go through everything that a file says beside the cells that were read as counts."""
    if not is_spreadsheet(path):
        if is_pcaxis(path):
            head = path.read_bytes().partition(b"\nDATA")[0].decode("utf-8", "replace")
            yield from (Saying("a keyword of the file", text) for text in re.findall(r'"([^"]*)"', head))
        elif path.suffix.lower() in (".csv", ".tsv", ".tab", ".txt") and path.stat().st_size <= MOST_BYTES:
            yield from _rows(path, None, "", _of(counted, None))
        return
    names = Workbook(path).names
    for sheet in names:
        yield Saying("the name of a sheet", sheet)
        yield from _rows(path, sheet, f" of {sheet}" if len(names) > 1 else "", _of(counted, sheet))
    if zipfile.is_zipfile(path):
        yield from (_Document if path.suffix.lower() == ".ods" else _Office)(path).pieces()
    else:
        yield Saying("the file", "", "it is an XLS file, which may hold more than its cells: save it as XLSX")


def _rows(path: Path, sheet: str | None, where: str, counted: Collection[tuple[int, int]] | None) -> Iterator[Saying]:
    """Go through the rows of a sheet: a row without counts as one text, others cell by cell, without those of counts."""
    try:
        grid = read_grid(path, sheet)
    except InputError:  # nothing of it was read, and that is told elsewhere
        return
    tall = None if counted is None else {row for row, _ in counted}
    for number, cells in enumerate(grid.cells.iter_rows(), 1):
        filled = {at: " ".join(str(cell).split()) for at, cell in enumerate(cells) if cell is not None}
        if tall is not None and number not in tall:
            yield Saying(f"row {number}{where}", " ".join(text for text in filled.values() if text))
            continue
        for at, text in filled.items():
            if (number, at) not in (counted or ()) and re.search(r"[^\W\d_]", text):
                yield Saying(f"cell {letters(at)}{number}{where}", text)


def _of(counted: ReadCells, sheet: str | None) -> Collection[tuple[int, int]] | None:
    return None if counted is None else counted.get(sheet, ())


def _bare(tag: str) -> str:
    return tag.rpartition("}")[2]


def _text(node: ElementTree.Element) -> str:
    """Return the text of an element, paragraph by paragraph, without the marks that stand for a page or a date."""
    lines = ["".join(part.itertext()) for part in node.iter() if _bare(part.tag) == "p"]
    return " ".join((" ".join(lines) or "".join(node.itertext())).split())


_SHOWN = ("descr", "title", "alt", "prompt", "promptTitle", "error", "errorTitle", "tooltip", "display", "comment", "user")
"""Attributes that people may come to read, wherever they stand."""
_CODES = re.compile(r'&(?:"[^"]*"|K[0-9A-Fa-f]{6}|\d+|[A-Za-z&])')
"""What stands for a page number, a date, a font in a header or footer of a sheet."""
_STRINGS = re.compile(r'"[^"]*"')
_REFERENCE = re.compile(
    r"(?:'[^']*'|\[?[\w.]+\]?)!|\[[^\]]*\]|\$?[A-Za-z]{1,3}\$?\d+\b|\$?\d+:\$?\d+|\b[A-Za-z_][\w.]*(?=\()|\b[A-Za-z_]\w*"
)
_ROUNDS = re.compile(
    r"\b(?:ROUND(?:UP|DOWN)?|TRUNC|FIXED)(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*),\s*-?\d\s*\)", re.IGNORECASE
)
_PLAIN = re.compile(r"[<>=]=?\s*-?[\d.]+|(?<![\w.])0(?![\w.])|(?<=[-+*/])\s*10*(?![\w.])|(?<![\w.])10*\s*(?=[-+*/])")


def literals(formula: str) -> str:
    """Return the numbers that stand in a formula itself: not limits, digits to round to, or powers of ten to reckon with.

    >>> literals('IF(Raw!B4<5,"c",ROUND(100*B2/$D$10,1))'), literals("of:=MROUND(47;5)"), literals("=B2/3")
    ('', '47 5', '3')
    >>> literals('=B2/C2-1'), literals('=T("c")&REPT("",1)')
    ('', '1')
    """
    bare = _STRINGS.sub(" ", re.sub(r"^of:|\[\.[^\]]*\]", "", formula)).replace(";", ",")
    bare = _ROUNDS.sub(r"\1)", bare)
    return " ".join(re.findall(r"\d+(?:\.\d+)?", _PLAIN.sub(" ", _REFERENCE.sub(" ", bare))))


class _Archive:
    """A workbook, part by part."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with zipfile.ZipFile(path) as packed:
            self.names = [name for name in packed.namelist() if not name.endswith("/")]
        self._parts = zipfile.ZipFile(unpacked(path))

    def root(self, part: str) -> ElementTree.Element:
        """Return what a part holds."""
        return ElementTree.fromstring(self._parts.read(part))

    def pieces(self) -> Iterator[Saying]:
        """Go through everything beside the cells; what nobody can read is named."""
        for part in self.names:
            readable = part.endswith((".xml", ".rels")) and part in self._parts.namelist()
            kind = next((kind for pattern, kind in self.KINDS.items() if re.search(pattern, part)), "_unknown")
            if kind == "_unknown" or (kind and not readable):
                yield self.unknown(part)
            elif kind:
                try:
                    yield from list(getattr(self, kind)(self.root(part)))
                except (ElementTree.ParseError, ValueError, LookupError):
                    yield self.unknown(part)

    KINDS: ClassVar[Mapping[str, str]] = {}
    """How parts are called, and the method that reads each kind; "" for those that hold nothing but form."""

    def unknown(self, part: str) -> Saying:
        """Return the piece of a part that is not read here."""
        what = next((what for pattern, what in _KEPT.items() if re.search(pattern, part)), f"a part of the file, {part},")
        return Saying(what, "", f"{self.path.name} has {what.rstrip(',')}, which was not read and goes out with it")

    def everything(self, root: ElementTree.Element) -> Iterator[Saying]:
        """Go through all texts and attributes of a part that is not needed, and of which nothing else is known."""
        for node in root.iter():
            said = " ".join([node.text or "", *(value for name, value in node.attrib.items() if "{" not in name)])
            yield Saying("a part that no cell shows", said)

    def texts(self, root: ElementTree.Element) -> Iterator[Saying]:
        """Go through the paragraphs, descriptions and titles of a part."""
        yield from _named("a text box or a picture", root)


_KEPT = {
    r"pivot": "a pivot table or an embedded file",
    r"embeddings|activeX|oleObject": "a pivot table or an embedded file",
    r"externalLink": "numbers of another workbook",
    r"vba|macro": "a macro",
    r"media/|Pictures/": "a picture",
    r"charts/": "a chart with numbers that no cell shows",
}
"""What parts of workbooks are called that are not read here."""


def _named(what: str, root: ElementTree.Element) -> Iterator[Saying]:
    for node in root.iter():
        if _bare(node.tag) in ("p", "title", "desc"):
            yield Saying(what, "".join(node.itertext()))
        for name in _SHOWN:
            if name in node.attrib:
                yield Saying("the description of a picture" if name in ("descr", "title") else what, node.attrib[name])


_WRITTEN = frozenset(
    ("title", "subject", "description", "keywords", "keyword", "category", "Company", "Manager", "user-defined")
)
"""Properties of a file that people write."""


class _Office(_Archive):
    """An XLSX."""

    KINDS: ClassVar[Mapping[str, str]] = {
        r"^\[Content_Types\]|\.rels$|theme|calcChain|printerSettings|sheetMetadata|xl/metadata|persons/|\.vml$": "",
        r"docProps/(?:core|custom|app)": "properties",
        r"docProps/thumbnail|customXml/itemProps": "",
        r"worksheets/": "sheet",
        r"xl/workbook\.xml": "workbook",
        r"xl/styles": "formats",
        r"xl/sharedStrings": "strings",
        r"xl/drawings/|xl/diagrams/data": "texts",
        r"xl/diagrams/|charts/(?:style|colors)": "",
        r"charts/": "chart",
        r"xl/comments|xl/threadedComments": "comments",
        r"xl/tables/": "texts",
        r"customXml/|chartsheets/|xl/connections|xl/queryTables": "everything",
    }

    @cached_property
    def sheets(self) -> dict[str, str]:
        """The names of sheets, by their parts."""
        targets = {link.get("Id"): link.get("Target", "") for link in self.root("xl/_rels/workbook.xml.rels")}
        names = {}
        for node in (node for node in self.root("xl/workbook.xml").iter() if _bare(node.tag) == "sheet"):
            part = next((targets.get(value, "") for name, value in node.attrib.items() if _bare(name) == "id"), "")
            names[part.lstrip("/") if part.startswith("/") else f"xl/{part}"] = node.get("name", "")
        return names

    @cached_property
    def raw(self) -> dict[tuple[str, str], tuple[str, str]]:
        """What every cell of every sheet holds, by sheet and name: its kind and its content."""
        contents = {}
        for part in set(self.sheets) & set(self.names):
            for cell in (node for node in self.root(part).iter() if _bare(node.tag) == "c" and len(node)):
                value = next((child.text or "" for child in cell if _bare(child.tag) == "v"), None)
                place = self.sheets[part].casefold(), cell.get("r", "")
                contents[place] = cell.get("t", "n"), _text(cell) if value is None else value
        return contents

    @cached_property
    def texts_of_cells(self) -> list[str]:
        """The texts that cells share, by their numbers."""
        part = "xl/sharedStrings.xml"
        return [_text(node) for node in self.root(part)] if part in self.names else []

    def shown(self, place: tuple[str, str]) -> str:
        """Return what a cell shows."""
        kind, content = self.raw.get(place, ("n", ""))
        return self.texts_of_cells[int(content)] if kind == "s" else content

    def properties(self, root: ElementTree.Element) -> Iterator[Saying]:
        """Go through the properties of the file that people write."""
        kinds = _WRITTEN | ({"lpwstr"} if "custom-properties" in root.tag else set())
        for node in root.iter():
            if node.text and _bare(node.tag) in kinds:
                yield Saying("a property of the file", node.text)

    def workbook(self, root: ElementTree.Element) -> Iterator[Saying]:
        """Go through the names that hold something else than a range of cells."""
        for node in root.iter():
            if _bare(node.tag) == "definedName":
                yield Saying(NAMED, f"{literals(node.text or '')} {' '.join(_STRINGS.findall(node.text or ''))}")
                yield Saying(NAMED, node.get("comment", ""))

    def formats(self, root: ElementTree.Element) -> Iterator[Saying]:
        """Go through the texts that number formats put around numbers, or in their place."""
        for node in root.iter():
            if _bare(node.tag) == "numFmt":
                yield Saying("a number format", " ".join(_STRINGS.findall(node.get("formatCode", ""))))

    def strings(self, root: ElementTree.Element) -> Iterator[Saying]:
        """Go through the texts that no cell shows any more."""
        used = {content for kind, content in self.raw.values() if kind == "s"}
        for at in range(len(root)):
            if str(at) not in used:
                yield Saying("a text that no cell shows", self.texts_of_cells[at])

    def comments(self, root: ElementTree.Element) -> Iterator[Saying]:
        """Go through comments on cells."""
        for node in root.iter():
            if _bare(node.tag) in ("comment", "threadedComment"):
                yield Saying(f"comment on {node.get('ref', '')}", _text(node), comment=True)

    def sheet(self, root: ElementTree.Element) -> Iterator[Saying]:
        """Go through what a sheet keeps besides the content of its cells: formulas, hints, headers, scenarios, filters."""
        shown = [node for node in root.iter() if _bare(node.tag) == "c"]
        for cell in shown:
            for node in cell:
                if _bare(node.tag) == "f":
                    yield Saying(FORMULA, f"{cell.get('r')}: {literals(node.text or '')}")
        for node in (node for child in root if _bare(child.tag) != "sheetData" for node in child.iter()):
            tag = _bare(node.tag)
            if tag in ("oddHeader", "oddFooter", "evenHeader", "evenFooter", "firstHeader", "firstFooter"):
                yield Saying("a header or footer", _CODES.sub(" ", node.text or ""))
            elif tag in ("cfRule", "dataValidation") and "Than" not in node.get("operator", ""):  # else, it is a limit
                rules = [child.text or "" for child in node if _bare(child.tag).startswith("formula")]
                yield Saying("a rule for cells", " ".join([*map(literals, rules), *_STRINGS.findall(" ".join(rules))]))
            elif tag in ("filter", "customFilter", "inputCells"):
                yield Saying("a filter or a scenario", node.get("val", ""))
            for name in _SHOWN:
                if name in node.attrib:
                    yield Saying("a tool tip" if name == "tooltip" else HINTED, node.attrib[name])

    def chart(self, root: ElementTree.Element) -> Iterator[Saying]:
        """Go through the texts of a chart, and the numbers that it keeps, but for those that their cells show."""
        for node in root.iter():
            caches = [child for child in node if _bare(child.tag).endswith(("Cache", "Lit"))]
            source = next((child.text or "" for child in node if _bare(child.tag) == "f"), "")
            ranges = _RANGE.findall(source) if caches else []
            for cache in caches:
                points = [node for node in cache.iter() if _bare(node.tag) == "pt"]
                kept = [(_referred(ranges, int(point.get("idx", "0"))), _text(point)) for point in points]
                others = [said for cell, said in kept if cell is None or not _same(self.shown(cell), said)]
                # Spreadsheets plot a cell of text as 0: if all of them are, none tells anything.
                of_texts = [
                    said for cell, said in kept if cell is not None and not re.search(r"\d", self.shown(cell) or "0")
                ]
                if not (of_texts == others and set(of_texts) == {"0"}):
                    yield from (Saying("a chart with numbers that no cell shows", said) for said in others)
        for node in root.iter():
            if _bare(node.tag) == "p":
                yield Saying("a chart", "".join(node.itertext()))


_RANGE = re.compile(r"(?:'((?:[^']|'')*)'|([^'!(),]+))!\$?([A-Z]+)\$?(\d+)(?::\$?([A-Z]+)\$?(\d+))?")


def _referred(ranges: Sequence[tuple[str, ...]], at: int) -> tuple[str, str] | None:
    """Return the cell that stands at a place of some ranges, row by row, without listing them: they may be whole sheets.

    >>> [_referred(_RANGE.findall("'My sheet'!$A$1:$XFD$1048576,Other!B2"), at) for at in (16385, 16384 * 1048576, -1)]
    [('my sheet', 'B2'), ('other', 'B2'), None]
    """
    for quoted, plain, left, top, right, bottom in ranges if at >= 0 else ():
        first, width = column_number(left), column_number(right or left) - column_number(left) + 1
        size = max(width, 0) * max(int(bottom or top) - int(top) + 1, 0)
        if at < size:
            return (quoted.replace("''", "'") or plain).casefold(), f"{letters(first + at % width)}{int(top) + at // width}"
        at -= size
    return None


def _same(first: str, other: str) -> bool:
    try:
        return first == other or float(first) == float(other)
    except ValueError:
        return " ".join(first.split()) == " ".join(other.split())


class _Document(_Archive):
    """An ODS."""

    KINDS: ClassVar[Mapping[str, str]] = {
        r"^mimetype|META-INF|settings\.xml|Thumbnails|Configurations2|manifest\.rdf|ObjectReplacements": "",
        r"^content\.xml": "content",
        r"^meta\.xml": "properties",
        r"styles\.xml|Object [^/]*/meta": "texts",
        r"Object [^/]*/content": "chart",
    }

    def properties(self, root: ElementTree.Element) -> Iterator[Saying]:
        """Go through the properties of the file that people write."""
        for node in root.iter():
            if _bare(node.tag) in ("title", "subject", "description", "keyword", "user-defined") and node.text:
                yield Saying("a property of the file", node.text)

    def content(self, root: ElementTree.Element) -> Iterator[Saying]:
        """Go through what stands beside the texts of cells, and numbers that their cells do not show."""
        inside: set[ElementTree.Element] = set()
        for cell in (node for node in root.iter() if _bare(node.tag).endswith("table-cell")):
            kept = {_bare(name): value for name, value in cell.attrib.items()}
            shown = [child for child in cell if _bare(child.tag) == "p"]
            inside.update(node for child in shown for node in child.iter())
            yield Saying(FORMULA, literals(kept.get("formula", "")))
            if "value" in kept and not re.fullmatch(r"[^<>≤≥]*\d[^<>≤≥]*", " ".join(map(_text, shown))):
                yield Saying("a number that its cell does not show", kept["value"])
        for node in (node for node in root.iter() if node not in inside):
            if _bare(node.tag) in ("p", "title", "desc"):
                yield Saying("a comment, a text box or a hint", "".join(node.itertext()))
            for name, value in node.attrib.items():
                if _bare(name) in ("expression", "condition"):
                    yield Saying(NAMED, literals(value))

    def chart(self, root: ElementTree.Element) -> Iterator[Saying]:
        """Go through the texts of a chart, and the numbers that it keeps."""
        kept = self.root("content.xml").iter()
        shown = {value for node in kept for name, value in node.attrib.items() if _bare(name) == "value"}
        for node in root.iter():
            for name, value in node.attrib.items():
                if _bare(name) == "value" and value not in shown | {"NaN"}:
                    yield Saying("a chart with numbers that no cell shows", value)
            if _bare(node.tag) == "p" and not any(_same(number, "".join(node.itertext())) for number in shown):
                yield Saying("a chart", "".join(node.itertext()))
