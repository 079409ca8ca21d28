"""Bounds by propagation: what each sum says about its cells, until nothing changes any more.

For one sum, the total is at least the sum of the parts' lower bounds, and a part is at most the total's upper bound less the
other parts' lower bounds; likewise the other way round. On acyclic systems and on trees crossed with sex the fixpoint is
tight; on any system it is sound. Written down step by step it is also what a person can redo on paper, and so it
is the material of proofs.

Figures (a rate, a mean, a median) add inequalities in whole numbers: with all other cells at the end that leaves most room,
each cell gets what is left, divided by its factor and rounded inwards. All of it is exact, in integers of any size.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from unround.mechanisms import Window
from unround.sums.forest import Equations, neighbours
from unround.system import Row

Side = Literal["low", "high"]

UNBOUNDED = 1 << 62
"""Stands for "no upper bound" in lists of integers; larger than any count, so that arithmetic needs no special case."""

MOST_SWEEPS = 300
"""Sweeps over the sums after which propagation stops: sound as it is, if not yet tight.

Without loops three are enough. Around a loop bounds can creep up one by one, without end where nothing bounds them.
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One bound that follows from earlier ones. `uses` names them by their place in the trace; -1 is what was published.

    `equation` is the sum that gives it, or, from the number of sums on, the inequality; None says that the window has no
    value between the earlier bound and this one.
    """

    cell: int
    side: Side
    value: int
    equation: int | None
    uses: tuple[tuple[int, Side, int], ...]


@dataclass(slots=True)
class Trace:
    """Every improvement that propagation made, in order, and which step holds each current bound."""

    steps: list[Step] = field(default_factory=list)
    latest: dict[tuple[int, Side], int] = field(default_factory=dict)

    def holding(self, used: list[tuple[int, Side]]) -> tuple[tuple[int, Side, int], ...]:
        """Name the steps that hold these bounds now."""
        return tuple((cell, side, self.latest.get((cell, side), -1)) for cell, side in used)

    def add(self, step: Step) -> None:
        """Record that a bound moved."""
        self.steps.append(step)
        self.latest[step.cell, step.side] = len(self.steps) - 1


@dataclass(slots=True)
class Bounds:
    """Lower and upper bounds of every cell (`UNBOUNDED` where there is none), tightened in place by `propagate`."""

    lows: list[int]
    highs: list[int]
    holes: dict[int, list[int]]

    @classmethod
    def of(cls, windows: Sequence[Window]) -> Bounds:
        """Start from the windows alone."""
        lows = [window.low for window in windows]
        highs = [UNBOUNDED if window.high is None else window.high for window in windows]
        return cls(lows, highs, {i: list(window) for i, window in enumerate(windows) if window.holes})

    def copy(self) -> Bounds:
        """Return bounds that can be tightened without touching these."""
        return Bounds(self.lows.copy(), self.highs.copy(), self.holes)


def propagate(equations: Equations, bounds: Bounds, trace: Trace | None = None, rows: tuple[Row, ...] = ()) -> bool:
    """Tighten bounds by the sums, and by the inequalities of figures, until nothing changes.

    False as soon as some cell has no value left; the trace then ends in the step that showed it.

    Notes
    -----
    The sums are gone through from neighbour to neighbour and back again, so that what is known at one end of a tree reaches
    every other end in one sweep: time is linear in the size of an acyclic system.
    """
    lows, highs, holes = bounds.lows, bounds.highs, bounds.holes
    sums = len(equations)
    order, touching = neighbours(equations, tuple([row.cells for row in rows]))
    for cell in holes:
        _snap(cell, lows, highs, holes[cell], trace)
        if lows[cell] > highs[cell]:
            return False
    waiting = [True] * (sums + len(rows))
    for sweep in range(MOST_SWEEPS):
        quiet = True
        for e in order if sweep % 2 == 0 else reversed(order):
            if not waiting[e]:
                continue
            waiting[e] = quiet = False
            moved = (
                _revise(e, equations[e], lows, highs, trace) if e < sums else _apply(e, rows[e - sums], lows, highs, trace)
            )
            for cell in moved:
                again = cell in holes and _snap(cell, lows, highs, holes[cell], trace)
                if lows[cell] > highs[cell]:
                    return False
                for other in touching[cell]:
                    if again or other != e:
                        waiting[other] = True
        if quiet:
            break
    return True


def _revise(
    e: int, equation: tuple[int, tuple[int, ...]], lows: list[int], highs: list[int], trace: Trace | None
) -> list[int]:
    """Apply one sum to the bounds of its cells, and return the cells whose bounds moved."""
    total, parts = equation
    low_sum = high_sum = 0
    for part in parts:
        low_sum += lows[part]
        high_sum += highs[part]
    changed = []
    low, high = lows[total], highs[total]
    if low_sum > low:
        low = lows[total] = low_sum
        changed.append(total)
        if trace is not None:
            trace.add(Step(total, "low", low, e, trace.holding([(part, "low") for part in parts])))
    if high_sum < high:
        high = highs[total] = high_sum
        changed.append(total)
        if trace is not None:
            trace.add(Step(total, "high", high, e, trace.holding([(part, "high") for part in parts])))
    # Each part gets what the total leaves when all the others are at their opposite ends. With one unbounded part
    # UNBOUNDED cancels out of `high_sum - highs[part]`; with two it makes the new bound harmlessly low.
    spare = high - low_sum if high < UNBOUNDED else UNBOUNDED
    need = low - high_sum
    steps = []
    for part in parts:
        part_low, part_high = lows[part], highs[part]
        if spare < UNBOUNDED and part_low + spare < part_high:
            highs[part] = part_low + spare
            changed.append(part)
            if trace is not None:
                used: list[tuple[int, Side]] = [(other, "low") for other in parts if other != part]
                steps.append(Step(part, "high", highs[part], e, trace.holding([(total, "high"), *used])))
        if need + part_high > part_low:
            lows[part] = need + part_high
            changed.append(part)
            if trace is not None:
                used = [(other, "high") for other in parts if other != part]
                steps.append(Step(part, "low", lows[part], e, trace.holding([(total, "low"), *used])))
    if trace is not None:
        # Only now, so that every step names the bounds from before this sum was applied, which it was computed from.
        for step in steps:
            trace.add(step)
    return changed


def _apply(e: int, row: Row, lows: list[int], highs: list[int], trace: Trace | None) -> list[int]:
    """Apply one inequality to the bounds of its cells, and return the cells whose bounds moved."""
    least, unbounded = 0, 0
    for cell, factor in row.terms:
        if factor > 0:
            least += factor * lows[cell]
        elif highs[cell] >= UNBOUNDED:
            unbounded += 1
        else:
            least += factor * highs[cell]
    changed, steps = [], []
    for cell, factor in row.terms:
        # What the others leave when each is at the end that leaves most room.
        free = factor < 0 and highs[cell] >= UNBOUNDED
        if unbounded - free:
            continue
        others = least - (factor * lows[cell] if factor > 0 else 0 if free else factor * highs[cell])
        spare = row.at_most - others
        side: Side = "high" if factor > 0 else "low"
        bound = spare // factor if factor > 0 else -(spare // -factor)
        if bound < highs[cell] if factor > 0 else bound > lows[cell]:
            (highs if factor > 0 else lows)[cell] = bound
            changed.append(cell)
            if trace is not None:
                used: list[tuple[int, Side]] = [(c, "low" if f > 0 else "high") for c, f in row.terms if c != cell]
                steps.append(Step(cell, side, bound, e, trace.holding(used)))
    if trace is not None:
        for step in steps:
            trace.add(step)
    return changed


def idle(row: Row, bounds: Bounds) -> bool:
    """Return whether an inequality holds whatever the cells are within their bounds."""
    most = 0
    for cell, factor in row.terms:
        end = bounds.highs[cell] if factor > 0 else bounds.lows[cell]
        if end >= UNBOUNDED:
            return False
        most += factor * end
    return most <= row.at_most


def _snap(cell: int, lows: list[int], highs: list[int], values: list[int], trace: Trace | None) -> bool:
    """Move bounds that fell into a hole to the next possible value; say whether one moved.

    Beyond the last possible value a bound moves past the opposite one: nothing is left.
    """
    low, high = lows[cell], highs[cell]
    above = bisect_left(values, low)
    below = bisect_right(values, high) - 1
    lows[cell] = values[above] if above < len(values) else max(low, values[-1] + 1)
    highs[cell] = values[below] if below >= 0 else min(high, values[0] - 1)
    if trace is not None:
        if lows[cell] > low:
            trace.add(Step(cell, "low", lows[cell], None, trace.holding([(cell, "low")])))
        if highs[cell] < high:
            trace.add(Step(cell, "high", highs[cell], None, trace.holding([(cell, "high")])))
    return (lows[cell], highs[cell]) != (low, high)
