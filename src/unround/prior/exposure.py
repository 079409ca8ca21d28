"""How many people of an area a count is about: the exposure that its rate is multiplied with.

Four kinds, of which each column takes the one that explains its published counts best: the size of the area (the total at
the top of its table), that size corrected by what the total directly above shows, the square root of the size, and none at
all. The total above is itself rounded, and its rounding is evidence of its own: taken as it is, it would count twice where
it is small. So it corrects the size only as far as it is large beside `CAUTION`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms.base import FloatArray
from unround.release import ABSENT, Counts

SIZE, CORRECTED, ROOT, NONE = range(4)
KINDS = (SIZE, CORRECTED, ROOT, NONE)

CAUTION = 25.0
"""Persons that are added to the total above and to what is expected of it, before the two are compared."""


def exposure(counts: Counts, kind: int, top: int, parent: int, share: float, usual: float) -> FloatArray:
    """Return the exposures of some areas for one column.

    Parameters
    ----------
    counts : array
        Areas × columns, as published.
    kind : int
        One of `KINDS`.
    top, parent : int
        The columns of the total at the top, and of the one directly above.
    share : float
        The total above, as a share of the one at the top, over all areas.
    usual : float
        The size to assume where none was published.
    """
    if kind == NONE:
        return np.ones(len(counts))
    size = np.where(counts[:, top] > ABSENT, np.maximum(counts[:, top], 1), usual).astype(np.float64)
    if kind == ROOT:
        return np.sqrt(size)
    if kind == CORRECTED:
        expected = share * size
        above = np.where(counts[:, parent] > ABSENT, np.maximum(counts[:, parent], 0), expected)
        return np.asarray(expected * (above + CAUTION) / (expected + CAUTION))
    return size


def usual_size(counts: Counts, top: int) -> float:
    """Return the median size of the areas for which one was published."""
    sizes = counts[:, top]
    known = sizes[sizes > ABSENT]
    return float(max(np.median(known), 1)) if known.size else 1.0


def share_above(counts: Counts, top: int, parent: int) -> float:
    """Return how large the total above is over all areas, as a share of the one at the top."""
    both: NDArray[np.bool_] = (counts[:, top] > ABSENT) & (counts[:, parent] > ABSENT)
    whole = float(np.maximum(counts[both, top], 0).sum(dtype=np.float64))
    part = float(np.maximum(counts[both, parent], 0).sum(dtype=np.float64))
    return part / whole if whole > 0 and part > 0 else 1.0
