"""Unbounded noise on whole numbers: the discrete Laplace and the discrete Gaussian distribution.

Draws are exact (`sampling`): parameters are taken as the decimals they are written as, 1.45 as 29/20.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from math import exp, floor, fsum, log, pi, sqrt, tanh

import numpy as np

from unround.errors import InputError
from unround.mechanisms import sampling
from unround.mechanisms.base import TAIL, FloatArray, IntArray, Window, counts, fraction, settle, window_from

CLAMPED = "clamped"  # what follows a scale where negative counts are published as 0

# Below the first there is no noise to speak of; above the second a window has millions of counts.
_SCALES = 0.01, 100_000


class UnboundedNoise(ABC):
    """What all unbounded noise shares: the published count is the true count plus a draw."""

    name: str
    sentence: str
    reach: int
    clamped: bool
    _how: str

    @abstractmethod
    def _density(self, distance: FloatArray) -> FloatArray:
        """Return the probability of noise of this size, of one sign."""

    @abstractmethod
    def _tail(self, distance: FloatArray) -> FloatArray:
        """Return the probability of noise of at least this size, of one sign; of 0 on, where the size is 0."""

    @abstractmethod
    def _draw(self, size: int, rng: np.random.Generator) -> IntArray:
        """Return this many draws of noise."""

    def _set(self, kind: str, symbol: str, scale: float) -> float:
        """Check the scale and return it as a float; set the name, and the words for errors."""
        least, most = _SCALES
        if not least <= scale <= most:
            raise InputError(
                f"the scale {symbol} of {kind} noise must be a number from {least} to {most}, such as 1.45; not {scale}."
            )
        how = f"{kind} noise of scale {scale} on a count" + ", negative counts published as 0" * self.clamped
        scale = float(scale)
        settle(self, name=f"{kind.lower()}:{_number(scale)}" + f",{CLAMPED}" * self.clamped, _how=how)
        return scale

    def _reaching(self, kind: str, scale: float, reach: int) -> None:
        """Set how far noise goes, and the assumption as a sentence, which says so."""
        negative = ", negative results published as 0" * self.clamped
        sentence = (
            f"Discrete {kind} noise of scale {_number(scale)} added to each count independently{negative} (noise beyond "
            f"±{reach}, which has a probability below {TAIL:g}, is ignored)."
        )
        settle(self, reach=reach, sentence=sentence)

    def window(self, published: int | None) -> Window:
        """Return `reach` counts on either side, without negative ones.

        For a negative count the far side is counted from 0, so that the tail cut off stays small relative to the rest.
        """
        above = self.reach - min(published or 0, 0)
        return window_from(self.likelihood, published, self.reach, above, self._how, certain=False)

    def chance(self, published: int | None, true: int) -> Fraction:
        """Return the probability of the difference, as close as a float comes."""
        return Fraction(float(self.likelihood(published, np.asarray(true))))

    def likelihood(self, published: int | IntArray | None, true: IntArray) -> FloatArray:
        """Return the probability of the difference, for arrays; beyond `reach` too."""
        y, x, possible = counts(published, true)
        density = self._density(np.abs(y - x).astype(np.float64))
        if self.clamped:
            density = np.where(y > 0, density, np.where(y == 0, self._tail(np.maximum(x, 0).astype(np.float64)), 0.0))
        return np.where(possible, density, 0.0)

    def publish(self, true: IntArray, rng: np.random.Generator) -> IntArray:
        """Add a draw to every count."""
        true = np.asarray(true)
        noisy = np.asarray(true + self._draw(true.size, rng).reshape(true.shape), dtype=np.int64)
        return np.maximum(noisy, 0) if self.clamped else noisy


def _number(value: float) -> str:
    """Return the shortest text that reads back as the same number."""
    return repr(value).removesuffix(".0")


@dataclass(frozen=True)
class Laplace(UnboundedNoise):
    """Discrete Laplace noise: P(v) = (e^(1/t) − 1)/(e^(1/t) + 1) · e^(−|v|/t).

    >>> noise = Laplace(1.45)
    >>> f"{sum(noise.likelihood(100 + v, 100) for v in range(-4, 5)):.4f}"
    '0.9576'
    >>> window = noise.window(100)
    >>> window.low, window.high, window.certain
    (60, 140, False)
    """

    t: float  # the scale; the paper proposes 1.45 in place of random rounding to base 5
    clamped: bool = False  # whether negative counts are published as 0

    def __post_init__(self) -> None:
        t = self._set("Laplace", "t", self.t)
        settle(self, t=t)
        # The two tails beyond k weigh 2·q^(k+1)/(1+q) with q = e^(−1/t).
        self._reaching("Laplace", t, floor(t * log(2 / TAIL / (1 + exp(-1 / t)))))

    def _density(self, distance: FloatArray) -> FloatArray:
        return np.asarray(tanh(1 / (2 * self.t)) * np.exp(-distance / self.t))

    def _tail(self, distance: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-distance / self.t) / (1 + exp(-1 / self.t)))

    def _draw(self, size: int, rng: np.random.Generator) -> IntArray:
        return sampling.laplace(fraction(self.t), size, rng)


@dataclass(frozen=True)
class Gaussian(UnboundedNoise):
    """Discrete Gaussian noise: P(v) proportional to e^(−v²/2σ²) on the whole numbers.

    >>> window = Gaussian(2).window(100)
    >>> window.low, window.high, window.certain
    (86, 114, False)
    """

    sigma: float  # the scale σ; from about 1 on it is the standard deviation
    clamped: bool = False  # whether negative counts are published as 0
    _total: float = field(init=False, repr=False, compare=False)
    _tails: FloatArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sigma = self._set("Gaussian", "σ", self.sigma)
        # By Poisson's summation formula sum and integral differ by a share of 2·e^(−2π²σ²), for σ ≥ 2 below 1e-33.
        summed = 1 + 2 * fsum(exp(-0.5 * (v / sigma) ** 2) for v in range(1, 80)) if sigma < 2 else None
        total = sigma * sqrt(2 * pi) if summed is None else summed
        settle(self, sigma=sigma, _total=total)
        # Beyond 9σ less than 1e-18 is left.
        density = self._density(np.arange(np.ceil(9 * sigma) + 2))
        outside = 2 * np.cumsum(density[::-1])[::-1]
        self._reaching("Gaussian", sigma, int(np.argmax(outside[1:] < TAIL)))
        settle(self, _tails=np.append(outside / 2, 0.0))

    def _density(self, distance: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-0.5 * (distance / self.sigma) ** 2) / self._total)

    def _tail(self, distance: FloatArray) -> FloatArray:
        return np.asarray(self._tails[np.minimum(distance, len(self._tails) - 1).astype(np.int64)])

    def _draw(self, size: int, rng: np.random.Generator) -> IntArray:
        return sampling.gaussian(fraction(self.sigma), size, rng)
