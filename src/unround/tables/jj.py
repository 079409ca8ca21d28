"""The file in which τ-ARGUS hands a table to a solver (JJ): every cell with its status, and the sums between cells.

0
4                                   how many cells
0 60 60 s 0 100 0 0 0               number, value, cost, status, least and most that readers know, protection levels
1 20 20 u 0 100 5 5 0               u and m are hidden, others are printed
…
1                                   how many sums
0 3 : 0 (-1) 1 (1) 2 (1)            what it adds up to, how many terms, and each: cell (coefficient)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from unround.errors import InputError
from unround.release import Release
from unround.small_files import small_text
from unround.tables.frames import cells_and_sums

LARGEST = 1 << 27
HIDDEN = frozenset("umx")
_TERM = re.compile(r"(\d+)\s*\(\s*([+-]?\d+)\s*\)")


def is_jj(path: Path) -> bool:
    """Whether a file is called like a table for a solver."""
    return path.suffix.lower() == ".jj"


def read_jj(path: Path) -> Release:
    """Read a table in the form of a solver, as a release of one row. Raises `InputError` where it is not one of counts."""
    lines = [line for line in small_text(path, "a JJ file", LARGEST).splitlines() if line.strip()]
    try:
        number = int(lines[1])
        cells = dict(_cell(line) for line in lines[2 : 2 + number])
        sums = [sum_ for line in lines[3 + number : 3 + number + int(lines[2 + number])] for sum_ in _sums(line, path)]
    except (IndexError, ValueError, OverflowError) as problem:
        raise InputError(f"{path} is not a JJ file as τ-ARGUS writes it: {problem}.") from problem
    return cells_and_sums(cells, sums, path.name)


def _cell(line: str) -> tuple[str, str]:
    number, value, _cost, status, least, most, *_ = line.split()
    if status.lower() in HIDDEN:
        return number, f"{int(float(least))}-{int(float(most))}"
    if float(value) != int(float(value)) or float(value) < 0:
        raise ValueError(f"cell {number} is {value}, and a count is a whole number")
    return number, str(int(float(value)))


def _sums(line: str, path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield a sum as a total and its parts: one term has the other sign."""
    terms = _TERM.findall(line.partition(":")[2])
    for sign in (1, -1):
        totals = [number for number, coefficient in terms if int(coefficient) == -sign]
        parts = [number for number, coefficient in terms if int(coefficient) == sign]
        if len(totals) == 1 and len(parts) + 1 == len(terms) and float(line.split()[0]) == 0:
            yield totals[0], parts
            return
    raise InputError(f"{path}: “{line.strip()[:80]}” is not a total and its parts, which is all that can be used here.")
