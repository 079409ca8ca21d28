"""What `make bench` measures: a job against a baseline in interleaved runs, against a time, or against a limit."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

TOLERANCE = 0.75
"""A ratio, or a time, may miss its aim by a quarter: machines are noisy."""

Pair = tuple[float, float]
"""How long the baseline took, and how long we took right after it, in seconds."""


@dataclass(frozen=True)
class Ratio:
    """A job against what somebody would do otherwise, both measured in turn in the same run.

    Parameters
    ----------
    job, baseline : str
        What is done, and what it is measured against.
    pairs : sequence of pairs
        Seconds of both, run after run.
    aim : float
        How many times as fast as the baseline the job should be.
    """

    job: str
    baseline: str
    pairs: Sequence[Pair]
    aim: float

    @property
    def theirs(self) -> float:
        """The median time of the baseline."""
        return statistics.median(theirs for theirs, _ in self.pairs)

    @property
    def ours(self) -> float:
        """Our median time."""
        return statistics.median(ours for _, ours in self.pairs)

    @property
    def ratio(self) -> float:
        """The median of how many times as fast we were: other work on the machine slows both runs of a pair."""
        return statistics.median(theirs / ours for theirs, ours in self.pairs)

    @property
    def missed(self) -> bool:
        """Whether the aim is missed by more than a quarter."""
        return self.ratio < TOLERANCE * self.aim

    def to_json(self) -> dict[str, Any]:
        """Return what is kept."""
        times = {"baseline_seconds": _short(self.theirs), "seconds": _short(self.ours), "runs": len(self.pairs)}
        return {
            "job": self.job,
            "baseline": self.baseline,
            **times,
            "ratio": _short(self.ratio),
            "aim": self.aim,
            "missed": self.missed,
        }


@dataclass(frozen=True)
class Time:
    """A job that should take no longer than some time on an ordinary machine; a slow one may miss it."""

    job: str
    seconds: Sequence[float]
    aim: float

    @property
    def ours(self) -> float:
        """The median time."""
        return statistics.median(self.seconds)

    @property
    def missed(self) -> bool:
        """Whether the aim is missed by more than a quarter."""
        return TOLERANCE * self.ours > self.aim

    def to_json(self) -> dict[str, Any]:
        """Return what is kept."""
        times = {"seconds": _short(self.ours), "runs": len(self.seconds), "aim_seconds": self.aim}
        return {"job": self.job, **times, "missed": self.missed}


@dataclass(frozen=True)
class Share:
    """A job beside the least time that anything could take for it on this machine, measured in the same run.

    Parameters
    ----------
    job, limit : str
        What is done, and what sets the least time.
    pairs : sequence of pairs
        The least time and ours, in seconds, run after run.
    """

    job: str
    limit: str
    pairs: Sequence[Pair]

    @property
    def least(self) -> float:
        """The median of the least times."""
        return statistics.median(least for least, _ in self.pairs)

    @property
    def ours(self) -> float:
        """Our median time."""
        return statistics.median(ours for _, ours in self.pairs)

    @property
    def share(self) -> float:
        """Which part of our time the limit would take."""
        return statistics.median(least / ours for least, ours in self.pairs)

    def to_json(self) -> dict[str, Any]:
        """Return what is kept."""
        times = {"least_seconds": _short(self.least), "seconds": _short(self.ours), "runs": len(self.pairs)}
        return {"job": self.job, "limit": self.limit, **times, "share": _short(self.share)}


Row = Ratio | Time | Share


def timed(job: Callable[[], object]) -> float:
    """Return how many seconds a job takes."""
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def busy(job: Callable[[], object]) -> float:
    """Return how many seconds a processor works on a job that runs in this thread: time that others take does not count."""
    start = time.thread_time()
    job()
    return time.thread_time() - start


def interleaved(
    theirs: Callable[[], object],
    ours: Callable[[], object],
    runs: int,
    clock: Callable[[Callable[[], object]], float] = timed,
) -> list[Pair]:
    """Time two jobs in turn, so that what else happens on the machine hits both."""
    return [(clock(theirs), clock(ours)) for _ in range(runs)]


def _short(number: float) -> float:
    """Keep as many digits as mean something."""
    return float(f"{number:.4g}")
