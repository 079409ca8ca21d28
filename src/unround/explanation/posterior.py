"""How likely every count of one area is: whole distributions, as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unround.explanation.cell import infer_area, named_area
from unround.job import AuditFolder
from unround.job.folder import find_area, find_cell
from unround.shown import Tabular, frame_of

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """How likely each true count of one cell is.

    - `key`, `label`: The cell, as `explain` takes it; and what it counts.
    - `kind`: "proved", "conditional" or "likely" where something is claimed; else "given" or "open".
    - `published`: What was published.
    - `low`, `high`: The possible range; `high` is None where nothing bounds it.
    - `counts`, `probabilities`: The possible counts, ascending, and how likely each is; empty where that is not known.
    - `error`: The standard error of the probability of the likeliest count: 0 where it is exact; None where it is not
      known.
    """

    key: str
    label: str
    kind: str
    published: int | None
    low: int
    high: int | None
    counts: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    error: float | None = None

    @property
    def distribution(self) -> list[tuple[int, float]]:
        """The possible counts, and how likely each is, as pairs."""
        return list(zip(self.counts.tolist(), self.probabilities.tolist(), strict=True))

    @property
    def mean(self) -> float | None:
        """The expected count; None where it is not known."""
        return float(self.counts @ self.probabilities) if self.counts.size else None

    @property
    def sd(self) -> float | None:
        """The standard deviation; None where it is not known."""
        mean = self.mean
        return None if mean is None else float(np.sqrt((self.counts - mean) ** 2 @ self.probabilities))

    @property
    def mode(self) -> int | None:
        """The likeliest count; None where it is not known."""
        return int(self.counts[self.probabilities.argmax()]) if self.counts.size else None

    @property
    def probability(self) -> float | None:
        """How likely the likeliest count is; None where it is not known."""
        return float(self.probabilities.max()) if self.counts.size else None


@dataclass(frozen=True, eq=False)
class Posterior(Tabular):
    """How likely every count of one area is, by the keys of its cells.

    Parameters
    ----------
    area : mapping
        Which one: its code, and its name and level where they are known.
    cells : mapping
        The `Distribution` of every cell, by its key.
    """

    area: Mapping[str, Any]
    cells: Mapping[str, Distribution] = field(repr=False)
    folder: AuditFolder = field(repr=False)

    def __getitem__(self, cell: str) -> Distribution:
        """Return the distribution of a cell by its key, its ID or its name."""
        answer = self.cells.get(cell)
        return answer or self.cells[self.folder.model.columns[find_cell(self.folder, cell, None)].key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)

    def to_polars(self) -> pl.DataFrame:
        """Return a row for every cell; the last columns are lists: the possible counts, and how likely each is."""
        import polars as pl

        texts: dict[str, Any] = dict.fromkeys(("key", "label", "kind"), pl.String)
        numbers: dict[str, Any] = dict.fromkeys(("published", "low", "high", "mode"), pl.Int64)
        chances: dict[str, Any] = dict.fromkeys(("probability", "error", "mean", "sd"), pl.Float64)
        return frame_of(list(self.cells.values()), **texts, **numbers, **chances)


def posterior(folder: AuditFolder, area: str) -> Posterior:
    """Work out how likely every count of one area is, as the audit did."""
    row = find_area(folder, area)
    inferred = infer_area(folder, row)
    errors = inferred.inferred.probabilities.posterior.error
    cells, distributions = {}, inferred.distributions()
    for at, column in enumerate(folder.model.columns):
        known, shown = inferred.finding(at), distributions.get(at, ())
        counts = np.array([count for count, _ in shown], dtype=np.int64)
        chances = np.array([chance for _, chance in shown], dtype=np.float64)
        if known.low == known.high:
            counts, chances = np.array([known.low]), np.ones(1)  # exactly, free of rounding errors
        error = None
        if counts.size:
            error = 0.0 if errors is None or known.low == known.high else float(errors[0, at])
        cells[column.key] = Distribution(
            column.key, column.label, known.kind, known.published, known.low, known.high, counts, chances, error
        )
    return Posterior(named_area(folder, row), cells, folder)
