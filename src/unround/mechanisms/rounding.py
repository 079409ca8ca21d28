"""Random rounding to a multiple of a base: unbiased, as in Canada and New Zealand; by size; by any table; of estimates."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import lcm

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.mechanisms.base import FloatArray, InCases, IntArray, Window, fraction, impossible, settle, window_from


class TwoWay(InCases):
    """What all random rounding shares: a count goes down or up to a neighbouring point of a grid.

    A subclass defines the grid (`_steps`) in whole numbers; probabilities are fractions of `_whole`, so that they
    and the draws are exact.
    """

    _reach: int
    _how: str

    def _set(self, whole: int, reach: int, how: str, name: str, sentence: str) -> None:
        """Set what follows from the parameters: the number of equally likely cases, the longest step, and words."""
        # Larger whole numbers have no exact floats.
        if whole > 2**53:
            raise InputError("these probabilities need too large a common denominator: write them with fewer digits.")
        settle(self, _whole=whole, _reach=reach, _how=how, name=name, sentence=sentence)

    @abstractmethod
    def _steps(self, true: IntArray) -> tuple[IntArray, IntArray | int, IntArray]:
        """Return the neighbour below, the distance to the one above, and in how many of `_whole` cases the count goes up."""

    def window(self, published: int | None) -> Window:
        """Return the counts that have `published` as a neighbour and can go there."""
        return window_from(self.likelihood, published, self._reach - 1, self._reach - 1, self._how)

    def _cases(self, published: IntArray, true: IntArray) -> IntArray:
        down, width, share = self._steps(true)
        return np.where(published == down, self._whole - share, np.where(published == down + width, share, 0))

    def publish(self, true: IntArray, rng: np.random.Generator) -> IntArray:
        """Round every count independently; draws are whole numbers, so the probabilities are exact."""
        true = np.asarray(true)
        return self.publish_with(true, self.draws(true.shape, rng))

    def draws(self, shape: tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """Return the random numbers that `publish_with` takes."""
        return np.asarray(rng.integers(0, self._whole, size=shape), dtype=np.int64)

    def publish_with(self, true: IntArray, draws: IntArray) -> IntArray:
        """Round a count up where its random number is below its probability of going up."""
        down, width, share = self._steps(true)
        return np.asarray(down + width * (draws < share), dtype=np.int64)

    def publish_keyed(self, true: IntArray | FloatArray, numbers: NDArray[np.uint64]) -> IntArray:
        """Round up where a given random number u is below the probability of going up."""
        if np.issubdtype(np.asarray(true).dtype, np.floating) or self._whole >= 2**32:
            down, width, share = self._steps(np.asarray(true, dtype=np.float64))
            up = numbers * (self._whole / 2.0**64) < share
            return np.asarray(np.rint(down + width * up), dtype=np.int64)
        # ⌊u · whole⌋, in halves of 32 bits: the product itself needs more than 64.
        whole, half = np.uint64(self._whole), np.uint64(32)
        low = (numbers & np.uint64(0xFFFFFFFF)) * whole
        draws = ((numbers >> half) * whole + (low >> half)) >> half
        return self.publish_with(np.asarray(true, dtype=np.int64), draws.astype(np.int64))


def check_base(base: int) -> None:
    """Raise InputError unless this can be the base of a rounding."""
    if base < 1:
        raise InputError(f"a base for rounding must be at least 1, not {base}.")
    # A window has two counts for every unit of the base.
    if base > 1_000_000:
        raise InputError(f"a base for rounding must be at most 1000000, not {base}.")


@dataclass(frozen=True)
class Rounding(TwoWay):
    """Unbiased random rounding: a true count goes to a neighbouring multiple of the base, and its mean is preserved.

    A true count x is published as y, one of the two multiples of `base` around it, with probability 1 −
    |x−y|/base; a multiple of the base is published unchanged.

    >>> window = Rounding(5).window(15)
    >>> window.low, window.high
    (11, 19)
    >>> Rounding(5).chance(15, 12)
    Fraction(2, 5)
    """

    base: int = 5
    _tent: FloatArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_base(self.base)
        sentence = f"Unbiased random rounding to base {self.base}, each count independently."
        self._set(self.base, self.base, f"rounding to base {self.base}", f"rounding:{self.base}", sentence)
        distance = np.abs(np.arange(1 - self.base, self.base))
        tent = (self.base - distance) / self.base
        tent.flags.writeable = False
        settle(self, _tent=tent)

    def _steps(self, true: IntArray) -> tuple[IntArray, int, IntArray]:
        rest = true % self.base
        return true - rest, self.base, rest

    def window(self, published: int | None) -> Window:
        """Return base − 1 counts on either side, without negative ones."""
        if published is None or published < 0 or published % self.base:
            hint = (
                ""
                if published is None or published < 0
                else f" If it was published unrounded, write {published}!; if it has another base, write {published} @BASE."
            )
            raise impossible(published, self._how, hint)
        low = published - self.base + 1
        if low >= 0:
            return Window(low, published + self.base - 1, self._tent)
        return Window(0, published + self.base - 1, self._tent[-low:])


@dataclass(frozen=True)
class Residues(TwoWay):
    """Random rounding in which the remainder determines the probability of going up.

    A true count that leaves the remainder r is published as the next multiple above with probability `up[r]`,
    else as the one below. The base is the number of probabilities.

    >>> thirds = Residues(("0", "1/3", "2/3"))
    >>> thirds.chance(6, 4)
    Fraction(1, 3)
    >>> list(Residues(("0", "0", "1")).window(6))
    [5, 6, 7]
    """

    up: tuple[Fraction | str | float, ...]  # one for every remainder, the first of them 0
    _share: IntArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        up = tuple(fraction(p) for p in self.up)
        if len(up) < 2:
            raise InputError("give one probability for every remainder, at least two, such as 0,1/3,2/3.")
        if up[0] != 0:
            raise InputError(f"a multiple of the base is never changed: the first probability must be 0, not {up[0]}.")
        for p in up:
            if not 0 <= p <= 1:
                raise InputError(f"a probability of going up must be from 0 to 1, not {p}.")
        whole = lcm(*(p.denominator for p in up))
        listed = ", ".join(f"{p} for {r}" for r, p in enumerate(up) if r)
        self._set(
            whole,
            len(up),
            f"rounding to base {len(up)}",
            "residues:" + ",".join(str(p) for p in up),
            f"Random rounding to base {len(up)}, up with a probability that depends on the remainder ({listed}), each count "
            "independently.",
        )
        settle(self, up=up, _share=np.array([int(p * whole) for p in up]))

    @property
    def base(self) -> int:
        """The number of which published counts are multiples."""
        return len(self.up)

    def _steps(self, true: IntArray) -> tuple[IntArray, int, IntArray]:
        rest = true % self.base
        return true - rest, self.base, self._share[rest]


STATS_NZ = ((0, 3), (19, 2), (20, 5), (100, 10), (1000, 100))
"""New Zealand's bands, as pairs of the first count and the base: 0 to 18 go to base 3, 19 to base 2 …"""


class Banded(TwoWay):
    """Unbiased random rounding to a neighbouring multiple of the base of the count's own band."""

    _starts: IntArray
    _bases: IntArray

    def _set_bands(self, bands: tuple[tuple[int, int], ...], how: str, name: str, sentence: str) -> None:
        """Set the bands, given as pairs of a first count and a base, and words."""
        if not bands or bands[0][0] != 0 or any(this[0] >= after[0] for this, after in pairwise(bands)):
            raise InputError("bands must start at 0 and be in increasing order, such as 0=3,19=2,20=5.")
        for _, base in bands:
            check_base(base)
        bases = [base for _, base in bands]
        self._set(lcm(*bases), max(bases), how, name, sentence)
        settle(self, _starts=np.array([start for start, _ in bands]), _bases=np.array(bases))

    def _steps(self, true: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        width = self._bases[np.searchsorted(self._starts, true, side="right") - 1]
        rest = true % width
        return true - rest, width, rest * (self._whole // width)


@dataclass(frozen=True)
class Graduated(Banded):
    """Graduated random rounding: the base grows with the count.

    A true count goes to one of the two multiples around it of its own band's base, without bias. A window can
    therefore cross the border between two bands.

    >>> {x: str(Graduated().chance(20, x)) for x in Graduated().window(20)}
    {19: '1/2', 20: '1', 21: '4/5', 22: '3/5', 23: '2/5', 24: '1/5'}
    """

    bands: tuple[tuple[int, int], ...] = STATS_NZ  # the first count of every band and its base; New Zealand's by default
    _starts: IntArray = field(init=False, repr=False, compare=False)
    _bases: IntArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        settle(self, bands=tuple((int(start), int(base)) for start, base in self.bands))
        listed = ", ".join(f"base {base} from {start}" for start, base in self.bands)
        written = "" if self.bands == STATS_NZ else ":" + ",".join(f"{start}={base}" for start, base in self.bands)
        sentence = f"Unbiased random rounding to a base that depends on the count ({listed}), each count independently."
        self._set_bands(self.bands, f"random rounding to {listed}", f"graduated{written}", sentence)


@dataclass(frozen=True)
class Sample(Banded):
    """Random rounding without small counts: those under twice the base become 0 or twice the base.

    The form of Canada's 25% sample data: counts under 10 become 0 or 10, without bias; from 10 on it is
    ordinary random rounding to base 5.

    >>> window = Sample(5).window(10)
    >>> window.low, window.high
    (1, 14)
    >>> Sample(5).chance(10, 3)
    Fraction(3, 10)
    """

    base: int = 5
    _starts: IntArray = field(init=False, repr=False, compare=False)
    _bases: IntArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_base(self.base)
        twice = 2 * self.base
        how = f"random rounding to base {self.base} with counts under {twice} going to 0 or {twice}"
        said = (
            f"Unbiased random rounding to base {self.base}, counts under {twice} to 0 or {twice}, each count independently."
        )
        self._set_bands(((0, twice), (twice, self.base)), how, f"sample:{self.base}", said)


FINER = 4  # estimates are weighed at so many points around every whole number


@dataclass(frozen=True, slots=True)
class Weighted:
    """Random rounding of estimates that need not be whole numbers.

    15 published leaves any number between 10 and 20. As whole numbers, the window has both ends: 10 and 20 themselves are
    impossible, but numbers next to them are not. So bounds are those of the real numbers, and no whole number is proved.

    >>> window = Weighted(Rounding(5)).window(15)
    >>> window.low, window.high
    (10, 20)
    """

    how: Rounding | Sample  # how they were rounded

    @property
    def base(self) -> int:
        """The base."""
        return self.how.base

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return f"weighted:{self.how.name}"

    @property
    def sentence(self) -> str:
        """The assumption, as a sentence."""
        words = self.how.sentence
        return f"A weighted estimate, not a whole number. {words[0].upper()}{words[1:]}"

    def window(self, published: int | None) -> Window:
        """Return the counts next to which an estimate can have been."""
        twice = 2 * self.base
        return window_from(self.likelihood, published, twice, twice, self.name)

    def chance(self, published: int | None, true: int) -> Fraction:
        """Return the probability that estimates around `true` are published so, as a fraction."""
        return Fraction(float(self.likelihood(published, np.array([true]))[0])).limit_denominator(1 << 20)

    def likelihood(self, published: int | IntArray | None, true: IntArray) -> FloatArray:
        """Return the average probability over the estimates that are nearest to each whole number."""
        fine = type(self.how)(self.base * 2 * FINER)
        shown = None if published is None else np.asarray(published) * 2 * FINER
        points = np.arange(1 - FINER, FINER, 2) if FINER > 1 else np.zeros(1, dtype=np.int64)
        true = np.asarray(true)
        chances = [fine.likelihood(shown, np.abs(true * 2 * FINER + point)) for point in points.tolist()]
        return np.asarray(np.where(true >= 0, np.mean(chances, axis=0), 0.0))

    def publish(self, true: IntArray, rng: np.random.Generator) -> IntArray:
        """Round as if these were the estimates."""
        return self.how.publish(true, rng)
