"""A simulated census: how fast its bulk layout is written."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.row import Row, Time, timed
from unround import simulate


def rows() -> Iterator[Row]:
    """Measure everything, one row at a time."""
    with tempfile.TemporaryDirectory() as folder:
        size = simulate(Path(folder), areas=200, seed=1, rows="all").files[0].stat().st_size
        times = [timed(partial(simulate, Path(folder), areas=200, seed=1, rows="all")) for _ in range(3)]
    yield Time(f"simulate {size / 1e6:.0f} MB of the bulk layout, all rows: 20 MB/s", times, size / 20e6)
