"""Bound propagation across areas: the sums of each area, and those of families, applied to a fixpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from unround.batch.tighten import tighten
from unround.batch.types import NO_UPPER_BOUND, CompiledSums, Ints, Tight, Windows
from unround.linked.hidden import Place, SumsOfBlock, hidden_bounds
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

    - `tight`: The bounds. `by_low` and the like explain a bound only where `moved` is False.
    - `moved`: Where other areas tighten the bounds of a cell beyond its own area's.
    - `parent`: The links that were used: as given, -1 where dropped.
    - `clashes`: The links that were dropped, by parent.
    - `limited`: Hidden counts whose bounds might be narrower if more effort were made; None where that was not looked at.
    - `loops`: Where bounds come from several sums together: these sums, numbered as in `hidden.SumsOfBlock`.
    """

    tight: Tight
    moved: BoolArray
    parent: Rows
    clashes: tuple[FamilyClash, ...]
    limited: BoolArray | None = None
    loops: Mapping[Place, tuple[int, ...]] = field(default_factory=dict)


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


def with_hidden(
    compiled: CompiledSums,
    windows: Windows,
    bounds: LinkedBounds,
    linked: BoolArray,
    active: BoolArray,
    hidden: BoolArray,
) -> tuple[LinkedBounds, tuple[Place, ...]]:
    """Narrow the bounds of hidden counts to what all sums together leave of them; return also where nothing is left."""
    sums = SumsOfBlock(compiled, active, bounds.parent, linked)
    certain = hidden & windows.certain & bounds.tight.feasible[:, None]
    found = hidden_bounds(sums, windows, bounds.tight.low, bounds.tight.high, certain)
    narrowed = replace(
        bounds,
        tight=replace(bounds.tight, low=found.low, high=found.high),
        moved=bounds.moved | found.moved,
        limited=found.limited,
        loops=found.loops,
    )
    return narrowed, found.clashing


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


MOST_LINKED = 10
"""Children above which a parent's rounded counts say too little about any of them to be worth the time."""


@dataclass(frozen=True, slots=True, eq=False)
class FamilyGroups:
    """Units of areas that are the same people, and families of units.

    - `unit`: For every area the row of its representative: the last of a chain of only children, or the area itself.
    - `above`: For every representative the representative of its parent; -1 where it is not linked to one, and for all
      other rows.
    - `height`: For every area, how many steps it is above its representative.
    - `families`: The rows of the children of each unit that has at least two, by the row of the parent.
    - `large`: The parents that have more than `MOST_LINKED` children.
    """

    unit: Rows
    above: Rows
    height: Rows
    families: dict[int, Rows]
    large: tuple[int, ...]


def find_families(parent: Rows, most: int = MOST_LINKED) -> FamilyGroups:
    """Find units and families.

    Examples
    --------
    >>> found = find_families(np.array([-1, 0, 1, 2, 2]))
    >>> found.unit, found.families
    (array([2, 2, 2, 3, 4]), {2: array([3, 4])})
    """
    areas = len(parent)
    children = np.bincount(parent[parent >= 0], minlength=areas)
    single = (parent >= 0) & (children[parent] == 1)
    unit = np.arange(areas, dtype=np.int64)
    below = np.arange(areas, dtype=np.int64)
    below[parent[single]] = np.flatnonzero(single)
    height = np.zeros(areas, dtype=np.int64)
    while True:
        further = below[unit]
        if (further == unit).all():
            break
        height += further != unit
        unit = further
    above = np.full(areas, -1, dtype=np.int64)
    linked = np.flatnonzero((parent >= 0) & ~single)
    # The top of a chain has the parent; its bottom is the representative.
    above[unit[linked]] = unit[parent[linked]]
    order = linked[np.argsort(above[unit[linked]], kind="stable")]
    rows = unit[order]
    heads, starts = np.unique(above[rows], return_index=True)
    families, large = {}, []
    for head, members in zip(heads.tolist(), np.split(rows, starts[1:]) if rows.size else (), strict=True):
        if len(members) > most:
            large.append(head)
            above[members] = -1
        else:
            families[head] = np.sort(members)
    return FamilyGroups(unit, above, height, families, tuple(large))


def components(groups: FamilyGroups, most: int) -> list[Rows]:
    """Return connected areas in batches of about `most`, without areas that are linked to no other."""
    top = np.where(groups.above >= 0, groups.above, np.arange(len(groups.above)))
    while True:
        higher = top[top]
        if (higher == top).all():
            break
        top = higher
    piece = top[groups.unit]
    size = np.bincount(piece, minlength=len(piece))
    rows = np.flatnonzero(size[piece] > 1)
    rows = rows[np.argsort(piece[rows], kind="stable")]
    if not rows.size:
        return []
    number = np.cumsum(np.r_[True, piece[rows][1:] != piece[rows][:-1]]) - 1
    ends = np.flatnonzero(np.r_[number[1:] != number[:-1], True]) + 1
    batches, start = [], 0
    for before, end in zip(np.r_[0, ends[:-1]].tolist(), ends.tolist(), strict=True):
        if end - start > most and before > start:
            batches.append(rows[start:before])
            start = before
    batches.append(rows[start:])
    return batches


def pieces_of(families: dict[int, Rows], areas: int) -> Rows:
    """Return for every area the number of its piece: families with a common area form one piece."""
    above = np.arange(areas, dtype=np.int64)
    for parent, children in families.items():
        above[children] = parent
    while (above != above[above]).any():
        above = above[above]
    return np.unique(above, return_inverse=True)[1].astype(np.int64)


def seeds(families: list[NDArray[np.int32]]) -> NDArray[np.uint64]:
    """Return a random seed for every family, a hash of its bounds: independent of its position in a release."""
    from hashlib import blake2b

    digests = [blake2b(np.ascontiguousarray(one).astype("<i4").tobytes(), digest_size=8).digest() for one in families]
    return np.array([int.from_bytes(one, "little") for one in digests], dtype=np.uint64)
