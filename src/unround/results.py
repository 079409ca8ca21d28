"""A finished audit with everything that can be asked of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Self

from unround import job
from unround.errors import InputError
from unround.explanation import cell as explanation
from unround.explanation import posterior as distributions
from unround.shown import Tabular

if TYPE_CHECKING:
    import polars as pl


class AuditFolder(Tabular, job.AuditFolder):
    """What `unround.audit` returns: a finished audit, in its folder.

    `AuditFolder.open(path)` opens one that is there already. As a table it has a row for every finding.
    """

    @classmethod
    def open(cls, path: Path | str | None = None) -> Self:
        """Open a folder that `audit` wrote."""
        if not isinstance(path, str | os.PathLike):
            raise InputError(f"AuditFolder.open: give the folder that an audit was written to, not {path!r}.")
        return super().open(path)

    def __repr__(self) -> str:
        return f"<AuditFolder {self.path}>"

    def to_polars(self) -> pl.DataFrame:
        """Return every claim, a row each: `findings`."""
        return self.findings

    def explain(self, area: str, cell: str, sex: str | None = None) -> explanation.Explanation:
        """Give the argument for one count, as arithmetic, and its histogram.

        Parameters
        ----------
        area : str
            An area's code, the end of it, or its name.
        cell : str
            Its key, its ID or its name.
        sex : str, optional
            For tables by sex: "total" (the default), "men" or "women".
        """
        return explanation.explain(self, area, cell, sex)

    def posterior(self, area: str) -> distributions.Posterior:
        """Work out how likely every count of one area is, as whole distributions.

        Parameters
        ----------
        area : str
            An area's code, the end of it, or its name.
        """
        return distributions.posterior(self, area)
