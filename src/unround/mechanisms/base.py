"""The protocol of mechanisms (how a true count becomes a published one), and what their families share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, overload, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

HIDDEN = int(np.iinfo(np.int64).min)
"""In arrays of published counts: this one was not published. For a single count, `None` says the same."""

WIDEST = 10_000_000
"""The most true counts that a published one may leave possible; more would not fit into memory, and say nothing."""

ALIKE = 1e-12  # probabilities that differ by no more are the same: arithmetic in another order gives other last bits
TAIL = 1e-12  # unbounded noise is cut off where less than this probability remains outside


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The true counts that one published count leaves possible, and how likely each would have led to it."""

    low: int  # the smallest and the largest possible true count; `high` is None where nothing bounds it
    high: int | None
    weights: FloatArray | None  # `weights[i]` is the likelihood of the published count given the true count `low + i`
    certain: bool = True  # false where a tail of less than `TAIL` was cut off: bounds from such a window are not proofs
    holes: bool = False  # whether any weight is zero, so that nobody has to look again

    def __contains__(self, true: int) -> bool:
        if true < self.low or (self.high is not None and true > self.high):
            return False
        return self.weights is None or bool(self.weights[true - self.low] > 0)

    def __iter__(self) -> Iterator[int]:
        """Go through the possible true counts in ascending order."""
        if self.weights is None:
            raise ValueError("an unbounded window cannot be listed")
        return (self.low + int(i) for i in np.flatnonzero(self.weights))


@runtime_checkable
class Mechanism(Protocol):
    """How a true count becomes a published one.

    Every mechanism is a frozen value object. For every true count the likelihoods over all published counts
    (`None`, not published, among them where the mechanism hides counts) sum to 1, and `publish` draws
    according to them.
    """

    @property
    def name(self) -> str:
        """Its name on the command line, parameters included: `mechanism(m.name) == m`."""
        ...

    @property
    def sentence(self) -> str:
        """The assumption that declaring this mechanism makes, as one sentence."""
        ...

    def window(self, published: int | None) -> Window:
        """Return the true counts that this published count leaves possible; raise InputError if there is none."""
        ...

    def chance(self, published: int | None, true: int) -> Fraction:
        """Return the probability that `true` is published as `published`, exactly where it is rational."""
        ...

    def likelihood(self, published: int | IntArray | None, true: IntArray) -> FloatArray:
        """Return the same as floats, for arrays that broadcast; `HIDDEN` marks counts not published."""
        ...

    def publish(self, true: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw published counts for true ones; those that are not published come back as `HIDDEN`."""
        ...


@runtime_checkable
class Keyable(Mechanism, Protocol):
    """A mechanism that can take its random numbers from the keys of records."""

    def publish_keyed(self, true: IntArray, numbers: NDArray[np.uint64]) -> IntArray:
        """Publish true counts by random numbers in units of 2⁻⁶⁴."""
        ...


def keyable(how: Mechanism) -> Keyable:
    """Return a mechanism that keys can decide for; raise InputError if they cannot."""
    if not isinstance(how, Keyable):
        raise InputError(f"keys decide how each count is rounded or changed at random, and {how.name} does not do that.")
    return how


class InCases(ABC):
    """What the mechanisms share whose probabilities are so many of equally likely cases."""

    name: str
    sentence: str
    _whole: int = 1  # how many cases there are

    @abstractmethod
    def _cases(self, published: IntArray, true: IntArray) -> IntArray:
        """Return in how many cases true counts, not below 0, are published so."""

    def chance(self, published: int | None, true: int) -> Fraction:
        """Return the probability that `true` is published as `published`."""
        if published is None or true < 0:
            return Fraction(0)
        return Fraction(int(self._cases(np.asarray(published), np.asarray(true))), self._whole)

    def likelihood(self, published: int | IntArray | None, true: IntArray) -> FloatArray:
        """Return `chance` as floats, for arrays."""
        y, x, possible = counts(published, true)
        return np.where(possible, self._cases(y, x) / self._whole, 0.0)


def settle(how: object, **values: object) -> None:
    """Set what follows from the parameters of a frozen mechanism: its name, its sentence, and what it looks things up in."""
    for name, value in values.items():
        object.__setattr__(how, name, value)


def impossible(published: int | None, how: str, hint: str = "") -> InputError:
    """Return the error for a count that cannot have been published.

    >>> print(impossible(7, "rounding to the nearest 5"))
    7 cannot come from rounding to the nearest 5.
    """
    shown = "an unpublished count" if published is None or published == HIDDEN else str(published)
    return InputError(f"{shown} cannot come from {how}.{hint}")


def window_from(
    likelihood: Callable[[int, IntArray], FloatArray],
    published: int | None,
    below: int,
    above: int,
    how: str,
    certain: bool = True,
) -> Window:
    """Build the window of a published count by trying every true count near it."""
    if published is None or published == HIDDEN:
        raise impossible(published, how)
    published = int(published)
    low = max(0, published - below)
    if published + above - low > WIDEST:
        raise InputError(f"{how} leaves more than {WIDEST:,} possible true counts for {published}; that is too many.")
    weights = likelihood(published, np.arange(low, published + above + 1))
    possible = np.flatnonzero(weights)
    if not possible.size:
        raise impossible(published, how)
    first, last = int(possible[0]), int(possible[-1])
    weights.flags.writeable = False
    return Window(low + first, low + last, weights[first : last + 1], certain, possible.size <= last - first)


_KEPT: dict[tuple[Mechanism, int | None], Window] = {}
"""Windows of up to `FEW` counts that were asked for: an audit asks for few different ones, again and again."""

FEW, MOST_KEPT = 1_000, 1 << 15


def window_of(mechanism: Mechanism, published: int | None) -> Window:
    """Return the window of a mechanism, mostly worked out once."""
    window = _KEPT.get((mechanism, published))
    if window is None:
        window = mechanism.window(published)
        if len(_KEPT) < MOST_KEPT and (window.weights is None or window.weights.size <= FEW):
            _KEPT[mechanism, published] = window
    return window


def counts(published: int | IntArray | None, true: IntArray) -> tuple[IntArray, IntArray, BoolArray]:
    """Return both as arrays, and where the first was published and the second is not negative.

    Counts that were not published read 0 in the first array: arithmetic with `HIDDEN` itself would overflow.
    """
    y = np.asarray(HIDDEN if published is None else published, dtype=np.int64)
    x = np.asarray(true, dtype=np.int64)
    shown = y != HIDDEN
    return np.where(shown, y, 0), x, shown & (x >= 0)


# An exponent of more than three digits would only make a number too long to compute with.
@overload
def reaches(probability: float, threshold: float) -> bool: ...
@overload
def reaches(probability: FloatArray, threshold: float) -> BoolArray: ...
def reaches(probability: float | FloatArray, threshold: float) -> bool | BoolArray:
    """Return whether a probability is at least a threshold. Everything that is called likely goes by this.

    >>> reaches(2 / 3, 0.66), reaches(0.7 + 0.1 + 0.1, 0.9), reaches(float("nan"), 0.5)
    (True, True, False)
    """
    return probability >= threshold - ALIKE


_NUMBER = re.compile(r"[+-]?(\d+\s*/\s*0*[1-9]\d*|(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?)", re.IGNORECASE)


def fraction(value: str | float | Fraction) -> Fraction:
    """Return a probability exactly as it is written; a float counts as its shortest decimal.

    >>> fraction("1/5") == fraction("0.2") == fraction(0.2)
    True
    """
    if isinstance(value, Fraction):
        return value
    text = str(value).strip()
    if not _NUMBER.fullmatch(text):
        raise InputError(f"{text!r} is not a probability: write a fraction or a decimal, such as 1/5 or 0.2.")
    return Fraction(text.replace(" ", ""))


def step_of(mechanism: Mechanism) -> int:
    """Return the step between published counts: the base of a rounding, else 1."""
    return int(getattr(mechanism, "base", 1))
