"""Posterior means of a block of areas under one joint model: additive by linearity, as long as one prior is used for all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from unround.audits.bounds import (
    AREAS,
    ASSUMPTION,
    Active,
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
from unround.evidence.block import NO_UPPER_BOUND, Ints, WindowTable
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms.base import BoolArray, FloatArray
from unround.prior import Prior
from unround.release import ABSENT, Counts
from unround.sums.forest import Equations


class BlockEstimate(NamedTuple):
    """What is known of a block: see `Estimates`; `known` are the cells that have an estimate."""

    mean: FloatArray
    spread: FloatArray
    least: FloatArray
    low: Ints
    high: Ints
    active: Active
    clash: BoolArray
    known: BoolArray
    wide: BoolArray
    contradictions: tuple[Contradiction, ...]


@dataclass(eq=False)
class Estimator:
    """Works out posterior means, block after block, under the best of the fitted priors."""

    model: Model
    prior: Prior

    def __post_init__(self) -> None:
        self._windows = WindowTable(self.model.mechanisms)

    def estimate(self, counts: Counts, adjustable: BoolArray, nested: NestedAreas | None) -> BlockEstimate:
        """Return what is known of some areas."""
        model = self.model
        stated = documented_bounds(model, self._windows, counts, adjustable)
        active, found = stated.active, list(stated.contradictions)
        assumed, _ = assumed_bounds(model, self._windows, counts, stated)
        certain = bool(assumed.windows.certain.all())
        reach = assumed.tight if certain else tighten(model.compiled, assumed.windows, active)
        if nested is not None:
            found += nested.contradictions()
        if nested is not None and nested.linked:
            bounds = linked_bounds(
                EvidenceBlock(model.compiled, assumed.windows, reach, active=active), nested.parent, nested.cells
            )
            found += [
                Contradiction(one.parent, AREAS, (), (one.column,) if one.column >= 0 else (), "") for one in bounds.clashes
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
        clash = clashing(counts, found)
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
        return BlockEstimate(mean, spread, least, low, high, usable, clash, known, posterior.cut[:, None] > 0, tuple(found))


def without_overlap(equations: Equations) -> Equations:
    """Return sums that say the same with fewer loops: some parts of a sum that have a total of their own give way to it.

    Examples
    --------
    >>> without_overlap(((0, (1, 2, 3, 4)), (5, (2, 3, 4))))
    ((0, (1, 5)), (5, (2, 3, 4)))
    """
    found = list(equations)
    by_size = sorted(range(len(found)), key=lambda e: -len(found[e][1]))
    for e, (total, parts) in enumerate(equations):
        left, instead = set(parts), list[int]()
        for other in by_size:
            head, those = equations[other]
            if other != e and 1 < len(those) < len(parts) and head not in (total, *left) and left.issuperset(those):
                left -= set(those)
                instead.append(head)
        found[e] = total, (*(part for part in parts if part in left), *instead)
    return tuple(found)


def _all_known(model: Model, known: BoolArray) -> BoolArray:
    """Return in which areas all counts of a sum have an estimate."""
    found = np.ones((len(known), len(model.equations)), dtype=np.bool_)
    for e in range(len(model.equations)):
        found[:, e] = known[:, list(model.members(e))].all(axis=1)
    return found


def clashing(counts: Counts, contradictions: Iterable[Contradiction]) -> BoolArray:
    """Mark the published cells of contradictions; an exact count that was adjusted spoils no other."""
    marked = np.zeros(counts.shape, dtype=np.bool_)
    for contradiction in contradictions:
        if contradiction.kind != ASSUMPTION:
            marked[contradiction.area, list(contradiction.cells)] = True
    return marked & (counts > ABSENT)
