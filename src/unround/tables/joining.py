"""Several files as one release: the same areas side by side, other areas below, every count under one name.

`join` takes releases and returns one, whose counts are on disk, read together, area by area. Before that it is matched
which columns of the files are one count, and which rows are one area.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import weakref
from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.mechanisms import Exact
from unround.output import naming_temporary_folder
from unround.release import (
    ABSENT,
    NOT_APPLICABLE,
    NOT_AVAILABLE,
    SUPPRESSED,
    UNRELIABLE,
    Block,
    Column,
    Counts,
    Decisions,
    Match,
    Progress,
    Proposal,
    Release,
)
from unround.structure.evidence import INFERRED
from unround.tables.spool import Spool

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

_TAIL = re.compile(r"@(file)?\d+$")
OWN, SAID = "own", "the description"
"""What says which count a column shows: it is the first to show it; or the user matches it, in a description."""


@dataclass(eq=False)
class MatchedColumn:
    """One count that areas can have; `columns` gives its column in each file that has it, `how` what matched it.

    `twin` is the same count as another file publishes it in another way.
    """

    column: Column
    columns: dict[int, int]
    how: dict[int, str]
    twin: MatchedColumn | None = None


def match_columns(releases: Sequence[Release], matches: Sequence[Match] = ()) -> list[MatchedColumn]:
    """Return each count once, with the columns that show it.

    Columns are one count if the user says so; or if they have the same key and the same label; or else, in another
    format, if they alone have the same label and sex. Where areas are in several files, the data have to confirm it.
    """
    said = _said(releases, matches)
    slots: list[MatchedColumn] = []
    by_key: dict[str, MatchedColumn] = {}
    for number, release in enumerate(releases):
        labels = _by_label(slots, release)
        for at, column in enumerate(release.columns):
            slot, how = _find(column, said[number], by_key, labels)
            twin = None
            if slot is not None and (number in slot.columns or not _compatible(slot.column, column)):
                twin = None if number in slot.columns else slot
                slot = None
            if slot is None:
                key = column.key
                if key in by_key:
                    tail = f"@file{number + 1}"  # the same key for something else
                    key += tail
                    column = replace(column, key=key, codes=(f"{column.codes[0]}{tail}", *column.codes[1:]))
                slot = by_key[key] = MatchedColumn(column, {}, {}, twin)
                slots.append(slot)
                how = OWN
            slot.columns[number], slot.how[number] = at, how
            slot.column = _joined(slot.column, column)
    return slots


def _said(releases: Sequence[Release], matches: Sequence[Match]) -> list[dict[str, str]]:
    """Return, for every file, what the user says of its columns: key of the other, or "" for none."""
    said: list[dict[str, str]] = [{} for _ in releases]
    for match in matches:
        named = [at for at, release in enumerate(releases) if _is_called(release, match.file)]
        if len(named) != 1:
            files = ", ".join(Path(release.source).name for release in releases)
            problem = "names none" if not named else "names several"
            raise InputError(f"[[match]] with file = {match.file!r} {problem} of the files. They are {files}.")
        later = releases[named[0]]
        earlier = {column.key for release in releases[: named[0]] for column in release.columns}
        pairs = dict(match.columns)
        for code, other in match.characteristics.items():
            columns = [column for column in later.columns if column.codes[0] == code]
            if not columns:
                raise _unknown(code, later, [column.codes[0] for column in later.columns])
            pairs |= {column.key: column.key.replace(code, other, 1) if other else "" for column in columns}
        for key, other in pairs.items():
            if key not in later.index:
                raise _unknown(key, later, list(later.index))
            if other and other not in earlier:
                if key in match.columns:
                    raise _unknown(other, releases[0], sorted(earlier))
                continue  # a sex that the other file does not have
            said[named[0]][key] = other
    return said


def _is_called(release: Release, name: str) -> bool:
    """Whether a release is meant: by its file, or by the TOML that describes it."""
    path = Path(release.source)
    return name in (release.source, path.name) or Path(name).with_suffix("").name == path.with_suffix("").name


def _unknown(name: str, release: Release, known: list[str]) -> InputError:
    close = get_close_matches(name, known, n=1)
    hint = f"Did you mean {close[0]!r}?" if close else "`unround check FILE --json` lists the columns."
    return InputError(f"[[match]]: there is no column {name!r} in {Path(release.source).name}. {hint}")


def _find(
    column: Column,
    said: Mapping[str, str],
    by_key: Mapping[str, MatchedColumn],
    labels: Mapping[tuple[str, ...], MatchedColumn],
) -> tuple[MatchedColumn | None, str]:
    """Return the count that a column shows, if earlier files have it, and what matched it."""
    if column.key in said:
        return by_key.get(said[column.key]), SAID
    same = by_key.get(column.key)
    if same is not None and (_plain(same.column.label) == _plain(column.label) or _is_bare(column) or _is_bare(same.column)):
        return same, "key"
    return labels.get((_plain(column.label), *column.codes[1:])), "label"


def _by_label(slots: Sequence[MatchedColumn], release: Release) -> dict[tuple[str, ...], MatchedColumn]:
    """Return the counts so far by label and sex, where both these and the columns of a file have it only once."""
    keys = {column.key for column in release.columns}
    times = Counter((_plain(column.label), *column.codes[1:]) for column in release.columns)
    by_label: dict[tuple[str, ...], list[MatchedColumn]] = {}
    for slot in slots:
        by_label.setdefault((_plain(slot.column.label), *slot.column.codes[1:]), []).append(slot)
    return {
        label: few[0]
        for label, few in by_label.items()
        if len(few) == 1 and times[label] == 1 and few[0].column.key not in keys and label[0]
    }


def _is_bare(column: Column) -> bool:
    """Whether a column has no label that says more than its key does."""
    return column.label in ("", column.key, column.codes[0])


def _plain(label: str) -> str:
    """Return a label without what formats add to it."""
    text = re.sub(r"^total\s+-\s+|\s+-\s+(100% data|25% sample data)$", "", label.strip().lower())
    return re.sub(r"[\s,]+", " ", text).strip()


def _compatible(first: Column, other: Column) -> bool:
    """Whether two columns can have one name: not if they may have been published in different ways.

    Where one file says that its counts are exact, and another says nothing, only the one's are.
    """
    known = [how for how in (first.mechanism, other.mechanism) if how is not None]
    return first.mechanism == other.mechanism or (len(known) < 2 and Exact() not in known)


def _joined(first: Column, other: Column) -> Column:
    said = first if first.mechanism is not None else other
    inferred = INFERRED in (first.basis, other.basis)  # what only the counts of one file suggest is declared by none
    basis = INFERRED if inferred else said.basis if said.mechanism is not None else first.basis
    return replace(first, mechanism=said.mechanism, basis=basis, adjusted=max(first.adjusted, other.adjusted))


def match_areas(frames: Sequence[pl.DataFrame], releases: Sequence[Release]) -> tuple[list[str], list[list[int]]]:
    """Return each area once, by a code that is the same in all formats; and for each file, which area each row is."""
    from unround.regions import identities

    place: dict[str, int] = {}
    bare: dict[str, str | None] = {}
    levels: dict[str, tuple[str, int]] = {}
    rows: list[list[int]] = []
    for number, (frame, release) in enumerate(zip(frames, releases, strict=True)):
        axes = release.areas
        level = frame["level"].fill_null("") if "level" in frame.columns else None
        if len(axes) == 1:
            codes = identities(frame[axes[0]].cast(str), level)
        else:
            codes = [" × ".join(map(str, row)) for row in frame.select(axes).iter_rows()]
        codes = [bare.get(code) or code if ":" not in code else code for code in codes]
        if level is not None:
            _refuse_mixed(codes, level.to_list(), levels, number, releases)
        rows.append([place.setdefault(code, len(place)) for code in codes])
        for code in codes:
            short = code.partition(":")[2] or code
            if short not in bare:
                bare[short] = code
            elif bare[short] != code:
                bare[short] = None  # two levels share it
    return list(place), rows


def _refuse_mixed(
    codes: Sequence[str], level: Sequence[str], levels: dict[str, tuple[str, int]], number: int, releases: Sequence[Release]
) -> None:
    """Refuse a code that is an area of one level here, and of another level in a file of the same format."""
    for code, name in zip(codes, level, strict=True):
        before, where = levels.setdefault(code, (name, number))
        if before and name and before != name and releases[where].file_format == releases[number].file_format:
            raise InputError(
                f"the code {code} stands for a {before!r} in {Path(releases[where].source).name} and for a {name!r} in "
                f"{Path(releases[number].source).name}: these cannot be distinguished. Audit the two files one by one, "
                f"or give "
                "the areas codes of their own."
            )


def with_truth(truth: Release, release: Release) -> Release:
    """Return a table of true counts in which counts that were published several times are repeated as often."""
    known = truth.index
    again = [
        (column, known[_TAIL.sub("", column.key)])
        for column in release.columns
        if column.key not in known and _TAIL.sub("", column.key) in known
    ]
    if not again:
        return truth
    places = np.array([*range(len(truth.columns)), *(at for _, at in again)], dtype=np.int64)
    wider: Callable[[Counts], Counts] = lambda counts: np.ascontiguousarray(counts[:, places])  # noqa: E731

    def read(progress: Progress) -> Iterator[Block]:
        for block in truth.blocks(progress):
            yield Block(block.areas, wider(block.counts))

    columns = (*truth.columns, *(replace(truth.columns[at], key=column.key, codes=column.codes) for column, at in again))
    return replace(truth, columns=columns, read=read, figures=())


FEW, SHARE = 12, 0.2
"""If fewer areas than this (and a smaller share of a file) are in several files, the files cannot be compared by them."""


def join(releases: Sequence[Release], matches: Sequence[Match] = (), progress: Progress = lambda _: None) -> Release:
    """Return several releases as one: each area once, and each count as often as it was published.

    Where an area is in several files, the first published number of a count goes under its key, the second under the same
    key with "@2", and so on; each of these is proposed to be the same count, and the data decide whether it is, and whether
    it was rounded anew.
    """
    if len(releases) == 1:
        return releases[0]
    _refuse(releases)
    matches = (*matches, *(match for release in releases for match in release.decisions.matches))
    slots = match_columns(releases, matches)
    stored = _stored(releases, progress)
    frames = [spool.areas for spool in stored]
    names, places = match_areas(frames, releases)
    rows = _rows(places, len(names))
    _refuse_strangers(slots, rows, releases)
    areas = _areas(frames, rows, releases)
    groups, columns, made = _layout(slots, rows)
    dropped, notes = Dropped(), _notes(slots, rows, releases, made)
    if figures := sum(len(release.figures) for release in releases):
        notes.append(
            f"{figures:,} rates, means and medians are left out: what a figure was computed from is told from the counts of "
            "its own file. To use them, audit that file by itself."
        )
    first = releases[0]

    def read(step: Progress) -> Iterator[Block]:
        was_told = dropped.told
        done = 0
        for block in merged(stored, areas, rows, groups, len(columns), dropped):
            yield block
            done += len(block.counts)
            step(size * done // max(1, areas.height))
        if dropped.areas and not was_told:
            notes.append(
                f"{dropped.areas:,} {'area is' if dropped.areas == 1 else 'areas are'} in several files, too few to "
                f"compare the "
                f"files by: the numbers of the first file are used; {dropped.different:,} of the {dropped.counts:,} "
                "other numbers differ from them."
            )

    size = sum(release.size for release in releases)
    return Release(
        source=" + ".join(release.source for release in releases),
        file_format=" + ".join(dict.fromkeys(release.file_format for release in releases)),
        columns=tuple(columns),
        axes=first.axes,
        areas=first.areas,
        read=read,
        proposals=tuple(_proposals(releases, slots, made)),
        size=size,
        product="; ".join(dict.fromkeys(release.product for release in releases if release.product)) or None,
        left_out=_left_out(releases),
        notes=notes,
        decisions=Decisions(keys=dict(ChainMap(*(dict(release.decisions.keys) for release in releases))), matches=matches),
    )


def _refuse(releases: Sequence[Release]) -> None:
    """Refuse files whose cells have different axes, or that are given twice."""
    first = releases[0]
    for release in releases[1:]:
        if len(release.axes) != len(first.axes) or len(release.areas) != len(first.areas):
            raise InputError(
                f"{_name(release)} gives counts by {', '.join((*release.areas, *release.axes))}, and {_name(first)} by "
                f"{', '.join((*first.areas, *first.axes))}: their cells cannot be matched. Describe both with the same axes "
                "in a TOML (see docs/linked.md), or audit them one by one."
            )
    paths = [Path(release.source).resolve() for release in releases if os.path.isfile(release.source)]  # frames are none
    twice = next((path for at, path in enumerate(paths) if path in paths[:at]), None)
    if twice is not None:
        raise InputError(f"{twice.name} is given twice. Name each file once.")


def _name(release: Release) -> str:
    return Path(release.source).name


def _rows(places: Sequence[Sequence[int]], areas: int) -> list[Places]:
    """Turn "which area is this row" into "which row is this area", -1 where a file does not have it."""
    by_file = []
    for place in places:
        rows = np.full(areas, -1, dtype=np.int64)
        rows[np.array(place, dtype=np.int64)] = np.arange(len(place))
        by_file.append(rows)
    return by_file


def _refuse_strangers(slots: Sequence[MatchedColumn], rows: Sequence[Places], releases: Sequence[Release]) -> None:
    """Refuse a file that shares neither a column nor an area with any other."""
    for number, release in reversed(list(enumerate(releases))):  # the first is what the others are joined to
        shares_columns = any(number in slot.columns and len(slot.columns) > 1 for slot in slots)
        shares_areas = any(((rows[number] >= 0) & (rows[other] >= 0)).any() for other in range(len(rows)) if other != number)
        if not shares_columns and not shares_areas:
            others = " or ".join(_name(other) for at, other in enumerate(releases) if at != number)
            mine = release.columns[0].key if release.columns else "none"
            raise InputError(
                f"{_name(release)} has neither an area nor a column in common with {others} (its first column is {mine!r}): "
                "nothing links their counts. Say which columns are the same with [[match]] in a description (see "
                "docs/linked.md), or audit the file on its own."
            )


def _areas(frames: Sequence[pl.DataFrame], rows: Sequence[Places], releases: Sequence[Release]) -> pl.DataFrame:
    """Return one frame of all areas; where files disagree, the first that says anything is used."""
    import polars as pl

    first = releases[0].areas
    joined: dict[str, pl.Series] = {}
    for frame, places, release in zip(frames, rows, releases, strict=True):
        renamed = dict(zip(release.areas, first, strict=True))
        there = pl.Series(np.where(places >= 0, places, 0))
        absent = pl.Series(places < 0)
        for name in frame.columns:
            values = frame[name].gather(there)
            values = values.set(absent, None).alias(renamed.get(name, name))
            before = joined.get(values.name)
            if before is not None and before.dtype != values.dtype:
                before, values = before.cast(pl.String), values.cast(pl.String)
            if before is not None and values.dtype == pl.String:
                before = before.set(before == "", None)
            joined[values.name] = values if before is None else before.zip_with(before.is_not_null(), values)
    frame = pl.DataFrame(joined)
    return frame.with_columns(pl.col(name).fill_null("") for name in ("level", "region_name") if name in frame.columns)


Made = dict[int, list[int]]
"""For every count (by its position among the matched columns) its columns in the joined release: the first number, the
second, …."""


def _layout(slots: Sequence[MatchedColumn], rows: Sequence[Places]) -> tuple[list[FileGroup], list[Column], Made]:
    """Lay out the columns: counts in the order of the files, followed by the counts that are repeated."""
    depths: dict[tuple[int, ...], int] = {}
    together: dict[tuple[int, ...], list[int]] = {}
    for at, slot in enumerate(slots):
        together.setdefault(tuple(sorted(slot.columns)), []).append(at)
    for files in together:
        depths[files] = _depth(files, rows)
    columns = [slot.column for slot in slots]
    made: Made = {at: [at] for at in range(len(slots))}
    for again in range(2, max(depths.values(), default=1) + 1):
        for at, slot in enumerate(slots):
            if depths[tuple(sorted(slot.columns))] >= again:
                made[at].append(len(columns))
                columns.append(_again(slot.column, again, {column.key for column in columns[: len(slots)]}))
    groups = [
        FileGroup(
            files,
            np.array([[slots[at].columns[file] for at in ats] for file in files], dtype=np.int64),
            np.array([[made[at][layer] for at in ats] for layer in range(depths[files])], dtype=np.int64),
        )
        for files, ats in together.items()
    ]
    return groups, columns, made


def _depth(files: tuple[int, ...], rows: Sequence[Places]) -> int:
    """Return how many times counts that are in these files are published in more than a few areas."""
    number = np.sum([rows[file] >= 0 for file in files], axis=0)
    smallest = min(int((rows[file] >= 0).sum()) for file in files)
    depth = 1
    while (many := int((number > depth).sum())) and (many >= FEW or many >= SHARE * smallest):
        depth += 1
    return depth


def _again(column: Column, number: int, taken: set[str]) -> Column:
    """Return the column for the second (third, …) published number of a count."""
    tail = f"@{number}"
    while f"{column.key}{tail}" in taken:
        tail += "'"
    block = f"{column.block} {tail}" if column.block else ""
    return replace(column, key=f"{column.key}{tail}", codes=(f"{column.codes[0]}{tail}", *column.codes[1:]), block=block)


def _proposals(releases: Sequence[Release], slots: Sequence[MatchedColumn], made: Made) -> Iterator[Proposal]:
    """Propose what the files propose, in the columns of the first numbers and of the later ones; and that these are one."""
    where = {(file, at): place for place, slot in enumerate(slots) for file, at in slot.columns.items()}
    seen = set[tuple[object, ...]]()
    for number, release in enumerate(releases):
        for proposal in release.proposals:
            cells = [made[where[number, at]] for at in (proposal.total, *proposal.parts)]
            for layer in range(max(map(len, cells))):
                total, *parts = (columns[min(layer, len(columns) - 1)] for columns in cells)
                if (sum_ := (total, *parts, proposal.use, proposal.alike)) not in seen:
                    seen.add(sum_)
                    yield Proposal(total, tuple(parts), proposal.origin, use=proposal.use, alike=proposal.alike)
    for place, columns in made.items():
        declared = set(slots[place].how.values()) <= {OWN, SAID}
        for again in columns[1:]:
            yield Proposal(again, (columns[0],), "files", declared=declared)
    for place, slot in enumerate(slots):
        if slot.twin is not None:
            first = next(at for at, other in enumerate(slots) if other is slot.twin)
            yield Proposal(made[place][0], (made[first][0],), "files")


def _left_out(releases: Sequence[Release]) -> dict[str, tuple[str, ...]]:
    by_reason: dict[str, dict[str, None]] = {}
    for release in releases:
        for why, labels in release.left_out.items():
            by_reason.setdefault(why, {}).update(dict.fromkeys(labels))
    return {why: tuple(labels) for why, labels in by_reason.items()}


def _notes(slots: Sequence[MatchedColumn], rows: Sequence[Places], releases: Sequence[Release], made: Made) -> list[str]:
    """Say how the files fit together, and what each of them notes."""
    notes = []
    for number, release in enumerate(releases):
        notes += [f"{_name(release)}: {note}" for note in release.notes]
        if number:
            before = np.any([rows[other] >= 0 for other in range(number)], axis=0)
            shared = int(((rows[number] >= 0) & before).sum())
            how = [slot.how[number] for slot in slots if number in slot.columns and slot.how[number] != "own"]
            by = {what: how.count(what) for what in ("key", "label", SAID) if what in how}
            matched = ", ".join(f"{many:,} by {what}" for what, many in by.items()) or "none"
            notes.append(
                f"{_name(release)}: {shared:,} of its {int((rows[number] >= 0).sum()):,} areas are also in earlier files, "
                f"and so are {len(how):,} of its {len(release.columns):,} columns ({matched})."
            )
    again = sum(len(columns) - 1 for columns in made.values())
    if again:
        notes.append(
            f"{again:,} columns with @2 (or @3 …) in their keys repeat counts that earlier files publish for the same "
            f"areas: "
            "the second (or third …) published number of each."
        )
    return notes


Places = NDArray[np.int64]

_CELLS = 1_000_000
"""Counts that are processed at once."""
_RANK = {SUPPRESSED: 3, UNRELIABLE: 2, NOT_APPLICABLE: 1, NOT_AVAILABLE: -1}
"""Of several reasons why a count is absent, the most informative first: that it exists, and is hidden."""


def _stored(releases: Sequence[Release], progress: Progress) -> list[Spool]:
    """Read each file once, into a folder that is removed when its counts are no longer needed."""
    with naming_temporary_folder():
        folder = Path(tempfile.mkdtemp(prefix="unround-join-"))
    spools, before = list[Spool](), 0
    for number, release in enumerate(releases):
        spool = Spool(folder / f"{number}.bin", len(release.columns))
        with naming_temporary_folder():
            for block in release.blocks(lambda done, before=before: progress(before + done)):  # type: ignore[misc]
                spool.add(Block(block.areas, block.counts))
        spool.close(release.areas, _name(release))
        before += release.size
        spools.append(spool)
    weakref.finalize(spools[0], shutil.rmtree, folder, ignore_errors=True)
    return spools


def _counts(spool: Spool, rows: Places, columns: Places) -> Counts:
    """Return some counts of some areas of a file; nothing available where a row is -1."""
    there = rows >= 0
    counts = np.full((len(rows), len(columns)), NOT_AVAILABLE, dtype=np.int32)
    if there.any() and len(columns):
        counts[there] = spool.pick(rows[there])[:, columns]
    return counts


@dataclass(frozen=True, slots=True, eq=False)
class FileGroup:
    """Counts that are in the same files, how often an area can show them, and where they go.

    - `files`: The files.
    - `columns`: Files × counts: the column of each.
    - `places`: Depth × counts: the columns of the joined release for the first number that is published, the second, ….
    """

    files: tuple[int, ...]
    columns: Places
    places: Places


@dataclass(eq=False)
class Dropped:
    """Published numbers for which there was no room: how many, and how many of them differed."""

    areas: int = 0
    counts: int = 0
    different: int = 0
    told: bool = field(default=False, repr=False)


def merged(
    stored: Sequence[Spool],
    areas: pl.DataFrame,
    rows: Sequence[Places],
    groups: Sequence[FileGroup],
    columns: int,
    dropped: Dropped,
) -> Iterator[Block]:
    """Go through the areas of all files."""
    at_once = max(16, min(4096, _CELLS // max(1, columns)))
    first_time = not dropped.told
    for start in range(0, areas.height, at_once):
        here = slice(start, min(start + at_once, areas.height))
        counts = np.full((here.stop - start, columns), NOT_AVAILABLE, dtype=np.int32)
        lost = np.zeros(here.stop - start, dtype=np.bool_)
        for group in groups:
            _fill(
                counts,
                group,
                [_counts(stored[f], rows[f][here], c) for f, c in zip(group.files, group.columns, strict=True)],
                lost,
                dropped if first_time else Dropped(),
            )
        if first_time:
            dropped.areas += int(lost.sum())
        yield Block(areas[here], counts)
    dropped.told = True


def _fill(counts: Counts, group: FileGroup, published: Sequence[Counts], lost: NDArray[np.bool_], dropped: Dropped) -> None:
    """Put what files publish of some counts into their places: the first number first, and so on."""
    depth = len(group.places)
    if len(published) == 1:
        counts[:, group.places[0]] = published[0]
        return
    layers = np.full((depth, *published[0].shape), NOT_AVAILABLE, dtype=np.int32)
    number = np.zeros(published[0].shape, dtype=np.int64)
    for values in published:
        shown = values > ABSENT
        for layer in range(depth):
            new = shown & (number == layer)
            layers[layer][new] = values[new]
        over = shown & (number >= depth)
        if over.any():
            lost |= over.any(axis=1)
            dropped.counts += int(over.sum())
            dropped.different += int((over & (values != layers[0])).sum())
        number += shown
    for values in published:  # where nobody publishes a number, the best reason for that
        absent = (number == 0) & (_rank(values) > _rank(layers[0]))
        layers[0][absent] = values[absent]
    for layer, places in enumerate(group.places):
        counts[:, places] = layers[layer]


def _rank(values: Counts) -> NDArray[np.int8]:
    ranks = np.zeros(values.shape, dtype=np.int8)
    for code, rank in _RANK.items():
        ranks[values == code] = rank
    return ranks
