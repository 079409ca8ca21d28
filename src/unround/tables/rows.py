"""Rows: which areas add up to which, by indentation, names or counts; and what stands unrounded among rounded counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms import Mechanism, Nearest, Rounding
from unround.release import ABSENT, Counts
from unround.tables.axes import AREA, OTHER, DraftAxis
from unround.tables.candidates import Candidate, Verdict
from unround.tables.labels import is_country, is_total

MOST_AREAS = 2_000
"""Areas up to which groups that add up are looked for in the counts."""
AGREE = 0.95
"""Areas add up to their total if so many of the compared counts agree."""
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


def row_sums(axis: DraftAxis, counts: Counts, base: int) -> list[Candidate]:
    """Return the sums of areas that indentation, names or counts suggest: one hierarchy, every area in one other at most.

    `counts` are areas × columns, in the order of the axis's codes; `base` is what they were rounded to, or 1.
    """
    many = len(axis.codes)
    if many < 3 or many != len(counts) or axis.about not in (AREA, OTHER):
        return []
    named = [at for at in range(many) if _is_whole(axis, at)]
    found: list[tuple[int, list[int], str]] = []
    if axis.depths:
        found = [one for one in _indented(axis.depths) if adding(counts, one[0], one[1], base).fits]
    if not found and many <= MOST_AREAS:
        found = _grouped(counts, base)
    inside = {part for _, parts, _ in found for part in parts}
    tops = [at for at in range(many) if at not in inside]
    heads = [at for at in tops if at in named and at not in {total for total, _, _ in found}]
    if len(heads) != 1 and len(tops) > 2:
        ends = [at for at in (tops[-1], tops[0]) if at not in {total for total, _, _ in found} or not heads]
        heads = [at for at in (heads or ends) if _stands_out(counts, at, [one for one in tops if one != at], base)][:1]
        why = "all others add up to it"
    else:
        why = "a total and all others" if not found else "a total and those that no other contains"
    if len(heads) == 1:
        others = [at for at in tops if at != heads[0] and at not in named]
        others += [at for at in tops if at != heads[0] and at in named and any(at == total for total, _, _ in found)]
        if len(others) > 1:
            found.append((heads[0], sorted(others), why))
    code = axis.codes
    return [Candidate(axis.name, code[total], tuple(code[part] for part in parts), why) for total, parts, why in found]


def whole_column(axis: DraftAxis, counts: Counts, base: int) -> list[Candidate]:
    """Return the first or the last column as the sum of all others, if it is so in every area beyond coincidence."""
    codes = [code for code in axis.codes if code not in axis.figures]
    if len(codes) < 3 or len(codes) != counts.shape[1]:
        return []
    across = np.ascontiguousarray(counts.T)
    for at in (0, len(codes) - 1):
        others = [one for one in range(len(codes)) if one != at]
        if _stands_out(across, at, others, base) and counts.shape[0] > 2:
            return [Candidate(axis.name, codes[at], tuple(codes[one] for one in others), "all others add up to it")]
    return []


def _is_whole(axis: DraftAxis, at: int) -> bool:
    """Return whether a row is called like a total; names of countries count at either end of a table."""
    names = axis.names_of(axis.codes[at])
    return is_total(*names, of_places=True) or (at in (0, len(axis.codes) - 1) and any(is_country(name) for name in names))


def _indented(depths: Sequence[int]) -> list[tuple[int, list[int], str]]:
    """Return every row that others are indented below, with those one step below it."""
    found: dict[int, list[int]] = {}
    above: list[int] = []
    for at, depth in enumerate(depths):
        while above and depths[above[-1]] >= depth:
            above.pop()
        if above:
            found.setdefault(above[-1], []).append(at)
        above.append(at)
    return [(total, parts, "those indented below it") for total, parts in found.items() if len(parts) > 1]


def _stands_out(counts: Counts, total: int, parts: Sequence[int], base: int) -> bool:
    """Return whether a row is the sum of others beyond coincidence."""
    fit = adding(counts, total, parts, base, strict=True)
    room = 4 * math.sqrt((len(parts) + 1) * (base * base - 1) / 6)
    large = int((counts[total] > 10 * max(1.0, room)).sum())
    return fit.fits and fit.compared > 0 and large > 0 and (fit.compared > 1 or (base == 1 and len(parts) > 2))


def _grouped(counts: Counts, base: int) -> list[tuple[int, list[int], str]]:
    """Return rows that the rows right above or below add up to, where such groups make up the table.

    Among many rows some add up to a neighbour by chance; so all rows must be in groups, but for a total at either end.
    """
    many = len(counts)
    room = np.where(counts > ABSENT, counts, 0)
    inner = list(range(many))
    for step in (1, -1):
        found: list[tuple[int, list[int], str]] = []
        order = inner if step == 1 else inner[::-1]
        place = 0
        while place < len(order) - 2:
            head = order[place]
            run: list[int] = []
            for one in order[place + 1 :]:
                run.append(one)
                if len(run) > 1 and _stands_out(counts, head, run, base):
                    where = "below" if step == 1 else "above"
                    found.append((head, sorted(run), f"the rows {where} it add up to it"))
                    place += len(run)
                    break
                if (room[head] < room[run].sum(axis=0) - 9 * base).any():
                    break
            place += 1
        if len(found) > 1 and sum(1 + len(parts) for _, parts, _ in found) >= many - 2:
            return sorted(found)
    return []


def verdict(candidate: Candidate, axis: DraftAxis, counts: Counts, base: int) -> Verdict:
    """Return what the counts say of a sum of areas."""
    at = {code: place for place, code in enumerate(axis.codes)}
    fit = adding(counts, at[candidate.total], [at[part] for part in candidate.parts], base)
    if not fit.fits:
        wrong = fit.impossible or fit.compared - fit.agree
        return Verdict(
            candidate, False, f"does not hold: impossible in {wrong:,} of {counts.shape[1]:,} columns", wrong, fit.compared
        )
    if not fit.compared:
        return Verdict(candidate, True, "taken on trust: in every column a count of it is hidden", 0, 0)
    return Verdict(candidate, True, f"consistent in {fit.agree:,} of {fit.compared:,} columns", 0, fit.compared)


def base_of(how: Mechanism | None, counts: Counts) -> int:
    """Return the base that a table is rounded to: as told, or the largest of which nearly all are multiples; or 1."""
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

    Examples
    --------
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
