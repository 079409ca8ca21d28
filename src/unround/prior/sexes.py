"""How counts split by sex: beta-binomially, around the area's own share of men.

    P(men, women | total) = g(men; Aπ) · g(women; A(1 − π)) / g(total; A)   with   g(x; a) = Γ(x + a) / (Γ(a) x!)

so that each of the three counts has a factor of its own. π is the share of men that the column has over all areas, shifted
(in log odds) as the whole area differs from all areas; the precision A says how closely areas keep to that.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.evidence.block import NO_UPPER_BOUND, Windows
from unround.jit import inner, kernel
from unround.machine import threads
from unround.mechanisms.base import BoolArray, FloatArray, IntArray
from unround.prior.columns import Mixtures
from unround.prior.exposure import Hierarchy, Pair
from unround.prior.mixture import add_mixture
from unround.release import ABSENT, Counts

PRECISIONS = np.array([4.0, 12.0, 40.0, 120.0, 400.0, 2000.0])
"""The precisions that are tried; at the last, splits are as good as binomial."""

FEW_AREAS = 400
"""Areas of the sample that are used to choose a precision."""

SHRINK = 20.0
"""People with the usual share of men that are added to every area's own, before its share is worked out."""

ODD = 3.0
"""Times the spread: areas whose share of men is farther from the usual one are odd."""

TO_DEVIATION = 1.4826
"""From the median of absolute values to the standard deviation of a normal law, whatever a few odd areas are like."""

MOST_STATES = 40
"""Possible counts of a sex in areas that are used: wider windows say little and take long."""


@dataclass(frozen=True, slots=True, eq=False)
class SexSplits:
    """How every pair of the hierarchy splits.

    - `cells`: Pairs × 3: the columns of the total, of men, and of women.
    - `tops`: Pairs × 2: the columns of all men and all women of the area; -1 where these are not published.
    - `usual`: For every pair the share of men of these over all areas.
    - `share`: For every pair its own share of men over all areas.
    - `precision`: For every pair how closely areas keep to their share.
    - `spread`: For every pair how far the share of all men is from the usual one in most areas, in log odds.
    """

    cells: NDArray[np.int64]
    tops: NDArray[np.int64]
    usual: FloatArray
    share: FloatArray
    precision: FloatArray
    spread: FloatArray

    def unlike(self, counts: Counts) -> FloatArray:
        """Return areas × pairs: how far the share of all men in each area is from the usual one, in log odds."""
        found = np.zeros((len(counts), len(self.cells)))
        alike: dict[tuple[int, int, float], list[int]] = {}  # thousands of pairs have a few tops
        for p, (men, women) in enumerate(self.tops.tolist()):
            if men >= 0:
                alike.setdefault((men, women, float(self.usual[p])), []).append(p)
        for (men, women, usual), pairs in alike.items():
            known = (counts[:, men] > ABSENT) & (counts[:, women] > ABSENT)
            first = np.where(known, np.maximum(counts[:, men], 0), 0) + SHRINK * usual
            second = np.where(known, np.maximum(counts[:, women], 0), 0) + SHRINK * (1 - usual)
            found[:, pairs] = (np.log(first / second) - _log_odds(usual))[:, None]
        return found

    def shares(self, counts: Counts) -> FloatArray:
        """Return areas × pairs: the share of men that is expected in each area."""
        return np.asarray(1 / (1 + np.exp(-self.unlike(counts) - np.log(self.share / (1 - self.share)))))

    def odd(self, counts: Counts) -> BoolArray:
        """Mark the areas whose share of men is far from the usual one: barracks, prisons, homes."""
        return np.asarray((np.abs(self.unlike(counts)) > ODD * self.spread).any(axis=1))


class PartWindows(NamedTuple):
    """What was published of the two parts of a pair (columns) in some areas, as `Windows` have it."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    start: NDArray[np.int64]
    weights: FloatArray


class ColumnMixture(NamedTuple):
    """The mixture of one column, and its exposures in some areas."""

    exposures: FloatArray
    rates: FloatArray
    weights: FloatArray
    clump: float


def fit_splits(
    counts: Counts, windows: Windows, hierarchy: Hierarchy, mixtures: Mixtures, skipped: Collection[int] = frozenset()
) -> SexSplits:
    """Fit how pairs split to a sample of areas: those by sex, and other totals of two leaves that split as these do.

    Only what was published of the two parts is used, not of their total: where agencies let a total share the random numbers
    of its parts, these two are still independent of each other.
    """
    by_sex = [pair for pair in hierarchy.split if pair.total not in skipped]
    pairs = (*by_sex, *(pair for pair in hierarchy.halves if pair.total not in skipped))
    of_total = {pair.total: pair for pair in hierarchy.pairs}
    tops = [of_total.get(hierarchy.top[pair.total]) for pair in pairs]
    found = SexSplits(
        np.array(pairs, dtype=np.int64).reshape(len(pairs), 3),
        np.array([(-1, -1) if top is None else (top.first, top.second) for top in tops], dtype=np.int64).reshape(-1, 2),
        np.array([_share(counts, top or pair) for top, pair in zip(tops, pairs, strict=True)]),
        np.array([_share(counts, pair) for pair in pairs]),
        np.zeros(len(pairs)),
        np.zeros(len(pairs)),
    )
    if not pairs:
        return found
    for p, away in enumerate(np.abs(found.unlike(counts)).T):
        found.spread[p] = TO_DEVIATION * np.median(away[away > 0]) if away.any() else 0.0
    few = counts[:FEW_AREAS]
    shares, exposures = found.shares(few), mixtures.exposures(few, 0)

    def usable(p: int) -> tuple[PartWindows, IntArray]:
        """Return the windows of both parts of a pair, in areas where both are narrow; and these areas."""
        columns = [pairs[p].first, pairs[p].second]
        low, high, start = (part[: len(few)][:, columns] for part in (windows.low, windows.high, windows.start))
        narrow = ((high < NO_UPPER_BOUND) & (high.astype(np.int64) - low < MOST_STATES)).all(axis=1)
        rows = np.flatnonzero(narrow)
        whole = low[rows].astype(np.int64), high[rows].astype(np.int64)
        return PartWindows(*whole, np.ascontiguousarray(start[rows]), windows.weights), rows

    def mixture(column: int, rows: IntArray) -> ColumnMixture:
        rates, weights = (np.ascontiguousarray(part[0, column]) for part in (mixtures.rates, mixtures.weights))
        return ColumnMixture(exposures[rows, column], rates, weights, float(mixtures.clump[0, column]))

    def fits(p: int) -> FloatArray:
        """Return the log likelihoods of all precisions for one pair."""
        parts, rows = usable(p)
        return np.asarray(_fit_of_precisions(parts, mixture(pairs[p].total, rows), shares[rows, p], PRECISIONS))

    def apart(p: int) -> float:
        """Return the log likelihood of what was published of two parts if each had a mixture of its own."""
        parts, rows = usable(p)
        return sum(float(_fit_alone(parts, k, mixture(column, rows))) for k, column in enumerate(pairs[p][1:]))

    with threads() as pool:
        logs = np.stack(list(pool.map(fits, range(len(pairs)))))
        on_their_own = list(pool.map(apart, range(len(by_sex), len(pairs))))
    found.precision[:] = _pooled(logs)
    chosen = [True] * len(by_sex) + [logs[p].max() > own for p, own in enumerate(on_their_own, len(by_sex))]
    return SexSplits(*(getattr(found, one.name)[chosen] for one in fields(found)))


def _pooled(logs: FloatArray) -> FloatArray:
    """Choose a precision for every pair, from its log likelihoods and from what the pairs have in common."""
    chances = np.exp(logs - logs.max(axis=1, keepdims=True))
    common = np.full(logs.shape[1], 1 / logs.shape[1])
    for _ in range(20):
        each = chances * common
        each /= each.sum(axis=1, keepdims=True)
        common = each.mean(axis=0)
    return np.asarray(np.exp(each @ np.log(PRECISIONS)))


def _share(counts: Counts, pair: Pair) -> float:
    known = (counts[:, pair.first] > ABSENT) & (counts[:, pair.second] > ABSENT)
    men = float(np.maximum(counts[known, pair.first], 0).sum(dtype=np.float64))
    women = float(np.maximum(counts[known, pair.second], 0).sum(dtype=np.float64))
    return (men + 1) / (men + women + 2)


def _log_odds(share: float) -> float:
    return math.log(share / (1 - share))


@inner
def log_g(count: float, a: float) -> float:
    """Return log g(count; a)."""
    return math.lgamma(count + a) - math.lgamma(a) - math.lgamma(count + 1.0)


@kernel
def _fit_of_precisions(parts: PartWindows, mixture: ColumnMixture, share: FloatArray, precisions: FloatArray) -> FloatArray:
    """Return the log likelihood of what was published of men and women (the parts), for every precision."""
    low, high, start, window = parts
    exposure, rates, weights, clump = mixture
    found = np.zeros(len(precisions))
    part, total = np.empty(2 * MOST_STATES), np.empty(2 * MOST_STATES)
    first, second = np.empty(MOST_STATES), np.empty(MOST_STATES)
    flat = weights.sum() == 0.0
    for a in range(len(low)):
        men, women = high[a, 0] - low[a, 0] + 1, high[a, 1] - low[a, 1] + 1
        least = low[a, 0] + low[a, 1]
        if flat:
            total[:] = 1.0
        else:
            total[: men + women - 1] = 0.0
            add_mixture(least, men + women - 1, exposure[a], rates, weights, clump, part, total)
        for k in range(len(precisions)):
            # Relative to the first counts, so that nothing overflows: g(x + 1; a) / g(x; a) = (x + a) / (x + 1).
            one, two = precisions[k] * share[a], precisions[k] * (1.0 - share[a])
            _ratios(low[a, 0], men, one, first)
            _ratios(low[a, 1], women, two, second)
            _ratios(least, men + women - 1, precisions[k], part)
            chance = 0.0
            for i in range(men):
                seen = first[i] * (window[start[a, 0] + i] if start[a, 0] >= 0 else 1.0)
                for j in range(women):
                    shown = window[start[a, 1] + j] if start[a, 1] >= 0 else 1.0
                    chance += seen * second[j] * shown * total[i + j] / part[i + j]
            scale = log_g(low[a, 0], one) + log_g(low[a, 1], two) - log_g(least, precisions[k])
            found[k] += math.log(max(chance, 1e-300)) + scale
    return found


@kernel
def _fit_alone(parts: PartWindows, k: int, mixture: ColumnMixture) -> float:
    """Return the log likelihood of what was published of one part (number k), if its mixture is its own."""
    low, high, start, window = parts
    exposure, rates, weights, clump = mixture
    found = 0.0
    part, own = np.empty(2 * MOST_STATES), np.empty(MOST_STATES)
    flat = weights.sum() == 0.0
    for a in range(len(low)):
        number = high[a, k] - low[a, k] + 1
        if flat:
            own[:] = 1.0
        else:
            own[:number] = 0.0
            add_mixture(low[a, k], number, exposure[a], rates, weights, clump, part, own)
        chance = 0.0
        for i in range(number):
            chance += own[i] * (window[start[a, k] + i] if start[a, k] >= 0 else 1.0)
        found += math.log(max(chance, 1e-300))
    return found


@inner
def _ratios(first: int, number: int, a: float, out: FloatArray) -> None:
    """Put g(x; a) / g(first; a) for the counts from `first` on into `out`."""
    out[0] = 1.0
    for i in range(1, number):
        out[i] = out[i - 1] * (first + i - 1.0 + a) / (first + i)
