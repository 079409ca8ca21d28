"""The likeliest tables near those that chains have seen: climbed to, and then their neighbours."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from unround.crossed.moves import moves_of
from unround.crossed.table import CrossedTable, Ints
from unround.crossed.weights import CellWeights
from unround.jit import kernel
from unround.mechanisms.base import FloatArray

Values = tuple[int, ...]

MOST_CLIMBED = 400
"""Tables whose neighbours are looked at."""

ALIKE = 1e-9
"""Logarithms of weights that differ by less count as equal."""


def best_near(table: CrossedTable, given: CellWeights, seen: Iterable[Values], top: int) -> list[tuple[Values, float]]:
    """Return the likeliest tables that are found from some tables, with the logarithms of their weights.

    Each table's neighbours, one move away, are looked at, the likeliest table first, until none of the `top` best has
    neighbours left that were not looked at. There may be likelier tables far from all that were seen.
    """
    moves = moves_of(table)
    with np.errstate(divide="ignore"):
        logs = np.log(given.weights[: given.area[1]])
    place, low = given.place[0], given.low[0]
    found: dict[Values, float] = {}
    for values in seen:
        found[values] = float(logs[place + np.array(values) - low].sum())
    waiting = [(-weight, values) for values, weight in found.items()]
    heapq.heapify(waiting)
    for _ in range(MOST_CLIMBED):
        best = heapq.nsmallest(top, found.items(), key=lambda item: (-item[1], item[0]))
        least = best[-1][1] if len(best) == top else -np.inf
        if not waiting or -waiting[0][0] < least - ALIKE:
            break
        weight, values = heapq.heappop(waiting)
        at = place + np.array(values) - low
        change = _changes(moves.start[: moves.kind_start[moves.along] + 1], moves.cell, moves.step, at, logs)
        good = np.argwhere(-weight + change > least - ALIKE)
        order = np.argsort(-change[good[:, 0], good[:, 1]], kind="stable")[: 20 * top]
        for m, sign in good[order].tolist():
            new = np.array(values)
            these = slice(moves.start[m], moves.start[m + 1])
            new[moves.cell[these]] += (1 - 2 * sign) * moves.step[these]
            one = tuple(new.tolist())
            if one not in found:
                found[one] = -weight + float(change[m, sign])
                heapq.heappush(waiting, (-found[one], one))
    ranked = sorted(found.items(), key=lambda item: (round(-item[1] / ALIKE), item[0]))
    return ranked[:top]


@kernel
def _changes(start: Ints, cell: Ints, step: Ints, at: NDArray[np.int64], logs: FloatArray) -> FloatArray:
    """Return by how much each move, forwards and backwards, changes the logarithm of the weight."""
    found = np.zeros((len(start) - 1, 2))
    for m in range(len(start) - 1):
        for sign in range(2):
            change = 0.0
            for j in range(start[m], start[m + 1]):
                k = at[cell[j]]
                change += logs[k + (1 - 2 * sign) * step[j]] - logs[k]
            found[m, sign] = change
    return found
