"""One sum at a time, next to chance: how many sums give something away on their own, and how many were to be expected."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unround.audit.contradictions import Active
from unround.audit.model import Model
from unround.batch.lookup import EXACT, FULL
from unround.batch.scan import Lookup, Scanner
from unround.expect import Number, expectation
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
        # By block, to say which tables give more away than chance: each sum counts for the table of its total.
        names = [model.columns[total].block for total, _ in model.equations]
        self._blocks = list(dict.fromkeys(names))
        self._block_of = np.array([self._blocks.index(name) for name in names], dtype=np.int64)
        self._times = np.zeros((len(self._blocks), 0), dtype=np.int64)
        self._lookup: Lookup | None = None

    def add(self, counts: Counts, active: Active) -> None:
        """Look up the sums of a block."""
        found = self._scanner.scan(counts, active)
        blocks, size = len(self._blocks), len(found.lookup.residual)
        times = np.bincount((found.codes + size * self._block_of).ravel(), minlength=blocks * size).reshape(blocks, size)
        times[:, : self._times.shape[1]] += self._times
        self._times, self._lookup = times, found.lookup

    def to_json(self) -> list[dict[str, Any]]:
        """Return for each kind of sum what was found and what was to be expected, as plain data."""
        families = self._families(self._times.sum(axis=0))
        return [self._compared(*key, *numbers) for key, numbers in sorted(families.items())]

    def by_block(self) -> dict[str, dict[str, Any]]:
        """Return the same for each table, all kinds of its sums together."""
        told = {}
        for name, times in zip(self._blocks, self._times, strict=True):
            rows = [self._compared(*key, *numbers) for key, numbers in self._families(times).items()]
            what = ("groups", "proved", "proved_expected", "strong", "strong_expected")
            told[name] = {key: sum(row[key] for row in rows) for key in what}
        return told

    def _families(self, times: NDArray[np.int64]) -> dict[tuple[int, bool, int], tuple[int, int, int]]:
        """Return for each kind of sum how many there were, how many of them proofs, and how many strong."""
        groups = dict[tuple[int, bool, int], tuple[int, int, int]]()
        if self._lookup is None:
            return groups
        look = self._lookup
        for k, one in enumerate(look.classes):
            if one.zero or one.twice or one.total not in (EXACT, FULL) or not 2 <= one.full <= MOST_PARTS:
                continue
            here = np.where(look.class_of == k, times, 0)
            proved = here[look.solutions == 1].sum()
            strong = here[(look.solutions > 1) & (look.best >= np.float32(self.threshold))].sum()
            key = (one.full, one.total == EXACT, one.base)
            before = groups.get(key, (0, 0, 0))
            groups[key] = before[0] + int(here.sum()), before[1] + int(proved), before[2] + int(strong)
        return groups

    def _compared(self, parts: int, exact: bool, base: int, groups: int, proved: int, strong: int) -> dict[str, Any]:
        of_proofs, of_strong = _shares(parts, exact, base, self.threshold)
        return {
            "family": f"{parts} parts, {'exact' if exact else 'rounded'} total, base {base}",
            "parts": parts,
            "exact_total": exact,
            "base": base,
            "groups": groups,
            "proved": proved,
            "proved_expected": float(groups * of_proofs),
            "strong": strong,
            "strong_expected": float(groups * of_strong),
        }


@cache
def _shares(parts: int, exact: bool, base: int, threshold: float) -> tuple[Number, Number]:
    """Return which shares of sums are proofs, and strong; long sums take a while, and come once a table."""
    expected = expectation(parts, exact_total=exact, base=base, threshold=threshold)
    return expected.proof_share, expected.strong_share
