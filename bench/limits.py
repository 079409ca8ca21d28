"""How close the heaviest loops come to what this machine can do at all: each beside a limit measured in the same run.

For posteriors the limit is the processor's rate of multiply-adds, times those that the messages of an area consist of; for
reading, it is reading the bytes of the file and doing nothing with them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from bench import posterior
from bench.reading import ours as read_all
from bench.row import Row, Share, busy, interleaved
from bench.single import age_by_sex
from unround import simulate
from unround.engines.forest import posteriors
from unround.engines.messages import BOX, FREE, PARTIAL_BOX, USED, Buffers, arrange, box_at, buffers_for
from unround.evidence.block import Ints
from unround.evidence.cells import EvidenceBlock
from unround.jit import kernel
from unround.mechanisms.base import BoolArray, FloatArray
from unround.sums.compiled import END, Forest, forest_of

LENGTH = 1024
"""Numbers that a vector of the plain loop has: it stays in the fastest cache."""

TIMES = 20_000
"""How often the plain loop goes through them."""

RUNS = 7


@kernel
def multiply_add(out: FloatArray, one: FloatArray, factors: FloatArray) -> None:
    """Add multiples of a vector to another, four at a time: as fast as multiply-adds go, and what a convolution does."""
    last = len(out) - 3
    for k in range(0, len(factors), 4):
        a, b, c, d = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
        for i in range(last):
            out[i] += a * one[i] + b * one[i + 1] + c * one[i + 2] + d * one[i + 3]


@kernel
def multiply_adds(forest: Forest, buffers: Buffers, low: Ints, high: Ints, holds: BoolArray) -> float:
    """Return how many multiply-adds the messages of some areas consist of, up and down.

    The partial sums of a link, times each child's array on the way up; on the way down once more for the message to the
    child, and once for what is left.
    """
    number = 0.0
    for a in range(len(low)):
        if arrange(forest, buffers, low[a], high[a], holds)[0] < 0:
            continue
        for i in range(len(forest.links) - 1):
            if not buffers.links[i, USED]:
                continue
            start, free = forest.links[i, END], buffers.links[i, FREE]
            for s in range(start + 1, start + free):
                before, box = box_at(buffers.slots, s - 1, PARTIAL_BOX), box_at(buffers.slots, s, BOX)
                number += 3.0 * before[2] * before[3] * box[2] * box[3]
    return number


def peak() -> float:
    """Return how many multiply-adds this processor does in a second, in a plain loop."""
    rng = np.random.default_rng(1)
    out, one, factors = np.zeros(LENGTH), rng.random(LENGTH), 1e-6 * rng.random(TIMES)
    multiply_add(out, one, factors)
    return LENGTH * TIMES / min(busy(partial(multiply_add, out, one, factors)) for _ in range(RUNS))


def posterior_share(job: str, block: EvidenceBlock) -> Share:
    """Measure the posteriors of a few areas beside the multiply-adds they need."""
    bounds, forest, holds = block.bounds, forest_of(block.compiled), block.arrays().holds[0]
    needed = multiply_adds(forest, buffers_for(forest), bounds.low.astype(np.int32), bounds.high.astype(np.int32), holds)
    posteriors(block)
    pairs = [(needed / peak() / posterior.FEW, busy(partial(posteriors, block)) / posterior.FEW) for _ in range(RUNS)]
    return Share(f"{job}: {needed / posterior.FEW / 1e6:,.1f} million multiply-adds an area", "multiply-adds alone", pairs)


def bare_read(file: Path) -> int:
    """Read the bytes of a file, and do nothing with them."""
    with file.open("rb", buffering=0) as bytes_of:
        space, size = bytearray(1 << 20), 0
        while got := bytes_of.readinto(space):
            size += got
    return size


def rows() -> Iterator[Row]:
    """Measure everything, one row at a time."""
    rng = np.random.default_rng(1)
    yield posterior_share(
        "posterior of ages by sex, 78 cells", posterior.ages([age_by_sex(rng) for _ in range(posterior.FEW)])
    )
    fullest, emptiest = posterior.profiles(posterior.FEW)
    yield posterior_share("posterior of a whole profile by sex, the fullest areas", fullest)
    yield posterior_share("posterior of a whole profile by sex, the emptiest areas", emptiest)
    with tempfile.TemporaryDirectory() as folder:
        file = simulate(Path(folder), areas=2_000, seed=1, rows="short").files[0]
        bare_read(file), read_all(file)
        size = file.stat().st_size
        pairs = interleaved(partial(bare_read, file), partial(read_all, file), RUNS)
        rate = size / 1e6 / sorted(ours for _, ours in pairs)[RUNS // 2]
        yield Share(f"read {size / 1e6:.0f} MB of the bulk layout, short rows: {rate:,.0f} MB/s", "reading the bytes", pairs)


if __name__ == "__main__":
    for row in rows():
        print(row.to_json(), flush=True)
