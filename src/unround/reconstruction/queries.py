"""What each published column counts, in terms of the persons' attributes.

An axis of a table that is called like an attribute holds groups of its values; any other axis (the characteristics of a
profile) holds groups of values of several attributes. A code stands for a value by its name, for a range of ages by its
words, for everyone if it is called a total, and for the values of its parts where the table says so. What cannot be told is
left out, and said. Every column is then compared with the records: one that cannot have come from them counts something
else, and one that only repeats another adds nothing. The rest becomes the arrays that the chain takes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.evidence.block import WindowTable
from unround.mechanisms import Exact, Mechanism, Unpublished
from unround.output import array_on_disk
from unround.reconstruction.records import CountTable, PersonRecords, Rows, Tables, by_attribute
from unround.release import ABSENT, Column, Release
from unround.simulation.persons import Query, counted, joined, margins, query
from unround.tables.labels import age_range

_TOTAL = re.compile(r"(?:total\b.*|all\b.*|both sexes|everyone|persons|population(?:, \d+)?)", re.IGNORECASE)
_GROUP = re.compile(r"[ _-]?(?:groups?|years?|status|id)$", re.IGNORECASE)
PROFILE = ("characteristic", "characteristic_id")

Sets = dict[str, frozenset[int]]


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """All columns that are used, of all tables, over the areas of the records."""

    queries: list[Query]  # what each column counts
    tables: list[int]  # the table that each column is in
    mechanisms: list[Mechanism]  # how it was published
    counts: CountTable  # what was published, codes of absence included, and the true counts
    true: CountTable
    names: list[str]  # what the tables are called
    sums: list[tuple[int, tuple[int, ...]]]  # within each table: totals and their parts, as positions of columns
    notes: list[str]  # what a reader should know

    def without(self, dropped: NDArray[np.bool_]) -> Published:
        """Leave some columns out."""
        return self.picked([int(column) for column in np.flatnonzero(~dropped)])

    def exactly(self) -> Published:
        """Return the same columns as if they were published as they are, each count once."""
        first = {counted_by: at for at, counted_by in reversed(list(enumerate(self.queries)))}
        kept = self.picked(sorted(first.values()))
        return replace(kept, counts=kept.true, mechanisms=[Exact()] * len(kept.queries))

    def in_order(self) -> Published:
        """Put columns into an order that depends on nothing but what they count, and in which table."""

        def place(column: int) -> tuple[list[tuple[str, list[int]]], str, int]:
            about = [(name, sorted(values)) for name, values in self.queries[column]]
            return about, self.names[self.tables[column]], column

        return self.picked(sorted(range(len(self.queries)), key=place))

    def picked(self, kept: Sequence[int]) -> Published:
        """Pick some columns."""
        at = {int(old): new for new, old in enumerate(kept)}
        sums = [(at[total], tuple(at[part] for part in parts)) for total, parts in self.sums if at.keys() >= {total, *parts}]
        return Published(
            [self.queries[column] for column in kept],
            [self.tables[column] for column in kept],
            [self.mechanisms[column] for column in kept],
            self.counts.picked(kept),
            self.true.picked(kept),
            self.names,
            sums,
            self.notes,
        )


def read_published(releases: Sequence[Release], records: PersonRecords, folder: Path) -> Published:
    """Work out what the columns of some tables count, and put their counts on disk, with the true ones beside them."""
    queries: list[Query] = []
    tables: list[int] = []
    names: list[str] = []
    sums: list[tuple[int, tuple[int, ...]]] = []
    notes: list[str] = []
    places: list[list[int]] = []
    for number, release in enumerate(releases):
        name = release.source.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        used = _understood(release, records, name, notes)
        at = {old: len(queries) + new for new, old in enumerate(used)}
        sums.extend(
            (at[proposed.total], tuple(at[part] for part in proposed.parts))
            for proposed in release.sums
            if at.keys() >= {proposed.total, *proposed.parts} and not proposed.against
        )
        queries.extend(used.values())
        tables.extend([number] * len(used))
        names.append(name)
        places.append(list(used))
    every = np.arange(len(queries), dtype=np.int64)
    counts = CountTable(array_on_disk(folder / "published.bin", (len(records.areas), len(queries)), "i4"), every)
    for number, release in enumerate(releases):
        _put_counts(release, records, places[number], counts.rows, tables.index(number))
    true = CountTable(true_counts(queries, records, folder / "true.bin"), every)
    declared = [_declared(releases[table].columns[at]) for table, used in enumerate(places) for at in used]
    mechanisms = _mechanisms(declared, counts, true, [releases[table].source for table in tables])
    return Published(queries, tables, mechanisms, counts, true, names, sums, notes)


def _understood(release: Release, records: PersonRecords, name: str, notes: list[str]) -> dict[int, Query]:
    """Return what the columns of a table count that are used, by their places; note what is left out."""
    queries = column_queries(release, records)
    shown = [not isinstance(column.mechanism, Unpublished) for column in release.columns]
    used = {at: counted_by for at, counted_by in enumerate(queries) if counted_by is not None and shown[at]}
    if not used:
        known = ", ".join(f"{attribute} ({', '.join(values[:3])} …)" for attribute, values in records.values.items())
        raise InputError(
            f"no column of {release.source} counts anything that the records know: {known}. Axes of a table are "
            "called like the attributes of the records, and their codes like the values."
        )
    if len(used) < len(queries):
        left = [release.columns[at].key for at in range(len(queries)) if at not in used]
        first = ", ".join(left[:3]) + (" …" if len(left) > 3 else "")
        notes.append(f"{name}: {len(left):,} columns are left out, of which it is not known what they count: {first}.")
    if release.figures:
        notes.append(f"{name}: rates, means and medians beside the counts ({len(release.figures):,}) are not used.")
    return used


def with_absent_values(releases: Sequence[Release], records: PersonRecords) -> PersonRecords:
    """Add values that tables have and nobody in the records: codes beside known ones, on an axis of that attribute."""
    for release in releases:
        for place, axis in enumerate(release.axes):
            attribute = _attribute(axis, records)
            if attribute is None or attribute in records.numeric:
                continue
            heads = {release.columns[proposed.total].codes[place] for proposed in release.sums}
            parts = {release.columns[at].codes[place] for proposed in release.sums for at in proposed.parts}
            codes = dict.fromkeys(column.codes[place] for column in release.columns)
            new = [
                code
                for code in codes
                if stands_for(code, attribute, "", records) is None
                and stands_for(code, None, "", records) is None
                and not (code in heads and code not in parts)
            ]
            # A table none of whose codes is known has other values altogether, not some that nobody has.
            if new and len(new) < len(codes) / 2:
                records = replace(records, values=records.values | {attribute: (*records.values[attribute], *new)})
    return records


def true_counts(queries: Sequence[Query], records: PersonRecords, path: Path) -> Rows:
    """Count the records for every query, in a file: areas × queries."""
    grouped = margins(queries, records.sizes)
    rows = array_on_disk(path, (len(records.areas), len(queries)), "i4")
    for first, last in records.cuts():
        area = np.repeat(np.arange(last - first), np.diff(records.starts[first : last + 1]))
        rows[first:last] = counted(grouped, len(queries), area, last - first, records.codes_of(first, last))
    return rows


def _declared(column: Column) -> Mechanism | None:
    """Return how a column was published, as far as file or user say it."""
    only = column.documented[0] if len(column.documented) == 1 else None
    return column.mechanism or only


def _mechanisms(
    declared: Sequence[Mechanism | None], counts: CountTable, true: CountTable, sources: Sequence[str]
) -> list[Mechanism]:
    """Return how columns were published; exactly, if one is not what is declared, or nothing is, and every count is true."""
    fits, equal = np.ones(len(declared), dtype=bool), np.ones(len(declared), dtype=bool)
    windows = WindowTable([how or Exact() for how in declared])
    for here, shown in counts.blocks():
        there = shown > ABSENT
        equal &= ((shown == true[here]) | ~there).all(axis=0)
        fits &= ~windows.of(shown.astype(np.int32))[1].any(axis=0)
    mechanisms: list[Mechanism] = []
    for at, how in enumerate(declared):
        if (how is None or not fits[at]) and equal[at]:
            mechanisms.append(Exact())
        elif how is None:
            raise InputError(
                f"{sources[at]} does not say how its counts were published: say so with --mechanism, such as rounding:5."
            )
        else:
            mechanisms.append(how)
    return mechanisms


def _put_counts(release: Release, records: PersonRecords, used: Sequence[int], rows: Rows, first: int) -> None:
    """Write the counts of a table, from one column on, in the order of the records' areas."""
    place = {name: at for at, name in enumerate(records.areas)}
    seen = np.zeros(len(place), dtype=bool)
    unknown = ""
    for block in release.blocks():
        for name, counts in zip(block.areas[release.areas[0]], block.counts[:, used], strict=True):
            at = place.get(str(name), -1)
            if at < 0:
                unknown = unknown or str(name)
                continue
            rows[at, first : first + len(used)] = counts
            seen[at] = True
    if unknown and not seen.any():
        raise InputError(
            f"no area of {release.source} ({unknown} …) is among those of {records.source} ({records.areas[0]} …)."
        )
    if not seen.all():
        missing = records.areas[int(np.flatnonzero(~seen)[0])]
        raise InputError(f"{release.source} has no area {missing}, where persons of {records.source} live.")


# -- what a code stands for -------------------------------------------------------------------------------------------


def column_queries(release: Release, records: PersonRecords) -> list[Query | None]:
    """Return what each column of a table counts; None where that cannot be told."""
    axes = [_attribute(axis, records) for axis in release.axes]
    meanings: list[Sets | None] = []
    for column in release.columns:
        codes = list(column.codes)
        if release.axes[0] in PROFILE:
            codes[0] = column.label or codes[0]
        sets: Sets | None = {}
        for attribute, code in zip(axes, codes, strict=False):
            stands = stands_for(code, attribute, column.block, records)
            if stands is None and len(axes) == 1:  # one list of all that is counted, called after what comes first
                stands = stands_for(code, None, column.block, records)
            sets = None if sets is None or stands is None or set(sets) & set(stands) else {**sets, **stands}
        meanings.append(sets)
    _fill_from_parts(meanings, release)
    return [None if sets is None else query(sets, records.sizes) for sets in meanings]


def _attribute(axis: str, records: PersonRecords) -> str | None:
    """Return the attribute that an axis is called like."""
    for name in records.values:
        if axis.lower() == name.lower() or _GROUP.sub("", axis.lower()) == name.lower():
            return name
    return None


def stands_for(code: str, attribute: str | None, block: str, records: PersonRecords) -> Sets | None:
    """Return the values that a code stands for, by attribute; {} for everyone, None where it cannot be told."""
    names = [attribute] if attribute is not None else list(records.values)
    plain = code.strip().lower()
    fitting = [name for name in names if plain in map(str.lower, records.values[name])]
    if attribute is None:
        fitting = [name for name in fitting if name not in records.numeric]
        fitting = [name for name in fitting if name.lower() in block.lower()] or fitting
    if len(fitting) == 1:
        values = [value.lower() for value in records.values[fitting[0]]]
        return {fitting[0]: frozenset({values.index(plain)})}
    if len(fitting) > 1:
        return None
    numeric = [name for name in names if name in records.numeric and (attribute is not None or name.lower() == "age")]
    ages = _ages(plain)
    if ages is not None and len(numeric) == 1:
        inside = [at for at, value in enumerate(records.values[numeric[0]]) if ages[0] <= int(value) <= ages[1]]
        return {numeric[0]: frozenset(inside)} if ages != (0, 1_000_000_000) else {}
    return {} if _TOTAL.fullmatch(plain) else None


_DASH, _PLUS = re.compile(r"(\d)\s*[-–]\s*(\d)"), re.compile(r"(\d+)\s*\+$")


def _ages(code: str) -> tuple[int, int] | None:
    """Return the ages that a code stands for, as agencies write them.

    >>> [_ages(code) for code in ("0-14", "15 to 64", "under 5", "41", "aged 20 to 24 years", "married")]
    [(0, 14), (15, 64), (0, 4), (41, 41), (20, 24), None]
    >>> _ages("65+") == _ages("65 and over") == _ages("65 years and over")
    True
    """
    plain = _PLUS.sub(r"\1 years and over", _DASH.sub(r"\1 to \2", code.strip().lower().removeprefix("aged ")))
    plain = re.sub(r"^(\d+) (and|or) ", r"\1 years \2 ", plain)
    return age_range(plain) or age_range(f"{plain} years")


def _fill_from_parts(meanings: list[Sets | None], release: Release) -> None:
    """Give totals that are not understood the values of their parts, where these differ in one attribute alone."""
    changed = True
    while changed:
        changed = False
        for proposed in release.sums:
            if meanings[proposed.total] is None:
                parts = [meanings[part] for part in proposed.parts]
                union = _union([part for part in parts if part is not None]) if None not in parts else None
                if union is not None:
                    meanings[proposed.total], changed = union, True


def _union(parts: Sequence[Sets]) -> Sets | None:
    names = sorted({name for part in parts for name in part})
    different = [name for name in names if len({part.get(name) for part in parts}) > 1]
    if len(different) != 1 or any(different[0] not in part for part in parts):
        return None
    values = frozenset[int]().union(*(part[different[0]] for part in parts))
    return {**parts[0], different[0]: values}


MOST_IMPOSSIBLE, MOST_DROPPED = 0.02, 0.05
"""Shares of areas in which a column may be impossible, and of columns that may be left out for that."""


def verified(published: Published, records: PersonRecords) -> Published:
    """Leave out columns that cannot have come from the records, and those that repeat others number by number."""
    impossible, example = _impossible(published)
    wrong = impossible / len(records.areas) > MOST_IMPOSSIBLE
    if wrong.mean() > MOST_DROPPED and example is not None:
        area, column = example
        shown, true = published.counts[area][column], published.true[area][column]
        raise InputError(
            f"{records.source} does not hold the people that these tables count: in area {records.areas[area]}, table "
            f"{published.names[published.tables[column]]} shows {shown:,} where the records have {true:,}, and so it is for "
            f"{wrong.mean():.0%} of the columns."
        )
    if wrong.any():
        published.notes.append(
            f"{int(wrong.sum()):,} columns are left out: the records do not fit them, so they must count something else."
        )
    again = _repeats(published)
    if again.any():
        published.notes.append(
            f"{int(again.sum()):,} columns repeat another column's count with the same number everywhere: they add nothing."
        )
    return published.without(wrong | again)


def _impossible(published: Published) -> tuple[NDArray[np.int64], tuple[int, int] | None]:
    """Count the areas in which each column is impossible, and return the first such area and column.

    A column with a number that its mechanism never gives is impossible everywhere.
    """
    times = np.zeros(len(published.queries), dtype=np.int64)
    never = np.zeros(len(published.queries), dtype=bool)
    examples: list[tuple[int, int]] = []
    table = WindowTable(published.mechanisms)
    for here, counts in published.counts.blocks():
        windows, misfit = table.of(counts.astype(np.int32))
        true = published.true[here]
        off = (counts > ABSENT) & ((true < windows.low) | (true > windows.high))
        never |= misfit.any(axis=0)
        times += off.sum(axis=0)
        if not examples and off.any():
            area, column = np.argwhere(off)[0].tolist()
            examples.append((here.start + area, column))
    times[never] = len(published.counts.rows)
    examples.extend((0, at) for at in np.flatnonzero(never).tolist())
    return times, min(examples, default=None)


def _repeats(published: Published) -> NDArray[np.bool_]:
    """Return which columns count the same as an earlier one, and show the same number everywhere."""
    seen: dict[Query, list[int]] = {}
    pairs: list[tuple[int, int]] = []
    for at, counted_by in enumerate(published.queries):
        earlier = seen.setdefault(counted_by, [])
        pairs.extend((other, at) for other in earlier)
        earlier.append(at)
    for _, counts in published.counts.blocks():
        pairs = [(other, at) for other, at in pairs if np.array_equal(counts[:, other], counts[:, at])]
    again = np.zeros(len(published.queries), dtype=bool)
    again[[at for _, at in pairs]] = True
    return again


def population(published: Published) -> tuple[NDArray[np.int64], bool]:
    """Return how many people every area has, from the tables alone, and whether that is exact."""
    whole = [at for at, counted_by in enumerate(published.queries) if not counted_by]
    ways = [(at,) for at in whole] + [parts for total, parts in published.sums if not published.queries[total]]
    people = np.zeros((len(ways), len(published.counts.rows)), dtype=np.int64)
    known = np.ones(len(ways), dtype=bool)
    for here, counts in published.counts.blocks():
        for number, parts in enumerate(ways):
            columns = counts[:, list(parts)]
            known[number] &= bool((columns > ABSENT).all())
            people[number, here] = columns.sum(axis=1)
    for number, at in enumerate(whole):
        if isinstance(published.mechanisms[at], Exact) and known[number]:
            return people[number].copy(), True
    if not known.any():
        raise InputError("none of the tables says how many people live in an area: give one that does, as a total of all.")
    return np.maximum(np.rint(np.mean(people[known], axis=0)), 0).astype(np.int64), False


LEAST = 1e-9  # A likelihood below this, inside of a window, counts as this


class TableEvidence:
    """Columns of tables, and what was published in every area; in those of `areas` alone, ascending, if they are given."""

    def __init__(
        self,
        tables: Tables,
        mechanisms: Sequence[Mechanism],
        counts: CountTable,
        areas: NDArray[np.int64] | None = None,
    ) -> None:
        self.tables, self.mechanisms = tables, tuple(mechanisms)
        self._counts, self._areas, self._windows = counts, areas, WindowTable(self.mechanisms)

    def of(self, area: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the windows of an area: of every column the lowest count, how many there are and where; and all logs.

        A size of 0 says that nothing is known of a column.
        """
        at = area if self._areas is None else int(np.searchsorted(self._areas, area))
        assert self._areas is None or self._areas[at] == area, "nothing was prepared for this area"
        windows, _ = self._windows.of(self._counts[at : at + 1].astype(np.int32))
        low, start = windows.low[0], windows.start[0]
        size = np.where(start >= 0, windows.high[0] - low + 1, 0)
        return np.stack([low, size, start], axis=1).astype(np.int32), np.log(np.maximum(windows.weights, LEAST))


def tables_of(queries: Sequence[Query], names: Sequence[str], sizes: Mapping[str, int]) -> Tables:
    """Return columns as arrays; `names` is the order of attributes in a record."""
    # The finest come first: most moves fail there, and need not be looked at any further.
    grouped = sorted((margin for margin in margins(queries, sizes) if margin.attributes), key=lambda margin: -margin.atoms)
    most = max(sizes.values())
    step = np.zeros((len(grouped), len(names), most), dtype=np.int32)
    for m, margin in enumerate(grouped):
        stride = 1
        for axis in reversed(range(len(margin.attributes))):
            name = margin.attributes[axis]
            step[m, list(names).index(name), : sizes[name]] = stride * margin.classes[axis]
            stride *= margin.shape[axis]
    first, starts, held = joined(grouped)
    steps = np.ascontiguousarray(step.transpose(1, 2, 0))
    return Tables(np.array(first, dtype=np.int64), steps, starts, held, *by_attribute(step), len(queries))


def evidence(published: Published, records: PersonRecords) -> TableEvidence:
    """Return published counts as the chain takes them; the number of all people is not a column for it."""
    about = published.picked([at for at, counted_by in enumerate(published.queries) if counted_by])
    tables = tables_of(about.queries, tuple(records.values), records.sizes)
    return TableEvidence(tables, about.mechanisms, about.counts)


def own_totals(queries: Sequence[Query]) -> list[int]:
    """Return the columns that are about one attribute alone: an area's own totals."""
    return [at for at, counted_by in enumerate(queries) if len(counted_by) <= 1]
