"""Are claims calibrated where counts were rounded by keys, and how many more are there? `make keys` (some minutes).

Profiles whose totals, men and women appear in ten tables, each with a constant of its own: the audit finds the constants in the
published counts, and its claims are compared with the truth. The same is done without keys, as if every count had a random
number of its own. A count that appears in ten tables is claimed ten times or not at all; so the standard errors are by count.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from tests.keyed import keyed_census

from unround.audits import AuditOptions, audit

CONSTANTS = (0.31, 0.8, 0.43, 0.24, 0.62, 0.93, 0.55, 0.11, 0.73, 0.05)
BANDS = (0.66, 0.75, 0.85, 0.95, 0.99, 1.0 + 1e-9)
ENOUGH = 300
POINTS = 0.02


def claims(areas: int, seed: int, rounding: str) -> pl.DataFrame:
    """Return the likely claims about one profile: the count, its stated probability, and whether it is right."""
    release, true = keyed_census(areas, list(CONSTANTS), seed, parts=2)
    with tempfile.TemporaryDirectory() as work:
        audit(release, Path(work) / "audit", AuditOptions(rounding=rounding))
        found = pl.read_parquet(Path(work) / "audit" / "findings.parquet").filter(kind="likely")
    place = {column.key: at for at, column in enumerate(release.columns)}
    keys = [
        code if sex == "total" else f"{code}/{sex}" for code, sex in found.select("characteristic_id", "sex").iter_rows()
    ]
    rows = np.array([int(region[1:]) for region in found["region"]])
    right = true[rows, [place[key] for key in keys]] == found["value"].to_numpy()
    # The totals of all tables are one count.
    same = [
        f"{seed}/{row}/{key.split('.')[1] if key.split('.')[1][0] == '0' else key}"
        for row, key in zip(rows, keys, strict=True)
    ]
    return pl.DataFrame({"count": same, "stated": found["probability"], "right": right})


def bands(found: pl.DataFrame) -> Iterator[tuple[float, int, float, float, float]]:
    """Yield for every band where it begins, the number of claims, stated and right, and the standard error by count."""
    for low, high in zip(BANDS[:-1], BANDS[1:], strict=True):
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
    given = parser.parse_args()
    sets = {
        rounding: pl.concat([claims(given.areas, seed, rounding) for seed in range(1, given.seeds + 1)])
        for rounding in ("auto", "independent")
    }
    wrong = False
    for rounding, found in sets.items():
        print(
            f"\n{'with keys' if rounding == 'auto' else 'as if independent'}: {found.height:,} likely, {found['right'].sum():,} right"
        )
        for low, number, stated, right, error in bands(found):
            off = right - stated
            judged = number >= ENOUGH and abs(off) > max(POINTS, 2 * error)
            wrong |= judged and rounding == "auto"
            print(
                f"  from {low:.0%}: {number:7,} claims, stated {stated:.1%}, right {right:.1%}, {100 * off:+.1f} ± {100 * error:.1f}{' OFF' if judged else ''}"
            )
    sure = {rounding: found.filter(pl.col("right") & (pl.col("stated") >= 0.95)).height for rounding, found in sets.items()}
    print(
        f"\nright claims stated at 95% or more: {sure['auto']:,} with keys, {sure['independent']:,} without ({sure['auto'] / max(sure['independent'], 1):.1f} times)"
    )
    raise SystemExit(wrong)


if __name__ == "__main__":
    main()
