"""The mixtures of all columns, fitted to what was published: the one that fits best, and two that fit about as well."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.evidence.block import NO_UPPER_BOUND, Windows, WindowTable
from unround.machine import processors
from unround.mechanisms import Mechanism
from unround.mechanisms.base import FloatArray
from unround.prior.exposure import NONE, AreaSizes, Exposure, Hierarchy
from unround.prior.mixture import MOST_RATES, fit_weights, in_groups, least_zeros, likelihoods, rates_for
from unround.prior.types import BORROWED, LEAST, Leaf, by_others, find_types, known_logs, normalised
from unround.release import Counts

LAWS = BEST, TILTED, DENSER = ("best", "tilted", "denser")
"""What is fitted to every column. Published counts do not determine how many true counts are 0. So besides the law that fits
best there are two that fit about as well: with the fewest zeros; and with the most, so that those who are there are more."""

VARIANTS = WEIGHED, _ = ("weighed", DENSER)
"""The set of priors: the first two laws, weighed by how well they predict hidden counts; and the last, which is asked about
counts above 0 only, as no other makes these less likely."""

COST = 2.0
"""Units of log likelihood by which a prior may fit less well, and still fit about as well."""

CLUMPS = (0.0, 1.0, 0.5, 2.0)
"""How much people may come in clumps: the variance beyond that of independent people, in units of the mean."""

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
    """The mixtures of all columns, by law and by type of area.

    - `sizes`: Where the size of an area is found.
    - `chosen`: The exposure of every column.
    - `clump`: How much people come in clumps, by column.
    - `rates`: Columns × rates.
    - `weights`: Laws × columns × types × rates. A column whose weights are all 0 has a flat prior.
    - `tilt`: For every column the weight of the tilted law beside the best, in the prior that weighs the two.
    - `table`: The table of every column that has types of areas; -1 for others, which have the first type only.
    - `common`: Tables × types: how common each type is.
    - `alone`: 2 × columns × rates: the rates and weights of a mixture without any exposure, for a count of which nothing
      is known but what was published of it.
    """

    sizes: AreaSizes
    chosen: tuple[Exposure, ...]
    clump: FloatArray
    rates: FloatArray
    weights: FloatArray
    tilt: FloatArray
    table: NDArray[np.int64]
    common: FloatArray
    alone: FloatArray

    def law(self, name: str) -> FloatArray:
        """Return the weights of a law, or of the prior that weighs two of them: columns × types × rates."""
        if name == WEIGHED:
            tilt = self.tilt[:, np.newaxis, np.newaxis]
            return np.asarray((1 - tilt) * self.weights[0] + tilt * self.weights[1])
        return np.asarray(self.weights[LAWS.index(name)])

    def usual(self, column: int) -> FloatArray:
        """Return the weights of a column's rates that fit best, over areas of all types."""
        common = self.common[self.table[column]] if self.table[column] >= 0 else np.eye(1, self.weights.shape[2])[0]
        return np.asarray(common @ self.weights[0, column])

    def exposures(self, counts: Counts) -> FloatArray:
        """Return areas × columns: the exposures of some areas."""
        return self.sizes.of_all(counts, self.chosen)

    def types(self, counts: Counts, windows: Windows, exposures: FloatArray) -> FloatArray:
        """Return areas × columns × types: how likely every area is of each type, by its counts other than this one."""
        shares = np.zeros((*counts.shape, self.weights.shape[2]))
        shares[:, :, 0] = 1.0
        for table, common in enumerate(self.common):
            columns, there = np.flatnonzero(self.table == table), common > 0
            logs = np.zeros((len(columns), len(counts), int(there.sum())))
            for j, c in enumerate(columns.tolist()):
                weights = self.weights[0, c, there]
                used = weights.any(axis=0)
                observed = _Observed(windows, c, counts, exposures[:, c])
                if used.any() and observed.times.size:
                    likely, _ = observed.likely(self.rates[c, used], self.clump[c])
                    logs[j] = known_logs(observed.row, np.log(likely @ weights[:, used].T + LEAST))
            of_types = by_others(common[there], logs)
            shares[:, columns[:, np.newaxis], np.flatnonzero(there)] = of_types.transpose(1, 0, 2)
        return shares

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return it as arrays by name, for `of`."""
        rest = {name: getattr(self, name) for name in _ARRAYS}
        return {"sizes": np.array(astuple(self.sizes)), "exposures": np.array(self.chosen), **rest}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Mixtures:
        """Return what `arrays` returned."""
        column, least, usual = arrays["sizes"].tolist()
        chosen = tuple(Exposure(int(kind), int(above), *rest) for kind, above, *rest in arrays["exposures"].tolist())
        return cls(AreaSizes(int(column), least, usual), chosen, *(arrays[name] for name in _ARRAYS))


_ARRAYS = ("clump", "rates", "weights", "tilt", "table", "common", "alone")


class _Observed:
    """What was published in one column, areas with the same count and nearly the same exposure as one row.

    `row` is the row of every area; -1 where nothing is known.
    """

    def __init__(self, windows: Windows, column: int, counts: Counts, exposures: FloatArray) -> None:
        high = windows.high[: len(counts), column].astype(np.int64)
        known = np.flatnonzero(high < NO_UPPER_BOUND)
        bins = np.round(np.log(exposures[known]) / BIN).astype(np.int64)
        published = counts[known, column].astype(np.int64)
        keys = bins * (1 << 32) + published
        _, first, row, times = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        self.row = np.full(len(counts), -1, dtype=np.int64)
        self.row[known] = row
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
    """One way to fit one column; it was fitted to the first `areas`, and `times` is how many of them each row stands for."""

    areas: int
    exposure: Exposure
    clump: float
    rates: FloatArray
    weights: FloatArray
    log_likelihood: float
    observed: _Observed
    times: FloatArray
    likely: FloatArray
    zero: FloatArray

    def of_type(self, shares: FloatArray) -> _Fit:
        """Return the same for areas as far as they are of one type."""
        row = self.observed.row
        known = row >= 0
        times = np.bincount(row[known], shares[: len(row)][known], len(self.times))
        times = times + BORROWED / self.times.sum() * self.times
        weights, log_likelihood = fit_weights(self.likely, times, STEPS, np.maximum(self.weights, 1e-6))
        return replace(self, times=times, weights=weights, log_likelihood=log_likelihood)

    def laws(self, cost: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the weights of all laws: that fit best, have the fewest zeros, and have people come in groups."""
        order = np.argsort(self.observed.exposure)
        half = np.searchsorted(np.cumsum(self.times[order]), self.times.sum() / 2)
        means = self.rates * self.observed.exposure[order[min(half, len(order) - 1)]]
        tilted = least_zeros(self.likely, self.zero, self.times, self.weights, cost, STEPS)
        return self.weights, tilted, in_groups(self.likely, self.times, self.weights, means, cost, STEPS)


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
        """Fit all columns but some: each by itself, then the types of areas of every table, then the laws of each type."""
        columns = self.hierarchy.columns
        leaves = {*self.hierarchy.leaves, *(pair.total for pair in self.hierarchy.halves)}
        chosen = [Exposure(NONE)] * columns
        clump, rates, alone = np.zeros(columns), np.zeros((columns, MOST_RATES)), np.zeros((2, columns, MOST_RATES))
        with ThreadPoolExecutor(processors()) as pool:  # kernels release the interpreter

            def fit_column(c: int) -> tuple[_Fit, _Fit] | None:
                return None if c in skipped else self._fit_column(c, leaf=c in leaves)

            best = {}
            for c, fits in enumerate(pool.map(fit_column, range(columns))):
                progress(c, columns)
                if fits is not None:
                    by_itself, best[c] = fits
                    alone[:, c, : by_itself.rates.size] = by_itself.rates, by_itself.weights
                    chosen[c], clump[c], rates[c, : best[c].rates.size] = best[c].exposure, best[c].clump, best[c].rates
            table, common, shares = self._types(best)

            def vary(c: int) -> list[tuple[FloatArray, ...]]:
                if c not in leaves:
                    return [(best[c].weights,) * len(LAWS)]
                if c not in shares:
                    return [best[c].laws(COST)]
                return [best[c].of_type(of_type).laws(COST / shares[c].shape[1]) for of_type in shares[c].T]

            weights = np.zeros((len(LAWS), columns, max(common.shape[1], 1), MOST_RATES))
            for c, laws in zip(best, pool.map(vary, best), strict=True):
                weights[:, c, : len(laws), : best[c].rates.size] = np.array(laws).transpose(1, 0, 2)
        return Mixtures(self.sizes, tuple(chosen), clump, rates, weights, np.full(columns, 0.5), table, common, alone)

    def _types(self, best: Mapping[int, _Fit]) -> tuple[NDArray[np.int64], FloatArray, dict[int, FloatArray]]:
        """Find the types of areas of every table: of every column its table, how common types are, and what areas are."""
        tables: dict[int, list[int]] = {}
        for c in self.hierarchy.leaves:
            if c in best:
                tables.setdefault(self.hierarchy.top[c], []).append(c)
        table = np.full(self.hierarchy.columns, -1, dtype=np.int64)
        common: list[FloatArray] = []
        shares: dict[int, FloatArray] = {}
        everywhere = np.arange(len(self.counts))
        for columns in tables.values():
            leaves = [self._leaf(c, best[c]) for c in columns]
            types = find_types(leaves, len(self.counts))
            if types.common.size > 1:
                table[columns] = len(common)
                common.append(types.common)
                logs = np.stack([leaf.logs(own, everywhere) for leaf, own in zip(leaves, types.weights, strict=True)])
                shares |= dict.fromkeys(columns, normalised(np.log(types.common) + logs.sum(axis=0)))
        most = max((one.size for one in common), default=0)
        return table, np.array([np.pad(one, (0, most - one.size)) for one in common]).reshape(len(common), most), shares

    def _leaf(self, column: int, fit: _Fit) -> Leaf:
        """Return what was published of a column in all areas, for finding types."""
        exposures = self.sizes.exposures(self.counts, fit.exposure, self._each)
        observed = _Observed(self.windows, column, self.counts, exposures)
        return Leaf(observed.row, observed.likely(fit.rates, fit.clump)[0], fit.rates, fit.weights)

    def _fit_column(self, column: int, *, leaf: bool) -> tuple[_Fit, _Fit] | None:
        """Return the mixture of one column without exposure, and the best, which only leaves need; None: flat."""
        bounded = self.windows.high[:, column] < NO_UPPER_BOUND
        if not bounded.any() or self.counts[bounded, column].min() >= LARGE:
            return None
        # All ways to fit a column are judged by the same areas.
        rows = _Observed(self.windows, column, self.counts, self._each).times.size
        alone = self._try(column, len(self.counts) if rows <= MOST_ROWS else FEWER_AREAS, Exposure(NONE))
        return alone, self._best(column, alone) if leaf else alone

    def _best(self, column: int, alone: _Fit) -> _Fit:
        """Choose the exposure, then how much people clump; each only if the published counts ask for it."""
        kinds = self.sizes.kinds_for(column, self.counts, self.mechanisms, self.hierarchy)
        tried = [alone, *(self._try(column, alone.areas, kind) for kind in kinds)]
        best = max(tried, key=lambda fit: fit.log_likelihood)
        for clump in CLUMPS[1:]:
            other = self._try(column, alone.areas, best.exposure, clump)
            if other.log_likelihood > best.log_likelihood + (COST if best.clump == 0 else 0):
                best = other
            elif clump == CLUMPS[1]:
                break
        return best

    def _try(self, column: int, areas: int, exposure: Exposure, clump: float = 0.0) -> _Fit:
        counts = self.counts[:areas]
        exposures = self.sizes.exposures(counts, exposure, self._each[:areas])
        observed = _Observed(self.windows, column, counts, exposures)
        rates = rates_for(observed.exposure, observed.published)
        likely, zero = observed.likely(rates, clump)
        weights, log_likelihood = fit_weights(likely, observed.times, STEPS)
        return _Fit(areas, exposure, clump, rates, weights, log_likelihood, observed, observed.times, likely, zero)
