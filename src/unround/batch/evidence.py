"""Local evidence: how what was published of a cell, and its prior, weigh each true count, before any sum is used."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.batch.forest import Table
from unround.batch.jit import inner
from unround.batch.sharing import PATTERNS, Draws
from unround.batch.types import Ints, PriorTable, Sharing, Windows
from unround.mechanisms.base import FloatArray


class Evidence(NamedTuple):
    """Local evidence as the kernels take it: windows (see `Windows`), a prior (see `PriorTable`), shared random numbers."""

    low: Ints
    start: Table
    weights: FloatArray
    prior_offset: Table
    prior_size: Table
    prior_weights: FloatArray
    draws: Draws


@inner
def weight(evidence: Evidence, area: int, column: int, count: int) -> float:
    """Return the weight of one true count of a cell, from its own published count and prior alone."""
    size = evidence.prior_size[column]
    found = evidence.prior_weights[evidence.prior_offset[column] + min(count, size - 1)]
    start = evidence.start[area, column]
    return float(found if start < 0 else found * evidence.weights[start + count - evidence.low[area, column]])


class Drawn(NamedTuple):
    """How random numbers are shared (see `Sharing`), and what was published, areas × columns."""

    sharing: Sharing
    published: Ints


def evidence_of(
    windows: Windows, prior: PriorTable | None, columns: int, nodes: int, drawn: Drawn | None = None
) -> Evidence:
    """Put local evidence together; a flat prior is a table with a single weight for every column.

    Parameters
    ----------
    windows, prior
        As for `posteriors`.
    columns, nodes : int
        How many cells an area has, and how many nodes its forest.
    drawn : Drawn, optional
        How totals share random numbers with their parts.
    """
    if prior is None:
        prior = PriorTable(np.zeros(columns, dtype=np.int64), np.ones(columns, dtype=np.int64), np.ones(1))
    return Evidence(
        plain(windows.low, np.int32),
        plain(windows.start, np.int64),
        plain(windows.weights, np.float64),
        plain(prior.offset, np.int64),
        plain(prior.size, np.int64),
        plain(prior.weights, np.float64),
        _draws(drawn, nodes, columns),
    )


def _draws(drawn: Drawn | None, nodes: int, columns: int) -> Draws:
    """Describe shared random numbers to the kernel; without any, say that there are none."""
    if drawn is None:
        none = np.full(nodes, -1, dtype=np.int64)
        zeros = np.zeros((1, columns), dtype=np.int32)
        return Draws(zeros, none, np.zeros(columns, dtype=np.bool_), np.zeros((1, PATTERNS)), np.zeros(1, dtype=np.int64))
    sharing = drawn.sharing
    return Draws(
        plain(drawn.published, np.int32),
        plain(sharing.row, np.int64),
        plain(sharing.two_way, np.bool_),
        plain(sharing.shares, np.float64),
        plain(sharing.least, np.int64),
    )


def plain(array: NDArray[Any], kind: type[np.generic]) -> NDArray[Any]:
    """Return an array in the type and layout that the kernels are compiled for; any other would trigger a recompilation."""
    return np.require(array, kind, ("C", "W"))
