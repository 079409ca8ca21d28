"""Simulated persons as files: their records, tables published from them, and a note that all of it is invented."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround._version import __version__
from unround.errors import InputError
from unround.mechanisms import HIDDEN, Exact, Mechanism, mechanism
from unround.mechanisms.base import IntArray
from unround.mechanisms.rounding import TwoWay
from unround.output import output_folder
from unround.simulation import Simulated
from unround.simulation.companions import NOTE_TITLE, write_note
from unround.simulation.persons.attributes import AGE, AREA, KEY, VALUES
from unround.simulation.persons.counting import counted
from unround.simulation.persons.law import TYPICAL, PersonBlock, person_blocks, region_name
from unround.simulation.persons.tables import TABLES, PersonTable, TableAxis, tables_named
from unround.simulation.write import Parts
from unround.tables import NOTE

PERSONS = "persons.parquet"
_PUBLISHING, _CONSTANTS = 23, 24
LARGEST, LARGEST_PEOPLE = 99_999, 100_000
"""Areas, and people in a typical one, that can be drawn."""


@dataclass(frozen=True, slots=True)
class Publishing:
    """How tables are published from records.

    - `how`: What is done to every count; the number of all people stays exact.
    - `keys`: Whether random numbers come from the keys of records, and a constant of every table.
    - `constant`: With keys, the constant of all tables; None draws one for each.
    """

    how: Mechanism
    keys: bool = False
    constant: float | None = None

    def __post_init__(self) -> None:
        if self.keys and not isinstance(self.how, TwoWay):
            raise InputError(f"keys decide which way counts are rounded at random, and {self.how.name} does not do that.")

    def publish(self, true: IntArray, keys: NDArray[np.uint64] | None, rng: np.random.Generator, shift: int) -> IntArray:
        """Publish true counts; `keys` are the sums of their records' keys, `shift` the constant of the table."""
        if keys is not None and isinstance(self.how, TwoWay):
            return self.how.publish_keyed(true, keys + np.uint64(shift))
        return self.how.publish(true, rng)

    def shift(self, table: PersonTable, seed: int) -> int:
        """Return the constant of a table, in units of 2⁻⁶⁴."""
        if self.constant is not None:
            return int(self.constant * 2**64) % 2**64
        chance = np.random.SeedSequence(seed, spawn_key=(_CONSTANTS, *table.name.encode()))
        return int(np.random.default_rng(chance).integers(0, (1 << 64) - 1, dtype=np.uint64, endpoint=True))


def records(block: PersonBlock, *, keys: bool = False) -> pl.DataFrame:
    """Return the people of a block as a table, one row per person."""
    names = pl.Series([region_name(block.first + area) for area in range(block.areas)], dtype=pl.String)
    columns = {AREA: names.gather(block.area)}
    for name, values in VALUES.items():
        if name == AGE:
            columns[name] = pl.Series(block.codes[name])
        else:
            columns[name] = pl.Series(values).gather(block.codes[name].astype(np.int64))
    if keys:
        columns[KEY] = pl.Series(block.keys / 2.0**64)
    return pl.DataFrame(columns)


def simulate_persons(
    out: Path,
    areas: int,
    seed: int,
    people: int = TYPICAL,
    spec: str = "rounding:5",
    *,
    names: Sequence[str] | None = None,
    keys: bool = False,
    constant: float | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Simulated:
    """Write simulated persons, and tables published from them."""
    if seed < 0:
        raise InputError(f"a seed is a whole number from 0, not {seed}.")
    if not 1 <= areas <= LARGEST:
        raise InputError(f"persons can be drawn for 1 to {LARGEST:,} areas, not {areas:,}.")
    if not 1 <= people <= LARGEST_PEOPLE:
        raise InputError(f"a typical area can have 1 to {LARGEST_PEOPLE:,} people, not {people:,}.")
    if constant is not None and not 0 <= constant <= 1:
        raise InputError(f"the constant of a table is a number from 0 to 1, not {constant:g}.")
    publishing, tables = Publishing(mechanism(spec), keys, constant), tables_named(names)
    with output_folder(out, "simulate", older_persons) as output:
        persons = Parts(output.done / PERSONS)
        writers = [_TableWriter(output.done, table, publishing, seed) for table in tables]
        done = 0
        for block in person_blocks(areas, seed, people):
            persons.add(records(block, keys=keys))
            for writer in writers:
                writer.add(block)
            done += block.areas
            progress(done)
        persons.close()
        for writer in writers:
            writer.close()
        files = [name for table in tables for name in (f"{table.name}.parquet", f"{table.name}.toml")]
        size = sum(path.stat().st_size for path in output.done.iterdir())
        options = _options(people, spec, names, publishing)
        again = f"--areas {areas} --seed {seed}{options}"
        write_note(output.done, _note(files, again))
        output.publish((NOTE, *files, PERSONS))
    return Simulated(
        tuple(out / name for name in files), out / PERSONS, out / NOTE, areas, sum(w.cells for w in writers), size
    )


def older_persons(out: Path) -> list[str]:
    """Return the files of older simulated persons in a folder; complain of any that are not known to be such."""
    known = [PERSONS, *(f"{table.name}{end}" for table in TABLES for end in (".parquet", ".toml")), NOTE]
    there = [name for name in known if (out / name).exists()]
    note = (out / NOTE).read_text(encoding="utf-8", errors="replace") if (out / NOTE).is_file() else ""
    if there and not (note.startswith(NOTE_TITLE) and PERSONS in note):
        raise InputError(
            f"{out} already contains {there[0]}, but no {NOTE} of simulated persons: choose another folder with -o."
        )
    return known


class _TableWriter:
    """One published table, block by block."""

    def __init__(self, folder: Path, table: PersonTable, publishing: Publishing, seed: int) -> None:
        self._table, self._publishing, self._seed, self.cells = table, publishing, seed, 0
        self._margins, self._columns = table.margins, list(table.columns)
        self._everyone = [at for at, one in enumerate(table.queries) if not one]
        self._folder, self._parts = folder, Parts(folder / f"{table.name}.parquet")

    def add(self, block: PersonBlock) -> None:
        """Count the people of a block, and publish."""
        true = counted(self._margins, len(self._columns), block.area, block.areas, block.codes).astype(np.int64)
        keys = None
        if self._publishing.keys:
            sums = counted(self._margins, len(self._columns), block.area, block.areas, block.codes, block.keys)
            keys = sums.astype(np.uint64)
        chance = np.random.SeedSequence(self._seed, spawn_key=(_PUBLISHING, block.first, *self._table.name.encode()))
        shift = self._publishing.shift(self._table, self._seed)
        published = self._publishing.publish(true, keys, np.random.default_rng(chance), shift)
        published[:, self._everyone] = true[:, self._everyone]
        self.cells += published.size
        names = [region_name(block.first + area) for area in range(block.areas)]
        shown = {AREA: np.repeat(names, len(self._columns))}
        for at, axis in enumerate(self._table.axes):
            shown[axis.name] = np.tile([column[at] for column in self._columns], block.areas)
        frame = pl.DataFrame({**shown, "published": published.ravel()})
        self._parts.add(frame.with_columns(pl.col("published").replace(HIDDEN, None)))

    def close(self) -> None:
        """Finish the table, and describe it."""
        self._parts.close()
        text = description(self._table, self._publishing.how)
        (self._folder / f"{self._table.name}.toml").write_text(text, encoding="utf-8")


def description(table: PersonTable, how: Mechanism) -> str:
    """Describe a table in TOML: its file, axes, mechanism and sums."""
    lines = [
        "# A table of simulated persons, written by `unround simulate --persons`.",
        'format = "tidy"',
        f"data = {json.dumps(f'{table.name}.parquet')}",
        'value = "published"',
        'missing = "suppressed"',
        f"default = {json.dumps(how.name)}",
        "",
    ]
    if not isinstance(how, Exact):
        for everyone in _everyone(table.axes):
            lines += ["[[exact]]", *(f"{name} = {json.dumps(list(codes))}" for name, codes in everyone.items()), ""]
    lines += [f"[axes.{AREA}]", ""]
    for axis in table.axes:
        sums = [
            f"{{ total = {json.dumps(total)}, parts = {json.dumps(list(parts))} }}" for total, parts in axis.sums.items()
        ]
        lines += [f"[axes.{axis.name}]", "sums = [", *(f"    {one}," for one in sums), "]", ""]
    return "\n".join(lines)


def _everyone(axes: Sequence[TableAxis]) -> list[dict[str, list[str]]]:
    """Return the codes that together count everyone."""
    return [{axis.name: [code for code, (attribute, _) in axis.sets.items() if not attribute] for axis in axes}]


def _options(people: int, spec: str, names: Sequence[str] | None, publishing: Publishing) -> str:
    told = " --persons"
    told += f" --people {people}" if people != TYPICAL else ""
    told += f" --mechanism {spec}" if spec != "rounding:5" else ""
    told += f" --tables {','.join(names)}" if names is not None else ""
    told += " --keys" if publishing.keys else ""
    return told + (f" --constants {publishing.constant:g}" if publishing.constant is not None else "")


def _note(files: Sequence[str], again: str) -> str:
    """Say in words for people what lies beside this note, and how to make it again."""
    said = (
        f"Every number in the files listed here was drawn at random by `unround simulate`, version {__version__}. No number "
        "and no record is about a real place or person, and no statistical agency has anything to do with them."
    )
    width = max(map(len, (*files, PERSONS)))
    listed = "\n".join(
        f"    {name:{width}}  {'what its columns and sums mean' if name.endswith('.toml') else 'a table, as published'}"
        for name in files
    )
    return f"""\
{NOTE_TITLE}
{"=" * len(NOTE_TITLE)}

{fill(said, 96)}

{listed}
    {PERSONS:{width}}  the records that the tables count, one row per person

To make the same files again, with the same version of unround:

    unround simulate -o FOLDER {again}
"""
