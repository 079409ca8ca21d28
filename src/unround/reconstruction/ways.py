"""Which publication costs what: the same tables published in other ways, and with one table left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.mechanisms import HIDDEN, Exact
from unround.mechanisms.rounding import TwoWay
from unround.protection import Protection, parse_protection, publish_counts
from unround.reconstruction.evidence import evidence
from unround.reconstruction.inquiry import Question
from unround.reconstruction.queries import Published
from unround.reconstruction.records import Records
from unround.release import ABSENT, SUPPRESSED
from unround.simulation.persons.counting import counted, margins

WAYS = ("exact", "rounding:3", "rounding:5", "rounding:10", "keyed:5", "laplace:1.45", "controlled:5")
"""Ways of publishing that are compared unless others are named."""

WAY, WITHOUT = "way", "without"


def ways_named(names: Sequence[str]) -> list[Protection]:
    """Return ways of publishing by their names.

    Raises
    ------
    InputError
        If there is no such way.
    """
    return [parse_protection(name) for name in names]


def published_so(
    how: Protection, published: Published, true: NDArray[np.int64], records: Records, seed: int
) -> tuple[Published, list[str]]:
    """Publish the same columns in another way; those that are exact stay so.

    Also returns the tables whose sums controlled rounding cannot keep up: they are rounded count by count.
    """
    loose: list[str] = []
    exact = np.array([isinstance(one, Exact) for one in published.mechanisms])
    shown = true.copy()
    for table in range(len(published.names)):
        own = [at for at in range(len(published.tables)) if published.tables[at] == table and not exact[at]]
        rng = np.random.default_rng(np.random.SeedSequence([seed, table, *how.name.encode()]))
        if how.keys:
            shown[:, own] = _by_keys(how, published, true, records, own, rng, seed)
        elif how.controlled:
            try:
                shown[:, own] = _controlled(how, published, true, own, rng)
            except InputError:
                loose.append(published.names[table])
                shown[:, own] = how.mechanism.publish(true[:, own], rng)
        else:
            shown[:, own] = how.mechanism.publish(true[:, own], rng)
    mechanisms = [one if kept else how.mechanism for one, kept in zip(published.mechanisms, exact, strict=True)]
    shown = np.where(shown == HIDDEN, SUPPRESSED, shown)
    shown[:, exact] = np.where(published.counts[:, exact] > ABSENT, true[:, exact], published.counts[:, exact])
    return replace(published, mechanisms=mechanisms, counts=shown), loose


def _by_keys(
    how: Protection,
    published: Published,
    true: NDArray[np.int64],
    records: Records,
    own: Sequence[int],
    rng: np.random.Generator,
    seed: int,
) -> NDArray[np.int64]:
    """Round by the keys of records, the file's own or drawn ones, and a constant of the table."""
    assert isinstance(how.mechanism, TwoWay)
    keys = records.keys
    if keys is None:
        chance = np.random.default_rng(np.random.SeedSequence([seed, 25]))
        keys = chance.integers(0, (1 << 64) - 1, records.people, dtype=np.uint64, endpoint=True)
    queries = [published.queries[at] for at in own]
    grouped = margins(queries, records.sizes)
    sums = counted(grouped, len(queries), records.area_of(), len(records.areas), records.codes, keys)
    shift = rng.integers(0, (1 << 64) - 1, dtype=np.uint64, endpoint=True)
    return how.mechanism.publish_keyed(true[:, own], sums + shift)


def _controlled(
    how: Protection, published: Published, true: NDArray[np.int64], own: Sequence[int], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Round so that sums add up, as far as their total is rounded too.

    Raises
    ------
    InputError
        Where the sums form loops that cannot be kept up.
    """
    at = {column: place for place, column in enumerate(own)}
    sums = tuple(
        (at[total], tuple(at[part] for part in parts))
        for total, parts in published.sums
        if total in at and all(part in at for part in parts)
    )
    return publish_counts(true[:, own], how, sums, rng)


def way_questions(
    ways: Sequence[Protection], published: Published, true: NDArray[np.int64], records: Records, seed: int
) -> tuple[list[Question], list[str]]:
    """Return a question for every way of publishing, and what could not be done."""
    names, sizes = tuple(records.values), records.sizes
    found, notes = [], []
    for how in ways:
        other, loose = published_so(how, published, true, records, seed)
        if loose:
            notes.append(
                f"{how.name}: sums by three classifications cannot all be kept up; rounded count by count instead: "
                f"{', '.join(loose)}."
            )
        known = evidence(other.counts, other.queries, other.mechanisms, names, sizes)
        found.append(Question(f"{WAY} {how.name}", known))
    return found, notes


def without_questions(published: Published, records: Records) -> list[Question]:
    """Return a question for every table, with all tables but this one."""
    names, sizes = tuple(records.values), records.sizes
    found: list[Question] = []
    if len(published.names) < 2:
        return found
    for table in range(len(published.names)):
        kept = published.without(np.array([one == table for one in published.tables]))
        known = evidence(kept.counts, kept.queries, kept.mechanisms, names, sizes)
        found.append(Question(f"{WITHOUT} {table}", known))
    return found
