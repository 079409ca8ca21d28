"""The cells to act on, the worst first, and the example that explains the decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from unround.audits import AuditFolder
from unround.audits.ranking import SIZES, SMALL_FIRST
from unround.batch.types import NO_UPPER_BOUND
from unround.explanation.cell import explain_at
from unround.mechanisms.base import BoolArray
from unround.release import ABSENT
from unround.reviews.decision import PUBLISH, falls_under
from unround.reviews.earlier import copies
from unround.reviews.exceptions import cell_named
from unround.reviews.exposure import Exposure
from unround.reviews.policy import CONDITIONAL, KINDS, LIKELY, PROVED, STOP, UNROUNDED, Policy
from unround.reviews.table import ReviewedTable

MOST_SUMS = 3
"""Sums that are named with a cell."""

_WORST = (PROVED, UNROUNDED, CONDITIONAL, LIKELY)


def claims_under(policy: Policy, exposure: Exposure) -> dict[tuple[int, int], dict[str, Any]]:
    """Return what is claimed of all cells that a limit is about, by row and column: what exceptions refer to."""
    some = np.zeros(exposure.kinds.shape, dtype=np.bool_)
    for limit in policy.limits:
        some |= falls_under(limit, exposure)
    return {
        (row, at): {
            "claim": KINDS[exposure.kinds[row, at]],
            "value": int(exposure.values[row, at]),
            "probability_high": float(exposure.highest[row, at]),
        }
        for row, at in np.argwhere(some).tolist()
    }


def cells_to_act_on(table: ReviewedTable, exposure: Exposure, policy: Policy, act_on: BoolArray) -> list[dict[str, Any]]:
    """Return the cells to act on, the worst first: counts of one or two before others, proved before likely."""
    under = [falls_under(limit, exposure) for limit in policy.limits]
    names = table.areas["region_name"].to_list() if "region_name" in table.areas.columns else None
    shown = {first: copy for copy, first in copies(table).items()}  # beside an earlier release: what the draft prints
    model, found = table.model, []
    for row, at in np.argwhere(act_on).tolist():
        area, column = table.area_codes[row], table.columns[at]
        kind, value = KINDS[exposure.kinds[row, at]], int(exposure.values[row, at])
        published, high = int(table.counts[row, shown.get(at, at)]), int(exposure.high[row, at])
        sums = [model.sum_in_short(e) for e in model.touching[at]]
        more = f"; and {len(sums) - MOST_SUMS} more" if len(sums) > MOST_SUMS else ""
        found.append(
            {
                "cell": cell_named(area, column.key),
                "area": area,
                "area_name": str(names[row] or "") if names is not None and names[row] != area else "",
                "key": column.key,
                "what": table.what(at),
                "codes": list(column.codes),
                "published": published if published > ABSENT else None,
                "claim": kind,
                "value": value,
                "size": SIZES[int(exposure.sizes[row, at])][1],
                "low": int(exposure.low[row, at]),
                "high": None if high >= NO_UPPER_BOUND else high,
                "probability_low": _probability(exposure.lowest[row, at]),
                "probability_high": _probability(exposure.highest[row, at]),
                "limits": [k for k, cells in enumerate(under) if cells[row, at]],
                "because": "; ".join(sums[:MOST_SUMS]) + more if kind != UNROUNDED else "",
                "row": row,
                "column": at,
            }
        )
    return sorted(found, key=_worst_first)


def _probability(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _worst_first(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    kind, size = _WORST.index(cell["claim"]), SMALL_FIRST.index(cell["size"])
    return size > 0, kind, size, -(cell["probability_high"] or 0.0), cell["row"], cell["column"]


def action_for(cell: Mapping[str, Any], decision: str, repairs: list[dict[str, Any]]) -> str:
    """Say what to do about a cell: the best repair; or, where none is enough, not to publish."""
    best = next((row for row in repairs if row["within_policy"]), None)
    if decision == PUBLISH:
        return ""
    if best is not None and decision != STOP:
        return f"{best['action']} (repair {best['rank']}: {best['name']})"
    if cell["claim"] == UNROUNDED:
        return "Round this count; then review the table again."
    return "Do not publish it in this table: no repair that was tried is enough."


def example_of(folder: AuditFolder | None, cells: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the argument for the first cell that takes one: the proof, or the sums around it."""
    chosen = next((one for one in cells if one["claim"] != UNROUNDED), None)
    if folder is None or chosen is None:
        return None
    shown = explain_at(folder, chosen["row"], chosen["column"])
    return {
        "cell": chosen["cell"],
        "area": chosen["area_name"] or chosen["area"],
        "what": chosen["what"],
        "published": chosen["published"],
        "claim": chosen["claim"],
        "value": chosen["value"],
        "probability_high": chosen["probability_high"],
        "argument": shown.argument,
        "sums": [one.to_json() for one in shown.sums if one.used],
    }
