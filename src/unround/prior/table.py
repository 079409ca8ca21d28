"""The prior of a whole release as one table of weights a column.

Generated from the top: a total that is part of nothing has its own fitted distribution; given a total, its parts are
Dirichlet-multinomial (`shares`); where every count is split by sex, totals come first, and those that have no parts
are split. As a Dirichlet-multinomial is a product over the parts divided by a function of the total,

    P(x | t) = Π g(xᵢ; αᵢ) / g(t; Σ αᵢ)   with   g(x; α) = Γ(x + α) / (Γ(α) x!),

the weight of a count is g for every sum that it is a part of, divided by g for every sum that it is the total of. So a
total with several partitions counts once, and totals come out as they are distributed, however many parts they have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from unround.batch.types import CompiledSums, PriorTable
from unround.infer.plan import TOTAL
from unround.mechanisms import Mechanism
from unround.mechanisms.base import FloatArray
from unround.prior.histograms import present
from unround.prior.shares import FEWEST, MOST_EVEN, MOST_UNEVEN, Noise, Shares, Spread, mean_shares, spread_of
from unround.release import Counts

DETAIL = 1500
"""Totals up to this one get weights of their own; larger ones are flat, and so are the parts that go with them."""

LEAST_DETAIL = 30
"""Parts get at least so many weights of their own, however small their share."""

RANGE = 300.0
"""Natural logarithms of weights stay within this of 0: the product of the three weights of a pair is then still a float."""


@dataclass(frozen=True, slots=True)
class Split:
    """One sum as the prior sees it: in the layer of the totals where it runs through all sexes."""

    total: int
    parts: tuple[int, ...]


@dataclass(slots=True)
class Structure:
    """The sums that carry probabilities, and the splits by sex that have none below."""

    sums: list[Split] = field(default_factory=list)
    pairs: list[tuple[int, int, int]] = field(default_factory=list)
    crossed: dict[int, int] = field(default_factory=dict)
    """For the total of each pair, how many sums of pairs it heads."""


def structure_of(compiled: CompiledSums) -> Structure:
    """Read the sums off a layout: parallel ones as one between totals."""
    plan = compiled.plan
    found = Structure()
    for node in plan.nodes:
        if node.is_pair and not node.copy:
            total, first, second = node.cells
            found.pairs.append((total, first, second))
            found.crossed[total] = 0
    for link, equations in zip(plan.links, compiled.links_of, strict=True):
        total, parts = compiled.equations[equations[0]]
        if link.is_pair:
            total, *rest = (plan.nodes[plan.home[cell][0]].cells[TOTAL] for cell in (total, *parts))
            parts = tuple(rest)
            found.crossed[total] = found.crossed.get(total, 0) + 1
        found.sums.append(Split(total, parts))
    return found


def memberships(columns: int, sums: Sequence[Split]) -> tuple[list[list[tuple[int, int]]], list[list[int]]]:
    """Return, for every column, the sums that it is a part of (and as which part), and those that it is the total of."""
    above: list[list[tuple[int, int]]] = [[] for _ in range(columns)]
    below: list[list[int]] = [[] for _ in range(columns)]
    for s, one in enumerate(sums):
        below[one.total].append(s)
        for place, part in enumerate(one.parts):
            above[part].append((s, place))
    return above, below


def log_g(alpha: float, size: int) -> FloatArray:
    """Return log g(x; α) = log Γ(x + α)/(Γ(α) x!) for x from 0 to size − 1."""
    x = np.arange(1, size)
    return np.concatenate([[0.0], np.cumsum(np.log1p((alpha - 1) / x))])


class Weigher:
    """Builds the table; see the module.

    Parameters
    ----------
    compiled : CompiledSums
        The sums.
    mechanisms : sequence of Mechanism
        How each column was published.
    sample : array
        Published counts of some areas × columns.
    distributions : array
        The fitted distributions of true counts, columns × counts.
    shared : mapping, optional
        For totals with a part of theirs: in which share of the areas the total uses the part's random number.
    """

    def __init__(
        self,
        compiled: CompiledSums,
        mechanisms: Sequence[Mechanism],
        sample: Counts,
        distributions: FloatArray,
        shared: Mapping[tuple[int, int], float] | None = None,
    ) -> None:
        self.shared = shared or {}
        self.structure = structure_of(compiled)
        self.columns = compiled.columns
        self.sample = sample
        kinds = {mechanism: Noise(mechanism) for mechanism in dict.fromkeys(mechanisms)}
        self.noise = [kinds[mechanism] for mechanism in mechanisms]
        self.distributions = _shared(distributions, self.structure.sums, [one.typical for one in self.noise])
        self.above, self.below = memberships(compiled.columns, self.structure.sums)
        self.echoes = self._find_echoes()
        self.shares: dict[int, Shares] = {}
        self.detail = np.zeros(compiled.columns, dtype=np.int64)

    def _find_echoes(self) -> frozenset[int]:
        """Return the sums that only show a count once more: what is known of the count does not come from there."""
        paired = {cell for pair in self.structure.pairs for cell in pair}
        return frozenset(
            s
            for s, one in enumerate(self.structure.sums)
            if len(one.parts) == 1 and not self.above[one.total] and self.below[one.total] == [s] and one.total not in paired
        )

    def _is_top(self, column: int) -> bool:
        return all(s in self.echoes for s, _ in self.above[column])

    # -- how totals split ----------------------------------------------------------------------------------------------

    def fit_shares(self) -> dict[int, Shares]:
        """Work out the shares of every sum of two parts or more, totals before their parts."""
        for s in self._from_the_top():
            one = self.structure.sums[s]
            if len(one.parts) > 1:
                guess = 1 / (1 + self._alpha(one.total))
                self.shares[s] = self._fitted(one.total, one.parts, guess)
        return self.shares

    def _from_the_top(self) -> Iterator[int]:
        """Go through the sums so that a total comes as a part before it comes as a total."""
        waiting = [len(above) for above in self.above]
        ready = [column for column in range(self.columns) if not waiting[column]]
        for column in ready:  # grows while it is gone through
            for s in self.below[column]:
                yield s
                for part in self.structure.sums[s].parts:
                    waiting[part] -= 1
                    if not waiting[part]:
                        ready.append(part)
        # Through exact counts sums may form a circle, which has no top.
        done = set(ready)
        yield from (s for s, one in enumerate(self.structure.sums) if one.total not in done)

    def _alpha(self, column: int) -> float:
        """Return how even a count is over areas: its parameter as a part, or the shape of its own distribution.

        If the parts of a total vary only as it does itself, their parameters add up to it.
        """
        found = [self.shares[s].alphas[place] for s, place in self.above[column] if s in self.shares]
        for s, _ in self.above[column]:
            if len(self.structure.sums[s].parts) == 1 and s not in self.echoes:
                found.append(self._alpha(self.structure.sums[s].total))
        if found:
            return float(min(found))
        fitted = self.distributions[column]
        x = np.arange(len(fitted))
        mean = float(fitted @ x)
        variance = float(fitted @ (x - mean) ** 2)
        return float(np.clip(mean**2 / max(variance - mean, 1e-9), MOST_UNEVEN, MOST_EVEN))

    def _fitted(self, total: int, parts: tuple[int, ...], guess: float) -> Shares:
        t, y = self._published(total, parts)
        return Shares(self._mean(total, parts, t, y), 1 / self._spread(total, parts, t, y).towards(guess) - 1)

    def _mean(self, total: int, parts: tuple[int, ...], t: FloatArray, y: FloatArray) -> FloatArray:
        """Return the mean shares of parts, areas counted by what shares no random number with them."""
        above = next((self.structure.sums[s].total for s, _ in self.above[total]), None)
        if above is None or not any((total, part) in self.shared for part in parts):
            return mean_shares(t, y)
        sizes, y = self._published(above, (total, *parts))
        return mean_shares(y[:, 0], y[:, 1:], sizes)

    def _published(self, total: int, parts: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
        counts = self.sample[:, [total, *parts]]
        whole = counts[present(counts).all(axis=1)].astype(np.float64)
        return whole[:, 0], whole[:, 1:]

    def _spread(self, total: int, parts: tuple[int, ...], t: FloatArray, y: FloatArray) -> Spread:
        least = max(2.0, 4 * self.noise[total].largest ** 0.5)  # smaller totals are mostly rounding
        usable = t >= least
        if np.count_nonzero(usable) < FEWEST:
            return Spread(0.0, 0.0)
        # Far larger areas are of another kind (a whole city), and alike for being large.
        usable &= t <= 8 * np.median(t[usable])
        t, y = t[usable], y[usable]
        shared = np.array([self.shared.get((total, part), 0.0) for part in parts]) if self.shared else None
        return spread_of(t, y, [self.noise[part] for part in parts], self.noise[total].typical, shared)

    def fit_pairs(self) -> dict[int, Shares]:
        """Work out how pairs split, by their totals; those with too few people take after all the others."""
        spreads, halves = {}, {}
        for total, *rest in self.structure.pairs:
            parts = tuple(rest)
            t, y = self._published(total, parts)
            spreads[total], halves[total] = self._spread(total, parts, t, y), self._mean(total, parts, t, y)
        weight = sum(spread.weight for spread in spreads.values())
        pooled = sum(spread.weighted for spread in spreads.values()) / weight if weight else 0.0
        pooled = max(pooled, 1 / (1 + MOST_EVEN))
        return {total: Shares(halves[total], 1 / spreads[total].towards(pooled) - 1) for total in spreads}

    # -- the table -----------------------------------------------------------------------------------------------------

    def table(self) -> PriorTable:
        """Return the weights of all columns."""
        self.fit_shares()
        pairs = self.fit_pairs()
        self._set_detail(pairs)
        logs = [np.zeros(int(size) + 1) for size in self.detail]
        layered = {column for _, *parts in self.structure.pairs for column in parts}
        for s in range(len(self.structure.sums)):
            self._add_sum(s, logs)
        for column in range(self.columns):
            # A column that is part of several sums has its own distribution in each: all but one are taken out again.
            own = (0 if column in layered else 1) - len(self.above[column])
            if own:
                logs[column] += own * self._log_own(column, logs[column].size)
        for total, *parts in self.structure.pairs:
            # Where sums of pairs lie below, the split follows from theirs: one takes it out, more take it out again.
            times = 1 - self.structure.crossed[total]
            if times:
                self._add(total, tuple(parts), pairs[total], logs, times)
        return _packed(logs)

    def _add_sum(self, s: int, logs: list[FloatArray]) -> None:
        one = self.structure.sums[s]
        if s in self.shares:
            self._add(one.total, one.parts, self.shares[s], logs, 1)
            return
        # The same count twice: it is distributed as the part is.
        (part,) = one.parts
        logs[one.total] -= self._log_own(part, logs[one.total].size)
        logs[part] += self._log_own(part, logs[part].size)

    def _add(self, total: int, parts: tuple[int, ...], shares: Shares, logs: list[FloatArray], times: int) -> None:
        """Multiply by the probability of the parts given the total, `times` over.

        A factor c to the power of the count may move from the parts to the total: it is chosen so that all weights level
        off where the table ends.
        """
        alphas = shares.alphas
        end = float(self.detail[total])
        slope = np.log1p((alphas.sum() - 1) / end)
        for part, alpha in zip(parts, alphas, strict=True):
            size = logs[part].size
            logs[part] += times * (log_g(alpha, size) - slope * np.arange(size))
        size = logs[total].size
        logs[total] -= times * (log_g(alphas.sum(), size) - slope * np.arange(size))

    def _log_own(self, column: int, size: int) -> FloatArray:
        fitted = np.log(self.distributions[column])
        return np.asarray(fitted[np.minimum(np.arange(size), len(fitted) - 1)])

    def _set_detail(self, pairs: dict[int, Shares]) -> None:
        """Choose how far each table goes: that of a part as far as the total's lets it be large."""
        self.detail[:] = DETAIL
        reached = np.zeros(self.columns, dtype=np.int64)
        for column in range(self.columns):
            if self._is_top(column):
                self._fit_range(column, pairs)
        for s in self._from_the_top():
            one = self.structure.sums[s]
            if s in self.echoes:
                continue
            share = self.shares.get(s)
            for place, part in enumerate(one.parts):
                reach = self.detail[one.total]
                if share is not None:
                    reach = _reach(reach, share.q[place], share.alphas[place])
                reached[part] = max(reached[part], reach)
                self.detail[part] = reached[part]
                self._fit_range(part, pairs)
        for total, *parts in self.structure.pairs:
            for place, part in enumerate(parts):
                if self._is_top(part):
                    self.detail[part] = _reach(self.detail[total], pairs[total].q[place], pairs[total].alphas[place])
        for s in self.echoes:
            one = self.structure.sums[s]
            self.detail[one.total] = self.detail[one.parts[0]]

    def _fit_range(self, column: int, pairs: dict[int, Shares]) -> None:
        """Shorten a table whose logarithms would leave `RANGE`: g(·; A) spans A·log(1 + end/A) when it levels off there."""
        precisions = [self.shares[s].precision for s in self.below[column] if s in self.shares]
        if column in pairs and self.structure.crossed[column] != 1:
            precisions += [pairs[column].precision] * abs(1 - self.structure.crossed[column])
        while sum(a * np.log1p(self.detail[column] / a) for a in precisions) > RANGE and self.detail[column] > LEAST_DETAIL:
            self.detail[column] = max(LEAST_DETAIL, int(0.8 * self.detail[column]))


def _shared(distributions: FloatArray, sums: Sequence[Split], noise: Sequence[float]) -> FloatArray:
    """Give counts that are the same count the same distribution: that of the ones published with the least noise.

    Deconvolved distributions are uneven, each in its own places. Of two for one count, the one divided by the other would
    make counts likely or not for no reason.
    """
    head = list(range(len(distributions)))

    def find(column: int) -> int:
        while head[column] != column:
            column = head[column]
        return column

    for one in sums:
        if len(one.parts) == 1:
            head[find(one.total)] = find(one.parts[0])
    groups: dict[int, list[int]] = {}
    for column in range(len(distributions)):
        groups.setdefault(find(column), []).append(column)
    shared = distributions.copy()
    for columns in groups.values():
        if len(columns) > 1:
            least = min(noise[column] for column in columns)
            shared[columns] = distributions[[column for column in columns if noise[column] <= least]].mean(axis=0)
    return shared


def _reach(total: int, share: float, alpha: float) -> int:
    """Return how large a part gets if its total is so large: its mean and four standard deviations of its share."""
    most = total * min(1.0, share * (1 + 4 / alpha**0.5))
    return int(max(LEAST_DETAIL, most)) if total > LEAST_DETAIL else total


def _packed(logs: list[FloatArray]) -> PriorTable:
    """Put tables one behind the other; each ends in the weight 1, so that weights that go together stay of one size."""
    tables = [np.exp(np.clip(own - own[-1], -RANGE, RANGE)) for own in logs]
    size = np.array([table.size for table in tables], dtype=np.int64)
    offset = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(size)])[:-1]
    return PriorTable(offset, size, np.concatenate(tables) if tables else np.ones(0))
