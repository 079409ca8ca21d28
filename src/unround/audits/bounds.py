"""What is possible in a block of areas: as the agency documents it, if counts are exact, and given nested areas.

Areas that contradict themselves leave out the sums of their smallest clash, and go on with the rest. Areas that lie within
each other are put into the same block, and inferred together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.audits.model import HIDDEN_AREA, Model
from unround.bounds.certificates import contradiction
from unround.bounds.clash import Clash, smallest_clash
from unround.bounds.linked import FamilyClash, LinkedBounds, linked_bounds, with_hidden
from unround.bounds.tighten import tighten
from unround.evidence.block import CellBounds, Ints, Windows, WindowTable
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms import Transition, Unpublished
from unround.mechanisms.base import BoolArray
from unround.proofs import contradiction_in_words
from unround.release import ABSENT, NOT_APPLICABLE, Counts
from unround.small_files import plain_arrays
from unround.structure import Nesting
from unround.sums.families import MOST_LINKED, tops
from unround.system import Cell, Sum, System

Active = NDArray[np.bool_]
"""Areas × sums: which sums are used in which area."""

EFFORT = 100_000
"""How long to look for a smaller clash, in cells and sums looked at: a tenth of a second or so."""

MOST_CLASHES = 200
"""Clashes in one area after which the rest of its sums are left alone: such an area is not worth more time."""

SUM, CELL, ASSUMPTION, UNRESOLVED, AREAS, FIGURE = "sum", "cell", "assumption", "unresolved", "areas", "figure"
"""What can be wrong: sums that cannot hold; a count that cannot come from its mechanism; an exact count that is not exact;
an area in which no combination of values adds up, though every single sum allows some; an area that cannot be the sum of
those that lie in it; a rate, a mean or a median that cannot be of the true counts."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Something in one area that cannot be.

    - `area`: The area's place in its block.
    - `kind`: What is wrong: "sum", "cell", "assumption", "unresolved", "areas" or "figure".
    - `sums`: The sums that cannot hold together, by position. They are not used in this area.
    - `cells`: The published counts that clash with them.
    - `text`: The arithmetic, for people.
    """

    area: int
    kind: str
    sums: tuple[int, ...]
    cells: tuple[int, ...]
    text: str


def drop_clashing_sums(
    model: Model, counts: Counts, windows: Windows, may_differ_by: NDArray[np.int32], active: Active
) -> tuple[CellBounds, Active, list[Contradiction]]:
    """Work out bounds; where an area has none, leave the sums of its smallest clash out until it does."""
    active = active.copy()
    tight = tighten(model.compiled, windows, active, proofs_only=True)
    clashes: list[Contradiction] = []
    open_areas = np.flatnonzero(~tight.feasible)
    while open_areas.size:
        for area in open_areas.tolist():
            within = {int(cell): int(may_differ_by[area, cell]) for cell in np.flatnonzero(may_differ_by[area])}
            clash = _clash_in(model, counts[area], within, windows, area, active)
            clashes.append(clash)
            active[area, list(clash.sums)] = False
            if sum(clash.area == area for clash in clashes) >= MOST_CLASHES:
                active[area] = False
        again = tighten(model.compiled, windows.rows(open_areas), active[open_areas], proofs_only=True)
        tight.put(open_areas, again)
        open_areas = open_areas[~again.feasible]
    return tight, active, sorted(clashes, key=lambda clash: clash.area)


def _clash_in(
    model: Model, counts: Counts, within: Mapping[int, int], windows: Windows, area: int, active: Active
) -> Contradiction:
    """Find the sums of one area that cannot hold together."""
    usable = [e for e in range(len(model.equations)) if active[area, e]]
    silent = frozenset(int(cell) for cell in np.flatnonzero(windows.unbounded[area] & (counts > ABSENT)))
    alone = _impossible_sum(model, windows, area, usable)
    suspects = [alone] if alone is not None else usable
    system = model.system(counts, suspects, within, silent)
    clash = smallest_clash(system, EFFORT)
    position = {model.columns[cell].key: cell for e in suspects for cell in model.members(e)}
    named = {str(model.sum_named(e)): e for e in suspects}
    sums = tuple(named[str(added)] for added in clash.sums)
    return Contradiction(
        area, SUM, sums, tuple(position[key] for key in clash.cells), _in_words(system, clash, model.display)
    )


def _impossible_sum(model: Model, windows: Windows, area: int, usable: list[int]) -> int | None:
    """Return a sum that cannot hold whatever the others say, the one with the fewest cells; None where there is none."""
    low, high = windows.low[area].astype(np.int64), windows.high[area].astype(np.int64)
    impossible = []
    for e in usable:
        total, parts = model.equations[e]
        if low[list(parts)].sum() > high[total] or high[list(parts)].sum() < low[total]:
            impossible.append(e)
    return min(impossible, key=lambda e: (len(model.equations[e][1]), e)) if impossible else None


def _in_words(system: System, clash: Clash, names: Mapping[str, str]) -> str:
    """Say why the sums of a clash cannot hold together, calling cells by their names for people."""
    kept = set(clash.cells)
    cells = {cell for added in clash.sums for cell in (added.total, *added.parts)}
    small = System(
        [
            Cell(names[cell.name], *((cell.published, cell.mechanism) if cell.name in kept else (None, Unpublished())))
            for cell in system.cells
            if cell.name in cells
        ],
        [Sum(names[added.total], tuple(names[part] for part in added.parts)) for added in clash.sums],
    )
    steps = contradiction(small)
    if steps is None:
        return f"{'; '.join(map(str, small.sums))} cannot hold together."
    return contradiction_in_words(small, steps)


Rows = NDArray[np.int64]
Bools = NDArray[np.bool_]

ALWAYS_TOGETHER = 200_000
"""Counts of areas that sums connect, and that are worked on together whatever these sums tell."""

MOST_TOGETHER = 1_000_000
"""The same where sums of large families tell something."""

FILE = "nested.npz"
"""Where an audit keeps it, in its folder `model/`; there is none where no area lies within another."""


@dataclass(frozen=True, eq=False)
class NestedAreas:
    """How some areas lie within each other; all areas of a family are among them.

    - `parent`: For every area the row of the area that it is a part of, or -1.
    - `alike`: For every area whether it has one child, and its numbers are those of the child: not a second rounding.
    - `sure`: For every area whether its children are known to be all of it, to the last person.
    - `cells`: For every cell of the model whether it adds up across areas.
    - `odd`, `odd_cell`, `odd_said`: Areas that cannot be the sum of those in them, and are not linked for that; the cell
      that shows it, or -1 where the model does not have it; and how.
    """

    parent: Rows
    alike: Bools
    sure: Bools
    cells: Bools
    odd: Rows
    odd_cell: Rows
    odd_said: NDArray[np.str_]

    @classmethod
    def of(cls, nesting: Nesting, model: Model, parent: Rows | None = None) -> NestedAreas:
        """Take over what was found out about a release; of the links only some, if given."""
        children = np.bincount(nesting.parent[nesting.parent >= 0], minlength=len(nesting.parent))
        parent = nesting.parent if parent is None else parent
        cells = np.ones(len(model.columns), dtype=np.bool_)
        alike = np.zeros(len(parent), dtype=np.bool_)
        inside = np.flatnonzero(parent >= 0)
        for number in np.unique(nesting.level[inside]).tolist():
            level = nesting.levels[number]
            cells &= level.columns[model.positions]
            if level.alike:
                heads = parent[inside[nesting.level[inside] == number]]
                alike[heads[children[heads] == 1]] = True
        place = {int(column): cell for cell, column in enumerate(model.positions)}
        odd = np.array([odd_one.parent for odd_one in nesting.odd], dtype=np.int64)
        shown = np.array([place.get(odd_one.column, -1) for odd_one in nesting.odd], dtype=np.int64)
        return cls(
            parent,
            alike,
            nesting.sure,
            cells,
            odd,
            shown,
            np.array([odd_one.text for odd_one in nesting.odd], dtype=np.str_),
        )

    @cached_property
    def top(self) -> Rows:
        """For every area the outermost that it lies in."""
        return tops(self.parent)

    @property
    def linked(self) -> bool:
        """Whether any area lies within another."""
        return bool((self.parent >= 0).any() and self.cells.any())

    @property
    def any(self) -> bool:
        """Whether there is anything to know: areas that are linked, or that should have been."""
        return self.linked or self.odd.size > 0

    def contradictions(self) -> list[Contradiction]:
        """Return what was found to contradict before anything was linked."""
        return [
            Contradiction(row, AREAS, (), (cell,) if cell >= 0 else (), text)
            for row, cell, text in zip(self.odd.tolist(), self.odd_cell.tolist(), self.odd_said.tolist(), strict=True)
        ]

    def arranged(self, block: int) -> tuple[Rows, Rows]:
        """Return areas in an order in which families are together, and where blocks of about so many begin and end."""
        areas = np.arange(len(self.parent))
        size = np.bincount(self.top, minlength=len(areas))[self.top]
        first = np.full(len(areas), len(areas))
        np.minimum.at(first, self.top, areas)
        inside = np.flatnonzero(size > 1)
        inside = inside[np.argsort(first[self.top[inside]], kind="stable")]
        cuts, family = [0], self.top[inside]
        ends = (np.flatnonzero(np.r_[family[1:] != family[:-1], True]) + 1).tolist() if len(inside) else []
        for before, end in zip([0, *ends[:-1]], ends, strict=True):
            if end - cuts[-1] > block and before > cuts[-1]:
                cuts.append(before)
        if len(inside):
            cuts.append(len(inside))
        alone = np.flatnonzero(size == 1)
        cuts += [min(start + block, len(areas)) for start in range(len(inside), len(areas), block)]
        return np.r_[inside, alone], np.array(cuts, dtype=np.int64)

    def reordered(self, order: Rows) -> NestedAreas:
        """Return the same with areas in another order; it may leave out whole families."""
        place = np.full(len(self.parent), -1, dtype=np.int64)
        place[order] = np.arange(len(order))
        parent = self.parent[order]
        here = np.flatnonzero(place[self.odd] >= 0)
        here = here[np.argsort(place[self.odd[here]], kind="stable")]
        return NestedAreas(
            np.where(parent >= 0, place[parent], -1),
            self.alike[order],
            self.sure[order],
            self.cells,
            place[self.odd[here]],
            self.odd_cell[here],
            self.odd_said[here],
        )

    def family(self, row: int) -> Rows:
        """Return the areas that an area is linked with, itself first."""
        with_it = np.flatnonzero(self.top == self.top[row])
        return np.concatenate([[row], with_it[with_it != row]])

    def save(self, folder: Path) -> None:
        """Write what `load` reads."""
        np.savez(folder / FILE, allow_pickle=False, **{field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def load(cls, folder: Path) -> NestedAreas | None:
        """Read it from a folder, if there is any."""
        if not (folder / FILE).exists():
            return None
        with plain_arrays(folder / FILE) as kept:
            return cls(**{field.name: kept[field.name] for field in fields(cls)})

    def check(self, areas: int, columns: int) -> None:
        """Raise ValueError unless it is about so many areas and columns: compiled code would read beyond its ends."""
        odd, row, flag = len(self.odd), np.dtype(np.int64), np.dtype(np.bool_)
        wanted = {"parent": (areas, row), "alike": (areas, flag), "sure": (areas, flag), "cells": (columns, flag)}
        for name, (size, kind) in (wanted | {"odd": (odd, row), "odd_cell": (odd, row)}).items():
            array = getattr(self, name)
            if (array.shape, array.dtype) != ((size,), kind) or self.odd_said.shape != (odd,):
                raise ValueError("its arrays do not fit together")
        for places, most in ((self.parent, areas), (self.odd, areas), (self.odd_cell, columns)):
            if ((places < -1) | (places >= most)).any():
                raise ValueError("it refers to areas or columns that do not exist")
        top = np.where(self.parent >= 0, self.parent, np.arange(areas))
        for _ in range(areas.bit_length()):
            top = top[top]
        if (self.parent[top] >= 0).any():
            raise ValueError("areas lie within each other in a circle")


Telling = Callable[[Rows], Bools]
"""Takes the parents of large families, and returns which of these families narrow the bounds of any count."""


def links_to_use(nesting: Nesting, model: Model, telling: Telling) -> tuple[Rows, Rows]:
    """Return the links that are used, and the parents whose families were looked at and tell nothing about any count.

    Families of up to `MOST_LINKED` areas are used wherever they are: probabilities are linked by them. Larger ones are used
    unless columns that add up in small families would be lost, or more areas would have to be worked on together than fit:
    then those go first that tell nothing.
    """
    parent, nothing = nesting.parent.copy(), np.zeros(0, dtype=np.int64)
    children = np.bincount(parent[parent >= 0], minlength=len(parent))
    inside = np.flatnonzero(parent >= 0)
    small = np.isin(np.arange(len(nesting.levels)), nesting.level[inside[children[parent[inside]] <= MOST_LINKED]])
    kept = np.ones(len(model.columns), dtype=np.bool_)
    for number in np.flatnonzero(small).tolist():
        kept &= nesting.levels[number].columns[model.positions]
    for number, level in enumerate(nesting.levels):
        if small.any() and not small[number] and (kept & ~level.columns[model.positions]).any():
            parent[(nesting.level == number) & (parent >= 0)] = -1
    if (heads := _crowded(parent, ALWAYS_TOGETHER // len(model.columns))).size:
        nothing = heads[~telling(heads)]
        parent[np.isin(parent, nothing)] = -1
    while (heads := _crowded(parent, MOST_TOGETHER // len(model.columns))).size:
        # In each of the groups that are too large, the largest family.
        top = tops(parent)
        order = heads[np.lexsort((heads, -children[heads], top[heads]))]
        first = order[np.r_[True, top[order][1:] != top[order][:-1]]]
        parent[np.isin(parent, first)] = -1
    return parent, nothing


def _crowded(parent: Rows, most: int) -> Rows:
    """Return the parents of large families in groups of more than so many areas."""
    top = tops(parent)
    crowded = np.bincount(top, minlength=len(parent))[top] > most
    children = np.bincount(parent[parent >= 0], minlength=len(parent))
    return np.flatnonzero(crowded & (children > MOST_LINKED))


def nesting_levels(nesting: Nesting, parent: Rows, nothing: Rows) -> list[dict[str, Any]]:
    """Return the pairs of levels as plain data, with how many families are used, and how many for probabilities too.

    `parent` and `nothing` are what `links_to_use` returned: families that were looked at and tell nothing are used.
    """
    children = np.bincount(nesting.parent[nesting.parent >= 0], minlength=len(nesting.parent))
    levels = []
    for number, level in enumerate(nesting.levels):
        here = (nesting.parent >= 0) & (nesting.level == number)
        heads = np.unique(nesting.parent[here & ((parent >= 0) | np.isin(nesting.parent, nothing))])
        linked = int((children[heads] <= MOST_LINKED).sum())
        levels.append(level.to_json() | {"linked": linked, "used": len(heads)})
    return levels


@dataclass(frozen=True, slots=True, eq=False)
class BlockBounds:
    """What is possible in a block, under one reading of how exact counts were published.

    - `windows`: The true counts that each published count leaves possible on its own.
    - `may_differ_by`: By how much each exact count may have been changed.
    - `given`: The counts that were published exactly: there is nothing to find out about them.
    - `tight`: What remains possible after all sums are applied, within areas and, where these are linked, between them.
    - `linked`: How nested areas narrowed each other's bounds, where they are linked.
    """

    windows: Windows
    may_differ_by: Ints
    given: BoolArray
    tight: CellBounds
    linked: LinkedBounds | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DocumentedBounds:
    """What the agency documents about a block: bounds, which sums hold in which area, and what contradicts."""

    bounds: BlockBounds
    active: Active
    contradictions: tuple[Contradiction, ...]


def documented_bounds(model: Model, table: WindowTable, counts: Counts, adjustable: NDArray[np.bool_]) -> DocumentedBounds:
    """Work out what is possible by what the agency documents; sums that contradict each other are set aside."""
    may_differ_by = np.where(adjustable[:, None], model.adjusted[None, :], 0).astype(np.int32)
    windows, misfit = table.of(counts, may_differ_by)
    limit_hidden(model, counts, may_differ_by, windows)
    tight, active, clashes = drop_clashing_sums(model, counts, windows, may_differ_by, applicable_sums(model, counts))
    bounds = BlockBounds(windows, may_differ_by, _given(model, counts, may_differ_by), tight)
    return DocumentedBounds(bounds, active, (*_misfits(model, counts, misfit), *clashes))


def limit_hidden(model: Model, counts: Counts, may_differ_by: Ints, windows: Windows) -> None:
    """Bound what is hidden by the people or households that were published of the same area, in place.

    And let totals say nothing of their own that show what their only part shows.
    """
    silence_copies(model, counts, windows)
    hidden = (counts <= ABSENT).any(axis=0) & ~model.hides
    cells = np.array([cell for cell in model.limits if hidden[cell]], dtype=np.int64)
    others = np.array([model.limits[cell] for cell in cells.tolist()], dtype=np.int64)
    shown = counts[:, others]
    rows, at = np.nonzero((counts[:, cells] <= ABSENT) & (shown > ABSENT) & (shown <= HIDDEN_AREA))
    most = shown[rows, at] + may_differ_by[rows, others[at]]
    windows.high[rows, cells[at]] = np.minimum(windows.high[rows, cells[at]], most)


def silence_copies(model: Model, counts: Counts, windows: Windows) -> None:
    """Take a total and its only part as one observation, in place: by cell keys the same records have the same noise.

    Parts that show 0 may have records after all; then the total was a second observation, which is given away.
    """
    for total, parts in model.equations:
        if len(parts) > 1 and all(isinstance(model.mechanisms[cell], Transition) for cell in (total, *parts)):
            shown = counts[:, list(parts)]
            alike = (shown >= 0).all(axis=1) & ((shown > 0).sum(axis=1) <= 1) & (shown.sum(axis=1) == counts[:, total])
            windows.start[alike, total] = -1


def _given(model: Model, counts: Counts, may_differ_by: Ints) -> BoolArray:
    return np.asarray(model.exact[None, :] & (counts > ABSENT) & (may_differ_by == 0))


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
    model: Model, table: WindowTable, counts: Counts, documented: DocumentedBounds
) -> tuple[BlockBounds, list[Contradiction]]:
    """Work out what is possible if counts that may have been adjusted are exact.

    Areas that have no solution then keep what is documented, and are reported. The result is the documented bounds
    themselves where the assumption makes no difference.
    """
    before = documented.bounds
    if not before.may_differ_by.any():
        return before, []
    may_differ_by = np.zeros_like(before.may_differ_by)
    windows, _ = table.of(counts, may_differ_by)
    limit_hidden(model, counts, may_differ_by, windows)
    tight = tighten(model.compiled, windows, documented.active, proofs_only=True)
    refuted = np.flatnonzero(~tight.feasible)
    if refuted.size:
        may_differ_by[refuted] = before.may_differ_by[refuted]
        windows, _ = table.of(counts, may_differ_by)
        limit_hidden(model, counts, may_differ_by, windows)
        tight.put(refuted, before.tight.rows(refuted))
    return BlockBounds(windows, may_differ_by, _given(model, counts, may_differ_by), tight), _refutations(
        model, counts, refuted, before
    )


def _refutations(model: Model, counts: Counts, refuted: NDArray[np.int64], documented: BlockBounds) -> list[Contradiction]:
    """Say for areas that only fit if an exact count was adjusted what that count must have been."""
    may_differ_by, tight, contradictions = documented.may_differ_by, documented.tight, []
    for area in refuted.tolist():
        cells = np.flatnonzero(may_differ_by[area])
        said = [
            f"{model.columns[c].key} was published as {counts[area, c]}, but its sums require {tight.low[area, c]} to "
            f"{tight.high[area, c]}"
            for c in cells
            if counts[area, c] > ABSENT and not tight.low[area, c] <= counts[area, c] <= tight.high[area, c]
        ]
        why = "; ".join(said) or "taken as exact, the counts that may have been adjusted leave no solution"
        sums = tuple(sorted({e for c in cells for e in model.touching[c]}))
        most = may_differ_by[area].max()
        text = f"{why[:1].upper()}{why[1:]}: it was adjusted, and is treated as within {most} of the truth here."
        contradictions.append(Contradiction(area, ASSUMPTION, sums, tuple(cells.tolist()), text))
    return contradictions


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
    first, more = _narrowed(model, documented, parent, cells, active, hidden)
    clashes = [_clash(model, clash) for clash in first.clashes] + more
    second = first
    if assumed is not documented:
        second, more = _narrowed(model, assumed, first.parent, cells, active, hidden)
        clashes += [_adjusted(clash) for clash in second.clashes] + more
    return (
        replace(documented, tight=first.tight, linked=first),
        replace(assumed, tight=second.tight, linked=second),
        clashes,
    )


def _narrowed(
    model: Model, bounds: BlockBounds, parent: NDArray[np.int64], cells: BoolArray, active: Active, hidden: BoolArray
) -> tuple[LinkedBounds, list[Contradiction]]:
    """Narrow bounds by sums between areas, and those of hidden counts by all sums together."""
    block = EvidenceBlock(model.compiled, bounds.windows, bounds.tight, active=active)
    narrowed = linked_bounds(block, parent, cells, proofs_only=True)
    if not hidden.any():
        return narrowed, []
    narrowed, clashing = with_hidden(block, narrowed, cells, hidden)
    text = "No counts agree with everything that is printed around this one: some sum of this table does not hold."
    return narrowed, [Contradiction(area, AREAS, (), (cell,), text) for area, cell in clashing]


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
