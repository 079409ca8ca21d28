"""Parquet files, which another process reads first.

Polars reads them, and ends the whole process where a damaged file makes it ask for more memory than there is: no error can
be caught then. So a worker reads every file before we do. If it does not come back, the file is refused.

`python -m unround.tables.parquet` is that worker: a path in JSON in, a line of JSON out, until its input ends.
"""

from __future__ import annotations

import atexit
import threading
from pathlib import Path

import polars as pl

from unround.errors import InputError
from unround.machine import Worker, serve

MANY_ROWS, ROWS_A_BYTE = 10_000_000, 50
"""Rows above which a Parquet file is looked at: it may have so many for each of its bytes."""

KEEP_BELOW = 32 << 20
"""Bytes of a file up to which the worker is kept for the next one: what it read of a large one is better given back."""

DAMAGED = "{} is damaged: it cannot be read as Parquet. Write it again."
FATAL = "{} is damaged: whatever reads it as Parquet runs out of memory. Write it again."


def read_parquet(path: Path, size: int) -> pl.DataFrame:
    """Return a Parquet file as a table, unless it is damaged or would fill the memory."""
    fault = fault_in(path, size)
    if fault is not None:
        raise InputError(fault)
    return _table(path, size)


def fault_in(path: Path, size: int) -> str | None:
    """Return why a Parquet file cannot be read, as another process finds out; None where it can."""
    with _TURN:
        fault, answered = _WORKER.ask([str(path.resolve()), str(path), size])
        if size > KEEP_BELOW:
            _WORKER.end()
    return fault if answered else FATAL.format(path)


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


_WORKER, _TURN = Worker("unround.tables.parquet"), threading.Lock()
atexit.register(_WORKER.end)


def _fault(asked: tuple[str, str, int]) -> str | None:
    path, name, size = asked
    try:
        _table(Path(path), size)
    except InputError as found:
        return str(found).replace(path, name)
    except MemoryError:
        return FATAL.format(name)
    return None


if __name__ == "__main__":
    serve(_fault)
