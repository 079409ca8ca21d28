"""A synthetic census with known truth.

People are drawn first and counted second, so every sum holds in truth; then each cell is published by its
mechanism on its own, or by the keys of its records. The country, its profile and its files have the shape of the
Canadian census of 2021; the numbers are invented.

- `profile`: the rows of the profile, their kinds and the sums between them: `schema`
- `geography`, `people`: the country and its made-up shapes; households and persons, and the records behind the counts
- `counts`: `true_counts`, `published_counts`: blocks of areas as arrays; `Rounds`: how they are rounded: with keys and
  `Constants` of tables, with a weighted sample, or neither; rates, averages and medians beside them
- `files`: three layouts; `simulate` writes one of them, with `truth.parquet` and `SIMULATED.txt` beside it
- `worlds`, `persons`: other truths in place of the census: tables by other laws; records, and tables published from them

Areas come children first (the DAs of a CSD, the CSD, … the province), so that one pass adds up every parent.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from unround.errors import InputError
from unround.output import output_folder, text_of
from unround.shown import Plain
from unround.simulation.counts import (
    BLOCK,
    MISSING,
    PLAIN,
    Constants,
    CountBlock,
    Rounds,
    published_counts,
    require_source,
    true_counts,
)
from unround.simulation.files import (
    AREAS,
    NOTE_TITLE,
    RELEASES,
    TRUTH,
    Editions,
    Files,
    TruthWriter,
    contents,
    write_areas,
    write_note,
)
from unround.simulation.geography import BOUNDARIES, plan, write_boundaries
from unround.simulation.profile import ROWS, SAMPLE, SEXES, Row, RowSum, Schema, schema
from unround.tables import NOTE

__all__ = [
    "BLOCK",
    "FORMATS",
    "MISSING",
    "PLAIN",
    "ROWS",
    "SEXES",
    "Constants",
    "CountBlock",
    "Rounds",
    "Row",
    "RowSum",
    "Schema",
    "Simulated",
    "published_counts",
    "schema",
    "simulate",
    "true_counts",
]

FORMATS = ("statcan", "censusmapper", "tidy")


@dataclass(frozen=True, slots=True)
class Simulated(Plain):
    """What `simulate` wrote.

    - `files`: The release: what an agency would publish.
    - `truth`, `note`: The true counts; and SIMULATED.txt, which says that all of it is invented, and how to make it
      again.
    - `areas`, `cells`, `bytes`: How many areas, how many counts, and the size of release and truth.
    - `nesting`: The file that says which area is within which, where levels were asked for.
    - `constants`: The file with the constants of the tables, where records have keys.
    - `boundaries`: The file with the made-up shapes of all areas, where they were asked for.
    """

    ASIDE = ("constants",)

    files: tuple[Path, ...]
    truth: Path
    note: Path
    areas: int
    cells: int
    bytes: int
    nesting: Path | None = None
    constants: Path | None = None
    boundaries: Path | None = None

    @property
    def summary(self) -> str:
        """How much it is, for people.

        Examples
        --------
        >>> Simulated((), Path("truth.parquet"), Path("SIMULATED.txt"), 1, 82, 26_920).summary
        '1 area, 82 counts, 27 kB'
        """
        areas, counts = "area" if self.areas == 1 else "areas", "count" if self.cells == 1 else "counts"
        return f"{self.areas:,} {areas}, {self.cells:,} {counts}, {_size(self.bytes)}"


def _size(number: int) -> str:
    """Return a number of bytes for people.

    Examples
    --------
    >>> [_size(number) for number in (812, 26_920, 999_700, 4_380_000, 12_300_000_000)]
    ['812 bytes', '27 kB', '1.0 MB', '4.4 MB', '12 GB']
    """
    if number < 1000:
        return f"{number} byte" if number == 1 else f"{number} bytes"
    amount, unit = number / 1000, 0
    while round(amount) >= 1000 and unit < 3:
        amount, unit = amount / 1000, unit + 1
    return f"{amount:.{1 if amount < 9.95 else 0}f} {('kB', 'MB', 'GB', 'TB')[unit]}"


def simulate(
    out: Path,
    areas: int,
    seed: int,
    format: str = "statcan",  # noqa: A002 - the name that users of the command line know
    rows: str = "age",
    zip: bool = False,  # noqa: A002 - likewise
    progress: Callable[[int], None] | None = None,
    *,
    levels: str | None = None,
    apart: bool = False,
    repeat: int = 1,
    rounds: Rounds = PLAIN,
    boundaries: bool = False,
) -> Simulated:
    """Write a synthetic census and its truth into a folder.

    Arguments are documented with `unround.simulate`. The same seed, areas and rows give the same numbers in every format.
    Files of these names that are not known to be simulated, or are from a census in another format, are never replaced.

    Examples
    --------
    >>> simulate(Path("census"), areas=50, seed=1).truth  # doctest: +SKIP
    PosixPath('census/truth.parquet')
    """
    if format not in FORMATS:
        raise InputError(f"there is no format called {format!r}: choose {', '.join(FORMATS)}.")
    if zip and format != "statcan":
        raise InputError(f"only the statcan format can be zipped, not {format}.")
    if seed < 0:
        raise InputError(f"a seed must be a whole number of 0 or more, not {seed}.")
    require_source(rounds.figures)
    table = schema(rows, rounds.weighted)
    if rounds.weighted and not any(row.mechanism == SAMPLE for row in table.rows):
        raise InputError(f"the rows called {rows} are all 100% data, so nothing is weighted: choose rows sample or all.")
    editions = Editions.of(levels, apart, repeat)
    place = plan(areas, seed, editions.nested)  # complains about the number of areas before anything is written
    file_format = f"{format}, zipped" if zip else format
    with output_folder(out, "simulate", lambda folder: older_census(folder, file_format)) as output:
        wide = file_format == "censusmapper"
        release = Files(output.done, file_format, table, seed, editions, rounds)
        truth = TruthWriter(output.done, table, wide=wide)
        done = 0
        try:
            for block in published_counts(areas, seed, rows, editions.nested, rounds):
                release.add(block)
                truth.add(block)
                done += len(block.land)
                if progress:
                    progress(done)
            files = (*release.close(), *truth.close())
        finally:
            release.drop()
        size = sum(path.stat().st_size for path in files)
        names = editions.names(file_format)
        nesting = AREAS if editions.nested else ""
        constants = CONSTANTS if rounds.constants is not None else ""
        options = editions.options() + rounds.options() + (" --boundaries" if boundaries else "")
        files_of = contents(names)
        if nesting:
            files_of[AREAS] = "which area is within which"
        if constants:
            files_of[CONSTANTS] = "the constants of the tables, as they were drawn or given"
        if boundaries:
            files_of[BOUNDARIES] = "made-up shapes of all areas, for a map"
        files_of[TRUTH] = "the true counts and estimates" if rounds.weighted else "the true counts, as they were drawn"
        write_note(
            output.done,
            files_of,
            f"--areas {areas} --seed {seed} --format {format} --rows {rows}{' --zip' if zip else ''}{options}",
            _said(format, rounds),
            {"areas": f"{areas:,}", "seed": seed, "rows": rows, "format": file_format},
        )
        if boundaries:
            write_boundaries(output.done / BOUNDARIES, place, editions.levels, seed)
        if nesting:
            write_areas(output.done / AREAS, place.regions, editions.levels, wide)
        if rounds.constants is not None:
            told = rounds.constants.rows(table.plans, seed, editions.repeat)
            columns = ["edition", "table", "title", "constant"]
            pl.DataFrame(told, schema=columns, orient="row").write_csv(output.done / CONSTANTS)
        # The note first: no invented number is ever there without it. The truth last: where it is, all files are.
        output.publish((NOTE, *names, AREAS, CONSTANTS, BOUNDARIES, TRUTH))
    return Simulated(
        files=tuple(out / name for name in names),
        truth=out / TRUTH,
        note=out / NOTE,
        areas=areas,
        cells=truth.cells,
        bytes=size,
        nesting=out / AREAS if nesting else None,
        constants=out / CONSTANTS if constants else None,
        boundaries=out / BOUNDARIES if boundaries else None,
    )


CONSTANTS = "constants.csv"


def _said(file_format: str, rounds: Rounds) -> list[str]:
    """Return what has to be said of a census besides."""
    said = []
    if file_format != "tidy":
        real = "File name and layout are those" if file_format == "statcan" else "The layout is that"
        said.append(f"{real} of a real product only so that programs can be tried on it.")
    if rounds.constants is not None:
        said.append(
            "Every record has a key; a count is rounded by the sum of its records' keys and a constant of its table. The "
            "truth has the sum of keys of every count."
        )
    if rounds.weighted:
        said.append("Sample tables show weighted estimates; the truth is the estimate before it was rounded.")
    return said


def older_census(out: Path, file_format: str) -> list[str]:
    """Return the files of an older census in a folder; complain of any that are not known to be one of this format."""
    formats = _release_files(out)
    there = [name for name in (*formats, AREAS, CONSTANTS, BOUNDARIES, TRUTH, NOTE) if (out / name).exists()]
    note = text_of(out / NOTE)
    if there and not note.startswith(NOTE_TITLE):
        raise InputError(
            f"{out} already contains {_and(there)}, but no {NOTE} written by `unround simulate`: "
            "choose another folder with -o."
        )
    others = [name for name in there if formats.get(name, file_format) != file_format]
    if others:
        raise InputError(
            f"{out} already contains {_and(others)} from another simulated census ({formats[others[0]]}), which would "
            f"not be replaced: choose another folder with -o, or remove {'it' if len(others) == 1 else 'them'} first."
        )
    return [*formats, *(name for name in (AREAS, CONSTANTS, BOUNDARIES) if name in note), TRUTH, NOTE]


def _release_files(out: Path) -> dict[str, str]:
    """Return the files in a folder that are named like those of a simulated census, with their formats."""
    formats = {}
    for path in sorted(out.iterdir()):
        for file_format, names in RELEASES.items():
            for name in names:
                stem, suffix = re.escape(Path(name).stem), re.escape(Path(name).suffix)
                if re.fullmatch(rf"{stem}(_(DA|CSD|CD|PR))?(_\d+)?{suffix}", path.name):
                    formats[path.name] = file_format
    return formats


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
