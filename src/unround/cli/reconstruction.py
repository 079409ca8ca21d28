"""The command about people: reconstruct."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unround import publishing
from unround.cli.common import Base, Format, Json, Mechanism, Output, console, listed, print_json, say, stages, tell, typed


def reconstruct(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="RELEASE...", help="Tables over the same people: any that audit reads."),
    ],
    output: Output,
    truth: Annotated[
        Path | None,
        typer.Option(metavar="PERSONS", help="The records behind the tables, one row per person: CSV or Parquet."),
    ] = None,
    attributes: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="What a record consists of, such as age,sex,marital.", show_default="all in the tables"
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Attributes by which people are of the same kind.",
            show_default="birthplace, language, religion and the like",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random draws: the same seed gives the same numbers.")] = 1,
    seeds: Annotated[int, typer.Option(help="How many times to begin anew in every area.")] = 3,
    worlds: Annotated[int, typer.Option(help="How many fitting worlds to keep each time.")] = 32,
    sample: Annotated[
        int, typer.Option(help="Areas in which ways of publishing are compared, tables left out, and claims proved.")
    ] = 40,
    ways: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Ways of publishing to compare there; or none.",
            show_default="exact,rounding:3,rounding:5,rounding:10,keyed:5,laplace:1.45,controlled:5",
        ),
    ] = None,
    variability: Annotated[
        int, typer.Option(metavar="N", help="Areas of the sample in which to find how different two fitting worlds can be.")
    ] = 0,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="With --variability: the solver's time for each area.")
    ] = 10.0,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A Dask scheduler, tcp://host:8786, whose workers share the work."),
    ] = None,
    file_format: Format = "auto",
    base: Base = None,
    mechanism: Mechanism = None,
    json: Json = False,
) -> None:
    """Say how much of each person could be reconstructed from tables, on people whose truth is known.

    \b
    Examples:
      unround simulate -o census --persons --areas 100
      unround reconstruct census/*.toml --truth census/persons.parquet -o reconstruction
      unround reconstruct draft.csv --truth records.csv -o found --attributes age,sex,marital
      unround reconstruct census/*.toml --truth census/persons.parquet -o found --variability 5

    Four guesses at the records of every area: drawn from the law of the country, without any table of the area; from the
    area's own totals; from all tables, which is the reconstruction; and from the same tables unrounded. Each is held against
    the truth: for everyone, for people who are alone in their area with their age and sex, and for people unlike the area's
    most common kind. Axes of the tables are called like the columns of PERSONS, and their codes like the values.

    Without --truth it refuses: unround does not write reconstructed persons about a real release. From records that
    `unround simulate` did not draw, aggregates alone are written.
    """  # noqa: D301 - \b keeps the lines of a paragraph apart
    try:
        with stages() as progress:
            found = publishing.reconstruct(
                list(files),
                output,
                truth=truth,
                attributes=() if attributes is None else listed(attributes),
                kind=() if kind is None else listed(kind),
                seed=seed,
                seeds=seeds,
                worlds=worlds,
                sample=sample,
                ways=None if ways is None else [name for name in listed(ways) if name != "none"],
                variability=variability,
                time_limit=time_limit,
                cluster=cluster,
                progress=progress,
                command=typed(),
                file_format=file_format,
                base=base,
                mechanism=mechanism,
            )
    except KeyboardInterrupt as stop:
        tell(str(stop) or "interrupted: nothing was written", err=True)
        raise typer.Exit(130) from None
    if json:
        print_json(found.to_json())
        return
    from unround.show.terminal.reconstruct import show_reconstruction

    show_reconstruction(found.to_json(), console())
    say(f"\nWritten: {output / 'reconstruct.html'} (a page), {output / 'summary.json'} (every number).")
