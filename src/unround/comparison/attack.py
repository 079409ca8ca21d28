"""What somebody infers who has the published table, the sums, and the mechanism; and how much of it is true."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.audits.model import Model
from unround.batch.compiled_sums import compile_sums
from unround.batch.posterior import posteriors
from unround.batch.tighten import tighten
from unround.batch.types import Posterior
from unround.batch.windows import WindowTable
from unround.comparison.narrow import CUT, Narrower
from unround.errors import InternalError
from unround.mechanisms import Mechanism
from unround.prior import Prior
from unround.release import ABSENT, Counts

THRESHOLD = 0.66
"""From which probability on a count is likely, as in an audit."""

COARSER = (CUT, 1e-4, 1e-3, 1e-2)
"""Cuts to try, where wide noise leaves too many counts possible for a finer one."""

PILOT = 64
"""Areas on which that is tried."""


@dataclass(frozen=True, slots=True, eq=False)
class Inference:
    """What is inferred of a block of areas.

    `proved` and `likely` mark claims, as an audit makes them; `value` is what is claimed. `truth` is the probability that is
    put on the true count, and `alone` the same from the published count and the column's distribution, without any sum.
    """

    proved: NDArray[np.bool_]
    likely: NDArray[np.bool_]
    value: Counts
    posterior: Posterior
    truth: NDArray[np.float64]
    alone: NDArray[np.float64]


class Attacker:
    """Infers, block after block, under one model.

    Parameters
    ----------
    model : Model
        The columns, how they were published, and the sums.
    prior : Prior
        What true counts are like.
    threshold : float
        From which probability on a count is likely.
    alone : tuple of Mechanism, optional
        How each column was published, looked at by itself, where that differs from the model's.

    Notes
    -----
    An audit does the same, and explains itself besides; here only the claims are wanted, and what is thought of the truth.
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
        self._no_sums = compile_sums(len(model.columns), (), frozenset())
        self._narrower: Narrower | None = None

    @property
    def cut(self) -> float | None:
        """How unlikely counts must be, beside the likeliest, to be left out of account; None where none is."""
        return self._narrower.cut if self._narrower is not None else None

    def infer(self, counts: Counts, true: Counts) -> Inference:
        """Infer what can be inferred from published counts, and look up what is thought of the true ones.

        Raises
        ------
        InternalError
            If an area has no solution: what is published by the mechanism itself cannot contradict it.
        """
        model = self.model
        windows, misfit = self._windows.of(counts)
        documented = tighten(model.compiled, windows, proofs_only=True)
        if misfit.any() or not documented.feasible.all():
            raise InternalError("what was published contradicts the mechanism by which it was published.")
        table = self.prior.table
        if windows.certain.all() or (counts <= ABSENT).any():
            reach = documented if windows.certain.all() else tighten(model.compiled, windows)
            posterior = posteriors(model.compiled, windows, reach, table, None, true)
        else:
            self._narrower = self._narrower or self._finest(counts[:PILOT], true[:PILOT])
            posterior = self._narrower.posteriors(counts, table, true)
        by_itself, _ = self._windows_alone.of(counts)
        own = posteriors(self._no_sums, by_itself, tighten(self._no_sums, by_itself), self.prior.own, None, true)
        assert posterior.asked is not None
        assert own.asked is not None
        given = model.exact[None, :]
        proved = (documented.low == documented.high) & ~given
        likely = (posterior.probability >= self.threshold) & ~proved & ~given
        likely &= ~((own.mode == posterior.mode) & (own.probability >= self.threshold))
        value = np.where(proved, documented.low, posterior.mode)
        return Inference(proved, likely, value, posterior, posterior.asked, own.asked)

    def _finest(self, counts: Counts, true: Counts) -> Narrower:
        """Return the narrowing that leaves out least, of those for which all sums can still be used."""
        for cut in COARSER:
            narrower = Narrower(self.model, cut)
            if not narrower.posteriors(counts, self.prior.table, true).cut.any():
                break
        return narrower
