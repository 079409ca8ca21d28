"""The account of a reading: what became of every sheet, row, column and cell of the input.

An entry for a column is about all of its cells except those that have entries of their own. Nothing is left aside in
silence: what was not understood, or not used, says so, and how a person settles it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import polars as pl

from unround.mechanisms import Exact
from unround.release import ABSENT, UNREADABLE, Entry, Release, What, told_range, why_absent
from unround.structure import Structure
from unround.tables.cells import value_columns
from unround.tables.description import Description, left_out
from unround.tables.grid import HeadedTable, letters
from unround.tables.layout import are_numbers, bare_text
from unround.tables.notes import Documented
from unround.tables.symbols import as_counts, flagged_number, plain_numbers

FEW = 6
"""Cells that are listed one by one."""
_OF_ROWS = ("about the region", "the same ", "a number of the row", "an attribute", "another name")
"""How reasons begin for which a column of numbers is left out that holds codes, not figures."""
MOST_ROWS = 200_000
"""Rows up to which cells are looked at one by one."""


def account_of(
    table: HeadedTable,
    description: Description,
    release: Release,
    notes: Documented | None = None,
    elsewhere: Iterable[Entry] = (),
) -> tuple[Entry, ...]:
    """Return the account of a table that was read as a description says, and of what stands elsewhere in its file."""
    notes = notes or Documented()
    entries = [*elsewhere, *description.open, *left_out(description)]
    values = _values(table, description)
    entries += _columns(table, description, release, values)
    entries += _cells(table, description, values, notes)
    for rule in description.rules:
        if description.is_of_cells(rule):
            place = ", ".join(" or ".join(codes[:FEW]) for codes in rule.where.values())
            entries.append(Entry(f"cells of {place}", What.EXACT, "printed unrounded, in a column of rounded counts"))
    return tuple(entries)


def _values(table: HeadedTable, description: Description) -> dict[int, str]:
    """Return the columns that hold counts or figures, with the codes that they have by the header."""
    names = table.names
    if not description.wide:
        return {names.index(description.value): ""} if description.value in names else {}
    return {at: names[at] for at in value_columns(table, description)}


def _keys(table: HeadedTable, description: Description, release: Release, at: int) -> tuple[str, ...]:
    """Return the columns of the release that a column of the table holds."""
    if not description.wide:
        return ()
    codes = {axis.name: table.header[axis.header - 1][at] for axis in description.axes if axis.header is not None}
    codes |= description.counts.get(table.names[at], {})
    places = [(place, codes[axis]) for place, axis in enumerate(release.axes) if axis in codes]
    keys = [column.key for column in release.columns if all(column.codes[place] == code for place, code in places)]
    figures = {"/".join(codes[axis] for axis in release.axes if axis in codes)} & {figure.name for figure in release.figures}
    return tuple(figures or keys) if places else ()


def _columns(table: HeadedTable, description: Description, release: Release, values: Mapping[int, str]) -> Iterable[Entry]:
    """Return an entry for every column."""
    names, figures = table.names, {figure.name for figure in release.figures}
    axes = {axis.column: axis for axis in description.axes if axis.header is None}
    labels = {name for axis in description.axes for name in (axis.label, axis.level, axis.parent) if name is not None}
    groups = {axis.within for axis in description.axes}
    hidden = set(table.marks.hidden_columns)
    for at, name in enumerate(names):
        place = f"column {letters(at)}: {name}"
        also = "; hidden in the spreadsheet, and read all the same" if at in hidden else ""
        cells = table.column(at)
        if at in values:
            keys = _keys(table, description, release, at)
            if keys and set(keys) <= figures:
                yield Entry(place, What.FIGURE, f"a figure of counts beside it{also}", True, "", keys)
            else:
                yield Entry(place, What.COUNT, f"counts{also}", True, "", keys)
        elif name in axes:
            what = What.CODE if axes[name].label is not None else What.LABEL
            yield Entry(place, what, f"tells rows apart: the axis {axes[name].name}{also}")
        elif name in groups:
            yield Entry(place, What.LABEL, f"names the group of each row{also}")
        elif name in labels:
            yield Entry(place, What.LABEL, f"names of codes{also}")
        elif name == description.status:
            yield Entry(place, What.NOTE, f"symbols beside the counts{also}")
        elif cells.is_null().all():
            yield Entry(place, What.LABEL, "empty")
        elif description.ignore.get(name) or (name not in description.ignore and not _numeric(cells)):
            because = description.ignore.get(name) or "text that tells no rows apart"
            what = What.LABEL if not _numeric(cells) else What.CODE if because.startswith(_OF_ROWS) else What.SILENT
            yield Entry(place, what, f"left out: {because}{also}", False)
        else:
            settle = f'[[ignore]] column = "{name}", because = "…"; or name it as an axis, or as one of the [[figures]]'
            why = "it holds numbers, and nothing says of what" if _numeric(cells) else "it should hold numbers, and does not"
            yield Entry(place, What.UNKNOWN, f"{why}{also}", False, settle)


def _numeric(cells: pl.Series) -> bool:
    if cells.dtype != pl.String:
        return cells.dtype.is_numeric()
    bare = bare_text(cells).drop_nulls()
    return bool((are_numbers(bare) | bare.str.contains("[0-9]")).sum() > len(bare) / 2)


def _cells(table: HeadedTable, description: Description, values: Mapping[int, str], notes: Documented) -> Iterable[Entry]:
    """Return entries for cells that are not plain counts: those of one text together."""
    cells_of: dict[tuple[What, str], list[str]] = {}
    settle: dict[tuple[What, str], str] = {}
    if table.cells.height > MOST_ROWS:
        yield Entry("single cells", What.COUNT, "so many rows that their cells are not listed one by one")
        return
    for at in values:
        cells = table.column(at)
        if cells.dtype != pl.String:
            continue
        bare = bare_text(plain_numbers(cells, description.thousands, description.decimal))
        odd = (~are_numbers(bare)).fill_null(True) if cells.null_count() else ~are_numbers(bare)
        for row in odd.arg_true():
            kind, why, how = _cell(bare[row] or "", description, notes)
            cells_of.setdefault((kind, why), []).append(f"{letters(at)}{table.number(row)}")
            settle[kind, why] = how
    for (kind, why), places in cells_of.items():
        few = ", ".join(places[:FEW]) + (f" and {len(places) - FEW:,} more" if len(places) > FEW else "")
        place = f"cell {few}" if len(places) == 1 else f"cells {few}"
        yield Entry(place, kind, why, kind is not What.UNKNOWN, settle[kind, why])


def _cell(text: str, description: Description, notes: Documented) -> tuple[What, str, str]:
    """Return what a cell that is not a plain number is, why, and how to settle it."""
    if not text:
        meaning = why_absent(description.missing)
        return What.SUPPRESSED, f"empty: {meaning}; it can be any count", ""
    code = description.symbols.get(text, int(as_counts(pl.Series([text]))[0][0]))
    documented = "; so a note says" if text in notes.signs else ""
    flagged = None if text in description.symbols else flagged_number(text)
    if code > ABSENT and flagged is not None:
        return What.COUNT, f"numbers with the flag {flagged.flag}", ""
    if code > ABSENT:
        return What.COUNT, f"{text} stands for {code}{documented}", ""
    if (ends := told_range(code)) is not None:
        return What.SUPPRESSED, f"{text}: from {ends[0]} to {ends[1]}{documented}", ""
    if code != UNREADABLE:
        return What.SUPPRESSED, f"{text}: {why_absent(code)}{documented}; it can be any count", ""
    said = (
        "a formula whose value is not in the file"
        if text == "=?"
        else f"{text[:40]!r} is neither a number nor a known symbol"
    )
    remedy = (
        "open the file in a spreadsheet and save it" if text == "=?" else f'symbols = {{ "{text[:20]}" = "suppressed" }}'
    )
    return What.UNKNOWN, said, remedy


def account(release: Release, structure: Structure | None = None) -> tuple[Entry, ...]:
    """Return the account of a release, with what the counts say of its columns where that is known.

    A format that keeps no account of its own has one entry per table, and one per reason for what was left out.
    """
    entries = release.account or tuple(_generic(release))
    return entries if structure is None else tuple(_judged(entry, release, structure) for entry in entries)


def _generic(release: Release) -> Iterable[Entry]:
    tables: dict[str, list[str]] = {}
    for column in release.columns:
        if column.is_in_file:
            tables.setdefault(column.block, []).append(column.key)
    for name, keys in tables.items():
        yield Entry(
            f"table {name}" if name else "the table", What.COUNT, f"{_columns_of(keys)} of counts", True, "", tuple(keys)
        )
    for figure in release.figures:
        yield Entry(f"column {figure.name}", What.FIGURE, "a figure of counts beside it", True, "", (figure.name,))
    for why, labels in release.left_out.items():
        yield Entry(_columns_of(labels), What.SILENT, f"left out: {why}", False)


def _columns_of(those: Sequence[str]) -> str:
    return "1 column" if len(those) == 1 else f"{len(those):,} columns"


def _judged(entry: Entry, release: Release, structure: Structure) -> Entry:
    """Return an entry with what the counts say: exact or rounded, used or not."""
    if entry.what is What.FIGURE:
        verdicts = [verdict for verdict in structure.figures if verdict.figure.name in entry.keys]
        if any(verdict.is_evidence for verdict in verdicts):
            return replace(entry, why=f"{entry.why}: {verdicts[0].why}")
        if verdicts and all(verdict.verdict == "recomputable" for verdict in verdicts):
            return replace(entry, what=What.SILENT, why=verdicts[0].why, used=False)
        why = verdicts[0].why if verdicts else "nothing says what it is of"
        settle = (
            f'[[figures]] column = "{entry.keys[0]}", kind = "rate", numerator = "…", universe = "…"' if entry.keys else ""
        )
        return replace(entry, what=What.UNKNOWN, why=why, used=False, settle=settle)
    if entry.what is not What.COUNT or not entry.keys:
        return entry
    index = release.index
    places = [index[key] for key in entry.keys if key in index]
    ways = dict.fromkeys(structure.mechanisms[at] for at in places)
    if None in ways:
        unknown = (evidence for evidence in structure.how if evidence.mechanism is None)
        why = next((evidence.why for evidence in unknown if set(evidence.columns) & set(places)), "")
        return replace(
            entry, why=f"how these counts were published is not known: {why}", used=False, settle="--base, or default ="
        )
    how = next((evidence for evidence in structure.how if set(evidence.columns) & set(places)), None)
    named = ", ".join(way.name for way in ways if way is not None)
    why = f"{named}; {how.basis}" if how is not None else named
    return replace(entry, what=What.EXACT if all(isinstance(way, Exact) for way in ways) else What.COUNT, why=why)
