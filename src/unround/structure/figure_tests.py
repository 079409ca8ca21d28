"""Tests of a figure against counts, area by area: whether published counts have given it, and whether true ones could.

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
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.figures import Figure, FigureGrid, Group, Steps
from unround.mechanisms import Exact, Mechanism
from unround.mechanisms.base import step_of
from unround.release import ABSENT, FIGURE_ABSENT, FIGURE_UNIT, Block, Counts, FigureValues, adjustable
from unround.structure.residuals import ScatterWindows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
        keys = {key for one in self.figures for key in one.compared}
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
        steps = [step_of(one) for one in mechanisms if one is not None and not isinstance(one, Exact)]
        self.base = max(set(steps), key=lambda step: (steps.count(step), step), default=1)
        if not self._values:  # nobody has them at hand
            self._counts = [np.zeros((0, len(self.used)), dtype=np.int32)]
            self._values, self._flags = [np.zeros((0, len(self.figures)), dtype=np.int64)], [np.zeros(0, dtype=np.bool_)]
        if len(self._counts) > 1:
            self._counts, self._flags = [np.concatenate(self._counts)], [np.concatenate(self._flags)]
            self._values = [np.concatenate(self._values)]

    @property
    def areas(self) -> int:
        """How many there are."""
        return len(self._values[0]) if self._values else 0

    def values(self, at: int) -> FigureValues:
        """Return the figure at a place, over all areas."""
        return self._values[0][:, at]

    def there(self, at: int) -> Flags:
        """Return in which areas a figure is published."""
        return np.asarray(self.values(at) != FIGURE_ABSENT)

    def count(self, key: str) -> CountData:
        """Return a count over all areas."""
        at = self._at[key]
        how, own = self._kinds[at], np.ascontiguousarray(self._counts[0][:, at : at + 1])
        down, up, seen = ScatterWindows([how], [self._adjusted[at]]).of(own, self._flags[0])
        shown = np.where(own[:, 0] > ABSENT, own[:, 0], 0).astype(np.int64)
        step = self.base if how is None else step_of(how)
        return CountData(shown, np.maximum(shown - down[:, 0], 0), shown + up[:, 0], seen[:, 0], step)

    def difference(self, whole: str, outside: str) -> CountData:
        """Return what is left of one count without another that is part of it, over all areas."""
        one, other = self.count(whole), self.count(outside)
        low, high = np.maximum(one.low - other.high, 0), np.maximum(one.high - other.low, 0)
        return CountData(np.maximum(one.shown - other.shown, 0), low, high, one.there & other.there, one.step)

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
        there = np.all([one.there for one in counts], axis=0)
        return np.where(there, np.sum([one.shown for one in counts], axis=0), -1)

    def mixed(self, figure: Figure, values: FigureValues) -> Ints:
        """Return a number of each area that depends on its figure and its counts alone, and is no order of either."""
        found = (values.astype(np.uint64) * np.uint64(_MIX)) >> np.uint64(7)
        for key in figure.compared:
            own = self._counts[0][:, self._at[key]].astype(np.int64).astype(np.uint64)
            found = ((found ^ own) * np.uint64(_MIX)) ^ (found >> np.uint64(29))
        return np.asarray(found >> np.uint64(2)).astype(np.int64)


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
    limit: ClassVar[int] = 0

    @abstractmethod
    def telling(self, values: FigureValues, fine: int) -> Flags:
        """Return in which areas a hit would say something."""

    @abstractmethod
    def hits(self, values: FigureValues, fine: int) -> Flags:
        """Return where the published counts give these figures; `fine` is the step of their decimals."""

    def _sides(self, _values: FigureValues, _steps: Ints) -> list[tuple[Ints, Ints]] | None:
        """Return the least and the largest that each side that must not exceed `limit` can be; None if nothing tells."""
        return None

    def possible(self, values: FigureValues, steps: Ints) -> Flags | None:
        """Return where true counts could have given these figures, each side by itself; None where nothing tells."""
        sides = self._sides(values, steps)
        if sides is None:
            return None
        return np.asarray(np.all([np.full(len(values), True), *(least <= self.limit for least, _ in sides)], axis=0))

    def excludes(self, values: FigureValues, steps: Ints) -> Flags | None:
        """Return where such figures exclude some of the true counts that were possible."""
        sides = self._sides(values, steps)
        if sides is None:
            return None
        return np.asarray(np.any([np.full(len(values), False), *(most > self.limit for _, most in sides)], axis=0))

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
        found = np.zeros(len(values), dtype=np.bool_)
        for back in range(MOST_TRIED):
            found |= _some_numerator(values, fine, top - back * self.step, self.per, self.step) & (back <= many)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class MeanTest(FigureTest):
    """A mean of units in groups; `total`, where it is published, is the sum of what all units have."""

    groups: tuple[Group, ...]
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
        return np.sum([one.shown for one in self.counts], axis=0, dtype=np.int64) if self.counts else np.zeros(0, np.int64)

    def hits(self, values: FigureValues, fine: int) -> Flags:
        """Compare with total / universe; or with the middles of the groups, an open one standing for one number."""
        if self.total is not None and self.whole is not None:
            return np.asarray(2 * np.abs(ONE * self.total.shown - values * self.whole.shown) <= fine * self.whole.shown)
        if not self.groups:
            return np.zeros(len(values), dtype=np.bool_)
        middles = [_middle(group) for group in self.groups]
        number = self._number()
        closed = np.zeros(len(values))
        for middle, one in zip(middles, self.counts, strict=True):
            closed += 0.0 if middle is None else middle * ONE * one.shown
        open_ = sum((one.shown for m, one in zip(middles, self.counts, strict=True) if m is None), np.zeros_like(number))
        off, slack = values * number - closed, fine * number / 2.0
        low, high = off - slack, off + slack
        some = open_ > 0
        weight = _meant_by_most(low[some] / open_[some], high[some] / open_[some])
        return np.asarray((low <= weight * open_ + 1) & (high >= weight * open_ - 1))

    def _sides(self, values: FigureValues, steps: Ints) -> list[tuple[Ints, Ints]] | None:
        """Return the least and the largest value that the left side of each inequality (≤ 0) can have, doubled."""
        if not self.groups:
            return None
        found = []
        for side, ends in ((1, [g.low for g in self.groups]), (-1, [g.high for g in self.groups])):
            if any(end is None for end in ends):
                continue
            edge = 2 * values + side * steps
            least, most = np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=np.int64)
            for end, one in zip(ends, self.counts, strict=True):
                assert end is not None
                factor = side * (int(2 * ONE * end) - edge)
                least += factor * np.where(factor > 0, one.low, one.high)
                most += factor * np.where(factor > 0, one.high, one.low)
            found.append((least, most))
        return found


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

    limit: ClassVar[int] = 1
    groups: tuple[Group, ...]
    counts: tuple[CountData, ...]
    whole: CountData
    usable: Flags

    def telling(self, _values: FigureValues, _fine: int) -> Flags:
        """Return where there are units."""
        return np.asarray(np.sum([one.shown for one in self.counts], axis=0) > 0)

    def hits(self, values: FigureValues, fine: int) -> Flags:
        """Compare with the median of the published counts, on a straight line through the group that it is in."""
        counts = np.stack([one.shown for one in self.counts], axis=1)
        lows = np.array([float(g.low) if g.low is not None else np.nan for g in self.groups]) * ONE
        highs = np.array([float(g.high) if g.high is not None else np.nan for g in self.groups]) * ONE
        sums = np.cumsum(counts, axis=1)
        half = sums[:, -1] / 2.0
        at = (sums >= half[:, None]).argmax(1)
        row = np.arange(len(values))
        inside = np.maximum(counts[row, at], 1)
        share = (half - (sums[row, at] - counts[row, at])) / inside
        middle = lows[at] + (highs[at] - lows[at]) * share
        return np.asarray(np.abs(middle - values) <= fine / 2.0 + 1e-6)  # what is open is nowhere

    def _sides(self, values: FigureValues, steps: Ints) -> list[tuple[Ints, Ints]]:
        """Return the least and the largest that twice the units on one side, minus all, can be."""
        found = []
        for side, ends in ((-1, [g.high for g in self.groups]), (1, [g.low for g in self.groups])):
            least, most = -self.whole.high, -self.whole.low
            for end, one in zip(ends, self.counts, strict=True):
                if end is not None:
                    beyond = side * (int(2 * ONE * end) - (2 * values + side * steps)) > 0
                    least = least + np.where(beyond, 2 * one.low, 0)
                    most = most + np.where(beyond, 2 * one.high, 0)
            found.append((least, most))
        return found


def all_there(counts: Sequence[CountData]) -> Flags:
    """Return in which areas all of some counts are published."""
    return np.asarray(np.all([one.there for one in counts], axis=0))


NEARLY_ALL = 0.995  # A step is one of all values if so many are multiples of it; the others are slips
EXCESS = 0.04  # A larger step is in use if so many of the values, more than beside its multiples, are multiples of it
_ERRORS = 4.0  # and so many standard errors more
FEW = 40  # values from which a step can be told
SLIPS = 5  # A step is too large for areas of some size if so many values of smaller areas are no multiples of it
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
    found = np.ones_like(most)
    for step in nice_steps(int(most.max(initial=1))):
        found = np.where((step <= most) & (size % step == 0), step, found)
    return found


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
    found = [digit * 10**power for power in range(12) for digit in (1, 2, 4, 5)]
    return np.array([step for step in found if step <= max(largest, 1)], dtype=np.int64)


def decimals_of(values: FigureValues) -> int:
    """Return the finest step of some values, in units: the largest that (nearly) all are multiples of."""
    shown = values[values != 0]
    if not len(shown):
        return int(1 / FIGURE_UNIT)
    steps = nice_steps(int(np.abs(shown).max()))
    return max((int(step) for step in steps if np.mean(shown % step == 0) >= NEARLY_ALL), default=1)


def find_grid(values: FigureValues, units: Ints | None = None) -> FigureGrid:
    """Return the grid of some published values: one step everywhere, or limits to steps that differ.

    That a step is too large can be seen in values that are no multiples of it; that it is not, never for certain. So a
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
    edges = sorted({edge for found in ruled_out.values() for edge in found.values() if 0 < edge < _UNKNOWN})
    rows = [_as_steps(ends, [_limit(ruled_out[cell], edge, fine) for cell in range(len(ends))]) for edge in (0, *edges)]
    by_units = tuple((edge, row) for (before, row), edge in zip(pairwise(rows), edges, strict=True) if row != before)
    return FigureGrid(rows[0], by_units, nested=True)


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


def largest_in_use(values: Ints) -> int:
    """Return the largest step that some values above 0, `FEW` or more, were rounded to.

    Going from fine to coarse, a step is in use if clearly more values are multiples of it than there are beside these
    multiples, on the finer grids in use: so a slope in the values, or a second grid, is not taken for a step.
    """
    points, often = np.unique(values, return_counts=True)
    steps = nice_steps(int(points[-1]))
    fine = [int(step) for step in steps if often[points % step == 0].sum() >= NEARLY_ALL * len(values)]
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
        if on - beside > max(EXCESS * len(values), _ERRORS * (on + beside / 2) ** 0.5):
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
