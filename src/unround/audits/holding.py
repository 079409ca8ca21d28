"""Which claims are held back, before the first area is looked at: where the data contradict what they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from unround.audits.model import Model
from unround.audits.options import AuditOptions
from unround.audits.suspects import chance_below, testable
from unround.checks import Check
from unround.checks.families import CONTRADICTS


@dataclass(frozen=True, slots=True)
class Holding:
    """Which claims are held back.

    - `conditional`: Whether conditional claims are: where only one published sum is impossible, too many of them are
      wrong.
    - `refuted`: The cells of tables whose mechanism the data refute: what is likely there rests on a wrong assumption.
    - `suspect_below`: The chance below which a residual makes its area suspect; 0 suspects none.
    """

    conditional: bool = False
    refuted: tuple[int, ...] = ()
    suspect_below: float = 0.0

    @classmethod
    def of(cls, options: AuditOptions, checked: Check, model: Model, areas: int) -> Self:
        """Return what follows from the check of a release; claims that are doubtful are made if somebody asks for them."""
        below = chance_below(areas, len(testable(model)))
        if options.doubtful:
            return cls(suspect_below=below)
        conditional = checked.verdict == CONTRADICTS or any(one.impossible for one in checked.families)
        columns = checked.refuted
        refuted = tuple(cell for cell, column in enumerate(model.positions.tolist()) if column in columns)
        return cls(conditional, refuted, below)

    def to_json(self, model: Model) -> dict[str, Any]:
        """Return it as plain data."""
        tables = dict.fromkeys(model.columns[cell].block for cell in self.refuted)
        return {
            "conditional": self.conditional,
            "refuted": list(self.refuted),
            "refuted_tables": list(tables),
            "suspect_below": self.suspect_below,
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Self:
        """Return what `to_json` wrote."""
        return cls(told["conditional"], tuple(told["refuted"]), told["suspect_below"])
