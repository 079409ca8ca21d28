"""What lies behind every cell of the profile, block by block: the sum of its records' keys, and its weighted estimate.

The counts are drawn before, by `counts`; here the records that they count are followed through the same blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.simulation.people import Cells, Counts, Floats
from unround.simulation.profile import EXACT, SAMPLE
from unround.simulation.records import Keys, Population, Records, parts_of, population, sample_of, some_of, stacked
from unround.simulation.schema import BlockPlan, Schema

ONE_PERSON, HOUSEHOLD_TYPES = 51, 100
"""The households of one person, and the table of household types, the last of which they are."""


@dataclass(frozen=True, slots=True, eq=False)
class Behind:
    """What lies behind the cells of a block of areas: areas × rows × 3 (total, men, women).

    - `keys`: The sums of the records' keys, in units of 2⁻⁶⁴.
    - `weights`: What is published, rounded: the count, or in sample tables the sum of the weights.
    - `number`: How many records there are: those in the sample, where there is one.
    """

    keys: Keys
    weights: Floats
    number: Counts

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> Behind:
        """Return room for so many cells."""
        return cls(np.zeros(shape, np.uint64), np.zeros(shape), np.zeros(shape, np.int64))

    def of(self, rows: Any, sexes: slice, *, sampled: bool) -> Records:
        """Return the records of some rows, areas × rows × sexes."""
        at = (slice(None), rows, sexes)
        return Records(self.number[at], self.weights[at], self.keys[at], sampled)

    def fill(self, rows: Any, records: Records) -> None:
        """Write men and women and their sum, or the total only, into some rows; records are areas × sexes × rows."""
        for array, own in ((self.number, records.number), (self.weights, records.weight), (self.keys, records.key)):
            if own.shape[1] == 2:
                array[:, rows, 1:] = own.swapaxes(1, 2)
            array[:, rows, 0] = own.sum(1)


Stream = Callable[[int], np.random.Generator]
"""The random numbers of a block of the profile, by its number; −1 stands for the records themselves."""


def behind(table: Schema, true: Counts, cells: Cells, stream: Stream, *, weighted: bool) -> Behind:
    """Draw what lies behind the true counts of dissemination areas (areas × rows × 3)."""
    people = population(cells, stream(-1), weighted=weighted)
    result = Behind.empty(true.shape)
    for step in table.plans:
        block = step.block
        if block.rule == "figures" or block.mechanism == EXACT:
            continue
        rng, sexes = stream(step.number), slice(1, 3) if block.sex else slice(0, 1)
        counts = true[:, step.start : step.stop, sexes].swapaxes(1, 2)
        sampled = weighted and block.mechanism == SAMPLE
        if block.rule == "within":
            base = table.index[int(block.universe)]
            rows = base + step.nodes[leaf_nodes(step)]
            whole = result.of(rows, sexes, sampled=False)
            leaves = some_of(whole, true[:, rows, sexes], counts[:, :, step.nodes[leaf_nodes(step)]].swapaxes(1, 2), rng)
            _fill_tree(result, step, leaves.each(lambda values: values.swapaxes(1, 2)))
        else:
            whole = _universe(step, table, people, result, rng, sampled=sampled)
            if block.rule in ("stats", "any"):
                _fill_subsets(result, step, whole, counts, rng)
            else:
                _fill_tree(result, step, _leaves(step, table, people, result, whole, counts, rng))
        for row, parent in step.subsets:
            at = step.start + parent
            some = some_of(result.of(at, sexes, sampled=sampled), true[:, at, sexes], counts[:, :, row], rng)
            result.fill([step.start + row], some[:, :, None])
    for universe, row in (("people", 1), ("households", 5)):  # published as they are: for those who look at the keys
        result.fill([table.index[row]], people.universes[universe].sum(1)[:, None, None])
    return result


def leaf_nodes(step: BlockPlan) -> list[int]:
    """Return for every leaf the node that is it alone."""
    alone = {int(low): node for node, (low, high) in enumerate(zip(step.low, step.high, strict=True)) if high - low == 1}
    return [alone[leaf] for leaf in range(step.leaves)]


def _universe(
    step: BlockPlan, table: Schema, people: Population, result: Behind, rng: np.random.Generator, *, sampled: bool
) -> Records:
    """Return the records that a block counts: areas × sexes."""
    name = step.block.universe
    if not name.startswith("="):
        return (people.sample if sampled else people.universes)[name]
    sexes = slice(1, 3) if step.block.sex else slice(0, 1)
    places = [table.index[int(row)] for row in name[1:].split("+")]
    from_sample = sampled and table.rows[places[0]].mechanism == SAMPLE
    whole = result.of(places, sexes, sampled=from_sample).sum(1)
    return whole if from_sample or not sampled else sample_of(whole, rng)


def _leaves(
    step: BlockPlan,
    table: Schema,
    people: Population,
    result: Behind,
    whole: Records,
    counts: Counts,
    rng: np.random.Generator,
) -> Records:
    """Return the records of the parts of a partition."""
    if step.block.first in people.leaves:
        return people.leaves[step.block.first]
    leaves = counts[:, :, step.nodes[leaf_nodes(step)]]
    if step.block.first != HOUSEHOLD_TYPES:
        return parts_of(whole, leaves, rng)
    one = result.of(table.index[ONE_PERSON], slice(0, 1), sampled=False)
    others = parts_of(whole - one, leaves[:, :, :-1], rng)
    return stacked([*(others[:, :, part] for part in range(leaves.shape[2] - 1)), one])


def _fill_tree(result: Behind, step: BlockPlan, leaves: Records) -> None:
    """Add leaves (areas × sexes × leaves) up to all ordinary counts of a block."""

    def added(values: NDArray[Any]) -> NDArray[Any]:
        summed = np.zeros((*values.shape[:-1], step.leaves + 1), dtype=values.dtype)
        np.cumsum(values, axis=-1, out=summed[..., 1:])
        return np.asarray(summed[..., step.high] - summed[..., step.low])

    result.fill(step.start + step.nodes, leaves.each(added))


@cache
def _over(step: BlockPlan) -> tuple[int, ...]:
    """Return for every node but the first the last one before it that all of its leaves are under."""
    low, high = step.low, step.high
    return tuple(
        int(np.flatnonzero((low[:node] <= low[node]) & (high[:node] >= high[node]))[-1]) for node in range(1, len(low))
    )


def _fill_subsets(result: Behind, step: BlockPlan, whole: Records, counts: Counts, rng: np.random.Generator) -> None:
    """Let every count of a block be some of the records of the one above it, which need not exclude each other."""
    found: dict[int, Records] = {0: whole}
    for node, over in enumerate(_over(step), start=1):
        true, some = counts[:, :, step.nodes[over]], counts[:, :, step.nodes[node]]
        found[node] = some_of(found[over], true, some, rng)
    result.fill(step.start + step.nodes, stacked([found[node] for node in range(len(step.nodes))]))
