"""Questions to many areas: what each kind of evidence tells of their people. What is done stays done."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.jit import in_threads
from unround.reconstruction.evidence import Evidence
from unround.reconstruction.guess import Country, Effort, area_truth, worlds_of
from unround.reconstruction.records import Records
from unround.reconstruction.score import GROUPS, AreaScore, AreaTruth, score
from unround.reconstruction.tally import Tally

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
