"""A synthetic census with known truth.

People are drawn first and counted second, so every sum holds in truth; then each cell is published by its
mechanism on its own. The country, its profile and its files have the shape of the
Canadian census of 2021; the numbers are invented.

- `profile`: the rows of the profile, their kinds and the sums between them: `schema`
- `geography`, `people`: the country and its made-up shapes; households and persons
- `counts`: `true_counts`, `publish`: blocks of areas as arrays; rates, averages and medians beside them
- `keyed`: counts that are rounded by the keys of their records: `Rounds`
- `files`: three layouts, the truth beside them, and the note that says that all of it is invented; `census` writes them
- `persons`: another truth in place of the census: records, and tables published from them

Areas come children first (the DAs of a CSD, the CSD, … the province), so that one pass adds up every parent.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from unround.errors import InputError
from unround.options import Simulate
from unround.output import output_folder
from unround.simulation.counts import BLOCK, MISSING, CountBlock, true_counts
from unround.simulation.files import (
    AREAS,
    BESIDE,
    CONSTANTS,
    TRUTH,
    Editions,
    ReleaseFiles,
    Simulated,
    TruthWriter,
    finished,
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
    if given.zip and file_format != "statcan":
        raise InputError(f"only the statcan format can be zipped, not {file_format}.")
    rounds = Rounds.of(given)
    table = schema(rows)
    editions = Editions.of(given.levels, given.apart, given.repeat)
    place = plan(given.areas, given.seed, editions.nested)  # refuses a number of areas before anything is written
    layout, wide = f"{file_format}, zipped" if given.zip else file_format, file_format == "censusmapper"
    names = [name for names, _, _ in editions.files(layout) for name in names]
    older = older_simulation((*names, *BESIDE, TRUTH))
    with output_folder(Path(given.out), "simulate", older) as output, ExitStack() as files:
        release = ReleaseFiles(output.done, layout, table, rounds, editions, files)
        truth, done = TruthWriter(output.done, table, wide), 0
        for block in rounds.counts(given.areas, rows, editions.nested):
            release.add(block)
            truth.add(block)
            done += len(block.land)
            given.progress("Simulating", done, given.areas)
        release.close()
        truth.close()
        if given.boundaries:
            write_boundaries(output.done / BOUNDARIES, place, editions.levels, given.seed)
        if editions.nested:
            write_areas(output.done / AREAS, place.regions, editions.levels, wide)
        remarks = []
        if rounds.keys:
            rounds.constants(table.plans, editions.repeat).write_csv(output.done / CONSTANTS)
            remarks.append(
                "Every record has a key; a count is rounded by the sum of its records' keys and a constant of its table. "
                "The truth has the sum of keys of every count."
            )
        if file_format != "tidy":
            real = "File name and layout are those" if file_format == "statcan" else "The layout is that"
            remarks.insert(0, f"{real} of a real product only so that programs can be tried on it.")
        facts = {"areas": f"{given.areas:,}", "seed": given.seed, "rows": rows, "format": layout}
        typed = f"unround simulate -o FOLDER {given.typed('areas', 'seed')}"
        truth_file = TRUTH, "the true counts, as they were drawn"
        return finished(output, typed, given.areas, names, truth_file, truth.cells, remarks, facts)
