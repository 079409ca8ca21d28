"""What is known of cells by themselves, as the compiled kernels take it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.batch.sharing import PATTERNS, Draws
from unround.batch.sweeps import Evidence
from unround.batch.types import Ints, PriorTable, Sharing, Windows


class Drawn(NamedTuple):
    """How random numbers are shared (see `Sharing`), and what was published, areas × columns."""

    sharing: Sharing
    published: Ints


def evidence_of(
    windows: Windows, prior: PriorTable | None, columns: int, nodes: int, drawn: Drawn | None = None
) -> Evidence:
    """Put together what is known of cells by themselves; a flat prior is a table of one weight for every column.

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
    """Put together what the kernel is told about shared random numbers, if only that there are none."""
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
    """Return an array as the kernel knows it: for any other kind, it would have to be compiled once more."""
    return np.require(array, kind, ("C", "W"))
