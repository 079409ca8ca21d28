"""Systems in pieces that no sum or figure connects: each is answered by itself, and the answers are put together."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import islice

from unround.infer.answer import Answer, Inference, Marginal, Prior
from unround.system import System

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
    first = list(range(len(system.cells)))

    def find(cell: int) -> int:
        while first[cell] != cell:
            first[cell] = first[first[cell]]
            cell = first[cell]
        return cell

    inside = set[int]()
    together = [(total, *parts) for total, parts in system.equations]
    together += [tuple(system.index[name] for name in one.figure.counts) for one in system.figures]
    for cells in together:
        inside.update(cells)
        for cell in cells[1:]:
            one, other = sorted((find(cells[0]), find(cell)))
            first[other] = one
    pieces: dict[int, list[int]] = {}
    for cell in range(len(first)):
        pieces.setdefault(find(cell) if cell in inside else -1, []).append(cell)
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
