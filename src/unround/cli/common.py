"""What the commands share: their options, and how they speak."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from unround.cli.progress import bar as bar
from unround.cli.progress import stages as stages
from unround.cli.voice import console as console
from unround.cli.voice import print_json as print_json
from unround.cli.voice import say as say
from unround.cli.voice import tell as tell
from unround.errors import InputError


def one_of(*words: str) -> Callable[[str], list[str]]:
    """Return what a shell asks for the words that may follow an option."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="The table: CSV, TAB, Parquet, XLSX, ODS or PX; CSV also zipped. Several files are read as one.",
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
    typer.Option("--describe", metavar="TOML", help="Description of a table: what its columns are; `describe` drafts one."),
]
Sheet = Annotated[
    str | None,
    typer.Option(
        "--sheet", metavar="NAME", help="Which sheet of a spreadsheet.", show_default="the one with the largest table"
    ),
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
Base = Annotated[
    int | None,
    typer.Option("--base", help="Base to which counts were randomly rounded; short for --mechanism rounding:BASE."),
]
Mechanism = Annotated[
    str | None,
    typer.Option(
        "--mechanism", metavar="NAME:PARAMETER", help="How counts were protected, such as laplace:1.45; instead of --base."
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
Prior = Annotated[
    str, typer.Option(help="fitted (to this release) or flat (the paper's).", autocompletion=one_of("fitted", "flat"))
]
Population = Annotated[
    str,
    typer.Option(
        help="exact, or within5 to allow for the agency's adjustments of up to 5 to the populations of small areas.",
        autocompletion=one_of("exact", "within5"),
    ),
]
Everything = Annotated[bool, typer.Option("--all", help="List everything, not only what matters most.")]
Boundaries = Annotated[
    Path | None,
    typer.Option("--boundaries", metavar="FILE", help="Shapes of the areas, for a map: GeoJSON or TopoJSON, or gzipped."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, in full precision.")]


_SPELT = {
    "out": "-o",
    "file_format": "--format",
    "description": "--describe",
    "zipped": "--zip",
    "worlds": "--world",
    "mechanisms": "--mechanism",
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
