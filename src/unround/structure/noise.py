"""Counts that were perturbed, not rounded: how strongly, by how much at most, and by which law, told from their sums alone.

Every remainder occurs, as if the counts were exact, but sums miss by a few. Noise on every count adds up in a residual:
total − n parts has the law of n + 1 changes added up. Of large counts all changes have one law, whatever the count, so
that the residuals of sums of large counts tell it, by likelihood: for every largest change D the law of largest entropy with
the variance that fits best, and besides these the discrete Laplace and Gaussian laws, which have no largest change. The
variance is told early, D late: a D is named only if no other comes near it. A sum that does not hold looks otherwise: its
residuals do not average zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unround.errors import InputError
from unround.expectation import chi_square_tail
from unround.mechanisms import CellKey, Exact, Gaussian, Laplace, Mechanism, Within
from unround.mechanisms.cellkey import LARGEST_CHANGE, largest_variance
from unround.mechanisms.keyed import meeting
from unround.release import Column
from unround.structure.evidence import BOUNDED, NO_LAW, UNBOUNDED, UNTOLD, FoundNoise, MechanismEvidence
from unround.structure.mechanism import Divisibility
from unround.structure.residuals import FARTHEST, SumTally

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_AREAS = 30  # A sum is looked at from so many areas
_OFTEN = 0.2  # counts that are exact may have slips; noise makes residuals other than 0 in a larger share of areas than this
_FAR = 0.01  # and hardly any as far out as the histogram of residuals goes
_ERRORS = 5.0
"""A mean residual of more standard errors than this is not noise, unless it is slight: noise that is cut at 0 has a bias."""
_SLIGHT = 0.25  # in standard deviations
_LARGE = 4.0  # totals average at least so many standard deviations of their residuals; smaller ones fit anything
_ALIKE = 2.0
"""Sums belong to one kind of noise if its variance, a count, differs by no more than this factor from what is typical."""
_NEAR, _NEAR_FEW, _MANY = 2.0, 3.5, 1_000
"""Laws whose log likelihood is worse by no more cannot be told from the best; with fewer sums, by the second number."""
_STAYING = 6.0
"""More counts stay as they are than the law of largest entropy leaves, if that raises the log likelihood by this much."""
_DOUBTFUL = 0.05  # that is looked for only if residuals so far from the best law have no larger chance
_FEWEST = 100  # with fewer large sums the law is not asked for; only the variance of the noise is stated
_MOST_PARTS = 6
_CHANCE, _CLOSE = 1e-4, 0.03
"""A law does not fit if residuals so far from it are less likely than this, and off by more than that."""
_OFTEN_SMALL, _OFTEN_ALONE = 30, 5
"""Counts just above those that never occur, from which their absence is told; in one column, if it is known elsewhere."""
_SILENT = (
    "every remainder occurs, as in exact counts, but other tables were perturbed, and no sum tells whether these counts "
    "were, too; declare how they were published, with --exact NAME if exactly"
)


def find_noise(
    results: Sequence[SumTally], columns: Sequence[Column], mechanisms: Sequence[Mechanism | None], counted: Divisibility
) -> FoundNoise | None:
    """Look for noise in the sums of counts that were taken for exact; None where there is no sign of it."""
    loose = {at for at, how in enumerate(mechanisms) if isinstance(how, Exact) and columns[at].mechanism is None}
    noisy = [(tally, cells) for tally in results if (cells := _noisy_cells(tally, loose))]
    if not noisy:
        return None
    variances = np.array([tally.all_spread**2 / len(cells) for tally, cells in noisy])
    typical = float(np.median(variances))
    alike = [pair for pair, v in zip(noisy, variances, strict=True) if typical / _ALIKE <= v <= typical * _ALIKE]
    tested = [
        result
        for result in results
        if len(result.proposal.parts) > 1 and loose >= {result.proposal.total, *result.proposal.parts}
    ]
    if 2 * len(alike) < len(tested):  # most sums do not look like that: they do not hold
        return None
    weights = np.array([tally.areas for tally, _ in alike], dtype=np.float64)
    spread = float(np.average([tally.all_spread**2 / len(cells) for tally, cells in alike], weights=weights) ** 0.5)
    tables = {columns[cell].block for _, cells in alike for cell in cells}
    # Of a perturbed table, counts that are mostly 0 and 3, say, look neither rounded nor exact: they have its noise, too.
    mixed = {at for at, how in enumerate(mechanisms) if how is None and columns[at].mechanism is None}
    mixed = {at for at in mixed if counted.divisor[at] == 1}
    members = frozenset(at for at in loose | mixed if columns[at].block in tables)
    blocked = _never(counted.over(sorted(members)), _OFTEN_SMALL)
    silent = {at for at in loose - members if columns[at].block not in _adding_up(results, columns)}
    members |= {at for at in silent if blocked and _never(counted.over([at]), _OFTEN_ALONE) == blocked}
    off = sum(tally.areas - tally.zeros for tally, _ in alike) / weights.sum()
    start = (
        f"every remainder occurs, as in exact counts, but {len(alike):,} of {len(tested):,} sums miss by a few in {off:.0%} "
        "of the areas, as often above as below: perturbed, not rounded"
    )
    negative = bool(counted.below_zero[sorted(members)].any())
    noise = _told(members, _large_residuals(alike), spread, blocked, negative)
    return replace(noise, silent=frozenset(silent - members), why=f"{start}. {_in_words(noise)}")


def _adding_up(results: Iterable[SumTally], columns: Sequence[Column]) -> set[str]:
    """Return the tables with a sum that adds up nearly everywhere: their counts have no noise of their own."""
    exact = (
        tally.proposal for tally in results if tally.areas >= _AREAS and tally.areas - tally.zeros <= _OFTEN * tally.areas
    )
    return {columns[cell].block for proposal in exact for cell in proposal.parts if len(proposal.parts) > 1}


def _noisy_cells(tally: SumTally, loose: set[int]) -> list[int]:
    """Return the cells of a sum that may have noise, if its residuals look like noise; else none."""
    cells = [*(tally.proposal.against or (tally.proposal.total,)), *tally.proposal.parts]
    spread = tally.all_spread
    if len(tally.proposal.parts) < 2 or not set(tally.proposal.parts) <= loose or tally.areas < _AREAS or not spread:
        return []
    far = sum(number for residual, number in tally.residuals.items() if abs(residual) >= FARTHEST)
    error = spread / tally.areas**0.5
    fine = (
        tally.areas - tally.zeros > _OFTEN * tally.areas
        and far <= _FAR * tally.areas
        and abs(tally.all_mean) <= max(_ERRORS * error, _SLIGHT * spread)
        and tally.mean_total >= _LARGE * spread
    )
    return [cell for cell in cells if cell in loose] if fine else []


def _large_residuals(alike: Iterable[tuple[SumTally, list[int]]]) -> dict[int, Ints]:
    """Return the histograms of residuals of large counts, by how many counts with noise a sum has; no count is in two."""
    taken, histograms = set[int](), dict[int, Ints]()
    for tally, cells in sorted(alike, key=lambda pair: (len(pair[1]), pair[1])):
        if tally.large_residuals is None or len(cells) > _MOST_PARTS + 1 or taken & {*cells}:
            continue
        taken |= {*cells}
        histograms[len(cells)] = histograms.get(len(cells), 0) + tally.large_residuals
    return {number: histogram for number, histogram in histograms.items() if histogram.any()}


def _never(pool: Divisibility, often: int) -> tuple[int, ...]:
    """Return the counts from 1 on that are never published, where the next one is so often."""
    seen = pool.small[:, 0]
    first = next((value for value in range(1, len(seen)) if seen[value]), 0)
    return tuple(range(1, first)) if first > 1 and seen[first] >= often else ()


@dataclass(frozen=True, slots=True, eq=False)
class _Law:
    """A law of changes, fitted: its largest change (None without one), its kind and scale, and what share stays as it is.

    `stay` is None where that share is what the law of largest entropy makes it.
    """

    largest: int | None
    kind: str
    scale: float
    likelihood: float = 0.0
    stay: float | None = None

    @property
    def law(self) -> Floats:
        """The probabilities of all changes, from the largest one down on."""
        end = FARTHEST if self.largest is None else self.largest
        changes = np.arange(-end, end + 1)
        weights = _KINDS[self.kind](changes, self.scale)
        if self.stay is not None:
            weights[end] = 0.0
            weights *= (1 - self.stay) / weights.sum()
            weights[end] = self.stay
        return np.asarray(weights / weights.sum())

    @property
    def variance(self) -> float:
        return float(self.law @ (np.arange(len(self.law)) - len(self.law) // 2) ** 2)


_KINDS: dict[str, Callable[[Ints, float], Floats]] = {
    "bounded": lambda changes, scale: np.exp(-0.5 * (scale * changes) ** 2),
    "gaussian": lambda changes, scale: np.exp(-0.5 * (changes / scale) ** 2),
    "laplace": lambda changes, scale: np.exp(-np.abs(changes) / scale),
}
"""The laws that are tried: of largest entropy for its variance on the changes up to a largest one, and two without end."""

Adding = Callable[[Floats, int], Floats]  # the law of residuals with so many noisy counts, from the law of one change


@dataclass(frozen=True, slots=True, eq=False)
class _Residuals:
    """Residuals of sums of large counts, by how many noisy counts a sum has, and how changes add up in them."""

    histograms: dict[int, Ints]
    spread: float
    added: Adding

    @property
    def sums(self) -> int:
        return int(sum(histogram.sum() for histogram in self.histograms.values()))

    @property
    def least(self) -> int:
        """No smaller largest change can explain them."""
        farthest = {n: np.abs(np.flatnonzero(h) - FARTHEST).max() for n, h in self.histograms.items()}
        return max(1, *(-(-int(far) // number) for number, far in farthest.items()))

    @property
    def changes(self) -> range:
        """The largest changes to try: beyond six standard deviations more, they are as good as unbounded."""
        return range(self.least, max(self.least, min(LARGEST_CHANGE, int(6 * self.spread) + 3)) + 1)

    def likelihood(self, law: _Law) -> float:
        likelihood, shares = 0.0, law.law
        for number, histogram in self.histograms.items():
            seen = histogram > 0
            likelihood += float(histogram[seen] @ np.log(np.maximum(self.added(shares, number)[seen], 1e-300)))
        return likelihood

    def _ends(self, kind: str) -> tuple[float, float]:
        """Return between which scales a law is looked for."""
        spread = max(self.spread, 0.1)
        return {"bounded": (0.0, 4 / spread), "gaussian": (0.3 * spread, 2 * spread)}.get(kind, (0.15 * spread, 2 * spread))

    def best(self, kind: str, largest: int | None, stay: float | None = None) -> _Law:
        """Return the law of a kind and a largest change that fits best."""
        from scipy.optimize import minimize_scalar  # only here: it takes a while to import

        ends = self._ends(kind)

        def badness(scale: float) -> float:
            return -self.likelihood(_Law(largest, kind, scale, 0.0, stay))

        optimum = minimize_scalar(badness, bounds=ends, method="bounded", options={"xatol": 1e-4 * ends[1]})
        value, scale = min((badness(ends[0]), ends[0]), (float(optimum.fun), float(optimum.x)))
        return _Law(largest, kind, scale, -value, stay)

    def staying(self, laws: Sequence[_Law]) -> float | None:
        """Return the share of counts that stay as they are, where none of the laws explains that so many do."""
        from scipy.optimize import minimize_scalar

        best = max(laws, key=lambda law: law.likelihood)
        if self.goodness(best)[0] > _DOUBTFUL:
            return None
        plain = max((law for law in laws if law.largest is not None), key=lambda law: law.likelihood)
        least = float(plain.law[len(plain.law) // 2])

        def badness(stay: float) -> float:
            return -self.best("bounded", plain.largest, stay).likelihood

        optimum = minimize_scalar(badness, bounds=(least, 0.99), method="bounded", options={"xatol": 1e-3})
        return float(optimum.x) if -optimum.fun > best.likelihood + _STAYING else None

    def fitted(self, unbounded: bool = True) -> list[_Law]:
        """Fit the law of every largest change, and the usual ones without any."""
        laws = [self.best("bounded", end) for end in self.changes]
        if not unbounded:
            return laws
        laws += [self.best(kind, None) for kind in ("gaussian", "laplace")]
        stay = self.staying(laws)
        return laws if stay is None else [self.best("bounded", end, stay) for end in self.changes]

    def goodness(self, law: _Law) -> tuple[float, float]:
        """Return how likely residuals so far from a law are, and how far off their shares are in total."""
        statistic, freedom, distance = 0.0, -1, 0.0
        for number, histogram in self.histograms.items():
            expected = histogram.sum() * self.added(law.law, number)
            common = expected >= 5
            seen = np.append(histogram[common], histogram[~common].sum())
            wanted = np.append(expected[common], max(expected[~common].sum(), 0.5))
            statistic += float(((seen - wanted) ** 2 / wanted).sum())
            freedom += len(seen) - 1
            distance += float(np.abs(histogram - expected).sum()) / 2
        return chi_square_tail(max(freedom, 1), statistic), distance / self.sums

    def interval(self, laws: Iterable[_Law], best: _Law) -> tuple[float, float]:
        """Return between which numbers the variance lies: under any law, log likelihoods are worse by at most 1.92."""
        from scipy.optimize import brentq

        variances = [best.variance]
        for law in laws:

            def excess(scale: float, law: _Law = law) -> float:
                return self.likelihood(replace(law, scale=scale)) - best.likelihood + 1.92

            if law.likelihood >= best.likelihood - 1.92:
                scales = [end if excess(end) >= 0 else brentq(excess, law.scale, end) for end in self._ends(law.kind)]
                variances += [replace(law, scale=scale).variance for scale in scales]
        return min(variances), max(variances)


def _told(
    members: frozenset[int], histograms: dict[int, Ints], spread: float, blocked: tuple[int, ...], negative: bool
) -> FoundNoise:
    """Fit all laws to the residuals of large counts, and see which of them can be told apart."""
    residuals = _Residuals(histograms, spread, _added_up)
    sums = residuals.sums
    if sums < _FEWEST:
        how = Gaussian(max(0.01, round(spread, 2)), not negative)
        rough = (spread**2 * 0.8, spread**2 * 1.25)
        return FoundNoise(members, UNTOLD, None, spread**2, rough, blocked, (), 1, sums, False, None, how)
    laws = residuals.fitted()
    best = max(laws, key=lambda law: law.likelihood)
    fit = residuals.goodness(best)
    keyed = False
    if _misfits(*fit) and 3 in histograms:
        together = _Residuals({3: histograms[3]}, spread, _keyed_law)
        other = together.fitted(unbounded=False)
        likeliest = max(other, key=lambda law: law.likelihood)
        if not _misfits(*(other_fit := together.goodness(likeliest))):
            keyed, laws, best, fit, residuals = True, other, likeliest, other_fit, together
    near = _NEAR if sums >= _MANY else _NEAR_FEW
    close = [law for law in laws if law.likelihood >= best.likelihood - near]
    ends = sorted(law.largest for law in close if law.largest is not None)
    if _misfits(*fit):
        model = NO_LAW
    elif not ends:
        model = UNBOUNDED
    else:
        is_bounded = all(law.largest is not None for law in close) and ends[-1] < residuals.changes[-1]
        model = BOUNDED if is_bounded else UNTOLD
    named = model == BOUNDED and len(ends) == 1
    return FoundNoise(
        columns=members,
        model=model,
        max_change=best.largest if named else None,
        variance=best.variance,
        interval=residuals.interval(close, best),
        blocked=blocked,
        also_possible=tuple(end for end in ends if not named),
        least_change=ends[0] if ends else residuals.least,
        sums=sums,
        keyed=keyed,
        p_value=fit[0],
        mechanism=_mechanism(close, best, blocked, negative, model),
        stay=best.stay,
    )


def _misfits(p_value: float, distance: float) -> bool:
    return p_value < _CHANCE and distance > _CLOSE


def _added_up(law: Floats, number: int) -> Floats:
    """Return the law of several independent changes added up; those beyond `FARTHEST` count at the edges."""
    total = law
    for _ in range(number - 1):
        total = np.convolve(total, law)
    return _cropped(total)


def _cropped(law: Floats) -> Floats:
    """Return a law on −`FARTHEST` to `FARTHEST`."""
    half, cropped = len(law) // 2, np.zeros(2 * FARTHEST + 1)
    if half <= FARTHEST:
        cropped[FARTHEST - half : FARTHEST + half + 1] = law
        return cropped
    beyond = half - FARTHEST
    cropped[:] = law[beyond:-beyond]
    cropped[0] += law[:beyond].sum()
    cropped[-1] += law[-beyond:].sum()
    return cropped


def _keyed_law(law: Floats, number: int) -> Floats:
    """Return the law of a residual of two parts whose random numbers add up to their total's, changes in ascending order."""
    assert number == 3  # a total and two parts
    ends = np.concatenate([[0.0], np.cumsum(law)])
    arcs = [tuple(np.meshgrid(end, end, end, indexing="ij")) for end in (ends[:-1], ends[1:])]
    first, second, total = ((low, high) for low, high in zip(*arcs, strict=True))
    shares = meeting((first, second), total, 0.0)
    half = len(law) // 2
    changes = np.arange(-half, half + 1)
    residual = changes[None, None, :] - changes[:, None, None] - changes[None, :, None]
    added = np.bincount((residual + 3 * half).ravel(), shares.ravel(), minlength=6 * half + 1)
    return _cropped(added.astype(np.float64))


def _mechanism(close: Sequence[_Law], best: _Law, blocked: tuple[int, ...], negative: bool, model: str) -> Mechanism:
    """Return the mechanism to go by: of several that fit the widest, whose claims are right as often as they say."""
    bounded = [law for law in close if law.largest is not None]
    if model in (UNBOUNDED, NO_LAW) or negative or not bounded:
        steps = best.largest
        if negative and steps is not None and abs(best.variance - float(largest_variance(steps))) < 0.02 * best.variance:
            return Within(steps)
        law = (
            best
            if best.largest is None
            else max((close_law for close_law in close), key=lambda close_law: close_law.largest is None)
        )
        if law.kind == "laplace":
            # The discrete Laplace of scale t has the variance 1 / (2 sinh²(1 / 2t)).
            scale = 0.5 / float(np.arcsinh((2 * law.variance) ** -0.5))
            return Laplace(max(0.01, round(scale, 2)), not negative)
        return Gaussian(max(0.01, round(best.variance**0.5, 2)), not negative)
    widest = bounded[-1]
    assert widest.largest is not None
    largest = largest_variance(widest.largest)
    variance = largest if widest.variance > 0.98 * float(largest) else f"{widest.variance:.2f}"
    stay = f"{widest.stay:.2f}" if widest.stay is not None else 0
    try:
        return CellKey(widest.largest, variance, len(blocked), stay)
    except InputError:  # no table of this law can have these counts blocked
        return CellKey(widest.largest, variance, 0, stay)


def _in_words(noise: FoundNoise) -> str:
    """Say what can be told of noise, and what cannot."""
    low, high = noise.interval
    said = [f"The noise on a count has a variance of {noise.variance:.2f} ({low:.2f} to {high:.2f})"]
    if noise.max_change is not None:
        said.append(f"and no change is larger than {noise.max_change}")
    elif noise.model == BOUNDED:
        said.append(f"and the largest change is one of {', '.join(map(str, noise.also_possible))}")
    elif noise.assumed:
        said.append(
            f"and the largest change is {noise.least_change} or more: {noise.sums:,} sums of large counts do not tell"
        )
    elif noise.model == NO_LAW:
        said.append("and no usual law fits it")
    else:
        said.append("and changes have no end")
    if noise.stay is not None:
        said.append(f"{noise.stay:.0%} of the counts are not changed, more than usual for that variance")
    if noise.blocked:
        listed = " and ".join(str(value) for value in noise.blocked)
        said.append(f"{listed} {'is' if len(noise.blocked) == 1 else 'are'} never published")
    if noise.keyed:
        said.append("the noise of a total follows from its parts' (record keys), so that probabilities are not accurate")
    ending = (
        f"{noise.mechanism.name} is assumed"
        if noise.assumed
        else f"{noise.mechanism.name} fits best; if the agency does not say otherwise, "
        f"give --mechanism {noise.mechanism.name}"
    )
    return f"{'; '.join([' '.join(said[:2]), *said[2:]])}. {ending}"


def with_noise(
    noise: FoundNoise, mechanisms: Sequence[Mechanism | None], how: Sequence[MechanismEvidence]
) -> tuple[list[Mechanism | None], list[MechanismEvidence]]:
    """Return mechanisms and evidence for perturbed columns: on a condition, or unknown until somebody declares them."""
    other = noise.columns | noise.silent
    left = [replace(entry, columns=tuple(at for at in entry.columns if at not in other)) for entry in how]
    tables = {
        entry.block: [at for at in entry.columns if at in noise.columns] for entry in how if noise.columns & {*entry.columns}
    }
    assumed = noise.mechanism if noise.assumed else None
    evidence = [
        MechanismEvidence(
            block,
            tuple(members),
            assumed,
            noise.why,
            suggested=None if noise.assumed else noise.mechanism,
            condition=noise.condition if noise.assumed else "",
        )
        for block, members in tables.items()
    ]
    silent = ((entry.block, tuple(at for at in entry.columns if at in noise.silent)) for entry in how)
    evidence += [MechanismEvidence(block, those, None, _SILENT) for block, those in silent if those]
    kinds = [assumed if at in noise.columns else kind for at, kind in enumerate(mechanisms)]
    kinds = [None if at in noise.silent else kind for at, kind in enumerate(kinds)]
    return kinds, [*(entry for entry in left if entry.columns), *evidence]
