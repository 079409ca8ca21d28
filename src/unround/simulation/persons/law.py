"""START HERE: the people of simulated areas, drawn household by household.

Areas differ as real ones do: every area leans towards old or young people, towards families, towards the other language,
towards immigrants and towards long education, and half of each lean it shares with its neighbours. People of a household
resemble each other: couples are of similar age, children are born where their parents are, language and religion run in
households. Some areas have a home for old people or a residence of students.

Every block of areas has random numbers of its own, so that areas can be drawn again without those before them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.simulation.persons.attributes import AGE, OLDEST, SEX, VALUES

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = NDArray[np.int16]

BLOCK = 500
"""Areas that are drawn together."""

NEIGHBOURS = 20
"""Areas that share half of each of their leans."""

TYPICAL, SPREAD = 400, 0.35
"""People in an area: the middle, and the spread of its logarithm."""

_ADULT = 18
_STREAM = 22
ALONE, COUPLE, FAMILY, LONE_PARENT, SHARED = range(5)
OLDER, FAMILIES, FRENCH, NEWCOMERS, LEARNED = range(5)
MEN, WOMEN = range(2)
NEVER, MARRIED, COMMON_LAW, SEPARATED, DIVORCED, WIDOWED = range(6)

_PYRAMID = np.interp(np.arange(_ADULT, 96), [18, 25, 35, 50, 60, 75, 85, 95], [1.0, 3.0, 3.6, 3.6, 3.8, 2.6, 1.3, 0.15])
_KINDS = {  # logits of kinds of households by the age of their first person
    "ages": np.array([18, 30, 45, 60, 80, 95]),
    "logits": np.array(
        [
            [0.2, -0.6, -2.0, -1.6, 1.0],
            [0.2, 0.1, 0.8, -0.9, -0.7],
            [0.0, -0.4, 1.6, -0.1, -1.6],
            [0.3, 0.9, -0.3, -1.3, -1.8],
            [0.8, 0.7, -2.8, -2.4, -2.2],
            [1.2, 0.1, -4.0, -3.0, -2.2],
        ]
    ),
}
_BORN = np.array([0.55, -0.9, -1.9, -1.3, -2.3, -2.8])
_BORN_LEAN = np.array([-0.5, 0.0, 0.35, 1.1, 0.5, 0.6])
_SPEAKS = np.array(  # by birthplace
    [
        [2.6, 0.6, -2.6, -3.2, -1.2],
        [2.4, 0.3, -2.8, -3.4, -1.2],
        [0.6, -0.6, -5.0, -6.0, 1.2],
        [0.0, -3.0, 0.9, 0.5, 0.9],
        [0.5, -0.5, -4.0, -6.0, 1.4],
        [0.4, 0.6, -5.0, -5.0, 1.0],
    ]
)
_BELIEVES = np.array(  # by birthplace
    [
        [1.0, 1.1, -2.6, -2.8, -2.0],
        [1.1, 1.0, -2.6, -2.8, -2.0],
        [0.3, 1.4, -1.4, -4.0, -0.8],
        [0.2, 0.2, 0.6, 0.7, -0.4],
        [-0.2, 1.9, -3.0, -1.6, -1.4],
        [-1.4, 1.2, 1.2, -2.2, -1.4],
    ]
)


@dataclass(frozen=True, slots=True, eq=False)
class PersonBlock:
    """The people of some areas, in the order of their areas.

    - `first`: The number of the first area.
    - `area`: In which area of the block each person lives.
    - `codes`: The code of every person, by attribute.
    - `keys`: The key of every person's record, in units of 2⁻⁶⁴.
    - `areas`: How many areas there are in the block.
    """

    first: int
    area: Ints
    codes: dict[str, Codes]
    keys: NDArray[np.uint64]
    areas: int


def person_blocks(areas: int, seed: int, people: int = TYPICAL) -> Iterator[PersonBlock]:
    """Draw the people of so many areas, block by block; `people` live in a typical one."""
    for number in range(-(-areas // BLOCK)):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM, number)))
        # A block is always drawn whole, so that a smaller census is the beginning of a larger one.
        whole = _block(BLOCK, people, rng)
        yield _first_areas(whole, number * BLOCK, min(BLOCK, areas - number * BLOCK))


def _first_areas(block: PersonBlock, first: int, areas: int) -> PersonBlock:
    """Keep the people of the first areas of a block."""
    kept = block.area < areas
    codes = {name: values[kept] for name, values in block.codes.items()}
    return PersonBlock(first, block.area[kept], codes, block.keys[kept], areas)


def region_name(number: int) -> str:
    """Return what an area is called.

    Examples
    --------
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
    area = np.concatenate([one["area"] for one in parts])
    order = np.lexsort((rng.random(len(area)), area))  # within an area, in no order
    codes = {name: np.concatenate([one[name] for one in parts])[order].astype(np.int16) for name in VALUES}
    keys = rng.integers(0, (1 << 64) - 1, len(area), dtype=np.uint64, endpoint=True)
    return PersonBlock(0, area[order], codes, keys, areas)


# -- households -------------------------------------------------------------------------------------------------------


def _private(area: Ints, leans: Floats, rng: np.random.Generator) -> dict[str, Ints]:
    """Draw the people of private households, given the area of each household."""
    lean = leans[area]
    ages = np.arange(_ADULT, 96)
    older = np.cumsum(_PYRAMID * np.exp(0.45 * leans[:, OLDER, None] * (ages - 50) / 20), axis=1)
    head_age = _ADULT + _by_row(older, area, rng)
    logits = np.stack([np.interp(head_age, _KINDS["ages"], _KINDS["logits"][:, kind]) for kind in range(5)], axis=1)
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
        own = _softmax(_BORN + lean[:, NEWCOMERS, None] * _BORN_LEAN, rng)
        born = np.where(rng.random(number) < 0.78, head, own)
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
    found = np.empty(len(row), dtype=np.int64)
    wanted = rng.random(len(row)) * cumulated[row, -1]
    for start in range(0, len(row), 50_000):
        few = slice(start, start + 50_000)
        found[few] = (cumulated[row[few]] < wanted[few, None]).sum(1)
    return found
