"""An estimate of every count, and the whole distribution behind it where that is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from unround.audits.block import Auditor
from unround.audits.bounds import hidden_counts
from unround.audits.findings import Labels
from unround.audits.inferred import InferredBlock
from unround.audits.nested import NestedAreas
from unround.audits.probabilities import Distribution
from unround.evidence.block import NO_UPPER_BOUND
from unround.release import ABSENT, adjustable, why_absent

if TYPE_CHECKING:
    import polars as pl


def estimates_frame(
    inferred: InferredBlock,
    areas: pl.DataFrame,
    axes: tuple[str, ...],
    labels: Labels,
    distributions: list[Mapping[int, Distribution]] | None = None,
) -> pl.DataFrame:
    """Return an estimate of every cell that has one, a row each.

    With the `distributions` of every area, two lists follow in each row: the possible `counts`, and their `probabilities`.
    """
    import polars as pl

    posterior, bounds = inferred.probabilities.posterior, inferred.probabilities.reach
    rows, cells = np.nonzero(posterior.probability > 0)
    published = inferred.counts[rows, cells]
    return pl.DataFrame(
        {
            **{name: areas[name][rows] for name in axes},
            **{
                name: column.gather(cells)
                for name, column in labels.columns.items()
                if name in axes or name != "characteristic"
            },
            "published": pl.Series(published).set(pl.Series(published <= ABSENT), None),
            "low": bounds.low[rows, cells],
            "high": bounds.high[rows, cells],
            "mean": posterior.mean[rows, cells],
            "sd": posterior.deviation[rows, cells],
            "mode": posterior.mode[rows, cells],
            "probability": posterior.probability[rows, cells],
            **({} if distributions is None else _lists(distributions, rows, cells)),
        }
    )


def hidden_frame(inferred: InferredBlock, areas: pl.DataFrame, axes: tuple[str, ...], labels: Labels) -> pl.DataFrame:
    """Return the interval that a reader can work out for every count that is not printed, a row each.

    The least and the greatest that it can be over all tables that agree with what is printed; no greatest where nothing
    bounds it. `settled` is false where the interval might be narrower still: more effort would have to be made to know.
    """
    import polars as pl

    rows, cells = np.nonzero(hidden_counts(inferred.counts))
    bounds = inferred.documented.tight
    linked = inferred.documented.linked
    limited = np.zeros(inferred.counts.shape, dtype=np.bool_) if linked is None or linked.limited is None else linked.limited
    high = bounds.high[rows, cells]
    return pl.DataFrame(
        {
            **{name: areas[name][rows] for name in axes},
            **{
                name: column.gather(cells)
                for name, column in labels.columns.items()
                if name in axes or name != "characteristic"
            },
            "published": pl.Series([why_absent(one) for one in inferred.counts[rows, cells].tolist()], dtype=pl.String),
            "low": bounds.low[rows, cells],
            "high": pl.Series(high).set(pl.Series(high >= NO_UPPER_BOUND), None),
            "settled": ~limited[rows, cells] & bounds.feasible[rows],
        }
    )


def distributions_of(
    auditor: Auditor, inferred: InferredBlock, areas: pl.DataFrame, nested: NestedAreas | None
) -> list[Mapping[int, Distribution]]:
    """Return the distributions of all areas of a block, each by cell, as `explain` would show them.

    An area is inferred again for this, together with those that it is linked with: some milliseconds each.
    """
    may_differ, found = adjustable(areas), []
    for area in range(len(inferred.counts)):
        rows = np.array([area]) if nested is None else nested.family(area)
        family = None if nested is None else nested.reordered(rows)
        family = family if family is not None and family.any else None
        values = None if inferred.figured is None else inferred.figured.values[rows]
        again = auditor.infer(inferred.counts[rows], may_differ[rows], family, 0, values)
        found.append(again.probabilities.distributions())
    return found


def _lists(distributions: list[Mapping[int, Distribution]], rows: Any, cells: Any) -> dict[str, pl.Series]:
    """Return the possible counts of every cell and their probabilities, without those that are impossible."""
    import polars as pl

    counts, probabilities = [], []
    for row, cell in zip(rows.tolist(), cells.tolist(), strict=True):
        low, chances = distributions[row].get(cell, (0, np.zeros(0)))
        there = np.flatnonzero(chances > 0)
        counts.append(low + there)
        probabilities.append(chances[there])
    return {
        "counts": pl.Series(counts, dtype=pl.List(pl.Int32)),
        "probabilities": pl.Series(probabilities, dtype=pl.List(pl.Float64)),
    }
