"""One sum at a time, next to chance: how many sums give something away on their own, and how many were to be expected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from unround.audit.contradictions import Active
from unround.audit.model import Model
from unround.batch.lookup import EXACT, FULL
from unround.batch.scan import Lookup, Scanner
from unround.expect import expectation
from unround.release import Counts

MOST_PARTS = 40
"""Sums of more parts are not compared: their proofs are too rare to be expected anywhere, and their shares take long."""


class Chance:
    """Counts residuals while blocks go by; predicts at the end how many of each kind chance would give.

    Only sums are compared whose counts were all published well away from 0: for these the closed form of
    `unround.expect` holds, whatever the counts are.

    Parameters
    ----------
    model : Model
        The sums.
    threshold : float
        From which probability on a count is likely.
    """

    def __init__(self, model: Model, threshold: float) -> None:
        self.threshold = threshold
        # Where a rounded total is published exactly under another name, that is what its parts add up to.
        twin = {cell: exact for cell, (exact, _) in model.exact_twin.items()}
        sums = tuple((twin.get(total, total), parts) for total, parts in model.equations)
        self._scanner = Scanner(replace(model.layout, equations=sums), model.mechanisms)
        self._times = np.zeros(0, dtype=np.int64)
        self._lookup: Lookup | None = None

    def add(self, counts: Counts, active: Active) -> None:
        """Look up the sums of a block."""
        found = self._scanner.scan(counts, active)
        times = np.bincount(found.codes.ravel(), minlength=max(len(found.lookup.residual), len(self._times)))
        times[: len(self._times)] += self._times
        self._times, self._lookup = times, found.lookup

    def to_json(self) -> list[dict[str, Any]]:
        """Return for each kind of sum what was found and what was to be expected, as plain data."""
        if self._lookup is None:
            return []
        look, groups = self._lookup, dict[tuple[int, bool, int], tuple[int, int, int]]()
        for k, one in enumerate(look.classes):
            if one.zero or one.twice or one.total not in (EXACT, FULL) or not 2 <= one.full <= MOST_PARTS:
                continue
            here = np.where(look.class_of == k, self._times, 0)
            proved = here[look.solutions == 1].sum()
            strong = here[(look.solutions > 1) & (look.best >= np.float32(self.threshold))].sum()
            key = (one.full, one.total == EXACT, one.base)
            before = groups.get(key, (0, 0, 0))
            groups[key] = before[0] + int(here.sum()), before[1] + int(proved), before[2] + int(strong)
        return [self._compared(*key, *numbers) for key, numbers in sorted(groups.items())]

    def _compared(self, parts: int, exact: bool, base: int, groups: int, proved: int, strong: int) -> dict[str, Any]:
        expected = expectation(parts, exact_total=exact, base=base, areas=groups, threshold=self.threshold)
        return {
            "family": f"{parts} parts, {'exact' if exact else 'rounded'} total, base {base}",
            "parts": parts,
            "exact_total": exact,
            "base": base,
            "groups": groups,
            "proved": proved,
            "proved_expected": expected.expected_proofs,
            "strong": strong,
            "strong_expected": expected.expected_strong,
        }
