"""The truth: the records behind the tables, one row per person, and whether `simulate` drew them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError
from unround.reconstruction.ondisk import AT_ONCE, Rows
from unround.simulation.companions import NOTE_TITLE
from unround.simulation.persons.attributes import KEY
from unround.simulation.persons.law import TYPICAL, PersonBlock, person_blocks
from unround.simulation.persons.write import records as drawn_records
from unround.tables import NOTE
from unround.tables.parquet import fault_in

Codes = NDArray[np.int16]
Ints = NDArray[np.int64]

AREA_NAMES = ("region", "area", "geo", "code", "geocode", "geo_code", "geouid", "dguid")
"""Columns called so hold the areas of a file of persons."""

MOST_VALUES = 1_000
"""Values of an attribute: one with more identifies persons, and is published in no table."""

AT_ONCE_PEOPLE, AT_ONCE_TEXT = 100_000, 20_000
"""Persons that are in memory at a time where all are gone through: as codes, and as the text of their values."""

MOST_RECORDS = 1 << 44
"""Combinations of all attributes, so that a record and its number fit into 63 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Persons with coded attributes, in the order of their areas; the persons themselves are on disk.

    - `source`: The file.
    - `areas`: The names of the areas, in ascending order.
    - `starts`: The persons of area a are those from starts[a] to starts[a + 1].
    - `values`: The values of every attribute as text, in the order of their codes; numbers in their own order.
    - `codes`: The codes of every person.
    - `columns`: Where the code of each attribute is among them.
    - `numeric`: Attributes whose values are whole numbers: ages.
    - `keys`: The keys of the records, in units of 2⁻⁶⁴, where the file has them.
    - `simulated`: Whether `unround simulate` draws exactly these records again.
    """

    source: str
    areas: tuple[str, ...]
    starts: Ints
    values: dict[str, tuple[str, ...]]
    codes: Rows
    columns: dict[str, int]
    numeric: frozenset[str]
    keys: Rows | None
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
        values = {name: self.values[name] for name in names}
        return replace(self, values=values, numeric=self.numeric & set(names))

    def codes_of(self, first: int, last: int) -> dict[str, Codes]:
        """Return the codes of the persons of some areas, by attribute: those from one area to before another."""
        return self._by_name(self.codes.read(int(self.starts[first]), int(self.starts[last])))

    def codes_at(self, persons: Ints) -> dict[str, Codes]:
        """Return the codes of some persons, whose places ascend, by attribute."""
        return self._by_name(self.codes.pick(persons))

    def _by_name(self, codes: Codes) -> dict[str, Codes]:
        return {name: np.ascontiguousarray(codes[:, self.columns[name]]) for name in self.values}

    def cuts(self) -> Iterator[tuple[int, int]]:
        """Cut the areas into blocks of few areas and few people: the first of each, and the first after it."""
        first, areas = 0, len(self.areas)
        while first < areas:
            last = int(np.searchsorted(self.starts, self.starts[first] + AT_ONCE_PEOPLE, side="right")) - 1
            last = min(max(last, first + 1), first + AT_ONCE, areas)
            yield first, last
            first = last


def read_records(path: Path, folder: Path, area: str | None = None) -> Records:
    """Read a file of persons, Parquet or CSV, and put the codes of their attributes on disk.

    Raises `InputError` where it cannot be read, or is no file of persons.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}.")
    try:
        table = _table(path, folder)
        where = _area_column(table, path, area)
        if not table.height:
            raise InputError(f"{path} has no rows: there are no persons in it.")
        simulated = _is_simulated(path, table)
        people, seen = _surveyed(table, where, path)
        return _on_disk(table, where, path, folder, people, seen, simulated=simulated)
    except pl.exceptions.PolarsError as problem:
        raise InputError(f"{path} cannot be read as a table of persons: {problem}.") from None


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """A file of persons, of which a few are read at a time."""

    file: pl.LazyFrame
    schema: pl.Schema
    height: int

    @property
    def columns(self) -> list[str]:
        """What its columns are called."""
        return self.schema.names()

    def slice(self, start: int, height: int) -> pl.DataFrame:
        """Return some rows."""
        return self.file.slice(start, height).collect()

    def blocks(self) -> Iterator[pl.DataFrame]:
        """Go through all rows."""
        for start in range(0, self.height, AT_ONCE_TEXT):
            yield self.slice(start, AT_ONCE_TEXT)


def _table(path: Path, folder: Path) -> _Table:
    """Open a file of persons; text is written again as Parquet, of which any rows can be read."""
    try:
        if path.suffix.lower() not in (".parquet", ".pq"):
            again = folder / "persons.parquet"
            pl.scan_csv(path, glob=False, infer_schema_length=100_000).sink_parquet(again, row_group_size=AT_ONCE_PEOPLE)
            path = again
        elif (fault := fault_in(path, path.stat().st_size)) is not None:
            raise InputError(fault)
        file = pl.scan_parquet(path, glob=False)
        return _Table(file, file.collect_schema(), int(file.select(pl.len()).collect().item()))
    except OSError as problem:
        raise InputError(f"{path} cannot be read as a table of persons: {problem}.") from None


def _surveyed(table: _Table, where: str, path: Path) -> tuple[dict[str, int], dict[str, pl.Series]]:
    """Go through all persons once: how many live in each area, and the values of every attribute."""
    names = [name for name in table.columns if name not in (where, KEY)]
    people: dict[str, int] = {}
    seen: dict[str, pl.Series] = {}
    absent = dict.fromkeys((where, *names), 0)
    for block in table.blocks():
        for name in absent:
            absent[name] += block[name].null_count()
        for area, number in block[where].cast(pl.String).value_counts(name="number").iter_rows():
            people[area] = people.get(area, 0) + number
        for name in names:
            own = _plain(block[name]).unique()
            seen[name] = pl.concat([seen[name], own]).unique() if name in seen else own
    if absent[where]:
        raise InputError(f"{path}: {absent[where]:,} persons have no {where}.")
    for name in names:
        if absent[name]:
            raise InputError(f"{path}: {absent[name]:,} persons have no {name}; give every person a value.")
        seen[name] = _values(seen[name], name, path)
    if not names:
        raise InputError(f"{path} has no attributes of persons beside {where}.")
    return people, seen


def _on_disk(
    table: _Table,
    where: str,
    path: Path,
    folder: Path,
    people: dict[str, int],
    seen: dict[str, pl.Series],
    *,
    simulated: bool,
) -> Records:
    """Go through all persons again, and put each with the others of the area, in the order of the file."""
    areas = pl.Series(sorted(people), dtype=pl.String)
    starts = np.concatenate([[0], np.cumsum([people[area] for area in areas])]).astype(np.int64)
    codes = Rows.new(folder / "persons.bin", table.height, len(seen), "i2")
    keys = Rows.new(folder / "keys.bin", table.height, 1, "u8") if KEY in table.columns else None
    free = starts[:-1].copy()
    for block in table.blocks():
        area = np.asarray(areas.search_sorted(block[where].cast(pl.String)), dtype=np.int64)
        order = np.argsort(area, kind="stable")
        own = np.stack([np.asarray(seen[name].search_sorted(_plain(block[name])), np.int16) for name in seen], axis=1)
        _put(codes, own[order], area[order], free)
        if keys is not None:
            _put(keys, (block[KEY].cast(pl.Float64).to_numpy() * 2.0**64).astype(np.uint64)[order, None], area[order], free)
        here, number = np.unique(area, return_counts=True)
        free[here] += number
    values = {name: tuple(str(value) for value in of) for name, of in seen.items()}
    numeric = frozenset(name for name, of in seen.items() if of.dtype.is_integer())
    columns = {name: at for at, name in enumerate(seen)}
    return Records(str(path), tuple(areas), starts, values, codes, columns, numeric, keys, simulated)


def _put(rows: Rows, values: NDArray[Any], area: Ints, free: Ints) -> None:
    """Write the rows of persons, in the order of their areas, to the first free places of these."""
    here, begin = np.unique(area, return_index=True)
    ends = [*begin[1:].tolist(), len(area)]
    with rows.writing() as file:
        for one, start, stop in zip(here.tolist(), begin.tolist(), ends, strict=True):
            rows.put(file, int(free[one]), values[start:stop])


def _area_column(table: _Table, path: Path, area: str | None) -> str:
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


def _plain(column: pl.Series) -> pl.Series:
    """Return an attribute as whole numbers or text."""
    return column if column.dtype.is_integer() else column.cast(pl.String)


def _values(seen: pl.Series, name: str, path: Path) -> pl.Series:
    """Return the values of an attribute in the order of their codes."""
    distinct = seen.sort()
    if distinct.dtype.is_integer() and distinct[0] >= 0 and distinct[-1] < MOST_VALUES:
        # Ages that nobody happens to have are possible all the same.
        distinct = pl.Series(range(int(distinct[-1]) + 1), dtype=distinct.dtype)
    if len(distinct) > MOST_VALUES:
        raise InputError(
            f"{path}: {name} has {len(distinct):,} different values. Attributes are what tables count; leave out columns "
            "that identify persons."
        )
    return distinct


def _is_simulated(path: Path, table: _Table) -> bool:
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
        for few in _pieces(block):
            drawn = drawn_records(few, keys=KEY in table.columns)
            there = table.slice(start, drawn.height)
            if there.columns != drawn.columns or there.schema != drawn.schema or not there.equals(drawn):
                return False
            start += drawn.height
    return start == table.height


def _pieces(block: PersonBlock) -> Iterator[PersonBlock]:
    """Take a block apart: as text, its persons need many times the memory."""
    for first in range(0, len(block.area), AT_ONCE_TEXT):
        own = slice(first, first + AT_ONCE_TEXT)
        codes = {name: values[own] for name, values in block.codes.items()}
        yield PersonBlock(block.first, block.area[own], codes, block.keys[own], block.areas)
