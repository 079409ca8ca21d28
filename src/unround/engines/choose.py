"""Systems in pieces that no sum or figure connects: each is answered by itself, and the answers are put together.

The façade: chooses an engine for a system, and says why.

| engine   | exact for                             | gives                                          | cost             |
|----------|---------------------------------------|------------------------------------------------|------------------|
| `tree`   | sums without loops; trees × one split | bounds, count, distributions, best solutions   | linear in cells  |
| `cutset` | loops that few values cut open        | the same                                       | values × a tree  |
| `elimination` | tables with one long axis        | bounds, distributions                          | states × slices  |
| `chains` | nothing: estimates, for any table     | bounds, estimates with their errors            | a second or two  |
| `cp-sat` | any system                            | the same if all can be listed, else the bounds | grows with loops |
| `z3`     | any system with few solutions         | the same; the paper's method                   | grows faster     |
| `brute`  | small systems                         | the same in exact fractions: the reference     | exponential      |

Cells that no sum and no figure connects are answered piece by piece. Figures that say more than bounds can are left to
`cutset`, and to `cp-sat` where that is too much work (`figured`). Before `auto` comes to chains, it goes through all
solutions if they are few (`enumeration`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import islice

from unround.bounds.propagation import UNBOUNDED, Bounds, idle, propagate
from unround.engines.answer import Answer, Inference, Marginal, Prior, domains, support_of, weights_within
from unround.engines.cutset import MOST_VALUES, by_cutset, for_bounds_alone, named
from unround.engines.tree import Impossible, TooWide, Tree
from unround.errors import InputError
from unround.mechanisms import Window
from unround.sums.forest import is_acyclic, plan_for
from unround.system import Row, System, connected

Solutions = tuple[tuple[tuple[int, ...], float], ...]


def by_pieces(
    system: System, engine: str, prior: Prior | None, top: int, count: bool, infer: Callable[..., Inference]
) -> Inference | None:
    """Answer a system in several pieces; None if it is one."""
    pieces = _pieces(system)
    if len(pieces) == 1:
        return None
    found = []
    for cells in pieces:
        names = {system.cells[i].name for i in cells}
        alone = System(
            [system.cells[i] for i in cells],
            [one for one in system.sums if one.total in names],
            [one for one in system.figures if one.figure.universe in names],
        )
        own = {name: one for name, one in (prior or {}).items() if name in names}
        # An engine that was asked for is for the pieces with loops; others need none.
        piece = infer(alone, engine="auto", prior=own, top=top, count=count)
        if engine != "auto" and piece.engine not in (engine, "tree") and len(cells) > 1:
            piece = infer(alone, engine=engine, prior=own, top=top, count=count)
        found.append(piece)
    return _joined(len(system.cells), pieces, found, top)


def _pieces(system: System) -> list[list[int]]:
    """Return connected cells; all that stand in no sum and no figure are one piece."""
    together = [(total, *parts) for total, parts in system.equations]
    together += [tuple(system.index[name] for name in one.figure.counts) for one in system.figures]
    inside = {cell for cells in together for cell in cells}
    pieces: dict[int, list[int]] = {}
    for cell, first in enumerate(connected(len(system.cells), together)):
        pieces.setdefault(first if cell in inside else -1, []).append(cell)
    return list(pieces.values())


def _joined(cells: int, pieces: list[list[int]], found: list[Inference], top: int) -> Inference:
    impossible = next((one for one in found if not one.feasible), None)
    if impossible is not None:
        return impossible
    lows, highs = [0] * cells, list[int | None]([None] * cells)
    marginals, errors = list[Marginal | None]([None] * cells), [0.0] * cells
    solutions: int | None = 1
    for piece, one in zip(pieces, found, strict=True):
        number = one.answer.solutions if one.answer is not None else None
        solutions = None if solutions is None or number is None else solutions * number
        for k, cell in enumerate(piece):
            lows[cell], highs[cell] = one.lows[k], one.highs[k]
            if one.answer is not None and one.answer.marginals is not None:
                marginals[cell] = one.answer.marginals[k]
            if one.errors is not None:
                errors[cell] = one.errors[k]
    # The hardest piece says what kind of answer this is: one without probabilities, or else with estimates, or the largest.
    hardest = max(
        range(len(found)), key=lambda k: (found[k].answer is None, found[k].errors is not None, len(pieces[k]), -k)
    )
    engine, why = found[hardest].engine, found[hardest].why
    answers = [one.answer for one in found if one.answer is not None]
    answer = None
    if answers:
        best = _best(cells, pieces, [one.best for one in answers], top) if len(answers) == len(found) else ()
        answer = Answer(solutions, tuple(marginals), best, any(one.relative for one in answers))
    estimated = any(one.errors is not None for one in found)
    rhats = [one.rhat for one in found if one.rhat is not None]
    return Inference(
        True, engine, why, tuple(lows), tuple(highs), answer, tuple(errors) if estimated else None, max(rhats, default=None)
    )


def _best(cells: int, pieces: list[list[int]], best: list[Solutions], top: int) -> Solutions:
    """Combine the best solutions of all pieces."""
    if any(not one for one in best):
        return ()
    joined: list[tuple[dict[int, int], float]] = [({}, 1.0)]
    for piece, solutions in zip(pieces, best, strict=True):
        every = (({**values, **dict(zip(piece, own, strict=True))}, p * q) for values, p in joined for own, q in solutions)
        joined = heapq.nsmallest(top, every, key=lambda one: -one[1])
    return tuple(islice(((tuple(values[c] for c in range(cells)), p) for values, p in joined), top))


ENGINES = ("auto", "tree", "cutset", "elimination", "chains", "cp-sat", "z3", "brute")

LOOPS = "the sums form loops"
WIDE = "cells have too many possible values for exact probabilities"

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
    if system.figures:
        windows = _tight(windows, bounds)
        rows = tuple([row for row in system.rows if not idle(row, bounds)])
        if rows:
            return _with_figures(system, rows, windows, bounds, engine, prior, top, count)
    reason = "as requested"
    if engine in ("auto", "tree"):
        found, reason = _by_tree(system, windows, bounds, top, count)
        if found is not None:
            return found
        if engine == "tree":
            raise InputError(
                "the tree engine needs sums without loops, or one two-way split that crosses a tree, and possible ranges "
                "that are not too wide. Use --engine auto."
            )
    if engine in ("auto", "cutset"):
        found = by_cutset(system, (), windows, bounds, top)
        if found is not None:
            return found
        if engine == "cutset":
            raise InputError("cutting the loops open takes too many combinations of values. Use --engine auto.")
    if engine in ("auto", "elimination", "chains"):
        found = by_pieces(system, engine, prior, top, count, infer) or _by_table(system, windows, bounds, engine, top)
        if found is not None:
            return found
        if engine == "elimination":
            raise InputError("elimination needs a table with one long axis, and few cells across it. Use --engine auto.")
        if engine == "chains":
            raise InputError(
                "chains need sums in which every total consists of the same innermost cells however it is divided, and "
                "cells that are all bounded. Use --engine auto."
            )
    return _by_listing(system, windows, bounds, engine, reason, top)


def _with_figures(
    system: System,
    rows: tuple[Row, ...],
    windows: tuple[Window, ...],
    bounds: Bounds,
    engine: str,
    prior: Prior | None,
    top: int,
    count: bool,
) -> Inference:
    """Answer a system whose figures say more than its bounds do."""
    names = ", ".join(named(system, rows))
    if engine in ("tree", "elimination", "chains"):
        raise InputError(f"the {engine} engine cannot use {names}. Use --engine auto.")
    if engine == "auto":
        found = by_pieces(system, engine, prior, top, count, infer)
        if found is not None:
            return found
    if engine in ("auto", "cutset"):
        found = by_cutset(system, rows, windows, bounds, top)
        if found is not None:
            return found
        if engine == "cutset":
            raise InputError(f"using {names} exactly takes too many combinations of values. Use --engine auto.")
    reason = f"{names} could not be used in a quicker way" if engine == "auto" else "as requested"
    found = _by_listing(system, windows, bounds, engine, reason, top, rows)
    if engine != "auto" or not found.feasible or found.answer is not None:
        return found

    def without(rest: System, top: int) -> Inference:
        return infer(rest, prior=prior, top=top, count=False)

    return for_bounds_alone(system, rows, without, found)


def _by_tree(
    system: System, windows: tuple[Window, ...], bounds: Bounds, top: int, count: bool
) -> tuple[Inference | None, str]:
    """Answer by the tree engine; if it cannot, return None and why."""
    lows, highs = bounds.lows, bounds.highs
    equations = system.equations
    unbounded = [i for i, high in enumerate(highs) if high >= UNBOUNDED]
    if unbounded:
        # Such cells come in twos or more to a sum. Without loops among them, a sum of theirs says nothing about its other
        # cells: whatever those are, one can make up for it. With loops it may: t = a + b and t = a + c say that b = c.
        open_ended = set(unbounded)
        theirs = tuple([e for e in equations if not open_ended.isdisjoint((e[0], *e[1]))])
        if not is_acyclic(len(lows), theirs, frozenset(range(len(lows))) - open_ended):
            return None, LOOPS
        equations = tuple([e for e in equations if open_ended.isdisjoint((e[0], *e[1]))])
        lows, highs = lows.copy(), highs.copy()
        for i in unbounded:
            highs[i] = lows[i]
    fixed = frozenset([i for i, low in enumerate(lows) if low == highs[i]])
    plan = plan_for(len(lows), equations, fixed)
    if plan is None:
        return None, LOOPS
    if sum(highs) - sum(lows) > MOST_VALUES:
        return None, WIDE
    weights = [weights_within(window, lows[i], highs[i]) for i, window in enumerate(windows)]
    try:
        tree = Tree(plan, lows, weights)
        answer = tree.solve(0 if unbounded else top, count)
    except TooWide:
        return None, WIDE
    except Impossible:
        return Inference(False, "tree", "no combination of the possible values adds up"), ""
    why = "the sums have no loops" if not plan.has_pairs else "one two-way split runs through all sums: pairs have no loops"
    if bounds.holes or plan.has_pairs:
        # Where windows have holes, or sums are implied, a bound may be out of reach although every single sum allows it.
        ends = tree.ends(answer)
        lows, highs = [low for low, _ in ends], [high for _, high in ends]
    if unbounded:
        return _open_ended(system, windows, bounds, unbounded, lows, highs, answer, why), ""
    return Inference(True, "tree", why, tuple(lows), tuple(highs), answer), ""


def _by_table(system: System, windows: tuple[Window, ...], bounds: Bounds, engine: str, top: int) -> Inference | None:
    """Answer a table by several axes; None if it is none, or too wide."""
    from unround.bounds.search import cpsat_bounds, cpsat_witness
    from unround.engines.multiway import NoTable, solve_table
    from unround.sums.multiway import crossed_tables

    if max(bounds.highs) >= UNBOUNDED or sum(bounds.highs) - sum(bounds.lows) > MOST_VALUES:
        return None
    tables = crossed_tables(len(windows), system.equations)
    if len(tables) != 1 or tables[0] is None:
        return None
    weights = [weights_within(window, bounds.lows[i], bounds.highs[i]) for i, window in enumerate(windows)]

    def witness() -> list[int] | None:
        return cpsat_witness(system.equations, windows)

    try:
        found = solve_table(tables[0], windows, bounds, weights, top, engine, witness)
    except NoTable:
        return Inference(False, "bounds", "no combination of the possible values adds up")
    if found is None:
        return None
    ends = cpsat_bounds(system.equations, windows, found.shown)
    assert ends is not None  # solutions were found
    return Inference(True, found.engine, found.why, tuple(ends[0]), tuple(ends[1]), found.answer, found.errors, found.rhat)


def _open_ended(
    system: System,
    windows: tuple[Window, ...],
    bounds: Bounds,
    unbounded: list[int],
    lows: list[int],
    highs: list[int],
    answer: Answer,
    why: str,
) -> Inference:
    """Put the cells that nothing bounds back in: they have a least value, and no distribution."""
    assert answer.marginals is not None
    marginals = [None if i in unbounded else marginal for i, marginal in enumerate(answer.marginals)]
    tight = bounds.copy()
    for i in set(range(len(lows))) - set(unbounded):
        tight.lows[i], tight.highs[i] = lows[i], highs[i]
    propagate(system.equations, tight)
    if not is_acyclic(len(lows), system.equations, frozenset()):
        # Around loops single sums may not say how small such a cell can be.
        from unround.bounds.search import cpsat_bounds

        searched = cpsat_bounds(system.equations, windows)
        if searched is None:
            return Inference(False, "cp-sat", "no assignment fits")
        for i in unbounded:
            tight.lows[i] = searched[0][i]
    ends = tuple(None if i in unbounded else high for i, high in enumerate(tight.highs))
    return Inference(True, "tree", why, tuple(tight.lows), ends, Answer(None, tuple(marginals), ()))


def _by_brute(system: System, prior: Prior | None, top: int) -> Inference:
    from unround.engines.brute import answer

    found = answer(system, prior, top)
    if found is None:
        return Inference(False, "brute", "no assignment fits")
    assert found.marginals is not None
    ends = [support_of(marginal) for marginal in found.marginals if marginal is not None]
    return _answered(found, ends, "brute", "every assignment was tried, in exact fractions")


def _tight(windows: tuple[Window, ...], bounds: Bounds) -> tuple[Window, ...]:
    """Cut windows to bounds."""
    return tuple(
        Window(low, None if high >= UNBOUNDED else high, None, window.certain)
        if window.weights is None
        else Window(low, high, weights_within(window, low, high), window.certain, window.holes)
        for window, low, high in zip(windows, bounds.lows, bounds.highs, strict=True)
    )


def _by_listing(
    system: System,
    windows: tuple[Window, ...],
    bounds: Bounds,
    engine: str,
    reason: str,
    top: int,
    rows: tuple[Row, ...] = (),
) -> Inference:
    """Answer by listing solutions, or by bounds alone if they are too many."""
    from unround.bounds.search import cpsat_bounds, cpsat_solutions, z3_solutions
    from unround.engines.answer import weigh

    equations = system.equations
    tight = _tight(windows, bounds)
    name = "cp-sat" if engine == "auto" else engine
    if all(window.high is not None for window in tight):
        listed = (z3_solutions if engine == "z3" else cpsat_solutions)(equations, tight, MOST_LISTED, rows=rows)
        if listed is not None:
            if not len(listed):
                return Inference(False, name, "no assignment fits")
            ends = list(zip(listed.min(axis=0).tolist(), listed.max(axis=0).tolist(), strict=True))
            return _answered(weigh(listed, tight, top), ends, name, f"{reason}; all solutions could be listed")
    if engine == "z3":
        raise InputError(f"there are more than {MOST_LISTED:,} solutions, too many for z3. Use --engine auto.")
    found = cpsat_bounds(equations, tight, rows=rows)
    if found is None:
        return Inference(False, name, "no assignment fits")
    why = f"{reason}; there are over {MOST_LISTED:,} solutions, so probabilities are not available"
    return Inference(True, name, why, tuple(found[0]), tuple(found[1]))


def _answered(answer: Answer, ends: list[tuple[int, int]], engine: str, why: str) -> Inference:
    return Inference(True, engine, why, tuple([low for low, _ in ends]), tuple([high for _, high in ends]), answer)
