"""The chain: a heat bath over whole tables, compiled.

A move adds t times a pattern of ones and minus ones to the leaves, and to all totals above them. Of three neighbouring
values of t, 0 among them, one is drawn by what each weighs; which three is drawn first, or chains would not be reversible.

The chains of an area are lanes: they make the same moves, each with random numbers of its own, so that a processor works on
many of them at once. A state is the distance of every count from a centre. For randomly rounded totals that is what was
published, and the weight is the base less the distance: plain arithmetic. All other cells look their weights up.

What is known of each cell, as the chains take it: the likelihood times the prior of every possible count.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.jit import RandomState, inner, random_bits, uniform
from unround.mechanisms.base import FloatArray
from unround.sums.multiway import Ints, MultiwayTable

PAD = 4
"""Zeros before and behind the weights of every cell: no move leads beyond them."""

Singles = NDArray[np.float32]

COLD = 0.1
"""The temperature of the search for a first table, in units of one person too many or too few."""

FAR = 3
"""How far the leaves of different starts are apart at most."""

ZERO, ONE, UNIT = np.float32(0), np.float32(1), np.float32(2.0**-24)


class Moves(NamedTuple):
    """All moves, kind by kind.

    - `start`: Where the cells of each move begin, and where the last end.
    - `cell`, `step`: The cells that a move changes (places in the table), and by how much for t = 1.
    - `kind_start`: The first move of each kind, and how many there are.
    - `weight`: How often each kind is chosen.
    - `along`: How many kinds, the first ones, are products along axes.
    """

    start: Ints
    cell: Ints
    step: Ints
    kind_start: Ints
    weight: FloatArray
    along: int


class TableLeaves(NamedTuple):
    """The leaves of a table, and what they add up to, as in `MultiwayTable`; and for every cell whether it is a leaf."""

    leaves: NDArray[np.int64]
    above_start: Ints
    above: Ints
    is_leaf: NDArray[np.bool_]

    @classmethod
    def of(cls, table: MultiwayTable) -> TableLeaves:
        """Return those of a table."""
        is_leaf = np.zeros(table.cells.size, dtype=np.bool_)
        is_leaf[table.leaves] = True
        return cls(table.leaves, table.above_start, table.above, is_leaf)


class Usable(NamedTuple):
    """The moves that an area can make: `kept[ends[k] : ends[k + 1]]` are those of kind k; `share` adds up the weights."""

    kept: Ints
    ends: Ints
    share: FloatArray


class Targets(NamedTuple):
    """Where every cell shall be: bounds, and by the place of the least count whether a count between them is possible."""

    low: Ints
    high: Ints
    weights: Singles
    place: NDArray[np.int64]


class Lanes(NamedTuple):
    """The chains of an area: the distances of every cell from its centre, random numbers, and scratch space.

    Of a cell with a base, weights are the base less the distance; of others they are looked up, from the centre on.
    """

    base: Singles
    weights: Singles
    centre: NDArray[np.int64]
    state: Singles
    random: RandomState
    random_lanes: NDArray[np.uint32]
    chance: Singles


@inner
def keep_moves(moves: Moves, kinds: int, low: Ints, high: Ints, usable: Usable) -> float:
    """List the moves of the first kinds that change no cell with one possible value; return the weight of these kinds."""
    start, cell, step, kind_start, weight, _ = moves
    kept, ends, share = usable
    size, total = 0, 0.0
    for kind in range(len(weight)):
        ends[kind] = size
        for m in range(kind_start[kind], kind_start[kind + 1] if kind < kinds else kind_start[kind]):
            free = True
            for j in range(start[m], start[m + 1]):
                if high[cell[j]] - low[cell[j]] < abs(step[j]):
                    free = False
                    break
            if free:
                kept[size] = m
                size += 1
        if size > ends[kind]:
            total += weight[kind]
        share[kind] = total
    ends[len(weight)] = size
    return total


@inner
def has_pinned_total(table: TableLeaves, low: Ints, high: Ints, free: Ints) -> bool:
    """Return whether some, but not all, of the leaves that can change have a total that cannot; `free` is scratch space."""
    leaves, above_start, above, _ = table
    number = 0
    free[:] = 0
    for i in range(len(leaves)):
        if high[leaves[i]] > low[leaves[i]]:
            number += 1
            for j in range(above_start[i], above_start[i + 1]):
                free[above[j]] += 1
    pinned = False
    for c in range(len(free)):
        pinned |= high[c] == low[c] and 1 < free[c] < number
    return pinned


@inner
def choose(random: RandomState, usable: Usable) -> int:
    """Draw a move: a kind by its weight, then any of that kind."""
    kept, ends, share = usable
    left, kind = uniform(random) * share[len(share) - 1], 0
    while left >= share[kind]:
        kind += 1
    number = ends[kind + 1] - ends[kind]
    return int(kept[ends[kind] + int(uniform(random) * number)])


@inner
def advance(number_of_moves: int, moves: Moves, usable: Usable, lanes: Lanes) -> None:
    """Make so many moves in all lanes."""
    start, cell, step, _, _, _ = moves
    base, weights, centre, state, random, random_lanes, chance = lanes
    number = state.shape[1]
    low, middle, high, by = chance[0], chance[1], chance[2], chance[3]
    for _ in range(number_of_moves):
        m = choose(random, usable)
        first = -np.int64(random_bits(random) % np.uint64(3))
        for lane in range(number):
            low[lane] = middle[lane] = high[lane] = ONE
        for j in range(start[m], start[m + 1]):
            c = cell[j]
            here = state[c]
            s, b = np.float32(step[j]), base[c]
            begin = np.float32(first) * s
            if b > ZERO:
                scale = ONE / b
                for lane in range(number):
                    d = here[lane] + begin
                    low[lane] *= max((b - abs(d)) * scale, ZERO)
                    d += s
                    middle[lane] *= max((b - abs(d)) * scale, ZERO)
                    d += s
                    high[lane] *= max((b - abs(d)) * scale, ZERO)
            else:
                at, by_one = centre[c] + first * step[j], step[j]
                for lane in range(number):
                    k = at + int(here[lane])
                    low[lane] *= weights[k]
                    middle[lane] *= weights[k + by_one]
                    high[lane] *= weights[k + by_one + by_one]
        for lane in range(number):
            r = random_lanes[lane]
            r = np.uint32(r ^ np.uint32(r << np.uint32(13)))  # compiled code would go on with 64 bits
            r = np.uint32(r ^ (r >> np.uint32(17)))
            r = np.uint32(r ^ np.uint32(r << np.uint32(5)))
            random_lanes[lane] = r
            two = low[lane] + middle[lane]
            total = two + high[lane]
            left = np.float32(np.int32(np.uint32(r * np.uint32(0x9E3779BB)) >> np.uint32(8))) * UNIT * total
            t = np.float32(first) + (ONE if left >= low[lane] else ZERO) + (ONE if left >= two else ZERO)
            by[lane] = t if total > ZERO else ZERO  # a product too small for a float
        for j in range(start[m], start[m + 1]):
            here, s = state[cell[j]], np.float32(step[j])
            for lane in range(number):
                here[lane] += s * by[lane]


@inner
def record(state: Singles, centre: NDArray[np.int64], seen: NDArray[np.int32]) -> None:
    """Count the present value of every cell, lane by lane."""
    for c in range(len(state)):
        at = centre[c]
        for lane in range(state.shape[1]):
            seen[lane, at + int(state[c, lane])] += 1


@inner
def weight_of(state: Singles, lane: int, centre: NDArray[np.int64], logs: Singles) -> float:
    """Return the logarithm of what a table weighs."""
    log = 0.0
    for c in range(len(state)):
        log += logs[centre[c] + int(state[c, lane])]
    return log


@inner
def find_table(
    moves: Moves, table: TableLeaves, low: Ints, high: Ints, goal: Targets, value: Ints, random: RandomState, tries: int
) -> bool:
    """Search for a table that fits, by annealing: leaves stay within bounds, and all cells are led to where they shall be.

    Whether every cell has a possible count now.
    """
    start, cell, step, kind_start, weight, _ = moves
    wrong, total = 0, 0.0
    for c in range(len(value)):
        wrong += misfit(c, value[c], goal)
    for kind in range(len(weight)):
        total += weight[kind]
    for _ in range(tries):
        if wrong == 0:
            return True
        left, kind = uniform(random) * total, 0
        while left >= weight[kind]:
            left -= weight[kind]
            kind += 1
        m = kind_start[kind] + int(uniform(random) * (kind_start[kind + 1] - kind_start[kind]))
        t = 1 if random_bits(random) >> np.uint64(63) else -1
        change, inside = 0, True
        for j in range(start[m], start[m + 1]):
            c = cell[j]
            new = value[c] + t * step[j]
            if table.is_leaf[c] and (new < low[c] or new > high[c]):
                inside = False
                break
            change += misfit(c, new, goal) - misfit(c, value[c], goal)
        if inside and (change <= 0 or uniform(random) < np.exp(-change / COLD)):
            wrong += change
            for j in range(start[m], start[m + 1]):
                value[cell[j]] += t * step[j]
    return wrong == 0


@inner
def scatter(table: TableLeaves, low: Ints, high: Ints, value: Ints, random: RandomState) -> None:
    """Move every leaf by up to `FAR`, within its bounds, and all totals with it: somewhere else to start a search from."""
    leaves, above_start, above, _ = table
    for i in range(len(leaves)):
        leaf = leaves[i]
        old = value[leaf]
        new = old + int(uniform(random) * (2 * FAR + 1)) - FAR
        change = max(low[leaf], min(high[leaf], new)) - old
        for j in range(above_start[i], above_start[i + 1]):
            value[above[j]] += change


@inner
def misfit(c: int, value: int, goal: Targets) -> int:
    """Return by how much a count is out of bounds; 1 if it is within them but not possible."""
    if value < goal.low[c]:
        return int(goal.low[c] - value)
    if value > goal.high[c]:
        return int(value - goal.high[c])
    return 0 if goal.weights[goal.place[c] + value - goal.low[c]] > 0.0 else 1


class CellWeights(NamedTuple):
    """The weights of all possible counts of some areas.

    - `low`, `high`: Areas × cells: the bounds.
    - `place`: Areas × cells: where in `weights` the least count is; the others follow it.
    - `base`, `centre`: Areas × cells: for cells that were rounded randomly, and have no prior and no bound of their own,
      the base and what was published. Elsewhere the base is 0.
    - `weights`: Area after area, cell after cell, with `PAD` zeros before and behind each.
    - `area`: Where each area begins in `weights`, and where the last ends.
    """

    low: Ints
    high: Ints
    place: NDArray[np.int64]
    base: Singles
    centre: Ints
    weights: FloatArray
    area: NDArray[np.int64]

    @classmethod
    def empty(cls, low: Ints, high: Ints) -> CellWeights:
        """Return weights of zero for all counts within the bounds, to be filled in."""
        width = high.astype(np.int64) - low + 1 + 2 * PAD
        end = np.cumsum(width).reshape(width.shape)
        area = np.concatenate([[0], end[:, -1]])
        weights = np.zeros(int(end[-1, -1]))
        return cls(low, high, end - width + PAD, np.zeros(low.shape, dtype=np.float32), low.copy(), weights, area)

    def one(self, number: int) -> CellWeights:
        """Return the weights of one area alone."""
        begin, end = self.area[number : number + 2].tolist()
        row = slice(number, number + 1)
        return CellWeights(
            self.low[row],
            self.high[row],
            self.place[row] - begin,
            self.base[row],
            self.centre[row],
            self.weights[begin:end],
            self.area[number : number + 2] - begin,
        )
