"""The command that publishes: protect."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from unround.cli.common import console, print_json, stages
from unround.cli.release import Areas, Format, Plan, Toml, plan_file_of, read_file


def protect(
    truth: Annotated[Path, typer.Argument(metavar="TRUTH", help="The true counts: any table that audit reads.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The folder to write into.")],
    mechanism: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How to protect counts: rounding:5, controlled:5, laplace:1.45, gaussian:2, or any other mechanism.",
        ),
    ],
    seed: Annotated[
        int | None, typer.Option(help="Draw the same numbers again; without it, they come from the operating system.")
    ] = None,
    clamp: Annotated[bool, typer.Option("--clamp", help="Publish negative counts as 0.")] = False,
    additive: Annotated[
        bool, typer.Option("--additive", help="Afterwards move counts to the nearest whole numbers that add up.")
    ] = False,
    exact: Annotated[
        list[str] | None,
        typer.Option(
            "--exact", metavar="NAME", help="Publish as it is: population, dwellings, a column's key or name. Repeat it."
        ),
    ] = None,
    file_format: Format = "auto",
    toml: Toml = None,
    plan: Plan = None,
    areas: Areas = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Publish a table of true counts under another mechanism, and say what that costs.

    \b
    Examples:
      unround simulate -o census --format tidy --areas 500
      unround protect census/truth.parquet -o noisy --mechanism laplace:1.45 --clamp --exact population
      unround protect census/truth.parquet -o even --mechanism controlled:5 --seed 7
      unround audit even/release.toml -o audit --truth census/truth.parquet

    controlled:5 rounds at random so that every sum still adds up. Noise is drawn exactly, in whole numbers. Sums are
    found in the true counts, or taken from the TOML. PROTECTED.txt in the folder tells what was done, and how far counts
    are off: it is not to be published.
    """  # noqa: D301 - the backspace sign keeps a paragraph's lines apart
    from unround.protection.release import ProtectOptions
    from unround.protection.release import protect as publish
    from unround.protection.table import parse_protection

    choices = ProtectOptions(parse_protection(mechanism), seed, tuple(exact or ()), clamp, additive)
    release = read_file(truth, file_format, toml, areas)
    command = shlex.join(["unround", *sys.argv[1:]])
    with stages() as progress:
        made = publish(release, output, choices, plan_file=plan_file_of(plan), progress=progress, command=command)
    if json:
        print_json(made.to_json())
    else:
        from unround.presentation.terminal.protect import show_protected

        show_protected(made, console())
