"""Several tables as one: drafts, and what is already out; and what was known before."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unround.errors import InputError
from unround.mechanisms import Exact, Rounding, Transition
from unround.mechanisms.base import BoolArray, IntArray, reaches
from unround.options import THRESHOLD
from unround.release import ABSENT, LARGEST, NOT_AVAILABLE, Block, Column, Counts, Progress, Proposal, Release, gaps
from unround.reviews.decision import Unsettled
from unround.reviews.exposure import Exposure
from unround.reviews.policy import KINDS, LIKELY, SURENESS
from unround.reviews.table import ReviewedTable, is_hidden, original
from unround.structure import find_structure
from unround.structure.evidence import FILES, LABELS
from unround.tables import join
from unround.tables.joining import match_areas, match_columns
from unround.tables.labels import is_total

if TYPE_CHECKING:
    import polars as pl

SLIPS = 0.1
"""The share of areas in which two numbers of one count may contradict each other before they are two counts."""

FEW, OF_ALL = 10, 0.1
"""Exact numbers of one name that differ by fewer than this somewhere, and by no more than this share of them on the whole:
one table may leave people out that the other counts, and the difference is their number."""

MOST_SUMMED, ENOUGH_SUMS = 8, 5
"""Tables up to which each is tried as the sum of others; counts that must bear it out."""

NEARLY = 0.01
"""A probability that rises by no more is not news."""


@dataclass(frozen=True, eq=False)
class Held:
    """A release in memory: it is read from there, and counts are looked up by area and key."""

    release: Release
    areas: pl.DataFrame
    counts: Counts

    @classmethod
    def of(cls, release: Release) -> Held:
        """Read a release once."""
        import polars as pl

        blocks = list(release.blocks())
        if not blocks:
            raise InputError(f"there is no area in {release.source}: it has a header, but no counts.")
        areas = pl.concat([block.areas for block in blocks], how="vertical_relaxed")
        return cls.made(release, areas, np.concatenate([block.counts for block in blocks]))

    @classmethod
    def made(cls, release: Release, areas: pl.DataFrame, counts: Counts) -> Held:
        """Return a release with these counts."""

        def read(_: Progress) -> Iterable[Block]:
            return [Block(areas, counts)]

        return cls(replace(release, read=read, figures=()), areas, counts)

    @cached_property
    def row(self) -> dict[tuple[str, ...], int]:
        """Where each area is."""
        return {key: at for at, key in enumerate(keys_of(self.areas, self.release.areas))}

    def of_areas(self, areas: pl.DataFrame, keys: Iterable[str]) -> Counts:
        """Return the counts of some areas in some columns; `NOT_AVAILABLE` where there is none."""
        index = self.release.index
        rows = np.array([self.row.get(key, -1) for key in keys_of(areas, self.release.areas)], dtype=np.int64)
        places = np.array([index.get(key, -1) for key in keys], dtype=np.int64)
        counts = self.counts[np.maximum(rows, 0)][:, np.maximum(places, 0)]
        counts[rows < 0], counts[:, places < 0] = NOT_AVAILABLE, NOT_AVAILABLE
        return counts

    def under(self, like: Release) -> Release:
        """Return it with the columns of a release in which a count may stand several times."""
        index = self.release.index
        columns = [column for column in like.columns if original(column.key) in index]
        counts = self.counts[:, [index[original(column.key)] for column in columns]]
        named = replace(self.release, columns=tuple(columns), axes=like.axes, proposals=())
        return Held.made(named, self.areas, np.ascontiguousarray(counts)).release


def keys_of(areas: pl.DataFrame, axes: Sequence[str]) -> Iterable[tuple[str, ...]]:
    """Return what names each area."""
    return (tuple(map(str, key)) for key in areas.select(axes).iter_rows())


def aligned(table: Release, to: Held) -> Held:
    """Return a table whose areas, axes and columns are called as those of a release, where they are the same."""
    release, its = to.release, Held.of(table)
    if len(table.axes) != len(release.axes) or len(table.areas) != len(release.areas):
        raise InputError(
            f"{table.source} has its counts by {', '.join((*table.areas, *table.axes))}, {release.source} by "
            f"{', '.join((*release.areas, *release.axes))}: their cells cannot be matched. Describe both with the same axes "
            "in a TOML file (see docs/audit-reference.md)."
        )
    table = replace(table, columns=tuple(_labelled(table.columns, release)))
    # How a count was published does not make it another one; that is for `_joined`.
    plain = [replace(file, columns=tuple(replace(c, mechanism=None) for c in file.columns)) for file in (release, table)]
    columns = list(table.columns)
    for slot in match_columns(plain):
        if 0 in slot.columns and 1 in slot.columns:
            there = release.columns[slot.columns[0]]
            here = columns[slot.columns[1]]
            columns[slot.columns[1]] = replace(here, key=there.key, codes=there.codes, label=there.label)
    named = replace(table, columns=tuple(columns), axes=release.axes, areas=release.areas)
    return Held.made(named, _areas(table, its.areas, to), its.counts)


def _labelled(columns: Iterable[Column], release: Release) -> Iterable[Column]:
    """Give columns that have a code but no name the names that the release has for these codes."""
    known = {column.key: column.label for column in release.columns}
    for column in columns:
        bare = column.label in ("", column.key, *column.codes)
        yield replace(column, label=known[column.key]) if bare and column.key in known else column


def _areas(table: Release, frame: pl.DataFrame, to: Held) -> pl.DataFrame:
    """Return the areas of a table under the codes of the release; those that it does not have keep their own."""
    import polars as pl

    _, (first, second) = match_areas([to.areas, frame], [to.release, table])
    at = {place: row for row, place in enumerate(first)}
    there = pl.Series([at.get(place) for place in second], dtype=pl.UInt32)
    named = frame.rename(dict(zip(table.areas, to.release.areas, strict=True)))
    codes = [
        to.areas[axis].cast(pl.String).gather(there).fill_null(named[axis].cast(pl.String)).alias(axis)
        for axis in to.release.areas
    ]
    return named.with_columns(codes)


def _joined(release: Release, table: Release) -> tuple[Held, dict[str, str]]:
    """Return one release with the counts of both, and what the columns of the table are called in it.

    A count that both have stands in two columns, which are proposed to be the same: also where it was published in
    different ways.
    """
    both = join([release, table])
    shared, second = release.index, dict[str, str]()
    for column in both.columns:
        if original(column.key) != column.key and column.key not in shared:
            second.setdefault(original(column.key), column.key)
    names = {c.key: second.get(c.key, c.key) if c.key in shared else c.key for c in table.columns}
    known = {(proposal.total, proposal.parts) for proposal in both.proposals}
    index = both.index
    pairs = [(index[name], (index[key],)) for key, name in names.items() if key in index and name != key]
    more = [Proposal(*pair, FILES) for pair in pairs if pair not in known]
    return Held.of(replace(both, proposals=(*both.proposals, *more))), names


def _refuse_strangers(release: Held, table: Held) -> None:
    """Refuse a table that has none of the areas of what is out."""
    if any(key in release.row for key in table.row):
        return
    here, there = (", ".join(next(iter(held.row))) for held in (table, release))
    raise InputError(
        f"{table.release.source} and {release.release.source} have no area in common: the table has {here} …, the release "
        f"{there} … Areas are matched by code; check that both files use the same codes. For a table of larger or smaller "
        "areas, audit the release, audit both files together (unround audit A B --nesting FILE), and compare the two "
        "(unround review AFTER --against BEFORE)."
    )


@dataclass(frozen=True, eq=False)
class Together:
    """Several tables as one: those that are already out, and drafts.

    - `all`: All of them as one; a count that several have stands in several columns.
    - `before`: Those alone that are out; None where none is.
    - `own`: The keys of the drafts' columns in `all`; `names`: for each draft, its keys and what they are called there.
    - `truth`: The true counts under the names of `all`.
    - `differ`: Counts of one name that differ by a few: what the difference is of is not known.
    - `shown`: Counts that one table hides and a draft prints, by area and name.
    """

    all: Release
    before: Release | None
    own: frozenset[str]
    names: tuple[Mapping[str, str], ...]
    truth: Release | None
    differ: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()


def together(drafts: Sequence[Release], earlier: Sequence[Release], truth: Release | None) -> Together:
    """Put tables together, each with what is found out about its mechanisms from its own counts.

    Raises `InputError` where a table has no area in common with those before it.
    """
    tables = [_with_mechanisms(release) for release in (*earlier, *drafts)]
    if len({table.axes for table in tables}) > 1 or len({len(table.areas) for table in tables}) > 1:
        tables = [_flat(table) for table in tables]
    whole = Held.of(tables[0])
    before = whole.release if len(earlier) == 1 else None
    keys = [[column.key for column in release.columns] for release in (*earlier, *drafts)]
    first = [column.key for column in whole.release.columns]
    names: list[Mapping[str, str]] = [dict(zip(keys[0], first, strict=True))]
    differ, held = list[str](), [whole]
    for at, release in enumerate(tables[1:], 1):
        table = aligned(release, whole)
        _refuse_strangers(whole, table)
        columns, few = _told_apart(table, whole)
        differ += few
        held.append(replace(table, release=replace(table.release, columns=columns)))
        whole, named = _joined(whole.release, replace(table.release, columns=columns))
        if at == len(earlier) - 1:
            before = whole.release
        names.append({key: named[column.key] for key, column in zip(keys[at], columns, strict=True)})
    whole = replace(whole, release=_with_sums_of_tables(whole, names))
    names = names[len(earlier) :]
    truth = None if truth is None else aligned(truth, whole).under(whole.release)
    ours = frozenset(key for named in names for key in named.values())
    shown = _shown(held, held[len(earlier) :])
    return Together(whole.release, before, ours, tuple(names), truth, tuple(differ), tuple(dict.fromkeys(shown)))


def _with_sums_of_tables(whole: Held, names: Sequence[Mapping[str, str]]) -> Release:
    """Propose that a table is the sum of others, count by count, where its printed counts are: persons, men and women."""
    release, proposals = whole.release, list[Proposal]()
    if not 3 <= len(names) <= MOST_SUMMED:
        return release
    reach = np.array([_reach(column) for column in release.columns], dtype=np.int64)
    places = [{key: release.index[name] for key, name in named.items()} for named in names]
    for total, counted in enumerate(places):
        others = [at for at in range(len(places)) if at != total]
        for size in range(2, len(others) + 1):
            for parts in itertools.combinations(others, size):
                shared = [key for key in counted if all(key in places[part] for part in parts)]
                sums = [(counted[key], tuple(places[part][key] for part in parts)) for key in shared]
                sums = [(head, summed) for head, summed in sums if len({head, *summed}) == size + 1]
                if _all_hold(whole.counts, reach, sums):
                    proposals += [Proposal(head, summed, LABELS) for head, summed in sums]
    return replace(release, proposals=(*release.proposals, *proposals))


def _all_hold(counts: Counts, reach: IntArray, sums: Sequence[tuple[int, tuple[int, ...]]]) -> bool:
    """Return whether sums hold wherever all of their counts are printed, often enough not to do so by chance."""
    times = 0
    for head, parts in sums:
        printed, more = gaps(counts, head, parts)
        slack = reach[[head, *parts]].sum()
        if (np.abs(more) > slack).any():
            return False
        times += int((counts[printed][:, parts].min(axis=1) > slack).sum())
    return times >= ENOUGH_SUMS


def _shown(tables: Sequence[Held], drafts: Sequence[Held]) -> Iterable[str]:
    """Name the counts that one table hides, and a draft prints."""
    for table in tables:
        keys, codes = [column.key for column in table.release.columns], list(keys_of(table.areas, table.release.areas))
        hidden = is_hidden(table.counts)
        for other in drafts if hidden.any() else ():
            for row, at in np.argwhere(hidden & (other.of_areas(table.areas, keys) > ABSENT)).tolist():
                yield f"{'/'.join(codes[row])}:{keys[at]}"


def _with_mechanisms(release: Release) -> Release:
    """Say of every count how it was published, as its own table tells: else one table is taken to be like the other."""
    how = find_structure(release).mechanisms
    columns = zip(release.columns, how, strict=True)
    return replace(release, columns=tuple(replace(c, mechanism=m) if m is not None else c for c, m in columns))


_WHOLE = ("total", "all", "both", "persons", "people", "everyone", "overall")


def _flat(release: Release) -> Release:
    """Return a release with one axis of counts, named by what each is of, totals left out: then any two can be matched."""
    keys: list[str] = []
    for column in release.columns:
        parts = [code for code in column.codes if code.strip().lower().split(" ")[0] not in _WHOLE]
        keys.append("/".join(parts) or "Total")
    columns = tuple(
        replace(column, key=key, codes=(key,), label=key) if keys.count(key) == 1 else replace(column, codes=(column.key,))
        for column, key in zip(release.columns, keys, strict=True)
    )
    if len(release.areas) > 1:
        raise InputError(
            f"{release.source} has its rows by {', '.join(release.areas)}: its cells cannot be matched with those of tables "
            "that have other axes. Describe all with the same axes (see docs/audit-reference.md)."
        )
    return replace(release, columns=columns, axes=("count",), figures=())


def _told_apart(table: Held, whole: Held) -> tuple[tuple[Column, ...], list[str]]:
    """Give counts other names that are called like others, but cannot be the same: of households, or of another year.

    Those that differ by a few are named besides: one table may leave some people out, and then tells how many.
    """
    columns, known = list(table.release.columns), whole.release.index
    shared = [at for at, column in enumerate(columns) if column.key in known]
    keys = [columns[at].key for at in shared]
    reach = np.array([_reach(columns[at]) + _reach(whole.release.columns[known[columns[at].key]]) for at in shared])
    here, there = table.counts[:, shared].astype(np.int64), whole.of_areas(table.areas, keys).astype(np.int64)
    both = (here > ABSENT) & (there > ABSENT)
    gaps = np.where(both, here - there, 0)
    apart = (np.abs(gaps) > reach).sum(axis=0)
    differ: list[str] = []
    for place, (at, off, times) in enumerate(zip(shared, apart.tolist(), both.sum(axis=0).tolist(), strict=True)):
        priced = _other_records(gaps[:, place][both[:, place]], columns[at], whole.release.columns[known[columns[at].key]])
        if priced:
            differ.append(f"{columns[at].key} of {Path(table.release.source).name} {priced}")
        if off > SLIPS * times or priced:
            gap, name = np.abs(gaps[:, place]), columns[at].key
            one_sided = (gaps[:, place] >= 0).all() or (gaps[:, place] <= 0).all()
            few = (gap > 0) & (gap < FEW)
            if reach[place] == 0 and one_sided and few.any() and gap.sum() <= OF_ALL * there[:, place][both[:, place]].sum():
                source = Path(table.release.source).name
                differ.append(
                    f"{name} of {source} differs from the other table by fewer than {FEW} in {int(few.sum()):,} rows"
                )
            key = f"{columns[at].key} ({Path(table.release.source).name})"
            columns[at] = replace(columns[at], key=key, codes=(key, *columns[at].codes[1:]), label=key)
    return tuple(columns), differ


def _reach(column: Column) -> int:
    """Return how far a printed count can be from the true one; very far where that is not known."""
    how = column.mechanism
    if isinstance(how, Transition):
        return max(abs(change) for row in how.rows for change, _ in row)
    return how.base - 1 if isinstance(how, Rounding) else 0 if isinstance(how, Exact) else LARGEST


def _other_records(gaps: IntArray, column: Column, other: Column) -> str:
    """Say what is told by counts that cell keys changed alike in most rows of two tables: the others have other records.

    The differences in numbers of records are fitted to those of the published numbers, by EM; each is then inferred.
    """
    how = column.mechanism
    if not isinstance(how, Transition) or not isinstance(other.mechanism, Transition) or not gaps.any():
        return ""
    end = _reach(column)
    law = np.array([float(dict(how.rows[-1]).get(change, 0)) for change in range(-end, end + 1)])
    by_chance, alike = float(law @ law), float((gaps == 0).mean())
    if alike <= (1 + by_chance) / 2:  # no more than fresh noise of every table makes
        return ""
    seen = gaps[gaps != 0]
    noise, far = np.convolve(law, law[::-1]), FEW + 2 * end
    likely = np.zeros((len(seen), 2 * FEW + 1))
    for at, records in enumerate(range(-FEW, FEW + 1)):
        off = seen - records + 2 * end
        fits = (off >= 0) & (off < len(noise)) & (records != 0) & (np.abs(seen) <= far)
        likely[fits, at] = noise[off[fits]]
    # As if some more had been seen, most of them small, of either sign: few rows must not seem to tell it all.
    before = 5 * 0.5 ** np.abs(np.arange(-FEW, FEW + 1))
    shares = before
    for _ in range(200):
        chances = likely * shares
        chances /= np.maximum(chances.sum(axis=1, keepdims=True), 1e-300)
        shares = before + chances.sum(axis=0)
    sure = int(reaches(chances.max(axis=1), THRESHOLD).sum())
    return (
        f"shows the same number as the other table in {alike:.1%} of the rows, and another one in {len(seen):,}: by cell "
        "keys the same records show the same number, so each of those has records that only one of the tables counts; how "
        f"many can be inferred for {sure:,} of them, and the likeliest number is right in about "
        f"{chances.max(axis=1).mean():.0%}"
    )


def added_up_elsewhere(tables: Sequence[tuple[str, ReviewedTable]]) -> Iterator[Unsettled]:
    """Ask about counts of one table that are what the rows of another add up to, where one of these is hidden.

    That is so where all columns that are printed in full add up to them; or, where none is, where they are called a total.
    """
    for (name, table), (other_name, other) in itertools.permutations(tables, 2):
        places = {(column.label or column.key).casefold(): at for at, column in enumerate(other.columns)}
        pairs = [
            (at, places[called])
            for at in table.exact
            if (called := (table.columns[at].label or table.columns[at].key).casefold()) in places
        ]
        tops = np.arange(len(table.counts)) if table.nested is None else np.flatnonzero(table.nested.parent < 0)
        if not pairs or len(tops) < 2:
            continue
        here, there = (list(side) for side in zip(*pairs, strict=True))
        hidden, shown = table.hidden[tops][:, here], np.maximum(table.printed[tops][:, here], 0).astype(np.int64)
        least, most = shown.sum(axis=0), shown.sum(axis=0) + hidden.sum(axis=0) * shown.max(axis=0)
        full = ~hidden.any(axis=0)
        for row, values in enumerate(other.printed[:, there]):
            known, area = values >= 0, other.area_name(row)
            follows = known & ~full & (values > least) & (values <= most)
            by_name = is_total(area) or area.casefold() in name.casefold()
            if follows.any() and (values == least)[known & full].all() and ((known & full).any() or by_name):
                what = f"{area} of {other_name}"
                why = f"{what} is what {name} adds up to, as far as that is printed: what is hidden there may follow"
                yield Unsettled.asked(what, why, "hide as much as is needed in both")
                break


Known = tuple[ReviewedTable, tuple[Exposure, ...], Mapping[str, str] | None]
"""A table, what it tells under one prior or several, and its names for counts, where they differ."""


@dataclass(frozen=True, eq=False)
class KnownBefore:
    """What readers know from one or several tables alone."""

    tables: tuple[Known, ...]

    def mask(self, table: ReviewedTable, exposure: Exposure) -> BoolArray:
        """Return the cells of a table about which readers learn nothing new."""
        known_cells = np.zeros(exposure.kinds.shape, dtype=np.bool_)
        for known, exposures, names in self.tables:
            rows = {code: at for at, code in enumerate(known.area_codes)}
            places = {(names or {}).get(column.key, column.key): at for at, column in enumerate(known.columns)}
            for row, at in np.argwhere((exposure.kinds > 0) & ~known_cells).tolist():
                code, key = table.area_codes[row], table.columns[at].key
                key = key if key in places else original(key)
                if code in rows and key in places:
                    there = rows[code], places[key]
                    known_cells[row, at] = any(_no_news(exposure, (row, at), then, there) for then in exposures)
        return known_cells


def _no_news(now: Exposure, here: tuple[int, int], then: Exposure, there: tuple[int, int]) -> bool:
    """Whether a claim was as sure before."""
    kind, was = KINDS[now.kinds[here]], KINDS[then.kinds[there]]
    if SURENESS.get(was, 0) != SURENESS[kind]:
        return SURENESS.get(was, 0) > SURENESS[kind]
    return kind != LIKELY or bool(then.highest[there] >= now.highest[here] - NEARLY)
