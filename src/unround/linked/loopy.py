"""Families of many areas: messages between areas, each of which is one exact block (loopy belief propagation).

Every area works out the distributions of its cells from all it knows, its own sums among it. Of each cell that has no
parts, what an area knows apart from what the family told it is then added up over the family: the parent is told
how its children's counts add up, each child what the parent and the other children leave to it. So it goes for some rounds.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from unround.batch.compiled import inner, kernel
from unround.batch.forest import Table
from unround.batch.posterior import marginals
from unround.batch.threads import in_threads
from unround.batch.types import Distributions, Ints, Layout, Posterior, PriorTable, Tight
from unround.linked.bounds import Rows
from unround.linked.weights import Listed
from unround.mechanisms.base import BoolArray, FloatArray

ROUNDS = 6
"""Rounds of messages; the last changes hardly anything any more."""

DAMPING = 0.3
"""The share of the old message in the new one, as a power: without it, messages can swing to and fro."""

LEAST = 1e-9
"""No message says that a count is less likely than this share of the likeliest: what is ruled out is in the bounds."""


class Houses(NamedTuple):
    """The families: the rows of family f are `rows[first[f]:first[f + 1]]`, the parent's first."""

    first: Table
    rows: Table


class _Cells(NamedTuple):
    """Distributions as the kernel needs them."""

    low: Ints
    start: Table
    width: Table


def exchange(
    layout: Layout,
    listed: Listed,
    tight: Tight,
    prior: PriorTable | None,
    active: BoolArray | None,
    families: dict[int, Rows],
    columns: Rows,
    rounds: int = ROUNDS,
) -> tuple[Posterior, Distributions, FloatArray]:
    """Send messages within all families at once.

    Parameters
    ----------
    layout, tight, prior, active
        As for `posteriors`, for the areas at hand.
    listed : Listed
        What is known of their cells.
    families : dict
        The rows of the children, by the row of the parent.
    columns : array
        The cells that messages are about.
    rounds : int
        How often.

    Returns
    -------
    Posterior, Distributions, array
        What is known of every cell in the end; and by which factor the families changed the weights of counts.
    """
    houses = Houses(
        np.cumsum([0, *(1 + len(children) for children in families.values())]).astype(np.int64),
        np.concatenate([[parent, *children] for parent, children in families.items()]).astype(np.int64),
    )
    cells = _Cells(listed.low, listed.start, listed.width)
    # An area may be a child here and a parent there, so that there are two messages to it.
    messages = np.ones((2, listed.weights.size))
    most = int(listed.width.max(initial=1)) * (1 + int(np.diff(houses.first).max()))
    for _ in range(rounds):
        _, found = marginals(layout, listed.windows(messages[0] * messages[1]), tight, prior, active)
        fresh = np.ones_like(messages)

        given = cells, columns, found.chances, messages, fresh
        in_threads(partial(_tell_some, houses, given, most), len(families))
        fresh = np.stack([np.maximum(listed.scale(one), LEAST) for one in fresh])
        messages = messages**DAMPING * fresh ** (1 - DAMPING)
    factor = messages[0] * messages[1]
    posterior, found = marginals(layout, listed.windows(factor), tight, prior, active)
    return posterior, found, factor


def _tell_some(
    houses: Houses, given: tuple[_Cells, Rows, FloatArray, FloatArray, FloatArray], most: int, first: int, last: int
) -> None:
    """Work out the new messages of a range of families."""
    _tell(first, last, houses, *given, np.empty((2, most)))


@inner
def _cavity(cells: _Cells, chances: FloatArray, message: FloatArray, row: int, column: int, k: int) -> float:
    """Return what an area knows of one count of a cell, apart from what the family told it."""
    at = cells.start[row, column] + k
    return float(chances[at] / message[at])


@kernel
def _tell(
    first: int,
    last: int,
    houses: Houses,
    cells: _Cells,
    columns: Table,
    chances: FloatArray,
    messages: FloatArray,
    fresh: FloatArray,
    spare: FloatArray,
) -> None:
    """Work out the new messages of some families."""
    for f in range(first, last):
        rows = houses.rows[houses.first[f] : houses.first[f + 1]]
        number = len(rows) - 1
        sums = np.zeros((number + 1, spare.shape[1]))
        for c in columns:
            listed = True
            for row in rows:
                listed = listed and cells.start[row, c] >= 0
            if not listed:
                continue
            # sums[j] is the distribution of what the first j children add up to, above their least counts.
            sums[:] = 0.0
            sums[0, 0] = 1.0
            length, least = 1, 0
            for j in range(number):
                row = rows[1 + j]
                width = cells.width[row, c]
                for k in range(width):
                    one = _cavity(cells, chances, messages[0], row, c, k)
                    for s in range(length):
                        sums[j + 1, s + k] += one * sums[j, s]
                length += width - 1
                least += cells.low[row, c]
                most = sums[j + 1].max()
                if most > 0.0:
                    sums[j + 1] /= most
            parent = rows[0]
            shift, width = cells.low[parent, c] - least, cells.width[parent, c]
            known, other = spare[0], spare[1]
            known[:length] = 0.0
            for k in range(width):
                at = cells.start[parent, c] + k
                inside = 0 <= shift + k < length
                fresh[1, at] = sums[number, shift + k] if inside else 0.0
                if inside:
                    known[shift + k] = _cavity(cells, chances, messages[1], parent, c, k)
            # `known` is what is known of the sum of the first children, if that of all is known as the parent knows it.
            for j in range(number - 1, -1, -1):
                row = rows[1 + j]
                width = cells.width[row, c]
                before = length - width + 1
                other[:before] = 0.0
                for k in range(width):
                    told = 0.0
                    one = _cavity(cells, chances, messages[0], row, c, k)
                    for s in range(before):
                        told += sums[j, s] * known[s + k]
                        other[s] += one * known[s + k]
                    fresh[0, cells.start[row, c] + k] = told
                length = before
                most = other[:length].max()
                for s in range(length):
                    known[s] = other[s] / most if most > 0.0 else 1.0
