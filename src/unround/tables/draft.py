"""Draft: a description as a TOML file, with the reasons for what it says."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
        for key in ("sheet", "header", "rows", "value", "status", "thousands", "decimal", "missing", "symbols", "default"):
            if key in self.keys:
                lines.append(self._line(key, self.keys[key]))
        lines += [self._line(key, self.keys[key]) for key in ("ignore", "areas") if key in self.keys]
        for rule in self.keys.get("exact", ()):
            lines += ["", self._heading("[[exact]]", "exact")]
            lines += [f"{_key(axis)} = {_value(codes)}" for axis, codes in rule.items()]
        for rule in self.keys.get("mechanisms", ()):
            lines += ["", "[[mechanisms]]", f"mechanism = {_text(rule['mechanism'])}", f"where = {_value(rule['where'])}"]
        for name, axis in self.keys["axes"].items():
            lines += ["", self._heading(f"[axes.{_key(name)}]", ("axis", name))]
            lines += [f"{key} = {_value(axis[key])}" for key in ("column", "name", "fill", "header") if key in axis]
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
