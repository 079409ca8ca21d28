"""Rates in probabilities: a universe and the part of it that a rate counts become one node of the forest.

With a cell for the rest, universe = part + rest, the state of such a node is a pair of counts, as for men and women; sums
that run through universes and parts alike become one link between pairs. The rate then rules out states of its node,
exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unround.bounds.tighten import OFF, BlockRows
from unround.engines.messages import BOX, LOCAL, MODE, PAIRED, Here, box_at
from unround.evidence.block import CellBounds, Ints, PriorWeights, Windows
from unround.evidence.cells import EvidenceBlock
from unround.evidence.convolution import scale
from unround.jit import inner
from unround.mechanisms.base import BoolArray
from unround.sums.compiled import COPY, CompiledSums, compile_sums
from unround.sums.forest import Equations

Longs = NDArray[np.int64]

Rate = tuple[int, int, int]
"""A figure, and the cells of its universe and of the part of it that it counts."""


class RateInput(NamedTuple):
    """The kernel's input: for every node its rate (−1: none), and whether the first of its two counts is the part.

    A state is possible if `least_total` × universe + `least_part` × part, and the same with `most`, are at most 0; these are
    areas × rates.
    """

    node: Longs
    is_first: BoolArray
    least_total: Longs
    least_part: Longs
    most_total: Longs
    most_part: Longs


def no_rates(nodes: int) -> RateInput:
    """Return the input where there is no rate."""
    nothing = np.zeros((1, 0), dtype=np.int64)
    return RateInput(np.full(nodes, -1, dtype=np.int64), np.zeros(nodes, dtype=np.bool_), *[nothing] * 4)


@inner
def weigh_rates(here: Here, rates: RateInput) -> bool:
    """Rule out the states of nodes that their rates do; return False where one has no state left."""
    forest, buffers, arena, area = here.forest, here.buffers, here.arena, here.row
    for n in range(len(forest.nodes)):
        k = rates.node[n]
        if k < 0 or buffers.nodes[n, MODE] != PAIRED or forest.nodes[n, COPY]:
            continue
        box, at = box_at(buffers.nodes, n, BOX), buffers.nodes[n, LOCAL]
        for r in range(box[2]):
            for c in range(box[3]):
                first, second = box[0] + r, box[1] + c
                total, part = first + second, first if rates.is_first[n] else second
                least = rates.least_total[area, k] * total + rates.least_part[area, k] * part
                most = rates.most_total[area, k] * total + rates.most_part[area, k] * part
                if least > 0 or most > 0:
                    arena[at + r * box[3] + c] = 0.0
        if scale(arena, at, box[2] * box[3]) == 0.0:
            return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class RatePairs:
    """A forest of universes and parts, compiled once.

    - `cells`: The cells of the whole structure that it is about; after these come the rests, a rate each.
    - `compiled`: The sums between them.
    - `sums`: Which sums of the whole structure these are; after these come universe = part + rest, a rate each.
    - `figures`: The rates.
    - `splits`: For every rate its universe, its part and its rest, as positions here.
    """

    cells: Longs
    compiled: CompiledSums
    sums: Longs
    figures: tuple[int, ...]
    splits: tuple[tuple[int, int, int], ...]

    @property
    def parts(self) -> Longs:
        """The parts that rates count, as positions here."""
        return np.array([part for _, part, _ in self.splits], dtype=np.int64)

    def input(self, rows: BlockRows) -> RateInput:
        """Return what rates say in a block; `rows` are those of all figures, of each rate the least and then the most."""
        node = np.full(len(self.compiled.plan.nodes), -1, dtype=np.int64)
        is_first = np.zeros(node.size, dtype=np.bool_)
        for n, entry in enumerate(self.compiled.plan.nodes):
            for k, (total, part, rest) in enumerate(self.splits):
                if not entry.copy and entry.is_pair and entry.cells[0] == total and set(entry.cells[1:]) == {part, rest}:
                    node[n], is_first[n] = k, entry.cells[1] == part
        factors = np.where(np.repeat(rows.limits, np.diff(rows.first), axis=1) == OFF, 0, rows.factors)
        places = [rows.first[np.flatnonzero(rows.figures == f)] for f in self.figures]
        least, most = [int(two[0]) for two in places], [int(two[1]) for two in places]
        taken = [factors[:, least], factors[:, [k + 1 for k in least]], factors[:, most], factors[:, [k + 1 for k in most]]]
        return RateInput(node, is_first, *(np.ascontiguousarray(entry) for entry in taken))

    def block(self, block: EvidenceBlock, chosen: BoolArray) -> EvidenceBlock:
        """Return some areas of a block with its cells, and the rests: of these nothing is known but what the others leave.

        All rests weigh the same; what is not in the universe is the rest, everywhere.
        """
        areas, more = len(block.bounds.low), len(self.splits)
        windows = block.windows if block.keyed is None else block.keyed.windows
        nowhere = np.full((areas, more), -1, dtype=np.int64)
        low, high = self._with(block.bounds.low), self._with(block.bounds.high)
        for total, part, rest in self.splits:
            low[:, rest] = np.maximum(low[:, total].astype(np.int64) - high[:, part], 0)
            high[:, rest] = np.maximum(high[:, total].astype(np.int64) - low[:, part], low[:, rest])
        nothing, prior = np.zeros_like(low), None
        if block.prior is not None:
            start = np.concatenate([block.prior.start[:, self.cells], nowhere], axis=1)
            prior = PriorWeights(self._with(block.prior.low), start, block.prior.weights)
        assert block.active is not None
        return EvidenceBlock(
            self.compiled,
            Windows(
                self._with(windows.low),
                self._with(windows.high),
                np.concatenate([windows.start[:, self.cells], nowhere], axis=1),
                windows.weights,
                np.concatenate([windows.certain[self.cells], np.ones(more, dtype=np.bool_)]),
            ),
            CellBounds(low, high, nothing, nothing, block.bounds.feasible & chosen),
            prior,
            np.concatenate([block.active[:, self.sums], np.ones((areas, more), dtype=np.bool_)], axis=1),
        )

    def _with(self, array: Ints) -> Ints:
        """Return the columns of its cells, and zeros for the rests."""
        return np.concatenate([array[:, self.cells], np.zeros((len(array), len(self.splits)), dtype=array.dtype)], axis=1)


def rate_pairs(equations: Equations, rates: Sequence[Rate]) -> tuple[RatePairs, ...]:
    """Make universes and parts of rates into nodes, in as many forests as it takes.

    Notes
    -----
    Only sums among universes and parts are used. So a rate is used only if its part stands in no other sum: what those say
    would be lost. A cell belongs to one node of a forest: of several rates with the same universe, the second goes into
    another forest.
    """
    left, forests = _closed(equations, rates), list[RatePairs]()
    while left:
        chosen = _disjoint(left)
        while chosen:
            forest = _compiled(equations, chosen)
            there = {frozenset(node.cells) for node in forest.compiled.plan.nodes if node.is_pair and not node.copy}
            kept = [rate for rate, split in zip(chosen, forest.splits, strict=True) if frozenset(split) in there]
            if len(kept) == len(chosen):
                forests.append(forest)
                break
            chosen = kept
        if not chosen:
            break
        left = [rate for rate in left if rate not in chosen]
    return tuple(forests)


def _closed(equations: Equations, rates: Sequence[Rate]) -> list[Rate]:
    """Return the rates whose parts stand in no sum but those among universes and parts of such rates."""
    left = list(rates)
    while True:
        cells = {cell for _, total, part in left for cell in (total, part)}
        outside = {c for total, parts in equations if not cells.issuperset((total, *parts)) for c in (total, *parts)}
        kept = [rate for rate in left if rate[2] not in outside]
        if len(kept) == len(left):
            return kept
        left = kept


def _compiled(equations: Equations, rates: Sequence[Rate]) -> RatePairs:
    cells = sorted({cell for _, total, part in rates for cell in (total, part)})
    at = {cell: i for i, cell in enumerate(cells)}
    splits = tuple((at[total], at[part], len(cells) + k) for k, (_, total, part) in enumerate(rates))
    inside = [e for e, (total, parts) in enumerate(equations) if total in at and all(part in at for part in parts)]
    sums = [(at[equations[e][0]], tuple(at[part] for part in equations[e][1])) for e in inside]
    sums += [(total, (part, rest)) for total, part, rest in splits]
    compiled = compile_sums(len(cells) + len(rates), tuple(sums), frozenset(), splits)
    figures = tuple(figure for figure, _, _ in rates)
    return RatePairs(np.array(cells, dtype=np.int64), compiled, np.array(inside, dtype=np.int64), figures, splits)


def _disjoint(rates: Sequence[Rate]) -> list[Rate]:
    """Choose rates that share no cell, the first of those that do."""
    chosen: list[Rate] = []
    taken: set[int] = set()
    for rate in rates:
        _, total, part = rate
        if total != part and taken.isdisjoint((total, part)):
            chosen.append(rate)
            taken |= {total, part}
    return chosen
