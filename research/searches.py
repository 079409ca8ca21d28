"""The paper's searches on a simulated census or on any release, and what models predict for them.

As the paper states its conditions: a group of cells is looked at if every published value in it is above 10, and it is
a find if |total − Σ parts| has one given value. Sex: row 8's men and women under the exact population. Age: the three
broad groups under the same. Without an exact total: every partition of the profile into four or three parts, in the
columns total, men and women where they exist.

Two predictions stand beside what is found. The paper's takes the groups that were looked at and assumes that the
remainders of their true counts are uniform. The other knows the simulated true counts: for each group the chance, over
the rounding alone, that all its values come out above 10 with the residual in question. Both leave counts of 25 %
sample data in: from 11 on they are rounded exactly like the others, and smaller ones are never published above 10.

On a release, which sums there are is found in the release itself; two and three parts under the exact population, four and
three under a rounded total. What rounding cannot produce is counted too: were populations adjusted, such residuals would be
there.

`Compound` is what the searches leave lying. They look at one sum at a time; an audit joins all sums of age by sex: what one
says about a count goes into every other sum that this count stands in, and so on through the whole table.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from research.paper import AREAS, OVER, SEARCHES, Search
from unround.audits import Auditor, Model
from unround.audits.claims import ClaimKind
from unround.comparison.material import profile_columns
from unround.expectation import expectation, interval, surprise
from unround.mechanisms import Exact, Rounding, Sample
from unround.options import THRESHOLD, AuditOptions
from unround.prior import Prior
from unround.regions import published_exactly
from unround.release import ABSENT, SUPPRESSED, Counts, Release
from unround.shown import Plain
from unround.simulation import MISSING, CountBlock, Rounds, Schema, schema
from unround.structure import Structure
from unround.sums.forest import Equations
from unround.tables.spool import Stage, survey

BASE = 5
LEVEL = 0.999  # what the intervals hold

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Place = tuple[int, int]  # A row of the schema and a column (0 total, 1 men, 2 women)


@dataclass(frozen=True, slots=True)
class FindPrediction:
    """How many finds a model expects: with parts that add up to less than the total, and to more.

    Finds are taken as Poisson counts: they are rare and, given the true counts, next to independent.
    """

    below: float
    above: float

    @property
    def mean(self) -> float:
        """Finds of both kinds."""
        return self.below + self.above

    @property
    def interval(self) -> tuple[int, int]:
        """What holds the number of finds with 99.9 % probability."""
        return interval(self.mean, LEVEL)

    def explains(self, below: int, above: int) -> bool:
        """Whether the finds, and those of each kind, lie in their intervals."""
        pairs = ((below + above, self.mean), (below, self.below), (above, self.above))
        return all(low <= finds <= high for finds, mean in pairs for low, high in [interval(mean, LEVEL)])

    def to_json(self, below: int, above: int) -> dict[str, Any]:
        """Return it as plain data, beside what was found."""
        low, high = self.interval
        return {
            "mean": self.mean,
            "low": low,
            "high": high,
            "below": self.below,
            "above": self.above,
            "inside": low <= below + above <= high,
            "surprise": surprise(below + above, self.mean),
            "surprise_below": surprise(below, self.below),
            "surprise_above": surprise(above, self.above),
        }


def uniform(search: Search, groups: int) -> FindPrediction:
    """Predict from uniform remainders and independent rounding, as the paper does."""
    model = expectation(search.parts, exact_total=search.exact_total, base=BASE)
    return FindPrediction(float(groups * model.share(search.residual)), float(groups * model.share(-search.residual)))


@dataclass(kw_only=True)
class Searched:
    """What one search found."""

    search: Search = field(kw_only=False)
    groups: int = 0  # in how many groups of cells every published value is above 10
    below: int = 0  # finds with parts that add up to less than the total, and to more
    above: int = 0

    @property
    def found(self) -> int:
        """All finds."""
        return self.below + self.above

    @property
    def uniform(self) -> FindPrediction:
        """What uniform remainders predict."""
        return uniform(self.search, self.groups)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        search = self.search
        return {
            "search": search.key,
            "title": search.title,
            "condition": condition(search),
            "groups": self.groups,
            "found": self.found,
            "below": self.below,
            "above": self.above,
            "values": self.found * search.values,
            "paper": {"groups": search.groups, "found": search.found},
        }


@dataclass(kw_only=True)
class Outcome(Searched):
    """What one search found in a simulated census; `add` looks through some of its areas."""

    kinds: int = field(kw_only=False)  # how many different sums of the profile it looked at, each column for itself
    expected_groups: float = 0.0  # how many groups the true counts let expect
    repeated: int = 0  # finds in areas that hold the same people as the one area inside them
    sizes: FindPrediction = FindPrediction(0.0, 0.0)  # what the simulated true counts predict

    def add(self, block: CountBlock, sums: list[tuple[Place, tuple[Place, ...]]], repeats: NDArray[np.bool_]) -> None:
        """Look through one block of areas, at the sums in these places."""
        assert block.published is not None
        search = self.search
        total, parts = _taken(block.published, sums)
        looked_at = (total > OVER) & (parts > OVER).all(2)
        residual = total - parts.sum(2)
        below, above = looked_at & (residual == search.residual), looked_at & (residual == -search.residual)
        self.groups += int(looked_at.sum())
        self.below += int(below.sum())
        self.above += int(above.sum())
        self.repeated += int((below | above)[repeats].sum())
        true_total, true_parts = _taken(block.true, sums)
        # Hidden areas are no matter of chance; and a count of 10 or less is never published above 10.
        possible = (total != MISSING) & (parts != MISSING).all(2) & (true_parts > OVER).all(2)
        looked, is_below, is_above = chances(
            true_total[possible], true_parts[possible], search.residual, exact_total=search.exact_total
        )
        self.expected_groups += float(looked.sum())
        sizes = self.sizes
        self.sizes = FindPrediction(sizes.below + float(is_below.sum()), sizes.above + float(is_above.sum()))

    @property
    def inside(self) -> bool:
        """Whether the finds lie in the interval that the true counts let expect."""
        low, high = self.sizes.interval
        return low <= self.found <= high

    @property
    def explained_by(self) -> str | None:
        """Which prediction explains what was found: "both", "sizes", "uniform" or "neither"; None with nowhere to look."""
        if not self.groups:
            return None
        uniform, sizes = (model.explains(self.below, self.above) for model in (self.uniform, self.sizes))
        if uniform and sizes:
            return "both"
        return "sizes" if sizes else "uniform" if uniform else "neither"

    @property
    def evidence_for_sizes(self) -> float:
        """The logarithm of how many times as likely the sizes make these finds, by direction, as uniform remainders."""
        pairs = ((self.below, self.sizes.below, self.uniform.below), (self.above, self.sizes.above, self.uniform.above))
        if any(finds and not (by_size and uniform) for finds, by_size, uniform in pairs):
            return 0.0  # a model that rules out what was found is none to weigh by
        return sum(
            (finds * log(by_size / uniform) if finds else 0.0) - by_size + uniform for finds, by_size, uniform in pairs
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return super().to_json() | {
            "kinds": self.kinds,
            "expected_groups": self.expected_groups,
            "repeated": self.repeated,
            "uniform": self.uniform.to_json(self.below, self.above),
            "sizes": self.sizes.to_json(self.below, self.above),
            "explained_by": self.explained_by,
            "evidence_for_sizes": self.evidence_for_sizes,
        }


@dataclass(frozen=True, slots=True)
class Experiment(Plain):
    """The paper's experiment on a simulated census, or on several, one after the other.

    `areas` is how many each has; `repeated_areas` are those that hold the same people as the one area inside them; `keys`
    says whether counts were rounded by the keys of their records.
    """

    ALSO = ("level", "inside", "evidence_for_sizes")

    areas: int
    seeds: tuple[int, ...]
    rows: str
    repeated_areas: int
    outcomes: tuple[Outcome, ...]
    keys: bool = False

    def __getitem__(self, key: str) -> Outcome:
        """Return the outcome of one search."""
        return {outcome.search.key: outcome for outcome in self.outcomes}[key]

    @property
    def level(self) -> float:
        """What the intervals hold."""
        return LEVEL

    @property
    def inside(self) -> bool:
        """Whether every count lies in the interval predicted from the true counts."""
        return all(outcome.inside for outcome in self.outcomes)

    @property
    def evidence_for_sizes(self) -> float:
        """The logarithm of how many times as likely the sizes make all finds as uniform remainders."""
        return sum(outcome.evidence_for_sizes for outcome in self.outcomes)


def condition(search: Search) -> str:
    """Say what makes a find, as a formula."""
    total = "population" if search.exact_total else "total"
    return f"|{total} − Σ {search.parts} parts| = {search.residual}"


# -- where to look ----------------------------------------------------------------------------------------------------


def places(search: Search, table: Schema) -> list[tuple[Place, tuple[Place, ...]]]:
    """Return the sums that a search looks at: the place of the total, and those of the parts."""
    at = table.index
    if search.exact_total:
        total = (at[1], 0)
        if search.parts == 2:
            return [(total, ((at[8], 1), (at[8], 2)))]
        return [(total, ((at[9], 0), (at[13], 0), (at[24], 0)))]
    sums = []
    for layout in table.groups(search.parts):
        rows = [at[row] for row in (layout.total, *layout.parts)]
        columns = range(3) if all(table.rows[row].has_sex for row in rows) else range(1)
        sums += [((rows[0], sex), tuple((row, sex) for row in rows[1:])) for sex in columns]
    return sums


def _taken(counts: NDArray[np.int32], sums: list[tuple[Place, tuple[Place, ...]]]) -> tuple[Ints, Ints]:
    """Pick totals (areas × sums) and parts (areas × sums × parts) out of a block's counts."""
    rows = np.array([[total[0], *(part[0] for part in parts)] for total, parts in sums])
    columns = np.array([[total[1], *(part[1] for part in parts)] for total, parts in sums])
    picked = counts[:, rows, columns].astype(np.int64)
    return picked[:, :, 0], picked[:, :, 1:]


# -- what to expect, given the true counts ----------------------------------------------------------------------------


def chances(total: Ints, parts: Ints, residual: int, *, exact_total: bool) -> tuple[Floats, Floats, Floats]:
    """Return for each group how likely it is looked at, is a find below its total, and is one above.

    Every cell goes down by its remainder or up by the rest of the base. So the residual is a constant less `base`
    times the number of parts that go up (plus one if the total does): it is enough to follow that number, weighing
    each way by its probability and leaving out ways that end at or below `OVER`.
    """
    ups = np.zeros((parts.shape[1] + 1, len(parts)))
    ups[0] = 1.0
    for at in range(parts.shape[1]):
        goes_down, goes_up = _ways(parts[:, at])
        ups[1:] = ups[1:] * goes_down + ups[:-1] * goes_up
        ups[0] *= goes_down
    looked_at = ups.sum(0)
    constant = (parts % BASE).sum(1)
    if exact_total:
        looked_at = looked_at * (total > OVER)
        ways = [(constant, (total > OVER).astype(np.float64))]
    else:
        total_down, total_up = _ways(total)
        looked_at = looked_at * (total_down + total_up)
        ways = [(constant - total % BASE, total_down), (constant - total % BASE + BASE, total_up)]
    finds = []
    for wanted in (residual, -residual):
        find = np.zeros(len(parts))
        for start, weight in ways:
            number, off = np.divmod(start - wanted, BASE)
            fits = (off == 0) & (number >= 0) & (number < len(ups))
            find += np.where(fits, ups[np.clip(number, 0, len(ups) - 1), np.arange(len(parts))] * weight, 0.0)
        finds.append(find)
    return looked_at, finds[0], finds[1]


def _ways(true: Ints) -> tuple[Floats, Floats]:
    """Return the probabilities that a count goes down, or up, and comes out above `OVER`."""
    rest = true % BASE
    down = np.where(true - rest > OVER, 1 - rest / BASE, 0.0)
    return down, np.where(true - rest + BASE > OVER, rest / BASE, 0.0)


# -- the experiment ---------------------------------------------------------------------------------------------------


def experiment(
    areas: int = AREAS,
    seed: int = 1,
    rows: str = "all",
    progress: Callable[[int], None] | None = None,
    also: Callable[[CountBlock], None] | None = None,
    *,
    keys: bool = False,
) -> Experiment:
    """Run the paper's searches on a simulated census.

    >>> run = experiment(areas=300, seed=1, rows="age")
    >>> run["sex exact"].groups <= 300, run["sex exact"].search.residual
    (True, 8)
    """
    table = schema(rows)
    looked = [(Outcome(search, len(sums)), sums) for search in SEARCHES for sums in [places(search, table)]]
    children: dict[str, int] = {}
    repeated = done = 0
    for block in Rounds(seed, keys).counts(areas, rows):
        repeats = np.fromiter(_repeats(block, children), dtype=np.bool_)
        repeated += int(repeats.sum())
        for outcome, sums in looked:
            outcome.add(block, sums, repeats)
        if also:
            also(block)
        done += len(repeats)
        if progress:
            progress(done)
    return Experiment(areas, (seed,), rows, repeated, tuple(outcome for outcome, _ in looked), keys)


def _repeats(block: CountBlock, children: dict[str, int]) -> Iterator[bool]:
    """Yield for each area whether it has just one area inside; those inside come first."""
    for region, parent in zip(block.regions["region"], block.regions["parent"], strict=True):
        yield children.pop(region, 0) == 1
        if parent is not None:
            children[parent] = children.get(parent, 0) + 1


AREAS_AT_ONCE = 2048


@dataclass(kw_only=True)
class Finds(Searched):
    """What one search found in a release."""

    sums: Equations = field(kw_only=False)  # the sums that it looks at, as positions of columns
    impossible: int = 0  # groups whose parts cannot add up to the total, however they were rounded

    def add(self, counts: Counts) -> None:
        """Look through some areas: areas × columns, with the codes of `release` for what is absent."""
        for total, parts in self.sums:
            cells = counts[:, [total, *parts]].astype(np.int64)
            cells = cells[(cells > OVER).all(axis=1)]
            residual = cells[:, 0] - cells[:, 1:].sum(axis=1)
            self.groups += len(cells)
            self.below += int((residual == self.search.residual).sum())
            self.above += int((residual == -self.search.residual).sum())
            self.impossible += int((np.abs(residual) > self.farthest).sum())

    @property
    def farthest(self) -> int:
        """The largest |residual| that rounding can produce."""
        return (BASE - 1) * (self.search.parts + (not self.search.exact_total))

    @property
    def within(self) -> bool | None:
        """Whether the number of finds is in the interval around the prediction; None with nowhere to look."""
        low, high = self.uniform.interval
        return low <= self.found <= high if self.groups else None

    def to_json(self, names: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return it as plain data; `names` are those of the columns."""
        return super().to_json() | {
            "sums": [{"total": names[total], "parts": [names[part] for part in parts]} for total, parts in self.sums],
            "impossible": self.impossible,
            "predicted": self.uniform.to_json(self.below, self.above),
            "within": self.within,
        }


@dataclass(frozen=True)
class ReleaseSearches:
    """The paper's searches on one release."""

    source: str  # the file; and what it is, where that is known
    product: str | None
    areas: int  # how many areas it has
    columns: tuple[str, ...]  # what its columns are called
    exact: tuple[str, ...]  # the exact populations that head a sum; where none does, all that there are
    finds: tuple[Finds, ...]  # one for every search
    notes: tuple[str, ...] = field(default=())  # what to know

    def __getitem__(self, key: str) -> Finds:
        """Return what one search found."""
        return {finds.search.key: finds for finds in self.finds}[key]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data, as `python -m unround.research paper --release FILE --json` prints it."""
        return {
            "source": self.source,
            "product": self.product,
            "areas": self.areas,
            "exact": list(self.exact),
            "over": OVER,
            "searches": [finds.to_json(self.columns) for finds in self.finds],
            "notes": list(self.notes),
        }


def search_release(release: Release, progress: Stage = lambda *_: None) -> ReleaseSearches:
    """Run the paper's searches on a release."""
    with tempfile.TemporaryDirectory(prefix="unround-paper-") as folder:
        spool, structure = survey(release, Path(folder), progress)
        exact = populations(structure)
        finds = tuple(Finds(search, sums_of(search, structure, exact)) for search in SEARCHES)
        for done, block in enumerate(spool.blocks(AREAS_AT_ONCE)):
            progress("Searching", done * AREAS_AT_ONCE, spool.rows)
            for search in finds:
                search.add(block.counts)
        progress("Searching", spool.rows, spool.rows)
        areas = spool.rows
    columns = tuple(column.key for column in release.columns)
    used = {total for search in finds if search.search.exact_total for total, _ in search.sums}
    return ReleaseSearches(
        source=release.source,
        product=release.product,
        areas=areas,
        columns=columns,
        exact=tuple(columns[at] for at in sorted(used or exact)),
        finds=finds,
        notes=tuple(_notes(structure, exact)),
    )


def populations(structure: Structure) -> set[int]:
    """Return the exact columns that count people; where none is called so, all that are exact."""
    exact = {at for at, how in enumerate(structure.mechanisms) if isinstance(how, Exact)}
    people = {at for at in exact if published_exactly(structure.columns[at].label)[1]}
    return people or exact


def sums_of(search: Search, structure: Structure, exact: set[int]) -> Equations:
    """Return the sums that a search looks at: with so many parts rounded to base 5, and the total that it asks for.

    A rounded total that shows the count of an exact population stands for it.
    """
    rounded = {at for at, how in enumerate(structure.mechanisms) if isinstance(how, Rounding | Sample) and how.base == BASE}
    kept = [kept_sum.equation for kept_sum in structure.sums]
    looked_at: dict[tuple[int, frozenset[int]], tuple[int, tuple[int, ...]]] = {}
    for total, parts in kept:
        if len(parts) != search.parts or not rounded.issuperset(parts):
            continue
        heads = _exact_for(total, kept, exact) if search.exact_total else {total} & rounded
        for head in sorted(heads):
            looked_at.setdefault((head, frozenset(parts)), (head, parts))
    return tuple(looked_at.values())


def _exact_for(total: int, kept: Iterable[tuple[int, tuple[int, ...]]], exact: set[int]) -> set[int]:
    """Return the exact columns that show the count of a total."""
    same = {total}
    for head, parts in kept:
        if len(parts) == 1 and total in (head, parts[0]):
            same |= {head, parts[0]}
    return same & exact


def _notes(structure: Structure, exact: set[int]) -> list[str]:
    """Say what kept searches from looking."""
    notes = []
    bases = {getattr(how, "base", None) for how in structure.mechanisms if isinstance(how, Rounding | Sample)}
    if BASE not in bases:
        notes.append(f"No column of this release is rounded at random to base {BASE}, which is what the searches are for.")
    if not exact:
        notes.append("No population is published exactly, so the searches under one have nowhere to look.")
    return notes


@dataclass
class Compound(Plain):
    """Counts that follow from all sums of age by sex together, with the exact population, and how many were right.

    - `proved_by_depth`: Counts that have one possible value, by how many sums follow one upon the other in the argument.
    - `likely`, `likely_right`: Counts with a probability of at least the threshold under the paper's flat prior, and
      those that were right.
    """

    ALSO = ("proved",)

    threshold: float = THRESHOLD
    areas: int = 0  # areas with published counts, and their rounded counts
    cells: int = 0
    proved_by_depth: dict[int, int] = field(default_factory=dict)
    proved_wrong: int = 0  # how many of these are not the true ones; none, unless something is broken
    likely: int = 0
    likely_right: int = 0

    def __post_init__(self) -> None:
        columns, equations, where = profile_columns("age")  # ages by sex, under the exact population
        mechanisms = tuple(column.mechanism for column in columns if column.mechanism is not None)
        self._model = Model.build(columns, mechanisms, equations, ("layout",) * len(equations))
        self._auditor = Auditor(self._model, Prior.flat(), AuditOptions(threshold=self.threshold))
        index = schema("age").index
        self._rows, self._sexes = np.array([(index[row], sex) for row, sex in where]).T

    @property
    def proved(self) -> int:
        """How many counts have one possible value."""
        return sum(self.proved_by_depth.values())

    def add(self, block: CountBlock) -> None:
        """Audit one block of areas."""
        assert block.published is not None
        counts = block.published[:, self._rows, self._sexes].astype(np.int32)
        true = block.true[:, self._rows, self._sexes]
        counts = np.where(counts == MISSING, SUPPRESSED, counts).astype(np.int32)
        claims = self._auditor.infer(np.ascontiguousarray(counts), np.zeros(len(counts), dtype=bool)).claims
        self.areas += int((counts > ABSENT).any(axis=1).sum())
        self.cells += int((counts > ABSENT)[:, ~self._model.exact].sum())
        pinned, likely = claims.certain, claims.of_kind(ClaimKind.LIKELY)
        for depth, number in zip(*np.unique(claims.depth[pinned], return_counts=True), strict=True):
            self.proved_by_depth[int(depth)] = self.proved_by_depth.get(int(depth), 0) + int(number)
        right = claims.values == true
        self.proved_wrong += int((pinned & ~right).sum())
        self.likely += int(likely.sum())
        self.likely_right += int((likely & right).sum())
