"""How often likely claims are right, by the count that they claim and the probability that they state.

An average over all cells hides what matters: that "nobody here" at 90% may be a coin toss, while all other claims are right.
Audits that are given the truth and calibrations both score their claims here, so that both say the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.audits.claims import ClaimKind
from unround.audits.inferred import InferredBlock
from unround.mechanisms.base import BoolArray, FloatArray
from unround.release import ABSENT, Counts

BANDS = (0.66, 0.75, 0.85, 0.95, 0.99)
"""Where bands of stated probability begin."""

VALUES = ((0, 0, "0"), (1, 2, "1–2"), (3, 9, "3–9"), (10, None, "10+"))
"""Groups of claims by the count claimed: the least, the most, and what the group is called."""

ANY_VALUE = "any"
"""What claims of all counts together are called."""

SMALL = ("0", "1–2")
"""Groups in which fewer claims are enough for a verdict: these are about single persons."""

ENOUGH, ENOUGH_SMALL = 300, 150
"""Claims from which on a band is judged."""

TOLERANCE, TOLERANCE_FEW = 0.02, 0.03
"""By how much claims may state too much, besides two standard errors; the second where there are fewer than `ENOUGH`."""


def stated_probability(inferred: InferredBlock) -> FloatArray:
    """Return the probability that a likely claim about each cell states."""
    return inferred.probabilities.posterior.probability


@dataclass(frozen=True, slots=True)
class Scored:
    """Claims of one group, beside the truth.

    - `value`: Which counts they claim: one of `VALUES`, or `ANY_VALUE`.
    - `band`: Between which probabilities they state; None for all together.
    - `claims`: How many there are.
    - `stated`, `right`: The mean of what they state, and the share that is right.
    - `standard_error`: Of the difference between the two. Claims about one area share its people and its roundings, so
      that areas, not claims, are taken as independent.
    """

    value: str
    band: tuple[float, float] | None
    claims: int
    stated: float
    right: float
    standard_error: float

    @property
    def over(self) -> float:
        """By how much they state too much, less two standard errors: what chance does not explain."""
        return self.stated - self.right - 2 * self.standard_error

    @property
    def judged(self) -> bool:
        """Whether there are enough of them for a verdict."""
        return self.claims >= (ENOUGH_SMALL if self.value in SMALL else ENOUGH)

    @property
    def overstated(self) -> bool:
        """Whether they state more than chance and a small tolerance explain."""
        return self.judged and self.over > (TOLERANCE if self.claims >= ENOUGH else TOLERANCE_FEW)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        between = {} if self.band is None else {"from": self.band[0], "to": self.band[1]}
        return between | {
            "claims": self.claims,
            "stated": self.stated,
            "right": self.right,
            "standard_error": self.standard_error,
            "overstated": self.overstated,
        }


def _empty() -> NDArray[np.float64]:
    return np.zeros((len(VALUES) + 1, len(BANDS) + 2, 4))


@dataclass(slots=True)
class ClaimScore:
    """Likely claims by the count claimed and the probability stated; blocks of areas are added up.

    `table` holds, for all claims and each of `VALUES`, for all bands together, below the first one and each of `BANDS`: how
    many claims there are, the sum of what they state, how many are right, and the sum over areas of the square of right
    less stated.
    """

    table: NDArray[np.float64] = field(default_factory=_empty)

    def add(self, inferred: InferredBlock, true: Counts) -> None:
        """Score the likely claims of a block of areas whose truth is known; no area may be in two blocks."""
        here = inferred.claims.of_kind(ClaimKind.LIKELY) & (true > ABSENT)
        values = inferred.claims.values[here]
        self.add_claims(values, stated_probability(inferred)[here], values == true[here], np.nonzero(here)[0])

    def add_claims(
        self, values: NDArray[np.integer[Any]], stated: FloatArray, right: BoolArray, areas: NDArray[np.integer[Any]]
    ) -> None:
        """Score claims, one of each array a claim: the count, the probability, whether it is right, and the area."""
        bands = np.searchsorted(BANDS, stated, side="right") + 1
        groups = np.searchsorted([low for low, _, _ in VALUES], values, side="right")
        off = right - stated
        for group in range(len(VALUES) + 1):
            for band in range(len(BANDS) + 2):
                some = ((groups == group) | (group == 0)) & ((bands == band) | (band == 0))
                if some.any():
                    by_area = np.bincount(np.unique(areas[some], return_inverse=True)[1], weights=off[some])
                    self.table[group, band] += (some.sum(), stated[some].sum(), right[some].sum(), (by_area**2).sum())

    @property
    def rows(self) -> tuple[Scored, ...]:
        """Every group that has claims: by value, all bands together first."""
        edges = (0.0, *BANDS, 1.0)
        return tuple(
            scored
            for group, value in enumerate((ANY_VALUE, *(name for _, _, name in VALUES)))
            for band in range(len(BANDS) + 2)
            if (scored := self._scored(value, (edges[band - 1], edges[band]) if band else None, self.table[group, band]))
        )

    @staticmethod
    def _scored(value: str, band: tuple[float, float] | None, numbers: NDArray[np.float64]) -> Scored | None:
        claims, stated, right, squares = numbers.tolist()
        if not claims:
            return None
        # Without the last digits, which depend on the order in which blocks were added up.
        shares = (round(one, 10) + 0.0 for one in (stated / claims, right / claims, squares**0.5 / claims))
        return Scored(value, band, int(claims), *shares)

    @property
    def bands(self) -> tuple[Scored, ...]:
        """Every group of one band."""
        return tuple(row for row in self.rows if row.band is not None)

    @property
    def whole(self) -> Scored | None:
        """All claims together; None where there are none."""
        return next(iter(self.rows), None)

    @property
    def worst(self) -> Scored | None:
        """The band that states most too much, of those with enough claims for a verdict; None where there is none.

        Where all claims of a band are of one group of values, the band of that group is named.
        """
        judged = [row for row in self.bands if row.judged]
        return max(judged, key=lambda row: (row.over, row.value != ANY_VALUE), default=None)

    def to_json(self) -> list[dict[str, Any]]:
        """Return it as plain data: a row a group of values, with its bands."""
        return [
            {"value": row.value} | row.to_json() | {"bands": [one.to_json() for one in self.bands if one.value == row.value]}
            for row in self.rows
            if row.band is None
        ]
