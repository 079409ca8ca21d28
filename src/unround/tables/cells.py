"""Cells: a table with a header, long or wide, and a description that says what its columns mean, become a Release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError
from unround.release import (
    AREA,
    FIGURE_ABSENT,
    NOT_APPLICABLE,
    NOT_AVAILABLE,
    SUPPRESSED,
    UNREADABLE,
    UNRELIABLE,
    Column,
    Counts,
    FigureValues,
    Release,
    exactly,
)
from unround.small_files import shortened
from unround.tables.description import AREAS, CHARACTERISTIC, SEX, AxisRule, Description, SumRule, decided, near
from unround.tables.grid import HeadedTable, letters, refuse_merged_counts
from unround.tables.hierarchy import fit, parents, read_hierarchy
from unround.tables.profile import DECIMALS, as_figures, figures_of_table, in_memory
from unround.tables.source import MOST_AREAS, too_many_areas
from unround.tables.symbols import as_counts, plain_numbers

TABLE, ALL = "table", "all"
"""The axis and the code of the only row of a table in which every axis is one of columns."""

ROOM, EMPTY = 50_000_000, 50
"""A table with more cells than this may have as many empty ones for each that is there."""

_DENSE = 50_000_000
_MOST_COMBINATIONS = 2.0**62
Index = NDArray[np.int64]
_EXACTLY = exactly(0)


@dataclass(frozen=True, slots=True, eq=False)
class _Axis:
    """An axis as the data have it: its codes in the order of their first cells, and which of them each cell has.

    `own` is the code of each row of the table, where codes stand in a column.
    """

    rule: AxisRule
    codes: list[str]
    at: Index
    labels: dict[str, str]
    own: Index
    sums: tuple[SumRule, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """All cells of a table, long or wide.

    - `rows`: Its rows, with the columns that axes name.
    - `values`: What stands in the cells, column of counts by column; `row` is the row that each is in.
    - `across`: By axis of the header, the code of every column of counts.
    """

    rows: pl.DataFrame
    values: pl.Series
    row: Index
    across: Mapping[str, Sequence[str]]


def assemble(
    table: pl.DataFrame,
    description: Description,
    *,
    source: str,
    form: str = "tidy",
    size: int = 0,
    notes: Sequence[str] = (),
) -> Release:
    """Return the release that a table in long form holds."""
    if not table.height:
        raise InputError(f"{source} has a header but no rows; there is nothing to read.")
    _require(table, description, source)
    cells = _Cells(table, table[description.value], np.arange(table.height), {})
    return _release(cells, description, source, form, size, list(notes))


def _release(cells: _Cells, description: Description, source: str, form: str, size: int, notes: list[str]) -> Release:
    """Return the release that cells make up."""
    row_rules, column_rules = description.split()
    census = {rule.name for rule in column_rules} in ({name, SEX} for name in CHARACTERISTIC)
    if census:
        column_rules = tuple(sorted(column_rules, key=lambda rule: rule.name == SEX))
    rows = [_with_sums(_axis(cells, rule, source), description, notes) for rule in row_rules]
    columns = [_with_sums(_axis(cells, rule, source), description, notes) for rule in column_rules]
    axes = sorted([*rows, *columns], key=lambda axis: description.axes.index(axis.rule))
    _check_codes([*rows, *columns], description)

    row, row_codes = _places(rows, len(cells.row))
    column, column_codes = _places(columns, len(cells.row))
    values, fractions = _values(cells.values, description, notes)
    require_room(len(row_codes), len(column_codes), len(cells.row), source)
    counts = np.full((len(row_codes), len(column_codes)), NOT_AVAILABLE, dtype=np.int32)
    _refuse_twice(row * len(column_codes) + column, counts.size, cells, axes, source)
    counts[row, column] = values

    of_cells = [rule for rule in description.rules if description.is_of_cells(rule)]
    for rule in of_cells:
        chosen = np.ix_(_where(rows, row_codes, rule.where), _where(columns, column_codes, rule.where))
        counts[chosen] = np.where(counts[chosen] >= 0, _EXACTLY + counts[chosen], counts[chosen])

    above = parents({item.total: item.parts for item in columns[0].sums if len(item.parts) > 1})
    stands = _stands(above)
    made = [_column(codes, columns, stands, census) for codes in column_codes]
    _refuse_same_key(made, source)
    shows = np.zeros(len(made), dtype=bool)
    shows[column[fractions]] = True
    figures = figures_of_table(made, shows.tolist(), [axis.rule.name for axis in columns], description)
    named = {figure.name for figure in figures}
    shows |= np.array([item.key in named for item in made])
    kept = [item for item, out in zip(made, shows, strict=True) if not out]
    odd = tuple(item.key for item, out in zip(made, shows, strict=True) if out and item.key not in named)
    place = {item.key: at for at, item in enumerate(made)}
    printed = _printed(cells.values, row, column, counts.shape, [place[figure.name] for figure in figures])
    frame = _frame(cells, rows, row, row_codes, notes, census)
    areas = tuple(frame.columns[: max(1, len(rows))])
    release = Release(
        source=source,
        file_format="described" if description.inferred else form,
        columns=tuple(kept),
        axes=("characteristic_id", SEX) if census else tuple(axis.rule.name for axis in columns),
        areas=areas,
        read=in_memory(frame, np.ascontiguousarray(counts[:, ~shows]), size, printed),
        figures=tuple(figures),
        size=size,
        product=description.product,
        left_out={DECIMALS: odd} if odd else {},
        notes=notes,
    )
    return decided(release, description, [rule for axis in columns for rule in axis.sums])


def _where(axes: Sequence[_Axis], codes: Sequence[tuple[str, ...]], where: Mapping[str, tuple[str, ...]]) -> Index:
    """Return which combinations of codes a rule is about."""
    names = [axis.rule.name for axis in axes]
    wanted = [(at, set(where[name])) for at, name in enumerate(names) if name in where]
    return np.array(
        [at for at, combination in enumerate(codes) if all(combination[place] in some for place, some in wanted)],
        dtype=np.int64,
    )


def _printed(values: pl.Series, row: Index, column: Index, shape: tuple[int, ...], places: Sequence[int]) -> FigureValues:
    """Return the values of figures, rows × figures."""
    printed = np.full((shape[0], len(places)), FIGURE_ABSENT, dtype=np.int64)
    if places:
        at = np.full(shape[1], -1, dtype=np.int64)
        at[list(places)] = np.arange(len(places))
        here = at[column] >= 0
        printed[row[here], at[column[here]]] = as_figures(values.filter(pl.Series(here)))
    return printed


def _require(table: pl.DataFrame, description: Description, source: str) -> None:
    wanted = {description.value: "value"}
    for axis in description.axes:
        for key, name in (("column", axis.column), ("name", axis.label), ("level", axis.level), ("parent", axis.parent)):
            if name is not None:
                wanted.setdefault(name, f"axes.{axis.name}.{key}")
    for name, key in wanted.items():
        if f"{name}_duplicated_0" in table.columns:  # what polars calls the second of a name
            raise InputError(f"{source} has two columns called {name!r}, and {key} names it; rename one of them.")
        if name not in table.columns:
            raise InputError(
                f"{description.where}: {key} names the column {name!r}, which {source} does not "
                f"have.{near(name, table.columns)} "
                f"Its columns are {shortened(table.columns)}."
            )


def code_text(series: pl.Series) -> pl.Series:
    """Return codes or names as text: 7, whether the file has it as 7 or as 7.0."""
    if series.dtype.is_nested() or series.dtype in (pl.Binary, pl.Object):
        raise InputError(f"the column {series.name!r} holds {series.dtype}, not codes or names; write it as text.")
    if series.dtype.is_float() and (series.drop_nulls().drop_nans() % 1 == 0).all():
        series = series.fill_nan(None).cast(pl.Int64)
    return series.cast(pl.String).str.strip_chars()


def numbered(series: pl.Series) -> tuple[pl.Series, Index]:
    """Return the codes in a column, in the order in which they come up first, and which of them each cell has."""
    codes = series.unique(maintain_order=True)
    return codes, series.cast(pl.Enum(codes)).to_physical().to_numpy().astype(np.int64)


def _axis(cells: _Cells, rule: AxisRule, source: str) -> _Axis:
    if rule.name in cells.across:
        codes, at = numbered(pl.Series(cells.across[rule.name], dtype=pl.String))
        return _Axis(rule, list(codes), np.repeat(at, cells.rows.height), dict(zip(codes, codes, strict=True)), at[:0])
    series = code_text(cells.rows[rule.column])
    empty = (series.is_null() | (series == "")).fill_null(True)
    if empty.any():
        raise InputError(
            f"{source}: {empty.sum():,} rows are empty in {rule.column!r}, the first of them row "
            f"{(empty.arg_max() or 0) + 1:,} below the header. Every cell needs all its codes: fill them in, or delete "
            f"the row."
        )
    codes, code_of = numbered(series)
    names = list(codes)
    if rule.label is not None:
        shown = code_text(cells.rows[rule.label])
        first = first_of(code_of, len(codes))
        names = [name or code for name, code in zip(shown.gather(first), codes, strict=True)]
    return _Axis(rule, list(codes), code_of[cells.row], dict(zip(codes, names, strict=True)), code_of)


def _with_sums(axis: _Axis, description: Description, notes: list[str]) -> _Axis:
    """Gather the sums of an axis from its own, its hierarchy, and those at the end of the description."""
    rule = axis.rule
    sums = list(rule.sums)
    if rule.hierarchy is not None:
        tree, remarks = fit(read_hierarchy(rule.hierarchy, axis.codes, rule.total), axis.codes, str(rule.hierarchy))
        notes += remarks
        sums += [SumRule(rule.name, total, parts) for total, parts in tree.items()]
    sums += [item for item in description.sums if item.axis == rule.name]
    return replace(axis, sums=tuple(dict.fromkeys(sums)))


def _check_codes(axes: Sequence[_Axis], description: Description) -> None:
    """Refuse codes in the description that never occur: one of them is misspelt, or the data are not what they should be."""
    for axis in axes:
        said = [code for item in axis.sums for code in (item.total, *item.parts)]
        said += [code for rule in description.rules for code in rule.where.get(axis.rule.name, ())]
        gone = [code for code in dict.fromkeys(said) if code not in axis.labels]
        if gone:
            listed = ", ".join(map(repr, gone[:5])) + (f" and {len(gone) - 5} more" if len(gone) > 5 else "")
            known = ", ".join(axis.codes[:8]) + (", …" if len(axis.codes) > 8 else "")
            raise InputError(
                f"{description.where} has codes of {axis.rule.name!r} that do not occur in the data: {listed}."
                f"{near(gone[0], axis.codes)} The column {axis.rule.column!r} holds {known}."
            )


def require_room(rows: int, columns: int, cells: int, source: str) -> None:
    """Refuse a table with too many rows, or in which hardly any two rows have a column in common."""
    if rows > MOST_AREAS:
        raise too_many_areas(source)
    if rows * columns > max(ROOM, EMPTY * cells):
        raise InputError(
            f"{source} would be a table of {rows:,} rows and {columns:,} columns for {cells:,} cells: its rows have "
            "hardly any column in common. Check which axes are rows and which are columns."
        )


def first_of(at: Index, many: int) -> Index:
    """Return where each of `many` numbers occurs first."""
    first = np.empty(many, dtype=np.int64)
    first[at[::-1]] = np.arange(len(at) - 1, -1, -1)
    return first


def _places(axes: Sequence[_Axis], cells: int) -> tuple[Index, list[tuple[str, ...]]]:
    """Give every combination of codes that occurs a number, axis by axis in the order of their first cells."""
    if not axes:
        return np.zeros(cells, dtype=np.int64), [(ALL,)]
    shape = tuple(len(axis.codes) for axis in axes)
    if np.prod(shape, dtype=float) > _MOST_COMBINATIONS:
        raise InputError(f"there are too many combinations of {', '.join(axis.rule.name for axis in axes)} to be a table.")
    joint = np.ravel_multi_index([axis.at for axis in axes], shape).astype(np.int64)
    if np.prod(shape, dtype=float) <= _DENSE:
        there = np.zeros(shape, dtype=bool).ravel()
        there[joint] = True
        joint_codes, place = np.flatnonzero(there), (np.cumsum(there) - 1)[joint]
    else:
        joint_codes, place = np.unique(joint, return_inverse=True)
    each = np.unravel_index(joint_codes, shape)
    codes = [[axis.codes[at] for at in along] for axis, along in zip(axes, each, strict=True)]
    return place, list(zip(*codes, strict=True))


def _values(series: pl.Series, description: Description, notes: list[str]) -> tuple[Counts, NDArray[np.bool_]]:
    """Return the counts, and which cells hold a number with a fraction."""
    if not (series.dtype.is_numeric() or series.dtype in (pl.String, pl.Null)):
        raise InputError(f"the column {description.value!r} holds {series.dtype}, not counts; write them as whole numbers.")
    series = series.fill_null("") if series.dtype == pl.String else series
    counts, decimals = as_counts(series, blank=description.missing)
    if description.symbols and series.dtype == pl.String:
        bare = series.str.strip_chars()
        for symbol, means in description.symbols.items():
            at = (bare == symbol).fill_null(False).to_numpy()
            counts[at], decimals[at] = means, False
    fractions = decimals & (counts == UNREADABLE)
    other = (counts == UNREADABLE) & ~decimals
    if other.any():
        texts = series.filter(pl.Series(other)).cast(pl.String).unique(maintain_order=True)
        shown = ", ".join(map(repr, texts[:5]))
        notes.append(
            f"{int(other.sum()):,} cells hold neither a count nor a known symbol: {shown}. "
            'Say what symbols mean in the description: symbols = { "…" = "suppressed" }.'
        )
    return counts, fractions


def repeats(cell: Index, many: int) -> Index:
    """Return the positions of numbers below `many` that occurred before, in ascending order."""
    there = np.zeros(many, dtype=bool)
    there[cell] = True
    if int(there.sum()) == len(cell):
        return np.empty(0, dtype=np.int64)
    order = np.argsort(cell, kind="stable")
    return np.sort(order[1:][cell[order][1:] == cell[order][:-1]])


def _refuse_twice(cell: Index, many: int, cells: _Cells, axes: Sequence[_Axis], source: str) -> None:
    again = repeats(cell, many)
    if len(again):
        twice = int(again[0])
        codes = ", ".join(f"{axis.rule.name} {axis.codes[axis.at[twice]]}" for axis in axes)
        raise InputError(
            f"{source} has {len(again):,} cells more than once, the first of them ({codes}) again in row "
            f"{cells.row[twice] + 1:,} below the header. Delete the repeats; or, if another column distinguishes them, "
            "make it an axis."
        )


def _refuse_same_key(columns: Sequence[Column], source: str) -> None:
    seen: dict[str, Column] = {}
    for column in columns:
        other = seen.setdefault(column.key, column)
        if other is not column:
            raise InputError(
                f"{source}: the codes {other.codes} and {column.codes} both give {column.key!r}. Remove the / from them."
            )


def _column(codes: tuple[str, ...], axes: Sequence[_Axis], stands: Mapping[str, tuple[int, str]], census: bool) -> Column:
    """Return one column. The tree of the first axis gives it its depth and its block."""
    depth, root = stands.get(codes[0], (0, ""))
    shown = [axis.labels[code] for axis, code in zip(axes, codes, strict=True) if axis.rule.name != SEX or len(axes) == 1]
    key = "/".join(codes[:-1] if census and codes[-1] == "total" else codes)
    block = axes[0].labels[root] if root else ""
    return Column(key, codes, ", ".join(shown), block, depth=depth)


def _stands(above: Mapping[str, str]) -> dict[str, tuple[int, str]]:
    """Return how deep every code of a sum stands, and under which code all in all; each is gone through once."""
    stands: dict[str, tuple[int, str]] = {}
    for code in (*above, *above.values()):
        way, top = dict.fromkeys([code]), code
        while top not in stands and top in above and above[top] not in way:
            top = above[top]
            way[top] = None
        depth, root = stands.setdefault(top, (0, top))
        for at in reversed(list(way)):
            if at not in stands:
                depth += 1
                stands[at] = depth, root
    return stands


def _frame(
    cells: _Cells, rows: Sequence[_Axis], row: Index, codes: Sequence[tuple[str, ...]], notes: list[str], census: bool
) -> pl.DataFrame:
    """Return one line for every row of the release: its codes, names, level and parent."""
    many = len(codes)
    table, first = cells.rows, cells.row[first_of(row, many)]
    level, parent = pl.Series([""] * many, dtype=pl.String), pl.Series([None] * many, dtype=pl.String)
    axes, names = {}, {}
    if not rows:
        axes[TABLE] = pl.Series([ALL] * many)
    for place, axis in enumerate(rows):
        rule = axis.rule
        called = AREA if census and len(rows) == 1 and rule.name in AREAS else rule.name
        axes[called] = pl.Series([code[place] for code in codes], dtype=pl.String)
        if rule.label is not None or called == AREA:
            names[f"{called}_name"] = pl.Series([axis.labels[code] for code in axes[called]], dtype=pl.String)
        for column in (rule.label, rule.level, rule.parent):
            if column is not None:
                _note_changes(table[column], axis, column, notes)
        if rule.level is not None:
            level = code_text(table[rule.level]).gather(first).fill_null("")
        if len(rows) > 1 and (rule.parent is not None or axis.sums):
            several = " and ".join(item.rule.name for item in rows)
            notes.append(f"Sums over {rule.name!r} are not used: the rows are combinations of {several}.")
        elif rule.parent is not None:
            parent = code_text(table[rule.parent]).gather(first).replace("", None)
        elif axis.sums:
            above = parents({item.total: item.parts for item in axis.sums})
            parent = pl.Series([above.get(code) for code in axes[called]], dtype=pl.String)
    adjustable = pl.Series([None] * many, dtype=pl.Boolean)  # a description does not say
    return pl.DataFrame({**axes, **names, "level": level, "parent": parent, "adjustable": adjustable})


def _note_changes(series: pl.Series, axis: _Axis, column: str, notes: list[str]) -> None:
    """Tell where one code goes with several names, levels or parents; the first is used."""
    text = code_text(series).fill_null("")
    changes = (text != text.gather(first_of(axis.own, len(axis.codes))[axis.own])).to_numpy()
    if changes.any():
        code = axis.codes[int(axis.own[int(changes.argmax())])]
        notes.append(f"{column!r} differs between rows of {axis.rule.name} {code}, among others; the first value is used.")


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
    all_notes = [*table.notes, *notes]
    if description.status is not None and (description.wide or description.status not in table.names):
        raise InputError(f"{description.where}: status names the column {description.status!r}, which is not there.")
    table = _filled(table, description)
    if description.wide:
        return _release(_wide(table, description), description, table.source, form, table.size, all_notes)
    names = table.names
    long = table.frame.filter(~pl.all_horizontal(pl.all().is_null()))
    if description.value in names:
        refuse_merged_counts(table, [names.index(description.value)], table.source)
        long = long.with_columns(_in_plain_numbers(long[description.value], description))
    long = _with_statuses(long, description)
    return assemble(long, description, source=table.source, form=form, size=table.size, notes=all_notes)


def value_columns(table: HeadedTable, description: Description) -> list[int]:
    """Return the columns of a wide table that hold counts."""
    names = table.names
    if description.counts:
        return [_place(names, name, description, table.source) for name in description.counts]
    taken = {name for axis in description.axes for name in _taken(axis)} | set(description.ignore)
    return [at for at, name in enumerate(names) if name not in taken and not table.column(at).is_null().all()]


def _columns_of(axis: AxisRule) -> list[str]:
    codes = [axis.column] if axis.header is None else []  # a column of headings is called like its axis
    return [*codes, *(name for name in (axis.label, axis.level, axis.parent) if name is not None)]


def _taken(axis: AxisRule) -> list[str]:
    """Return the columns that hold no counts because of an axis."""
    return [*_columns_of(axis), *([axis.within] if axis.within is not None else [])]


def _place(names: Sequence[str], name: str, description: Description, source: str) -> int:
    if name not in names:
        raise InputError(
            f"{description.where} names the column {name!r}, which {source} does not have.{near(name, names)} Its columns "
            f"are {shortened([known for known in names if known])}."
        )
    return names.index(name)


def within_groups(codes: pl.Series, groups: pl.Series) -> pl.Series:
    """Return codes; those that are there in several groups carry the name of their group.

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
        for merged in table.merged:
            inside = [row for row, number in enumerate(table.numbers) if merged.top < number <= merged.bottom + 1]
            if str(merged.left) == at and merged.left == merged.right and len(inside) > 1:
                within = pl.int_range(pl.len()).is_in(inside)
                code = pl.lit(cells[at][inside[0]])
                cells = cells.with_columns(pl.when(within).then(code).otherwise(pl.col(at)).alias(at))
    for axis in in_columns:
        if axis.within is not None:
            inner, group = (str(_place(names, name, description, table.source)) for name in (axis.column, axis.within))
            groups = cells[group].fill_null(strategy="forward").str.strip_chars()
            cells = cells.with_columns(within_groups(cells[inner].str.strip_chars(), groups).alias(inner))
    return replace(table, cells=cells)


def _listed(description: Description) -> set[str]:
    """Return the axes whose codes are listed under [counts]."""
    return set(next(iter(description.counts.values()), {}))


def _wide(table: HeadedTable, description: Description) -> _Cells:
    """Return the cells of a wide table."""
    names, listed = table.names, _listed(description)
    values = value_columns(table, description)
    refuse_merged_counts(table, values, table.source)
    if not values:
        raise InputError(f"{table.source} has no column of counts besides its axes; check {description.where}.")
    across = [axis for axis in description.axes if axis.header is not None or axis.name in listed]
    down = [axis for axis in description.axes if axis not in across]
    codes = {axis.name: _codes(table, description, axis, values) for axis in across}
    kept = {name: _place(names, name, description, table.source) for axis in down for name in _columns_of(axis)}
    numbers = [table.number(at) for at in range(table.cells.height)]
    cells = table.cells.with_columns(pl.Series(_ROW, numbers, dtype=pl.UInt32))
    cells = cells.filter(~pl.all_horizontal(pl.col(str(at)).is_null() for at in {*kept.values(), *values}))
    if not cells.height:
        raise InputError(f"{table.source} has a header but no rows; there is nothing to read.")
    for axis in down:
        _require_codes(cells, axis.column, str(kept[axis.column]), table.source)
    kinds = {cells[str(at)].dtype for at in values}
    # Neither a fraction nor a number that is far too large may be lost, or be an error.
    whole = {pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.Boolean, pl.Null}
    kind = pl.String() if pl.String in kinds else pl.Int64() if kinds <= whole else pl.Float64()
    counts = pl.concat([cells[str(at)].cast(kind).alias("") for at in values])
    rows = cells.select(pl.col(str(at)).alias(name) for name, at in kept.items()) if kept else cells.select(_ROW)
    return _Cells(rows, _in_plain_numbers(counts, description), np.tile(np.arange(rows.height), len(values)), codes)


_ROW = "row"


def _require_codes(cells: pl.DataFrame, name: str, at: str, source: str) -> None:
    """Raise if rows say nothing in a column of codes."""
    empty = cells.filter(pl.col(at).is_null())
    if empty.height:
        rows = "1 row is" if empty.height == 1 else f"{empty.height:,} rows are"
        raise InputError(
            f"{source}: {rows} empty in {name!r}, the first of them row {empty[_ROW][0]:,}. Every row needs a code there: "
            f"fill it in, or delete the row; then run: unround describe {source}"
        )


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


def _in_plain_numbers(counts: pl.Series, description: Description) -> pl.Series:
    return plain_numbers(counts, description.thousands, description.decimal) if counts.dtype == pl.String else counts


def _with_statuses(long: pl.DataFrame, description: Description) -> pl.DataFrame:
    """Say, where a cell is empty, what the status beside it tells.

    A count beside any status stays a count, unless the statuses are those of a protected table: then readers will not see
    the counts that it hides.
    """
    if description.status is None:
        return long
    counts, status = long[description.value].cast(pl.String), long[description.status]
    symbols = {sign.lower(): _WORDS[code] for sign, code in description.symbols.items() if code in _WORDS}
    why, empty = _reasons(status, symbols), _are_empty(counts)
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


def _reasons(status: pl.Series, symbols: Mapping[str, str]) -> pl.Series:
    """Return why there is no count, as far as a status tells; null where it goes with a count."""
    meaning = {sign: _WORDS[code] for sign, code in STATUSES.items()} | dict(symbols)
    said = status.cast(pl.String).str.replace(":.*", "").str.strip_chars().str.to_lowercase()  # "C: Confidential"
    return said.replace_strict(meaning, default=None, return_dtype=pl.String)


def _are_empty(counts: pl.Series) -> pl.Series:
    bare = counts.cast(pl.String).str.strip_chars().str.to_lowercase()
    return (bare.is_null() | bare.is_in(["", "nan", ":"])).fill_null(True)


def explained(counts: pl.Series, status: pl.Series) -> int:
    """Return how many empty cells have a status beside them that says why."""
    return int((_are_empty(counts) & _reasons(status, {}).is_not_null()).sum())
