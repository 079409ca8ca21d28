"""One block of areas, in five steps: bounds, probabilities, and what can be claimed from them; and estimates of all counts.

A block goes through the engines this often:

| pass                                 | times            | why                                                             |
|--------------------------------------|------------------|-----------------------------------------------------------------|
| bounds, documented                   | 1                | what is proved rests on nothing else                            |
| bounds, adjusted counts taken exact  | 1 if any may be  | what is conditional                                             |
| bounds, with the tails of noise      | 1 if it has any  | what probabilities keep to; proofs must do without tails        |
| bounds of published counts alone     | 1 if any is near | see below                                                       |
| bounds between areas; by figures     | 1 each           | other evidence, and other conditions                            |
| probabilities, best prior            | 1                | which count is likeliest, and which are near the threshold      |
| probabilities, other priors          | 1 each           | the lowest of all is claimed; only of what is still near        |
| probabilities of counts alone        | 1 if any is near | what the published value gives away alone is not a claim        |
| probabilities, cells cut off         | 1 if there are   | their own sums could not be used                                |
| probabilities, families and rates    | 1 each           | other evidence; of linked areas also every area on its own      |
| certificates                         | 1 a proved area  | no proof without one that checks                                |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unround.audits.bounds import (
    ASSUMPTION,
    FIGURE,
    UNRESOLVED,
    Active,
    BlockBounds,
    Contradiction,
    DocumentedBounds,
    NestedAreas,
    assumed_bounds,
    documented_bounds,
    hidden_counts,
    link_bounds,
)
from unround.audits.certificates import InferredBlock, certify
from unround.audits.claims import (
    BlockClaims,
    ClaimKind,
    HeldBecause,
    Needs,
    decide,
    known_alone,
)
from unround.audits.figures import FigureBounds, figure_bounds
from unround.audits.findings import Labels
from unround.audits.keys import Keys
from unround.audits.model import AuditOptions, Model
from unround.audits.suspects import Holding, Suspect, find_suspects
from unround.audits.weigh import BlockProbabilities, Weighing, weigh, with_rates
from unround.bounds.tighten import tighten
from unround.evidence.block import NO_UPPER_BOUND, Distribution, Ints, Windows, WindowTable
from unround.evidence.keys import KeyedEvidence, keyed_evidence
from unround.mechanisms import Weighted
from unround.mechanisms.base import BoolArray
from unround.prior import Prior
from unround.release import ABSENT, NOT_APPLICABLE, Counts, FigureValues, adjustable, why_absent

if TYPE_CHECKING:
    import polars as pl


TOGETHER = 32
"""Areas whose distributions are worked out together: those of a national census take a megabyte an area."""


class Auditor:
    """Audits block after block under one model.

    - `model`: What all areas share.
    - `prior`: What true counts are like.
    - `options`: The threshold, and whether adjusted counts are treated as exact.
    - `keys`: In which tables random numbers add up; in none unless given. Probabilities account for it; bounds need not.
    - `holding`: Which claims are held back; unless given, only those that the prior and the keys withhold.
    """

    def __init__(
        self,
        model: Model,
        prior: Prior,
        options: AuditOptions | None = None,
        keys: Keys | None = None,
        holding: Holding | None = None,
    ) -> None:
        self.model = model = keys.paired(model) if keys is not None else model
        self.keyed = keys.keyed(model) if keys is not None else None
        self.prior = prior
        self.options = options or AuditOptions()
        self.holding = holding = holding or Holding()
        self._windows = WindowTable(model.mechanisms)
        self._estimates = np.array([isinstance(how, Weighted) for how in model.mechanisms])
        cells = np.arange(len(model.columns))
        self._withheld = {
            HeldBecause.MECHANISM: np.isin(cells, holding.refuted),
            HeldBecause.SELFCHECK: np.isin(cells, self.prior.withheld),
            HeldBecause.TIED: keys.untied(model) if keys is not None else np.zeros(len(cells), dtype=np.bool_),
        }

    def audit(
        self,
        counts: Counts,
        adjustable: NDArray[np.bool_],
        nested: NestedAreas | None = None,
        names: Sequence[str] = (),
        *,
        only: int | None = None,
        figures: FigureValues | None = None,
    ) -> InferredBlock:
        """Infer what can be inferred about some areas, and certify what is proved."""
        inferred = self.infer(counts, adjustable, nested, keep=only, figures=figures)
        claims = certify(self.model, inferred, names, only)
        # Readers may well believe what nobody documents: such a claim is shown as a proof is, with its condition.
        doubtful = ~claims.merely_inferred
        suspect = _areas(len(counts), inferred.suspects)[:, None]
        claims = claims.holding_back(ClaimKind.CONDITIONAL, doubtful & suspect, HeldBecause.SUSPECT)
        if self.holding.conditional:
            claims = claims.holding_back(ClaimKind.CONDITIONAL, doubtful, HeldBecause.MECHANISM)
        return replace(inferred, claims=claims)

    def infer(
        self,
        counts: Counts,
        adjustable: NDArray[np.bool_],
        nested: NestedAreas | None = None,
        keep: int | None = None,
        figures: FigureValues | None = None,
    ) -> InferredBlock:
        """Infer what can be inferred about some areas."""
        # 1. What is possible by what the agency documents.
        stated = self.documented(counts, adjustable)
        documented, active, contradictions = stated.bounds, stated.active, [*stated.contradictions]
        # 2. What is possible if counts that may have been adjusted are exact.
        assumed = documented
        if self.options.exact_population:
            assumed, refuted = assumed_bounds(self.model, self._windows, counts, stated)
            contradictions += refuted
        certain = bool(assumed.windows.certain.all())
        within = assumed.tight if certain else tighten(self.model.compiled, assumed.windows, active)
        figured = None
        if figures is not None and self.model.figures:
            figured, refuted = figure_bounds(self.model, counts, figures, assumed, active)
            contradictions += refuted
        # 3. What nested areas leave possible of each other.
        contradictions += nested.contradictions() if nested is not None else []
        linked = nested if nested is not None and nested.linked else None
        documented, assumed, clashes = link_bounds(self.model, linked, counts, documented, assumed, active)
        contradictions += clashes
        # Weighted estimates are not whole numbers: no count is claimed.
        clashing = _clashing(counts.shape, contradictions)
        nothing = clashing | without_news(self.model, counts, active, documented) | self._estimates
        # 4. What is likely.
        keyed = self.keyed_evidence(assumed.windows, counts, active)
        given = Weighing(self.model, self.prior, counts, assumed, within, active, keyed, {})
        probabilities = self._weigh(given, linked, nothing, keep)
        if figured is not None:
            probabilities = with_rates(given, figured, probabilities, self.options.threshold, nothing)
        contradictions += _unresolved(probabilities)
        # 5. What can be claimed; nothing likely where the data themselves are in doubt, or the area is like no other.
        suspects = find_suspects(self.model, counts, documented.may_differ_by, active, self.holding.suspect_below)
        claims = self._claim(documented, assumed, figured, nothing, probabilities)
        claims = claims.holding_back(ClaimKind.LIKELY, _areas(len(counts), suspects)[:, None], HeldBecause.SUSPECT)
        for why, cells in self._withheld.items():
            claims = claims.holding_back(ClaimKind.LIKELY, cells[None, :], why)
        claims = claims.holding_back(ClaimKind.LIKELY, self.prior.odd(counts)[:, None], HeldBecause.ODD)
        return InferredBlock(
            counts,
            active,
            documented,
            assumed,
            probabilities,
            claims,
            tuple(contradictions),
            clashing,
            linked,
            suspects,
            figured,
        )

    def documented(self, counts: Counts, adjustable: NDArray[np.bool_]) -> DocumentedBounds:
        """Return what the agency's documentation leaves possible, and what contradicts it."""
        return documented_bounds(self.model, self._windows, counts, adjustable)

    def keyed_evidence(self, windows: Windows, counts: Counts, active: Active) -> KeyedEvidence | None:
        """Return what keys make of some areas, as the engine takes it; None where there are none."""
        return None if self.keyed is None else keyed_evidence(self.keyed, windows, counts, active)

    def _weigh(
        self, given: Weighing, nested: NestedAreas | None, nothing: BoolArray, keep: int | None
    ) -> BlockProbabilities:
        """Work out what is likely; of `nothing` is claimed, whatever it is."""
        inexact = np.asarray(given.bounds.may_differ_by.any(axis=1) & self.options.exact_population)
        wanted = None
        if self._estimates.any() and keep is None and not self.options.estimates:  # estimates are not claimed: nobody asks
            wanted = np.tile(~self._estimates, (len(given.counts), 1))
        return weigh(given, self.options.threshold, nested, nothing=nothing, inexact=inexact, wanted=wanted, keep=keep)

    def _claim(
        self,
        documented: BlockBounds,
        assumed: BlockBounds,
        figured: FigureBounds | None,
        nothing: BoolArray,
        probabilities: BlockProbabilities,
    ) -> BlockClaims:
        """Decide what can be claimed, what each claim needs, and drop what hardly needs a sum."""
        threshold = self.options.threshold
        claims = decide(
            documented,
            assumed,
            probabilities.posterior,
            probabilities.lowest,
            threshold,
            nothing=nothing,
            nothing_likely=probabilities.cut_off,
            figured=None if figured is None else figured.bounds,
        )
        likely, alone = claims.of_kind(ClaimKind.LIKELY), probabilities.alone
        dropped = likely & known_alone(probabilities.posterior.probability, alone, threshold)
        likely &= ~dropped
        rates = None
        if probabilities.by_rates is not None and probabilities.before is not None:
            rates = np.asarray(probabilities.by_rates & ~probabilities.before)
        needs = np.zeros(likely.shape, dtype=np.int8)
        needs[likely & probabilities.need_family(threshold)] = Needs.FAMILY
        if rates is not None:
            needs[likely & rates] = Needs.FIGURE
        for bounds, kind in ((assumed, ClaimKind.CONDITIONAL), (documented, ClaimKind.PROVED)):
            pinned = bounds.tight.low == bounds.tight.high
            if bounds.linked is not None:
                needs[bounds.linked.moved & claims.of_kind(kind) & pinned] = Needs.FAMILY
            by_no_sum = (bounds.tight.by_low < 0) & (bounds.tight.by_high < 0)
            dropped |= claims.of_kind(kind) & pinned & by_no_sum & (needs == Needs.NOTHING)
        return replace(claims, needs=needs).dropping(dropped, alone)


def _areas(number: int, suspects: Iterable[Suspect]) -> BoolArray:
    """Mark the areas of suspect data."""
    marked = np.zeros(number, dtype=np.bool_)
    marked[[suspect.area for suspect in suspects]] = True
    return marked


def _clashing(shape: tuple[int, ...], contradictions: Iterable[Contradiction]) -> BoolArray:
    """Mark the cells in contradictions; an exact count that was adjusted, or a figure of other counts, spoils no other."""
    marked = np.zeros(shape, dtype=np.bool_)
    for contradiction in contradictions:
        if contradiction.kind not in (ASSUMPTION, FIGURE):
            marked[contradiction.area, list(contradiction.cells)] = True
    return marked


def _unresolved(probabilities: BlockProbabilities) -> list[Contradiction]:
    text = "No combination of possible counts adds up in all sums together."
    areas = np.flatnonzero(~probabilities.posterior.possible).tolist()
    return [Contradiction(area, UNRESOLVED, (), (), text) for area in areas]


def without_news(model: Model, counts: Counts, active: Active, documented: BlockBounds) -> BoolArray:
    """Mark the cells whose count the release shows elsewhere, or that are 0 because all around them is."""
    # That none is counted where a count is not applicable is no news either; that some are would be.
    marked = np.asarray((counts == NOT_APPLICABLE) & (documented.tight.low <= 0))
    for cell, (twin, e) in model.exact_twin.items():
        marked[:, cell] |= active[:, e] & (counts[:, twin] > ABSENT)  # shown exactly, under another name
    for cell, (_, e) in model.repeated.items():
        marked[:, cell] |= active[:, e]  # the same count is claimed where it is shown first
    return marked | ~_inhabited(model, np.maximum(counts, documented.tight.low))


def _inhabited(model: Model, counts: Ints) -> BoolArray:
    """Mark the cells that are connected with a count above 0; that all others are 0 as well is no news."""
    order, starts, piece_of = model.by_piece
    largest = np.maximum.reduceat(counts[:, order], starts, axis=1)
    inhabited = np.empty(counts.shape, dtype=np.bool_)
    inhabited[:, order] = (largest > 0)[:, piece_of]
    return inhabited


def _where(areas: pl.DataFrame, axes: tuple[str, ...], labels: Labels, rows: Any, cells: Any) -> dict[str, pl.Series]:
    """Return the columns that say where cells are: their areas, and their places on the other axes."""
    cell_columns = {name: column for name, column in labels.columns.items() if name in axes or name != "characteristic"}
    return {name: areas[name][rows] for name in axes} | {name: column.gather(cells) for name, column in cell_columns.items()}


def estimates_frame(
    inferred: InferredBlock,
    areas: pl.DataFrame,
    axes: tuple[str, ...],
    labels: Labels,
    distributions: list[dict[int, Distribution]] | None = None,
) -> pl.DataFrame:
    """Return an estimate of every cell that has one, a row each.

    With the `distributions` of every area, two lists follow in each row: the possible `counts`, and their `probabilities`.
    """
    import polars as pl

    posterior, bounds = inferred.probabilities.posterior, inferred.probabilities.within
    rows, cells = np.nonzero(posterior.probability > 0)
    published = inferred.counts[rows, cells]
    return pl.DataFrame(
        {
            **_where(areas, axes, labels, rows, cells),
            "published": pl.Series(published).set(pl.Series(published <= ABSENT), None),
            "low": bounds.low[rows, cells],
            "high": bounds.high[rows, cells],
            "mean": posterior.mean[rows, cells],
            "sd": posterior.deviation[rows, cells],
            "mode": posterior.mode[rows, cells],
            "probability": posterior.probability[rows, cells],
            **({} if distributions is None else _lists(distributions, rows, cells)),
        }
    )


def hidden_frame(inferred: InferredBlock, areas: pl.DataFrame, axes: tuple[str, ...], labels: Labels) -> pl.DataFrame:
    """Return the interval that a reader can work out for every count that is not printed, a row each.

    The least and the greatest that it can be over all tables that agree with what is printed; no greatest where nothing
    bounds it. `settled` is false where the interval might be narrower still: more effort would have to be made to know.
    """
    import polars as pl

    rows, cells = np.nonzero(hidden_counts(inferred.counts))
    bounds = inferred.documented.tight
    linked = inferred.documented.linked
    limited = np.zeros(inferred.counts.shape, dtype=np.bool_) if linked is None else linked.limited
    high = bounds.high[rows, cells]
    return pl.DataFrame(
        {
            **_where(areas, axes, labels, rows, cells),
            "published": pl.Series([why_absent(code) for code in inferred.counts[rows, cells].tolist()], dtype=pl.String),
            "low": bounds.low[rows, cells],
            "high": pl.Series(high).set(pl.Series(high >= NO_UPPER_BOUND), None),
            "settled": ~limited[rows, cells] & bounds.feasible[rows],
        }
    )


def distributions_of(
    auditor: Auditor, inferred: InferredBlock, areas: pl.DataFrame, nested: NestedAreas | None
) -> list[dict[int, Distribution]]:
    """Return the distributions of all areas of a block, each by cell, as `explain` would show them.

    Of linked areas those of one are kept at a time, so that each is inferred again with its family.
    """
    number = len(inferred.counts)
    if inferred.probabilities.linked is None:
        parts = [range(first, min(first + TOGETHER, number)) for first in range(0, number, TOGETHER)]
        return [of_area for part in parts for of_area in inferred.probabilities.distributions(part)]
    may_differ, by_area = adjustable(areas), []
    for area in range(number):
        rows = np.array([area]) if nested is None else nested.family(area)
        family = None if nested is None else nested.reordered(rows)
        family = family if family is not None and family.any else None
        values = None if inferred.figured is None else inferred.figured.values[rows]
        again = auditor.infer(inferred.counts[rows], may_differ[rows], family, 0, values)
        by_area += again.probabilities.distributions([0])
    return by_area


def _lists(distributions: list[dict[int, Distribution]], rows: Any, cells: Any) -> dict[str, pl.Series]:
    """Return the possible counts of every cell and their probabilities, without those that are impossible."""
    import polars as pl

    counts, probabilities = [], []
    for row, cell in zip(rows.tolist(), cells.tolist(), strict=True):
        low, chances = distributions[row].get(cell, (0, np.zeros(0)))
        there = np.flatnonzero(chances > 0)
        counts.append(low + there)
        probabilities.append(chances[there])
    return {
        "counts": pl.Series(counts, dtype=pl.List(pl.Int32)),
        "probabilities": pl.Series(probabilities, dtype=pl.List(pl.Float64)),
    }
