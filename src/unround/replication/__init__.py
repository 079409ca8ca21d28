"""Every number of the paper, recomputed by the library's general functions.

- `paper`: what the paper states, beside what unround computes; `claims` is all of it; `excess`: what could explain that the
  authors found more than they predicted
- `searches`: the paper's searches on a simulated census (`experiment`, `ten_seeds`, `pooled`) and on any release

The paper: C. West, Vecna and R. Chowdhury, Random (Un)rounding, University of Waterloo, 2022.
"""

from __future__ import annotations

from unround.replication.paper import (
    Adjusted,
    Claim,
    base_claims,
    condition_claims,
    count_claims,
    excess,
    excess_claims,
    noise_claims,
    probability_claims,
    protection_claims,
    result_claims,
    rounding_claims,
    sample_claims,
    unknown_claims,
)
from unround.replication.searches import Experiment, Outcome, experiment, pooled, ten_seeds

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
