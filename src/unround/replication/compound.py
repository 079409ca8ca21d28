"""What the paper's searches leave lying: the same simulated census, audited with all sums of age by sex at once.

The searches look at one sum at a time. An audit joins them: what one sum says about a count goes into every other sum that
this count stands in, and so on through the whole table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unround.audits import AuditOptions, Auditor, Model
from unround.audits.claims import ClaimKind
from unround.mechanisms import mechanism
from unround.options import THRESHOLD
from unround.prior import Prior
from unround.release import ABSENT, SUPPRESSED, Column
from unround.simulation import MISSING, SEXES, CountBlock, schema


def age_model() -> Model:
    """Return the model of ages by sex under the exact population: rows 1 and 8 to 33 of the profile."""
    table = schema("age")
    rows = {row.id: row for row in table.rows if row.id == 1 or row.id >= 8}
    columns: list[Column] = []
    at: dict[tuple[int, str], int] = {}
    for row in rows.values():
        for sex in SEXES if row.has_sex else SEXES[:1]:
            at[row.id, sex] = len(columns)
            key = str(row.id) if sex == "total" else f"{row.id}/{sex}"
            columns.append(Column(key, (str(row.id), sex), row.name, mechanism=mechanism(row.mechanism)))
    equations = []
    for one in table.sums:
        for sex in SEXES:
            cells = [(row, sex) for row in (one.total, *one.parts)]
            if all(cell in at for cell in cells):
                equations.append((at[cells[0]], tuple(at[cell] for cell in cells[1:])))
    split = [row for row in rows if (row, "men") in at]
    equations += [(at[row, "total"], (at[row, "men"], at[row, "women"])) for row in split]
    mechanisms = tuple(column.mechanism for column in columns if column.mechanism is not None)
    return Model.build(tuple(columns), mechanisms, tuple(equations), ("layout",) * len(equations))


@dataclass
class Compound:
    """Counts that follow from all sums of age by sex together, with the exact population, and how many were right.

    - `areas`, `cells`: Areas with published counts, and their rounded counts.
    - `by_depth`: Counts that have one possible value, by how many sums follow one upon the other in the argument.
    - `wrong`: How many of these are not the true ones; none, unless something is broken.
    - `likely`, `likely_right`: Counts with a probability of at least the threshold under the paper's flat prior, and
      those that were right.
    """

    threshold: float = THRESHOLD
    areas: int = 0
    cells: int = 0
    by_depth: dict[int, int] = field(default_factory=dict)
    wrong: int = 0
    likely: int = 0
    likely_right: int = 0

    def __post_init__(self) -> None:
        self._model = age_model()
        self._auditor = Auditor(self._model, Prior.flat(), AuditOptions(threshold=self.threshold))
        columns = [(int(column.codes[0]), SEXES.index(column.codes[1])) for column in self._model.columns]
        index = schema("age").index
        self._rows = np.array([index[row] for row, _ in columns])
        self._sexes = np.array([sex for _, sex in columns])

    @property
    def proved(self) -> int:
        """How many counts have one possible value."""
        return sum(self.by_depth.values())

    def add(self, block: CountBlock) -> None:
        """Audit one block of areas."""
        assert block.published is not None
        counts = block.published[:, self._rows, self._sexes].astype(np.int32)
        true = block.true[:, self._rows, self._sexes]
        counts = np.where(counts == MISSING, SUPPRESSED, counts).astype(np.int32)
        claims = self._auditor.infer(np.ascontiguousarray(counts), np.zeros(len(counts), dtype=bool)).claims
        self.areas += int((counts > ABSENT).any(axis=1).sum())
        self.cells += int((counts > ABSENT)[:, ~self._model.exact].sum())
        pinned, likely = claims.certain, claims.of_kind(ClaimKind.LIKELY)
        for depth, number in zip(*np.unique(claims.depth[pinned], return_counts=True), strict=True):
            self.by_depth[int(depth)] = self.by_depth.get(int(depth), 0) + int(number)
        right = claims.values == true
        self.wrong += int((pinned & ~right).sum())
        self.likely += int(likely.sum())
        self.likely_right += int((likely & right).sum())

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "areas": self.areas,
            "cells": self.cells,
            "proved": self.proved,
            "proved_by_depth": {str(depth): number for depth, number in sorted(self.by_depth.items())},
            "proved_wrong": self.wrong,
            "likely": self.likely,
            "likely_right": self.likely_right,
            "threshold": self.threshold,
        }
