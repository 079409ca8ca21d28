"""Multi-way tables, for a block of areas: Markov chains over whole tables, or enumeration where chains do not agree.

The forest leaves out sums that close loops. Where all sums of a connected piece are those of a multi-way table
(`CompiledSums.multiway`), its cells get their probabilities here, from every sum.

A parent is the total of its children, cell by cell, as a margin is the total of what lies along an axis. So a family of
areas with such a table is itself one, with areas as a further axis: every sum, within areas and between, is used at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.engines.chain_kernel import CellWeights, TableLeaves
from unround.engines.chains import Effort, FamilySamples
from unround.engines.enumeration import list_pinned
from unround.engines.marginals import share_of, summary
from unround.engines.multiway import TableAreas, base_of
from unround.evidence.block import (
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
from unround.jit import in_threads, kernel
from unround.mechanisms.base import BoolArray, FloatArray
from unround.sums.compiled import CompiledSums
from unround.sums.families import Rows
from unround.sums.multiway import MultiwayTable

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
"""Steps of an enumeration, in areas where chains do not agree, or find no table to start from."""

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
    for table in block.compiled.multiway:
        cells = table.cells
        width = bounds.high[:, cells].astype(np.int64) - bounds.low[:, cells]
        rows = bounds.feasible & (width < WIDEST).all(axis=1)
        if block.active is not None:
            rows &= block.active[:, list(table.equations)].all(axis=1)
        if wanted is not None:
            rows &= wanted[:, cells].any(axis=1)
        chosen = np.flatnonzero(rows)
        for first in range(0, chosen.size, AREAS):
            some = chosen[first : first + AREAS]
            areas = table_areas(block, table, some)
            _answer(areas, QUICK if quick else EFFORT if wanted is None else SOME)
            _put_into(areas, some, result, value, distributions)


def table_areas(block: EvidenceBlock, table: MultiwayTable, rows: NDArray[np.int64]) -> TableAreas:
    """Return a table in some areas of a block: its cells and sums are positions in those of the block."""
    places = np.ix_(rows, table.cells)
    given = CellWeights.empty(block.bounds.low[places], block.bounds.high[places])
    evidence, high = evidence_of(block.windows, block.prior), block.windows.high
    is_leaf = TableLeaves.of(table).is_leaf
    in_threads(lambda first, last: _fill(first, last, rows, table.cells, is_leaf, evidence, high, given), rows.size)
    return TableAreas(table, block.compiled.equations, given)


def _answer(areas: TableAreas, effort: Effort) -> None:
    """Answer all areas, with no more moves in the first round than a table's size allows."""
    sweeps = min(effort.sweeps, MOST_MOVES // areas.table.leaves.size)
    areas.answer(replace(effort, sweeps=sweeps), list_pinned(areas.table, areas.given), VISITS)


def _put_into(
    areas: TableAreas,
    rows: NDArray[np.int64],
    result: BlockPosterior,
    value: Ints | None,
    distributions: Distributions | None,
) -> None:
    """Write down what was found."""
    known, cells = areas.possible & (areas.method != UNSETTLED), areas.table.cells
    values = np.zeros((1, 1), dtype=np.int32) if value is None else value
    _put(rows, cells, known, areas.given, areas.chances, values, result.arrays(distributions))
    result.error[np.ix_(rows, cells)] = np.where(known[:, np.newaxis], areas.error, 0.0)
    result.method[rows] = np.maximum(result.method[rows], areas.method)
    result.possible[rows] = areas.possible


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
                of_window = base_of(evidence.weights, evidence.start[a, c], window_high[a, c] - evidence.low[a, c] + 1)
                if of_window > 0:
                    base[i, j], centre[i, j] = of_window, evidence.low[a, c] + of_window - 1


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


def sample_tables(block: EvidenceBlock, table: MultiwayTable, families: dict[int, Rows]) -> Iterator[FamilySamples]:
    """Draw tables of whole families, those of one size at a time."""
    for children in sorted({len(members) for members in families.values()}):
        some = {at: members for at, members in families.items() if len(members) == children}
        rows = np.array([[at, *_in_own_order(block.bounds, table, members)] for at, members in some.items()], dtype=np.int64)
        yield _sampled(block, table, rows)


def why_not_sampled(block: EvidenceBlock, table: MultiwayTable, linked: BoolArray, members: Rows) -> str:
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


def _in_own_order(bounds: CellBounds, table: MultiwayTable, members: Rows) -> list[int]:
    """Return children in an order that depends on their bounds alone: results do not depend on where they stand."""
    ends = np.concatenate([bounds.low[members][:, table.cells], bounds.high[members][:, table.cells]], axis=1)
    return [int(members[i]) for i in np.lexsort(ends.T[::-1])]


def family_areas(block: EvidenceBlock, table: MultiwayTable, rows: Rows) -> TableAreas:
    """Return families of one size as chains take them; `rows` are families × areas, the parents first."""
    families, members = rows.shape
    compiled, windows, prior = block.compiled, block.windows, block.prior
    whole, family = _family(compiled, table, members - 1)

    def joined(array: NDArray[Any]) -> NDArray[Any]:
        """Put the columns of a family's areas beside each other."""
        return np.ascontiguousarray(array[rows].reshape(families, -1))

    low, high, by_low, by_high = map(joined, block.bounds[:4])
    bounds = CellBounds(low, high, by_low, by_high, np.ones(families, dtype=np.bool_))
    shown = joined(windows.low), joined(windows.high), joined(windows.start)
    of_family = Windows(*shown, windows.weights, np.tile(windows.certain, members))
    own_prior = None
    if prior is not None:
        start = joined(prior.start)
        start[:, : compiled.columns] = -1  # a parent's counts follow from its children's
        own_prior = PriorWeights(joined(prior.low), start, prior.weights)
    together = EvidenceBlock(whole, of_family, bounds, own_prior)
    return table_areas(together, family, np.arange(families))


def _sampled(block: EvidenceBlock, table: MultiwayTable, rows: Rows) -> FamilySamples:
    """Return what chains, or enumeration, find about families of one size, in the cells of the table."""
    families, members = rows.shape
    areas = family_areas(block, table, rows)
    _answer(areas, FAMILY_EFFORT)

    def apart(array: NDArray[Any], into: NDArray[Any]) -> NDArray[Any]:
        """Put the cells of a family's areas below each other."""
        into[:, table.cells] = array.reshape(rows.size, -1)
        return into

    known, everywhere = areas.possible & (areas.method != UNSETTLED), (rows.size, block.compiled.columns)
    start = apart(areas.given.place, np.full(everywhere, -1, dtype=np.int64))
    return FamilySamples(
        rows.ravel(),
        np.repeat(np.arange(families), members),
        Distributions(block.bounds.low[rows.ravel()], block.bounds.high[rows.ravel()], start, areas.chances),
        areas.rhat,
        areas.error.max(axis=1),
        ~known,
        apart(areas.error, np.zeros(everywhere)),
    )


@lru_cache(maxsize=64)
def _family(compiled: CompiledSums, table: MultiwayTable, children: int) -> tuple[CompiledSums, MultiwayTable]:
    """Return the sums of a family, and its table."""
    columns, sums = compiled.columns, len(compiled.equations)
    equations = [
        (total + member * columns, tuple(part + member * columns for part in parts))
        for member in range(children + 1)
        for total, parts in compiled.equations
    ]
    equations += [(cell, tuple(cell + child * columns for child in range(1, children + 1))) for cell in table.cells.tolist()]
    whole = replace(compiled, columns=(children + 1) * columns, equations=tuple(equations), multiway=())
    return whole, table.of_family(children, columns, sums)
