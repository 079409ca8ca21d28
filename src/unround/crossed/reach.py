"""How far each cell can go, shown by tables that fit: what they show needs no other search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unround.crossed.chains import Steps, steps_of
from unround.crossed.kernel import Singles, find_table
from unround.crossed.table import CrossedTable, Ints
from unround.crossed.weights import CellWeights
from unround.jit import kernel

TRIES = 20_000
"""Moves after which a bound is left for others to find."""


def shown_ends(
    table: CrossedTable, given: CellWeights, seen: Sequence[tuple[int, int]], begin: Ints
) -> tuple[tuple[int, int], ...]:
    """Return for every cell the least and the greatest count of tables seen, or found by leading it to its bounds."""
    ends = np.array(seen, dtype=np.int32).T.copy()
    is_leaf = np.zeros(len(begin), dtype=np.bool_)
    is_leaf[table.leaves] = True
    weights = given.weights[: given.area[1]].astype(np.float32)
    _lead(steps_of(table), is_leaf, given.low[0], given.high[0], weights, given.place[0], begin.astype(np.int32), ends)
    return tuple((int(low), int(high)) for low, high in ends.T)


@kernel
def _lead(
    steps: Steps, is_leaf: NDArray[np.bool_], low: Ints, high: Ints, weights: Singles, place: NDArray[np.int64], begin: Ints,
    ends: Ints,
) -> None:  # fmt: skip
    """Lead one cell after the other to each of its bounds, from a table that fits."""
    start, cell, step, kind_start, weight = steps
    random = np.array([1], dtype=np.uint64)
    wanted_low, wanted_high, place_now = low.copy(), high.copy(), place.copy()
    value = begin.copy()
    for c in range(len(low)):
        for side in range(2):
            target = low[c] if side == 0 else high[c]
            if ends[side, c] == target:
                continue
            value[:] = begin
            wanted_low[c] = wanted_high[c] = target
            place_now[c] = place[c] + target - low[c]
            if find_table(
                start, cell, step, kind_start, weight, is_leaf, low, high, wanted_low, wanted_high, weights, place_now,
                value, random, TRIES,
            ):  # fmt: skip
                for other in range(len(low)):
                    ends[0, other] = min(ends[0, other], value[other])
                    ends[1, other] = max(ends[1, other], value[other])
            wanted_low[c], wanted_high[c], place_now[c] = low[c], high[c], place[c]
