"""A plausible truth, for repairs that need true counts where nobody gave them.

The audit of both tables has an estimate of every count, with its error. From these true counts are drawn, then moved as
little as possible so that all sums hold. Everything is published anew from them: the release, the table, and the repaired
table. What is exposed in that world is not what is exposed in the real one; the share of it that a repair leaves should be
about the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unround.job import AuditFolder
from unround.job.folder import PUBLISHED
from unround.mechanisms import HIDDEN, Mechanism
from unround.mechanisms.base import IntArray
from unround.protection.additive import nearest_consistent
from unround.release import ABSENT, NOT_AVAILABLE, Block, Counts, Release, adjustable
from unround.scenarios.scenario import Scenario
from unround.scenarios.tables import Numbers, called, keys_of, published_anew, repeated
from unround.sums.forest import Equations
from unround.tables.spool import Spool

MOST_AREAS = 2000
"""Areas that are simulated; where there are more, so many are drawn from them."""

ENOUGH_AREAS = 500
"""Where there are fewer, each is simulated several times: what is exposed in few areas is a matter of chance."""

AT_A_TIME = 512


@dataclass(frozen=True, eq=False)
class World:
    """Both tables as they might have been published from a plausible truth.

    - `release`, `table`: The two, published anew.
    - `truth`: The counts that they were published from, under the names that the table uses.
    - `areas`, `times`: How many areas were drawn, and how often each.
    - `scale`: What numbers of this world are multiplied by to stand for all areas.
    """

    release: Release
    table: Release
    truth: Numbers
    areas: int
    times: int
    scale: float


def plausible(setting: Scenario, folder: Path) -> World:
    """Simulate a world.

    Raises `InputError` where sums form loops for which no whole numbers that add up can be found.
    """
    made = Draw.of(setting.after, setting.release.areas, setting.seed, folder / "world.bin")
    first = [column.key for column in setting.release.columns]
    second = [column.key for column in setting.table.columns]
    truth = made.under(second, list(setting.names))
    seed = setting.seed + 2
    release = made.published(setting.release, setting.release_numbers, made.under(first, first), setting.of_release, seed)
    table = made.published(setting.table, setting.table_numbers, truth, setting.of_table, seed + 1)
    return World(release, table, truth, made.areas, made.times, made.scale)


@dataclass(frozen=True, eq=False)
class Draw:
    """Plausible true counts of some areas of an audit, each several times over where there are few.

    - `spool`, `row`: The counts, and where those of an area are.
    - `places`: The columns, by their keys in the audit.
    - `axes`: What names an area.
    - `there`: The areas that were drawn, by their own names.
    - `areas`, `times`, `scale`: As of a `World`.
    """

    spool: Spool
    row: dict[tuple[str, ...], int]
    places: dict[str, int]
    axes: tuple[str, ...]
    there: set[tuple[str, ...]]
    areas: int
    times: int
    scale: float

    @classmethod
    def of(cls, audited: AuditFolder, axes: tuple[str, ...], seed: int, path: Path) -> Draw:
        """Draw them from the estimates of an audit, onto disk."""
        rng = np.random.default_rng([seed, 7])
        every = audited.areas
        many = min(MOST_AREAS, every.height)
        chosen = np.sort(rng.choice(every.height, size=many, replace=False))
        times = -(-ENOUGH_AREAS // many)
        model = audited.model
        spool = Spool(path, len(model.columns))
        for time in range(times):
            for start in range(0, many, AT_A_TIME):
                here = chosen[start : start + AT_A_TIME]
                spool.add(Block(called(every[here], axes, time), _drawn(audited, here, rng)))
        spool.close(axes)
        places = {column.key: at for at, column in enumerate(model.columns)}
        places |= {copy: places[first] for copy, first in audited.told["alias"].items() if first in places}
        row = {key: at for at, key in enumerate(keys_of(spool.areas, axes))}
        there = set(keys_of(every[chosen], axes))
        return cls(spool, row, places, axes, there, many, times, every.height / (many * times))

    def under(self, own: Sequence[str], known: Sequence[str]) -> Numbers:
        """Return the counts under other names than those that the audit has for them."""
        columns = {name: self.places[there] for name, there in zip(own, known, strict=True) if there in self.places}
        return Numbers(self.spool, self.row, columns, self.axes)

    def published(
        self, release: Release, numbers: Numbers, true: Numbers, how: Callable[[int], Mechanism | None], seed: int
    ) -> Release:
        """Return a release of these areas, published anew from the counts, as `how` says of each of its columns."""
        rows = np.array([number for key, number in numbers.row.items() if key in self.there], dtype=np.int64)
        mechanisms = {c: known for c in range(len(release.columns)) if (known := how(c)) is not None}
        return published_anew(repeated(release, numbers, rows, self.times), true, mechanisms, seed)


def _drawn(folder: AuditFolder, rows: NDArray[np.int64], rng: np.random.Generator) -> Counts:
    """Draw true counts of some areas from what the audit makes of them, so that its sums hold."""
    import polars as pl

    model = folder.model
    wanted = (
        pl.scan_parquet(folder.file(PUBLISHED), glob=False).with_row_index("row").filter(pl.col("row").is_in(rows.tolist()))
    )
    counts = wanted.sort("row").select("counts").collect()["counts"].to_numpy()
    inferred = folder.auditor.infer(counts, adjustable(folder.areas[rows]))
    posterior, reach = inferred.probabilities.posterior, inferred.probabilities.reach
    # A hidden count without bounds has no range to keep to; the sums will give it one.
    mean, deviation = np.nan_to_num(posterior.mean), np.maximum(np.nan_to_num(posterior.deviation), 0.0)
    drawn = np.rint(rng.normal(mean, deviation))
    low, high = (np.maximum(bound, 0).astype(np.int64) for bound in (reach.low, reach.high))
    whole: IntArray = np.clip(drawn, low, high).astype(np.int64)
    # Published as they are, or without an estimate: what was published, or nothing.
    whole = np.where(posterior.probability > 0, whole, np.where(counts > ABSENT, counts, HIDDEN))
    first, sums, from_sums = _once(model.equations, len(model.columns))
    usable = inferred.active[:, from_sums]
    fixed = frozenset(int(first[cell]) for cell in model.fixed)
    for cell in sorted(model.fixed):  # of a count that is shown twice, once as it is, that is the number
        whole[:, first[cell]] = whole[:, cell]
    made = nearest_consistent(whole, usable, sums, rng, fixed=fixed, floor=True)[:, first]
    return np.where(made == HIDDEN, NOT_AVAILABLE, made).astype(np.int32)


def _once(equations: Equations, many: int) -> tuple[NDArray[np.int64], Equations, list[int]]:
    """Take counts that are shown twice as one: return the cell that stands for each, the other sums, and which they are."""
    first = np.arange(many)
    for total, parts in equations:
        if len(parts) == 1:
            one, other = sorted((int(first[total]), int(first[parts[0]])))
            first[first == other] = one
    sums: dict[tuple[int, tuple[int, ...]], int] = {}
    for at, (total, parts) in enumerate(equations):
        if len(parts) > 1:
            sums.setdefault((int(first[total]), tuple(sorted(int(first[part]) for part in parts))), at)
    return first, tuple(sums), list(sums.values())
