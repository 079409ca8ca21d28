"""Multi-way tables, for a block of areas: Markov chains over whole tables, or all tables where chains do not agree.

The forest leaves out sums that close loops. Where all sums of a connected piece are those of a multi-way table
(`CompiledSums.crossed`), its cells get their probabilities here, from every sum.

A parent is the total of its children, cell by cell, as a margin is the total of what lies along an axis. So a family of
areas with such a table is itself one, with areas as a further axis: every sum, within areas and between, is used at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.bounds.search import cpsat_witness
from unround.engines.chain_kernel import CellWeights, TableLeaves
from unround.engines.chains import AGREED, FROZEN, STUCK, Effort, sample
from unround.engines.enumeration import list_pinned, list_tables
from unround.engines.marginals import share_of, summary
from unround.evidence.block import (
    BY_CHAINS,
    BY_LISTING,
    NONE,
    UNSETTLED,
    BlockPosterior,
    CellBounds,
    Distributions,
    Ints,
    PosteriorArrays,
    PriorWeights,
    Windows,
)
from unround.evidence.cells import Evidence, EvidenceBlock, evidence_of, weight
from unround.jit import in_threads, inner, kernel
from unround.mechanisms import Window
from unround.mechanisms.base import BoolArray, FloatArray
from unround.sums.compiled import CompiledSums
from unround.sums.families import Rows
from unround.sums.forest import Equations
from unround.sums.multiway import CrossedTable

EFFORT = Effort(sweeps=10_000, rhat=1.1)
"""How long chains run; see docs/tables.md for the errors that this leaves."""

SOME = Effort(sweeps=4000, rhat=1.1)
"""The same where only some cells are asked about, as under the second and further priors of a set."""

QUICK = Effort(sweeps=2000, rounds=0, error=np.inf, rhat=np.inf)
"""The same where many predictions are averaged, or nothing is claimed: a standard error of two points or so."""

MOST_MOVES = 1_250_000
"""Moves of an area's chains together in their first round: large tables get fewer for each leaf."""

WIDEST = 500
"""Possible counts of a cell beyond which its table is left to the forest."""

VISITS = 1_000_000
"""Steps through all tables of an area in which chains do not agree, or find no table to start from."""

AREAS = 256
"""Areas whose weights are in memory at a time."""


def add_tables(
    block: EvidenceBlock,
    result: BlockPosterior,
    value: Ints | None = None,
    wanted: BoolArray | None = None,
    distributions: Distributions | None = None,
    *,
    quick: bool = False,
) -> None:
    """Replace what the forest says of multi-way tables with what all their sums say."""
    bounds = block.bounds
    for table in block.compiled.crossed:
        cells = table.cells
        width = bounds.high[:, cells].astype(np.int64) - bounds.low[:, cells]
        rows = bounds.feasible & (width < WIDEST).all(axis=1)
        if block.active is not None:
            rows &= block.active[:, list(table.equations)].all(axis=1)
        if wanted is not None:
            rows &= wanted[:, cells].any(axis=1)
        chosen = np.flatnonzero(rows)
        for first in range(0, chosen.size, AREAS):
            some = TableBlock(block, table, chosen[first : first + AREAS])
            effort = QUICK if quick else EFFORT if wanted is None else SOME
            some.answer(replace(effort, sweeps=min(effort.sweeps, MOST_MOVES // table.leaves.size)))
            some.put(result, value, distributions)


class TableBlock:
    """One table, in some areas.

    - `block`, `rows`: What is known of areas, and which of them.
    - `table`: The table: its cells and sums are positions in those of the block.
    """

    def __init__(self, block: EvidenceBlock, table: CrossedTable, rows: NDArray[np.int64]) -> None:
        self.compiled, self.table, self.rows = block.compiled, table, rows
        places = np.ix_(rows, table.cells)
        self.given = CellWeights.empty(block.bounds.low[places], block.bounds.high[places])
        windows = block.windows
        evidence = evidence_of(windows, block.prior)
        given, leaves = self.given, TableLeaves.of(table)
        in_threads(
            lambda first, last: _fill(first, last, rows, table.cells, leaves.is_leaf, evidence, windows.high, given),
            rows.size,
        )
        self.seeds = _seeds(given.low, given.high, given.centre)
        self.method = np.full(rows.size, BY_CHAINS, dtype=np.int8)
        self.possible = np.ones(rows.size, dtype=np.bool_)

    def answer(self, effort: Effort) -> None:
        """Run the chains; go through all tables where they do not agree, or may not reach every table."""
        few = list_pinned(self.table, self.given)
        sampled = sample(self.table, self.given, self.seeds, effort, skipped=few.complete)
        self.chances, self.error, self.rhat = sampled.chances, sampled.error, sampled.rhat
        for i in np.flatnonzero(few.complete).tolist():
            self._put_listed(i, few.chances[self.given.area[i] : self.given.area[i + 1]], few.number[i])
        for i in np.flatnonzero((sampled.status != AGREED) & ~few.complete).tolist():
            alone = self.given.one(i)
            here = slice(self.given.area[i], self.given.area[i + 1])
            listed = list_tables(self.table, alone, VISITS)
            if listed.complete[0]:
                self._put_listed(i, listed.chances, listed.number[0])
                continue
            status = sampled.status[i]
            if status == STUCK:
                begin = cpsat_witness(*self._system(alone))
                if begin is None:
                    self.possible[i] = False
                    continue
                again = sample(self.table, alone, self.seeds[i : i + 1], effort, np.array([begin], dtype=np.int32))
                status = again.status[0]
                self.chances[here], self.error[i], self.rhat[i] = again.chances, again.error[0], again.rhat[0]
            if status not in (AGREED, FROZEN) or (status == FROZEN and self._is_frozen(alone, self.chances[here])):
                self.method[i] = UNSETTLED

    def _put_listed(self, i: int, chances: FloatArray, number: float) -> None:
        """Write down what going through all tables of an area gave."""
        self.chances[self.given.area[i] : self.given.area[i + 1]] = chances
        self.error[i], self.rhat[i] = 0.0, 1.0
        self.method[i], self.possible[i] = BY_LISTING, number > 0

    def _system(self, alone: CellWeights) -> tuple[Equations, list[Window]]:
        """Return the sums of one area, and what is possible, as exact searches take them."""
        at = {int(cell): place for place, cell in enumerate(self.table.cells)}
        equations = [self.compiled.equations[e] for e in self.table.equations]
        sums = tuple((at[total], tuple(at[part] for part in parts)) for total, parts in equations)
        windows = []
        for low, high, place in zip(alone.low[0].tolist(), alone.high[0].tolist(), alone.place[0].tolist(), strict=True):
            weights = alone.weights[place : place + high - low + 1]
            windows.append(Window(low, high, weights, holes=not weights.all()))
        return sums, windows

    def _is_frozen(self, alone: CellWeights, chances: FloatArray) -> bool:
        """Return whether a count that never changed has another value in some table that fits."""
        sums, windows = self._system(alone)
        for c, (window, place) in enumerate(zip(windows, alone.place[0].tolist(), strict=True)):
            there = np.flatnonzero(chances[place : place + window.high - window.low + 1])
            if there.size > 1 or window.low == window.high:
                continue
            assert window.weights is not None
            for others in (slice(None, there[0]), slice(there[0] + 1, None)):
                weights = window.weights[others]
                low = window.low + (others.start or 0)
                narrow = Window(low, low + weights.size - 1, weights, holes=not weights.all())
                if weights.any() and cpsat_witness(sums, [*windows[:c], narrow, *windows[c + 1 :]]) is not None:
                    return True
        return False

    def put(self, result: BlockPosterior, value: Ints | None, distributions: Distributions | None) -> None:
        """Write down what was found."""
        known = self.possible & (self.method != UNSETTLED)
        values = np.zeros((1, 1), dtype=np.int32) if value is None else value
        _put(self.rows, self.table.cells, known, self.given, self.chances, values, result.arrays(distributions))
        places = np.ix_(self.rows, self.table.cells)
        result.error[places] = np.where(known[:, np.newaxis], self.error, 0.0)
        result.method[self.rows] = np.maximum(result.method[self.rows], self.method)
        result.possible[self.rows] = self.possible


def _seeds(*what: Ints) -> NDArray[np.uint64]:
    """Return for every area a seed that depends on what is known of it alone, and not on where in the release it stands."""
    hashes = np.full(len(what[0]), 0xCBF29CE484222325, dtype=np.uint64)
    for array in what:
        for column in array.T:
            hashes = (hashes ^ column.astype(np.int64).view(np.uint64)) * np.uint64(0x100000001B3)
    return hashes


@kernel
def _fill(
    first: int,
    last: int,
    rows: NDArray[np.int64],
    cells: NDArray[np.int64],
    is_leaf: BoolArray,
    evidence: Evidence,
    window_high: Ints,
    given: CellWeights,
) -> None:
    """Write down the weights of every cell of some areas."""
    low, high, place, base, centre, weights, _ = given
    for i in range(first, last):
        a = rows[i]
        for j in range(len(cells)):
            c = cells[j]
            largest = 0.0
            for k in range(high[i, j] - low[i, j] + 1):
                likely = weight(evidence, a, c, low[i, j] + k)
                weights[place[i, j] + k] = likely
                largest = max(largest, likely)
            if largest > 0.0:
                for k in range(high[i, j] - low[i, j] + 1):
                    weights[place[i, j] + k] /= largest
            if evidence.prior_start[a, c] < 0 and not (is_leaf[j] and evidence.low[a, c] == 0):
                base[i, j] = _base(evidence, a, c, evidence.low[a, c], window_high[a, c])
                if base[i, j] > 0:
                    centre[i, j] = evidence.low[a, c] + int(base[i, j]) - 1


@inner
def _base(evidence: Evidence, area: int, column: int, low: int, high: int) -> float:
    """Return the base if a window is that of unbiased random rounding, whole; 0 for any other."""
    start, size = evidence.start[area, column], high - low + 1
    if start < 0 or size < 3 or size > 99 or size % 2 == 0:
        return 0.0
    base = (size + 1) // 2
    middle = evidence.weights[start + base - 1]
    for k in range(size):
        if abs(evidence.weights[start + k] * base - middle * min(k + 1, size - k)) > 1e-9 * middle:
            return 0.0
    return float(base)


@kernel
def _put(
    rows: NDArray[np.int64],
    cells: NDArray[np.int64],
    known: BoolArray,
    given: CellWeights,
    chances: FloatArray,
    value: Ints,
    result: PosteriorArrays,
) -> None:
    """Summarise every cell; without probabilities, nothing is known of it but its bounds."""
    for i in range(len(rows)):
        a = rows[i]
        for j in range(len(cells)):
            c, low = cells[j], given.low[i, j]
            size, at = given.high[i, j] - low + 1, given.place[i, j]
            summed_up, asked = (NONE, 0.0, np.nan, np.nan), 0.0
            if size == 1:
                summed_up, asked = (int(low), 1.0, float(low), 0.0), 1.0 if len(result.asked) and value[a, c] == low else 0.0
            elif known[i]:
                summed_up = summary(chances[at : at + size], low, size)
                if len(result.asked):
                    asked = share_of(chances[at : at + size], low, size, value[a, c])
            result.mode[a, c], result.probability[a, c], result.mean[a, c], result.deviation[a, c] = summed_up
            if len(result.asked):
                result.asked[a, c] = asked
            if len(result.start) and result.start[a, c] >= 0 and known[i]:
                for k in range(size):
                    result.chances[result.start[a, c] + k] = chances[at + k] if size > 1 else 1.0


# -- families of areas ---------------------------------------------------------------------------------------------------


FAMILY_EFFORT = Effort(sweeps=8000, error=0.035, rhat=1.1)
"""How long chains run; see docs/tables.md for the errors that this leaves."""

MOST_CELLS = 1800
"""Cells of a family's table, of all its areas together, above which it is not linked: chains would take too long."""

PARTLY = "some counts of its table do not add up over areas"
SOME_SUMS = "some sums of its table do not hold in one of its areas"
MANY = "the tables of all its areas together have more than {most} counts, which would take too long to sample"
WIDE = "some count in the family has more than {widest} possible values"
"""Why a family is not linked for probabilities."""


@dataclass(frozen=True, slots=True, eq=False)
class TableSamples:
    """What chains found about families of one size, in one table.

    - `rows`: Families × (1 + children): the areas, the parent first.
    - `settled`: By family, whether its chains agree, or all its tables could be gone through; nothing is known of the
      others.
    - `posterior`, `distributions`: By area, in the order of `rows`, all columns; only those of the table are filled in.
    - `rhat`, `error`: By family, how well chains agree, and the largest standard error of a probability.
    """

    rows: Rows
    settled: BoolArray
    posterior: BlockPosterior
    distributions: Distributions
    rhat: FloatArray
    error: FloatArray


def sample_tables(block: EvidenceBlock, table: CrossedTable, families: dict[int, Rows]) -> Iterator[TableSamples]:
    """Draw tables of whole families, those of one size at a time."""
    for children in sorted({len(members) for members in families.values()}):
        some = {at: members for at, members in families.items() if len(members) == children}
        rows = np.array([[at, *_in_own_order(block.bounds, table, members)] for at, members in some.items()], dtype=np.int64)
        yield _sampled(block, table, rows)


def why_not_sampled(block: EvidenceBlock, table: CrossedTable, linked: BoolArray, members: Rows) -> str:
    """Return why chains cannot link a family in a table; nothing if they can."""
    if not linked[table.cells].all():
        return PARTLY
    if block.active is not None and not block.active[np.ix_(members, np.array(table.equations))].all():
        return SOME_SUMS
    if members.size * table.cells.size > MOST_CELLS:
        return MANY.format(most=MOST_CELLS)
    here = np.ix_(members, table.cells)
    if (block.bounds.high[here].astype(np.int64) - block.bounds.low[here] >= WIDEST).any():
        return WIDE.format(widest=WIDEST)
    return ""


def _in_own_order(bounds: CellBounds, table: CrossedTable, members: Rows) -> list[int]:
    """Return children in an order that depends on their bounds alone: results do not depend on where they stand."""
    ends = np.concatenate([bounds.low[members][:, table.cells], bounds.high[members][:, table.cells]], axis=1)
    return [int(members[i]) for i in np.lexsort(ends.T[::-1])]


def family_block(block: EvidenceBlock, table: CrossedTable, rows: Rows) -> TableBlock:
    """Return families of one size as chains take them: families × (1 + children) areas, the parents first."""
    families, members = rows.shape
    compiled, windows, prior = block.compiled, block.windows, block.prior
    whole, family = _family(compiled, table, members - 1)

    def joined(array: NDArray[Any]) -> NDArray[Any]:
        """Put the columns of a family's areas beside each other."""
        return np.ascontiguousarray(array[rows].reshape(families, -1))

    low, high, *why = map(joined, block.bounds[:6])
    bounds = CellBounds(low, high, why[0], why[1], why[2], why[3], np.ones(families, dtype=np.bool_))
    shown = joined(windows.low), joined(windows.high), joined(windows.start)
    of_family = Windows(*shown, windows.weights, np.tile(windows.certain, members))
    own_prior = None
    if prior is not None:
        start = joined(prior.start)
        start[:, : compiled.columns] = -1  # a parent's counts follow from its children's
        own_prior = PriorWeights(joined(prior.low), start, prior.weights)
    return TableBlock(EvidenceBlock(whole, of_family, bounds, own_prior), family, np.arange(families))


def _sampled(block: EvidenceBlock, table: CrossedTable, rows: Rows) -> TableSamples:
    families, members = rows.shape
    chains = family_block(block, table, rows)
    chains.answer(replace(FAMILY_EFFORT, sweeps=min(FAMILY_EFFORT.sweeps, MOST_MOVES // chains.table.leaves.size)))
    result = BlockPosterior.empty(families, chains.compiled.columns)
    distributions = Distributions.empty(
        *(ends[rows].reshape(families, -1) for ends in (block.bounds.low, block.bounds.high))
    )
    chains.put(result, None, distributions)

    def apart(array: NDArray[Any]) -> NDArray[Any]:
        return array.reshape(families * members, -1)

    filled = np.zeros(block.compiled.columns, dtype=np.bool_)
    filled[table.cells] = True
    by_cell = ("mode", "probability", "mean", "deviation", "error")
    return TableSamples(
        rows,
        (result.method != UNSETTLED) & result.possible,
        replace(result, **{name: apart(getattr(result, name)) for name in by_cell}),
        Distributions(
            apart(distributions.low),
            apart(distributions.high),
            np.where(filled, apart(distributions.start), -1),
            distributions.chances,
        ),
        chains.rhat,
        result.error.max(axis=1),
    )


@lru_cache(maxsize=64)
def _family(compiled: CompiledSums, table: CrossedTable, children: int) -> tuple[CompiledSums, CrossedTable]:
    """Return the sums of a family, and its table."""
    columns, sums = compiled.columns, len(compiled.equations)
    equations = [
        (total + member * columns, tuple(part + member * columns for part in parts))
        for member in range(children + 1)
        for total, parts in compiled.equations
    ]
    equations += [(cell, tuple(cell + child * columns for child in range(1, children + 1))) for cell in table.cells.tolist()]
    whole = replace(compiled, columns=(children + 1) * columns, equations=tuple(equations), crossed=())
    return whole, table.of_family(children, columns, sums)
