"""Sums of keys that an agency has added up from its records, for rounding by them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError
from unround.mechanisms.base import IntArray
from unround.protection.keys import ONE, Keys
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
        found = frame.join(areas, on=release.areas).join(columns, on=release.axes)
        at = found["_area"].to_numpy(), found["_column"].to_numpy()
        key = found[KEY].to_numpy()
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
        frame, _, _ = as_table(path)
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
