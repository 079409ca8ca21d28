"""What a solver (CP-SAT) proves of fitting worlds: how different two can be, and what all have in common."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.reconstruction.bounds import UNBOUNDED, CrossTable
from unround.reconstruction.claims import AreaBounds, members

MOST_OPEN = 30_000
"""Open cells of an area that are handed to the solver."""


class NoWorldFits(InputError):  # noqa: N818 - it says what is so, not what went wrong
    """The tables of an area contradict each other."""

    def __init__(self) -> None:
        super().__init__("no world fits the tables of an area: they contradict each other.")


def load_solver() -> Any:
    """Return the solver.

    Raises `InputError` where it is not installed.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise InputError(
            "solution variability needs the solver CP-SAT, which is not installed: pip install ortools, or leave out "
            "--variability."
        ) from None
    return cp_model


@dataclass(frozen=True, slots=True, eq=False)
class OpenTable:
    """The cells of an area that bounds leave open, and the columns over them.

    - `cells`: The open cells.
    - `low`, `high`: The bounds of each.
    - `columns`: For every column the positions of its cells, and the least and the most that these may add up to.
    """

    cells: NDArray[np.int64]
    low: list[int]
    high: list[int]
    columns: list[tuple[list[int], int, int]]

    @classmethod
    def of(cls, table: CrossTable, found: AreaBounds, people: int, *, exact: bool) -> OpenTable:
        """Collect what is open; `exact` says whether that many people live there for certain."""
        limit = people if exact else int(found.high[found.high < UNBOUNDED].max(initial=0))
        free = found.open
        fixed = _fixed(table, found)
        columns = []
        for column, inside in _grouped(*members(table, free)):
            known = int(fixed[column])
            most = int(min(found.high[column], UNBOUNDED)) - known
            columns.append((inside, int(found.low[column]) - known, most))
        if exact:
            rest = people - int(found.least[found.least == found.most].sum())
            columns.append((list(range(len(free))), rest, rest))
        high = np.minimum(found.most[free], limit)
        return cls(free, found.least[free].tolist(), high.tolist(), columns)

    def world(self, model: Any) -> list[Any]:
        """Add a fitting world to a model: a variable for every open cell."""
        world = [model.new_int_var(low, high, "") for low, high in zip(self.low, self.high, strict=True)]
        for inside, low, high in self.columns:
            total = sum(world[at] for at in inside)
            model.add(total >= low)
            if high < UNBOUNDED // 2:
                model.add(total <= high)
        return world


def _fixed(table: CrossTable, found: AreaBounds) -> NDArray[np.int64]:
    """Return what the determined cells add to every column."""
    known = np.flatnonzero((found.least == found.most) & (found.least > 0))
    columns, places = members(table, known)
    sums = np.zeros(table.layout.columns, dtype=np.int64)
    np.add.at(sums, columns, found.least[known][places])
    return sums


def _grouped(columns: NDArray[np.int64], places: NDArray[np.int64]) -> list[tuple[int, list[int]]]:
    """Return every column with its cells."""
    order = np.argsort(columns, kind="stable")
    different, starts = np.unique(columns[order], return_index=True)
    pieces = np.split(places[order], starts[1:])
    return [(int(column), piece.tolist()) for column, piece in zip(different, pieces, strict=True)]


def solved(cp_model: Any, model: Any, seconds: float) -> tuple[Any, Any]:
    """Solve a model in so much time; return the solver and its status."""
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        raise NoWorldFits
    return solver, status


# -- how different ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Variability:
    """Between which shares of records two fitting worlds can differ at most; 0 means that the area is determined.

    - `low`, `high`: Two worlds were found that differ by the first; no two differ by more than the second.
    - `why`: "solved" where both are the same; "time" where the solver's time was up; "size" where the area is too large
      for it.
    """

    low: float
    high: float
    why: str

    @property
    def determined(self) -> bool:
        """Whether there is one world only. What is not known is not determined."""
        return self.high == 0.0


def variability(
    table: CrossTable, found: AreaBounds, people: int, seconds: float, *, exact: bool = True, most: int = MOST_OPEN
) -> Variability:
    """Find how different two fitting worlds of an area can be.

    Raises `NoWorldFits` where that is so. Raises `InputError` where the solver is not installed.
    """
    if not found.fits:
        raise NoWorldFits
    if not len(found.open) or not people:
        return Variability(0.0, 0.0, "solved")
    ceiling = 1.0 - float(found.least.sum()) / people
    if len(found.open) > most:
        return Variability(0.0, ceiling, "size")
    cp_model = load_solver()
    model = cp_model.CpModel()
    free = OpenTable.of(table, found, people, exact=exact)
    one, other = free.world(model), free.world(model)
    more = []
    for at, (low, high) in enumerate(zip(free.low, free.high, strict=True)):
        span = high - low
        extra, first = model.new_int_var(0, span, ""), model.new_bool_var("")
        # What the first world has more of a cell; 0 where it has less.
        model.add(extra <= one[at] - other[at] + 2 * span * (1 - first))
        model.add(extra <= span * first)
        more.append(extra)
    model.maximize(sum(more))
    solver, status = solved(cp_model, model, seconds)
    reached = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    low_end = round(solver.objective_value) / people if reached else 0.0
    if status == cp_model.OPTIMAL:
        return Variability(low_end, low_end, "solved")
    high_end = min(ceiling, np.floor(solver.best_objective_bound + 1e-6) / people) if reached else ceiling
    return Variability(low_end, float(max(low_end, high_end)), "time")


# -- what all worlds have in common -----------------------------------------------------------------------------------


def common_cells(
    table: CrossTable, found: AreaBounds, people: int, seconds: float, *, exact: bool = True, most: int = MOST_OPEN
) -> list[int] | None:
    """Return the cells that somebody has in every fitting world, beyond those that bounds prove; None if time was up.

    Again and again the solver looks for the world with the fewest of the cells that have been in all worlds so far. Once it
    proves that there is none without some of them, somebody has each of them in every world.
    """
    if not found.fits or len(found.open) > most:
        return None
    if not len(found.open):
        return []
    free = OpenTable.of(table, found, people, exact=exact)
    cp_model, left = load_solver(), seconds
    wanted = [at for at, low in enumerate(free.low) if low == 0]
    while wanted:
        model = cp_model.CpModel()
        world = free.world(model)
        there = [model.new_bool_var("") for _ in wanted]
        for at, one in zip(wanted, there, strict=True):
            model.add(world[at] <= free.high[at] * one)
        model.minimize(sum(there))
        started = time.monotonic()
        solver, status = solved(cp_model, model, left)
        left -= time.monotonic() - started
        if status != cp_model.OPTIMAL:
            return None
        kept = [at for at in wanted if solver.value(world[at]) > 0]
        if len(kept) == len(wanted):
            break
        if left <= 0:
            return None
        wanted = kept
    return [int(free.cells[at]) for at in wanted]
