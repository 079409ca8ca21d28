"""Families of areas: units of areas that are the same people, families of units, and areas that they connect.

And the sums of areas, within them and over them, as one matrix.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms.base import BoolArray
from unround.sums.forest import Equations

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Rows = NDArray[np.int64]

MOST_LINKED = 10
"""Children above which a parent's rounded counts say too little about any of them to be worth the time."""


@dataclass(frozen=True, slots=True, eq=False)
class FamilyGroups:
    """Units of areas that are the same people, and families of units.

    - `unit`: For every area the row of its representative: the last of a chain of only children, or the area itself.
    - `above`: For every representative the representative of its parent; -1 where it is not linked to one, and for all
      other rows.
    - `height`: For every area, how many steps it is above its representative.
    - `families`: The rows of the children of each unit that has at least two, by the row of the parent.
    - `large`: The parents that have more than `MOST_LINKED` children.
    """

    unit: Rows
    above: Rows
    height: Rows
    families: dict[int, Rows]
    large: tuple[int, ...]


def find_families(parent: Rows, most: int = MOST_LINKED) -> FamilyGroups:
    """Find units and families."""
    areas = len(parent)
    children = np.bincount(parent[parent >= 0], minlength=areas)
    single = (parent >= 0) & (children[parent] == 1)
    unit = np.arange(areas, dtype=np.int64)
    below = np.arange(areas, dtype=np.int64)
    below[parent[single]] = np.flatnonzero(single)
    height = np.zeros(areas, dtype=np.int64)
    while True:
        further = below[unit]
        if (further == unit).all():
            break
        height += further != unit
        unit = further
    above = np.full(areas, -1, dtype=np.int64)
    linked = np.flatnonzero((parent >= 0) & ~single)
    # The top of a chain has the parent; its bottom is the representative.
    above[unit[linked]] = unit[parent[linked]]
    order = linked[np.argsort(above[unit[linked]], kind="stable")]
    rows = unit[order]
    heads, starts = np.unique(above[rows], return_index=True)
    families, large = {}, []
    for head, members in zip(heads.tolist(), np.split(rows, starts[1:]) if rows.size else (), strict=True):
        if len(members) > most:
            large.append(head)
            above[members] = -1
        else:
            families[head] = np.sort(members)
    return FamilyGroups(unit, above, height, families, tuple(large))


def tops(parent: Rows) -> Rows:
    """Return for every area the outermost that it lies in; it is its own where its parent is -1."""
    top = np.where(parent >= 0, parent, np.arange(len(parent)))
    while (top != top[top]).any():
        top = top[top]
    return top


def components(groups: FamilyGroups, most: int) -> list[Rows]:
    """Return connected areas in batches of about `most`, without areas that are linked to no other."""
    piece = tops(groups.above)[groups.unit]
    size = np.bincount(piece, minlength=len(piece))
    rows = np.flatnonzero(size[piece] > 1)
    rows = rows[np.argsort(piece[rows], kind="stable")]
    if not rows.size:
        return []
    number = np.cumsum(np.r_[True, piece[rows][1:] != piece[rows][:-1]]) - 1
    ends = np.flatnonzero(np.r_[number[1:] != number[:-1], True]) + 1
    batches, start = [], 0
    for before, end in zip(np.r_[0, ends[:-1]].tolist(), ends.tolist(), strict=True):
        if end - start > most and before > start:
            batches.append(rows[start:before])
            start = before
    batches.append(rows[start:])
    return batches


def pieces_of(families: dict[int, Rows], areas: int) -> Rows:
    """Return for every area the number of its piece: families with a common area form one piece."""
    above = np.full(areas, -1, dtype=np.int64)
    for parent, children in families.items():
        above[children] = parent
    return np.unique(tops(above), return_inverse=True)[1].astype(np.int64)


class AreaFamily(NamedTuple):
    """An area that is the sum of others, by their rows, and the columns in which it is."""

    parent: int
    children: Rows
    columns: BoolArray


def sums_matrix(columns: int, equations: Equations, active: BoolArray, families: Iterable[AreaFamily] = ()) -> csr_array:
    """Return the sums of some areas as a matrix: a row for every sum that holds in an area, and for every sum over areas.

    Cells are counted area by area. A sum holds where its row times the counts is 0.
    """
    from scipy.sparse import csr_array

    size = np.array([len(parts) + 1 for _, parts in equations], dtype=np.int64)
    first = np.cumsum(size) - size
    cells = np.array([cell for total, parts in equations for cell in (total, *parts)], dtype=np.int64)
    signs = np.array([sign for _, parts in equations for sign in (1.0, *(-1.0 for _ in parts))])
    where, sum_of = np.nonzero(active)
    lengths = size[sum_of]
    begin = np.cumsum(lengths) - lengths
    inside = np.arange(lengths.sum()) - np.repeat(begin, lengths) + np.repeat(first[sum_of], lengths)
    row = [np.repeat(np.arange(len(where)), lengths)]
    column = [np.repeat(where, lengths) * columns + cells[inside]] if len(cells) else [np.zeros(0, dtype=np.int64)]
    value = [signs[inside]] if len(cells) else [np.zeros(0)]
    rows = len(where)
    for family in families:
        adding = np.flatnonzero(family.columns)
        members = np.r_[family.parent, family.children]
        row.append(np.repeat(rows + np.arange(len(adding)), len(members)))
        column.append((members[None, :] * columns + adding[:, None]).ravel())
        value.append(np.tile(np.r_[1.0, -np.ones(len(family.children))], len(adding)))
        rows += len(adding)
    parts = np.concatenate(value), (np.concatenate(row), np.concatenate(column))
    return csr_array(parts, shape=(rows, len(active) * columns))
