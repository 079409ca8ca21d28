"""Local evidence: how what was published of a cell, and its prior, weigh each true count, before any sum is used."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.evidence.block import Ints, PriorWeights, Windows
from unround.evidence.keys import Drawn, KeyInput, no_keys
from unround.jit import inner
from unround.mechanisms.base import FloatArray
from unround.sums.compiled import Table


class Evidence(NamedTuple):
    """Local evidence as the kernels take it: `Windows`, `PriorWeights`, keys."""

    low: Ints
    start: Table
    weights: FloatArray
    prior_low: Ints
    prior_start: Table
    prior_weights: FloatArray
    keys: KeyInput


@inner
def weight(evidence: Evidence, area: int, column: int, count: int) -> float:
    """Return the weight of one true count of a cell, from its own published count and prior alone."""
    found = 1.0
    prior, start = evidence.prior_start[area, column], evidence.start[area, column]
    if prior >= 0:
        found = evidence.prior_weights[prior + count - evidence.prior_low[area, column]]
    if start >= 0:
        found *= evidence.weights[start + count - evidence.low[area, column]]
    return float(found)


def evidence_of(
    windows: Windows, prior: PriorWeights | None, columns: int, nodes: int, drawn: Drawn | None = None
) -> Evidence:
    """Put local evidence together."""
    if drawn is not None:
        windows = drawn.windows
    if prior is None:
        prior = PriorWeights(windows.low, np.full(windows.start.shape, -1, dtype=np.int64), np.ones(1))
    keys = no_keys(nodes, columns) if drawn is None else drawn.keys
    return Evidence(
        plain(windows.low, np.int32),
        plain(windows.start, np.int64),
        plain(windows.weights, np.float64),
        plain(prior.low, np.int32),
        plain(prior.start, np.int64),
        plain(prior.weights, np.float64),
        KeyInput(
            plain(keys.constant, np.float64),
            plain(keys.two_way, np.bool_),
            plain(keys.published, np.int32),
            plain(keys.start, np.int64),
            plain(keys.first, np.int64),
            plain(keys.arcs, np.float64),
            plain(keys.row, np.int64),
            int(keys.base),
            plain(keys.ratios, np.float64),
        ),
    )


def plain(array: NDArray[Any], kind: type[np.generic]) -> NDArray[Any]:
    """Return an array in the type and layout that the kernels are compiled for; any other would trigger a recompilation."""
    if array.dtype == kind and array.flags.carray:  # as nearly all are; numpy takes ten times as long to find that out
        return array
    return np.require(array, kind, ("C", "W"))
