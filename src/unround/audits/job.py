"""The folder of a running audit: kept when the run is stopped, so that the same command goes on; gone when it is done."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from unround._version import __version__
from unround.audits.folder import OURS, SUMMARY, check
from unround.errors import InputError
from unround.release import Release

FOLDER = ".audit"
"""Inside the folder that results go into. Everything a worker needs is in it."""

KEY, LOCK, PREPARED, COMPLETE = "key", "lock", "prepared.json", "complete.json"
"""What the audit is of; who works on it; that reading is over, and what came of it; that all results are there."""

DONE, OLDER = "done", "older"
"""The results before they are moved out; and those of an older audit that they take the place of."""

KEPT = "What is done so far is kept: the same command goes on from there."


class Stopped(InputError):  # noqa: N818 - it says what became of the audit, which can go on
    """An audit could not go on, but what it did so far is kept: the same command goes on from there."""


def job_key(release: Release, told: Iterable[object], paths: Iterable[Path]) -> str:
    """Return what tells one audit from another: the version, the files, and everything that was decided.

    Parameters
    ----------
    release : Release
        What is audited. What a description of the table says is in its columns and proposals.
    told : iterable
        Options, in an order of their own.
    paths : iterable of Path
        All files that take part: of these the place, the size and the time of the last change count.
    """
    files = [Path(release.source), *paths]
    seen = [(str(path.resolve()), status.st_size, status.st_mtime_ns) for path in files if (status := _status(path))]
    table = (release.source, release.file_format, release.axes, release.areas, release.columns, release.proposals)
    return hashlib.sha256(repr((__version__, seen, table, list(told))).encode()).hexdigest()


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


@contextmanager
def job_folder(out: Path, key: str) -> Iterator[Path]:
    """Lend the hidden folder of an audit inside `out`, with what a stopped run left there if it had the same key.

    Nothing is left behind, not even a new `out`, if the audit fails while reading, or by a fault of its own. Where it was
    stopped after that (by Ctrl-C, by a full disk, by a cluster that is gone), or killed, the folder stays for the next run.

    Parameters
    ----------
    out : Path
        Where the results will go.
    key : str
        See `job_key`; with "" nothing that was left is used.

    Raises
    ------
    InputError
        Where `out` cannot be written, holds what must not be replaced, or is being written by another audit.
    """
    folder = out / FOLDER
    try:
        if out.is_file():
            check(out)
        made = [one for one in (out, *out.parents) if not one.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        lock = _lock(folder)
    except OSError as error:
        raise InputError(f"cannot write into {out}: {error.strerror or error}. Choose another folder with -o.") from error
    keep = False
    try:
        if (folder / COMPLETE).exists():
            move_out(folder, out)  # it was stopped at its very last step
            _clear(folder)
        check(out)
        if not key or not (folder / KEY).is_file() or (folder / KEY).read_text(encoding="utf-8") != key:
            _clear(folder)
        write_whole(folder / KEY, key)
        try:
            yield folder
        except Exception as error:
            if not _is_of_files(error):
                raise
            raise _stopped(error, out, folder) from error
    except (KeyboardInterrupt, SystemExit, MemoryError, InputError) as stop:
        keep = bool(key) and (folder / PREPARED).exists()
        if keep and isinstance(stop, KeyboardInterrupt):
            raise KeyboardInterrupt(f"stopped. {KEPT}") from None
        raise
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
            for empty in made:
                if empty.is_dir() and not any(empty.iterdir()):
                    empty.rmdir()
        lock.close()


def _is_of_files(error: Exception) -> bool:
    """Whether a file could not be written or read: a disk that is full, say. Polars has errors of its own for that."""
    return isinstance(error, OSError) or type(error).__module__.startswith("polars")


def _stopped(error: Exception, out: Path, folder: Path) -> Stopped:
    """Say what became of the work where a file could not be written or read."""
    kept = KEPT if (folder / PREPARED).exists() else ""
    why = (error.strerror if isinstance(error, OSError) else None) or str(error)
    named = f" ({error.filename})" if isinstance(error, OSError) and error.filename else ""
    advice = "Is there room on the disk? "
    return Stopped(f"the audit into {out} cannot go on: {why}{named}. {advice}{kept}".rstrip())


def _lock(folder: Path) -> BinaryIO:
    """Take hold of the folder for this process; it is let go however the process ends."""
    while True:
        held = (folder / LOCK).open("ab")
        try:
            import fcntl
        except ImportError:  # no such locks on this system: two audits into one folder are then the user's business
            return held
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.close()
            raise InputError(f"another audit is being written into {folder.parent}: wait for it, or choose -o.") from None
        if _status(folder / LOCK) is not None and os.path.samestat(os.fstat(held.fileno()), os.stat(folder / LOCK)):
            return held
        held.close()  # whoever had it has just finished, and removed it
        folder.mkdir(parents=True, exist_ok=True)


def _clear(folder: Path) -> None:
    """Remove everything but the lock."""
    for one in folder.iterdir():
        if one.is_dir():
            shutil.rmtree(one)
        elif one.name != LOCK:
            one.unlink()


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is there with all its text, or not at all."""
    half = path.with_name(path.name + ".half")
    with half.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    half.replace(path)


def write_json(path: Path, told: Any) -> None:
    """Write plain data, whole or not at all."""
    write_whole(path, json.dumps(told, ensure_ascii=False, indent=2) + "\n")


def move_out(folder: Path, out: Path) -> None:
    """Put the finished results in place of an older audit's, which come back if that fails.

    The summary goes last, and an old one is moved away first: where it stands, all files belong together. Whoever is killed
    on the way has only to call this again.
    """
    done, older = folder / DONE, folder / OLDER
    if not (folder / COMPLETE).exists():
        write_json(folder / COMPLETE, sorted(one.name for one in done.iterdir()))
    ours = json.loads((folder / COMPLETE).read_text(encoding="utf-8"))
    older.mkdir(exist_ok=True)
    names = [SUMMARY, *(name for name in OURS if name != SUMMARY)]
    try:
        for name in names:
            if (out / name).exists() and (name not in ours or (done / name).exists()):
                (out / name).replace(older / name)
        for name in reversed(names):
            if (done / name).exists():
                (done / name).replace(out / name)
    except BaseException:
        for name in reversed(names):
            if (older / name).exists():
                if (out / name).exists():
                    (out / name).replace(done / name)
                (older / name).replace(out / name)
        (folder / COMPLETE).unlink(missing_ok=True)
        raise
