"""How far out a number is: the tails of the chi-square and of the Poisson distribution.

They are a few lines each; to import scipy's would take longer than most tables do.
"""

from __future__ import annotations

import math


def chi_square_tail(freedom: int, statistic: float) -> float:
    """Return how likely a chi-square variable with some degrees of freedom is to exceed a statistic.

    For whole degrees of freedom it is a finite sum.

    Examples
    --------
    >>> round(chi_square_tail(1, 3.841), 4), round(chi_square_tail(4, 9.488), 4)
    (0.05, 0.05)
    """
    half = statistic / 2
    if half <= 0:
        return 1.0
    # Even: e^-h Σ h^j / j! for j < k/2. Odd: erfc √h, and e^-h Σ h^(j - 1/2) / Γ(j + 1/2).
    odd = freedom % 2
    log = (math.log(half) / 2 - math.lgamma(1.5) if odd else 0.0) - half
    found = math.erfc(math.sqrt(half)) if odd else 0.0
    for j in range(freedom // 2):
        found += math.exp(log)
        log += math.log(half / (j + 1 + odd / 2))
    return min(found, 1.0)


def poisson_at_most(found: int, mean: float) -> float:
    """Return how likely a Poisson count is no larger than the one found.

    Examples
    --------
    >>> round(poisson_at_most(2, 1.0), 4)
    0.9197
    """
    return chi_square_tail(2 * (found + 1), 2 * mean)


def poisson_at_least(found: int, mean: float) -> float:
    """Return how likely a Poisson count is no smaller than the one found; exact far out, too.

    Examples
    --------
    >>> f"{poisson_at_least(30, 1.0):.1e}"
    '1.4e-33'
    """
    if found <= 0:
        return 1.0
    if found <= mean:
        return 1.0 - poisson_at_most(found - 1, mean)
    term = math.exp(found * math.log(mean) - mean - math.lgamma(found + 1)) if mean > 0 else 0.0
    total, count = 0.0, found
    while term > 1e-17 * total:  # each term is less than the one before
        total += term
        count += 1
        term *= mean / count
    return min(total, 1.0)
