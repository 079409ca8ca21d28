"""`whatif.html`: what one more table would expose, as one page; and `report.html` of both audits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unround._version import __version__
from unround.audits import AuditFolder
from unround.presentation import figures
from unround.presentation.diff_page import diff_section
from unround.presentation.page import template, write_pages
from unround.presentation.release import notice
from unround.presentation.whatif import HEADINGS, advice, file_names, footnotes, refusals, rows
from unround.scenarios.files import AFTER, BEFORE, PAGE


def write_whatif(folder: Path, told: Mapping[str, Any]) -> None:
    """Write all pages into a folder that `whatif` made: the reports of both audits, and its own."""
    write_pages(AuditFolder.open(folder / BEFORE))
    # The section names the audit before by its folder, which is not yet where it will be.
    diff = {**told["diff"], "before": {**told["diff"]["before"], "path": BEFORE}}
    write_pages(AuditFolder.open(folder / AFTER), diff=diff)
    (folder / PAGE).write_text(whatif_page(told), encoding="utf-8", newline="\n")


def whatif_page(told: Mapping[str, Any]) -> str:
    """Return the page.

    Parameters
    ----------
    told : mapping
        `WhatIf.to_json()`.
    """
    from markupsafe import Markup

    release, table = file_names(told)
    text: str = template("whatif.html.j2").render(
        told=told,
        title=f"What would {table} expose?",
        release=release,
        table=table,
        advice=advice(told),
        headings=HEADINGS,
        rows=rows(told),
        footnotes=[*footnotes(told), *refusals(told)],
        diff=diff_section(told["diff"], public=False, heading="What the table exposes"),
        notice=notice(told["diff"]["after"]["product"]),
        version=__version__,
        theme=Markup(figures.theme_css()),
    )
    return text
