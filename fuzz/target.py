"""What a target is, and where inputs become files."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fuzz.oracle import Fault
from unround.release import Release

Run = Callable[[bytes], None]

LONGEST = 40_000
"""Bytes of an input."""

SHARED = Path("/dev/shm")
PLACE = "UNROUND_FUZZ_FOLDER"
"""Names the folder that a process is lent which will not end in the usual way."""


@dataclass(frozen=True)
class Target:
    """One thing to try: its name, inputs that it takes, what to do with an input, and words that inputs are made of."""

    name: str
    seeds: tuple[bytes, ...] | Callable[[], tuple[bytes, ...]]
    """Those that take a while to make are made when they are needed."""
    run: Run
    words: tuple[str, ...] = ()
    weight: float = 1.0
    """How many inputs it gets, beside others: parsers of text are a hundred times as fast as readers of files."""


@cache
def place() -> Path:
    """Return where inputs become files: in memory, where there is such a place. Whoever lends a folder clears it away."""
    if PLACE in os.environ:
        return Path(os.environ[PLACE])
    made = tempfile.mkdtemp(prefix="unround-fuzz-", dir=SHARED if SHARED.is_dir() else None)
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def as_file(name: str, data: bytes) -> Path:
    """Return an input as a file of that name."""
    path = place() / name
    path.write_bytes(data)
    return path


def gone_through(release: Release) -> Release:
    """Return a release, all of whose blocks were read."""
    for block in release.blocks():
        if block.counts.shape != (block.areas.height, len(release.columns)):
            raise Fault(f"a block of {block.counts.shape} for {block.areas.height} areas")
    return release
