"""How coarse rates must be to add nothing: on simulated counts with known truth."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import unround
from unround.errors import InputError
from unround.mechanisms import Rounding
from unround.options import AuditOptions
from unround.release import FIGURE_ABSENT, NOT_AVAILABLE
from unround.reviews.rate_steps import STEPS, choose_rates, printing, rate_steps, rate_values
from unround.tables import read

from .conftest import Run

AREAS = 90
FLAT = AuditOptions(prior="flat")
COUNTS = ("all", "young", "old", "poor", "poor young", "poor old")
TOML = """
data = "{name}.csv"
value = "n"
default = "rounding:5"
areas = ["region"]
[axes.region]
[axes.what]
sums = [{{ total = "all", parts = ["young", "old"] }}, {{ total = "poor", parts = ["poor young", "poor old"] }}]
"""
RATE = '[[figures]]\ncolumn = "share"\nkind = "rate"\nnumerator = "poor"\nuniverse = "all"\n'


def true_counts() -> np.ndarray:
    rng = np.random.default_rng(8)
    parts = rng.integers(150, 400, (AREAS, 2))
    poor = rng.binomial(parts, 0.15)
    return np.stack([parts.sum(1), parts[:, 0], parts[:, 1], poor.sum(1), poor[:, 0], poor[:, 1]], axis=1)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Counts rounded to base 5, without rates; with one to 0.1 points from true counts, or from these; and the truth."""
    folder = tmp_path_factory.mktemp("rates")
    true = true_counts()
    shown = Rounding(5).publish(true, np.random.default_rng(1))
    regions = [f"R{area:03}" for area in range(AREAS)]

    def write(name: str, counts: np.ndarray, share: np.ndarray | None) -> None:
        rows = [
            (r, c, str(n)) for r, row in zip(regions, counts.tolist(), strict=True) for c, n in zip(COUNTS, row, strict=True)
        ]
        if share is not None:
            rows += [(region, "share", f"{value:.1f}") for region, value in zip(regions, share, strict=True)]
        pl.DataFrame(rows, schema=["region", "what", "n"], orient="row").write_csv(folder / f"{name}.csv")
        text = TOML.format(name=name) + ("" if share is None else RATE)
        (folder / f"{name}.toml").write_text(text.replace("rounding:5", "exact") if name == "truth" else text)

    def share(counts: np.ndarray) -> np.ndarray:
        return np.floor(1000 * counts[:, 3] / counts[:, 0] + 0.5) / 10

    write("plain", shown, None)
    write("true", shown, share(true))
    write("published", shown, share(shown))
    write("truth", true, None)
    return folder


@pytest.fixture(scope="module")
def tried(files: Path) -> dict[str, Any]:
    return rate_steps(read(files / "true.toml"), ["all"], FLAT, truth=read(files / "truth.toml")).to_json()


def claims(row: dict[str, Any]) -> int:
    return sum(row["newly"].values())


def test_fine_steps_add_claims_and_coarse_ones_none(tried: dict[str, Any]) -> None:
    assert [row["step"] for row in tried["steps"]] == [0.1, 0.2, 0.5, 1, 2, 5, 10]
    assert claims(tried["steps"][0]) > 10
    assert tried["steps"][0]["newly"]["proved"] == 0  # nothing that rests on a rate is proved
    fine = tried["adds_nothing_from"]
    assert 0.1 < fine <= 10
    assert all(claims(row) == 0 for row in tried["steps"] if row["step"] >= fine)
    assert claims(next(row for row in reversed(tried["steps"]) if row["step"] < fine)) > 0
    # Each was used, though coarse ones look as if they could have been computed from anything.
    assert all(row["figures_used"] == 1 for row in tried["steps"])


def test_no_step_gives_wrong_claims(tried: dict[str, Any]) -> None:
    for row in tried["steps"]:
        assert row["truth"]["wrong"]["proved"] == row["truth"]["wrong"]["conditional"] == 0
    assert tried["steps"][0]["truth"]["checked"]["conditional"] > 0


def test_the_rate_as_printed_is_the_finest_step(tried: dict[str, Any]) -> None:
    # The same numbers, computed here and by the fixture.
    assert tried["as_printed"]["newly"] == tried["steps"][0]["newly"]
    (rate,) = tried["rates"]
    assert (rate["name"], rate["numerator"], rate["universe"], rate["verdict"]) == ("share", "poor", "all", "evidence")


def test_rates_from_rounded_counts_add_nothing(tried: dict[str, Any], files: Path) -> None:
    rounded = tried["from_published_counts"]
    assert rounded["computed_from"] == "published"
    assert claims(rounded) == rounded["figures_used"] == 0
    with pytest.raises(InputError, match=r"no rate of .* is computed from true counts, as far as the data show"):
        choose_rates(read(files / "published.toml"), ["all"])


def test_errors_are_a_quarter_of_a_step(tried: dict[str, Any]) -> None:
    for row in tried["steps"][:5]:
        assert 0.7 < row["mean_error"] / (row["step"] / 4) < 1.3
    assert tried["from_published_counts"]["mean_error"] > 5 * tried["steps"][0]["mean_error"]


def test_a_rate_that_is_not_printed_yet(files: Path, tried: dict[str, Any]) -> None:
    report = rate_steps(read(files / "plain.toml"), ["poor of all"], FLAT, truth=read(files / "truth.toml")).to_json()
    assert report["as_printed"] is None
    assert report["rates"][0]["verdict"] is None
    assert [row["newly"] for row in report["steps"]] == [row["newly"] for row in tried["steps"]]


def test_without_the_truth_plausible_counts_are_drawn(files: Path, tried: dict[str, Any]) -> None:
    report = rate_steps(read(files / "true.toml"), ["share"], FLAT).to_json()
    assert report["method"] == "simulated"
    assert report["drawn"] == {"areas": AREAS, "times": 6}
    assert report["as_printed"]["newly"] == tried["as_printed"]["newly"]  # of the real areas
    exact, drawn = claims(tried["steps"][0]), claims(report["steps"][0])
    assert 0.5 * exact < drawn < 2 * exact
    assert not report["steps"][0]["adds_nothing"]
    assert claims(report["from_published_counts"]) == 0
    assert report["steps"] == rate_steps(read(files / "true.toml"), ["share"], FLAT).to_json()["steps"]


def test_where_nothing_plausible_can_be_drawn_the_truth_is_needed(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise InputError("sums form loops.")

    monkeypatch.setattr("unround.reviews.rate_steps.plausible_worlds", fails)
    with pytest.raises(
        InputError, match="this needs --truth, because plausible true counts cannot be drawn: sums form loops"
    ):
        rate_steps(read(files / "plain.toml"), ["poor of all"], FLAT)


def test_rates_are_rounded_to_the_nearest_step_and_halves_up() -> None:
    top = np.array([1, 1, 3, 9, 0, 2, NOT_AVAILABLE, 4], np.int32)
    whole = np.array([3, 8, 8, 8, 5, 0, 5, NOT_AVAILABLE], np.int32)
    rates = rate_values(top, whole, Fraction(100), Fraction(5))
    assert rates[:5].tolist() == [350_000, 150_000, 400_000, 1_000_000, 0]  # 33.3, 12.5, 37.5, more than all, none
    assert (rates[5:] == FIGURE_ABSENT).all()


def test_a_rate_is_not_printed_where_a_count_is_not(files: Path) -> None:
    release = read(files / "plain.toml")
    rates = choose_rates(release, ["poor of all", "poor  of  all", "poor young of young"])
    assert [rate.name for rate in rates] == ["poor of all", "poor young of young"]
    made = printing(release, rates, STEPS[0], None)
    (block,) = made.blocks()
    assert block.figures is not None
    assert block.figures.shape == (AREAS, 2)
    assert np.abs(block.figures[:, 0] / 1e4 - 100 * block.counts[:, 3] / block.counts[:, 0]).max() <= 0.05 + 1e-9


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ([], "no rate is named"),
        (["nothing"], "there is no rate 'nothing' in .*: name the column of a rate"),
        (["poor of some"], "there is no count 'some'"),
        (["poor of poor"], "always 100%"),
        (["all"], "no rate of .* is computed from true counts"),
    ],
)
def test_what_cannot_be_asked(files: Path, wanted: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        rate_steps(read(files / "plain.toml"), wanted, FLAT)


def test_a_truth_of_something_else_is_refused(files: Path, tmp_path: Path) -> None:
    text = pl.read_csv(files / "truth.csv").with_columns(pl.col("n") * 2)
    text.write_csv(tmp_path / "truth.csv")
    (tmp_path / "truth.toml").write_text((files / "truth.toml").read_text())
    with pytest.raises(InputError, match="cannot have been published from the truth"):
        rate_steps(read(files / "plain.toml"), ["poor of all"], FLAT, truth=read(tmp_path / "truth.toml"))
    text.filter(pl.col("what") != "poor").write_csv(tmp_path / "truth.csv")
    (tmp_path / "truth.toml").write_text((files / "truth.toml").read_text().split("sums")[0])
    with pytest.raises(InputError, match=r"lacks counts that rates are computed from \(poor\)"):
        rate_steps(read(files / "plain.toml"), ["poor of all"], FLAT, truth=read(tmp_path / "truth.toml"))


def test_the_command_says_it(files: Path, run: Run) -> None:
    done = run("review", str(files / "true.toml"), "--rates", "share", "--truth", str(files / "truth.toml"))
    assert done.code == 0
    said = " ".join(done.out.split())
    assert "How coarse must the rate share be to add nothing to the counts of true" in said
    assert (
        "Rates computed from true counts add no claim in steps of 1 point or coarser; steps of 0.5 points add 1 claim."
        in said
    )
    assert "Rates computed from the rounded counts add nothing on any step." in said
    assert "no proved or conditional claim is wrong" in said


def test_the_question_is_about_a_table_or_about_rates(files: Path, run: Run) -> None:
    done = run("review", str(files / "true.toml"), "--rates", "all", "--more", "t.csv")
    assert done.code == 2
    assert "--more, --rates and --against exclude each other" in done.err
    done = run("review", str(files / "true.toml"), "--rates", "all", "--accept", "R001:young", "--because", "it is out")
    assert (done.code, "--accept has no meaning with --rates" in done.err) == (2, True)
    with pytest.raises(InputError, match="missing a required argument: 'rates'"):
        unround.rate_steps(files / "true.toml")  # type: ignore[call-arg]
