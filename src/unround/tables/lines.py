"""The characteristics of a Canadian profile, their indentation, their tables, and the sums that their layout suggests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from unround.release import Column, Proposal

FIRST = "Population and dwellings"
"""What Statistics Canada calls the lines above the first "Total - …"."""

_HEAD = re.compile(r"total\b", re.IGNORECASE)
_PEOPLE = re.compile(r"total - age groups? of the population\b.*|total - age\b.*", re.IGNORECASE)
# One private household lives in every occupied private dwelling. Estimates from the 25 % sample differ from the full count.
_HOUSEHOLDS = re.compile(
    r"total - (?:occupied private dwellings by\b|private households by\b|household type\b"
    r"|household (?:total|after-tax) income groups\b.* for private households\b)(?!.*25% sample).*",
    re.IGNORECASE,
)
_OCCUPIED = "private dwellings occupied by usual residents"


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """One characteristic: its number, its label without blanks around it, and how far that is indented, in levels."""

    id: int
    label: str
    depth: int

    @classmethod
    def of(cls, number: int, text: str) -> ProfileLine:
        """Read a label that is indented by two blanks a level.

        Examples
        --------
        >>> ProfileLine.of(10, "    0 to 4 years")
        ProfileLine(id=10, label='0 to 4 years', depth=2)
        """
        label = text.strip()
        return cls(number, label, (len(text) - len(text.lstrip())) // 2)


def blocks_of(lines: Sequence[ProfileLine]) -> list[str]:
    """Return, for every line, the table that it stands in: the label of the nearest line above that is not indented.

    The lines at the very beginning, above the first "Total …" with lines below it, are a table by themselves.

    Examples
    --------
    >>> texts = ["Population, 2021", "Total - Age groups", "  0 to 14 years", "Number of persons in private households"]
    >>> blocks_of([ProfileLine.of(at, text) for at, text in enumerate(texts)])
    ['Population and dwellings', 'Total - Age groups', 'Total - Age groups', 'Number of persons in private households']
    """
    blocks, now, begun = [], FIRST, False
    for at, line in enumerate(lines):
        if line.depth == 0:
            heads = at + 1 < len(lines) and lines[at + 1].depth > 0
            begun = begun or (heads and _HEAD.match(line.label) is not None)
            now = line.label if begun else FIRST
        blocks.append(now)
    return blocks


def universes(columns: Sequence[Column], year: str) -> list[Proposal]:
    """Propose that tables count the same people or households as the lines that are published as they are.

    Examples
    --------
    >>> labels = ["Population, 2021", "Total - Age groups of the population - 100% data"]
    >>> universes([Column(str(at), (str(at), "total"), label) for at, label in enumerate(labels)], "2021")
    [Proposal(total=0, parts=(1,), origin='universe')]
    """
    whole = [(at, column) for at, column in enumerate(columns) if column.codes[-1] == "total" and column.depth == 0]
    found = []
    for label, pattern in ((f"population, {year}", _PEOPLE), (_OCCUPIED, _HOUSEHOLDS)):
        known = next((at for at, column in whole if column.label.lower() == label), None)
        if known is not None:
            alike = (at for at, column in whole if at != known and pattern.fullmatch(column.label))
            found += [Proposal(known, (at,), "universe") for at in alike]
    return found


MEN, WOMEN, TOTAL = "men", "women", "total"


def indented(columns: Sequence[Column]) -> list[Proposal]:
    """Propose that a line is the sum of the lines indented below it, for each sex by itself.

    Columns of anything but counts are not here, so that levels may be skipped: the parts of a line are the lines below it
    that no other line in between stands above.

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
