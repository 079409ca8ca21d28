"""How likely each possible count of each area is a priori, as the engines take it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.evidence.block import MOST_VALUES, Ints, PriorWeights
from unround.jit import in_threads, inner, kernel
from unround.mechanisms.base import BoolArray, FloatArray
from unround.prior.mixture import add_mixture, few_people

FLOOR = 1e-12
"""No possible count gets less weight than this, relative to the likeliest: a prior leans, it never rules out."""

EXPOSURES = 50
"""Exposures that are told apart, for every factor e: those that differ by less than two per cent are taken as one."""

RANGE = 200.0
"""Natural logarithms of what a split by sex contributes stay within this, those of a mixture within twice as much: their
product is then still a float."""


class AreaLaws(NamedTuple):
    """What makes counts likely: the mixture of each column, to a power, and how totals split by sex; areas × columns.

    `rates`, `weights`, `clump`, `few` and `power` are by column, as is `divides`, which marks the totals of splits.
    """

    exposures: FloatArray
    rates: FloatArray
    weights: FloatArray
    clump: FloatArray
    few: FloatArray
    power: NDArray[np.int64]
    precision: FloatArray
    divides: BoolArray
    slope: FloatArray


def area_weights(low: Ints, high: Ints, laws: AreaLaws, wanted: BoolArray | None = None) -> PriorWeights:
    """Return the weights of all possible counts of some areas."""
    steps = np.round(EXPOSURES * np.log(laws.exposures)).astype(np.int64)
    alike = laws._replace(exposures=np.exp(steps / EXPOSURES))
    number = high.astype(np.int64) - low + 1
    weighty = (laws.power != 0) | (laws.precision > 0)
    if wanted is not None:
        weighty &= wanted
    number[(number > MOST_VALUES) | (number < 2) | ~weighty] = 0
    start = np.cumsum(number).reshape(number.shape) - number
    out = np.empty(int(number.sum()))

    # Areas with the same of everything come one after the other; in most columns there are few different ones.
    alike_first = np.where(number > 0, (low.astype(np.int64) << 24) + (number << 14) + steps, np.iinfo(np.int64).max)

    def job(first: int, last: int) -> None:
        order = np.argsort(np.ascontiguousarray(alike_first[:, first:last].T), axis=1)
        _fill((first, last), order, low, number, start, alike, out)

    in_threads(job, low.shape[1], cells=len(low))
    return PriorWeights(low, np.where(number > 0, start, -1), out)


@kernel
def _fill(
    between: tuple[int, int],
    order: NDArray[np.int64],
    low: Ints,
    number: NDArray[np.int64],
    start: NDArray[np.int64],
    laws: AreaLaws,
    out: FloatArray,
) -> None:
    """Fill in the weights of a range of columns: areas in which all is the same are worked out once.

    `order` has the areas of each of these columns, those without weights last.
    """
    exposures, rates, weights, clump, few, power, precision, divides, slope = laws
    part, own = np.empty(MOST_VALUES), np.empty(MOST_VALUES)
    for c in range(between[0], between[1]):
        before = -1
        for a in order[c - between[0]]:
            if number[a, c] == 0:
                break
            n, at, first = number[a, c], start[a, c], int(low[a, c])
            if (
                before >= 0
                and number[before, c] == n
                and low[before, c] == first
                and exposures[before, c] == exposures[a, c]
                and precision[before, c] == precision[a, c]
                and slope[before, c] == slope[a, c]
            ):
                for i in range(n):
                    out[at + i] = out[start[before, c] + i]
                continue
            before = a
            own[:n] = 1.0
            if power[c] != 0 and weights[c].sum() > 0.0:
                few_people(first, n, few[c], own)
                add_mixture(first, n, exposures[a, c], rates[c], weights[c], clump[c], part, own)
                _level(own, n)
                _raise(own, n, power[c])
            if precision[a, c] > 0.0:
                # g(x + 1; a) / g(x; a) = (x + a) / (x + 1), relative to the first count.
                factor, level, most = 1.0, math.exp(-slope[a, c]), math.exp(RANGE)
                for i in range(n):
                    own[i] *= factor
                    ratio = (first + i + precision[a, c]) / (first + i + 1.0) * level
                    factor = min(max(factor / ratio if divides[c] else factor * ratio, 1.0 / most), most)
            for i in range(n):
                out[at + i] = own[i]


@inner
def _level(own: FloatArray, number: int) -> None:
    """Divide weights by the largest, and leave none below the floor."""
    largest = 0.0
    for i in range(number):
        largest = max(largest, own[i])
    for i in range(number):
        own[i] = max(own[i] / largest, FLOOR) if largest > 0.0 else 1.0


@inner
def _raise(own: FloatArray, number: int, power: int) -> None:
    """Raise weights to a power, which may be large and negative: a cell can stand against many others.

    Where powers of the least and the greatest weight are too far apart for floats, those of the largest powers are kept.
    """
    if abs(power) * -math.log(FLOOR) <= 2 * RANGE:
        for i in range(number):
            own[i] = own[i] ** power
        return
    most = -math.inf
    for i in range(number):
        most = max(most, power * math.log(own[i]))
    for i in range(number):
        own[i] = math.exp(max(power * math.log(own[i]) - most, -2 * RANGE))
