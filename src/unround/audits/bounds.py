"""What is possible in a block of areas: as the agency documents it, if counts are exact, and given nested areas."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unround.audits.contradictions import AREAS, ASSUMPTION, CELL, Active, Contradiction, put, settle
from unround.audits.model import HIDDEN_AREA, Model
from unround.audits.nested import NestedAreas
from unround.bounds.linked import FamilyClash, LinkedBounds, linked_bounds, with_hidden
from unround.bounds.tighten import tighten
from unround.evidence.block import Ints, Tight, Windows, WindowTable
from unround.mechanisms.base import BoolArray
from unround.release import ABSENT, NOT_APPLICABLE, Counts


@dataclass(frozen=True, slots=True, eq=False)
class BlockBounds:
    """What is possible in a block, under one reading of how exact counts were published.

    - `windows`: The true counts that each published count leaves possible on its own.
    - `slack`: By how much each exact count may have been changed.
    - `given`: The counts that were published exactly: there is nothing to find out about them.
    - `tight`: What remains possible after all sums are applied, within areas and, where these are linked, between them.
    - `linked`: How nested areas narrowed each other's bounds, where they are linked.
    """

    windows: Windows
    slack: Ints
    given: BoolArray
    tight: Tight
    linked: LinkedBounds | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Documented:
    """What the agency documents about a block: bounds, which sums hold in which area, and what contradicts."""

    bounds: BlockBounds
    active: Active
    contradictions: tuple[Contradiction, ...]


def documented_bounds(model: Model, table: WindowTable, counts: Counts, adjustable: NDArray[np.bool_]) -> Documented:
    """Work out what is possible by what the agency documents; sums that contradict each other are set aside."""
    slack = np.where(adjustable[:, None], model.adjusted[None, :], 0).astype(np.int32)
    windows, misfit = table.of(counts, slack)
    limit_hidden(model, counts, slack, windows)
    tight, active, clashes = settle(model, counts, windows, slack, applicable_sums(model, counts))
    bounds = BlockBounds(windows, slack, _given(model, counts, slack), tight)
    return Documented(bounds, active, (*_misfits(model, counts, misfit), *clashes))


def limit_hidden(model: Model, counts: Counts, slack: Ints, windows: Windows) -> None:
    """Bound what is hidden by the people or households that were published of the same area, in place."""
    hidden = np.asarray((counts <= ABSENT).any(axis=0))
    for cell, other in model.limits.items():
        if hidden[cell] and not model.hides[cell]:
            known = (counts[:, other] > ABSENT) & (counts[:, other] <= HIDDEN_AREA)
            rows = np.flatnonzero((counts[:, cell] <= ABSENT) & known)
            most = counts[rows, other] + slack[rows, other]
            windows.high[rows, cell] = np.minimum(windows.high[rows, cell], most)


def _given(model: Model, counts: Counts, slack: Ints) -> BoolArray:
    return np.asarray(model.exact[None, :] & (counts > ABSENT) & (slack == 0))


def applicable_sums(model: Model, counts: Counts) -> Active:
    """Switch off the sums of counts that do not exist in an area."""
    active = np.ones((len(counts), len(model.equations)), dtype=bool)
    missing = counts == NOT_APPLICABLE
    for cell in np.flatnonzero(missing.any(axis=0)).tolist():
        for e in model.touching[cell]:
            active[:, e] &= ~missing[:, cell]
    return active


def _misfits(model: Model, counts: Counts, misfit: NDArray[np.bool_]) -> list[Contradiction]:
    return [
        Contradiction(
            int(area),
            CELL,
            (),
            (int(cell),),
            f"{model.columns[cell].key} was published as {counts[area, cell]}, which cannot come from "
            f"{model.mechanisms[cell].name}. It is treated as not published.",
        )
        for area, cell in np.argwhere(misfit)
    ]


def assumed_bounds(
    model: Model, table: WindowTable, counts: Counts, documented: Documented
) -> tuple[BlockBounds, list[Contradiction]]:
    """Work out what is possible if counts that may have been adjusted are exact.

    Areas that have no solution then keep what is documented, and are reported. The result is the documented bounds
    themselves where the assumption makes no difference.
    """
    before = documented.bounds
    if not before.slack.any():
        return before, []
    slack = np.zeros_like(before.slack)
    windows, _ = table.of(counts, slack)
    limit_hidden(model, counts, slack, windows)
    tight = tighten(model.compiled, windows, documented.active, proofs_only=True)
    refuted = np.flatnonzero(~tight.feasible)
    if refuted.size:
        slack[refuted] = before.slack[refuted]
        windows, _ = table.of(counts, slack)
        limit_hidden(model, counts, slack, windows)
        put(tight, before.tight, refuted, refuted)
    return BlockBounds(windows, slack, _given(model, counts, slack), tight), _refutations(model, counts, refuted, before)


def _refutations(model: Model, counts: Counts, refuted: NDArray[np.int64], documented: BlockBounds) -> list[Contradiction]:
    """Say for areas that only fit if an exact count was adjusted what that count must have been."""
    slack, tight, found = documented.slack, documented.tight, []
    for area in refuted.tolist():
        cells = np.flatnonzero(slack[area])
        said = [
            f"{model.columns[c].key} was published as {counts[area, c]}, but its sums require {tight.low[area, c]} to "
            f"{tight.high[area, c]}"
            for c in cells
            if counts[area, c] > ABSENT and not tight.low[area, c] <= counts[area, c] <= tight.high[area, c]
        ]
        why = "; ".join(said) or "taken as exact, the counts that may have been adjusted leave no solution"
        sums = tuple(sorted({e for c in cells for e in model.touching[c]}))
        text = (
            f"{why[:1].upper()}{why[1:]}: it was adjusted, and is treated as within {slack[area].max()} of the truth here."
        )
        found.append(Contradiction(area, ASSUMPTION, sums, tuple(cells.tolist()), text))
    return found


def telling_families(
    model: Model, blocks: Iterable[tuple[Counts, BoolArray]], parent: NDArray[np.int64], heads: NDArray[np.int64]
) -> BoolArray:
    """Return which families, by the rows of their parents, narrow the bounds that any area has by its own sums.

    `blocks` are all areas in their order: their counts, and which may have been adjusted.
    """
    table, number, start = WindowTable(model.mechanisms), np.full(len(parent), -1, dtype=np.int64), 0
    number[heads] = np.arange(len(heads))
    shape = len(heads), len(model.columns)
    own_low, own_high, least, most, widest = (np.zeros(shape, dtype=np.int64) for _ in range(5))
    for counts, adjustable in blocks:
        rows = np.arange(start, start + len(counts))
        start += len(counts)
        above = np.where(parent[rows] >= 0, number[parent[rows]], -1)
        if (above < 0).all() and (number[rows] < 0).all():
            continue
        tight = documented_bounds(model, table, counts, adjustable).bounds.tight
        low, high = tight.low.astype(np.int64), tight.high.astype(np.int64)
        inside, heading = above >= 0, number[rows] >= 0
        np.add.at(least, above[inside], low[inside])
        np.add.at(most, above[inside], high[inside])
        np.maximum.at(widest, above[inside], (high - low)[inside])
        own_low[number[rows[heading]]], own_high[number[rows[heading]]] = low[heading], high[heading]
    spare = np.minimum(own_high, most) - least
    need = most - np.maximum(own_low, least)
    return np.asarray(((least > own_low) | (most < own_high) | (widest > spare) | (widest > need)).any(axis=1))


def hidden_counts(counts: Counts) -> BoolArray:
    """Mark the counts that exist and are not printed; a range may be told in their place."""
    return np.asarray((counts <= ABSENT) & (counts != NOT_APPLICABLE))


def link_bounds(
    model: Model, nested: NestedAreas | None, counts: Counts, documented: BlockBounds, assumed: BlockBounds, active: Active
) -> tuple[BlockBounds, BlockBounds, list[Contradiction]]:
    """Let nested areas narrow each other's bounds until nothing changes, and all sums together those of hidden counts.

    Both bounds are returned, and families that clash.
    """
    hidden = hidden_counts(counts)
    if nested is None and not hidden.any():
        return documented, assumed, []
    parent = np.full(len(counts), -1, dtype=np.int64) if nested is None else nested.parent
    cells = np.zeros(counts.shape[1], dtype=np.bool_) if nested is None else nested.cells
    first, found = _narrowed(model, documented, parent, cells, active, hidden)
    clashes = [_clash(model, clash) for clash in first.clashes] + found
    second = first
    if assumed is not documented:
        second, found = _narrowed(model, assumed, first.parent, cells, active, hidden)
        clashes += [_adjusted(clash) for clash in second.clashes] + found
    return (
        replace(documented, tight=first.tight, linked=first),
        replace(assumed, tight=second.tight, linked=second),
        clashes,
    )


def _narrowed(
    model: Model, bounds: BlockBounds, parent: NDArray[np.int64], cells: BoolArray, active: Active, hidden: BoolArray
) -> tuple[LinkedBounds, list[Contradiction]]:
    """Narrow bounds by sums between areas, and those of hidden counts by all sums together."""
    found = linked_bounds(model.compiled, bounds.windows, bounds.tight, parent, cells, active, proofs_only=True)
    if not hidden.any():
        return found, []
    found, clashing = with_hidden(model.compiled, bounds.windows, found, cells, active, hidden)
    text = "No counts agree with everything that is printed around this one: some sum of this table does not hold."
    return found, [Contradiction(area, AREAS, (), (cell,), text) for area, cell in clashing]


def _clash(model: Model, clash: FamilyClash) -> Contradiction:
    """Put into words that an area is not the sum of those within it; where no single count shows it, all its sums do."""
    column = clash.column
    what = f"{model.columns[column].key} cannot be the sum" if column >= 0 else "Its counts cannot be the sums"
    text = f"{what} of the same counts in the areas within it. These areas are not linked."
    return Contradiction(clash.parent, AREAS, (), (column,) if column >= 0 else (), text)


def _adjusted(clash: FamilyClash) -> Contradiction:
    text = (
        "Taken as exact, the counts that may have been adjusted in this area and in those within it leave no solution: some "
        "were adjusted. They are linked for proofs, not for probabilities."
    )
    return Contradiction(clash.parent, ASSUMPTION, (), (clash.column,) if clash.column >= 0 else (), text)
