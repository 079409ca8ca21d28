"""Which files in a folder are an older simulated census, and so may be replaced by a new one."""

from __future__ import annotations

import re
from pathlib import Path

from unround.errors import InputError
from unround.simulation.companions import NOTE_TITLE
from unround.simulation.editions import AREAS
from unround.simulation.write import RELEASES, TRUTH

NOTE = "SIMULATED.txt"


def older_census(out: Path, file_format: str) -> list[str]:
    """Return the files of an older census in a folder; complain of any that are not known to be one of this format."""
    formats = _release_files(out)
    there = [name for name in (*formats, AREAS, TRUTH, NOTE) if (out / name).exists()]
    note = _note(out)
    if there and not note.startswith(NOTE_TITLE):
        raise InputError(
            f"{out} already contains {_and(there)}, but no {NOTE} written by `unround simulate`: "
            "choose another folder with -o."
        )
    others = [name for name in there if formats.get(name, file_format) != file_format]
    if others:
        raise InputError(
            f"{out} already contains {_and(others)} from another simulated census ({formats[others[0]]}), which would "
            f"not be replaced: choose another folder with -o, or remove {'it' if len(others) == 1 else 'them'} first."
        )
    return [*formats, *([AREAS] if AREAS in note else []), TRUTH, NOTE]


def _release_files(out: Path) -> dict[str, str]:
    """Return the files in a folder that are named like those of a simulated census, with their formats."""
    formats = {}
    for path in sorted(out.iterdir()):
        for file_format, names in RELEASES.items():
            for name in names:
                stem, suffix = re.escape(Path(name).stem), re.escape(Path(name).suffix)
                if re.fullmatch(rf"{stem}(_(DA|CSD|CD|PR))?(_\d+)?{suffix}", path.name):
                    formats[path.name] = file_format
    return formats


def _note(out: Path) -> str:
    """Return the note in a folder, or nothing where there is none."""
    try:
        return (out / NOTE).read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, IsADirectoryError):
        return ""


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
