"""The arrays that the engines for whole releases share: many areas with one structure, and the windows of their counts.

An area is a row, a count a column. All arrays are areas × columns unless stated otherwise. A release has millions of counts
but few different ones, and most columns share one mechanism: each window is worked out the first time that it is met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.mechanisms import Exact, Mechanism, Suppressed
from unround.mechanisms.base import BoolArray, FloatArray, window_of
from unround.release import FIRST_TOLD, SUPPRESSED, Counts, told_range

Ints = NDArray[np.int32]
Places = NDArray[np.integer]

EXACT, BY_CHAINS, BY_LISTING, UNSETTLED = 0, 1, 2, 3
"""How an area's probabilities were worked out: exactly, along a forest; for multi-way tables, by chains or by
enumeration; or not at all, because chains do not agree."""

NONE = -1
"""The likeliest count of a cell without one: nothing bounds it, or no counts add up."""

MOST_VALUES = 600
"""Possible values of a cell above which the links that touch it are not used, and its distribution is not listed."""

NO_UPPER_BOUND = 1 << 30
"""Stands for "no upper bound" in 32-bit arrays: larger than any count, so that arithmetic needs no special case."""


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """The true counts that each published count leaves possible.

    `low` and `high` (`NO_UPPER_BOUND`: not bounded) are inclusive. `weights[start[a, c] + i]` is the likelihood of what was
    published given the true count `low[a, c] + i`; `start` is -1 where all counts are equally likely: nothing was published,
    or what was is no second observation. `certain` is False for columns whose windows leave out a tail, which no proof may
    use.
    """

    low: Ints
    high: Ints
    start: NDArray[np.int64]
    weights: FloatArray
    certain: BoolArray

    @property
    def unbounded(self) -> BoolArray:
        """Whether a count can be any: nothing was published, or what its mechanism never publishes."""
        return np.asarray(self.high >= NO_UPPER_BOUND)

    def rows(self, rows: NDArray[np.integer]) -> Windows:
        """Return the windows of some areas."""
        return Windows(self.low[rows], self.high[rows], self.start[rows], self.weights, self.certain)


class CellBounds(NamedTuple):
    """Bounds of every cell, by all sums together.

    `by_low` and `by_high` are the equation that set a bound last (-1: the published count itself). `feasible` is False for
    areas in which some cell has no possible value; their bounds mean nothing.
    """

    low: Ints
    high: Ints
    by_low: Ints
    by_high: Ints
    feasible: BoolArray

    def rows(self, rows: NDArray[np.integer]) -> CellBounds:
        """Return the bounds of some areas."""
        return CellBounds(*[array[rows] for array in self])

    def put(self, rows: NDArray[np.integer], other: CellBounds) -> None:
        """Overwrite the bounds of some areas by others, in their order."""
        for into, new in zip(self, other, strict=True):
            into[rows] = new


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
class BlockPosterior:
    """The posterior of every cell: the likeliest count, its probability, the mean and the standard deviation.

    `mode` is the lowest of equally likely counts. Where nothing bounds a cell, `probability` is 0, and mean and deviation
    are NaN. `cut` counts, for every area, the links left out because their cells have too many possible values;
    `possible` is False for areas in which no combination of values adds up. `asked` is the probability of a count that was
    asked for, if any, such as the true one. `method` says for every area how multi-way tables were answered (`EXACT`
    where there are none, or they were left to the forest), and `error` is the standard error of a probability; 0 if exact.
    """

    mode: Ints
    probability: FloatArray
    mean: FloatArray
    deviation: FloatArray
    cut: Ints
    possible: BoolArray
    method: NDArray[np.int8]
    error: FloatArray
    asked: FloatArray | None = None

    @classmethod
    def empty(cls, areas: int, columns: int, *, asked: bool = False) -> BlockPosterior:
        """Return a posterior without any information, to be filled in."""
        return cls(
            mode=np.full((areas, columns), NONE, dtype=np.int32),
            probability=np.zeros((areas, columns)),
            mean=np.full((areas, columns), np.nan),
            deviation=np.full((areas, columns), np.nan),
            cut=np.zeros(areas, dtype=np.int32),
            possible=np.zeros(areas, dtype=np.bool_),
            method=np.full(areas, EXACT, dtype=np.int8),
            error=np.zeros((areas, columns)),
            asked=np.zeros((areas, columns)) if asked else None,
        )

    def put(self, rows: Places, other: BlockPosterior, at: Places, columns: Places | None = None) -> None:
        """Overwrite some areas by those of another posterior, at these places in it; of some columns only, if given."""
        names = ["mode", "probability", "mean", "deviation", "asked", "error"]
        names += ["cut", "possible", "method"] if columns is None else []
        for name in names:
            into, new = getattr(self, name), getattr(other, name)
            if into is not None and new is not None:
                if columns is None:
                    into[rows] = new[at]
                else:
                    into[np.ix_(rows, columns)] = new[np.ix_(at, columns)]

    def replaced(self, where: BoolArray, other: BlockPosterior) -> BlockPosterior:
        """Return the posterior in which some cells are as in another."""
        names = "mode", "probability", "mean", "deviation", "error"
        return replace(self, **{name: np.where(where, getattr(other, name), getattr(self, name)) for name in names})

    def arrays(self, distributions: Distributions | None = None) -> PosteriorArrays:
        """Return the arrays of it, and of distributions beside it, as kernels fill them in."""
        summaries = self.mode, self.probability, self.mean, self.deviation, self.cut, self.possible
        asked = np.zeros((0, 0)) if self.asked is None else self.asked
        if distributions is None:
            return PosteriorArrays(*summaries, asked, np.zeros((0, 0), dtype=np.int64), np.zeros(0))
        return PosteriorArrays(*summaries, asked, distributions.start, distributions.chances)


class PosteriorArrays(NamedTuple):
    """The arrays of `BlockPosterior` and `Distributions` that kernels fill in; without rows, one is not wanted."""

    mode: Ints
    probability: FloatArray
    mean: FloatArray
    deviation: FloatArray
    cut: Ints
    possible: BoolArray
    asked: FloatArray
    start: NDArray[np.int64]
    chances: FloatArray


Distribution = tuple[int, FloatArray]
"""The least count of a cell, and how likely it and those above it are."""


@dataclass(frozen=True, slots=True, eq=False)
class Distributions:
    """Whole distributions: for the count `low[a, c] + i`, up to `high[a, c]`, the probability is `chances[start[a, c] + i]`.

    `start` is -1 for cells without one: nothing bounds them, or they have too many possible values.
    """

    low: Ints
    high: Ints
    start: NDArray[np.int64]
    chances: FloatArray

    @classmethod
    def empty(cls, low: Ints, high: Ints) -> Distributions:
        """Return distributions of zeros for all cells within their bounds, to be filled in."""
        width = high.astype(np.int64) - low + 1
        width[(width > MOST_VALUES) | (width < 1)] = 0
        start = np.cumsum(width).reshape(width.shape) - width
        return cls(low, high, np.where(width > 0, start, -1), np.zeros(int(width.sum())))

    def of(self, row: int) -> dict[int, Distribution]:
        """Return those of one area, of cells that have one."""
        ends = zip(self.low[row].tolist(), self.high[row].tolist(), self.start[row].tolist(), strict=True)
        return {
            cell: (low, self.chances[start : start + high - low + 1])
            for cell, (low, high, start) in enumerate(ends)
            if start >= 0
        }


_DENSE = 1 << 16
"""Published counts below this one are found by their place in an array; larger ones, which are rare, by search."""

_FREE, _MISFIT = 0, 1
"""The first two entries of every table: any count is possible; and the published count cannot come from the mechanism."""

_UNKNOWN = -1


class WindowTable:
    """Every window met so far, ready for the next block. Several threads may ask one table at the same time.

    A window is an entry: its ends, and where its weights begin; equal weights are kept once.
    """

    def __init__(self, mechanisms: Sequence[Mechanism]) -> None:
        self._mechanisms = list(dict.fromkeys(mechanisms))
        of = np.array([self._mechanisms.index(mechanism) for mechanism in mechanisms], dtype=np.int64)
        # All columns at once where there is only one mechanism: a slice needs no copy.
        alone = len(self._mechanisms) == 1
        self._columns = [slice(None) if alone else np.flatnonzero(of == m) for m in range(len(self._mechanisms))]
        self._exact = np.array([isinstance(mechanism, Exact) for mechanism in mechanisms], dtype=np.bool_)
        self._certain = np.ones(len(mechanisms), dtype=np.bool_)
        self._dense = [np.full(_DENSE, _UNKNOWN, dtype=np.int32) for _ in self._mechanisms]
        self._large: dict[tuple[int, int], int] = {}
        self._low, self._high, self._start = [0, 0], [NO_UPPER_BOUND, NO_UPPER_BOUND], [-1, -1]
        self._tables: tuple[Ints, Ints, NDArray[np.int64]] | None = None
        self._places: dict[bytes, int] = {}
        self._weights: list[FloatArray] = [np.empty(0)]
        self._size = 0
        self._lock = Lock()

    def of(self, counts: Counts, adjusted: NDArray[np.integer] | None = None) -> tuple[Windows, BoolArray]:
        """Return the windows of a block.

        The windows; and where the published count cannot come from the column's mechanism, so that it is treated as
        not published: report it.

        Notes
        -----
        A suppressed count has the window that the mechanism gives to what it hides, if it hides anything; a cell that
        tells a range by itself has that range; whatever else is absent can be any count. Counts too large for
        `NO_UPPER_BOUND` are misfits too.
        """
        if counts.ndim != 2 or counts.shape[1] != len(self._exact):
            raise InputError(f"{len(self._exact)} columns have a mechanism, but the counts have shape {counts.shape}.")
        entry = np.empty(counts.shape, dtype=np.int32)
        with self._lock:  # what is met for the first time is added to tables that all threads share
            for m, columns in enumerate(self._columns):
                entry[:, columns] = self._entries_of(m, counts[:, columns])
            if self._tables is None:
                lows, highs = (np.array(ends, dtype=np.int32) for ends in (self._low, self._high))
                self._tables = lows, highs, np.array(self._start, dtype=np.int64)
            lows, highs, starts = self._tables
            low, high, start = lows[entry], highs[entry], starts[entry]
            if adjusted is not None:
                self._widen(entry, np.broadcast_to(adjusted, counts.shape), low, high, start)
            if len(self._weights) > 1:  # those that were there before are still where they were
                self._weights = [np.concatenate(self._weights)]
            return Windows(low, high, start, self._weights[0], self._certain.copy()), entry == _MISFIT

    def _widen(self, entry: Ints, adjusted: NDArray[np.integer], low: Ints, high: Ints, start: NDArray[np.int64]) -> None:
        """Let exact counts be off by a little."""
        at = np.nonzero(self._exact & (adjusted > 0) & (entry > _MISFIT))
        by = adjusted[at].astype(np.int32)
        low[at] = np.maximum(low[at] - by, 0)
        high[at] += by
        for k in np.unique(by).tolist():
            start[at[0][by == k], at[1][by == k]] = self._place(np.full(2 * k + 1, 1 / (2 * k + 1)))

    def _entries_of(self, m: int, counts: Counts) -> Ints:
        """Return the entry of every count of the columns of one mechanism."""
        unsigned = counts.view(np.uint32) if counts.flags.c_contiguous else counts.astype(np.int32).view(np.uint32)
        small = unsigned < _DENSE  # codes and negative counts are large, read as unsigned
        every = small.all()
        near, dense = counts if every else np.where(small, counts, 0), self._dense[m]
        entries = dense[near]
        new = near[entries == _UNKNOWN]
        if new.size:
            for count in np.unique(new).tolist():
                dense[count] = self._entry(m, count)
            entries = dense[near]
        if not every:
            entries[~small] = _FREE
            large = ~small & ((counts >= FIRST_TOLD) | (counts == SUPPRESSED))
            different, place = np.unique(counts[large], return_inverse=True)
            for count in different.tolist():
                if (m, count) not in self._large:
                    self._large[m, count] = self._entry(m, count)
            entries[large] = np.array([self._large[m, count] for count in different.tolist()], dtype=np.int32)[place]
        return entries

    def _entry(self, m: int, count: int) -> int:
        """Work out the window of a count that was not met before."""
        hidden, ends = count == SUPPRESSED, told_range(count)
        if ends is not None:
            window = window_of(Suppressed(*ends), None)
        else:
            try:
                window = window_of(self._mechanisms[m], None if hidden else count)
            except InputError:
                # A mechanism that hides nothing cannot say why this count is hidden: it may be any.
                return _FREE if hidden else _MISFIT
            if not window.certain:
                self._certain[self._columns[m]] = False
        if window.weights is None and window.high is None and not window.low:
            return _FREE
        if window.weights is not None and window.high is not None and window.high >= NO_UPPER_BOUND:
            return _MISFIT
        self._low.append(window.low)
        self._high.append(NO_UPPER_BOUND if window.high is None else window.high)
        self._start.append(-1 if window.weights is None else self._place(window.weights))
        self._tables = None
        return len(self._low) - 1

    def _place(self, weights: FloatArray) -> int:
        """Return where weights start in the array of all."""
        key = weights.tobytes()
        if key not in self._places:
            self._places[key] = self._size
            self._weights.append(weights)
            self._size += weights.size
        return self._places[key]
