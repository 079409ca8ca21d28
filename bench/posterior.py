"""Many areas of one structure: the compiled posteriors against the tree engine, one system at a time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from bench.row import Ratio, Row, Time, busy, interleaved
from bench.single import age_by_sex
from unround.bounds.tighten import tighten
from unround.engines import infer
from unround.engines.forest import posteriors
from unround.evidence.block import WindowTable
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms import Exact, Mechanism, mechanism
from unround.simulation import Rounds, schema
from unround.sums.compiled import compile_sums
from unround.system import System

FEW = 15
"""Areas that are too few to be shared by threads, so that a time is that of one processor."""

MANY = 150
"""Areas of which the fullest and the emptiest are measured."""


def compiled(
    counts: list[list[int]], mechanisms: list[Mechanism], equations: list[tuple[int, tuple[int, ...]]]
) -> EvidenceBlock:
    """Put areas together; those whose counts are hidden are left out by the caller."""
    windows, misfits = WindowTable(mechanisms).of(np.array(counts, dtype=np.int32))
    assert not misfits.any()
    fixed = frozenset(i for i, one in enumerate(mechanisms) if isinstance(one, Exact))
    layout = compile_sums(len(mechanisms), tuple(equations), fixed)
    return EvidenceBlock(layout, windows, tighten(layout, windows))


def ages(systems: list[System]) -> EvidenceBlock:
    """Put systems of one structure together."""
    counts = [[cell.published or 0 for cell in one.cells] for one in systems]
    return compiled(counts, [cell.mechanism for cell in systems[0].cells], list(systems[0].equations))


def profiles(areas: int) -> tuple[EvidenceBlock, EvidenceBlock]:
    """Simulate whole profiles by sex: every count of all 2,631 rows, and all sums between them.

    Returns the fullest and the emptiest of many areas: those with the fewest and with the most counts published as 0.
    """
    table = schema("all")
    published = np.concatenate([one.published for one in Rounds(1).counts(MANY, "all") if one.published is not None])
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
    counts = counts[(counts >= 0).all(axis=1)]
    counts = counts[np.argsort((counts == 0).sum(axis=1), kind="stable")]
    assert len(counts) >= 2 * areas
    mechanisms = [mechanism(table.rows[i].mechanism) for i, _ in places]
    fullest, emptiest = (compiled(some.tolist(), mechanisms, equations) for some in (counts[:areas], counts[-areas:]))
    return fullest, emptiest


def rows() -> Iterator[Row]:
    """Measure everything, one row at a time."""
    rng = np.random.default_rng(1)
    systems = [age_by_sex(rng) for _ in range(FEW)]
    block = ages(systems)
    posteriors(block)  # warm: compiled once, and then kept on disk
    pairs = []
    for system in systems:
        theirs = busy(partial(infer, system, engine="tree", top=0))
        pairs.append((theirs, busy(partial(posteriors, block)) / FEW))
    job = "posterior of ages by sex, 78 cells, per area and core"
    yield Ratio(job, "plain numpy: the tree engine, an area at a time", pairs, aim=10)
    yield Time(job, [ours for _, ours in pairs], aim=0.001)
    fullest, emptiest = profiles(FEW)
    runs = interleaved(partial(posteriors, fullest), partial(posteriors, emptiest), 5, busy)
    job = f"posterior of a whole profile, {len(fullest.compiled.equations):,} sums, per area and core"
    yield Time(f"{job}: the fullest of {MANY} areas", [full / FEW for full, _ in runs], aim=0.100)
    yield Time(f"{job}: the emptiest of {MANY} areas", [empty / FEW for _, empty in runs], aim=0.025)


if __name__ == "__main__":
    for row in rows():
        print(row.to_json(), flush=True)
