"""What it costs to show a number in place of a true count of which the posterior is known: expected squares, or errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.evidence.block import Ints
from unround.mechanisms.base import BoolArray, FloatArray

Rows = NDArray[np.int64]

UNFOUNDED = 1 / 3
"""How much of the doubt about a likely zero is unfounded: priors leave more of it than there is, so that claims are not too
bold. In mostly empty tables at base 5, published zeros are stated with .83 and right in .90 of cases."""

SPARSE = 1 / 3
"""Where more of the counts than this are likely zeros, errors are minimised, not squares."""


@dataclass(eq=False)
class Estimates:
    """What is known of every count, areas × cells, and which sums hold where.

    - `mean`, `spread`: The posterior mean, and its standard deviation.
    - `least`: How likely `low` is, where that is the likeliest count; 0 elsewhere.
    - `low`, `high`: What is possible.
    - `active`: Which sums are to hold, areas × sums.
    - `wide`: Areas × 1: some sums were left out of means, because noise leaves too much possible.
    - `clash`: Cells that are left as they were published, because no true counts fit.
    - `known`: Cells that have an estimate.
    """

    mean: FloatArray
    spread: FloatArray
    least: FloatArray
    low: Ints
    high: Ints
    active: BoolArray
    wide: BoolArray
    clash: BoolArray
    known: BoolArray

    def errors(self, shown: NDArray[Any], rows: Any, cells: Any = slice(None)) -> FloatArray:
        """Return by how much numbers are off on average, areas × cells, or areas × cells × several numbers of each.

        Where its least value is the likeliest, a count is that, or more by a geometric law; elsewhere it is about normal.
        """
        from scipy.special import ndtr

        given = (array[rows][:, cells] for array in (self.mean, self.spread, self.least, self.low, self.high))
        mean, spread, least, low, high = (array[..., None] if shown.ndim > array.ndim else array for array in given)
        off, width = np.abs(shown - mean), np.maximum(spread, 1e-9)
        density = np.exp(-0.5 * (off / width) ** 2) / np.sqrt(2 * np.pi)
        normal = np.where((shown <= low) | (shown >= high), off, 2 * width * density + off * (2 * ndtr(off / width) - 1))
        above, step = np.maximum(mean - low, 0.0), shown - low
        more = np.minimum(1.0 - least, above)  # how likely more than the least is, and by how much on average
        size = np.maximum(above / np.maximum(more, 1e-9), 1.0)
        more = np.where(low == 0, more * (1 - UNFOUNDED), more)
        left = size * (1 - 1 / size) ** np.maximum(step, 0.0)
        skewed = (least > 0) & (low < high)
        return np.asarray(np.where(skewed, np.abs(step) + more * (2 * left - size), normal))


@dataclass(eq=False)
class Costs:
    """What the numbers of some areas cost, squared around `target`; in `absolute` cells, the expected error.

    Targets are posterior means, or these moved to what remains of a larger area: then the whole posterior is moved.
    """

    estimates: Estimates
    rows: Rows
    target: FloatArray
    absolute: BoolArray
    cells: Rows

    def part(self, places: Any, cells: Any = slice(None)) -> Costs:
        """Return the costs of some areas and cells."""
        target, absolute = self.target[places][:, cells], self.absolute[cells]
        return Costs(self.estimates, self.rows[places], target, absolute, self.cells[cells])

    def of(self, counts: NDArray[Any]) -> FloatArray:
        """Return the costs of several numbers for each cell: areas × cells × numbers."""
        costs = (counts - self.target[:, :, None]) ** 2
        if self.absolute.any():
            cells = self.cells[self.absolute]
            moved = self.target[:, self.absolute] - self.estimates.mean[self.rows][:, cells]
            costs[:, self.absolute] = self.estimates.errors(counts[:, self.absolute] - moved[:, :, None], self.rows, cells)
        return costs


def absolute_cells(estimates: Estimates, use: BoolArray, piece: Rows) -> BoolArray:
    """Return the cells in which errors are minimised, not squares: those of pieces in which many counts are likely zeros.

    There a published 0 is so often right that to move many counts a little, as squares do, costs more than it gains.
    """
    many, zeros = np.zeros(len(piece)), np.zeros(len(piece))
    for start in range(0, len(use), 2048):
        here = slice(start, start + 2048)
        many += use[here].sum(axis=0)
        zeros += (use[here] & (estimates.low[here] == 0) & (estimates.least[here] > 0.5)).sum(axis=0)
    return np.asarray(np.bincount(piece, weights=zeros - SPARSE * many)[piece] > 0)
