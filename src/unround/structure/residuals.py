"""The residuals of many sums, total − parts, added up over all areas; and what mechanisms make of them.

A mechanism says how far true counts lie from published ones, and how much they scatter. But small counts may lean, being
published lower, on average, than they are, so that parts seem to miss some of their total. In the Canadian census of 2021,
16 groups of incomes come to 6.4 households fewer than there are, and nothing is missing: the residual is 10 in small areas,
where most groups are published as 0 or 5, and 1 in the largest. A missing part shows the other way round, for it grows with
the area. So the residual is split, by least squares over all areas, into a share of the total and an amount for each small
part; only the first tells that something is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.mechanisms import HIDDEN, CellKey, Exact, Mechanism, Sample
from unround.release import ABSENT, Counts, Proposal
from unround.structure.evidence import FOUND


class AddUp:
    """What adds up columns: `AddUp(lists) @ table` has a row for every list of columns, which are the rows of the table.

    The same as a sparse matrix of ones, but numpy alone does it: to import scipy's would take longer than most tables do.

    >>> (AddUp([(0, 1), (2,), ()]) @ np.array([[1, 10], [2, 20], [3, 30]])).tolist()
    [[3, 30], [3, 30], [0, 0]]
    """

    def __init__(self, lists: Sequence[Sequence[int] | NDArray[np.int64]]) -> None:
        self._lists = [np.asarray(columns, dtype=np.int64) for columns in lists]

    def __matmul__(self, table: NDArray[Any]) -> NDArray[Any]:
        sums = np.empty((len(self._lists), *table.shape[1:]), dtype=table.dtype)
        for row, columns in enumerate(self._lists):
            sums[row] = np.add.reduce(table[columns], axis=0)
        return sums


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEWEST = 3  # parts from which a sum can tell the two apart: two small parts are most of their total


@dataclass(frozen=True, slots=True)
class Leaning:
    """What residuals are made of."""

    share: float  # of the total that the parts miss, and its standard error
    error: float
    each: float  # by how much a small part is published too low, on average; in units of counts


class LeaningTally:
    """The sums of squares and products that the split of residuals follows from, added up over all areas."""

    def __init__(self, number: int) -> None:
        self._areas, self._total, self._both, self._few, self._by_total, self._by_few, self._square = np.zeros((7, number))

    def add(self, complete: NDArray[np.bool_], total: Ints, few: Ints, residual: Ints) -> None:
        """Add some areas (sums × areas)."""
        t, s, r = (np.where(complete, of, 0).astype(np.float64) for of in (total, few, residual))
        self._areas += complete.sum(1)
        for into, left, right in (
            (self._total, t, t), (self._both, t, s), (self._few, s, s),
            (self._by_total, t, r), (self._by_few, s, r), (self._square, r, r),
        ):  # fmt: skip
            into += np.einsum("ij,ij->i", left, right)

    def result(self, at: int) -> Leaning | None:
        """Return the split of one sum's residuals; None where it cannot be told."""
        squares = np.array([[self._total[at], self._both[at]], [self._both[at], self._few[at]]])
        products = np.array([self._by_total[at], self._by_few[at]])
        if self._areas[at] < FEWEST or np.linalg.det(squares) <= 1e-9 * squares[0, 0] * squares[1, 1]:
            return None
        inverse = np.linalg.inv(squares)
        share, each = inverse @ products
        left = max(0.0, float(self._square[at] - products @ inverse @ products)) / (self._areas[at] - 2)
        return Leaning(float(share), float((left * inverse[0, 0]) ** 0.5), float(each))


_TABLE = 1 << 16  # windows of counts under this are looked up; larger ones are few
_UNKNOWN, IMPOSSIBLE = (int(np.iinfo(np.int32).min) + k for k in range(2))
"""No distances: below a negative count, which noise makes, the true one lies at a negative distance."""
_DRAWS = 20_000
_LEVELS = 31


@dataclass(frozen=True, slots=True, eq=False)
class Scatter:
    """How published counts scatter around true ones.

    - `small`: The largest variance that each published count under twice the step can stand for, on average over all
      areas: a true 1 that seldom comes up is the worst, for it is published as nothing or as far too much.
    """

    step: int  # the smallest count above zero that can be published
    variance: Floats  # of published − true, by the number of binary digits of the count
    at_zero: float  # the same for a true count of zero
    small: float
    drift: float  # How far published counts lie from true ones on average: large ones; and at most, small ones
    small_drift: float


_SCATTERS: dict[Mechanism, Scatter] = {}
_WINDOWS: dict[Mechanism, Counts] = {}


def scatter(mechanism: Mechanism) -> Scatter:
    """Measure a mechanism, once, by letting it publish many counts, always with the same random numbers."""
    if mechanism not in _SCATTERS:
        _SCATTERS[mechanism] = _measure(mechanism)
    return _SCATTERS[mechanism]


def _measure(mechanism: Mechanism) -> Scatter:
    rng = np.random.default_rng(0)

    def errors(true: NDArray[np.int64]) -> Floats:
        published = mechanism.publish(true, rng)
        return np.asarray((published - true)[published != HIDDEN], dtype=np.float64)

    def variance(deviations: Floats) -> float:
        return float(np.mean(deviations**2)) if deviations.size else 0.0

    step = next((y for y in range(1, 1001) if _window(mechanism, y) is not None), 1)
    variances = np.zeros(_LEVELS + 1)
    for digits in range(1, _LEVELS + 1):
        variances[digits] = variance(errors(rng.integers(1 << (digits - 1), 1 << digits, _DRAWS // 4)))
    at_zero = variance(errors(np.zeros(_DRAWS, dtype=np.int64)))
    drift, small_drift = 0.0, 0.0
    far = errors(rng.integers(200 * step, 400 * step, 10 * _DRAWS))
    if far.size and abs(far.mean()) > 5 * far.std() / far.size**0.5 + 1e-9:
        drift = abs(float(far.mean()))
    for true in range(min(2 * step, 100)):
        deviations = errors(np.full(_DRAWS, true, dtype=np.int64))
        if deviations.size and abs(deviations.mean()) > 5 * deviations.std() / deviations.size**0.5 + 1e-9:
            small_drift = max(small_drift, abs(float(deviations.mean())))
    small = float(step * (step - 1)) if at_zero == 0 and step > 1 else float(variances[step.bit_length()])
    return Scatter(step, variances, at_zero, small, drift, small_drift)


def _window(mechanism: Mechanism, published: int) -> tuple[int, int] | None:
    """Return how far below and above a published count the true one can be; None where it cannot be published."""
    try:
        window = mechanism.window(published)
    except InputError:
        return None
    if window.high is None:
        return None
    return published - window.low, window.high - published


def _known(mechanism: Mechanism) -> Counts:
    """Return the table of windows of small counts, which fills up as they occur."""
    if mechanism not in _WINDOWS:
        _WINDOWS[mechanism] = np.full((2, _TABLE), _UNKNOWN, dtype=np.int32)
    return _WINDOWS[mechanism]


class ScatterWindows:
    """How far true counts can lie below and above published ones, for whole tables at once."""

    def __init__(self, mechanisms: Sequence[Mechanism | None], adjusted: Sequence[int]) -> None:
        kinds: dict[Mechanism, list[int]] = {}
        for at, mechanism in enumerate(mechanisms):
            if mechanism is not None:
                kinds.setdefault(mechanism, []).append(at)
        self._kinds = [(kind, np.array(at)) for kind, at in kinds.items()]
        self._adjusted = [(at, by) for at, by in enumerate(adjusted) if by]

    def of(self, counts: Counts, adjustable: NDArray[np.bool_]) -> tuple[Counts, Counts, NDArray[np.bool_]]:
        """Return how far down and up, and which cells are published and possible; elsewhere both are 0."""
        down, up = np.zeros_like(counts), np.zeros_like(counts)
        seen = np.zeros(counts.shape, dtype=np.bool_)
        for kind, columns in self._kinds:
            shown = counts[:, columns]
            below, above = self._look_up(kind, shown)
            possible = below != IMPOSSIBLE
            seen[:, columns] = possible
            down[:, columns] = np.where(possible, below, 0)
            up[:, columns] = np.where(possible, above, 0)
        for column, by in self._adjusted:
            here = adjustable & seen[:, column]
            down[here, column] += by
            up[here, column] += by
        return down, up, seen

    @staticmethod
    def _look_up(kind: Mechanism, shown: Counts) -> tuple[Counts, Counts]:
        table = _known(kind)
        common = (shown >= 0) & (shown < _TABLE)
        place = np.where(common, shown, 0)
        unknown = common & (table[0][place] == _UNKNOWN)
        if unknown.any():
            for count in np.unique(shown[unknown]).tolist():
                table[:, count] = _window(kind, count) or (IMPOSSIBLE, IMPOSSIBLE)
        below = np.where(common, table[0][place], IMPOSSIBLE)
        above = np.where(common, table[1][place], IMPOSSIBLE)
        rest = ~common & (shown > ABSENT)
        if rest.any():
            counts, where = np.unique(shown[rest], return_inverse=True)
            windows = np.array([_window(kind, count) or (IMPOSSIBLE, IMPOSSIBLE) for count in counts.tolist()])
            below[rest], above[rest] = windows[where, 0], windows[where, 1]
        return below, above


LARGE_PART = 20  # sums all of whose counts are at least this large tell what noise does to a count that nothing restricts
FARTHEST = 100  # residuals further from zero than this are counted as this
TOLERATED = 0.005  # A sum may be impossible in this share of the areas: slips of the agency, which the audit reports
ACROSS = 0.001  # and in this one, if it adds up estimates from different tables of a sample: nobody laid them out together
MUCH_LARGER = 20  # A total of so many times what rounding can do is evidence on its own
_LARGE_DIGITS = slice(7, 21)  # the binary digits of counts from 64 to a million, as large areas have
_ABLE = 2  # from a total of so many times what rounding can do, a sum could turn out impossible
TELLING = 20  # from so many areas with counts that rounding changes, the scatter of residuals can be judged


class ResidualTally:
    """The residuals of many sums, added up over all areas."""

    def __init__(
        self,
        sums: Sequence[Proposal],
        mechanisms: Sequence[Mechanism | None],
        windows: ScatterWindows,
        adjusted: Sequence[int],
    ) -> None:
        self.sums = tuple(sums)
        self._windows, self._adjusted = windows, np.asarray(adjusted, dtype=np.float64)
        width = len(mechanisms)

        self._parts = AddUp([s.parts for s in self.sums])
        # A total that was not published is compared through the other parts that make it up.
        self._whole = AddUp([s.against or (s.total,) for s in self.sums])
        self.mechanisms = tuple(mechanisms)
        kinds: dict[Mechanism | None, Scatter] = {kind: scatter(kind or Exact()) for kind in dict.fromkeys(mechanisms)}
        self._scatter = [kinds[kind] for kind in mechanisms]
        self._step = np.array([measured.step for measured in self._scatter])
        self._by_digits = np.array([measured.variance for measured in kinds.values()])
        self._kind = np.array([list(kinds).index(kind) for kind in mechanisms])
        k = len(self.sums)
        self.areas, self.too_low, self.too_high, self.nonzero = (np.zeros(k, dtype=np.int64) for _ in range(4))
        self.large, self.able = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
        self.heavy, self.heavy_total, self.weight, self.weight_square = (np.zeros(k) for _ in range(4))
        self.all_sum, self.all_square, self.sum, self.square, self.totals = (np.zeros(k) for _ in range(5))
        self.histogram = np.zeros((k, 2 * FARTHEST + 1), dtype=np.int64)
        # Of counts that were rounded, nothing is asked about noise.
        free = {at for at, how in enumerate(mechanisms) if isinstance(how, Exact | CellKey | None)}
        noisy = [at for at, s in enumerate(self.sums) if len(s.parts) > 1 and free >= {*s.parts}]
        self._noisy = np.array(noisy, dtype=np.int64)
        self.large_histogram = np.zeros((len(self._noisy), 2 * FARTHEST + 1), dtype=np.int64)
        # What the counts alone propose must fit without excuses, and two parts tell nothing.
        several = [at for at, s in enumerate(self.sums) if s.origin not in (FOUND, "sex") and len(s.parts) >= FEWEST]
        self._several = np.array(several, dtype=np.int64)
        self._of_several = AddUp([self.sums[at].parts for at in several]) if several else None
        self._leaning = LeaningTally(len(several))
        # by column: published and possible, zeros, small, and the variance of the large ones
        self.seen, self.zeros, self.small, self.changed = (np.zeros(width, dtype=np.int64) for _ in range(4))
        self.variance = np.zeros(width)

    def add(self, counts: Counts, adjustable: NDArray[np.bool_]) -> None:
        """Add some areas (areas × columns)."""
        down, up, seen = self._windows.of(counts, adjustable)
        shown = np.where(seen, counts, 0)
        self._add_columns(shown, seen)
        if not self.sums:
            return
        published = np.ascontiguousarray(shown.T, dtype=np.int64)
        hidden = np.ascontiguousarray(~seen.T, dtype=np.int64)
        down_, up_ = (np.ascontiguousarray(far.T, dtype=np.int64) for far in (down, up))
        parts, total = self._parts, self._whole
        complete = (parts @ hidden + total @ hidden) == 0
        whole = total @ published
        residual = np.where(complete, whole - parts @ published, 0)
        lowest, highest = -(parts @ down_ + total @ up_), parts @ up_ + total @ down_
        too_low, too_high = residual < lowest, residual > highest
        fine = complete & ~too_low & ~too_high
        self.areas += complete.sum(1)
        self.too_low += too_low.sum(1)
        self.too_high += too_high.sum(1)
        reach = (highest - lowest + 1) / 2
        self.large += (complete & (whole >= MUCH_LARGER * reach)).sum(1)
        self.able += (complete & ((whole >= _ABLE * reach) | ~fine)).sum(1)
        if self._of_several is not None:
            small = self._of_several @ (published < 2 * self._step[:, None]).astype(np.int64)
            there = self._several
            self._leaning.add(fine[there], whole[there], small, residual[there])
        self.nonzero += (parts @ (published > 0).astype(np.int64) >= 2).sum(1)
        self.all_sum += residual.sum(1)
        self.all_square += (residual.astype(np.float64) ** 2).sum(1)
        possible = np.where(fine, residual, 0)
        # An impossible residual may be a slip of the pen, or the only sign that something is missing: it counts, but for no
        # more than twice what is possible.
        bounded = np.clip(residual, 2 * lowest, 2 * highest)
        self.sum += possible.sum(1)
        self.square += (possible * possible).sum(1)
        # Large areas tell most: what is missing grows with an area, what rounding does stays the same.
        weight = shown.sum(1, dtype=np.float64)
        self.heavy += np.where(complete, bounded, 0) @ weight
        self.heavy_total += np.where(complete, whole, 0) @ weight
        self.weight += complete @ weight
        self.weight_square += complete @ weight**2
        self.totals += np.where(complete, whole, 0).sum(1)
        _count_into(self.histogram, residual, complete)
        if self._noisy.size:
            small = (published < LARGE_PART).astype(np.int64)
            large = complete & (parts @ small + total @ small == 0)
            _count_into(self.large_histogram, residual[self._noisy], large[self._noisy])

    def _add_columns(self, shown: Counts, seen: NDArray[np.bool_]) -> None:
        """Add up, column by column, what the variance of the residuals follows from."""
        zero, small = seen & (shown == 0), seen & (shown > 0) & (shown < 2 * self._step)
        large = seen & ~zero & ~small
        self.seen += seen.sum(0)
        self.zeros += zero.sum(0)
        self.small += small.sum(0)
        digits = np.where(large, np.frexp(shown.astype(np.float32))[1], 0)
        variance = self._by_digits[self._kind, digits]  # without digits there is none
        self.variance += variance.sum(0)
        self.changed += (variance > 0).sum(0)

    def _variances(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return for each column the variance of published − true that is certain, the most there may be, and the bias."""
        count = np.maximum(self.seen, 1)
        at_zero, small, drift, small_drift = (
            np.array([float(getattr(measured, name)) for measured in self._scatter])
            for name in ("at_zero", "small", "drift", "small_drift")
        )
        least = (self.variance + self.zeros * at_zero) / count
        most = least + self.small * small / count + self._adjusted * (self._adjusted + 1) / 3
        little = (self.small + self.zeros) / count
        return least, most, little * small_drift + (1 - little) * drift + self._adjusted / 10

    def results(self) -> list[SumTally]:
        """Return what was added up, sum by sum."""
        least, most, bias = self._variances()
        worst, full = self._by_digits[self._kind].max(1), self._by_digits[self._kind][:, _LARGE_DIGITS].max(1)
        large = {int(at): self.large_histogram[number] for number, at in enumerate(self._noisy)}
        split = {int(at): self._leaning.result(number) for number, at in enumerate(self._several)}
        tallies = []
        for at, s in enumerate(self.sums):
            cells = [*(s.against or (s.total,)), *s.parts]
            # Small counts scatter more where they become 0 or twice the base; a rare category is small even in large areas.
            rare = _mean(self.heavy_total[at], self.weight[at]) < MUCH_LARGER * self._step[cells].sum()
            variance = (worst if rare else full)[cells].sum()
            tallies.append(
                SumTally(
                    proposal=s,
                    known=all(self.mechanisms[cell] is not None for cell in cells),
                    areas=int(self.areas[at]),
                    too_low=int(self.too_low[at]),
                    too_high=int(self.too_high[at]),
                    large=int(self.large[at]),
                    able=int(self.able[at]),
                    heavy_mean=_mean(self.heavy[at], self.weight[at]),
                    heavy_error=_mean((self.weight_square[at] * variance) ** 0.5, self.weight[at]),
                    nonzero=int(self.nonzero[at]),
                    all_mean=_mean(self.all_sum[at], self.areas[at]),
                    all_spread=_spread(self.all_sum[at], self.all_square[at], self.areas[at]),
                    sum=float(self.sum[at]),
                    square=float(self.square[at]),
                    mean_total=_mean(self.totals[at], self.areas[at]),
                    changed=float((self.changed[cells] / np.maximum(self.seen[cells], 1)).mean()),
                    uneven=float(((self.changed + self.small)[cells] / np.maximum(self.seen[cells], 1)).mean()),
                    least=float(least[cells].sum()),
                    most=float(most[cells].sum()),
                    bias=float(bias[cells].sum()),
                    small=self._small(cells),
                    leaning=split.get(at),
                    step=int(self._step[list(s.parts)].max()),
                    estimates=any(isinstance(self.mechanisms[cell], Sample) for cell in cells),
                    zeros=int(self.histogram[at, FARTHEST]),
                    residuals={
                        int(place) - FARTHEST: int(self.histogram[at, place]) for place in np.flatnonzero(self.histogram[at])
                    },
                    large_residuals=large.get(at),
                )
            )
        return tallies

    def _small(self, cells: Sequence[int]) -> dict[Mechanism, float]:
        """Return how many small counts an area has in some columns, times the step between counts, for each mechanism."""
        small: dict[Mechanism, float] = {}
        for cell in cells:
            kind = self.mechanisms[cell]
            if kind is not None and self._step[cell] > 1:
                share = self.small[cell] / max(1, self.seen[cell])
                small[kind] = small.get(kind, 0.0) + float(share * self._step[cell])
        return small


def _count_into(histogram: Ints, residual: Ints, counted: NDArray[np.bool_]) -> None:
    """Add residuals to the histograms of their sums."""
    number, width = histogram.shape
    place = np.clip(residual, -FARTHEST, FARTHEST) + FARTHEST + width * np.arange(number)[:, None]
    histogram += np.bincount(place[counted], minlength=histogram.size).reshape(histogram.shape)


def _mean(total: float, number: float) -> float:
    return float(total / number) if number else 0.0


def _spread(total: float, square: float, number: float) -> float:
    return float(max(square / number - (total / number) ** 2, 0.0) ** 0.5) if number else 0.0


@dataclass(frozen=True, slots=True)
class SumTally:
    """What was added up for one sum; see `ResidualTally` and `judge`."""

    proposal: Proposal
    known: bool
    areas: int
    too_low: int
    too_high: int
    large: int
    able: int
    heavy_mean: float
    heavy_error: float
    nonzero: int
    all_mean: float
    all_spread: float
    sum: float
    square: float
    mean_total: float
    changed: float
    uneven: float
    least: float
    most: float
    bias: float
    small: dict[Mechanism, float]
    leaning: Leaning | None
    step: int
    estimates: bool
    zeros: int
    residuals: dict[int, int]
    large_residuals: Ints | None = None

    @property
    def impossible(self) -> int:
        """In how many areas no true counts fit."""
        return self.too_low + self.too_high

    @property
    def allowed(self) -> int:
        """In how many areas that may be so."""
        across = self.estimates and self.proposal.origin == "universe" and len(self.proposal.parts) > 1
        return max(int((ACROSS if across else TOLERATED) * self.able), min(2, self.able // 50))

    @property
    def fails(self) -> bool:
        """Whether it is impossible too often among the areas where it could be: those with counts beyond rounding."""
        return self.impossible > self.allowed

    @property
    def mean(self) -> float:
        """Of the possible residuals; of all, if too many are impossible."""
        return _mean(self.sum, self.areas - self.impossible) if not self.fails else self.all_mean

    @property
    def spread(self) -> float:
        """The standard deviation of the same."""
        if self.fails:
            return self.all_spread
        return _spread(self.sum, self.square, self.areas - self.impossible)

    @property
    def error(self) -> float:
        """The standard error of the mean, from the spread that is there or is to be expected, whichever is larger."""
        return float(max(self.spread, self.least**0.5) / max(self.areas, 1) ** 0.5)

    @property
    def exactly(self) -> bool:
        """Whether it adds up everywhere although independent rounding would long have made a difference."""
        needed = TELLING * (2 if len(self.proposal.parts) == 1 else 1)
        return self.zeros == self.areas and self.areas * self.changed >= needed
