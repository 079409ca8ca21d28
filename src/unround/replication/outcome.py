"""What the paper's experiment gives: finds beside what two models predict for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any

from unround.expectation import expectation, interval, surprise
from unround.replication.claim import SEARCHES, Search

BASE = 5
LEVEL = 0.999
"""What the intervals hold."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """How many finds a model expects: with parts that add up to less than the total, and to more.

    Finds are taken as Poisson counts: they are rare and, given the true counts, next to independent.
    """

    below: float
    above: float

    @property
    def mean(self) -> float:
        """Finds of both kinds."""
        return self.below + self.above

    @property
    def interval(self) -> tuple[int, int]:
        """What holds the number of finds with 99.9 % probability."""
        return interval(self.mean, LEVEL)

    def explains(self, below: int, above: int) -> bool:
        """Whether the finds, and those of each kind, lie in their intervals."""
        pairs = ((below + above, self.mean), (below, self.below), (above, self.above))
        return all(low <= found <= high for found, mean in pairs for low, high in [interval(mean, LEVEL)])

    def to_json(self, below: int, above: int) -> dict[str, Any]:
        """Return it as plain data, beside what was found."""
        low, high = self.interval
        return {
            "mean": self.mean,
            "low": low,
            "high": high,
            "below": self.below,
            "above": self.above,
            "inside": low <= below + above <= high,
            "surprise": surprise(below + above, self.mean),
            "surprise_below": surprise(below, self.below),
            "surprise_above": surprise(above, self.above),
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one search found.

    - `search`: Which one.
    - `kinds`: How many different sums of the profile it looked at, each column for itself.
    - `groups`, `expected_groups`: How many groups of cells had all values above 10, and how many the true counts let
      expect.
    - `below`, `above`: Finds with parts that add up to less than the total, and to more.
    - `repeated`: Finds in areas that hold the same people as the one area inside them.
    - `sizes`: From the simulated true counts.
    """

    search: Search
    kinds: int
    groups: int
    expected_groups: float
    below: int
    above: int
    repeated: int
    sizes: Prediction

    @property
    def found(self) -> int:
        """All finds."""
        return self.below + self.above

    @property
    def uniform(self) -> Prediction:
        """From uniform remainders, as the paper does."""
        search = self.search
        model = expectation(search.parts, exact_total=search.exact_total, base=BASE)
        below, above = model.share(search.residual), model.share(-search.residual)
        return Prediction(float(self.groups * below), float(self.groups * above))

    @property
    def inside(self) -> bool:
        """Whether the finds lie in the interval that the true counts let expect."""
        low, high = self.sizes.interval
        return low <= self.found <= high

    @property
    def explained_by(self) -> str | None:
        """Which prediction explains what was found: "both", "sizes", "uniform" or "neither"; None with nowhere to look."""
        if not self.groups:
            return None
        uniform, sizes = (model.explains(self.below, self.above) for model in (self.uniform, self.sizes))
        if uniform and sizes:
            return "both"
        return "sizes" if sizes else "uniform" if uniform else "neither"

    @property
    def evidence(self) -> float:
        """The logarithm of how many times as likely the sizes make these finds, by direction, as uniform remainders."""
        pairs = ((self.below, self.sizes.below, self.uniform.below), (self.above, self.sizes.above, self.uniform.above))
        if any(found and not (by_size and uniform) for found, by_size, uniform in pairs):
            return 0.0  # a model that rules out what was found is none to weigh by
        return sum(
            (found * log(by_size / uniform) if found else 0.0) - by_size + uniform for found, by_size, uniform in pairs
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "search": self.search.key,
            "title": self.search.title,
            "condition": condition(self.search),
            "kinds": self.kinds,
            "groups": self.groups,
            "expected_groups": self.expected_groups,
            "found": self.found,
            "below": self.below,
            "above": self.above,
            "repeated": self.repeated,
            "values": self.found * self.search.values,
            "uniform": self.uniform.to_json(self.below, self.above),
            "sizes": self.sizes.to_json(self.below, self.above),
            "explained_by": self.explained_by,
            "evidence_for_sizes": self.evidence,
            "paper": {"groups": self.search.groups, "found": self.search.found},
        }


@dataclass(frozen=True, slots=True)
class Experiment:
    """The paper's experiment on a simulated census, or on several, one after the other.

    `areas` is how many each has; `repeated_areas` are those that hold the same people as the one area inside them; `keys`
    says whether counts were rounded by the keys of their records.
    """

    areas: int
    seeds: tuple[int, ...]
    rows: str
    repeated_areas: int
    outcomes: tuple[Outcome, ...]
    keys: bool = False

    def __getitem__(self, key: str) -> Outcome:
        """Return the outcome of one search."""
        for outcome in self.outcomes:
            if outcome.search.key == key:
                return outcome
        raise KeyError(key)

    @property
    def inside(self) -> bool:
        """Whether every count lies in the interval predicted from the true counts."""
        return all(outcome.inside for outcome in self.outcomes)

    @property
    def evidence(self) -> float:
        """The logarithm of how many times as likely the sizes make all finds as uniform remainders."""
        return sum(outcome.evidence for outcome in self.outcomes)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Experiment:
        """Read it back from what `to_json` returned."""
        searches = {search.key: search for search in SEARCHES}
        outcomes = tuple(
            Outcome(
                search=searches[one["search"]],
                sizes=Prediction(one["sizes"]["below"], one["sizes"]["above"]),
                **{key: one[key] for key in ("kinds", "groups", "expected_groups", "below", "above", "repeated")},
            )
            for one in data["outcomes"]
        )
        return cls(
            data["areas"], tuple(data["seeds"]), data["rows"], data["repeated_areas"], outcomes, data.get("keys", False)
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data, as `python -m unround.research paper --simulate --json` prints it."""
        return {
            "areas": self.areas,
            "seeds": list(self.seeds),
            "rows": self.rows,
            "keys": self.keys,
            "repeated_areas": self.repeated_areas,
            "level": LEVEL,
            "inside": self.inside,
            "evidence_for_sizes": self.evidence,
            "outcomes": [outcome.to_json() for outcome in self.outcomes],
        }


def condition(search: Search) -> str:
    """Say what makes a find, as a formula."""
    total = "population" if search.exact_total else "total"
    return f"|{total} − Σ {search.parts} parts| = {search.residual}"


def pooled(runs: Sequence[Experiment]) -> Experiment:
    """Add up several runs of the same size: what chance hides in one may show in many."""
    first = runs[0]
    outcomes = []
    for same in zip(*(run.outcomes for run in runs), strict=True):
        sizes = Prediction(sum(one.sizes.below for one in same), sum(one.sizes.above for one in same))
        counted = {
            name: sum(getattr(one, name) for one in same)
            for name in ("groups", "expected_groups", "below", "above", "repeated")
        }
        outcomes.append(replace(same[0], sizes=sizes, **counted))
    seeds = tuple(seed for run in runs for seed in run.seeds)
    repeated = sum(run.repeated_areas for run in runs)
    return Experiment(first.areas, seeds, first.rows, repeated, tuple(outcomes), first.keys)
