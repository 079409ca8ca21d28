"""Which areas of an audit lie within which: they are put into the same block, and inferred together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.audits.contradictions import AREAS, Contradiction
from unround.audits.model import Model
from unround.structure import Nesting
from unround.sums.families import MOST_LINKED

Rows = NDArray[np.int64]
Bools = NDArray[np.bool_]

ALWAYS_TOGETHER = 200_000
"""Counts of areas that sums connect, and that are worked on together whatever these sums tell."""

MOST_TOGETHER = 1_000_000
"""The same where sums of large families tell something."""

FILE = "nested.npz"
"""Where an audit keeps it, in its folder `model/`; there is none where no area lies within another."""


@dataclass(frozen=True, eq=False)
class NestedAreas:
    """How some areas lie within each other; all areas of a family are among them.

    - `parent`: For every area the row of the area that it is a part of, or -1.
    - `alike`: For every area whether it has one child, and its numbers are those of the child: not a second rounding.
    - `sure`: For every area whether its children are known to be all of it, to the last person.
    - `cells`: For every cell of the model whether it adds up across areas.
    - `odd`, `odd_cell`, `odd_said`: Areas that cannot be the sum of those in them, and are not linked for that; the cell
      that shows it, or -1 where the model does not have it; and how.
    """

    parent: Rows
    alike: Bools
    sure: Bools
    cells: Bools
    odd: Rows
    odd_cell: Rows
    odd_said: NDArray[np.str_]

    @classmethod
    def of(cls, nesting: Nesting, model: Model, parent: Rows | None = None) -> NestedAreas:
        """Take over what was found out about a release; of the links only some, if given."""
        children = np.bincount(nesting.parent[nesting.parent >= 0], minlength=len(nesting.parent))
        parent = nesting.parent if parent is None else parent
        cells = np.ones(len(model.columns), dtype=np.bool_)
        alike = np.zeros(len(parent), dtype=np.bool_)
        inside = np.flatnonzero(parent >= 0)
        for number in np.unique(nesting.level[inside]).tolist():
            level = nesting.levels[number]
            cells &= level.columns[model.positions]
            if level.alike:
                heads = parent[inside[nesting.level[inside] == number]]
                alike[heads[children[heads] == 1]] = True
        place = {int(column): cell for cell, column in enumerate(model.positions)}
        odd = np.array([one.parent for one in nesting.odd], dtype=np.int64)
        shown = np.array([place.get(one.column, -1) for one in nesting.odd], dtype=np.int64)
        return cls(
            parent, alike, nesting.sure, cells, odd, shown, np.array([one.text for one in nesting.odd], dtype=np.str_)
        )

    @cached_property
    def top(self) -> Rows:
        """For every area the outermost that it lies in."""
        return _tops(self.parent)

    @property
    def linked(self) -> bool:
        """Whether any area lies within another."""
        return bool((self.parent >= 0).any() and self.cells.any())

    @property
    def any(self) -> bool:
        """Whether there is anything to know: areas that are linked, or that should have been."""
        return self.linked or self.odd.size > 0

    def contradictions(self) -> list[Contradiction]:
        """Return what was found to contradict before anything was linked."""
        return [
            Contradiction(row, AREAS, (), (cell,) if cell >= 0 else (), text)
            for row, cell, text in zip(self.odd.tolist(), self.odd_cell.tolist(), self.odd_said.tolist(), strict=True)
        ]

    def arranged(self, block: int) -> tuple[Rows, Rows]:
        """Return areas in an order in which families are together, and where blocks of about so many begin and end."""
        areas = np.arange(len(self.parent))
        size = np.bincount(self.top, minlength=len(areas))[self.top]
        first = np.full(len(areas), len(areas))
        np.minimum.at(first, self.top, areas)
        inside = np.flatnonzero(size > 1)
        inside = inside[np.argsort(first[self.top[inside]], kind="stable")]
        cuts, family = [0], self.top[inside]
        ends = (np.flatnonzero(np.r_[family[1:] != family[:-1], True]) + 1).tolist() if len(inside) else []
        for before, end in zip([0, *ends[:-1]], ends, strict=True):
            if end - cuts[-1] > block and before > cuts[-1]:
                cuts.append(before)
        if len(inside):
            cuts.append(len(inside))
        alone = np.flatnonzero(size == 1)
        cuts += [min(start + block, len(areas)) for start in range(len(inside), len(areas), block)]
        return np.r_[inside, alone], np.array(cuts, dtype=np.int64)

    def reordered(self, order: Rows) -> NestedAreas:
        """Return the same with areas in another order; it may leave out whole families."""
        place = np.full(len(self.parent), -1, dtype=np.int64)
        place[order] = np.arange(len(order))
        parent = self.parent[order]
        here = np.flatnonzero(place[self.odd] >= 0)
        here = here[np.argsort(place[self.odd[here]], kind="stable")]
        return NestedAreas(
            np.where(parent >= 0, place[parent], -1),
            self.alike[order],
            self.sure[order],
            self.cells,
            place[self.odd[here]],
            self.odd_cell[here],
            self.odd_said[here],
        )

    def family(self, row: int) -> Rows:
        """Return the areas that an area is linked with, itself first."""
        with_it = np.flatnonzero(self.top == self.top[row])
        return np.concatenate([[row], with_it[with_it != row]])

    def save(self, folder: Path) -> None:
        """Write what `load` reads."""
        np.savez(folder / FILE, allow_pickle=False, **{one.name: getattr(self, one.name) for one in fields(self)})

    @classmethod
    def load(cls, folder: Path) -> NestedAreas | None:
        """Read it from a folder, if there is any."""
        if not (folder / FILE).exists():
            return None
        with np.load(folder / FILE) as told:
            return cls(**{one.name: told[one.name] for one in fields(cls)})


Telling = Callable[[Rows], Bools]
"""Takes the parents of large families, and returns which of these families narrow the bounds of any count."""


def links_to_use(nesting: Nesting, model: Model, telling: Telling) -> tuple[Rows, Rows]:
    """Return the links that are used, and the parents whose families were looked at and tell nothing about any count.

    Families of up to `MOST_LINKED` areas are used wherever they are: probabilities are linked by them. Larger ones are used
    unless columns that add up in small families would be lost, or more areas would have to be worked on together than fit:
    then those go first that tell nothing.
    """
    parent, nothing = nesting.parent.copy(), np.zeros(0, dtype=np.int64)
    children = np.bincount(parent[parent >= 0], minlength=len(parent))
    inside = np.flatnonzero(parent >= 0)
    small = np.isin(np.arange(len(nesting.levels)), nesting.level[inside[children[parent[inside]] <= MOST_LINKED]])
    kept = np.ones(len(model.columns), dtype=np.bool_)
    for number in np.flatnonzero(small).tolist():
        kept &= nesting.levels[number].columns[model.positions]
    for number, level in enumerate(nesting.levels):
        if small.any() and not small[number] and (kept & ~level.columns[model.positions]).any():
            parent[(nesting.level == number) & (parent >= 0)] = -1
    if (heads := _crowded(parent, ALWAYS_TOGETHER // len(model.columns))).size:
        nothing = heads[~telling(heads)]
        parent[np.isin(parent, nothing)] = -1
    while (heads := _crowded(parent, MOST_TOGETHER // len(model.columns))).size:
        # In each of the groups that are too large, the largest family.
        top = _tops(parent)
        order = heads[np.lexsort((heads, -children[heads], top[heads]))]
        first = order[np.r_[True, top[order][1:] != top[order][:-1]]]
        parent[np.isin(parent, first)] = -1
    return parent, nothing


def _crowded(parent: Rows, most: int) -> Rows:
    """Return the parents of large families in groups of more than so many areas."""
    top = _tops(parent)
    crowded = np.bincount(top, minlength=len(parent))[top] > most
    children = np.bincount(parent[parent >= 0], minlength=len(parent))
    return np.flatnonzero(crowded & (children > MOST_LINKED))


def _tops(parent: Rows) -> Rows:
    top = np.where(parent >= 0, parent, np.arange(len(parent)))
    while (top != top[top]).any():
        top = top[top]
    return top


def nesting_levels(nesting: Nesting, parent: Rows, nothing: Rows) -> list[dict[str, Any]]:
    """Return the pairs of levels as plain data, with how many families are used, and how many for probabilities too.

    `parent` and `nothing` are what `links_to_use` returned: families that were looked at and tell nothing are used.
    """
    children = np.bincount(nesting.parent[nesting.parent >= 0], minlength=len(nesting.parent))
    found = []
    for number, level in enumerate(nesting.levels):
        here = (nesting.parent >= 0) & (nesting.level == number)
        heads = np.unique(nesting.parent[here & ((parent >= 0) | np.isin(nesting.parent, nothing))])
        linked = int((children[heads] <= MOST_LINKED).sum())
        found.append(level.to_json() | {"linked": linked, "used": len(heads)})
    return found
