"""The grid of a figure: the steps that its values were rounded to, found in the values themselves.

Agencies print figures on grids that are coarser than their decimals: incomes in steps that grow with the income, rates in
steps that shrink with the number of people behind them. Steps are 1, 2, 4 or 5 times a power of ten. What is looked for is
the largest step in use, never one that is too small: a step that is too small would make a figure say more than it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.figures import Grid, Steps
from unround.release import FIGURE_ABSENT, FIGURE_UNIT, FigureValues

Ints = NDArray[np.int64]

NEARLY_ALL = 0.995
"""A step is one of all values if so many are multiples of it; the others are slips."""
EXCESS = 0.04
"""A larger step is in use if so many of the values, more than beside its multiples, are multiples of it."""
_ERRORS = 4.0
"""And so many standard errors more."""
FEW = 40
"""Values from which a step can be told."""
SLIPS = 5
"""A step is too large for areas of some size if so many values of smaller areas are no multiples of it."""
MARGIN = 1.3
"""Areas must be so many times as large for that: within a range of values, sizes at which steps change differ by as much."""
_DECADE = (100, 128, 160, 200, 256, 320, 400, 500, 640, 800)
"""Where steps may change within a power of ten, in hundredths of it."""
_UNKNOWN = 1 << 50
"""More units than there are."""


def steps_of(grid: Grid, values: FigureValues, units: Ints | None = None) -> Ints:
    """Return the step around every value, in `FIGURE_UNIT`, as `Grid.step` does one by one."""
    size = np.where(values == FIGURE_ABSENT, 0, np.abs(values))
    ends, table, edges = _in_units(grid)
    row = np.zeros(len(size), np.int64) if units is None else np.searchsorted(edges, units, side="right")
    if grid.nested:
        row = np.where(size == 0, 0, row)
    at = np.searchsorted(ends, size, side="right") - 1
    before = np.where((at > 0) & (ends[at] == size), table[row, np.maximum(at - 1, 0)], 0)
    most = np.maximum(table[row, at], before)
    if not grid.nested:
        return most
    found = np.ones_like(most)
    for step in nice_steps(int(most.max(initial=1))):
        found = np.where((step <= most) & (size % step == 0), step, found)
    return found


class _StepTable(NamedTuple):
    """A grid in whole numbers: where steps begin, the steps by units and value, and from how many units each row is."""

    ends: Ints
    table: Ints
    edges: Ints


_KEPT: dict[int, tuple[Grid, _StepTable]] = {}
_MOST_KEPT = 256


def _in_units(grid: Grid) -> _StepTable:
    """Return a grid in whole numbers, worked out once: it has thousands of fractions, which are even slow to compare."""
    kept = _KEPT.get(id(grid))
    if kept is None or kept[0] is not grid:
        if len(_KEPT) >= _MOST_KEPT:
            _KEPT.clear()
        tables = [grid.steps, *(steps for _, steps in grid.by_units)]
        ends = np.array(sorted({int(start / FIGURE_UNIT) for steps in tables for start, _ in steps}), dtype=np.int64)
        edges = np.array([least for least, _ in grid.by_units], dtype=np.int64)
        kept = _KEPT[id(grid)] = grid, _StepTable(ends, np.stack([_spread(steps, ends) for steps in tables]), edges)
    return kept[1]


def _spread(steps: Steps, ends: Ints) -> Ints:
    """Return the step from each of some ends on, in units."""
    starts = np.array([int(start / FIGURE_UNIT) for start, _ in steps], dtype=np.int64)
    wide = np.array([int(step / FIGURE_UNIT) for _, step in steps], dtype=np.int64)
    return np.asarray(wide[np.searchsorted(starts, ends, side="right") - 1])


def nice_steps(largest: int) -> Ints:
    """Return the steps that are looked for, in units, up to a number.

    Examples
    --------
    >>> nice_steps(45).tolist()
    [1, 2, 4, 5, 10, 20, 40]
    """
    found = [digit * 10**power for power in range(12) for digit in (1, 2, 4, 5)]
    return np.array([step for step in found if step <= max(largest, 1)], dtype=np.int64)


def decimals_of(values: FigureValues) -> int:
    """Return the finest step of some values, in units: the largest that (nearly) all are multiples of."""
    shown = values[values != 0]
    if not len(shown):
        return int(1 / FIGURE_UNIT)
    steps = nice_steps(int(np.abs(shown).max()))
    return max((int(step) for step in steps if np.mean(shown % step == 0) >= NEARLY_ALL), default=1)


def find_grid(values: FigureValues, units: Ints | None = None) -> Grid:
    """Return the grid of some published values: one step everywhere, or limits to steps that differ.

    That a step is too large can be seen in values that are no multiples of it; that it is not, never for certain. So a
    step counts as possible in every area but those that are clearly larger than some whose values rule it out, as steps do
    not grow with the number of units.
    """
    size = np.abs(values)
    fine = decimals_of(size)
    shown = size > 0
    if shown.sum() < FEW or largest_in_use(size[shown]) == fine:
        return Grid.of(fine * FIGURE_UNIT)
    ends = _ends(int(size.max()), fine)
    place = np.searchsorted(ends, size, side="right") - 1
    ruled_out = {}
    for cell in range(len(ends)):
        here = np.flatnonzero((place == cell) & shown)
        high = int(ends[cell + 1]) if cell + 1 < len(ends) else int(size.max()) + 1
        many = np.zeros(len(here), np.int64) if units is None else np.where(units[here] < 0, _UNKNOWN, units[here])
        ruled_out[cell] = _sizes(size[here], many, nice_steps(high), int(ends[cell]))
    edges = sorted({edge for found in ruled_out.values() for edge in found.values() if 0 < edge < _UNKNOWN})
    rows = [_as_steps(ends, [_limit(ruled_out[cell], edge, fine) for cell in range(len(ends))]) for edge in (0, *edges)]
    by_units = tuple((edge, row) for (before, row), edge in zip(pairwise(rows), edges, strict=True) if row != before)
    return Grid(rows[0], by_units, nested=True)


def _sizes(size: Ints, units: Ints, steps: Ints, low: int) -> dict[int, int]:
    """Return from how many units on each step is ruled out by values of smaller areas; rounded up to some 5%.

    A value rules out steps that are larger than the largest that it is a multiple of. It need not be a multiple of all
    smaller ones: 13 was not rounded to 0.4, but may have been to 1.
    """
    inner = size > low  # at the lower end of a range, the steps of the range below end as well
    own = np.ones(len(size), dtype=np.int64)
    for step in steps:
        own = np.where(size % step == 0, step, own)
    found = {}
    for step in steps.tolist():
        off = np.sort(units[(own < step) & inner])
        if len(off) < SLIPS or off[SLIPS - 1] >= _UNKNOWN:
            found[step] = _UNKNOWN
            continue
        edge = float(off[SLIPS - 1]) * MARGIN
        found[step] = int(np.ceil(1.05 ** np.ceil(np.log(edge) / np.log(1.05)))) if edge > 0 else 0
    return found


def _limit(ruled_out: dict[int, int], units: int, fine: int) -> int:
    """Return the largest step that is not ruled out for so many units."""
    return max((step for step, edge in ruled_out.items() if units < edge), default=fine)


def largest_in_use(values: Ints, low: int = 0, high: int | None = None) -> int:
    """Return the largest step that some values were rounded to.

    Going from fine to coarse, a step is in use if clearly more values are multiples of it than there are beside these
    multiples, on the finer grids in use: so a slope in the values, or a second grid, is not taken for a step.
    """
    inner = values[(values > low) & (values < (high if high is not None else values.max() + 1))]
    if len(inner) < FEW // 2:
        return decimals_of(values)
    points, often = np.unique(inner, return_counts=True)
    steps = nice_steps(int(points[-1]))
    fine = [int(step) for step in steps if often[points % step == 0].sum() >= NEARLY_ALL * len(inner)]
    used = [fine[-1] if fine else 1]
    steps = steps[steps <= max(1, points[-1] - points[0])]

    def at(places: Ints) -> Ints:
        where = np.minimum(np.searchsorted(points, places), len(points) - 1)
        return np.where(points[where] == places, often[where], 0)

    for step in (int(one) for one in steps if one > used[0] and one % used[0] == 0):
        finer = [one for one in used if step % one == 0]
        most = [one for one in finer if not any(other > one and other % one == 0 for other in finer)]
        multiples = np.arange(-(-int(points[0]) // step), int(points[-1]) // step + 1) * step
        on = int(at(multiples).sum())
        beside = float(sum(at(multiples - one).sum() + at(multiples + one).sum() for one in most)) / 2
        if on - beside > max(EXCESS * len(inner), _ERRORS * (on + beside / 2) ** 0.5):
            used.append(step)
    return used[-1]


def _ends(largest: int, fine: int) -> Ints:
    """Return where steps may change: 0, and 1, 1.28, 1.6, … times powers of ten, from some ten fine steps on."""
    found = [0]
    power = 1
    while power <= largest:
        found += [end * power // 100 for end in _DECADE if end * power % 100 == 0 and 10 * fine <= end * power // 100]
        power *= 10
    return np.array(sorted(set(found)), dtype=np.int64)


def _as_steps(ends: Ints, found: Sequence[int]) -> Steps:
    """Return ranges with their steps, neighbours of one step as one."""
    first = [at for at in range(len(found)) if at == 0 or found[at] != found[at - 1]]
    return tuple((Fraction(int(ends[at])) * FIGURE_UNIT, Fraction(int(found[at])) * FIGURE_UNIT) for at in first)
