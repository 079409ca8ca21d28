"""The smallest clash: which published cells and which sums, or figures, cannot hold together.

Where a system has no solution, somebody has to find out why: a sum that does not hold, a total that is not exact, a
wrong base. The fewest cells and sums that already contradict each other are the place to look.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations

from unround.bounds.propagation import Bounds, propagate
from unround.bounds.search import cpsat_witness, single_worker
from unround.errors import InputError, InternalError
from unround.mechanisms import Window
from unround.sums.forest import Equations, is_acyclic, neighbours
from unround.sums.multiway import pieces
from unround.system import PublishedFigure, Sum, System

EFFORT = 1_000_000
"""Cells and sums looked at, counted once a question, after which the search for a smaller clash ends: seconds."""

SEARCH_COST = 5
"""How many times more a question costs if propagation cannot answer it and CP-SAT has to."""

LONGEST = 3.0
"""How long CP-SAT may take for one guess, in its own measure of work; about seconds, but the same everywhere."""

FREE = Window(0, None, None)
"""What is left of a cell that is not in a clash: any count."""

Members = frozenset[int]
"""Cells by their position, sums by the number of cells plus their position, and figures after all of these."""


class _Exhausted(Exception):  # noqa: N818 - the search ends as agreed; nothing went wrong
    """The effort agreed on is spent."""


@dataclass(frozen=True, slots=True)
class Clash:
    """Published cells and sums that cannot hold together, though any of them left out the others could.

    - `cells`: The cells, in the system's order. All others may have any count.
    - `sums`: The sums, in the system's order.
    - `minimum`: Whether no clash of the system has fewer cells and sums; False where the search for one was given up, and
      where figures are part of it: they are doubted before sums and cells, and nothing that is named could be left out.
    - `figures`: The figures, in the system's order; none where cells and sums clash by themselves.
    """

    cells: tuple[str, ...]
    sums: tuple[Sum, ...]
    minimum: bool = True
    figures: tuple[PublishedFigure, ...] = ()


def smallest_clash(system: System, effort: int = EFFORT) -> Clash:
    """Find the fewest published cells and sums of a system that cannot hold together.

    Of equally small ones, a clash within one sum goes before others, and early cells before late ones; the same
    system always gives the same answer.

    Raises `InputError` if the system has a solution, so that nothing clashes.

    Examples
    --------
    >>> from unround.equations import parse
    >>> smallest_clash(parse("10! = 50 + 50 + 50")).cells
    ('total', 'part1')

    Notes
    -----
    A clash within one sum is read off its bounds. To see whether there is a smaller one that spans several, and
    to find it, smallest sets are guessed that touch every known correction (a set of cells and sums whose removal
    lets the rest hold): one that holds leads to another correction, and the first that does not hold is the
    smallest.

    References
    ----------
    A. Ignatiev, A. Previti, M. Liffiton, J. Marques-Silva: Smallest MUS extraction with minimal hitting set
    dualization. CP 2015.
    """
    oracle = _Oracle(system)
    if system.figures:
        everything = oracle.members(range(len(system.sums)))
        if oracle.holds(everything):
            return _with_figures(system, oracle)
    best = min(filter(None, map(oracle.within_sum, range(len(system.sums)))), key=_rank, default=None)
    if best is not None and len(best) <= oracle.least_across():
        return _clash(system, best, minimum=True)
    minimum = True
    for _, component in pieces(len(system.cells), system.equations):
        members = oracle.members(component)
        if oracle.holds(members):
            continue
        if best is None:
            best = _irreducible(oracle, members)
        oracle.effort = effort
        best, proved = _smaller(oracle, members, best)
        oracle.effort = math.inf
        minimum = minimum and proved
    if best is None:
        raise InputError("the system has a solution: it is consistent.")
    return _clash(system, best, minimum)


def _with_figures(system: System, oracle: _Oracle) -> Clash:
    """Find a clash that figures are part of: as few figures as go with everything else, then sums, then cells."""
    cells, sums = len(system.cells), range(len(system.cells), len(system.cells) + len(system.sums))
    figures = range(sums.stop, sums.stop + len(system.figures))
    published = frozenset(cell for cell in range(cells) if oracle.says[cell])
    if oracle.holds(published | frozenset(sums) | frozenset(figures)):
        raise InputError("the system has a solution: it is consistent.")
    clashing = frozenset(_needed(oracle.holds, published | frozenset(sums), list(figures)))
    if not oracle.holds(published | clashing):
        needed: list[int] = []
    else:
        needed = _needed(oracle.holds, published | clashing, list(sums))
    clashing |= frozenset(needed)
    if oracle.holds(clashing):
        clashing |= frozenset(_needed(oracle.holds, clashing, sorted(published)))
    return _clash(system, clashing, minimum=False)


def _clash(system: System, members: Members, minimum: bool) -> Clash:
    cells, end = len(system.cells), len(system.cells) + len(system.sums)
    return Clash(
        tuple(system.cells[m].name for m in sorted(members) if m < cells),
        tuple(system.sums[m - cells] for m in sorted(members) if cells <= m < end),
        minimum,
        tuple(system.figures[m - end] for m in sorted(members) if m >= end),
    )


def _rank(members: Members) -> tuple[int, list[int]]:
    return len(members), sorted(members)


class _Oracle:
    """Answers whether some cells and sums can hold together, until the effort that it is allowed is spent."""

    def __init__(self, system: System) -> None:
        self.cells = len(system.cells)
        self.equations = system.equations
        self.windows = system.windows
        self.rows = system.rows
        # A cell that may have any count contradicts nothing.
        self.says = [window.low > 0 or window.high is not None for window in system.windows]
        _, self.sums_of = neighbours(self.equations)
        self.known: dict[Members, bool] = {}
        self.effort = math.inf

    def members(self, sums: Sequence[int]) -> Members:
        """Return these sums and every cell of theirs that says something."""
        used = {cell for e in sums for cell in (self.equations[e][0], *self.equations[e][1])}
        return frozenset(cell for cell in used if self.says[cell]) | {self.cells + e for e in sums}

    def holds(self, members: Members) -> bool:
        """Return whether these sums and figures have a solution, with these cells as published and any other counts."""
        if members not in self.known:
            self.known[members] = self._holds(members)
        return self.known[members]

    def _holds(self, members: Members) -> bool:
        end = self.cells + len(self.equations)
        sums = [self.equations[m - self.cells] for m in sorted(members) if self.cells <= m < end]
        said = [row for row in self.rows if end + row.figure in members]
        used = sorted({c for total, parts in sums for c in (total, *parts)} | {c for row in said for c in row.cells})
        at = {cell: i for i, cell in enumerate(used)}
        equations: Equations = tuple((at[total], tuple(at[part] for part in parts)) for total, parts in sums)
        rows = tuple(row._replace(terms=tuple((at[cell], factor) for cell, factor in row.terms)) for row in said)
        domains = [self.windows[cell] if cell in members else FREE for cell in used]
        cost = len(used) + len(sums)
        self.spend(cost)
        if not propagate(equations, Bounds.of(domains), None, rows):
            return False
        single = frozenset(i for i, window in enumerate(domains) if window.low == window.high)
        if not rows and not any(window.holes for window in domains) and is_acyclic(len(domains), equations, single):
            return True  # without loops and holes, bounds that propagation leaves are attained
        self.spend(SEARCH_COST * cost)
        return cpsat_witness(equations, domains, rows) is not None

    def spend(self, effort: int) -> None:
        """Take this much from the effort that is left, and end the search where nothing is."""
        self.effort -= effort
        if self.effort < 0:
            raise _Exhausted

    def least_across(self) -> int:
        """Return a number of members below which no clash spans several sums.

        A cell can clash with two sums if they share two others, as in a = b and a = b + 5. Otherwise there are at
        least two cells, one too large and one too small, or three sums.
        """
        together = [pair for sums in self.sums_of.values() for pair in combinations(sums, 2)]
        return 3 if len(set(together)) < len(together) else 4

    def within_sum(self, e: int) -> Members | None:
        """Return the smallest clash within one sum, or None.

        Either the total is less than some parts add up to, the largest of which then suffice; or it is out of reach
        for all parts together, and each is needed, since one that could have any count could fill the gap.
        """
        total, parts = self.equations[e]
        high = self.windows[total].high
        if high is not None:
            largest = sorted(parts, key=lambda part: (-self.windows[part].low, part))
            for k, least in enumerate(accumulate(self.windows[part].low for part in largest), 1):
                if least > high:
                    return frozenset({total, *largest[:k], self.cells + e})
        whole = self.members([e])
        return None if self.holds(whole) else whole


def _irreducible(oracle: _Oracle, members: Members) -> Members:
    """Return a clash of which every member is needed: first as few sums as go with all cells, then cells."""
    cells = frozenset(m for m in members if m < oracle.cells)
    sums = _needed(oracle.holds, cells, sorted(members - cells))
    sums_only = frozenset(sums)
    involved = oracle.members([m - oracle.cells for m in sums]) - sums_only
    return sums_only | frozenset(_needed(oracle.holds, sums_only, sorted(involved)))


def _needed(holds: Callable[[Members], bool], given: Members, items: list[int]) -> list[int]:
    """Return which items contradict the given members, none of them in vain; earlier ones are preferred.

    This is QuickXplain (U. Junker, AAAI 2004): it needs about 2·k·log(n/k) questions for k of n items.
    """

    def explain(base: Members, added: bool, rest: list[int]) -> list[int]:
        if added and not holds(base):
            return []
        if len(rest) == 1:
            return rest
        first, second = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        late = explain(base | frozenset(first), True, second)
        early = explain(base | frozenset(late), bool(late), first)
        return early + late

    return explain(given, True, items)


def _smaller(oracle: _Oracle, members: Members, best: Members) -> tuple[Members, bool]:
    """Look for a smaller clash across sums than the best known; say whether what is returned is as small as any."""
    if sum(m >= oracle.cells for m in members) < 2:
        return best, True  # what clashes within one sum is known
    corrections: list[Members] = []
    try:
        while True:
            guess = _guess(oracle, members, corrections, len(best) - 1)
            if guess is None:
                return best, True
            if not oracle.holds(guess):
                return guess, True
            # What other corrections name already is let in first, so that corrections overlap little and each
            # demands another member.
            named = frozenset().union(*corrections) - guess
            order = [*sorted(named), *sorted(members - named - guess)]
            corrections.append(_correction(oracle.holds, guess, order))
    except _Exhausted:
        return best, False


def _correction(holds: Callable[[Members], bool], kept: Members, rest: list[int]) -> Members:
    """Let in as many members as hold together with those kept, in this order, and return the ones left out."""
    out = []
    while not holds(kept | frozenset(rest)):
        # The longest beginning that still holds, by halving: `low` members do, `high` do not.
        low, high = 0, len(rest)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if holds(kept | frozenset(rest[:middle])) else (low, middle)
        kept |= frozenset(rest[:low])
        out.append(rest[low])
        rest = rest[low + 1 :]
    return frozenset(out)


def _guess(oracle: _Oracle, members: Members, corrections: Iterable[Members], most: int) -> Members | None:
    """Return the smallest set that touches every correction and could be a clash across sums, or None.

    It has at most `most` members and at least two sums, since clashes within one sum are known. Members without
    effect are ruled out: a cell in none of the sums; a sum whose total appears nowhere else, or none of whose parts
    does. Of equally small sets the one that comes first is returned.
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    order = sorted(members)
    chosen = {m: model.new_bool_var("") for m in order}
    for m in order:
        if m < oracle.cells:
            model.add_bool_or([~chosen[m], *(chosen[oracle.cells + e] for e in oracle.sums_of[m])])
            continue
        total, parts = oracle.equations[m - oracle.cells]
        for side in ((total,), parts):
            near = {oracle.cells + e for cell in side for e in oracle.sums_of[cell]} - {m}
            near.update(cell for cell in side if cell in members)
            model.add_bool_or([~chosen[m], *(chosen[neighbour] for neighbour in sorted(near))])
    for correction in corrections:
        model.add_bool_or([chosen[m] for m in sorted(correction)])
    size = cp_model.LinearExpr.sum(list(chosen.values()))
    model.add(size <= most)
    model.add(cp_model.LinearExpr.sum([chosen[m] for m in order if m >= oracle.cells]) >= 2)
    places = cp_model.LinearExpr.weighted_sum(list(chosen.values()), range(len(order)))
    model.minimize(size * len(order) ** 2 + places)
    solver = single_worker()
    solver.parameters.linearization_level = 2  # most proofs here are by counting, which needs the linear program
    solver.parameters.max_deterministic_time = LONGEST
    oracle.spend(SEARCH_COST * len(order))
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    if status == cp_model.OPTIMAL:
        return frozenset(m for m in order if solver.boolean_value(chosen[m]))
    if solver.response_proto.deterministic_time < LONGEST:
        raise InternalError(f"CP-SAT stopped without an answer ({solver.status_name(status)}).")
    raise _Exhausted
