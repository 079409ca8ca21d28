"""What a command says: its result, notes beside it, and nothing at all where --quiet was asked for."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
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
