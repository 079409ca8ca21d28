"""Do areas add up to their parents? Family by family, and column by column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms import Exact, Mechanism
from unround.release import ABSENT, Counts
from unround.structure.residuals import ScatterWindows, scatter

Places = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

_CELLS = 2_000_000  # counts that are processed at once
_SIGMAS = 7.0
"""No rounding takes a residual further than so many standard deviations, in all families and columns of a country."""
_TYPICAL = 4.0  # nor the residuals of a family's largest counts, on the whole, further than so many
_LARGEST = 24  # of a family's columns, the largest: what is missing is missing in all of them
_POSSIBLE = 0.98  # A column adds up if it can in so many of the families that fit otherwise
_HALF = 0.5  # A family is worth a closer look if so many of its counts can be sums
_MANY = 0.8  # and the columns by which it is looked at are those that can be sums in so many families
_TABLE = 0.1
"""A table of which a larger share of columns does not add up is no table of people who live there, and none of it does."""
_FEW = 0.01  # A family with more impossible counts than this share does not tell which columns add up


@dataclass(frozen=True, slots=True, eq=False)
class FamilyFit:
    """What was found of the families of one pair of levels.

    - `odd`: By family: a column of which the parent's count cannot be the sum of the children's, though nearly all others
      of the family can; -1 where there is none.
    """

    holds: Bools  # which families fit
    sure: Bools  # those of them with a count that was published as it is, and is the children's sum to the last person
    columns: Bools  # the columns of counts that add up
    reasons: dict[str, int]  # why families do not fit, and how many
    equal: int  # of the rounded counts above 0 of areas with a single child: how many are the same there, out of how many
    compared: int
    cells: tuple[int, int]  # of the counts compared: how many can be the children's sum, out of how many
    odd: Places


def judge_families(
    parents: Places,
    children: Places,
    family: Places,
    pick: Callable[[Places], Counts],
    adjustable: Bools,
    mechanisms: Sequence[Mechanism | None],
    adjusted: Sequence[int],
    tables: Sequence[str],
) -> FamilyFit:
    """Compare every parent with the sum of its children."""
    compare = _Comparison(mechanisms, adjusted, tables)
    starts = np.searchsorted(family, np.arange(len(parents) + 1))
    at_once = max(1, _CELLS // max(1, len(mechanisms)))
    first = 0
    while first < len(parents):
        last = first + 1
        while last < len(parents) and last - first < at_once and starts[last + 1] - starts[first] <= at_once:
            last += 1
        inside = slice(int(starts[first]), int(starts[last]))
        compare.add(parents[first:last], children[inside], family[inside] - first, pick, adjustable, at_once)
        first = last
    return compare.result()


class _Comparison:
    """Collects, some families at a time, what tells whether they fit."""

    def __init__(self, mechanisms: Sequence[Mechanism | None], adjusted: Sequence[int], tables: Sequence[str]) -> None:
        self._table = np.unique(np.array(tables, dtype=np.str_), return_inverse=True)[1]
        self._known = np.array([kind is not None for kind in mechanisms])
        self._exact = np.array([kind == Exact() for kind in mechanisms])
        self._adjusted = np.array(adjusted, dtype=np.int64)
        # Adjustments go into the residuals' tolerance, not into windows: they add up like roundings, not like bounds.
        self._windows = ScatterWindows(mechanisms, [0] * len(mechanisms))
        self._variance = np.zeros((33, len(mechanisms)))
        for at, kind in enumerate(mechanisms):
            if kind is not None and kind != Exact():
                measured = scatter(kind)
                self._variance[0, at] = measured.small if measured.at_zero == 0 else measured.at_zero
                self._variance[1:32, at] = np.maximum(measured.variance[1:32], 0.0)
        self._columns = len(mechanisms)
        self._told: dict[str, list[NDArray[Any]]] = {}  # by family, or by family and column: yes and no as bits

    def add(
        self,
        parents: Places,
        children: Places,
        family: Places,
        pick: Callable[[Places], Counts],
        adjustable: Bools,
        at_once: int,
    ) -> None:
        """Compare some families."""
        shape = (len(parents), self._columns)
        sums, low, high = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        hidden, moved = np.zeros(shape, dtype=np.int32), np.zeros(len(parents), dtype=np.int64)
        variance = np.zeros(shape)
        for start in range(0, len(children), at_once):
            here = slice(start, start + at_once)
            counts, member = pick(children[here]), family[here]
            down, up, seen = self._of(counts)
            shown = np.where(seen, counts, 0).astype(np.int64)
            firsts = np.flatnonzero(np.r_[True, member[1:] != member[:-1]])
            groups = member[firsts]
            for into, of in ((sums, shown), (low, shown - down), (high, shown + up), (hidden, (~seen).astype(np.int32))):
                into[groups] += np.add.reduceat(of, firsts, axis=0)
            variance[groups] += np.add.reduceat(self._variance_of(counts, seen), firsts, axis=0)
            np.add.at(moved, member, adjustable[children[here]])
        counts = pick(parents)
        down, up, seen = self._of(counts)
        shown = np.where(seen, counts, 0).astype(np.int64)
        variance += self._variance_of(counts, seen)
        moved += adjustable[parents]
        slack = self._slack(moved)
        complete = seen & (hidden == 0) & self._known
        residual = np.where(complete, shown - sums, 0)
        # Where children hide a count, what the others show must still leave room for it.
        over = seen & self._known & (shown + up + slack < low)
        under = complete & (shown - down - slack > high)
        impossible = over | under
        compared = complete | (seen & self._known & (low > 0))
        deviation = np.sqrt(np.maximum(variance, 1e-9))
        far = complete & ~self._exact & (np.abs(residual) > _SIGMAS * deviation + 1)
        alone = np.bincount(family, minlength=len(parents)) == 1
        both = alone[:, None] & complete & ~self._exact & ((shown > 0) | (sums > 0))
        told = self._family(complete, impossible, residual, shown, deviation)
        told |= {"impossible": impossible, "far": far, "compared": compared, "both": both, "same": both & (residual == 0)}
        told["residual"] = np.where(complete & ~self._exact, residual / deviation, np.nan).astype(np.float32)
        for name, values in told.items():
            bits = values.dtype == np.bool_ and values.ndim == 2
            self._told.setdefault(name, []).append(np.packbits(values, axis=1) if bits else values)

    def _of(self, counts: Counts) -> tuple[NDArray[np.int32], NDArray[np.int32], Bools]:
        return self._windows.of(counts, np.zeros(len(counts), dtype=np.bool_))

    def _variance_of(self, counts: Counts, seen: Bools) -> Floats:
        """Return how much each count scatters, by its size."""
        digits = np.frexp(np.where(seen & (counts > 0), counts, 0).astype(np.float64))[1]
        return np.where(seen, self._variance[np.clip(digits, 0, 31), np.arange(self._columns)], 0.0)

    def _slack(self, moved: Places) -> NDArray[np.int64]:
        """Return how far adjustments can take the residuals: they go both ways, so that few add up to many times one."""
        most = moved[:, None] * self._adjusted
        likely = np.ceil(3.2 * np.sqrt(moved)[:, None] * self._adjusted).astype(np.int64)
        return np.asarray(np.minimum(most, likely))

    def _family(
        self, complete: Bools, impossible: Bools, residual: Places, shown: Places, deviation: Floats
    ) -> dict[str, NDArray[Any]]:
        """Return what tells of each family on its own."""
        exactly = complete & self._exact
        rounded = complete & ~self._exact
        size = np.where(rounded, shown, -1)
        few = min(_LARGEST, self._columns)
        largest = np.argpartition(-size, few - 1, axis=1)[:, :few]
        z = np.abs(np.take_along_axis(residual, largest, 1)) / np.take_along_axis(deviation, largest, 1)
        z = np.where(np.take_along_axis(size, largest, 1) > 0, z, np.nan)
        some = ~np.isnan(z).all(axis=1)
        typical = np.zeros(len(z))
        typical[some] = np.nanmedian(z[some], axis=1)
        return {
            "off": (impossible & self._exact).any(axis=1),
            "sure": exactly.any(axis=1) & ~(exactly & (residual != 0)).any(axis=1),
            "typical": typical,
        }

    def result(self) -> FamilyFit:
        """Decide which columns add up, and which families fit."""
        told = {name: np.concatenate(parts) for name, parts in self._told.items()}
        packed = {name: bits for name, bits in told.items() if bits.dtype == np.uint8}
        told |= {name: np.unpackbits(bits, axis=1, count=self._columns).astype(np.bool_) for name, bits in packed.items()}
        impossible, far, compared = told["impossible"], told["far"], told["compared"]
        fine = 1 - (impossible & ~self._exact).sum(1) / np.maximum((compared & ~self._exact).sum(1), 1)
        anything = compared.any(axis=1)
        off, apart = told["off"], ~told["off"] & ((fine < _HALF) | (told["typical"] > _TYPICAL))
        close = anything & ~off & ~apart
        # Columns are judged by families that fit, and families by columns that add up: first roughly, then strictly.
        broken = impossible & compared
        usual = broken[close].sum(0) <= (1 - _MANY) * compared[close].sum(0)
        fits = close & ((broken & usual).sum(1) <= np.maximum(1, _FEW * (compared & usual).sum(1)))
        columns = self._adding_up(broken[fits], compared[fits], told["residual"][fits])
        strange = close & ((impossible | far) & columns).any(axis=1)
        holds = close & ~strange & columns.any()
        reasons = {
            "nothing published to compare": int((~anything).sum()),
            "exact counts do not add up: some area is missing": int((anything & off).sum()),
            "rounded counts are too far from the sum: some area is missing": int((anything & apart).sum()),
            "some count cannot be the sum of the children's": int(strange.sum()),
        }
        both, same = (told[name] & holds[:, None] & columns for name in ("both", "same"))
        tried = compared & close[:, None] & columns
        wrong = impossible & tried
        return FamilyFit(
            holds,
            holds & told["sure"],
            columns,
            {why: number for why, number in reasons.items() if number},
            int(same.sum()),
            int(both.sum()),
            (int((tried & ~impossible).sum()), int(tried.sum())),
            np.where(wrong.any(axis=1), wrong.argmax(axis=1), -1),
        )

    def _adding_up(self, broken: Bools, compared: Bools, residual: NDArray[np.float32]) -> Bools:
        """Return the columns that are sums in (almost) all families, and off by nothing on average.

        Where people are counted at their work, or by several answers, small counts may still add up by good luck: there
        the rest of the table tells.
        """
        number = compared.sum(0)
        possible = (number > 0) & (broken.sum(0) <= (1 - _POSSIBLE) * number)
        there = ~np.isnan(residual)
        mean = np.where(there, residual, 0).sum(0, dtype=np.float64) / np.sqrt(np.maximum(there.sum(0), 1))
        fine = possible & (np.abs(mean) <= _SIGMAS)
        failing = np.bincount(self._table, (number > 0) & ~fine)
        judged = np.bincount(self._table, number > 0)
        return np.asarray(fine & (failing <= _TABLE * judged)[self._table])


_COMPARED = 24  # columns that are compared; a few large ones are as informative as all


def columns_to_compare(sample: Counts, mechanisms: Sequence[Mechanism | None]) -> list[int]:
    """Return the columns that are published most often, and among these the largest; exact ones first."""
    shown = sample > ABSENT
    size = np.where(shown, sample, 0).sum(0, dtype=np.float64)
    told = [at for at, kind in enumerate(mechanisms) if kind is not None and shown[:, at].any()]
    return sorted(told, key=lambda at: (mechanisms[at] != Exact(), -shown[:, at].sum(), -size[at]))[:_COMPARED]
