"""What is inferred about a block of areas, and what the user decided about that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unround.audits.across import Across
from unround.audits.contradictions import Active, Contradiction
from unround.batch.types import Posterior, Tight, Windows
from unround.linked.engine import Linked
from unround.release import Counts

OPEN, PROVED, CONDITIONAL, LIKELY = 0, 1, 2, 3
PRIOR_NEEDED = -1
"""The depth of a likely claim that sums alone, under a flat prior, do not explain."""

OTHERS_NEEDED = -2
"""The depth of a claim that needs other areas."""

KINDS = ("open", "proved", "conditional", "likely")
"""The names of the codes above."""

Kinds = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Rules:
    """What the user decides.

    Parameters
    ----------
    threshold : float
        From which probability on a count is likely.
    exact_population : bool
        Whether probabilities, and conditional claims, take counts as exact that the agency may have adjusted a little.
    """

    threshold: float = 0.66
    exact_population: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Concluded:
    """What follows from bounds and probabilities; see `Inferred` for the arrays."""

    posterior: Posterior
    kinds: Kinds
    value: NDArray[np.int32]
    depth: NDArray[np.int32]
    alone: NDArray[np.bool_]
    singly: NDArray[np.bool_]
    unweighed: NDArray[np.bool_]
    linked: Linked | None


@dataclass(frozen=True, slots=True, eq=False)
class Inferred:
    """What was inferred about a block of areas.

    Parameters
    ----------
    counts : array
        What was published.
    documented_windows, documented, documented_slack
        What the agency documents: the true counts that this leaves possible, before and after all sums had their say,
        and by how much exact counts may have been changed.
    windows, assumed, slack
        The same if counts that may have been adjusted are exact as well. The same objects where that makes no difference.
    reach : Tight
        The bounds that probabilities keep to: they leave out tails, where noise has them; else the same as `assumed`.
    posterior : Posterior
        What is likely.
    kinds, value, depth : array
        For every cell, what can be claimed, the count that is claimed, and how many sums deep the argument is.
    alone : array
        Where a count is likely without any sum, from its published value and the prior: no finding.
    active : array
        Which sums were used in which area.
    contradictions : list
        What cannot be.
    clashing : array
        The cells in contradictions.
    singly : array
        The cells that are cut off from a sum that they stand in, and were judged each by itself: nothing is claimed to be
        likely of them.
    unweighed : array
        The areas in which sums say nothing about what is likely, because noise leaves too much possible.
    without : Concluded or None
        What would follow if no random numbers were shared; None where none are, or nobody asked.
    across, linked
        What areas that lie within each other say about one another: bounds, and probabilities.
    """

    counts: Counts
    documented_windows: Windows
    documented: Tight
    documented_slack: NDArray[np.int32]
    windows: Windows
    assumed: Tight
    slack: NDArray[np.int32]
    reach: Tight
    posterior: Posterior
    kinds: Kinds
    value: NDArray[np.int32]
    depth: NDArray[np.int32]
    alone: NDArray[np.bool_]
    active: Active
    contradictions: list[Contradiction]
    clashing: NDArray[np.bool_]
    singly: NDArray[np.bool_]
    unweighed: NDArray[np.bool_]
    without: Concluded | None = None
    across: Across | None = None
    linked: Linked | None = None

    @property
    def methods(self) -> NDArray[np.int8]:
        """By which method the probabilities of every area were obtained: places in `linked.methods.METHODS`."""
        return np.zeros(len(self.counts), dtype=np.int8) if self.linked is None else self.linked.method
