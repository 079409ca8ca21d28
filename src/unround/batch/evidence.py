"""Local evidence: how what was published of a cell, and its prior, weigh each true count, before any sum is used.

A total may share random numbers with its two parts. A count is rounded up if its random number is below its probability p
of going up. So its direction shows in which part of the unit interval the random number fell: in [0, p) if up, with
likelihood p; in [p, 1) if down, with likelihood 1 − p. The likelihood of two counts that share a random number is the
length of the intersection of their two intervals, instead of the product of the lengths. Only likelihoods and directions
matter, so this holds for any rounding to one of two neighbours.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.batch.compiled_sums import Table
from unround.batch.convolution import Box
from unround.batch.types import Ints, PriorWeights, Sharing, Windows
from unround.jit import inner
from unround.mechanisms.base import BoolArray, FloatArray

PATTERNS = 4
"""How a total and its two parts can share random numbers, in this order: each count has its own; the total uses that of the
first part; the total uses that of the second part; both parts use the same."""


class Draws(NamedTuple):
    """The kernel's input about shared random numbers.

    `row` has for every node its row of `shares` (rows × patterns), -1 where it shares nothing; `two_way` for every column
    whether its counts were rounded to one of two neighbours. `least` has for every row the least published total of nodes
    that inform the proportions.
    """

    published: Ints
    row: Table
    two_way: BoolArray
    shares: FloatArray
    least: Table


@inner
def chance(draws: Draws, lows: Ints, starts: Table, weights: FloatArray, area: int, column: int, count: int) -> float:
    """Return the likelihood of a cell's published count; 1 where no random number was used."""
    start = starts[area, column]
    if start < 0 or not draws.two_way[column]:
        return 1.0
    return float(weights[start + count - lows[area, column]])


@inner
def in_common(one: float, one_up: bool, two: float, two_up: bool) -> float:
    """Return the ratio of the likelihoods of two published counts, with one random number to with two."""
    common = min(one, two) if one_up == two_up else max(0.0, one + two - 1.0)
    return common / (one * two)


@inner
def times(
    draws: Draws,
    lows: Ints,
    starts: Table,
    weights: FloatArray,
    area: int,
    cells: Table,
    first: int,
    second: int,
) -> tuple[float, float, float]:
    """Return the likelihood ratio of each pattern of sharing to independence, for one pair."""
    total = chance(draws, lows, starts, weights, area, cells[0], first + second)
    one = chance(draws, lows, starts, weights, area, cells[1], first)
    two = chance(draws, lows, starts, weights, area, cells[2], second)
    if total * one * two <= 0.0:
        return 1.0, 1.0, 1.0  # this pair has no weight in any case
    up = first + second < draws.published[area, cells[0]]
    one_up, two_up = first < draws.published[area, cells[1]], second < draws.published[area, cells[2]]
    return in_common(total, up, one, one_up), in_common(total, up, two, two_up), in_common(one, one_up, two, two_up)


@inner
def weigh_sharing(
    draws: Draws,
    lows: Ints,
    starts: Table,
    weights: FloatArray,
    area: int,
    n: int,
    cells: Table,
    arena: FloatArray,
    at: int,
    box: Box,
) -> None:
    """Multiply the weights of a node's pairs by their likelihood ratios under the mixture of patterns."""
    shares = draws.shares[draws.row[n]]
    for r in range(box[2]):
        for c in range(box[3]):
            k = at + r * box[3] + c
            if arena[k] > 0.0:
                one, two, parts = times(draws, lows, starts, weights, area, cells, box[0] + r, box[1] + c)
                arena[k] *= shares[0] + shares[1] * one + shares[2] * two + shares[3] * parts


@inner
def pull(
    draws: Draws,
    lows: Ints,
    starts: Table,
    weights: FloatArray,
    area: int,
    n: int,
    cells: Table,
    arena: FloatArray,
    at: int,
    box: Box,
    pulls: FloatArray,
) -> None:
    """Add a node's contribution to the gradient by the proportions of its row.

    `pulls` has a row for each of `draws.shares`: per pattern, the expected ratio of its likelihood to that of the mixture;
    and last the number of nodes.
    """
    row = draws.row[n]
    if row < 0 or draws.published[area, cells[0]] < draws.least[row]:
        return
    shares = draws.shares[row]
    everything = own = first = second = parts = 0.0
    for r in range(box[2]):
        for c in range(box[3]):
            belief = arena[at + r * box[3] + c]
            if belief > 0.0:
                one, two, both = times(draws, lows, starts, weights, area, cells, box[0] + r, box[1] + c)
                everything += belief
                belief /= shares[0] + shares[1] * one + shares[2] * two + shares[3] * both
                own += belief
                first += belief * one
                second += belief * two
                parts += belief * both
    if everything > 0.0:
        pulls[row, 0] += own / everything
        pulls[row, 1] += first / everything
        pulls[row, 2] += second / everything
        pulls[row, 3] += parts / everything
        pulls[row, 4] += 1.0


class Evidence(NamedTuple):
    """Local evidence as the kernels take it: `Windows`, `PriorWeights`, shared random numbers."""

    low: Ints
    start: Table
    weights: FloatArray
    prior_low: Ints
    prior_start: Table
    prior_weights: FloatArray
    draws: Draws


@inner
def weight(evidence: Evidence, area: int, column: int, count: int) -> float:
    """Return the weight of one true count of a cell, from its own published count and prior alone."""
    found = 1.0
    prior, start = evidence.prior_start[area, column], evidence.start[area, column]
    if prior >= 0:
        found = evidence.prior_weights[prior + count - evidence.prior_low[area, column]]
    if start >= 0:
        found *= evidence.weights[start + count - evidence.low[area, column]]
    return float(found)


class Drawn(NamedTuple):
    """How random numbers are shared (see `Sharing`), and what was published, areas × columns."""

    sharing: Sharing
    published: Ints


def evidence_of(
    windows: Windows, prior: PriorWeights | None, columns: int, nodes: int, drawn: Drawn | None = None
) -> Evidence:
    """Put local evidence together.

    Parameters
    ----------
    windows, prior
        As for `posteriors`.
    columns, nodes : int
        How many cells an area has, and how many nodes its forest.
    drawn : Drawn, optional
        How totals share random numbers with their parts.
    """
    if prior is None:
        prior = PriorWeights(windows.low, np.full(windows.start.shape, -1, dtype=np.int64), np.ones(1))
    return Evidence(
        plain(windows.low, np.int32),
        plain(windows.start, np.int64),
        plain(windows.weights, np.float64),
        plain(prior.low, np.int32),
        plain(prior.start, np.int64),
        plain(prior.weights, np.float64),
        _draws(drawn, nodes, columns),
    )


def _draws(drawn: Drawn | None, nodes: int, columns: int) -> Draws:
    """Describe shared random numbers to the kernel; without any, say that there are none."""
    if drawn is None:
        none = np.full(nodes, -1, dtype=np.int64)
        zeros = np.zeros((1, columns), dtype=np.int32)
        return Draws(zeros, none, np.zeros(columns, dtype=np.bool_), np.zeros((1, PATTERNS)), np.zeros(1, dtype=np.int64))
    sharing = drawn.sharing
    return Draws(
        plain(drawn.published, np.int32),
        plain(sharing.row, np.int64),
        plain(sharing.two_way, np.bool_),
        plain(sharing.shares, np.float64),
        plain(sharing.least, np.int64),
    )


def plain(array: NDArray[Any], kind: type[np.generic]) -> NDArray[Any]:
    """Return an array in the type and layout that the kernels are compiled for; any other would trigger a recompilation."""
    return np.require(array, kind, ("C", "W"))
