"""Compiling ahead: another process compiles the largest kernel while this one reads a file and fits priors.

Only the first audit on a machine compiles anything; that kernel takes half of the time.
"""

from __future__ import annotations

import numpy as np

from unround.engines.forest import areas_of_block, posteriors
from unround.evidence.block import CellBounds, WindowTable
from unround.evidence.cells import EvidenceBlock
from unround.jit import compile_elsewhere
from unround.machine import serve
from unround.mechanisms import Rounding
from unround.sums.compiled import compile_sums


def compile_ahead() -> None:
    """Begin to; `forest` waits until it is done."""
    compile_elsewhere(areas_of_block, __name__)


def compiled_now(_: object) -> bool:
    """Have one small area inferred, for which the kernel is compiled as it is for all audits without keys."""
    sums = compile_sums(3, ((0, (1, 2)),), frozenset())
    counts = np.array([[10, 5, 5]], dtype=np.int32)
    windows, _unknown = WindowTable([Rounding(5)] * 3).of(counts)
    unused = np.zeros_like(counts)
    bounds = CellBounds(windows.low, windows.high, unused, unused, np.ones(1, dtype=np.bool_))
    return bool(posteriors(EvidenceBlock(sums, windows, bounds), counts).possible.all())


if __name__ == "__main__":
    serve(compiled_now)
