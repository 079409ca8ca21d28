"""Small counts that lean: published lower, on average, than they are, so that parts seem to miss some of their total.

In the Canadian census of 2021, 16 groups of incomes come to 6.4 households fewer than there are, and nothing is missing: the
residual is 10 in small areas, where most groups are published as 0 or 5, and 1 in the largest. A missing part shows the
other way round, for it grows with the area. So the residual is split, by least squares over all areas, into a share of the
total and an amount for each small part; only the first tells that something is missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEWEST = 3
"""Parts from which a sum can tell the two apart: two small parts are most of their total."""


@dataclass(frozen=True, slots=True)
class Leaning:
    """What residuals are made of.

    - `share`, `error`: Of the total that the parts miss, and its standard error.
    - `each`: By how much a small part is published too low, on average; in units of counts.
    """

    share: float
    error: float
    each: float


class LeaningTally:
    """The sums of squares and products that the split of residuals follows from, added up over all areas.

    - `number`: How many sums there are.
    """

    def __init__(self, number: int) -> None:
        self._areas, self._total, self._both, self._few, self._by_total, self._by_few, self._square = np.zeros((7, number))

    def add(self, complete: NDArray[np.bool_], total: Ints, few: Ints, residual: Ints) -> None:
        """Add some areas (sums × areas)."""
        t, s, r = (np.where(complete, of, 0).astype(np.float64) for of in (total, few, residual))
        self._areas += complete.sum(1)
        for into, one, other in (
            (self._total, t, t), (self._both, t, s), (self._few, s, s),
            (self._by_total, t, r), (self._by_few, s, r), (self._square, r, r),
        ):  # fmt: skip
            into += np.einsum("ij,ij->i", one, other)

    def result(self, at: int) -> Leaning | None:
        """Return the split of one sum's residuals; None where it cannot be told."""
        squares = np.array([[self._total[at], self._both[at]], [self._both[at], self._few[at]]])
        products = np.array([self._by_total[at], self._by_few[at]])
        if self._areas[at] < FEWEST or np.linalg.det(squares) <= 1e-9 * squares[0, 0] * squares[1, 1]:
            return None
        inverse = np.linalg.inv(squares)
        share, each = inverse @ products
        left = max(0.0, float(self._square[at] - products @ inverse @ products)) / (self._areas[at] - 2)
        return Leaning(float(share), float((left * inverse[0, 0]) ** 0.5), float(each))
