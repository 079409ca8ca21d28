"""Balances: columns that are equal to others when each side is added up, where no total is printed.

Those present in January and those who came are those who left and those present in December. No column is the sum of
others, so the search for sums finds nothing; yet one hidden count in four follows from the other three.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from unround.release import ABSENT, Counts
from unround.structure.evidence import Equation

_WIDEST = 24  # no balance is looked for among more columns
_TALLEST = 60  # rows that a balance is worked out from; it is then held against all
_SPARE = 2  # rows beyond the number of columns that must agree: with fewer, some balance always fits
_LONGEST = 61  # moving totals add up fewer rows
_VARIED = 4  # different counts that a column must hold, so that it does not fit by coincidence


@dataclass(frozen=True, slots=True)
class Balance:
    """Columns whose sum is that of other columns, in so many rows; and how many hidden counts would follow from it."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    rows: int
    follow: int


def balances(counts: Counts, known: Sequence[Equation] = ()) -> Iterator[Balance]:
    """Yield the balances that hold in every row printed in full, follow from no known sum, and would tell hidden counts.

    >>> flow = [[9, 4, 6, 7], [12, 8, 5, 15], [7, 3, 1, 9], [20, 2, 11, 11], [31, 6, 9, 28], [14, 9, 4, 19]]
    >>> list(balances(np.array([*flow, [16, ABSENT, 8, 13]])))
    [Balance(left=(0, 1), right=(2, 3), rows=6, follow=1)]
    """
    shown = counts > ABSENT
    whole = counts[shown.all(axis=1)]
    totals = {total for total, _ in known}
    columns = [at for at in range(counts.shape[1]) if at not in totals and len(np.unique(whole[:, at])) >= _VARIED]
    if shown.all() or not 2 < len(columns) <= _WIDEST or len(whole) < len(columns) + _SPARE:
        return
    equations = np.zeros((len(known) + 1, counts.shape[1]))
    for row, (total, parts) in zip(equations, known, strict=False):
        row[list(parts)] = 1
        row[total] -= 1
    for vector in _vanishing(whole[:_TALLEST, columns]):
        factors = np.zeros(counts.shape[1], np.int64)
        factors[columns] = vector
        equations[-1] = factors
        implied = np.linalg.matrix_rank(equations) == np.linalg.matrix_rank(equations[:-1])
        left, right = (tuple(np.flatnonzero(factors == sign).tolist()) for sign in (1, -1))
        follow = int(((~shown[:, [*left, *right]]).sum(axis=1) == 1).sum())
        if follow and not implied and not (whole @ factors).any():
            yield Balance(left, right, len(whole), follow)


def running_totals(counts: Counts) -> Iterator[tuple[int, Balance]]:
    """Yield columns that add up another one row by row, each with the rows that it adds up, where that tells hidden counts.

    `left` is what is added up, `right` the running total. A year to date adds up all rows so far, which is written as 0; its
    first row may begin anew or go on from before. A moving total adds up the last twelve months, say: what is newly in it
    and what has left it are its change from row to row.

    >>> list(running_totals(np.array([[8, 8], [5, 13], [ABSENT, 15], [9, 24], [7, 31], [4, 35]])))
    [(0, Balance(left=(0,), right=(1,), rows=4, follow=1))]
    >>> moving = [[8, ABSENT], [5, 13], [ABSENT, 7], [9, 11], [7, 16], [4, 11], [1, 5], [6, 7]]
    >>> list(running_totals(np.array(moving)))
    [(2, Balance(left=(0,), right=(1,), rows=4, follow=1))]
    """
    shown = counts > ABSENT
    values = np.where(shown, counts, 0).astype(np.int64)
    for added in np.flatnonzero(~shown.all(axis=0)).tolist():
        for total, span in product(range(counts.shape[1]), (0, *range(2, min(_LONGEST, len(counts) - _VARIED + 1)))):
            if total == added or (span and counts.shape[1] > _WIDEST):
                continue
            start = max(1, span)
            new, old = slice(start, None), slice(start - span, -span if span else 0)
            pairs = shown[new, total] & shown[start - 1 : -1, total]
            change = np.diff(values[:, total])[start - 1 :] - values[new, added]
            both = pairs & shown[new, added]
            unknown = (~shown[new, added]).astype(np.int64)
            if span:
                change += values[old, added]
                both &= shown[old, added]
                unknown += ~shown[old, added]
            telling = int((pairs & (unknown == 1)).sum())
            if span:  # what is hidden may also be the only gap among the rows that a moving total adds up
                gaps, sums = (
                    np.convolve(column, np.ones(span, np.int64), "valid") for column in (~shown[:, added], values[:, added])
                )
                there = shown[span - 1 :, total]
                telling += int(((gaps == 1) & there).sum())
                if (sums != values[span - 1 :, total])[(gaps == 0) & there].any():
                    continue
            follow = min(telling, int((~shown[:, added]).sum()))
            varied = len(np.unique(counts[new, added][both])) >= _VARIED - 1
            if follow and varied and not change[both].any():
                yield span, Balance((added,), (total,), int(both.sum()), follow)


def _vanishing(whole: Counts) -> Iterator[list[int]]:
    """Yield factors of -1, 0 and 1 of at least three columns under which the columns add up to zero in every row."""
    rows = [[Fraction(int(count)) for count in row] for row in whole]
    width, pivots = whole.shape[1], list[int]()
    for column in range(width):
        at = len(pivots)
        chosen = next((place for place in range(at, len(rows)) if rows[place][column]), None)
        if chosen is None:
            continue
        rows[at], rows[chosen] = rows[chosen], rows[at]
        rows[at] = [value / rows[at][column] for value in rows[at]]
        for place, row in enumerate(rows):
            if place != at and row[column]:
                rows[place] = [value - row[column] * top for value, top in zip(row, rows[at], strict=True)]
        pivots.append(column)
    for free in (column for column in range(width) if column not in pivots):
        factors = [Fraction(0)] * width
        factors[free] = Fraction(1)
        for at, column in enumerate(pivots):
            factors[column] = -rows[at][free]
        sides = {factor for factor in factors if factor}
        if sides == {-1, 1} and sum(map(bool, factors)) > 2:
            first = next(factor for factor in factors if factor)
            yield [int(factor * first) for factor in factors]
