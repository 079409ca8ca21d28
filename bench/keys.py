"""Are claims calibrated where counts were rounded by keys, and how many more are there? `make keys` (some minutes).

Profiles whose totals, men and women appear in ten tables, each with a constant of its own: the audit finds the constants in
the published counts, and its claims are compared with the truth. The same is done as if every count had a random number of
its own. A count that appears in ten tables is claimed ten times or not at all, so standard errors are by count.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
from tests.keyed import keyed_census

from unround.job import audit
from unround.options import AuditOptions

CONSTANTS = (0.31, 0.8, 0.43, 0.24, 0.62, 0.93, 0.55, 0.11, 0.73, 0.05)
BANDS = (0.66, 0.75, 0.85, 0.95, 0.99, 1.0 + 1e-9)
ENOUGH = 300
POINTS = 0.02
SURE = 0.95


def claims(areas: int, seed: int, rounding: str, parts: int = 5) -> pl.DataFrame:
    """Return the likely claims about one profile: the count, its stated probability, and whether it is right."""
    release, true = keyed_census(areas, list(CONSTANTS), seed, parts=parts)
    with tempfile.TemporaryDirectory() as work:
        audit(release, Path(work) / "audit", AuditOptions(rounding=rounding))
        found = pl.read_parquet(Path(work) / "audit" / "findings.parquet").filter(kind="likely")
    place = {column.key: at for at, column in enumerate(release.columns)}
    names = found.select("characteristic_id", "sex").iter_rows()
    keys = [code if sex == "total" else f"{code}/{sex}" for code, sex in names]
    rows = np.array([int(region[1:]) for region in found["region"]])
    right = true[rows, [place[key] for key in keys]] == found["value"].to_numpy()
    # Row 0 of all tables is one count.
    rests = [key.split(".")[1] if key.split(".")[1].startswith("0") else key for key in keys]
    same = [f"{seed}/{row}/{rest}" for row, rest in zip(rows, rests, strict=True)]
    return pl.DataFrame({"count": same, "stated": found["probability"], "right": right})


def bands(found: pl.DataFrame) -> Iterator[tuple[float, int, float, float, float]]:
    """Yield for every band where it begins, the number of claims, stated and right, and the standard error by count."""
    for low, high in pairwise(BANDS):
        here = found.filter((pl.col("stated") >= low) & (pl.col("stated") < high))
        if here.height:
            off = (pl.col("right") - pl.col("stated")).sum()
            by_count = here.group_by("count").agg(off.alias("off"))["off"].to_numpy()
            error = float(np.sqrt((by_count**2).sum())) / here.height
            yield low, here.height, float(here["stated"].to_numpy().mean()), float(here["right"].to_numpy().mean()), error


def main() -> None:
    """Measure, print, and fail where a band is off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--areas", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--parts", type=int, default=5, help="rows of every table")
    given = parser.parse_args()
    sets = {
        rounding: pl.concat([claims(given.areas, seed, rounding, given.parts) for seed in range(1, given.seeds + 1)])
        for rounding in ("auto", "independent")
    }
    wrong = False
    for rounding, found in sets.items():
        name = "with keys" if rounding == "auto" else "as if independent"
        print(f"\n{name}: {found.height:,} likely, {found['right'].sum():,} right")
        for low, number, stated, right, error in bands(found):
            off = right - stated
            judged = number >= ENOUGH and abs(off) > max(POINTS, 2 * error)
            wrong |= judged and rounding == "auto"
            shown = f"stated {stated:.1%}, right {right:.1%}, {100 * off:+.1f} ± {100 * error:.1f}"
            print(f"  from {low:.0%}: {number:7,} claims, {shown}{' OFF' if judged else ''}")
    sure = pl.col("right") & (pl.col("stated") >= SURE)
    keyed, without = (sets[rounding].filter(sure).height for rounding in ("auto", "independent"))
    times = keyed / max(without, 1)
    print(f"\nright claims stated at {SURE:.0%} or more: {keyed:,} with keys, {without:,} without ({times:.1f} times)")
    raise SystemExit(wrong)


if __name__ == "__main__":
    main()
