"""A sample of areas, the same in whatever order they come."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unround.prior.histograms import present
from unround.release import Counts


class AreaSample:
    """A sample of areas, kept whole: it depends on the areas' counts, not on their order or on blocks.

    - `columns`: How many columns there are.
    - `most`: Areas to keep.

    Attributes
    ----------
    seen : int
        How many areas with any count there were to choose from.
    """

    def __init__(self, columns: int, most: int) -> None:
        self.most = most
        self.seen = 0
        self._times: dict[int, int] = {}
        self._keys: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self._counts: Counts = np.empty((0, columns), dtype=np.int32)

    @property
    def counts(self) -> Counts:
        """The sampled areas × columns, in an order of their own."""
        return self._counts

    def add(self, counts: Counts) -> None:
        """Take in a block of areas; those without any count are left out."""
        keys = self._own_keys(counts)
        chosen = present(counts).any(axis=1)
        self.seen += int(np.count_nonzero(chosen))
        if self._keys.size == self.most:
            chosen &= keys <= self._keys[-1]
        keys = np.concatenate([self._keys, keys[chosen]])
        both = np.concatenate([self._counts, counts[chosen]])
        keep = np.argsort(keys, kind="stable")[: self.most]
        self._keys, self._counts = keys[keep], both[keep]

    def _own_keys(self, counts: Counts) -> NDArray[np.uint64]:
        """Return a random number for every area: that of its counts, and of how many areas with the same came before.

        Without the latter, all areas without anybody, for instance, would be in the sample, or none.
        """
        contents = _mixed(np.full(len(counts), _START, dtype=np.uint64), *counts.T)
        order = np.argsort(contents, kind="stable")
        different, first, number = np.unique(contents[order], return_index=True, return_counts=True)
        before = np.array([self._times.get(one, 0) for one in different.tolist()], dtype=np.int64)
        self._times.update(zip(different.tolist(), (before + number).tolist(), strict=True))
        rank = np.empty(len(counts), dtype=np.int64)
        rank[order] = np.arange(len(counts)) - np.repeat(first - before, number)
        return _mixed(contents, rank)


_START = 0x9E3779B97F4A7C15


def _mixed(keys: NDArray[np.uint64], *columns: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Return keys that look random, but are the same for the same numbers (the finaliser of SplitMix64)."""
    for column in columns:
        keys = keys ^ column.astype(np.int64).view(np.uint64)
        keys = keys * np.uint64(0xBF58476D1CE4E5B9)
        keys = keys ^ (keys >> np.uint64(31))
    return keys
