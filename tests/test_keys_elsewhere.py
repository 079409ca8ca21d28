"""Rounding by keys where tables are protected and compared: keys add up, follow from the seed, and repeats tell or not."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import unround
from unround.comparison import Material, compare, practice, simulated, what_if
from unround.comparison.practice import repeated
from unround.errors import InputError
from unround.evidence.block import WindowTable
from unround.evidence.keys import OWN, Keyed, KeyedRepeat, keyed_evidence
from unround.mechanisms import Laplace, Rounding
from unround.protection.keys import ONE, CellKeys, constants_of, hashed, shifted
from unround.protection.table import by_keys, parse_protection, publish_counts
from unround.release import Column

SEED = 7


def names(count: int) -> list[str]:
    return [f"area {at}" for at in range(count)]


@pytest.fixture(scope="module")
def ages() -> Material:
    return simulated(400, 3, "age")


def keys_of(material: Material, secret: int = SEED, areas: list[str] | None = None) -> tuple[np.ndarray, np.ndarray]:
    true = material.true.astype(np.int64)
    cells = CellKeys(tuple(column.key for column in material.columns), material.equations, secret)
    return true, cells.of(areas or names(len(true)), true)


# -- keys of cells -----------------------------------------------------------------------------------------------------


def test_keys_add_up_wherever_counts_do(ages: Material) -> None:
    true, keys = keys_of(ages)
    for total, parts in ages.equations:
        assert (keys[:, total] == keys[:, list(parts)].sum(1)).all()
    assert (keys[true == 0] == 0).all()
    assert (keys[true > 0] != 0).all()
    shares = np.histogram(keys[true > 0] / ONE, 10, (0, 1))[0] / (true > 0).sum()
    assert np.abs(shares - 0.1).max() < 0.01


def test_keys_follow_from_the_secret_and_the_names(ages: Material) -> None:
    _, keys = keys_of(ages)
    assert (keys_of(ages)[1] == keys).all()
    assert (keys_of(ages, SEED + 1)[1] != keys).mean() > 0.7
    # Neither the order of areas nor the company they are in matters.
    cells = CellKeys(tuple(column.key for column in ages.columns), ages.equations, SEED)
    few = np.array([11, 5, 300])
    assert (cells.of([f"area {at}" for at in few], ages.true[few].astype(np.int64)) == keys[few]).all()
    # The same total in another table has the same key.
    other = CellKeys(("8", "A", "B"), ((0, (1, 2)),), SEED)
    total = ages.true[:, [column.key for column in ages.columns].index("8")].astype(np.int64)
    counts = np.stack([total, total // 3, total - total // 3], axis=1)
    mine = CellKeys(("8", "C", "D"), ((0, (1, 2)),), SEED)
    assert (other.of(names(len(total)), counts)[:, 0] == mine.of(names(len(total)), counts)[:, 0]).all()


def test_empty_parts_leave_the_key_to_the_others() -> None:
    sums = ((0, (1, 2)), (0, (3, 4)), (0, (5,)))
    true = np.array([[7, 7, 0, 0, 7, 7], [7, 3, 4, 7, 0, 7], [0, 0, 0, 0, 0, 0], [7, 3, 4, 2, 5, 7]])
    keys = CellKeys(tuple("abcdef"), sums, 1).of(names(4), true)
    assert keys[0, 0] == keys[0, 1] == keys[0, 4] == keys[0, 5] != 0
    assert keys[0, 2] == keys[0, 3] == 0
    assert (keys[2] == 0).all()
    for total, parts in sums:
        assert (keys[:, total] == keys[:, list(parts)].sum(1)).all()


def test_sums_that_do_not_hold_are_not_kept_up() -> None:
    true = np.array([[7, 3, 5], [8, 3, 5], [-1, 3, 5]])
    keys = CellKeys(("a", "b", "c"), ((0, (1, 2)),), 1).of(names(3), true)
    holds = keys[:, 0] == keys[:, 1] + keys[:, 2]
    assert holds.tolist() == [False, True, False]
    assert keys[2, 0] == 0


def test_a_cube_with_all_its_margins() -> None:
    """Parts cannot follow from margins here; margins follow from parts."""
    cells = [(i, j, k) for i in range(3) for j in range(3) for k in range(3)]
    at = {cell: place for place, cell in enumerate(cells)}
    sums, column = [], len(cells)
    true = list(np.random.default_rng(0).integers(1, 9, len(cells)))
    for axis in range(3):
        for fixed in {tuple(v for a, v in enumerate(cell) if a != axis) for cell in cells}:
            parts = tuple(at[c] for c in cells if tuple(v for a, v in enumerate(c) if a != axis) == fixed)
            sums.append((column, parts))
            true.append(sum(true[part] for part in parts))
            column += 1
    order = [*range(len(cells), column), *range(len(cells))]  # margins come first in the table
    place = {old: new for new, old in enumerate(order)}
    moved = tuple((place[total], tuple(place[part] for part in parts)) for total, parts in sums)
    keys = CellKeys(tuple(map(str, range(column))), moved, 1).of(["a"], np.array([true])[:, order])
    assert all(keys[0, total] == keys[0, list(parts)].sum() for total, parts in moved)
    assert (keys != 0).all()


def test_loops_are_refused() -> None:
    with pytest.raises(InputError, match="keys cannot be made to add up"):
        CellKeys(("x", "a", "b", "c"), ((0, (1, 2)), (0, (2, 3)), (0, (1, 3))), 1).of(["a"], np.array([[6, 3, 3, 3]]))


def test_residuals_come_out_as_keys_imply() -> None:
    """Shares of |total − men − women| = 0, 5, 10 in large counts, for c = 0 and 0.3 (see DESIGN: keys)."""
    rng = np.random.default_rng(2)
    parts = rng.integers(50, 500, (60_000, 2))
    true = np.column_stack([parts.sum(1), parts])
    cells = CellKeys(("t", "m", "w"), ((0, (1, 2)),), 5)
    for constant, expected in ((0.0, (0.520, 0.480, 0.0)), (0.7, (0.575, 0.407, 0.0184))):
        numbers = shifted(cells.of(names(len(true)), true), ["", "", ""], {"": constant})
        published = publish_counts(true, parse_protection("keyed:5"), ((0, (1, 2)),), rng, numbers=numbers)
        off = np.abs(published[:, 0] - published[:, 1:].sum(1)) // 5
        assert np.bincount(off, minlength=3) / len(true) == pytest.approx(expected, abs=0.008)


def test_hashes_of_names_differ_by_kind_and_secret() -> None:
    assert len({int(hashed(s, kind, ["a"])[0]) for s in (1, 2) for kind in ("area", "column", "table")}) == 6


# -- protect -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unround.simulate(tmp_path_factory.mktemp("truth"), areas=120, seed=5, rows="short", format="tidy").truth


def published(folder: Path) -> pl.DataFrame:
    return pl.read_parquet(folder / "release.parquet")


def of_row(table: pl.DataFrame, row: int, sex: str = "total") -> pl.Series:
    mine = table.filter(pl.col("characteristic_id").cast(pl.String) == str(row), pl.col("sex") == sex)
    return mine.sort("region")["published"]


def test_a_seed_publishes_the_same_table_again(truth: Path, tmp_path: Path) -> None:
    made = [unround.protect(truth, tmp_path / name, "rounding:5", keys=True, seed=SEED) for name in "ab"]
    assert published(tmp_path / "a").equals(published(tmp_path / "b"))
    unround.protect(truth, tmp_path / "c", "rounding:5", keys=True, seed=SEED + 1)
    assert not published(tmp_path / "a").equals(published(tmp_path / "c"))
    report = made[0].to_json()
    assert (report["mechanism"], report["declared"], report["keys"]) == ("keyed:5", "rounding:5", "keyed")
    assert set(report["constants"]) >= {"8", "58", "383", "388"}
    assert "constant 383 " in made[0].note.read_text()
    assert json.loads(json.dumps(report)) == report


def test_repeats_are_alike_only_without_constants(truth: Path, tmp_path: Path) -> None:
    unround.protect(truth, tmp_path / "alike", "alike:5", seed=SEED)
    unround.protect(truth, tmp_path / "keyed", "keyed:5", seed=SEED)
    alike, keyed = published(tmp_path / "alike"), published(tmp_path / "keyed")
    for one, other in pairwise((383, 388, 393, 724)):
        assert of_row(alike, one).equals(of_row(alike, other))
        assert not of_row(keyed, one).equals(of_row(keyed, other))


def test_a_constant_of_ones_own(truth: Path, tmp_path: Path) -> None:
    made = unround.protect(truth, tmp_path / "one", "rounding:5", keys=True, constant=0.25, seed=SEED)
    assert set(made.constants.values()) == {0.25}
    assert of_row(published(tmp_path / "one"), 383).equals(of_row(published(tmp_path / "one"), 388))


def test_areas_within_areas_have_the_keys_of_what_is_in_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    # One child: the same records, so the same numbers. Two children: their keys add up.
    small = rng.integers(20, 90, (300, 2))
    lines: list[tuple[str, str | None, str, int]] = []
    for at, (men, women) in enumerate(small.tolist()):
        counts = {"men": men, "women": women, "total": men + women}
        for sex, count in counts.items():
            lines.append((f"c{at:03}", f"p{at // 2 if at < 200 else at:03}", sex, count))
    for parent in [*range(100), *range(200, 300)]:
        inside = small[2 * parent : 2 * parent + 2] if parent < 100 else small[parent : parent + 1]
        men, women = inside.sum(0).tolist()
        lines += [(f"p{parent:03}", None, sex, n) for sex, n in (("men", men), ("women", women), ("total", men + women))]
    frame = pl.DataFrame(lines, schema=["region", "parent", "sex", "true"], orient="row")
    frame.write_csv(tmp_path / "truth.csv")
    (tmp_path / "truth.toml").write_text(
        'format = "tidy"\ndata = "truth.csv"\nvalue = "true"\n[axes.region]\nparent = "parent"\n[axes.sex]\n'
        'sums = [{ total = "total", parts = ["men", "women"] }]\n'
    )
    unround.protect(tmp_path / "truth.toml", tmp_path / "out", "keyed:5", seed=SEED)
    shown = {(r, s): n for r, s, n in published(tmp_path / "out").select("region", "sex", "published").iter_rows()}
    for at in range(200, 300):
        assert [shown[f"c{at}", sex] for sex in ("total", "men", "women")] == [
            shown[f"p{at}", sex] for sex in ("total", "men", "women")
        ]
    # Constant s for two parts: c = −s, and |r| = 10 is then impossible for s = 0, among areas as well.
    unround.protect(tmp_path / "truth.toml", tmp_path / "zero", "alike:5", seed=SEED)
    shown = {(r, s): n for r, s, n in published(tmp_path / "zero").select("region", "sex", "published").iter_rows()}
    off = [
        abs(shown[f"p{at:03}", sex] - shown[f"c{2 * at:03}", sex] - shown[f"c{2 * at + 1:03}", sex])
        for at in range(100)
        for sex in ("total", "men", "women")
    ]
    assert set(off) == {0, 5}


def test_sums_of_keys_from_records(tmp_path: Path) -> None:
    """Whoever has the records publishes what they themselves would: here the census that the keys belong to."""
    made = unround.simulate(tmp_path / "c", areas=60, seed=2, rows="age", format="tidy", keys=True, constant=0.31)
    exact = ("population", "dwellings")
    given = unround.protect(
        made.truth, tmp_path / "out", "keyed:5", key_sums=made.truth, constant=0.31, exact=exact, seed=SEED
    )
    on = ["region", "characteristic_id", "sex"]
    both = pl.read_parquet(tmp_path / "c" / "release.parquet").cast({"characteristic_id": pl.String})
    both = both.join(published(given.table.parent).cast({"characteristic_id": pl.String}), on=on, suffix="_mine")
    both = both.drop_nulls("published")  # small areas are hidden in the census
    assert both.height > 4000
    assert (both["published"] == both["published_mine"]).all()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("region,sex,key\na,total,0.5\n", "has no key for 2 counts of the table, such as those of men"),
        ("region,sex\na,total\n", "has no column key"),
        ("area,sex,key\na,total,0.5\n", "has no column region"),
        ("region,sex,key\na,total,much\n", "must hold numbers"),
        ("region,sex,key\na,total,inf\n", "must hold finite numbers"),
        (None, "sums of keys cannot be read: there is no file"),
    ],
)
def test_sums_of_keys_that_will_not_do(tmp_path: Path, lines: str | None, said: str) -> None:
    rows = [("a", "total", 7), ("a", "men", 3), ("a", "women", 4)]
    frame = pl.DataFrame(rows, schema=["region", "sex", "true"], orient="row")
    if lines is not None:
        (tmp_path / "keys.csv").write_text(lines)
    frame.write_csv(tmp_path / "truth.csv")
    about = 'format = "tidy"\ndata = "truth.csv"\nvalue = "true"\n[axes.region]\n[axes.sex]\n'
    (tmp_path / "truth.toml").write_text(about)
    with pytest.raises(InputError, match=said):
        unround.protect(tmp_path / "truth.toml", tmp_path / "out", "keyed:5", key_sums=tmp_path / "keys.csv")
    assert not (tmp_path / "out").exists()


def test_sums_of_keys_are_no_device(truth: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="sums of keys cannot be read: /dev/zero is a pipe or a device"):
        unround.protect(truth, tmp_path / "out", "keyed:5", key_sums="/dev/zero")


@pytest.mark.parametrize(
    ("mechanism", "options", "said"),
    [
        ("rounding:5", {"key_sums": "keys.csv"}, "rounding:5 uses none"),
        ("laplace:1.45", {"keys": True}, "keys decide how each count is rounded or changed at random"),
        ("controlled:5", {"keys": True}, "controlled:5 does not do that"),
        ("nearest:5", {"keys": True}, "nearest:5 does not do that"),
        ("rounding:5", {"constant": 0.5}, "rounding:5 uses none"),
        ("keyed:5", {"constant": 1.5}, "at least 0 and at most 1, not 1.5"),
        ("keyed:x", {}, "keyed needs a base"),
    ],
)
def test_what_keys_cannot_do(truth: Path, tmp_path: Path, mechanism: str, options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        unround.protect(truth, tmp_path / "out", mechanism, **options)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_other_random_roundings_take_keys_too() -> None:
    how = by_keys(parse_protection("sample:5"))
    assert how.name == "keyed:sample:5"
    assert by_keys(how) is how
    true = np.arange(40).reshape(1, -1)
    found = publish_counts(true, how, (), np.random.default_rng(1))
    assert set(found[0, :10]) <= {0, 10}
    assert isinstance(how.mechanism.window(15).low, int)


# -- compare -----------------------------------------------------------------------------------------------------------


def brute(constants: tuple[float, ...], shown: list[int], x: int, steps: int = 20_000) -> float:
    u = (np.arange(steps) + 0.5) / steps
    rest = x % 5
    fits = np.ones(steps, dtype=bool)
    for s, y in zip(constants, shown, strict=True):
        fits &= x - rest + 5 * ((u + s) % 1 < rest / 5) == y
    return float(fits.mean())


def by_all_roundings(constants: tuple[float, ...], shown: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Return the first possible count of each area, and the likelihoods from it on, by what all tables show."""
    many, how = len(constants), (Rounding(5),) * len(constants)
    windows, _ = WindowTable(how).of(shown.astype(np.int32))
    repeat = KeyedRepeat(tuple(range(many)), constants, (0.0,) * many, tuple(range(many - 1)))
    keyed = Keyed(np.full(1, np.nan), how, (repeat,))
    active = np.ones((len(shown), many - 1), dtype=np.bool_)
    known = keyed_evidence(keyed, windows, shown.astype(np.int32), active).windows
    low, start, size = known.low[:, 0], known.start[:, 0], known.high[:, 0] - known.low[:, 0] + 1
    return [(int(low[row]), known.weights[start[row] : start[row] + size[row]]) for row in range(len(shown))]


@pytest.mark.parametrize("tables", [2, 3, 7])
def test_all_roundings_of_a_count_together(tables: int) -> None:
    rng = np.random.default_rng(tables)
    constants = tuple(rng.random(tables).tolist())
    for _ in range(20):
        x, u = int(rng.integers(0, 40)), rng.random()
        shown = [x - x % 5 + 5 * int((u + s) % 1 < x % 5 / 5) for s in constants]
        ((low, weights),) = by_all_roundings(constants, np.array([shown]))
        alone = np.prod([Rounding(5).likelihood(y, np.arange(low, low + len(weights))) for y in shown], axis=0)
        expected = [(1 - OWN) * brute(constants, shown, low + at) + OWN * alone[at] for at in range(len(weights))]
        assert weights == pytest.approx(expected, abs=3e-4)


def test_more_tables_tell_more() -> None:
    """How often the likeliest value is right, by keys and by independent rounding: the table in docs/compare.md."""
    rng = np.random.default_rng(9)
    near = np.arange(95, 110)
    for tables, by_keys_, independent in ((2, 0.30, 0.30), (3, 0.38, 0.38), (8, 0.73, 0.61), (20, 0.97, 0.79)):
        right = 0
        for _ in range(25):
            constants = tuple(rng.random(tables).tolist())
            true, u = rng.integers(100, 105, 200), rng.random(200)
            rest = (true % 5)[:, None]
            shown = true[:, None] - rest + 5 * ((u[:, None] + np.array(constants)) % 1 < rest / 5)
            known = by_all_roundings(constants, shown)
            right += sum(low + int(weights.argmax()) == x for (low, weights), x in zip(known, true, strict=True))
        assert right / 5_000 == pytest.approx(by_keys_, abs=0.03)
        true = rng.integers(100, 105, 20_000)
        likely = np.ones((20_000, len(near)))
        for _ in range(tables):
            likely *= Rounding(5).likelihood(Rounding(5).publish(true, rng)[:, None], near[None])
        assert (near[likely.argmax(1)] == true).mean() == pytest.approx(independent, abs=0.015)


def test_repeats_are_found_but_those_of_exact_counts() -> None:
    equations = ((0, (1,)), (2, (1,)), (3, (4, 5)), (6, (7,)))
    assert repeated(8, equations, frozenset()) == [(0, 1, 2), (6, 7)]
    assert repeated(8, equations, frozenset({6})) == [(0, 1, 2)]


def repeating(tables: int, areas: int = 1200) -> Material:
    """A total that stands in several tables, the first of which splits it in two."""
    rng = np.random.default_rng(4)
    total = rng.integers(200, 800, areas)
    columns, counts, sums, at = [], [], [], []
    for table in range(tables):
        first = rng.binomial(total, 0.5)
        start = len(columns)
        for name, values in (("T", total), ("A", first), ("B", total - first))[: 1 if table else 3]:
            columns.append(Column(f"{name}{table}", (f"{name}{table}", "total"), f"{name}{table}"))
            counts.append(values)
            at.append(f"table {table}")
        sums.append((start, (0,)) if table else (start, (1, 2)))
    true = np.stack(counts, axis=1).astype(np.int32)
    return Material("repeats", true, tuple(columns), tuple(sums), frozenset(), tables=tuple(at))


def test_with_constants_repeats_tell_and_without_they_do_not() -> None:
    once, often = repeating(1), repeating(10)
    found = {}
    for material, label in ((once, "once"), (often, "often")):
        practices = [practice(name, material) for name in ("rounding:5", "keyed:5", "alike:5")]
        found[label] = {one.practice.name: one.measures.means() for one in compare(material, practices, 1, 2).compared}
    often_, once_ = found["often"], found["once"]
    # Alike: ten tables tell no more of the total than one, and averaging gains nothing.
    assert once_["alike:5"]["likely"] == often_["alike:5"]["likely"] == 0
    assert often_["alike:5"]["guessed"] < 0.3
    assert often_["rounding:5"]["guessed"] > 0.5
    assert often_["keyed:5"]["guessed"] > often_["rounding:5"]["guessed"] + 0.015
    assert often_["keyed:5"]["likely"] > 1.1 * often_["rounding:5"]["likely"] > 0
    for name in ("rounding:5", "keyed:5", "alike:5"):
        one = often_[name]
        assert one["proved_wrong"] == 0
        if one["likely"] > 300:
            assert one["likely_right"] / one["likely"] > one["likely_stated"] / one["likely"] - 0.04
    assert often_["keyed:5"]["mean_error"] == pytest.approx(often_["alike:5"]["mean_error"], abs=0.05)


def test_what_ifs_know_keys(ages: Material) -> None:
    for change, name in (("keyed", "keyed:5"), ("alike", "alike:5"), ("keyed:3", "keyed:3")):
        one = what_if(change, ages)
        assert one.name == name
        assert "keys" in one.sentence
    with pytest.raises(InputError, match="keyed, alike, or name a mechanism"):
        what_if("keyd", ages)


def test_calibration_takes_published_counts_as_they_are() -> None:
    from research.calibration import calibrate

    calibration = calibrate(repeating(2, 150), "keyed:5")
    assert calibration.mechanism == "keyed:5"
    assert calibration.areas == 150
    cells = (
        calibration.groups["all cells"]["fitted"]
        if "all cells" in calibration.groups
        else next(iter(calibration.groups.values()))["fitted"]
    )
    assert cells.log_loss < 3


def test_constants_are_those_of_tables_by_name() -> None:
    drawn = constants_of(["b", "a", "b"], 3)
    assert list(drawn) == ["b", "a"]
    assert constants_of(["a"], 3)["a"] == drawn["a"] != drawn["b"]
    assert constants_of(["a", "b"], 3, 0.5) == {"a": 0.5, "b": 0.5}


def test_noise_has_no_keys() -> None:
    assert parse_protection("laplace:1.45").keys == ""
    assert isinstance(parse_protection("laplace:1.45").mechanism, Laplace)
