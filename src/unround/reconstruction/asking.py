"""Questions to many areas: what each kind of evidence tells of their people. What is done stays done.

In a sample of areas more is asked: what other ways of publishing would tell, what one table less would, what can be proved.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from unround.errors import InputError
from unround.jit import in_threads
from unround.mechanisms import HIDDEN, Exact
from unround.options import Stage
from unround.protection import Protection, publish_counts
from unround.reconstruction.chain import ChainEffort, Country, area_truth, random_number, worlds_of
from unround.reconstruction.claims import (
    AreaBounds,
    Columns,
    CrossTable,
    area_bounds,
    certificate,
    claim_line,
    cross_table,
)
from unround.reconstruction.queries import Published, TableEvidence, evidence, tables_of
from unround.reconstruction.records import CountTable, PersonRecords, rows_on_disk
from unround.reconstruction.score import EVERYONE, AreaScore, GuessTally, ratio, score
from unround.release import ABSENT, SUPPRESSED
from unround.simulation.persons import Ints

if TYPE_CHECKING:
    from unround.reconstruction.run import Case

SHARE = "share"  # the column of what is kept between that holds shares of worlds
BLOCK = 64  # areas between two times that work is saved


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
    effort: ChainEffort  # how long to look
    seed: int  # of all random numbers

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
        done, whole, found = 0, len(questions) * len(areas), dict[str, GuessTally]()
        progress(0, whole)
        for question in questions:
            name = re.sub(r"[^a-z0-9.]+", "_", question.name)
            blocks = {
                parts / f"{name}-{start // BLOCK:06}.npz": areas[start : start + BLOCK]
                for start in range(0, len(areas), BLOCK)
            }
            missing = {path: few for path, few in blocks.items() if not path.exists()}
            done += len(areas) - sum(map(len, missing.values()))
            progress(done, whole)
            for path, few in missing.items():
                self._answer(question, few, path, question.name == guesses_of)
                done += len(few)
                progress(done, whole)
            found[question.name] = GuessTally.joined([GuessTally.load(path) for path in blocks])
        return found

    def _answer(self, question: AreaQuestion, areas: Ints, kept: Path, guesses: bool) -> None:
        """Answer for a few areas, in threads, and keep their scores, perhaps with the best guesses beside them."""
        found: list[AreaScore | None] = [None] * len(areas)
        stop = threading.Event()

        def job(first: int, last: int) -> None:
            for at in range(first, last):
                if stop.is_set():  # Ctrl-C reaches the main thread alone
                    return
                found[at] = self._area(question, int(areas[at]))

        try:
            in_threads(job, len(areas), fewest=1)
        except BaseException:
            stop.set()
            raise
        scores = [area for area in found if area is not None]
        if guesses:
            self._guesses(areas, scores).write_parquet(kept.with_suffix(".parquet"))
        GuessTally.joined([area.tally for area in scores]).save(kept)

    def _area(self, question: AreaQuestion, area: int) -> AreaScore:
        name, people = self.records.areas[area], int(self.people[area])
        worlds, outside = worlds_of(question.name, area, name, people, self.place, question.known, self.effort, self.seed)
        truth = area_truth(self.records, self.place, area, self.kind)
        return score(worlds, outside, self.effort.worlds, truth, *self.place.age, self.place.seen)

    def _guesses(self, areas: Ints, scores: Sequence[AreaScore]) -> pl.DataFrame:
        """Return best guesses as a table, one row per person, with the share of worlds that hold each."""
        guess = np.concatenate([result.guess for result in scores])
        people = [len(result.guess) for result in scores]
        columns = {"region": pl.Series(np.repeat([self.records.areas[area] for area in areas], people))}
        for name, radix in zip(self.place.names, self.place.radix, strict=True):
            values = self.records.values[name]
            columns[name] = pl.Series(values).gather((guess // radix) % len(values))
        return pl.DataFrame({**columns, SHARE: np.concatenate([result.shares for result in scores])})


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
    rows = rows_on_disk(path, len(sample), len(about), "i4")
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
                f"{how.name}: sums by three classifications cannot all be kept up; rounded count by count instead: "
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
