"""What is shown while a command works: bars on a terminal, a line every few seconds elsewhere, nothing with --quiet."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from unround.cli.voice import is_quiet

EVERY = 5.0
"""Seconds between two signs of life. A command that is done before the first one prints none."""


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
    """Print what is being done every few seconds, from a thread of its own: some steps report nothing for long."""
    started, ended = time.monotonic(), threading.Event()
    latest = ("Working", 0, 0)

    def step(what: str, done: int, total: int) -> None:
        nonlocal latest
        latest = what, done, total

    def tell() -> None:
        while not ended.wait(EVERY):
            line = sign_of_life(*latest, seconds=time.monotonic() - started) + compiling()
            print(line, file=sys.stderr, flush=True)

    teller = threading.Thread(target=tell, daemon=True)
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
