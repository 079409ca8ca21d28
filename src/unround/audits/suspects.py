"""Suspect data: areas whose counts add up so badly that rounding is no explanation, though nothing is impossible.

Whatever the true counts are, the residual of a sum (total − parts) is made of the errors of its counts. How likely errors
that large are has a bound (Chernoff's): for every t > 0,

    P(parts are off by R or more) ≤ exp(−tR) · Π E[exp(t·error)] over the parts.

The errors of large counts are averaged over their remainders, which are even; small counts are taken at their worst,
whatever they are. The total is let off with the largest error that it can have. So the bound needs no prior, holds with keys
as well as without, and errs on the side of believing the data. A sum is suspect if the bound is below a chance that allows
for all sums of the release: at most one release in a hundred that was made as documented has any such area.

Which claims are held back, before the first area is looked at: where the data contradict what they rest on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from unround.audits.bounds import Active
from unround.audits.model import AuditOptions, Model
from unround.checks import Check
from unround.checks.families import CONTRADICTS
from unround.evidence.block import Ints
from unround.mechanisms import Exact, Mechanism, Residues, Rounding, Sample
from unround.mechanisms.base import FloatArray, step_of
from unround.release import ABSENT, Counts

LEVEL = 0.01
"""How likely it may be that any area of a release is called suspect though it was published as documented."""

LARGE = 3
"""Counts of so many steps and more have even remainders."""

_T: FloatArray = np.geomspace(1e-3, 20.0, 160)
"""Where the bound is tried, in steps of the rounding; the least of all is taken."""

LEAST_CHANCE = 1e-300
"""What is less likely than this counts as this likely."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A sum of one area that is possible, but absurd.

    - `area`: The area's place in its block.
    - `equation`: The sum, by position.
    - `total`, `parts`: What was published of the total, and what the published parts add up to.
    - `chance`: How likely it is at most that rounding alone leads this far apart.
    """

    area: int
    equation: int
    total: int
    parts: int
    chance: float


def testable(model: Model) -> tuple[int, ...]:
    """Return the sums that can be judged: of two parts or more, all of whose errors are known and bounded."""
    known = [isinstance(how, Exact | Rounding | Residues | Sample) for how in model.mechanisms]
    return tuple(
        e
        for e, (total, parts) in enumerate(model.equations)
        if len(parts) > 1 and known[total] and all(known[part] and not model.exact[part] for part in parts)
    )


def chance_below(areas: int, sums: int) -> float:
    """Return the chance below which a sum is suspect, given how many are looked at; 0 where there are none.

    Examples
    --------
    >>> chance_below(1000, 10)
    1e-06
    """
    return LEVEL / (areas * sums) if areas and sums else 0.0


def find_suspects(model: Model, counts: Counts, may_differ_by: Ints, active: Active, below: float) -> tuple[Suspect, ...]:
    """Return the suspect sums of a block, by area."""
    sums = _judged(model)
    if not below > 0 or not sums.equations.size:
        return ()
    shown, totals = counts[:, sums.parts], counts[:, sums.totals]
    added = np.add.reduceat(shown, sums.starts, axis=1, dtype=np.int64)
    complete = (totals > ABSENT) & (np.minimum.reduceat(shown, sums.starts, axis=1) > ABSENT)
    residual = totals - added
    far = np.abs(residual) - np.where(sums.exact, may_differ_by[:, sums.totals], sums.reach)
    suspects: list[Suspect] = []
    for a, k in np.argwhere(active[:, sums.equations] & complete & (far > sums.least)).tolist():
        e = int(sums.equations[k])
        parts = list(model.equations[e][1])
        hows = [model.mechanisms[part] for part in parts]
        large = counts[a, parts] >= LARGE * np.array([step_of(how) for how in hows])
        chance = _bound(hows, large, int(far[a, k]), bool(residual[a, k] > 0))
        if chance < below:
            suspects.append(Suspect(a, e, int(totals[a, k]), int(added[a, k]), chance))
    return tuple(sorted(suspects, key=lambda suspect: (suspect.area, suspect.chance, suspect.equation)))


class _Judged(NamedTuple):
    """The sums that can be judged, side by side: where they are, their totals, and their parts one sum after the other.

    `exact` says whether a total is exact, `reach` how far it can be off if not, and `least` how far apart total and parts
    must be to be looked at closely: a bound below any chance of interest needs more than three standard deviations.
    """

    equations: NDArray[np.int64]
    totals: NDArray[np.int64]
    parts: NDArray[np.int64]
    starts: NDArray[np.int64]
    exact: NDArray[np.bool_]
    reach: NDArray[np.int64]
    least: FloatArray


@lru_cache(maxsize=4)
def _judged(model: Model) -> _Judged:
    """Put the sums that can be judged side by side, once for all blocks."""
    chosen = testable(model)
    sums = [model.equations[e] for e in chosen]
    totals = [total for total, _ in sums]
    sizes = np.array([len(parts) for _, parts in sums], dtype=np.int64)
    variance = {how: _variance(how) for how in {model.mechanisms[part] for _, parts in sums for part in parts}}
    return _Judged(
        np.array(chosen, dtype=np.int64),
        np.array(totals, dtype=np.int64),
        np.array([part for _, parts in sums for part in parts], dtype=np.int64),
        np.cumsum(sizes) - sizes,
        np.array([model.exact[total] for total in totals], dtype=np.bool_),
        np.array([_reach(model.mechanisms[total]) for total in totals], dtype=np.int64),
        3 * np.sqrt([sum(variance[model.mechanisms[part]] for part in parts) for _, parts in sums]),
    )


def _bound(hows: Sequence[Mechanism], large: NDArray[np.bool_], far: int, too_low: bool) -> float:
    """Bound the chance that parts are off by so much together, all published too low, or all too high."""
    unit = max(map(step_of, hows))
    laws = [_cumulants(how, too_low, unit) for how in hows]
    together = sum(of_large if even else worst for (of_large, worst), even in zip(laws, large.tolist(), strict=True))
    least = float((together - _T * (far / unit)).min())
    return float(np.exp(np.clip(least, np.log(LEAST_CHANCE), 0.0)))


_CUMULANTS: dict[tuple[Mechanism, bool, int], tuple[FloatArray, FloatArray]] = {}


def _cumulants(how: Mechanism, too_low: bool, unit: int) -> tuple[FloatArray, FloatArray]:
    """Return log E[exp(t·error)] of a count, errors the way that is asked about: of a large one, and of any at its worst."""
    if (how, too_low, unit) not in _CUMULANTS:
        _CUMULANTS[how, too_low, unit] = _fresh_cumulants(how, too_low, unit)
    return _CUMULANTS[how, too_low, unit]


def _fresh_cumulants(how: Mechanism, too_low: bool, unit: int) -> tuple[FloatArray, FloatArray]:
    errors = _errors(how)
    turned = np.exp(np.outer((-errors if too_low else errors) / unit, _T))
    of_large = _likelihood(how, _remainders(how)) @ turned
    of_small = _likelihood(how, np.arange(4 * step_of(how))) @ turned
    return np.log(of_large.mean(axis=0)), np.log(np.maximum(of_small.max(axis=0), of_large.max(axis=0)))


def _variance(how: Mechanism) -> float:
    """Return the mean square of the error of a large count."""
    return float((_likelihood(how, _remainders(how)) @ _errors(how) ** 2).mean())


def _reach(how: Mechanism) -> int:
    """Return how far a published count can be from the true one."""
    return step_of(how) * (2 if isinstance(how, Sample) else 1) - 1


def _errors(how: Mechanism) -> NDArray[np.int64]:
    return np.arange(-_reach(how), _reach(how) + 1)


def _remainders(how: Mechanism) -> NDArray[np.int64]:
    """Return large counts, one of each remainder."""
    return 100 * step_of(how) + np.arange(step_of(how))


def _likelihood(how: Mechanism, true: NDArray[np.int64]) -> FloatArray:
    """Return how likely each error of some true counts is: counts × errors."""
    return how.likelihood(true[:, None] + _errors(how), true[:, None])


@dataclass(frozen=True, slots=True)
class Holding:
    """Which claims are held back.

    - `conditional`: Whether conditional claims are: where only one published sum is impossible, too many of them are
      wrong.
    - `refuted`: The cells of tables whose mechanism the data refute: what is likely there rests on a wrong assumption.
    - `suspect_below`: The chance below which a residual makes its area suspect; 0 suspects none.
    """

    conditional: bool = False
    refuted: tuple[int, ...] = ()
    suspect_below: float = 0.0

    @classmethod
    def of(cls, options: AuditOptions, checked: Check, model: Model, areas: int) -> Self:
        """Return what follows from the check of a release; claims that are doubtful are made if somebody asks for them."""
        below = chance_below(areas, len(testable(model)))
        if options.doubtful:
            return cls(suspect_below=below)
        conditional = checked.verdict == CONTRADICTS or any(family.impossible for family in checked.families)
        columns = checked.refuted
        refuted = tuple(cell for cell, column in enumerate(model.positions.tolist()) if column in columns)
        return cls(conditional, refuted, below)

    def to_json(self, model: Model) -> dict[str, Any]:
        """Return it as plain data."""
        tables = dict.fromkeys(model.columns[cell].block for cell in self.refuted)
        return {
            "conditional": self.conditional,
            "refuted": list(self.refuted),
            "refuted_tables": list(tables),
            "suspect_below": self.suspect_below,
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        """Return what `to_json` wrote."""
        return cls(kept["conditional"], tuple(kept["refuted"]), kept["suspect_below"])
