"""Profiles: what the lines of a census table are, by labels, indentation and position, and the columns that they become.

Census tables mix counts with figures worked out from them. Only counts add up and only counts were rounded at random, so
that everything else is to be told apart by its label, as far as labels go. Labels do not always tell (rows 35 to 38 of the
Canadian profile are percentages that are named like age groups): those are given away by their decimals.

A percentage belongs to lines above it: those of the same name (rows "0 to 17 years (%)" below "Prevalence of low income",
after "0 to 17 years" below "In low income" and below the total), or the line that it is indented under. A mean or a median
belongs to a table of groups with edges: ages, incomes, sizes. All this is proposed only; the data decide (`structure`).

Values as they are printed become whole multiples of `FIGURE_UNIT`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError
from unround.figures import Figure, FigureKind, Group
from unround.regions import published_exactly
from unround.release import (
    ABSENT,
    AREA,
    FIGURE_ABSENT,
    FIGURE_UNIT,
    UNREADABLE,
    Block,
    Column,
    Counts,
    FigureValues,
    Progress,
    Proposal,
    Release,
)
from unround.tables.description import SEX, Description, near
from unround.tables.grid import HeadedTable
from unround.tables.labels import edges_of, finest
from unround.tables.source import Source
from unround.tables.symbols import NUMBER, SIGNS, as_counts, joined_digits

FIRST = "Population and dwellings"
"""What Statistics Canada calls the lines above the first "Total - …"."""

_HEAD = re.compile(r"total\b", re.IGNORECASE)
_PEOPLE = re.compile(r"total - age groups? of the population\b.*|total - age\b.*", re.IGNORECASE)
# One private household lives in every occupied private dwelling. Estimates from the 25 % sample differ from the full count.
_HOUSEHOLDS = re.compile(
    r"total - (?:occupied private dwellings by\b|private households by\b|household type\b"
    r"|household (?:total|after-tax) income groups\b.* for private households\b)(?!.*25% sample).*",
    re.IGNORECASE,
)
_OCCUPIED = "private dwellings occupied by usual residents"


MEN, WOMEN, TOTAL = "men", "women", "total"
COUNT, DECIMALS = "count", "numbers with decimals"
"""What a line of a table holds: counts, or what its decimals give away to be something else, whatever it is called."""


@dataclass(frozen=True, slots=True)
class TableLine:
    """One line of a table: a count or a figure, and for whom it is given.

    `id` is its code, `depth` how far its label is indented, `table` the table that it stands in, `kind` what `kind_of` says,
    and `sexes` those that it has columns for ("total" alone where there are no sexes).
    """

    id: str
    label: str
    depth: int = 0
    table: str = ""
    kind: str = COUNT
    sexes: tuple[str, ...] = (TOTAL,)


def key_of(number: str, sex: str) -> str:
    """Return the key of a column, of counts or of figures."""
    return number if sex == TOTAL else f"{number}/{sex}"


def profile_lines(rows: Iterable[tuple[str, str]]) -> list[TableLine]:
    """Return the lines of a profile, from their codes and their labels, which are indented by two blanks a level.

    The table of a line is the label of the nearest line above that is not indented; the lines at the very beginning, above
    the first "Total …" with lines below it, are a table by themselves. Below a line of percentages there are percentages.

    >>> texts = ["Population, 2021", "Total - Age (%)", "  0 to 14 years", "Number of persons in private households"]
    >>> [(line.table, line.kind) for line in profile_lines(zip("1234", texts))][1:3]
    [('Total - Age (%)', 'percentage'), ('Total - Age (%)', 'percentage')]
    """
    texts = [(code, text.strip(), (len(text) - len(text.lstrip())) // 2) for code, text in rows]
    labels, depths = [label for _, label, _ in texts], [depth for _, _, depth in texts]
    lines, table, begun = list[TableLine](), FIRST, False
    for at, ((code, label, depth), kind) in enumerate(zip(texts, kinds_of(labels, depths), strict=True)):
        if depth == 0:
            heads = at + 1 < len(texts) and depths[at + 1] > 0
            begun = begun or (heads and _HEAD.match(label) is not None)
            table = label if begun else FIRST
        lines.append(TableLine(code, label, depth, table, kind))
    return lines


def universes(columns: Sequence[Column], year: str) -> list[Proposal]:
    """Propose that tables count the same people or households as the lines that are published as they are.

    >>> labels = ["Population, 2021", "Total - Age groups of the population - 100% data"]
    >>> found = universes([Column(str(at), (str(at), "total"), label) for at, label in enumerate(labels)], "2021")
    >>> [(proposal.total, proposal.parts) for proposal in found]
    [(0, (1,))]
    """
    whole = [(at, column) for at, column in enumerate(columns) if column.codes[-1] == "total" and column.depth == 0]
    proposals = []
    for label, pattern in ((f"population, {year}", _PEOPLE), (_OCCUPIED, _HOUSEHOLDS)):
        known = next((at for at, column in whole if column.label.lower() == label), None)
        if known is not None:
            alike = (at for at, column in whole if at != known and pattern.fullmatch(column.label))
            proposals += [Proposal(known, (at,), "universe") for at in alike]
    return proposals


def indented(columns: Sequence[Column]) -> list[Proposal]:
    """Propose that a line is the sum of the lines indented below it, for each sex by itself.

    Columns of anything but counts are not here, so that levels may be skipped: the parts of a line are the lines below it
    that no other line in between stands above.

    >>> lines = [("8", "All", 0), ("9", "Young", 1), ("10", "Very young", 2), ("13", "Old", 1)]
    >>> columns = [Column(key, (key, "total"), label, depth=depth) for key, label, depth in lines]
    >>> [(proposal.total, proposal.parts) for proposal in indented(columns)]
    [(0, (1, 3)), (1, (2,))]
    """
    by_sexes: dict[str, list[int]] = {}
    for at, column in enumerate(columns):
        by_sexes.setdefault(column.codes[-1], []).append(at)
    proposals = []
    for places in by_sexes.values():
        for total, parts in indented_below([columns[at].depth for at in places]).items():
            proposals.append(Proposal(places[total], tuple(places[part] for part in parts), "indentation"))
    return sorted(proposals, key=lambda proposal: proposal.total)


def above(depths: Sequence[int]) -> list[int]:
    """Return for each line the nearest one before it that is indented less, or -1."""
    heads, path = list[int](), list[int]()
    for at, depth in enumerate(depths):
        while path and depths[path[-1]] >= depth:
            path.pop()
        heads.append(path[-1] if path else -1)
        path.append(at)
    return heads


def indented_below(depths: Sequence[int]) -> dict[int, list[int]]:
    """Return every line that others are indented below, with those that no other line in between stands above."""
    below: dict[int, list[int]] = {}
    for at, head in enumerate(above(depths)):
        if head >= 0:
            below.setdefault(head, []).append(at)
    return below


def by_sex(columns: Sequence[Column]) -> list[Proposal]:
    """Propose that every line's total is its men and women.

    >>> columns = [Column(f"8/{sex}", ("8", sex), "All") for sex in ("total", "men", "women")]
    >>> [(proposal.total, proposal.parts) for proposal in by_sex(columns)]
    [(0, (1, 2))]
    """
    index = {column.codes: at for at, column in enumerate(columns)}
    proposals = []
    for codes, at in index.items():
        if codes[-1] == TOTAL:
            sexes = [index.get((*codes[:-1], sex)) for sex in (MEN, WOMEN)]
            if None not in sexes:
                proposals.append(Proposal(at, tuple(part for part in sexes if part is not None), "sex"))
    return proposals


_TOTAL = re.compile(r"total\s*[-–—:]")
_NOTE = re.compile(r"\s*\(\d+\)\s*$")
# A % that follows no number ("Market income (%)", "% in core housing need"), unlike "30% or more", "100% data".
_PERCENT = re.compile(r"(?:^|[^\d\s])\s*%")

# In the order in which they are asked: "Median income ($)" is a median, "Average % of …" an average.
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("standard error", re.compile(r"\bstandard (?:error|deviation)\b")),
    ("median", re.compile(r"\bmedians?\b|\bmediaan\b|\bmédiane?s?\b|\bmediana\b")),
    (
        "average",
        re.compile(
            r"\baverages?\b|^mean\b|\bmean$|\bdurchschnitt(?:s|lich)?|\bgemiddelde?\b|\bmoyen(?:ne)?s?\b|\bpromedio\b|"
            r"\b(?:edad|età|idade) medi[ao]\b|\bmittlere[rs]? (?:alter|größe|dauer)\b|\bg(?:jennom|ennem|enom)snit"
        ),
    ),
    ("percentage", _PERCENT),
    ("percentage", re.compile(r"\bpercentages?\b|(?<!\d )\bper ?cent\b|\bproportions?\b|^shares? of\b|^prevalence\b")),
    ("density", re.compile(r"\bdensity\b|\bper (?:square|sq)\b")),
    ("area", re.compile(r"\bsq(?:uare|\.)? ?(?:kilomet|km|miles?)|\bhectares?\b|^land area\b|\bkm²|\bkm2\b")),
    # A dollar sign with a figure behind it is a bracket of incomes, and people in it are counted.
    ("amount", re.compile(r"\$(?!\s*\d)|\bdollars\b")),
    ("index", re.compile(r"\bgini\b|\bindex\b")),
    # "by shelter-cost-to-income ratio" names what households are counted by.
    ("ratio", re.compile(r"(?<!-income )\bratio\b")),
    ("rate", re.compile(r"\brates?$|\b(?:participation|employment|unemployment) rate\b")),
)


def kind_of(label: str) -> str:
    """Say what kind of number a label announces: `COUNT`, or one of `_KINDS`.

    >>> kind_of("Median total income in 2020 among recipients ($)")
    'median'
    >>> kind_of("  $10,000 to $19,999"), kind_of("Spending 30% or more of income on shelter costs")
    ('count', 'count')
    >>> kind_of("% of owner households with a mortgage (64)")
    'percentage'
    """
    name = _NOTE.sub("", label.replace("_", " ")).strip().lower()
    if _TOTAL.match(name):
        # The head of a block counts what the block is about, whatever else its title mentions.
        return "percentage" if _PERCENT.search(name) else COUNT
    return next((kind for kind, pattern in _KINDS if pattern.search(name)), COUNT)


def kinds_of(labels: Sequence[str], depths: Sequence[int]) -> list[str]:
    """Say what kind of number each line of an indented table announces.

    Below a line of percentages there are percentages, whatever they are called.

    >>> kinds_of(["Total - Distribution (%) of the population", "0 to 14 years", "Total - Age groups"], [0, 1, 0])
    ['percentage', 'percentage', 'count']
    """
    kinds: list[str] = []
    above: int | None = None
    for label, depth in zip(labels, depths, strict=True):
        if above is not None and depth <= above:
            above = None
        kind = kind_of(label)
        if kind == COUNT and above is not None:
            kind = "percentage"
        elif kind == "percentage" and above is None:
            above = depth
        kinds.append(kind)
    return kinds


# What figures are of

KINDS: Mapping[str, FigureKind] = {
    "percentage": FigureKind.RATE,
    "rate": FigureKind.RATE,
    "average": FigureKind.MEAN,
    "median": FigureKind.MEDIAN,
}
"""Which kinds of numbers, as `kinds.kind_of` calls them, are figures."""

_BRACKETED = re.compile(r"\s*\(%\)\s*")
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
    """Return the figures of a table, and what labels and positions say they are of; only rates for which something says so.

    >>> texts = [("Total - Low-income status", 0, "count"), ("In low income", 0, "count"),
    ...          ("Prevalence of low income (%)", 0, "percentage")]
    >>> lines = [TableLine(str(at), label, depth, "", kind) for at, (label, depth, kind) in enumerate(texts)]
    >>> [(figure.name, figure.numerator, figure.universe) for figure in propose(lines)]
    [('2', '1', '0')]
    """
    counts = {key_of(line.id, sex) for line in lines if line.kind == COUNT for sex in line.sexes}
    edged = [at for at, line in enumerate(lines) if line.kind == COUNT and edges_of(line.label) is not None]
    sampled = {line.id for line in lines if is_sampled(line)}
    figures: list[Figure] = []
    for at, line in enumerate(lines):
        meaning = _meaning(lines, at, edged)
        if meaning is not None:
            of_sample = not sampled.isdisjoint((line.id, meaning.universe, meaning.numerator))
            figures += figures_for(line, meaning, counts, of_sample)
    return figures


def is_sampled(line: TableLine) -> bool:
    """Return whether a line is from a sample, by its label or the title of its table."""
    return SAMPLE.search(line.table) is not None or SAMPLE.search(line.label) is not None


def figures_for(line: TableLine, meaning: FigureMeaning, counts: Collection[str], sampled: bool) -> list[Figure]:
    """Return the figures of a line, for each sex, as far as the counts are there that they are of."""
    figures = []
    for sex in line.sexes:
        universe, numerator, within = (
            key if (key := key_of(id_, sex)) in counts and id_ else ""
            for id_ in (meaning.universe, meaning.numerator, meaning.within)
        )
        groups = tuple(replace(group, count=key_of(group.count, sex)) for group in meaning.groups)
        if any(group.count not in counts for group in groups):
            groups = ()
        if universe or numerator or within or meaning.kind is not FigureKind.RATE:
            figures.append(
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
    return figures


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

    >>> bare("Prevalence of low income (LIM-AT) (%)"), bare("  0 to 17 years (%) (4)")
    ('in low income (lim-at)', '0 to 17 years')
    """
    name = _BRACKETED.sub(" ", _NOTE.sub("", label.strip().lower())).strip()
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
    counted = _before(lines, head, lambda line: bare(line.label) == named)
    if counted is not None:
        path = _path(lines, head, at)
        whole = _before(lines, counted, lambda line: line.label.lower().startswith("total"))
        numerator = _at_path(lines, counted, path)
        universe = "" if whole is None else _at_path(lines, whole, path)
        return FigureMeaning(FigureKind.RATE, universe, numerator) if numerator or universe else None
    above = _above(lines, head)
    return FigureMeaning(FigureKind.RATE, above) if above and head == at else None


def _share(lines: Sequence[TableLine], at: int, head: int) -> FigureMeaning | None:
    """Return what a line of a distribution is of: the line of that name in the table before, out of all in that table."""
    label = bare(lines[at].label)
    for place in range(head - 1, -1, -1):
        if lines[place].kind == COUNT and lines[place].depth and bare(lines[place].label) == label:
            whole = next(head_at for head_at in range(place, -1, -1) if lines[head_at].depth == 0 or head_at == 0)
            same = lines[whole].kind == COUNT and lines[whole].table == lines[place].table
            return FigureMeaning(FigureKind.RATE, lines[whole].id, lines[place].id) if same else None
    return None


def _before(lines: Sequence[TableLine], at: int, fits: Callable[[TableLine], bool]) -> int | None:
    """Return the nearest line above, at the same depth, that is a count and fits."""
    depth = lines[at].depth
    there = range(at - 1, max(-1, at - _FAR), -1)
    return next(
        (place for place in there if lines[place].kind == COUNT and lines[place].depth == depth and fits(lines[place])), None
    )


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
    """Return the count of all groups of a table: the nearest line above the first of them that is not such a group."""
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
    values = np.full((rows, len(columns)), FIGURE_ABSENT, dtype=np.int64)
    for at, column in enumerate(columns):
        values[:, at] = as_figures(column)
    return values


def figures_of_table(
    columns: Sequence[Column], decimals: Sequence[bool], axes: Sequence[str], description: Description
) -> list[Figure]:
    """Return the figures among the columns of a table.

    Those that the description lists are taken at its word. Of others, columns with decimals can be figures, and their
    labels propose what they are.
    """
    labels = {column.key: column.label for column in columns}
    listed = [replace(said, label=labels.get(said.name, said.name)) for said in description.figures]
    figures = {figure.name for figure in listed}
    for figure in listed:
        for key in (figure.name, *figure.counts, figure.numerator):
            if key and (key not in labels or (key != figure.name and key in figures)):
                raise InputError(
                    f"{description.where}: the figure {figure.name!r} names {key!r}, which is not a column of counts of "
                    f"this table.{near(key, labels)} Columns are named by their codes, joined by a slash."
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
        id_, sex = (column.codes[0], column.codes[1]) if by_sex else (column.key, TOTAL)
        kind = (kind if kind != COUNT else DECIMALS) if broken else COUNT
        line = lines.setdefault(id_, TableLine(id_, column.label, column.depth, column.block, kind, ()))
        # What has decimals for one sex is not a count for the others either.
        lines[id_] = replace(line, sexes=(*line.sexes, sex), kind=line.kind if line.kind != COUNT else kind)
    return propose(list(lines.values()))


# What every format ends in

AREAS_AT_ONCE = 2_000
CELLS_AT_ONCE = 500_000


def in_memory(
    areas: pl.DataFrame, counts: Counts, size: int, figures: FigureValues | None = None
) -> Callable[[Progress], Iterator[Block]]:
    """Return what goes through a table in memory as `Release.read` does through a file."""
    kept = figures if figures is not None and figures.shape[1] else None

    def blocks(progress: Progress) -> Iterator[Block]:
        for start in range(0, len(areas), AREAS_AT_ONCE):
            end = min(start + AREAS_AT_ONCE, len(areas))
            progress(size * end // len(areas))
            yield Block(areas[start:end], counts[start:end], None if kept is None else kept[start:end])

    return blocks


def census(source: Source, form: str, columns: Sequence[Column], **others: Any) -> Release:
    """Return the release of a census: columns are characteristics by sex, and rows are areas."""
    axes: Any = {"axes": ("characteristic_id", "sex"), "areas": (AREA,)}
    return Release(source=str(source.path), file_format=form, columns=tuple(columns), size=source.size, **axes, **others)


def columns_of(lines: Sequence[TableLine], anywhere: bool = False) -> list[Column]:
    """Return the columns of all lines that are counts: those above the first table, or anywhere, may be exact by name."""
    columns: list[Column] = []
    for line in lines:
        how = published_exactly(line.label) if anywhere or line.table == FIRST else (None, 0)
        sexes = line.sexes if line.kind == COUNT else ()
        columns += [Column(key_of(line.id, sex), (line.id, sex), line.label, line.table, line.depth, *how) for sex in sexes]
    return columns


def told_apart(
    lines: Sequence[TableLine], sexes: Sequence[str], broken: NDArray[np.bool_], nothing: NDArray[np.bool_]
) -> tuple[list[TableLine], list[Figure], dict[str, tuple[str, ...]]]:
    """Decide which lines of a profile are counts, and for which sexes; return them, the figures, and what is left out.

    `broken` are lines that show decimals, `nothing` lines × sexes that are not applicable.
    """
    lines = [
        replace(
            line,
            kind=DECIMALS if line.kind == COUNT and odd else line.kind,
            sexes=tuple(sex for sex, absent in zip(sexes, none, strict=True) if not absent),
        )
        for line, odd, none in zip(lines, broken, nothing, strict=True)
    ]
    figures = propose(lines)
    figured = {figure.name.partition("/")[0] for figure in figures}
    left_out: dict[str, list[str]] = {}
    for line in lines:
        if line.kind != COUNT and line.id not in figured:
            left_out.setdefault(line.kind, []).append(line.label)
        elif line.kind == COUNT and len(line.sexes) < len(sexes):
            gone = (sex for sex in sexes if sex not in line.sexes)
            left_out.setdefault("not applicable", []).extend(f"{line.label}, {sex}" for sex in gone)
    return lines, figures, {kind: tuple(labels) for kind, labels in left_out.items()}


def refuse_repeated(source: Source, areas: pl.Series) -> None:
    """Raise if an area has no code, or stands there twice."""
    empty = areas.is_null() | (areas == "")
    if empty.any():
        number = int(empty.arg_true()[0]) + 1
        raise InputError(f"{source.path}: line {number} below the header has no {AREA}; add it, or remove the line.")
    again = areas.is_duplicated()
    if again.any():
        raise InputError(
            f"{source.path} has the area {areas.filter(again)[0]} more than once; {int(again.sum()):,} lines are affected. "
            "Each area may occur only once: remove the copies, or split the file."
        )


def counts_of(table: HeadedTable, places: Sequence[int]) -> tuple[Counts, NDArray[np.float64]]:
    """Turn columns into counts; also return, for every column, the share of its numbers that have a fraction.

    A point alone proves nothing here: pandas writes whole numbers as `15.0` in columns with gaps.
    """
    lines = len(table.cells)
    counts = np.empty((lines, len(places)), dtype=np.int32)
    shares = np.zeros(len(places))
    # Many short columns end to end are read far faster than one by one.
    step = max(1, CELLS_AT_ONCE // lines)
    for start in range(0, len(places), step):
        few = places[start : start + step]
        read, decimals = as_counts(pl.concat([table.column(place).alias("") for place in few]))
        cells = read.reshape(len(few), lines)
        broken = np.count_nonzero(decimals.reshape(len(few), lines) & (cells == UNREADABLE), axis=1)
        shares[start : start + step] = broken / np.maximum(1, broken + np.count_nonzero(cells > ABSENT, axis=1))
        counts[:, start : start + step] = cells.T
    return counts, shares


def unreadable(counts: Counts) -> list[str]:
    """Return the note that some cells hold no counts, or none."""
    cells = int(np.count_nonzero(counts == UNREADABLE))
    note = f"{cells:,} cells in columns of counts hold text or numbers with decimals; they are treated as unknown."
    return [note] if cells else []
