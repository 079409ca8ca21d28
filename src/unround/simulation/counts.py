"""True and published counts of a simulated census, in blocks of areas, and the figures beside them.

Every block of `BLOCK` areas, and in it every block of the profile, has random streams of its own, keyed by the seed and the
places of the two. So the numbers depend neither on how the census is written nor on which rows are asked for.

Where records have keys, or weights, the records that the counts are of are followed through the same blocks.

Figures are worked out from the true counts, and rounded as the Canadian ones are: rates of low income in steps of 0.1 to 1,
finer with more people; medians in steps that grow with the leading digits; all else to one decimal. So they tell something
about the true counts, as published figures may. Or they are worked out from the published counts, as a reader of the tables
could, and tell nothing. Amounts of money and the like are drawn, so that files look right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from math import isfinite
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError
from unround.figures import Figure
from unround.mechanisms import mechanism
from unround.mechanisms.rounding import TwoWay
from unround.simulation.geography import Geography, plan
from unround.simulation.people import (
    Counts,
    Floats,
    KeyedRecords,
    Keys,
    People,
    Population,
    parts_of,
    people,
    population,
    sample_of,
    some_of,
    stacked,
)
from unround.simulation.profile import BLOCKS, EXACT, SAMPLE, SEXES, BlockPlan, ProfileBlock, ProfileRow, Schema, schema
from unround.tables.figure_labels import TableLine, propose
from unround.tables.lines import ProfileLine, blocks_of

ONE = 1 << 64  # 1 in the units in which keys are added up
BLOCK = 128  # Areas drawn together. Another value makes another census.
MISSING = -1  # in arrays of counts: no count stands here (or, among published ones, it was hidden)

FEW_PEOPLE, INCOME_PEOPLE, INCOME_HOUSEHOLDS = 40, 250, 40
_PEOPLE, _TRUTH, _PUBLISH, _FIGURES, _RECORDS, _CONSTANTS = range(1, 7)  # the kinds of random streams

CountArray = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Constants:
    """Which constant every table has: what is added to the sum of a cell's keys.

    >>> Constants.parse("8=0.31, 58=0.19").given
    ((8, 0.31), (58, 0.19))
    >>> Constants.parse("0").everywhere
    0.0
    """

    everywhere: float | None = None  # the same for all tables; None draws one for each
    given: tuple[tuple[int, float], ...] = ()  # constants of single tables, by the ID of their first row

    @classmethod
    def parse(cls, text: str) -> Constants:
        """Read what the user wants: "" draws them all, "0" gives all the same, "8=0.31,58=0.19" some their own.

        Raises `InputError` if a constant is not a number from 0 to 1, or there is no such table.
        """
        pieces = [piece.strip() for piece in text.split(",") if piece.strip()]
        if len(pieces) == 1 and "=" not in pieces[0]:
            return cls(_number(pieces[0]))
        heads = {table_of(block) for block in BLOCKS if block.mechanism != EXACT and block.rule != "figures"}
        given: dict[int, float] = {}
        for piece in pieces:
            table, equals, value = (part.strip() for part in piece.partition("="))
            if not equals or not table.isdecimal() or int(table) not in heads:
                raise InputError(
                    f"{piece!r} is not the constant of a table: write one number for all, such as 0, or the ID of the "
                    "table's first row and its constant, such as 8=0.31,58=0.19."
                )
            if int(table) in given:
                raise InputError(f"table {table} has two constants: give one.")
            given[int(table)] = _number(value)
        return cls(None, tuple(given.items()))

    def of(self, block: ProfileBlock, seed: int, edition: int = 1) -> int:
        """Return the constant of the table that a block stands in, in units of 2⁻⁶⁴.

        Every edition has constants of its own, unless they are given.
        """
        table = table_of(block)
        value = dict(self.given).get(table, self.everywhere)
        if value is not None:
            return int(value * ONE) % ONE
        key = np.random.SeedSequence(seed, spawn_key=(_CONSTANTS, table, edition))
        return int(np.random.default_rng(key).integers(0, ONE - 1, dtype=np.uint64, endpoint=True))

    def table(self, plans: Iterable[BlockPlan], seed: int, editions: int) -> pl.DataFrame:
        """Return edition, table, its title and its constant, for all tables that hold rounded counts."""
        blocks = [step.block for step in plans if step.block.mechanism != EXACT and len(step.nodes)]
        rows = [
            (edition, block.first, title_of(block), self.of(block, seed, edition) / ONE)
            for edition in range(1, editions + 1)
            for block in blocks
            if table_of(block) == block.first
        ]
        return pl.DataFrame(rows, schema=["edition", "table", "title", "constant"], orient="row")


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value) or not 0 <= value <= 1:
        raise InputError(f"the constant of a table is a number from 0 to 1, such as 0.31; not {text!r}.")
    return value


def title_of(block: ProfileBlock) -> str:
    """Return what the table is called."""
    return block.labels[0].removeprefix("Total - ") if block.labels else block.title


def table_of(block: ProfileBlock) -> int:
    """Return the ID of the first row of the table that a block stands in.

    A block that begins indented goes on with the table before it; some of another block's people stand in its table.
    """
    if block.rule == "within":
        return int(block.universe)
    if not block.shape.startswith("0"):
        return max(other.first for other in BLOCKS if other.first < block.first and other.shape.startswith("0"))
    return block.first


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
    keys: Keys | None = None  # for every count the sum of its records' keys, modulo 1, in units of 2⁻⁶⁴
    estimates: Floats | None = None  # what is rounded: true counts and, in sample tables, sums of weights

    def some(self, keep: NDArray[np.bool_]) -> CountBlock:
        """Return some of the areas."""
        arrays = [
            None if values is None else values[keep]
            for values in (self.true, self.land, self.hidden, self.income_hidden, self.published, self.keys, self.estimates)
        ]
        return CountBlock(self.number, self.regions.filter(pl.Series(keep)), *arrays)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Rounds:
    """How a census is rounded."""

    constants: Constants | None = None  # where every record has a key, the constants of the tables
    weighted: bool = False  # whether sample tables show sums of weights, which are not whole, in place of counts
    figures: str = "true"  # what rates, averages and medians are computed from: "true" counts, "published" ones, or "none"


PLAIN = Rounds()  # every count is whole, and rounded on its own


def stream(seed: int, kind: int, block: int, part: int = 0, edition: int = 1) -> np.random.Generator:
    """Return the random stream of one purpose, block of areas, part of the profile, and edition."""
    key = (kind, block, part) if edition == 1 else (kind, block, part, edition)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


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


def _add_up(step: BlockPlan, leaves: NDArray[Any]) -> NDArray[Any]:
    """Add leaves up to all ordinary counts of a block (… × nodes)."""
    summed = np.zeros((*leaves.shape[:-1], step.leaves + 1), dtype=leaves.dtype)
    np.cumsum(leaves, axis=-1, out=summed[..., 1:])
    return np.asarray(summed[..., step.high] - summed[..., step.low])


def _any(step: BlockPlan, universe: Counts, traits: Floats, rng: np.random.Generator) -> Counts:
    """Let people give one answer, some of them two; a group counts people, not answers."""
    shares = _shares(step, traits, universe.shape[1], rng)
    first = _add_up(step, rng.multinomial(universe, shares))
    second = _add_up(step, rng.multinomial(rng.binomial(universe, 0.35), shares))
    leaf = step.high - step.low == 1
    people_too = np.where(leaf, second, rng.binomial(second, 0.6))
    counts: Counts = np.minimum(first + people_too, universe[:, :, None])
    for node in np.flatnonzero(~leaf)[:0:-1]:  # a group is not smaller than any of its parts
        inside = (step.low >= step.low[node]) & (step.high <= step.high[node])
        counts[:, :, node] = counts[:, :, inside].max(2)
    counts[:, :, 0] = universe
    return counts


def _within(step: BlockPlan, base: Counts, rng: np.random.Generator) -> Counts:
    """Take the poor out of each leaf of another block (areas × sexes × rows)."""
    chance = rng.beta(2.0, 16.0, (len(base), 1, 1))
    return np.asarray(_add_up(step, rng.binomial(base[:, :, step.nodes[_leaf_nodes(step)]], chance)))


def _fill(target: NDArray[Any], rows: Any, values: NDArray[Any]) -> None:
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
        return _add_up(step, rng.multinomial(universe, _shares(step, crowd.traits, universe.shape[1], rng)))
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
        _fill(true, step.start + step.nodes, _counts_of(step, table, true, crowd, rng))
        for row, parent in step.subsets:
            some = rng.binomial(true[:, step.start + parent, step.block.sexes], 0.33)
            _fill(true, [step.start + row], some[:, :, None])
    return true, crowd


# -- the records behind them ------------------------------------------------------------------------------------------

ONE_PERSON, HOUSEHOLD_TYPES = 51, 100
"""The households of one person, and the table of household types, the last of which they are."""


def _leaf_nodes(step: BlockPlan) -> list[int]:
    """Return for every leaf the node that is it alone."""
    alone = {int(low): node for node, (low, high) in enumerate(zip(step.low, step.high, strict=True)) if high - low == 1}
    return [alone[leaf] for leaf in range(step.leaves)]


@dataclass(frozen=True, slots=True, eq=False)
class Behind:
    """The records behind all cells of a block of areas: areas × rows × 3 (total, men, women).

    - `cells`: Numbers, weights (what is published, rounded) and sums of keys, filled block by block of the profile.
    """

    table: Schema  # the rows of the profile
    true: Counts  # how many records there are in all; `cells` has those in the sample, where there is one
    people: Population  # the universes that they come from
    cells: KeyedRecords
    weighted: bool  # whether sample tables show sums of weights

    @classmethod
    def of(cls, table: Schema, true: Counts, crowd: People, seed: int, number: int, *, weighted: bool) -> Behind:
        """Draw what lies behind the true counts of a block of dissemination areas."""
        nothing = KeyedRecords(np.zeros_like(true), np.zeros(true.shape), np.zeros(true.shape, np.uint64))
        # The records themselves have a place among random streams that no block of the profile has.
        everyone = population(crowd.cells, stream(seed, _RECORDS, number), weighted=weighted)
        behind = cls(table, true, everyone, nothing, weighted)
        for step in table.plans:
            if step.block.rule != "figures" and step.block.mechanism != EXACT:
                behind._block(step, stream(seed, _RECORDS, number, step.number + 1))
        for universe, row in (("people", 1), ("households", 5)):  # published as they are: for those who look at the keys
            behind._fill([table.index[row]], everyone.universes[universe].sum(1)[:, None, None])
        return behind

    def _at(self, rows: Any, sexes: slice, *, sampled: bool) -> KeyedRecords:
        """Return the records of some rows, areas × rows × sexes."""
        return replace(self.cells[:, rows, sexes], sampled=sampled)

    def _fill(self, rows: Any, records: KeyedRecords) -> None:
        """Write records, areas × sexes × rows, into some rows."""
        cells = self.cells
        pairs = ((cells.number, records.number), (cells.weight, records.weight), (cells.key, records.key))
        for array, values in pairs:
            _fill(array, rows, values)

    def _block(self, step: BlockPlan, rng: np.random.Generator) -> None:
        """Draw the records of one block of the profile."""
        block, nodes = step.block, step.start + step.nodes
        counts = self.true[:, step.start : step.stop, block.sexes].swapaxes(1, 2)
        sampled = self.weighted and block.mechanism == SAMPLE
        if block.rule == "within":
            leaves = step.nodes[_leaf_nodes(step)]
            rows = self.table.index[int(block.universe)] + leaves
            whole = self._at(rows, block.sexes, sampled=False)
            some = some_of(whole, self.true[:, rows, block.sexes], counts[:, :, leaves].swapaxes(1, 2), rng)
            self._fill(nodes, some.each(lambda values: _add_up(step, values.swapaxes(1, 2))))
        elif block.rule in ("stats", "any"):  # some of the records of the count above, which need not exclude each other
            held = [self._universe(step, rng, sampled=sampled)]
            for node, over in enumerate(_over(step), start=1):
                held.append(some_of(held[over], counts[:, :, step.nodes[over]], counts[:, :, step.nodes[node]], rng))
            self._fill(nodes, stacked(held))
        else:
            whole = self._universe(step, rng, sampled=sampled)
            self._fill(nodes, self._leaves(step, whole, counts, rng).each(lambda values: _add_up(step, values)))
        for row, parent in step.subsets:
            at = step.start + parent
            whole = self._at(at, block.sexes, sampled=sampled)
            self._fill([step.start + row], some_of(whole, self.true[:, at, block.sexes], counts[:, :, row], rng)[:, :, None])

    def _universe(self, step: BlockPlan, rng: np.random.Generator, *, sampled: bool) -> KeyedRecords:
        """Return the records that a block counts: areas × sexes."""
        if not step.block.universe.startswith("="):
            return (self.people.sample if sampled else self.people.universes)[step.block.universe]
        places = [self.table.index[row] for row in step.block.counted_rows]
        from_sample = sampled and self.table.rows[places[0]].mechanism == SAMPLE
        whole = self._at(places, step.block.sexes, sampled=from_sample).sum(1)
        return whole if from_sample or not sampled else sample_of(whole, rng)

    def _leaves(self, step: BlockPlan, whole: KeyedRecords, counts: Counts, rng: np.random.Generator) -> KeyedRecords:
        """Return the records of the parts of a partition."""
        if step.block.first in self.people.leaves:
            return self.people.leaves[step.block.first]
        leaves = counts[:, :, step.nodes[_leaf_nodes(step)]]
        if step.block.first != HOUSEHOLD_TYPES:
            return parts_of(whole, leaves, rng)
        alone = self._at(self.table.index[ONE_PERSON], slice(0, 1), sampled=False)
        others = parts_of(whole - alone, leaves[:, :, :-1], rng)
        return stacked([*(others[:, :, part] for part in range(leaves.shape[2] - 1)), alone])


@cache
def _over(step: BlockPlan) -> tuple[int, ...]:
    """Return for every node but the first the last one before it that all of its leaves are under."""
    low, high = step.low, step.high
    return tuple(
        int(np.flatnonzero((low[:node] <= low[node]) & (high[:node] >= high[node]))[-1]) for node in range(1, len(low))
    )


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


def true_counts(
    areas: int, seed: int, rows: str = "age", small: bool = False, rounds: Rounds = PLAIN
) -> Iterator[CountBlock]:
    """Draw a census of so many areas, block by block; a parent comes after its children and is their sum."""
    table, place = schema(rows, rounds.weighted), plan(areas, seed, small)
    at, shown, sample = table.index, table.shown, np.array([row.mechanism == SAMPLE for row in table.rows])
    parents = _Parents()
    for number, start in enumerate(range(0, areas, BLOCK)):
        here = slice(start, min(start + BLOCK, areas))
        true, crowd = _area_counts(table, place, here, seed, number)
        drawn = list[NDArray[Any]]()
        if rounds.constants is not None or rounds.weighted:
            cells = Behind.of(table, true, crowd, seed, number, weighted=rounds.weighted).cells
            drawn = [cells.key, cells.weight]
        parents.fill(place.level[here], true, crowd.land, *drawn)
        counts = np.where(shown, true, MISSING).astype(np.int32)
        residents, households = counts[:, at[1], 0], counts[:, at[5], 0]
        hidden = residents < FEW_PEOPLE
        yield CountBlock(
            number=number,
            regions=place.regions[here],
            true=counts,
            land=crowd.land,
            hidden=hidden,
            income_hidden=hidden | (residents < INCOME_PEOPLE) | (households < INCOME_HOUSEHOLDS),
            keys=drawn[0] if rounds.constants is not None else None,
            estimates=np.where(shown & sample[:, None], drawn[1], counts) if rounds.weighted else None,
        )


def publish(block: CountBlock, table: Schema, seed: int, edition: int = 1, rounds: Rounds = PLAIN) -> CountArray:
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
        how, amounts = mechanism(step.block.mechanism), np.maximum(exact, 0).astype(np.int64)
        weighted = block.estimates is not None and step.block.mechanism == SAMPLE
        if rounds.constants is None and not weighted:
            drawn = how.publish(amounts, rng)
        else:
            assert isinstance(how, TwoWay)
            if block.keys is None or rounds.constants is None:
                numbers: Keys = rng.integers(0, ONE - 1, amounts.shape, dtype=np.uint64, endpoint=True)
            else:
                numbers = block.keys[:, rows] + np.uint64(rounds.constants.of(step.block, seed, edition))
            if weighted and block.estimates is not None:
                drawn = how.publish_keyed(np.maximum(block.estimates[:, rows], 0.0), numbers)
            else:
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
    counts = values
    if source == TRUE:
        exact = block.true if block.estimates is None else block.estimates
        counts = np.where(block.true == MISSING, np.nan, exact.astype(np.float64))
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
    blocks = blocks_of([ProfileLine(row.id, row.name, row.depth) for row in table.rows])
    lines = [
        TableLine(str(row.id), row.name, row.depth, block, "percentage" if row.kind == "percent" else row.kind,
                  SEXES if row.has_sex else SEXES[:1])
        for row, block in zip(table.rows, blocks, strict=True)
    ]  # fmt: skip
    return [figure for figure in propose(lines) if figure.universe or figure.groups]
