"""Whether the files of an audit folder are as the audit left them: hashes of all of them stand in its summary."""

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

_WORKING = "."
"""Begins the names of folders that hold work in progress."""


def seal(folder: Path, names: tuple[str, ...]) -> None:
    """Write the hashes of an audit's files into its summary.

    Parameters
    ----------
    folder : Path
        The audit folder.
    names : tuple of str
        What can lie in it: files, and folders of files.
    """
    told = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    told.pop(SEAL, None)
    paths = [path for name in names if name not in (SUMMARY, RUN) for path in _files(folder / name)]
    told[FILES] = {path.relative_to(folder).as_posix(): sha256_of(path) for path in sorted(paths)}
    write_json(folder / SUMMARY, {**told, SEAL: seal_of(told)})


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
