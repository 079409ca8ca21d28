"""A hidden folder inside the one that results go into: files are made there, and moved out when all are complete."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from unround.errors import InputError


@contextmanager
def workshop(out: Path, name: str, check: Callable[[Path], None]) -> Iterator[Path]:
    """Lend a hidden folder inside `out`; nothing of it, nor a new `out`, survives a failure.

    Parameters
    ----------
    out : Path
        Where the results will go.
    name : str
        What is being made, for the hidden folder's name.
    check : function
        Raises InputError where `out` holds what must not be replaced.

    Raises
    ------
    InputError
        Where `out` cannot be written.
    """
    prefix = f".{name}-{platform.node()}-"
    try:
        check(out)
        made = [folder for folder in (out, *out.parents) if not folder.exists()]
        out.mkdir(parents=True, exist_ok=True)
        _sweep(out, prefix)
        folder = Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=out))
    except OSError as error:
        raise InputError(f"cannot write into {out}: {error.strerror or error}. Choose another folder with -o.") from error
    done = False
    try:
        yield folder
        done = True
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if not done:
            for empty in made:
                if empty.is_dir() and not any(empty.iterdir()):
                    empty.rmdir()


def _sweep(out: Path, prefix: str) -> None:
    """Remove what runs on this machine left behind when they were killed."""
    for left in out.iterdir():
        number = left.name.removeprefix(prefix).split("-")[0]
        if left.name.startswith(prefix) and number.isdecimal() and not _runs(int(number)):
            shutil.rmtree(left, ignore_errors=True)


def _runs(process: int) -> bool:
    """Whether a process may still run; where there is no harmless way to ask, it may."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
