"""Noise without bounds on whole numbers: the discrete Laplace and the discrete Gaussian distribution.

The draws are for simulation: seeded, and in floating point. They are no substitute for the samplers of a
library for differential privacy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from math import exp, expm1, floor, fsum, log, pi, sqrt, tanh

import numpy as np

from unround.errors import InputError
from unround.mechanisms.base import TAIL, FloatArray, IntArray, Window, counts, window_from

# Below the first there is no noise to speak of; above the second a window has millions of counts.
_SCALES = 0.01, 100_000


class Noise(ABC):
    """What all noise without bounds shares: what is published is the true count plus a draw."""

    reach: int
    _how: str

    @abstractmethod
    def _density(self, distance: FloatArray) -> FloatArray:
        """Return the probability of noise of this size, of one sign."""

    @abstractmethod
    def _draw(self, size: int, rng: np.random.Generator) -> IntArray:
        """Return so many draws of noise."""

    def _set(self, symbol: str, scale: float, how: str) -> float:
        """Check the scale and return it as a float; fix the words for errors."""
        least, most = _SCALES
        if not least <= scale <= most:
            raise InputError(f"{symbol} must be a number from {least} to {most}, such as 1.45; not {scale}.")
        object.__setattr__(self, "_how", how)
        return float(scale)

    @property
    def _cut(self) -> str:
        return f"noise of more than {self.reach}, less than {TAIL:g} likely, is left out of account"

    def window(self, published: int | None) -> Window:
        """Return `reach` counts on either side, as far as they are not negative.

        For a negative count the far side is counted from 0, so that what is cut off stays small beside what
        is left.
        """
        above = self.reach - min(published or 0, 0)
        return window_from(self.likelihood, published, self.reach, above, self._how, certain=False)

    def chance(self, published: int | None, true: int) -> Fraction:
        """Return the probability of the difference, as close as a float comes."""
        return Fraction(float(self.likelihood(published, np.asarray(true))))

    def likelihood(self, published: int | IntArray | None, true: IntArray) -> FloatArray:
        """Return the probability of the difference, for arrays; beyond `reach` too."""
        y, x, possible = counts(published, true)
        return np.where(possible, self._density(np.abs(y - x).astype(np.float64)), 0.0)

    def publish(self, true: IntArray, rng: np.random.Generator) -> IntArray:
        """Add a draw to every count."""
        true = np.asarray(true)
        return np.asarray(true + self._draw(true.size, rng).reshape(true.shape), dtype=np.int64)


def _number(value: float) -> str:
    """Return the shortest text that reads back as the same number."""
    return repr(value).removesuffix(".0")


def _laplace(scale: float, size: int, rng: np.random.Generator) -> IntArray:
    """Draw from the discrete Laplace distribution: the difference of two geometric draws."""
    p = -expm1(-1 / scale)
    return np.asarray(rng.geometric(p, size) - rng.geometric(p, size), dtype=np.int64)


@dataclass(frozen=True)
class Laplace(Noise):
    """Discrete Laplace noise: P(v) = (e^(1/t) − 1)/(e^(1/t) + 1) · e^(−|v|/t).

    Parameters
    ----------
    t : float
        The scale; the paper proposes 1.45 in place of random rounding to base 5.

    Examples
    --------
    >>> noise = Laplace(1.45)
    >>> f"{sum(noise.likelihood(100 + v, 100) for v in range(-4, 5)):.4f}"
    '0.9576'
    >>> window = noise.window(100)
    >>> window.low, window.high, window.certain
    (60, 140, False)
    """

    t: float

    def __post_init__(self) -> None:
        t = self._set("the scale t of Laplace noise", self.t, f"Laplace noise of scale {self.t} on a count")
        object.__setattr__(self, "t", t)
        # The two tails beyond k weigh 2·q^(k+1)/(1+q) with q = e^(−1/t).
        object.__setattr__(self, "reach", floor(t * log(2 / TAIL / (1 + exp(-1 / t)))))

    @property
    def name(self) -> str:
        """How the command line calls it."""
        return f"laplace:{_number(self.t)}"

    @property
    def sentence(self) -> str:
        """What is assumed, for people."""
        return (
            f"Discrete Laplace noise of scale {_number(self.t)} was added to every count, independently "
            f"of the others ({self._cut})."
        )

    def _density(self, distance: FloatArray) -> FloatArray:
        return np.asarray(tanh(1 / (2 * self.t)) * np.exp(-distance / self.t))

    def _draw(self, size: int, rng: np.random.Generator) -> IntArray:
        return _laplace(self.t, size, rng)


@dataclass(frozen=True)
class Gaussian(Noise):
    """Discrete Gaussian noise: P(v) proportional to e^(−v²/2σ²) on the whole numbers.

    Parameters
    ----------
    sigma : float
        The scale σ; from about 1 on it is the standard deviation.

    Examples
    --------
    >>> window = Gaussian(2).window(100)
    >>> window.low, window.high, window.certain
    (86, 114, False)
    """

    sigma: float
    _total: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sigma = self._set("the scale σ of Gaussian noise", self.sigma, f"Gaussian noise of scale {self.sigma} on a count")
        object.__setattr__(self, "sigma", sigma)
        # By Poisson's summation formula sum and integral differ by a share of 2·e^(−2π²σ²), for σ ≥ 2 below 1e-33.
        summed = 1 + 2 * fsum(exp(-0.5 * (v / sigma) ** 2) for v in range(1, 80)) if sigma < 2 else None
        total = sigma * sqrt(2 * pi) if summed is None else summed
        object.__setattr__(self, "_total", total)
        # Beyond 9σ less than 1e-18 is left.
        density = self._density(np.arange(np.ceil(9 * sigma) + 2))
        outside = 2 * np.cumsum(density[::-1])[::-1]
        object.__setattr__(self, "reach", int(np.argmax(outside[1:] < TAIL)))

    @property
    def name(self) -> str:
        """How the command line calls it."""
        return f"gaussian:{_number(self.sigma)}"

    @property
    def sentence(self) -> str:
        """What is assumed, for people."""
        return (
            f"Discrete Gaussian noise of scale {_number(self.sigma)} was added to every count, "
            f"independently of the others ({self._cut})."
        )

    def _density(self, distance: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-0.5 * (distance / self.sigma) ** 2) / self._total)

    def _draw(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw by rejection from a discrete Laplace distribution (Canonne and others 2020, algorithm 3)."""
        scale = floor(self.sigma) + 1
        noise = np.empty(size, dtype=np.int64)
        open_ = np.arange(size)
        while open_.size:
            draw = _laplace(scale, open_.size, rng)
            excess = (np.abs(draw) - self.sigma**2 / scale) / self.sigma
            kept = rng.random(open_.size) < np.exp(-0.5 * excess**2)
            noise[open_[kept]] = draw[kept]
            open_ = open_[~kept]
        return noise
