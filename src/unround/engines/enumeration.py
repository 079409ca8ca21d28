"""All tables that fit, one after the other, depth first: exact, and the judge of everything else where they are few.

The likeliest tables near those that chains have seen: climbed to, and then their neighbours.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.engines.chain_kernel import CellWeights, TableLeaves, has_pinned_total
from unround.engines.chains import moves_of
from unround.jit import in_threads, inner, kernel
from unround.mechanisms.base import FloatArray
from unround.sums.multiway import Ints, MultiwayTable

FEW_VISITS = 100_000
"""Steps that cost less than chains do: a millisecond or two."""


class Listed(NamedTuple):
    """What enumeration found.

    - `complete`: For every area whether all tables were enumerated; if not, nothing else of it means anything.
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


def list_pinned(table: MultiwayTable, given: CellWeights) -> Listed:
    """Enumerate all tables of areas in which some totals are exact, where that takes few steps.

    There tables may lie so far apart that no move leads from one to the other, or hardly any: chains could be wrong without
    showing it.
    """
    pinned = np.zeros(len(given.low), dtype=np.bool_)
    _find_pinned(TableLeaves.of(table), given.low, given.high, pinned)
    return list_tables(table, given, FEW_VISITS, chosen=pinned)


def list_tables(
    table: MultiwayTable,
    given: CellWeights,
    visits: int,
    top: int = 0,
    threads: int | None = None,
    chosen: NDArray[np.bool_] | None = None,
) -> Listed:
    """Enumerate all tables that fit, in areas where that takes few steps."""
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

    walk = _Walk(order.astype(np.int64), complete, ends, visits)
    leaves = TableLeaves.of(table)
    in_threads(lambda first, final: _areas(first, final, tried, leaves, walk, given, result), areas, threads, fewest=1)
    return result


class _Walk(NamedTuple):
    """In which order leaves are set, which cells are complete with each of them, and how many steps may be taken."""

    order: NDArray[np.int64]
    complete: NDArray[np.int64]
    ends: NDArray[np.int64]
    visits: int


@kernel
def _find_pinned(table: TableLeaves, low: Ints, high: Ints, pinned: NDArray[np.bool_]) -> None:
    """Mark the areas in which some, but not all, of the leaves that can change have a total that cannot."""
    scratch = np.zeros(low.shape[1], dtype=np.int32)
    for a in range(len(low)):
        pinned[a] = has_pinned_total(table, low[a], high[a], scratch)


@kernel
def _areas(
    first: int, final: int, tried: NDArray[np.bool_], table: TableLeaves, walk: _Walk, given: CellWeights, result: Listed
) -> None:
    """Enumerate the tables of a range of areas."""
    order, complete, ends, _ = walk
    leaves, above_start, above, _ = table
    weights, chances = given.weights, result.chances
    depth, cells, top = len(leaves), given.low.shape[1], result.best.shape[1]
    totals = np.zeros((3, cells), np.int64)
    partial, rest_low, rest_high = totals[0], totals[1], totals[2]
    value, until = np.zeros(depth + 1, np.int64), np.zeros(depth + 1, np.int64)
    product, mass, count = np.ones(depth + 2), np.zeros(depth + 2), np.zeros(depth + 2)
    for a in range(first, final):
        if not tried[a]:
            continue
        low, high, place = given.low[a], given.high[a], given.place[a]
        totals[:] = 0
        for k in range(depth):
            for j in range(above_start[order[k]], above_start[order[k] + 1]):
                rest_low[above[j]] += low[leaves[order[k]]]
                rest_high[above[j]] += high[leaves[order[k]]]
        mass[:] = count[:] = 0.0
        k, entering, steps = 0, True, 0
        while k >= 0 and steps <= walk.visits:
            leaf, i = leaves[order[k]], order[k]
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
                _rank(product[k + 1], partial, result.weight[a], result.best[a])
        result.complete[a] = k < 0
        result.number[a] = count[0]
        if k < 0 and mass[0] > 0.0:
            for c in range(cells):
                for v in range(high[c] - low[c] + 1):
                    chances[place[c] + v] /= mass[0]
            for at in range(top):
                result.weight[a, at] /= mass[0]


@inner
def _rank(weight: float, values: NDArray[np.int64], best_weight: FloatArray, best: Ints) -> None:
    """Put a table among the likeliest, if it is one of them; of equals, those that came first stay first."""
    at = len(best_weight)
    while at > 0 and weight > best_weight[at - 1] * (1 + 1e-12):
        at -= 1
        if at + 1 < len(best_weight):
            best_weight[at + 1] = best_weight[at]
            for c in range(len(values)):
                best[at + 1, c] = best[at, c]
    if at < len(best_weight):
        best_weight[at] = weight
        for c in range(len(values)):
            best[at, c] = values[c]


Values = tuple[int, ...]

MOST_CLIMBED = 400
"""Tables whose neighbours are looked at."""

ALIKE = 1e-9
"""Logarithms of weights that differ by less count as equal."""


def best_near(table: MultiwayTable, given: CellWeights, seen: Iterable[Values], top: int) -> list[tuple[Values, float]]:
    """Return the likeliest tables that are found from some tables, with the logarithms of their weights.

    Each table's neighbours, one move away, are looked at, the likeliest table first, until none of the `top` best has
    neighbours left that were not looked at. There may be likelier tables far from all that were seen.
    """
    moves = moves_of(table)
    with np.errstate(divide="ignore"):
        logs = np.log(given.weights[: given.area[1]])
    place, low = given.place[0], given.low[0]
    logs_of: dict[Values, float] = {}
    for values in seen:
        logs_of[values] = float(logs[place + np.array(values) - low].sum())
    waiting = [(-weight, values) for values, weight in logs_of.items()]
    heapq.heapify(waiting)
    for _ in range(MOST_CLIMBED):
        best = heapq.nsmallest(top, logs_of.items(), key=lambda item: (-item[1], item[0]))
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
            neighbour = tuple(new.tolist())
            if neighbour not in logs_of:
                logs_of[neighbour] = -weight + float(change[m, sign])
                heapq.heappush(waiting, (-logs_of[neighbour], neighbour))
    ranked = sorted(logs_of.items(), key=lambda item: (round(-item[1] / ALIKE), item[0]))
    return ranked[:top]


@kernel
def _changes(start: Ints, cell: Ints, step: Ints, at: NDArray[np.int64], logs: FloatArray) -> FloatArray:
    """Return by how much each move, forwards and backwards, changes the logarithm of the weight."""
    changes = np.zeros((len(start) - 1, 2))
    for m in range(len(start) - 1):
        for sign in range(2):
            change = 0.0
            for j in range(start[m], start[m + 1]):
                k = at[cell[j]]
                change += logs[k + (1 - 2 * sign) * step[j]] - logs[k]
            changes[m, sign] = change
    return changes
