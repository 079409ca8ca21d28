"""What one block of areas gives: a folder of its own, written whole or not at all, and numbers that add up."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COUNTED = "counted.json"
"""The numbers of a part; tables and lines lie beside it under the names that they have in the audit folder."""

_HALF = ".half-"


def part_folder(parts: Path, number: int) -> Path:
    """Return where the part of a block is, or will be."""
    return parts / f"{number:06}"


@contextmanager
def new_part(parts: Path, number: int) -> Iterator[Path]:
    """Lend a folder for the part of a block; it takes its name when all is in it.

    Two workers may be at the same block, when one was believed to be lost. Both give the same part, so that it does not
    matter whose stays.
    """
    half = parts / f"{_HALF}{number:06}-{uuid.uuid4().hex}"
    half.mkdir()
    try:
        yield half
        for one in half.iterdir():
            _to_disk(one)
        _to_disk(half)
        try:
            half.rename(part_folder(parts, number))
        except OSError:
            if not part_folder(parts, number).is_dir():
                raise
    finally:
        shutil.rmtree(half, ignore_errors=True)


def _to_disk(path: Path) -> None:
    """Wait until the disk has it: a name must not outlive its contents in a power cut."""
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sweep(parts: Path) -> None:
    """Remove what killed runs left half-done."""
    for left in parts.glob(f"{_HALF}*"):
        shutil.rmtree(left, ignore_errors=True)


def add_up(one: Any, other: Any) -> Any:
    """Add numbers up, in plain data of the same shape: objects by their names, lists of numbers place by place.

    Lists of anything else are joined.

    Examples
    --------
    >>> add_up({"a": 1, "b": {"x": [1, 2]}}, {"b": {"x": [3, 4], "y": [5]}, "c": [{"z": 1}]})
    {'a': 1, 'b': {'x': [4, 6], 'y': [5]}, 'c': [{'z': 1}]}
    """
    if isinstance(one, dict):
        return one | other | {name: add_up(one[name], other[name]) for name in one if name in other}
    if isinstance(one, list):
        if any(isinstance(item, dict) for item in (*one, *other)):
            return [*one, *other]
        return [add_up(a, b) for a, b in zip(one, other, strict=True)]
    return one + other
