"""How the random numbers of a table are related: each count has its own, or keys add up to them; by likelihood.

Sums of two and three parts tell (`mechanisms.keyed`): the shares of |r| at every constant are known, and so is the
likelihood of what was observed. The sums of a table have one constant. It is found if it makes the residuals likelier than
independent rounding does, by more than a number that was fitted to them could by chance; if the shares then fit; and if no
sum and no part of the file has a constant of its own. Independent rounding is found if keys would not be much likelier, and
some of their constants much less likely. Otherwise, the answer is that it is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unround.checks.families import (
    CHANCE,
    INDEPENDENT,
    KEYED,
    LEAST_DISTANCE,
    UNKNOWN,
    FamilyHistogram,
    TableRounding,
)
from unround.checks.gather import ResidualCounter
from unround.checks.law import Laws, Series, even_series, keyed_shares
from unround.mechanisms import Mechanism, Rounding, Sample
from unround.mechanisms.keyed import MOST_PARTS

GRID = np.arange(101) / 200
"""Constants that are tried: from 0 to 0.5, as only their distance from 0 around the circle can be known."""

LEAST = 300
"""Fewer sums say nothing about a table, a row or a part of the file."""

PENALTY = 15.0
"""Twice the gain in log likelihood that a constant must bring, and log(sums) if that is more: by chance, 15 comes once in
some thousand tables."""

UNDECIDED = 8.0
"""Twice the gain in log likelihood from which on keys are not ruled out, though not found; and by which independent rounding
must be likelier than the constants 0 and 0.5 to be found itself."""

TELLING = 10.0
"""Twice the difference in log likelihood that tells whole numbers from weighted ones."""

ACCURATE = LEAST_DISTANCE / 2
"""How far shares may be from a law (total variation), whatever the number of sums: small counts are only roughly known."""

ANOTHER = 0.05
"""By how much a constant of its own must differ for a sum, or a part of the file, to refute that there is only one."""

FEW_SUMS = 0.1
"""The share of a table's sums that may have constants of their own: the parts of a few rare rows are not independent."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def can_be_keyed(mechanisms: Sequence[Mechanism | None]) -> bool:
    """Say whether a total and its parts, or a repeated count, were all rounded at random to one base."""
    return len(set(mechanisms)) == 1 and isinstance(mechanisms[0], Rounding | Sample)


class KeyedSums:
    """The residuals of all sums of two or three rounded parts, and how likely they are at every constant.

    - `gathered`: The residuals.
    - `mechanisms`, `blocks`: By column of the release, how it was published and its table; a sum over two tables has no
      constant of either.
    - `laws`: The expectations.
    - `doubts`: By sum, how far its expected shares may be off: small counts would be taken for dependence.
    """

    def __init__(
        self,
        gathered: ResidualCounter,
        mechanisms: Sequence[Mechanism | None],
        blocks: Sequence[str],
        laws: Laws,
        doubts: Sequence[float],
    ) -> None:
        self.gathered = gathered
        self._laws, self._mechanisms = laws, mechanisms
        self.usable = frozenset(
            s
            for s, one in enumerate(gathered.sums)
            if 2 <= len(one.parts) <= MOST_PARTS
            and can_be_keyed([mechanisms[c] for c in one.members])
            and len({blocks[c] for c in one.members}) == 1
            and doubts[s] <= ACCURATE
            and s not in gathered.twins  # the remainders of twins are alike, which looks like keys
        )
        self._series: dict[int, Series] = {}

    def base(self, s: int) -> int:
        """Return the base of the counts of a sum."""
        how = self._mechanisms[self.gathered.sums[s].total]
        assert isinstance(how, Rounding | Sample)
        return how.base

    def expected(self, s: int, constants: Sequence[float], whole: bool) -> Floats:
        """Return the expected shares of |r| = 0, b, 2b … of a sum, independent ones first, then those at each constant."""
        one, base = self.gathered.sums[s], self.base(s)
        if s not in self._series:
            first, total = int(self.gathered.offsets[s]), self._mechanisms[one.total]
            assert total is not None
            self._series[s] = self._laws.series(total, range(first, first + len(one.parts)))
        series = self._series[s]
        if not whole:  # small counts change the shares by about as much whether they are whole or not
            series = series + even_series(base, len(one.parts), False) - even_series(base, len(one.parts))
        keyed = keyed_shares(series, (len(one.parts) - 1) * np.asarray(constants))
        found = np.concatenate([series[:1].real.clip(0), keyed])
        return np.asarray(found / found.sum(1, keepdims=True))

    def likelihoods(self, s: int, numbers: Ints) -> Floats:
        """Return log likelihoods of residuals: parts of the file × (whole, weighted) × (independent, then `GRID`)."""
        shares = np.array([self.expected(s, GRID.tolist(), whole) for whole in (True, False)])
        return np.asarray(np.einsum("pr,wgr->pwg", numbers[:, : shares.shape[-1]], np.log(np.maximum(shares, 1e-7))))


def table_roundings(
    sums: KeyedSums, tables: Mapping[str, Sequence[int]], alike: Mapping[str, float]
) -> tuple[dict[str, TableRounding], dict[str, Floats]]:
    """Return what the random numbers of every table do, and the log likelihoods of the constants of `GRID`.

    There are no likelihoods for tables in which no one constant can be right.
    """
    found, curves = dict[str, TableRounding](), dict[str, Floats]()
    for table, members in tables.items():
        those = [s for s in members if s in sums.usable]
        number = int(sums.gathered.stepped[those].sum())
        if number < LEAST:
            what = f"only {number:,} large sums of two or three rounded parts; {LEAST} are needed"
            found[table] = TableRounding(UNKNOWN, why=what)
            continue
        by_group = {s: sums.likelihoods(s, sums.gathered.stepped[s]) / alike[table] for s in those}
        found[table], curve = _judged(sums, those, by_group, number, alike[table])
        if curve is not None:
            curves[table] = curve
    return found, curves


def _judged(
    sums: KeyedSums, those: Sequence[int], by_group: Mapping[int, Floats], number: int, alike: float
) -> tuple[TableRounding, Floats | None]:
    """Choose the likeliest model of a table, and see whether it fits."""
    together = np.sum([one.sum(0) for one in by_group.values()], axis=0)
    alone, keyed = together[:, 0], together[:, 1:]
    penalty = max(PENALTY, float(np.log(number)))
    gain = float(2 * (keyed.max() - alone.max()))
    is_keyed = gain > penalty
    ways = keyed.max(1) if is_keyed else alone
    whole = bool(ways[0] >= ways[1])
    told = bool(2 * abs(ways[0] - ways[1]) > TELLING)
    curve = keyed[0 if whole else 1]
    constant, error = peak(curve) if is_keyed else (None, None)
    if is_keyed and not told:  # then the constant is not known better than the two ways allow
        other, _ = peak(keyed[1 if whole else 0])
        constant, error = peak(curve)
        error = max(error, abs(other - constant))
    comparison = compared(sums, those, constant, whole, alike)
    found = TableRounding(KEYED if is_keyed else INDEPENDENT, constant, error, whole if told else None, comparison.p_value)
    ruled_out = 2 * (alone.max() - keyed[:, [0, -1]].max()) > UNDECIDED
    if not is_keyed and (gain > UNDECIDED or not ruled_out):
        why = f"{number:,} large sums fit both independent rounding and keys with some constant"
        return replace(found, model=UNKNOWN, why=why), curve
    if comparison.p_value < CHANCE and comparison.distance > ACCURATE:
        why = f"neither independent rounding nor keys with one constant fit (off by {comparison.distance:.1%})"
        return replace(found, model=UNKNOWN, constant=None, error=None, why=why), None
    numbers = {s: int(sums.gathered.stepped[s].sum()) for s in those}
    divided = _divided(by_group, numbers, 0 if whole else 1, constant)
    if divided:
        return replace(found, model=UNKNOWN, constant=None, error=None, why=divided), None
    return replace(found, why=f"fits {number:,} large sums (off by {comparison.distance:.1%})"), curve


def peak(curve: Floats) -> tuple[float, float]:
    """Return the likeliest constant and its standard error, from log likelihoods over `GRID`."""
    at = int(curve.argmax())
    # A parabola through the neighbours; beyond the ends, likelihoods go on as in a mirror.
    left, right = curve[abs(at - 1)], curve[at + 1 if at + 1 < len(curve) else at - 1]
    bend = 2 * curve[at] - left - right
    step = float(GRID[1])
    move = float(np.clip((right - left) / (2 * bend), -0.5, 0.5)) if bend > 0 else 0.0
    return float(np.clip(GRID[at] + move * step, 0.0, 0.5)), _half_width(curve, at)


def _half_width(curve: Floats, at: int) -> float:
    """Return the standard error: half the width of the interval within half a unit of log likelihood, a step at least."""
    inside = GRID[curve >= curve[at] - 0.5]
    return float(max(inside.max() - GRID[at], GRID[at] - inside.min(), float(GRID[1]) / 2))


def compared(sums: KeyedSums, those: Sequence[int], constant: float | None, whole: bool, alike: float) -> FamilyHistogram:
    """Return the histogram of |r| in steps of some sums, beside the one that a model implies."""
    width = sums.gathered.stepped.shape[-1]
    seen, should = np.zeros(width), np.zeros(width)
    for s in those:
        numbers = sums.gathered.stepped[s].sum(0)
        expected = sums.expected(s, [] if constant is None else [constant], whole)[-1]
        seen += numbers
        should[: len(expected)] += numbers.sum() * expected
    return FamilyHistogram(seen, should, 0, 0.0, alike)


def _divided(by_group: Mapping[int, Floats], numbers: Mapping[int, int], way: int, constant: float | None) -> str:
    """Say why a table has more than one constant, if it has: by sum, or by part of the file; "" if not."""
    at = 0 if constant is None else 1 + int(np.abs(GRID - constant).argmin())
    by_sum = np.array([one.sum(0)[way] for one in by_group.values()])
    by_part = np.sum([one[:, way] for one in by_group.values()], axis=0)
    often = np.array([numbers[s] for s in by_group])
    for curves, shares, what in (
        (by_sum, often / often.sum(), "sums"),
        (by_part, np.full(len(by_part), 1.0), "parts of the file"),
    ):
        best, own = curves[:, 1:].max(1), GRID[curves[:, 1:].argmax(1)]
        away = np.abs(own - (EVEN if constant is None else constant)) > ANOTHER
        away &= 2 * (best - curves[:, at]) > PENALTY + 2 * np.log(len(curves))
        if shares[away].sum() > FEW_SUMS:
            return f"some {what} have constants of their own, such as {own[away][0]:.2f}"
    return ""


EVEN = 0.243
"""The constant at which the residuals of two parts are as those of independent rounding."""
