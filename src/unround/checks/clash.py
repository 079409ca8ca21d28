"""The smallest set of cells that cannot be, for one impossible sum."""

from __future__ import annotations

from collections.abc import Sequence

from unround.infer.certify import contradiction
from unround.infer.clash import smallest_clash
from unround.mechanisms import Mechanism, Unpublished
from unround.proofs import contradiction_in_words
from unround.release import Column
from unround.system import Cell, Sum, System

EFFORT = 20_000
"""How long to look for a smaller clash, in cells and sums looked at."""


def clash_in_words(columns: Sequence[Column], mechanisms: Sequence[Mechanism], published: Sequence[int]) -> str:
    """Say why a sum cannot hold, with no more cells than it takes.

    Parameters
    ----------
    columns, mechanisms, published
        Of the total first, then of the parts.
    """
    names = [column.key for column in columns]
    cells = [Cell(name, value, how) for name, value, how in zip(names, published, mechanisms, strict=True)]
    system = System(cells, [Sum(names[0], tuple(names[1:]))])
    clash = smallest_clash(system, EFFORT)
    kept = set(clash.cells)
    small = System([cell if cell.name in kept else Cell(cell.name, None, Unpublished()) for cell in cells], clash.sums)
    steps = contradiction(small)
    return contradiction_in_words(small, steps) if steps else f"{'; '.join(map(str, clash.sums))} cannot hold."
