"""How often each count was published in each column, gathered block by block."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms.base import BoolArray
from unround.release import ABSENT, Counts

Tallies = NDArray[np.int32]

CAP = 1000
"""Counts from this one on are told apart no longer: so far up, a prior is flat over any window that matters."""

BELOW = 64
"""Noise can publish counts below zero: so many of them are told apart."""


class Histograms:
    """How often each count was published, a row a column: counts from -`BELOW` to `CAP`, both ends taking all beyond.

    - `columns`: How many columns there are.

    Attributes
    ----------
    areas : int
        Areas that show any count.

    Examples
    --------
    >>> histograms = Histograms(2)
    >>> histograms.add(np.array([[0, 5], [5, 5], [0, ABSENT]], dtype=np.int32))
    >>> histograms.areas, histograms.of(0)
    (3, {0: 2, 5: 1})
    """

    def __init__(self, columns: int) -> None:
        self.areas = 0
        self.tallies: Tallies = np.zeros((columns, BELOW + CAP + 1), dtype=np.int32)

    def add(self, counts: Counts) -> None:
        """Take in a block of published counts, areas × columns; codes for counts that are absent are left out."""
        width = self.tallies.shape[1]
        self.areas += int(np.count_nonzero(present(counts).any(axis=1)))
        # A few columns at a time: the places of a whole block would take several times its memory.
        for first in range(0, len(self.tallies), 256):
            some = counts[:, first : first + 256]
            places = np.clip(some.astype(np.int64), -BELOW, CAP) + BELOW
            places += np.arange(some.shape[1]) * width
            found = np.bincount(places[present(some)], minlength=some.shape[1] * width)
            self.tallies[first : first + 256] += found.reshape(-1, width)

    def of(self, column: int) -> dict[int, int]:
        """Return the counts published in one column, and how often each was."""
        places = np.flatnonzero(self.tallies[column])
        return {int(place) - BELOW: int(self.tallies[column, place]) for place in places}


def present(counts: Counts) -> BoolArray:
    """Say which entries of a table are counts, not codes for why none is there."""
    return np.asarray(counts > ABSENT)
