"""Commands about one more table: diff, whatif."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unround.cli.common import console, print_json, stages


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
    from unround.diff import diff as compare

    with stages() as progress:
        found = compare(before, after, progress)
    told = found.to_json()
    if report:
        from unround.report.page import write_pages

        write_pages(found.match.after, diff=told)
    if json:
        print_json(told)
    else:
        from unround.report.diff import show_diff

        show_diff(told, console())
        if report:
            typer.echo(f"\nWritten: {after / 'report.html'} and {after / 'report-public.html'}, with what changed.")
