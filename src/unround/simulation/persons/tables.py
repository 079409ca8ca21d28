"""The tables that are published from simulated persons: a profile, and tables by several attributes.

A table is a product of axes. An axis is an attribute, or the characteristics of a profile; its codes are groups of values,
totals included: "all", "0 to 14", "married". What a code counts is the set of values that it stands for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from unround.errors import InputError
from unround.simulation.persons.attributes import AGE, OLDEST, SEX, VALUES
from unround.simulation.persons.counting import Margin, Query, margins, query

ALL = "all"
Sums = dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class TableAxis:
    """One axis of a table.

    - `name`: What it is called in the file: an attribute, or "characteristic".
    - `sets`: For every code the attribute that it is about, and the codes of the values that it stands for; an empty
      attribute stands for everyone.
    - `sums`: Totals among its codes, and the parts of each.
    """

    name: str
    sets: Mapping[str, tuple[str, frozenset[int]]]
    sums: Sums


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
    def total(self) -> tuple[str, ...]:
        """The column that counts everyone."""
        return tuple(next(iter(axis.sets)) for axis in self.axes)

    @property
    def queries(self) -> list[Query]:
        """What each column counts."""
        sizes = {name: len(values) for name, values in VALUES.items()}
        found = []
        for column in self.columns:
            held = [axis.sets[code] for axis, code in zip(self.axes, column, strict=True)]
            found.append(query({attribute: values for attribute, values in held if attribute}, sizes))
        return found

    @property
    def margins(self) -> list[Margin]:
        """Its columns, by the attributes that they are about."""
        return margins(self.queries, {name: len(values) for name, values in VALUES.items()})


# -- the axes ---------------------------------------------------------------------------------------------------------


def _values(name: str, *, total: bool = True) -> TableAxis:
    """Return an axis of all values of an attribute, under one total."""
    sets = {ALL: ("", frozenset[int]())} if total else {}
    sets |= {value: (name, frozenset({code})) for code, value in enumerate(VALUES[name])}
    return TableAxis(name, sets, {ALL: VALUES[name]} if total else {})


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
            sums[label] = tuple(parts[one] for one in those)
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
    """Return the tables of these names; all if none are named.

    Raises `InputError` if there is no such table.
    """
    known = {table.name: table for table in TABLES}
    if names is None:
        return TABLES
    for name in names:
        if name not in known:
            raise InputError(f"there is no table of persons called {name!r}: choose {', '.join(known)}.")
    if not names:
        raise InputError(f"name at least one table: {', '.join(known)}.")
    return tuple(known[name] for name in names)
