"""Every number of the paper, recomputed by the library's general functions.

- `paper`: what the paper states, beside what unround computes; `claims` is all of it; `excess`: what could explain that the
  authors found more than they predicted
- `searches`: the paper's searches on a simulated census (`experiment`, `ten_seeds`, `pooled`) and on any release

The paper: C. West, Vecna and R. Chowdhury, Random (Un)rounding, University of Waterloo, 2022.
"""

from __future__ import annotations

from unround.replication.paper import Adjusted, Claim, claims, excess
from unround.replication.searches import Experiment, Outcome, experiment, pooled, ten_seeds

__all__ = ["Adjusted", "Claim", "Experiment", "Outcome", "claims", "excess", "experiment", "pooled", "ten_seeds"]
