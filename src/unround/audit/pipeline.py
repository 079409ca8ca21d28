"""START HERE: the whole audit, from a file to a folder of findings."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unround._version import __version__
from unround.audit import folder as files
from unround.audit.block import KINDS, Auditor, Inferred, Rules
from unround.audit.chance import Chance
from unround.audit.claims import Labels, findings_frame, proof_lines, proofs
from unround.audit.dependence import Dependence
from unround.audit.model import Model
from unround.audit.sharing_fit import ROUNDINGS, doubts_left, find_dependence
from unround.audit.summary import Tally, contradiction_rows
from unround.audit.truth import Score, Truth
from unround.check import Check, check_spool
from unround.errors import InputError
from unround.release import ABSENT, Block, Release
from unround.spool import Spool, Stage, adjustable
from unround.spool import survey as survey
from unround.structure import Overrides, Structure

if TYPE_CHECKING:
    import polars as pl

    from unround.prior import Prior

Finish = Callable[[files.AuditFolder], None]
"""Is given the folder when everything else is in it."""

CELLS_AT_A_TIME = 1_000_000
"""Cells in a block: enough for arrays to pay, few enough to fit a hundred bytes each into memory."""

POPULATIONS = ("exact", "within5")
PRIORS = ("fitted", "flat")


@dataclass(frozen=True, slots=True)
class Options:
    """What the user decides about an audit.

    Parameters
    ----------
    threshold : float
        From which probability on a count is likely.
    prior : str
        "fitted" to the release, or "flat", which is the paper's.
    population : str
        "exact" takes counts as exact that the agency may have adjusted a little, and calls what needs that conditional;
        "within5" does not.
    estimates : bool
        Whether to write an estimate for every cell.
    rounding : str
        "independent" takes every count to have its own random number; "dependent" fits how total and parts share theirs,
        table by table; "auto" does so where the check finds a departure, and uses what is no chance.
    """

    threshold: float = 0.66
    prior: str = "fitted"
    population: str = "exact"
    estimates: bool = False
    rounding: str = "auto"

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise InputError(f"the threshold is a probability above 0 and up to 1, such as 0.66; not {self.threshold}.")
        if self.prior not in PRIORS:
            raise InputError(f"there is no prior {self.prior!r}: choose {' or '.join(PRIORS)}.")
        if self.population not in POPULATIONS:
            raise InputError(f"there is no population {self.population!r}: choose {' or '.join(POPULATIONS)}.")
        if self.rounding not in ROUNDINGS:
            raise InputError(f"there is no rounding {self.rounding!r}: choose {', '.join(ROUNDINGS)}.")


def audit(
    release: Release,
    out: Path | str,
    options: Options | None = None,
    *,
    overrides: Overrides | None = None,
    truth: Release | None = None,
    progress: Stage = lambda *_: None,
    command: str = "",
    finish: Finish = lambda _: None,
) -> files.AuditFolder:
    """Work out every count of a release that can be worked out, and write what was found into a folder.

    Parameters
    ----------
    release : Release
        What was published; `unround.read` opens a file.
    out : path
        The folder. Files appear in it when all are complete, and replace those of an older audit.
    options : Options
        Threshold, prior, and what to make of adjusted populations.
    overrides : Overrides, optional
        The user's word on sums and mechanisms.
    truth : Release, optional
        The unrounded table, to score claims by.
    progress : function
        Is told how far the audit is.
    command : str
        What was typed, for the summary.
    finish : function
        Adds pages to the finished folder before anybody sees it; `unround.audit_release` has them written here.

    Raises
    ------
    InputError
        If the release has no usable sum, or the folder cannot be written. Nothing is left behind then.
    """
    options, out = options or Options(), Path(out)
    with files.audit_workshop(out) as work:
        clock = _Clock()
        # 1. Read the file once: what is in it, which sums hold, and does it fit how it is said to have been published?
        spool, structure = survey(release, work, overrides, progress)
        clock.lap("reading")
        checked = check_spool(release, spool, structure, overrides, progress)
        clock.lap("checking")
        # 2. Compile what all areas share, and fit the prior.
        model = Model.of(structure, options.population == "exact", _published_everywhere(spool))
        plain, refit = _prior(options, spool, model, progress)
        dependence = find_dependence(options.rounding, model, plain, spool, checked, overrides, progress)
        prior = refit(dependence)  # sharing leaves traces in what a prior is fitted to
        clock.lap("preparing")
        # 3. Audit block by block.
        known = Truth.of(truth, model, release.areas, work) if truth is not None else None
        matched = known.check(spool.areas) if known is not None else None
        results = _Results(work, release, model, options, doubts_left(checked, dependence, model))
        results.score = Score(matched=matched) if matched is not None else None
        rules = Rules(options.threshold, options.population == "exact")
        auditor = Auditor(model, prior, rules, dependence, instead=plain)
        done = 0
        for block in spool.blocks(block_size(model)):
            progress("Auditing", done, spool.rows)
            results.add(block, auditor, known)
            done += len(block.counts)
        progress("Auditing", done, spool.rows)
        clock.lap("auditing")
        # 4. Write everything down.
        progress("Writing", 0, 1)
        results.close()
        files.save_model(work / files.MODEL, model, prior, spool.areas, release, structure.alias)
        dependence.save(work / files.MODEL)
        clock.lap("writing")
        told = _summary(release, structure, model, prior, options, results, clock, command, checked)
        told["dependence"] = dependence.to_json() | {"claims": dict(results.tally.both_ways) or None}
        (work / files.SUMMARY).write_text(json.dumps(told, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        finish(files.AuditFolder.open(work))
        files.move_out(work, out)
        progress("Writing", 1, 1)
    return files.AuditFolder.open(out)


def _published_everywhere(spool: Spool) -> NDArray[np.bool_]:
    """Return which columns have a count in every area."""
    everywhere = np.ones(spool.columns, dtype=np.bool_)
    for block in spool.blocks(4096):
        everywhere &= (block.counts > ABSENT).all(axis=0)
    return everywhere


def block_size(model: Model) -> int:
    """Return how many areas to work on at a time."""
    return max(16, min(4096, CELLS_AT_A_TIME // len(model.columns)))


def _prior(options: Options, spool: Spool, model: Model, progress: Stage) -> tuple[Prior, Callable[[Dependence], Prior]]:
    """Return the prior, and what fits it again when it is known how random numbers are shared."""
    from unround.prior import Prior, PriorFit

    if options.prior == "flat":
        return Prior.flat(), lambda _: Prior.flat()
    fit, done = PriorFit(len(model.columns)), 0
    for block in spool.blocks(4096):
        progress("Fitting the prior", done, 2 * spool.rows)  # as long again for the fit itself
        fit.add(model.counts_of(block.counts))
        done += len(block.counts)
    prior = fit.finish(model.layout, model.mechanisms)
    progress("Fitting the prior", 2 * spool.rows, 2 * spool.rows)

    def again(dependence: Dependence) -> Prior:
        shared = dependence.with_totals(model)
        return fit.finish(model.layout, model.mechanisms, shared) if shared else prior

    return prior, again


class _Results:
    """Everything that is written while blocks go by; merged into one file each at the end."""

    def __init__(
        self, work: Path, release: Release, model: Model, options: Options, doubts: Mapping[int, str] | None = None
    ) -> None:
        self.work = work
        self.release = release
        self.model = model
        self.options = options
        self.labels = Labels.of(model, release.axes, doubts or {})
        self.tally = Tally()
        self.chance = Chance(model, options.threshold)
        self.score: Score | None = None
        self.number = 0
        self.contradictions: list[pl.DataFrame] = []
        self.proofs = (work / files.PROOFS).open("w", encoding="utf-8")
        for name in ("findings", "estimates", "published"):
            (work / name).mkdir()

    def add(self, block: Block, auditor: Auditor, known: Truth | None) -> None:
        """Audit a block, and write down what was found in it."""
        model, axes = self.model, self.release.areas
        counts = model.counts_of(block.counts)
        inferred = auditor.infer(counts, adjustable(block.areas))
        written = proofs(model, inferred)
        self.tally.add(model, inferred, written)
        self.chance.add(counts, inferred.active)
        fitted = auditor.prior.table is not None
        found = findings_frame(model, inferred, block.areas, axes, self.labels, written, fitted=fitted)
        self._part("findings", found)
        self._part("published", _published(block.areas, axes, counts))
        if self.options.estimates:
            self._part("estimates", _estimates(inferred, block.areas, axes, self.labels))
        for line in proof_lines(written, block.areas, axes):
            self.proofs.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._contradictions(inferred, block.areas)
        if known is not None:
            assert self.score is not None
            self.score.add(model, inferred, known.of_areas(block.areas), block.areas, axes)
        self.number += 1

    def _part(self, name: str, frame: pl.DataFrame) -> None:
        frame.write_parquet(self.work / name / f"{self.number:06}.parquet")

    def _contradictions(self, inferred: Inferred, areas: pl.DataFrame) -> None:
        import polars as pl

        rows = contradiction_rows(self.model, inferred.contradictions, inferred.counts)
        names = [name for name in (*self.release.areas, "region_name") if name in areas.columns]
        where = areas[[row["area"] for row in rows]].select(names)
        columns = ("kind", "sums", "cells", "clash")
        said = pl.DataFrame(
            {name: [row[name] for row in rows] for name in columns}, schema=dict.fromkeys(columns, pl.String)
        )
        self.contradictions.append(pl.concat([where, said], how="horizontal"))

    def close(self) -> None:
        """Merge the parts."""
        import polars as pl

        self.proofs.close()
        found = pl.scan_parquet(self.work / "findings" / "*.parquet")
        # What is certain first, then small counts: what people look for.
        order = pl.col("kind").replace_strict(dict(zip(KINDS, range(len(KINDS)), strict=True)), return_dtype=pl.Int8)
        found.sort(order, "value", maintain_order=True).sink_parquet(self.work / files.FINDINGS)
        # With a mark that tells spreadsheets about the encoding, and no more digits than anybody reads.
        shown = safe_for_spreadsheets(pl.scan_parquet(self.work / files.FINDINGS))
        shown.sink_csv(self.work / files.FINDINGS_CSV, include_bom=True, float_precision=6)
        (self.work / files.MODEL).mkdir()
        published = pl.scan_parquet(self.work / "published" / "*.parquet")
        published.sink_parquet(self.work / files.MODEL / "published.parquet", row_group_size=files.ROW_GROUP)
        if self.options.estimates:
            pl.scan_parquet(self.work / "estimates" / "*.parquet").sink_parquet(self.work / files.ESTIMATES)
        clashes = pl.concat(self.contradictions)
        safe_for_spreadsheets(clashes.lazy()).sink_csv(self.work / files.CONTRADICTIONS, include_bom=True)


def safe_for_spreadsheets(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Put an apostrophe before text that a spreadsheet would take for a formula."""
    import polars as pl

    text = pl.col(pl.String)
    return frame.with_columns(pl.when(text.str.contains(r"^[=+\-@\t\r]")).then("'" + text).otherwise(text).name.keep())


def _published(areas: pl.DataFrame, axes: tuple[str, ...], counts: np.ndarray) -> pl.DataFrame:
    import polars as pl

    return areas.select(axes).with_columns(pl.Series("counts", counts, dtype=pl.Array(pl.Int32, counts.shape[1])))


def _estimates(inferred: Inferred, areas: pl.DataFrame, axes: tuple[str, ...], labels: Labels) -> pl.DataFrame:
    """Return an estimate of every cell that has one, a row each."""
    import polars as pl

    posterior, bounds = inferred.posterior, inferred.reach
    rows, cells = np.nonzero(posterior.probability > 0)
    published = inferred.counts[rows, cells]
    return pl.DataFrame(
        {
            **{name: areas[name][rows] for name in axes},
            **{
                name: column.gather(cells)
                for name, column in labels.columns.items()
                if name in axes or name != "characteristic"
            },
            "published": pl.Series(published).set(pl.Series(published <= ABSENT), None),
            "low": bounds.low[rows, cells],
            "high": bounds.high[rows, cells],
            "mean": posterior.mean[rows, cells],
            "sd": posterior.deviation[rows, cells],
            "mode": posterior.mode[rows, cells],
            "probability": posterior.probability[rows, cells],
        }
    )


class _Clock:
    """How long each stage took."""

    def __init__(self) -> None:
        self.start = self.last = time.perf_counter()
        self.laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """End a stage."""
        now = time.perf_counter()
        self.laps[name] = round(now - self.last, 3)
        self.last = now


def _summary(
    release: Release,
    structure: Structure,
    model: Model,
    prior: Prior,
    options: Options,
    results: _Results,
    clock: _Clock,
    command: str,
    checked: Check,
) -> dict[str, Any]:
    """Put everything worth knowing about an audit into one object."""
    told: dict[str, Any] = {
        "unround": __version__,
        "command": command,
        "source": release.source,
        "format": release.layout,
        "product": release.product,
        **results.tally.to_json(),
        "chance": results.chance.to_json(),
        "chance_by_block": results.chance.by_block(),
        "check": checked.to_json(),
        "structure": {
            "columns": len(release.columns),
            "audited": len(model.columns),
            "sums_kept": len(structure.sums),
            "sums_rejected": len(structure.rejected),
            "sums_added_up_afterwards": sum(one.exactly for one in structure.rejected),
            "sums_for_bounds_only": len(model.layout.unused),
            "repeats": len(structure.repeats),
        },
        "threshold": options.threshold,
        "prior": prior.name,
        "prior_in_words": prior.sentence,
        "population": options.population,
        "mechanisms": {how.name: how.sentence for how in dict.fromkeys(model.mechanisms)},
        "left_out": {why: len(labels) for why, labels in release.left_out.items()},
        "notes": [*release.notes, *structure.notes],
        "seconds": clock.laps | {"total": round(time.perf_counter() - clock.start, 3)},
    }
    if results.score is not None:
        told["truth"] = results.score.to_json()
    return told
