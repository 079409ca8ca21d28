"""Weighted estimates: what was rounded was a sum of weights, not a whole number."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from unround.mechanisms.base import FloatArray, IntArray, Window, window_from
from unround.mechanisms.rounding import Rounding, Sample

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
        found = [fine.likelihood(shown, np.abs(true * 2 * FINER + point)) for point in points.tolist()]
        return np.asarray(np.where(true >= 0, np.mean(found, axis=0), 0.0))

    def publish(self, true: IntArray, rng: np.random.Generator) -> IntArray:
        """Round as if these were the estimates."""
        return self.how.publish(true, rng)
