"""Tables for pandas, column by column: polars itself would need pyarrow for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unround.errors import InputError

if TYPE_CHECKING:
    import polars as pl


def pandas_frame(table: pl.DataFrame) -> Any:
    """Return a table of polars as one of pandas; whole numbers stay whole where some are missing."""
    try:
        import pandas as pd
    except ImportError:
        raise InputError("pandas is not installed: `pip install pandas`, or use to_polars().") from None
    return pd.DataFrame({column.name: _column(column, pd) for column in table})


def _column(column: pl.Series, pd: Any) -> Any:
    if column.dtype.is_nested():
        return pd.Series([None if one is None else one.to_numpy() for one in column], dtype=object)
    if column.dtype.is_integer() and column.null_count():
        return pd.array(column.to_list(), dtype="Int64")
    return column.to_numpy() if column.dtype.is_numeric() else column.to_list()
