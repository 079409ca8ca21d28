"""The whole distribution of one cell, as the audit has it: the engine for whole releases, asked for every count in turn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unround.audits.block import Auditor
from unround.audits.contradictions import rows_of
from unround.audits.inferred import Inferred
from unround.batch.buffers import MOST_VALUES
from unround.batch.posterior import posteriors
from unround.batch.types import Tight


def histogram(
    auditor: Auditor, inferred: Inferred, cell: int, equations: Sequence[int], *, fitted: bool
) -> tuple[tuple[int, float], ...]:
    """Return how likely each count of a cell of the first area is.

    Parameters
    ----------
    auditor : Auditor
        Knows the sums, the prior, and how random numbers are shared.
    inferred : Inferred
        What was inferred about the area.
    cell : int
        The cell.
    equations : sequence of int
        The sums to use.
    fitted : bool
        Whether to use the prior of the audit; else a flat one.
    """
    model, reach = auditor.model, inferred.reach
    low, high = int(reach.low[0, cell]), int(reach.high[0, cell])
    if high - low >= MOST_VALUES:
        return ()
    rows = np.zeros(high - low + 1, dtype=np.int64)
    chosen = np.isin(np.arange(len(model.equations)), equations)
    active = np.repeat(chosen[None, :] & inferred.active[:1], rows.size, axis=0)
    asked = np.zeros((rows.size, len(model.columns)), dtype=np.int32)
    asked[:, cell] = np.arange(low, high + 1)
    bounds = Tight(*(getattr(reach, name)[rows] for name in Tight.__slots__))
    table = auditor.prior.table if fitted else None
    drawn = auditor.drawn(np.repeat(inferred.counts[:1], rows.size, axis=0))
    found = posteriors(model.compiled, rows_of(inferred.windows, rows), bounds, table, active, asked, drawn).asked
    assert found is not None  # it was asked for
    return tuple((low + k, float(p)) for k, p in enumerate(found[:, cell].tolist()) if p > 0)
