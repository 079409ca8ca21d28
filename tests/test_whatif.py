"""One more table beside what is out: on simulated counts with known truth, where some answers are known beforehand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import unround
from unround.errors import InputError
from unround.mechanisms import Rounding
from unround.reviews import Review
from unround.reviews.repairs import REPAIRS

from .conftest import Run

AREAS = 80
AGES = ("all", "child", "adult", "old")


def true_counts() -> pl.DataFrame:
    """People by age and sex in areas that do not exist: few, so that there are counts of one or two."""
    rng = np.random.default_rng(4)
    parts = rng.poisson(np.array([9.0, 20.0, 4.0])[None, :, None] * rng.gamma(2, 0.5, (AREAS, 1, 2)))
    rows = []
    for area in range(AREAS):
        for at, age in enumerate(AGES):
            men, women = (parts[area].sum(0) if at == 0 else parts[area, at - 1]).tolist()
            for sex, count in (("total", men + women), ("men", men), ("women", women)):
                rows.append((f"R{area:03}", age, sex, count))
    return pl.DataFrame(rows, schema=["region", "characteristic_id", "sex", "true"], orient="row")


def published(true: pl.DataFrame, seed: int, base: int = 3) -> pl.DataFrame:
    drawn = Rounding(base).publish(true["true"].to_numpy().astype(np.int64), np.random.default_rng(seed))
    return true.drop("true").with_columns(pl.Series("published", drawn))


TOML = """
value = "published"
default = "rounding:3"
areas = ["region"]
[axes.region]
[axes.characteristic]
column = "characteristic_id"
sums = [{ total = "all", parts = ["child", "adult", "old"] }]
[axes.sex]
sums = [{ total = "total", parts = ["men", "women"] }]
"""
FEWER = TOML.replace('sums = [{ total = "all", parts = ["child", "adult", "old"] }]\n', "", 1)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of all counts; a table of all or of some of them, rounded anew; and the truth."""
    folder = tmp_path_factory.mktemp("tables")
    true = true_counts()
    published(true, 1).write_csv(folder / "release.csv")
    published(true, 2).write_csv(folder / "table.csv")
    published(true.filter(pl.col("characteristic_id") == "child"), 3).write_csv(folder / "children.csv")
    for name in ("release", "table"):
        (folder / f"{name}.toml").write_text(f'data = "{name}.csv"\n{TOML}')
    (folder / "children.toml").write_text(f'data = "children.csv"\n{FEWER}')
    true.write_parquet(folder / "truth.parquet")
    return folder


def tried(files: Path, table: str = "table", **keys: Any) -> dict[str, Any]:
    review = unround.review(files / f"{table}.toml", earlier=files / "release.toml", **keys)
    assert isinstance(review, Review)
    return review.to_json()


@pytest.fixture(scope="module")
def with_truth(files: Path) -> dict[str, Any]:
    return tried(files, truth=files / "truth.parquet")


def row(report: dict[str, Any], name: str) -> dict[str, Any]:
    return next(repair for repair in report["repairs"] if repair["name"] == name)


def test_counts_that_are_rounded_anew_expose_more(with_truth: dict[str, Any]) -> None:
    news = with_truth["diff"]
    # Nobody says that the two tables count the same people: that is a condition.
    assert news["newly"]["proved"] + news["newly"]["conditional"] > 30
    assert news["newly_of_known_cells"] == news["newly"]  # the table has no count of its own
    assert with_truth["decision"] == "revise"
    assert with_truth["table"]["columns"] == 24
    assert all(cell["key"].split("@")[0] in news["matched"]["counts_published_again"] for cell in with_truth["cells"])


def test_what_repairs_leave(with_truth: dict[str, Any]) -> None:
    same = row(with_truth, "same-numbers")
    assert (same["rank"], same["cells_left_most"], same["cost"]["counts_lost"]) == (1, 0, 0)
    now = with_truth["cells_to_act_on"]
    for name in ("drop-totals", "base=6"):
        assert 0 < row(with_truth, name)["cells_left"] < now
    # Random rounding to base b is off by (b² − 1) / 3b on average: 8/9 for 3, 35/18 for 6; counts near 0 by less.
    assert 0.3 < row(with_truth, "base=6")["cost"]["mean_added_error"] < 1.2
    assert row(with_truth, "base=6")["method"] == "exact"
    assert "drop-repeats" in [refused["name"] for refused in with_truth["not_tried"]]  # nothing would be left


def test_without_the_truth_another_base_is_tried_on_plausible_counts(files: Path, with_truth: dict[str, Any]) -> None:
    told = tried(files, repairs=["base", "same-numbers"])
    assert {repair["name"]: repair["method"] for repair in told["repairs"]} == {
        "same-numbers": "exact",
        "base=6": "estimated",
    }
    assert 0.5 < row(told, "base=6")["cells_left"] / row(with_truth, "base=6")["cells_left"] < 2
    assert told == tried(files, repairs=["base", "same-numbers"])


def test_counts_that_are_out_can_be_left_out(files: Path, tmp_path: Path) -> None:
    """A table of children, and of a group that the release does not have."""
    children = published(true_counts().filter(pl.col("characteristic_id") == "child"), 3)
    babies = children.with_columns(pl.lit("babies").alias("characteristic_id"), pl.col("published") // 2 // 3 * 3)
    pl.concat([children, babies]).write_csv(tmp_path / "more.csv")
    (tmp_path / "more.toml").write_text(f'data = "more.csv"\n{FEWER}')
    report = unround.review(tmp_path / "more.toml", earlier=files / "release.toml", repairs=["drop-repeats"]).to_json()
    dropped = row(report, "drop-repeats")
    assert dropped["cost"]["counts_lost"] == 3 * AREAS
    assert dropped["cells_left"] < report["cells_to_act_on"]


def test_a_table_that_is_exact_lays_counts_open(files: Path, tmp_path: Path) -> None:
    true = true_counts().filter(pl.col("characteristic_id") == "child").rename({"true": "published"})
    true.write_csv(tmp_path / "exact.csv")
    (tmp_path / "exact.toml").write_text(f'data = "exact.csv"\n{FEWER.replace("rounding:3", "exact")}')
    report = unround.review(tmp_path / "exact.toml", earlier=files / "release.toml", repairs=["same-numbers"]).to_json()
    assert report["diff"]["now_published_exactly"] == 3 * AREAS
    assert row(report, "same-numbers")["cells_left_most"] == 0


def test_the_command_writes_a_folder(files: Path, tmp_path: Path, run: Run) -> None:
    out = tmp_path / "more"
    arguments = ("review", str(files / "release.toml"), "--more", str(files / "table.toml"))
    shown = run(*arguments, "--repairs", "same-numbers", "-o", str(out))
    assert shown.code == 4, shown.err
    said = " ".join(shown.out.split())
    assert "REVISE BEFORE PUBLISHING" in said
    assert "What it adds to what is out" in said
    names = {"audit", "before", "cells.xlsx", "review.html", "review.json"}
    assert {path.name for path in out.iterdir()} == names
    report = json.loads((out / "review.json").read_text("utf-8"))
    assert report["diff"]["before"]["path"] == str(out / "before")
    assert "What it adds to what is out" in (out / "review.html").read_text("utf-8")
    # What it says is what `--against` says of the two folders.
    again = json.loads(run("review", str(out / "audit"), "--against", str(out / "before"), "--json").out)
    assert again == report["diff"]
    other = run("review", str(files / "table.toml"), "--earlier", str(files / "release.toml"), "--repairs", "none", "--json")
    assert json.loads(other.out)["diff"]["newly"] == report["diff"]["newly"]


def test_what_cannot_be_tried(files: Path, tmp_path: Path, run: Run) -> None:
    gone = run("review", str(files / "release.toml"), "--more", str(tmp_path / "nowhere.csv"))
    assert gone.code == 2
    assert "nowhere.csv" in gone.err
    alone = run("review", "--more", str(files / "table.toml"))
    assert "unround review RELEASE --more TABLE" in alone.err
    elsewhere = published(true_counts(), 5).with_columns(pl.concat_str(pl.lit("X"), "region").alias("region"))
    elsewhere.write_csv(tmp_path / "table.csv")
    (tmp_path / "table.toml").write_text(f'data = "table.csv"\n{TOML}')
    with pytest.raises(
        InputError, match=r"table.toml and .*release.csv have no area in common: the table has XR000 …, the release R000 …"
    ):
        unround.review(tmp_path / "table.toml", earlier=files / "release.toml")


def test_a_truth_that_does_not_fit(files: Path, tmp_path: Path) -> None:
    def refused(true: pl.DataFrame, said: str) -> None:
        true.write_parquet(tmp_path / "truth.parquet")
        with pytest.raises(InputError, match=said):
            unround.review(files / "children.toml", earlier=files / "release.toml", truth=tmp_path / "truth.parquet")

    true = true_counts()
    refused(true.filter(pl.col("sex") != "men"), r"columns of the draft are missing from the truth .*men.*: give the true")
    refused(true.with_columns(pl.col("true") + 9), "cannot have been published from the truth .* belongs to another table")
    refused(true.with_columns(pl.concat_str(pl.lit("X"), "region").alias("region")), "has none of the counts|in common")


def test_every_repair_is_in_the_help(run: Run) -> None:
    shown = run("review", "--help").out
    assert all(name in shown for name in REPAIRS)
