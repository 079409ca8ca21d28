"""The model: everything that all areas of a release share, made once from its structure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unround.batch.compile import compile_layout
from unround.batch.types import Layout
from unround.errors import InputError
from unround.infer.bounds import Equations
from unround.mechanisms import Exact, Mechanism, Unpublished, Within
from unround.release import ABSENT, SUPPRESSED, Column, Counts
from unround.structure import Structure
from unround.system import Cell, Sum, System


@dataclass(frozen=True, eq=False)
class Model:
    """The cells of an area, how they were published, and how they add up.

    Parameters
    ----------
    columns : tuple of Column
        The cells that are audited. Columns that only repeat another, or of which nobody knows how they were published,
        are not among them.
    positions : array
        Where each of them is among the release's columns.
    mechanisms : tuple of Mechanism
        How each was published.
    equations, origins
        The sums, as positions of cells, and who proposed them.
    fixed : frozenset of int
        The cells that are taken as exact everywhere.
    layout : Layout
        The same, compiled.
    """

    columns: tuple[Column, ...]
    positions: NDArray[np.int64]
    mechanisms: tuple[Mechanism, ...]
    equations: Equations
    origins: tuple[str, ...]
    fixed: frozenset[int]
    layout: Layout

    @classmethod
    def of(cls, structure: Structure, exact_population: bool = True) -> Model:
        """Compile a structure.

        Parameters
        ----------
        structure : Structure
            Which sums hold, and how each column was published.
        exact_population : bool
            Whether counts that may have been adjusted a little are taken as exact all the same.

        Raises
        ------
        InputError
            If no sum holds, so that there is nothing to infer from.
        """
        used = [c for c, how in enumerate(structure.mechanisms) if how is not None and c not in structure.alias]
        at = {c: i for i, c in enumerate(used)}
        known = [
            (equation, structure.sums[at_sum].origin)
            for equation, at_sum in zip(structure.equations, structure.equation_sums, strict=True)
            if all(c in at for c in (equation[0], *equation[1]))
        ]
        if not known and any(one.exactly for one in structure.rejected):
            raise InputError(
                "there is nothing to infer from in this table: all its sums add up exactly in all areas, so that totals "
                "were added up after rounding, or all counts rounded together (controlled rounding). Such totals tell "
                "nothing that their parts do not. `unround inspect FILE --all` shows what was tried."
            )
        if not known:
            raise InputError(
                "there is no usable sum in this table: no total is published together with its parts, so that nothing can "
                "be inferred. `unround inspect FILE` shows what was tried; sums of your own go into a plan "
                "(`unround inspect FILE --write plan.toml`, then `unround audit FILE --plan plan.toml`)."
            )
        return cls.build(
            tuple(structure.columns[c] for c in used),
            tuple(how for how in (structure.mechanisms[c] for c in used) if how is not None),
            tuple((at[total], tuple(at[part] for part in parts)) for (total, parts), _ in known),
            tuple(origin for _, origin in known),
            exact_population,
            np.array(used, dtype=np.int64),
        )

    @classmethod
    def build(
        cls,
        columns: tuple[Column, ...],
        mechanisms: tuple[Mechanism, ...],
        equations: Equations,
        origins: tuple[str, ...],
        exact_population: bool = True,
        positions: NDArray[np.int64] | None = None,
    ) -> Model:
        """Compile cells and sums that are already known to hold; by default every column is a cell."""
        loose = () if exact_population else [i for i, column in enumerate(columns) if column.adjusted]
        fixed = frozenset(i for i, how in enumerate(mechanisms) if isinstance(how, Exact)).difference(loose)
        places = np.arange(len(columns)) if positions is None else positions
        return cls(columns, places, mechanisms, equations, origins, fixed, compile_layout(len(columns), equations, fixed))

    @cached_property
    def index(self) -> dict[str, int]:
        """Where each cell is, by its key."""
        return {column.key: at for at, column in enumerate(self.columns)}

    @cached_property
    def adjusted(self) -> NDArray[np.int32]:
        """By how much the agency may have changed each cell in areas that are marked for it."""
        return np.array([column.adjusted for column in self.columns], dtype=np.int32)

    @cached_property
    def exact(self) -> NDArray[np.bool_]:
        """Which cells were published as they are: there is nothing to find out about them."""
        return np.array([isinstance(how, Exact) for how in self.mechanisms])

    @cached_property
    def hides(self) -> NDArray[np.bool_]:
        """Which cells have a mechanism that hides counts, and so says something about those that are hidden."""
        hiding = {how: _hides(how) for how in set(self.mechanisms)}
        return np.array([hiding[how] for how in self.mechanisms])

    @cached_property
    def exact_twin(self) -> dict[int, tuple[int, int]]:
        """Rounded cells that show a count which another cell shows exactly: that cell, and the sum that says so."""
        found = {}
        for e, (total, parts) in enumerate(self.equations):
            if len(parts) == 1:
                for one, other in ((total, parts[0]), (parts[0], total)):
                    if self.exact[other] and not self.exact[one]:
                        found[one] = (other, e)
        return found

    @cached_property
    def touching(self) -> tuple[tuple[int, ...], ...]:
        """For every cell the sums that it stands in."""
        found: list[list[int]] = [[] for _ in self.columns]
        for e, (total, parts) in enumerate(self.equations):
            for cell in (total, *parts):
                found[cell].append(e)
        return tuple(map(tuple, found))

    @cached_property
    def piece(self) -> NDArray[np.int64]:
        """For every cell the first of the cells that it is connected with by sums."""
        piece = list(range(len(self.columns)))

        def root(cell: int) -> int:
            while piece[cell] != cell:
                piece[cell] = piece[piece[cell]]
                cell = piece[cell]
            return cell

        for total, parts in self.equations:
            for part in parts:
                one, other = sorted((root(part), root(total)))
                piece[other] = one
        return np.array([root(cell) for cell in range(len(self.columns))])

    @cached_property
    def on_adjusted(self) -> NDArray[np.bool_]:
        """Which cells are connected, by sums, with a count that may have been adjusted."""
        return np.isin(self.piece, self.piece[self.adjusted > 0])

    def members(self, equation: int) -> tuple[int, ...]:
        """Return the cells of a sum, the total first."""
        total, parts = self.equations[equation]
        return total, *parts

    def sum_named(self, equation: int) -> Sum:
        """Return a sum by the names of its cells."""
        total, parts = self.equations[equation]
        return Sum(self.columns[total].key, tuple(self.columns[part].key for part in parts))

    def sum_in_short(self, equation: int) -> str:
        """Return a sum as it appears in routes: "8 = 9 + 13 + 24", long ones shortened."""
        total, parts = self.equations[equation]
        keys = [self.columns[part].key for part in parts]
        shown = " + ".join(keys) if len(keys) <= 5 else f"{keys[0]} + {keys[1]} + … + {keys[-1]} ({len(keys)} parts)"
        return f"{self.columns[total].key} = {shown}"

    def system(
        self,
        counts: Counts,
        equations: Iterable[int],
        within: Mapping[int, int] | None = None,
        silent: Iterable[int] = (),
        also: Iterable[int] = (),
    ) -> System:
        """Return one area's cells and some of its sums, as the engines for single systems take them.

        Parameters
        ----------
        counts : array
            The area's published counts, a cell each.
        equations : iterable of int
            The sums, by position; only cells that stand in them are included.
        within : mapping, optional
            Cells that were published as they are, but may have been changed by up to so many.
        silent : iterable of int
            Cells whose published value is not to be used.
        also : iterable of int
            Cells to include even if they stand in none of the sums.
        """
        chosen = sorted(set(equations))
        cells = sorted({cell for e in chosen for cell in self.members(e)}.union(also))
        return System(
            [self.cell(cell, int(counts[cell]), (within or {}).get(cell, 0), cell in silent) for cell in cells],
            [self.sum_named(e) for e in chosen],
        )

    def cell(self, cell: int, published: int, within: int = 0, silent: bool = False) -> Cell:
        """Return one cell as the engines for single systems take it."""
        key = self.columns[cell].key
        if published == SUPPRESSED and self.hides[cell] and not silent:
            return Cell(key, None, self.mechanisms[cell])
        if published <= ABSENT or silent:
            return Cell(key, None, Unpublished())
        return Cell(key, published, Within(within) if within else self.mechanisms[cell])


def _hides(how: Mechanism) -> bool:
    """Whether a mechanism has a window for counts that it does not publish."""
    try:
        how.window(None)
    except InputError:
        return False
    return True
