"""What one more table exposes: on simulated counts with known truth, where some answers are known beforehand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from unround.errors import InputError
from unround.mechanisms import Rounding
from unround.options import AuditOptions
from unround.release import ABSENT
from unround.scenarios import whatif
from unround.scenarios.repairs import REPAIRS
from unround.scenarios.trying import ranked
from unround.tables import read

from .conftest import Run

AREAS = 80
FLAT = AuditOptions(prior="flat")
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
    """A release of all counts; a table of some of them, rounded anew; and the truth."""
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


def tried(files: Path, table: str = "table", *, truth: bool = True, **keys: Any) -> dict[str, Any]:
    known = read(files / "truth.parquet") if truth else None
    return whatif(read(files / "release.toml"), read(files / f"{table}.toml"), None, FLAT, truth=known, **keys).to_json()


@pytest.fixture(scope="module")
def with_truth(files: Path) -> dict[str, Any]:
    return tried(files)


def row(told: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in told["repairs"] if one["name"] == name)
    return found


def test_counts_that_are_rounded_anew_expose_more(with_truth: dict[str, Any]) -> None:
    now = with_truth["as_it_is"]
    # Nobody says that the two tables count the same people: that is a condition.
    assert now["newly"]["proved"] + now["newly"]["conditional"] > 30
    assert now["newly_small"]["proved"] + now["newly_small"]["conditional"] > 0
    assert now["newly_of_known_cells"] == now["newly"]  # the table has no count of its own
    assert with_truth["table_columns"] == with_truth["table_columns_in_release"] == 12
    assert with_truth["diff"]["newly"] == now["newly"]
    assert now["truth"]["wrong"]["conditional"] == 0 < now["truth"]["checked"]["conditional"]


def test_the_old_numbers_leave_nothing(with_truth: dict[str, Any]) -> None:
    same = row(with_truth, "same-numbers")
    assert same["rank"] == 1
    assert same["exposure"] == same["left"] == 0
    assert same["newly"] == {"proved": 0, "conditional": 0, "likely": 0}
    assert same["cost"]["counts_lost"] == same["cost"]["counts_lost_but_in_release"] == 0
    assert abs(same["cost"]["mean_added_error"]) < 0.2  # the same mechanism, another draw


def test_other_repairs_leave_something_but_less(with_truth: dict[str, Any]) -> None:
    whole = with_truth["as_it_is"]["exposure"]
    for name in ("drop-totals", "base=6"):
        assert 0 < row(with_truth, name)["exposure"] < whole
        assert row(with_truth, name)["truth"]["wrong"]["proved"] == 0
    assert row(with_truth, "drop-totals")["cost"]["columns_dropped"] == [
        "all",
        "all/men",
        "all/women",
        "child",
        "adult",
        "old",
    ]
    assert row(with_truth, "drop-totals")["cost"]["counts_lost_but_in_release"] == 6 * AREAS
    # Random rounding to base b is off by (b² − 1) / 3b on average: 8/9 for 3, 35/18 for 6; counts near 0 by less.
    assert 0.7 < row(with_truth, "base=6")["cost"]["mean_added_error"] < 1.2
    singles = [one for one in with_truth["repairs"] if one["name"].startswith("drop=")]
    assert len(singles) == 4
    assert all(one["cost"]["counts_lost_but_in_release"] == AREAS for one in singles)
    assert [one["name"] for one in with_truth["not_tried"]] == ["drop-repeats"]


def test_the_ranking_is_by_what_is_left(with_truth: dict[str, Any]) -> None:
    left = [one["left"] for one in with_truth["repairs"]]
    assert left == sorted(left)
    assert [one["rank"] for one in with_truth["repairs"]] == list(range(1, len(left) + 1))
    whole = with_truth["as_it_is"]["exposure"]
    assert all(one["left"] == one["exposure"] / whole for one in with_truth["repairs"])


def test_among_equals_the_cheaper_repair_goes_first() -> None:
    def one(name: str, left: float, lost: int, error: float | None) -> dict[str, Any]:
        cost = {"counts_lost": lost, "counts_lost_but_in_release": 0, "mean_added_error": error}
        return {"name": name, "left": left, "exposure": 1, "cost": cost}

    rows = [
        one("d", 0.5, 0, None),
        one("c", 0.5, 0, 0.5),
        one("b", 0.5, 9, 0.0),
        one("a", 0.5, 0, 0.5),
        one("e", 0.1, 99, 9.0),
    ]
    assert [row["name"] for row in ranked(rows)] == ["e", "a", "c", "d", "b"]


def test_without_the_truth_another_base_is_tried_on_plausible_counts(files: Path, with_truth: dict[str, Any]) -> None:
    told = tried(files, truth=False, wanted=["base", "same-numbers"])
    assert [(one["name"], one["method"]) for one in told["repairs"]] == [("same-numbers", "exact"), ("base=6", "simulated")]
    assert told["simulated"]["areas"] == AREAS
    # The world that was drawn is much like the real one.
    assert 0.5 < told["simulated"]["exposure"] / told["as_it_is"]["exposure"] < 2
    assert abs(row(told, "base=6")["left"] - row(with_truth, "base=6")["left"]) < 0.2  # 80 areas, published once
    assert row(told, "base=6")["contradictions"] == 0
    assert told == tried(files, truth=False, wanted=["base", "same-numbers"])


def test_a_table_of_some_counts(files: Path) -> None:
    """Children only: leaving out what the release has leaves nothing of the table, and nothing else is a total of it."""
    told = tried(files, "children", truth=False, wanted=["drop-repeats", "drop-totals", "drop=child/men"])
    assert told["as_it_is"]["exposure"] > 0
    assert [one["name"] for one in told["repairs"]] == ["drop-totals", "drop=child/men"]
    assert row(told, "drop-totals")["cost"]["columns_dropped"] == ["child"]


def test_a_table_that_is_exact_lays_counts_open(files: Path, tmp_path: Path) -> None:
    true = true_counts().filter(pl.col("characteristic_id") == "child").rename({"true": "published"})
    true.write_csv(tmp_path / "exact.csv")
    (tmp_path / "exact.toml").write_text(f'data = "exact.csv"\n{FEWER.replace("rounding:3", "exact")}')
    told = whatif(read(files / "release.toml"), read(tmp_path / "exact.toml"), None, FLAT, wanted=["same-numbers"]).to_json()
    assert told["as_it_is"]["now_published_exactly"] == 3 * AREAS
    assert row(told, "same-numbers")["exposure"] == 0
    assert row(told, "same-numbers")["cost"]["mean_added_error"] == pytest.approx(8 / 9)


def test_areas_that_only_the_table_has(files: Path) -> None:
    release = read(files / "release.toml")

    def half(progress: Any) -> Any:
        for block in release.blocks(progress):
            yield replace(block, areas=block.areas[:50], counts=block.counts[:50])

    told = whatif(replace(release, read=half), read(files / "table.toml"), None, FLAT, wanted=["same-numbers"]).to_json()
    assert told["diff"]["matched"]["areas_in_both"] == 50
    assert told["diff"]["matched"]["areas_only_after"] == AREAS - 50
    same = row(told, "same-numbers")
    assert same["newly_of_known_cells"] == {"proved": 0, "conditional": 0, "likely": 0}
    assert same["newly"]["proved"] > 0  # in areas that were not published before


def test_the_command_writes_a_folder(files: Path, tmp_path: Path, run: Run) -> None:
    out = tmp_path / "whatif"
    arguments = ("review", str(files / "release.toml"), "--more", str(files / "table.toml"))
    shown = run(*arguments, "--repairs", "same-numbers", "-o", str(out))
    assert shown.code == 0, shown.err
    said = " ".join(shown.out.split())
    assert "What would table.csv expose, next to release.csv?" in said
    assert "The best repair is same-numbers: none of the exposure is left." in said
    assert sorted(path.name for path in out.iterdir()) == ["after", "before", "whatif.html", "whatif.json"]
    told = json.loads((out / "whatif.json").read_text("utf-8"))
    assert told["diff"]["before"]["path"] == str(out / "before")
    page = (out / "whatif.html").read_text("utf-8")
    assert "What would table.csv expose?" in page
    assert "same-numbers" in page
    assert "What changed since before" in (out / "after" / "report.html").read_text("utf-8")
    # What it says is what `diff` says of the two folders.
    again = json.loads(run("review", str(out / "after"), "--against", str(out / "before"), "--json").out)
    assert again == told["diff"]
    as_json = run(*arguments, "--repairs", "none", "--json")
    assert json.loads(as_json.out)["repairs"] == []
    assert json.loads(as_json.out)["diff"]["newly"] == told["diff"]["newly"]


def test_nothing_is_left_behind_where_something_fails(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "new"

    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        whatif(read(files / "release.toml"), read(files / "children.toml"), out, FLAT, wanted=[], finish=fail)
    assert not out.exists()
    whatif(read(files / "release.toml"), read(files / "children.toml"), out, FLAT, wanted=[])
    before = (out / "whatif.json").read_bytes()
    with pytest.raises(KeyboardInterrupt):
        whatif(read(files / "release.toml"), read(files / "table.toml"), out, FLAT, wanted=[], finish=fail)
    assert (out / "whatif.json").read_bytes() == before
    assert sorted(path.name for path in out.iterdir()) == ["after", "before", "whatif.json"]


def test_a_folder_of_somebody_else_is_not_touched(files: Path, tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    with pytest.raises(InputError, match="already contains before, but no whatif"):
        whatif(read(files / "release.toml"), read(files / "table.toml"), tmp_path, FLAT)


def test_what_cannot_be_tried(files: Path, tmp_path: Path, run: Run) -> None:
    release, table = read(files / "release.toml"), read(files / "table.toml")
    gone = run("review", str(files / "release.toml"), "--more", str(tmp_path / "nowhere.csv"))
    assert gone.code == 2
    assert "nowhere.csv" in gone.err
    with pytest.raises(InputError, match="a seed must be a whole number"):
        whatif(release, table, seed=-1)
    with pytest.raises(InputError, match="there is no repair 'magic': choose from same-numbers"):
        whatif(release, table, None, FLAT, wanted=["magic"])
    with pytest.raises(InputError, match="the table has no such column"):
        whatif(release, table, None, FLAT, wanted=["drop=nobody"])
    with pytest.raises(InputError, match="base= takes a whole number"):
        whatif(release, table, None, FLAT, wanted=["base=big"])


def test_a_table_of_other_areas(files: Path, tmp_path: Path) -> None:
    elsewhere = published(true_counts(), 5).with_columns(pl.concat_str(pl.lit("X"), "region").alias("region"))
    elsewhere.write_csv(tmp_path / "table.csv")
    (tmp_path / "table.toml").write_text(f'data = "table.csv"\n{TOML}')
    with pytest.raises(
        InputError, match=r"table.csv and .*release.csv have no area in common: the table has XR000 …, the release R000 …"
    ):
        whatif(read(files / "release.toml"), read(tmp_path / "table.toml"), None, FLAT)


def test_a_truth_that_does_not_fit(files: Path, tmp_path: Path) -> None:
    def refused(true: pl.DataFrame, said: str) -> None:
        true.write_parquet(tmp_path / "truth.parquet")
        known = read(tmp_path / "truth.parquet")
        with pytest.raises(InputError, match=said):
            whatif(read(files / "release.toml"), read(files / "children.toml"), None, FLAT, truth=known)

    true = true_counts()
    refused(
        true.filter(pl.col("sex") != "men"),
        "1 of the 3 columns of the table are missing from the truth in .* .child/men.: give the true counts",
    )
    refused(true.with_columns(pl.col("true") + 9), "cannot have been rounded from the truth .* belongs to another table")
    refused(
        true.with_columns(pl.concat_str(pl.lit("X"), "region").alias("region")), "no area in common|none of the counts of"
    )


def test_every_repair_is_in_the_help(run: Run) -> None:
    shown = run("review", "--help").out
    assert all(name in shown for name in REPAIRS)


def test_dropping_a_column_drops_its_sums(files: Path) -> None:
    from unround.scenarios.tables import without

    table = read(files / "table.toml")
    at = table.index["child"]
    less = without(table, [at])
    assert "child" not in less.index
    assert len(less.columns) == 11
    names = [column.key for column in less.columns]
    for one in less.proposals:
        total, parts = names[one.total], {names[part] for part in one.parts}
        assert parts in ({f"{total}/men", f"{total}/women"}, {f"{age}{total.removeprefix('all')}" for age in AGES[1:]})
    assert len(less.proposals) == len(table.proposals) - 2
    (block,) = less.blocks()
    (whole,) = table.blocks()
    assert (block.counts == np.delete(whole.counts, at, axis=1)).all()
    assert (block.counts > ABSENT).all()
