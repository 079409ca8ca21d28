"""Suggested sums: what the names of codes, indentation and rows suggest, within an area and between areas.

None is believed before the counts confirm it. With that it is told how counts were published, which of them are exact, and
which stand unrounded among rounded ones.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms import Exact, Mechanism, Nearest, Rounding
from unround.release import ABSENT, LARGEST, NOT_APPLICABLE, Counts, Release, told_range
from unround.structure import JudgedSum, Structure, find_structure
from unround.structure.decisions import MOST
from unround.structure.evidence import LABELS
from unround.tables.axes import AGE, AREA, OTHER, SEX, TIME, DraftAxis
from unround.tables.derived import FAR, Sums, narrowed
from unround.tables.labels import Range, age_sums, is_country, is_total, is_unknown, period_sums, sex_of, written_age
from unround.tables.profile import indented_below

MOST_PARTS = 5_000
"""Parts of a sum that a description lists."""
HEADED = 0.8
"""Where codes make a hierarchy, so many of those of an upper level have others below them."""

PERIODS = "periods that make up another"

LEAST_ADDED = 3
"""Rows that a row is looked at as the sum of, at least."""
NEARLY = 0.05
"""A row is nearly the sum of all others if the rest is so small a share of it."""


@dataclass(frozen=True, slots=True)
class SuggestedSum:
    """A sum of codes that may hold, what suggests it, and what the counts say of it: whether it is used, and why."""

    axis: str
    total: str
    parts: tuple[str, ...]
    suggested_by: str
    used: bool = False
    why: str = ""
    refused: int = 0

    @property
    def shown(self) -> str:
        """The sum for people, shortened."""
        few = self.parts if len(self.parts) <= 6 else (*self.parts[:2], "…", f"{self.parts[-1]} ({len(self.parts)} parts)")
        return f"{self.total} = {' + '.join(few)}"

    def is_rival_of(self, other: SuggestedSum) -> bool:
        """Return whether two sums cannot both be meant. A total may well be that of ages, and of sexes."""
        same = (self.axis, self.total) == (other.axis, other.total)
        return same and not set(self.parts).isdisjoint(other.parts)


def find_candidates(axis: DraftAxis) -> list[SuggestedSum]:
    """Return the sums that the codes of an axis suggest; several for one total are alternatives, the likelier first.

    >>> axis = DraftAxis("sex", SEX, ("T", "M", "F"))
    >>> [one.shown for one in find_candidates(axis)]
    ['T = M + F']
    >>> axis = DraftAxis("age", AGE, ("Total", "0-14", "15-64", "65+"))
    >>> [one.shown for one in find_candidates(axis)]
    ['Total = 0-14 + 15-64 + 65+']
    """
    if axis.figures:
        axis = replace(axis, codes=tuple(code for code in axis.codes if code not in axis.figures), figures=frozenset())
    periods = [
        SuggestedSum(axis.name, total, parts, PERIODS)
        for total, parts in period_sums({code: axis.labels.get(code, code) for code in axis.codes})
        if len(parts) > 1
    ]
    if axis.about in (TIME, OTHER) and periods:
        return periods
    if axis.about == TIME or len(axis.codes) < 2:
        return []
    totals = [code for code in axis.codes if is_total(*axis.names_of(code), of_places=axis.about == AREA)]
    unknown = [code for code in axis.codes if is_unknown(*axis.names_of(code)) and code not in totals]
    sums = _sexes(axis, totals) + (_ages(axis, totals, unknown) if axis.about in (AGE, OTHER) else [])
    if len(axis.depths) == len(axis.codes):
        codes = axis.codes
        sums += [
            SuggestedSum(axis.name, codes[at], tuple(codes[part] for part in parts), why)
            for at, parts, why in _indented(axis.depths)
        ]
    if not any(suggested.total in totals for suggested in sums):
        sums += _all_others(axis, totals, unknown)
    if axis.about not in (AGE, SEX):
        sums += _prefixes(axis, sums)
    return [suggested for suggested in dict.fromkeys(sums) if 2 <= len(suggested.parts) <= MOST_PARTS]


def _sexes(axis: DraftAxis, totals: list[str]) -> list[SuggestedSum]:
    known = {sex: code for code in axis.codes if (sex := sex_of(*axis.names_of(code))) and code not in totals}
    others = [code for code in axis.codes if code not in known.values() and code not in totals]
    if len(known) == 2 and not totals and len(others) == 1:
        totals, others = others, []  # whatever the third is called
    others = [code for code in others if axis.about == SEX]
    if len(known) < 2 or not totals:
        return []
    both = tuple(code for code in axis.codes if code in known.values())
    sums = [SuggestedSum(axis.name, totals[0], both, "the sexes")]
    if others:
        sums.insert(0, SuggestedSum(axis.name, totals[0], (*both, *others), "the sexes, and those of neither"))
    return sums


def _ages(axis: DraftAxis, totals: list[str], unknown: list[str]) -> list[SuggestedSum]:
    ages: dict[str, Range] = {}
    for code in axis.codes:
        span = next((span for text in axis.names_of(code) if (span := written_age(text, LARGEST)) is not None), None)
        if span is not None and code not in totals and code not in unknown:
            ages[code] = span
    sums = []
    for total, parts in age_sums(ages, totals[0] if totals else None):
        if unknown and total in totals:
            sums.append(SuggestedSum(axis.name, total, (*parts, *unknown), "ages that tile another, and those unknown"))
        sums.append(SuggestedSum(axis.name, total, parts, "ages that tile another"))
    return sums


def _all_others(axis: DraftAxis, totals: list[str], unknown: list[str]) -> list[SuggestedSum]:
    if not totals:
        return []
    total = totals[0]
    others = tuple(code for code in axis.codes if code not in totals)
    sums = [SuggestedSum(axis.name, total, others, "a total and all others")]
    if unknown:
        sums.append(
            SuggestedSum(axis.name, total, tuple(c for c in others if c not in unknown), "a total and all others known")
        )
    return sums


def _numbered(codes: Sequence[str]) -> bool:
    """Return whether codes only count up, as R1 to R30 do: then R1 is not above R10."""
    shared = codes[0].rstrip("0123456789")
    numbers = [code.removeprefix(shared) for code in codes]
    if not all(number.isdecimal() for number in numbers):
        return False
    counted = sorted(map(int, numbers))
    return counted[0] <= 1 and counted == list(range(counted[0], counted[0] + len(counted)))


_STEPS = re.compile(r"[^\W_]+(?:\.[^\W_]+)*")


def _prefixes(axis: DraftAxis, known: list[SuggestedSum]) -> list[SuggestedSum]:
    """Propose that codes such as C10 and C11 are the parts of C; where a total heads them all, only the top ones are."""
    codes = [code for code in axis.codes if _STEPS.fullmatch(code) and not is_total(*axis.names_of(code))]
    if len(codes) < 3 or len(set(map(len, codes))) < 2 or _numbered(codes):
        return []
    below: dict[str, list[str]] = {}
    for code in codes:
        last = code.rfind(".")  # 1.1 is above 1.1.2, and not above 1.10
        cuts = [last] if last > 0 else range(len(code) - 1, 0, -1)
        above = next((code[:cut] for cut in cuts if code[:cut] in codes), None)
        if above is not None:
            below.setdefault(above, []).append(code)
    heads = {len(head) for head in below}
    with_heads = [code for code in codes if len(code) in heads]
    if len(below) < HEADED * len(with_heads):
        return []  # R1 is not above R10, or R2 would be above others too
    sums = [SuggestedSum(axis.name, head, tuple(parts), "codes that begin alike") for head, parts in below.items()]
    inner = {part for suggested in sums for part in suggested.parts if len(suggested.parts) > 1}
    sums += [
        SuggestedSum(
            axis.name,
            suggested.total,
            tuple(part for part in suggested.parts if part not in inner),
            "a total and its top codes",
        )
        for suggested in known
        if inner and suggested.suggested_by.startswith("a total")
    ]
    return sums


MOST_AREAS = 2_000
"""Areas up to which groups that add up are looked for in the counts."""
AGREE = 0.95
"""Areas add up to their total if so many of the compared counts agree."""
MOST_PAIRED = 60
"""Codes of an axis up to which every two of them are compared with every other."""
MULTIPLES, LEAST = 0.85, 12
"""A column of so many multiples of a base, of at least so many counts, is rounded to it; the rest stands there unrounded."""
BASES = (10, 5, 3)


@dataclass(frozen=True, slots=True)
class Adding:
    """How well a total and its parts fit: counts that can be compared, those that agree, and those that cannot be."""

    compared: int
    agree: int
    impossible: int
    exactly: bool = False

    @property
    def fits(self) -> bool:
        """Whether nearly all of them agree, and none is impossible."""
        return not self.impossible and self.agree >= AGREE * self.compared


def adding(counts: Counts, total: int, parts: Sequence[int], base: int, strict: bool = False) -> Adding:
    """Compare a row with the sum of others. Strictly, rounding leaves no more room than it needs nearly always."""
    seen = counts > ABSENT
    known = np.where(seen, counts, 0)[list(parts)].sum(axis=0, dtype=np.int64)
    whole = seen[total]
    complete = whole & seen[list(parts)].all(axis=0)
    many = len(parts) + 1
    room = many * (base - 1) if not strict else math.ceil(4 * math.sqrt(many * (base * base - 1) / 6))
    apart = counts[total].astype(np.int64) - known
    agree = complete & (np.abs(apart) <= room)
    impossible = int((whole & ~complete & (apart < -room)).sum()) + int((complete & ~agree).sum())
    return Adding(int(complete.sum()), int(agree.sum()), impossible, bool((apart[complete] == 0).all()))


def row_sums(axis: DraftAxis, counts: Counts, base: int) -> list[SuggestedSum]:
    """Return the sums of areas that indentation, names or counts suggest: one hierarchy, every area in one other at most.

    `counts` are areas × columns, in the order of the axis's codes; `base` is what they were rounded to, or 1.
    """
    many = len(axis.codes)
    if many < 3 or many != len(counts) or axis.about not in (AREA, OTHER, TIME):
        return []
    named = [at for at in range(many) if is_whole(axis, at)]
    groups: list[tuple[int, list[int], str]] = []
    if axis.depths:
        below = [(many - 1 - total, [many - 1 - part for part in parts[::-1]], "those indented above it")
                 for total, parts, _ in _indented(axis.depths[::-1])]  # fmt: skip
        fitting = [
            [group for group in those if adding(counts, group[0], group[1], base).fits]
            for those in (_indented(axis.depths), below)
        ]
        groups = max(fitting, key=len)
    if not groups:
        groups = _named_groups(named, counts, base)
    if not groups and many <= MOST_AREAS:
        groups = _grouped(counts, base)
    inside = {part for _, parts, _ in groups for part in parts}
    tops = [at for at in range(many) if at not in inside]
    heads = [at for at in tops if at in named and at not in {total for total, _, _ in groups}]
    if len(heads) != 1 and len(tops) > 2:
        ends = [at for at in (tops[-1], tops[0]) if at not in {total for total, _, _ in groups} or not heads]
        heads = [at for at in (heads or ends) if _stands_out(counts, at, [row for row in tops if row != at], base)][:1]
        why = "all others add up to it"
    else:
        why = "a total and all others" if not groups else "a total and those that no other contains"
    if len(heads) == 1:
        others = [at for at in tops if at != heads[0] and at not in named]
        others += [at for at in tops if at != heads[0] and at in named and any(at == total for total, _, _ in groups)]
        if len(others) > 1:
            groups.append((heads[0], sorted(others), why))
    code = axis.codes
    return [SuggestedSum(axis.name, code[total], tuple(code[part] for part in parts), why) for total, parts, why in groups]


def whole_column(axis: DraftAxis, counts: Counts, base: int) -> list[SuggestedSum]:
    """Return the first or the last column as the sum of all others, if it is so in every area beyond coincidence."""
    codes = [code for code in axis.codes if code not in axis.figures]
    if len(codes) < 3 or len(codes) != counts.shape[1]:
        return []
    across = np.ascontiguousarray(counts.T)
    for at in (0, len(codes) - 1):
        others = [column for column in range(len(codes)) if column != at]
        runs = [others] if _stands_out(across, at, others, base) else _runs(across, at, others, base)
        if runs and counts.shape[0] > 2:
            why = "all others add up to it" if len(runs) == 1 else "columns side by side add up to it"
            return [SuggestedSum(axis.name, codes[at], tuple(codes[column] for column in run), why) for run in runs]
    return []


def columns_beside(axis: DraftAxis, counts: Counts, base: int, known: Sequence[SuggestedSum]) -> list[SuggestedSum]:
    """Return neighbours, of columns that stand in no known sum, that add up to one of them, or to the total of known sums.

    Beside men and women of a total may stand its employed and unemployed: readers add these up, whatever names suggest.
    """
    codes = [code for code in axis.codes if code not in axis.figures]
    inside = {part for suggested in known for part in suggested.parts}
    heads = {suggested.total for suggested in known} - inside
    totals = [code for code in codes if code in heads]
    rest = [at for at, code in enumerate(codes) if code not in inside and code not in totals]
    if not known or len(codes) != counts.shape[1] or len(counts) < 3 or not 2 <= len(rest) <= MOST_PAIRED:
        return []
    across = np.ascontiguousarray(counts.T)

    def run_from(total: int, places: Sequence[int]) -> list[int]:
        lengths = range(2, len(places) + 1)
        return list(next((places[:k] for k in lengths if _stands_out(across, total, places[:k], base)), ()))

    sums: list[tuple[int, list[int]]] = []
    for at in tuple(rest):  # a column that heads those after it
        if at in rest and (run := run_from(at, rest[rest.index(at) + 1 :])):
            sums.append((at, run))
            rest = [column for column in rest if column not in run]
    for total in totals:
        start = 0
        while start < len(rest) - 1:
            run = run_from(codes.index(total), rest[start:])
            sums += [(codes.index(total), run)] if run else []
            start += len(run) or 1
    why = "columns side by side add up to it"
    return [SuggestedSum(axis.name, codes[total], tuple(codes[part] for part in parts), why) for total, parts in sums]


def _runs(across: Counts, total: int, others: Sequence[int], base: int) -> list[list[int]]:
    """Return the columns besides a total in runs of neighbours that each add up to it, as by sex and then by age."""
    runs: list[list[int]] = [[]]
    for at in others:
        runs[-1].append(at)
        if len(runs[-1]) > 1 and _stands_out(across, total, runs[-1], base):
            runs.append([])
    return runs[:-1] if not runs[-1] and len(runs) > 2 else []


def may_add_up(axis: DraftAxis, counts: Counts, base: int) -> bool:
    """Return whether some code of an axis may be the sum of others: not if it is below every two of them somewhere.

    `counts` has a column for every code. Years do not add up, and ages that do not overlap do not either.
    """
    codes = [code for code in axis.codes if code not in axis.figures]
    if axis.about == TIME or len(codes) < 3:
        return False
    spans = sorted(span for code in codes if (span := written_age(axis.labels.get(code, code))) is not None)
    if len(spans) == len(codes) and all(first[1] < other[0] for first, other in pairwise(spans)):
        return False
    if len(codes) != counts.shape[1] or len(codes) > MOST_PAIRED:
        return True
    held = np.where(counts > ABSENT, counts, 0).astype(np.int64)
    room = 3 * (base - 1)
    for total in range(len(codes)):
        whole = held[counts[:, total] > ABSENT]
        parts = [at for at in range(len(codes)) if at != total]
        if any(
            (whole[:, total] - whole[:, first] - whole[:, other] >= -room).all() for first, other in combinations(parts, 2)
        ):
            return True
    return False


def rows_may_add_up(axis: DraftAxis, column: Counts, base: int) -> bool:
    """Return whether, in a table of one column, a row may be the sum of others, by its name, its place or its count.

    The first or the last row may be the sum of all others, or nearly, if some were left out; and rows may be groups, each
    below or above its total, that make up the whole table.
    """
    if any(axis.depths) or any(is_total(*axis.names_of(code), of_places=False) for code in axis.codes):
        return True
    low, high = reach(column[:, None], base)
    printed = column[column > ABSENT].astype(np.int64)
    nearly = [end for end in (*printed[:1], *printed[-1:]) if abs(2 * end - printed.sum()) <= NEARLY * end]
    halves = (_in_groups(low[::step, 0], high[::step, 0]) for step in (1, -1))
    return bool(nearly) or bool(like_totals(column[:, None], base)) or any(halves)


def _in_groups(low: NDArray[np.int64], high: NDArray[np.int64]) -> bool:
    """Return whether all rows may be groups: a total each, and its parts below it."""
    begins = np.zeros(len(low) + 1, dtype=np.bool_)
    begins[0] = True
    for total in range(len(low)):
        if begins[total]:
            least, most = np.cumsum(low[total + 1 :]), np.cumsum(high[total + 1 :])
            begins[total + 2 :] |= (least <= high[total]) & (most >= low[total])
    return bool(begins[-1])


def reach(counts: Counts, base: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the least and the most that every count can be: hidden ones as told, or up to the largest of their column."""
    numbers = np.where(counts > ABSENT, counts, 0).astype(np.int64)
    low, high = np.maximum(numbers - (base - 1), 0), numbers + (base - 1)
    for code in np.unique(counts[counts <= ABSENT]).tolist():
        cells = counts == code
        ends = (0, 0) if code == NOT_APPLICABLE else told_range(code)
        low[cells] = ends[0] if ends else 0
        high[cells] = ends[1] if ends else np.broadcast_to(numbers.max(axis=0), counts.shape)[cells]
    return low, high


def like_totals(counts: Counts, base: int = 1) -> list[int]:
    """Return which of the first and the last row may be the sum of all others, wherever it is printed."""
    low, high = reach(counts, base)
    rows = []
    for row in (0, len(counts) - 1) if len(counts) > LEAST_ADDED else ():
        there = counts[row] > ABSENT
        least, most = (np.delete(ends, row, axis=0).sum(axis=0) for ends in (low, high))
        if there.any() and ((least <= high[row]) & (most >= low[row]))[there].all():
            rows.append(row)
    return rows


def is_whole(axis: DraftAxis, at: int) -> bool:
    """Return whether a row is called like a total; names of countries count at either end, or if there is only one."""
    names = axis.names_of(axis.codes[at])
    if is_total(*names, of_places=True) or not any(map(is_country, names)):
        return is_total(*names, of_places=True)
    countries = [place for place, code in enumerate(axis.codes) if any(map(is_country, axis.names_of(code)))]
    return at in (0, len(axis.codes) - 1) or len(countries) == 1


def _indented(depths: Sequence[int]) -> list[tuple[int, list[int], str]]:
    """Return every row that others are indented below, with those one step below it."""
    return [(total, parts, "those indented below it") for total, parts in indented_below(depths).items() if len(parts) > 1]


def _stands_out(counts: Counts, total: int, parts: Sequence[int], base: int) -> bool:
    """Return whether a row is the sum of others beyond coincidence."""
    fit = adding(counts, total, parts, base, strict=True)
    room = 4 * math.sqrt((len(parts) + 1) * (base * base - 1) / 6)
    large = int((counts[total] > 10 * max(1.0, room)).sum())
    return fit.fits and fit.compared > 0 and large > 0 and (fit.compared > 1 or (base == 1 and len(parts) > 2))


def _named_groups(named: Sequence[int], counts: Counts, base: int) -> list[tuple[int, list[int], str]]:
    """Return the rows called totals, each with the rows between it and the next one, where all of these add up."""
    for step in (1, -1):
        groups: list[tuple[int, list[int], str]] = []
        for at in named:
            beyond = [other for other in named if (other - at) * step < 0]
            edge = max(beyond, default=-1) if step == 1 else min(beyond, default=len(counts))
            parts = list(range(edge + 1, at)) if step == 1 else list(range(at + 1, edge))
            if len(parts) > 1:
                where = "above" if step == 1 else "below"
                groups.append((at, parts, f"a total, and the rows {where} it"))
        if len(groups) > 1 and all(adding(counts, total, parts, base).fits for total, parts, _ in groups):
            return groups
    return []


def _grouped(counts: Counts, base: int) -> list[tuple[int, list[int], str]]:
    """Return rows that the rows right above or below add up to, where such groups make up the table.

    Among many rows some add up to a neighbour by chance; so all rows must be in groups, but for a total at either end.
    Beside a group that stands out, one with hidden counts need only agree where all are printed.
    """
    many = len(counts)
    blank: NDArray[np.bool_] = np.asarray((counts <= ABSENT).all(axis=1))
    for step in (1, -1):
        groups: list[tuple[int, list[int], str]] = []
        where = "below" if step == 1 else "above"
        order = list(range(many))[::step]
        place, sure = 0, 0
        while place < many - 2:
            head, rest = order[place], order[place + 1 :]
            long = _adds_up(counts, head, rest, base, sure=True)
            sure += bool(long)
            long = long or _adds_up(counts, head, rest, base, sure=False)
            if not long and blank[rest].any() and (long := _may_add_up(counts, head, rest, base, blank)):
                groups.append((head, sorted(rest[:long]), f"the rows {where} it may add up to it, one of which is hidden"))
            elif long:
                groups.append((head, sorted(rest[:long]), f"the rows {where} it add up to it"))
            place += 1 + long
        if sure and len(groups) > 1 and sum(1 + len(parts) for _, parts, _ in groups) >= many - 2:
            return sorted(groups)
    return []


def _adds_up(counts: Counts, head: int, rest: Sequence[int], base: int, sure: bool) -> int:
    """Return how many of the rows that follow add up to one, surely or as far as they are printed; 0 if none do."""
    whole = counts[head] > ABSENT
    so_far = np.zeros(int(whole.sum()), dtype=np.int64)
    for long in range(1, len(rest) + 1 if whole.any() else 0):
        run = list(rest[:long])
        so_far += np.maximum(counts[run[-1]][whole], 0)
        if (counts[head][whole] < so_far - 9 * base).any():
            return 0
        if long > 1 and sure and _stands_out(counts, head, run, base):
            return long
        if long > 1 and not sure and (counts[[head, *run]] <= ABSENT).any():
            fit = adding(counts, head, run, base, strict=True)
            if fit.fits and fit.compared:
                return long
    return 0


def _may_add_up(counts: Counts, head: int, rest: Sequence[int], base: int, blank: NDArray[np.bool_]) -> int:
    """Return how many of the rows that follow may add up to one: all up to the next such group, if one of them is blank."""
    so_far = np.zeros(counts.shape[1], dtype=np.int64)
    for long, row in enumerate(rest):
        if long > 1 and _adds_up(counts, row, rest[long + 1 :], base, sure=True):
            rest = rest[:long]
            break
        so_far += np.maximum(counts[row], 0)
        if ((counts[head] > ABSENT) & (counts[head] < so_far - 9 * base)).any():
            return 0
    return len(rest) if len(rest) > 1 and blank[list(rest)].any() and not blank[head] else 0


def verdict(candidate: SuggestedSum, axis: DraftAxis, counts: Counts, base: int) -> SuggestedSum:
    """Return a sum of areas with what the counts say of it."""
    at = {code: place for place, code in enumerate(axis.codes)}
    fit = adding(counts, at[candidate.total], [at[part] for part in candidate.parts], base)
    if not fit.fits:
        wrong = fit.impossible or fit.compared - fit.agree
        return replace(
            candidate, why=f"does not hold: impossible in {wrong:,} of {counts.shape[1]:,} columns", refused=wrong
        )
    why = f"consistent in {fit.agree:,} of {fit.compared:,} columns"
    hidden = "taken on trust: in every column a count of it is hidden"
    return replace(candidate, used=True, why=why if fit.compared else hidden)


def possible(
    counts: Counts, below: NDArray[np.int64], above: NDArray[np.int64], known: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the least and the most that every count may be, so far below and above what is printed."""
    low = np.where(known, np.maximum(counts - below, 0), 0).astype(np.int64)
    return low, np.where(known, counts + above, FAR).astype(np.int64)


def tells_if_nearest(counts: Counts, bases: Sequence[int], sums: Sums, of_rows: Sums) -> bool:
    """Return whether counts may have been rounded to the nearest multiple, and some of them would follow then.

    `bases` has the base of every column, 1 where counts are exact and 0 where nothing is known of them; `sums` are of
    columns, and `of_rows` of rows, each a total and its parts.
    """
    base = np.asarray(bases, dtype=np.int64)
    known = (counts > ABSENT) & (base > 0)
    low, high = possible(counts, base // 2, np.maximum(base - 1, 0) // 2, known)
    return narrowed(low, high, sums, of_rows) and bool(((low == high) & known & (base > 1)).any())


def base_of(how: Mechanism | None, counts: Counts) -> int:
    """Return the base that a table is rounded to: as told, or the largest that nearly all are multiples of; or 1."""
    if isinstance(how, Rounding | Nearest):
        return how.base
    if how is not None:
        return 1
    above = (counts > ABSENT) & (counts != 0)
    there = above.sum(axis=0)
    for base in BASES:
        multiples = (above & (counts % base == 0)).sum(axis=0)
        rounded = (there > 0) & (multiples >= MULTIPLES * there)
        if rounded.sum() >= counts.shape[1] / 2 and multiples[rounded].sum() >= LEAST:
            return base
    return 1


def unrounded(counts: Counts, base: int) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the rows that are not rounded though their columns are, and the single cells that are not.

    >>> table = np.array([[5 * row + 10, 5 * row + 15] for row in range(20)], dtype=np.int32)
    >>> table[3, 1] = 1
    >>> unrounded(table, 5)
    ([], [(3, 1)])
    """
    if base < 2 or not counts.size:
        return [], []
    seen = (counts > ABSENT) & (counts != 0)
    odd: NDArray[np.bool_] = seen & (counts % base != 0)
    rows = [at for at in range(len(counts)) if odd[at].sum() > 1 and odd[at].sum() >= 0.5 * seen[at].sum()]
    rows = rows if len(rows) <= max(1, len(counts) // 10) else []
    rest = np.ones(len(counts), dtype=bool)
    rest[rows] = False
    there, wrong = seen[rest].sum(axis=0), odd[rest].sum(axis=0)
    rounded = (there >= LEAST // 2) & (there - wrong >= MULTIPLES * there)
    if not rounded.any():
        return [], []
    rows = [at for at in rows if odd[at, rounded].sum() >= 0.5 * max(1, seen[at, rounded].sum())]
    cells = [(int(row), int(column)) for row, column in np.argwhere(odd & rest[:, None] & rounded[None, :])]
    return rows, cells


REFUSED = ("impossible", "mean", "spread")
"""Why a sum is wrong; other reasons say that nothing tells."""
UNTESTED = ("unknown", "absent")
"""Why nothing can be said of a sum: how its counts were published is not known, or they are not there."""
TOLERATED = 0.2
"""A sum of codes may be refused in this share of the columns that it spreads over: chance, where there are many."""
MANY_ROWS = 6
"""Codes from which an axis can be that of the rows, though it has a total."""
MOST_RULES = 50


def row_axes(axes: Sequence[DraftAxis], candidates: Mapping[str, Sequence[SuggestedSum]]) -> list[str]:
    """Return the axes of the rows: areas, years, and whatever has no sums; the others are columns.

    Sums of the columns are what an audit infers from. Areas come in rows even if they have a total, for they are many.
    """
    areas = [axis.name for axis in axes if axis.about == AREA][:1]
    summed = [axis.name for axis in axes if candidates.get(axis.name)]
    columns = [
        axis.name
        for axis in axes
        if axis.about in (AGE, SEX) or axis.figures or (axis.name in summed and axis.name not in areas)
    ]  # rates are of counts beside them
    if areas:  # then a header does not name areas
        columns += [axis.name for axis in axes if axis.column is None and axis.about == OTHER and axis.name not in columns]
    columns = [name for name in columns if next(a for a in axes if a.name == name).about != TIME]
    if not columns:
        headers = [axis.name for axis in axes if axis.column is None]
        columns = headers or [axis.name for axis in axes if axis.name not in areas and axis.about != TIME] or areas
        columns = columns or [axis.name for axis in axes[:1]]
    rows = [axis.name for axis in axes if axis.name not in columns]
    large = [axis for axis in axes if axis.about == OTHER and len(axis.codes) - len(axis.figures) >= MANY_ROWS]
    if not rows and len(columns) > 1 and large:
        rows = [max(large, key=lambda axis: len(axis.codes)).name]
    return rows


def verify(release: Release, candidates: Sequence[SuggestedSum]) -> tuple[Structure, list[SuggestedSum]]:
    """Let the counts judge the sums that were suggested: codes of axes, all of which the release proposes."""
    # What a person says in a file is taken as said; what names suggest has to stand the test.
    doubted = tuple(replace(proposal, origin="names") for proposal in release.proposals)
    structure = find_structure(replace(release, proposals=doubted))
    return structure, _best(
        [_judged(candidate, release, structure) for candidate in candidates if candidate.axis in release.axes]
    )


def _judged(candidate: SuggestedSum, release: Release, structure: Structure) -> SuggestedSum:
    """Gather what the counts say of one sum at all codes of the other axes."""
    place = release.axes.index(candidate.axis)
    columns = release.columns
    wanted = frozenset(candidate.parts)
    mine: list[JudgedSum] = []
    for judged in (*structure.sums, *structure.rejected):
        total = columns[judged.total].codes
        if total[place] == candidate.total and len(judged.parts) == len(wanted):
            codes = {columns[part].codes for part in judged.parts}
            along = all(c[:place] + c[place + 1 :] == total[:place] + total[place + 1 :] for c in codes)
            if along and frozenset(c[place] for c in codes) == wanted:
                mine.append(judged)
    refused = [judged for judged in mine if not judged.kept and judged.cause in REFUSED]
    fine = [judged for judged in mine if judged.kept or judged.unjudged or judged.exactly or judged.cause in UNTESTED]
    hopeless = any(judged.impossible > MOST * judged.areas for judged in refused)  # nobody may insist on such a sum
    used = bool(fine) and len(refused) <= TOLERATED * len(mine) and not hopeless
    return replace(candidate, used=used, why=_words(mine, fine, refused, used), refused=len(refused))


def _words(mine: Sequence[JudgedSum], fine: Sequence[JudgedSum], refused: Sequence[JudgedSum], used: bool) -> str:
    if not mine:
        return "its codes never occur together"
    if not used:
        return f"does not hold: {max(refused or mine, key=lambda judged: judged.impossible).why}"
    if all(judged.exactly for judged in fine):
        return "adds up exactly: the total was added up after rounding, and tells nothing about its parts"
    if all(judged.cause in UNTESTED for judged in fine):
        return f"taken on trust, for the counts cannot confirm it: {fine[0].why}"
    areas = max(judged.areas for judged in fine)
    if all(judged.unjudged for judged in fine):
        return f"too small to be tested by the counts of {areas:,} rows; taken on trust"
    impossible = sum(judged.impossible for judged in fine)
    return f"confirmed by the counts of {areas:,} rows" + (f"; impossible in {impossible:,} places" if impossible else "")


def _best(verdicts: Sequence[SuggestedSum]) -> list[SuggestedSum]:
    """Use of several sums for a total, which share parts, the one that is refused least; of equals the first."""
    chosen: list[SuggestedSum] = []
    for verdict in sorted((verdict for verdict in verdicts if verdict.used), key=lambda verdict: verdict.refused):
        if not any(map(verdict.is_rival_of, chosen)):
            chosen.append(verdict)
    made = []
    for verdict in verdicts:
        rival = next((other for other in chosen if other is not verdict and verdict.is_rival_of(other)), None)
        if verdict.used and rival is not None and not any(other is verdict for other in chosen):
            verdict = replace(verdict, used=False, why=f"another sum fits at least as well: {rival.shown}")
        made.append(verdict)
    return made


def trusted(release: Release, structure: Structure) -> Release:
    """Return a release whose sums are taken as labels suggest them, unless the counts make that impossible.

    Every one of them was verified as a sum of codes; where counts are too small to tell, it holds as it does elsewhere. Only
    where it is not known how counts were published do labels not count. Nobody says that these sums hold: claims that need
    one are conditional on it.
    """
    untold = {codes for codes, how in structure.by_codes.items() if how is None}
    columns = release.columns
    origin = [
        "names" if any(columns[at].codes in untold for at in (proposal.total, *proposal.parts)) else LABELS
        for proposal in release.proposals
    ]
    return replace(
        release,
        proposals=tuple(replace(proposal, origin=by) for proposal, by in zip(release.proposals, origin, strict=True)),
    )


@dataclass(frozen=True, slots=True)
class SuggestedProtection:
    """How counts were published: usually, and where otherwise; as far as the counts tell, or as a person says."""

    default: Mechanism | None
    why: str
    others: tuple[tuple[Mechanism, tuple[Mapping[str, tuple[str, ...]], ...]], ...] = ()
    said: bool = False
    note: str = ""

    def as_said(self, mechanism: Mechanism) -> SuggestedProtection:
        """Return what holds if a person says how counts were published; those that are exact among others stay so."""
        exact = () if self.default in (None, Exact()) else tuple(rule for rule in self.others if rule[0] == Exact())
        return SuggestedProtection(mechanism, "as you say", exact, said=True)


def protection(release: Release, structure: Structure) -> SuggestedProtection:
    """Return how counts were published, as rules of a description."""
    kinds = Counter(how for how in structure.mechanisms if how is not None)
    rounded = {how: times for how, times in kinds.items() if not isinstance(how, Exact)}
    if not kinds:
        why = next((evidence.why for evidence in structure.how), "there are no counts")
        return SuggestedProtection(None, why)
    default = max(rounded or kinds, key=lambda how: kinds[how])
    usual = [evidence for evidence in structure.how if evidence.mechanism == default]
    why = max(usual, key=lambda evidence: len(evidence.columns)).why
    others = []
    for how in kinds:
        if how != default:
            those = [at for at, kind in enumerate(structure.mechanisms) if kind == how]
            others.append((how, tuple(_where(release, those))))
    return SuggestedProtection(default, why, tuple(others))


def _where(release: Release, those: Sequence[int]) -> list[Mapping[str, tuple[str, ...]]]:
    """Return the rules, as codes of axes, that say which columns are meant: one if that is possible."""
    wanted = {release.columns[at].codes for at in those}
    everything = [column.codes for column in release.columns]
    sides = [
        tuple(dict.fromkeys(codes[place] for codes in everything if codes in wanted)) for place in range(len(release.axes))
    ]
    product = {codes for codes in everything if all(code in side for code, side in zip(codes, sides, strict=True))}
    if product == wanted:
        full = [{codes[place] for codes in everything} for place in range(len(release.axes))]
        rule = {
            axis: side for axis, side, all_ in zip(release.axes, sides, full, strict=True) if set(side) != all_
        }  # fmt: skip
        return [rule or {release.axes[0]: sides[0]}]
    if len(wanted) > MOST_RULES:
        return []
    return [
        {axis: (code,) for axis, code in zip(release.axes, codes, strict=True)} for codes in everything if codes in wanted
    ]
