"""Every number of the paper, recomputed by the library's general functions.

- `paper`: what the paper states, beside what unround computes; `claims` is all of it
- `searches`: the paper's searches on a simulated census (`experiment`) and on any release

The paper: C. West, Vecna and R. Chowdhury, Random (Un)rounding, University of Waterloo, 2022.
"""

from __future__ import annotations

from unround.replication.paper import Claim, claims
from unround.replication.searches import Experiment, Outcome, experiment

__all__ = ["Claim", "Experiment", "Outcome", "claims", "experiment"]
