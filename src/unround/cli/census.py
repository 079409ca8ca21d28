"""Commands about a whole census and the paper: paper, simulate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unround.cli.common import console, print_json, progress
from unround.errors import InputError


def paper(
    simulate: Annotated[bool, typer.Option("--simulate", help="Run the paper's searches on a simulated census.")] = False,
    areas: Annotated[int | None, typer.Option(help="With --simulate: how many areas.", show_default="61029")] = None,
    seed: Annotated[int | None, typer.Option(help="With --simulate: the seed of the census.", show_default="1")] = None,
    rows: Annotated[
        str | None, typer.Option(help="With --simulate: age, short or all rows of the profile.", show_default="all")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Recompute every number of the paper, and say where ours differ.

    \b
    Examples:
      unround paper                        every claim, the paper's value and ours
      unround paper --json                 the same, for programs
      unround paper --simulate             its searches on 61,029 simulated areas: found against predicted
      unround paper --simulate --areas 4000 --rows short --seed 7

    The exit code is 0 also where claims disagree. docs/paper.md tells the story.
    """  # noqa: D301 - the backspace sign keeps a paragraph's lines apart
    from unround.replication import claims, experiment

    if not simulate and (areas, seed, rows) != (None, None, None):
        raise InputError("--areas, --seed and --rows go with --simulate.")
    if simulate:
        from unround.replication.compound import Compound

        number = 61_029 if areas is None else areas
        with progress("Searching", number, "areas") as step:
            together = Compound()
            run = experiment(number, 1 if seed is None else seed, rows or "all", step, together.add)
        if json:
            print_json(run.to_json() | {"audit": together.to_json()})
        else:
            from unround.presentation.paper import show_compound, show_experiment

            show_experiment(run, console())
            show_compound(together, console())
        return
    found = claims()
    if json:
        print_json([claim.to_json() for claim in found])
    else:
        from unround.presentation.paper import show_claims

        show_claims(found, console())


def simulate(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The folder to write into.")],
    areas: Annotated[int, typer.Option(help="How many areas, of all levels; the census of 2021 has 61,029.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same census.")] = 1,
    file_format: Annotated[
        str, typer.Option("--format", help="statcan (bulk CSV), censusmapper (wide) or tidy.")
    ] = "statcan",
    rows: Annotated[str, typer.Option(help="age (33 rows), short (462) or all (2,631).")] = "age",
    zipped: Annotated[bool, typer.Option("--zip", help="Zip the bulk CSV together with its companions.")] = False,
    levels: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Levels to write, such as da,csd,cd,province; also writes areas.csv."),
    ] = None,
    apart: Annotated[bool, typer.Option("--apart", help="Write a file for every level.")] = False,
    repeat: Annotated[int, typer.Option(help="Publish so many times, each rounded anew, in files of their own.")] = 1,
    dependence: Annotated[
        str,
        typer.Option(
            metavar="SHARES",
            help="How often total, men and women share random numbers, such as total-men:0.3,men-women:0.2.",
        ),
    ] = "",
) -> None:
    """Write a synthetic census, rounded as declared, with its truth beside it.

    \b
    Examples:
      unround simulate -o census --areas 500                       ages by sex, in the Canadian bulk layout
      unround simulate -o country --areas 61029 --rows short --zip the size of a country (a minute or two)
      unround simulate -o table --format tidy --rows short         one long Parquet table
      unround simulate -o nested --levels da,csd,cd,province       many CSDs of one DA, and areas.csv, for linked audits
      unround simulate -o twice --repeat 2                         the same counts, rounded twice
      unround simulate -o shared --areas 2000 --dependence total-men:0.3,men-women:0.2

    People are drawn first and counted second, so that every sum holds among the true counts. truth.parquet holds them;
    the other files hold what an agency would publish: population and dwellings as they are, other counts rounded to
    base 5, each on its own. With --dependence, the total uses the random number of the men (total-men) or of the women
    (total-women), or the women that of the men (men-women), in such shares of the counts; docs/checks.md tells.
    """  # noqa: D301 - the backspace sign keeps a paragraph's lines apart
    from unround.mechanisms.sharing import SharedDraws
    from unround.simulation import simulate as write_census

    shared = SharedDraws.parse(dependence) if dependence.strip() else None
    with progress("Simulating", areas, "areas") as step:
        made = write_census(
            output,
            areas,
            seed,
            file_format,
            rows,
            zipped,
            step,
            levels=levels,
            apart=apart,
            repeat=repeat,
            dependence=shared,
        )
    for path in (*made.files, *([made.nesting] if made.nesting else []), made.truth, made.note):
        typer.echo(path)
    typer.echo(f"{made.summary}.", err=True)
    tables = " ".join(str(path) for path in made.files if path.suffix != ".toml")
    within = f" --areas {made.nesting}" if made.nesting else ""
    typer.echo(f"Try: unround audit {tables}{within} -o audit --truth {made.truth}", err=True)
