"""One sum at a time, next to chance: how many sums give something away on their own, and how many were to be expected."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from unround.audits.contradictions import Active
from unround.audits.model import Model
from unround.batch.scan import EXACT, FULL, Scanner
from unround.expectation import Number, expectation
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
        self._scanner = Scanner(replace(model.compiled, equations=sums), model.mechanisms)
        # By block, to say which tables give more away than chance: each sum counts for the table of its total.
        names = [model.columns[total].block for total, _ in model.equations]
        self._blocks = list(dict.fromkeys(names))
        self._block_of = np.array([self._blocks.index(name) for name in names], dtype=np.int64)

    def count(self, counts: Counts, active: Active) -> Counted:
        """Look up the sums of some areas: of each table and kind how many there are, and how many give something away.

        What is counted of one block of areas adds up with what is counted of others.
        """
        found = self._scanner.scan(counts, active)
        look, blocks, size = found.lookup, len(self._blocks), len(found.lookup.residual)
        times = np.bincount((found.codes + size * self._block_of).ravel(), minlength=blocks * size).reshape(blocks, size)
        strong = (look.solutions > 1) & (look.best >= np.float32(self.threshold))
        known = look.class_of >= 0
        counted: Counted = {name: {} for name in self._blocks}
        for name, here in zip(self._blocks, times, strict=True):
            tables = [
                np.bincount(look.class_of[known], (here * which)[known], len(look.classes)).astype(np.int64)
                for which in (np.ones(size, dtype=np.int64), look.solutions == 1, strong)
            ]
            for k, one in enumerate(look.classes):
                if one.zero or one.twice or one.total not in (EXACT, FULL) or not 2 <= one.full <= MOST_PARTS:
                    continue
                if tables[0][k]:
                    key = f"{one.full} {int(one.total == EXACT)} {one.base}"
                    before = counted[name].get(key, [0, 0, 0])
                    counted[name][key] = [a + int(table[k]) for a, table in zip(before, tables, strict=True)]
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
        told = {}
        for name, table in counted.items():
            rows = [self._compared(_kind(key), table[key]) for key in sorted(table, key=_kind)]
            what = ("groups", "proved", "proved_expected", "strong", "strong_expected")
            told[name] = {key: sum(row[key] for row in rows) for key in what}
        return told

    def _compared(self, kind: tuple[int, ...], numbers: list[int]) -> dict[str, Any]:
        (parts, exact, base), (groups, proved, strong) = kind, numbers
        of_proofs, of_strong = _shares(parts, bool(exact), base, self.threshold)
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


@cache
def _shares(parts: int, exact: bool, base: int, threshold: float) -> tuple[Number, Number]:
    """Return which shares of sums are proofs, and strong; long sums take a while, and come once a table."""
    expected = expectation(parts, exact_total=exact, base=base, threshold=threshold)
    return expected.proof_share, expected.strong_share
