"""What figures cost: the audit of a whole profile with its rates, means and medians, against the same audit without them.

Figures are computed from true counts here, so that they give far more to prove than in any real release. What is compared is
processor time, so that other work on the machine matters little.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.row import Ratio, Row
from unround.audits import AuditOptions, audit
from unround.readers import read
from unround.release import Release
from unround.simulation import simulate

AREAS, ROWS = 300, "all"


def rows(areas: int = AREAS, profile: str = ROWS, runs: int = 1) -> Iterator[Row]:
    """Measure whole audits, reading and fitting included."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        release = read(simulate(work / "census", areas, 1, rows=profile).files[0])
        _seconds(release, work, "verified")  # compiles what is not compiled yet
        pairs = [(_seconds(release, work, "off"), _seconds(release, work, "verified")) for _ in range(runs)]
    job = f"audit of {areas} areas, all rows of a profile, with figures"
    yield Ratio(job, "the same without figures", pairs, aim=0.8)


def _seconds(release: Release, work: Path, figures: str) -> float:
    began = time.process_time()
    audit(release, work / "audit", AuditOptions(figures=figures))
    return time.process_time() - began
