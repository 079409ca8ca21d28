"""What residuals the declared mechanisms imply: total − parts, when every count was published on its own.

Rounding moves a count by an error e = published − true that depends on its remainder. With remainders that come as they
may, the errors of all parts and the remainder of their sum follow by convolution; the remainder of the sum is that of the
total, whose own error comes last: P(r) = Σ over remainders ρ and sums s of the parts' errors, P(ρ, s)·P(e = r + s | ρ).
Large counts have even remainders, and this is the closed form of `unround.expect`. Small ones have not (most are 0): their
distribution is deconvolved from the published counts of the areas that are compared, as for the prior of an audit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unround.check.sums import step_of
from unround.mechanisms import Mechanism
from unround.mechanisms.base import FloatArray
from unround.prior.deconvolve import SIZE, fit_all
from unround.prior.histograms import Tallies

WIDEST = 64
"""Errors further from zero than this are left out: only noise without bounds has any."""

_FAR = 10_000
"""A count as large as this has nothing of a small one."""


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


def joint(mechanism: Mechanism, counts: FloatArray, beyond: float, modulus: int, least: int = 0) -> FloatArray:
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
    least : int
        Only counts that are published as at least this are there.
    """
    reach = reach_of(mechanism)
    small, large = _errors(mechanism, modulus, reach)
    shown = np.arange(SIZE)[:, None] + np.arange(-reach, reach + 1)
    weights = (1 - beyond) * counts[:, None] * small * (shown >= least)
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
    # Remainders go round, so that their part of the transform is circular as it should be; errors have room enough.
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
        numbers = np.maximum(tallies.sum(1), 1)
        self._beyond = tallies[:, -1] / numbers
        self._counts = np.empty((len(mechanisms), SIZE))
        alike: dict[Mechanism, list[int]] = {}
        for row, how in enumerate(mechanisms):
            alike.setdefault(how, []).append(row)
        for how, rows in alike.items():
            self._counts[rows] = fit_all(tallies[rows], how)

    def residuals(self, total: int, parts: Sequence[int], least: int) -> FloatArray:
        """Return the probabilities of the residuals from −R to R of one sum.

        Parameters
        ----------
        total : int
            The row of the total's counts in all areas.
        parts : sequence of int
            The rows of the parts' counts in the areas that are compared.
        least : int
            The least published total of these.
        """
        modulus = step_of(self._mechanisms[total])
        laws = []
        for row in (total, *parts):
            how = self._mechanisms[row]
            only = least if row == total else 0
            laws.append(joint(how, self._counts[row], float(self._beyond[row]), modulus, only))
        # What is left of the total's remainders after the selection says nothing about how often they come.
        return residual_shares(laws[0], laws[1:])
