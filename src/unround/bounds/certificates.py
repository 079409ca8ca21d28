"""Certificates: proofs written out step by step, so that someone else can check them.

A certificate is plain data, ready for JSON. Each step states one bound of one cell and why it holds:

    {"step": 3, "cell": "part1", "bound": "high", "value": 16, "by": "sum",
     "sum": {"total": "total", "parts": ["part1", "part2", "part3"]}, "uses": [1, 2, ...]}

`by` is "published" (the window of the published value), "sum" (arithmetic on one sum with the bounds that `uses` names),
"sums" (several sums, each taken the stated number of times, added to the cell: what remains is bounded by `uses`), "figure"
(one inequality of the rate, mean or median that `figure` names: factors times cells, `terms`, add up to at most `at_most`),
"gap" (the window has no value between the used bound and this one), "supposed" (inside a refutation only), or
"contradiction": the opposite was supposed, and `refutation` shows that it cannot be. A refutation is a list of steps that
leaves some cell no value, or a split of one cell's values in two, with a refutation of each half.

Several sums may say together what none says alone: x + y = a, y + z = c and x + z = b leave each of x, y and z open if
looked at one by one; added up with the right signs they give 2y = a + c − b. Which multiples to add is what a linear
program finds; that they prove the bound is then exact arithmetic with fractions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

from unround.bounds.propagation import UNBOUNDED, Bounds, Side, Trace, propagate
from unround.mechanisms import Window
from unround.sums.forest import Equations
from unround.system import System

FINEST = 64
"""The largest denominator of a multiple that is tried."""


@dataclass(frozen=True, slots=True)
class Added:
    """A bound of one cell, the sums that give it with their multiples, and the bounds of other cells that it needs."""

    bound: int
    sums: tuple[tuple[int, Fraction], ...]
    uses: tuple[tuple[int, Side], ...]


def added_up(equations: Equations, bounds: Bounds, cell: int, side: Side) -> Added | None:
    """Find the best bound of a cell that adding up sums can give.

    None where no finite bound is found.
    """
    from scipy.optimize import linprog
    from scipy.sparse import lil_array

    sign = 1 if side == "low" else -1
    cells = len(bounds.lows)
    objective = [0.0] * cells
    objective[cell] = float(sign)
    matrix = lil_array((len(equations), cells))
    for e, (total, parts) in enumerate(equations):
        matrix[e, total] = 1
        for part in parts:
            matrix[e, part] = -1
    ranges = [(low, None if high >= UNBOUNDED else high) for low, high in zip(bounds.lows, bounds.highs, strict=True)]
    solved = linprog(objective, A_eq=matrix.tocsr(), b_eq=[0] * len(equations), bounds=ranges, method="highs")
    if solved.status != 0:
        return None
    multiples = [Fraction(-sign * float(y)).limit_denominator(FINEST) for y in solved.eqlin.marginals]
    return _exact(equations, bounds, cell, side, [(e, times) for e, times in enumerate(multiples) if times])


def _exact(equations: Equations, bounds: Bounds, cell: int, side: Side, sums: list[tuple[int, Fraction]]) -> Added | None:
    """Work out in fractions what multiples of (total − parts = 0), added to a cell, say about it."""
    factors = {cell: Fraction(1)}
    for e, times in sums:
        total, parts = equations[e]
        factors[total] = factors.get(total, Fraction(0)) + times
        for part in parts:
            factors[part] = factors.get(part, Fraction(0)) - times
    limit = Fraction(0)
    uses: list[tuple[int, Side]] = []
    for other, factor in factors.items():
        if not factor:
            continue
        end: Side = "low" if (factor > 0) == (side == "low") else "high"
        value = bounds.lows[other] if end == "low" else bounds.highs[other]
        if value >= UNBOUNDED:
            return None
        limit += factor * value
        uses.append((other, end))
    return Added(ceil(limit) if side == "low" else floor(limit), tuple(sums), tuple(uses))


MOST_STEPS = 100_000
"""Steps in one refutation before it is given up as too long to write out."""

Certificate = list[dict[str, Any]]
Supposition = tuple[int, Side, int]


def certain_windows(system: System) -> tuple[Window, ...]:
    """Return the windows that proofs may use: where a tail was cut off, any count stays possible."""
    anything = Window(0, None, None)
    return tuple(window if window.certain else anything for window in system.windows)


def certificates(system: System, wanted: Iterable[int] | Mapping[int, int]) -> dict[int, Certificate]:
    """Prove that cells have one value each; these values may be known from elsewhere.

    A certificate for every cell that is proved; cells that rest on a cut tail or on a prior are left out.
    """
    known = wanted if isinstance(wanted, Mapping) else {}
    windows = certain_windows(system)
    bounds, trace = Bounds.of(windows), Trace()
    if not propagate(system.equations, bounds, trace, system.rows):
        return {}
    proofs = {}
    for cell in wanted:
        steps = _Steps(system, windows, trace)
        if bounds.lows[cell] == bounds.highs[cell]:
            proofs[cell] = steps.both_sides(cell)
        else:
            written = _beyond_single_sums(steps, bounds, cell, known.get(cell))
            if written is not None:
                proofs[cell] = written
    return proofs


def certificate_of_least(system: System, cell: int, value: int) -> Certificate | None:
    """Prove that a cell, by position, has at least a value; None where single sums and figures do not show it."""
    windows = certain_windows(system)
    bounds, trace = Bounds.of(windows), Trace()
    if not propagate(system.equations, bounds, trace, system.rows) or bounds.lows[cell] < value:
        return None
    steps = _Steps(system, windows, trace)
    steps.bound(cell, "low")
    return steps.written


def contradiction(system: System) -> Certificate | None:
    """Write out why a system without solution leaves some cell no value; None where single sums do not show it."""
    bounds, trace = Bounds.of(system.windows), Trace()
    if propagate(system.equations, bounds, trace, system.rows):
        return None
    empty = next(i for i, low in enumerate(bounds.lows) if low > bounds.highs[i])
    return _Steps(system, system.windows, trace).both_sides(empty)


class _Steps:
    """One list of steps in the making: every bound is written once, after what it rests on."""

    def __init__(
        self, system: System, windows: tuple[Window, ...], trace: Trace, supposed: tuple[Supposition, ...] = ()
    ) -> None:
        self.system, self.windows, self.trace, self.supposed = system, windows, trace, supposed
        self.written: Certificate = []
        self.number: dict[tuple[int, Side, int], int] = {}

    def both_sides(self, cell: int) -> Certificate:
        """Write out both bounds of a cell."""
        self.bound(cell, "low")
        self.bound(cell, "high")
        return self.written

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
        system = self.system
        line: dict[str, Any] = {"step": len(self.written) + 1, "cell": system.cells[cell].name, "bound": side}
        if event < 0:
            line |= self._start(cell, side)
        else:
            step = self.trace.steps[event]
            uses = [self.number[use] for use in step.uses]
            line["value"] = step.value
            if step.equation is None:
                line |= {"by": "gap", "uses": uses}
            elif step.equation < len(system.equations):
                line |= {"by": "sum", "sum": _named(system, step.equation), "uses": uses}
            else:
                line |= _said(system, step.equation - len(system.equations)) | {"uses": uses}
        self.written.append(line)
        self.number[cell, side, event] = line["step"]

    def conclude(self, cell: int, side: Side, value: int, reason: dict[str, Any]) -> None:
        """Write a last step that is not in the trace."""
        name = self.system.cells[cell].name
        self.written.append({"step": len(self.written) + 1, "cell": name, "bound": side, "value": value} | reason)

    def _start(self, cell: int, side: Side) -> dict[str, Any]:
        """Where a bound starts from: the tightest supposition about it, or what was published."""
        window = self.windows[cell]
        value = window.low if side == "low" else window.high
        here = [v for c, s, v in self.supposed if (c, s) == (cell, side)]
        if here:
            tightest = max(here) if side == "low" else min(here)
            if value is None or (tightest > value if side == "low" else tightest < value):
                return {"value": tightest, "by": "supposed", "uses": []}
        return {"value": value, "by": "published", "uses": []}


def _beyond_single_sums(steps: _Steps, bounds: Bounds, cell: int, value: int | None) -> Certificate | None:
    """Prove a value that no single sum shows: by adding sums up, or by supposing more, or less, and refuting it."""
    system, equations = steps.system, steps.system.equations
    low, high = added_up(equations, bounds, cell, "low"), added_up(equations, bounds, cell, "high")
    if value is None and low is not None and high is not None and low.bound == high.bound:
        value = low.bound
    if value is None:
        from unround.bounds.search import cpsat_bounds

        tight = cpsat_bounds(equations, steps.windows, rows=system.rows)
        if tight is None or tight[0][cell] != tight[1][cell]:
            return None
        value = tight[0][cell]
    opposites: tuple[tuple[Side, Side, int, Added | None], ...] = (
        ("low", "high", value - 1, low),
        ("high", "low", value + 1, high),
    )
    for side, opposite, supposed, added in opposites:
        if (bounds.lows if side == "low" else bounds.highs)[cell] == value:
            steps.bound(cell, side)
            continue
        if added is not None and added.bound == value:
            uses = [steps.bound(*used) for used in added.uses]
            sums = [_named(system, e) | {"times": str(times)} for e, times in added.sums]
            steps.conclude(cell, side, value, {"by": "sums", "sums": sums, "uses": uses})
            continue
        refutation = _refuted(system, steps.windows, ((cell, opposite, supposed),), [MOST_STEPS])
        if refutation is None:
            return None
        steps.conclude(cell, side, value, {"by": "contradiction", "uses": [], "refutation": refutation})
    return steps.written


def _named(system: System, equation: int) -> dict[str, Any]:
    stated = system.sums[equation]
    return {"total": stated.total, "parts": list(stated.parts)}


def _said(system: System, row: int) -> dict[str, Any]:
    """Write out one inequality of a figure, as the figure gives it."""
    figure, number = system.rows[row].figure, system.rows[row].which
    inequality = system.said[figure][number]
    terms = {name: str(factor) for name, factor in inequality.terms}
    return {"by": "figure", "figure": system.figures[figure].figure.name, "terms": terms, "at_most": str(inequality.at_most)}


def _refuted(
    system: System, windows: tuple[Window, ...], supposed: tuple[Supposition, ...], left: list[int]
) -> dict[str, Any] | None:
    """Show that suppositions leave some cell no value; None if that takes too many steps."""
    bounds, trace = Bounds.of(windows), Trace()
    for cell, side, value in supposed:
        if side == "low":
            bounds.lows[cell] = max(bounds.lows[cell], value)
        else:
            bounds.highs[cell] = min(bounds.highs[cell], value)
    if not propagate(system.equations, bounds, trace, system.rows):
        empty = next(i for i, low in enumerate(bounds.lows) if low > bounds.highs[i])
        return {"cell": system.cells[empty].name, "steps": _Steps(system, windows, trace, supposed).both_sides(empty)}
    left[0] -= len(trace.steps) + 1
    ranges = enumerate(zip(bounds.lows, bounds.highs, strict=True))
    splittable = [(high - low, i) for i, (low, high) in ranges if low < high < UNBOUNDED]
    if left[0] < 0 or not splittable:
        return None
    width, cell = min(splittable)
    middle = bounds.lows[cell] + width // 2
    below = _refuted(system, windows, (*supposed, (cell, "high", middle)), left)
    above = _refuted(system, windows, (*supposed, (cell, "low", middle + 1)), left) if below is not None else None
    if below is None or above is None:
        return None
    return {"split": {"cell": system.cells[cell].name, "at": middle, "below": below, "above": above}}
