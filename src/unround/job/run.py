"""START HERE: the whole audit, from a file to a folder of findings."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround._version import __version__
from unround.audits.bounds import NestedAreas, links_to_use, nesting_levels, telling_families
from unround.audits.claims import HeldBecause
from unround.audits.keys import Keys, doubts_left, only_estimates, weighted_estimates, with_cutoffs
from unround.audits.model import AuditOptions as AuditOptions
from unround.audits.model import Model, block_size
from unround.audits.selfcheck import SelfCheck, choose_and_check
from unround.audits.suspects import LEVEL, Holding
from unround.audits.weigh import NEAR
from unround.checks import Check, check_spool
from unround.checks.families import DEPARTS
from unround.engines.ahead import compile_ahead
from unround.engines.linked_weights import METHODS
from unround.errors import InternalError
from unround.job import folder as files
from unround.job.cluster import try_cluster, work_here, work_on_cluster
from unround.job.work import (
    MOST_LINES,
    PARTS,
    PREPARED,
    Job,
    cut_into_blocks,
    damage_in,
    job_folder,
    job_key,
    merge,
    prepare,
    sweep,
)
from unround.machine import give_memory_back, processors
from unround.mechanisms import Exact, Mechanism
from unround.mechanisms.base import step_of
from unround.options import VERIFIED
from unround.output import write_json
from unround.release import ABSENT, Release, adjustable
from unround.score.chance import Chance
from unround.score.summary import Tally, unsettled_after, unsettled_before
from unround.score.truth import Score, Truth
from unround.small_files import require_unchanged, watching
from unround.structure import Nesting, Structure, find_nesting
from unround.tables.spool import Spool, Stage
from unround.tables.spool import survey as survey

if TYPE_CHECKING:
    from unround.prior import Prior

Finish = Callable[[files.AuditFolder], None]
"""Is given the folder when everything else is in it."""


class AuditRun(NamedTuple):
    """How the work is done, which changes nothing that is found.

    - `files_used`: All files that take part besides the release's own. With them, an audit that was stopped or killed goes
      on where it was if the same is asked for again; without, it begins anew.
    - `cluster`: The address of the machines that work on it; this one, unless given.
    """

    files_used: Iterable[Path] | None = None
    cluster: str | None = None


HERE_AND_ANEW = AuditRun()


def audit(
    release: Release,
    out: Path | str,
    options: AuditOptions | None = None,
    *,
    truth: Release | None = None,
    progress: Stage = lambda *_: None,
    command: str = "",
    finish: Finish = lambda _: None,
    run: AuditRun = HERE_AND_ANEW,
) -> files.AuditFolder:
    """Find every count of a release that can be inferred, and write what was found into a folder.

    Arguments are documented with `unround.audit`. `finish` adds pages to the finished folder before anybody sees it. If it
    fails, nothing is left behind.
    """
    give_memory_back()
    compile_ahead()
    options, out, clock, (files_used, cluster) = options or AuditOptions(), Path(out), _Clock(), run
    with watching() as read:
        key = "" if files_used is None else job_key([release], (options,), files_used)
    with job_folder(out, key) as output:
        folder = output.work
        if cluster is not None:
            try_cluster(cluster, folder)
        if (folder / PREPARED).exists() and (damaged := damage_in(folder)) is not None:
            clock.anew = damaged
            output.start_anew()
        # 1. Read the file once, find out which sums hold, compile what all areas share; unless a run before this one did.
        if not (folder / PREPARED).exists():
            _prepare(folder, release, options, truth, progress, clock, lambda: require_unchanged(read))
        # 2. Audit block by block; what is done stays done.
        job = Job(folder)
        sweep(folder / PARTS)
        job.drop_damaged()
        missing, done = job.missing(), 0
        clock.resumed = job.blocks - len(missing)
        before = job.areas.height - sum(len(job.areas_of(number)) for number in missing)
        progress("Auditing", before, job.areas.height)

        def count(areas: int) -> None:
            nonlocal done
            done += areas
            progress("Auditing", before + done, job.areas.height)

        if cluster is None:
            work_here(job, missing, count)
        else:
            work_on_cluster(cluster, job, key, missing, count)
        if job.missing():
            raise InternalError("some blocks of areas were not audited")
        clock.lap("auditing")
        # 3. Put the parts together, and everything in its place.
        counted = merge(job, lambda step, steps: progress("Writing", step, steps))
        clock.lap("writing")
        write_json(output.done / files.SUMMARY, _summary(job, counted, command))
        write_json(output.done / files.RUN, clock.told(job, cluster))
        files.seal(output.done, files.OURS)
        finish(files.AuditFolder.open(output.done))
        clock.lap("reporting")
        write_json(output.done / files.RUN, clock.told(job, cluster))
        output.publish(files.OURS)
    return files.AuditFolder.open(out)


def _prepare(
    folder: Path,
    release: Release,
    options: AuditOptions,
    truth: Release | None,
    progress: Stage,
    clock: _Clock,
    is_read: Callable[[], None],
) -> None:
    """Read the release, and write down what the blocks need."""
    spool, structure = survey(release, folder, progress)
    clock.lap("reading")
    checked = check_spool(release, spool, structure, progress)
    clock.lap("checking")
    structure = with_cutoffs(weighted_estimates(structure, checked.numbers), checked.numbers)
    everywhere, refuted = _published_everywhere(spool, structure)
    if refuted:  # one area with more households than people, and the number of people bounds nothing
        columns = tuple(replace(one, at_most="" if one.at_most in refuted else one.at_most) for one in structure.columns)
        structure = replace(structure, columns=columns)
    nesting = find_nesting(spool.areas, spool.pick, structure, release.areas) if options.link else Nesting.none(spool.rows)
    linked = bool((nesting.parent >= 0).any())
    exact, figures = options.population == "exact", options.figures == VERIFIED
    model = Model.of(structure, exact, everywhere, figures=figures, linked=linked)
    if truth is not None:  # before anything that takes long: it may not fit
        Truth.of(truth, model, release.areas, spool.areas, folder)
    is_read()
    prior, predicted = _prior(options, spool, model, progress)
    keys = Keys.of(options.rounding, checked.numbers, structure, release.decisions)

    def telling(heads: NDArray[np.int64]) -> NDArray[np.bool_]:
        few = block_size(len(model.columns))  # bounds take ten times the room of counts
        blocks = ((model.counts_of(block.counts), adjustable(block.areas)) for block in spool.blocks(few))
        return telling_families(model, blocks, nesting.parent, heads)

    parent, nothing = links_to_use(nesting, model, telling)
    nested = NestedAreas.of(nesting, model, parent)
    told = _static_summary(release, structure, model, prior, options, checked)
    if predicted is not None:
        told["selfcheck"] = predicted.to_json()
    told["nesting"] = nesting_levels(nesting, parent, nothing)
    told["holding"] = Holding.of(options, checked, model, spool.rows).to_json(model)
    block = options.block or block_size(len(model.columns))
    areas, cuts = cut_into_blocks(folder, spool.areas, nested if nested.any else None, block)
    files.save_model(folder / files.MODEL, model, prior, areas, release, structure.alias)
    keys.save(folder / files.MODEL)
    doubts = doubts_left(checked, keys, model)
    known = {"options": asdict(options), "doubts": doubts, "cuts": cuts, "truth": truth is not None, "summary": told}
    prepare(folder, spool, model, known)
    clock.lap("preparing")


def _published_everywhere(spool: Spool, structure: Structure) -> tuple[NDArray[np.bool_], frozenset[str]]:
    """Return which columns have a count in every area, and the exact counts that some part of them exceeds anywhere."""
    everywhere = np.ones(spool.columns, dtype=np.bool_)
    place = {column.key: at for at, column in enumerate(structure.columns)}
    pairs = [(at, place[one.at_most]) for at, one in enumerate(structure.columns) if one.at_most in place]
    parts, wholes = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    reach = np.array([step_of(structure.mechanisms[at] or Exact()) - 1 for at in parts.tolist()], dtype=np.int64)
    exceeded = np.zeros(len(pairs), dtype=np.bool_)
    for block in spool.blocks(4096):
        everywhere &= (block.counts > ABSENT).all(axis=0)
        known = block.counts[:, wholes] > ABSENT
        exceeded |= (known & (block.counts[:, parts] - reach > block.counts[:, wholes])).any(axis=0)
    return everywhere, frozenset(structure.columns[at].key for at in wholes[exceeded].tolist())


def _prior(options: AuditOptions, spool: Spool, model: Model, progress: Stage) -> tuple[Prior, SelfCheck | None]:
    """Fit the prior that the options ask for, and see how well it predicts what was published."""
    from unround.prior import Prior, PriorFit

    if options.prior == "flat":
        return Prior.flat(), None
    fit = PriorFit(len(model.columns))
    for block in spool.blocks(4096):
        fit.add(model.counts_of(block.counts))
    nobody_asks = frozenset() if options.estimates else only_estimates(model)
    prior = fit.finish(
        model.compiled,
        model.mechanisms,
        lambda done, columns: progress("Fitting the prior", done, columns),
        nobody_asks,
    )
    progress("Predicting what was published", 0, 1)
    checked = choose_and_check(model, prior, fit.sample.counts)
    progress("Predicting what was published", 1, 1)
    return checked


class _Clock:
    """How long each stage took in this run, and how much was done before it."""

    def __init__(self) -> None:
        self.began = datetime.now(UTC)
        self.start = self.last = time.perf_counter()
        self.laps: dict[str, float] = {}
        self.resumed = 0
        self.anew: str | None = None

    def lap(self, name: str) -> None:
        """End a stage."""
        now = time.perf_counter()
        self.laps[name] = round(now - self.last, 3)
        self.last = now

    def told(self, job: Job, cluster: str | None) -> dict[str, Any]:
        """Return what differs from run to run."""
        return {
            "unround": __version__,
            "began": self.began.isoformat(timespec="seconds"),
            "seconds": self.laps | {"total": round(time.perf_counter() - self.start, 3)},
            "blocks": job.blocks,
            "blocks_done_before": self.resumed,
            "started_anew": None if self.anew is None else f"{self.anew}, left by an earlier run, was damaged",
            "cluster": cluster,
            "machine": {"system": platform.platform(), "processors": processors(), "python": platform.python_version()},
        }


def _static_summary(
    release: Release,
    structure: Structure,
    model: Model,
    prior: Prior,
    options: AuditOptions,
    checked: Check,
) -> dict[str, Any]:
    """Put down what is known before the first block."""
    return {
        "source": release.source,
        "format": release.file_format,
        "product": release.product,
        "check": checked.to_json(),
        "structure": {
            "columns": len(release.columns),
            "audited": len(model.columns),
            "sums_kept": len(structure.sums),
            "sums_rejected": len(structure.rejected),
            "sums_added_up_afterwards": sum(one.exactly for one in structure.rejected),
            "sums_for_bounds_only": len(model.compiled.left_out),
            "multiway_tables": [
                {"shape": list(table.shape), "cells": table.cells.size, "sums": len(table.equations)}
                for table in model.compiled.multiway
            ],
            "repeats": len(structure.repeats),
        },
        "threshold": options.threshold,
        "prior": prior.name,
        "prior_in_words": prior.sentence,
        "priors": {"variants": list(prior.variants), "near": NEAR},
        "population": options.population,
        "doubtful": options.doubtful,
        "figures": options.figures,
        "figures_used": [_figure_used(model, f) for f in range(len(model.figures))],
        "mechanisms": {how.name: _sentence(how, checked) for how in dict.fromkeys(model.mechanisms)},
        "left_out": {why: len(labels) for why, labels in release.left_out.items()},
        "notes": [*release.notes, *structure.notes],
        "unsettled": unsettled_before(release, structure, checked),
    }


def _sentence(how: Mechanism, checked: Check) -> str:
    """Return how counts were published, without any claim of independence that the data do not bear out."""
    departs = any(one.otherwise == DEPARTS for one in checked.families)
    return how.sentence.replace(", each count independently", "") if departs else how.sentence


def _figure_used(model: Model, figure: int) -> dict[str, Any]:
    """Say what a figure is of, and what it is used for."""
    one = model.figures[figure].figure
    named = {"column": one.name, "label": one.label, "kind": one.kind.value}
    of = {"numerator": one.numerator or None, "universe": one.universe, "groups": len(one.groups)}
    return named | of | {"in_probabilities": model.weighs_figure(figure)}


def _summary(job: Job, counted: Mapping[str, Any], command: str) -> dict[str, Any]:
    """Put everything worth knowing about an audit into one object."""
    first = ("source", "format", "product")
    chance = Chance(job.model, job.options.threshold)
    told: dict[str, Any] = {"unround": __version__, "command": command}
    told |= {name: job.static[name] for name in first} | Tally.of(counted["tally"]).to_json()
    told |= {"chance": chance.to_json(counted["chance"]), "chance_by_block": chance.by_block(counted["chance"])}
    told |= {name: value for name, value in job.static.items() if name not in (*first, "nesting")}
    if "selfcheck" in told:
        told["selfcheck"]["withheld"] = told["held_back_because"][HeldBecause.SELFCHECK.label]["likely"]
    told["suspect"] |= {"level": LEVEL, "chance_below": told["holding"]["suspect_below"]}
    told["linked"] |= {
        "levels": job.static["nesting"],
        "methods": [asdict(method) for method in METHODS],
    }
    keys = job.keys
    withheld = int(keys.untied(keys.paired(job.model)).sum())
    told["keys"] = keys.to_json() | {"rounding": job.options.rounding, "columns_withheld": withheld}
    told["unsettled"] = unsettled_after(told)
    told[files.ZEROS_NOT_LISTED] = counted[files.ZEROS_NOT_LISTED]
    told["listed"] = {"claims": counted["listed"], "in_csv": min(counted["listed"], MOST_LINES)}
    if job.truth is not None:
        told["truth"] = Score.of(counted["score"], job.truth.matched).to_json()
    return told
