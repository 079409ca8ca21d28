"""Tidy tables written: one row per count, a few areas at a time, so that a table of any length takes little memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.mechanisms.base import BoolArray
from unround.small_files import toml_text

PART_ROWS = 1_000_000
VALUE = "published"  # the column of counts


def tidy_toml(comment: str, data: str, **content: Any) -> str:
    """Describe such a table; `content` is what is to be said of it besides where its counts stand."""
    return toml_text({"format": "tidy", "data": data, "value": VALUE, "missing": "suppressed", **content}, comment)


Numbers = tuple[NDArray[Any], BoolArray | None]
"""One column of the table, areas × counts, and where nothing stands in it."""


class TidyWriter:
    """A Parquet file of counts, written part by part.

    - `path`: The file.
    - `codes`: What names a count within its area: one code per count on every axis.
    """

    def __init__(self, path: Path, codes: Mapping[str, pl.Series] | None = None) -> None:
        self._path, self._codes = path, codes or {}
        self._parts, self._waiting, self._rows = list[Path](), list[pl.DataFrame](), 0

    def add(self, areas: pl.DataFrame, numbers: Mapping[str, Numbers], there: BoolArray | None = None) -> None:
        """Append the counts of some areas, or those of them that are `there`; all columns of `areas` are written."""
        self.append(self.rows_of(areas, numbers, there))

    def rows_of(self, areas: pl.DataFrame, numbers: Mapping[str, Numbers], there: BoolArray | None = None) -> pl.DataFrame:
        """Return the rows of some counts."""
        first, _ = next(iter(numbers.values()))
        area, count = np.nonzero(np.ones(first.shape, dtype=np.bool_) if there is None else there)
        columns = {name: areas[name].gather(area) for name in areas.columns}
        columns |= {axis: codes.gather(count) for axis, codes in self._codes.items()}
        for name, (values, absent) in numbers.items():
            shown = pl.Series(values[area, count])
            columns[name] = shown if absent is None else shown.set(pl.Series(absent[area, count]), None)
        return pl.DataFrame(columns)

    def append(self, rows: pl.DataFrame) -> None:
        """Append rows."""
        self._waiting.append(rows)
        self._rows += len(rows)
        if self._rows >= PART_ROWS:
            self._flush()

    def _flush(self) -> None:
        part = self._path.with_name(f"{self._path.stem}.part{len(self._parts):05d}")
        pl.concat(self._waiting).write_parquet(part, row_group_size=PART_ROWS)
        self._parts.append(part)
        self._waiting, self._rows = [], 0

    def close(self) -> None:
        """Join the parts."""
        if self._waiting:
            self._flush()
        if len(self._parts) == 1:
            self._parts[0].replace(self._path)
        else:
            pl.scan_parquet(self._parts, glob=False).sink_parquet(self._path, row_group_size=PART_ROWS)
            for part in self._parts:
                part.unlink()
