"""The records behind the counts of a simulated census: the sums of their keys, and their weights in the sample.

Every record has a key, uniform on [0, 1). What a table needs is the sum of the keys of a cell's records, modulo 1. That
sum is uniform as soon as the cell holds one record, and independent of the sums of cells that have no record in common;
so it is drawn once for every group of records that no universe divides, and added up from there, which is exact. A
partition of a universe draws the sums of all parts but one, which follows; a subset that is neither empty nor the whole
has a sum of its own. Sums are kept in units of 2⁻⁶⁴, where 64-bit arithmetic itself is modulo 1.

Persons, households and families are records of different kinds, with keys of their own.

Sample tables count one record in four, each with a weight of about four; weights are gamma, so that sums of weights and
their shares can be drawn as they are. They are calibrated: in every area the weights of the persons (the households, the
families) in the sample come to their number within about one per cent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.simulation.people import Cells, Counts, Floats

Keys = NDArray[np.uint64]

FRACTION = 0.25
"""One record in four is in the sample."""

SHAPE = 16.0
"""The gamma shape of the weights: they vary by a quarter of their mean."""

CALIBRATED = 0.01
"""How near calibration brings the weights of an area to the number of its records, relatively."""

FINE = 2.0**20
"""Estimates are multiples of one over this, so that sums of them are exact."""


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Groups of records: how many there are, what they count for, and the sums of their keys; arrays of one shape.

    `sampled` says whether these are all records, each of which counts for one, or a sample with weights.
    """

    number: Counts
    weight: Floats
    key: Keys
    sampled: bool = False

    def each(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Records:
        """Do the same to all three arrays."""
        return Records(change(self.number), change(self.weight), change(self.key), self.sampled)

    def sum(self, axis: int) -> Records:
        """Take the groups along an axis together."""
        return self.each(lambda values: values.sum(axis))

    def __getitem__(self, which: Any) -> Records:
        """Pick some of the groups."""
        return self.each(lambda values: values[which])

    def __add__(self, other: Records) -> Records:
        """Take groups that have no record in common together."""
        return Records(self.number + other.number, self.weight + other.weight, self.key + other.key, self.sampled)

    def __sub__(self, other: Records) -> Records:
        """Take groups out of those that hold them."""
        return Records(self.number - other.number, self.weight - other.weight, self.key - other.key, self.sampled)


def stacked(parts: list[Records]) -> Records:
    """Put groups side by side, along a new last axis."""
    return Records(
        np.stack([one.number for one in parts], axis=-1),
        np.stack([one.weight for one in parts], axis=-1),
        np.stack([one.key for one in parts], axis=-1),
        parts[0].sampled,
    )


# -- drawing -----------------------------------------------------------------------------------------------------------


def _fine(weight: Floats) -> Floats:
    return np.rint(weight * FINE) / FINE


def drawn_keys(number: Counts, rng: np.random.Generator) -> Keys:
    """Draw the sums of keys of groups that have no record in common; that of no record is 0."""
    return np.where(number > 0, rng.integers(0, (1 << 64) - 1, number.shape, dtype=np.uint64, endpoint=True), np.uint64(0))


def every(number: Counts, rng: np.random.Generator) -> Records:
    """Take all records of some groups: each counts for one."""
    return Records(number, number.astype(np.float64), drawn_keys(number, rng))


def sample_of(records: Records, rng: np.random.Generator) -> Records:
    """Draw a sample of every group, with weights."""
    number = np.asarray(rng.binomial(records.number, FRACTION), dtype=np.int64)
    weight = rng.standard_gamma(SHAPE * number) / (SHAPE * FRACTION)
    key = np.where(number == records.number, records.key, drawn_keys(number, rng))
    return Records(number, _fine(weight), key, sampled=True)


def calibrated(sample: Records, records: Records, rng: np.random.Generator) -> Records:
    """Bring the weights of every area near the number of its records."""
    axes = tuple(range(1, sample.weight.ndim))
    sums, wanted = sample.weight.sum(axes, keepdims=True), records.number.sum(axes, keepdims=True)
    wanted = wanted * np.exp(CALIBRATED * rng.standard_normal(sums.shape))
    factor = np.divide(wanted, sums, out=np.ones_like(sums), where=sums > 0)
    return Records(sample.number, _fine(sample.weight * factor), sample.key, sampled=True)


def parts_of(whole: Records, leaves: Counts, rng: np.random.Generator) -> Records:
    """Deal the records of a universe (areas × sexes) out to the parts of a partition.

    `leaves` says how many records there are in every part in all (areas × sexes × parts), sampled or not.
    """
    number = _dealt(whole.number, leaves, rng) if whole.sampled else leaves
    weight = number.astype(np.float64)
    if whole.sampled:
        weight = rng.standard_gamma(SHAPE * number)
        sums = weight.sum(-1, keepdims=True)
        weight = _fine(weight * np.divide(whole.weight[..., None], sums, out=np.zeros_like(sums), where=sums > 0))
    key = drawn_keys(number, rng)
    # The last part with a record in it makes the sums come to those of the whole; where all are empty, 0 stays 0.
    last = number.shape[-1] - 1 - np.argmax(number[..., ::-1] > 0, axis=-1)[..., None]
    for parts, of_whole in ((weight, whole.weight), (key, whole.key)):
        made_up = np.take_along_axis(parts, last, -1) + of_whole[..., None] - parts.sum(-1, keepdims=True)
        np.put_along_axis(parts, last, made_up, -1)
    return Records(number, weight, key, whole.sampled)


def _dealt(sampled: Counts, leaves: Counts, rng: np.random.Generator) -> Counts:
    """Draw how many of the sampled records are in every part."""
    number = np.zeros_like(leaves)
    left, rest = sampled.copy(), leaves.sum(-1)
    for part in range(leaves.shape[-1]):
        rest -= leaves[..., part]
        number[..., part] = rng.hypergeometric(leaves[..., part], rest, left)
        left -= number[..., part]
    return number


def some_of(whole: Records, true: Counts, some: Counts, rng: np.random.Generator) -> Records:
    """Take a subset of the records of some groups: `some` of the `true` records that there are in all, sampled or not."""
    number, weight = some, some.astype(np.float64)
    if whole.sampled:
        number = np.asarray(rng.hypergeometric(some, true - some, whole.number), dtype=np.int64)
        mine, others = rng.standard_gamma(SHAPE * number), rng.standard_gamma(SHAPE * (whole.number - number))
        both = mine + others
        weight = _fine(whole.weight * np.divide(mine, both, out=np.zeros_like(both), where=both > 0))
    key = np.where(number == whole.number, whole.key, drawn_keys(number, rng))
    return Records(number, weight, key, whole.sampled)


# -- universes ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """The records of some areas.

    - `universes`: By name, as `People.universes`: areas × 2 for persons, areas × 1 for households and families.
    - `leaves`: The parts of core blocks that consist of whole groups of records, by the ID of the block's first row.
    - `sample`: Universes in the sample; empty where there is none.
    """

    universes: dict[str, Records]
    leaves: dict[int, Records]
    sample: dict[str, Records]


def population(cells: Cells, rng: np.random.Generator, *, weighted: bool) -> Population:
    """Draw the records of areas, and a sample of them if so wanted."""
    at_school, teens = every(cells.at_school, rng), every(cells.teens, rng)
    private = every(cells.private, rng)
    for age, some in ((0, at_school), (3, teens)):  # these ages consist of two groups
        others = every(cells.private[:, :, age] - some.number, rng)
        private.key[:, :, age] = some.key + others.key
    residents, institutional = every(cells.residents, rng), every(cells.institutional, rng)
    households, families = every(cells.households, rng), every(cells.families, rng)
    ages = private + residents + institutional
    universes = _private_universes(private, households, families)
    minors, old = private[:, :, :3].sum(2) + teens, private[:, :, 13:].sum(2)
    universes |= {
        "people": ages.sum(2),
        "adults": ages[:, :, 3:].sum(2),
        "noninst": universes["private"] + residents.sum(2),
        "minors": minors,
        "school": minors - private[:, :, 0] + at_school,
    }
    by_age = stacked([minors, universes["private"] - minors - old, old])
    leaves = {8: ages, 50: households, 71: families, 335: by_age, 350: by_age}
    if not weighted:
        return Population(universes, leaves, {})
    drawn = (calibrated(sample_of(whole, rng), whole, rng) for whole in (private, households, families))
    return Population(universes, leaves, _private_universes(*drawn))


def _private_universes(private: Records, households: Records, families: Records) -> dict[str, Records]:
    """Return the universes that consist of private households and of those who live in them."""
    return {
        "private": private.sum(2),
        "private15": private[:, :, 3:].sum(2),
        "private25": private[:, :, 5:13].sum(2),
        "households": households.sum(2),
        "families": families.sum(2),
    }
