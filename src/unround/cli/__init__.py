"""The command line: every command calls the public function that has its name, and shows what that returns."""

from __future__ import annotations

import io
import os
import signal
import sys
from contextlib import suppress
from typing import Annotated

import typer

from unround._version import __version__
from unround.cli.build import built, option
from unround.cli.commands import GROUPS
from unround.cli.voice import tell
from unround.errors import ArgumentError, InternalError, UnroundError

COMMANDS = tuple(command for commands in GROUPS.values() for command in commands)

app = built(
    "unround",
    "Work out what published, randomly rounded counts must have been, or probably were.",
    "Values are inferred from published tables; they are not official counts. If you find something in a real release, tell "
    "the agency before you publish it.",
    GROUPS,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unround {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    del version


def main() -> None:
    """Start from the shell."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # end quietly, like any filter, when the reader goes away
    for name in ("SIGTERM", "SIGHUP"):  # so that half-written files are cleaned up; `nohup` has the second left alone
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    run()


def run(commands: typer.Typer = app) -> None:
    """Run a command line; errors become one message and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a character shows a question mark
    try:
        try:
            commands()
        finally:
            sys.stdout.flush()  # here, where a failure can still be reported
    except InternalError as problem:
        _fail(
            f"internal error: {problem}\nThis is a fault in unround. Please report it with the input that caused it.",
            3,
        )
    except ArgumentError as problem:
        _fail(f"error: {problem.renamed(option)}", 2)
    except UnroundError as problem:
        _fail(f"error: {problem}", 2)
    except OSError as problem:
        # What is still in the buffer would fail again at the very end, and change the exit code.
        with suppress(OSError):  # no more files can be opened
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _fail(f"error: the output cannot be written: {problem.strerror or problem}.", 2)
    except MemoryError:
        _fail(
            "error: there is not enough memory for this. Close other programs, give it fewer files or areas at a time, or "
            "run it on a larger machine.",
            2,
        )
    except KeyboardInterrupt:  # before a command began, or after its end
        _fail("interrupted", 130)


def _fail(message: str, code: int) -> None:
    tell(message, err=True)
    sys.exit(code)
