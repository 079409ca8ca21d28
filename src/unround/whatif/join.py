"""Several tables as one release."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from unround.release import NOT_AVAILABLE, Block, Progress, Proposal, Release


def joined(releases: Sequence[Release]) -> Release:
    """Return one release with the columns of all, side by side; counts that two have are a sum of one part each."""
    first, second = releases
    known = first.index
    offset = len(first.columns)
    columns = list(first.columns)
    proposals = list(first.proposals)
    for at, column in enumerate(second.columns):
        if column.key in known:
            proposals.append(Proposal(offset + at, (known[column.key],), "universe"))
            codes = (f"{column.codes[0]} (2)", *column.codes[1:])
            column = replace(column, key=f"{column.key} (2)", codes=codes, block=f"{column.block} (2)")
        columns.append(column)
    for one in second.proposals:
        proposals.append(Proposal(offset + one.total, tuple(offset + part for part in one.parts), one.origin))

    def read(progress: Progress) -> Iterable[Block]:
        rows = {}
        parts = list(second.blocks())
        for block in parts:
            for key, counts in zip(block.areas.select(second.areas).iter_rows(), block.counts, strict=True):
                rows[key] = counts
        nothing = np.full(len(second.columns), NOT_AVAILABLE, dtype=np.int32)
        for block in first.blocks(progress):
            more = [rows.get(key, nothing) for key in block.areas.select(first.areas).iter_rows()]
            yield Block(block.areas, np.hstack([block.counts, np.array(more, dtype=np.int32)]))

    return replace(first, columns=tuple(columns), proposals=tuple(proposals), read=read)
