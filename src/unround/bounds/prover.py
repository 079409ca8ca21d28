"""Proofs across areas: certificates whose cells are named by area, checked like all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from unround.bounds.certificates import certain_windows, certificates
from unround.bounds.linked import LinkedBounds, Place, SumsOfBlock
from unround.bounds.propagation import Bounds, propagate
from unround.errors import InternalError
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms.base import BoolArray
from unround.proofs import Proof, proofs_of
from unround.system import Cell, Sum, System

BETWEEN = " · "
"""Separates area and cell in the names of cells."""

MOST_CELLS = 200_000
"""Cells of a system above which no proof is attempted: the claim is then not shown as proved."""

NEARBY = 20_000
"""Cells of all nearby areas above which only those are taken that the claim can depend on."""


class Prover:
    """Writes certificates for cells whose bounds depend on other areas.

    - `block`, `bounds`: The areas as documented, and the linked bounds by that, with `proofs_only`.
    - `linked`: The columns in which children add up to their parent.
    - `cell_of`: Takes an area's row and a column, and returns the cell: its name within the area, what was published, and
      how.
    - `names`: The areas' names; they must differ.
    """

    def __init__(
        self,
        block: EvidenceBlock,
        bounds: LinkedBounds,
        linked: BoolArray,
        cell_of: Callable[[int, int], Cell],
        names: Sequence[str],
    ) -> None:
        self.compiled, self.windows, self.bounds, self.active = block.compiled, block.windows, bounds, block.active
        self.cell_of, self.names = cell_of, names
        self.linked = np.flatnonzero(linked).tolist()
        self.sums = SumsOfBlock(block.compiled, block.active, bounds.parent, linked)
        self.children = self.sums.children

    def prove(self, area: int, columns: Sequence[int]) -> list[tuple[int, System, Proof]]:
        """Prove cells of one area.

        For every proved column: the column; the smallest system that the proof needs; and the proof, accepted by the
        independent checker. Nearby areas are tried first: those that are the same people, the families of the area,
        their families, and so on; where these are too many, all sums that the claims can depend on. What takes more than
        `MOST_CELLS` cells is left out: it must not be called proved. Raises `InternalError` if all connected areas together
        do not prove a value that propagation found.
        """
        together = [column for column in columns if (area, column) in self.bounds.loops]
        open_yet, found = [column for column in columns if column not in together], list[tuple[int, System, Proof]]()
        for areas, whole in self._wider_and_wider(area) if open_yet else ():
            if len(areas) * self.compiled.columns > NEARBY:
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
        for column in (*open_yet, *together):
            written = self._by_all_it_needs((area, column))
            found += [] if written is None else [(column, *written)]
        return found

    def _by_all_it_needs(self, place: Place) -> tuple[System, Proof] | None:
        """Prove a value by all sums that it can depend on; None if these are too many, or it would take too long."""
        loop = self.bounds.loops.get(place, ())
        places = [place, *dict.fromkeys(other for one in loop for other in self.sums.members(one) if other != place)]
        tight = self.bounds.tight
        needed = self.sums.needed(places, self.windows, tight.low, tight.high, MOST_CELLS)
        if needed is None:
            return None
        members = [self.sums.members(one) for one in dict.fromkeys((*loop, *needed))]
        inside = dict.fromkeys(other for one in members for other in one)
        alone = len({row for row, _ in inside}) == 1  # all in one area: no need to name it
        cells = {other: self.cell_of(*other) if alone else self._named(*other) for other in inside}
        system = System(
            list(cells.values()), [Sum(cells[one[0]].name, tuple(cells[part].name for part in one[1:])) for one in members]
        )
        at, value = system.index[cells[place].name], int(tight.low[place])
        proofs = proofs_of(system, certificates(system, {at: value}))
        return (_smallest(system, proofs[0]), proofs[0]) if proofs and proofs[0].value == value else None

    def _by_single_sums(self, system: System, wanted: list[int]) -> dict[int, list[dict[str, object]]]:
        """Return certificates for cells to which propagation through single sums leaves one value."""
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

    def _named(self, area: int, column: int) -> Cell:
        """Return a cell under a name that tells its area."""
        own = self.cell_of(area, column)
        return Cell(f"{self.names[area]}{BETWEEN}{own.name}", own.published, own.mechanism)

    def _system(self, areas: list[int]) -> tuple[System, dict[Place, int]]:
        """Combine areas into one system: their own sums, and those of complete families."""
        here, cells, place, sums = set(areas), list[Cell](), dict[Place, int](), list[Sum]()
        for area in areas:
            for column in range(self.compiled.columns):
                place[area, column] = len(cells)
                cells.append(self._named(area, column))
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
    sums = sums_of(proof)
    named = {proof.cell, *(name for one in sums for name in (one.total, *one.parts))}
    return System([cell for cell in system.cells if cell.name in named], sums)


def sums_of(proof: Proof) -> list[Sum]:
    """Return the sums of a proof as they come up in it, those of its refutations included."""
    found: dict[Sum, None] = {}
    lists: list[Any] = [proof.steps]
    for steps in lists:  # grows during the loop
        for step in steps:
            used = step["sums"] if step["by"] == "sums" else [step["sum"]] if step["by"] == "sum" else []
            found.update((Sum(one["total"], tuple(one["parts"])), None) for one in used)
            halves = [step["refutation"]] if step["by"] == "contradiction" else []
            for half in halves:  # grows during the loop
                halves += [half["split"]["below"], half["split"]["above"]] if "split" in half else []
                lists += [] if "split" in half else [half["steps"]]
    return list(found)
