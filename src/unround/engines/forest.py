"""Exact joint posteriors of whole releases: sum-product belief propagation on the forest of every area, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unround.engines.marginals import (
    Draw,
    belief_of,
    draw_for,
    is_linked,
    own_share,
    own_summary,
    put_probabilities,
    sample,
    seed_for,
    share_of,
    summary,
)
from unround.engines.messages import (
    Buffers,
    Here,
    arrange,
    buffers_for,
    downward_pass,
    make_room,
    prune_to,
    set_local_evidence,
    upward_pass,
)
from unround.engines.multiway_block import add_tables
from unround.engines.rates import RateInput, no_rates, weigh_rates
from unround.evidence.block import BlockPosterior, Distributions, Ints, PosteriorArrays
from unround.evidence.cells import BlockArrays, EvidenceBlock, plain
from unround.jit import in_threads, kernel, wait_for_others
from unround.mechanisms.base import BoolArray
from unround.sums.compiled import Forest, forest_of


class _Question(NamedTuple):
    """What the kernel is asked: about which areas, how likely which counts, which cells (no rows: all), with which rates."""

    chosen: BoolArray
    value: Ints
    wanted: BoolArray
    rates: RateInput
    seed: np.uint64


def posteriors(
    block: EvidenceBlock,
    value: Ints | None = None,
    wanted: BoolArray | None = None,
    *,
    quick: bool = False,
    rates: RateInput | None = None,
) -> BlockPosterior:
    """Compute the distribution of every cell of every area, given everything published about the area.

    Notes
    -----
    Multi-way tables use all their sums, by Markov chains (`multiway_block`), which know nothing of shared random numbers.
    Otherwise exact for the sums of the plan, in areas where no link is cut. A link is cut where one of its cells has more
    than `MOST_VALUES` possible values, one of its pairs more than `MOST_STATES` (`messages`), or it would take too long;
    the total of a pair with too many states still takes part. Under a flat prior, using fewer sums keeps an answer right
    but makes it less sharp; a fitted prior belongs to its sums. `BlockPosterior.mode` is -1 for cells that nothing bounds,
    and in areas that are not possible.

    A pair link of n parts with w × w windows takes about n³w⁴ multiplications: age by sex, where n is at most 10, half a
    millisecond.
    """
    result = BlockPosterior.empty(*block.bounds.low.shape, asked=value is not None)
    _run(block, _question(block, value, wanted, rates), result)
    if block.compiled.multiway and rates is None:
        add_tables(block, result, value, wanted, quick=quick)
    return result


def marginals(
    block: EvidenceBlock, wanted: BoolArray | None = None, *, quick: bool = False, rates: RateInput | None = None
) -> tuple[BlockPosterior, Distributions]:
    """Return the same as `posteriors`, and the distribution of every wanted cell with at most `MOST_VALUES` values.

    Areas without a solution (see `BlockPosterior.possible`) have probabilities of zero.
    """
    low, high = block.bounds.low, block.bounds.high
    result = BlockPosterior.empty(*low.shape)
    distributions = Distributions.empty(low, high if wanted is None else np.where(wanted, high, low - 1))
    _run(block, _question(block, None, wanted, rates), result, distributions)
    if block.compiled.multiway and rates is None:
        add_tables(block, result, None, wanted, distributions, quick=quick)
    return result, distributions


def samples(block: EvidenceBlock, number: int, seed: int) -> Ints:
    """Draw whole areas from their joint posteriors.

    Number × areas × columns; -1 in areas where no counts add up, and for cells that nothing bounds.
    """
    areas, columns = block.bounds.low.shape
    states = np.full((number, areas, columns), -1, dtype=np.int32)
    _run(block, _question(block, seed=seed), BlockPosterior.empty(areas, columns), states=states)
    return states


def best_tables(block: EvidenceBlock) -> tuple[Ints, BoolArray]:
    """Return for every area the counts that weigh most together and add up; and in which areas there are such counts.

    Areas in which a sum would have to be left out are not done.
    """
    areas, columns = block.bounds.low.shape
    nothing = np.iinfo(np.int32).min
    states, result = np.full((1, areas, columns), nothing, dtype=np.int32), BlockPosterior.empty(areas, columns)
    _run(block, _question(block), result, states=states, best=True)
    return states[0], np.asarray((states[0] != nothing).all(axis=1) & (result.cut == 0))


def _question(
    block: EvidenceBlock,
    value: Ints | None = None,
    wanted: BoolArray | None = None,
    rates: RateInput | None = None,
    seed: int = 0,
) -> _Question:
    columns = block.compiled.columns
    return _Question(
        plain(block.bounds.feasible, np.bool_),
        plain(np.zeros((1, columns), dtype=np.int32) if value is None else value, np.int32),
        plain(np.empty((0, columns), dtype=np.bool_) if wanted is None else wanted, np.bool_),
        no_rates(len(block.compiled.plan.nodes)) if rates is None else rates,
        np.uint64(seed),
    )


def _run(
    block: EvidenceBlock,
    question: _Question,
    result: BlockPosterior,
    distributions: Distributions | None = None,
    states: Ints | None = None,
    best: bool = False,
) -> None:
    """Compute posteriors, or draw states, of all areas that are feasible."""
    forest, given, filled = forest_of(block.compiled), block.arrays(), result.arrays(distributions)

    def job(first: int, last: int) -> None:
        drawn = None if states is None else (draw_for(forest, best), states)
        areas_of_block((first, last), forest, buffers_for(forest), given, question, filled, drawn)

    wait_for_others()
    in_threads(job, len(given.low), cells=block.compiled.columns)


@kernel
def areas_of_block(
    between: tuple[int, int],
    forest: Forest,
    buffers: Buffers,
    block: BlockArrays,
    question: _Question,
    results: PosteriorArrays,
    drawn: tuple[Draw, Ints] | None,
) -> None:
    """Fill in the posteriors of a range of areas; or states alone.

    It is compiled once for each: nobody waits for code that draws states who does not draw any.
    """
    chosen, value, wanted, rates, seed = question
    mode, probability, mean, deviation, cut, possible, asked, places, chances = results
    arena, scratch, best = np.empty(1 << 16), np.empty((3, 1 << 13)), False
    if drawn is not None:
        best = drawn[0].best
    for a in range(between[0], between[1]):
        if not chosen[a]:
            continue
        low, high = block.low[a], block.high[a]
        size, needed, cut[a] = arrange(forest, buffers, low, high, block.holds[a if len(block.holds) > 1 else 0])
        if size < 0:
            continue
        arena, scratch = make_room(arena, scratch, size, needed)
        here = Here(forest, buffers, arena, scratch, block.evidence, a, low, high)
        if len(wanted):
            prune_to(forest, buffers, wanted[a])
        if not (set_local_evidence(here) and weigh_rates(here, rates) and upward_pass(here, best)):
            continue
        if drawn is not None:
            draw, states = drawn
            seed_for(seed, a, draw.random)
            for k in range(len(states)):
                sample(here, draw, states[k, a])
            continue
        if not downward_pass(here):
            continue
        possible[a] = True
        for c in range(len(forest.homes)):
            if len(wanted) and not wanted[a, c]:
                continue
            listed = len(places) > 0 and places[a, c] >= 0
            if listed or low[c] == high[c] or is_linked(forest, buffers, c):
                start, length = belief_of(here, c, scratch[0])
                summed_up = summary(scratch[0], start, length)
                if listed:
                    put_probabilities(scratch[0], start, length, chances, places[a, c], int(low[c]))
                if len(asked):
                    asked[a, c] = share_of(scratch[0], start, length, value[a, c])
            else:
                summed_up = own_summary(here, c)
                if len(asked):
                    asked[a, c] = own_share(here, c, value[a, c])
            mode[a, c], probability[a, c], mean[a, c], deviation[a, c] = summed_up
