"""Whether files are as they were left: those of an audit folder, and those that a stopped run left for the next."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unround.output import write_json

SUMMARY = "summary.json"
RUN = "run.json"
"""How long the audit took, when and where: all that differs from one run to the next. It has no hash."""

FILES, SEAL = "files", "seal"
"""In the summary: the hash of every other file, and that of the summary without this line."""

HASHES = "hashes.json"
"""The hashes of the files beside it, in folders that have no summary."""

_WORKING = "."
"""Begins the names of folders that hold work in progress."""


def seal(folder: Path, names: tuple[str, ...]) -> None:
    """Write the hashes of an audit's files into its summary."""
    told = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    told.pop(SEAL, None)
    paths = [path for name in names if name not in (SUMMARY, RUN) for path in _files(folder / name)]
    told[FILES] = {path.relative_to(folder).as_posix(): sha256_of(path) for path in sorted(paths)}
    write_json(folder / SUMMARY, {**told, SEAL: seal_of(told)})


def write_hashes(folder: Path) -> None:
    """Write the hashes of all files of a folder into a file beside them."""
    write_json(folder / HASHES, hashes_of(folder))


def hashes_of(folder: Path, leave_out: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the hash of every file of a folder, by name; but of those that begin with certain names."""
    names = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
    return {name: sha256_of(path) for name, path in sorted(names.items()) if not name.startswith((HASHES, *leave_out))}


def is_whole(folder: Path) -> bool:
    """Whether a folder holds what `write_hashes` found in it."""
    try:
        told = json.loads((folder / HASHES).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(told, dict) and first_damaged(folder, told) is None


def first_damaged(folder: Path, hashes: Mapping[str, str]) -> str | None:
    """Return the first file that is missing or was changed, if any."""
    for name, expected in hashes.items():
        try:
            if sha256_of(folder / name) != expected:
                return name
        except OSError:
            return name
    return None


def seal_of(summary: Mapping[str, Any]) -> str:
    """Return the hash of what a summary says, however it is laid out."""
    said = {key: value for key, value in summary.items() if key != SEAL}
    return hashlib.sha256(json.dumps(said, ensure_ascii=False, sort_keys=True).encode()).hexdigest()


def sha256_of(path: Path) -> str:
    """Return the hash of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return [one for one in path.rglob("*") if one.is_file() and not one.name.startswith(_WORKING)]
    return [path] if path.is_file() else []
