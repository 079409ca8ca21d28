"""Moves of the sampler: which cells grow by one with one more person of some kind, for any structure of sums.

Each is a vector in the lattice of tables that satisfy all sums, as in a Markov basis (Diaconis and Sturmfels 1998).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from unround.batch.forest import Table
from unround.infer.bounds import Equations, neighbours

MOST_KINDS = 400
"""The most kinds of persons to look for; where there are fewer in all, most of them are found."""

_TRIES = 8
"""Attempts to start from each cell."""


class Swaps(NamedTuple):
    """Kinds of persons: one more of kind i adds one to each of `cells[first[i]:first[i + 1]]`."""

    first: Table
    cells: Table


@lru_cache(maxsize=16)
def swap_moves(columns: int, equations: Equations) -> Swaps:
    """Find kinds of persons: sets of cells such that every sum still holds if each of them grows by one.

    Starting from each cell without parts, all cells that must grow too are added; where one of several parts must, it
    is chosen at random. Failed attempts are repeated a few times.

    Examples
    --------
    >>> found = swap_moves(3, ((0, (1, 2)),))
    >>> found.first, found.cells
    (array([0, 2, 4]), array([0, 1, 0, 2]))
    """
    rng = np.random.default_rng(0)
    _, touching = neighbours(equations)
    totals = {total for total, _ in equations}
    leaves = [column for column in range(columns) if column not in totals and column in touching]
    found: dict[tuple[int, ...], None] = {}
    for leaf in leaves * (1 if len(leaves) >= MOST_KINDS else 3):
        for _ in range(_TRIES):
            kind = _grown(leaf, equations, touching, rng)
            if kind is not None:
                found[kind] = None
                break
        if len(found) >= MOST_KINDS:
            break
    kinds = list(found)
    first = np.concatenate([[0], np.cumsum([len(kind) for kind in kinds])]).astype(np.int64)
    return Swaps(first, np.array([cell for kind in kinds for cell in kind], dtype=np.int64))


def _grown(
    leaf: int, equations: Equations, touching: dict[int, list[int]], rng: np.random.Generator
) -> tuple[int, ...] | None:
    """Return the cells that grow with one cell, at random where there is a choice; None if one would have to grow twice."""
    grown, forced, open_sums = {leaf}, [leaf], list[int]()
    while True:
        while forced:
            for e in touching[forced.pop()]:
                total, parts = equations[e]
                number = sum(part in grown for part in parts)
                if number > 1:
                    return None
                if number == 1 and total not in grown:
                    grown.add(total)
                    forced.append(total)
                elif number == 0 and total in grown:
                    open_sums.append(e)
        waiting = [e for e in open_sums if not any(part in grown for part in equations[e][1])]
        if not waiting:
            return tuple(sorted(grown))
        # The sum with the fewest parts first: a choice between men and women decides most of the others.
        e = min(waiting, key=lambda one: (len(equations[one][1]), one))
        parts = equations[e][1]
        part = parts[int(rng.integers(len(parts)))]
        grown.add(part)
        forced.append(part)
        open_sums = waiting
