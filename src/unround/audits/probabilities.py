"""What is likely in a block of areas: from their own sums, from linked areas, and for cells cut off from their sums."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unround.audits.bounds import BlockBounds
from unround.audits.contradictions import Active, rows_of, tight_of
from unround.audits.model import Model
from unround.audits.nested import NestedAreas
from unround.batch.evidence import Drawn
from unround.batch.posterior import marginals, posteriors
from unround.batch.types import Distributions, Posterior, Tight
from unround.linked.engine import Linked, link
from unround.mechanisms.base import BoolArray, FloatArray
from unround.prior import Prior

WIDE = 45
"""Cells with more possible counts may be too wide for their sums, in areas where some sum is: pairs are from 50 on."""

Distribution = tuple[int, FloatArray]
"""The least count of a cell, and how likely it and those above it are."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockProbabilities:
    """What is likely in a block; the posterior cannot be written to.

    Parameters
    ----------
    reach : Tight
        The bounds that probabilities keep to: those of the assumed reading, without tails where there is noise.
    posterior : Posterior
        What is likely.
    own_area : Posterior
        The same if nothing were known of the other areas of a family.
    cut_off : array
        The cells that are cut off from a sum they belong to, and were judged without sums: none is claimed to be likely.
    too_noisy : array
        The areas in which sums contribute nothing to probabilities, because noise leaves too much possible.
    linked : Linked or None
        How nested areas were linked.
    kept : dict
        The distributions behind the posterior, by cell, of the one area for which they were wanted.
    """

    reach: Tight
    posterior: Posterior
    own_area: Posterior
    cut_off: BoolArray
    too_noisy: BoolArray
    linked: Linked | None
    kept: dict[int, Distribution]

    def __post_init__(self) -> None:
        for name in ("mode", "probability", "mean", "deviation", "possible"):
            getattr(self.posterior, name).setflags(write=False)

    @property
    def methods(self) -> NDArray[np.int8]:
        """By which method the probabilities of every area were obtained: places in `linked.methods.METHODS`."""
        return np.zeros(len(self.posterior.cut), dtype=np.int8) if self.linked is None else self.linked.method

    def need_family(self, threshold: float) -> BoolArray:
        """Return which counts are likely only because of other areas."""
        joint, own = self.posterior, self.own_area
        if self.linked is None:
            return np.zeros(joint.mode.shape, dtype=np.bool_)
        own_is_enough = (own.mode == joint.mode) & (own.probability >= threshold)
        return np.asarray((joint.probability >= threshold) & ~own_is_enough)


def weigh(
    model: Model,
    prior: Prior,
    bounds: BlockBounds,
    reach: Tight,
    active: Active,
    drawn: Drawn | None = None,
    nested: NestedAreas | None = None,
    *,
    inexact: BoolArray | None = None,
    keep: int | None = None,
) -> BlockProbabilities:
    """Work out how likely each count is.

    Parameters
    ----------
    model : Model
        What all areas share.
    prior : Prior
        What true counts are like.
    bounds : BlockBounds
        What is possible; of `bounds.linked`, the links are used.
    reach : Tight
        The bounds to keep to, of every area on its own.
    active : array
        Which sums hold in which area.
    drawn : Drawn, optional
        How random numbers are shared.
    nested : NestedAreas, optional
        The areas to be linked.
    inexact : array, optional
        Areas in which counts that are taken as exact elsewhere were adjusted: their cells are judged without sums.
    keep : int, optional
        The area whose whole distributions are wanted.
    """
    own = posterior = posteriors(model.compiled, bounds.windows, reach, prior.table, active, drawn=drawn)
    linked, kept = None, dict[int, Distribution]()
    if nested is not None and bounds.linked is not None:
        linked = link(
            model.compiled,
            bounds.windows,
            reach,
            bounds.linked.parent,
            nested.cells,
            prior.table,
            active,
            alike=nested.alike,
            keep=keep,
        )
        posterior, kept = linked.posterior, linked.kept
    elif keep is not None:
        row = np.array([keep])
        one_area = rows_of(bounds.windows, row), tight_of(reach, row)
        here = None if drawn is None else drawn._replace(published=drawn.published[row])
        kept = _kept(marginals(model.compiled, *one_area, prior.table, active[row], here)[1])
    cut_off, too_noisy = np.zeros(posterior.mode.shape, dtype=np.bool_), np.zeros(len(posterior.cut), dtype=np.bool_)
    if prior.own is not None:  # under a flat prior, fewer sums are right too
        too_noisy = np.asarray(posterior.cut > 0) & (not bounds.windows.certain.all())
        cut_off = _cut_off(model, reach, posterior, active) | too_noisy[:, None]
        if inexact is not None:
            cut_off[inexact] = True
        posterior = _without_sums(model, prior, bounds, reach, cut_off, posterior)
        if keep is not None and cut_off[keep].any():
            row = np.array([keep])
            alone = marginals(model.no_sums, rows_of(bounds.windows, row), tight_of(reach, row), prior.own)[1]
            kept = {cell: found for cell, found in kept.items() if not cut_off[keep, cell]}
            kept |= {cell: found for cell, found in _kept(alone).items() if cut_off[keep, cell]}
    bounds_used = reach if linked is None else linked.tight
    return BlockProbabilities(bounds_used, posterior, own, cut_off, too_noisy, linked, kept)


def _kept(found: Distributions) -> dict[int, Distribution]:
    """Return the distributions of the first area, of cells that have one."""
    lows, highs, starts = found.low[0].tolist(), found.high[0].tolist(), found.start[0].tolist()
    return {
        cell: (low, found.chances[start : start + high - low + 1])
        for cell, (low, high, start) in enumerate(zip(lows, highs, starts, strict=True))
        if start >= 0
    }


def _cut_off(model: Model, reach: Tight, posterior: Posterior, active: Active) -> BoolArray:
    """Find the cells that are cut off from a sum they belong to, while others of their area are not.

    The fitted prior describes how totals split into parts: what it says of a cell that is cut off from its total, or from
    its parts, is not true. A sum is cut off where it does not apply or contradicts, or where too much is possible.
    """
    found = np.zeros(posterior.mode.shape, dtype=bool)
    rows = np.flatnonzero((posterior.cut > 0) | ~np.asarray(active.all(axis=1)))
    if not rows.size:
        return found
    unused = frozenset(model.compiled.unused)
    wide = reach.high.astype(np.int64) - reach.low > WIDE
    for e in range(len(model.equations)):
        if e not in unused:
            members = np.array(model.members(e))
            off = ~active[rows, e] | ((posterior.cut[rows] > 0) & wide[np.ix_(rows, members)].any(axis=1))
            found[np.ix_(rows[off], members)] = True
    return found


def _without_sums(
    model: Model, prior: Prior, bounds: BlockBounds, reach: Tight, cut_off: BoolArray, posterior: Posterior
) -> Posterior:
    """Return the posterior in which cells that are cut off have their column's own distribution, within their bounds."""
    rows = np.flatnonzero(cut_off.any(axis=1))
    if not rows.size:
        return posterior
    alone = posteriors(model.no_sums, rows_of(bounds.windows, rows), tight_of(reach, rows), prior.own)
    here = cut_off[rows]
    changed = {}
    for name in ("mode", "probability", "mean", "deviation"):
        changed[name] = getattr(posterior, name).copy()
        changed[name][rows] = np.where(here, getattr(alone, name), changed[name][rows])
    possible = posterior.possible.copy()
    possible[rows[here.all(axis=1)]] = True
    return replace(posterior, possible=possible, **changed)
