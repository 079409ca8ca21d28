"""Linked areas: bounds and probabilities of every cell of every area, given all areas of a nesting."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unround.bounds.linked import LinkedBounds, linked_bounds
from unround.engines.chains import FamilySamples
from unround.engines.forest import posteriors
from unround.engines.gibbs import EFFORT, GibbsEffort, sample_with_retry
from unround.engines.linked_weights import (
    FAMILY,
    GIBBS,
    IN_TABLES,
    LOOPY,
    MERGED_IN_TABLES,
    NOT_CONVERGED,
    CountWeights,
    DistributionKeeper,
    is_sampled,
    summarise,
    windows_for_tables,
)
from unround.engines.loopy import exchange_messages, without_parts
from unround.engines.multiway_block import sample_tables, why_not_sampled
from unround.errors import InputError
from unround.evidence.block import BY_CHAINS, UNSETTLED, BlockPosterior, CellBounds, Distributions
from unround.evidence.cells import EvidenceBlock
from unround.mechanisms.base import BoolArray
from unround.sums.families import MOST_LINKED, FamilyGroups, Rows, components, find_families
from unround.sums.multiway import MultiwayTable

BATCH = 1500
"""Areas whose weights are listed at a time: some ten thousand numbers each for a profile of ages."""

WIDEST = 60
"""Possible values of a linked cell above which its family is not linked: it would take long and gain little."""

MOST_COUNTS = 400
"""Counts per area above which families of several children are not linked: sampling would take longer than all the rest.
Only children are still merged, which costs nothing."""

NOBODY = 1 << 30
"""Larger than any family: the area has no probabilities from one yet."""

LARGE = "it has more than {most} children, too many for probabilities to be linked"
WIDE = "some count in the family has more than {widest} possible values"
MANY = "its areas have more than {most} counts each, which would take too long to sample"
MISFIT = "no possible counts fit everything published about it and its only child"
"""Why a family is not linked for probabilities."""


@dataclass(frozen=True, slots=True)
class Unlinked:
    """A parent that is not linked with its children for probabilities, and why. Its bounds are linked regardless."""

    parent: int
    why: str


def link(
    block: EvidenceBlock,
    parent: Rows,
    linked: BoolArray,
    *,
    alike: BoolArray | None = None,
    effort: GibbsEffort = EFFORT,
    most: int = MOST_LINKED,
    keep: int | None = None,
) -> Linked:
    """Compute bounds and probabilities of areas in a nesting.

    Notes
    -----
    A parent with one child is merged with it, which is exact. Small families are sampled, others exchange messages;
    multi-way tables are sampled by chains over the tables of the whole family. An area that is a child in one family and
    the parent of another takes its probabilities from the smaller; larger families that exchange messages contribute one.
    Using less information leaves claims calibrated.

    Results do not depend on the order of areas, nor on what else is in the block.
    """
    areas, columns = block.bounds.low.shape
    if parent.shape != (areas,) or linked.shape != (columns,) or (parent >= areas).any():
        raise InputError("every area needs the row of its parent, or -1, and every column whether it is linked.")
    bounds = linked_bounds(block, parent, linked)
    groups = find_families(bounds.parent, most)
    work = Linked(block, bounds, linked, alike, effort, keep)
    batches = components(groups, BATCH)
    alone = np.ones(areas, dtype=np.bool_)
    for rows in batches:
        alone[rows] = False
    work.put_own(replace(block, bounds=bounds.tight), np.flatnonzero(alone))
    for rows in batches:
        work.batch(groups, rows)
    work.unlinked += [Unlinked(at, LARGE.format(most=most)) for at in groups.large]
    work.unlinked.sort(key=lambda family: family.parent)
    return work


class Linked:
    """The results for linked areas, and the work that leads to them.

    - `tight`, `moved`, `parent`, `clashes`: As in `LinkedBounds`.
    - `posterior`: The posterior.
    - `method`: By area, how its probabilities were obtained: a place in `linked_weights.METHODS`.
    - `children`: By area, the number of children of the family it was linked in: 1 where merged, 0 where not linked.
    - `rhat`, `error`: By area, where its family was sampled: the largest R-hat, and the largest standard error of a
      probability; 1 and 0 elsewhere.
    - `unlinked`: Families that are not linked for probabilities.
    - `kept`: The distributions of the area that was asked for, from which its probabilities were taken.
    """

    def __init__(
        self,
        block: EvidenceBlock,
        bounds: LinkedBounds,
        linked: BoolArray,
        alike: BoolArray | None,
        effort: GibbsEffort,
        keep: int | None,
    ) -> None:
        self.block, self.compiled = block, block.compiled
        self.tight, self.moved, self.parent, self.clashes = bounds.tight, bounds.moved, bounds.parent, bounds.clashes
        self.linked, self.alike, self.effort = linked, alike, effort
        areas, columns = bounds.tight.low.shape
        self.posterior, self.keeper = BlockPosterior.empty(areas, columns), DistributionKeeper(keep, linked)
        self.kept = self.keeper.cells
        self.method, self.children = np.zeros(areas, dtype=np.int8), np.zeros(areas, dtype=np.int32)
        self.rhat, self.error = np.ones(areas), np.zeros(areas)
        self.unlinked: list[Unlinked] = []
        self.in_tables = np.zeros(columns, dtype=np.bool_)
        for table in block.compiled.multiway:
            self.in_tables[table.cells] = True
        self.in_forest = linked & ~self.in_tables  # the linked columns of which sampling and messages know all sums

    def put_own(self, block: EvidenceBlock, rows: Rows) -> None:
        """Work out some areas, each on its own, and put them into the results."""
        everyone = np.arange(len(self.method))
        chosen = np.isin(everyone, rows)
        posterior = posteriors(block.only(chosen))
        self.posterior.put(rows, posterior, rows)
        self.method[rows], self.children[rows] = IN_TABLES[posterior.method[rows]], 0
        self.keeper.enter(np.where(chosen, everyone, -1), everyone)
        self.keeper.keep_own(block.only(chosen))

    def batch(self, groups: FamilyGroups, rows: Rows) -> None:
        """Compute a batch of areas that are linked to no area outside it."""
        place = np.full(len(groups.unit), -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        block = replace(self.block, bounds=self.tight).rows(rows)
        unit = place[groups.unit[rows]]
        self._equal_bounds(block.bounds, unit)
        listed = CountWeights(block)
        self._merge(listed, unit, groups.height[rows], rows)
        listed.weights = listed.scale(listed.weights)  # always, or draws would depend on whether messages were exchanged
        posterior = posteriors(listed.block())
        self.keeper.enter(place, unit)
        self.keeper.keep_own(listed.block())
        merged = np.bincount(unit, minlength=len(rows))[unit] > 1
        self.method[rows] = np.where(merged, MERGED_IN_TABLES[posterior.method], IN_TABLES[posterior.method])
        self.children[rows], self.error[rows] = merged, np.where(merged, posterior.error.max(axis=1, initial=0.0), 0.0)
        # Where windows have holes, bounds do not see every contradiction: such units are separated again.
        broken = np.zeros(len(rows), dtype=np.bool_)
        broken[unit[~posterior.possible]] = True
        broken = broken[unit]
        here = set(rows.tolist())
        families = {int(place[at]): place[groups.families[at]] for at in sorted(here & groups.families.keys())}
        families = {at: members for at, members in families.items() if self._possible(broken, at, members, rows)}
        # Before any message is multiplied into the weights.
        windows = windows_for_tables(block.windows, listed, merged[:, np.newaxis] | self.moved[rows])
        small, large = dict[int, Rows](), dict[int, Rows]()
        silent = not without_parts(self.compiled, self.in_forest).size
        for at, members in families.items():
            if self._narrow(listed, at, members, rows):
                width = float(self._widths(listed, at, members).mean())
                (small if silent or is_sampled(len(members), width) else large)[at] = members
        if large:
            self._exchange(listed, large, posterior, rows)
        if small:
            self._sample(listed, small, posterior, rows)
        for table in self.compiled.multiway:
            self._sample_tables(replace(block, windows=windows), table, families, posterior, rows)
        self.posterior.put(rows, posterior, np.arange(len(rows)))
        self._spread(posterior, unit, rows)
        self._separate(rows[broken], rows[broken & (groups.height[rows] > 0)])

    def _separate(self, rows: Rows, heads: Rows) -> None:
        """Compute areas on their own after all."""
        if rows.size:
            self.put_own(self.block, rows)
            self.unlinked += [Unlinked(at, MISFIT) for at in heads.tolist()]

    def _equal_bounds(self, bounds: CellBounds, unit: Rows) -> None:
        """Give areas that are the same people the same bounds, in case propagation stopped early."""
        columns = np.flatnonzero(self.linked)
        for array, join in ((bounds.low, np.maximum), (bounds.high, np.minimum)):
            some = array[:, columns]
            whole = some.copy()
            join.at(whole, unit, some)
            array[:, columns] = whole[unit]

    def _merge(self, listed: CountWeights, unit: Rows, height: Rows, rows: Rows) -> None:
        """Multiply the weights of areas that are the same people; a copied count is used once."""
        columns = np.flatnonzero(self.linked)
        # The representative of a unit collects from all areas above it, and returns the product.
        steps = range(1, int(height.max(initial=0)) + 1)
        for step in steps:
            some = np.flatnonzero(height == step)
            factor = listed.weights[listed.stretches(some, columns)].copy()
            if self.alike is not None and self.alike[rows[some]].any():
                shown = self.block.windows.start >= 0
                both = shown[rows[some]] & shown[rows[unit[some]]]
                twice = (both & self.alike[rows[some], np.newaxis])[:, columns]
                factor[np.repeat(twice.ravel(), listed.width[np.ix_(some, columns)].ravel())] = 1.0
            listed.weights[listed.stretches(unit[some], columns)] *= factor
        for step in steps:
            some = np.flatnonzero(height == step)
            listed.weights[listed.stretches(some, columns)] = listed.weights[listed.stretches(unit[some], columns)]

    def _possible(self, broken: BoolArray, at: int, members: Rows, rows: Rows) -> bool:
        """Return whether all areas of a family are possible."""
        if broken[at] or broken[members].any():
            self.unlinked.append(Unlinked(int(rows[at]), MISFIT))
            return False
        return True

    def _narrow(self, listed: CountWeights, at: int, members: Rows, rows: Rows) -> bool:
        """Return whether the cells of a family outside multi-way tables are few and narrow enough to be linked."""
        width = self._widths(listed, at, members)
        if not width.size:
            return False
        if np.count_nonzero(~self.in_tables) > MOST_COUNTS:
            self.unlinked.append(Unlinked(int(rows[at]), MANY.format(most=MOST_COUNTS)))
            return False
        if width.min() < 1 or width.max() > WIDEST:
            self.unlinked.append(Unlinked(int(rows[at]), WIDE.format(widest=WIDEST)))
            return False
        return True

    def _widths(self, listed: CountWeights, at: int, members: Rows) -> Rows:
        """Return the number of possible counts of each linked cell of a family outside multi-way tables."""
        return np.asarray(listed.width[np.ix_(np.array([at, *members]), np.flatnonzero(self.in_forest))])

    def _of_forest(self, distributions: Distributions) -> Distributions:
        """Return distributions without those of multi-way tables, not all of whose sums were used."""
        return (
            replace(distributions, start=np.where(self.in_tables, -1, distributions.start))
            if self.in_tables.any()
            else distributions
        )

    def _exchange(self, listed: CountWeights, families: dict[int, Rows], posterior: BlockPosterior, rows: Rows) -> None:
        """Exchange messages in large families, and multiply them into the weights."""
        number = _sizes(families, len(rows))
        some = np.flatnonzero(number)
        place = np.full(len(rows), -1, dtype=np.int64)
        place[some] = np.arange(len(some))
        here = {int(place[at]): place[members] for at, members in families.items()}
        few = listed.take(some)
        beliefs, factor = exchange_messages(few, here, self.in_forest)
        # Where no counts add up any more, the area keeps its own posterior.
        known = np.flatnonzero(np.bincount(few.cell // listed.low.shape[1], beliefs.chances, len(some)) > 0)
        beliefs = self._of_forest(beliefs)
        summarise(posterior, beliefs, some[known], known)
        self.keeper.take(beliefs, some[known], known)
        listed.weights[listed.stretches(some, np.arange(listed.low.shape[1]))] = few.scale(few.weights * factor)
        self.method[rows[some[known]]], self.children[rows[some[known]]] = LOOPY, number[some[known]]
        if listed.prior is not None:  # a parent has none of its own: it follows from its children's
            listed.prior = listed.prior.without(np.array(list(families)), self.in_forest)

    def _sample(self, listed: CountWeights, families: dict[int, Rows], posterior: BlockPosterior, rows: Rows) -> None:
        """Sample small families."""
        taken = np.full(len(rows), NOBODY)
        for drawn in sample_with_retry(listed, families, self.in_forest, self.effort):
            self._take(replace(drawn, chances=self._of_forest(drawn.chances)), GIBBS, taken, posterior, rows)
        self.unlinked += [Unlinked(at, NOT_CONVERGED) for at in rows[drawn.heads[drawn.failed]].tolist()]

    def _sample_tables(
        self, block: EvidenceBlock, table: MultiwayTable, families: dict[int, Rows], posterior: BlockPosterior, rows: Rows
    ) -> None:
        """Sample families in one multi-way table."""
        chosen = dict[int, Rows]()
        for at, members in families.items():
            why = why_not_sampled(block, table, self.linked, np.array([at, *members]))
            if why:
                self.unlinked.append(Unlinked(int(rows[at]), why))
            else:
                chosen[at] = members
        taken = np.full(len(rows), NOBODY)
        for drawn in sample_tables(block, table, chosen):
            self._take(drawn, FAMILY, taken, posterior, rows)
            self.unlinked += [Unlinked(at, NOT_CONVERGED) for at in rows[drawn.heads[drawn.failed]].tolist()]
        if len(self.compiled.multiway) == 1:  # of several, another may be the one without an answer
            posterior.method[(taken < NOBODY) & (posterior.method == UNSETTLED)] = BY_CHAINS

    def _take(self, drawn: FamilySamples, method: int, taken: Rows, posterior: BlockPosterior, rows: Rows) -> None:
        """Copy sampled posteriors, where an area has none from a smaller family; `taken` has the size of that, by area.

        Of two families of the same size, the one in which the area is the parent counts.
        """
        number, head = np.bincount(drawn.family)[drawn.family] - 1, np.diff(drawn.family, prepend=-1) > 0
        for n in np.unique(number).tolist():
            some = np.flatnonzero(~drawn.failed[drawn.family] & (number == n) & (n < taken[drawn.rows]))
            some = some[np.argsort(head[some], kind="stable")]  # of an area named twice, the last entry counts
            at, family = drawn.rows[some], drawn.family[some]
            summarise(posterior, drawn.chances, at, some)
            if drawn.error is not None:
                posterior.error[at] = np.where(drawn.chances.start[some] >= 0, drawn.error[some], posterior.error[at])
            self.keeper.take(drawn.chances, at, some)
            taken[at] = n
            self.method[rows[at]], self.children[rows[at]] = method, n
            self.rhat[rows[at]], self.error[rows[at]] = drawn.rhat[family], drawn.spread[family]

    def _spread(self, posterior: BlockPosterior, unit: Rows, rows: Rows) -> None:
        """Copy the results of a representative to all areas that are the same people."""
        columns = np.flatnonzero(self.linked)
        some = np.flatnonzero(unit != np.arange(len(unit)))
        self.posterior.put(rows[some], posterior, unit[some], columns)
        for array in (self.method, self.children, self.rhat, self.error, self.posterior.method):
            array[rows[some]] = array[rows[unit[some]]]


def _sizes(families: dict[int, Rows], areas: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Return by area the number of children of its family, the smaller of two; 0 without a family."""
    number = np.zeros(areas, dtype=np.int32)
    for at, members in sorted(families.items(), key=lambda family: -len(family[1])):
        number[[at, *members]] = len(members)
    return number
