"""How often claims are right: the fitted prior is calibrated, the flat one is not, and the numbers are what they say."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Run
from unround.comparison import simulated
from unround.comparison.calibration import BINS, Calibration, Reliability, calibrate, calibrate_release
from unround.errors import InputError
from unround.readers import read
from unround.simulation import simulate


@cache
def short() -> Calibration:
    return calibrate(simulated(250, 11, "short"), seed=3)


def test_the_fitted_prior_is_calibrated() -> None:
    groups = short().groups
    assert groups["all cells"]["fitted"].error < 0.02
    assert groups["totals of sparse sums"]["fitted"].error < 0.03
    assert groups["totals of sparse sums"]["fitted"].cells > 1000
    for sex in ("both sexes", "men", "women"):
        assert abs(groups[sex]["fitted"].bias) < 0.01


def test_the_flat_prior_is_not_and_the_score_tells() -> None:
    for name in ("all cells", "totals of sparse sums", "published as 0"):
        flat, fitted = short().groups[name]["flat"], short().groups[name]["fitted"]
        assert flat.error > 2 * fitted.error
        assert flat.log_loss > fitted.log_loss
        assert short().trusted(name) == "fitted"
    assert short().groups["totals of sparse sums"]["flat"].error > 0.05


def test_groups_split_the_cells() -> None:
    groups = {name: own["fitted"].cells for name, own in short().groups.items()}
    assert groups["both sexes"] + groups["men"] + groups["women"] == groups["all cells"]
    assert sum(number for name, number in groups.items() if name.startswith("published as")) == groups["all cells"]
    by_parts = [number for name, number in groups.items() if "parts" in name]
    assert len(by_parts) == 3
    assert sum(by_parts) == groups["all cells"]


def test_reliability_by_hand() -> None:
    one = Reliability()
    one.add(np.array([0.9, 0.9, 0.5, 1.0]), np.array([True, False, True, True]), np.array([0.9, 0.1, 0.5, 1.0]))
    assert one.error == pytest.approx((abs(1.8 - 1) + abs(0.5 - 1) + 0) / 4)
    assert one.bias == pytest.approx((3 - 3.3) / 4)
    assert one.log_loss == pytest.approx(-np.log(0.9 * 0.1 * 0.5) / 4)
    assert one.chance == pytest.approx((np.sqrt(2 / np.pi * 0.18) + np.sqrt(2 / np.pi * 0.25)) / 4)
    assert [row["claims"] for row in one.to_json()["bins"]] == [1, 2, 1]
    assert one.bins.shape == (BINS, 4)


def test_what_calibrated_claims_show_by_chance() -> None:
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(200):
        stated = rng.uniform(0.2, 1.0, 400)
        one = Reliability()
        one.add(stated, rng.random(400) < stated, stated)
        errors.append(one.error)
    assert np.mean(errors) == pytest.approx(one.chance, rel=0.1)


def test_few_claims_decide_nothing() -> None:
    found = Calibration("here")
    found.groups["all cells"] = {"flat": Reliability(cells=10, loss=9.0), "fitted": Reliability(cells=10, loss=1.0)}
    assert found.trusted("all cells") == "too few to say"
    found.groups["all cells"] = {
        "flat": Reliability(cells=1000, loss=1000.0),
        "fitted": Reliability(cells=1000, loss=1001.0),
    }
    assert found.trusted("all cells") == "either"
    found.groups["all cells"]["fitted"].loss = 1100.0
    assert found.trusted("all cells") == "flat"


def test_noise_is_calibrated_too() -> None:
    found = calibrate(simulated(120, 5), "laplace:1.45", seed=2).groups["all cells"]
    assert found["fitted"].error < 0.025


def test_a_release_and_its_truth(tmp_path: Path) -> None:
    made = simulate(tmp_path / "census", areas=90, seed=5)
    found = calibrate_release(read(made.files[0]), read(made.truth))
    assert found.mechanism == "exact, rounding:5"
    assert found.groups["all cells"]["fitted"].error < 0.03
    with pytest.raises(InputError, match=r"cannot be matched|no column of the truth"):
        calibrate_release(read(made.files[0]), read(Path(__file__).parents[1] / "examples" / "survey.toml"))


def test_the_command(run: Run, tmp_path: Path) -> None:
    ran = run("calibrate", "--areas", "80", "-o", str(tmp_path))
    assert ran.code == 0, ran.err
    assert "points off overall" in ran.out
    kept = json.loads((tmp_path / "calibrate.json").read_text(encoding="utf-8"))
    assert set(kept["groups"]["all cells"]) == {"flat", "fitted", "trust"}
    assert (tmp_path / "calibrate.html").read_text(encoding="utf-8").count("<svg") == 1
    assert json.loads(run("calibrate", "--areas", "80", "--json").out) == kept


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--release", "a.csv"), "go together"),
        (("--release", "a.csv", "--truth", "b.csv", "--areas", "9"), "leave them out with --release"),
        (("--mechanism", "roundin:5", "--areas", "60"), "Did you mean rounding"),
    ],
)
def test_rejections(run: Run, arguments: tuple[str, ...], said: str) -> None:
    ran = run("calibrate", *arguments)
    assert ran.code == 2
    assert said in ran.err
