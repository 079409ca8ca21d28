"""Commands about a published table: inspect, check, audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unround import api
from unround.cli.common import (
    Areas,
    Base,
    Boundaries,
    Describe,
    Everything,
    Files,
    Format,
    Json,
    LowestThreshold,
    Output,
    Plan,
    Population,
    Prior,
    Sheet,
    Undeclared,
    console,
    one_of,
    print_json,
    say,
    stages,
    tell,
    typed,
)
from unround.errors import InputError


def inspect(
    files: Files,
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="TOML", help="Draft a plan file, to edit and pass to audit --plan."),
    ] = None,
    file_format: Format = "auto",
    description: Describe = None,
    sheet: Sheet = None,
    base: Base = None,
    plan: Plan = None,
    mechanism: Undeclared = None,
    areas: Areas = None,
    everything: Everything = False,
    json: Json = False,
) -> None:
    """Say what is in a file: its areas and counts, how they were rounded, and which sums hold.

    \b
    Examples:
      unround inspect census.csv.gz                        what was recognised, kept and rejected, and why
      unround inspect census.csv.gz --all                  every sum
      unround inspect census.csv.gz --write plan.toml      a plan file to edit, for audit --plan plan.toml
      unround inspect draft.xlsx                           a table of your own, described on the way
      unround inspect examples/survey.toml                 one with a description (unround describe drafts it)
      unround inspect da.csv csd.csv --areas areas.csv     several files as one, and which areas make up which

    Sums are proposed by indentation, by the columns for men and women, by names, and by the counts themselves; each is then
    verified in all areas. Sums with counts too small to judge are marked as taken on trust.
    """  # noqa: D301 - \b keeps the lines of a paragraph apart
    with stages() as progress:
        seen = api.inspect(
            files,
            file_format=file_format,
            description=description,
            sheet=sheet,
            base=base,
            plan=plan,
            mechanism=mechanism,
            areas=areas,
            progress=progress,
        )
    if write is not None:
        try:
            write.write_text(seen.plan(), encoding="utf-8")
        except OSError as problem:
            raise InputError(f"{write} cannot be written: {problem.strerror}.") from None
    if json:
        print_json(seen.to_json())
    else:
        from unround.show.terminal.inspect import show_inspection

        show_inspection(seen, console(), everything)
    if write is not None:
        named = " ".join(map(str, files))
        say(f"Plan file written: {write}. Edit it, then run: unround audit {named} --plan {write} -o audit", err=True)


def check(
    files: Files,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw observed against expected residuals: .svg, .png or .html."),
    ] = None,
    file_format: Format = "auto",
    description: Describe = None,
    sheet: Sheet = None,
    base: Base = None,
    plan: Plan = None,
    mechanism: Undeclared = None,
    areas: Areas = None,
    everything: Everything = False,
    json: Json = False,
) -> None:
    """Test on the data themselves whether counts were published as declared.

    \b
    Examples:
      unround check census.csv.gz                       which families of sums fit, depart or contradict
      unround check census.csv.gz --plot check.svg      observed residuals against expected ones
      unround check census.csv.gz --json                the same, for programs

    For each family of sums, in each table and in all together, the published residuals |total - parts| are compared with
    those that the mechanism implies. Where no mechanism is declared, it is inferred from the counts first. The exit code
    is 0 whatever is found. See docs/checks.md for the method, and for what real censuses show.
    """  # noqa: D301 - \b keeps the lines of a paragraph apart
    if plot is not None:
        from unround.show.plots import check_plot

        check_plot(plot)
    with stages() as progress:
        found = api.check(
            files,
            file_format=file_format,
            description=description,
            sheet=sheet,
            base=base,
            plan=plan,
            mechanism=mechanism,
            areas=areas,
            progress=progress,
        )
    if plot is not None:
        from unround.show.check import residual_plot
        from unround.show.plots import save

        save(residual_plot(found), plot)
    if json:
        print_json(found.to_json())
    else:
        from unround.show.terminal.check import show_check

        show_check(found, console(), everything)


def audit(
    files: Files,
    output: Output,
    threshold: LowestThreshold = 0.66,
    prior: Prior = "fitted",
    population: Population = "exact",
    rounding: Annotated[
        str,
        typer.Option(
            help="independent, or auto to use the keys that the data show (random numbers that add up).",
            autocompletion=one_of("auto", "independent"),
        ),
    ] = "auto",
    figures: Annotated[
        str,
        typer.Option(
            help="verified to use rates, means and medians that the data show to be computed from true counts, or off.",
            autocompletion=one_of("verified", "off"),
        ),
    ] = "verified",
    link: Annotated[
        bool, typer.Option("--link/--no-link", help="Infer areas within areas together, or each area alone.")
    ] = True,
    estimates: Annotated[
        str | None,
        typer.Option(
            "--estimates",
            metavar="[distributions]",
            help="Also write an estimate of every count; with the probability of every possible count, if you add "
            "distributions.",
        ),
    ] = None,
    doubtful: Annotated[
        bool,
        typer.Option("--doubtful", help="List conditional claims even if the data contradict the mechanism."),
    ] = False,
    bom: Annotated[
        bool, typer.Option("--bom", help="Begin CSV files with a byte-order mark, so that Excel shows accents.")
    ] = False,
    truth: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The unrounded table, if you have it: scores every claim.")
    ] = None,
    boundaries: Boundaries = None,
    file_format: Format = "auto",
    description: Describe = None,
    sheet: Sheet = None,
    base: Base = None,
    plan: Plan = None,
    mechanism: Undeclared = None,
    areas: Areas = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A Dask scheduler, tcp://host:8786, whose workers share the work."),
    ] = None,
    block: Annotated[
        int | None,
        typer.Option(
            metavar="AREAS", help="How many areas to work on at a time.", show_default="as many as fit into memory"
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Work out every count of a release that can be inferred, and write the findings into a folder.

    \b
    Examples:
      unround audit census.csv.gz -o audit
      unround audit draft.xlsx -o audit                      a table of your own: see unround describe
      unround audit 98-401-X2021006_English_CSV_data_Ontario.zip -o ontario --threshold 0.9
      unround audit census.csv.gz -o audit --estimates       error bars for every count
      unround audit census.csv.gz -o audit --estimates distributions      how likely every possible count is
      unround audit census.zip -o /shared/audit --cluster tcp://scheduler:8786      on many machines
      unround audit census.csv.gz -o audit --boundaries areas.geojson.gz      with a map in report and explorer
      unround audit profile.csv table.csv -o both            several files about the same people as one (docs/linked.md)
      unround simulate -o census --areas 500                 a census with known truth …
      unround audit census/98-401-X2021006_English_CSV_data.csv -o audit --truth census/truth.parquet

    \b
    In the folder:
      report.html                      the result as a page; report-public.html: the same without any inferred value
      findings.parquet, findings.csv   one row per claim: proved, conditional or likely; its range and route
      summary.json                     how much was inferred, where, against chance; sensitive claims
      contradictions.csv               inconsistent published figures, each with the smallest set that clashes
      proofs.jsonl                     a certificate for every proved count
      estimates.parquet                with --estimates

    An audit that was stopped or killed resumes where it was when the same command is given again. The exit code is 0
    whenever the audit completes, whatever it finds.
    """  # noqa: D301 - \b keeps the lines of a paragraph apart
    try:
        with stages() as progress:
            folder = api.audit(
                files,
                output,
                threshold=threshold,
                prior=prior,
                population=population,
                rounding=rounding,
                figures=figures,
                link=link,
                estimates=estimates or False,
                doubtful=doubtful,
                bom=bom,
                truth=truth,
                boundaries=boundaries,
                plan=plan,
                cluster=cluster,
                block=block,
                progress=progress,
                command=typed(),
                file_format=file_format,
                description=description,
                sheet=sheet,
                base=base,
                mechanism=mechanism,
                areas=areas,
            )
    except KeyboardInterrupt as stop:
        tell(str(stop) or "interrupted: nothing was written", err=True)
        raise typer.Exit(130) from None
    if json:
        print_json(folder.summary | {"seconds": folder.run["seconds"]})
    else:
        from unround.show.terminal.audit import show_audit

        show_audit(folder, console())
