"""Commands about a whole release: inspect, check, audit, explain."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unround.cli.common import console, print_json, read_text, stages
from unround.errors import InputError

if TYPE_CHECKING:
    from unround.release import Release
    from unround.structure import PlanFile

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...", help="The table, as downloaded: CSV, TAB, Parquet; .zip and .gz too. Several are audited as one."
    ),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="NAME",
        help="auto, statcan, profile-page, censusmapper, indicators, first-names, statsnz or tidy.",
    ),
]
Toml = Annotated[
    Path | None,
    typer.Option("--describe", metavar="TOML", help="For tidy tables: what the columns are. docs/audit.md tells."),
]
Plan = Annotated[
    Path | None,
    typer.Option("--plan", metavar="TOML", help="Sums and mechanisms as you decided them; inspect --write drafts one."),
]
Areas = Annotated[
    Path | None,
    typer.Option("--areas", metavar="FILE", help="Which area lies in which: columns child,parent, or a column a level."),
]


def inspect(
    files: Files,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="TOML", help="Draft a plan to edit, and to give to audit --plan.")
    ] = None,
    file_format: Format = "auto",
    toml: Toml = None,
    plan: Plan = None,
    areas: Areas = None,
    everything: Annotated[bool, typer.Option("--all", help="List every sum, not only examples.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what is in a file: its areas and counts, how they were rounded, and which sums hold.

    \b
    Examples:
      unround inspect census.csv.gz                        what was recognised, kept and rejected, and why
      unround inspect census.csv.gz --all                  every sum
      unround inspect census.csv.gz --write plan.toml      a plan to edit, for audit --plan plan.toml
      unround inspect examples/survey.toml                 a table of your own, described by a short TOML
      unround inspect da.csv csd.csv --areas areas.csv     several files as one, and which areas make up which

    Sums are proposed from indentation, sex columns, names, and the counts themselves; each is then verified in all
    areas. Nothing is believed from the layout alone.
    """  # noqa: D301 - the backspace sign keeps a paragraph's lines apart
    from unround.inspection import inspect as look

    plan_file = plan_file_of(plan)
    with stages() as progress:
        release = read_files(files, file_format, toml, areas, plan_file, progress)
        seen = look(release, plan_file, progress)
    if write is not None:
        from unround.structure import write_plan

        _write(write, write_plan(seen.structure, release, plan_file.matches if plan_file else ()))
    if json:
        print_json(seen.to_json())
    else:
        from unround.presentation.terminal.inspect import show_inspection

        show_inspection(seen, console(), everything)
    if write is not None:
        named = " ".join(map(str, files))
        typer.echo(f"Plan written: {write}. Edit it, then run: unround audit {named} --plan {write} -o audit", err=True)


def check(
    files: Files,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw observed against expected: .svg, .png or .html.")
    ] = None,
    file_format: Format = "auto",
    toml: Toml = None,
    plan: Plan = None,
    areas: Areas = None,
    everything: Annotated[bool, typer.Option("--all", help="List every family, not only those that matter most.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Test on the data itself whether counts were published as declared.

    \b
    Examples:
      unround check census.csv.gz                       which families of sums fit, depart or contradict
      unround check census.csv.gz --plot check.svg      observed residuals against expected ones
      unround check census.csv.gz --json                the same, for programs

    For every family of sums, table by table and pooled, the residuals |total - parts| that were published are compared
    with those that the declared mechanism implies. It also estimates the mechanism where none is declared. The exit code
    is 0 whatever is found. docs/checks.md tells how, and what real censuses show.
    """  # noqa: D301 - the backspace sign keeps a paragraph's lines apart
    from unround.checks import check_release

    if plot is not None:
        from unround.presentation.plots import check_plot

        check_plot(plot)
    plan_file = plan_file_of(plan)
    with stages() as progress:
        release = read_files(files, file_format, toml, areas, plan_file, progress)
        found = check_release(release, plan_file, progress)
    if plot is not None:
        from unround.presentation.check import residual_plot
        from unround.presentation.plots import save

        save(residual_plot(found), plot)
    if json:
        print_json(found.to_json())
    else:
        from unround.presentation.terminal.check import show_check

        show_check(found, console(), everything)


def audit(
    files: Files,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The folder to write into.")],
    threshold: Annotated[float, typer.Option(help="From which probability on a count is likely.")] = 0.66,
    prior: Annotated[str, typer.Option(help="fitted (to this release) or flat (the paper's).")] = "fitted",
    population: Annotated[
        str,
        typer.Option(help="exact, or within5: the agency says that populations of small areas may be adjusted by up to 5."),
    ] = "exact",
    rounding: Annotated[
        str,
        typer.Option(
            help="auto, dependent or independent: whether total and parts share random numbers; auto asks the data."
        ),
    ] = "auto",
    link: Annotated[
        bool, typer.Option("--link/--no-link", help="Infer areas that lie within each other together, or each by itself.")
    ] = True,
    estimates: Annotated[bool, typer.Option("--estimates", help="Also write an estimate of every count.")] = False,
    truth: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The unrounded table, if you have it: scores every claim.")
    ] = None,
    file_format: Format = "auto",
    toml: Toml = None,
    plan: Plan = None,
    areas: Areas = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A Dask scheduler, tcp://host:8786, whose workers do the blocks of areas."),
    ] = None,
    block: Annotated[
        int | None,
        typer.Option(metavar="AREAS", help="How many areas to work on at a time.", show_default="what fits into memory"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> None:
    """Work out every count of a release that can be worked out, and write what was found into a folder.

    \b
    Examples:
      unround audit census.csv.gz -o audit
      unround audit 98-401-X2021006_English_CSV_data_Ontario.zip -o ontario --threshold 0.9
      unround audit census.csv.gz -o audit --estimates       error bars for every count
      unround audit census.zip -o /shared/audit --cluster tcp://scheduler:8786      on many machines
      unround audit profile.csv table.csv -o both            several files of the same people as one (docs/linked.md)
      unround simulate -o census --areas 500                 a census with known truth …
      unround audit census/98-401-X2021006_English_CSV_data.csv -o audit --truth census/truth.parquet

    \b
    In the folder:
      report.html                      the result as a page, offline; report-public.html: without any inferred value
      findings.parquet, findings.csv   one row a claim: proved, conditional or likely; its range, its route
      summary.json                     how much was found, where, against chance; what of it would hurt
      contradictions.csv               what cannot be, with the smallest clash
      proofs.jsonl                     a certificate for every proved count
      estimates.parquet                with --estimates

    An audit that was stopped or killed goes on where it was when the same command is given again. The exit code is 0
    whenever the audit completes, whatever it finds.
    """  # noqa: D301 - the backspace sign keeps a paragraph's lines apart
    from unround.audits import AuditOptions
    from unround.presentation.audited import audit_release

    options = AuditOptions(threshold, prior, population, estimates, rounding, link, block)
    plan_file = plan_file_of(plan)
    known = read_file(truth, "auto", None, None) if truth is not None else None
    try:
        with stages() as progress:
            release = read_files(files, file_format, toml, areas, plan_file, progress)
            if known is not None and len(files) > 1:
                from unround.join import with_truth

                known = with_truth(known, release)
            folder = audit_release(
                release,
                output,
                options,
                plan_file=plan_file,
                truth=known,
                progress=progress,
                command=shlex.join(["unround", *sys.argv[1:]]),
                files_used=[*files, *(path for path in (toml, plan, areas, truth) if path is not None)],
                cluster=cluster,
            )
    except KeyboardInterrupt as stop:
        typer.echo(str(stop) or "interrupted: nothing was written", err=True)
        raise typer.Exit(130) from None
    if json:
        print_json(folder.summary | {"seconds": folder.run["seconds"]})
    else:
        from unround.presentation.terminal.audit import show_audit

        show_audit(folder, console())


def explain(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that audit wrote.")],
    area: Annotated[str, typer.Argument(metavar="AREA", help="An area's code, the end of it, or its name.")],
    characteristic: Annotated[str, typer.Argument(metavar="CHARACTERISTIC", help="Its ID or its name.")],
    sex: Annotated[str | None, typer.Option(help="total, men or women.", show_default="total")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object, certificate included.")] = False,
) -> None:
    """Give the argument for one count of an audit, as arithmetic, and its histogram.

    \b
    Examples:
      unround explain audit 10010001 10 --sex men
      unround explain audit 10010001 "0 to 4 years"
      unround explain audit 10010001 10 --json
    """  # noqa: D301 - the backspace sign keeps a paragraph's lines apart
    from unround.audits import AuditFolder
    from unround.explanation.cell import explain as explain_cell

    explanation = explain_cell(AuditFolder.open(folder), area, characteristic, sex)
    if json:
        print_json(explanation.to_json())
    else:
        from unround.presentation.terminal.explain import show_explanation

        show_explanation(explanation, console())


def read_file(file: Path, file_format: str, toml: Path | None, areas: Path | None) -> Release:
    """Open a table, whatever its layout."""
    from unround.readers import read

    return read(file, file_format, toml, areas)


def read_files(
    files: list[Path],
    file_format: str,
    toml: Path | None,
    areas: Path | None,
    plan_file: PlanFile | None,
    progress: Callable[[str, int, int], None],
) -> Release:
    """Open a table, or several as one."""
    if len(files) == 1:
        if plan_file is not None and plan_file.matches:
            raise InputError(
                "[[match]] in a plan links the columns of several files, and one is given. Name the others too."
            )
        return read_file(files[0], file_format, toml, areas)
    from unround.join import join

    if toml is not None:
        raise InputError(
            "--describe describes one table: with several files, give each tidy one as its TOML, or put it beside."
        )
    releases = [read_file(file, file_format, None, None) for file in files]
    size = sum(release.size for release in releases)
    joined = join(releases, plan_file.matches if plan_file else (), lambda done: progress("Reading the files", done, size))
    if areas is None:
        return joined
    from unround.readers.areas import with_areas

    return with_areas(joined, areas)


def plan_file_of(plan: Path | None) -> PlanFile | None:
    """Return what a plan file says, if one was given."""
    if plan is None:
        return None
    from unround.structure import read_plan

    return read_plan(read_text(plan, "`unround inspect FILE --write plan.toml` drafts one."), str(plan))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise InputError(f"{path} cannot be written: {problem.strerror}.") from None
