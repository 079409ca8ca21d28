"""From how often counts were published to how often they were true: a mixture of Poisson distributions.

Counts rounded to base 5 show multiples of 5 only. Any number of distributions would explain them; a mixture of Poissons is
the smooth one, natural for counts of people. Its weights over a grid of rates are found by EM (the maximum-likelihood
mixture of Kiefer and Wolfowitz), for all columns of one mechanism at once. It is stopped early: many steps would only
sharpen the mixture into a few spikes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import cast

import numpy as np
from numpy.typing import NDArray

from unround.machine import threads
from unround.mechanisms import Mechanism
from unround.mechanisms.base import BoolArray, FloatArray, IntArray
from unround.release import ABSENT, Counts

Tallies = NDArray[np.int32]

CAP = 1000
"""Counts from this one on are told apart no longer: so far up, a prior is flat over any window that matters."""

BELOW = 64
"""Noise can publish counts below zero: so many of them are told apart."""


class Histograms:
    """How often each count was published, one row per column: counts from -`BELOW` to `CAP`, both ends taking all beyond.

    - `columns`: How many columns there are.

    Attributes
    ----------
    areas : int
        Areas that show any count.

    Examples
    --------
    >>> histograms = Histograms(2)
    >>> histograms.add(np.array([[0, 5], [5, 5], [0, ABSENT]], dtype=np.int32))
    >>> histograms.areas, histograms.of(0)
    (3, {0: 2, 5: 1})
    """

    def __init__(self, columns: int) -> None:
        self.areas = 0
        self.tallies: Tallies = np.zeros((columns, BELOW + CAP + 1), dtype=np.int32)

    def add(self, counts: Counts) -> None:
        """Take in a block of published counts, areas × columns; codes for counts that are absent are left out."""
        width = self.tallies.shape[1]
        self.areas += int(np.count_nonzero(present(counts).any(axis=1)))
        # A few columns at a time: the places of a whole block would take several times its memory.
        for first in range(0, len(self.tallies), 256):
            some = counts[:, first : first + 256]
            places = np.clip(some.astype(np.int64), -BELOW, CAP) + BELOW
            places += np.arange(some.shape[1]) * width
            times = np.bincount(places[present(some)], minlength=some.shape[1] * width)
            self.tallies[first : first + 256] += times.reshape(-1, width)

    def of(self, column: int) -> dict[int, int]:
        """Return the counts published in one column, and how often each was."""
        places = np.flatnonzero(self.tallies[column])
        return {int(place) - BELOW: int(self.tallies[column, place]) for place in places}


def present(counts: Counts) -> BoolArray:
    """Say which entries of a table are counts, not codes for why none is there."""
    return np.asarray(counts > ABSENT)


STEPS = 60
"""Of EM."""

SHAPES = (0.01, 0.03, 0.1, 0.3, 0.7, 1.5, 3.5, 10.0)
"""Of the gamma distributions that EM may start from: the smaller, the more areas have none, and the more the others have."""

PARTS_OF_MEAN = (1.0, 0.7, 0.5, 0.35, 0.2, 0.1)
"""What the mean of the many can be, as a part of the mean of all."""

SIZE = CAP + 1
"""Entries of a distribution: true counts 0 to `CAP`."""

FLOOR = 1e-9
"""No count that is possible gets less probability than this: a prior leans, it never rules out."""

_TOGETHER = 1024
"""Columns fitted at once, by each thread: more would only need more memory."""

_MARGIN = 250
"""True counts beyond the last that are needed to tell what is published up to there."""


@lru_cache(maxsize=1)
def rates() -> FloatArray:
    """Return the rates of the mixture: 0 (a count that is always 0), then ever larger ones, up to beyond the cap.

    Small ones grow by a factor; from where a Poisson distribution is narrower than such a step, by a share of its width.
    """
    grid = [0.0, 0.01]
    while grid[-1] < CAP + _MARGIN / 2:
        grid.append(grid[-1] + min(0.5 * grid[-1], max(0.25, 0.6 * grid[-1] ** 0.5)))
    return np.array(grid)


@lru_cache(maxsize=1)
def poissons() -> FloatArray:
    """Return the Poisson distributions of all rates: rates × true counts, the last ones beyond the cap."""
    counts = np.arange(SIZE + _MARGIN)
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])
    grid = rates()[1:, np.newaxis]
    some = np.exp(counts * np.log(grid) - grid - log_factorials)
    return np.concatenate([(counts == 0)[np.newaxis].astype(np.float64), some])


def kernel(mechanism: Mechanism) -> FloatArray:
    """Return how likely each rate leads to each published count: rates × the places of `Histograms`."""
    return _kernel(cast(Hashable, mechanism))


@lru_cache(maxsize=8)
def _kernel(mechanism: Hashable) -> FloatArray:
    assert isinstance(mechanism, Mechanism)
    true = np.arange(SIZE + _MARGIN)
    shown = np.arange(-BELOW, CAP)
    likelihood = np.empty((len(true), BELOW + CAP + 1))
    likelihood[:, :-1] = mechanism.likelihood(shown[np.newaxis, :], true[:, np.newaxis])
    # What is not published below the cap is published from there on, or hidden.
    hidden = mechanism.likelihood(None, true)
    likelihood[:, -1] = np.clip(1.0 - likelihood[:, :-1].sum(axis=1) - hidden, 0.0, 1.0)
    likelihood[likelihood[:, -1] < 1e-9, -1] = 0.0
    chances = np.asarray(poissons() @ likelihood)
    chances.flags.writeable = False
    return chances


def fit_all(tallies: Tallies, mechanism: Mechanism, steps: int = STEPS) -> FloatArray:
    """Return the distributions of true counts of columns that were published alike.

    Columns × `SIZE`; every row adds up to 1 and no entry is 0. A column without any count gets a flat row.
    """
    likely = kernel(mechanism)
    # Counts that this mechanism never publishes say nothing about it; they are reported elsewhere.
    used = np.flatnonzero((likely.max(axis=0) > 1e-12) & (tallies.sum(axis=0) > 0))
    likely = likely[:, used]

    def part(first: int) -> FloatArray:
        return _fitted(tallies[first : first + _TOGETHER, used], used - BELOW, likely, steps)

    # Numpy lets go of the interpreter, so that threads share the processors. Each part is the same as without them.
    with threads() as pool:
        parts = list(pool.map(part, range(0, len(tallies), _TOGETHER)))
    return np.concatenate(parts) if parts else np.empty((0, SIZE))


def _fitted(tallies: Tallies, shown: IntArray, likely: FloatArray, steps: int) -> FloatArray:
    numbers = tallies.sum(axis=1, keepdims=True)
    seen = tallies / np.maximum(numbers, 1)
    weights = _start(seen, shown, likely)
    for _ in range(steps):
        expected = np.maximum(weights @ likely, 1e-300)
        weights *= (seen / expected) @ likely.T
    fitted = weights @ poissons()[:, :SIZE]
    fitted = fitted / np.maximum(fitted.sum(axis=1, keepdims=True), 1e-300) + FLOOR
    fitted[numbers[:, 0] == 0] = 1.0
    return np.asarray(fitted / fitted.sum(axis=1, keepdims=True))


def _start(seen: FloatArray, shown: IntArray, likely: FloatArray) -> FloatArray:
    """Return first weights of the rates: the gamma distribution that fits best, and a little of everything.

    Published counts say little about how true ones under the base are spread. EM leaves there what it starts from, and so
    it starts from what counts of people look like. A few areas of another kind, such as whole cities, shall not blur
    the many: these are what the little of everything is for, and the mean of the gamma may be less than that of all.
    """
    grid = rates()
    widths = np.gradient(grid[1:])
    rest = np.concatenate([[0.0], widths / grid[1:]])
    rest /= rest.sum()
    means = np.maximum(seen @ np.maximum(shown, 0), 1e-6)[:, np.newaxis]
    best = np.full(len(seen), -np.inf)
    chosen = np.empty((len(seen), len(grid)))
    for part in PARTS_OF_MEAN:
        for shape in SHAPES:
            scaled = shape * grid[1:] / (part * means)
            weights = np.empty_like(chosen)
            # Both without the factor 1/Γ(shape + 1): the density times the width, and the probability below the least rate.
            weights[:, 1:] = shape * scaled ** (shape - 1) * np.exp(-scaled) * (widths * shape / (part * means))
            weights[:, 0] = (scaled[:, 0] / 2) ** shape
            weights *= 0.95 / weights.sum(axis=1, keepdims=True)
            weights += 0.05 * rest
            fits = (seen * np.log(np.maximum(weights @ likely, 1e-12))).sum(axis=1)
            better = fits > best
            best[better], chosen[better] = fits[better], weights[better]
    return chosen


def fit(histogram: Mapping[int, int], mechanism: Mechanism, steps: int = STEPS) -> FloatArray:
    """Return the distribution of true counts behind published ones.

    The probabilities of the true counts 0 to `CAP`.

    Examples
    --------
    >>> from unround.mechanisms import Rounding
    >>> fitted = fit({0: 9_900, 5: 100}, Rounding(5))
    >>> bool(fitted[0] > 0.9), fitted.size == SIZE
    (True, True)
    """
    tallies = np.zeros((1, BELOW + CAP + 1), dtype=np.int32)
    for value, times in histogram.items():
        tallies[0, min(max(value, -BELOW), CAP) + BELOW] += times
    return np.asarray(fit_all(tallies, mechanism, steps)[0])
