"""The tree engine: exact sum-product on any acyclic set of sums, and on trees crossed with a two-way split, in numpy alone.

Messages go up the plan once, from children to parents, and down once. Going up with every weight set to 1 counts the
solutions; going up with the maximum in the place of the sum tells, for every choice that is still open, the weight of the
best way to complete it: a search that always follows the most promising choice walks straight to the best solution, and
from there to the next.

The number of solutions is exact, of any size: doubles hold whole numbers up to 2^53; where counts may grow beyond, each is
kept as several digits of a smaller base, one array per digit.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from unround.engines.answer import Answer, Marginal, support_of
from unround.engines.arrays import (
    Chain,
    Convolve,
    Span,
    along_diagonals,
    chain,
    convolve,
    convolve_max,
    correlate,
    fit,
    flip,
    max_diagonals,
    pair_chain,
    sum_diagonals,
)
from unround.mechanisms.base import FloatArray
from unround.sums.forest import FIRST, PAIR, SECOND, TOTAL, End, Link, Plan


class Goal(NamedTuple):
    """Something still to be decided.

    With a link: the values of its children up to number `j`, which add up to `at`. Without: the state of node `j`, given
    that its layer `layer` has the value `at` (None: no condition).
    """

    link: int
    j: int
    layer: int
    at: Any


class Choice(NamedTuple):
    """One entry of the search: the options of the goal in hand, best first, and which of them is meant here."""

    cost: float
    tie: int
    which: int
    options: list[tuple[float, Any]]
    goal: Goal
    rest: Any
    chosen: Any


def best_solutions(tree: Tree, up: Pass, evidence: tuple[float, int], top: int) -> tuple[Any, ...]:
    """Return the `top` best solutions as (values, probability), the best first."""
    solutions = []
    for values in _in_order(tree, up):
        solutions.append((values, *_probability(tree, values, evidence)))
        if len(solutions) == top:
            break
    return tuple((values, math.ldexp(mantissa, exponent)) for values, mantissa, exponent in _tidy(solutions))


def _tidy(solutions: list[tuple[tuple[int, ...], float, int]]) -> Iterator[tuple[tuple[int, ...], float, int]]:
    """Put solutions of equal probability into the order of their values; they may differ in the last digit."""
    run: list[tuple[tuple[int, ...], float, int]] = []
    for solution in solutions:
        if run and abs(math.log2(solution[1] / run[0][1]) + solution[2] - run[0][2]) > 1e-11:
            yield from sorted(run)
            run = []
        run.append(solution)
    yield from sorted(run)


def _probability(tree: Tree, values: tuple[int, ...], evidence: tuple[float, int]) -> tuple[float, int]:
    """Return a solution's probability as a mantissa and a power of two: with very many cells it is below any double."""
    mantissa, exponent = 1.0, 0
    for value, low, weights in zip(values, tree.lows, tree.weights, strict=True):
        mantissa, shift = math.frexp(mantissa * weights[value - low])
        exponent += shift
    return mantissa / evidence[0], exponent - evidence[1]


def _in_order(tree: Tree, up: Pass) -> Iterator[tuple[int, ...]]:
    rest: Any = None
    for root in reversed(tree.plan.roots):
        rest = (Goal(-1, root, 0, None), rest)
    heap: list[Choice] = []
    known: dict[Goal, list[tuple[float, Any]]] = {}  # solutions that differ in one place share the rest
    ties = 0
    pending: tuple[float, Any, Any] | None = (0.0, rest, None)
    while True:
        # Follow the best option of every goal that is left, noting each on the heap for its other options.
        while pending is not None:
            cost, rest, chosen = pending
            if rest is None:
                yield _values(tree, chosen)
                break
            goal, rest = rest
            options = known.get(goal)
            if options is None:
                options = known[goal] = _options(tree, up, goal)
            if len(options) > 1:
                ties -= 1  # among equals the latest first: finish one solution before starting the next
                second = cost + math.log2(options[0][0] / options[1][0])
                heapq.heappush(heap, Choice(second, ties, 1, options, goal, rest, chosen))
            pending = (cost, *_decided(tree, goal, options[0][1], rest, chosen))
        if not heap:
            return
        entry = heapq.heappop(heap)
        rank, options = entry.which, entry.options
        if rank + 1 < len(options):
            ties -= 1
            later = entry.cost + math.log2(options[rank][0] / options[rank + 1][0])
            heapq.heappush(heap, entry._replace(cost=later, tie=ties, which=rank + 1))
        pending = (entry.cost, *_decided(tree, entry.goal, options[rank][1], entry.rest, entry.chosen))


def _options(tree: Tree, up: Pass, goal: Goal) -> list[tuple[float, Any]]:
    """List what a goal can be decided to: (the best weight that follows, value), best first, then the lowest."""
    if goal.link < 0:
        return _states(tree, up.belief[goal.j], goal)
    if goal.j == 0:
        return [(1.0, goal.at)]
    child = up.arrays[goal.link][goal.j]
    before = up.partial[goal.link][goal.j - 1]
    child_low = tree.child_low(tree.order[goal.link][goal.j])
    before_low = tree.chains[goal.link].lows[goal.j - 1]
    if child.ndim == 1:
        # child value x goes with a partial sum of at - x
        first = max(0, goal.at - before_low - before.size + 1 - child_low)
        last = min(child.size, goal.at - before_low - child_low + 1)
        start = goal.at - child_low - first - before_low
        there = child[first:last] * before[start - (last - first) + 1 : start + 1][::-1]
        return _ranked(there, child_low + first)
    spans = [
        (max(0, s - b - n + 1 - c), min(m, s - b - c + 1))
        for s, b, c, m, n in zip(goal.at, before_low, child_low, child.shape, before.shape, strict=True)
    ]
    (r0, r1), (c0, c1) = spans
    r, c = goal.at[0] - child_low[0] - r0 - before_low[0], goal.at[1] - child_low[1] - c0 - before_low[1]
    there = child[r0:r1, c0:c1] * before[r - (r1 - r0) + 1 : r + 1, c - (c1 - c0) + 1 : c + 1][::-1, ::-1]
    return _ranked(there, (child_low[0] + r0, child_low[1] + c0))


def _states(tree: Tree, belief: FloatArray, goal: Goal) -> list[tuple[float, Any]]:
    cells = tree.plan.nodes[goal.j].cells
    if belief.ndim == 1:
        return _ranked(belief, tree.lows[cells[0]])
    _, first, second = cells
    low = (tree.lows[first], tree.lows[second])
    if goal.at is not None:
        rows, columns = np.indices(belief.shape)
        value = (rows + columns + sum(low), rows + low[0], columns + low[1])[goal.layer]
        belief = np.where(value == goal.at, belief, 0.0)
    return _ranked(belief, low)


def _ranked(weights: FloatArray, low: Any) -> list[tuple[float, Any]]:
    flat = weights.ravel().tolist()
    order = sorted(range(len(flat)), key=flat.__getitem__, reverse=True)  # stable: the lowest of equals first
    if weights.ndim == 1:
        return [(flat[k], low + k) for k in order if flat[k] > 0]
    (row, column), columns = low, weights.shape[1]
    return [(flat[k], (row + k // columns, column + k % columns)) for k in order if flat[k] > 0]


def _decided(tree: Tree, goal: Goal, value: Any, rest: Any, chosen: Any) -> tuple[Any, Any]:
    """Return the goals that are left, and what has been chosen, once a goal is decided."""
    if goal.link >= 0:
        end = tree.order[goal.link][goal.j]
        if goal.j:
            before = goal.at - value if end.layer != PAIR else (goal.at[0] - value[0], goal.at[1] - value[1])
            rest = (Goal(goal.link, goal.j - 1, 0, before), rest)
        if end.sign < 0:
            value = -value if end.layer != PAIR else (-value[0], -value[1])
        if tree.plan.nodes[end.node].is_pair and end.layer != PAIR:
            return (Goal(-1, end.node, end.layer, value), rest), chosen
        node = end.node
    else:
        node = goal.j
    for link in reversed(tree.plan.below[node]):
        parent = tree.plan.links[link].parent
        rest = (Goal(link, len(tree.order[link]) - 1, 0, _seen(value, parent)), rest)
    return rest, ((node, value), chosen)


def _seen(value: Any, end: End) -> Any:
    """Return the value that a link sees of a node's state."""
    if end.layer == PAIR or not isinstance(value, tuple):
        return value
    return (value[0] + value[1], *value)[end.layer]


def _values(tree: Tree, chosen: Any) -> tuple[int, ...]:
    values = [0] * len(tree.lows)
    while chosen is not None:
        (n, value), chosen = chosen
        node = tree.plan.nodes[n]
        if node.is_pair:
            total, first, second = node.cells
            values[total], values[first], values[second] = value[0] + value[1], value[0], value[1]
        else:
            values[node.cells[0]] = value
    return tuple(values)


MOST_WORK = 1_000_000_000
"""Multiplications in one pass above which the tree engine declines: seconds."""

CERTAIN = np.ones(1)


class TooWide(Exception):  # noqa: N818 - a reason to choose another engine, not a fault
    """The windows are too wide for exact messages."""


MOST_COUNTING = 5_000_000_000
"""Multiplications above which solutions are not counted."""


class Impossible(Exception):  # noqa: N818 - a finding about the data, not a fault
    """No combination of the cells' values satisfies the sums."""


@dataclass(frozen=True, slots=True)
class Algebra:
    """How messages combine: by sums of products, by the largest of them, or by whether there are any."""

    convolve: Convolve
    correlate: Convolve
    reduce: Callable[..., FloatArray]
    diagonals: Callable[[FloatArray], FloatArray]


def _any_convolve(a: FloatArray, b: FloatArray, span: Span) -> FloatArray:
    return (convolve(a, b, span) > 0.5).astype(np.float64)


def _any_correlate(a: FloatArray, b: FloatArray, span: Span) -> FloatArray:
    return (correlate(a, b, span) > 0.5).astype(np.float64)


SUM = Algebra(convolve, correlate, np.add.reduce, sum_diagonals)
MAX = Algebra(convolve_max, correlate, np.maximum.reduce, max_diagonals)
ANY = Algebra(_any_convolve, _any_correlate, np.maximum.reduce, max_diagonals)
"""What is possible at all, as zeros and ones: nothing can underflow."""


@dataclass(slots=True)
class Pass:
    """What going up once left behind: per link the children's arrays and their partial sums, and every node's belief."""

    arrays: list[list[FloatArray]]
    partial: list[list[FloatArray]]
    messages: list[FloatArray]
    belief: list[FloatArray]
    exponent: int


class Tree:
    """A plan together with the numbers of one system.

    - `plan`: How messages travel.
    - `lows`: Every cell's least possible value.
    - `weights`: The weights of that value and those that follow it.

    Raises
    ------
    TooWide
        If exact messages would take too long.
    """

    def __init__(self, plan: Plan, lows: list[int], weights: list[FloatArray]) -> None:
        self.plan = plan
        self.lows = lows
        self.highs = [low + entry.size - 1 for low, entry in zip(lows, weights, strict=True)]
        self.weights = weights
        self.order: list[tuple[End, ...]] = []
        self.evidence = (0.0, 0)  # the weight of all solutions together, once they are solved: mantissa × 2^exponent
        self.chains: list[Chain] = [self._chain(link) for link in plan.links]
        if sum([entry.work for entry in self.chains]) > MOST_WORK:
            raise TooWide
        # Every number on the way is a sum of products of weights, one a cell: not below the product of the smallest, and,
        # if none exceeds 1, not above the product of the windows' sizes. Mostly nothing needs to be scaled.
        everything = np.concatenate(weights)
        smallest, largest = np.minimum.reduce(everything), np.maximum.reduce(everything)
        self.sizes = math.prod([entry.size for entry in weights])
        self.tame = bool(smallest > 0 and largest <= 1) and (
            math.log2(smallest) * len(weights) > -900 and self.sizes.bit_length() < 900
        )

    def solve(self, top: int, count: bool = True) -> Answer:
        """Return the number of solutions (None unless wanted), every cell's distribution, and the `top` best solutions."""
        local = [self._local(n) for n in range(len(self.plan.nodes))]
        up = self.upward(local, SUM)
        self.evidence = self._evidence(up)
        if self.evidence[0] == 0:
            raise Impossible if not self._is_possible(local) else TooWide
        marginals = self._marginals(local, up)
        best = best_solutions(self, self.upward(local, MAX), self.evidence, top) if top else ()
        return Answer(self._count(local) if count else None, marginals, best)

    def _count(self, local: list[FloatArray]) -> int | None:
        """Return how many solutions there are; None where counting them would take too long."""
        work = sum([spans.work for spans in self.chains])
        # Every 20 bits or so of the count are one more pass.
        return None if work * (1 + self.sizes.bit_length() // 20) > MOST_COUNTING else count_solutions(self, local)

    def _evidence(self, up: Pass) -> tuple[float, int]:
        """Return the weight of all solutions together, as a mantissa and a power of two."""
        mantissa, exponent = 1.0, up.exponent
        for root in self.plan.roots:
            mantissa, shift = math.frexp(mantissa * np.add.reduce(up.belief[root], axis=None))
            exponent += shift
        return mantissa, exponent

    def _is_possible(self, local: list[FloatArray]) -> bool:
        """Return whether there is a solution at all, however small its weight."""
        belief = self.upward([np.sign(array) for array in local], ANY).belief
        return all(belief[root].any() for root in self.plan.roots)

    def ends(self, answer: Answer) -> list[tuple[int, int]]:
        """Return the least and the greatest value that each cell has in any solution, holes and all.

        Where nothing can underflow, a probability is zero only for what is impossible.
        """
        if not self.tame or answer.marginals is None:
            return self._support()
        return [support_of(marginal) for marginal in answer.marginals if marginal is not None]

    def _support(self) -> list[tuple[int, int]]:
        """Work the same out in zeros and ones."""
        local = [np.sign(self._local(n)) for n in range(len(self.plan.nodes))]
        beliefs = self._beliefs(local, self.upward(local, ANY), ANY)
        ends = []
        for cell, low in enumerate(self.lows):
            n, layer = self.plan.home[cell]
            ends.append(support_of((low, self.layer(beliefs[n], End(n, layer, 1), ANY))))
        return ends

    # -- one pass up -------------------------------------------------------------------------------------------------

    def upward(self, local: list[FloatArray], algebra: Algebra) -> Pass:
        """Send messages from the leaves to the roots."""
        belief = list(local)
        links = self.plan.links
        result = Pass([[]] * len(links), [[]] * len(links), [local[0]] * len(links), belief, 0)
        if not self.tame:
            belief[:] = [_scaled(array, result) for array in local]
        combine, tame = algebra.convolve, self.tame
        for i in range(len(links) - 1, -1, -1):
            spans = self.chains[i]
            arrays = [belief[e.node] if e.plain else self.child(belief[e.node], e, algebra) for e in self.order[i]]
            current = fit(arrays[0], spans.first)
            partial = [current]
            for j in range(1, len(arrays)):
                current = combine(current, arrays[j], spans.forward[j])
                if not tame:
                    current = _scaled(current, result)
                partial.append(current)
            result.arrays[i], result.partial[i], result.messages[i] = arrays, partial, current
            parent = links[i].parent
            known = belief[parent.node] * (current if parent.plain else self.onto(current, parent))
            belief[parent.node] = known if tame else _scaled(known, result)
        return result

    # -- one pass down -----------------------------------------------------------------------------------------------

    def _marginals(self, local: list[FloatArray], up: Pass) -> tuple[Marginal, ...]:
        """Return every cell's distribution."""
        beliefs = self._beliefs(local, up, SUM)
        return tuple([self._marginal(cell, beliefs) for cell in range(len(self.lows))])

    def _beliefs(self, local: list[FloatArray], up: Pass, algebra: Algebra) -> list[FloatArray]:
        """Send messages from the roots to the leaves, and return what is then known of every node."""
        plan, tame, combine = self.plan, self.tame, algebra.correlate
        above: list[FloatArray | None] = [None] * len(plan.nodes)
        for i, link in enumerate(plan.links):
            known = self._without(i, link.parent, local, up, above, algebra)
            arrays, partial, spans, order = up.arrays[i], up.partial[i], self.chains[i], self.order[i]
            for j in range(len(arrays) - 1, -1, -1):
                if not tame:
                    known = _scaled(known)
                end = order[j]
                if j:
                    message = combine(known, partial[j - 1], spans.child[j])
                    known = combine(known, arrays[j], spans.backward[j])
                else:
                    message = fit(known, spans.child[0])
                if not tame:
                    message = _scaled(message)
                above[end.node] = message if end.plain else self.onto(flip(message) if end.sign < 0 else message, end)
        return [b if a is None else b * a for b, a in zip(up.belief, above, strict=True)]

    def _without(
        self, i: int, parent: End, local: list[FloatArray], up: Pass, above: list[FloatArray | None], algebra: Algebra
    ) -> FloatArray:
        """Return what is known of a link's parent from everywhere but the link itself."""
        n = parent.node
        known = local[n] if self.tame else _scaled(local[n])
        from_above = above[n]
        if from_above is not None:
            known = known * from_above
        for other in self.plan.below[n]:
            if other != i:
                known = known * self.onto(up.messages[other], self.plan.links[other].parent)
                known = known if self.tame else _scaled(known)
        return known if parent.plain else self.layer(known, parent, algebra)

    def _marginal(self, cell: int, beliefs: list[FloatArray]) -> Marginal:
        if self.weights[cell].size == 1:
            return self.lows[cell], CERTAIN
        n, layer = self.plan.home[cell]
        belief = beliefs[n]
        if belief.ndim == 2:
            belief = self.layer(belief, End(n, layer, 1), SUM)
        return self.lows[cell], belief / np.add.reduce(belief)

    # -- between a node's state and one of its layers ----------------------------------------------------------------

    def _local(self, n: int) -> FloatArray:
        """Return the weight of every state of a node, from its own cells alone."""
        node = self.plan.nodes[n]
        weights = self.weights
        if len(node.cells) == 1:
            of_cell = weights[node.cells[0]]
            return np.ones(of_cell.size) if node.copy else of_cell
        total, first, second = node.cells
        pair = np.multiply.outer(weights[first], weights[second])
        if node.copy:
            return np.ones(pair.shape)
        return pair * self.onto(weights[total], End(n, TOTAL, 1))

    def layer(self, state: FloatArray, end: End, algebra: Algebra) -> FloatArray:
        """Reduce an array over a node's states to one over the values of one of its layers."""
        if end.layer == PAIR or state.ndim == 1:
            return state
        if end.layer == FIRST:
            return algebra.reduce(state, axis=1)
        if end.layer == SECOND:
            return algebra.reduce(state, axis=0)
        total, first, second = self.plan.nodes[end.node].cells
        start = self.lows[total] - self.lows[first] - self.lows[second]
        return fit(algebra.diagonals(state), (start, self.weights[total].size))

    def onto(self, message: FloatArray, end: End) -> FloatArray:
        """Spread an array over one layer's values to the node's states."""
        if end.layer == PAIR or len(self.plan.nodes[end.node].cells) == 1:
            return message
        if end.layer == FIRST:
            return message[:, np.newaxis]
        if end.layer == SECOND:
            return message[np.newaxis, :]
        total, first, second = self.plan.nodes[end.node].cells
        rows, columns = self.weights[first].size, self.weights[second].size
        start = self.lows[first] + self.lows[second] - self.lows[total]
        return along_diagonals(fit(message, (start, rows + columns - 1)), rows, columns)

    def child(self, belief: FloatArray, end: End, algebra: Algebra) -> FloatArray:
        """Return what a link sees of one of its children, turned round where it is subtracted."""
        array = self.layer(belief, end, algebra) if belief.ndim == 2 else belief
        return array if end.sign > 0 else flip(array)

    def child_low(self, end: End) -> Any:
        """Return the least value in the array that `child` gives."""
        if end.layer == PAIR:
            corner, opposite = self._box(end.node)
            return corner if end.sign > 0 else (-opposite[0], -opposite[1])
        return self.lows[end.cell] if end.sign > 0 else -self.highs[end.cell]

    # -- geometry ----------------------------------------------------------------------------------------------------

    def _chain(self, link: Link) -> Chain:
        """Lay out a link, its children from narrow to wide: partial sums then stay narrow for longer."""
        if link.is_pair:
            return self._pair_chain(link)
        lows, highs = self.lows, self.highs
        ends = sorted(link.children, key=lambda end: highs[end.cell] - lows[end.cell])
        self.order.append(tuple(ends))
        cell = link.parent.cell
        return chain(
            [lows[end.cell] if end.sign > 0 else -highs[end.cell] for end in ends],
            [highs[end.cell] if end.sign > 0 else -lows[end.cell] for end in ends],
            lows[cell],
            highs[cell],
        )

    def _pair_chain(self, link: Link) -> Chain:
        boxes = []
        for end in link.children:
            low, high = self._box(end.node)
            if end.sign < 0:
                low, high = (-high[0], -high[1]), (-low[0], -low[1])
            boxes.append(((high[0] - low[0] + 1) * (high[1] - low[1] + 1), end, low, high))
        boxes.sort(key=itemgetter(0))
        self.order.append(tuple([box[1] for box in boxes]))
        return pair_chain([box[2] for box in boxes], [box[3] for box in boxes], *self._box(link.parent.node))

    def _box(self, n: int) -> tuple[tuple[int, int], tuple[int, int]]:
        _, first, second = self.plan.nodes[n].cells
        return (self.lows[first], self.lows[second]), (self.highs[first], self.highs[second])


def _scaled(array: FloatArray, result: Pass | None = None) -> FloatArray:
    """Bring the largest number to between 1 and 2, by a power of two so that no digit is lost; the pass keeps account."""
    largest = array.max()
    exponent = math.frexp(largest)[1] - 1
    if exponent == 0 or largest == 0:
        return array
    if result is not None:
        result.exponent += exponent
    return np.asarray(np.ldexp(array, -exponent))


Digits = list[FloatArray]
"""A number at every place of an array: digit k counts (2^bits)^k."""


def count_solutions(tree: Tree, local: list[FloatArray]) -> int:
    """Return the exact number of assignments that fit."""
    possible = [np.sign(array) for array in local]
    if math.prod([array.size for array in possible]) < 2**52:  # no intermediate count can exceed the product of all
        up = tree.upward(possible, SUM)
        number = math.prod(float(np.add.reduce(up.belief[root], axis=None)) for root in tree.plan.roots)
        return int(math.ldexp(number, up.exponent))  # exact: scaling is by powers of two
    return _count_in_digits(tree, possible)


def _count_in_digits(tree: Tree, possible: list[FloatArray]) -> int:
    # A correlation adds at most as many products of two digits as the larger array has places.
    lengths = [length for spans_of_link in tree.chains for _, length in (spans_of_link.first, *spans_of_link.forward)]
    widest = max([math.prod(np.atleast_1d(length)) for length in lengths] + [array.size for array in possible])
    # A column of digits adds up at most as many of these as the number has digits, which is below 2^10 for any number of
    # up to 2^14 bits; larger ones are not counted.
    bits = (52 - math.ceil(math.log2(widest)) - 10) // 2
    belief: list[Digits] = [[array] for array in possible]
    for i in range(len(tree.plan.links) - 1, -1, -1):
        spans = tree.chains[i]
        children = [_carried([tree.child(digit, end, SUM) for digit in belief[end.node]], bits) for end in tree.order[i]]
        current = [fit(digit, spans.first) for digit in children[0]]
        for j in range(1, len(children)):
            span = spans.forward[j]
            current = _combined(current, children[j], bits, lambda a, b, span=span: convolve(a, b, span))
        parent = tree.plan.links[i].parent
        message = [tree.onto(digit, parent) for digit in current]
        belief[parent.node] = _combined(belief[parent.node], message, bits, np.multiply)
    return math.prod(_total(belief[root], bits) for root in tree.plan.roots)


def _combined(a: Digits, b: Digits, bits: int, operation) -> Digits:  # type: ignore[no-untyped-def] # any bilinear one
    """Multiply digit by digit, as on paper, with the operation in the place of the product."""
    columns: list[FloatArray | None] = [None] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            product = operation(x, y)
            column = columns[i + j]
            columns[i + j] = product if column is None else column + product
    return _carried([column for column in columns if column is not None], bits)


def _carried(columns: Digits, bits: int) -> Digits:
    """Bring every digit below the base."""
    base = 2.0**bits
    digits: Digits = []
    carry: FloatArray | None = None
    for column in columns:
        column = column if carry is None else column + carry
        if column.max() < base:
            digits.append(column)
            carry = None
        else:
            carry = np.floor(column / base)
            digits.append(column - carry * base)
    while carry is not None:
        upper = np.floor(carry / base)
        digits.append(carry - upper * base)
        carry = upper if upper.any() else None
    return digits


def _total(digits: Digits, bits: int) -> int:
    return sum(int(np.add.reduce(digit, axis=None)) << (bits * k) for k, digit in enumerate(digits))
