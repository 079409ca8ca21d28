"""Several runs of the paper's experiment, and why the authors found more than they predicted, for docs/paper.md.

Why more was found than predicted (`excess`): what an adjusted population would do.

Under the exact population the authors found half as many cases again as they predicted for men and women, and about
twice as many for ages; without it, about as many as predicted. Populations of small areas may be adjusted, always
within 5. An adjustment moves the residual, and residuals just inside the bound are far commoner than those on it: so a
few adjusted areas make many more finds, the more so the more parts there are. Here the share of adjusted areas is
chosen so that the finds for men and women come out as they did; what it says about ages is then a prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from research.paper import AGE, AGE_STRONG, AREAS, SEARCHES, SEX, Search
from research.searches import Experiment, FindPrediction, Outcome, experiment

from unround.expectation import Expectation, Number, expectation, surprise
from unround.shown import Plain


def read_run(data: dict[str, Any]) -> Experiment:
    """Read an experiment back from what its `to_json` returned."""
    searches = {search.key: search for search in SEARCHES}
    outcomes = tuple(
        Outcome(
            search=searches[kept["search"]],
            sizes=FindPrediction(kept["sizes"]["below"], kept["sizes"]["above"]),
            **{key: kept[key] for key in ("kinds", "groups", "expected_groups", "below", "above", "repeated")},
        )
        for kept in data["outcomes"]
    )
    return Experiment(
        data["areas"], tuple(data["seeds"]), data["rows"], data["repeated_areas"], outcomes, data.get("keys", False)
    )


def pooled(runs: Sequence[Experiment]) -> Experiment:
    """Add up several runs of the same size: what chance hides in one may show in many."""
    first = runs[0]
    outcomes = []
    for same in zip(*(run.outcomes for run in runs), strict=True):
        sizes = FindPrediction(sum(run.sizes.below for run in same), sum(run.sizes.above for run in same))
        names = ("groups", "expected_groups", "below", "above", "repeated")
        sums = {name: sum(getattr(run, name) for run in same) for name in names}
        outcomes.append(replace(same[0], sizes=sizes, **sums))
    seeds = tuple(seed for run in runs for seed in run.seeds)
    repeated = sum(run.repeated_areas for run in runs)
    return Experiment(first.areas, seeds, first.rows, repeated, tuple(outcomes), first.keys)


def ten_seeds(
    areas: int = AREAS, rows: str = "short", progress: Callable[[int], None] | None = None, *, keys: bool = False
) -> list[Experiment]:
    """Run the experiment for ten seeds; `Experiment.inside` says whether each agrees with its prediction."""
    return [experiment(areas, seed, rows, progress, keys=keys) for seed in range(1, 11)]


REACH = 5
"""The agency says that adjustments stay within this."""


@dataclass(frozen=True, slots=True)
class Adjusted(Plain):
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


def adjusted(reach: int) -> Adjusted:
    """Work out what adjustments of up to `reach` would explain.

    >>> by_one = adjusted(1)
    >>> round(by_one.share, 2), round(by_one.expected["age exact"], 1)
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


def shifted(model: Expectation, shift: Sequence[tuple[int, Number]]) -> dict[int, Number]:
    """Return the shares of residuals if the total is off by something that has nothing to do with the rounding.

    >>> sexes = expectation(2, exact_total=True)
    >>> shares = shifted(sexes, [(0, Fraction(1, 2)), (-1, Fraction(1, 4)), (1, Fraction(1, 4))])
    >>> shares[8] / sexes.share(8)
    Fraction(3, 2)
    """
    shares: dict[int, Number] = {}
    for residual in model.residuals:
        for by, how_often in shift:
            at = residual.residual + by
            shares[at] = shares.get(at, Fraction(0)) + residual.probability * how_often
    return shares
