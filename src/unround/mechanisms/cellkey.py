"""Cell keys by their parameters: the perturbation table of maximum entropy, as offices compute it with the ptable package.

Row i of the table is the law of the change v of a true count i. Of all laws on the changes that are allowed (at most D up or
down, nothing below 0, nothing published from 1 to js) with mean 0 and a variance of at most V, it has the largest entropy;
changes down become no likelier as they grow, and P(v = 0) is at least `pstay`, lowered by steps of 0.05 where V cannot be
held otherwise. 0 stays 0. From the first count on that nothing restricts all rows are equal and symmetric.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import isfinite

import numpy as np

from unround.errors import InputError
from unround.mechanisms.base import FloatArray, IntArray, fraction, settle
from unround.mechanisms.transition import Row, Transition

LARGEST_CHANGE = 50  # The largest D. Offices use 2 to 10.
LEAST_CHANCE = 1e-8
"""No change that is allowed has a smaller probability: ptable's own limit, so that D is the largest change in fact."""
_DIGITS = 12
_HELD = 5e-4  # A variance that differs by no more is held
_STEP = Fraction(1, 20)
_STEPS, _ZERO = 300, 1e-13  # of Newton's method, and what is no gain any more
_RIDGE = 1e-10
"""Added to the curvature: inequalities may say the same, and then steps along what they share would have no end."""


def largest_variance(max_change: int) -> Fraction:
    """Return the variance of changes that are all equally likely: no larger one can be had without favouring large ones."""
    return Fraction(max_change * (max_change + 1), 3)


def _entropy_law(changes: IntArray, variance: float, stay: float) -> FloatArray:
    """Return the law of one row; small probabilities are raised to the least one, and the others found anew."""
    law = _unbounded_law(changes, np.zeros(len(changes)), variance, stay)
    raised = law < LEAST_CHANCE
    if raised.any():
        law = _unbounded_law(changes, np.where(raised, LEAST_CHANCE, 0.0), variance, stay)
    return law


def _unbounded_law(changes: IntArray, given: FloatArray, variance: float, stay: float) -> FloatArray:
    """Maximise the entropy of the probabilities that are not given, by the dual: Newton's method on an active set.

    With features f(v) and bounds c on their expectations, the law is e^(−μ·f)/Z, and μ minimises log Z + μ·c, where the
    multipliers of inequalities must not be negative. An inequality is active as long as its multiplier is above 0.
    """
    free = given == 0
    v = changes[free].astype(np.float64)
    left = 1 - given.sum()
    stays = np.flatnonzero(v == 0)
    rows, bounds = [v, v**2], [-(given @ changes) / left, (variance - given @ changes**2) / left]
    if stays.size:
        for at in range(int(stays[0])):  # p of a change down is at most that of the next smaller one
            step = np.zeros(len(v))
            step[at], step[at + 1] = 1.0, -1.0
            rows.append(step)
            bounds.append(0.0)
        rows.append(-(v == 0).astype(np.float64))
        bounds.append(-stay / left)
    features, limits = np.array(rows), np.array(bounds)
    p = _dual(features, limits)
    law = given.copy()
    law[free] = p * left
    return law


def _dual(features: FloatArray, limits: FloatArray) -> FloatArray:
    """Return the law of largest entropy whose first feature has a given mean, and the others at most a given one.

    Newton's steps move the active multipliers, as far as none falls below 0: it is active no longer. Where they gain nothing
    more, the inequality that is violated most becomes active.
    """
    size = np.maximum(np.abs(features).max(axis=1), 1.0)
    features, limits = features / size[:, None], limits / size

    def goal(multipliers: FloatArray) -> tuple[float, FloatArray]:
        weights = -multipliers @ features
        top = weights.max()
        shares = np.exp(weights - top)
        return float(top + np.log(shares.sum()) + multipliers @ limits), np.asarray(shares / shares.sum())

    active, settled = np.arange(len(limits)) < 2, False
    multipliers = np.zeros(len(limits))
    multipliers[1] = 0.1
    value, p = goal(multipliers)
    for _ in range(_STEPS):
        slope = limits - features @ p
        if settled or np.abs(slope[active]).max() < _ZERO:
            violated = np.where(active, 0.0, slope)
            if violated.min() > -_ZERO:
                break
            active[violated.argmin()] = True
        part, step = features[active], np.zeros(len(limits))
        curvature = (part * p) @ part.T - np.outer(part @ p, part @ p)
        step[active] = -np.linalg.solve(curvature + _RIDGE * np.eye(len(part)), slope[active])
        falling = step < 0
        falling[0] = False  # the mean is given: its multiplier may have any sign
        room = np.where(falling, multipliers / np.where(falling, -step, 1.0), np.inf)
        first, gain = int(room.argmin()), 1e-4 * float(slope @ step)
        far = min(1.0, float(room[first]))
        while far > _ZERO and goal(multipliers + far * step)[0] > value + far * gain + 1e-14 * abs(value):
            far /= 2
        multipliers = multipliers + far * step
        if far == room[first]:
            multipliers[first], active[first] = 0.0, False
        settled = _ZERO >= far < room[first]
        value, p = goal(multipliers)
    return p


@cache
def cell_key_rows(max_change: int, variance: Fraction, js: int, stay: Fraction) -> tuple[Row, ...]:
    """Return the rows of the table, from the true count 0 on; the last one serves all larger counts."""
    rows: list[Row] = [((0, Fraction(1)),)]
    for count in range(1, max_change + js + (2 if js else 1)):
        published = np.arange(max(0, count - max_change), count + max_change + 1)
        changes = published[(published == 0) | (published > js)] - count
        if 0 not in changes:
            _check_feasible(count, changes, variance)
        law = _row_law(changes, variance, stay)
        rows.append(_as_fractions(changes, law))
    return tuple(rows)


def _check_feasible(count: int, changes: IntArray, variance: Fraction) -> None:
    """Refuse parameters under which a count that is never published cannot be changed without bias."""
    down, up = changes[changes < 0], changes[changes > 0]
    least = int(-down.max() * up.min()) if down.size and up.size else None
    if least is None or least > variance:
        raise InputError(
            f"the true count {count} must not be published, but with a variance of {float(variance):g} it cannot be changed "
            f"without bias: that needs {'a larger D' if least is None else f'a V of at least {least}'}, or a smaller js."
        )


def _row_law(changes: IntArray, variance: Fraction, stay: Fraction) -> FloatArray:
    """Return one row, with P(v = 0) as near to what is asked for as the variance allows."""
    while True:
        law = _entropy_law(changes, float(variance), float(stay))
        held = abs(float(law @ changes**2) - float(variance)) <= _HELD
        if held or stay <= 0 or 0 not in changes:
            return law
        stay = max(Fraction(0), stay - _STEP)


def _as_fractions(changes: IntArray, law: FloatArray) -> Row:
    """Return a law as exact decimals that add up to 1; what rounding leaves goes to the likeliest change."""
    whole = 10**_DIGITS
    parts = [round(float(p) * whole) for p in law]
    parts[int(law.argmax())] += whole - sum(parts)
    return tuple((int(v), Fraction(part, whole)) for v, part in zip(changes, parts, strict=True))


@dataclass(frozen=True, init=False, repr=False)
class CellKey(Transition):
    """The perturbation table of maximum entropy (cell key method).

    >>> table = CellKey(2, 1)
    >>> [round(float(p), 4) for _, p in table.rows[1]]
    [0.3665, 0.3665, 0.1676, 0.0995]
    >>> table.short
    {1: 0.932}
    >>> CellKey(3, 4).name, CellKey(8, 3, js=2).name
    ('uniform:3', 'cellkey:8,3,js=2')
    """

    max_change: int = 0  # d, the largest change of a count
    variance: Fraction = Fraction(0)  # v, the variance of a change; small counts may have less (`short`)
    js: int = 0  # nothing is published from 1 to js
    stay: Fraction = Fraction(0)  # the probability that a count is not changed, at least; 0 asks for none

    def __init__(
        self, max_change: int, variance: str | float | Fraction, js: int = 0, stay: str | float | Fraction = 0
    ) -> None:
        variance, stay = fraction(variance), fraction(stay)
        if not 1 <= max_change <= LARGEST_CHANGE:
            raise InputError(f"the largest change D must be from 1 to {LARGEST_CHANGE}, such as 3; not {max_change}.")
        if not (variance > 0 and isfinite(float(variance)) and variance < 10**6):
            raise InputError(f"the variance V must be above 0, such as 2; not {float(variance):g}.")
        if not 0 <= js < 1_000:
            raise InputError(f"js, the largest count that is never published, must be 0 or more, such as 2; not {js}.")
        if not 0 <= stay < 1:
            raise InputError(f"pstay must be a probability from 0 to below 1, such as 0.5; not {float(stay):g}.")
        settle(self, max_change=max_change, variance=variance, js=js, stay=stay)
        super().__init__(cell_key_rows(max_change, variance, js, stay))

    __hash__ = Transition.__hash__

    def __repr__(self) -> str:
        return f"CellKey({self.max_change}, {float(self.variance):g}, js={self.js}, stay={float(self.stay):g})"

    @property
    def _uniform(self) -> bool:
        return self.variance == largest_variance(self.max_change) and not self.stay

    @property
    def name(self) -> str:
        """Its name on the command line."""
        start = f"uniform:{self.max_change}" if self._uniform else f"cellkey:{self.max_change},{_written(self.variance)}"
        return start + f",js={self.js}" * bool(self.js) + f",pstay={_written(self.stay)}" * bool(self.stay)

    @property
    def short(self) -> dict[int, float]:
        """The counts for which the variance cannot be held, and what it is for them."""
        variances = {i: float(sum(p * v * v for v, p in row)) for i, row in enumerate(self.rows) if i}
        return {i: round(v, 3) for i, v in variances.items() if abs(v - float(self.variance)) > _HELD}

    @property
    def sentence(self) -> str:
        """The assumption, as a sentence."""
        law = "every change equally likely" if self._uniform else f"with a variance of {float(self.variance):g}"
        said = f"Changed by at most {self.max_change} up or down, {law}, without bias and by the law of largest entropy"
        said += f", nothing published from 1 to {self.js}" * bool(self.js)
        said += f", unchanged with a probability of at least {float(self.stay):g} where that can be" * bool(self.stay)
        if self.short:
            listed = ", ".join(f"{v:g} for {i}" for i, v in self.short.items())
            said += f" (the variance cannot be held for small counts: it is {listed})"
        return f"{said}; each count independently, and 0 stays 0."


def _written(value: Fraction) -> str:
    """Return a number as a decimal where it is one, else as a fraction."""
    decimal = f"{float(value):.12g}"
    return decimal if Fraction(decimal) == value else str(value)
