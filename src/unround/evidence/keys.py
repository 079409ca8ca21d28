"""Keys in the evidence of a block: what the random numbers that add up leave of total and parts, and of repeated counts.

See `mechanisms.keyed`. A count that appears in several tables has one random number, seen from each table at another place
of the circle. All its roundings together leave an arc of it, or a few, for every true count; their length is the likelihood,
in place of the product of single ones. The first column has it all, and the others, which show the same count, have none. Of
a total and its two parts, the likelihood is the probability that random numbers on the parts' arcs add up to one on the
total's (`meeting`), in place of the product of their lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.evidence.block import Ints, Windows
from unround.mechanisms import Mechanism
from unround.mechanisms.base import BoolArray, FloatArray, step_of
from unround.mechanisms.keyed import arc_of, meeting
from unround.mechanisms.rounding import TwoWay
from unround.release import ABSENT, Counts
from unround.sums.compiled import Table

OWN = 0.01
"""The share of counts that may have random numbers of their own: what keys rule out must not become impossible."""

ANY_CONSTANT = np.inf
"""The constant of a table with keys where it is not known: only what is so at every constant is used."""

WIDEST = 256
"""Counts with more possible values are left as they are."""

DRAWS, UNKNOWN_DRAWS = 8, 64
"""Constants are not known exactly, or not at all: likelihoods of repeated counts are averages over so many draws of them."""


@dataclass(frozen=True, slots=True)
class KeyedRepeat:
    """A count that several cells of an area show, all rounded with one random number.

    - `cells`: The cells; the first gets the evidence of all.
    - `constants`, `errors`: Of their tables, and the standard errors; empty where they are not known, and may be
      anything.
    - `sums`: For every cell but the first, the sum that says that it is the same count.
    """

    cells: tuple[int, ...]
    constants: tuple[float, ...]
    errors: tuple[float, ...]
    sums: tuple[int, ...]

    @property
    def places(self) -> FloatArray:
        """Where each table sees the first one's 0: for the constants as they are, then for draws of them."""
        if not self.constants:
            anywhere = np.random.default_rng(len(self.cells)).random((UNKNOWN_DRAWS, len(self.cells)))
            return np.asarray(anywhere - anywhere[:, :1])
        drawn = np.random.default_rng(len(self.cells)).standard_normal((DRAWS, len(self.cells)))
        drawn = np.concatenate([np.zeros((1, len(self.cells))), drawn]) * self.errors
        return np.asarray(self.constants[0] - np.asarray(self.constants) + drawn - drawn[:, :1])


@dataclass(frozen=True, slots=True, eq=False)
class Keyed:
    """Where keys are, for all areas.

    - `constant`: For every node of the plan, that of its total and two parts; NaN without keys, or `ANY_CONSTANT`.
    - `mechanisms`: Of every cell.
    - `repeats`: Counts that several cells show.
    - `base`: For every node, to which base its three counts were rounded without exceptions; 0 where that is not so.
    - `chained`: For every link of the plan, whether it is the sums of a total and its parts in one table.
    """

    constant: FloatArray
    mechanisms: tuple[Mechanism, ...]
    repeats: tuple[KeyedRepeat, ...] = ()
    base: NDArray[np.int64] | None = None
    chained: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))


Arc = tuple[float, float]


class KeyInput(NamedTuple):
    """The kernel's input about keys.

    `constant` is by node, NaN where there is none; `two_way` says which columns were rounded at random. `start` has for
    every cell the place of its first count in `first`, −1 where it has only one arc, which follows from `published`; the
    arcs of the count at place i are `arcs[first[i] : first[i + 1]]`. `row` is, for every node whose counts were rounded to
    `base` without exceptions, its row of `ratios`: by the residual of what was published and how far the parts' counts are
    from what was published, how much likelier a pair is with keys. −1: it has to be worked out. `chained` says which links
    of the plan are sums of one table with keys, under their total.
    """

    constant: FloatArray
    two_way: BoolArray
    published: Ints
    start: Table
    first: Table
    arcs: FloatArray
    row: Table
    base: int
    ratios: FloatArray
    chained: BoolArray


class KeyedEvidence(NamedTuple):
    """What keys make of a block: its windows, with the likelihoods of repeated counts, and the kernel's input."""

    windows: Windows
    keys: KeyInput

    def rows(self, rows: NDArray[np.integer]) -> KeyedEvidence:
        """Return the same for some areas."""
        keys = self.keys._replace(published=self.keys.published[rows], start=self.keys.start[rows])
        return KeyedEvidence(self.windows.rows(rows), keys)


def keyed_evidence(keyed: Keyed, windows: Windows, counts: Counts, active: BoolArray) -> KeyedEvidence:
    """Return what keys make of some areas."""
    built = _Built(windows)
    for repeat in keyed.repeats:
        shown = counts[:, repeat.cells] > ABSENT
        shown[:, 1:] &= active[:, repeat.sums]
        shown &= windows.start[:, repeat.cells] >= 0  # what its mechanism cannot publish says nothing
        for row in np.flatnonzero(shown[:, 0] & (shown.sum(1) > 1)).tolist():
            built.put(repeat, row, np.flatnonzero(shown[row]), counts[row, repeat.cells], keyed.mechanisms)
    return built.done(keyed, counts)


class _Built:
    """Windows and arcs under construction; those of equal roundings are kept once."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._start = windows.start.copy()
        self._arc_start = np.full(windows.start.shape, -1, dtype=np.int64)
        self._ones, self._size = windows.weights.size, windows.weights.size + WIDEST
        self._weights: list[FloatArray] = [windows.weights, np.ones(WIDEST)]
        self._first, self._arcs = [0], list[Arc]()
        self._known: dict[object, tuple[int, int]] = {}

    def put(
        self, repeat: KeyedRepeat, row: int, seen: NDArray[np.int64], published: Counts, mechanisms: Sequence[Mechanism]
    ) -> None:
        """Set the evidence of one repeated count in one area."""
        cells = np.array(repeat.cells)[seen]
        low, high = self._windows.low[row, cells], self._windows.high[row, cells]
        if (high - low >= WIDEST).any():
            return
        # A large count goes up as often as one that is smaller by any number of bases.
        base = step_of(mechanisms[cells[0]])
        shift = max(0, int(published[0]) // base - 8) * base
        key = (
            repeat,
            tuple(seen.tolist()),
            tuple((published[seen] - shift).tolist()),
            int(low[0]) - shift,
            int(high[0]) - shift,
        )
        if key not in self._known:
            weights, arcs = _left_by_all(*key, tuple(mechanisms[c] for c in cells))
            self._known[key] = self._size, len(self._first) - 1
            self._weights.append(weights)
            self._size += weights.size
            for some in arcs:
                self._arcs += some
                self._first.append(len(self._arcs))
        self._start[row, cells[0]], self._arc_start[row, cells[0]] = self._known[key]
        self._start[row, cells[1:]] = self._ones

    def done(self, keyed: Keyed, counts: Counts) -> KeyedEvidence:
        """Return what was built."""
        windows = replace(self._windows, start=self._start, weights=np.concatenate(self._weights))
        two_way = np.array([isinstance(how, TwoWay) for how in keyed.mechanisms])
        first, arcs = np.array(self._first, dtype=np.int64), np.array(self._arcs).reshape(-1, 2)
        arrays = keyed.constant, two_way, counts, self._arc_start, first, arcs
        return KeyedEvidence(windows, KeyInput(*arrays, *_ratio_tables(keyed), keyed.chained))


def _ratio_tables(keyed: Keyed) -> tuple[Table, int, FloatArray]:
    """Return the row of every node, the base, and the tables of ratios; of several bases, the most frequent has tables."""
    row = np.full(keyed.constant.size, -1, dtype=np.int64)
    plain = np.where(np.isfinite(keyed.constant), 0 if keyed.base is None else keyed.base, 0)
    if not plain.any():
        return row, 1, np.zeros((1, 1, 1, 1))
    base = int(np.bincount(plain[plain > 0]).argmax())
    constants, row[plain == base] = np.unique(keyed.constant[plain == base], return_inverse=True)
    return row, base, np.array([_ratios(base, constant) for constant in constants.tolist()])


@lru_cache(maxsize=1 << 10)
def _ratios(base: int, constant: float) -> FloatArray:
    """Return how much likelier keys make total and parts: by residual in steps of the base, and distances of the parts.

    Distances are true counts less published ones, from 1 − base on; where the total cannot be as far off as it then is, 1.
    """
    away = np.arange(1 - base, base)
    residual, first, second = np.meshgrid(base * np.arange(-2, 3), away, away, indexing="ij")

    def arc(distance: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
        likely = 1 - np.abs(distance) / base
        return np.where(distance < 0, 0.0, 1 - likely), np.where(distance < 0, likely, 1.0)

    total = first + second + residual
    possible = np.abs(total) < base
    arcs = arc(np.where(possible, total, 0)), arc(first), arc(second)
    alone = np.prod([end - start for start, end in arcs], axis=0)
    return np.where(possible, meeting(arcs[1:], arcs[0], constant) / alone, 1.0)


@lru_cache(maxsize=1 << 16)
def _left_by_all(
    repeat: KeyedRepeat,
    seen: tuple[int, ...],
    published: tuple[int, ...],
    low: int,
    high: int,
    hows: tuple[Mechanism, ...],
) -> tuple[FloatArray, tuple[list[Arc], ...]]:
    """Return the likelihood of all roundings of a count together, and the arcs that they leave, by true count."""
    counts = np.arange(low, high + 1)
    likely = np.array([how.likelihood(shown, counts) for how, shown in zip(hows, published, strict=True)])
    up = counts < np.array(published)[:, None]
    chances = np.where(up, likely, 1 - likely)
    lengths, central = np.zeros(len(counts)), []
    for at in range(len(counts)):
        arcs_of_count = [arc_of(bool(way), float(chance)) for way, chance in zip(up[:, at], chances[:, at], strict=True)]
        arcs = [
            common_arcs(arcs_of_count, places) if likely[:, at].all() else [] for places in repeat.places[:, seen].tolist()
        ]
        central.append(arcs[0] if repeat.constants else [(0.0, 1.0)])
        lengths[at] = np.mean([sum(end - start for start, end in some) for some in arcs])
    return (1 - OWN) * lengths + OWN * likely.prod(0), tuple(central)


def common_arcs(arcs: Sequence[Arc], places: Sequence[float]) -> list[Arc]:
    """Return the arcs of the first table's circle that all roundings leave."""
    ends = np.array(arcs) - np.array(places)[:, None]
    ordered = np.unique(np.concatenate([ends.ravel() % 1.0, [0.0, 1.0]]))
    middle = (ordered[1:] + ordered[:-1]) / 2
    inside = np.ones(len(middle), dtype=np.bool_)
    for (start, end), place in zip(arcs, places, strict=True):
        seen = (middle + place) % 1.0
        inside &= (seen >= start) & (seen < end)
    return [(float(ordered[k]), float(ordered[k + 1])) for k in np.flatnonzero(inside)]
