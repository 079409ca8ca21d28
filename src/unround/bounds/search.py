"""Solutions and bounds by search, for systems of any shape: with CP-SAT, or with Z3 as the paper did it.

A system comes as `equations`, the sums as positions (total, parts), `domains`, one window a cell, and `rows`, the
inequalities of its figures in whole numbers. Results are deterministic: one worker, a fixed seed, and solutions in
lexicographic order.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from unround.bounds.propagation import UNBOUNDED, Bounds, propagate
from unround.errors import InputError, InternalError
from unround.mechanisms import Window
from unround.mechanisms.base import IntArray
from unround.sums.forest import Equations
from unround.system import Row

__all__ = ["cpsat_bounds", "cpsat_solutions", "cpsat_witness", "single_worker", "z3_solutions"]

CAP = 1 << 40
"""How far beyond all finite bounds CP-SAT looks for the values of a cell that propagation leaves open."""

Rows = tuple[Row, ...]

MOST_FACTORS = 1 << 28
"""The largest sum of an inequality's factors that a search takes."""

WIDE = 1024
"""Values of one cell above which a search is divided: CP-SAT takes quadratic time in those it has tried."""


def cpsat_solutions(equations: Equations, domains: Sequence[Window], limit: int, rows: Rows = ()) -> IntArray | None:
    """List all solutions with CP-SAT.

    One row a solution, in lexicographic order; no row where nothing fits. None for more than `limit`.

    Notes
    -----
    About 20 µs a solution for a few cells, 200 µs for hundreds.
    """
    bounds = _narrowed(equations, domains, rows)
    if bounds is None or _witness(equations, domains, bounds, rows) is None:
        return np.empty((0, len(domains)), dtype=np.int64)
    if _unbounded(equations, bounds, rows):
        return None

    collect = _collector(len(domains), limit)
    for narrow in _slices(equations, domains, bounds, rows):
        _enumerate(_model(equations, domains, narrow, rows), collect)
        if collect.full:
            return None
    return _sorted(np.array(collect.flat, dtype=np.int64).reshape(collect.count, len(domains)))


def z3_solutions(
    equations: Equations, domains: Sequence[Window], limit: int, logic: str | None = None, rows: Rows = ()
) -> IntArray | None:
    """List all solutions as the paper did: ask Z3 for one, forbid it, and ask again.

    As from `cpsat_solutions`. Raises `InputError` if Z3 is not installed. Raises `InternalError` if Z3 stops without
    an answer.

    Notes
    -----
    Every solution adds a clause that all later ones must satisfy, so time grows faster than the solutions.
    """
    try:
        import z3
    except ImportError:
        raise InputError('the z3 engine is not installed: pip install "unround[z3]".') from None
    solver = z3.Solver() if logic is None else z3.SolverFor(logic)
    cells = [z3.Int(f"x{i}") for i in range(len(domains))]
    for cell, window in zip(cells, domains, strict=True):
        solver.add(cell >= window.low)
        if window.high is not None:
            solver.add(cell <= window.high)
        if window.weights is not None:
            solver.add(*[cell != window.low + int(hole) for hole in np.flatnonzero(window.weights == 0)])
    for total, parts in equations:
        solver.add(cells[total] == z3.Sum([cells[part] for part in parts]))
    for row in rows:
        solver.add(z3.Sum([factor * cells[cell] for cell, factor in row.terms]) <= row.at_most)

    solutions: list[list[int]] = []
    while (verdict := solver.check()) == z3.sat:
        if len(solutions) == limit:
            return None
        model = solver.model()
        values = [model.eval(cell, model_completion=True).as_long() for cell in cells]
        solutions.append(values)
        solver.add(z3.Or([cell != value for cell, value in zip(cells, values, strict=True)]))
    if verdict != z3.unsat:
        raise InternalError(f"Z3 stopped without an answer: {solver.reason_unknown()}.")
    return _sorted(np.array(solutions, dtype=np.int64).reshape(len(solutions), len(domains)))


def cpsat_bounds(
    equations: Equations, domains: Sequence[Window], shown: Sequence[tuple[int, int]] = (), rows: Rows = ()
) -> tuple[list[int], list[int | None]] | None:
    """Find the smallest and the largest value that each cell has in any solution.

    Lower and upper bounds, all attained; an upper bound is None where there is none. None alone if nothing fits.

    Notes
    -----
    At most two optimisations a cell, and far fewer in practice: every solution that is found shows values for
    all cells, and a bound that propagation gives and a solution attains needs no search.
    """
    bounds = _narrowed(equations, domains, rows)
    if bounds is None:
        return None
    free = _unbounded(equations, bounds, rows)
    if shown:
        lowest, highest = [low for low, _ in shown], [high for _, high in shown]
    else:
        first = _witness(equations, domains, bounds, rows)
        if first is None:
            return None
        lowest, highest = first.copy(), first.copy()
    for cell in range(len(domains)):
        for sign in (1, -1):
            side, seen = (bounds.lows, lowest) if sign > 0 else (bounds.highs, highest)
            if seen[cell] == side[cell] or (sign < 0 and cell in free):
                continue
            values = _witness(equations, domains, bounds, rows, (cell, sign))
            if values is None:
                raise InternalError("CP-SAT found no solution where it had found one before.")
            lowest = [min(pair) for pair in zip(lowest, values, strict=True)]
            highest = [max(pair) for pair in zip(highest, values, strict=True)]
            # The optimum is a bound in its own right, and may tighten others.
            side[cell] = values[cell]
            propagate(equations, bounds, None, rows)
    return lowest, [None if cell in free else high for cell, high in enumerate(highest)]


def cpsat_witness(equations: Equations, domains: Sequence[Window], rows: Rows = ()) -> list[int] | None:
    """Return any solution, or None if there is none."""
    bounds = _narrowed(equations, domains, rows)
    return None if bounds is None else _witness(equations, domains, bounds, rows)


def _narrowed(equations: Equations, domains: Sequence[Window], rows: Rows) -> Bounds | None:
    """Return the bounds that propagation gives, or None where it already shows that nothing fits."""
    bounds = Bounds.of(domains)
    return bounds if propagate(equations, bounds, None, rows) else None


def _cap(bounds: Bounds, rows: Rows) -> int:
    """Return what stands for the upper bound of an open cell: more than the others can add up to."""
    pairs = zip(bounds.lows, bounds.highs, strict=True)
    return CAP // _largest(rows) + sum(high if high < UNBOUNDED else low for low, high in pairs)


def _largest(rows: Rows) -> int:
    """Return the largest sum of an inequality's factors: CP-SAT multiplies counts with them in 64 bits."""
    largest = max((sum(abs(factor) for _, factor in row.terms) for row in rows), default=1)
    if largest > MOST_FACTORS:
        raise InputError("the steps and edges of a figure have too many digits to be searched exactly. Round them.")
    return largest


def _model(equations: Equations, domains: Sequence[Window], bounds: Bounds, rows: Rows) -> Any:
    """Build the CP-SAT model; the variable of each cell has the cell's position."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    cap = _cap(bounds, rows)
    variables = []
    for window, low, high in zip(domains, bounds.lows, bounds.highs, strict=True):
        domain = cp_model.Domain(low, cap if high >= UNBOUNDED else high)
        if window.holes and window.weights is not None:
            possible = np.flatnonzero(window.weights[low - window.low : high - window.low + 1])
            domain = cp_model.Domain.from_values((low + possible).tolist())
        variables.append(model.new_int_var_from_domain(domain, ""))
    for total, parts in equations:
        model.add(cp_model.LinearExpr.sum([variables[part] for part in parts]) == variables[total])
    for row in rows:
        factors = [factor for _, factor in row.terms]
        model.add(cp_model.LinearExpr.weighted_sum([variables[cell] for cell in row.cells], factors) <= row.at_most)
    return model


def _slices(equations: Equations, domains: Sequence[Window], bounds: Bounds, rows: Rows) -> Iterator[Bounds]:
    """Divide the search until no cell has more than `WIDE` values; leave out what has no solution."""
    cap = _cap(bounds, rows)
    pending = [Bounds(bounds.lows, [min(high, cap) for high in bounds.highs], bounds.holes)]
    while pending:
        now = pending.pop()
        widths = [high - low for low, high in zip(now.lows, now.highs, strict=True)]
        width = max(widths)
        if width < WIDE:
            yield now
        elif _witness(equations, domains, now, rows) is not None:  # without this a search could divide for ever
            cell = widths.index(width)
            middle = now.lows[cell] + width // 2
            lower, upper = now.copy(), now.copy()
            lower.highs[cell], upper.lows[cell] = middle, middle + 1
            pending += [half for half in (upper, lower) if propagate(equations, half, None, rows)]


def _enumerate(model: Any, collect: Any) -> None:
    """Give all solutions of a model to the collector, or as many as it wants."""
    from ortools.sat.python import cp_model

    solver = single_worker()
    solver.parameters.enumerate_all_solutions = True
    # Linear programming would prune little here, and takes most of the time; measured, as is the fixed order.
    solver.parameters.linearization_level = 0
    solver.parameters.search_branching = cp_model.FIXED_SEARCH
    status = solver.solve(model, collect)
    # Only these two say that the search went through to its end.
    if not collect.full and status not in (cp_model.OPTIMAL, cp_model.INFEASIBLE):
        raise _stopped(solver.status_name(status))


def single_worker() -> Any:
    """Return a CP-SAT solver whose results are the same every time."""
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    return solver


def _collector(cells: int, limit: int) -> Any:
    """Return the callback that collects solutions, and ends the search beyond the limit."""
    from ortools.sat.python import cp_model

    class Collect(cp_model.CpSolverSolutionCallback):  # type: ignore[misc] # ortools ships no complete types
        def __init__(self) -> None:
            super().__init__()
            self.flat = array("q")
            self.count = 0

        @property
        def full(self) -> bool:
            return self.count > limit

        def on_solution_callback(self) -> None:
            self.count += 1
            if self.full:
                self.stop_search()
            else:
                # By position, which is several times faster than `self.value(variable)`.
                self.flat.extend(map(self.SolutionIntegerValue, range(cells)))

    return Collect()


def _witness(
    equations: Equations, domains: Sequence[Window], bounds: Bounds, rows: Rows, goal: tuple[int, int] | None = None
) -> list[int] | None:
    """Return one solution, or None; with a goal (cell, sign) the one with the least sign × cell."""
    from ortools.sat.python import cp_model

    model = _model(equations, domains, bounds, rows)
    if goal is not None:
        cell, sign = goal
        model.minimize(sign * model.get_int_var_from_proto_index(cell))
    solver = single_worker()
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    if status != cp_model.OPTIMAL:
        raise _stopped(solver.status_name(status))
    return list(solver.response_proto.solution)


def _stopped(status: str) -> InternalError:
    # Neither "nothing fits" nor "all were found": an audit must not read a search that broke off as either.
    return InternalError(f"CP-SAT stopped without an answer ({status}).")


def _unbounded(equations: Equations, bounds: Bounds, rows: Rows) -> set[int]:
    """Return the cells that can grow without end, given that there is some solution.

    A cell can if cells can be raised together in some direction in which every sum and figure still holds and bounded
    cells stay put. Directions add up, so that one of them raises all such cells at once; CP-SAT looks for it.
    """
    open_cells = [cell for cell, high in enumerate(bounds.highs) if high >= UNBOUNDED]
    if not open_cells:
        return set()

    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    cap = CAP // _largest(rows)
    rise = {cell: model.new_int_var(0, cap, "") for cell in open_cells}
    rises = {cell: model.new_bool_var("") for cell in open_cells}
    for cell in open_cells:
        model.add(rise[cell] >= rises[cell])
    for total, parts in equations:
        if total in rise:  # else all the parts are bounded too
            model.add(cp_model.LinearExpr.sum([rise[part] for part in parts if part in rise]) == rise[total])
    for row in rows:
        free = [(rise[cell], factor) for cell, factor in row.terms if cell in rise]
        if free:
            model.add(
                cp_model.LinearExpr.weighted_sum([variable for variable, _ in free], [factor for _, factor in free]) <= 0
            )
    model.maximize(sum(rises.values()))
    solver = single_worker()
    status = solver.solve(model)
    if status != cp_model.OPTIMAL:
        raise _stopped(solver.status_name(status))
    return {cell for cell in open_cells if solver.boolean_value(rises[cell])}


def _sorted(rows: IntArray) -> IntArray:
    """Put rows into lexicographic order."""
    return rows[np.lexsort(rows.T[::-1])] if len(rows) else rows
