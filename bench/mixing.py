"""Do the chains reach every table? Against enumeration, for every pattern of exact totals: `make mixing`.

With exact totals and sparse counts, tables that fit may lie so far apart that no move leads from one to the other: a chain
would then be wrong without knowing it. Tables small enough for enumeration show whether that happens.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from unround.bounds.propagation import Bounds, propagate
from unround.engines.chain_kernel import CellWeights
from unround.engines.chains import AGREED, Effort, sample
from unround.engines.enumeration import list_pinned, list_tables
from unround.engines.multiway import base_of
from unround.engines.multiway_block import EFFORT
from unround.mechanisms import Exact, Mechanism, Rounding
from unround.sums.forest import Equations
from unround.sums.multiway import MultiwayTable, multiway_tables

SHAPES = ((5, 2, 4), (3, 3, 3), (2, 3, 3), (2, 2, 3))
MEANS = (8, 20, 60)
BASES = (3, 5)
OFF = 0.1
"""A probability that is wrong by more is off."""


def cube(shape: tuple[int, ...]) -> tuple[Equations, NDArray[np.int64]]:
    """Return the sums of a table with all margins, and for every cell which axes it adds up (bits)."""
    places = list(product(*(range(size + 1) for size in shape)))  # 0 is the total of an axis
    at = {place: i for i, place in enumerate(places)}
    sums = []
    for place in places:
        for axis, size in enumerate(shape):
            if place[axis] == 0:
                parts = tuple(at[(*place[:axis], k, *place[axis + 1 :])] for k in range(1, size + 1))
                sums.append((at[place], parts))
    added = np.array([sum((place[axis] == 0) << axis for axis in range(len(shape))) for place in places])
    return tuple(sums), added


def patterns(axes: int) -> Iterator[frozenset[int]]:
    """Return every set of margins that may be exact, each as the bits of the axes that it adds up."""
    margins = range(1, 1 << axes)
    for number in range(len(margins) + 1):
        yield from map(frozenset, combinations(margins, number))


@dataclass(frozen=True, slots=True)
class Result:
    """How chains did on the areas that could be enumerated: how many are off, and how many although their chains agree.

    `few` areas have so few tables that audits enumerate them at once; they are not among `areas`.

    `errors` has the largest error of each area whose chains agree; the others are enumerated in an audit.
    """

    areas: int
    few: int
    off: int
    unseen: int
    apart: int
    errors: tuple[float, ...]


def publish(
    table: MultiwayTable, equations: Equations, true: NDArray[np.int64], how: list[Mechanism], rng: np.random.Generator
) -> CellWeights:
    """Publish true counts, and return what that leaves possible."""
    full = true @ table.belongs().T.astype(np.int64)
    shown = np.stack([one.publish(full[:, c], rng) for c, one in enumerate(how)], axis=1)
    low, high = np.empty(full.shape, dtype=np.int32), np.empty(full.shape, dtype=np.int32)
    windows = [[one.window(int(count)) for one, count in zip(how, row, strict=True)] for row in shown]
    for a, row in enumerate(windows):
        bounds = Bounds.of(row)
        assert propagate(equations, bounds)
        low[a], high[a] = bounds.lows, bounds.highs
    given = CellWeights.empty(low, high)
    leaves = set(table.leaves.tolist())
    for a, row in enumerate(windows):
        for c, window in enumerate(row):
            assert window.weights is not None
            size, place = high[a, c] - low[a, c] + 1, given.place[a, c]
            begin = low[a, c] - window.low
            given.weights[place : place + size] = window.weights[begin : begin + size]
            given.base[a, c] = 0 if c in leaves and window.low == 0 else base_of(window.weights, 0, window.weights.size)
            given.centre[a, c] = window.low + given.base[a, c] - 1 if given.base[a, c] else low[a, c]
    return given


def measure(
    shape: tuple[int, ...],
    exact: frozenset[int],
    mean: float,
    base: int,
    areas: int,
    effort: Effort,
    visits: int = 3_000_000,
    *,
    as_audits: bool = True,
) -> Result:
    """Compare chains with enumeration; as audits do, or by chains even where few tables fit."""
    equations, added = cube(shape)
    (table,) = multiway_tables(len(added), equations)
    assert table is not None
    rng = np.random.default_rng([*shape, int(mean), base, *sorted(exact)])
    rate = rng.gamma(0.7, 1.0, (areas, table.leaves.size))
    true = rng.poisson(mean * rate / rate.sum(axis=1, keepdims=True))
    how: list[Mechanism] = [Exact() if int(one) in exact else Rounding(base) for one in added]
    given = publish(table, equations, true, how, rng)
    listed = list_tables(table, given, visits)
    rows = np.flatnonzero(listed.complete)
    few = list_pinned(table, given).complete & as_audits
    found = sample(table, given, np.arange(areas, dtype=np.uint64) + np.uint64(1), effort, skipped=few)
    rows = rows[~few[rows]]
    worst = []
    for a in rows.tolist():
        here = slice(given.area[a], given.area[a + 1])
        worst.append(float(np.abs(found.chances[here] - listed.chances[here]).max()))
    off = np.array(worst) > OFF
    agreed = found.status[rows] == AGREED
    errors = tuple(np.array(worst)[agreed].tolist())
    return Result(len(rows), int(few.sum()), int(off.sum()), int((off & agreed).sum()), int((~agreed).sum()), errors)


def main() -> None:
    """Print a row for every shape, mean and base, over all patterns."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--areas", type=int, default=5, help="areas for each pattern")
    parser.add_argument("--every", type=int, default=1, help="only every so many patterns")
    chosen = parser.parse_args()
    print("shape      mean base    enumerated  by chains   off  off though chains agree  chains apart  mean error  worst")
    failed = False
    for shape, mean, base in product(SHAPES, MEANS, BASES):
        results = [
            (one, measure(shape, one, mean, base, chosen.areas, EFFORT))
            for one in list(patterns(len(shape)))[:: chosen.every]
        ]
        errors = [error for _, result in results for error in result.errors]
        areas, few, off, unseen, apart = (
            sum(getattr(r, name) for _, r in results) for name in ("areas", "few", "off", "unseen", "apart")
        )
        failed |= unseen > 0
        print(
            f"{'×'.join(map(str, shape)):<10} {mean:>4} {base:>4} {few:>13} {areas:>10} {off:>5} {unseen:>24} {apart:>13} "
            f"{np.mean(errors) if errors else 0:>11.4f} {max(errors, default=0):>6.3f}",
            flush=True,
        )
        for one, result in results:
            if result.unseen:
                print(f"    exact margins {sorted(one)}: {result.unseen} of {result.areas}")
    if failed:
        raise SystemExit("some chains agreed on a probability that is wrong by more than 0.1")


if __name__ == "__main__":
    main()
