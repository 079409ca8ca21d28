"""What a table without a description is taken for, and the draft of its description."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unround.release import Entry
from unround.show.parts import QUIET, Bullets, Code, Document, Part, Section, Table, Terms, rest
from unround.show.words import several
from unround.tables import Described
from unround.tables.account import account
from unround.tables.axes import DraftAxis

FEW = 6
"""Codes of an axis that are shown."""
MOST_ENTRIES = 40
"""Entries of an account that are listed."""


def how_it_was_read(entries: Sequence[Entry], most: int = MOST_ENTRIES) -> Section:
    """Return the account of a reading; what was not understood or not used comes first."""
    ordered = sorted(entries, key=lambda one: (not one.settle, one.used))
    rows = [(one.place, one.what.value, "yes" if one.used else "no", one.why) for one in ordered[:most]]
    table = Table(("where", "what", "used", "why"), rows, "How it was read", left=("what", "used", "why"))
    settle = [(one.place, f"settle it with {one.settle}") for one in ordered if one.settle]
    return Section("How it was read", [table, rest(len(ordered), most, "the JSON lists them"), Bullets(settle[:most])])


def description(found: Described, draft: bool = True) -> Document:
    """Say what a table is taken for; with `draft` also the text of its description."""
    parts = [*_description(found)]
    if draft:
        parts.append(Section("The description", [Code(found.toml())], aside="(write it into a file with -o)"))
    return Document("What the table is taken for", parts)


def _description(found: Described) -> Iterator[Part]:
    yield Terms(
        [
            ("file", _where(found)),
            ("rows", _axes(found, rows=True)),
            ("columns", _axes(found, rows=False)),
            ("published", _protection(found)),
        ],
        "wide",
    )
    used = [one for one in found.verdicts if one.used]
    sums = [(f"{one.candidate.axis}: {one.candidate.shown}", f"{one.candidate.why}; {one.why}") for one in used]
    none = "" if used else "so that nothing can be inferred"
    yield Section(f"Sums: {len(used)}", [Bullets(sums)], aside=none)
    refused = [(f"{one.candidate.axis}: {one.candidate.shown}", one.why) for one in found.verdicts if not one.used]
    answers = [(one.text, answer) for one, answer in found.answers]
    for title, items in (("Not used", refused), ("Answered, or assumed", answers)):
        if items:
            yield Section(title, [Bullets(items)])
    yield how_it_was_read(account(found.release, found.structure))
    yield Bullets([*found.release.notes[1:], *found.structure.notes], QUIET)  # the first is about describing on the way


def _where(found: Described) -> str:
    opened, layout = found.opened, found.opened.layout
    words = [found.release.source]
    if opened.sheet is not None:
        words.append(f"sheet {opened.sheet!r}")
    if layout is not None:
        rows = f"rows {layout.header[0]}–{layout.header[-1]}" if len(layout.header) > 1 else f"row {layout.header[0]}"
        words.append(f"header in {rows}, table in rows {layout.rows[0]}–{layout.rows[1]}")
    return ", ".join(words)


def _axes(found: Described, rows: bool) -> str:
    names = found.release.areas if rows else found.release.axes
    shown = [_axis(axis) for axis in found.axes.all if axis.name in names]
    return "; ".join(shown) or "one: the table is of a single area"


def _axis(axis: DraftAxis) -> str:
    few = ", ".join(axis.codes[:FEW]) + (", …" if len(axis.codes) > FEW else "")
    return f"{axis.name} ({several(len(axis.codes), 'code')}: {few})"


def _protection(found: Described) -> str:
    how = found.protection
    if how.default is None:
        return f"not known: {how.why}. Say it with --base"
    exact = [f"{axis} {_few(codes)}" for rule in found.draft.keys.get("exact", ()) for axis, codes in rule.items()]
    also = f"; exact: {', '.join(exact)}" if exact else ""
    others = [rule["mechanism"] for rule in found.draft.keys.get("mechanisms", ())]
    also += f"; elsewhere {', '.join(dict.fromkeys(others))}" if others else ""
    return f"{how.default.name}{also} ({how.why})"


def _few(codes: str | list[str]) -> str:
    """Return some codes, shortened."""
    listed = [codes] if isinstance(codes, str) else codes
    return " or ".join(listed[:FEW]) + (" …" if len(listed) > FEW else "")
