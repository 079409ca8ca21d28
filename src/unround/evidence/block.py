"""The arrays that the engines for whole releases share: many areas with one structure.

An area is a row, a count a column. All arrays are areas × columns unless stated otherwise.

The windows of a block of areas: each published count is looked up, and computed only the first time.

A release has millions of counts but few different ones, and most columns share one mechanism.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.mechanisms import Exact, Mechanism, Suppressed, Window
from unround.mechanisms.base import BoolArray, FloatArray
from unround.release import FIRST_TOLD, SUPPRESSED, Counts, told_range

Ints = NDArray[np.int32]
Places = NDArray[np.integer]

EXACT, BY_CHAINS, BY_LISTING, UNSETTLED = 0, 1, 2, 3
"""How an area's probabilities were worked out: exactly, along a forest; for tables by several axes, by chains or by going
through all tables; or not at all, because chains do not agree."""

NO_UPPER_BOUND = 1 << 30
"""Stands for "no upper bound" in 32-bit arrays: larger than any count, so that arithmetic needs no special case."""


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

    def rows(self, rows: NDArray[np.integer]) -> Windows:
        """Return the windows of some areas."""
        return Windows(self.low[rows], self.high[rows], self.start[rows], self.weights, self.certain)


@dataclass(frozen=True, slots=True, eq=False)
class CellBounds:
    """Bounds of every cell, by all sums together.

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

    def rows(self, rows: NDArray[np.integer]) -> CellBounds:
        """Return the bounds of some areas."""
        return CellBounds(*(getattr(self, name)[rows] for name in CellBounds.__slots__))

    def put(self, rows: NDArray[np.integer], other: CellBounds) -> None:
        """Overwrite the bounds of some areas by others, in their order."""
        for name in CellBounds.__slots__:
            getattr(self, name)[rows] = getattr(other, name)


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

    def put(self, rows: Places, other: Posterior, at: Places, columns: Places | None = None) -> None:
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

    def arrays(self, found: Distributions | None = None) -> PosteriorArrays:
        """Return the arrays of it, and of distributions beside it, as kernels fill them in."""
        summaries = self.mode, self.probability, self.mean, self.deviation, self.cut, self.possible
        asked = np.zeros((0, 0)) if self.asked is None else self.asked
        if found is None:
            return PosteriorArrays(*summaries, asked, np.zeros((0, 0), dtype=np.int64), np.zeros(0))
        return PosteriorArrays(*summaries, asked, found.start, found.chances)


class PosteriorArrays(NamedTuple):
    """The arrays of `Posterior` and `Distributions` that kernels fill in; without rows, one is not wanted."""

    mode: Ints
    probability: FloatArray
    mean: FloatArray
    deviation: FloatArray
    cut: Ints
    possible: BoolArray
    asked: FloatArray
    start: NDArray[np.int64]
    chances: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Distributions:
    """Whole distributions: for the count `low[a, c] + i`, up to `high[a, c]`, the probability is `chances[start[a, c] + i]`.

    `start` is -1 for cells without one: nothing bounds them, or they have too many possible values.
    """

    low: Ints
    high: Ints
    start: NDArray[np.int64]
    chances: FloatArray


_DENSE = 1 << 16
"""Published counts below this one are found by their place in an array; larger ones, which are rare, by search."""

_FREE, _MISFIT = 0, 1
"""The first two entries of every table: any count is possible; and the published count cannot come from the mechanism."""

_UNKNOWN = -1


def windows_of(
    counts: Counts, mechanisms: Sequence[Mechanism], adjusted: NDArray[np.integer] | None = None
) -> tuple[Windows, BoolArray]:
    """Return the true counts that each published count of a block leaves possible; see `WindowTable`.

    For more than one block, keep a `WindowTable` and ask that.

    Examples
    --------
    >>> from unround.mechanisms import Rounding
    >>> windows, misfits = windows_of(np.array([[15, 0, 7]], dtype=np.int32), [Rounding(5)] * 3)
    >>> windows.low, windows.high[0, :2], misfits
    (array([[11,  0,  0]], dtype=int32), array([19,  4], dtype=int32), array([[False, False,  True]]))
    """
    return WindowTable(mechanisms).of(counts, adjusted)


class WindowTable:
    """Every window met so far, ready for the next block. Several threads may ask one table at the same time."""

    def __init__(self, mechanisms: Sequence[Mechanism]) -> None:
        different = list(dict.fromkeys(mechanisms))
        at = {mechanism: m for m, mechanism in enumerate(different)}
        of = np.array([at[mechanism] for mechanism in mechanisms], dtype=np.int64)
        # All columns at once where there is only one mechanism: a slice needs no copy.
        self._groups = [
            (_WindowsOfMechanism(mechanism), slice(None) if len(different) == 1 else np.flatnonzero(of == m))
            for m, mechanism in enumerate(different)
        ]
        self._columns = len(mechanisms)
        self._exact = np.array([isinstance(mechanism, Exact) for mechanism in mechanisms], dtype=np.bool_)
        self._entries = _Entries()
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
        if counts.ndim != 2 or counts.shape[1] != self._columns:
            raise InputError(f"{self._columns} columns have a mechanism, but the counts have shape {counts.shape}.")
        entry = np.empty(counts.shape, dtype=np.int32)
        certain = np.ones(self._columns, dtype=np.bool_)
        with self._lock:  # what is met for the first time is added to tables that all threads share
            for values, columns in self._groups:
                entry[:, columns] = values.look_up(counts[:, columns], self._entries)
                certain[columns] = values.certain
            lows, highs, starts = self._entries.tables()
            low, high, start = lows[entry], highs[entry], starts[entry]
            if adjusted is not None:
                self._widen(entry, np.broadcast_to(adjusted, counts.shape), low, high, start)
            weights = self._entries.weights()
        return Windows(low, high, start, weights, certain), entry == _MISFIT

    def _widen(
        self,
        entry: NDArray[np.int32],
        adjusted: NDArray[np.integer],
        low: NDArray[np.int32],
        high: NDArray[np.int32],
        start: NDArray[np.int64],
    ) -> None:
        """Let exact counts be off by a little."""
        columns = np.flatnonzero(self._exact & (adjusted > 0).any(axis=0))
        if not columns.size:
            return
        rows, which = np.nonzero((adjusted[:, columns] > 0) & (entry[:, columns] > _MISFIT))
        at = rows, columns[which]
        by = adjusted[at].astype(np.int32)
        low[at] = np.maximum(low[at] - by, 0)
        high[at] += by
        for k in np.unique(by):
            flat = self._entries.place(np.full(2 * int(k) + 1, 1 / (2 * int(k) + 1)))
            here = by == k
            start[rows[here], at[1][here]] = flat


class _Entries:
    """Windows one below the other: their ends, and where their weights are. Equal weights are kept once."""

    def __init__(self) -> None:
        self._low, self._high, self._start = [0, 0], [NO_UPPER_BOUND, NO_UPPER_BOUND], [-1, -1]
        self._places: dict[bytes, int] = {}
        self._pieces: list[FloatArray] = []
        self._size = 0
        self._tables: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]] | None = None
        self._weights: FloatArray = np.empty(0)

    def add(self, window: Window) -> int:
        """Return the entry of a new window."""
        if window.weights is None:
            return _FREE if window.high is None and not window.low else self._append(window.low, window.high, -1)
        assert window.high is not None  # weights are listed up to there
        return (
            _MISFIT if window.high >= NO_UPPER_BOUND else self._append(window.low, window.high, self.place(window.weights))
        )

    def _append(self, low: int, high: int | None, start: int) -> int:
        self._low.append(low)
        self._high.append(NO_UPPER_BOUND if high is None else high)
        self._start.append(start)
        self._tables = None
        return len(self._low) - 1

    def place(self, weights: FloatArray) -> int:
        """Return where weights start in the array of all."""
        key = weights.tobytes()
        if key not in self._places:
            self._places[key] = self._size
            self._pieces.append(weights)
            self._size += weights.size
        return self._places[key]

    def tables(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        """Return low, high and start of every entry."""
        if self._tables is None:
            low, high = (np.array(one, dtype=np.int32) for one in (self._low, self._high))
            self._tables = low, high, np.array(self._start, dtype=np.int64)
        return self._tables

    def weights(self) -> FloatArray:
        """Return all weights; those that were there before are still where they were."""
        if self._weights.size < self._size:
            self._weights = np.concatenate(self._pieces)
        return self._weights


@lru_cache(maxsize=1 << 15)
def _window(mechanism: Hashable, published: int | None) -> Window:
    """Return the window of a mechanism, worked out once for all tables of windows."""
    return cast(Mechanism, mechanism).window(published)


class _WindowsOfMechanism:
    """The entries of one mechanism, for each published count met so far."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.certain = True
        self._dense = np.full(_DENSE, _UNKNOWN, dtype=np.int32)
        self._large: dict[int, int] = {}

    def look_up(self, counts: Counts, entries: _Entries) -> NDArray[np.int32]:
        """Return the entry of every count."""
        unsigned = counts.view(np.uint32) if counts.flags.c_contiguous else counts.astype(np.int32).view(np.uint32)
        small = unsigned < _DENSE  # codes and negative counts are large, read as unsigned
        if small.all():
            return self._of_small(counts, entries)
        found = self._of_small(np.where(small, counts, 0), entries)
        found[~small] = _FREE
        large = ~small & ((counts >= FIRST_TOLD) | (counts == SUPPRESSED))
        different, which = np.unique(counts[large], return_inverse=True)
        found[large] = np.array([self._of_large(int(one), entries) for one in different], dtype=np.int32)[which]
        return found

    def _of_small(self, counts: Counts, entries: _Entries) -> NDArray[np.int32]:
        found = self._dense[counts]
        new = counts[found == _UNKNOWN]
        if not new.size:
            return found
        for count in np.unique(new):
            self._dense[count] = self._entry(int(count), entries)
        return self._dense[counts]

    def _of_large(self, count: int, entries: _Entries) -> int:
        if count not in self._large:
            self._large[count] = self._entry(count, entries)
        return self._large[count]

    def _entry(self, count: int, entries: _Entries) -> int:
        """Work out the window of a count that was not met before."""
        hidden, told = count == SUPPRESSED, told_range(count)
        if told is not None:
            return entries.add(_window(Suppressed(*told), None))
        try:
            window = _window(cast(Hashable, self.mechanism), None if hidden else count)
        except InputError:
            # A mechanism that hides nothing cannot say why this count is hidden: it may be any.
            return _FREE if hidden else _MISFIT
        self.certain &= window.certain
        return entries.add(window)
