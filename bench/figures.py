"""What figures cost: the audit of a whole profile with its rates, means and medians, against the same audit without them.

Figures are computed from true counts here, so that they give far more to prove than in any real release. Processor time is
compared, so that other work on the machine matters little, and the time that a user waits.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.row import Pair, Ratio, Row
from unround.audits import AuditOptions, audit
from unround.readers import read
from unround.release import Release
from unround.simulation import simulate

AREAS, ROWS = 150, "all"
LONGEST = 1.25
"""An audit with figures should take at most so many times as long as one without."""


def rows(areas: int = AREAS, profile: str = ROWS, runs: int = 1) -> Iterator[Row]:
    """Measure whole audits, reading and fitting included."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        release = read(simulate(work / "census", areas, 1, rows=profile).files[0])
        _seconds(release, work, "verified")  # compiles what is not compiled yet
        pairs = [(_seconds(release, work, "off"), _seconds(release, work, "verified")) for _ in range(runs)]
    job = f"audit of {areas} areas, all rows of a profile, with figures"
    for clock, name in enumerate(("processor time", "time to wait")):
        taken: list[Pair] = [(off[clock], verified[clock]) for off, verified in pairs]
        yield Ratio(f"{job}: {name}", "the same without figures", taken, aim=1 / LONGEST)


def _seconds(release: Release, work: Path, figures: str) -> tuple[float, float]:
    """Return how long processors work on an audit, all threads together, and how long it takes."""
    busy, began = time.process_time(), time.perf_counter()
    audit(release, work / "audit", AuditOptions(figures=figures))
    return time.process_time() - busy, time.perf_counter() - began
