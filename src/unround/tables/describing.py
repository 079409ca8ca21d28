"""START HERE: look at a table that nobody described, and describe it.

1. Open it, and find its header (`tidy`, `layout`).
2. Tell codes from counts (`roles`), and find the axes (`axes`).
3. Gather the sums that names suggest (`candidates`), and let the counts judge them (`verdicts`).
4. Write down what was found (`draft`), and what could not be known (`questions`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unround.errors import InputError
from unround.mechanisms import Exact, Mechanism, Rounding
from unround.mechanisms import mechanism as mechanism_of
from unround.release import ABSENT, SUPPRESSED, Counts, Entry, Release, What, told_range
from unround.shown import Shown
from unround.structure import Structure, find_structure
from unround.tables.account import account, account_of
from unround.tables.axes import AREA, OTHER, SEX, TIME, Axes, DraftAxis, find_axes
from unround.tables.cells import explained, read_headed
from unround.tables.derived import Sums, order_gives_away
from unround.tables.description import MISSING, make_description
from unround.tables.draft import Draft, axis_keys, where_it_stands, write_asides, write_open, write_protection, write_sums
from unround.tables.grid import HeadedTable, letters
from unround.tables.labels import NUMBER_WORDS, about, is_total
from unround.tables.layout import LONGEST_SIGN, bare_text
from unround.tables.notes import Documented, exact_codes, read_notes
from unround.tables.profile import kind_of
from unround.tables.roles import Roles, find_roles, moving_means, worked_out
from unround.tables.suggested import (
    AGREE,
    PERIODS,
    SuggestedProtection,
    SuggestedSum,
    base_of,
    columns_beside,
    find_candidates,
    is_whole,
    may_add_up,
    possible,
    protection,
    row_axes,
    row_sums,
    rows_may_add_up,
    tells_if_nearest,
    trusted,
    unrounded,
    verdict,
    verify,
    whole_column,
)
from unround.tables.symbols import SIGNS, as_counts, flagged_number, hidden_range, plain_numbers
from unround.tables.tidy import FEW, Ask, Opened, Question, entries_around, open_table, take_default

DESCRIBED = "described"
"""The format of a table that was described on the way."""
MEANINGS = ("suppressed", "not available", "not applicable", "unreliable", "0")
_MEANT = {code: word for word, code in MISSING.items()}
_DOUBTFUL = {"-": "not available", "–": "not available", ".": "suppressed", ":": "not available", "#": "suppressed"}
"""Signs that agencies use for different things, and what is assumed if nobody says."""


@dataclass(frozen=True, slots=True)
class FirstLook:
    """What is known of a table before its sums are looked for: its counts, their base, and which of them are exact."""

    counts: Counts
    base: int
    rules: tuple[Mapping[str, Any], ...]
    axes: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]

    def along(self, axis: DraftAxis) -> Counts:
        """Return the counts with a column for every code of an axis: areas below areas, for all codes of the other axes."""
        codes = [code for code in axis.codes if code not in axis.figures]
        place = self.axes.index(axis.name) if axis.name in self.axes else 0
        groups: dict[tuple[str, ...], dict[str, int]] = {}
        for at, column in enumerate(self.columns):
            groups.setdefault(column[:place] + column[place + 1 :], {})[column[place]] = at
        full = [[group[code] for code in codes] for group in groups.values() if all(code in group for code in codes)]
        return np.concatenate([self.counts[:, each] for each in full] or [self.counts[:0, :0]])


@dataclass(frozen=True, slots=True, eq=False)
class Described(Shown):
    """A table and its description.

    - `opened`: The table, and where it stood.
    - `release`: What was published, as described; how counts were published is left to the counts, unless somebody said
      it.
    - `structure`: What the counts say of it.
    - `axes`: What the codes stand for.
    - `roles`: What the columns are.
    - `verdicts`: The sums that names suggested.
    - `protection`: How counts were published.
    - `answers`: What was asked, and the answers.
    - `draft`: The description.
    - `notes`: What the notes around the table say.
    - `look`: What was known before sums were looked for.
    """

    opened: Opened
    release: Release
    structure: Structure
    axes: Axes
    roles: Roles
    verdicts: tuple[SuggestedSum, ...]
    protection: SuggestedProtection
    answers: tuple[tuple[Question, str], ...]
    draft: Draft
    notes: Documented
    look: FirstLook = field(repr=False)

    def toml(self, where: Path | None = None) -> str:
        """Return the description as a TOML file, to be kept at `where`; beside the table by default."""
        return self.draft.toml(self.opened.path, where)

    @property
    def holds_sums(self) -> bool:
        """Whether anything adds up, so that something can be inferred."""
        return bool(self.structure.sums) or any(verdict.used for verdict in self.verdicts)

    def adds_up_along(self, axis: str) -> bool:
        """Return whether a sum along an axis of columns is used, one of codes or one of columns."""
        place, columns = self.release.axes.index(axis), self.structure.columns
        changing = (columns[sum_.total].codes[place] != columns[sum_.parts[0]].codes[place] for sum_ in self.structure.sums)
        return any(verdict.used for verdict in self.verdicts if verdict.axis == axis) or any(changing)

    @property
    def down(self) -> DraftAxis | None:
        """The axis of the rows, where there is one, with a code for each of them."""
        axis = next((axis for axis in self.axes.all if [axis.name] == list(self.release.areas)), None)
        return axis if axis is not None and len(axis.codes) == len(self.look.counts) else None

    @property
    def note(self) -> str:
        """What a user of the table should know, in one sentence."""
        used = sum(verdict.used for verdict in self.verdicts)
        sums = f"{used} sums" if used != 1 else "1 sum"
        rows, axes = " and ".join(self.release.areas), self.release.axes
        columns = "as headed" if axes == ("column",) else f"by {' and '.join(axes)}"
        where = f" on sheet {self.opened.sheet!r}" if self.opened.sheet is not None else ""
        command = f": unround describe {self.opened.typed}" if self.opened.path is not None else ""
        return (
            f"This table{where} came without a description, so one was drafted: rows by {rows}, columns {columns}, {sums}. "
            f"Check that it is right{command}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        layout = self.opened.layout
        return {
            "source": self.release.source,
            "sheet": self.opened.sheet,
            "header": list(layout.header) if layout else None,
            "rows": list(layout.rows) if layout else None,
            "description": self.draft.keys,
            "axes": [
                {"name": axis.name, "about": axis.about, "codes": len(axis.codes), "rows": axis.name in self.release.areas}
                for axis in self.axes.all
            ],
            "sums": [
                {
                    "axis": verdict.axis,
                    "total": verdict.total,
                    "parts": list(verdict.parts),
                    "suggested_by": verdict.suggested_by,
                    "used": verdict.used,
                    "why": verdict.why,
                }
                for verdict in self.verdicts
            ],
            "mechanism": self.protection.default.name if self.protection.default else None,
            "mechanism_why": self.protection.why,
            "account": [entry.to_json() for entry in account(self.release, self.structure)],
            "questions": [{"about": asked.key, "question": asked.text, "answer": answer} for asked, answer in self.answers],
            "notes": list(self.release.notes),
        }


def describe(
    source: object,
    *,
    sheet: str | None = None,
    header: Sequence[int] | None = None,
    columns: str | None = None,
    value: str | None = None,
    mechanism: str | None = None,
    exact: Sequence[str] = (),
    ask: Ask = take_default,
) -> Described:
    """Look at a file or frame, and describe it; `api.describe` says what can be given."""
    answers: dict[str, tuple[Question, str]] = {}

    def asking(question: Question) -> str:
        if question.key not in answers:  # nobody is asked twice
            answers[question.key] = question, ask(question) or question.default
        return answers[question.key][1]

    opened = open_table(source, sheet, None if header is None else tuple(header), asking, columns)
    described = _described(opened, value, mechanism, asking, exact)
    if value is None and (several := _several_values(described, opened)):
        question = Question(
            "value", "Several columns hold numbers that do not add up. Which one holds the counts?", several, ""
        )
        chosen = asking(question)
        if not chosen:
            raise InputError(
                f"{described.release.source} has {len(several)} columns of values ({', '.join(several)}), and nothing says "
                f"which of them holds the counts. Name it: unround describe {opened.typed} --value {_quoted(several[0])} "
                f"-o {_toml(opened)}; then run: unround audit {_toml(opened)} -o audit"
            )
        described = _described(opened, chosen, mechanism, asking, exact)
    return replace(described, answers=tuple(answers.values()))


def _toml(opened: Opened) -> str:
    """Return what to call the description."""
    return "draft.toml" if opened.path is None else opened.path.with_suffix(".toml").name


def _quoted(name: str) -> str:
    return name if name.isidentifier() else f'"{name}"'


def _several_values(described: Described, opened: Opened) -> tuple[str, ...]:
    """Return the columns of values if their names make no axis: rows have totals, and nothing adds up across columns."""
    across = described.axes.across
    if len(across) != 1 or described.axes.counts or across[0].about != OTHER:
        return ()
    axis = across[0].name
    if not any(judged.axis not in (axis, *described.release.areas) for judged in described.verdicts):
        return ()
    if axis not in described.release.axes or described.adds_up_along(axis):
        return ()  # the header names areas, or whatever the same table is published for; or what it names adds up
    return tuple(opened.table.names[at] for at in described.roles.values)


def _described(
    opened: Opened,
    value: str | None,
    mechanism: str | None,
    ask: Ask,
    exact: Sequence[str] = (),
    unknown: Mapping[int, str] | None = None,
) -> Described:
    """Describe a table that is open; `unknown` are columns of numbers that turned out to be something else than counts."""
    table = opened.table
    roles = find_roles(table, value, unknown)
    axes = find_axes(table, roles, opened.layout.heading if opened.layout else "")
    if axes.counts and roles.rates:  # columns that are listed one by one hold counts
        roles = replace(roles, unknown={**roles.unknown, **dict.fromkeys(roles.rates, "a rate")}, rates={})
    if not axes.all:
        raise InputError(
            f"{table.source} has a column of numbers and nothing that says what they count; add a column of names for its "
            f"rows, then run: unround describe {opened.typed}"
        )
    notes = read_notes(opened.notes, [*roles.writing.signs, *_flags(table, roles), *_sentinels(table, roles)])
    draft = Draft(where_it_stands(opened, axes, roles))
    _signs(draft, roles, opened, notes, ask)
    candidates = {axis.name: find_candidates(axis) for axis in axes.all}
    rows = _one_axis_down(row_axes(axes.all, candidates), axes, table)
    candidates = {name: [] if name in rows else suggested for name, suggested in candidates.items()}
    draft.keys["areas"] = rows
    draft.keys["axes"] = {axis.name: axis_keys(axis, opened.headings) for axis in axes.all}
    draft.remarks |= {("axes", axis.name): "an empty cell repeats the one above" for axis in axes.rows if axis.fill}
    known = _look(opened, draft, rows, notes, mechanism)
    if known.rules:
        draft.keys["exact"] = [dict(rule) for rule in known.rules]
    by_name = {axis.name: axis for axis in axes.all}
    if len(rows) == 1:
        candidates[rows[0]] = _areas(by_name[rows[0]], known)
    across = [axis for axis in axes.all if axis.name not in rows]
    for axis in across:
        if not candidates[axis.name] or all(
            candidate.suggested_by.startswith("a total and all") for candidate in candidates[axis.name]
        ):
            candidates[axis.name] += [
                candidate
                for candidate in whole_column(axis, known.along(axis), known.base)
                if candidate.parts not in [other.parts for other in candidates[axis.name]]
            ]
        candidates[axis.name] += columns_beside(axis, known.along(axis), known.base, candidates[axis.name])
    structure, verdicts, release = _verified(opened, draft, candidates, rows)
    if len(rows) == 1:
        verdicts += [verdict(candidate, by_name[rows[0]], known.counts, known.base) for candidate in candidates[rows[0]]]
    verdicts = [_complete(candidate, by_name[candidate.axis], notes) for candidate in verdicts]
    if unknown is None and (odd := _odd(roles, axes, opened, known, structure, verdicts, exact)):
        return _described(opened, value, mechanism, ask, exact, odd)
    how = protection(release, structure)
    if mechanism is not None:
        how = how.as_said(mechanism_of(mechanism))
    elif notes.mechanism is not None and _fits(structure, notes.mechanism, known):
        how = replace(how.as_said(notes.mechanism), note=notes.note, why=f"a note says so: {notes.note}")
    noted = _noted_exact(axes, release, verdicts, notes)
    write_protection(draft, how, noted)
    order = {axis.name: axis.codes for axis in axes.all}
    verdicts.sort(key=lambda candidate: (list(order).index(candidate.axis), order[candidate.axis].index(candidate.total)))
    write_sums(draft, axes, verdicts)
    _write_figures(draft, axes, roles, opened, verdicts)
    write_asides(draft, axes, verdicts, structure, roles)
    made = Described(opened, release, structure, axes, roles, tuple(verdicts), how, (), draft, notes, known)
    _settle_ranks(made)
    return _finished(made, mechanism, noted)


MOST_THERE = 0.8
"""The share of all combinations of areas and years, say, that has to be there for that."""
MOST_ACROSS = 2_000
"""Columns that a table may get by putting years and other axes across, so that sums over its areas are looked for."""


def _one_axis_down(rows: list[str], axes: Axes, table: HeadedTable) -> list[str]:
    """Leave one axis of rows, where most combinations are there: only then are its rows added up, year by year."""
    by_name = {axis.name: axis for axis in axes.all}
    down = [by_name[name].column for name in rows if by_name[name].column is not None]
    places = [str(table.names.index(name)) for name in down if name in table.names]
    full = math.prod(len(by_name[name].codes) for name in rows if by_name[name].column is not None)
    if (
        len(rows) < 2
        or len(places) < len(down)
        or (places and table.cells.select(pl.col(places).forward_fill()).n_unique() < MOST_THERE * full)
    ):
        return rows
    kept = max((by_name[name] for name in rows), key=lambda axis: (axis.about == AREA, axis.about != TIME, len(axis.codes)))
    across = math.prod(len(axis.codes) for axis in axes.all if axis is not kept)
    return [kept.name] if across <= MOST_ACROSS else rows


def _complete(verdict: SuggestedSum, axis: DraftAxis, notes: Documented) -> SuggestedSum:
    """Return a verdict as notes have it, where they say that somebody is not shown or counted twice."""
    of_sex = re.search(r"\b(?:gender|sex)", notes.incomplete, re.IGNORECASE)
    if not notes.incomplete or axis.about == AREA or (of_sex and axis.about not in (SEX, OTHER)):
        return verdict
    return replace(verdict, used=False, why=f"a note says that it is not complete: {notes.incomplete}")


def _odd(
    roles: Roles,
    axes: Axes,
    opened: Opened,
    known: FirstLook,
    structure: Structure,
    verdicts: Sequence[SuggestedSum],
    exact: Sequence[str],
) -> dict[int, str]:
    """Return columns that are not rounded as others are, and add up with none: nothing says that they hold counts."""
    if known.base < 2 or len(axes.across) != 1 or axes.across[0].header is None or axes.counts:
        return {}
    axis = axes.across[0]
    summed = {
        code for judged in verdicts if judged.used and judged.axis == axis.name for code in (judged.total, *judged.parts)
    }
    summed |= {
        code for judged in structure.sums for at in (judged.total, *judged.parts) for code in structure.columns[at].codes
    }
    header = opened.table.header[(axis.header or 1) - 1]
    odd = {}
    for at in roles.values:
        held = as_counts(
            plain_numbers(
                opened.table.column(at).cast(pl.String).fill_null(""), roles.writing.thousands, roles.writing.decimal
            )
        )[0]
        numbers = held[(held > ABSENT) & (held != 0)]
        if (
            header[at] not in (*summed, *exact)
            and numbers.size
            and np.count_nonzero(numbers % known.base) > numbers.size / 2
        ):
            odd[at] = "its numbers are not rounded as the others are, and add up with none"
    return odd if len(odd) < len(roles.values) - 1 else {}


def _finished(made: Described, mechanism: str | None, noted: Collection[str]) -> Described:
    """Read the table for good: mechanisms are declared only if a person or a note says them."""
    opened, draft, notes = made.opened, made.draft, made.notes
    open_ended = {} if mechanism is not None else {"default": None, "mechanisms": None, "exact": list(made.look.rules)}
    keys = {key: value for key, value in {**draft.keys, **open_ended}.items() if value is not None}
    form = DESCRIBED if mechanism is None else "frame" if opened.path is None else "tidy"
    final = _release(opened, keys, form)
    if mechanism is None:
        final = _as_noted(final, made, noted)
    if made.protection.note or final.figures:
        made = replace(made, structure=find_structure(final))
    final = trusted(final, made.structure)
    entries = [*entries_around(opened, notes), *_contradicted(made), *_without_sum(made)]
    entries += [*_telling(made), *_summaries(made)]
    if mechanism is None and not made.protection.note:
        entries += _at_random(made)
    entries = write_open(draft, entries)
    description = make_description(draft.keys, where="the description", folder=_folder(opened))
    full_account = account_of(opened.table, description, final, notes, entries)
    made = replace(made, release=replace(final, account=full_account))
    final.notes.insert(0, made.note)
    return replace(made, release=replace(made.release, obstacle=_obstacle(made), sumless=_sumless(made)))


def _telling(made: Described) -> list[Entry]:
    """Return an entry for every column that is worked out from counts, and tells what is hidden."""
    table, entries = made.opened.table, []
    for at, way in made.roles.ways.items():
        if way.telling:
            rows = ", ".join(str(table.number(row)) for row in way.telling[:FEW]) + (" …" if len(way.telling) > FEW else "")
            why = f"it is {way.how}, which tells, or nearly tells, what is not printed there"
            place = f"column {letters(at)}: {table.names[at]}, row{'s' if len(way.telling) > 1 else ''} {rows}"
            entries.append(Entry(place, What.UNKNOWN, why, False, "leave it out in these rows, too"))
    for at, row in moving_means(table, made.roles):
        why = f"it is a moving mean of counts beside it, and one of them is hidden: row {table.number(row)}"
        place = f"column {letters(at)}: {table.names[at]}"
        entries.append(Entry(place, What.UNKNOWN, why, False, "leave it out in the rows around, too"))
    return entries


def _folder(opened: Opened) -> Path | None:
    return opened.path.parent if opened.path is not None else None


def _flags(table: HeadedTable, roles: Roles) -> list[str]:
    """Return the flags beside numbers, which notes may explain."""
    texts = {text for at in roles.values if table.column(at).dtype == pl.String for text in table.column(at).drop_nulls()}
    return sorted({flagged.flag for text in texts if (flagged := flagged_number(text)) is not None})


_SENTINEL = r"^(?:-[0-9]{1,4}|9{2,7}|8{2,7}|7{2,7})$"


def _sentinels(table: HeadedTable, roles: Roles) -> list[str]:
    """Return numbers among the counts that may stand for something else, such as -9 and 9999, if a note says so."""
    cells = [bare_text(table.column(at)).drop_nulls() for at in roles.values]
    return sorted({text for column in cells for text in column.filter(column.str.contains(_SENTINEL))})


def _look(opened: Opened, draft: Draft, rows: Sequence[str], notes: Documented, mechanism: str | None) -> FirstLook:
    """Read the counts before anything is known of their sums, and find what stands unrounded among rounded ones."""
    release = _release(opened, draft.keys)
    blocks = list(release.blocks())
    counts = np.concatenate([block.counts for block in blocks])
    how = mechanism_of(mechanism) if mechanism is not None else notes.mechanism
    base = base_of(how, counts)
    exact_rows, cells = unrounded(counts, base)
    rules: list[Mapping[str, Any]] = []
    if len(rows) == 1:
        axis = release.areas[0]
        codes = [code for block in blocks for code in block.areas[axis].to_list()]
        if exact_rows:
            rules.append({rows[0]: [codes[at] for at in exact_rows]})
        for row, column in cells:
            rules.append({rows[0]: codes[row], **dict(zip(release.axes, release.columns[column].codes, strict=True))})
    columns = tuple(column.codes for column in release.columns)
    hidden = [code for code in np.unique(counts) if code == SUPPRESSED or told_range(int(code)) is not None]
    empty = np.flatnonzero((counts <= ABSENT).all(axis=0) & np.isin(counts, hidden).any(axis=0))
    rules += [dict(zip(release.axes, columns[at], strict=True)) for at in empty]  # nothing there was rounded
    return FirstLook(counts, base, tuple(rules), release.axes, columns)


def _areas(axis: DraftAxis, known: FirstLook) -> list[SuggestedSum]:
    """Return the sums of areas: by codes that begin alike, or by indentation, names and counts."""
    by_codes = [
        candidate
        for candidate in find_candidates(axis)
        if candidate.suggested_by.startswith(("codes", "a total and its top", PERIODS))
    ]
    return by_codes or row_sums(axis, known.counts, known.base)


def _fits(structure: Structure, how: Mechanism, known: FirstLook) -> bool:
    """Return whether the counts can have been published as a note says: those that are rounded are so to its base."""
    base = getattr(how, "base", 1)
    kinds = structure.by_codes
    rounded = [at for at, codes in enumerate(known.columns) if not isinstance(kinds.get(codes), Exact | None)]
    if not rounded or any(getattr(kinds[known.columns[at]], "base", base) % base == 0 for at in rounded):
        return True
    counts = known.counts[:, rounded]
    return bool((counts[counts > ABSENT] % base == 0).mean() >= AGREE)


def _noted_exact(axes: Axes, release: Release, verdicts: Sequence[SuggestedSum], notes: Documented) -> set[str]:
    """Return the codes of the columns whose counts are not rounded, as a note says."""
    totals = {verdict.total for verdict in verdicts if verdict.used}
    names = [code for axis in axes.all if axis.name in release.axes for code in axis.codes]
    return set(exact_codes(notes.exact, dict.fromkeys(names), [code for code in names if code in totals]))


def _as_noted(release: Release, made: Described, exact: Collection[str]) -> Release:
    """Declare what notes say of columns: how they were rounded, and which are exact; others are left to the counts."""
    if not made.protection.note or made.notes.mechanism is None:
        return release
    columns, kinds = [], made.structure.by_codes
    for column in release.columns:
        how = kinds.get(column.codes)
        if set(exact) & set(column.codes) and (how is None or isinstance(how, Exact)):
            column = replace(column, mechanism=Exact(), basis="note")
        else:
            column = replace(column, documented=(made.notes.mechanism,), basis="note")
        columns.append(column)
    return replace(release, columns=tuple(columns))


def _contradicted(made: Described) -> list[Entry]:
    """Return the entry of a note that the counts contradict."""
    if made.notes.mechanism is None or made.protection.note or made.protection.said:
        return []
    said = f"a note says: {made.notes.note} The counts do not look so ({made.protection.why})"
    return [Entry("notes", What.UNKNOWN, said, False, "--base, or default = in the description")]


def _at_random(made: Described) -> list[Entry]:
    """Return the entry of a rounding that is inferred, where it may as well be conventional and would then tell more."""
    bases = _bases(made)
    base = max(bases, default=0)
    if base < 2 or not tells_if_nearest(made.look.counts, bases, *_sums(made)):
        return []
    why = f"counts are multiples of {base}, and nothing says whether they were rounded at random or to the nearest {base}"
    settle = f"--base {base} if at random, --mechanism nearest:{base} if to the nearest"
    return [Entry("rounding", What.UNKNOWN, f"{why}; if to the nearest, some true counts follow", False, settle)]


def _bases(made: Described) -> list[int]:
    """Return the base of every column of random rounding, 1 where counts are exact, 0 where nothing is known."""
    kinds = [made.structure.by_codes.get(codes) for codes in made.look.columns]
    return [how.base if isinstance(how, Rounding) else 1 if isinstance(how, Exact) else 0 for how in kinds]


def _sums(made: Described) -> tuple[Sums, Sums]:
    """Return the sums of columns, and those of rows, each as the place of a total and those of its parts."""
    at = {codes: place for place, codes in enumerate(made.look.columns)}
    codes = [column.codes for column in made.structure.columns]
    sums = [(at[codes[judged.total]], [at[codes[part]] for part in judged.parts]) for judged in made.structure.sums]
    if (axis := made.down) is None:
        return sums, []
    rows = {code: place for place, code in enumerate(axis.codes)}
    areas = [judged for judged in made.verdicts if judged.used and judged.axis == axis.name]
    return sums, [(rows[judged.total], [rows[part] for part in judged.parts]) for judged in areas]


def _settle_ranks(made: Described) -> None:
    """Say of ranks that give no count away that they may be left out; others stay open."""
    table = made.opened.table
    ranked = [at for at in made.roles.unknown if about(table.names[at], "ranks")]
    names = [axis.name for axis in made.axes.rows]
    across = names == list(made.release.axes)  # what stands in rows of the sheet are the columns of the release
    if not ranked or (names != list(made.release.areas) and not across):
        return
    sums, of_rows = _sums(made)
    sums, of_rows = (of_rows, sums) if across else (sums, of_rows)
    base = np.maximum(_bases(made), 1)  # what is not known is taken for exact, which tells most
    for at in ranked:
        ranks = bare_text(table.column(at)).cast(pl.Int64, strict=False).to_list()
        low, high = possible(made.look.counts, base - 1, base - 1, made.look.counts > ABSENT)
        if across:
            low, high = low.T.copy(), high.T.copy()
        if len(ranks) == len(low) and not order_gives_away(ranks, low, high, sums, of_rows):
            rule = next(rule for rule in made.draft.keys["ignore"] if rule["column"] == table.names[at])
            rule["because"] = "ranks: the order of the rows gives none of their counts away"


def _without_sum(made: Described) -> list[Entry]:
    """Return an entry for every axis that may well have a sum, but none is known: what it tells is not used."""
    if not made.holds_sums:
        return _idle_totals(made)  # the rest is asked about the table as a whole
    entries = []
    for axis in made.axes.all:
        tried = [judged for judged in made.verdicts if judged.axis == axis.name]
        if axis.name not in made.look.axes or (made.notes.incomplete and tried) or made.adds_up_along(axis.name):
            continue
        if not may_add_up(axis, made.look.along(axis), made.look.base):
            continue
        few = ", ".join(axis.codes[:4]) + (" …" if len(axis.codes) > 4 else "")
        refused = f"; {tried[0].shown} {tried[0].why}" if tried else ""
        why = f"which of its categories ({few}) add up is not known{refused}"
        settle = f'under [axes.{axis.name}] of a description: sums = [{{ total = "…", parts = ["…", "…"] }}]'
        entries.append(Entry(f"axis {axis.name}", What.UNKNOWN, why, False, settle))
    return entries + _idle_totals(made)


_SUMMARY = re.compile(r"(?:min|max)(?:imum|\.)?|lowest|highest|smallest|largest|least|most|range", re.IGNORECASE)


def _summaries(made: Described) -> list[Entry]:
    """Return an entry for every row that is called an average, a least or a largest count, where counts are hidden."""
    if (made.look.counts > ABSENT).all():
        return []
    names = [code for axis in made.axes.all if axis.name in made.release.areas for code in axis.codes]
    why = "called like a figure of the other rows, where some counts are hidden: it may give them away"
    return [
        Entry(f"row {name}", What.UNKNOWN, why, False, "leave it out, or have it computed from what is printed")
        for name in names
        if _SUMMARY.fullmatch(name.strip()) or kind_of(name) in ("average", "median")
    ]


def _idle_totals(made: Described) -> list[Entry]:
    """Return an entry for every row that is called a total where it is not known what adds up to it."""
    down = [axis for axis in made.axes.all if axis.name in made.release.areas]
    heads = {(verdict.axis, verdict.total) for verdict in made.verdicts if verdict.used}
    entries = []
    for axis in down:
        whole = [code for at, code in enumerate(axis.codes) if is_whole(axis, at) and (axis.name, code) not in heads]
        if whole and len(axis.codes) > 2:
            settle = f'under [axes.{axis.name}]: sums = [{{ total = "{whole[0]}", parts = ["…", "…"] }}]'
            why = "called a total, but which rows add up to it is not known"
            entries.append(Entry(f"row {whole[0]}", What.UNKNOWN, why, False, settle))
    return entries


def _write_figures(draft: Draft, axes: Axes, roles: Roles, opened: Opened, verdicts: Sequence[SuggestedSum]) -> None:
    """Write down the rates whose counts stand beside them, each with the total that it is out of."""
    columns = [axis for axis in axes.all if axis.name not in draft.keys["areas"]]
    names, header = opened.table.names, opened.table.header
    across = columns and all(axis.header is not None for axis in columns)

    def codes(at: int) -> tuple[str, ...]:
        return tuple(header[(axis.header or 1) - 1][at] for axis in columns)

    counted = {codes(at): at for at in roles.values} if across else {}
    for at, (numerator, per) in roles.rates.items():
        universe = _universe(columns, codes(numerator), counted, verdicts) if across else None
        if universe is None:
            way = worked_out(opened.table, roles.values, [at], roles.writing).get(at)
            because = f"it tells nothing more: {way.how}" if way and not way.telling else ""
            draft.keys["ignore"] = [*draft.keys.get("ignore", []), {"column": names[at], "because": because}]
            continue
        keys = {"column": codes(at), "numerator": codes(numerator), "universe": universe}
        rate: dict[str, Any] = {key: "/".join(code) for key, code in keys.items()}
        rate = {"column": rate["column"], "kind": "rate", "numerator": rate["numerator"], "universe": rate["universe"]}
        draft.keys.setdefault("figures", []).append(rate | ({"per": per} if per != 100 else {}))


def _universe(
    columns: Sequence[DraftAxis],
    part: tuple[str, ...],
    counted: Mapping[tuple[str, ...], int],
    verdicts: Sequence[SuggestedSum],
) -> tuple[str, ...] | None:
    """Return the codes of the total that a count is a part of: by a sum that holds, or by its name."""
    for place, axis in enumerate(columns):
        totals = [
            verdict.total
            for verdict in verdicts
            if verdict.used and verdict.axis == axis.name and part[place] in verdict.parts
        ]
        totals += [code for code in axis.codes if code not in axis.figures and is_total(code, of_places=False)]
        for total in totals:
            wanted = (*part[:place], total, *part[place + 1 :])
            if total != part[place] and wanted in counted:
                return wanted
            alone = [codes for codes in counted if codes[place] == total]
            if total != part[place] and len(alone) == 1:
                return alone[0]
    return None


def _sumless(made: Described) -> str:
    """Return why no column adds up with others: a note says so of rounded counts, or the counts rule out every sum."""
    if made.holds_sums or made.protection.default is None:
        return ""
    rounded = not any(isinstance(how, Exact | None) for how in made.structure.mechanisms)
    if made.notes.incomplete and rounded and all(verdict.axis in made.look.axes for verdict in made.verdicts):
        return f"No sum holds between the columns, for a note says: {made.notes.incomplete}"
    axes = [axis for axis in made.axes.all if axis.name in made.look.axes]
    counts, single = made.look.counts, [axis for axis in made.axes.all if len(axis.codes) == made.look.counts.size]
    if single and not made.release.figures and not rows_may_add_up(single[0], counts.ravel(), made.look.base):
        return (
            "No sum is known, so nothing can be worked out from this table alone: it is one column of counts, none of its "
            "rows is called a total, and none looks like the sum of others. If their total is known from elsewhere, counts "
            "that are hidden may follow from it."
        )
    if any(may_add_up(axis, made.look.along(axis), made.look.base) for axis in axes):
        return ""
    return (
        "No sum can hold between the columns: they are years, ages that do not overlap, or too small to be sums of others."
    )


def _obstacle(described: Described) -> str:
    """Return why nothing can be inferred from the table, and what to do about it; "" if something can."""
    toml = _toml(described.opened)
    source, typed = described.release.source, described.opened.typed
    if described.protection.default is None:
        return (
            f"{source}: how its counts were published cannot be told ({described.protection.why}). Say it, with the base "
            f"that the agency names: unround describe {typed} --base 3 -o {toml}; then run: unround audit {toml} -o audit"
        )
    if not described.holds_sums:
        return (
            f"{source}: no sum was found, and without one nothing can be inferred. `unround describe {typed}` shows what "
            f"was tried. If some counts add up, draft a description, unround describe {typed} -o {toml}, and add the sums."
        )
    return ""


def _signs(draft: Draft, roles: Roles, opened: Opened, notes: Documented, ask: Ask) -> None:
    """Write down what empty cells and symbols in place of counts mean: as notes say; ask where agencies differ."""
    writing, table = roles.writing, opened.table
    blank = writing.blank - (
        0 if roles.status is None else explained(table.column(roles.values[0]), table.column(roles.status))
    )
    if blank:
        many = "one is empty" if blank == 1 else f"{blank:,} are empty"
        question = Question("missing", f"What does an empty cell mean ({many})?", MEANINGS[:4], "not available")
        draft.keys["missing"] = ask(question)
        draft.remarks["missing"] = f"what an empty cell means; {many}"
    zeros = any(bool((bare_text(table.column(at)) == "0").any()) for at in roles.values) or 0 in notes.signs.values()
    symbols: dict[str, Any] = {}
    assumed = False
    coded = {sign: 1 for sign in notes.signs if re.match(_SENTINEL, sign)}
    for sign, times in {**writing.signs, **coded}.items():
        ends = told_range(notes.signs[sign]) if sign in notes.signs else hidden_range(sign)
        if ends is not None:
            low = 1 if zeros and ends[0] == 0 else ends[0]  # where a nought is printed as such, none of the hidden is one
            symbols[sign] = f"{low}-{ends[1]}"
            continue
        if sign in notes.signs:
            symbols[sign] = _MEANT.get(notes.signs[sign], 0)
            continue
        if flagged_number(sign) is not None or sign in notes.flags:
            continue
        known = SIGNS.get(sign.lower())
        if known is not None and sign not in _DOUBTFUL:
            continue
        if any(letter.isdigit() for letter in sign) or len(sign) > LONGEST_SIGN or sign.lower() in NUMBER_WORDS:
            continue  # text: it is reported as neither count nor sign
        default = _DOUBTFUL.get(sign, "not available")
        often = "once" if times == 1 else f"{times:,} times"
        answer = ask(Question(sign, f"What does {sign!r} mean in place of a count ({often})?", MEANINGS, default))
        symbols[sign] = 0 if answer == "0" else answer if answer in MISSING else default
        assumed = True
    if symbols:
        draft.keys["symbols"] = symbols
        draft.remarks["symbols"] = (
            "assumed, unless you were asked: check what the agency says" if assumed else "as notes or symbols say"
        )


def _verified(
    opened: Opened, draft: Draft, candidates: Mapping[str, Sequence[SuggestedSum]], rows: Sequence[str]
) -> tuple[Structure, list[SuggestedSum], Release]:
    """Read the table with all sums that names suggest, and let the counts judge them."""
    trial = {**draft.keys, "axes": {name: dict(keys) for name, keys in draft.keys["axes"].items()}}
    tried: list[SuggestedSum] = []
    for name, suggested in candidates.items():
        if suggested and name not in rows:
            tried += suggested
            trial["axes"][name]["sums"] = [
                {"total": candidate.total, "parts": list(candidate.parts)} for candidate in suggested
            ]
    release = _release(opened, trial)
    structure, verdicts = verify(release, tried)
    return structure, verdicts, release


def _release(opened: Opened, keys: Mapping[str, Any], form: str = DESCRIBED) -> Release:
    """Read a table as a description says. Mechanisms are declared only if somebody declared them, and so is the form."""
    description = make_description(keys, where="the description", folder=_folder(opened))
    release = read_headed(opened.table, description, form=form)
    if not release.columns:
        raise InputError(
            f"{release.source} has no counts: every column holds numbers with decimals. There is nothing to audit in a "
            "table of rates; give the table of counts that they come from."
        )
    return release
