"""Random numbers of total and parts that hang together: what residuals leave open, and what that does to probabilities.

For two parts and a rounded total everything can be listed: the remainders of the parts, and the random number of each of the
three counts, of which only the step of 1/b matters that it falls into. Any way in which the three may depend on each other is
a distribution over these b³ cases in which each number by itself is uniform. Those that give the residuals that were published
are the solutions of a linear program; so are the least and the greatest probability of anything, given a residual.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

COMMON = 0.001
"""Residuals rarer than this are left out when probabilities are compared."""

SLACK = 0.002
"""The shares of residuals may differ by this much from those observed: what small counts and chance do."""


@dataclass(frozen=True, slots=True, eq=False)
class _Cases:
    """All cases of three random numbers, and what each leads to on average over the remainders of the parts.

    Parameters
    ----------
    uniform : array
        For each of the three numbers and each of its values, which cases have it.
    residual : array
        The chance of each residual, in steps from −2 to 2: residuals × cases.
    error : array
        The chance of a residual and an error of one of the counts: residuals × counts × errors × cases.
    far : array
        The chance that both parts are as far from the truth as can be, to the same side.
    """

    uniform: Floats
    residual: Floats
    error: Floats
    far: Floats


@lru_cache(maxsize=16)
def _cases(base: int) -> _Cases:
    numbers = list(product(range(base), repeat=3))
    uniform = np.array([[case[who] == value for case in numbers] for who in range(3) for value in range(base)], dtype=float)
    residual, far = np.zeros((5, len(numbers))), np.zeros(len(numbers))
    error = np.zeros((5, 3, 2 * base - 1, len(numbers)))
    drawn = np.array(numbers)
    every = np.arange(len(numbers))
    for first, second in product(range(base), repeat=2):
        rests = np.array([(first + second) % base, first, second])
        errors = base * (drawn < rests) - rests
        off = (errors[:, 0] - errors[:, 1] - errors[:, 2]) // base + 2
        np.add.at(residual, (off, every), 1 / base**2)
        far += (np.abs(errors[:, 1] + errors[:, 2]) == 2 * (base - 1)) / base**2
        for who in range(3):
            np.add.at(error, (off, who, errors[:, who] + base - 1, every), 1 / base**2)
    return _Cases(uniform, residual, error, far)


@dataclass(frozen=True, slots=True)
class Dependence:
    """What the residuals of men and women, say, leave open about how the random numbers hang together.

    Parameters
    ----------
    off : float
        By how much the probability of a likeliest count can differ, at most, from what independent rounding says.
    far : pair of float
        How often both parts can be as far from the truth as can be, to the same side, next to independent rounding: the
        least and the most.
    """

    off: float
    far: tuple[float, float]


def dependence(folded: Floats, base: int) -> Dependence | None:
    """Return what shares of |r| = 0, b and 2b leave open; None where no dependence of random numbers gives these shares.

    Parameters
    ----------
    folded : array
        The three shares, of sums of large counts.
    base : int
        Of the rounding.

    Examples
    --------
    >>> dependence(np.array([0.8, 0.2, 0.0]), 5) is None  # conventional rounding does that
    True
    >>> found = dependence(np.array([0.4656, 0.4992, 0.0352]), 5)  # the parts share their random number
    >>> round(found.far[1], 1)
    5.0
    """
    cases = _cases(base)
    shares = np.array([folded[2] / 2, folded[1] / 2, folded[0], folded[1] / 2, folded[2] / 2])
    alone = np.full(cases.far.size, 1 / base**3)
    usual = cases.residual @ alone
    far = [_extreme(sign * cases.far, cases, shares) for sign in (1, -1)]
    if far[0] is None or far[1] is None:
        return None
    chance = float(cases.far @ alone)
    off = 0.0
    for residual in range(5):
        if min(shares[residual], usual[residual]) < COMMON:
            continue
        for who in range(3):
            likely = (cases.error[residual, who] @ alone) / usual[residual]
            best = int(likely.argmax())
            for sign in (1, -1):
                found = _extreme(sign * cases.error[residual, who, best], cases, shares)
                if found is not None:
                    off = max(off, abs(min(1.0, sign * found / shares[residual]) - float(likely[best])))
    return Dependence(off, (far[0] / chance, -far[1] / chance))


def _extreme(goal: Floats, cases: _Cases, shares: Floats) -> float | None:
    """Return the least of a linear function over all dependences that give the shares; None if there are none."""
    from scipy.optimize import linprog

    base = round(cases.far.size ** (1 / 3))
    found = linprog(
        goal,
        A_ub=np.vstack([cases.residual, -cases.residual]),
        b_ub=np.concatenate([shares + SLACK, SLACK - shares]),
        A_eq=cases.uniform,
        b_eq=np.full(3 * base, 1 / base),
        method="highs",
    )
    return float(found.fun) if found.status == 0 else None
