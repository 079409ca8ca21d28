"""One sum at a time, next to chance: how many sums give something away on their own, and how many were to be expected."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from unround.audits.bounds import Active
from unround.audits.model import Model
from unround.expectation import Expectation, expectation
from unround.mechanisms import Exact, Mechanism, Rounding, Sample
from unround.release import Counts

Counted = dict[str, dict[str, list[int]]]
"""By table, and by kind of sum ("3 1 5": 3 parts, an exact total, base 5): how many, proofs among them, and strong ones."""

MOST_PARTS = 40
"""Sums of more parts are not compared: their proofs are too rare to be expected anywhere, and their shares take long."""


class Chance:
    """Counts residuals, block by block of areas; predicts how many of each kind chance would give.

    Only sums are compared whose counts were all published well away from 0: for these the closed form of
    `unround.expectation` holds, whatever the counts are.
    """

    def __init__(self, model: Model, threshold: float) -> None:
        self.threshold = threshold
        # Where a rounded total is published exactly under another name, that is what its parts add up to.
        twin = {cell: exact for cell, (exact, _) in model.exact_twin.items()}
        sums = tuple((twin.get(total, total), parts) for total, parts in model.equations)
        # By block, to say which tables give more away than chance: each sum counts for the table of its total.
        self._blocks = list(dict.fromkeys(model.columns[total].block for total, _ in model.equations))
        kinds = {e: kind for e, (total, parts) in enumerate(sums) if (kind := _kind_of(model, total, parts)) is not None}
        self._equations = np.array([*kinds], dtype=np.int64)
        self._totals = np.array([sums[e][0] for e in kinds], dtype=np.int64)
        self._parts = np.array([part for e in kinds for part in sums[e][1]], dtype=np.int64)
        sizes = np.array([len(sums[e][1]) for e in kinds], dtype=np.int64)
        self._starts = np.cumsum(sizes) - sizes
        # Which of these sums are of one table and kind.
        self._alike: dict[tuple[str, tuple[int, bool, int]], list[int]] = {}
        for place, (e, kind) in enumerate(kinds.items()):
            self._alike.setdefault((model.columns[model.equations[e][0]].block, kind), []).append(place)
        self._smallest = np.array([_smallest(how) for how in model.mechanisms], dtype=np.int64)
        self._base = np.array([getattr(how, "base", 1) for how in model.mechanisms], dtype=np.int64)

    def count(self, counts: Counts, active: Active) -> Counted:
        """Add up the sums of some areas: of each table and kind how many there are, and how many give something away.

        What is counted of one block of areas adds up with what is counted of others.
        """
        counted: Counted = {name: {} for name in self._blocks}
        if not self._equations.size:
            return counted
        by_cell = np.ascontiguousarray(counts.T).astype(np.int64)
        usable = (by_cell >= self._smallest[:, None]) & (by_cell % self._base[:, None] == 0)
        off = by_cell[self._totals] - np.add.reduceat(by_cell[self._parts], self._starts, axis=0)
        there = active.T[self._equations] & usable[self._totals]
        there &= np.logical_and.reduceat(usable[self._parts], self._starts, axis=0)
        for (block, kind), places in self._alike.items():
            residuals, times = np.unique(off[places][there[places]], return_counts=True)
            if not residuals.size:
                continue
            said = _said(*kind, self.threshold)
            meaning = np.array([said.get(residual, "") for residual in residuals.tolist()], dtype=np.str_)  # "": impossible
            totals = [int(times[which].sum()) for which in (meaning != "", meaning == "proof", meaning == "strong")]
            if totals[0]:
                counted[block][f"{kind[0]} {int(kind[1])} {kind[2]}"] = totals
        return counted

    def to_json(self, counted: Counted) -> list[dict[str, Any]]:
        """Return for each kind of sum what was found and what was to be expected, as plain data."""
        families: dict[tuple[int, ...], list[int]] = {}
        for table in counted.values():
            for key, numbers in table.items():
                before = families.setdefault(_kind(key), [0, 0, 0])
                before[:] = [a + b for a, b in zip(before, numbers, strict=True)]
        return [self._compared(kind, families[kind]) for kind in sorted(families)]

    def by_block(self, counted: Counted) -> dict[str, dict[str, Any]]:
        """Return the same for each table, all kinds of its sums together."""
        by_block = {}
        for name, table in counted.items():
            rows = [self._compared(_kind(key), table[key]) for key in sorted(table, key=_kind)]
            what = ("groups", "proved", "proved_expected", "strong", "strong_expected")
            by_block[name] = {key: sum(row[key] for row in rows) for key in what}
        return by_block

    def _compared(self, kind: tuple[int, ...], numbers: list[int]) -> dict[str, Any]:
        (parts, exact, base), (groups, proved, strong) = kind, numbers
        expected = _expected(parts, bool(exact), base, self.threshold)
        of_proofs, of_strong = expected.proof_share, expected.strong_share
        return {
            "family": f"{parts} parts, {'exact' if exact else 'rounded'} total, base {base}",
            "parts": parts,
            "exact_total": bool(exact),
            "base": base,
            "groups": groups,
            "proved": proved,
            "proved_expected": float(groups * of_proofs),
            "strong": strong,
            "strong_expected": float(groups * of_strong),
        }


def _kind(key: str) -> tuple[int, ...]:
    return tuple(map(int, key.split()))


def _kind_of(model: Model, total: int, parts: Sequence[int]) -> tuple[int, bool, int] | None:
    """Return a sum's number of parts, whether its total is exact, and its base; None where no closed form holds."""
    how, above = model.mechanisms[parts[0]], model.mechanisms[total]
    if not isinstance(how, Rounding | Sample) or any(model.mechanisms[part] != how for part in parts):
        return None
    exact = isinstance(above, Exact)
    if not exact and not (isinstance(above, Rounding | Sample) and above.base == how.base):
        return None
    return (len(parts), exact, how.base) if 2 <= len(parts) <= MOST_PARTS else None


def _smallest(how: Mechanism) -> int:
    """Return the smallest published count that says nothing about how near the true one is to 0."""
    return (
        0
        if isinstance(how, Exact)
        else how.base
        if isinstance(how, Rounding)
        else 3 * how.base
        if isinstance(how, Sample)
        else 0
    )


@cache
def _expected(parts: int, exact: bool, base: int, threshold: float) -> Expectation:
    """Return what is to be expected of sums of one kind; long ones take a while, and come once a table."""
    return expectation(parts, exact_total=exact, base=base, threshold=threshold)


@cache
def _said(parts: int, exact: bool, base: int, threshold: float) -> dict[int, str]:
    """Return what each residual of such a sum says: a proof, something strong, or little."""
    return {residual.residual: residual.kind for residual in _expected(parts, exact, base, threshold).residuals}
