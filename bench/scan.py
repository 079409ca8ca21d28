"""The scan of a census: every sum of every area looked up, against copying the array of counts, and against plain numpy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bench.row import Ratio, Row, interleaved
from unround.batch.compiled_sums import compile_sums
from unround.batch.scan import Scanner
from unround.infer.bounds import Equations
from unround.mechanisms import Exact, Mechanism, mechanism
from unround.release import Counts
from unround.simulation import schema

AREAS = 61_029
SOME = 8_000
"""Areas for the version in plain numpy, which takes its time."""

AT_A_TIME = 4_096


def census(areas: int, mechanisms: Sequence[Mechanism], equations: Equations) -> Counts:
    """Draw counts that add up, and publish them: areas × rows of the profile, one sex."""
    rng = np.random.default_rng(1)
    counts = np.empty((areas, len(mechanisms)), dtype=np.int32)
    for first in range(0, areas, AT_A_TIME):
        true = rng.geometric(0.05, (min(AT_A_TIME, areas - first), len(mechanisms))) - 1
        for total, parts in reversed(equations):
            true[:, total] = true[:, list(parts)].sum(axis=1)
        for column, how in enumerate(mechanisms):
            counts[first : first + len(true), column] = how.publish(true[:, column], rng)
    return counts


def plain_scan(
    counts: Counts, mechanisms: Sequence[Mechanism], equations: Equations
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Do it as one would in numpy: in how many areas each sum leaves one solution, and in how many none."""
    tables = {how: _ends(how, int(counts.max())) for how in set(mechanisms) if not isinstance(how, Exact)}

    def ends(column: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        shown = counts[:, column].astype(np.int64)
        if mechanisms[column] not in tables:
            return shown, shown
        low, high = tables[mechanisms[column]]
        return low[shown], high[shown]

    proved, impossible = (np.zeros(len(equations), dtype=np.int64) for _ in range(2))
    for e, (total, parts) in enumerate(equations):
        (goal_low, goal_high), (least, most) = ends(total), ends(parts[0])
        for part in parts[1:]:
            low, high = ends(part)
            least, most = least + low, most + high
        fits = (least <= goal_high) & (most >= goal_low)
        pinned = (goal_low == goal_high) | (least == most) if len(parts) == 1 else np.zeros(len(counts), dtype=np.bool_)
        proved[e] = np.count_nonzero(fits & ((least == goal_high) | (most == goal_low) | pinned))
        impossible[e] = len(counts) - np.count_nonzero(fits)
    return proved, impossible


def _ends(how: Mechanism, largest: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ends of the window of every count that can have been published."""
    low, high = np.zeros(largest + 1, dtype=np.int64), np.zeros(largest + 1, dtype=np.int64)
    for count in np.unique(how.publish(np.arange(largest + 1), np.random.default_rng(1))):
        if 0 <= count <= largest:
            window = how.window(int(count))
            assert window.high is not None
            low[count], high[count] = window.low, window.high
    return low, high


def _copies(counts: Counts) -> None:
    """Copy the array three times, one after the other."""
    for _ in range(3):
        counts.copy()


def rows() -> Iterator[Row]:
    """Measure everything, one row at a time."""
    profile = schema("all")
    mechanisms = [mechanism(row.mechanism) for row in profile.rows]
    at = profile.index
    equations = tuple((at[one.total], tuple(at[part] for part in one.parts)) for one in profile.sums)
    counts = census(AREAS, mechanisms, equations)
    fixed = frozenset(c for c, how in enumerate(mechanisms) if isinstance(how, Exact))
    scanner = Scanner(compile_sums(len(mechanisms), equations, fixed), mechanisms)
    scanner.scan(counts)  # compiles the kernel, and works out every class once
    pairs = interleaved(partial(_copies, counts), partial(scanner.scan, counts), 9)
    scanned = int(scanner.scannable.sum())
    job = f"scan {scanned} sums in {{}} areas × {len(mechanisms):,} counts"
    yield Ratio(job.format(f"{AREAS:,}"), "3 copies of the array", pairs, aim=1)
    some = counts[:SOME].copy()
    del counts
    chosen = tuple(one for one, scannable in zip(equations, scanner.scannable, strict=True) if scannable)
    found = scanner.scan(some)
    proved, impossible = plain_scan(some, mechanisms, chosen)
    assert proved.tolist() == found.proved[scanner.scannable].tolist()
    assert impossible.tolist() == found.impossible[scanner.scannable].tolist()
    pairs = interleaved(partial(plain_scan, some, mechanisms, chosen), partial(scanner.scan, some), 5)
    yield Ratio(job.format(f"{SOME:,}"), "plain numpy, which finds only what is proved", pairs, aim=4)


if __name__ == "__main__":
    for row in rows():
        print(f"{row.job}: {row.to_json()}", flush=True)
