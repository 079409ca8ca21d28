"""True and published counts of a simulated census, in blocks of areas.

Every block of `BLOCK` areas, and in it every block of the profile, has random streams of its own, keyed by
the seed and the places of the two. So the numbers depend neither on how the census is written nor on which
rows are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.mechanisms import mechanism
from unround.mechanisms.rounding import TwoWay
from unround.simulation.constants import Constants
from unround.simulation.geography import Geography, plan
from unround.simulation.keyed import Behind, behind
from unround.simulation.people import Counts, Floats, People, people
from unround.simulation.profile import EXACT, SAMPLE
from unround.simulation.records import Keys
from unround.simulation.schema import BlockPlan, Schema, schema

BLOCK = 128
"""Areas drawn together. Another value makes another census."""

MISSING = -1
"""In arrays of counts: no count stands here (or, among published ones, it was hidden)."""

FEW_PEOPLE, INCOME_PEOPLE, INCOME_HOUSEHOLDS = 40, 250, 40
_PEOPLE, _TRUTH, _PUBLISH, FIGURES, _RECORDS = 1, 2, 3, 4, 5  # the kinds of random streams

Cells = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class CountBlock:
    """A run of areas and their counts.

    - `number`: Its place in the census, from 0.
    - `regions`: region, code, name, level, parent, csd, cd, tnr_sf, tnr_lf: one row an area.
    - `true`: Areas × rows × 3 (total, men, women), `MISSING` where a cell holds no count.
    - `land`: Square kilometres by area.
    - `hidden`, `income_hidden`: The areas with too few people for any counts, or for those of income.
    - `published`: The same as `true` after the mechanisms, `MISSING` where hidden too.
    - `keys`: For every count the sum of its records' keys, modulo 1, in units of 2⁻⁶⁴; None where no keys were drawn.
    - `estimates`: What is rounded: true counts and, in sample tables, sums of weights; None where there is no weighted
      sample.
    """

    number: int
    regions: pl.DataFrame
    true: Cells
    land: Floats
    hidden: NDArray[np.bool_]
    income_hidden: NDArray[np.bool_]
    published: Cells | None = None
    keys: Keys | None = None
    estimates: Floats | None = None


@dataclass(frozen=True, slots=True)
class Rounds:
    """How a census is rounded.

    - `constants`: Where every record has a key, the constants of the tables; None where every count has a random number
      of its own.
    - `weighted`: Whether sample tables show sums of weights, which are not whole, in place of counts.
    - `figures`: What rates, averages and medians are computed from, as `figures` says: "true" counts, "published" ones,
      or "none".
    """

    constants: Constants | None = None
    weighted: bool = False
    figures: str = "true"

    def options(self) -> str:
        """Return what to type for the same."""
        told = "" if self.constants is None else " --keys"
        told += f" --constants {self.constants.name}" if self.constants is not None and self.constants.name else ""
        told += " --weighted" if self.weighted else ""
        return told + (f" --figures {self.figures}" if self.figures != "true" else "")


PLAIN = Rounds()
"""Every count is whole, and rounded on its own."""


def stream(seed: int, kind: int, block: int, part: int = 0, edition: int = 1) -> np.random.Generator:
    """Return the random stream of one purpose, block of areas, part of the profile, and edition."""
    key = (kind, block, part) if edition == 1 else (kind, block, part, edition)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


@cache
def _leaf_weights(step: BlockPlan) -> tuple[Floats, Floats, Floats]:
    """Return the leaves' shares, how they follow the hidden traits, and how much each is a matter of sex."""
    chance = np.random.default_rng(step.block.first)  # part of the schema, not of the census: the same for every seed
    if step.block.weights:
        weights = np.array(step.block.weights)
    else:
        rank = 1.0 + np.arange(step.leaves)
        weights = rank ** -abs(step.block.skew)
        if step.leaves > 40:  # in a long list, the frequent ones are not all at the top
            weights[2:] = chance.permutation(weights[2:])
        if step.block.skew < 0:
            weights = weights[::-1]
    loadings = chance.normal(0.0, 0.35, (3, step.leaves))
    tilt = chance.normal(0.0, 0.12, step.leaves)
    return weights / weights.sum(), loadings, tilt


def _shares(step: BlockPlan, traits: Floats, sexes: int, rng: np.random.Generator) -> Floats:
    """Draw every area's shares of the leaves: areas × sexes × leaves."""
    weights, loadings, tilt = _leaf_weights(step)
    expected = weights * np.exp(traits @ loadings)
    expected *= step.block.clump / expected.sum(1, keepdims=True)
    shares = rng.standard_gamma(expected) + 1e-12 * weights
    by_sex = shares[:, None, :] * np.exp(np.array([tilt, -tilt])[:sexes] if sexes == 2 else 0.0)
    return np.asarray(by_sex / by_sex.sum(2, keepdims=True))


def _add_up(step: BlockPlan, leaves: Counts) -> Counts:
    """Add leaves up to all ordinary counts of a block (… × nodes)."""
    summed = np.zeros((*leaves.shape[:-1], step.leaves + 1), dtype=np.int64)
    np.cumsum(leaves, axis=-1, out=summed[..., 1:])
    return np.asarray(summed[..., step.high] - summed[..., step.low])


def _split(step: BlockPlan, universe: Counts, traits: Floats, rng: np.random.Generator) -> Counts:
    """Partition the universe down the tree."""
    shares = _shares(step, traits, universe.shape[1], rng)
    return _add_up(step, rng.multinomial(universe, shares))


def _any(step: BlockPlan, universe: Counts, traits: Floats, rng: np.random.Generator) -> Counts:
    """Let people give one answer, some of them two; a group counts people, not answers."""
    shares = _shares(step, traits, universe.shape[1], rng)
    first = _add_up(step, rng.multinomial(universe, shares))
    second = _add_up(step, rng.multinomial(rng.binomial(universe, 0.35), shares))
    leaf = step.high - step.low == 1
    people_too = np.where(leaf, second, rng.binomial(second, 0.6))
    counts = np.minimum(first + people_too, universe[:, :, None])
    for node in np.flatnonzero(~leaf)[:0:-1]:  # a group is not smaller than any of its parts
        inside = (step.low >= step.low[node]) & (step.high <= step.high[node])
        counts[:, :, node] = counts[:, :, inside].max(2)
    counts[:, :, 0] = universe
    return counts


def _stats(step: BlockPlan, universe: Counts, rng: np.random.Generator) -> Counts:
    """Count who has this or that: shares of the universe that have nothing to do with each other."""
    chances = np.concatenate([[1.0], 0.96 * 0.82 ** np.arange(len(step.nodes) - 1)])
    return np.asarray(rng.binomial(universe[:, :, None], chances), dtype=np.int64)


def _within(step: BlockPlan, base: Counts, rng: np.random.Generator) -> Counts:
    """Take the poor out of each leaf of another block (areas × sexes × rows)."""
    chance = rng.beta(2.0, 16.0, (len(base), 1, 1))
    leaf = step.high - step.low == 1
    inner = [node for node in range(len(step.nodes)) if leaf[node] and node > 0]
    return _add_up(step, rng.binomial(base[:, :, step.nodes[inner]], chance))


def _fill(true: Counts, step: BlockPlan, counts: Counts) -> None:
    """Write men and women, or the total only, into the rows of a block."""
    rows = step.start + step.nodes
    if counts.shape[1] == 2:
        true[:, rows, 1:] = counts.swapaxes(1, 2)
        true[:, rows, 0] = counts.sum(1)
    else:
        true[:, rows, 0] = counts[:, 0]


def _area_counts(table: Schema, place: Geography, rows: slice, seed: int, number: int) -> tuple[Counts, People]:
    """Draw the true counts of dissemination areas, and the people that they count."""
    crowd = people(place.traits[rows], place.rural[rows], stream(seed, _PEOPLE, number))
    true = np.full((len(crowd.land), len(table.rows), 3), MISSING, dtype=np.int64)
    index = table.index
    for step in table.plans:
        block, rng = step.block, stream(seed, _TRUTH, number, step.number)
        sexes = slice(1, 3) if block.sex else slice(0, 1)
        if block.rule == "figures":
            continue
        if block.rule == "core":
            kept = [crowd.rows[block.first + int(node)] for node in step.nodes]
            counted = [count if block.sex else count.sum(1, keepdims=True) for count in kept]
            _fill(true, step, np.stack(counted, axis=2))
        elif block.rule == "within":
            start = index[int(block.universe)]
            base = true[:, start : start + step.stop - step.start, sexes].swapaxes(1, 2)
            _fill(true, step, _within(step, base, rng))
        else:
            if block.universe.startswith("="):
                parts = [index[int(part)] for part in block.universe[1:].split("+")]
                universe = true[:, parts, sexes].sum(1)
            else:
                universe = crowd.universes[block.universe]
            if block.rule == "split":
                _fill(true, step, _split(step, universe, crowd.traits, rng))
            elif block.rule == "any":
                _fill(true, step, _any(step, universe, crowd.traits, rng))
            else:
                _fill(true, step, _stats(step, universe, rng))
        for row, parent in step.subsets:
            some = rng.binomial(true[:, step.start + parent, sexes], 0.33)
            true[:, step.start + row, sexes] = some
            if block.sex:
                true[:, step.start + row, 0] = some.sum(1)
    return true, crowd


class _Parents:
    """Adds up every parent from the areas inside it, which come first, block after block."""

    def __init__(self) -> None:
        self._open: list[NDArray[Any]] = []  # what the open CSD, CD and province have so far

    def fill(self, level: NDArray[np.int8], *arrays: NDArray[Any]) -> None:
        """Write the sums of their areas into the places of parents, in place."""
        if not self._open:
            self._open = [np.zeros((4, *values.shape[1:]), values.dtype) for values in arrays]
        done = 0
        for position in [*np.flatnonzero(level).tolist(), len(level)]:
            for values, so_far in zip(arrays, self._open, strict=True):
                so_far[1] += values[done:position].sum(0)
            done = position + 1
            if position == len(level):
                break
            own = int(level[position])
            for values, so_far in zip(arrays, self._open, strict=True):
                values[position] = so_far[own]
                so_far[own] = 0
                if own < 3:
                    so_far[own + 1] += values[position]


def true_counts(
    areas: int, seed: int, rows: str = "age", small: bool = False, rounds: Rounds = PLAIN
) -> Iterator[CountBlock]:
    """Draw a census of so many areas, block by block; a parent comes after its children and is their sum."""
    table, place = schema(rows, rounds.weighted), plan(areas, seed, small)
    at = table.index
    shown = table.shown
    parents = _Parents()
    for number, start in enumerate(range(0, areas, BLOCK)):
        here = slice(start, min(start + BLOCK, areas))
        true, crowd = _area_counts(table, place, here, seed, number)
        land, drawn = crowd.land, list[NDArray[Any]]()
        if rounds != PLAIN:
            found = _behind(table, true, crowd, seed, number, weighted=rounds.weighted)
            drawn = [found.keys, found.weights]
        parents.fill(place.level[here], true, land, *drawn)
        counts = np.where(shown, true, MISSING).astype(np.int32)
        population, households = counts[:, at[1], 0], counts[:, at[5], 0]
        hidden = population < FEW_PEOPLE
        yield CountBlock(
            number=number,
            regions=place.regions[here],
            true=counts,
            land=land,
            hidden=hidden,
            income_hidden=hidden | (population < INCOME_PEOPLE) | (households < INCOME_HOUSEHOLDS),
            keys=drawn[0] if rounds.constants is not None else None,
            estimates=_estimates(table, counts, drawn[1]) if rounds.weighted else None,
        )


def _behind(table: Schema, true: Counts, crowd: People, seed: int, number: int, *, weighted: bool) -> Behind:
    """Draw keys and weights; the records' own have a place among random streams that no block of the profile has."""

    def chance(part: int) -> np.random.Generator:
        return stream(seed, _RECORDS, number, part + 1)

    return behind(table, true, crowd.cells, chance, weighted=weighted)


def _estimates(table: Schema, counts: Cells, weights: Floats) -> Floats:
    """Return what is rounded: sums of weights in sample tables, the counts elsewhere."""
    sample = np.array([row.mechanism == SAMPLE for row in table.rows])
    return np.where((counts != MISSING) & sample[:, None], weights, counts.astype(np.float64))


def publish(block: CountBlock, table: Schema, seed: int, edition: int = 1, rounds: Rounds = PLAIN) -> Cells:
    """Return what is published of a block: each cell rounded on its own unless told otherwise, small areas hidden.

    Every edition is rounded anew; where records have keys, by other constants of the tables.
    """
    published = block.true.copy()
    for step in table.plans:
        if step.block.mechanism == EXACT or not len(step.nodes):
            continue
        rows = slice(step.start, step.stop)
        rng = stream(seed, _PUBLISH, block.number, step.number, edition)
        exact = block.true[:, rows]
        how, counts = mechanism(step.block.mechanism), np.maximum(exact, 0).astype(np.int64)
        weighted = rounds.weighted and step.block.mechanism == SAMPLE
        if rounds.constants is None and not weighted:
            drawn = how.publish(counts, rng)
        else:
            assert isinstance(how, TwoWay)
            if block.keys is None or rounds.constants is None:
                numbers: Keys = rng.integers(0, (1 << 64) - 1, counts.shape, dtype=np.uint64, endpoint=True)
            else:
                numbers = block.keys[:, rows] + np.uint64(rounds.constants.of(step.block, seed, edition))
            assert block.estimates is not None or not weighted
            amounts = np.maximum(block.estimates[:, rows], 0.0) if weighted and block.estimates is not None else counts
            drawn = how.publish_keyed(amounts, numbers)
        published[:, rows] = np.where(exact >= 0, drawn, MISSING)
    small = np.array([row.mechanism != EXACT for row in table.rows])
    income = np.array([row.is_income for row in table.rows])
    published[np.ix_(block.hidden, small)] = MISSING
    published[np.ix_(block.income_hidden, income)] = MISSING
    return published


def published_counts(
    areas: int, seed: int, rows: str = "age", small: bool = False, rounds: Rounds = PLAIN
) -> Iterator[CountBlock]:
    """Draw the same census as `true_counts`, with what is published of it beside what is true."""
    table = schema(rows, rounds.weighted)
    for block in true_counts(areas, seed, rows, small, rounds):
        yield replace(block, published=publish(block, table, seed, rounds=rounds))
