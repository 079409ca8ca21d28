"""The arrays that the engines for whole releases share: many areas with one structure.

An area is a row, a count a column. All arrays are areas × columns unless stated otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.crossed.table import CrossedTable
from unround.infer.bounds import Equations
from unround.infer.plan import Plan
from unround.mechanisms.base import BoolArray, FloatArray

Ints = NDArray[np.int32]

EXACT, BY_CHAINS, BY_LISTING, UNSETTLED = 0, 1, 2, 3
"""How an area's probabilities were worked out: exactly, along a forest; for tables by several axes, by chains or by going
through all tables; or not at all, because chains do not agree."""

NO_UPPER_BOUND = 1 << 30
"""Stands for "no upper bound" in 32-bit arrays: larger than any count, so that arithmetic needs no special case."""


@dataclass(frozen=True, slots=True, eq=False)
class CompiledSums:
    """The structure that all areas share, compiled once.

    - `columns`: How many cells an area has.
    - `equations`: Every sum, as (total, parts) in positions of columns. Bounds use all of them.
    - `plan`: How messages travel: a forest of those sums that carry probabilities.
    - `unused`: The sums, as positions in `equations`, that would close a loop in the forest: they are used for bounds and
      proofs only. Under a flat prior, a posterior that uses fewer sums is still right, only less sharp.
    - `links_of`: For every link of the plan, the equations that it stands for: one, or up to three parallel ones.
    - `crossed`: Connected cells, with sums among those unused, that are a table by several axes: their probabilities come
      from all their sums, by chains.
    """

    columns: int
    equations: Equations
    plan: Plan
    unused: tuple[int, ...]
    links_of: tuple[tuple[int, ...], ...]
    crossed: tuple[CrossedTable, ...] = ()

    @property
    def left_out(self) -> tuple[int, ...]:
        """The sums that no probability uses: those unused in the forest, and in no table by several axes."""
        inside = {e for table in self.crossed for e in table.equations}
        return tuple(e for e in self.unused if e not in inside)


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """The true counts that each published count leaves possible.

    `low` and `high` (`NO_UPPER_BOUND`: not bounded) are inclusive. `weights[start[a, c] + i]` is the likelihood of what was
    published given the true count `low[a, c] + i`; `start` is -1 where nothing was published, so that all counts are
    equally likely. `certain` is False for columns whose windows leave out a tail: no proof may use these.
    """

    low: Ints
    high: Ints
    start: NDArray[np.int64]
    weights: FloatArray
    certain: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class Tight:
    """Bounds by all sums together.

    `by_low` and `by_high` are the equation that set a bound last (-1: the published count itself), `depth_low` and
    `depth_high` the number of steps of the argument for it (0: none). `feasible` is False for areas in which some cell has
    no possible value; their bounds mean nothing.
    """

    low: Ints
    high: Ints
    by_low: Ints
    by_high: Ints
    depth_low: Ints
    depth_high: Ints
    feasible: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class PriorWeights:
    """How likely each possible count of each cell is a priori: `weights[start[a, c] + i]` for the count `low[a, c] + i`.

    Weights need not add up to 1. `start` is -1 where all counts weigh the same. A column's weights mean something only
    beside those of all columns that it is linked with.
    """

    low: Ints
    start: NDArray[np.int64]
    weights: FloatArray

    def rows(self, rows: NDArray[np.integer]) -> PriorWeights:
        """Return the weights of some areas."""
        return PriorWeights(self.low[rows], self.start[rows], self.weights)

    def without(self, rows: NDArray[np.integer] | BoolArray, columns: BoolArray) -> PriorWeights:
        """Return the weights with some columns of some areas flat."""
        start = self.start.copy()
        start[rows] = np.where(columns, -1, start[rows])
        return PriorWeights(self.low, start, self.weights)


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """The posterior of every cell: the likeliest count, its probability, the mean and the standard deviation.

    `mode` is the lowest of equally likely counts. Where nothing bounds a cell, `probability` is 0, and mean and deviation
    are NaN. `cut` counts, for every area, the links left out because their cells have too many possible values;
    `possible` is False for areas in which no combination of values adds up. `asked` is the probability of a count that was
    asked for, if any, such as the true one. `method` says for every area how tables by several axes were answered (`EXACT`
    where there are none, or they were left to the forest), and `error` is the standard error of a probability; 0 if exact.
    """

    mode: Ints
    probability: FloatArray
    mean: FloatArray
    deviation: FloatArray
    cut: Ints
    possible: BoolArray
    asked: FloatArray | None = None
    method: NDArray[np.int8] | None = None
    error: FloatArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Distributions:
    """Whole distributions: for the count `low[a, c] + i`, up to `high[a, c]`, the probability is `chances[start[a, c] + i]`.

    `start` is -1 for cells without one: nothing bounds them, or they have too many possible values.
    """

    low: Ints
    high: Ints
    start: NDArray[np.int64]
    chances: FloatArray
