"""The residuals (total − parts) that the mechanisms imply if every count was published independently.

Rounding moves a count by an error e = published − true that depends on its remainder. Whatever the distribution of the
remainders, the errors of all parts and the remainder of their sum follow by convolution; the remainder of the sum is that of
the total, whose own error comes last: P(r) = Σ over remainders ρ and sums s of the parts' errors, P(ρ, s)·P(e = r + s | ρ).
Large counts have even remainders, and this is the closed form of `unround.expectation`. Small ones do not: their
distribution is deconvolved from the published counts of the areas that are compared, as for the prior of an audit. The total
is always large: sums are compared from a least total on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms import Mechanism
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


def joint(mechanism: Mechanism, counts: FloatArray, beyond: float, modulus: int) -> FloatArray:
    """Return how often each remainder comes with each error: remainders × errors, as many on either side.

    Parameters
    ----------
    mechanism : Mechanism
        How the counts were published.
    counts : array
        The distribution of true counts below `SIZE`.
    beyond : float
        The share of larger ones.
    modulus : int
        Of the remainders.
    """
    reach = reach_of(mechanism)
    small, large = _errors(mechanism, modulus, reach)
    weights = (1 - beyond) * counts[:, None] * small
    found = beyond * large / modulus
    for rest in range(modulus):
        found[rest] += weights[rest::modulus].sum(0)
    return np.asarray(found)


def residual_shares(total: FloatArray, parts: Sequence[FloatArray]) -> FloatArray:
    """Return the probabilities of the residuals from −R to R, where R is all that the errors allow.

    Parameters
    ----------
    total : array
        Remainders × errors of the total, as `joint` returns them.
    parts : sequence of array
        The same for each part, all with the same modulus.
    """
    modulus = total.shape[0]
    reaches = [part.shape[1] // 2 for part in parts]
    reach = sum(reaches)
    length = 2 * (reach + total.shape[1] // 2) + 1
    # Remainders are circular, and so is their part of the transform; errors have enough room.
    together: NDArray[np.complex128] = np.ones((modulus, length), dtype=np.complex128)
    for part in parts:
        together = together * np.fft.fft2(part, (modulus, length))
    summed = np.clip(np.fft.ifft2(together).real, 0.0, None)[:, : 2 * reach + 1]
    given = total / np.maximum(total.sum(1, keepdims=True), 1e-300)
    shares: FloatArray = np.zeros(length)
    for rest in range(modulus):
        # r = e − s: the parts' errors the other way round
        shares += np.convolve(given[rest], summed[rest][::-1])
    return np.asarray(shares / max(float(shares.sum()), 1e-300))


def even_shares(total: Mechanism, parts: tuple[Mechanism, ...]) -> FloatArray:
    """Return the same for large counts, whose remainders are even."""
    if (total, *parts) not in _EVEN:
        _EVEN[total, *parts] = _even(total, parts)
    return _EVEN[total, *parts]


def _even(total: Mechanism, parts: tuple[Mechanism, ...]) -> FloatArray:
    modulus, none = step_of(total), np.zeros(SIZE)
    laws = [joint(how, none, 1.0, modulus) for how in (total, *parts)]
    return residual_shares(laws[0], laws[1:])


class Laws:
    """The expected residuals of many sums, from the published counts of the areas in which each is compared.

    Parameters
    ----------
    mechanisms : sequence of Mechanism
        Of every row of the tallies.
    tallies : array
        How often each count was published: rows × places, as in `unround.prior.histograms`.
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
        modulus, none = step_of(total), np.zeros(SIZE)
        laws = [
            joint(self._mechanisms[row], self._counts.get(row, none), float(self._beyond[row]), modulus) for row in parts
        ]
        return residual_shares(joint(total, none, 1.0, modulus), laws)
