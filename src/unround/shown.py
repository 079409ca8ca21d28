"""What all results can do: become plain data, be printed, appear in a notebook, become tables and pages.

Results are made in rooms that know nothing of how they are shown. This is the one place where the arrow points down the map:
`unround.show` is looked up by name when somebody wants to see a result, and finds the document for its class.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from importlib import import_module
from textwrap import shorten
from typing import TYPE_CHECKING, Any, ClassVar, cast

from unround.errors import InputError

if TYPE_CHECKING:
    import polars as pl


def plain(value: Any) -> Any:
    """Return a value as plain data, as JSON has it: results as they say themselves, fractions as numbers, paths as text."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name if isinstance(name, str) else str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return float(value) if isinstance(value, Fraction) else str(value) if isinstance(value, os.PathLike) else value


class Plain:
    """A record that becomes plain data: its fields but those in `ASIDE`, and the properties in `ALSO`."""

    __slots__ = ()
    ALSO: ClassVar[tuple[str, ...]] = ()
    ASIDE: ClassVar[tuple[str, ...]] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        names = [field.name for field in fields(cast(Any, self)) if field.name not in self.ASIDE]
        return {name: plain(getattr(self, name)) for name in (*names, *self.ALSO)}


class Shown:
    """A result that shows itself: `print` gives what a terminal would show, a notebook makes a card, and `save` a page."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls):  # else `dataclass` would write out every field, by the page
            cls.__repr__ = Shown.__repr__  # type: ignore[method-assign]

    def __str__(self) -> str:
        return str(_show().text(self))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {shorten(str(self), 100, placeholder=' …')}>"

    def _repr_html_(self) -> str:
        return str(_show().card(self))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as a page with its pictures: one .html file that needs no other."""
        _show().save(self, path)


class Tabular(Shown):
    """A result that is a table as well."""

    __slots__ = ()

    def to_polars(self) -> pl.DataFrame:
        """Return it as a table of polars."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return it as a table of pandas; whole numbers stay whole where some are missing."""
        try:
            import pandas as pd
        except ImportError:
            raise InputError("pandas is not installed: `pip install pandas`, or use to_polars().") from None
        return pd.DataFrame({column.name: _column(column, pd) for column in self.to_polars()})


def frame_of(cells: Sequence[Any], **columns: type[pl.DataType]) -> pl.DataFrame:
    """Return a row for every cell; the last columns are lists: the possible counts, and how likely each is."""
    import polars as pl

    series = {name: pl.Series([getattr(cell, name) for cell in cells], dtype=kind) for name, kind in columns.items()}
    pairs = [cell.distribution for cell in cells]
    counts = pl.Series([[count for count, _ in cell] for cell in pairs], dtype=pl.List(pl.Int64))
    chances = pl.Series([[chance for _, chance in cell] for cell in pairs], dtype=pl.List(pl.Float64))
    return pl.DataFrame({**series, "counts": counts, "probabilities": chances})


def _show() -> Any:
    return import_module("unround.show")


def _column(column: pl.Series, pd: Any) -> Any:
    """Return a column without pyarrow, which polars itself would need."""
    if column.dtype.is_nested():
        return pd.Series([None if value is None else value.to_numpy() for value in column], dtype=object)
    if column.dtype.is_integer() and column.null_count():
        return pd.array(column.to_list(), dtype="Int64")
    return column.to_numpy() if column.dtype.is_numeric() else column.to_list()
