"""The figures of a release beside the counts that they are of, over all areas: what verdicts on figures are drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unround.figures import Figure
from unround.mechanisms import Exact, Mechanism
from unround.mechanisms.base import step_of
from unround.release import ABSENT, FIGURE_ABSENT, Block, Counts, FigureValues, adjustable
from unround.structure.scatter import ScatterWindows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MIX = 11_400_714_819_323_198_485
"""2⁶⁴ over the golden ratio, which mixes whole numbers well."""
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class CountData:
    """One count over all areas: as published, the least and the largest that is possible, and whether it was published."""

    shown: Ints
    low: Ints
    high: Ints
    there: Flags
    step: int
    """Between published counts: the base of their rounding."""


class FigureData:
    """Keeps the figures, and the counts that they are of, block by block.

    - `figures`: Of the release, in its order.
    - `place`: Where each column of counts is, by its key.
    """

    def __init__(self, figures: Sequence[Figure], place: Mapping[str, int]) -> None:
        self.figures = tuple(figures)
        keys = {key for one in self.figures for key in one.compared}
        self.used = sorted(place[key] for key in keys)
        order = {column: at for at, column in enumerate(self.used)}
        self._at = {key: order[place[key]] for key in keys}
        self._counts: list[Counts] = []
        self._values: list[FigureValues] = []
        self._flags: list[Flags] = []
        self._kinds: Sequence[Mechanism | None] = ()
        self._adjusted: Sequence[int] = ()
        self.base = 1
        """The base that most counts are rounded to: for counts that were not published."""

    def add(self, block: Block) -> None:
        """Take in some areas."""
        if self.figures and block.figures is not None:
            self._counts.append(np.ascontiguousarray(block.counts[:, self.used]))
            self._values.append(block.figures)
            self._flags.append(adjustable(block.areas))

    def close(self, mechanisms: Sequence[Mechanism | None], adjusted: Sequence[int]) -> None:
        """Say how counts were published, when all areas are there."""
        self._kinds = [mechanisms[column] for column in self.used]
        self._adjusted = [adjusted[column] for column in self.used]
        steps = [step_of(one) for one in mechanisms if one is not None and not isinstance(one, Exact)]
        self.base = max(set(steps), key=lambda step: (steps.count(step), step), default=1)
        if not self._values:  # nobody has them at hand
            self._counts = [np.zeros((0, len(self.used)), dtype=np.int32)]
            self._values, self._flags = [np.zeros((0, len(self.figures)), dtype=np.int64)], [np.zeros(0, dtype=np.bool_)]
        if len(self._counts) > 1:
            self._counts, self._flags = [np.concatenate(self._counts)], [np.concatenate(self._flags)]
            self._values = [np.concatenate(self._values)]

    @property
    def areas(self) -> int:
        """How many there are."""
        return len(self._values[0]) if self._values else 0

    def values(self, at: int) -> FigureValues:
        """Return the figure at a place, over all areas."""
        return self._values[0][:, at]

    def there(self, at: int) -> Flags:
        """Return in which areas a figure is published."""
        return np.asarray(self.values(at) != FIGURE_ABSENT)

    def count(self, key: str) -> CountData:
        """Return a count over all areas."""
        at = self._at[key]
        how, own = self._kinds[at], np.ascontiguousarray(self._counts[0][:, at : at + 1])
        down, up, seen = ScatterWindows([how], [self._adjusted[at]]).of(own, self._flags[0])
        shown = np.where(own[:, 0] > ABSENT, own[:, 0], 0).astype(np.int64)
        step = self.base if how is None else step_of(how)
        return CountData(shown, np.maximum(shown - down[:, 0], 0), shown + up[:, 0], seen[:, 0], step)

    def difference(self, whole: str, outside: str) -> CountData:
        """Return what is left of one count without another that is part of it, over all areas."""
        one, other = self.count(whole), self.count(outside)
        low, high = np.maximum(one.low - other.high, 0), np.maximum(one.high - other.low, 0)
        return CountData(np.maximum(one.shown - other.shown, 0), low, high, one.there & other.there, one.step)

    def largest(self, figure: Figure) -> float:
        """Return the largest number that a count of a figure may be."""
        return float(max((self.count(key).high.max(initial=1) for key in figure.compared), default=1))

    def units(self, figure: Figure) -> Ints | None:
        """Return how many units a figure is of, as published, -1 where it was not; None where nothing tells."""
        key = figure.universe or figure.within
        if key:
            whole = self.count(key)
            return np.where(whole.there, whole.shown, -1)
        if not figure.groups:
            return None
        counts = [self.count(group.count) for group in figure.groups]
        there = np.all([one.there for one in counts], axis=0)
        return np.where(there, np.sum([one.shown for one in counts], axis=0), -1)

    def mixed(self, figure: Figure, values: FigureValues) -> Ints:
        """Return a number of each area that depends on its figure and its counts alone, and is no order of either."""
        found = (values.astype(np.uint64) * np.uint64(_MIX)) >> np.uint64(7)
        for key in figure.compared:
            own = self._counts[0][:, self._at[key]].astype(np.int64).astype(np.uint64)
            found = ((found ^ own) * np.uint64(_MIX)) ^ (found >> np.uint64(29))
        return np.asarray(found >> np.uint64(2)).astype(np.int64)
