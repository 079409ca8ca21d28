"""The machine: how many processors there are to use; memory that is given back; and workers, whose end harms nobody else."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any


@cache
def processors() -> int:
    """Return how many processors this process may use: fewer than the machine has where it is bound to some of them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def threads(most: int | None = None) -> Iterator[ThreadPoolExecutor]:
    """Lend threads, as many as there are processors unless given; after an error, or Ctrl-C, they begin nothing more."""
    with ThreadPoolExecutor(most or processors()) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


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


class Worker:
    """Another process that answers lines of JSON with lines of JSON; it is started where it is needed, and may be ended.

    `module` is what it runs, which calls `serve`. One question is asked at a time.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None

    @property
    def runs(self) -> bool:
        """Whether it is there."""
        return self._process is not None and self._process.poll() is None

    def ask(self, question: Any, seconds: float | None = None) -> tuple[Any, bool]:
        """Return the answer, and whether there is one: a worker that died, or gave none in time, is ended.

        Without an answer, the first is whether the time was up.
        """
        if not self.runs:
            self.end()
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self._process = subprocess.Popen([sys.executable, "-m", self._module], **pipes)  # type: ignore[call-overload]
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        read, stream = list[bytes](), process.stdout
        with contextlib.suppress(OSError):  # it died before it could read
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
        self._reader = threading.Thread(target=lambda: read.append(stream.readline()), daemon=True)
        self._reader.start()
        self._reader.join(seconds)
        if read and read[0]:
            return json.loads(read[0]), True
        late = not read
        self.end()
        return late, False

    def end(self) -> None:
        """End it, if it is there, whatever it does."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        if self._reader is not None:
            self._reader.join()  # its pipe is at its end now
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what it did not read any more is lost
                    pipe.close()


def serve(answer: Callable[[Any], Any], memory: int | None = None) -> None:
    """Answer questions until there are no more, within so many bytes of memory; all that the machine has unless given."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever asks, whose end closes our input
    if sys.platform == "linux":  # elsewhere the limit of address space means something else, or does not exist
        import resource

        most = memory or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
