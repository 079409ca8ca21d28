"""The command line. It holds no logic of its own: every command reads, calls a public function, and shows the result."""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import Annotated

import typer

from unround._version import __version__
from unround.cli.census import paper, simulate
from unround.cli.compare import calibrate, compare
from unround.cli.diff import diff, whatif
from unround.cli.protect import protect
from unround.cli.release import audit, check, explain, inspect
from unround.cli.report import report
from unround.cli.single import expect, solve
from unround.cli.web import serve
from unround.errors import InternalError, UnroundError

app = typer.Typer(
    name="unround",
    help="Work out what published, randomly rounded counts must have been, or probably were.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,  # plain help: it starts in half the time, and examples keep their lines
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Values are inferred from published tables; they are not official counts. If you find something in a "
    "real release, tell the agency before you publish it.",
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


# The order of --help: from one sum to a whole release.
COMMANDS = (
    solve,
    inspect,
    check,
    audit,
    report,
    explain,
    serve,
    diff,
    whatif,
    expect,
    simulate,
    protect,
    compare,
    calibrate,
    paper,
)
for command in COMMANDS:
    app.command()(command)


def main() -> None:
    """Start from the shell."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that goes away ends us quietly, as it does any filter
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that half-written files are cleaned up
    run()


def run() -> None:
    """Run the command line; errors become one message and an exit code."""
    if sys.stdout is None:  # closed by who called us: what is written to files is wanted all the same
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a sign shows a question mark
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # here, where it can still be told that this fails
    except InternalError as problem:
        _fail(f"internal error: {problem}\nThis is a fault of unround. Please report it with the input that led here.", 3)
    except UnroundError as problem:
        _fail(f"error: {problem}", 2)
    except OSError as problem:
        # What is left to be written would fail once more at the very end, and the exit code tell something else.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _fail(f"error: the output cannot be written: {problem.strerror}.", 2)
    except KeyboardInterrupt:
        _fail("interrupted: nothing was written", 130)


def _fail(message: str, code: int) -> None:
    typer.echo(message, err=True)
    sys.exit(code)
