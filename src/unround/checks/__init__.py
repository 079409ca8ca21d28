"""Whether the data fit the mechanism that was declared for them, or inferred.

- `run`: START HERE. `check_release`, and `Check`, what it returns
- `sums`: which sums are tested, and the families they belong to
- `gather`: their residuals over all areas
- `law`, `expected`: the residuals that the mechanisms imply
- `families`: an observed histogram beside the expected one, and the verdict; `meaning`: the verdict in words
- `random_numbers`: what the random numbers of every table do: `keys` by its sums, `repeated` by counts in several tables
- `parents`: another kind of family: areas within their parents
- `estimate`: what the mechanism appears to be, and the families of published counts themselves
"""

from unround.checks.families import Family
from unround.checks.run import Check, check_release, check_spool

__all__ = ["Check", "Family", "check_release", "check_spool"]
