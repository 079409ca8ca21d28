"""What figures cost: the audit of a whole profile with its rates, means and medians, against the same audit without them.

Figures are computed from true counts here, so that they give far more to prove than in any real release. Processor time is
compared, so that other work on the machine matters little, and the time that a user waits. What a release takes once, for
reading and fitting, weighs far more in a few areas than in a census: so the areas by themselves are compared as well.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.row import Pair, Ratio, Row
from unround import simulate
from unround.job import audit
from unround.options import AuditOptions
from unround.release import Release
from unround.tables import read

AREAS, ROWS = 150, "all"
LONGEST = 1.25
"""An audit with figures should take at most so many times as long as one without."""

CLOCKS = ("processor time", "processor time of the areas alone", "time to wait")


def rows(areas: int = AREAS, profile: str = ROWS, runs: int = 1) -> Iterator[Row]:
    """Measure whole audits, reading and fitting included."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        release = read(simulate(work / "census", areas=areas, seed=1, rows=profile).files[0])
        _seconds(release, work, "verified")  # compiles what is not compiled yet
        pairs = [(_seconds(release, work, "off"), _seconds(release, work, "verified")) for _ in range(runs)]
    job = f"audit of {areas} areas, all rows of a profile, with figures"
    for clock, name in enumerate(CLOCKS):
        taken: list[Pair] = [(off[clock], verified[clock]) for off, verified in pairs]
        yield Ratio(f"{job}: {name}", "the same without figures", taken, aim=1 / LONGEST)


def _seconds(release: Release, work: Path, figures: str) -> tuple[float, float, float]:
    """Return what `CLOCKS` show of an audit; processor time is that of all threads together."""
    auditing: list[float] = []

    def progress(stage: str, _done: int, _of: int) -> None:
        if stage == "Auditing":  # before the first block, and after each
            auditing.append(time.process_time())

    busy, began = time.process_time(), time.perf_counter()
    audit(release, work / "audit", AuditOptions(figures=figures), progress=progress)
    return time.process_time() - busy, auditing[-1] - auditing[0], time.perf_counter() - began
