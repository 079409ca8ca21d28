"""Random rounding whose base depends on the size of the count."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from math import lcm

import numpy as np

from unround.errors import InputError
from unround.mechanisms.base import IntArray
from unround.mechanisms.rounding import TwoWay, check_base

STATS_NZ = ((0, 3), (19, 2), (20, 5), (100, 10), (1000, 100))
"""New Zealand's bands, as pairs of the first count and the base: 0 to 18 go to base 3, 19 to base 2 …"""


class Banded(TwoWay):
    """Unbiased random rounding to a neighbouring multiple of the base of the count's own band."""

    _starts: IntArray
    _bases: IntArray

    def _set_bands(self, bands: tuple[tuple[int, int], ...], how: str) -> None:
        """Set the bands, given as pairs of a first count and a base."""
        if not bands or bands[0][0] != 0 or any(this[0] >= after[0] for this, after in pairwise(bands)):
            raise InputError("bands must start at 0 and be in increasing order, such as 0=3,19=2,20=5.")
        for _, base in bands:
            check_base(base)
        bases = [base for _, base in bands]
        self._set(lcm(*bases), max(bases), how)
        object.__setattr__(self, "_starts", np.array([start for start, _ in bands]))
        object.__setattr__(self, "_bases", np.array(bases))

    def _steps(self, true: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        width = self._bases[np.searchsorted(self._starts, true, side="right") - 1]
        rest = true % width
        return true - rest, width, rest * (self._whole // width)


@dataclass(frozen=True)
class Graduated(Banded):
    """Graduated random rounding: the base grows with the count.

    A true count goes to one of the two multiples around it of its own band's base, without bias. A window can
    therefore cross the border between two bands.

    Parameters
    ----------
    bands : pairs of int
        The first count of every band and its base; New Zealand's by default.

    Examples
    --------
    >>> {x: str(Graduated().chance(20, x)) for x in Graduated().window(20)}
    {19: '1/2', 20: '1', 21: '4/5', 22: '3/5', 23: '2/5', 24: '1/5'}
    """

    bands: tuple[tuple[int, int], ...] = STATS_NZ
    _starts: IntArray = field(init=False, repr=False, compare=False)
    _bases: IntArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bands", tuple((int(start), int(base)) for start, base in self.bands))
        self._set_bands(self.bands, f"random rounding to {self._listed}")

    @property
    def _listed(self) -> str:
        return ", ".join(f"base {base} from {start}" for start, base in self.bands)

    @property
    def name(self) -> str:
        """Its name on the command line."""
        if self.bands == STATS_NZ:
            return "graduated"
        return "graduated:" + ",".join(f"{start}={base}" for start, base in self.bands)

    @property
    def sentence(self) -> str:
        """The assumption, as a sentence."""
        return f"Unbiased random rounding to a base that depends on the count ({self._listed}), each count independently."


@dataclass(frozen=True)
class Sample(Banded):
    """Random rounding without small counts: those under twice the base become 0 or twice the base.

    The form of Canada's 25% sample data: counts under 10 become 0 or 10, without bias; from 10 on it is
    ordinary random rounding to base 5.

    Examples
    --------
    >>> window = Sample(5).window(10)
    >>> window.low, window.high
    (1, 14)
    >>> Sample(5).chance(10, 3)
    Fraction(3, 10)
    """

    base: int = 5
    _starts: IntArray = field(init=False, repr=False, compare=False)
    _bases: IntArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_base(self.base)
        twice = 2 * self.base
        how = f"random rounding to base {self.base} with counts under {twice} going to 0 or {twice}"
        self._set_bands(((0, twice), (twice, self.base)), how)

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return f"sample:{self.base}"

    @property
    def sentence(self) -> str:
        """The assumption, as a sentence."""
        twice = 2 * self.base
        return (
            f"Unbiased random rounding to base {self.base}, counts under {twice} to 0 or {twice}, each count independently."
        )
