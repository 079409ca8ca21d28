"""What somebody infers who has the published table, the sums, and the mechanism; and how much of it is true.

Posteriors under noise without bounds: where to stop looking, and how to add up many wide counts.

A noisy count leaves some eighty true counts possible, most of them next to impossible beside the sums: were women and the
total off by little, men cannot be off by much. So every cell is narrowed to where what was published of it, and what the
sum that it stands in says about it, leave more than a stated share; and a sum of many parts is added up in steps, the
partial sums being cells of their own that nobody published, and narrowed likewise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from unround.audits.bounds import BlockBounds, silence_copies
from unround.audits.claims import BlockClaims, ClaimKind, decide, known_alone
from unround.audits.keys import Keys
from unround.audits.model import Model
from unround.audits.weigh import NEAR, OverPriors
from unround.bounds.tighten import tighten
from unround.engines.forest import posteriors
from unround.errors import InternalError
from unround.evidence.block import BlockPosterior, CellBounds, Ints, PriorWeights, Windows, WindowTable
from unround.evidence.cells import EvidenceBlock
from unround.evidence.keys import keyed_evidence
from unround.mechanisms import Exact, Mechanism, Unpublished
from unround.mechanisms.base import BoolArray, FloatArray, IntArray
from unround.options import THRESHOLD
from unround.prior import Prior
from unround.release import ABSENT, Counts
from unround.sums.compiled import CompiledSums, compile_sums

CUT = 1e-5  # counts are left out that are less likely than this beside the likeliest, by what is next to them
WIDER = 1e-9  # the same for areas in which the narrower ranges leave nothing possible
MOST_PARTS = 3  # sums of more parts than this are added up in steps
_FARTHEST = 120  # discrepancies beyond this one are looked up as this one
_REACH = 300  # how far from what was published true counts are looked for


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Sums of which long ones are added up in steps."""

    compiled: CompiledSums  # with partial sums as columns after those of the model
    partials: tuple[tuple[tuple[int, ...], int, tuple[int, ...]], ...]  # cells, total, cells left


def in_steps(model: Model) -> Steps:
    """Add partial sums to a model."""
    equations: list[tuple[int, tuple[int, ...]]] = []
    partials: list[tuple[tuple[int, ...], int, tuple[int, ...]]] = []
    columns = len(model.columns)
    made: dict[tuple[int, ...], int] = {}
    for total, parts in model.equations:
        if len(parts) <= MOST_PARTS:
            equations.append((total, parts))
            continue
        so_far = parts[0]
        for k in range(2, len(parts)):
            made[parts[:k]] = columns + len(partials)
            equations.append((columns + len(partials), (so_far, parts[k - 1])))
            so_far = columns + len(partials)
            partials.append((parts[:k], total, parts[k:]))
        equations.append((total, (so_far, parts[-1])))
    # Where a sum runs through both sexes, so do its partial sums.
    halves = {node.cells[0]: node.cells[1:] for node in model.compiled.plan.nodes if node.is_pair}
    for parts, at in made.items():
        if all(part in halves for part in parts):
            men, women = (made.get(tuple(halves[part][side] for part in parts)) for side in (0, 1))
            if men is not None and women is not None:
                equations.append((at, (men, women)))
    compiled = compile_sums(columns + len(partials), tuple(equations), model.fixed)
    return Steps(compiled, tuple(partials))


@lru_cache(maxsize=256)
def _spread(mechanisms: tuple[Mechanism, ...]) -> FloatArray:
    """Return how likely the true sum of some cells lies so far from the sum of what was published of them.

    The middle entry stands for 0. Only how far counts lie apart matters, as it does for noise and for large rounded counts.
    """
    away = np.arange(-_REACH, _REACH + 1)
    shares = (away == 0).astype(np.float64)
    for mechanism in mechanisms:
        law = mechanism.likelihood(1_000_000, 1_000_000 + away)
        shares = np.convolve(shares, law / law.sum(), mode="same")
    return np.asarray(np.maximum(shares, 0.0))


@lru_cache(maxsize=256)
def _ranges(cell: tuple[Mechanism, ...], others: tuple[Mechanism, ...], cut: float) -> NDArray[np.int32]:
    """Return, for every discrepancy d from -`_FARTHEST` on, the first and the last value that is not next to impossible.

    Both are counted from one estimate; the other lies d above it.
    """
    mine, theirs = _spread(cell), _spread(others)
    table = np.empty((2 * _FARTHEST + 1, 2), dtype=np.int32)
    values = np.arange(-_REACH, _REACH + 1)
    for row, d in enumerate(range(-_FARTHEST, _FARTHEST + 1)):
        product = np.where(np.abs(values - d) <= _REACH, mine * theirs[np.clip(values - d + _REACH, 0, 2 * _REACH)], 0.0)
        largest = product.max()
        # Where both estimates exclude each other as far as floats go, everything between and around them stays.
        likely = values[product >= cut * largest] if largest > 0 else np.array([min(0, d) - 40, max(0, d) + 40])
        table[row] = likely[0], likely[-1]
    return table


class Narrower:
    """Works out posteriors within narrowed ranges, block after block."""

    def __init__(self, model: Model, cut: float = CUT) -> None:
        self.model = model
        self.cut = cut
        self.steps = in_steps(model)
        self._windows = WindowTable(model.mechanisms)
        self._noisy = {c: how for c, how in enumerate(model.mechanisms) if not isinstance(how, Exact | Unpublished)}
        self._near = [self._nearest(c) for c in range(len(model.columns))]

    def _nearest(self, cell: int) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Return the cells to add and to subtract for another estimate of a cell, as few noisy ones as there can be."""
        best: tuple[int, tuple[int, ...], tuple[int, ...]] | None = None
        for e in self.model.touching[cell]:
            total, parts = self.model.equations[e]
            rest = tuple(part for part in parts if part != cell)
            plus, minus = (parts, ()) if cell == total else ((total,), rest)
            if any(isinstance(self.model.mechanisms[c], Unpublished) for c in (*plus, *minus)):
                continue
            noisy = sum(c in self._noisy for c in (*plus, *minus))
            if best is None or noisy < best[0]:
                best = noisy, plus, minus
        return None if best is None else best[1:]

    def _noise(self, cells: tuple[int, ...]) -> tuple[Mechanism, ...]:
        return tuple(self._noisy[c] for c in cells if c in self._noisy)

    def ranges(self, counts: Counts, cut: float) -> tuple[Ints, Ints]:
        """Return the ranges of all cells, and of all partial sums after them."""
        windows, _ = self._windows.of(counts)
        low, high = windows.low.astype(np.int64), windows.high.astype(np.int64)
        for cell, near in enumerate(self._near):
            if cell in self._noisy and near is not None:
                plus, minus = near
                other = counts[:, list(plus)].sum(axis=1) - counts[:, list(minus)].sum(axis=1)
                table = _ranges((self._noisy[cell],), self._noise((*plus, *minus)), cut)
                first, last = _within(table, counts[:, cell].astype(np.int64), other)
                low[:, cell], high[:, cell] = np.maximum(low[:, cell], first), np.minimum(high[:, cell], last)
        partial_low, partial_high = [], []
        for parts, total, rest in self.steps.partials:
            table = _ranges(self._noise(parts), self._noise((total, *rest)), cut)
            added = counts[:, list(parts)].sum(axis=1)
            other = counts[:, total] - counts[:, list(rest)].sum(axis=1)
            first, last = _within(table, added, other)
            partial_low.append(first)
            partial_high.append(last)
        lows, highs = np.column_stack([low, *partial_low]), np.column_stack([high, *partial_high])
        return lows.astype(np.int32), highs.astype(np.int32)

    def posteriors(self, counts: Counts, prior: Prior, value: Counts, variant: str | None = None) -> BlockPosterior:
        """Work out what is likely under one prior of a set, and the probability of the counts that are asked for."""
        variant = variant or prior.variants[0]
        posterior = self._posteriors(counts, prior, variant, value, self.cut)
        again = np.flatnonzero(~posterior.possible)
        if again.size and self.cut > WIDER:
            wider = self._posteriors(counts[again], prior, variant, value[again], WIDER)
            posterior.put(again, wider, np.arange(again.size))
        return posterior

    def _posteriors(self, counts: Counts, prior: Prior, variant: str, value: Counts, cut: float) -> BlockPosterior:
        columns, more = counts.shape[1], len(self.steps.partials)
        low, high = self.ranges(counts, cut)
        windows, _ = self._windows.of(counts)
        silent = np.full((len(counts), more), -1, dtype=np.int64)
        whole = Windows(
            np.column_stack([windows.low, low[:, columns:]]),
            np.column_stack([windows.high, high[:, columns:]]),
            np.column_stack([windows.start, silent]),
            windows.weights,
            np.concatenate([windows.certain, np.ones(more, dtype=np.bool_)]),
        )
        bare = replace(whole, low=low, high=high, start=np.full(low.shape, -1), certain=np.ones_like(whole.certain))
        tight = tighten(self.steps.compiled, bare)
        asked = np.column_stack([value, np.zeros((len(counts), more), dtype=np.int32)])
        weights = prior.weights(counts, tight.low[:, :columns], tight.high[:, :columns], variant)
        posterior = posteriors(EvidenceBlock(self.steps.compiled, whole, tight, _longer(weights, tight.low)), asked)
        by_cell = ("mode", "probability", "mean", "deviation", "error", "asked")
        return replace(posterior, **{name: np.ascontiguousarray(getattr(posterior, name)[:, :columns]) for name in by_cell})


def _within(table: NDArray[np.int32], here: NDArray[np.int64], other: NDArray[np.int64]) -> tuple[IntArray, IntArray]:
    """Look ranges up; what would lie below 0 makes room for as much from 0 on."""
    place = np.clip(other - here, -_FARTHEST, _FARTHEST) + _FARTHEST
    first, last = here + table[place, 0], here + table[place, 1]
    half = int(table[_FARTHEST, 1])
    return np.maximum(first, 0), np.maximum(last, half)


def _longer(weights: PriorWeights | None, low: Ints) -> PriorWeights | None:
    """Let a prior be flat for partial sums: what is known of them is known of their parts."""
    if weights is None:
        return None
    start = np.full(low.shape, -1, dtype=np.int64)
    start[:, : weights.start.shape[1]] = weights.start
    return PriorWeights(low, start, weights.weights)


COARSER = (CUT, 1e-4, 1e-3, 1e-2)  # cuts to try, where wide noise leaves too many counts possible for a finer one
PILOT = 64  # areas on which that is tried


@dataclass(frozen=True, slots=True, eq=False)
class AttackResult:
    """What is inferred of a block of areas.

    `claims` are those of an audit. `truth` is the probability of the true count, and `alone` the same from the published
    count and the column's distribution, without any sum. `left` says how many values, from the least to the greatest, what
    was published leaves of each count, with all sums, and `left_alone` without them; None where noise has no bounds.
    """

    claims: BlockClaims
    posterior: BlockPosterior
    truth: NDArray[np.float64]
    alone: NDArray[np.float64]
    left: Ints | None
    left_alone: Ints | None


class Attacker:
    """Infers, block after block, under one model.

    An audit does the same, and explains itself as well; here only the claims are wanted, and how likely the truth is.
    Noise without bounds is worked out within narrowed ranges; see `narrow`. `cut` says where they end, and is None where
    posteriors are exact.
    """

    def __init__(
        self,
        model: Model,
        prior: Prior,
        threshold: float = THRESHOLD,
        alone: tuple[Mechanism, ...] | None = None,
        keys: Keys | None = None,
    ) -> None:
        self.model = model
        self._keyed = None if keys is None else keys.keyed(model)
        self.prior = prior
        self.threshold = threshold
        self._windows = WindowTable(model.mechanisms)
        self._windows_alone = self._windows if alone is None else WindowTable(alone)
        self._narrower: Narrower | None = None

    @property
    def cut(self) -> float | None:
        """How unlikely counts must be, relative to the likeliest, to be ignored; None where none is."""
        return self._narrower.cut if self._narrower is not None else None

    def infer(self, counts: Counts, true: Counts, seen: Counts | None = None) -> AttackResult:
        """Infer what can be inferred from published counts, and look up how likely the true ones are.

        `seen` is what the model's mechanisms are about, where that is not the published counts themselves.
        """
        model = self.model
        windows, misfit = self._windows.of(counts if seen is None else seen)
        silence_copies(model, counts if seen is None else seen, windows)
        documented = tighten(model.compiled, windows, proofs_only=True)
        if misfit.any() or not documented.feasible.all():
            raise InternalError("the published counts contradict the mechanism that produced them.")
        best, *others = self.prior.variants
        posterior = self._posterior(counts, windows, documented, best, true)
        by_itself, _ = self._windows_alone.of(counts)
        bounds_alone = tighten(model.no_sums, by_itself)
        without_sums = EvidenceBlock(
            model.no_sums, by_itself, bounds_alone, self.prior.weights_alone(bounds_alone.low, bounds_alone.high)
        )
        true_alone = posteriors(without_sums, true).asked
        alone = posteriors(without_sums, np.maximum(posterior.mode, 0)).asked
        assert posterior.asked is not None
        assert true_alone is not None
        assert alone is not None
        near = np.asarray(posterior.probability >= NEAR * self.threshold)

        def asked(variant: str, rows: NDArray[np.int64], _which: BoolArray) -> FloatArray:
            some = windows.rows(rows), documented.rows(rows)
            chances = self._posterior(counts[rows], *some, variant, np.maximum(posterior.mode[rows], 0)).asked
            assert chances is not None
            return self.prior.believed(variant, chances, posterior.probability[rows])

        each = OverPriors.ask(others, posterior, near, alone, self.threshold, asked)
        given = np.broadcast_to(model.exact, counts.shape)
        bounds = BlockBounds(windows, np.zeros(counts.shape, dtype=np.int32), given, documented)
        claims = decide(bounds, bounds, posterior, each.lowest, self.threshold)
        dropped = claims.of_kind(ClaimKind.LIKELY) & known_alone(each.mean, alone, self.threshold)
        certain = bool(windows.certain.all() and by_itself.certain.all())
        left, left_alone = (reached.high - reached.low + 1 if certain else None for reached in (documented, bounds_alone))
        return AttackResult(claims.dropping(dropped, alone), posterior, posterior.asked, true_alone, left, left_alone)

    def _posterior(
        self, counts: Counts, windows: Windows, documented: CellBounds, variant: str, value: Counts
    ) -> BlockPosterior:
        """Work out what is likely under one prior of the set, and how likely the counts are that are asked for."""
        if windows.certain.all() or (counts <= ABSENT).any():
            within = documented if windows.certain.all() else tighten(self.model.compiled, windows)
            weights = self.prior.weights(counts, within.low, within.high, variant)
            keyed = None
            if self._keyed is not None:
                active = np.ones((len(counts), len(self.model.equations)), dtype=np.bool_)
                keyed = keyed_evidence(self._keyed, windows, counts, active)
            return posteriors(EvidenceBlock(self.model.compiled, windows, within, weights, None, keyed), value)
        self._narrower = self._narrower or self._finest(counts[:PILOT], value[:PILOT])
        return self._narrower.posteriors(counts, self.prior, value, variant)

    def _finest(self, counts: Counts, true: Counts) -> Narrower:
        """Return the narrowing that leaves out least, of those for which all sums can still be used."""
        for cut in COARSER:
            narrower = Narrower(self.model, cut)
            if not narrower.posteriors(counts, self.prior, true).cut.any():
                break
        return narrower
