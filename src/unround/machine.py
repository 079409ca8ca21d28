"""The machine: how many processors there are to use, and what becomes of memory that is no longer needed."""

from __future__ import annotations

import contextlib
import os
from functools import cache


@cache
def processors() -> int:
    """Return how many processors this process may use: fewer than the machine has where it is bound to some of them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


M_ARENA_MAX, ARENAS = -8, 2
"""The number of glibc's setting, and how many heaps threads share."""

M_MMAP_THRESHOLD, LARGE = -3, 5 << 20
"""The number of another, and the bytes from which an array is given back to the machine as soon as nobody needs it. Those
of a block of areas are smaller: they are needed again and again, and new memory costs time."""


@cache
def give_memory_back() -> None:
    """Have memory given back to the machine, where the C library can be told so.

    glibc gives nearly every thread a heap of its own, and hardly ever gives one back, or what large arrays left in it:
    whoever infers areas now in this thread and now in that one would hold the memory of all of them.
    """
    import ctypes

    with contextlib.suppress(OSError, AttributeError):  # another C library, which needs no telling
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(M_ARENA_MAX, ARENAS)
        library.mallopt(M_MMAP_THRESHOLD, LARGE)
