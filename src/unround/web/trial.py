"""The "try it" page: systems that a visitor types, solved in a process of their own that can be stopped.

A system of a few hundred characters can keep an engine busy for hours. So a worker solves them, one at a time, under limits
of size, time and memory; when the time is up it is ended, and the page says so. It is never told to read a file.

`python -m unround.web.trial` is that worker: a line of JSON in, a line of JSON out, until its input ends.
"""

from __future__ import annotations

import threading
from typing import Any

from unround.errors import UnroundError
from unround.machine import Worker, serve

LONGEST = 2_000
"""Characters that a system may have."""
MOST_CELLS = 40
"""Cells that it may have."""
SECONDS = 5.0
"""Time that it may take."""
STARTING = 180.0
"""Time that the worker may take to start: most of a minute where kernels must be compiled first, and more on a busy machine.
A worker that is ended before it is through would leave them to the next one."""
MEMORY = 4 << 30
"""Bytes that the worker may ask for."""
DIED = "the solver stopped: this system needs more memory than is allowed here, or it hit a fault in unround."
READS_FILES = "transition"
"""The one mechanism that can name a file."""


def solve_text(text: str, mechanism: str) -> dict[str, Any]:
    """Solve what was typed: as `unround solve --json` prints it, and as a page shows it; or say what is wrong with it."""
    from unround.equations import parse
    from unround.show import document
    from unround.show.page import html
    from unround.solution import solve

    if len(text) > LONGEST:
        return {"error": f"this page takes up to {LONGEST:,} characters; `unround solve FILE` takes any number."}
    if READS_FILES in f"{text} {mechanism}".lower():
        return {"error": "tables of probabilities come from files, which this page does not read: use `unround solve`."}
    try:
        system = parse(text, mechanism)
        if len(system.cells) > MOST_CELLS:
            return {"error": f"this page takes up to {MOST_CELLS} cells; `unround solve FILE` takes any number."}
        solved = solve(system)
        return {"solution": solved.to_json(), "shown": html(document(solved).parts)}
    except UnroundError as problem:
        return {"error": str(problem)}


class Bench:
    """The worker, and how to ask it. One question is worked on at a time; others wait their turn."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._turn = threading.Lock()
        self._worker = Worker("unround.web.trial")

    def solve(self, text: str, mechanism: str) -> dict[str, Any]:
        """Solve a text within the limits; anything that goes wrong is under "error"."""
        if len(text) > LONGEST:  # not even sent
            return solve_text(text, mechanism)
        if not self._turn.acquire(timeout=2 * self.seconds):
            return {"error": "other systems are being solved: try again in a moment."}
        try:
            if not self._start():
                return {"error": "the solver did not start in time, as this machine is busy: try again in a moment."}
            answer, answered = self._worker.ask({"text": text, "mechanism": mechanism}, self.seconds)
            if answered:
                return dict(answer)
            late = (
                f"this takes longer than the {self.seconds:g} seconds allowed here. `unround solve` on the command line has "
            )
            return {"error": f"{late}no such limit." if answer else DIED}
        finally:
            self._turn.release()

    def _start(self) -> bool:
        """Start a worker unless one runs, wait until it is ready (not in the question's time), and return whether it is."""
        return self._worker.runs or self._worker.ask(None, STARTING)[1]

    def warm(self) -> None:
        """Have a worker ready."""
        with self._turn:
            self._start()

    def close(self) -> None:
        """End the worker, if any, whatever it does."""
        self._worker.end()


def _answer(asked: dict[str, str] | None) -> dict[str, Any]:
    try:
        # Nothing is asked first of all, to see that we are ready: a small system loads what any system needs.
        return solve_text(**asked) if asked else solve_text("48! = 20 + 20 + 20", "rounding:5")
    except MemoryError:
        return {"error": "this needs more memory than is allowed here."}
    except RecursionError:
        return {"error": "this is nested too deeply."}


if __name__ == "__main__":
    serve(_answer, MEMORY)
