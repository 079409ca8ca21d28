"""The folder that a command writes its results into: all of them, or nothing.

Files are made in a hidden working folder inside the target and moved out when all are complete. Nothing that is not an
older result of the same command is replaced, nor anything that the command reads; an older result comes back if the new one
cannot be moved into its place; and a run that was killed while moving is completed by the next. Nothing outside of the
folder is ever written or removed: links in the working folder are refused, and others are replaced, not followed.
"""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import signal
import stat
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from unround.errors import InputError
from unround.options import inputs
from unround.small_files import LARGEST_JSON, Shape, is_name, misfit, open_plain, plain_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

DONE, KEY, LOCK, MOVING = "done", "key", "lock", "moving.json"
"""In the working folder: finished files, what they answer, who is at work, and which files are being moved out."""

_OLDER, HALF = "older", ".half"

KEPT = "The work done so far is kept: run the same command again to continue."


class Stopped(InputError):  # noqa: N818 - it says what became of the work, which can go on
    """A command could not go on. Where its work can be resumed, that is kept and the message says so."""


class NotWritten(Stopped):
    """A file could not be written, or read again: `where` says what cannot go on, `why` what the system says."""

    def __init__(self, where: str, why: str, kept: str = "") -> None:
        super().__init__(f"{where}: {why}. Is the disk full? {kept}".rstrip())
        self.why = why


@dataclass(frozen=True, slots=True)
class OutputFolder:
    """A folder that is being written, lent by `output_folder`.

    - `path`: Where the results will go.
    - `work`: The hidden folder inside it, for anything that is needed on the way.
    - `older`: Names the files of an older result in a folder, see `output_folder`.
    """

    path: Path
    work: Path
    older: Callable[[Path], Iterable[str]]

    @property
    def done(self) -> Path:
        """The folder for finished files."""
        return self.work / DONE

    def start_anew(self) -> None:
        """Remove what an earlier run left."""
        _clear(self.work, keep=(LOCK, KEY))
        self.done.mkdir()

    def publish(self, names: Iterable[str]) -> None:
        """Move finished files out of `done`, in place of an older result, which comes back if that fails."""
        new = [name for name in names if (self.done / name).exists()]
        ours = list(self.older(self.path))
        if foreign := [name for name in new if name not in ours and (self.path / name).exists()]:
            raise InputError(
                f"{self.path} already contains {foreign[0]}, which is not an older result: choose another folder with -o."
            )
        older = [*reversed(new), *(name for name in ours if name not in new)]
        leaving = {name: _identity(self.path / name) for name in older if (self.path / name).exists()}
        write_json(self.work / MOVING, {"new": new, "leaving": leaving})
        self.finish_moving()

    def finish_moving(self) -> None:
        """Move what has not been moved yet; whoever stops the program is heard when all is in its place."""
        moving, aside = self.work / MOVING, self.work / _OLDER
        new, leaving = _moves_in(moving)
        waiting = [name for name in new if (self.done / name).exists()]
        for name in (*waiting, *(name for name in leaving if name not in new)):
            there = self.path / name
            if there.exists() and _identity(there) != leaving.get(name):
                raise InputError(
                    f"{there} was put there since a run was stopped that would have replaced it: move it to another folder, "
                    f"or remove {self.work}."
                )
        with not_stopped():
            aside.mkdir(exist_ok=True)
            try:
                _move([name for name in leaving if name in waiting or name not in new], self.path, aside)
                _move(new, self.done, self.path)
            except BaseException:
                _move([name for name in reversed(new) if not (self.done / name).exists()], self.path, self.done)
                _move([*reversed(leaving)], aside, self.path)
                moving.unlink()
                raise
            moving.unlink()


def _identity(path: Path) -> list[int]:
    """Return what tells a file from any other of its name, and stays as it is where the file is moved."""
    state = path.stat()
    return [state.st_ino, state.st_size, state.st_mtime_ns]


_MOVES: Shape = {"new": [str, ...], "leaving": {str: [int, int, object]}}


def _moves_in(moving: Path) -> tuple[list[str], dict[str, list[int]]]:
    """Return which files are on their way into a folder, and which out of it: names only, no paths to anywhere else."""
    try:
        moves = plain_json(moving)
    except (OSError, ValueError):
        moves = None
    if misfit(moves, _MOVES) is None:
        names = (*moves["new"], *moves["leaving"])
        if all(name not in ("", ".", "..") and Path(name).name == name for name in names):
            return moves["new"], moves["leaving"]
    raise InputError(
        f"{moving}, which an earlier run left, is damaged: remove the folder {moving.parent}, and run it again."
    )


@contextmanager
def not_stopped() -> Iterator[None]:
    """Let Ctrl-C, and other ways of asking a program to end, wait until something is done that takes no time."""
    if threading.current_thread() is not threading.main_thread():  # which is not interrupted anyway
        yield
        return
    asked: list[int] = []
    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {
        number: signal.signal(number, lambda sign, _: asked.append(sign)) for number in (getattr(signal, n) for n in names)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in asked:
            signal.raise_signal(number)


def _move(names: Sequence[str], origin: Path, target: Path) -> None:
    """Move those files that are there."""
    for name in names:
        if (origin / name).exists():
            (origin / name).replace(target / name)


def known_by(mark: str, sign: str, names: Sequence[str], command: str) -> Callable[[Path], Sequence[str]]:
    """Return what names the files of an older result in a folder: they are ours if the file `mark` says `sign`."""

    def older(out: Path) -> Sequence[str]:
        there = [name for name in names if (out / name).exists()]
        if there and sign not in text_of(out / mark):
            raise InputError(
                f"{out} already contains {' and '.join(there)}, but no {mark} written by `unround {command}`: choose "
                "another folder with -o."
            )
        return names

    return older


def text_of(path: Path) -> str:
    """Return the text of a file, or nothing where there is none."""
    try:
        with open_plain(path) as file:
            return file.read(LARGEST_JSON).decode("utf-8", errors="replace")
    except OSError:
        return ""


def _refuse_replacing_inputs(out: Path, names: Iterable[str]) -> None:
    """Raise before a result takes the place of what it is made from."""
    replaced = {(out / name).resolve() for name in names}
    for path in inputs.get():
        there = path.resolve()
        if there in replaced or replaced.intersection(there.parents):
            raise InputError(f"{path} is read by this command, and would be replaced by it: choose another folder with -o.")


def _refuse_name(path: Path) -> None:
    """Raise if nothing can be called so: results say where they are."""
    if not is_name(path.absolute()):
        raise InputError(f"cannot write to {str(path)!r}: its name is not text in UTF-8. Choose another name.")


def _refuse_links(work: Path) -> None:
    """Raise if there is anything in a working folder that no run puts there, such as a link to somewhere else, or a pipe."""
    for folder, folders, files in os.walk(work):
        for name in (*folders, *files):
            path = Path(folder, name)
            if not stat.S_ISREG(mode := path.lstat().st_mode) and not stat.S_ISDIR(mode):
                raise InputError(f"{path} is a link, a pipe or a device, which no run leaves there: remove {work}.")


@contextmanager
def output_folder(
    out: Path,
    command: str,
    older: Callable[[Path], Iterable[str]],
    *,
    key: str = "",
    checkpoint: str = "",
) -> Iterator[OutputFolder]:
    """Lend a folder to write results into; nothing of it, nor a new `out`, survives a failure.

    With a key, the work survives where it was stopped (by Ctrl-C, a full disk, lost workers) or killed after the checkpoint,
    and the next run with the same key finds it.
    """
    _refuse_name(out)
    output = OutputFolder(out, out / f".{command}", older)
    work = output.work
    if os.path.isfile(out):
        raise InputError(f"cannot write to {out}: it is a file, not a folder. Choose another folder with -o.")
    try:
        new_folders = [folder for folder in (out, *out.parents) if not folder.exists()]
        if work.is_symlink():
            raise InputError(f"{work} is a link to somewhere else, where nothing may be written: remove it.")
        work.mkdir(parents=True, exist_ok=True)
        _refuse_links(work)
        lock = _lock(work, command)
    except OSError as error:
        raise InputError(f"cannot write to {out}: {error.strerror or error}. Choose another folder with -o.") from error
    keep = False
    try:
        try:
            if (work / MOVING).exists():  # a run was killed at its very last step
                output.finish_moving()
                _clear(work)
            _refuse_replacing_inputs(out, older(out))
            if not key or text_of(work / KEY) != key:
                _clear(work)
            write_whole(work / KEY, key)
            output.done.mkdir(exist_ok=True)
            yield output
        except Exception as error:
            if not _is_about_files(error):
                raise
            raise _stopped(error, out, command, KEPT if key and (work / checkpoint).exists() else "") from error
    except (KeyboardInterrupt, SystemExit, MemoryError, InputError) as stop:
        keep = bool(key) and (work / checkpoint).exists()
        if keep and isinstance(stop, KeyboardInterrupt):
            raise KeyboardInterrupt(f"stopped. {KEPT}") from None
        raise
    finally:
        if not keep and not (work / MOVING).exists():
            shutil.rmtree(work, ignore_errors=True)
            for folder in new_folders:
                with suppress(OSError):  # it is not there, or holds something
                    folder.rmdir()
        lock.close()


def _is_about_files(error: Exception) -> bool:
    """Whether a file could not be written or read: the disk is full, say. Polars has errors of its own for that."""
    if isinstance(error, InputError):
        return isinstance(error, NotWritten)
    return isinstance(error, OSError) or type(error).__module__.startswith("polars")


def _stopped(error: Exception, out: Path, command: str, kept: str) -> NotWritten:
    """Say what became of the work where a file could not be written or read."""
    while isinstance(error, shutil.Error) and isinstance(error.args[0], list):
        # Of several files: for each where it is, where it was to go, and why not.
        error = OSError(error.args[0][0][2])
    why = error.strerror if isinstance(error, OSError) else error.why if isinstance(error, NotWritten) else None
    named = f" ({error.filename})" if isinstance(error, OSError) and error.filename else ""
    return NotWritten(f"`unround {command}` cannot continue writing to {out}", f"{why or error}{named}", kept)


def _lock(work: Path, command: str) -> BinaryIO:
    """Reserve the working folder for this process; the reservation ends however the process ends."""
    while True:
        held = (work / LOCK).open("ab")
        try:
            import fcntl

            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if (work / LOCK).exists() and os.path.samestat(os.fstat(held.fileno()), os.stat(work / LOCK)):
                return held
        except ImportError:  # this system has no such locks: two runs into one folder are then the user's business
            return held
        except BlockingIOError:
            held.close()
            raise InputError(
                f"another `unround {command}` is writing to {work.parent}: wait until it has finished, or choose "
                "another folder with -o."
            ) from None
        except OSError as error:
            if error.errno in (errno.ENOLCK, errno.ENOTSUP):  # nor has every network drive
                return held
            held.close()
            raise
        held.close()  # whoever had it has just finished, and removed it
        work.mkdir(parents=True, exist_ok=True)


def _clear(work: Path, keep: tuple[str, ...] = (LOCK,)) -> None:
    """Remove everything but the lock, or whatever else is to be kept."""
    for path in work.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in keep:
            path.unlink()


@contextmanager
def scratch_folder(purpose: str) -> Iterator[Path]:
    """Lend a temporary folder; where it cannot be written, say which it is and what to do."""
    with naming_temporary_folder(), tempfile.TemporaryDirectory(prefix=f"unround-{purpose}-") as folder:
        yield Path(folder)


@contextmanager
def naming_temporary_folder() -> Iterator[None]:
    """Turn errors in writing temporary files into words that name the folder they are in."""
    try:
        yield
    except OSError as error:
        why, where = error.strerror or str(error), tempfile.gettempdir()
        raise InputError(
            f"the temporary folder {where} cannot be used: {why}. Make room in it, or name another with the variable TMPDIR."
        ) from error


def array_on_disk(path: Path, shape: tuple[int, int], kind: str) -> NDArray[Any]:
    """Return an array that is kept in a file: the one that is there, if it has this size; otherwise zeros.

    There is room for all of it: the system ends a program that writes to a page for which the disk has none.
    """
    import numpy as np

    size = math.prod(shape) * np.dtype(kind).itemsize
    if not size:
        return np.zeros(shape, dtype=kind)
    with path.open("ab") as file:
        if file.tell() != size:
            file.truncate(0)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            for start in range(file.seek(0, os.SEEK_END), size, 1 << 20):
                file.write(bytes(min(1 << 20, size - start)))
    return np.memmap(path, kind, "r+", shape=shape)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that it is there with all its content, or not at all."""
    half = path.with_name(path.name + HALF)
    half.unlink(missing_ok=True)
    try:
        with half.open("xb") as file:  # through no link to another file
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        half.replace(path)
    except BaseException:
        half.unlink(missing_ok=True)
        raise


def write_json(path: Path, content: Any, *, indent: int | None = 2) -> None:
    """Write plain data, whole or not at all; without indentation, which people need, in a tenth of the time."""
    write_whole(path, json.dumps(content, ensure_ascii=False, indent=indent) + "\n")


def refuse_overwriting(file: Path | None) -> None:
    """Raise if a file is there: somebody may have worked on it."""
    if file is not None and os.path.lexists(file):
        raise InputError(f"{file} exists, and may hold work of yours: delete it, or choose another name.")


def write_text(file: Path, text: str) -> None:
    """Write a file of text: complete, or not at all."""
    _refuse_name(file)
    try:
        write_whole(file, text)
    except OSError as problem:
        raise InputError(f"{file} cannot be written: {problem.strerror}.") from None
