"""Proposals: the sums that the layout of a profile suggests. Nothing here is believed before it is verified."""

from __future__ import annotations

from collections.abc import Sequence

from unround.release import Column, Proposal

MEN, WOMEN, TOTAL = "men", "women", "total"


def indented(columns: Sequence[Column]) -> list[Proposal]:
    """Propose that a line is the sum of the lines indented below it, for each sex by itself.

    Columns of anything but counts are not here, so that levels may be skipped: the parts of a line are the lines below it
    that no other line in between stands above.

    Parameters
    ----------
    columns : sequence of Column
        In the order of the table; the last of a column's codes is its sex.

    Examples
    --------
    >>> lines = [("8", "All", 0), ("9", "Young", 1), ("10", "Very young", 2), ("13", "Old", 1)]
    >>> columns = [Column(key, (key, "total"), label, depth=depth) for key, label, depth in lines]
    >>> [(proposal.total, proposal.parts) for proposal in indented(columns)]
    [(0, (1, 3)), (1, (2,))]
    """
    parts: dict[int, list[int]] = {}
    open_lines: dict[str, list[int]] = {}
    for at, column in enumerate(columns):
        above = open_lines.setdefault(column.codes[-1], [])
        while above and columns[above[-1]].depth >= column.depth:
            above.pop()
        if above:
            parts.setdefault(above[-1], []).append(at)
        above.append(at)
    return [Proposal(total, tuple(parts[total]), "indentation") for total in sorted(parts)]


def by_sex(columns: Sequence[Column]) -> list[Proposal]:
    """Propose that every line's total is its men and women.

    Examples
    --------
    >>> columns = [Column(f"8/{sex}", ("8", sex), "All") for sex in ("total", "men", "women")]
    >>> by_sex(columns)
    [Proposal(total=0, parts=(1, 2), origin='sex')]
    """
    index = {column.codes: at for at, column in enumerate(columns)}
    found = []
    for codes, at in index.items():
        if codes[-1] == TOTAL:
            sexes = [index.get((*codes[:-1], sex)) for sex in (MEN, WOMEN)]
            if None not in sexes:
                found.append(Proposal(at, tuple(part for part in sexes if part is not None), "sex"))
    return found
