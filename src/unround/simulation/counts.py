"""True and published counts of a simulated census, in blocks of areas, and the figures beside them.

Every block of `BLOCK` areas, and in it every block of the profile, has random streams of its own, keyed by the seed and the
places of the two. So the numbers depend neither on how the census is written nor on which rows are asked for.

Figures are worked out from the true counts, and rounded as the Canadian ones are: rates of low income in steps of 0.1 to 1,
finer with more people; medians in steps that grow with the leading digits; all else to one decimal. So they tell something
about the true counts, as published figures may. Or they are worked out from the published counts, as a reader of the tables
could, and tell nothing. Amounts of money and the like are drawn, so that files look right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.figures import Figure
from unround.simulation.geography import Geography, plan
from unround.simulation.people import Counts, Floats, People, people
from unround.simulation.profile import SEXES, BlockPlan, ProfileRow, Schema, schema
from unround.tables.profile import profile_lines, propose

BLOCK = 128  # Areas drawn together. Another value makes another census.
MISSING = -1  # in arrays of counts: no count stands here (or, among published ones, it was hidden)

FEW_PEOPLE, INCOME_PEOPLE, INCOME_HOUSEHOLDS = 40, 250, 40
_PEOPLE, _TRUTH, PUBLISHING, _FIGURES = range(1, 5)  # the kinds of random streams

CountArray = NDArray[np.int32]
Keys = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class CountBlock:
    """A run of areas and their counts."""

    number: int  # its place in the census, from 0
    regions: pl.DataFrame  # region, code, name, level, parent, csd, cd, tnr_sf, tnr_lf: one row per area
    true: CountArray  # areas × rows × 3 (total, men, women), `MISSING` where a cell holds no count
    land: Floats  # square kilometres by area
    hidden: NDArray[np.bool_]  # the areas with too few people for any counts, or for those of income
    income_hidden: NDArray[np.bool_]
    published: CountArray | None = None  # the same as `true` after the mechanisms, `MISSING` where hidden too
    keys: Keys | None = None  # the sums of keys of the records behind `true`, where records have any

    def some(self, keep: NDArray[np.bool_]) -> CountBlock:
        """Return some of the areas."""
        names = ("true", "land", "hidden", "income_hidden", "published", "keys")
        kept = {name: values[keep] for name in names if (values := getattr(self, name)) is not None}
        return replace(self, regions=self.regions.filter(pl.Series(keep)), **kept)


def stream(seed: int, kind: int, block: int, part: int = 0) -> np.random.Generator:
    """Return the random stream of one purpose, block of areas, and part of the profile."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(kind, block, part)))


# -- true counts ------------------------------------------------------------------------------------------------------


@cache
def _leaf_weights(step: BlockPlan) -> tuple[Floats, Floats, Floats]:
    """Return the leaves' shares, how they follow the hidden traits, and how much each is a matter of sex."""
    chance = np.random.default_rng(step.block.first)  # part of the schema, not of the census: the same for every seed
    if step.block.weights:
        weights = np.array(step.block.weights)
    else:
        weights = (1.0 + np.arange(step.leaves)) ** -abs(step.block.skew)
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
    by_sex = shares[:, None, :] * np.exp(np.array([tilt, -tilt]) if sexes == 2 else 0.0)
    return np.asarray(by_sex / by_sex.sum(2, keepdims=True))


def add_up(step: BlockPlan, leaves: NDArray[Any]) -> NDArray[Any]:
    """Add leaves up to all ordinary counts of a block (… × nodes)."""
    summed = np.zeros((*leaves.shape[:-1], step.leaves + 1), dtype=leaves.dtype)
    np.cumsum(leaves, axis=-1, out=summed[..., 1:])
    return np.asarray(summed[..., step.high] - summed[..., step.low])


def _any(step: BlockPlan, universe: Counts, traits: Floats, rng: np.random.Generator) -> Counts:
    """Let people give one answer, some of them two; a group counts people, not answers."""
    shares = _shares(step, traits, universe.shape[1], rng)
    first = add_up(step, rng.multinomial(universe, shares))
    second = add_up(step, rng.multinomial(rng.binomial(universe, 0.35), shares))
    leaf = step.high - step.low == 1
    people_too = np.where(leaf, second, rng.binomial(second, 0.6))
    counts: Counts = np.minimum(first + people_too, universe[:, :, None])
    for node in np.flatnonzero(~leaf)[:0:-1]:  # a group is not smaller than any of its parts
        inside = (step.low >= step.low[node]) & (step.high <= step.high[node])
        counts[:, :, node] = counts[:, :, inside].max(2)
    counts[:, :, 0] = universe
    return counts


def leaf_nodes(step: BlockPlan) -> list[int]:
    """Return for every leaf the node that is it alone."""
    alone = {int(low): node for node, (low, high) in enumerate(zip(step.low, step.high, strict=True)) if high - low == 1}
    return [alone[leaf] for leaf in range(step.leaves)]


def _within(step: BlockPlan, base: Counts, rng: np.random.Generator) -> Counts:
    """Take the poor out of each leaf of another block (areas × sexes × rows)."""
    chance = rng.beta(2.0, 16.0, (len(base), 1, 1))
    return np.asarray(add_up(step, rng.binomial(base[:, :, step.nodes[leaf_nodes(step)]], chance)))


def fill(target: NDArray[Any], rows: Any, values: NDArray[Any]) -> None:
    """Write men and women and their sum, or the total only, into some rows; `values` are areas × sexes × rows."""
    if values.shape[1] == 2:
        target[:, rows, 1:] = values.swapaxes(1, 2)
    target[:, rows, 0] = values.sum(1)


def _counts_of(step: BlockPlan, table: Schema, true: Counts, crowd: People, rng: np.random.Generator) -> Counts:
    """Draw the counts of one block of the profile: areas × sexes × nodes."""
    block = step.block
    if block.rule == "core":
        kept = [crowd.rows[block.first + int(node)] for node in step.nodes]
        return np.stack([count if block.sex else count.sum(1, keepdims=True) for count in kept], axis=2)
    if block.rule == "within":
        start = table.index[int(block.universe)]
        base = true[:, start : start + step.stop - step.start, block.sexes].swapaxes(1, 2)
        return _within(step, base, rng)
    if block.universe.startswith("="):
        universe = true[:, [table.index[row] for row in block.counted_rows], block.sexes].sum(1)
    else:
        universe = crowd.universes[block.universe]
    if block.rule == "split":  # partition it down the tree
        return add_up(step, rng.multinomial(universe, _shares(step, crowd.traits, universe.shape[1], rng)))
    if block.rule == "any":
        return _any(step, universe, crowd.traits, rng)
    # Who has this or that: shares of the universe that have nothing to do with each other.
    chances = np.concatenate([[1.0], 0.96 * 0.82 ** np.arange(len(step.nodes) - 1)])
    return np.asarray(rng.binomial(universe[:, :, None], chances), dtype=np.int64)


def _area_counts(table: Schema, place: Geography, rows: slice, seed: int, number: int) -> tuple[Counts, People]:
    """Draw the true counts of dissemination areas, and the people that they count."""
    crowd = people(place.traits[rows], place.rural[rows], stream(seed, _PEOPLE, number))
    true = np.full((len(crowd.land), len(table.rows), 3), MISSING, dtype=np.int64)
    for step in table.plans:
        if step.block.rule == "figures":
            continue
        rng = stream(seed, _TRUTH, number, step.number)
        fill(true, step.start + step.nodes, _counts_of(step, table, true, crowd, rng))
        for row, parent in step.subsets:
            some = rng.binomial(true[:, step.start + parent, step.block.sexes], 0.33)
            fill(true, [step.start + row], some[:, :, None])
    return true, crowd


# -- blocks of areas --------------------------------------------------------------------------------------------------


class _Parents:
    """Adds up every parent from the areas inside it, which come first, block after block."""

    def __init__(self) -> None:
        self._open: list[NDArray[Any]] = []  # what the open CSD, CD and province have so far

    def fill(self, level: NDArray[np.int8], *arrays: NDArray[Any]) -> None:
        """Write the sums of their areas into the places of parents, in place."""
        if not self._open:
            self._open = [np.zeros((4, *values.shape[1:]), values.dtype) for values in arrays]
        parents = np.flatnonzero(level).tolist()
        for values, so_far in zip(arrays, self._open, strict=True):
            done = 0
            for position in parents:
                here = int(level[position])
                so_far[1] += values[done:position].sum(0)
                values[position] = so_far[here]
                so_far[here] = 0
                if here < 3:
                    so_far[here + 1] += values[position]
                done = position + 1
            so_far[1] += values[done:].sum(0)


KeysOf = Callable[[Schema, Counts, People, int], Keys]
"""Draws the keys of the records of a block: given the schema, true counts and people, and the number of the block."""


def true_counts(
    areas: int, seed: int, rows: str = "age", small: bool = False, keys_of: KeysOf | None = None
) -> Iterator[CountBlock]:
    """Draw a census of so many areas, block by block; a parent comes after its children and is their sum."""
    table, place = schema(rows), plan(areas, seed, small)
    at, shown, parents = table.index, table.shown, _Parents()
    for number, start in enumerate(range(0, areas, BLOCK)):
        here = slice(start, min(start + BLOCK, areas))
        true, crowd = _area_counts(table, place, here, seed, number)
        keys = None if keys_of is None else keys_of(table, true, crowd, number)
        parents.fill(place.level[here], true, crowd.land, *([] if keys is None else [keys]))
        counts = np.where(shown, true, MISSING).astype(np.int32)
        residents, households = counts[:, at[1], 0], counts[:, at[5], 0]
        hidden = residents < FEW_PEOPLE
        income_hidden = hidden | (residents < INCOME_PEOPLE) | (households < INCOME_HOUSEHOLDS)
        yield CountBlock(number, place.regions[here], counts, crowd.land, hidden, income_hidden, keys=keys)


# -- figures ----------------------------------------------------------------------------------------------------------

TRUE, NONE = "true", "none"

MIDDLES = np.array([2.5 + 5 * step for step in range(20)] + [101.0])
AGE_IDS = (*range(10, 13), *range(14, 24), *range(25, 29), *range(30, 34))
# Percentages of one row in another: figure → (part, whole).
PERCENTAGES = {35: (9, 8), 36: (13, 8), 37: (24, 8), 38: (29, 8)}
PERCENTAGES |= {345 + at: (340 + at, 335 + at) for at in range(5)} | {360 + at: (355 + at, 350 + at) for at in range(5)}
PERCENTAGES |= {2228: (2224, 2223), 2229: (2225, 2223), 2230: (2226, 2224)}
AVERAGES = {57: (56, (50,)), 76: (90, (71,)), 77: (93, (81, 84, 86))}  # persons to households or families
HUNDREDS = frozenset({34, 148, 237})
FAMILY_SIZES = frozenset({304, 308, 312, 316})
TYPICAL_MONEY, TYPICAL_RENT, TYPICAL_VALUE = 40_000.0, 1_300.0, 420_000.0


def ratio(part: Floats, whole: Floats) -> Floats:
    """Return a ratio, NaN where there is nothing to divide by."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


def _ages(counts: Floats) -> tuple[Floats, Floats]:
    """Return average and median age from areas × 21 ages × 3."""
    total = counts.sum(1)
    average = ratio((counts * MIDDLES[:, None]).sum(1), total)
    reached = np.cumsum(counts, axis=1) >= total[:, None] / 2
    at = reached.argmax(1)
    before = np.take_along_axis(np.cumsum(counts, axis=1) - counts, at[:, None], 1)[:, 0]
    inside = np.take_along_axis(counts, at[:, None], 1)[:, 0]
    median = np.where(total > 0, 5.0 * at + 5.0 * np.nan_to_num(ratio(total / 2 - before, inside)), np.nan)
    return np.round(average, 1), median


def _drawn(kind: str, row: int, areas: int, rng: np.random.Generator) -> Floats:
    """Draw a plausible figure for total, men and women."""
    if kind == "percent":
        return np.round(100.0 * rng.beta(2.0, 6.0, (areas, 3)), 1)
    if row in FAMILY_SIZES or row == 1433:
        return np.round(rng.lognormal(np.log(5.8 if row == 1433 else 2.9), 0.08, (areas, 3)), 1)
    if 378 <= row <= 382:
        return np.round(rng.uniform(0.25, 0.45, (areas, 3)), 3)
    if row == 2236:
        return np.round(rng.normal(42.0, 2.0, (areas, 3)), 1)
    typical = TYPICAL_MONEY if row < 400 else TYPICAL_VALUE if row in (1488, 1489) else TYPICAL_RENT
    by_sex = np.array([1.0, 1.12, 0.88])
    amounts = typical * by_sex * rng.lognormal(0.0, 0.22, (areas, 1)) * rng.lognormal(0.0, 0.05, (areas, 3))
    scale = 10.0 ** (np.floor(np.log10(np.maximum(amounts, 1.0))) - 2)  # three significant digits, as the agency has them
    return np.asarray(np.rint(amounts / scale) * scale)


def by_leading_digits(values: Floats) -> Floats:
    """Round as medians are: in steps of 1, 2, 4, 5 or 10 in the third digit, growing with the value.

    >>> by_leading_digits(np.array([12.34, 23.45, 43.21, 71.3, 93.4])).tolist()
    [12.3, 23.4, 43.2, 71.5, 93.0]
    """
    known = np.maximum(np.nan_to_num(values), 1e-9)
    power = 10.0 ** np.floor(np.log10(known))
    leading = known / power
    step = np.select([leading < 1.6, leading < 3.2, leading < 6.4, leading < 8.0], [0.01, 0.02, 0.04, 0.05], 0.1) * power
    return np.round(np.rint(values / step) * step, 4)


def by_people(rates: Floats, people: Floats) -> Floats:
    """Round rates as those of low income are: in steps worth about two people, at least 0.1 and at most 1.

    >>> by_people(np.array([12.34, 12.34, 12.34, 9.3]), np.array([2000, 800, 500, 300])).tolist()
    [12.3, 12.4, 12.4, 9.5]
    """
    known = np.maximum(np.nan_to_num(rates), 1e-9)
    leading = known / 2.0 ** np.floor(np.log2(known / 8.0))  # from 8 to 16
    worth = people * leading
    few = np.where(leading < 10.0, 0.5, 1.0)
    step: Floats = np.select([worth >= 16_000, worth >= 8_000, worth >= 4_000], [0.1, 0.2, 0.4], few)
    return np.round(np.rint(rates / step) * step, 4)


def _figure(
    row: ProfileRow, values: Floats, at: dict[int, int], block: CountBlock, rng: np.random.Generator, finer: bool
) -> Floats:
    """Work out or draw one figure of every area: areas × 3; on the agency's `finer` grids, or as a reader would."""

    def count(*rows: int) -> Floats:
        return np.asarray(values[:, [at[each] for each in rows]].sum(1))

    if row.id == 3:
        return np.round(100.0 * ratio(count(1) - count(2), count(2)), 1)
    if row.id in (6, 7):
        land: Floats = np.maximum(np.round(block.land, 2), 0.01)[:, None].repeat(3, axis=1)
        return land if row.id == 7 else np.asarray(np.round(count(1) / land, 1))
    if row.id in HUNDREDS:
        return np.full((len(values), 3), 100.0)
    if row.id in PERCENTAGES:
        part, whole = PERCENTAGES[row.id]
        share = ratio(100.0 * count(part), count(whole))
        capped: Floats = np.where(share > 100.0, 100.0, share)
        return by_people(capped, count(whole)) if finer and row.is_income else np.round(capped, 1)
    if row.id in (39, 40):
        average, median = _ages(values[:, [at[age] for age in AGE_IDS]])
        if row.id == 39:
            return average
        return by_leading_digits(median) if finer else np.round(np.rint(median * 5.0) / 5.0, 1)
    if row.id in AVERAGES:
        part, wholes = AVERAGES[row.id]
        return np.round(ratio(count(part), count(*wholes)), 1)
    return _drawn(row.kind, row.id, len(values), rng)


def figures(block: CountBlock, table: Schema, seed: int, source: str = TRUE) -> Floats:
    """Return areas × rows × 3 numbers: published counts and the figures beside them; NaN for none."""
    assert block.published is not None, "figures stand beside published counts"
    at = table.index
    values = np.where(block.published == MISSING, np.nan, block.published.astype(np.float64))
    counts = values if source != TRUE else np.where(block.true == MISSING, np.nan, block.true.astype(np.float64))
    for step in table.plans:
        rng = stream(seed, _FIGURES, block.number, step.number)
        for row in table.rows[step.start : step.stop]:
            if row.is_count:
                continue
            figure = _figure(row, counts, at, block, rng, source == TRUE)
            values[:, at[row.id]] = figure if source != NONE or row.block == 1 else np.nan
            if not row.has_sex:
                values[:, at[row.id], 1:] = np.nan
            if row.block > 1:
                values[block.income_hidden if row.is_income else block.hidden, at[row.id]] = np.nan
    return values


def described_figures(table: Schema) -> list[Figure]:
    """Return the figures of a profile, and what they are of, for a description of its table."""
    kinds = {"percent": "percentage"}
    named = profile_lines((str(row.id), "  " * row.depth + row.name) for row in table.rows)
    lines = [
        replace(line, kind=kinds.get(row.kind, row.kind), sexes=SEXES if row.has_sex else SEXES[:1])
        for row, line in zip(table.rows, named, strict=True)
    ]
    return [figure for figure in propose(lines) if figure.universe or figure.groups]
