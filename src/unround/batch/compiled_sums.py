"""The sums of a whole release, compiled: like the plan of one system, but for any sums, with loops or without.

Sums that would close a loop are left out of the forest that carries probabilities; bounds and proofs use all of them.
"""

from __future__ import annotations

from unround.batch.types import CompiledSums
from unround.errors import InternalError
from unround.infer.bounds import Equations
from unround.infer.plan import Crossing, Draft, Drawing, crossings_of, draw, rooted


def compile_sums(
    columns: int, equations: Equations, fixed: frozenset[int], splits: tuple[Crossing, ...] = ()
) -> CompiledSums:
    """Compile the structure that all areas share.

    Parameters
    ----------
    columns : int
        How many cells an area has.
    equations : tuple
        The sums, as (total, parts) in positions of columns.
    fixed : frozenset of int
        Columns published exactly. They close no loop, because each link gets its own copy of them.
    splits : tuple
        Totals with their two parts that are to be one node even if that opens no loop. Those that are not a link of the
        forest, or share a cell with another such node, are ignored.

    Notes
    -----
    Splits (total = men + women) that run in parallel through other sums become nodes first; then sums become links, in this
    order while they close no loop: parallel ones that link pairs, those with exact totals, those with few parts.
    A sum that only repeats another with its parts in a different order is not used twice.

    Examples
    --------
    >>> loop = ((0, (1, 2)), (3, (1, 2)), (0, (4, 5)))
    >>> compiled = compile_sums(6, loop, frozenset())
    >>> compiled.links_of, compiled.unused
    (((0,), (2,)), (1,))
    """
    found = _forest(draw(columns, equations, fixed, ()), columns, equations, fixed)
    crossings: tuple[Crossing, ...] = ()
    if found.unused:
        crossings = crossings_of(equations)
        if crossings:
            found = _forest(draw(columns, equations, fixed, crossings), columns, equations, fixed)
    more = _without_overlap(splits, crossings, found, fixed)
    if not more:
        return found
    # Three nodes that one link joins become one node: that closes no loop.
    return _forest(draw(columns, equations, fixed, (*crossings, *more)), columns, equations, fixed)


def _without_overlap(
    splits: tuple[Crossing, ...], crossings: tuple[Crossing, ...], compiled: CompiledSums, fixed: frozenset[int]
) -> list[Crossing]:
    """Return the splits that can become nodes in addition to the crossings."""
    taken = {cell for crossing in crossings for cell in crossing} | fixed
    linked = {e for equations in compiled.links_of if len(equations) == 1 for e in equations}
    used = {(total, frozenset(parts)) for e, (total, parts) in enumerate(compiled.equations) if e in linked}
    found = []
    for total, first, second in splits:
        if taken.isdisjoint((total, first, second)) and (total, frozenset((first, second))) in used:
            found.append((total, first, second))
            taken |= {total, first, second}
    return found


def _forest(drawing: Drawing, columns: int, equations: Equations, fixed: frozenset[int]) -> CompiledSums:
    """Keep links that close no loop, in order of preference (Kruskal's algorithm)."""

    def preference(i: int) -> tuple[bool, bool, int, int]:
        link = drawing.links[i]
        total = equations[link.equations[0]][0]
        return len(link.equations) == 1, total not in fixed, len(link.ends), i

    above = list(range(len(drawing.nodes)))
    keep: list[int] = []
    unused = list(drawing.repeats)
    for i in sorted(range(len(drawing.links)), key=preference):
        link = drawing.links[i]
        if _joined(link, above):
            keep.append(i)
        else:
            unused += link.equations
    hung = rooted(drawing.nodes, [drawing.links[i] for i in sorted(keep)], drawing.home)
    if hung is None:
        raise InternalError("links that were chosen to form no loop form one.")
    plan, links_of = hung
    return CompiledSums(columns, equations, plan, tuple(sorted(unused)), links_of)


def _joined(link: Draft, above: list[int]) -> bool:
    """Join the pieces that a link connects, unless two of its ends are in the same piece already."""
    tops = [_top(end.node, above) for end in link.ends]
    if len(set(tops)) < len(tops):
        return False
    for top in tops[1:]:
        above[top] = tops[0]
    return True


def _top(node: int, above: list[int]) -> int:
    """Return the representative of a piece (union-find, with path halving)."""
    while above[node] != node:
        above[node] = above[above[node]]
        node = above[node]
    return node
