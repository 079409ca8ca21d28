"""Random numbers that a total and its two parts share: what that makes of the weights of a pair, compiled.

A count goes up where its random number is below the share of its way that it has gone; so whether it went up, and how likely
that was, says in which part of the unit interval its random number fell: in [0, p) if up, with likelihood p, in [p, 1) if
down, with likelihood 1 − p. Two counts that share a random number have both been published with the length of what these two
have in common, instead of the product of their lengths. That needs the likelihoods and the directions alone, and so holds
for every rounding to one of two neighbours, whatever its base.
"""

from __future__ import annotations

from typing import NamedTuple

from unround.batch.convolution import Box
from unround.batch.forest import Table
from unround.batch.jit import inner
from unround.batch.types import Ints
from unround.mechanisms.base import BoolArray, FloatArray

PATTERNS = 4
"""How a total and its two parts can share random numbers, in this order: each count has its own; the total uses that of the
first part; the total uses that of the second part; both parts use the same."""


class Draws(NamedTuple):
    """What the kernel is told about shared random numbers.

    `row` has for every node the row of `shares` (rows × patterns) that holds for it, -1 where it shares nothing; `two_way`
    for every column whether its counts went to one of two neighbours. `least` is the least published total, a row each, of
    the nodes that say something about the shares.
    """

    published: Ints
    row: Table
    two_way: BoolArray
    shares: FloatArray
    least: Table


@inner
def chance(draws: Draws, lows: Ints, starts: Table, weights: FloatArray, area: int, column: int, count: int) -> float:
    """Return how likely what was published of a cell is; 1 where no random number was used."""
    start = starts[area, column]
    if start < 0 or not draws.two_way[column]:
        return 1.0
    return float(weights[start + count - lows[area, column]])


@inner
def in_common(one: float, one_up: bool, two: float, two_up: bool) -> float:
    """Return how many times as likely it is that two counts were published so with one random number as with two."""
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
    """Return for the patterns that share something how many times as likely they make what was published of a pair."""
    total = chance(draws, lows, starts, weights, area, cells[0], first + second)
    one = chance(draws, lows, starts, weights, area, cells[1], first)
    two = chance(draws, lows, starts, weights, area, cells[2], second)
    if total * one * two <= 0.0:
        return 1.0, 1.0, 1.0  # such a pair has no weight anyway
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
    """Multiply the weights of the pairs of a node by what sharing makes of them."""
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
    """Add up how a node pulls at the shares of its row: by how much more of each pattern would make it likelier.

    `pulls` has a row for each of `draws.shares`: one number a pattern, the expectation of how many times as likely the
    pattern makes what was published as the mixture does; and last the number of nodes.
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
