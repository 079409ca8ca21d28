"""START HERE: how much of each person could be reconstructed from tables, on people whose truth is known.

Questions are asked of many areas: what each kind of evidence tells of their people. What is done stays done. In a sample of
areas more is asked: what other ways of publishing would tell, what one table less would, what can be proved.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unround._version import __version__
from unround.errors import InputError
from unround.jit import in_threads
from unround.job.work import has_part, job_key, new_part, part_folder
from unround.mechanisms import HIDDEN, Exact
from unround.options import Reconstruct, ReconstructOptions, Stage
from unround.output import OutputFolder, array_on_disk, known_by, output_folder, write_json
from unround.protection import Protection, parse_protection, publish_counts
from unround.reconstruction.chain import (
    NATIONAL,
    TABLES,
    TOTALS,
    UNROUNDED,
    VISIBLE,
    Country,
    country,
    drawn,
    raked_people,
    random_number,
    run,
    schedule,
)
from unround.reconstruction.claims import (
    AreaBounds,
    Columns,
    CrossTable,
    area_bounds,
    certificate,
    claim_line,
    cross_table,
)
from unround.reconstruction.queries import (
    Published,
    TableEvidence,
    evidence,
    own_totals,
    population,
    read_published,
    tables_of,
    verified,
    with_absent_values,
)
from unround.reconstruction.records import AT_ONCE_TEXT, CountTable, PersonRecords, read_records
from unround.reconstruction.score import (
    ALONE,
    EVERYONE,
    GROUPS,
    UNLIKE,
    AreaScore,
    AreaTruth,
    GuessTally,
    bands_of,
    gain,
    ratio,
    score,
)
from unround.release import ABSENT, SUPPRESSED, Release
from unround.shown import Shown
from unround.simulation.persons import Codes, Floats, Ints

SUMMARY, PAGE, PERSONS, STARTED = "summary.json", "reconstruct.html", "reconstructed.parquet", "started.json"
PROOFS = "proofs.jsonl"
TALLY = "tally.npz"  # of a part: the scores of its areas
CASE = "case"  # in the working folder: records and counts; a few areas are in memory at a time
OURS = (SUMMARY, PAGE, PERSONS, PROOFS)

KINDS = ("birthplace", "language", "religion", "ethnicity", "race", "citizenship", "indigenous")
"""Attributes by which people are alike, where records have them; all but age and sex otherwise."""

SHARE = "share"  # the column of what is kept between that holds shares of worlds
BLOCK = 64  # areas between two times that work is saved


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
    people: Ints  # how many live in each area, as published
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


@dataclass(frozen=True, slots=True, eq=False)
class AreaQuestion:
    """What is known, by a name; None if that is nothing but the number of people."""

    name: str
    known: TableEvidence | None


@dataclass(frozen=True, slots=True, eq=False)
class Inquiry:
    """All that questions have in common."""

    records: PersonRecords  # the truth
    place: Country  # attributes and laws
    people: Ints  # how many live in each area, as published
    kind: tuple[str, ...]  # the attributes by which people are alike
    seed: int  # of all random numbers
    seeds: int  # how many times to begin anew, and how many worlds to keep each time
    worlds: int

    def answers(
        self,
        questions: Sequence[AreaQuestion],
        areas: Ints,
        parts: Path,
        progress: Callable[[int, int], None],
        guesses_of: str = "",
    ) -> dict[str, GuessTally]:
        """Answer questions for some areas, block by block; the reconstructed records of one of them may be kept.

        The scores of a block stay in the folder `parts`: what an earlier run did is not done again.
        """
        done, whole, tallies = 0, len(questions) * len(areas), dict[str, GuessTally]()
        progress(0, whole)
        for question in questions:
            name = re.sub(r"[^a-z0-9.]+", "_", question.name)
            blocks = [areas[start : start + BLOCK] for start in range(0, len(areas), BLOCK)]
            missing = {number: few for number, few in enumerate(blocks) if not has_part(parts / name, number)}
            done += len(areas) - sum(map(len, missing.values()))
            progress(done, whole)
            for number, few in missing.items():
                with new_part(parts / name, number) as part:
                    self._answer(question, few, part, question.name == guesses_of)
                done += len(few)
                progress(done, whole)
            kept = (GuessTally.load(part_folder(parts / name, number) / TALLY) for number in range(len(blocks)))
            tallies[question.name] = GuessTally.joined([*kept])
        return tallies

    def _answer(self, question: AreaQuestion, areas: Ints, part: Path, guesses: bool) -> None:
        """Answer for a few areas, in threads, and keep their scores, perhaps with the best guesses beside them."""
        answers: list[AreaScore | None] = [None] * len(areas)
        stop = threading.Event()

        def job(first: int, last: int) -> None:
            for at in range(first, last):
                if stop.is_set():  # Ctrl-C reaches the main thread alone
                    return
                answers[at] = self._area(question, int(areas[at]))

        try:
            in_threads(job, len(areas), fewest=1)
        except BaseException:
            stop.set()
            raise
        scores = [area for area in answers if area is not None]
        if guesses:
            self._guesses(areas, scores).write_parquet(part / PERSONS)
        GuessTally.joined([area.tally for area in scores]).save(part / TALLY)

    def _area(self, question: AreaQuestion, area: int) -> AreaScore:
        worlds, outside = self.worlds_of(question, area)
        return score(worlds, outside, self.worlds, self._truth(area), *self.place.age, self.place.seen)

    def worlds_of(self, question: AreaQuestion, area: int) -> tuple[Ints, float]:
        """Return worlds of one area, those of all seeds one after the other, and by how many steps counts miss windows.

        Nothing depends on other areas but the law.
        """
        known, people, name = question.known, int(self.people[area]), self.records.areas[area]
        law, radix = self.place.laws[self.place.fold[area]], self.place.radix
        chances = [random_number(self.seed, question.name, name, str(number)) for number in range(self.seeds)]
        if known is None or not len(known.tables.base) or not people:
            return np.concatenate([drawn(people, law, self.worlds, radix, chance) for chance in chances]), 0.0
        windows, log = known.of(area)
        effort = schedule(self.worlds, exact=all(isinstance(how, Exact) for how in known.mechanisms))
        worlds, outside = [], 0.0
        for chance in chances:
            start = raked_people(people, law, known.tables, windows, chance)
            kept, off = run(start, law, known.tables, windows, log, effort, radix, chance)
            worlds.append(kept)
            outside += float(off.mean()) / self.seeds
        return np.concatenate(worlds), outside

    def _truth(self, area: int) -> AreaTruth:
        """Return the true records of an area and their groups."""
        records, values = self.records, self.records.codes_of(area, area + 1)
        codes = np.zeros(int(records.starts[area + 1] - records.starts[area]), dtype=np.int64)
        for name, each in zip(self.place.names, self.place.radix, strict=True):
            codes += values[name] * each
        groups = np.zeros((len(codes), len(GROUPS)), dtype=bool)
        groups[:, EVERYONE] = True
        visible = [name for name in records.values if name.lower() in VISIBLE]
        if visible:
            together = _together(values, visible, records.sizes)
            groups[:, ALONE] = np.bincount(together)[together] == 1
        if self.kind:
            together = _together(values, self.kind, records.sizes)
            groups[:, UNLIKE] = together != np.bincount(together).argmax()
        order = np.argsort(codes, kind="stable")
        return AreaTruth(codes[order], groups[order])

    def _guesses(self, areas: Ints, scores: Sequence[AreaScore]) -> pl.DataFrame:
        """Return best guesses as a table, one row per person, with the share of worlds that hold each."""
        guess = np.concatenate([result.guess for result in scores])
        people = [len(result.guess) for result in scores]
        columns = {"region": pl.Series(np.repeat([self.records.areas[area] for area in areas], people))}
        for name, radix in zip(self.place.names, self.place.radix, strict=True):
            values = self.records.values[name]
            columns[name] = pl.Series(values).gather((guess // radix) % len(values))
        return pl.DataFrame({**columns, SHARE: np.concatenate([result.shares for result in scores])})


def _together(codes: Mapping[str, Codes], names: Sequence[str], sizes: Mapping[str, int]) -> Ints:
    """Return a number for every person of an area that those share who have the same values."""
    place = np.zeros(len(codes[names[0]]), dtype=np.int64)
    for name in names:
        place = place * sizes[name] + codes[name]
    return np.unique(place, return_inverse=True)[1].ravel()


WAY, WITHOUT = "way", "without"


def way_evidence(
    how: Protection, published: Published, records: PersonRecords, seed: int, sample: Ints, path: Path
) -> tuple[TableEvidence, list[str]]:
    """Publish the same columns in another way, those that are exact as they are, and return what the sample then shows.

    Every table is drawn for all areas, one at a time. Also returns the tables whose sums controlled rounding cannot keep up:
    they are rounded count by count.
    """
    loose: list[str] = []
    mechanisms = list(published.mechanisms)
    shown, true = published.counts[sample], published.true[sample]
    shown = np.where(shown > ABSENT, true, shown)
    for table in range(len(published.names)):
        columns = [
            at for at, how_now in enumerate(mechanisms) if published.tables[at] == table and not isinstance(how_now, Exact)
        ]
        rng = np.random.default_rng(np.random.SeedSequence([seed, table, *how.name.encode()]))
        counts = _drawn(how, published, columns, rng, published.names[table], loose)[sample]
        shown[:, columns] = np.where(counts == HIDDEN, SUPPRESSED, counts)
        for at in columns:
            mechanisms[at] = how.mechanism
    about = [at for at, counted_by in enumerate(published.queries) if counted_by]
    rows = array_on_disk(path, (len(sample), len(about)), "i4")
    rows[:] = shown[:, about]
    tables = tables_of([published.queries[at] for at in about], tuple(records.values), records.sizes)
    kept = CountTable(rows, np.arange(len(about)))
    return TableEvidence(tables, [mechanisms[at] for at in about], kept, sample), loose


def _drawn(
    how: Protection, published: Published, columns: Sequence[int], rng: np.random.Generator, name: str, loose: list[str]
) -> Ints:
    """Publish some columns of all areas; where controlled rounding cannot keep their sums up, count by count."""
    true = published.true.picked(columns)[:]
    try:
        return publish_counts(true, how, tuple(published.picked(columns).sums), rng)
    except InputError:
        loose.append(name)
        return how.mechanism.publish(true, rng)


def way_questions(
    ways: Sequence[Protection], published: Published, records: PersonRecords, seed: int, sample: Ints, folder: Path
) -> tuple[list[AreaQuestion], list[str]]:
    """Return a question about the sample for every way of publishing, and what could not be done."""
    questions, notes = [], []
    for number, how in enumerate(ways):
        known, loose = way_evidence(how, published, records, seed, sample, folder / f"{WAY}-{number}.bin")
        if loose:
            notes.append(
                f"{how.name}: sums by three classifications cannot all be preserved; rounded count by count instead: "
                f"{', '.join(loose)}."
            )
        questions.append(AreaQuestion(f"{WAY} {how.name}", known))
    return questions, notes


def without_questions(published: Published, records: PersonRecords) -> list[AreaQuestion]:
    """Return a question for every table, with all tables but this one."""
    if len(published.names) < 2:
        return []
    questions = []
    for table in range(len(published.names)):
        kept = published.without(np.array([of == table for of in published.tables]))
        questions.append(AreaQuestion(f"{WITHOUT} {table}", evidence(kept, records)))
    return questions


def sample_of(case: Case, number: int, seed: int) -> Ints:
    """Choose areas by their names and the seed alone."""
    chance = np.array([random_number(seed, "sample", name) for name in case.records.areas])
    return np.sort(np.argsort(chance, kind="stable")[:number])


def compared(
    case: Case, inquiry: Inquiry, sample: Ints, ways: Sequence[Protection], parts: Path, progress: Callable[[int, int], None]
) -> dict[str, Any]:
    """Ask what other ways of publishing, and leaving out a table, would change in the sample."""
    others, notes = way_questions(ways, case.published, case.records, inquiry.seed, sample, case.folder)
    less = without_questions(case.published, case.records)
    tallies = inquiry.answers([*others, *less], sample, parts, progress)
    shown = ("agreement", "within_one_year", "one_world", "steps_outside")

    def named(name: str, question: AreaQuestion) -> dict[str, Any]:
        results = tallies[question.name].to_json()
        return {"name": name, **{key: results[key] for key in shown}}

    return {
        "areas": len(sample),
        "ways": [named(how.name, question) for how, question in zip(ways, others, strict=True)],
        "without": [named(name, question) for name, question in zip(case.published.names, less, strict=False)],
        "notes": notes,
    }


def in_sample(tally: GuessTally, sample: Ints) -> dict[str, Any]:
    """Return the agreement of a guess in the sample alone."""
    share, error = ratio(tally.exact[sample][:, :, EVERYONE], tally.people[sample][:, EVERYONE])
    return {"share": share, "standard_error": error}


MOST_CERTIFIED = 200  # claims that are written out step by step


def claimed(case: Case, sample: Ints, progress: Stage) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Prove what can be proved in the sample; also return the certificates of claims, which tell of single areas."""
    table = cross_table(case.published.queries, case.records.sizes)
    mechanisms = [case.published.mechanisms[at] for at in table.used]
    columns = Columns.of(
        table,
        [case.published.queries[at] for at in table.used],
        [case.published.names[case.published.tables[at]] for at in table.used],
        mechanisms,
        case.records.values,
    )
    written: list[dict[str, Any]] = []
    counted_up: dict[str, Any] = {"areas": len(sample), "attributes": list(table.names), "at_least": 0, "exactly": 0}
    counted_up |= {"persons": 0, "true": 0, "by_number": {}, "contradictory": 0, "written_out": 0, "certified": 0}
    for number, area in enumerate(sample.tolist()):
        progress("Proving", number, len(sample))
        counts = case.published.counts[area][table.used].tolist()
        bounds = area_bounds(table, counts, mechanisms)
        if not bounds.fits:
            counted_up["contradictory"] += 1
            continue
        _count(counted_up, case, table, bounds, area)
        for claim in bounds.claims()[: MOST_CERTIFIED - counted_up["written_out"]]:
            counted_up["written_out"] += 1
            if (proved := certificate(columns, counts, bounds, claim)) is not None:
                counted_up["certified"] += 1
                written.append(claim_line(case.records.areas[area], *proved))
    progress("Proving", len(sample), len(sample))
    return counted_up, written


def _count(counted_up: dict[str, Any], case: Case, table: CrossTable, bounds: AreaBounds, area: int) -> None:
    """Count the claims of an area, and compare them with the truth."""
    true = true_cells(case, table, area)
    for cell, least, exactly in bounds.claims():
        counted_up["exactly" if exactly else "at_least"] += 1
        counted_up["persons"] += least
        counted_up["true"] += int(true[cell] == least if exactly else true[cell] >= least)
        counted_up["by_number"][str(least)] = counted_up["by_number"].get(str(least), 0) + 1


def true_cells(case: Case, table: CrossTable, area: int) -> Ints:
    """Count the people of an area by cell."""
    return np.bincount(table.cell_of(case.records.codes_of(area, area + 1)), minlength=table.cells)


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
    return Inquiry(records, place, case.people, kind, options.seed, options.seeds, options.worlds)


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
    key = "" if files_used is None else job_key(releases, (given.part(ReconstructOptions),), (truth, *files_used))
    older = known_by(PAGE, "unround", OURS, "reconstruct")
    with output_folder(Path(given.out), "reconstruct", older, key=key, checkpoint=STARTED) as output:
        # 1. Read records and tables, and find out what the columns count.
        given.progress("Reading", 0, 0)
        case = read_case(releases, truth, given, output.work / CASE)
        del releases  # some readers hold a whole table, and all of it is on disk now
        write_json(output.work / STARTED, {})
        parts = output.work / "parts"
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


def _write_persons(output: OutputFolder, parts: Path, confidence: Floats) -> None:
    """Join the blocks of reconstructed persons, with the confidence in each.

    Block by block: in one go over all files, polars would look up confidences for the persons of all areas at once.
    """
    folder = output.work / "sure"
    folder.mkdir(exist_ok=True)
    blocks = []
    for part in sorted((parts / TABLES).glob("[0-9]*")):
        block = pl.read_parquet(part / PERSONS, glob=False)
        sure = pl.Series("confidence", confidence[bands_of(block[SHARE].to_numpy())])
        blocks.append(folder / f"{part.name}.parquet")
        block.drop(SHARE).with_columns(sure).write_parquet(blocks[-1])
    pl.scan_parquet(blocks, glob=False).sink_parquet(output.done / PERSONS, row_group_size=AT_ONCE_TEXT)
