"""Kinds: whether a number with a given label is a count, or a percentage, a median, an amount of money.

Census tables mix counts with figures worked out from them. Only counts add up and only counts were rounded at random, so
that everything else is to be told apart by its label, as far as labels go. Labels do not always tell (rows 35 to 38 of the
Canadian profile are percentages that are named like age groups): those are given away by their decimals.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

COUNT = "count"

_TOTAL = re.compile(r"total\s*[-–—:]")
_NOTE = re.compile(r"\s*\(\d+\)\s*$")
# A % that follows no number ("Market income (%)", "% in core housing need"), unlike "30% or more", "100% data".
_PERCENT = re.compile(r"(?:^|[^\d\s])\s*%")

# In the order in which they are asked: "Median income ($)" is a median, "Average % of …" an average.
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("standard error", re.compile(r"\bstandard (?:error|deviation)\b")),
    ("median", re.compile(r"\bmedians?\b")),
    ("average", re.compile(r"\baverages?\b|^mean\b|\bmean$")),
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

    Examples
    --------
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

    Examples
    --------
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
