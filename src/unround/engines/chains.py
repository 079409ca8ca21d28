"""The steps that lead from one table that adds up to another: some leaves go up by t, others down by t.

Along axes, a step is a product: on every axis either one place, or one place up and another down. The more places change
sign, the fewer totals change with them: with a difference on each axis only leaves do. Where totals are exact, products
alone may not reach every table; steps between any two leaves are added for these (the Markov basis of independent axes).

Probabilities by several chains for each area, their standard errors, and whether the chains agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.engines.chain_kernel import (
    ZERO,
    CellWeights,
    Lanes,
    Moves,
    Singles,
    TableLeaves,
    Targets,
    Usable,
    advance,
    find_table,
    has_pinned_total,
    keep_moves,
    record,
    scatter,
    weight_of,
)
from unround.evidence.block import Distributions
from unround.jit import in_threads, inner, kernel, random_bits
from unround.mechanisms.base import BoolArray, FloatArray
from unround.sums.families import Rows
from unround.sums.multiway import Ints, MultiwayTable

MOST_MOVES = 20_000
"""Moves of a kind; of more, so many are drawn."""

WEIGHTS = (2.0, 2.0, 1.0, 0.5)
"""How often moves with 0, 1, 2, 3 and more differences are made, relative to each other."""

ANYWHERE = (1.0, 1.0)
"""The same for moves between any two leaves: one less here and one more there, and two that swap one coordinate."""

Leaves = NDArray[np.int64]


@lru_cache(maxsize=64)
def moves_of(table: MultiwayTable) -> Moves:
    """Return the moves of a table."""
    kinds: list[tuple[Leaves, Leaves]] = []
    weight: list[float] = []
    for number in range(table.axes + 1):
        moves = _products(table, number)
        if len(moves[0]):
            kinds.append(moves)
            weight.append(WEIGHTS[min(number, len(WEIGHTS) - 1)])
    along = len(kinds)
    for moves, often in zip((_transfers(table), _swaps(table)), ANYWHERE, strict=True):
        if len(moves[0]):
            kinds.append(moves)
            weight.append(often)
    starts, cells, steps = [np.zeros(1, dtype=np.int32)], [], []
    for leaves, signs in kinds:
        start, cell, step = _cells(leaves, signs, table.above_start, table.above, table.cells.size)
        starts.append(start[1:] + starts[-1][-1])
        cells.append(cell)
        steps.append(step)
    sizes = np.cumsum([0, *(len(leaves) for leaves, _ in kinds)]).astype(np.int32)
    return Moves(np.concatenate(starts), np.concatenate(cells), np.concatenate(steps), sizes, np.array(weight), along)


def _grid(table: MultiwayTable) -> NDArray[np.int64]:
    """Return which leaf is where; -1 where there is none."""
    grid = np.full(table.shape, -1, dtype=np.int64)
    grid[tuple(table.coordinates.T)] = np.arange(table.leaves.size)
    return grid


def _products(table: MultiwayTable, number: int) -> tuple[Leaves, Leaves]:
    """Return moves with so many differences, as the leaves that change and their signs, a row each."""
    grid, rng = _grid(table), np.random.default_rng(number)
    signed = []
    signs = np.array([(-1) ** bin(corner).count("1") for corner in range(1 << number)])
    chosen = list(combinations(range(table.axes), number))
    for axes in chosen:
        sizes = [size * (size - 1) // 2 if axis in axes else size for axis, size in enumerate(table.shape)]
        every, most = int(np.prod(sizes)), MOST_MOVES // len(chosen)
        numbers = np.arange(every) if every <= most else np.unique(rng.integers(0, every, most))
        places = np.unravel_index(numbers, sizes)
        corners = []
        for corner in range(1 << number):
            at = []
            for axis, size in enumerate(table.shape):
                if axis in axes:
                    pairs = np.stack(np.triu_indices(size, 1))
                    at.append(pairs[corner >> axes.index(axis) & 1][places[axis]])
                else:
                    at.append(places[axis])
            corners.append(grid[tuple(at)])
        signed.append(np.stack(corners, axis=1))
    leaves = np.concatenate(signed)
    leaves = leaves[(leaves >= 0).all(axis=1)]
    return leaves, np.broadcast_to(signs, leaves.shape)


def _pairs(table: MultiwayTable) -> tuple[Leaves, Leaves]:
    """Return two leaves each that differ along several axes."""
    number = table.leaves.size
    rng = np.random.default_rng(number)
    if number * (number - 1) // 2 <= MOST_MOVES:
        first, second = np.triu_indices(number, 1)
    else:
        first, second = rng.integers(0, number, (2, MOST_MOVES))
    several = (table.coordinates[first] != table.coordinates[second]).sum(axis=1) > 1
    return first[several], second[several]


def _transfers(table: MultiwayTable) -> tuple[Leaves, Leaves]:
    leaves = np.stack(_pairs(table), axis=1)
    return leaves, np.broadcast_to(np.array([1, -1]), leaves.shape)


def _swaps(table: MultiwayTable) -> tuple[Leaves, Leaves]:
    """Return moves in which two leaves swap their place along one axis."""
    leaves = np.concatenate([*_swapped(table, *_pairs(table)), np.empty((0, 4), dtype=np.int64)])
    if len(leaves) > MOST_MOVES:
        leaves = leaves[np.sort(np.random.default_rng(len(leaves)).permutation(len(leaves))[:MOST_MOVES])]
    return leaves, np.broadcast_to(np.array([1, 1, -1, -1]), leaves.shape)


def _swapped(table: MultiwayTable, leaf: Leaves, other: Leaves) -> Iterator[Leaves]:
    grid = _grid(table)
    if table.axes == 1:  # no axis to swap along: two go up, two go down
        half = len(leaf) // 2
        leaves = np.stack([leaf[:half], leaf[half : 2 * half], other[:half], other[half : 2 * half]], axis=1)
        yield leaves[[len(set(four)) == 4 for four in leaves.tolist()]]
        return
    for axis in range(table.axes):
        first, second = table.coordinates[leaf].copy(), table.coordinates[other].copy()
        differ = first[:, axis] != second[:, axis]
        first[:, axis], second[:, axis] = table.coordinates[other, axis], table.coordinates[leaf, axis]
        leaves = np.stack([grid[tuple(first.T)], grid[tuple(second.T)], leaf, other], axis=1)[differ]
        leaves = leaves[(leaves >= 0).all(axis=1)]
        # On two axes this is a product; on three, swapping one is swapping the other two.
        yield leaves[(table.coordinates[leaves[:, 2]] != table.coordinates[leaves[:, 3]]).sum(axis=1) > 2]


@kernel
def _cells(leaves: Leaves, signs: Leaves, above_start: Ints, above: Ints, cells: int) -> tuple[Ints, Ints, Ints]:
    """Return the cells that each move changes, and by how much."""
    moves, corners = leaves.shape
    most = 0
    for i in range(len(above_start) - 1):
        most = max(most, above_start[i + 1] - above_start[i])
    start = np.zeros(moves + 1, dtype=np.int32)
    cell, step = np.empty(moves * corners * most, dtype=np.int32), np.empty(moves * corners * most, dtype=np.int32)
    change, size = np.zeros(cells, dtype=np.int32), 0
    for m in range(moves):
        for turn in range(2):
            for k in range(corners):
                leaf = leaves[m, k]
                for j in range(above_start[leaf], above_start[leaf + 1]):
                    c = above[j]
                    if turn == 0:
                        change[c] += signs[m, k]
                    elif change[c] != 0:
                        cell[size], step[size] = c, change[c]
                        change[c] = 0
                        size += 1
        start[m + 1] = size
    return start, cell[:size].copy(), step[:size].copy()


LANES = 16
"""Chains of an area: as many as a processor works on at once. What they find is compared."""

FEWEST_LEAVES = 32
"""Tables with fewer leaves that can change are sampled as if they had so many: it takes no time."""

STARTS = 4
"""Tables that are searched for, apart from each other, for the chains to start from."""

SEARCH = 300_000
"""Moves after which the search for one is given up."""

ASTRAY = 1.2
"""R-hat from which on a round tells so little of where the chains will end that it is not counted."""

ALIKE_MOVES = 1.2
"""How much larger errors are than the differences between chains say: all make the same moves, if not the same steps."""

STUCK, APART, AGREED, FROZEN = 0, 1, 2, 3
"""How an area ended: no table was found to start from; the chains do not agree; they do; they do, but some total is exact
and no count ever changed, though some may have several values, so that there may be tables to which no move leads."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long chains run.

    - `sweeps`: Moves of all chains together in the first round, in units of the table's leaves that can change. A third
      as many come before it, uncounted.
    - `rounds`: How often the length may double, where chains do not agree yet.
    - `error`: The largest standard error of the probability of any cell's likeliest count with which chains are said to
      agree.
    - `rhat`: The same for R-hat, which compares chains with each other: 1 if nothing tells them apart.
    """

    sweeps: int = 5000
    rounds: int = 4
    error: float = 0.025
    rhat: float = 1.05


class Sampled(NamedTuple):
    """What chains found.

    - `status`: For every area `STUCK`, `APART`, `AGREED` or `FROZEN`.
    - `chances`: The probability of every possible count, laid out like `CellWeights.weights`.
    - `error`: Areas × cells: the standard error of the probability of the likeliest count.
    - `rhat`: For every area the largest R-hat of any cell.
    - `moves`: For every area the moves that each of its chains made.
    - `best`: Areas × cells: the likeliest table that was seen.
    """

    status: NDArray[np.int64]
    chances: FloatArray
    error: FloatArray
    rhat: FloatArray
    moves: NDArray[np.int64]
    best: Ints


@dataclass(frozen=True, slots=True, eq=False)
class FamilySamples:
    """The result of sampling families.

    - `rows`: The areas: for every family the parent, then its children.
    - `family`: For each of these rows, the number of its family.
    - `chances`: By these rows.
    - `rhat`: By family, the largest R-hat of any cell (1: chains agree).
    - `spread`: By family, the largest standard error of any probability, from the differences between chains.
    - `failed`: By family: chains disagree by more than chance explains, one of them found no state that fits, or none of
      them ever left one of several counts that are possible.
    - `error`: By these rows and by cell, the standard error of the probability of the likeliest count, where it is known.
    """

    rows: Rows
    family: Rows
    chances: Distributions
    rhat: FloatArray
    spread: FloatArray
    failed: BoolArray
    error: FloatArray | None = None

    @property
    def heads(self) -> Rows:
        """The parents, by family."""
        return self.rows[np.diff(self.family, prepend=-1) > 0]


def sample(
    table: MultiwayTable,
    given: CellWeights,
    seeds: NDArray[np.uint64],
    effort: Effort,
    begin: Ints | None = None,
    threads: int | None = None,
    skipped: NDArray[np.bool_] | None = None,
) -> Sampled:
    """Draw tables from the posterior of every area."""
    areas, cells = given.low.shape
    if begin is None:
        leaves = _nearest(given, table.leaves)
        begin = (leaves.astype(np.int64) @ table.belongs().T.astype(np.int64)).astype(np.int32)
    result = Sampled(
        np.zeros(areas, dtype=np.int64),
        np.zeros(given.weights.size),
        np.zeros((areas, cells)),
        np.ones(areas),
        np.zeros(areas, dtype=np.int64),
        begin.copy(),
    )
    tried = _Trial(
        moves_of(table),
        TableLeaves.of(table),
        seeds.astype(np.uint64),
        np.ascontiguousarray(begin),
        LANES,
        effort.sweeps,
        effort.rounds,
        np.array([effort.error, effort.rhat]),
        np.zeros(areas, dtype=np.bool_) if skipped is None else skipped,
    )
    in_threads(lambda first, last: _areas(first, last, tried, given, result), areas, threads, fewest=1)
    return result


def _nearest(given: CellWeights, leaves: NDArray[np.int64]) -> Ints:
    """Return a likely count of every leaf by itself."""
    likely = given.low[:, leaves].copy()
    width = given.high[:, leaves] - likely
    place = given.place[:, leaves]
    best = given.weights[place]
    for k in range(1, int(width.max(initial=0)) + 1):
        inside = k <= width
        now = np.where(inside, given.weights[np.where(inside, place + k, 0)], -1.0)
        likely = np.where(now > best, given.low[:, leaves] + k, likely)
        best = np.maximum(now, best)
    return np.asarray(likely, dtype=np.int32)


class _Trial(NamedTuple):
    """What all areas of a run share. Compilers make better use of a number of lanes that they do not know."""

    moves: Moves
    table: TableLeaves
    seeds: NDArray[np.uint64]
    begin: Ints
    lanes: int
    sweeps: int
    rounds: int
    limits: FloatArray
    skipped: NDArray[np.bool_]


@kernel
def _areas(first: int, last: int, tried: _Trial, given: CellWeights, result: Sampled) -> None:
    """Run the chains of a range of areas."""
    moves, lanes, cells = tried.moves, tried.lanes, given.low.shape[1]
    random, random_lanes = np.zeros(1, dtype=np.uint64), np.zeros(lanes, dtype=np.uint32)
    state, value = np.zeros((cells, lanes), dtype=np.float32), np.zeros((2, cells), dtype=np.int32)
    chance, each = np.zeros((4, lanes), dtype=np.float32), np.zeros(lanes)
    kept, ends = np.zeros(len(moves.start), dtype=np.int32), np.zeros(len(moves.weight) + 1, dtype=np.int32)
    usable = Usable(kept, ends, np.zeros(len(moves.weight)))
    largest = 0
    for a in range(first, last):
        largest = max(largest, given.area[a + 1] - given.area[a])
    seen = np.zeros((lanes, largest), dtype=np.int32)
    logs, copied = np.zeros(largest, dtype=np.float32), np.zeros(largest, dtype=np.float32)
    for a in range(first, last):
        if tried.skipped[a]:
            continue
        low, high, here = given.low[a], given.high[a], copied[: given.area[a + 1] - given.area[a]]
        here[:] = given.weights[given.area[a] : given.area[a + 1]]
        place = given.place[a] - given.area[a]
        centre = place + given.centre[a] - low  # where in the weights a cell at distance 0 is
        random[0] = tried.seeds[a]
        pinned = has_pinned_total(tried.table, low, high, value[0])
        total = keep_moves(moves, len(moves.weight) if pinned else moves.along, low, high, usable)
        chains = Lanes(given.base[a], here, centre, state, random, random_lanes, chance)
        if not _begin(tried, a, pinned, Targets(low, high, here, place), given.centre[a], chains, value):
            continue
        for k in range(len(here)):
            logs[k] = np.log(here[k]) if here[k] > ZERO else -np.inf
        free = 0
        for c in range(cells):
            free += tried.table.is_leaf[c] and high[c] > low[c]
        thin = 2 * max(free, 8)
        length = max(free, FEWEST_LEAVES) * tried.sweeps // lanes + 1
        heaviest, turn, again = -np.inf, 0, True
        chances = result.chances[given.area[a] : given.area[a + 1]]
        while again:
            if turn == 0 or result.rhat[a] > ASTRAY:
                seen[:] = 0
                if total > 0.0:
                    advance(length // 3, moves, usable, chains)
                result.moves[a] += length // 3
            for _ in range(-(-length // thin)):
                if total > 0.0:
                    advance(thin, moves, usable, chains)
                result.moves[a] += thin
                record(state, centre, seen)
                heaviest = _keep_best(chains, logs, heaviest, given.centre[a], result.best[a])
            result.rhat[a], worst = _compare(seen, low, high, place, each, chances, result.error[a])
            agreed = result.rhat[a] <= tried.limits[1] and worst <= tried.limits[0]
            result.status[a] = AGREED if agreed else APART
            again = not agreed and turn < tried.rounds
            turn += 1
            length *= 2 if turn > 1 else 1
        if result.status[a] == AGREED and pinned and _all_still(low, high, place, chances):
            result.status[a] = FROZEN


@kernel
def _begin(tried: _Trial, a: int, pinned: bool, goal: Targets, centre: Ints, chains: Lanes, spare: Ints) -> bool:
    """Search for tables that the chains of an area start from; return whether there are any."""
    table, low, high, random = tried.table, goal.low, goal.high, chains.random
    value, before, begun = spare[0], spare[1], True
    for lane in range(tried.lanes):
        chains.random_lanes[lane] = np.uint32(random_bits(random) >> np.uint64(32)) | np.uint32(1)
        if lane < STARTS and begun:
            value[:] = tried.begin[a]
            if lane > 0 and pinned:  # where moves may not lead everywhere, starts that differ show it
                scatter(table, low, high, value, random)
            begun = find_table(tried.moves, table, low, high, goal, value, random, SEARCH)
            if not begun and lane > 0 and pinned:
                begun = True
                value[:] = before
            before[:] = value
            for c in range(len(low)):
                for other in range(lane, tried.lanes, STARTS):
                    chains.state[c, other] = value[c] - centre[c]
    return begun


@inner
def _keep_best(chains: Lanes, logs: Singles, heaviest: float, centre: Ints, best: Ints) -> float:
    """Note the likeliest table that any chain of an area has come to; return the logarithm of its weight."""
    for lane in range(chains.state.shape[1]):
        now = weight_of(chains.state, lane, chains.centre, logs)
        if now > heaviest + 1e-6:
            heaviest = now
            for c in range(len(best)):
                best[c] = centre[c] + int(chains.state[c, lane])
    return heaviest


@inner
def _all_still(low: Ints, high: Ints, place: NDArray[np.int64], chances: FloatArray) -> bool:
    """Return whether there are counts that may have several values, and none of them ever changed."""
    free = 0
    for c in range(len(low)):
        if high[c] > low[c]:
            free += 1
            still = False
            for k in range(high[c] - low[c] + 1):
                still |= chances[place[c] + k] == 1.0
            if not still:
                return False
    return free > 0


@inner
def _compare(
    seen: Ints, low: Ints, high: Ints, place: NDArray[np.int64], each: FloatArray, chances: FloatArray, error: FloatArray
) -> tuple[float, float]:
    """Put down probabilities and standard errors; return the largest R-hat and the largest error."""
    lanes = len(seen)
    worst_rhat, worst = 1.0, 0.0
    for c in range(len(low)):
        width = high[c] - low[c] + 1
        everything, mode = 0, 0
        for k in range(width):
            times = 0
            for lane in range(lanes):
                times += seen[lane, place[c] + k]
            chances[place[c] + k] = times
            everything += times
            if times > chances[place[c] + mode]:
                mode = k
        for k in range(width):
            chances[place[c] + k] /= everything
        error[c] = 0.0
        if width == 1:
            continue
        draws = everything / lanes
        for lane in range(lanes):
            each[lane] = seen[lane, place[c] + mode] / draws
        apart = np.sqrt(_variance(each) / lanes)
        worst, error[c] = max(worst, apart), ALIKE_MOVES * apart
        within = 0.0
        for lane in range(lanes):
            mean = square = 0.0
            for k in range(width):
                mean += k * seen[lane, place[c] + k]
                square += float(k) * k * seen[lane, place[c] + k]
            each[lane] = mean / draws
            within += (square / draws - each[lane] ** 2) / lanes
        between = _variance(each)
        if between > 0.0:
            worst_rhat = max(worst_rhat, _r_hat(between, within, draws) if within > 0.0 else np.inf)
    return worst_rhat, worst


def r_hat(between: Any, within: Any, draws: Any) -> Any:
    """Return R-hat (Gelman and Rubin): from the variance between the means of chains, and that of the draws of each."""
    return np.sqrt((draws - 1) / draws + between / within)


_r_hat = inner(r_hat)


@inner
def _variance(values: FloatArray) -> float:
    middle = variance = 0.0
    for value in values:
        middle += value / len(values)
    for value in values:
        variance += (value - middle) ** 2 / (len(values) - 1)
    return variance
