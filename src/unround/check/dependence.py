"""Random numbers that total and parts share: what that does to residuals, and to probabilities that assume they do not.

For two parts and a rounded total everything can be listed: the remainders of the parts, and the random number of each of the
three counts, of which only the step of 1/b matters that it falls into. A pattern says which of the three share theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PATTERNS = {
    "none": (0, 1, 2),
    "the parts": (0, 1, 1),
    "total and first part": (0, 0, 1),
    "total and second part": (0, 1, 0),
    "all three": (0, 0, 0),
}
"""Which random number the total, the first and the second part use."""

COMMON = 0.001
"""Residuals rarer than this are left out when probabilities are compared."""


@lru_cache(maxsize=16)
def _outcomes(base: int) -> Floats:
    """Return the chances of all outcomes: patterns × residual in steps from −2 to 2 × cell × error of that cell."""
    found = np.zeros((len(PATTERNS), 5, 3, 2 * base - 1))
    for p, numbers in enumerate(PATTERNS.values()):
        different = max(numbers) + 1
        chance = 1 / base ** (2 + different)
        for first, second in product(range(base), repeat=2):
            rests = ((first + second) % base, first, second)
            for drawn in product(range(base), repeat=different):
                errors = [base * (drawn[n] < rest) - rest for n, rest in zip(numbers, rests, strict=True)]
                residual = errors[0] - errors[1] - errors[2]
                for cell, error in enumerate(errors):
                    found[p, residual // base + 2, cell, error + base - 1] += chance
    return found


@dataclass(frozen=True, slots=True)
class Shared:
    """The patterns whose mixture comes closest to an observed histogram.

    Parameters
    ----------
    weights : mapping
        The share of each pattern.
    left : float
        How far the best mixture is from what was observed (total variation).
    off : float
        How far probabilities from independent rounding are off, at most: of any error of any of the three counts, for
        residuals that are not rare.
    """

    weights: dict[str, float]
    left: float
    off: float


def shared(folded: Floats, base: int) -> Shared:
    """Fit a mixture of patterns to the shares of |r| = 0, b and 2b of large counts.

    Many mixtures may fit equally well, as three shares leave two numbers to fit; this is one of them.
    """
    from scipy.optimize import nnls

    outcomes = _outcomes(base)
    signed = outcomes[:, :, 0].sum(2)
    shapes = np.stack([signed[:, 2], signed[:, 1] + signed[:, 3], signed[:, 0] + signed[:, 4]])
    one = 1000.0  # the shares add up to 1
    weights, _ = nnls(np.vstack([shapes, np.full(len(PATTERNS), one)]), np.append(folded, one))
    weights = weights / weights.sum()
    mixed = np.tensordot(weights, outcomes, 1)
    off = 0.0
    for residual in range(5):
        share, alone = mixed[residual, 0].sum(), signed[0, residual]
        if min(share, alone) >= COMMON:
            off = max(off, float(np.abs(mixed[residual] / share - outcomes[0, residual] / alone).max()))
    left = float(np.abs(shapes @ weights - folded).sum() / 2)
    return Shared(dict(zip(PATTERNS, weights.tolist(), strict=True)), left, off)
