"""The national law: how the attributes of a person depend on each other, learnt from the people of other areas.

Every attribute has a probability given at most three of those before it, chosen by what they tell (BIC). Where few people
have a combination, its probabilities lean on those given one attribute less. Whoever reconstructs an area has this much from
a public sample of records of the country; none of it comes from the area itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, prod

import numpy as np
from numpy.typing import NDArray

from unround.reconstruction.arrays import Law

Codes = NDArray[np.int16]
Floats = NDArray[np.float64]

MOST_PARENTS = 3
MOST_CELLS = 200_000
"""Combinations of an attribute and those that it depends on."""

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


@dataclass(frozen=True, slots=True)
class Dependence:
    """An attribute, and what it depends on, the most telling first."""

    child: str
    parents: tuple[Parent, ...]


def _joint(codes: Mapping[str, Codes], names: Sequence[Parent], sizes: Mapping[str, int]) -> Floats:
    """Count persons by some attributes."""
    place = np.zeros(len(next(iter(codes.values()))), dtype=np.int64)
    for one in names:
        place = place * one.size(sizes) + one.classes(sizes)[codes[one.name]]
    shape = tuple(one.size(sizes) for one in names)
    return np.bincount(place, minlength=prod(shape)).reshape(shape).astype(np.float64)


def _gain(codes: Mapping[str, Codes], child: str, parents: Sequence[Parent], sizes: Mapping[str, int]) -> float:
    """Return the log likelihood of an attribute given others, less what its parameters cost."""
    table = _joint(codes, [*parents, Parent(child)], sizes).reshape(-1, sizes[child])
    whole = table.sum(1, keepdims=True)
    share = table / np.where(whole > 0, whole, 1.0)
    told = float((table[table > 0] * np.log(share[table > 0])).sum())
    # Combinations that nobody has need no parameters.
    needed = float((whole > 0).sum()) * (sizes[child] - 1)
    return told - 0.5 * log(max(float(table.sum()), 2.0)) * needed


def dependences(codes: Mapping[str, Codes], sizes: Mapping[str, int]) -> list[Dependence]:
    """Choose what every attribute depends on; attributes with many values come first."""
    order = sorted(sizes, key=lambda name: (-sizes[name], name))
    found = []
    for at, child in enumerate(order):
        known = [Parent(name) for name in order[:at]]
        known += [Parent(name, BAND) for name in order[:at] if sizes[name] > FEW]
        found.append(Dependence(child, tuple(_chosen(codes, child, known, sizes))))
    return found


def _chosen(codes: Mapping[str, Codes], child: str, known: Sequence[Parent], sizes: Mapping[str, int]) -> list[Parent]:
    """Choose parents one by one, as long as they tell more than they cost."""
    parents: list[Parent] = []
    best = _gain(codes, child, parents, sizes)
    while len(parents) < MOST_PARENTS:
        tried = {}
        for other in known:
            cells = prod(one.size(sizes) for one in (*parents, other)) * sizes[child]
            if cells <= MOST_CELLS and all(other.name != one.name for one in parents):
                tried[other] = _gain(codes, child, [*parents, other], sizes)
        if not tried or max(tried.values()) <= best:
            return parents
        parents.append(max(tried, key=lambda one: tried[one]))
        best = tried[parents[-1]]
    return parents


def _conditional(codes: Mapping[str, Codes], one: Dependence, sizes: Mapping[str, int]) -> Floats:
    """Return the probability of an attribute given others, the last axis its values."""
    own = _joint(codes, [Parent(one.child)], sizes)
    found: Floats = (own + 0.5 / sizes[one.child]) / (own.sum() + 0.5)
    for number in range(1, len(one.parents) + 1):
        table = _joint(codes, [*one.parents[:number], Parent(one.child)], sizes)
        lean = LEAN * sizes[one.child] ** 0.5
        found = (table + lean * found[..., None, :]) / (table.sum(-1, keepdims=True) + lean)
    return found


def fit(codes: Mapping[str, Codes], names: Sequence[str], sizes: Mapping[str, int]) -> Law:
    """Fit the law to some people; `names` is the order of attributes in a record."""
    chosen = dependences(codes, sizes)
    width, most = len(names), max(sizes.values())
    at = {name: place for place, name in enumerate(names)}
    step = np.zeros((width, width, most), dtype=np.int32)
    base, logs, sums, start = [], [], [], 0
    for f, one in enumerate(chosen):
        table = _conditional(codes, one, sizes)
        stride = 1
        for each in (Parent(one.child), *reversed(one.parents)):
            step[f, at[each.name], : sizes[each.name]] = stride * each.classes(sizes)
            stride *= each.size(sizes)
        base.append(start)
        logs.append(np.log(table).ravel())
        sums.append(np.cumsum(table, axis=-1).ravel())
        start += table.size
    child = np.array([at[one.child] for one in chosen], dtype=np.int64)
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
