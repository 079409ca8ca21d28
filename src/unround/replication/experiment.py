"""The paper's searches, run on a simulated census, and what two models predict for them.

As the paper states its conditions: a group of cells is looked at if every published value in it is above 10, and it is
a find if |total − Σ parts| has one given value. Sex: row 8's men and women under the exact population. Age: the three
broad groups under the same. Without an exact total: every partition of the profile into four or three parts, in the
columns total, men and women where they exist.

Two predictions stand beside what is found. The paper's takes the groups that were looked at and assumes that the
remainders of their true counts are uniform. The other knows the simulated true counts: for each group the chance, over
the rounding alone, that all its values come out above 10 with the residual in question. Both leave counts of 25 %
sample data in: from 11 on they are rounded exactly like the others, and smaller ones are never published above 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from unround.replication.claim import AREAS, OVER, SEARCHES, Search
from unround.replication.outcome import BASE, Experiment, Outcome, Prediction
from unround.simulation import MISSING, PLAIN, Constants, CountBlock, Rounds, Schema, published_counts, schema

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


# -- where to look ----------------------------------------------------------------------------------------------------

Place = tuple[int, int]
"""A row of the schema and a column (0 total, 1 men, 2 women)."""


def places(search: Search, table: Schema) -> list[tuple[Place, tuple[Place, ...]]]:
    """Return the sums that a search looks at: the place of the total, and those of the parts."""
    at = table.index
    if search.exact_total:
        total = (at[1], 0)
        if search.parts == 2:
            return [(total, ((at[8], 1), (at[8], 2)))]
        return [(total, ((at[9], 0), (at[13], 0), (at[24], 0)))]
    sums = []
    for one in table.groups(search.parts):
        rows = [at[row] for row in (one.total, *one.parts)]
        columns = range(3) if all(table.rows[row].has_sex for row in rows) else range(1)
        sums += [((rows[0], sex), tuple((row, sex) for row in rows[1:])) for sex in columns]
    return sums


def _taken(counts: NDArray[np.int32], sums: list[tuple[Place, tuple[Place, ...]]]) -> tuple[Ints, Ints]:
    """Pick totals (areas × sums) and parts (areas × sums × parts) out of a block's counts."""
    rows = np.array([[total[0], *(part[0] for part in parts)] for total, parts in sums])
    columns = np.array([[total[1], *(part[1] for part in parts)] for total, parts in sums])
    picked = counts[:, rows, columns].astype(np.int64)
    return picked[:, :, 0], picked[:, :, 1:]


# -- what to expect, given the true counts ----------------------------------------------------------------------------


def chances(
    total: Ints, parts: Ints, residual: int, *, exact_total: bool, base: int = BASE, over: int = OVER
) -> tuple[Floats, Floats, Floats]:
    """Return for each group how likely it is looked at, is a find below its total, and is one above.

    Every cell goes down by its remainder or up by the rest of the base. So the residual is a constant less `base`
    times the number of parts that go up (plus one if the total does): it is enough to follow that number, weighing
    each way by its probability and leaving out ways that end at or below `over`.
    """
    rest = parts % base
    ups = np.zeros((parts.shape[1] + 1, len(parts)))
    ups[0] = 1.0
    for at in range(parts.shape[1]):
        goes_down, goes_up = _ways(parts[:, at], base, over)
        ups[1:] = ups[1:] * goes_down + ups[:-1] * goes_up
        ups[0] *= goes_down
    looked_at = ups.sum(0)
    constant = rest.sum(1)
    if exact_total:
        looked_at = looked_at * (total > over)
        ways = [(constant, (total > over).astype(np.float64))]
    else:
        total_down, total_up = _ways(total, base, over)
        looked_at = looked_at * (total_down + total_up)
        ways = [(constant - total % base, total_down), (constant - total % base + base, total_up)]
    finds = []
    for wanted in (residual, -residual):
        find = np.zeros(len(parts))
        for start, weight in ways:
            number, off = np.divmod(start - wanted, base)
            fits = (off == 0) & (number >= 0) & (number < len(ups))
            find += np.where(fits, ups[np.clip(number, 0, len(ups) - 1), np.arange(len(parts))] * weight, 0.0)
        finds.append(find)
    return looked_at, finds[0], finds[1]


def _ways(true: Ints, base: int, over: int) -> tuple[Floats, Floats]:
    """Return the probabilities that a count goes down, or up, and comes out above `over`."""
    rest = true % base
    down = np.where(true - rest > over, 1 - rest / base, 0.0)
    up = np.where(true - rest + base > over, rest / base, 0.0)
    return down, up


# -- the experiment ---------------------------------------------------------------------------------------------------


class _Tally:
    """Counts up one search over the blocks of a census."""

    def __init__(self, search: Search, table: Schema) -> None:
        self.search = search
        self.sums = places(search, table)
        self.groups = self.below = self.above = self.repeated = 0
        self.expected_groups = self.expected_below = self.expected_above = 0.0

    def add(self, block: CountBlock, repeats: NDArray[np.bool_]) -> None:
        """Look through one block of areas."""
        assert block.published is not None
        search = self.search
        total, parts = _taken(block.published, self.sums)
        looked_at = (total > OVER) & (parts > OVER).all(2)
        residual = total - parts.sum(2)
        below, above = looked_at & (residual == search.residual), looked_at & (residual == -search.residual)
        self.groups += int(looked_at.sum())
        self.below += int(below.sum())
        self.above += int(above.sum())
        self.repeated += int((below | above)[repeats].sum())

        true_total, true_parts = _taken(block.true, self.sums)
        # Hidden areas are no matter of chance; and a count of 10 or less is never published above 10.
        possible = (total != MISSING) & (parts != MISSING).all(2) & (true_parts > OVER).all(2)
        looked, is_below, is_above = chances(
            true_total[possible], true_parts[possible], search.residual, exact_total=search.exact_total
        )
        self.expected_groups += float(looked.sum())
        self.expected_below += float(is_below.sum())
        self.expected_above += float(is_above.sum())

    def outcome(self) -> Outcome:
        """Put what was counted beside what was to be expected."""
        return Outcome(
            search=self.search,
            kinds=len(self.sums),
            groups=self.groups,
            expected_groups=self.expected_groups,
            below=self.below,
            above=self.above,
            repeated=self.repeated,
            sizes=Prediction(self.expected_below, self.expected_above),
        )


def experiment(
    areas: int = AREAS,
    seed: int = 1,
    rows: str = "all",
    progress: Callable[[int], None] | None = None,
    also: Callable[[CountBlock], None] | None = None,
    *,
    keys: bool = False,
) -> Experiment:
    """Run the paper's searches on a simulated census.

    Examples
    --------
    >>> run = experiment(areas=300, seed=1, rows="age")
    >>> run["sex exact"].groups <= 300, run["sex exact"].search.residual
    (True, 8)
    """
    table = schema(rows)
    tallies = [_Tally(search, table) for search in SEARCHES]
    children: dict[str, int] = {}
    repeated = done = 0
    for block in published_counts(areas, seed, rows, rounds=Rounds(Constants()) if keys else PLAIN):
        repeats = np.fromiter(_repeats(block, children), dtype=np.bool_)
        repeated += int(repeats.sum())
        for tally in tallies:
            tally.add(block, repeats)
        if also:
            also(block)
        done += len(repeats)
        if progress:
            progress(done)
    return Experiment(areas, (seed,), rows, repeated, tuple(tally.outcome() for tally in tallies), keys)


def _repeats(block: CountBlock, children: dict[str, int]) -> Iterator[bool]:
    """Say of each area whether it has just one area inside; those inside come first."""
    for region, parent in zip(block.regions["region"], block.regions["parent"], strict=True):
        yield children.pop(region, 0) == 1
        if parent is not None:
            children[parent] = children.get(parent, 0) + 1


def ten_seeds(
    areas: int = AREAS,
    rows: str = "short",
    seeds: Iterable[int] = range(1, 11),
    progress: Callable[[int], None] | None = None,
    *,
    keys: bool = False,
) -> list[Experiment]:
    """Run the experiment for several seeds; `Experiment.inside` says whether each agrees with its prediction."""
    return [experiment(areas, seed, rows, progress, keys=keys) for seed in seeds]
