"""Which areas of an audit lie within which: they are put into the same block, and inferred together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unround.audit.model import Model
from unround.linked.kin import MOST_LINKED
from unround.structure import Nest

Rows = NDArray[np.int64]
Bools = NDArray[np.bool_]

FILE = "kin.npz"
"""Where an audit keeps it, in its folder `model/`; there is none where no area lies within another."""


@dataclass(frozen=True, eq=False)
class Kin:
    """How some areas lie within each other; all areas of a family are among them.

    Parameters
    ----------
    parent : array
        For every area the row of the area that it is a part of, or -1.
    alike : array
        For every area whether it has one child, and its numbers are those of the child: not a second rounding.
    sure : array
        For every area whether its children are known to be all of it, to the last person.
    cells : array
        For every cell of the model whether it adds up across areas.
    """

    parent: Rows
    alike: Bools
    sure: Bools
    cells: Bools

    @classmethod
    def of(cls, nest: Nest, model: Model) -> Kin:
        """Take over what was found out about a release: families that are small enough to say something."""
        children = np.bincount(nest.parent[nest.parent >= 0], minlength=len(nest.parent))
        parent = np.where((nest.parent >= 0) & (children[nest.parent] <= MOST_LINKED), nest.parent, -1)
        cells = np.ones(len(model.columns), dtype=np.bool_)
        alike = np.zeros(len(parent), dtype=np.bool_)
        inside = np.flatnonzero(parent >= 0)
        for number in np.unique(nest.level[inside]).tolist():
            level = nest.levels[number]
            cells &= level.columns[model.positions]
            if level.alike:
                heads = parent[inside[nest.level[inside] == number]]
                alike[heads[children[heads] == 1]] = True
        return cls(parent, alike, nest.sure, cells)

    @cached_property
    def top(self) -> Rows:
        """For every area the outermost that it lies in."""
        top = np.where(self.parent >= 0, self.parent, np.arange(len(self.parent)))
        while (top != top[top]).any():
            top = top[top]
        return top

    @property
    def any(self) -> bool:
        """Whether any area lies within another."""
        return bool((self.parent >= 0).any() and self.cells.any())

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

    def reordered(self, order: Rows) -> Kin:
        """Return the same with areas in another order; it may leave out whole families."""
        place = np.full(len(self.parent), -1, dtype=np.int64)
        place[order] = np.arange(len(order))
        parent = self.parent[order]
        return Kin(np.where(parent >= 0, place[parent], -1), self.alike[order], self.sure[order], self.cells)

    def family(self, row: int) -> Rows:
        """Return the areas that an area is linked with, itself first."""
        with_it = np.flatnonzero(self.top == self.top[row])
        return np.concatenate([[row], with_it[with_it != row]])

    def save(self, folder: Path) -> None:
        """Write what `load` reads."""
        np.savez(folder / FILE, parent=self.parent, alike=self.alike, sure=self.sure, cells=self.cells)

    @classmethod
    def load(cls, folder: Path) -> Kin | None:
        """Read it from a folder, if there is any."""
        if not (folder / FILE).exists():
            return None
        with np.load(folder / FILE) as told:
            return cls(*(told[name] for name in ("parent", "alike", "sure", "cells")))
