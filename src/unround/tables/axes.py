"""Axes: what the codes in columns and in headers stand for, and what each axis is to be called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from unround.errors import InputError
from unround.tables.cells import code_text, within_groups
from unround.tables.description import BY_KEY, CHARACTERISTIC
from unround.tables.grid import HeadedTable, letters
from unround.tables.labels import (
    WORDS,
    about,
    bare_label,
    is_time,
    is_total,
    period_sums,
    sex_of,
    tokens,
    written_age,
)
from unround.tables.roles import Roles

AGE, SEX, AREA, TIME, OTHER = "age", "sex", "area", "time", "other"
"""What an axis is about."""
_MOST = 0.6
"""An axis with so many ages among its codes is one of ages."""
LONGEST_NAME = 40
_LABELLED = re.compile(r"[^:]{1,30}: .+")
_GROUP = re.compile(r" \([^()]*\)$")


@dataclass(frozen=True, slots=True)
class DraftAxis:
    """An axis of the table.

    - `name`: What it is called in the description.
    - `about`: AGE, SEX, AREA, TIME or OTHER.
    - `codes`: Its codes, in the order of the table; `labels` gives what people read for them.
    - `column`, `label`: The columns that hold its codes and their names; None where they stand in the header.
    - `header`: The row of the header that its codes stand in, from 1.
    - `fill`: Whether an empty cell repeats the code above.
    - `depths`: How far its codes are indented, where some are.
    - `within`: The column of groups that tells codes apart which are there in several.
    - `figures`: Codes that are not of counts.
    """

    name: str
    about: str
    codes: tuple[str, ...]
    labels: Mapping[str, str] = field(default_factory=dict, repr=False)
    column: str | None = None
    label: str | None = None
    header: int | None = None
    fill: bool = False
    depths: tuple[int, ...] = ()
    within: str | None = None
    figures: frozenset[str] = frozenset()

    def names_of(self, code: str) -> tuple[str, str]:
        """Return a code and what people read for it, without the group that tells it from others of its name."""
        names = code, self.labels.get(code, code)
        return names if self.within is None else (_GROUP.sub("", names[0]), _GROUP.sub("", names[1]))


@dataclass(frozen=True, slots=True)
class Axes:
    """All axes of a table; `counts` lists the codes of every column of counts where one name says several things."""

    rows: tuple[DraftAxis, ...]
    across: tuple[DraftAxis, ...]
    counts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def all(self) -> tuple[DraftAxis, ...]:
        """Those of the rows first."""
        return (*self.rows, *self.across)


def find_axes(table: HeadedTable, roles: Roles, heading: str = "") -> Axes:
    """Find the axes of a table whose columns are known."""
    names = table.names
    rows = []
    for role in roles.axes:
        cells = code_text(table.column(role.at))
        if role.within is not None:
            cells = within_groups(cells, code_text(table.column(role.within)).replace("", None).forward_fill())
        codes = tuple(cells.filter(cells != "").drop_nulls().unique(maintain_order=True))
        labels = {}
        if role.label is not None:
            labels = dict(zip(code_text(table.column(role.at)), code_text(table.column(role.label)), strict=True))
        shown = {code: label for code, label in labels.items() if code and label}
        if not shown and all(_LABELLED.fullmatch(code) for code in codes):
            shown = {code: code.partition(":")[2].strip() for code in codes}  # "1: Males", as SDMX-CSV has it with labels
        kind = subject(names[role.at], codes, shown)
        label = None if role.label is None else names[role.label]
        called = names[role.at]
        if label is not None and set(tokens(called)) <= WORDS["codes"]:
            called = label  # "Code" says nothing about what it is the code of
        if not table.is_named(role.at):
            called, kind = "", AREA if kind == OTHER else kind  # what stands first, without a name, are areas
        kind = subject(called, codes, shown) if kind == OTHER else kind
        shows = role.label if role.label is not None and role.label in table.depths else role.at
        within = None if role.within is None else names[role.within]
        depths = _code_depths(table, shows, cells, codes)
        rows.append(
            DraftAxis(slug(called, kind), kind, codes, shown, names[role.at], label, None, role.fill, depths, within)
        )
    across: list[DraftAxis] = []
    counts: Mapping[str, Mapping[str, str]] = {}
    if len(roles.values) > 1:
        values = sorted({*roles.values, *roles.rates})
        across = _header_axes(table, values, heading, [names[at] for at in roles.rates])
        if not across:
            raise InputError(
                f"{table.source}: the header does not tell its {len(roles.values)} columns of counts apart. Give each a "
                f"name, then run: unround describe {table.source}"
            )
        plain = [code for code in across[0].codes if code not in across[0].figures]
        if len(across) == 1 and (apart := split_by_sex(plain)):
            across[0] = replace(across[0], codes=tuple(plain), figures=frozenset())
            across, counts = _listed(across[0], [names[at] for at in roles.values], apart)
    return _distinct(Axes(tuple(rows), tuple(across), counts))


def _code_depths(table: HeadedTable, at: int, cells: pl.Series, codes: Sequence[str]) -> tuple[int, ...]:
    """Return how far each code is indented where it stands first, or nothing if none is."""
    if at not in table.depths:
        return ()
    first: dict[str, int] = {}
    for code, depth in zip(cells.to_list(), table.depths[at], strict=True):
        first.setdefault(code, depth)
    return tuple(first[code] for code in codes)


def _header_axes(table: HeadedTable, values: Sequence[int], heading: str, figures: Sequence[str]) -> list[DraftAxis]:
    """Return an axis for every row of the header that says different things of different columns."""
    axes = []
    columns = [tuple(row[at] for row in table.header) for at in values]
    for at, column in zip(values, columns, strict=True):
        if columns.index(column) != values.index(at):
            again, first = letters(at), letters(values[columns.index(column)])
            name = " / ".join(dict.fromkeys(column))
            raise InputError(
                f"{table.source} has more than one column called {name!r} ({first} and {again}). "
                f"Rename one of them; or, if the header has more rows, say so: unround describe {table.source} --header 1-2"
            )
    for number, row in enumerate(table.header, start=1):
        said = [row[at] for at in values]
        codes = tuple(dict.fromkeys(code for code in said if code))
        apart = [code for code in codes if not is_total(code, of_places=False)]
        if len(table.header) > number and apart and not any(map(bare_label, apart)):
            continue  # "of which", over the parts of a total
        if len(codes) > 1:
            of_counts = [code for code in codes if code not in figures]
            kind = subject("", of_counts, {})
            axes.append(DraftAxis(slug(heading, kind), kind, codes, header=number, figures=frozenset(figures)))
    return axes


def subject(name: str, codes: Sequence[str], labels: Mapping[str, str]) -> str:
    """Return what an axis is about, by its codes and by its name."""
    read = [(code, labels.get(code, code)) for code in codes]
    sexes = {sex for texts in read if (sex := sex_of(*texts))}
    others = [texts for texts in read if sex_of(*texts) is None and not is_total(*texts)]
    if sexes == {"men", "women"} and len(others) <= 2:
        return SEX
    ages = sum(any(written_age(text) is not None for text in texts) for texts in read)
    telling = [texts for texts in read if not is_total(*texts)]
    written = sum(any(not text.isdigit() and written_age(text) is not None for text in texts) for texts in read)
    if telling and ages >= _MOST * len(telling) and (about(name, "ages") or (not name and ages > 1) or written > 1):
        return AGE
    if about(name, "sexes"):
        return SEX
    if about(name, "times") or (all(map(is_time, codes)) and not period_sums({code: code for code in codes})):
        return TIME
    return AREA if about(name, "areas") else OTHER


def slug(name: str, kind: str) -> str:
    """Return what to call an axis: the column's own name, tidied; or what it is about.

    >>> slug("Region / Name", OTHER), slug("", AGE), slug("columns", OTHER), slug("Wohnort (Code)", OTHER)
    ('region_name', 'age', 'columns_', 'wohnort_code')
    """
    if name.strip().lower() in CHARACTERISTIC:
        return "category"  # the other name is kept for the profiles of a census
    words = "_".join(re.findall(r"\w+", name.partition(":")[0].lower()))[:LONGEST_NAME].strip("_")
    words = words or ({OTHER: "column"}.get(kind, kind))
    return f"{words}_" if words == BY_KEY else words


def _distinct(axes: Axes) -> Axes:
    """Give every axis a name of its own."""
    taken: set[str] = set()
    changed: dict[str, str] = {}
    made = []
    for axis in axes.all:
        name, number = axis.name, 2
        while name in taken:
            name, number = f"{axis.name}_{number}", number + 1
        taken.add(name)
        if axis.header is None and axis.column is None:
            changed[axis.name] = name
        made.append(replace(axis, name=name))
    counts = {
        column: {changed.get(axis, axis): code for axis, code in codes.items()} for column, codes in axes.counts.items()
    }
    return Axes(tuple(made[: len(axes.rows)]), tuple(made[len(axes.rows) :]), counts)


def split_by_sex(names: Sequence[str]) -> dict[str, tuple[str, str]] | None:
    """Take names such as "Men 0-14" apart into what is counted and a sex; None where that is not what they say.

    >>> split_by_sex(["Total", "Men", "Women", "0-14", "Men 0-14", "Women 0-14"])["Men 0-14"]
    ('0-14', 'Men')
    >>> split_by_sex(["f_0_14", "m_0_14", "f_15", "m_15"])["m_0_14"]
    ('0_14', 'm')
    >>> split_by_sex(["all", "young", "old"]) is None
    True
    """
    parted: dict[str, tuple[str, str]] = {}
    by_sex: dict[str, set[str]] = {"men": set(), "women": set()}
    for name in names:
        rest, sex = _without(name, WORDS["men"] | WORDS["women"])
        rest = "" if sex and (is_total(rest, of_places=False) or not bare_label(rest)) else rest
        parted[name] = (rest, sex)
        if sex:
            by_sex[str(sex_of(sex))].add(rest)
    if not by_sex["men"] or by_sex["men"] != by_sex["women"]:
        return None
    wholes = by_sex["men"]
    spelt = {sex_of(sex): sex for _, sex in parted.values() if sex}
    if len(wholes) < 2 and "" in wholes:
        return None  # total, men and women: one axis
    made: dict[str, tuple[str, str]] = {}
    for name, (rest, sex) in parted.items():
        rest = rest if sex else _of_both(name, wholes)
        made[name] = (rest or "total", str(spelt[sex_of(sex)]) if sex else "total")
    return made if len(set(made.values())) == len(made) else None


def _of_both(name: str, wholes: Iterable[str]) -> str:
    """Return what a name without a sex counts: what is left of it without the words for both sexes."""
    cuts = [(name[: gap.start()].strip(_AROUND), name[gap.end() :].strip(_AROUND)) for gap in re.finditer(r"[\s\W_]+", name)]
    splits = [pair for left, right in cuts for pair in ((left, right), (right, left))] + [_without(name, WORDS["totals"])]
    for rest, both in splits:
        if rest in wholes and is_total(both, of_places=False):
            return rest
    whole = is_total(name, of_places=False) or any(
        is_total(rest, of_places=False) and is_total(both, of_places=False) for rest, both in splits
    )
    return "" if whole else name


_AROUND = " \t_/,;:.|()[]-"
"""What stands between the words of a joined name."""


def _without(name: str, words: Iterable[str]) -> tuple[str, str]:
    """Return a name without the first of some words that it has, and that word; single letters only count at its ends."""
    known = set(words)
    pieces = [piece for piece in re.split(r"([\s_/,;:.|()\[\]]+|-(?=\D)|(?<=\D)-)", name) if piece]
    for at, piece in enumerate(pieces):
        word = piece.lower()
        if word in known and (word not in WORDS["letters"] or at in (0, len(pieces) - 1)):
            left = pieces[:at] + pieces[at + 1 :]
            return "".join(left).strip(_AROUND), piece
    return name.strip(), ""


def _listed(
    axis: DraftAxis, columns: Sequence[str], apart: Mapping[str, tuple[str, str]]
) -> tuple[list[DraftAxis], Mapping[str, Mapping[str, str]]]:
    """Return the two axes of names that were taken apart, and the codes of every column."""
    first = tuple(dict.fromkeys(rest for rest, _ in apart.values()))
    sexes = tuple(dict.fromkeys(sex for _, sex in apart.values()))
    kind = subject("", first, {})
    name = axis.name if axis.name not in (OTHER, "column") else slug("", kind)
    name = "category" if name in (SEX, "column") else name
    across = [DraftAxis(name, kind, first), DraftAxis(SEX, SEX, sexes)]
    counts = {column: {name: apart[code][0], SEX: apart[code][1]} for column, code in zip(columns, axis.codes, strict=True)}
    return across, counts
