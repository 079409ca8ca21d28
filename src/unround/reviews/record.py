"""The cells to act on, what a reviewer accepts and why, and where both are kept: `cells.xlsx` and `decisions.jsonl`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unround.audits.findings import SIZES, SMALL_FIRST
from unround.errors import InputError
from unround.evidence.block import NO_UPPER_BOUND
from unround.explanation.cell import explain_at
from unround.job import AuditFolder
from unround.mechanisms.base import BoolArray
from unround.reviews.decision import PUBLISH, Unsettled, falls_under
from unround.reviews.exposure import Exposure
from unround.reviews.policy import (
    CONDITIONAL,
    KINDS,
    LIKELY,
    PROVED,
    RANGE,
    STOP,
    SURENESS,
    UNROUNDED,
    Policy,
    limit_in_words,
)
from unround.reviews.result import CellToActOn, ReviewExample, TriedRepair
from unround.reviews.table import ReviewedTable, copies
from unround.small_files import open_plain
from unround.tables.spreadsheet import Workbook

CELLS, DECISIONS = "cells.xlsx", "decisions.jsonl"
ACCEPTED, COMMENT, IGNORED = "accepted", "comment", "ignored"
"""What a line records: an exception, a mere remark, or something that is left aside."""

MOST_SUMS = 3
"""Sums that are named with a cell."""

_WORST = (PROVED, UNROUNDED, CONDITIONAL, RANGE, LIKELY)


def claims_under(policy: Policy, exposure: Exposure) -> dict[tuple[int, int], dict[str, Any]]:
    """Return what is claimed of all cells that a limit is about, by row and column: what exceptions refer to."""
    some = np.zeros(exposure.kinds.shape, dtype=np.bool_)
    for limit in policy.limits:
        some |= falls_under(limit, exposure)
    return {
        (row, at): {
            "claim": _claim(exposure, row, at),
            "value": int(exposure.values[row, at]),
            "probability_high": float(exposure.highest[row, at]),
        }
        for row, at in np.argwhere(some).tolist()
    }


def _claim(exposure: Exposure, row: int, at: int) -> str:
    """Return what is claimed of a cell that a limit is about: where no value is, its range."""
    return KINDS[exposure.kinds[row, at]] if exposure.kinds[row, at] else RANGE


def cells_to_act_on(table: ReviewedTable, exposure: Exposure, policy: Policy, act_on: BoolArray) -> list[CellToActOn]:
    """Return the cells to act on, the worst first: counts of one or two before others, proved before likely."""
    under = [falls_under(limit, exposure) for limit in policy.limits]
    shown = {first: copy for copy, first in copies(table).items()}  # beside an earlier release: what the draft prints
    model, listed = table.model, []
    for row, at in np.argwhere(act_on).tolist():
        area, column, named = table.area_codes[row], table.columns[at], table.area_name(row)
        kind = _claim(exposure, row, at)
        published, high = int(table.printed[row, shown.get(at, at)]), int(exposure.high[row, at])
        sums = [model.sum_in_short(e) for e in model.touching[at]]
        more = f"; and {len(sums) - MOST_SUMS} more" if len(sums) > MOST_SUMS else ""
        broken = tuple(k for k, cells in enumerate(under) if cells[row, at])
        cell = CellToActOn(
            cell=cell_named(area, column.key),
            area=area,
            area_name=named if named != area else "",
            key=column.key,
            what=table.what(at),
            codes=column.codes,
            published=published if published >= 0 else None,
            claim=kind,
            value=int(exposure.values[row, at]),
            size=SIZES[int(exposure.sizes[row, at])][1],
            low=int(exposure.low[row, at]),
            high=None if high >= NO_UPPER_BOUND else high,
            probability_low=_probability(exposure.lowest[row, at]),
            probability_high=_probability(exposure.highest[row, at]),
            limits=broken,
            rules=tuple(policy.limits[k].name or limit_in_words(policy.limits[k]) for k in broken),
            because="; ".join(sums[:MOST_SUMS]) + more if kind != UNROUNDED else "",
            row=row,
            column=at,
        )
        listed.append(cell)
    return sorted(listed, key=_worst_first)


def _probability(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _worst_first(cell: CellToActOn) -> tuple[Any, ...]:
    kind, size = _WORST.index(cell.claim), SMALL_FIRST.index(cell.size)
    return size > 0, kind, size, -(cell.probability_high or 0.0), cell.row, cell.column


def action_for(cell: CellToActOn, decision: str, repairs: Sequence[TriedRepair]) -> str:
    """Say what to do about a cell: the best repair; or, where none is enough, not to publish it."""
    best = next((repair for repair in repairs if repair.within_policy), None)
    if decision == PUBLISH:
        return ""
    if best is not None and decision != STOP:
        return f"{best.action} (repair {best.rank}: {best.name})"
    if cell.claim == UNROUNDED:
        return "Round this count; then review the table again."
    return "Do not publish it in this table: no repair that was tried is enough."


def example_of(folder: AuditFolder | None, cells: Sequence[CellToActOn]) -> ReviewExample | None:
    """Return the argument for the first cell that takes one: the proof, or the sums around it."""
    cell = next((cell for cell in cells if cell.claim not in (UNROUNDED, RANGE)), None)
    if folder is None or cell is None:
        return None
    shown = explain_at(folder, cell.row, cell.column)
    facts = cell.cell, cell.area_name or cell.area, cell.what, cell.published, cell.claim, cell.value, cell.probability_high
    return ReviewExample(*facts, shown.argument, [sum_shown for sum_shown in shown.sums if sum_shown.used])


# -- what a reviewer accepts ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Remark:
    """What a reviewer says about a cell.

    - `cell`: Its area and key, `AREA:KEY`.
    - `because`: The reason, or the comment.
    - `accept`: Whether the cell is accepted as it is.
    """

    cell: str
    because: str
    accept: bool = True

    def is_about(self, table: str) -> bool:
        """Return whether it is about one of several tables: `TABLE|CELL`."""
        return self.cell.startswith(f"{table}|")


def cell_named(area: str, key: str) -> str:
    """Return what a cell is called in `cells.xlsx` and by `--accept`."""
    return f"{area}:{key}"


def fingerprint(table: ReviewedTable) -> str:
    """Return what tells one table from another, wherever it is stored: its areas, columns and counts."""
    digest = hashlib.sha256()
    for words in (table.area_codes, [column.key for column in table.columns]):
        digest.update(json.dumps(words, ensure_ascii=False).encode())
    digest.update(table.counts.astype("<i4").tobytes())
    return digest.hexdigest()


def read_decisions(out: Path | None) -> list[dict[str, Any]]:
    """Return all lines of an older `decisions.jsonl`.

    Raises `InputError` where a line is not ours: nothing may be lost when the file is written again.
    """
    if out is None or not (out / DECISIONS).exists():
        return []
    path, decisions = out / DECISIONS, []
    try:
        with open_plain(path) as file:
            lines = file.read().decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{path} cannot be read: {problem}.") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            decision = json.loads(line)
            complete = isinstance(decision, dict) and all(
                isinstance(decision.get(name), str) for name in ("what", "table", "cell")
            )
        except (ValueError, RecursionError):
            complete = False
        if not complete:
            raise InputError(f"{path}, line {number}, is not a recorded decision: correct or remove that line.")
        decisions.append(decision)
    return decisions


def find_cell(table: ReviewedTable, wanted: str) -> tuple[int, int]:
    """Return the row and column of a cell.

    Raises `InputError` where there is no such cell.
    """
    name = wanted.strip().removeprefix("'")
    rows = {code: at for at, code in enumerate(table.area_codes)}
    places = {column.key: at for at, column in enumerate(table.columns)}
    for at, sign in enumerate(name):
        if sign == ":" and name[:at] in rows and name[at + 1 :] in places:
            return rows[name[:at]], places[name[at + 1 :]]
    example = cell_named(table.area_codes[0], table.columns[0].key)
    raise InputError(f"there is no cell {wanted!r}: cells are named AREA:KEY, as in cells.xlsx; for example {example}.")


@dataclass(frozen=True, eq=False)
class Exceptions:
    """The exceptions that apply to a table.

    - `accepted`: By area and key, the line that records the exception.
    - `comments`: By cell, the last thing that was said about it.
    - `unused`: Recorded exceptions that do not apply, each with why not.
    - `lines`: Everything that is on record, also of other tables, to be written again.
    """

    accepted: Mapping[tuple[str, str], Mapping[str, Any]]
    comments: Mapping[str, str]
    unused: tuple[dict[str, Any], ...]
    lines: tuple[Mapping[str, Any], ...]


def apply_exceptions(
    table: ReviewedTable,
    claims: Mapping[tuple[int, int], Mapping[str, Any]],
    older: Sequence[Mapping[str, Any]],
    entries: Iterable[Remark],
    stamp: Mapping[str, Any],
) -> Exceptions:
    """Record what a reviewer says, and find out which exceptions apply.

    Raises `InputError` where there is no such cell, nothing to accept, or no reason is given.
    """
    lines = [dict(line) for line in older]
    for entry in entries:
        row, at = find_cell(table, entry.cell)
        name = cell_named(table.area_codes[row], table.columns[at].key)
        claim = claims.get((row, at))
        if entry.accept and not entry.because.strip():
            raise InputError(
                f"{name} is to be accepted, but no reason is given: write one (--because TEXT, or the comment)."
            )
        if entry.accept and not stamp["reviewer"]:
            raise InputError(f"{name} is to be accepted, but nobody says by whom: give --reviewer NAME.")
        if entry.accept and claim is None:
            raise InputError(f"there is nothing to accept about {name}: no limit of the policy is about it.")
        line = {"what": ACCEPTED if entry.accept else COMMENT, "cell": name, "because": entry.because.strip()}
        line |= dict(claim or {}) | dict(stamp)
        if not any(all(old.get(key) == line[key] for key in ("what", "cell", "because", "table")) for old in lines):
            lines.append(line)
    accepted, unused, comments = {}, [], {}
    for line in lines:
        if line["what"] == IGNORED:
            continue
        if line["table"] != stamp["table"]:
            if line["what"] == ACCEPTED:
                unused.append({**line, "why": "it was recorded for another version of the table"})
            continue
        comments[line["cell"]] = str(line.get("because", ""))
        if line["what"] != ACCEPTED:
            continue
        row, at = find_cell(table, line["cell"])
        claim = claims.get((row, at))
        if claim is None:
            unused.append({**line, "why": "no limit of the policy is about it any more"})
        elif SURENESS[claim["claim"]] > SURENESS.get(line.get("claim", LIKELY), 1):
            unused.append({**line, "why": f"it was accepted as {line.get('claim')}, and is now {claim['claim']}"})
        else:
            accepted[table.area_codes[row], table.columns[at].key] = line
    return Exceptions(accepted, comments, tuple(unused), tuple(lines))


def apply_ignored(
    unsettled: Sequence[Unsettled], lines: Sequence[Mapping[str, Any]], entries: Iterable[Remark], stamp: Mapping[str, Any]
) -> tuple[list[Unsettled], list[dict[str, Any]], list[Mapping[str, Any]]]:
    """Leave aside what a reviewer says does not matter.

    What is left unsettled, what was left aside, and everything on record. Raises `InputError` where there is no such thing,
    or no reason or reviewer is given.
    """
    known = {open_.what.casefold(): open_ for open_ in unsettled}
    record = list(lines)
    for entry in entries:
        name = entry.cell.strip()
        matching = [place for place in known if place == name.casefold()] or [
            place for place in known if name.casefold() and name.casefold() in place
        ]
        if len(matching) != 1:
            few = "; ".join(f'"{open_.what}"' for open_ in list(unsettled)[:6]) or "nothing"
            several = "is several things" if matching else "is not among what is unsettled"
            raise InputError(f"--ignore {name!r} {several}. Unsettled: {few}.")
        if not entry.because.strip() or not stamp["reviewer"]:
            raise InputError(f"{name} is to be ignored: say why (--because TEXT) and who says so (--reviewer NAME).")
        line = {"what": IGNORED, "cell": known[matching[0]].what, "because": entry.because.strip(), **stamp}
        if not any(all(old.get(key) == line[key] for key in ("what", "cell", "because", "table")) for old in record):
            record.append(line)
    aside = {
        str(line["cell"]).casefold(): dict(line)
        for line in record
        if line["what"] == IGNORED and line["table"] == stamp["table"]
    }
    left = [open_ for open_ in unsettled if open_.what.casefold() not in aside]
    return left, [line for place, line in aside.items() if place in known], record


def written(lines: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of `decisions.jsonl`."""
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


# -- the workbook ------------------------------------------------------------------------------------------------------

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
    "rule": ("rule broken", 24),
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


def write_workbook(path: Path, cells: Sequence[CellToActOn], table: str, about: Sequence[tuple[str, str]]) -> None:
    """Write the workbook."""
    from xlsxwriter import Workbook

    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False, "in_memory": True}
    with Workbook(str(path), options) as book:
        head = book.add_format({"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"})
        plain = book.add_format({"valign": "top", "text_wrap": True})
        share, editable = book.add_format({"num_format": "0.0%", "valign": "top"}), book.add_format({"bg_color": "#FFF6DC"})
        sheet = book.add_worksheet("cells")
        for at, (name, (heading, width)) in enumerate(HEADINGS.items()):
            reviewers = name in ("accept", "comment")
            sheet.set_column(at, at, width, editable if reviewers else None)
            sheet.write_string(0, at, heading, head)
        for row, cell in enumerate(cells[:MOST_ROWS], 1):
            for at, name in enumerate(HEADINGS):
                value = getattr(cell, name, None)
                if isinstance(value, str) and value:
                    sheet.write_string(row, at, safe(value[:2000]), plain)
                elif isinstance(value, int | float):
                    sheet.write_number(row, at, value, share if name == "probability_high" else plain)
        sheet.freeze_panes(1, 1)
        sheet.autofilter(0, 0, max(1, min(len(cells), MOST_ROWS)), len(HEADINGS) - 1)
        sheet.set_landscape()
        sheet.fit_to_pages(1, 0)
        sheet.repeat_rows(0)
        notes = book.add_worksheet("about")
        notes.set_column(0, 0, 18)
        notes.set_column(1, 1, 100)
        for row, (name, text) in enumerate([("table", table), *about]):
            notes.write_string(row, 0, safe(name), head)
            notes.write_string(row, 1, safe(text), plain)


def read_entries(out: Path | None) -> tuple[str, list[Remark]]:
    """Return what a reviewer wrote into the workbook of an earlier review, and about which table.

    Raises `InputError` where the workbook cannot be read, or something other than yes or no stands under "accept".
    """
    if out is None or not (out / CELLS).exists():
        return "", []
    path = out / CELLS
    try:
        book = Workbook(path)
        cells, about = (book.grid(name).cells.rows() for name in ("cells", "about"))
        cell, accept, comment = (cells[0].index(HEADINGS[name][0]) for name in ("cell", "accept", "comment"))
        table = str(about[0][1])
    except (InputError, ValueError, IndexError) as problem:
        raise InputError(
            f"{path} cannot be read as the cells of an earlier review ({problem}). Move it away, or choose another folder "
            "with -o."
        ) from None
    remarks = []
    for number, row in enumerate(cells[1:], 2):
        word, said = (row[accept] or "").strip().lower(), (row[comment] or "").strip()
        if word not in (*_YES, *_NO):
            raise InputError(
                f"{path}, row {number}: under {HEADINGS['accept'][0]!r} stands {row[accept]!r}; write yes or no."
            )
        if word in _YES or said:
            remarks.append(Remark(row[cell] or "", said, word in _YES))
    return table, remarks
