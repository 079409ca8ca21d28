"""The laws that every mechanism keeps, and what is particular to each."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from unround.errors import InputError
from unround.mechanisms import (
    HIDDEN,
    TAIL,
    Bands,
    CellKey,
    Cutoff,
    Digits,
    Exact,
    Gaussian,
    Graduated,
    Laplace,
    Mechanism,
    Midpoint,
    Nearest,
    Residues,
    Rounding,
    Sample,
    Suppressed,
    Transition,
    Unpublished,
    Within,
    mechanism,
)
from unround.mechanisms.bands import Band

# The last row leaves out the change 0, and the row of 2 jumps: windows have holes and take from several rows.
CELL_KEY = Transition(
    (
        ((0, 1),),
        ((-1, "1/2"), (0, "0.25"), (2, "0.25")),
        ((-2, "1/3"), (4, "2/3")),
        ((-3, "0.1"), (-1, "0.4"), (1, "0.4"), (3, "0.1")),
    )
)

CATALOGUE: list[Mechanism] = [
    Rounding(5),
    Rounding(3),
    Rounding(1),
    Rounding(8),
    Sample(5),
    Sample(3),
    Graduated(),
    Graduated(((0, 1), (7, 20), (31, 3))),  # a base that shrinks, and borders inside of steps
    Residues(("0", "1/5", "2/5", "3/5", "4/5")),
    Residues(("0", "0", "1", "0.125")),  # biased; some never go up, some always
    Nearest(5),
    Nearest(10),
    Nearest(10, "even"),
    Nearest(4, "even"),
    Digits(1),
    Digits(2),
    Digits(2, "even"),
    Digits(4),
    Exact(),
    Within(5),
    Within(0),
    Unpublished(),
    Cutoff(4),
    Cutoff(8, Rounding(3)),
    Cutoff(3, Sample(5), Fraction(1, 100)),
    Suppressed(1, 7),
    Suppressed(1, 7, Nearest(5)),
    Suppressed(0, 2, Rounding(5)),
    Suppressed(4, 6, Laplace(1.45)),
    Suppressed(2, 2, CELL_KEY),
    Laplace(1.45),
    Laplace(0.3),
    Gaussian(2),
    Gaussian(0.5),
    Gaussian(7.25),
    CELL_KEY,
    Transition((((0, 1),), ((0, "1/2"), (1, "1/2")), ((-2, "1/2"), (2, "1/2"))), period=2),
    CellKey(2, 1),
    CellKey(3, 4, js=2),
    CellKey(4, 1, stay=0.5),
    Midpoint(6),
    Midpoint(5),
    Bands((Band(0, 0, 0, 0), Band(1, 7, 4, 4)), Nearest(5)),
    Bands((Band(1, 7, 0, 0),)),
    Bands((Band(1, 2, 0, 3),)),
    Bands((Band(4, 5, 3, 8), Band(30, 39, 0, 0)), Rounding(5)),
]
NOISY = [m for m in CATALOGUE if isinstance(m, Laplace | Gaussian)]

# Powers of ten from both sides, and where half-way counts lie.
LARGE = [9994, 9995, 9999, 10000, 10005, 123_449, 123_450, 999_949, 999_950, 1_000_049, 1_000_050]

exactly = settings(derandomize=True, deadline=None, max_examples=60)


def ids(m: Mechanism) -> str:
    return m.name


every = pytest.mark.parametrize("m", CATALOGUE, ids=ids)


def outcomes(m: Mechanism, x: int) -> list[int | None]:
    """List more published counts than `x` can have."""
    # Only to one or two digits does a large count go far: to a multiple of its own highest place.
    far = 10 ** len(str(x)) if isinstance(m, Digits) and m.digits < 4 else 130
    if far <= 1000:
        return [*range(x - far, x + far + 1), None]
    return [*range(0, x + far, far // 1000), None]


@every
def test_chances_sum_to_one_and_floats_agree(m):
    noisy = m in NOISY or (isinstance(m, Suppressed) and m.then in NOISY)
    for x in (0, 1, 4, 5, 9, 10, 15, 18, 19, 20, 30, 31, 99, 100, 999, 1000, *LARGE):
        published = outcomes(m, x)
        chances = [m.chance(y, x) for y in published]
        coded = np.array([HIDDEN if y is None else y for y in published])
        likelihoods = m.likelihood(coded, np.array(x))
        assert likelihoods.dtype == np.float64
        assert likelihoods.tolist() == [float(c) for c in chances], x
        assert sum(chances) == (pytest.approx(1, abs=1e-12) if noisy else 1), x


@every
def test_every_true_count_is_published_somehow(m):
    true, published = np.arange(1100), np.arange(-130, 1301)
    total = m.likelihood(published[:, None], true).sum(axis=0) + m.likelihood(None, true)
    np.testing.assert_allclose(total, 1, atol=1e-12)


@every
def test_no_count_below_zero_is_true(m):
    below = np.arange(-12, 0)
    for y in (None, 0, 5, -5):
        assert not m.likelihood(y, below).any()
        assert m.chance(y, -3) == 0


def windows(m: Mechanism, published: list[int]) -> dict[int, object]:
    """Collect the windows of all counts that could have been published."""
    found = {}
    for y in published:
        try:
            found[y] = m.window(y)
        except InputError:
            continue
    return found


@pytest.mark.parametrize("m", [m for m in CATALOGUE if m not in NOISY and m.name != "unpublished"], ids=ids)
def test_a_window_is_exactly_what_can_lead_there(m):
    # Digits(1) publishes 1000 for up to 1499, so true counts go further than published ones.
    true = np.arange(1600)
    published = np.array([*range(-8, 1010)])
    table = m.likelihood(published[:, None], true[None, :])
    if isinstance(m, Suppressed) and m.then in NOISY:
        table[np.abs(published[:, None] - true) > m.then.reach] = 0
        published, table = published[8:], table[8:]
    windows_of_cells = windows(m, published.tolist())
    assert sorted(windows_of_cells) == published[table.any(axis=1)].tolist()
    assert windows_of_cells, "nothing could be published"
    for y, row in zip(published.tolist(), table, strict=True):
        if y not in windows_of_cells:
            continue
        window = windows_of_cells[y]
        assert list(window) == np.flatnonzero(row).tolist()
        assert window.weights.tolist() == row[window.low : window.high + 1].tolist()
        assert window.weights[0] > 0
        assert window.weights[-1] > 0
        assert len(window.weights) == window.high - window.low + 1
        assert type(window.low) is int
        assert type(window.high) is int
        assert window.certain == (not (isinstance(m, Suppressed) and m.then in NOISY))


@pytest.mark.parametrize("m", NOISY, ids=ids)
@pytest.mark.parametrize("y", [0, 1, 7, 200, -1, -4])
def test_a_cut_window_leaves_out_less_than_it_says(m, y):
    window = m.window(y)
    assert window.certain is False
    everything = m.likelihood(y, np.arange(2000))
    outside = everything[: window.low].sum() + everything[window.high + 1 :].sum()
    assert outside / everything.sum() < TAIL
    assert window.weights.tolist() == everything[window.low : window.high + 1].tolist()
    assert (everything[window.high + 1 : window.high + 3] > 0).all() or m.reach < 5


@pytest.mark.parametrize("m", NOISY, ids=ids)
def test_the_reach_is_the_smallest_that_will_do(m):
    def outside(k: int) -> float:
        return 2 * math.fsum(m.likelihood(10**6, 10**6 + np.arange(k + 1, k + 400)))

    assert outside(m.reach) < TAIL <= outside(m.reach - 1)


@every
def test_broadcasting(m):
    published = np.array([[0], [5], [10], [HIDDEN]])
    true = np.arange(12)
    table = m.likelihood(published, true)
    assert table.shape == (4, 12)
    for row, y in zip(table, [0, 5, 10, None], strict=True):
        assert row.tolist() == m.likelihood(y, true).tolist()
        assert row.tolist() == [float(m.likelihood(y, np.array(x))) for x in true]
    assert m.likelihood(None, np.zeros((2, 3), dtype=np.int64)).shape == (2, 3)
    assert m.likelihood(np.array([], dtype=np.int64), np.array(3)).shape == (0,)


@every
@pytest.mark.parametrize("x", [0, 2, 8, 19, 33, 104])
def test_publish_follows_the_likelihood(m, x):
    n = 20_000
    drawn = m.publish(np.full(n, x), np.random.default_rng(x + 1))
    assert drawn.dtype == np.int64
    values, seen = np.unique(drawn, return_counts=True)
    expected = n * m.likelihood(values, np.array(x))
    assert (expected > 0).all(), "something impossible was published"
    # Rare outcomes go into one class, those that were never drawn among them.
    common = expected >= 5
    rest_seen, rest_expected = seen[~common].sum(), n - expected[common].sum()
    observed = [*seen[common], *([rest_seen] if rest_expected > 1e-6 else [])]
    wanted = [*expected[common], *([rest_expected] if rest_expected > 1e-6 else [])]
    if len(wanted) > 1:
        wanted = np.array(wanted) * n / sum(wanted)
        assert stats.chisquare(observed, wanted).pvalue > 1e-4
    else:
        assert observed == [n]


@every
def test_publish_by_seed_keeps_shape_and_input(m):
    true = np.array([[0, 3, 17], [19, 250, 1234]])
    first = m.publish(true, np.random.default_rng(7))
    assert first.shape == true.shape
    assert (first == m.publish(true, np.random.default_rng(7))).all()
    assert true.tolist() == [[0, 3, 17], [19, 250, 1234]]
    many = np.full(300, 12)
    one, other = (m.publish(many, np.random.default_rng(seed)) for seed in (1, 2))
    spread = sum(float(m.chance(y, 12)) > 0 for y in [*range(-60, 90), None])
    assert (one != other).any() == (spread > 1)
    first[:] = 0  # what comes back is the caller's own


@every
def test_counts_are_published_independently(m):
    drawn = m.publish(np.full((4000, 2), 12), np.random.default_rng(3)).astype(float)
    if sum(float(m.chance(y, 12)) > 0 for y in [*range(-60, 90), None]) > 1:
        assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.06
    else:
        assert drawn.std() == 0


@every
def test_a_mechanism_is_a_value(m):
    again = mechanism(m.name)
    assert again == m
    assert hash(again) == hash(m)
    assert again.name == m.name
    assert isinstance(m, Mechanism)
    copied = pickle.loads(pickle.dumps(m))
    assert copied == m
    assert copied.likelihood(5, np.arange(9)).tolist() == m.likelihood(5, np.arange(9)).tolist()
    assert m.sentence.endswith(".")
    assert m.sentence[0].isupper()
    with pytest.raises(AttributeError):
        m.base = 4


def test_all_in_the_catalogue_differ():
    assert len(set(CATALOGUE)) == len({m.name for m in CATALOGUE}) == len(CATALOGUE)


# --- Unbiased families -----------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [Rounding(5), Rounding(3), Sample(5), Sample(2), Graduated(), Residues((0, "1/3", "2/3"))])
def test_the_mean_is_kept(m):
    for x in [*range(130), 994, 999, 1000, 1001, 1099, 54_321]:
        assert sum(y * m.chance(y, x) for y in range(max(0, x - 100), x + 101)) == x


def test_table_1_of_the_paper():
    fifths = {  # x: probabilities of 10, 15, 20, in fifths
        10: (5, 0, 0), 11: (4, 1, 0), 12: (3, 2, 0), 13: (2, 3, 0), 14: (1, 4, 0), 15: (0, 5, 0),
        16: (0, 4, 1), 17: (0, 3, 2), 18: (0, 2, 3), 19: (0, 1, 4), 20: (0, 0, 5),
    }  # fmt: skip
    for same in (Rounding(5), Residues(("0", "0.2", "0.4", "0.6", "0.8"))):
        for x, row in fifths.items():
            assert [same.chance(y, x) * 5 for y in (10, 15, 20)] == list(row)


def test_rounding_windows_are_slices_of_one_array():
    m = Rounding(5)
    assert m.window(15).weights is m.window(20).weights
    assert m.window(0).weights.base is m.window(15).weights
    assert m.window(0).weights.tolist() == [1, 0.8, 0.6, 0.4, 0.2]
    with pytest.raises(ValueError, match="read-only"):
        m.window(15).weights[0] = 1


def test_hidden_counts_do_not_overflow_into_possible_ones():
    # The marker for hidden counts is itself a multiple of 8.
    assert HIDDEN % 8 == 0
    assert not Rounding(8).likelihood(np.array([HIDDEN]), np.arange(20)).any()
    assert not Rounding(8).likelihood(np.array(HIDDEN), np.array(0)).any()


def test_sample_data_has_no_fives():
    m = Sample(5)
    assert [m.chance(10, x) for x in range(11)] == [Fraction(x, 10) for x in range(11)]
    assert list(m.window(0)) == list(range(10))
    assert list(m.window(10)) == list(range(1, 15))
    assert list(m.window(15)) == list(range(11, 20))
    with pytest.raises(InputError, match=r"^5 cannot come from random rounding to base 5 with counts under 10"):
        m.window(5)


def test_graduated_rounding_at_the_borders_of_its_bands():
    m = Graduated()
    assert {x: m.chance(18, x) for x in m.window(18)} == {
        16: Fraction(1, 3), 17: Fraction(2, 3), 18: 1, 19: Fraction(1, 2)
    }  # fmt: skip
    assert list(m.window(100)) == [96, 97, 98, 99, *range(100, 110)]
    assert list(m.window(1000)) == [*range(991, 1000), *range(1000, 1100)]
    assert m.window(1000).weights[[0, 8, 9, 10, 108]].tolist() == [0.1, 0.9, 1, 0.99, 0.01]
    for y in (19, 102, 1010, 21):
        with pytest.raises(InputError, match=rf"^{y} cannot come from random rounding to base 3 from 0, base 2 from 19"):
            m.window(y)


def test_a_window_with_a_hole_from_odd_bands():
    # 10 to 12 go to 0 or 20 and leave 10 out; from 13 on it is base 10 again.
    m = Graduated(((0, 10), (10, 20), (13, 10)))
    assert list(m.window(10)) == [*range(1, 10), *range(13, 20)]
    assert 11 not in m.window(10)


@exactly
@given(
    st.lists(st.integers(1, 200), unique=True, max_size=4).map(sorted),
    st.lists(st.integers(1, 24), min_size=5, max_size=5),
    st.integers(0, 250),
)
def test_any_bands_round_to_neighbours_without_bias(starts, bases, x):
    bands = tuple(zip([0, *starts], bases, strict=False))
    m = Graduated(bands)
    base = [b for start, b in bands if start <= x][-1]
    down, up = x // base * base, -(-x // base) * base
    assert {y for y in range(x - 30, x + 31) if m.chance(y, x)} == {down, up}
    assert sum(y * m.chance(y, x) for y in {down, up}) == x
    assert x in m.window(down)
    assert x in m.window(up)
    assert mechanism(m.name) == m


@exactly
@given(st.lists(st.fractions(0, 1, max_denominator=50), min_size=1, max_size=7), st.integers(0, 60))
def test_any_residues(rest, x):
    m = Residues((Fraction(0), *rest))
    base = len(rest) + 1
    down = x - x % base
    assert m.chance(down + base, x) == m.up[x % base]
    assert m.chance(down, x) == 1 - m.up[x % base]
    for y in (down, down + base):
        assert (x in m.window(y)) == (m.chance(y, x) > 0)
    assert mechanism(m.name) == m


def test_residues_are_kept_exactly():
    m = mechanism("residues: 0, 0.1, 1/3 ,.5")
    assert m == Residues((Fraction(0), Fraction(1, 10), Fraction(1, 3), Fraction(1, 2)))
    assert m.name == "residues:0,1/10,1/3,1/2"
    assert m == Residues((0, 0.1, "1/3", 0.5))


# --- Conventional rounding -------------------------------------------------------------------------------


@exactly
@given(st.integers(1, 60), st.integers(0, 10**6))
def test_nearest_against_fractions(base, x):
    half_even = round(Fraction(x, base)) * base
    half_up = math.floor(Fraction(x, base) + Fraction(1, 2)) * base
    assert Nearest(base, "even").publish(np.array(x), np.random.default_rng(0)) == half_even
    assert Nearest(base).publish(np.array(x), np.random.default_rng(0)) == half_up


@exactly
@given(st.integers(1, 6), st.integers(0, 10**12))
def test_digits_against_fractions(digits, x):
    unit = 10 ** max(0, len(str(x)) - digits)
    half_even = round(Fraction(x, unit)) * unit
    half_up = math.floor(Fraction(x, unit) + Fraction(1, 2)) * unit
    assert Digits(digits, "even").publish(np.array(x), np.random.default_rng(0)) == half_even
    assert Digits(digits).publish(np.array(x), np.random.default_rng(0)) == half_up


@pytest.mark.parametrize(
    ("m", "y", "low", "high"),
    [
        (Nearest(5), 0, 0, 2),
        (Nearest(5), 10, 8, 12),
        (Nearest(10), 0, 0, 4),
        (Nearest(10), 20, 15, 24),
        (Nearest(10, "even"), 0, 0, 5),
        (Nearest(10, "even"), 10, 6, 14),
        (Nearest(10, "even"), 20, 15, 25),
        (Digits(4), 0, 0, 0),
        (Digits(4), 9996, 9996, 9996),
        (Digits(4), 9999, 9999, 9999),
        (Digits(4), 10000, 10000, 10004),
        (Digits(4), 10010, 10005, 10014),
        (Digits(4), 99990, 99985, 99994),
        (Digits(4), 100000, 99995, 100049),
        (Digits(3), 10000, 9995, 10049),
        (Digits(3), 9990, 9985, 9994),
        (Digits(3, "even"), 10000, 9995, 10050),
        (Digits(3, "even"), 9990, 9986, 9994),
        (Digits(1), 10, 10, 14),
        (Digits(1), 100, 95, 149),
    ],
)
def test_conventional_windows(m, y, low, high):
    window = m.window(y)
    assert (window.low, window.high) == (low, high)
    assert list(window) == list(range(low, high + 1))
    assert window.certain


# --- Plain ones ------------------------------------------------------------------------------------------


def test_unpublished():
    window = Unpublished().window(None)
    assert (window.low, window.high, window.weights, window.certain) == (0, None, None, True)
    assert Unpublished().likelihood(None, np.arange(3)).tolist() == [1, 1, 1]
    assert Unpublished().window(HIDDEN).high is None


def test_suppressed_windows():
    nhs = Suppressed(1, 7, Nearest(5))
    assert list(nhs.window(None)) == list(nhs.window(HIDDEN)) == [1, 2, 3, 4, 5, 6, 7]
    assert nhs.window(None).weights.tolist() == [1] * 7
    assert list(nhs.window(0)) == [0]
    assert list(nhs.window(10)) == [8, 9, 10, 11, 12]
    hidden = r"^5 cannot come from suppressed:1\.\.7,nearest:5: all true counts .* are hidden\.$"
    with pytest.raises(InputError, match=hidden):
        nhs.window(5)
    with pytest.raises(InputError, match=r"^11 cannot come from rounding to the nearest 5\.$"):
        nhs.window(11)
    # The hidden range can leave a hole in the middle.
    assert list(Suppressed(9, 10, Rounding(5)).window(10)) == [6, 7, 8, 11, 12, 13, 14]
    assert Suppressed(1, 7, Exact()) == Suppressed(1, 7)
    assert Suppressed(1, 7).name == "suppressed:1..7"


def test_within():
    assert list(Within(5).window(-5)) == [0]
    assert Within(5).window(12).weights.tolist() == [1 / 11] * 11


# --- Noise -----------------------------------------------------------------------------------------------


def test_the_laplace_noise_of_the_paper():
    t = 1.45
    v = np.arange(-300, 301)
    p = Laplace(t).likelihood(1000 + v, np.array(1000))
    formula = (math.exp(1 / t) - 1) / (math.exp(1 / t) + 1) * np.exp(-np.abs(v) / t)
    np.testing.assert_allclose(p, formula, rtol=1e-13)
    assert p[np.abs(v) <= 4].sum() == pytest.approx(0.9576, abs=5e-5)
    assert (p * np.abs(v)).sum() == pytest.approx(1 / math.sinh(1 / t), rel=1e-12)
    assert (p * np.abs(v)).sum() == pytest.approx(1.3411, abs=5e-5)
    assert (p * v**2).sum() == pytest.approx(4.04, abs=5e-3)


@pytest.mark.parametrize("t", [0.3, 1.45, 12.0])
def test_laplace_against_scipy(t):
    v = np.arange(-20, 21)
    np.testing.assert_allclose(Laplace(t).likelihood(500 + v, np.array(500)), stats.dlaplace(1 / t).pmf(v), rtol=1e-12)


@pytest.mark.parametrize("sigma", [0.05, 0.4, 0.99, 1.5, 1.999, 2.0, 3.7, 40.0])
def test_the_gaussian_sums_to_one_to_double_precision(sigma):
    v = np.arange(-600, 601)
    p = Gaussian(sigma).likelihood(10_000 + v, np.array(10_000))
    assert math.fsum(p) == pytest.approx(1, abs=4e-15)
    ratio = p[600 + 1] / p[600]
    assert ratio == pytest.approx(math.exp(-1 / (2 * sigma**2)), rel=1e-13)


def test_opendp_draws_the_same_laplace_noise():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    draw = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), scale=1.45)
    # Its draws cannot be seeded: the bound is ten standard errors wide, so that chance never fails the test.
    n = 20_000
    noise = np.array(draw([0] * n))
    for k in range(4):
        p = float(Laplace(1.45).likelihood(k, np.array(0))) * (2 if k else 1)
        assert abs((np.abs(noise) == k).mean() - p) < 10 * math.sqrt(p * (1 - p) / n)


def test_noise_far_below_zero():
    assert list(Laplace(1.45).window(-50))[:3] == [0, 1, 2]
    with pytest.raises(InputError, match=r"^-500 cannot come from Gaussian noise of scale 2 on a count\.$"):
        Gaussian(2).window(-500)


@pytest.mark.parametrize("m", [Laplace(1.45), Gaussian(2)], ids=ids)
def test_the_cut_is_stated(m):
    assert f"noise beyond ±{m.reach}, which has a probability below 1e-12, is ignored" in m.sentence
    assert m.likelihood(m.reach + 10, np.array(0)) > 0


# --- Transition tables -----------------------------------------------------------------------------------


def test_a_transition_window_takes_from_several_rows():
    # 4 comes from 3 + 1 and from the open end 5 − 1, 7 − 3; not from 4 itself.
    assert {x: CELL_KEY.chance(4, x) for x in CELL_KEY.window(4)} == {
        3: Fraction(2, 5), 5: Fraction(2, 5), 7: Fraction(1, 10)
    }  # fmt: skip
    assert list(CELL_KEY.window(0)) == [0, 1, 2, 3]
    assert list(CELL_KEY.window(1)) == [1, 4]
    assert list(CELL_KEY.window(10**6)) == [10**6 + v for v in (-3, -1, 1, 3)]


def distributions(i: int):
    """Draw a row of the table: changes that do not go below 0, with exact probabilities."""
    changes = st.lists(st.integers(-min(i, 4), 4), unique=True, min_size=1, max_size=5)
    return changes.flatmap(
        lambda vs: st.lists(st.integers(1, 9), min_size=len(vs), max_size=len(vs)).map(
            lambda ws: tuple((v, Fraction(w, sum(ws))) for v, w in zip(vs, ws, strict=True))
        )
    )


@exactly
@given(st.integers(1, 5).flatmap(lambda n: st.tuples(*(distributions(i) for i in range(n)))), st.integers(0, 14))
def test_any_transition_table(rows, y):
    m = Transition(rows)
    assert mechanism(m.name) == m
    last = len(rows) - 1
    preimage = [x for x in range(40) if y - x in dict(rows[min(x, last)])]
    if preimage:
        assert list(m.window(y)) == preimage
        for x in preimage:
            assert m.chance(y, x) == dict(rows[min(x, last)])[y - x]
    else:
        with pytest.raises(InputError, match=f"^{y} cannot come from this transition table"):
            m.window(y)


def test_publish_never_leaves_the_table():
    class Last:
        def integers(self, low, high, size):
            assert (low, high) == (0, 7)
            return np.full(size, high - 1)

    thirds = Transition((tuple((v, "1/7") for v in range(7)),))
    assert thirds.publish(np.array([0, 1]), Last()).tolist() == [6, 7]


PLAIN = "i,v,p\n0,0,1\n1,-1,1/4\n1,0,0.5\n1,1,25e-2\n"
TABLES = {
    "plain": PLAIN,
    "byte order mark, spaces and blank lines": "\ufeffi, v, p\n\n0, 0, 1\n1, -1, .25\n1, 0, .5\n1, +1, .25\n\n",
    "ptable": '"","i","j","p","v","p_int_lb","p_int_ub","type"\n"1",0,0,1,0,0,1,"all"\n'
    '"2",1,0,0.25,-1,0,0.25,"all"\n"3",1,1,0.5,0,0.25,0.75,"all"\n"4",1,2,0.25,1,0.75,1,"all"\n',
    "only j": "i,j,p\n0,0,1\n1,0,0.25\n1,1,0.5\n1,2,0.25\n",
    "semicolons, decimal commas": "I;V;P\n1;1;0,25\n1;0;0,5\n1;-1;0,25\n0;0;1\n",
    "zero probabilities": "i,v,p\n0,0,1\n0,-1,0\n1,-1,0.25\n1,0,0.5\n1,1,0.25\n1,9,0\n",
    "not quite 1": "i,v,p\n0,0,0.9999999999\n1,-1,0.25\n1,0,0.5\n1,1,0.25\n",
}


@pytest.mark.parametrize("form", TABLES)
def test_reading_a_transition_table(tmp_path, form):
    file = tmp_path / "table.csv"
    file.write_text(TABLES[form], encoding="utf-8")
    m = Transition.read(file)
    assert m == Transition((((0, 1),), ((-1, "1/4"), (0, "1/2"), (1, "1/4"))))
    assert m.name == f"transition:{file}"
    assert mechanism(m.name) == m
    assert str(file) in m.sentence


def test_a_row_is_rescaled_to_sum_to_exactly_one():
    m = Transition((((0, "0.3333333333"), (1, "0.3333333333"), (2, "0.3333333333")),))
    assert m.chance(1, 0) == Fraction(1, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "FILE, line 1, column 1: a transition table needs a header with the columns i, v (or j) and p."),
        (
            "i,p\n0,1\n",
            "FILE, line 1, column 1: a transition table needs a header with the columns i, v (or j) and p.",
        ),
        (
            "i,v,p\n0,0.5,1\n",
            "FILE, line 2, column 3: v must be a whole number, not '0.5'.\n    0,0.5,1\n      ^",
        ),
        (
            "i,v,p\n0,0,x\n",
            "FILE, line 2, column 5: 'x' is not a probability: write a fraction or a decimal, such as 1/5 or 0.2.",
        ),
        ("i,v,p\n0,0\n", "FILE, line 2, column 1: this line has 2 fields, but the header has 3."),
        ("i,j,v,p\n0,0,0,1\n1,3,1,1\n", "FILE, line 3, column 3: j must be i + v = 2."),
        (
            "i,v,p\n0,0,1\n2,0,1\n",
            "FILE: a transition table needs every true count from 0 to its largest; check 1.",
        ),
        (
            "i,v,p\n-1,1,1\n0,0,1\n",
            "FILE: a transition table needs every true count from 0 to its largest; check -1.",
        ),
        ("i,v,p\n", "FILE: a transition table needs every true count from 0 to its largest; check 0."),
        ("i,v,p\n0,0,0.9\n", "FILE: the probabilities of the true count 0 sum to 0.9, not to 1."),
        (
            "i,v,p\n0,0,0.99999999\n",
            "FILE: the probabilities of the true count 0 sum to 0.99999999, not to 1.",
        ),
        (
            "i,v,p\n0,-1,1\n",
            "FILE: the change -1 would publish the true count 0 as -1: counts cannot be negative.",
        ),
        (
            "i,v,p\n0,0,0.5\n0,0,0.5\n",
            "FILE: the true count 0 lists the change 0 twice.",
        ),
        (
            "i,v,p\n0,0,1.5\n0,1,-.5\n",
            "FILE: the true count 0 has the change 1 with a negative probability, -0.5.",
        ),
    ],
)
def test_a_bad_transition_table(tmp_path, text, message):
    file = tmp_path / "table.csv"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        mechanism(f"transition:{file}")
    assert str(error.value).replace(str(file), "FILE").startswith(message)


def test_an_unreadable_transition_table(tmp_path):
    with pytest.raises(InputError, match=r"^there is no file .*none\.csv; check its name and folder\.$"):
        Transition.read(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes("i,v,p,é".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin\.csv is not UTF-8 text, as a transition table must be"):
        Transition.read(tmp_path / "latin.csv")


# --- Cell keys by their parameters -----------------------------------------------------------------------


def entropy_by_slsqp(changes, variance, stay):
    """The programme that ptable states, solved as ptable solves it."""
    rules = [
        {"type": "eq", "fun": lambda p: p.sum() - 1},
        {"type": "eq", "fun": lambda p: p @ changes},
        {"type": "ineq", "fun": lambda p: variance - p @ changes**2},
    ]
    below = range(*(np.flatnonzero(changes == 0)[:1].tolist() or [0]))
    rules += [{"type": "ineq", "fun": lambda p, at=at: p[at + 1] - p[at]} for at in below]
    bounds = [(max(1e-8, stay if change == 0 else 0), 1) for change in changes]
    start = np.full(len(changes), 1 / len(changes))
    options = {"ftol": 1e-15, "maxiter": 1_000}
    target = {"fun": lambda p: (p * np.log(p)).sum(), "jac": lambda p: np.log(p) + 1}
    return optimize.minimize(x0=start, bounds=bounds, constraints=rules, method="SLSQP", options=options, **target).x


@pytest.mark.parametrize("m", [CellKey(2, 1), CellKey(2, 0.9), CellKey(4, 1, stay=0.5), CellKey(8, 3, js=2), CellKey(9, 1)])
def test_the_tables_of_ptable(m):
    assert m.rows[0] == ((0, 1),)
    assert len(m.rows) == 1 + m.max_change + (m.js + 1 if m.js else 0)
    for i, row in enumerate(m.rows[1:], 1):
        changes, p = np.array([v for v, _ in row]), np.array([float(share) for _, share in row])
        allowed = [y - i for y in range(max(0, i - m.max_change), i + m.max_change + 1) if y == 0 or y > m.js]
        assert changes.tolist() == allowed
        assert abs(p @ changes) < 1e-10
        np.testing.assert_allclose(p, entropy_by_slsqp(changes, float(m.variance), float(m.stay)), atol=1e-6)
    last = [p for _, p in m.rows[-1]]
    assert last == last[::-1]


@pytest.mark.parametrize("m", [CellKey(2, 1, js=1), CellKey(2, 2, js=2), CellKey(3, 2, js=2)])
def test_counts_of_which_one_law_alone_is_allowed_have_no_bias(m):
    """A count that is never published, and no more variance than it takes to change it without bias."""
    for row in m.rows:
        changes, p = np.array([v for v, _ in row]), np.array([float(share) for _, share in row])
        assert p @ changes == pytest.approx(0, abs=1e-7)
        assert p @ changes**2 < float(m.variance) + 1e-6


def test_a_variance_that_cannot_be_held_is_stated():
    m = CellKey(2, 1)
    assert [round(float(p), 4) for _, p in m.rows[1]] == [0.3665, 0.3665, 0.1676, 0.0995]
    assert m.short == {1: 0.932}
    assert "the variance cannot be held for small counts: it is 0.932 for 1" in m.sentence
    assert CellKey(2, 0.9).short == {}
    assert CellKey(2, 0.9).rows[1] == (
        (-1, Fraction(29, 80)),
        (0, Fraction(29, 80)),
        (1, Fraction(3, 16)),
        (2, Fraction(7, 80)),
    )
    assert float(CellKey(4, 1, stay=0.5).rows[-1][4][1]) == pytest.approx(0.5, abs=1e-10)


def test_uniform_noise():
    m = mechanism("uniform:3,js=2")
    np.testing.assert_allclose([float(m.chance(100 + v, 100)) for v in range(-3, 4)], 1 / 7, atol=1e-11)
    assert m.short.keys() == {1, 2, 4, 5}
    assert list(m.window(0)) == [0, 1, 2, 3]
    assert list(m.window(20)) == list(range(17, 24))
    for y in (1, 2):
        with pytest.raises(InputError, match="cannot come from"):
            m.window(y)


def test_tables_as_other_programs_write_them(tmp_path):
    argus = tmp_path / "argus.csv"
    argus.write_text(
        "i;j;p;v;p_int_ub\n0;0;1.00000000; 0;1.00000000\n1;0;0.33333333;-1;0.33333333\n1;1;0.33333333; 0;0.66666666\n"
        "1;0;0.00000001;-1;0.66666667\n1;2;0.33333333; 1;1.00000000\n"
    )
    m = mechanism(f"transition:{argus}")
    assert [v for v, _ in m.rows[1]] == [-1, 0, 1]
    assert m.chance(0, 1) == Fraction(33333334, 100000000)
    argus.write_text("i;j;p;v;p_int_ub;type\n0;0;1;0;1;even\n")
    with pytest.raises(
        InputError, match=r"line 2, column 11: this is a table for magnitudes \(type 'even'\), not for counts\."
    ):
        mechanism(f"transition:{argus}")


def test_the_layout_of_the_office_for_national_statistics(tmp_path):
    file = tmp_path / "ons.csv"
    lines = [f"{pcv},{key},{1 if key == pcv % 5 else 0 if key else -1}" for pcv in range(1, 751) for key in range(8)]
    file.write_text("\n".join(['"pcv","ckey","pvalue"', *lines]))
    m = mechanism(f"transition:{file}")
    assert m.chance(0, 0) == 1
    assert m.chance(2, 1) == m.chance(0, 1) == Fraction(1, 8)
    # 751 is treated as 501, 1,250 as 750, and 1,251 as 501 again.
    assert m.row_of(np.array([750, 751, 1000, 1001, 1250, 1251])).tolist() == [750, 501, 750, 501, 750, 501]
    file.write_text("pcv,ckey,pvalue\n1,0,-1\n1,3,1\n2,1,1\n")  # keys that are not listed change nothing
    m = mechanism(f"transition:{file}")
    assert m.rows[1:] == (
        ((-1, Fraction(1, 4)), (0, Fraction(1, 2)), (1, Fraction(1, 4))),
        ((0, Fraction(3, 4)), (1, Fraction(1, 4))),
    )
    assert m.chance(10, 9) == Fraction(1, 4)
    file.write_text("pcv,ckey,pvalue\n1,0,-1\n1,0,1\n")
    with pytest.raises(InputError, match=r"line 3, column 3: the count 1 lists the key 0 twice, with different changes\."):
        mechanism(f"transition:{file}")


# --- Text and rejections ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("rounding", Rounding(5)),
        (" Rounding : 3 ", Rounding(3)),
        ("sample", Sample(5)),
        ("graduated", Graduated()),
        ("graduated:0=3,19=2,20=5,100=10,1000=100", Graduated()),
        ("graduated:0=10, 10=5", Graduated(((0, 10), (10, 5)))),
        ("nearest-even:10", Nearest(10, "even")),
        ("digits-even:4", Digits(4, "even")),
        ("suppressed:1..7, nearest:5", Suppressed(1, 7, Nearest(5))),
        ("suppressed:1..7,residues:0,1/2", Suppressed(1, 7, Residues((0, "1/2")))),
        ("suppressed:1..7,exact", Suppressed(1, 7)),
        ("laplace:1.45", Laplace(1.45)),
        ("gaussian:2", Gaussian(2.0)),
        ("transition:0=1", Transition((((0, 1),),))),
        ("cellkey:8, 3, js=2, pstay=0.25", CellKey(8, 3, 2, 0.25)),
        ("cellkey:3,4,js=2", mechanism("uniform:3,js=2")),
        ("bands:0=0,1-7=4,nearest:5", Bands((Band(0, 0, 0, 0), Band(1, 7, 4, 4)), Nearest(5))),
        ("bands: 1..2 = 0/3 ", Bands((Band(1, 2, 0, 3),))),
        ("bands:1-7=0,midpoint:6", Bands((Band(1, 7, 0, 0),), Midpoint(6))),
        ("cutoff:4,rounding:5", Cutoff(4)),
        ("cutoff: 3, graduated:0=3,20=5,unless=0.01", Cutoff(3, Graduated(((0, 3), (20, 5))), Fraction(1, 100))),
    ],
)
def test_specs(spec, expected):
    assert mechanism(spec) == expected


KNOWN = (
    "Choose one of rounding, sample, weighted, graduated, residues, nearest, "
    "nearest-even, digits, digits-even, exact, midpoint, within, "
    "unpublished, suppressed, bands, cutoff, laplace, gaussian, cellkey, uniform, transition."
)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", f"there is no mechanism ''. {KNOWN}"),
        ("magic:5", f"there is no mechanism 'magic'. {KNOWN}"),
        ("Roundig:5", f"there is no mechanism 'Roundig'. Did you mean rounding? {KNOWN}"),
        ("laplacian:1", f"there is no mechanism 'laplacian'. Did you mean laplace? {KNOWN}"),
        ("rounding:", "rounding needs a base, such as rounding:5."),
        ("rounding:2.5", "rounding needs a base, such as rounding:5; not '2.5'."),
        ("rounding:0", "a base for rounding must be at least 1, not 0."),
        ("rounding:1000001", "a base for rounding must be at most 1000000, not 1000001."),
        ("sample:0", "a base for rounding must be at least 1, not 0."),
        (
            "graduated:3",
            "graduated needs bands of a first count and a base, such as graduated:0=3,19=2,20=5; not '3'.",
        ),
        ("graduated:1=3", "bands must start at 0 and be in increasing order, such as 0=3,19=2,20=5."),
        ("graduated:0=3,9=5,9=7", "bands must start at 0 and be in increasing order, such as 0=3,19=2,20=5."),
        ("graduated:0=3,9=0", "a base for rounding must be at least 1, not 0."),
        (
            "residues",
            "residues needs a probability of going up for every remainder, such as residues:0,1/3,2/3.",
        ),
        ("residues:0,x", "'x' is not a probability: write a fraction or a decimal, such as 1/5 or 0.2."),
        ("residues:0,1/0", "'1/0' is not a probability: write a fraction or a decimal, such as 1/5 or 0.2."),
        (
            "residues:0,1e-9999",
            "'1e-9999' is not a probability: write a fraction or a decimal, such as 1/5 or 0.2.",
        ),
        ("residues:0", "give one probability for every remainder, at least two, such as 0,1/3,2/3."),
        (
            "residues:1/5,0",
            "a multiple of the base is never changed: the first probability must be 0, not 1/5.",
        ),
        ("residues:0,6/5", "a probability of going up must be from 0 to 1, not 6/5."),
        ("residues:0,-1/5", "a probability of going up must be from 0 to 1, not -1/5."),
        (
            "residues:0,1/99999999999999999",
            "these probabilities need too large a common denominator: write them with fewer digits.",
        ),
        ("nearest", "nearest needs a base, such as nearest:5."),
        ("nearest:five", "nearest needs a base, such as nearest:5; not 'five'."),
        ("nearest-even:0", "a base for rounding must be at least 1, not 0."),
        ("digits:x", "digits needs a number of significant digits, such as digits:4; not 'x'."),
        ("digits:0", "significant digits must be from 1 to 18, such as 4; not 0."),
        ("digits-even:19", "significant digits must be from 1 to 18, such as 4; not 19."),
        ("exact:1", "exact takes no parameters: write exact."),
        ("unpublished:1", "unpublished takes no parameters: write unpublished."),
        ("within:x", "within needs the largest change, such as within:5; not 'x'."),
        ("within:-1", "the largest change must be 0 or more, such as 5; not -1."),
        (
            "suppressed:1-7",
            "suppressed needs the range of hidden counts, such as suppressed:1..7; not '1-7'.",
        ),
        (
            "suppressed:1..7,",
            "suppressed needs the range of hidden counts, such as suppressed:1..7; not '1..7,'.",
        ),
        (
            "suppressed:7..1",
            "hidden counts are a range from 0 or more upwards, such as 1..7; not 7..1.",
        ),
        (
            "suppressed:-1..7",
            "hidden counts are a range from 0 or more upwards, such as 1..7; not -1..7.",
        ),
        ("suppressed:1..7,nearest:x", "nearest needs a base, such as nearest:5; not 'x'."),
        (
            "suppressed:1..7,unpublished",
            "what is not hidden must be published: unpublished cannot follow a suppression.",
        ),
        (
            "suppressed:1..7,suppressed:9..9",
            "what is not hidden must be published: suppressed:9..9 cannot follow a suppression.",
        ),
        ("laplace:x", "laplace needs a scale, such as laplace:1.45; not 'x'."),
        (
            "laplace:0",
            "the scale t of Laplace noise must be a number from 0.01 to 100000, such as 1.45; not 0.0.",
        ),
        (
            "laplace:nan",
            "the scale t of Laplace noise must be a number from 0.01 to 100000, such as 1.45; not nan.",
        ),
        (
            "gaussian:-2",
            "the scale σ of Gaussian noise must be a number from 0.01 to 100000, such as 1.45; not -2.0.",
        ),
        (
            "gaussian:inf",
            "the scale σ of Gaussian noise must be a number from 0.01 to 100000, such as 1.45; not inf.",
        ),
        ("transition", "transition needs a file or a table, such as transition:ptable.csv."),
        (
            "transition:0=1|x",
            "transition needs a file or a table, such as transition:ptable.csv; not '0=1|x'.",
        ),
        ("transition:0=1/2", "the probabilities of the true count 0 sum to 0.5, not to 1."),
        ("transition:0=1|repeat=2", "of 1 rows, 2 cannot repeat for larger counts."),
        ("cellkey:3", "cellkey needs the largest change D and the variance V, such as cellkey:3,2; not '3'."),
        ("cellkey:3,2,x=1", "cellkey needs the largest change D and the variance V, such as cellkey:3,2; not '3,2,x=1'."),
        ("cellkey:0,1", "the largest change D must be from 1 to 50, such as 3; not 0."),
        ("cellkey:3,0", "the variance V must be above 0, such as 2; not 0."),
        ("cellkey:3,1,pstay=1", "pstay must be a probability from 0 to below 1, such as 0.5; not 1."),
        (
            "cellkey:3,1,js=2",
            "the true count 1 must not be published, but with a variance of 1 it cannot be changed without bias: that needs "
            "a V of at least 2, or a smaller js.",
        ),
        (
            "cellkey:2,9,js=3",
            "the true count 1 must not be published, but with a variance of 9 it cannot be changed without bias: that needs "
            "a larger D, or a smaller js.",
        ),
        ("uniform:3,2", "uniform needs the largest change, such as uniform:3; not '3,2'."),
        ("bands:", "bands needs ranges of counts and what they become, such as bands:0=0,1-7=4,nearest:5."),
        ("bands:3-1=2", "bands must be ranges in ascending order, such as 0=0,1-7=4; check 3=2."),
        ("bands:1-7=4,5=5", "bands must be ranges in ascending order, such as 0=0,1-7=4; check 5=5."),
        ("bands:1-4=0/3", "a count goes to one of two only between them, such as 1-2=0/3; check 1-4=0/3."),
        ("bands:1-4=0,unpublished", "unpublished cannot follow bands."),
        ("bands:1-4=0,bands:5=5", "bands:5=5 cannot follow bands."),
        ("cutoff:4,bands:5=5", "bands:5=5 cannot follow a limit under which counts become 0."),
        ("cutoff:0", "a limit under which counts become 0 must be from 1 to 10,000,000, not 0."),
        (
            "cutoff:4,rounding:5,unless=2",
            "the share of counts that escape a limit must be from 0 to less than 1, not 2.",
        ),
        (
            "cutoff:x",
            "cutoff needs a limit and what becomes of the counts from it on, such as cutoff:4,rounding:5; not 'x'.",
        ),
    ],
)
def test_bad_specs(spec, message):
    with pytest.raises(InputError) as error:
        mechanism(spec)
    assert str(error.value) == message


def test_bad_values_that_no_spec_can_give():
    with pytest.raises(InputError, match=r"^ties must be 'up' or 'even', not 'down'\.$"):
        Nearest(10, "down")
    with pytest.raises(InputError, match=r"^ties must be 'up' or 'even', not 'odd'\.$"):
        Digits(3, "odd")
    with pytest.raises(InputError, match=r"^a transition table needs at least one row, for the true count 0\.$"):
        Transition(())
    with pytest.raises(InputError, match=r"^bands must start at 0"):
        Graduated(())


@pytest.mark.parametrize(
    ("m", "y", "message"),
    [
        (
            Rounding(5),
            17,
            "17 cannot come from rounding to base 5. If it was published "
            "unrounded, write 17!; if it has another base, "
            "write 17 @BASE.",
        ),
        (Rounding(5), -5, "-5 cannot come from rounding to base 5."),
        (
            Sample(5),
            17,
            "17 cannot come from random rounding to base 5 with counts under 10 going to 0 or 10.",
        ),
        (Residues(("0", "1/2")), 3, "3 cannot come from rounding to base 2."),
        (Residues(("0", "1/2")), -2, "-2 cannot come from rounding to base 2."),
        (Nearest(5), 7, "7 cannot come from rounding to the nearest 5."),
        (Nearest(5), -5, "-5 cannot come from rounding to the nearest 5."),
        (Digits(1), 12, "12 cannot come from rounding to 1 significant digit."),
        (Digits(4), 12_345, "12345 cannot come from rounding to 4 significant digits."),
        (Digits(4), -1, "-1 cannot come from rounding to 4 significant digits."),
        (Exact(), -1, "-1 cannot come from counts published exactly."),
        (Within(5), -6, "-6 cannot come from a change of at most 5."),
        (Unpublished(), 0, "0 cannot come from counts that were not published."),
        (Laplace(1.45), -10_000, "-10000 cannot come from Laplace noise of scale 1.45 on a count."),
        (CELL_KEY, -1, "-1 cannot come from this transition table."),
    ],
)
def test_counts_that_cannot_have_been_published(m, y, message):
    with pytest.raises(InputError) as error:
        m.window(y)
    assert str(error.value) == message


@pytest.mark.parametrize("m", [m for m in CATALOGUE if not isinstance(m, Suppressed | Unpublished)], ids=ids)
@pytest.mark.parametrize("hidden", [None, HIDDEN])
def test_most_mechanisms_publish_every_count(m, hidden):
    with pytest.raises(InputError, match=r"^an unpublished count cannot come from [^.]*(\d\.\d+[^.]*)?\.$"):
        m.window(hidden)


@pytest.mark.parametrize("small", ["1e-400", "1e-31", "1/10000000000000000000000000000000"])
def test_probabilities_that_floats_may_lose_are_refused(small: str) -> None:
    """A float that became 0 would make a possible count impossible, and a false value proved."""
    with pytest.raises(InputError, match=r"change -1 with a probability below 1e-30.*write 0 if it cannot happen"):
        mechanism(f"transition:0=1|-1={small},1=1")
    assert list(mechanism("transition:0=1|-1=1e-30,1=1").window(0)) == [0, 1]
