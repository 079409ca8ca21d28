"""The people of dissemination areas: households first, then persons by age and sex, then their families.

Everything is drawn for many areas at once. Parts are drawn and totals added up, so every sum holds in truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Groups = Any  # counts of groups of records, or the records themselves: what can be summed, added and indexed

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
    cells: Cells  # groups of records that have nobody in common and make up every universe


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
    at_school = private_ages[:, :, 0] - _binomial(rng, private_ages[:, :, 0], 0.9)
    land = np.where(rural, rng.lognormal(4.5, 1.6, number), rng.lognormal(-1.8, 1.1, number))
    of_homes = sizes[:, None, :], families["size"][:, None, :]
    universes = private_universes(private_ages, *of_homes)
    universes |= other_universes(private_ages, residents, collective_ages - residents, at_school, teens)
    cells = Cells(private_ages, residents, collective_ages - residents, at_school, teens, *of_homes)
    return People(universes, rows, land, own_traits, cells)


def private_universes(private: Groups, households: Groups, families: Groups) -> dict[str, Groups]:
    """Return the universes that consist of private households and of those who live in them."""
    return {
        "private": private.sum(2),
        "private15": private[:, :, 3:].sum(2),
        "private25": private[:, :, 5:13].sum(2),
        "households": households.sum(2),
        "families": families.sum(2),
    }


def other_universes(
    private: Groups, residents: Groups, institutional: Groups, at_school: Groups, teens: Groups
) -> dict[str, Groups]:
    """Return the universes that people elsewhere belong to, or a part of an age group alone."""
    ages, minors = private + residents + institutional, private[:, :, :3].sum(2) + teens
    return {
        "people": ages.sum(2),
        "adults": ages[:, :, 3:].sum(2),
        "noninst": private.sum(2) + residents.sum(2),
        "minors": minors,
        "school": minors - private[:, :, 0] + at_school,
    }
