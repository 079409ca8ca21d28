"""Sums that nobody proposed, looked for in the counts of a sample of areas.

Three kinds are tried: a total before or after a run of columns that adds up to it; a proposed sum without one of its parts;
and the same count under several names, rounded anew each time, which is evidence, or alike, which is not. What is found
here is only a proposal: it is verified like any other, and on more evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms import Mechanism
from unround.release import ABSENT, Column, Counts, Proposal
from unround.structure.evidence import FILES, Equation, JudgedSum, Repeat
from unround.structure.verify import areas_
from unround.system import connected

_LONGEST = 400  # no run of parts is longer
_TRIED = 3  # of all runs that end near the total, so many are verified


class SumSearch:
    """Looks for sums in the counts of a sample of areas."""

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
        """Return whether a total is so large that a sum close to it is no coincidence; rows of zeros match anything."""
        return bool(self._sums[total] >= 50 * self._far(total, (total, total)))

    def sequences(self) -> Iterator[list[int]]:
        """Go through the lists of columns in which runs can lie: one axis changes, table and other codes do not."""
        axes = len(self._columns[0].codes) if self._columns else 0
        for axis in range(axes):
            lists: dict[tuple[object, ...], list[int]] = {}
            for at, column in enumerate(self._columns):
                rest = column.codes[:axis] + column.codes[axis + 1 :]
                lists.setdefault((column.block, *rest), []).append(at)
            yield from (columns for columns in lists.values() if len(columns) > 2)

    def runs(self, known: Sequence[Equation]) -> list[Proposal]:
        """Return totals that stand directly before or after a run of columns with their sum."""
        heads: dict[int, list[int]] = {}
        for total, parts in known:
            if len(parts) > 1:
                heads.setdefault(total, []).extend(parts)
        proposals = []
        for sequence in self.sequences():
            for ordered in (sequence, sequence[::-1]):
                proposals += self._runs(ordered, heads)
        return list(dict.fromkeys(proposals))

    def _runs(self, ordered: list[int], heads: dict[int, list[int]]) -> list[Proposal]:
        """Look for runs after each column of a list; from its end, so that sums found there are skipped as one part."""
        after = list(range(1, len(ordered) + 1))
        place_of = {column: place for place, column in enumerate(ordered)}
        proposals = []
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
                proposals += [Proposal(total, tuple(sorted(parts)), "data") for parts in self._fitting(total, chain)]
        return proposals

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
        margin = 5 * np.sqrt(self._square[total] + np.cumsum(self._square[chain])) + 1e-9
        over = np.flatnonzero(short < -margin)
        end = int(over[0]) if len(over) else len(chain)
        fits = [at for at in np.flatnonzero(np.abs(short[:end]) <= margin[:end]).tolist() if at > 0]
        return [chain[: at + 1] for at in fits[::-1][:_TRIED]]

    def repairs(self, failed: Sequence[Proposal]) -> list[Proposal]:
        """Return failed sums without one of their parts, where that brings them near the total."""
        proposals = []
        for proposal in failed:
            parts = proposal.parts
            if len(parts) < 3:
                continue
            surplus = self._sums[list(parts)].sum() - self._sums[proposal.total]
            margin = self._far(proposal.total, parts)
            if surplus <= 0:
                continue
            surplus_parts = [part for part in parts if abs(self._sums[part] - surplus) <= margin and self._sums[part] > 0]
            proposals += [Proposal(proposal.total, tuple(p for p in parts if p != part), "data") for part in surplus_parts]
        return proposals


def mirrored(proposals: Sequence[Proposal], columns: Sequence[Column]) -> list[Proposal]:
    """Return the same sums for other codes of the axes that they do not add up along: for women what was found for men.

    >>> columns = [Column(f"{key}/{sex}", (key, sex), key) for sex in ("men", "women") for key in ("all", "young", "old")]
    >>> mirrored([Proposal(0, (1, 2), "data")], columns)
    [Proposal(total=3, parts=(4, 5), origin='data')]
    """
    index = {column.codes: at for at, column in enumerate(columns)}
    others = list(dict.fromkeys(column.codes[1:] for column in columns))
    more = []
    for proposal in proposals:
        cells = [columns[at].codes for at in (proposal.total, *proposal.parts)]
        if len({codes[1:] for codes in cells}) == 1:
            for rest in others:
                places = [index.get((codes[0], *rest), -1) for codes in cells]
                if rest != cells[0][1:] and min(places) >= 0:
                    more.append(Proposal(places[0], tuple(places[1:]), "data"))
    return more


_PROBES = 48  # two columns are compared in so many areas before they are compared in all
_TYPICAL = 10  # columns that average less are not looked at: small counts are often equal by chance
_CLOSE = 40  # neighbours in the order of their averages that are compared at most
ALIKE = 0.98  # repeats with the same number in this share of the areas are alike
_SAME_BY_CHANCE = 12
"""From so many areas on, equal numbers everywhere are no chance: of two roundings anew about two in three agree."""


def pairs_to_try(
    columns: Sequence[Column], sample: Counts, reach: NDArray[np.int32], skip: Iterable[tuple[int, int]] = ()
) -> list[Proposal]:
    """Return pairs of columns that may show the same count: equal but for rounding wherever one looks.

    Only columns of different tables are compared, and only those with the same codes on all axes but the first. Within one
    table a part may be almost all of its total, and there are about as many husbands as couples: near enough to pass
    every test, and still not the same.
    """
    shown = sample > ABSENT
    counts = np.where(shown, sample, 0).astype(np.int64)
    number = shown.sum(0)
    # Averages are only comparable over the same areas: those that publish nearly everything, if there are such.
    full = shown.sum(1) >= 0.99 * max(1, int((number > 0).sum()))
    over = full if full.sum() >= min(_PROBES, len(sample)) else np.ones(len(sample), dtype=np.bool_)
    mean = counts[over].sum(0) / np.maximum(shown[over].sum(0), 1)
    # Two roundings differ by about the reach; the average over many areas by that much less.
    margin = 5 * reach / np.sqrt(np.maximum(number, 1)) + (0.0 if over is full else 0.005 * mean)
    order = [int(at) for at in np.argsort(mean) if mean[at] >= max(_TYPICAL, 5 * reach[at]) and number[at] >= 2]
    known = {frozenset(pair) for pair in skip}
    pairs = []
    for place, this in enumerate(order):
        tried = 0
        for other in order[place + 1 :]:
            if mean[other] - mean[this] > margin[this] + margin[other] or tried >= _CLOSE:
                break
            both = np.flatnonzero(shown[:, this] & shown[:, other])
            left, right = columns[this], columns[other]
            if left.codes[1:] != right.codes[1:] or (left.block == right.block != ""):
                continue
            if frozenset((this, other)) in known or len(both) < 0.5 * max(number[this], number[other]):
                continue
            probes = both[:: max(1, len(both) // _PROBES)]
            apart = np.abs(counts[probes, this] - counts[probes, other])
            if (apart <= reach[this] + reach[other]).mean() >= 0.95:
                first, last = sorted((this, other))
                pairs.append(Proposal(last, (first,), "data"))
                tried += 1
    return pairs


def related(equations: Iterable[Equation]) -> set[tuple[int, int]]:
    """Return all pairs of a total and a count inside it, however deep: these differ, even if only now and then."""
    inside: dict[int, set[int]] = {}
    for total, parts in equations:
        if len(parts) > 1:
            inside.setdefault(total, set()).update(parts)
    pairs = set[tuple[int, int]]()
    for total in inside:
        reached, ahead = set[int](), list(inside[total])
        while ahead:
            part = ahead.pop()
            if part not in reached:
                reached.add(part)
                ahead += inside.get(part, ())
        pairs |= {(total, part) for part in reached}
    return pairs


def groups(pairs: Sequence[Proposal]) -> list[tuple[list[int], str]]:
    """Join pairs into groups of columns, in order, each with who says so: "data" only if nobody else does."""
    together = [(pair.total, pair.parts[0]) for pair in pairs]
    inside = sorted({column for pair in together for column in pair})
    first = connected(inside[-1] + 1 if inside else 0, together)
    members: dict[int, list[int]] = {}
    for column in inside:
        members.setdefault(first[column], []).append(column)
    origins = dict[int, str]()
    for pair in pairs:
        if origins.get(first[pair.total], "data") == "data":
            origins[first[pair.total]] = pair.origin
    return [(columns, origins[at]) for at, columns in members.items()]


def stars(
    pairs: Sequence[Proposal],
    compare: Callable[[Sequence[Proposal]], list[JudgedSum]],
    mechanisms: Sequence[Mechanism | None],
    inside: Container[tuple[int, int]] = (),
) -> list[Proposal]:
    """Return what to verify of groups of repeats: each column against the first that is alike, or against the head.

    More comparisons would say the same again, and close loops. But columns that were rounded anew against the head may
    still be alike among themselves, and then count once.
    """
    together = [
        ([column for column in columns if not any((other, column) in inside for other in columns)], origin)
        for columns, origin in groups(pairs)
    ]
    every = [Proposal(b, (a,), "data") for columns, _ in together for a, b in combinations(columns, 2)]
    twins = {(c.total, c.parts[0]) for c in compare(every) if is_alike(c, mechanisms)}
    comparisons = []
    for columns, origin in together:
        for column in columns[1:]:
            twin = next((earlier for earlier in columns if (column, earlier) in twins), columns[0])
            comparisons.append(Proposal(column, (twin,), origin))
    return comparisons


_FEW_PROPOSED, _ENOUGH_FOUND = 3, 30
"""Areas in which columns must show the same number to stand for each other: if somebody proposes it, and if nobody does."""


def equal_share(checked: JudgedSum) -> float:
    """Return in which share of the areas the two columns of a pair show the same number."""
    return checked.residuals.get(0, 0) / checked.areas if checked.areas else 0.0


def is_alike(checked: JudgedSum, mechanisms: Sequence[Mechanism | None]) -> bool:
    """Return whether the two columns of a pair are published alike: the same number (almost) everywhere.

    Where few areas leave that open, equal numbers are taken as alike: repeats that are wrongly believed to be new evidence
    would prove too much, and those wrongly left out only prove a little less.
    """
    if checked.areas < _SAME_BY_CHANCE:
        return equal_share(checked) == 1 and mechanisms[checked.total] == mechanisms[checked.parts[0]]
    return equal_share(checked) >= ALIKE


def files_alike(checked: Sequence[JudgedSum]) -> bool:
    """Return whether the files of a release repeat each other's numbers: in most of the columns that can be judged.

    Most areas have nobody in a rare category, and show the same 0 in both files however they were rounded; only columns
    with something in them tell.
    """
    telling = [
        judged
        for judged in checked
        if judged.origin == FILES and len(judged.parts) == 1 and not judged.unjudged and judged.areas
    ]
    return 2 * sum(equal_share(judged) >= ALIKE for judged in telling) >= len(telling)


def gather(
    same: Sequence[JudgedSum], kept: Sequence[JudgedSum], names: Sequence[str]
) -> tuple[list[Repeat], dict[int, int]]:
    """Put pairs together: groups of columns that are alike, groups that were rounded anew; and who stands for whom."""
    alike: dict[int, list[JudgedSum]] = {}
    anew: dict[int, list[JudgedSum]] = {}
    for into, pairs in ((alike, same), (anew, kept)):
        for pair in pairs:
            into.setdefault(pair.parts[0], []).append(pair)
    repeats = []
    for head, pairs in alike.items():
        share = min(equal_share(pair) for pair in pairs)
        everywhere = "everywhere" if share == 1 else f"in {share:.1%} of the areas or more"
        why = f"the same number {everywhere} (at least {areas_(min(p.areas for p in pairs))}): they add no information"
        repeats.append(Repeat((head, *(pair.total for pair in pairs)), True, why))
    for head, pairs in anew.items():
        share = max(equal_share(pair) for pair in pairs)
        why = (
            f"the same count as {names[head]}, rounded anew: the numbers agree within rounding, "
            f"and are equal in {share:.0%} of the areas or fewer"
        )
        repeats.append(Repeat((head, *(pair.total for pair in pairs)), False, why))
    alias = {pair.total: head for head, pairs in alike.items() for pair in pairs if stands_for(pair)}
    return sorted(repeats, key=lambda repeat: repeat.columns), alias


def stands_for(pair: JudgedSum) -> bool:
    """Return whether one column may be read in place of the other.

    Equal almost everywhere is not enough for that: where two counts differ only now and then, a sum that takes one for the
    other is wrong just there. And few areas can agree by chance, unless the format or the user says that they are one count.
    Files that repeat each other are another matter: where a number differs, one of them has a misprint.
    """
    proposed = pair.origin != "data"
    return (equal_share(pair) == 1 or pair.origin == FILES) and pair.areas >= (_FEW_PROPOSED if proposed else _ENOUGH_FOUND)


def replace(equation: Equation, alias: Mapping[int, int]) -> Equation:
    """Return an equation with every column replaced by the one that stands for it."""
    total, parts = equation
    return alias.get(total, total), tuple(alias.get(part, part) for part in parts)
