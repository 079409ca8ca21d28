"""The folder that a simulated census goes into: what may be replaced there, and in which order.

Files are made in a hidden folder inside and moved out when all are complete. A folder holds one census: whatever
another one left there must go first, by the user's hand. `truth.parquet` is removed before and put back after
everything else, so that where it stands, all files belong together.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unround.errors import InputError
from unround.simulate.companions import NOTE_TITLE
from unround.simulate.write import RELEASES, TRUTH

NOTE = "SIMULATED.txt"


@contextmanager
def workshop(out: Path, layout: str) -> Iterator[Path]:
    """Lend a hidden folder inside `out`; nothing of it, nor a new `out`, survives a failure.

    Raises
    ------
    InputError
        Where `out` cannot be written, or holds what must not be replaced.
    """
    prefix = f".simulate-{platform.node()}-"
    try:
        _check(out, layout)
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


def move_out(out: Path, note: Path, release: list[Path], truth: Path) -> tuple[Path, tuple[Path, ...], Path]:
    """Put the finished files into `out`, in place of older ones."""
    (out / TRUTH).unlink(missing_ok=True)  # while it is not there, nothing can be taken for complete
    there = note.replace(out / note.name), tuple(path.replace(out / path.name) for path in release)
    return *there, truth.replace(out / truth.name)


def _check(out: Path, layout: str) -> None:
    """Complain of files that are not a simulated census, or one of another layout."""
    known = {name: which for which, names in RELEASES.items() for name in names}
    there = [name for name in (*known, TRUTH, NOTE) if (out / name).exists()]
    if there and not _simulated(out):
        raise InputError(
            f"{out} already holds {_and(there)}, and no {NOTE} of unround's says that it is simulated: "
            "choose another folder with -o."
        )
    others = [name for name in there if known.get(name, layout) != layout]
    if others:
        raise InputError(
            f"{out} already holds {_and(others)}, of another simulated census ({known[others[0]]}), which would not be "
            f"replaced: choose another folder with -o, or remove {'it' if len(others) == 1 else 'them'} first."
        )


def _simulated(out: Path) -> bool:
    """Whether a note of ours lies there."""
    try:
        return (out / NOTE).read_text(encoding="utf-8", errors="replace").startswith(NOTE_TITLE)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return False


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


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
