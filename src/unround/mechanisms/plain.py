"""Counts published exactly, rounded in one way (to a multiple, a middle, digits), changed by a few, or not published."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from unround.errors import InputError
from unround.mechanisms.base import HIDDEN, FloatArray, InCases, IntArray, Window, impossible, settle, window_from
from unround.mechanisms.rounding import check_base

Ties = Literal["up", "even"]

_POWERS = 10 ** np.arange(19)


class Fixed(InCases):
    """What all deterministic rules share: every true count is published in one way."""

    @abstractmethod
    def _rounded(self, true: IntArray) -> IntArray:
        """Return what is published for every true count."""

    def _cases(self, published: IntArray, true: IntArray) -> IntArray:
        return np.asarray(self._rounded(true) == published, dtype=np.int64)

    def publish(self, true: IntArray, rng: np.random.Generator) -> IntArray:  # noqa: ARG002 - nothing is drawn
        """Return what is published for every true count."""
        return np.array(self._rounded(np.asarray(true)), dtype=np.int64)


def nearest(true: IntArray, unit: IntArray | int, ties: Ties) -> IntArray:
    """Return the nearest multiples of `unit`; halves go up, or to the even multiple."""
    rest = true % unit
    half = 2 * rest == unit
    odd = true // unit % 2 == 1
    up = (2 * rest > unit) | (half & odd if ties == "even" else half)
    return np.asarray(true - rest + unit * up)


def _tie_mark(ties: str) -> str:
    """Return what a name says of halves."""
    if ties not in ("up", "even"):
        raise InputError(f"ties must be 'up' or 'even', not {ties!r}.")
    return "-even" * (ties == "even")


@dataclass(frozen=True)
class Nearest(Fixed):
    """Conventional rounding to the nearest multiple of a base.

    >>> list(Nearest(5).window(10))
    [8, 9, 10, 11, 12]
    >>> list(Nearest(4).window(8)), list(Nearest(4, ties="even").window(8))
    ([6, 7, 8, 9], [6, 7, 8, 9, 10])
    """

    base: int  # the number of which published counts are multiples
    ties: Ties = "up"  # Where a count half-way between two multiples goes: up, or to the even multiple (25 to 20, 35 to 40)

    def __post_init__(self) -> None:
        check_base(self.base)
        halves = "" if self.base % 2 else f", halves {'up' if self.ties == 'up' else 'to the even multiple'}"
        sentence = f"Conventional rounding to the nearest multiple of {self.base}{halves}."
        settle(self, name=f"nearest{_tie_mark(self.ties)}:{self.base}", sentence=sentence)

    def _rounded(self, true: IntArray) -> IntArray:
        return nearest(true, self.base, self.ties)

    def window(self, published: int | None) -> Window:
        """Return half a base on either side, without negative counts."""
        half = self.base // 2
        return window_from(self.likelihood, published, half, half, f"rounding to the nearest {self.base}")


@dataclass(frozen=True)
class Midpoint(Fixed):
    """Counts are published as the middle of their group: 1 to 6 as 3, 7 to 12 as 9 (midpoint 6 rounding); 0 stays 0.

    >>> list(Midpoint(6).window(9))
    [7, 8, 9, 10, 11, 12]
    """

    base: int

    def __post_init__(self) -> None:
        check_base(self.base)
        middle = self.base - self.base // 2
        said = f"Published as the middle of its group of {self.base}: 1 to {self.base} as {middle}, and so on; 0 stays 0."
        settle(self, name=f"midpoint:{self.base}", sentence=said)

    def _rounded(self, true: IntArray) -> IntArray:
        return np.asarray(np.where(true > 0, -(-true // self.base) * self.base - self.base // 2, 0))

    def window(self, published: int | None) -> Window:
        """Return the group that a count is the middle of."""
        return window_from(self.likelihood, published, self.base, self.base, f"the middles of groups of {self.base}")


@dataclass(frozen=True)
class Digits(Fixed):
    """Conventional rounding to a number of significant digits.

    >>> window = Digits(4).window(123500)
    >>> window.low, window.high
    (123450, 123549)

    From below, a power of ten is reached in smaller steps:

    >>> window = Digits(2).window(1000)
    >>> window.low, window.high
    (995, 1049)
    """

    digits: int  # how many digits are kept; counts with no more digits are published unchanged
    ties: Ties = "up"  # where a count half-way between goes: up, or so that the last digit kept is even

    def __post_init__(self) -> None:
        if not 1 <= self.digits <= 18:
            raise InputError(f"significant digits must be from 1 to 18, such as 4; not {self.digits}.")
        halves = "up" if self.ties == "up" else "so that the last digit kept is even"
        settle(self, name=f"digits{_tie_mark(self.ties)}:{self.digits}")
        settle(self, sentence=f"Conventional rounding to {self._kept}, halves {halves}.")

    @property
    def _kept(self) -> str:
        return f"{self.digits} significant digit{'s' * (self.digits > 1)}"

    def _rounded(self, true: IntArray) -> IntArray:
        return nearest(true, self._unit(true), self.ties)

    def _unit(self, true: IntArray) -> IntArray:
        """Return the place value of the last digit kept, for every count."""
        places = np.searchsorted(_POWERS, true, side="right")
        return np.asarray(_POWERS[np.maximum(places - self.digits, 0)])

    def window(self, published: int | None) -> Window:
        """Return half a unit of the last digit on either side; below a power of ten a tenth of that."""
        how = f"rounding to {self._kept}"
        if published is None or published < 0 or published == HIDDEN:
            raise impossible(published, how)
        # The unit of the published count bounds the distance: just below a power of ten units are smaller.
        half = int(self._unit(np.asarray(published))) // 2
        return window_from(self.likelihood, published, half, half, how)


_ONE = np.ones(1)
_ONE.flags.writeable = False


@dataclass(frozen=True)
class Exact(Fixed):
    """Counts are published exactly.

    >>> list(Exact().window(48))
    [48]
    """

    name = "exact"
    sentence = "Published exactly."

    def _rounded(self, true: IntArray) -> IntArray:
        return true

    def window(self, published: int | None) -> Window:
        """Return the published count alone."""
        if published is None or published < 0:
            raise impossible(published, "counts published exactly")
        return Window(published, published, _ONE)


@dataclass(frozen=True)
class Within(InCases):
    """Counts are changed by at most k, every change equally likely; the result may be negative.

    >>> list(Within(5).window(2))
    [0, 1, 2, 3, 4, 5, 6, 7]
    >>> Within(5).chance(2, 7)
    Fraction(1, 11)
    """

    k: int

    def __post_init__(self) -> None:
        if self.k < 0:
            raise InputError(f"the largest change must be 0 or more, such as 5; not {self.k}.")
        said = f"Changed by at most {self.k} up or down, every change equally likely, each count independently."
        settle(self, name=f"within:{self.k}", sentence=said, _whole=2 * self.k + 1)

    def window(self, published: int | None) -> Window:
        """Return k counts on either side, without negative ones."""
        return window_from(self.likelihood, published, self.k, self.k, f"a change of at most {self.k}")

    def _cases(self, published: IntArray, true: IntArray) -> IntArray:
        return np.asarray(np.abs(published - true) <= self.k, dtype=np.int64)

    def publish(self, true: IntArray, rng: np.random.Generator) -> IntArray:
        """Change every count independently."""
        true = np.asarray(true)
        return np.asarray(true + rng.integers(-self.k, self.k + 1, size=true.shape), dtype=np.int64)


@dataclass(frozen=True)
class Unpublished:
    """Counts are not published at all; only sums say anything about them.

    >>> Unpublished().window(None)
    Window(low=0, high=None, weights=None, certain=True, holes=False)
    """

    name = "unpublished"
    sentence = "Not published."

    def window(self, published: int | None) -> Window:
        """Return all counts from 0."""
        if published is None or published == HIDDEN:
            return Window(0, None, None)
        raise impossible(published, "counts that were not published")

    def chance(self, published: int | None, true: int) -> Fraction:
        """Return 1 where nothing is published, else 0."""
        return Fraction(int(published is None and true >= 0))

    def likelihood(self, published: int | IntArray | None, true: IntArray) -> FloatArray:
        """Return `chance` as floats, for arrays."""
        y = np.asarray(HIDDEN if published is None else published)
        return np.where((y == HIDDEN) & (np.asarray(true) >= 0), 1.0, 0.0)

    def publish(self, true: IntArray, rng: np.random.Generator) -> IntArray:  # noqa: ARG002 - nothing is drawn
        """Hide every count."""
        return np.full(np.shape(true), HIDDEN)
