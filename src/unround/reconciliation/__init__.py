"""One table that adds up: the published counts moved to where every sum holds, as near to the truth as can be.

- `run`: START HERE: from a file to a folder
- `estimating`: the posterior mean of every count, under one prior
- `nearest`: the nearest whole numbers along a forest of sums, compiled
- `systems`: sums of several areas as one sparse system: means that add up, integer programs
- `rounding`: whole numbers, area by area and from the outermost areas inwards
- `result`: every count, how it was made, and how much was gained
- `layout`: tables written as they came, with other counts
"""

from unround.reconciliation.result import ReconcileOptions as ReconcileOptions
from unround.reconciliation.run import Reconciled as Reconciled
from unround.reconciliation.run import reconcile as reconcile
