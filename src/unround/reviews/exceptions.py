"""Exceptions that a reviewer records: which cells were accepted, by whom and why. They are kept in `decisions.jsonl`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unround.errors import InputError
from unround.reviews.policy import CONDITIONAL, LIKELY, PROVED, UNROUNDED
from unround.reviews.table import ReviewedTable

DECISIONS = "decisions.jsonl"
ACCEPTED, COMMENT = "accepted", "comment"
"""What a line records: an exception, or a mere remark."""

SURENESS = {UNROUNDED: 3, PROVED: 3, CONDITIONAL: 2, LIKELY: 1}
"""An exception for a claim covers no surer one."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a reviewer says about a cell.

    - `cell`: Its area and key, `AREA:KEY`.
    - `because`: The reason, or the comment.
    - `accept`: Whether the cell is accepted as it is.
    """

    cell: str
    because: str
    accept: bool = True


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
    path, found = out / DECISIONS, []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{path} cannot be read: {problem}.") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            told = json.loads(line)
            complete = isinstance(told, dict) and all(isinstance(told.get(name), str) for name in ("what", "table", "cell"))
        except (ValueError, RecursionError):
            complete = False
        if not complete:
            raise InputError(f"{path}, line {number}, is not a recorded decision: correct or remove that line.")
        found.append(told)
    return found


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
    entries: Iterable[Entry],
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
        if entry.accept and claim is None:
            raise InputError(f"there is nothing to accept about {name}: no limit of the policy is about it.")
        line = {"what": ACCEPTED if entry.accept else COMMENT, "cell": name, "because": entry.because.strip()}
        line |= dict(claim or {}) | dict(stamp)
        if not any(all(old.get(key) == line[key] for key in ("what", "cell", "because", "table")) for old in lines):
            lines.append(line)
    accepted, unused, comments = {}, [], {}
    for line in lines:
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


def written(lines: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of `decisions.jsonl`."""
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
