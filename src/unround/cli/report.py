"""The command that writes the pages of an audit again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that audit wrote.")]) -> None:
    """Write report.html and report-public.html again, from an audit folder.

    \b
    Examples:
      unround report audit

    Every audit writes both. Each is one file that needs no network: report.html with the strongest findings and their
    arithmetic, report-public.html without any area or inferred value, to share while the agency fixes things.
    """  # noqa: D301 - the backspace sign keeps a paragraph's lines apart
    from unround.audits import AuditFolder
    from unround.presentation.report import write_pages

    for path in write_pages(AuditFolder.open(folder)):
        typer.echo(path)
