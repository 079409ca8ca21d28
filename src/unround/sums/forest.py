"""The plan: how messages travel through a system. It depends on the sums alone, not on the numbers, and is made once.

A system whose cells and sums form no loop is a forest: each cell is a node, each sum a link between nodes. Total = men +
women on every cell of a tree closes loops, but if a node's state is the pair (men, women) it is a forest again: the sums for
total, men and women of the same cells become one link. Cells that can have one value only cannot carry a loop, so each
link gets its own copy of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

Equations = tuple[tuple[int, tuple[int, ...]], ...]
"""Sums, as positions of cells: a total, and the parts that add up to it."""

TOTAL, FIRST, SECOND = 0, 1, 2
"""The layers of a pair node: the total, and its two parts. A node of one cell has only layer 0."""

PAIR = -1
"""Stands for a layer where a link joins both parts at once."""

Crossing = tuple[int, int, int]
"""A total and the two parts that every such total is split into: the three cells of a pair node."""


@dataclass(frozen=True, slots=True)
class Node:
    """One cell, or the three cells of a total with its two parts. A copy carries no weight of its own."""

    cells: tuple[int, ...]
    copy: bool = False

    @property
    def is_pair(self) -> bool:
        """Whether the state is a pair of counts."""
        return len(self.cells) == 3


@dataclass(frozen=True, slots=True)
class End:
    """Where a link meets a node: in which layer, and with which sign it enters the parent's value.

    A plain end is a node of one cell that enters as it is, as most do: its array needs no conversion. `cell` is the
    cell that the link sees, where it sees only one.
    """

    node: int
    layer: int
    sign: int
    cell: int = -1
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """One sum (or three parallel ones), seen from the root: parent = Σ sign × child."""

    parent: End
    children: tuple[End, ...]

    @property
    def is_pair(self) -> bool:
        """Whether it links pairs of counts."""
        return self.parent.layer == PAIR


@dataclass(frozen=True, slots=True)
class Plan:
    """How messages travel.

    - `nodes`: What messages travel between.
    - `links`: Parents before children.
    - `roots`: One node in every connected piece.
    - `below`: For every node, the links of which it is the parent.
    - `home`: For every cell, its node and its layer there.
    - `has_pairs`: Whether some node's state is a pair of counts.
    """

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    roots: tuple[int, ...]
    below: tuple[tuple[int, ...], ...]
    home: tuple[tuple[int, int], ...]
    has_pairs: bool


@lru_cache(maxsize=256)
def plan_for(cells: int, equations: Equations, fixed: frozenset[int]) -> Plan | None:
    """Return the plan of an acyclic system, or of one that pairs of counts make acyclic; None for any other."""
    plain = _forest(cells, equations, fixed, ())
    if plain is not None:
        return plain
    crossings = crossings_of(equations)
    return _forest(cells, equations, fixed, crossings) if crossings else None


def is_acyclic(cells: int, equations: Equations, fixed: frozenset[int]) -> bool:
    """Return whether sums close no loop, cells that have one value left aside."""
    return _forest(cells, equations, fixed, ()) is not None


@dataclass(frozen=True, slots=True)
class LinkDraft:
    """A link before it is known which of its ends is the parent: Σ sign × end = 0; and the equations it stands for."""

    ends: list[End]
    equations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """Nodes and links before they hang on roots. Sums that only repeat another have no link: `repeats` lists them."""

    nodes: list[Node]
    links: list[LinkDraft]
    home: tuple[tuple[int, int], ...]
    repeats: tuple[int, ...]


def _forest(cells: int, equations: Equations, fixed: frozenset[int], crossings: tuple[Crossing, ...]) -> Plan | None:
    """Build nodes and links, and root them; None if they form a loop."""
    drawing = draw(cells, equations, fixed, crossings)
    hung = rooted(drawing.nodes, drawing.links, drawing.home)
    return None if hung is None else hung[0]


def draw(cells: int, equations: Equations, fixed: frozenset[int], crossings: tuple[Crossing, ...]) -> Drawing:
    """Turn cells into nodes and sums into links, whether or not they form a loop."""
    crossed = {cell for crossing in crossings for cell in crossing}
    nodes = [Node(crossing) for crossing in crossings]
    nodes += [Node((cell,)) for cell in range(cells) if cell not in crossed]
    home: list[tuple[int, int]] = [(0, 0)] * cells
    for n, node in enumerate(nodes):
        for layer, cell in enumerate(node.cells):
            home[cell] = (n, layer)
    first = _unlike(equations)
    splits = {(total, frozenset(parts)) for total, *parts in crossings}
    links: list[LinkDraft] = []
    for key, e in first.items():
        if key not in splits:
            total, parts = equations[e]
            links.append(LinkDraft([End(*home[total], 1), *(End(*home[part], -1) for part in parts)], (e,)))
    if crossings:
        links = list(_merged(links, nodes))
    for link in links:
        for k, end in enumerate(link.ends):
            cells_of_node = nodes[end.node].cells
            met = cells_of_node[1:] if end.layer == PAIR else (cells_of_node[end.layer],)
            if fixed.issuperset(met):
                nodes.append(Node(cells_of_node if end.layer == PAIR else met, copy=True))
                link.ends[k] = End(len(nodes) - 1, PAIR if end.layer == PAIR else 0, end.sign)
    kept = set(first.values())
    return Drawing(nodes, links, tuple(home), tuple(e for e in range(len(equations)) if e not in kept))


def _unlike(equations: Equations) -> dict[tuple[int, frozenset[int]], int]:
    """Return the sums that do not only repeat another with its parts in a different order: each by its first place."""
    first: dict[tuple[int, frozenset[int]], int] = {}
    for e, (total, parts) in enumerate(equations):
        first.setdefault((total, frozenset(parts)), e)
    return first


def _merged(links: list[LinkDraft], nodes: list[Node]) -> Iterator[LinkDraft]:
    """Join parallel sums: the same pair nodes in the same roles, in at least two of the three layers.

    Any two of total, first and second imply the third, so that one link between pairs stands for all of them.
    """
    groups: dict[tuple[int, frozenset[int]], list[LinkDraft]] = {}
    for link in links:
        layers = {end.layer for end in link.ends}
        if len(layers) == 1 and all(nodes[end.node].is_pair for end in link.ends):
            groups.setdefault((link.ends[0].node, frozenset(end.node for end in link.ends[1:])), []).append(link)
        else:
            yield link
    for group in groups.values():
        if len(group) > 1:
            ends = [End(end.node, PAIR, end.sign) for end in group[0].ends]
            yield LinkDraft(ends, tuple(e for link in group for e in link.equations))
        else:
            yield group[0]


def rooted(
    nodes: list[Node], links: Sequence[LinkDraft], home: tuple[tuple[int, int], ...]
) -> tuple[Plan, tuple[tuple[int, ...], ...]] | None:
    """Hang every connected piece on one node; None if there is a loop.

    Returns the plan, and for every link of the plan the equations that it stands for.
    """
    meeting: list[list[int]] = [[] for _ in nodes]
    parts = [0] * len(nodes)
    for i, link in enumerate(links):
        for end in link.ends:
            meeting[end.node].append(i)
            parts[end.node] += end.sign < 0
    # A total that is no part of anything makes the best root: the messages to it then only add.
    by_preference = sorted(range(len(nodes)), key=lambda n: (parts[n], -len(meeting[n]), n))
    reached = [False] * len(nodes)
    used = [False] * len(links)
    hung: list[Link] = []
    standing_for: list[tuple[int, ...]] = []
    roots = []
    below: list[list[int]] = [[] for _ in nodes]
    for root in by_preference:
        if reached[root]:
            continue
        roots.append(root)
        reached[root] = True
        queue = [root]
        while queue:
            n = queue.pop()
            for i in meeting[n]:
                if used[i]:
                    continue
                used[i] = True
                ends = links[i].ends
                parent = next(end for end in ends if end.node == n)
                others = [end for end in ends if end is not parent]
                if any(reached[end.node] for end in others) or len({end.node for end in others}) < len(others):
                    return None
                # Σ sign × value = 0 over the link, so parent = −(its sign) × Σ of the rest.
                children = tuple(_seen_from_above(end, -parent.sign * end.sign, nodes) for end in others)
                below[n].append(len(hung))
                hung.append(Link(_seen_from_above(parent, 1, nodes), children))
                standing_for.append(links[i].equations)
                for end in others:
                    reached[end.node] = True
                    queue.append(end.node)
    has_pairs = any(node.is_pair for node in nodes)
    return Plan(tuple(nodes), tuple(hung), tuple(roots), tuple(map(tuple, below)), home, has_pairs), tuple(standing_for)


def _seen_from_above(end: End, sign: int, nodes: list[Node]) -> End:
    node = nodes[end.node]
    cell = -1 if end.layer == PAIR else node.cells[end.layer]
    return End(end.node, end.layer, sign, cell, plain=sign > 0 and not node.is_pair)


def crossings_of(equations: Equations) -> tuple[Crossing, ...]:
    """Find the splits (total = men + women, say) that run in parallel through other sums.

    A family of splits grows from any sum of two parts: if two of its cells stand in sums of their own, in the same role,
    and the other cells of those sums are matched one to one by splits too, these belong to the family. Of families that
    share cells the largest is kept.
    """
    _, containing = neighbours(equations)
    families: list[dict[int, Crossing]] = []
    assigned: set[int] = set()
    for seed, (_, parts) in enumerate(equations):
        if len(parts) == 2 and seed not in assigned:
            family = _Family(equations, containing).grow(seed)
            assigned.update(family)
            if len(family) > 1:
                families.append(family)
    chosen: dict[int, Crossing] = {}
    taken: set[int] = set()
    for family in sorted(families, key=len, reverse=True):
        cells = {cell for crossing in family.values() for cell in crossing}
        if not cells & taken:
            taken |= cells
            chosen.update(family)
    return tuple(chosen[e] for e in sorted(chosen))


class _Family:
    """One growing family of parallel splits."""

    def __init__(self, equations: Equations, containing: dict[int, list[int]]) -> None:
        self.equations = equations
        self.containing = containing
        self.members: dict[int, Crossing] = {}
        self.owner: dict[int, tuple[int, int]] = {}
        self.tried: set[tuple[int, int, int, int]] = set()

    def grow(self, seed: int) -> dict[int, Crossing]:
        """Return the family of a seed, by its equations' positions."""
        total, (first, second) = self.equations[seed]
        queue = [seed]
        self._adopt(seed, (total, first, second))
        while queue:
            crossing = self.members[queue.pop()]
            for a, b in ((TOTAL, FIRST), (TOTAL, SECOND), (FIRST, SECOND)):
                for sum_of_first in self.containing[crossing[a]]:
                    for sum_of_other in self.containing[crossing[b]]:
                        if (
                            sum_of_first in self.members
                            or sum_of_other in self.members
                            or (sum_of_first, sum_of_other, a, b) in self.tried
                        ):
                            continue
                        self.tried.add((sum_of_first, sum_of_other, a, b))
                        matched = self._aligned(sum_of_first, sum_of_other, a, b) if sum_of_first != sum_of_other else None
                        for e, member in (matched or {}).items():
                            if e not in self.members:
                                self._adopt(e, member)
                                queue.append(e)
        return self.members

    def _adopt(self, e: int, crossing: Crossing) -> None:
        self.members[e] = crossing
        for layer, cell in enumerate(crossing):
            self.owner[cell] = (e, layer)

    def _aligned(self, sum_of_first: int, sum_of_other: int, a: int, b: int) -> dict[int, Crossing] | None:
        """Match the cells of two sums, total with total and parts with parts, by splits with them in layers a and b."""
        (total, parts), (total2, parts2) = self.equations[sum_of_first], self.equations[sum_of_other]
        if len(parts) != len(parts2):
            return None
        splits: dict[int, Crossing] = {}
        cells: set[int] = set()
        others = set(parts2)
        for cell in (total, *parts):
            match = self._split_of(cell, {total2} if cell == total else others, a, b)
            if match is None or not cells.isdisjoint(match[1]):
                return None
            splits[match[0]] = match[1]
            cells.update(match[1])
            others.discard(match[1][b])
        return splits

    def _split_of(self, cell: int, candidates: set[int], a: int, b: int) -> tuple[int, Crossing] | None:
        """Find the split that has `cell` in layer a and one of the candidates in layer b."""
        if cell in self.owner:
            e, layer = self.owner[cell]
            return (e, self.members[e]) if layer == a and self.members[e][b] in candidates else None
        for e in self.containing[cell]:
            total, parts = self.equations[e]
            if len(parts) != 2:
                continue
            p, q = parts
            for crossing in ((total, p, q), (total, q, p)):
                if crossing[a] == cell and crossing[b] in candidates and not any(c in self.owner for c in crossing):
                    return e, crossing
        return None


@lru_cache(maxsize=256)
def neighbours(equations: Equations, more: tuple[tuple[int, ...], ...] = ()) -> tuple[list[int], dict[int, list[int]]]:
    """Return the equations in an order from neighbour to neighbour, and those that each cell is in.

    `more` are the cells of inequalities, which are numbered after the equations.
    """
    members = [*((total, *parts) for total, parts in equations), *more]
    touching: dict[int, list[int]] = {}
    for e, cells in enumerate(members):
        for cell in cells:
            touching.setdefault(cell, []).append(e)
    order: list[int] = []
    seen = [False] * len(members)
    for start in range(len(members)):
        queue = [] if seen[start] else [start]
        seen[start] = True
        for e in queue:  # grows while it is gone through
            for cell in members[e]:
                for other in touching[cell]:
                    if not seen[other]:
                        seen[other] = True
                        queue.append(other)
        order += queue
    return order, touching
