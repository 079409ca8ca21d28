"""The reference: every solution, one by one, weighed in exact fractions.

It is slow and simple on purpose, and shares no code with the engines that are tested against it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from unround.engines.answer import Answer, Marginal, Prior
from unround.errors import InputError
from unround.figures import Inequality
from unround.system import System

LIMIT = 1_000_000
"""Solutions above which `brute` gives up."""

Values = tuple[int, ...]
Range = tuple[int, int | None]
Weigh = Callable[[int, int], Fraction]


@dataclass(frozen=True)
class Brute:
    """All solutions of a system, with exact weights.

    - `solutions`: One value a cell, in the system's order; lexicographic. What the prior rules out is not among them.
    - `weights`: What each solution weighs: the product of its chances of being published so, and of its prior weights.

    Examples
    --------
    >>> from unround.equations import parse
    >>> found = brute(parse("87! = 35 + 45"))
    >>> found.solutions
    [(87, 38, 49), (87, 39, 48)]
    >>> found.marginal(1)
    {38: Fraction(1, 2), 39: Fraction(1, 2)}
    """

    solutions: list[Values]
    weights: list[Fraction]

    @property
    def count(self) -> int:
        """How many solutions there are."""
        return len(self.solutions)

    @cached_property
    def mass(self) -> Fraction:
        """What all solutions weigh together."""
        return _total(self.weights)

    def marginal(self, i: int) -> dict[int, Fraction]:
        """Return the probability of every value that cell `i` has in some solution, in ascending order."""
        weights: dict[int, list[Fraction]] = {}
        for values, weight in zip(self.solutions, self.weights, strict=True):
            weights.setdefault(values[i], []).append(weight)
        return {value: _total(weights[value]) / self.mass for value in sorted(weights)}

    def low(self, i: int) -> int:
        """Return the smallest value that cell `i` has in any solution."""
        return min(values[i] for values in self.solutions)

    def high(self, i: int) -> int:
        """Return the largest value that cell `i` has in any solution."""
        return max(values[i] for values in self.solutions)

    def top(self, k: int) -> list[tuple[Values, Fraction]]:
        """Return the k likeliest solutions with their probabilities; equals in lexicographic order."""
        best = heapq.nsmallest(k, range(self.count), key=lambda n: (-self.weights[n], n))
        return [(self.solutions[n], self.weights[n] / self.mass) for n in best]


def brute(system: System, prior: Prior | None = None, limit: int = LIMIT) -> Brute:
    """Find every solution of a system by trying: all whole numbers from 0 that fit windows, sums and figures.

    Raises `InputError` if there are more solutions than `limit`, if nothing bounds some cell, or if the prior cannot
    be used.

    Notes
    -----
    Time grows with the number of partial assignments that look possible: exponential in the cells.
    """
    weigh = _weigher(system, prior or {})
    ranges = _ranges(system, prior or {})
    search = _Search(system, weigh, ranges)
    solutions = []
    for values in search.solutions():
        solutions.append(values)
        if len(solutions) > limit:
            raise InputError(f"the system has more than {limit:,} solutions, too many to list one by one.")
    solutions.sort()
    return Brute(solutions, [_product([weigh(i, x) for i, x in enumerate(values)]) for values in solutions])


def answer(system: System, prior: Prior | None, top: int) -> Answer | None:
    """Return what `brute` finds in the form that every engine gives; None where nothing fits."""
    listed = brute(system, prior)
    if not listed.count:
        return None
    marginals = tuple(_as_floats(listed.marginal(i)) for i in range(len(system.cells)))
    best = tuple((values, float(probability)) for values, probability in listed.top(top))
    return Answer(listed.count, marginals, best)


def _as_floats(marginal: dict[int, Fraction]) -> Marginal:
    low, high = min(marginal), max(marginal)
    probabilities = np.zeros(high - low + 1)
    for value, probability in marginal.items():
        probabilities[value - low] = float(probability)
    return low, probabilities


def _product(weights: Sequence[Fraction]) -> Fraction:
    """Multiply fractions, reducing once at the end."""
    return Fraction(math.prod(w.numerator for w in weights), math.prod(w.denominator for w in weights))


def _total(weights: Sequence[Fraction]) -> Fraction:
    """Add fractions over their common denominator: one reduction instead of one a term."""
    denominator = math.lcm(*{w.denominator for w in weights})
    return Fraction(sum(w.numerator * (denominator // w.denominator) for w in weights), denominator)


def _weigher(system: System, prior: Prior) -> Weigh:
    """Return the function that weighs cell `i` having value `x`; 0 says that it cannot."""
    for name, weights in prior.items():
        if name not in system.index:
            raise InputError(f"the prior names {name!r}, but there is no such cell.")
        bad = next((weight for weight in weights.values() if not 0 <= weight < math.inf), None)
        if bad is not None:
            raise InputError(f"the prior of {name!r} has the weight {bad}; weights must be finite and not negative.")
    known: list[dict[int, Fraction]] = [{} for _ in system.cells]

    def weigh(i: int, x: int) -> Fraction:
        if x not in known[i]:
            cell = system.cells[i]
            weight = Fraction(0)
            if x in system.windows[i]:  # the window too: it cuts tails that still have a chance
                weight = cell.mechanism.chance(cell.published, x)
                if cell.name in prior:
                    weight *= Fraction(prior[cell.name].get(x, 0))
            known[i][x] = weight
        return known[i][x]

    return weigh


def _ranges(system: System, prior: Mapping[str, Mapping[int, float]]) -> list[Range]:
    """Return a first range for every cell, from its window and its prior."""
    ranges: list[Range] = []
    for cell, window in zip(system.cells, system.windows, strict=True):
        low, high = window.low, window.high
        if cell.name in prior:
            known = [x for x, weight in prior[cell.name].items() if weight > 0]
            low = max(low, min(known, default=low))
            most = max(known, default=-1)  # a prior without any weight leaves nothing
            high = most if high is None else min(high, most)
        ranges.append((low, high))
    return ranges


class _Search:
    """Assigns cells one after the other, and goes back as soon as a sum or a figure can no longer hold."""

    def __init__(self, system: System, weigh: Weigh, ranges: list[Range]) -> None:
        self.weigh = weigh
        self.equations = system.equations
        said = [inequality for stated in system.figures for inequality in stated.figure.inequalities(stated.value)]
        self.inequalities = [_Inequality(inequality, system) for inequality in said]
        self.lows, self.highs = self._bounds(system, ranges)
        self.order = self._order(len(system.cells))

    def _bounds(self, system: System, ranges: list[Range]) -> tuple[list[int], list[int]]:
        """Narrow the ranges by what the sums leave, and check that every one is finite."""
        lows = [low for low, _ in ranges]
        highs: list[float] = [math.inf if high is None else high for _, high in ranges]
        # Whether something bounds a cell is known after as many rounds as there are cells.
        for _ in range(len(ranges) + 1):
            before = (lows.copy(), highs.copy())
            for total, parts in self.equations:
                lows[total] = max(lows[total], sum(lows[p] for p in parts))
                highs[total] = min(highs[total], sum(highs[p] for p in parts))
                for part in parts:
                    others = [p for p in parts if p != part]
                    highs[part] = min(highs[part], highs[total] - sum(lows[p] for p in others))
                    most = sum(highs[p] for p in others)
                    if most < math.inf:
                        lows[part] = max(lows[part], lows[total] - int(most))
            for inequality in self.inequalities:
                inequality.narrow(lows, highs)
            if (lows, highs) == before:
                break
        for cell, high in zip(system.cells, highs, strict=True):
            if high == math.inf:
                raise InputError(
                    f"nothing bounds {cell.name!r}, so its solutions cannot be listed. "
                    "Publish it, or add a sum with a bounded total."
                )
        return lows, [int(high) for high in highs]

    def _order(self, cells: int) -> list[tuple[int, int | None]]:
        """Return the cells in the order of assignment, each with the sum that then determines it, if any."""
        left = [{total, *parts} for total, parts in self.equations]
        order: list[tuple[int, int | None]] = []
        pending = set(range(cells))
        while pending:
            closed = next((e for e, open_cells in enumerate(left) if len(open_cells) == 1), None)
            if closed is not None:
                (cell,) = left[closed]
            else:
                # The sum nearest to completion first, and in it the cell with the fewest values.
                nearest = min((open_cells for open_cells in left if open_cells), key=len, default=pending)
                cell = min(nearest, key=lambda c: (self.highs[c] - self.lows[c], c))
            order.append((cell, closed))
            pending.discard(cell)
            for open_cells in left:
                open_cells.discard(cell)
        return order

    def solutions(self) -> Iterator[Values]:
        """Go through all solutions, depth first; without recursion, so that any number of cells will do."""
        lows, highs = self.lows.copy(), self.highs.copy()  # an assigned cell has its value in both
        depth = 0
        tries = [self._candidates(0, lows)]
        while tries:
            cell, _ = self.order[depth]
            x = next(tries[-1], None)
            if x is None:
                lows[cell], highs[cell] = self.lows[cell], self.highs[cell]
                tries.pop()
                depth -= 1
            else:
                lows[cell] = highs[cell] = x
                if not self._possible(cell, lows, highs):
                    continue
                if depth + 1 == len(self.order):
                    yield tuple(lows)
                else:
                    depth += 1
                    tries.append(self._candidates(depth, lows))

    def _candidates(self, depth: int, lows: list[int]) -> Iterator[int]:
        cell, closed = self.order[depth]
        first, last = self.lows[cell], self.highs[cell]
        if closed is not None:
            total, parts = self.equations[closed]
            others = sum(lows[p] for p in parts if p != cell)
            only = others if cell == total else lows[total] - others
            first, last = max(first, only), min(last, only)
        return (x for x in range(first, last + 1) if self.weigh(cell, x))

    def _possible(self, cell: int, lows: list[int], highs: list[int]) -> bool:
        """Return whether every sum and figure that uses this cell can still hold, as far as the others' bounds tell."""
        return all(
            sum(lows[p] for p in parts) <= highs[total] and lows[total] <= sum(highs[p] for p in parts)
            for total, parts in self.equations
            if cell == total or cell in parts
        ) and all(
            inequality.least(lows, highs) <= inequality.at_most
            for inequality in self.inequalities
            if cell in inequality.factors
        )


class _Inequality:
    """What a figure says of the cells, in fractions."""

    def __init__(self, inequality: Inequality, system: System) -> None:
        self.factors = {system.index[name]: factor for name, factor in inequality.terms}
        self.at_most = inequality.at_most

    def least(self, lows: list[int], highs: Sequence[float], but: int = -1) -> Fraction | float:
        """Return the least that the terms can add up to, one cell left aside."""
        least: Fraction | float = Fraction(0)
        for cell, factor in self.factors.items():
            if cell != but:
                end = lows[cell] if factor > 0 else highs[cell]
                least = -math.inf if end == math.inf or least == -math.inf else least + factor * Fraction(end)
        return least

    def narrow(self, lows: list[int], highs: list[float]) -> None:
        """Bound each cell by what the others leave."""
        for cell, factor in self.factors.items():
            least = self.least(lows, highs, cell)
            if least == -math.inf:
                continue
            limit = (self.at_most - Fraction(least)) / factor
            if factor > 0:
                highs[cell] = min(highs[cell], math.floor(limit))
            else:
                lows[cell] = max(lows[cell], math.ceil(limit))
