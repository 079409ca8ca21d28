"""Whether the data fit the declared mechanism.

- `pipeline`: START HERE. `check_release`, and `Check`, what it returns
- `sums`: which sums are tested, and the families they belong to
- `gather`: their residuals over all areas
- `law`: the residuals that the mechanisms imply
- `family`: an observed histogram beside the expected one, and the verdict; `meaning`: the verdict in words
- `dependence`: what shared random numbers do to residuals and probabilities
- `values`, `areas`: families of another kind: the published counts themselves, and areas under their parents
- `estimate`: what the mechanism seems to be; `clash`: the cells of an impossible sum
"""

from unround.checks.family import Family
from unround.checks.run import Check, check_release, check_spool

__all__ = ["Check", "Family", "check_release", "check_spool"]
