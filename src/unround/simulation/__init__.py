"""A synthetic census with known truth.

People are drawn first and counted second, so every sum holds in truth; then each cell is published by its
mechanism on its own, or by the keys of its records. The country, its profile and its files have the shape of the
Canadian census of 2021; the numbers are invented.

- `profile`: the rows of the profile, their kinds and the sums between them: `schema`
- `geography`, `people`: the country and its made-up shapes; households and persons, and the records behind the counts
- `counts`: `true_counts`, `published_counts`: blocks of areas as arrays; `Rounds`: how they are rounded: with keys and
  `Constants` of tables, with a weighted sample, or neither; rates, averages and medians beside them
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
from unround.simulation.counts import BLOCK, MISSING, PLAIN, Constants, CountBlock, Rounds, published_counts, true_counts
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
from unround.simulation.profile import ROWS, SAMPLE, SEXES, ProfileRow, RowSum, Schema, schema

__all__ = [
    "BLOCK",
    "MISSING",
    "PLAIN",
    "ROWS",
    "SEXES",
    "Constants",
    "CountBlock",
    "ProfileRow",
    "Rounds",
    "RowSum",
    "Schema",
    "Simulated",
    "census",
    "published_counts",
    "schema",
    "true_counts",
]


def census(given: Simulate) -> Simulated:
    """Write a synthetic census and its truth into a folder; seed, areas and rows give the same numbers in every format."""
    file_format, rows = given.format or "statcan", given.rows or "age"
    if given.zip and file_format != "statcan":
        raise InputError(f"only the statcan format can be zipped, not {file_format}.")
    constants = Constants.parse(given.constants) if given.keys else None
    rounds, table = Rounds(constants, given.weighted, given.figures), schema(rows, given.weighted)
    if given.weighted and not any(row.mechanism == SAMPLE for row in table.rows):
        raise InputError(f"the rows called {rows} are all 100% data, so nothing is weighted: choose rows sample or all.")
    editions = Editions.of(given.levels, given.apart, given.repeat)
    place = plan(given.areas, given.seed, editions.nested)  # refuses a number of areas before anything is written
    layout, wide = f"{file_format}, zipped" if given.zip else file_format, file_format == "censusmapper"
    names = [name for names, _, _ in editions.files(layout) for name in names]
    older = older_simulation((*names, *BESIDE, TRUTH))
    with output_folder(Path(given.out), "simulate", older) as output, ExitStack() as files:
        release = ReleaseFiles(output.done, layout, table, given.seed, editions, rounds, files)
        truth, done = TruthWriter(output.done, table, wide), 0
        for block in published_counts(given.areas, given.seed, rows, editions.nested, rounds):
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
        if constants is not None:
            constants.table(table.plans, given.seed, editions.repeat).write_csv(output.done / CONSTANTS)
        what = "the true counts and estimates" if given.weighted else "the true counts, as they were drawn"
        facts = {"areas": f"{given.areas:,}", "seed": given.seed, "rows": rows, "format": layout}
        typed = f"unround simulate -o FOLDER {given.typed('areas', 'seed')}"
        return finished(output, typed, given.areas, names, (TRUTH, what), truth.cells, _remarks(file_format, rounds), facts)


def _remarks(file_format: str, rounds: Rounds) -> list[str]:
    """Return what has to be said of a census besides."""
    remarks = []
    if file_format != "tidy":
        real = "File name and layout are those" if file_format == "statcan" else "The layout is that"
        remarks.append(f"{real} of a real product only so that programs can be tried on it.")
    if rounds.constants is not None:
        remarks.append(
            "Every record has a key; a count is rounded by the sum of its records' keys and a constant of its table. The "
            "truth has the sum of keys of every count."
        )
    if rounds.weighted:
        remarks.append("Sample tables show weighted estimates; the truth is the estimate before it was rounded.")
    return remarks
