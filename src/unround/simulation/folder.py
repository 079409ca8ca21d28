"""The folder that a simulated census goes into: what may be replaced there, and in which order.

Files are made in a hidden folder inside and moved out when all are complete. A folder holds one census: whatever
another one left there must go first, by the user's hand. `truth.parquet` is removed before and put back after
everything else, so that where it stands, all files belong together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unround.errors import InputError
from unround.output import workshop
from unround.simulation.companions import NOTE_TITLE
from unround.simulation.editions import AREAS
from unround.simulation.write import RELEASES, TRUTH

NOTE = "SIMULATED.txt"


@contextmanager
def census_workshop(out: Path, file_format: str) -> Iterator[Path]:
    """Lend a hidden folder inside `out`, unless that holds what must not be replaced."""
    with workshop(out, "simulate", lambda there: _check(there, file_format)) as folder:
        yield folder


def move_out(out: Path, note: Path, release: list[Path], truth: Path) -> tuple[Path, tuple[Path, ...], Path]:
    """Put the finished files into `out`, in place of older ones; those that nothing takes the place of go."""
    (out / TRUTH).unlink(missing_ok=True)  # while it is not there, nothing can be taken for complete
    ours = {*_releases(out), *([AREAS] if AREAS in _note(out) else [])}
    there = note.replace(out / note.name), tuple(path.replace(out / path.name) for path in release)
    for name in ours - {path.name for path in release}:
        (out / name).unlink(missing_ok=True)
    return *there, truth.replace(out / truth.name)


def _releases(out: Path) -> dict[str, str]:
    """Return the files in a folder that are called like those of a simulated census, with their layouts."""
    found = {}
    for path in sorted(out.iterdir()) if out.is_dir() else []:
        for file_format, names in RELEASES.items():
            for name in names:
                stem, suffix = re.escape(Path(name).stem), re.escape(Path(name).suffix)
                if re.fullmatch(rf"{stem}(_(DA|CSD|CD|PR))?(_\d+)?{suffix}", path.name):
                    found[path.name] = file_format
    return found


def _check(out: Path, file_format: str) -> None:
    """Complain of files that are not a simulated census, or one of another layout."""
    known = _releases(out)
    there = [name for name in (*known, AREAS, TRUTH, NOTE) if (out / name).exists()]
    if there and not _simulated(out):
        raise InputError(
            f"{out} already holds {_and(there)}, and no {NOTE} of unround's says that it is simulated: "
            "choose another folder with -o."
        )
    others = [name for name in there if known.get(name, file_format) != file_format]
    if others:
        raise InputError(
            f"{out} already holds {_and(others)}, of another simulated census ({known[others[0]]}), which would not be "
            f"replaced: choose another folder with -o, or remove {'it' if len(others) == 1 else 'them'} first."
        )


def _simulated(out: Path) -> bool:
    """Whether a note of ours lies there."""
    return _note(out).startswith(NOTE_TITLE)


def _note(out: Path) -> str:
    """Return what the note says that lies there; nothing where there is none."""
    try:
        return (out / NOTE).read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return ""


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
