"""Whether the data fit the mechanism that was declared for them, or inferred.

- `run`: START HERE. `check_release`, and `Check`, what it returns; verdicts in words
- `families`: which sums are tested, an observed histogram beside the expected one, and the verdict
- `residuals`: the residuals of sums over all areas, and those that the mechanisms imply
- `keys`: what the random numbers of every table do, by its sums and by counts in several tables
- `parents`: another kind of family: areas within their parents
- `estimate`: what the mechanism appears to be, and the families of published counts themselves
"""

from unround.checks.families import Family
from unround.checks.run import Check, check_release, check_spool

__all__ = ["Check", "Family", "check_release", "check_spool"]
