"""Streaming: the lines of a bulk file become blocks of whole areas.

All processors work on it. One thread unpacks the file, others scan its chunks, one puts blocks together; whoever asked
for the blocks works on one meanwhile. What waits between them is bounded, and so is memory.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.errors import InputError
from unround.machine import processors
from unround.regions import describe
from unround.release import ABSENT, FIGURE_ABSENT, NOT_AVAILABLE, UNREADABLE, Block, Counts, FigureValues, Progress
from unround.tables.figure_labels import as_figures
from unround.tables.source import MOST_AREAS, Source, too_many_areas
from unround.tables.symbols import as_counts

Item = TypeVar("Item")

_EVERY = 0.2
"""Seconds after which somebody who waits is told that nothing came."""


def ahead(items: Iterator[Item], most: int, idle: Callable[[], None] = lambda: None) -> Iterator[Item]:
    """Go through items in another thread, and yield them in their order.

    Notes
    -----
    If nobody goes on to the end, the thread stops at the next item, and is waited for.

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
    """Where the fields are: by what they tell of a line, and of every sex its counts and their signs (-1 for none)."""

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
    - `nothing`: Characteristics × sexes of which no column was made, being not applicable in the first areas.
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


@dataclass(slots=True)
class _Seen:
    """What has come up while going through the file."""

    regions: set[str] = field(default_factory=set)
    unreadable: int = 0
    first_unreadable: str = ""
    surplus: int = 0
    first_surplus: str = ""
    lacking: int = 0
    first_lacking: str = ""
    last_lacking: str = ""

    def notes(self, last: str) -> Iterator[str]:
        """Say what a user should know."""
        if self.unreadable:
            yield (
                f"{self.unreadable:,} cells hold something other than a count (text, decimals, or a number next to a "
                f"symbol that says there is none); the first is {self.first_unreadable}. They are treated as missing."
            )
        if self.surplus:
            yield (
                f"{self.surplus:,} counts are given where the first areas have 'not applicable'; the first is "
                f"{self.first_surplus}. They are not used."
            )
        if self.lacking:
            cut = " The last area is one of them: the file may have been cut short." if self.last_lacking == last else ""
            yield (
                f"{self.lacking:,} areas lack lines that others have; the first is {self.first_lacking}. "
                f"The missing counts are treated as not available.{cut}"
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
    found = ScanBuffers(
        np.empty(most, dtype=np.int32),
        np.full((most, sexes), NOT_AVAILABLE, dtype=np.int32),
        np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty((most * sexes, 6), dtype=np.int64),
        np.empty(figured, dtype=np.int64),
        np.empty((figured, sexes), dtype=np.int64),
    )
    where = FieldPlaces(ord(header.delimiter), header.at["region"], header.at["id"], cells, symbols, last)
    lines, areas, odd, figures = scan(text, where, roles, found)
    if not lines:
        return None
    body = memoryview(chunk)[start:]
    ids, counts = found.ids[:lines], found.counts[:lines]
    if ids.min() < 0:
        raise _no_line(body, int(np.argmax(ids < 0)), source)
    if lines < most:
        _refuse_broken(body, lines, source)
    if odd:
        _read_closely(body, found.odd[:odd], counts, found.figures, source)
    firsts = [_first_line(body, int(begin), taken, source) for begin in found.starts[:areas]]
    there = found.figure_lines[:figures].copy(), found.figures[:figures].copy()
    return _Rows(ids, counts, found.begins[:areas], firsts, *there)


def _no_line(body: memoryview, number: int, source: Source) -> InputError:
    lines = [line for line in bytes(body).split(b"\n") if line.strip(b"\r")]
    shown = source.as_text(lines[number].strip())[:SHOWN]
    return InputError(
        f"{source.path} has a line without counts or without the number of its characteristic; the file may have been "
        f"cut short or "
        f"changed, so download it again. The line begins\n    {shown}"
    )


def _refuse_broken(body: memoryview, lines: int, source: Source) -> None:
    """Complain of a quotation that runs over line ends, for the lines within it would be lost. Empty lines do no harm."""
    if sum(1 for line in bytes(body).split(b"\n") if line.strip(b"\r")) > lines:
        raise InputError(
            f"{source.path} has a quoted field that continues on the next line: a quote is not closed, so it is unclear "
            "where lines end. Download the file again."
        )


def _read_closely(body: memoryview, odd: NDArray[np.int64], counts: Counts, figures: FigureValues, source: Source) -> None:
    """Read the cells that are no plain numbers."""
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
    own = np.unique(taken.figures[:, 0])
    place[taken.ids[own]] = np.arange(len(own))
    table = np.full((len(rows.areas), len(own), len(taken.header.cells)), FIGURE_ABSENT, dtype=np.int64)
    area = np.searchsorted(rows.begins, rows.figure_lines, side="right") - 1
    table[area, place[rows.ids[rows.figure_lines]]] = rows.figures
    return table[:, np.searchsorted(own, taken.figures[:, 0]), taken.figures[:, 1]]


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
        seen.first_lacking = seen.first_lacking or rows.areas[short[0]]["region"]
        seen.last_lacking = rows.areas[short[-1]]["region"]
        seen.lacking += len(short)
    table = np.full((len(times), len(taken.header.cells)), NOT_AVAILABLE, dtype=np.int32)
    table[cell] = rows.counts
    return table


def _watch(table: Counts, counts: Counts, rows: _Rows, taken: TakenRows, seen: _Seen) -> None:
    """Keep in mind what does not fit."""
    bad = counts == UNREADABLE
    if bad.any():
        area, column = (int(place) for place in np.unravel_index(np.argmax(bad), bad.shape))
        seen.first_unreadable = seen.first_unreadable or f"{taken.keys[column]} of area {rows.areas[area]['region']}"
        seen.unreadable += int(np.count_nonzero(bad))
    # Of lines that are no counts nothing was read, so that they do not show up here.
    nowhere = np.flatnonzero(taken.nothing.ravel())
    there = table[:, nowhere] > ABSENT
    if there.any():
        area, which = (int(place) for place in np.unravel_index(np.argmax(there), there.shape))
        line, sex = divmod(int(nowhere[which]), len(taken.header.cells))
        name = ("", "/men", "/women")[sex]
        seen.first_surplus = seen.first_surplus or f"{taken.ids[line]}{name} of area {rows.areas[area]['region']}"
        seen.surplus += int(np.count_nonzero(there))
