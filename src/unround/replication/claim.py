"""One claim of the paper beside what unround computes, and the rule by which they agree."""

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

    Parameters
    ----------
    claim : str
        What is claimed, in our words.
    section : str
        Where it stands in the paper.
    paper, computed : plain data
        The paper's value and ours: numbers wherever the claim is one. `computed` is None where it cannot be
        recomputed.
    agrees : bool or None
        None where it cannot be recomputed.
    note : str
        Why not, or what else is worth knowing.
    """

    claim: str
    section: str
    paper: Plain
    computed: Plain
    agrees: bool | None
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data, one entry of what `unround paper --json` prints."""
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
