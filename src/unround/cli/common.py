"""What the commands share: reading text, printing, progress bars."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, cast

import typer

from unround.errors import InputError


def print_json(told: Any) -> None:
    """Print one JSON object, in full precision."""
    typer.echo(json.dumps(told, ensure_ascii=False))


def read_text(path: Path, hint: str = "") -> str:
    """Return the text of a small file; `hint` says what else the user may have meant."""
    try:
        return decoded(path.read_bytes(), str(path))
    except FileNotFoundError:
        raise InputError(f"there is no file {path}. {hint}".rstrip()) from None
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror}.") from None


def decoded(content: bytes, where: str) -> str:
    """Return text with plain line ends, whatever the file had."""
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise InputError(f"{where} is not UTF-8 text.") from None


def console() -> Any:
    """Return where to print tables to."""
    from rich.console import Console

    if sys.stdout.isatty():
        return Console(highlight=False)
    # Piped output has no width of its own; 100 columns hold every table. Tables are padded with blanks on the right.
    width = None if "COLUMNS" in os.environ else 100
    return Console(file=cast(TextIO, _WithoutTrailingBlanks()), width=width, highlight=False)


class _WithoutTrailingBlanks(io.TextIOBase):
    """Standard output, for whole lines, without the blanks at their ends."""

    def write(self, text: str) -> int:
        sys.stdout.write("\n".join(line.rstrip(" ") for line in text.split("\n")))
        return len(text)


@contextmanager
def progress(what: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """Show a bar with the time that is left, on a terminal; yield the function to call with how much is done."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def stages() -> Iterator[Callable[[str, int, int], None]]:
    """Show one bar a stage, with the time that is left, on a terminal; yield the function to call with what is done."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:

        def step(what: str, done: int, total: int) -> None:
            if what not in tasks:
                # What was done before this run must not make the rest look quick.
                tasks[what] = bars.add_task(what, total=total or None, completed=done)
            bars.update(tasks[what], completed=done, total=total or None)

        yield step
