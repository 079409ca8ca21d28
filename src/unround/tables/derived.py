"""Derived columns: numbers that anybody can work out from the counts printed beside them tell nothing more.

Changes, growth and ratios are computed again from every two columns; ranks are an order of the rows, which is held against
what the counts may be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.release import ABSENT, Counts

MOST_PAIRED = 40
"""Columns of counts up to which every two are tried."""
LEAST_ROWS = 3
"""Rows in which a figure must agree, at least."""
LEFT = 3
"""An order of rows tells little if every count that is not printed as it is keeps values so far apart."""
FAR = 10**9

Sums = Sequence[tuple[int, Sequence[int]]]


def works_out(figures: Sequence[str], counts: Mapping[str, Counts]) -> str:
    """Return how to work out a column from columns of counts, in all rows and to its last decimal; "" where nobody can.

    Examples
    --------
    >>> years = {"2016": np.array([50, 80, 100]), "2021": np.array([60, 72, 100])}
    >>> works_out(["10", "-8", "0"], years), works_out(["20.0", "-10.0", "0.0"], years)
    ('2021 − 2016', 'the change from 2016 to 2021, in per cent')
    """
    shown = [text.rstrip("% ").replace("−", "-").replace(" ", "") for text in figures]
    numbers = pl.Series(shown, dtype=pl.String).cast(pl.Float64, strict=False).to_numpy()
    there = np.isfinite(numbers)
    if int(there.sum()) < LEAST_ROWS or len(counts) > MOST_PAIRED:
        return ""
    if set(numbers[there]) == {100.0}:
        return "100 in every row, the share of a whole in itself"
    places = max(len(text.partition(".")[2]) for text, held in zip(shown, there, strict=True) if held)
    half = 0.5 * 10.0**-places + 1e-9
    for name, column in counts.items():
        for row, called in ((0, "first"), (-1, "last")):
            known = there & (column > ABSENT)
            if (
                (known == there).all()
                and column[row] > 0
                and (np.abs(100 * column / column[row] - numbers)[there] <= half).all()
            ):
                return f"{name} in per cent of its {called} row"
    for (first, one), (second, other) in permutations(counts.items(), 2):
        known = there & (one > ABSENT) & (other > ABSENT)
        if int(known.sum()) < max(LEAST_ROWS, int(there.sum())):
            continue
        before, after, said = one[known].astype(float), other[known].astype(float), numbers[known]
        ways = {f"{second} − {first}": after - before}
        if (before > 0).all():
            growth = (after - before) / before
            change = f"the change from {first} to {second}"
            ways |= {f"{change}, in per cent": 100 * growth, change: growth, f"{second} / {first}": after / before}
            ways |= {f"{second} in per cent of {first}": 100 * after / before}
        for way, worked_out in ways.items():
            if (np.abs(worked_out - said) <= half).all():
                return way
    return ""


def narrowed(
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    sums: Sums,
    of_rows: Sums,
    orders: Sequence[tuple[int, Sequence[int]]] = (),
) -> bool:
    """Narrow what counts may be, rows × columns, in place, until no sum and no order says more; False if nothing fits.

    `sums` are of columns, and `of_rows` of rows, each a total and its parts. An order is a column, and its rows from the
    largest count to the smallest.
    """
    for _ in range(2 * sum(low.shape) + 10):
        before = low.sum(), high.sum()
        for lower, upper, listed in ((low.T, high.T, sums), (low, high, of_rows)):
            for total, parts in listed:
                least, most = lower[list(parts)].sum(axis=0), upper[list(parts)].sum(axis=0)
                lower[total], upper[total] = np.maximum(lower[total], least), np.minimum(upper[total], most)
                for part in parts:
                    up, down = upper[total] - (least - lower[part]), lower[total] - (most - upper[part])
                    lower[part], upper[part] = np.maximum(lower[part], down), np.minimum(upper[part], up)
                    least, most = lower[list(parts)].sum(axis=0), upper[list(parts)].sum(axis=0)
        for column, rows in orders:
            high[rows, column] = np.minimum.accumulate(high[rows, column])
            low[rows[::-1], column] = np.maximum.accumulate(low[rows[::-1], column])
        if (low > high).any():
            return False
        if before == (low.sum(), high.sum()):
            break
    return True


def order_gives_away(
    ranks: Sequence[int | None], low: NDArray[np.int64], high: NDArray[np.int64], sums: Sums, of_rows: Sums
) -> bool:
    """Return whether ranks, if they are those of some column, leave a count that was uncertain hardly any.

    Ranks that no column can have are of something else.
    """
    ranked = sorted((rank, at) for at, rank in enumerate(ranks) if rank is not None)
    down = [at for _, at in ranked]
    narrowed(low, high, sums, of_rows)
    uncertain = high - low >= LEFT
    for column in range(low.shape[1]):
        for rows in (down, down[::-1]):
            lower, upper = low.copy(), high.copy()
            if narrowed(lower, upper, sums, of_rows, [(column, rows)]) and (uncertain & (upper - lower < LEFT)).any():
                return True
    return False
