"""Parquet files, which another process reads first.

Polars reads them, and ends the whole process where a damaged file makes it ask for more memory than there is: no error can
be caught then. So a worker reads every file before we do. If it does not come back, the file is refused.

`python -m unround.tables.parquet` is that worker: a path in JSON in, a line of JSON out, until its input ends.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl

from unround.errors import InputError

MANY_ROWS, ROWS_A_BYTE = 10_000_000, 50
"""Rows above which a Parquet file is looked at: it may have so many for each of its bytes."""

KEEP_BELOW = 32 << 20
"""Bytes of a file up to which the worker is kept for the next one: what it read of a large one is better given back."""

DAMAGED = "{} is damaged: it cannot be read as Parquet. Write it again."
FATAL = "{} is damaged: whatever reads it as Parquet runs out of memory. Write it again."


def read_parquet(path: Path, size: int) -> pl.DataFrame:
    """Return a Parquet file as a table, unless it is damaged or would fill the memory.

    Raises `InputError` if it cannot be read.
    """
    fault = fault_in(path, size)
    if fault is not None:
        raise InputError(fault)
    return _table(path, size)


def fault_in(path: Path, size: int) -> str | None:
    """Return why a Parquet file cannot be read, as another process finds out; None where it can."""
    return _WORKER.fault_in(path, size)


def _table(path: Path, size: int) -> pl.DataFrame:
    try:
        rows = int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
        if rows > max(MANY_ROWS, ROWS_A_BYTE * size):
            raise InputError(f"{path} has {rows:,} rows in {size:,} bytes; no table of counts is as repetitive as that.")
        return pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{path} cannot be read as Parquet ({said[:200]}); write it again.") from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # what polars raises where it did not expect damage
            raise
        raise InputError(DAMAGED.format(path)) from None


class _Worker:
    """The process that reads files first; it is started when it is needed, and again where a file ended it."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def fault_in(self, path: Path, size: int) -> str | None:
        """Return why a file cannot be read; None where it can."""
        with self._turn:
            try:
                return self._ask(json.dumps([str(path.resolve()), str(path), size]), path)
            finally:
                if size > KEEP_BELOW:
                    self.end()

    def _ask(self, line: str, path: Path) -> str | None:
        if self._process is None or self._process.poll() is not None:
            self.end()
            command = [sys.executable, "-m", "unround.tables.parquet"]
            told = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self._process = subprocess.Popen(command, text=True, encoding="utf-8", **told)  # type: ignore[call-overload]
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:  # it is gone
            answer = ""
        if not answer:
            self.end()
            return FATAL.format(path)
        fault: str | None = json.loads(answer)
        return fault

    def end(self) -> None:
        """End the process, if any."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what it did not read any more is lost
                    pipe.close()


_WORKER = _Worker()
atexit.register(_WORKER.end)


def main() -> None:
    """Read files until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever asks, whose end closes our input
    if sys.platform == "linux":  # elsewhere the limit of address space means something else, or does not exist
        import resource

        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    for line in sys.stdin:
        path, name, size = json.loads(line)
        fault: str | None = None
        try:
            _table(Path(path), size)
        except InputError as found:
            fault = str(found).replace(path, name)
        except MemoryError:
            fault = FATAL.format(name)
        print(json.dumps(fault), flush=True)


if __name__ == "__main__":
    main()
