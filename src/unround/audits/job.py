"""A running audit: what tells it from another one, and the folder that it writes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from unround._version import __version__
from unround.audits.folder import older_audit
from unround.output import OutputFolder, output_folder
from unround.release import Release

PREPARED = "prepared.json"
"""In the working folder: reading is over, and everything that a worker needs is there."""


def job_key(release: Release, decided: Iterable[object], paths: Iterable[Path]) -> str:
    """Return what tells one audit from another: the version, the files, and everything that was decided.

    Parameters
    ----------
    release : Release
        What is audited. What a description of the table says is in its columns and proposals.
    decided : iterable
        The user's options and plan file.
    paths : iterable of Path
        All other files that take part. Path, size and time of the last change count.
    """
    # A source need not be a path, and may be too long for one: to `os.path.exists` that is no error.
    files = [path for path in (Path(release.source), *paths) if os.path.exists(path)]
    states = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    table = (release.source, release.file_format, release.axes, release.areas, release.columns, release.proposals)
    return hashlib.sha256(repr((__version__, states, table, list(decided))).encode()).hexdigest()


def job_folder(out: Path, key: str) -> AbstractContextManager[OutputFolder]:
    """Lend the folder of an audit; once reading is over, a run that is stopped or killed can be resumed."""
    return output_folder(out, "audit", older_audit, key=key, checkpoint=PREPARED)
