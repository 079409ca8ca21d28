"""Tables on a sheet, and sheets in a file: XLSX, ODS, CSV in several dialects, PX, SDMX-CSV."""

from __future__ import annotations

import itertools
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from xml.sax.saxutils import escape

import xlsxwriter

from tests.drafts.tables import Table

Value = int | float | str | None


class Share(float):
    """A percentage that a spreadsheet keeps as a fraction and shows with its sign."""


@dataclass(frozen=True)
class Layout:
    """How a table stands on a sheet.

    - `rows`: how many of its axes are down the side; -1: all of them, one count a line
    - `head`: "merge" (a heading over several columns, merged), "blank" (only above the first), "repeat", or a separator
      that joins headings
    - `above`, `below`: lines of text
    - `indent`: totals have their parts indented below them
    - `codes`: a column of codes beside the names of the first axis
    - `extra`: further columns of numbers that are not counts: heading and numbers of every row
    - `blank_rows`: an empty row after so many
    - `side`: what stands over the names down the side, the axis's name unless given
    - `formulas`: totals are formulas; "stored" with values, or "empty"
    - `value`: the heading of the counts of a long table
    - `notes`: long tables have a last column of footnotes
    - `hide_rows`, `hide_columns`: on the sheet, hidden from view
    """

    rows: int = 1
    head: str = "merge"
    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    indent: bool = False
    codes: str = ""
    extra: tuple[tuple[str, Callable[[int], Value]], ...] = ()
    blank_rows: int = 0
    side: str | None = None
    formulas: str = ""
    value: str = "Persons"
    notes: bool = False
    hide_rows: tuple[int, ...] = ()
    hide_columns: tuple[int, ...] = ()


@dataclass
class Sheet:
    """Values row by row; merged ranges (row, column, row, column); formulas by place; what is hidden."""

    rows: list[list[Value]] = field(default_factory=list)
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)
    formulas: dict[tuple[int, int], str] = field(default_factory=dict)
    stored: bool = True
    hidden_rows: list[int] = field(default_factory=list)
    hidden_columns: list[int] = field(default_factory=list)


def place(sheet: Sheet, table: Table, layout: Layout) -> None:
    """Put a table below what is on the sheet already."""
    sheet.rows += [[line] for line in layout.above]
    sheet.stored = layout.formulas != "empty"
    if layout.rows < 0:
        _long(sheet, table, layout)
    else:
        _wide(sheet, table, layout)
    sheet.rows += [[line] for line in layout.below]


def _long(sheet: Sheet, table: Table, layout: Layout) -> None:
    notes = ["Note"] if layout.notes else []
    sheet.rows.append([*(axis.name for axis in table.axes), layout.value, *notes])
    for at, cell in enumerate(table.cells):
        note = [("revised", "", "see note 1", "")[at % 4]] if layout.notes else []
        sheet.rows.append([*cell, table.shown[cell], *note])


def _wide(sheet: Sheet, table: Table, layout: Layout) -> None:
    side, across = table.axes[: layout.rows], table.axes[layout.rows :]
    columns = list(itertools.product(*(axis.printed for axis in across)))
    left = len(side) + bool(layout.codes)
    start = len(sheet.rows)
    percent = table.percent
    shares = [labels for labels in columns if percent and labels[0] != percent.of]
    _headings(
        sheet,
        layout,
        [axis.name for axis in side],
        columns,
        [percent.heading.format(*labels) for labels in shares if percent],
    )
    first = len(sheet.rows)
    printed = list(itertools.product(*(axis.printed for axis in side)))
    for at, labels in enumerate(printed):
        if layout.blank_rows and at and at % layout.blank_rows == 0:
            sheet.rows.append([])
        fresh = at == 0 or printed[at - 1][0] != labels[0]
        names = [
            ("    " * side[0].depth[labels[0]] if layout.indent else "") + labels[0]
            if fresh or layout.head == "repeat"
            else None,
            *labels[1:],
        ]
        codes = [f"{layout.codes}{at + 1:04d}" if fresh else None] if layout.codes else []
        values: list[Value] = [table.shown[(*labels, *column)] for column in columns]
        values += [
            table.percent_of((*labels, *column)) if (*labels, *column) in table.percent_cells else ".." for column in shares
        ]
        sheet.rows.append([*codes, *names, *values, *(number(at) for _, number in layout.extra)])
    if layout.formulas:
        last = len(sheet.rows) - 1
        for column in range(left, left + len(columns)):
            name = xlsxwriter.utility.xl_col_to_name(column)
            sheet.formulas[last, column] = f"=SUM({name}{first + 1}:{name}{last})"
    sheet.hidden_rows += [start + row for row in layout.hide_rows]
    sheet.hidden_columns += layout.hide_columns


def _headings(sheet: Sheet, layout: Layout, side: list[str], columns: list[tuple[str, ...]], shares: list[str]) -> None:
    names = (
        ([*([f"{side[0]} code"] if layout.codes else []), *side])
        if layout.side is None
        else [layout.side] * (len(side) + bool(layout.codes))
    )
    extra = [heading for heading, _ in layout.extra]
    depth = len(columns[0])
    if layout.head not in ("merge", "blank", "repeat"):
        sheet.rows.append(
            [
                *names,
                *(layout.head.join(reversed(labels) if layout.head == " " else labels) for labels in columns),
                *shares,
                *extra,
            ]
        )
        return
    start = len(sheet.rows)
    for level in range(depth):
        row: list[Value] = list(names) if level == depth - 1 else [None] * len(names)
        for at, labels in enumerate(columns):
            run = at == 0 or columns[at - 1][: level + 1] != labels[: level + 1]
            row.append(labels[level] if run or layout.head == "repeat" else None)
            if run and layout.head == "merge" and level < depth - 1:
                end = max(other for other, those in enumerate(columns) if those[: level + 1] == labels[: level + 1])
                sheet.merged.append((start + level, len(names) + at, start + level, len(names) + end))
        sheet.rows.append(row + ([*shares, *extra] if level == depth - 1 else []))


def xlsx(path: Path, sheets: dict[str, Sheet]) -> None:
    book = xlsxwriter.Workbook(str(path), {"strings_to_numbers": False, "strings_to_formulas": False})
    book.set_properties({"created": datetime(2024, 1, 1)})
    shares = book.add_format({"num_format": "0.0%"})
    for name, sheet in sheets.items():
        page = book.add_worksheet(name)
        for at, row in enumerate(sheet.rows):
            for column, value in enumerate(row):
                if value is None:
                    continue
                if (at, column) in sheet.formulas:
                    page.write_formula(at, column, sheet.formulas[at, column], None, value if sheet.stored else "")
                elif isinstance(value, str):
                    depth = len(value) - len(value.lstrip(" "))
                    form = book.add_format({"indent": depth // 4}) if depth and column == 0 else None
                    page.write_string(at, column, value.lstrip(" ") if form else value, form)
                elif isinstance(value, Share):
                    page.write_number(at, column, round(value / 100, 6), shares)
                else:
                    page.write_number(at, column, value)
        for top, left, bottom, right in sheet.merged:
            if right > left:
                page.merge_range(top, left, bottom, right, sheet.rows[top][left])
        for row in sheet.hidden_rows:
            page.set_row(row, None, None, {"hidden": True})
        for column in sheet.hidden_columns:
            page.set_column(column, column, None, None, {"hidden": True})
    book.close()


ODS = "urn:oasis:names:tc:opendocument:xmlns"
ODS_KIND = "application/vnd.oasis.opendocument.spreadsheet"


def ods(path: Path, sheets: dict[str, Sheet]) -> None:
    pages = []
    for name, sheet in sheets.items():
        rows = "".join(_ods_row(sheet, at) for at in range(len(sheet.rows)))
        pages.append(f'<table:table table:name="{escape(name)}">{rows}</table:table>')
    spaces = "".join(f' xmlns:{name}="{ODS}:{name}:1.0"' for name in ("office", "table", "text"))
    body = f"<office:body><office:spreadsheet>{''.join(pages)}</office:spreadsheet></office:body>"
    content = f'<office:document-content{spaces} office:version="1.2">{body}</office:document-content>'
    parts = {"/": ODS_KIND, "content.xml": "text/xml"}.items()
    entries = "".join(
        f'<manifest:file-entry manifest:full-path="{name}" manifest:media-type="{kind}"/>' for name, kind in parts
    )
    manifest = f'<manifest:manifest xmlns:manifest="{ODS}:manifest:1.0" manifest:version="1.2">{entries}</manifest:manifest>'
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in (("mimetype", ODS_KIND), ("META-INF/manifest.xml", manifest), ("content.xml", content)):
            archive.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), text)


def _ods_row(sheet: Sheet, at: int) -> str:
    out = []
    covered = {(top, column) for top, left, _, right in sheet.merged for column in range(left + 1, right + 1)}
    spans = {(top, left): right - left + 1 for top, left, _, right in sheet.merged}
    for column, value in enumerate(sheet.rows[at]):
        span = (
            f' table:number-columns-spanned="{spans[at, column]}" table:number-rows-spanned="1"'
            if (at, column) in spans
            else ""
        )
        if (at, column) in covered:
            out.append("<table:covered-table-cell/>")
        elif value is None:
            out.append("<table:table-cell/>")
        elif isinstance(value, str):
            out.append(
                f'<table:table-cell office:value-type="string"{span}><text:p>{escape(value)}</text:p></table:table-cell>'
            )
        else:
            number = f'office:value-type="float" office:value="{value}"'
            out.append(f"<table:table-cell {number}><text:p>{value}</text:p></table:table-cell>")
    return f"<table:table-row>{''.join(out)}</table:table-row>"


@dataclass(frozen=True)
class Dialect:
    """How numbers and cells are written in a CSV."""

    separator: str = ","
    decimal: str = "."
    thousands: str = ""
    encoding: str = "utf-8"
    quote: bool = False

    def text(self, value: Value) -> str:
        if value is None:
            return ""
        if isinstance(value, str):
            text = value
        elif isinstance(value, int):
            text = f"{value:,}".replace(",", self.thousands)
        else:
            text = str(value).replace(".", self.decimal)
        if self.quote or any(sign in text for sign in (self.separator, '"', "\n")):
            return '"' + text.replace('"', '""') + '"'
        return text


def csv(path: Path, sheets: dict[str, Sheet], dialect: Dialect = Dialect()) -> None:
    (sheet,) = sheets.values()
    lines = (dialect.separator.join(dialect.text(value) for value in row) for row in sheet.rows)
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode(dialect.encoding))


def px(path: Path, table: Table, title: str, note: str = "") -> None:
    """Write a PC-Axis file: the first axis down the side, the others across."""

    def quoted(words: Sequence[str]) -> str:
        return ",".join(f'"{word}"' for word in words)

    side, *across = table.axes
    lines = [
        'CHARSET="ANSI"',
        'AXIS-VERSION="2000"',
        'CODEPAGE="utf-8"',
        'LANGUAGE="en"',
        'MATRIX="T1"',
        'SUBJECT-AREA="Population"',
        'SUBJECT-CODE="POP"',
    ]
    lines += [
        f'TITLE="{title}"',
        'CONTENTS="Persons"',
        'UNITS="persons"',
        "DECIMALS=0",
        f'STUB="{side.name}"',
        f"HEADING={quoted([axis.name for axis in across])}",
    ]
    lines += [f'VALUES("{axis.name}")={quoted(axis.printed)}' for axis in table.axes]
    lines += [f'NOTE="{note}"'] if note else []
    per_row = len(table.cells) // len(side.printed)
    numbers = [
        f'"{value}"' if isinstance(value, str) else str(value) for value in (table.shown[cell] for cell in table.cells)
    ]
    body = "\n".join(" ".join(numbers[at : at + per_row]) for at in range(0, len(numbers), per_row))
    path.write_text(";\n".join(lines) + f";\nDATA=\n{body};\n", encoding="utf-8")


def sdmx(path: Path, table: Table, statuses: dict[str, str]) -> None:
    """Write SDMX-CSV: a count a line, codes for labels, and a status where it is hidden."""
    lines = [",".join(["DATAFLOW", "FREQ", *(axis.name for axis in table.axes), "TIME_PERIOD", "OBS_VALUE", "OBS_STATUS"])]
    for cell in table.cells:
        value = table.shown[cell]
        shown, status = ("", statuses[value]) if isinstance(value, str) else (str(value), "A")
        lines.append(",".join(["OFFICE:DF_POP(1.0)", "A", *cell, "2021", shown, status]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
