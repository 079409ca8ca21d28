"""Which findings matter most: the one order of findings, in files, on pages and in the terminal.

What is certain comes first: proved, conditional, likely. Among claims of a kind those come first that could harm somebody:
counts of one or two people, then of three to nine, then larger ones; zeros, which are many and name nobody, come last. Then
the surer claim comes first, by the lowest probability that any prior gives, in hundredths of a percent; then the one with
fewer people behind it, who are easier to recognise. What is equal in all of this stays in the order of the release.

`findings.parquet` and `findings.csv` are written in this order, so that a finding's place in them is its rank: nobody who
reads them has to sort. Who makes findings of their own sorts them by `sort_key`, one whole number each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unround.audits.claims import KINDS

if TYPE_CHECKING:
    import polars as pl

SIZES = ((0, "0"), (1, "1-2"), (3, "3-9"), (10, "10+"))
"""Classes of counts by what their disclosure would mean: nobody, one or two people, a few, many."""

SMALL_FIRST = ("1-2", "3-9", "10+", "0")
"""The same, by how much it matters."""

ZEROS = SMALL_FIRST.index("0")
"""The place of zeros among them."""

_FINE = 10_000
"""Probabilities that differ by less than one in so many count as equal."""

_MOST_PEOPLE = (1 << 20) - 1
"""Counts above this are equally large."""


def size_class(values: ArrayLike) -> NDArray[np.int64]:
    """Return the place of each count's class in `SMALL_FIRST`.

    Examples
    --------
    >>> size_class([0, 1, 2, 3, 9, 10, 5000]).tolist()
    [3, 0, 0, 1, 1, 2, 2]
    """
    least = [start for start, _ in SIZES]
    places = np.array([SMALL_FIRST.index(name) for _, name in SIZES], dtype=np.int64)
    return np.asarray(places[np.searchsorted(least, np.asarray(values), side="right") - 1])


def sort_key(kinds: ArrayLike, values: ArrayLike, probabilities: ArrayLike) -> NDArray[np.int64]:
    """Return a whole number for each finding, the smaller the more it matters: below 2⁴⁰, and so exact everywhere.

    Examples
    --------
    >>> proved, likely = 1, 3
    >>> key = sort_key([likely, proved, likely, likely], [0, 14, 1, 2], [0.99, 1, 0.7, 0.95])
    >>> np.argsort(key).tolist()
    [1, 3, 2, 0]
    """
    kind, value = np.asarray(kinds, dtype=np.int64), np.asarray(values, dtype=np.int64)
    doubt = np.rint(_FINE * (1 - np.asarray(probabilities, dtype=np.float64))).astype(np.int64)
    return np.asarray(_packed(kind, size_class(value), doubt, np.minimum(value, _MOST_PEOPLE)), dtype=np.int64)


RANK = "rank"
"""The column of sort keys, in files on the way to the sorted one."""


def sort_expression() -> pl.Expr:
    """Return `sort_key` over the columns "kind", "value" and "probability_low" of findings."""
    import polars as pl

    value = pl.col("value").cast(pl.Int64)
    kind = pl.col("kind").replace_strict(KINDS, range(len(KINDS)), return_dtype=pl.Int64)
    size = pl.when(value == 0).then(ZEROS).when(value <= 2).then(0).when(value <= 9).then(1).otherwise(2).cast(pl.Int64)
    doubt = (_FINE * (1 - pl.col("probability_low"))).round(mode="half_to_even").cast(pl.Int64)
    found: pl.Expr = _packed(kind, size, doubt, pl.min_horizontal(value, pl.lit(_MOST_PEOPLE, dtype=pl.Int64)))
    return found


def _packed(kind: Any, size: Any, doubt: Any, people: Any) -> Any:
    return ((kind * len(SMALL_FIRST) + size) * (_FINE + 1) + doubt) * (_MOST_PEOPLE + 1) + people


def ranked(found: pl.DataFrame) -> pl.DataFrame:
    """Sort findings by how much they matter, and keep their sort keys as `RANK`."""
    return found.with_columns(sort_expression().alias(RANK)).sort(RANK, maintain_order=True)
