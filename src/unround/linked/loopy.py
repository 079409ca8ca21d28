"""Families of many areas: messages between areas, each of which is one exact block (loopy belief propagation).

Every area works out the distributions of its cells from all it knows, its own sums among it. Of each cell that has no
parts, what an area knows apart from what the family told it is then added up over the family: the parent is told
how its children's counts add up, each child what the parent and the other children leave to it. So it goes for some rounds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from unround.batch.compiled import kernel
from unround.batch.forest import Table
from unround.batch.posterior import marginals
from unround.batch.threads import in_threads
from unround.batch.types import Distributions, Ints, Layout, Posterior, PriorTable, Tight
from unround.linked.bounds import Rows
from unround.linked.kin import in_own_order
from unround.linked.weights import Listed
from unround.mechanisms.base import BoolArray, FloatArray

ROUNDS = 30
"""Rounds of messages. Leaves settle within a few; that totals of all levels agree takes longer."""

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
    members = [[parent, *in_own_order(children, listed.low, listed.high)] for parent, children in families.items()]
    houses = Houses(
        np.cumsum([0, *map(len, members)]).astype(np.int64),
        np.array([row for family in members for row in family], dtype=np.int64),
    )
    cells = _Cells(listed.low, listed.start, listed.width)
    # An area may be a child here and a parent there, so that there are two messages to it.
    messages = np.ones((2, listed.weights.size))
    heads = np.zeros(len(listed.low), dtype=np.bool_)
    heads[list(families)] = True
    # What an area knows of its cells, apart from what its family told it as a child, and as a parent.
    apart = np.ones_like(messages)
    own = heads[listed.cell // listed.low.shape[1]]
    most = int(listed.width.max(initial=1)) * (1 + int(np.diff(houses.first).max()))
    for _ in range(rounds):
        # Children first, then parents, who hear at once what these have to say: half as many rounds do.
        for some, here in ((~heads, ~own), (heads, own)):
            chosen = replace(tight, feasible=tight.feasible & some)
            _, found = marginals(layout, listed.windows(messages[0] * messages[1]), chosen, prior, active)
            apart[:, here] = found.chances[here] / messages[:, here]
            fresh = np.ones_like(messages)
            in_threads(partial(_tell_some, houses, (cells, columns, apart, fresh), most), len(families))
            messages = np.stack([np.maximum(listed.scale(one), LEAST) for one in fresh])
    factor = messages[0] * messages[1]
    posterior, found = marginals(layout, listed.windows(factor), tight, prior, active)
    return posterior, found, factor


def _tell_some(houses: Houses, given: tuple[_Cells, Rows, FloatArray, FloatArray], most: int, first: int, last: int) -> None:
    """Work out the new messages of a range of families."""
    _tell(first, last, houses, *given, np.empty((2, most)))


@kernel
def _tell(
    first: int,
    last: int,
    houses: Houses,
    cells: _Cells,
    columns: Table,
    apart: FloatArray,
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
                    one = apart[0, cells.start[row, c] + k]
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
                    known[shift + k] = apart[1, at]
            # `known` is what is known of the sum of the first children, if that of all is known as the parent knows it.
            for j in range(number - 1, -1, -1):
                row = rows[1 + j]
                width = cells.width[row, c]
                before = length - width + 1
                other[:before] = 0.0
                for k in range(width):
                    told = 0.0
                    one = apart[0, cells.start[row, c] + k]
                    for s in range(before):
                        told += sums[j, s] * known[s + k]
                        other[s] += one * known[s + k]
                    fresh[0, cells.start[row, c] + k] = told
                length = before
                most = other[:length].max()
                for s in range(length):
                    known[s] = other[s] / most if most > 0.0 else 1.0
