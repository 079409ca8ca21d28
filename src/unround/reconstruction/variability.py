"""Solution variability: how different two worlds can be that both fit the tables; 0 means that the area is determined.

It is the largest share of records in which two fitting worlds differ. A solver looks for the largest and proves that there
is none larger; where its time is up, what it has found and what it could not exclude are the ends of an interval. An area is
called determined only where the upper end is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.reconstruction.bounds import UNBOUNDED, CrossTable
from unround.reconstruction.claims import AreaBounds, members

MOST_OPEN = 30_000
"""Open cells of an area that are handed to the solver."""


@dataclass(frozen=True, slots=True)
class Variability:
    """Between which shares of records two fitting worlds can differ at most.

    Parameters
    ----------
    low, high : float
        Two worlds were found that differ by the first; no two differ by more than the second.
    why : str
        "solved" where both are the same; "time" where the solver's time was up; "size" where the area is too large for it.
    """

    low: float
    high: float
    why: str

    @property
    def determined(self) -> bool:
        """Whether there is one world only. What is not known is not determined."""
        return self.high == 0.0

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"low": self.low, "high": self.high, "why": self.why, "determined": self.determined}


def _solver() -> Any:
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise InputError(
            "solution variability needs the solver CP-SAT, which is not installed: pip install ortools, or leave out "
            "--variability."
        ) from None
    return cp_model


def variability(
    table: CrossTable,
    found: AreaBounds,
    people: int,
    seconds: float,
    hint: float = 0.0,
    *,
    exact: bool = True,
    most: int = MOST_OPEN,
) -> Variability:
    """Find how different two fitting worlds of an area can be.

    Parameters
    ----------
    table, found
        The cross table, and the bounds of the area.
    people : int
        How many live there.
    seconds : float
        Time for the solver. Its result is the same at every run only where it ends before.
    hint : float
        A share by which two worlds are known to differ.
    exact : bool
        Whether that many people live there for certain.
    most : int
        Open cells up to which it is tried.
    """
    free = found.open
    if not found.fits:
        raise InputError("no world fits the tables of an area: they contradict each other, or the records.")
    ceiling = 1.0 - float(found.least.sum()) / people if people else 0.0
    if not len(free) or not people:
        return Variability(0.0, 0.0, "solved")
    if len(free) > most:
        return Variability(hint, ceiling, "size")
    cp_model = _solver()
    model = cp_model.CpModel()
    limit = people if exact else int(found.high[found.high < UNBOUNDED].max(initial=0))
    worlds = [[model.new_int_var(int(found.least[c]), int(min(found.most[c], limit)), "") for c in free] for _ in range(2)]
    columns, places = members(table, free)
    fixed = _fixed(table, found)
    for world in worlds:
        for column, inside in _grouped(columns, places):
            total = sum(world[at] for at in inside) + int(fixed[column])
            model.add(total >= int(found.low[column]))
            if found.high[column] < UNBOUNDED:
                model.add(total <= int(found.high[column]))
        if exact:
            model.add(sum(world) + int(found.least[found.least == found.most].sum()) == people)
    more = []
    for at, cell in enumerate(free):
        span = int(min(found.most[cell], limit) - found.least[cell])
        extra, first = model.new_int_var(0, span, ""), model.new_bool_var("")
        # What the first world has more of a cell; 0 where it has less.
        model.add(extra <= worlds[0][at] - worlds[1][at] + 2 * span * (1 - first))
        model.add(extra <= span * first)
        more.append(extra)
    model.maximize(sum(more))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        raise InputError("no world fits the tables of an area: they contradict each other, or the records.")
    reached = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    low = max(hint, round(solver.objective_value) / people if reached else 0.0)
    if status == cp_model.OPTIMAL:
        return Variability(low, low, "solved")
    high = min(ceiling, np.floor(solver.best_objective_bound + 1e-6) / people if reached else ceiling)
    return Variability(low, float(max(low, high)), "time")


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
