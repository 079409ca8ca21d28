"""What a command says: its result, notes beside it, and nothing at all where --quiet was asked for."""

from __future__ import annotations

import functools
import inspect
import io
import json
import os
import sys
from collections.abc import Callable
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


def may_be_quiet(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the option --quiet, which all of them share."""
    asked = inspect.signature(command, eval_str=True)
    quiet = inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Quiet)

    @functools.wraps(command)
    def run(*, quiet: bool = False, **given: Any) -> None:
        token = _quiet.set(quiet)
        try:
            command(**given)
        finally:
            _quiet.reset(token)

    run.__signature__ = asked.replace(parameters=[*asked.parameters.values(), quiet])  # type: ignore[attr-defined]
    run.__annotations__ = {**{name: one.annotation for name, one in asked.parameters.items()}, "quiet": Quiet}
    return run


def say(text: object, *, err: bool = False) -> None:
    """Print a line of the result, or with `err` a note beside it, unless quiet is wanted."""
    if not is_quiet():
        tell(text, err=err)


def tell(text: object, *, err: bool = False) -> None:
    """Print a line, whether quiet is wanted or not: an error, or a question."""
    from unround.show.terminal.visible import visible

    typer.echo(visible(str(text)), err=err)


def print_json(told: Any) -> None:
    """Print one JSON object, in full precision; it was asked for, so that --quiet leaves it."""
    from unround.show.terminal.visible import visible_json

    typer.echo(visible_json(json.dumps(told, ensure_ascii=False)))


def console() -> Any:
    """Return where to print tables to."""
    from unround.show.terminal.visible import VisibleConsole

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
