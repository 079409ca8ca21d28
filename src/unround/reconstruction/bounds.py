"""Bounds on every cell of the full cross table of an area, from the windows of all columns, propagated to a fixpoint.

A cell is a combination of values of all attributes. A column that counts at most U persons leaves a cell no more than U less
what the other cells of the column have at least; one that counts at least L leaves it no less than L minus what the others
have at most. Bounds hold in every world that fits; only columns whose windows are certain are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.jit import kernel
from unround.mechanisms import Mechanism, Suppressed
from unround.release import ABSENT, SUPPRESSED
from unround.simulation.persons.counting import Margin, Query, margins

Ints = NDArray[np.int64]

MOST_CELLS = 300_000
"""Cells of a cross table: with more, bounds are worked out for fewer attributes."""

MOST_PASSES = 40
UNBOUNDED = 1 << 40


class Layout(NamedTuple):
    """The cells of a cross table and the columns they are in.

    `atom[m, c]` is the atom of cell c in margin m, numbered through all margins; atom a is in columns
    held[starts[a]:starts[a + 1]].
    """

    atom: NDArray[np.int32]
    starts: Ints
    held: NDArray[np.int32]
    columns: int


@dataclass(frozen=True, slots=True, eq=False)
class CrossTable:
    """The cross table that bounds are worked out for.

    - `names`: Its attributes.
    - `shape`: How many values each has.
    - `used`: The columns that are about these attributes alone.
    - `layout`: Cells and columns, as arrays.
    """

    names: tuple[str, ...]
    shape: tuple[int, ...]
    used: list[int]
    layout: Layout

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return prod(self.shape)

    def cell_of(self, codes: Mapping[str, NDArray[np.int16]]) -> Ints:
        """Return the cell of every person."""
        found = np.zeros(len(next(iter(codes.values()))), dtype=np.int64)
        for name, size in zip(self.names, self.shape, strict=True):
            found = found * size + codes[name]
        return found

    def values_of(self, cell: int) -> tuple[int, ...]:
        """Return the codes of a cell's values."""
        return tuple(int(one) for one in np.unravel_index(cell, self.shape))


def cross_table(queries: Sequence[Query], sizes: Mapping[str, int], most: int = MOST_CELLS) -> CrossTable:
    """Lay out the cross table of as many attributes as fit, those that most columns are about first."""
    about = {name: sum(name in dict(one) for one in queries) for name in sizes}
    names: list[str] = []
    for name in sorted(sizes, key=lambda one: (-about[one], one)):
        if about[name] and prod(sizes[one] for one in (*names, name)) <= most:
            names.append(name)
    used = [at for at, one in enumerate(queries) if {name for name, _ in one} <= set(names)]
    shape = tuple(sizes[name] for name in names)
    grouped = margins([queries[at] for at in used], sizes)
    grid = dict(zip(names, np.indices(shape, dtype=np.int16).reshape(len(names), -1), strict=True)) if names else {}
    atom = np.zeros((len(grouped), prod(shape)), dtype=np.int32)
    starts, held, atoms, lists = [], [], 0, 0
    for m, margin in enumerate(grouped):
        atom[m] = atoms + _atoms(margin, grid)
        starts.append(margin.starts[:-1] + lists)
        held.append(margin.columns[margin.held])
        atoms += margin.atoms
        lists += len(margin.held)
    all_starts = np.concatenate([*starts, [lists]]).astype(np.int64)
    all_held = np.concatenate([*held, np.zeros(0)]).astype(np.int32)
    return CrossTable(tuple(names), shape, used, Layout(atom, all_starts, all_held, len(used)))


def _atoms(margin: Margin, grid: Mapping[str, NDArray[np.int16]]) -> Ints:
    return margin.atom_of(grid) if margin.attributes else np.zeros(1, dtype=np.int64)


def column_bounds(counts: Sequence[int], mechanisms: Sequence[Mechanism]) -> tuple[Ints, Ints]:
    """Return the smallest and the largest true count of every column, as far as that is certain."""
    low, high = np.zeros(len(counts), dtype=np.int64), np.full(len(counts), UNBOUNDED, dtype=np.int64)
    for at, (value, how) in enumerate(zip(counts, mechanisms, strict=True)):
        if value <= ABSENT and not (value == SUPPRESSED and isinstance(how, Suppressed)):
            continue
        window = how.window(None if value <= ABSENT else int(value))
        if window.certain:
            low[at] = window.low
            high[at] = UNBOUNDED if window.high is None else window.high
    return low, high


class Found(NamedTuple):
    """The smallest and the largest count of every cell, and the column that gave each of them last; −1 for none."""

    least: Ints
    most: Ints
    least_by: NDArray[np.int32]
    most_by: NDArray[np.int32]


@kernel
def propagate(layout: Layout, low: Ints, high: Ints, passes: int) -> tuple[Found, bool]:
    """Return the bounds of every cell, and whether any world can fit."""
    margins_, cells = layout.atom.shape
    atoms = layout.starts.shape[0] - 1
    least, most = np.zeros(cells, np.int64), np.full(cells, UNBOUNDED, np.int64)
    found = Found(least, most, np.full(cells, -1, np.int32), np.full(cells, -1, np.int32))
    sum_low, sum_high = np.empty(layout.columns, np.int64), np.empty(layout.columns, np.int64)
    atom_low, atom_high = np.empty(atoms, np.int64), np.empty(atoms, np.int64)
    room, need = np.empty(atoms, np.int64), np.empty(atoms, np.int64)
    room_by, need_by = np.empty(atoms, np.int32), np.empty(atoms, np.int32)
    for _ in range(passes):
        atom_low[:] = 0
        atom_high[:] = 0
        for m in range(margins_):
            for c in range(cells):
                atom_low[layout.atom[m, c]] += least[c]
                atom_high[layout.atom[m, c]] = min(UNBOUNDED, atom_high[layout.atom[m, c]] + most[c])
        sum_low[:] = 0
        sum_high[:] = 0
        for a in range(atoms):
            for at in range(layout.starts[a], layout.starts[a + 1]):
                sum_low[layout.held[at]] += atom_low[a]
                sum_high[layout.held[at]] = min(UNBOUNDED, sum_high[layout.held[at]] + atom_high[a])
        for column in range(layout.columns):
            if sum_low[column] > high[column] or sum_high[column] < low[column]:
                return found, False
        for a in range(atoms):
            room[a], need[a], room_by[a], need_by[a] = UNBOUNDED, -UNBOUNDED, -1, -1
            for at in range(layout.starts[a], layout.starts[a + 1]):
                column = layout.held[at]
                if high[column] < UNBOUNDED and high[column] - sum_low[column] < room[a]:
                    room[a], room_by[a] = high[column] - sum_low[column], column
                if sum_high[column] < UNBOUNDED and low[column] - sum_high[column] > need[a]:
                    need[a], need_by[a] = low[column] - sum_high[column], column
        changed = False
        for c in range(cells):
            space, wanted, space_by, wanted_by = UNBOUNDED, -UNBOUNDED, -1, -1
            for m in range(margins_):
                a = layout.atom[m, c]
                if room[a] < space:
                    space, space_by = room[a], room_by[a]
                if need[a] > wanted:
                    wanted, wanted_by = need[a], need_by[a]
            before, after = least[c], most[c]
            if before + space < after:
                most[c], found.most_by[c], changed = before + space, space_by, True
            if after < UNBOUNDED and after + wanted > before:
                least[c], found.least_by[c], changed = after + wanted, wanted_by, True
        if not changed:
            break
    return found, True
