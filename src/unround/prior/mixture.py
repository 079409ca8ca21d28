"""How one count varies over areas: a mixture of negative binomials around multiples of each area's exposure.

    x | e  ~  Σₖ Gₖ · NegBin(mean e·rₖ)

The rates r are 0 and a geometric series; the weights G are found by EM on the published counts (the maximum-likelihood
mixture of Kiefer and Wolfowitz). The variance of each component is m + m²/`SHAPE`, so that neighbouring rates overlap. Where
people come in clumps, such as households, these are what is counted so, and each has 1 + Poisson(d) people.

Published counts do not determine how many true counts are 0: rounding hides that. `least_zeros` finds the mixture
with the fewest zeros among those that fit nearly as well, and `in_groups` one with many zeros.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from unround.jit import adding, inner, kernel
from unround.mechanisms.base import FloatArray, IntArray

SHAPE = 25.0
"""Of the components where people do not come in clumps: a spread of a fifth of the mean, more than a step of the rates."""

STEP = 1.35
"""The ratio of neighbouring rates."""

LOWEST = 0.3
"""The lowest rate above 0 gives so many people in an area of median exposure; lower ones could not be told from 0."""

GROUP = 2.0
"""People who come in groups are at least so many, on average, in an area of median exposure."""

MOST_RATES = 64
"""Rates of a mixture; the steps become larger where these would not reach."""

LARGE = 64
"""Counts from here on are as if people came one by one: rates vary enough to make up for it."""

LARGEST_CLUMP = 12
"""Larger clumps are left out."""

FEW = 3
"""One to so many are there, each number as likely, in areas where somebody is at all."""

NEGLIGIBLE = 1e-7
"""Components with less weight are skipped."""

LITTLE = 1e-4
"""Of log likelihood: EM stops when a step gains less."""

HOPELESS = 4.0
"""Times what a prior may cost: a search that has lost so much, and still loses, does not come back."""

LEAST = 1e-300
"""Added to probabilities, so that what no rate leads to does not break the fit."""


def rates_for(exposure: FloatArray, published: IntArray) -> FloatArray:
    """Return the rates of a mixture for published counts of areas with these exposures."""
    highest = 1.3 * float(np.max((np.maximum(published, 0) + 3) / exposure))
    lowest = max(LOWEST / float(np.median(exposure)), 1e-6 * highest)
    number = min(max(math.ceil(math.log(highest / lowest) / math.log(STEP)) + 1, 2), MOST_RATES - 1)
    return np.concatenate([[0.0], np.geomspace(lowest, max(highest, lowest * STEP), number)])


@inner
def log_coefficient(first: int) -> float:
    """Return log Γ(first + s) / (Γ(s) first!), where s is the shape."""
    if first == 0:
        return 0.0
    return math.lgamma(first + SHAPE) - math.lgamma(SHAPE) - math.lgamma(first + 1.0)


@inner
def rises(first: int, number: int, out: FloatArray) -> None:
    """Put Γ(x + s) / x!, where s is the shape, of the counts from `first` on into `out`, relative to the first."""
    rise = 1.0
    for i in range(number):
        out[i] = rise
        rise *= (first + i + SHAPE) / (first + i + 1.0)


@inner
def chance_of(first: int, mean: float, coefficient: float) -> float:
    """Return how likely a component makes the count `first`, given `log_coefficient(first)`."""
    if mean <= 0.0:
        return 1.0 if first == 0 else 0.0
    log = coefficient - SHAPE * math.log1p(mean / SHAPE)
    if first > 0:
        log -= first * math.log1p(SHAPE / mean)
    return math.exp(log)


@inner
def in_clumps(number: int, mean: float, clump: float, out: FloatArray) -> None:
    """Put the probabilities of the counts from 0 on into `out`, where people come in clumps (Panjer's recursion)."""
    clumps = mean / (1.0 + clump)
    share, alone = clumps / (SHAPE + clumps), math.exp(-clump)
    out[0] = math.exp(-SHAPE * math.log1p(clumps / SHAPE))
    for x in range(1, number):
        total, size = 0.0, alone
        for people in range(1, min(x, LARGEST_CLUMP) + 1):
            total += (1.0 + (SHAPE - 1.0) * people / x) * size * out[x - people]
            size *= clump / people
        out[x] = share * total


@inner
def few_people(first: int, number: int, weight: float, out: FloatArray) -> None:
    """Put the probabilities of the counts from `first` on into `out`, of which one to `FEW` share a weight."""
    for i in range(number):
        out[i] = weight / FEW if 1 <= first + i <= FEW else 0.0


@inner
def add_mixture(
    first: int,
    number: int,
    exposure: float,
    rates: FloatArray,
    weights: FloatArray,
    clump: float,
    part: FloatArray,
    out: FloatArray,
) -> None:
    """Add the probabilities of the counts from `first` on to `out`; `part` is scratch space for them and for `LARGE`.

    Without clumps, all components have all but a geometric series in common.
    """
    clumped = clump > 0.0 and first + number <= LARGE
    coefficient = log_coefficient(first)
    rises(first, number, part)
    for k in range(len(rates)):
        if weights[k] > NEGLIGIBLE:
            mean = exposure * rates[k]
            if clumped:
                in_clumps(first + number, mean, clump, part)
                for i in range(number):
                    out[i] += weights[k] * part[first + i]
            else:
                chance, ratio = weights[k] * chance_of(first, mean, coefficient), mean / (SHAPE + mean)
                for i in range(number):
                    out[i] += chance * part[i]
                    chance *= ratio


@kernel
def likelihoods(
    low: NDArray[np.int64],
    number: NDArray[np.int64],
    start: NDArray[np.int64],
    window: FloatArray,
    exposure: FloatArray,
    rates: FloatArray,
    clump: float,
) -> tuple[FloatArray, FloatArray]:
    """Return how likely each rate leads to each published count, and how likely it does so from a true 0.

    The published counts are given by their windows (see `Windows`): `low`, the number of possible counts, and where their
    likelihoods start in `window` (-1: all equal).
    """
    found, zero = np.zeros((len(low), len(rates))), np.zeros((len(low), len(rates)))
    most = LARGE
    for p in range(len(low)):
        most = max(most, number[p])
    part = np.empty(most)
    for p in range(len(low)):
        first, coefficient = low[p], log_coefficient(low[p])
        clumped = clump > 0.0 and first + number[p] <= LARGE
        rises(first, number[p], part)
        for k in range(len(rates)):
            mean = exposure[p] * rates[k]
            chance, ratio, skipped = chance_of(first, mean, coefficient), mean / (SHAPE + mean), 0
            if clumped:
                in_clumps(first + number[p], mean, clump, part)
                chance, ratio, skipped = 1.0, 1.0, first
            if first == 0:
                zero[p, k] = chance * part[0] * (window[start[p]] if start[p] >= 0 else 1.0)
            total = 0.0
            for i in range(number[p]):
                total += chance * part[skipped + i] * (window[start[p] + i] if start[p] >= 0 else 1.0)
                chance *= ratio
            found[p, k] = total
    return found, zero


@adding
def _product(one: FloatArray, other: FloatArray) -> float:
    """Return the sum of the products of two rows."""
    total = 0.0
    for k in range(len(one)):
        total += one[k] * other[k]
    return total


@inner
def _add(row: FloatArray, times: float, out: FloatArray) -> None:
    """Add a multiple of a row to `out`."""
    for k in range(len(row)):
        out[k] += times * row[k]


@kernel
def expectation_maximisation(likely: FloatArray, times: FloatArray, weights: FloatArray, steps: int) -> float:
    """Improve the weights in place; return the log likelihood. `times` is how often each row was observed.

    The log likelihood never falls. Stops early where a step gains next to nothing.
    """
    rows, rates = likely.shape
    total, found = times.sum(), -math.inf
    gain = np.empty(rates)
    for step in range(steps + 1):
        gain[:] = 0.0
        before, found = found, 0.0
        for p in range(rows):
            expected = _product(weights, likely[p]) + LEAST
            found += times[p] * math.log(expected)
            _add(likely[p], times[p] / expected, gain)
        if step == steps or found - before < LITTLE:
            break
        for k in range(rates):
            weights[k] *= gain[k] / total
    return found


@kernel
def _fewer_zeros(
    likely: FloatArray, zero: FloatArray, times: FloatArray, weights: FloatArray, force: float, steps: int, least: float
) -> float:
    """Improve log likelihood − force × mean P(0 | published), over counts that can be 0, in place; return the likelihood.

    Stops early where the likelihood has fallen below `least`, and still falls.
    """
    rows, rates = likely.shape
    total, found = times.sum(), -math.inf
    gain = np.empty(rates)
    for step in range(steps + 1):
        gain[:] = 0.0
        before, found = found, 0.0
        for p in range(rows):
            expected = _product(weights, likely[p]) + LEAST
            found += times[p] * math.log(expected)
            share = _product(weights, zero[p]) / expected
            _add(likely[p], times[p] / expected * (1.0 + force * share), gain)
            if share > 0.0:
                _add(zero[p], -times[p] / expected * force, gain)
        if found < min(before, least):
            break
        if step < steps:
            norm = 0.0
            for k in range(rates):
                weights[k] *= max(gain[k] / total, 0.05)
                norm += weights[k]
            for k in range(rates):
                weights[k] /= norm
    return found


def fit_weights(
    likely: FloatArray, times: FloatArray, steps: int, start: FloatArray | None = None
) -> tuple[FloatArray, float]:
    """Return the weights of the rates by EM, and the log likelihood."""
    rates = likely.shape[1]
    weights = np.full(rates, 1 / rates) if start is None else start.copy()
    found = expectation_maximisation(likely, times, weights, steps)
    return weights, float(found)


def least_zeros(
    likely: FloatArray, zero: FloatArray, times: FloatArray, weights: FloatArray, cost: float, steps: int
) -> FloatArray:
    """Return weights with few zeros behind published zeros, whose log likelihood is at most `cost` lower.

    They are looked for from what was found before, and from the best weights without the rate 0.
    """
    if not zero.any():
        return weights
    reached = float(expectation_maximisation(likely, times, weights.copy(), 0))
    only_zeros = likely.sum(axis=0) == zero.sum(axis=0)  # the rate 0
    none = np.where(only_zeros, 1e-6, 1.0)
    without, _ = fit_weights(likely, times, steps, none / none.sum())
    best, least = weights, _zeros(likely, zero, times, weights)
    hopeless = reached - HOPELESS * cost
    for start in (weights, without):
        weak, strong = 0.0, 64.0
        for _ in range(7):
            force = math.sqrt(weak * strong) if weak else strong / 16
            tilted = np.maximum(start, 1e-4 / start.size)
            tilted /= tilted.sum()
            if float(_fewer_zeros(likely, zero, times, tilted, force, steps // 3, hopeless)) < reached - cost:
                strong = force
                continue
            weak, zeros = force, _zeros(likely, zero, times, tilted)
            if zeros < least:
                best, least = tilted, zeros
    return best


def in_groups(
    likely: FloatArray, times: FloatArray, weights: FloatArray, means: FloatArray, cost: float, steps: int
) -> FloatArray:
    """Return weights by which people who are there come in groups, whose log likelihood is at most `cost` lower.

    EM leaves what the published counts do not tell as it was at the start: here without rates that lead to one or two
    people, so that published counts above 0 are explained by fewer areas with more people in each.
    """
    start = np.where((means == 0) | (means >= GROUP), 1.0, 1e-6)
    grouped, _ = fit_weights(likely, times, steps, start / start.sum())
    return _as_far_as(likely, times, weights, grouped, cost)


def _zeros(likely: FloatArray, zero: FloatArray, times: FloatArray, weights: FloatArray) -> float:
    """Return the mean probability of a true 0, over published counts that can be 0."""
    some = zero.any(axis=1)
    chances = (zero[some] @ weights) / np.maximum(likely[some] @ weights, LEAST)
    return float(chances @ times[some] / times[some].sum())


def _as_far_as(likely: FloatArray, times: FloatArray, weights: FloatArray, other: FloatArray, cost: float) -> FloatArray:
    """Return the mixture of two mixtures with as much of the other as costs at most so much log likelihood."""
    reached = float(expectation_maximisation(likely, times, weights.copy(), 0))

    def fits(share: float) -> bool:
        mixed = (1 - share) * weights + share * other
        return float(expectation_maximisation(likely, times, mixed, 0)) >= reached - cost

    share, off = (1.0, 1.0) if fits(1.0) else (0.0, 1.0)
    while off - share > 1 / 128:  # the log likelihood is concave in the weights
        middle = (share + off) / 2
        share, off = (middle, off) if fits(middle) else (share, middle)
    return np.asarray((1 - share) * weights + share * other)
