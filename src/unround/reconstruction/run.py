"""START HERE: how much of each person could be reconstructed from tables, on people whose truth is known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround._version import __version__
from unround.errors import InputError
from unround.options import Reconstruct, ReconstructOptions
from unround.output import OutputFolder, known_by, output_folder, write_json
from unround.protection import parse_protection
from unround.reconstruction.asking import SHARE, AreaQuestion, Inquiry, claimed, compared, in_sample, sample_of
from unround.reconstruction.chain import NATIONAL, TABLES, TOTALS, UNROUNDED, ChainEffort, country
from unround.reconstruction.queries import (
    Published,
    evidence,
    own_totals,
    population,
    read_published,
    verified,
    with_absent_values,
)
from unround.reconstruction.records import AT_ONCE_TEXT, PersonRecords, read_records
from unround.reconstruction.score import GROUPS, GuessTally, bands_of, gain
from unround.release import Release
from unround.shown import Shown

SUMMARY, PAGE, PERSONS, STARTED = "summary.json", "reconstruct.html", "reconstructed.parquet", "started.json"
PROOFS = "proofs.jsonl"
CASE = "case"  # in the working folder: records and counts, of which a few areas are in memory at a time
OURS = (SUMMARY, PAGE, PERSONS, PROOFS)

KINDS = ("birthplace", "language", "religion", "ethnicity", "race", "citizenship", "indigenous")
"""Attributes by which people are alike, where records have them; all but age and sex otherwise."""


@dataclass(frozen=True, slots=True, eq=False)
class Reconstruction(Shown):
    """What `reconstruct` found: aggregates alone."""

    summary: dict[str, Any]  # everything in `summary.json`
    folder: Path  # where it was written

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return self.summary


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Records and tables, laid side by side."""

    records: PersonRecords  # the truth, with the attributes that records consist of
    published: Published  # the columns that are used
    people: NDArray[np.int64]  # how many live in each area, as published
    exact_people: bool  # whether that is exact
    folder: Path  # where records and counts are on disk


def read_case(releases: Sequence[Release], truth: Path, options: ReconstructOptions, folder: Path) -> Case:
    """Lay records and tables side by side, on disk in a folder, and verify that they belong together."""
    folder.mkdir(parents=True, exist_ok=True)
    records = read_records(truth, folder)
    unknown = [name for name in (*options.attributes, *options.kind) if name not in records.values]
    if unknown:
        raise InputError(f"the records have no attribute {unknown[0]!r}; they have {', '.join(records.values)}.")
    records = with_absent_values(releases, records)
    published = read_published(releases, records, folder).in_order()
    published = verified(published, records)
    used = {name for counted in published.queries for name, _ in counted}
    names = tuple(options.attributes) or tuple(name for name in records.values if name in used)
    if not names:
        raise InputError("the tables are about no attribute of the records: there is nothing to reconstruct.")
    outside = np.array([not {name for name, _ in counted} <= set(names) for counted in published.queries])
    if outside.any():
        published.notes.append(
            f"{int(outside.sum()):,} columns are about other attributes than {', '.join(names)}: not used."
        )
    published = published.without(outside)
    return Case(records.only(names), published, *population(published), folder)


def questions_of(case: Case) -> list[AreaQuestion]:
    """Return the four questions: what each kind of knowledge tells."""
    published = case.published
    known = {TOTALS: published.picked(own_totals(published.queries)), TABLES: published, UNROUNDED: published.exactly()}
    asked = [AreaQuestion(name, evidence(of, case.records)) for name, of in known.items()]
    return [AreaQuestion(NATIONAL, None), *asked]


def inquiry_of(case: Case, options: ReconstructOptions) -> Inquiry:
    """Learn the laws, and get ready to ask."""
    records = case.records
    place = country(records, options.seed)
    kind = tuple(options.kind) or tuple(name for name in records.values if name.lower() in KINDS)
    kind = kind or tuple(name for name in records.values if name.lower() not in ("age", "sex"))
    return Inquiry(records, place, case.people, kind, ChainEffort(worlds=options.worlds, seeds=options.seeds), options.seed)


def reconstruct(
    releases: Sequence[Release],
    given: Reconstruct,
    files_used: Sequence[Path] | None = None,
    finish: Callable[[Path, dict[str, Any]], None] = lambda *_: None,
) -> Reconstruction:
    """Reconstruct the people of every area, compare them with the truth, and write aggregates into a folder.

    `finish` adds pages to the finished folder before anybody sees it.
    """
    assert given.truth is not None
    truth, ways = Path(given.truth), [parse_protection(name) for name in given.ways]
    if keyed := next((how.name for how in ways if how.keys), None):
        raise InputError(
            f"a reconstruction does not use keys, so that {keyed} is to it what the same rounding without keys is."
        )
    key = "" if files_used is None else key_of(given.part(ReconstructOptions), releases, (truth, *files_used))
    older = known_by(PAGE, "unround", OURS, "reconstruct")
    with output_folder(Path(given.out), "reconstruct", older, key=key, checkpoint=STARTED) as output:
        # 1. Read records and tables, and find out what the columns count.
        given.progress("Reading", 0, 0)
        case = read_case(releases, truth, given, output.work / CASE)
        del releases  # some readers hold a whole table, and all of it is on disk now
        write_json(output.work / STARTED, {})
        parts = output.work / "parts"
        parts.mkdir(exist_ok=True)
        # 2. Learn the law of every part of the country from the others.
        given.progress("Learning", 0, 0)
        inquiry = inquiry_of(case, given)
        # 3. Ask the four questions.
        simulated, everywhere = case.records.simulated, np.arange(len(case.records.areas))
        kept = TABLES if simulated else ""
        tallies = inquiry.answers(questions_of(case), everywhere, parts, partial(given.progress, "Reconstructing"), kept)
        # 4. Look at a sample of areas more closely.
        summary = summary_of(case, inquiry, tallies, given, given.command)
        if given.sample:
            sample = sample_of(case, given.sample, given.seed)
            summary["compared"] = {
                **compared(case, inquiry, sample, ways, parts, partial(given.progress, "Comparing")),
                "as_published": in_sample(tallies[TABLES], sample),
                "national": in_sample(tallies[NATIONAL], sample),
            }
            summary["claims"], proofs = claimed(case, sample, given.progress)
            if simulated:
                lines = (json.dumps(line, ensure_ascii=False) + "\n" for line in proofs)
                (output.done / PROOFS).write_text("".join(lines), encoding="utf-8")
        # 5. Put everything in its place: reconstructed persons only where they are invented.
        write_json(output.done / SUMMARY, summary)
        if simulated:
            _write_persons(output, parts, tallies[TABLES].confidence())
        finish(output.done, summary)
        output.publish(OURS)
    return Reconstruction(summary, Path(given.out))


def summary_of(
    case: Case, inquiry: Inquiry, tallies: dict[str, GuessTally], options: ReconstructOptions, command: str
) -> dict[str, Any]:
    """Return everything that is told, as plain data."""
    records, published = case.records, case.published
    return {
        "version": __version__,
        "command": command,
        "tables": [{"name": name, "columns": published.tables.count(number)} for number, name in enumerate(published.names)],
        "mechanisms": sorted({how.name for how in published.mechanisms}),
        "records": records.source,
        "simulated": records.simulated,
        "areas": len(records.areas),
        "people": records.people,
        "exact_people": case.exact_people,
        "attributes": {name: len(values) for name, values in records.values.items()},
        "kind": list(inquiry.kind),
        "has_ages": inquiry.place.age[1] > 0,
        "law_from_other_areas": inquiry.place.learnt,
        "groups": {name: int(tallies[TABLES].people[:, at].sum()) for at, name in enumerate(GROUPS)},
        "seed": options.seed,
        "seeds": options.seeds,
        "worlds": options.worlds,
        "guesses": {name: tally.to_json() for name, tally in tallies.items()},
        "gain": {name: gain(tallies[TABLES], tallies[name]) for name in (NATIONAL, TOTALS)},
        "compared": None,
        "claims": None,
        "notes": list(published.notes),
    }


def _write_persons(output: OutputFolder, parts: Path, confidence: NDArray[np.float64]) -> None:
    """Join the blocks of reconstructed persons, with the confidence in each.

    Block by block: in one go over all files, polars would look up confidences for the persons of all areas at once.
    """
    folder = output.work / "sure"
    folder.mkdir(exist_ok=True)
    blocks = []
    for part in sorted(parts.glob(f"{TABLES}-*.parquet")):
        block = pl.read_parquet(part, glob=False)
        sure = pl.Series("confidence", confidence[bands_of(block[SHARE].to_numpy())])
        block.drop(SHARE).with_columns(sure).write_parquet(folder / part.name)
        blocks.append(folder / part.name)
    pl.scan_parquet(blocks, glob=False).sink_parquet(output.done / PERSONS, row_group_size=AT_ONCE_TEXT)


def key_of(options: ReconstructOptions, releases: Sequence[Release], paths: Sequence[Path]) -> str:
    """Return what tells one reconstruction from another: the version, the files, how they are read, and the options."""
    states = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in paths if path.exists()]
    tables = [(table.source, table.axes, table.areas, table.columns, table.proposals) for table in releases]
    return hashlib.sha256(repr((__version__, states, options, tables)).encode()).hexdigest()
