"""Columns held against the records: those that cannot have come from them, and those that only repeat others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.mechanisms import Exact
from unround.reconstruction.queries import Limits, Published
from unround.reconstruction.records import Records
from unround.release import ABSENT
from unround.simulation.persons.counting import Query

MOST_IMPOSSIBLE, MOST_DROPPED = 0.02, 0.05
"""Shares of areas in which a column may be impossible, and of columns that may be left out for that."""


def verified(published: Published, records: Records) -> Published:
    """Leave out columns that cannot have come from the records, and those that repeat others number by number.

    Raises `InputError` where so many columns cannot that the records must be of other people.
    """
    impossible, example = _impossible(published)
    wrong = impossible / len(records.areas) > MOST_IMPOSSIBLE
    if wrong.mean() > MOST_DROPPED and example is not None:
        area, column = example
        shown, true = published.counts.area(area)[column], published.true.area(area)[column]
        raise InputError(
            f"{records.source} does not hold the people that these tables count: in area {records.areas[area]}, table "
            f"{published.names[published.tables[column]]} shows {shown:,} where the records have {true:,}, and so it is for "
            f"{wrong.mean():.0%} of the columns."
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


def _impossible(published: Published) -> tuple[NDArray[np.int64], tuple[int, int] | None]:
    """Count the areas in which each column is impossible, and return the first such area and column.

    A column with a number that its mechanism never gives is impossible everywhere.
    """
    found = np.zeros(len(published.queries), dtype=np.int64)
    never = np.zeros(len(published.queries), dtype=bool)
    limits, examples = Limits(), list[tuple[int, int]]()
    for start, counts in published.counts.blocks():
        off = np.zeros(counts.shape, dtype=bool)
        true = published.true.read(start, start + len(counts))
        for at, how in enumerate(published.mechanisms):
            shown = counts[:, at] > ABSENT
            values, which = np.unique(counts[shown, at], return_inverse=True)
            known = [pair for value in values.tolist() if (pair := limits.of(how, value)) is not None]
            if len(known) < len(values):
                never[at] = True
            elif known:
                low, high = np.array(known, dtype=np.int64)[which.ravel()].T
                off[shown, at] = (true[shown, at] < low) | (true[shown, at] > high)
        found += off.sum(axis=0)
        if not examples and off.any():
            area, column = np.argwhere(off)[0].tolist()
            examples.append((start + area, column))
    found[never] = published.counts.rows.number
    examples.extend((0, at) for at in np.flatnonzero(never).tolist())
    return found, min(examples, default=None)


def _repeats(published: Published) -> NDArray[np.bool_]:
    """Say which columns count the same as an earlier one, and show the same number everywhere."""
    seen: dict[Query, list[int]] = {}
    pairs: list[tuple[int, int]] = []
    for at, one in enumerate(published.queries):
        earlier = seen.setdefault(one, [])
        pairs.extend((other, at) for other in earlier)
        earlier.append(at)
    for _, counts in published.counts.blocks():
        pairs = [(other, at) for other, at in pairs if np.array_equal(counts[:, other], counts[:, at])]
    again = np.zeros(len(published.queries), dtype=bool)
    again[[at for _, at in pairs]] = True
    return again


def population(published: Published) -> tuple[NDArray[np.int64], bool]:
    """Return how many people every area has, from the tables alone, and whether that is exact."""
    whole = [at for at, one in enumerate(published.queries) if not one]
    ways = [(at,) for at in whole] + [parts for total, parts in published.sums if not published.queries[total]]
    found = np.zeros((len(ways), published.counts.rows.number), dtype=np.int64)
    known = np.ones(len(ways), dtype=bool)
    for start, counts in published.counts.blocks():
        for number, parts in enumerate(ways):
            columns = counts[:, list(parts)]
            known[number] &= bool((columns > ABSENT).all())
            found[number, start : start + len(counts)] = columns.sum(axis=1)
    for number, at in enumerate(whole):
        if isinstance(published.mechanisms[at], Exact) and known[number]:
            return found[number].copy(), True
    if not known.any():
        raise InputError("none of the tables says how many people live in an area: give one that does, as a total of all.")
    return np.maximum(np.rint(np.mean(found[known], axis=0)), 0).astype(np.int64), False
