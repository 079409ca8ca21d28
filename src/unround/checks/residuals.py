"""The residuals (total − parts) that the mechanisms imply if every count was published independently.

Rounding moves a count by an error e = published − true that depends on its remainder. Whatever the distribution of the
remainders, the errors of all parts and the remainder of their sum follow by convolution; the remainder of the sum is that of
the total, whose own error comes last: P(r) = Σ over remainders ρ and sums s of the parts' errors, P(ρ, s)·P(e = r + s | ρ).
Large counts have even remainders, and this is the closed form of `unround.expectation`. Small ones do not: their
distribution is deconvolved from the published counts of the areas that are compared, as for the prior of an audit. The total
is always large: sums are compared from a least total on.

With keys (`mechanisms.keyed`) the same convolution holds at every frequency k around the circle of random numbers, with
∫ exp(2πiku) du over the arc of a rounding in place of its probability: the expected shares at a constant c are those of
independent rounding (k = 0) and Σ exp(2πikc) times those at k. Few frequencies matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.checks.families import FamilyHistogram, TestedSum
from unround.mechanisms import Cutoff, Exact, Mechanism, Rounding, Sample
from unround.mechanisms.base import FloatArray, step_of
from unround.prior.deconvolve import BELOW, CAP, SIZE, Tallies, fit_all
from unround.release import Counts
from unround.structure.residuals import AddUp, ScatterWindows

WIDEST = 64
"""Errors further from zero than this are left out: only noise without bounds has any."""

_FAR = 10_000
"""A count as large as this behaves like any larger one."""

SMALL, FEW = 8, 0.005
"""Counts under so many steps have remainders that are not even, which matters unless fewer than this share are so small."""

_DETAIL = 40
"""Counts from so many steps on have even remainders, whatever their distribution."""


_REACH: dict[Mechanism, int] = {}
_ERRORS: dict[tuple[Mechanism, int, bool], tuple[NDArray[Any], NDArray[Any]]] = {}
_EVEN: dict[tuple[Mechanism, ...], FloatArray] = {}


def reach_of(mechanism: Mechanism) -> int:
    """Return how far a published count can be from the true one, at most `WIDEST`."""
    if mechanism in _REACH:
        return _REACH[mechanism]
    true = np.concatenate([np.arange(200), _FAR + np.arange(60)])
    errors = np.arange(-WIDEST, WIDEST + 1)
    seen = mechanism.likelihood(true[:, None] + errors, true[:, None]).max(0) > 1e-12
    return _REACH.setdefault(mechanism, int(np.abs(errors[seen]).max()) if seen.any() else 0)


def _errors(mechanism: Mechanism, modulus: int, keyed: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the likelihood of each error, for true counts 0, 1, …, and on average over large ones, by remainder.

    With keys, at all frequencies.
    """
    key = mechanism, modulus, keyed
    if key in _ERRORS:
        return _ERRORS[key]
    if keyed:
        small, large = _errors(mechanism, modulus, False)
        return _ERRORS.setdefault(key, (at_frequencies(small), at_frequencies(large)))
    reach = reach_of(mechanism)
    errors = np.arange(-reach, reach + 1)
    true = np.arange(SIZE)
    small = mechanism.likelihood(true[:, None] + errors, true[:, None])
    far = _FAR - _FAR % modulus + np.arange(modulus * step_of(mechanism))
    large = mechanism.likelihood(far[:, None] + errors, far[:, None])
    by_rest = np.stack([large[far % modulus == rest].mean(0) for rest in range(modulus)])
    return _ERRORS.setdefault(key, (small, by_rest))


FREQUENCIES = 14
"""How many frequencies are used: with more, no share of two parts would change by 1e-4."""

FINE = 60
"""Weighted counts are treated as whole numbers of a unit so small that the base has this many: as good as continuous."""

Series = NDArray[np.complex128]
"""Shares at frequencies 0, 1, …: frequencies × shares."""


def at_frequencies(likelihood: FloatArray) -> Series:
    """Return ∫ exp(2πiku) du over the arcs of two-way roundings: frequencies × whatever × errors, as many on either side."""
    up = np.arange(likelihood.shape[-1]) > likelihood.shape[-1] // 2
    turns = 2j * np.pi * np.arange(1, FREQUENCIES + 1).reshape(-1, *(1,) * likelihood.ndim)
    # An arc [0, p), or what is left of the circle without it: over all of it, the integral is 0.
    arcs = (np.exp(turns * np.where(up, likelihood, 1 - likelihood)) - 1) / turns * np.where(up, 1, -1)
    return np.concatenate([likelihood[np.newaxis].astype(np.complex128), arcs])


def keyed_shares(series: Series, constants: FloatArray | float) -> FloatArray:
    """Return the expected shares at a constant, or at each of several, from those at all frequencies."""
    at = np.arange(len(series))
    turns = np.exp(2j * np.pi * np.multiply.outer(constants, at)) * np.where(at > 0, 2, 1)
    return np.asarray((turns @ series).real.clip(0.0))


def joint(mechanism: Mechanism, counts: FloatArray, beyond: float, modulus: int, keyed: bool = False) -> NDArray[Any]:
    """Return how often each remainder comes with each error: remainders × errors, as many on either side."""
    small, large = _errors(mechanism, modulus, keyed)
    shares = beyond * large / modulus
    if beyond < 1:
        weights = (1 - beyond) * counts[:, None] * small
        for rest in range(modulus):
            shares[..., rest, :] += weights[..., rest::modulus, :].sum(-2)
    return np.asarray(shares)


def residual_shares(total: NDArray[Any], parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the probabilities of the residuals from −R to R, where R is all that the errors allow.

    Notes
    -----
    At frequencies, a first axis, the total's random number is on the other side of the equation: conjugated.
    """
    modulus, width = total.shape[-2:]
    length = sum(part.shape[-1] - 1 for part in parts) + width
    # Remainders are circular, and so is their part of the transform; errors have enough room.
    together = np.ones((modulus, length), dtype=np.complex128)
    for part in parts:
        together = together * np.fft.fft2(part, (modulus, length))
    often = total.reshape(-1, modulus, width)[0].real.sum(-1, keepdims=True)
    given = np.fft.fft((total / np.maximum(often, 1e-300)).conj()[..., ::-1], length)
    # The remainder of the total is that of the parts' sum. r = e − s: the total's errors the other way round, and back.
    shares = np.fft.ifft((np.fft.ifft(together, axis=-2) * given).sum(-2))[..., ::-1]
    whole = shares.reshape(-1, length)[0].real.clip(0.0).sum()
    return np.asarray((shares if total.ndim > 2 else shares.real.clip(0.0)) / max(float(whole), 1e-300))


def even_shares(total: Mechanism, parts: tuple[Mechanism, ...]) -> FloatArray:
    """Return the same for large counts, whose remainders are even."""
    if (total, *parts) not in _EVEN:
        laws = [joint(how, np.zeros(SIZE), 1.0, step_of(total)) for how in (total, *parts)]
        _EVEN[total, *parts] = residual_shares(laws[0], laws[1:])
    return _EVEN[total, *parts]


@cache
def even_series(base: int, parts: int, whole: bool = True) -> Series:
    """Return the shares of |r| = 0, b, 2b … at all frequencies, for large counts that were all rounded to base b.

    Examples
    --------
    >>> [round(float(share), 4) for share in keyed_shares(even_series(5, 2), 0.3)]
    [0.574, 0.408, 0.018]
    """
    how = Rounding(base if whole else max(base, FINE))
    law = joint(how, np.zeros(SIZE), 1.0, how.base, keyed=True)
    return folded_steps(residual_shares(law, [law] * parts), how.base, parts)


def folded_steps(shares: NDArray[Any], base: int, parts: int) -> NDArray[Any]:
    """Return the shares of |r| = 0, b, 2b …, as many as a sum of so many parts can have, from those of all residuals."""
    middle = shares.shape[-1] // 2
    steps = base * np.arange(parts + 1)
    inside = np.where(steps <= middle, steps, 0)
    both = np.where(steps > 0, shares[..., middle + inside], 0) + shares[..., middle - inside]
    return np.asarray(np.where(steps <= middle, both, 0))


class Laws:
    """The expected residuals of many sums, from the published counts of the areas in which each is compared.

    - `mechanisms`: Of every row of the tallies.
    - `tallies`: How often each count was published: rows × places, as in `unround.prior.deconvolve`.
    """

    def __init__(self, mechanisms: Sequence[Mechanism], tallies: Tallies) -> None:
        self._mechanisms = mechanisms
        self._beyond = np.ones(len(mechanisms))
        self._counts: dict[int, FloatArray] = {}
        alike: dict[Mechanism, list[int]] = {}
        for row, how in enumerate(mechanisms):
            small = tallies[row, : BELOW + SMALL * step_of(how)].sum()
            if small > FEW * tallies[row].sum():
                alike.setdefault(how, []).append(row)
        for how, rows in alike.items():
            some = tallies[rows].copy()
            number = some.sum(1)
            some[:, BELOW + _DETAIL * step_of(how) :] = 0
            self._beyond[rows] = 1 - some.sum(1) / number
            self._counts |= dict(zip(rows, fit_all(some, how), strict=True))

    def residuals(self, total: Mechanism, parts: Sequence[int]) -> FloatArray:
        """Return the probabilities of the residuals from −R to R of one sum."""
        return self._shares(total, parts, lambda counts, _: counts)

    def series(self, total: Mechanism, parts: Sequence[int]) -> Series:
        """Return the shares of |r| = 0, b, 2b … at all frequencies, for a sum whose counts were all rounded to one base."""
        shares = self._shares(total, parts, lambda counts, _: counts, keyed=True)
        return folded_steps(shares, step_of(total), len(parts))

    def extremes(self, total: Mechanism, parts: Sequence[int]) -> tuple[FloatArray, FloatArray] | None:
        """Return the narrowest and the widest probabilities of the residuals that the published counts allow.

        Rounding without bias hides how the smallest counts, below what they are rounded up to, are distributed: any
        distribution with the same mean would publish as many 0s. At one extreme, all were 0 or went up for sure; at the
        other all were equal. None where there are no such counts.
        """
        if not any(row in self._counts and _lowest(self._mechanisms[row]) for row in parts):
            return None
        return self._shares(total, parts, _at_the_ends), self._shares(total, parts, _in_the_middle)

    def _shares(
        self, total: Mechanism, parts: Sequence[int], changed: Callable[[FloatArray, int], FloatArray], keyed: bool = False
    ) -> NDArray[Any]:
        modulus, none = step_of(total), np.zeros(SIZE)
        laws = []
        for row in parts:
            how, counts = self._mechanisms[row], self._counts.get(row, none)
            laws.append(joint(how, changed(counts, _lowest(how)), float(self._beyond[row]), modulus, keyed))
        return residual_shares(joint(total, none, 1.0, modulus, keyed), laws)


def _lowest(how: Mechanism) -> int:
    """Return what the smallest counts are rounded up to; 0 where they are not rounded at random."""
    return int(how.base * (2 if isinstance(how, Sample) else 1)) if isinstance(how, Rounding | Sample) else 0


def _at_the_ends(counts: FloatArray, lowest: int) -> FloatArray:
    """Move all smaller counts to 0 and `lowest`, which keeps their mean."""
    moved = counts.copy()
    if lowest:
        weight, mean = counts[:lowest].sum(), float(counts[:lowest] @ np.arange(lowest))
        moved[:lowest] = 0.0
        moved[0], moved[lowest] = weight - mean / lowest, counts[lowest] + mean / lowest
    return moved


def _in_the_middle(counts: FloatArray, lowest: int) -> FloatArray:
    """Move all smaller counts to their mean."""
    moved = counts.copy()
    if lowest and (weight := float(counts[:lowest].sum())) > 0:
        mean = float(counts[:lowest] @ np.arange(lowest)) / weight
        moved[:lowest] = 0.0
        moved[int(mean)] += weight * (int(mean) + 1 - mean)
        moved[int(mean) + 1] += weight * (mean - int(mean))
    return moved


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
        return max((float(np.abs(extreme - self.shares).sum() / 2) for extreme in self.extremes), default=0.0)

    @property
    def tails(self) -> tuple[float, float, float]:
        """The share of the largest |r|: expected, least and most."""
        tails = [float(law[self.end :].sum()) for law in (self.shares, *self.extremes)]
        return tails[0], min(tails), max(tails)


def expected_shares(gathered: ResidualCounter, mechanisms: Sequence[Mechanism | None], laws: Laws) -> list[ExpectedShares]:
    """Return what is expected of every sum."""
    laws_of_sums = []
    for s, tested in enumerate(gathered.sums):
        first, total = int(gathered.offsets[s]), mechanisms[tested.total] or Exact()
        rows = range(first, first + len(tested.parts))
        both_ways = map(folded, (laws.residuals(total, rows), *(laws.extremes(total, rows) or ())))
        shares, *extremes = (often / max(often.sum(), 1e-300) for often in both_ways)
        laws_of_sums.append(ExpectedShares(shares, tuple(extremes), largest(tested, mechanisms)))
    return laws_of_sums


def folded(shares: Floats) -> Floats:
    """Return the shares of |r| from 0 on, those far out taken together."""
    middle = len(shares) // 2
    both = np.zeros(FARTHEST + 1)
    for far in range(middle + 1):
        both[min(far, FARTHEST)] += shares[middle + far] + (shares[middle - far] if far else 0.0)
    return both


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


LEAN_ERRORS, LEAN_LEAST = 8.0, 0.1
"""Parts lean if their total exceeds them by so many standard errors on average, and by this for each of them."""

LEFT = 0.3
"""A limit explains that if it leaves less than this share of it, and the next best leaves twice as much as it does."""


def find_cutoff(gathered: ResidualCounter, mechanisms: Sequence[Mechanism | None], s: int) -> tuple[int, float] | None:
    """Return the limit under which the parts of a sum seem to become 0 before they are rounded, and how far off it may be.

    Rounding without bias makes parts neither larger nor smaller on average. Where the total exceeds them, small counts may
    have become 0. What a limit implies follows from the published counts: for each limit true counts are deconvolved, and
    so is by how much they exceed published ones on average. The limit that implies the mean residual is the answer.
    """
    tested, number = gathered.sums[s], int(gathered.sized[s].sum())
    kinds = {mechanisms[part] for part in tested.parts}
    how = next(iter(kinds))
    if number < LEAST_LEANING or len(tested.parts) < 2 or len(kinds) > 1 or not isinstance(how, Rounding):
        return None
    mean = gathered.signed[s] / number
    error = (gathered.signed_square[s] / number / number) ** 0.5
    if mean < max(LEAN_ERRORS * error, LEAN_LEAST * len(tested.parts)):
        return None
    first = int(gathered.offsets[s])
    tallies = gathered.tallies[first : first + len(tested.parts)]
    limits = range(1, how.base + 1)  # beyond, the base itself would hardly ever be published
    implied = np.array([_exceeding(tallies, Cutoff(limit, how)) / number for limit in limits])
    left = np.abs(implied - mean)
    best, second = (int(at) for at in np.argsort(left)[:2])
    if left[best] > LEFT * mean or 2 * left[best] > left[second]:
        return None
    return limits[best], float(left[best] / abs(implied[second] - implied[best]))


def _exceeding(tallies: Tallies, how: Mechanism) -> float:
    """Return by how much true counts exceed published ones, all parts and areas together, as a mechanism implies."""
    fitted, true = fit_all(tallies, how), np.arange(SIZE)
    total = 0.0
    for published in np.flatnonzero(tallies[:, BELOW:-1].any(0)).tolist():
        weights = fitted * how.likelihood(published, true)
        often = tallies[:, BELOW + published]
        total += float(often @ (weights @ true / np.maximum(weights.sum(1), 1e-300) - published))
    return total


LEAST_LEANING = 300
"""Fewer sums do not tell whether parts lean."""

FARTHEST = 400
"""Residuals further from zero than this are counted as this."""

_CELLS = 2_000_000
"""Counts that are processed at once."""

Ints = NDArray[np.int64]


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
        self.used = sorted({c for tested in sums for c in tested.members})
        place = {column: at for at, column in enumerate(self.used)}
        self._kinds = [mechanisms[c] or Exact() for c in self.used]
        self._exact = ScatterWindows(self._kinds, [0] * len(self.used))
        self._may_differ_by = np.array([adjusted[c] for c in self.used], dtype=np.int64)
        self._total = np.array([place[tested.total] for tested in sums], dtype=np.int64)
        self._places = [np.array([place[c] for c in tested.parts]) for tested in sums]
        self._parts = AddUp(self._places)
        self._least = np.array([tested.least for tested in sums], dtype=np.int64)[:, None]
        self.even = [_even(tested, mechanisms) for tested in sums]
        self._spread = np.array([max(_spread(shares), 1e-9) for shares in self.even])
        self._families = AddUp(list(families.values()))
        k, f = len(sums), len(families)
        self.complete, self.impossible, self.beyond = (np.zeros(k, dtype=np.int64) for _ in range(3))
        self.signed, self.signed_square = np.zeros(k), np.zeros(k)
        self.sized = np.zeros((k, len(SIZES), FARTHEST + 1), dtype=np.int64)
        self.stepped = np.zeros((k, GROUPS, MOST_STEPS + 1), dtype=np.int64)
        self._steps = np.array([step_of(mechanisms[tested.total] or Exact()) for tested in sums], dtype=np.int64)[:, None]
        # Of sums of two parts: how far apart these are, squared, and how many people they have.
        self._two = np.array([s for s, tested in enumerate(sums) if len(tested.parts) == 2], dtype=np.int64)
        self._pairs = np.array([self._places[s] for s in self._two.tolist()], dtype=np.int64).reshape(-1, 2)
        self._apart, self._people = np.zeros(k), np.zeros(k)
        self._expected_areas = max(areas, 1)
        self.examples: dict[int, list[ImpossibleSum]] = {}
        self.offsets = np.cumsum([0, *(len(tested.parts) for tested in sums)])
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
        may_differ_by = (self._parts @ self._may_differ_by + self._may_differ_by[self._total])[:, None]
        beyond = wrong & ((residual < least - may_differ_by) | (residual > most + may_differ_by))
        self.beyond += beyond.sum(1)
        for s in np.flatnonzero(wrong.any(1)).tolist():
            kept = self.examples.setdefault(s, [])
            for area in np.flatnonzero(wrong[s])[: MOST_EXAMPLES - len(kept)].tolist():
                values = tuple(int(counts[area, c]) for c in self.sums[s].members)
                kept.append(ImpossibleSum(self._done + area, s, values, not beyond[s, area]))

    def _fold(self, chosen: NDArray[np.bool_], residual: Ints, size: Ints) -> None:
        width = self.sized.shape[2]
        self.signed += np.where(chosen, residual, 0).sum(1)
        self.signed_square += np.where(chosen, residual.astype(np.float64) ** 2, 0.0).sum(1)
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


def _even(tested: TestedSum, mechanisms: Sequence[Mechanism | None]) -> Floats:
    """Return the shares of the residuals of a sum of large counts."""
    return even_shares(mechanisms[tested.total] or Exact(), tuple(mechanisms[part] or Exact() for part in tested.parts))


def _spread(shares: Floats) -> float:
    far = np.arange(len(shares)) - len(shares) // 2
    return float((shares @ far**2) ** 0.5)


def largest(tested: TestedSum, mechanisms: Sequence[Mechanism | None]) -> int:
    """Return the largest |r| that a sum of large counts can have."""
    kinds = [mechanisms[c] or Exact() for c in tested.members]
    reach = sum([min(reach_of(how), step_of(how) - 1) if step_of(how) > 1 else reach_of(how) for how in kinds])
    common = np.gcd.reduce([step_of(how) for how in kinds])
    return int(reach - reach % common)
