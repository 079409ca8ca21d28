"""Tables as other tools hand them over. The folder that ACRO finalises: its tables of counts, alone and all together.

A table is written anew, with a description, and read like any other. What ACRO hides is an empty cell: fewer than its
threshold. Its margins are added up from what is printed, and so tell nothing, unless they do not: then they are true ones.
All tables of a folder are taken to count the same records, so that those with a variable in common have its margin in
common: this is what gives hidden counts away between outputs, and no table by itself.

τ-ARGUS hands a table to a solver in a file of its own (JJ): every cell with its status, and the sums between cells.

    0
    4                                   how many cells
    0 60 60 s 0 100 0 0 0               number, value, cost, status, least and most that readers know, protection levels
    1 20 20 u 0 100 5 5 0               u and m are hidden, others are printed
    …
    1                                   how many sums
    0 3 : 0 (-1) 1 (1) 2 (1)            what it adds up to, how many terms, and each: cell (coefficient)
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl

from unround.errors import InputError
from unround.release import Release
from unround.small_files import small_text
from unround.structure.evidence import LABELS
from unround.tables.frames import cells_and_sums, from_frame

LISTS = ("results.json", "outputs.json")
"""What ACRO calls its list of outputs, in newer and in older versions."""

MOST = 64 << 20
"""How large a list of outputs may be, in bytes: it repeats every cell of every table."""

OWN_SUMMARY = "DONT_RELEASE"
"""How the name of ACRO's own summary of a session ends, which is not an output."""

ALL, UNPRINTED, NOT_PRINTED = "All", "..", "(not printed)"
CATEGORY, COUNT = "category", "count"
TOGETHER = "all outputs, if they count the same records"

Place = tuple[str, ...]
"""A cell of a table: one category for each of its variables."""


@dataclass(frozen=True)
class AcroTable:
    """One table of counts.

    - `name`, `file`: What ACRO calls the output, and its file.
    - `rows`, `columns`: The variables down the side, and across the top.
    - `cells`: Every count; None where it is hidden. `totals`: margins that are not merely what is printed, added up.
    - `about`: ACRO's own status, and the exception that was asked for.
    """

    name: str
    file: Path
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[Place, int | None]
    totals: Mapping[Place, int]
    base: int | None
    about: str

    @property
    def variables(self) -> tuple[str, ...]:
        """All variables, in the order of a place."""
        return self.rows + self.columns

    @property
    def mechanism(self) -> str:
        """How its counts were published."""
        return "exact" if self.base is None else f"nearest:{self.base}"

    def categories(self, variables: Iterable[str]) -> set[Place]:
        """Return the categories of some of its variables that it has."""
        at = [self.variables.index(variable) for variable in variables]
        return {tuple(place[i] for i in at) for place in self.cells}


@dataclass(frozen=True)
class AcroFolder:
    """What is in a folder: tables of counts, the limit below which counts are hidden, and what is not such a table."""

    tables: tuple[AcroTable, ...]
    threshold: int
    others: Mapping[str, str]

    def releases(self) -> list[Release]:
        """Return every table as it is laid out, with a total that nobody prints: so it has sums, which tell nothing."""
        return [_matrix(table, self.threshold) for table in self.tables]

    def together(self) -> Release:
        """Return all tables as one, with the margins that they share, the number of records if nothing else."""
        shown = {
            _named(table, place): _shown(count, self.threshold)
            for table in self.tables
            for place, count in table.cells.items()
        }
        sums = [*self._totals(shown), *self._links(shown)]
        rounded = [
            {"mechanism": table.mechanism, "where": {"cell": [_named(table, place) for place in table.cells]}}
            for table in self.tables
            if table.base is not None
        ]
        release = cells_and_sums(shown, sums, TOGETHER, mechanisms=rounded)
        # Nobody says that two tables count the same records: what follows from a margin that they share is conditional.
        shared = {at for at, column in enumerate(release.columns) if column.key.endswith(NOT_PRINTED)}
        proposals = [replace(sum_, origin=LABELS) if sum_.total in shared else sum_ for sum_ in release.proposals]
        return replace(release, proposals=tuple(proposals))

    def _totals(self, shown: dict[str, str]) -> Iterator[tuple[str, list[str]]]:
        """Add true margins to what is shown, and yield what they are the sums of."""
        for table in self.tables:
            for place, count in table.totals.items():
                shown[_named(table, place)] = str(count)
                yield _named(table, place), [_named(table, cell) for cell in table.cells if _within(cell, place)]

    def _links(self, shown: dict[str, str]) -> Iterator[tuple[str, list[str]]]:
        """Yield the margins that tables share: nobody prints them, but every table with their variables adds up to them."""
        pairs = combinations(self.tables, 2)
        shared = {frozenset[str](), *(frozenset(left.variables) & frozenset(right.variables) for left, right in pairs)}
        for variables in sorted(shared, key=lambda names: (len(names), sorted(names))):
            names = sorted(variables)
            having = [table for table in self.tables if variables <= set(table.variables)]
            for place in sorted(set.intersection(*(table.categories(names) for table in having))):
                total = f"{' / '.join(place) or ALL} {NOT_PRINTED}"
                shown[total] = UNPRINTED
                for table in having:
                    at = [table.variables.index(name) for name in names]
                    yield total, [_named(table, cell) for cell in table.cells if tuple(cell[i] for i in at) == place]

    def unlike(self) -> Iterator[str]:
        """Yield which tables have other categories of a variable that they share: there, they are not compared."""
        for table, other in combinations(self.tables, 2):
            for variable in sorted({*table.variables} & {*other.variables}):
                apart = table.categories([variable]) ^ other.categories([variable])
                if apart:
                    named = ", ".join(sorted(category for (category,) in apart))
                    yield f"{table.name} and {other.name} have other categories of {variable}: {named}"


def is_acro(folder: Path) -> bool:
    """Whether a folder was finalised by ACRO."""
    return any(os.path.isfile(folder / name) for name in LISTS)


def read_acro(folder: Path) -> AcroFolder:
    """Read a folder that ACRO finalised."""
    listed = next(folder / name for name in LISTS if (folder / name).is_file())
    try:
        outputs = json.loads(small_text(listed, "a list of outputs", MOST))["results"]
        config = (
            json.loads(small_text(folder / "config.json", "a configuration")) if (folder / "config.json").is_file() else {}
        )
        threshold, base = int(config.get("safe_threshold", 10)), int(config.get("safe_round_base", 5))
        tables, others = [], {}
        for name, output in outputs.items():
            if name.endswith(OWN_SUMMARY):
                continue
            for number, file in enumerate(output["files"]):
                called = name if len(output["files"]) == 1 else f"{name}, {number + 1}"
                path = folder / Path(file["name"]).name
                why = _not_counts(output, path)
                if not why:
                    table = _table(called, output, path, base)
                    why = "its counts are not whole numbers" if table is None else ""
                if why:
                    others[called] = f"{path.name}: {why}"
                elif table is not None:
                    tables.append(table)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, csv.Error) as problem:
        raise InputError(f"{listed} is not a list of outputs as ACRO writes it ({problem!r}).") from problem
    if not tables:
        raise InputError(f"{folder} holds no table of counts, so that there is nothing to decide on.")
    return AcroFolder(tuple(tables), threshold, others)


def _not_counts(output: Mapping[str, Any], path: Path) -> str:
    if output["type"] != "table" or path.suffix != ".csv":
        return f"not a table but {output['type']}" if output["type"] != "table" else "not a CSV file"
    dependent = output.get("fair", {}).get("dependent", "unknown")
    return "" if dependent in ("unknown", None, "") else f"a table of {dependent}, not of counts"


def _table(name: str, output: Mapping[str, Any], path: Path, base: int) -> AcroTable | None:
    """Read a table as pandas writes it: rows of headings, then one row per category."""
    lines = [line for line in csv.reader(io.StringIO(small_text(path, "an output", MOST), newline="")) if line]
    variables = [str(variable) for variable in output.get("fair", {}).get("independent", ())]
    several = 1 + next((at for at, line in enumerate(lines[1:6], 1) if line[0] and not any(line[1:])), 0)
    rows: Place
    if several > 1:  # one row of headings per variable, then the names of those down the side
        heads, rows, width = lines[: several - 1], (lines[several - 1][0],), 1
        columns = tuple(line[0] for line in heads)
    else:
        width = max(1, sum(cell in variables for cell in lines[0]))
        heads, rows = lines[:1], tuple(lines[0][:width])
        columns = tuple(variable for variable in variables if variable not in rows)[:1] or (f"columns of {name}",)
    cells: dict[Place, int | None] = {}
    for line in lines[several:]:
        for at in range(width, len(line)):
            count = float(line[at]) if line[at] else None
            if count is not None and (count < 0 or count != int(count)):
                return None
            place = (*line[:width], *(head[at] for head in heads))
            cells[place] = None if count is None else int(count)
    inner = {place: count for place, count in cells.items() if ALL not in place}
    margins = {place: count for place, count in cells.items() if ALL in place and count is not None}
    rounded = output.get("properties", {}).get("mitigation") == "round"
    true = {} if rounded else {place: count for place, count in margins.items() if count != _added(inner, place)}
    about = f"ACRO: {output['status']}" + (f"; exception: {output['exception']}" if output.get("exception") else "")
    return AcroTable(name, path, rows, columns, inner, true, base if rounded else None, about)


def _added(cells: Mapping[Place, int | None], margin: Place) -> int:
    return sum(count or 0 for place, count in cells.items() if _within(place, margin))


def _within(place: Place, margin: Place) -> bool:
    return all(category in (ALL, actual) for category, actual in zip(margin, place, strict=True))


def _named(table: AcroTable, place: Place) -> str:
    return f"{table.name}: {' / '.join(place)}"


def _shown(count: int | None, threshold: int) -> str:
    return f"<{threshold}" if count is None else str(count)


def _matrix(table: AcroTable, threshold: int) -> Release:
    """Return a table as it is laid out, its totals across the top included: printed ones, or one that nobody prints."""
    rows, corner = len(table.rows), " / ".join(table.rows)
    down = list(dict.fromkeys(place[:rows] for place in table.cells))
    across = list(dict.fromkeys(place[rows:] for place in table.cells))
    below = any(place[:rows] == (ALL,) * rows for place in table.totals)
    shown = {place: _shown(count, threshold) for place, count in table.cells.items()}
    shown |= {place + (ALL,) * len(table.columns): UNPRINTED for place in down}
    shown |= {(ALL,) * rows + place: UNPRINTED for place in across if below}
    shown |= {place: str(count) for place, count in table.totals.items()}
    total = ALL if table.totals else f"{ALL} {NOT_PRINTED}"

    def text(codes: Place, whole: str = ALL) -> str:
        return whole if set(codes) == {ALL} else " / ".join(codes)

    cells = [(text(place[:rows]), text(place[rows:], total), count) for place, count in shown.items()]
    axes: dict[str, Any] = {CATEGORY: {"sums": [{"total": total, "parts": [text(place) for place in across]}]}}
    axes[corner] = {"sums": [{"total": ALL, "parts": [text(place) for place in down]}]} if below else {}
    frame = pl.DataFrame(cells, schema=[corner, CATEGORY, COUNT], orient="row")
    given = {"value": COUNT, "mechanism": table.mechanism, "areas": [corner], "axes": axes}
    return replace(from_frame(frame, given), source=table.file.name)


LARGEST = 1 << 27
HIDDEN = frozenset("umx")
_TERM = re.compile(r"(\d+)\s*\(\s*([+-]?\d+)\s*\)")


def is_jj(path: Path) -> bool:
    """Whether a file is called like a table for a solver."""
    return path.suffix.lower() == ".jj"


def read_jj(path: Path) -> Release:
    """Read a table in the form of a solver, as a release of one row. Raises `InputError` where it is not one of counts."""
    lines = [line for line in small_text(path, "a JJ file", LARGEST).splitlines() if line.strip()]
    try:
        number = int(lines[1])
        cells = dict(_cell(line) for line in lines[2 : 2 + number])
        sums = [sum_ for line in lines[3 + number : 3 + number + int(lines[2 + number])] for sum_ in _sums(line, path)]
    except (IndexError, ValueError, OverflowError) as problem:
        raise InputError(f"{path} is not a JJ file as τ-ARGUS writes it: {problem}.") from problem
    return cells_and_sums(cells, sums, path.name)


def _cell(line: str) -> tuple[str, str]:
    number, value, _cost, status, least, most, *_ = line.split()
    if status.lower() in HIDDEN:
        return number, f"{int(float(least))}-{int(float(most))}"
    if float(value) != int(float(value)) or float(value) < 0:
        raise ValueError(f"cell {number} is {value}, and a count is a whole number")
    return number, str(int(float(value)))


def _sums(line: str, path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield a sum as a total and its parts: one term has the other sign."""
    terms = _TERM.findall(line.partition(":")[2])
    for sign in (1, -1):
        totals = [number for number, coefficient in terms if int(coefficient) == -sign]
        parts = [number for number, coefficient in terms if int(coefficient) == sign]
        if len(totals) == 1 and len(parts) + 1 == len(terms) and float(line.split()[0]) == 0:
            yield totals[0], parts
            return
    raise InputError(f"{path}: “{line.strip()[:80]}” is not a total and its parts, which is all that can be used here.")
