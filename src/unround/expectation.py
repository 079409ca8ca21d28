"""How often disclosure is to be expected from one sum of randomly rounded counts, in closed form.

The model is that of the paper (section 4), for any base b and any number of parts:

- A part published as b or more is off by d = true − published, from −(b−1) to b−1, with probability (b−|d|)/b²:
  its remainder modulo b is uniform, and it was rounded without bias and on its own.
- A part published as 0 had a true count k from 0 to b−1, all equally likely before rounding; given that 0 was
  published, k weighs b−k. (So small counts are no rarer nor commoner than 0; real data have more zeros.)
- The residual r = total − Σ parts is, for an exact total, the sum s of these d and k. A rounded total is tied to
  its parts: the true total is s above the sum of the published parts, so that only multiples of b can come out,
  each with probability max(0, 1 − |r−s|/b).

The same weights are the posterior given r, because the prior is flat in both. So one pass says for each residual how
often it comes, how many solutions it leaves, and how sure its likeliest cell is.

The tails of the chi-square and of the Poisson distribution are here too, a few lines each: to import scipy's would take
longer than most tables do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.mechanisms.base import ALIKE, fraction
from unround.mechanisms.rounding import Rounding, check_base
from unround.shown import Plain, Shown
from unround.system import System


def chi_square_tail(freedom: int, statistic: float) -> float:
    """Return how likely a chi-square variable with some degrees of freedom is to exceed a statistic.

    For whole degrees of freedom it is a finite sum.

    >>> round(chi_square_tail(1, 3.841), 4), round(chi_square_tail(4, 9.488), 4)
    (0.05, 0.05)
    """
    half = statistic / 2
    if half <= 0:
        return 1.0
    # Even: e^-h Σ h^j / j! for j < k/2. Odd: erfc √h, and e^-h Σ h^(j - 1/2) / Γ(j + 1/2).
    odd = freedom % 2
    log = (math.log(half) / 2 - math.lgamma(1.5) if odd else 0.0) - half
    tail = math.erfc(math.sqrt(half)) if odd else 0.0
    for j in range(freedom // 2):
        tail += math.exp(log)
        log += math.log(half / (j + 1 + odd / 2))
    return min(tail, 1.0)


def poisson_at_most(count: int, mean: float) -> float:
    """Return how likely a Poisson count is no larger than the one found.

    >>> round(poisson_at_most(2, 1.0), 4)
    0.9197
    """
    return chi_square_tail(2 * (count + 1), 2 * mean)


def poisson_at_least(count: int, mean: float) -> float:
    """Return how likely a Poisson count is no smaller than the one found; exact far out, too.

    >>> f"{poisson_at_least(30, 1.0):.1e}"
    '1.4e-33'
    """
    if count <= 0:
        return 1.0
    if count <= mean:
        return 1.0 - poisson_at_most(count - 1, mean)
    term = math.exp(count * math.log(mean) - mean - math.lgamma(count + 1)) if mean > 0 else 0.0
    total, next_count = 0.0, count
    while term > 1e-17 * total:  # each term is less than the one before
        total += term
        next_count += 1
        term *= mean / next_count
    return min(total, 1.0)


Kind = Literal["proof", "strong", "open"]
Number = Fraction | float
Weights = NDArray[Any]  # whole numbers as Python's own (exact), or floats: the same code serves both
EXACT_UP_TO = 500_000  # beyond (parts · base)² of this size, floats do: whole numbers would take seconds
MOST = 10_000  # the largest parts · base that is worked out
SURE_COUNT = 2**53  # up to here a float counts solutions exactly
RAREST = 290  # shares below 10^−290 are left out: what a float holds of them has lost its digits


@dataclass(frozen=True, slots=True)
class Residual(Plain):
    """One value that total − Σ parts can take."""

    residual: int  # the value
    probability: Number  # the share of sums that have it; a Fraction where it was worked out exactly
    solutions: int | None  # how many sets of true counts fit; None where they are too many to count in floats
    best_probability: Number  # the posterior probability of the likeliest value of the cell that is known best
    best_cell: str  # Which cell that is: "part", "zero part" or "total". Parts of a kind are all alike.
    kind: Kind  # "proof" (one solution), "strong" (not proved, but `best_probability` reaches the threshold) or "open"


@dataclass(frozen=True)
class Expectation(Plain, Shown):
    """How often sums of one shape give something away."""

    ALSO = (
        "proof_share",
        "proof_one_in",
        "strong_share",
        "strong_one_in",
        "expected_proofs",
        "expected_strong",
        "assumptions",
    )

    base: int  # what was asked for; `zero_parts` of the `parts` are published as 0
    parts: int
    zero_parts: int
    exact_total: bool
    threshold: float
    areas: int | None
    residuals: tuple[Residual, ...]  # Every residual that can occur, ascending; their probabilities add up to 1
    exact: bool  # whether all of it was worked out in exact fractions

    def share(self, *residuals: int) -> Number:
        """Return the share of sums with any of these residuals; impossible ones add nothing."""
        return sum((residual.probability for residual in self.residuals if residual.residual in residuals), Fraction(0))

    @cached_property
    def proof_share(self) -> Number:
        """The share of sums with a single solution: every cell is proved."""
        return sum((residual.probability for residual in self.residuals if residual.kind == "proof"), Fraction(0))

    @cached_property
    def strong_share(self) -> Number:
        """The share of sums without proof in which some cell's likeliest value reaches the threshold."""
        return sum((residual.probability for residual in self.residuals if residual.kind == "strong"), Fraction(0))

    @property
    def proof_one_in(self) -> float | None:
        """One sum in how many is a proof; None if none is, or one in more than a float can say."""
        return one_in(self.proof_share)

    @property
    def strong_one_in(self) -> float | None:
        """One sum in how many is strong; None as above."""
        return one_in(self.strong_share)

    @property
    def expected_proofs(self) -> float | None:
        """How many proofs to expect in so many areas."""
        return None if self.areas is None else float(self.areas * self.proof_share)

    @property
    def expected_strong(self) -> float | None:
        """How many strong results to expect in so many areas."""
        return None if self.areas is None else float(self.areas * self.strong_share)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the numbers rest on, one sentence each."""
        base = self.base
        said = [
            f"Unbiased random rounding to base {base}, each count independently.",
            f"The remainders of the true parts modulo {base} are uniform and independent.",
        ]
        if self.zero_parts < self.parts:
            few = "Parts" if not self.zero_parts else "The other parts"
            said.append(f"{few} are published as {base} or more. Keeping only larger values would shift the shares.")
        if self.zero_parts:
            said.append(f"Before rounding, a part published as 0 was equally likely to be any count from 0 to {base - 1}.")
        said.append("The total is exact." if self.exact_total else "The total was rounded like its parts.")
        return tuple(said)


def shape_of(system: System) -> dict[str, Any]:
    """Return the shape of the one sum of a system, as `expectation` takes it."""
    if len(system.equations) != 1:
        raise InputError(f"how often a sum gives its counts away is told of one sum, and here are {len(system.equations)}.")
    ((at, inside),) = system.equations
    total, parts = system.cells[at], [system.cells[part] for part in inside]
    bases = {cell.mechanism.base if isinstance(cell.mechanism, Rounding) else None for cell in parts}
    if not total.given:
        bases.add(total.mechanism.base if isinstance(total.mechanism, Rounding) else None)
    if len(bases) != 1 or None in bases:
        raise InputError(
            "how often a sum gives its counts away is told of parts that were all randomly rounded to one base, under a "
            "total that is exact or was rounded to it as well."
        )
    return {
        "parts": len(parts),
        "exact_total": total.given,
        "base": bases.pop(),
        "zero_parts": sum(cell.published == 0 for cell in parts),
    }


def expectation(
    parts: int,
    *,
    exact_total: bool = False,
    base: int = 5,
    zero_parts: int = 0,
    areas: int | None = None,
    threshold: float = 0.66,
) -> Expectation:
    """Work out how often a sum of this shape gives a proof, a strong result, or each residual.

    >>> age = expectation(3, exact_total=True, areas=59625)
    >>> age.proof_share, age.proof_one_in, round(age.expected_proofs, 3)
    (Fraction(2, 15625), 7812.5, 7.632)
    >>> [one.residual for one in age.residuals if one.kind == "strong"]
    [-11, 11]
    >>> expectation(4).proof_share == Fraction(2, 5**9)
    True

    Fractions are exact while (parts · base)² is at most 500,000; above that, floats are used, and residuals with
    shares below 1e-290 are left out. The time grows with (parts · base)².
    """
    _check(parts, base, zero_parts, areas, threshold)
    exact = (parts * base) ** 2 <= EXACT_UP_TO
    shape = _Shape(base, parts - zero_parts, zero_parts, exact_total, exact)
    residuals = tuple(_residuals(shape, threshold))
    return Expectation(base, parts, zero_parts, exact_total, threshold, areas, residuals, exact)


def _check(parts: int, base: int, zero_parts: int, areas: int | None, threshold: float) -> None:
    check_base(base)
    if parts < 1:
        raise InputError(f"a sum needs at least 1 part, not {parts}.")
    if not 0 <= zero_parts <= parts:
        of = "1 part" if parts == 1 else f"{parts} parts"
        raise InputError(f"of {of}, 0 to {parts} can be published as 0, not {zero_parts}.")
    if parts * base > MOST:
        raise InputError(f"parts times base must be at most {MOST:,}, not {parts * base:,}.")
    if areas is not None and areas < 0:
        raise InputError(f"the number of areas cannot be {areas}.")
    if not 0 < threshold <= 1:
        raise InputError(f"the threshold must be a probability above 0 and at most 1, not {threshold}.")


@dataclass(frozen=True, slots=True)
class _Shape:
    """The weights of one sum; arrays of weights over s start at their lowest s, −(b−1) for each full part."""

    base: int
    full: int
    zero: int
    exact_total: bool
    exact: bool

    def kernel(self, kind: str, plain: bool = False) -> Weights:
        """Return what one cell weighs at each distance: the tent of a full part, the ramp of a zero, all 1 if plain."""
        low = 0 if kind == "zero" else 1 - self.base
        tent = self.base - np.abs(np.arange(low, self.base))
        if plain:
            tent = np.ones_like(tent)
        return tent.astype(object) if self.exact else tent / (1 if plain else tent.sum())

    def sums(self, full: int, zero: int, plain: bool = False, total: bool = True) -> Weights:
        """Return the weights of all sums of so many parts; with those of a rounded total, if `total`."""
        weights: Weights = np.array([1], dtype=object if self.exact else np.float64)
        cells = ["zero"] * zero + ["full"] * full + ["full"] * (total and not self.exact_total)
        for cell in cells:
            weights = np.convolve(weights, self.kernel(cell, plain))
            if plain and not self.exact:
                weights = np.minimum(weights, 1e300)  # enough to know that nobody will count them
        return weights


def _residuals(shape: _Shape, threshold: float) -> list[Residual]:
    """List every residual with all that is to be known of it."""
    base = shape.base
    weights, counts = shape.sums(shape.full, shape.zero), shape.sums(shape.full, shape.zero, plain=True)
    low = -(base - 1) * (shape.full + (not shape.exact_total))
    best = _best_cells(shape, len(weights))
    # A rounded total only differs from its parts by multiples of the base; the tent of the total weighs b in all.
    step = 1 if shape.exact_total else base
    whole: Any = sum(weights[(-low) % step :: step])
    limit = fraction(threshold) if shape.exact else threshold - ALIKE
    listed = []
    for at in range((-low) % step, len(weights), step):
        weight, many = weights[at], counts[at]
        if not shape.exact and weight < whole * 10.0**-RAREST:
            continue  # below what a float can hold, or too near to that
        top = max(array[at] for _, array in best)
        tie = top if shape.exact else top * (1 - ALIKE)
        cell = next(name for name, array in best if array[at] >= tie)
        sure: Number = Fraction(top, weight) if shape.exact else min(1.0, float(top / weight))
        kind: Kind = "proof" if many == 1 else "strong" if sure >= limit else "open"
        share: Number = Fraction(weight, whole) if shape.exact else float(weight / whole)
        solutions = int(many) if shape.exact or many < SURE_COUNT else None
        listed.append(Residual(low + at, share, solutions, sure, cell, kind))
    return listed


def _best_cells(shape: _Shape, size: int) -> list[tuple[str, Weights]]:
    """For each kind of cell, return what its likeliest value weighs at each residual."""
    best = []
    for name, kind, number in (("part", "full", shape.full), ("zero part", "zero", shape.zero)):
        if number:
            rest = shape.sums(shape.full - (kind == "full"), shape.zero - (kind == "zero"))
            best.append((name, _highest(shape.kernel(kind), rest, size)))
    if not shape.exact_total:
        parts = shape.sums(shape.full, shape.zero, total=False)
        best.append(("total", _highest(shape.kernel("full"), parts, size)))
    return best


def _highest(cell: Weights, rest: Weights, size: int) -> Weights:
    """Return the largest term of the convolution of a cell with the rest, at each place."""
    highest = np.zeros(size, dtype=rest.dtype)
    for at, weight in enumerate(cell):
        here = slice(at, at + len(rest))
        highest[here] = np.maximum(highest[here], weight * rest)
    return highest


def one_in(share: Number) -> float | None:
    """Return one in how many a share is; None for none at all, or too many for a float.

    >>> one_in(Fraction(2, 625))
    312.5
    """
    try:
        return float(1 / share) if share else None
    except OverflowError:
        return None


# -- how many are found, against how many were expected ---------------------------------------------------------------


def interval(mean: float, level: float = 0.999) -> tuple[int, int]:
    """Return the central interval of a Poisson count: at most (1 − level)/2 lies on either side of it.

    >>> interval(195.2)
    (151, 243)
    """
    counts = np.arange(int(mean + 12 * np.sqrt(mean) + 40))
    logs = counts * math.log(mean) - mean - np.cumsum(np.log(np.maximum(counts, 1))) if mean > 0 else 0.0 * counts
    below = np.cumsum(np.exp(logs))
    tail = (1 - level) / 2
    return int(np.searchsorted(below, tail)), int(np.searchsorted(below, 1 - tail))


def surprise(count: int, mean: float) -> float:
    """Return how likely a Poisson count is at least as far from its mean, on either side.

    Twice the smaller tail, at most 1.

    >>> f"{surprise(285, 195.232):.0e}", surprise(0, 0.0859)
    ('2e-09', 1.0)
    """
    if mean <= 0:
        return 1.0 if count == 0 else 0.0
    return min(1.0, 2 * min(poisson_at_least(count, mean), poisson_at_most(count, mean)))
