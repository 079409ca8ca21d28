"""The "try it" page: systems that a visitor types, solved in a process of their own that can be stopped.

A system of a few hundred characters can keep an engine busy for hours. So a worker solves them, one at a time, under limits
of size, time and memory; when the time is up it is ended, and the page says so. It is never told to read a file.

`python -m unround.web.trial` is that worker: a line of JSON in, a line of JSON out, until its input ends.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
from typing import IO, Any

from unround.errors import UnroundError

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
    """Solve what was typed; return the solution as `unround solve --json` prints it, or what is wrong with the text."""
    from unround.equations import parse
    from unround.solution import solve

    if len(text) > LONGEST:
        return {"error": f"this page takes up to {LONGEST:,} characters; `unround solve FILE` takes any number."}
    if READS_FILES in f"{text} {mechanism}".lower():
        return {"error": "tables of probabilities come from files, which this page does not read: use `unround solve`."}
    try:
        system = parse(text, mechanism)
        if len(system.cells) > MOST_CELLS:
            return {"error": f"this page takes up to {MOST_CELLS} cells; `unround solve FILE` takes any number."}
        return {"solution": solve(system).to_json()}
    except UnroundError as problem:
        return {"error": str(problem)}


class Bench:
    """The worker, and how to ask it. One question is worked on at a time; others wait their turn."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._turn = threading.Lock()
        self._worker: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None

    def solve(self, text: str, mechanism: str) -> dict[str, Any]:
        """Solve a text within the limits; anything that goes wrong is under "error"."""
        if len(text) > LONGEST:  # not even sent
            return solve_text(text, mechanism)
        if not self._turn.acquire(timeout=2 * self.seconds):
            return {"error": "other systems are being solved: try again in a moment."}
        try:
            if not self._start():
                return {"error": "the solver did not start in time, as this machine is busy: try again in a moment."}
            return self._ask(json.dumps({"text": text, "mechanism": mechanism}), self.seconds)
        finally:
            self._turn.release()

    def _start(self) -> bool:
        """Start a worker unless one runs, wait until it is ready (not in the question's time), and return whether it is."""
        if self._worker is not None and self._worker.poll() is None:
            return True
        self._end()
        command = [sys.executable, "-m", "unround.web.trial"]
        self._worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._ask("null", STARTING)
        return self._worker is not None

    def _ask(self, line: str, seconds: float) -> dict[str, Any]:
        """Send a line and return the answer; a worker that gives none in time is ended."""
        worker = self._worker
        assert worker is not None
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            worker.stdin.write(line.encode() + b"\n")
            worker.stdin.flush()
        except OSError:  # it died before it could read
            self._end()
            return {"error": DIED}
        found = self._line(worker.stdout, seconds)
        if found:
            answer: dict[str, Any] = json.loads(found)
            return answer
        self._end()
        if found is not None:
            return {"error": DIED}
        return {
            "error": f"this takes longer than the {seconds:g} seconds allowed here. `unround solve` on the command line has "
            "no such limit."
        }

    def _line(self, stream: IO[bytes], seconds: float) -> bytes | None:
        """Read a line; None if it does not come in time, and nothing if the other end is closed."""
        read: list[bytes] = []
        self._reader = threading.Thread(target=lambda: read.append(stream.readline()), daemon=True)
        self._reader.start()
        self._reader.join(seconds)
        return read[0] if read else None

    def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker is None:
            return
        worker.kill()
        worker.wait()
        if self._reader is not None:
            self._reader.join()  # its pipe is at its end now
        for pipe in (worker.stdin, worker.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what it did not read any more is lost
                    pipe.close()

    def warm(self) -> None:
        """Have a worker ready."""
        with self._turn:
            self._start()

    def close(self) -> None:
        """End the worker, if any, whatever it does."""
        self._end()


def main() -> None:
    """Answer questions until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, whose end closes our input
    if sys.platform == "linux":  # elsewhere the limit of address space means something else, or does not exist
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            # Nothing is asked first of all, to see that we are ready: a small system loads what any system needs.
            answer = (
                solve_text(asked["text"], asked["mechanism"]) if asked else solve_text("48! = 20 + 20 + 20", "rounding:5")
            )
        except MemoryError:
            answer = {"error": "this needs more memory than is allowed here."}
        except RecursionError:
            answer = {"error": "this is nested too deeply."}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
