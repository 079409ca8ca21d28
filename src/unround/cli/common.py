"""What the commands share: options, printing, progress bars."""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TextIO, cast

import typer

from unround.errors import InputError

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...", help="The table as downloaded: CSV, TAB or Parquet, also zipped. Several files are read as one."
    ),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="NAME",
        help="Format of the file: auto, statcan, profile-page, censusmapper, indicators, first-names, statsnz or tidy.",
    ),
]
Describe = Annotated[
    Path | None,
    typer.Option("--describe", metavar="TOML", help="Description of a tidy table: what its columns are. See docs/audit.md."),
]
Plan = Annotated[
    Path | None,
    typer.Option(
        "--plan", metavar="TOML", help="Plan file: your decisions on sums and mechanisms; inspect --write drafts one."
    ),
]
Undeclared = Annotated[
    str | None,
    typer.Option(
        "--mechanism",
        metavar="NAME:PARAMETER",
        help="How counts were published of which nothing is declared, such as laplace:1.45; inferred by default.",
    ),
]
Areas = Annotated[
    Path | None,
    typer.Option(
        "--areas", metavar="FILE", help="Which area lies within which: columns child and parent, or one column per level."
    ),
]
Output = Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The folder to write into.")]
Threshold = Annotated[float, typer.Option(help="Minimum probability to report a count as likely.")]
LowestThreshold = Annotated[
    float,
    typer.Option(
        "--threshold", help="Minimum probability to report a count as likely; the lowest of all priors tried must reach it."
    ),
]
Prior = Annotated[str, typer.Option(help="fitted (to this release) or flat (the paper's).")]
Population = Annotated[
    str,
    typer.Option(
        help="exact, or within5 to allow for the agency's adjustments of up to 5 to the populations of small areas."
    ),
]
Everything = Annotated[bool, typer.Option("--all", help="List everything, not only what matters most.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, in full precision.")]


_SPELT = {
    "out": "-o",
    "file_format": "--format",
    "description": "--describe",
    "zipped": "--zip",
    "worlds": "--world",
}


def option(argument: str) -> str:
    """Return an argument of a public function as it is typed on the command line."""
    return _SPELT.get(argument, f"--{argument.replace('_', '-')}")


def typed() -> str:
    """Return the command as it was typed."""
    return shlex.join(["unround", *sys.argv[1:]])


def listed(text: str, option: str = "") -> list[str]:
    """Split a list at its commas, except those within the parameters of a mechanism; an `option` needs at least one name."""
    names: list[str] = []
    for piece in (part.strip() for part in text.split(",")):
        # A piece that starts with a number, or is not a name of its own, continues the parameters of the one before.
        if names and ":" in names[-1] and (piece[:1].isdigit() or piece[:1] in "+-." or piece == "clamped"):
            names[-1] += f",{piece}"
        elif piece:
            names.append(piece)
    if option and not names:
        raise InputError(f"{option} is empty: name at least one, such as rounding:5.")
    return names


def print_json(told: Any) -> None:
    """Print one JSON object, in full precision."""
    typer.echo(json.dumps(told, ensure_ascii=False))


def console() -> Any:
    """Return where to print tables to."""
    from rich.console import Console

    if sys.stdout.isatty():
        return Console(highlight=False)
    # Piped output has no width of its own; 100 columns hold every table. Tables are padded with spaces on the right.
    width = None if "COLUMNS" in os.environ else 100
    return Console(file=cast(TextIO, _WithoutTrailingBlanks()), width=width, highlight=False)


class _WithoutTrailingBlanks(io.TextIOBase):
    """Standard output, for whole lines, without trailing spaces."""

    def write(self, text: str) -> int:
        sys.stdout.write("\n".join(line.rstrip(" ") for line in text.split("\n")))
        return len(text)


@contextmanager
def bar(what: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """Show a progress bar, on a terminal; yield the function to call with how much is done."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=total)
        yield lambda done: shown.update(task, completed=done)


@contextmanager
def stages() -> Iterator[Callable[[str, int, int], None]]:
    """Show one progress bar per stage, on a terminal; yield the function to call with what is done."""
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
                # What an earlier run has done must not make the rest look quick.
                tasks[what] = bars.add_task(what, total=total or None, completed=done)
            bars.update(tasks[what], completed=done, total=total or None)

        yield step
