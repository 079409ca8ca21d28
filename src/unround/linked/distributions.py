"""Distributions of linked areas: summarised into a posterior, and those of one area kept whole."""

from __future__ import annotations

import numpy as np

from unround.batch.posterior import marginals
from unround.batch.summary import ALIKE
from unround.batch.types import CompiledSums, Distributions, Posterior, PriorWeights, Tight, Windows
from unround.linked.bounds import Rows
from unround.mechanisms.base import BoolArray, FloatArray

Kept = dict[int, tuple[int, FloatArray]]
"""Whole distributions, by column: the least count and the probabilities from there on; without cells of too many values."""


def summarise(into: Posterior, found: Distributions, rows: Rows, members: Rows) -> None:
    """Summarise distributions: those of `members` become the posterior of `rows`; cells without one stay unchanged."""
    start = found.start[members]
    here = start >= 0
    if not here.any():
        return
    low = found.low[members][here].astype(np.int64)
    width = found.high[members][here].astype(np.int64) - low + 1
    first = np.cumsum(width) - width
    step = np.arange(int(width.sum())) - np.repeat(first, width)
    chances = found.chances[np.repeat(start[here], width) + step]
    largest = np.maximum.reduceat(chances, first)
    best = np.where(chances >= np.repeat(largest, width) * (1 - ALIKE), step, np.iinfo(np.int64).max)
    mode = np.minimum.reduceat(best, first)
    mean = np.add.reduceat(chances * step, first)
    square = np.add.reduceat(chances * (step - np.repeat(mean, width)) ** 2, first)
    where, column = np.nonzero(here)
    at = rows[where], column
    into.mode[at] = low + mode
    into.probability[at] = chances[first + mode]
    into.mean[at] = low + mean
    into.deviation[at] = np.sqrt(square)


class DistributionKeeper:
    """Keeps the distributions of one area; later ones replace earlier ones, as in the posterior.

    - `row`: The area; None keeps nothing.
    - `linked`: The columns in which areas add up.
    """

    def __init__(self, row: int | None, linked: BoolArray) -> None:
        self.row, self.linked = row, np.flatnonzero(linked)
        self.columns = np.arange(len(linked))
        self.cells: Kept = {}
        self._place = self._representative = -1

    def enter(self, place: Rows, unit: Rows) -> None:
        """Begin a batch: `place` gives the position of areas in it, `unit` their representatives."""
        self._place = -1 if self.row is None else int(place[self.row])
        self._representative = int(unit[self._place]) if self._place >= 0 else -1

    def keep_own(
        self, compiled: CompiledSums, windows: Windows, tight: Tight, prior: PriorWeights | None, active: BoolArray | None
    ) -> None:
        """Keep the distributions that follow from the areas of a batch alone."""
        if self._place < 0:
            return
        two = np.array([self._place, self._representative])
        cut = Windows(windows.low[two], windows.high[two], windows.start[two], windows.weights, windows.certain)
        bounds = Tight(*(getattr(tight, name)[two] for name in Tight.__slots__))
        own_prior = None if prior is None else prior.rows(two)
        _, found = marginals(compiled, cut, bounds, own_prior, None if active is None else active[two])
        self._put(found, 0, self.columns)
        self._put(found, 1, self.linked)

    def take(self, found: Distributions, rows: Rows, at: Rows) -> None:
        """Keep distributions of areas of the batch: those of `rows`, at these places in `found`."""
        for k in np.flatnonzero(rows == self._representative).tolist() if self._representative >= 0 else ():
            self._put(found, int(at[k]), self.columns if self._representative == self._place else self.linked)

    def _put(self, found: Distributions, row: int, columns: Rows) -> None:
        for column in columns.tolist():
            start = int(found.start[row, column])
            if start >= 0:
                low, high = int(found.low[row, column]), int(found.high[row, column])
                self.cells[column] = low, found.chances[start : start + high - low + 1].copy()
