"""Scanning: one pass over the bytes of a bulk file that finds areas, IDs and counts, at the speed of memory.

It reads what nearly every cell is: a plain whole number, or nothing beside a well-known symbol. Everything else (decimals,
padding, `1e+06`, signs inside cells) is handed back by its place, for `symbols` to read: what a cell means is decided in
one module only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unround.release import FIGURE_ABSENT, FIGURE_UNIT, NOT_APPLICABLE, NOT_AVAILABLE, SUPPRESSED

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]

NO_ID = -1
"""In place of an ID that is not a plain number."""
SHORT = -2
"""In place of the ID of a line that lacks fields."""
PLAIN_DIGITS = 9
"""Numbers of so many digits fit a count."""
SKIPPED, COUNTED, FIGURE = 0, 1, 2
"""What to do with the cells of a line: nothing, read counts, read figures."""
_UNITS = FIGURE_UNIT.denominator

_QUOTE, _LINE_END, _RETURN, _NOUGHT, _NINE, _MINUS = (ord(character) for character in '"\n\r09-')
_POINT, _X = ord("."), ord("x")
_BYTES = 16
"""That are looked at together."""


Function = TypeVar("Function", bound=Callable[..., Any])


_INNER: dict[str, Any] = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _inner(function: Function) -> Function:
    """Compile what only compiled code calls, without counting references to the text: which takes longer than the rest."""
    return cast(Function, njit(**_INNER)(function))


class FieldPlaces(NamedTuple):
    """Where the fields are, counted from 0. Lines begin with what describes the area, up to the ID."""

    delimiter: int
    region: int
    id: int
    cells: Places
    symbols: Places
    """The symbol of each cell; -1 for none."""
    last: int
    """The last of all these."""


class ScanBuffers(NamedTuple):
    """Arrays to fill, with room for every line."""

    ids: NDArray[np.int32]
    counts: NDArray[np.int32]
    begins: Places
    """The lines with which areas begin."""
    starts: Places
    """Where in the text those lines start."""
    odd: Places
    """Cells left to be read closely: line, sex, from and to of the cell, from and to of its sign. For figures, the place in
    `figures` instead of the line, and sex plus the number of sexes."""
    figure_lines: Places
    """The lines of figures."""
    figures: NDArray[np.int64]
    """Their values, in `FIGURE_UNIT`, by sex."""


@_inner
def _until(text: Bytes, at: int, delimiter: int) -> int:
    """Return where the next delimiter or line end is."""
    rest = text[at:]  # whose places cannot be negative, which the compiler knows and saves a check a byte
    for offset in range(len(rest)):
        if rest[offset] == delimiter or rest[offset] == _LINE_END:
            return at + offset
    return len(text) - 1


@_inner
def _quote(text: Bytes, at: int) -> int:
    """Return where the next quote is."""
    rest = text[at:]
    for offset in range(len(rest)):
        if rest[offset] == _QUOTE:
            return at + offset
    return len(text) - 1


@_inner
def _field(text: Bytes, at: int, delimiter: int) -> tuple[int, int, int]:
    """Return from and to of the field at a place, without quotes around it, and where its delimiter or line end is."""
    if text[at] != _QUOTE:
        begin = at
        at = _until(text, at, delimiter)
        end = at
        if end > begin and text[end - 1] == _RETURN and text[at] == _LINE_END:
            end -= 1
        return begin, end, at
    begin = at + 1
    at = begin
    last = len(text) - 1  # which is a line end
    while True:
        at = min(_quote(text, at), last)
        if at == last or text[at + 1] != _QUOTE:
            break
        at += 2  # a doubled quote stands for one
    after = _until(text, at, delimiter)
    if after > at + 1 and not (after == at + 2 and text[at + 1] == _RETURN):
        return begin - 1, after, after  # something follows the closing quote: no number, whatever stands within
    return begin, at, after


@_inner
def _line_end(text: Bytes, at: int, delimiter: int) -> int:
    """Return where the line ends that has another field, or its end, at a place: the next line end outside of quotes."""
    rest = text[at:]
    offset = 0
    while offset + _BYTES <= len(rest):
        ended = False
        for step in range(_BYTES):  # to the end, whatever comes: so the compiler takes all bytes at once
            ended |= (rest[offset + step] == _LINE_END) | (rest[offset + step] == _QUOTE)
        if ended:
            break
        offset += _BYTES
    while offset < len(rest) and rest[offset] != _LINE_END:
        if rest[offset] == _QUOTE and (offset == 0 or rest[offset - 1] == delimiter):
            offset = _field(text, at + offset, delimiter)[2] - at
        else:
            offset += 1
    return min(at + offset, len(text) - 1)


@_inner
def _digits(text: Bytes, begin: int, end: int) -> int:
    """Return the plain number between two places, or -1 where there is none."""
    if not 0 < end - begin <= PLAIN_DIGITS:
        return -1
    number = 0
    for at in range(begin, end):
        digit = int(text[at]) - _NOUGHT
        if digit < 0 or digit > _NINE - _NOUGHT:
            return -1
        number = number * 10 + digit
    return number


@_inner
def _alike(text: Bytes, start: int, other: int, length: int) -> bool:
    """Return whether two stretches of text are the same."""
    first, second = text[start : start + length], text[other : other + length]
    differ = np.uint8(0)
    for offset in range(len(first)):  # to the end, whatever comes: so the compiler takes many bytes at once
        differ |= first[offset] ^ second[offset]
    return bool(differ == 0)


@_inner
def _cell(text: Bytes, begin: int, end: int, sign: int, sign_end: int) -> tuple[int, bool]:
    """Read a cell and the symbol beside it; False where that takes a closer look."""
    signs = sign_end - sign
    if begin < end:
        if signs:
            return 0, False
        negative = text[begin] == _MINUS
        number = _digits(text, begin + 1 if negative else begin, end)
        return (-number if negative else number), number >= 0
    if signs == 0:
        return NOT_AVAILABLE, True
    if signs == 1:
        return SUPPRESSED, text[sign] == _X
    for at in range(sign, sign_end):
        if text[at] != _POINT:
            return 0, False
    return (NOT_APPLICABLE if signs == 3 else NOT_AVAILABLE), signs <= 3


@_inner
def _decimal(text: Bytes, begin: int, end: int, signs: int) -> tuple[int, bool]:
    """Read a figure, in units; False where that takes a closer look."""
    if begin >= end:
        return FIGURE_ABSENT, True
    if signs or end - begin > PLAIN_DIGITS:
        return 0, False
    negative = text[begin] == _MINUS
    number, scale, after = 0, _UNITS, False
    for at in range(begin + 1 if negative else begin, end):
        digit = int(text[at]) - _NOUGHT
        if text[at] == _POINT and not after:
            after = True
        elif digit < 0 or digit > _NINE - _NOUGHT or scale == 1:
            return 0, False
        else:
            number = number * 10 + digit
            if after:
                scale //= 10
    number *= scale
    return (-number if negative else number), end - begin > 1 or not negative


# Inlined: with a call for every line, scanning takes half as long again.
@njit(forceinline=True, **_INNER)  # type: ignore[untyped-decorator]
def _cells(text: Bytes, where: FieldPlaces, place: Places, buffers: ScanBuffers, role: int, row: int, odds: int) -> int:
    """Read the cells of a line into a row of its role; return how many odd ones there are by now."""
    sexes = len(where.cells)
    for sex in range(sexes):
        begin, end = place[where.cells[sex], 0], place[where.cells[sex], 1]
        sign, sign_end = 0, 0
        if where.symbols[sex] >= 0:
            sign, sign_end = place[where.symbols[sex], 0], place[where.symbols[sex], 1]
        if role == COUNTED:
            count, plain = _cell(text, begin, end, sign, sign_end)
            if plain:
                buffers.counts[row, sex] = count
        else:
            value, plain = _decimal(text, begin, end, sign_end - sign)
            buffers.figures[row, sex] = value if plain else FIGURE_ABSENT
        if not plain:
            at = sex if role == COUNTED else sex + sexes
            odd = buffers.odd[odds]
            odd[0], odd[1], odd[2], odd[3], odd[4], odd[5] = row, at, begin, end, sign, sign_end
            odds += 1
    return odds


@njit(nogil=True, cache=True)
def scan(text: Bytes, where: FieldPlaces, roles: Bytes, buffers: ScanBuffers) -> tuple[int, int, int, int]:
    """Go through whole lines, the last too with its end; return how many lines, areas, odd cells and figures there are."""
    size = len(text)
    place = np.zeros((where.last + 1, 2), dtype=np.int64)
    lines, areas, odds, figures = 0, 0, 0, 0
    before, length = 0, 0  # where the line before starts, and how long what describes its area is
    region, region_end = 0, -1
    # Of every line of an area: its ID, where that stood last, and how far it is from there to the first cell.
    known = np.zeros((len(buffers.ids), 3), dtype=np.int64)
    first_cell = where.cells.min()
    line = 0  # of its area
    at = 0
    while at < size:
        start = at
        if text[at] == _LINE_END or (text[at] == _RETURN and text[at + 1] == _LINE_END):
            at += 1 if text[at] == _LINE_END else 2
            continue
        field, number, id_at, to_cell = 0, SHORT, -1, 0
        # Nearly every line describes the same area as the line before, in the very same bytes: no need to read them.
        if length and start + length < size and _alike(text, before, start, length):
            field, at = where.id, start + length
        read_head = field == 0
        # Nearly every area has the same lines: the ID and the label, up to the first cell, are those of the area before.
        if not read_head and known[line, 2]:
            ahead = known[line, 2]
            if at + ahead < size and _alike(text, known[line, 1], at, ahead):
                number, field, at = known[line, 0], first_cell, at + ahead
        read_id = number == SHORT
        while field <= where.last:
            if field == where.id:
                id_at = at
            begin, end, at = _field(text, at, where.delimiter)
            place[field, 0] = begin
            place[field, 1] = end
            field += 1
            if text[at] == _LINE_END:
                break
            at += 1
            if field == where.id:
                before, length = start, at - start
            if field == first_cell and id_at >= 0:
                to_cell = at - id_at
        short = field <= where.last
        at = _line_end(text, at, where.delimiter) + 1

        if read_head:
            begin, end = place[where.region, 0], place[where.region, 1]
            if end - begin != region_end - region or not _alike(text, begin, region, end - begin):
                buffers.begins[areas] = lines
                buffers.starts[areas] = start
                areas += 1
                line = 0
            region, region_end = begin, end
        if short:
            number = SHORT
        elif read_id:
            number = _digits(text, place[where.id, 0], place[where.id, 1])
            known[line, 0], known[line, 1], known[line, 2] = number, id_at, to_cell
        buffers.ids[lines] = number
        line += 1
        role = COUNTED if number >= len(roles) else int(roles[number]) if number >= 0 else SKIPPED
        if role != SKIPPED:
            odds = _cells(text, where, place, buffers, role, lines if role == COUNTED else figures, odds)
            if role == FIGURE:
                buffers.figure_lines[figures] = lines
                figures += 1
        lines += 1
    return lines, areas, odds, figures
