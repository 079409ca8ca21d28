"""Which publication costs what: the same tables published in other ways, and with one table left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.mechanisms import HIDDEN, Exact
from unround.mechanisms.rounding import TwoWay
from unround.protection import Protection, parse_protection, publish_counts
from unround.reconstruction.evidence import Evidence, Likelihoods, evidence, tables_of
from unround.reconstruction.inquiry import Question
from unround.reconstruction.ondisk import Rows
from unround.reconstruction.queries import Published
from unround.reconstruction.records import Records
from unround.release import ABSENT, SUPPRESSED
from unround.simulation.persons.counting import counted, margins

WAYS = ("exact", "rounding:3", "rounding:5", "rounding:10", "keyed:5", "laplace:1.45", "controlled:5")
"""Ways of publishing that are compared unless others are named."""

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
