"""Proofs of single counts of a block: each by the sums, and the figures, that its bounds rest on, of one area or of several.

A proof within one area names its cells as the area does; one across areas names each cell by its area, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from unround.bounds.certificates import certain_windows, certificates
from unround.bounds.linked import LinkedBounds, Place, SumsOfBlock
from unround.bounds.propagation import Bounds, propagate
from unround.bounds.tighten import BlockRows
from unround.errors import InternalError
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms.base import BoolArray
from unround.proofs import Proof, proofs_of
from unround.system import Cell, PublishedFigure, Sum, System

BETWEEN = " · "
"""Separates area and cell in the names of cells."""

MOST_CELLS = 200_000
"""Cells of a system above which no proof is attempted: the claim is then not shown as proved."""

NEARBY = (200, 2_000, 20_000, MOST_CELLS)
"""Cells of the systems in which a proof across areas is looked for, one after the other: most need few areas."""

Proved = tuple[int, System, Proof]
"""A column; the smallest system that its proof needs; and the proof."""

Ground = tuple[list[list[Place]], list[int], bool]
"""Sums, by their cells, the total first; figures of the area; and whether a bound can depend on nothing else."""


class FigureGround(NamedTuple):
    """What figures say of a block: as bounds take it; and the figure of an area, by its number, with its columns."""

    rows: BlockRows
    published: Callable[[int, int], tuple[PublishedFigure, list[int]]]


class Prover:
    """Writes certificates for cells with one possible value.

    - `block`, `bounds`: The areas as documented, and their bounds by all sums together, with `proofs_only`.
    - `linked`: The columns in which children add up to their parent.
    - `cell_of`: Takes an area's row and a column, and returns the cell: its name within the area, what was published, and
      how.
    - `names`: The areas' names; they must differ.
    - `figures`: What figures say, where bounds use them.
    """

    def __init__(
        self,
        block: EvidenceBlock,
        bounds: LinkedBounds,
        linked: BoolArray,
        cell_of: Callable[[int, int], Cell],
        names: Sequence[str],
        figures: FigureGround | None = None,
    ) -> None:
        self.equations, self.windows, self.active = block.compiled.equations, block.windows, block.active
        self.bounds, self.cell_of, self.names, self.figures = bounds, cell_of, names, figures
        self.sums = SumsOfBlock(block.compiled, block.active, bounds.parent, linked)

    def prove(self, area: int, columns: Sequence[int]) -> list[Proved]:
        """Prove cells of one area.

        For every proved column: the column; the smallest system that the proof needs; and the proof, accepted by the
        independent checker. What takes more than `MOST_CELLS` cells is left out: it must not be called proved. Raises
        `InternalError` if all that a bound can depend on does not prove a value that propagation found.
        """
        moved, loops = self.bounds.moved[area], self.bounds.loops
        proved = self._by_single_sums(area, [column for column in columns if not moved[column]], self._of_area)
        across = [column for column in columns if moved[column] and (area, column) not in loops]
        proved += self._by_single_sums(area, across, self._across)
        for column in columns:
            if (area, column) in loops:
                proved += self._by_several(area, column)
        return proved

    def _by_single_sums(
        self, area: int, columns: list[int], grounds: Callable[[int, list[int]], Iterator[Ground]]
    ) -> list[Proved]:
        """Prove values to which propagation through single sums leads."""
        proved, left = list[Proved](), columns
        for sums, figures, complete in grounds(area, columns) if columns else ():
            system, cells = self._system(area, sums, figures)
            bounds = Bounds.of(certain_windows(system))
            if not propagate(system.equations, bounds, None, system.rows):
                raise InternalError("areas whose bounds are consistent contradict each other")
            at = {system.index[cells[area, column].name]: column for column in left if (area, column) in cells}
            pinned = [cell for cell in at if bounds.lows[cell] == bounds.highs[cell]]
            for proof in proofs_of(system, certificates(system, pinned)):
                column = at[system.index[proof.cell]]
                if proof.value == self.bounds.tight.low[area, column]:  # more sums may prove more, but never another value
                    proved.append((column, _smallest(system, proof), proof))
            done = {column for column, _, _ in proved}
            left = [column for column in columns if column not in done]
            if not left:
                break
            if complete:
                missing = ", ".join(self.cell_of(area, column).name for column in left)
                raise InternalError(f"no certificate was found for {missing}")
        return proved

    def _of_area(self, area: int, columns: list[int]) -> Iterator[Ground]:
        """Yield what the bounds of some cells depend on within their area: what moved them last; and all that there is.

        A bound moves with every bound that it depends on, so that the first is mostly enough; but not where windows have
        holes, over which a bound can jump ahead of the others, nor where propagation was cut short.
        """
        number, rows = len(self.equations), None if self.figures is None else self.figures.rows
        everything = [e for e in range(number) if self.active is None or self.active[area, e]]
        everything += range(number, number + (0 if rows is None else len(rows.figures)))
        for used in (self.moved_last(area, columns), everything):
            sums = [[(area, column) for column in (self.equations[e][0], *self.equations[e][1])] for e in used if e < number]
            said = [] if rows is None else [rows.row(area, e - number) for e in used if e >= number]
            yield sums, sorted({row.figure for row in said if row.terms}), used is everything

    def moved_last(self, area: int, columns: Iterable[int]) -> list[int]:
        """Go back from sum to sum of an area, following what moved each bound last; inequalities come after the sums."""
        tight, sums = self.bounds.tight, set[int]()
        queue = [(column, is_low) for column in columns for is_low in (True, False)]
        seen = set(queue)
        for cell, is_low in queue:  # grows during the loop
            e = int((tight.by_low if is_low else tight.by_high)[area, cell])
            if e < 0:
                continue
            sums.add(e)
            if self.figures is not None and e >= len(self.equations):
                terms = self.figures.rows.row(area, e - len(self.equations)).terms
                uses = [(other, factor > 0) for other, factor in terms if other != cell]
            else:
                total, parts = self.equations[e]
                # A total's bound depends on the same of its parts; a part's on the total's and the others' opposite ones.
                uses = [(total, is_low)] if cell != total else []
                uses += [(part, is_low == (cell == total)) for part in parts if part != cell]
            new = [use for use in uses if use not in seen]
            seen.update(new)
            queue += new
        return sorted(sums)

    def _across(self, area: int, columns: list[int]) -> Iterator[Ground]:
        """Yield the sums of areas, and between them, that the bounds of some cells can depend on: more and more of them."""
        for most in NEARBY:
            needed, complete = self._needed([(area, column) for column in columns], most)
            yield [self.sums.members(number) for number in needed], [], complete

    def _needed(self, places: Sequence[Place], most: int) -> tuple[list[int], bool]:
        tight = self.bounds.tight
        return self.sums.needed(places, self.windows, tight.low, tight.high, most)

    def _by_several(self, area: int, column: int) -> list[Proved]:
        """Prove a value that several sums pin together; nothing if that takes too many sums, or too long."""
        place, loop = (area, column), self.bounds.loops[area, column]
        around = [place, *dict.fromkeys(other for number in loop for other in self.sums.members(number) if other != place)]
        needed, complete = self._needed(around, MOST_CELLS)
        if not complete:
            return []
        sums = [self.sums.members(number) for number in dict.fromkeys((*loop, *needed))]
        system, cells = self._system(area, sums, [])
        value = int(self.bounds.tight.low[place])
        proofs = proofs_of(system, certificates(system, {system.index[cells[place].name]: value}))
        return [(column, _smallest(system, proof), proof) for proof in proofs if proof.value == value]

    def _system(self, area: int, sums: list[list[Place]], figures: list[int]) -> tuple[System, dict[Place, Cell]]:
        """Combine some sums, and figures of one area, into one system; return also its cells by their places."""
        stated = [] if self.figures is None else [self.figures.published(area, figure) for figure in figures]
        places = {place for members in sums for place in members}
        places.update((area, column) for _, columns in stated for column in columns)
        is_alone = len({row for row, _ in places}) == 1
        cells = {place: self.cell_of(*place) if is_alone else self._named(*place) for place in sorted(places)}
        named = [Sum(cells[members[0]].name, tuple(cells[part].name for part in members[1:])) for members in sums]
        return System(list(cells.values()), named, [figure for figure, _ in stated]), cells

    def _named(self, area: int, column: int) -> Cell:
        """Return a cell under a name that tells its area."""
        cell = self.cell_of(area, column)
        return Cell(f"{self.names[area]}{BETWEEN}{cell.name}", cell.published, cell.mechanism)


def _smallest(system: System, proof: Proof) -> System:
    """Return the part of a system that a proof uses."""
    used, figures = used_by(proof)
    sums, stated = (
        [stated_here for stated_here in system.sums if stated_here in used],
        [stated_here for stated_here in system.figures if stated_here.figure.name in figures],
    )
    names = {proof.cell, *(name for stated_here in sums for name in (stated_here.total, *stated_here.parts))}
    names.update(name for stated_here in stated for name in stated_here.figure.counts)
    return System([cell for cell in system.cells if cell.name in names], sums, stated)


def used_by(proof: Proof) -> tuple[list[Sum], list[str]]:
    """Return the sums of a proof, and the names of its figures, as they come up in it, those of refutations included."""
    sums, figures = dict[Sum, None](), dict[str, None]()
    lists: list[Any] = [proof.steps]
    for steps in lists:  # grows during the loop
        for step in steps:
            used = step["sums"] if step["by"] == "sums" else [step["sum"]] if step["by"] == "sum" else []
            sums.update((Sum(added["total"], tuple(added["parts"])), None) for added in used)
            if step["by"] == "figure":
                figures[step["figure"]] = None
            halves = [step["refutation"]] if step["by"] == "contradiction" else []
            for half in halves:  # grows during the loop
                halves += [half["split"]["below"], half["split"]["above"]] if "split" in half else []
                lists += [] if "split" in half else [half["steps"]]
    return list(sums), list(figures)
