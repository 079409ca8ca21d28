"""Draft: a description as a TOML file, with the reasons for what it says."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unround.mechanisms import CellKey, Exact
from unround.structure import Structure
from unround.tables.axes import Axes, DraftAxis
from unround.tables.grid import letters
from unround.tables.opening import Opened
from unround.tables.roles import Roles
from unround.tables.suggested import Protection, Verdict

_TOP = (
    "sheet", "columns", "header", "rows", "skip", "percentages", "value", "status",
    "thousands", "decimal", "missing", "symbols", "default", "areas",
)  # fmt: skip
WIDEST = 110
"""Characters of a line, roughly."""


@dataclass(slots=True)
class Draft:
    """A description as keys and values, as `make_description` takes it, and remarks on some of the keys.

    Remarks are by key ("default"), or by axis and position of the sum (("age", 0)); `asides` are lines of their own at the
    end: what was tried and not used.
    """

    keys: dict[str, Any]
    remarks: dict[Any, str] = field(default_factory=dict)
    asides: list[str] = field(default_factory=list)

    def toml(self, file: Path | None, where: Path | None = None) -> str:
        """Return the text of the TOML."""
        lines = []
        if file is not None:
            toml = where or file.with_suffix(".toml")
            lines += [
                f"# Drafted by `unround describe {file.name}`. Read it, correct what is wrong, then run:",
                f"#   unround audit {_relative(toml, Path.cwd()) if where else toml.name} -o audit",
                f"data = {_text(_relative(file, toml.parent))}",
            ]
        for key in _TOP:
            if key in self.keys:
                lines.append(self._line(key, self.keys[key]))
        for kind in ("exact", "ignore", "figures"):
            for rule in self.keys.get(kind, ()):
                lines += ["", self._heading(f"[[{kind}]]", kind)]
                lines += [f"{_key(key)} = {_value(one)}" for key, one in rule.items()]
        for rule in self.keys.get("mechanisms", ()):
            lines += ["", "[[mechanisms]]", f"mechanism = {_text(rule['mechanism'])}", f"where = {_value(rule['where'])}"]
        for name, axis in self.keys["axes"].items():
            lines += ["", self._heading(f"[axes.{_key(name)}]", ("axis", name))]
            lines += [
                f"{key} = {_value(axis[key])}"
                for key in ("column", "name", "fill", "within", "header", "headings")
                if key in axis
            ]
            lines += self._sums(name, axis.get("sums", ()))
        if self.keys.get("counts"):
            lines += ["", "[counts]                       # what each column of counts stands for"]
            lines += [f"{_text(column)} = {_value(codes)}" for column, codes in self.keys["counts"].items()]
        if self.asides:
            lines += ["", *(f"# {_plain(one)}" for one in self.asides)]
        return "\n".join(lines) + "\n"

    def _line(self, key: str, value: object) -> str:
        line = f"{key} = {_value(value)}"
        remark = self.remarks.get(key)
        return line if not remark else f"{line:30} # {_plain(remark)}"

    def _heading(self, heading: str, key: object) -> str:
        remark = self.remarks.get(key)
        return heading if not remark else f"{heading:30} # {_plain(remark)}"

    def _sums(self, axis: str, sums: Sequence[Mapping[str, Any]]) -> list[str]:
        if not sums:
            return []
        lines = ["sums = ["]
        for at, one in enumerate(sums):
            if remark := self.remarks.get((axis, at)):
                lines.append(f"  # {_plain(remark)}")
            lines.append(f"  {{ total = {_text(one['total'])}, parts = {_value(one['parts'])} }},")
        return [*lines, "]"]


def _relative(file: Path, folder: Path) -> str:
    """Return the way to a file from a folder, as short as it is."""
    try:
        return Path(os.path.relpath(file, folder)).as_posix()
    except ValueError:  # another drive
        return file.as_posix()


def _plain(text: str) -> str:
    """Return a text that ends no comment."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else _text(name)


def _value(value: object) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(str(key))} = {_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        items = [_value(one) for one in value]
        short = f"[{', '.join(items)}]"
        if len(short) <= WIDEST:
            return short
        lines, line = [], "   "
        for item in items:
            if len(line) + len(item) > WIDEST:
                lines.append(line)
                line = "   "
            line += f" {item},"
        return "[\n" + "\n".join([*lines, line]) + "\n  ]"
    return str(value).lower() if isinstance(value, bool) else str(value)


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


def write_protection(draft: Draft, how: Protection) -> None:
    """Write down how counts were published: usually, and where otherwise."""
    if how.default is None:
        draft.asides.append(f'How counts were published could not be told ({how.why}). Say so: default = "rounding:3"')
        return
    if not how.said and isinstance(how.default, CellKey):  # written down, it would read as declared, and claims as proved
        draft.asides.append(
            f"How counts were published is left to the counts ({how.why}), and what follows from it is conditional. "
            f'If the agency confirms it, say so: default = "{how.default.name}"'
        )
        return
    draft.keys["default"] = how.default.name
    if not how.said:
        draft.remarks["default"] = f"inferred from the counts ({how.why}); confirm it with the agency"
    elif how.note:
        draft.remarks["default"] = f"as a note says: {how.note}"
    for other, rules in how.others:
        if isinstance(other, Exact):
            draft.keys.setdefault("exact", []).extend(
                {axis: _one_or_more(codes) for axis, codes in rule.items()} for rule in rules
            )
            draft.remarks["exact"] = "inferred: these counts are not multiples of the base"
        else:
            made = [{"mechanism": other.name, "where": {a: _one_or_more(c) for a, c in rule.items()}} for rule in rules]
            draft.keys.setdefault("mechanisms", []).extend(made)


def _one_or_more(codes: Sequence[str]) -> str | list[str]:
    return codes[0] if len(codes) == 1 else list(codes)


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
