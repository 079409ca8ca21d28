"""The four guesses at the people of an area, all by the same means from more and more of what is published.

- *national*: records drawn from the national law, as many as people live there; no table of the area is used.
- *totals*: the same, given the area's own totals: the columns about one attribute alone.
- *tables*: the same, given all published columns. This is the reconstruction.
- *unrounded*: the same, given the true counts of these columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.reconstruction.arrays import Law, Schedule
from unround.reconstruction.chain import drawn, run
from unround.reconstruction.evidence import Evidence
from unround.reconstruction.law import fit, flat
from unround.reconstruction.records import MOST_RECORDS, Records
from unround.reconstruction.score import ALONE, EVERYONE, GROUPS, UNLIKE, AreaTruth, Seen
from unround.reconstruction.start import raked_people

NATIONAL, TOTALS, TABLES, UNROUNDED = GUESSES = ("national", "totals", "tables", "unrounded")

FOLDS = 5
"""Areas are dealt into so many parts; the law for an area comes from the people of the other parts."""

VISIBLE = ("age", "sex")
"""What everybody sees of a person."""

SAMPLE = 200_000
"""People from whom a law is learnt, as from a public sample of records."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to look.

    - `worlds`: Worlds that are kept for every seed.
    - `first`, `between`: Moves per person before the first world, and between two worlds.
    - `seeds`: How many times to begin anew.
    """

    worlds: int = 32
    first: int = 40
    between: int = 5
    seeds: int = 3

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise InputError(f"seeds must be 1 or more, not {self.seeds}.")
        if self.worlds < 2:
            raise InputError(f"at least 2 worlds are needed, not {self.worlds}.")

    def schedule(self, *, exact: bool) -> Schedule:
        """Return it as the chain takes it; between worlds that fit exact tables the way is longer."""
        longer = 2 if exact else 1
        return Schedule(longer * self.first, longer * self.between, self.worlds, 1.0, 6.0)


USUAL = Effort()


@dataclass(frozen=True, slots=True, eq=False)
class Country:
    """What is the same for all areas: attributes in their order, codes of records, and the laws.

    - `names`: The attributes of a record.
    - `radix`: The code of a record is the sum of its values times these.
    - `laws`: One for every part of the areas.
    - `fold`: The part that each area is in.
    - `age`: What a year of age adds to the code of a record, and how many ages there are; (1, 0) where records have no
      age.
    - `seen`: Age and sex, as far as records have them.
    - `learnt`: Whether there are other areas to learn the law from; otherwise all records are equally likely.
    """

    names: tuple[str, ...]
    radix: NDArray[np.int64]
    laws: list[Law]
    fold: NDArray[np.int64]
    age: tuple[int, int]
    seen: Seen
    learnt: bool


def country(records: Records, seed: int) -> Country:
    """Learn the laws."""
    names, sizes = tuple(records.values), records.sizes
    radix = np.ones(len(names), dtype=np.int64)
    whole = 1
    for k in reversed(range(len(names))):
        radix[k] = whole
        whole *= sizes[names[k]]
    if whole > MOST_RECORDS:
        raise InputError(
            f"there are {whole:.1e} combinations of {', '.join(names)}: name fewer attributes with --attributes."
        )
    chance = np.array([random_number(seed, "fold", name) for name in records.areas])
    # Dealt in an order that only names and seed decide, so that all parts are of the same size.
    fold = np.empty(len(chance), dtype=np.int64)
    fold[np.argsort(chance, kind="stable")] = np.arange(len(chance)) % FOLDS
    age = next((name for name in names if name in records.numeric and name.lower() == "age"), None)
    ages = (1, 0) if age is None else (int(radix[names.index(age)]), sizes[age])
    visible = [at for at, name in enumerate(names) if name.lower() in VISIBLE]
    seen = Seen(radix[visible], np.array([sizes[names[at]] for at in visible], dtype=np.int64))
    if len(records.areas) < 2:
        return Country(names, radix, [flat(names, sizes)], np.zeros(1, dtype=np.int64), ages, seen, False)
    laws = []
    for part in range(min(FOLDS, len(records.areas))):
        others = _some_people(records, np.flatnonzero(fold != part), np.random.SeedSequence([seed, part]))
        laws.append(fit(records.codes_at(others), names, sizes))
    return Country(names, radix, laws, fold, ages, seen, True)


def _some_people(records: Records, areas: NDArray[np.int64], seed: np.random.SeedSequence) -> NDArray[np.int64]:
    """Return the people of some areas, or a sample of them where they are many."""
    ends = np.cumsum(np.diff(records.starts)[areas])
    number = int(ends[-1])
    if number > SAMPLE:
        chosen = np.sort(np.random.default_rng(seed).choice(number, SAMPLE, replace=False))
    else:
        chosen = np.arange(number)
    at = np.searchsorted(ends, chosen, side="right")
    # Counted from the end of an area: these are the people of some areas alone, and those are of all.
    return np.asarray(records.starts[areas[at] + 1] + chosen - ends[at])


def random_number(seed: int, *words: str) -> int:
    """Return a random number of 63 bits that depends on nothing but these words."""
    text = "\0".join((str(seed), *words)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1


def worlds_of(
    guess: str, area: int, name: str, people: int, place: Country, known: Evidence | None, effort: Effort, seed: int
) -> tuple[NDArray[np.int64], float]:
    """Return worlds of one area, those of all seeds one after the other, and how many steps counts are outside of windows.

    Nothing depends on other areas but the law.
    """
    law = place.laws[place.fold[area]]
    found, outside = [], 0.0
    rows = np.zeros(0, dtype=np.int32) if known is None else known.of(area)
    for number in range(effort.seeds):
        chance = random_number(seed, guess, name, str(number))
        if known is None or not len(known.tables.base) or not people:
            found.append(drawn(people, law, effort.worlds, place.radix, chance))
            continue
        schedule = effort.schedule(exact=bool((known.windows.size == 1).all()))
        start = raked_people(people, law, known.tables, rows, known.windows, chance)
        kept, off = run(start, law, known.tables, rows, known.windows, schedule, place.radix, chance)
        found.append(kept)
        outside += float(off.mean()) / effort.seeds
    return np.concatenate(found), outside


def area_truth(records: Records, place: Country, area: int, kind: Sequence[str]) -> AreaTruth:
    """Return the true records of an area and their groups; `kind` are the attributes that make people alike."""
    own = records.codes_of(area, area + 1)
    codes = np.zeros(int(records.starts[area + 1] - records.starts[area]), dtype=np.int64)
    for name, each in zip(place.names, place.radix, strict=True):
        codes += own[name] * each
    groups = np.zeros((len(codes), len(GROUPS)), dtype=bool)
    groups[:, EVERYONE] = True
    visible = [name for name in records.values if name.lower() in VISIBLE]
    if visible:
        together = _together(own, visible, records.sizes)
        groups[:, ALONE] = np.bincount(together)[together] == 1
    if kind:
        together = _together(own, kind, records.sizes)
        groups[:, UNLIKE] = together != np.bincount(together).argmax()
    order = np.argsort(codes, kind="stable")
    return AreaTruth(codes[order], groups[order])


def _together(codes: Mapping[str, NDArray[np.int16]], names: Sequence[str], sizes: Mapping[str, int]) -> NDArray[np.int64]:
    """Return a number for every person of an area that those share who have the same values."""
    found = np.zeros(len(codes[names[0]]), dtype=np.int64)
    for name in names:
        found = found * sizes[name] + codes[name]
    return np.unique(found, return_inverse=True)[1].ravel()
