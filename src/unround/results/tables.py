"""Results about a table, and about an audit of one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Self

from unround import audits, checks, differences, inspection
from unround.audits import verification
from unround.errors import InputError
from unround.explanation import cell as explanation
from unround.explanation import posterior as distributions
from unround.results.shown import Shown, Tabular, as_result

if TYPE_CHECKING:
    import altair as alt
    import polars as pl
    from rich.console import Console


class AuditFolder(Tabular, audits.AuditFolder):
    """What `unround.audit` returns: a finished audit, in its folder.

    `AuditFolder.open(path)` opens one that is there already. As a table it has a row for every finding.
    """

    @classmethod
    def open(cls, path: Path | str | None = None) -> Self:
        """Open a folder that `audit` wrote."""
        if not isinstance(path, str | os.PathLike):
            raise InputError(f"AuditFolder.open: give the folder that an audit was written to, not {path!r}.")
        return super().open(path)

    def to_polars(self) -> pl.DataFrame:
        """Return every claim, a row each: `findings`."""
        return self.findings

    def plot(self) -> alt.Chart:
        """Draw how many counts are claimed, by their size and by how certain they are."""
        from unround.show.pictures import claims_picture

        return claims_picture(self.summary)

    def explain(self, area: str, cell: str, sex: str | None = None) -> Explanation:
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
        return as_result(Explanation, explanation.explain(self, area, cell, sex))

    def posterior(self, area: str) -> Posterior:
        """Work out how likely every count of one area is, as whole distributions.

        Parameters
        ----------
        area : str
            An area's code, the end of it, or its name.
        """
        return as_result(Posterior, distributions.posterior(self, area))

    def _show(self, console: Console) -> None:
        from unround.show.terminal.audit import show_audit

        show_audit(self, console)

    def _repr_html_(self) -> str:
        from unround.show.notebook import audit_card

        return audit_card(self)


class Explanation(Tabular, explanation.Explanation):
    """What `unround.explain` returns: everything that an audit knows about one count, and the argument for it.

    As a table it is the histogram: the possible counts, and how likely each is.
    """

    __slots__ = ()

    def to_polars(self) -> pl.DataFrame:
        """Return the possible counts, and how likely each is; empty where that is not known."""
        import polars as pl

        return pl.DataFrame(list(self.distribution), schema={"count": pl.Int64, "probability": pl.Float64}, orient="row")

    def plot(self) -> alt.FacetChart:
        """Draw how likely each count is."""
        from unround.show.pictures import Drawn, distributions_picture
        from unround.show.terminal.explain import title

        pairs = self.distribution
        drawn = Drawn(self.key, self.kind, self.published, [one for one, _ in pairs], [chance for _, chance in pairs])
        return distributions_picture([drawn], title(self))

    def __repr__(self) -> str:
        return f"<Explanation of {self.key}: {self.kind}{'' if self.value is None else f', {self.value}'}>"

    def _show(self, console: Console) -> None:
        from unround.show.terminal.explain import show_explanation

        show_explanation(self, console)

    def _repr_html_(self) -> str:
        from unround.show.notebook import explanation_card

        return explanation_card(self)


class Posterior(Tabular, distributions.Posterior):
    """What `AuditFolder.posterior` returns: how likely every count of one area is.

    `posterior["30-44/men"]` is the distribution of one cell, with `counts` and `probabilities` as arrays. As a table it has
    a row for every cell.
    """

    def to_polars(self) -> pl.DataFrame:
        """Return a row for every cell; the last columns are lists: the possible counts, and how likely each is."""
        import polars as pl

        names = ("key", "label", "kind", "published", "low", "high", "mode", "probability", "error", "mean", "sd")
        kinds = (*[pl.String] * 3, *[pl.Int64] * 4, *[pl.Float64] * 4)
        cells = list(self.cells.values())
        told = {
            name: pl.Series([getattr(cell, name) for cell in cells], dtype=kind)
            for name, kind in zip(names, kinds, strict=True)
        }
        return pl.DataFrame(
            {
                **told,
                "counts": pl.Series([cell.counts for cell in cells], dtype=pl.List(pl.Int64)),
                "probabilities": pl.Series([cell.probabilities for cell in cells], dtype=pl.List(pl.Float64)),
            }
        )

    def plot(self) -> alt.FacetChart:
        """Draw how likely each count is, a panel for every cell that was not published exactly."""
        from unround.show.pictures import Drawn, distributions_picture

        drawn = [
            Drawn(one.key, one.kind, one.published, one.counts.tolist(), one.probabilities.tolist())
            for one in self.cells.values()
            if one.kind != "given"
        ]
        return distributions_picture(drawn, " ".join(str(name) for name in self.area.values()))

    def _show(self, console: Console) -> None:
        from unround.show.terminal.explain import show_posterior

        show_posterior(self, console)

    def _repr_html_(self) -> str:
        from unround.show.notebook import posterior_card

        return posterior_card(self)


class Inspection(Shown, inspection.Inspection):
    """What `unround.inspect` returns: what is in a table, and which sums hold."""

    def _show(self, console: Console) -> None:
        from unround.show.terminal.inspect import show_inspection

        show_inspection(self, console)


class Check(Tabular, checks.Check):
    """What `unround.check` returns: whether counts were published as declared. As a table it has a row for every family."""

    def to_polars(self) -> pl.DataFrame:
        """Return the families of sums that were tested, the worst first."""
        import polars as pl

        from unround.show.check import ordered

        rows = [
            {"family": one.family, "sums": one.sums, "verdict": one.verdict, "p_value": one.p_value, "note": one.note}
            for one in ordered(self.families)
        ]
        kinds = {"family": pl.String, "sums": pl.Int64, "verdict": pl.String, "p_value": pl.Float64, "note": pl.String}
        return pl.DataFrame(rows, schema=kinds)

    def plot(self) -> alt.FacetChart:
        """Draw observed residuals beside those that the mechanism implies."""
        from unround.show.pictures import residuals_picture

        return residuals_picture(self)

    def _show(self, console: Console) -> None:
        from unround.show.terminal.check import show_check

        show_check(self, console)


class Diff(Shown, differences.Diff):
    """What `unround.diff` returns: which counts are newly proved or likely."""

    def _show(self, console: Console) -> None:
        from unround.show.terminal.diff import show_diff

        show_diff(self.to_json(), console)


class Verification(Shown, verification.Verification):
    """What `unround.verify` returns: whether an audit's files and certificates are what they say."""

    def _show(self, console: Console) -> None:
        from unround.show.terminal.verify import show_verification

        show_verification(self, console)
