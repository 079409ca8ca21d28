"""What is known of each cell, as the chains take it: the likelihood times the prior of every possible count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.crossed.kernel import PAD, Singles
from unround.crossed.table import Ints
from unround.mechanisms.base import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class CellWeights:
    """The weights of all possible counts of some areas.

    - `low`, `high`: Areas × cells: the bounds.
    - `place`: Areas × cells: where in `weights` the least count is; the others follow it.
    - `base`, `centre`: Areas × cells: for cells that were rounded randomly, and have no prior and no bound of their own,
      the base and what was published. Elsewhere the base is 0.
    - `weights`: Area after area, cell after cell, with `kernel.PAD` zeros before and behind each.
    - `area`: Where each area begins in `weights`, and where the last ends.
    """

    low: Ints
    high: Ints
    place: NDArray[np.int64]
    base: Singles
    centre: Ints
    weights: FloatArray
    area: NDArray[np.int64]

    @classmethod
    def empty(cls, low: Ints, high: Ints) -> CellWeights:
        """Return weights of zero for all counts within the bounds, to be filled in."""
        width = high.astype(np.int64) - low + 1 + 2 * PAD
        end = np.cumsum(width).reshape(width.shape)
        area = np.concatenate([[0], end[:, -1]])
        weights = np.zeros(int(end[-1, -1]))
        return cls(low, high, end - width + PAD, np.zeros(low.shape, dtype=np.float32), low.copy(), weights, area)

    @classmethod
    def of_one(
        cls, lows: Sequence[int], weights: Sequence[FloatArray], bases: Sequence[int], published: Sequence[int], copies: int
    ) -> CellWeights:
        """Return the weights of one system, several times over; a base of 0 says that weights are to be looked up."""
        low = np.array([lows] * copies, dtype=np.int32)
        high = low + np.array([[one.size - 1 for one in weights]], dtype=np.int32)
        found = cls.empty(low, high)
        found.base[:] = bases
        found.centre[:] = np.where(found.base > 0, published, low)
        for k, one in enumerate(weights):
            scaled = one / one.max()
            for copy in range(copies):
                found.weights[found.place[copy, k] : found.place[copy, k] + one.size] = scaled
        return found

    def first(self) -> CellWeights:
        """Return the weights of the first area alone."""
        return self.one(0)

    def one(self, number: int) -> CellWeights:
        """Return the weights of one area alone."""
        begin, end = self.area[number : number + 2].tolist()
        one = slice(number, number + 1)
        return CellWeights(
            self.low[one],
            self.high[one],
            self.place[one] - begin,
            self.base[one],
            self.centre[one],
            self.weights[begin:end],
            self.area[number : number + 2] - begin,
        )
