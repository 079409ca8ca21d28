"""Results about one system: what `solve` and `expect` return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unround import expectation, solution
from unround.results.shown import Shown, Tabular

if TYPE_CHECKING:
    import altair as alt
    import polars as pl
    from rich.console import Console


class Solution(Tabular, solution.Solution):
    """What `unround.solve` returns: everything inferred about a system.

    `solution["men"]` is the answer for one cell. As a table it has a row for every cell.
    """

    __slots__ = ()

    def to_polars(self) -> pl.DataFrame:
        """Return a row for every cell; the last columns are lists: the possible counts, and how likely each is."""
        import polars as pl

        names = ("name", "published", "low", "high", "mode", "probability", "error", "mean", "kind")
        kinds = (pl.String, *[pl.Int64] * 4, *[pl.Float64] * 3, pl.String)
        told = {
            name: pl.Series([getattr(cell, name) for cell in self.cells], dtype=kind)
            for name, kind in zip(names, kinds, strict=True)
        }
        pairs = [cell.distribution for cell in self.cells]
        return pl.DataFrame(
            {
                **told,
                "counts": pl.Series([[count for count, _ in one] for one in pairs], dtype=pl.List(pl.Int64)),
                "probabilities": pl.Series([[chance for _, chance in one] for one in pairs], dtype=pl.List(pl.Float64)),
            }
        ).rename({"name": "cell"})

    def plot(self) -> alt.FacetChart:
        """Draw how likely each count is, a panel for every cell that was not published exactly."""
        from unround.show.pictures import Drawn, distributions_picture

        drawn = [
            Drawn(cell.name, cell.kind, cell.published, *zip(*cell.distribution, strict=True))
            for cell in self.cells
            if cell.kind != "given" and cell.distribution
        ]
        return distributions_picture(drawn, "Possible true counts")

    def _show(self, console: Console) -> None:
        from unround.show.terminal.solve import show_solution

        show_solution(self, console)

    def _repr_html_(self) -> str:
        from unround.show.notebook import solution_card

        return solution_card(self)


class Expectation(Shown, expectation.Expectation):
    """What `unround.expect` returns: how often sums of one shape give counts away."""

    def _show(self, console: Console) -> None:
        from unround.show.terminal.paper import show_expectation

        show_expectation(self, console)
