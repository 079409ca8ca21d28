"""Is a table that adds up nearer to the truth? `make additive` (some minutes): every world under every mechanism.

Of all counts that stand in a sum and were not published exactly: the mean error and the mean square of published and
reconciled counts, what the model itself expects of the latter, and how many sums are off afterwards.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from research.commands import world as write_world
from research.worlds import WORLDS

import unround

MECHANISMS = ("rounding:3", "rounding:5", "cellkey:3,2", "laplace:1.45", "gaussian:2")
TOLERATED = 1.03
"""Where nearly all counts are empty, no additive table need be nearer to the truth than what was published."""

HEAD = ("world", "mechanism", "total", "error", "→", "own", "square", "→", "sums off")


def measured(world: str, how: str, rounded_total: bool, areas: int, seed: int) -> tuple[list[str], bool]:
    """Return one line of the table, and whether the error did not go up and every sum holds."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        write_world(world, folder, areas=areas, seed=seed, mechanism=how, rounded_total=rounded_total)
        made = unround.reconcile(folder / "release.toml")
        told, counts = made.summary, made.to_polars()
        true = pl.read_parquet(folder / "truth.parquet")
    both = counts.join(true, on=[name for name in true.columns if name != "true"])
    both = both.filter(pl.col("method").str.starts_with("posterior"))
    off = [np.abs((both[name] - both["true"]).to_numpy().astype(float)) for name in ("published", "reconciled")]
    numbers = [off[0].mean(), off[1].mean(), told["mean_error"], (off[0] ** 2).mean(), (off[1] ** 2).mean()]
    line = [world, how, "rounded" if rounded_total else "exact", *(f"{number:.3f}" for number in numbers)]
    return [*line, str(told["sums_off_after"])], off[1].mean() < TOLERATED * off[0].mean() and not told["sums_off_after"]


def main() -> None:
    """Print a line for every world and mechanism, and fail where an error went up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("worlds", nargs="*", default=list(WORLDS))
    parser.add_argument("--areas", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    failed = list[str]()
    print("  ".join(HEAD))
    for world in given.worlds:
        for how, rounded_total in [*((how, False) for how in MECHANISMS), ("rounding:5", True)]:
            line, fine = measured(world, how, rounded_total, given.areas, given.seed)
            print("  ".join(line), flush=True)
            failed += [] if fine else [f"{world}, {how}, {line[2]} total"]
    sys.exit(f"more, or not additive: {'; '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
