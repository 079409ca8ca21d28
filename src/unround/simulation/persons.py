"""Simulated persons, drawn household by household, and tables published from them: a profile, and tables by attributes.

A query names sets of values of some attributes; it counts the persons who have one of them in each. Queries about the same
attributes are answered together: values that no query tells apart form a class, a combination of classes is an atom, and
every query is a set of atoms.

Areas differ as real ones do: every area leans towards old or young people, towards families, towards the other language,
towards immigrants and towards long education, and half of each lean it shares with its neighbours. People of a household
resemble each other: couples are of similar age, children are born where their parents are, language and religion run in
households. Some areas have a home for old people or a residence of students.

Every block of areas has random numbers of its own, so that areas can be drawn again without those before them.

A table is a product of axes. An axis is an attribute, or the characteristics of a profile; its codes are groups of values,
totals included: "all", "0 to 14", "married". What a code counts is the set of values that it stands for.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import ArgumentError, InputError
from unround.mechanisms import HIDDEN, Exact, Mechanism, Transition, mechanism
from unround.mechanisms.base import keyable
from unround.options import Simulate
from unround.output import output_folder
from unround.simulation import Simulated
from unround.simulation.files import finished, older_simulation, toml_sums
from unround.simulation.keyed import ONE
from unround.tables.written import TidyWriter, tidy_toml

AGE, SEX = "age", "sex"
OLDEST = 100  # ages are single years; this one stands for itself and all above

AREA, KEY = "region", "key"
"""The columns of a file of persons that are not attributes: where a person lives, and the person's key."""

_LAW = tomllib.loads(Path(__file__).with_name("persons.toml").read_text(encoding="utf-8"))

VALUES: Mapping[str, tuple[str, ...]] = {
    AGE: tuple(str(age) for age in range(OLDEST + 1)),
    **{name: tuple(values) for name, values in _LAW["values"].items()},
}
"""All attributes, each with its values in the order of its codes."""

SIZES = {name: len(values) for name, values in VALUES.items()}

Ints = NDArray[np.int64]
Codes = NDArray[np.int16]

Query = tuple[tuple[str, frozenset[int]], ...]
"""Attributes, in alphabetical order, and the codes of the values that are counted; () counts everyone."""


def query(sets: Mapping[str, frozenset[int]], sizes: Mapping[str, int]) -> Query:
    """Return the query for these sets of values; an attribute whose values are all wanted is left out.

    >>> query({"sex": frozenset({1}), "age": frozenset({0, 1})}, {"sex": 2, "age": 2})
    (('sex', frozenset({1})),)
    """
    return tuple((name, sets[name]) for name in sorted(sets) if len(sets[name]) < sizes[name])


@dataclass(frozen=True, slots=True, eq=False)
class Margin:
    """All queries about the same attributes."""

    attributes: tuple[str, ...]  # those attributes
    classes: tuple[Ints, ...]  # for each the class of every value
    shape: tuple[int, ...]  # how many classes each attribute has
    columns: Ints  # the positions of the queries among all queries
    starts: Ints  # atom a belongs to the queries columns[held[starts[a]:starts[a + 1]]]
    held: Ints

    @property
    def atoms(self) -> int:
        """How many combinations of classes there are."""
        return prod(self.shape)

    def atom_of(self, codes: Mapping[str, Codes]) -> Ints:
        """Return the atom of every person."""
        atom = np.zeros(len(next(iter(codes.values()))), dtype=np.int64)
        for name, classes, size in zip(self.attributes, self.classes, self.shape, strict=True):
            atom = atom * size + classes[codes[name]]
        return atom


def margins(queries: Sequence[Query], sizes: Mapping[str, int]) -> list[Margin]:
    """Group queries by their attributes."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, wanted in enumerate(queries):
        groups.setdefault(tuple(name for name, _ in wanted), []).append(place)
    return [_margin(names, places, queries, sizes) for names, places in groups.items()]


def _margin(names: tuple[str, ...], places: list[int], queries: Sequence[Query], sizes: Mapping[str, int]) -> Margin:
    classes, shape, inside = [], [], []
    for axis, name in enumerate(names):
        distinct = list(dict.fromkeys(queries[place][axis][1] for place in places))
        held_by = np.array([[value in values for values in distinct] for value in range(sizes[name])])
        kinds, kind_of = np.unique(held_by, axis=0, return_inverse=True)
        classes.append(np.asarray(kind_of, dtype=np.int64).ravel())
        shape.append(len(kinds))
        inside.append({values: kinds[:, at] for at, values in enumerate(distinct)})
    atoms = prod(shape)
    pairs = []
    for at, place in enumerate(places):
        member = np.ones(1, dtype=bool)
        for axis in range(len(names)):
            member = (member[:, None] & inside[axis][queries[place][axis][1]][None, :]).ravel()
        pairs.append(np.stack([np.flatnonzero(member), np.full(int(member.sum()), at)]))
    atom, held = np.concatenate(pairs, axis=1)
    order = np.lexsort((held, atom))
    starts = np.searchsorted(atom[order], np.arange(atoms + 1))
    return Margin(names, tuple(classes), tuple(shape), np.array(places), starts.astype(np.int64), held[order])


def joined(grouped: Sequence[Margin]) -> tuple[list[int], Ints, NDArray[np.int32]]:
    """Return the first atom of each margin, if all are numbered through; where an atom's columns begin; and the columns."""
    first = np.cumsum([0, *(margin.atoms for margin in grouped)]).tolist()
    lists = np.cumsum([0, *(len(margin.held) for margin in grouped)])
    starts = [margin.starts[:-1] + start for margin, start in zip(grouped, lists, strict=False)]
    held = [margin.columns[margin.held] for margin in grouped]  # both ascend within a margin
    everything = np.concatenate([*starts, lists[-1:]]).astype(np.int64)
    return first[:-1], everything, np.concatenate([*held, np.zeros(0)]).astype(np.int32)


def counted(
    grouped: Sequence[Margin],
    number: int,
    area: Ints,
    areas: int,
    codes: Mapping[str, Codes],
    weights: NDArray[np.uint64] | None = None,
) -> NDArray[Any]:
    """Answer all queries: areas × queries."""
    answers = np.zeros((areas, number), dtype=np.int64 if weights is None else np.uint64)
    for margin in grouped:
        place = area * margin.atoms + margin.atom_of(codes)
        if weights is None:
            table = np.bincount(place, minlength=areas * margin.atoms)
        else:
            table = np.zeros(areas * margin.atoms, dtype=np.uint64)
            np.add.at(table, place, weights)
        table = table.reshape(areas, margin.atoms)
        atom = np.repeat(np.arange(margin.atoms), np.diff(margin.starts))
        for at, column in enumerate(margin.columns):
            answers[:, column] = table[:, atom[margin.held == at]].sum(1, dtype=answers.dtype)
    return answers


Floats = NDArray[np.float64]


BLOCK = 500  # areas that are drawn together
NEIGHBOURS = 20  # areas that share half of each of their leans
TYPICAL, SPREAD = 400, 0.35  # people in an area: the middle, and the spread of its logarithm

_ADULT = 18
_STREAM = 22
ALONE, COUPLE, FAMILY, LONE_PARENT, SHARED = range(5)
OLDER, FAMILIES, FRENCH, NEWCOMERS, LEARNED = range(5)
MEN, WOMEN = range(2)
NEVER, MARRIED, COMMON_LAW = range(3)

_PYRAMID = np.interp(np.arange(_ADULT, 96), *np.array(_LAW["pyramid"]).T)
_KIND_AGES, _KINDS, _BORN, _BORN_LEAN, _SPEAKS, _BELIEVES = (
    np.array(_LAW["logits"][name]) for name in ("kind_ages", "kinds", "born", "born_lean", "speaks", "believes")
)


@dataclass(frozen=True, slots=True, eq=False)
class PersonBlock:
    """The people of some areas, in the order of their areas."""

    first: int  # the number of the first area
    area: Ints  # in which area of the block each person lives
    codes: dict[str, Codes]  # the code of every person, by attribute
    keys: NDArray[np.uint64]  # the key of every person's record, in units of 2⁻⁶⁴
    areas: int  # how many areas there are in the block


def person_blocks(areas: int, seed: int, people: int = TYPICAL) -> Iterator[PersonBlock]:
    """Draw the people of so many areas, block by block; `people` live in a typical one."""
    for number in range(-(-areas // BLOCK)):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM, number)))
        # A block is always drawn whole, so that a smaller census is the beginning of a larger one.
        block, wanted = _block(BLOCK, people, rng), min(BLOCK, areas - number * BLOCK)
        kept = block.area < wanted
        codes = {name: values[kept] for name, values in block.codes.items()}
        yield PersonBlock(number * BLOCK, block.area[kept], codes, block.keys[kept], wanted)


def region_name(number: int) -> str:
    """Return what an area is called.

    >>> region_name(0)
    'A00001'
    """
    return f"A{number + 1:05}"


def _block(areas: int, people: int, rng: np.random.Generator) -> PersonBlock:
    shared = rng.normal(size=(-(-areas // NEIGHBOURS), 5)).repeat(NEIGHBOURS, axis=0)[:areas]
    leans = np.sqrt(0.5) * shared + np.sqrt(0.5) * rng.normal(size=(areas, 5))
    size = people * rng.lognormal(0.0, SPREAD, areas)
    households = rng.poisson(size / 2.35)
    parts = [_private(np.repeat(np.arange(areas), households), leans, rng), _collective(size, leans, rng)]
    area = np.concatenate([part["area"] for part in parts])
    order = np.lexsort((rng.random(len(area)), area))  # within an area, in no order
    codes = {name: np.concatenate([part[name] for part in parts])[order].astype(np.int16) for name in VALUES}
    keys = rng.integers(0, (1 << 64) - 1, len(area), dtype=np.uint64, endpoint=True)
    return PersonBlock(0, area[order], codes, keys, areas)


# -- households -------------------------------------------------------------------------------------------------------


def _private(area: Ints, leans: Floats, rng: np.random.Generator) -> dict[str, Ints]:
    """Draw the people of private households, given the area of each household."""
    lean = leans[area]
    ages = np.arange(_ADULT, 96)
    older = np.cumsum(_PYRAMID * np.exp(0.45 * leans[:, OLDER, None] * (ages - 50) / 20), axis=1)
    head_age = _ADULT + _by_row(older, area, rng)
    logits = np.stack([np.interp(head_age, _KIND_AGES, _KINDS[:, kind]) for kind in range(5)], axis=1)
    logits[:, [FAMILY, LONE_PARENT]] += 0.6 * lean[:, FAMILIES, None]
    kind = _softmax(logits, rng)
    head_sex = np.where(rng.random(len(area)) < _share_of_women(kind, head_age), WOMEN, MEN)
    coupled = (kind == COUPLE) | (kind == FAMILY)
    gap = rng.normal(np.where(head_sex == MEN, -2.0, 2.0), 4.0)
    spouse_age = np.clip(np.rint(head_age + gap), _ADULT, OLDEST).astype(np.int64)
    spouse_sex = np.where(rng.random(len(area)) < 0.02, head_sex, 1 - head_sex)
    younger = np.where(coupled, np.minimum(head_age, spouse_age), head_age)
    children = _children(kind, younger, lean[:, FAMILIES], rng)
    mates = np.where(kind == SHARED, 1 + rng.binomial(2, 0.35, len(area)), 0)
    size = 1 + coupled + (children >= 0).sum(1) + mates
    unmarried = 1 / (1 + np.exp(-(-1.2 + 0.9 * lean[:, FRENCH] - 0.05 * (head_age - 40))))
    together = np.where(rng.random(len(area)) < unmarried, COMMON_LAW, MARRIED)
    household = _Household(area, lean, _origin(lean, rng), np.minimum(size, 5) - 1)
    at = np.arange(len(area))
    mate = np.repeat(at, mates)
    mate_age = np.clip(np.rint(head_age[mate] + rng.normal(0, 4.0, len(mate))), _ADULT, OLDEST).astype(np.int64)
    house, place = np.nonzero(children >= 0)
    groups = [
        household.people(at, head_age, head_sex, np.where(coupled, together, -1), False, rng),
        household.people(at[coupled], spouse_age[coupled], spouse_sex[coupled], together[coupled], False, rng),
        household.people(mate, mate_age, rng.integers(0, 2, len(mate)), np.full(len(mate), -1), False, rng),
        household.people(house, children[house, place], rng.integers(0, 2, len(house)), np.full(len(house), 0), True, rng),
    ]
    return {name: np.concatenate([group[name] for group in groups]) for name in groups[0]}


def _share_of_women(kind: Ints, age: Ints) -> Floats:
    """Return the chance that the first person of a household is a woman."""
    alone = np.interp(age, [18, 45, 65, 95], [0.45, 0.42, 0.58, 0.78])
    return np.where(kind == LONE_PARENT, 0.79, np.where(kind == ALONE, alone, 0.5))


def _children(kind: Ints, parent: Ints, lean: Floats, rng: np.random.Generator) -> Ints:
    """Draw the ages of the children of each household, −1 for none: households × 5."""
    number = 1 + rng.binomial(4, np.clip(0.22 + 0.05 * lean, 0.05, 0.6))
    first = parent - np.rint(rng.gamma(9.0, 3.2, len(kind))).astype(np.int64)
    gaps = np.cumsum(
        np.concatenate([np.zeros((len(kind), 1), np.int64), rng.integers(1, 5, (len(kind), 4))], axis=1), axis=1
    )
    first = np.where(first < 0, rng.integers(0, 5, len(kind)), first)
    ages = first[:, None] - gaps
    wanted = (kind == FAMILY) | (kind == LONE_PARENT)
    there = wanted[:, None] & (np.arange(5) < number[:, None]) & (ages >= 0) & (ages < 32)
    # A household of parents has a child, at home still if it is grown up.
    there[:, 0] |= wanted & ~there.any(1)
    ages[:, 0] = np.clip(ages[:, 0], 0, 35)
    return np.where(there, ages, -1)


def _origin(lean: Floats, rng: np.random.Generator) -> dict[str, Ints]:
    """Draw what runs in households: where their first person was born, what they speak and believe."""
    born = _softmax(_BORN + lean[:, NEWCOMERS, None] * _BORN_LEAN, rng)
    return {"birthplace": born, "language": _speaks(born, lean, rng), "religion": _softmax(_BELIEVES[born], rng)}


def _speaks(born: Ints, lean: Floats, rng: np.random.Generator) -> Ints:
    logits = _SPEAKS[born]
    logits[:, 1] += 1.3 * lean[:, FRENCH]
    return _softmax(logits, rng)


@dataclass(frozen=True, slots=True, eq=False)
class _Household:
    """What the people of a household have in common."""

    area: Ints
    lean: Floats
    origin: dict[str, Ints]
    size: Ints

    def people(
        self, at: Ints, age: Ints, sex: Ints, marital: Ints, children: bool, rng: np.random.Generator
    ) -> dict[str, Ints]:
        """Draw some people of households `at`; a marital status of −1 is still to be drawn."""
        lean, number = self.lean[at], len(at)
        head = self.origin["birthplace"][at]
        elsewhere = _softmax(_BORN + lean[:, NEWCOMERS, None] * _BORN_LEAN, rng)
        born = np.where(rng.random(number) < 0.78, head, elsewhere)
        if children:
            born = np.where(rng.random(number) < np.where(head > 1, 0.7, 0.85), 0, head)
        language = np.where(rng.random(number) < 0.88, self.origin["language"][at], _speaks(born, lean, rng))
        religion = np.where(rng.random(number) < 0.85, self.origin["religion"][at], _softmax(_BELIEVES[born], rng))
        return {
            "area": self.area[at],
            AGE: age,
            SEX: sex,
            "marital": np.where(marital >= 0, marital, _unmarried(age, sex, rng)),
            "household": self.size[at],
            "language": language,
            "birthplace": born,
            "religion": religion,
            "education": _education(age, sex, lean[:, LEARNED], rng),
        }


def _unmarried(age: Ints, sex: Ints, rng: np.random.Generator) -> Ints:
    """Draw the marital status of people who live without a partner."""
    old = (age - 50) / 10.0
    widowed = -2.6 + 1.25 * old + 0.9 * (sex == WOMEN)
    logits = np.stack([0.6 - 0.75 * old, np.full(len(age), -30.0), np.full(len(age), -30.0), -1.4 - 0.1 * old**2,
                       -0.4 - 0.15 * old**2, widowed], axis=1)  # fmt: skip
    return np.where(age < 20, NEVER, _softmax(logits, rng))


def _education(age: Ints, sex: Ints, lean: Floats, rng: np.random.Generator) -> Ints:
    """Draw the highest certificate: longer for those born later, and in areas that lean so."""
    young = np.clip((60 - age) / 20.0, -2.0, 1.2)
    logits = np.stack([np.full(len(age), -30.0), -0.3 - 0.6 * young - 0.5 * lean, np.full(len(age), 0.3),
                       0.4 + 0.1 * young - 0.2 * (sex == WOMEN), -0.1 + 0.5 * young + 0.8 * lean + 0.15 * (sex == WOMEN)],
                      axis=1)  # fmt: skip
    logits[age < 24, 4] -= 2.0
    logits[age < 18, 1] += 4.0
    return np.where(age < 15, 0, _softmax(logits, rng))


# -- collectives ------------------------------------------------------------------------------------------------------


def _collective(size: Floats, leans: Floats, rng: np.random.Generator) -> dict[str, Ints]:
    """Draw the people of homes for old people and residences of students, which some areas have."""
    groups = []
    for share, low, high, mean, spread, women in ((0.05, 15, 110, 85, 7, 0.7), (0.03, 30, 250, 20, 1.6, 0.52)):
        there = np.flatnonzero((rng.random(len(size)) < share) & (size > 0))
        area = np.repeat(there, np.rint(rng.integers(low, high, len(there)) * size[there] / TYPICAL).astype(np.int64))
        age = np.clip(np.rint(rng.normal(mean, spread, len(area))), _ADULT, OLDEST).astype(np.int64)
        sex = (rng.random(len(area)) < women).astype(np.int64)
        household = _Household(area, leans[area], _origin(leans[area], rng), np.full(len(area), 5))
        at = np.arange(len(area))
        groups.append(household.people(at, age, sex, np.full(len(area), -1), False, rng))
    return {name: np.concatenate([group[name] for group in groups]) for name in groups[0]}


# -- drawing ----------------------------------------------------------------------------------------------------------


def _softmax(logits: Floats, rng: np.random.Generator) -> Ints:
    """Draw a category for every row of logits."""
    weights = np.cumsum(np.exp(logits), axis=1)
    return np.asarray((weights < rng.random((len(weights), 1)) * weights[:, -1:]).sum(1), dtype=np.int64)


def _by_row(cumulated: Floats, row: Ints, rng: np.random.Generator) -> Ints:
    """Draw a category for every item from the row of cumulated weights that it belongs to."""
    drawn = np.empty(len(row), dtype=np.int64)
    wanted = rng.random(len(row)) * cumulated[row, -1]
    for start in range(0, len(row), 50_000):
        few = slice(start, start + 50_000)
        drawn[few] = (cumulated[row[few]] < wanted[few, None]).sum(1)
    return drawn


ALL = "all"
Sums = dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class TableAxis:
    """One axis of a table.

    - `sets`: For every code the attribute that it is about, and the codes of the values that it stands for; an empty
      attribute stands for everyone.
    """

    name: str  # what it is called in the file: an attribute, or "characteristic"
    sets: Mapping[str, tuple[str, frozenset[int]]]
    sums: Sums  # totals among its codes, and the parts of each


@dataclass(frozen=True, slots=True)
class PersonTable:
    """One table: its name, and its axes."""

    name: str
    axes: tuple[TableAxis, ...]

    @property
    def columns(self) -> Iterator[tuple[str, ...]]:
        """All columns of the table: a code on each axis."""
        return product(*(axis.sets for axis in self.axes))

    @property
    def queries(self) -> list[Query]:
        """What each column counts."""
        wanted = []
        for column in self.columns:
            held = [axis.sets[code] for axis, code in zip(self.axes, column, strict=True)]
            wanted.append(query({attribute: values for attribute, values in held if attribute}, SIZES))
        return wanted

    @property
    def margins(self) -> list[Margin]:
        """Its columns, by the attributes that they are about."""
        return margins(self.queries, SIZES)


# -- the axes ---------------------------------------------------------------------------------------------------------


def _values(name: str) -> TableAxis:
    """Return an axis of all values of an attribute, under one total."""
    sets = {value: (name, frozenset({code})) for code, value in enumerate(VALUES[name])}
    return TableAxis(name, {ALL: ("", frozenset[int]())} | sets, {ALL: VALUES[name]})


def _label(low: int, high: int) -> str:
    if low == high:
        return f"{low} years" if low != 1 else "1 year"
    return f"{low} to {high} years" if high < OLDEST else f"{low} years and over"


def _ages(starts: Sequence[int], above: Mapping[int, Sequence[int]] | None = None) -> TableAxis:
    """Return an axis of age groups that begin at these ages; `above` are groups of groups, by where they begin."""
    ends = [*starts[1:], OLDEST + 1]
    parts = {start: _label(start, end - 1) for start, end in zip(starts, ends, strict=True)}
    groups = [(AGE, frozenset(range(start, end))) for start, end in zip(starts, ends, strict=True)]
    sets: dict[str, tuple[str, frozenset[int]]] = {ALL: ("", frozenset())}
    sums: Sums = {}
    if above is None:
        sums[ALL] = tuple(parts.values())
    else:
        for start, those in above.items():
            last = ends[list(starts).index(those[-1])]
            label = _label(start, last - 1)
            sets[label] = (AGE, frozenset(range(start, last)))
            sums[label] = tuple(parts[start] for start in those)
        sums = {ALL: tuple(sums), **sums}
    sets |= dict(zip(parts.values(), groups, strict=True))
    return TableAxis(AGE, sets, sums)


_FIVES = tuple(range(0, 86, 5))
_BROAD = {0: (0, 5, 10), 15: tuple(range(15, 61, 5)), 65: tuple(range(65, 86, 5))}


def _profile() -> TableAxis:
    """Return the characteristics of the profile: every attribute with its own total, one below the other."""
    ages = _ages(_FIVES, _BROAD)
    sets: dict[str, tuple[str, frozenset[int]]] = {"Total - Age": ("", frozenset())}
    sets |= {code: held for code, held in ages.sets.items() if code != ALL}
    sums: Sums = {("Total - Age" if total == ALL else total): parts for total, parts in ages.sums.items()}
    for name in VALUES:
        if name in (AGE, SEX):
            continue
        total = f"Total - {name.capitalize()}"
        sets[total] = ("", frozenset())
        sets |= {value: (name, frozenset({code})) for code, value in enumerate(VALUES[name])}
        sums[total] = VALUES[name]
    return TableAxis("characteristic", sets, sums)


TABLES = (
    PersonTable("profile", (_profile(), _values(SEX))),
    PersonTable("age_sex", (_ages(range(OLDEST + 1)), _values(SEX))),
    PersonTable("age_sex_marital", (_ages((0, 15, 25, 35, 45, 55, 65, 75)), _values(SEX), _values("marital"))),
    PersonTable("age_sex_education", (_ages((0, 15, 25, 35, 45, 55, 65)), _values(SEX), _values("education"))),
    PersonTable("birthplace_language_religion", (_values("birthplace"), _values("language"), _values("religion"))),
    PersonTable("age_household_birthplace", (_ages((0, 15, 25, 45, 65, 85)), _values("household"), _values("birthplace"))),
)
"""All tables that can be published from simulated persons."""


def tables_named(names: Sequence[str] | None) -> tuple[PersonTable, ...]:
    """Return the tables of these names; all if none are named."""
    known = {table.name: table for table in TABLES}
    if names is None:
        return TABLES
    for name in names:
        if name not in known:
            raise InputError(f"there is no table of persons called {name!r}: choose {', '.join(known)}.")
    if not names:
        raise InputError(f"name at least one table: {', '.join(known)}.")
    return tuple(known[name] for name in names)


PERSONS = "persons.parquet"
_PUBLISHING, _CONSTANTS = 23, 24
LARGEST = 99_999  # areas that can be drawn


def records(block: PersonBlock, *, keys: bool = False) -> pl.DataFrame:
    """Return the people of a block as a table, one row per person."""
    names = pl.Series([region_name(block.first + area) for area in range(block.areas)], dtype=pl.String)
    columns = {AREA: names.gather(block.area), AGE: pl.Series(block.codes[AGE])}
    for name, values in VALUES.items():
        if name != AGE:
            columns[name] = pl.Series(values).gather(block.codes[name].astype(np.int64))
    if keys:
        columns[KEY] = pl.Series(block.keys / 2.0**64)
    return pl.DataFrame(columns)


def simulate_persons(given: Simulate) -> Simulated:
    """Write simulated persons, and tables published from them; the number of all people stays exact."""
    if not 1 <= given.areas <= LARGEST:
        raise InputError(f"persons can be drawn for 1 to {LARGEST:,} areas, not {given.areas:,}.")
    how = mechanism(str(given.mechanism or "rounding:5"))
    if given.keys:
        keyable(how)
        if isinstance(how, Transition) and given.constant is not None:
            raise ArgumentError("{constant} is that of rounding: cell keys have none.")
    tables, people = tables_named(given.tables), TYPICAL if given.people is None else given.people
    files = [name for table in tables for name in (f"{table.name}.parquet", f"{table.name}.toml")]
    with output_folder(Path(given.out), "simulate", older_simulation((*files, PERSONS))) as output:
        persons, done = TidyWriter(output.done / PERSONS), 0
        writers = [_TableWriter(output.done, table, how, given.seed, given.constant, keyed=given.keys) for table in tables]
        for block in person_blocks(given.areas, given.seed, people):
            persons.append(records(block, keys=given.keys))
            for writer in writers:
                writer.add(block)
            done += block.areas
            given.progress("Simulating", done, given.areas)
        persons.close()
        for writer in writers:
            writer.close()
        truth = (PERSONS, "the records that the tables count, one row per person")
        typed = f"unround simulate -o FOLDER {given.typed('areas', 'seed')}"
        return finished(output, typed, given.areas, files, truth, sum(writer.cells for writer in writers))


class _TableWriter:
    """One published table, block by block: rounded by keys of records and a constant of the table, or cell by cell."""

    def __init__(
        self, folder: Path, table: PersonTable, how: Mechanism, seed: int, constant: float | None, *, keyed: bool
    ) -> None:
        self._table, self._how, self._seed, self._keyed, self.cells = table, how, seed, keyed, 0
        self._margins, columns = table.margins, list(table.columns)
        self._number = len(columns)
        self._everyone = [at for at, wanted in enumerate(table.queries) if not wanted]
        codes = {axis.name: pl.Series([column[at] for column in columns]) for at, axis in enumerate(table.axes)}
        self._folder, self._rows = folder, TidyWriter(folder / f"{table.name}.parquet", codes)
        chance = np.random.SeedSequence(seed, spawn_key=(_CONSTANTS, *table.name.encode()))
        drawn = np.random.default_rng(chance).integers(0, ONE - 1, dtype=np.uint64, endpoint=True)
        same = 0.0 if isinstance(how, Transition) else constant  # cell keys have no constants
        self._constant = drawn if same is None else np.uint64(int(same * ONE) % ONE)

    def add(self, block: PersonBlock) -> None:
        """Count the people of a block, and publish."""
        about = self._margins, self._number, block.area, block.areas, block.codes
        true = counted(*about).astype(np.int64)
        if self._keyed:
            published = keyable(self._how).publish_keyed(true, counted(*about, block.keys) + self._constant)
        else:
            chance = np.random.SeedSequence(self._seed, spawn_key=(_PUBLISHING, block.first, *self._table.name.encode()))
            published = self._how.publish(true, np.random.default_rng(chance))
        published[:, self._everyone] = true[:, self._everyone]
        self.cells += published.size
        names = [region_name(block.first + area) for area in range(block.areas)]
        self._rows.add(pl.DataFrame({AREA: names}), {"published": (published, published == HIDDEN)})

    def close(self) -> None:
        """Finish the table, and describe it."""
        self._rows.close()
        axes = self._table.axes
        whole = {axis.name: [code for code, (attribute, _) in axis.sets.items() if not attribute] for axis in axes}
        text = tidy_toml(
            "A table of simulated persons, written by `unround simulate --persons`.",
            f"{self._table.name}.parquet",
            default=self._how.name,
            exact=None if isinstance(self._how, Exact) else [whole],
            axes={AREA: {}, **{axis.name: {"sums": toml_sums(axis.sums)} for axis in axes}},
        )
        (self._folder / f"{self._table.name}.toml").write_text(text, encoding="utf-8")
