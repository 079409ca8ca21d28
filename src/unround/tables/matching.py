"""Which columns of several files are one count, and which rows are one area."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unround.errors import InputError
from unround.mechanisms import Exact
from unround.release import Block, Column, Counts, Match, Release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl

    from unround.release import Progress

_TAIL = re.compile(r"@(\d+)$")


@dataclass(eq=False)
class MatchedColumn:
    """One count that areas can have; `columns` gives its column in each file that has it, `how` what matched it."""

    column: Column
    columns: dict[int, int]
    how: dict[int, str]


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
            if slot is not None and (number in slot.columns or not _compatible(slot.column, column)):
                slot = None
            if slot is None:
                key = column.key
                if key in by_key:
                    tail = f"@file{number + 1}"  # the same key for something else
                    key += tail
                    column = replace(column, key=key, codes=(f"{column.codes[0]}{tail}", *column.codes[1:]))
                slot = by_key[key] = MatchedColumn(column, {}, {})
                slots.append(slot)
                how = "own"
            slot.columns[number], slot.how[number] = at, how
            slot.column = _joined(slot.column, column)
    return slots


def _said(releases: Sequence[Release], matches: Sequence[Match]) -> list[dict[str, str]]:
    """Return, for every file, what the user says of its columns: key of the other, or "" for none."""
    said: list[dict[str, str]] = [{} for _ in releases]
    for one in matches:
        named = [at for at, release in enumerate(releases) if _is_called(release, one.file)]
        if len(named) != 1:
            files = ", ".join(Path(release.source).name for release in releases)
            which = "names none" if not named else "names several"
            raise InputError(f"[[match]] with file = {one.file!r} {which} of the files. They are {files}.")
        own = releases[named[0]]
        earlier = {column.key for release in releases[: named[0]] for column in release.columns}
        pairs = dict(one.columns)
        for code, other in one.characteristics.items():
            found = [column for column in own.columns if column.codes[0] == code]
            if not found:
                raise _unknown(code, own, [column.codes[0] for column in own.columns])
            pairs |= {column.key: column.key.replace(code, other, 1) if other else "" for column in found}
        for key, other in pairs.items():
            if key not in own.index:
                raise _unknown(key, own, list(own.index))
            if other and other not in earlier:
                if key in one.columns:
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
        return by_key.get(said[column.key]), "the plan"
    same = by_key.get(column.key)
    if same is not None and (_plain(same.column.label) == _plain(column.label) or _is_bare(column) or _is_bare(same.column)):
        return same, "key"
    return labels.get((_plain(column.label), *column.codes[1:])), "label"


def _by_label(slots: Sequence[MatchedColumn], release: Release) -> dict[tuple[str, ...], MatchedColumn]:
    """Return the counts so far by label and sex, where both these and the columns of a file have it only once."""
    keys = {column.key for column in release.columns}
    own = Counter((_plain(column.label), *column.codes[1:]) for column in release.columns)
    found: dict[tuple[str, ...], list[MatchedColumn]] = {}
    for slot in slots:
        found.setdefault((_plain(slot.column.label), *slot.column.codes[1:]), []).append(slot)
    return {
        label: few[0]
        for label, few in found.items()
        if len(few) == 1 and own[label] == 1 and few[0].column.key not in keys and label[0]
    }


def _is_bare(column: Column) -> bool:
    """Whether a column has no label that says more than its key does."""
    return column.label in ("", column.key, column.codes[0])


def _plain(label: str) -> str:
    """Return a label without what formats add to it."""
    text = re.sub(r"^total\s+-\s+|\s+-\s+(100% data|25% sample data)$", "", label.strip().lower())
    return re.sub(r"[\s,]+", " ", text).strip()


def _compatible(one: Column, other: Column) -> bool:
    """Whether two columns can have one name: not if they may have been published in different ways.

    Where one file says that its counts are exact, and another says nothing, only the one's are.
    """
    known = [how for how in (one.mechanism, other.mechanism) if how is not None]
    return one.mechanism == other.mechanism or (len(known) < 2 and Exact() not in known)


def _joined(one: Column, other: Column) -> Column:
    return replace(one, mechanism=one.mechanism or other.mechanism, adjusted=max(one.adjusted, other.adjusted))


def match_areas(frames: Sequence[pl.DataFrame], releases: Sequence[Release]) -> tuple[list[str], list[list[int]]]:
    """Return each area once, by a code that is the same in all formats; and for each file, which area each row is.

    Raises `InputError` where one code stands for areas of different levels.
    """
    from unround.regions import identities

    place: dict[str, int] = {}
    bare: dict[str, str | None] = {}
    levels: dict[str, tuple[str, int]] = {}
    rows: list[list[int]] = []
    for number, (frame, release) in enumerate(zip(frames, releases, strict=True)):
        axes = release.areas
        level = frame["level"].fill_null("") if "level" in frame.columns else None
        if len(axes) == 1:
            own = identities(frame[axes[0]].cast(str), level)
        else:
            own = [" × ".join(map(str, row)) for row in frame.select(axes).iter_rows()]
        own = [bare.get(code) or code if ":" not in code else code for code in own]
        if level is not None:
            _refuse_mixed(own, level.to_list(), levels, number, releases)
        rows.append([place.setdefault(code, len(place)) for code in own])
        for code in own:
            short = code.partition(":")[2] or code
            if short not in bare:
                bare[short] = code
            elif bare[short] != code:
                bare[short] = None  # two levels share it
    return list(place), rows


def _refuse_mixed(
    own: Sequence[str],
    level: Sequence[str],
    levels: dict[str, tuple[str, int]],
    number: int,
    releases: Sequence[Release],
) -> None:
    """Refuse a code that is an area of one level here, and of another level in a file of the same format."""
    for code, name in zip(own, level, strict=True):
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
