"""Draft: a description as a TOML file, with the reasons for what it says."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unround.mechanisms import Exact
from unround.release import Entry, What
from unround.small_files import toml_comment, toml_text
from unround.structure import Structure
from unround.tables.axes import Axes, DraftAxis
from unround.tables.grid import letters
from unround.tables.opening import Opened
from unround.tables.roles import Roles
from unround.tables.suggested import Protection, Verdict

_ORDER = (
    "data", "sheet", "columns", "header", "rows", "skip", "percentages", "value", "status", "thousands", "decimal",
    "missing", "symbols", "default", "areas", "inferred", "open", "exact", "ignore", "figures", "mechanisms", "axes",
    "counts",
)  # fmt: skip


@dataclass(slots=True)
class Draft:
    """A description as keys and values, as `make_description` takes it, and remarks on some of the keys.

    Remarks are by key ("default"), or by axis and position of the sum (("age", 0)). `suggested` are keys that only the
    counts suggest: they are written as comments, for written down they would read as declared, and claims as proved.
    `asides` are lines of their own at the end: what was tried and not used.
    """

    keys: dict[str, Any]
    remarks: dict[Any, str] = field(default_factory=dict)
    suggested: dict[str, Any] = field(default_factory=dict)
    asides: list[str] = field(default_factory=list)

    def toml(self, file: Path | None, where: Path | None = None) -> str:
        """Return the text of the TOML."""
        keys, comment = dict(self.keys), ""
        if file is not None:
            toml = where or file.with_suffix(".toml")
            comment = (
                f"Drafted by `unround describe {file.name}`. Read it, correct what is wrong, then run:\n"
                f"  unround audit {_relative(toml, Path.cwd()) if where else toml.name} -o audit"
            )
            keys["data"] = _relative(file, toml.parent)
        ordered = {key: keys[key] for key in _ORDER if key in keys}
        text = toml_text(ordered, comment, self.remarks, inline=("counts",))
        if self.suggested:
            guess = "".join(f"# {line}\n" for line in toml_text(self.suggested).splitlines() if line)
            top, heading, rest = text.partition("\n\n")  # a key that is uncommented has to stand above all headings
            text = f"{top}\n{toml_comment(self.remarks['suggested'])}\n{guess}".rstrip("\n") + f"{heading}{rest}"
        return text + "".join(["\n", *(f"{toml_comment(one)}\n" for one in self.asides)] if self.asides else [])


def _relative(file: Path, folder: Path) -> str:
    """Return the way to a file from a folder, as short as it is."""
    try:
        return Path(os.path.relpath(file, folder)).as_posix()
    except ValueError:  # another drive
        return file.as_posix()


def where_it_stands(opened: Opened, axes: Axes, roles: Roles) -> dict[str, Any]:
    """Return the keys that say where the table is, and how its numbers are written."""
    keys: dict[str, Any] = {}
    names, layout = opened.table.names, opened.layout
    if layout is not None and layout.columns is not None:
        keys["columns"] = "-".join(map(letters, layout.columns))
    if opened.sheet is not None:
        keys["sheet"] = opened.sheet
    if layout is not None and (keys or layout.header != (1,) or layout.below or layout.skip):
        keys["header"], keys["rows"] = list(layout.header), list(layout.rows)
        keys |= {"skip": list(layout.skip)} if layout.skip and not opened.headings else {}
        keys |= {"percentages": list(layout.percentages)} if layout.percentages else {}
    if len(roles.values) == 1:
        keys["value"] = names[roles.values[0]]
    if roles.status is not None:
        keys["status"] = names[roles.status]
    marks = {"thousands": roles.writing.thousands, "decimal": roles.writing.decimal}
    keys |= {key: sign for key, sign in marks.items() if sign}
    left = {**roles.left_out, **dict.fromkeys(roles.unknown, "")}
    if left:
        keys["ignore"] = [{"column": names[at], "because": why} for at, why in sorted(left.items())]
    if axes.counts:
        keys["counts"] = {column: dict(codes) for column, codes in axes.counts.items()}
    return keys


def axis_keys(axis: DraftAxis, headings: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Return the keys of one axis, without its sums."""
    keys: dict[str, Any] = {}
    if axis.name in headings:
        keys["headings"] = list(headings[axis.name])
    elif axis.header is not None:
        keys["header"] = axis.header
    elif axis.column is not None and axis.column != axis.name:
        keys["column"] = axis.column
    if axis.label is not None:
        keys["name"] = axis.label
    if axis.fill:
        keys["fill"] = "down"
    if axis.within is not None:
        keys["within"] = axis.within
        keys |= {"headings": list(headings[axis.within])} if axis.within in headings else {}
    return keys


def write_sums(draft: Draft, axes: Axes, verdicts: Sequence[Verdict]) -> None:
    """Write down the sums that are used, each with the reason."""
    for axis in axes.all:
        used = [one for one in verdicts if one.used and one.candidate.axis == axis.name]
        if used:
            draft.keys["axes"][axis.name]["sums"] = [
                {"total": one.candidate.total, "parts": list(one.candidate.parts)} for one in used
            ]
        draft.remarks |= {(axis.name, at): f"{one.candidate.why}; {one.why}" for at, one in enumerate(used)}
    if any(one.used for one in verdicts):
        draft.keys["inferred"] = True
        draft.remarks["inferred"] = (
            "the sums: what follows from one is conditional, until somebody who knows deletes this line"
        )


def write_protection(draft: Draft, how: Protection, noted: Collection[str]) -> None:
    """Write down how counts were published: usually, and where otherwise; `noted` are codes that a note calls exact."""
    if how.default is None:
        draft.asides.append(f'How counts were published could not be told ({how.why}). Say so: default = "rounding:3"')
        return
    into = draft.keys if how.said else draft.suggested
    into["default"] = how.default.name
    if not how.said:
        draft.remarks["suggested"] = (
            f"How counts were published is left to the counts ({how.why}), and what follows is conditional on it. If the "
            "agency says so, uncomment this:"
        )
    elif how.note:
        draft.remarks["default"] = f"as a note says: {how.note}"
    for other, rules in how.others:
        for rule in rules:
            where: dict[str, Any] = {axis: codes[0] if len(codes) == 1 else list(codes) for axis, codes in rule.items()}
            told = not how.said or not {code for codes in rule.values() for code in codes}.isdisjoint(noted)
            if isinstance(other, Exact):
                into.setdefault("exact", []).append(where if told else {**where, "inferred": True})
                if not told:
                    draft.remarks["exact"] = "the counts suggest it: they are not multiples of the base"
            else:
                into.setdefault("mechanisms", []).append({"mechanism": other.name, "where": where})


def write_open(draft: Draft, entries: Sequence[Entry]) -> list[Entry]:
    """Write down the questions that nobody has answered, and return what is none: the description speaks of them now."""
    asked = [one for one in entries if one.what is What.UNKNOWN]
    if asked:
        draft.keys["open"] = [{"place": one.place, "why": one.why, "settle": one.settle} for one in asked]
        draft.remarks["open"] = "nobody has answered it: settle it, then delete it"
    return [one for one in entries if one.what is not What.UNKNOWN]


def write_asides(draft: Draft, axes: Axes, verdicts: Sequence[Verdict], structure: Structure, roles: Roles) -> None:
    """Write down what was tried and not used, and what the counts alone suggest."""
    draft.asides += [
        f"Not used ({one.candidate.axis}): {one.candidate.shown}: {one.why}" for one in verdicts if not one.used
    ]
    columns = structure.columns
    for one in structure.sums:
        if one.origin == "data" and len(one.parts) > 1:
            shown = f"{columns[one.total].key} = {' + '.join(columns[part].key for part in one.parts[:8])}"
            more = f" + … ({len(one.parts)} parts)" if len(one.parts) > 8 else ""
            draft.asides.append(f"Found in the counts, and used with less trust than a sum that you list: {shown}{more}")
    if roles.unknown:
        draft.remarks["ignore"] = "without a reason it stays open: say why it may be left out, or what it is"
    if not structure.sums and not any(one.used for one in verdicts):
        axis = next((axis.name for axis in axes.all if axis.name not in draft.keys["areas"]), axes.all[0].name)
        draft.asides.append(
            f"No sum was found, and without one nothing can be inferred. If some counts add up, say so under [axes.{axis}]: "
            'sums = [{ total = "…", parts = ["…", "…"] }]'
        )
