"""One claim of the paper beside what unround computes, the rule by which they agree, and the numbers that are given.

Everything else in this package is worked out. The numbers at the end are inputs (how many areas there were) or what is to be
explained (how many cases were found).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

Plain = int | float | str | None | list[Any]
"""What JSON can hold."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim.

    - `claim`: What is claimed, in our words.
    - `section`: Where it stands in the paper.
    - `paper`, `computed`: The paper's value and ours: numbers wherever the claim is one. `computed` is None where it
      cannot be recomputed.
    - `agrees`: None where it cannot be recomputed.
    - `note`: Why not, or what else is worth knowing.
    """

    claim: str
    section: str
    paper: Plain
    computed: Plain
    agrees: bool | None
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data, one entry of what `python -m unround.research paper --json` prints."""
        return {
            "claim": self.claim,
            "section": self.section,
            "paper": self.paper,
            "computed": self.computed,
            "agrees": self.agrees,
            "note": self.note,
        }


def matches(printed: str, value: float | Fraction) -> bool:
    """Whether a value, rounded or cut to the digits that were printed, gives what was printed.

    Examples
    --------
    >>> matches("313", 312.5), matches("4882", 4882.8125), matches("1308", 1302.08), matches("1.02e-4", 1.024e-4)
    (True, True, False, True)
    """
    shown = Decimal(printed)
    exact = Decimal(value.numerator) / value.denominator if isinstance(value, Fraction) else Decimal(repr(value))
    unit = Decimal(1).scaleb(int(shown.as_tuple().exponent))
    return shown in (exact.quantize(unit, how) for how in (ROUND_HALF_UP, ROUND_DOWN))


def number(claim: str, section: str, printed: str, value: float | Fraction, note: str = "") -> Claim:
    """Compare a number as it was printed with its exact value."""
    shown = float(printed)
    paper = int(shown) if shown.is_integer() and "." not in printed else shown
    return Claim(claim, section, paper, plain(value), matches(printed, value), note)


def values(claim: str, section: str, printed: Sequence[Any], computed: Sequence[Any], note: str = "") -> Claim:
    """Compare values that must be the same, one by one."""
    ours = [plain(value) for value in computed]
    theirs = [plain(value) for value in printed]
    return Claim(claim, section, theirs, ours, theirs == ours, note)


def unknown(claim: str, section: str, paper: Plain, note: str) -> Claim:
    """List what cannot be recomputed."""
    return Claim(claim, section, paper, None, None, note)


def plain(value: Any) -> Any:
    """Return fractions as numbers, tuples as lists."""
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    return value


AREAS = 61_029
"""All areas that the authors could query."""

STRONG = 0.66
"""From which probability on the paper calls a result strong."""

OVER = 10
"""Only groups in which every published value is above this were looked at."""

LAPLACE = 1.45
"""The scale of the noise that the paper proposes."""


@dataclass(frozen=True, slots=True)
class Search:
    """One of the paper's searches through the census.

    - `key`, `title`: A short name, and one for people.
    - `parts`: How many parts the sums have.
    - `exact_total`: Whether the total is the population, which is not rounded.
    - `residual`: |total − Σ parts| that counts as a find.
    - `section`: Where the paper reports it.
    - `groups`: In how many groups of cells the authors could look.
    - `found`: How many cases they found.
    - `values`: How many values one case gives away.
    """

    key: str
    title: str
    parts: int
    exact_total: bool
    residual: int
    section: str
    groups: int
    found: int
    values: int


SEX = Search("sex exact", "men and women under the exact population", 2, True, 8, "4.1.1", 61_010, 285, 2)
AGE = Search("age exact", "three ages under the exact population", 3, True, 12, "4.1.1", 59_625, 18, 3)
AGE_STRONG = Search("age strong", "three ages, one short of the bound", 3, True, 11, "4.2.1", 59_625, 83, 3)
FREE = Search("free exact", "four parts and their rounded total", 4, False, 20, "4.1.2", 83_898, 0, 5)
FREE_STRONG = Search("free strong", "three parts and their rounded total", 3, False, 15, "4.2.2", 918_192, 216, 4)
SEARCHES = (SEX, AGE, AGE_STRONG, FREE, FREE_STRONG)
"""The paper's four attacks; the one on ages comes in an exact and a strong form."""
