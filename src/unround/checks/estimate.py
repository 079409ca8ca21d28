"""What the mechanism appears to be: the base, 0 or 10 below 10, repeats alike or anew, round-up rates by remainder.

The published counts themselves are tested here, too: multiples of the base, and of nothing larger.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.checks.families import (
    ALL_TABLES,
    CONTRADICTS,
    DEPARTS,
    FITS,
    LEAST_STEPS,
    LEAST_SUMS,
    NO_TABLE,
    UNTESTED,
    Family,
    more_than_slips,
)
from unround.errors import InputError
from unround.expectation import chi_square_tail
from unround.mechanisms import Exact, Mechanism
from unround.mechanisms.base import step_of
from unround.release import ABSENT, Counts, Release
from unround.structure import Structure
from unround.structure.evidence import INFERRED

LEAST_COUNTS = 20
"""The least number of counts of one remainder for which a rate is given."""

Ints = NDArray[np.int64]


class PublishedTally:
    """Counts, column by column, what published values leave when divided; and compares roundings with exact counts."""

    def __init__(self, release: Release, structure: Structure) -> None:
        self.keys = [column.key for column in release.columns]
        self.steps = np.array([step_of(how) if how is not None else 1 for how in structure.mechanisms])
        width = len(self.keys)
        self.above, self.odd, self.large, self.twice = (np.zeros(width, dtype=np.int64) for _ in range(4))
        self.example = np.full((width, 2), -1, dtype=np.int64)
        self._groups = _groups(structure)
        self.rates: dict[tuple[int, int], Ints] = {
            (exact, first): np.zeros((2, int(self.steps[first])), dtype=np.int64)
            for exact, those in self._groups
            for first in those
        }
        self.together: dict[tuple[int, int, int], Ints] = {
            (exact, first, second): np.zeros((int(self.steps[first]), 2, 2), dtype=np.int64)
            for exact, those in self._groups
            for first, second in combinations(those, 2)
            if self.steps[first] == self.steps[second]
        }
        self._done = 0

    def add(self, counts: Counts) -> None:
        """Take in some areas."""
        steps = self.steps
        above, odd = counts > 0, (counts > 0) & (counts % steps != 0)
        large = (counts >= LEAST_STEPS * steps) & ~odd
        self.above += above.sum(0)
        self.odd += odd.sum(0)
        self.large += large.sum(0)
        self.twice += (large & (counts % (2 * steps) == 0)).sum(0)
        for column in np.flatnonzero(odd.any(0) & (self.example[:, 0] < 0)).tolist():
            area = int(np.argmax(odd[:, column]))
            self.example[column] = self._done + area, counts[area, column]
        for exact, those in self._groups:
            self._compare(counts, exact, those)
        self._done += len(counts)

    def _compare(self, counts: Counts, exact: int, those: tuple[int, ...]) -> None:
        true = counts[:, exact].astype(np.int64)
        for column in those:
            step = int(self.steps[column])
            shown = counts[:, column].astype(np.int64)
            fine = (true > ABSENT) & (shown > ABSENT) & (true >= LEAST_STEPS * step) & (abs(shown - true) < step)
            rest, up = true[fine] % step, (shown > true)[fine]
            self.rates[exact, column] += np.stack([np.bincount(rest, minlength=step), np.bincount(rest[up], minlength=step)])
        for column, other in combinations(those, 2):
            if (exact, column, other) not in self.together:
                continue
            step = int(self.steps[column])
            first, second = counts[:, column].astype(np.int64), counts[:, other].astype(np.int64)
            fine = (true >= LEAST_STEPS * step) & (abs(first - true) < step) & (abs(second - true) < step)
            np.add.at(
                self.together[exact, column, other],
                (true[fine] % step, (first > true)[fine].astype(int), (second > true)[fine].astype(int)),
                1,
            )


def _groups(structure: Structure) -> list[tuple[int, tuple[int, ...]]]:
    """Return the exact counts that are also published rounded, and the columns where they are."""
    rounded_in: dict[int, list[int]] = {}
    for repeat in structure.repeats:
        exact = [c for c in repeat.columns if isinstance(structure.mechanisms[c], Exact)]
        rounded = [c for c in repeat.columns if step_of(structure.mechanisms[c] or Exact()) > 1]
        if exact and rounded:
            rounded_in.setdefault(exact[0], []).extend(c for c in rounded if c not in rounded_in.get(exact[0], ()))
    return [(exact, tuple(those)) for exact, those in rounded_in.items()]


@dataclass(frozen=True)
class EstimatedMechanism:
    """What the mechanism appears to be, as plain data.

    - `tables`: By table: the mechanism, whether it is declared, and the evidence for it.
    - `repeats`: Counts that appear more than once: alike, or rounded anew.
    - `rates`: Round-up rates by remainder, where the exact count is published too.
    - `together`: Two roundings of one exact count: how often both went up, and both down, by remainder.
    """

    tables: list[dict[str, Any]]
    repeats: list[dict[str, Any]]
    rates: list[dict[str, Any]]
    together: list[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"tables": self.tables, "repeats": self.repeats, "round_up": self.rates, "together": self.together}


def estimated(structure: Structure, published: PublishedTally) -> EstimatedMechanism:
    """Put together what the counts say about the mechanism."""
    keys = published.keys
    tables = [
        {
            "table": used.block,
            "columns": len(used.columns),
            "mechanism": used.mechanism.name if used.mechanism else None,
            "declared": used.basis != INFERRED,
            "basis": used.basis,
            "why": used.why,
        }
        for used in structure.how
    ]
    repeats = [
        {"columns": [keys[c] for c in repeat.columns], "alike": repeat.alike, "why": repeat.why}
        for repeat in structure.repeats
    ]
    rates = [_rates(keys[exact], keys[c], *table) for (exact, c), table in published.rates.items() if table[0].sum() > 0]
    together = [
        _together((keys[exact], keys[first], keys[second]), table)
        for (exact, first, second), table in published.together.items()
        if table.sum() > 0
    ]
    return EstimatedMechanism(tables, repeats, rates, together)


def _rates(exact: str, rounded: str, numbers: Ints, ups: Ints) -> dict[str, Any]:
    base = len(numbers)
    should = np.arange(base) / base
    judged = [r for r in range(1, base) if numbers[r] >= LEAST_COUNTS]
    variance = numbers * should * (1 - should)
    statistic = sum(float((ups[r] - numbers[r] * should[r]) ** 2 / variance[r]) for r in judged)
    return {
        "exact": exact,
        "rounded": rounded,
        "by_remainder": {
            str(r): {"counts": int(numbers[r]), "up": float(ups[r] / numbers[r]), "unbiased": float(should[r])}
            for r in range(base)
            if numbers[r] >= LEAST_COUNTS
        },
        "p_value": chi_square_tail(len(judged), statistic) if judged else None,
    }


def _together(names: tuple[str, str, str], table: Ints) -> dict[str, Any]:
    base, statistic, freedom, shown = len(table), 0.0, 0, {}
    for rest in range(1, base):
        here, number = table[rest], int(table[rest].sum())
        if number < LEAST_COUNTS:
            continue
        up = rest / base
        alone = number * np.outer([1 - up, up], [1 - up, up])
        statistic += float(((here - alone) ** 2 / alone).sum())
        freedom += 3
        shown[str(rest)] = {
            "counts": number,
            "both_up": int(here[1, 1]),
            "both_up_expected": float(alone[1, 1]),
            "both_down": int(here[0, 0]),
            "both_down_expected": float(alone[0, 0]),
        }
    exact, first, second = names
    p_value = chi_square_tail(freedom, statistic) if freedom else None
    return {"exact": exact, "rounded": [first, second], "by_remainder": shown, "p_value": p_value}


COUNTS = "published counts"
UNEVEN = 0.15
"""Half of all counts are multiples of twice the base; the share may differ by this much, as sizes of counts are not even."""


def value_families(release: Release, structure: Structure, published: PublishedTally) -> list[Family]:
    """Return one family per mechanism, and one for each table in which something is wrong."""
    groups: dict[tuple[Mechanism, str], list[int]] = {}
    for column, how in enumerate(structure.mechanisms):
        if how is not None and published.steps[column] > 1:
            groups.setdefault((how, release.columns[column].block), []).append(column)
    families = []
    for how in dict.fromkeys(how for how, _ in groups):
        tables = {block: those for (other, block), those in groups.items() if other == how}
        every = [column for those in tables.values() for column in those]
        families.append(
            _family(f"{COUNTS} ({how.name}): {ALL_TABLES}", how, every, release, published, structure.basis_of(every))
        )
        if len(tables) > 1:
            alone = [
                _family(
                    f"{COUNTS} ({how.name}): {block or NO_TABLE}", how, those, release, published, structure.basis_of(those)
                )
                for block, those in tables.items()
            ]
            families += [family for family in alone if family.verdict in (CONTRADICTS, DEPARTS)]
    return families


def _family(
    name: str, how: Mechanism, columns: list[int], release: Release, published: PublishedTally, basis: tuple[str, ...]
) -> Family:
    step = int(published.steps[columns[0]])
    above, odd, large, twice = (
        int(of[columns].sum()) for of in (published.above, published.odd, published.large, published.twice)
    )
    share = twice / large if large else 0.5
    coarse = large >= LEAST_SUMS and abs(share - 0.5) > UNEVEN
    otherwise = UNTESTED if large < LEAST_SUMS else DEPARTS if coarse else FITS
    refuted, said = more_than_slips(odd, above), []
    if odd:
        said.append(f"{odd:,} of {above:,} counts above 0 are not multiples of {step}.")
    if coarse:
        seems = f": the base appears to be {2 * step}" if share > 0.99 else ""
        said.append(
            f"{share:.1%} of the counts of {LEAST_STEPS * step} or more are multiples of {2 * step}, not half{seems}."
        )
    elif otherwise == UNTESTED:
        said.append(f"Only {large:,} counts are {LEAST_STEPS * step} or more.")
    elif not odd:
        said.append(f"All {above:,} counts above 0 are multiples of {step}, and about half of them of {2 * step}.")
    return Family(
        family=name,
        sums=large,
        observed={0: twice, step: large - twice},
        expected={0: 0.5, step: 0.5},
        p_value=None,
        tail_ratio=None,
        distance=abs(share - 0.5) if large else None,
        impossible=odd,
        otherwise=otherwise,
        verdict=CONTRADICTS if odd else otherwise,
        note=" ".join(said),
        clash=_clash(how, columns, release, published) if odd else "",
        columns=frozenset(columns) if coarse or refuted else frozenset(),
        refuted=refuted,
        basis=basis,
    )


def _clash(how: Mechanism, columns: list[int], release: Release, published: PublishedTally) -> str:
    """Return one count that its mechanism cannot publish."""
    column = next(c for c in columns if published.example[c, 0] >= 0)
    area, value = published.example[column].tolist()
    where = f"row {area + 1}, {release.columns[column].key}"
    try:
        how.window(value)
    except InputError as problem:
        return f"{where}: {str(problem).split('.')[0]}."
    return f"{where}: {value} is not a multiple of {int(published.steps[column])}."
