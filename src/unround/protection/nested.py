"""Keys across areas within areas: where an area is the sum of those inside it, so are the sums of its keys."""

from __future__ import annotations

import numpy as np
import polars as pl

from unround.mechanisms.base import IntArray
from unround.protection.keys import CellKeys, Keys
from unround.tables.spool import Spool

AT_ONCE = 2048  # areas whose keys are worked out together
DEEPEST = 20  # areas inside each other; more can only be a circle


class NestedKeys:
    """The sums of keys of all cells of all areas.

    An area that holds others has the sum of their keys if all of its counts are the sums of theirs; otherwise its keys are
    drawn like those of any other area. Only those of areas that hold others are kept.

    - `cells`: Draws the keys of an area.
    - `spool`: The true counts, negative where there is none.
    - `axes`: What names an area.
    """

    def __init__(self, cells: CellKeys, spool: Spool, axes: tuple[str, ...]) -> None:
        self._cells = cells
        self._names = ["\0".join(map(str, name)) for name in spool.areas.select(axes).iter_rows()]
        self._kept: dict[int, Keys] = {}
        parent = parents_of(spool.areas, axes)
        height = heights(parent)
        inside: dict[int, tuple[Keys, IntArray]] = {}
        for level in range(height.max(initial=0) + 1):
            # The topmost add to nothing; most areas are lowest, and are done again when they are published.
            rows = np.flatnonzero((height == level) & ((parent >= 0) | (level > 0)))
            for start in range(0, len(rows), AT_ONCE):
                here = rows[start : start + AT_ONCE]
                true = spool.pick(here).astype(np.int64)
                keys = self._cells.of([self._names[row] for row in here], true)
                for at, row in enumerate(here.tolist()):
                    if row in inside and (inside[row][1] == true[at])[true[at] >= 0].all():
                        keys[at] = np.where(true[at] > 0, inside[row][0], np.uint64(0))
                    if level:
                        self._kept[row] = keys[at]
                        inside.pop(row, None)
                    if (over := int(parent[row])) >= 0:
                        so_far = inside.setdefault(over, (np.zeros_like(keys[at]), np.zeros_like(true[at])))
                        inside[over] = so_far[0] + keys[at], so_far[1] + np.maximum(true[at], 0)

    def of(self, start: int, true: IntArray) -> Keys:
        """Return the sums of keys of the areas from a position on, whose true counts are given."""
        keys = self._cells.of(self._names[start : start + len(true)], true)
        for at in range(len(true)):
            if start + at in self._kept:
                keys[at] = self._kept[start + at]
        return keys


def parents_of(areas: pl.DataFrame, axes: tuple[str, ...]) -> IntArray:
    """Return for every area the position of the one that it lies in; −1 where that is not in the table."""
    if "parent" not in areas.columns or len(axes) != 1:
        return np.full(areas.height, -1)
    at = {str(code): row for row, code in enumerate(areas[axes[0]].to_list())}
    return np.array([-1 if over is None else at.get(str(over), -1) for over in areas["parent"].to_list()])


def heights(parent: IntArray) -> IntArray:
    """Return how many levels of areas lie inside each.

    >>> heights(np.array([2, 2, 3, -1])).tolist()
    [0, 0, 1, 2]
    """
    height = np.zeros(len(parent), dtype=np.int64)
    for _ in range(DEEPEST):
        inner = parent >= 0
        raised = height.copy()
        np.maximum.at(raised, parent[inner], height[inner] + 1)
        if np.array_equal(raised, height):
            break
        height = raised
    return height
