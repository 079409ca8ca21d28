"""`make acro`: the folders beside this file, by ACRO's own code (in an environment of its own: it needs an older pandas).

The records are drawn at random. `leaky`: a table of regions and grants in which ACRO hides small counts, and one of regions
and sexes, whose totals give them away. `rounded`: tables that ACRO rounds. `single`: the first table alone.
"""

import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from acro import ACRO

HERE = Path(__file__).parent


def records() -> pd.DataFrame:
    rng, number = np.random.default_rng(4), 400
    return pd.DataFrame(
        {
            "region": rng.choice(["North", "South", "East", "West"], number, p=[0.4, 0.3, 0.2, 0.1]),
            "grant": rng.choice(["G", "N", "R", "R/G"], number, p=[0.5, 0.3, 0.19, 0.01]),
            "sex": rng.choice(["Men", "Women"], number),
            "income": rng.lognormal(10, 1, number),
        }
    )


def finalise(session: ACRO, name: str) -> None:
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    session.finalise(str(folder), "json", interactive=False)
    shutil.rmtree(folder / "checksums")
    for extra in folder.glob("session_summary.*"):
        extra.unlink()


def main() -> None:
    frame = records()
    leaky = ACRO(suppress=True)
    leaky.crosstab(frame.region, frame.grant, margins=True)
    leaky.crosstab(frame.region, frame.sex, margins=True)
    leaky.crosstab([frame.region], [frame.grant, frame.sex])
    leaky.crosstab(frame.region, frame.grant, values=frame.income, aggfunc="mean")
    finalise(leaky, "leaky")
    single = ACRO(suppress=True)
    single.crosstab(frame.region, frame.grant, margins=True)
    finalise(single, "single")
    rounded = ACRO(mitigation="round")
    rounded.crosstab(frame.region, frame.grant, margins=True)
    rounded.crosstab(frame.region, frame.sex)
    finalise(rounded, "rounded")
    frame.groupby(["region", "grant", "sex"]).size().rename("count").to_csv(HERE / "truth.csv")


if __name__ == "__main__":
    sys.exit(main())
