"""Exact draws: agree with closed forms and with OpenDP; from a seed, or from the operating system."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from unround.errors import InputError
from unround.mechanisms import Gaussian, Laplace, Mechanism, Rounding, Transition, mechanism, sampling

N = 200_000
NOISE = [
    Laplace(1.45),
    Laplace(0.3),
    Laplace(12.3456789),
    Laplace(1.2345678901234567),
    Gaussian(2),
    Gaussian(0.5),
    Gaussian(7.25),
    Gaussian(1.2345678901234567),
    Laplace(1.45, clamped=True),
    Gaussian(2, clamped=True),
]


def surprise(m: Mechanism, published: np.ndarray, true: int) -> float:
    """Return the p-value of Pearson's test of draws against the stated probabilities; rare outcomes count together."""
    values, times = np.unique(published, return_counts=True)
    expected = len(published) * np.asarray(m.likelihood(values, np.array(true)))
    assert (expected > 0).all(), "drawn, though impossible"
    common = expected >= 10
    seen = np.append(times[common], times[~common].sum())
    wanted = np.append(expected[common], len(published) - expected[common].sum())
    keep = wanted > 1
    return float(stats.chi2.sf(((seen - wanted) ** 2 / np.maximum(wanted, 1e-300))[keep].sum(), keep.sum() - 1))


@pytest.mark.parametrize("m", NOISE, ids=lambda m: m.name)
def test_draws_follow_the_stated_probabilities(m: Mechanism) -> None:
    published = m.publish(np.full(N, 3), np.random.default_rng(4))
    assert surprise(m, published, 3) > 1e-3
    again = m.publish(np.full(N, 3), np.random.default_rng(4))
    assert np.array_equal(published, again)


def test_a_wrong_scale_would_be_noticed() -> None:
    published = Laplace(1.5).publish(np.full(N, 3), np.random.default_rng(4))
    assert surprise(Laplace(1.45), published, 3) < 1e-6


@pytest.mark.parametrize("exponent", ["0", "1/3", "1", "7/2", "12345678901234567890/9876543210987654321"])
def test_coins_of_e_to_minus_a_fraction(exponent: str) -> None:
    gamma = Fraction(exponent)
    heads = sampling.exp_coins([gamma], np.zeros(N, dtype=np.int64), np.random.default_rng(1))
    p = math.exp(-gamma)
    assert abs(heads.mean() - p) <= 4.5 * math.sqrt(p * (1 - p) / N)


class Digits:
    """A generator that deals given digits."""

    def __init__(self, *digits: int) -> None:
        self.digits = list(digits)

    def integers(self, low: int, high: int, size: int | None = None) -> object:
        assert (low, high) == (0, 1 << 62)
        return self.digits.pop(0) if size is None else np.array([self.digits.pop(0) for _ in range(size)])


def test_a_coin_looks_as_far_as_it_must() -> None:
    """1/3 is 0.0101… in binary: the first 62 digits, then the same again."""
    third = (1 << 62) // 3
    for digits, heads in (
        ((third - 1,), True),
        ((third + 1,), False),
        ((third, third - 1), True),
        ((third, third, third + 1), False),
    ):
        generator = Digits(*digits)
        assert sampling.coins([1], np.zeros(1, dtype=np.int64), 3, generator).tolist() == [heads]  # type: ignore[arg-type]
        assert not generator.digits
    half = Digits(1 << 61)
    assert sampling.coins([1], np.zeros(1, dtype=np.int64), 2, half).tolist() == [False]  # type: ignore[arg-type]


@pytest.mark.parametrize("digits", [3, 40])
def test_a_table_of_probabilities_of_any_length(digits: int) -> None:
    """Denominators beyond 64 bits are drawn from exactly as well."""
    small = Fraction(1, 3) + Fraction(1, 10**digits)
    table = Transition((((0, 1 - small - Fraction(1, 7)), (1, small), (2, Fraction(1, 7))),))
    published = table.publish(np.zeros(N, dtype=np.int64), np.random.default_rng(2))
    assert surprise(table, published, 0) > 1e-3


def test_opendp_draws_the_same_noise() -> None:
    """Its draws cannot be seeded: bounds are ten standard errors wide, so that chance never fails the test."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int))
    n = 20_000
    for ours, theirs in (
        (Laplace(1.45), dp.m.make_laplace(space, dp.l1_distance(T=int), scale=1.45)),
        (Gaussian(2.5), dp.m.make_gaussian(space, dp.l2_distance(T=float), scale=2.5)),
    ):
        drawn = np.array(theirs([0] * n))
        ours_drawn = ours.publish(np.zeros(n, dtype=np.int64), np.random.default_rng(8))
        for k in range(-4, 5):
            p = float(ours.likelihood(k, np.array(0)))
            assert abs((drawn == k).mean() - p) < 10 * math.sqrt(p * (1 - p) / n)
            assert abs((ours_drawn == k).mean() - p) < 4.5 * math.sqrt(p * (1 - p) / n)


# --- The system's generator -------------------------------------------------------------------------------


def test_the_system_generator_draws_what_is_asked_for() -> None:
    rng = sampling.SystemGenerator()
    for bound in (1, 2, 3, 7, 1 << 62, (1 << 63) - 1):
        drawn = rng.integers(0, bound, size=500)
        assert drawn.shape == (500,)
        assert ((drawn >= 0) & (drawn < bound)).all()
    assert set(rng.integers(-2, 3, size=2000).tolist()) == {-2, -1, 0, 1, 2}
    assert set(rng.integers(0, np.array([1, 2]), size=(1000, 2))[:, 1].tolist()) == {0, 1}
    assert rng.integers(4, endpoint=True, size=3000).max() == 4
    assert 0 <= rng.integers(9) < 9
    assert rng.integers(0, 1 << 63, size=10, dtype=np.uint64).dtype == np.uint64
    assert ((shares := rng.random(1000)) >= 0).all()
    assert (shares < 1).all()
    assert not np.array_equal(rng.integers(0, 1 << 62, size=9), rng.integers(0, 1 << 62, size=9))
    with pytest.raises(ValueError, match="no whole number to draw below"):
        rng.integers(0, 0, size=3)


def test_the_system_generator_offers_nothing_that_would_not_be_its_own() -> None:
    with pytest.raises(AttributeError, match="only integers and random"):
        sampling.SystemGenerator().normal()


@pytest.mark.parametrize(
    "m", [Rounding(5), Laplace(1.45), Gaussian(2), mechanism("residues:0,1/3,2/3")], ids=lambda m: m.name
)
def test_mechanisms_draw_from_the_system(m: Mechanism) -> None:
    """Ten standard errors, for these draws are new every time."""
    n = 20_000
    published = m.publish(np.full(n, 7), sampling.SystemGenerator())
    for y in np.unique(published)[:6]:
        p = float(m.likelihood(int(y), np.array(7)))
        assert abs((published == y).mean() - p) < 10 * math.sqrt(p * (1 - p) / n) + 1e-3


# --- Noise that stops at 0 ---------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [m for m in NOISE if m.clamped], ids=lambda m: m.name)  # type: ignore[attr-defined]
def test_clamped_noise(m: Laplace | Gaussian) -> None:
    free = mechanism(m.name.removesuffix(",clamped"))
    assert mechanism(m.name) == m != free
    true, below = np.arange(60), np.arange(-500, 1)
    gathered = free.likelihood(below[:, None], true).sum(axis=0)
    np.testing.assert_allclose(m.likelihood(0, true), gathered, rtol=1e-9, atol=1e-14)
    assert m.likelihood(9, np.array(4)) == free.likelihood(9, np.array(4))
    assert m.window(0).low == 0
    assert not m.window(0).certain
    assert "negative results published as 0" in m.sentence
    with pytest.raises(InputError, match=r"^-1 cannot come from .* negative counts published as 0\.$"):
        m.window(-1)


def test_only_the_word_clamped_follows_a_scale() -> None:
    with pytest.raises(InputError, match=r"^laplace needs a scale, such as laplace:1\.45; not '1\.45,cut'\.$"):
        mechanism("laplace:1.45,cut")
