"""The steps that lead from one table that adds up to another: some leaves go up by t, others down by t.

Along axes, a step is a product: on every axis either one place, or one place up and another down. The more places change
sign, the fewer totals change with them: with a difference on each axis only leaves do. Where totals are exact, products
alone may not reach every table; steps between any two leaves are added for these (the Markov basis of independent axes).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from unround.crossed.table import CrossedTable, Ints
from unround.jit import kernel

MOST_MOVES = 20_000
"""Moves of a kind; of more, so many are drawn."""

WEIGHTS = (2.0, 2.0, 1.0, 0.5)
"""How often moves with 0, 1, 2, 3 and more differences are made, relative to each other."""

ANYWHERE = (1.0, 1.0)
"""The same for moves between any two leaves: one less here and one more there, and two that swap one coordinate."""

Leaves = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """All moves, kind by kind.

    - `start`: Where the cells of each move begin, and where the last end.
    - `cell`, `step`: The cells that a move changes (places in the table), and by how much for t = 1.
    - `kind_start`: The first move of each kind, and how many there are.
    - `weight`: How often each kind is chosen.
    - `along`: How many kinds, the first ones, are products along axes.
    """

    start: Ints
    cell: Ints
    step: Ints
    kind_start: Ints
    weight: NDArray[np.float64]
    along: int


@lru_cache(maxsize=64)
def moves_of(table: CrossedTable) -> Moves:
    """Return the moves of a table."""
    kinds: list[tuple[Leaves, Leaves]] = []
    weight: list[float] = []
    for number in range(table.axes + 1):
        found = _products(table, number)
        if len(found[0]):
            kinds.append(found)
            weight.append(WEIGHTS[min(number, len(WEIGHTS) - 1)])
    along = len(kinds)
    for found, one in zip((_transfers(table), _swaps(table)), ANYWHERE, strict=True):
        if len(found[0]):
            kinds.append(found)
            weight.append(one)
    starts, cells, steps = [np.zeros(1, dtype=np.int32)], [], []
    for leaves, signs in kinds:
        start, cell, step = _cells(leaves, signs, table.above_start, table.above, table.cells.size)
        starts.append(start[1:] + starts[-1][-1])
        cells.append(cell)
        steps.append(step)
    sizes = np.cumsum([0, *(len(leaves) for leaves, _ in kinds)]).astype(np.int32)
    return Moves(np.concatenate(starts), np.concatenate(cells), np.concatenate(steps), sizes, np.array(weight), along)


def _grid(table: CrossedTable) -> NDArray[np.int64]:
    """Return which leaf is where; -1 where there is none."""
    grid = np.full(table.shape, -1, dtype=np.int64)
    grid[tuple(table.coordinates.T)] = np.arange(table.leaves.size)
    return grid


def _products(table: CrossedTable, number: int) -> tuple[Leaves, Leaves]:
    """Return moves with so many differences, as the leaves that change and their signs, a row each."""
    grid, rng = _grid(table), np.random.default_rng(number)
    found = []
    signs = np.array([(-1) ** bin(corner).count("1") for corner in range(1 << number)])
    chosen = list(combinations(range(table.axes), number))
    for axes in chosen:
        sizes = [size * (size - 1) // 2 if axis in axes else size for axis, size in enumerate(table.shape)]
        every, most = int(np.prod(sizes)), MOST_MOVES // len(chosen)
        which = np.arange(every) if every <= most else np.unique(rng.integers(0, every, most))
        places = np.unravel_index(which, sizes)
        corners = []
        for corner in range(1 << number):
            at = []
            for axis, size in enumerate(table.shape):
                if axis in axes:
                    pairs = np.stack(np.triu_indices(size, 1))
                    at.append(pairs[corner >> axes.index(axis) & 1][places[axis]])
                else:
                    at.append(places[axis])
            corners.append(grid[tuple(at)])
        found.append(np.stack(corners, axis=1))
    leaves = np.concatenate(found)
    leaves = leaves[(leaves >= 0).all(axis=1)]
    return leaves, np.broadcast_to(signs, leaves.shape)


def _pairs(table: CrossedTable) -> tuple[Leaves, Leaves]:
    """Return two leaves each that differ along several axes."""
    number = table.leaves.size
    rng = np.random.default_rng(number)
    if number * (number - 1) // 2 <= MOST_MOVES:
        one, other = np.triu_indices(number, 1)
    else:
        one, other = rng.integers(0, number, (2, MOST_MOVES))
    several = (table.coordinates[one] != table.coordinates[other]).sum(axis=1) > 1
    return one[several], other[several]


def _transfers(table: CrossedTable) -> tuple[Leaves, Leaves]:
    leaves = np.stack(_pairs(table), axis=1)
    return leaves, np.broadcast_to(np.array([1, -1]), leaves.shape)


def _swaps(table: CrossedTable) -> tuple[Leaves, Leaves]:
    """Return moves in which two leaves swap their place along one axis."""
    leaves = np.concatenate([*_swapped(table, *_pairs(table)), np.empty((0, 4), dtype=np.int64)])
    if len(leaves) > MOST_MOVES:
        leaves = leaves[np.sort(np.random.default_rng(len(leaves)).permutation(len(leaves))[:MOST_MOVES])]
    return leaves, np.broadcast_to(np.array([1, 1, -1, -1]), leaves.shape)


def _swapped(table: CrossedTable, one: Leaves, other: Leaves) -> Iterator[Leaves]:
    grid = _grid(table)
    if table.axes == 1:  # no axis to swap along: two go up, two go down
        half = len(one) // 2
        leaves = np.stack([one[:half], one[half : 2 * half], other[:half], other[half : 2 * half]], axis=1)
        yield leaves[[len(set(four)) == 4 for four in leaves.tolist()]]
        return
    for axis in range(table.axes):
        first, second = table.coordinates[one].copy(), table.coordinates[other].copy()
        differ = first[:, axis] != second[:, axis]
        first[:, axis], second[:, axis] = table.coordinates[other, axis], table.coordinates[one, axis]
        leaves = np.stack([grid[tuple(first.T)], grid[tuple(second.T)], one, other], axis=1)[differ]
        leaves = leaves[(leaves >= 0).all(axis=1)]
        # On two axes this is a product; on three, swapping one is swapping the other two.
        yield leaves[(table.coordinates[leaves[:, 2]] != table.coordinates[leaves[:, 3]]).sum(axis=1) > 2]


@kernel
def _cells(leaves: Leaves, signs: Leaves, above_start: Ints, above: Ints, cells: int) -> tuple[Ints, Ints, Ints]:
    """Return the cells that each move changes, and by how much."""
    moves, corners = leaves.shape
    most = 0
    for i in range(len(above_start) - 1):
        most = max(most, above_start[i + 1] - above_start[i])
    start = np.zeros(moves + 1, dtype=np.int32)
    cell, step = np.empty(moves * corners * most, dtype=np.int32), np.empty(moves * corners * most, dtype=np.int32)
    change, size = np.zeros(cells, dtype=np.int32), 0
    for m in range(moves):
        for turn in range(2):
            for k in range(corners):
                leaf = leaves[m, k]
                for j in range(above_start[leaf], above_start[leaf + 1]):
                    c = above[j]
                    if turn == 0:
                        change[c] += signs[m, k]
                    elif change[c] != 0:
                        cell[size], step[size] = c, change[c]
                        change[c] = 0
                        size += 1
        start[m + 1] = size
    return start, cell[:size].copy(), step[:size].copy()
