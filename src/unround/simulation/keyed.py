"""A simulated census whose counts are rounded by the keys of their records, or are sums of weights, or both.

Every record has a key, uniform on [0, 1). What a table needs is the sum of the keys of a cell's records, modulo 1. That
sum is uniform as soon as the cell holds one record, and independent of the sums of cells that have no record in common;
so it is drawn once for every group of records that no universe divides, and added up from there, which is exact. A
partition of a universe draws the sums of all parts but one, which follows; a subset that is neither empty nor the whole
has a sum of its own. Sums are kept in units of 2⁻⁶⁴, where 64-bit arithmetic itself is modulo 1.

Persons, households and families are records of different kinds, with keys of their own.

Sample tables count one record in four, each with a weight of about four; weights are gamma, so that sums of weights and
their shares can be drawn as they are. They are calibrated: in every area the weights of the persons (the households, the
families) in the sample come to their number within about one per cent.

The records that the counts are of are followed through the same blocks of areas as the counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from math import isfinite
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError
from unround.mechanisms import Mechanism
from unround.mechanisms.rounding import TwoWay
from unround.options import Simulate
from unround.simulation.counts import TRUE, CountBlock, Draw, _fill, add_up, leaf_nodes, publish, stream, true_counts
from unround.simulation.people import Cells, Counts, Floats, People, other_universes, private_universes
from unround.simulation.profile import (
    BLOCKS,
    EXACT,
    SAMPLE,
    BlockPlan,
    ProfileBlock,
    Schema,
    schema,
    table_of,
    universe_sums,
)

ONE = 1 << 64  # 1 in the units in which keys are added up
_RECORDS, _CONSTANTS = 5, 6  # kinds of random streams, after those of the census itself


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
        """Return the constant of the table that a block stands in, in units of 2⁻⁶⁴; every edition draws its own."""
        table = table_of(block)
        value = dict(self.given).get(table, self.everywhere)
        if value is not None:
            return int(value * ONE) % ONE
        key = np.random.SeedSequence(seed, spawn_key=(_CONSTANTS, table, edition))
        return int(np.random.default_rng(key).integers(0, ONE - 1, dtype=np.uint64, endpoint=True))

    def table(self, plans: Iterable[BlockPlan], seed: int, editions: int) -> pl.DataFrame:
        """Return every edition and table that holds rounded counts, its title and its constant."""
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
    universes = private_universes(private, households, families)
    universes |= other_universes(private, residents, institutional, at_school, teens)
    minors, old = universes["minors"], private[:, :, 13:].sum(2)
    by_age = stacked([minors, universes["private"] - minors - old, old])
    leaves = {8: private + residents + institutional, 50: households, 71: families, 335: by_age, 350: by_age}
    if not weighted:
        return Population(universes, leaves, {})
    drawn = (calibrated(sample_of(whole, rng), whole, rng) for whole in (private, households, families))
    return Population(universes, leaves, private_universes(*drawn))


# -- the records behind them ------------------------------------------------------------------------------------------

ONE_PERSON, HOUSEHOLD_TYPES = 51, 100
"""The households of one person, and the table of household types, the last of which they are."""


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
            leaves = step.nodes[leaf_nodes(step)]
            rows = self.table.index[int(block.universe)] + leaves
            whole = self._at(rows, block.sexes, sampled=False)
            some = some_of(whole, self.true[:, rows, block.sexes], counts[:, :, leaves].swapaxes(1, 2), rng)
            self._fill(nodes, some.each(lambda values: add_up(step, values.swapaxes(1, 2))))
        elif block.rule in ("stats", "any"):  # some of the records of the count above, which need not exclude each other
            held = [self._universe(step, rng, sampled=sampled)]
            for node, over in enumerate(_over(step), start=1):
                held.append(some_of(held[over], counts[:, :, step.nodes[over]], counts[:, :, step.nodes[node]], rng))
            self._fill(nodes, stacked(held))
        else:
            whole = self._universe(step, rng, sampled=sampled)
            self._fill(nodes, self._leaves(step, whole, counts, rng).each(lambda values: add_up(step, values)))
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
        leaves = counts[:, :, step.nodes[leaf_nodes(step)]]
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


# -- the census -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rounds:
    """How a census is rounded: each count on its own, unless there are keys or weights."""

    seed: int = 1
    constants: Constants | None = None  # where every record has a key, the constants of the tables
    weighted: bool = False  # whether sample tables show sums of weights, which are not whole, in place of counts
    figures: str = TRUE  # what rates, averages and medians are computed from: "true" counts, "published" ones, or "none"

    @classmethod
    def of(cls, given: Simulate) -> Rounds:
        """Read what the user wants."""
        return cls(given.seed, Constants.parse(given.constants) if given.keys else None, given.weighted, given.figures)

    @property
    def plain(self) -> bool:
        """Whether there are neither keys nor weights."""
        return self.constants is None and not self.weighted

    def schema(self, rows: str) -> Schema:
        """Return the rows of a profile; where sample tables are weighted, no sum has both counts and estimates."""
        table = schema(rows)
        if not self.weighted:
            return table
        if not any(row.mechanism == SAMPLE for row in table.rows):
            raise InputError(f"the rows called {rows} are all 100% data, so nothing is weighted: choose rows sample or all.")
        sampled, whole = (
            [step.block for step in table.plans if (step.block.mechanism == SAMPLE) is wanted] for wanted in (True, False)
        )
        layout = tuple(item for item in table.sums if item.why == "layout")
        return replace(table, sums=(*layout, *universe_sums(whole), *universe_sums(sampled, sample=True)))

    def counts(self, areas: int, rows: str, small: bool = False) -> Iterator[CountBlock]:
        """Draw the census: true counts and what is published of them; keys and weights beside them where there are any."""
        table = self.schema(rows)

        def records(_: Schema, true: Counts, crowd: People, number: int) -> tuple[Keys, Floats]:
            behind = Behind.of(table, true, crowd, self.seed, number, weighted=self.weighted).cells
            return behind.key, behind.weight

        beside = {} if self.plain else {"beside": records}
        for block in true_counts(areas, self.seed, rows, small, **beside):
            yield self.published(block, table)

    def published(self, block: CountBlock, table: Schema, edition: int = 1) -> CountBlock:
        """Return a block as it is published in one edition."""
        how = {} if self.plain else {"draw": self._draw(block, table, edition)}
        return replace(block, published=publish(block, table, self.seed, edition, **how))

    def _draw(self, block: CountBlock, table: Schema, edition: int) -> Draw:
        estimates, keys = self.shown(block, table).true, block.more[0]

        def draw(step: BlockPlan, how: Mechanism, amounts: Counts, rng: np.random.Generator) -> Counts:
            weighted = self.weighted and step.block.mechanism == SAMPLE
            if self.constants is None and not weighted:
                return how.publish(amounts, rng)
            assert isinstance(how, TwoWay)
            places = slice(step.start, step.stop)
            if self.constants is None:
                numbers: Keys = rng.integers(0, ONE - 1, amounts.shape, dtype=np.uint64, endpoint=True)
            else:
                numbers = keys[:, places] + np.uint64(self.constants.of(step.block, self.seed, edition))
            return how.publish_keyed(np.maximum(estimates[:, places], 0.0) if weighted else amounts, numbers)

        return draw

    def shown(self, block: CountBlock, table: Schema) -> CountBlock:
        """Return a block for those who see the truth: estimates before they were rounded, and keys where there are any."""
        more = () if self.constants is None else block.more[:1]
        if not self.weighted:
            return replace(block, more=more)
        cells = table.shown & np.array([row.mechanism == SAMPLE for row in table.rows])[:, None]
        real: Any = np.where(cells, block.more[1], block.true)
        return replace(block, true=real, more=more)

    def remarks(self) -> list[str]:
        """Say how counts were rounded, if not each on its own."""
        keyed = (
            "Every record has a key; a count is rounded by the sum of its records' keys and a constant of its table. The "
            "truth has the sum of keys of every count."
        )
        weighted = "Sample tables show weighted estimates; the truth is the estimate before it was rounded."
        return [keyed] * (self.constants is not None) + [weighted] * self.weighted
