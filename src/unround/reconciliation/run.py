"""START HERE: from a table that does not add up to one that does, written as it came."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from unround._version import __version__
from unround.additive.costs import Estimates
from unround.audits.bounds import NestedAreas, links_to_use, telling_families
from unround.audits.model import Model, NothingToInfer, block_size
from unround.errors import InputError
from unround.job.work import job_key
from unround.machine import give_memory_back
from unround.mechanisms.base import BoolArray
from unround.output import array_on_disk, known_by, output_folder, write_json
from unround.prior import Prior, PriorFit
from unround.reconciliation.estimating import Estimator, without_overlap
from unround.reconciliation.result import Known, Made, ReconcileOptions, Result
from unround.release import ABSENT, Release, adjustable
from unround.score.truth import Truth
from unround.shown import Tabular
from unround.small_files import Shape, misfit, plain_json, sha256_of
from unround.structure import find_nesting
from unround.sums.compiled import compile_sums
from unround.sums.forest import Equations
from unround.tables.spool import Stage, survey

if TYPE_CHECKING:
    import polars as pl

COUNTS, SUMMARY = "reconciled.parquet", "summary.json"
_SUMMARY_SHAPE: Shape = {
    **dict.fromkeys(("areas", "counts", "changed", "sums", "sums_off_before", "sums_off_after"), int),
    **dict.fromkeys(("mean_error", "mean_error_published"), (float, None)),
    "mean_error_from": (str, None),
    "axes_of_areas": [str, ...],
    "notice": str,
    "hashes": {str: str},
}
READY = "ready"
"""In the working folder: reading is over, and what follows can be resumed."""


@dataclass(frozen=True, eq=False)
class Reconciled(Tabular):
    """A table that adds up.

    - `folder`: Where it is.
    - `summary`: What `summary.json` says.
    - `readers`: What reads each of the tables as a frame, by the name of its file.
    """

    folder: Path
    summary: dict[str, Any]
    readers: dict[str, Callable[[Path], pl.DataFrame]] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the tables themselves to another process: what reads them cannot be sent."""
        return type(self), (
            self.folder,
            self.summary,
            {name: partial(_read_before, table) for name, table in self.tables.items()},
        )

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The tables as they came, with other counts, by the names of their files."""
        return {name: read(self.folder / name) for name, read in self.readers.items()}

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open a folder that `reconcile` wrote.

        Raises `InputError` if its files are missing, or say something else than a run leaves there.
        """
        import polars as pl

        try:
            summary = plain_json(folder / SUMMARY)
            fault = misfit(summary, _SUMMARY_SHAPE)
            schema = {} if fault else pl.read_parquet_schema(folder / COUNTS)
        except (OSError, ValueError, pl.exceptions.PolarsError) as error:
            raise InputError(f"{folder} holds no table that was made to add up: {error}. Run it again.") from None
        numbers = [schema.get(name, pl.Null()) for name in ("published", "reconciled", "low", "high")]
        if fault or not all(kind.is_numeric() for kind in numbers) or not {*summary["axes_of_areas"], "method"} <= {*schema}:
            raise InputError(f"the table in {folder} is damaged ({fault or COUNTS}). Run it again.")
        return cls(folder, summary)

    def to_json(self) -> dict[str, Any]:
        """Return the summary, without the hashes by which a later run knows its files."""
        return {name: value for name, value in self.summary.items() if name != "hashes"}

    def to_polars(self) -> pl.DataFrame:
        """Return every count: published, reconciled, its mean, standard error and bounds."""
        import polars as pl

        return pl.read_parquet(self.folder / COUNTS, glob=False)


def _read_before(table: pl.DataFrame, _: Path) -> pl.DataFrame:
    return table


Written = Callable[[Path, Release, NDArray[Any]], Mapping[str, Callable[[Path], "pl.DataFrame"]]]
"""Writes the tables as they came into a folder, with these numbers; returns the names of the files, and what reads each."""


def reconcile(
    release: Release,
    out: Path,
    options: ReconcileOptions,
    *,
    truth: Release | None = None,
    write: Written = lambda *_: {},
    progress: Stage = lambda *_: None,
    command: str = "",
    files_used: Iterable[Path] | None = None,
) -> Reconciled:
    """Write a table whose counts add up into a folder.

    Arguments are documented with `unround.reconcile`; `write` writes it in its own layout.
    """
    give_memory_back()
    key = "" if files_used is None else job_key([release], (options,), files_used)

    def older(folder: Path) -> Sequence[str]:
        try:
            written = plain_json(folder / SUMMARY)
        except (OSError, ValueError):
            written = None
        # What is no longer as it was written is somebody's own, whatever the summary says.
        hashes = written["hashes"] if misfit(written, _SUMMARY_SHAPE) is None else {}
        names = [name for name, content in hashes.items() if Path(name).name == name and _has(folder / name, content)]
        return known_by(SUMMARY, '"reconciled"', (COUNTS, SUMMARY, *names), "reconcile")(folder)

    with output_folder(out, "reconcile", older, key=key, checkpoint=READY) as output:
        # 1. Read, and find out which sums hold.
        known = _read(release, output.work, progress)
        matched = None
        if truth is not None and known.model is not None:
            matched = Truth.of(truth, known.model, release.areas, known.spool.areas, output.work)
        # 2. Means of every count; blocks that an earlier run has done stay done.
        result = Result.unchanged(known)
        before = result.sums_off()
        if known.model is not None and before[0]:
            made = _estimated(known, known.model, output.work, progress)
            # 3. Whole numbers that add up.
            result.fill(made, options, progress)
        # 4. Everything in its place.
        summary = result.summary(before, matched, options) | {"unround": __version__, "command": command}
        progress("Writing", 0, 2)
        result.write(output.done / COUNTS, options.real)
        progress("Writing", 1, 2)
        readers = write(output.done, release, result.table(options.real))
        names = list(readers)
        summary |= {"files": names, "hashes": {name: sha256_of(output.done / name) for name in names}}
        write_json(output.done / SUMMARY, summary)
        progress("Writing", 2, 2)
        output.publish((COUNTS, SUMMARY, *names))
    return Reconciled(out, summary, dict(readers))


def _has(path: Path, content: str) -> bool:
    """Whether a file is there, with content of this hash."""
    try:
        return sha256_of(path) == content
    except OSError:
        return False


def _read(release: Release, work: Path, progress: Stage) -> Known:
    """Read a release, and find out which sums hold in it: also those of totals that were added up after rounding."""
    spool, structure = survey(release, work, progress)
    nesting = find_nesting(spool.areas, spool.pick, structure, release.areas)
    everywhere = np.ones(spool.columns, dtype=np.bool_)
    for block in spool.blocks(4096):
        everywhere &= (block.counts > ABSENT).all(axis=0)
    alias = structure.alias
    afterwards = [
        (alias.get(judged.total, judged.total), tuple(alias.get(part, part) for part in judged.parts))
        for judged in structure.rejected
        if judged.exactly
    ]
    sums = tuple(dict.fromkeys((*structure.equations, *afterwards)))
    model: Model | None
    plain: Equations = ()
    try:
        model = Model.of(structure, True, everywhere, linked=bool((nesting.parent >= 0).any()))
        plain, fewer = model.equations, without_overlap(model.equations)
        model = replace(model, equations=fewer, compiled=compile_sums(len(model.columns), fewer, model.fixed))
    except NothingToInfer:
        if not sums:
            raise
        model = None  # all of them add up
    return Known(release, spool, structure, nesting, sums, tuple(afterwards), plain, model)


_ARRAYS = {"mean": "f8", "spread": "f4", "least": "f4", "low": "i4", "high": "i4", "clash": "?", "known": "?", "wide": "?"}


def _estimated(known: Known, model: Model, work: Path, progress: Stage) -> Made:
    """Work out the means of all areas, block by block."""
    spool, nesting = known.spool, known.nesting
    place = {int(column): cell for cell, column in enumerate(model.positions)}
    after = tuple(
        (place[total], tuple(place[part] for part in parts))
        for total, parts in known.afterwards
        if all(cell in place for cell in (total, *parts))
    )
    # Sums that stand in the model in fewer words are met in full, too.
    longer = [e for e, plain in enumerate(known.plain) if plain != model.equations[e]]
    equations = (*model.equations, *after, *(known.plain[e] for e in longer))
    in_forest = len(model.equations) + len(after)
    extra = equations[len(model.equations) :]
    shapes = {name: (spool.rows, len(model.columns)) for name in _ARRAYS}
    shapes |= {"active": (spool.rows, len(model.equations)), "wide": (spool.rows, 1)}
    arrays = {name: array_on_disk(work / f"{name}.bin", shape, _ARRAYS.get(name, "?")) for name, shape in shapes.items()}
    parent, _ = links_to_use(nesting, model, lambda heads: _telling(known, model, heads))
    nested = NestedAreas.of(nesting, model, parent)
    size = block_size(len(model.columns))
    order, cuts = np.arange(spool.rows), np.array([*range(0, spool.rows, size), spool.rows])
    if nested.linked:
        order, cuts = nested.arranged(size)
    marks = work / "blocks"
    marks.mkdir(exist_ok=True)
    blocks = [order[first:last] for first, last in pairwise(cuts)]
    clashes = [_clashes_kept(marks / f"{number}.json", arrays, rows) for number, rows in enumerate(blocks)]
    estimator = Estimator(model, _prior(known, model, progress)) if None in clashes else None
    (work / READY).touch()
    for number, rows in enumerate(blocks):
        progress("Estimating", int(cuts[number]), spool.rows)
        if clashes[number] is None and estimator is not None:
            counts, areas = model.counts_of(spool.pick(rows)), spool.areas[rows]
            inside = nested.reordered(rows)
            made, contradictions = estimator.estimate(counts, adjustable(areas), inside if inside.any else None)
            for name, array in arrays.items():
                array[rows] = getattr(made, name)
            said = [
                {"area": int(rows[clash.area]), "cells": list(clash.cells), "text": clash.text} for clash in contradictions
            ]
            clashes[number] = said
            write_json(marks / f"{number}.json", {"hash": _hash(arrays, rows), "clashes": said})
    progress("Estimating", spool.rows, spool.rows)
    active = np.hstack([arrays["active"], np.ones((spool.rows, len(extra)), dtype=bool)])
    estimates, there = Estimates(**{**arrays, "active": active}), arrays["known"]
    for e in range(len(model.equations), len(equations)):
        members = [equations[e][0], *equations[e][1]]
        active[:, e] = there[:, members].all(axis=1) & ~estimates.clash[:, members].any(axis=1)
        if e >= in_forest:  # unless it was set aside; not so where only the shorter one lacks a count
            short = longer[e - in_forest]
            active[:, e] &= active[:, short] | ~there[:, list(model.members(short))].all(axis=1)
    said = [clash for of_block in clashes for clash in of_block or ()]
    return Made(model, estimates, equations, in_forest, said)


def _hash(arrays: Mapping[str, NDArray[Any]], rows: NDArray[np.int64]) -> str:
    """Return the hash of what is known of some areas."""
    return hashlib.sha256(b"".join(array[rows].tobytes() for _, array in sorted(arrays.items()))).hexdigest()


def _clashes_kept(mark: Path, arrays: Mapping[str, NDArray[Any]], rows: NDArray[np.int64]) -> list[dict[str, Any]] | None:
    """Return the contradictions of a block that an earlier run has done, if all of it is as that left it."""
    try:
        marked = plain_json(mark)
    except (OSError, ValueError):
        return None
    shape: Shape = {"hash": {_hash(arrays, rows)}, "clashes": [{"area": int, "cells": [int, ...], "text": str}, ...]}
    return marked["clashes"] if misfit(marked, shape) is None else None


def _telling(known: Known, model: Model, heads: NDArray[np.int64]) -> BoolArray:
    blocks = ((model.counts_of(block.counts), adjustable(block.areas)) for block in known.spool.blocks(4096))
    return telling_families(model, blocks, known.nesting.parent, heads)


def _prior(known: Known, model: Model, progress: Stage) -> Prior:
    fit = PriorFit(len(model.columns))
    for block in known.spool.blocks(4096):
        fit.add(model.counts_of(block.counts))
    return fit.finish(model.compiled, model.mechanisms, lambda done, columns: progress("Fitting the prior", done, columns))
