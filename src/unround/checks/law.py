"""The residuals (total − parts) that the mechanisms imply if every count was published independently.

Rounding moves a count by an error e = published − true that depends on its remainder. Whatever the distribution of the
remainders, the errors of all parts and the remainder of their sum follow by convolution; the remainder of the sum is that of
the total, whose own error comes last: P(r) = Σ over remainders ρ and sums s of the parts' errors, P(ρ, s)·P(e = r + s | ρ).
Large counts have even remainders, and this is the closed form of `unround.expectation`. Small ones do not: their
distribution is deconvolved from the published counts of the areas that are compared, as for the prior of an audit. The total
is always large: sums are compared from a least total on.

With keys (`mechanisms.keyed`) the same convolution holds at every frequency k around the circle of random numbers, with
∫ exp(2πiku) du over the arc of a rounding in place of its probability: the expected shares at a constant c are those of
independent rounding (k = 0) and Σ exp(2πikc) times those at k. Few frequencies matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms import Mechanism, Rounding, Sample
from unround.mechanisms.base import FloatArray, step_of
from unround.prior.deconvolve import SIZE, fit_all
from unround.prior.histograms import BELOW, Tallies

WIDEST = 64
"""Errors further from zero than this are left out: only noise without bounds has any."""

_FAR = 10_000
"""A count as large as this behaves like any larger one."""

SMALL, FEW = 8, 0.005
"""Counts under so many steps have remainders that are not even, which matters unless fewer than this share are so small."""

_DETAIL = 40
"""Counts from so many steps on have even remainders, whatever their distribution."""


_REACH: dict[Mechanism, int] = {}
_ERRORS: dict[tuple[Mechanism, int], tuple[FloatArray, FloatArray]] = {}
_EVEN: dict[tuple[Mechanism, ...], FloatArray] = {}
_ARCS: dict[tuple[Mechanism, int], tuple[NDArray[np.complex128], NDArray[np.complex128]]] = {}


def reach_of(mechanism: Mechanism) -> int:
    """Return how far a published count can be from the true one, at most `WIDEST`."""
    if mechanism not in _REACH:
        _REACH[mechanism] = _reach(mechanism)
    return _REACH[mechanism]


def _reach(mechanism: Mechanism) -> int:
    true = np.concatenate([np.arange(200), _FAR + np.arange(60)])
    errors = np.arange(-WIDEST, WIDEST + 1)
    seen = mechanism.likelihood(true[:, None] + errors, true[:, None]).max(0) > 1e-12
    return int(np.abs(errors[seen]).max()) if seen.any() else 0


def _errors(mechanism: Mechanism, modulus: int, reach: int) -> tuple[FloatArray, FloatArray]:
    """Return the likelihood of each error, for true counts 0, 1, …, and on average over large ones, by remainder."""
    if (mechanism, modulus) not in _ERRORS:
        _ERRORS[mechanism, modulus] = _likelihoods(mechanism, modulus, reach)
    return _ERRORS[mechanism, modulus]


def _likelihoods(mechanism: Mechanism, modulus: int, reach: int) -> tuple[FloatArray, FloatArray]:
    errors = np.arange(-reach, reach + 1)
    true = np.arange(SIZE)
    small = mechanism.likelihood(true[:, None] + errors, true[:, None])
    far = _FAR - _FAR % modulus + np.arange(modulus * step_of(mechanism))
    large = mechanism.likelihood(far[:, None] + errors, far[:, None])
    by_rest = np.stack([large[far % modulus == rest].mean(0) for rest in range(modulus)])
    return small, by_rest


FREQUENCIES = 14
"""How many frequencies are used: with more, no share of two parts would change by 1e-4."""

FINE = 60
"""Weighted counts are treated as whole numbers of a unit so small that the base has this many: as good as continuous."""

Series = NDArray[np.complex128]
"""Shares at frequencies 0, 1, …: frequencies × shares."""


def at_frequencies(likelihood: FloatArray) -> Series:
    """Return ∫ exp(2πiku) du over the arcs of two-way roundings: frequencies × whatever × errors, as many on either side."""
    up = np.arange(likelihood.shape[-1]) > likelihood.shape[-1] // 2
    turns = 2j * np.pi * np.arange(1, FREQUENCIES + 1).reshape(-1, *(1,) * likelihood.ndim)
    # An arc [0, p), or what is left of the circle without it: over all of it, the integral is 0.
    found = (np.exp(turns * np.where(up, likelihood, 1 - likelihood)) - 1) / turns * np.where(up, 1, -1)
    return np.concatenate([likelihood[np.newaxis].astype(np.complex128), found])


def keyed_shares(series: Series, constants: FloatArray | float) -> FloatArray:
    """Return the expected shares at a constant, or at each of several, from those at all frequencies."""
    at = np.arange(len(series))
    turns = np.exp(2j * np.pi * np.multiply.outer(constants, at)) * np.where(at > 0, 2, 1)
    return np.asarray((turns @ series).real.clip(0.0))


def joint(mechanism: Mechanism, counts: FloatArray, beyond: float, modulus: int, keyed: bool = False) -> NDArray[Any]:
    """Return how often each remainder comes with each error: remainders × errors, as many on either side."""
    small: NDArray[Any]
    large: NDArray[Any]
    small, large = _errors(mechanism, modulus, reach_of(mechanism))
    if keyed:
        if (mechanism, modulus) not in _ARCS:
            _ARCS[mechanism, modulus] = at_frequencies(small), at_frequencies(large)
        small, large = _ARCS[mechanism, modulus]
    found = beyond * large / modulus
    if beyond < 1:
        weights = (1 - beyond) * counts[:, None] * small
        for rest in range(modulus):
            found[..., rest, :] += weights[..., rest::modulus, :].sum(-2)
    return np.asarray(found)


def residual_shares(total: NDArray[Any], parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the probabilities of the residuals from −R to R, where R is all that the errors allow.

    Notes
    -----
    At frequencies, a first axis, the total's random number is on the other side of the equation: conjugated.
    """
    modulus, width = total.shape[-2:]
    length = sum(part.shape[-1] - 1 for part in parts) + width
    # Remainders are circular, and so is their part of the transform; errors have enough room.
    together = np.ones((modulus, length), dtype=np.complex128)
    for part in parts:
        together = together * np.fft.fft2(part, (modulus, length))
    often = total.reshape(-1, modulus, width)[0].real.sum(-1, keepdims=True)
    given = np.fft.fft((total / np.maximum(often, 1e-300)).conj()[..., ::-1], length)
    # The remainder of the total is that of the parts' sum. r = e − s: the total's errors the other way round, and back.
    shares = np.fft.ifft((np.fft.ifft(together, axis=-2) * given).sum(-2))[..., ::-1]
    whole = shares.reshape(-1, length)[0].real.clip(0.0).sum()
    return np.asarray((shares if total.ndim > 2 else shares.real.clip(0.0)) / max(float(whole), 1e-300))


def even_shares(total: Mechanism, parts: tuple[Mechanism, ...]) -> FloatArray:
    """Return the same for large counts, whose remainders are even."""
    if (total, *parts) not in _EVEN:
        modulus, none = step_of(total), np.zeros(SIZE)
        laws = [joint(how, none, 1.0, modulus) for how in (total, *parts)]
        _EVEN[total, *parts] = residual_shares(laws[0], laws[1:])
    return _EVEN[total, *parts]


@lru_cache(maxsize=64)
def even_series(base: int, parts: int, whole: bool = True) -> Series:
    """Return the shares of |r| = 0, b, 2b … at all frequencies, for large counts that were all rounded to base b.

    Examples
    --------
    >>> [round(float(share), 4) for share in keyed_shares(even_series(5, 2), 0.3)]
    [0.574, 0.408, 0.018]
    """
    how = Rounding(base if whole else max(base, FINE))
    law = joint(how, np.zeros(SIZE), 1.0, how.base, keyed=True)
    return folded_steps(residual_shares(law, [law] * parts), how.base, parts)


def folded_steps(shares: NDArray[Any], base: int, parts: int) -> NDArray[Any]:
    """Return the shares of |r| = 0, b, 2b …, as many as a sum of so many parts can have, from those of all residuals."""
    middle = shares.shape[-1] // 2
    steps = base * np.arange(parts + 1)
    inside = np.where(steps <= middle, steps, 0)
    both = np.where(steps > 0, shares[..., middle + inside], 0) + shares[..., middle - inside]
    return np.asarray(np.where(steps <= middle, both, 0))


class Laws:
    """The expected residuals of many sums, from the published counts of the areas in which each is compared.

    - `mechanisms`: Of every row of the tallies.
    - `tallies`: How often each count was published: rows × places, as in `unround.prior.histograms`.
    """

    def __init__(self, mechanisms: Sequence[Mechanism], tallies: Tallies) -> None:
        self._mechanisms = mechanisms
        self._beyond = np.ones(len(mechanisms))
        self._counts: dict[int, FloatArray] = {}
        alike: dict[Mechanism, list[int]] = {}
        for row, how in enumerate(mechanisms):
            small = tallies[row, : BELOW + SMALL * step_of(how)].sum()
            if small > FEW * tallies[row].sum():
                alike.setdefault(how, []).append(row)
        for how, rows in alike.items():
            some = tallies[rows].copy()
            number = some.sum(1)
            some[:, BELOW + _DETAIL * step_of(how) :] = 0
            self._beyond[rows] = 1 - some.sum(1) / number
            self._counts |= dict(zip(rows, fit_all(some, how), strict=True))

    def residuals(self, total: Mechanism, parts: Sequence[int]) -> FloatArray:
        """Return the probabilities of the residuals from −R to R of one sum."""
        return self._shares(total, parts, lambda counts, _: counts)

    def series(self, total: Mechanism, parts: Sequence[int]) -> Series:
        """Return the shares of |r| = 0, b, 2b … at all frequencies, for a sum whose counts were all rounded to one base."""
        found = self._shares(total, parts, lambda counts, _: counts, keyed=True)
        return folded_steps(found, step_of(total), len(parts))

    def extremes(self, total: Mechanism, parts: Sequence[int]) -> tuple[FloatArray, FloatArray] | None:
        """Return the narrowest and the widest probabilities of the residuals that the published counts allow.

        Rounding without bias hides how the smallest counts, below what they are rounded up to, are distributed: any
        distribution with the same mean would publish as many 0s. At one extreme, all were 0 or went up for sure; at the
        other all were equal. None where there are no such counts.
        """
        if not any(row in self._counts and _lowest(self._mechanisms[row]) for row in parts):
            return None
        return self._shares(total, parts, _at_the_ends), self._shares(total, parts, _in_the_middle)

    def _shares(
        self, total: Mechanism, parts: Sequence[int], changed: Callable[[FloatArray, int], FloatArray], keyed: bool = False
    ) -> NDArray[Any]:
        modulus, none = step_of(total), np.zeros(SIZE)
        laws = []
        for row in parts:
            how, counts = self._mechanisms[row], self._counts.get(row, none)
            laws.append(joint(how, changed(counts, _lowest(how)), float(self._beyond[row]), modulus, keyed))
        return residual_shares(joint(total, none, 1.0, modulus, keyed), laws)


def _lowest(how: Mechanism) -> int:
    """Return what the smallest counts are rounded up to; 0 where they are not rounded at random."""
    return int(how.base * (2 if isinstance(how, Sample) else 1)) if isinstance(how, Rounding | Sample) else 0


def _at_the_ends(counts: FloatArray, lowest: int) -> FloatArray:
    """Move all smaller counts to 0 and `lowest`, which keeps their mean."""
    found = counts.copy()
    if lowest:
        weight, mean = counts[:lowest].sum(), float(counts[:lowest] @ np.arange(lowest))
        found[:lowest] = 0.0
        found[0], found[lowest] = weight - mean / lowest, counts[lowest] + mean / lowest
    return found


def _in_the_middle(counts: FloatArray, lowest: int) -> FloatArray:
    """Move all smaller counts to their mean."""
    found = counts.copy()
    if lowest and (weight := float(counts[:lowest].sum())) > 0:
        mean = float(counts[:lowest] @ np.arange(lowest)) / weight
        found[:lowest] = 0.0
        found[int(mean)] += weight * (int(mean) + 1 - mean)
        found[int(mean) + 1] += weight * (mean - int(mean))
    return found
