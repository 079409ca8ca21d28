"""Areas that contradict themselves: find the smallest clash, leave its sums out, and go on with the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.audits.model import Model
from unround.bounds.certificates import contradiction
from unround.bounds.clash import Clash, smallest_clash
from unround.bounds.tighten import tighten
from unround.evidence.block import Tight, Windows
from unround.mechanisms import Unpublished
from unround.proofs import contradiction_in_words
from unround.release import ABSENT, Counts
from unround.system import Cell, Sum, System

Active = NDArray[np.bool_]
"""Areas × sums: which sums are used in which area."""

EFFORT = 100_000
"""How long to look for a smaller clash, in cells and sums looked at: a tenth of a second or so."""

MOST_CLASHES = 200
"""Clashes in one area after which the rest of its sums are left alone: such an area is not worth more time."""

SUM, CELL, ASSUMPTION, UNRESOLVED, AREAS, FIGURE = "sum", "cell", "assumption", "unresolved", "areas", "figure"
"""What can be wrong: sums that cannot hold; a count that cannot come from its mechanism; an exact count that is not exact;
an area in which no combination of values adds up, though every single sum allows some; an area that cannot be the sum of
those that lie in it; a rate, a mean or a median that cannot be of the true counts."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Something in one area that cannot be.

    - `area`: The area's place in its block.
    - `kind`: What is wrong: "sum", "cell", "assumption", "unresolved", "areas" or "figure".
    - `sums`: The sums that cannot hold together, by position. They are not used in this area.
    - `cells`: The published counts that clash with them.
    - `text`: The arithmetic, for people.
    """

    area: int
    kind: str
    sums: tuple[int, ...]
    cells: tuple[int, ...]
    text: str


def settle(
    model: Model, counts: Counts, windows: Windows, slack: NDArray[np.int32], active: Active
) -> tuple[Tight, Active, list[Contradiction]]:
    """Work out bounds; where an area has none, leave the sums of its smallest clash out until it does."""
    active = active.copy()
    tight = tighten(model.compiled, windows, active, proofs_only=True)
    found: list[Contradiction] = []
    open_areas = np.flatnonzero(~tight.feasible)
    while open_areas.size:
        for area in open_areas.tolist():
            within = {int(cell): int(slack[area, cell]) for cell in np.flatnonzero(slack[area])}
            clash = _clash_in(model, counts[area], within, windows, area, active)
            found.append(clash)
            active[area, list(clash.sums)] = False
            if sum(clash.area == area for clash in found) >= MOST_CLASHES:
                active[area] = False
        again = tighten(model.compiled, rows_of(windows, open_areas), active[open_areas], proofs_only=True)
        put(tight, again, open_areas)
        open_areas = open_areas[~again.feasible]
    return tight, active, sorted(found, key=lambda clash: clash.area)


def _clash_in(
    model: Model, counts: Counts, within: Mapping[int, int], windows: Windows, area: int, active: Active
) -> Contradiction:
    """Find the sums of one area that cannot hold together."""
    usable = [e for e in range(len(model.equations)) if active[area, e]]
    silent = frozenset(int(cell) for cell in np.flatnonzero((windows.start[area] < 0) & (counts > ABSENT)))
    alone = _impossible_sum(model, windows, area, usable)
    suspects = [alone] if alone is not None else usable
    system = model.system(counts, suspects, within, silent)
    clash = smallest_clash(system, EFFORT)
    position = {model.columns[cell].key: cell for e in suspects for cell in model.members(e)}
    named = {str(model.sum_named(e)): e for e in suspects}
    sums = tuple(named[str(one)] for one in clash.sums)
    return Contradiction(
        area, SUM, sums, tuple(position[key] for key in clash.cells), _in_words(system, clash, model.display)
    )


def _impossible_sum(model: Model, windows: Windows, area: int, usable: list[int]) -> int | None:
    """Return a sum that cannot hold whatever the others say, the one with the fewest cells; None where there is none."""
    low, high = windows.low[area].astype(np.int64), windows.high[area].astype(np.int64)
    impossible = []
    for e in usable:
        total, parts = model.equations[e]
        if low[list(parts)].sum() > high[total] or high[list(parts)].sum() < low[total]:
            impossible.append(e)
    return min(impossible, key=lambda e: (len(model.equations[e][1]), e)) if impossible else None


def _in_words(system: System, clash: Clash, names: Mapping[str, str]) -> str:
    """Say why the sums of a clash cannot hold together, calling cells by their names for people."""
    kept = set(clash.cells)
    cells = {cell for one in clash.sums for cell in (one.total, *one.parts)}
    small = System(
        [
            Cell(names[cell.name], *((cell.published, cell.mechanism) if cell.name in kept else (None, Unpublished())))
            for cell in system.cells
            if cell.name in cells
        ],
        [Sum(names[one.total], tuple(names[part] for part in one.parts)) for one in clash.sums],
    )
    steps = contradiction(small)
    if steps is None:
        return f"{'; '.join(map(str, small.sums))} cannot hold together."
    return contradiction_in_words(small, steps)


def rows_of(windows: Windows, rows: NDArray[np.int64]) -> Windows:
    """Return the windows of some areas."""
    return Windows(windows.low[rows], windows.high[rows], windows.start[rows], windows.weights, windows.certain)


def tight_of(tight: Tight, rows: NDArray[np.int64]) -> Tight:
    """Return the bounds of some areas."""
    return Tight(*(getattr(tight, name)[rows] for name in Tight.__slots__))


def put(tight: Tight, other: Tight, rows: NDArray[np.int64], from_rows: NDArray[np.int64] | slice = slice(None)) -> None:
    """Overwrite the bounds of some areas by others."""
    for name in ("low", "high", "by_low", "by_high", "depth_low", "depth_high", "feasible"):
        getattr(tight, name)[rows] = getattr(other, name)[from_rows]
