"""Bound propagation across areas: the sums of each area, and those of parents and children, applied to a fixpoint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.batch.tighten import tighten
from unround.batch.types import NO_UPPER_BOUND, CompiledSums, Ints, Tight, Windows
from unround.mechanisms.base import BoolArray

MOST_ROUNDS = 60
"""Rounds after which propagation between areas stops: the bounds are then valid, if not yet tight."""

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FamilyClash:
    """A parent whose published counts cannot be the sums of its children's: this link is not used.

    `column` is a cell without a possible value, or -1 where only all sums of an area together show the contradiction.
    """

    parent: int
    column: int


@dataclass(frozen=True, slots=True, eq=False)
class LinkedBounds:
    """Bounds by all sums, within areas and between them.

    Parameters
    ----------
    tight : Tight
        The bounds. `by_low` and the like explain a bound only where `moved` is False.
    moved : array of bool
        Where other areas tighten the bounds of a cell beyond its own area's.
    parent : array
        The links that were used: as given, -1 where dropped.
    clashes : tuple of FamilyClash
        The links that were dropped, by parent.
    """

    tight: Tight
    moved: BoolArray
    parent: Rows
    clashes: tuple[FamilyClash, ...]


def linked_bounds(
    compiled: CompiledSums,
    windows: Windows,
    tight: Tight,
    parent: Rows,
    linked: BoolArray,
    active: BoolArray | None = None,
    *,
    proofs_only: bool = False,
) -> LinkedBounds:
    """Tighten bounds by the sums between parents and children, until nothing changes.

    Parameters
    ----------
    compiled, windows, active, proofs_only
        As for `tighten`.
    tight : Tight
        The bounds of each area alone. Links of areas that are not feasible are left out.
    parent : array
        For every area the row of the area that it is part of, or -1. Every cell of a parent, in the linked columns, is the
        sum of the same cells of its children: all of them must be there.
    linked : array of bool
        The columns in question.

    Notes
    -----
    Where parent and children contradict each other, the link is dropped, everything derived from it is undone, and
    propagation starts again: one wrong count cannot spoil other families.
    """
    used = parent.astype(np.int64).copy()
    broken = ~tight.feasible
    for at in np.unique(used[broken & (used >= 0)]):
        used[used == at] = -1  # a child that is not feasible says nothing about the others
    used[(used >= 0) & broken[used]] = -1
    clashes: list[FamilyClash] = []
    while True:
        low, high = tight.low.copy(), tight.high.copy()
        clash = _propagate(compiled, windows, low, high, used, linked, active, proofs_only)
        if not clash:
            break
        for at, column in clash.items():
            used[used == at] = -1
            clashes.append(FamilyClash(at, column))
    moved = (low != tight.low) | (high != tight.high)
    tightened = Tight(low, high, tight.by_low, tight.by_high, tight.depth_low, tight.depth_high, tight.feasible)
    return LinkedBounds(tightened, moved, used, tuple(sorted(clashes, key=lambda clash: clash.parent)))


def _propagate(
    compiled: CompiledSums,
    windows: Windows,
    low: Ints,
    high: Ints,
    parent: Rows,
    linked: BoolArray,
    active: BoolArray | None,
    proofs_only: bool,
) -> dict[int, int]:
    """Tighten bounds in place; return the parents with a contradiction, each with a column (or -1)."""
    columns = np.flatnonzero(linked)
    children = np.flatnonzero(parent >= 0)
    for _ in range(MOST_ROUNDS if children.size else 0):
        moved, empty = _between(low, high, parent, children, columns)
        if empty:
            return empty
        rows = np.flatnonzero(moved)
        if not rows.size:
            break
        cut = narrowed(windows, low, high, rows, proofs_only=proofs_only)
        within = tighten(compiled, cut, None if active is None else active[rows])
        impossible = rows[~within.feasible]
        if impossible.size:
            # Some family of the area is wrong; the one in which it is a child is larger, and is dropped first.
            return {int(parent[a] if parent[a] >= 0 else a): -1 for a in impossible}
        low[rows], high[rows] = within.low, within.high
    return {}


def _between(low: Ints, high: Ints, parent: Rows, children: Rows, columns: Rows) -> tuple[BoolArray, dict[int, int]]:
    """Apply all sums between areas once; return which areas moved, or the parents with a contradiction."""
    above = parent[children]
    parents, place = np.unique(above, return_inverse=True)
    own_low, own_high = low[np.ix_(children, columns)].astype(np.int64), high[np.ix_(children, columns)].astype(np.int64)
    own_high[own_high >= NO_UPPER_BOUND] = NO_UPPER_BOUND
    least, most = (np.zeros((parents.size, columns.size), dtype=np.int64) for _ in range(2))
    open_parts = np.zeros(least.shape, dtype=np.int64)
    np.add.at(least, place, own_low)
    np.add.at(most, place, own_high)
    np.add.at(open_parts, place, own_high >= NO_UPPER_BOUND)
    there = np.ix_(parents, columns)
    top_low, top_high = np.maximum(low[there], least), np.minimum(high[there], most)
    empty = top_low > top_high
    if empty.any():
        return np.zeros(len(low), dtype=np.bool_), {
            int(parents[i]): int(columns[np.argmax(empty[i])]) for i in np.flatnonzero(empty.any(axis=1))
        }
    moved = np.zeros(len(low), dtype=np.bool_)
    moved[parents] |= ((top_low > low[there]) | (top_high < high[there])).any(axis=1)
    # A child's bounds are what the parent leaves when all the others are at their opposite ends.
    spare = np.where(top_high >= NO_UPPER_BOUND, NO_UPPER_BOUND, top_high - least)[place]
    new_high = np.minimum(own_high, own_low + spare)
    others_open = open_parts[place] - (own_high >= NO_UPPER_BOUND)
    need = top_low[place] - (most[place] - own_high)
    new_low = np.where(others_open > 0, own_low, np.maximum(own_low, need))
    low[there], high[there] = top_low, np.minimum(top_high, NO_UPPER_BOUND)
    empty = new_low > new_high
    if empty.any():
        bad = np.flatnonzero(empty.any(axis=1))
        return moved, {int(above[i]): int(columns[np.argmax(empty[i])]) for i in bad}
    moved[children] |= ((new_low > own_low) | (new_high < own_high)).any(axis=1)
    here = np.ix_(children, columns)
    # An area that is a parent too may have moved already, above.
    low[here], high[here] = np.maximum(low[here], new_low), np.minimum(high[here], new_high)
    empty = low[here] > high[here]
    return moved, {int(above[i]): int(columns[np.argmax(empty[i])]) for i in np.flatnonzero(empty.any(axis=1))}


def narrowed(windows: Windows, low: Ints, high: Ints, rows: Rows, *, proofs_only: bool = False) -> Windows:
    """Return the windows of some areas, cut to bounds; with `proofs_only`, uncertain columns keep their bounds only."""
    old_low, start = windows.low[rows], windows.start[rows]
    new_low, new_high = low[rows], high[rows]
    inside = (start >= 0) & (new_low >= old_low) & (new_high <= windows.high[rows])
    if proofs_only:
        inside &= windows.certain
    moved = np.where(inside, start + (new_low.astype(np.int64) - old_low), -1)
    return Windows(new_low, new_high, moved, windows.weights, np.ones_like(windows.certain))
