"""Merging the sparsest categories of a table: which ones, and the table that is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unround.mechanisms import Exact, Mechanism
from unround.mechanisms.base import BoolArray
from unround.release import ABSENT, NOT_AVAILABLE, Column, Counts
from unround.reviews.table import ReviewedTable, selected

FEWEST = 3
"""Of fewer categories, merging two leaves nothing but their total."""

Draw = Callable[[Mechanism, Counts, BoolArray, np.random.Generator], Counts]
"""Publishes true counts, where they are shown."""

Change = Callable[[ReviewedTable, Counts, np.random.Generator], ReviewedTable]


@dataclass(frozen=True)
class Siblings:
    """Categories that add up to one total: their codes on one axis."""

    axis: int
    codes: tuple[str, ...]


def merge_repairs(table: ReviewedTable, exposed: BoolArray, draw: Draw) -> Iterator[tuple[str, str, Change]]:
    """Yield a name, what to do, and the change: the two sparsest neighbours merged, then all neighbours in pairs.

    Categories are neighbours in the order of the table: ages that follow each other make sense together. Of all groups of
    categories, that with most cells to act on is chosen.
    """
    groups = [one for one in _siblings(table) if len(one.codes) >= FEWEST]
    if not groups:
        return
    weights = exposed.sum(axis=0)

    def weight(group: Siblings) -> int:
        return int(sum(weights[at] for at, column in enumerate(table.columns) if column.codes[group.axis] in group.codes))

    group = max(groups, key=lambda one: (weight(one), len(one.codes)))
    codes = group.codes
    sizes = [_size(table, group.axis, code) for code in codes]
    at = min(range(len(codes) - 1), key=lambda k: sizes[k] + sizes[k + 1])
    first, second = (_label(table, group.axis, code) for code in codes[at : at + 2])
    yield "2", f"Merge {first} and {second} into one category.", _merging(group.axis, [codes[at : at + 2]], draw)
    if len(codes) > FEWEST:
        pairs = [codes[k : k + 2] if k + 3 < len(codes) else codes[k:] for k in range(0, len(codes) - 1, 2)]
        first, last = _label(table, group.axis, codes[0]), _label(table, group.axis, codes[-1])
        action = f"Merge the {len(codes)} categories from {first} to {last} in pairs of neighbours."
        yield "pairs", action, _merging(group.axis, pairs, draw)


def _merging(axis: int, groups: Sequence[tuple[str, ...]], draw: Draw) -> Change:
    def change(here: ReviewedTable, true: Counts, rng: np.random.Generator) -> ReviewedTable:
        return merged(here, axis, groups, true, rng, draw)

    return change


def _label(table: ReviewedTable, axis: int, code: str) -> str:
    """Return what a category is called: its label, where all of its columns have one of their own."""
    labels = {column.label for column in table.columns if column.codes[axis] == code}
    return labels.pop() if axis == 0 and len(labels) == 1 else code


def _size(table: ReviewedTable, axis: int, code: str) -> int:
    """Return how many are counted in a category, as published."""
    inside = [at for at, column in enumerate(table.columns) if column.codes[axis] == code]
    return int(np.maximum(table.counts[:, inside], 0).sum())


def _siblings(table: ReviewedTable) -> list[Siblings]:
    """Find categories that add up along one axis, have no parts themselves, and can be merged in all of the table."""
    found: dict[Siblings, None] = {}
    heads = {(axis, table.columns[total].codes[axis]) for total, parts in table.equations for axis in _axis(table, parts)}
    for _, parts in table.equations:
        for axis in _axis(table, parts):
            codes = [table.columns[part].codes[axis] for part in parts]
            leaves = tuple(code for code in codes if (axis, code) not in heads and _complete(table, axis, code, codes[0]))
            found.setdefault(Siblings(axis, leaves))
    return list(found)


def _axis(table: ReviewedTable, parts: Sequence[int]) -> tuple[int, ...]:
    """Return the one axis along which the parts of a sum differ; none where they differ along several."""
    codes = [table.columns[part].codes for part in parts]
    apart = [axis for axis in range(len(codes[0])) if len({one[axis] for one in codes}) > 1]
    return tuple(apart) if len(apart) == 1 and len(parts) > 1 else ()


def _others(table: ReviewedTable, axis: int, code: str) -> set[tuple[str, ...]]:
    """Return the places of a category on all other axes."""
    return {_place(column, axis) for column in table.columns if column.codes[axis] == code}


def _place(column: Column, axis: int) -> tuple[str, ...]:
    return (*column.codes[:axis], *column.codes[axis + 1 :])


def _complete(table: ReviewedTable, axis: int, code: str, other: str) -> bool:
    """Whether two categories have the same columns, and no two columns of one are in the same place."""
    columns = sum(column.codes[axis] == code for column in table.columns)
    if any(column.codes[axis] == code and at not in table.mine for at, column in enumerate(table.columns)):
        return False
    places = _others(table, axis, code)
    return len(places) == columns and places == _others(table, axis, other)


def merged(
    table: ReviewedTable,
    axis: int,
    groups: Sequence[tuple[str, ...]],
    true: Counts,
    rng: np.random.Generator,
    draw: Draw,
) -> ReviewedTable:
    """Return the table with the categories of each group merged into one, which is published anew; other counts stay."""
    together: dict[tuple[int, tuple[str, ...]], list[int]] = {}
    of_code = {code: at for at, codes in enumerate(groups) for code in codes}
    for at, column in enumerate(table.columns):
        if column.codes[axis] in of_code:
            together.setdefault((of_code[column.codes[axis]], _place(column, axis)), []).append(at)
    first = {at: members[0] for members in together.values() for at in members}
    counts, mechanisms, columns = table.counts.copy(), list(table.mechanisms), list(table.columns)
    for (group, _), members in together.items():
        at = members[0]
        counts[:, at], mechanisms[at] = _published(table, members, true, rng, draw)
        columns[at] = _named(table, members, axis, " + ".join(groups[group]))
    sums = _sums_after(table, first, {members[0]: len(members) for members in together.values()})
    whole = replace(
        table,
        columns=tuple(columns),
        mechanisms=tuple(mechanisms),
        counts=counts,
        equations=tuple(sums),
        origins=tuple(origin for origin, _ in sums.values()),
        doubtful=tuple(doubt for _, doubt in sums.values()),
    )
    return selected(whole, [at for at in range(len(columns)) if first.get(at, at) == at])


def _published(
    table: ReviewedTable, members: Sequence[int], true: Counts, rng: np.random.Generator, draw: Draw
) -> tuple[Counts, Mechanism]:
    """Publish the sum of some columns, as they are published."""
    hows = [table.mechanisms[one] for one in members]
    how = Exact() if all(isinstance(one, Exact) for one in hows) else next(h for h in hows if not isinstance(h, Exact))
    each = true[:, list(members)]
    known = (each > ABSENT).all(axis=1)
    whole = np.where(known, np.where(each > ABSENT, each, 0).sum(axis=1), NOT_AVAILABLE).astype(np.int32)
    shown = np.asarray((table.counts[:, list(members)] > ABSENT).any(axis=1))
    return draw(how, whole, shown, rng), how


def _named(table: ReviewedTable, members: Sequence[int], axis: int, code: str) -> Column:
    """Return the column of a merged category."""
    column = table.columns[members[0]]
    return replace(
        column,
        key=" + ".join(table.columns[one].key for one in members),
        codes=(*column.codes[:axis], code, *column.codes[axis + 1 :]),
        label=" + ".join(dict.fromkeys(table.columns[one].label for one in members)),
    )


def _sums_after(
    table: ReviewedTable, first: dict[int, int], sizes: dict[int, int]
) -> dict[tuple[int, tuple[int, ...]], tuple[str, bool]]:
    """Return the sums that hold among merged counts.

    Of a sum with merged parts, all that were merged must be in it. A sum whose total is merged holds if it did for every one
    of those that were merged: (young + old) = (young + old) men + (young + old) women.
    """
    times: Counter[tuple[int, tuple[int, ...]]] = Counter()
    known: dict[tuple[int, tuple[int, ...]], tuple[str, bool]] = {}
    for (total, parts), origin, doubt in zip(table.equations, table.origins, table.doubtful, strict=True):
        new = first.get(total, total), tuple(dict.fromkeys(first.get(part, part) for part in parts))
        inside = Counter(first[part] for part in parts if part in first)
        if total in first or all(number == sizes[at] for at, number in inside.items()):
            times[new] += 1
            known.setdefault(new, (origin, doubt))
    # A total that was merged is the first of its columns.
    return {one: told for one, told in known.items() if one[0] not in sizes or times[one] == sizes[one[0]]}
