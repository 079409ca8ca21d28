"""Many areas of one structure: the compiled posteriors against the tree engine, one system at a time."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial

import numpy as np

from bench.row import Row, timed
from bench.single import age_by_sex
from unround.batch.compile import compile_layout
from unround.batch.posterior import posteriors
from unround.batch.tighten import tighten
from unround.batch.types import Layout, Tight, Windows
from unround.batch.windows import windows_of
from unround.infer import infer
from unround.mechanisms import Exact, Mechanism, mechanism
from unround.simulate import published_counts, schema
from unround.system import System

FEW = 15
"""Areas that are too few to be shared by threads, so that a time is that of one processor."""

Block = tuple[Layout, Windows, Tight]


def compiled(counts: list[list[int]], mechanisms: list[Mechanism], equations: list[tuple[int, tuple[int, ...]]]) -> Block:
    """Put areas together; those whose counts are hidden are left out by the caller."""
    windows, misfits = windows_of(np.array(counts, dtype=np.int32), mechanisms)
    assert not misfits.any()
    fixed = frozenset(i for i, one in enumerate(mechanisms) if isinstance(one, Exact))
    layout = compile_layout(len(mechanisms), tuple(equations), fixed)
    return layout, windows, tighten(layout, windows)


def ages(systems: list[System]) -> Block:
    """Put systems of one structure together."""
    counts = [[cell.published or 0 for cell in one.cells] for one in systems]
    return compiled(counts, [cell.mechanism for cell in systems[0].cells], list(systems[0].equations))


def profiles(areas: int) -> Block:
    """Simulate whole profiles by sex: every count of all 2,631 rows, and all sums between them."""
    table = schema("all")
    published = np.concatenate([one.published for one in published_counts(4 * areas, 1, "all") if one.published is not None])
    rounded = np.array([row.mechanism != "exact" for row in table.rows])
    places = np.argwhere(table.shown & rounded[:, np.newaxis])
    at = {(table.rows[i].id, int(s)): k for k, (i, s) in enumerate(places)}
    equations: list[tuple[int, tuple[int, ...]]] = [
        (at[one.total, s], tuple(at[row, s] for row in one.parts))
        for one in table.sums
        for s in range(3)
        if all((row, s) in at for row in (one.total, *one.parts))
    ]
    equations += [(k, (at[row, 1], at[row, 2])) for (row, s), k in at.items() if s == 0 and (row, 1) in at]
    counts = published[:, places[:, 0], places[:, 1]]
    shown = counts[(counts >= 0).all(axis=1)][:areas]
    assert len(shown) == areas
    return compiled(shown.tolist(), [mechanism(table.rows[i].mechanism) for i, _ in places], equations)


def rows() -> Iterator[Row]:
    """Measure everything, one row at a time."""
    rng = np.random.default_rng(1)
    systems = [age_by_sex(rng) for _ in range(FEW)]
    block = ages(systems)
    posteriors(*block)  # warm: compiled once, and then kept on disk
    theirs, ours = [], []
    for system in systems:
        theirs.append(timed(partial(infer, system, engine="tree", top=0)))
        ours.append(timed(partial(posteriors, *block)) / FEW)
    job = "posterior of ages by sex, 78 cells, an area and processor"
    yield Row(job, "the tree engine, an area at a time", statistics.median(theirs), statistics.median(ours), aim=10)
    yield Row(job, "the aim of 1 ms", 0.001, statistics.median(ours), aim=1)
    block = profiles(FEW)
    ours = [timed(partial(posteriors, *block)) / FEW for _ in range(3)]
    job = f"the same for whole profiles, {len(block[0].equations):,} sums"
    yield Row(job, "the aim of 100 ms", 0.100, statistics.median(ours), aim=1)
