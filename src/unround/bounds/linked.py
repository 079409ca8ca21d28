"""Feasibility intervals: how far hidden counts can go, over all tables that agree with what is printed.

Where the sums between counts that are still open form a tree, propagation has found these intervals already. Where they form
loops, several sums together may say more than each by itself. Often the parts of one sum are among those of another: with
its total in their place the loop is gone, and propagation is enough. Elsewhere an integer program is solved for each end
that no table seen so far attains. An end is attained by a table that fits, or said to be out of reach of the effort made.

Bound propagation across areas: the sums of each area, and those of families, applied to a fixpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import compress
from typing import Any

import numpy as np

from unround.bounds.attain import FAR, attained_ends
from unround.bounds.search import single_worker
from unround.bounds.tighten import PlainSums, tighten
from unround.errors import InternalError
from unround.evidence.block import NO_UPPER_BOUND, CellBounds, Ints, Windows
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms.base import BoolArray
from unround.sums.compiled import CompiledSums
from unround.sums.families import Rows
from unround.sums.forest import Equations, is_acyclic, neighbours
from unround.sums.multiway import pieces

Place = tuple[int, int]
"""A cell: its area's row, and its column."""

_Domain = tuple[int, int, tuple[int, ...] | None]
"""The bounds of an open cell, and the counts between them where its window lists them."""

_Row = tuple[int, tuple[int, ...], int]
"""A sum in a loop: its total, -1 where that is known; its parts that are open; and what all else adds to them."""

MOST_OPEN = 1_500
"""Open cells in one loop of sums beyond which no integer program is solved."""

MIXED = 15_000
"""Hidden times open cells beyond which none is solved where most open cells are not hidden, but rounded: rounding leaves so
much room that sums taken together hardly ever say more than one after the other."""

EFFORT = 0.5
"""The most that is spent on one end of one interval, in CP-SAT's deterministic units: about a second each."""


class _Contradicting(Exception):  # noqa: N818 - it is an answer, and no error
    """No table agrees with everything that is printed."""


class SumsOfBlock:
    """The sums within the areas of a block, and those between areas, each with a number.

    - `equations`, `active`: The sums of every area, and which hold where (areas × equations); all, unless given.
    - `parent`, `columns`: For every area the row of its parent, or -1; and the columns in which children add up.
    """

    def __init__(
        self, compiled: CompiledSums, active: BoolArray | None, parent: np.ndarray[Any, Any], columns: BoolArray
    ) -> None:
        self.equations, self.active, self.columns = compiled.equations, active, columns
        self.width, self.areas = compiled.columns, len(parent)
        self.parent = parent
        self.children: dict[int, list[int]] = {}
        for row in np.flatnonzero(parent >= 0).tolist():
            self.children.setdefault(int(parent[row]), []).append(row)
        _, self.touching = neighbours(self.equations)
        self._holds: dict[int, list[bool]] = {}

    def of(self, place: Place) -> list[int]:
        """Return the sums that a cell is in."""
        area, column = place
        number = len(self.equations)
        if self.active is not None and area not in self._holds:
            self._holds[area] = self.active[area].tolist()  # asked thousands of times: numpy takes five times as long
        holds = self._holds.get(area)
        numbers = [area * number + e for e in self.touching.get(column, ()) if holds is None or holds[e]]
        if self.columns[column]:
            first, above = self.areas * number, int(self.parent[area])
            numbers += [first + row * self.width + column for row in (area, above) if row >= 0 and row in self.children]
        return numbers

    def members(self, of_sum: int) -> list[Place]:
        """Return the cells of a sum, the total first."""
        number = len(self.equations)
        if of_sum < self.areas * number:
            area, e = divmod(of_sum, number)
            total, parts = self.equations[e]
            return [(area, column) for column in (total, *parts)]
        area, column = divmod(of_sum - self.areas * number, self.width)
        return [(row, column) for row in (area, *self.children[area])]

    def needed(self, places: Sequence[Place], windows: Windows, low: Ints, high: Ints, most: int) -> tuple[list[int], bool]:
        """Return the sums that the bounds of some cells can depend on, the nearest first; and whether these are all.

        They are not if they have more than so many cells. A bound that is not that of the cell's own window comes from a
        sum that the cell is in.
        """
        sums: dict[int, None] = {}
        queue, seen, wanted = list(places), set(places), set(places)
        for place in queue:  # grows during the loop
            if windows.low[place] == low[place] and windows.high[place] == high[place] and place not in wanted:
                continue
            for number in self.of(place):
                if number not in sums:
                    sums[number] = None
                    new = [other for other in self.members(number) if other not in seen]
                    seen.update(new)
                    queue += new
            if len(seen) > most:
                return list(sums), False
        return list(sums), True


def _narrow(sums: SumsOfBlock, windows: Windows, bounds: LinkedBounds, hidden: BoolArray) -> tuple[Place, ...]:
    """Narrow hidden counts to their feasibility intervals, from what propagation leaves; return where nothing is left.

    The results of a loop depend on nothing outside it, so that they are the same however areas are put into blocks.
    """
    is_open = bounds.tight.low < bounds.tight.high
    done: set[Place] = set()
    too_large: set[Place] = set()
    clashing: list[Place] = []
    settled = _settled_by_trees(sums, windows, bounds, hidden & is_open)
    for area, column in np.argwhere(hidden & is_open & ~settled).tolist():
        place = (area, column)
        if place in too_large:
            bounds.limited[place] = True
        if place in done or place in too_large:
            continue
        cells, inside, complete = _connected(sums, place, is_open, too_large)
        if not complete:
            too_large.update(cells)
            bounds.limited[place] = True
            continue
        done.update(cells)
        edges = sum(len(members) for members in inside.values())
        wanted = [cell for cell in cells if hidden[cell]]
        if edges < len(cells) + len(inside):
            continue  # a tree
        if 2 * len(wanted) < len(cells) and len(wanted) * len(cells) > MIXED:
            for cell in wanted:
                bounds.limited[cell] = True
            continue
        try:
            _put_ends(sums, windows, bounds, cells, inside, hidden)
        except _Contradicting:
            clashing.append(place)
    return tuple(clashing)


def _settled_by_trees(sums: SumsOfBlock, windows: Windows, bounds: LinkedBounds, hidden: BoolArray) -> BoolArray:
    """Narrow the bounds of hidden counts whose sums, put into each other, form a tree; return which counts these are.

    In a tree of sums between whole numbers without holes, the bounds that propagation leaves are attained. Areas that are
    linked with others, and those in which such a tree has no solution, are left to the integer program.
    """
    low, high = bounds.tight.low, bounds.tight.high
    settled, alone = np.zeros_like(hidden), sums.parent < 0
    alone[list(sums.children)] = False
    rows = np.flatnonzero(alone & hidden.any(axis=1))
    tables = pieces(sums.width, sums.equations)
    if not rows.size or not tables:
        return settled
    piece_of = np.full(sums.width, -1)
    for number, (columns, _) in enumerate(tables):
        piece_of[columns] = number
    holes = (low[rows] < high[rows]) & _with_holes(windows.rows(rows), low[rows], high[rows])
    used = np.ones((rows.size, len(sums.equations)), dtype=np.bool_) if sums.active is None else sums.active[rows]
    trees, use, settles = (
        list[tuple[int, tuple[int, ...]]](),
        list[BoolArray](),
        np.zeros((rows.size, len(tables) + 1), dtype=np.bool_),
    )
    for number in np.unique(piece_of[hidden[rows].any(axis=0)]).tolist():
        if number < 0:
            continue
        columns, its_sums = tables[number]
        at = {column: i for i, column in enumerate(columns)}
        inside = [(at[total], tuple(at[part] for part in parts)) for total, parts in (sums.equations[e] for e in its_sums)]
        asks = hidden[np.ix_(rows, columns)].any(axis=1) & ~holes[:, columns].any(axis=1)
        for pattern in {*map(tuple, used[np.ix_(asks, its_sums)].tolist())}:
            tree = _as_tree(len(columns), tuple(compress(inside, pattern)))
            if tree is not None:
                here = asks & (used[:, its_sums] == pattern).all(axis=1)
                settles[here, number] = True
                trees += [(columns[total], tuple(columns[part] for part in parts)) for total, parts in tree]
                use += [here] * len(tree)
    if not trees:
        return settled
    tight = tighten(PlainSums(sums.width, tuple(trees)), narrowed(windows, low, high, rows), np.column_stack(use))
    settled[rows] = wanted = hidden[rows] & settles[:, piece_of] & tight.feasible[:, None]
    moved = wanted & ((tight.low > low[rows]) | (tight.high < high[rows]))
    bounds.moved[rows] |= moved
    is_open = low < high
    low[rows], high[rows] = np.where(moved, (tight.low, tight.high), (low[rows], high[rows]))
    for row, column in np.argwhere(moved & (tight.low == tight.high)).tolist():
        cell = int(rows[row]), column
        bounds.loops[cell] = tuple(_connected(sums, cell, is_open, set())[1])
    return settled


def _with_holes(windows: Windows, low: Ints, high: Ints) -> BoolArray:
    """Say which windows leave out a count between these bounds."""
    zeros = np.concatenate(([0], np.cumsum(windows.weights == 0)))
    inside = (windows.start >= 0) & (windows.high < NO_UPPER_BOUND)
    inside &= (windows.low <= low) & (low <= high) & (high <= windows.high)
    first = np.where(inside, windows.start + low - windows.low, 0)
    last = np.where(inside, first + high - low + 1, 0)
    return np.asarray(zeros[last] > zeros[first])


@lru_cache(maxsize=256)
def _as_tree(columns: int, equations: Equations) -> Equations | None:
    """Put the total of a sum in the place of its parts in other sums while that can be done; None if loops remain."""
    parts_of = [frozenset(parts) for _, parts in equations]
    changed = True
    while changed:  # each replacement makes a sum shorter, so that there is an end to them
        changed = False
        for i in sorted(range(len(equations)), key=lambda i: -len(parts_of[i])):
            total, parts = equations[i][0], parts_of[i]
            for j, larger in enumerate(parts_of):
                if i != j and len(parts) > 1 and parts <= larger and total not in larger:
                    parts_of[j] = larger - parts | {total}
                    changed = True
    totals = (total for total, _ in equations)
    tree = tuple({(total, tuple(sorted(parts))): None for total, parts in zip(totals, parts_of, strict=True)})
    return tree if is_acyclic(columns, tree, frozenset()) else None


def _connected(
    sums: SumsOfBlock, place: Place, is_open: BoolArray, too_large: set[Place]
) -> tuple[list[Place], dict[int, list[Place]], bool]:
    """Return the open cells that sums connect with one, the open cells of each of these sums, and whether these are all."""
    cells, seen, inside = [place], {place}, dict[int, list[Place]]()
    for cell in cells:  # grows during the loop
        for number in sums.of(cell):
            if number not in inside:
                inside[number] = [other for other in sums.members(number) if is_open[other]]
                new = [other for other in inside[number] if other not in seen]
                seen.update(new)
                cells += new
        if len(cells) > MOST_OPEN or cell in too_large:
            return cells, inside, False
    return cells, inside, True


def _put_ends(
    sums: SumsOfBlock, windows: Windows, bounds: LinkedBounds, cells: list[Place], inside: Iterable[int], hidden: BoolArray
) -> None:
    """Find the ends of the intervals of the hidden cells of a loop, and put them into the results."""
    at = {place: i for i, place in enumerate(cells)}
    rows = []
    for number in inside:
        total, *parts = sums.members(number)
        known = sum(int(bounds.tight.low[part]) for part in parts if part not in at)
        if total not in at:
            known -= int(bounds.tight.low[total])
        rows.append((at.get(total, -1), tuple(at[part] for part in parts if part in at), known))
    domains = tuple(_domain(windows, bounds, place) for place in cells)
    wanted = tuple(i for i, place in enumerate(cells) if hidden[place])
    for i, (low, high, limited) in zip(wanted, _ends(domains, tuple(rows), wanted), strict=True):
        place = cells[i]
        bounds.limited[place] |= limited
        if (low, high) != (bounds.tight.low[place], bounds.tight.high[place]):
            bounds.tight.low[place], bounds.tight.high[place] = low, high
            bounds.moved[place] = True
            if low == high:
                bounds.loops[place] = tuple(inside)


def _domain(windows: Windows, bounds: LinkedBounds, place: Place) -> _Domain:
    """Return the bounds of a cell, and the counts between them where its window lists them."""
    low, high, start = (int(array[place]) for array in (bounds.tight.low, bounds.tight.high, windows.start))
    if start < 0 or not (windows.low[place] <= low and high <= windows.high[place] < NO_UPPER_BOUND):
        return low, high, None
    first = start + low - int(windows.low[place])
    return low, high, tuple((low + np.flatnonzero(windows.weights[first : first + high - low + 1])).tolist())


@lru_cache(maxsize=256)
def _ends(
    domains: tuple[_Domain, ...], rows: tuple[_Row, ...], wanted: tuple[int, ...]
) -> tuple[tuple[int, int, bool], ...]:
    """Return how far some cells of a loop go, and whether they might go less far than that.

    Many areas have the same loop, and most have it whether or not counts that may have been adjusted are exact.
    """
    return _Loop(domains, rows).ends(wanted)


class _Loop:
    """Open cells whose sums form loops, as an integer program."""

    def __init__(self, domains: Sequence[_Domain], rows: Sequence[_Row]) -> None:
        self.domains, self.rows = domains, rows
        self.bounds = [(low, high) for low, high, _ in domains]
        self.least: list[int] = []
        self.most: list[int] = []

    def ends(self, wanted: Sequence[int]) -> tuple[tuple[int, int, bool], ...]:
        """Return the least and the greatest that some cells can be, and whether more effort might narrow that."""
        self._set_one_after_the_other(wanted)
        self._attain_many(wanted)
        intervals = []
        for i in wanted:
            ends, limited = list(self.bounds[i]), False
            for side, sign in enumerate((1, -1)):
                if self._is_attained(i, side):
                    continue
                limit, seen = self._solve({i: sign}), (self.least, self.most)[side]
                if limit is None or not seen or seen[i] != limit:
                    limited |= limit is not None or sign > 0 or ends[side] < FAR
                if limit is not None and sign * limit > sign * ends[side]:
                    ends[side] = limit
            intervals.append((ends[0], ends[1], limited))
        return tuple(intervals)

    def _set_one_after_the_other(self, wanted: Sequence[int]) -> None:
        """Look for tables that attain the ends of bounds by propagation alone, which may miss some."""
        if any(values is not None and len(values) <= high - low for low, high, values in self.domains):
            return  # a cell would be set to a count that its window leaves out
        bounds, equations = [*self.bounds], list[tuple[int, tuple[int, ...]]]()
        for total, parts, known in self.rows:  # what is known becomes a cell of its own: a total, or another part
            equations.append((total, (*parts, len(bounds))) if total >= 0 else (len(bounds), parts))
            bounds.append((known, known) if total >= 0 else (-known, -known))
        seen = attained_ends(bounds, tuple(equations), wanted)
        if seen is not None:
            self.least, self.most = (ends[: len(self.bounds)].tolist() for ends in seen)

    @cached_property
    def program(self) -> tuple[Any, list[Any]]:
        """The integer program, and its variables."""
        from ortools.sat.python import cp_model

        model = cp_model.CpModel()
        variables = [
            model.new_int_var_from_domain(
                cp_model.Domain.from_values(list(values)) if values is not None else cp_model.Domain(low, high), ""
            )
            for low, high, values in self.domains
        ]
        for total, parts, known in self.rows:
            added = cp_model.LinearExpr.sum([variables[part] for part in parts])
            model.add(added + known == (variables[total] if total >= 0 else 0))
        return model, variables

    def _attain_many(self, cells: Sequence[int]) -> None:
        """Look for tables in which many cells are at an end of their bounds at the same time, while there are such."""
        for side, sign in enumerate((1, -1)):
            left = [i for i in cells if self.bounds[i][side] < FAR and not self._is_attained(i, side)]
            while left:
                self._solve(dict.fromkeys(left, sign))
                still = [i for i in left if not self._is_attained(i, side)]
                if len(still) > 0.8 * len(left):
                    break
                left = still

    def _is_attained(self, variable: int, side: int) -> bool:
        """Return whether a table that was found has a cell at the lower or the upper end of its bounds, or above any."""
        seen, end = (self.least, self.most)[side], self.bounds[variable][side]
        return bool(seen) and (seen[variable] == end or min(seen[variable], end) > FAR)

    def _solve(self, goal: dict[int, int]) -> int | None:
        """Push cells as far down (1) or up (-1) as they go together, and remember the table that was found.

        Return how far they go, where it is one cell; None if that was not learnt.
        """
        from ortools.sat.python import cp_model

        sign, (model, variables) = next(iter(goal.values())), self.program
        model.minimize(sum(times * variables[i] for i, times in goal.items()))
        if self.least:
            model.clear_hints()
            for variable, value in zip(variables, self.least if sign > 0 else self.most, strict=True):
                model.add_hint(variable, value)
        solver = single_worker()
        solver.parameters.max_deterministic_time = EFFORT
        status = solver.solve(model)
        if status == cp_model.INFEASIBLE:
            raise _Contradicting
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
            raise InternalError(f"CP-SAT stopped without an answer ({solver.status_name(status)}).")
        if status != cp_model.UNKNOWN:
            values = list(solver.response_proto.solution)
            self.least = [min(pair) for pair in zip(self.least or values, values, strict=True)]
            self.most = [max(pair) for pair in zip(self.most or values, values, strict=True)]
        limit = solver.best_objective_bound
        return None if abs(limit) > FAR else sign * round(limit)


MOST_ROUNDS = 60
"""Rounds after which propagation between areas stops: the bounds are then valid, if not yet tight."""


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
    - `limited`: Hidden counts whose bounds might be narrower if more effort were made.
    - `loops`: Where a value is pinned by several sums together: these sums, numbered as in `SumsOfBlock`.
    """

    tight: CellBounds
    moved: BoolArray
    parent: Rows
    clashes: tuple[FamilyClash, ...]
    limited: BoolArray
    loops: dict[Place, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def none(cls, tight: CellBounds) -> LinkedBounds:
        """Return the bounds of areas of which none lies in another."""
        nowhere = np.zeros(tight.low.shape, dtype=np.bool_)
        return cls(tight, nowhere, np.full(len(tight.low), -1, dtype=np.int64), (), nowhere)


def linked_bounds(block: EvidenceBlock, parent: Rows, linked: BoolArray, *, proofs_only: bool = False) -> LinkedBounds:
    """Tighten bounds by the sums between parents and children, until nothing changes.

    Notes
    -----
    Where parent and children contradict each other, the link is dropped, everything derived from it is undone, and
    propagation starts again: one wrong count cannot spoil other families.
    """
    tight, used = block.bounds, parent.astype(np.int64).copy()
    broken = ~tight.feasible
    for at in np.unique(used[broken & (used >= 0)]):
        used[used == at] = -1  # a child that is not feasible says nothing about the others
    used[(used >= 0) & broken[used]] = -1
    clashes: list[FamilyClash] = []
    while True:
        low, high = tight.low.copy(), tight.high.copy()
        clash = _propagate(block, low, high, used, linked, proofs_only)
        if not clash:
            break
        for at, column in clash.items():
            used[used == at] = -1
            clashes.append(FamilyClash(at, column))
    moved, dropped = (low != tight.low) | (high != tight.high), tuple(sorted(clashes, key=lambda clash: clash.parent))
    return LinkedBounds(tight._replace(low=low, high=high), moved, used, dropped, np.zeros_like(moved))


def with_hidden(
    block: EvidenceBlock, bounds: LinkedBounds, linked: BoolArray, hidden: BoolArray
) -> tuple[LinkedBounds, tuple[Place, ...]]:
    """Narrow the bounds of hidden counts to what all sums together leave of them; return also where nothing is left."""
    sums = SumsOfBlock(block.compiled, block.active, bounds.parent, linked)
    certain = hidden & block.windows.certain & bounds.tight.feasible[:, None]
    tight = bounds.tight._replace(low=bounds.tight.low.copy(), high=bounds.tight.high.copy())
    narrower = replace(bounds, tight=tight, moved=bounds.moved.copy(), limited=np.zeros_like(bounds.moved), loops={})
    return narrower, _narrow(sums, block.windows, narrower, certain)


def _propagate(
    block: EvidenceBlock, low: Ints, high: Ints, parent: Rows, linked: BoolArray, proofs_only: bool
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
        cut = narrowed(block.windows, low, high, rows, proofs_only=proofs_only)
        within = tighten(block.compiled, cut, None if block.active is None else block.active[rows])
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


def narrowed(
    windows: Windows, low: Ints, high: Ints, cells: Rows | tuple[Rows, ...], *, proofs_only: bool = False
) -> Windows:
    """Return the windows of some areas, or of cells of them, cut to bounds.

    With `proofs_only`, uncertain columns keep their bounds only.
    """
    old_low, start = windows.low[cells], windows.start[cells]
    new_low, new_high = low[cells], high[cells]
    inside = (start >= 0) & (new_low >= old_low) & (new_high <= windows.high[cells])
    if proofs_only:
        inside &= windows.certain
    moved = np.where(inside, start + (new_low.astype(np.int64) - old_low), -1)
    return Windows(new_low, new_high, moved, windows.weights, np.ones(new_low.shape[1], dtype=np.bool_))
