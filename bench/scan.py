"""The scan of a census: every sum of every area looked up, against copying the array of counts."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial

import numpy as np

from bench.row import Row, timed
from unround.batch.compile import compile_layout
from unround.batch.scan import Scanner
from unround.mechanisms import Exact, mechanism
from unround.simulate import schema

AREAS = 8_000
"""Enough to outgrow any cache."""


def rows() -> Iterator[Row]:
    """Measure everything, one row at a time."""
    profile = schema("all")
    mechanisms = [mechanism(row.mechanism) for row in profile.rows]
    at = profile.index
    equations = tuple((at[one.total], tuple(at[part] for part in one.parts)) for one in profile.sums)
    rng = np.random.default_rng(1)
    true = rng.geometric(0.05, (AREAS, len(mechanisms))) - 1
    for total, parts in reversed(equations):
        true[:, total] = true[:, list(parts)].sum(axis=1)
    counts = np.empty(true.shape, dtype=np.int32)
    for column, how in enumerate(mechanisms):
        counts[:, column] = how.publish(true[:, column], rng)
    fixed = frozenset(c for c, how in enumerate(mechanisms) if isinstance(how, Exact))
    scanner = Scanner(compile_layout(len(mechanisms), equations, fixed), mechanisms)
    scanner.scan(counts)  # compiles the kernel, and works out every class once
    times = [(timed(counts.copy), timed(partial(scanner.scan, counts))) for _ in range(9)]
    copied, ours = (statistics.median(column) for column in zip(*times, strict=True))
    scanned = int(scanner.scannable.sum())
    yield Row(
        f"scan {scanned} sums in {AREAS:,} areas × {len(mechanisms):,} counts", "3 copies of the array", 3 * copied, ours, 1
    )
