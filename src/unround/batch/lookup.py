"""What one sum says on its own: for every class of sums and every residual, the number of solutions and probabilities.

Given how many parts were published as 0 or as something larger, and whether the total is exact, rounded, or rounded to
0, everything that a single sum says depends on its residual r = total − Σ parts. It follows by convolution, under the flat
prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from unround.mechanisms import Exact, Mechanism, Rounding, Sample
from unround.mechanisms.base import FloatArray

FULL, ZERO, TWICE, EXACT = "full", "zero", "twice", "exact"
"""How a cell was published: well away from 0, as 0, as twice the base where smaller counts are not published, as it is."""

_RAREST = 1e-290
"""Weights below this have lost their digits: probabilities are then not given."""


@dataclass(frozen=True, slots=True)
class SumClass:
    """All that matters of a sum besides its residual.

    Parameters
    ----------
    base : int
        Of the rounding.
    sample : bool
        Whether counts below twice the base are published as 0 or twice the base (`Sample`).
    full, zero, twice : int
        How many parts are published how.
    total : str
        How the total is published: "exact", "full", "zero" or "twice".
    sample_total : bool
        Whether the total is published like the parts of such a sample.
    """

    base: int
    sample: bool
    full: int
    zero: int
    twice: int
    total: str
    sample_total: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """What is known of a sum before any count: how many parts, and how they and the total were rounded."""

    base: int
    sample: bool
    parts: int
    totals: tuple[str, ...]

    @property
    def keys(self) -> int:
        """How many classes there are, for the most part numbered with gaps."""
        return (self.parts + 1) * (self.parts + 1 if self.sample else 1) * len(self.totals)

    def work_out(self, key: int) -> tuple[SumClass, int, tuple[FloatArray, ...]]:
        """Return a class, its least residual, and for each residual from there on all that is to be known."""
        rest, total = divmod(key, len(self.totals))
        zero, twice = divmod(rest, self.parts + 1) if self.sample else (rest, 0)
        full, sample_total = self.parts - zero - twice, TWICE in self.totals
        one = SumClass(self.base, self.sample, full, zero, twice, self.totals[total], sample_total)
        return one, *table(one)


def kind_of(parts: list[Mechanism], total: Mechanism) -> Kind | None:
    """Return what kind of sum this is; None for those that cannot be looked up."""
    how = parts[0]
    if not isinstance(how, Rounding | Sample) or any(part != how for part in parts):
        return None
    sample = isinstance(how, Sample)
    if isinstance(total, Exact):
        return Kind(how.base, sample, len(parts), (EXACT,))
    if isinstance(total, Rounding | Sample) and total.base == how.base:
        totals = (FULL, ZERO, TWICE) if isinstance(total, Sample) else (FULL, ZERO)
        return Kind(how.base, sample, len(parts), totals)
    return None


@dataclass(frozen=True, slots=True)
class _Weights:
    """Weights over consecutive whole numbers."""

    low: int
    values: FloatArray

    def plus(self, other: _Weights) -> _Weights:
        """Return the weights of the sum."""
        return _Weights(self.low + other.low, np.minimum(np.convolve(self.values, other.values), 1e300))

    def at(self, low: int, size: int, step: int) -> FloatArray:
        """Return the weights from `low` on, in steps; 0 where there are none."""
        found = np.zeros(size)
        skipped = max(0, -((low - self.low) // step))
        inside = self.values[low + skipped * step - self.low :: step][: max(0, size - skipped)]
        found[skipped : skipped + len(inside)] = inside
        return found


@cache
def _cell(base: int, sample: bool, how: str, plain: bool) -> _Weights:
    """Return how likely a cell is to be so far from what was published; all 1 if plain."""
    if how == EXACT:
        return _Weights(0, np.ones(1))
    published = {ZERO: 0, TWICE: 2 * base, FULL: 4 * base}[how]
    window = (Sample(base) if sample else Rounding(base)).window(published)
    assert window.weights is not None  # rounded counts are bounded
    values = np.ones(window.weights.size) if plain else window.weights / window.weights.sum()
    return _Weights(window.low - published, values)


@lru_cache(maxsize=4096)
def _several(base: int, sample: bool, how: str, number: int, plain: bool) -> _Weights:
    """Return the weights of the sum of so many cells."""
    if number < 2:
        return _cell(base, sample, how, plain) if number else _Weights(0, np.ones(1))
    half = number // 2
    return _several(base, sample, how, half, plain).plus(_several(base, sample, how, number - half, plain))


def table(one: SumClass) -> tuple[int, tuple[FloatArray, ...]]:
    """Work out one class: r = Σ distances of the parts − distance of the total."""
    base, exact = one.base, one.total == EXACT

    def parts(number: dict[str, int], plain: bool = False) -> _Weights:
        found = _Weights(0, np.ones(1))
        for how, many in number.items():
            found = found.plus(_several(base, one.sample, how, many, plain))
        return found

    def total(plain: bool = False) -> _Weights:
        own = _cell(base, one.sample_total, one.total, plain)
        return _Weights(-(own.low + len(own.values) - 1), own.values[::-1])

    number = {FULL: one.full, ZERO: one.zero, TWICE: one.twice}
    whole = parts(number).plus(total())
    step = 1 if exact else base
    low = -(-whole.low // step) * step
    size = (whole.low + len(whole.values) - 1 - low) // step + 1
    weights = whole.at(low, size, step)
    solutions = np.minimum(parts(number, plain=True).plus(total(plain=True)).at(low, size, step), 2)

    def likeliest(cell: _Weights, others: _Weights) -> FloatArray:
        highest = np.zeros(size)
        for i, weight in enumerate(cell.values):
            highest = np.maximum(highest, weight * others.at(low - cell.low - i, size, step))
        share = np.divide(highest, weights, out=np.zeros(size), where=weights > _RAREST)
        return np.where(solutions == 1, 1.0, np.minimum(share, 1.0))

    probabilities = [
        likeliest(_cell(base, one.sample, how, False), parts({**number, how: many - 1}).plus(total()))
        if many
        else np.zeros(size)
        for how, many in number.items()
    ]
    of_total = np.zeros(size) if exact else likeliest(total(), parts(number))
    return low, (low + step * np.arange(size, dtype=np.float64), solutions, *probabilities, of_total)
