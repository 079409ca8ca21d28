"""What linked areas share: the weights of all counts, distributions, and the methods that probabilities are obtained by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.engines.forest import marginals
from unround.engines.marginals import summary
from unround.evidence.block import BlockPosterior, Distribution, Distributions, Ints, PosteriorArrays, Windows
from unround.evidence.cells import EvidenceBlock, plain
from unround.jit import kernel
from unround.mechanisms.base import BoolArray, FloatArray
from unround.sums.families import Rows


class CountWeights:
    """The weights of all possible counts of a block, cell after cell; cells with too many possible values are not listed."""

    def __init__(self, block: EvidenceBlock) -> None:
        self.compiled, self.prior, self.active, windows = block.compiled, block.prior, block.active, block.windows
        self.bounds = block.bounds
        self.low, self.high = np.ascontiguousarray(block.bounds.low), np.ascontiguousarray(block.bounds.high)
        grid = Distributions.empty(self.low, self.high)
        self.start = grid.start
        self.width = np.where(grid.start >= 0, self.high.astype(np.int64) - self.low + 1, 0)
        self.begin = np.concatenate([[0], np.cumsum(self.width.sum(axis=1))])
        origin = np.where(windows.start >= 0, windows.start + (self.low.astype(np.int64) - windows.low), -1)
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

    def block(self) -> EvidenceBlock:
        """Return the block with these weights in its windows; cells that are not listed have bounds only."""
        windows = Windows(self.low, self.high, self.start, self.weights, np.ones(self.low.shape[1], dtype=np.bool_))
        return EvidenceBlock(self.compiled, windows, self.bounds, self.prior, self.active)

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
        return CountWeights(self.block().rows(rows))


def windows_for_tables(windows: Windows, listed: CountWeights, replaced: BoolArray) -> Windows:
    """Return the windows of a batch: as published, or as listed where other areas say more about a cell.

    Chains need not look up the weights of counts that were randomly rounded, but then keep to no bounds besides those that
    follow from the sums of the family itself.
    """
    low, high, start = (
        np.where(replaced, new, old)
        for new, old in (
            (listed.low, windows.low),
            (listed.high, windows.high),
            (np.where(listed.start >= 0, listed.start + windows.weights.size, -1), windows.start),
        )
    )
    return Windows(low, high, start, np.concatenate([windows.weights, listed.weights]), windows.certain)


def summarise(into: BlockPosterior, distributions: Distributions, rows: Rows, members: Rows) -> None:
    """Summarise distributions: those of `members` become the posterior of `rows`; cells without one stay unchanged."""
    low, high = plain(distributions.low, np.int32), plain(distributions.high, np.int32)
    _summarise(plain(rows, np.int64), plain(members, np.int64), low, high, into.arrays(distributions))


@kernel
def _summarise(rows: Rows, members: Rows, low: Ints, high: Ints, into: PosteriorArrays) -> None:
    for i in range(len(rows)):
        a, m = rows[i], members[i]
        for c in range(low.shape[1]):
            at, size = into.start[m, c], high[m, c] - low[m, c] + 1
            if at >= 0:
                summed_up = summary(into.chances[at : at + size], low[m, c], size)
                into.mode[a, c], into.probability[a, c], into.mean[a, c], into.deviation[a, c] = summed_up


class DistributionKeeper:
    """Keeps the distributions of one area; later ones replace earlier ones, as in the posterior.

    - `row`: The area; None keeps nothing.
    - `linked`: The columns in which areas add up.
    """

    def __init__(self, row: int | None, linked: BoolArray) -> None:
        self.row, self.linked = row, np.flatnonzero(linked)
        self.columns = np.arange(len(linked))
        self.cells: dict[int, Distribution] = {}
        self._place = self._representative = -1

    def enter(self, place: Rows, unit: Rows) -> None:
        """Begin a batch: `place` gives the position of areas in it, `unit` their representatives."""
        self._place = -1 if self.row is None else int(place[self.row])
        self._representative = int(unit[self._place]) if self._place >= 0 else -1

    def keep_own(self, block: EvidenceBlock) -> None:
        """Keep the distributions that follow from the areas of a batch alone."""
        if self._place >= 0:
            _, distributions = marginals(block.rows(np.array([self._place, self._representative])))
            self._put(distributions, 0, self.columns)
            self._put(distributions, 1, self.linked)

    def take(self, distributions: Distributions, rows: Rows, at: Rows) -> None:
        """Keep distributions of areas of the batch: those of `rows`, at these places in `found`."""
        for k in np.flatnonzero(rows == self._representative).tolist() if self._representative >= 0 else ():
            self._put(distributions, int(at[k]), self.columns if self._representative == self._place else self.linked)

    def _put(self, distributions: Distributions, row: int, columns: Rows) -> None:
        of_area, wanted = distributions.of(row), set(columns.tolist())
        self.cells |= {column: (low, chances.copy()) for column, (low, chances) in of_area.items() if column in wanted}


NOT_CONVERGED = "sampling did not converge, or found no counts that fit"
"""Why a family is linked for bounds and proofs only."""

OWN, MERGED, GIBBS, LOOPY, CHAINS, LISTED, APART, FAMILY = range(8)
"""Codes of methods: places in `METHODS`."""

IN_TABLES = np.array([OWN, CHAINS, LISTED, APART], dtype=np.int8)
"""The codes of areas by how their multi-way tables were answered; see `evidence.block.EXACT` and those after it."""

MERGED_IN_TABLES = np.array([MERGED, FAMILY, MERGED, APART], dtype=np.int8)
"""The same for areas that are merged with their only child."""

ALONE = frozenset({OWN, CHAINS, LISTED, APART})
"""Methods that use no other area."""

MOST_SAMPLED = 4
"""Children up to which a family is always sampled; larger ones exchange messages."""

NARROW = 6.0
"""Average number of possible counts per cell below which larger families are sampled too (base 3, not base 5): where most
children have only one possible count, few are left, and messages are overconfident."""


def is_sampled(children: int, width: float) -> bool:
    """Return whether a family with this many children, and this average number of possible counts per cell, is sampled."""
    return children <= MOST_SAMPLED or width < NARROW


@dataclass(frozen=True, slots=True)
class Method:
    """One method of obtaining probabilities.

    - `code`: Its place in `METHODS`, as in `Linked.method`.
    - `name`, `sentence`: What reports call it, and how they explain it.
    - `mean`, `worst`: Total variation distance from the exact distribution of a cell: on average, and in the worst cell
      that was compared. `docs/linked-methods.md` has the tables and how they are made.
    """

    code: int
    name: str
    sentence: str
    mean: float
    worst: float


METHODS = (
    Method(OWN, "own area", "From the area's own table alone: exact, but without information from other areas.", 0.0, 0.0),
    Method(MERGED, "merged", "The area and its only child contain the same people, published twice: exact.", 0.0, 0.0),
    Method(
        GIBBS,
        "sampled",
        f"A parent with up to {MOST_SAMPLED} children, or more where few counts are possible: Gibbs sampling of whole "
        "areas, with shrinkage towards messages.",
        0.017,
        0.11,
    ),
    Method(
        LOOPY,
        "messages",
        f"A parent with more than {MOST_SAMPLED} children: messages between areas (loopy belief propagation), approximate.",
        0.018,
        0.12,
    ),
    Method(
        CHAINS,
        "chains",
        "From all sums of the area's own multi-way table: Markov chains over whole tables that agree with each other.",
        0.011,
        0.13,
    ),
    Method(
        LISTED,
        "enumeration",
        "Chains did not agree, or may not have reached every table, but all tables that fit could be enumerated: exact.",
        0.0,
        0.0,
    ),
    Method(
        APART,
        "none",
        "Chains over whole tables do not agree or do not reach every table, and there are too many tables to enumerate: no "
        "probability uses the sums.",
        0.0,
        0.0,
    ),
    Method(
        FAMILY,
        "family chains",
        "From all sums of the multi-way tables of a parent and its children, and between them: Markov chains over the "
        "tables of the whole family.",
        0.013,
        0.1,
    ),
)
"""In the order of the codes. The errors are the largest over all family sizes and bases measured."""
