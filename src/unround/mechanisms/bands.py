"""Some counts are hidden, or become one count or one of two, or 0 if they are small; all others by another mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

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
    settle,
    step_of,
    window_from,
)
from unround.mechanisms.plain import Exact, Unpublished
from unround.mechanisms.rounding import Rounding


class Partly:
    """What the mechanisms share that publish some counts in a way of their own, and the others by another mechanism."""

    name: str
    sentence: str
    then: Mechanism

    def _set(self, name: str, said: str, never: tuple[type, ...], where: str) -> None:
        """Set name and sentence; refuse what cannot follow."""
        if isinstance(self.then, never):
            raise InputError(where.format(self.then.name))
        others = self.then.sentence
        settle(self, name=name, sentence=f"{said}; the others: {others[0].lower()}{others[1:]}")


@dataclass(frozen=True)
class Suppressed(Partly):
    """Counts in one range are hidden; the others are published by another mechanism.

    >>> list(Suppressed(1, 7).window(None))
    [1, 2, 3, 4, 5, 6, 7]

    A published count cannot come from a hidden one:

    >>> list(Suppressed(1, 7, Rounding(5)).window(10))
    [8, 9, 10, 11, 12, 13, 14]
    """

    low: int  # the first and the last true count that is hidden
    high: int
    then: Mechanism = Exact()  # noqa: RUF009 - frozen, like every mechanism  # how the others are published; exactly by default

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high:
            raise InputError(f"hidden counts are a range from 0 or more upwards, such as 1..7; not {self.low}..{self.high}.")
        name = f"suppressed:{self.low}..{self.high}" + ("" if self.then == Exact() else f",{self.then.name}")
        never = "what is not hidden must be published: {} cannot follow a suppression."
        said = f"Counts from {self.low} to {self.high} are suppressed"
        self._set(name, said, (Suppressed, Unpublished), never)

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


class Band(NamedTuple):
    """True counts from `low` to `high` are published as `down`; or as `up`, with the probability that keeps the mean."""

    low: int
    high: int
    down: int
    up: int

    def chance(self, published: int, true: int) -> Fraction:
        """Return the probability that a count of this band is published as another."""
        up = Fraction(true - self.down, self.up - self.down) if self.up > self.down else Fraction(0)
        return (up if published == self.up else Fraction(0)) + (1 - up if published == self.down else Fraction(0))


@dataclass(frozen=True)
class Bands(Partly):
    """Some ranges of counts are published as one count each, or as one of two; the others by another mechanism.

    - `then`: How all other counts are published; exactly by default.

    >>> rule = Bands((Band(0, 0, 0, 0), Band(1, 7, 4, 4)))
    >>> list(rule.window(4)), list(rule.window(8))
    ([1, 2, 3, 4, 5, 6, 7], [8])
    >>> Bands((Band(1, 2, 0, 3),)).chance(3, 2)
    Fraction(2, 3)
    """

    bands: tuple[Band, ...]  # the ranges, in ascending order
    then: Mechanism = Exact()  # noqa: RUF009 - frozen, like every mechanism

    def __post_init__(self) -> None:
        before = -1
        for band in self.bands:
            if not before < band.low <= band.high:
                raise InputError(f"bands must be ranges in ascending order, such as 0=0,1-7=4; check {_shown(band)}.")
            if band.up < band.down or (band.up > band.down and not band.down <= band.low <= band.high <= band.up):
                raise InputError(f"a count goes to one of two only between them, such as 1-2=0/3; check {_shown(band)}.")
            before = band.high
        if before > WIDEST:
            raise InputError(f"bands must end below {WIDEST:,}; check {_shown(self.bands[-1])}.")
        name = "bands:" + ",".join([*map(_shown, self.bands), *([] if self.then == Exact() else [self.then.name])])
        ranges = [f"{band.low}" + f" to {band.high}" * (band.high > band.low) for band in self.bands]
        become = [f"{band.down}" + f" or {band.up} at random, without bias" * (band.up > band.down) for band in self.bands]
        said = ", ".join(f"{counts} as {count}" for counts, count in zip(ranges, become, strict=True))
        never = (Suppressed, Unpublished, Bands)
        self._set(name, f"Counts are published by bands: {said}", never, "{} cannot follow bands.")

    def window(self, published: int | None) -> Window:
        """Return the bands that are published so, and what the other mechanism leaves outside of all bands."""
        if published is None:
            raise impossible(published, self.name)
        reached = [(b.low, b.high) for b in self.bands if published in (b.down, b.up)]
        certain = True
        try:
            window = self.then.window(published)
        except InputError:
            pass
        else:
            assert window.high is not None  # nothing that hides counts can follow
            reached.append((window.low, window.high))
            certain = window.certain
        if not reached:
            raise impossible(published, self.name)
        below, above = published - min(low for low, _ in reached), max(high for _, high in reached) - published
        return window_from(self.likelihood, published, below, above, self.name, certain)

    def chance(self, published: int | None, true: int) -> Fraction:
        """Return the probability by the band of the count, or else by the other mechanism."""
        band = next((b for b in self.bands if b.low <= true <= b.high), None)
        if band is None:
            return self.then.chance(published, true)
        return Fraction(0) if published is None else band.chance(published, true)

    def likelihood(self, published: int | IntArray | None, true: IntArray) -> FloatArray:
        """Return `chance` as floats, for arrays."""
        y, x, possible = counts(published, true)
        shares = np.asarray(self.then.likelihood(published, true))
        for band in self.bands:
            width = band.up - band.down
            if width:
                here = np.where(y == band.up, (x - band.down) / width, np.where(y == band.down, (band.up - x) / width, 0.0))
            else:
                here = np.where(y == band.down, 1.0, 0.0)
            shares = np.where(_within(band, x), np.where(possible, here, 0.0), shares)
        return shares

    def publish(self, true: IntArray, rng: np.random.Generator) -> IntArray:
        """Publish every count by its band, or by the other mechanism."""
        true = np.asarray(true)
        shown = self.then.publish(true, rng)
        for band in self.bands:
            here, width = _within(band, true), band.up - band.down
            drawn = rng.integers(0, max(width, 1), size=int(here.sum()))
            shown[here] = np.where(drawn < true[here] - band.down, band.up, band.down)
        return shown


@dataclass(frozen=True)
class Cutoff(Partly):
    """Counts under a limit become 0; the others are published by another mechanism.

    - `then`: How all other counts are published.

    >>> list(Cutoff(4).window(5)), list(Cutoff(4).window(0))
    ([4, 5, 6, 7, 8, 9], [0, 1, 2, 3, 4])
    >>> Cutoff(4).chance(0, 4), Cutoff(4, unless=Fraction(1, 10)).chance(5, 3)
    (Fraction(1, 5), Fraction(3, 50))
    """

    below: int  # the limit
    then: Mechanism = Rounding(5)  # noqa: RUF009 - frozen, like every mechanism
    unless: Fraction = Fraction(0)  # The share of counts that escape the limit

    def __post_init__(self) -> None:
        if not 1 <= self.below <= WIDEST:
            raise InputError(f"a limit under which counts become 0 must be from 1 to {WIDEST:,}, not {self.below}.")
        if not 0 <= self.unless < 1:
            raise InputError(f"the share of counts that escape a limit must be from 0 to less than 1, not {self.unless}.")
        name = f"cutoff:{self.below},{self.then.name}" + (f",unless={self.unless}" if self.unless else "")
        escape = f" (but for {self.unless} of them)" if self.unless else ""
        never = "{} cannot follow a limit under which counts become 0."
        self._set(name, f"Counts under {self.below} become 0{escape}", (Suppressed, Unpublished, Bands, Cutoff), never)

    @property
    def base(self) -> int:
        """The step between published counts."""
        return step_of(self.then)

    def window(self, published: int | None) -> Window:
        """Return what the other mechanism leaves from the limit on; for 0, what is below it as well."""
        if published is None:
            raise impossible(published, self.name)
        try:
            window = self.then.window(published)
        except InputError:
            if published:
                raise
            return window_from(self.likelihood, 0, 0, self.below, self.name)
        assert window.high is not None  # nothing that hides counts can follow
        above = max(window.high, self.below - 1 if published == 0 else 0) - published
        return window_from(self.likelihood, published, published - window.low, above, self.name, window.certain)

    def chance(self, published: int | None, true: int) -> Fraction:
        """Return the probability that `true` is published as `published`."""
        if published is None or true < 0:
            return Fraction(0)
        other = self.then.chance(published, true)
        return other if true >= self.below else self.unless * other + (1 - self.unless) * (published == 0)

    def likelihood(self, published: int | IntArray | None, true: IntArray) -> FloatArray:
        """Return `chance` as floats, for arrays."""
        y, x, possible = counts(published, true)
        share, other = float(self.unless), np.asarray(self.then.likelihood(published, true))
        return np.where(possible & (x < self.below), share * other + (1 - share) * (y == 0), other)

    def publish(self, true: IntArray, rng: np.random.Generator) -> IntArray:
        """Publish 0 for small counts, and the others by the other mechanism."""
        shown = self.then.publish(np.asarray(true), rng)
        kept = rng.integers(0, self.unless.denominator, size=shown.shape) < self.unless.numerator
        return np.where((np.asarray(true) < self.below) & ~kept, 0, shown)


def _within(band: Band, true: IntArray) -> BoolArray:
    return (band.low <= true) & (true <= band.high)


def _shown(band: Band) -> str:
    """Return a band as it is written."""
    ends = f"{band.low}-{band.high}" if band.high > band.low else f"{band.low}"
    return f"{ends}={band.down}" + f"/{band.up}" * (band.up > band.down)
