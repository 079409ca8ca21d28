"""What an input may lead to: a result, or an error in words. Anything else is a fault.

Where there is another way to know what a file says, the result is held against it: every count that a reader returns must
be the number that Python's own csv and decimal modules find in the same place.
"""

from __future__ import annotations

import csv
import io
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from types import FrameType

import numpy as np

from unround.errors import Infeasible, InputError
from unround.release import ABSENT, LARGEST, Release

SECONDS = 60
"""Of processor time, for one small input."""
BUSY = 10
"""By the clock it may take so many times as long: a busy machine is no fault of it."""
LONGEST_MESSAGE = 20_000

_BLANKS = " \t\r\n\u00a0\u202f\u2009"
_PADDING = _BLANKS + "\"'"
_BETWEEN = "[, \u00a0\u202f\u2009'\u2019]"
_GROUPED = re.compile("[+-]?[0-9]{1,3}((,[0-9]{3})+|([ \u00a0\u202f\u2009][0-9]{3})+|(['\u2019][0-9]{3})+)(\\.[0-9]*)?")
_PLAIN = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,3})?", re.IGNORECASE)
_FLAG = re.compile(r"[*†‡§#^~!¹²³⁴⁵⁶⁷⁸⁹]{1,3}|[a-zA-Z]{1,2}\)?|\((?:[a-zA-Z*†0-9]{1,2})\)|\[(?:note )?[a-zA-Z0-9]{1,2}\]")
"""Signs beside a number that leave it a number: provisional, revised, or a reference to a note."""


_CONTROL = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufffd]|\r(?!\n)")
_STRAY = re.compile(r'[^",\r\n]"[^",\r\n]')
"""A quote in the middle of a field: one reader takes it for a sign like others, another for a beginning or an end."""


class Fault(Exception):  # noqa: N818 - what it is called in reports
    """Something that must not happen."""


@contextmanager
def limited(seconds: int = SECONDS) -> Iterator[None]:
    """Let an input take so much processor time, and no more."""

    def late(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - what signals tell
        clock = "of processor time" if number == signal.SIGPROF else "by the clock"
        raise Fault(f"no end after {seconds if number == signal.SIGPROF else BUSY * seconds} seconds {clock}")

    timers = {signal.SIGPROF: (signal.ITIMER_PROF, seconds), signal.SIGALRM: (signal.ITIMER_REAL, BUSY * seconds)}
    before = {number: signal.signal(number, late) for number in timers}
    for timer, limit in timers.values():
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def judged(run: Callable[[bytes], None], data: bytes) -> str:
    """Run a target on an input; return "read", or "refused" where it says what is wrong. Other exceptions pass."""
    try:
        run(data)
    except (InputError, Infeasible) as problem:
        said = str(problem)
        if not said.strip() or len(said) > LONGEST_MESSAGE:
            raise Fault(f"an error of {len(said):,} signs") from problem
        return "refused"
    return "read"


def count_of(text: str) -> int | None:
    """Return the count that a cell holds, or None: exactly, in decimals."""
    bare = text.replace("−", "-").strip(_PADDING)
    if _GROUPED.fullmatch(bare):
        bare = re.sub(_BETWEEN, "", bare)
    if not _PLAIN.fullmatch(bare):
        return _flagged(bare)
    try:
        number = Decimal(bare)
    except InvalidOperation:
        return None
    if not -LARGEST <= number <= LARGEST or number != int(number):
        return None
    return int(number)


def _flagged(bare: str) -> int | None:
    """Return the number of a cell that has a flag beside it, or is in brackets; None for anything else."""
    if bare[:1] == "(" and bare[-1:] == ")":
        digits, flag = bare[1:-1], "*"
    elif bare[:1] == "*":
        digits, flag = bare[1:].removeprefix("*"), "*"
    else:
        digits = next(iter(re.findall(rf"\A(?:[0-9]|{_BETWEEN}(?=[0-9]))+", bare)), "")
        flag = bare[len(digits) :].strip(_BLANKS)
    if not _FLAG.fullmatch(flag) or not re.fullmatch(f"[0-9]{{1,9}}|[0-9]{{1,3}}({_BETWEEN}[0-9]{{3}})+", digits):
        return None
    number = int(re.sub(_BETWEEN, "", digits))
    return number if number <= LARGEST else None


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def rows_of(data: bytes, delimiter: str, encoding: str) -> list[list[str]] | None:
    """Return a file's rows as Python's csv module reads them; None where it is not plain text.

    Which code page a file that is not UTF-8 has is a guess, which the reader states: the second reading takes it over.
    """
    if data[:2] == b"\x1f\x8b" or data[:2] == b"PK":
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Lines are looked at one by one: where some are UTF-8 and some are not, this reading would not be another one.
        if any(_is_utf8(line) for line in data.split(b"\n") if not line.isascii()):
            return None
        text = data.decode("cp1252" if encoding.startswith("utf") else encoding, errors="replace")
    text = text.rstrip("\x1a")
    if _CONTROL.search(text) or _STRAY.search(text.replace(delimiter, ",")):
        return None  # what counts as a blank, as a line end, or as the end of a quote, is anybody's guess
    try:
        return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    except csv.Error:
        return None


def compare(
    release: Release, rows: list[list[str]] | None, key: Callable[[list[str]], Iterator[tuple[str, str, str]]]
) -> None:
    """Hold every count of a release against the cells of a second reading.

    Parameters
    ----------
    release : Release
        What the reader made of a file.
    rows : list
        The file, read another way.
    key : function
        Goes through the cells of a row: the area, the key of the column, the text.

    Raises
    ------
    Fault
        Where a count stands in no cell, or in one that says something else; or a count that a cell holds is missing
        although its column is there, without a note.
    """
    if rows is None:
        return
    cells: dict[tuple[str, str], set[str]] = {}
    for row in rows[1:]:
        for area, column, text in key(row):
            cells.setdefault((area.strip(), column), set()).add(text)
    keys, missing = [column.key for column in release.columns], list[str]()
    for block in release.blocks():
        areas = block.areas[release.areas[0]].to_list()
        for at, column in zip(*np.nonzero(block.counts > ABSENT), strict=True):
            found = int(block.counts[at, column])
            texts = cells.get((areas[at], keys[column]))
            if texts is None or not any(count_of(text) == found for text in texts):
                raise Fault(f"{found} is read for {keys[column]} of {areas[at]!r}, where the file has {texts}")
        for at, column in zip(*np.nonzero(block.counts <= ABSENT), strict=True):
            texts = cells.get((areas[at], keys[column]), set())
            if any((count_of(text) or 0) != 0 for text in texts):
                missing.append(f"{keys[column]} of {areas[at]!r}, where the file has {texts}")
    # Notes are complete once the file has been gone through.
    if missing and not release.notes:
        raise Fault(f"nothing is read for {missing[0]}, and there is no note")
