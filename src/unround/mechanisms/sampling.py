"""Exact draws: only whole numbers compared with whole numbers, so that no tail is lost to floating point.

The discrete Laplace and Gaussian samplers are those of Canonne, Kamath and Steinke (2020), for many draws at once. Their
only source of chance is `Generator.integers`, seeded or from the system's own generator (`system_generator`).
"""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms.base import BoolArray, IntArray

_BITS = 62
_WORD = 1 << _BITS


class SystemGenerator(np.random.Generator):
    """Random numbers from the operating system's cryptographic generator: neither predictable nor repeatable.

    The methods that unround uses, `integers` and `random`, draw from `os.urandom`. There are no others.
    """

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))  # never used, but a generator must have one

    def integers(self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False) -> Any:
        """Return whole numbers from `low` (0 if only one bound is given) up to but not including `high`."""
        least, most = (0, low) if high is None else (low, high)
        span = np.asarray(most, dtype=object) - np.asarray(least, dtype=object) + bool(endpoint)
        shape = np.shape(span) if size is None else np.broadcast_shapes(np.shape(span), _shape(size))
        drawn = _below(np.broadcast_to(span, shape)) if np.ndim(span) else _below_one(int(span), shape)
        return (drawn + np.asarray(least).astype(drawn.dtype)).astype(dtype)[()]

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Return floats from 0 up to but not including 1, in steps of 2⁻⁵³."""
        if out is not None:
            raise NotImplementedError("system random numbers cannot be written into an existing array")
        return (self.integers(0, 1 << 53, size=size) / float(1 << 53)).astype(dtype)

    def __getattribute__(self, name: str) -> Any:
        """Refuse every other method: it would draw from a generator that anyone can reproduce."""
        if not name.startswith("_") and name not in ("integers", "random"):
            raise AttributeError(f"system random numbers have no {name!r}, only integers and random")
        return super().__getattribute__(name)


def _shape(size: Any) -> tuple[int, ...]:
    return tuple(size) if isinstance(size, tuple | list) else (int(size),)


def _below_one(bound: int, shape: tuple[int, ...]) -> NDArray[np.uint64]:
    """Draw below one bound: words from the system, rejecting those beyond its last multiple."""
    if not 0 < bound <= 1 << 64:
        raise ValueError(f"there is no whole number to draw below {bound}")
    many = int(np.prod(shape, dtype=np.int64))
    words_kept = np.empty(many, dtype=np.uint64)
    filled, last = 0, np.uint64((1 << 64) // bound * bound - 1)
    while filled < many:
        words = np.frombuffer(os.urandom(8 * (many - filled)), dtype=np.uint64)
        words = words[words <= last]
        words_kept[filled : filled + len(words)] = words % np.uint64(bound) if bound < 1 << 64 else words
        filled += len(words)
    return words_kept.reshape(shape)


def _below(bounds: NDArray[Any]) -> NDArray[np.uint64]:
    """Draw below many bounds, those of one bound together."""
    drawn = np.empty(bounds.shape, dtype=np.uint64)
    kinds, kind_of = np.unique(bounds.astype(np.uint64), return_inverse=True)
    for at, bound in enumerate(kinds.tolist()):
        here = kind_of.reshape(bounds.shape) == at
        drawn[here] = _below_one(bound, (int(here.sum()),))
    return drawn


def scattered(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scatter numbers over all 64 bits (the end of splitmix64)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def coins(numerators: list[int], coin_of: IntArray, denominator: int, rng: np.random.Generator) -> BoolArray:
    """Flip coins that fall on heads with probability numerators[which] / denominator, whatever the size of these numbers.

    A random number between 0 and 1 is compared with the probability, 62 binary digits at a time; the first 62 nearly
    always decide.
    """
    first = [divmod(number << _BITS, denominator) for number in numerators]
    digits = np.array([digit for digit, _ in first], dtype=np.int64)[coin_of]
    drawn = rng.integers(0, _WORD, size=len(coin_of))
    heads = np.asarray(drawn < digits)
    for at in np.flatnonzero(drawn == digits).tolist():
        rest, compared = first[int(coin_of[at])][1], 0
        while rest and not compared:
            digit, rest = divmod(rest << _BITS, denominator)
            compared = digit - int(rng.integers(0, _WORD))
        heads[at] = compared > 0
    return heads


def _exp_coins(numerators: list[int], coin_of: IntArray, denominator: int, rng: np.random.Generator) -> BoolArray:
    """Flip coins with probability exp(−numerators[which] / denominator), for fractions from 0 to 1.

    The chance that k coins of probabilities γ, γ/2, γ/3 … all fall on heads is γᵏ/k!, so that the first tail comes after an
    even number of heads with probability 1 − γ + γ²/2 − … = exp(−γ).
    """
    even = np.ones(len(coin_of), dtype=np.bool_)
    going, k = np.arange(len(coin_of)), 1
    while going.size:
        going = going[coins(numerators, coin_of[going], k * denominator, rng)]
        even[going] ^= True
        k += 1
    return even


def exp_coins(exponents: list[Fraction], coin_of: IntArray, rng: np.random.Generator) -> BoolArray:
    """Flip coins with probability exp(−exponents[which]), for any fractions from 0 on."""
    whole = np.array([int(exponent) for exponent in exponents], dtype=np.int64)[coin_of]
    heads = np.ones(len(coin_of), dtype=np.bool_)
    left = np.flatnonzero(whole)
    while left.size:  # exp(−n) is n coins of exp(−1), and the first tail ends it
        kept = _exp_coins([1], np.zeros(len(left), dtype=np.int64), 1, rng)
        heads[left[~kept]] = False
        left = left[kept]
        whole[left] -= 1
        left = left[whole[left] > 0]
    open_ = np.flatnonzero(heads)
    rests = [exponent - int(exponent) for exponent in exponents]
    common = int(np.lcm.reduce(np.array([rest.denominator for rest in rests], dtype=object)))
    heads[open_] = _exp_coins([int(rest * common) for rest in rests], coin_of[open_], common, rng)
    return heads


def geometric(size: int, rng: np.random.Generator) -> IntArray:
    """Count how many coins of probability exp(−1) fall on heads before the first tail."""
    successes = np.zeros(size, dtype=np.int64)
    going = np.arange(size)
    while going.size:
        going = going[_exp_coins([1], np.zeros(len(going), dtype=np.int64), 1, rng)]
        successes[going] += 1
    return successes


def laplace(scale: Fraction, size: int, rng: np.random.Generator) -> IntArray:
    """Draw from the discrete Laplace distribution, P(v) proportional to exp(−|v|/scale), exactly.

    With scale = n/d, a number x with probability proportional to exp(−x/n) is built from its remainder and its quotient by
    n; x // d is then the distance from 0 (algorithm 2 of the paper).
    """
    n, d = scale.numerator, scale.denominator
    noise = np.empty(size, dtype=np.int64)
    open_ = np.arange(size)
    while open_.size:
        rest = _remainders(n, len(open_), rng)
        # The sum of the two may need more than 64 bits where n has many digits.
        wide = object if n > 1 << 50 else np.int64
        distance = ((rest.astype(wide) + n * geometric(len(open_), rng).astype(wide)) // d).astype(np.int64)
        negative = rng.integers(0, 2, size=len(open_)).astype(np.bool_)
        kept = ~(negative & (distance == 0))  # or 0 would count twice
        noise[open_[kept]] = np.where(negative, -distance, distance)[kept]
        open_ = open_[~kept]
    return noise


def _remainders(n: int, size: int, rng: np.random.Generator) -> IntArray:
    """Draw numbers below n with probability proportional to exp(−u/n)."""
    remainders = np.empty(size, dtype=np.int64)
    open_ = np.arange(size)
    while open_.size:
        tried = rng.integers(0, n, size=len(open_))
        # As `_exp_coins`, but with coins of u/n and of 1/k: u has too many values for a list.
        even = np.ones(len(open_), dtype=np.bool_)
        going, k = np.arange(len(open_)), 1
        while going.size:
            heads = rng.integers(0, n, size=len(going)) < tried[going]
            if k > 1:
                heads &= rng.integers(0, k, size=len(going)) == 0
            going = going[heads]
            even[going] ^= True
            k += 1
        remainders[open_[even]] = tried[even]
        open_ = open_[~even]
    return remainders


def gaussian(sigma: Fraction, size: int, rng: np.random.Generator) -> IntArray:
    """Draw from the discrete Gaussian distribution, P(v) proportional to exp(−v²/2σ²), exactly.

    A discrete Laplace draw of scale t = ⌊σ⌋ + 1 is kept with probability exp(−(|v| − σ²/t)²/2σ²) (algorithm 3).
    """
    t = int(sigma) + 1
    variance = sigma**2
    noise = np.empty(size, dtype=np.int64)
    open_ = np.arange(size)
    while open_.size:
        draw = laplace(Fraction(t), len(open_), rng)
        distances, distance_of = np.unique(np.abs(draw), return_inverse=True)
        exponents = [(distance - variance / t) ** 2 / (2 * variance) for distance in distances.tolist()]
        kept = exp_coins(exponents, distance_of, rng)
        noise[open_[kept]] = draw[kept]
        open_ = open_[~kept]
    return noise


def choose(cumulative: list[Fraction], size: int, rng: np.random.Generator) -> IntArray:
    """Choose positions with probabilities given by their running sums, the last of which is 1."""
    whole = int(np.lcm.reduce(np.array([total.denominator for total in cumulative], dtype=object)))
    steps = [int(total * whole) for total in cumulative]
    if whole < 1 << 63:
        return np.searchsorted(np.array(steps, dtype=np.int64), rng.integers(0, whole, size=size), side="right")
    # Numbers beyond 64 bits: go from one to the next, with the probability that is left for each.
    chosen = np.full(size, len(steps) - 1, dtype=np.int64)
    going, before = np.arange(size), 0
    for at, step in enumerate(steps[:-1]):
        here = coins([step - before], np.zeros(len(going), dtype=np.int64), whole - before, rng)
        chosen[going[here]] = at
        going, before = going[~here], step
    return chosen
