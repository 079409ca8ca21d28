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
    impossible,
    settle,
    step_of,
    window_from,
)
from unround.mechanisms.plain import Exact, Unpublished
from unround.mechanisms.rounding import Rounding


class Band(NamedTuple):
    """True counts from `low` to `high` are published as `down`; or as `up`, with the probability that keeps the mean."""

    low: int
    high: int
    down: int
    up: int

    def holds(self, true: IntArray) -> BoolArray:
        """Return which counts are in it."""
        return np.asarray((self.low <= true) & (true <= self.high))

    def chance(self, published: int, true: int) -> Fraction:
        """Return the probability that a count of this band is published as another."""
        up = Fraction(true - self.down, self.up - self.down) if self.up > self.down else Fraction(0)
        return (up if published == self.up else Fraction(0)) + (1 - up if published == self.down else Fraction(0))

    def likelihood(self, published: IntArray, true: IntArray) -> FloatArray:
        """Return `chance` as floats, for arrays."""
        width = self.up - self.down
        if not width:
            return np.where(published == self.down, 1.0, 0.0)
        up, down = (true - self.down) / width, (self.up - true) / width
        return np.where(published == self.up, up, np.where(published == self.down, down, 0.0))

    def __str__(self) -> str:
        ends = f"{self.low}-{self.high}" if self.high > self.low else f"{self.low}"
        return f"{ends}={self.down}" + f"/{self.up}" * (self.up > self.down)


class Partly:
    """What the mechanisms share that publish the counts of some bands in a way of their own, and the others by another."""

    name: str
    sentence: str
    then: Mechanism
    _bands: tuple[Band, ...]
    _escape: Fraction  # the share of the counts in bands that are published as the others are
    _how: str

    def _set(
        self,
        bands: tuple[Band, ...],
        name: str,
        said: str,
        never: tuple[type, ...],
        where: str,
        how: str = "",
        escape: Fraction = Fraction(0),
    ) -> None:
        """Set bands, name and sentence, and how errors call it; refuse what cannot follow."""
        if isinstance(self.then, never):
            raise InputError(where.format(self.then.name))
        others = self.then.sentence
        sentence = f"{said}; the others: {others[0].lower()}{others[1:]}"
        settle(self, _bands=bands, _escape=escape, _how=how or name, name=name, sentence=sentence)

    def window(self, published: int | None) -> Window:
        """Return the bands that are published so, and what the other mechanism leaves outside of all bands."""
        reached = [(b.low, b.high) for b in self._bands if published in (b.down, b.up)]
        certain = True
        try:
            window = self.then.window(published)
        except InputError:
            if not reached:
                raise
        else:
            assert window.high is not None  # nothing that hides counts can follow
            reached.append((window.low, window.high))
            certain = window.certain
        if published is None:
            raise impossible(published, self.name)
        below, above = published - min(low for low, _ in reached), max(high for _, high in reached) - published
        return window_from(self.likelihood, published, below, above, self._how, certain)

    def chance(self, published: int | None, true: int) -> Fraction:
        """Return the probability by the band of the count, or else by the other mechanism."""
        other = self.then.chance(published, true)
        band = next((b for b in self._bands if b.low <= true <= b.high), None)
        if band is None:
            return other
        from_band = band.chance(HIDDEN if published is None else published, true)
        return self._escape * other + (1 - self._escape) * from_band

    def likelihood(self, published: int | IntArray | None, true: IntArray) -> FloatArray:
        """Return `chance` as floats, for arrays."""
        y, x, share = np.asarray(HIDDEN if published is None else published), np.asarray(true), float(self._escape)
        other = shares = np.asarray(self.then.likelihood(published, true))
        for band in self._bands:
            shares = np.where(band.holds(x), share * other + (1 - share) * band.likelihood(y, x), shares)
        return shares

    def publish(self, true: IntArray, rng: np.random.Generator) -> IntArray:
        """Publish every count by its band, or by the other mechanism."""
        true = np.asarray(true)
        shown = self.then.publish(true, rng)
        kept = rng.integers(0, self._escape.denominator, size=shown.shape) < self._escape.numerator
        for band in self._bands:
            here, width = band.holds(true) & ~kept, band.up - band.down
            drawn = rng.integers(0, max(width, 1), size=int(here.sum()))
            shown[here] = np.where(drawn < true[here] - band.down, band.up, band.down)
        return shown


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
        how = f"{name}: all true counts that could be published as this are hidden"
        hidden = Band(self.low, self.high, HIDDEN, HIDDEN)
        self._set((hidden,), name, said, (Suppressed, Unpublished), never, how)

    def window(self, published: int | None) -> Window:
        """Return the hidden range, or what the other mechanism leaves outside it."""
        if published is not None and published != HIDDEN:
            return super().window(published)
        if self.high - self.low > WIDEST:
            raise InputError(f"a hidden count has more than {WIDEST:,} possible values here; that is too many.")
        return Window(self.low, self.high, np.ones(self.high - self.low + 1))


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
                raise InputError(f"bands must be ranges in ascending order, such as 0=0,1-7=4; check {band}.")
            if band.up < band.down or (band.up > band.down and not band.down <= band.low <= band.high <= band.up):
                raise InputError(f"a count goes to one of two only between them, such as 1-2=0/3; check {band}.")
            before = band.high
        if before > WIDEST:
            raise InputError(f"bands must end below {WIDEST:,}; check {self.bands[-1]}.")
        name = "bands:" + ",".join([*map(str, self.bands), *([] if self.then == Exact() else [self.then.name])])
        ranges = [f"{band.low}" + f" to {band.high}" * (band.high > band.low) for band in self.bands]
        become = [f"{band.down}" + f" or {band.up} at random, without bias" * (band.up > band.down) for band in self.bands]
        said = ", ".join(f"{counts} as {count}" for counts, count in zip(ranges, become, strict=True))
        never = (Suppressed, Unpublished, Bands)
        self._set(self.bands, name, f"Counts are published by bands: {said}", never, "{} cannot follow bands.")


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
        said = f"Counts under {self.below} become 0" + (f" (but for {self.unless} of them)" if self.unless else "")
        never = "{} cannot follow a limit under which counts become 0."
        small = Band(0, self.below - 1, 0, 0)
        self._set((small,), name, said, (Suppressed, Unpublished, Bands, Cutoff), never, escape=self.unless)

    @property
    def base(self) -> int:
        """The step between published counts."""
        return step_of(self.then)
