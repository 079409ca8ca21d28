"""All tables that fit, one after the other, depth first: exact, and the judge of everything else where they are few."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.crossed.kernel import has_pinned_total
from unround.crossed.table import CrossedTable, Ints
from unround.crossed.weights import CellWeights
from unround.jit import in_threads, kernel
from unround.mechanisms.base import FloatArray

FEW_VISITS = 100_000
"""Steps that cost less than chains do: a millisecond or two."""


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """What was found by going through all tables.

    - `complete`: For every area whether all tables were gone through; if not, nothing else of it means anything.
    - `number`: How many tables fit.
    - `chances`: The probability of every possible count, laid out like `CellWeights.weights`.
    - `best`, `weight`: Areas × top × cells: the likeliest tables, and areas × top: their probabilities, the likeliest
      first; 0 where there are fewer tables.
    """

    complete: NDArray[np.bool_]
    number: FloatArray
    chances: FloatArray
    best: Ints
    weight: FloatArray


def list_pinned(table: CrossedTable, given: CellWeights) -> Listed:
    """Go through all tables of areas in which some totals are exact, where that takes few steps.

    There tables may lie so far apart that no move leads from one to the other, or hardly any: chains could be wrong without
    showing it.
    """
    pinned = np.zeros(len(given.low), dtype=np.bool_)
    _find_pinned(table.above_start, table.above, table.leaves, given.low, given.high, pinned)
    return list_tables(table, given, FEW_VISITS, chosen=pinned)


def list_tables(
    table: CrossedTable,
    given: CellWeights,
    visits: int,
    top: int = 0,
    threads: int | None = None,
    chosen: NDArray[np.bool_] | None = None,
) -> Listed:
    """Go through all tables that fit, in areas where that takes few steps."""
    areas, cells = given.low.shape
    tried = np.ones(areas, dtype=np.bool_) if chosen is None else chosen
    # The longest axis comes last, so that what is complete early are small tables.
    longest_first = np.argsort([-size for size in table.shape], kind="stable")
    order = np.lexsort([table.coordinates[:, axis] for axis in longest_first[::-1]])
    belongs = table.belongs()[:, order]
    last = belongs.shape[1] - 1 - np.argmax(belongs[:, ::-1], axis=1)
    complete = np.argsort(last, kind="stable").astype(np.int64)
    ends = np.searchsorted(last[complete], np.arange(belongs.shape[1] + 1)).astype(np.int64)
    result = Listed(
        np.zeros(areas, dtype=np.bool_),
        np.zeros(areas),
        np.zeros(given.weights.size),
        np.zeros((areas, top, cells), dtype=np.int32),
        np.zeros((areas, top)),
    )

    def job(first: int, final: int) -> None:
        _areas(
            first, final, tried, table.leaves[order], table.above_start, table.above, order, complete, ends,
            given.low, given.high, given.place, given.weights, visits, result.complete, result.number, result.chances,
            result.best, result.weight,
        )  # fmt: skip

    in_threads(job, areas, threads, fewest=1)
    return result


@kernel
def _find_pinned(
    above_start: Ints, above: Ints, leaves: NDArray[np.int64], low: Ints, high: Ints, pinned: NDArray[np.bool_]
) -> None:
    """Mark the areas in which some, but not all, of the leaves that can change have a total that cannot."""
    scratch = np.zeros(low.shape[1], dtype=np.int32)
    for a in range(len(low)):
        pinned[a] = has_pinned_total(above_start, above, leaves, low[a], high[a], scratch)


@kernel
def _areas(
    first: int, final: int, tried: NDArray[np.bool_], leaves: NDArray[np.int64], above_start: Ints, above: Ints,
    order: NDArray[np.int64],
    complete: NDArray[np.int64], ends: NDArray[np.int64], lows: Ints, highs: Ints, places: NDArray[np.int64],
    weights: FloatArray, visits: int, done: NDArray[np.bool_], number: FloatArray, chances: FloatArray, best: Ints,
    best_weight: FloatArray,
) -> None:  # fmt: skip
    """Go through the tables of a range of areas."""
    depth, cells, top = len(leaves), lows.shape[1], best.shape[1]
    partial, rest_low, rest_high = np.zeros(cells, np.int64), np.zeros(cells, np.int64), np.zeros(cells, np.int64)
    value, until = np.zeros(depth + 1, np.int64), np.zeros(depth + 1, np.int64)
    product, mass, count = np.ones(depth + 2), np.zeros(depth + 2), np.zeros(depth + 2)
    for a in range(first, final):
        if not tried[a]:
            continue
        low, high, place = lows[a], highs[a], places[a]
        partial[:] = 0
        rest_low[:] = 0
        rest_high[:] = 0
        for k in range(depth):
            for j in range(above_start[order[k]], above_start[order[k] + 1]):
                rest_low[above[j]] += low[leaves[k]]
                rest_high[above[j]] += high[leaves[k]]
        mass[:] = 0.0
        count[:] = 0.0
        k, entering, steps = 0, True, 0
        while k >= 0 and steps <= visits:
            leaf, i = leaves[k], order[k]
            if entering:  # set this leaf to the least count that its totals allow
                least, most = np.int64(low[leaf]), np.int64(high[leaf])
                for j in range(above_start[i], above_start[i + 1]):
                    c = above[j]
                    rest_low[c] -= low[leaf]
                    rest_high[c] -= high[leaf]
                    least = max(least, low[c] - partial[c] - rest_high[c])
                    most = min(most, high[c] - partial[c] - rest_low[c])
                value[k], until[k] = least - 1, most
                for j in range(above_start[i], above_start[i + 1]):
                    partial[above[j]] += least - 1
            else:  # what was below this count is complete
                chances[place[leaf] + value[k] - low[leaf]] += mass[k + 1]
                for j in range(ends[k], ends[k + 1]):
                    c = complete[j]
                    if c != leaf:
                        chances[place[c] + partial[c] - low[c]] += mass[k + 1]
                mass[k] += mass[k + 1]
                count[k] += count[k + 1]
            down = False
            while value[k] < until[k] and not down:
                value[k] += 1
                steps += 1
                for j in range(above_start[i], above_start[i + 1]):
                    partial[above[j]] += 1
                weight = product[k]
                for j in range(ends[k], ends[k + 1]):
                    c = complete[j]
                    weight *= weights[place[c] + partial[c] - low[c]]
                down = weight > 0.0
                product[k + 1] = weight
            if not down:  # back to the leaf before
                for j in range(above_start[i], above_start[i + 1]):
                    c = above[j]
                    partial[c] -= value[k]
                    rest_low[c] += low[leaf]
                    rest_high[c] += high[leaf]
                k -= 1
                entering = False
            elif k + 1 < depth:
                k += 1
                mass[k] = count[k] = 0.0
                entering = True
            else:
                mass[k + 1], count[k + 1] = product[k + 1], 1.0
                entering = False
                if top > 0 and product[k + 1] > best_weight[a, top - 1] * (1 + 1e-12):
                    at = top - 1
                    while at > 0 and product[k + 1] > best_weight[a, at - 1] * (1 + 1e-12):
                        best_weight[a, at] = best_weight[a, at - 1]
                        best[a, at] = best[a, at - 1]
                        at -= 1
                    best_weight[a, at] = product[k + 1]
                    for c in range(cells):
                        best[a, at, c] = partial[c]
        done[a] = k < 0
        number[a] = count[0]
        if done[a] and mass[0] > 0.0:
            for c in range(cells):
                for v in range(high[c] - low[c] + 1):
                    chances[place[c] + v] /= mass[0]
            for at in range(top):
                best_weight[a, at] /= mass[0]
