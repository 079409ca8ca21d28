"""Stats NZ long tables: `code,name,variable,variable_group,count`, one line per count.

The names of the groups tell what they are. Men and women, which are groups of their own in the file,
become columns of the group that they belong to.

A group's name is `[counts_][level_N_]CODE_what_is_counted_UNIVERSE`, or `total…`; the universe (`curp` is the census usually
resident population) says who is counted. Men and women of a group are groups of their own: `by_sex_GROUP_1_male_UNIVERSE`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError
from unround.figures import Figure, FigureKind
from unround.release import (
    ABSENT,
    AREA,
    FIGURE_ABSENT,
    NOT_AVAILABLE,
    SUPPRESSED,
    UNREADABLE,
    Column,
    Counts,
    Proposal,
    Release,
)
from unround.small_files import LONGEST_NAME, shortened
from unround.tables.cells import Index, first_of, numbered, repeats, require_room
from unround.tables.delimited import read_table
from unround.tables.labels import finest
from unround.tables.profile import (
    COUNT,
    DECIMALS,
    KINDS,
    MEN,
    TOTAL,
    WOMEN,
    as_figures,
    by_sex,
    census,
    in_memory,
    key_of,
    kind_of,
)
from unround.tables.source import Source
from unround.tables.symbols import as_counts

HEADER = ("code", "name", "variable", "variable_group", "count")
_HOME = "by_usual_residence_address"
_ADDRESS = re.compile(r"by_\w+_address$")
_LEVELS = ("sa1", "sa2", "sa3", "ward", "ta", "rc")
_NEVER = "nothing published for any area"
_MANY, _LARGE = 10, 1_000
_APART = "\n"  # between the names of a variable and a group
_PLURALS = {"median": "medians", "percentage": "percentages", "average": "averages", "rate": "rates", "ratio": "ratios"}


def load(source: Source) -> Release:
    """Read a long table."""
    table = _table(source)
    codes, row = numbered(table["code"])
    called, place = numbered(table["variable"] + _APART + table["variable_group"])
    require_room(len(codes), len(called), table.height, str(source.path))
    understood = [understand(*name.split(_APART, 1)) for name in called]
    _refuse_twice(row * len(understood) + place, len(codes) * len(understood), table, source)

    values, decimals = as_counts(table["count"].fill_null(""), blank=SUPPRESSED)
    counts = np.full((len(codes), len(understood)), NOT_AVAILABLE, dtype=np.int32)
    counts[row, place] = values
    fractions = np.zeros(len(understood), dtype=bool)
    fractions[place[decimals]] = True
    left_out = _left_out(understood, counts, fractions)
    out = {at for ats in left_out.values() for at in ats}
    order = _order(understood, out)
    columns = [_column(understood[at], understood) for at in order]
    printed = np.full((len(codes), len(understood)), FIGURE_ABSENT, dtype=np.int64)
    printed[row, place] = as_figures(table["count"])
    figures = figures_by_name(understood, order, [at for at in sorted(out) if (printed[:, at] != FIGURE_ABSENT).any()])
    notes = [*source.notes, *_notes(understood, left_out, counts[:, order])]
    frame = _frame(table, codes, row, source.name)
    year = re.search(r"(?<!\d)(?:19|20)\d\d(?!\d)", source.name)
    return census(
        source,
        "statsnz",
        columns,
        read=in_memory(
            frame, np.ascontiguousarray(counts[:, order]), source.size, np.ascontiguousarray(printed[:, list(figures)])
        ),
        figures=tuple(figures.values()),
        proposals=tuple(_proposals([understood[at] for at in order], columns)),
        product=f"Stats NZ, {year[0]} Census" if year else "Stats NZ census tables",
        left_out={
            why: names
            for why, ats in left_out.items()
            if (names := tuple(_name(understood[at]) for at in ats if at not in figures))
        },
        notes=notes,
    )


def _table(source: Source) -> pl.DataFrame:
    table = read_table(source, "download it again").frame
    if tuple(column.lower() for column in table.columns) != HEADER:
        raise InputError(
            f"{source.path} has the columns {shortened(table.columns)}; Stats NZ's tables have {', '.join(HEADER)}."
        )
    table.columns = list(HEADER)
    if not table.height:
        raise InputError(f"{source.path} has a header but no rows; download it again.")
    longest = table.select(pl.max_horizontal(pl.col("variable", "variable_group").str.len_chars().max())).item()
    if (longest or 0) > LONGEST_NAME:
        raise InputError(
            f"{source.path} has a variable whose name has {longest:,} characters; look for a quote that is not closed."
        )
    bare = table.filter(pl.col("code").is_null() | pl.col("variable").is_null())
    if bare.height:
        raise InputError(f"{source.path} has {bare.height:,} lines without an area or a variable; download it again.")
    return table.with_columns(
        pl.col("code", "variable").str.strip_chars(), pl.col("variable_group").fill_null("").str.strip_chars()
    )


def _refuse_twice(cell: Index, many: int, table: pl.DataFrame, source: Source) -> None:
    again = repeats(cell, many)
    if len(again):
        line = table.row(int(again[0]), named=True)
        raise InputError(
            f"{source.path} has {len(again):,} counts more than once, the first of them {line['variable']}, "
            f"{line['variable_group']} "
            f"of area {line['code']}. Delete the repeats."
        )


def _name(group: NamedGroup) -> str:
    return f"{group.variable}:{group.group}" if group.group else group.variable


def _left_out(groups: Sequence[NamedGroup], counts: Counts, fractions: NDArray[np.bool_]) -> Mapping[str, list[int]]:
    """Return what is not a column of counts: by its name, its decimals, or because there is nothing in it."""
    out: dict[str, list[int]] = {}
    empty = np.all(counts <= ABSENT, axis=0)
    for at, group in enumerate(groups):
        kind = next((kind for kind in (kind_of(group.variable), kind_of(group.group)) if kind != COUNT), COUNT)
        if kind != COUNT:
            out.setdefault(_PLURALS.get(kind, kind), []).append(at)
        elif fractions[at]:
            out.setdefault(DECIMALS, []).append(at)
        elif empty[at] and _never_asked(group, groups, counts):
            out.setdefault(_NEVER, []).append(at)
    return out


def _never_asked(group: NamedGroup, groups: Sequence[NamedGroup], counts: Counts) -> bool:
    """Return whether a group without any count could not be chosen as an answer that year, rather than being hidden.

    Counts are hidden for being small: a group that is blank in many places of thousands of people is not. It matters, for
    the sum that it stands in holds without it in the one case, and not in the other.
    """
    totals = [
        at for at, other in enumerate(groups) if other.is_total and not other.repeat and _family(other) == _family(group)
    ]
    return any(np.count_nonzero(counts[:, at] >= _LARGE) >= _MANY for at in totals)


def _order(groups: Sequence[NamedGroup], out: set[int]) -> list[int]:
    """Return the columns in the order of the file, men and women right after their total."""
    first: dict[str, int] = {}
    for at, group in enumerate(groups):
        if at not in out and (group.id not in first or group.sex == TOTAL):
            first[group.id] = at
    rank = {TOTAL: 0, MEN: 1, WOMEN: 2}
    return sorted(
        (at for at in range(len(groups)) if at not in out), key=lambda at: (first[groups[at].id], rank[groups[at].sex])
    )


def _column(group: NamedGroup, groups: Sequence[NamedGroup]) -> Column:
    stated = any(g.is_stated and (g.variable, g.universe) == (group.variable, group.universe) for g in groups)
    depth = 0 if group.is_total or not group.universe else 1 if group.is_stated or group.is_unknown or not stated else 2
    depth += max(0, group.level - 1)
    return Column(group.key, (group.id, group.sex), group.label, group.block, depth)


_WORKED = "proportions_worked_today_"
_NOT_AT_WORK = "002_did_not_go_to_work_today"
"""Those who are not in the universe of such proportions, as Stats NZ calls them."""


def figures_by_name(groups: Sequence[NamedGroup], counting: Sequence[int], others: Sequence[int]) -> dict[int, Figure]:
    """Return what is a proportion or a median, by its place, and what names say it is of.

    Proportions belong to the counts of the same name in their variable, out of all who answered; "worked today" are out of
    those who did: all who answered but those who did not go to work, for whom there is no count of their own. A median
    belongs to the groups of ages, or of incomes.
    """
    there = {(groups[at].variable, groups[at].what.strip("_"), groups[at].sex, groups[at].universe): at for at in counting}
    figures: dict[int, Figure] = {}
    for at in others:
        group = groups[at]
        kind = next((KINDS[kind] for name in (group.variable, group.group) if (kind := kind_of(name)) in KINDS), None)
        if kind is FigureKind.RATE:
            figure = _proportion(group, groups, there)
        elif kind is FigureKind.MEDIAN:
            figure = _median(group, groups, counting)
        else:
            continue
        if figure is not None:
            figures[at] = figure
    return figures


def _proportion(
    group: NamedGroup, groups: Sequence[NamedGroup], there: Mapping[tuple[str, str, str, str], int]
) -> Figure | None:
    what = group.what.removeprefix(_WORKED).removeprefix("proportions_").strip("_")
    numerator = there.get((group.variable, what, group.sex, group.universe))
    stated = there.get((group.variable, "total_stated", group.sex, group.universe))
    if numerator is None or numerator == stated:
        return None
    whole = "" if stated is None else groups[stated].key
    part = groups[numerator].key
    if not group.what.startswith(_WORKED):
        return Figure(_name(group), FigureKind.RATE, whole, part, label=group.label)
    absent = there.get((group.variable, _NOT_AT_WORK, group.sex, group.universe))
    outside = "" if absent is None else groups[absent].key
    return Figure(_name(group), FigureKind.RATE, "", part, label=group.label, within=whole, outside=outside)


def _median(group: NamedGroup, groups: Sequence[NamedGroup], counting: Sequence[int]) -> Figure:
    of = "years" if "age" in group.variable.split("_") else "money"
    sex = next((sex for name, sex in _SEXES.items() if name in group.group), group.sex)
    for variable in (group.variable, "age_5_year_groups" if of == "years" else "grouped_personal_income"):
        members = [groups[at] for at in counting if groups[at].variable == variable and groups[at].sex == sex]
        parts = finest([(member.key, member.text) for member in members if not member.repeat], of)
        answered = [member for member in members if member.is_stated] or [member for member in members if member.is_total]
        if parts and answered:
            return Figure(_name(group), FigureKind.MEDIAN, answered[0].key, groups=parts, label=group.label)
    return Figure(_name(group), FigureKind.MEDIAN, "", label=group.label)


def _notes(groups: Sequence[NamedGroup], left_out: Mapping[str, list[int]], counts: Counts) -> list[str]:
    notes = []
    odd = int((counts == UNREADABLE).sum())
    if odd:
        notes.append(f"{odd:,} cells hold something other than a count.")
    strange = [_name(group) for group in groups if not group.universe and group.group]
    if strange:
        notes.append(
            f"{len(strange)} groups have names that are not recognised; they are in no sum: {', '.join(strange[:5])}."
        )
    gone = left_out.get(_NEVER)
    if gone:
        notes.append(f"{len(gone)} groups have no count for any area; they are taken as not asked rather than hidden.")
    return notes


def _proposals(groups: Sequence[NamedGroup], columns: Sequence[Column]) -> list[Proposal]:
    """Propose parts = total stated, stated + not stated = total, levels, sexes, and totals of one universe being one."""
    proposals: list[Proposal] = []
    families: dict[tuple[str, str, str], list[int]] = {}  # of one variable, universe and sex
    for at, group in enumerate(groups):
        if group.universe and group.group and not group.repeat:
            families.setdefault(_family(group), []).append(at)
    for members in families.values():
        total = [at for at in members if groups[at].is_total]
        stated = [at for at in members if groups[at].is_stated]
        unknown = [at for at in members if groups[at].is_unknown]
        parts = [at for at in members if at not in (*total, *stated, *unknown)]
        top = [at for at in parts if groups[at].level <= 1]
        if stated and top:
            proposals.append(Proposal(stated[0], tuple(top), "names"))
        if total and stated and unknown:
            proposals.append(Proposal(total[0], (stated[0], *unknown), "names"))
        elif total and stated:
            proposals.append(Proposal(total[0], (stated[0],), "names"))
        elif total and (top or unknown):
            proposals.append(Proposal(total[0], (*top, *unknown), "names"))
        for at in parts:
            below = tuple(part for part in parts if _is_under(groups[part], groups[at]))
            if below:
                proposals.append(Proposal(at, below, "names"))
    return [*proposals, *by_sex(columns), *_universes(groups)]


def _family(group: NamedGroup) -> tuple[str, str, str]:
    return group.variable, group.universe, group.sex


def _is_under(part: NamedGroup, total: NamedGroup) -> bool:
    """Return whether a group of one level belongs to one of the level above: its code goes on where the other ends.

    Where people give several answers, it is not a sum, but so nearly one (two answers within one group are rare) that the
    counts of small areas do not show it, and a false proof could come of that. On the first level it shows everywhere.
    """
    within = part.level == total.level + 1 > 1 and bool(total.code) and part.code.startswith(total.code)
    return within and not part.overlaps


def _universes(groups: Sequence[NamedGroup]) -> list[Proposal]:
    """Propose that totals over the same people are the same count; whose work or school is elsewhere is counted there."""
    first: dict[tuple[str, str, str], int] = {}
    proposals = []
    for at, group in enumerate(groups):
        if not group.is_total:
            continue
        address = _ADDRESS.search(group.variable)
        where = address[0] if address and address[0] != _HOME else ""
        head = first.setdefault((group.universe, where, group.sex), at)
        if head != at:
            proposals.append(Proposal(head, (at,), "universe"))
    return proposals


def _frame(table: pl.DataFrame, codes: pl.Series, row: Index, name: str) -> pl.DataFrame:
    """Return the areas: code, name, and level (from the name of the file)."""
    first = first_of(row, len(codes))
    level = next((item for item in _LEVELS if re.search(rf"(?<![a-z]){item}(?![a-z0-9])", name.lower())), "")
    return pl.DataFrame(
        {
            AREA: codes,
            "region_name": table["name"].gather(first).fill_null(codes),
            "level": pl.Series([TOTAL if code == TOTAL else level for code in codes], dtype=pl.String),
            "parent": pl.Series([None] * len(codes), dtype=pl.String),
            "adjustable": pl.Series([None] * len(codes), dtype=pl.Boolean),
        }
    )


EVERYONE = "curp"

_SEXES = {"1_male": MEN, "2_female": WOMEN}
_GROUP = re.compile(
    r"(?P<split>by_sex_)?(?P<counts>counts_)?(?:level_(?P<level>\d+)_)?(?P<what>.*?)(?P<universe>curp(?:_.*)?)$"
)
_SEX = re.compile(r"(?:(?P<rest>.*?)_)?(?P<sex>1_male|2_female)$")
_CODE = re.compile(r"(?P<code>\d+|[a-z])_(?P<text>.+)$")
_POPULATION = "usually_resident_population_count"
_UNKNOWN = re.compile(r"not_elsewhere_included|not_stated|unidentifiable|residual_categories")
"""People who are in a total but not in its total of stated answers."""


@dataclass(frozen=True, slots=True)
class NamedGroup:
    """One (variable, variable_group) of the file, understood as far as its name goes.

    `what` is the name without prefixes and universe ("01_0_to_4_years", "total"); `id` is that of the characteristic, the
    same for its men and women.
    """

    variable: str
    group: str
    what: str
    universe: str
    level: int
    sex: str
    repeat: bool
    id: str

    @property
    def key(self) -> str:
        """The key of its column."""
        return key_of(self.id, self.sex)

    @property
    def code(self) -> str:
        """The number or letter that the group starts with, or ""."""
        matched = _CODE.match(self.what)
        return matched["code"] if matched else ""

    @property
    def text(self) -> str:
        """What is counted, for people."""
        matched = _CODE.match(self.what)
        return _readable(matched["text"] if matched else self.what or self.variable)

    @property
    def block(self) -> str:
        """The table it stands in, for people."""
        who = self.universe.removeprefix(EVERYONE).strip("_")
        return _readable(self.variable) + (f", {who.replace('_', ' ')}" if who else "")

    @property
    def label(self) -> str:
        """What the column is called; totals bear the name of their table, for there are many."""
        if not self.group:
            return _readable(self.variable)
        again = " by sex" if self.repeat else ""
        return f"{self.text} - {self.block}{again}" if self.is_total or self.is_stated else self.text

    @property
    def is_total(self) -> bool:
        """Whether it counts everybody in its universe."""
        return self.what in ("total", "totals")

    @property
    def is_stated(self) -> bool:
        """Whether it counts everybody who answered."""
        return self.what == "total_stated"

    @property
    def overlaps(self) -> bool:
        """Whether a person may be counted in several groups of the variable."""
        return re.search(r"_total_responses?$", self.variable) is not None

    @property
    def is_unknown(self) -> bool:
        """Whether it counts those who did not."""
        return _UNKNOWN.search(self.what) is not None


def _readable(name: str) -> str:
    text = name.replace("_", " ").strip()
    return text[:1].upper() + text[1:]


def understand(variable: str, group: str) -> NamedGroup:
    """Take the name of a group apart.

    >>> group = understand("age_5_year_groups", "by_sex_01_0_to_4_years_1_male_curp")
    >>> group.id, group.sex, group.text
    ('age_5_year_groups:01_0_to_4_years_curp', 'men', '0 to 4 years')
    >>> understand("smoking_status", "total_curp_15years_and_over").label
    'Total - Smoking status, 15years and over'
    """
    if not group:
        universe = EVERYONE if variable == _POPULATION else ""
        what = TOTAL if variable == _POPULATION else ""
        return NamedGroup(variable, group, what, universe, 0, TOTAL, False, variable)
    matched = _GROUP.match(group)
    if matched is None:
        return NamedGroup(variable, group, group, "", 0, TOTAL, False, f"{variable}:{group}")
    what, universe = matched["what"].rstrip("_"), matched["universe"]
    level = int(matched["level"] or 0)
    split = _SEX.match(what)
    if split is not None and (matched["split"] or (variable == "sex" and not split["rest"])):
        what = split["rest"] or TOTAL
        return NamedGroup(
            variable, group, what, universe, level, _SEXES[split["sex"]], False, f"{variable}:{what}_{universe}"
        )
    return NamedGroup(variable, group, what, universe, level, TOTAL, bool(matched["split"]), f"{variable}:{group}")
