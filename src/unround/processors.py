"""How many processors there are to use."""

from __future__ import annotations

import os
from functools import cache


@cache
def processors() -> int:
    """Return how many processors this process may use: fewer than the machine has where it is bound to some of them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
