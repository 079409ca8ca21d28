"""A simulated census: how fast its bulk layout is written, and how fast counts are audited that cell keys changed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.row import Row, Time, timed
from unround import audit, protect, simulate


def rows() -> Iterator[Row]:
    """Measure everything, one row at a time."""
    with tempfile.TemporaryDirectory() as folder:
        size = simulate(Path(folder), areas=200, seed=1, rows="all").files[0].stat().st_size
        times = [timed(partial(simulate, Path(folder), areas=200, seed=1, rows="all")) for _ in range(3)]
    yield Time(f"simulate {size / 1e6:.0f} MB of the bulk layout, all rows: 20 MB/s", times, size / 20e6)
    yield cell_keys(2_300)


def cell_keys(areas: int) -> Time:
    """Audit areas whose counts were changed by cell keys: as many as Australia has of its second level."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        simulate(folder / "census", format="tidy", areas=areas, seed=1)
        protect(folder / "census" / "truth.parquet", folder / "out", "uniform:3,js=2", keys=True, seed=1)
        audited = [timed(partial(audit, folder / "out" / "release.toml", folder / f"audit{run}")) for run in range(3)]
    return Time(f"audit {areas:,} areas × 82 counts that cell keys changed, in all", audited, 20.0)
