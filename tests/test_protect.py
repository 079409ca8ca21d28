"""Protecting tables: controlled rounding, counts that add up again, what it costs, and the way from a file to a release."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.conftest import Run
from unround import protect, simulate
from unround.additive import systems
from unround.errors import InputError
from unround.job import audit
from unround.mechanisms import HIDDEN, Laplace, Rounding, Within
from unround.protection import ProtectionScore, parse_protection, publish_counts
from unround.protection.table import publish_in_steps
from unround.protection.walk import Loops, tableaux, walk
from unround.tables import read
from unround.tables.frames import from_frame

Sums = tuple[tuple[int, tuple[int, ...]], ...]


def crossed(tree: dict[int, tuple[int, ...]], nodes: int) -> Sums:
    """Return the sums of a tree crossed with sex: columns 3n, 3n + 1 and 3n + 2 are node n's total, men and women."""
    sums = [(3 * total + sex, tuple(3 * part + sex for part in parts)) for total, parts in tree.items() for sex in range(3)]
    return (*sums, *((3 * node, (3 * node + 1, 3 * node + 2)) for node in range(nodes)))


def counts_for(sums: Sums, columns: int, areas: int, seed: int) -> np.ndarray:
    """Return counts that add up: leaves are drawn, and totals follow."""
    rng = np.random.default_rng(seed)
    true = np.full((areas, columns), -1, dtype=np.int64)
    totals = {total for total, _ in sums}
    leaves = [column for column in range(columns) if column not in totals]
    true[:, leaves] = rng.negative_binomial(0.8, 0.1, size=(areas, len(leaves)))
    for _ in range(len(sums) + 1):
        for total, parts in sums:
            if (true[:, list(parts)] >= 0).all():
                true[:, total] = true[:, list(parts)].sum(axis=1)
    assert (true >= 0).all()
    assert adds_up(true, sums)
    return true


def adds_up(table: np.ndarray, sums: Sums) -> bool:
    return all((table[:, total] == table[:, list(parts)].sum(axis=1)).all() for total, parts in sums)


TREE: Sums = ((0, (1, 2, 3)), (1, (4, 5)), (3, (6, 7, 8, 9)))
AGE = crossed({0: (1, 2, 3), 1: (4, 5), 3: (6, 7, 8)}, 9)
SEVERAL = crossed({0: (1, 2), 1: (3, 4, 5)}, 6) + tuple(
    (sex, tuple(3 * part + sex for part in parts)) for parts in ((6, 7, 8), (9, 10)) for sex in range(3)
) + tuple((3 * node, (3 * node + 1, 3 * node + 2)) for node in range(6, 11))  # fmt: skip
SHAPES: dict[str, tuple[Sums, int]] = {
    "one sum": (((0, (1, 2)),), 3),
    "a tree": (TREE, 10),
    "a count shown twice": (((0, (1, 2)), (3, (0,)), (3, (4, 5, 6))), 7),
    "three partitions of one total": (((0, (1, 2)), (0, (3, 4, 5)), (0, (6, 7))), 8),
    "a two-way table": (crossed({0: (1, 2, 3)}, 4), 12),
    "a tree crossed with sex": (AGE, 27),
    "three trees crossed with sex under one total": (SEVERAL, 33),
    "no sum": ((), 4),
}
shapes = pytest.mark.parametrize("shape", SHAPES)


def made(shape: str, areas: int = 60, seed: int = 1) -> tuple[np.ndarray, Sums]:
    sums, columns = SHAPES[shape]
    if shape in ("three partitions of one total", "a count shown twice", "three trees crossed with sex under one total"):
        return shared(sums, columns, areas, seed), sums
    return counts_for(sums, columns, areas, seed), sums


def shared(sums: Sums, columns: int, areas: int, seed: int) -> np.ndarray:
    """Return counts where several sums share a total: each splits the same people anew."""
    rng = np.random.default_rng(seed)
    true = np.full((areas, columns), -1, dtype=np.int64)
    size = rng.integers(0, 60, size=areas)
    if columns == 33:  # people have a sex, and a place in each tree
        for area, people in enumerate(size):
            cells = np.zeros(columns, dtype=np.int64)
            for sex in rng.integers(1, 3, size=people):
                for node in (
                    0,
                    *((1, rng.integers(3, 6)) if rng.random() < 0.6 else (2,)),
                    rng.integers(6, 9),
                    rng.integers(9, 11),
                ):
                    cells[3 * node] += 1
                    cells[3 * node + sex] += 1
            true[area] = cells
    else:
        copies = {part: total for total, parts in sums if len(parts) == 1 for part in parts}
        for total, parts in sums:
            if len(parts) > 1:
                true[:, list(parts)] = np.array([rng.multinomial(n, np.full(len(parts), 1 / len(parts))) for n in size])
                true[:, total] = size
        for part, total in copies.items():
            true[:, part] = true[:, total] = size
    assert (true >= 0).all()
    assert adds_up(true, sums)
    return true


# --- Controlled rounding -----------------------------------------------------------------------------------


@shapes
@pytest.mark.parametrize("base", [2, 3, 5, 10])
def test_controlled_rounding_keeps_every_sum_and_goes_to_neighbours(shape: str, base: int) -> None:
    true, sums = made(shape)
    published = publish_counts(true, parse_protection(f"controlled:{base}"), sums, np.random.default_rng(3))
    assert adds_up(published, sums)
    assert (published % base == 0).all()
    assert (np.abs(published - true) < base).all()
    assert (published[true % base == 0] == true[true % base == 0]).all(), "a multiple stays what it is"


@shapes
def test_controlled_rounding_is_unbiased_in_every_cell(shape: str) -> None:
    area, sums = made(shape, areas=1, seed=6)
    draws = 8000
    published = publish_counts(
        np.repeat(area, draws, axis=0), parse_protection("controlled:5"), sums, np.random.default_rng(5)
    )
    up = (published > area).mean(axis=0)
    p = (area[0] % 5) / 5
    assert (np.abs(up - p) <= 4.5 * np.sqrt(p * (1 - p) / draws)).all()


def test_controlled_rounding_is_not_one_draw_for_all() -> None:
    """One random number for all counts, as in systematic sampling, would leave five outcomes."""
    area, sums = made("a tree crossed with sex", areas=1, seed=2)
    published = publish_counts(
        np.repeat(area, 4000, axis=0), parse_protection("controlled:5"), sums, np.random.default_rng(5)
    )
    _, times = np.unique(published, axis=0, return_counts=True)
    assert len(times) > 35
    assert times.max() < 0.15 * 4000


def test_the_same_seed_publishes_the_same_table() -> None:
    true, sums = made("a tree crossed with sex", areas=3000)  # more than one helping of random words
    how = parse_protection("controlled:5")
    tables = [publish_counts(true, how, sums, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert np.array_equal(tables[0], tables[1])
    assert not np.array_equal(tables[0], tables[2])
    assert adds_up(tables[2], sums)


def test_sums_that_lack_a_count_or_do_not_hold_are_not_kept_up_there() -> None:
    true, sums = made("a tree")
    true[3, 4] = -7  # does not exist
    true[5, 0] += 1  # does not add up
    published = publish_counts(true, parse_protection("controlled:5"), sums, np.random.default_rng(3))
    assert published[3, 4] == HIDDEN
    others = [area for area in range(len(true)) if area not in (3, 5)]
    assert adds_up(published[others], sums)
    assert adds_up(published[[3]], (sums[0], sums[2]))
    assert adds_up(published[[5]], sums[1:])
    shown = published != HIDDEN
    assert (np.abs(published - true)[shown] < 5).all()


def test_an_exact_total_is_a_neighbour_of_what_its_parts_come_to() -> None:
    true, sums = made("a tree crossed with sex")
    published = publish_counts(true, parse_protection("controlled:5"), sums, np.random.default_rng(3), exact=frozenset([0]))
    assert np.array_equal(published[:, 0], true[:, 0])
    assert (published[:, 0] % 5 != 0).any()
    assert (np.abs(published[:, 0] - published[:, [3, 6, 9]].sum(axis=1)) < 5).all()
    assert adds_up(published, tuple(sum_ for sum_ in sums if 0 not in (sum_[0], *sum_[1])))


LOOPS: Sums = ((0, (3, 4)), (1, (4, 5)), (2, (3, 5)), (6, (0, 1, 2)))
"""Every two of three counts, and all three pairs: with all of 3, 4, 5 halfway, nothing can be rounded alone."""


def test_loops_that_controlled_rounding_cannot_keep_up_are_refused_and_noise_is_made_to_add_up() -> None:
    true = counts_for(LOOPS, 7, 40, 1)
    with pytest.raises(InputError, match="controlled rounding cannot preserve these sums: they form loops"):
        publish_counts(true, parse_protection("controlled:5"), LOOPS, np.random.default_rng(3))
    assert adds_up(
        publish_counts(true, parse_protection("laplace:1.45"), LOOPS, np.random.default_rng(3), additive=True), LOOPS
    )


def test_a_walk_that_cannot_arrive_says_so() -> None:
    pieces = tableaux(3, ((0, (1, 2)),))
    cells = np.array([[1, 0, 0]])  # total and parts do not add up: there is no way
    with pytest.raises(Loops):
        walk(cells, 5, pieces, np.random.default_rng(0))


def test_protections_by_name() -> None:
    how = parse_protection("controlled")
    assert (how.name, how.base, how.controlled) == ("controlled:5", 5, True)
    assert how.mechanism == Rounding(5)
    assert "every published total is the sum of its published parts" in how.sentence
    assert parse_protection("laplace:1.45").mechanism == Laplace(1.45)
    for spec, said in (
        ("controlled:x", r"^controlled needs a base, such as controlled:5; not 'x'\.$"),
        ("controlled:0", "must be at least 1"),
        ("contolled:5", r"there is no mechanism 'contolled'.*transition, controlled, keyed, alike\.$"),
        ("laplace:much", "laplace needs a scale"),
    ):
        with pytest.raises(InputError, match=said):
            parse_protection(spec)


def test_what_readers_are_told() -> None:
    def told(spec: str, clamp: bool = False, add: bool = False) -> str:
        return parse_protection(spec).declared(clamp=clamp, additive=add, farthest=7).name

    assert told("laplace:1.45") == "laplace:1.45"
    assert told("laplace:1.45", clamp=True) == "laplace:1.45,clamped"
    assert told("gaussian:2", clamp=True, add=True) == "gaussian:2,clamped"
    assert told("rounding:5", clamp=True) == "rounding:5"
    assert told("rounding:5", add=True) == Within(7).name
    assert told("controlled:3", add=True) == "rounding:3"


# --- Counts that add up again --------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [name for name in SHAPES if name != "no sum"])
@pytest.mark.parametrize("spec", ["laplace:1.45", "gaussian:3", "rounding:5"])
@pytest.mark.parametrize("clamp", [False, True])
def test_additive_tables_add_up(shape: str, spec: str, clamp: bool) -> None:
    true, sums = made(shape)
    steps = dict(publish_in_steps(true, parse_protection(spec), sums, np.random.default_rng(3), clamp=clamp, additive=True))
    *_, before, after = steps.values()
    assert adds_up(after, sums)
    assert not adds_up(before, sums)
    if clamp or spec == "rounding:5":
        assert (after >= 0).all()
    else:
        assert np.abs((after - true).mean()) < 0.5
    assert np.sqrt(((after - true) ** 2).mean()) < np.sqrt(((before - true) ** 2).mean())


def test_additive_leaves_exact_columns_alone() -> None:
    true, sums = made("a tree crossed with sex")
    published = publish_counts(
        true,
        parse_protection("laplace:2"),
        sums,
        np.random.default_rng(3),
        exact=frozenset([0, 4]),
        additive=True,
        clamp=True,
    )
    assert np.array_equal(published[:, [0, 4]], true[:, [0, 4]])
    assert adds_up(published, sums)
    assert (published >= 0).all()


def test_additive_is_as_near_as_can_be() -> None:
    """Beside the nearest whole numbers of all, by trying every one around: no more than a little farther."""
    sums: Sums = ((0, (1, 2)), (3, (4, 5)), (6, (0, 3)))
    true = counts_for(sums, 7, 40, 2) + 20
    true[:, [0, 3, 6]] = 0
    for total, parts in sums:
        true[:, total] = true[:, list(parts)].sum(axis=1)
    steps = dict(publish_in_steps(true, parse_protection("gaussian:2"), sums, np.random.default_rng(3), additive=True))
    noisy, found = steps["gaussian:2"], steps["made to add up"]
    leaves = np.array(list(itertools.product(range(-4, 5), repeat=4)))
    farther = []
    for area in range(len(true)):
        around = found[area, [1, 2, 4, 5]] + leaves
        first, second = around[:, 0] + around[:, 1], around[:, 2] + around[:, 3]
        tried = np.column_stack([first, around[:, :2], second, around[:, 2:], first + second])
        farther.append(((found[area] - noisy[area]) ** 2).sum() - ((tried - noisy[area]) ** 2).sum(axis=1).min())
    assert min(farther) == 0
    assert np.mean(farther) < 0.5


def test_what_ends_below_zero_is_put_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "_ROUNDS", 1)  # stop long before nothing is negative
    true, sums = made("a tree crossed with sex", areas=30)
    published = publish_counts(
        true, parse_protection("laplace:3"), sums, np.random.default_rng(3), clamp=True, additive=True
    )
    assert adds_up(published, sums)
    assert (published >= 0).all()


def test_additive_where_counts_are_hidden() -> None:
    true, sums = made("a tree")
    published = publish_counts(
        true, parse_protection("suppressed:1..3,rounding:5"), sums, np.random.default_rng(3), additive=True
    )
    assert (published == HIDDEN).any()
    whole = (published != HIDDEN).all(axis=1)
    assert whole.any()
    assert adds_up(published[whole], sums)


# --- What it costs ----------------------------------------------------------------------------------------------


def test_the_score_of_a_small_table() -> None:
    true = np.array([[10, 4, 6], [9, 9, -1], [7, 7, 0]])
    published = np.array([[10, 9, 5], [HIDDEN, 4, HIDDEN], [6, 9, -1]])
    score = ProtectionScore()
    score.add(published, true, ((0, (1, 2)),), exact=frozenset([0]))
    report = score.to_json()
    assert report["counts"] == 5
    assert report["mean_error"] == (5 + 1 + 5 + 2 + 1) / 5
    assert report["rmse"] == pytest.approx(np.sqrt((25 + 1 + 25 + 4 + 1) / 5))
    assert report["within_4"] == 3 / 5
    assert report["bias"] == (5 - 1 - 5 + 2 - 1) / 5
    assert report["small_bias"] == (5 - 1) / 2
    assert (report["largest_error"], report["negative"], report["hidden"]) == (5, 1, 0)
    assert (report["sums"], report["sums_off"], report["mean_gap"]) == (2, 1.0, 3.0)
    assert ProtectionScore().to_json()["rmse"] is None


def test_clamping_leans_upwards_and_noise_does_not() -> None:
    true, sums = made("a tree crossed with sex", areas=2000)
    scores = {}
    for name, table in publish_in_steps(true, parse_protection("laplace:1.45"), sums, np.random.default_rng(3), clamp=True):
        scores[name] = ProtectionScore()
        scores[name].add(table, true, sums)
    free, clamped = scores["laplace:1.45"], scores["negative as 0"]
    assert free.negative > 0 == clamped.negative
    assert free.small_bias == pytest.approx(0, abs=0.05)
    assert clamped.small_bias is not None
    assert clamped.small_bias > 0.2
    assert free.within_4 == pytest.approx(0.9576, abs=0.005)


# --- From a file to a release --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("census")
    simulate(folder, areas=150, seed=3, format="tidy")
    return folder


def test_a_release_that_audits_as_declared(census: Path, tmp_path: Path) -> None:
    """No proved claim is wrong, noise proves nothing, and of controlled rounding no sum is used."""
    truth = read(census / "truth.parquet")
    kept = {}
    for spec in ("rounding:5", "laplace:1.45", "controlled:5"):
        out = tmp_path / spec.partition(":")[0]
        made = protect(truth, out, spec, seed=7)
        assert made.sums == 42
        folder = audit(read(made.table), tmp_path / "audit", truth=read(census / "truth.parquet"))
        summary = folder.summary
        assert summary["truth"]["wrong"]["proved"] == summary["truth"]["outside_bounds"] == 0
        assert summary["contradictions"] == 0
        assert not [note for note in summary["notes"] if "cannot come from" in note]
        kept[spec] = summary["structure"]["sums_kept"], summary["structure"]["sums_added_up_afterwards"]
        if spec == "laplace:1.45":
            assert summary["proved"] == 0
            assert summary["areas_not_weighed"] > 100
            wrong, likely = summary["truth"]["wrong"]["likely"], summary["truth"]["checked"]["likely"]
            assert wrong <= 0.34 * max(likely, 1) + 5
        if spec == "rounding:5":
            assert summary["likely"] > 50
    assert kept["rounding:5"] == kept["laplace:1.45"] == (42, 0)
    used, unused = kept["controlled:5"]
    assert used <= 5
    assert unused >= 36


def test_the_release_holds_what_was_published(census: Path, tmp_path: Path) -> None:
    truth = read(census / "truth.parquet")
    made = protect(truth, tmp_path / "a", "laplace:1.45", seed=7, exact=("population", "dwellings"), clamp=True)
    assert made.exact == ("1", "2", "4", "5")
    assert made.declared == "laplace:1.45,clamped"
    release = read(made.table)
    assert [column.key for column in release.columns] == [column.key for column in truth.columns]
    exact = {column.key for column in release.columns if column.mechanism is not None and column.mechanism.name == "exact"}
    assert exact == set(made.exact)
    assert release.columns[0].label.startswith("Population")
    table, true = pl.read_parquet(made.table), pl.read_parquet(census / "truth.parquet")
    both = true.with_columns(pl.col("characteristic_id").cast(pl.String)).join(
        table, on=["region", "characteristic_id", "sex"], validate="1:1"
    )
    assert both.height == true.height == table.height
    noise = both.filter(~pl.col("characteristic_id").is_in(["1", "2", "4", "5"]))
    last = made.steps["negative as 0"]
    assert last.counts == noise.height
    assert last.distance == (noise["published"] - noise["true"]).abs().sum()
    assert (both.filter(pl.col("characteristic_id") == "1").select(pl.col("true") == pl.col("published")).to_series()).all()
    note = made.note.read_text(encoding="utf-8")
    for said in ("not to be published", "laplace:1.45", "seed 7", "1, 2, 4, 5", "negative as 0", "mean error"):
        assert said in note
    again = protect(truth, tmp_path / "b", "laplace:1.45", seed=7, exact=("population", "dwellings"), clamp=True)
    assert pl.read_parquet(again.table).equals(table)


def test_without_a_seed_the_system_deals(census: Path, tmp_path: Path) -> None:
    truth = read(census / "truth.parquet")
    one, other = (protect(truth, tmp_path / name, "rounding:5") for name in "ab")
    assert not pl.read_parquet(one.table).equals(pl.read_parquet(other.table))
    assert "operating system's cryptographic generator" in one.note.read_text(encoding="utf-8")
    assert one.to_json()["seed"] is None


def test_tables_of_other_axes_and_hidden_counts(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    young, old = rng.integers(0, 40, size=(2, 80))
    frame = pl.DataFrame({"town": [f"T{n}" for n in range(80)], "all": young + old, "young": young, "old": old})
    truth = from_frame(frame, area="town", sums={"all": ["young", "old"]})
    made = protect(truth, tmp_path / "out", "suppressed:1..4,nearest:5", seed=1, exact=("all",))
    assert made.steps["suppressed:1..4,nearest:5"].hidden == int(((frame["young"] > 0) & (frame["young"] < 5)).sum()) + int(
        ((frame["old"] > 0) & (frame["old"] < 5)).sum()
    )
    release = read(made.table)
    assert release.areas == truth.areas
    assert [column.key for column in release.columns] == [column.key for column in truth.columns]
    assert len(release.proposals) == 1
    folder = audit(release, tmp_path / "audit", truth=truth)
    assert folder.summary["truth"]["wrong"]["proved"] == 0
    assert folder.summary["proved"] > 0


def test_doubtful_truths_are_called_so(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    young, old = 5 * rng.integers(0, 40, size=(2, 80))
    frame = pl.DataFrame({"town": [f"T{n}" for n in range(80)], "all": young + old, "young": young, "old": old})
    truth = from_frame(frame, area="town", sums={"all": ["young", "old"]}, mechanism="rounding:5")
    made = protect(truth, tmp_path / "out", "controlled:5", seed=1, exact=("all",), clamp=True, additive=True)
    notes = " ".join(made.notes)
    for said in (
        "the file declares its counts as rounding:5",
        "100.0% of the counts are multiples of 5",
        "--additive does nothing here",
        "--clamp does nothing here",
        "1 sum contains an unrounded count and cannot add up",
    ):
        assert said in notes


def test_what_is_refused(census: Path, tmp_path: Path) -> None:
    truth = read(census / "truth.parquet")
    choices: dict[str, Any]
    for choices, said in (
        ({"seed": -1}, "seed must be at least 0, not -1"),
        ({"seed": 1, "exact": ("populatoin",)}, "--exact populatoin: there is no such column"),
        ({"seed": 1, "exact": ("total,men,women",)}, "--exact names every column"),
    ):
        with pytest.raises(InputError, match=said):
            protect(truth, tmp_path / "out", "rounding:5", **choices)
        assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match=r"already contains release\.parquet and release\.toml, but no PROTECTED\.txt"):
        protect(truth, census, "rounding:5", seed=1)
    frame = pl.DataFrame({"town": ["A", "B"], "young": [3, 4], "old": [5, 9]})
    for choices, who in (
        ({"mechanism": "controlled:5"}, "controlled:5"),
        ({"mechanism": "rounding:5", "additive": True}, "--additive"),
    ):
        with pytest.raises(InputError, match=f"no sum holds in the frame, so {who} has nothing to preserve"):
            protect(from_frame(frame, area="town"), tmp_path / "out", **choices)
    assert sorted(path.name for path in census.iterdir()) == [
        "SIMULATED.txt", "release.parquet", "release.toml", "truth.parquet"
    ]  # fmt: skip


def test_an_older_table_of_ours_is_replaced(census: Path, tmp_path: Path) -> None:
    truth = read(census / "truth.parquet")
    protect(truth, tmp_path, "rounding:5", seed=1)
    protect(truth, tmp_path, "controlled:3", seed=1)
    assert 'default = "rounding:3"' in (tmp_path / "release.toml").read_text(encoding="utf-8")
    assert len(list(tmp_path.iterdir())) == 3


# --- The command line ----------------------------------------------------------------------------------------------


def test_the_command(run: Run, census: Path, tmp_path: Path) -> None:
    arguments = ("protect", str(census / "truth.parquet"), "-o", str(tmp_path / "out"), "--mechanism", "laplace:1.45")
    ran = run(*arguments, "--seed", "7", "--clamp", "--additive", "--exact", "population", "--exact", "dwellings")
    assert (ran.code, ran.err) == (0, "")
    for said in ("4 of them unrounded (1, 2, 4, 5)", "mean error", "made to add up", "0.0%", "seed 7", "PROTECTED.txt"):
        assert said in ran.out
    report = json.loads(run(*arguments, "--json").out)
    assert report["seed"] is None
    assert report["mechanism"] == report["declared"] == "laplace:1.45"
    assert [step["step"] for step in report["steps"]] == ["laplace:1.45"]
    assert report["steps"][0]["within_4"] == pytest.approx(0.9576, abs=0.01)
    ran = run(*arguments[:-1], "lapalce:1")
    assert ran.code == 2
    assert "Did you mean laplace?" in ran.err


def test_a_table_in_which_all_sums_were_added_up_is_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    young, old = 5 * rng.integers(0, 40, size=(2, 80))
    frame = pl.DataFrame({"town": [f"T{n}" for n in range(80)], "all": young + old, "young": young, "old": old})
    release = from_frame(frame, area="town", sums={"all": ["young", "old"]}, mechanism="rounding:5")
    with pytest.raises(InputError, match="all its sums add up exactly in all areas"):
        audit(release, tmp_path / "audit")
