"""Every number of the paper, recomputed by the library's general functions.

- `claims`: what the paper states, beside what unround computes
- `experiment`, `ten_seeds`, `pooled`: the paper's searches on a simulated census
- `release.search_release`: the same searches on any release
- `excess`: what could explain that the authors found more than they predicted

The paper: C. West, Vecna and R. Chowdhury, Random (Un)rounding, University of Waterloo, 2022.
"""

from __future__ import annotations

from unround.replication.claim import Claim
from unround.replication.examples import (
    base_claims,
    condition_claims,
    count_claims,
    excess_claims,
    noise_claims,
    probability_claims,
    protection_claims,
    result_claims,
    rounding_claims,
    sample_claims,
    unknown_claims,
)
from unround.replication.excess import Adjusted, excess
from unround.replication.experiment import experiment, ten_seeds
from unround.replication.outcome import Experiment, Outcome, pooled

__all__ = ["Adjusted", "Claim", "Experiment", "Outcome", "claims", "excess", "experiment", "pooled", "ten_seeds"]


def claims() -> tuple[Claim, ...]:
    """Return every claim of the paper, in its order as far as it goes; what cannot be recomputed comes last.

    Examples
    --------
    >>> [claim.computed for claim in claims() if claim.paper == 1308]
    [1302.0833333333333]
    """
    groups = (
        rounding_claims,
        sample_claims,
        condition_claims,
        probability_claims,
        count_claims,
        excess_claims,
        result_claims,
        base_claims,
        noise_claims,
        protection_claims,
        unknown_claims,
    )
    found = [claim for group in groups for claim in group()]
    return tuple(sorted(found, key=lambda claim: claim.agrees is None))
