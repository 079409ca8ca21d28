"""The result: every count of the release, published and reconciled, how it was made, and how much was gained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.additive.costs import Estimates, absolute_cells
from unround.additive.rounding import Rounder
from unround.audits.model import Model
from unround.mechanisms.base import BoolArray
from unround.release import ABSENT, NOT_APPLICABLE, Counts, Release, exactly, gaps
from unround.score.truth import Truth
from unround.structure import Nesting, Structure
from unround.sums.compiled import compile_sums
from unround.sums.families import AreaFamily
from unround.sums.forest import Equations
from unround.tables.spool import Spool, Stage
from unround.tables.written import Numbers, TidyWriter

METHODS = (
    "in no sum: as published",
    "published exactly",
    "posterior mean",
    "posterior mean, made to add up",
    "posterior mean, shared out by the area around: not always the joint optimum",
    "clash: as published",
    "no whole numbers found: as published",
)
"""How each count of the result was made."""
NO_SUM, EXACT, POSTERIOR, ADJUSTED, SHARED, CLASH, LEFT = range(7)

NOTICE = (
    "These are model estimates for users of statistics, not official counts. Do not publish them as the agency's, and do "
    "not use them to learn anything about a person."
)

AT_ONCE = 2048
MOST_NAMED = 20
"""Clashes that are written out in the summary."""


@dataclass(frozen=True, slots=True)
class ReconcileOptions:
    """What the user decides: means with decimals; multiples of what; population as in `AuditOptions`."""

    real: bool = False
    round: int | None = None


@dataclass(eq=False)
class Known:
    """What all areas share, and their counts on disk.

    `sums` are all sums within areas, by columns of the release; those of totals that were added up after rounding,
    `afterwards`, are among them. The sums of the `model` say the same as its `plain` ones, with fewer loops.
    """

    release: Release
    spool: Spool
    structure: Structure
    nesting: Nesting
    sums: Equations
    afterwards: Equations
    plain: Equations
    model: Model | None

    def families(self) -> list[AreaFamily]:
        """Return all areas that are sums of others, by columns of the release."""
        if not self.nesting.linked:
            return []
        return [
            AreaFamily(parent, children, self.nesting.levels[self.nesting.level[children[0]]].columns)
            for parent, children in self.nesting.families().items()
        ]


@dataclass(eq=False)
class Made:
    """Estimates of all areas, with the sums that they are to meet, in cells of the model.

    The first `in_forest` sums imply the others where all counts are there.
    """

    model: Model
    estimates: Estimates
    equations: Equations
    in_forest: int
    contradictions: list[dict[str, Any]]


def printed(counts: Counts) -> Counts:
    """Return counts as they were printed, those that are marked as unrounded too."""
    return np.where((counts >= exactly(0)) & (counts <= ABSENT), counts - exactly(0), counts).astype(np.int32)


@dataclass(eq=False)
class Result:
    """Every count of a release, areas × columns.

    - `published`: As printed; a code of `release` where nothing is.
    - `value`: Reconciled.
    - `method`: A place in `METHODS`.
    """

    known: Known
    published: Counts
    value: Counts
    method: NDArray[np.int8]
    made: Made | None = None
    rounder: Rounder | None = None

    @classmethod
    def unchanged(cls, known: Known) -> Result:
        """Return the release as it is."""
        published = printed(known.spool.counts(0, known.spool.rows))
        return cls(known, published, published.copy(), np.full(published.shape, NO_SUM, dtype=np.int8))

    @property
    def _cell(self) -> NDArray[np.int64]:
        """The cell of the model that each column shows, by itself or as a copy; −1 for none."""
        cell = np.full(self.published.shape[1], -1, dtype=np.int64)
        if self.made is not None:
            cell[self.made.model.positions] = np.arange(len(self.made.model.positions))
            for column, first in self.known.structure.alias.items():
                cell[column] = cell[first]
        return cell

    def fill(self, made: Made, options: ReconcileOptions, progress: Stage) -> None:
        """Round the estimates, and put them into the columns of the release."""
        model, estimates = made.model, made.estimates
        families = self._families(made)
        compiled = compile_sums(len(model.columns), made.equations[: made.in_forest], model.fixed)
        rounder = Rounder(
            compiled, made.equations, estimates, families, lambda done, areas: progress("Rounding", done, areas)
        )
        progress("Rounding", 0, self.known.spool.rows)
        changed = rounder.settle_means()
        unit, published = options.round or 1, self.published[:, model.positions]
        summed, clash = self._summed(made, families), np.asarray(estimates.clash)
        if unit > 1:  # the same in units of more than one: everything still adds up, and no count is finer
            least, most = estimates.low // unit, -(-estimates.high // unit)
            rounder.estimates = replace(estimates, mean=estimates.mean / unit, low=least, high=most)
        else:
            use = summed & estimates.known & ~clash & ~model.exact & (published > ABSENT)
            rounder.absolute = absolute_cells(estimates, use, rounder.piece)
        rounded = rounder.round() * unit
        kind = np.where(rounder.shared, SHARED, np.where(changed, ADJUSTED, POSTERIOR))[:, None]
        kind = np.where((estimates.low == estimates.high) & model.exact, EXACT, kind)
        for row, cells in rounder.left:
            kind[row, cells] = LEFT
        kind[clash] = CLASH
        as_published = clash | (kind == LEFT)
        use = summed & estimates.known & ~(as_published & (published <= ABSENT))
        self.made, self.rounder = made, rounder
        columns = np.flatnonzero(self._cell >= 0)
        cells, copies = self._cell[columns], ~np.isin(columns, model.positions)
        there = ~(copies & (self.published[:, columns] <= ABSENT))  # a copy may be absent where the count is not
        for array, new in ((self.value, np.where(use & ~as_published, rounded, published)), (self.method, use * kind)):
            array[:, columns] = np.where(there, new[:, cells], array[:, columns])
        self._follow(self.value)

    def _families(self, made: Made) -> list[AreaFamily]:
        """Return sums over areas in cells of the model, of counts that all have an estimate."""
        families = []
        for family in self.known.families():
            columns = family.columns[made.model.positions]
            columns = columns & made.estimates.known[np.r_[family.parent, family.children]].all(axis=0)
            low, high = (
                array[family.children].sum(axis=0, dtype=np.int64) for array in (made.estimates.low, made.estimates.high)
            )
            columns &= (low <= made.estimates.high[family.parent]) & (high >= made.estimates.low[family.parent])
            if columns.any():
                families.append(AreaFamily(family.parent, family.children, columns))
        return families

    def _summed(self, made: Made, families: list[AreaFamily]) -> BoolArray:
        """Mark the cells that some sum connects with others, within their area or over areas."""
        summed = np.zeros(made.estimates.mean.shape, dtype=np.bool_)
        for e, (total, parts) in enumerate(made.equations):
            summed[:, [total, *parts]] |= made.estimates.active[:, e : e + 1]
        for family in families:
            summed[np.ix_(np.r_[family.parent, family.children], np.flatnonzero(family.columns))] = True
        return summed | made.estimates.clash

    def _follow(self, values: NDArray[Any]) -> None:
        """Add up totals that were added up before, where the model does not have them, in place."""
        place = set() if self.made is None else set(self.made.model.positions.tolist())
        for _ in range(3):  # totals of totals come later
            for total, parts in self.known.sums:
                if total in place and all(part in place for part in parts):
                    continue
                there, more = gaps(self.published, total, parts)
                held = there & (more == 0)
                values[held, total] = values[held][:, list(parts)].sum(axis=1)

    def sums_off(self) -> tuple[int, int]:
        """Return how many sums do not hold, of how many, all of whose counts are there; sums over areas are among them."""
        off = sums = 0
        for total, parts in self.known.sums:
            there, more = gaps(self.value, total, parts)
            sums += int(there.sum())
            off += int((more != 0).sum())
        for family in self.known.families():
            columns = np.flatnonzero(family.columns)
            parent, children = self.value[family.parent, columns], self.value[np.ix_(family.children, columns)]
            there = (parent > ABSENT) & (children > ABSENT).all(axis=0)
            sums += int(there.sum())
            off += int((parent != children.sum(axis=0, dtype=np.int64))[there].sum())
        return off, sums

    def shown(self, real: bool) -> NDArray[Any]:
        """Return what to print of every count; where there is none, a code of `release`."""
        if not real or self.made is None:
            return self.value
        shown, columns = self.value.astype(np.float64), np.flatnonzero(self._cell >= 0)
        free = np.isin(self.method[:, columns], (POSTERIOR, ADJUSTED, SHARED))
        shown[:, columns] = np.where(free, self.made.estimates.mean[:, self._cell[columns]], shown[:, columns])
        self._follow(shown)
        return shown

    def table(self, real: bool) -> NDArray[Any]:
        """Return what to print in the table itself: what was not printed there stays as it is."""
        return np.where(self.published > ABSENT, self.shown(real), self.published)

    def _errors(self, truth: Truth | None, real: bool) -> tuple[float | None, float | None, int]:
        """Return the mean error of published and of reconciled counts, and of how many; without those that were exact."""
        if self.made is None:
            return None, None, 0
        positions, errors, counted = self.made.model.positions, np.zeros(2), 0
        after = self.shown(real)
        for start in range(0, self.known.spool.rows, AT_ONCE):
            rows = np.arange(start, min(start + AT_ONCE, self.known.spool.rows))
            published, value = self.published[rows][:, positions], after[rows][:, positions]
            here = np.isin(self.method[rows][:, positions], (POSTERIOR, ADJUSTED, SHARED)) & (published > ABSENT)
            here &= ~self.made.model.exact
            if truth is not None:
                true = truth.of_areas(rows)
                here &= true > ABSENT
                errors += [np.abs(shown.astype(np.float64) - true)[here].sum() for shown in (published, value)]
            else:
                errors += [self.made.estimates.errors(shown, rows)[here].sum() for shown in (published, value)]
            counted += int(here.sum())
        return (None, None, 0) if not counted else (*(errors / counted).tolist(), counted)

    def summary(self, before: tuple[int, int], truth: Truth | None, options: ReconcileOptions) -> dict[str, Any]:
        """Return how much was gained, and what was left as it was."""
        known, made = self.known, self.made
        off, _ = self.sums_off()
        published, reconciled, counted = self._errors(truth, options.real)
        clashes = [] if made is None else [entry for entry in made.contradictions if entry["cells"]]
        shown = self.published > ABSENT
        return {
            "reconciled": True,
            "source": known.release.source,
            "format": known.release.file_format,
            "product": known.release.product,
            "axes_of_areas": list(known.release.areas),
            "areas": known.spool.rows,
            "counts": int(shown.sum()),
            "changed": int((shown & (self.value != self.published)).sum()),
            "sums": before[1],
            "sums_off_before": before[0],
            "sums_off_after": off,
            "mean_error_published": published,
            "mean_error": reconciled,
            "mean_error_of": counted,
            "mean_error_from": "truth" if truth is not None else "model",
            "real": options.real,
            "round": options.round,
            "methods": {name: int((self.method[shown] == at).sum()) for at, name in enumerate(METHODS)},
            "integer_programs": 0 if self.rounder is None else self.rounder.by_program,
            "clashes": [self._named(entry) for entry in clashes[:MOST_NAMED]],
            "clashes_in_all": len(clashes),
            "areas_left": [] if self.rounder is None else sorted({self._area(row) for row, _ in self.rounder.left}),
            "families_apart": [] if self.rounder is None else [self._area(entry.parent) for entry in self.rounder.apart],
            "notes": [*known.release.notes, *known.structure.notes],
            "notice": NOTICE,
        }

    def _area(self, row: int) -> str:
        return "/".join(map(str, self.known.spool.areas.select(self.known.release.areas).row(row)))

    def _named(self, clash: dict[str, Any]) -> dict[str, Any]:
        assert self.made is not None  # it is from there
        keys = [self.made.model.columns[cell].key for cell in clash["cells"]]
        return {"area": self._area(clash["area"]), "cells": keys, "text": clash["text"]}

    def write(self, path: Path, real: bool) -> None:
        """Write every count, a row each."""
        known, release = self.known, self.known.release
        columns = [at for at, column in enumerate(release.columns) if column.is_in_file]
        codes = {axis: pl.Series([release.columns[at].codes[place] for at in columns], dtype=pl.String)
                 for place, axis in enumerate(release.axes)}  # fmt: skip
        table, after, methods = TidyWriter(path, codes), self.shown(real), pl.Series(METHODS)
        for start in range(0, known.spool.rows, AT_ONCE):
            rows = slice(start, min(start + AT_ONCE, known.spool.rows))
            published, value = self.published[rows][:, columns], after[rows][:, columns]
            there = (value > ABSENT) | (published > ABSENT) | (published != NOT_APPLICABLE)
            numbers: dict[str, Numbers] = {
                "published": (published, published <= ABSENT),
                "reconciled": (value, value <= ABSENT),
            }
            numbers |= self._estimated(rows, self._cell[columns], published)
            numbers["method"] = self.method[rows][:, columns], None
            shown = table.rows_of(known.spool.areas[rows].select(release.areas), numbers, there)
            table.append(shown.with_columns(methods.gather(shown["method"]).alias("method")))
        table.close()

    def _estimated(self, rows: slice, cell: NDArray[np.int64], published: Counts) -> dict[str, Numbers]:
        """Return mean, standard error and bounds of some counts; what was printed, where there is no estimate."""
        there, made = np.zeros(published.shape, dtype=np.bool_), self.made
        if made is not None:
            there = (cell >= 0) & made.estimates.known[rows][:, cell]

        def known(name: str, kind: type) -> NDArray[Any]:
            return published.astype(kind) if made is None else np.where(
                there, getattr(made.estimates, name)[rows][:, cell], published).astype(kind)  # fmt: skip

        absent = ~there & (published <= ABSENT)
        estimated: dict[str, Numbers] = {"mean": (known("mean", np.float64), absent)}
        estimated["standard_error"] = known("spread", np.float64), ~there
        return estimated | {name: (known(name, np.int64), absent) for name in ("low", "high")}
