"""What is likely in a block of areas: from their own sums, from linked areas, and for cells cut off from their sums.

What rates make likely: probabilities of universes and parts, from their sums and rates together.

A rate that is used for bounds alone would make probabilities too high: bounds at the end of a window leave counts that are
unlikely together with their universe. So probabilities use a rate exactly, as a factor on its two counts (`rates`), or
not at all; means and medians they do not use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.audits.bounds import Active, BlockBounds, NestedAreas
from unround.audits.claims import known_alone
from unround.audits.figures import FigureBounds
from unround.audits.model import Model
from unround.bounds.tighten import BlockRows, tighten
from unround.engines.forest import marginals, posteriors
from unround.engines.linked import Linked, link
from unround.engines.linked_weights import IN_TABLES
from unround.engines.rates import RatePairs
from unround.evidence.block import UNSETTLED, BlockPosterior, CellBounds, Distribution, Ints, PriorWeights
from unround.evidence.cells import EvidenceBlock
from unround.evidence.keys import KeyedEvidence
from unround.mechanisms.base import BoolArray, FloatArray, reaches
from unround.prior import DENSER, Prior
from unround.release import FIGURE_ABSENT, Counts

WIDE = 45
"""Cells with more possible counts may be too wide for their sums, in areas where some sum is: pairs are from 50 on."""

TINY = 1e-12

Distribute = Callable[[Sequence[int]], list[dict[int, Distribution]]]
"""Takes areas, and returns their distributions by cell."""


NEAR = 0.9
"""Counts whose probability under the best prior is at least so much of the threshold are weighed under all priors."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockProbabilities:
    """What is likely in a block; the arrays cannot be written to.

    - `within`: The bounds that probabilities keep to: those of the assumed reading, without tails where there is noise.
    - `posterior`: What is likely. Its probabilities are averages over the set of priors, where `lowest` has a number.
    - `lowest`, `highest`: The least and the greatest probability that any prior of the set gives to the likeliest count;
      NaN for counts far from the threshold, which were weighed under the best prior alone. The greatest is the highest
      found, and no bound.
    - `own_lowest`: The least probability if nothing were known of the other areas of a family.
    - `alone`: The probability from what was published of the count alone; NaN for counts far from the threshold.
    - `cut_off`: The cells that are cut off from a sum they belong to, and were judged without sums: none is claimed to be
      likely.
    - `too_noisy`: The areas in which sums contribute nothing to probabilities, because noise leaves too much possible.
    - `linked`: How nested areas were linked.
    - `distributions`: Returns the distributions behind the posterior of some areas, by cell; where areas are linked, of the
      one area for which they may be wanted. Those are there already; others are worked out every time, for they take more
      room than all the rest.
    - `by_rates`: The cells whose probabilities use published rates; None where no area has any.
    - `before`: The cells whose likeliest count would be likely without rates, too.
    """

    within: CellBounds
    posterior: BlockPosterior
    lowest: FloatArray
    highest: FloatArray
    own_lowest: FloatArray
    alone: FloatArray
    cut_off: BoolArray
    too_noisy: BoolArray
    linked: Linked | None
    distributions: Distribute
    by_rates: BoolArray | None = None
    before: BoolArray | None = None

    def __post_init__(self) -> None:
        for name in ("mode", "probability", "mean", "deviation", "possible"):
            getattr(self.posterior, name).setflags(write=False)
        for array in (self.lowest, self.highest, self.own_lowest, self.alone):
            array.setflags(write=False)

    @property
    def methods(self) -> NDArray[np.int8]:
        """By which method the probabilities of every area were obtained: places in `linked.methods.METHODS`."""
        if self.linked is not None:
            return self.linked.method
        return IN_TABLES[self.posterior.method]

    def need_family(self, threshold: float) -> BoolArray:
        """Return which counts are likely only because of other areas."""
        if self.linked is None:
            return np.zeros(self.lowest.shape, dtype=np.bool_)
        return reaches(self.lowest, threshold) & ~reaches(self.own_lowest, threshold)


class Weighing(NamedTuple):
    """What probabilities are worked out from.

    - `model`: What all areas share.
    - `prior`: What true counts are like: a set of priors.
    - `counts`: What was published.
    - `bounds`: What is possible; of `bounds.linked`, the links are used.
    - `within`: The bounds to keep to, of every area on its own.
    - `active`: Which sums hold in which area.
    - `keyed`: What keys make of these areas.
    - `worked_out`: Weights that were worked out before, by prior, and are kept for the next time.
    """

    model: Model
    prior: Prior
    counts: Counts
    bounds: BlockBounds
    within: CellBounds
    active: Active
    keyed: KeyedEvidence | None = None
    worked_out: dict[str, PriorWeights | None] | None = None

    def of(self, rows: NDArray[np.int64]) -> Weighing:
        """Return the same for some areas, each on its own."""
        bounds = replace(self.bounds, windows=self.bounds.windows.rows(rows), linked=None)
        keyed = None if self.keyed is None else self.keyed.rows(rows)
        some = self.counts[rows], bounds, self.within.rows(rows), self.active[rows], keyed
        return Weighing(self.model, self.prior, *some)

    def weights(self, variant: str, wanted: BoolArray | None = None) -> PriorWeights | None:
        """Return the weights of one prior of the set: of the wanted cells, and of all that they are connected with."""
        given = self.counts, self.within.low, self.within.high, variant
        if wanted is not None:
            return self.prior.weights(*given, with_connected(self.model, wanted))
        kept = {} if self.worked_out is None else self.worked_out
        if variant not in kept:
            kept[variant] = self.prior.weights(*given)
        return kept[variant]

    def block(self, variant: str, wanted: BoolArray | None = None) -> EvidenceBlock:
        """Return what engines take, under one prior of the set."""
        weights = self.weights(variant, wanted)
        return EvidenceBlock(self.model.compiled, self.bounds.windows, self.within, weights, self.active, self.keyed)

    def alone(self) -> EvidenceBlock:
        """Return the same without sums: what was published of each count by itself, within the bounds."""
        weights = self.prior.weights_alone(self.within.low, self.within.high)
        return EvidenceBlock(self.model.no_sums, self.bounds.windows, self.within, weights)

    def posterior(self, variant: str, value: Ints | None = None, wanted: BoolArray | None = None) -> BlockPosterior:
        """Return what is likely under one prior of the set, every area on its own."""
        return posteriors(self.block(variant, wanted), value, wanted)

    def distributions(self, variant: str) -> list[dict[int, Distribution]]:
        """Return the distributions of all areas, of cells that have one."""
        return _by_area(self.block(variant))


def _by_area(block: EvidenceBlock) -> list[dict[int, Distribution]]:
    """Return the distributions of all areas of a block, of cells that have one."""
    distributions = marginals(block)[1]
    return [distributions.of(row) for row in range(len(distributions.low))]


def weigh(
    here: Weighing,
    threshold: float,
    nested: NestedAreas | None = None,
    *,
    nothing: BoolArray | None = None,
    inexact: BoolArray | None = None,
    wanted: BoolArray | None = None,
    keep: int | None = None,
) -> BlockProbabilities:
    """Work out how likely each count is."""
    best, linked = here.prior.variants[0], None
    if nested is not None and here.bounds.linked is not None:
        block = here.block(best)
        if here.keyed is not None:  # between areas, only repeated counts account for keys
            block = replace(block, windows=here.keyed.windows, keyed=None)
        linked = link(block, here.bounds.linked.parent, nested.cells, alike=nested.alike, keep=keep)
        posterior = linked.posterior
    else:
        posterior = here.posterior(best, wanted=wanted)
    near = np.asarray((posterior.probability >= NEAR * threshold) & (posterior.probability < 1))
    if nothing is not None:
        near &= ~nothing
    alone = probability_alone(here, posterior, near)
    each, own_lowest = _under_each(here, posterior, near, alone, threshold, linked is not None)
    stated = replace(posterior, probability=each.mean)
    cut_off, too_noisy = np.zeros(posterior.mode.shape, dtype=np.bool_), np.zeros(len(posterior.cut), dtype=np.bool_)
    if not here.prior.is_flat:  # under a flat prior, fewer sums are right too
        too_noisy = np.asarray(posterior.cut > 0) & (not here.bounds.windows.certain.all())
        cut_off = _cut_off(here, posterior) | too_noisy[:, None]
        if inexact is not None:
            cut_off[inexact] = True
    distributions = _later(here, stated, each, cut_off, linked)
    stated = _without_sums(here, cut_off, stated)
    bounds_used = here.within if linked is None else linked.tight
    return BlockProbabilities(
        bounds_used, stated, each.lowest, each.highest, own_lowest, alone, cut_off, too_noisy, linked, distributions
    )


def _later(
    here: Weighing, stated: BlockPosterior, each: OverPriors, cut_off: BoolArray, linked: Linked | None
) -> Distribute:
    """Return what works out distributions when somebody asks: pages of whole areas do without."""
    best, *others = here.prior.variants
    kept = linked.kept if linked is not None else None

    def distributions(rows: Sequence[int]) -> list[dict[int, Distribution]]:
        some, off = here.of(np.array(rows)), cut_off[list(rows)]
        by_area = some.distributions(best) if kept is None else [dict(kept)]
        if others:
            several = [some.distributions(variant) for variant in others] if kept is None else []
            for area, row in enumerate(rows):
                _average(by_area[area], [of_prior[area] for of_prior in several], row, stated, each.lowest)
        if off.any():
            alone = _by_area(some.alone())
            for of_area, single, without in zip(by_area, alone, off, strict=True):
                for cell in np.flatnonzero(without).tolist():
                    of_area.pop(cell, None)
                    if cell in single:
                        of_area[cell] = single[cell]
        return by_area

    return distributions


class OverPriors(NamedTuple):
    """What all priors together say of the likeliest counts: the least, the mean and the greatest of their probabilities.

    The first and the last are NaN where only one prior was asked.
    """

    lowest: FloatArray
    mean: FloatArray
    highest: FloatArray

    @classmethod
    def ask(
        cls,
        others: Sequence[str],
        best: BlockPosterior,
        near: BoolArray,
        alone: FloatArray,
        threshold: float,
        asked: Callable[[str, NDArray[np.int64], BoolArray], FloatArray],
    ) -> OverPriors:
        """Ask one prior after the other about counts near the threshold, as long as they may be claimed."""
        probability = best.probability
        if not others:
            return cls(probability.copy(), probability.copy(), probability.copy())
        known_anyway = reaches(probability, threshold) & known_alone(probability, alone, threshold)
        known_anyway |= np.asarray(probability >= 1)  # whatever the prior
        near = near & ~known_anyway
        lowest = np.where(near | known_anyway, probability, np.nan)
        highest, total, times = lowest.copy(), probability.copy(), np.ones(near.shape, dtype=np.int64)
        wanted = near
        for variant in others:
            if variant == DENSER:
                wanted = wanted & (best.mode > 0)  # it has the most zeros: under no other is one more likely
            rows = np.flatnonzero(wanted.any(axis=1))
            if not rows.size:
                continue
            asked_here = wanted[rows]
            probabilities = asked(variant, rows, asked_here)
            weight = times[rows] if variant == DENSER else 1  # the others say much the same of how those who are there group
            for into, join, values in (
                (lowest, np.minimum, probabilities),
                (highest, np.maximum, probabilities),
                (total, np.add, weight * probabilities),
                (times, np.add, weight),
            ):
                into[rows] = np.where(asked_here, join(into[rows], values), into[rows])
            wanted = near & reaches(lowest, threshold)
        return cls(lowest, total / times, highest)


def _under_each(
    here: Weighing,
    posterior: BlockPosterior,
    near: BoolArray,
    alone: FloatArray,
    threshold: float,
    linked: bool,
) -> tuple[OverPriors, FloatArray]:
    """Ask all priors about counts near the threshold; return also the least probability in each area on its own.

    Of linked areas only the best prior's probabilities are worked out together; those of another prior are taken to differ
    from them, in log odds, by as much as they do in the area alone.
    """
    best, *others = here.prior.variants
    mode, probability = posterior.mode, posterior.probability
    own_best = _asked(here, best, mode, near) if linked else probability
    own_lowest = own_best.copy()

    def asked(variant: str, rows: NDArray[np.int64], asked_here: BoolArray) -> FloatArray:
        on_its_own = here.prior.believed(variant, _asked(here.of(rows), variant, mode[rows], asked_here), own_best[rows])
        own_lowest[rows] = np.where(asked_here, np.minimum(own_lowest[rows], on_its_own), own_lowest[rows])
        return _shifted(probability[rows], own_best[rows], on_its_own) if linked else on_its_own

    return OverPriors.ask(others, posterior, near, alone, threshold, asked), own_lowest


def probability_alone(here: Weighing, posterior: BlockPosterior, near: BoolArray) -> FloatArray:
    """Return how likely the likeliest counts are by what was published of each alone; NaN where that is not asked for."""
    probabilities = np.full(near.shape, np.nan)
    rows = np.flatnonzero(near.any(axis=1))
    if rows.size:
        windows, wanted = here.bounds.windows.rows(rows), near[rows]
        tight = tighten(here.model.no_sums, windows)
        weights = here.prior.weights_alone(tight.low, tight.high, wanted)
        value = np.maximum(posterior.mode[rows], 0)
        asked = posteriors(EvidenceBlock(here.model.no_sums, windows, tight, weights), value, wanted).asked
        assert asked is not None  # they were asked for
        probabilities[rows] = np.where(wanted, asked, np.nan)
    return probabilities


def _asked(here: Weighing, variant: str, value: Ints, wanted: BoolArray) -> FloatArray:
    probabilities = here.posterior(variant, np.maximum(value, 0), wanted).asked
    assert probabilities is not None
    return probabilities


def _shifted(known: FloatArray, before: FloatArray, after: FloatArray) -> FloatArray:
    """Return probabilities with their log odds changed as those of another probability change."""
    factor = after * np.maximum(1 - before, TINY) / (np.maximum(before, TINY) * np.maximum(1 - after, TINY))
    odds = known / np.maximum(1 - known, TINY) * factor
    return np.asarray(np.where(known >= 1.0, 1.0, odds / (1 + odds)))


def _average(
    distributions: dict[int, Distribution],
    several: Sequence[Mapping[int, Distribution]],
    row: int,
    stated: BlockPosterior,
    lowest: FloatArray,
) -> None:
    """Average one area's distributions over the set of priors where its probabilities are; in a family, keep the best's.

    Beyond the likeliest count, the others keep their proportions in the average of all priors, so that the probability is
    the one that is stated: it may have been averaged over fewer priors.
    """
    for cell in [cell for cell in distributions if not np.isnan(lowest[row, cell])]:
        low, chances = distributions[cell]
        chances = np.mean([chances, *(of_prior[cell][1] for of_prior in several)], axis=0)
        at, new = int(stated.mode[row, cell]) - low, float(stated.probability[row, cell])
        rest = 1 - chances[at]
        scaled = chances * ((1 - new) / rest if rest > 0 else 0.0)
        scaled[at] = new
        distributions[cell] = low, scaled


def with_connected(model: Model, wanted: BoolArray) -> BoolArray:
    """Mark the wanted cells, and those that sums of their area connect with one of them."""
    order, starts, piece_of = model.by_piece
    marked = np.empty_like(wanted)
    marked[:, order] = np.logical_or.reduceat(wanted[:, order], starts, axis=1)[:, piece_of]
    return marked


def _cut_off(here: Weighing, posterior: BlockPosterior) -> BoolArray:
    """Find the cells that are cut off from a sum they belong to, while others of their area are not.

    In the fitted prior, totals follow from their parts: it says nothing of a total that is cut off from them. A sum is cut
    off where it does not apply or contradicts, or where too much is possible.
    """
    model, within, active = here.model, here.within, here.active
    marked = np.zeros(posterior.mode.shape, dtype=bool)
    rows = np.flatnonzero((posterior.cut > 0) | ~np.asarray(active.all(axis=1)) | (posterior.method == UNSETTLED))
    if not rows.size:
        return marked
    for table in model.compiled.multiway:  # of these, all sums together are one argument
        alone = ~active[rows][:, list(table.equations)].all(axis=1) | (posterior.method[rows] == UNSETTLED)
        marked[np.ix_(rows[alone], table.cells)] = True
    used, starts, members = _sums_used(model)
    if not used.size:
        return marked
    wide = within.high[rows].astype(np.int64) - within.low[rows] > WIDE
    off = np.logical_or.reduceat(wide[:, members], starts, axis=1) & (posterior.cut[rows] > 0)[:, None]
    off |= ~active[rows][:, used]
    for k in np.flatnonzero(off.any(axis=0)).tolist():
        marked[np.ix_(rows[off[:, k]], np.array(model.members(int(used[k]))))] = True
    return marked


@lru_cache(maxsize=4)
def _sums_used(model: Model) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the sums that carry probabilities, and all their cells, one sum after the other, with where each begins."""
    unused = frozenset(model.compiled.left_out)
    used = [e for e in range(len(model.equations)) if e not in unused]
    cells = [model.members(e) for e in used]
    sizes = np.array([len(members_of) for members_of in cells], dtype=np.int64)
    members = np.array([cell for members_of in cells for cell in members_of], dtype=np.int64)
    return np.array(used, dtype=np.int64), np.cumsum(sizes) - sizes, members


def _without_sums(here: Weighing, cut_off: BoolArray, posterior: BlockPosterior) -> BlockPosterior:
    """Return the posterior in which cells that are cut off have their column's own distribution, within their bounds."""
    rows = np.flatnonzero(cut_off.any(axis=1))
    if not rows.size:
        return posterior
    alone = BlockPosterior.empty(*cut_off.shape)
    alone.put(rows, posteriors(here.of(rows).alone()), np.arange(rows.size))
    return replace(posterior.replaced(cut_off, alone), possible=posterior.possible | cut_off.all(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class _Rates:
    """Areas, and what is known of their universes and parts."""

    here: Weighing
    pairs: RatePairs
    rows: BlockRows
    within: CellBounds
    chosen: BoolArray

    def of(self, rows: NDArray[np.int64]) -> _Rates:
        """Return the same for some areas."""
        return _Rates(self.here.of(rows), self.pairs, self.rows.of(rows), self.within.rows(rows), self.chosen[rows])

    def block(self, variant: str) -> EvidenceBlock:
        """Return what the engine takes, under one prior of the set."""
        here, wanted = self.here, np.zeros(self.within.low.shape, dtype=np.bool_)
        wanted[np.ix_(self.chosen, self.pairs.cells)] = True
        weights = here.prior.weights(here.counts, self.within.low, self.within.high, variant, wanted)
        block = EvidenceBlock(here.model.compiled, here.bounds.windows, self.within, weights, here.active, here.keyed)
        return self.pairs.block(block, self.chosen)

    def posterior(self, variant: str, value: Ints | None = None, wanted: BoolArray | None = None) -> BlockPosterior:
        """Return what is likely under one prior of the set; areas without rates, or too wide ones, have nothing."""
        pairs, cells = self.pairs, self.pairs.cells
        more = len(pairs.splits)
        asked = None if value is None else np.pad(value[:, cells], ((0, 0), (0, more)))
        some = np.zeros((len(self.chosen), len(cells) + more), dtype=np.bool_)
        some[:, : len(cells)] = True if wanted is None else wanted[:, cells]
        by_pairs = posteriors(self.block(variant), asked, some, rates=pairs.input(self.rows))
        into = BlockPosterior.empty(*self.within.low.shape, asked=value is not None)
        whole = np.asarray(by_pairs.possible & (by_pairs.cut == 0))
        for name in ("mode", "probability", "mean", "deviation", "asked"):
            if getattr(by_pairs, name) is not None:
                getattr(into, name)[np.ix_(whole, cells)] = getattr(by_pairs, name)[whole][:, : len(cells)]
        into.possible[:] = whole
        return into

    def distributions(self, variant: str) -> dict[int, FloatArray]:
        """Return the distributions of the first area, from the lower bounds of the cells on."""
        _, distributions = marginals(self.block(variant), rates=self.pairs.input(self.rows))
        return {
            int(self.pairs.cells[k]): chances for k, (_, chances) in distributions.of(0).items() if k < len(self.pairs.cells)
        }


def with_rates(
    here: Weighing,
    figured: FigureBounds,
    weighed: BlockProbabilities,
    threshold: float,
    nothing: BoolArray,
) -> BlockProbabilities:
    """Return probabilities that use rates, where areas have any."""
    forests = here.model.rate_pairs
    if not forests:
        return weighed
    # Bounds that means and medians give, too, would leave what is unlikely together with the rest: not these.
    used = np.isin(np.arange(len(here.model.figures)), [f for forest in forests for f in forest.figures])
    rows = figured.rows.of_figures(used)
    within = tighten(here.model.compiled, here.bounds.windows, here.active, rows=rows)
    for pairs in forests:
        chosen = np.asarray((figured.values[:, list(pairs.figures)] != FIGURE_ABSENT).any(axis=1)) & within.feasible
        weighed = _with_forest(_Rates(here, pairs, rows, within, chosen), weighed, threshold, nothing)
    return weighed


def _with_forest(
    rates: _Rates, before_rates: BlockProbabilities, threshold: float, nothing: BoolArray
) -> BlockProbabilities:
    """Put in the probabilities of the parts of one forest."""
    here, pairs, within = rates.here, rates.pairs, rates.within
    parts = pairs.cells[pairs.parts]
    best, *others = here.prior.variants
    posterior = rates.posterior(best)
    weighed = np.zeros(posterior.mode.shape, dtype=np.bool_)
    weighed[np.ix_(posterior.possible, parts)] = True
    weighed &= posterior.mode >= 0
    near = np.asarray(weighed & (posterior.probability >= NEAR * threshold) & (posterior.probability < 1) & ~nothing)
    alone = probability_alone(here, posterior, near)

    def asked(variant: str, rows: NDArray[np.int64], asked_here: BoolArray) -> FloatArray:
        of_prior = rates.of(rows).posterior(variant, np.maximum(posterior.mode[rows], 0), asked_here)
        assert of_prior.asked is not None
        # An area that is too wide under one prior is too wide under all, but for what weighs nothing at all.
        return np.where(
            of_prior.possible[:, None], here.prior.believed(variant, of_prior.asked, posterior.probability[rows]), 0.0
        )

    each = OverPriors.ask(others, posterior, near, alone, threshold, asked)
    stated = replace(posterior, probability=each.mean)
    before = (
        weighed
        & reaches(before_rates.lowest, threshold)
        & (before_rates.posterior.mode == posterior.mode)
        & ~before_rates.cut_off
    )

    def distributions(rows: Sequence[int]) -> list[dict[int, Distribution]]:
        by_sums = before_rates.distributions(rows)
        for of_area, row in zip(by_sums, rows, strict=True):
            if weighed[row].any():
                of_area |= _kept_with_rates(rates.of(np.array([row])), weighed[row], each.lowest[row])
        return by_sums

    return replace(
        before_rates,
        within=before_rates.within._replace(
            low=np.where(weighed, within.low, before_rates.within.low),
            high=np.where(weighed, within.high, before_rates.within.high),
        ),
        posterior=before_rates.posterior.replaced(weighed, stated),
        lowest=np.where(weighed, each.lowest, before_rates.lowest),
        highest=np.where(weighed, each.highest, before_rates.highest),
        own_lowest=np.where(weighed, each.lowest, before_rates.own_lowest),
        alone=np.where(weighed, alone, before_rates.alone),
        cut_off=before_rates.cut_off & ~weighed,
        distributions=distributions,
        by_rates=weighed if before_rates.by_rates is None else before_rates.by_rates | weighed,
        before=before if before_rates.before is None else before_rates.before | before,
    )


def _kept_with_rates(rates: _Rates, weighed: BoolArray, lowest: FloatArray) -> dict[int, Distribution]:
    """Return the distributions of one area: averages over the priors that were asked, as probabilities are."""
    best, *others = rates.here.prior.variants
    of_best = rates.distributions(best)
    more = [rates.distributions(variant) for variant in others] if not np.isnan(lowest[weighed]).all() else []
    kept: dict[int, Distribution] = {}
    for cell, chances in of_best.items():
        if weighed[cell]:
            asked = [of_prior[cell] for of_prior in more] if not np.isnan(lowest[cell]) else []
            kept[cell] = int(rates.within.low[0, cell]), np.mean([chances, *asked], axis=0)
    return kept
