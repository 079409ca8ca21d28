"""Verified claims: so many persons with these attributes live here, in every world that fits the tables.

A claim follows from bounds that were propagated. Claims of few persons alone are counted: they single people out.

Bounds are those of every cell of the full cross table of an area, propagated from the windows of all columns to a fixpoint.
A cell is a combination of values of all attributes. A column that counts at most U persons leaves a cell no more than U less
what the other cells of the column have at least; one that counts at least L leaves it no less than L minus what the others
have at most. Bounds hold in every world that fits; only columns whose windows are certain are used.

A certificate is the columns that an argument needs as a small system, and its proof step by step. The argument is followed
back from the claim: the column that gave the bound of the cell, the columns that gave the bounds of the other cells in it,
and so on. Cells of a column that another one rules out, because nobody is in it, are taken together. The proof is then
worked out anew from this system alone, and checked by `check_proof`, which shares no code with bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.audits.certificates import read_proof
from unround.bounds.certificates import certain_windows, certificate_of_least, certificates
from unround.bounds.propagation import Bounds, propagate
from unround.jit import kernel
from unround.mechanisms import Mechanism, Suppressed, Unpublished
from unround.proofs import Proof, proof_of_least, proofs_of
from unround.release import ABSENT, SUPPRESSED
from unround.simulation.persons import Query, joined, margins
from unround.system import Cell, Sum, System

Ints = NDArray[np.int64]

MOST_CELLS = 300_000  # cells of a cross table: with more, bounds are worked out for fewer attributes

MOST_PASSES = 40
UNBOUNDED = 1 << 40


class CellLayout(NamedTuple):
    """The cells of a cross table and the columns they are in.

    `atom[m, c]` is the atom of cell c in margin m, numbered through all margins; atom a is in columns
    held[starts[a]:starts[a + 1]].
    """

    atom: NDArray[np.int32]
    starts: Ints
    held: NDArray[np.int32]
    columns: int


@dataclass(frozen=True, slots=True, eq=False)
class CrossTable:
    """The cross table that bounds are worked out for."""

    names: tuple[str, ...]  # its attributes
    shape: tuple[int, ...]  # how many values each has
    used: list[int]  # the columns that are about these attributes alone
    layout: CellLayout  # cells and columns, as arrays

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return prod(self.shape)

    def cell_of(self, codes: Mapping[str, NDArray[np.int16]]) -> Ints:
        """Return the cell of every person."""
        place = np.zeros(len(next(iter(codes.values()))), dtype=np.int64)
        for name, size in zip(self.names, self.shape, strict=True):
            place = place * size + codes[name]
        return place


def cross_table(queries: Sequence[Query], sizes: Mapping[str, int]) -> CrossTable:
    """Lay out the cross table of as many attributes as fit, those that most columns are about first."""
    attributes = [{name for name, _ in query} for query in queries]
    about = {name: sum(name in of for of in attributes) for name in sizes}
    names: list[str] = []
    for name in sorted(sizes, key=lambda name: (-about[name], name)):
        if about[name] and prod(sizes[each] for each in (*names, name)) <= MOST_CELLS:
            names.append(name)
    used = [at for at, of in enumerate(attributes) if of <= set(names)]
    shape = tuple(sizes[name] for name in names)
    grouped = margins([queries[at] for at in used], sizes)
    grid = dict(zip(names, np.indices(shape, dtype=np.int16).reshape(len(names), -1), strict=True)) if names else {}
    atom = np.zeros((len(grouped), prod(shape)), dtype=np.int32)
    first, starts, held = joined(grouped)
    for m, margin in enumerate(grouped):
        atom[m] = first[m] + (margin.atom_of(grid) if margin.attributes else 0)
    return CrossTable(tuple(names), shape, used, CellLayout(atom, starts, held, len(used)))


def column_bounds(counts: Sequence[int], mechanisms: Sequence[Mechanism]) -> tuple[Ints, Ints]:
    """Return the smallest and the largest true count of every column, as far as that is certain."""
    low, high = np.zeros(len(counts), dtype=np.int64), np.full(len(counts), UNBOUNDED, dtype=np.int64)
    for at, (value, how) in enumerate(zip(counts, mechanisms, strict=True)):
        if value <= ABSENT and not (value == SUPPRESSED and isinstance(how, Suppressed)):
            continue
        window = how.window(None if value <= ABSENT else int(value))
        if window.certain:
            low[at] = window.low
            high[at] = UNBOUNDED if window.high is None else window.high
    return low, high


@kernel
def propagated(
    layout: CellLayout, low: Ints, high: Ints, passes: int
) -> tuple[Ints, Ints, NDArray[np.int32], NDArray[np.int32], bool]:
    """Return the bounds of every cell, the columns that gave them last (−1 for none), and whether any world can fit."""
    margins_, cells = layout.atom.shape
    atoms = layout.starts.shape[0] - 1
    least, most = np.zeros(cells, np.int64), np.full(cells, UNBOUNDED, np.int64)
    least_by, most_by = np.full(cells, -1, np.int32), np.full(cells, -1, np.int32)
    sum_low, sum_high = np.empty(layout.columns, np.int64), np.empty(layout.columns, np.int64)
    atom_low, atom_high = np.empty(atoms, np.int64), np.empty(atoms, np.int64)
    room, need = np.empty(atoms, np.int64), np.empty(atoms, np.int64)
    room_by, need_by = np.empty(atoms, np.int32), np.empty(atoms, np.int32)
    for _ in range(passes):
        atom_low[:] = 0
        atom_high[:] = 0
        for m in range(margins_):
            for c in range(cells):
                atom_low[layout.atom[m, c]] += least[c]
                atom_high[layout.atom[m, c]] = min(UNBOUNDED, atom_high[layout.atom[m, c]] + most[c])
        sum_low[:] = 0
        sum_high[:] = 0
        for a in range(atoms):
            for at in range(layout.starts[a], layout.starts[a + 1]):
                sum_low[layout.held[at]] += atom_low[a]
                sum_high[layout.held[at]] = min(UNBOUNDED, sum_high[layout.held[at]] + atom_high[a])
        for column in range(layout.columns):
            if sum_low[column] > high[column] or sum_high[column] < low[column]:
                return least, most, least_by, most_by, False
        for a in range(atoms):
            room[a], need[a], room_by[a], need_by[a] = UNBOUNDED, -UNBOUNDED, -1, -1
            for at in range(layout.starts[a], layout.starts[a + 1]):
                column = layout.held[at]
                if high[column] < UNBOUNDED and high[column] - sum_low[column] < room[a]:
                    room[a], room_by[a] = high[column] - sum_low[column], column
                if sum_high[column] < UNBOUNDED and low[column] - sum_high[column] > need[a]:
                    need[a], need_by[a] = low[column] - sum_high[column], column
        changed = False
        for c in range(cells):
            space, wanted, space_by, wanted_by = UNBOUNDED, -UNBOUNDED, -1, -1
            for m in range(margins_):
                a = layout.atom[m, c]
                if room[a] < space:
                    space, space_by = room[a], room_by[a]
                if need[a] > wanted:
                    wanted, wanted_by = need[a], need_by[a]
            before, after = least[c], most[c]
            if before + space < after:
                most[c], most_by[c], changed = before + space, space_by, True
            if after < UNBOUNDED and after + wanted > before:
                least[c], least_by[c], changed = after + wanted, wanted_by, True
        if not changed:
            break
    return least, most, least_by, most_by, True


SMALL = 3  # claims of at most so many persons are counted


@dataclass(frozen=True, slots=True, eq=False)
class AreaBounds:
    """The bounds of one area: the smallest and the largest count of every cell, and the columns' own.

    `least_by` and `most_by` are the columns that gave the bounds of the cells; −1 for none.
    """

    least: Ints
    most: Ints
    low: Ints
    high: Ints
    fits: bool
    least_by: NDArray[np.int32]
    most_by: NDArray[np.int32]

    def claims(self) -> list[tuple[int, int, bool]]:
        """Return cells with at least one person, how many that are at least, and whether it is exactly so many."""
        there = np.flatnonzero((self.least > 0) & (self.least <= SMALL))
        return [(int(cell), int(self.least[cell]), bool(self.least[cell] == self.most[cell])) for cell in there]


def area_bounds(table: CrossTable, counts: Sequence[int], mechanisms: Sequence[Mechanism]) -> AreaBounds:
    """Work out the bounds of an area; `counts` and `mechanisms` are those of the columns that the cross table uses."""
    low, high = column_bounds(counts, mechanisms)
    least, most, least_by, most_by, fits = propagated(table.layout, low, high, MOST_PASSES)
    return AreaBounds(least, np.minimum(most, UNBOUNDED), low, high, bool(fits), least_by, most_by)


MOST_COLUMNS, MOST_SUMMED = 60, 400  # columns and cells of an argument: a longer one is not written out


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns of a cross table as a reader knows them."""

    table: CrossTable  # cells, and the columns they are in
    names: list[str]  # what each column is called
    mechanisms: list[Mechanism]  # how each was published
    values: Mapping[str, Sequence[str]]  # the values of every attribute

    @classmethod
    def of(
        cls,
        table: CrossTable,
        queries: Sequence[Query],
        tables: Sequence[str],
        mechanisms: Sequence[Mechanism],
        values: Mapping[str, Sequence[str]],
    ) -> Columns:
        """Name the columns that a cross table uses: by table and what they count, with a number where that is not enough."""
        names: list[str] = []
        for query, of in zip(queries, tables, strict=True):
            about = ", ".join(f"{attribute} {_words(values[attribute], held)}" for attribute, held in query)
            name = f"{of}: {about or 'everyone'}"
            names.append(name if name not in names else f"{name} (column {len(names) + 1})")
        return cls(table, names, list(mechanisms), values)

    def cell_name(self, cell: int) -> str:
        """Return what a cell is called."""
        held = zip(self.table.names, np.unravel_index(cell, self.table.shape), strict=True)
        return ", ".join(f"{name} {self.values[name][int(value)]}" for name, value in held)

    def members(self, column: int) -> Ints:
        """Return the cells of a column."""
        layout = self.table.layout
        atom = np.repeat(np.arange(len(layout.starts) - 1), np.diff(layout.starts))
        inside = np.zeros(len(layout.starts) - 1, dtype=bool)
        inside[atom[layout.held == column]] = True
        return np.flatnonzero(inside[layout.atom].any(axis=0))


def _words(values: Sequence[str], held: frozenset[int]) -> str:
    """Name some values of an attribute."""
    codes = sorted(held)
    if len(codes) > 2 and codes == list(range(codes[0], codes[-1] + 1)):
        return f"{values[codes[0]]} to {values[codes[-1]]}"
    return " or ".join(values[code] for code in codes)


def certificate(
    columns: Columns, counts: Sequence[int], known: AreaBounds, claim: tuple[int, int, bool]
) -> tuple[System, Proof] | None:
    """Write out why a claim holds; None where the argument is too long, or takes more than it is followed back to."""
    cell, value, exactly = claim
    system = _system(columns, counts, known, cell, exactly)
    name = columns.cell_name(cell)
    if system is None or name not in system.index:
        return None
    place = system.index[name]
    bounds = Bounds.of(certain_windows(system))
    if not propagate(system.equations, bounds) or bounds.lows[place] != value:
        return None
    if not exactly:
        steps = certificate_of_least(system, place, value)
        return None if steps is None else (system, proof_of_least(system, name, steps))
    if bounds.highs[place] != value:
        return None
    return system, proofs_of(system, certificates(system, [place]))[0]


def _system(columns: Columns, counts: Sequence[int], bounds: AreaBounds, cell: int, exactly: bool) -> System | None:
    """Follow an argument back, and collect its columns, cells and sums."""
    waiting = [(cell, True), *([(cell, False)] if exactly else [])]
    seen = set(waiting)
    needed: dict[int, Ints] = {}
    while waiting:
        reached, lower = waiting.pop()
        column = int(bounds.least_by[reached] if lower else bounds.most_by[reached])
        if column < 0:
            continue
        if column not in needed:
            needed[column] = columns.members(column)
        others = needed[column]
        if len(needed) > MOST_COLUMNS:
            return None
        # A lower bound needs what the others are at most, an upper one what they are at least.
        others = others[~_ruled_out(bounds, others)] if lower else others[bounds.least[others] > 0]
        if len(others) > MOST_SUMMED:
            return None
        for other in others.tolist():
            if other != reached and (other, not lower) not in seen:
                seen.add((other, not lower))
                waiting.append((other, not lower))
    return _written(columns, counts, bounds, needed)


def _ruled_out(bounds: AreaBounds, cells: Ints) -> NDArray[np.bool_]:
    """Return which cells are in a column that shows that nobody is."""
    by = bounds.most_by[cells]
    return np.asarray((bounds.most[cells] == 0) & (by >= 0) & (bounds.high[by] == 0))


def _written(columns: Columns, counts: Sequence[int], bounds: AreaBounds, needed: Mapping[int, Ints]) -> System | None:
    """Return the system of some columns and their cells."""
    parts: dict[str, Cell] = {}
    sums: list[Sum] = []
    shown = set(needed)
    for column, inside in needed.items():
        nobody = _ruled_out(bounds, inside) & (bounds.most_by[inside] != column)
        names = [columns.cell_name(int(cell)) for cell in inside[~nobody]]
        if len(names) > MOST_SUMMED:
            return None
        for by in np.unique(bounds.most_by[inside[nobody]]).tolist():
            ruled_out = f"those of [{columns.names[column]}] who would be in [{columns.names[by]}]"
            rest = f"the others in [{columns.names[by]}] beside [{columns.names[column]}]"
            sums.append(Sum(columns.names[by], (ruled_out, rest)))
            names.append(ruled_out)
            parts[rest] = Cell(rest, None, Unpublished())
            shown.add(by)
        sums.append(Sum(columns.names[column], tuple(names)))
        parts |= {name: Cell(name, None, Unpublished()) for name in names}
    published = {at: None if counts[at] <= ABSENT else int(counts[at]) for at in sorted(shown)}
    cells = [Cell(columns.names[at], count, columns.mechanisms[at]) for at, count in published.items()]
    return System([*cells, *parts.values()], sums)


# -- as plain data ----------------------------------------------------------------------------------------------------


def claim_line(area: str, system: System, proof: Proof) -> dict[str, Any]:
    """Return a certificate as plain data, with all that is needed to check it."""
    cells = [{"name": c.name, "published": c.published, "mechanism": c.mechanism.name} for c in system.cells]
    sums = [{"total": s.total, "parts": list(s.parts)} for s in system.sums]
    return {"region": area, **proof.to_json(), "cells": cells, "sums": sums}


def read_claim(line: dict[str, Any]) -> tuple[System, Proof]:
    """Return the system and the proof of a line that `claim_line` wrote, for `check_proof`."""
    system, proof = read_proof(line)
    return system, replace(proof, at_least=line.get("at_least") is True)
