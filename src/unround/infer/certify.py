"""Certificates: proofs written out step by step, so that someone else can check them.

A certificate is plain data, ready for JSON. Each step states one bound of one cell and why it holds:

    {"step": 3, "cell": "part1", "bound": "high", "value": 16, "by": "sum",
     "sum": {"total": "total", "parts": ["part1", "part2", "part3"]}, "uses": [1, 2, ...]}

`by` is "published" (the window of the published value), "sum" (arithmetic on one sum with the bounds that `uses` names),
"gap" (the window has no value between the used bound and this one), "supposed" (inside a refutation only), or
"contradiction": the opposite was supposed, and `refutation` shows that it cannot be. A refutation is a list of steps that
leaves some cell no value, or a split of one cell's values in two, with a refutation of each half.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from unround.infer.bounds import Bounds, Equations, Side, Trace, propagate
from unround.mechanisms import Window
from unround.system import System

MOST_BRANCHES = 2_000
"""Splits in one refutation before it is given up as too long to write out."""

Certificate = list[dict[str, Any]]
Supposition = tuple[int, Side, int]


def certain_windows(system: System) -> tuple[Window, ...]:
    """Return the windows that proofs may use: where a tail was cut off, any count stays possible."""
    anything = Window(0, None, None)
    return tuple(window if window.certain else anything for window in system.windows)


def certificates(system: System, wanted: Iterable[int]) -> dict[int, Certificate]:
    """Prove that cells have one value each.

    Parameters
    ----------
    system : System
        The cells and sums.
    wanted : iterable of int
        The cells, by position, for which exactly one value seems possible.

    Returns
    -------
    dict
        A certificate for every cell that is proved; cells that rest on a cut tail or on a prior are left out.
    """
    windows = certain_windows(system)
    writer = _Writer(system, windows)
    bounds, trace = Bounds.of(windows), Trace()
    if not propagate(system.equations, bounds, trace):
        return {}
    found = {}
    for cell in wanted:
        if bounds.lows[cell] == bounds.highs[cell]:
            found[cell] = writer.both_sides(trace, cell)
        else:
            written = _by_contradiction(writer, bounds, trace, cell)
            if written is not None:
                found[cell] = written
    return found


class _Writer:
    """Turns parts of a trace into steps."""

    def __init__(self, system: System, windows: tuple[Window, ...]) -> None:
        self.system = system
        self.windows = windows

    def both_sides(self, trace: Trace, cell: int) -> Certificate:
        """Write out both bounds of a cell."""
        steps = _Steps(self, trace, ())
        steps.bound(cell, "low")
        steps.bound(cell, "high")
        return steps.written


class _Steps:
    """One list of steps in the making: every bound is written once, after what it rests on."""

    def __init__(self, writer: _Writer, trace: Trace, supposed: tuple[Supposition, ...]) -> None:
        self.writer = writer
        self.trace = trace
        self.supposed = supposed
        self.written: Certificate = []
        self.number: dict[tuple[int, Side, int], int] = {}

    def bound(self, cell: int, side: Side) -> int:
        """Write out the bound that a cell has now, and return its number."""
        return self._event(cell, side, self.trace.latest.get((cell, side), -1))

    def _event(self, cell: int, side: Side, event: int) -> int:
        # A stack rather than recursion: chains through a large system can be thousands of steps long.
        stack = [(cell, side, event)]
        while stack:
            key = stack[-1]
            if key in self.number:
                stack.pop()
                continue
            missing = [] if key[2] < 0 else [use for use in self.trace.steps[key[2]].uses if use not in self.number]
            if missing:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            self._write(*key)
        return self.number[cell, side, event]

    def _write(self, cell: int, side: Side, event: int) -> None:
        system = self.writer.system
        line: dict[str, Any] = {"step": len(self.written) + 1, "cell": system.cells[cell].name, "bound": side}
        if event < 0:
            line |= self._start(cell, side)
        else:
            step = self.trace.steps[event]
            uses = [self.number[use] for use in step.uses]
            line["value"] = step.value
            if step.equation is None:
                line |= {"by": "gap", "uses": uses}
            else:
                one = system.sums[step.equation]
                line |= {"by": "sum", "sum": {"total": one.total, "parts": list(one.parts)}, "uses": uses}
        self.written.append(line)
        self.number[cell, side, event] = line["step"]

    def _start(self, cell: int, side: Side) -> dict[str, Any]:
        """Where a bound starts from: the tightest supposition about it, or what was published."""
        window = self.writer.windows[cell]
        value = window.low if side == "low" else window.high
        here = [v for c, s, v in self.supposed if (c, s) == (cell, side)]
        if here:
            tightest = max(here) if side == "low" else min(here)
            if value is None or (tightest > value if side == "low" else tightest < value):
                return {"value": tightest, "by": "supposed", "uses": []}
        return {"value": value, "by": "published", "uses": []}


def _by_contradiction(writer: _Writer, bounds: Bounds, trace: Trace, cell: int) -> Certificate | None:
    """Prove a value that no single sum shows: suppose more, suppose less, and refute both."""
    from unround.infer.enumerate import cpsat_bounds

    equations = writer.system.equations
    tight = cpsat_bounds(equations, writer.windows)
    if tight is None or tight[0][cell] != tight[1][cell]:
        return None
    value = tight[0][cell]
    steps = _Steps(writer, trace, ())
    name = writer.system.cells[cell].name
    opposites: tuple[tuple[Side, Side, int], ...] = (("low", "high", value - 1), ("high", "low", value + 1))
    for side, opposite, supposed in opposites:
        reached = bounds.lows[cell] if side == "low" else bounds.highs[cell]
        if reached == value:
            steps.bound(cell, side)
            continue
        refutation = _refuted(writer, equations, ((cell, opposite, supposed),), [MOST_BRANCHES])
        if refutation is None:
            return None
        line = {
            "step": len(steps.written) + 1,
            "cell": name,
            "bound": side,
            "value": value,
            "by": "contradiction",
        }
        steps.written.append(line | {"uses": [], "refutation": refutation})
    return steps.written


def _refuted(
    writer: _Writer, equations: Equations, supposed: tuple[Supposition, ...], left: list[int]
) -> dict[str, Any] | None:
    """Show that suppositions leave some cell no value; None if that takes too many splits."""
    left[0] -= 1
    if left[0] < 0:
        return None
    bounds, trace = Bounds.of(writer.windows), Trace()
    for cell, side, value in supposed:
        if side == "low":
            bounds.lows[cell] = max(bounds.lows[cell], value)
        else:
            bounds.highs[cell] = min(bounds.highs[cell], value)
    if not propagate(equations, bounds, trace):
        empty = next(i for i, low in enumerate(bounds.lows) if low > bounds.highs[i])
        steps = _Steps(writer, trace, supposed)
        steps.bound(empty, "low")
        steps.bound(empty, "high")
        return {"cell": writer.system.cells[empty].name, "steps": steps.written}
    width, cell = min(
        (high - low, i) for i, (low, high) in enumerate(zip(bounds.lows, bounds.highs, strict=True)) if low < high
    )
    middle = bounds.lows[cell] + width // 2
    below = _refuted(writer, equations, (*supposed, (cell, "high", middle)), left)
    above = _refuted(writer, equations, (*supposed, (cell, "low", middle + 1)), left) if below is not None else None
    if below is None or above is None:
        return None
    name = writer.system.cells[cell].name
    return {"split": {"cell": name, "at": middle, "below": below, "above": above}}
