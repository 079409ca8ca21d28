"""Verdicts on figures: whether a rate, a mean or a median was computed from the published counts, or from true ones.

Both are tried on every area. If the published counts give the figure nearly everywhere, it is *recomputable* and tells
nothing new. If they do not, but true counts within their windows could nearly everywhere, it is *evidence*. What a test
finds is compared with placebos, the figures of other areas of like size: a test that finds as much in those has found
nothing. All else is *unclear*, and is not used.

Everything is in whole numbers: figures in `FIGURE_UNIT`, inequalities multiplied out. Intervals are closed, for ties at
half a step are rounded either way. Each test takes the values of a figure as an array, so that the values of other areas
can be put in their place: what a test then finds is what chance finds.

A figure is on a grid: the steps that its values were rounded to, found in the values themselves. Agencies print figures on
grids that are coarser than their decimals: incomes in steps that grow with the income, rates in steps that shrink with the
number of people behind them. Steps are 1, 2, 4 or 5 times a power of ten. What is looked for is the largest step in use,
never one that is too small: a step that is too small would make a figure say more than it does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.figures import Figure, FigureGrid, FigureKind, Group, Steps
from unround.mechanisms import Exact, Mechanism
from unround.mechanisms.base import step_of
from unround.release import ABSENT, FIGURE_ABSENT, FIGURE_UNIT, Block, Counts, FigureValues, adjustable
from unround.structure.evidence import FigureVerdict, JudgedFigure
from unround.structure.residuals import ScatterWindows
from unround.structure.verify import areas_

_MIX = 11_400_714_819_323_198_485  # 2⁶⁴ over the golden ratio, which mixes whole numbers well
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class CountData:
    """One count over all areas: as published, the least and the largest that is possible, and whether it was published."""

    shown: Ints
    low: Ints
    high: Ints
    there: Flags
    step: int
    """Between published counts: the base of their rounding."""


class FigureData:
    """Keeps the figures, and the counts that they are of, block by block."""

    def __init__(self, figures: Sequence[Figure], place: Mapping[str, int]) -> None:
        self.figures = tuple(figures)
        keys = {key for figure in self.figures for key in figure.compared}
        self.used = sorted(place[key] for key in keys)
        order = {column: at for at, column in enumerate(self.used)}
        self._at = {key: order[place[key]] for key in keys}
        self._counts: list[Counts] = []
        self._values: list[FigureValues] = []
        self._flags: list[Flags] = []
        self._kinds: Sequence[Mechanism | None] = ()
        self._adjusted: Sequence[int] = ()
        self.base = 1
        """The base that most counts are rounded to: for counts that were not published."""

    def add(self, block: Block) -> None:
        """Take in some areas."""
        if self.figures and block.figures is not None:
            self._counts.append(np.ascontiguousarray(block.counts[:, self.used]))
            self._values.append(block.figures)
            self._flags.append(adjustable(block.areas))

    def close(self, mechanisms: Sequence[Mechanism | None], adjusted: Sequence[int]) -> None:
        """Say how counts were published, when all areas are there."""
        self._kinds = [mechanisms[column] for column in self.used]
        self._adjusted = [adjusted[column] for column in self.used]
        steps = [
            step_of(mechanism) for mechanism in mechanisms if mechanism is not None and not isinstance(mechanism, Exact)
        ]
        self.base = max(set(steps), key=lambda step: (steps.count(step), step), default=1)
        if not self._values:  # nobody has them at hand
            self._counts = [np.zeros((0, len(self.used)), dtype=np.int32)]
            self._values, self._flags = [np.zeros((0, len(self.figures)), dtype=np.int64)], [np.zeros(0, dtype=np.bool_)]
        if len(self._counts) > 1:
            self._counts, self._flags = [np.concatenate(self._counts)], [np.concatenate(self._flags)]
            self._values = [np.concatenate(self._values)]

    def values(self, at: int) -> FigureValues:
        """Return the figure at a place, over all areas."""
        return self._values[0][:, at]

    def there(self, at: int) -> Flags:
        """Return in which areas a figure is published."""
        return np.asarray(self.values(at) != FIGURE_ABSENT)

    def count(self, key: str) -> CountData:
        """Return a count over all areas."""
        at = self._at[key]
        how, column = self._kinds[at], np.ascontiguousarray(self._counts[0][:, at : at + 1])
        down, up, seen = ScatterWindows([how], [self._adjusted[at]]).of(column, self._flags[0])
        shown = np.where(column[:, 0] > ABSENT, column[:, 0], 0).astype(np.int64)
        step = self.base if how is None else step_of(how)
        return CountData(shown, np.maximum(shown - down[:, 0], 0), shown + up[:, 0], seen[:, 0], step)

    def difference(self, whole: str, outside: str) -> CountData:
        """Return what is left of one count without another that is part of it, over all areas."""
        inside, other = self.count(whole), self.count(outside)
        low, high = np.maximum(inside.low - other.high, 0), np.maximum(inside.high - other.low, 0)
        return CountData(np.maximum(inside.shown - other.shown, 0), low, high, inside.there & other.there, inside.step)

    def largest(self, figure: Figure) -> float:
        """Return the largest number that a count of a figure may be."""
        return float(max((self.count(key).high.max(initial=1) for key in figure.compared), default=1))

    def units(self, figure: Figure) -> Ints | None:
        """Return how many units a figure is of, as published, -1 where it was not; None where nothing tells."""
        key = figure.universe or figure.within
        if key:
            whole = self.count(key)
            return np.where(whole.there, whole.shown, -1)
        if not figure.groups:
            return None
        counts = [self.count(group.count) for group in figure.groups]
        there = np.all([count.there for count in counts], axis=0)
        return np.where(there, np.sum([count.shown for count in counts], axis=0), -1)

    def mixed(self, figure: Figure, values: FigureValues) -> Ints:
        """Return a number of each area that depends on its figure and its counts alone, and orders neither."""
        mixed = (values.astype(np.uint64) * np.uint64(_MIX)) >> np.uint64(7)
        for key in figure.compared:
            counts = self._counts[0][:, self._at[key]].astype(np.int64).astype(np.uint64)
            mixed = ((mixed ^ counts) * np.uint64(_MIX)) ^ (mixed >> np.uint64(29))
        return np.asarray(mixed >> np.uint64(2)).astype(np.int64)


ONE = FIGURE_UNIT.denominator  # units of a figure of one
TELLING = 5
"""A rate can tell rounded counts from others where one step of its numerator moves it by more than so many of its own."""
SHORT = 0.04  # A universe that was not published may be smaller than a count that it is within by so large a part of that
MOST_TRIED = 16  # universes that are tried where none was published; in areas with more, some would always fit
Floats = NDArray[np.float64]


class FigureTest(ABC):
    """Holds a figure against counts.

    `usable` says in which areas that can be done at all, whatever the figure.
    """

    usable: Flags

    @abstractmethod
    def telling(self, values: FigureValues, fine: int) -> Flags:
        """Return in which areas a hit would say something."""

    @abstractmethod
    def hits(self, values: FigureValues, fine: int) -> Flags:
        """Return where the published counts give these figures; `fine` is the step of their decimals."""

    def _of_groups(self) -> tuple[Figure, tuple[CountData, ...]] | None:
        """Return a figure of groups, and the counts that its inequalities are about; None where nothing tells of them."""
        return None

    def possible(self, values: FigureValues, steps: Ints) -> Flags | None:
        """Return where true counts could have given these figures, by each inequality alone; None where nothing tells."""
        if (of := self._of_groups()) is None:
            return None
        least = [(row.limits, _extreme(row, of[1], -1)) for row in inequality_rows(of[0], values, steps)]
        return np.asarray(np.all([np.full(len(values), True), *(end <= limit for limit, end in least)], axis=0))

    def excludes(self, values: FigureValues, steps: Ints) -> Flags | None:
        """Return where such figures exclude some of the true counts that were possible."""
        if (of := self._of_groups()) is None:
            return None
        most = [(row.limits, _extreme(row, of[1], 1)) for row in inequality_rows(of[0], values, steps)]
        return np.asarray(np.any([np.full(len(values), False), *(end > limit for limit, end in most)], axis=0))

    def left(self, _values: FigureValues, _steps: Ints) -> tuple[float, float] | None:
        """Return how many values the count in question has on average before and after, where that is one count."""
        return None


@dataclass(frozen=True, slots=True, eq=False)
class RateTest(FigureTest):
    """A rate, its numerator and its universe; without a numerator, any multiple of `step` may be one."""

    whole: CountData
    part: CountData | None
    per: int
    step: int
    usable: Flags

    def telling(self, values: FigureValues, fine: int) -> Flags:
        """Rates of nothing and of everybody fit anyway, and so do those of large universes where any numerator may be."""
        inside = (values > 0) & (values < self.per * ONE)
        if self.part is not None:
            return inside & (self.part.shown > 0)
        return np.asarray(inside & (self.step * self.per * ONE > TELLING * fine * self.whole.shown))

    def hits(self, values: FigureValues, fine: int) -> Flags:
        """Compare per × part / whole with the figure."""
        if self.part is None:
            return _some_numerator(values, fine, self.whole.shown, self.per, self.step)
        apart = np.abs(self.per * ONE * self.part.shown - values * self.whole.shown)
        over = (self.part.shown >= self.whole.shown) & (values == self.per * ONE)
        return np.asarray((2 * apart <= fine * self.whole.shown) | over)

    def possible(self, values: FigureValues, steps: Ints) -> Flags | None:
        """Look for true counts within their windows."""
        if self.part is None:
            return None
        low, high = self._band(values, steps)
        return np.asarray(low <= high)

    def _band(self, values: FigureValues, steps: Ints) -> tuple[Ints, Ints]:
        """Return the least and the largest numerator that is possible."""
        assert self.part is not None
        scale = 2 * self.per * ONE
        least = np.maximum(-((-(2 * values - steps) * self.whole.low) // scale), self.part.low)
        most = np.minimum(((2 * values + steps) * self.whole.high) // scale, self.part.high)
        return least, most

    def excludes(self, values: FigureValues, steps: Ints) -> Flags | None:
        """See whether the window of the numerator shrinks."""
        if self.part is None:
            return None
        low, high = self._band(values, steps)
        return np.asarray((low > self.part.low) | (high < self.part.high))

    def left(self, values: FigureValues, steps: Ints) -> tuple[float, float] | None:
        """Count the values of the numerator."""
        if self.part is None:
            return None
        low, high = self._band(values, steps)
        here = self.usable & (high >= low)
        before, after = (self.part.high - self.part.low + 1)[here], (high - low + 1)[here]
        return (float(before.mean()), float(after.mean())) if here.any() else None


def _some_numerator(values: FigureValues, fine: int, whole: Ints, per: int, step: int) -> Flags:
    """Return where a multiple of `step` out of `whole` gives the figure."""
    scale = 2 * per * ONE * step
    least = -((-(2 * values - fine) * whole) // scale)
    most = ((2 * values + fine) * whole) // scale
    return np.asarray((np.maximum(least, 0) <= most) & (whole > 0))


@dataclass(frozen=True, slots=True, eq=False)
class NearbyRateTest(FigureTest):
    """A rate of counts that were not published: some numerator out of some universe, a little smaller than `around`."""

    around: CountData
    per: int
    step: int
    usable: Flags

    def _many(self) -> Ints:
        return np.asarray((self.around.shown * SHORT).astype(np.int64) // self.step + 2)

    def telling(self, values: FigureValues, _fine: int) -> Flags:
        """Only where few universes are tried."""
        return np.asarray((values > 0) & (values < self.per * ONE) & (self._many() <= MOST_TRIED))

    def hits(self, values: FigureValues, fine: int) -> Flags:
        """Try every universe."""
        many, top = self._many(), (self.around.shown // self.step + 1) * self.step
        hits = np.zeros(len(values), dtype=np.bool_)
        for back in range(MOST_TRIED):
            hits |= _some_numerator(values, fine, top - back * self.step, self.per, self.step) & (back <= many)
        return hits


@dataclass(frozen=True, slots=True, eq=False)
class MeanTest(FigureTest):
    """A mean of units in groups; `total`, where it is published, is the sum of what all units have."""

    figure: Figure
    counts: tuple[CountData, ...]
    whole: CountData | None
    total: CountData | None
    usable: Flags

    def telling(self, _values: FigureValues, _fine: int) -> Flags:
        """Return where there are units."""
        if self.total is not None and self.whole is not None:
            return np.asarray(self.whole.shown > 0)
        return np.asarray(self._number() > 0)

    def _number(self) -> Ints:
        return (
            np.sum([count.shown for count in self.counts], axis=0, dtype=np.int64) if self.counts else np.zeros(0, np.int64)
        )

    def hits(self, values: FigureValues, fine: int) -> Flags:
        """Compare with total / universe; or with the middles of the groups, an open one standing for one number."""
        if self.total is not None and self.whole is not None:
            return np.asarray(2 * np.abs(ONE * self.total.shown - values * self.whole.shown) <= fine * self.whole.shown)
        if not self.figure.groups:
            return np.zeros(len(values), dtype=np.bool_)
        middles = [_middle(group) for group in self.figure.groups]
        number = self._number()
        closed = np.zeros(len(values))
        for middle, count in zip(middles, self.counts, strict=True):
            closed += 0.0 if middle is None else middle * ONE * count.shown
        open_ = sum((count.shown for m, count in zip(middles, self.counts, strict=True) if m is None), np.zeros_like(number))
        off, half = values * number - closed, fine * number / 2.0
        low, high = off - half, off + half
        some = open_ > 0
        weight = _meant_by_most(low[some] / open_[some], high[some] / open_[some])
        return np.asarray((low <= weight * open_ + 1) & (high >= weight * open_ - 1))

    def _of_groups(self) -> tuple[Figure, tuple[CountData, ...]] | None:
        return (self.figure, self.counts) if self.counts else None


def _middle(group: Group) -> float | None:
    return None if group.low is None or group.high is None else float(group.low + group.high) / 2


def _meant_by_most(low: Floats, high: Floats) -> float:
    """Return the number that lies in the most of some intervals."""
    if not len(low):
        return 0.0
    places = np.concatenate([low, high])
    change = np.concatenate([np.ones(len(low)), -np.ones(len(high))])
    order = np.lexsort((-change, places))
    inside = np.cumsum(change[order])
    best = int(inside.argmax())
    after = order[min(best + 1, len(order) - 1)]
    return float((places[order[best]] + places[after]) / 2)


@dataclass(frozen=True, slots=True, eq=False)
class MedianTest(FigureTest):
    """A median of units in groups."""

    figure: Figure
    counts: tuple[CountData, ...]
    whole: CountData
    usable: Flags

    def telling(self, _values: FigureValues, _fine: int) -> Flags:
        """Return where there are units."""
        return np.asarray(np.sum([count.shown for count in self.counts], axis=0) > 0)

    def hits(self, values: FigureValues, fine: int) -> Flags:
        """Compare with the median of the published counts, on a straight line through the group that it is in."""
        counts = np.stack([count.shown for count in self.counts], axis=1)
        lows = np.array([float(g.low) if g.low is not None else np.nan for g in self.figure.groups]) * ONE
        highs = np.array([float(g.high) if g.high is not None else np.nan for g in self.figure.groups]) * ONE
        sums = np.cumsum(counts, axis=1)
        half = sums[:, -1] / 2.0
        at = (sums >= half[:, None]).argmax(1)
        row = np.arange(len(values))
        inside = np.maximum(counts[row, at], 1)
        share = (half - (sums[row, at] - counts[row, at])) / inside
        middle = lows[at] + (highs[at] - lows[at]) * share
        return np.asarray(np.abs(middle - values) <= fine / 2.0 + 1e-6)  # what is open is nowhere

    def _of_groups(self) -> tuple[Figure, tuple[CountData, ...]]:
        return self.figure, (*self.counts, self.whole)


# -- inequalities -----------------------------------------------------------------------------------------------------

_UNITS = 2 * ONE  # half steps are whole multiples of one over this


class InequalityRow(NamedTuple):
    """One inequality in every area: counts, their factors (areas × counts; all 0 where it says nothing), and limits."""

    counts: list[str]
    factors: Ints
    limits: Ints


def inequality_rows(figure: Figure, values: FigureValues, steps: Ints) -> list[InequalityRow]:
    """Write down what figures say of every area, in whole numbers: exactly, as `Figure.inequalities` does in fractions."""
    low, high, nothing = 2 * values - steps, 2 * values + steps, np.zeros(len(values), dtype=np.int64)
    if figure.kind is FigureKind.RATE:
        per, times = figure.per.numerator * _UNITS, figure.per.denominator
        cells, whole = [figure.universe, figure.numerator], np.full(len(values), per)
        least = np.where(low[:, None] > 0, np.stack([low * times, -whole], axis=1), 0)
        return [
            InequalityRow(cells, least, nothing),
            InequalityRow(cells, np.stack([-high * times, whole], axis=1), nothing),
        ]
    groups = figure.groups
    finer = lcm(_UNITS, *(edge.denominator for g in groups for edge in (g.low, g.high) if edge is not None)) // _UNITS
    lows, highs = (
        [None if edge is None else int(edge * _UNITS * finer) for edge in edges]
        for edges in ([group.low for group in groups], [group.high for group in groups])
    )
    cells, low, high = [group.count for group in groups], finer * low[:, None], finer * high[:, None]
    if figure.kind is FigureKind.MEAN:
        # Units at the lower ends of their groups average no more than `high`, at the upper ends no less than `low`.
        rows = [InequalityRow(cells, np.array(lows) - high, nothing)] if None not in lows else []
        return [*rows, *([InequalityRow(cells, low - np.array(highs), nothing)] if None not in highs else [])]
    # No more than half of the units, give or take one, lie below the median, and above it.
    below = np.stack([low[:, 0] > end if end is not None else nothing > 0 for end in highs], axis=1)
    above = np.stack([high[:, 0] < end if end is not None else nothing > 0 for end in lows], axis=1)
    return [
        InequalityRow(
            [*cells, figure.universe],
            np.concatenate([2 * side.astype(np.int64), -side.any(axis=1, keepdims=True).astype(np.int64)], axis=1),
            nothing + 1,
        )
        for side in (below, above)
    ]


def _extreme(row: InequalityRow, counts: Sequence[CountData], sign: int) -> Ints:
    """Return the largest that the left side of an inequality can be, or the least (`sign` −1)."""
    side = np.zeros(len(row.factors), dtype=np.int64)
    for factor, count in zip(row.factors.T, counts, strict=True):
        side += factor * np.where(sign * factor > 0, count.high, count.low)
    return side


def all_there(counts: Sequence[CountData]) -> Flags:
    """Return in which areas all of some counts are published."""
    return np.asarray(np.all([count.there for count in counts], axis=0))


MULTIPLES = 0.995  # A step is one of all values if so many are multiples of it; the others are slips
EXCESS = 0.04  # A larger step is in use if so many of the values, more than beside its multiples, are multiples of it
_ERRORS = 4.0  # and so many standard errors more
FEW = 40  # values from which a step can be told
SLIPS = 5  # A step is too large for areas of some size if so many values of smaller areas are not multiples of it
MARGIN = 1.3
"""Areas must be so many times as large for that: within a range of values, sizes at which steps change differ by as much."""
_DECADE = (100, 128, 160, 200, 256, 320, 400, 500, 640, 800)
"""Where steps may change within a power of ten, in hundredths of it."""
_UNKNOWN = 1 << 50  # more units than there are


def steps_of(grid: FigureGrid, values: FigureValues, units: Ints | None = None) -> Ints:
    """Return the step around every value, in `FIGURE_UNIT`, as `FigureGrid.step` does one by one."""
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
    steps = np.ones_like(most)
    for step in nice_steps(int(most.max(initial=1))):
        steps = np.where((step <= most) & (size % step == 0), step, steps)
    return steps


class _StepTable(NamedTuple):
    """A grid in whole numbers: where steps begin, the steps by units and value, and from how many units each row is."""

    ends: Ints
    table: Ints
    edges: Ints


_KEPT: dict[int, tuple[FigureGrid, _StepTable]] = {}
_MOST_KEPT = 256


def _in_units(grid: FigureGrid) -> _StepTable:
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

    >>> nice_steps(45).tolist()
    [1, 2, 4, 5, 10, 20, 40]
    """
    steps = [digit * 10**power for power in range(12) for digit in (1, 2, 4, 5)]
    return np.array([step for step in steps if step <= max(largest, 1)], dtype=np.int64)


def decimals_of(values: FigureValues) -> int:
    """Return the finest step of some values, in units: the largest that (nearly) all are multiples of."""
    shown = values[values != 0]
    if not len(shown):
        return int(1 / FIGURE_UNIT)
    steps = nice_steps(int(np.abs(shown).max()))
    return max((int(step) for step in steps if np.mean(shown % step == 0) >= MULTIPLES), default=1)


def find_grid(values: FigureValues, units: Ints | None = None) -> FigureGrid:
    """Return the grid of some published values: one step everywhere, or limits to steps that differ.

    That a step is too large can be seen in values that are not multiples of it; that it is not, never for certain. So a
    step counts as possible in every area but those that are clearly larger than some whose values rule it out, as steps do
    not grow with the number of units.
    """
    size = np.abs(values)
    fine = decimals_of(size)
    shown = size > 0
    if shown.sum() < FEW or largest_in_use(size[shown]) == fine:
        return FigureGrid.of(fine * FIGURE_UNIT)
    ends = _ends(int(size.max()), fine)
    place = np.searchsorted(ends, size, side="right") - 1
    ruled_out = {}
    for cell in range(len(ends)):
        here = np.flatnonzero((place == cell) & shown)
        high = int(ends[cell + 1]) if cell + 1 < len(ends) else int(size.max()) + 1
        many = np.zeros(len(here), np.int64) if units is None else np.where(units[here] < 0, _UNKNOWN, units[here])
        ruled_out[cell] = _sizes(size[here], many, nice_steps(high), int(ends[cell]))
    edges = sorted({edge for limits in ruled_out.values() for edge in limits.values() if 0 < edge < _UNKNOWN})
    rows = [_as_steps(ends, [_limit(ruled_out[cell], edge, fine) for cell in range(len(ends))]) for edge in (0, *edges)]
    by_units = tuple((edge, row) for (before, row), edge in zip(pairwise(rows), edges, strict=True) if row != before)
    return FigureGrid(rows[0], by_units, nested=True)


def _sizes(size: Ints, units: Ints, steps: Ints, low: int) -> dict[int, int]:
    """Return from how many units on each step is ruled out by values of smaller areas; rounded up to some 5%.

    A value rules out steps that are larger than the largest that it is a multiple of. It need not be a multiple of all
    smaller ones: 13 was not rounded to 0.4, but may have been to 1.
    """
    inner = size > low  # at the lower end of a range, the steps of the range below end as well
    largest = np.ones(len(size), dtype=np.int64)
    for step in steps:
        largest = np.where(size % step == 0, step, largest)
    ruled_out = {}
    for step in steps.tolist():
        off = np.sort(units[(largest < step) & inner])
        if len(off) < SLIPS or off[SLIPS - 1] >= _UNKNOWN:
            ruled_out[step] = _UNKNOWN
            continue
        edge = float(off[SLIPS - 1]) * MARGIN
        ruled_out[step] = int(np.ceil(1.05 ** np.ceil(np.log(edge) / np.log(1.05)))) if edge > 0 else 0
    return ruled_out


def _limit(ruled_out: dict[int, int], units: int, fine: int) -> int:
    """Return the largest step that is not ruled out for so many units."""
    return max((step for step, edge in ruled_out.items() if units < edge), default=fine)


def largest_in_use(values: Ints) -> int:
    """Return the largest step that some values above 0, `FEW` or more, were rounded to.

    Going from fine to coarse, a step is in use if clearly more values are multiples of it than there are beside these
    multiples, on the finer grids in use: so a slope in the values, or a second grid, is not taken for a step.
    """
    points, often = np.unique(values, return_counts=True)
    steps = nice_steps(int(points[-1]))
    fine = [int(step) for step in steps if often[points % step == 0].sum() >= MULTIPLES * len(values)]
    used = [fine[-1] if fine else 1]
    steps = steps[steps <= max(1, points[-1] - points[0])]

    def at(places: Ints) -> Ints:
        where = np.minimum(np.searchsorted(points, places), len(points) - 1)
        return np.where(points[where] == places, often[where], 0)

    for step in (int(size) for size in steps if size > used[0] and size % used[0] == 0):
        finer = [size for size in used if step % size == 0]
        most = [size for size in finer if not any(other > size and other % size == 0 for other in finer)]
        multiples = np.arange(-(-int(points[0]) // step), int(points[-1]) // step + 1) * step
        on = int(at(multiples).sum())
        beside = float(sum(at(multiples - size).sum() + at(multiples + size).sum() for size in most)) / 2
        if on - beside > max(EXCESS * len(values), _ERRORS * (on + beside / 2) ** 0.5):
            used.append(step)
    return used[-1]


def _ends(largest: int, fine: int) -> Ints:
    """Return where steps may change: 0, and 1, 1.28, 1.6, … times powers of ten, from some ten fine steps on."""
    ends = [0]
    power = 1
    while power <= largest:
        ends += [end * power // 100 for end in _DECADE if end * power % 100 == 0 and 10 * fine <= end * power // 100]
        power *= 10
    return np.array(sorted(set(ends)), dtype=np.int64)


def _as_steps(ends: Ints, steps: Sequence[int]) -> Steps:
    """Return ranges with their steps, neighbours of one step as one."""
    first = [at for at in range(len(steps)) if at == 0 or steps[at] != steps[at - 1]]
    return tuple((Fraction(int(ends[at])) * FIGURE_UNIT, Fraction(int(steps[at])) * FIGURE_UNIT) for at in first)


FEWEST_AREAS = 3  # areas from which rates are judged one by one, where there are too few for chance to be weighed
LEAST_AREAS = 20  # from which anything can be told
NEARLY_ALL = 0.995  # of the areas must be given by published counts, for a figure to be recomputable
MOST_BY_CHANCE = 0.9  # of the areas, at most, may placebos be given by published counts, for that to say something
MOST_CONTRADICTIONS = 0.01  # of the areas, at most, may true counts be unable to give it, for a figure to be evidence
TELLING_CONTRADICTIONS = 0.02
"""Of the areas, at least, must true counts be unable to give placebos, for that to say something."""
TIMES = 5  # and so many times as often as the figure itself
_NO_BETTER = 0.1
"""A share of hits is no better than chance if it is larger by no more than this, and three standard errors. True counts are
multiples of the base now and then, so that some hits more are to be expected."""
LARGEST = 2.0**58
"""A figure in units times a count must stay below this, for sums of such products to be whole numbers that fit."""
SHIFTS = (29, 23, 19)
"""How far figures are moved to other areas, these sorted by size: by one such part of them. Neighbours would be too alike,
for areas of one published size share their ratios."""


def judge_figures(data: FigureData) -> tuple[JudgedFigure, ...]:
    """Return the verdict on every figure of a release, in its order."""
    judged: list[JudgedFigure] = []
    seen: dict[int, list[int]] = {}
    for at, figure in enumerate(data.figures):
        values, there = data.values(at), data.there(at)
        number = int(there.sum())
        if number < LEAST_AREAS:
            judged.append(_of_few(data, at, figure))
            continue
        if float(np.abs(values[there]).max()) * data.largest(figure) > LARGEST:
            judged.append(_unclear(figure, "its values, or the counts that it is of, are too large to be compared", number))
            continue
        alike = seen.setdefault(hash((figure.kind, values[there].tobytes())), [])
        before = next((earlier for earlier in alike if np.array_equal(values, data.values(earlier))), None)
        alike.append(at)
        if before is not None:
            other = data.figures[before]
            judged.append(_unclear(figure, f"the same numbers as {other.name}: a figure counts once", number))
        else:
            judged.append(_judge(data, at, figure))
    return tuple(_where_hidden(data, at, verdict) for at, verdict in enumerate(judged))


def _where_hidden(data: FigureData, at: int, judged: JudgedFigure) -> JudgedFigure:
    """Return the verdict on a figure that published counts give: where some of them are hidden, it tells these."""
    counts = [data.count(key) for key in judged.figure.compared]
    hidden = int((data.there(at) & ~all_there(counts)).sum()) if judged.verdict == "recomputable" and counts else 0
    if not hidden:
        return judged
    why = judged.why.removesuffix(": it tells nothing.")
    if all(bool((count.low == count.high)[count.there].all()) for count in counts):
        return replace(judged, verdict="evidence", why=f"{why}, so that it tells those hidden in {areas_(hidden)}.")
    return replace(judged, verdict="unclear", why=f"{why}; what it tells of those hidden in {areas_(hidden)} is not used.")


def _of_few(data: FigureData, at: int, figure: Figure) -> JudgedFigure:
    """Judge a rate that is published for a few areas: what published counts do not give, and true ones can, is of these."""
    values, there = data.values(at), data.there(at)
    number = int(there.sum())
    few = _unclear(figure, f"published for {areas_(number)} only: too few to tell how it was computed", number)
    test = _test_for(figure, data) if figure.is_complete and figure.kind is FigureKind.RATE and not figure.sampled else None
    if test is None or number < FEWEST_AREAS:
        return few
    fine, shown = decimals_of(values[there]), np.where(there, values, 0)
    usable = there & test.usable
    judged = _on(few, figure.grid if figure.declared else FigureGrid.of(fine * FIGURE_UNIT), shown[there], None)
    compared, hits = int(usable.sum()), int((usable & test.hits(shown, fine)).sum())
    if compared and hits == compared:
        why = f"the published counts give it in {_share(hits, compared)}: it tells nothing."
        return replace(judged, verdict="recomputable", why=why, compared=compared, hits=hits)
    possible = test.possible(shown, steps_of(judged.figure.grid, shown, None))
    if possible is None or compared < FEWEST_AREAS or not bool(possible[usable].all()):
        return few
    why = f"published counts give it in {_share(hits, compared)} only, and true counts can in all of them."
    return replace(judged, verdict="evidence", why=why, compared=compared, hits=hits)


def _unclear(figure: Figure, why: str, areas: int) -> JudgedFigure:
    return JudgedFigure(figure, "unclear", f"{why}.", areas)


@dataclass(frozen=True, slots=True, eq=False)
class _FigureTrial:
    """One figure, to be held against counts: its values, where they are, of how many units, the step of their decimals."""

    values: FigureValues
    there: Flags
    units: Ints | None
    fine: int
    mixed: Ints
    """A number of each area that depends on its figure and its counts alone."""

    def placebos(self, chosen: Flags) -> list[FigureValues]:
        """Return the values moved among some areas, to others of like size."""
        at = np.flatnonzero(chosen)
        size = self.units[at] if self.units is not None else self.mixed[at]
        order = at[np.lexsort((self.mixed[at], size))]  # which does not depend on the order of areas in the file
        placebos = []
        for shift in SHIFTS:
            moved = self.values.copy()
            moved[order] = np.roll(self.values[order], max(1, len(order) // shift))
            placebos.append(moved)
        return placebos


def _judge(data: FigureData, at: int, figure: Figure) -> JudgedFigure:
    """Judge one figure."""
    values, there, units = data.values(at), data.there(at), data.units(figure)
    fine = decimals_of(values[there])
    judged = JudgedFigure(figure, "unclear", "", int(there.sum()))
    shown = np.where(there, values, 0)
    test = _test_for(figure, data)
    trial = _FigureTrial(shown, there, units, fine, data.mixed(figure, shown))
    if test is not None:
        judged = _against_published(judged, trial, test)
    if judged.verdict == "recomputable":
        # What seems coarser in ratios of rounded counts is the steps of the counts.
        return _on(judged, FigureGrid.of(fine * FIGURE_UNIT), shown[there], None)
    # Steps by size take a while to find: they are looked for where they may be needed.
    known = units[there] if units is not None and test is not None and not figure.sampled else None
    grid = figure.grid if figure.declared else find_grid(values[there], known)
    judged = _on(judged, grid, shown[there], known)
    if test is None:
        return replace(judged, why=f"{_lacking(figure)}: there is nothing to hold it against.")
    return _against_true(judged, trial, test)


def _on(judged: JudgedFigure, grid: FigureGrid, values: FigureValues, units: Ints | None) -> JudgedFigure:
    """Return a figure on a grid, and the step that most of its values have."""
    number, often = np.unique(steps_of(grid, values, units), return_counts=True)
    step = Fraction(int(number[often.argmax()])) * FIGURE_UNIT
    return replace(judged, figure=replace(judged.figure, grid=grid), step=step)


def _lacking(figure: Figure) -> str:
    if figure.kind is FigureKind.RATE:
        return "what it is out of is not in the file"
    return "no counts of groups with known edges, of the units that it is of, are in the file"


def _test_for(figure: Figure, data: FigureData) -> FigureTest | None:
    whole = data.count(figure.universe) if figure.universe else None
    if whole is None and figure.within and figure.outside:
        whole = data.difference(figure.within, figure.outside)
    if figure.kind is FigureKind.RATE:
        return _rate_test(figure, data, whole)
    counts = tuple(data.count(group.count) for group in figure.groups)
    if figure.kind is FigureKind.MEDIAN:
        if whole is None or not counts:
            return None
        return MedianTest(figure, counts, whole, all_there([*counts, whole]))
    total = data.count(figure.numerator) if figure.numerator and whole is not None else None
    if not counts and total is None:
        return None
    needed = [count for count in (*counts, *((whole, total) if total is not None else ())) if count is not None]
    return MeanTest(figure, counts, whole, total, all_there(needed))


def _rate_test(figure: Figure, data: FigureData, whole: CountData | None) -> FigureTest | None:
    per = int(figure.per)
    part = data.count(figure.numerator) if figure.numerator else None
    if whole is not None:
        usable = all_there([whole, part]) if part is not None else whole.there
        return RateTest(whole, part, per, part.step if part is not None else whole.step, usable & (whole.shown > 0))
    if figure.within and part is None:
        around = data.count(figure.within)
        return NearbyRateTest(around, per, data.base, around.there & (around.shown > 0))
    return None


def _against_published(judged: JudgedFigure, trial: _FigureTrial, test: FigureTest) -> JudgedFigure:
    """See whether the published counts give the figure."""
    chosen = trial.there & test.usable & test.telling(trial.values, trial.fine)
    compared = int(chosen.sum())
    hits = int((test.hits(trial.values, trial.fine) & chosen).sum())
    chance = [int((test.hits(moved, trial.fine) & chosen).sum()) for moved in trial.placebos(chosen)] if compared else [0]
    by_chance = float(np.mean(chance))
    judged = replace(judged, compared=compared, hits=hits, hits_by_chance=by_chance)
    if compared < LEAST_AREAS or hits < NEARLY_ALL * compared:
        return judged
    if by_chance > MOST_BY_CHANCE * compared:
        why = f"the published counts give it in {_share(hits, compared)}, but other areas' figures too"
        return replace(judged, why=f"{why} ({_percent(by_chance / compared)}).")
    listed = judged.figure.numerator or judged.figure.kind is not FigureKind.RATE
    reveals = () if listed else (f"the rounded count of {judged.figure.label!r}, which is not listed, in {areas_(hits)}",)
    why = f"the published counts give it in {_share(hits, compared)} ({_percent(by_chance / compared)} by chance)"
    return replace(judged, verdict="recomputable", why=f"{why}: it tells nothing.", reveals=reveals)


def _share(number: int, of: int) -> str:
    return f"{number:,} of {areas_(of)}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _against_true(verdict: JudgedFigure, trial: _FigureTrial, test: FigureTest) -> JudgedFigure:
    """See whether true counts could give the figure, where published ones do not."""
    if verdict.why:
        return verdict
    if verdict.figure.sampled:
        why = f"published counts do not give it{_hits(verdict)}, and it is from a sample: estimates are sums of weights"
        return replace(verdict, why=f"{why}, not whole numbers.")
    steps = steps_of(verdict.figure.grid, trial.values, trial.units)
    possible = test.possible(trial.values, steps)
    if possible is None:
        return _by_hits_alone(verdict)
    usable = trial.there & test.usable
    judged, wrong = int(usable.sum()), int((usable & ~possible).sum())
    if judged < LEAST_AREAS:
        return replace(verdict, why=f"only {areas_(judged)} publish it and all the counts that it is of.")
    chance = []
    for moved in trial.placebos(usable):
        fits = test.possible(moved, steps_of(verdict.figure.grid, moved, trial.units))
        assert fits is not None
        chance.append(int((usable & ~fits).sum()))
    by_chance = float(np.mean(chance))
    verdict = replace(verdict, contradictions=wrong, contradictions_by_chance=by_chance)
    share = f"true counts could not give it in {_share(wrong, judged)} ({_percent(by_chance / judged)} by chance)"
    if wrong > MOST_CONTRADICTIONS * judged:
        return replace(verdict, why=f"neither published counts give it{_hits(verdict)}, nor could true ones: {share}.")
    if by_chance < max(TELLING_CONTRADICTIONS * judged, TIMES * wrong):
        return replace(verdict, why=f"any other area's figure would do nearly as well: {share}.")
    excluded = test.excludes(trial.values, steps)
    assert excluded is not None
    unused = "" if verdict.figure.is_complete else " Its universe is not in the file, so nothing is inferred from it."
    return replace(
        verdict,
        verdict="evidence",
        why=f"not from published counts{_hits(verdict)}; {share}.{unused}",
        left=test.left(trial.values, steps),
        excludes=float((excluded & usable).sum() / judged),
    )


def _hits(judged: JudgedFigure) -> str:
    if not judged.compared:
        return ""
    share, chance = judged.hits / judged.compared, judged.hits_by_chance / judged.compared
    return f" (a hit in {_percent(share)} of areas, {_percent(chance)} by chance)"


def _by_hits_alone(judged: JudgedFigure) -> JudgedFigure:
    """Judge a figure whose counts were not all published by how often rounded counts would give it."""
    if judged.compared < LEAST_AREAS:
        return replace(judged, why="the counts that it is of are not in the file, and too few areas could tell.")
    share, chance = judged.hits / judged.compared, judged.hits_by_chance / judged.compared
    error = (chance * (1 - chance) / judged.compared) ** 0.5
    said = f"a ratio of rounded counts fits in {_percent(share)} of {areas_(judged.compared)}, {_percent(chance)} by chance"
    if share > chance + max(_NO_BETTER, 3 * error):
        return replace(judged, why=f"{said}: more than chance, but not everywhere.")
    verdict: FigureVerdict = "evidence"
    why = f"not from rounded counts: {said}. The counts that it is of are not in the file, so nothing is inferred from it."
    return replace(judged, verdict=verdict, why=why)
