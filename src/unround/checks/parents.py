"""Areas within areas: a parent's count against the sum of its children's."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from unround.checks.families import CONTRADICTS, DEPARTS, FITS, LEAST_SUMS, UNTESTED, Family, FamilyHistogram
from unround.checks.residuals import FARTHEST, even_shares, folded, reach_of
from unround.mechanisms import Exact, Mechanism
from unround.mechanisms.base import step_of
from unround.release import ABSENT, Counts, Release, adjustable
from unround.structure import Structure
from unround.structure.nesting import columns_to_compare
from unround.tables.spool import Spool

_NOT_CODES = ("region_name", "level", "adjustable")
_SAMPLE = 2000
MOST_CHILDREN = 60
"""Parents of more areas are not compared: their residuals spread so far that they fit anything."""
LEAST_MEAN = 12
"""The least average of a child's count, in steps between published counts."""
HOLDS = 0.99
"""If fewer of the parents than this are possible sums, the file does not have all areas within them."""

Ints = NDArray[np.int64]


@dataclass
class ParentSums:
    """Adds up children, block by block.

    - `chosen`: The columns that are compared.
    - `mechanisms`: How each was published.
    - `inside`: For every column of codes the parent's place of each area, or -1.
    """

    chosen: Ints
    mechanisms: list[Mechanism]
    inside: dict[str, Ints]
    sums: dict[str, Ints] = field(default_factory=dict)
    hidden: dict[str, Ints] = field(default_factory=dict)

    @classmethod
    def of(cls, release: Release, spool: Spool, structure: Structure) -> ParentSums:
        """Find which areas lie within which others of the same file."""
        import polars as pl

        inside: dict[str, Ints] = {}
        if len(release.areas) == 1 and spool.rows > 1:
            axis = release.areas[0]
            place = {code: at for at, code in enumerate(spool.areas[axis].to_list())}
            for name, kind in spool.areas.schema.items():
                if name == axis or name in _NOT_CODES or kind != pl.String:
                    continue
                parent = np.array([place.get(code, -1) for code in spool.areas[name].to_list()])
                parent[parent == np.arange(len(parent))] = -1  # an area may name itself
                if (parent >= 0).any():
                    inside[name] = parent
        chosen: list[int] = []
        if inside:
            rows = np.unique(np.linspace(0, spool.rows - 1, min(_SAMPLE, spool.rows)).astype(np.int64))
            chosen = columns_to_compare(spool.pick(rows), structure.mechanisms)
        mechanisms = [structure.mechanisms[c] or Exact() for c in chosen]
        return cls(np.array(chosen, dtype=np.int64), mechanisms, inside)

    def add(self, start: int, counts: Counts) -> None:
        """Add some areas to their parents."""
        shown = counts[:, self.chosen].astype(np.int64)
        absent = shown <= ABSENT
        for by, whole in self.inside.items():
            inside = whole[start : start + len(counts)]
            child = inside >= 0
            sums = self.sums.setdefault(by, np.zeros((len(whole), len(self.chosen)), dtype=np.int64))
            hidden = self.hidden.setdefault(by, np.zeros((len(whole), len(self.chosen)), dtype=np.int64))
            np.add.at(sums, inside[child], np.where(absent, 0, shown)[child])
            np.add.at(hidden, inside[child], absent[child].astype(np.int64))


def nested_families(nested: ParentSums, release: Release, spool: Spool) -> list[Family]:
    """Compare every parent with its children: exact counts, and rounded ones."""
    families = []
    for by, inside in nested.inside.items():
        children = np.bincount(inside[inside >= 0], minlength=len(inside))
        parents = np.flatnonzero(children > 0)
        shown = spool.pick(parents)[:, nested.chosen].astype(np.int64)
        whole = (shown > ABSENT) & (nested.hidden[by][parents] == 0)
        residual = np.where(whole, shown - nested.sums[by][parents], 0)
        exact = np.array([isinstance(how, Exact) for how in nested.mechanisms])
        name = f"areas under their {'parent area' if by == 'parent' else by}"
        families.append(_exact(f"{name}: exact counts", residual, whole & exact, parents, release, spool, nested))
        for how in dict.fromkeys(how for how in nested.mechanisms if not isinstance(how, Exact)):
            mine = np.array([other == how for other in nested.mechanisms])
            families.append(_rounded(f"{name} ({how.name})", how, residual, whole & mine, shown, children[parents], nested))
    return [family for family in families if family is not None]


def _exact(
    name: str,
    residual: Ints,
    whole: NDArray[np.bool_],
    parents: Ints,
    release: Release,
    spool: Spool,
    nested: ParentSums,
) -> Family | None:
    """Compare exact counts: they must add up, except for what the agency may have adjusted."""
    number = int(whole.sum())
    if not number:
        return None
    far = np.minimum(np.abs(residual[whole]), FARTHEST)
    wrong = whole & (residual != 0)
    observed = {int(at): int(times) for at, times in zip(*np.unique(far, return_counts=True), strict=True)}
    columns = frozenset(int(c) for c in nested.chosen[whole.any(0)])
    fits = Family(
        name, number, observed, {0: 1.0}, None, None, None, 0, FITS, FITS, f"All {number:,} add up.", columns=columns
    )
    if not wrong.any():
        return fits
    if wrong.sum() > (1 - HOLDS) * number and np.abs(residual[wrong]).max() > FARTHEST:
        words = (
            f"{int(wrong.sum()):,} of {number:,} parents exceed the sum of their areas in the file: some areas are "
            f"missing from it."
        )
        return replace(fits, otherwise=UNTESTED, verdict=UNTESTED, note=words)
    row, column = (int(at) for at in np.argwhere(wrong)[0])
    area, label = spool.areas[release.areas[0]][int(parents[row])], release.columns[int(nested.chosen[column])].label
    clash = f"{area}: {label} differs from the sum of its areas by {residual[row, column]:+,}."
    movable = adjustable(spool.areas).any() and any(release.columns[c].adjusted for c in columns)
    free = "adjusted by the agency, or wrong" if movable else "wrong"
    words = f"{int(wrong.sum()):,} of {number:,} exact counts do not add up: {free}."
    return replace(fits, impossible=int(wrong.sum()), verdict=CONTRADICTS, note=words, clash=clash, inexact=True)


def _rounded(
    name: str,
    how: Mechanism,
    residual: Ints,
    whole: NDArray[np.bool_],
    shown: Ints,
    children: Ints,
    nested: ParentSums,
) -> Family | None:
    """Compare rounded counts with the closed form for that number of children, where these are large on average."""
    number = children[:, None]
    step, reach = step_of(how), reach_of(how)
    few = whole & (number <= MOST_CHILDREN)
    if not few.any():
        return None
    possible = np.abs(residual) <= reach * (number + 1)
    columns = frozenset(int(c) for c in nested.chosen[whole.any(0)])
    share = float(possible[few].mean())
    if share < HOLDS:
        words = (
            f"Only {share:.1%} of the parents are consistent with the sum of their areas: the file does not have "
            f"all areas within them."
        )
        return Family(name, 0, {}, {}, None, None, None, 0, UNTESTED, UNTESTED, words, columns=columns)
    chosen = few & possible & (shown >= LEAST_MEAN * step * number)
    observed, expected = np.zeros(FARTHEST + 1), np.zeros(FARTHEST + 1)
    for n in np.unique(children[chosen.any(1)]).tolist():
        here = chosen & (number == n)
        observed += np.bincount(np.minimum(np.abs(residual[here]), FARTHEST), minlength=FARTHEST + 1)
        expected += int(here.sum()) * folded(even_shares(how, (how,) * n))
    comparison = FamilyHistogram(observed, expected, 0, 0.0, 1.0)
    impossible = int((few & ~possible).sum())
    enough = comparison.sums >= LEAST_SUMS
    otherwise = (DEPARTS if comparison.departs else FITS) if enough else UNTESTED
    if enough:
        words = f"The shares differ by {comparison.distance:.1%} in total (p = {comparison.p_value:.2g})."
    else:
        words = f"Only {comparison.sums:,} parents have large enough areas; a comparison needs {LEAST_SUMS}."
    if impossible:
        words = f"No true counts fit {impossible:,} of {int(few.sum()):,} sums. {words}"
    return Family(
        name,
        comparison.sums,
        {int(far): int(observed[far]) for far in np.flatnonzero(observed)},
        {int(far): float(expected[far] / expected.sum()) for far in np.flatnonzero(expected > 1e-9 * expected.sum())},
        comparison.p_value if enough else None,
        None,
        comparison.distance if enough else None,
        impossible,
        otherwise,
        CONTRADICTS if impossible else otherwise,
        words,
        columns=columns,
    )
