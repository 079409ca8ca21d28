"""What stands around the counts of a table, and goes out with them: texts, and what a workbook keeps beside its cells."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import unescape

import numpy as np

from unround.errors import InputError
from unround.mechanisms import Exact, Nearest, Rounding
from unround.release import told_range
from unround.reviews.decision import Unsettled
from unround.reviews.layout import KEEPING, plain_xml
from unround.reviews.table import ReviewedTable
from unround.tables.labels import WORDS, tokens
from unround.tables.spreadsheet import Workbook, is_spreadsheet, read_grid

MOST_TEXTS, MOST_BYTES = 2_000, 5_000_000
"""Texts of a file that are looked at, and how large it may be: a table has a few, and records have more."""

MOST_COLUMNS = 40
"""Of a table with more columns, nearly every number could be the total of one."""

FEW = 80
"""Letters of a text that are told."""


class TextBeside(NamedTuple):
    """A text that goes out with a table, where it stands, and whether that is where few people look."""

    place: str
    text: str
    aside: bool = False


def texts_of(path: Path) -> list[TextBeside]:
    """Return the texts of a file: in the cells of all sheets, and beside them."""
    sheets = is_spreadsheet(path)
    if not sheets and (path.suffix.lower() not in (".csv", ".tsv", ".txt") or path.stat().st_size > MOST_BYTES):
        return []
    found = list[TextBeside]()
    names = Workbook(path).names if sheets else [None]
    for sheet in names:
        found += [TextBeside("the name of a sheet", sheet)] if sheet is not None and _DIGIT.search(sheet) else []
        try:
            grid = read_grid(path, sheet)
        except InputError:  # nothing of it was read, and that is told elsewhere
            continue
        where = f" of {sheet}" if len(names) > 1 else ""
        for number, row in enumerate(grid.cells.iter_rows(), 1):
            texts = (str(cell) for cell in row if cell is not None)
            found += [TextBeside(f"row {number}{where}", text) for text in texts if _WORDS.search(text)]
    return found[:MOST_TEXTS] + (list(_beside(path)) if sheets else [])


_WORDS, _DIGIT = re.compile(r"[^\W\d_]{2}|\bn\s*="), re.compile(r"\d")
_ASIDE = (
    (r"xl/charts/chart|Object [^/]*/content", "a chart", r"<a:p>(.*?)</a:p>|<text:p[^>]*>(.*?)</text:p>"),
    (r"xl/drawings/drawing", "a text box", r"<a:p>(.*?)</a:p>"),
    (r"xl/drawings/drawing", "the description of a picture", r'\b(?:descr|title)="([^"]*)"'),
    (r"xl/worksheets/sheet", "a header or footer", r"<(?:odd|even|first)(?:Header|Footer)>(.*?)</"),
    (r"styles\.xml$", "a header or footer", r"<text:p[^>]*>(.*?)</text:p>"),
    (r"xl/worksheets/sheet", "a tool tip", r'\btooltip="([^"]*)"'),
    (r"xl/worksheets/sheet", "the formula of a text", r'<c\b[^>]*\bt="str"[^>]*><f\b[^>]*>(.*?)</f>'),
    (r"xl/threadedComments/", "a comment", r"<text>(.*?)</text>"),
    (
        r"docProps/(?:core|custom)|meta\.xml$",
        "a property of the file",
        r"<(?:dc:(?:title|subject|description)|cp:(?:keywords|category)|meta:keyword|meta:user-defined|vt:\w+)\b[^>]*>(.*?)</",
    ),
)
"""Parts of workbooks, what their texts are, and where these stand."""
_FIELD = re.compile(r'&amp;(?:"[^"]*"|&quot;.*?&quot;|K[0-9A-Fa-f]{6}|\d+|[A-Za-z])')
"""What stands for a page number, a date, a font in a header or footer of a sheet."""


def _beside(path: Path) -> Iterator[TextBeside]:
    """Go through the texts that a workbook keeps beside its cells."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as book:
        for part in book.namelist():
            for look, what, inside in _ASIDE:
                for found in re.findall(inside, _text_of(book, part), re.DOTALL) if re.search(look, part) else ():
                    text = _FIELD.sub(" ", found if isinstance(found, str) else "".join(found))
                    text = unescape(re.sub(r"<[^>]*>", "", text)).strip()
                    if "formula" in what:  # limits that counts are compared with, and cells, are not counts
                        text = " ".join(re.findall(r"(?<![\w.<>=$])\d+(?![\w.])", re.sub(r"[<>=]\s*\d+", " ", text)))
                    if text:
                        yield TextBeside(what, text, True)


def _text_of(book: zipfile.ZipFile, part: str) -> str:
    return book.read(part).decode("utf-8", "replace")


def beside_cells(path: Path) -> list[str]:
    """Name what a workbook keeps beside the cells of its sheets, and nobody has read: it goes out with the file."""
    if path.suffix.lower() not in (".xlsx", ".xlsm") or not zipfile.is_zipfile(path):
        return []
    with zipfile.ZipFile(path) as book:
        parts = book.namelist()
        found = ["a pivot table or an embedded file"] if any(part.startswith(KEEPING) for part in parts) else []
        charts = [plain_xml(path, book, part) for part in parts if part.startswith("xl/charts/chart")]
        if charts:
            sheets = [plain_xml(path, book, part) for part in parts if part.startswith("xl/worksheets/sheet")]
            number = r"(-?(?:\d+\.?\d*|\.\d+)(?:[Ee][+-]?\d+)?)"
            shown = {float(text) for sheet in sheets for text in re.findall(rf"<v>{number}</v>", sheet)}
            drawn = [
                " ".join(re.findall(r"<c:num(?:Cache|Lit)>.*?</c:num(?:Cache|Lit)>", chart, re.DOTALL)) for chart in charts
            ]
            numbers = {float(text) for chart in drawn for text in re.findall(rf"<c:v>{number}</c:v>", chart)}
            found += ["a chart with numbers that no cell shows"] if numbers - shown else []
        whole = book.read("xl/workbook.xml").decode("utf-8", "replace") if "xl/workbook.xml" in parts else ""
        names = re.findall(r"<definedName\b[^>]*>(.*?)</definedName>", whole, re.DOTALL)
        found += (
            ["a defined name that holds a number"] if any("!" not in name and _DIGIT.search(name) for name in names) else []
        )
        below = (book.read(part).rpartition(b"</sheetData>")[2] for part in parts if part.startswith("xl/worksheets/sheet"))
        hints = [hint for text in below for hint in re.findall(rb"<dataValidation\b[^>]*>", text)]
        said = (re.search(rb'\b(?:prompt|error)(?:Title)?="[^"]*\d', hint) for hint in hints)
        found += ["an input hint that holds a number"] if any(said) else []
    return found


# -- what they may tell -----------------------------------------------------------------------------------------------

_NUMBER = re.compile(
    r"(?<![\w.,:/–-])(\d{1,3}(?:[ ,.'\u00a0\u202f\u2009]\d{3})+|\d+)(?!\w|[:/–-]\d|[.,]\d| ?%| ?(?:per|pro|pour) )"
)
_CALLED = re.compile(
    r"\b\d+ (?:to|bis|à|and|or|und) (?:\d+|over|older|more)\b|\b\d+ (?:years|jahre|ans)\b"
    r"|\b(?:tables?|tab\.?|figures?|fig\.?|page|seite|sheet|no\.|nr\.|n°|tabelle|tableau|abbildung|version|v\.|base|aged?|over|under)"
    r"\s*[\d.]+|\b\d{1,2}\.?\s+[^\W\d_]+\s+(?:19|20)\d\d\b|[^\W\d_]+ \d{1,2}, (?:19|20)\d\d\b",
    re.IGNORECASE,
)
"""Numbers of tables, pages and versions, ages, and dates."""
_YEARS = range(1900, 2101)


def numbers_in(text: str) -> list[int]:
    """Return the whole numbers of a text that may be counts: not years, dates, percentages, ranges or numbers of tables.

    >>> numbers_in("Table 3. The 1,380 women and 438 men, aged 16-24, on 31 May 2023 (n = 818), 12%")
    [1380, 438, 818]
    """
    found = [(one[1], int(re.sub(r"\D", "", one[1]))) for one in _NUMBER.finditer(_CALLED.sub(" ", text))]
    return [number for printed, number in found if number not in _YEARS or not printed.isdecimal()]


def telling(table: ReviewedTable, texts: Sequence[TextBeside]) -> list[Unsettled]:
    """Ask about texts with a number that may be the total of counts that are hidden or rounded; or that few people see."""
    if not table.hidden.any() and all(isinstance(how, Exact) for how in table.mechanisms):
        return []
    labels = {*table.area_codes, *(table.area_name(row) for row in range(len(table.counts)))}
    labels |= {word for column in table.columns for word in (column.key, column.label, *column.codes)}
    shown = {number for text in texts if not text.aside for number in numbers_in(text.text)}
    shown |= {int(number) for label in labels for number in re.findall(r"\d{1,9}", label)}
    hiding = [table.area_name(row) for row in np.flatnonzero(table.hidden.any(axis=1)).tolist()]
    totals, asked = list(_totals(table)), dict[str, Unsettled]()
    for place, text, aside in texts:
        if text in labels and not _IN_BRACKETS.search(text):
            continue
        numbers, short = numbers_in(text), text if len(text) <= FEW else f"{text[: FEW - 1]}…"
        said = bool(numbers) if aside else not WORDS["numbers"].isdisjoint(tokens(text))
        about = next((name for name in hiding if said and _names(text, name)), "")
        of = next((one.what for number in numbers for one in totals if one.may_be(number, text)), "")
        if of:
            why = f"{place} prints a number that may be the total of {of}: {short}"
        elif about or (aside and set(numbers) - shown):
            why = f"{place} has a number, {f'about {about}' if about else 'which no other text shows'}: {short}"
        else:
            continue
        settle = "take it out, if it tells what is hidden or rounded"
        asked.setdefault(place, Unsettled.asked(place, why, settle))
    return list(asked.values())


_IN_BRACKETS = re.compile(r"\bn\s*=|\(\s*\d[\d ,.]*\)", re.IGNORECASE)
"""A number that a label is followed by, and that is not part of it."""


def _names(text: str, name: str) -> bool:
    return name in text and re.search(rf"\b{re.escape(name)}(?!\w)", text) is not None


class _Total(NamedTuple):
    """What the total of some counts can be, of which one is hidden, or which are rounded to a base."""

    what: str
    low: int
    high: int
    base: int
    named: str = ""

    def may_be(self, number: int, text: str) -> bool:
        """Whether a number of a text can be it; one that is rounded like the counts tells nothing."""
        possible = self.low <= number <= self.high and not (self.base and number % self.base == 0)
        return possible and (not self.named or _names(text, self.named))


def _totals(table: ReviewedTable) -> Iterator[_Total]:
    """Go through the totals of columns, of rows, and of all counts."""
    tops = np.arange(len(table.counts)) if table.nested is None else np.flatnonzero(table.nested.parent < 0)
    leaves = [at for at in table.mine if at not in table.totals]
    few = list(table.mine) if len(table.mine) <= MOST_COLUMNS else []
    groups = [(f"“{table.columns[at].label or table.columns[at].key}”", tops, [at], "") for at in few]
    groups += [("all counts", tops, leaves, "")]
    for row in np.flatnonzero(table.hidden.any(axis=1)).tolist():
        groups.append((name := table.area_name(row), np.array([row]), leaves, name))
    largest = table.printed.max(axis=0, initial=0)
    for what, rows, columns, named in groups:
        hows = [table.mechanisms[at] for at in columns]
        if not all(isinstance(how, Exact | Rounding | Nearest) for how in hows) or len(rows) * len(columns) < 2:
            continue
        bases = [0 if isinstance(how, Exact) else how.base for how in hows if isinstance(how, Exact | Rounding | Nearest)]
        cells = np.ix_(rows, np.array(columns))
        hidden = np.argwhere(table.hidden[cells]).tolist()
        known = [(told_range(int(table.counts[cells][row, at])), int(largest[columns[at]])) for row, at in hidden]
        most = sum(usual if ends is None else ends[1] for ends, usual in known)
        printed = int(np.maximum(table.printed[cells], 0).sum())
        reach = len(rows) * sum(max(base - 1, 0) for base in bases)
        if reach or len(hidden):
            yield _Total(what, printed - reach + (not reach), printed + reach + most, max(bases), named)
