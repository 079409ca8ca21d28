"""From whole distributions to what is reported of a cell."""

from __future__ import annotations

import numpy as np

from unround.batch.summary import ALIKE
from unround.batch.types import Distributions, Posterior
from unround.linked.bounds import Rows


def put_summaries(into: Posterior, found: Distributions, rows: Rows, members: Rows) -> None:
    """Summarise distributions: those of `members` become what is known of `rows`; cells without one stay as they are."""
    start = found.start[members]
    here = start >= 0
    if not here.any():
        return
    low = found.low[members][here].astype(np.int64)
    width = found.high[members][here].astype(np.int64) - low + 1
    first = np.cumsum(width) - width
    step = np.arange(int(width.sum())) - np.repeat(first, width)
    chances = found.chances[np.repeat(start[here], width) + step]
    largest = np.maximum.reduceat(chances, first)
    best = np.where(chances >= np.repeat(largest, width) * (1 - ALIKE), step, np.iinfo(np.int64).max)
    mode = np.minimum.reduceat(best, first)
    mean = np.add.reduceat(chances * step, first)
    square = np.add.reduceat(chances * (step - np.repeat(mean, width)) ** 2, first)
    where, column = np.nonzero(here)
    at = rows[where], column
    into.mode[at] = low + mode
    into.probability[at] = chances[first + mode]
    into.mean[at] = low + mean
    into.deviation[at] = np.sqrt(square)
