"""What rates make likely: probabilities of universes and parts, from their sums and rates together.

A rate that is used for bounds alone would make probabilities too high: bounds at the end of a window leave counts that are
unlikely together with their universe. So probabilities use a rate exactly, as a factor on its two counts (`rates`), or
not at all; means and medians they do not use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unround.audits.contradictions import tight_of
from unround.audits.figures import FigureBounds
from unround.audits.probabilities import (
    NEAR,
    BlockProbabilities,
    Distribution,
    OverPriors,
    Weighing,
    probability_alone,
)
from unround.bounds.tighten import BlockRows, tighten
from unround.engines.forest import empty_posterior, marginals, posteriors
from unround.engines.rates import RatePairs
from unround.evidence.block import Ints, Posterior, PriorWeights, Tight, Windows
from unround.mechanisms.base import BoolArray, FloatArray, reaches
from unround.release import FIGURE_ABSENT
from unround.sums.compiled import CompiledSums


@dataclass(frozen=True, slots=True, eq=False)
class _Rates:
    """Areas, and what is known of their universes and parts."""

    here: Weighing
    pairs: RatePairs
    rows: BlockRows
    reach: Tight
    chosen: BoolArray

    def of(self, rows: NDArray[np.int64]) -> _Rates:
        """Return the same for some areas."""
        return _Rates(self.here.of(rows), self.pairs, self.rows.of(rows), tight_of(self.reach, rows), self.chosen[rows])

    def weights(self, variant: str) -> PriorWeights | None:
        """Return the weights of one prior of the set, of the cells of rates."""
        wanted = np.zeros(self.reach.low.shape, dtype=np.bool_)
        wanted[np.ix_(self.chosen, self.pairs.cells)] = True
        given = self.here.counts, self.reach.low, self.reach.high, variant, wanted
        return self.pairs.prior(self.here.prior.weights(*given))

    def given(self, variant: str) -> tuple[CompiledSums, Windows, Tight, PriorWeights | None, BoolArray]:
        """Return what the engine takes."""
        pairs, here = self.pairs, self.here
        windows = here.bounds.windows if here.drawn is None else here.drawn.windows
        tight = pairs.tight(self.reach, self.chosen)
        return pairs.compiled, pairs.windows(windows), tight, self.weights(variant), pairs.active(here.active)

    def posterior(self, variant: str, value: Ints | None = None, wanted: BoolArray | None = None) -> Posterior:
        """Return what is likely under one prior of the set; areas without rates, or too wide ones, have nothing."""
        pairs, cells = self.pairs, self.pairs.cells
        more = len(pairs.splits)
        asked = None if value is None else np.pad(value[:, cells], ((0, 0), (0, more)))
        some = np.zeros((len(self.chosen), len(cells) + more), dtype=np.bool_)
        some[:, : len(cells)] = True if wanted is None else wanted[:, cells]
        found = posteriors(*self.given(variant), asked, None, some, rates=pairs.input(self.rows))
        into = empty_posterior(*self.reach.low.shape, asked=value is not None)
        whole = np.asarray(found.possible & (found.cut == 0))
        for name in ("mode", "probability", "mean", "deviation", "asked"):
            if getattr(found, name) is not None:
                getattr(into, name)[np.ix_(whole, cells)] = getattr(found, name)[whole][:, : len(cells)]
        into.possible[:] = whole
        return into

    def distributions(self, variant: str) -> dict[int, FloatArray]:
        """Return the distributions of the first area, from the lower bounds of the cells on."""
        given = self.given(variant)
        _, found = marginals(*given, rates=self.pairs.input(self.rows))
        widths = found.high[0].astype(np.int64) - found.low[0] + 1
        starts = found.start[0].tolist()
        return {
            int(cell): found.chances[starts[k] : starts[k] + int(widths[k])]
            for k, cell in enumerate(self.pairs.cells)
            if starts[k] >= 0
        }


def with_rates(
    here: Weighing,
    figured: FigureBounds,
    found: BlockProbabilities,
    threshold: float,
    nothing: BoolArray,
    keep: int | None = None,
) -> BlockProbabilities:
    """Return probabilities that use rates, where areas have any."""
    forests = here.model.rate_pairs
    if not forests:
        return found
    # Bounds that means and medians give, too, would leave what is unlikely together with the rest: not these.
    used = np.isin(np.arange(len(here.model.figures)), [f for forest in forests for f in forest.figures])
    rows = figured.rows.of_figures(used)
    reach = tighten(here.model.compiled, here.bounds.windows, here.active, rows=rows)
    for pairs in forests:
        chosen = np.asarray((figured.values[:, list(pairs.figures)] != FIGURE_ABSENT).any(axis=1)) & reach.feasible
        found = _with_forest(_Rates(here, pairs, rows, reach, chosen), found, threshold, nothing, keep)
    return found


def _with_forest(
    rates: _Rates, found: BlockProbabilities, threshold: float, nothing: BoolArray, keep: int | None
) -> BlockProbabilities:
    """Put in the probabilities of the parts of one forest."""
    here, pairs, reach = rates.here, rates.pairs, rates.reach
    parts = pairs.cells[pairs.parts]
    best, *others = here.prior.variants
    posterior = rates.posterior(best)
    weighed = np.zeros(posterior.mode.shape, dtype=np.bool_)
    weighed[np.ix_(posterior.possible, parts)] = True
    weighed &= posterior.mode >= 0
    near = np.asarray(weighed & (posterior.probability >= NEAR * threshold) & (posterior.probability < 1) & ~nothing)
    alone = probability_alone(here, posterior, near)

    def asked(variant: str, rows: NDArray[np.int64], which: BoolArray) -> FloatArray:
        one = rates.of(rows).posterior(variant, np.maximum(posterior.mode[rows], 0), which)
        assert one.asked is not None
        # An area that is too wide under one prior is too wide under all, but for what weighs nothing at all.
        return np.where(one.possible[:, None], one.asked, 0.0)

    each = OverPriors.ask(others, posterior, near, alone, threshold, asked)
    stated = replace(posterior, probability=each.mean)
    merged = {
        name: np.where(weighed, getattr(stated, name), getattr(found.posterior, name))
        for name in ("mode", "probability", "mean", "deviation")
    }
    if found.posterior.error is not None:
        merged["error"] = np.where(weighed, 0.0, found.posterior.error)
    before = weighed & reaches(found.lowest, threshold) & (found.posterior.mode == posterior.mode) & ~found.cut_off
    distributions = found.distributions
    if keep is not None and weighed[keep].any():
        area = np.array([keep])

        def distributions() -> Mapping[int, Distribution]:
            return {**found.distributions(), **_kept(rates.of(area), weighed[keep], each.lowest[keep])}

    return replace(
        found,
        reach=_merged_bounds(found.reach, reach, weighed),
        posterior=replace(found.posterior, **merged),
        lowest=np.where(weighed, each.lowest, found.lowest),
        highest=np.where(weighed, each.highest, found.highest),
        own_lowest=np.where(weighed, each.lowest, found.own_lowest),
        alone=np.where(weighed, alone, found.alone),
        cut_off=found.cut_off & ~weighed,
        distributions=distributions,
        by_rates=weighed if found.by_rates is None else found.by_rates | weighed,
        before=before if found.before is None else found.before | before,
    )


def _merged_bounds(before: Tight, by_rates: Tight, weighed: BoolArray) -> Tight:
    """Return bounds that are those by rates where probabilities are."""
    low, high = np.where(weighed, by_rates.low, before.low), np.where(weighed, by_rates.high, before.high)
    return Tight(low, high, before.by_low, before.by_high, before.depth_low, before.depth_high, before.feasible)


def _kept(rates: _Rates, weighed: BoolArray, lowest: FloatArray) -> dict[int, Distribution]:
    """Return the distributions of one area: averages over the priors that were asked, as probabilities are."""
    best, *others = rates.here.prior.variants
    found = rates.distributions(best)
    more = [rates.distributions(variant) for variant in others] if not np.isnan(lowest[weighed]).all() else []
    kept: dict[int, Distribution] = {}
    for cell, chances in found.items():
        if weighed[cell]:
            asked = [one[cell] for one in more] if not np.isnan(lowest[cell]) else []
            kept[cell] = int(rates.reach.low[0, cell]), np.mean([chances, *asked], axis=0)
    return kept
