"""How much of the truth a set of worlds holds: records ranked by confidence, and held against the true ones.

A record and its number of copies make a key: "the second man of 41, married …". The confidence in a key is the share of
worlds that hold it. As many keys as there are people, the most confident ones, are the best guess: no other list of as many
records agrees with more records on average over the worlds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.jit import inner, kernel

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

BINS = 50
"""Bands of confidence, each of two per cent; the last holds certainty as well."""

EVERYONE, ALONE, UNLIKE = range(3)
GROUPS = ("everyone", "alone", "unlike")
"""All people; those who are alone in their area with their age and sex; those unlike the area's most common kind."""


@inner
def _mixed(key: int) -> Any:
    """Return a number that looks random, to put keys of the same confidence into an order that favours none."""
    z = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64((z ^ (z >> np.uint64(32))) >> np.uint64(1))


@kernel
def keys_of(codes: Ints, most: int) -> Ints:
    """Return the keys of records in ascending order: the record times `most`, plus how many of it came before."""
    found = np.empty(codes.shape[0], np.int64)
    copies = 0
    for i in range(codes.shape[0]):
        copies = copies + 1 if i > 0 and codes[i] == codes[i - 1] else 0
        found[i] = codes[i] * most + copies
    return found


@kernel
def ranked(worlds: Ints, each: int, most: int) -> tuple[Ints, Ints]:
    """Return all keys of some worlds in ascending order, and in how many worlds of every seed each is (keys × seeds).

    `worlds` are those of all seeds one after the other, `each` of every seed; the records of a world ascend.
    """
    number, people = worlds.shape
    seeds = number // each
    held = np.empty(number * people, np.int64)
    for w in range(number):
        copies = 0
        for i in range(people):
            copies = copies + 1 if i > 0 and worlds[w, i] == worlds[w, i - 1] else 0
            held[w * people + i] = (worlds[w, i] * most + copies) * seeds + w // each
    held.sort()
    different = 0
    for at in range(held.shape[0]):
        if at == 0 or held[at] // seeds != held[at - 1] // seeds:
            different += 1
    keys = np.empty(different, np.int64)
    counts = np.zeros((different, seeds), np.int64)
    at_key = -1
    for at in range(held.shape[0]):
        if at == 0 or held[at] // seeds != held[at - 1] // seeds:
            at_key += 1
            keys[at_key] = held[at] // seeds
        counts[at_key, held[at] % seeds] += 1
    return keys, counts


@kernel
def best(keys: Ints, counts: Ints, people: int, worlds: int) -> Bools:
    """Choose as many keys as there are people, those in most worlds."""
    level = np.zeros(worlds + 1, np.int64)
    for at in range(keys.shape[0]):
        level[counts[at]] += 1
    least, above = worlds, 0
    while least > 0 and above + level[least] < people:
        above += level[least]
        least -= 1
    ties = np.empty(level[least], np.int64)
    order = np.empty(level[least], np.int64)
    tied = 0
    chosen = np.zeros(keys.shape[0], np.bool_)
    for at in range(keys.shape[0]):
        if counts[at] > least:
            chosen[at] = True
        elif counts[at] == least and least > 0:
            ties[tied], order[tied] = at, _mixed(keys[at])
            tied += 1
    picked = np.argsort(order[:tied])
    for at in range(min(tied, people - above)):
        chosen[ties[picked[at]]] = True
    return chosen


@kernel
def found_in(keys: Ints, others: Ints) -> Bools:
    """Say which keys are among others; both ascend."""
    found = np.zeros(keys.shape[0], np.bool_)
    at = 0
    for i in range(keys.shape[0]):
        while at < others.shape[0] and others[at] < keys[i]:
            at += 1
        found[i] = at < others.shape[0] and others[at] == keys[i]
    return found


@kernel
def near(codes: Ints, guess: Ints, radix: int, ages: int) -> Bools:
    """Say which true records can be paired with guessed ones that differ by at most a year of age, in most pairs.

    `codes` and `guess` are records; a year of age adds `radix` to a record, and there are `ages` of them.
    """
    found = np.zeros(codes.shape[0], np.bool_)
    true_rest, true_order = _by_rest(codes, radix, ages)
    other_rest, _ = _by_rest(guess, radix, ages)
    at = 0
    for i in range(codes.shape[0]):
        # Within a rest, ages ascend: a guess too young for this person is too young for all that follow.
        while at < other_rest.shape[0] and other_rest[at] < true_rest[i] - 1:
            at += 1
        if at < other_rest.shape[0] and other_rest[at] <= true_rest[i] + 1:
            found[true_order[i]] = True
            at += 1
    return found


@inner
def _rest(code: int, radix: int, ages: int) -> int:
    """Return a number by which records sort by everything but age, and then by age, with room between the rests."""
    age = (code // radix) % ages
    rest = (code // (radix * ages)) * radix + code % radix
    return rest * (ages + 4) + age + 2


@kernel
def _by_rest(codes: Ints, radix: int, ages: int) -> tuple[Ints, Ints]:
    found = np.empty(codes.shape[0], np.int64)
    for i in range(codes.shape[0]):
        found[i] = _rest(codes[i], radix, ages)
    order = np.argsort(found)
    return found[order], order


@dataclass(frozen=True, slots=True, eq=False)
class AreaTruth:
    """The true records of an area, ascending, and the groups that each belongs to (records × groups)."""

    codes: Ints
    groups: Bools


@dataclass(frozen=True, slots=True, eq=False)
class AreaScore:
    """What one guess of an area comes to.

    Parameters
    ----------
    exact, near : array
        True records found exactly, or but for a year of age: (all seeds, then without each seed) × groups.
    drawn : float
        True records that a single world finds exactly, on average over the worlds.
    claims, right, stated : array
        Keys by band of confidence, those among them that are true, and the sum of their confidences.
    guess : array
        The records of the best guess.
    confidence : array
        How sure each of them is.
    """

    exact: Ints
    near: Ints
    drawn: float
    claims: Ints
    right: Ints
    stated: NDArray[np.float64]
    guess: Ints
    confidence: NDArray[np.float64]


def score(worlds: Ints, each: int, truth: AreaTruth, radix: int, ages: int) -> AreaScore:
    """Hold the worlds of an area against the truth.

    Parameters
    ----------
    worlds : array
        The worlds of all seeds, as codes of records.
    each : int
        How many there are of every seed.
    truth : AreaTruth
        What is true.
    radix, ages : int
        What a year of age adds to a record, and how many ages there are; 0 ages if records have none.
    """
    people, seeds = worlds.shape[1], len(worlds) // each
    most = max(people, len(truth.codes)) + 1
    keys, counts = ranked(np.ascontiguousarray(worlds), each, most)
    true = keys_of(truth.codes, most)
    right = found_in(keys, true)
    sets = [np.arange(seeds)] + [np.delete(np.arange(seeds), seed) for seed in range(seeds) if seeds > 1]
    exact, close = np.zeros((len(sets), len(GROUPS)), np.int64), np.zeros((len(sets), len(GROUPS)), np.int64)
    for number, used in enumerate(sets):
        chosen = best(keys, counts[:, used].sum(axis=1), people, each * len(used))
        hit = found_in(true, keys[chosen])
        exact[number] = (truth.groups & hit[:, None]).sum(axis=0)
        if ages:
            close[number] = (truth.groups & near(truth.codes, keys[chosen] // most, radix, ages)[:, None]).sum(axis=0)
        if number == 0:
            guess, sure = keys[chosen] // most, counts[chosen].sum(axis=1) / len(worlds)
    stated = counts.sum(axis=1) / len(worlds)
    band = np.minimum((stated * BINS + 1e-9).astype(np.int64), BINS - 1)
    return AreaScore(
        exact,
        close,
        float(counts[right].sum()) / len(worlds),
        np.bincount(band, minlength=BINS),
        np.bincount(band[right], minlength=BINS),
        np.bincount(band, stated, minlength=BINS).astype(np.float64),
        guess,
        sure,
    )
