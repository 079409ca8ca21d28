"""What every engine takes and returns: domains in, an Answer out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unround.errors import InputError
from unround.mechanisms import Window
from unround.mechanisms.base import FloatArray
from unround.system import System

Prior = Mapping[str, Mapping[int, float]]
"""A distribution of true counts for each cell that has one, by name; cells that are left out are flat."""

Marginal = tuple[int, FloatArray]
"""A cell's lowest possible value, and the probabilities of that value and those that follow it."""


def support_of(marginal: Marginal) -> tuple[int, int]:
    """Return the least and the greatest value that is not impossible."""
    there = np.flatnonzero(marginal[1])
    return marginal[0] + int(there[0]), marginal[0] + int(there[-1])


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
