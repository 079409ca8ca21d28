"""The law of keyed rounding: every record has a key, and the keys of a cell's records add up to its random number.

Keys are uniform on a circle of length 1. The random number u of a cell is the sum of its records' keys and of a constant of
the table, on that circle; the count goes up if u is below its probability of going up. So what was published of a cell says
on which arc of the circle its u lies: [0, p) if the count went up, [p, 1) if it went down. The parts of a sum have no record
in common, hence independent random numbers, and that of the total is their sum and a constant c: with n parts and the
table's constant s, c = −(n − 1)s. All that is published of a sum is then as likely as it is that independent points on the
parts' arcs add up to one on the total's arc. `meeting` is that probability, in closed form; whole and weighted counts differ
only in the p that they can have. A sum of one part is a count that appears in two tables, and c the difference of their
constants.

Nothing changes if all constants change their sign, and with them all keys: only |c| around the circle can be known.
"""

from __future__ import annotations

from itertools import product
from math import factorial

import numpy as np

from unround.mechanisms.base import FloatArray

_BERNOULLI = (
    np.polynomial.Polynomial([-0.5, 1.0]),
    np.polynomial.Polynomial([1 / 6, -1.0, 1.0]),
    np.polynomial.Polynomial([0.0, 0.5, -1.5, 1.0]),
    np.polynomial.Polynomial([-1 / 30, 0.0, 1.0, -2.0, 1.0]),
)
"""Bernoulli's polynomials from the first on."""

MOST_PARTS = len(_BERNOULLI) - 1
"""With more parts, a sum is as good as independent: what keys change falls by a factor of about 2π with every part."""

Arc = tuple[FloatArray | float, FloatArray | float]  # from where to where on the circle, the latter not included


def meeting(parts: tuple[Arc, ...], total: Arc, constant: float) -> FloatArray:
    """Return the probability that independent points on the parts' arcs, and a constant, add up to one on the total's arc.

    The product of the arcs' lengths, as if all were independent, and a term for every choice of one end of each arc. These
    are the Fourier series of the constraint, summed: Σ over k ≠ 0 of exp(2πikx) / (2πik)^m is −B_m(x) / m!.

    >>> float(meeting(((0.0, 0.4),), (0.0, 0.4), 0.1).round(9))  # the same count twice, constants 0.1 apart
    0.3
    """
    several = len(parts) + 1
    density = np.asarray(np.prod([np.asarray(high) - low for low, high in (*parts, total)], axis=0))
    series = _BERNOULLI[several - 1]
    for ends in product((0, 1), repeat=several):
        at = sum((np.asarray(arc[end]) for arc, end in zip(parts, ends[1:], strict=True)), np.asarray(constant))
        sign = 1 if (several - sum(ends)) % 2 == 0 else -1
        density = density + sign * series((at - total[ends[0]]) % 1.0) / factorial(several)
    return np.asarray(density.clip(0.0))


def arc_of(up: bool, chance: float) -> tuple[float, float]:
    """Return the arc on which the random number of a count lies that goes up with some chance, if it went up or down."""
    return (0.0, chance) if up else (chance, 1.0)


def apart(constant: float) -> float:
    """Return how far a constant is from 0 around the circle, from 0 to 0.5.

    >>> apart(0.75), apart(-0.2)
    (0.25, 0.2)
    """
    return abs((constant + 0.5) % 1.0 - 0.5)
