"""What true counts are like over all areas of a release, worked out from what was published of them.

Proofs and bounds need none of this; probabilities do. Every leaf of the sums is fitted by itself: an area's count is
taken to vary around a rate times the area's exposure, and the rates of all areas are deconvolved from the published counts.
Totals follow from their parts. Rounding hides part of the answer, so that the result is a small set of priors that fit about
equally well.

- `exposure`: which counts carry weight, and how many people of an area each of them is about
- `mixture`: how one count varies over areas
- `columns`: the mixtures of all columns, in all variants
- `sexes`: how counts split into men and women
- `weights`: likelihood times prior, as windows for the engines
- `fitted`: PriorFit gathers and fits, Prior is the result
- `deconvolve`: the distribution of a single column by itself, for checks
"""

from unround.prior.columns import DENSER, VARIANTS
from unround.prior.deconvolve import Histograms, fit
from unround.prior.fitted import Prior, PriorFit

__all__ = ["DENSER", "VARIANTS", "Histograms", "Prior", "PriorFit", "fit"]
