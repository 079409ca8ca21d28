"""Areas within areas: which may make up which, by codes, verified family by family before anybody adds them up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unround.mechanisms import Exact, Mechanism
from unround.release import ABSENT, AREA, Counts, adjustable
from unround.structure.evidence import Structure
from unround.structure.propose import ALIKE
from unround.structure.residuals import ScatterWindows, scatter

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
    routes: dict[tuple[str, str], tuple[str, Places]] = {}
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
            _, places = routes.setdefault(pair, (by, np.full(len(target), -1, dtype=np.int64)))
            here = here[places[here] < 0]  # who spoke first is believed; others fill in what it left open
            places[here] = target[here]
    size = {level: levels.count(level) for level in set(levels)}
    height = _heights(list(routes))
    order = sorted(routes, key=lambda pair: (height[pair[1]], -size[pair[1]], -height[pair[0]], size[pair[0]]))
    made = []
    for pair in order:
        by, places = routes[pair]
        children = np.flatnonzero(places >= 0)
        made.append(ParentRoute(*pair, by, children, places[children]))
    return made


def _routes(areas: pl.DataFrame, axis: str, levels: list[str]) -> Iterator[tuple[str, Places]]:
    """Go through everything that says where areas lie: what says so, and for every area a position or -1."""
    from unround.regions import KINDS, around, identities

    codes = areas[axis].cast(pl.String)
    ids = identities(codes, pl.Series(levels, dtype=pl.String))
    place = {code: at for at, code in enumerate(codes.to_list())}
    by_identity = {identity: at for at, identity in enumerate(ids)}
    bare = _unique_bare(ids)
    for name, kind in areas.schema.items():
        if name == axis or name in _NOT_CODES or kind != pl.String:
            continue
        above = KINDS.get(name.lower().removesuffix("_uid"))

        def find(code: str | None, above: str | None = above) -> int:
            if code is None:
                return -1
            exactly = place.get(code, by_identity.get(f"{above}:{code}", -1) if above else -1)
            return exactly if exactly >= 0 else bare.get(code, -1) if above is None else -1

        positions = {code: find(code) for code in areas[name].unique().to_list()}
        target = np.array([positions[code] for code in areas[name].to_list()], dtype=np.int64)
        if (target >= 0).any():
            yield name, target
    # Codes tell every level around an area, of which the file may hold any: one at a time, so that none hides another.
    larger = [[by_identity[code] for code in around(identity) if code in by_identity] for identity in ids]
    for step in range(max(map(len, larger), default=0)):
        yield "code", np.array([places[step] if step < len(places) else -1 for places in larger], dtype=np.int64)
    yield from _prefixes(ids, levels)


def _heights(pairs: list[tuple[str, str]]) -> dict[str, int]:
    """Return how many levels lie below each, one within the other."""
    height = {level: 0 for pair in pairs for level in pair}
    for _ in height:  # no chain is longer than there are levels, even if some lie in each other
        for child, parent in pairs:
            if child != parent:
                height[parent] = max(height[parent], min(height[child] + 1, len(height)))
    return height


def _unique_bare(ids: list[str]) -> dict[str, int]:
    """Return areas by their code alone, where no two levels share it."""
    place: dict[str, int] = {}
    for at, identity in enumerate(ids):
        code = identity.partition(":")[2] or identity
        place[code] = at if code not in place else -1
    return place


def _prefixes(ids: list[str], levels: list[str]) -> Iterator[tuple[str, Places]]:
    """Find pairs of levels where the code of the smaller area begins with that of the larger, as wards' with districts'."""
    members: dict[str, list[int]] = {}
    for at, identity in enumerate(ids):
        if ":" not in identity:  # where the agency's own scheme is known, likenesses beyond it are accidents
            members.setdefault(levels[at], []).append(at)
    lengths = {level: {len(ids[at]) for at in ats} for level, ats in members.items()}
    for above, tops in members.items():
        if len(lengths[above]) != 1:
            continue
        (length,) = lengths[above]
        index = {ids[at]: at for at in tops}
        for below, ats in members.items():
            if below == above or lengths[below] != {max(lengths[below])} or min(lengths[below]) <= length:
                continue
            target = np.full(len(ids), -1, dtype=np.int64)
            target[ats] = [index.get(ids[at][:length], -1) for at in ats]
            if np.count_nonzero(target >= 0) >= _BY_CODE * len(ats):
                yield "code", target


Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

# -- does it add up? --------------------------------------------------------------------------------------------------

_CELLS = 2_000_000  # counts that are processed at once
_SIGMAS = 7.0
"""No rounding takes a residual further than so many standard deviations, in all families and columns of a country."""
_USUAL = 4.0  # nor the residuals of a family's largest counts, on the whole, further than so many
_LARGEST = 24  # of a family's columns, the largest: what is missing is missing in all of them
_POSSIBLE = 0.98  # A column adds up if it can in so many of the families that fit otherwise
_HALF = 0.5  # A family is worth a closer look if so many of its counts can be sums
_MANY = 0.8  # and the columns by which it is looked at are those that can be sums in so many families
_TABLE = 0.1
"""If a larger share of its columns does not add up, a table is not of people who live there, and none of it adds up."""
_FEW = 0.01  # A family with more impossible counts than this share does not tell which columns add up


@dataclass(frozen=True, slots=True, eq=False)
class FamilyFit:
    """What was found of the families of one pair of levels.

    - `odd`: By family: a column of which the parent's count cannot be the sum of the children's, though nearly all others
      of the family can; -1 where there is none.
    """

    holds: Bools  # which families fit
    sure: Bools  # those of them with a count that was published as it is, and is the children's sum to the last person
    columns: Bools  # the columns of counts that add up
    reasons: dict[str, int]  # why families do not fit, and how many
    equal: int  # of the rounded counts above 0 of areas with a single child: how many are the same there, out of how many
    compared: int
    cells: tuple[int, int]  # of the counts compared: how many can be the children's sum, out of how many
    odd: Places


def judge_families(
    parents: Places,
    children: Places,
    family: Places,
    pick: Callable[[Places], Counts],
    adjustable: Bools,
    structure: Structure,
) -> FamilyFit:
    """Compare every parent with the sum of its children."""
    compare = _Comparison(structure)
    starts = np.searchsorted(family, np.arange(len(parents) + 1))
    at_once = max(1, _CELLS // max(1, len(structure.columns)))
    first = 0
    while first < len(parents):
        last = first + 1
        while last < len(parents) and last - first < at_once and starts[last + 1] - starts[first] <= at_once:
            last += 1
        inside = slice(int(starts[first]), int(starts[last]))
        compare.add(parents[first:last], children[inside], family[inside] - first, pick, adjustable, at_once)
        first = last
    return compare.result()


class _Comparison:
    """Collects, some families at a time, what tells whether they fit."""

    def __init__(self, structure: Structure) -> None:
        mechanisms = structure.mechanisms
        self._table = np.unique(
            np.array([published.block for published in structure.columns], dtype=np.str_), return_inverse=True
        )[1]
        self._known = np.array([kind is not None for kind in mechanisms])
        self._exact = np.array([kind == Exact() for kind in mechanisms])
        self._adjusted = np.array([column.adjusted for column in structure.columns], dtype=np.int64)
        # Adjustments go into the residuals' tolerance, not into windows: they add up like roundings, not like bounds.
        self._windows = ScatterWindows(mechanisms, [0] * len(mechanisms))
        self._variance = np.zeros((33, len(mechanisms)))
        for at, kind in enumerate(mechanisms):
            if kind is not None and kind != Exact():
                measured = scatter(kind)
                self._variance[0, at] = measured.small if measured.at_zero == 0 else measured.at_zero
                self._variance[1:32, at] = np.maximum(measured.variance[1:32], 0.0)
        self._columns = len(mechanisms)
        self._told: dict[str, list[NDArray[Any]]] = {}  # by family, or by family and column: yes and no as bits

    def add(
        self,
        parents: Places,
        children: Places,
        family: Places,
        pick: Callable[[Places], Counts],
        adjustable: Bools,
        at_once: int,
    ) -> None:
        """Compare some families."""
        shape = (len(parents), self._columns)
        sums, low, high = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        hidden, moved = np.zeros(shape, dtype=np.int32), np.zeros(len(parents), dtype=np.int64)
        variance = np.zeros(shape)
        for start in range(0, len(children), at_once):
            here = slice(start, start + at_once)
            counts, member = pick(children[here]), family[here]
            down, up, seen = self._of(counts)
            shown = np.where(seen, counts, 0).astype(np.int64)
            firsts = np.flatnonzero(np.r_[True, member[1:] != member[:-1]])
            groups = member[firsts]
            for into, of in ((sums, shown), (low, shown - down), (high, shown + up), (hidden, (~seen).astype(np.int32))):
                into[groups] += np.add.reduceat(of, firsts, axis=0)
            variance[groups] += np.add.reduceat(self._variance_of(counts, seen), firsts, axis=0)
            np.add.at(moved, member, adjustable[children[here]])
        counts = pick(parents)
        down, up, seen = self._of(counts)
        shown = np.where(seen, counts, 0).astype(np.int64)
        variance += self._variance_of(counts, seen)
        moved += adjustable[parents]
        may_differ_by = self._may_differ_by(moved)
        complete = seen & (hidden == 0) & self._known
        residual = np.where(complete, shown - sums, 0)
        # Where children hide a count, what the others show must still leave room for it.
        over = seen & self._known & (shown + up + may_differ_by < low)
        under = complete & (shown - down - may_differ_by > high)
        impossible = over | under
        compared = complete | (seen & self._known & (low > 0))
        deviation = np.sqrt(np.maximum(variance, 1e-9))
        far = complete & ~self._exact & (np.abs(residual) > _SIGMAS * deviation + 1)
        alone = np.bincount(family, minlength=len(parents)) == 1
        both = alone[:, None] & complete & ~self._exact & ((shown > 0) | (sums > 0))
        tests = self._family(complete, impossible, residual, shown, deviation)
        tests |= {"impossible": impossible, "far": far, "compared": compared, "both": both, "same": both & (residual == 0)}
        tests["residual"] = np.where(complete & ~self._exact, residual / deviation, np.nan).astype(np.float32)
        for name, values in tests.items():
            bits = values.dtype == np.bool_ and values.ndim == 2
            self._told.setdefault(name, []).append(np.packbits(values, axis=1) if bits else values)

    def _of(self, counts: Counts) -> tuple[NDArray[np.int32], NDArray[np.int32], Bools]:
        return self._windows.of(counts, np.zeros(len(counts), dtype=np.bool_))

    def _variance_of(self, counts: Counts, seen: Bools) -> Floats:
        """Return how much each count scatters, by its size."""
        digits = np.frexp(np.where(seen & (counts > 0), counts, 0).astype(np.float64))[1]
        return np.where(seen, self._variance[np.clip(digits, 0, 31), np.arange(self._columns)], 0.0)

    def _may_differ_by(self, moved: Places) -> NDArray[np.int64]:
        """Return how far adjustments can take the residuals: they go both ways, so that few add up to many times one."""
        most = moved[:, None] * self._adjusted
        likely = np.ceil(3.2 * np.sqrt(moved)[:, None] * self._adjusted).astype(np.int64)
        return np.asarray(np.minimum(most, likely))

    def _family(
        self, complete: Bools, impossible: Bools, residual: Places, shown: Places, deviation: Floats
    ) -> dict[str, NDArray[Any]]:
        """Return what tells of each family on its own."""
        exactly = complete & self._exact
        rounded = complete & ~self._exact
        size = np.where(rounded, shown, -1)
        few = min(_LARGEST, self._columns)
        largest = np.argpartition(-size, few - 1, axis=1)[:, :few]
        z = np.abs(np.take_along_axis(residual, largest, 1)) / np.take_along_axis(deviation, largest, 1)
        z = np.where(np.take_along_axis(size, largest, 1) > 0, z, np.nan)
        some = ~np.isnan(z).all(axis=1)
        typical = np.zeros(len(z))
        typical[some] = np.nanmedian(z[some], axis=1)
        return {
            "off": (impossible & self._exact).any(axis=1),
            "sure": exactly.any(axis=1) & ~(exactly & (residual != 0)).any(axis=1),
            "typical": typical,
        }

    def result(self) -> FamilyFit:
        """Decide which columns add up, and which families fit."""
        tests = {name: np.concatenate(parts) for name, parts in self._told.items()}
        packed = {name: bits for name, bits in tests.items() if bits.dtype == np.uint8}
        tests |= {name: np.unpackbits(bits, axis=1, count=self._columns).astype(np.bool_) for name, bits in packed.items()}
        impossible, far, compared = tests["impossible"], tests["far"], tests["compared"]
        fine = 1 - (impossible & ~self._exact).sum(1) / np.maximum((compared & ~self._exact).sum(1), 1)
        anything = compared.any(axis=1)
        off, apart = tests["off"], ~tests["off"] & ((fine < _HALF) | (tests["typical"] > _USUAL))
        close = anything & ~off & ~apart
        # Columns are judged by families that fit, and families by columns that add up: first roughly, then strictly.
        broken = impossible & compared
        usual = broken[close].sum(0) <= (1 - _MANY) * compared[close].sum(0)
        fits = close & ((broken & usual).sum(1) <= np.maximum(1, _FEW * (compared & usual).sum(1)))
        columns = self._adding_up(broken[fits], compared[fits], tests["residual"][fits])
        strange = close & ((impossible | far) & columns).any(axis=1)
        holds = close & ~strange & columns.any()
        reasons = {
            "nothing published to compare": int((~anything).sum()),
            "exact counts do not add up: some area is missing": int((anything & off).sum()),
            "rounded counts are too far from the sum: some area is missing": int((anything & apart).sum()),
            "some count cannot be the sum of the children's": int(strange.sum()),
        }
        both, same = (tests[name] & holds[:, None] & columns for name in ("both", "same"))
        tried = compared & close[:, None] & columns
        wrong = impossible & tried
        return FamilyFit(
            holds,
            holds & tests["sure"],
            columns,
            {why: number for why, number in reasons.items() if number},
            int(same.sum()),
            int(both.sum()),
            (int((tried & ~impossible).sum()), int(tried.sum())),
            np.where(wrong.any(axis=1), wrong.argmax(axis=1), -1),
        )

    def _adding_up(self, broken: Bools, compared: Bools, residual: NDArray[np.float32]) -> Bools:
        """Return the columns that are sums in (almost) all families, and off by nothing on average.

        Where people are counted at their work, or by several answers, small counts may still add up by good luck: there
        the rest of the table tells.
        """
        number = compared.sum(0)
        possible = (number > 0) & (broken.sum(0) <= (1 - _POSSIBLE) * number)
        there = ~np.isnan(residual)
        mean = np.where(there, residual, 0).sum(0, dtype=np.float64) / np.sqrt(np.maximum(there.sum(0), 1))
        fine = possible & (np.abs(mean) <= _SIGMAS)
        failing = np.bincount(self._table, (number > 0) & ~fine)
        judged = np.bincount(self._table, number > 0)
        return np.asarray(fine & (failing <= _TABLE * judged)[self._table])


_COMPARED = 24  # columns that are compared; a few large ones are as informative as all


def columns_to_compare(sample: Counts, mechanisms: Sequence[Mechanism | None]) -> list[int]:
    """Return the columns that are published most often, and among these the largest; exact ones first."""
    shown = sample > ABSENT
    size = np.where(shown, sample, 0).sum(0, dtype=np.float64)
    known = [at for at, kind in enumerate(mechanisms) if kind is not None and shown[:, at].any()]
    return sorted(known, key=lambda at: (mechanisms[at] != Exact(), -shown[:, at].sum(), -size[at]))[:_COMPARED]


# -- all together -----------------------------------------------------------------------------------------------------

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
        judged = judge_families(parents, children, family, pick, adjustable(areas), structure)
        fits = judged.holds[family]
        made.parent[children[fits]] = parents[family[fits]]
        made.level[children[fits]] = len(levels)
        made.sure[parents] |= judged.sure
        heads[parents[judged.holds]] = True
        levels.append(_told(link, judged, np.bincount(family, minlength=len(parents))))
        odd += [
            _odd(int(parents[f]), children[family == f], int(judged.odd[f]), pick, structure.columns[judged.odd[f]].key)
            for f in np.flatnonzero(judged.odd >= 0).tolist()
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
    circular = np.zeros(len(above), dtype=np.bool_)
    circular[above[above >= 0]] = True
    return circular


def _told(link: ParentRoute, judged: FamilyFit, number: Places) -> NestingLevel:
    """Put what was found of a pair of levels into words."""
    sizes = number[judged.holds]
    by_k = {name: int(((sizes >= low) & (sizes <= high)).sum()) for name, (low, high) in SIZES.items()}
    share = judged.equal / judged.compared if judged.compared else 0.0
    alike = None if not by_k["1"] else share >= ALIKE or judged.compared < FEW_COMPARED
    fine, tried = judged.cells
    words = (
        f"{fine:,} of {tried:,} counts are consistent with the sum of the children's ({fine / tried:.2%})"
        if tried
        else "nothing compared"
    )
    if judged.sure.any():
        words += f"; {int(judged.sure.sum()):,} of {int(judged.holds.sum()):,} parents have exact counts that add up"
    if alike is not None and judged.compared:
        kind = "the same numbers, which add no information" if alike else "rounded anew"
        words += f"; parents with one child have the child's number in {share:.0%} of {judged.compared:,} counts: {kind}"
    return NestingLevel(
        link.child,
        link.parent,
        link.by,
        int(judged.holds.sum()),
        int(sizes.sum()),
        {name: many for name, many in by_k.items() if many},
        judged.columns,
        alike,
        judged.reasons,
        words,
    )
