"""What every engine for one system takes and returns: a Problem in, an Inference out, or why it cannot answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unround.bounds.propagation import Bounds
from unround.errors import Infeasible, InputError
from unround.mechanisms import Window
from unround.mechanisms.base import FloatArray, IntArray
from unround.system import Row, System

Prior = Mapping[str, Mapping[int, float]]
"""A distribution of true counts for each cell that has one, by name; cells that are left out are flat."""

Marginal = tuple[int, FloatArray]
"""A cell's lowest possible value, and the probabilities of that value and those that follow it."""


def support_of(marginal: Marginal) -> tuple[int, int]:
    """Return the least and the greatest value that is not impossible."""
    there = np.flatnonzero(marginal[1])
    return marginal[0] + int(there[0]), marginal[0] + int(there[-1])


def weights_within(window: Window, low: int, high: int) -> FloatArray:
    """Return the weights of a window's values between two of them; all 1 where nothing was published."""
    if window.weights is None:
        return np.ones(high - low + 1)
    return window.weights[low - window.low : high - window.low + 1]


@dataclass(frozen=True, slots=True)
class Problem:
    """What every engine takes.

    - `system`: The cells, and the sums between them.
    - `windows`: The possible counts of every cell, weighed by likelihood and prior; `bounds`: what sums leave of them.
    - `rows`: The inequalities of figures that say more than bounds do.
    - `prior`, `top`, `count`: As given; how many of the best solutions are wanted, and whether all are to be counted.
    - `engine`: The engine that was asked for.
    """

    system: System
    windows: tuple[Window, ...]
    bounds: Bounds
    rows: tuple[Row, ...] = ()
    prior: Prior | None = None
    top: int = 5
    count: bool = True
    engine: str = "auto"

    @property
    def figures(self) -> list[str]:
        """The names of the figures that the inequalities are of."""
        return list(dict.fromkeys(self.system.figures[row.figure].figure.name for row in self.rows))

    def weights(self, lows: Sequence[int], highs: Sequence[int]) -> list[FloatArray]:
        """Return the weights of every cell's values between bounds."""
        return [weights_within(window, lows[i], highs[i]) for i, window in enumerate(self.windows)]


@dataclass(frozen=True, slots=True)
class Answer:
    """An engine's answer for a system with at least one solution.

    - `solutions`: How many assignments of whole numbers fit; None where nothing bounds them, or where they were not
      counted.
    - `marginals`: One per cell, in the system's order; None for a cell that nothing bounds, or for all where they are not
      available.
    - `best`: The likeliest solutions, each with its probability, best first.
    - `relative`: Whether these are the likeliest found by a search that may have missed others; their probabilities are
      then not known, and given relative to that of the first.
    """

    solutions: int | None
    marginals: tuple[Marginal | None, ...] | None
    best: tuple[tuple[tuple[int, ...], float], ...]
    relative: bool = False


@dataclass(frozen=True, slots=True)
class Inference:
    """What was inferred about a system, and how.

    - `feasible`: Whether any true counts fit. If not, everything else is empty.
    - `engine`, `why`: Which engine answered, and why it was chosen.
    - `lows`, `highs`: Tight bounds of every cell; a high of None says that nothing bounds it.
    - `answer`: The count, the distributions and the best solutions; None where probabilities are not available.
    - `errors`: The standard error of the probability of every cell's likeliest value, 0 where it is exact; None if all
      are.
    - `rhat`: Where probabilities were estimated, how well the chains agree: 1 if nothing tells them apart.
    - `aside`: The figures that say what is possible, and that probabilities do not use beyond that.
    """

    feasible: bool
    engine: str
    why: str
    lows: tuple[int, ...] = ()
    highs: tuple[int | None, ...] = ()
    answer: Answer | None = None
    errors: tuple[float, ...] | None = None
    rhat: float | None = None
    aside: tuple[str, ...] = ()


def domains(system: System, prior: Prior | None) -> tuple[Window, ...]:
    """Return each cell's possible true counts with their weights: likelihood, times the prior where one is given.

    Raises `InputError` if the prior names an unknown cell, has a negative or infinite weight, or leaves a cell no
    value.
    """
    if not prior:
        return system.windows
    for name in prior:
        if name not in system.index:
            raise InputError(f"the prior names {name!r}, but there is no such cell.")
    return tuple(
        _weighted(window, prior[cell.name], cell.name) if cell.name in prior else window
        for cell, window in zip(system.cells, system.windows, strict=True)
    )


def _weighted(window: Window, prior: Mapping[int, float], name: str) -> Window:
    if not isinstance(prior, Mapping) or not all(isinstance(value, int) for value in prior):
        raise InputError(f"the prior of {name!r} must give a weight to each true count, as in {{12: 0.5, 13: 0.5}}.")
    bad = next((p for p in prior.values() if not 0 <= p < float("inf")), None)
    if bad is not None:
        raise InputError(f"the prior of {name!r} has the weight {bad}; weights must be finite and not negative.")
    values = [value for value, p in prior.items() if p > 0 and value in window]
    if not values:
        raise InputError(f"the prior of {name!r} rules out every value that its published count leaves possible.")
    low, high = min(values), max(values)
    weights = np.zeros(high - low + 1)
    for value in values:
        likelihood = 1.0 if window.weights is None else float(window.weights[value - window.low])
        weights[value - low] = likelihood * prior[value]
    return Window(low, high, weights, certain=False, holes=not weights.all())


SPLIT = 2.0**30
"""Weights are added up in two halves, split here; see `_add_up`."""


def weigh(solutions: IntArray, domains: Sequence[Window], top: int) -> Answer:
    """Weigh listed solutions by their likelihoods.

    Notes
    -----
    Linear in the size of `solutions`. Probabilities are accurate to a unit in the last place for each cell.
    """
    if not len(solutions):
        raise Infeasible("no true counts fit what was published.")
    weights = _relative_weights(solutions, domains)
    mass = float(weights.sum())
    marginals: list[Marginal] = []
    for column in solutions.T:
        low = int(column.min())
        marginals.append((low, _add_up(column - low, weights) / mass))
    best = [
        (tuple(int(value) for value in solutions[row]), float(weights[row] / mass))
        for row in _heaviest(weights, top, tolerance=(len(domains) + 4) * 2.0**-52)
    ]
    return Answer(len(solutions), tuple(marginals), tuple(best))


def _relative_weights(solutions: IntArray, domains: Sequence[Window]) -> FloatArray:
    """Multiply the weights of every row's values, and scale the largest product to about 1.

    Powers of two are kept apart, as whole numbers, so that hundreds of small factors cannot underflow.
    """
    mantissa = np.ones(len(solutions))
    exponent = np.zeros(len(solutions), dtype=np.int64)
    for column, window in zip(solutions.T, domains, strict=True):
        if window.weights is not None:
            factors, powers = np.frexp(window.weights)
            mantissa, shift = np.frexp(mantissa * factors[column - window.low])
            exponent += shift + powers[column - window.low]
    # Beyond 2**-1100 nothing is left of a weight; the limit keeps the exponent in the range that ldexp takes.
    scaled: FloatArray = np.ldexp(mantissa, np.maximum(exponent - exponent.max(), -1200))
    return scaled


def _add_up(index: IntArray, weights: FloatArray) -> FloatArray:
    """Return the sum of the weights at each index.

    The upper 30 bits of every weight are added apart from the rest. Those sums are exact for up to four
    million weights, and the rest is too small for its rounding to matter: no error builds up in long sums.
    """
    upper = np.rint(weights * SPLIT) / SPLIT
    return np.asarray(np.bincount(index, upper) + np.bincount(index, weights - upper), dtype=np.float64)


def _heaviest(weights: FloatArray, top: int, tolerance: float) -> IntArray:
    """Return the rows with the largest weights, largest first; those as good as equal in the order of rows.

    Products of the same factors in another order differ in their last digits, which must not decide.
    """
    order = np.argsort(-weights, kind="stable")
    sorted_weights = weights[order]
    steps = sorted_weights[1:] < sorted_weights[:-1] * (1 - tolerance)
    group = np.concatenate([[0], np.cumsum(steps)])
    order = order[np.lexsort((order, group))]
    return order[:top]
