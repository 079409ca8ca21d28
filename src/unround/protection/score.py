"""What protecting a table costs: how far published counts are from true ones, and how far sums are from adding up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unround.infer.bounds import Equations
from unround.mechanisms import HIDDEN
from unround.mechanisms.base import IntArray

NEAR = 4
"""The paper's yardstick: rounding to base 5 never moves a count by more."""
SMALL = 5
"""True counts below this are small: bias shows in them first."""


@dataclass
class ProtectionScore:
    """How a published table compares with the true one. Columns that were published as they are do not count.

    Parameters
    ----------
    counts, off, distance, squares, near, farthest
        How many counts were published; the sums of published − true, of its size and of its square; how many are at most
        `NEAR` away; and the largest distance.
    small, small_off
        True counts below `SMALL`: how many, and the sum of published − true.
    negative, hidden : int
        Counts published below 0; and counts that exist but were not published.
    sums, broken, gap
        How many sums have all of their counts published, in how many of them total and parts differ, and by how much in
        all.
    """

    counts: int = 0
    off: int = 0
    distance: int = 0
    squares: int = 0
    near: int = 0
    farthest: int = 0
    small: int = 0
    small_off: int = 0
    negative: int = 0
    hidden: int = 0
    sums: int = 0
    broken: int = 0
    gap: int = 0

    def add(self, published: IntArray, true: IntArray, sums: Equations, exact: frozenset[int] = frozenset()) -> None:
        """Count in some areas: tables of areas × columns, with `HIDDEN`, and negative numbers for no count."""
        counted = true >= 0
        counted[:, sorted(exact)] = False
        shown = counted & (published != HIDDEN)
        off = (published - true)[shown]
        self.counts += off.size
        self.off += int(off.sum())
        self.distance += int(np.abs(off).sum())
        self.squares += int((off * off).sum())
        self.near += int((np.abs(off) <= NEAR).sum())
        self.farthest = max(self.farthest, int(np.abs(off).max(initial=0)))
        small = true[shown] < SMALL
        self.small += int(small.sum())
        self.small_off += int(off[small].sum())
        self.negative += int((published[shown] < 0).sum())
        self.hidden += int((counted & (published == HIDDEN)).sum())
        for total, parts in sums:
            members = published[:, [total, *parts]]
            members = members[(members != HIDDEN).all(axis=1)]
            gap = np.abs(members[:, 0] - members[:, 1:].sum(axis=1))
            self.sums += gap.size
            self.broken += int((gap > 0).sum())
            self.gap += int(gap.sum())

    @property
    def mean_error(self) -> float | None:
        """How far published counts are from true ones on average, either way."""
        return self.distance / self.counts if self.counts else None

    @property
    def rmse(self) -> float | None:
        """The root of the mean square of the same."""
        return (self.squares / self.counts) ** 0.5 if self.counts else None

    @property
    def within_4(self) -> float | None:
        """The share of counts that are at most 4 away."""
        return self.near / self.counts if self.counts else None

    @property
    def bias(self) -> float | None:
        """The mean of published − true."""
        return self.off / self.counts if self.counts else None

    @property
    def small_bias(self) -> float | None:
        """The same for true counts below 5."""
        return self.small_off / self.small if self.small else None

    @property
    def broken_share(self) -> float | None:
        """The share of sums whose published total is not the sum of its published parts."""
        return self.broken / self.sums if self.sums else None

    @property
    def mean_gap(self) -> float | None:
        """How far totals are from the sum of their parts on average."""
        return self.gap / self.sums if self.sums else None

    def to_json(self) -> dict[str, int | float | None]:
        """Return it as plain data."""
        return {
            "counts": self.counts,
            "mean_error": self.mean_error,
            "rmse": self.rmse,
            "within_4": self.within_4,
            "largest_error": self.farthest,
            "bias": self.bias,
            "small_bias": self.small_bias,
            "negative": self.negative,
            "hidden": self.hidden,
            "sums": self.sums,
            "sums_off": self.broken_share,
            "mean_gap": self.mean_gap,
        }
