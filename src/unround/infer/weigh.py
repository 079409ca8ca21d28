"""From a list of solutions to probabilities: the likelihoods of all solutions multiplied and added up at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unround.errors import Infeasible
from unround.infer.answer import Answer, Marginal
from unround.mechanisms import Window
from unround.mechanisms.base import FloatArray, IntArray

SPLIT = 2.0**30
"""Weights are added up in two halves, split here; see `_add_up`."""


def weigh(solutions: IntArray, domains: Sequence[Window], top: int) -> Answer:
    """Weigh listed solutions by their likelihoods.

    Parameters
    ----------
    solutions : array
        All solutions, one a row, in lexicographic order.
    domains : sequence of Window
        The weight of every value of each cell.
    top : int
        How many of the likeliest solutions to return; equals in lexicographic order.

    Raises
    ------
    Infeasible
        If there is no solution.

    Examples
    --------
    >>> from unround.equations import parse
    >>> from unround.infer.enumerate import cpsat_solutions
    >>> system = parse("30 = 15 + 15 + 15")
    >>> solutions = cpsat_solutions(system.equations, system.windows, limit=10)
    >>> answer = weigh(solutions, system.windows, top=1)
    >>> low, probabilities = answer.marginals[0]
    >>> low, probabilities.round(12).tolist(), answer.best[0][0]
    (33, [0.25, 0.75], (33, 11, 11, 11))

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
