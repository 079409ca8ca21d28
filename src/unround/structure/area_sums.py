"""Do areas add up to their parents? Parents and children of one release, compared on some columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms import Exact, Mechanism
from unround.release import ABSENT, Block, Counts
from unround.structure.evidence import GeographyVerdict
from unround.structure.scatter import ScatterWindows

if TYPE_CHECKING:
    import polars as pl

_COMPARED = 24
"""Columns that are compared; a few large ones are as informative as all."""
_NOT_CODES = ("region_name", "level", "adjustable")


class GeographyTally:
    """Collects, area by area, what is needed to compare parents with their children.

    - `axes`: The columns of the frame that name an area; parents can only be named by one.
    - `chosen`: The columns of counts to compare.
    """

    def __init__(self, axes: Sequence[str], chosen: Sequence[int]) -> None:
        self._axes, self._chosen = tuple(axes), np.array(chosen, dtype=np.int64)
        self._frames: list[pl.DataFrame] = []
        self._counts: list[Counts] = []

    def add(self, block: Block) -> None:
        """Keep the codes and a few counts of some areas."""
        import polars as pl

        codes = [
            name
            for name, kind in block.areas.schema.items()
            if name not in self._axes and name not in _NOT_CODES and kind == pl.String
        ]
        if len(self._axes) == 1 and codes:
            self._frames.append(block.areas.select(self._axes[0], *codes))
            self._counts.append(block.counts[:, self._chosen])

    def results(self, mechanisms: Sequence[Mechanism | None]) -> tuple[GeographyVerdict, ...]:
        """Compare, for every column of codes that names areas of the release."""
        import polars as pl

        if not self._frames:
            return ()
        frame = pl.concat(self._frames, how="diagonal")
        counts = np.concatenate(self._counts)
        place = {code: at for at, code in enumerate(frame[self._axes[0]].to_list())}
        kinds = [mechanisms[at] for at in self._chosen.tolist()]
        found = []
        for by in frame.columns[1:]:
            inside = np.array([place.get(code, -1) for code in frame[by].to_list()])
            inside[inside == np.arange(len(inside))] = -1  # an area may name itself
            if (inside >= 0).any():
                found.append(_compare(by, inside, counts, kinds))
        return tuple(found)


def _compare(by: str, inside: NDArray[np.int64], counts: Counts, kinds: Sequence[Mechanism | None]) -> GeographyVerdict:
    """Compare every parent with the sum of its children."""
    windows = ScatterWindows(kinds, [0] * len(kinds))
    down, up, seen = windows.of(counts, np.zeros(len(counts), dtype=np.bool_))
    shown = np.where(counts > ABSENT, counts, 0).astype(np.int64)
    child = inside >= 0
    sums, low, high, hidden = (np.zeros(counts.shape, dtype=np.int64) for _ in range(4))
    for into, of in ((sums, shown), (low, down), (high, up), (hidden, ~seen)):
        np.add.at(into, inside[child], of[child].astype(np.int64))
    parent = np.zeros(len(counts), dtype=np.bool_)
    parent[inside[child]] = True
    complete = parent[:, None] & seen & (hidden == 0)
    residual = shown - sums
    agree = complete & (residual <= high + down) & (residual >= -(low + up))
    exact = np.array([kind == Exact() for kind in kinds], dtype=np.bool_)
    tallies = [(int(complete[:, which].sum()), int(agree[:, which].sum())) for which in (exact, ~exact)]
    words = [
        f"{fine:,} of {all_:,} {what} ({fine / all_:.1%})"
        for (all_, fine), what in zip(tallies, ("exact counts", "rounded counts"), strict=True)
        if all_
    ]
    why = (
        "consistent with the sum of the areas within: " + ", ".join(words)
        if words
        else "no parent has the counts of all areas within it"
    )
    return GeographyVerdict(by, int(parent.sum()), int(child.sum()), tallies[0], tallies[1], why)


def columns_to_compare(sample: Counts, mechanisms: Sequence[Mechanism | None]) -> list[int]:
    """Return the columns that are published most often, and among these the largest; exact ones first."""
    shown = sample > ABSENT
    size = np.where(shown, sample, 0).sum(0, dtype=np.float64)
    told = [at for at, kind in enumerate(mechanisms) if kind is not None and shown[:, at].any()]
    return sorted(told, key=lambda at: (mechanisms[at] != Exact(), -shown[:, at].sum(), -size[at]))[:_COMPARED]
