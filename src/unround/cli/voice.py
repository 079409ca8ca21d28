"""What a command says: its result, notes beside it, how far it is, and nothing at all where --quiet was asked for.

How far it is are bars on a terminal, and elsewhere lines: the first after seconds, then one a minute.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any, TextIO, cast

import typer

Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print nothing but errors, and what --json asks for; show no progress.")
]

_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


def is_quiet() -> bool:
    """Whether the running command was asked to be quiet."""
    return _quiet.get()


@contextmanager
def quietly(quiet: bool) -> Iterator[None]:
    """Print nothing but errors while a command runs, if that is wanted."""
    token = _quiet.set(quiet)
    try:
        yield
    finally:
        _quiet.reset(token)


def say(text: object, *, err: bool = False) -> None:
    """Print a line of the result, or with `err` a note beside it, unless quiet is wanted."""
    if not is_quiet():
        tell(text, err=err)


def tell(text: object, *, err: bool = False) -> None:
    """Print a line, whether quiet is wanted or not: an error, or a question."""
    from unround.show.terminal import visible

    typer.echo(visible(str(text)), err=err)


def print_json(data: Any) -> None:
    """Print one JSON object, in full precision; it was asked for, so that --quiet leaves it."""
    from unround.show.terminal import visible_json

    typer.echo(visible_json(json.dumps(data, ensure_ascii=False)))


def console() -> Any:
    """Return where to print tables to."""
    from unround.show.terminal import VisibleConsole

    if is_quiet():
        return VisibleConsole(file=io.StringIO())
    if sys.stdout.isatty():
        return VisibleConsole(highlight=False)
    # Piped output has no width of its own; 100 columns hold every table. Tables are padded with spaces on the right.
    width = None if "COLUMNS" in os.environ else 100
    return VisibleConsole(file=cast(TextIO, _WithoutTrailingBlanks()), width=width, highlight=False)


class _WithoutTrailingBlanks(io.TextIOBase):
    """Standard output, for whole lines, without trailing spaces."""

    def write(self, text: str) -> int:
        sys.stdout.write("\n".join(line.rstrip(" ") for line in text.split("\n")))
        return len(text)


# -- how far it is ----------------------------------------------------------------------------------------------------

EVERY, LONGEST = 5.0, 60.0
"""Seconds to the first sign of life, and between two at most. A command that is done before the first one prints none."""


@contextmanager
def stages() -> Iterator[Callable[[str, int, int], None]]:
    """Show one thing after the other; yield the function to call with what is being done, how much, and out of how much."""
    if is_quiet():
        yield lambda *_: None
        return
    if not sys.stderr.isatty():
        with _signs_of_life() as step:
            yield step
        return
    from rich.progress import BarColumn, Progress, Task, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    from unround.show.terminal import VisibleConsole

    class StageColumn(TextColumn):
        def render(self, task: Task) -> Text:
            text = super().render(task)
            return text if task.finished else text.append(compiling())

    columns = (StageColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=VisibleConsole(stderr=True), transient=True) as bars:

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                # What an earlier run has done must not make the rest look quick.
                tasks[what] = bars.add_task(what, total=total or None, completed=done)
            bars.update(tasks[what], completed=done, total=total or None)

        yield show


@contextmanager
def _signs_of_life() -> Iterator[Callable[[str, int, int], None]]:
    """Print what is being done, ever less often, from a thread of its own: some steps report nothing for long."""
    started, ended = time.monotonic(), threading.Event()
    latest = ("Working", 0, 0)

    def step(what: str, done: int, total: int) -> None:
        nonlocal latest
        latest = what, done, total

    def go_on() -> None:
        wait = EVERY
        while not ended.wait(wait):
            line = sign_of_life(*latest, seconds=time.monotonic() - started) + compiling()
            print(line, file=sys.stderr, flush=True)
            wait = min(2 * wait, LONGEST)

    teller = threading.Thread(target=go_on, daemon=True)
    teller.start()
    try:
        yield step
    finally:
        ended.set()
        teller.join()


def compiling() -> str:
    """Return what to add while functions are compiled: the first audit on a machine would seem to stand still."""
    jit = sys.modules.get("unround.jit")  # importing it would take longer than most commands that never need it
    is_compiling = getattr(jit, "is_compiling", None)  # there is none while it is being imported
    return ", compiling (only once on this machine)" if is_compiling is not None and is_compiling() else ""


def sign_of_life(what: str, done: int, total: int, *, seconds: float) -> str:
    """Say in one line what is being done, and for how long.

    >>> sign_of_life("Inferring", 300, 1200, seconds=75)
    'Inferring: 25% (1 min 15 s)'
    >>> sign_of_life("Reading", 0, 0, seconds=5)
    'Reading (5 s)'
    """
    minutes, rest = divmod(round(seconds), 60)
    lasted = f"{minutes} min {rest} s" if minutes else f"{rest} s"
    return f"{what}: {min(done / total, 1):.0%} ({lasted})" if total else f"{what} ({lasted})"
