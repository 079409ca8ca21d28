"""START HERE: look at a table that nobody described, and describe it.

1. Open it, and find its header (`opening`, `layout`).
2. Tell codes from counts (`roles`), and find the axes (`axes`).
3. Gather the sums that names suggest (`candidates`), and let the counts judge them (`verdicts`).
4. Write down what was found (`draft`), and what could not be known (`questions`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unround.errors import InputError
from unround.mechanisms import mechanism as mechanism_of
from unround.release import Release
from unround.shown import Shown
from unround.structure import Structure
from unround.tables.axes import OTHER, Axes, find_axes
from unround.tables.candidates import Candidate, find_candidates
from unround.tables.description import MISSING
from unround.tables.description_file import make_description
from unround.tables.draft import Draft
from unround.tables.number_style import LONGEST_SIGN
from unround.tables.opening import Opened, open_table
from unround.tables.questions import Ask, Question, take_default
from unround.tables.reshape import explained, read_headed
from unround.tables.roles import Roles, find_roles
from unround.tables.symbols import SIGNS
from unround.tables.verdicts import Protection, Verdict, protection, row_axes, trusted, verify
from unround.tables.writing import axis_keys, where_it_stands, write_asides, write_protection, write_sums

DESCRIBED = "described"
"""The format of a table that was described on the way."""
MEANINGS = ("suppressed", "not available", "not applicable", "unreliable", "0")
_DOUBTFUL = {"-": "not available", "–": "not available", ".": "suppressed", ":": "not available"}
"""Signs that agencies use for different things, and what is assumed if nobody says."""


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
    """

    opened: Opened
    release: Release
    structure: Structure
    axes: Axes
    roles: Roles
    verdicts: tuple[Verdict, ...]
    protection: Protection
    answers: tuple[tuple[Question, str], ...]
    draft: Draft

    def toml(self, where: Path | None = None) -> str:
        """Return the description as a TOML file, to be kept at `where`; beside the table by default."""
        return self.draft.toml(self.opened.path, where)

    @property
    def holds_sums(self) -> bool:
        """Whether anything adds up, so that something can be inferred."""
        return bool(self.structure.sums) or any(one.used for one in self.verdicts)

    @property
    def note(self) -> str:
        """What a user of the table should know, in one sentence."""
        used = sum(one.used for one in self.verdicts)
        sums = f"{used} sums of codes" if used != 1 else "1 sum of codes"
        rows = " and ".join(self.release.areas)
        where = f" on sheet {self.opened.sheet!r}" if self.opened.sheet is not None else ""
        command = f": unround describe {self.opened.typed}" if self.opened.path is not None else ""
        return (
            f"This table{where} came without a description, so one was drafted: rows by {rows}, columns by "
            f"{' and '.join(self.release.axes)}, {sums}. Check that it is right{command}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        layout, names = self.opened.layout, self.opened.table.names
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
                    "axis": one.candidate.axis,
                    "total": one.candidate.total,
                    "parts": list(one.candidate.parts),
                    "suggested_by": one.candidate.why,
                    "used": one.used,
                    "why": one.why,
                }
                for one in self.verdicts
            ],
            "mechanism": self.protection.default.name if self.protection.default else None,
            "mechanism_why": self.protection.why,
            "left_out": {names[at]: why for at, why in self.roles.left_out.items()},
            "questions": [{"about": one.key, "question": one.text, "answer": answer} for one, answer in self.answers],
            "notes": list(self.release.notes),
        }


def describe(
    source: object,
    *,
    sheet: str | None = None,
    header: Sequence[int] | None = None,
    value: str | None = None,
    mechanism: str | None = None,
    ask: Ask = take_default,
) -> Described:
    """Look at a file or frame, and describe it.

    Parameters
    ----------
    source : path or frame
        A spreadsheet, a delimited file, a Parquet or PC-Axis file; or a frame of polars or pandas.
    sheet : str, optional
        Which sheet of a spreadsheet.
    header : sequence of int, optional
        The rows of the header, from 1, if they are not to be looked for.
    value : str, optional
        The column of counts, where several hold numbers.
    mechanism : str, optional
        How counts were published, such as "rounding:3", where the agency says so; inferred from the counts by default.
    ask : function
        Answers a `Question`; by default with what is assumed if nobody is there.

    Raises
    ------
    InputError
        Where there is no table of counts, or it cannot be told which column holds them.
    """
    answers: dict[str, tuple[Question, str]] = {}

    def asking(question: Question) -> str:
        if question.key not in answers:  # nobody is asked twice
            answers[question.key] = question, ask(question) or question.default
        return answers[question.key][1]

    opened = open_table(source, sheet, None if header is None else tuple(header), asking)
    found = _described(opened, value, mechanism, asking)
    if value is None and (several := _several_values(found, opened)):
        question = Question(
            "value", "Several columns hold numbers that do not add up. Which one holds the counts?", several, ""
        )
        chosen = asking(question)
        if not chosen:
            raise InputError(
                f"{found.release.source} has {len(several)} columns of values ({', '.join(several)}), and nothing says "
                f"which of them holds the counts. Name it: unround describe {opened.typed} --value {_quoted(several[0])} "
                f"-o {_toml(opened)}; then run: unround audit {_toml(opened)} -o audit"
            )
        found = _described(opened, chosen, mechanism, asking)
    return replace(found, answers=tuple(answers.values()))


def _toml(opened: Opened) -> str:
    """Return what to call the description."""
    return "draft.toml" if opened.path is None else opened.path.with_suffix(".toml").name


def _quoted(name: str) -> str:
    return name if name.isidentifier() else f'"{name}"'


def _several_values(found: Described, opened: Opened) -> tuple[str, ...]:
    """Return the columns of values if their names make no axis: rows have totals, and nothing adds up across columns."""
    across = found.axes.across
    if len(across) != 1 or found.axes.counts or across[0].about != OTHER:
        return ()
    axis = across[0].name
    if any(one.used and one.candidate.axis == axis for one in found.verdicts):
        return ()
    if not any(one.candidate.axis not in (axis, *found.release.areas) for one in found.verdicts):
        return ()
    if axis not in found.release.axes:
        return ()  # the header names areas, or whatever the same table is published for
    place, columns = found.release.axes.index(axis), found.structure.columns
    if any(columns[one.total].codes[place] != columns[one.parts[0]].codes[place] for one in found.structure.sums):
        return ()
    return tuple(opened.table.names[at] for at in found.roles.values)


def _described(opened: Opened, value: str | None, mechanism: str | None, ask: Ask) -> Described:
    """Describe a table that is open."""
    table = opened.table
    roles = find_roles(table, value)
    axes = find_axes(table, roles, opened.layout.heading if opened.layout else "")
    if not axes.all:
        raise InputError(
            f"{table.source} has a column of numbers and nothing that says what they count; add a column of names for its "
            f"rows, then run: unround describe {opened.typed}"
        )
    draft = Draft(where_it_stands(opened, axes, roles))
    _signs(draft, roles, opened, ask)
    candidates = {axis.name: find_candidates(axis) for axis in axes.all}
    rows = row_axes(axes.all, candidates)
    if len(rows) > 1:
        candidates = {name: [] if name in rows else found for name, found in candidates.items()}
    draft.keys["areas"] = rows
    draft.keys["axes"] = {axis.name: axis_keys(axis) for axis in axes.all}
    draft.remarks |= {("axis", axis.name): "an empty cell repeats the one above" for axis in axes.rows if axis.fill}
    structure, verdicts, release = _verified(opened, draft, candidates, rows)
    how = protection(release, structure)
    if mechanism is not None:
        how = how.as_said(mechanism_of(mechanism))
    write_protection(draft, how)
    if mechanism is not None:
        structure, verdicts, release = _verified(opened, draft, candidates, rows)
    order = {axis.name: axis.codes for axis in axes.all}
    verdicts.sort(
        key=lambda one: (list(order).index(one.candidate.axis), order[one.candidate.axis].index(one.candidate.total))
    )
    write_sums(draft, axes, verdicts)
    write_asides(draft, axes, verdicts, structure, roles, opened)
    inferred = () if mechanism is not None else ("default", "exact", "mechanisms")
    form = DESCRIBED if mechanism is None else "frame" if opened.path is None else "tidy"
    final = _release(opened, {key: one for key, one in draft.keys.items() if key not in inferred}, form)
    final = trusted(final, structure)
    made = Described(opened, final, structure, axes, roles, tuple(verdicts), how, (), draft)
    final.notes.insert(0, made.note)
    return replace(made, release=replace(final, obstacle=_obstacle(made)))


def _obstacle(found: Described) -> str:
    """Return why nothing can be inferred from the table, and what to do about it; "" if something can."""
    toml = _toml(found.opened)
    source, typed = found.release.source, found.opened.typed
    if found.protection.default is None:
        return (
            f"{source}: how its counts were published cannot be told ({found.protection.why}). Say it, with the base that "
            f"the agency names: unround describe {typed} --base 3 -o {toml}; then run: unround audit {toml} -o audit"
        )
    if not found.holds_sums:
        return (
            f"{source}: no sum was found, and without one nothing can be inferred. `unround describe {typed}` shows what "
            f"was tried. If some counts add up, draft a description, unround describe {typed} -o {toml}, and add the sums."
        )
    return ""


def _signs(draft: Draft, roles: Roles, opened: Opened, ask: Ask) -> None:
    """Write down what empty cells and signs in place of counts mean; ask where agencies differ."""
    writing, table = roles.writing, opened.table
    blank = writing.blank - (
        0 if roles.status is None else explained(table.column(roles.values[0]), table.column(roles.status))
    )
    if blank:
        many = "one is empty" if blank == 1 else f"{blank:,} are empty"
        question = Question("missing", f"What does an empty cell mean ({many})?", MEANINGS[:4], "not available")
        draft.keys["missing"] = ask(question)
        draft.remarks["missing"] = f"what an empty cell means; {many}"
    symbols: dict[str, Any] = {}
    for sign, times in writing.signs.items():
        known = SIGNS.get(sign.lower())
        if known is not None and sign not in _DOUBTFUL:
            continue
        if any(letter.isdigit() for letter in sign) or len(sign) > LONGEST_SIGN:
            continue  # a number with a footnote, or text: it is reported as neither count nor sign
        default = _DOUBTFUL.get(sign, "not available")
        often = "once" if times == 1 else f"{times:,} times"
        answer = ask(Question(sign, f"What does {sign!r} mean in place of a count ({often})?", MEANINGS, default))
        symbols[sign] = 0 if answer == "0" else answer if answer in MISSING else default
    if symbols:
        draft.keys["symbols"] = symbols
        draft.remarks["symbols"] = "assumed, unless you were asked: check what the agency says"


def _verified(
    opened: Opened, draft: Draft, candidates: Mapping[str, Sequence[Candidate]], rows: Sequence[str]
) -> tuple[Structure, list[Verdict], Release]:
    """Read the table with all sums that names suggest, and let the counts judge them."""
    trial = {**draft.keys, "axes": {name: dict(keys) for name, keys in draft.keys["axes"].items()}}
    tried: list[Candidate] = []
    for name, found in candidates.items():
        chosen = _one_hierarchy(found) if name in rows else list(found)
        tried += chosen
        if chosen:
            trial["axes"][name]["sums"] = [{"total": one.total, "parts": list(one.parts)} for one in chosen]
    release = _release(opened, trial)
    structure, verdicts = verify(release, tried)
    return structure, verdicts, release


def _one_hierarchy(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return of the sums of areas those that make one hierarchy: every area lies in one other at most."""
    nested = [one for one in candidates if one.why.startswith(("codes", "a total and its top"))]
    return nested or list(candidates[:1])


def _release(opened: Opened, keys: Mapping[str, Any], form: str = DESCRIBED) -> Release:
    """Read a table as a description says. Mechanisms are declared only if somebody declared them, and so is the form."""
    folder = opened.path.parent if opened.path is not None else None
    description = make_description(keys, where="the description", folder=folder)
    release = read_headed(opened.table, description, form=form)
    if not release.columns:
        raise InputError(
            f"{release.source} has no counts: every column holds numbers with decimals. There is nothing to audit in a "
            "table of rates; give the table of counts that they come from."
        )
    return release
