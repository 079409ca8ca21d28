"""Adding up columns, against a sparse matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from unround.structure.residuals import AddUp


@pytest.mark.parametrize("seed", range(5))
def test_it_is_a_sparse_matrix_of_ones(seed):
    rng = np.random.default_rng(seed)
    lists = [tuple(rng.choice(30, rng.integers(0, 9), replace=False).tolist()) for _ in range(12)]
    ends, columns = np.cumsum([0, *map(len, lists)]), np.array([c for list_ in lists for c in list_])
    matrix = csr_array((np.ones(len(columns), dtype=np.int64), columns, ends), shape=(12, 30))
    for table in (rng.integers(-50, 50, (30, 7)), rng.integers(0, 9, 30), rng.normal(size=(30, 4))):
        assert np.allclose(AddUp(lists) @ table, matrix @ table)
