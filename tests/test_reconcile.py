"""`unround reconcile`: one table that adds up, checked by code that shares nothing with what made it."""

from __future__ import annotations

import itertools
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from research.commands import world as write_world
from typer.testing import CliRunner

import unround
from unround.additive.costs import Costs, Estimates
from unround.additive.rounding import Rounder
from unround.additive.systems import additive_means
from unround.cli import app
from unround.errors import InputError
from unround.reconciliation import run
from unround.sums.compiled import compile_sums
from unround.sums.families import AreaFamily, sums_matrix
from unround.sums.forest import Equations

# -- engines ----------------------------------------------------------------------------------------------------------

TREE: Equations = ((0, (1, 2)), (1, (3, 4, 5)))
BY_SEX: Equations = tuple((3 * n, (3 * n + 1, 3 * n + 2)) for n in range(4)) + tuple(
    (sex, (3 + sex, 6 + sex, 9 + sex)) for sex in range(3)
)
TWO_WAY: Equations = (
    *((3 + 4 * r, tuple(4 * r + c for c in range(3))) for r in range(3)),
    *((12 + c, tuple(4 * r + c for r in range(3))) for c in range(4)),
)
"""Three rows and three columns with their margins, where the totals of rows are the fourth column: a loop."""
SHAPES = {"tree": (6, TREE), "by sex": (12, BY_SEX), "two-way": (16, TWO_WAY)}


def means_of(cells: int, sums: Equations, areas: int, seed: int) -> np.ndarray:
    """Draw means that add up: the nearest that do to random ones."""
    rng = np.random.default_rng(seed)
    drawn, bounds = rng.gamma(0.8, 1.5, (areas, cells)), np.zeros((areas, cells), dtype=np.int32)
    matrix = sums_matrix(cells, sums, np.ones((areas, len(sums)), dtype=bool))
    return additive_means(matrix, drawn, np.ones(drawn.shape), bounds, bounds + 50)


def estimates_of(mean: np.ndarray, sums: Equations, most: int = 50) -> Estimates:
    low = np.zeros(mean.shape, dtype=np.int32)
    active = np.ones((len(mean), len(sums)), dtype=bool)
    none, wide = np.zeros(mean.shape), np.zeros((len(mean), 1), dtype=bool)
    return Estimates(mean.copy(), none + 1.0, none, low, low + most, active, wide, none.astype(bool), none == 0)


def best_of(mean: np.ndarray, sums: Equations) -> float:
    """Return the least sum of squares, by CP-SAT: an integer program of its own."""
    from ortools.sat.python import cp_model

    model, fine = cp_model.CpModel(), 1000
    cells = [model.new_int_var(0, 50, str(cell)) for cell in range(len(mean))]
    for total, parts in sums:
        model.add(cells[total] == sum(cells[part] for part in parts))
    costs = []
    for cell, value in zip(cells, mean, strict=True):
        costs.append(model.new_int_var(0, 10**10, ""))
        pairs = [(count, round(fine * (count - float(value)) ** 2)) for count in range(51)]
        model.add_allowed_assignments([cell, costs[-1]], pairs)
    model.minimize(sum(costs))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return float(sum((solver.value(cell) - value) ** 2 for cell, value in zip(cells, mean, strict=True)))


@pytest.mark.parametrize("shape", SHAPES)
def test_whole_numbers_are_the_optimum_of_an_integer_program(shape: str) -> None:
    cells, sums = SHAPES[shape]
    mean = means_of(cells, sums, 5, seed=3)
    rounder = Rounder(compile_sums(cells, sums, frozenset()), sums, estimates_of(mean, sums), [])
    rounded = rounder.round()
    for row, numbers in enumerate(rounded):
        assert all(numbers[total] == sum(numbers[part] for part in parts) for total, parts in sums)
        assert ((numbers - mean[row]) ** 2).sum() == pytest.approx(best_of(mean[row], sums), abs=0.02)
    assert (rounded >= 0).all()
    assert not rounder.left


def test_areas_that_make_up_others_add_up_too_and_stay_in_bounds() -> None:
    """A country of regions of districts, far too many for one integer program."""
    areas, (cells, sums) = 1 + 4 + 4 * 30, SHAPES["by sex"]
    mean = means_of(cells, sums, areas, seed=5)
    regions = [np.arange(5 + 30 * r, 35 + 30 * r) for r in range(4)]
    for region, districts in enumerate(regions, start=1):
        mean[region] = mean[districts].sum(axis=0) + 0.3
    mean[0] = mean[1:5].sum(axis=0)
    every = np.ones(cells, dtype=bool)
    families = [AreaFamily(0, np.arange(1, 5), every), *(AreaFamily(r + 1, d, every) for r, d in enumerate(regions))]
    estimates = estimates_of(mean, sums, 3000)
    estimates.high[5:] = np.ceil(mean[5:]) + 1
    rounder = Rounder(compile_sums(cells, sums, frozenset()), sums, estimates, families)
    assert rounder.settle_means().any()
    rounded = rounder.round()
    assert not rounder.left
    assert not rounder.apart
    for parent, children in [(0, range(1, 5)), *enumerate(regions, start=1)]:
        assert (rounded[parent] == sum(rounded[child] for child in children)).all()
    assert all((rounded[:, total] == rounded[:, list(parts)].sum(axis=1)).all() for total, parts in sums)
    assert (rounded >= estimates.low).all()
    assert (rounded <= estimates.high).all()


# -- whole tables -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated census of 80 small areas in larger ones, ages by sex, with its truth."""
    folder = tmp_path_factory.mktemp("census")
    unround.simulate(folder, areas=80, seed=4, format="tidy")
    return folder


def wide(counts: pl.DataFrame, value: str) -> dict[str, dict[tuple[str, str], int]]:
    """Return numbers by area, characteristic and sex."""
    found: dict[str, dict[tuple[str, str], int]] = {}
    for region, characteristic, sex, number in counts.select("region", "characteristic_id", "sex", value).iter_rows():
        found.setdefault(region, {})[characteristic, sex] = number
    return found


def off_in(areas: dict[str, dict[tuple[str, str], int]]) -> int:
    """Count the sums of ages by sex that do not hold, from the labels of the census alone."""
    off = 0
    groups = {"8": ("9", "13", "24"), "9": ("10", "11", "12"), "24": ("25", "26", "27", "28", "29")}
    groups["13"] = tuple(str(number) for number in range(14, 24))
    for counts in areas.values():
        for total, parts in groups.items():
            for sex in ("total", "men", "women"):
                off += counts[total, sex] != sum(counts[part, sex] for part in parts)
        for characteristic in {name for name, sex in counts if sex == "men"}:
            off += counts[characteristic, "total"] != counts[characteristic, "men"] + counts[characteristic, "women"]
    return off


@pytest.fixture(scope="module")
def reconciled(census: Path) -> run.Reconciled:
    made: run.Reconciled = unround.reconcile(census / "release.toml", truth=census / "truth.parquet")
    return made


def test_every_sum_holds_and_the_error_is_less(reconciled: run.Reconciled) -> None:
    counts, summary = reconciled.to_polars(), reconciled.summary
    assert counts.columns[:3] == ["region", "characteristic_id", "sex"]
    assert counts.columns[3:] == ["published", "reconciled", "mean", "standard_error", "low", "high", "method"]
    assert off_in(wide(counts, "published")) > 500
    assert off_in(wide(counts, "reconciled")) == 0
    assert summary["sums_off_before"] > 500
    assert summary["sums_off_after"] == 0
    assert summary["mean_error"] < 0.85 * summary["mean_error_published"]
    inside = counts.select((pl.col("reconciled") >= pl.col("low")) & (pl.col("reconciled") <= pl.col("high")))
    assert inside.to_series().all()
    exact = counts.filter(pl.col("method") == "published exactly")
    assert (exact["reconciled"] == exact["published"]).all()
    assert exact.height > 100


def test_areas_add_up_to_those_that_they_lie_in(reconciled: run.Reconciled) -> None:
    """By the codes alone: a district (CD) is the sum of its municipalities (CSD), which begin with its code."""
    areas = wide(reconciled.to_polars(), "reconciled")
    levels = {kind: {code[9:]: code for code in areas if code.startswith(kind)} for kind in ("2021A0003", "2021A0005")}
    assert levels["2021A0003"]
    for code, district in levels["2021A0003"].items():
        inside = [areas[one] for short, one in levels["2021A0005"].items() if short.startswith(code)]
        assert all(number == sum(one[cell] for one in inside) for cell, number in areas[district].items())


def test_errors_measured_here_are_those_of_the_summary(reconciled: run.Reconciled, census: Path) -> None:
    true = pl.read_parquet(census / "truth.parquet").with_columns(pl.col("characteristic_id").cast(pl.String))
    both = reconciled.to_polars().join(true, on=["region", "characteristic_id", "sex"])
    some = both.filter(pl.col("method").str.starts_with("posterior"))
    for name, key in (("published", "mean_error_published"), ("reconciled", "mean_error")):
        assert float((some[name] - some["true"]).abs().mean()) == pytest.approx(reconciled.summary[key])


@pytest.mark.parametrize("how", ["rounding:3", "gaussian:2", "laplace:1.45"])
def test_the_error_is_less_under_other_mechanisms(how: str, census: Path, tmp_path: Path) -> None:
    unround.protect(census / "truth.parquet", tmp_path, mechanism=how, seed=1, exact=["population"])
    summary = unround.reconcile(tmp_path / "release.toml", truth=census / "truth.parquet").summary
    assert summary["sums_off_after"] == 0
    assert summary["mean_error"] < 0.85 * summary["mean_error_published"]


WORLDS = ("households", "neighbourhoods", "one-even-part", "deep-tree")
MECHANISMS = ("rounding:3", "rounding:5", "cellkey:3,2", "laplace:1.45")


@pytest.mark.parametrize("world", WORLDS)
def test_the_error_is_less_in_worlds_that_no_prior_of_ours_assumes(world: str, tmp_path: Path) -> None:
    """Exact totals, four mechanisms; the model's own estimate is near what is measured. `make additive` has more."""
    for how in MECHANISMS:
        write_world(world, tmp_path / how, areas=150, seed=2, mechanism=how)
        paths = tmp_path / how / "release.toml", tmp_path / how / "truth.parquet"
        measured, summary = unround.reconcile(paths[0], truth=paths[1]).summary, unround.reconcile(paths[0]).summary
        assert measured["sums_off_after"] == 0
        gain = 0.05 if (world, how) in (("households", "rounding:5"), ("neighbourhoods", "cellkey:3,2")) else 0.1
        assert measured["mean_error"] < (1 - gain) * measured["mean_error_published"]
        assert summary["mean_error"] == pytest.approx(measured["mean_error"], rel=0.35)  # too high where households clump


def test_costs_of_likely_zeros_are_those_of_their_law() -> None:
    """Against the law itself: 0 with probability .7, else 1 and more, each further one half as likely."""
    counts = np.arange(60)
    law = np.where(counts == 0, 0.7, 0.3 * 0.5 ** np.maximum(counts, 1))
    mean = np.array([[(counts * law).sum()]])
    estimates = estimates_of(mean, (), 59)
    estimates.low += 3  # the same, from 3 on: zeros alone get the benefit of the doubt
    estimates.high += 3
    estimates.mean += 3
    estimates.least[:] = 0.7
    for shown in range(6):
        expected = (np.abs(shown - counts) * law).sum()
        assert estimates.errors(np.array([[3.0 + shown]]), [0])[0, 0] == pytest.approx(expected)
    assert Costs(estimates, np.array([0]), estimates.mean, np.array([True]), np.array([0])).of(np.array([[[3, 4]]]))[
        0, 0
    ] == pytest.approx([0.6, 0.3 + 0.7])


def test_means_add_up_and_multiples_of_a_base_do(census: Path) -> None:
    real = unround.reconcile(census / "release.toml", real=True).to_polars()
    counts = wide(real, "reconciled")
    assert any(number % 1 for number in real["reconciled"])
    for area in counts.values():
        assert area["8", "total"] == pytest.approx(area["8", "men"] + area["8", "women"], abs=1e-4)
    coarse = unround.reconcile(census / "release.toml", round=5).to_polars()
    assert (coarse["reconciled"] % 5 == 0).all()
    assert off_in(wide(coarse, "reconciled")) == 0


TABLE = "town,all,young,old\nAa,20,5,10\nBo,15,10,10\nCe,35,15,15\n"


def test_a_table_that_adds_up_is_returned_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "even.csv"
    path.write_text(TABLE.replace("20,5", "15,5").replace("15,10,10", "20,10,10").replace("35,15", "30,15"))
    made = unround.reconcile(path, tmp_path / "out", base=5)
    assert (tmp_path / "out" / "even.csv").read_bytes() == path.read_bytes()
    assert made.summary["sums_off_before"] == made.summary["changed"] == 0
    assert "adds up already" in str(made)


def test_a_clash_is_named_and_its_counts_are_left(tmp_path: Path) -> None:
    frame = pl.read_csv((TABLE + "Du,100,5,10\nEk,25,10,10\nFa,45,20,30\n").encode())
    sums = {"area": "town", "sums": {"all": ["young", "old"]}}
    made = unround.reconcile(frame, tmp_path / "out", describe=sums, base=5)
    counts = made.to_polars()
    clash = counts.filter(pl.col("town") == "Du")
    assert (clash["reconciled"] == clash["published"]).all()
    assert set(clash["method"]) == {"clash: as published"}
    assert made.summary["sums_off_after"] == 1
    assert made.summary["clashes"][0]["area"] == "Du"
    assert "100" in made.summary["clashes"][0]["text"]
    assert "No true counts fit in 1 place" in str(made)


def numbers_in(frame: pl.DataFrame) -> bool:
    """Return whether towns' totals are what their parts add up to."""
    return bool((frame["all"].cast(int) == frame["young"].cast(int) + frame["old"].cast(int)).all())


@pytest.mark.parametrize("end", ["\r", "\r\n"])
def test_line_ends_of_other_systems_stay(tmp_path: Path, end: str) -> None:
    (tmp_path / "towns.csv").write_bytes(f'"Towns, 5"" tall",,,\n{TABLE}'.replace("\n", end).encode())
    unround.reconcile(tmp_path / "towns.csv", tmp_path / "out", base=5)
    title, head, *lines, last = (tmp_path / "out" / "towns.csv").read_bytes().decode().split(end)
    assert (title, head, last) == ('"Towns, 5"" tall",,,', "town,all,young,old", "")
    assert numbers_in(pl.DataFrame([line.split(",") for line in lines], head.split(","), orient="row"))


def test_a_csv_keeps_everything_but_its_counts(tmp_path: Path) -> None:
    path = tmp_path / "towns.csv"
    path.write_text(TABLE)
    unround.reconcile(path, tmp_path / "out", base=5)
    lines = (tmp_path / "out" / "towns.csv").read_text().splitlines()
    assert lines[0] == "town,all,young,old"
    assert [line.split(",")[0] for line in lines[1:]] == ["Aa", "Bo", "Ce"]
    assert numbers_in(pl.read_csv(tmp_path / "out" / "towns.csv"))
    for kind in ("parquet", "xlsx"):
        made = unround.reconcile(path, tmp_path / kind, base=5, format=kind)
        assert made.summary["files"] == [f"towns.{kind}"]
        assert numbers_in(made.tables[f"towns.{kind}"])


def test_what_is_not_reconciled_stays_as_it_was(tmp_path: Path) -> None:
    rows = ["A,1040,518,509,13", "B,25,7,x,13", "C,31,11,9,11", "D,60,29,11,20"]
    text = "\n".join(["district,Total,young,middle,old", *rows, ""])
    (tmp_path / "draft.csv").write_text(text)
    unround.reconcile(tmp_path / "draft.csv", out=tmp_path / "out", base=3)
    assert ",x," in (tmp_path / "out" / "draft.csv").read_text()


def test_a_spreadsheet_keeps_its_titles_and_formats(tmp_path: Path) -> None:
    from xlsxwriter import Workbook

    path = tmp_path / "draft.xlsx"
    with Workbook(path) as book:
        sheet, bold = book.add_worksheet("People"), book.add_format({"bold": True})
        sheet.write(0, 0, "People by age")
        for row, line in enumerate(TABLE.splitlines(), start=2):
            for at, text in enumerate(line.split(",")):
                sheet.write(row, at, int(text) if text.isdigit() else text, bold)
    made = unround.reconcile(path, tmp_path / "out", base=5)
    assert numbers_in(made.tables["draft.xlsx"])
    names = [zipfile.ZipFile(one).namelist() for one in (path, tmp_path / "out" / "draft.xlsx")]
    assert names[0] == names[1]


@pytest.mark.parametrize("layout", ["statcan", "censusmapper"])
def test_known_formats_are_written_as_they_came(layout: str, tmp_path: Path) -> None:
    unround.simulate(tmp_path / "in", areas=40, seed=2, format=layout)
    path = next(one for one in (tmp_path / "in").iterdir() if one.suffix == ".csv" and "truth" not in one.name)
    made = unround.reconcile(path, tmp_path / "out")
    before, after = path.read_bytes(), (tmp_path / "out" / path.name).read_bytes()
    assert before != after
    digits = bytes.maketrans(b"0123456789", b"0" * 10)

    def without_numbers(text: bytes) -> list[bytes]:
        return [b",".join(b"" if part.isdigit() else part for part in line.split(b",")) for line in text.split(b"\n")]

    assert without_numbers(before.translate(digits)) == without_numbers(after.translate(digits))
    again = unround.reconcile(tmp_path / "out" / path.name)
    assert again.summary["sums_off_before"] == 0
    counts = {tuple(row[:3]): row[3] for row in made.to_polars().select(pl.nth(0, 1, 2), "reconciled").iter_rows()}
    read = {tuple(row[:3]): row[3] for row in again.to_polars().select(pl.nth(0, 1, 2), "published").iter_rows()}
    assert counts == read


def test_frames_come_back_as_frames() -> None:
    frame = pl.read_csv(TABLE.encode())
    for describe in (None, {"area": "town", "sums": {"all": ["young", "old"]}}):
        made = unround.reconcile(frame, describe=describe, base=5)
        (table,) = made.tables.values()
        assert table.columns == frame.columns
        assert table["town"].to_list() == ["Aa", "Bo", "Ce"]
        assert numbers_in(table)


def test_several_files_add_up_between_them(tmp_path: Path) -> None:
    """The same towns, their people by age in one file and by sex in another: both totals become one."""
    rng = np.random.default_rng(2)
    true = rng.integers(5, 60, (30, 2, 2))
    rounded = lambda counts: (counts // 5 + (rng.random(counts.shape) < counts % 5 / 5)) * 5  # noqa: E731
    names = [f"T{at:02}" for at in range(30)]
    for file, axis, parts in (("age", 2, ("young", "old")), ("sex", 1, ("men", "women"))):
        columns = {"town": names, "all": rounded(true.sum(axis=(1, 2)))}
        columns |= {name: rounded(true.sum(axis=axis)[:, at]) for at, name in enumerate(parts)}
        pl.DataFrame(columns).write_csv(tmp_path / f"{file}.csv")
    paths = [tmp_path / "age.csv", tmp_path / "sex.csv"]
    made = unround.reconcile(paths, tmp_path / "out", base=5)
    assert made.summary["sums_off_after"] == 0
    age, sex = (pl.read_csv(tmp_path / "out" / path.name) for path in paths)
    assert (age["all"] == sex["all"]).all()
    assert numbers_in(age)
    assert (sex["all"] == sex["men"] + sex["women"]).all()


def test_work_that_was_stopped_goes_on(census: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "block_size", lambda _: 20)
    asked = itertools.count()
    blocks: list[int] = []

    def stop(stage: str, done: int, _: int) -> None:
        if stage == "Estimating":
            blocks.append(done)
            if done and next(asked) == 0:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="kept"):
        unround.reconcile(census / "release.toml", tmp_path, progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == [".reconcile"]
    done = len(list((tmp_path / ".reconcile" / "blocks").iterdir()))
    assert done
    made: list[Any] = []
    estimate = run.Estimator.estimate
    monkeypatch.setattr(run.Estimator, "estimate", lambda self, *given: made.append(1) or estimate(self, *given))
    whole = unround.reconcile(census / "release.toml", tmp_path)
    assert whole.summary["sums_off_after"] == 0
    assert len(made) < len(blocks) + 10
    assert not (tmp_path / ".reconcile").exists()


@pytest.mark.parametrize("name", ["mean.bin", "active.bin", "blocks/0.json"])
def test_work_that_was_damaged_since_is_done_again(
    census: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(run, "block_size", lambda _: 20)

    def stop(stage: str, done: int, _: int) -> None:
        if stage == "Estimating" and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="kept"):
        unround.reconcile(census / "release.toml", tmp_path / "out", progress=stop)
    kept = tmp_path / "out" / ".reconcile" / name
    content = kept.read_bytes()
    kept.write_bytes(b"\x01\x01\x01" + content[3:] if name.endswith("bin") else content[:-9])
    again = unround.reconcile(census / "release.toml", tmp_path / "out").to_polars()
    assert again.equals(unround.reconcile(census / "release.toml", tmp_path / "whole").to_polars())


def test_multiples_have_a_limit() -> None:
    with pytest.raises(InputError, match="at least 2 and at most 1e"):
        unround.reconcile(pl.read_csv(TABLE.encode()), base=5, round=10**12)


def test_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "towns.csv").write_text(TABLE)
    done = CliRunner().invoke(
        app, ["reconcile", str(tmp_path / "towns.csv"), "-o", str(tmp_path / "out"), "--base=5", "--json"]
    )
    report = json.loads(done.stdout)
    kept = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert report == {key: value for key, value in kept.items() if key != "hashes"}  # by which a later run knows its files
    assert {"sums_off_before", "sums_off_after", "mean_error_published", "mean_error"} <= set(report)


def test_what_cannot_be_done_is_refused(tmp_path: Path) -> None:
    (tmp_path / "towns.csv").write_text(TABLE)
    with pytest.raises(InputError, match="exclude each other"):
        unround.reconcile(tmp_path / "towns.csv", real=True, round=5)
    with pytest.raises(InputError, match="input, csv, parquet or xlsx"):
        unround.reconcile(tmp_path / "towns.csv", format="pdf")
    with pytest.raises(InputError, match="would replace"):
        unround.reconcile(tmp_path / "towns.csv", tmp_path, base=5)


def test_a_table_that_is_gone_or_damaged_meanwhile_is_said_in_words(reconciled: run.Reconciled, tmp_path: Path) -> None:
    from starlette.testclient import TestClient

    from unround.web.reconciled import reconciled_app

    folder = Path(shutil.copytree(reconciled.folder, tmp_path / "folder"))
    asked = TestClient(reconciled_app(folder, frozenset({"localhost"})), base_url="http://localhost")
    assert asked.get("/").status_code == 200
    (folder / run.COUNTS).write_bytes(b"PAR1")
    for path in ("/", "/index.json", "/area/x", "/area/x.json"):
        answer = asked.get(path)
        assert (answer.status_code, "is gone, damaged, or being written anew" in answer.text) == (400, True)


def test_the_explorer_shows_published_reconciled_and_the_difference(reconciled: run.Reconciled) -> None:
    counts = reconciled.to_polars()
    area = counts["region"][0]
    status, page = unround.view(reconciled, f"/area/{area}")
    assert status == 200
    assert all(name in page.decode() for name in ("published", "reconciled", "difference", "not official counts"))
    report = json.loads(unround.view(reconciled, f"/area/{area}.json")[1])
    assert report == counts.filter(pl.col("region") == area).to_dicts()
    status, page = unround.view(reconciled, "/")
    assert status == 200
    assert area in page.decode()
    assert unround.view(reconciled, "/area/nowhere")[0] == 404
