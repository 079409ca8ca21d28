"""The work of an audit: blocks of areas, each of which can be done by anybody who can open the job's folder.

What one block gives is a part: a folder of its own, written whole or not at all, and numbers that add up. The parts of all
blocks become the files of the audit, with no more in memory than a few million rows.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache, reduce
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unround._version import __version__
from unround.audits.block import Auditor, distributions_of, estimates_frame, hidden_frame
from unround.audits.bounds import NestedAreas
from unround.audits.certificates import InferredBlock, join_proofs, proof_lines, write_proofs
from unround.audits.figures import figures_of
from unround.audits.findings import RANK, Labels, findings_frame, plain_zeros, ranked
from unround.audits.keys import Keys
from unround.audits.model import Model
from unround.audits.suspects import Holding
from unround.job import folder as files
from unround.job.folder import FILES, OURS, SEAL, SUMMARY, first_damaged, hashes_of, is_whole, seal_of, write_hashes
from unround.options import DISTRIBUTIONS, AuditOptions
from unround.output import DONE, KEY, LOCK, OutputFolder, known_by, output_folder, write_json
from unround.prior import Prior
from unround.release import FigureValues, Release, adjustable
from unround.score.chance import Chance
from unround.score.summary import Tally, contradiction_rows
from unround.score.truth import Score, Truth
from unround.small_files import plain_json, require_file, sha256_of
from unround.tables.spool import COUNTS, Spool

if TYPE_CHECKING:
    import polars as pl

PREPARED = "prepared.json"
"""In the working folder: reading is over, and everything that a worker needs is there."""


def job_key(releases: Sequence[Release], decided: Iterable[object], paths: Iterable[Path]) -> str:
    """Return what tells one run from another: the version, what is in the files, and everything that was decided."""
    # A source need not be a path, and may be too long for one: to `os.path.isfile` that is not an error.
    sources = [Path(name) for release in releases for name in (release.source, *release.source.split(" + "))]
    files = [path for path in dict.fromkeys((*sources, *paths)) if os.path.isfile(path)]
    states = [(str(path.resolve()), require_file(path), sha256_of(path)) for path in files]
    told = attrgetter("source", "file_format", "axes", "areas", "columns", "proposals", "decisions")
    return hashlib.sha256(repr((__version__, states, *map(told, releases), list(decided))).encode()).hexdigest()


def job_folder(out: Path, key: str) -> AbstractContextManager[OutputFolder]:
    """Lend the folder of an audit; once reading is over, a run that is stopped or killed can be resumed."""
    return output_folder(out, "audit", known_by(SUMMARY, '"unround"', OURS, "audit"), key=key, checkpoint=PREPARED)


COUNTED = "counted.json"
"""The numbers of a part; tables and lines lie beside it under the names that they have in the audit folder."""

_HALF = ".half-"


def part_folder(parts: Path, number: int) -> Path:
    """Return where the part of a block is, or will be."""
    return parts / f"{number:06}"


def has_part(parts: Path, number: int) -> bool:
    """Whether the part of a block is there; one that is no longer as it was is removed, to be made again."""
    part = part_folder(parts, number)
    if part.is_dir() and not is_whole(part):
        shutil.rmtree(part)
    return part.is_dir()


@contextmanager
def new_part(parts: Path, number: int) -> Iterator[Path]:
    """Lend a folder for the part of a block; it takes its name when all is in it.

    Two workers may be at the same block, when one was believed to be lost. Both give the same part, so that it does not
    matter whose stays.
    """
    half = parts / f"{_HALF}{number:06}-{uuid.uuid4().hex}"
    half.mkdir(parents=True)
    try:
        yield half
        write_hashes(half)
        for one in half.iterdir():
            _to_disk(one)
        _to_disk(half)
        try:
            half.rename(part_folder(parts, number))
        except OSError:
            if not part_folder(parts, number).is_dir():
                raise
    finally:
        shutil.rmtree(half, ignore_errors=True)


def _to_disk(path: Path) -> None:
    """Wait until the disk has it: a name must not outlive its contents in a power cut."""
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sweep(parts: Path) -> None:
    """Remove what killed runs left half-done."""
    for left in parts.glob(f"{_HALF}*"):
        shutil.rmtree(left, ignore_errors=True)


def add_up(one: Any, other: Any) -> Any:
    """Add numbers up, in plain data of the same shape: objects by their names, lists of numbers place by place.

    Lists of anything else are joined.

    Examples
    --------
    >>> add_up({"a": 1, "b": {"x": [1, 2]}}, {"b": {"x": [3, 4], "y": [5]}, "c": [{"z": 1}]})
    {'a': 1, 'b': {'x': [4, 6], 'y': [5]}, 'c': [{'z': 1}]}
    """
    if isinstance(one, dict):
        return one | other | {name: add_up(one[name], other[name]) for name in one if name in other}
    if isinstance(one, list):
        if any(isinstance(item, dict) for item in (*one, *other)):
            return [*one, *other]
        return [add_up(a, b) for a, b in zip(one, other, strict=True)]
    return one + other


PARTS = "parts"
"""What each block gave, in a folder of its own."""

RANKED_TOGETHER = 10_000
"""Findings in a row group of a part: few, so that whoever looks for a range of ranks can skip most of them."""

ORDER = "order.npy"
"""Where areas within areas are in the file: they are audited together."""

PUBLISHED, CLASHES, ABSURD = "published.parquet", "contradictions.parquet", "suspects.parquet"


class Job:
    """An audit that is ready to be worked on: everything read, compiled and fitted.

    - `folder`: The job's folder, as `prepare` left it; may be opened in many places at once.
    """

    def __init__(self, folder: Path) -> None:
        import polars as pl

        told = plain_json(folder / PREPARED)
        self.folder = folder
        self.options = AuditOptions(**told["options"])
        self.static: dict[str, Any] = told["summary"]
        model = plain_json(folder / files.MODEL / "model.json")
        twins = tuple((cell, twin) for cell, twin in told["twins"])
        self.model = files.model_of(model, np.array(told["positions"], dtype=np.int64), twins)
        self.axes = tuple(model["areas"])
        self.areas = pl.read_parquet(folder / files.MODEL / "areas.parquet", glob=False)
        self.spool = Spool.open(folder / COUNTS, told["columns"], self.areas, told.get("figures", 0))
        self.prior, self.keys = Prior.load(folder / files.MODEL / "prior.npz"), Keys.load(folder / files.MODEL)
        self.truth = Truth.open(folder) if told["truth"] else None
        doubts = {int(column): why for column, why in told["doubts"].items()}
        self.labels = Labels.of(self.model, tuple(model["axes"]), doubts)
        self.cuts: list[int] = told["cuts"]
        self.order = np.load(folder / ORDER) if (folder / ORDER).exists() else None
        self.nested = NestedAreas.load(folder / files.MODEL)
        self._tools = threading.local()  # what remembers what it has met before, and so belongs to one thread

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return len(self.cuts) - 1

    def areas_of(self, number: int) -> NDArray[np.int64]:
        """Return the areas of a block."""
        return np.arange(self.cuts[number], self.cuts[number + 1])

    def missing(self) -> list[int]:
        """Return the blocks that are still to be done."""
        return [number for number in range(self.blocks) if not part_folder(self.folder / PARTS, number).is_dir()]

    def drop_damaged(self) -> None:
        """Remove what an earlier run left and is no longer as it was: it will be done again."""
        for number in range(self.blocks):
            has_part(self.folder / PARTS, number)

    def work(self, number: int) -> int:
        """Audit a block, write its part, and return how many areas it has."""
        rows = self.areas_of(number)
        read = rows if self.order is None else self.order[rows]
        areas, counts = self.areas[rows], self.model.counts_of(self.spool.pick(read))
        figures = figures_of(self.model, self.spool.pick_figures(read))
        auditor, chance = self._own_tools()
        # 1. Infer, and certify what is proved.
        nested = None if self.nested is None else self.nested.reordered(rows)
        nested = nested if nested is not None and nested.any else None
        names = areas[self.axes[0]].to_list() if nested is not None else ()
        inferred = auditor.audit(counts, adjustable(areas), nested, names, figures=figures)
        # 2. Count.
        tally = Tally()
        tally.add(self.model, inferred, self.options.threshold)
        unlisted = plain_zeros(inferred) & (not self.options.zeros)
        counted: dict[str, Any] = {"tally": tally.plain(), "chance": chance.count(counts, inferred.active)}
        counted[files.ZEROS_NOT_LISTED] = int(unlisted.sum())
        if self.truth is not None:
            score = Score()
            score.add(self.model, inferred, self.truth.of_areas(read), areas, self.axes)
            counted["score"] = score.plain()
        # 3. Write the part.
        fitted = not self.prior.is_flat
        found = findings_frame(self.model, inferred, areas, self.axes, self.labels, fitted=fitted, unlisted=unlisted)
        with new_part(self.folder / PARTS, number) as part:
            write_json(part / COUNTED, counted, indent=None)
            ranked(found).write_parquet(part / files.FINDINGS, row_group_size=RANKED_TOGETHER)
            _published(areas, self.axes, counts, figures, unlisted).write_parquet(part / PUBLISHED)
            _contradictions(self.model, inferred, areas, self.axes).write_parquet(part / CLASHES)
            _suspects(self.model, inferred, areas, self.axes).write_parquet(part / ABSURD)
            hidden_frame(inferred, areas, self.axes, self.labels).write_parquet(part / files.HIDDEN)
            write_proofs(part / files.PROOFS, proof_lines(self.model, inferred.claims.certified, areas, self.axes))
            if self.options.estimates:
                whole = self.options.estimates == DISTRIBUTIONS
                distributions = distributions_of(auditor, inferred, areas, nested) if whole else None
                estimated = estimates_frame(inferred, areas, self.axes, self.labels, distributions)
                estimated.write_parquet(part / files.ESTIMATES)
        return len(rows)

    def _own_tools(self) -> tuple[Auditor, Chance]:
        if not hasattr(self._tools, "both"):
            holding = Holding.from_json(self.static["holding"])
            auditor = Auditor(self.model, self.prior, self.options, self.keys, holding)
            self._tools.both = auditor, Chance(self.model, self.options.threshold)
        both: tuple[Auditor, Chance] = self._tools.both
        return both


@lru_cache(maxsize=1)
def _opened(folder: str, _key: str) -> Job:
    return Job(Path(folder))


def work_on(folder: str, key: str, number: int) -> int:
    """Do one block of a job; what workers elsewhere are sent. The key tells one job in a folder from the next."""
    return _opened(folder, key).work(number)


def cut_into_blocks(
    folder: Path, areas: pl.DataFrame, nested: NestedAreas | None, block: int
) -> tuple[pl.DataFrame, list[int]]:
    """Return all areas, those within areas together, and where blocks of them begin and end."""
    (folder / files.MODEL).mkdir(exist_ok=True)
    if nested is None:
        return areas, [*range(0, areas.height, block), areas.height]
    order, places = nested.arranged(block)
    nested.reordered(order).save(folder / files.MODEL)
    np.save(folder / ORDER, order)
    return areas[order], places.tolist()


def prepare(folder: Path, spool: Spool, model: Model, told: Mapping[str, Any]) -> None:
    """Write down all that `Job` reads besides the model: from here on, nobody needs the release again."""
    (folder / PARTS).mkdir(exist_ok=True)
    read = {"columns": spool.columns, "figures": spool.figure_columns}
    places = {"positions": model.positions.tolist(), "twins": model.twins}
    told = {**told, **read, **places, FILES: hashes_of(folder, leave_out=_NOT_PREPARED)}
    write_json(folder / PREPARED, {**told, SEAL: seal_of(told)}, indent=None)


_NOT_PREPARED = (PREPARED, PARTS, DONE, KEY, LOCK)
"""In the job's folder: what is no part of what was prepared."""


def damage_in(folder: Path) -> str | None:
    """Return which file of a prepared job is damaged, if any."""
    try:
        told = plain_json(folder / PREPARED)
        if told[SEAL] != seal_of(told):
            return PREPARED
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return PREPARED
    return first_damaged(folder, told[FILES])


def _published(
    areas: pl.DataFrame, axes: tuple[str, ...], counts: np.ndarray, figures: FigureValues | None, unlisted: NDArray[np.bool_]
) -> pl.DataFrame:
    """Return what was published of every area, and how many likely zeros of it are not listed."""
    import polars as pl

    shown = [pl.Series("counts", counts, dtype=pl.Array(pl.Int32, counts.shape[1]))]
    shown.append(pl.Series(files.ZEROS_NOT_LISTED, unlisted.sum(axis=1, dtype=np.int32)))
    if figures is not None:
        shown.append(pl.Series("figures", figures, dtype=pl.Array(pl.Int64, figures.shape[1])))
    return areas.select(axes).with_columns(shown)


def _contradictions(model: Model, inferred: InferredBlock, areas: pl.DataFrame, axes: tuple[str, ...]) -> pl.DataFrame:
    """Return what cannot be, a row each."""
    import polars as pl

    rows = contradiction_rows(model, inferred.contradictions, inferred.counts)
    columns = ("kind", "sums", "cells", "clash")
    said = pl.DataFrame({name: [row[name] for row in rows] for name in columns}, schema=dict.fromkeys(columns, pl.String))
    return pl.concat([_where(areas, axes, [row["area"] for row in rows]), said], how="horizontal")


def _suspects(model: Model, inferred: InferredBlock, areas: pl.DataFrame, axes: tuple[str, ...]) -> pl.DataFrame:
    """Return what is possible but absurd, a row each."""
    import polars as pl

    found = inferred.suspects
    said = pl.DataFrame(
        {
            "sum": pl.Series([model.sum_in_short(one.equation) for one in found], dtype=pl.String),
            "published": pl.Series([one.total for one in found], dtype=pl.Int64),
            "parts_add_up_to": pl.Series([one.parts for one in found], dtype=pl.Int64),
            "parts": pl.Series([len(model.equations[one.equation][1]) for one in found], dtype=pl.Int64),
            "chance_at_most": pl.Series([one.chance for one in found], dtype=pl.Float64),
        }
    )
    return pl.concat([_where(areas, axes, [one.area for one in found]), said], how="horizontal")


def _where(areas: pl.DataFrame, axes: tuple[str, ...], rows: list[int]) -> pl.DataFrame:
    """Name some areas."""
    return areas[rows].select([name for name in (*axes, "region_name") if name in areas.columns])


ROWS_AT_A_TIME = 500_000
"""Findings that are sorted together."""

LINES_AT_A_TIME = 200_000
"""Findings that are written as text together."""

MOST_LINES = 1_000_000
"""Findings that are written as text at all, those that matter most: no spreadsheet opens more."""


def merge(job: Job, progress: Callable[[int, int], None] = lambda *_: None) -> dict[str, Any]:
    """Put the parts together in the job's `done` folder, and return their numbers, added up."""
    import polars as pl

    done = job.folder / DONE
    shutil.rmtree(done, ignore_errors=True)
    done.mkdir()
    parts = [part_folder(job.folder / PARTS, number) for number in range(job.blocks)]
    steps = 6
    progress(0, steps)
    counted = reduce(add_up, (plain_json(part / COUNTED) for part in parts))
    _merge_findings(parts, done / files.FINDINGS, job.folder / "sorted")
    progress(1, steps)
    # No more digits than anybody reads; and a mark that tells spreadsheets about the encoding only where it is wanted:
    # elsewhere, it would become part of the first column's name.
    bom = job.options.bom
    counted["listed"] = _write_csv(pl.scan_parquet(done / files.FINDINGS, glob=False), done / files.FINDINGS_CSV, bom)
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
    join_proofs(done / files.PROOFS, [part / files.PROOFS for part in parts])
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


def _write_csv(found: pl.LazyFrame, to: Path, bom: bool) -> int:
    """Write findings as text, some at a time: a sink of polars would hold more and more of them. Return their number."""
    import polars as pl

    rows = int(found.select(pl.len()).collect().item())
    with to.open("wb") as file:
        for start in range(0, max(min(rows, MOST_LINES), 1), LINES_AT_A_TIME):
            some = safe_for_spreadsheets(found.slice(start, LINES_AT_A_TIME)).collect()
            some, first = some.head(MOST_LINES - start), start == 0
            some.write_csv(file, include_header=first, include_bom=bom and first, float_precision=6)
    return rows


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
