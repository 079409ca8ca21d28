"""How an audit is divided into blocks, and what the user decides about it."""

from __future__ import annotations

from unround.options import AuditOptions as AuditOptions

FEWEST, MOST = 16, 4096
"""Areas in a block: fewer would not pay, and more gain nothing."""

CELLS_AT_A_TIME = 500_000
"""Cells in a block: enough for arrays to pay, few enough to fit a kilobyte each into memory, of two blocks at a time."""


def block_size(cells: int) -> int:
    """Return how many areas of this many cells to process at a time."""
    return max(FEWEST, min(MOST, CELLS_AT_A_TIME // cells))
