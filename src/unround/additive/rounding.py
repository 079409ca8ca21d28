"""Means become whole numbers that add up: area by area, and from the outermost areas inwards where areas lie in areas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from unround.additive.costs import Costs, Estimates, Rows
from unround.additive.systems import (
    CLOSE,
    additive_means,
    narrowed,
    nearest_tables,
    whole_numbers,
    windows_around,
)
from unround.evidence.block import Ints
from unround.mechanisms.base import BoolArray, FloatArray
from unround.sums.compiled import CompiledSums
from unround.sums.families import AreaFamily, sums_matrix
from unround.sums.forest import Equations
from unround.system import connected

AT_ONCE = 2048
"""Areas that are rounded together."""

FEW_CELLS = 200_000
"""Up to so many cells, counts may go beyond the neighbours of their means at once: that takes longer, and gains little."""

TOGETHER = 600
"""Cells of areas within areas that one integer program takes together, before anything else is tried."""

MOST_JOINT = 1_500_000
"""Cells of areas within areas whose means are made to add up together; beyond, every area by itself, and then inwards."""

NOTHING = np.iinfo(np.int32).min
"""Stands where no number was found yet."""

NOTICED = 1e-3
"""A mean that moved by less than this is what it was."""

MARGINS = (0, 1, 3, 8)
"""How far beyond the neighbours of its mean a count may go, tried one after the other."""


@dataclass(eq=False)
class Rounder:
    """Rounds the counts of a release.

    - `compiled`: The first of the sums within areas: those along which whole numbers are looked for.
    - `equations`: All sums within areas.
    - `estimates`: What is known; means are made to add up in place.
    - `families`: Areas that are sums of others, outermost parents first.
    - `absolute`: Cells in which expected errors are minimised, not squares.
    - `shared`: Areas whose counts are shares of those of the area around them.
    - `left`: Areas, with those of their cells for which no whole numbers were found: they are left as they are, and named.
    - `apart`: Families whose children were rounded each by itself.
    """

    compiled: CompiledSums
    equations: Equations
    estimates: Estimates
    families: Sequence[AreaFamily]
    progress: Callable[[int, int], None] = lambda *_: None
    left: list[tuple[int, Rows]] = field(default_factory=list)
    apart: list[AreaFamily] = field(default_factory=list)
    by_program: int = 0

    def __post_init__(self) -> None:
        self.result = np.full(self.estimates.mean.shape, NOTHING, dtype=np.int32)
        self.areas, self.columns = self.estimates.mean.shape
        self.absolute, self.shared = np.zeros(self.columns, dtype=np.bool_), np.zeros(self.areas, dtype=np.bool_)
        piece = connected(self.columns, ((total, *parts) for total, parts in self.equations))
        self.piece = np.array(piece, dtype=np.int64)
        self._of_piece = np.array([piece[total] for total, _ in self.equations], dtype=np.int64)
        self._done = 0

    # Means that add up

    def settle_means(self) -> BoolArray:
        """Make means add up in all sums, where they do not yet; return the areas in which that changed any."""
        e, changed = self.estimates, np.zeros(self.areas, dtype=np.bool_)
        for rows in _batches(np.arange(self.areas)):
            matrix = sums_matrix(self.columns, self.equations, e.active[rows])
            off = np.abs(matrix @ e.mean[rows].ravel()) > CLOSE * np.maximum(1.0, abs(matrix) @ e.mean[rows].ravel() * 1e-3)
            where = np.unique(matrix[np.flatnonzero(off)].indices // self.columns)
            if where.size:
                changed[rows[where]] = self._add_up(rows[where], ())
        wide = np.flatnonzero(e.wide[:, 0])
        if wide.size:
            e.spread = np.array(e.spread)  # what is kept for another run stays as it is
            e.spread[wide] = narrowed(self.equations, e.spread[wide], e.active[wide])
        inside = np.unique(
            np.concatenate([np.r_[family.parent, family.children] for family in self.families] or [np.zeros(0, int)])
        )
        if inside.size and inside.size * self.columns <= MOST_JOINT:
            at = np.full(self.areas, -1, dtype=np.int64)
            at[inside] = np.arange(inside.size)
            families = [AreaFamily(int(at[f.parent]), at[f.children], f.columns) for f in self.families]
            changed[inside] |= self._add_up(inside, families)
        return changed

    def _add_up(self, rows: Rows, families: Sequence[AreaFamily]) -> BoolArray:
        e, before = self.estimates, self.estimates.mean[rows]
        matrix = sums_matrix(self.columns, self.equations, e.active[rows], families)
        e.mean[rows] = additive_means(matrix, before, e.spread[rows], e.low[rows], e.high[rows])
        return np.asarray((np.abs(e.mean[rows] - before) > NOTICED).any(axis=1))

    # Whole numbers

    def round(self) -> Ints:
        """Return whole numbers that add up."""
        e, inside = self.estimates, np.zeros(self.areas, dtype=np.bool_)
        waiting = self._small_groups()
        for family in waiting:
            inside[family.children] = True
        tops = np.flatnonzero(~inside & (self.result == NOTHING).any(axis=1))
        for rows in _batches(tops):
            self.result[rows] = self._areas(self._costs(rows, e.mean[rows]), e.low[rows], e.high[rows])
            self._tell(rows.size)
        while waiting:
            children = {int(child) for family in waiting for child in family.children}
            ready = [family for family in waiting if family.parent not in children]
            self._inwards(ready or waiting[:1])
            waiting = [family for family in waiting if all(family is not done for done in ready or waiting[:1])]
        return self.result

    def _tell(self, areas: int) -> None:
        self._done += areas
        self.progress(min(self._done, self.areas), self.areas)

    def _small_groups(self) -> list[AreaFamily]:
        """Round areas that lie in each other together where they are few enough; return the families that are left."""
        rest = list[AreaFamily]()
        for group in _groups(self.families):
            rows = np.unique(np.concatenate([np.r_[family.parent, family.children] for family in group]))
            numbers = self._together(rows, group) if rows.size * self.columns <= TOGETHER else None
            if numbers is None:
                rest += group
            else:
                self.result[rows] = numbers
                self._tell(rows.size)
        return rest

    def _together(self, rows: Rows, families: Sequence[AreaFamily]) -> Ints | None:
        """Round several areas by one integer program, with the sums between them."""
        e = self.estimates
        at = {int(row): place for place, row in enumerate(rows)}
        inner = [AreaFamily(at[f.parent], np.array([at[int(c)] for c in f.children]), f.columns) for f in families]
        self.by_program += 1
        matrix = sums_matrix(self.columns, self.equations, e.active[rows], inner)
        return whole_numbers(matrix, self._costs(rows, e.mean[rows]), e.low[rows], e.high[rows])

    def _costs(self, rows: Rows, target: FloatArray) -> Costs:
        return Costs(self.estimates, rows, target, self.absolute, np.arange(self.columns))

    def _areas(self, costs: Costs, low: Ints, high: Ints) -> Ints:
        """Round areas, each by itself."""
        rows, numbers = costs.rows, np.full(low.shape, NOTHING, dtype=np.int32)
        open_yet = np.arange(len(rows))
        low = np.minimum(low, high)
        few = self.estimates.mean.size <= FEW_CELLS
        for margin in MARGINS[1 if few else 0 :]:
            here = costs.part(open_yet)
            first, last = windows_around(here, low[open_yet], high[open_yet], margin)
            active = self.estimates.active[rows[open_yet], : len(self.compiled.equations)]
            best, possible = nearest_tables(self.compiled, here, first, last, active)
            numbers[open_yet[possible]] = best[possible]
            open_yet = open_yet[~possible]
            if not open_yet.size:
                break
        for place, pieces in self._not_yet(rows, numbers):
            self._by_program(costs, place, pieces, numbers, low, high)
        return numbers

    def _not_yet(self, rows: Rows, numbers: Ints) -> Iterator[tuple[int, Rows]]:
        """Go through the areas that have pieces in which some sum does not hold, or nothing was found."""
        matrix = sums_matrix(self.columns, self.equations, self.estimates.active[rows])
        where, sums = np.nonzero(self.estimates.active[rows])
        off = np.flatnonzero((matrix @ numbers.ravel().astype(np.float64)) != 0)
        pieces: dict[int, set[int]] = {}
        for at, e in zip(where[off].tolist(), sums[off].tolist(), strict=True):
            pieces.setdefault(at, set()).add(int(self._of_piece[e]))
        for at in np.flatnonzero((numbers == NOTHING).any(axis=1)).tolist():
            pieces[at] = set(self.piece.tolist())
        for at, those in sorted(pieces.items()):
            yield at, np.array(sorted(those))

    def _by_program(self, costs: Costs, place: int, pieces: Rows, numbers: Ints, low: Ints, high: Ints) -> None:
        """Round pieces of one area by integer programs, in place."""
        e, row = self.estimates, int(costs.rows[place])
        for piece in pieces.tolist():
            cells = np.flatnonzero(self.piece == piece)
            at = {int(cell): position for position, cell in enumerate(cells)}
            sums = [s for s in np.flatnonzero(self._of_piece == piece).tolist() if e.active[row, s]]
            local = tuple((at[self.equations[s][0]], tuple(at[p] for p in self.equations[s][1])) for s in sums)
            least, most = low[place : place + 1, cells], high[place : place + 1, cells]
            plain = np.clip(np.rint(costs.target[place : place + 1, cells]), least, most).astype(np.int32)
            solved: Ints | None = plain
            if local:
                self.by_program += 1
                matrix = sums_matrix(len(cells), local, np.ones((1, len(local)), dtype=bool))
                solved = whole_numbers(matrix, costs.part([place], cells), least, most)
            if solved is None:
                touching = [s for s in sums if e.clash[row, [self.equations[s][0], *self.equations[s][1]]].any()]
                if touching:  # what is left as it was published stands in the way of its other sums
                    e.active[row, touching] = False
                    self._by_program(costs, place, np.array([piece]), numbers, low, high)
                    continue
                self.left.append((row, cells))
                solved = plain
            numbers[place, cells] = solved[0]

    # Areas within areas

    def _inwards(self, families: Sequence[AreaFamily]) -> None:
        """Round the children of areas that are rounded already, one child of every family at a time.

        What is left of the parent is spread over the children that are left, by their variances; the last child takes what
        remains, which its bounds allow because those before it leave room.
        """
        e = self.estimates
        order = [family.children[np.argsort(e.spread[family.children].sum(axis=1), kind="stable")] for family in families]
        adds = np.stack([family.columns for family in families])
        rest = np.where(adds, self.result[[family.parent for family in families]], 0).astype(np.float64)
        mean = np.stack([e.mean[c].sum(axis=0) for c in order])
        variance = np.stack([(e.spread[c].astype(np.float64) ** 2).sum(axis=0) for c in order])
        low = np.stack([e.low[c].sum(axis=0, dtype=np.int64) for c in order])
        high = np.stack([e.high[c].sum(axis=0, dtype=np.int64) for c in order])
        broken = np.zeros(len(families), dtype=np.bool_)
        for step in range(max(map(len, order))):
            here = np.array([f for f in range(len(families)) if len(order[f]) > step and not broken[f]], dtype=np.int64)
            if not here.size:
                break
            rows = np.array([order[f][step] for f in here])
            variances = e.spread[rows].astype(np.float64) ** 2
            left = np.array([len(order[f]) - step for f in here])[:, None]
            share = np.where(variance[here] > CLOSE, variances / np.maximum(variance[here], CLOSE), 1.0 / left)
            target = np.where(
                adds[here], e.mean[rows] + (rest[here] - mean[here]) * np.where(left == 1, 1.0, share), e.mean[rows]
            )
            least = np.where(adds[here], np.maximum(e.low[rows], rest[here] - (high[here] - e.high[rows])), e.low[rows])
            most = np.where(adds[here], np.minimum(e.high[rows], rest[here] - (low[here] - e.low[rows])), e.high[rows])
            numbers = self._children(rows, target, least, most)
            ok = (numbers != NOTHING).all(axis=1)
            for f in here[~ok].tolist():
                broken[f] = True
                self._whole_family(families[f])
            rows, here, numbers = rows[ok], here[ok], numbers[ok]
            self.result[rows], self.shared[rows] = numbers, True
            rest[here] -= np.where(adds[here], numbers, 0)
            mean[here] -= e.mean[rows]
            variance[here] -= variances[ok]
            low[here] -= e.low[rows]
            high[here] -= e.high[rows]
            self._tell(rows.size)

    def _children(self, rows: Rows, target: FloatArray, least: FloatArray, most: FloatArray) -> Ints:
        """Round one child of every family; `NOTHING` where nothing was found."""
        fine = (least <= most).all(axis=1)
        numbers = np.full(target.shape, NOTHING, dtype=np.int32)
        some = np.flatnonzero(fine)
        for batch in _batches(some):
            before = len(self.left)
            costs = self._costs(rows[batch], target[batch])
            got = self._areas(costs, least[batch].astype(np.int32), most[batch].astype(np.int32))
            for row, _ in self.left[before:]:
                got[rows[batch] == row] = NOTHING
            del self.left[before:]
            numbers[batch] = got
        return numbers

    def _whole_family(self, family: AreaFamily) -> None:
        """Round the children of one family together, given their parent; or each by itself, if that fails, and say so."""
        e, top, inside = self.estimates, family.parent, family.children
        kept = [array[top].copy() for array in (e.mean, e.low, e.high, e.active)]
        e.mean[top] = e.low[top] = e.high[top] = self.result[top]
        e.active[top] = False
        numbers = self._together(np.r_[top, inside], [family])
        e.mean[top], e.low[top], e.high[top], e.active[top] = kept
        if numbers is None:
            self.apart.append(family)
            numbers = self._areas(self._costs(inside, e.mean[inside]), e.low[inside], e.high[inside])
        self.result[inside] = numbers[-len(inside) :]
        self._tell(len(family.children))


def _batches(rows: Rows) -> Iterator[Rows]:
    for start in range(0, len(rows), AT_ONCE):
        yield rows[start : start + AT_ONCE]


def _groups(families: Sequence[AreaFamily]) -> list[list[AreaFamily]]:
    """Put families that share an area together."""
    areas = max((max(f.parent, int(f.children.max())) for f in families), default=-1) + 1
    first = connected(areas, ([f.parent, *f.children.tolist()] for f in families))
    groups: dict[int, list[AreaFamily]] = {}
    for family in families:
        groups.setdefault(first[family.parent], []).append(family)
    return list(groups.values())
