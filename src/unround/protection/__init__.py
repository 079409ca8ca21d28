"""Publishing more safely: a table of true counts becomes a release, under any mechanism of the library.

- `table`: protection, publish_counts: arrays in, arrays out, and how far the result is from the truth; START HERE for
  experiments
- `walk`: controlled rounding, all counts of an area at once
- `keys`: the sums of records' keys, from a secret, for rounding by keys
- `key_sums`: the same across areas within areas, or as an agency has added them up from its records
- `release`: protect: from a file to a folder
"""

from unround.protection.table import Protection as Protection
from unround.protection.table import ProtectionScore as ProtectionScore
from unround.protection.table import parse_protection as parse_protection
from unround.protection.table import publish_counts as publish_counts
