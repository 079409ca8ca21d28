"""Reshape: a table with a header, long or wide, becomes one row per cell, as a description says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from unround.errors import InputError
from unround.release import NOT_APPLICABLE, NOT_AVAILABLE, SUPPRESSED, UNRELIABLE, Release
from unround.small_files import shortened
from unround.tables.cells import assemble
from unround.tables.description import AxisRule, Description, near
from unround.tables.grid import HeadedTable, letters, refuse_merged_counts
from unround.tables.symbols import plain_numbers

CELL = "count of the cell"
"""The column of counts in the long form of a wide table."""

STATUSES: Mapping[str, int] = {
    # Of SDMX (CL_OBS_STATUS), and below of Eurostat; others, such as A (normal) or P (provisional), go with a count.
    "q": SUPPRESSED, "m": NOT_APPLICABLE, "l": NOT_AVAILABLE, "o": NOT_AVAILABLE, "h": NOT_AVAILABLE, "j": NOT_AVAILABLE,
    "c": SUPPRESSED, "z": NOT_APPLICABLE,
    # Of Statistics Canada.
    "x": SUPPRESSED, "..": NOT_AVAILABLE, "...": NOT_APPLICABLE, "f": UNRELIABLE,
}  # fmt: skip
"""What a status beside an empty cell says of it, in lower case."""


SAFE, HIDDEN = frozenset("szpe"), frozenset("uxm")
"""The statuses of sdcTable and τ-ARGUS: of counts that are printed, and of those that suppression hides."""


def read_headed(table: HeadedTable, description: Description, *, form: str = "tidy", notes: Sequence[str] = ()) -> Release:
    """Return the release that a table with a header holds."""
    long, described = to_long(table, description)
    return assemble(long, described, source=table.source, form=form, size=table.size, notes=[*table.notes, *notes])


def to_long(table: HeadedTable, description: Description) -> tuple[pl.DataFrame, Description]:
    """Return a table as one row per cell, and what describes that."""
    table = _filled(table, description)
    if description.wide:
        long, described = _melted(table, description)
    else:
        names = table.names
        long, described = table.frame.filter(~pl.all_horizontal(pl.all().is_null())), description
        if description.value in names:
            refuse_merged_counts(table, [names.index(description.value)], table.source)
    return _with_statuses(_with_plain_numbers(long, described), described), replace(described, status=None)


def value_columns(table: HeadedTable, description: Description) -> list[int]:
    """Return the columns of a wide table that hold counts."""
    names = table.names
    if description.counts:
        return [_place(names, name, description, table.source) for name in description.counts]
    taken = {name for axis in description.axes for name in _taken(axis)} | set(description.ignore)
    return [at for at, name in enumerate(names) if name not in taken and not table.column(at).is_null().all()]


def _columns_of(axis: AxisRule) -> list[str]:
    own = [axis.column] if axis.header is None else []  # a column of headings is called like its axis
    return [*own, *(name for name in (axis.label, axis.level, axis.parent) if name is not None)]


def _taken(axis: AxisRule) -> list[str]:
    """Return the columns that hold no counts because of an axis."""
    return [*_columns_of(axis), *([axis.within] if axis.within is not None else [])]


def _place(names: Sequence[str], name: str, description: Description, source: str) -> int:
    if name not in names:
        raise InputError(
            f"{description.where} names the column {name!r}, which {source} does not have.{near(name, names)} Its columns "
            f"are {shortened([one for one in names if one])}."
        )
    return names.index(name)


def within_groups(codes: pl.Series, groups: pl.Series) -> pl.Series:
    """Return codes of which those that are there in several groups carry the name of their group.

    >>> within_groups(pl.Series(["A", "Total", "B", "Total"]), pl.Series(["North", "North", "South", "South"])).to_list()
    ['A', 'Total (North)', 'B', 'Total (South)']
    """
    pairs = pl.DataFrame({"code": codes, "group": groups}).unique()
    often = pairs["code"].value_counts().filter(pl.col("count") > 1)["code"]
    return (codes + " (" + groups + ")").zip_with(codes.is_in(often.implode()) & groups.is_not_null(), codes)


def _filled(table: HeadedTable, description: Description) -> HeadedTable:
    """Repeat codes over the empty cells below them, where the description or merged cells say so."""
    cells, names = table.cells, table.names
    in_columns = [axis for axis in description.axes if axis.header is None and axis.name not in _listed(description)]
    for axis in in_columns:
        at = str(_place(names, axis.column, description, table.source))
        if axis.fill:
            cells = cells.with_columns(pl.col(at).fill_null(strategy="forward"))
        for one in table.merged:
            inside = [row for row, number in enumerate(table.numbers) if one.top < number <= one.bottom + 1]
            if str(one.left) == at and one.left == one.right and len(inside) > 1:
                within = pl.int_range(pl.len()).is_in(inside)
                code = pl.lit(cells[at][inside[0]])
                cells = cells.with_columns(pl.when(within).then(code).otherwise(pl.col(at)).alias(at))
    for axis in in_columns:
        if axis.within is not None:
            own, group = (str(_place(names, name, description, table.source)) for name in (axis.column, axis.within))
            groups = cells[group].fill_null(strategy="forward").str.strip_chars()
            cells = cells.with_columns(within_groups(cells[own].str.strip_chars(), groups).alias(own))
    return replace(table, cells=cells)


def _listed(description: Description) -> set[str]:
    """Return the axes whose codes are listed under [counts]."""
    return set(next(iter(description.counts.values()), {}))


def _melted(table: HeadedTable, description: Description) -> tuple[pl.DataFrame, Description]:
    """Return a wide table as one row per cell."""
    names, listed = table.names, _listed(description)
    values = value_columns(table, description)
    refuse_merged_counts(table, values, table.source)
    if not values:
        raise InputError(f"{table.source} has no column of counts besides its axes; check {description.where}.")
    across = [axis for axis in description.axes if axis.header is not None or axis.name in listed]
    down = [axis for axis in description.axes if axis not in across]
    codes = [_codes(table, description, axis, values) for axis in across]
    kept = {name: _place(names, name, description, table.source) for axis in down for name in _columns_of(axis)}
    numbers = [table.number(at) for at in range(table.cells.height)]
    cells = table.cells.with_columns(pl.Series(_ROW, numbers, dtype=pl.UInt32))
    cells = cells.filter(~pl.all_horizontal(pl.col(str(at)).is_null() for at in {*kept.values(), *values}))
    for axis in down:
        _require_codes(cells, axis.column, str(kept[axis.column]), table.source)
    kinds = {cells[str(at)].dtype for at in values}
    kind = pl.String() if pl.String in kinds else pl.Float64() if any(one.is_float() for one in kinds) else pl.Int64()
    index = [pl.col(str(at)).alias(_away(name)) for name, at in kept.items()]
    wide = cells.select(*index, *(pl.col(str(at)).cast(kind) for at in values))
    long = wide.unpivot(
        on=[str(at) for at in values], index=[_away(name) for name in kept], variable_name="at", value_name=CELL
    )
    places = {axis.name: dict(zip(map(str, values), said, strict=True)) for axis, said in zip(across, codes, strict=True)}
    long = long.with_columns(
        pl.col("at").replace_strict(said, return_dtype=pl.String).alias(f"{name} (axis)") for name, said in places.items()
    ).drop("at")
    axes = tuple(
        replace(axis, column=f"{axis.name} (axis)", header=None)
        if axis in across
        else replace(
            axis,
            column=_away(axis.column),
            label=None if axis.label is None else _away(axis.label),
            level=None if axis.level is None else _away(axis.level),
            parent=None if axis.parent is None else _away(axis.parent),
        )
        for axis in description.axes
    )
    return long, replace(description, value=CELL, axes=axes)


_ROW = "row"


def _require_codes(cells: pl.DataFrame, name: str, at: str, source: str) -> None:
    """Complain of rows that say nothing in a column of codes."""
    empty = cells.filter(pl.col(at).is_null())
    if empty.height:
        rows = "1 row is" if empty.height == 1 else f"{empty.height:,} rows are"
        raise InputError(
            f"{source}: {rows} empty in {name!r}, the first of them row {empty[_ROW][0]:,}. Every row needs a code there: "
            f"fill it in, or delete the row; then run: unround describe {source}"
        )


def _away(name: str) -> str:
    """Return a name that no axis of the header has."""
    return f"{name} (column)"


def _codes(table: HeadedTable, description: Description, axis: AxisRule, values: Sequence[int]) -> list[str]:
    """Return the code that every column of counts has on an axis."""
    if axis.header is None:
        return [codes[axis.name] for codes in description.counts.values()]
    if axis.header > len(table.header):
        raise InputError(
            f"{description.where}: axes.{axis.name} stands in row {axis.header} of the header, which has "
            f"{len(table.header)}. Give the rows of the header: header = [4, 5]."
        )
    row = table.header[axis.header - 1]
    if unnamed := [at for at in values if not row[at]]:
        raise InputError(
            f"{table.source}: {len(unnamed)} columns of counts have no name in the header, the first of them column "
            f"{letters(unnamed[0])}. Name them, then run: unround describe {table.source}"
        )
    return [row[at] for at in values]


def _with_plain_numbers(long: pl.DataFrame, description: Description) -> pl.DataFrame:
    if description.value in long.columns and long[description.value].dtype == pl.String:
        series = plain_numbers(long[description.value], description.thousands, description.decimal)
        return long.with_columns(series.alias(description.value))
    return long


def _with_statuses(long: pl.DataFrame, description: Description) -> pl.DataFrame:
    """Say, where a cell is empty, what the status beside it tells.

    A count beside any status stays a count, unless the statuses are those of a protected table: then readers will not see
    the counts that it hides.
    """
    if description.status is None:
        return long
    if description.status not in long.columns:
        raise InputError(f"{description.where}: status names the column {description.status!r}, which is not there.")
    counts, status = long[description.value].cast(pl.String), long[description.status]
    own = {sign.lower(): _WORDS[code] for sign, code in description.symbols.items() if code in _WORDS}
    why, empty = _reasons(status, own), _are_empty(counts)
    if protects(status):
        hidden = status.str.strip_chars().str.to_lowercase().is_in(HIDDEN)
        why, empty = why.set(hidden, _WORDS[SUPPRESSED]), empty | hidden
    return long.with_columns(why.zip_with(empty & why.is_not_null(), counts).alias(description.value))


def protects(status: pl.Series) -> bool:
    """Whether a column says which cells of a protected table are hidden, as sdcTable and τ-ARGUS do."""
    if status.dtype != pl.String:
        return False
    statuses = set(status.str.strip_chars().str.to_lowercase().drop_nulls().unique())
    return "s" in statuses and bool(statuses & HIDDEN) and statuses <= SAFE | HIDDEN


_WORDS = {SUPPRESSED: "suppressed", NOT_APPLICABLE: "not applicable", NOT_AVAILABLE: "not available", UNRELIABLE: "F"}


def _reasons(status: pl.Series, own: Mapping[str, str]) -> pl.Series:
    """Return why there is no count, as far as a status tells; null where it goes with a count."""
    meaning = {sign: _WORDS[code] for sign, code in STATUSES.items()} | dict(own)
    said = status.cast(pl.String).str.replace(":.*", "").str.strip_chars().str.to_lowercase()  # "C: Confidential"
    return said.replace_strict(meaning, default=None, return_dtype=pl.String)


def _are_empty(counts: pl.Series) -> pl.Series:
    bare = counts.cast(pl.String).str.strip_chars().str.to_lowercase()
    return (bare.is_null() | bare.is_in(["", "nan", ":"])).fill_null(True)


def explained(counts: pl.Series, status: pl.Series) -> int:
    """Return how many empty cells have a status beside them that says why."""
    return int((_are_empty(counts) & _reasons(status, {}).is_not_null()).sum())
