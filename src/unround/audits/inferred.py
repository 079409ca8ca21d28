"""What is inferred about a block of areas."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unround.audits.bounds import BlockBounds
from unround.audits.claims import BlockClaims, ClaimKind, Needs
from unround.audits.contradictions import Active, Contradiction
from unround.audits.figures import FigureBounds
from unround.audits.nested import NestedAreas
from unround.audits.probabilities import BlockProbabilities
from unround.audits.suspects import Suspect
from unround.mechanisms.base import BoolArray
from unround.release import Counts


@dataclass(frozen=True, slots=True, eq=False)
class InferredBlock:
    """What was inferred about a block of areas.

    - `counts`: What was published.
    - `active`: Which sums were used in which area.
    - `documented`: What is possible by what the agency documents.
    - `assumed`: The same if counts that may have been adjusted are exact. The same object where that makes no difference.
    - `probabilities`: What is likely.
    - `claims`: What is claimed.
    - `contradictions`: Published numbers that cannot all be right.
    - `clashing`: The cells in contradictions.
    - `nested`: How areas are nested, where any are linked.
    - `suspects`: Sums that are possible, but absurd: of their areas nothing is claimed but what is proved.
    - `figured`: What is possible if figures were computed from true counts, where there are any.
    """

    counts: Counts
    active: Active
    documented: BlockBounds
    assumed: BlockBounds
    probabilities: BlockProbabilities
    claims: BlockClaims
    contradictions: tuple[Contradiction, ...]
    clashing: BoolArray
    nested: NestedAreas | None = None
    suspects: tuple[Suspect, ...] = ()
    figured: FigureBounds | None = None

    @property
    def by_figures(self) -> BoolArray:
        """Where a claim would not be made, or not be certain, without figures."""
        kinds, marked = self.claims.kinds, np.zeros(self.counts.shape, dtype=np.bool_)
        if self.figured is not None:
            marked |= (kinds == ClaimKind.LIKELY) & (self.claims.needs == Needs.FIGURE)
            certain = self.assumed.tight.low == self.assumed.tight.high
            marked |= (kinds == ClaimKind.CONDITIONAL) & ~certain
        return marked
