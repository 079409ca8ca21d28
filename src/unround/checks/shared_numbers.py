"""Random numbers that total and parts share: the effect on residuals, and on probabilities that assume independence.

For two parts and a rounded total everything can be listed: the remainders of the parts, and the random number of each of the
three counts, of which only the step of 1/b matters that it falls into. A pattern says which of the three share theirs. How
often each residual occurs does not tell more than how much is shared, if it is shared in so simple a way; given a residual,
other ways of depending on each other could do anything to the probabilities, or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NONE, PARTS = (0, 1, 2), (0, 1, 1)
WITH_TOTAL = ((0, 0, 1), (0, 1, 0), (0, 0, 0))
"""Which random number the total, the first and the second part use: each its own; the parts the same; the total the same as
one part or as both. The latter three give the same residuals, and different probabilities."""

COMMON = 0.001
"""Residuals rarer than this are left out when probabilities are compared."""

CLOSE = 0.006
"""A mixture of patterns explains shares that it approximates within this distance (total variation)."""


@lru_cache(maxsize=64)
def _outcomes(base: int, pattern: tuple[int, int, int]) -> Floats:
    """Return the chances of all outcomes: residual in steps from −2 to 2 × count × error of that count."""
    found = np.zeros((5, 3, 2 * base - 1))
    different = max(pattern) + 1
    drawn = np.array(list(product(range(base), repeat=different)))[:, list(pattern)]
    for first, second in product(range(base), repeat=2):
        rests = np.array([(first + second) % base, first, second])
        errors = base * (drawn < rests) - rests
        residual = (errors[:, 0] - errors[:, 1] - errors[:, 2]) // base + 2
        for who in range(3):
            np.add.at(found, (residual, who, errors[:, who] + base - 1), 1 / base**2 / len(drawn))
    return found


def shares_of(base: int, pattern: tuple[int, int, int] = NONE) -> Floats:
    """Return the shares of |r| = 0, b and 2b of large counts.

    Examples
    --------
    >>> [round(float(share), 4) for share in shares_of(5)]
    [0.5603, 0.4262, 0.0134]
    """
    signed = _outcomes(base, pattern)[:, 0].sum(1)
    return np.array([signed[2], signed[1] + signed[3], signed[0] + signed[4]])


@dataclass(frozen=True, slots=True)
class SharedNumbers:
    """The amount of simple sharing that comes closest to what was observed.

    Parameters
    ----------
    parts, total : float
        In which share of the sums the two parts share their random number; and the total one part's, or both parts'.
    left : float
        How far that is from what was observed (total variation).
    off : float
        By how much the probabilities of an audit are then off, at most: of any error of any of the three counts, given
        any residual that is not rare.
    """

    parts: float
    total: float
    left: float
    off: float

    @property
    def explains(self) -> bool:
        """Whether simple sharing explains the residuals."""
        return self.left <= CLOSE


def shared(folded: Floats, base: int) -> SharedNumbers:
    """Fit to the shares of |r| = 0, b and 2b of large counts.

    Examples
    --------
    >>> fit = shared(0.7 * shares_of(5) + 0.3 * shares_of(5, PARTS), 5)
    >>> round(fit.parts, 3), fit.explains
    (0.3, True)
    """
    from scipy.optimize import nnls

    one = 1000.0  # the shares add up to 1
    shapes = np.column_stack([shares_of(base, pattern) for pattern in (NONE, PARTS, WITH_TOTAL[0])])
    weights, _ = nnls(np.vstack([shapes, np.full(3, one)]), np.append(folded, one))
    weights = weights / weights.sum()
    left = float(np.abs(shapes @ weights - folded).sum() / 2)
    alone = _outcomes(base, NONE)
    off = 0.0
    for pattern in WITH_TOTAL:
        mixed = sum(w * _outcomes(base, p) for w, p in zip(weights, (NONE, PARTS, pattern), strict=True))
        for residual in range(5):
            often, usual = mixed[residual, 0].sum(), alone[residual, 0].sum()
            if min(often, usual) >= COMMON:
                off = max(off, float(np.abs(mixed[residual] / often - alone[residual] / usual).max()))
    return SharedNumbers(float(weights[1]), float(weights[2]), left, off)
