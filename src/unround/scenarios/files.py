"""The folder that `whatif` writes: both audits, and what was found, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unround.errors import InputError
from unround.output import workshop

BEFORE, AFTER, REPORT, PAGE = "before", "after", "whatif.json", "whatif.html"
OURS = (BEFORE, AFTER, REPORT, PAGE)


def check(out: Path) -> None:
    """Complain where a folder holds files of these names that `whatif` did not write."""
    if out.is_file():
        raise InputError(f"{out} is a file, not a folder: choose another name with -o.")
    there = [name for name in OURS if (out / name).exists()]
    if there and not _is_ours(out):
        raise InputError(f"{out} already holds {there[0]}, but no {REPORT}: choose another folder with -o.")


def _is_ours(out: Path) -> bool:
    try:
        told = json.loads((out / REPORT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(told, dict) and "repairs" in told


@contextmanager
def whatif_workshop(out: Path) -> Iterator[Path]:
    """Lend a hidden folder inside `out`; what is in it at the end takes the place of an older result."""
    with workshop(out, "whatif", check) as folder:
        made = folder / "made"
        made.mkdir()
        yield made
        _move_out(made, folder / "older", out)


def _move_out(made: Path, older: Path, out: Path) -> None:
    """Put a finished result in place of an older one, which comes back if that fails."""
    older.mkdir()
    for name in OURS:
        if (out / name).exists():
            (out / name).replace(older / name)
    try:
        for name in OURS:
            if (made / name).exists():
                (made / name).replace(out / name)
    except BaseException:
        for name in OURS:
            if (older / name).exists():
                if (out / name).exists():
                    (out / name).replace(made / name)
                (older / name).replace(out / name)
        raise
