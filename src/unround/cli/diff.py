"""Commands about one more table: diff, whatif."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from unround.cli.common import console, print_json, stages
from unround.cli.release import Areas, Format, Toml, read_file


def diff(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="A folder that audit wrote.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="Another one, of the same people.")],
    report: Annotated[
        bool, typer.Option("--report", help="Write the reports in AFTER again, with a section about what changed.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare two audits of the same people: which counts are newly proved or likely, small counts first.

    \b
    Examples:
      unround audit profile.csv -o before
      unround audit profile.csv extra.csv -o after      the same with one more table
      unround diff before after                         what the table exposes
      unround diff before after --report                the same as a section of after/report.html
      unround diff before after --json                  the same, for programs

    Counts are matched by area, characteristic and sex. One that is published twice counts once. Where the audits differ in
    anything else (threshold, prior, mechanism), that is said.
    """  # noqa: D301 - the backspace sign keeps a paragraph's lines apart
    from unround.differences import diff as compare

    with stages() as progress:
        found = compare(before, after, progress)
    told = found.to_json()
    if report:
        from unround.presentation.report import write_pages

        write_pages(found.match.after, diff=told)
    if json:
        print_json(told)
    else:
        from unround.presentation.terminal.diff import show_diff

        show_diff(told, console())
        if report:
            typer.echo(f"\nWritten: {after / 'report.html'} and {after / 'report-public.html'}, with what changed.")


def whatif(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="What is published: any table that audit reads.")],
    add: Annotated[Path, typer.Option("--add", metavar="TABLE", help="What may be published besides.")],
    truth: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The true counts of both: repairs are published from them, and claims scored."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Keep both audits, whatif.json and whatif.html there."),
    ] = None,
    repairs: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Repairs to try, separated by commas: same-numbers, drop-repeats, drop-totals, drop, drop=KEY, base, "
            "base=N; or none.",
            show_default="all",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of all that is drawn: the same seed gives the same numbers.")] = 0,
    threshold: Annotated[float, typer.Option(help="From which probability on a count is likely.")] = 0.66,
    prior: Annotated[str, typer.Option(help="fitted (to this release) or flat (the paper's).")] = "fitted",
    population: Annotated[
        str,
        typer.Option(help="exact, or within5: the agency says that populations of small areas may be adjusted by up to 5."),
    ] = "exact",
    file_format: Format = "auto",
    toml: Toml = None,
    areas: Areas = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what one more table would expose, and which cheap repairs of it leave least.

    \b
    Examples:
      unround whatif profile.csv --add extra.csv                         what would it expose?
      unround whatif profile.csv --add extra.toml -o whatif              keep both audits and a page
      unround whatif profile.csv --add extra.csv --truth truth.parquet   repairs from the true counts
      unround whatif profile.csv --add extra.csv --repairs same-numbers,base=10
      unround whatif profile.csv --add extra.csv --repairs none --json

    \b
    Repairs:
      same-numbers   counts that RELEASE has are published with its numbers: the seed of the old table
      drop-repeats   counts that RELEASE has are left out
      drop-totals    totals of TABLE are left out
      drop           single totals and columns are left out, those next to most that is exposed; drop=KEY: this one
      base           a coarser base, twice the old one; base=N: this one

    RELEASE is audited alone and with TABLE, then after every repair. --format, --describe and --areas describe RELEASE.
    Another base needs true counts: without --truth, plausible ones are drawn from the audit's estimates, which is said.
    """  # noqa: D301 - the backspace sign keeps a paragraph's lines apart
    from unround.audits import AuditOptions
    from unround.presentation.whatif import write_whatif
    from unround.scenarios import whatif as try_out

    options = AuditOptions(threshold, prior, population)
    wanted = None if repairs is None else [one.strip() for one in repairs.split(",") if one.strip() not in ("", "none")]
    first, second = read_file(release, file_format, toml, areas), read_file(add, "auto", None, None)
    known = None if truth is None else read_file(truth, "auto", None, None)
    with stages() as progress:
        found = try_out(
            first,
            second,
            output,
            options,
            truth=known,
            seed=seed,
            wanted=wanted,
            progress=progress,
            command=shlex.join(["unround", *sys.argv[1:]]),
            finish=(lambda *_: None) if output is None else write_whatif,
        )
    if json:
        print_json(found.to_json())
    else:
        from unround.presentation.terminal.whatif import show_whatif

        show_whatif(found.to_json(), console())
        if output is not None:
            typer.echo(
                f"\nWritten: {output / 'whatif.html'} (a page), {output / 'whatif.json'} (every number), and the audits."
            )
