"""From the belief of a node to the marginals of its cells and their summaries, compiled."""

from __future__ import annotations

import math

from unround.batch.buffers import ABSENT, BOX, LOOSE, MODE, SINGLE, Buffers, box_at, layer_box
from unround.batch.compiled_sums import HOME, HOME_LAYER, Forest
from unround.batch.evidence import Evidence, weight
from unround.batch.sum_product import reduce_to
from unround.batch.types import NO_UPPER_BOUND, Ints
from unround.infer.plan import SECOND, TOTAL
from unround.jit import ZERO, inner
from unround.mechanisms.base import FloatArray

ALIKE = 1e-12
"""Probabilities that differ by less than this proportion count as equal: the difference is rounding error."""

NONE = -1
"""The mode of a cell without one: nothing bounds it, or no counts add up."""

Summary = tuple[int, float, float, float]
"""The mode, its probability, the mean and the standard deviation."""


@inner
def is_linked(forest: Forest, buffers: Buffers, column: int) -> bool:
    """Return whether a cell is part of its node's state in this area."""
    mode, is_total = buffers.nodes[forest.homes[column, HOME], MODE], forest.homes[column, HOME_LAYER] == TOTAL
    return mode != ABSENT and (is_total or mode != SINGLE) and not (is_total and mode == LOOSE)


@inner
def marginal(
    forest: Forest, buffers: Buffers, arena: FloatArray, at: int, column: int, low: Ints, high: Ints, to: FloatArray
) -> tuple[int, int]:
    """Put a cell's marginal, from the belief of its node, into a vector; return its first count and how many there are."""
    n, layer = forest.homes[column, HOME], forest.homes[column, HOME_LAYER]
    box = layer_box(forest, buffers, n, layer, low, high)
    if buffers.nodes[n, MODE] == SINGLE:
        layer = SECOND
    reduce_to(arena, at, box_at(buffers.nodes, n, BOX), layer, to, ZERO, box[1], box[3])
    return box[1], box[3]


@inner
def summary(weights: FloatArray, low: int, size: int) -> Summary:
    """Summarise a distribution that is not normalised."""
    everything = largest = first = 0.0
    for k in range(size):
        everything += weights[k]
        first += k * weights[k]
        largest = max(largest, weights[k])
    if everything == 0.0:
        return NONE, 0.0, math.nan, math.nan
    likeliest = 0
    while weights[likeliest] < largest * (1 - ALIKE):
        likeliest += 1
    mean = first / everything
    second = 0.0
    for k in range(size):
        second += (k - mean) ** 2 * weights[k]
    return low + likeliest, weights[likeliest] / everything, low + mean, math.sqrt(second / everything)


@inner
def own_summary(evidence: Evidence, area: int, column: int, low: int, high: int) -> Summary:
    """Summarise a cell's local evidence."""
    if high >= NO_UPPER_BOUND:
        return NONE, 0.0, math.nan, math.nan
    # Where nothing was published, and the prior is flat, all counts weigh the same.
    end = low if evidence.start[area, column] < 0 and evidence.prior_start[area, column] < 0 else high
    rest, each = high - end, 0.0
    if rest > 0:
        each = weight(evidence, area, column, high)
    everything, first, largest, likeliest = 0.0, 0.0, 0.0, NONE
    for count in range(low, end + 1):
        one = weight(evidence, area, column, count)
        everything += one
        first += one * (count - low)
        if one > largest * (1 + ALIKE):
            largest, likeliest = one, count
    if each > largest * (1 + ALIKE):
        largest, likeliest = each, end + 1
    middle = 0.5 * (end + 1 + high) - low
    everything += rest * each
    first += rest * each * middle
    if everything == 0.0:
        return NONE, 0.0, math.nan, math.nan
    mean = first / everything
    second = rest * each * ((middle - mean) ** 2 + (float(rest) ** 2 - 1) / 12)
    for count in range(low, end + 1):
        second += (count - low - mean) ** 2 * weight(evidence, area, column, count)
    return likeliest, largest / everything, low + mean, math.sqrt(second / everything)


@inner
def share_of(weights: FloatArray, low: int, size: int, value: int) -> float:
    """Return the probability of one count, from a distribution that is not normalised."""
    everything = 0.0
    for k in range(size):
        everything += weights[k]
    inside = low <= value < low + size
    return weights[value - low] / everything if inside and everything > 0.0 else 0.0


@inner
def own_share(evidence: Evidence, area: int, column: int, low: int, high: int, value: int) -> float:
    """Return the probability of one count by local evidence alone; 0 where nothing bounds the cell."""
    if not low <= value <= high or high >= NO_UPPER_BOUND:
        return 0.0
    if low == high:
        return 1.0
    end = low if evidence.start[area, column] < 0 and evidence.prior_start[area, column] < 0 else high
    everything = 0.0
    for count in range(low, end + 1):
        everything += weight(evidence, area, column, count)
    if high > end:
        everything += (high - end) * weight(evidence, area, column, high)
    return weight(evidence, area, column, value) / everything if everything > 0.0 else 0.0


@inner
def list_own(evidence: Evidence, area: int, column: int, low: int, high: int, to: FloatArray) -> None:
    """Put a cell's local evidence into a vector."""
    for count in range(low, high + 1):
        to[count - low] = weight(evidence, area, column, count)


@inner
def put_probabilities(weights: FloatArray, first: int, size: int, chances: FloatArray, at: int, low: int) -> None:
    """Write a distribution that is not normalised, of counts from `first` on, to a place for counts from `low` on.

    Where no count has any weight there is no distribution: all probabilities are zero.
    """
    everything = 0.0
    for k in range(size):
        everything += weights[k]
    for k in range(size):
        chances[at + first - low + k] = weights[k] / everything if everything > 0.0 else 0.0
