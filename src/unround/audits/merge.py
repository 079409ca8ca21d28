"""From the parts of all blocks to the files of the audit, with no more in memory than a few million rows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unround.audits import folder as files
from unround.audits.ranking import RANK
from unround.audits.work import ABSURD, CLASHES, COUNTED, PARTS, PUBLISHED, Job, add_up, part_folder
from unround.output import DONE

if TYPE_CHECKING:
    import polars as pl

ROWS_AT_A_TIME = 500_000
"""Findings that are sorted together."""

LINES_AT_A_TIME = 200_000
"""Findings that are written as text together."""


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
    # No more digits than anybody reads; and a mark that tells spreadsheets about the encoding only where it is wanted:
    # elsewhere, it would become part of the first column's name.
    bom = job.options.bom
    _write_csv(pl.scan_parquet(done / files.FINDINGS, glob=False), done / files.FINDINGS_CSV, bom)
    progress(2, steps)
    shutil.copytree(job.folder / files.MODEL, done / files.MODEL)
    published = _scan(parts, PUBLISHED)
    published.sink_parquet(done / files.MODEL / PUBLISHED, row_group_size=files.ROW_GROUP)
    progress(3, steps)
    if job.options.estimates:
        _scan(parts, files.ESTIMATES).sink_parquet(done / files.ESTIMATES)
    _scan(parts, files.HIDDEN).sink_parquet(done / files.HIDDEN)
    progress(4, steps)
    safe_for_spreadsheets(_scan(parts, CLASHES)).sink_csv(done / files.CONTRADICTIONS, include_bom=bom)
    safe_for_spreadsheets(_scan(parts, ABSURD)).sink_csv(done / files.SUSPECTS, include_bom=bom)
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

    return pl.scan_parquet([part / name for part in parts], glob=False)


def _merge_findings(parts: list[Path], to: Path, scratch: Path) -> None:
    """Sort all findings by how much they matter; where that is the same, areas keep their order.

    A national census has more findings than fit into memory. So they are sorted range by range, each from all parts, which
    are in order themselves: of the rest of a part, only the ends of its row groups are looked at.
    """
    import polars as pl

    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    found = _scan(parts, files.FINDINGS)
    pieces: list[Path] = []
    for low, high in _ranges(found):
        piece = scratch / f"{len(pieces):06}.parquet"
        here = found.filter(pl.col(RANK).is_between(low, high))
        if low == high:
            here.drop(RANK).sink_parquet(piece)  # all alike: nothing to sort, however many there are
        else:
            here.collect(engine="streaming").sort(RANK, maintain_order=True).drop(RANK).write_parquet(piece)
        pieces.append(piece)
    (pl.scan_parquet(pieces, glob=False) if pieces else found.drop(RANK)).sink_parquet(to)
    shutil.rmtree(scratch)


def _write_csv(found: pl.LazyFrame, to: Path, bom: bool) -> None:
    """Write findings as text, some at a time: a sink of polars would hold more and more of them."""
    import polars as pl

    rows = int(found.select(pl.len()).collect().item())
    with to.open("wb") as file:
        for start in range(0, max(rows, 1), LINES_AT_A_TIME):
            some = safe_for_spreadsheets(found.slice(start, LINES_AT_A_TIME)).collect()
            first = start == 0
            some.write_csv(file, include_header=first, include_bom=bom and first, float_precision=6)


def _ranges(found: pl.LazyFrame) -> Iterator[tuple[int, int]]:
    """Part all findings, in their order, into ranges of their sort keys that can be sorted in memory."""
    import polars as pl

    times = found.group_by(RANK).agg(pl.len()).collect(engine="streaming").sort(RANK)
    low = high = rows = 0
    for key, number in times.iter_rows():
        if rows and rows + number > ROWS_AT_A_TIME:
            yield low, high
            rows = 0
        low = key if not rows else low
        high, rows = key, rows + number
    if rows:
        yield low, high


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
