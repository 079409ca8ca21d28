"""How totals split into parts, and how much that differs between areas, worked out of published counts.

Areas differ in size, and with it all their counts. What a total says about its parts is another matter: their shares. So a
sum is modelled as a Dirichlet-multinomial: each area draws the shares of the parts around their means q with a
precision A, and every person of the total falls to a part accordingly. Given the total t, a part then has mean q·t and
variance q(1 − q)·t·(1 + (t − 1)·ρ) with ρ = 1/(1 + A), which can be read off the published counts, the variance of their
rounding taken away. Large A: all areas alike, as with men and women; A near 0: a total is mostly one part, as with rare
languages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unround.mechanisms import Mechanism
from unround.mechanisms.base import FloatArray
from unround.prior.histograms import present
from unround.release import Counts

MOST_EVEN = 100.0
"""Shares that vary less than at this precision are as good as constant: windows are a few counts wide."""

MOST_UNEVEN = 0.01

FEWEST = 30
"""Areas with a total large enough to tell how its shares vary; with fewer, the sum takes after its neighbours."""

SMALL = 0.3
"""Parts expected to be smaller than this on average do not help to tell, because few areas have any."""


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """How one total splits: the mean shares of its parts, and the precision that areas keep to them with.

    `alphas`, their product, are the parameters of the Dirichlet distribution.
    """

    q: FloatArray
    precision: float

    @property
    def alphas(self) -> FloatArray:
        """One a part."""
        return self.q * self.precision


@dataclass(frozen=True, slots=True)
class Spread:
    """What a sample says about ρ = 1/(1 + precision): a weighted sum of estimates, and the sum of their weights."""

    weighted: float
    weight: float

    def towards(self, guess: float) -> float:
        """Return the estimate of ρ, the more like the guess the less the sample says."""
        # A guess is worth as much as a sample whose standard error is twice the guess.
        own = _KURTOSIS / max(2.0 * guess, 0.01) ** 2
        rho = (self.weighted + own * guess) / (self.weight + own)
        return float(np.clip(rho, 1 / (1 + MOST_EVEN), 1 / (1 + MOST_UNEVEN)))


_KURTOSIS = 4.0
"""The variance of a squared deviation, in units of its squared mean: 2 if normal, more for clumped counts."""


class Sample:
    """A random sample of areas, kept whole: the same however the areas come in blocks.

    Parameters
    ----------
    columns : int
        How many columns there are.
    most : int
        Areas to keep.
    """

    def __init__(self, columns: int, most: int) -> None:
        self.most = most
        self._rng = np.random.default_rng(20_210_511)
        self._keys = np.empty(0)
        self.counts: Counts = np.empty((0, columns), dtype=np.int32)

    def add(self, counts: Counts) -> None:
        """Take in a block of areas; those without any count are left out."""
        keys = self._rng.random(len(counts))
        chosen = present(counts).any(axis=1)
        if self._keys.size == self.most:
            chosen &= keys < self._keys.max()
        keys = np.concatenate([self._keys, keys[chosen]])
        both = np.concatenate([self.counts, counts[chosen]])
        keep = np.sort(np.argsort(keys, kind="stable")[: self.most])
        self._keys, self.counts = keys[keep], both[keep]


class Noise:
    """How much a mechanism makes published counts vary around true ones.

    Zeros vary less than other counts: so it depends on how many areas have none, and that on the mean of the true counts and
    on how even they are over areas. These are taken to be negative-binomial.

    Parameters
    ----------
    mechanism : Mechanism
        How the counts were published.

    Attributes
    ----------
    largest : float
        The variance around that true count which varies most.
    typical : float
        The mean variance around large true counts.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        true = np.arange(_LARGE)
        shown = np.arange(-_LARGE, 3 * _LARGE)
        likelihood = mechanism.likelihood(shown[np.newaxis, :], true[:, np.newaxis])
        total = np.maximum(likelihood.sum(axis=1), 1e-12)
        mean = likelihood @ shown / total
        variance = np.maximum(likelihood @ shown.astype(np.float64) ** 2 / total - mean**2, 0.0)
        self.largest = float(variance.max())
        self.typical = float(variance[_LARGE // 2 :].mean())
        self._table = np.array([_negative_binomials(alpha) @ variance for alpha in _ALPHAS])

    def at(self, means: FloatArray, alphas: FloatArray) -> FloatArray:
        """Return the mean variance where true counts have such means (areas × parts) and evenness (parts)."""
        rows = np.clip(np.searchsorted(_ALPHAS, alphas), 0, len(_ALPHAS) - 1)
        places = np.clip(np.searchsorted(_MEANS, means), 0, len(_MEANS) - 1)
        return np.asarray(np.where(means > _MEANS[-1], self.typical, self._table[rows, places]))


_LARGE = 120
_MEANS = np.geomspace(0.01, 30.0, 60)
_ALPHAS = np.geomspace(0.01, 100.0, 17)


def _negative_binomials(alpha: float) -> FloatArray:
    """Return the distributions with the means of `_MEANS`: means × counts."""
    x = np.arange(1, _LARGE)
    odds = _MEANS / (_MEANS + alpha)
    steps = np.log1p((alpha - 1) / x) + np.log(odds)[:, np.newaxis]
    logs = np.concatenate([np.zeros((len(_MEANS), 1)), np.cumsum(steps, axis=1)], axis=1)
    found = np.exp(logs + alpha * np.log1p(-odds)[:, np.newaxis])
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def mean_shares(totals: FloatArray, parts: FloatArray, sizes: FloatArray | None = None) -> FloatArray:
    """Return the mean shares of the parts (areas × parts), large areas counting little more than others.

    Every part gets half a person more than it has: none is impossible. Areas count by their totals, unless other sizes are
    given: a total that shares a random number with a part is large where the part was rounded up.
    """
    sizes = totals if sizes is None else sizes
    typical = max(float(np.median(sizes)), 1.0) if sizes.size else 1.0
    weights = 1 / (1 + np.maximum(sizes, 0.0) / typical)  # noise can make totals negative
    sums = (weights[:, np.newaxis] * np.maximum(parts, 0.0)).sum(axis=0) + 0.5
    return np.asarray(sums / sums.sum())


def spread_of(
    totals: FloatArray, parts: FloatArray, noise: Sequence[Noise], total_noise: float, shared: FloatArray | None = None
) -> Spread:
    """Return what areas say about how much shares vary.

    Parameters
    ----------
    totals, parts : array
        Published counts: of areas, and of areas × parts.
    noise : sequence of Noise
        How each part was published.
    total_noise : float
        The variance of the total around its true count.
    shared : array, optional
        In which share of the areas the total uses the random number of each part.

    Notes
    -----
    Two errors with one random number have half the variance in common if the counts are large; a part that is nearly all of
    its total has more, a small one less.
    """
    t = totals[:, np.newaxis]
    q = mean_shares(totals, parts)
    large = np.flatnonzero(q * np.median(totals) >= SMALL)
    if not large.size:
        return Spread(0.0, 0.0)
    q, y = q[large], parts[:, large]
    binomial = q * (1 - q)
    scale = binomial * np.maximum(t * (t - 1) - total_noise, 1.0)
    squares = (y - q * t) ** 2
    weight = weighted = 0.0
    rho = 0.05
    in_common = 0.0 if shared is None else q * shared[large]
    kinds = {one: np.flatnonzero([noise[part] is one for part in large.tolist()]) for one in set(noise)}
    own = np.empty_like(y)
    for _ in range(8):
        for one, those in kinds.items():
            own[:, those] = one.at(q[those] * t, q[those] * (1 / rho - 1))
        expected = own * (1 - in_common) + q * q * total_noise + binomial * t
        weights = _KURTOSIS / 2 / np.maximum(expected + rho * scale, 1e-9) ** 2
        weight = float((weights * scale * scale).sum())
        weighted = float((weights * (squares - expected) * scale).sum())
        rho = float(np.clip(weighted / max(weight, 1e-300), 1e-3, 0.99))
    return Spread(weighted, weight)
