"""The truth: the records behind the tables, one row per person; the national law, learnt from them; arrays for the chain.

Records and counts are whole numbers on disk, a row for every area or person: areas may be many, and only a few are in memory
at a time.

The law says how the attributes of a person depend on each other. Every attribute has a probability given at most three of
those before it, chosen by what they tell (BIC). Where few people have a combination, its probabilities lean on those given
one attribute less. Whoever reconstructs an area has this much from a public sample of records of the country; none of it
comes from the area itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log, prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError
from unround.output import array_on_disk, text_of
from unround.simulation.files import NOTE_TITLE
from unround.simulation.persons import KEY, TYPICAL, PersonBlock, person_blocks
from unround.simulation.persons import records as drawn_records
from unround.tables import NOTE
from unround.tables.delimited import fault_in

Int16s = NDArray[np.int16]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


class Law(NamedTuple):
    """The law as arrays: one factor per attribute, its probability given the attributes that it depends on.

    `step[k, v, f]` is what value v of attribute k adds to the place of a person in factor f, which begins at `base[f]` in
    `log` and, cumulated over the values of its attribute, in `sums`. Factor f is about attribute `child[f]`, and `factor` is
    the other way round. Attribute k is in factors of[first[k]:first[k + 1]].
    """

    child: Int64s
    factor: Int64s
    base: Int64s
    step: Int32s
    log: Floats
    sums: Floats
    sizes: Int64s
    first: Int64s
    of: Int64s


class Tables(NamedTuple):
    """The published columns as arrays, by margins.

    `step[k, v, m]` is what value v of attribute k adds to an atom of margin m. Atoms are numbered through all margins, those
    of margin m from `base[m]` on; atom a belongs to columns held[starts[a]:starts[a + 1]], in ascending order. Attribute k
    is in margins of[first[k]:first[k + 1]].
    """

    base: Int64s
    step: Int32s
    starts: Int64s
    held: Int32s
    first: Int64s
    of: Int64s
    columns: int


class State(NamedTuple):
    """A world: the values of every person, their places in the factors and atoms in the margins, and all counts.

    `rows` are the windows of the columns of this area: the lowest count, the number of counts, and where they start in the
    table of logarithms; a size of 0 says that nothing is known of a column. `gains` are the changes if a count were one
    more, and one less, each in two parts: of the log likelihood within the window, and of the steps outside of it.
    """

    values: Int16s
    places: Int32s
    atoms: Int32s
    counts: Int32s
    rows: Int32s
    log: Floats
    gains: Singles


class Schedule(NamedTuple):
    """How long to run: moves per person before the first world and between worlds, and β from the lowest to the highest."""

    first: int
    between: int
    worlds: int
    low: float
    high: float


Codes = NDArray[np.int16]


MOST_PARENTS = 3
MOST_CELLS = 200_000  # combinations of an attribute and those that it depends on

LEAN = 4.0
"""So many people, for every value of an attribute, weigh what is known of a combination as much as what is known of it with
one attribute less."""


FEW, BAND = 25, 5
"""An attribute of more values than the first is also looked at in bands of so many neighbours: ages, in five years."""


@dataclass(frozen=True, slots=True)
class Parent:
    """What an attribute depends on: another one, by single values or in bands of neighbouring values."""

    name: str
    band: int = 1

    def classes(self, sizes: Mapping[str, int]) -> NDArray[np.int64]:
        """Return the band of every value."""
        return np.arange(sizes[self.name], dtype=np.int64) // self.band

    def size(self, sizes: Mapping[str, int]) -> int:
        """Return how many bands there are."""
        return -(-sizes[self.name] // self.band)


def _joint(codes: Mapping[str, Codes], names: Sequence[Parent], sizes: Mapping[str, int]) -> Floats:
    """Count persons by some attributes."""
    place = np.zeros(len(next(iter(codes.values()))), dtype=np.int64)
    for parent in names:
        place = place * parent.size(sizes) + parent.classes(sizes)[codes[parent.name]]
    shape = tuple(parent.size(sizes) for parent in names)
    return np.bincount(place, minlength=prod(shape)).reshape(shape).astype(np.float64)


def _gain(codes: Mapping[str, Codes], child: str, parents: Sequence[Parent], sizes: Mapping[str, int]) -> float:
    """Return the log likelihood of an attribute given others, less what its parameters cost."""
    table = _joint(codes, [*parents, Parent(child)], sizes).reshape(-1, sizes[child])
    whole = table.sum(1, keepdims=True)
    share = table / np.where(whole > 0, whole, 1.0)
    likelihood = float((table[table > 0] * np.log(share[table > 0])).sum())
    # Combinations that nobody has need no parameters.
    needed = float((whole > 0).sum()) * (sizes[child] - 1)
    return likelihood - 0.5 * log(max(float(table.sum()), 2.0)) * needed


def dependences(codes: Mapping[str, Codes], sizes: Mapping[str, int]) -> dict[str, list[Parent]]:
    """Choose what every attribute depends on, the most telling first; attributes with many values come first."""
    order = sorted(sizes, key=lambda name: (-sizes[name], name))
    chosen = {}
    for at, child in enumerate(order):
        known = [Parent(name) for name in order[:at]]
        known += [Parent(name, BAND) for name in order[:at] if sizes[name] > FEW]
        chosen[child] = _chosen(codes, child, known, sizes)
    return chosen


def _chosen(codes: Mapping[str, Codes], child: str, known: Sequence[Parent], sizes: Mapping[str, int]) -> list[Parent]:
    """Choose parents one by one, as long as they tell more than they cost."""
    parents: list[Parent] = []
    best = _gain(codes, child, parents, sizes)
    while len(parents) < MOST_PARENTS:
        tried = {}
        for other in known:
            cells = prod(parent.size(sizes) for parent in (*parents, other)) * sizes[child]
            if cells <= MOST_CELLS and all(other.name != parent.name for parent in parents):
                tried[other] = _gain(codes, child, [*parents, other], sizes)
        if not tried or max(tried.values()) <= best:
            return parents
        parents.append(max(tried, key=lambda parent: tried[parent]))
        best = tried[parents[-1]]
    return parents


def _conditional(codes: Mapping[str, Codes], child: str, parents: Sequence[Parent], sizes: Mapping[str, int]) -> Floats:
    """Return the probability of an attribute given others, the last axis its values."""
    alone = _joint(codes, [Parent(child)], sizes)
    shares: Floats = (alone + 0.5 / sizes[child]) / (alone.sum() + 0.5)
    for number in range(1, len(parents) + 1):
        table = _joint(codes, [*parents[:number], Parent(child)], sizes)
        lean = LEAN * sizes[child] ** 0.5
        shares = (table + lean * shares[..., None, :]) / (table.sum(-1, keepdims=True) + lean)
    return shares


def fit(codes: Mapping[str, Codes], names: Sequence[str], sizes: Mapping[str, int]) -> Law:
    """Fit the law to some people; `names` is the order of attributes in a record."""
    chosen = dependences(codes, sizes)
    width, most = len(names), max(sizes.values())
    at = {name: place for place, name in enumerate(names)}
    step = np.zeros((width, width, most), dtype=np.int32)
    base, logs, sums, start = [], [], [], 0
    for f, (attribute, parents) in enumerate(chosen.items()):
        table = _conditional(codes, attribute, parents, sizes)
        stride = 1
        for each in (Parent(attribute), *reversed(parents)):
            step[f, at[each.name], : sizes[each.name]] = stride * each.classes(sizes)
            stride *= each.size(sizes)
        base.append(start)
        logs.append(np.log(table).ravel())
        sums.append(np.cumsum(table, axis=-1).ravel())
        start += table.size
    child = np.array([at[attribute] for attribute in chosen], dtype=np.int64)
    factor = np.empty(width, dtype=np.int64)
    factor[child] = np.arange(width)
    return Law(
        child,
        factor,
        np.array(base, dtype=np.int64),
        np.ascontiguousarray(step.transpose(1, 2, 0)),
        np.concatenate(logs),
        np.concatenate(sums),
        np.array([sizes[name] for name in names], dtype=np.int64),
        *by_attribute(step),
    )


def flat(names: Sequence[str], sizes: Mapping[str, int]) -> Law:
    """Return the law by which all records are equally likely, for a single area without others to learn from."""
    return fit({name: np.zeros(0, dtype=np.int16) for name in names}, names, sizes)


def by_attribute(step: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return in which factors (or margins) each attribute is: where its list begins, and all lists."""
    inside = [np.flatnonzero(step[:, k].any(axis=1)) for k in range(step.shape[1])]
    first = np.cumsum([0, *map(len, inside)])
    return first.astype(np.int64), np.concatenate([*inside, np.zeros(0)]).astype(np.int64)


Ints = NDArray[np.int64]

AT_ONCE = 256  # areas that are in memory at a time where all are gone through


Rows = NDArray[Any]
"""Rows of whole numbers in a file; no more of it is in memory than is looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class CountTable:
    """Counts of all areas: some columns of a file."""

    rows: Rows  # one row for every area
    columns: Ints  # the columns that are used, in their order

    def picked(self, kept: Sequence[int]) -> CountTable:
        """Pick some columns."""
        return CountTable(self.rows, self.columns[np.array(kept, dtype=np.int64)])

    def __getitem__(self, areas: int | slice | Ints) -> Ints:
        """Return the counts of an area, or of several: areas × columns."""
        return np.asarray(self.rows[areas][..., self.columns], dtype=np.int64)

    def blocks(self) -> Iterator[tuple[slice, Ints]]:
        """Go through all areas, some at a time: which these are, and their counts."""
        for start in range(0, len(self.rows), AT_ONCE):
            here = slice(start, start + AT_ONCE)
            yield here, self[here]


AREA_NAMES = ("region", "area", "geo", "code", "geocode", "geo_code", "geouid", "dguid")
"""Columns called so hold the areas of a file of persons."""

MOST_VALUES = 1_000  # values of an attribute: one with more identifies persons, and is published in no table

AT_ONCE_PEOPLE, AT_ONCE_TEXT = 100_000, 20_000
"""Persons that are in memory at a time where all are gone through: as codes, and as the text of their values."""

MOST_RECORDS = 1 << 44  # combinations of all attributes, so that a record and its number fit into 63 bits


@dataclass(frozen=True, slots=True, eq=False)
class PersonRecords:
    """Persons with coded attributes, in the order of their areas; the persons themselves are on disk."""

    source: str  # the file
    areas: tuple[str, ...]  # the names of the areas, in ascending order
    starts: Ints  # the persons of area a are those from starts[a] to starts[a + 1]
    values: dict[str, tuple[str, ...]]  # the values of every attribute as text, in the order of their codes
    codes: Rows  # the codes of every person
    columns: dict[str, int]  # where the code of each attribute is among them
    numeric: frozenset[str]  # attributes whose values are whole numbers: ages
    simulated: bool  # whether `unround simulate` draws exactly these records again

    @property
    def sizes(self) -> dict[str, int]:
        """How many values each attribute has."""
        return {name: len(values) for name, values in self.values.items()}

    @property
    def people(self) -> int:
        """How many persons there are."""
        return int(self.starts[-1])

    def only(self, names: Sequence[str]) -> PersonRecords:
        """Keep some attributes, in this order."""
        values = {name: self.values[name] for name in names}
        return replace(self, values=values, numeric=self.numeric & set(names))

    def codes_of(self, first: int, last: int) -> dict[str, Codes]:
        """Return the codes of the persons of some areas, by attribute: those from one area to before another."""
        return self.codes_at(slice(int(self.starts[first]), int(self.starts[last])))

    def codes_at(self, persons: slice | Ints) -> dict[str, Codes]:
        """Return the codes of some persons, by attribute."""
        codes = self.codes[persons]
        return {name: np.array(codes[:, self.columns[name]]) for name in self.values}

    def cuts(self) -> Iterator[tuple[int, int]]:
        """Cut the areas into blocks of few areas and few people: the first of each, and the first after it."""
        first, areas = 0, len(self.areas)
        while first < areas:
            last = int(np.searchsorted(self.starts, self.starts[first] + AT_ONCE_PEOPLE, side="right")) - 1
            last = min(max(last, first + 1), first + AT_ONCE, areas)
            yield first, last
            first = last


def read_records(path: Path, folder: Path) -> PersonRecords:
    """Read a file of persons, Parquet or CSV, and put the codes of their attributes on disk."""
    if not path.is_file():
        raise InputError(f"there is no file {path}.")
    try:
        table = _table(path, folder)
        where = _area_column(table, path)
        if not table.height:
            raise InputError(f"{path} has no rows: there are no persons in it.")
        simulated = _is_simulated(path, table)
        people, seen = _surveyed(table, where, path)
        return _on_disk(table, where, path, folder, people, seen, simulated=simulated)
    except pl.exceptions.PolarsError as problem:
        raise InputError(f"{path} cannot be read as a table of persons: {problem}.") from None


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """A file of persons; a few are read at a time."""

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
    """Open a file of persons; text is written again as Parquet, where any rows can be read."""
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
            different = _plain(block[name]).unique()
            seen[name] = pl.concat([seen[name], different]).unique() if name in seen else different
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
) -> PersonRecords:
    """Go through all persons again, and put each with the others of the area, in the order of the file."""
    areas = pl.Series(sorted(people), dtype=pl.String)
    starts = np.concatenate([[0], np.cumsum([people[area] for area in areas])]).astype(np.int64)
    codes = array_on_disk(folder / "persons.bin", (table.height, len(seen)), "i2")
    free = starts[:-1].copy()
    for block in table.blocks():
        area = np.asarray(areas.search_sorted(block[where].cast(pl.String)), dtype=np.int64)
        order = np.argsort(area, kind="stable")
        here, begin, number = np.unique(area[order], return_index=True, return_counts=True)
        place = np.arange(len(area)) + np.repeat(free[here] - begin, number)
        for at, (name, of) in enumerate(seen.items()):
            codes[place, at] = np.asarray(of.search_sorted(_plain(block[name])), np.int16)[order]
        free[here] += number
    values = {name: tuple(str(value) for value in of) for name, of in seen.items()}
    numeric = frozenset(name for name, of in seen.items() if of.dtype.is_integer())
    columns = {name: at for at, name in enumerate(seen)}
    return PersonRecords(str(path), tuple(areas), starts, values, codes, columns, numeric, simulated)


def _area_column(table: _Table, path: Path) -> str:
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
    """Return whether `simulate` draws exactly these records again, from the seed in the note beside them."""
    note = path.with_name(NOTE)
    if not note.is_file():
        return False
    text = text_of(note)
    command = re.search(r"simulate -o FOLDER --areas (\d+) --seed (\d+)(?=.* --persons\b)(?:.* --people (\d+))?", text)
    if command is None or not text.startswith(NOTE_TITLE):
        return False
    areas, seed, people = int(command[1]), int(command[2]), int(command[3] or TYPICAL)
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
        few = slice(first, first + AT_ONCE_TEXT)
        codes = {name: values[few] for name, values in block.codes.items()}
        yield PersonBlock(block.first, block.area[few], codes, block.keys[few], block.areas)
