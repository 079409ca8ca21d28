"""A synthetic census with known truth.

People are drawn first and counted second, so every sum holds in truth; then each cell is published by its
mechanism on its own. The country, its profile and its files have the shape of the Canadian census of 2021;
the numbers are invented.

- `schema`: the rows of the profile, their kinds and the sums between them
- `true_counts`, `published_counts`: blocks of areas as arrays, for experiments
- `simulate`: files on disk, in one of three layouts, with `truth.parquet` beside them

Areas come children first (the DAs of a CSD, the CSD, … the province), so that one pass adds up every parent.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from unround.errors import InputError
from unround.simulate.counts import BLOCK, MISSING, CountBlock, published_counts, true_counts
from unround.simulate.geography import plan
from unround.simulate.profile import ROWS
from unround.simulate.schema import SEXES, Row, RowSum, Schema, schema
from unround.simulate.write import CensusMapper, StatCan, Tidy, Truth, Writer

__all__ = [
    "BLOCK",
    "FORMATS",
    "MISSING",
    "ROWS",
    "SEXES",
    "CountBlock",
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
class Simulated:
    """What `simulate` wrote: the release, the truth, and how much of both."""

    files: tuple[Path, ...]
    truth: Path
    areas: int
    cells: int
    bytes: int


@contextmanager
def _workshop(out: Path) -> Iterator[Path]:
    """Lend a hidden folder inside `out`; nothing of it, nor a new `out`, survives a failure."""
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".simulate-", dir=out))
    except OSError as error:
        raise InputError(f"cannot write into {out}: {error.strerror or error}. Choose another folder with -o.") from error
    done = False
    try:
        yield folder
        done = True
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if not done:
            for empty in made:
                if empty.is_dir() and not any(empty.iterdir()):
                    empty.rmdir()


def _writer(folder: Path, format: str, table: Schema, seed: int, zipped: bool) -> Writer:  # noqa: A002 - the option's name
    if format == "statcan":
        return StatCan(folder, table, seed, zipped=zipped)
    return CensusMapper(folder, table, seed) if format == "censusmapper" else Tidy(folder, table, seed)


def simulate(
    out: Path,
    areas: int,
    seed: int,
    format: str = "statcan",  # noqa: A002 - the name that users of the command line know
    rows: str = "age",
    zip: bool = False,  # noqa: A002 - likewise
    progress: Callable[[int], None] | None = None,
) -> Simulated:
    """Write a synthetic census and its truth into a folder.

    Parameters
    ----------
    out : Path
        The folder; it is made if need be. Files appear in it when all are complete, and replace older ones.
    areas : int
        How many areas of all levels.
    seed : int
        The same seed, areas and rows give the same numbers in every format.
    format : str
        `statcan` (the bulk layout), `censusmapper` (wide) or `tidy` (Parquet and `release.toml`).
    rows : str
        `age` (33 rows), `short` (462: population to families, and languages) or `all` (2,631).
    zip : bool
        For `statcan`: a zip with the companions of the bulk files.
    progress : callable, optional
        Told how many areas are done.

    Raises
    ------
    InputError
        Where a choice is unknown, areas or seed are out of range, or the folder cannot be written.

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
        raise InputError(f"a seed is a whole number from 0, not {seed}.")
    table = schema(rows)
    plan(areas, seed)  # complain about the number of areas before anything is written
    with _workshop(out) as folder:
        release, truth = _writer(folder, format, table, seed, zip), Truth(folder, table)
        done = 0
        try:
            for block in published_counts(areas, seed, rows):
                release.add(block)
                truth.add(block)
                done += len(block.land)
                if progress:
                    progress(done)
            written = [*release.close(), *truth.close()]
        finally:
            release.drop()
        files = tuple(path.replace(out / path.name) for path in written)
    size = sum(path.stat().st_size for path in files)
    return Simulated(files[:-1], files[-1], areas, truth.cells, size)
