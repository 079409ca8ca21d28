"""Posterior means of a block of areas under one joint model: additive by linearity, as long as one prior is used for all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from unround.additive.costs import Estimates
from unround.audits.bounds import (
    AREAS,
    ASSUMPTION,
    Contradiction,
    NestedAreas,
    assumed_bounds,
    documented_bounds,
)
from unround.audits.model import Model
from unround.audits.weigh import Weighing
from unround.bounds.linked import linked_bounds
from unround.bounds.tighten import tighten
from unround.engines.linked import link
from unround.evidence.block import NO_UPPER_BOUND, WindowTable
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms.base import BoolArray
from unround.prior import Prior
from unround.release import ABSENT, Counts
from unround.sums.forest import Equations


@dataclass(eq=False)
class Estimator:
    """Works out posterior means, block after block, under the best of the fitted priors."""

    model: Model
    prior: Prior

    def __post_init__(self) -> None:
        self._windows = WindowTable(self.model.mechanisms)

    def estimate(
        self, counts: Counts, adjustable: BoolArray, nested: NestedAreas | None
    ) -> tuple[Estimates, list[Contradiction]]:
        """Return what is known of some areas, and what contradicts itself there."""
        model = self.model
        stated = documented_bounds(model, self._windows, counts, adjustable)
        active, clashes = stated.active, list(stated.contradictions)
        assumed, _ = assumed_bounds(model, self._windows, counts, stated)
        certain = bool(assumed.windows.certain.all())
        reach = assumed.tight if certain else tighten(model.compiled, assumed.windows, active)
        if nested is not None:
            clashes += nested.contradictions()
        if nested is not None and nested.linked:
            bounds = linked_bounds(
                EvidenceBlock(model.compiled, assumed.windows, reach, active=active), nested.parent, nested.cells
            )
            clashes += [
                Contradiction(area_clash.parent, AREAS, (), (area_clash.column,) if area_clash.column >= 0 else (), "")
                for area_clash in bounds.clashes
            ]
            assumed = replace(assumed, linked=bounds)
        given = Weighing(model, self.prior, counts, assumed, reach, active, None, {})
        best, tight = self.prior.variants[0], reach
        if assumed.linked is not None and nested is not None:
            linked = link(given.block(best), assumed.linked.parent, nested.cells, alike=nested.alike)
            posterior, tight = linked.posterior, linked.tight
        else:
            posterior = given.posterior(best)
        known = np.asarray((posterior.probability > 0) & np.isfinite(posterior.mean) & (tight.high < NO_UPPER_BOUND))
        known &= posterior.possible[:, None]
        clash = clashing(counts, clashes)
        mean = np.where(known, np.nan_to_num(posterior.mean), 0.0)
        low, high = np.where(known, tight.low, 0), np.where(known, tight.high, 0)
        spread = np.where(known, np.nan_to_num(posterior.deviation), 0.0)
        least = np.where(known & (posterior.mode == tight.low), posterior.probability, 0.0)
        # What contradicts is not bent: it stays as it was published.
        for array in (mean, low, high):
            array[clash] = np.maximum(counts[clash], 0)
        spread[clash] = 0.0
        known |= clash
        usable = active & _all_known(model, known)
        low, high = low.astype(np.int32), high.astype(np.int32)
        return Estimates(mean, spread, least, low, high, usable, posterior.cut[:, None] > 0, clash, known), clashes


def without_overlap(equations: Equations) -> Equations:
    """Return sums that say the same with fewer loops: some parts of a sum that have a total of their own give way to it.

    Examples
    --------
    >>> without_overlap(((0, (1, 2, 3, 4)), (5, (2, 3, 4))))
    ((0, (1, 5)), (5, (2, 3, 4)))
    """
    sums = list(equations)
    by_size = sorted(range(len(sums)), key=lambda e: -len(sums[e][1]))
    for e, (total, parts) in enumerate(equations):
        left, instead = set(parts), list[int]()
        for other in by_size:
            head, those = equations[other]
            if other != e and 1 < len(those) < len(parts) and head not in (total, *left) and left.issuperset(those):
                left -= set(those)
                instead.append(head)
        sums[e] = total, (*(part for part in parts if part in left), *instead)
    return tuple(sums)


def _all_known(model: Model, known: BoolArray) -> BoolArray:
    """Return in which areas all counts of a sum have an estimate."""
    complete = np.ones((len(known), len(model.equations)), dtype=np.bool_)
    for e in range(len(model.equations)):
        complete[:, e] = known[:, list(model.members(e))].all(axis=1)
    return complete


def clashing(counts: Counts, contradictions: Iterable[Contradiction]) -> BoolArray:
    """Mark the published cells of contradictions; an exact count that was adjusted spoils no other."""
    marked = np.zeros(counts.shape, dtype=np.bool_)
    for contradiction in contradictions:
        if contradiction.kind != ASSUMPTION:
            marked[contradiction.area, list(contradiction.cells)] = True
    return marked & (counts > ABSENT)
