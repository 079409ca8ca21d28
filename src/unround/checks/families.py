"""A family of sums, its histogram beside the expected one, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unround.expectation import surprise
from unround.tails import chi_square_tail

FITS, DEPARTS, CONTRADICTS, UNTESTED = "fits", "departs", "contradicts", "untested"
ORDER = (CONTRADICTS, DEPARTS, FITS)
"""The worst first."""

LEAST_SUMS = 100
"""A family of fewer sums with a large enough total is not tested."""

CHANCE = 1e-3
"""A departure must be less likely than this to be chance …"""

LEAST_DISTANCE = 0.02
"""… and the observed shares must differ from the expected ones by this much in total (total variation), …"""

LEAST_TAIL = 1.25
"""… or the largest residuals occur this many times as often, or as rarely, as expected."""

LEAST_EXPECTED = 5.0
"""Residuals that are expected less often than this are pooled with others in the test; a ratio needs at least this many of
the largest ones to be expected."""


SLIPS, SLIP_SHARE = 2, 0.002
"""This many impossible sums, or this share of all, may be typing errors."""


def more_than_slips(impossible: int, of: int) -> bool:
    """Whether so many of all sums, or counts, are impossible that typing errors do not explain it."""
    return impossible > max(SLIPS, SLIP_SHARE * of)


@dataclass(frozen=True, slots=True)
class SizedHistogram:
    """A part of a family: the sums with a total from `least` on, up to the next such part.

    `shares` are those of each |r|; `tail_ratio` is as for the family.
    """

    least: int
    sums: int
    shares: Mapping[int, float]
    tail_ratio: float | None

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        shares = {str(far): share for far, share in self.shares.items()}
        return {"least": self.least, "sums": self.sums, "shares": shares, "tail_ratio": self.tail_ratio}


INDEPENDENT, ALIKE, KEYED, UNKNOWN = "independent", "alike", "keyed", "unknown"


@dataclass(frozen=True, slots=True)
class TableRounding:
    """What the random numbers of a table do.

    - `model`: "independent", "alike" (the same count is the same number wherever it appears), "keyed" or "unknown".
    - `constant`, `error`: Of two parts: what the total's random number has beyond the sum of theirs, and its standard
      error; around the circle and in either direction, unless other tables with the same counts tell.
    - `whole`: Whether whole numbers were rounded, or weighted estimates; None where that cannot be told.
    - `p_value`: How likely residuals as far from this model's are, if it is right.
    - `why`: What speaks for it, or why nothing can be said.
    """

    model: str
    constant: float | None = None
    error: float | None = None
    whole: bool | None = None
    p_value: float | None = None
    why: str = ""

    @property
    def in_words(self) -> str:
        """The model and its constant, in a few words."""
        said = self.model
        if self.model == KEYED and self.constant is not None and self.error is not None:
            said = f"{KEYED}, {self.constant:.2f} ± {max(self.error, 0.005):.2f}"
        return said + ("" if self.whole is not False else ", weighted")

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "model": self.model,
            "constant": self.constant,
            "error": self.error,
            "whole": self.whole,
            "p_value": self.p_value,
            "why": self.why,
        }


@dataclass(frozen=True)
class Family:
    """What was found about one family of sums.

    - `family`: What kind of sums, and in which table.
    - `sums`: How many were compared: sums times areas.
    - `observed`: How often each |total − Σ parts| was published; for a family of counts, each remainder.
    - `expected`: The share expected of each.
    - `p_value`: How likely a histogram as far from the expected one is, if the mechanism is right.
    - `tail_ratio`: How often the largest |r| occurs, relative to expectation; None with too few sums.
    - `distance`: The total variation between the two.
    - `impossible`: In how many sums no true counts fit.
    - `otherwise`: The verdict without the impossible ones.
    - `verdict`, `note`: The verdict, what it is based on, and what it means.
    - `by_size`: The same, by the size of the total.
    - `clash`: The smallest set of cells that clash, for one example; "" where there is none.
    - `columns`: The columns of the release that are in these sums.
    - `inexact`: Whether it casts doubt on a count that is declared exact.
    - `refuted`: Whether more is impossible than slips explain, so that the mechanism cannot be what it is taken for.
    - `basis`: Who declared the mechanisms of its rounded counts: "format", "description", "plan file"; or "inferred".
    - `table`: The table that all of its sums are in; None where they are in several, or in none.
    - `rounding`: What the random numbers of that table do; None for families of several tables, of counts and of areas.
    - `by_sum`: The same for every sum alone: its total, the number of sums, and what its random numbers do.
    """

    family: str
    sums: int
    observed: Mapping[int, int]
    expected: Mapping[int, float]
    p_value: float | None
    tail_ratio: float | None
    distance: float | None
    impossible: int
    otherwise: str
    verdict: str
    note: str
    by_size: tuple[SizedHistogram, ...] = ()
    clash: str = ""
    columns: frozenset[int] = field(default=frozenset(), repr=False)
    inexact: bool = False
    refuted: bool = False
    basis: tuple[str, ...] = ()
    table: str | None = None
    rounding: TableRounding | None = None
    by_sum: tuple[tuple[str, int, TableRounding], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "family": self.family,
            "sums": self.sums,
            "observed": {str(far): number for far, number in self.observed.items()},
            "expected": {str(far): share for far, share in self.expected.items()},
            "p_value": self.p_value,
            "tail_ratio": self.tail_ratio,
            "distance": self.distance,
            "impossible": self.impossible,
            "otherwise": self.otherwise,
            "refuted": self.refuted,
            "verdict": self.verdict,
            "note": self.note,
            "by_size": [one.to_json() for one in self.by_size],
            "clash": self.clash,
            "basis": list(self.basis),
            "table": self.table,
            "rounding": None if self.rounding is None else self.rounding.to_json(),
            "by_sum": [{"total": total, "sums": sums, **one.to_json()} for total, sums, one in self.by_sum],
        }


@dataclass(frozen=True, slots=True)
class FamilyHistogram:
    """An observed histogram of |r| beside the expected one.

    - `observed`, `expected`: How many sums have, and should have, each |r| from 0 on.
    - `tail`, `tail_expected`: How many sums have, and should have, the largest |r| that they can have.
    - `alike`: How much more the sums of one area vary together than independent ones would.
    - `doubt`: How far the expected shares themselves may be off (total variation), as small counts are not known.
    - `tail_range`: How many of the largest |r| there should be at least and at most, for the same reason.
    """

    observed: np.ndarray
    expected: np.ndarray
    tail: int
    tail_expected: float
    alike: float
    doubt: float = 0.0
    tail_range: tuple[float, float] | None = None

    @property
    def sums(self) -> int:
        """How many were compared."""
        return int(self.observed.sum())

    @property
    def distance(self) -> float:
        """The total variation between the shares."""
        n = max(self.sums, 1)
        return float(np.abs(self.observed - self.expected).sum() / 2 / n)

    @property
    def tail_ratio(self) -> float | None:
        """How often the largest |r| occurs, relative to expectation; None where too few are expected."""
        return float(self.tail / self.tail_expected) if self.tail_expected >= LEAST_EXPECTED else None

    @property
    def p_value(self) -> float:
        """Pearson's test on the folded histogram, its statistic reduced for the dependence of sums within an area."""
        seen, should = _joined(self.observed, self.expected)
        if len(should) < 2:
            return 1.0
        statistic = float(((seen - should) ** 2 / should).sum()) / self.alike
        return chi_square_tail(len(should) - 1, statistic)

    @property
    def departs(self) -> bool:
        """Whether it departs, both statistically and by size."""
        if self.sums < LEAST_SUMS or self.p_value >= CHANCE:
            return False
        if self.distance >= LEAST_DISTANCE + self.noise + self.doubt:
            return True
        ratio = self.tail_ratio
        if ratio is None or 1 / LEAST_TAIL < ratio < LEAST_TAIL:
            return False
        least, most = self.tail_range or (self.tail_expected, self.tail_expected)
        return not least <= self.tail <= most and surprise(self.tail, least if self.tail < least else most) < CHANCE

    @property
    def noise(self) -> float:
        """The average distance due to chance alone: few sums never match the expectation exactly."""
        shares = self.expected / max(self.expected.sum(), 1e-300)
        error = np.sqrt(shares * (1 - shares) * self.alike / max(self.sums, 1))
        return float(error.sum() * (2 / np.pi) ** 0.5 / 2)


def _joined(observed: np.ndarray, expected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pool residuals from the outside in until each group is expected often enough."""
    seen, should = list[float](), list[float]()
    count = number = 0.0
    for far in np.flatnonzero((expected > 0) | (observed > 0))[::-1].tolist():
        count, number = count + float(observed[far]), number + float(expected[far])
        if number >= LEAST_EXPECTED:
            seen.append(count)
            should.append(number)
            count = number = 0.0
    if number > 0 and should:
        seen[-1] += count
        should[-1] += number
    return np.array(seen), np.array(should)


def worst(verdicts: list[str]) -> str:
    """Return the worst of some verdicts; "untested" if there is none."""
    return next((verdict for verdict in ORDER if verdict in verdicts), UNTESTED)
