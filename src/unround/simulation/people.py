"""The people of dissemination areas: households first, then persons by age and sex, then their families; and their records.

Everything is drawn for many areas at once. Parts are drawn and totals added up, so every sum holds in truth.

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

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

# DA populations in 60 Canadian cities, 2021: quantiles 1 % 194, 5 % 308, 25 % 442, 50 % 552, 75 % 746,
# 95 % 1,541, 99 % 3,356, 99.9 % 8,425; 0.4 % below 40, half of those empty. Two log-normals and a few tiny
# areas come close.
TYPICAL, TYPICAL_SPREAD = 515.0, 0.29
LARGE, LARGE_SPREAD, LARGE_SHARE = 1000.0, 0.72, 0.17
TINY_SHARE, EMPTY_SHARE = 0.004, 0.002

# The age pyramid of those cities, five-year groups up to 95–99, then 100+ (per mille of the people).
AGES = np.array([49, 53, 55, 54, 65, 73, 73, 70, 66, 63, 65, 70, 65, 55, 46, 31, 21, 14, 6.5, 1.8, 0.25])
# The men among them, in per cent; from 85 on they become few.
MALE = np.array([51, 51, 51, 51, 51, 50.5, 50, 49, 49, 48.5, 49, 49, 48.5, 47.5, 46.5, 45, 42.5, 40, 34, 26, 17]) / 100
# How the pyramid of an area leans: old against young, adults without children against families, the very old.
_AGE = np.arange(21)
LEANS = np.stack(
    [
        0.036 * (_AGE - 8.0),
        0.30 * np.exp(-(((_AGE - 5.2) / 1.8) ** 2)) - 0.22 * np.exp(-(((_AGE - 2.0) / 1.3) ** 2)),
        0.25 * np.clip(_AGE - 14, 0, 6) / 6.0,
    ]
)
HOUSEHOLD_SIZES = np.array([0.29, 0.335, 0.155, 0.135, 0.085])  # of one, two, three, four, five persons or more
OLDER = AGES * np.exp(0.25 * np.clip(_AGE - 8, 0, None))  # the pyramid of nursing homes and the like
COLLECTIVE_SHARE = 0.035  # of areas with a large one


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """What the blocks of the profile count, by area."""

    universes: dict[str, Counts]  # counts by name: areas × 2 (men, women) for persons, areas × 1 for households and families
    rows: dict[int, Counts]  # counts of the core rows by characteristic ID, in the same shapes
    land: Floats  # square kilometres
    traits: Floats  # hidden traits by area, which the other blocks lean on too
    cells: Cells  # groups of records that have nobody in common, of which every universe consists


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Groups of records that have nobody in common, by area; persons by sex and age as well (areas × 2 × 21)."""

    private: Counts  # persons in private households
    residents: Counts  # in collective dwellings: whom most tables of languages count, and those in institutions
    institutional: Counts
    at_school: Counts  # of the youngest, those of the age of school; of those from 15 to 19, the minors
    teens: Counts
    households: Counts  # by size: areas × 1 × 5 and areas × 1 × 4
    families: Counts


def _binomial(rng: np.random.Generator, number: Counts, chance: float | Floats) -> Counts:
    return np.asarray(rng.binomial(number, chance), dtype=np.int64)


def _households(target: Counts, rng: np.random.Generator) -> tuple[Counts, Counts]:
    """Return the households of 1, 2, 3, 4 and 5 or more persons, and the persons in the last kind."""
    lean = rng.normal(0.0, 0.22, len(target))
    shares = HOUSEHOLD_SIZES * np.exp(lean[:, None] * (np.arange(5) - 1.5))
    shares /= shares.sum(1, keepdims=True)
    mean = shares @ np.array([1.0, 2.0, 3.0, 4.0, 5.5])
    number = np.where(target > 0, np.maximum(1, np.rint(target / mean)), 0).astype(np.int64)
    sizes = rng.multinomial(number, shares)
    large = 5 * sizes[:, 4] + rng.poisson(0.5 * sizes[:, 4])
    return sizes, large


def _families(sizes: Counts, large: Counts, rng: np.random.Generator) -> dict[str, Counts]:
    """Find the families in the households: at most one in each, couples or single parents."""
    family = _binomial(rng, sizes[:, 1:], np.array([0.80, 0.91, 0.94, 0.93]))
    couple = _binomial(rng, family, np.array([0.80, 0.80, 0.91, 0.93]))
    extra = _binomial(rng, large - 5 * sizes[:, 4], family[:, 3] / np.maximum(sizes[:, 4], 1))
    in_couples = _binomial(rng, extra, couple[:, 3] / np.maximum(family[:, 3], 1))
    single = family - couple
    return {
        "size": family,
        "couples": couple.sum(1),
        "couples_with": couple[:, 1:].sum(1),
        "single": single.sum(1),
        "children_of_couples": couple @ np.array([0, 1, 2, 3]) + in_couples,
        "children_of_single": single @ np.array([1, 2, 3, 4]) + extra - in_couples,
    }


def _ages(number: Counts, shares: Floats, rng: np.random.Generator) -> Counts:
    """Return persons by sex and age (areas × 2 × 21)."""
    by_age = rng.multinomial(number, shares / shares.sum(1, keepdims=True))
    men = _binomial(rng, by_age, MALE)
    return np.stack([men, by_age - men], axis=1)


def _family_positions(private: Counts, families: dict[str, Counts], alone: Counts, rng: np.random.Generator) -> list[Counts]:
    """Deal the men and women of private households out to their places in families.

    Returns spouses, single parents, children of couples, children of single parents, persons alone, with
    relatives and with others, each areas × 2; together they are all of `private`.
    """
    left = private.copy()
    dealt: list[Counts] = []

    def deal(number: Counts, men: Counts) -> None:
        men = np.clip(men, np.maximum(0, number - left[:, 1]), np.minimum(number, left[:, 0]))
        dealt.append(np.stack([men, number - men], axis=1))
        np.subtract(left, dealt[-1], out=left)

    def draw(number: Counts) -> None:
        deal(number, np.asarray(rng.hypergeometric(left[:, 0], left[:, 1], number), dtype=np.int64))

    same_sex = rng.integers(-1, 2, len(alone)) * (rng.random(len(alone)) < 0.3)
    deal(2 * families["couples"], families["couples"] + same_sex)
    deal(families["single"], _binomial(rng, families["single"], 0.21))
    draw(families["children_of_couples"])
    draw(families["children_of_single"])
    draw(alone)
    draw(_binomial(rng, left.sum(1), 0.4))
    dealt.append(left)
    return dealt


def _core_rows(
    sizes: Counts, families: dict[str, Counts], places: list[Counts], rng: np.random.Generator
) -> dict[int, Counts]:
    """Count rows 50–56 and 71–110: households, families, persons by family, kinds of households."""
    households, family = sizes.sum(1), families["size"]
    without = families["couples"] - families["couples_with"]
    wed_with, wed_without = _binomial(rng, families["couples_with"], 0.80), _binomial(rng, without, 0.79)
    rows = {50: households, 71: family.sum(1), 78: family.sum(1), 79: families["couples"], 86: families["single"]}
    rows |= {51 + size: sizes[:, size] for size in range(5)} | {72 + size: family[:, size] for size in range(4)}
    rows |= {80: wed_with + wed_without, 81: wed_with, 82: wed_without}
    rows |= {83: families["couples"] - rows[80], 84: families["couples_with"] - wed_with, 85: without - wed_without}
    rows |= {87: places[1][:, 1], 88: places[1][:, 0]}
    plain_with, plain_without = _binomial(rng, families["couples_with"], 0.92), _binomial(rng, without, 0.95)
    plain_single = _binomial(rng, families["single"], 0.85)
    other = family.sum(1) - plain_with - plain_without - plain_single
    three = _binomial(rng, other, 0.35)
    several = _binomial(rng, other - three, 0.1)
    rows |= {100: households, 101: family.sum(1) - other, 102: plain_with + plain_without, 103: plain_with}
    rows |= {104: plain_without, 105: plain_single, 106: three, 107: several, 108: other - three - several}
    rows |= {109: households - sizes[:, 0] - family.sum(1), 110: sizes[:, 0]}
    counted = {row: count[:, None] for row, count in rows.items()}
    spouses, parents, two, single, alone, relatives, others = places
    counted |= {91: spouses, 92: parents, 94: two, 95: single, 93: two + single, 97: alone, 98: relatives, 99: others}
    counted |= {90: spouses + parents + two + single, 96: alone + relatives + others}
    return counted | {89: counted[90] + counted[96], 56: counted[90] + counted[96]}


def _age_rows(ages: Counts) -> dict[int, Counts]:
    """Count rows 8–33 from 21 ages."""
    rows = {10 + at: ages[:, :, at] for at in range(3)} | {14 + at: ages[:, :, 3 + at] for at in range(10)}
    rows |= {25 + at: ages[:, :, 13 + at] for at in range(4)} | {30 + at: ages[:, :, 17 + at] for at in range(4)}
    rows |= {9: ages[:, :, :3].sum(2), 13: ages[:, :, 3:13].sum(2), 24: ages[:, :, 13:].sum(2)}
    return rows | {29: ages[:, :, 17:].sum(2), 8: ages.sum(2)}


def _targets(number: int, rural: NDArray[np.bool_], rng: np.random.Generator) -> Counts:
    """Draw about how many people live in each area."""
    kind = rng.random(number)
    large = rng.random(number) < LARGE_SHARE
    many, usual = rng.lognormal(np.log(LARGE), LARGE_SPREAD, number), rng.lognormal(np.log(TYPICAL), TYPICAL_SPREAD, number)
    people = np.where(large, many, usual)
    people = np.where(rural, people * rng.lognormal(-0.2, 0.35, number), people)
    people = np.where(kind < TINY_SHARE, rng.integers(1, 40, number), people)
    people = np.where(kind < EMPTY_SHARE, 0, people)
    return np.rint(people).astype(np.int64)


def people(traits: Floats, rural: NDArray[np.bool_], rng: np.random.Generator) -> People:
    """Draw the people of dissemination areas."""
    number = len(rural)
    own_traits = np.sqrt(0.5) * traits + np.sqrt(0.5) * rng.normal(size=traits.shape)
    target = _targets(number, rural, rng)
    sizes, large = _households(target, rng)
    families = _families(sizes, large, rng)
    in_private = sizes[:, :4] @ np.arange(1, 5) + large
    homes = (rng.random(number) < COLLECTIVE_SHARE) & (target > 0)
    collective = np.where(homes, rng.negative_binomial(2, 0.03, number), _binomial(rng, target, 0.002))
    shares = AGES * np.exp(own_traits @ LEANS + rng.normal(0.0, 0.12, (number, 21)))
    private_ages = _ages(in_private, shares, rng)
    collective_ages = _ages(collective, OLDER[None, :], rng)
    ages = private_ages + collective_ages
    private = private_ages.sum(2)
    residents = _binomial(rng, collective_ages, 0.3)
    teens = _binomial(rng, private_ages[:, :, 3], 0.6)
    minors = private_ages[:, :, :3].sum(2) + teens
    households = sizes.sum(1, keepdims=True)
    places = _family_positions(private, families, sizes[:, 0], rng)
    rows = _core_rows(sizes, families, places, rng) | _age_rows(ages)
    vacancy = rng.lognormal(-3.2, 0.6, (number, 1)) * np.where(rural, 3.0, 1.0)[:, None]
    empty = rng.poisson(households * vacancy)
    before = rng.poisson(rows[8].sum(1, keepdims=True) * rng.lognormal(-0.04, 0.1, (number, 1)))
    rows |= {1: rows[8], 2: before, 4: households + empty, 5: households}
    old = private_ages[:, :, 13:].sum(2)
    for first in (335, 350):
        rows |= {first: private, first + 1: minors, first + 3: private - minors - old, first + 4: old}
    too_young = _binomial(rng, private_ages[:, :, 0], 0.9)
    universes = {
        "people": rows[8],
        "adults": ages[:, :, 3:].sum(2),
        "noninst": private + residents.sum(2),
        "private": private,
        "private15": private_ages[:, :, 3:].sum(2),
        "private25": private_ages[:, :, 5:13].sum(2),
        "minors": minors,
        "school": minors - too_young,
        "households": households,
        "families": rows[71],
    }
    land = np.where(rural, rng.lognormal(4.5, 1.6, number), rng.lognormal(-1.8, 1.1, number))
    at_school, institutional = private_ages[:, :, 0] - too_young, collective_ages - residents
    groups = (private_ages, residents, institutional, at_school, teens, sizes[:, None, :], families["size"][:, None, :])
    return People(universes, rows, land, own_traits, Cells(*groups))


Keys = NDArray[np.uint64]

FRACTION = 0.25  # one record in four is in the sample
SHAPE = 16.0  # the gamma shape of the weights: they vary by a quarter of their mean
CALIBRATED = 0.01  # how near calibration brings the weights of an area to the number of its records, relatively
FINE = 2.0**20  # estimates are multiples of one over this, so that sums of them are exact


@dataclass(frozen=True, slots=True, eq=False)
class KeyedRecords:
    """Groups of records: how many there are, what they count for, and the sums of their keys; arrays of one shape.

    `sampled` says whether these are all records, each of which counts for one, or a sample with weights.
    """

    number: Counts
    weight: Floats
    key: Keys
    sampled: bool = False

    def each(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> KeyedRecords:
        """Do the same to all three arrays."""
        return KeyedRecords(change(self.number), change(self.weight), change(self.key), self.sampled)

    def sum(self, axis: int) -> KeyedRecords:
        """Take the groups along an axis together."""
        return self.each(lambda values: values.sum(axis))

    def __getitem__(self, groups: Any) -> KeyedRecords:
        """Pick some of the groups."""
        return self.each(lambda values: values[groups])

    def __add__(self, other: KeyedRecords) -> KeyedRecords:
        """Take groups that have no record in common together."""
        return KeyedRecords(self.number + other.number, self.weight + other.weight, self.key + other.key, self.sampled)

    def __sub__(self, other: KeyedRecords) -> KeyedRecords:
        """Take groups out of those that hold them."""
        return KeyedRecords(self.number - other.number, self.weight - other.weight, self.key - other.key, self.sampled)


def stacked(parts: list[KeyedRecords]) -> KeyedRecords:
    """Put groups side by side, along a new last axis."""
    number, weight, key = (np.stack([getattr(part, name) for part in parts], -1) for name in ("number", "weight", "key"))
    return KeyedRecords(number, weight, key, parts[0].sampled)


# -- drawing -----------------------------------------------------------------------------------------------------------


def _fine(weight: Floats) -> Floats:
    return np.rint(weight * FINE) / FINE


def drawn_keys(number: Counts, rng: np.random.Generator) -> Keys:
    """Draw the sums of keys of groups that have no record in common; that of no record is 0."""
    return np.where(number > 0, rng.integers(0, (1 << 64) - 1, number.shape, dtype=np.uint64, endpoint=True), np.uint64(0))


def every(number: Counts, rng: np.random.Generator) -> KeyedRecords:
    """Take all records of some groups: each counts for one."""
    return KeyedRecords(number, number.astype(np.float64), drawn_keys(number, rng))


def sample_of(records: KeyedRecords, rng: np.random.Generator) -> KeyedRecords:
    """Draw a sample of every group, with weights."""
    number = np.asarray(rng.binomial(records.number, FRACTION), dtype=np.int64)
    weight = rng.standard_gamma(SHAPE * number) / (SHAPE * FRACTION)
    key = np.where(number == records.number, records.key, drawn_keys(number, rng))
    return KeyedRecords(number, _fine(weight), key, sampled=True)


def calibrated(sample: KeyedRecords, records: KeyedRecords, rng: np.random.Generator) -> KeyedRecords:
    """Bring the weights of every area near the number of its records."""
    axes = tuple(range(1, sample.weight.ndim))
    sums, wanted = sample.weight.sum(axes, keepdims=True), records.number.sum(axes, keepdims=True)
    wanted = wanted * np.exp(CALIBRATED * rng.standard_normal(sums.shape))
    factor = np.divide(wanted, sums, out=np.ones_like(sums), where=sums > 0)
    return KeyedRecords(sample.number, _fine(sample.weight * factor), sample.key, sampled=True)


def parts_of(whole: KeyedRecords, leaves: Counts, rng: np.random.Generator) -> KeyedRecords:
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
    return KeyedRecords(number, weight, key, whole.sampled)


def _dealt(sampled: Counts, leaves: Counts, rng: np.random.Generator) -> Counts:
    """Draw how many of the sampled records are in every part."""
    number = np.zeros_like(leaves)
    left, rest = sampled.copy(), leaves.sum(-1)
    for part in range(leaves.shape[-1]):
        rest -= leaves[..., part]
        number[..., part] = rng.hypergeometric(leaves[..., part], rest, left)
        left -= number[..., part]
    return number


def some_of(whole: KeyedRecords, true: Counts, some: Counts, rng: np.random.Generator) -> KeyedRecords:
    """Take a subset of the records of some groups: `some` of the `true` records that there are in all, sampled or not."""
    number, weight = some, some.astype(np.float64)
    if whole.sampled:
        number = np.asarray(rng.hypergeometric(some, true - some, whole.number), dtype=np.int64)
        mine, others = rng.standard_gamma(SHAPE * number), rng.standard_gamma(SHAPE * (whole.number - number))
        both = mine + others
        weight = _fine(whole.weight * np.divide(mine, both, out=np.zeros_like(both), where=both > 0))
    key = np.where(number == whole.number, whole.key, drawn_keys(number, rng))
    return KeyedRecords(number, weight, key, whole.sampled)


# -- universes ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """The records of some areas.

    - `leaves`: The parts of core blocks that consist of whole groups of records, by the ID of the block's first row.
    """

    universes: dict[str, KeyedRecords]  # by name, as `People.universes`
    leaves: dict[int, KeyedRecords]
    sample: dict[str, KeyedRecords]  # universes in the sample; empty where there is none


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


def _private_universes(private: KeyedRecords, households: KeyedRecords, families: KeyedRecords) -> dict[str, KeyedRecords]:
    """Return the universes that consist of private households and of those who live in them."""
    return {
        "private": private.sum(2),
        "private15": private[:, :, 3:].sum(2),
        "private25": private[:, :, 5:13].sum(2),
        "households": households.sum(2),
        "families": families.sum(2),
    }
