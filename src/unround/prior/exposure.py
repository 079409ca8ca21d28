"""How many people of an area a count is about: the exposure that its rate is multiplied with.

Each column takes the kind that explains its published counts best: the size of the area, that size corrected by what a
total above the count shows (the one of its table, or the one directly above), the square root of the size, or none. A total
above is mostly rounded, and its rounding is evidence of its own, which the sums bring in: taken as it is, it would count
twice where it is small. So it corrects the size only as far as it is large beside `CAUTION`, and a rounded size counts as
`LEAST_STEPS` steps of the rounding at least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unround.mechanisms import Exact, Mechanism
from unround.mechanisms.base import FloatArray, step_of
from unround.prior.hierarchy import Hierarchy
from unround.release import ABSENT, Counts

KINDS = NONE, SIZE, ROOT, CORRECTED = tuple(range(4))
"""Kinds of exposure."""

CAUTION = 25.0
"""Persons that are added to a rounded total above, and to what is expected of it, before the two are compared."""

LEAST_STEPS = 4
"""A smaller rounded size says more about its rounding than about the area."""


class Exposure(NamedTuple):
    """The exposure of one column.

    - `kind`: `NONE`, `SIZE`, `ROOT` or `CORRECTED`.
    - `above`: The column of the total that corrects the size.
    - `share`: That total, as a share of the size, over all areas.
    - `caution`: How many persons are added before it is compared with what is expected.
    """

    kind: int
    above: int = 0
    share: float = 1.0
    caution: float = 0.0


@dataclass(frozen=True, slots=True)
class AreaSizes:
    """Where the size of an area is found.

    - `column`: The column that shows it: the largest total, or an exact one of comparable size.
    - `least`: What smaller sizes count as.
    - `usual`: What to assume where none was published.
    """

    column: int
    least: float
    usual: float

    @classmethod
    def find(cls, counts: Counts, mechanisms: tuple[Mechanism, ...], hierarchy: Hierarchy) -> AreaSizes:
        """Choose the column that shows how large areas are."""
        tops = sorted(set(hierarchy.top))
        means = {top: _mean(counts, top) for top in tops}
        largest = max(means.values())
        exact = {top for top in tops if isinstance(mechanisms[top], Exact) and means[top] >= largest / 2}
        column = max(tops, key=lambda top: (top in exact, means[top], -top))
        how = mechanisms[column]
        sizes = counts[:, column][counts[:, column] > ABSENT]
        usual = float(max(np.median(sizes), 1)) if sizes.size else 1.0
        return cls(column, 1.0 if isinstance(how, Exact) else LEAST_STEPS * float(step_of(how)), usual)

    def of(self, counts: Counts) -> FloatArray:
        """Return the sizes of some areas."""
        sizes = counts[:, self.column]
        return np.maximum(np.where(sizes > ABSENT, sizes, self.usual), self.least)

    def kinds_for(
        self, column: int, counts: Counts, mechanisms: tuple[Mechanism, ...], hierarchy: Hierarchy
    ) -> list[Exposure]:
        """Return the exposures that a column can have, besides none."""
        if column == self.column:
            return []
        found = [Exposure(SIZE), Exposure(ROOT)]
        for above in dict.fromkeys((hierarchy.top[column], hierarchy.parent[column])):
            if above not in (self.column, column):
                known = (counts[:, self.column] > ABSENT) & (counts[:, above] > ABSENT)
                whole = float(np.maximum(counts[known, self.column], 0).sum(dtype=np.float64))
                part = float(np.maximum(counts[known, above], 0).sum(dtype=np.float64))
                if whole > 0 and part > 0:
                    caution = 0.5 if isinstance(mechanisms[above], Exact) else CAUTION
                    found.append(Exposure(CORRECTED, above, part / whole, caution))
        return found

    def of_all(self, counts: Counts, chosen: Sequence[Exposure]) -> FloatArray:
        """Return areas × columns: the exposures of some areas in all columns, those of one kind at once."""
        sizes = self.of(counts)
        found = np.ones((len(counts), len(chosen)))
        kind, above, share, caution = (np.array(field) for field in zip(*chosen, strict=True))
        found[:, kind == SIZE] = sizes[:, np.newaxis]
        found[:, kind == ROOT] = np.sqrt(sizes)[:, np.newaxis]
        here = np.flatnonzero(kind == CORRECTED)
        if here.size:
            expected = share[here] * sizes[:, np.newaxis]
            shown = counts[:, above[here]]
            seen = np.where(shown > ABSENT, np.maximum(shown, 0), expected)
            found[:, here] = expected * (seen + caution[here]) / (expected + caution[here])
        return found

    def exposures(self, counts: Counts, chosen: Exposure, sizes: FloatArray | None = None) -> FloatArray:
        """Return the exposures of some areas; `sizes` saves working them out again."""
        if chosen.kind == NONE:
            return np.ones(len(counts))
        sizes = self.of(counts) if sizes is None else sizes
        if chosen.kind == SIZE:
            return sizes
        if chosen.kind == ROOT:
            return np.sqrt(sizes)
        expected = chosen.share * sizes
        shown = counts[:, chosen.above]
        above = np.where(shown > ABSENT, np.maximum(shown, 0), expected)
        return np.asarray(expected * (above + chosen.caution) / (expected + chosen.caution))


def _mean(counts: Counts, column: int) -> float:
    known = counts[:, column] > ABSENT
    return float(counts[known, column].mean()) if known.any() else 0.0
