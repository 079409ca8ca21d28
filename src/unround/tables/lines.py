"""The lines of a profile: their indentation, their tables, what kind of number each holds, and the sums that this suggests.

Census tables mix counts with figures worked out from them. Only counts add up and only counts were rounded at random, so
that everything else is to be told apart by its label, as far as labels go. Labels do not always tell (rows 35 to 38 of the
Canadian profile are percentages that are named like age groups): those are given away by their decimals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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


MEN, WOMEN, TOTAL = "men", "women", "total"
COUNT = "count"


@dataclass(frozen=True, slots=True)
class TableLine:
    """One line of a table: a count or a figure, and for whom it is given.

    `id` is its code, `depth` how far its label is indented, `table` the table that it stands in, `kind` what `kind_of` says,
    and `sexes` those that it has columns for ("total" alone where there are no sexes).
    """

    id: str
    label: str
    depth: int = 0
    table: str = ""
    kind: str = COUNT
    sexes: tuple[str, ...] = (TOTAL,)


def key_of(number: str, sex: str) -> str:
    """Return the key of a column, of counts or of figures."""
    return number if sex == TOTAL else f"{number}/{sex}"


def profile_lines(rows: Iterable[tuple[str, str]]) -> list[TableLine]:
    """Return the lines of a profile, from their codes and their labels, which are indented by two blanks a level.

    The table of a line is the label of the nearest line above that is not indented; the lines at the very beginning, above
    the first "Total …" with lines below it, are a table by themselves. Below a line of percentages there are percentages.

    >>> texts = ["Population, 2021", "Total - Age (%)", "  0 to 14 years", "Number of persons in private households"]
    >>> [(line.table, line.kind) for line in profile_lines(zip("1234", texts))][1:3]
    [('Total - Age (%)', 'percentage'), ('Total - Age (%)', 'percentage')]
    """
    texts = [(code, text.strip(), (len(text) - len(text.lstrip())) // 2) for code, text in rows]
    labels, depths = [label for _, label, _ in texts], [depth for _, _, depth in texts]
    lines, table, begun = list[TableLine](), FIRST, False
    for at, ((code, label, depth), kind) in enumerate(zip(texts, kinds_of(labels, depths), strict=True)):
        if depth == 0:
            heads = at + 1 < len(texts) and depths[at + 1] > 0
            begun = begun or (heads and _HEAD.match(label) is not None)
            table = label if begun else FIRST
        lines.append(TableLine(code, label, depth, table, kind))
    return lines


def universes(columns: Sequence[Column], year: str) -> list[Proposal]:
    """Propose that tables count the same people or households as the lines that are published as they are.

    >>> labels = ["Population, 2021", "Total - Age groups of the population - 100% data"]
    >>> found = universes([Column(str(at), (str(at), "total"), label) for at, label in enumerate(labels)], "2021")
    >>> [(proposal.total, proposal.parts) for proposal in found]
    [(0, (1,))]
    """
    whole = [(at, column) for at, column in enumerate(columns) if column.codes[-1] == "total" and column.depth == 0]
    found = []
    for label, pattern in ((f"population, {year}", _PEOPLE), (_OCCUPIED, _HOUSEHOLDS)):
        known = next((at for at, column in whole if column.label.lower() == label), None)
        if known is not None:
            alike = (at for at, column in whole if at != known and pattern.fullmatch(column.label))
            found += [Proposal(known, (at,), "universe") for at in alike]
    return found


def indented(columns: Sequence[Column]) -> list[Proposal]:
    """Propose that a line is the sum of the lines indented below it, for each sex by itself.

    Columns of anything but counts are not here, so that levels may be skipped: the parts of a line are the lines below it
    that no other line in between stands above.

    >>> lines = [("8", "All", 0), ("9", "Young", 1), ("10", "Very young", 2), ("13", "Old", 1)]
    >>> columns = [Column(key, (key, "total"), label, depth=depth) for key, label, depth in lines]
    >>> [(proposal.total, proposal.parts) for proposal in indented(columns)]
    [(0, (1, 3)), (1, (2,))]
    """
    by_sexes: dict[str, list[int]] = {}
    for at, column in enumerate(columns):
        by_sexes.setdefault(column.codes[-1], []).append(at)
    found = []
    for own in by_sexes.values():
        for total, parts in indented_below([columns[at].depth for at in own]).items():
            found.append(Proposal(own[total], tuple(own[part] for part in parts), "indentation"))
    return sorted(found, key=lambda proposal: proposal.total)


def above(depths: Sequence[int]) -> list[int]:
    """Return for each line the nearest one before it that is indented less, or -1."""
    found, path = list[int](), list[int]()
    for at, depth in enumerate(depths):
        while path and depths[path[-1]] >= depth:
            path.pop()
        found.append(path[-1] if path else -1)
        path.append(at)
    return found


def indented_below(depths: Sequence[int]) -> dict[int, list[int]]:
    """Return every line that others are indented below, with those that no other line in between stands above."""
    found: dict[int, list[int]] = {}
    for at, head in enumerate(above(depths)):
        if head >= 0:
            found.setdefault(head, []).append(at)
    return found


def by_sex(columns: Sequence[Column]) -> list[Proposal]:
    """Propose that every line's total is its men and women.

    >>> columns = [Column(f"8/{sex}", ("8", sex), "All") for sex in ("total", "men", "women")]
    >>> [(proposal.total, proposal.parts) for proposal in by_sex(columns)]
    [(0, (1, 2))]
    """
    index = {column.codes: at for at, column in enumerate(columns)}
    found = []
    for codes, at in index.items():
        if codes[-1] == TOTAL:
            sexes = [index.get((*codes[:-1], sex)) for sex in (MEN, WOMEN)]
            if None not in sexes:
                found.append(Proposal(at, tuple(part for part in sexes if part is not None), "sex"))
    return found


_TOTAL = re.compile(r"total\s*[-–—:]")
_NOTE = re.compile(r"\s*\(\d+\)\s*$")
# A % that follows no number ("Market income (%)", "% in core housing need"), unlike "30% or more", "100% data".
_PERCENT = re.compile(r"(?:^|[^\d\s])\s*%")

# In the order in which they are asked: "Median income ($)" is a median, "Average % of …" an average.
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("standard error", re.compile(r"\bstandard (?:error|deviation)\b")),
    ("median", re.compile(r"\bmedians?\b|\bmediaan\b|\bmédiane?s?\b|\bmediana\b")),
    (
        "average",
        re.compile(
            r"\baverages?\b|^mean\b|\bmean$|\bdurchschnitt(?:s|lich)?|\bgemiddelde?\b|\bmoyen(?:ne)?s?\b|\bpromedio\b|"
            r"\b(?:edad|età|idade) medi[ao]\b|\bmittlere[rs]? (?:alter|größe|dauer)\b|\bg(?:jennom|ennem|enom)snit"
        ),
    ),
    ("percentage", _PERCENT),
    ("percentage", re.compile(r"\bpercentages?\b|(?<!\d )\bper ?cent\b|\bproportions?\b|^shares? of\b|^prevalence\b")),
    ("density", re.compile(r"\bdensity\b|\bper (?:square|sq)\b")),
    ("area", re.compile(r"\bsq(?:uare|\.)? ?(?:kilomet|km|miles?)|\bhectares?\b|^land area\b|\bkm²|\bkm2\b")),
    # A dollar sign with a figure behind it is a bracket of incomes, and people in it are counted.
    ("amount", re.compile(r"\$(?!\s*\d)|\bdollars\b")),
    ("index", re.compile(r"\bgini\b|\bindex\b")),
    # "by shelter-cost-to-income ratio" names what households are counted by.
    ("ratio", re.compile(r"(?<!-income )\bratio\b")),
    ("rate", re.compile(r"\brates?$|\b(?:participation|employment|unemployment) rate\b")),
)


def kind_of(label: str) -> str:
    """Say what kind of number a label announces: "count", or what else.

    "count", "percentage", "median", "average", "amount" (of money), "rate", "ratio", "index", "density", "area" or
    "standard error".

    >>> kind_of("Median total income in 2020 among recipients ($)")
    'median'
    >>> kind_of("  $10,000 to $19,999"), kind_of("Spending 30% or more of income on shelter costs")
    ('count', 'count')
    >>> kind_of("% of owner households with a mortgage (64)")
    'percentage'
    """
    name = _NOTE.sub("", label.replace("_", " ")).strip().lower()
    if _TOTAL.match(name):
        # The head of a block counts what the block is about, whatever else its title mentions.
        return "percentage" if _PERCENT.search(name) else COUNT
    return next((kind for kind, pattern in _KINDS if pattern.search(name)), COUNT)


def kinds_of(labels: Sequence[str], depths: Sequence[int]) -> list[str]:
    """Say what kind of number each line of an indented table announces.

    Below a line of percentages there are percentages, whatever they are called.

    >>> kinds_of(["Total - Distribution (%) of the population", "0 to 14 years", "Total - Age groups"], [0, 1, 0])
    ['percentage', 'percentage', 'count']
    """
    kinds: list[str] = []
    above: int | None = None
    for label, depth in zip(labels, depths, strict=True):
        if above is not None and depth <= above:
            above = None
        kind = kind_of(label)
        if kind == COUNT and above is not None:
            kind = "percentage"
        elif kind == "percentage" and above is None:
            above = depth
        kinds.append(kind)
    return kinds
