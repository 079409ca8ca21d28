"""Worlds of categories: languages, birthplaces, dwellings and the like, without sex."""

from __future__ import annotations

import numpy as np

from unround.mechanisms.base import FloatArray, IntArray
from unround.simulation.worlds.world import TOTAL, Tree, World

Generator = np.random.Generator


def _sizes(areas: int, rng: Generator, median: float, spread: float) -> FloatArray:
    """Draw how many people live in each area, on average."""
    return np.asarray(median * np.exp(spread * rng.normal(size=areas)))


def _uneven(mean: FloatArray, shape: FloatArray, rng: Generator) -> IntArray:
    """Draw counts around a mean; the smaller the shape, the more they differ between areas."""
    return np.asarray(rng.poisson(mean * rng.gamma(shape, 1 / shape, size=mean.shape)), dtype=np.int64)


# -- evenness ---------------------------------------------------------------------------------------------------------

_SHARES = np.array([0.34, 0.22, 0.14, 0.10, 0.07, 0.05, 0.03, 0.02, 0.012, 0.006])
_SHAPES = np.array([40.0, 0.5, 30.0, 0.7, 60.0, 0.4, 80.0, 0.5, 100.0, 80.0])
_KINDS = tuple(f"kind {number}" for number in range(1, 11))


def _unlike_evenness(areas: int, rng: Generator) -> IntArray:
    size = _sizes(areas, rng, 150, 0.7)
    return _uneven(size[:, np.newaxis] * _SHARES, np.broadcast_to(_SHAPES, (areas, 10)), rng)


def _one_even_part(areas: int, rng: Generator) -> IntArray:
    mean, shape = np.broadcast_to([90.0, 1.2, 50.0], (areas, 3)), np.broadcast_to([0.6, 1e6, 0.5], (areas, 3))
    return _uneven(mean, shape, rng)


# -- presence ---------------------------------------------------------------------------------------------------------

GROUPS = 6
"""Groups of languages: in each two that live in one to three areas, and one of which single persons live in many."""

_LANGUAGES = {
    f"group {group}": tuple(f"{what} of group {group}" for what in ("first rare one", "second rare one", "scattered one"))
    for group in range(1, GROUPS + 1)
}


def _rare_languages(areas: int, rng: Generator) -> IntArray:
    size = _sizes(areas, rng, 180, 0.6)
    found = np.zeros((areas, 2 + 3 * GROUPS), dtype=np.int64)
    found[:, :2] = rng.poisson(size[:, np.newaxis] * rng.dirichlet([8, 2], size=areas))
    for group, presence in enumerate(np.linspace(0.04, 0.24, GROUPS).tolist()):
        first = 2 + 3 * group
        for language in (first, first + 1):
            homes = rng.choice(areas, size=min(areas, int(rng.integers(1, 4))), replace=False)
            found[homes, language] = rng.integers(3, 60, size=len(homes))
        found[:, first + 2] = (rng.random(areas) < presence) * rng.integers(1, 4, size=areas)
    return found


EMPTY = 40
"""Categories of which most areas have nobody."""


def _mostly_empty(areas: int, rng: Generator) -> IntArray:
    present = rng.random((areas, EMPTY)) < np.geomspace(0.6, 0.05, EMPTY)
    return np.asarray(present * rng.geometric(0.25, size=present.shape), dtype=np.int64)


# -- families and neighbours ------------------------------------------------------------------------------------------

_FAMILY = np.array([0.06, 0.09, 0.25, 0.33, 0.17, 0.10])
"""How many families of a minority have one to six persons."""

_MINORITIES = np.array([0.03, 0.024, 0.02, 0.02, 0.014, 0.008])
_NAMES = tuple(f"minority {number}" for number in range(1, 7))


def _households(areas: int, rng: Generator) -> IntArray:
    size = _sizes(areas, rng, 60, 0.6)[:, np.newaxis]
    persons = np.arange(1, len(_FAMILY) + 1)
    families = size * _MINORITIES / (persons * _FAMILY).sum()
    by_size = rng.poisson(families[:, :, np.newaxis] * _FAMILY)
    majority = rng.poisson(size * (1 - _MINORITIES.sum()))
    return np.asarray(np.concatenate([majority, (by_size * persons).sum(axis=2)], axis=1), dtype=np.int64)


_TYPES = np.array(
    [
        [0.86, 0.05, 0.03, 0.02, 0.01, 0.01, 0.005, 0.010, 0.005],
        [0.20, 0.25, 0.30, 0.10, 0.08, 0.04, 0.010, 0.010, 0.010],
        [0.02, 0.03, 0.05, 0.05, 0.10, 0.55, 0.190, 0.005, 0.005],
        [0.45, 0.04, 0.02, 0.01, 0.01, 0.01, 0.000, 0.300, 0.160],
    ]
)
"""Four types of neighbourhood, and how dwellings are shared out in each."""

_DWELLINGS = (
    "detached house",
    "semi-detached house",
    "row house",
    "duplex",
    "small apartment block",
    "large apartment block",
    "tower",
    "mobile home",
    "other dwelling",
)


def _neighbourhoods(areas: int, rng: Generator) -> IntArray:
    kind = rng.choice(4, size=areas, p=[0.45, 0.25, 0.15, 0.15])
    size = rng.poisson(np.array([110.0, 180.0, 320.0, 50.0])[kind] * rng.uniform(0.6, 1.4, size=areas))
    return np.asarray(rng.multinomial(size, _TYPES[kind]), dtype=np.int64)


# -- a deep tree ------------------------------------------------------------------------------------------------------

_REGIONS = ("Americas", "Europe", "Africa", "Asia", "Oceania")
_COUNTRIES = {region: tuple(f"{region}, country {number}" for number in range(1, 7)) for region in _REGIONS}
_HERE, _ABROAD = "born here", "born abroad"


def _deep_tree(areas: int, rng: Generator) -> IntArray:
    size = rng.poisson(_sizes(areas, rng, 300, 0.7))
    abroad = rng.binomial(size, rng.beta(1.2, 5, size=areas))
    regions = rng.multinomial(abroad, rng.dirichlet([0.5, 0.9, 0.4, 1.2, 0.1], size=areas))
    weights = np.array([0.9, 0.5, 0.3, 0.2, 0.1, 0.05])
    countries = [rng.multinomial(regions[:, r], rng.dirichlet(weights, size=areas)) for r in range(len(_REGIONS))]
    return np.asarray(np.concatenate([(size - abroad)[:, np.newaxis], *countries], axis=1), dtype=np.int64)


def _flat(*names: str) -> Tree:
    return {TOTAL: names}


CATEGORIES = (
    World(
        "unlike-evenness",
        "Ten kinds in two groups, some spread evenly over areas and some very unevenly, whatever their size.",
        {TOTAL: ("common", "less common"), "common": _KINDS[:5], "less common": _KINDS[5:]},
        _unlike_evenness,
    ),
    World(
        "one-even-part",
        "Three parts: two differ enormously between areas, and a small one is the same everywhere.",
        _flat("large", "small and even", "medium"),
        _one_even_part,
    ),
    World(
        "rare-languages",
        "Twelve languages spoken in only one to three areas each, six by one to three people in many areas, two everywhere.",
        {
            TOTAL: ("first language", "second language", "other languages"),
            "other languages": tuple(_LANGUAGES),
            **_LANGUAGES,
        },
        _rare_languages,
    ),
    World(
        "households",
        "Minorities come in families of up to six, so that counts of one or two are rare.",
        {
            TOTAL: ("majority", "older minorities", "newer minorities"),
            "older minorities": _NAMES[:3],
            "newer minorities": _NAMES[3:],
        },
        _households,
    ),
    World(
        "neighbourhoods",
        "Areas are of four types, from detached houses to mobile homes, with quite different shares.",
        _flat(*_DWELLINGS),
        _neighbourhoods,
    ),
    World(
        "mostly-empty",
        "Forty categories under one total, most of them empty in most areas.",
        _flat(*(f"category {number}" for number in range(1, EMPTY + 1))),
        _mostly_empty,
    ),
    World(
        "deep-tree",
        "Thirty countries of birth in five regions, under those born abroad: few people under many totals.",
        {TOTAL: (_HERE, _ABROAD), _ABROAD: _REGIONS, **_COUNTRIES},
        _deep_tree,
    ),
)
"""All worlds of categories."""
