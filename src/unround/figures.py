"""Figure: a rate, a mean or a median that is published beside the counts that it may have been computed from.

If it was computed from unrounded counts, it says something about them: every kind comes down to linear inequalities with
rational coefficients. If it was computed from the rounded counts, it says nothing. Which of the two is told from the data
(`structure`); nothing here decides it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import floor
from typing import Any

from unround.errors import InputError


class FigureKind(StrEnum):
    """What a figure is."""

    RATE = "rate"
    MEAN = "mean"
    MEDIAN = "median"


Steps = tuple[tuple[Fraction, Fraction], ...]
"""From which absolute value on, and the step from there; ascending, the first from 0."""


@dataclass(frozen=True, slots=True)
class FigureGrid:
    """The values that a figure was rounded to: multiples of a step, which may grow with the value.

    >>> one_decimal = FigureGrid.of(Fraction(1, 10))
    >>> [str(end) for end in one_decimal.around(Fraction("12.4"))]
    ['247/20', '249/20']
    """

    steps: Steps  # from which absolute value on, and the step from there; ascending, the first from 0
    by_units: tuple[tuple[int, Steps], ...] = ()  # from how many units on, which finer steps
    nested: bool = False  # whether steps are upper limits: a value has the largest nice one that divides it

    @classmethod
    def of(cls, step: Fraction) -> FigureGrid:
        """Return the grid of one step everywhere."""
        return cls(((Fraction(0), step),))

    def step(self, value: Fraction, units: int | None = None) -> Fraction:
        """Return the step around a value of so many units; where two meet, the larger."""
        steps = self.steps_for(None if self.nested and value == 0 else units)
        at = bisect_right(steps, abs(value), key=lambda entry: entry[0]) - 1
        edge = at > 0 and steps[at][0] == abs(value)
        most = max(steps[at - 1][1], steps[at][1]) if edge else steps[at][1]
        return _largest_that_divides(value, most) if self.nested else most

    def steps_for(self, units: int | None) -> Steps:
        """Return the steps by value of figures of so many units."""
        at = 0 if units is None else bisect_right(self.by_units, units, key=lambda entry: entry[0])
        return self.by_units[at - 1][1] if at else self.steps

    def around(self, value: Fraction, units: int | None = None) -> tuple[Fraction, Fraction]:
        """Return the least and the largest number that may have been rounded to a value; ties go either way."""
        half = self.step(value, units) / 2
        return value - half, value + half


FINEST = Fraction(1, 10_000)  # no step is finer


def _largest_that_divides(value: Fraction, most: Fraction) -> Fraction:
    """Return the largest nice step, up to a limit, of which a value is a multiple; the finest, if of none."""
    exact = value / FINEST
    if exact.denominator > 1:
        return FINEST
    # All in whole numbers of the finest step: an audit asks for every figure that it uses of every area.
    number, limit = exact.numerator, floor(most / FINEST)
    largest = power = 1
    while power <= limit:
        for digit in (1, 2, 4, 5):
            step = digit * power
            if step <= limit and number % step == 0:
                largest = step
        power *= 10
    return largest * FINEST


@dataclass(frozen=True, slots=True)
class Group:
    """Units of one count whose values lie between two edges: at least `low`, at most `high`; None where a group is open."""

    count: str
    low: Fraction | None
    high: Fraction | None


@dataclass(frozen=True, slots=True)
class Inequality:
    """The sum of coefficients times counts is at most a number. Names are of counts, each once, coefficients not 0."""

    terms: tuple[tuple[str, Fraction], ...]
    at_most: Fraction


@dataclass(frozen=True, slots=True)
class Figure:
    """A rate, a mean or a median, and the counts that it is of.

    - `groups`: For a mean or a median, counts that partition the universe, by the values of their units.
    - `within`: A count that has the universe in it and is not much larger, where the universe itself was not published:
      it tells the size of an area, and nothing else.
    """

    name: str  # its name: the key of its column in a release, or what the user calls it
    kind: FigureKind  # rate, mean or median
    universe: str  # the count of all units: the denominator; "" where it was not published
    numerator: str = ""  # of a rate, those who are meant; of a mean, what all units have; "" if unpublished
    groups: tuple[Group, ...] = ()
    grid: FigureGrid = FigureGrid(((Fraction(0), Fraction(1, 10)),))  # the values that it was rounded to
    per: Fraction = Fraction(100)  # what a rate of one is printed as: 100 for percentages
    label: str = ""  # what the file calls it
    within: str = ""
    sampled: bool = False  # whether it is of a weighted sample, whose estimates are not whole numbers
    declared: bool = False  # whether the user says on which grid it is; else that is found in the values
    outside: str = ""  # those in `within` but not in the universe, where such a count is published

    def __hash__(self) -> int:
        """Figures that differ elsewhere only are rare; to hash every edge and step would take longer than any look-up."""
        return hash((self.name, self.kind, self.universe, self.numerator))

    @property
    def is_complete(self) -> bool:
        """Whether all the counts that it is of were published: else nothing can be inferred from it."""
        return bool(self.universe and (self.numerator if self.kind is FigureKind.RATE else self.groups))

    @property
    def counts(self) -> tuple[str, ...]:
        """The counts that it is about, each once; those that were published."""
        of = (self.numerator,) if self.kind is FigureKind.RATE else tuple(group.count for group in self.groups)
        return tuple(key for key in dict.fromkeys((*of, self.universe)) if key)

    @property
    def compared(self) -> tuple[str, ...]:
        """All published counts that it can be held against, each once: more than it is about."""
        return tuple(key for key in dict.fromkeys((*self.counts, self.numerator, self.within, self.outside)) if key)

    def inequalities(self, value: Fraction, units: int | None = None) -> tuple[Inequality, ...]:
        """Return what must hold of the true counts if the figure was computed from them and printed as `value`.

        Inequalities that hold whatever the counts are, are left out.
        """
        low, high = self.grid.around(value, units)
        if self.kind is FigureKind.RATE:
            return self._rate(low / self.per, high / self.per)
        return self._mean(low, high) if self.kind is FigureKind.MEAN else self._median(low, high)

    def _rate(self, low: Fraction, high: Fraction) -> tuple[Inequality, ...]:
        """At least `low` and at most `high` of the universe."""
        least = _inequality([(self.universe, low), (self.numerator, Fraction(-1))])
        most = _inequality([(self.numerator, Fraction(1)), (self.universe, -high)])
        return (least, most) if low > 0 else (most,)

    def _mean(self, low: Fraction, high: Fraction) -> tuple[Inequality, ...]:
        """All units at the lower ends of their groups average no more than `high`; at the upper ends, no less than `low`."""
        said = []
        if all(group.low is not None for group in self.groups):
            said.append(_inequality((g.count, g.low - high) for g in self.groups if g.low is not None))
        if all(group.high is not None for group in self.groups):
            said.append(_inequality((g.count, low - g.high) for g in self.groups if g.high is not None))
        return tuple(said)

    def _median(self, low: Fraction, high: Fraction) -> tuple[Inequality, ...]:
        """No more than half of the units, give or take one, lie below the median, and above it."""
        below = [group.count for group in self.groups if group.high is not None and group.high < low]
        above = [group.count for group in self.groups if group.low is not None and group.low > high]
        return tuple(
            _inequality([*((count, Fraction(2)) for count in side), (self.universe, Fraction(-1))], Fraction(1))
            for side in (below, above)
            if side
        )


def _inequality(terms: Iterable[tuple[str, Fraction]], at_most: Fraction = Fraction(0)) -> Inequality:
    """Add up the coefficients of each count."""
    sums: dict[str, Fraction] = {}
    for count, coefficient in terms:
        sums[count] = sums.get(count, Fraction(0)) + coefficient
    return Inequality(tuple((count, c) for count, c in sums.items() if c), at_most)


FIGURE_KEYS = ("column", "kind", "numerator", "universe", "groups", "step", "per", "sampled", "why")
"""What may be said of a figure."""
_GROUP = ("count", "low", "high")

Complaint = Callable[[str, str], InputError]  # makes the error with a message that points at a key


def figure_from(table: Mapping[str, Any], wrong: Complaint) -> Figure:
    """Return the figure that a table of TOML describes.

    >>> rate = {"column": "345", "kind": "rate", "numerator": "340", "universe": "335", "step": 0.1}
    >>> figure_from(rate, lambda message, key: InputError(message)).counts
    ('340', '335')
    """
    for key in table:
        if key not in FIGURE_KEYS:
            raise wrong(f"there is no key {key!r} in [[figures]]. The keys are {', '.join(FIGURE_KEYS)}.", key)
    name, kind = _word(table, "column", wrong), _word(table, "kind", wrong)
    if not name:
        raise wrong('a figure needs the key of its column: column = "…".', "figures")
    if kind not in tuple(FigureKind):
        raise wrong(f"the kind of {name} must be rate, mean or median, not {kind!r}.", "kind")
    step, per = table.get("step"), _number(table.get("per", 100), "per", wrong)
    if per is None or per <= 0 or per != int(per):
        raise wrong("per must be what a rate of one is printed as, such as 100 for percentages.", "per")
    size = _number(step, "step", wrong)
    if size is not None and (size <= 0 or size % FINEST != 0):
        raise wrong(f"step must be above 0, with at most four decimals, not {step!r}.", "step")
    groups = table.get("groups", [])
    if not isinstance(groups, list | tuple) or not all(isinstance(group, Mapping) for group in groups):
        raise wrong('groups must be a list such as [{ count = "10", low = 0, high = 5 }].', "groups")
    return Figure(
        name=name,
        kind=FigureKind(kind),
        universe=_word(table, "universe", wrong),
        numerator=_word(table, "numerator", wrong),
        groups=tuple(_group(group, wrong) for group in groups),
        grid=FigureGrid.of(size) if size is not None else FigureGrid.of(Fraction(1, 10)),
        per=per,
        label=name,
        sampled=bool(table.get("sampled", False)),
        declared=size is not None,
    )


def _word(table: Mapping[str, Any], key: str, wrong: Complaint) -> str:
    value = table.get(key, "")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise wrong(f"{key} must be text in quotes, not {value!r}.", key)
    return str(value).strip()


def _number(value: object, key: str, wrong: Complaint) -> Fraction | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise wrong(f"{key} must be a number, not {value!r}.", key)
    return Fraction(str(value))


def _group(table: Mapping[str, Any], wrong: Complaint) -> Group:
    for key in table:
        if key not in _GROUP:
            raise wrong(f"there is no key {key!r} in a group. The keys are {', '.join(_GROUP)}.", key)
    count = _word(table, "count", wrong)
    if not count:
        raise wrong("every group needs the key of its count.", "groups")
    low, high = _number(table.get("low"), "low", wrong), _number(table.get("high"), "high", wrong)
    if low is not None and high is not None and low > high:
        raise wrong(f"the group {count} ends below its beginning.", "groups")
    return Group(count, low, high)
