"""What mechanisms are compared on: true counts, the sums between them, and what is published exactly today."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from unround.audits.model import Model
from unround.errors import InputError
from unround.mechanisms import Exact, Mechanism, Rounding
from unround.mechanisms.base import BoolArray
from unround.output import scratch_folder
from unround.prior.exposure import Hierarchy, Pair
from unround.protection.key_sums import DEEPEST, heights, parents_of
from unround.protection.release import exact_columns, table_of_row, tables_of, true_sums, with_labels
from unround.protection.table import keepable
from unround.regions import published_exactly
from unround.release import Column, Counts, Release
from unround.simulation import SEXES, schema, true_counts
from unround.sums.forest import Equations
from unround.tables.spool import survey


@dataclass(frozen=True, eq=False)
class Material:
    """A table whose truth is known."""

    source: str  # where it is from, for people
    true: Counts  # areas × columns; every count is there
    columns: tuple[Column, ...]  # what is counted
    equations: Equations  # the sums that hold in every area
    exact: frozenset[int]  # columns that are published as they are, today: populations
    levels: int = 1  # in how many areas a person is counted: those of a smallest area and of all that it lies in
    notes: tuple[str, ...] = ()  # what was left out
    tables: tuple[str, ...] = ()  # the table that each column stands in; one for all where that is not known

    def __post_init__(self) -> None:
        if not self.tables:
            object.__setattr__(self, "tables", ("",) * len(self.columns))

    def model(self, mechanisms: tuple[Mechanism, ...]) -> Model:
        """Compile it, published in some way."""
        return Model.build(self.columns, mechanisms, self.equations, ("truth",) * len(self.equations))

    def mechanisms(self, how: Mechanism) -> tuple[Mechanism, ...]:
        """Return the mechanism of every column, where all but the exact ones are published alike."""
        return tuple(Exact() if c in self.exact else how for c in range(len(self.columns)))

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Totals, with the men and women that they split into."""
        return Hierarchy.of(self.model(self.mechanisms(Rounding())).compiled).pairs

    def judged(self) -> tuple[BoolArray, BoolArray]:
        """Return which columns count for errors, and which for inferences.

        What is exact today is neither. What is shown exactly under another name can be off, but hides nothing.
        """
        model = self.model(self.mechanisms(Rounding()))
        errors = ~model.exact
        risks = errors.copy()
        risks[list(model.exact_twin)] = False
        return errors, risks


def simulated(areas: int, seed: int, rows: str = "age") -> Material:
    """Draw a census. Areas with too few people for any counts are left out, as they are from every release."""
    columns, equations, where = profile_columns(rows)
    at = schema(rows).index
    true, regions, hidden = [], [], 0
    lines, sexes = [at[row] for row, _ in where], [sex for _, sex in where]
    for block in true_counts(areas, seed, rows):
        shown = ~block.hidden
        true.append(block.true[shown][:, lines, sexes])
        regions.append(block.regions)
        hidden += int(block.hidden.sum())
    if areas == hidden:
        raise InputError("every simulated area has fewer than 40 people, so none is published: simulate more areas.")
    notes = (f"Not published, because they have fewer than 40 people: {hidden:,} of {areas:,} areas.",) if hidden else ()
    frame = pl.concat(regions)
    return Material(
        source=f"a census of {areas:,} areas drawn by `unround simulate` (seed {seed}, rows {rows})",
        true=np.ascontiguousarray(np.concatenate(true), dtype=np.int32),
        columns=columns,
        equations=equations,
        exact=frozenset(c for c, column in enumerate(columns) if isinstance(column.mechanism, Exact)),
        levels=levels_of(frame, ("region",)),
        notes=notes,
        tables=tuple(table_of_row(column.codes[0]) for column in columns),
    )


def profile_columns(rows: str) -> tuple[tuple[Column, ...], Equations, list[tuple[int, int]]]:
    """Return the columns of the simulated profile that stand in sums, those sums, and where each column is."""
    from unround.mechanisms import mechanism

    table = schema(rows)
    summed = {row for row_sum in table.sums for row in (row_sum.total, *row_sum.parts)}
    columns: list[Column] = []
    at: dict[tuple[int, int], int] = {}
    for row in table.rows:
        if row.id in summed and row.is_count:
            for sex in range(3 if row.has_sex else 1):
                at[row.id, sex] = len(columns)
                key = str(row.id) if not sex else f"{row.id}/{SEXES[sex]}"
                columns.append(Column(key, (str(row.id), SEXES[sex]), row.name, mechanism=mechanism(row.mechanism)))
    equations: list[tuple[int, tuple[int, ...]]] = []
    for row_sum in table.sums:
        for sex in range(3):
            cells = [(row, sex) for row in (row_sum.total, *row_sum.parts)]
            if all(cell in at for cell in cells):
                equations.append((at[cells[0]], tuple(at[cell] for cell in cells[1:])))
    split = [row for row, sex in at if sex == 1]
    equations += [(at[row, 0], (at[row, 1], at[row, 2])) for row in split]
    return tuple(columns), tuple(equations), list(at)


def from_release(truth: Release, exact: tuple[str, ...] | None = None) -> Material:
    """Take a table of true counts that somebody has."""
    plain = with_labels(truth)
    plain = replace(plain, columns=tuple(replace(column, mechanism=Exact(), adjusted=0) for column in plain.columns))
    with scratch_folder("compare") as folder:
        spool, structure = survey(plain, folder)
        sums = true_sums(structure)
        used = sorted({cell for total, parts in sums for cell in (total, *parts)})
        if not used:
            raise InputError(f"no sum holds among the counts of {truth.source}, so nothing can be inferred.")
        true, areas = spool.counts(0, spool.rows)[:, used], spool.areas
    at = {cell: place for place, cell in enumerate(used)}
    columns, tables = tuple(plain.columns[cell] for cell in used), tables_of(plain)
    equations = tuple((at[total], tuple(at[part] for part in parts)) for total, parts in sums)
    whole = keepable(true.astype(np.int64), equations).all(axis=1)
    if not whole.any():
        raise InputError(
            f"no area of {truth.source} has all {len(used):,} counts of the sums, adding up: a comparison needs the true "
            "table, with nothing left out."
        )
    empty = whole & (true == 0).all(axis=1)
    left, empty_areas = int((~whole).sum()), int(empty.sum())
    whole &= ~empty
    notes = [f"{left:,} areas are left out because a count is missing or does not add up."] if left else []
    notes += [f"{empty_areas:,} areas are left out because all their counts are 0."] if empty_areas else []
    return Material(
        source=truth.source,
        true=np.ascontiguousarray(true[whole]),
        columns=columns,
        equations=equations,
        exact=_exact(plain.columns, at, exact),
        levels=levels_of(areas, truth.areas),
        notes=tuple(notes),
        tables=tuple(tables[cell] for cell in used),
    )


def _exact(columns: tuple[Column, ...], at: dict[int, int], names: tuple[str, ...] | None) -> frozenset[int]:
    """Return the places of the columns that are published as they are."""
    if names is None:
        named = frozenset(c for c, column in enumerate(columns) if published_exactly(column.label)[0] is not None)
    else:
        named = exact_columns(names, columns)
    places = frozenset(at[c] for c in named if c in at)
    if len(places) == len(at):
        raise InputError("--exact names every column that is in a sum, so nothing is left to protect: leave some out.")
    return places


def levels_of(areas: pl.DataFrame, axes: tuple[str, ...]) -> int:
    """Return how many areas lie inside each other, at most; only those that are in the table count."""
    return min(DEEPEST, 1 + int(heights(parents_of(areas, axes)).max(initial=0)))
