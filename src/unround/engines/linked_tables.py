"""Families whose areas have tables by several axes: one table more, with areas as a further axis, and chains over it.

A parent is the total of its children, cell by cell, as a margin is the total of what lies along an axis. So a family is
itself a table by several axes, and is answered like one (`multiway_block`): every sum of every area, and every sum between
areas, is used at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.engines.chains import Effort
from unround.engines.forest import empty_distributions, empty_posterior
from unround.engines.linked_weights import CountWeights
from unround.engines.multiway_block import WIDEST, TableBlock
from unround.evidence.block import UNSETTLED, CellBounds, Distributions, Posterior, PriorWeights, Windows
from unround.evidence.cells import Block
from unround.mechanisms.base import BoolArray, FloatArray
from unround.sums.compiled import CompiledSums
from unround.sums.families import Rows
from unround.sums.multiway import CrossedTable

EFFORT = Effort(sweeps=8000, error=0.035, rhat=1.1)
"""How long chains run; see docs/tables.md for the errors that this leaves."""

LONGEST = 1_250_000
"""Moves of a family's chains together in their first round: large tables get fewer for each leaf."""

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
    posterior: Posterior
    distributions: Distributions
    rhat: FloatArray
    error: FloatArray


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


def sample_tables(block: Block, table: CrossedTable, families: dict[int, Rows]) -> Iterator[TableSamples]:
    """Draw tables of whole families, those of one size at a time."""
    for children in sorted({len(members) for members in families.values()}):
        some = {at: members for at, members in families.items() if len(members) == children}
        rows = np.array([[at, *_in_own_order(block.bounds, table, members)] for at, members in some.items()], dtype=np.int64)
        yield _sampled(block, table, rows)


def why_not_sampled(block: Block, table: CrossedTable, linked: BoolArray, members: Rows) -> str:
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


def family_block(block: Block, table: CrossedTable, rows: Rows) -> TableBlock:
    """Return families of one size as chains take them: families × (1 + children) areas, the parents first."""
    families, members = rows.shape
    compiled, windows, prior = block.compiled, block.windows, block.prior
    whole, family = _family(compiled, table, members - 1)

    def joined(array: NDArray[Any]) -> NDArray[Any]:
        """Put the columns of a family's areas beside each other."""
        return np.ascontiguousarray(array[rows].reshape(families, -1))

    by_cell = [joined(getattr(block.bounds, name)) for name in CellBounds.__slots__ if name != "feasible"]
    bounds = CellBounds(*[*by_cell, np.ones(families, dtype=np.bool_)])
    shown = joined(windows.low), joined(windows.high), joined(windows.start)
    own = Windows(*shown, windows.weights, np.tile(windows.certain, members))
    own_prior = None
    if prior is not None:
        start = joined(prior.start)
        start[:, : compiled.columns] = -1  # a parent's counts follow from its children's
        own_prior = PriorWeights(joined(prior.low), start, prior.weights)
    return TableBlock(Block(whole, own, bounds, own_prior), family, np.arange(families))


def _sampled(block: Block, table: CrossedTable, rows: Rows) -> TableSamples:
    families, members = rows.shape
    chains = family_block(block, table, rows)
    chains.answer(replace(EFFORT, sweeps=min(EFFORT.sweeps, LONGEST // chains.table.leaves.size)))
    result = empty_posterior(families, chains.compiled.columns)
    found = empty_distributions(*(ends[rows].reshape(families, -1) for ends in (block.bounds.low, block.bounds.high)))
    chains.put(result, None, found)
    assert result.method is not None
    assert result.error is not None

    def apart(array: NDArray[Any]) -> NDArray[Any]:
        return array.reshape(families * members, -1)

    filled = np.zeros(block.compiled.columns, dtype=np.bool_)
    filled[table.cells] = True
    by_cell = ("mode", "probability", "mean", "deviation", "error")
    return TableSamples(
        rows,
        (result.method != UNSETTLED) & result.possible,
        replace(result, **{name: apart(getattr(result, name)) for name in by_cell}),
        Distributions(apart(found.low), apart(found.high), np.where(filled, apart(found.start), -1), found.chances),
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
