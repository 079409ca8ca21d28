"""Adding up columns: many sums of a table at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class AddUp:
    """What adds up columns: `AddUp(lists) @ table` has a row for every list of columns, which are the rows of the table.

    The same as a sparse matrix of ones, but numpy alone does it: to import scipy's would take longer than most tables do.

    Examples
    --------
    >>> (AddUp([(0, 1), (2,), ()]) @ np.array([[1, 10], [2, 20], [3, 30]])).tolist()
    [[3, 30], [3, 30], [0, 0]]
    """

    def __init__(self, lists: Sequence[Sequence[int] | NDArray[np.int64]]) -> None:
        self._lists = [np.asarray(one, dtype=np.int64) for one in lists]

    def __matmul__(self, table: NDArray[Any]) -> NDArray[Any]:
        found = np.empty((len(self._lists), *table.shape[1:]), dtype=table.dtype)
        for row, columns in enumerate(self._lists):
            found[row] = np.add.reduce(table[columns], axis=0)
        return found
