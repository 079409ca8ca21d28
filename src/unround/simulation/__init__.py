"""A synthetic census with known truth.

People are drawn first and counted second, so every sum holds in truth; then each cell is published by its
mechanism on its own. The country, its profile and its files have the shape of the
Canadian census of 2021; the numbers are invented.

- `profile`: the rows of the profile, their kinds and the sums between them: `schema`
- `geography`, `people`: the country and its made-up shapes; households and persons
- `counts`: `true_counts`: blocks of areas as arrays; rates, averages and medians beside them
- `keyed`: what is published of them, also by the keys of their records: `Rounds`
- `files`: three layouts, the truth beside them, and the note that says that all of it is invented; `census` writes them
- `persons`: another truth in place of the census: records, and tables published from them

Areas come children first (the DAs of a CSD, the CSD, … the province), so that one pass adds up every parent.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import numpy as np

from unround.options import Simulate
from unround.output import output_folder
from unround.simulation.counts import BLOCK, MISSING, NONE, CountBlock, figures, true_counts
from unround.simulation.files import (
    AREAS,
    BESIDE,
    CONSTANTS,
    LAYOUTS,
    TRUTH,
    Simulated,
    TruthWriter,
    finished,
    levels_named,
    older_simulation,
    write_areas,
)
from unround.simulation.geography import BOUNDARIES, plan, write_boundaries
from unround.simulation.keyed import Rounds
from unround.simulation.profile import ROWS, SEXES, ProfileRow, RowSum, Schema, schema

__all__ = [
    "BLOCK",
    "MISSING",
    "ROWS",
    "SEXES",
    "CountBlock",
    "ProfileRow",
    "Rounds",
    "RowSum",
    "Schema",
    "Simulated",
    "census",
    "schema",
    "true_counts",
]


def census(given: Simulate) -> Simulated:
    """Write a synthetic census and its truth into a folder; seed, areas and rows give the same numbers in every format."""
    file_format, rows = given.format or "statcan", given.rows or "age"
    rounds, table, layout = Rounds.of(given), schema(rows), LAYOUTS[file_format]
    nested, levels, wide = given.levels is not None, levels_named(given.levels), file_format == "censusmapper"
    place = plan(given.areas, given.seed, nested)  # refuses a number of areas before anything is written
    older = older_simulation((*layout.names, *BESIDE, TRUTH))
    with output_folder(Path(given.out), "simulate", older) as output, ExitStack() as opened:
        release = layout(output.done, table, opened, figures=given.figures != NONE)
        truth, done = TruthWriter(output.done, table, wide), 0
        for block in rounds.counts(given.areas, rows, nested):
            keep = np.isin(block.regions["level"].to_numpy(), levels)
            if keep.any():
                release.add(block.some(keep), figures(block, table, given.seed, given.figures)[keep])
            truth.add(block)
            done += len(block.land)
            given.progress("Simulating", done, given.areas)
        release.close()
        truth.close()
        if given.boundaries:
            write_boundaries(output.done / BOUNDARIES, place, levels, given.seed)
        if nested:
            write_areas(output.done / AREAS, place.regions, levels, wide)
        remarks = []
        if rounds.keys:
            rounds.constants(table.plans).write_csv(output.done / CONSTANTS)
            remarks.append(
                "Every record has a key; a count is rounded by the sum of its records' keys and a constant of its table. "
                "The truth has the sum of keys of every count."
            )
        if file_format != "tidy":
            real = "File name and layout are those" if file_format == "statcan" else "The layout is that"
            remarks.insert(0, f"{real} of a real product only so that programs can be tried on it.")
        facts = {"areas": f"{given.areas:,}", "seed": given.seed, "rows": rows, "format": file_format}
        typed = f"unround simulate -o FOLDER {given.typed('areas', 'seed')}"
        truth_file = TRUTH, "the true counts, as they were drawn"
        return finished(output, typed, given.areas, layout.names, truth_file, truth.cells, remarks, facts)
