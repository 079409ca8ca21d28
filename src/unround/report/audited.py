"""A whole audit with its pages: what `unround audit` runs, and `unround.audit_release` is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from unround.audit import AuditFolder, Options, audit
from unround.release import Release
from unround.report.page import write_pages
from unround.spool import Stage
from unround.structure import Overrides


def audit_release(
    release: Release,
    out: Path,
    options: Options | None = None,
    *,
    overrides: Overrides | None = None,
    truth: Release | None = None,
    progress: Stage = lambda *_: None,
    command: str = "",
    files_used: Iterable[Path] | None = None,
    cluster: str | None = None,
) -> AuditFolder:
    """Audit a release into a folder, as `unround.audit.audit` does, and write `report.html` and `report-public.html` there.

    Parameters
    ----------
    release, out, options, overrides, truth, progress, command, files_used, cluster
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
        overrides=overrides,
        truth=truth,
        progress=progress,
        command=command,
        finish=finish,
        files_used=files_used,
        cluster=cluster,
    )
