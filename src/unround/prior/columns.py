"""The mixtures of all columns, fitted to what was published: the one that fits best, and two that fit about as well."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.evidence.block import NO_UPPER_BOUND, Windows, WindowTable
from unround.machine import threads
from unround.mechanisms import Mechanism
from unround.mechanisms.base import FloatArray, step_of
from unround.prior.exposure import NONE, AreaSizes, ColumnExposure, Hierarchy
from unround.prior.mixture import FEW, LEAST, MOST_RATES, fit_weights, in_groups, least_zeros, likelihoods, rates_for
from unround.release import Counts

VARIANTS = *_, DENSER = ("best", "tilted", "looser", "denser")
"""The set of priors. Published counts do not determine how many true counts are 0, nor how rates go on below the sizes that
most areas have. So besides the prior that fits best there are three that fit about as well: with the fewest zeros; with
small areas like larger ones, and then the fewest zeros; and with the most zeros, those who are there in clumps, or one to
three of them, each number as likely. What all of them make likely does not hang on what rounding hides."""

COST = 2.0
"""Units of log likelihood by which a prior may fit less well, and still fit about as well."""

CLUMPS = (0.0, 0.5, 1.0, 2.0, 3.0)
"""With how many others people may come, on average: households."""

SMALL = 3
"""Steps of the rounding up to which published counts are small: where only larger ones ask for clumps, there are none."""

DECIDED = 5.0
"""Units of log likelihood from which on a column decides by itself whether people come in clumps; others decide together."""

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
    - `few`: Variants × columns: how many areas have one to three people, equally likely, whatever their exposure.
    - `rates`, `weights`: Variants × columns × rates. A column whose weights are all 0 has a flat prior.
    - `alone`: 2 × columns × rates: the rates and weights of a mixture without any exposure, for a count of which nothing
      is known but what was published of it.
    """

    sizes: AreaSizes
    chosen: tuple[ColumnExposure, ...]
    clump: FloatArray
    least: FloatArray
    few: FloatArray
    rates: FloatArray
    weights: FloatArray
    alone: FloatArray

    def exposures(self, counts: Counts, variant: int) -> FloatArray:
        """Return areas × columns: the exposures of some areas."""
        exposures = self.sizes.of_all(counts, self.chosen)
        return np.asarray(np.maximum(exposures, self.least[variant]))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return it as arrays by name, for `of`."""
        return {
            "sizes": np.array(astuple(self.sizes)),
            "exposures": np.array(self.chosen),
            "clump": self.clump,
            "least": self.least,
            "few": self.few,
            "rates": self.rates,
            "weights": self.weights,
            "alone": self.alone,
        }

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Mixtures:
        """Return what `arrays` returned."""
        column, least, usual = arrays["sizes"].tolist()
        chosen = tuple(ColumnExposure(int(kind), int(above), *rest) for kind, above, *rest in arrays["exposures"].tolist())
        rest = (arrays[name] for name in ("clump", "least", "few", "rates", "weights", "alone"))
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
        chances, zero = likelihoods(self.low, self.number, self.start, self.window, self.exposure, rates, clump)
        return chances, zero

    def likely_few(self) -> FloatArray:
        """Return how likely a count of one to three leads to each row, whatever the exposure."""
        chances = np.zeros(self.low.size)
        for count in range(1, FEW + 1):
            at = count - self.low
            inside = (at >= 0) & (at < self.number)
            weight = np.where(self.start < 0, 1.0, self.window[np.where(inside & (self.start >= 0), self.start + at, 0)])
            chances += np.where(inside, weight, 0.0) / FEW
        return chances


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
    few: float = 0.0

    def log_likelihood_up_to(self, most: int) -> float:
        """Return the part of the log likelihood that published counts up to this one have."""
        rows = self.observed.published <= most
        return float(self.observed.times[rows] @ np.log(np.maximum(self.likely[rows] @ self.weights, LEAST)))


class _Begun(NamedTuple):
    """What is known of a leaf before tables decide how much people come in clumps: arrays of a fit would take too much room.

    - `areas`: So many areas all ways to fit it are judged by.
    - `exposure`: The likeliest one.
    - `gains`: By how much each of `CLUMPS` fits better than none.
    """

    areas: int
    exposure: ColumnExposure
    gains: FloatArray


class _Clumps(NamedTuple):
    """How much people come in clumps: by likelihood, and the least and the most that fit about as well."""

    likeliest: float
    least: float
    most: float

    @classmethod
    def of(cls, gains: FloatArray, column_gains: FloatArray) -> _Clumps:
        """Choose by the gains of a table (none, unless they are clear); the most, by those of a column alone."""
        likeliest = int(gains.argmax()) if gains.max() > COST else 0
        least, most = (
            np.flatnonzero(gains >= gains[likeliest] - COST)[0],
            np.flatnonzero(column_gains >= column_gains[likeliest] - COST)[-1],
        )
        return cls(CLUMPS[likeliest], CLUMPS[least], CLUMPS[most])


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
        """Fit all columns but some, each by itself; only how much people come in clumps, tables say as a whole."""
        columns = self.hierarchy.columns
        leaves = {*self.hierarchy.leaves, *(pair.total for pair in self.hierarchy.halves)}
        chosen = [ColumnExposure(NONE)] * columns
        clump, least, few = np.zeros((3, len(VARIANTS), columns))
        rates, weights = np.zeros((2, len(VARIANTS), columns, MOST_RATES))
        alone = np.zeros((2, columns, MOST_RATES))
        with threads() as pool:  # kernels release the interpreter

            def begin(c: int) -> tuple[FloatArray, _Begun | None] | None:
                return None if c in skipped else self._begin(c, leaf=c in leaves)

            begun: dict[int, _Begun] = {}
            for c, fitted in enumerate(pool.map(begin, range(columns))):
                progress(c, columns)
                if fitted is not None:
                    alone[:, c, : fitted[0].shape[1]] = fitted[0]
                    rates[:, c], weights[:, c] = alone[:, c]
                    if fitted[1] is not None:
                        begun[c] = fitted[1]
            clumps = self._clumps(begun)
            for c, fits in zip(begun, pool.map(lambda c: self._variants(c, begun[c], clumps[c]), begun), strict=True):
                chosen[c], rates[:, c], weights[:, c] = begun[c].exposure, 0.0, 0.0
                for v, fit in enumerate(fits):
                    least[v, c], clump[v, c], few[v, c] = fit.least, fit.clump, fit.few
                    rates[v, c, : fit.rates.size], weights[v, c, : fit.rates.size] = fit.rates, fit.weights
        return Mixtures(self.sizes, tuple(chosen), clump, least, few, rates, weights, alone)

    def _begin(self, column: int, *, leaf: bool) -> tuple[FloatArray, _Begun | None] | None:
        """Return the mixture of one column without any exposure, and what leaves need besides; None: flat."""
        bounded = self.windows.high[:, column] < NO_UPPER_BOUND
        if not bounded.any() or self.counts[bounded, column].min() >= LARGE:
            return None
        # All ways to fit a column are judged by the same areas.
        rows = _Observed(self.windows, column, self.counts, self._each).times.size
        areas = len(self.counts) if rows <= MOST_ROWS else FEWER_AREAS
        alone = self._try(column, areas, ColumnExposure(NONE))
        law = np.stack([alone.rates, alone.weights])
        if not leaf:
            return law, None
        kinds = self.sizes.kinds_for(column, self.counts, self.mechanisms, self.hierarchy)
        best = max([alone, *(self._try(column, areas, kind) for kind in kinds)], key=_likelihood)
        small = SMALL * step_of(self.mechanisms[column])
        gains = np.full(len(CLUMPS), -np.inf)
        gains[0] = 0.0
        for at, clump in enumerate(CLUMPS[1:], 1):
            other = self._try(column, areas, best.exposure, clump)
            gain = other.log_likelihood - best.log_likelihood
            if gain < -DECIDED:
                break
            gains[at] = min(gain, other.log_likelihood_up_to(small) - best.log_likelihood_up_to(small))
        return law, _Begun(areas, best.exposure, gains)

    def _clumps(self, begun: Mapping[int, _Begun]) -> dict[int, _Clumps]:
        """Return how much people come in clumps in every column: tables decide where a column by itself does not."""
        clumps: dict[int, _Clumps] = {}
        tables: dict[int, list[int]] = {}
        for c, start in begun.items():
            if np.isinf(start.gains[1]) or start.gains.max() > DECIDED:
                clumps[c] = _Clumps.of(start.gains, start.gains)
            else:
                tables.setdefault(self.hierarchy.top[c], []).append(c)
        for columns in tables.values():
            whole = np.sum([begun[c].gains for c in columns], axis=0)
            clumps |= {c: _Clumps.of(whole, begun[c].gains) for c in columns}
        return clumps

    def _variants(self, column: int, begun: _Begun, clumps: _Clumps) -> tuple[_Fit, ...]:
        """Return the variants of one column."""
        areas, exposure, _ = begun
        by_clump = {clump: self._try(column, areas, exposure, clump) for clump in {*clumps}}
        best, plain, clumpier = (by_clump[clump] for clump in clumps)
        # The more areas count as larger ones, the worse the fit.
        median = float(np.median(self.sizes.exposures(self.counts, exposure, self._each)))
        least = () if exposure.kind == NONE else LOOSER
        looser = self._loosest(column, areas, plain, [step * median for step in least])
        return best, _tilted(plain, COST), _tilted(looser, _left(plain, looser)), _denser(clumpier, _left(best, clumpier))

    def _loosest(self, column: int, areas: int, best: _Fit, ladder: Sequence[float]) -> _Fit:
        """Return the fit with the last of these least exposures that fits about as well."""
        farthest, low, high = best, 0, len(ladder)
        while low < high:
            middle = (low + high) // 2
            other = self._try(column, areas, best.exposure, best.clump, ladder[middle])
            if other.log_likelihood >= best.log_likelihood - COST:
                farthest, low = other, middle + 1
            else:
                high = middle
        return farthest

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
    likely, means = np.column_stack([fit.likely, fit.observed.likely_few()]), np.append(means, np.inf)
    *weights, few = in_groups(likely, fit.observed.times, np.append(fit.weights, 0.0), means, cost, STEPS)
    return replace(fit, weights=np.array(weights), few=few)


def _left(best: _Fit, other: _Fit) -> float:
    """Return what is left of the cost after another fit has taken its part."""
    return max(COST - (best.log_likelihood - other.log_likelihood), LEAST_COST)


def _likelihood(fit: _Fit) -> float:
    return fit.log_likelihood
