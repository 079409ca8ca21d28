"""The values of figures: decimals as they are printed become whole multiples of `FIGURE_UNIT`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from unround.release import FIGURE_ABSENT, FIGURE_UNIT, FigureValues
from unround.tables.symbols import NUMBER, SIGNS, joined_digits

_UNITS = FIGURE_UNIT.denominator
LARGEST = 10**11
"""No figure is larger: floats keep numbers up to here to the last unit."""
_NEAR = 0.01
"""How far from a whole number of units, in units, a printed number may seem to be for being kept as a float."""


def as_figures(text: pl.Series, symbol: pl.Series | None = None) -> FigureValues:
    """Return the numbers in cells, in `FIGURE_UNIT`.

    What is no number, what has more decimals than are kept, and what stands beside a sign that says there is none, is
    `FIGURE_ABSENT`: it is never rounded.

    Examples
    --------
    >>> as_figures(pl.Series(["12.4", " 3e+05", "x", "1,234.5"])).tolist()[::3]
    [124000, 12345000]
    """
    if text.dtype == pl.String:
        bare = joined_digits(text)
        numbers = bare.set(~bare.str.contains(NUMBER).fill_null(False), None).cast(pl.Float64, strict=False)
    else:
        numbers = text.cast(pl.Float64, strict=False)
    if symbol is not None:
        numbers = numbers.set(symbol.str.strip_chars().str.to_lowercase().is_in(list(SIGNS)).fill_null(False), None)
    value = numbers.fill_null(np.nan).to_numpy() * _UNITS
    small = np.abs(value) <= LARGEST * _UNITS  # which nothing is not
    whole = np.rint(np.where(small, value, 0.0))
    exact = small & (np.abs(np.where(small, value, 0.0) - whole) <= _NEAR)
    return np.where(exact, whole, FIGURE_ABSENT).astype(np.int64)


def figures_of(columns: Sequence[pl.Series], rows: int) -> FigureValues:
    """Return columns of figures side by side: rows × columns."""
    found = np.full((rows, len(columns)), FIGURE_ABSENT, dtype=np.int64)
    for at, column in enumerate(columns):
        found[:, at] = as_figures(column)
    return found
