"""The Canadian bulk format: Statistics Canada's census profile, one line per characteristic and area, of any size.

The columns are found by their names in the first line, except the seven that are all called SYMBOL: each belongs to the
column before it. What an area can have is decided from the first areas; the rest of the file then streams through, some
hundred areas at a time, and nothing in it that does not fit passes without an error or a note.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError
from unround.figures import Figure
from unround.machine import processors
from unround.regions import describe, with_limits
from unround.release import (
    ABSENT,
    FIGURE_ABSENT,
    NOT_APPLICABLE,
    NOT_AVAILABLE,
    UNREADABLE,
    Block,
    Column,
    Counts,
    FigureValues,
    Progress,
    Release,
)
from unround.small_files import LONGEST_NAME
from unround.tables.profile import (
    COUNT,
    TableLine,
    as_figures,
    by_sex,
    census,
    columns_of,
    indented,
    profile_lines,
    told_apart,
    universes,
)
from unround.tables.source import MOST_AREAS, Source, too_many_areas
from unround.tables.symbols import as_counts

NAME = "statcan"
SEXES = ("total", "men", "women")
SAMPLE = 1 << 26
"""Bytes, at most, from which to tell what an area has."""
LAST_ID = 1_000_000
"""There is room for every characteristic up to the last: a number that is not a number of one must not ask for gigabytes."""
DECIMALS = 0.25
"""If so large a share of a line's numbers have decimals, it is not a count, whatever it is called."""

_FIELDS = {
    "year": "CENSUS_YEAR", "region": "DGUID", "code": "ALT_GEO_CODE", "level": "GEO_LEVEL", "name": "GEO_NAME",
    "id": "CHARACTERISTIC_ID", "label": "CHARACTERISTIC_NAME",
}  # fmt: skip
_ID, _SYMBOL = "CHARACTERISTIC_ID", "SYMBOL"
_COUNTS = ("C1_COUNT_TOTAL", "C2_COUNT_MEN+", "C3_COUNT_WOMEN+")
_NEEDED = (*(name for called, name in _FIELDS.items() if called != "code"), _COUNTS[0])


def load(source: Source) -> Release:
    """Read what an area has; the counts come with the blocks."""
    header = _header(source)
    sample, complete = _sample(source, header)
    lines, alike = _lines(sample, source)
    if not alike and not complete:
        lines = _all_lines(source, header)
    year = str(sample["year"][0]).strip()
    columns, figures, taken, left_out = _take(header, sample, lines, year)
    notes = list(source.notes)
    return census(
        source,
        NAME,
        columns,
        read=partial(blocks, source, taken, notes),
        proposals=(*indented(columns), *by_sex(columns), *universes(columns, year)),
        product=f"Statistics Canada, {year} Census of Population, Census Profile",
        figures=figures,
        left_out=left_out,
        notes=notes,
    )


def _header(source: Source) -> BulkHeader:
    first = source.head().partition("\n")[0].rstrip("\r")
    names = [name.strip() for name in next(csv.reader([first], delimiter=source.delimiter))]
    at = {name: place for place, name in reversed(list(enumerate(names)))}
    missing = [name for name in _NEEDED if name not in at]
    if missing:
        raise InputError(
            f"{source.path} does not have the column {missing[0]} of a bulk file; its first line is\n    {first[:200]}\n"
            "Give the file as downloaded, with its columns separated by commas or tabs."
        )
    men, women = (name in at for name in _COUNTS[1:])
    if men != women:  # a column taken for its neighbour would be men for women
        raise InputError(f"{source.path} has {_COUNTS[2 - men]} but not {_COUNTS[1 + men]}; give the file as downloaded.")
    before = [_FIELDS[called] for called in DESCRIBED if at.get(_FIELDS[called], -1) > at[_ID]]
    if before:
        raise InputError(f"{source.path} has {before[0]} after {_ID}; give the file with its columns as downloaded.")

    cells = [at[name] for name in _COUNTS if name in at]
    signs = [place + 1 if names[place + 1 : place + 2] == [_SYMBOL] else -1 for place in cells]
    known = {called: at[name] for called, name in _FIELDS.items() if name in at}
    return BulkHeader(len(names), source.delimiter, known, tuple(zip(cells, signs, strict=True)))


# What an area has


def _frame(chunk: bytes, header: BulkHeader, wanted: Mapping[str, int], source: Source) -> pl.DataFrame:
    """Read some columns of a chunk, all as text."""
    try:
        frame = pl.read_csv(
            chunk,
            has_header=False,
            schema={str(at): pl.String for at in range(header.width)},
            columns=sorted(set(wanted.values())),
            separator=header.delimiter,
        )
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"{source.path} has lines that do not match its first one ({str(error).splitlines()[0]}); download it again."
        ) from None
    return frame.select(pl.col(str(at)).alias(name) for name, at in wanted.items()).drop_nulls("region")


def _body(source: Source) -> Iterator[bytes]:
    """Go through the file without its first line."""
    for number, chunk in enumerate(source.chunks(size=CHUNK)):
        body = chunk if number else chunk[chunk.index(b"\n") + 1 :]
        # Polars would take an empty line at the beginning for a table of one column.
        if body := body.lstrip(b"\r\n"):
            yield body


def _sample(source: Source, header: BulkHeader) -> tuple[pl.DataFrame, bool]:
    """Read the first areas, whole; say whether they are all."""
    wanted = {name: header.at[name] for name in ("region", "id", "label", "year")}
    for sex, places in enumerate(header.cells):
        wanted |= {f"{what} {sex}": at for what, at in zip(("count", "symbol"), places, strict=True) if at >= 0}
    chunks = _body(source)
    sample, size = pl.DataFrame(), 0
    while (chunk := next(chunks, None)) is not None:
        sample = sample.vstack(_frame(chunk, header, wanted, source)) if size else _frame(chunk, header, wanted, source)
        size += len(chunk)
        if len(sample) and sample["region"][-1] != sample["region"][0]:
            # The last area may go on in the next chunk, if there is one.
            complete = next(chunks, None) is None
            return (sample if complete else sample.filter(pl.col("region") != sample["region"][-1])), complete
        if size > SAMPLE:
            raise InputError(f"{source.path} has no second area in its first {SAMPLE:,} bytes; download it again.")
    if sample.is_empty():
        raise InputError(f"{source.path} has a first line, but no counts below it; download it again.")
    return sample, True


def _lines(sample: pl.DataFrame, source: Source) -> tuple[list[TableLine], bool]:
    """Return the characteristics in the order of the file, and whether every area has the same ones."""
    distinct = sample.unique("id", keep="first", maintain_order=True)
    first = sample.filter(pl.col("region") == sample["region"][0])
    alike = len(first) == len(distinct) and len(sample) == sample["region"].n_unique() * len(distinct)
    rows = [_checked(number, label, source) for number, label in distinct.select("id", "label").iter_rows()]
    # Where areas differ, the order of the numbers is the order of the table.
    return _profile(rows if len(first) == len(distinct) else sorted(rows, key=lambda row: row[0])), alike


def _profile(rows: Iterable[tuple[int, str]]) -> list[TableLine]:
    return profile_lines((str(number), label) for number, label in rows)


def _checked(number: str | None, label: str | None, source: Source) -> tuple[int, str]:
    if number is None or not number.isascii() or not number.isdigit() or len(number) > 9 or int(number) > LAST_ID:
        shown = number if number is None or len(number) < 40 else f"{number[:39]}…"
        raise InputError(
            f"{source.path} has a line whose {_ID} is {shown!r}, not a number up to {LAST_ID:,}; download it again."
        )
    if label is not None and len(label) > LONGEST_NAME:
        raise InputError(
            f"{source.path}: the name of characteristic {number} has {len(label):,} characters. Look there for a quote that "
            "is not closed, or download the file again."
        )
    return int(number), label or ""


def _all_lines(source: Source, header: BulkHeader) -> list[TableLine]:
    """Go through the whole file for its characteristics: areas differ in what they have."""
    wanted = {name: header.at[name] for name in ("region", "id", "label")}
    labels: dict[int, str] = {}
    for chunk in _body(source):
        for number, label in _frame(chunk, header, wanted, source).unique("id").select("id", "label").iter_rows():
            labels.setdefault(*_checked(number, label, source))
    return _profile(sorted(labels.items()))


# What is taken of it


def _take(
    header: BulkHeader, sample: pl.DataFrame, lines: Sequence[TableLine], year: str
) -> tuple[tuple[Column, ...], tuple[Figure, ...], TakenRows, dict[str, tuple[str, ...]]]:
    """Decide which cells are columns of counts, and which are figures."""
    fractions, nothing = _looked_at(header, sample, lines)
    lines, figures, left_out = told_apart(lines, SEXES[: len(header.cells)], fractions, nothing)
    columns = columns_of(lines)
    if not columns:
        raise InputError("none of the characteristics in this file is a count; choose a profile that has counts.")
    line_of = {line.id: at for at, line in enumerate(lines)}
    names = [figure.name.partition("/") for figure in figures]
    counted = np.array([line.kind == COUNT for line in lines])

    def places(codes: Iterable[tuple[str, ...]]) -> NDArray[np.int64]:
        return np.array([(line_of[number], SEXES.index(sex)) for number, sex in codes], dtype=np.int64).reshape(-1, 2)

    taken = TakenRows(
        header=header,
        ids=np.array([int(line.id) for line in lines], dtype=np.int32),
        counted=counted,
        places=places(column.codes for column in columns),
        figures=places((number, sex or SEXES[0]) for number, _, sex in names),
        nothing=nothing & counted[:, None],
        keys=tuple(column.key for column in columns),
        population=next((at for at, column in enumerate(columns) if column.label == f"Population, {year}"), None),
    )
    return tuple(with_limits(columns)), tuple(figures), taken, left_out


def _looked_at(
    header: BulkHeader, sample: pl.DataFrame, lines: Sequence[TableLine]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which lines show decimals, and which lines × sexes are not applicable in any of the first areas."""
    place = {int(line.id): at for at, line in enumerate(lines)}
    at = sample["id"].cast(pl.Int64).replace_strict(place, return_dtype=pl.Int64).to_numpy()
    shown, readable = np.zeros(len(lines)), np.zeros(len(lines))
    # Of what the first areas do not have, nobody knows yet.
    nothing = np.repeat(np.bincount(at, minlength=len(lines))[:, None] > 0, len(header.cells), axis=1)
    for sex in range(len(header.cells)):
        signs = sample[f"symbol {sex}"] if f"symbol {sex}" in sample.columns else None
        counts, decimals = as_counts(sample[f"count {sex}"], signs)
        shown += np.bincount(at, weights=decimals, minlength=len(lines))
        readable += np.bincount(at, weights=(counts > ABSENT) | (counts == UNREADABLE), minlength=len(lines))
        nothing[:, sex] &= np.bincount(at, weights=counts != NOT_APPLICABLE, minlength=len(lines)) == 0
    return shown > DECIMALS * readable, nothing


Item = TypeVar("Item")

_EVERY = 0.2
"""Seconds after which somebody who waits is told that nothing came."""


def ahead(items: Iterator[Item], most: int, idle: Callable[[], None] = lambda: None) -> Iterator[Item]:
    """Go through items in another thread, and yield them in their order; who stops early waits for it to stop, too.

    >>> list(ahead(iter("abc"), 1))
    ['a', 'b', 'c']
    """
    end = object()
    pool = ThreadPoolExecutor(1, "unround-ahead")
    waiting: deque[Future[Any]] = deque(pool.submit(next, items, end) for _ in range(most + 1))
    try:
        while True:
            first = waiting.popleft()
            while not wait([first], _EVERY).done:
                idle()
            item = first.result()  # or the error, which belongs to whoever takes the items
            if item is end:
                return
            waiting.append(pool.submit(next, items, end))
            yield item
    finally:
        pool.shutdown(cancel_futures=True)
        if isinstance(items, Generator):
            items.close()


CHUNK = 1 << 22
AT_ONCE = min(4, processors())
"""Chunks that are scanned side by side."""
BLOCK_ROWS = 1_000_000
"""Lines to a block, roughly: about 400 areas with every characteristic, or 2,200 with those of the short form."""
SHOWN = 120
DESCRIBED = ("region", "name", "level", "code")
"""What is told of an area."""
_LINE_END = ord("\n")


@dataclass(frozen=True, slots=True)
class BulkHeader:
    """Where the fields are: by what they tell of a line, and of every sex its counts and their symbols (-1 for none)."""

    width: int
    delimiter: str
    at: Mapping[str, int]
    cells: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class TakenRows:
    """What is taken from every area.

    - `header`: Where the fields are. Those called `region`, `name`, `level` and `code` describe an area.
    - `ids`: Of every characteristic, in the order of the file.
    - `counted`: Which of them are counts.
    - `places`: For every column of the release the characteristic, as a position in `ids`, and the sex.
    - `figures`: For every figure of the release likewise.
    - `nothing`: Characteristics × sexes without a column, because they are not applicable in the first areas.
    - `keys`: Of the columns.
    - `population`: The column that tells how large an area is.
    """

    header: BulkHeader
    ids: NDArray[np.int32]
    counted: NDArray[np.bool_]
    places: NDArray[np.int64]
    figures: NDArray[np.int64]
    nothing: NDArray[np.bool_]
    keys: tuple[str, ...]
    population: int | None


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Lines of the file: the ID and the counts of each, the lines with which areas begin, and what is said of those.

    `figure_lines` are those that hold figures, `figures` their values.
    """

    ids: NDArray[np.int32]
    counts: Counts
    begins: NDArray[np.int64]
    areas: list[dict[str, str]]
    figure_lines: NDArray[np.int64]
    figures: FigureValues


class _Odd(NamedTuple):
    """How often something did not fit, the first time where, and the last."""

    times: int
    first: str
    last: str


@dataclass(slots=True)
class _Seen:
    """What has come up while going through the file: areas, and what does not fit, by what a user should know of it."""

    regions: set[str] = field(default_factory=set)
    odd: dict[str, _Odd] = field(default_factory=dict)

    def add(self, what: str, times: int, first: str, last: str = "") -> None:
        """Keep in mind what does not fit."""
        before = self.odd.get(what, _Odd(0, first, ""))
        self.odd[what] = _Odd(before.times + times, before.first, last)

    def notes(self, last: str) -> Iterator[str]:
        """Say what a user should know."""
        for what in (_UNREADABLE, _SURPLUS, _LACKING):
            if odd := self.odd.get(what):
                cut = " The last area is one of them: the file may have been cut short." if odd.last == last else ""
                yield what.format(times=odd.times, first=odd.first) + cut


_UNREADABLE = (
    "{times:,} cells hold something other than a count (text, decimals, or a number next to a symbol that says there is "
    "none); the first is {first}. They are treated as missing."
)
_SURPLUS = "{times:,} counts are given where the first areas have 'not applicable'; the first is {first}. They are not used."
_LACKING = (
    "{times:,} areas lack lines that others have; the first is {first}. The missing counts are treated as not available."
)


def blocks(source: Source, taken: TakenRows, notes: list[str], progress: Progress) -> Iterator[Block]:
    """Go through the file, and yield blocks of whole areas in its order."""
    # Progress is told from here only, though the file is read elsewhere: whoever listens need not think of threads.
    places: deque[int] = deque()

    def tell() -> None:
        while places:
            progress(places.popleft())

    for block in ahead(_blocks(source, taken, notes, places.append), 1, tell):
        tell()
        yield block
    tell()


def _blocks(source: Source, taken: TakenRows, notes: list[str], progress: Progress) -> Iterator[Block]:
    seen = _Seen()
    last = ""
    for rows in _gathered(source, taken, progress):
        for area in rows.areas:
            region = area["region"]
            if not region:
                raise InputError(f"{source.path} has lines without a DGUID, which names the area; download it again.")
            if region in seen.regions:
                raise InputError(
                    f"{source.path} has area {region} in two places; the lines of an area must be together, and occur once."
                )
            seen.regions.add(region)
            if len(seen.regions) > MOST_AREAS:
                raise too_many_areas(source.path)
            last = region
        yield _block(rows, taken, source, seen)
    notes += [note for note in seen.notes(last) if note not in notes]


def _gathered(source: Source, taken: TakenRows, progress: Progress) -> Iterator[_Rows]:
    """Put the lines of chunks together, and yield them when there are enough; areas are never cut apart."""
    ids, counts, begins = list[NDArray[np.int32]](), list[Counts](), list[NDArray[np.int64]]()
    figure_lines, figures = list[NDArray[np.int64]](), list[FigureValues]()
    areas, held = list[dict[str, str]](), 0

    def together() -> _Rows:
        texts = np.concatenate(ids), np.concatenate(counts), np.concatenate(begins)
        return _Rows(*texts, areas, np.concatenate(figure_lines), np.concatenate(figures))

    for rows in _scanned(source, taken, progress):
        goes_on = bool(areas) and areas[-1]["region"] == rows.areas[0]["region"]
        ids.append(rows.ids)
        counts.append(rows.counts)
        begins.append(rows.begins[goes_on:] + held)
        figure_lines.append(rows.figure_lines + held)
        figures.append(rows.figures)
        areas += rows.areas[goes_on:]
        held += len(rows.ids)
        if held >= BLOCK_ROWS and len(areas) > 1:
            whole = together()
            cut = int(whole.begins[-1])
            upto = int(np.searchsorted(whole.figure_lines, cut))
            some = whole.figure_lines[:upto], whole.figures[:upto]
            yield _Rows(whole.ids[:cut], whole.counts[:cut], whole.begins[:-1], areas[:-1], *some)
            ids, counts, begins = [whole.ids[cut:]], [whole.counts[cut:]], [np.zeros(1, dtype=np.int64)]
            figure_lines, figures = [whole.figure_lines[upto:] - cut], [whole.figures[upto:]]
            areas, held = areas[-1:], held - cut
    if areas:
        yield together()


def _scanned(source: Source, taken: TakenRows, progress: Progress) -> Iterator[_Rows]:
    """Scan chunks side by side, and yield what they hold in the order of the file."""
    waiting: deque[Future[_Rows | None]] = deque()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        first = True
        for chunk in ahead(source.chunks(progress, CHUNK, decode=False), AT_ONCE):
            start = chunk.index(b"\n") + 1 if first else 0
            first = False
            waiting.append(pool.submit(_rows, chunk, start, taken, source))
            if len(waiting) > AT_ONCE and (rows := waiting.popleft().result()) is not None:
                yield rows
        for future in waiting:
            if (rows := future.result()) is not None:
                yield rows


def _rows(chunk: bytes, start: int, taken: TakenRows, source: Source) -> _Rows | None:
    """Read the lines of a chunk."""
    from unround.tables.line_scan import COUNTED, FIGURE, FieldPlaces, ScanBuffers, scan

    header, text = taken.header, np.frombuffer(chunk, dtype=np.uint8)[start:]
    most, sexes = int(np.count_nonzero(text == _LINE_END)), len(taken.header.cells)
    cells, symbols = (np.array(places, dtype=np.int64) for places in zip(*taken.header.cells, strict=True))
    last = int(max(header.at["id"], cells.max(), symbols.max()))
    roles = np.full(int(taken.ids.max()) + 1, COUNTED, dtype=np.uint8)
    roles[taken.ids] = np.where(taken.counted, COUNTED, 0)
    roles[taken.ids[taken.figures[:, 0]]] = FIGURE
    figured = most if len(taken.figures) else 0
    buffers = ScanBuffers(
        np.empty(most, dtype=np.int32),
        np.full((most, sexes), NOT_AVAILABLE, dtype=np.int32),
        np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty((most * sexes, 6), dtype=np.int64),
        np.empty(figured, dtype=np.int64),
        np.empty((figured, sexes), dtype=np.int64),
    )
    where = FieldPlaces(ord(header.delimiter), header.at["region"], header.at["id"], cells, symbols, last)
    lines, areas, odd, figures = scan(text, where, roles, buffers)
    if not lines:
        return None
    body = memoryview(chunk)[start:]
    ids, counts = buffers.ids[:lines], buffers.counts[:lines]
    if ids.min() < 0:
        raise _no_line(body, int(np.argmax(ids < 0)), source)
    if lines < most:
        _refuse_broken(body, lines, source)
    if odd:
        _read_closely(body, buffers.odd[:odd], counts, buffers.figures, source)
    firsts = [_first_line(body, int(begin), taken, source) for begin in buffers.starts[:areas]]
    there = buffers.figure_lines[:figures].copy(), buffers.figures[:figures].copy()
    return _Rows(ids, counts, buffers.begins[:areas], firsts, *there)


def _no_line(body: memoryview, number: int, source: Source) -> InputError:
    lines = [line for line in bytes(body).split(b"\n") if line.strip(b"\r")]
    shown = source.as_text(lines[number].strip())[:SHOWN]
    return InputError(
        f"{source.path} has a line without counts or without the number of its characteristic; the file may have been "
        f"cut short or "
        f"changed, so download it again. The line begins\n    {shown}"
    )


def _refuse_broken(body: memoryview, lines: int, source: Source) -> None:
    """Raise if a quotation runs over line ends: the lines within it would be lost. Empty lines do no harm."""
    if sum(1 for line in bytes(body).split(b"\n") if line.strip(b"\r")) > lines:
        raise InputError(
            f"{source.path} has a quoted field that continues on the next line: a quote is not closed, so it is unclear "
            "where lines end. Download the file again."
        )


def _read_closely(body: memoryview, odd: NDArray[np.int64], counts: Counts, figures: FigureValues, source: Source) -> None:
    """Read the cells that are not plain numbers."""
    sexes = counts.shape[1]
    for counted in (True, False):
        these = odd[(odd[:, 1] < sexes) == counted]
        places = these.tolist()
        text = pl.Series([source.as_text(bytes(body[place[2] : place[3]])) for place in places], dtype=pl.String)
        signs = pl.Series([source.as_text(bytes(body[place[4] : place[5]])) for place in places], dtype=pl.String)
        if counted and places:
            counts[these[:, 0], these[:, 1]] = as_counts(text, signs)[0]
        elif places:
            figures[these[:, 0], these[:, 1] - sexes] = as_figures(text, signs)


def _first_line(body: memoryview, start: int, taken: TakenRows, source: Source) -> dict[str, str]:
    """Read what the first line of an area says of it."""
    length = 1 << 10
    while b"\n" not in (line := bytes(body[start : start + length])) and start + length < len(body):
        length *= 2
    text = source.as_text(line.partition(b"\n")[0].rstrip(b"\r"))
    try:
        fields = next(csv.reader([text], delimiter=taken.header.delimiter))
    except csv.Error:  # a field of over 131,072 signs, or a carriage return within one
        fields = []
    described = {name: at for name in DESCRIBED if (at := taken.header.at.get(name)) is not None}
    if len(fields) <= max(described.values()):
        raise InputError(f"{source.path} has a line break within a name; download it again:\n    {text[:SHOWN]}")
    return {name: fields[at].strip() for name, at in described.items()}


def _block(rows: _Rows, taken: TakenRows, source: Source, seen: _Seen) -> Block:
    """Turn lines into a table: one row per area, a column a count."""
    areas, sexes = len(rows.areas), len(taken.header.cells)
    known = len(taken.ids)
    if len(rows.ids) == areas * known and bool(np.all(rows.ids.reshape(areas, known) == taken.ids)):
        table = rows.counts.reshape(areas, known * sexes)
    else:
        table = _sorted_in(rows, taken, source, seen).reshape(areas, known * sexes)
    counts = np.take(table, taken.places[:, 0] * sexes + taken.places[:, 1], axis=1)
    _watch(table, counts, rows, taken, seen)
    described = pl.DataFrame(rows.areas)
    population = None if taken.population is None else counts[:, taken.population]
    return Block(describe(described, population), counts, _figures(rows, taken))


def _figures(rows: _Rows, taken: TakenRows) -> FigureValues | None:
    """Put the figures of lines into their places: one row per area, a column a figure."""
    if not len(taken.figures):
        return None
    place = np.full(int(taken.ids.max()) + 1, -1, dtype=np.int64)
    lines = np.unique(taken.figures[:, 0])
    place[taken.ids[lines]] = np.arange(len(lines))
    table = np.full((len(rows.areas), len(lines), len(taken.header.cells)), FIGURE_ABSENT, dtype=np.int64)
    area = np.searchsorted(rows.begins, rows.figure_lines, side="right") - 1
    table[area, place[rows.ids[rows.figure_lines]]] = rows.figures
    return table[:, np.searchsorted(lines, taken.figures[:, 0]), taken.figures[:, 1]]


def _sorted_in(rows: _Rows, taken: TakenRows, source: Source, seen: _Seen) -> Counts:
    """Put lines in their places where areas differ in what they have."""
    place = np.full(int(taken.ids.max()) + 1, -1, dtype=np.int64)
    place[taken.ids] = np.arange(len(taken.ids))
    lengths = np.diff(rows.begins, append=len(rows.ids))
    area = np.repeat(np.arange(len(rows.areas)), lengths)
    at = np.where(rows.ids < len(place), place[np.minimum(rows.ids, len(place) - 1)], -1)
    if at.min() < 0:
        line = int(np.argmin(at))
        raise InputError(
            f"{source.path}: area {rows.areas[area[line]]['region']} has characteristic {rows.ids[line]}, which none of the "
            "first areas has. Put an area that has all characteristics first."
        )
    cell = area * len(taken.ids) + at
    times = np.bincount(cell, minlength=len(rows.areas) * len(taken.ids))
    if times.max() > 1:
        twice = int(np.argmax(times))
        region = rows.areas[twice // len(taken.ids)]["region"]
        raise InputError(
            f"{source.path}: area {region} has characteristic {taken.ids[twice % len(taken.ids)]} more than once; "
            "remove the copies, or download the file again."
        )
    short = np.flatnonzero(lengths < len(taken.ids))
    if len(short):
        seen.add(_LACKING, len(short), rows.areas[short[0]]["region"], rows.areas[short[-1]]["region"])
    table = np.full((len(times), len(taken.header.cells)), NOT_AVAILABLE, dtype=np.int32)
    table[cell] = rows.counts
    return table


def _watch(table: Counts, counts: Counts, rows: _Rows, taken: TakenRows, seen: _Seen) -> None:
    """Keep in mind what does not fit."""
    bad = counts == UNREADABLE
    if bad.any():
        area, column = (int(place) for place in np.unravel_index(np.argmax(bad), bad.shape))
        first = f"{taken.keys[column]} of area {rows.areas[area]['region']}"
        seen.add(_UNREADABLE, int(np.count_nonzero(bad)), first)
    # Of lines that are not counts nothing was read, so that they do not show up here.
    nowhere = np.flatnonzero(taken.nothing.ravel())
    there = table[:, nowhere] > ABSENT
    if there.any():
        area, nowhere_at = (int(place) for place in np.unravel_index(np.argmax(there), there.shape))
        line, sex = divmod(int(nowhere[nowhere_at]), len(taken.header.cells))
        name = ("", "/men", "/women")[sex]
        first = f"{taken.ids[line]}{name} of area {rows.areas[area]['region']}"
        seen.add(_SURPLUS, int(np.count_nonzero(there)), first)
