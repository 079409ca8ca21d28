"""A whole audit with its pages: what `unround audit` runs, and `unround.audit_release` is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from unround.audits import AuditFolder, AuditOptions, audit
from unround.presentation.report import write_pages
from unround.release import Release
from unround.spool import Stage
from unround.structure import PlanFile


def audit_release(
    release: Release,
    out: Path,
    options: AuditOptions | None = None,
    *,
    plan_file: PlanFile | None = None,
    truth: Release | None = None,
    progress: Stage = lambda *_: None,
    command: str = "",
    files_used: Iterable[Path] | None = None,
    cluster: str | None = None,
) -> AuditFolder:
    """Audit a release into a folder, as `unround.audits.audit` does, and write `report.html` and `report-public.html` there.

    Parameters
    ----------
    release, out, options, plan_file, truth, progress, command, files_used, cluster
        As there.
    """

    def finish(folder: AuditFolder) -> None:
        progress("Reporting", 0, 1)
        write_pages(folder)
        progress("Reporting", 1, 1)

    return audit(
        release,
        out,
        options,
        plan_file=plan_file,
        truth=truth,
        progress=progress,
        command=command,
        finish=finish,
        files_used=files_used,
        cluster=cluster,
    )
