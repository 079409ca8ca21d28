"""Round many counts at once so that their sums still hold: random walks inside the sums, compiled.

The cells of an area, in units (`base` of them make a step), all lie between two neighbouring steps. As long as some cells
are strictly between, there is a direction in which these can move without any sum noticing. Moving along it, forwards or
backwards, until the first cell arrives at a step, with chances that leave every expected value as it is, fixes at least
one cell; after as many moves as there are cells at most, all are fixed. That is dependent rounding (Gandhi and others
2006; for two-way tables Cox 1987), with directions from a simplex tableau instead of cycles in a graph, so that it serves
every system of sums whose tableau holds nothing but −1, 0 and 1: trees, trees crossed with sex, and several of them
sharing totals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.jit import MINUS_ONE, inner, kernel
from unround.mechanisms.base import IntArray
from unround.sums.forest import Equations
from unround.system import connected

Ints = NDArray[np.int64]
Signs = NDArray[np.int8]
Words = NDArray[np.uint64]

_AT_A_TIME = 1 << 16  # random words that are drawn at once
_DONE, _MORE_WORDS, _LOOPS = 0, 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class Tableau:
    """One connected piece of a system of sums: each of the `basic` cells as a signed sum of the `free` ones.

    With `signs` (basic × free), cells[basic] + signs @ cells[free] = 0 for all counts that add up.
    """

    basic: Ints
    free: Ints
    signs: Signs


class Loops(Exception):  # noqa: N818 - it is nobody's error: sums may form such loops
    """These sums form loops that leave directions other than by one step."""


def tableaux(columns: int, sums: Equations) -> list[Tableau]:
    """Solve the sums for some of their cells, piece by piece."""
    rows = [{total: 1} | dict.fromkeys(parts, -1) for total, parts in sums]
    first = connected(columns, rows)
    pieces: dict[int, list[dict[int, int]]] = {}
    for row in rows:
        pieces.setdefault(first[next(iter(row))], []).append(row)
    return [_solved(piece) for piece in pieces.values()]


def _solved(rows: list[dict[int, int]]) -> Tableau:
    """Solve the sums of one piece."""
    cells = np.array(sorted({cell for row in rows for cell in row}), dtype=np.int64)
    at = {int(cell): place for place, cell in enumerate(cells)}
    matrix = np.zeros((len(rows), len(cells)), dtype=np.int8)
    for place, row in enumerate(rows):
        for cell, sign in row.items():
            matrix[place, at[cell]] = sign
    pivots = np.full(len(rows), -1, dtype=np.int64)
    if not _eliminate(matrix, pivots):
        raise Loops
    used = pivots >= 0
    free = np.setdiff1d(np.arange(len(cells)), pivots[used])
    return Tableau(cells[pivots[used]], cells[free], np.ascontiguousarray(matrix[used][:, free]))


@kernel
def _eliminate(matrix: Signs, pivots: Ints) -> bool:
    """Bring a matrix into reduced form in place; a row that follows from others keeps the pivot −1."""
    rows, columns = matrix.shape
    for row in range(rows):
        pivot = -1
        for column in range(columns):
            if matrix[row, column] != 0:
                pivot = column
                break
        pivots[row] = pivot
        if pivot < 0:
            continue
        if matrix[row, pivot] == -1:
            for column in range(columns):
                matrix[row, column] = -matrix[row, column]
        for other in range(rows):
            factor = matrix[other, pivot]
            if other != row and factor != 0:
                for column in range(columns):
                    left = matrix[other, column] - factor * matrix[row, column]
                    if left < -1 or left > 1:
                        return False
                    matrix[other, column] = left
    return True


def walk(cells: IntArray, base: int, pieces: list[Tableau], rng: np.random.Generator) -> None:
    """Bring cells between 0 and `base` to one of the two, in place, so that no sum changes."""
    alone = np.setdiff1d(np.arange(cells.shape[1]), np.concatenate([np.zeros(0, np.int64), *_members(pieces)]))
    rest = cells[:, alone]
    cells[:, alone] = np.where(rng.integers(0, base, size=rest.shape) < rest, base, 0)
    for piece in pieces:
        members = np.concatenate([piece.basic, piece.free])
        here = np.ascontiguousarray(cells[:, members])
        start, state = 0, _MORE_WORDS
        while state == _MORE_WORDS:
            words = rng.integers(0, 1 << 63, size=_AT_A_TIME, dtype=np.uint64)
            start, state = _walk(here, start, base, piece.signs, words)
        if state == _LOOPS:
            raise Loops
        cells[:, members] = here


def _members(pieces: list[Tableau]) -> list[Ints]:
    return [cells for piece in pieces for cells in (piece.basic, piece.free)]


@inner
def _below(number: int, words: Words, at: NDArray[np.int64]) -> int:
    """Return a random number below another, exactly uniform; −1 where the words have run out."""
    limit = np.uint64((1 << 63) // number * number)
    while at[0] < len(words):
        word = words[at[0]]
        at[0] += 1
        if word < limit:
            drawn: int = np.int64(word % np.uint64(number))  # type: ignore[assignment]  # compiled code knows no other
            return drawn
    return MINUS_ONE


@inner
def _room(here: Ints, signs: Signs, basic: Ints, cell: int, column: int, base: int) -> tuple[int, int]:
    """Return how far all cells can go if this one goes up, and if it goes down."""
    up, down = base - here[cell], here[cell]
    for row in range(len(basic)):
        sign = signs[row, column]
        if sign > 0:
            up, down = min(up, here[basic[row]]), min(down, base - here[basic[row]])
        elif sign < 0:
            up, down = min(up, base - here[basic[row]]), min(down, here[basic[row]])
    return up, down


@inner
def exchange(signs: Signs, row: int, column: int, columns: int) -> bool:
    """Let a free cell and a basic one change places."""
    pivot = signs[row, column]
    for other in range(columns):
        if other != column:
            signs[row, other] *= pivot
    for line in range(signs.shape[0]):
        factor = signs[line, column]
        if line != row and factor != 0:
            for other in range(columns):
                if other != column:
                    left = signs[line, other] - factor * signs[row, other]
                    if left < -1 or left > 1:
                        return False
                    signs[line, other] = left
            signs[line, column] = -factor * pivot
    return True


@kernel
def _walk(cells: Ints, start: int, base: int, tableau: Signs, words: Words) -> tuple[int, int]:
    """Walk the areas from `start` on, until done or out of words.

    An area in which the words run out is left wherever it is, and gone on with later: all that counts is where its cells
    are, and the words that were left over told nothing.
    """
    many, free = tableau.shape
    signs = np.empty_like(tableau)
    basic, loose = np.empty(many, dtype=np.int64), np.empty(free, dtype=np.int64)
    at = np.zeros(1, dtype=np.int64)
    for area in range(start, len(cells)):
        here = cells[area]
        signs[:] = tableau
        for row in range(many):
            basic[row] = row
        for place in range(free):
            loose[place] = many + place
        columns = free
        while columns > 0:
            column = _below(columns, words, at)
            if column < 0:
                return area, _MORE_WORDS
            cell = loose[column]
            blocked = -1
            arrived = here[cell] == 0 or here[cell] == base
            if not arrived:
                for row in range(many):
                    if signs[row, column] != 0 and (here[basic[row]] == 0 or here[basic[row]] == base):
                        blocked = row
                        break
            if blocked >= 0:
                if not exchange(signs, blocked, column, columns):
                    return area, _LOOPS
                loose[column], basic[blocked] = basic[blocked], cell
                arrived = True
            if arrived:  # the column of a cell that stays where it is leads nowhere
                columns -= 1
                loose[column] = loose[columns]
                for row in range(many):
                    signs[row, column] = signs[row, columns]
                continue
            up, down = _room(here, signs, basic, cell, column, base)
            coin = _below(up + down, words, at)
            if coin < 0:
                return area, _MORE_WORDS
            step = up if coin < down else -down
            here[cell] += step
            for row in range(many):
                here[basic[row]] -= step * signs[row, column]
        for row in range(many):
            if here[basic[row]] != 0 and here[basic[row]] != base:
                return area, _LOOPS
    return len(cells), _DONE
