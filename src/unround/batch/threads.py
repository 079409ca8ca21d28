"""Areas in threads: compiled kernels release the interpreter lock, so they run on all processors."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

FEWEST = 16
"""Areas below which another thread would cost more than it saves."""


def in_threads(job: Callable[[int, int], object], areas: int, threads: int | None = None, fewest: int = FEWEST) -> None:
    """Run a job on ranges of areas in parallel, and wait for all of them.

    Parameters
    ----------
    job : function
        Takes the first area of a range and the one after its last; it must release the interpreter to gain anything.
    areas : int
        How many there are.
    threads : int, optional
        The most threads at a time; by default as many as the machine has processors.
    fewest : int, optional
        The fewest areas that are worth another thread.

    Notes
    -----
    There are several ranges per thread, so that no thread waits long for one with harder areas. The first error of any
    range is raised.
    """
    most = min(threads or os.cpu_count() or 1, -(-areas // fewest))
    if most < 2:
        job(0, areas)
        return
    ranges = min(4 * most, -(-areas // fewest))
    cuts = [areas * k // ranges for k in range(ranges + 1)]
    with ThreadPoolExecutor(most) as pool:
        for done in [pool.submit(job, first, last) for first, last in pairwise(cuts)]:
            done.result()
