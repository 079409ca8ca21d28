"""The grid of a figure: the steps that its values were rounded to, found in the values themselves.

Agencies print figures on grids that are coarser than their decimals: incomes in steps that grow with the income, rates in
steps that shrink with the number of people behind them. Steps are 1, 2, 4 or 5 times a power of ten. What is looked for is
the largest step in use, never one that is too small: a step that is too small would make a figure say more than it does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unround.figures import Grid, Steps
from unround.release import FIGURE_ABSENT, FIGURE_UNIT, FigureValues

Ints = NDArray[np.int64]


def steps_of(grid: Grid, values: FigureValues, units: Ints | None = None) -> Ints:
    """Return the step around every value, in `FIGURE_UNIT`, as `Grid.step` does one by one.

    Parameters
    ----------
    grid : Grid
        Of the figure.
    values : array
        Figures as in `Block.figures`; what is absent gets any step.
    units : array, optional
        The published universe of each, for grids that depend on it; negative where it is not known.
    """
    size = np.where(values == FIGURE_ABSENT, 0, np.abs(values))
    steps = _by_value(grid.steps, size)
    if units is not None:
        for least, finer in grid.by_units:
            steps = np.where(units >= least, _by_value(finer, size), steps)
    return steps


def _by_value(steps: Steps, size: Ints) -> Ints:
    ends = np.array([int(start / FIGURE_UNIT) for start, _ in steps], dtype=np.int64)
    wide = np.array([int(step / FIGURE_UNIT) for _, step in steps], dtype=np.int64)
    at = np.searchsorted(ends, size, side="right") - 1
    before = np.where((at > 0) & (ends[at] == size), wide[np.maximum(at - 1, 0)], 0)
    return np.maximum(wide[at], before)
