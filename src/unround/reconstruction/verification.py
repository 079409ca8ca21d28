"""Columns held against the records: those that cannot have come from them, and those that only repeat others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.mechanisms import Exact
from unround.reconstruction.queries import Published, possible
from unround.reconstruction.records import Records
from unround.release import ABSENT
from unround.simulation.persons.counting import Query

MOST_IMPOSSIBLE, MOST_DROPPED = 0.02, 0.05
"""Shares of areas in which a column may be impossible, and of columns that may be left out for that."""


def verified(published: Published, true: NDArray[np.int64], records: Records) -> Published:
    """Leave out columns that cannot have come from the records, and those that repeat others number by number.

    Raises
    ------
    InputError
        Where so many columns cannot that the records must be of other people.
    """
    impossible = np.zeros(true.shape, dtype=bool)
    for at, how in enumerate(published.mechanisms):
        shown = published.counts[:, at] > ABSENT
        if not possible(how, published.counts[shown, at]):
            impossible[:, at] = True
            continue
        values, which = np.unique(published.counts[shown, at], return_inverse=True)
        windows = [how.window(int(value)) for value in values]
        low = np.array([window.low for window in windows], dtype=np.int64)
        high = np.array([np.iinfo(np.int64).max if window.high is None else window.high for window in windows])
        own = true[shown, at]
        if len(values):
            impossible[shown, at] = (own < low[which]) | (own > high[which])
    wrong = impossible.mean(axis=0) > MOST_IMPOSSIBLE
    if wrong.mean() > MOST_DROPPED:
        area, column = (int(one) for one in np.argwhere(impossible)[0])
        raise InputError(
            f"{records.source} does not hold the people that these tables count: in area {records.areas[area]}, table "
            f"{published.names[published.tables[column]]} shows {published.counts[area, column]:,} where the records have "
            f"{true[area, column]:,}, and so it is for {wrong.mean():.0%} of the columns."
        )
    if wrong.any():
        published.notes.append(
            f"{int(wrong.sum()):,} columns are left out: the records do not fit them, so they must count something else."
        )
    again = _repeats(published)
    if again.any():
        published.notes.append(
            f"{int(again.sum()):,} columns repeat another column's count with the same number everywhere: they add nothing."
        )
    return published.without(wrong | again)


def _repeats(published: Published) -> NDArray[np.bool_]:
    """Say which columns count the same as an earlier one, and show the same number everywhere."""
    seen: dict[Query, list[int]] = {}
    again = np.zeros(len(published.queries), dtype=bool)
    for at, one in enumerate(published.queries):
        earlier = seen.setdefault(one, [])
        again[at] = any(np.array_equal(published.counts[:, other], published.counts[:, at]) for other in earlier)
        earlier.append(at)
    return again


def population(published: Published) -> tuple[NDArray[np.int64], bool]:
    """Return how many people every area has, from the tables alone, and whether that is exact."""
    whole = [at for at, one in enumerate(published.queries) if not one]
    for at in whole:
        if isinstance(published.mechanisms[at], Exact) and (published.counts[:, at] > ABSENT).all():
            return published.counts[:, at], True
    shown = [published.counts[:, at] for at in whole if (published.counts[:, at] > ABSENT).all()]
    for total, parts in published.sums:
        columns = published.counts[:, list(parts)]
        if not published.queries[total] and (columns > ABSENT).all():
            shown.append(columns.sum(axis=1))
    if not shown:
        raise InputError("none of the tables says how many people live in an area: give one that does, as a total of all.")
    return np.maximum(np.rint(np.mean(shown, axis=0)), 0).astype(np.int64), False
