"""Worlds of people that fit an area's tables: many drawn by the chain, against one found by a solver."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from ortools.sat.python import cp_model
from research.variability import OpenTable, solved

import unround
from bench.row import Ratio, Row, interleaved
from unround.options import ReconstructOptions
from unround.reconstruction.claims import CrossTable, area_bounds, cross_table
from unround.reconstruction.queries import evidence
from unround.reconstruction.run import AreaQuestion, Case, inquiry_of, read_case

ATTRIBUTES = ("age", "sex", "marital")
AREAS, PEOPLE, WORLDS = 20, 400, 32
LONGEST = 60.0
"""Seconds that the solver may take for a world."""


def processor(job: Callable[[], object]) -> float:
    """Return how many seconds processors work on a job in all threads: the solver has its own."""
    start = time.process_time()
    job()
    return time.process_time() - start


def one_world(case: Case, table: CrossTable, area: int) -> None:
    """Find a world that fits all tables of an area with CP-SAT: its first answer."""
    mechanisms = [case.published.mechanisms[at] for at in table.used]
    found = area_bounds(table, case.published.counts[area][table.used].tolist(), mechanisms)
    model = cp_model.CpModel()
    OpenTable.of(table, found, int(case.people[area]), exact=case.exact_people).world(model)
    _, status = solved(model, LONGEST)
    assert status in (cp_model.OPTIMAL, cp_model.FEASIBLE)


def rows() -> Iterator[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        tables = ["profile", "age_sex", "age_sex_marital"]
        unround.simulate(folder, persons=True, areas=AREAS, people=PEOPLE, tables=tables)
        releases = [unround.read(folder / f"{name}.toml") for name in tables]
        options = ReconstructOptions(attributes=ATTRIBUTES, worlds=WORLDS, seeds=1)
        case = read_case(releases, folder / "persons.parquet", options, folder / "case")
        inquiry = inquiry_of(case, options)
        published = case.published
        sizes = case.records.sizes
        question = AreaQuestion("tables", evidence(case.published, case.records))
        table = cross_table(published.queries, sizes)
        area = int(np.argsort(case.people)[AREAS // 2])
        people = int(case.people[area])

        def ours() -> None:
            inquiry.worlds_of(question, area)

        def theirs() -> None:
            one_world(case, table, area)

        ours()
        theirs()
        columns = len(published.queries)
        job = f"{WORLDS} worlds of {people} people that fit {columns} counts"
        yield Ratio(job, "CP-SAT: one world, arbitrary", interleaved(theirs, ours, 7, processor), aim=8)
