"""Kinds of persons: which cells of an area one more person adds one to, whatever the sums are."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from unround.batch.forest import Table
from unround.infer.bounds import Equations, neighbours

MOST_KINDS = 400
"""Kinds of persons that are looked for; where all of them are fewer, every one is found sooner or later."""

_TRIES = 8
"""Tries from each cell before it is left alone."""


class Swaps(NamedTuple):
    """Kinds of persons: one more of kind i adds one to each of `cells[first[i]:first[i + 1]]`."""

    first: Table
    cells: Table


@lru_cache(maxsize=16)
def swap_moves(columns: int, equations: Equations) -> Swaps:
    """Find kinds of persons: sets of cells such that every sum still holds if each of them grows by one.

    Starting from each cell that has no parts, everything that must grow too is added; where one of several parts must, one
    is chosen at random. What leads nowhere is tried again a few times, and then left.

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
    """Return the cells that grow with one cell, as far as chance decides; None where they would have to grow twice."""
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
