"""What readers of a table can learn: for every count the surest claim, at the highest probability that any prior gives.

An audit claims by the lowest probability, so that a claim is right at least as often as it says. Who judges the risk of a
table looks at the highest instead: here every count is weighed under every prior of the set. Claims that an audit holds
back, because a check failed, are counted as well: that they may be wrong makes nothing safe.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.audits import Auditor, InferredBlock, Model
from unround.audits.block import without_news
from unround.audits.bounds import ASSUMPTION
from unround.audits.claims import ClaimKind, known_alone
from unround.audits.keys import Keys
from unround.audits.weigh import Weighing
from unround.bounds.tighten import tighten
from unround.engines.forest import posteriors
from unround.evidence.block import NO_UPPER_BOUND, Ints
from unround.evidence.cells import EvidenceBlock
from unround.job import AuditFolder
from unround.mechanisms import Exact, Weighted
from unround.mechanisms.base import BoolArray, FloatArray, reaches
from unround.options import AuditOptions
from unround.prior import Prior, PriorFit
from unround.release import ABSENT
from unround.reviews.policy import CONDITIONAL, KINDS, LIKELY, PROVED, UNROUNDED
from unround.reviews.table import ReviewedTable
from unround.score.summary import SIZES

FEW_CLASHES = 5
"""Contradictions that are kept in words."""

ARRAYS = ("kinds", "values", "highest", "lowest", "low", "high", "narrowed")
"""What is found area by area."""

_OF_CLAIM = {ClaimKind.PROVED: KINDS.index(PROVED), ClaimKind.CONDITIONAL: KINDS.index(CONDITIONAL)}


@dataclass(frozen=True, eq=False)
class Exposure:
    """What readers can learn of every count; arrays are areas × columns.

    - `kinds`: Positions in `policy.KINDS`; likely from the least probability of the policy on.
    - `values`: The count that readers learn, or find likeliest.
    - `highest`, `lowest`: The highest and the lowest probability of it that any prior gives; the highest is not a bound.
    - `low`, `high`: The possible range; `NO_UPPER_BOUND` where nothing bounds it.
    - `alone`: Counts that are likely from their published value alone, so that sums add little: not among the kinds.
    - `unknown`: Counts whose probabilities could not be computed.
    - `contradictions`: Contradictions between published figures.
    - `narrowed`: Where sums leave less possible than what is printed of the count alone.
    - `hidden`: The counts that the table does not print, such as suppressed ones.
    - `dominance`: The least share that a count can have of a total; 0 where there is none.
    - `clashes`: The first of them, in words.
    """

    kinds: NDArray[np.int8]
    values: Ints
    highest: FloatArray
    lowest: FloatArray
    low: Ints
    high: Ints
    narrowed: BoolArray
    hidden: BoolArray
    dominance: FloatArray
    alone: int = 0
    unknown: int = 0
    contradictions: int = 0
    clashes: tuple[str, ...] = ()

    @classmethod
    def nothing(cls, table: ReviewedTable) -> Exposure:
        """Return one in which nothing is claimed, to be filled in."""
        shape = table.counts.shape
        low, high = np.zeros(shape, dtype=np.int32), np.full(shape, NO_UPPER_BOUND, dtype=np.int32)
        kinds, narrowed = np.zeros(shape, dtype=np.int8), np.zeros(shape, dtype=np.bool_)
        chances = np.zeros(shape), np.zeros(shape)
        return cls(kinds, table.printed.copy(), *chances, low, high, narrowed, table.hidden, np.zeros(shape))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The class of every value, as a position in `SIZES`."""
        return np.searchsorted([start for start, _ in SIZES], self.values, side="right") - 1


def exposure_of(
    table: ReviewedTable,
    probability: float,
    prior: Prior | None = None,
    keys: Keys | None = None,
    *,
    lowest: bool = False,
) -> Exposure:
    """Work out what readers of a table can learn."""
    if not table.equations:
        return _without_sums(table)
    together = table.rounded_together
    if not together.any():
        return _weighed(table, probability, prior, keys, lowest=lowest)
    # Sums that add up because counts were rounded together tell nothing; a proof would stand all the same.
    rest = exposure_of(table.changed(table.counts, drop=together), probability, lowest=lowest)
    proofs = _weighed(table, probability, prior, keys, lowest=lowest)
    certain = np.isin(proofs.kinds, [KINDS.index(PROVED), KINDS.index(CONDITIONAL)])
    return replace(
        rest,
        **{name: np.where(certain, getattr(proofs, name), getattr(rest, name)) for name in ARRAYS},
        contradictions=proofs.contradictions,
        clashes=proofs.clashes,
    )


def _weighed(table: ReviewedTable, probability: float, prior: Prior | None, keys: Keys | None, *, lowest: bool) -> Exposure:
    """Work out what readers can learn from the sums of a table."""
    model, prior = table.model, prior or fitted_prior(table)
    # What the audit's own self-check withholds is counted here: see above. Where areas are not linked, all priors are asked
    # here as well, so that the audit need not ask them about anything but what is certain.
    joint = bool(model.figures) or (table.nested is not None and bool(table.nested.linked))
    options = AuditOptions(threshold=probability if joint else 1.0)
    auditor = Auditor(model, replace(prior, withheld=()), options, keys)
    flags, names = table.adjustable, table.area_codes
    exposure, alone, unknown, clashes = Exposure.nothing(table), 0, 0, list[str]()
    for rows, nested in table.blocks():
        counts, figures = table.counts[rows], None if table.figure_values is None else table.figure_values[rows]
        called = [names[row] for row in rows] if nested is not None else ()
        inferred = auditor.audit(counts, flags[rows], nested, called, figures=figures)
        arrays, more_alone, more_unknown = _block(auditor, inferred, probability, joint=joint, lowest=lowest)
        for name, array in zip(ARRAYS, arrays, strict=True):
            getattr(exposure, name)[rows] = array
        alone, unknown = alone + more_alone, unknown + more_unknown
        clashes += [
            f"{names[rows[contradiction.area]]}: {contradiction.text}"
            for contradiction in inferred.contradictions
            if contradiction.kind != ASSUMPTION
        ]
    exposure = replace(
        exposure, alone=alone, unknown=unknown, contradictions=len(clashes), clashes=tuple(clashes[:FEW_CLASHES])
    )
    return _completed(table, exposure)


def fitted_prior(table: ReviewedTable) -> Prior:
    """Return what true counts are like, as the table itself tells."""
    fit = PriorFit(len(table.columns))
    fit.add(table.counts)
    return fit.finish(table.model.compiled, table.mechanisms)


def _completed(table: ReviewedTable, exposure: Exposure) -> Exposure:
    """Add what follows from what was found: single counts that are printed as they are, and which dominate a total."""
    for total, parts in table.equations:
        most = exposure.high[:, total].astype(np.float64)
        bounded = (most > 0) & (most < NO_UPPER_BOUND)
        for part in parts if len(parts) > 1 else ():
            least = np.where(bounded, exposure.low[:, part] / np.maximum(most, 1.0), 0.0)
            exposure.dominance[:, part] = np.maximum(exposure.dominance[:, part], np.minimum(least, 1.0))
    printed = table.unrounded  # whatever is said of their column
    exposure.kinds[printed], exposure.highest[printed], exposure.lowest[printed] = KINDS.index(UNROUNDED), 1.0, 1.0
    for array in (exposure.values, exposure.low, exposure.high):
        array[printed] = table.printed[printed]
    return exposure


def _without_sums(table: ReviewedTable) -> Exposure:
    """Return what a table without any sum shows: what is printed unrounded."""
    exposure = Exposure.nothing(table)
    for cell in (at for at, how in enumerate(table.mechanisms) if isinstance(how, Exact)):
        shown = table.counts[:, cell] > ABSENT
        exposure.kinds[shown, cell] = KINDS.index(UNROUNDED)
        exposure.highest[shown, cell] = exposure.lowest[shown, cell] = 1.0
        exposure.low[shown, cell] = exposure.high[shown, cell] = table.counts[shown, cell]
    return _completed(table, exposure)


def _block(
    auditor: Auditor, inferred: InferredBlock, probability: float, *, joint: bool, lowest: bool
) -> tuple[tuple[NDArray[Any], ...], int, int]:
    """Take together what is claimed of some areas: what is certain, and what some prior makes likely.

    Returns the arrays of these areas, how many counts are likely alone, and of how many it is not known how likely they are.
    """
    model, claims, weighed, counts = auditor.model, inferred.claims, inferred.probabilities, inferred.counts
    given = inferred.assumed.given
    nothing = inferred.clashing | without_news(model, counts, inferred.active, inferred.documented)
    nothing |= np.array([isinstance(how, Weighted) for how in model.mechanisms])  # these are not whole numbers
    values, highest, least = weighed.posterior.mode.copy(), weighed.posterior.probability.copy(), weighed.lowest.copy()
    if joint:
        # Families, and rates, are worked out under one prior; others are asked about counts near the probability.
        highest = np.fmax(highest, weighed.highest)
    else:
        values, highest, least = _under_every_prior(auditor, inferred, lowest=lowest)
    kinds = np.zeros(counts.shape, dtype=np.int8)
    open_ = ~given & ~nothing & ~claims.certain
    judged = open_ & ~weighed.cut_off
    likely = np.asarray(judged & reaches(highest, probability))
    alone = likely & known_alone(highest, _alone(auditor, inferred, values, likely), probability)
    kinds[likely & ~alone] = KINDS.index(LIKELY)
    for claim, kind in _OF_CLAIM.items():
        kinds[claims.of_kind(claim)] = kind
    kinds[given] = KINDS.index(UNROUNDED)
    certain = claims.certain | given
    values = np.where(given, counts, np.where(claims.certain, claims.values, values))
    tight = inferred.assumed.tight
    low, high = np.maximum(tight.low, weighed.within.low), np.minimum(tight.high, weighed.within.high)
    if inferred.figured is not None:
        more = inferred.figured.bounds.tight
        low, high = np.maximum(low, more.low), np.minimum(high, more.high)
    low, high = np.where(certain, values, low), np.where(certain, values, high)
    by_itself = tighten(model.no_sums, inferred.assumed.windows)
    narrowed = ~nothing & ~given & ((low > by_itself.low) | (high < by_itself.high))
    highest, least = np.where(certain, 1.0, highest), np.where(certain, 1.0, least)
    unknown = int((open_ & weighed.cut_off & (counts > ABSENT)).sum())
    return (kinds, values, highest, least, low, high, np.asarray(narrowed)), int(alone.sum()), unknown


def _under_every_prior(auditor: Auditor, inferred: InferredBlock, *, lowest: bool) -> tuple[Ints, FloatArray, FloatArray]:
    """Return for every count the likeliest value under the prior that is surest of one; how sure, and how sure the least.

    The last is worked out only if it is wanted: NaN otherwise.
    """
    here = weighing(auditor, inferred)
    variants = auditor.prior.variants
    each = [here.posterior(variant) for variant in variants]
    surest = np.argmax(np.stack([weighed.probability for weighed in each]), axis=0)
    values: Ints = np.take_along_axis(np.stack([weighed.mode for weighed in each]), surest[None], axis=0)[0]
    highest = np.max(np.stack([weighed.probability for weighed in each]), axis=0)
    if len(variants) == 1:
        return values, highest, highest.copy()
    if not lowest:
        return values, highest, np.full(highest.shape, np.nan)
    asked = [here.posterior(variant, np.maximum(values, 0)).asked for variant in variants]
    return values, highest, np.min(np.stack([weighed for weighed in asked if weighed is not None]), axis=0)


def weighing(auditor: Auditor, inferred: InferredBlock) -> Weighing:
    """Return what probabilities of some areas are worked out from."""
    reach = inferred.probabilities.within
    given = auditor.model, auditor.prior, inferred.counts, inferred.assumed, reach, inferred.active
    return Weighing(*given, auditor.keyed_evidence(inferred.assumed.windows, inferred.counts, inferred.active), {})


def _alone(auditor: Auditor, inferred: InferredBlock, values: Ints, wanted: BoolArray) -> FloatArray:
    """Return how likely some counts are by what was published of each alone."""
    model: Model = auditor.model
    windows = inferred.assumed.windows
    tight = tighten(model.no_sums, windows)
    weights = auditor.prior.weights_alone(tight.low, tight.high, wanted)
    asked = posteriors(EvidenceBlock(model.no_sums, windows, tight, weights), np.maximum(values, 0), wanted).asked
    assert asked is not None  # they were asked for
    return np.where(wanted, asked, 0.0)


def with_findings(exposure: Exposure, table: ReviewedTable, folder: AuditFolder) -> Exposure:
    """Add what the audit is certain of, by whatever way, where it is not known already: a decision uses everything found.

    The audit knows what a proof rests on: what it calls conditional is not proved here.
    """
    import polars as pl

    axes = tuple(folder.axes)
    sure = folder.findings.filter(pl.col("kind").is_in([PROVED, CONDITIONAL])).select(*table.axes, *axes, "kind", "value")
    rows = {code: at for at, code in enumerate(table.area_codes)}
    places = {column.codes: at for at, column in enumerate(table.columns)}
    certain = np.isin(exposure.kinds, [KINDS.index(name) for name in (UNROUNDED, PROVED, CONDITIONAL)])
    for *names, kind, value in sure.iter_rows():
        row = rows.get("/".join(map(str, names[: len(table.axes)])))
        at = places.get(tuple(map(str, names[len(table.axes) :])))
        if row is None or at is None:
            continue
        if certain[row, at]:
            if kind == CONDITIONAL and exposure.kinds[row, at] == KINDS.index(PROVED):
                exposure.kinds[row, at] = KINDS.index(CONDITIONAL)
            continue
        exposure.kinds[row, at], exposure.values[row, at] = KINDS.index(kind), value
        exposure.low[row, at] = exposure.high[row, at] = value
        exposure.highest[row, at] = exposure.lowest[row, at] = 1.0
        exposure.narrowed[row, at] = True
    return exposure
