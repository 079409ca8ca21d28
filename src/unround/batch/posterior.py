"""Exact joint posteriors of whole releases: sum-product over the forest of every area, compiled."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.batch.compiled import kernel
from unround.batch.depth import DEEPEST, OPEN_YET, find_depths
from unround.batch.forest import HOME, Forest, forest_of
from unround.batch.room import BELIEF, MOST_VALUES, Room, arrange, room_for
from unround.batch.summary import ALIKE, NONE, is_linked, marginal, own_share, own_summary, share_of, summary
from unround.batch.sweeps import Evidence, listen_for, set_local, up_and_down
from unround.batch.threads import in_threads
from unround.batch.types import Ints, Layout, Posterior, PriorTable, Tight, Windows
from unround.mechanisms.base import BoolArray, FloatArray


class _Given(NamedTuple):
    """What the kernel is given of a block of areas: bounds, which areas and equations to use, and claimed counts.

    `wanted` says which cells to work out; it has no rows where all are.
    """

    low: Ints
    high: Ints
    chosen: BoolArray
    holds: BoolArray
    value: Ints
    wanted: BoolArray


class _Found(NamedTuple):
    """What the kernel fills in: the arrays of `Posterior`, and depths. `asked` has no rows where nobody asks for it."""

    mode: Ints
    probability: FloatArray
    mean: FloatArray
    deviation: FloatArray
    cut: Ints
    possible: BoolArray
    depth: Ints
    asked: FloatArray


def posteriors(
    layout: Layout,
    windows: Windows,
    tight: Tight,
    prior: PriorTable | None = None,
    active: NDArray[np.bool_] | None = None,
    value: Ints | None = None,
    wanted: NDArray[np.bool_] | None = None,
) -> Posterior:
    """Work out the distribution of every cell of every area, given all that was published of the area.

    Parameters
    ----------
    layout : Layout
        What all areas share.
    windows : Windows
        The published counts' likelihoods.
    tight : Tight
        Bounds, which cut every window first. Areas that are not feasible are left out.
    prior : PriorTable, optional
        Weights of true counts by column; flat unless given.
    active : array, optional
        Areas × equations: False where a sum does not hold. All hold unless given.
    value : array, optional
        Areas × columns: counts whose probability is wanted besides that of the likeliest, such as the true ones where
        somebody knows them. See `Posterior.asked`.
    wanted : array, optional
        Areas × columns: the cells whose distributions somebody will look at. The others are left as in areas that are not
        feasible, which saves most of the time if there are many of them. All are wanted unless told.

    Notes
    -----
    Exact for the sums of the plan, in areas where no link is cut. A link is cut where it meets a cell of more than
    `room.MOST_VALUES` possible values, a pair of more than `room.MOST_STATES`, or takes too long; of a pair with too many
    states, the total still takes part. Under a flat prior fewer sums keep an answer right, only less sharp; a fitted one
    belongs to its sums. `Posterior.mode` is -1 for cells that nothing bounds, and in areas that are not possible.

    A pair link of n parts with w × w windows takes about n³w⁴ multiplications: age by sex, where n is at most 10, half a
    millisecond.
    """
    areas, columns = tight.low.shape
    result = nothing_yet(areas, columns, asked=value is not None)
    holds = np.ones((1, len(layout.equations)), dtype=np.bool_) if active is None else active
    evidence = evidence_of(windows, prior, columns)
    run(tables_of(layout), evidence, holds, tight.low, tight.high, tight.feasible, result, value, wanted=wanted)
    return result


def nothing_yet(areas: int, columns: int, *, asked: bool = False) -> Posterior:
    """Return what is known of areas before anything is worked out, to be filled in."""
    return Posterior(
        mode=np.full((areas, columns), NONE, dtype=np.int32),
        probability=np.zeros((areas, columns)),
        mean=np.full((areas, columns), np.nan),
        deviation=np.full((areas, columns), np.nan),
        cut=np.zeros(areas, dtype=np.int32),
        possible=np.zeros(areas, dtype=np.bool_),
        asked=np.zeros((areas, columns)) if asked else None,
    )


def flood(
    layout: Layout,
    windows: Windows,
    tight: Tight,
    prior: PriorTable | None,
    active: NDArray[np.bool_] | None,
    wanted: NDArray[np.bool_],
    value: Ints,
    threshold: float,
) -> Ints:
    """Work out how deep likely claims are: how many sums follow one upon the other from the cell to what makes it likely.

    Parameters
    ----------
    layout, windows, tight, prior, active
        As for `posteriors`.
    wanted : array
        The cells in question, areas × columns.
    value : array
        The claimed counts, areas × columns.
    threshold : float
        The probability that makes a claim.

    Returns
    -------
    array
        For every cell in question the least k such that sums up to k links away give the claimed count that probability,
        `depth.DEEPEST` for this many or more; -1 for all other cells. 0 says that the published count of the cell itself
        is enough. That a total is the sum of its two parts, where these are the state of one node, is the first link.

    Notes
    -----
    Bounds that sums have tightened would know too much from the start, so that the windows' own are used, except where
    those have more than `room.MOST_VALUES` values.
    """
    depth, low, high = flood_from(windows, tight, wanted)
    holds = np.ones((1, len(layout.equations)), dtype=np.bool_) if active is None else active
    evidence = evidence_of(windows, prior, layout.columns)
    asked = (depth == OPEN_YET).any(axis=1)
    run(tables_of(layout), evidence, holds, low, high, asked, None, value, threshold - ALIKE, depth)
    # In an area where nothing adds up there is nothing to be near to.
    depth[depth == OPEN_YET] = DEEPEST
    return depth


def flood_from(windows: Windows, tight: Tight, wanted: NDArray[np.bool_]) -> tuple[Ints, Ints, Ints]:
    """Return what `flood` starts from: depths that are open yet, and the bounds to use."""
    depth = np.where(wanted & tight.feasible[:, np.newaxis], OPEN_YET, -1).astype(np.int32)
    narrow = windows.high - windows.low < MOST_VALUES
    return depth, np.where(narrow, windows.low, tight.low), np.where(narrow, windows.high, tight.high)


@lru_cache(maxsize=8)
def tables_of(layout: Layout) -> Forest:
    """Return the tables of a layout, made once."""
    return forest_of(layout)


def run(
    forest: Forest,
    evidence: Evidence,
    holds: BoolArray,
    low: Ints,
    high: Ints,
    chosen: BoolArray,
    result: Posterior | None,
    value: Ints | None = None,
    threshold: float = 0.0,
    depth: Ints | None = None,
    wanted: BoolArray | None = None,
) -> None:
    """Work out posteriors, or depths, of the areas that are chosen. Both take the same code, so that it is compiled once.

    `holds` says which sums hold, areas × equations; or one row for all areas.
    """
    areas, columns = low.shape
    ints, floats = np.zeros((1, columns), dtype=np.int32), np.zeros((1, columns))
    given = _Given(
        _plain(low, np.int32),
        _plain(high, np.int32),
        _plain(chosen, np.bool_),
        _plain(holds, np.bool_),
        _plain(ints if value is None else value, np.int32),
        _plain(np.empty((0, columns), dtype=np.bool_) if wanted is None else wanted, np.bool_),
    )
    if result is None:
        result = Posterior(ints, floats, floats, floats, np.zeros(areas, dtype=np.int32), np.zeros(areas, dtype=np.bool_))
    found = _Found(
        result.mode,
        result.probability,
        result.mean,
        result.deviation,
        result.cut,
        result.possible,
        ints if depth is None else depth,
        floats[:0] if result.asked is None else result.asked,
    )

    def job(first: int, last: int) -> None:
        _areas(first, last, depth is not None, forest, room_for(forest), evidence, given, threshold, found)

    in_threads(job, areas)


def evidence_of(windows: Windows, prior: PriorTable | None, columns: int) -> Evidence:
    """Put together what is known of cells by themselves; a flat prior is a table of one weight for every column."""
    if prior is None:
        prior = PriorTable(np.zeros(columns, dtype=np.int64), np.ones(columns, dtype=np.int64), np.ones(1))
    return Evidence(
        _plain(windows.low, np.int32),
        _plain(windows.start, np.int64),
        _plain(windows.weights, np.float64),
        _plain(prior.offset, np.int64),
        _plain(prior.size, np.int64),
        _plain(prior.weights, np.float64),
    )


def _plain(array: NDArray[Any], kind: type[np.generic]) -> NDArray[Any]:
    """Return an array as the kernel knows it: for any other kind, it would have to be compiled once more."""
    return np.require(array, kind, ("C", "W"))


@kernel
def _areas(
    first: int,
    last: int,
    deep: bool,
    forest: Forest,
    room: Room,
    evidence: Evidence,
    given: _Given,
    threshold: float,
    results: _Found,
) -> None:
    """Fill in the posteriors of a range of areas; or depths alone."""
    lows, highs, chosen, holds, value, wanted = given
    mode, probability, mean, deviation, cut, possible, depth, asked = results
    arena, scratch = np.empty(1 << 16), np.empty((3, 1 << 13))
    for a in range(first, last):
        if not chosen[a]:
            continue
        low, high = lows[a], highs[a]
        size, needed, cut[a] = arrange(
            forest, room, low, high, holds[a if len(holds) > 1 else 0], DEEPEST - 1 if deep else 1
        )
        if size < 0:
            continue
        if size > len(arena):
            arena = np.empty(size + size // 4)
        if needed > scratch.shape[1]:
            scratch = np.empty((3, 2 * needed))
        if not set_local(forest, room, arena, evidence, a, low, high):
            continue
        if deep:
            find_depths(forest, room, arena, scratch, evidence, a, low, high, value[a], threshold, depth[a])
            continue
        if len(wanted):
            listen_for(forest, room, wanted[a])
        if not up_and_down(forest, room, arena, scratch, low, high):
            continue
        possible[a] = True
        for c in range(len(forest.homes)):
            if len(wanted) and not wanted[a, c]:
                continue
            start, length = 0, 0
            if low[c] == high[c]:
                found = (int(low[c]), 1.0, float(low[c]), 0.0)
            elif is_linked(forest, room, c):
                at = room.nodes[forest.homes[c, HOME], BELIEF]
                start, length = marginal(forest, room, arena, at, c, low, high, scratch[0])
                found = summary(scratch[0], start, length)
            else:
                found = own_summary(evidence, a, c, int(low[c]), int(high[c]))
            mode[a, c], probability[a, c], mean[a, c], deviation[a, c] = found
            if len(asked):
                asked[a, c] = (
                    share_of(scratch[0], start, length, value[a, c])
                    if length
                    else own_share(evidence, a, c, int(low[c]), int(high[c]), value[a, c])
                )
