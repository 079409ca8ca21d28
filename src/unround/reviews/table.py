"""A table under review: its counts as they are printed, or as a repair would leave them, all in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unround.audits import Model
from unround.audits.bounds import NestedAreas
from unround.audits.model import ModelFigure
from unround.figures import Figure
from unround.job import AuditFolder
from unround.mechanisms import Exact, Mechanism, Rounding
from unround.mechanisms.base import BoolArray
from unround.release import (
    ABSENT,
    FIRST_TOLD,
    NOT_AVAILABLE,
    SUPPRESSED,
    UNRELIABLE,
    Column,
    Counts,
    FigureValues,
    adjustable,
    exactly,
    gaps,
)
from unround.sums.forest import Equations

if TYPE_CHECKING:
    import polars as pl

AT_A_TIME = 2048
"""Areas that are inferred together."""

NO_CHANCE = 40
"""So many sums of independently rounded counts do not all add up."""


def is_hidden(counts: Counts) -> BoolArray:
    """Return which counts a table suppresses, with or without a range."""
    return np.asarray(np.isin(counts, (SUPPRESSED, UNRELIABLE)) | ((counts >= FIRST_TOLD) & (counts < exactly(0))))


_TAIL = re.compile(r"@(file)?\d+'*$")
"""What a join puts behind the key of a count that was published before."""

Equation = tuple[int, tuple[int, ...]]
"""A total and its parts, as positions of columns."""


@dataclass(frozen=True)
class ReviewedSum:
    """A sum of a table, who says that it holds (as in `release.Proposal`), and whether it cannot hold in some area."""

    total: int
    parts: tuple[int, ...]
    origin: str
    doubtful: bool

    @property
    def equation(self) -> Equation:
        """The total and its parts."""
        return self.total, self.parts

    def renamed(self, places: Mapping[int, int]) -> ReviewedSum:
        """Return the same sum of columns that stand elsewhere; those that have become one are one part."""
        parts = tuple(dict.fromkeys(places.get(part, part) for part in self.parts))
        return replace(self, total=places.get(self.total, self.total), parts=parts)


@dataclass(frozen=True, eq=False)
class ReviewedTable:
    """Counts, how each column was published, and which sums hold among true counts.

    - `areas`: The areas, one row each.
    - `axes`: The columns of it that name an area.
    - `columns`: What is counted.
    - `mechanisms`: How each column is published.
    - `sums`: The sums, as positions of columns.
    - `counts`: What is printed, areas × columns, with the codes of `release` where nothing is.
    - `nested`: Which areas lie within which, where some do.
    - `figures`, `figure_values`: Rates, means and medians that tell something about the counts, and what is printed of them.
    - `own`: The keys of the draft's own columns, where it is reviewed together with an earlier release; None if all are.
    - `merged`, `merged_areas`: The keys of columns, and the codes of areas, that a repair made one of, group by group.
    """

    areas: pl.DataFrame
    axes: tuple[str, ...]
    columns: tuple[Column, ...]
    mechanisms: tuple[Mechanism, ...]
    sums: tuple[ReviewedSum, ...]
    counts: Counts
    nested: NestedAreas | None = None
    own: frozenset[str] | None = None
    figures: tuple[ModelFigure, ...] = ()
    figure_values: FigureValues | None = None
    merged: tuple[tuple[str, ...], ...] = ()
    merged_areas: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of_audit(cls, folder: AuditFolder, own: frozenset[str] | None = None) -> ReviewedTable:
        """Take the table from its audit: columns that repeat another one number by number are not in it."""
        model, rows = folder.model, np.arange(folder.areas.height)
        known = zip(model.equations, model.origins, model.doubtful, strict=True)
        return cls(
            folder.areas,
            tuple(folder.area_axes),
            model.columns,
            model.mechanisms,
            tuple(ReviewedSum(total, parts, origin, doubtful) for (total, parts), origin, doubtful in known),
            folder.counts_of(rows),
            folder.nested,
            own,
            model.figures,
            folder.figures_of(rows),
        )

    @cached_property
    def mine(self) -> tuple[int, ...]:
        """The draft's own columns."""
        return tuple(at for at, column in enumerate(self.columns) if self.own is None or column.key in self.own)

    @cached_property
    def equations(self) -> Equations:
        """The sums, a total and its parts each, as positions of columns."""
        return tuple(sum_.equation for sum_ in self.sums)

    @cached_property
    def model(self) -> Model:
        """What all areas share, compiled."""
        return Model.build(
            self.columns,
            self.mechanisms,
            self.equations,
            tuple(sum_.origin for sum_ in self.sums),
            tuple(sum_.doubtful for sum_ in self.sums),
            everywhere=np.asarray((self.counts > ABSENT).all(axis=0)),
            figures=self.figures,
        )

    @cached_property
    def hidden(self) -> BoolArray:
        """The counts that the draft does not print, though they exist; beside other tables, those that it suppresses."""
        hidden = is_hidden(self.counts)
        if self.own is None:
            hidden |= self.counts == NOT_AVAILABLE
        ours = set(self.mine)
        hidden[:, [at for at, column in enumerate(self.columns) if at not in ours or not column.is_in_file]] = False
        return hidden

    @cached_property
    def unrounded(self) -> BoolArray:
        """The single counts that are printed as they are in columns whose other counts are not."""
        return np.asarray((self.counts >= exactly(0)) & (self.counts <= ABSENT))

    @cached_property
    def printed(self) -> Counts:
        """What a reader sees of every count; -1 where that is not a number."""
        return np.where(self.unrounded, self.counts - exactly(0), np.where(self.counts > ABSENT, self.counts, -1))

    @cached_property
    def published(self) -> int:
        """How many counts the draft prints."""
        return int((self.printed[:, list(self.mine)] >= 0).sum())

    @cached_property
    def exact(self) -> tuple[int, ...]:
        """The columns of the draft that are published unrounded."""
        return tuple(at for at in self.mine if isinstance(self.mechanisms[at], Exact))

    @cached_property
    def rounded(self) -> dict[int, int]:
        """The columns of the draft that are rounded at random, each with its base."""
        return {at: how.base for at in self.mine if isinstance(how := self.mechanisms[at], Rounding)}

    @cached_property
    def totals(self) -> tuple[int, ...]:
        """The columns of the draft that others add up to."""
        heads = {total for total, parts in self.equations if len(parts) > 1}
        return tuple(at for at in self.mine if at in heads or heads.intersection(self.same[at]))

    @cached_property
    def same(self) -> tuple[tuple[int, ...], ...]:
        """For every column, those that show the same count, in this table or in another."""
        alike: list[list[int]] = [[] for _ in self.columns]
        for total, parts in self.equations:
            if len(parts) == 1:
                alike[total].append(parts[0])
                alike[parts[0]].append(total)
        return tuple(map(tuple, alike))

    @cached_property
    def base(self) -> int | None:
        """The largest base to which counts of the draft are rounded at random; None where none are."""
        return max(self.rounded.values(), default=None)

    @cached_property
    def rounded_together(self) -> BoolArray:
        """Which sums add up because their counts were rounded together, or the total was added up afterwards.

        If all sums of rounded counts add up wherever they are printed, and there are enough of them, that is not by chance:
        rounded independently, about half of them would.
        """
        rounded = [not isinstance(how, Exact) for how in self.mechanisms]
        together = np.zeros(len(self.equations), dtype=np.bool_)
        instances = 0
        for e, (total, parts) in enumerate(self.equations):
            there, more = gaps(self.counts, total, parts)
            there &= (self.counts[:, [total, *parts]] > 0).any(axis=1)
            if len(parts) < 2 or not all(rounded[at] for at in (total, *parts)) or not there.any():
                continue
            if more.any():
                return np.zeros(len(self.equations), dtype=np.bool_)
            together[e], instances = True, instances + int(there.sum())
        return together if instances >= NO_CHANCE else np.zeros(len(self.equations), dtype=np.bool_)

    @cached_property
    def area_codes(self) -> list[str]:
        """What names each area; of several axes, their codes with a slash between them."""
        return ["/".join(map(str, key)) for key in self.areas.select(self.axes).iter_rows()]

    def area_name(self, row: int) -> str:
        """Return what people call an area; its code where it has no name."""
        named = self.areas["region_name"][row] if "region_name" in self.areas.columns else None
        return str(named or self.area_codes[row])

    def called(self, at: int) -> str:
        """Return what to call a column: its key, and its label where that says more."""
        column = self.columns[at]
        return column.key if column.label in (*column.codes, column.key, "") else f"{column.key} ({column.label})"

    def what(self, at: int) -> str:
        """Say what a column counts: its label, and its place on the other axes as far as the label does not tell."""
        column = self.columns[at]
        others = [code for code in column.codes[1:] if code not in column.label and code.lower() != "total"]
        return ", ".join([column.label or column.key, *others])

    @property
    def adjustable(self) -> NDArray[np.bool_]:
        """In which areas the agency may have adjusted exact counts."""
        return adjustable(self.areas)

    def blocks(self) -> Iterator[tuple[NDArray[np.int64], NestedAreas | None]]:
        """Go through the areas, some at a time: families of areas stay together."""
        if self.nested is None:
            rows = np.arange(len(self.counts))
            yield from ((rows[start : start + AT_A_TIME], None) for start in range(0, len(rows), AT_A_TIME))
            return
        order, cuts = self.nested.arranged(AT_A_TIME)
        for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            here = order[first:last]
            nested = self.nested.reordered(here)
            yield here, nested if nested.any else None

    def of_areas(self, rows: NDArray[np.int64]) -> ReviewedTable:
        """Return some areas of a table in which no area lies within another."""
        figures = None if self.figure_values is None else self.figure_values[rows]
        return replace(self, areas=self.areas[rows], counts=self.counts[rows], figure_values=figures)

    def changed(
        self, counts: Counts, mechanisms: Sequence[Mechanism] | None = None, *, drop: BoolArray | None = None
    ) -> ReviewedTable:
        """Return the table with other counts, perhaps published otherwise, and without the sums to `drop`."""
        kept = tuple(sum_ for e, sum_ in enumerate(self.sums) if drop is None or not drop[e])
        how = self.mechanisms if mechanisms is None else tuple(mechanisms)
        return replace(self, sums=kept, counts=counts, mechanisms=how)


def selected(table: ReviewedTable, stay: Sequence[int]) -> ReviewedTable:
    """Return a table with some of its columns; its sums need no other."""
    place = {at: new for new, at in enumerate(stay)}
    changes: dict[str, Any] = {}
    if table.nested is not None:
        nested = table.nested
        odd_cell = np.array([place.get(cell, -1) for cell in nested.odd_cell.tolist()], dtype=np.int64)
        changes["nested"] = replace(nested, cells=nested.cells[list(stay)], odd_cell=odd_cell)
    if table.figure_values is not None:
        keys = {table.columns[at].key for at in stay}
        kept = [f for f, figure in enumerate(table.figures) if keys.issuperset(_keys_of(figure.figure))]
        changes["figures"] = tuple(table.figures[f] for f in kept)
        changes["figure_values"] = np.ascontiguousarray(table.figure_values[:, kept]) if kept else None
    return replace(
        table,
        columns=tuple(table.columns[at] for at in stay),
        mechanisms=tuple(table.mechanisms[at] for at in stay),
        counts=np.ascontiguousarray(table.counts[:, list(stay)]),
        sums=tuple(sum_.renamed(place) for sum_ in table.sums),
        **changes,
    )


def _keys_of(figure: Figure) -> set[str]:
    """Return the keys of the counts that a figure is of."""
    return {figure.universe, figure.numerator, *(group.count for group in figure.groups)} - {""}


def original(key: str) -> str:
    """Return the name that a column had before it was joined.

    Examples
    --------
    >>> original("10/men@2"), original("10@file2"), original("10")
    ('10/men', '10', '10')
    """
    return _TAIL.sub("", key)


def copies(table: ReviewedTable) -> dict[int, int]:
    """Return the draft's columns that the earlier release has too, and where it has them."""
    places = {column.key: at for at, column in enumerate(table.columns)}
    return {
        at: places[first]
        for at in table.mine
        if (first := original(table.columns[at].key)) != table.columns[at].key and first in places
    }
