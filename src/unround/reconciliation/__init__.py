"""One table that adds up: the published counts moved to where every sum holds, as near to the truth as can be (`additive`).

- `run`: START HERE: from a file to a folder
- `estimating`: the posterior mean of every count, under one prior
- `result`: every count, how it was made, and how much was gained
- `layout`: tables written as they came, with other counts
"""

from unround.reconciliation.result import ReconcileOptions as ReconcileOptions
from unround.reconciliation.run import Reconciled as Reconciled
from unround.reconciliation.run import reconcile as reconcile
