"""The nearest whole numbers that add up: counts are projected on the sums, and then rounded so that these hold."""

from __future__ import annotations

import numpy as np

from unround.additive.costs import Estimates
from unround.additive.rounding import Rounder
from unround.errors import InputError
from unround.evidence.block import Ints
from unround.mechanisms.base import BoolArray, IntArray
from unround.sums.compiled import compile_sums
from unround.sums.forest import Equations


def nearest_whole(counts: IntArray, low: Ints, high: Ints, sums: Equations, active: BoolArray) -> IntArray:
    """Return the numbers within bounds, areas × columns, that are nearest to counts in squares and add up.

    `active` are the sums that are to hold in each area. Raises `InputError` where no such numbers are found.
    """
    none = np.zeros(counts.shape)
    estimates = Estimates(
        mean=counts.astype(np.float64),
        spread=none + 1.0,
        least=none,
        low=low.astype(np.int32),
        high=high.astype(np.int32),
        active=active.copy(),
        wide=np.zeros((len(counts), 1), dtype=np.bool_),
        clash=none > 0,
        known=none == 0,
    )
    rounder = Rounder(compile_sums(counts.shape[1], sums, frozenset()), sums, estimates, ())
    rounder.settle_means()
    numbers = rounder.round()
    if rounder.left:
        raise InputError(f"no whole numbers that add up were found for {len({row for row, _ in rounder.left}):,} areas")
    return numbers.astype(np.int64)
