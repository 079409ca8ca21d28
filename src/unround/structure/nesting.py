"""Areas within areas: which may make up which, by codes, verified family by family before anybody adds them up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.release import ABSENT, AREA, Counts, adjustable
from unround.structure.evidence import Structure
from unround.structure.families import FamilyFit, judge_families
from unround.structure.propose import ALIKE

_NOT_CODES = ("region_name", "level", "adjustable", "code")
_BY_CODE = 0.95  # codes of one level tell the area of another if so many of them begin with the code of one

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ParentRoute:
    """Areas of one level that may make up areas of another."""

    child: str  # the levels, as the file calls them
    parent: str
    by: str  # what says so: the name of a column, or "code"
    children: Places  # positions of areas: the first of these lies in the first of those, and so on
    parents: Places


def parent_routes(areas: pl.DataFrame, axis: str) -> list[ParentRoute]:
    """Return every pair of levels that something links: the smallest parents first, for each the largest children."""
    levels = areas["level"].fill_null("").to_list() if "level" in areas.columns else [""] * areas.height
    found: dict[tuple[str, str], tuple[str, Places]] = {}
    for by, target in _routes(areas, axis, levels):
        target[target == np.arange(len(target))] = -1  # an area may name itself
        there = np.flatnonzero(target >= 0)
        pairs = {
            (levels[child], levels[parent]) for child, parent in zip(there.tolist(), target[there].tolist(), strict=True)
        }
        for pair in sorted(pairs):
            if pair[0] == pair[1] != "":
                continue
            here = np.array([c for c in there.tolist() if (levels[c], levels[target[c]]) == pair], dtype=np.int64)
            _, places = found.setdefault(pair, (by, np.full(len(target), -1, dtype=np.int64)))
            here = here[places[here] < 0]  # who spoke first is believed; others fill in what it left open
            places[here] = target[here]
    size = {level: levels.count(level) for level in set(levels)}
    height = _heights(list(found))
    order = sorted(found, key=lambda pair: (height[pair[1]], -size[pair[1]], -height[pair[0]], size[pair[0]]))
    made = []
    for pair in order:
        by, places = found[pair]
        children = np.flatnonzero(places >= 0)
        made.append(ParentRoute(*pair, by, children, places[children]))
    return made


def _routes(areas: pl.DataFrame, axis: str, levels: list[str]) -> Iterator[tuple[str, Places]]:
    """Go through everything that says where areas lie: what says so, and for every area a position or -1."""
    from unround.regions import KINDS, around, identities

    codes = areas[axis].cast(pl.String)
    own = identities(codes, pl.Series(levels, dtype=pl.String))
    place = {code: at for at, code in enumerate(codes.to_list())}
    by_identity = {identity: at for at, identity in enumerate(own)}
    bare = _unique_bare(own)
    for name, kind in areas.schema.items():
        if name == axis or name in _NOT_CODES or kind != pl.String:
            continue
        above = KINDS.get(name.lower().removesuffix("_uid"))

        def find(code: str | None, above: str | None = above) -> int:
            if code is None:
                return -1
            exactly = place.get(code, by_identity.get(f"{above}:{code}", -1) if above else -1)
            return exactly if exactly >= 0 else bare.get(code, -1) if above is None else -1

        found = {code: find(code) for code in areas[name].unique().to_list()}
        target = np.array([found[code] for code in areas[name].to_list()], dtype=np.int64)
        if (target >= 0).any():
            yield name, target
    # Codes tell every level around an area, of which the file may hold any: one at a time, so that none hides another.
    told = [[by_identity[one] for one in around(identity) if one in by_identity] for identity in own]
    for step in range(max(map(len, told), default=0)):
        yield "code", np.array([one[step] if step < len(one) else -1 for one in told], dtype=np.int64)
    yield from _prefixes(own, levels)


def _heights(pairs: list[tuple[str, str]]) -> dict[str, int]:
    """Return how many levels lie below each, one within the other."""
    height = {level: 0 for pair in pairs for level in pair}
    for _ in height:  # no chain is longer than there are levels, even if some lie in each other
        for child, parent in pairs:
            if child != parent:
                height[parent] = max(height[parent], min(height[child] + 1, len(height)))
    return height


def _unique_bare(own: list[str]) -> dict[str, int]:
    """Return areas by their code alone, where no two levels share it."""
    found: dict[str, int] = {}
    for at, identity in enumerate(own):
        code = identity.partition(":")[2] or identity
        found[code] = at if code not in found else -1
    return found


def _prefixes(own: list[str], levels: list[str]) -> Iterator[tuple[str, Places]]:
    """Find pairs of levels where the code of the smaller area begins with that of the larger, as wards' with districts'."""
    members: dict[str, list[int]] = {}
    for at, identity in enumerate(own):
        if ":" not in identity:  # where the agency's own scheme is known, likenesses beyond it are accidents
            members.setdefault(levels[at], []).append(at)
    lengths = {level: {len(own[at]) for at in ats} for level, ats in members.items()}
    for above, tops in members.items():
        if len(lengths[above]) != 1:
            continue
        (length,) = lengths[above]
        index = {own[at]: at for at in tops}
        for below, ats in members.items():
            if below == above or lengths[below] != {max(lengths[below])} or min(lengths[below]) <= length:
                continue
            target = np.full(len(own), -1, dtype=np.int64)
            target[ats] = [index.get(own[at][:length], -1) for at in ats]
            if np.count_nonzero(target >= 0) >= _BY_CODE * len(ats):
                yield "code", target


Bools = NDArray[np.bool_]

SIZES: Mapping[str, tuple[int, int]] = {"1": (1, 1), "2": (2, 2), "3-4": (3, 4), "5-10": (5, 10), "more": (11, 1 << 60)}
"""How many children a parent has, in words."""
FEW_COMPARED = 12
"""With fewer counts than this to compare, equal numbers are taken as alike: wrongly believed evidence proves too much."""

MOST_SHOWN = 12  # parts of a sum that are written out


@dataclass(frozen=True, slots=True, eq=False)
class NestingLevel:
    """Areas of one level that make up areas of another."""

    child: str  # the two levels, as the file calls them
    parent: str
    by: str  # what links them: the name of a column of the file, or "code"
    parents: int  # how many families fit, and how many children they have; only these are linked
    children: int
    by_k: Mapping[str, int]  # how many of these parents have 1, 2, 3-4, 5-10, or more children
    columns: Bools = field(repr=False)  # for every column of the release, whether it adds up
    alike: bool | None  # Whether a parent with a single child shows the child's numbers: then it tells nothing new
    rejected: Mapping[str, int]  # families that do not fit, and are not linked: how many, by reason
    why: str  # what tells all this, for people

    @property
    def name(self) -> str:
        """What to call it: "DA in CSD"."""
        return f"{self.child or 'areas'} in {self.parent or 'areas'}"

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "child": self.child,
            "parent": self.parent,
            "by": self.by,
            "parents": self.parents,
            "children": self.children,
            "children_of_a_parent": dict(self.by_k),
            "columns": int(self.columns.sum()),
            "alike": self.alike,
            "rejected": dict(self.rejected),
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class Misfit:
    """A count that cannot be the sum of the same counts of the areas that make up its area, though its others can."""

    parent: int  # the position of the area
    column: int  # the column
    text: str  # the arithmetic, for people


@dataclass(frozen=True, slots=True, eq=False)
class Nesting:
    """Which areas make up which.

    - `sure`: For every area, whether it is a parent of which some count, published as it is, is the children's sum to the
      last person. Where not, an area without many people may be missing among the children, and nothing shows it.
    """

    parent: Places = field(repr=False)  # For every area of the release the position of the area that it is a part of, or -1
    level: NDArray[np.int16] = field(repr=False)  # for every area, by which of `levels` it is linked to its parent, or -1
    sure: Bools = field(repr=False)
    levels: tuple[NestingLevel, ...]  # the pairs of levels, the smallest parents first
    odd: tuple[Misfit, ...] = ()  # counts that contradict those of smaller areas; their families are not linked

    @classmethod
    def none(cls, areas: int) -> Nesting:
        """Return the nesting of areas that have nothing to do with each other."""
        return cls(
            np.full(areas, -1, dtype=np.int64), np.full(areas, -1, dtype=np.int16), np.zeros(areas, dtype=np.bool_), ()
        )

    @property
    def linked(self) -> int:
        """How many areas are a part of another."""
        return int((self.parent >= 0).sum())

    def families(self) -> dict[int, Places]:
        """Return the children of every parent, by position."""
        children = np.flatnonzero(self.parent >= 0)
        order = children[np.argsort(self.parent[children], kind="stable")]
        parents, firsts = np.unique(self.parent[order], return_index=True)
        return dict(zip(parents.tolist(), np.split(order, firsts[1:]), strict=True))

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"linked": self.linked, "levels": [level.to_json() for level in self.levels]}


def find_nesting(
    areas: pl.DataFrame, pick: Callable[[Places], Counts], structure: Structure, axes: tuple[str, ...] = (AREA,)
) -> Nesting:
    """Find out which areas make up which.

    Time and memory are linear in the areas: children are read once for every pair of levels that is compared, some
    families at a time.
    """
    if len(axes) != 1:
        return Nesting.none(areas.height)
    made = Nesting.none(areas.height)
    heads = np.zeros(areas.height, dtype=np.bool_)
    levels, odd = list[NestingLevel](), list[Misfit]()
    for link in parent_routes(areas, axes[0]):
        parents, family, children = _open(link, made.parent, heads)
        if not len(parents):
            continue
        found = judge_families(
            parents,
            children,
            family,
            pick,
            adjustable(areas),
            structure.mechanisms,
            [column.adjusted for column in structure.columns],
            [column.block for column in structure.columns],
        )
        fits = found.holds[family]
        made.parent[children[fits]] = parents[family[fits]]
        made.level[children[fits]] = len(levels)
        made.sure[parents] |= found.sure
        heads[parents[found.holds]] = True
        levels.append(_told(link, found, np.bincount(family, minlength=len(parents))))
        odd += [
            _odd(int(parents[f]), children[family == f], int(found.odd[f]), pick, structure.columns[found.odd[f]].key)
            for f in np.flatnonzero(found.odd >= 0).tolist()
        ]
    return Nesting(made.parent, made.level, made.sure, tuple(levels), tuple(odd))


def _odd(parent: int, children: Places, column: int, pick: Callable[[Places], Counts], key: str) -> Misfit:
    """Put into words how a count fails to be a sum."""
    shown = pick(np.array([parent, *children]))[:, column].tolist()
    total, parts = shown[0], [number for number in shown[1:] if number > ABSENT]
    listed = " + ".join(f"{number:,}" for number in parts[:MOST_SHOWN])
    whole = f"{listed}{' + …' if len(parts) > MOST_SHOWN else ''} = {sum(parts):,}" if len(parts) > 1 else f"{sum(parts):,}"
    lie = "the area within it" if len(children) == 1 else f"the {len(children):,} areas within it"
    text = f"{key} was published as {total:,}, and for {lie} as {whole}: no true counts fit. They are not linked."
    return Misfit(parent, column, text)


def _open(link: ParentRoute, parent: Places, heads: Bools) -> tuple[Places, Places, Places]:
    """Return the families of a link that no other has settled: parents, and of every child its family and position.

    Areas of three levels that lie in each other are linked step by step; the link over two steps says nothing more. And an
    area that is made up of smaller ones in two ways is taken the first way, of the largest parts. Areas that would lie in
    each other in turn are left out: counts can add up all the same where each is the only one in the next.
    """
    parents, family = np.unique(link.parents, return_inverse=True)
    settled = heads[parents].copy()
    np.logical_or.at(settled, family, parent[link.children] >= 0)
    keep = ~(settled | _round(link, parent)[parents])[family]
    parents, family = np.unique(link.parents[keep], return_inverse=True)
    order = np.argsort(family, kind="stable")
    return parents, family[order].astype(np.int64), link.children[keep][order]


def _round(link: ParentRoute, parent: Places) -> Bools:
    """Return which areas would lie in themselves, by however many steps, if all of a link were believed."""
    above = parent.copy()
    above[link.children] = link.parents
    for _ in range(len(above).bit_length()):  # each time twice as far up: at last only circles lead anywhere
        above = np.where(above >= 0, above[above], -1)
    found = np.zeros(len(above), dtype=np.bool_)
    found[above[above >= 0]] = True
    return found


def _told(link: ParentRoute, found: FamilyFit, number: Places) -> NestingLevel:
    """Put what was found of a pair of levels into words."""
    sizes = number[found.holds]
    by_k = {name: int(((sizes >= low) & (sizes <= high)).sum()) for name, (low, high) in SIZES.items()}
    share = found.equal / found.compared if found.compared else 0.0
    alike = None if not by_k["1"] else share >= ALIKE or found.compared < FEW_COMPARED
    fine, tried = found.cells
    words = (
        f"{fine:,} of {tried:,} counts are consistent with the sum of the children's ({fine / tried:.2%})"
        if tried
        else "nothing compared"
    )
    if found.sure.any():
        words += f"; {int(found.sure.sum()):,} of {int(found.holds.sum()):,} parents have exact counts that add up"
    if alike is not None and found.compared:
        kind = "the same numbers, which add no information" if alike else "rounded anew"
        words += f"; parents with one child have the child's number in {share:.0%} of {found.compared:,} counts: {kind}"
    return NestingLevel(
        link.child,
        link.parent,
        link.by,
        int(found.holds.sum()),
        int(sizes.sum()),
        {name: many for name, many in by_k.items() if many},
        found.columns,
        alike,
        found.reasons,
        words,
    )
