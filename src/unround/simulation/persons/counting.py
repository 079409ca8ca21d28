"""Queries and how they are answered: which persons a column counts, and all counts of many columns at once.

A query names sets of values of some attributes; it counts the persons who have one of them in each. Queries about the same
attributes are answered together: values that no query tells apart form a class, a combination of classes is an atom, and
every query is a set of atoms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Codes = NDArray[np.int16]

Query = tuple[tuple[str, frozenset[int]], ...]
"""Attributes, in alphabetical order, and the codes of the values that are counted; () counts everyone."""


def query(sets: Mapping[str, frozenset[int]], sizes: Mapping[str, int]) -> Query:
    """Return the query for these sets of values; an attribute of which all values are wanted is left out.

    Examples
    --------
    >>> query({"sex": frozenset({1}), "age": frozenset({0, 1})}, {"sex": 2, "age": 2})
    (('sex', frozenset({1})),)
    """
    return tuple((name, sets[name]) for name in sorted(sets) if len(sets[name]) < sizes[name])


@dataclass(frozen=True, slots=True, eq=False)
class Margin:
    """All queries about the same attributes.

    - `attributes`: Those attributes.
    - `classes`: For each the class of every value.
    - `shape`: How many classes each attribute has.
    - `columns`: The positions of the queries among all queries.
    - `starts`, `held`: Atom a belongs to the queries columns[held[starts[a]:starts[a + 1]]].
    """

    attributes: tuple[str, ...]
    classes: tuple[Ints, ...]
    shape: tuple[int, ...]
    columns: Ints
    starts: Ints
    held: Ints

    @property
    def atoms(self) -> int:
        """How many combinations of classes there are."""
        return prod(self.shape)

    def atom_of(self, codes: Mapping[str, Codes]) -> Ints:
        """Return the atom of every person."""
        number = len(next(iter(codes.values())))
        found = np.zeros(number, dtype=np.int64)
        for name, classes, size in zip(self.attributes, self.classes, self.shape, strict=True):
            found = found * size + classes[codes[name]]
        return found


def margins(queries: Sequence[Query], sizes: Mapping[str, int]) -> list[Margin]:
    """Group queries by their attributes."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, one in enumerate(queries):
        groups.setdefault(tuple(name for name, _ in one), []).append(place)
    return [_margin(names, places, queries, sizes) for names, places in groups.items()]


def _margin(names: tuple[str, ...], places: list[int], queries: Sequence[Query], sizes: Mapping[str, int]) -> Margin:
    classes, shape, inside = [], [], []
    for axis, name in enumerate(names):
        distinct = list(dict.fromkeys(queries[place][axis][1] for place in places))
        told = np.array([[value in values for values in distinct] for value in range(sizes[name])])
        kinds, which = np.unique(told, axis=0, return_inverse=True)
        classes.append(np.asarray(which, dtype=np.int64).ravel())
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


def counted(
    grouped: Sequence[Margin],
    number: int,
    area: Ints,
    areas: int,
    codes: Mapping[str, Codes],
    weights: NDArray[np.uint64] | None = None,
) -> NDArray[Any]:
    """Answer all queries: areas × queries."""
    found = np.zeros((areas, number), dtype=np.int64 if weights is None else np.uint64)
    for margin in grouped:
        place = area * margin.atoms + margin.atom_of(codes)
        if weights is None:
            table = np.bincount(place, minlength=areas * margin.atoms)
        else:
            table = np.zeros(areas * margin.atoms, dtype=np.uint64)
            np.add.at(table, place, weights)
        table = table.reshape(areas, margin.atoms)
        own = np.zeros((areas, len(margin.columns)), dtype=found.dtype)
        atom = np.repeat(np.arange(margin.atoms), np.diff(margin.starts))
        for column in range(len(margin.columns)):
            own[:, column] = table[:, atom[margin.held == column]].sum(1, dtype=found.dtype)
        found[:, margin.columns] = own
    return found
