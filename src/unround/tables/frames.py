"""Frames: a pandas or polars DataFrame, long (one row per cell) or wide (one row per area), becomes a Release.

pandas is neither needed nor imported here: a frame is read by its columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from unround.errors import InputError
from unround.release import Release
from unround.tables.cells import assemble, read_headed
from unround.tables.description import make_description
from unround.tables.grid import HeadedTable

SOURCE = "the frame"
_LONG = ("value", "axes")
_WIDE = (
    "area",
    "name",
    "level",
    "parent",
    "columns",
    "sums",
    "mechanism",
    "mechanisms",
    "exact",
    "missing",
    "symbols",
    "product",
)
_CELL, _COLUMN, _AREA = "count", "column", "area"
_RECORDS = "set of records"


def from_frame(frame: object, description: Mapping[str, Any] | None = None, /, **keys: Any) -> Release:
    """Return the release that a frame holds.

    >>> frame = pl.DataFrame({"town": ["Aa", "Bo"], "all": [20, 15], "young": [5, 10], "old": [10, 10]})
    >>> release = from_frame(frame, area="town", sums={"all": ["young", "old"]}, mechanism="rounding:5", exact=["all"])
    >>> [column.key for column in release.columns], release.proposals[0].parts
    (['all', 'young', 'old'], (1, 2))
    """
    given = {**(description or {}), **keys}
    table = as_polars(frame)
    if any(key in given for key in _LONG):
        if "mechanism" in given:
            given["default"] = given.pop("mechanism")
        return assemble(table, make_description(given, where="from_frame"), source=SOURCE, form="frame")
    return _wide(table, given)


def cells_and_sums(
    cells: Mapping[str, str],
    sums: Iterable[tuple[str, Sequence[str]]],
    source: str,
    mechanisms: Sequence[Mapping[str, Any]] = (),
) -> Release:
    """Return a table of one row: what is printed of every cell, and the sums between cells, whatever they are."""
    frame = pl.DataFrame({_RECORDS: [source] * len(cells), "cell": list(cells), _CELL: list(cells.values())})
    listed = [{"total": total, "parts": list(parts)} for total, parts in sums]
    axes = {_RECORDS: {}, "cell": {"sums": listed}}
    given = {"value": _CELL, "mechanism": "exact", "areas": [_RECORDS], "axes": axes, "mechanisms": list(mechanisms)}
    return replace(from_frame(frame, given), source=source)


def is_flat(frame: object) -> bool:
    """Return whether the columns of a frame have one name each, not several levels of names."""
    return isinstance(frame, pl.LazyFrame) or getattr(getattr(frame, "columns", None), "nlevels", 1) == 1


def as_headed(frame: object) -> HeadedTable:
    """Return a frame as a table with a header; columns of pandas whose names have several levels give it several rows."""
    other: Any = frame
    if is_flat(frame):
        table = as_polars(frame)
        return _headed(table, [(name.strip(),) for name in table.columns])
    if any(level is not None for level in other.index.names):
        other = other.reset_index()
    names = [tuple("" if str(part).startswith("Unnamed:") else str(part) for part in name) for name in other.columns]
    full = [tuple(part or next(p for p in reversed(name) if p) for part in name) for name in names]
    columns = [_series(other.iloc[:, at].tolist()).alias(str(at)) for at in range(len(names))]
    return _headed(pl.DataFrame(columns), full)


def _headed(table: pl.DataFrame, names: list[tuple[str, ...]]) -> HeadedTable:
    cells = table.clone()
    cells.columns = [str(at) for at in range(table.width)]
    return HeadedTable(tuple(zip(*names, strict=True)), cells, SOURCE)


def as_polars(frame: object) -> pl.DataFrame:
    """Return any frame as one of polars, column by column."""
    if isinstance(frame, pl.LazyFrame):
        try:
            frame = frame.collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise InputError(f"the lazy frame cannot be collected: {error}") from error
    if isinstance(frame, pl.DataFrame):
        # What has no text of its own in polars is not a count, and shown as Python shows it.
        odd = [
            name for name, kind in frame.schema.items() if kind.is_nested() or kind in (pl.Duration, pl.Object, pl.Binary)
        ]
        texts = {name: [None if value is None else str(value) for value in frame[name].to_list()] for name in odd}
        return frame.with_columns(pl.Series(name, values, dtype=pl.String) for name, values in texts.items())
    other: Any = frame
    if not hasattr(other, "columns") or not hasattr(other, "to_dict"):
        raise InputError(f"{type(frame).__name__} is not a table; give a DataFrame of pandas or polars.")
    levels = getattr(getattr(other, "index", None), "names", None) or ()
    if any(level is not None for level in levels):
        other = other.reset_index()
    if twice := next((name for name, times in Counter(map(str, other.columns)).items() if times > 1), None):
        raise InputError(f"the frame has several columns called {twice!r}; give each a name of its own.")
    columns: Mapping[Any, list[Any]] = other.to_dict(orient="list")
    if any(not isinstance(name, str | int) for name in columns):
        raise InputError(
            "the frame has columns whose names have several levels; join them into one: frame.columns.map('_'.join)."
        )
    try:
        return pl.DataFrame({str(name): _series(values) for name, values in columns.items()})
    except UnicodeEncodeError as error:
        raise InputError(f"the frame has text that is none in UTF-8: {error.object!r}.") from None


def _series(values: Iterable[Any]) -> pl.Series:
    """Return a column, whatever stands for nothing in it (None, NaN, pandas.NA, NaT)."""
    plain = [None if _is_nothing(value) else value for value in values]
    kinds = {type(value) for value in plain if value is not None}
    if kinds and all(issubclass(kind, int | float | np.integer | np.floating) and kind is not bool for kind in kinds):
        # What no count can be stays what it is, as far as a column of numbers holds it: `symbols` tells of it.
        whole = all(value is None or (abs(value) < 2**62 and value == int(value)) for value in plain)
        return pl.Series([value if value is None else int(value) if whole else _floating(value) for value in plain])
    return pl.Series([None if value is None else str(value) for value in plain], dtype=pl.String)


def _floating(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return float("inf")


def _is_nothing(value: Any) -> bool:
    """Return whether a value stands for nothing: what is so is not equal to itself, or refuses to say."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:
        return True


def _wide(table: pl.DataFrame, given: Mapping[str, Any]) -> Release:
    """Turn a table with one row per area into one with one row per cell, and describe it."""
    for key in given:
        if key not in _WIDE:
            known = ", ".join(_WIDE)
            raise InputError(
                f"there is no argument {key!r} for a frame. A wide frame takes {known}; a long one needs value and axes."
            )
    texts = {key: given[key] for key in ("area", "name", "level", "parent") if given.get(key) is not None}
    if wrong := next((key for key, name in texts.items() if not isinstance(name, str)), None):
        raise InputError(f"{wrong} must be the name of one column, not {texts[wrong]!r}.")
    counts = (
        _names(given["columns"], "columns") if given.get("columns") is not None else _numbers(table, set(texts.values()))
    )
    sums = given.get("sums") or []
    sums = (
        [{"total": total, "parts": list(parts)} for total, parts in sums.items()]
        if isinstance(sums, Mapping)
        else list(sums)
    )
    exact = _names(given.get("exact") or [], "exact")
    mechanisms = dict(given.get("mechanisms") or {})
    asked = [*texts.values(), *counts, *exact, *mechanisms, *(code for item in sums for code in _codes(item))]
    for name in asked:
        if name not in table.columns:
            raise InputError(f"the frame has no column {name!r}. Its columns are {', '.join(table.columns)}.")
    for name in asked[len(texts) + len(counts) :]:
        if name not in counts:
            raise InputError(f"the column {name!r} is not one of the columns that hold counts: {', '.join(counts)}.")
    if not all(name.strip() for name in counts):
        raise InputError("a column of counts has no name; give it one, or list those that are wanted: columns=[…].")
    if not counts:
        raise InputError("the frame has no columns of numbers; name those that hold counts: columns=[…].")
    area = texts.get("area", _AREA)
    rows = table if "area" in texts else table.with_row_index(area).with_columns(pl.col(area).cast(pl.String))
    if table.height and rows[area].is_duplicated().any():
        twice = rows.filter(rows[area].is_duplicated())[area][0]
        raise InputError(
            f"the area {twice!r} has several rows in {area!r}; give each row a name of its own, or reshape the table "
            f"to long form."
        )
    axis = f"{area} (area)" if area == _COLUMN else area
    described = {
        "axes": {
            axis: {"column": area, **{key: name for key, name in texts.items() if key != "area"}},
            _COLUMN: {"header": 1, "sums": sums},
        },
        "areas": [axis],
        "default": given.get("mechanism"),
        "mechanisms": [{"mechanism": how, "where": {_COLUMN: [name]}} for name, how in mechanisms.items()],
        "exact": [{_COLUMN: exact}] if exact else [],
        **{key: given[key] for key in ("missing", "symbols", "product") if given.get(key) is not None},
    }
    kept = rows.select(list(dict.fromkeys((area, *texts.values(), *counts))))
    headed = _headed(kept, [(name,) for name in kept.columns])
    return read_headed(headed, make_description(described, where="from_frame"), form="frame")


def _names(value: object, key: str) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InputError(f"{key} must be a list of columns, not {value!r}.")
    return [str(name) for name in value]


def _codes(item: object) -> list[str]:
    if not isinstance(item, Mapping) or set(item) - {"why"} != {"total", "parts"}:
        raise InputError('sums must be {"total": ["part", "part"]}, or a list of {"total": …, "parts": […]}.')
    return [str(item["total"]), *(str(part) for part in item["parts"])]


def _numbers(table: pl.DataFrame, others: set[str]) -> list[str]:
    return [name for name in table.columns if name not in others and table[name].dtype.is_numeric()]
