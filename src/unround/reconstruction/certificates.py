"""Certificates of verified claims: the columns that an argument needs as a small system, and its proof step by step.

The argument is followed back from the claim: the column that gave the bound of the cell, the columns that gave the bounds of
the other cells in it, and so on. Cells of a column that another one rules out, because nobody is in it, are taken together.
The proof is then worked out anew from this system alone, and checked by `check_proof`, which shares no code with bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.audits.certificates import read_proof
from unround.bounds.certificates import certain_windows, certificate_of_least, certificates
from unround.bounds.propagation import Bounds, propagate
from unround.mechanisms import Mechanism, Unpublished
from unround.proofs import Proof, proof_of_least, proofs_of
from unround.reconstruction.bounds import CrossTable
from unround.reconstruction.claims import AreaBounds
from unround.release import ABSENT
from unround.simulation.persons.counting import Query
from unround.system import Cell, Sum, System

MOST_COLUMNS, MOST_CELLS = 60, 400
"""Columns and cells of an argument: a longer one is not written out."""


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns of a cross table as a reader knows them.

    - `table`: Cells, and the columns they are in.
    - `names`: What each column is called.
    - `mechanisms`: How each was published.
    - `values`: The values of every attribute.
    """

    table: CrossTable
    names: list[str]
    mechanisms: list[Mechanism]
    values: Mapping[str, Sequence[str]]

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
            name = f"{of}: {', '.join(f'{one} {_words(values[one], held)}' for one, held in query) or 'everyone'}"
            names.append(name if name not in names else f"{name} (column {len(names) + 1})")
        return cls(table, names, list(mechanisms), values)

    def cell_name(self, cell: int) -> str:
        """Return what a cell is called."""
        held = zip(self.table.names, self.table.values_of(cell), strict=True)
        return ", ".join(f"{name} {self.values[name][value]}" for name, value in held)

    def members(self, column: int) -> NDArray[np.int64]:
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
    columns: Columns, counts: Sequence[int], found: AreaBounds, claim: tuple[int, int, bool]
) -> tuple[System, Proof] | None:
    """Write out why a claim holds; None where the argument is too long, or takes more than it is followed back to."""
    cell, value, exactly = claim
    system = _system(columns, counts, found, cell, exactly)
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


def _system(columns: Columns, counts: Sequence[int], found: AreaBounds, cell: int, exactly: bool) -> System | None:
    """Follow an argument back, and collect its columns, cells and sums."""
    waiting = [(cell, True), *([(cell, False)] if exactly else [])]
    seen = set(waiting)
    needed: dict[int, NDArray[np.int64]] = {}
    while waiting:
        one, lower = waiting.pop()
        column = int(found.least_by[one] if lower else found.most_by[one])
        if column < 0:
            continue
        if column not in needed:
            needed[column] = columns.members(column)
        others = needed[column]
        if len(needed) > MOST_COLUMNS:
            return None
        # A lower bound needs what the others are at most, an upper one what they are at least.
        others = others[~_ruled_out(found, others)] if lower else others[found.least[others] > 0]
        if len(others) > MOST_CELLS:
            return None
        for other in others.tolist():
            if other != one and (other, not lower) not in seen:
                seen.add((other, not lower))
                waiting.append((other, not lower))
    return _written(columns, counts, found, needed)


def _ruled_out(found: AreaBounds, cells: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say which cells are in a column that shows that nobody is."""
    by = found.most_by[cells]
    return np.asarray((found.most[cells] == 0) & (by >= 0) & (found.high[by] == 0))


def _written(
    columns: Columns, counts: Sequence[int], found: AreaBounds, needed: Mapping[int, NDArray[np.int64]]
) -> System | None:
    """Return the system of some columns and their cells."""
    parts: dict[str, Cell] = {}
    sums: list[Sum] = []
    shown = set(needed)
    for column, inside in needed.items():
        nobody = _ruled_out(found, inside) & (found.most_by[inside] != column)
        own = [columns.cell_name(int(cell)) for cell in inside[~nobody]]
        if len(own) > MOST_CELLS:
            return None
        for by in np.unique(found.most_by[inside[nobody]]).tolist():
            ruled_out = f"those of [{columns.names[column]}] who would be in [{columns.names[by]}]"
            rest = f"the others in [{columns.names[by]}] beside [{columns.names[column]}]"
            sums.append(Sum(columns.names[by], (ruled_out, rest)))
            own.append(ruled_out)
            parts[rest] = Cell(rest, None, Unpublished())
            shown.add(by)
        sums.append(Sum(columns.names[column], tuple(own)))
        parts |= {name: Cell(name, None, Unpublished()) for name in own}
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
    """Return the system and the proof of a line that `claim_line` wrote, for `check_proof`.

    Raises `InputError` if the line is not a certificate, or a damaged one.
    """
    system, proof = read_proof(line)
    return system, replace(proof, at_least=line.get("at_least") is True)
