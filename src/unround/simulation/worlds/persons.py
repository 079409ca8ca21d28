"""Worlds of men and women: ages, and living in couples."""

from __future__ import annotations

import numpy as np

from unround.mechanisms.base import FloatArray, IntArray
from unround.simulation.worlds.world import TOTAL, Tree, World

Generator = np.random.Generator

AGES = (*(f"{age} to {age + 4}" for age in range(0, 85, 5)), "85 and over")
AGE_TREE: Tree = {
    TOTAL: ("0 to 14", "15 to 29", "30 to 64", "65 and over"),
    "0 to 14": AGES[:3],
    "15 to 29": AGES[3:6],
    "30 to 64": AGES[6:13],
    "65 and over": AGES[13:],
}

_PYRAMID = np.array([5.2, 5.5, 5.4, 5.6, 6.4, 7.0, 7.1, 6.9, 6.5, 6.3, 6.4, 7.0, 6.8, 5.9, 4.8, 3.4, 2.1, 1.7])
_WOMEN = np.array([0.49] * 5 + [0.5] * 7 + [0.51, 0.52, 0.53, 0.55, 0.58, 0.66])


def _expected(size: FloatArray, tilt: FloatArray) -> FloatArray:
    """Return how many men and women of each age live in areas of some sizes; a tilt above 0 makes an area older."""
    older = np.exp(tilt[:, np.newaxis] * np.linspace(-1, 1, len(AGES)))
    shares = _PYRAMID * older
    people = size[:, np.newaxis] * shares / shares.sum(axis=1, keepdims=True)
    return np.asarray(np.stack([people * (1 - _WOMEN), people * _WOMEN], axis=2))


# -- institutions -----------------------------------------------------------------------------------------------------

PRISONS, HOMES, RESIDENCES = 0.05, 0.06, 0.04
"""In which shares of areas there is a prison or barracks, a home for old people, a residence of students."""


def _institutions(areas: int, rng: Generator) -> IntArray:
    size = 260 * np.exp(0.6 * rng.normal(size=areas))
    found = rng.poisson(_expected(size, 0.4 * rng.normal(size=areas)))
    for share, people, low, high in (
        (PRISONS, _of({4: 3.0, 5: 3.0, 6: 2.0, 7: 1.5, 8: 1.0}, 0.0), 40, 500),
        (HOMES, _of({15: 0.5, 16: 2.0, 17: 4.0}, 0.8), 15, 120),
        (RESIDENCES, _of({3: 2.0, 4: 3.0, 5: 0.3}, 0.52), 60, 400),
    ):
        there = np.flatnonzero(rng.random(areas) < share)
        inmates = rng.multinomial(rng.integers(low, high, size=len(there)), people.ravel())
        found[there] += inmates.reshape(len(there), len(AGES), 2)
    return np.asarray(found, dtype=np.int64)


def _of(ages: dict[int, float], women: float) -> FloatArray:
    """Return how the people of an institution are shared out over ages and sexes."""
    shares = np.zeros((len(AGES), 2))
    for age, weight in ages.items():
        shares[age] = weight * (1 - women), weight * women
    return np.asarray(shares / shares.sum())


# -- sizes ------------------------------------------------------------------------------------------------------------

SMALLEST, LARGEST = 30, 30_000
"""People in the smallest and in the largest area of Zipf's."""


def _zipf_sizes(areas: int, rng: Generator) -> IntArray:
    u = rng.random(areas)
    size = 1 / (u / SMALLEST + (1 - u) / LARGEST)  # half of the areas have less than twice the people of the smallest
    return np.asarray(rng.poisson(_expected(size, 0.5 * rng.normal(size=areas))), dtype=np.int64)


# -- couples ----------------------------------------------------------------------------------------------------------

_COUPLED = ("married", "common-law")
_ALONE = ("single", "separated", "divorced", "widowed")
_ALONE_RATES = np.array([[0.13, 0.11], [0.011, 0.014], [0.03, 0.04], [0.008, 0.035]])


def _couples(areas: int, rng: Generator) -> IntArray:
    size = 90 * np.exp(0.7 * rng.normal(size=areas))
    couples = rng.poisson(size * rng.uniform(0.2, 0.36, size=areas))
    unmarried = rng.binomial(couples, rng.beta(4, 16, size=areas))
    together = np.stack([couples - unmarried, unmarried], axis=1)
    alone = rng.poisson(size[:, np.newaxis, np.newaxis] * _ALONE_RATES)
    return np.asarray(np.concatenate([np.stack([together, together], axis=2), alone], axis=1), dtype=np.int64)


PERSONS = (
    World(
        "institutions",
        "Ages by sex, with a prison or barracks (men only), an old people's home or a student residence in some areas.",
        AGE_TREE,
        _institutions,
        by_sex=True,
    ),
    World(
        "couples",
        "Marital status by sex: as many married men as married women in every area, and mostly women among the widowed.",
        {TOTAL: ("in a couple", "not in a couple"), "in a couple": _COUPLED, "not in a couple": _ALONE},
        _couples,
        by_sex=True,
    ),
    World(
        "zipf-sizes",
        "Ages by sex in areas of tens to tens of thousands of people, many small and few large.",
        AGE_TREE,
        _zipf_sizes,
        by_sex=True,
    ),
)
"""All worlds of men and women."""
