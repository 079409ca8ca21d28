"""Multi-way tables: speed against plain numpy, and how exact an audit's probabilities are, for docs/tables.md.

`python -m bench.multiway` prints the second: with a fitted prior, against enumeration, or much longer chains.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from time import process_time

import numpy as np
from numpy.typing import NDArray

from bench.mixing import cube
from bench.row import Ratio, Row, Time, busy, interleaved, timed
from unround import solve
from unround.bounds.tighten import tighten
from unround.engines import multiway_block
from unround.engines.chain_kernel import CellWeights
from unround.engines.chains import LANES, Effort, moves_of, sample
from unround.engines.enumeration import list_tables
from unround.engines.forest import marginals, posteriors
from unround.evidence.block import BlockPosterior, Distributions, WindowTable
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms import Rounding
from unround.prior import PriorFit
from unround.sums.compiled import compile_sums
from unround.sums.forest import Equations
from unround.sums.multiway import MultiwayTable, multiway_tables
from unround.system import Cell, Sum, System

THRESHOLD = 0.66
VISITS = 3_000_000
"""Steps of an enumeration, some tenths of a second, after which long chains are the truth."""
AREAS = 60
CASES = (
    ((4, 3), 5, 150),
    ((4, 3), 3, 60),
    ((4, 4), 5, 300),
    ((4, 4), 3, 100),
    ((2, 2, 4), 5, 200),
    ((3, 3, 3), 3, 200),
    ((5, 2, 4), 5, 400),
    ((5, 2, 4), 3, 150),
)
"""Tables, bases, and how many people an area has."""


def sums_with_groups(leaves: int, groups: int, others: tuple[int, ...]) -> tuple[int, Equations]:
    """Return the cells and sums of a table whose first axis has groups: a table of groups, with each divided further."""
    inner = -(-leaves // groups)
    equations, added = cube((groups, inner, *others))
    # Totals over the places of one group are groups; over all groups, for one place, nothing is published.
    sizes = [groups + 1, inner + 1, *(size + 1 for size in others)]
    places = np.stack(np.unravel_index(np.arange(len(added)), sizes), axis=1)
    kept = ~((places[:, 0] == 0) & (places[:, 1] > 0))
    at = np.cumsum(kept) - 1
    sums = [
        (int(at[total]), tuple(int(at[part]) for part in parts)) for total, parts in equations if kept[[total, *parts]].all()
    ]
    return int(kept.sum()), tuple(sums)


def areas_of(cells: int, equations: Equations, number: int, people: float, base: int, seed: int = 1) -> NDArray[np.int32]:
    """Publish random areas."""
    (table,) = multiway_tables(cells, equations)
    assert table is not None
    rng = np.random.default_rng(seed)
    rate = rng.gamma(0.8, 1.0, table.leaves.size)
    size = people * rng.gamma(3.0, 1 / 3, (number, 1))
    true = rng.poisson(size * rate / rate.sum() * rng.gamma(6.0, 1 / 6, (number, rate.size)))
    return Rounding(base).publish(true @ table.belongs().T.astype(np.int64), rng).astype(np.int32)


def block_of(cells: int, equations: Equations, published: NDArray[np.int32], base: int, kept: int) -> EvidenceBlock:
    """Fit a prior to all areas, and keep some."""
    compiled = compile_sums(cells, equations, frozenset())
    windows, _ = WindowTable([Rounding(base)] * cells).of(published[:kept])
    tight = tighten(compiled, windows)
    fit = PriorFit(cells)
    fit.add(published)
    prior = fit.finish(compiled, [Rounding(base)] * cells).weights(published[:kept], tight.low, tight.high)
    return EvidenceBlock(compiled, windows, tight, prior)


def exactly(block: EvidenceBlock) -> Distributions:
    """Return the distributions by enumeration where tables are few, else by long chains."""
    (table,) = block.compiled.multiway
    usual, multiway_block.EFFORT = multiway_block.EFFORT, Effort(sweeps=100_000, rounds=0, error=np.inf, rhat=np.inf)
    try:
        _, found = marginals(block)
    finally:
        multiway_block.EFFORT = usual
    rows = np.arange(len(block.bounds.low))
    given = multiway_block.table_areas(block, table, rows).given
    listed = list_tables(table, given, VISITS)
    for a in np.flatnonzero(listed.complete).tolist():
        places = zip(table.cells.tolist(), given.place[a].tolist(), (given.high - given.low + 1)[a].tolist(), strict=True)
        for cell, place, size in places:
            found.chances[found.start[a, cell] :][:size] = listed.chances[place : place + size]
    return found


def accuracy() -> None:
    """Print how exact probabilities are, and how exact they would be without the sums that close loops."""
    print(" " * 30 + "all sums" + " " * 33 + "without those that close loops")
    columns = "error  worst  claims   kept  overstated"
    print(f"table      base people  ms/area  {columns}   {columns}")
    for shape, base, people in CASES:
        equations, added = cube(shape)
        published = areas_of(len(added), equations, 300, people, base)
        block = block_of(len(added), equations, published, base, AREAS)
        marginals(block, wanted=np.ones((AREAS, len(added)), dtype=np.bool_))  # compiled now
        before = process_time()
        found, _ = marginals(block)
        spent = 1000 * (process_time() - before) / AREAS
        forest, _ = marginals(replace(block, compiled=replace(block.compiled, multiway=())))
        truth = exactly(block)
        name = f"{'×'.join(map(str, shape)):<10} {base:>4} {people:>6} {spent:>8.1f}"
        print(f"{name}  {_judged(found, truth)}   {_judged(forest, truth)}", flush=True)


def _judged(found: BlockPosterior, truth: Distributions) -> str:
    free = truth.high > truth.low
    exact_mode, exact_p = np.zeros(free.shape, dtype=np.int64), np.zeros(free.shape)
    of_stated = np.zeros(free.shape)
    for a, c in np.argwhere(free).tolist():
        chances = truth.chances[truth.start[a, c] :][: truth.high[a, c] - truth.low[a, c] + 1]
        exact_mode[a, c], exact_p[a, c] = truth.low[a, c] + int(chances.argmax()), chances.max()
        of_stated[a, c] = chances[found.mode[a, c] - truth.low[a, c]]
    off = np.abs(found.probability - of_stated)[free]
    claims = free & (exact_p >= THRESHOLD)
    kept = claims & (found.probability >= THRESHOLD) & (found.mode == exact_mode)
    overstated = free & (found.probability >= THRESHOLD) & (found.probability - of_stated > 0.1)
    share = kept.sum() / max(claims.sum(), 1)
    return f"{off.mean():.3f}  {off.max():.3f} {claims.sum():>7} {share:>6.1%} {overstated.sum():>11}"


def plain_numpy(table: MultiwayTable, given: CellWeights, moves: int) -> None:
    """Make the moves of one area's chains as numpy would: all chains at a time, one cell after the other."""
    every = moves_of(table)
    rng = np.random.default_rng(1)
    state = np.zeros((table.cells.size, LANES), dtype=np.int64) + given.place[0][:, np.newaxis]
    for _ in range(moves):
        m = int(rng.integers(every.kind_start[every.along]))
        these = slice(every.start[m], every.start[m + 1])
        cells, steps = every.cell[these], every.step[these, np.newaxis]
        first = -int(rng.integers(3))
        weight = np.stack([given.weights[state[cells] + (first + k) * steps].prod(axis=0) for k in range(3)])
        total = weight.sum(axis=0)
        drawn = (rng.random(LANES) * total >= weight.cumsum(axis=0)).sum(axis=0) + first
        state[cells] += np.where(total > 0, drawn, 0) * steps


def rows() -> Iterator[Row]:
    """Measure the chains against numpy, and against times."""
    equations, added = cube((5, 2, 4))
    published = areas_of(len(added), equations, 60, 400, 5)
    block = block_of(len(added), equations, published, 5, 12)
    (table,) = block.compiled.multiway
    given = multiway_block.table_areas(block, table, np.arange(1)).given
    seeds = np.ones(1, dtype=np.uint64)
    effort = Effort(sweeps=2000, rounds=0, error=np.inf, rhat=np.inf)
    moves = int(sample(table, given, seeds, effort, threads=1).moves[0])
    pairs = interleaved(
        lambda: plain_numpy(table, given, moves // 4), lambda: sample(table, given, seeds, effort, threads=1), 5, busy
    )
    pairs = [(4 * theirs, ours) for theirs, ours in pairs]
    yield Ratio("chains of a 5 × 2 × 4 table, 90 cells", "the same moves in plain numpy", pairs, 30)
    job = "posterior of a 5 × 2 × 4 table with a fitted prior, per area and processor"
    yield Time(job, _per_area(block), 0.02)
    cells, sums = sums_with_groups(18, 3, (2, 8))
    large = block_of(cells, sums, areas_of(cells, sums, 60, 3000, 5), 5, 4)
    yield Time(f"the same, ages in groups × 2 × 8, {cells} cells", _per_area(large), 0.1)
    yield Time("solve one table of ages in groups × 2 × 6, 441 cells", [timed(_solve_one) for _ in range(3)], 2.0)


def _per_area(block: EvidenceBlock) -> list[float]:
    areas = len(block.bounds.low)
    posteriors(block)
    found = []
    for _ in range(3):
        before = process_time()
        posteriors(block)
        found.append((process_time() - before) / areas)
    return found


def _solve_one() -> None:
    cells, sums = sums_with_groups(18, 3, (2, 6))
    published = areas_of(cells, sums, 1, 2000, 5)[0]
    named = [Cell(f"c{c}", int(count), Rounding(5)) for c, count in enumerate(published)]
    solve(System(named, [Sum(f"c{total}", tuple(f"c{part}" for part in parts)) for total, parts in sums]))


if __name__ == "__main__":
    accuracy()
