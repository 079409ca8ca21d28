"""From sums to leaves and axes: every cell as a set of innermost cells.

Sets of cells are whole numbers whose bits say which leaves are in them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from unround.sums.forest import Equations
from unround.system import connected

Ints = NDArray[np.int32]

MOST_CELLS = 4000
"""Cells of a table beyond which nobody waits for its chains."""


@dataclass(frozen=True, slots=True, eq=False)
class MultiwayTable:
    """Connected cells, each the sum of some leaves.

    - `cells`: The cells, by position in the system.
    - `equations`: The sums that connect them, by position.
    - `leaves`: The innermost cells, as places in `cells`.
    - `above_start`, `above`: For every leaf the cells that it belongs to, itself included, as places in `cells`:
      `above[above_start[i] : above_start[i + 1]]`.
    - `coordinates`: Leaves × axes: where each leaf is. One axis with a place for each leaf if the cells are not a tree
      crossed with a tree.
    """

    cells: NDArray[np.int64]
    equations: tuple[int, ...]
    leaves: NDArray[np.int64]
    above_start: Ints
    above: Ints
    coordinates: Ints

    @property
    def axes(self) -> int:
        """How many axes there are."""
        return int(self.coordinates.shape[1])

    @property
    def shape(self) -> tuple[int, ...]:
        """How many leaves there are along each axis."""
        return tuple(int(last) + 1 for last in self.coordinates.max(axis=0))

    def belongs(self) -> NDArray[np.bool_]:
        """Return cells × leaves: which leaf is in which cell."""
        inside = np.zeros((self.cells.size, self.leaves.size), dtype=np.bool_)
        inside[self.above, np.repeat(np.arange(self.leaves.size), np.diff(self.above_start))] = True
        return inside

    def of_family(self, children: int, columns: int, equations: int) -> MultiwayTable:
        """Return the table of a parent and its children together: areas are one more axis, and the parent its total."""
        cells, leaves, above = self.cells.size, self.leaves.size, np.split(self.above, self.above_start[1:-1])
        members, inner = np.arange(children + 1), np.arange(1, children + 1)
        in_all = [np.concatenate([places, places + child * cells]) for child in inner.tolist() for places in above]
        sums = [e + member * equations for member in members.tolist() for e in self.equations]
        between = (children + 1) * equations
        where = np.repeat(np.arange(children), leaves)
        return MultiwayTable(
            (members[:, np.newaxis] * columns + self.cells).ravel(),
            (*sums, *range(between, between + cells)),
            (inner[:, np.newaxis] * cells + self.leaves).ravel(),
            np.cumsum([0, *map(len, in_all)]).astype(np.int32),
            np.concatenate(in_all).astype(np.int32),
            np.column_stack([np.tile(self.coordinates, (children, 1)), where]).astype(np.int32),
        )


@lru_cache(maxsize=64)
def multiway_tables(columns: int, equations: Equations) -> tuple[MultiwayTable | None, ...]:
    """Return the table that each connected piece of a system is; None for pieces that are none.

    A table for every set of connected cells with at least one sum, in the order of their first cells. A piece is no
    table if a total is divided in two ways that have no common division: a = b + c and a = d + e alone.

    Examples
    --------
    >>> rows_by_columns = ((0, (1, 2)), (0, (3, 4)), (1, (5, 6)), (2, (7, 8)), (3, (5, 7)), (4, (6, 8)))
    >>> (table,) = multiway_tables(9, rows_by_columns)
    >>> table.shape, table.cells[table.leaves].tolist()
    ((2, 2), [5, 6, 7, 8])
    """
    return tuple(_table(cells, sums, equations) for cells, sums in pieces(columns, equations))


@lru_cache(maxsize=64)
def pieces(columns: int, equations: Equations) -> list[tuple[list[int], list[int]]]:
    """Return connected cells, and the sums that connect them."""
    first = connected(columns, ((total, *parts) for total, parts in equations))
    sums: dict[int, list[int]] = {}
    for e, (total, _) in enumerate(equations):
        sums.setdefault(first[total], []).append(e)
    cells: dict[int, list[int]] = {}
    for cell in range(columns):
        cells.setdefault(first[cell], []).append(cell)
    return [(cells[root], sums[root]) for root in sorted(sums)]


def _table(cells: list[int], sums: list[int], equations: Equations) -> MultiwayTable | None:
    if len(cells) > MOST_CELLS:
        return None
    at = {cell: place for place, cell in enumerate(cells)}
    divided: dict[int, list[tuple[int, ...]]] = {}
    for e in sums:
        total, parts = equations[e]
        divided.setdefault(at[total], []).append(tuple(at[part] for part in parts))
    leaves = [place for place in range(len(cells)) if place not in divided]
    sets = _sets(len(cells), leaves, divided)
    if sets is None:
        return None
    above: list[list[int]] = [[] for _ in leaves]
    for place, members in enumerate(sets):
        for leaf in bits(members):
            above[leaf].append(place)
    axes = _axes(sets, leaves, divided)
    return MultiwayTable(
        np.array(cells, dtype=np.int64),
        tuple(sums),
        np.array(leaves, dtype=np.int64),
        np.cumsum([0, *map(len, above)]).astype(np.int32),
        np.array([place for places in above for place in places], dtype=np.int32),
        np.arange(len(leaves), dtype=np.int32)[:, np.newaxis] if axes is None else axes,
    )


def bits(members: int) -> Iterable[int]:
    """Return the places of the bits that are set."""
    while members:
        last = members & -members
        yield last.bit_length() - 1
        members ^= last


def _sets(cells: int, leaves: list[int], divided: dict[int, list[tuple[int, ...]]]) -> list[int] | None:
    """Return the leaves of every cell; None if some cell is divided into different ones, or into itself."""
    sets = [0] * cells
    for i, leaf in enumerate(leaves):
        sets[leaf] = 1 << i
    waiting = {total: len({part for parts in ways for part in parts}) for total, ways in divided.items()}
    inside: dict[int, set[int]] = {}
    for total, ways in divided.items():
        for part in {part for parts in ways for part in parts}:
            inside.setdefault(part, set()).add(total)
    ready = list(leaves)
    for cell in ready:  # grows while it is gone through
        for total in inside.get(cell, ()):
            waiting[total] -= 1
            if waiting[total]:
                continue
            for parts in divided[total]:
                members = 0
                for part in parts:
                    if members & sets[part]:
                        return None
                    members |= sets[part]
                if sets[total] not in (0, members):
                    return None
                sets[total] = members
            ready.append(total)
    return sets if len(ready) == cells else None


def _axes(sets: list[int], leaves: list[int], divided: dict[int, list[tuple[int, ...]]]) -> Ints | None:
    """Return the coordinates of every leaf, or None if no axes are found.

    Nothing but speed depends on them: along axes there are moves that change few cells.
    """
    lines = _lines(sets, leaves, divided)
    if lines is None:
        return None
    number = len(lines[0])
    if number < 2 or any(len(of_leaf) != number for of_leaf in lines):
        return None
    named = _named(lines)
    if named is None:
        return None
    coordinates = np.empty((len(leaves), number), dtype=np.int32)
    for axis in range(number):
        coordinates[:, axis] = _classes(
            [of_leaf[other] for of_leaf in named for other in range(number) if other != axis], len(leaves)
        )
    # Two leaves in the same place, or an axis of one place, say that these are not axes.
    if len(np.unique(coordinates, axis=0)) < len(leaves) or (coordinates.max(axis=0) == 0).any():
        return None
    return coordinates


def _lines(sets: list[int], leaves: list[int], divided: dict[int, list[tuple[int, ...]]]) -> list[list[int]] | None:
    """Return, for every leaf, the leaves that differ from it along one axis, one set an axis in any order."""
    directly: list[list[int]] = [[] for _ in leaves]
    place = {leaf: i for i, leaf in enumerate(leaves)}
    for total, ways in divided.items():
        for parts in ways:
            for part in parts:
                if part in place and len(parts) > 1:
                    directly[place[part]].append(sets[total])
    containing: list[list[int]] = [[] for _ in leaves]
    for members in set(sets):
        for i in bits(members):
            containing[i].append(members)
    lines = []
    for i in range(len(leaves)):
        itself = 1 << i
        groups: list[int] = []
        for members in directly[i]:  # totals with more than this leaf in common lie along the same axis
            meeting = [group for group in groups if group & members != itself]
            groups = [group for group in groups if group & members == itself]
            for group in meeting:
                members |= group
            groups.append(members)
        if not groups:
            return None
        grown = list(groups)
        for members in containing[i]:
            along = [a for a, group in enumerate(groups) if group & members != itself]
            if len(along) == 1:
                grown[along[0]] |= members
        lines.append(grown)
    return lines


def _named(lines: list[list[int]]) -> list[list[int]] | None:
    """Put the lines of every leaf into the order of the axes: those of the first leaf's lines, carried from leaf to leaf."""
    everywhere = [0] * len(lines)
    for i, through in enumerate(lines):
        for line in through:
            everywhere[i] |= line
    ordered: list[list[int] | None] = [None] * len(lines)
    ordered[0] = lines[0]
    queue = [0]
    for here in queue:  # grows while it is gone through
        known = ordered[here]
        assert known is not None
        lines_here: list[int] = known
        for axis, line in enumerate(lines_here):
            for there in bits(line & ~(1 << here)):
                if ordered[there] is None:
                    order = _matched(lines_here, axis, lines[there], here, there, everywhere)
                    if order is None:
                        return None
                    ordered[there] = order
                    queue.append(there)
    return None if None in ordered else [of_leaf for of_leaf in ordered if of_leaf is not None]


def _matched(
    lines_here: list[int], axis: int, others: list[int], here: int, there: int, everywhere: list[int]
) -> list[int] | None:
    """Order the lines of a leaf as those of its neighbour along an axis: parallel lines are joined by lines."""
    left = [line for line in others if not line >> here & 1]
    along = [line for line in others if line >> here & 1]
    if len(along) != 1:
        return None
    order = []
    for other, line in enumerate(lines_here):
        if other == axis:
            order.append(along[0])
            continue
        beside = next(iter(bits(line & ~(1 << here))))
        parallel = [beyond for beyond in left if everywhere[beside] & beyond & ~(1 << there)]
        if len(parallel) != 1:
            return None
        left.remove(parallel[0])
        order.append(parallel[0])
    return order


def _classes(lines: list[int], leaves: int) -> list[int]:
    """Return for every leaf the number of the set that lines connect it with."""
    first = connected(leaves, (bits(line) for line in set(lines)))
    roots = sorted(set(first))
    return [roots.index(root) for root in first]
