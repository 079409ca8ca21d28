"""The truth: the records behind the tables, one row per person, and whether `simulate` drew them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError
from unround.readers.parquet import read_parquet
from unround.simulation import NOTE
from unround.simulation.companions import NOTE_TITLE
from unround.simulation.persons.attributes import KEY
from unround.simulation.persons.law import TYPICAL, person_blocks
from unround.simulation.persons.write import records as drawn_records

Codes = NDArray[np.int16]
Ints = NDArray[np.int64]

AREA_NAMES = ("region", "area", "geo", "code", "geocode", "geo_code", "geouid", "dguid")
"""Columns called so hold the areas of a file of persons."""

MOST_VALUES = 1_000
"""Values of an attribute: one with more identifies persons, and is published in no table."""

MOST_RECORDS = 1 << 44
"""Combinations of all attributes, so that a record and its number fit into 63 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Persons with coded attributes, in the order of their areas.

    Parameters
    ----------
    source : str
        The file.
    areas : tuple of str
        The names of the areas, in ascending order.
    starts : array
        The persons of area a are those from starts[a] to starts[a + 1].
    values : dict
        The values of every attribute as text, in the order of their codes; numbers in their own order.
    codes : dict
        The code of every person, by attribute.
    numeric : frozenset of str
        Attributes whose values are whole numbers: ages.
    keys : array or None
        The keys of the records, in units of 2⁻⁶⁴, where the file has them.
    simulated : bool
        Whether `unround simulate` draws exactly these records again.
    """

    source: str
    areas: tuple[str, ...]
    starts: Ints
    values: dict[str, tuple[str, ...]]
    codes: dict[str, Codes]
    numeric: frozenset[str]
    keys: NDArray[np.uint64] | None
    simulated: bool

    @property
    def sizes(self) -> dict[str, int]:
        """How many values each attribute has."""
        return {name: len(values) for name, values in self.values.items()}

    @property
    def people(self) -> int:
        """How many persons there are."""
        return int(self.starts[-1])

    def only(self, names: Sequence[str]) -> Records:
        """Keep some attributes, in this order."""
        return Records(
            self.source,
            self.areas,
            self.starts,
            {name: self.values[name] for name in names},
            {name: self.codes[name] for name in names},
            self.numeric & set(names),
            self.keys,
            self.simulated,
        )

    def area_of(self) -> Ints:
        """Return the area of every person."""
        return np.repeat(np.arange(len(self.areas)), np.diff(self.starts))


def read_records(path: Path, area: str | None = None) -> Records:
    """Read a file of persons, Parquet or CSV.

    Parameters
    ----------
    path : Path
        The file.
    area : str, optional
        The column of the areas; by default one of the usual names.

    Raises
    ------
    InputError
        Where it cannot be read, or is no file of persons.
    """
    table = _table(path)
    where = _area_column(table, path, area)
    if not table.height:
        raise InputError(f"{path} has no rows: there are no persons in it.")
    simulated = _is_simulated(path, table)
    names = table[where].cast(pl.String)
    if names.null_count():
        raise InputError(f"{path}: {names.null_count():,} persons have no {where}.")
    order = names.arg_sort()
    names = names.gather(order)
    areas = names.unique(maintain_order=True)
    starts = np.append(np.asarray(names.search_sorted(areas), dtype=np.int64), len(names))
    values, codes, numeric = {}, {}, set()
    for name in table.columns:
        if name in (where, KEY):
            continue
        column = table[name].gather(order)
        values[name], codes[name], number = _coded(column, name, path)
        if number:
            numeric.add(name)
    if not values:
        raise InputError(f"{path} has no attributes of persons beside {where}.")
    keys = None
    if KEY in table.columns:
        keys = (table[KEY].gather(order).cast(pl.Float64).to_numpy() * 2.0**64).astype(np.uint64)
    return Records(str(path), tuple(areas), starts, values, codes, frozenset(numeric), keys, simulated)


def _table(path: Path) -> pl.DataFrame:
    if not path.is_file():
        raise InputError(f"there is no file {path}.")
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            return read_parquet(path, path.stat().st_size)
        return pl.read_csv(path, infer_schema_length=100_000)
    except (OSError, pl.exceptions.PolarsError) as problem:
        raise InputError(f"{path} cannot be read as a table of persons: {problem}.") from None


def _area_column(table: pl.DataFrame, path: Path, area: str | None) -> str:
    if area is not None:
        if area not in table.columns:
            raise InputError(f"{path} has no column {area!r}; its columns are {', '.join(table.columns)}.")
        return area
    for name in AREA_NAMES:
        for column in table.columns:
            if column.lower() == name:
                return column
    raise InputError(
        f"{path}: none of its columns ({', '.join(table.columns)}) is called region or area, so it is not known where "
        "persons live. Rename the column."
    )


def _coded(column: pl.Series, name: str, path: Path) -> tuple[tuple[str, ...], Codes, bool]:
    """Return the values of an attribute, the code of every person, and whether values are whole numbers."""
    if column.null_count():
        raise InputError(f"{path}: {column.null_count():,} persons have no {name}; give every person a value.")
    number = column.dtype.is_integer()
    if not number:
        column = column.cast(pl.String)
    distinct = column.unique().sort()
    if number and distinct[0] >= 0 and distinct[-1] < MOST_VALUES:
        # Ages that nobody happens to have are possible all the same.
        distinct = pl.Series(range(int(distinct[-1]) + 1), dtype=column.dtype)
    if len(distinct) > MOST_VALUES:
        raise InputError(
            f"{path}: {name} has {len(distinct):,} different values. Attributes are what tables count; leave out columns "
            "that identify persons."
        )
    codes = np.asarray(distinct.search_sorted(column), dtype=np.int16)
    return tuple(str(value) for value in distinct), codes, number


def _is_simulated(path: Path, table: pl.DataFrame) -> bool:
    """Say whether `simulate` draws exactly these records again, from the seed in the note beside them."""
    note = path.with_name(NOTE)
    if not note.is_file():
        return False
    text = note.read_text(encoding="utf-8", errors="replace")
    told = re.search(r"simulate -o FOLDER --areas (\d+) --seed (\d+) --persons(?: --people (\d+))?", text)
    if told is None or not text.startswith(NOTE_TITLE):
        return False
    areas, seed, people = int(told[1]), int(told[2]), int(told[3] or TYPICAL)
    start = 0
    for block in person_blocks(areas, seed, people):
        drawn = drawn_records(block, keys=KEY in table.columns)
        there = table.slice(start, drawn.height)
        if there.columns != drawn.columns or there.schema != drawn.schema or not there.equals(drawn):
            return False
        start += drawn.height
    return start == table.height
