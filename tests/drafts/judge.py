"""What a reader can work out: the least and the greatest value of every cell, by an integer program."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

Cell = Hashable
FAR = 10_000_000
"""More than any count in a draft."""


@dataclass
class Facts:
    """Everything that is printed: a window of every cell, and linear facts `low ≤ Σ factor · cell ≤ high` between them."""

    windows: dict[Cell, tuple[int, int]] = field(default_factory=dict)
    facts: list[tuple[dict[Cell, int], int, int]] = field(default_factory=list)

    def adds(self, total: Cell, parts: Iterable[Cell]) -> None:
        """State that a total is the sum of its parts."""
        self.facts.append(({total: -1, **dict.fromkeys(parts, 1)}, 0, 0))

    def bounds(self, wanted: Iterable[Cell] | None = None, enough: int = FAR) -> dict[Cell, tuple[int, int]]:
        """Return the least and the greatest value of the wanted cells (all, unless given).

        A cell with solutions at least `enough` apart is not followed further: its bounds are then those of solutions that
        were seen, within the true ones.
        """
        windows = self.propagated()
        wanted = set(self.windows if wanted is None else wanted)
        bounds = {cell: windows[cell] for cell in wanted if windows[cell][0] == windows[cell][1]}
        for cells, facts in self.components(windows):
            if asked := [cell for cell in cells if cell in wanted]:
                bounds |= Program(cells, windows, facts).bounds(asked, enough)
        return bounds

    def propagated(self) -> dict[Cell, tuple[int, int]]:
        """Narrow the windows by one fact at a time, until nothing changes: all that most cells need."""
        windows = dict(self.windows)
        holding: dict[Cell, list[int]] = {}
        for at, (factors, _, _) in enumerate(self.facts):
            for cell in factors:
                holding.setdefault(cell, []).append(at)
        waiting = dict.fromkeys(range(len(self.facts)))
        for _ in range(200_000):
            if not waiting:
                break
            at = next(iter(waiting))
            del waiting[at]
            factors, low, high = self.facts[at]
            least = {cell: min(factor * end for end in windows[cell]) for cell, factor in factors.items()}
            most = {cell: max(factor * end for end in windows[cell]) for cell, factor in factors.items()}
            all_least, all_most = sum(least.values()), sum(most.values())
            for cell, factor in factors.items():
                down, up = low - (all_most - most[cell]), high - (all_least - least[cell])
                if factor < 0:
                    down, up = up, down
                narrowed = max(windows[cell][0], math.ceil(down / factor)), min(windows[cell][1], math.floor(up / factor))
                if narrowed[0] > narrowed[1]:
                    raise ValueError(f"nothing fits {cell}: {narrowed}")
                if narrowed != windows[cell]:
                    windows[cell] = narrowed
                    waiting.update(dict.fromkeys(holding[cell]))
        return windows

    def components(self, windows: Mapping[Cell, tuple[int, int]]) -> Iterable[tuple[list[Cell], list[int]]]:
        """Yield the cells that are still open, by what connects them, each with the facts about them."""
        leader: dict[Cell, Cell] = {cell: cell for cell, (low, high) in windows.items() if low < high}

        def head(cell: Cell) -> Cell:
            while leader[cell] != cell:
                leader[cell] = leader[leader[cell]]
                cell = leader[cell]
            return cell

        about: dict[Cell, list[int]] = {}
        for factors, _, _ in self.facts:
            open_cells = [cell for cell in factors if cell in leader]
            for cell in open_cells[1:]:
                leader[head(cell)] = head(open_cells[0])
        for at, (factors, _, _) in enumerate(self.facts):
            if open_cells := [cell for cell in factors if cell in leader]:
                about.setdefault(head(open_cells[0]), []).append(at)
        groups: dict[Cell, list[Cell]] = {}
        for cell in leader:
            groups.setdefault(head(cell), []).append(cell)
        for lead, cells in groups.items():
            yield cells, [self._reduced(at, windows) for at in about.get(lead, ())]

    def _reduced(self, at: int, windows: Mapping[Cell, tuple[int, int]]) -> tuple[dict[Cell, int], int, int]:
        factors, low, high = self.facts[at]
        known = sum(factor * windows[cell][0] for cell, factor in factors.items() if windows[cell][0] == windows[cell][1])
        still = {cell: factor for cell, factor in factors.items() if windows[cell][0] < windows[cell][1]}
        return still, low - known, high - known


class Program:
    """The integer program of some cells that are connected."""

    def __init__(self, cells: list[Cell], windows: Mapping[Cell, tuple[int, int]], facts: list) -> None:
        self.cells = cells
        self.place = {cell: at for at, cell in enumerate(cells)}
        self.low = np.array([windows[cell][0] for cell in cells], dtype=float)
        self.high = np.array([windows[cell][1] for cell in cells], dtype=float)
        rows = [
            (row, self.place[cell], factor) for row, (factors, _, _) in enumerate(facts) for cell, factor in factors.items()
        ]
        self.rules = []
        if rows:
            row, column, factor = zip(*rows, strict=True)
            matrix = csr_array((np.array(factor, dtype=float), (row, column)), shape=(len(facts), len(cells)))
            self.rules = [LinearConstraint(matrix, [fact[1] for fact in facts], [fact[2] for fact in facts])]

    def solve(self, weights: np.ndarray) -> np.ndarray:
        answer = milp(
            weights, constraints=self.rules, bounds=Bounds(self.low, self.high), integrality=np.ones(len(self.cells))
        )
        if answer.x is None:
            raise ValueError(f"nothing fits: {answer.message}")
        return np.rint(answer.x).astype(int)

    def bounds(self, asked: list[Cell], enough: int) -> dict[Cell, tuple[int, int]]:
        rng = np.random.default_rng(0)
        seen = [self.solve(sign * weights) for weights in rng.normal(size=(3, len(self.cells))) for sign in (1, -1)]
        least, most = np.min(seen, axis=0), np.max(seen, axis=0)
        found = {}
        for cell in asked:
            at = self.place[cell]
            for sign in (1, -1):
                if most[at] - least[at] < enough and (least[at] > self.low[at] if sign > 0 else most[at] < self.high[at]):
                    weights = np.zeros(len(self.cells))
                    weights[at] = sign
                    world = self.solve(weights)
                    least, most = np.minimum(least, world), np.maximum(most, world)
            found[cell] = int(least[at]), int(most[at])
        return found
