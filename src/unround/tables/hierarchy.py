"""Which codes are part of others, in a file of its own.

Hierarchies of an axis are parent,child pairs, or the `@`-indented text that τ-ARGUS users have. Files of areas are pairs of
`child,parent`; or wide, with a column of codes for every level and a line for every smallest area
(`SA1_2018_NAME,SA2_2018_CODE,…,TA_2018_CODE,…`), in which larger areas repeat.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from unround.errors import InputError
from unround.release import Block, Progress, Release
from unround.small_files import small_text
from unround.tables.delimited import read_table
from unround.tables.description import near
from unround.tables.source import Source

Children = dict[str, list[str]]
"""The codes under each code, in the order of the file. Codes on top stand under ""."""

LARGEST = 1 << 27
"""Bytes of a hierarchy: codes for every area of the world would fit."""

_HEADERS = {("parent", "child"): False, ("child", "parent"): True}


def read_hierarchy(path: Path, codes: Collection[str], total: str | None = None) -> Children:
    """Read a hierarchy."""
    text = small_text(path, "a hierarchy", LARGEST, fallback="cp1252")
    pairs = _indented(text, path) if path.suffix.lower() == ".hrc" else _pairs(text, path, codes)
    if not pairs:
        raise InputError(
            f"{path} holds no codes. Write one parent,child pair per line, or one code per line with @ for depth."
        )
    return _tree(pairs, path, total)


def _indented(text: str, path: Path) -> list[tuple[str, str, int]]:
    above: list[str] = []
    pairs = []
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare:
            continue
        code = bare.lstrip("@").strip()
        depth = len(bare) - len(bare.lstrip("@"))
        if depth > len(above) or not code:
            wrong = (
                f"{code!r} is at depth {depth}, but nothing above it is at depth {depth - 1}."
                if code
                else "no code follows the @."
            )
            raise InputError(wrong, source=text, line=number, column=1, where=str(path))
        del above[depth:]
        pairs.append((above[-1] if above else "", code, number))
        above.append(code)
    return pairs


def _pairs(text: str, path: Path, codes: Collection[str]) -> list[tuple[str, str, int]]:
    lines = text.splitlines()
    first = lines[0] if lines else ""
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise InputError(
            f"{path}, line {reader.line_num}: {error}. Look for a quote before that line that is not closed."
        ) from None
    for number, row in rows:
        if len(row) != 2 or not row[1]:
            raise InputError("a line needs a parent and a child.", source=text, line=number, column=1, where=str(path))
    if not rows:
        return []
    header = (rows[0][1][0].lower(), rows[0][1][1].lower())
    turned = _HEADERS.get(header, False)
    if header in _HEADERS or not set(rows[0][1]) & set(codes):
        rows = rows[1:]
    return [(row[1], row[0], number) if turned else (row[0], row[1], number) for number, row in rows]


def _tree(pairs: list[tuple[str, str, int]], path: Path, total: str | None) -> Children:
    parent: dict[str, str] = {}
    for above, code, number in pairs:
        if code in parent and parent[code] != above:
            raise InputError(
                f"{path}, line {number}: {code!r} is listed under both {parent[code]!r} and {above!r}. In a hierarchy "
                f"a code "
                "has one parent; write other sums as sums = [{ total = …, parts = […] }]."
            )
        if code in parent:
            raise InputError(f"{path}, line {number}: {code!r} is listed under {above!r} twice. Delete one of the lines.")
        parent[code] = above
    top = [above for above, _, _ in pairs if above and above not in parent]
    for code in dict.fromkeys(top):
        parent[code] = ""
    if total is not None and total not in parent:
        parent = {total: ""} | {code: above or total for code, above in parent.items()}
    if circle := [code for code, above in parent.items() if code == above] or _circle(parent):
        raise InputError(f"{path}: {circle[0]!r} is above itself. Delete one of the lines that say so.")
    children: Children = {}
    for code, above in parent.items():
        children.setdefault(above, []).append(code)
    return children


def fit(children: Children, codes: Collection[str], where: str) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Return the sums of a hierarchy among the codes that a table has, and what to tell about it.

    A subtotal that was not published makes room for its own parts. A code without parts that was not published breaks
    the sum above it, which the file is to say rather than the reader to guess.
    """
    have = set(codes)
    listed = {code for under in children.values() for code in under}
    gone = sorted(code for code in listed if code not in have and code not in children)
    if gone:
        shown = ", ".join(map(repr, gone[:5])) + (f" and {len(gone) - 5} more" if len(gone) > 5 else "")
        raise InputError(
            f"{where} has codes that do not occur in the data: {shown}.{near(gone[0], have)} Correct or delete them."
        )
    notes = []
    skipped = sorted(listed - have)
    if skipped:
        notes.append(f"{where}: not in the data and therefore skipped: {', '.join(skipped)}.")
    outside = sorted(have - listed)
    if outside and "" in children and len(children[""]) > 1:
        shown = ", ".join(map(repr, outside[:5]))
        notes.append(f'{where} does not mention {shown}. If one of them is the overall total, say so: total = "…".')

    def below(code: str) -> list[str]:
        parts, waiting = list[str](), list(reversed(children.get(code, [])))
        while waiting:
            child = waiting.pop()
            if child in have:
                parts.append(child)
            else:
                waiting += reversed(children.get(child, []))
        return parts

    return {code: tuple(below(code)) for code in children if code in have}, notes


def parents(sums: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return what each part is a part of; where a code is part of several totals, the first."""
    above: dict[str, str] = {}
    for total, parts in sums.items():
        for part in parts:
            above.setdefault(part, total)
    return above


_CODES = re.compile(r"(.+?)_?(?:\d{4}_?)?(?:CODE|UID|DGUID|ID)$", re.IGNORECASE)
_SMALLEST = re.compile(r"(SA1|MB|DB)_.*NAME$", re.IGNORECASE)
"""Smallest areas have no names: their files call the code one."""

Around = Mapping[str, str | None]
"""The areas that one lies in, by level, the smallest first; None where it lies in several of a level."""


@dataclass(frozen=True, slots=True, eq=False)
class AreasFile:
    """Which area lies in which.

    - `path`: The file.
    - `around`: By level (the name of the column, in short) and code, what is around it. A file of pairs has one level,
      "".
    """

    path: Path
    around: Mapping[str, Mapping[str, Around]]

    @classmethod
    def open(cls, path: str | Path) -> AreasFile:
        """Read an areas file."""
        table = read_table(Source(path), "save it as CSV").frame
        names = {name.lower(): name for name in table.columns}
        if {"child", "parent"} <= names.keys():
            pairs = table.select(pl.col(names["child"]).alias("child"), pl.col(names["parent"]).alias("parent"))
            return cls(Path(path), {"": _area_pairs(pairs, Path(path))})
        columns = _levels(table)
        if len(columns) < 2:
            raise InputError(
                f"{path} does not say which area lies within which: it needs columns child and parent, or a column of codes "
                f"for each level, such as SA2_CODE and TA_CODE; it has {', '.join(table.columns[:8])}."
            )
        return cls(Path(path), _wide(table, columns))

    def find(self, code: str, level: str) -> Around | None:
        """Return what is around an area; None where the file has it not."""
        areas = self.around.get(level.strip().lower())
        if areas is not None and code in areas:
            return areas[code]
        return next((known[code] for known in self.around.values() if code in known), None)


def _area_pairs(table: pl.DataFrame, path: Path) -> dict[str, Around]:
    parent_of: dict[str, Around] = {}
    for child, parent in table.with_columns(pl.all().str.strip_chars()).drop_nulls().iter_rows():
        before = parent_of.setdefault(child, {"parent": parent})
        if before["parent"] != parent:
            raise InputError(
                f"{path} says that {child} lies within {before['parent']} and within {parent}: an area has one parent. "
                "Delete one of the two lines."
            )
    if not parent_of:
        raise InputError(
            f"{path} has a header but no pairs of child and parent; add one line per area, or leave the file out."
        )
    if circle := _circle({child: around["parent"] for child, around in parent_of.items()}):
        raise InputError(
            f"{path} contains a circle: {' lies within '.join(circle)}. Delete or reverse the line that is wrong."
        )
    return {parent: {} for parent in table["parent"].drop_nulls().str.strip_chars().unique()} | parent_of


def _circle(inside: Mapping[str, str | None]) -> list[str]:
    """Return areas that lie in each other in turn, the first once more at the end; an area may name itself."""
    settled = set[str]()
    for start in inside:
        way, at = dict[str, None](), start
        while at not in settled and at not in way:
            way[at] = None
            above = inside.get(at)
            if above is None or above == at:
                break
            at = above
        else:
            if at in way:
                passed = list(way)
                return [*passed[passed.index(at) :], at]
        settled.update(way)
    return []


def _levels(table: pl.DataFrame) -> dict[str, str]:
    """Return the columns of codes by level, those of the smallest areas first."""
    columns = dict[str, str]()
    for name in table.columns:
        if matched := _SMALLEST.match(name) or _CODES.match(name):
            columns.setdefault(matched[1].lower(), name)
    return dict(sorted(columns.items(), key=lambda item: -table[item[1]].n_unique()))


def _wide(table: pl.DataFrame, columns: Mapping[str, str]) -> dict[str, dict[str, Around]]:
    levels = list(columns)
    around: dict[str, dict[str, Around]] = {}
    for at, level in enumerate(levels[:-1]):
        above = levels[at + 1 :]
        known = (
            table.select(pl.col(columns[name]).str.strip_chars().alias(name) for name in (level, *above))
            .drop_nulls(level)
            .group_by(level)
            .agg(pl.when(pl.col(name).n_unique() == 1).then(pl.col(name).first()).alias(name) for name in above)
        )
        around[level] = {row[0]: dict(zip(above, row[1:], strict=True)) for row in known.iter_rows()}
    around[levels[-1]] = {code: {} for code in table[columns[levels[-1]]].drop_nulls().unique().to_list()}
    return around


def with_areas(release: Release, path: str | Path) -> Release:
    """Return a release whose areas also say what a file of areas says of them.

    Every level of the file becomes a column of the areas' frame, and the next larger area the `parent`.
    """
    known = AreasFile.open(path)
    notes = list(release.notes)

    def read(progress: Progress) -> Iterator[Block]:
        missing = seen = split = 0
        for block in release.blocks(progress):
            frame, unknown, several = _attach(block.areas, known, release.areas)
            missing, seen, split = missing + unknown, seen + block.areas.height, split + several
            yield Block(frame, block.counts, block.figures)
        if missing == seen:
            raise InputError(
                f"{known.path} has none of the areas in the table; give the file that lists them, or leave it out."
            )
        notes.extend(note for note in release.notes if note not in notes)
        remarks = []
        if missing:
            remarks.append(f"{missing:,} areas are not in {known.path.name}, which therefore does not say where they lie.")
        if split:
            remarks.append(
                f"{split:,} areas lie within more than one larger area of the same level in {known.path.name}; they "
                f"are given no parent."
            )
        notes.extend(note for note in remarks if note not in notes)

    return replace(release, read=read, notes=notes)


def _attach(frame: pl.DataFrame, known: AreasFile, axes: tuple[str, ...]) -> tuple[pl.DataFrame, int, int]:
    """Add to some areas what is around them; also count those that the file has not, and those that lie in several."""
    from unround.regions import identities

    codes = frame[axes[0]].cast(pl.String).to_list()
    levels = frame["level"].fill_null("").to_list() if "level" in frame.columns else [""] * len(codes)
    short = [
        identity.partition(":")[2] or identity
        for identity in identities(frame[axes[0]].cast(pl.String), pl.Series(levels, dtype=pl.String))
    ]
    places: list[Around | None] = []
    for code, bare, level in zip(codes, short, levels, strict=True):
        exact = known.find(code, level)
        places.append(known.find(bare, level) if exact is None and bare != code else exact)
    above = list(dict.fromkeys(level for around in known.around.values() for place in around.values() for level in place))
    columns = {level: [None if place is None else place.get(level) for place in places] for level in above}
    if "parent" not in columns:
        columns["parent"] = [None if place is None else next(iter(place.values()), None) for place in places]
    for name, values in columns.items():
        series = pl.Series(name, values, dtype=pl.String)
        if name in frame.columns:
            series = series.zip_with(series.is_not_null(), frame[name].cast(pl.String)).alias(name)
        frame = frame.with_columns(series)
    split = sum(place is not None and any(value is None for value in place.values()) for place in places)
    return frame, places.count(None), split
