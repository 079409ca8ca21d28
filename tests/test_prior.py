"""The fitted prior: deconvolution, how totals split, the table of weights, and what it is for: claims that are as often
right as they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from unround.prior.shares import MOST_EVEN
from unround.prior.shares import Sample as SampleOfAreas
from unround.prior.table import RANGE, Weigher, log_g, structure_of

from unround.batch.compiled_sums import compile_sums
from unround.batch.posterior import posteriors
from unround.batch.tighten import tighten
from unround.batch.types import CompiledSums
from unround.batch.windows import windows_of
from unround.errors import InputError
from unround.infer.bounds import Equations
from unround.infer.brute import brute
from unround.mechanisms import Exact, Laplace, Mechanism, Rounding, Sample, Suppressed, mechanism
from unround.prior import Histograms, Prior, PriorFit, fit
from unround.prior.deconvolve import SIZE
from unround.prior.fitted import FEWEST_AREAS
from unround.prior.histograms import BELOW, CAP
from unround.release import ABSENT, NOT_APPLICABLE, SUPPRESSED
from unround.simulation import MISSING, published_counts, schema
from unround.system import Cell, Sum, System

Array = NDArray[np.int64]


def tally(values: Array) -> dict[int, int]:
    found, times = np.unique(values, return_counts=True)
    return dict(zip(found.tolist(), times.tolist(), strict=True))


# -- gathering --------------------------------------------------------------------------------------------------------


def test_histograms_count_what_was_published_and_nothing_else() -> None:
    histograms = Histograms(3)
    histograms.add(np.array([[0, 5, SUPPRESSED], [0, 5_000, NOT_APPLICABLE]], dtype=np.int32))
    histograms.add(np.array([[5, -200, ABSENT], [SUPPRESSED] * 3], dtype=np.int32))
    assert [histograms.of(column) for column in range(3)] == [{0: 2, 5: 1}, {-BELOW: 1, 5: 1, CAP: 1}, {}]
    assert histograms.areas == 3  # the last area shows nothing


def test_many_columns_are_gathered_like_few() -> None:
    counts = np.random.default_rng(1).integers(0, 300, (40, 700)).astype(np.int32)
    histograms = Histograms(700)
    histograms.add(counts)
    assert all(histograms.of(column) == tally(counts[:, column].astype(np.int64)) for column in (0, 255, 256, 511, 699))


def test_the_sample_of_areas_does_not_depend_on_blocks() -> None:
    counts = np.arange(600, dtype=np.int32).reshape(300, 2)
    counts[::7] = SUPPRESSED
    samples = []
    for block in (300, 41):
        sample = SampleOfAreas(2, 50)
        for first in range(0, 300, block):
            sample.add(counts[first : first + block])
        samples.append(sample.counts)
    assert len(samples[0]) == 50
    assert (samples[0] == samples[1]).all()
    assert (samples[0] > ABSENT).all()


# -- deconvolution ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["rounding:5", "rounding:3", "sample:5", "exact", "laplace:1.45"])
def test_a_known_mixture_is_recovered(how: str) -> None:
    rng = np.random.default_rng(7)
    rates = rng.choice([0.0, 2.0, 30.0], p=[0.5, 0.3, 0.2], size=40_000)
    true = rng.poisson(rates)
    fitted = fit(tally(mechanism(how).publish(true, rng)), mechanism(how))
    expected = np.bincount(true, minlength=SIZE) / len(true)
    assert fitted.shape == (SIZE,)
    assert fitted.sum() == pytest.approx(1)
    assert (fitted > 0).all()
    # Counts under 10 that are all published as 0 or 10 tell their mean, and not how they are spread.
    first = 10 if how == "sample:5" else 0
    assert np.abs(np.cumsum(fitted) - np.cumsum(expected))[first:].max() < 0.04
    assert fitted @ np.arange(SIZE) == pytest.approx(true.mean(), rel=0.03)


def test_rare_counts_are_taken_for_rare_and_not_for_ones() -> None:
    """Nearly all areas have none of a rare language, a few have several: published zeros mostly are zeros."""
    rng = np.random.default_rng(3)
    true = rng.poisson(rng.gamma(0.02, 1 / 0.05, 30_000))
    fitted = fit(tally(Rounding(5).publish(true, rng)), Rounding(5))
    for value in range(4):
        assert fitted[value] == pytest.approx((true == value).mean(), abs=0.01)


def test_counts_beyond_the_cap_and_counts_that_cannot_be_do_no_harm() -> None:
    fitted = fit({0: 50, 5: 30, 7: 3, 5_000: 20}, Rounding(5))
    assert np.isfinite(fitted).all()
    assert fitted[:6].sum() > 0.5
    assert (fit({}, Rounding(5)) == 1 / SIZE).all()
    assert fit({0: 10, 10: 5}, Suppressed(1, 7, Rounding(5))).sum() == pytest.approx(1)


# -- the table of weights ---------------------------------------------------------------------------------------------


def draw(
    areas: int, precision: float, rng: np.random.Generator, parts: int = 12, how: Mechanism | None = None
) -> tuple[Array, Array]:
    """Draw true and published counts of a total and its parts that share it out by a Dirichlet distribution."""
    how = how or Rounding(5)
    shares = rng.dirichlet(precision * 0.6 ** np.arange(parts) / (0.6 ** np.arange(parts)).sum(), areas)
    total = np.rint(rng.lognormal(5, 0.5, areas)).astype(np.int64)
    split = np.array([rng.multinomial(t, q) for t, q in zip(total, shares, strict=True)])
    true = np.column_stack([total, split])
    return true, how.publish(true, rng)


def one_sum(parts: int) -> CompiledSums:
    return compile_sums(parts + 1, ((0, tuple(range(1, parts + 1))),), frozenset())


@pytest.mark.parametrize("precision", [1.0, 8.0, 50.0])
def test_how_much_shares_vary_is_read_off_rounded_counts(precision: float) -> None:
    _, published = draw(3_000, precision, np.random.default_rng(11))
    fit = PriorFit(13)
    fit.add(published.astype(np.int32))
    weigher = Weigher(one_sum(12), [Rounding(5)] * 13, fit.sample.counts, fit.distributions([Rounding(5)] * 13))
    found = weigher.fit_shares()[0]
    assert found.precision == pytest.approx(precision, rel=0.2)
    assert found.q == pytest.approx(0.6 ** np.arange(12) / (0.6 ** np.arange(12)).sum(), abs=0.02)


def test_a_sum_with_too_few_people_takes_after_its_total() -> None:
    true, _ = draw(500, 10.0, np.random.default_rng(2))
    total = true[:, 0]
    some = (total > 300).astype(np.int64) * 5
    counts = np.column_stack([5 * (total // 5), 5 * (total // 5) - some, some, some, 0 * some]).astype(np.int32)
    layout = compile_sums(5, ((0, (1, 2)), (2, (3, 4))), frozenset())
    fit = PriorFit(5)
    fit.add(counts)
    weigher = Weigher(layout, [Rounding(5)] * 5, fit.sample.counts, fit.distributions([Rounding(5)] * 5))
    shares = weigher.fit_shares()
    assert shares[1].precision == pytest.approx(shares[0].alphas[1], rel=0.01)


def test_given_the_total_weights_are_those_of_the_dirichlet_multinomial() -> None:
    """Π g(xᵢ; αᵢ)/g(t; A) adds up to 1 over all x that make up t; so the table leaves a total its own distribution."""
    _, published = draw(800, 6.0, np.random.default_rng(5), parts=2)
    fit = PriorFit(3)
    fit.add(published.astype(np.int32))
    how: list[Mechanism] = [Rounding(5)] * 3
    prior = fit.finish(one_sum(2), how)
    assert prior.table is not None
    w = [prior.table.weights[o : o + s] for o, s in zip(prior.table.offset, prior.table.size, strict=True)]
    implied = np.array([w[0][t] * (w[1][: t + 1] * w[2][t::-1]).sum() for t in range(300)])
    own = fit.distributions(how)[0][:300]
    assert implied / implied.sum() == pytest.approx(own / own.sum(), rel=1e-6)
    assert np.exp(log_g(2.5, 4)) == pytest.approx([1, 2.5, 2.5 * 3.5 / 2, 2.5 * 3.5 * 4.5 / 6])


def test_a_total_with_several_partitions_counts_once() -> None:
    """Two partitions of a total, and the same count shown twice, leave it the distribution that it has."""
    rng = np.random.default_rng(8)
    true, _ = draw(800, 4.0, rng, parts=4)
    t, a, b = true[:, 0], true[:, 1], true[:, 2]
    counts = Rounding(5).publish(np.column_stack([t, a, t - a, b, t - b, t]), rng).astype(np.int32)
    how: list[Mechanism] = [Rounding(5)] * 6
    layout = compile_sums(6, ((0, (1, 2)), (0, (3, 4)), (5, (0,))), frozenset())
    fit = PriorFit(6)
    fit.add(counts)
    prior = fit.finish(layout, how)
    assert prior.table is not None
    w = [prior.table.weights[o : o + s] for o, s in zip(prior.table.offset, prior.table.size, strict=True)]
    implied = np.array(
        [w[0][x] * w[5][x] * (w[1][: x + 1] * w[2][x::-1]).sum() * (w[3][: x + 1] * w[4][x::-1]).sum() for x in range(200)]
    )
    own = fit.distributions(how)[[0, 5]].mean(axis=0)[:200]  # of one count, one distribution
    assert implied / implied.sum() == pytest.approx(own / own.sum(), rel=1e-6)


def flattened(rows: str, areas: int, seed: int) -> tuple[Array, Array, Equations, list[Mechanism], list[int]]:
    """Return true and published counts of a simulated census as areas × columns, its sums, mechanisms, and sexes."""
    table = schema(rows)
    place = {tuple(at): column for column, at in enumerate(np.argwhere(table.shown).tolist())}
    equations = [(place[r, 0], (place[r, 1], place[r, 2])) for r in range(len(table.rows)) if (r, 1) in place]
    at = table.index
    for one in table.sums:
        for sex in range(3):
            cells = [(at[row], sex) for row in (one.total, *one.parts)]
            if all(cell in place for cell in cells):
                equations.append((place[cells[0]], tuple(place[cell] for cell in cells[1:])))
    blocks = list(published_counts(areas, seed, rows))
    shown = table.shown
    true = np.concatenate([block.true[:, shown] for block in blocks])
    published = np.concatenate([block.published[:, shown] for block in blocks if block.published is not None])
    how = [mechanism(table.rows[row].mechanism) for row, _ in place]
    published = np.where(published == MISSING, SUPPRESSED, published)
    return true.astype(np.int64), published.astype(np.int64), tuple(equations), how, [sex for _, sex in place]


def compiled(columns: int, equations: Equations, how: list[Mechanism]) -> CompiledSums:
    fixed = frozenset(column for column, own in enumerate(how) if own == Exact())
    return compile_sums(columns, equations, fixed)


@pytest.mark.parametrize("rows", ["age", "short"])
def test_weights_are_positive_finite_and_of_a_size_to_be_multiplied(rows: str) -> None:
    _, published, equations, how, _ = flattened(rows, 200, 4)
    fit = PriorFit(len(how))
    fit.add(published.astype(np.int32))
    layout = compiled(len(how), equations, how)
    table = fit.finish(layout, how).table
    assert table is not None
    assert (table.weights > 0).all()
    assert np.isfinite(table.weights).all()
    assert np.abs(np.log(table.weights)).max() <= RANGE * 1.000001
    assert (table.offset + table.size)[-1] == table.weights.size
    assert (table.weights[table.offset + table.size - 1] == 1).all()


def test_parallel_sums_are_one_sum_of_totals() -> None:
    equations = ((0, (1, 2)), (3, (4, 5)), (6, (7, 8)), (0, (3, 6)), (1, (4, 7)), (2, (5, 8)))
    found = structure_of(compile_sums(9, equations, frozenset()))
    assert [(one.total, one.parts) for one in found.sums] == [(0, (3, 6))]
    assert sorted(found.pairs) == [(0, 1, 2), (3, 4, 5), (6, 7, 8)]
    assert found.crossed == {0: 1, 3: 0, 6: 0}


def test_men_and_women_share_alike() -> None:
    _, published, equations, how, _ = flattened("age", 600, 4)
    fit = PriorFit(len(how))
    fit.add(published.astype(np.int32))
    layout = compiled(len(how), equations, how)
    pairs = Weigher(layout, how, fit.sample.counts, fit.distributions(how)).fit_pairs()
    assert len(pairs) == 26
    assert min(share.precision for share in pairs.values()) > MOST_EVEN / 4
    assert all(0.05 < share.q[0] < 0.6 for share in pairs.values())


# -- the prior as a whole ---------------------------------------------------------------------------------------------


def fitted_to(published: Array, layout: CompiledSums, how: list[Mechanism]) -> Prior:
    fit = PriorFit(len(how))
    for first in range(0, len(published), 128):
        fit.add(published[first : first + 128].astype(np.int32))
    return fit.finish(layout, how)


def test_few_areas_leave_the_prior_flat_and_it_says_so() -> None:
    _, published = draw(FEWEST_AREAS, 5.0, np.random.default_rng(1))
    how: list[Mechanism] = [Rounding(5)] * 13
    few = fitted_to(published[1:], one_sum(12), how)
    assert (few.name, few.table) == ("flat", None)
    assert few.sentence == f"flat: {FEWEST_AREAS - 1} areas are too few to fit a prior (at least {FEWEST_AREAS})"
    assert few.weights_for(0, 3, 9) == {}
    enough = fitted_to(published, one_sum(12), how)
    assert enough.name == "fitted"
    assert f"over {FEWEST_AREAS} areas" in enough.sentence
    assert Prior.flat().sentence.startswith("flat: ")


def test_weights_for_agrees_with_the_table_up_to_a_factor() -> None:
    _, published = draw(300, 5.0, np.random.default_rng(1))
    prior = fitted_to(published, one_sum(12), [Rounding(5)] * 13)
    assert prior.table is not None
    for column, low, high in (
        (0, 0, 9),
        (3, 11, 19),
        (12, 0, 4),
        (0, int(prior.table.size[0]) - 3, int(prior.table.size[0]) + 5),
    ):
        start, size = int(prior.table.offset[column]), int(prior.table.size[column])
        expected = np.array([prior.table.weights[start + min(x, size - 1)] for x in range(low, high + 1)])
        weights = prior.weights_for(column, low, high)
        assert list(weights) == list(range(low, high + 1))
        assert max(weights.values()) == 1
        assert np.array(list(weights.values())) == pytest.approx(expected / expected.max())


def test_what_weights_cannot_be_given_for() -> None:
    _, published = draw(100, 5.0, np.random.default_rng(1))
    prior = fitted_to(published, one_sum(12), [Rounding(5)] * 13)
    with pytest.raises(InputError, match="has 13 columns; there is no column 13"):
        prior.weights_for(13, 0, 4)
    with pytest.raises(InputError, match="ranges of counts from 0, not for 5 to 4"):
        prior.weights_for(0, 5, 4)


def test_saved_and_loaded_it_is_the_same(tmp_path: Path) -> None:
    _, published = draw(100, 5.0, np.random.default_rng(1))
    prior = fitted_to(published, one_sum(12), [Rounding(5)] * 13)
    prior.save(tmp_path / "prior.npz")
    again = Prior.load(tmp_path / "prior.npz")
    assert (again.name, again.sentence) == (prior.name, prior.sentence)
    assert again.table is not None
    assert prior.table is not None
    assert (again.table.weights == prior.table.weights).all()
    assert again.weights_for(3, 11, 19) == prior.weights_for(3, 11, 19)
    Prior.flat("because").save(tmp_path / "flat.npz")
    assert (Prior.load(tmp_path / "flat.npz").sentence, Prior.load(tmp_path / "flat.npz").table) == ("flat: because", None)


@pytest.mark.parametrize("content", [b"", b"PK but no archive", None])
def test_what_is_no_prior_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "prior.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot be read as a prior.*Run the audit again"):
        Prior.load(path)


def test_kernel_and_reference_agree_under_the_prior() -> None:
    """The table for compiled code, and `weights_for` for one system at a time, say the same."""
    _, published = draw(200, 3.0, np.random.default_rng(9), parts=3)
    layout, how = one_sum(3), [Rounding(5)] * 4
    prior = fitted_to(published, layout, how)
    for area in range(4):
        row = published[area]
        windows, _ = windows_of(row[np.newaxis].astype(np.int32), how)
        tight = tighten(layout, windows)
        found = posteriors(layout, windows, tight, prior.table)
        names = ["total", "a", "b", "c"]
        system = System(
            [Cell(name, int(value), Rounding(5)) for name, value in zip(names, row, strict=True)],
            [Sum("total", ("a", "b", "c"))],
        )
        weights = {
            name: prior.weights_for(column, int(windows.low[0, column]), int(windows.high[0, column]))
            for column, name in enumerate(names)
        }
        reference = brute(system, weights)
        for column in range(4):
            likely = {}
            for values, weight in zip(reference.solutions, reference.weights, strict=True):
                likely[values[column]] = likely.get(values[column], 0) + weight
            mean = float(sum(value * weight for value, weight in likely.items()) / sum(likely.values()))
            assert found.mean[0, column] == pytest.approx(mean, rel=1e-9)


# -- calibration ------------------------------------------------------------------------------------------------------

BANDS = ((0.66, 0.75), (0.75, 0.85), (0.85, 0.95), (0.95, 1.01))


def claims(
    layout: CompiledSums, how: list[Mechanism], true: Array, published: Array, prior: Prior
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64], NDArray[np.bool_]]:
    """Return probability and truth of the likeliest count, the error of the estimate, and which cells are open."""
    windows, _ = windows_of(published.astype(np.int32), how)
    tight = tighten(layout, windows)
    found = posteriors(layout, windows, tight, prior.table)
    is_open = (tight.high > tight.low) & (published > ABSENT) & found.possible[:, np.newaxis]
    return found.probability, found.mode == true, found.mean - true, is_open


def gaps(p: NDArray[np.float64], right: NDArray[np.bool_]) -> list[tuple[float, float]]:
    """Return by band how much more often claims are right than they say, and the standard error of that."""
    result = []
    for low, high in BANDS:
        band = (p >= low) & (p < high)
        number = max(np.count_nonzero(band), 1)
        gap = float((right[band].astype(float) - p[band]).sum() / number)
        result.append((gap, float(np.sqrt((p[band] * (1 - p[band])).sum()) / number)))
    return result


@pytest.mark.parametrize(("rows", "areas"), [("age", 900), ("short", 300)])
def test_claims_are_right_as_often_as_they_say(rows: str, areas: int) -> None:
    """Within 3.5 points, or three standard errors where claims are few; a flat prior is off by far more."""
    true, published, equations, how, sexes = flattened(rows, areas, 17)
    layout = compiled(len(how), equations, how)
    prior = fitted_to(published, layout, how)
    p, right, error, is_open = claims(layout, how, true, published, prior)
    sex = np.broadcast_to(sexes, true.shape)
    sparse = np.zeros_like(is_open)
    for total, parts in equations:
        if len(parts) >= 8:
            sparse[:, total] |= (published[:, parts] == 0).mean(axis=1) > 0.5
    groups = {"all": is_open, "zeros": is_open & (published == 0), "small": is_open & (published > 0) & (published < 30)}
    groups |= {f"sex {one}": is_open & (sex == one) for one in range(3)}
    if rows == "short":
        groups["sparse totals"] = is_open & sparse
    for name, group in groups.items():
        for gap, accuracy in gaps(p[group], right[group]):
            assert abs(gap) < 0.035 + 3 * accuracy, (name, gap, accuracy)
        assert abs(error[group].mean()) < (0.1 if name == "small" else 0.04), name
    flat_p, flat_right, flat_error, _ = claims(layout, how, true, published, Prior.flat())
    zeros = groups["zeros"]
    assert gaps(flat_p[zeros], flat_right[zeros])[1][0] > 0.05
    if rows == "short":
        assert flat_error[groups["sparse totals"]].mean() > 0.1
        assert abs(error[groups["sparse totals"]].mean()) < 0.04


def test_a_total_of_twenty_sparse_parts_is_not_overestimated() -> None:
    rng = np.random.default_rng(21)
    parts = 20
    total = rng.poisson(rng.gamma(2.0, 4.0, 1_500))
    shares = rng.dirichlet(np.full(parts, 0.4), len(total))
    split = np.array([rng.multinomial(t, q) for t, q in zip(total, shares, strict=True)])
    true = np.column_stack([total, split])
    how: list[Mechanism] = [Rounding(5)] * (parts + 1)
    published = Rounding(5).publish(true, rng)
    layout = one_sum(parts)
    *_, flat_error, _ = claims(layout, how, true, published, Prior.flat())
    p, right, error, is_open = claims(layout, how, true, published, fitted_to(published, layout, how))
    assert flat_error[:, 0].mean() > 1
    assert abs(error[:, 0].mean()) < 0.1
    for gap, accuracy in gaps(p[is_open], right[is_open]):
        assert abs(gap) < 0.03 + 3 * accuracy


@pytest.mark.parametrize("how", [Sample(5), Rounding(3), Laplace(1.45)], ids=lambda how: how.name)
def test_other_mechanisms_are_calibrated_too(how: Mechanism) -> None:
    rng = np.random.default_rng(31)
    true, published = draw(1_000, 5.0, rng, how=how)
    mechanisms: list[Mechanism] = [how] * 13
    layout = one_sum(12)
    prior = fitted_to(published, layout, mechanisms)
    assert prior.table is not None
    p, right, error, is_open = claims(layout, mechanisms, true, np.maximum(published, ABSENT + 1), prior)
    for gap, accuracy in gaps(p[is_open], right[is_open]):
        assert abs(gap) < 0.03 + 3 * accuracy
    assert abs(error[is_open].mean()) < 0.1
