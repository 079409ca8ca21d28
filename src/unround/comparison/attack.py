"""What somebody infers who has the published table, the sums, and the mechanism; and how much of it is true."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.audits.bounds import BlockBounds
from unround.audits.claims import BlockClaims, ClaimKind, decide, known_alone
from unround.audits.contradictions import rows_of, tight_of
from unround.audits.model import Model
from unround.audits.probabilities import NEAR, OverPriors
from unround.bounds.tighten import tighten
from unround.comparison.narrow import CUT, Narrower
from unround.engines.forest import posteriors
from unround.errors import InternalError
from unround.evidence.block import Posterior, Tight, Windows, WindowTable
from unround.mechanisms import Mechanism
from unround.mechanisms.base import BoolArray, FloatArray
from unround.options import THRESHOLD
from unround.prior import Prior
from unround.release import ABSENT, Counts

COARSER = (CUT, 1e-4, 1e-3, 1e-2)
"""Cuts to try, where wide noise leaves too many counts possible for a finer one."""

PILOT = 64
"""Areas on which that is tried."""


@dataclass(frozen=True, slots=True, eq=False)
class AttackResult:
    """What is inferred of a block of areas.

    `claims` are those of an audit. `truth` is the probability of the true count, and `alone` the same from the published
    count and the column's distribution, without any sum.
    """

    claims: BlockClaims
    posterior: Posterior
    truth: NDArray[np.float64]
    alone: NDArray[np.float64]


class Attacker:
    """Infers, block after block, under one model.

    - `model`: The columns, how they were published, and the sums.
    - `prior`: What true counts are like.
    - `threshold`: Minimum probability to report a count as likely.
    - `alone`: How each column was published, looked at by itself, where that differs from the model's.

    Notes
    -----
    An audit does the same, and explains itself as well; here only the claims are wanted, and how likely the truth is.
    Noise without bounds is worked out within narrowed ranges; see `narrow`. `cut` says where they end, and is None where
    posteriors are exact.
    """

    def __init__(
        self, model: Model, prior: Prior, threshold: float = THRESHOLD, alone: tuple[Mechanism, ...] | None = None
    ) -> None:
        self.model = model
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

        Raises `InternalError` if an area has no solution: what is published by the mechanism itself cannot contradict
        it.
        """
        model = self.model
        windows, misfit = self._windows.of(counts if seen is None else seen)
        documented = tighten(model.compiled, windows, proofs_only=True)
        if misfit.any() or not documented.feasible.all():
            raise InternalError("the published counts contradict the mechanism that produced them.")
        best, *others = self.prior.variants
        posterior = self._posterior(counts, windows, documented, best, true)
        by_itself, _ = self._windows_alone.of(counts)
        reach = tighten(model.no_sums, by_itself)
        weights = self.prior.weights_alone(reach.low, reach.high)
        true_alone = posteriors(model.no_sums, by_itself, reach, weights, None, true).asked
        alone = posteriors(model.no_sums, by_itself, reach, weights, None, np.maximum(posterior.mode, 0)).asked
        assert posterior.asked is not None
        assert true_alone is not None
        assert alone is not None
        near = np.asarray(posterior.probability >= NEAR * self.threshold)

        def asked(variant: str, rows: NDArray[np.int64], _which: BoolArray) -> FloatArray:
            some = rows_of(windows, rows), tight_of(documented, rows)
            found = self._posterior(counts[rows], *some, variant, np.maximum(posterior.mode[rows], 0)).asked
            assert found is not None
            return found

        each = OverPriors.ask(others, posterior, near, alone, self.threshold, asked)
        given = np.broadcast_to(model.exact, counts.shape)
        bounds = BlockBounds(windows, np.zeros(counts.shape, dtype=np.int32), given, documented)
        claims = decide(bounds, bounds, posterior, each.lowest, self.threshold)
        dropped = claims.of_kind(ClaimKind.LIKELY) & known_alone(each.mean, alone, self.threshold)
        return AttackResult(claims.dropping(dropped, claims.depth, alone), posterior, posterior.asked, true_alone)

    def _posterior(self, counts: Counts, windows: Windows, documented: Tight, variant: str, value: Counts) -> Posterior:
        """Work out what is likely under one prior of the set, and how likely the counts are that are asked for."""
        if windows.certain.all() or (counts <= ABSENT).any():
            reach = documented if windows.certain.all() else tighten(self.model.compiled, windows)
            weights = self.prior.weights(counts, reach.low, reach.high, variant)
            return posteriors(self.model.compiled, windows, reach, weights, None, value)
        self._narrower = self._narrower or self._finest(counts[:PILOT], value[:PILOT])
        return self._narrower.posteriors(counts, self.prior, value, variant)

    def _finest(self, counts: Counts, true: Counts) -> Narrower:
        """Return the narrowing that leaves out least, of those for which all sums can still be used."""
        for cut in COARSER:
            narrower = Narrower(self.model, cut)
            if not narrower.posteriors(counts, self.prior, true).cut.any():
                break
        return narrower
