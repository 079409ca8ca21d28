"""One line of the table that `make bench` prints."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A job, what it is measured against, both times in seconds, and how many times as fast it should be."""

    job: str
    baseline: str
    theirs: float
    ours: float
    aim: float

    @property
    def ratio(self) -> float:
        """Baseline time over our time."""
        return self.theirs / self.ours


def timed(job: Callable[[], object]) -> float:
    """Return how many seconds a job takes."""
    start = time.perf_counter()
    job()
    return time.perf_counter() - start
