"""Questions to many areas: what each kind of evidence tells of their people. What is done stays done."""

from __future__ import annotations

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

BLOCK = 32
"""Areas between two times that work is saved."""


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What is known, by a name; None if that is nothing but the number of people."""

    name: str
    known: Evidence | None


@dataclass(frozen=True, slots=True, eq=False)
class Inquiry:
    """All that questions have in common.

    Parameters
    ----------
    records : Records
        The truth.
    codes : array
        The code of every record.
    place : Country
        Attributes and laws.
    people : array
        How many live in each area, as published.
    kind : tuple of str
        The attributes by which people are alike.
    effort : Effort
        How long to look.
    seed : int
        Of all random numbers.
    """

    records: Records
    codes: NDArray[np.int64]
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
    ) -> Tally:
        """Answer a question for some areas, block by block; blocks that an earlier run did are read.

        Parameters
        ----------
        question : Question
            What is known.
        areas : array
            For which areas.
        parts : Path
            The folder of what is done.
        step : function
            Called with the number of areas done with every block.
        keep_guesses : bool
            Whether the reconstructed records themselves are kept. Only for simulated persons.
        """
        found = []
        for number in range(-(-len(areas) // BLOCK)):
            path = parts / f"{question.name}-{number:06}.npz"
            few = areas[number * BLOCK : (number + 1) * BLOCK]
            if not path.exists():
                scores, outside = self._block(question, few)
                if keep_guesses:
                    self._records(few, scores).write_parquet(parts / f"{question.name}-{number:06}.parquet")
                people = np.stack([self._truth_of(int(area)).groups.sum(axis=0) for area in few])
                Tally.of(scores, people.reshape(len(few), len(GROUPS)), outside).save(path)
            found.append(Tally.load(path))
            step(len(few))
        return Tally.joined(found)

    def _truth_of(self, area: int) -> AreaTruth:
        return area_truth(self.records, self.codes, area, self.kind)

    def _block(self, question: Question, areas: NDArray[np.int64]) -> tuple[list[AreaScore], list[float]]:
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
        return score(worlds, self.effort.worlds, self._truth_of(area), *self.place.age), outside

    def _records(self, areas: NDArray[np.int64], scores: Sequence[AreaScore]) -> pl.DataFrame:
        """Return best guesses as a table, one row per person, with the confidence in each."""
        guess = np.concatenate([one.guess for one in scores])
        columns: dict[str, pl.Series] = {
            "region": pl.Series(np.repeat([self.records.areas[area] for area in areas], [len(one.guess) for one in scores]))
        }
        for name, radix in zip(self.place.names, self.place.radix, strict=True):
            values = self.records.values[name]
            columns[name] = pl.Series(values).gather((guess // radix) % len(values))
        confidence = np.concatenate([one.confidence for one in scores])
        return pl.DataFrame({**columns, "confidence": pl.Series(confidence)})
