"""The tails of the chi-square and of the Poisson distribution, against scipy's."""

from __future__ import annotations

import pytest
from scipy.special import chdtrc, gammainc, pdtr

from unround.expectation import chi_square_tail, poisson_at_least, poisson_at_most


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 16, 45, 200, 1001])
@pytest.mark.parametrize("times", [0.0, 0.01, 0.5, 1.0, 1.7, 6.0])
def test_chi_square_is_scipys(freedom, times):
    statistic = times * freedom
    assert chi_square_tail(freedom, statistic) == pytest.approx(chdtrc(freedom, statistic), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("mean", [0.01, 0.7, 3.0, 195.2, 4000.0])
@pytest.mark.parametrize("times", [0.0, 0.2, 0.9, 1.0, 1.1, 3.0])
def test_poisson_is_scipys(mean, times):
    count = int(times * mean)
    assert poisson_at_most(count, mean) == pytest.approx(pdtr(count, mean), rel=1e-8, abs=1e-290)
    least = 1.0 if count == 0 else gammainc(count, mean)
    assert poisson_at_least(count, mean) == pytest.approx(least, rel=1e-8, abs=1e-290)
