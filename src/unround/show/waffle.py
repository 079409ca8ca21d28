"""Of 10,000 counts: a square each, so that a rare thing looks as rare as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from unround.show.charts import Picture

SIDE = 100
"""Squares on a side."""

PIXELS = 3
"""The width of a square, with the line between it and the next."""

ALL = SIDE * SIDE


class Share(NamedTuple):
    """Some of all counts: what they are called, their colour class, and how many there are."""

    name: str
    kind: str
    number: int


def squares(shares: Sequence[Share], whole: int) -> list[int]:
    """Return how many of 10,000 squares each share gets: at least one where there is anything, and 10,000 in all.

    The last share, of which there is most, makes up the difference.

    Examples
    --------
    >>> squares([Share("proved", "proved", 3), Share("open", "open", 999_997)], 1_000_000)
    [1, 9999]
    """
    found = [max(1, round(ALL * one.number / whole)) if one.number else 0 for one in shares[:-1]]
    while sum(found) > ALL:
        found[found.index(max(found))] -= 1
    return [*found, ALL - sum(found)]


def waffle(shares: Sequence[Share], whole: int, said: str) -> Markup:
    """Draw 10,000 squares, the first shares on top; rows that are alike are one rectangle."""
    size = SIDE * PIXELS
    drawn = Picture(size, size, said, "waffle")
    start = 0
    for one, number in zip(shares, squares(shares, whole), strict=True):
        for x, y, wide, tall in _runs(start, start + number):
            place = (x * PIXELS, y * PIXELS, wide * PIXELS, tall * PIXELS)
            drawn.rect(*place, f"bar {one.kind}", f"{one.name}: {per_10_000(one.number, whole)} of 10,000")
        start += number
    lines = "".join(f"M{at * PIXELS} 0V{size}M0 {at * PIXELS}H{size}" for at in range(1, SIDE))
    drawn.shape(lines, "seams")
    return drawn.done()


def _runs(start: int, end: int) -> list[tuple[int, int, int, int]]:
    """Cover a range of squares, counted row by row, with at most three rectangles."""
    found = []
    while start < end:
        row, column = divmod(start, SIDE)
        if column or end - start < SIDE:
            wide = min(SIDE - column, end - start)
            found.append((column, row, wide, 1))
            start += wide
        else:
            rows = (end - start) // SIDE
            found.append((0, row, SIDE, rows))
            start += rows * SIDE
    return found


def per_10_000(number: int, whole: int) -> str:
    """Say how many of 10,000 a number is; never 0 where there is something, never all where there is more.

    Examples
    --------
    >>> per_10_000(3, 1_000_000), per_10_000(45_302, 7_794_742), per_10_000(0, 10), per_10_000(999_999, 1_000_000)
    ('fewer than 1', '58', '0', 'more than 9,999')
    """
    found = ALL * number / whole
    if number and found < 0.5:
        return "fewer than 1"
    return "more than 9,999" if number < whole and found > ALL - 0.5 else f"{found:,.0f}"
