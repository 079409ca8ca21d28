"""The weights of all possible counts as one flat array, so that evidence from other areas can be multiplied in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unround.batch.posterior import empty_distributions
from unround.batch.types import Ints, Windows
from unround.linked.bounds import Rows
from unround.mechanisms.base import FloatArray


class CountWeights:
    """The weights of all possible counts of some areas, cell after cell.

    - `windows`: The windows of all areas.
    - `low`, `high`: Bounds of the areas in question; cells with too many possible values are not listed.
    - `rows`: The rows of these areas.
    """

    def __init__(self, windows: Windows, low: Ints, high: Ints, rows: Rows) -> None:
        self.low, self.high, self.certain = np.ascontiguousarray(low), np.ascontiguousarray(high), windows.certain
        grid = empty_distributions(self.low, self.high)
        self.start = grid.start
        self.width = np.where(grid.start >= 0, self.high.astype(np.int64) - self.low + 1, 0)
        self.begin = np.concatenate([[0], np.cumsum(self.width.sum(axis=1))])
        shown = windows.start[rows]
        origin = np.where(shown >= 0, shown + (self.low.astype(np.int64) - windows.low[rows]), -1)
        cell = np.repeat(np.arange(self.width.size), self.width.ravel())
        self.cell = cell
        self.step = np.arange(cell.size) - self.start.ravel()[cell]
        at = origin.ravel()[cell]
        self.weights: FloatArray = np.where(at >= 0, windows.weights[np.where(at >= 0, at + self.step, 0)], 1.0)

    def stretches(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places of all weights of some areas' cells, area by area."""
        start, width = self.start[np.ix_(rows, columns)].ravel(), self.width[np.ix_(rows, columns)].ravel()
        if not width.sum():
            return np.zeros(0, dtype=np.int64)
        before = np.cumsum(width) - width
        return np.repeat(start - before, width) + np.arange(int(width.sum()))

    def windows(self, weights: FloatArray | None = None) -> Windows:
        """Return windows with these weights, or others; cells that are not listed have bounds only."""
        return Windows(
            self.low, self.high, self.start, self.weights if weights is None else weights, np.ones_like(self.certain)
        )

    def scale(self, weights: FloatArray) -> FloatArray:
        """Divide the weights of every cell by their largest."""
        if not weights.size:
            return weights
        firsts = np.flatnonzero(np.r_[True, self.cell[1:] != self.cell[:-1]])
        largest = np.maximum.reduceat(weights, firsts)
        return np.asarray(weights / np.repeat(np.where(largest > 0, largest, 1.0), np.diff(np.r_[firsts, weights.size])))

    def in_own_order(self, rows: Rows) -> list[int]:
        """Return areas in an order that depends only on their weights, so that results do not depend on their position."""

        def known(row: int) -> tuple[bytes, bytes, bytes]:
            weights = self.weights[self.begin[row] : self.begin[row + 1]]
            return self.low[row].tobytes(), self.high[row].tobytes(), weights.tobytes()

        return sorted(rows.tolist(), key=known)

    def take(self, rows: Rows) -> CountWeights:
        """Return the weights of some areas, each as often as it is named."""
        windows = Windows(self.low, self.high, self.start, self.weights, self.certain)
        return CountWeights(windows, self.low[rows], self.high[rows], rows)
