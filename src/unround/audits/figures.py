"""What published rates, means and medians say about a block of areas, if they were computed from true counts.

Nobody documents that they were, so nothing here enters what is proved: bounds by figures are a third reading beside those of
`bounds`, and a figure that contradicts an area is set aside there, and spoils nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unround.audits.bounds import FIGURE, Active, BlockBounds, Contradiction
from unround.audits.model import Model
from unround.bounds.certificates import contradiction
from unround.bounds.tighten import LARGEST_FACTORS, OFF, BlockRows, tighten
from unround.evidence.block import CellBounds
from unround.mechanisms.base import BoolArray
from unround.proofs import contradiction_in_words, figure_value, renamed_figure
from unround.release import ABSENT, FIGURE_ABSENT, Counts, FigureValues
from unround.structure.figure_verdicts import InequalityRow, inequality_rows, steps_of
from unround.system import Cell, PublishedFigure, System

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class FigureBounds:
    """What figures leave possible in a block.

    - `values`: The figures that are used, as published: areas × figures of the model; absent where one is not used.
    - `rows`: What they say.
    - `bounds`: What is possible if they were computed from true counts, and what is assumed otherwise holds.
    """

    values: FigureValues
    rows: BlockRows
    bounds: BlockBounds

    def published(self, model: Model, counts: Counts, area: int, figure: int) -> PublishedFigure | None:
        """Return a figure of one area; None where it was not published, or is not used."""
        return published_figure(model, counts[area], self.values[area], figure)


def published_figure(model: Model, counts: Counts, values: FigureValues, figure: int) -> PublishedFigure | None:
    """Return a figure of the model as it was published of one area; None where it was not."""
    stated = model.figures[figure]
    units = int(counts[model.index[stated.figure.universe]])
    return stated.published(int(values[figure]), units if units > ABSENT else None)


def figures_of(model: Model, values: FigureValues | None) -> FigureValues | None:
    """Return the figures of a block that the model uses; None where there are none."""
    if values is None or not model.figures:
        return None
    return np.ascontiguousarray(values[:, [figure.place for figure in model.figures]])


# -- inequalities -----------------------------------------------------------------------------------------------------


def block_rows(model: Model, counts: Counts, values: FigureValues) -> BlockRows:
    """Write down what figures say of every area."""
    said: list[InequalityRow] = []
    figures: list[int] = []
    for f, figure in enumerate(model.figures):
        absent = values[:, f] == FIGURE_ABSENT
        value = np.where(absent, 0, values[:, f])
        universe = counts[:, model.index[figure.figure.universe]].astype(np.int64)
        step = steps_of(figure.figure.grid, value, np.where(universe > ABSENT, universe, -1))
        inequalities = inequality_rows(figure.figure, value, step)
        said += [_reduced(row, absent) for row in inequalities]
        figures += [f] * len(inequalities)
    sizes = [len(row.counts) for row in said]
    areas = len(counts)
    return BlockRows(
        np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        np.array([model.index[count] for row in said for count in row.counts], dtype=np.int64),
        np.concatenate([row.factors for row in said], axis=1) if said else np.zeros((areas, 0), dtype=np.int64),
        np.stack([row.limits for row in said], axis=1) if said else np.zeros((areas, 0), dtype=np.int64),
        np.array(figures, dtype=np.int64),
    )


def _reduced(row: InequalityRow, absent: BoolArray) -> InequalityRow:
    """Divide by what factors have in common; switch off what is absent, or too large for exact arithmetic."""
    common = np.maximum(np.gcd.reduce(row.factors, axis=1), 1)
    factors = row.factors // common[:, None]
    off = absent | (np.abs(factors).sum(axis=1) > LARGEST_FACTORS) | ~factors.any(axis=1)
    # Counts are whole numbers: their sum is a multiple of what the factors have in common.
    return InequalityRow(row.counts, np.where(off[:, None], 0, factors), np.where(off, OFF, row.limits // common))


# -- bounds -----------------------------------------------------------------------------------------------------------


def figure_bounds(
    model: Model, counts: Counts, values: FigureValues, assumed: BlockBounds, active: Active
) -> tuple[FigureBounds, list[Contradiction]]:
    """Work out what is possible if figures were computed from true counts, every area on its own.

    A figure that leaves an area no solution is not used there, and is reported.
    """
    rows = block_rows(model, counts, values)
    tight = tighten(model.compiled, assumed.windows, active, proofs_only=True, rows=rows)
    bad = np.flatnonzero(~tight.feasible)
    clashes: list[Contradiction] = []
    if bad.size:
        values = values.copy()
        refuted = _refuted(model, rows, assumed, active, bad)
        clashes = _contradictions(model, counts, values, bad, refuted)
        values[bad] = np.where(refuted, FIGURE_ABSENT, values[bad])
        rows = rows.of_figures(values != FIGURE_ABSENT)
        tight.put(bad, _tighten(model, rows, assumed, active, bad))
    return FigureBounds(values, rows, replace(assumed, tight=tight, linked=None)), clashes


def _tighten(model: Model, rows: BlockRows, assumed: BlockBounds, active: Active, areas: Ints) -> CellBounds:
    windows = assumed.windows.rows(areas)
    return tighten(model.compiled, windows, active[areas], proofs_only=True, rows=rows.of(areas))


def _refuted(model: Model, rows: BlockRows, assumed: BlockBounds, active: Active, areas: Ints) -> BoolArray:
    """Return which figures cannot be used in areas without solution: each that fails alone, else all of them."""
    number = len(model.figures)
    refuted = np.zeros((len(areas), number), dtype=np.bool_)
    for f in range(number):
        only = np.zeros(number, dtype=np.bool_)
        only[f] = True
        refuted[:, f] = ~_tighten(model, rows.of_figures(only), assumed, active, areas).feasible
    kept = np.ones((len(assumed.may_differ_by), number), dtype=np.bool_)
    kept[areas] = ~refuted
    left = ~_tighten(model, rows.of_figures(kept), assumed, active, areas).feasible
    refuted[left] = True
    return refuted


def _contradictions(
    model: Model, counts: Counts, values: FigureValues, areas: Ints, refuted: BoolArray
) -> list[Contradiction]:
    clashes = []
    for area, refuting in zip(areas.tolist(), refuted, strict=True):
        for f in np.flatnonzero(refuting & (values[area] != FIGURE_ABSENT)).tolist():
            stated = published_figure(model, counts[area], values[area], f)
            assert stated is not None
            cells = tuple(model.index[key] for key in stated.figure.counts)
            clashes.append(Contradiction(area, FIGURE, (), cells, _in_words(model, counts[area], stated)))
    return clashes


def _in_words(model: Model, counts: Counts, stated: PublishedFigure) -> str:
    """Say why a figure was not computed from the true counts of an area, by its own cells if these show it."""
    alone = model.system(counts, (), figures=(stated,))
    cells = [Cell(model.display[cell.name], cell.published, cell.mechanism) for cell in alone.cells]
    named = renamed_figure(stated, model.display)
    small = System(cells, (), (named,))
    steps = contradiction(small)
    name = stated.figure.label or stated.figure.name
    if steps is None:
        why = f"{name} = {figure_value(stated.figure, stated.value)} does not fit the counts that it is of, and their sums."
    else:
        why = contradiction_in_words(small, steps)
    return f"{why} It was not computed from the true counts, and is not used here."
