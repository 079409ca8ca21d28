"""Why more was found than predicted: what an adjusted population would do.

Under the exact population the authors found half as many cases again as they predicted for men and women, and about
twice as many for ages; without it, about as many as predicted. Populations of small areas may be adjusted, always
within 5. An adjustment moves the residual, and residuals just inside the bound are far commoner than those on it: so a
few adjusted areas make many more finds, the more so the more parts there are. Here the share of adjusted areas is
chosen so that the finds for men and women come out as they did; what it says about ages is then a prediction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unround.expectation import Number, expectation, shifted, surprise
from unround.replication.claim import AGE, AGE_STRONG, SEX, Search

REACH = 5
"""The agency says that adjustments stay within this."""


@dataclass(frozen=True, slots=True)
class Adjusted:
    """What follows if some populations were moved by up to `reach`, up or down, each step equally likely.

    - `reach`: The largest adjustment.
    - `share`: The share of areas that were adjusted, so that as many cases of men and women come out as were found.
    - `expected`: The finds to expect, by search.
    - `surprise`: How likely the paper's count is at least so far from that, by search.
    - `wrong`: The share of the finds for men and women that would not be proofs of anything.
    - `impossible`: How many areas would show men and women that cannot add up to the population at all.
    """

    reach: int
    share: float
    expected: dict[str, float]
    surprise: dict[str, float]
    wrong: float
    impossible: float

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "reach": self.reach,
            "share": self.share,
            "expected": self.expected,
            "surprise": self.surprise,
            "wrong": self.wrong,
            "impossible": self.impossible,
        }


def adjusted(reach: int) -> Adjusted:
    """Work out what adjustments of up to `reach` would explain.

    Examples
    --------
    >>> one = adjusted(1)
    >>> round(one.share, 2), round(one.expected["age exact"], 1)
    (0.46, 14.7)
    """
    steps = [by for by in range(-reach, reach + 1) if by]
    always: list[tuple[int, Number]] = [(by, 1 / len(steps)) for by in steps]
    plain = {search.key: _finds(search, [(0, 1.0)]) for search in (SEX, AGE, AGE_STRONG)}
    moved = {search.key: _finds(search, always) for search in (SEX, AGE, AGE_STRONG)}
    share = (SEX.found - plain[SEX.key]) / (moved[SEX.key] - plain[SEX.key])
    expected = {key: (1 - share) * plain[key] + share * moved[key] for key in plain}
    chances = {search.key: surprise(search.found, expected[search.key]) for search in (AGE, AGE_STRONG)}
    sexes = shifted(expectation(SEX.parts, exact_total=True), always)
    beyond = float(sum(p for at, p in sexes.items() if abs(at) > SEX.residual))
    wrong = share * moved[SEX.key] / expected[SEX.key]
    return Adjusted(reach, share, expected, chances, wrong, SEX.groups * share * beyond)


def _finds(search: Search, shift: list[tuple[int, Number]]) -> float:
    shares = shifted(expectation(search.parts, exact_total=True), shift)
    return search.groups * float(shares.get(search.residual, 0) + shares.get(-search.residual, 0))


def excess() -> tuple[Adjusted, ...]:
    """Return what adjustments of up to 1, 2, … 5 would explain."""
    return tuple(adjusted(reach) for reach in range(1, REACH + 1))
