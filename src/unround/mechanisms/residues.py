"""Random rounding by any table of probabilities, biased or not."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm

import numpy as np

from unround.errors import InputError
from unround.mechanisms.base import IntArray, fraction
from unround.mechanisms.rounding import TwoWay


@dataclass(frozen=True)
class Residues(TwoWay):
    """Random rounding in which the remainder determines the probability of going up.

    A true count that leaves the remainder r is published as the next multiple above with probability `up[r]`,
    else as the one below. The base is the number of probabilities.

    Parameters
    ----------
    up : probabilities
        One for every remainder, the first of them 0; fractions, or numbers or text that `Fraction` can take
        exactly.

    Examples
    --------
    >>> thirds = Residues(("0", "1/3", "2/3"))
    >>> thirds.chance(6, 4)
    Fraction(1, 3)
    >>> list(Residues(("0", "0", "1")).window(6))
    [5, 6, 7]
    """

    up: tuple[Fraction | str | float, ...]
    _share: IntArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        up = tuple(fraction(p) for p in self.up)
        if len(up) < 2:
            raise InputError("give one probability for every remainder, at least two, such as 0,1/3,2/3.")
        if up[0] != 0:
            raise InputError(f"a multiple of the base is never changed: the first probability must be 0, not {up[0]}.")
        for p in up:
            if not 0 <= p <= 1:
                raise InputError(f"a probability of going up must be from 0 to 1, not {p}.")
        whole = lcm(*(p.denominator for p in up))
        self._set(whole, len(up), f"rounding to base {len(up)}")
        object.__setattr__(self, "up", up)
        object.__setattr__(self, "_share", np.array([int(p * whole) for p in up]))

    @property
    def base(self) -> int:
        """The number of which published counts are multiples."""
        return len(self.up)

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return "residues:" + ",".join(str(p) for p in self.up)

    @property
    def sentence(self) -> str:
        """The assumption, as a sentence."""
        listed = ", ".join(f"{p} for {r}" for r, p in enumerate(self.up) if r)
        return (
            f"Random rounding to base {self.base}, up with a probability that depends on the remainder ({listed}), "
            "each count independently."
        )

    def _steps(self, true: IntArray) -> tuple[IntArray, int, IntArray]:
        rest = true % self.base
        return true - rest, self.base, self._share[rest]
