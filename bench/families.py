"""Chains over the tables of whole families, for docs/tables.md and docs/linked-methods.md: `python -m bench.families`.

First, families whose areas have multi-way tables: how much linking adds, how exact it is, and what it takes. Then ages
by sex, which are sampled or exchange messages (`bench.linked`), and what chains would make of them, with and without being
shrunk towards messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import process_time

import numpy as np
from numpy.typing import NDArray

from bench.linked import REFERENCE, Cube, distances, in_order, settled
from bench.linked import cube as ages_cube
from bench.mixing import cube
from bench.multiway import THRESHOLD
from unround.bounds.linked import linked_bounds
from unround.bounds.tighten import tighten
from unround.engines import multiway_block
from unround.engines.chains import Effort, FamilySamples, sample
from unround.engines.forest import posteriors
from unround.engines.gibbs import sample_families, shrink
from unround.engines.linked_weights import CountWeights, is_sampled, summarise
from unround.engines.loopy import exchange_messages, without_parts
from unround.engines.multiway_block import family_areas, sample_tables
from unround.evidence.block import BlockPosterior, CellBounds, Distributions, WindowTable
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms import Rounding
from unround.prior import PriorFit
from unround.sums.compiled import compile_sums
from unround.sums.families import find_families
from unround.sums.multiway import multiway_tables

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SHAPES, CHILDREN = ((5, 2, 4), (3, 3, 3)), (2, 4, 10)
PEOPLE = {5: 400, 3: 150}
"""How many people an area has, by base."""

FAMILIES, FITTED = 8, 400
"""Families that are sampled, and areas that the prior is fitted to at least."""

LONG = Effort(sweeps=60_000, rounds=0, error=np.inf, rhat=np.inf)
COPIES = 4
"""Groups of chains, from whose differences standard errors are taken."""


def family_of_tables(shape: tuple[int, ...], base: int, children: int, seed: int = 3) -> Cube:
    """Simulate families of areas with one table, and publish them."""
    equations, added = cube(shape)
    (table,) = multiway_tables(len(added), equations)
    assert table is not None
    rng = np.random.default_rng(seed)
    number = max(FAMILIES, -(-FITTED // children))
    rate = rng.gamma(0.8, 1.0, table.leaves.size)
    size = PEOPLE[base] * rng.gamma(3.0, 1 / 3, (number * children, 1))
    leaves = rng.poisson(size * rate / rate.sum() * rng.gamma(6.0, 1 / 6, (number * children, rate.size)))
    own = (leaves @ table.belongs().T.astype(np.int64)).reshape(number, children, -1)
    true = np.concatenate([own.sum(axis=1, keepdims=True), own], axis=1).reshape(-1, len(added))
    how = [Rounding(base)] * len(added)
    published = Rounding(base).publish(true, rng).astype(np.int32)
    kept = FAMILIES * (children + 1)
    compiled = compile_sums(len(added), equations, frozenset())
    windows, _ = WindowTable(how).of(published[:kept])
    tight = tighten(compiled, windows)
    fit = PriorFit(len(added))
    fit.add(published)
    prior = fit.finish(compiled, how).weights(published[:kept], tight.low, tight.high)
    heads = np.arange(FAMILIES) * (children + 1)
    parent = np.stack([np.full(FAMILIES, -1), *[heads] * children], axis=1).ravel()
    return Cube(EvidenceBlock(compiled, windows, tight, prior), true[:kept], parent)


def _drawn(one: Cube) -> tuple[FamilySamples, BlockPosterior]:
    bounds = linked_bounds(one.block, one.parent, one.linked)
    (table,) = one.block.compiled.multiway
    families = find_families(bounds.parent).families
    (drawn,) = sample_tables(replace(one.block, bounds=bounds.tight), table, families)
    posterior, known = BlockPosterior.empty(*drawn.chances.low.shape), np.flatnonzero(~drawn.failed[drawn.family])
    summarise(posterior, drawn.chances, known, known)
    return drawn, posterior


def _claimed(found: BlockPosterior) -> float:
    return float(((found.probability >= THRESHOLD) & (found.probability < 1)).mean())


def table_lines() -> Iterator[str]:
    """Measure families of multi-way tables; a line at a time."""
    yield "| table | base | children | agree | likely, alone | likely, linked | error | worst | overstated | ms an area |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    _drawn(family_of_tables(SHAPES[-1], 5, 2))  # compiled now
    for shape in SHAPES:
        for base in PEOPLE:
            for children in CHILDREN:
                one = family_of_tables(shape, base, children)
                before = process_time()
                drawn, posterior = _drawn(one)
                spent = 1000 * (process_time() - before) / len(one.true)
                usual, multiway_block.FAMILY_EFFORT, multiway_block.MOST_MOVES = (
                    (multiway_block.FAMILY_EFFORT, multiway_block.MOST_MOVES),
                    LONG,
                    1 << 60,
                )
                try:
                    long = _drawn(one)[0].chances
                finally:
                    multiway_block.FAMILY_EFFORT, multiway_block.MOST_MOVES = usual
                free = (long.high > long.low) & ~drawn.failed[drawn.family][:, np.newaxis]
                stated = posterior.probability
                exact = long.chances[np.where(free, long.start + posterior.mode - long.low, 0)]
                off, over = np.abs(stated - exact)[free], free & (stated >= THRESHOLD) & (stated - exact > 0.1)
                alone = _claimed(posteriors(one.block))
                yield (
                    f"| {' × '.join(map(str, shape))} | {base} | {children} | {1 - drawn.failed.mean():.0%} | {alone:.1%} "
                    f"| {_claimed(posterior):.1%} | {off.mean():.3f} | {off.max():.3f} | {over.sum()} | {spent:.0f} |"
                )


@dataclass(frozen=True, slots=True, eq=False)
class AgeFamilies:
    """Families of ages by sex, and what long chains make of them."""

    one: Cube
    tight: CellBounds
    families: dict[int, Ints]
    listed: CountWeights
    exact: Distributions
    rows: Ints

    @classmethod
    def of(cls, children: int, base: int, families: int = 6) -> AgeFamilies:
        """Simulate families, and sample them for long."""
        one = ages_cube(children, families, base, seed=5)
        bounds = linked_bounds(one.block, one.parent, one.linked)
        found = find_families(bounds.parent, most=1000).families
        listed = CountWeights(replace(one.block, bounds=bounds.tight))
        long = sample_families(listed, found, one.linked, REFERENCE, shrunk=False)
        return cls(one, bounds.tight, found, listed, long.chances, long.rows)

    def told(self, found: Distributions, seconds: float) -> str:
        """Say how far distributions are from those of long chains."""
        apart = distances(found, self.exact)
        wide = self.exact.high > self.exact.low
        return f"{apart[wide].mean():.3f}, worst {apart.max():.2f}, {seconds / len(self.families):.2f} s"

    def chains(self, moves: int) -> tuple[Floats, Floats]:
        """Return what chains find in so many moves, and the standard errors."""
        one, members = self.one, 1 + len(next(iter(self.families.values())))
        sums = one.block.compiled
        (own,) = (table for table in multiway_tables(sums.columns, sums.equations) if table is not None)
        rows = np.arange(len(one.true)).reshape(-1, members)
        areas = family_areas(replace(one.block, bounds=self.tight), own, rows)
        given, family = areas.given, areas.table
        width = (given.high - given.low + 1).ravel()
        places = np.repeat(given.place.ravel() - np.cumsum(width) + width, width) + np.arange(int(width.sum()))
        effort = Effort(sweeps=moves // COPIES // family.leaves.size, rounds=0, error=np.inf, rhat=np.inf)
        each = [sample(family, given, areas.seeds + np.uint64(copy), effort).chances[places] for copy in range(COPIES)]
        return np.mean(each, axis=0), np.std(each, axis=0, ddof=1) / COPIES**0.5

    def shrunk(self, drawn: Floats, error: Floats) -> Floats:
        """Shrink what chains found towards messages."""
        one, members = self.one, 1 + len(next(iter(self.families.values())))
        beliefs, _ = exchange_messages(self.listed, self.families, one.linked)
        row = np.arange(len(one.true))[:, np.newaxis]
        leaf = np.isin(np.arange(one.block.compiled.columns), without_parts(one.block.compiled, one.linked))
        kind = leaf + 2 * (row % members == 0) + 4 * (row // members)
        return shrink(self.listed.cell, kind.ravel()[self.listed.cell], drawn, beliefs.chances, error)[0]

    def lines(self) -> Iterator[str]:
        """Compare the method that is used with chains; a column at a time."""
        one, children = self.one, len(next(iter(self.families.values())))
        before = process_time()
        if is_sampled(children, float(self.listed.width.mean())):
            found = settled(one, self.listed, self.families)
        else:
            found = in_order(exchange_messages(self.listed, self.families, one.linked)[0], self.rows)
        yield self.told(found, process_time() - before)
        for moves, shrunk in ((1_250_000, False), (600_000, True), (1_250_000, True)):
            before = process_time()
            drawn, error = self.chains(moves)
            if shrunk:
                drawn = self.shrunk(drawn, error)
            spent = process_time() - before
            whole = Distributions(self.tight.low, self.tight.high, self.listed.start, drawn)
            yield self.told(in_order(whole, self.rows), spent)


def age_lines() -> Iterator[str]:
    """Measure families of ages by sex; a line at a time."""
    yield "| children | base | used now | chains, 1.25 million moves | chains with messages, 0.6 million | 1.25 million |"
    yield "|---:|---:|---|---|---|---|"
    list(AgeFamilies.of(2, 5, 1).lines())  # compiled now
    for base in (5, 3):
        for children in (2, 4, 7):
            yield f"| {children} | {base} | {' | '.join(AgeFamilies.of(children, base).lines())} |"


if __name__ == "__main__":
    for measured in (table_lines(), age_lines()):
        for line in measured:
            print(line, flush=True)
        print()
