"""Is every verified claim about simulated people true? `make claims` (a quarter of an hour): 10,000 areas, three times.

Claims that hold in every world that fits the tables are proved by bounds in all areas, as `unround reconstruct` does in a
sample of them, and held against the records. A single false one fails.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import unround
from unround.options import ReconstructOptions
from unround.reconstruction.run import claimed, read_case

FEW = ("age", "sex", "marital")
SETTINGS: tuple[tuple[str, tuple[str, ...]], ...] = (("exact", FEW), ("rounding:3", FEW), ("exact", ()))
"""Mechanisms, and the attributes that claims are about; all that fit into the cross table if none are named."""


def claims(areas: int, people: int, how: str, attributes: Sequence[str], seed: int) -> dict[str, Any]:
    """Return what is claimed about all areas of one simulated census."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        unround.simulate(folder, persons=True, areas=areas, people=people, mechanism=how, seed=seed)
        tables = [unround.read(path) for path in sorted(folder.glob("*.toml"))]
        options = ReconstructOptions(attributes=tuple(attributes))
        case = read_case(tables, folder / "persons.parquet", options, folder / "case")
        told, _ = claimed(case, np.arange(len(case.records.areas)), lambda *_: None)
    return told


def main() -> None:
    """Count the claims, and fail where one is false."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--areas", type=int, default=10_000)
    parser.add_argument("--people", type=int, default=60, help="in a typical area")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    wrong = 0
    for how, attributes in SETTINGS:
        told = claims(given.areas, given.people, how, attributes, given.seed)
        made = told["at_least"] + told["exactly"]
        false = made - told["true"] + told["contradictory"]
        wrong += false
        print(
            f"{how}, {', '.join(told['attributes'])}: {made:,} claims, {told['areas']:,} areas, {told['exactly']:,} exact; "
            f"{told['true']:,} true; {told['contradictory']:,} areas without a world; {told['certified']:,} of "
            f"{told['written_out']:,} certified",
            flush=True,
        )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
