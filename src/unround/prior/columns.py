"""The mixtures of all columns, fitted to what was published: the one that fits best, and two that fit about as well."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.evidence.block import NO_UPPER_BOUND, Windows, WindowTable
from unround.machine import processors
from unround.mechanisms import Mechanism
from unround.mechanisms.base import FloatArray
from unround.prior.exposure import NONE, AreaSizes, ColumnExposure, Hierarchy
from unround.prior.mixture import MOST_RATES, SHAPE, fit_weights, in_groups, least_zeros, likelihoods, rates_for
from unround.release import Counts

VARIANTS = *_, DENSER = ("best", "tilted", "looser", "denser")
"""The set of priors. Published counts do not determine how many true counts are 0, nor how rates go on below the sizes that
most areas have. So besides the prior that fits best there are three that fit about as well: with the fewest zeros; with
small areas like larger ones, and then the fewest zeros; and with the most zeros, those who are there in clumps and groups.
What all of them make likely does not hang on what rounding hides."""

COST = 2.0
"""Units of log likelihood by which a prior may fit less well, and still fit about as well."""

CLUMPS = (0.0, 1.0, 0.5, 2.0)
"""How much people may come in clumps: the variance beyond that of independent people, in units of the mean."""

CLUMPIER = (1.0, 2.0, 5.0)
"""The same for the prior in which those who are there are more, even where the published counts do not ask for it."""

LOOSER = (0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
"""What smaller exposures may count as, in units of their median, for the prior that depends less on them."""

LEAST_COST = 0.2
"""Of the cost, what is left for tilting or grouping at least where looser exposures or clumps have taken most of it."""

STEPS = 120
"""Of EM."""

BIN = 0.1
"""Areas whose exposures differ by less than this share are fitted as one."""

MOST_ROWS = 800
"""Different published counts and exposures of a column; where there are more, it is fitted to fewer areas."""

FEWER_AREAS = 1500
"""So many."""

LARGE = 400
"""Columns whose published counts are all larger get a flat mixture: within a window it makes no difference."""


@dataclass(frozen=True, slots=True, eq=False)
class Mixtures:
    """The mixtures of all columns, in all variants.

    - `sizes`: Where the size of an area is found.
    - `chosen`: The exposure of every column.
    - `clump`: Variants × columns: how much people come in clumps.
    - `least`: Variants × columns: what smaller exposures count as.
    - `rates`, `weights`: Variants × columns × rates. A column whose weights are all 0 has a flat prior.
    - `alone`: 2 × columns × rates: the rates and weights of a mixture without any exposure, for a count of which nothing
      is known but what was published of it.
    """

    sizes: AreaSizes
    chosen: tuple[ColumnExposure, ...]
    clump: FloatArray
    least: FloatArray
    rates: FloatArray
    weights: FloatArray
    alone: FloatArray

    def exposures(self, counts: Counts, variant: int) -> FloatArray:
        """Return areas × columns: the exposures of some areas."""
        found = self.sizes.of_all(counts, self.chosen)
        return np.asarray(np.maximum(found, self.least[variant]))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return it as arrays by name, for `of`."""
        return {
            "sizes": np.array(astuple(self.sizes)),
            "exposures": np.array(self.chosen),
            "clump": self.clump,
            "least": self.least,
            "rates": self.rates,
            "weights": self.weights,
            "alone": self.alone,
        }

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Mixtures:
        """Return what `arrays` returned."""
        column, least, usual = arrays["sizes"].tolist()
        chosen = tuple(ColumnExposure(int(kind), int(above), *rest) for kind, above, *rest in arrays["exposures"].tolist())
        rest = (arrays[name] for name in ("clump", "least", "rates", "weights", "alone"))
        return cls(AreaSizes(int(column), least, usual), chosen, *rest)


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

    exposure: ColumnExposure
    clump: float
    least: float
    rates: FloatArray
    weights: FloatArray
    log_likelihood: float
    observed: _Observed
    likely: FloatArray
    zero: FloatArray


class _ColumnFit(NamedTuple):
    """What was fitted to one column: the variants, and the mixture without any exposure."""

    variants: tuple[_Fit, ...]
    alone: _Fit


class ColumnFitter:
    """Fits the mixtures of all columns to a sample of areas.

    - `counts`: The sample, areas × columns.
    - `mechanisms`: How each column was published.
    - `hierarchy`: Which totals lie above each column.
    """

    def __init__(self, counts: Counts, mechanisms: Sequence[Mechanism], hierarchy: Hierarchy) -> None:
        self.counts, self.mechanisms, self.hierarchy = counts, tuple(mechanisms), hierarchy
        self.windows, _ = WindowTable(mechanisms).of(counts)
        self.sizes = AreaSizes.find(counts, self.mechanisms, hierarchy)
        self._each = self.sizes.of(counts)

    def fit(
        self, progress: Callable[[int, int], None] = lambda *_: None, skipped: Collection[int] = frozenset()
    ) -> Mixtures:
        """Fit all columns but some. Each is fitted by itself: what others are like makes no difference to it."""
        columns = self.hierarchy.columns
        leaves = {*self.hierarchy.leaves, *(pair.total for pair in self.hierarchy.halves)}
        chosen = [ColumnExposure(NONE)] * columns
        clump, least = np.zeros((2, len(VARIANTS), columns))
        rates, weights = np.zeros((2, len(VARIANTS), columns, MOST_RATES))
        alone = np.zeros((2, columns, MOST_RATES))
        with ThreadPoolExecutor(processors()) as pool:  # kernels release the interpreter

            def one(c: int) -> _ColumnFit | None:
                return None if c in skipped else self._fit_column(c, leaf=c in leaves)

            for c, fits in enumerate(pool.map(one, range(columns))):
                progress(c, columns)
                if fits is not None:
                    chosen[c] = fits.variants[0].exposure
                    for v, fit in enumerate(fits.variants):
                        least[v, c], clump[v, c] = fit.least, fit.clump
                        rates[v, c, : fit.rates.size], weights[v, c, : fit.rates.size] = fit.rates, fit.weights
                    alone[:, c, : fits.alone.rates.size] = fits.alone.rates, fits.alone.weights
        return Mixtures(self.sizes, tuple(chosen), clump, least, rates, weights, alone)

    def _fit_column(self, column: int, *, leaf: bool) -> _ColumnFit | None:
        """Return the variants of one column, which only leaves need; None: flat."""
        bounded = self.windows.high[:, column] < NO_UPPER_BOUND
        if not bounded.any() or self.counts[bounded, column].min() >= LARGE:
            return None
        # All ways to fit a column are judged by the same areas.
        rows = _Observed(self.windows, column, self.counts, self._each).times.size
        areas = len(self.counts) if rows <= MOST_ROWS else FEWER_AREAS
        alone = self._try(column, areas, ColumnExposure(NONE))
        if not leaf:
            return _ColumnFit((alone,) * len(VARIANTS), alone)
        best = self._best(column, areas, alone)
        # Clumps make for zeros. Where large counts ask for clumps, small ones need not.
        plain = best if best.clump == 0 else self._try(column, areas, best.exposure)
        # The more areas count as larger ones, and the more people clump beyond that, the worse the fit.
        median = float(np.median(self.sizes.exposures(self.counts, best.exposure, self._each)))
        least = () if best.exposure.kind == NONE else LOOSER
        looser, left = self._farthest(column, areas, best, [(best.clump, step * median) for step in least])
        clumpier = self._farthest(column, areas, best, [(one, 0.0) for one in CLUMPIER if one > best.clump])
        denser = min(_denser(best, COST), _denser(*clumpier), key=_share_of_ones)
        return _ColumnFit((best, _tilted(plain, COST), _tilted(looser, left), denser), alone)

    def _best(self, column: int, areas: int, alone: _Fit) -> _Fit:
        """Choose the exposure, then how much people clump; each only if the published counts ask for it."""
        kinds = self.sizes.kinds_for(column, self.counts, self.mechanisms, self.hierarchy)
        best = max([alone, *(self._try(column, areas, kind) for kind in kinds)], key=_likelihood)
        for clump in CLUMPS[1:]:
            other = self._try(column, areas, best.exposure, clump)
            if other.log_likelihood > best.log_likelihood + (COST if best.clump == 0 else 0):
                best = other
            elif clump == CLUMPS[1]:
                break
        return best

    def _farthest(self, column: int, areas: int, best: _Fit, ladder: Sequence[tuple[float, float]]) -> tuple[_Fit, float]:
        """Return the last step of clumps and least exposures that fits about as well, and what it leaves of the cost."""
        farthest, low, high = best, 0, len(ladder)
        while low < high:
            middle = (low + high) // 2
            other = self._try(column, areas, best.exposure, *ladder[middle])
            if other.log_likelihood >= best.log_likelihood - COST:
                farthest, low = other, middle + 1
            else:
                high = middle
        return farthest, max(COST - (best.log_likelihood - farthest.log_likelihood), LEAST_COST)

    def _try(self, column: int, areas: int, exposure: ColumnExposure, clump: float = 0.0, least: float = 0.0) -> _Fit:
        counts = self.counts[:areas]
        exposures = np.maximum(self.sizes.exposures(counts, exposure, self._each[:areas]), least)
        observed = _Observed(self.windows, column, counts, exposures)
        rates = rates_for(observed.exposure, observed.published)
        likely, zero = observed.likely(rates, clump)
        weights, log_likelihood = fit_weights(likely, observed.times, STEPS)
        return _Fit(exposure, clump, least, rates, weights, log_likelihood, observed, likely, zero)


def _tilted(fit: _Fit, cost: float) -> _Fit:
    """Return the mixture with the fewest zeros, of those that fit about as well."""
    return replace(fit, weights=least_zeros(fit.likely, fit.zero, fit.observed.times, fit.weights, cost, STEPS))


def _denser(fit: _Fit, cost: float) -> _Fit:
    """Return a mixture that fits about as well, in which those who are there come in groups."""
    means = fit.rates * float(np.median(np.repeat(fit.observed.exposure, fit.observed.times.astype(np.int64))))
    return replace(fit, weights=in_groups(fit.likely, fit.observed.times, fit.weights, means, cost, STEPS))


def _likelihood(fit: _Fit) -> float:
    return fit.log_likelihood


def _share_of_ones(fit: _Fit) -> float:
    """Return how many areas have one person, of those that have one to three."""
    means = np.maximum(np.multiply.outer(fit.observed.exposure, fit.rates), 1e-9)
    shape = 1 / (1 / SHAPE + fit.clump / means)
    one = means * (1 + means / shape) ** (-shape - 1)
    two = one * means * (shape + 1) / (shape + means) / 2
    three = two * means * (shape + 2) / (shape + means) / 3
    numbers = [float(fit.observed.times @ some @ fit.weights) for some in (one, two, three)]
    return numbers[0] / max(sum(numbers), 1e-12)
