"""Counts published exactly, changed by a few at most, or not published at all."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from unround.errors import InputError
from unround.mechanisms.base import (
    HIDDEN,
    WIDEST,
    BoolArray,
    FloatArray,
    IntArray,
    Mechanism,
    Window,
    counts,
    impossible,
    window_from,
)
from unround.mechanisms.conventional import Fixed

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
class Within:
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

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return f"within:{self.k}"

    @property
    def sentence(self) -> str:
        """The assumption, as a sentence."""
        return f"Changed by at most {self.k} up or down, every change equally likely, each count independently."

    def window(self, published: int | None) -> Window:
        """Return k counts on either side, without negative ones."""
        return window_from(self.likelihood, published, self.k, self.k, f"a change of at most {self.k}")

    def chance(self, published: int | None, true: int) -> Fraction:
        """Return 1/(2k+1) for the counts within k, else 0."""
        if published is None or true < 0 or abs(published - true) > self.k:
            return Fraction(0)
        return Fraction(1, 2 * self.k + 1)

    def likelihood(self, published: int | IntArray | None, true: IntArray) -> FloatArray:
        """Return `chance` as floats, for arrays."""
        y, x, possible = counts(published, true)
        return np.where(possible & (np.abs(y - x) <= self.k), 1 / (2 * self.k + 1), 0.0)

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


@dataclass(frozen=True)
class Suppressed:
    """Counts in one range are hidden; the others are published by another mechanism.

    >>> list(Suppressed(1, 7).window(None))
    [1, 2, 3, 4, 5, 6, 7]

    A published count cannot come from a hidden one:

    >>> from unround.mechanisms.rounding import Rounding
    >>> list(Suppressed(1, 7, Rounding(5)).window(10))
    [8, 9, 10, 11, 12, 13, 14]
    """

    low: int  # the first and the last true count that is hidden
    high: int
    then: Mechanism = Exact()  # how the others are published; exactly by default

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high:
            raise InputError(f"hidden counts are a range from 0 or more upwards, such as 1..7; not {self.low}..{self.high}.")
        if isinstance(self.then, Suppressed | Unpublished):
            raise InputError(f"what is not hidden must be published: {self.then.name} cannot follow a suppression.")

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return f"suppressed:{self.low}..{self.high}" + ("" if self.then == Exact() else f",{self.then.name}")

    @property
    def sentence(self) -> str:
        """The assumption, as a sentence."""
        others = self.then.sentence[0].lower() + self.then.sentence[1:]
        return f"Counts from {self.low} to {self.high} are suppressed; the others: {others}"

    def window(self, published: int | None) -> Window:
        """Return the hidden range, or what the other mechanism leaves outside it."""
        if published is None or published == HIDDEN:
            if self.high - self.low > WIDEST:
                raise InputError(f"a hidden count has more than {WIDEST:,} possible values here; that is too many.")
            return Window(self.low, self.high, np.ones(self.high - self.low + 1))
        window = self.then.window(published)
        assert window.high is not None  # only Unpublished leaves it open, and that cannot follow
        how = f"{self.name}: all true counts that could be published as this are hidden"
        below, above = published - window.low, window.high - published
        return window_from(self.likelihood, published, below, above, how, window.certain)

    def chance(self, published: int | None, true: int) -> Fraction:
        """Return 1 for hiding a count in the range, else what the other mechanism does."""
        if self.low <= true <= self.high:
            return Fraction(int(published is None))
        return self.then.chance(published, true)

    def likelihood(self, published: int | IntArray | None, true: IntArray) -> FloatArray:
        """Return `chance` as floats, for arrays."""
        y = np.asarray(HIDDEN if published is None else published)
        hidden = self._hidden(np.asarray(true))
        return np.where(hidden, np.where(y == HIDDEN, 1.0, 0.0), self.then.likelihood(published, true))

    def publish(self, true: IntArray, rng: np.random.Generator) -> IntArray:
        """Hide the counts in the range; draw the others."""
        return np.where(self._hidden(np.asarray(true)), HIDDEN, self.then.publish(true, rng))

    def _hidden(self, true: IntArray) -> BoolArray:
        return (self.low <= true) & (true <= self.high)
