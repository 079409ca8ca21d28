"""The files of a protected table: a tidy table, the TOML that describes it, and a note for those who made it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from unround.errors import InputError
from unround.infer.bounds import Equations
from unround.mechanisms import HIDDEN, Mechanism
from unround.mechanisms.base import IntArray
from unround.release import AREA, SUPPRESSED, Block, Column, Release
from unround.simulation.write import ABOUT, TABLE, Parts

NOTE = "PROTECTED.txt"
NOTE_TITLE = "Protected by unround: not to be published with the table"
OURS = (TABLE, ABOUT, NOTE)
"""In the order in which they are put in place: where there is a note, all files belong together."""

_CENSUS = ("characteristic_id", "sex")
_VALUE = "published"


def older_table(out: Path) -> tuple[str, ...]:
    """Return the names that the files have; complain where some are there that `protect` did not write."""
    there = [name for name in OURS if (out / name).exists()]
    if there and not _ours(out):
        raise InputError(
            f"{out} already contains {' and '.join(there)}, but no {NOTE} written by `unround protect`: "
            "choose another folder with -o."
        )
    return OURS


def _ours(out: Path) -> bool:
    try:
        return (out / NOTE).read_text(encoding="utf-8", errors="replace").startswith(NOTE_TITLE)
    except OSError:
        return False


class TableWriter:
    """The tidy table: one row a count, in parts, so that a table of any length passes through little memory.

    A count that exists but was not published has an empty cell; one that does not exist has no row.
    """

    def __init__(self, folder: Path, release: Release) -> None:
        self._parts = Parts(folder / TABLE)
        self._release = release
        columns = release.columns
        self._codes = {
            axis: pl.Series([column.codes[place] for column in columns]) for place, axis in enumerate(release.axes)
        }
        if release.axes == _CENSUS:
            self._codes["characteristic"] = pl.Series([column.label for column in columns])

    def add(self, block: Block, published: IntArray) -> None:
        """Write the counts of some areas."""
        row, column = np.nonzero((published != HIDDEN) | (block.counts >= 0) | (block.counts == SUPPRESSED))
        shown = pl.Series(published[row, column])
        told = [name for name in block.areas.columns if name in self._told]
        self._parts.add(
            pl.DataFrame(
                {name: block.areas[name].gather(row) for name in told}
                | {name: series.gather(column) for name, series in self._codes.items()}
                | {_VALUE: shown.set(shown == HIDDEN, None)}
            )
        )

    @property
    def _told(self) -> set[str]:
        areas = self._release.areas
        return {*areas, *(f"{axis}_name" for axis in areas), "level", "parent"}

    def close(self) -> Path:
        """Finish the table."""
        return self._parts.close()[0]


def release_toml(
    release: Release,
    areas: Sequence[str],
    how: Mechanism,
    exact: Iterable[int],
    sums: Equations,
) -> str:
    """Describe the table: its axes, how counts were protected, which are exact, and which sums hold among true counts.

    Parameters
    ----------
    release : Release
        The true table.
    areas : sequence of str
        The names of the columns that its areas have.
    how : Mechanism
        What a reader should assume.
    exact : iterable of int
        Columns that were published as they are.
    sums : tuple
        Totals and parts, as positions of columns.
    """
    columns = release.columns
    names = {axis: "characteristic" if release.axes == _CENSUS and axis == _CENSUS[0] else axis for axis in release.axes}
    lines = [
        "# A table protected by `unround protect`.",
        'format = "tidy"',
        f"data = {json.dumps(TABLE)}",
        f"value = {json.dumps(_VALUE)}",
        'missing = "suppressed"  # an empty cell: the count exists, and was not published',
        f"default = {json.dumps(how.name)}",
        f"areas = {_list(release.areas)}",
    ]
    for axis in release.areas:
        lines += ["", f"[axes.{_key(axis)}]"]
        lines += [f'name = "{axis}_name"'] if f"{axis}_name" in areas else []
        if axis == AREA:
            lines += [f"{key} = {json.dumps(key)}" for key in ("level", "parent") if key in areas]
    for axis, name in names.items():
        lines += ["", f"[axes.{_key(name)}]", f"column = {json.dumps(axis, ensure_ascii=False)}"]
        lines += ['name = "characteristic"'] if name != axis else []
    for at in sorted(exact):
        lines += ["", "[[exact]]"]
        codes = zip(names.values(), columns[at].codes, strict=True)
        lines += [f"{_key(name)} = {json.dumps(code, ensure_ascii=False)}" for name, code in codes]
    for total, parts in sums:
        lines += ["", "[[sums]]", 'axis = "columns"', f"total = {json.dumps(columns[total].key, ensure_ascii=False)}"]
        lines.append(f"parts = {_list(_keys(columns, parts))}")
    return "\n".join(lines) + "\n"


def _keys(columns: Sequence[Column], which: Iterable[int]) -> list[str]:
    return [columns[at].key for at in which]


def _key(name: str) -> str:
    """Return a name as TOML takes it for a key: in quotes only where it needs them."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _list(words: Iterable[str]) -> str:
    return f"[{', '.join(json.dumps(word, ensure_ascii=False) for word in words)}]"
