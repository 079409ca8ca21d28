"""Derived columns: numbers that anybody can work out from the counts printed beside them tell nothing more.

Changes, growth and ratios are computed again from every two columns; ranks are an order of the rows, which is held against
what the counts may be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

MOST_PAIRED = 40
"""Columns of counts up to which every two are tried."""
LEAST_ROWS = 3
"""Rows in which a figure must agree, at least."""
LEFT = 3
"""An order of rows tells little if every count that is not printed as it is keeps values so far apart."""
CLOSE = 1.05
"""A column is a multiple of another if what it is multiplied with is known so well."""
FAR = 10**9

Sums = Sequence[tuple[int, Sequence[int]]]


class Way(NamedTuple):
    """How a column is worked out from others, and the rows where it is printed and they are not all: it tells of these."""

    how: str
    telling: tuple[int, ...] = ()


def works_out(figures: Sequence[str], columns: Mapping[str, NDArray[np.float64]]) -> Way | None:
    """Return how to work out a column from others, to its last decimal where they are printed, not NaN; None if nobody can.

    >>> years = {"2016": np.array([50, 80, 100, np.nan]), "2021": np.array([60, 72, 100.0, 80])}
    >>> works_out(["10", "-8", "0", "3"], years)
    Way(how='2021 − 2016', telling=(3,))
    >>> works_out(["20.0", "-10.0", "0.0", ""], years).how
    'the change from 2016 to 2021, in per cent'
    """
    shown = [text.rstrip("% ").replace("−", "-").replace(" ", "").removeprefix("+") for text in figures]
    numbers = pl.Series(shown, dtype=pl.String).cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    there = np.isfinite(numbers)
    if int(there.sum()) < LEAST_ROWS or len(columns) > MOST_PAIRED:
        return None
    if set(numbers[there]) == {100.0}:
        return Way("100 in every row, the share of a whole in itself")
    places = max(len(text.partition(".")[2]) for text, held in zip(shown, there, strict=True) if held)
    half = 0.5 * 10.0**-places + 1e-9

    def told(known: NDArray[np.bool_]) -> tuple[int, ...]:
        return tuple(np.flatnonzero(there & ~known).tolist())

    def enough(known: NDArray[np.bool_]) -> bool:
        return int(known.sum()) >= max(LEAST_ROWS, int(there.sum()) / 2)

    for name, column in columns.items():
        known = there & (column > 0)
        said, of = numbers[known], column[known]
        if enough(known) and len(said) > LEAST_ROWS and len(set(said)) >= LEAST_ROWS:
            least, most = ((said - half) / of).max(), ((said + half) / of).min()
            if 0 < least <= most <= CLOSE * least:
                return Way(f"{name} times {(least + most) / 2:.3g}", told(known | (column == 0)))
    for start, end in combinations(range(len(columns)), 2):
        run = np.array(list(columns.values())[start : end + 1])
        known = there & np.isfinite(run).all(axis=0)
        if not enough(known) or len(set(numbers[known])) < LEAST_ROWS:
            continue
        if (np.abs(run[:, known].mean(axis=0) - numbers[known]) <= half).all():
            return Way(f"the mean of {list(columns)[start]} to {list(columns)[end]}", told(known))
    for (first, before), (second, after) in permutations(columns.items(), 2):
        known = there & np.isfinite(before) & np.isfinite(after)
        if not enough(known):
            continue
        said, earlier, other = numbers[known], before[known], after[known]
        ways = {f"{second} − {first}": other - earlier}
        if (earlier > 0).all() and len(set(said)) >= LEAST_ROWS:
            change, ratio = f"the change from {first} to {second}", other / earlier
            ways |= {f"{change}, in per cent": 100 * (ratio - 1), change: ratio - 1, f"{second} / {first}": ratio}
            ways |= {f"{second} in per cent of {first}": 100 * ratio}
            ways |= {f"{second} per {per:,} {first}": per * ratio for per in (1_000, 10_000, 100_000)}
        for how, worked_out in ways.items():
            if (np.abs(worked_out - said) <= half).all():
                return Way(how, told(known))
    return None


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
