"""From the parts of all blocks to the files of the audit, with no more in memory than a few million rows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unround.audits import folder as files
from unround.audits.claims import KINDS
from unround.audits.work import CLASHES, COUNTED, PARTS, PUBLISHED, Job, add_up, in_order, part_folder
from unround.output import DONE

if TYPE_CHECKING:
    import polars as pl

ROWS_AT_A_TIME = 2_000_000
"""Findings that are sorted together."""


def merge(job: Job, progress: Callable[[int, int], None] = lambda *_: None) -> dict[str, Any]:
    """Put the parts together in the job's `done` folder, and return their numbers, added up."""
    import polars as pl

    done = job.folder / DONE
    shutil.rmtree(done, ignore_errors=True)
    done.mkdir()
    parts = [part_folder(job.folder / PARTS, number) for number in range(job.blocks)]
    steps = 6
    progress(0, steps)
    counted = reduce(add_up, (json.loads((part / COUNTED).read_text(encoding="utf-8")) for part in parts))
    _merge_findings(parts, done / files.FINDINGS, job.folder / "sorted")
    progress(1, steps)
    # With a mark that tells spreadsheets about the encoding, and no more digits than anybody reads.
    shown = safe_for_spreadsheets(pl.scan_parquet(done / files.FINDINGS))
    shown.sink_csv(done / files.FINDINGS_CSV, include_bom=True, float_precision=6)
    progress(2, steps)
    shutil.copytree(job.folder / files.MODEL, done / files.MODEL)
    published = _scan(parts, PUBLISHED)
    published.sink_parquet(done / files.MODEL / PUBLISHED, row_group_size=files.ROW_GROUP)
    progress(3, steps)
    if job.options.estimates:
        _scan(parts, files.ESTIMATES).sink_parquet(done / files.ESTIMATES)
    progress(4, steps)
    safe_for_spreadsheets(_scan(parts, CLASHES)).sink_csv(done / files.CONTRADICTIONS, include_bom=True)
    with (done / files.PROOFS).open("wb") as proofs:
        for part in parts:
            with (part / files.PROOFS).open("rb") as lines:
                shutil.copyfileobj(lines, proofs)
    progress(steps, steps)
    found: dict[str, Any] = counted
    return found


def _scan(parts: list[Path], name: str) -> pl.LazyFrame:
    """Return one table of all parts, in the order of the blocks."""
    import polars as pl

    return pl.scan_parquet([part / name for part in parts])


def _merge_findings(parts: list[Path], to: Path, scratch: Path) -> None:
    """Sort all findings by kind and value; within these, areas keep their order.

    A national census has more findings than fit into memory. So they are sorted range by range of values, each from all
    parts: these are sorted already, and few of their rows outside the range are looked at.
    """
    import polars as pl

    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    found = _scan(parts, files.FINDINGS)
    pieces: list[Path] = []
    for kind, low, high in _ranges(found):
        piece = scratch / f"{len(pieces):06}.parquet"
        here = found.filter((pl.col("kind") == kind) & pl.col("value").is_between(low, high))
        if low == high:
            here.sink_parquet(piece)  # all alike: nothing to sort, however many there are
        else:
            in_order(here.collect(engine="streaming")).write_parquet(piece)
        pieces.append(piece)
    (pl.scan_parquet(pieces) if pieces else found).sink_parquet(to)
    shutil.rmtree(scratch)


def _ranges(found: pl.LazyFrame) -> Iterator[tuple[str, int, int]]:
    """Part all findings, in their order, into ranges of values that can be sorted in memory."""
    import polars as pl

    times = found.group_by("kind", "value").agg(pl.len()).collect(engine="streaming").sort("value")
    for kind in KINDS:
        values: list[int] = []
        rows = 0
        for value, number in times.filter(pl.col("kind") == kind).select("value", "len").iter_rows():
            if values and rows + number > ROWS_AT_A_TIME:
                yield kind, values[0], values[-1]
                values, rows = [], 0
            values.append(value)
            rows += number
        if values:
            yield kind, values[0], values[-1]


_FORMULA = r"^\s*[=+\-@＝＋－＠]|^[\t\r\n]"
"""How text begins that a spreadsheet takes for a formula, …"""

_AFTER_SEMICOLON = r";(\s*[=+\-@＝＋－＠])"
"""… also one that splits lines at semicolons, as those of half of Europe do, whatever quotes there are."""


def safe_for_spreadsheets(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Put an apostrophe before text that a spreadsheet would take for a formula, in fields and in headers."""
    import polars as pl

    def safe(text: pl.Expr) -> pl.Expr:
        split = text.str.replace_all(_AFTER_SEMICOLON, ";'${1}")
        return pl.when(split.str.contains(_FORMULA)).then("'" + split).otherwise(split).name.keep()

    names = frame.collect_schema().names()
    headers = pl.DataFrame({"name": names}, schema={"name": pl.String}).select(safe(pl.col("name")))["name"]
    return frame.with_columns(safe(pl.col(pl.String))).rename(dict(zip(names, headers, strict=True)))
