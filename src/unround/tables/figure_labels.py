"""What the rates, means and medians of a table are of, as far as labels and positions tell.

A percentage belongs to lines above it: those of the same name (rows "0 to 17 years (%)" below "Prevalence of low income",
after "0 to 17 years" below "In low income" and below the total), or the line that it is indented under. A mean or a median
belongs to a table of groups with edges: ages, incomes, sizes. All this is proposed only; the data decide (`structure`).

Values as they are printed become whole multiples of `FIGURE_UNIT`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import polars as pl

from unround.errors import InputError
from unround.figures import Figure, FigureKind, Group
from unround.release import FIGURE_ABSENT, FIGURE_UNIT, Column, FigureValues
from unround.tables.description import SEX, Description, near
from unround.tables.labels import edges_of, finest
from unround.tables.lines import COUNT, TOTAL, TableLine, key_of, kinds_of
from unround.tables.symbols import NUMBER, SIGNS, joined_digits

KINDS: Mapping[str, FigureKind] = {
    "percentage": FigureKind.RATE,
    "rate": FigureKind.RATE,
    "average": FigureKind.MEAN,
    "median": FigureKind.MEDIAN,
}
"""Which kinds of numbers, as `kinds.kind_of` calls them, are figures."""

_NOTE = re.compile(r"\s*\(\d+\)\s*$")
_PERCENT = re.compile(r"\s*\(%\)\s*")
_CHANGE = re.compile(r"\bchange\b|\bcomposition of\b")
_LABOUR = {
    "participation rate": ("in the labour force", ""),
    "employment rate": ("employed", ""),
    "unemployment rate": ("unemployed", "in the labour force"),
}
"""Rates with names of their own: whom they count, and out of whom; "" for everybody in the table."""
_FEW = re.compile(r"one-person|two-or-more|economic famil|couple|one-parent|full-year|part-year|not in")
_INCOME = re.compile(r"\b(total|after-tax|market|employment) income\b")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_PERSONS = (
    (
        re.compile(r"\bhousehold size\b", re.IGNORECASE),
        re.compile(r"^number of persons in private households", re.IGNORECASE),
    ),
    (
        re.compile(r"\bsize of census families\b", re.IGNORECASE),
        re.compile(r"\bpersons in census families\b", re.IGNORECASE),
    ),
)
"""Averages of persons, and the lines that count those persons."""
_FAR = 100
"""Lines that a percentage may be away from its counts."""
SAMPLE = re.compile(r"\bsample\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FigureMeaning:
    """What a line of figures is of, as IDs of lines: "" or none where the table does not have them."""

    kind: FigureKind
    universe: str = ""
    numerator: str = ""
    groups: tuple[Group, ...] = ()
    within: str = ""


def propose(lines: Sequence[TableLine]) -> list[Figure]:
    """Return the figures of a table, and what labels and positions say they are of.

    Rates of which nothing can be said are not among them.

    Examples
    --------
    >>> texts = [("Total - Low-income status", 0, "count"), ("In low income", 0, "count"),
    ...          ("Prevalence of low income (%)", 0, "percentage")]
    >>> lines = [TableLine(str(at), label, depth, "", kind) for at, (label, depth, kind) in enumerate(texts)]
    >>> [(figure.name, figure.numerator, figure.universe) for figure in propose(lines)]
    [('2', '1', '0')]
    """
    counts = {key_of(line.id, sex) for line in lines if line.kind == COUNT for sex in line.sexes}
    edged = [at for at, line in enumerate(lines) if line.kind == COUNT and edges_of(line.label) is not None]
    sampled = {line.id for line in lines if is_sampled(line)}
    found: list[Figure] = []
    for at, line in enumerate(lines):
        meaning = _meaning(lines, at, edged)
        if meaning is not None:
            of_sample = not sampled.isdisjoint((line.id, meaning.universe, meaning.numerator))
            found += figures_for(line, meaning, counts, of_sample)
    return found


def is_sampled(line: TableLine) -> bool:
    """Return whether a line is from a sample, by its label or the title of its table."""
    return SAMPLE.search(line.table) is not None or SAMPLE.search(line.label) is not None


def figures_for(line: TableLine, meaning: FigureMeaning, counts: Collection[str], sampled: bool) -> list[Figure]:
    """Return the figures of a line, for each sex, as far as the counts are there that they are of."""
    found = []
    for sex in line.sexes:
        universe, numerator, within = (
            key if (key := key_of(one, sex)) in counts and one else ""
            for one in (meaning.universe, meaning.numerator, meaning.within)
        )
        groups = tuple(replace(group, count=key_of(group.count, sex)) for group in meaning.groups)
        if any(group.count not in counts for group in groups):
            groups = ()
        if universe or numerator or within or meaning.kind is not FigureKind.RATE:
            found.append(
                Figure(
                    name=key_of(line.id, sex),
                    kind=meaning.kind,
                    universe=universe,
                    numerator=numerator,
                    groups=groups,
                    per=Fraction(100),
                    label=line.label,
                    within="" if universe else within,
                    sampled=sampled,
                )
            )
    return found


def _meaning(lines: Sequence[TableLine], at: int, edged: Sequence[int]) -> FigureMeaning | None:
    line = lines[at]
    kind = KINDS.get(line.kind)
    if kind is None or _CHANGE.search(line.label.lower()):
        return None
    if kind is FigureKind.RATE:
        return _rate(lines, at)
    above = _above(lines, at)
    groups, universe = _groups(lines, at, edged)
    if groups:
        return FigureMeaning(kind, universe or above, _total(lines, line.label), groups)
    return FigureMeaning(kind, above)


def _total(lines: Sequence[TableLine], label: str) -> str:
    """Return the count of all persons whose average number per household or family is given, or ""."""
    for said, counted in _PERSONS:
        if said.search(label):
            return next((line.id for line in lines if line.kind == COUNT and counted.search(line.label)), "")
    return ""


def bare(label: str) -> str:
    """Return a label without what makes a percentage of it, for comparison.

    Examples
    --------
    >>> bare("Prevalence of low income (LIM-AT) (%)"), bare("  0 to 17 years (%) (4)")
    ('in low income (lim-at)', '0 to 17 years')
    """
    name = _PERCENT.sub(" ", _NOTE.sub("", label.strip().lower())).strip()
    return re.sub(r"^prevalence of\b", "in", name)


def _above(lines: Sequence[TableLine], at: int) -> str:
    """Return the count that a line is indented under, or "" where there is none."""
    depth = lines[at].depth
    for line in reversed(lines[:at]):
        if line.depth < depth:
            if line.kind == COUNT:
                return line.id
            depth = line.depth
        if depth == 0:
            return ""
    return ""


def _head(lines: Sequence[TableLine], at: int) -> int:
    """Return the uppermost percentage that a line of percentages is indented under: itself, if there is none."""
    head, depth = at, lines[at].depth
    for place in range(at - 1, -1, -1):
        if depth == 0:
            break
        if lines[place].depth < depth:
            if lines[place].kind != lines[at].kind:
                break
            head, depth = place, lines[place].depth
    return head


def _rate(lines: Sequence[TableLine], at: int) -> FigureMeaning | None:
    """Return what a rate is of."""
    if lines[at].label.strip().lower() in _LABOUR:
        return _labour(lines, at)
    head = _head(lines, at)
    if "distribution" in lines[head].label.lower():
        return _share(lines, at, head)
    named = bare(lines[head].label)
    counted = _before(lines, head, lambda one: bare(one.label) == named)
    if counted is not None:
        path = _path(lines, head, at)
        whole = _before(lines, counted, lambda one: one.label.lower().startswith("total"))
        numerator = _at_path(lines, counted, path)
        universe = "" if whole is None else _at_path(lines, whole, path)
        return FigureMeaning(FigureKind.RATE, universe, numerator) if numerator or universe else None
    above = _above(lines, head)
    return FigureMeaning(FigureKind.RATE, above) if above and head == at else None


def _share(lines: Sequence[TableLine], at: int, head: int) -> FigureMeaning | None:
    """Return what a line of a distribution is of: the line of that name in the table before, out of all in that table."""
    own = bare(lines[at].label)
    for place in range(head - 1, -1, -1):
        if lines[place].kind == COUNT and lines[place].depth and bare(lines[place].label) == own:
            whole = next(one for one in range(place, -1, -1) if lines[one].depth == 0 or one == 0)
            same = lines[whole].kind == COUNT and lines[whole].table == lines[place].table
            return FigureMeaning(FigureKind.RATE, lines[whole].id, lines[place].id) if same else None
    return None


def _before(lines: Sequence[TableLine], at: int, fits: Callable[[TableLine], bool]) -> int | None:
    """Return the nearest line above, at the same depth, that is a count and fits."""
    depth = lines[at].depth
    there = range(at - 1, max(-1, at - _FAR), -1)
    return next((one for one in there if lines[one].kind == COUNT and lines[one].depth == depth and fits(lines[one])), None)


def _path(lines: Sequence[TableLine], head: int, at: int) -> list[str]:
    """Return what a line under a head is called, and before it what it is indented under."""
    path: list[str] = []
    depth = lines[at].depth + 1
    for place in range(at, head, -1):
        if lines[place].depth < depth:
            path.insert(0, bare(lines[place].label))
            depth = lines[place].depth
    return path


def _at_path(lines: Sequence[TableLine], head: int, path: Sequence[str]) -> str:
    """Return the line of counts that stands under a head by the same names, or ""."""
    if not path:
        return lines[head].id
    for place in range(head + 1, len(lines)):
        if lines[place].depth <= lines[head].depth:
            break
        if lines[place].kind == COUNT and _path(lines, head, place) == list(path):
            return lines[place].id
    return ""


def _labour(lines: Sequence[TableLine], at: int) -> FigureMeaning | None:
    """Say what the rates of the labour force are of."""
    part, whole = _LABOUR[lines[at].label.strip().lower()]
    named: dict[str, str] = {}
    for line in reversed(lines[max(0, at - _FAR) : at]):
        if line.kind == COUNT:
            named.setdefault(bare(line.label), line.id)
            if line.depth == 0:
                named[""] = line.id
                break
    universe, numerator = named.get(whole, ""), named.get(part, "")
    return FigureMeaning(FigureKind.RATE, universe, numerator) if universe or numerator else None


Wanted = Callable[[TableLine], bool]


def _groups(lines: Sequence[TableLine], at: int, edged: Sequence[int]) -> tuple[tuple[Group, ...], str]:
    """Return the groups of a mean or a median, from the nearest table of such groups, and the count of them all.

    Neither belongs to the other where only one is from a sample, or one is about some households or families only.
    """
    of, wanted = _wanted(bare(lines[at].label))
    if not of or _FEW.search(lines[at].table.lower()):
        return (), ""
    tables: dict[str, list[int]] = {}
    for place in edged:
        if wanted(lines[place]) and is_sampled(lines[place]) == is_sampled(lines[at]):
            tables.setdefault(lines[place].table, []).append(place)
    for table in sorted(tables.values(), key=lambda places: min(abs(place - at) for place in places)):
        groups = finest([(lines[place].id, lines[place].label) for place in table], of)
        if groups and (of != "years" or groups[0].low == 0):
            return groups, _whole(lines, groups[0].count)
    return (), ""


def _wanted(name: str) -> tuple[str, Wanted]:
    """Say what the groups of a mean or a median measure, and in which tables they may stand."""
    income = _INCOME.search(name)
    if _FEW.search(name):
        return "", lambda _: False
    if re.search(r"\bage\b", name):
        return "years", lambda _: True
    if "rooms" in name:
        return "rooms", lambda _: True
    if re.search(r"\bhousehold size\b|\bsize of (?:private )?households\b", name):
        return "persons", lambda line: "household" in line.table.lower() and "famil" not in line.table.lower()
    if re.search(r"\bsize of census families\b", name):
        return "persons", lambda line: "famil" in line.table.lower()
    if income is not None:
        year = _YEAR.search(name)
        return "money", lambda line: _same_income(line.table.lower(), income[1], "household" in name, year and year[0])
    return "", lambda _: False


def _same_income(table: str, income: str, households: bool, year: str | None) -> bool:
    there = _YEAR.search(table)
    same_year = year is None or there is None or there[0] == year
    of_households = "household total" in table or "household after-tax" in table or "households by income" in table
    return f"{income} income group" in table and of_households == households and same_year


def _whole(lines: Sequence[TableLine], first: str) -> str:
    """Return the count of all groups of a table: the nearest line above the first of them that is no such group."""
    start = next(place for place, line in enumerate(lines) if line.id == first)
    for line in reversed(lines[:start]):
        if line.table != lines[start].table:
            break
        if edges_of(line.label) is None:
            return line.id if line.kind == COUNT else ""
    return ""


_UNITS = FIGURE_UNIT.denominator
LARGEST = 10**11
"""No figure is larger: floats keep numbers up to here to the last unit."""
_NEAR = 0.01
"""How far from a whole number of units, in units, a printed number may seem to be for being kept as a float."""


def as_figures(text: pl.Series, symbol: pl.Series | None = None) -> FigureValues:
    """Return the numbers in cells, in `FIGURE_UNIT`.

    What is not a number, what has more decimals than are kept, and what stands beside a symbol that says there is none, is
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


def figures_of_table(
    columns: Sequence[Column], decimals: Sequence[bool], axes: Sequence[str], description: Description
) -> list[Figure]:
    """Return the figures among the columns of a table.

    Those that the description lists are taken at its word. Of others, columns with decimals can be figures, and their
    labels propose what they are.

    Raises `InputError` where the description names columns that are not there.
    """
    labels = {column.key: column.label for column in columns}
    listed = [replace(one, label=labels.get(one.name, one.name)) for one in description.figures]
    figures = {figure.name for figure in listed}
    for figure in listed:
        for key in (figure.name, *figure.counts, figure.numerator):
            if key and (key not in labels or (key != figure.name and key in figures)):
                raise InputError(
                    f"{description.where}: the figure {figure.name!r} names {key!r}, which is no column of counts of this "
                    f"table.{near(key, labels)} Columns are named by their codes, joined by a slash."
                )
    return listed + [figure for figure in _by_label(columns, decimals, axes) if figure.name not in figures]


def _by_label(columns: Sequence[Column], decimals: Sequence[bool], axes: Sequence[str]) -> list[Figure]:
    """Return what labels say of columns with decimals."""
    if not any(decimals):
        return []
    by_sex = len(axes) == 2 and axes[-1] == SEX
    kinds = kinds_of([column.label for column in columns], [column.depth for column in columns])
    lines: dict[str, TableLine] = {}
    for column, kind, broken in zip(columns, kinds, decimals, strict=True):
        own, sex = (column.codes[0], column.codes[1]) if by_sex else (column.key, TOTAL)
        kind = (kind if kind != COUNT else "decimals") if broken else COUNT
        line = lines.setdefault(own, TableLine(own, column.label, column.depth, column.block, kind, ()))
        # What has decimals for one sex is not a count for the others either.
        lines[own] = replace(line, sexes=(*line.sexes, sex), kind=line.kind if line.kind != COUNT else kind)
    return propose(list(lines.values()))
