"""The chain over worlds: every person of an area has a record, and moves change records, so that all tables fit.

A world is a list of persons, each with a value of every attribute. Its weight is the law's probability of every record times
the likelihood of every published count. Two moves: one person gets a new value of one attribute, drawn from the law given
what the attribute depends on; two persons exchange some attributes. Both are accepted as Metropolis and Hastings have it.

Windows are soft: a count outside of its window costs β for every step. A run goes through cycles in which β rises from a low
value, where the chain moves freely, to a high one, where nearly every count is in its window; at the end of every cycle the
world is kept. So kept worlds are nearly independent, which a chain at one β would not be where tables are exact.

Where a chain begins: people drawn from the law and raked to the published counts.

More people than live in the area are drawn from the law, and weighted so that they add up to the published counts, column by
column, again and again (iterative proportional fitting). Then as many as live there are drawn by these weights. A chain that
began with the law alone would spend most of its time on the way to an area unlike others, one with a residence of students.

The four guesses at the people of an area, all by the same means from more and more of what is published.

- *national*: records drawn from the national law, as many as people live there; no table of the area is used.
- *totals*: the same, given the area's own totals: the columns about one attribute alone.
- *tables*: the same, given all published columns. This is the reconstruction.
- *unrounded*: the same, given the true counts of these columns.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.jit import inlined, kernel, random_bits, uniform
from unround.reconstruction.records import (
    MOST_RECORDS,
    Floats,
    Int16s,
    Int32s,
    Int64s,
    Law,
    PersonRecords,
    Schedule,
    State,
    Tables,
    Words,
    fit,
    flat,
)
from unround.reconstruction.score import Seen

I16, I32, I64, U64, F32, F64 = np.int16, np.int32, np.int64, np.uint64, np.float32, np.float64


RENEW, EXCHANGE = 0.4, 0.97
"""Shares of moves: up to the first a new value, up to the second an exchange of one attribute, and of several otherwise."""

ALIKE, TRIES = 0.6, 16
"""How often the other person of an exchange is looked for among those who are alike, and among how many."""


MANY, REACH = 25, 5  # an attribute of more values than the first also moves by up to the second


HOPELESS = -20.0
"""A move that has lost this much by some of the tables is not looked at further: what others could gain is far less."""


@inlined
def _below(chance: Words, number: int) -> Any:
    return I64(uniform(chance) * number)


@inlined
def _log(state: State, column: int, count: int) -> Any:
    """Return the log likelihood of a true count, and by how many steps it is outside of the window."""
    at = count - state.rows[column, 0]
    size = state.rows[column, 1]
    inside = min(max(at, 0), size - 1)
    return state.log[state.rows[column, 2] + inside], F64(abs(at - inside))


@inlined
def _gain(state: State, column: int, by: int, beta: float) -> Any:
    """Return the change of the log likelihood if the count of a column changes by so many; a step outside costs β."""
    if abs(by) == 1:
        at = 1 - by
        return F64(state.gains[column, at]) - beta * F64(state.gains[column, at + 1])
    if state.rows[column, 1] == 0:
        return 0.0
    now, out_now = _log(state, column, state.counts[column])
    new, out_new = _log(state, column, state.counts[column] + by)
    return new - now - beta * (out_new - out_now)


@inlined
def _count(state: State, tables: Tables, atom: int, by: int) -> None:
    """Add persons to all columns of an atom."""
    for at in range(tables.starts[atom], tables.starts[atom + 1]):
        column = tables.held[at]
        state.counts[column] += by
        if state.rows[column, 1] > 0:
            count = state.counts[column]
            now, out_now = _log(state, column, count)
            more, out_more = _log(state, column, count + 1)
            less, out_less = _log(state, column, count - 1)
            state.gains[column, 0], state.gains[column, 1] = more - now, out_more - out_now
            state.gains[column, 2], state.gains[column, 3] = less - now, out_less - out_now


@inlined
def _moved(state: State, tables: Tables, old: int, new: int, beta: float) -> Any:
    """Return the change of the log likelihood if one person goes from one atom of a margin to another."""
    a, last_a = tables.starts[old], tables.starts[old + 1]
    b, last_b = tables.starts[new], tables.starts[new + 1]
    if last_a - a == 1 and last_b - b == 1:  # most atoms are in one column
        left, right = tables.held[a], tables.held[b]
        return 0.0 if left == right else _gain(state, left, -1, beta) + _gain(state, right, 1, beta)
    change = 0.0
    while a < last_a or b < last_b:
        left = tables.held[a] if a < last_a else tables.columns
        right = tables.held[b] if b < last_b else tables.columns
        if left < right:
            change += _gain(state, left, -1, beta)
        elif right < left:
            change += _gain(state, right, 1, beta)
        a += left <= right
        b += right <= left
    return change


@inlined
def _moved_both(state: State, tables: Tables, first: int, second: int, by: int, beta: float) -> Any:
    """Return the change of the log likelihood if one person goes `by` atoms up and another as many down."""
    change = 0.0
    a, last_a = tables.starts[first], tables.starts[first + 1]
    b, last_b = tables.starts[second], tables.starts[second + 1]
    c, last_c = tables.starts[first + by], tables.starts[first + by + 1]
    d, last_d = tables.starts[second - by], tables.starts[second - by + 1]
    if last_a - a == 1 and last_b - b == 1 and last_c - c == 1 and last_d - d == 1:
        in_a, in_b, in_c, in_d = tables.held[a], tables.held[b], tables.held[c], tables.held[d]
        if in_a != in_b and in_a != in_c and in_b != in_d and in_c != in_d and in_a != in_d and in_b != in_c:
            change = _gain(state, in_a, -1, beta) + _gain(state, in_b, -1, beta)
            return change + _gain(state, in_c, 1, beta) + _gain(state, in_d, 1, beta)
    while a < last_a or b < last_b or c < last_c or d < last_d:
        in_a = tables.held[a] if a < last_a else tables.columns
        in_b = tables.held[b] if b < last_b else tables.columns
        in_c = tables.held[c] if c < last_c else tables.columns
        in_d = tables.held[d] if d < last_d else tables.columns
        column = min(min(in_a, in_b), min(in_c, in_d))
        net = int(in_c == column) + int(in_d == column) - int(in_a == column) - int(in_b == column)
        a += in_a == column
        b += in_b == column
        c += in_c == column
        d += in_d == column
        if net != 0:
            change += _gain(state, column, net, beta)
    return change


@inlined
def value_of(law: Law, start: int, k: int, chance: Words) -> Any:
    """Draw a value of attribute k, whose probabilities begin at `start`."""
    low, high = I64(0), law.sizes[k] - 1
    wanted = uniform(chance) * law.sums[start + high]
    while low < high:
        middle = (low + high) >> 1
        if law.sums[start + middle] > wanted:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def _draw(state: State, i: int, k: int, law: Law, chance: Words) -> Any:
    """Draw a value of attribute k of person i from the law, given what it depends on."""
    return value_of(law, state.places[i, law.factor[k]] - state.values[i, k], k, chance)


@inlined
def _set(state: State, i: int, k: int, new: int, law: Law, tables: Tables) -> None:
    """Give person i another value of attribute k."""
    old = state.values[i, k]
    for at in range(law.first[k], law.first[k + 1]):
        f = law.of[at]
        state.places[i, f] += law.step[k, new, f] - law.step[k, old, f]
    for at in range(tables.first[k], tables.first[k + 1]):
        m = tables.of[at]
        by = tables.step[k, new, m] - tables.step[k, old, m]
        if by != 0:
            _count(state, tables, state.atoms[i, m], -1)
            _count(state, tables, state.atoms[i, m] + by, 1)
            state.atoms[i, m] += by
    state.values[i, k] = new


@inlined
def _renew(state: State, law: Law, tables: Tables, beta: float, chance: Words) -> None:
    """Try a new value of one attribute of one person."""
    people, width = state.values.shape
    i, k = _below(chance, people), _below(chance, width)
    old = I64(state.values[i, k])
    # Of many values, such as ages, every other move goes to a neighbour, as likely as back again.
    near = law.sizes[k] > MANY and uniform(chance) < 0.5
    if near:
        new = old + _below(chance, 2 * REACH + 1) - REACH
        if new < 0 or new >= law.sizes[k]:
            return
    else:
        new = _draw(state, i, k, law, chance)
    if new == old:
        return
    change = 0.0
    for at in range(law.first[k], law.first[k + 1]):
        f = law.of[at]
        # What is drawn from the law itself needs no weight for that.
        if near or law.child[f] != k:
            place = state.places[i, f]
            change += law.log[place + law.step[k, new, f] - law.step[k, old, f]] - law.log[place]
    for at in range(tables.first[k], tables.first[k + 1]):
        m = tables.of[at]
        by = tables.step[k, new, m] - tables.step[k, old, m]
        if change < HOPELESS:
            return
        if by != 0:
            change += _moved(state, tables, state.atoms[i, m], state.atoms[i, m] + by, beta)
    if change >= 0 or uniform(chance) < np.exp(change):
        _set(state, i, k, new, law, tables)


@inlined
def _alike(state: State, i: int, k: int, tables: Tables, chance: Words) -> Any:
    """Return another person at random, if possible one who differs from person i in nothing of a margin but attribute k.

    The margin is drawn from those of attribute k. Who is alike stays so when the two exchange that attribute, so that the
    move is as likely as its reverse.
    """
    people = state.values.shape[0]
    if tables.first[k] == tables.first[k + 1]:
        return _below(chance, people)
    m = tables.of[tables.first[k] + _below(chance, tables.first[k + 1] - tables.first[k])]
    rest = state.atoms[i, m] - tables.step[k, state.values[i, k], m]
    for _ in range(TRIES):
        j = _below(chance, people)
        if state.atoms[j, m] - tables.step[k, state.values[j, k], m] == rest and state.values[j, k] != state.values[i, k]:
            return j
    return i


@inlined
def _exchange_one(state: State, law: Law, tables: Tables, beta: float, chance: Words) -> None:
    """Try to exchange one attribute of two persons who are alike in one of the tables that it is in, or of any two."""
    people, width = state.values.shape
    i, k = _below(chance, people), _below(chance, width)
    j = _alike(state, i, k, tables, chance) if uniform(chance) < ALIKE else _below(chance, people)
    first, second = state.values[i, k], state.values[j, k]
    if first == second:
        return
    change = 0.0
    for at in range(law.first[k], law.first[k + 1]):
        f = law.of[at]
        by = law.step[k, second, f] - law.step[k, first, f]
        here, there = state.places[i, f], state.places[j, f]
        if here + by != there:
            change += law.log[here + by] + law.log[there - by] - law.log[here] - law.log[there]
    for at in range(tables.first[k], tables.first[k + 1]):
        m = tables.of[at]
        by = tables.step[k, second, m] - tables.step[k, first, m]
        if change < HOPELESS:
            return
        if by != 0 and state.atoms[i, m] + by != state.atoms[j, m]:
            change += _moved_both(state, tables, state.atoms[i, m], state.atoms[j, m], by, beta)
    if change >= 0 or uniform(chance) < np.exp(change):
        _set(state, i, k, second, law, tables)
        _set(state, j, k, first, law, tables)


@inlined
def _exchange_some(state: State, law: Law, tables: Tables, beta: float, chance: Words, shifts: Int32s) -> None:
    """Try to exchange each attribute of two persons with probability one half."""
    people, width = state.values.shape
    i, j = _below(chance, people), _below(chance, people)
    chosen = I64(random_bits(chance) & U64((1 << width) - 1))
    shifts[:] = 0
    for k in range(width):
        if (chosen >> k) & 1 and state.values[i, k] != state.values[j, k]:
            first, second = state.values[i, k], state.values[j, k]
            for at in range(law.first[k], law.first[k + 1]):
                f = law.of[at]
                shifts[f] += law.step[k, second, f] - law.step[k, first, f]
            for at in range(tables.first[k], tables.first[k + 1]):
                m = tables.of[at]
                shifts[width + m] += tables.step[k, second, m] - tables.step[k, first, m]
    change = 0.0
    for f in range(width):
        here, there, by = state.places[i, f], state.places[j, f], shifts[f]
        if by != 0 and here + by != there:
            change += law.log[here + by] + law.log[there - by] - law.log[here] - law.log[there]
    for m in range(tables.base.shape[0]):
        by = shifts[width + m]
        if change < HOPELESS:
            return
        if by != 0 and state.atoms[i, m] + by != state.atoms[j, m]:
            change += _moved_both(state, tables, state.atoms[i, m], state.atoms[j, m], by, beta)
    if change >= 0 or uniform(chance) < np.exp(change):
        for k in range(width):
            if (chosen >> k) & 1 and state.values[i, k] != state.values[j, k]:
                first, second = state.values[i, k], state.values[j, k]
                _set(state, i, k, second, law, tables)
                _set(state, j, k, first, law, tables)


@inlined
def _outside(state: State) -> int:
    """Return by how many steps all counts together are outside of their windows."""
    steps = 0
    for column in range(state.counts.shape[0]):
        if state.rows[column, 1] > 0:
            at = state.counts[column] - state.rows[column, 0]
            steps += max(0, -at) + max(0, at - state.rows[column, 1] + 1)
    return steps


@kernel
def run(
    start: Int16s,
    law: Law,
    tables: Tables,
    known: Int32s,
    log: Floats,
    schedule: Schedule,
    radix: Int64s,
    seed: int,
) -> tuple[Int64s, Int64s]:
    """Return the kept worlds of one area, as codes of records (worlds × people, each sorted), and how badly each fits."""
    people, width, margins = start.shape[0], law.sizes.shape[0], tables.base.shape[0]
    chance = np.empty(1, U64)
    chance[0] = U64(seed)
    state = State(
        np.zeros((people, width), I16),
        np.zeros((people, width), I32),
        np.zeros((people, margins), I32),
        np.zeros(tables.columns, I32),
        known,
        log,
        np.zeros((tables.columns, 4), F32),
    )
    shifts = np.zeros(width + margins, I32)
    kept = np.empty((schedule.worlds, people), I64)
    outside = np.zeros(schedule.worlds, I64)
    for i in range(people):
        for f in range(width):
            state.places[i, f] = law.base[f]  # all values are 0, and so are their steps
        for m in range(margins):
            state.atoms[i, m] = tables.base[m]
            for k in range(width):
                state.atoms[i, m] += tables.step[k, 0, m]
            _count(state, tables, state.atoms[i, m], 1)
        for k in range(width):
            _set(state, i, k, start[i, k], law, tables)
    for w in range(schedule.worlds):
        sweeps = schedule.first if w == 0 else schedule.between
        for sweep in range(sweeps):
            # The last third of a cycle stays at the highest β.
            share = min(1.0, 1.5 * (sweep + 1) / sweeps)
            beta = schedule.low * (schedule.high / schedule.low) ** share
            for _ in range(people):
                kind = uniform(chance)
                if kind < RENEW:
                    _renew(state, law, tables, beta, chance)
                elif kind < EXCHANGE:
                    _exchange_one(state, law, tables, beta, chance)
                else:
                    _exchange_some(state, law, tables, beta, chance, shifts)
        for i in range(people):
            code = I64(0)
            for k in range(width):
                code += state.values[i, k] * radix[k]
            kept[w, i] = code
        kept[w].sort()
        outside[w] = _outside(state)
    return kept, outside


@kernel
def drawn(people: int, law: Law, worlds: int, radix: Int64s, seed: int) -> Int64s:
    """Draw so many worlds from the law alone: worlds × people, as codes of records in ascending order."""
    width = law.sizes.shape[0]
    chance = np.empty(1, U64)
    chance[0] = U64(seed)
    values = np.zeros(width, I16)
    records = np.empty((worlds, people), I64)
    for w in range(worlds):
        for i in range(people):
            values[:] = 0
            code = I64(0)
            for f in range(width):
                k = law.child[f]
                start = law.base[f]
                for other in range(width):
                    start += law.step[other, values[other], f]
                values[k] = value_of(law, start, k, chance)
                code += values[k] * radix[k]
            records[w, i] = code
        records[w].sort()
    return records


TIMES, PASSES = 8, 12  # people drawn for each who lives there, and how often all columns are gone through
LEAST = 0.02  # A column in which nobody was drawn counts as this much, so that others are not multiplied beyond measure


@kernel
def raked_people(people: int, law: Law, tables: Tables, windows: Int32s, seed: int) -> Int16s:
    """Return the values of as many people as live in an area: people × attributes."""
    width, margins, many = law.sizes.shape[0], tables.base.shape[0], TIMES * people
    chance = np.empty(1, np.uint64)
    chance[0] = np.uint64(seed)
    values = np.zeros((many, width), np.int16)
    atoms = np.zeros((margins, many), np.int32)  # a margin's side by side: they are gone through again and again
    for i in range(many):
        for f in range(width):
            start = law.base[f]
            for other in range(width):
                start += law.step[other, values[i, other], f]
            values[i, law.child[f]] = value_of(law, start, law.child[f], chance)
        for m in range(margins):
            atoms[m, i] = tables.base[m]
            for k in range(width):
                atoms[m, i] += tables.step[k, values[i, k], m]
    weight = np.full(many, 1.0 / TIMES)
    known = np.zeros(tables.starts.shape[0] - 1)
    factor = np.zeros(tables.columns)
    for _ in range(PASSES):
        for m in range(margins):
            first = tables.base[m]
            last = tables.base[m + 1] if m + 1 < margins else tables.starts.shape[0] - 1
            known[first:last] = 0.0
            for i in range(many):
                known[atoms[m, i]] += weight[i]
            for a in range(first, last):
                for at in range(tables.starts[a], tables.starts[a + 1]):
                    factor[tables.held[at]] = 0.0
            for a in range(first, last):
                for at in range(tables.starts[a], tables.starts[a + 1]):
                    factor[tables.held[at]] += known[a]
            # What is known of an atom becomes the factor of its people: between those of all columns that it is in.
            for a in range(first, last):
                change, number = 0.0, 0
                for at in range(tables.starts[a], tables.starts[a + 1]):
                    column = tables.held[at]
                    low, size = windows[column, 0], windows[column, 1]
                    if size > 0:
                        wanted = min(max(factor[column], low), low + size - 1)
                        change += np.log(max(wanted, LEAST) / max(factor[column], LEAST))
                        number += 1
                known[a] = np.exp(change / number) if number else 1.0
            for i in range(many):
                weight[i] *= known[atoms[m, i]]
    return _chosen(values, weight, people, chance)


@kernel
def _chosen(values: Int16s, weight: Floats, people: int, chance: Words) -> Int16s:
    """Draw people by their weights, at equal distances along all of them."""
    picked = np.empty((people, values.shape[1]), np.int16)
    step = weight.sum() / people
    at, reached, wanted = 0, weight[0], uniform(chance) * step
    for i in range(people):
        while reached <= wanted and at + 1 < values.shape[0]:
            at += 1
            reached += weight[at]
        picked[i] = values[at]
        wanted += step
    return picked


NATIONAL, TOTALS, TABLES, UNROUNDED = GUESSES = ("national", "totals", "tables", "unrounded")

FOLDS = 5  # areas are dealt into so many parts; the law for an area comes from the people of the other parts
VISIBLE = ("age", "sex")  # what everybody sees of a person
SAMPLE = 200_000  # people from whom a law is learnt, as from a public sample of records
FIRST, BETWEEN = 40, 5  # moves per person before the first world, and between two worlds


def schedule(worlds: int, *, exact: bool) -> Schedule:
    """Return how long to look for so many worlds; between those that fit exact tables the way is longer."""
    longer = 2 if exact else 1
    return Schedule(longer * FIRST, longer * BETWEEN, worlds, 1.0, 6.0)


@dataclass(frozen=True, slots=True, eq=False)
class Country:
    """What is the same for all areas: attributes in their order, codes of records, and the laws."""

    names: tuple[str, ...]  # the attributes of a record
    radix: NDArray[np.int64]  # the code of a record is the sum of its values times these
    laws: list[Law]  # one for every part of the areas
    fold: NDArray[np.int64]  # the part that each area is in
    age: tuple[int, int]  # what a year of age adds to the code of a record, and how many ages there are
    seen: Seen  # age and sex, as far as records have them
    learnt: bool  # whether there are other areas to learn the law from; otherwise all records are equally likely


def country(records: PersonRecords, seed: int) -> Country:
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


def _some_people(records: PersonRecords, areas: NDArray[np.int64], seed: np.random.SeedSequence) -> NDArray[np.int64]:
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
