"""The residuals that independent rounding implies for every tested sum, and how far small counts leave that open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.checks.families import FamilyHistogram
from unround.checks.gather import FARTHEST, ResidualCounter, largest
from unround.checks.law import Laws
from unround.mechanisms import Exact, Mechanism

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ExpectedShares:
    """What is expected of a sum.

    - `shares`: Of each |r| from 0 on.
    - `extremes`: The same at the two extremes that the published counts allow for small ones.
    - `end`: The largest |r| that a sum of large counts can have.
    """

    shares: Floats
    extremes: tuple[Floats, ...]
    end: int

    @property
    def doubt(self) -> float:
        """How far the shares may be off (total variation)."""
        return max((float(np.abs(one - self.shares).sum() / 2) for one in self.extremes), default=0.0)

    @property
    def tails(self) -> tuple[float, float, float]:
        """The share of the largest |r|: expected, least and most."""
        found = [float(one[self.end :].sum()) for one in (self.shares, *self.extremes)]
        return found[0], min(found), max(found)


def expected_shares(gathered: ResidualCounter, mechanisms: Sequence[Mechanism | None], laws: Laws) -> list[ExpectedShares]:
    """Return what is expected of every sum."""
    found = []
    for s, one in enumerate(gathered.sums):
        first, total = int(gathered.offsets[s]), mechanisms[one.total] or Exact()
        rows = range(first, first + len(one.parts))
        extremes = laws.extremes(total, rows) or ()
        end = largest(one, mechanisms)
        found.append(ExpectedShares(_folded(laws.residuals(total, rows)), tuple(map(_folded, extremes)), end))
    return found


def _folded(shares: Floats) -> Floats:
    middle = len(shares) // 2
    folded = np.zeros(FARTHEST + 1)
    for far in range(middle + 1):
        folded[min(far, FARTHEST)] += shares[middle + far] + (shares[middle - far] if far else 0.0)
    return np.asarray(folded / max(folded.sum(), 1e-300))


def compared(
    folded: NDArray[np.int64], expected: Sequence[ExpectedShares], those: Sequence[int], alike: float
) -> FamilyHistogram:
    """Add up the histograms of some sums, those observed and those expected."""
    should, tails, tail, doubt = np.zeros(FARTHEST + 1), np.zeros(3), 0, 0.0
    for s in those:
        number = int(folded[s].sum())
        should += number * expected[s].shares
        tail += int(folded[s, expected[s].end :].sum())
        tails += number * np.array(expected[s].tails)
        doubt += number * expected[s].doubt
    observed = folded[list(those)].sum(0)
    least, most = float(tails[1]), float(tails[2])
    return FamilyHistogram(observed, should, tail, float(tails[0]), alike, doubt / max(observed.sum(), 1), (least, most))
