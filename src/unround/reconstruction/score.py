"""How much of the truth a set of worlds holds: records ranked by confidence, and compared with the true ones.

A record and its number of copies make a key: "the second man of 41, married …". The confidence in a key is the share of
worlds that hold it. As many keys as there are people, the most confident ones, are the best guess: no other list of as many
records agrees with more records on average over the worlds.

People who are alone with what everybody sees of them, their age and sex, are asked for one by one, because a list would not
treat guesses alike: where one person lives whom the law expects two, a guess that does not know so has two chances to find
that person, and one that knows it has one. Whoever knows age and sex guesses the rest: the record that most persons
of that age and sex have in the worlds.

The share of worlds overstates the most confident keys: they were chosen by chance as well. How often the worlds of one seed
hold what those of the others hold so often tells by how much, without the truth; `tally` makes the confidence of it.

What a question comes to, area by area, and what follows for all of them: agreement with its error, and confidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.jit import inner, kernel
from unround.small_files import plain_arrays

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

BINS = 50  # bands of confidence, each of two per cent; the last holds certainty as well

EVERYONE, ALONE, UNLIKE = range(3)
GROUPS = ("everyone", "alone", "unlike")
"""All people; those who are alone in their area with their age and sex; those unlike the area's most common kind."""


def _mixed(keys: Ints) -> Ints:
    """Return numbers that look random, to put keys of the same confidence into an order that favours none."""
    z = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return ((z ^ (z >> np.uint64(32))) >> np.uint64(1)).astype(np.int64)


def ranked(worlds: Ints, each: int, most: int) -> tuple[Ints, Ints]:
    """Return all keys of some worlds in ascending order, and in how many worlds of every seed each is (seeds × keys).

    `worlds` are those of all seeds one after the other, `each` of every seed; the records of a world ascend.
    """
    of_seed = np.repeat(np.arange(len(worlds)) // each, worlds.shape[1])
    return _by_seed(_keys(worlds, most).ravel(), of_seed, len(worlds) // each)


def _by_seed(held: Ints, of_seed: Ints, seeds: int) -> tuple[Ints, Ints]:
    """Return the different ones among some numbers, in ascending order, and how often each seed has them."""
    different, place = np.unique(held, return_inverse=True)
    counts = np.bincount(of_seed * len(different) + place.ravel(), minlength=seeds * len(different))
    return different, counts.reshape(seeds, len(different))


def _keys(worlds: Ints, most: int) -> Ints:
    """Return the keys of worlds: a record times `most`, plus how many of it came before in its world."""
    place = np.arange(worlds.shape[1])
    new = np.concatenate([np.ones((len(worlds), 1), dtype=bool), worlds[:, 1:] != worlds[:, :-1]], axis=1)
    return worlds * most + place - np.maximum.accumulate(np.where(new[:, : len(place)], place, 0), axis=1)


def best(keys: Ints, counts: Ints, people: int) -> Bools:
    """Choose as many keys as there are people, those in most worlds."""
    chosen = np.zeros(len(keys), dtype=bool)
    chosen[np.lexsort((_mixed(keys), -counts))[:people]] = True
    return chosen & (counts > 0)


@kernel
def near(codes: Ints, guess: Ints, radix: int, ages: int) -> Bools:
    """Return which true records can be paired with guessed ones that differ by at most a year of age, in most pairs.

    `codes` and `guess` are records; a year of age adds `radix` to a record, and there are `ages` of them.
    """
    paired = np.zeros(codes.shape[0], np.bool_)
    true_rest, true_order = _by_rest(codes, radix, ages)
    other_rest, _ = _by_rest(guess, radix, ages)
    at = 0
    for i in range(codes.shape[0]):
        # Within a rest, ages ascend: a guess too young for this person is too young for all that follow.
        while at < other_rest.shape[0] and other_rest[at] < true_rest[i] - 1:
            at += 1
        if at < other_rest.shape[0] and other_rest[at] <= true_rest[i] + 1:
            paired[true_order[i]] = True
            at += 1
    return paired


@inner
def _rest(code: int, radix: int, ages: int) -> int:
    """Return a number by which records sort by everything but age, and then by age, with room between the rests."""
    age = (code // radix) % ages
    rest = (code // (radix * ages)) * radix + code % radix
    return rest * (ages + 4) + age + 2


@kernel
def _by_rest(codes: Ints, radix: int, ages: int) -> tuple[Ints, Ints]:
    rests = np.empty(codes.shape[0], np.int64)
    for i in range(codes.shape[0]):
        rests[i] = _rest(codes[i], radix, ages)
    order = np.argsort(rests)
    return rests[order], order


# -- people who are alone ---------------------------------------------------------------------------------------------


def _seen(codes: Ints, radix: Ints, sizes: Ints) -> Ints:
    """Return numbers for what everybody sees of some persons."""
    looks = np.zeros(codes.shape, dtype=np.int64)
    for each, size in zip(radix, sizes, strict=True):
        looks = looks * size + (codes // each) % size
    return looks


def found_alone(worlds: Ints, each: int, alone: Ints, radix: Ints, sizes: Ints) -> Ints:
    """Count people who are alone and whose record is the most common one among persons of the worlds who look like them.

    Returns that for all seeds, then without each of them. `alone` are the records of these people, `radix` and `sizes`
    belong to the attributes that everybody sees. A person whom nobody in any world looks like is not found.
    """
    seeds = len(worlds) // each
    target = np.full(int(np.prod(sizes)), -1, dtype=np.int64)
    target[_seen(alone, radix, sizes)] = np.arange(len(alone))
    world, person = np.nonzero(target[_seen(worlds, radix, sizes)] >= 0)
    codes, counts = _by_seed(worlds[world, person], world // each, seeds)
    who, mixed, held = target[_seen(codes, radix, sizes)], _mixed(codes), counts.sum(axis=0)
    right = []
    for times in [held, *(held - of_seed for of_seed in counts)] if seeds > 1 else [held]:
        order = np.lexsort((mixed, times, who))
        last = order[np.append(who[order][1:] != who[order][:-1], True)] if len(order) else order  # the guess at each person
        right.append(int((codes[last] == alone[who[last]])[times[last] > 0].sum()))
    return np.array(right)


# -- all together -----------------------------------------------------------------------------------------------------


class Seen(NamedTuple):
    """What everybody sees of a person, age and sex: what a value adds to a record, and how many values there are."""

    radix: Ints
    sizes: Ints


@dataclass(frozen=True, slots=True, eq=False)
class AreaTruth:
    """The true records of an area, ascending, and the groups that each belongs to (records × groups)."""

    codes: Ints
    groups: Bools


@dataclass(frozen=True, slots=True, eq=False)
class AreaScore:
    """What one guess of an area comes to."""

    tally: GuessTally
    guess: Ints  # the records of the best guess
    shares: Floats  # the share of worlds that hold each of them


def score(worlds: Ints, outside: float, each: int, truth: AreaTruth, radix: int, ages: int, seen: Seen) -> AreaScore:
    """Hold the worlds of an area against the truth; `outside` is how far their counts are outside of windows."""
    people, seeds = worlds.shape[1], len(worlds) // each
    most = max(people, len(truth.codes)) + 1
    keys, counts = ranked(np.ascontiguousarray(worlds), each, most)
    true = _keys(truth.codes[None], most)[0]
    right = np.isin(keys, true, assume_unique=True)
    held = counts.sum(axis=0)
    sets = [held, *(held - of_seed for of_seed in counts)] if seeds > 1 else [held]
    exact, close = np.zeros((len(sets), len(GROUPS)), np.int64), np.zeros((len(sets), len(GROUPS)), np.int64)
    for number, among in enumerate(sets):
        chosen = best(keys, among, people)
        hit = np.isin(true, keys[chosen], assume_unique=True)
        exact[number] = (truth.groups & hit[:, None]).sum(axis=0)
        if ages:
            close[number] = (truth.groups & near(truth.codes, keys[chosen] // most, radix, ages)[:, None]).sum(axis=0)
        if number == 0:
            guess, shares = keys[chosen] // most, held[chosen] / len(worlds)
    exact[:, ALONE] = found_alone(worlds, each, truth.codes[truth.groups[:, ALONE]], *seen)
    close[:, ALONE] = 0  # their age is known
    tally = GuessTally(
        exact[None],
        close[None],
        truth.groups.sum(axis=0)[None],
        np.array([held[right].sum() / len(worlds)]),
        np.array([outside]),
        _by_band(np.bincount(held, minlength=len(worlds) + 1)),
        _by_band(np.bincount(held[right], minlength=len(worlds) + 1)),
        *_held_again(worlds, each, counts, most),
    )
    return AreaScore(tally, guess, shares)


def bands_of(shares: Floats) -> Ints:
    """Return the bands of some shares of worlds."""
    return np.minimum((shares * BINS + 1e-9).astype(np.int64), BINS - 1)


def _by_band(times: NDArray[Any]) -> NDArray[Any]:
    """Return by band of shares what is given by the number of worlds, from none to all."""
    worlds = len(times) - 1
    return np.bincount(bands_of(np.arange(worlds + 1) / worlds), times, minlength=BINS).astype(times.dtype)


def _held_again(worlds: Ints, each: int, counts: Ints, most: int) -> tuple[Ints, Floats]:
    """Count keys by the share of worlds that hold them, all seeds but one, and add up their shares of that seed's worlds.

    A single seed is taken apart: its first worlds and its last ones.
    """
    if len(counts) == 1:
        each //= 2
        counts = ranked(np.ascontiguousarray(worlds[: 2 * each]), each, most)[1]
    tried, again, rest = np.zeros(BINS, np.int64), np.zeros(BINS), each * (len(counts) - 1)
    for of_seed in counts:
        others = counts.sum(axis=0) - of_seed
        held = others > 0
        tried += _by_band(np.bincount(others[held], minlength=rest + 1))
        again += _by_band(np.bincount(others[held], of_seed[held] / each, minlength=rest + 1))
    return tried, again


THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.96)  # confidences from which records are counted as claimed
BANDS = (0.0, 0.2, 0.4, 0.6, 0.8)  # where bands of confidence for calibration begin
LEAN = 5  # so many keys weigh what was seen of a band as much as what is known of the band below


@dataclass(frozen=True, slots=True, eq=False)
class GuessTally:
    """Scores of some areas."""

    exact: Ints  # records found, exactly or but for a year of age: areas × (all seeds, then without each) × groups
    near: Ints
    people: Ints  # how many true records there are: areas × groups
    drawn: Floats  # records that one world finds, and how far its counts are outside of their windows: areas
    outside: Floats
    claims: Ints  # keys by the share of worlds that hold them, in bands, over all areas, and those that are true
    right: Ints
    tried: Ints  # keys that the worlds of all seeds but one hold, by their share
    again: Floats  # and the sum of the shares of that seed's worlds that hold them

    @classmethod
    def joined(cls, parts: Sequence[GuessTally]) -> GuessTally:
        """Put the tallies of different areas together."""
        rows = {name: np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__[:5]}
        sums = {name: np.sum([getattr(part, name) for part in parts], axis=0) for name in cls.__slots__[5:]}
        return cls(**rows, **sums)

    def save(self, path: Path) -> None:
        """Write it."""
        np.savez(path, **{name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def load(cls, path: Path) -> GuessTally:
        """Read what `save` wrote."""
        with plain_arrays(path) as kept:
            return cls(**{name: kept[name] for name in cls.__slots__})

    def confidence(self) -> Floats:
        """Return the confidence in keys, by the share of worlds that hold them, in bands.

        It is the share of another seed's worlds that hold a key which the worlds of the other seeds hold so often: no truth
        is needed for it. A band of few keys leans on the one below, and no confidence is above the band itself.
        """
        levels, weights = [], []
        known = None
        for band in range(BINS):
            if self.tried[band]:
                lean = 0 if known is None else LEAN
                share = (self.again[band] + lean * (known or 0.0)) / (self.tried[band] + lean)
                known = min(float(share), (band + 1) / BINS)
            levels.append(known if known is not None else (band + 0.5) / BINS)
            weights.append(float(self.tried[band]) or 1e-9)
        return _rising(levels, weights)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        whole = int(self.people[:, EVERYONE].sum())
        sure, groups = self.confidence(), list(enumerate(GROUPS))
        return {
            "agreement": {name: share_of(self.exact[:, :, at], self.people[:, at]) for at, name in groups},
            "within_one_year": {
                name: share_of(self.near[:, :, at], self.people[:, at]) for at, name in groups if at != ALONE
            },
            "one_world": float(self.drawn.sum() / max(1, whole)),
            "steps_outside": float(self.outside.mean()),
            "confidence": [self._claimed(sure >= threshold, threshold, whole) for threshold in THRESHOLDS],
            "calibration": [band for low in BANDS if (band := self._band(sure, low)) is not None],
        }

    def _claimed(self, sure_enough: Bools, threshold: float, whole: int) -> dict[str, Any]:
        claims, right = int(self.claims[sure_enough].sum()), int(self.right[sure_enough].sum())
        return {
            "at_least": threshold,
            "claims": claims,
            "precision": right / claims if claims else None,
            "recall": right / max(1, whole),
        }

    def _band(self, sure: Floats, low: float) -> dict[str, Any] | None:
        inside = (sure >= low) & ((sure < low + 0.2) | (low == BANDS[-1]))
        claims = int(self.claims[inside].sum())
        if not claims:
            return None
        return {
            "from": low,
            "to": round(low + 0.2, 1),
            "claims": claims,
            "stated": float((self.claims * sure)[inside].sum() / claims),
            "right": float(self.right[inside].sum() / claims),
        }


def _rising(levels: Sequence[float], weights: Sequence[float]) -> Floats:
    """Return the closest numbers that never fall: neighbours that do are averaged."""
    kept: list[tuple[float, float, int]] = []
    for value, weight in zip(levels, weights, strict=True):
        level, mass, length = value, weight, 1
        while kept and kept[-1][0] > level:
            before, much, many = kept.pop()
            level, mass, length = (before * much + level * mass) / (much + mass), much + mass, many + length
        kept.append((level, mass, length))
    return np.repeat([level for level, _, _ in kept], [length for _, _, length in kept])


def ratio(hits: Ints, people: Ints) -> tuple[float | None, float | None]:
    """Return hits to people over all areas, and its standard error over areas and seeds."""
    whole = people.sum()
    if not whole:
        return None, None
    share = hits[:, 0].sum() / whole
    variance, areas, seeds = 0.0, len(people), hits.shape[1] - 1
    if areas > 1:
        off = hits[:, 0] - share * people
        variance += float((off**2).sum()) * areas / (areas - 1) / float(whole) ** 2
    if seeds > 1:  # the jackknife: what leaving out one seed changes
        without = hits[:, 1:].sum(axis=0) / whole
        variance += (seeds - 1) / seeds * float(((without - without.mean()) ** 2).sum())
    return float(share), variance**0.5 if areas > 1 or seeds > 1 else None


def gain(more: GuessTally, less: GuessTally) -> dict[str, Any]:
    """Return how much more one guess finds than another, in the same areas, with the error of the difference."""
    return {name: share_of((more.exact - less.exact)[:, :, at], more.people[:, at]) for at, name in enumerate(GROUPS)}


def share_of(hits: Ints, people: Ints) -> dict[str, Any] | None:
    """Return the share of people that was found, and its standard error; None where there is nobody."""
    share, error = ratio(hits, people)
    return None if share is None else {"share": share, "standard_error": error}
