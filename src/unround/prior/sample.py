"""A sample of areas, the same in whatever order they come."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unround.prior.histograms import present
from unround.release import Counts


class AreaSample:
    """A sample of areas, kept whole: it depends on the areas' counts, not on their order or on blocks.

    Parameters
    ----------
    columns : int
        How many columns there are.
    most : int
        Areas to keep.

    Attributes
    ----------
    seen : int
        How many areas with any count there were to choose from.
    """

    def __init__(self, columns: int, most: int) -> None:
        self.most = most
        self.seen = 0
        self._keys: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self._counts: Counts = np.empty((0, columns), dtype=np.int32)

    @property
    def counts(self) -> Counts:
        """The sampled areas × columns, in an order of their own."""
        return self._counts

    def add(self, counts: Counts) -> None:
        """Take in a block of areas; those without any count are left out."""
        keys = _mixed(counts)
        chosen = present(counts).any(axis=1)
        self.seen += int(np.count_nonzero(chosen))
        if self._keys.size == self.most:
            chosen &= keys <= self._keys[-1]
        keys = np.concatenate([self._keys, keys[chosen]])
        both = np.concatenate([self._counts, counts[chosen]])
        keep = np.argsort(keys, kind="stable")[: self.most]  # areas with equal keys have equal counts: any will do
        self._keys, self._counts = keys[keep], both[keep]


def _mixed(counts: Counts) -> NDArray[np.uint64]:
    """Return a number for every area that looks random, but is the same for the same counts."""
    keys = np.full(len(counts), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in range(counts.shape[1]):
        keys ^= counts[:, column].astype(np.int64).view(np.uint64)
        keys *= np.uint64(0xBF58476D1CE4E5B9)
        keys ^= keys >> np.uint64(31)
    return keys
