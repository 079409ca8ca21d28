"""Where sums of keys come from: an agency's own, added up from records; or drawn ones, which add up across areas, too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError
from unround.mechanisms.base import IntArray
from unround.protection.keys import ONE, CellKeys, Keys
from unround.release import Release
from unround.tables.spool import Spool
from unround.tables.tidy import as_table

KEY = "key"  # the column that holds them


class GivenKeys:
    """The sums of keys of all cells, from a table with one row per count.

    - `path`: CSV or Parquet: the areas and codes of the table of true counts, under the same names, and `key`. Of a sum
      of keys only the part after the decimal point counts. The table of true counts itself will do if it has that column.
    - `release`: The table of true counts.
    - `spool`: The same, as it was read.
    - `exact`: Columns that are published as they are, and need no keys.
    """

    def __init__(self, path: Path, release: Release, spool: Spool, exact: frozenset[int]) -> None:
        self._path, self._release = path, release
        frame = _read(path, (*release.areas, *release.axes))
        areas = spool.areas.select(pl.col(axis).cast(pl.String) for axis in release.areas).with_row_index("_area")
        codes = {axis: [column.codes[at] for column in release.columns] for at, axis in enumerate(release.axes)}
        columns = pl.DataFrame(codes, schema=dict.fromkeys(release.axes, pl.String)).with_row_index("_column")
        matched = frame.join(areas, on=release.areas).join(columns, on=release.axes)
        at = matched["_area"].to_numpy(), matched["_column"].to_numpy()
        key = matched[KEY].to_numpy()
        self._keys: Keys = np.zeros((spool.rows, len(release.columns)), dtype=np.uint64)
        self._keys[at] = ((key % 1.0) * ONE).astype(np.uint64)
        self._known: NDArray[np.bool_] = np.zeros(self._keys.shape, dtype=np.bool_)
        self._known[at] = True
        self._known[:, sorted(exact)] = True

    def of(self, start: int, true: IntArray) -> Keys:
        """Return the sums of keys of the areas from a position on."""
        here = slice(start, start + len(true))
        missing = (true > 0) & ~self._known[here]
        if missing.any():
            column = self._release.columns[int(np.flatnonzero(missing.any(axis=0))[0])]
            raise InputError(
                f"{self._path} has no {KEY} for {missing.sum():,} counts of the table, such as those of {column.key}: every "
                "count above 0 that is not published exactly needs the sum of its records' keys."
            )
        return self._keys[here]


def _read(path: Path, names: tuple[str, ...]) -> pl.DataFrame:
    """Return the areas and codes as text, and keys as numbers; rows without a key are left out."""
    try:
        frame = as_table(path).frame
    except InputError as problem:
        raise InputError(f"the sums of keys cannot be read: {problem}") from None
    lacking = [name for name in (*names, KEY) if name not in frame.columns]
    if lacking:
        raise InputError(
            f"{path} has no column {lacking[0]}: sums of keys need the columns {', '.join(names)}, as in the table of true "
            f"counts, and {KEY}."
        )
    try:
        typed = frame.select(*(pl.col(name).cast(pl.String) for name in names), pl.col(KEY).cast(pl.Float64))
    except pl.exceptions.PolarsError:
        raise InputError(f"the column {KEY} of {path} must hold numbers: sums of keys from 0 to 1.") from None
    typed = typed.drop_nulls(KEY)
    if not typed[KEY].is_finite().all():
        raise InputError(f"the column {KEY} of {path} must hold finite numbers.")
    return typed


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
