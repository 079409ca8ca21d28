"""How different two worlds of persons can be that both fit all tables of an area, and what all fitting worlds share.

A solver (CP-SAT) looks for two worlds that differ most, within a time limit; the result is an interval. What could not be
settled, because time was up or an area is too large, is never called determined.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from unround.errors import InputError
from unround.options import ReconstructOptions, Stage
from unround.output import scratch_folder
from unround.reconstruction.claims import UNBOUNDED, AreaBounds, CrossTable, area_bounds, cross_table
from unround.reconstruction.run import read_case, sample_of, true_cells
from unround.release import Release
from unround.show.parts import Bullets, Document
from unround.show.words import percent

Ints = NDArray[np.int64]

MOST_OPEN = 30_000  # open cells of an area that are handed to the solver


def members(table: CrossTable, cells: Ints) -> tuple[Ints, Ints]:
    """Return pairs of a column and the position of a cell that it counts."""
    layout = table.layout
    columns, places = [], []
    for m in range(layout.atom.shape[0]):
        atoms = layout.atom[m, cells]
        sizes = layout.starts[atoms + 1] - layout.starts[atoms]
        ends = np.cumsum(sizes)
        counting = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - sizes, sizes)  # 0, 1, … for every atom
        at = np.repeat(layout.starts[atoms], sizes) + counting
        columns.append(layout.held[at].astype(np.int64))
        places.append(np.repeat(np.arange(len(cells)), sizes))
    return np.concatenate(columns), np.concatenate(places)


def still_open(bounds: AreaBounds) -> Ints:
    """Return the cells that are not determined."""
    return np.flatnonzero(bounds.least < bounds.most)


class NoWorldFits(InputError):  # noqa: N818 - it says what is so, not what went wrong
    """The tables of an area contradict each other."""

    def __init__(self) -> None:
        super().__init__("no world fits the tables of an area: they contradict each other.")


@dataclass(frozen=True, slots=True, eq=False)
class OpenTable:
    """The cells of an area that bounds leave open, and the columns over them.

    - `columns`: For every column the positions of its cells, and the least and the most that these may add up to.
    """

    cells: Ints  # the open cells
    low: list[int]  # the bounds of each
    high: list[int]
    columns: list[tuple[list[int], int, int]]

    @classmethod
    def of(cls, table: CrossTable, bounds: AreaBounds, people: int, *, exact: bool) -> OpenTable:
        """Collect what is open; `exact` says whether that many people live there for certain."""
        limit = people if exact else int(bounds.high[bounds.high < UNBOUNDED].max(initial=0))
        free = still_open(bounds)
        known = np.flatnonzero((bounds.least == bounds.most) & (bounds.least > 0))
        counted_in, places = members(table, known)
        fixed = np.zeros(table.layout.columns, dtype=np.int64)  # what the determined cells add to every column
        np.add.at(fixed, counted_in, bounds.least[known][places])
        counted_in, places = members(table, free)
        order = np.argsort(counted_in, kind="stable")
        different, starts = np.unique(counted_in[order], return_index=True)
        columns = []
        for column, inside in zip(different.tolist(), np.split(places[order], starts[1:]), strict=True):
            most = int(min(bounds.high[column], UNBOUNDED) - fixed[column])
            columns.append((inside.tolist(), int(bounds.low[column] - fixed[column]), most))
        if exact:
            rest = people - int(bounds.least[bounds.least == bounds.most].sum())
            columns.append((list(range(len(free))), rest, rest))
        high = np.minimum(bounds.most[free], limit)
        return cls(free, bounds.least[free].tolist(), high.tolist(), columns)

    def world(self, model: Any) -> list[Any]:
        """Add a fitting world to a model: a variable for every open cell."""
        world = [model.new_int_var(low, high, "") for low, high in zip(self.low, self.high, strict=True)]
        for inside, low, high in self.columns:
            total = sum(world[at] for at in inside)
            model.add(total >= low)
            if high < UNBOUNDED // 2:
                model.add(total <= high)
        return world


def solved(model: Any, seconds: float) -> tuple[Any, Any]:
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
    """Between which shares of records two fitting worlds can differ at most; 0 means that the area is determined."""

    low: float  # two worlds were found that differ by the first; no two differ by more than the second
    high: float
    why: str  # "solved" where both are the same; "time" where that was up; "size" where the area is too large

    @property
    def determined(self) -> bool:
        """Whether there is one world only. What is not known is not determined."""
        return self.high == 0.0


def variability(
    table: CrossTable, bounds: AreaBounds, people: int, seconds: float, *, exact: bool = True, most: int = MOST_OPEN
) -> Variability:
    """Find how different two fitting worlds of an area can be."""
    if not bounds.fits:
        raise NoWorldFits
    if not len(still_open(bounds)) or not people:
        return Variability(0.0, 0.0, "solved")
    ceiling = 1.0 - float(bounds.least.sum()) / people
    if len(still_open(bounds)) > most:
        return Variability(0.0, ceiling, "size")
    model = cp_model.CpModel()
    free = OpenTable.of(table, bounds, people, exact=exact)
    first_world, other = free.world(model), free.world(model)
    more = []
    for at, (low, high) in enumerate(zip(free.low, free.high, strict=True)):
        span = high - low
        extra, first = model.new_int_var(0, span, ""), model.new_bool_var("")
        # What the first world has more of a cell; 0 where it has less.
        model.add(extra <= first_world[at] - other[at] + 2 * span * (1 - first))
        model.add(extra <= span * first)
        more.append(extra)
    model.maximize(sum(more))
    solver, status = solved(model, seconds)
    reached = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    low_end = round(solver.objective_value) / people if reached else 0.0
    if status == cp_model.OPTIMAL:
        return Variability(low_end, low_end, "solved")
    high_end = min(ceiling, np.floor(solver.best_objective_bound + 1e-6) / people) if reached else ceiling
    return Variability(low_end, float(max(low_end, high_end)), "time")


# -- what all worlds have in common -----------------------------------------------------------------------------------


def common_cells(
    table: CrossTable, bounds: AreaBounds, people: int, seconds: float, *, exact: bool = True, most: int = MOST_OPEN
) -> list[int] | None:
    """Return the cells that somebody has in every fitting world, beyond those that bounds prove; None if time was up.

    Again and again the solver looks for the world with the fewest of the cells that have been in all worlds so far. Once it
    proves that there is none without some of them, somebody has each of them in every world.
    """
    if not bounds.fits or len(still_open(bounds)) > most:
        return None
    if not len(still_open(bounds)):
        return []
    free = OpenTable.of(table, bounds, people, exact=exact)
    left = seconds
    wanted = [at for at, low in enumerate(free.low) if low == 0]
    while wanted:
        model = cp_model.CpModel()
        world = free.world(model)
        there = [model.new_bool_var("") for _ in wanted]
        for at, somebody in zip(wanted, there, strict=True):
            model.add(world[at] <= free.high[at] * somebody)
        model.minimize(sum(there))
        started = time.monotonic()
        solver, status = solved(model, left)
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


# -- in many areas ----------------------------------------------------------------------------------------------------


def measure(releases: Sequence[Release], truth: Path, areas: int, seconds: float, progress: Stage) -> dict[str, Any]:
    """Find how different worlds can be in a sample of areas, and how many combinations somebody has in all of them."""
    with scratch_folder("variability") as folder:
        case = read_case(releases, truth, ReconstructOptions(), folder)
        table = cross_table(case.published.queries, case.records.sizes)
        mechanisms = [case.published.mechanisms[at] for at in table.used]
        sample, worlds, contradictory, proved, true = sample_of(case, areas, 1), list[Variability](), 0, 0, 0
        for number, area in enumerate(sample.tolist()):
            progress("Solving", number, len(sample))
            bounds = area_bounds(table, case.published.counts[area][table.used].tolist(), mechanisms)
            people, exact = int(case.people[area]), case.exact_people
            try:
                worlds.append(variability(table, bounds, people, seconds, exact=exact))
                common = common_cells(table, bounds, people, seconds, exact=exact) or []
            except NoWorldFits:
                contradictory += 1
                continue
            proved += len(common)
            true += int((true_cells(case, table, area)[common] > 0).sum())
    return {
        "areas": len(worlds),
        "seconds": seconds,
        "low": float(np.mean([world.low for world in worlds])) if worlds else None,
        "high": float(np.mean([world.high for world in worlds])) if worlds else None,
        "determined": sum(world.determined for world in worlds),
        "out_of_time": sum(world.why == "time" for world in worlds),
        "too_large": sum(world.why == "size" for world in worlds),
        "contradictory": contradictory,
        "by_solver": proved,
        "by_solver_true": true,
    }


def document(measured: dict[str, Any]) -> Document:
    """Say how different fitting worlds can be."""
    said = []
    if measured["areas"]:
        said.append(
            f"In {measured['areas']:,} areas, two worlds that both fit can differ in {percent(measured['low'])} to "
            f"{percent(measured['high'])} of the records on average; {measured['determined']:,} of them are determined."
        )
    if measured["out_of_time"]:
        said.append(f"In {measured['out_of_time']:,}, {measured['seconds']:g} seconds were not enough to tell.")
    if measured["too_large"]:
        said.append(f"{measured['too_large']:,} were too large for the solver: nothing follows for them.")
    if measured["contradictory"]:
        said.append(f"In {measured['contradictory']:,} areas no world fits all tables.")
    right = "all are true" if measured["by_solver_true"] == measured["by_solver"] else "not all are true"
    said.append(f"Of {measured['by_solver']:,} combinations beyond bounds somebody has them in every world; {right}.")
    return Document("How different worlds can be that fit all tables", [Bullets(said)])
