"""Sums that nobody proposed, looked for in the counts of a sample of areas.

Three kinds are tried: a total before or after a run of columns that adds up to it; a proposed sum without one of its parts;
and (in `repeats`) the same count twice. What is found here is only a proposal: it is verified like any other, and on more
evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from unround.release import ABSENT, Column, Counts, Proposal
from unround.structure.evidence import Equation

_LONGEST = 400
"""No run of parts is longer."""
_TRIED = 3
"""Of all runs that end near the total, so many are verified."""


class SumSearch:
    """Looks for sums in the counts of a sample of areas.

    - `columns`: The release's.
    - `sample`: Areas × columns.
    - `reach`: How far a published count of each column can be from the true one.
    """

    def __init__(self, columns: Sequence[Column], sample: Counts, reach: NDArray[np.int32]) -> None:
        shown = sample > ABSENT
        self._columns = columns
        self._areas = max(1, len(sample))
        self._sums = np.where(shown, sample, 0).sum(0, dtype=np.float64)
        self._number = shown.sum(0)
        # Variances of roundings add up; the reach of one is about twice its standard deviation.
        self._square = (reach.astype(np.float64) / 2) ** 2 * self._number

    def _far(self, total: int, parts: Sequence[int]) -> float:
        """Return how far from zero the sum of all residuals may be."""
        return float(5 * np.sqrt(self._square[total] + self._square[list(parts)].sum()) + 1e-9)

    def _sizeable(self, total: int) -> bool:
        """Say whether a total is so large that a sum close to it is no coincidence; rows of zeros match anything."""
        return bool(self._sums[total] >= 50 * self._far(total, (total, total)))

    def sequences(self) -> Iterator[list[int]]:
        """Go through the lists of columns in which runs can lie: one axis changes, table and other codes do not."""
        axes = len(self._columns[0].codes) if self._columns else 0
        for axis in range(axes):
            lists: dict[tuple[object, ...], list[int]] = {}
            for at, column in enumerate(self._columns):
                rest = column.codes[:axis] + column.codes[axis + 1 :]
                lists.setdefault((column.block, *rest), []).append(at)
            yield from (found for found in lists.values() if len(found) > 2)

    def runs(self, known: Sequence[Equation]) -> list[Proposal]:
        """Return totals that stand directly before or after a run of columns with their sum."""
        heads: dict[int, list[int]] = {}
        for total, parts in known:
            if len(parts) > 1:
                heads.setdefault(total, []).extend(parts)
        found = []
        for sequence in self.sequences():
            for ordered in (sequence, sequence[::-1]):
                found += self._runs(ordered, heads)
        return list(dict.fromkeys(found))

    def _runs(self, ordered: list[int], heads: dict[int, list[int]]) -> list[Proposal]:
        """Look for runs after each column of a list; from its end, so that sums found there are skipped as one part."""
        after = list(range(1, len(ordered) + 1))
        place_of = {column: place for place, column in enumerate(ordered)}
        found = []
        for place in range(len(ordered) - 2, -1, -1):
            total = ordered[place]
            inner = [place_of[part] for part in heads.get(total, ()) if part in place_of]
            if inner:
                if min(inner) > place:
                    after[place] = max(after[at] for at in inner)
                continue
            if not self._sizeable(total):
                continue
            chains = [ordered[place + 1 : place + 1 + _LONGEST]]
            if (nested := self._chain(place, ordered, after)) != chains[0]:
                chains.append(nested)
            for chain in chains:
                found += [Proposal(total, tuple(sorted(parts)), "data") for parts in self._fitting(total, chain)]
        return found

    def _chain(self, place: int, ordered: list[int], after: list[int]) -> list[int]:
        """Return the columns that follow, without those inside sums that are known."""
        chain, at = list[int](), place + 1
        while at < len(ordered) and len(chain) < _LONGEST:
            chain.append(ordered[at])
            at = after[at]
        return chain

    def _fitting(self, total: int, chain: list[int]) -> list[list[int]]:
        """Return the starts of a chain, the longest first, whose sum over all areas is the total's but for rounding."""
        if len(chain) < 2:
            return []
        short = self._sums[total] - np.cumsum(self._sums[chain])
        slack = 5 * np.sqrt(self._square[total] + np.cumsum(self._square[chain])) + 1e-9
        over = np.flatnonzero(short < -slack)
        end = int(over[0]) if len(over) else len(chain)
        fits = [at for at in np.flatnonzero(np.abs(short[:end]) <= slack[:end]).tolist() if at > 0]
        return [chain[: at + 1] for at in fits[::-1][:_TRIED]]

    def repairs(self, failed: Sequence[Proposal]) -> list[Proposal]:
        """Return failed sums without one of their parts, where that brings them near the total."""
        found = []
        for proposal in failed:
            parts = proposal.parts
            if len(parts) < 3:
                continue
            surplus = self._sums[list(parts)].sum() - self._sums[proposal.total]
            slack = self._far(proposal.total, parts)
            if surplus <= 0:
                continue
            surplus_parts = [part for part in parts if abs(self._sums[part] - surplus) <= slack and self._sums[part] > 0]
            found += [Proposal(proposal.total, tuple(p for p in parts if p != part), "data") for part in surplus_parts]
        return found


def mirrored(found: Sequence[Proposal], columns: Sequence[Column]) -> list[Proposal]:
    """Return the same sums for other codes of the axes that they do not add up along: for women what was found for men.

    Examples
    --------
    >>> columns = [Column(f"{key}/{sex}", (key, sex), key) for sex in ("men", "women") for key in ("all", "young", "old")]
    >>> mirrored([Proposal(0, (1, 2), "data")], columns)
    [Proposal(total=3, parts=(4, 5), origin='data')]
    """
    index = {column.codes: at for at, column in enumerate(columns)}
    others = list(dict.fromkeys(column.codes[1:] for column in columns))
    more = []
    for proposal in found:
        cells = [columns[at].codes for at in (proposal.total, *proposal.parts)]
        if len({codes[1:] for codes in cells}) == 1:
            for rest in others:
                places = [index.get((codes[0], *rest), -1) for codes in cells]
                if rest != cells[0][1:] and min(places) >= 0:
                    more.append(Proposal(places[0], tuple(places[1:]), "data"))
    return more
