"""Tests of a figure against counts, area by area: whether published counts have given it, and whether true ones could.

Everything is in whole numbers: figures in `FIGURE_UNIT`, inequalities multiplied out. Intervals are closed, for ties at half
a step are rounded either way. Each test takes the values of a figure as an array, so that the values of other areas can be
put in their place: what a test then finds is what chance finds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.figures import Group
from unround.release import FIGURE_UNIT, FigureValues
from unround.structure.figure_data import CountData, Flags, Ints

ONE = FIGURE_UNIT.denominator
"""Units of a figure of one."""
TELLING = 5
"""A rate can tell rounded counts from others where one step of its numerator moves it by more than so many of its own."""
SHORT = 0.04
"""A universe that was not published may be smaller than a count that it is within by so large a part of that."""
MOST_TRIED = 16
"""Universes that are tried where none was published; in areas with more, some would always fit."""
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

    def possible(self, _values: FigureValues, _steps: Ints) -> Flags | None:
        """Return where true counts could have given these figures; None where that cannot be told at all."""
        return None

    def excludes(self, _values: FigureValues, _steps: Ints) -> Flags | None:
        """Return where such figures exclude some of the true counts that were possible."""
        return None

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

    def possible(self, values: FigureValues, steps: Ints) -> Flags | None:
        """Both inequalities must be possible, each by itself."""
        if not self.groups:
            return None
        found = np.ones(len(values), dtype=np.bool_)
        for extremes, _ in self._sides(values, steps):
            found &= extremes <= 0
        return found

    def excludes(self, values: FigureValues, steps: Ints) -> Flags | None:
        """See whether some counts within the windows violate an inequality."""
        if not self.groups:
            return None
        found = np.zeros(len(values), dtype=np.bool_)
        for _, extremes in self._sides(values, steps):
            found |= extremes > 0
        return found

    def _sides(self, values: FigureValues, steps: Ints) -> list[tuple[Ints, Ints]]:
        """Return the least and the largest value that the left side of each inequality (≤ 0) can have, doubled."""
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

    def possible(self, values: FigureValues, steps: Ints) -> Flags | None:
        """Both halves must be possible, each by itself."""
        found = np.ones(len(values), dtype=np.bool_)
        for least, _ in self._sides(values, steps):
            found &= least <= 1
        return found

    def excludes(self, values: FigureValues, steps: Ints) -> Flags | None:
        """See whether some counts within the windows violate an inequality."""
        found = np.zeros(len(values), dtype=np.bool_)
        for _, most in self._sides(values, steps):
            found |= most > 1
        return found

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
