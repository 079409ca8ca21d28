"""The residuals of the tested sums over all areas, with what their expectation needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.checks.law import even_shares, reach_of
from unround.checks.sums import TestedSum
from unround.mechanisms import Exact, Mechanism
from unround.mechanisms.base import step_of
from unround.prior.histograms import BELOW, CAP, Tallies
from unround.release import Counts
from unround.structure.adding import AddUp
from unround.structure.scatter import ScatterWindows

FARTHEST = 400
"""Residuals further from zero than this are counted as this."""

_CELLS = 2_000_000
"""Counts that are processed at once."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ImpossibleSum:
    """An area in which a sum cannot hold: its place in the release, the sum, and the published counts."""

    area: int
    sum: int
    published: tuple[int, ...]
    within: bool
    """Whether it could hold if an exact count had been changed by as much as the agency says."""


SIZES = (1, 2, 5, 20)
"""Totals are also grouped by size: from the least, from twice that, …"""

GROUPS = 8
"""Parts of the file, one after the other, that are also counted apart: whatever holds should hold in all of them."""

MOST_STEPS = 4
"""Residuals of more steps are counted as this many, where steps are counted."""

TWINS = 0.5
"""Parts that are closer than this share of what chance makes of them are twins."""

MOST_EXAMPLES = 3
"""Impossible sums that are kept of each."""


class ResidualCounter:
    """Adds up residuals block by block.

    - `sums`: What is tested.
    - `mechanisms`: One per column of the release.
    - `adjusted`: By how much the agency may have changed exact counts, per column.
    - `families`: The sums of each family, to measure how alike the sums of one area are.
    - `areas`: How many areas there will be.
    """

    def __init__(
        self,
        sums: Sequence[TestedSum],
        mechanisms: Sequence[Mechanism | None],
        adjusted: Sequence[int],
        families: Mapping[str, Sequence[int]],
        areas: int,
    ) -> None:
        self.sums = tuple(sums)
        self.used = sorted({c for one in sums for c in one.members})
        place = {column: at for at, column in enumerate(self.used)}
        self._kinds = [mechanisms[c] or Exact() for c in self.used]
        self._exact = ScatterWindows(self._kinds, [0] * len(self.used))
        self._slack = np.array([adjusted[c] for c in self.used], dtype=np.int64)
        self._total = np.array([place[one.total] for one in sums], dtype=np.int64)
        self._places = [np.array([place[c] for c in one.parts]) for one in sums]
        self._parts = AddUp(self._places)
        self._least = np.array([one.least for one in sums], dtype=np.int64)[:, None]
        self.even = [_even(one, mechanisms) for one in sums]
        self._spread = np.array([max(_spread(shares), 1e-9) for shares in self.even])
        self._families = AddUp(list(families.values()))
        k, f = len(sums), len(families)
        self.complete, self.impossible, self.beyond = (np.zeros(k, dtype=np.int64) for _ in range(3))
        self.sized = np.zeros((k, len(SIZES), FARTHEST + 1), dtype=np.int64)
        self.stepped = np.zeros((k, GROUPS, MOST_STEPS + 1), dtype=np.int64)
        self._steps = np.array([step_of(mechanisms[one.total] or Exact()) for one in sums], dtype=np.int64)[:, None]
        # Of sums of two parts: how far apart these are, squared, and how many people they have.
        self._two = np.array([s for s, one in enumerate(sums) if len(one.parts) == 2], dtype=np.int64)
        self._pairs = np.array([self._places[s] for s in self._two.tolist()], dtype=np.int64).reshape(-1, 2)
        self._apart, self._people = np.zeros(k), np.zeros(k)
        self._expected_areas = max(areas, 1)
        self.examples: dict[int, list[ImpossibleSum]] = {}
        self.offsets = np.cumsum([0, *(len(one.parts) for one in sums)])
        self.tallies: Tallies = np.zeros((int(self.offsets[-1]), BELOW + CAP + 1), dtype=np.int32)
        self.number, self.square, self.weight, self.weight_square, self.cross, self.single = (np.zeros(f) for _ in range(6))
        self._done = 0
        self.areas = 0

    @property
    def folded(self) -> Ints:
        """How often each |r| was published, sums × |r|."""
        return np.asarray(self.sized.sum(1))

    @property
    def twins(self) -> frozenset[int]:
        """The sums whose two parts are nearly the same count, such as married men and women.

        People who are one or the other, each by chance, make the parts differ by as much, squared, as there are people.
        """
        return frozenset(np.flatnonzero((self._people > 0) & (self._apart < TWINS * self._people)).tolist())

    @property
    def row_mechanisms(self) -> list[Mechanism]:
        """The mechanism of every row of `tallies`: for each sum its parts."""
        return [self._kinds[place] for places in self._places for place in places.tolist()]

    def add(self, counts: Counts) -> None:
        """Take in some areas, areas × columns of the release."""
        size = max(16, _CELLS // max(1, len(self.sums) + len(self.used)))
        for start in range(0, len(counts), size):
            self._add(counts[start : start + size])

    def _add(self, counts: Counts) -> None:
        areas = len(counts)
        self.areas += areas
        if not self.sums:
            self._done += areas
            return
        shown = np.ascontiguousarray(counts[:, self.used])
        down, up, seen = self._exact.of(shown, np.zeros(areas, dtype=np.bool_))
        published = np.ascontiguousarray(np.where(seen, shown, 0).T, dtype=np.int64)
        low, high = (np.ascontiguousarray(far.T, dtype=np.int64) for far in (down, up))
        hidden = np.ascontiguousarray(~seen.T, dtype=np.int64)
        parts, total = self._parts, self._total
        complete = (parts @ hidden + hidden[total]) == 0
        whole = published[total]
        residual = whole - parts @ published
        least, most = -(parts @ low + high[total]), parts @ high + low[total]
        fine = (residual >= least) & (residual <= most)
        self.complete += complete.sum(1)
        self._keep_impossible(complete & ~fine, residual, least, most, counts)
        chosen = complete & fine & (whole >= self._least)
        self._fold(chosen, residual, np.searchsorted(SIZES, whole // self._least, side="right") - 1)
        self._tally(chosen, published)
        if self._two.size:
            first, second, both = published[self._pairs[:, 0]], published[self._pairs[:, 1]], chosen[self._two]
            self._apart[self._two] += np.where(both, (first - second) ** 2, 0).sum(1)
            self._people[self._two] += np.where(both, first + second, 0).sum(1)
        self._done += areas

    def _keep_impossible(self, wrong: NDArray[np.bool_], residual: Ints, least: Ints, most: Ints, counts: Counts) -> None:
        self.impossible += wrong.sum(1)
        slack = (self._parts @ self._slack + self._slack[self._total])[:, None]
        beyond = wrong & ((residual < least - slack) | (residual > most + slack))
        self.beyond += beyond.sum(1)
        for s in np.flatnonzero(wrong.any(1)).tolist():
            kept = self.examples.setdefault(s, [])
            for area in np.flatnonzero(wrong[s])[: MOST_EXAMPLES - len(kept)].tolist():
                values = tuple(int(counts[area, c]) for c in self.sums[s].members)
                kept.append(ImpossibleSum(self._done + area, s, values, not beyond[s, area]))

    def _fold(self, chosen: NDArray[np.bool_], residual: Ints, size: Ints) -> None:
        width = self.sized.shape[2]
        far = np.minimum(np.abs(residual), FARTHEST)
        place = far + width * (size + len(SIZES) * np.arange(len(self.sums))[:, None])
        self.sized += np.bincount(place[chosen], minlength=self.sized.size).reshape(self.sized.shape)
        group = (self._done + np.arange(far.shape[1])) * GROUPS // self._expected_areas
        place = np.minimum(far // self._steps, MOST_STEPS) + (MOST_STEPS + 1) * (
            group + GROUPS * np.arange(len(self.sums))[:, None]
        )
        self.stepped += np.bincount(place[chosen], minlength=self.stepped.size).reshape(self.stepped.shape)
        weight = np.where(chosen, far / self._spread[:, None], 0.0)
        number, together = self._families @ chosen.astype(np.float64), self._families @ weight
        self.number += number.sum(1)
        self.square += (number**2).sum(1)
        self.weight += together.sum(1)
        self.weight_square += (together**2).sum(1)
        self.cross += (number * together).sum(1)
        self.single += (self._families @ weight**2).sum(1)

    def _tally(self, chosen: NDArray[np.bool_], published: Ints) -> None:
        """Count what was published of the parts, in the areas that are compared."""
        width = self.tallies.shape[1]
        place = np.clip(published, -BELOW, CAP) + BELOW
        for s, places in enumerate(self._places):
            first = int(self.offsets[s])
            for i, at in enumerate(places.tolist()):
                here = place[at][chosen[s]]
                self.tallies[first + i] += np.bincount(here, minlength=width).astype(np.int32)

    def alike(self, family: int) -> float:
        """Return how much more the sums of one area vary together than independent ones would; at least 1."""
        n = self.number[family]
        if n < 2:
            return 1.0
        mean = self.weight[family] / n
        between = self.weight_square[family] - 2 * mean * self.cross[family] + mean**2 * self.square[family]
        within = self.single[family] - n * mean**2
        return float(max(1.0, between / within)) if within > 0 else 1.0


def _even(one: TestedSum, mechanisms: Sequence[Mechanism | None]) -> Floats:
    """Return the shares of the residuals of a sum of large counts."""
    return even_shares(mechanisms[one.total] or Exact(), tuple(mechanisms[part] or Exact() for part in one.parts))


def _spread(shares: Floats) -> float:
    far = np.arange(len(shares)) - len(shares) // 2
    return float((shares @ far**2) ** 0.5)


def largest(one: TestedSum, mechanisms: Sequence[Mechanism | None]) -> int:
    """Return the largest |r| that a sum of large counts can have."""
    kinds = [mechanisms[c] or Exact() for c in one.members]
    reach = sum([min(reach_of(how), step_of(how) - 1) if step_of(how) > 1 else reach_of(how) for how in kinds])
    common = np.gcd.reduce([step_of(how) for how in kinds])
    return int(reach - reach % common)
