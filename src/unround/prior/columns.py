"""The mixtures of all columns, fitted to what was published: the one that fits best, and two that fit about as well."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.batch.types import NO_UPPER_BOUND, Windows
from unround.batch.windows import WindowTable
from unround.mechanisms import Mechanism
from unround.mechanisms.base import FloatArray
from unround.prior.exposure import CORRECTED, KINDS, NONE, exposure, share_above, usual_size
from unround.prior.hierarchy import Hierarchy
from unround.prior.mixture import MOST_RATES, fit_weights, least_zeros, likelihoods, rates_for
from unround.release import Counts

VARIANTS = ("best", "tilted", "looser")
"""The set of priors: the one that fits best; the one with the fewest zeros, and the one that depends least on the size of
areas, of those that fit about as well. What all of them make likely does not hang on what rounding hides."""

COST = 2.0
"""Units of log likelihood by which a prior may fit less well, and still fit about as well."""

CLUMPS = (0.0, 1.0, 0.5, 2.0)
"""How much people may come in clumps: the variance beyond that of independent people, in units of the mean."""

LOOSER = (0.05, 0.1, 0.2, 0.35, 0.5)
"""What may be added to all sizes, in units of their median, for the prior that depends less on them."""

STEPS = 120
"""Of EM."""

BIN = 0.05
"""Areas whose exposures differ by less than this share are fitted as one."""

MOST_ROWS = 800
"""Different published counts and exposures of a column, for any kind of exposure; from there on, fewer areas are used."""

FEWER_AREAS = 1500
"""So many."""

LARGE = 400
"""Columns whose published counts are all larger get a flat mixture: within a window it makes no difference."""


@dataclass(frozen=True, slots=True, eq=False)
class Mixtures:
    """The mixtures of all columns, in all variants.

    Parameters
    ----------
    kind, top, parent : array
        For every column its kind of exposure, and the totals that this uses.
    share, usual : array
        For every column what `exposure` needs besides.
    clump : array
        For every column how much people come in clumps.
    more : array
        Variants × columns: what is added to the exposure.
    rates, weights : array
        Variants × columns × rates. A column whose weights are all 0 has a flat prior.
    alone : array
        2 × columns × rates: the rates and weights of a mixture without any exposure, for a count of which nothing is known
        but what was published of it.
    """

    kind: NDArray[np.int64]
    top: NDArray[np.int64]
    parent: NDArray[np.int64]
    share: FloatArray
    usual: FloatArray
    clump: FloatArray
    more: FloatArray
    rates: FloatArray
    weights: FloatArray
    alone: FloatArray

    def exposures(self, counts: Counts, variant: int) -> FloatArray:
        """Return areas × columns: the exposures of some areas."""
        found = np.empty(counts.shape)
        for c in range(counts.shape[1]):
            e = exposure(
                counts, int(self.kind[c]), int(self.top[c]), int(self.parent[c]), float(self.share[c]), float(self.usual[c])
            )
            found[:, c] = e + self.more[variant, c]
        return found


class _Observed:
    """What was published in one column, areas with the same count and nearly the same exposure as one row."""

    def __init__(self, windows: Windows, column: int, counts: Counts, exposures: FloatArray) -> None:
        high = windows.high[: len(counts), column].astype(np.int64)
        known = np.flatnonzero(high < NO_UPPER_BOUND)
        bins = np.round(np.log(exposures[known]) / BIN).astype(np.int64)
        published = counts[known, column].astype(np.int64)
        _, first, times = np.unique(bins * (1 << 32) + published, return_index=True, return_counts=True)
        self.exposure = np.exp(bins[first] * BIN)
        self.published = published[first]
        self.times = times.astype(np.float64)
        rows = known[first]
        self.low = windows.low[rows, column].astype(np.int64)
        self.number = high[rows] - self.low + 1
        self.start = windows.start[rows, column]
        self.window = windows.weights

    def likely(self, rates: FloatArray, clump: float) -> tuple[FloatArray, FloatArray]:
        """Return how likely each rate leads to each row, and how likely from a true 0."""
        found, zero = likelihoods(self.low, self.number, self.start, self.window, self.exposure, rates, clump)
        return found, zero


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """One way to fit one column."""

    kind: int
    clump: float
    more: float
    rates: FloatArray
    weights: FloatArray
    log_likelihood: float
    observed: _Observed


class _ColumnFit(NamedTuple):
    """What was fitted to one column: the variants, and the mixture without any exposure."""

    variants: tuple[_Fit, ...]
    alone: _Fit


class ColumnFitter:
    """Fits the mixtures of all columns to a sample of areas.

    Parameters
    ----------
    counts : array
        The sample, areas × columns.
    mechanisms : sequence of Mechanism
        How each column was published.
    hierarchy : Hierarchy
        Which totals lie above each column.
    """

    def __init__(self, counts: Counts, mechanisms: Sequence[Mechanism], hierarchy: Hierarchy) -> None:
        self.counts, self.hierarchy = counts, hierarchy
        self.windows, _ = WindowTable(mechanisms).of(counts)

    def fit(self, progress: Callable[[int, int], None] = lambda *_: None) -> Mixtures:
        """Fit all columns. Each is fitted by itself: what others are like makes no difference to it."""
        columns = self.hierarchy.columns
        leaves = frozenset(self.hierarchy.leaves)
        kind = np.full(columns, NONE, dtype=np.int64)
        share, usual, clump = np.ones(columns), np.ones(columns), np.zeros(columns)
        more = np.zeros((len(VARIANTS), columns))
        rates, weights = np.zeros((2, len(VARIANTS), columns, MOST_RATES))
        alone = np.zeros((2, columns, MOST_RATES))
        for c in range(columns):
            share[c] = share_above(self.counts, self.hierarchy.top[c], self.hierarchy.parent[c])
            usual[c] = usual_size(self.counts, self.hierarchy.top[c])
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:  # kernels release the interpreter

            def one(c: int) -> _ColumnFit | None:
                return self._fit_column(c, float(share[c]), float(usual[c]), leaf=c in leaves)

            for c, fits in enumerate(pool.map(one, range(columns))):
                progress(c, columns)
                if fits is not None:
                    kind[c], clump[c] = fits.variants[0].kind, fits.variants[0].clump
                    for v, fit in enumerate(fits.variants):
                        more[v, c] = fit.more
                        rates[v, c, : fit.rates.size], weights[v, c, : fit.rates.size] = fit.rates, fit.weights
                    alone[:, c, : fits.alone.rates.size] = fits.alone.rates, fits.alone.weights
        top, parent = (np.array(one, dtype=np.int64) for one in (self.hierarchy.top, self.hierarchy.parent))
        return Mixtures(kind, top, parent, share, usual, clump, more, rates, weights, alone)

    def _fit_column(self, place: int, share: float, usual: float, *, leaf: bool) -> _ColumnFit | None:
        """Return the variants of one column, which only leaves need; None: flat."""
        published = self.counts[:, place]
        bounded = self.windows.high[:, place] < NO_UPPER_BOUND
        if not bounded.any() or published[bounded].min() >= LARGE:
            return None
        kinds = self._kinds(place) if leaf else (NONE,)
        column = _Column(self, place, share, usual, len(self.counts))
        if any(column.observed(kind).times.size > MOST_ROWS for kind in kinds) and bounded[:FEWER_AREAS].any():
            column = _Column(self, place, share, usual, FEWER_AREAS)
        alone = column.fit(NONE)
        if not leaf:
            return _ColumnFit((alone,) * len(VARIANTS), alone)
        best = column.best([*(column.fit(kind) for kind in kinds if kind != NONE), alone])
        likely, zero = best.observed.likely(best.rates, best.clump)
        tilted = replace(best, weights=least_zeros(likely, zero, best.observed.times, best.weights, COST))
        return _ColumnFit((best, tilted, column.looser(best)), alone)

    def _kinds(self, place: int) -> tuple[int, ...]:
        """Return the kinds of exposure that a column can have: without a total above, none."""
        if self.hierarchy.top[place] == place:
            return (NONE,)
        further = self.hierarchy.parent[place] != self.hierarchy.top[place]
        return tuple(kind for kind in KINDS if kind != CORRECTED or further)


class _Column:
    """One column, fitted in several ways: to the same areas each time, so that log likelihoods can be compared.

    Parameters
    ----------
    fitter : ColumnFitter
        The sample.
    place : int
        Which column.
    share, usual : float
        What its `exposure` needs besides.
    areas : int
        How many areas of the sample to use.
    """

    def __init__(self, fitter: ColumnFitter, place: int, share: float, usual: float, areas: int) -> None:
        self.place, self.windows, self.counts = place, fitter.windows, fitter.counts[:areas]
        self._above = fitter.hierarchy.top[place], fitter.hierarchy.parent[place], share, usual
        self._observed: dict[int, _Observed] = {}

    def exposure(self, kind: int) -> FloatArray:
        """Return the exposures of all areas."""
        return exposure(self.counts, kind, *self._above)

    def observed(self, kind: int) -> _Observed:
        """Return what was published beside exposures of this kind."""
        if kind not in self._observed:
            self._observed[kind] = _Observed(self.windows, self.place, self.counts, self.exposure(kind))
        return self._observed[kind]

    def fit(self, kind: int, clump: float = 0.0, more: float = 0.0) -> _Fit:
        """Fit a mixture; `more` is added to the exposures."""
        observed = self.observed(kind)
        if more > 0:
            observed = _Observed(self.windows, self.place, self.counts, self.exposure(kind) + more)
        rates = rates_for(observed.exposure, observed.published)
        likely, _ = observed.likely(rates, clump)
        weights, log_likelihood = fit_weights(likely, observed.times, STEPS)
        return _Fit(kind, clump, more, rates, weights, log_likelihood, observed)

    def best(self, fits: Sequence[_Fit]) -> _Fit:
        """Choose among fits with different exposures, then how much people clump, if the published counts ask for it."""
        best = max(fits, key=lambda one: one.log_likelihood)
        for clump in CLUMPS[1:]:
            other = self.fit(best.kind, clump)
            if other.log_likelihood > best.log_likelihood + (COST if best.clump == 0 else 0):
                best = other
            elif clump == CLUMPS[1]:
                break
        return best

    def looser(self, best: _Fit) -> _Fit:
        """Return the mixture that depends least on the size of areas, of those that fit about as well as the best."""
        if best.kind == NONE:
            return best
        median = float(np.median(self.exposure(best.kind)))
        loosest, low, high = best, 0, len(LOOSER)
        while low < high:  # the more is added, the worse the fit
            middle = (low + high) // 2
            other = self.fit(best.kind, best.clump, LOOSER[middle] * median)
            if other.log_likelihood >= best.log_likelihood - COST:
                loosest, low = other, middle + 1
            else:
                high = middle
        return loosest
