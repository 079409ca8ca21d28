"""Exact joint posteriors of whole releases: sum-product belief propagation on the forest of every area, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unround.engines.marginals import (
    NONE,
    is_linked,
    list_own,
    marginal,
    own_share,
    own_summary,
    put_probabilities,
    sample,
    seed_for,
    share_of,
    summary,
)
from unround.engines.messages import (
    BELIEF,
    MOST_VALUES,
    Buffers,
    arrange,
    buffers_for,
    downward_pass,
    prune_to,
    set_local_evidence,
    upward_pass,
)
from unround.engines.multiway_block import add_tables
from unround.engines.rates import RateInput, no_rates, weigh_rates
from unround.evidence.block import EXACT, Distributions, Ints, Posterior, PosteriorArrays
from unround.evidence.cells import Block, Evidence, plain
from unround.jit import in_threads, kernel
from unround.mechanisms.base import BoolArray
from unround.sums.compiled import HOME, Forest, forest_of


class _BlockInput(NamedTuple):
    """The kernel's input for a block: bounds, which areas and equations to use, and claimed counts.

    `wanted` says which cells to compute; it has no rows where all are. `seed` is that of draws; `best` asks for the
    state that weighs most in their place.
    """

    low: Ints
    high: Ints
    chosen: BoolArray
    holds: BoolArray
    value: Ints
    wanted: BoolArray
    rates: RateInput
    seed: np.uint64
    best: bool


def posteriors(
    block: Block,
    value: Ints | None = None,
    wanted: BoolArray | None = None,
    *,
    quick: bool = False,
    rates: RateInput | None = None,
) -> Posterior:
    """Compute the distribution of every cell of every area, given everything published about the area.

    Notes
    -----
    Tables by several axes use all their sums, by Markov chains (`loops`), which know nothing of shared random numbers.
    Otherwise exact for the sums of the plan, in areas where no link is cut. A link is cut where one of its cells has more
    than `MOST_VALUES` possible values, one of its pairs more than `MOST_STATES` (`messages`), or it would take too long;
    the total of a pair with too many states still takes part. Under a flat prior, using fewer sums keeps an answer right
    but makes it less sharp; a fitted prior belongs to its sums. `Posterior.mode` is -1 for cells that nothing bounds, and
    in areas that are not possible.

    A pair link of n parts with w × w windows takes about n³w⁴ multiplications: age by sex, where n is at most 10, half a
    millisecond.
    """
    result = empty_posterior(*block.bounds.low.shape, asked=value is not None)
    _run(block, result, value, wanted, rates=rates)
    if block.compiled.crossed and rates is None:
        add_tables(block, result, value, wanted, quick=quick)
    return result


def empty_posterior(areas: int, columns: int, *, asked: bool = False) -> Posterior:
    """Return a posterior without any information, to be filled in."""
    return Posterior(
        mode=np.full((areas, columns), NONE, dtype=np.int32),
        probability=np.zeros((areas, columns)),
        mean=np.full((areas, columns), np.nan),
        deviation=np.full((areas, columns), np.nan),
        cut=np.zeros(areas, dtype=np.int32),
        possible=np.zeros(areas, dtype=np.bool_),
        asked=np.zeros((areas, columns)) if asked else None,
        method=np.full(areas, EXACT, dtype=np.int8),
        error=np.zeros((areas, columns)),
    )


def marginals(
    block: Block, wanted: BoolArray | None = None, *, quick: bool = False, rates: RateInput | None = None
) -> tuple[Posterior, Distributions]:
    """Return the same as `posteriors`, and the distribution of every wanted cell with at most `messages.MOST_VALUES` values.

    Areas without a solution (see `Posterior.possible`) have probabilities of zero.
    """
    low, high = block.bounds.low, block.bounds.high
    result = empty_posterior(*low.shape)
    found = empty_distributions(low, high if wanted is None else np.where(wanted, high, low - 1))
    _run(block, result, None, wanted, found, rates=rates)
    if block.compiled.crossed and rates is None:
        add_tables(block, result, None, wanted, found, quick=quick)
    return result, found


def samples(block: Block, number: int, seed: int) -> Ints:
    """Draw whole areas from their joint posteriors.

    Number × areas × columns; -1 in areas where no counts add up, and for cells that nothing bounds.
    """
    states = np.full((number, *block.bounds.low.shape), -1, dtype=np.int32)
    _run(block, None, states=states, seed=seed)
    return states


def best_tables(block: Block) -> tuple[Ints, BoolArray]:
    """Return for every area the counts that weigh most together and add up; and in which areas there are such counts.

    Areas in which a sum would have to be left out are not done.
    """
    areas, columns = block.bounds.low.shape
    states, result = np.full((1, areas, columns), -1, dtype=np.int32), empty_posterior(areas, columns)
    _run(block, result, states=states, best=True)
    return states[0], np.asarray((states[0] >= 0).all(axis=1) & (result.cut == 0))


def empty_distributions(low: Ints, high: Ints) -> Distributions:
    """Return distributions of zeros for all cells within their bounds, to be filled in."""
    width = high.astype(np.int64) - low + 1
    width[(width > MOST_VALUES) | (width < 1)] = 0
    start = np.cumsum(width).reshape(width.shape) - width
    return Distributions(low, high, np.where(width > 0, start, -1), np.zeros(int(width.sum())))


def _run(
    block: Block,
    result: Posterior | None,
    value: Ints | None = None,
    wanted: BoolArray | None = None,
    found: Distributions | None = None,
    states: Ints | None = None,
    seed: int = 0,
    rates: RateInput | None = None,
    best: bool = False,
) -> None:
    """Compute posteriors, or draw states, of all areas that are feasible: one kernel, compiled once."""
    areas, columns = block.bounds.low.shape
    forest, evidence = forest_of(block.compiled), block.evidence()
    ints, floats = np.zeros((1, columns), dtype=np.int32), np.zeros((1, columns))
    given = _BlockInput(
        plain(block.bounds.low, np.int32),
        plain(block.bounds.high, np.int32),
        plain(block.bounds.feasible, np.bool_),
        block.holds(),
        plain(ints if value is None else value, np.int32),
        plain(np.empty((0, columns), dtype=np.bool_) if wanted is None else wanted, np.bool_),
        no_rates(len(forest.nodes)) if rates is None else rates,
        np.uint64(seed),
        best,
    )
    if result is None:
        result = Posterior(ints, floats, floats, floats, np.zeros(areas, dtype=np.int32), np.zeros(areas, dtype=np.bool_))
    filled = result.arrays(found)
    drawn = np.zeros((0, 1, columns), dtype=np.int32) if states is None else states

    def job(first: int, last: int) -> None:
        _areas(first, last, forest, buffers_for(forest), evidence, given, filled, drawn)

    in_threads(job, areas)


@kernel
def _areas(
    first: int,
    last: int,
    forest: Forest,
    buffers: Buffers,
    evidence: Evidence,
    given: _BlockInput,
    results: PosteriorArrays,
    states: Ints,
) -> None:
    """Fill in the posteriors of a range of areas; or states alone."""
    lows, highs, chosen, holds, value, wanted, rates, seed, best = given
    mode, probability, mean, deviation, cut, possible, asked, places, chances = results
    arena, scratch = np.empty(1 << 16), np.empty((3, 1 << 13))
    random_state, state = np.zeros(1, dtype=np.uint64), np.zeros((len(forest.nodes), 2), dtype=np.int64)
    for a in range(first, last):
        if not chosen[a]:
            continue
        low, high = lows[a], highs[a]
        size, needed, cut[a] = arrange(forest, buffers, low, high, holds[a if len(holds) > 1 else 0])
        if size < 0:
            continue
        if size > len(arena):
            arena = np.empty(size + size // 4)
        if needed > scratch.shape[1]:
            scratch = np.empty((3, 2 * needed))
        if len(wanted):
            prune_to(forest, buffers, wanted[a])
        if not set_local_evidence(forest, buffers, arena, evidence, a, low, high):
            continue
        if not weigh_rates(forest, buffers, arena, rates, a):
            continue
        if not upward_pass(forest, buffers, arena, scratch, evidence, a, low, high, best):
            continue
        seed_for(seed, a, random_state)
        for k in range(len(states)):
            sample(forest, buffers, arena, evidence, a, low, high, random_state, state, states[k, a], best)
        if len(states) or not downward_pass(forest, buffers, arena, scratch, evidence, a, low, high):
            continue
        possible[a] = True
        for c in range(len(forest.homes)):
            if len(wanted) and not wanted[a, c]:
                continue
            start, length = 0, 0
            if low[c] == high[c]:
                found = (int(low[c]), 1.0, float(low[c]), 0.0)
            elif is_linked(forest, buffers, c):
                at = buffers.nodes[forest.homes[c, HOME], BELIEF]
                start, length = marginal(forest, buffers, arena, at, c, low, high, scratch[0])
                found = summary(scratch[0], start, length)
            else:
                found = own_summary(evidence, a, c, int(low[c]), int(high[c]))
            mode[a, c], probability[a, c], mean[a, c], deviation[a, c] = found
            if len(places) and places[a, c] >= 0:
                if length == 0:
                    list_own(evidence, a, c, int(low[c]), int(high[c]), scratch[0])
                    start, length = int(low[c]), int(high[c]) - int(low[c]) + 1
                put_probabilities(scratch[0], start, length, chances, places[a, c], int(low[c]))
            if len(asked):
                asked[a, c] = (
                    share_of(scratch[0], start, length, value[a, c])
                    if length
                    else own_share(evidence, a, c, int(low[c]), int(high[c]), value[a, c])
                )
