"""A simulated census whose counts are rounded by the keys of their records.

Every record has a key, uniform on [0, 1). What a table needs is the sum of the keys of a cell's records, modulo 1. That
sum is uniform as soon as the cell holds one record, and independent of the sums of cells that have no record in common;
so it is drawn once for every group of records that no universe divides, and added up from there, which is exact. A
partition of a universe draws the sums of all parts but one, which follows; a subset that is neither empty nor the whole
has a sum of its own. Sums are kept in units of 2⁻⁶⁴, where 64-bit arithmetic itself is modulo 1.

Persons, households and families are records of different kinds, with keys of their own. They are followed through the same
blocks of areas as the counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import polars as pl

from unround.mechanisms import mechanism
from unround.mechanisms.base import keyable
from unround.options import Simulate
from unround.simulation.counts import (
    MISSING,
    PUBLISHING,
    TRUE,
    CountBlock,
    Keys,
    add_up,
    fill,
    leaf_nodes,
    stream,
    true_counts,
)
from unround.simulation.people import Cells, Counts, People, other_universes, private_universes
from unround.simulation.profile import EXACT, BlockPlan, ProfileBlock, Schema, schema, table_of

ONE = 1 << 64  # 1 in the units in which keys are added up
_RECORDS, _CONSTANTS = 5, 6  # kinds of random streams, after those of the census itself


def drawn_keys(number: Counts, rng: np.random.Generator) -> Keys:
    """Draw the sums of keys of groups that have no record in common; that of no record is 0."""
    return np.where(number > 0, rng.integers(0, ONE - 1, number.shape, dtype=np.uint64, endpoint=True), np.uint64(0))


def keys_of_parts(whole: Keys, parts: Counts, rng: np.random.Generator) -> Keys:
    """Deal the records of a universe (areas × sexes) out to the parts of a partition whose sizes are given."""
    keys = drawn_keys(parts, rng)
    # The last part with a record in it makes the sums come to those of the whole; where all are empty, 0 stays 0.
    last = parts.shape[-1] - 1 - np.argmax(parts[..., ::-1] > 0, axis=-1)[..., None]
    made_up = np.take_along_axis(keys, last, -1) + whole[..., None] - keys.sum(-1, keepdims=True)
    np.put_along_axis(keys, last, made_up, -1)
    return keys


def keys_of_some(whole: Keys, true: Counts, some: Counts, rng: np.random.Generator) -> Keys:
    """Take a subset of the records of some groups: `some` of the `true` records that there are."""
    return np.where(some == true, whole, drawn_keys(some, rng))


def _universes(cells: Cells, rng: np.random.Generator) -> tuple[dict[str, Keys], dict[int, Keys]]:
    """Draw the keys of all universes, by name, and of the parts of core blocks that are whole groups of records.

    The latter are by the ID of the block's first row.
    """
    at_school, teens, private = (drawn_keys(number, rng) for number in (cells.at_school, cells.teens, cells.private))
    for age, some, number in ((0, at_school, cells.at_school), (3, teens, cells.teens)):  # these ages consist of two groups
        private[:, :, age] = some + drawn_keys(cells.private[:, :, age] - number, rng)
    residents, institutional, households, families = (
        drawn_keys(number, rng) for number in (cells.residents, cells.institutional, cells.households, cells.families)
    )
    universes = private_universes(private, households, families)
    universes |= other_universes(private, residents, institutional, at_school, teens)
    minors, old = universes["minors"], private[:, :, 13:].sum(2)
    by_age = np.stack([minors, universes["private"] - minors - old, old], axis=-1)
    return universes, {8: private + residents + institutional, 50: households, 71: families, 335: by_age, 350: by_age}


ONE_PERSON, HOUSEHOLD_TYPES = 51, 100
"""The households of one person, and the table of household types, where they are the last."""


class RecordKeys:
    """The sums of keys of all cells of a block of dissemination areas: areas × rows × 3 (total, men, women)."""

    def __init__(self, table: Schema, true: Counts, crowd: People, seed: int, number: int) -> None:
        # The records themselves have a place among random streams that no block of the profile has.
        self._universes, self._leaves = _universes(crowd.cells, stream(seed, _RECORDS, number))
        self._table, self._true, self.keys = table, true, np.zeros(true.shape, np.uint64)
        for step in table.plans:
            if step.block.rule != "figures" and step.block.mechanism != EXACT:
                self._block(step, stream(seed, _RECORDS, number, step.number + 1))
        for universe, row in (("people", 1), ("households", 5)):  # published as they are: for those who look at the keys
            fill(self.keys, [table.index[row]], self._universes[universe].sum(1)[:, None, None])

    def _block(self, step: BlockPlan, rng: np.random.Generator) -> None:
        """Draw the keys of one block of the profile."""
        block, nodes = step.block, step.start + step.nodes
        counts = self._true[:, step.start : step.stop, block.sexes].swapaxes(1, 2)
        if block.rule == "within":
            leaves = step.nodes[leaf_nodes(step)]
            rows = self._table.index[int(block.universe)] + leaves
            whole, true = self.keys[:, rows, block.sexes], self._true[:, rows, block.sexes]
            some = keys_of_some(whole, true, counts[:, :, leaves].swapaxes(1, 2), rng)
            fill(self.keys, nodes, add_up(step, some.swapaxes(1, 2)))
        elif block.rule in ("stats", "any"):  # some of the records of the count above, which need not exclude each other
            held = [self._universe(block)]
            for node, over in enumerate(_over(step), start=1):
                held.append(keys_of_some(held[over], counts[:, :, step.nodes[over]], counts[:, :, step.nodes[node]], rng))
            fill(self.keys, nodes, np.stack(held, axis=-1))
        else:
            fill(self.keys, nodes, add_up(step, self._parts(step, counts, rng)))
        for row, parent in step.subsets:
            at = step.start + parent
            some = keys_of_some(self.keys[:, at, block.sexes], self._true[:, at, block.sexes], counts[:, :, row], rng)
            fill(self.keys, [step.start + row], some[:, :, None])

    def _universe(self, block: ProfileBlock) -> Keys:
        """Return the keys of the records that a block counts: areas × sexes."""
        if not block.universe.startswith("="):
            return self._universes[block.universe]
        summed: Keys = self.keys[:, [self._table.index[row] for row in block.counted_rows], block.sexes].sum(1)
        return summed

    def _parts(self, step: BlockPlan, counts: Counts, rng: np.random.Generator) -> Keys:
        """Return the keys of the parts of a partition."""
        if step.block.first in self._leaves:
            return self._leaves[step.block.first]
        whole, leaves = self._universe(step.block), counts[:, :, step.nodes[leaf_nodes(step)]]
        if step.block.first != HOUSEHOLD_TYPES:
            return keys_of_parts(whole, leaves, rng)
        alone = self.keys[:, self._table.index[ONE_PERSON], :1]
        return np.concatenate([keys_of_parts(whole - alone, leaves[:, :, :-1], rng), alone[..., None]], axis=-1)


@cache
def _over(step: BlockPlan) -> tuple[int, ...]:
    """Return for every node but the first the last one before it that all of its leaves are under."""
    low, high = step.low, step.high
    return tuple(
        int(np.flatnonzero((low[:node] <= low[node]) & (high[:node] >= high[node]))[-1]) for node in range(1, len(low))
    )


# -- the census -------------------------------------------------------------------------------------------------------


def title_of(block: ProfileBlock) -> str:
    """Return what the table is called."""
    return block.labels[0].removeprefix("Total - ") if block.labels else block.title


@dataclass(frozen=True, slots=True)
class Rounds:
    """How a census is rounded: each count on its own, or by the keys of its records and a constant of its table."""

    seed: int = 1
    keys: bool = False
    constant: float | None = None  # of all tables, where counts are rounded by keys; None draws one for each
    figures: str = TRUE  # what rates, averages and medians are computed from: "true" counts, "published" ones, or "none"

    @classmethod
    def of(cls, given: Simulate) -> Rounds:
        """Read what the user wants."""
        return cls(given.seed, given.keys, given.constant, given.figures)

    def counts(self, areas: int, rows: str, small: bool = False) -> Iterator[CountBlock]:
        """Draw the census: true counts and what is published of them; the sums of keys beside them where there are any."""

        def keys(table: Schema, true: Counts, crowd: People, number: int) -> Keys:
            return RecordKeys(table, true, crowd, self.seed, number).keys

        for block in true_counts(areas, self.seed, rows, small, keys if self.keys else None):
            yield self.published(block, schema(rows))

    def published(self, block: CountBlock, table: Schema) -> CountBlock:
        """Return a block as it is published: every count rounded, and those of small areas hidden."""
        published = block.true.copy()
        for step in table.plans:
            if step.block.mechanism == EXACT or not len(step.nodes):
                continue
            rows, how = slice(step.start, step.stop), mechanism(step.block.mechanism)
            there = block.true[:, rows] >= 0
            amounts = np.where(there, block.true[:, rows], 0).astype(np.int64)
            if block.keys is None:
                drawn = how.publish(amounts, stream(self.seed, PUBLISHING, block.number, step.number))
            else:
                numbers = block.keys[:, rows] + np.uint64(self.constant_of(step.block))
                drawn = keyable(how).publish_keyed(amounts, numbers)
            published[:, rows] = np.where(there, drawn, MISSING)
        small = np.array([row.mechanism != EXACT for row in table.rows])
        income = np.array([row.is_income for row in table.rows])
        published[np.ix_(block.hidden, small)] = MISSING
        published[np.ix_(block.income_hidden, income)] = MISSING
        return replace(block, published=published)

    def constant_of(self, block: ProfileBlock) -> int:
        """Return the constant of the table that a block stands in, in units of 2⁻⁶⁴."""
        if self.constant is not None:
            return int(self.constant * ONE) % ONE
        key = np.random.SeedSequence(self.seed, spawn_key=(_CONSTANTS, table_of(block), 1))
        return int(np.random.default_rng(key).integers(0, ONE - 1, dtype=np.uint64, endpoint=True))

    def constants(self, plans: Iterable[BlockPlan]) -> pl.DataFrame:
        """Return every table that holds rounded counts, its title and its constant."""
        blocks = [step.block for step in plans if step.block.mechanism != EXACT and len(step.nodes)]
        rows = [
            (block.first, title_of(block), self.constant_of(block) / ONE)
            for block in blocks
            if table_of(block) == block.first
        ]
        return pl.DataFrame(rows, schema=["table", "title", "constant"], orient="row")
