"""The self-check: published counts are hidden, predicted from the rest, and compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from unround.audits.block import Auditor
from unround.audits.claims import ClaimKind
from unround.audits.model import Model
from unround.audits.selfcheck import FAILED, PASSED, Prediction, SelfCheck, _verdict, _weights, choose_and_check
from unround.comparison.calibration import material_of_world
from unround.comparison.practice import practice
from unround.comparison.run import as_counts
from unround.prior import Prior, PriorFit
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
    prior, found = choose_and_check(model, *fitted(model, counts))
    assert found is not None
    return prior, found


@pytest.mark.parametrize("world", ["unlike-evenness", "couples", "households", "neighbourhoods"])
def test_a_prior_that_suits_a_table_passes(world: str) -> None:
    prior, found = checked(*published(world, 1200))
    told = found.to_json()
    assert told["cells"] >= 2000
    assert 0.5 < told["rms_z"] < 1.6
    assert [one.verdict for one in found.tables] == [PASSED]
    assert prior.withheld == ()
    assert told["log_score"]["best"] > told["log_score"]["flat"]
    sure = [band for band in told["calibration"] if band["low"] >= 0.5 and band["predictions"] >= 100]
    assert sure
    assert all(abs(band["stated"] - band["observed"]) < 0.12 for band in sure)
    assert sum(band["predictions"] for band in told["calibration"]) == told["cells"]


def predictions(stated: float, right: float, number: int = 400) -> list[Prediction]:
    """Predict zeros, of which some are right."""
    return [Prediction(1, 100.0, stated, k < right * number, stated, k < right * number, (0.0,)) for k in range(number)]


@pytest.mark.parametrize(
    ("stated", "right", "why"),
    [
        (0.8, 0.7, "zeros were published less often than predicted, by 10 points"),
        (0.8, 0.78, ""),
        (0.6, 0.95, ""),
    ],
)
def test_only_what_states_too_much_fails(stated: float, right: float, why: str) -> None:
    assert _verdict(predictions(stated, right)) == (FAILED if why else PASSED, why)


def test_zeros_that_are_overstated_in_some_sizes_fail() -> None:
    small = [one._replace(size=10.0 + k) for k, one in enumerate(predictions(0.6, 0.4, 200))]
    large = [one._replace(size=300.0 + k) for k, one in enumerate(predictions(0.6, 0.8, 200))]
    assert _verdict(small + large) == (FAILED, "zeros were published less often than predicted in some sizes of areas")


def test_laws_weigh_by_what_they_predict() -> None:
    rng = np.random.default_rng(1)
    logs = rng.normal(-1.0, 0.1, (400, 1)) + np.zeros(3)
    assert _weights(logs).tolist() == [0.5, 0.5, 0.0]
    noise = rng.normal(0, 0.01, 400)
    best, tilted, _ = _weights(logs - np.stack([0 * noise, noise + 0.002, noise + 0.2], axis=1))
    assert best > 0.6
    assert best + tilted == 1
    assert _weights(logs - np.stack([0 * noise, noise - 0.002, noise + 0.2], axis=1))[1] > 0.6
    assert _weights(logs - np.stack([noise + 0.2, noise + 0.2, 0 * noise], axis=1)).tolist() == [0, 0, 1]
    assert _weights((logs - np.stack([0 * noise, noise + 1, noise], axis=1))[:20]).tolist() == [0.5, 0.5, 0.0]


def test_claims_of_a_table_that_fails_are_withheld() -> None:
    model, counts = published("unlike-evenness", 300)
    prior, _ = fitted(model, counts)
    nobody = np.zeros(300, dtype=np.bool_)
    open_to_all = Auditor(model, prior).infer(counts, nobody).claims
    held = Auditor(model, replace(prior, withheld=tuple(range(len(model.columns))))).infer(counts, nobody).claims
    assert open_to_all.of_kind(ClaimKind.LIKELY).any()
    assert not held.of_kind(ClaimKind.LIKELY).any()
    assert (held.held_back == ClaimKind.LIKELY).sum() == open_to_all.of_kind(ClaimKind.LIKELY).sum()


def test_the_order_of_areas_makes_no_difference() -> None:
    model, counts = published("couples", 600)
    order = np.random.default_rng(2).permutation(len(counts))
    one, other = checked(model, counts)[1].to_json(), checked(model, counts[order])[1].to_json()
    assert one == other


def test_a_flat_prior_is_not_checked() -> None:
    model, counts = published("couples", 10)
    prior, sample = fitted(model, counts)
    assert prior.is_flat
    assert choose_and_check(model, prior, sample) == (prior, None)
