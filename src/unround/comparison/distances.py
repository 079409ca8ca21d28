"""How far what is published lies from the truth, in closed form: a mechanism's own account of its error."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from unround.mechanisms import Gaussian, Laplace, Mechanism, Nearest, Rounding


@dataclass(frozen=True, slots=True)
class Distances:
    """Probabilities by signed distance.

    The remainder of the true count is taken as uniform, and the count as large.
    """

    shares: dict[int, float]

    @classmethod
    def of(cls, mechanism: Mechanism, cycle: int, reach: int) -> Distances:
        """Average over `cycle` true counts in a row, out to `reach`."""
        away = np.arange(-reach, reach + 1)
        start = 1000 * (reach + cycle)
        chances = sum(mechanism.likelihood(true + away, np.asarray(true)) for true in range(start, start + cycle))
        return cls({int(d): float(p) for d, p in zip(away, np.asarray(chances) / cycle, strict=True) if p > 0})

    def within(self, reach: int) -> float:
        """Return the probability of being at most so far away."""
        return sum(p for d, p in self.shares.items() if abs(d) <= reach)

    def mean(self, reach: int | None = None) -> float:
        """Return the mean distance, or what of it comes from distances up to `reach`."""
        return sum(abs(d) * p for d, p in self.shares.items() if reach is None or abs(d) <= reach)

    def variance(self) -> float:
        """Return the mean squared distance."""
        return sum(d * d * p for d, p in self.shares.items())

    def rmse(self) -> float:
        """Return its root."""
        return sqrt(self.variance())


def distances(mechanism: Mechanism) -> Distances | None:
    """Return the distances of a mechanism under which they do not depend on how large a count is; else None.

    Examples
    --------
    >>> from unround.mechanisms import Laplace, Rounding
    >>> [f"{distances(how).mean():.4f}" for how in (Rounding(5), Laplace(1.45))]
    ['1.6000', '1.3411']
    """
    if isinstance(mechanism, Laplace | Gaussian):
        return Distances.of(mechanism, 1, mechanism.reach)
    if isinstance(mechanism, Rounding):
        return Distances.of(mechanism, mechanism.base, mechanism.base)
    if isinstance(mechanism, Nearest):  # halves may go to the even multiple
        return Distances.of(mechanism, 2 * mechanism.base, mechanism.base)
    return None
