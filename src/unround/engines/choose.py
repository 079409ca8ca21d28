"""Chooses an engine for a system, and says why: the one place that does.

Every engine takes a `Problem` and returns an `Inference`, or why it cannot. `auto` asks them in this order:

| engine        | exact for                             | gives                                          | cost             |
|---------------|---------------------------------------|------------------------------------------------|------------------|
| `tree`        | sums without loops; trees × one split | bounds, count, distributions, best solutions   | linear in cells  |
| `cutset`      | loops and figures that few values cut | the same                                       | values × a tree  |
| `enumeration` | tables with few solutions             | the same                                       | their number     |
| `chains`      | nothing: estimates, for any table     | bounds, estimates with their errors            | a second or two  |
| `cp-sat`      | any system                            | the same if all can be listed, else the bounds | grows with loops |

Two are used only if asked for: `z3`, the paper's method, and `brute`, the reference in exact fractions. Cells that no sum or
figure connects are answered piece by piece. Where no engine can use all figures, some say what is possible, and no more.
"""

from __future__ import annotations

import heapq
from dataclasses import replace
from itertools import islice

import numpy as np

from unround.bounds.propagation import UNBOUNDED, Bounds, idle, propagate
from unround.engines.answer import Answer, Inference, Marginal, Prior, Problem, domains, support_of, weigh, weights_within
from unround.engines.cutset import MOST_VALUES, by_cutset
from unround.engines.tree import Impossible, TooWide, Tree
from unround.errors import InputError
from unround.mechanisms import Window
from unround.sums.forest import is_acyclic, plan_for
from unround.system import System, connected

Solutions = tuple[tuple[tuple[int, ...], float], ...]

ENGINES = ("auto", "tree", "cutset", "chains", "cp-sat", "z3", "brute")

LOOPS = "the sums form loops"
WIDE = "cells have too many possible values for exact probabilities"

NEEDS = {
    "tree": "the tree engine needs sums without loops, or one two-way split that crosses a tree, and possible ranges "
    "that are not too wide.",
    "cutset": "cutting the loops open takes too many combinations of values.",
    "chains": "chains need sums in which every total consists of the same innermost cells however it is divided, and "
    "cells that are all bounded.",
}
"""What is said where an engine that was asked for cannot answer."""

MOST_LISTED = 20_000
"""The most solutions that are listed before an engine gives up on probabilities."""


def infer(
    system: System, *, engine: str = "auto", prior: Prior | None = None, top: int = 5, count: bool = True
) -> Inference:
    """Infer what a system's true counts can be.

    Raises `InputError` if the engine is unknown, not installed, or cannot solve this system.
    """
    if engine not in ENGINES:
        raise InputError(f"there is no engine {engine!r}. Choose one of {', '.join(ENGINES)}.")
    windows = domains(system, prior)
    if engine == "brute":
        return _by_brute(system, prior, top)
    bounds = Bounds.of(windows)
    if not propagate(system.equations, bounds, None, system.rows):
        return Inference(False, "bounds", "the bounds already contradict each other")
    rows = tuple([row for row in system.rows if not idle(row, bounds)])
    windows = _tight(windows, bounds) if system.figures else windows
    problem = Problem(system, windows, bounds, rows, prior, top, count)
    names = ", ".join(problem.figures)
    if rows and engine in ("tree", "chains"):
        raise InputError(f"the {engine} engine cannot use {names}. Use --engine auto.")
    reason, ways = "as requested", [_by_pieces, by_cutset] if rows else [_by_tree, by_cutset, _by_pieces, _by_table]
    if engine == "auto":
        for way in ways:
            answered = way(problem)
            if isinstance(answered, Inference):
                return answered
            reason = answered if way is _by_tree else reason
        reason = f"{names} could not be used in a quicker way" if rows else reason
    elif engine in NEEDS:
        answered = {"tree": _by_tree, "cutset": by_cutset}.get(engine, _by_table_in_pieces)(replace(problem, engine=engine))
        if isinstance(answered, Inference):
            return answered
        needs = f"using {names} exactly takes too many combinations of values." if rows else NEEDS[engine]
        raise InputError(f"{needs} Use --engine auto.")
    listed = _by_listing(replace(problem, engine=engine), reason)
    return _with_some_figures(problem, listed) if rows and engine == "auto" and listed.feasible else listed


def _by_pieces(problem: Problem) -> Inference | str:
    """Answer a system in several pieces that no sum or figure connects, each by itself."""
    system, engine = problem.system, problem.engine
    pieces = _pieces(system)
    if len(pieces) == 1:
        return "it is one piece"
    answers = []
    for cells in pieces:
        names = {system.cells[i].name for i in cells}
        alone = System(
            [system.cells[i] for i in cells],
            [entry for entry in system.sums if entry.total in names],
            [entry for entry in system.figures if entry.figure.universe in names],
        )
        priors = {name: entry for name, entry in (problem.prior or {}).items() if name in names}
        # An engine that was asked for is for the pieces with loops; others need none.
        piece = infer(alone, prior=priors, top=problem.top, count=problem.count)
        if engine != "auto" and piece.engine not in (engine, "tree") and len(cells) > 1:
            piece = infer(alone, engine=engine, prior=priors, top=problem.top, count=problem.count)
        answers.append(piece)
    return _joined(len(system.cells), pieces, answers, problem.top)


def _by_table_in_pieces(problem: Problem) -> Inference | str:
    answered = _by_pieces(problem)
    return _by_table(problem) if isinstance(answered, str) else answered


def _pieces(system: System) -> list[list[int]]:
    """Return connected cells; all that stand in no sum and no figure are one piece."""
    together = [(total, *parts) for total, parts in system.equations]
    together += [tuple(system.index[name] for name in stated.figure.counts) for stated in system.figures]
    inside = {cell for cells in together for cell in cells}
    pieces: dict[int, list[int]] = {}
    for cell, first in enumerate(connected(len(system.cells), together)):
        pieces.setdefault(first if cell in inside else -1, []).append(cell)
    return list(pieces.values())


def _joined(cells: int, pieces: list[list[int]], inferred: list[Inference], top: int) -> Inference:
    impossible = next((part for part in inferred if not part.feasible), None)
    if impossible is not None:
        return impossible
    lows, highs = [0] * cells, list[int | None]([None] * cells)
    marginals, errors = list[Marginal | None]([None] * cells), [0.0] * cells
    solutions: int | None = 1
    for piece, part in zip(pieces, inferred, strict=True):
        number = part.answer.solutions if part.answer is not None else None
        solutions = None if solutions is None or number is None else solutions * number
        for k, cell in enumerate(piece):
            lows[cell], highs[cell] = part.lows[k], part.highs[k]
            if part.answer is not None and part.answer.marginals is not None:
                marginals[cell] = part.answer.marginals[k]
            if part.errors is not None:
                errors[cell] = part.errors[k]
    # The hardest piece says what kind of answer this is: one without probabilities, or else with estimates, or the largest.
    hardest = max(
        range(len(inferred)), key=lambda k: (inferred[k].answer is None, inferred[k].errors is not None, len(pieces[k]), -k)
    )
    engine, why = inferred[hardest].engine, inferred[hardest].why
    answers = [part.answer for part in inferred if part.answer is not None]
    answer = None
    if answers:
        best = _best(cells, pieces, [part.best for part in answers], top) if len(answers) == len(inferred) else ()
        answer = Answer(solutions, tuple(marginals), best, any(part.relative for part in answers))
    estimated = any(part.errors is not None for part in inferred)
    rhats = [part.rhat for part in inferred if part.rhat is not None]
    return Inference(
        True, engine, why, tuple(lows), tuple(highs), answer, tuple(errors) if estimated else None, max(rhats, default=None)
    )


def _best(cells: int, pieces: list[list[int]], best: list[Solutions], top: int) -> Solutions:
    """Combine the best solutions of all pieces."""
    if any(not solution for solution in best):
        return ()
    joined: list[tuple[dict[int, int], float]] = [({}, 1.0)]
    for piece, solutions in zip(pieces, best, strict=True):
        every = (
            ({**values, **dict(zip(piece, own_values, strict=True))}, p * q)
            for values, p in joined
            for own_values, q in solutions
        )
        joined = heapq.nsmallest(top, every, key=lambda solution: -solution[1])
    return tuple(islice(((tuple(values[c] for c in range(cells)), p) for values, p in joined), top))


def _with_some_figures(problem: Problem, searched: Inference) -> Inference:
    """Answer with as many figures as there is an exact way for; the others only say what is possible."""
    if searched.answer is not None:
        return searched
    system, used = problem.system, {row.figure for row in problem.rows}
    # The figures with the most cells are the hardest to use.
    hardest = sorted(used, key=lambda f: (-len(system.figures[f].figure.counts), f))
    for number in range(1, len(hardest) + 1):
        aside = hardest[:number]
        rest = System(system.cells, system.sums, [entry for f, entry in enumerate(system.figures) if f not in aside])
        without = infer(rest, prior=problem.prior, top=0, count=False)
        if without.answer is not None and without.answer.marginals is not None:
            ends = zip(without.answer.marginals, searched.lows, searched.highs, strict=True)
            marginals = [_within(entry, low, high) for entry, low, high in ends]
            if all(entry is not None for entry in marginals):
                names = tuple(system.figures[f].figure.name for f in sorted(aside))
                why = f"{without.why}; {', '.join(names)} used for possible ranges alone"
                answer = Answer(None, tuple(marginals), ())
                return replace(searched, engine=without.engine, why=why, answer=answer, errors=without.errors, aside=names)
    return searched


def _within(marginal: Marginal | None, low: int, high: int | None) -> Marginal | None:
    """Return a distribution given that a count lies within bounds."""
    if marginal is None or high is None:
        return None
    start, chances = marginal
    inside = np.zeros(high - low + 1)
    first, last = max(low, start), min(high, start + len(chances) - 1)
    inside[first - low : last - low + 1] = chances[first - start : last - start + 1]
    return (low, inside / inside.sum()) if inside.sum() > 0 else None


def _by_tree(problem: Problem) -> Inference | str:
    """Answer by the tree engine."""
    bounds, equations = problem.bounds, problem.system.equations
    lows, highs = bounds.lows, bounds.highs
    unbounded = [i for i, high in enumerate(highs) if high >= UNBOUNDED]
    if unbounded:
        # Such cells come in twos or more to a sum. Without loops among them, a sum of theirs says nothing about its other
        # cells: whatever those are, one can make up for it. With loops it may: t = a + b and t = a + c say that b = c.
        open_ended = set(unbounded)
        theirs = tuple([e for e in equations if not open_ended.isdisjoint((e[0], *e[1]))])
        if not is_acyclic(len(lows), theirs, frozenset(range(len(lows))) - open_ended):
            return LOOPS
        equations = tuple([e for e in equations if open_ended.isdisjoint((e[0], *e[1]))])
        lows, highs = lows.copy(), highs.copy()
        for i in unbounded:
            highs[i] = lows[i]
    fixed = frozenset([i for i, low in enumerate(lows) if low == highs[i]])
    plan = plan_for(len(lows), equations, fixed)
    if plan is None:
        return LOOPS
    if sum(highs) - sum(lows) > MOST_VALUES:
        return WIDE
    try:
        tree = Tree(plan, lows, problem.weights(lows, highs))
        answer = tree.solve(0 if unbounded else problem.top, problem.count)
    except TooWide:
        return WIDE
    except Impossible:
        return Inference(False, "tree", "no combination of the possible values adds up")
    why = "the sums have no loops" if not plan.has_pairs else "one two-way split runs through all sums: pairs have no loops"
    if bounds.holes or plan.has_pairs:
        # Where windows have holes, or sums are implied, a bound may be out of reach although every single sum allows it.
        ends = tree.ends(answer)
        lows, highs = [low for low, _ in ends], [high for _, high in ends]
    if unbounded:
        return _open_ended(problem, unbounded, list(zip(lows, highs, strict=True)), answer, why)
    return Inference(True, "tree", why, tuple(lows), tuple(highs), answer)


def _by_table(problem: Problem) -> Inference | str:
    """Answer a multi-way table."""
    from unround.engines.multiway import NoTable, solve_table
    from unround.sums.multiway import multiway_tables

    bounds, equations = problem.bounds, problem.system.equations
    if max(bounds.highs) >= UNBOUNDED or sum(bounds.highs) - sum(bounds.lows) > MOST_VALUES:
        return WIDE
    tables = multiway_tables(len(bounds.lows), equations)
    if len(tables) != 1 or tables[0] is None:
        return LOOPS
    try:
        return solve_table(tables[0], problem) or WIDE
    except NoTable:
        return Inference(False, "bounds", "no combination of the possible values adds up")


def _open_ended(problem: Problem, unbounded: list[int], ends: list[tuple[int, int]], answer: Answer, why: str) -> Inference:
    """Put the cells that nothing bounds back in: they have a least value, and no distribution."""
    equations = problem.system.equations
    assert answer.marginals is not None
    marginals = [None if i in unbounded else marginal for i, marginal in enumerate(answer.marginals)]
    tight = problem.bounds.copy()
    for i in set(range(len(ends))) - set(unbounded):
        tight.lows[i], tight.highs[i] = ends[i]
    propagate(equations, tight)
    if not is_acyclic(len(ends), equations, frozenset()):
        # Around loops single sums may not say how small such a cell can be.
        from unround.bounds.search import cpsat_bounds

        searched = cpsat_bounds(equations, problem.windows)
        if searched is None:
            return Inference(False, "cp-sat", "no assignment fits")
        for i in unbounded:
            tight.lows[i] = searched[0][i]
    highs = tuple(None if i in unbounded else high for i, high in enumerate(tight.highs))
    return Inference(True, "tree", why, tuple(tight.lows), highs, Answer(None, tuple(marginals), ()))


def _by_brute(system: System, prior: Prior | None, top: int) -> Inference:
    from unround.engines.brute import answer

    listed = answer(system, prior, top)
    if listed is None:
        return Inference(False, "brute", "no assignment fits")
    assert listed.marginals is not None
    ends = np.array([support_of(marginal) for marginal in listed.marginals if marginal is not None])
    lows, highs = map(tuple, ends.T.tolist())
    return Inference(True, "brute", "every assignment was tried, in exact fractions", lows, highs, listed)


def _tight(windows: tuple[Window, ...], bounds: Bounds) -> tuple[Window, ...]:
    """Cut windows to bounds."""
    return tuple(
        Window(low, None if high >= UNBOUNDED else high, None, window.certain)
        if window.weights is None
        else Window(low, high, weights_within(window, low, high), window.certain, window.holes)
        for window, low, high in zip(windows, bounds.lows, bounds.highs, strict=True)
    )


def _by_listing(problem: Problem, reason: str) -> Inference:
    """Answer by listing solutions, or by bounds alone if they are too many."""
    from unround.bounds.search import cpsat_bounds, cpsat_solutions, z3_solutions

    equations, rows, engine = problem.system.equations, problem.rows, problem.engine
    tight = _tight(problem.windows, problem.bounds)
    name = "cp-sat" if engine == "auto" else engine
    if all(window.high is not None for window in tight):
        listed = (z3_solutions if engine == "z3" else cpsat_solutions)(equations, tight, MOST_LISTED, rows=rows)
        if listed is not None:
            if not len(listed):
                return Inference(False, name, "no assignment fits")
            lows, highs = (tuple(ends.tolist()) for ends in (listed.min(axis=0), listed.max(axis=0)))
            why = f"{reason}; all solutions could be listed"
            return Inference(True, name, why, lows, highs, weigh(listed, tight, problem.top))
    if engine == "z3":
        raise InputError(f"there are more than {MOST_LISTED:,} solutions, too many for z3. Use --engine auto.")
    attained = cpsat_bounds(equations, tight, rows=rows)
    if attained is None:
        return Inference(False, name, "no assignment fits")
    why = f"{reason}; there are over {MOST_LISTED:,} solutions, so probabilities are not available"
    return Inference(True, name, why, tuple(attained[0]), tuple(attained[1]))
