"""Worlds with known truth that no prior of unround assumes: what probabilities are tried on besides the simulated census.

A prior that is judged only on draws from its own family always looks right. Each of these worlds breaks an assumption that
would be convenient: that parts are equally uneven, that people come one by one, that men and women are split at random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unround.errors import InputError
from unround.mechanisms import HIDDEN, Mechanism, mechanism
from unround.mechanisms.base import FloatArray, IntArray
from unround.options import AnyPath
from unround.output import output_folder
from unround.release import Column, Counts
from unround.simulation.files import ABOUT, TABLE, TRUTH, Simulated, finished, older_simulation, toml_sums
from unround.simulation.profile import SEXES
from unround.sums.forest import Equations
from unround.tables.written import tidy_toml

TOTAL = "total"  # the total of everything, at the root of every tree
Tree = Mapping[str, tuple[str, ...]]  # totals, and the parts of each

Law = Callable[[int, np.random.Generator], IntArray]
"""Draws true counts for so many areas: areas × leaves, or areas × leaves × (men, women)."""


@dataclass(frozen=True)
class World:
    """A table whose true counts follow a law that no prior of unround assumes."""

    name: str  # what people call it
    sentence: str  # what is special about it
    tree: Tree  # totals, the root `TOTAL` first, and the parts of each
    law: Law  # draws the counts of the leaves, in the order of `leaves`
    by_sex: bool = False  # whether every count is split into men and women

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Totals and leaves, each total before its parts."""
        return tuple(self._below(TOTAL))

    def _below(self, node: str) -> Iterator[str]:
        yield node
        for part in self.tree.get(node, ()):
            yield from self._below(part)

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """The counts that have no parts, except men and women."""
        return tuple(node for node in self.nodes if node not in self.tree)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """All counts of an area; where they are split by sex, both sexes, men and women of each node."""
        if not self.by_sex:
            return tuple(Column(node, (node,), node) for node in self.nodes)
        return tuple(
            Column(node if sex == SEXES[0] else f"{node}/{sex}", (node, sex), node) for node in self.nodes for sex in SEXES
        )

    @cached_property
    def equations(self) -> Equations:
        """The sums between the columns, by their positions."""
        width, at = len(SEXES) if self.by_sex else 1, {node: place for place, node in enumerate(self.nodes)}
        sums = tuple(
            (at[total] * width + sex, tuple(at[part] * width + sex for part in parts))
            for total, parts in self.tree.items()
            for sex in range(width)
        )
        return sums + tuple((cell, (cell + 1, cell + 2)) for cell in range(0, len(self.columns), 3) if self.by_sex)

    def draw(self, areas: int, rng: np.random.Generator) -> IntArray:
        """Draw the counts of the leaves: areas × leaves, or areas × leaves × (men, women)."""
        if areas < 1:
            raise InputError(f"a world has at least one area, not {areas}.")
        return self.law(areas, rng)

    def add_up(self, leaves: IntArray) -> Counts:
        """Return all columns of some areas, from the counts of their leaves."""
        if self.by_sex:
            leaves = np.concatenate([leaves.sum(axis=2, keepdims=True), leaves], axis=2)
        known = {leaf: leaves[:, place] for place, leaf in enumerate(self.leaves)}
        for node in reversed(self.nodes):  # parts before their total
            if node in self.tree:
                known[node] = np.sum([known[part] for part in self.tree[node]], axis=0)
        table = np.stack([known[node] for node in self.nodes], axis=1)
        return np.ascontiguousarray(table.reshape(len(table), -1), dtype=np.int32)

    def counts(self, areas: int, seed: int) -> Counts:
        """Draw the true table, areas × `columns`; the same seed gives the same table."""
        return self.add_up(self.draw(areas, np.random.default_rng(np.random.SeedSequence([seed, *self.name.encode()]))))


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
    people = rng.poisson(_expected(size, 0.4 * rng.normal(size=areas)))
    for share, kinds, low, high in (
        (PRISONS, _of({4: 3.0, 5: 3.0, 6: 2.0, 7: 1.5, 8: 1.0}, 0.0), 40, 500),
        (HOMES, _of({15: 0.5, 16: 2.0, 17: 4.0}, 0.8), 15, 120),
        (RESIDENCES, _of({3: 2.0, 4: 3.0, 5: 0.3}, 0.52), 60, 400),
    ):
        there = np.flatnonzero(rng.random(areas) < share)
        inmates = rng.multinomial(rng.integers(low, high, size=len(there)), kinds.ravel())
        people[there] += inmates.reshape(len(there), len(AGES), 2)
    return np.asarray(people, dtype=np.int64)


def _of(ages: dict[int, float], women: float) -> FloatArray:
    """Return how the people of an institution are shared out over ages and sexes."""
    shares = np.zeros((len(AGES), 2))
    for age, weight in ages.items():
        shares[age] = weight * (1 - women), weight * women
    return np.asarray(shares / shares.sum())


# -- sizes ------------------------------------------------------------------------------------------------------------

SMALLEST, LARGEST = 30, 30_000  # people in the smallest and in the largest area of Zipf's


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

GROUPS = 6  # groups of languages: in each two that live in one to three areas, and one of which single persons live in many

_LANGUAGES = {
    f"group {group}": tuple(f"{what} of group {group}" for what in ("first rare one", "second rare one", "scattered one"))
    for group in range(1, GROUPS + 1)
}


def _rare_languages(areas: int, rng: Generator) -> IntArray:
    size = _sizes(areas, rng, 180, 0.6)
    speakers = np.zeros((areas, 2 + 3 * GROUPS), dtype=np.int64)
    speakers[:, :2] = rng.poisson(size[:, np.newaxis] * rng.dirichlet([8, 2], size=areas))
    for group, presence in enumerate(np.linspace(0.04, 0.24, GROUPS).tolist()):
        first = 2 + 3 * group
        for language in (first, first + 1):
            homes = rng.choice(areas, size=min(areas, int(rng.integers(1, 4))), replace=False)
            speakers[homes, language] = rng.integers(3, 60, size=len(homes))
        speakers[:, first + 2] = (rng.random(areas) < presence) * rng.integers(1, 4, size=areas)
    return speakers


EMPTY = 40  # categories of which most areas have nobody

PRESENT, STOPS = np.geomspace(0.6, 0.05, EMPTY), 0.25
"""How often somebody is there, by category; and how likely, then, each person is the last."""


def _mostly_empty(areas: int, rng: Generator) -> IntArray:
    present = rng.random((areas, EMPTY)) < PRESENT
    return np.asarray(present * rng.geometric(STOPS, size=present.shape), dtype=np.int64)


# -- families and neighbours ------------------------------------------------------------------------------------------

FAMILY = np.array([0.06, 0.09, 0.25, 0.33, 0.17, 0.10])  # how many families of a minority have one to six persons

MINORITIES = np.array([0.03, 0.024, 0.02, 0.02, 0.014, 0.008])
_NAMES = tuple(f"minority {number}" for number in range(1, 7))


def _households(areas: int, rng: Generator) -> IntArray:
    size = _sizes(areas, rng, 60, 0.6)[:, np.newaxis]
    persons = np.arange(1, len(FAMILY) + 1)
    families = size * MINORITIES / (persons * FAMILY).sum()
    by_size = rng.poisson(families[:, :, np.newaxis] * FAMILY)
    majority = rng.poisson(size * (1 - MINORITIES.sum()))
    return np.asarray(np.concatenate([majority, (by_size * persons).sum(axis=2)], axis=1), dtype=np.int64)


TYPES = np.array(
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


COMMON, DWELLINGS = np.array([0.45, 0.25, 0.15, 0.15]), np.array([110.0, 180.0, 320.0, 50.0])
"""How common each type is, and how many dwellings areas of it have: so many times 0.6 to 1.4."""


def _neighbourhoods(areas: int, rng: Generator) -> IntArray:
    kind = rng.choice(4, size=areas, p=COMMON)
    size = rng.poisson(DWELLINGS[kind] * rng.uniform(0.6, 1.4, size=areas))
    return np.asarray(rng.multinomial(size, TYPES[kind]), dtype=np.int64)


# -- shares ------------------------------------------------------------------------------------------------------------

PRECISIONS = np.array([3.0, 2.0, 1.2, 0.8, 0.5, 0.3, 0.2, 0.12, 0.08, 0.05])
"""Of the Dirichlet distribution by which people are shared out."""


def _dirichlet(areas: int, rng: Generator) -> IntArray:
    size = rng.poisson(_sizes(areas, rng, 120, 0.6))
    return np.asarray(rng.multinomial(size, rng.dirichlet(PRECISIONS, size=areas)), dtype=np.int64)


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
        {TOTAL: ("large", "small and even", "medium")},
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
        {TOTAL: _DWELLINGS},
        _neighbourhoods,
    ),
    World(
        "dirichlet",
        "Ten kinds in two groups, shared out by a Dirichlet distribution: the more of one kind, the fewer of the others.",
        {TOTAL: ("common", "less common"), "common": _KINDS[:5], "less common": _KINDS[5:]},
        _dirichlet,
    ),
    World(
        "mostly-empty",
        "Forty categories under one total, most of them empty in most areas.",
        {TOTAL: tuple(f"category {number}" for number in range(1, EMPTY + 1))},
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


def write_world(
    name: str, out: AnyPath, areas: int, seed: int, published_by: Mechanism | str, typed: str, *, rounded_total: bool = False
) -> Simulated:
    """Write a world as it would be published, with its true counts beside it; `typed` is what to type for the same."""
    law, how = world(name), mechanism(str(published_by))
    true = law.counts(areas, seed).astype(np.int64)
    published = how.publish(true, np.random.default_rng(np.random.SeedSequence([seed, 1, *law.name.encode()])))
    if not rounded_total:
        published[:, 0] = true[:, 0]
    with output_folder(Path(out), "simulate", older_simulation((TABLE, ABOUT, TRUTH))) as output:
        shown = _cells(law, published, "published").with_columns(pl.col("published").replace(HIDDEN, None))
        shown.write_parquet(output.done / TABLE)
        _cells(law, true, "true").write_parquet(output.done / TRUTH)
        comment = f"The world {law.name}, written by `python -m research world`. {law.sentence}"
        axes: dict[str, dict[str, Any]] = {
            "region": {},
            "characteristic": {"column": "characteristic_id", "sums": toml_sums(law.tree)},
            "sex": {"sums": toml_sums({SEXES[0]: SEXES[1:]})} if law.by_sex else {},
        }
        exact = {} if rounded_total else {"characteristic": [TOTAL], "sex": [SEXES[0]]}
        about = tidy_toml(comment, TABLE, default=how.name, exact=[exact] if exact else None, axes=axes)
        (output.done / ABOUT).write_text(about, encoding="utf-8")
        truth = (TRUTH, "the true counts, as they were drawn")
        return finished(output, typed, areas, (TABLE, ABOUT), truth, true.size, [f"The world {law.name}: {law.sentence}"])


def _cells(law: World, counts: IntArray, value: str) -> pl.DataFrame:
    """Return counts as a tidy table, one row per cell."""
    areas = len(counts)
    codes = [column.codes if law.by_sex else (*column.codes, SEXES[0]) for column in law.columns]
    return pl.DataFrame(
        {
            "region": np.repeat([f"A{area:05}" for area in range(1, areas + 1)], len(codes)),
            "characteristic_id": np.tile([name for name, _ in codes], areas),
            "sex": np.tile([sex for _, sex in codes], areas),
            value: counts.ravel(),
        }
    )


WORLDS = {law.name: law for law in (*CATEGORIES, *PERSONS)}  # all worlds by name


def world(name: str) -> World:
    """Return a world by its name.

    >>> world("couples").leaves
    ('married', 'common-law', 'single', 'separated', 'divorced', 'widowed')
    >>> world("couples").counts(areas=2, seed=1).shape
    (2, 27)
    """
    if name not in WORLDS:
        raise InputError(f"there is no world {name!r}: choose from {', '.join(WORLDS)}.")
    return WORLDS[name]
