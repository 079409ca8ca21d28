"""Reading the bulk layout, from the file to blocks of counts, against polars on the same file.

Polars has the easier job: it takes the same columns as text, without a look at what they say. It reads no zip, so
that for one the baseline is what a user would do: unpack it in memory, and scan that.
"""

from __future__ import annotations

import gzip
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import polars as pl

from bench.row import Pair, Ratio, Row, interleaved
from unround import simulate
from unround.tables import read

AREAS = {"short": 4_000, "all": 700}
"""By rows of the profile: about 290 MB each."""

RUNS = 7
COLUMNS = (
    "DGUID",
    "GEO_LEVEL",
    "GEO_NAME",
    "CHARACTERISTIC_ID",
    "C1_COUNT_TOTAL",
    "SYMBOL",
    "C2_COUNT_MEN+",
    "SYMBOL_duplicated_0",
    "C3_COUNT_WOMEN+",
    "SYMBOL_duplicated_1",
)
"""What is read: where, what, and the counts with their signs. Columns of one name are numbered by polars."""


def ours(file: Path) -> int:
    """Read everything; return how many areas there are."""
    return sum(len(block.counts) for block in read(file).blocks())


def polars(file: Path) -> int:
    """Scan the columns that count; return how many lines there are."""
    frame = pl.scan_csv(file, encoding="utf8-lossy", infer_schema=False)
    return frame.select(COLUMNS).collect(engine="streaming").height


def unzipped(file: Path) -> int:
    """Do the same with a zip."""
    with zipfile.ZipFile(file) as packed:
        table = max(packed.infolist(), key=lambda member: member.file_size)
        return pl.read_csv(packed.read(table), columns=COLUMNS, encoding="utf8-lossy", infer_schema=False).height


def gunzipped(file: Path) -> int:
    """Do the same with a gzipped file."""
    return pl.read_csv(gzip.decompress(file.read_bytes()), columns=COLUMNS, encoding="utf8-lossy", infer_schema=False).height


def rows() -> Iterator[Row]:
    """Measure everything, one row at a time."""
    for which, areas in AREAS.items():
        with tempfile.TemporaryDirectory() as folder:
            file = simulate(Path(folder), areas=areas, seed=1, rows=which).files[0]
            size = f"{file.stat().st_size / 1e6:.0f} MB of the bulk layout, {which} rows"
            polars(file), ours(file)  # warm: the file is in memory from here on, and kernels are compiled
            yield Ratio(f"read {size}", "polars' scan of the same columns", _pairs(polars, file), aim=0.7)
            if which == "all":
                continue
            packed = file.with_suffix(".zip")
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
                archive.write(file, file.name)
            yield Ratio(f"read {size}, zipped", "unzip, then polars' scan", _pairs(unzipped, packed), aim=1)
            packed = file.with_suffix(".csv.gz")
            with file.open("rb") as plain, gzip.open(packed, "wb", compresslevel=6) as archive:
                shutil.copyfileobj(plain, archive, 1 << 20)
            yield Ratio(f"read {size}, gzipped", "gunzip, then polars' scan", _pairs(gunzipped, packed), aim=1)


def _pairs(theirs: Callable[[Path], int], file: Path) -> list[Pair]:
    return interleaved(partial(theirs, file), partial(ours, file), RUNS)


if __name__ == "__main__":
    for row in rows():
        print(row.to_json(), flush=True)
