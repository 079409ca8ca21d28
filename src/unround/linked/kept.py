"""Whole distributions of one area among many, remembered while families are worked out."""

from __future__ import annotations

import numpy as np

from unround.batch.posterior import marginals
from unround.batch.types import CompiledSums, Distributions, PriorTable, Tight, Windows
from unround.linked.bounds import Rows
from unround.mechanisms.base import BoolArray, FloatArray

Kept = dict[int, tuple[int, FloatArray]]
"""By column the least count of a cell, and how likely it and those above it are; cells of too many values are not there."""


class Keeper:
    """Remembers the distributions of one area; later ones take the place of earlier ones, as in the posterior.

    Parameters
    ----------
    row : int or None
        The area; None remembers nothing.
    linked : array of bool
        The columns in which areas add up.
    """

    def __init__(self, row: int | None, linked: BoolArray) -> None:
        self.row, self.linked = row, np.flatnonzero(linked)
        self.columns = np.arange(len(linked))
        self.cells: Kept = {}
        self._place = self._stands = -1

    def enter(self, place: Rows, unit: Rows) -> None:
        """Begin a batch: `place` tells where areas are in it, `unit` which of its areas stands for which."""
        self._place = -1 if self.row is None else int(place[self.row])
        self._stands = int(unit[self._place]) if self._place >= 0 else -1

    def alone(
        self, compiled: CompiledSums, windows: Windows, tight: Tight, prior: PriorTable | None, active: BoolArray | None
    ) -> None:
        """Remember what the areas of a batch say by themselves."""
        if self._place < 0:
            return
        two = np.array([self._place, self._stands])
        cut = Windows(windows.low[two], windows.high[two], windows.start[two], windows.weights, windows.certain)
        bounds = Tight(*(getattr(tight, name)[two] for name in Tight.__slots__))
        _, found = marginals(compiled, cut, bounds, prior, None if active is None else active[two])
        self._put(found, 0, self.columns)
        self._put(found, 1, self.linked)

    def take(self, found: Distributions, rows: Rows, at: Rows) -> None:
        """Remember what was found for areas of the batch: those of `rows`, at these places in the distributions."""
        for k in np.flatnonzero(rows == self._stands).tolist() if self._stands >= 0 else ():
            self._put(found, int(at[k]), self.columns if self._stands == self._place else self.linked)

    def _put(self, found: Distributions, row: int, columns: Rows) -> None:
        for column in columns.tolist():
            start = int(found.start[row, column])
            if start >= 0:
                low, high = int(found.low[row, column]), int(found.high[row, column])
                self.cells[column] = low, found.chances[start : start + high - low + 1].copy()
