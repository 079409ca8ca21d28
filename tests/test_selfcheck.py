"""The self-check: published counts are hidden, predicted from the rest, and compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from research.calibration import material_of_world

from unround.audits import Auditor, Model
from unround.audits.claims import ClaimKind
from unround.audits.selfcheck import (
    FAILED,
    PASSED,
    Prediction,
    SelfCheck,
    TableCheck,
    _verdict,
    choose_and_check,
    self_check,
)
from unround.comparison import practice
from unround.comparison.run import as_counts
from unround.prior import VARIANTS, Prior, PriorFit
from unround.release import Counts


def published(world: str, areas: int, seed: int = 11) -> tuple[Model, Counts]:
    material = material_of_world(world, areas, seed, rounded_total=False)
    chosen = practice("rounding:5", material)
    counts = as_counts(chosen.publish(material.true.astype(np.int64), np.random.default_rng(seed)))
    return material.model(chosen.assumed), counts


def fitted(model: Model, counts: Counts) -> tuple[Prior, Counts]:
    fit = PriorFit(len(model.columns))
    fit.add(counts)
    return fit.finish(model.compiled, model.mechanisms), fit.sample.counts


def checked(model: Model, counts: Counts) -> tuple[Prior, SelfCheck]:
    prior, outcome = choose_and_check(model, *fitted(model, counts))
    assert outcome is not None
    return prior, outcome


@pytest.mark.parametrize("world", ["unlike-evenness", "couples", "households"])
def test_a_prior_that_suits_a_table_passes(world: str) -> None:
    prior, outcome = checked(*published(world, 1200))
    report = outcome.to_json()
    assert report["cells"] >= 2000
    assert 0.5 < report["rms_z"] < 1.6
    assert [table.verdict for table in outcome.tables] == [PASSED]
    assert prior.withheld == ()
    assert report["log_score"]["best"] > report["log_score"]["flat"]
    sure = [band for band in report["calibration"] if band["low"] >= 0.5 and band["predictions"] >= 100]
    assert sure
    assert all(abs(band["stated"] - band["observed"]) < 0.12 for band in sure)
    assert sum(band["predictions"] for band in report["calibration"]) == report["cells"]


def test_a_prior_of_other_data_fails_and_its_claims_are_withheld() -> None:
    """Zeros are predicted as they were in other areas, where nearly everything was 0."""
    model, counts = published("unlike-evenness", 1200)
    emptier = counts.copy()
    emptier[:, 1:] = np.where(np.random.default_rng(1).random(emptier[:, 1:].shape) < 0.5, 0, emptier[:, 1:])
    wrong, _ = fitted(model, emptier)
    checks = self_check(model, wrong, counts)
    assert checks is not None
    assert checks.rms_z is not None
    assert checks.rms_z > 2
    assert [table.verdict for table in checks.tables] == [FAILED]
    assert "less often than predicted" in checks.tables[0].why
    nobody = np.zeros(300, dtype=np.bool_)
    open_to_all = Auditor(model, wrong).infer(counts[:300], nobody).claims
    held = Auditor(model, replace(wrong, withheld=checks.failed)).infer(counts[:300], nobody).claims
    assert open_to_all.of_kind(ClaimKind.LIKELY).any()
    assert not held.of_kind(ClaimKind.LIKELY).any()
    assert (held.held_back == ClaimKind.LIKELY).sum() == open_to_all.of_kind(ClaimKind.LIKELY).sum()


def test_what_is_right_on_the_whole_and_wrong_in_small_and_large_areas_fails() -> None:
    """Areas are of types that go with their size: one law for all sizes is wrong in each of them."""
    prior, found = checked(*published("neighbourhoods", 900))
    assert [table.verdict for table in found.tables] == [FAILED]
    assert "in some sizes of areas" in found.tables[0].why
    assert prior.withheld == found.failed == tuple(range(10))


def predictions(best: float, tilted: float, small: float = 0.5) -> list[Prediction]:
    """Return predictions of zeros at 50%: in small areas a share of them came true, in large ones the rest.

    The log score of every prediction is `best` and `tilted` beyond that of chance, on average.
    """
    noise = np.random.default_rng(4).normal(0, 0.01, 800)
    shares = (small, 1 - small)
    return [
        Prediction(
            0, float(k % 2), 0.5, k % 3 == 0, 0.5, k // 2 % 100 < 100 * shares[k % 2], (best - 1, tilted - 1 + noise[k])
        )
        for k in range(800)
    ]


@pytest.mark.parametrize(
    ("best", "tilted", "small", "verdict"),
    [
        (0.0, 0.0, 0.5, PASSED),
        (0.0, 0.004, 0.5, FAILED),  # fewer zeros predict better: claims of zeros would state too much
        (0.0, 0.0012, 0.5, PASSED),  # hardly
        (0.0, 0.0, 0.8, FAILED),  # wrong in small and in large areas
        (0.01, 0.0, 0.8, FAILED),  # even if the best is far better: the others are not believed then
    ],
)
def test_only_what_would_state_too_much_is_withheld(best: float, tilted: float, small: float, verdict: str) -> None:
    found, why = _verdict(predictions(best, tilted, small))
    assert (found, bool(why)) == (verdict, verdict == FAILED)
    assert ("fewer zeros" in why) == (tilted == 0.004)


@pytest.mark.parametrize(("ahead", "doubt"), [(-3.0, 0.0), (0.5, 0.0), (2.5, 0.5), (9.0, 1.0)])
def test_a_prior_that_predicts_clearly_worse_is_not_believed(ahead: float, doubt: float) -> None:
    """The best prior is ahead of *tilted* by so many standard errors, and *denser* is about something else."""
    gain = np.tile([-1.0, 1.0], 200)
    gain = gain / 20 + ahead / 20 * gain.std() / 20
    own = [Prediction(1, 1.0, 0.5, True, 0.5, True, (-1.0, -1.0 - one, -1.0, -9.0, -9.0)) for one in gain.tolist()]
    table = TableCheck("table", (0, 1), len(own), None, PASSED)
    few = TableCheck("other", (2,), 0, None, PASSED)
    found = SelfCheck(tuple(own), (table, few), (*VARIANTS, "flat"), ())
    doubted = found.doubts((*VARIANTS, "flat"), 3)
    assert doubted == pytest.approx(np.array([[0, 0, 0], [doubt, doubt, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]), abs=1e-9)
    prior = replace(Prior.flat(), variants=(*VARIANTS, "flat"), doubted=doubted)
    best, tilted = np.array([[0.8, 0.8, 0.8]]), np.array([[0.6, 0.5, 0.5]])
    assert prior.believed("tilted", tilted, best) == pytest.approx(tilted + doubt * np.array([[0.2, 0.3, 0]]))
    assert np.array_equal(prior.believed("denser", tilted, best), tilted)


def test_where_the_best_prior_predicts_clearly_better_more_is_claimed() -> None:
    """And as often right: minorities come in families, and the prior with the fewest zeros does not know it."""
    model, counts = published("households", 300)
    prior, _ = checked(model, counts)
    assert prior.doubted is not None
    assert prior.doubted[VARIANTS.index("tilted")].max() > 0.5
    true = material_of_world("households", 300, 11, rounded_total=False).true
    claims = [
        Auditor(model, claim).infer(counts, np.zeros(300, dtype=np.bool_)).claims
        for claim in (prior, replace(prior, doubted=None))
    ]
    likely = [claim.of_kind(ClaimKind.LIKELY) for claim in claims]
    assert likely[0].sum() > 1.1 * likely[1].sum()
    assert not (likely[1] & ~likely[0]).any()
    more = likely[0] & ~likely[1]
    assert (claims[0].values == true)[more].mean() > 0.85


def test_the_order_of_areas_makes_no_difference() -> None:
    model, counts = published("couples", 600)
    order = np.random.default_rng(2).permutation(len(counts))
    report, other = checked(model, counts)[1].to_json(), checked(model, counts[order])[1].to_json()
    assert report == other


def test_a_flat_prior_is_not_checked() -> None:
    model, counts = published("couples", 10)
    prior, sample = fitted(model, counts)
    assert prior.is_flat
    assert self_check(model, prior, sample) is None
    assert choose_and_check(model, prior, sample) == (prior, None)
