"""What true counts are like over all areas of a release, worked out of what was published of them.

Proofs and bounds need none of this; probabilities do. A flat prior, every combination of true counts being equally likely,
makes a total of many mostly empty parts too large. So an audit fits one to the release:

- `histograms`: how often each count was published, gathered block by block
- `deconvolve`: from there to the distribution of true counts of a column
- `shares`: how totals split into parts, and how much that differs between areas
- `table`: both put together, as one table of weights a column
- `fitted`: PriorFit gathers and fits, Prior is the result
"""

from unround.prior.deconvolve import fit
from unround.prior.fitted import Prior, PriorFit
from unround.prior.histograms import Histograms

__all__ = ["Histograms", "Prior", "PriorFit", "fit"]
