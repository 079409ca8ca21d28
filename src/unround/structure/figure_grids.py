"""The grid of a figure: the steps that its values were rounded to, found in the values themselves.

Agencies print figures on grids that are coarser than their decimals: incomes in steps that grow with the income, rates in
steps that shrink with the number of people behind them. Steps are 1, 2, 4 or 5 times a power of ten. What is looked for is
the largest step in use, never one that is too small: a step that is too small would make a figure say more than it does.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

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
AREAS_A_BIN, MOST_BINS = 400, 48
"""Areas of like size that are looked at together, at least, and how many such bins there are at most."""
_DECADE = (100, 128, 160, 200, 256, 320, 400, 500, 640, 800)
"""Where steps may change within a power of ten, in hundredths of it."""


def steps_of(grid: Grid, values: FigureValues, units: Ints | None = None) -> Ints:
    """Return the step around every value, in `FIGURE_UNIT`, as `Grid.step` does one by one.

    Parameters
    ----------
    grid : Grid
        Of the figure.
    values : array
        Figures as in `Block.figures`; what is absent gets any step.
    units : array, optional
        The published universe of each, for grids that depend on it; negative where it is not known.
    """
    size = np.where(values == FIGURE_ABSENT, 0, np.abs(values))
    steps = _by_value(grid.steps, size)
    if units is not None:
        for least, finer in grid.by_units:
            steps = np.where(units >= least, _by_value(finer, size), steps)
    return steps


def _by_value(steps: Steps, size: Ints) -> Ints:
    ends = np.array([int(start / FIGURE_UNIT) for start, _ in steps], dtype=np.int64)
    wide = np.array([int(step / FIGURE_UNIT) for _, step in steps], dtype=np.int64)
    at = np.searchsorted(ends, size, side="right") - 1
    before = np.where((at > 0) & (ends[at] == size), wide[np.maximum(at - 1, 0)], 0)
    return np.maximum(wide[at], before)


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
    """Return the grid of some published values.

    Parameters
    ----------
    values : array
        All there are, in units.
    units : array, optional
        The published universe of each, on which steps may depend; negative where it is not known.
    """
    size = np.abs(values)
    fine = decimals_of(size)
    simple = Grid.of(fine * FIGURE_UNIT)
    shown = size > 0
    if shown.sum() < FEW or largest_in_use(size[shown]) == fine:
        return simple
    ends = _ends(int(size.max()), fine)
    place = np.searchsorted(ends, size, side="right") - 1
    by_value = _Cells.of(size, place, len(ends), ends)
    if units is None or not by_value.mixed:
        return Grid(by_value.steps())
    return _by_units(size, units, place, ends, by_value)


def largest_in_use(values: Ints, low: int = 0, high: int | None = None) -> int:
    """Return the largest step that some values were rounded to.

    Going from fine to coarse, a step is in use if clearly more values are multiples of it than there are beside these
    multiples, on the finer grids in use: so a slope in the values, or a second grid, is not taken for a step.

    Parameters
    ----------
    values : array
        At least a few.
    low, high : int
        The range that they are from; at its ends other steps begin, so that these say nothing.
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


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """The largest step in use in each range of values; 0 where there are too few. `mixed`: finer ones are used there too."""

    ends: Ints
    found: Ints
    mixed: bool

    @classmethod
    def of(cls, size: Ints, place: Ints, many: int, ends: Ints) -> _Cells:
        found, mixed = np.zeros(many, dtype=np.int64), False
        order = np.argsort(place, kind="stable")
        starts = np.searchsorted(place[order], np.arange(many + 1))
        for cell in range(many):
            here = size[order[starts[cell] : starts[cell + 1]]]
            here = here[here > 0]
            if len(here) >= FEW:
                high = int(ends[cell + 1]) if cell + 1 < many else None
                found[cell] = largest_in_use(here, int(ends[cell]), high)
                mixed |= bool(np.mean(here % found[cell] == 0) < NEARLY_ALL)
        return cls(ends, found, mixed)

    def steps(self) -> Steps:
        """Return them as a grid has them; where there are too few values, the coarser of the steps around."""
        return _as_steps(self.ends, _filled(self.found))


def _filled(found: Ints) -> Ints:
    """Fill gaps with the coarser of the steps on both sides; above the last, nobody knows, and it is doubled."""
    known = np.flatnonzero(found)
    if not len(known):
        return np.ones_like(found)
    filled = found.copy()
    for cell in np.flatnonzero(found == 0):
        near = [found[known[known < cell][-1:]], found[known[known > cell][:1]]]
        filled[cell] = np.concatenate(near).max()
    last = int(known[-1])
    filled[last + 1 :] = 2 * found[last]
    return filled


def _as_steps(ends: Ints, found: Ints) -> Steps:
    """Return ranges with their steps, neighbours of one step as one."""
    first = [0, *(np.flatnonzero(np.diff(found)) + 1).tolist()]
    return tuple((Fraction(int(ends[at])) * FIGURE_UNIT, Fraction(int(found[at])) * FIGURE_UNIT) for at in first)


def _by_units(size: Ints, units: Ints, place: Ints, ends: Ints, every: _Cells) -> Grid:
    """Return a grid whose steps shrink with the number of units.

    Areas are sorted by size and looked at in bins. A step in a bin is at least that of all larger areas, and of the bins
    beside it: sizes are rounded, so that an area may belong there.
    """
    known = np.flatnonzero((units >= 0) & (size > 0))
    order = known[np.argsort(units[known], kind="stable")]
    bins = max(1, min(MOST_BINS, len(order) // AREAS_A_BIN))
    edges = np.unique(units[order[np.linspace(0, len(order) - 1, bins + 1).astype(np.int64)]])[:-1]
    own = np.searchsorted(edges, units, side="right") - 1
    coarsest = _filled(every.found)
    table = np.zeros((len(edges), len(ends)), dtype=np.int64)
    for at in range(len(edges)):
        here = own == at
        table[at] = _Cells.of(size[here], place[here], len(ends), ends).found
    for at in range(len(edges)):  # what is not known of a bin is as in the one of smaller areas before it
        table[at] = np.where(table[at] == 0, table[at - 1] if at else coarsest, table[at])
    table = np.maximum.accumulate(table[::-1], axis=0)[::-1]
    wide = table.copy()
    wide[1:] = np.maximum(wide[1:], table[:-1])
    top = np.maximum(coarsest, wide.max(axis=0))
    by_units = [(int(edge), _as_steps(ends, row)) for edge, row in zip(edges, wide, strict=True)]
    kept = [by_units[0], *(one for before, one in pairwise(by_units) if one[1] != before[1])]
    return Grid(_as_steps(ends, top), tuple(kept))
