"""`cells.xlsx`: every cell to act on with the proposed action, and columns for the reviewer's word."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unround.errors import InputError
from unround.reviews.exceptions import Entry
from unround.tables.spreadsheet import read_sheet

CELLS = "cells.xlsx"
MOST_ROWS = 1_000_000
"""Rows that fit into a sheet."""

HEADINGS = {
    "cell": ("cell", 24),
    "area": ("area", 16),
    "area_name": ("name", 22),
    "what": ("what is counted", 34),
    "published": ("you print", 10),
    "said": ("readers can tell", 26),
    "value": ("count", 8),
    "range": ("possible", 11),
    "probability_high": ("highest probability", 18),
    "claim": ("claim", 12),
    "because": ("because of", 40),
    "action": ("proposed action", 44),
    "accept": ("accept (yes)", 13),
    "comment": ("comment", 44),
}
"""The columns: their headings and widths."""

_YES, _NO = ("yes", "y", "x", "true", "1"), ("", "no", "n", "false", "0")
_FORMULA = re.compile(r"^[=+\-@\t\r]")


def safe(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would take for a formula, should it ever be saved as CSV.

    Examples
    --------
    >>> safe("=1+1"), safe("Region 01")
    ("'=1+1", 'Region 01')
    """
    return f"'{text}" if _FORMULA.match(text) else text


def write_workbook(path: Path, cells: Sequence[Mapping[str, Any]], table: str, about: Sequence[tuple[str, str]]) -> None:
    """Write the workbook."""
    from xlsxwriter import Workbook

    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False, "in_memory": True}
    with Workbook(str(path), options) as book:
        head = book.add_format({"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"})
        plain = book.add_format({"valign": "top", "text_wrap": True})
        share, own = book.add_format({"num_format": "0.0%", "valign": "top"}), book.add_format({"bg_color": "#FFF6DC"})
        sheet = book.add_worksheet("cells")
        for at, (name, (heading, width)) in enumerate(HEADINGS.items()):
            reviewers = name in ("accept", "comment")
            sheet.set_column(at, at, width, own if reviewers else None)
            sheet.write_string(0, at, heading, head)
        for row, cell in enumerate(cells[:MOST_ROWS], 1):
            for at, name in enumerate(HEADINGS):
                value = cell.get(name)
                if isinstance(value, str) and value:
                    sheet.write_string(row, at, safe(value[:2000]), plain)
                elif isinstance(value, int | float):
                    sheet.write_number(row, at, value, share if name == "probability_high" else plain)
        sheet.freeze_panes(1, 1)
        sheet.autofilter(0, 0, max(1, min(len(cells), MOST_ROWS)), len(HEADINGS) - 1)
        sheet.set_landscape()
        sheet.fit_to_pages(1, 0)
        sheet.repeat_rows(0)
        told = book.add_worksheet("about")
        told.set_column(0, 0, 18)
        told.set_column(1, 1, 100)
        for row, (name, text) in enumerate([("table", table), *about]):
            told.write_string(row, 0, safe(name), head)
            told.write_string(row, 1, safe(text), plain)


def read_entries(out: Path | None) -> tuple[str, list[Entry]]:
    """Return what a reviewer wrote into the workbook of an earlier review, and about which table.

    Raises `InputError` where the workbook cannot be read, or something other than yes or no stands under "accept".
    """
    if out is None or not (out / CELLS).exists():
        return "", []
    path = out / CELLS
    try:
        cells, about = (read_sheet(path, name).cells.rows() for name in ("cells", "about"))
        cell, accept, comment = (cells[0].index(HEADINGS[name][0]) for name in ("cell", "accept", "comment"))
        table = str(about[0][1])
    except (InputError, ValueError, IndexError) as problem:
        raise InputError(
            f"{path} cannot be read as the cells of an earlier review ({problem}). Move it away, or choose another folder "
            "with -o."
        ) from None
    found = []
    for number, row in enumerate(cells[1:], 2):
        word, said = (row[accept] or "").strip().lower(), (row[comment] or "").strip()
        if word not in (*_YES, *_NO):
            raise InputError(
                f"{path}, row {number}: under {HEADINGS['accept'][0]!r} stands {row[accept]!r}; write yes or no."
            )
        if word in _YES or said:
            found.append(Entry(row[cell] or "", said, word in _YES))
    return table, found
