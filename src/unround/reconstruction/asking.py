"""Questions to many areas: what each kind of evidence tells of their people. What is done stays done.

Blocks of a task done by the workers of a Dask cluster, as those of an audit are.

Which publication costs what: the same tables published in other ways, and with one table left out.

What is looked at in a sample of areas: other ways of publishing, tables left out, verified claims, variability.
"""

from __future__ import annotations

import pickle
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError, InternalError
from unround.jit import in_threads
from unround.job.cluster import work_on_cluster
from unround.mechanisms import HIDDEN, Exact
from unround.mechanisms.rounding import TwoWay
from unround.protection import Protection, parse_protection, publish_counts
from unround.reconstruction.chain import Country, Effort, area_truth, random_number, worlds_of
from unround.reconstruction.claims import (
    AreaBounds,
    Columns,
    CrossTable,
    NoWorldFits,
    Variability,
    area_bounds,
    certificate,
    checked,
    claim_line,
    common_cells,
    cross_table,
    variability,
)
from unround.reconstruction.queries import Evidence, Likelihoods, Published, evidence, tables_of
from unround.reconstruction.records import Records, Rows
from unround.reconstruction.score import EVERYONE, GROUPS, AreaScore, AreaTruth, Tally, ratio, score
from unround.release import ABSENT, SUPPRESSED
from unround.simulation.persons import counted, margins

if TYPE_CHECKING:
    from unround.reconstruction.run import Case

SHARE = "share"
"""The column of what is kept between that holds shares of worlds."""

BLOCK = 64
"""Areas between two times that work is saved."""


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What is known, by a name; None if that is nothing but the number of people."""

    name: str
    known: Evidence | None


@dataclass(frozen=True, slots=True, eq=False)
class Inquiry:
    """All that questions have in common.

    - `records`: The truth.
    - `place`: Attributes and laws.
    - `people`: How many live in each area, as published.
    - `kind`: The attributes by which people are alike.
    - `effort`: How long to look.
    - `seed`: Of all random numbers.
    """

    records: Records
    place: Country
    people: NDArray[np.int64]
    kind: tuple[str, ...]
    effort: Effort
    seed: int

    def ask(
        self,
        question: Question,
        areas: NDArray[np.int64],
        parts: Path,
        step: Callable[[int], None],
        *,
        keep_guesses: bool = False,
        elsewhere: Elsewhere | None = None,
    ) -> Tally:
        """Answer a question for some areas, block by block; blocks that an earlier run did are read."""
        task = Task(self, question, areas, parts, keep_guesses)
        missing = [number for number in range(task.blocks) if not task.path(number).exists()]
        step(len(areas) - sum(len(task.areas_of(number)) for number in missing))
        if elsewhere is None:
            for number in missing:
                step(task.work(number))
        else:
            elsewhere(task, missing, step)
        return Tally.joined([Tally.load(task.path(number)) for number in range(task.blocks)])

    def truth_of(self, area: int) -> AreaTruth:
        """Return the truth of an area."""
        return area_truth(self.records, self.place, area, self.kind)

    def block(self, question: Question, areas: NDArray[np.int64]) -> tuple[list[AreaScore], list[float]]:
        """Answer for a few areas, in threads."""
        found: list[tuple[AreaScore, float] | None] = [None] * len(areas)
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
        done = [one for one in found if one is not None]
        return [one for one, _ in done], [off for _, off in done]

    def _area(self, question: Question, area: int) -> tuple[AreaScore, float]:
        name, people = self.records.areas[area], int(self.people[area])
        worlds, outside = worlds_of(question.name, area, name, people, self.place, question.known, self.effort, self.seed)
        return score(worlds, self.effort.worlds, self.truth_of(area), *self.place.age, self.place.seen), outside

    def guesses(self, areas: NDArray[np.int64], scores: Sequence[AreaScore]) -> pl.DataFrame:
        """Return best guesses as a table, one row per person, with the share of worlds that hold each."""
        guess = np.concatenate([one.guess for one in scores])
        columns: dict[str, pl.Series] = {
            "region": pl.Series(np.repeat([self.records.areas[area] for area in areas], [len(one.guess) for one in scores]))
        }
        for name, radix in zip(self.place.names, self.place.radix, strict=True):
            values = self.records.values[name]
            columns[name] = pl.Series(values).gather((guess // radix) % len(values))
        shares = np.concatenate([one.shares for one in scores])
        return pl.DataFrame({**columns, SHARE: pl.Series(shares)})


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A question to some areas, in blocks, each of which can be done by anybody who has the task.

    - `inquiry`, `question`: What is asked.
    - `areas`: Of which areas.
    - `parts`: Where what is done is kept.
    - `keep_guesses`: Whether the reconstructed records are kept as well.
    """

    inquiry: Inquiry
    question: Question
    areas: NDArray[np.int64]
    parts: Path
    keep_guesses: bool

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return -(-len(self.areas) // BLOCK)

    @property
    def name(self) -> str:
        """What the files of the task are called."""
        return re.sub(r"[^a-z0-9.]+", "_", self.question.name)

    def areas_of(self, number: int) -> NDArray[np.int64]:
        """Return the areas of a block."""
        return self.areas[number * BLOCK : (number + 1) * BLOCK]

    def path(self, number: int) -> Path:
        """Return where the scores of a block are, or will be."""
        return self.parts / f"{self.name}-{number:06}.npz"

    def work(self, number: int) -> int:
        """Do a block, keep its scores, and return how many areas it has."""
        few = self.areas_of(number)
        scores, outside = self.inquiry.block(self.question, few)
        if self.keep_guesses:
            self.inquiry.guesses(few, scores).write_parquet(self.path(number).with_suffix(".parquet"))
        people = np.stack([self.inquiry.truth_of(int(area)).groups.sum(axis=0) for area in few])
        Tally.of(scores, people.reshape(len(few), len(GROUPS)), outside).save(self.path(number))
        return len(few)


Elsewhere = Callable[[Task, Sequence[int], Callable[[int], None]], None]
"""Has some blocks of a task done, and tells of each how many areas it had."""


@dataclass(frozen=True, slots=True)
class TaskFolder:
    """The folder that a task lies in, which all workers see under the same path."""

    folder: Path


def on_cluster(address: str) -> Elsewhere:
    """Return what has blocks done by the cluster of a scheduler."""

    def done_there(task: Task, numbers: Sequence[int], step: Callable[[int], None]) -> None:
        if not numbers:
            return
        folder = task.parts.resolve()
        # Dask itself sends work about in this form; the file spares every block from carrying the whole task along.
        (folder / f"{task.name}.task").write_bytes(pickle.dumps(task))
        try:
            work_on_cluster(address, TaskFolder(folder), task.name, numbers, step, work_on_task)
        finally:
            (folder / f"{task.name}.task").unlink()
        if not all(task.path(number).exists() for number in numbers):
            raise InternalError("some blocks of areas were not reconstructed")

    return done_there


@lru_cache(maxsize=1)
def _opened(folder: str, key: str) -> Task:
    task = pickle.loads((Path(folder) / f"{key.rpartition('-')[0]}.task").read_bytes())
    assert isinstance(task, Task)
    return Task(task.inquiry, task.question, task.areas, Path(folder), task.keep_guesses)


def work_on_task(folder: str, key: str, number: int) -> int:
    """Do one block of a task; what workers elsewhere are sent. The key begins with the name of the task."""
    return _opened(folder, key).work(number)


WAY, WITHOUT = "way", "without"


def ways_named(names: Sequence[str]) -> list[Protection]:
    """Return ways of publishing by their names.

    Raises `InputError` if there is no such way.
    """
    return [parse_protection(name) for name in names]


def way_evidence(
    how: Protection, published: Published, records: Records, seed: int, sample: NDArray[np.int64], path: Path
) -> tuple[Evidence, list[str]]:
    """Publish the same columns in another way, those that are exact as they are, and return what the sample then shows.

    Every table is drawn for all areas, one at a time. Also returns the tables whose sums controlled rounding cannot keep up:
    they are rounded count by count.
    """
    loose: list[str] = []
    likelihoods = Likelihoods()
    shown = np.full((len(sample), len(published.queries)), -1, dtype=np.int32)
    exact = np.array([isinstance(one, Exact) for one in published.mechanisms])
    about = np.array([bool(one) for one in published.queries])
    for table in range(len(published.names)):
        own = [at for at in range(len(published.tables)) if published.tables[at] == table and not exact[at]]
        rng = np.random.default_rng(np.random.SeedSequence([seed, table, *how.name.encode()]))
        if how.keys:
            counts, here = _by_keys(how, published, records, own, rng, seed, sample), np.arange(len(sample))
        else:
            counts, here = _drawn(how, published, own, rng, published.names[table], loose), sample
        counts = np.where(counts == HIDDEN, SUPPRESSED, counts)
        kept = about[own]
        places = np.array(own, dtype=np.int64)[kept]
        shown[:, places] = likelihoods.rows(counts[:, kept], [how.mechanism] * len(places))[here]
    places = np.flatnonzero(exact & about)
    for area, counts in _exactly(published, places):
        first, last = np.searchsorted(sample, [area, area + len(counts)]).tolist()
        found = likelihoods.rows(counts, [published.mechanisms[at] for at in places])
        shown[first:last, places] = found[sample[first:last] - area]
    rows = Rows.new(path, len(sample), int(about.sum()), "i4")
    with rows.writing() as file:
        rows.put(file, 0, shown[:, about])
    queries = [one for one in published.queries if one]
    return Evidence(tables_of(queries, tuple(records.values), records.sizes), likelihoods.windows(), rows, sample), loose


def _drawn(
    how: Protection, published: Published, own: Sequence[int], rng: np.random.Generator, name: str, loose: list[str]
) -> NDArray[np.int64]:
    """Publish some columns of all areas; controlled, if that is wanted and possible."""
    true = published.true.picked(own).whole()
    if how.controlled:
        try:
            return _controlled(how, published, true, own, rng)
        except InputError:
            loose.append(name)
    return how.mechanism.publish(true, rng)


def _exactly(published: Published, places: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Go through all areas with the true counts of some columns, as far as they were published."""
    true = published.true.picked(places.tolist())
    for start, counts in published.counts.picked(places.tolist()).blocks():
        yield start, np.where(counts > ABSENT, true.read(start, start + len(counts)), counts)


def _by_keys(
    how: Protection,
    published: Published,
    records: Records,
    own: Sequence[int],
    rng: np.random.Generator,
    seed: int,
    sample: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Round by the keys of records, the file's own or drawn ones, and a constant of the table, in the sample alone."""
    assert isinstance(how.mechanism, TwoWay)
    queries = [published.queries[at] for at in own]
    grouped = margins(queries, records.sizes)
    true, shift = published.true.picked(own), rng.integers(0, (1 << 64) - 1, dtype=np.uint64, endpoint=True)
    found = np.zeros((len(sample), len(own)), dtype=np.int64)
    for at, area in enumerate(sample.tolist()):
        keys = _keys_of(records, area, seed)
        sums = counted(grouped, len(queries), np.zeros(len(keys), np.int64), 1, records.codes_of(area, area + 1), keys)
        found[at] = how.mechanism.publish_keyed(true.read(area, area + 1), sums + shift)[0]
    return found


def _keys_of(records: Records, area: int, seed: int) -> NDArray[np.uint64]:
    """Return the keys of an area's records; where the file has none, those that are drawn, one after the other, for all."""
    first, last = int(records.starts[area]), int(records.starts[area + 1])
    if records.keys is not None:
        return np.asarray(records.keys.read(first, last)[:, 0], dtype=np.uint64)
    chance = np.random.PCG64(np.random.SeedSequence([seed, 25])).advance(first)
    return np.random.Generator(chance).integers(0, (1 << 64) - 1, last - first, dtype=np.uint64, endpoint=True)


def _controlled(
    how: Protection, published: Published, true: NDArray[np.int64], own: Sequence[int], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Round so that sums add up, as far as their total is rounded too.

    Raises `InputError` where the sums form loops that cannot be kept up.
    """
    at = {column: place for place, column in enumerate(own)}
    sums = tuple(
        (at[total], tuple(at[part] for part in parts))
        for total, parts in published.sums
        if total in at and all(part in at for part in parts)
    )
    return publish_counts(true, how, sums, rng)


def way_questions(
    ways: Sequence[Protection], published: Published, records: Records, seed: int, sample: NDArray[np.int64], folder: Path
) -> tuple[list[Question], list[str]]:
    """Return a question about the sample for every way of publishing, and what could not be done."""
    found, notes = [], []
    for number, how in enumerate(ways):
        known, loose = way_evidence(how, published, records, seed, sample, folder / f"{WAY}-{number}.bin")
        if loose:
            notes.append(
                f"{how.name}: sums by three classifications cannot all be kept up; rounded count by count instead: "
                f"{', '.join(loose)}."
            )
        found.append(Question(f"{WAY} {how.name}", known))
    return found, notes


def without_questions(published: Published, records: Records, sample: NDArray[np.int64], folder: Path) -> list[Question]:
    """Return a question about the sample for every table, with all tables but this one."""
    names, sizes = tuple(records.values), records.sizes
    found: list[Question] = []
    if len(published.names) < 2:
        return found
    for table in range(len(published.names)):
        kept = published.without(np.array([one == table for one in published.tables]))
        path = folder / f"{WITHOUT}-{table}.bin"
        known = evidence(kept.counts, kept.queries, kept.mechanisms, names, sizes, path, sample)
        found.append(Question(f"{WITHOUT} {table}", known))
    return found


Step = Callable[[str, int, int], None]

MOST_CHECKED = 20
"""Claims that are proved again by a linear program."""


def sample_of(case: Case, number: int, seed: int) -> NDArray[np.int64]:
    """Choose areas by their names and the seed alone."""
    chance = np.array([random_number(seed, "sample", name) for name in case.records.areas])
    return np.sort(np.argsort(chance, kind="stable")[:number])


def compared(
    case: Case,
    inquiry: Inquiry,
    sample: NDArray[np.int64],
    ways: Sequence[Protection],
    parts: Path,
    progress: Step,
    elsewhere: Elsewhere | None = None,
) -> dict[str, Any]:
    """Ask what other ways of publishing, and leaving out a table, would change in the sample."""
    others, notes = way_questions(ways, case.published, case.records, inquiry.seed, sample, case.folder)
    less = without_questions(case.published, case.records, sample, case.folder)
    done, whole = 0, (len(others) + len(less)) * len(sample)

    def step(areas: int) -> None:
        nonlocal done
        done += areas
        progress("Comparing", done, whole)

    progress("Comparing", 0, whole)
    found = {question.name: inquiry.ask(question, sample, parts, step, elsewhere=elsewhere) for question in (*others, *less)}
    return {
        "areas": len(sample),
        "ways": [{"name": question.name.removeprefix(f"{WAY} "), **_told(found[question.name])} for question in others],
        "without": [
            {"name": case.published.names[int(question.name.removeprefix(f"{WITHOUT} "))], **_told(found[question.name])}
            for question in less
        ],
        "notes": notes,
    }


def _told(tally: Tally) -> dict[str, Any]:
    told = tally.to_json()
    return {name: told[name] for name in ("agreement", "within_one_year", "one_world", "steps_outside")}


def in_sample(tally: Tally, sample: NDArray[np.int64]) -> dict[str, Any]:
    """Return the agreement of a guess in the sample alone."""
    share, error = ratio(tally.exact[sample][:, :, EVERYONE], tally.people[sample][:, EVERYONE])
    return {"share": share, "standard_error": error}


MOST_CERTIFIED = 200
"""Claims that are written out step by step."""


def claimed(
    case: Case, sample: NDArray[np.int64], variable: int, seconds: float, progress: Step
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Prove what can be proved in the sample, and find how different worlds can be in some of its areas.

    Also returns the certificates of claims, which tell of single areas.
    """
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
    told: dict[str, Any] = {"areas": len(sample), "attributes": list(table.names), "at_least": 0, "exactly": 0}
    told |= {"persons": 0, "true": 0, "by_number": {}, "checked": 0, "confirmed": 0, "contradictory": 0}
    told |= {"by_solver": 0, "by_solver_true": 0, "written_out": 0, "certified": 0}
    worlds: list[Variability] = []
    for number, area in enumerate(sample.tolist()):
        progress("Proving", number, len(sample))
        counts = case.published.counts.area(area)[table.used].tolist()
        found = area_bounds(table, counts, mechanisms)
        if not found.fits:
            told["contradictory"] += 1
            continue
        _count(told, case, table, found, area)
        for claim in found.claims()[: MOST_CERTIFIED - told["written_out"]]:
            told["written_out"] += 1
            if (proved := certificate(columns, counts, found, claim)) is not None:
                told["certified"] += 1
                written.append(claim_line(case.records.areas[area], *proved))
        if number < variable:
            people, exact = int(case.people[area]), case.exact_people
            try:
                worlds.append(variability(table, found, people, seconds, exact=exact))
                more = common_cells(table, found, people, seconds, exact=exact) or []
            except NoWorldFits:
                told["contradictory"] += 1
                continue
            told["by_solver"] += len(more)
            told["by_solver_true"] += int((_true_cells(case, table, area)[more] > 0).sum())
    progress("Proving", len(sample), len(sample))
    told["variability"] = _variability(worlds, seconds) if variable else None
    return told, written


def _count(told: dict[str, Any], case: Case, table: CrossTable, found: AreaBounds, area: int) -> None:
    """Count the claims of an area, hold them against the truth, and check a few again."""
    true = _true_cells(case, table, area)
    for cell, least, exactly in found.claims():
        told["exactly" if exactly else "at_least"] += 1
        told["persons"] += least
        told["true"] += int(true[cell] == least if exactly else true[cell] >= least)
        told["by_number"][str(least)] = told["by_number"].get(str(least), 0) + 1
        if told["checked"] < MOST_CHECKED and (sure := checked(table, found, cell, least)) is not None:
            told["checked"] += 1
            told["confirmed"] += int(sure)


def _true_cells(case: Case, table: CrossTable, area: int) -> NDArray[np.int64]:
    """Count the people of an area by cell."""
    return np.bincount(table.cell_of(case.records.codes_of(area, area + 1)), minlength=table.cells)


def _variability(worlds: Sequence[Variability], seconds: float) -> dict[str, Any]:
    return {
        "areas": len(worlds),
        "seconds": seconds,
        "low": float(np.mean([one.low for one in worlds])) if worlds else None,
        "high": float(np.mean([one.high for one in worlds])) if worlds else None,
        "determined": sum(one.determined for one in worlds),
        "solved": sum(one.why == "solved" for one in worlds),
        "out_of_time": sum(one.why == "time" for one in worlds),
        "too_large": sum(one.why == "size" for one in worlds),
    }
