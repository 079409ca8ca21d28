"""Proofs across areas: certificates whose cells are named by area, checked like all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from unround.batch.types import CompiledSums
from unround.errors import InternalError
from unround.infer.certify import certificates
from unround.linked.bounds import LinkedBounds
from unround.mechanisms.base import BoolArray
from unround.proofs import Proof, proofs_of
from unround.system import Cell, Sum, System

BETWEEN = " · "
"""Separates area and cell in the names of cells."""

MOST_CELLS = 20_000
"""Cells of a system above which no proof is attempted: the claim is then not shown as proved."""

Place = tuple[int, int]
"""A cell: its area's row, and its column."""


class Prover:
    """Writes certificates for cells whose bounds depend on other areas.

    - `compiled`: The sums of every area.
    - `bounds`: The linked bounds, of documented windows and with `proofs_only`.
    - `linked`: The columns in which children add up to their parent.
    - `active`: Areas × equations: which sums hold.
    - `cell_of`: Takes an area's row and a column, and returns the cell: its name within the area, what was published, and
      how.
    - `names`: The areas' names; they must differ.
    """

    def __init__(
        self,
        compiled: CompiledSums,
        bounds: LinkedBounds,
        linked: BoolArray,
        active: BoolArray | None,
        cell_of: Callable[[int, int], Cell],
        names: Sequence[str],
    ) -> None:
        self.compiled, self.bounds, self.active, self.cell_of, self.names = compiled, bounds, active, cell_of, names
        self.linked = np.flatnonzero(linked).tolist()
        self.children: dict[int, list[int]] = {}
        for row, above in enumerate(bounds.parent.tolist()):
            if above >= 0:
                self.children.setdefault(above, []).append(row)

    def prove(self, area: int, columns: Sequence[int]) -> list[tuple[int, System, Proof]]:
        """Prove cells of one area.

        For every proved column: the column; the smallest system that the proof needs; and the proof, accepted by the
        independent checker. Nearby areas are tried first: those that are the same people, the families of the area,
        their families, and so on. What takes more than `MOST_CELLS` cells is left out: it must not be called proved.
        Raises `InternalError` if all connected areas together do not prove a value that propagation found.
        """
        open_yet, found = list(columns), list[tuple[int, System, Proof]]()
        for areas, whole in self._wider_and_wider(area):
            if len(areas) * self.compiled.columns > MOST_CELLS:
                break
            system, place = self._system(areas)
            wanted = {place[area, column]: column for column in open_yet}
            for proof in proofs_of(system, self._by_single_sums(system, list(wanted))):
                column = wanted[system.index[proof.cell]]
                if proof.value != self.bounds.tight.low[area, column]:
                    continue  # a wider set may prove more, but never another value
                found.append((column, _smallest(system, proof), proof))
                open_yet.remove(column)
            if not open_yet:
                break
            if whole:
                missing = ", ".join(self._name(area, column) for column in open_yet)
                raise InternalError(f"no certificate was found for {missing}")
        return found

    def _by_single_sums(self, system: System, wanted: list[int]) -> dict[int, list[dict[str, object]]]:
        """Return certificates for cells to which propagation through single sums leaves one value."""
        from unround.infer.bounds import Bounds, propagate
        from unround.infer.certify import certain_windows

        bounds = Bounds.of(certain_windows(system))
        if not propagate(system.equations, bounds):
            raise InternalError("areas whose bounds are consistent contradict each other")
        return certificates(system, [cell for cell in wanted if bounds.lows[cell] == bounds.highs[cell]])

    def _wider_and_wider(self, area: int) -> Iterator[tuple[list[int], bool]]:
        """Yield growing sets of areas around one, and whether the set is complete."""
        near = [area]
        seen = {area}
        # First the areas that are the same people: up and down through only children.
        for row in near:
            same = self.children.get(row, [])
            above = int(self.bounds.parent[row])
            chain = [*(same if len(same) == 1 else []), *([above] if above >= 0 and len(self.children[above]) == 1 else [])]
            new = [one for one in chain if one not in seen]
            seen.update(new)
            near += new
        while True:
            edge = self._edge(near, seen)
            yield sorted(near), not edge
            if not edge:
                return
            near += edge
            seen.update(edge)

    def _edge(self, near: list[int], seen: set[int]) -> list[int]:
        """Return the areas that share a family with these, and are not yet among them."""
        edge: dict[int, None] = {}
        for row in near:
            above = int(self.bounds.parent[row])
            families = [*self.children.get(row, []), *([above, *self.children[above]] if above >= 0 else [])]
            edge.update((one, None) for one in families if one not in seen)
        return list(edge)

    def _name(self, area: int, column: int) -> str:
        return f"{self.names[area]}{BETWEEN}{self.cell_of(area, column).name}"

    def _system(self, areas: list[int]) -> tuple[System, dict[Place, int]]:
        """Combine areas into one system: their own sums, and those of complete families."""
        here, cells, place, sums = set(areas), list[Cell](), dict[Place, int](), list[Sum]()
        for area in areas:
            for column in range(self.compiled.columns):
                own = self.cell_of(area, column)
                place[area, column] = len(cells)
                cells.append(Cell(f"{self.names[area]}{BETWEEN}{own.name}", own.published, own.mechanism))
        for area in areas:
            for e, (total, parts) in enumerate(self.compiled.equations):
                if self.active is None or self.active[area, e]:
                    sums.append(_sum(cells, [place[area, column] for column in (total, *parts)]))
            children = self.children.get(area, [])
            if children and here.issuperset(children):
                sums += [_sum(cells, [place[one, column] for one in (area, *children)]) for column in self.linked]
        return System(cells, sums), place


def _sum(cells: list[Cell], positions: list[int]) -> Sum:
    total, *parts = (cells[at].name for at in positions)
    return Sum(total, tuple(parts))


def _smallest(system: System, proof: Proof) -> System:
    """Return the part of a system that a proof uses."""
    used = [step["sum"] for step in proof.steps if step["by"] == "sum"]
    sums = list(dict.fromkeys(Sum(one["total"], tuple(one["parts"])) for one in used))
    named = {proof.cell, *(name for one in sums for name in (one.total, *one.parts))}
    return System([cell for cell in system.cells if cell.name in named], sums)
