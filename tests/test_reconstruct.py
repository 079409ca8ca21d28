"""How much of each person could be reconstructed: the tests that decide whether the numbers can be believed."""

from __future__ import annotations

import copy
import itertools
import json
import os
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from research.commands import variability as research_variability
from research.variability import common_cells, variability

import unround
from unround.audits.certificates import read_proof
from unround.errors import InputError
from unround.figures import Figure, FigureKind, Group
from unround.job.work import job_key
from unround.mechanisms import Exact, Mechanism, Rounding, mechanism
from unround.options import ReconstructOptions
from unround.protection import parse_protection
from unround.reconstruction.chain import NATIONAL, TABLES
from unround.reconstruction.claims import (
    Columns,
    area_bounds,
    certificate,
    cross_table,
    read_claim,
)
from unround.reconstruction.records import read_records
from unround.reconstruction.run import (
    BLOCK,
    AreaQuestion,
    Case,
    Inquiry,
    inquiry_of,
    questions_of,
    read_case,
    sample_of,
    way_questions,
    without_questions,
)
from unround.reconstruction.score import AreaTruth, GuessTally, Seen, found_alone, gain, score
from unround.simulation.persons import Query, counted, margins, query

VALUES = {"age": [str(age) for age in range(6)], "sex": ["f", "m"], "status": ["a", "b", "c"]}


def people(areas: int, each: int, seed: int = 1) -> pl.DataFrame:
    """Draw a few people whose attributes depend on each other, in areas that differ."""
    rng = np.random.default_rng(seed)
    frames = []
    for area in range(areas):
        number = rng.poisson(each) + 1
        weights = rng.dirichlet(np.full(6, 2.0))
        age = rng.choice(6, number, p=weights)
        sex = rng.integers(0, 2, number)
        status = np.minimum(2, (age + sex + (rng.random(number) < 0.3)) // 3)
        frames.append(
            pl.DataFrame(
                {
                    "area": [f"T{area:04}"] * number,
                    "age": age,
                    "sex": np.array(VALUES["sex"])[sex],
                    "status": np.array(VALUES["status"])[status],
                }
            )
        )
    return pl.concat(frames)


def write_table(folder: Path, name: str, persons: pl.DataFrame, axes: Sequence[str], how: Mechanism, seed: int = 1) -> Path:
    """Publish a table by some attributes, all margins included, as a tidy file; counted with polars."""
    rows = []
    for few in itertools.product((False, True), repeat=len(axes)):
        named = [axis for axis, wanted in zip(axes, few, strict=True) if wanted]
        rows.append(
            persons.group_by(["area", *named])
            .len("count")
            .with_columns(pl.col(named).cast(pl.String), *(pl.lit("all").alias(axis) for axis in axes if axis not in named))
            .select("area", *axes, "count")
        )
    codes = [["all", *VALUES[axis]] for axis in axes]
    whole = pl.DataFrame({"area": persons["area"].unique().sort()})
    for axis, code in zip(axes, codes, strict=True):
        whole = whole.join(pl.DataFrame({axis: code}), how="cross")
    table = whole.join(pl.concat(rows), on=["area", *axes], how="left").with_columns(pl.col("count").fill_null(0))
    everyone = pl.all_horizontal([pl.col(axis) == "all" for axis in axes]) if axes else pl.lit(True)
    shown = how.publish(table["count"].to_numpy().astype(np.int64), np.random.default_rng(seed))
    table = table.with_columns(
        pl.when(everyone).then(pl.col("count").cast(pl.Int64)).otherwise(pl.Series(shown)).alias("count")
    )
    table.write_parquet(folder / f"{name}.parquet")
    exact = "".join(f'{axis} = ["all"]\n' for axis in axes)
    lines = [f'data = "{name}.parquet"\nvalue = "count"\ndefault = "{how.name}"\n[[exact]]\n{exact}[axes.area]\n']
    lines += [f'[axes.{axis}]\nsums = [{{ total = "all", parts = {json.dumps(VALUES[axis])} }}]\n' for axis in axes]
    (folder / f"{name}.toml").write_text("\n".join(lines), encoding="utf-8")
    return folder / f"{name}.toml"


def measured(
    folder: Path, persons: pl.DataFrame, tables: Sequence[Path], out: str = "out", **options: object
) -> dict[str, object]:
    persons.write_parquet(folder / "persons.parquet")
    reconstruction = unround.reconstruct(
        list(tables), folder / out, truth=folder / "persons.parquet", **{"sample": 0, **options}
    )
    return reconstruction.to_json()


def share(report: dict, guess: str, group: str = "everyone") -> float:
    return report["guesses"][guess]["agreement"][group]["share"]


# -- the tests that decide --------------------------------------------------------------------------------------------


def test_saturated_exact_tables_give_every_record_away(tmp_path: Path) -> None:
    persons = people(6, 20)
    table = write_table(tmp_path, "all", persons, ("age", "sex", "status"), Exact())
    reconstruction = measured(tmp_path, persons, [table], sample=6, ways=[])
    assert share(reconstruction, "tables") == share(reconstruction, "unrounded") == 1.0
    assert reconstruction["guesses"]["tables"]["calibration"][-1]["stated"] > 0.98
    assert share(reconstruction, "national") < 0.9
    worlds = research_variability([table], tmp_path / "persons.parquet", areas=6)
    assert (worlds["low"], worlds["high"], worlds["determined"]) == (0.0, 0.0, 6)
    assert reconstruction["claims"]["at_least"] == 0
    assert reconstruction["claims"]["true"] == reconstruction["claims"]["exactly"] > 10
    assert reconstruction["claims"]["certified"] > 10


def test_people_who_are_alone_are_asked_for_one_by_one() -> None:
    """Records are age × 4 + sex × 2 + status; the guess at a person is what most persons of that age and sex have."""
    seen = Seen(np.array([4, 2]), np.array([10, 2]))
    worlds = np.array([[4, 5, 8, 9], [5, 8, 9, 9], [5, 8, 8, 9], [5, 8, 9, 13]])
    # 5 is more common than 4, 13 is the only one of its kind, and nobody in any world looks like 20.
    alone = np.array([5, 13, 20])
    assert found_alone(worlds, 4, alone, *seen).tolist() == [2]
    assert found_alone(worlds, 4, np.array([4, 12, 20]), *seen).tolist() == [0]
    # Without the seed that has it, a record is not found.
    assert found_alone(worlds, 2, alone, *seen).tolist() == [2, 2, 1]


def test_knowing_more_finds_more_of_those_who_are_alone(tmp_path: Path) -> None:
    """A list of all people would give this group more chances where less is known."""
    persons = people(150, 9)
    tables = [write_table(tmp_path, f"{one}_{two}", persons, (one, two), Exact()) for one, two in
              (("age", "sex"), ("age", "status"), ("sex", "status"))]  # fmt: skip
    reconstruction = measured(tmp_path, persons, tables, worlds=16, seeds=2)
    assert reconstruction["groups"]["alone"] > 300
    more = reconstruction["gain"]["national"]["alone"]
    assert more["share"] > 2 * more["standard_error"]
    assert share(reconstruction, "tables", "alone") == share(reconstruction, "unrounded", "alone")
    assert "alone" not in reconstruction["guesses"]["tables"]["within_one_year"]


@pytest.mark.parametrize(("each", "seeds"), [(8, 3), (16, 1)])
def test_confidence_holds_where_few_worlds_overstate_it(each: int, seeds: int) -> None:
    """Truth and worlds come from the same law, so that nothing but the choice of the most frequent records can mislead."""
    rng = np.random.default_rng(4)
    scores, number, raw = [], 20, []
    for _ in range(1_500):
        weights = rng.dirichlet(np.full(60, 0.25))
        drawn = np.sort(rng.choice(60, (each * seeds + 1, number), p=weights).astype(np.int64), axis=1)
        groups = np.ones((number, 3), dtype=bool) & np.array([True, False, False])
        none = np.zeros(0, dtype=np.int64)
        found = score(drawn[1:], 0.0, each, AreaTruth(drawn[0], groups), 1, 0, Seen(none, none)).tally
        scores.append(found)
        raw.append([found.claims[20:45].sum(), found.claims[20:45] @ (np.arange(20.5, 45) / 50), found.right[20:45].sum()])
    claims, stated, right = np.sum(raw, axis=0)
    assert right / claims < stated / claims - 0.02  # the shares of worlds themselves
    tally = GuessTally.joined(scores)
    calibration = tally.to_json()["calibration"]
    assert len(calibration) >= 4
    for band in calibration:
        error = (band["right"] * (1 - band["right"]) / band["claims"]) ** 0.5
        assert band["stated"] < band["right"] + 3 * error + 0.01
        assert band["stated"] > band["right"] - 0.08  # and not much understated
    assert (np.diff(tally.confidence()) >= 0).all()


def test_seeds_that_contradict_each_other_are_not_sure_of_anything() -> None:
    worlds = np.repeat([[1], [2], [3]], 8, axis=0)
    none = np.zeros(0, dtype=np.int64)
    truth = AreaTruth(np.array([1]), np.array([[True, False, False]]))
    found = [score(worlds, 0.0, 8, truth, 1, 0, Seen(none, none)).tally for _ in range(20)]
    sure = GuessTally.joined(found).confidence()
    assert sure.max() < 0.05


def test_without_tables_it_is_the_baseline(tmp_path: Path) -> None:
    persons = people(80, 25)
    persons.write_parquet(tmp_path / "persons.parquet")
    sizes = persons.group_by("area").len("number").with_columns(pl.lit("all").alias("age"))
    sizes.write_parquet(tmp_path / "size.parquet")
    text = 'data = "size.parquet"\nvalue = "number"\ndefault = "exact"\n[axes.area]\n[axes.age]\n'
    (tmp_path / "size.toml").write_text(text, encoding="utf-8")
    reconstruction = measured(tmp_path, persons, [tmp_path / "size.toml"], attributes=["age", "sex", "status"])
    more = reconstruction["gain"]["national"]["everyone"]
    assert abs(more["share"]) < 3 * more["standard_error"] + 0.005


def test_the_truth_of_other_areas_is_not_found(tmp_path: Path) -> None:
    """Reconstructed from one area and held against another, tables gain nothing over the law of the country."""
    persons = people(60, 25)
    persons.write_parquet(tmp_path / "persons.parquet")
    tables = [
        unround.read(write_table(tmp_path, "one", persons, ("age", "sex"), Rounding(3))),
        unround.read(write_table(tmp_path, "two", persons, ("age", "status"), Rounding(3))),
    ]
    options = ReconstructOptions(worlds=24, seeds=2)
    case = read_case(tables, tmp_path / "persons.parquet", options, tmp_path / "case")
    inquiry = inquiry_of(case, options)
    asked = {question.name: question for question in questions_of(case)}
    everywhere = np.arange(len(case.records.areas))

    def found(who: Inquiry, part: str) -> dict:
        (tmp_path / part).mkdir()
        tallies = who.answers([asked[TABLES], asked[NATIONAL]], everywhere, tmp_path / part, lambda *_: None)
        return gain(*tallies.values())["everyone"]

    answer = found(inquiry, "own")
    assert answer["share"] > 3 * answer["standard_error"]
    names = case.records.areas
    persons.with_columns(pl.col("area").replace(dict(zip(names, np.roll(names, 1), strict=True)))).write_parquet(
        tmp_path / "m.pq"
    )
    (tmp_path / "moved").mkdir()
    others = read_records(tmp_path / "m.pq", tmp_path / "moved").only(tuple(case.records.values))
    shuffled = found(replace(inquiry, records=others), "shuffled")
    assert shuffled["share"] < 2 * shuffled["standard_error"]


def worlds_that_fit(queries: Sequence[Query], low: np.ndarray, high: np.ndarray, sizes: dict[str, int], number: int) -> list:
    """List all worlds of a few people that fit, by trying every multiset of records."""
    cells = list(itertools.product(*(range(size) for size in sizes.values())))
    names = list(sizes)
    inside = np.array(
        [[all(cell[names.index(name)] in values for name, values in one) for cell in cells] for one in queries], dtype=int
    )
    worlds = []
    for chosen in itertools.combinations_with_replacement(range(len(cells)), number):
        world = np.bincount(chosen, minlength=len(cells))
        counts = inside @ world
        if (counts >= low).all() and (counts <= high).all():
            worlds.append(world)
    return worlds


@pytest.mark.parametrize("seed", range(6))
def test_variability_and_bounds_equal_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = {"x": 3, "y": 2}
    number = 4
    codes = {name: rng.integers(0, size, number).astype(np.int16) for name, size in sizes.items()}
    sets = [{}, *({"x": frozenset({value})} for value in range(3)), {"y": frozenset({0})}]
    sets += [{"x": frozenset({0}), "y": frozenset({1})}, {"x": frozenset({1, 2}), "y": frozenset({0})}]
    queries = [query(one, sizes) for one in sets]
    how = [Exact(), *([Rounding(2)] * (len(queries) - 1))]
    true = counted(margins(queries, sizes), len(queries), np.zeros(number, np.int64), 1, codes)[0]
    shown = [int(one.publish(np.array([count]), rng)[0]) for one, count in zip(how, true, strict=True)]
    table = cross_table(queries, sizes)
    bounds = area_bounds(table, [shown[at] for at in table.used], [how[at] for at in table.used])
    ordered = {name: sizes[name] for name in table.names}
    fitting = worlds_that_fit([queries[at] for at in table.used], bounds.low, bounds.high, ordered, number)
    assert fitting
    assert (bounds.least <= np.min(fitting, axis=0)).all()
    assert (bounds.most >= np.max(fitting, axis=0)).all()
    widest = max(int(np.maximum(one - other, 0).sum()) for one in fitting for other in fitting)
    spread = variability(table, bounds, number, 60.0)
    assert (spread.low, spread.high, spread.why) == (widest / number, widest / number, "solved")
    assert spread.determined == (len(fitting) == 1)
    common = common_cells(table, bounds, number, 60.0)
    always = np.flatnonzero(np.min(fitting, axis=0) > 0)
    assert sorted([*common, *np.flatnonzero(bounds.least > 0)]) == always.tolist()


def test_what_the_solver_could_not_settle_is_never_called_determined() -> None:
    sizes = {"x": 4, "y": 4}
    queries = [query({}, sizes), *(query({"x": frozenset({value})}, sizes) for value in range(4))]
    table = cross_table(queries, sizes)
    bounds = area_bounds(table, [20, 5, 5, 5, 5], [Exact(), *([Rounding(5)] * 4)])
    too_large = variability(table, bounds, 20, 5.0, most=1)
    assert (too_large.why, too_large.high, too_large.determined) == ("size", 0.8, False)  # one of each x is certain
    too_short = variability(table, bounds, 20, 1e-9)
    assert too_short.why in ("time", "solved")
    assert too_short.high > 0
    assert not too_short.determined
    assert common_cells(table, bounds, 20, 5.0, most=1) is None


def test_the_seven_people_of_garfinkel_and_others_are_among_the_solutions() -> None:
    """The statistics of a fictional block that Garfinkel, Abowd and Martindale (2018) reconstruct, and its seven people."""
    block = "8 F B S, 18 M W S, 24 F W S, 30 M W M, 36 F B M, 66 F B M, 84 M B M"
    rows = [one.split() for one in block.split(", ")]
    age, sex, race, status = ([row[k] for row in rows] for k in range(4))
    codes = {
        "age": np.array(age, dtype=np.int16),
        "race": np.array([r == "W" for r in race], dtype=np.int16),
        "sex": np.array([s == "M" for s in sex], dtype=np.int16),
        "status": np.array([m == "M" for m in status], dtype=np.int16),
    }
    sizes = {"age": 116, "race": 2, "sex": 2, "status": 2}
    black, white, female, male, married = (
        {"race": frozenset({0})}, {"race": frozenset({1})}, {"sex": frozenset({0})}, {"sex": frozenset({1})},
        {"status": frozenset({1})},
    )  # fmt: skip
    published = [({}, 7), (female, 4), (male, 3), (black, 4), (white, 3), (married, 4), (black | female, 3)]
    queries = [query(sets, sizes) for sets, _ in published]
    true = counted(margins(queries, sizes), len(queries), np.zeros(7, np.int64), 1, codes)[0]
    assert true.tolist() == [count for _, count in published]
    table = cross_table(queries, sizes)
    bounds = area_bounds(table, [published[at][1] for at in table.used], [Exact()] * len(table.used))
    world = np.bincount(table.cell_of(codes), minlength=table.cells)
    assert bounds.fits
    assert (bounds.least <= world).all()
    assert (world <= bounds.most).all()
    # Counts alone leave the ages open; medians and means are what made this block solvable.
    assert not bounds.claims()
    figures = [({}, 30, 38), (female, 30, 33.5), (male, 30, 44), (black, 51, 48.5), (white, 24, 24), (married, 51, 54),
               (black | female, 36, 36.7)]  # fmt: skip
    for sets, median, mean in figures:
        inside = np.ones(7, dtype=bool)
        for name, values in sets.items():
            inside &= np.isin(codes[name], list(values))
        counts = {str(one): int((codes["age"][inside] == one).sum()) for one in range(116)} | {"all": int(inside.sum())}
        groups = tuple(Group(str(one), Fraction(one), Fraction(one)) for one in range(116))
        for kind, value in ((FigureKind.MEDIAN, median), (FigureKind.MEAN, mean)):
            told = Figure("age", kind, "all", groups=groups).inequalities(Fraction(str(value)))
            assert len(told) == 2
            for one in told:
                assert sum(by * counts[name] for name, by in one.terms) <= one.at_most


def test_an_extra_table_that_tells_nothing_changes_nothing(tmp_path: Path) -> None:
    persons = people(8, 20)
    table = write_table(tmp_path, "one", persons, ("age", "sex"), Rounding(3))
    again = write_table(tmp_path, "again", persons, ("age", "sex"), Rounding(3))
    assert pl.read_parquet(tmp_path / "one.parquet").equals(pl.read_parquet(tmp_path / "again.parquet"))
    alone, both = measured(tmp_path, persons, [table]), measured(tmp_path, persons, [table, again], "both")
    assert alone["guesses"] == both["guesses"]
    assert any("add nothing" in note for note in both["notes"])


def test_every_verified_claim_is_true_in_ten_thousand_areas() -> None:
    rng = np.random.default_rng(5)
    areas, each = 10_000, 9
    sizes = {"x": 5, "y": 3, "z": 2}
    weights = rng.dirichlet(np.full(30, 0.15))
    cells = rng.choice(30, areas * each, p=weights)
    codes = {
        name: values.astype(np.int16)
        for name, values in zip(sizes, np.unravel_index(cells, tuple(sizes.values())), strict=True)
    }
    area = np.repeat(np.arange(areas), each)
    sets: list[dict[str, frozenset[int]]] = [{}]
    for names in (("x",), ("y",), ("z",), ("x", "y"), ("x", "z"), ("y", "z")):
        every = itertools.product(*(range(sizes[name]) for name in names))
        sets += [{name: frozenset({value}) for name, value in zip(names, values, strict=True)} for values in every]
    queries = [query(one, sizes) for one in sets]
    true = counted(margins(queries, sizes), len(queries), area, areas, codes)
    table = cross_table(queries, sizes)
    place = table.cell_of(codes) + area * table.cells
    world = np.bincount(place, minlength=areas * table.cells).reshape(areas, table.cells)
    made = wrong = 0
    for number in range(areas):
        how = [Exact() if not one or rng.random() < 0.8 else Rounding(3) for one in queries]
        shown = [int(one.publish(np.array([count]), rng)[0]) for one, count in zip(how, true[number], strict=True)]
        bounds = area_bounds(table, [shown[at] for at in table.used], [how[at] for at in table.used])
        assert bounds.fits
        for cell, least, exactly in bounds.claims():
            made += 1
            wrong += not (world[number, cell] == least if exactly else world[number, cell] >= least)
    assert made > 10_000
    assert wrong == 0


# -- certificates -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, list[dict]]:
    """Claims about simulated people of whom exact tables were published, and their certificates as they were written."""
    out = tmp_path_factory.mktemp("exact")
    tables = ["age_sex", "age_sex_marital"]
    unround.simulate(out, persons=True, areas=6, people=30, tables=tables, mechanism="exact")
    reconstruction = unround.reconstruct(
        [out / f"{name}.toml" for name in tables],
        out / "out",
        truth=out / "persons.parquet",
        sample=4,
        ways=[],
        worlds=2,
        seeds=1,
    )
    lines = (out / "out" / "proofs.jsonl").read_text(encoding="utf-8").splitlines()
    return reconstruction.to_json()["claims"], [json.loads(line) for line in lines]


def test_claims_are_written_out_and_the_independent_checker_accepts_them(proved: tuple[dict, list[dict]]) -> None:
    claims, lines = proved
    assert claims["certified"] == len(lines) == claims["written_out"] > 20
    assert {bool(line.get("at_least")) for line in lines} == {True, False}
    for line in lines:
        assert unround.check_proof(*read_claim(line))
        assert line["text"].endswith(f"So {line['cell']} {'≥' if line.get('at_least') else '='} {line['value']}.")


def one_more(line: dict) -> None:
    line["value"] += 1


def another_count(line: dict) -> None:
    last = line["steps"][-1]
    used = {line["steps"][use - 1]["cell"] for use in last["uses"]}
    for cell in line["cells"]:
        if cell["name"] in used and cell["published"]:
            cell["published"] += 1 if last["bound"] == "high" else -1


def no_sums(line: dict) -> None:
    line["sums"] = []


def another_sum(line: dict) -> None:
    line["sums"][-1]["parts"].pop()


def fewer_steps(line: dict) -> None:
    line["steps"] = line["steps"][:1]


@pytest.mark.parametrize("change", [one_more, another_count, no_sums, another_sum, fewer_steps])
@pytest.mark.parametrize("at_least", [True, False])
def test_an_altered_certificate_is_rejected(
    proved: tuple[dict, list[dict]], change: Callable[[dict], None], at_least: bool
) -> None:
    line = copy.deepcopy(next(claim for claim in proved[1] if bool(claim.get("at_least")) == at_least))
    change(line)
    assert not unround.check_proof(*read_claim(line))


def test_at_least_is_never_taken_for_exactly(proved: tuple[dict, list[dict]]) -> None:
    line = next(claim for claim in proved[1] if claim.get("at_least"))
    system, proof = read_claim(line)
    assert not unround.check_proof(system, replace(proof, at_least=False))
    # The certificates of audits are of values: there, "at least" says nothing.
    assert not unround.check_proof(*read_proof(line))


def test_the_sums_of_certificates_hold_in_the_truth() -> None:
    """The checker takes sums as given: they must be true of the people."""
    rng = np.random.default_rng(3)
    sizes = {"x": 5, "y": 3, "z": 2}
    values = {name: [f"{name}{value}" for value in range(size)] for name, size in sizes.items()}
    pairs = [("x",), ("x", "y"), ("x", "z"), ("y", "z")]
    sets: list[dict[str, frozenset[int]]] = [{}, {"x": frozenset({0, 1, 2})}]
    for names in pairs:
        every = itertools.product(*(range(sizes[name]) for name in names))
        sets += [{name: frozenset({value}) for name, value in zip(names, held, strict=True)} for held in every]
    queries = [query(set_, sizes) for set_ in sets]
    table = cross_table(queries, sizes)
    used = [queries[at] for at in table.used]
    columns = Columns.of(table, used, ["t"] * len(used), [Exact()] * len(used), values)
    written = 0
    for _ in range(60):
        codes = {name: rng.integers(0, size, 7).astype(np.int16) for name, size in sizes.items()}
        true = counted(margins(used, sizes), len(used), np.zeros(7, np.int64), 1, codes)[0].tolist()
        world = np.bincount(table.cell_of(codes), minlength=table.cells)
        bounds = area_bounds(table, true, columns.mechanisms)
        known = {columns.cell_name(cell): int(world[cell]) for cell in range(table.cells)}
        known |= dict(zip(columns.names, true, strict=True))
        for claim in bounds.claims():
            made = certificate(columns, true, bounds, claim)
            if made is None:
                continue
            written += 1
            for set_ in made[0].sums:  # groups are of nobody, since the column that rules them out is
                assert known[set_.total] == sum(known.get(part, 0) for part in set_.parts)
                for part in set_.parts:
                    assert part in known or part.startswith(("those of [", "the others in ["))
    assert written > 50


# -- what is written, and what is refused -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("census")
    unround.simulate(out, persons=True, areas=6, people=40, tables=["profile", "age_sex_marital"])
    return out


def test_simulated_people_are_reconstructed_with_their_confidence(census: Path, tmp_path: Path) -> None:
    tables = [census / "profile.toml", census / "age_sex_marital.toml"]
    reconstruction = unround.reconstruct(tables, tmp_path / "out", truth=census / "persons.parquet", sample=2)
    report = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert report == reconstruction.to_json()
    assert report["simulated"]
    guessed, true = pl.read_parquet(tmp_path / "out" / "reconstructed.parquet"), pl.read_parquet(census / "persons.parquet")
    assert guessed.height == true.height
    assert guessed["confidence"].is_between(0, 1).all()
    names = list(report["attributes"])
    both = guessed.group_by(["region", *names]).len("found").join(
        true.with_columns(pl.col("age").cast(pl.String)).group_by(["region", *names]).len("true"), on=["region", *names]
    )  # fmt: skip
    hits = both.select(pl.min_horizontal("found", "true").sum()).item()
    assert hits / true.height == pytest.approx(share(report, "tables"))
    assert [way["name"] for way in report["compared"]["ways"]][:2] == ["exact", "rounding:3"]
    assert {way["name"] for way in report["compared"]["without"]} == {"profile", "age_sex_marital"}
    page = (tmp_path / "out" / "reconstruct.html").read_text(encoding="utf-8")
    assert "Four guesses" in page
    assert "reconstruction" in str(reconstruction)


def test_records_of_others_give_aggregates_alone(census: Path, tmp_path: Path) -> None:
    """One value changed is enough: records that cannot be drawn again may be real."""
    persons = pl.read_parquet(census / "persons.parquet")
    religion = persons["religion"].to_list()
    religion[0] = "another religion" if religion[0] != "another religion" else "Christian"
    for name in ("profile.parquet", "profile.toml", "SIMULATED.txt"):
        (tmp_path / name).write_bytes((census / name).read_bytes())
    persons.with_columns(pl.Series("religion", religion)).write_parquet(tmp_path / "persons.parquet")
    reconstruction = unround.reconstruct(
        tmp_path / "profile.toml", tmp_path / "out", truth=tmp_path / "persons.parquet", sample=2, ways=[], worlds=4
    )
    assert not reconstruction.to_json()["simulated"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["reconstruct.html", "summary.json"]
    assert "aggregates alone" in (tmp_path / "out" / "reconstruct.html").read_text(encoding="utf-8")
    for area in persons["region"].unique():
        assert area not in (tmp_path / "out" / "summary.json").read_text(encoding="utf-8")


def test_figures_are_not_used_and_that_is_said(tmp_path: Path) -> None:
    persons = people(8, 12)
    table = write_table(tmp_path, "one", persons, ("age",), Rounding(3))
    release = replace(unround.read(table), figures=(Figure("mean age", FigureKind.MEAN, "all"),))
    persons.write_parquet(tmp_path / "persons.parquet")
    case = read_case([release], tmp_path / "persons.parquet", ReconstructOptions(), tmp_path / "case")
    assert "one: rates, means and medians beside the counts (1) are not used." in case.published.notes


def test_without_a_truth_it_refuses_and_says_why(census: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not write reconstructed persons about a real release"):
        unround.reconstruct(census / "profile.toml", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def changed(persons: pl.DataFrame) -> pl.DataFrame:
    return persons.with_columns(pl.col("age") // 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (changed, "does not hold the people that these tables count"),
        (lambda persons: persons.with_columns(pl.col("region") + "x"), "no area of"),
        (lambda persons: persons.drop("region"), "called region or area"),
        (lambda persons: persons.clear(), "no rows"),
        (lambda persons: persons.select("region"), "no attributes"),
        (lambda persons: persons.select("region", pl.lit(1).alias("eyes")), "about no attribute of the records"),
        (lambda persons: persons.with_columns(pl.lit(None).alias("sex")), "have no sex"),
        (lambda persons: pl.concat([persons] * 9).with_columns(name=pl.int_range(pl.len()).cast(pl.String)), "identify"),
        (lambda persons: pl.concat([persons, persons.head(1).with_columns(region=pl.lit("A9"))]), "has no area A9"),
    ],
)
def test_a_truth_that_does_not_belong_to_the_tables_is_refused(
    census: Path, tmp_path: Path, change: Callable[[pl.DataFrame], pl.DataFrame], words: str
) -> None:
    change(pl.read_parquet(census / "persons.parquet")).write_parquet(tmp_path / "other.parquet")
    options = {"truth": tmp_path / "other.parquet", "sample": 0, "worlds": 2, "seeds": 1}
    with pytest.raises(InputError, match=words):
        unround.reconstruct(census / "profile.toml", tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"worlds": 1}, "worlds must be at least 2"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"attributes": ["income"]}, "no attribute 'income'"),
        ({"ways": ["swapping"]}, "no mechanism 'swapping'"),
        ({"ways": ["exact", "alike:5"]}, "does not use keys, so that alike:5 is"),
        ({"truth": "nowhere.csv"}, "no file nowhere.csv"),
    ],
)
def test_refusals(census: Path, tmp_path: Path, options: dict[str, object], words: str) -> None:
    given = {"truth": census / "persons.parquet", **options}
    with pytest.raises(InputError, match=words):
        unround.reconstruct(census / "profile.toml", tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()


def test_a_folder_of_others_is_left_alone(census: Path, tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match=r"no reconstruct\.html written by `unround reconstruct`"):
        unround.reconstruct(census / "profile.toml", tmp_path, truth=census / "persons.parquet", sample=0)


def test_a_run_that_was_stopped_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    areas = BLOCK + 8  # a whole block, and a short one
    persons = people(areas, 8)
    table = write_table(tmp_path, "one", persons, ("age", "sex"), Rounding(3))
    whole = measured(tmp_path, persons, [table], "whole", worlds=4, seeds=1)
    seen = []

    def stop(stage: str, done: int, _of: int) -> None:
        seen.append((stage, done))
        if stage == "Reconstructing" and done >= areas + BLOCK:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="work done so far is kept"):
        measured(tmp_path, persons, [table], "half", worlds=4, seeds=1, progress=stop)
    assert not (tmp_path / "half" / "summary.json").exists()
    parts = {path: path.stat().st_mtime_ns for path in (tmp_path / "half" / ".reconstruct" / "parts").glob("*/*/*.npz")}
    assert len(parts) == 3
    first: list[int] = []
    last: list[int] = []

    def look(stage: str, done: int, _of: int) -> None:
        if stage == "Reconstructing":
            first.append(done)
            last.append(sum(path.exists() and path.stat().st_mtime_ns == parts[path] for path in parts))

    # The same files: a file of persons that was written again is another one, and nothing of the earlier run would count.
    options = {"truth": tmp_path / "persons.parquet", "sample": 0, "worlds": 4, "seeds": 1}
    report = unround.reconstruct([table], tmp_path / "half", progress=look, **options).to_json()
    assert report["guesses"] == whole["guesses"]
    assert first[:3] == [0, areas, areas + BLOCK]  # what was done is counted at once
    assert last[-1] == 3
    assert not (tmp_path / "half" / ".reconstruct").exists()


def test_the_order_of_persons_and_areas_does_not_matter(tmp_path: Path) -> None:
    persons = people(10, 12)
    table = write_table(tmp_path, "one", persons, ("age", "status"), mechanism("laplace:1.45"))
    reconstruction = measured(tmp_path, persons, [table], worlds=6)
    mixed = persons.sample(fraction=1.0, shuffle=True, seed=3)
    counts = pl.read_parquet(tmp_path / "one.parquet").sample(fraction=1.0, shuffle=True, seed=4)
    counts.write_parquet(tmp_path / "one.parquet")
    again = measured(tmp_path, mixed, [table], "again", worlds=6)
    assert reconstruction["guesses"] == again["guesses"]


def test_a_single_area_has_nothing_to_learn_from_and_says_so(tmp_path: Path) -> None:
    persons = people(1, 15)
    table = write_table(tmp_path, "one", persons, ("age", "sex"), Rounding(3))
    reconstruction = measured(tmp_path, persons, [table], worlds=4)
    assert not reconstruction["law_from_other_areas"]


def test_tables_of_others_are_understood_by_their_words(tmp_path: Path) -> None:
    """A wide CSV that nobody described: ages as agencies write them, sexes beside them, a total that is not rounded."""
    persons = people(12, 30).with_columns(pl.col("age") * 15, pl.col("sex").replace({"f": "Women", "m": "Men"}))
    persons.write_csv(tmp_path / "persons.csv")
    rows = []
    rng = np.random.default_rng(2)
    for (area,), own in persons.group_by(["area"], maintain_order=True):
        row = {"Men": own.filter(pl.col("sex") == "Men").height, "Women": own.filter(pl.col("sex") == "Women").height}
        for code, low, high in (("0-14", 0, 14), ("15 to 44", 15, 44), ("45+", 45, 120)):
            row[code] = own.filter(pl.col("age").is_between(low, high)).height
        rounded = Rounding(5).publish(np.array(list(row.values())), rng).tolist()
        rows.append({"area": area, "Total": own.height, **dict(zip(row, rounded, strict=True))})
    pl.DataFrame(rows).write_csv(tmp_path / "table.csv")
    report = unround.reconstruct(
        tmp_path / "table.csv", tmp_path / "out", truth=tmp_path / "persons.csv", base=5, sample=0, worlds=4
    ).to_json()
    assert report["attributes"] == {"age": 76, "sex": 2}
    assert report["tables"] == [{"name": "table", "columns": 6}]
    assert report["exact_people"]
    assert report["mechanisms"] == ["exact", "rounding:5"]
    assert not report["simulated"]


def test_it_runs_from_the_command_line(census: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from unround.cli import app

    command = ["reconstruct", str(census / "profile.toml"), "--truth", str(census / "persons.parquet")]
    command += ["-o", str(tmp_path / "out"), "--sample", "2", "--worlds", "4", "--ways", "rounding:3,controlled:5"]
    shown = CliRunner().invoke(app, command, env={"COLUMNS": "120"})
    assert shown.exit_code == 0, shown.output
    for words in ("national baseline", "unrounded tables", "By confidence", "controlled:5", "reconstruct.html"):
        assert words in shown.output


# -- memory -----------------------------------------------------------------------------------------------------------


def prepared(folder: Path, areas: int) -> tuple[int, tuple[Case, Inquiry, list[AreaQuestion]]]:
    """Read records and two tables of so many areas, and get ready for every question, those about a sample included.

    Returns the memory that this takes at most but for other ways of publishing, each table of which is drawn whole.
    """
    folder.mkdir(exist_ok=True)
    persons = people(areas, 12)
    persons.write_parquet(folder / "persons.parquet")
    axes = (("age", "sex", "status"), ("age", "status"))
    tables = [unround.read(write_table(folder, "_".join(axis), persons, axis, Rounding(3))) for axis in axes]
    options = ReconstructOptions()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    case = read_case(tables, folder / "persons.parquet", options, folder / "case")
    inquiry = inquiry_of(case, options)
    asked, sample = questions_of(case), sample_of(case, 5, 1)
    less = without_questions(case.published, case.records)
    peak = tracemalloc.get_traced_memory()[1] - before
    ways, _ = way_questions(
        [parse_protection(name) for name in ("exact", "rounding:3")], case.published, case.records, 1, sample, case.folder
    )
    return peak, (case, inquiry, [*asked, *ways, *less])


def test_memory_does_not_grow_with_areas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what is kept nor what is needed on the way grows by a row an area."""
    monkeypatch.setattr("unround.reconstruction.records.AT_ONCE", 10)
    monkeypatch.setattr("unround.reconstruction.records.AT_ONCE", 10)
    monkeypatch.setattr("unround.reconstruction.records.AT_ONCE_PEOPLE", 120)
    monkeypatch.setattr("unround.reconstruction.records.AT_ONCE_TEXT", 120)
    monkeypatch.setattr("unround.reconstruction.chain.SAMPLE", 200)
    prepared(tmp_path / "first", 60)  # whatever is imported or compiled on first use
    kept, peaks, columns = [], [], 0
    tracemalloc.start()
    try:
        for areas in (60, 180):
            before = tracemalloc.get_traced_memory()[0]
            peak, held = prepared(tmp_path / str(areas), areas)
            peaks.append(peak)
            kept.append(tracemalloc.get_traced_memory()[0] - before)
            columns = len(held[0].published.queries)
            del held
    finally:
        tracemalloc.stop()
    row = columns * np.dtype(np.int32).itemsize
    assert row > 300
    assert kept[1] - kept[0] < 120 * row / 2
    assert peaks[1] - peaks[0] < 120 * row / 2


def test_persons_are_read_in_any_order_and_in_blocks_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    persons = people(9, 15).with_columns(pl.col("age").cast(pl.Int16), key=pl.int_range(pl.len()) / 1024)
    mixed = persons.sample(fraction=1.0, shuffle=True, seed=5)
    mixed.write_parquet(tmp_path / "mixed.parquet")
    mixed.write_csv(tmp_path / "mixed.csv")
    true = mixed.sort("area", maintain_order=True)
    for size, name in ((7, "mixed.parquet"), (10_000, "mixed.parquet"), (7, "mixed.csv")):
        monkeypatch.setattr("unround.reconstruction.records.AT_ONCE_TEXT", size)
        records = read_records(tmp_path / name, tmp_path)
        assert list(records.areas) == sorted(set(persons["area"]))
        codes = records.codes_of(0, len(records.areas))
        for attribute in ("age", "sex", "status"):
            values = [records.values[attribute][code] for code in codes[attribute]]
            assert values == true[attribute].cast(pl.String).to_list()
        few = np.array([0, 3, 4, records.people - 1])
        assert all((records.codes_at(few)[name] == codes[name][few]).all() for name in codes)


def test_parts_that_were_damaged_since_are_made_again_and_edited_tables_are_others(tmp_path: Path) -> None:
    persons = people(BLOCK, 4)
    table = write_table(tmp_path, "one", persons, ("age", "sex"), Rounding(3))
    options = {"sample": 0, "worlds": 2, "seeds": 1}

    def stop(stage: str, done: int, of: int) -> None:
        if stage == "Reconstructing" and done == of:
            raise KeyboardInterrupt

    whole = measured(tmp_path, persons, [table], "whole", **options)
    with pytest.raises(KeyboardInterrupt, match="work done so far is kept"):
        measured(tmp_path, persons, [table], "half", progress=stop, **options)
    tallies = sorted((tmp_path / "half" / ".reconstruct" / "parts").glob("*/*/*.npz"))
    for path in tallies:
        path.write_bytes(path.read_bytes()[:-9])
    truth = tmp_path / "persons.parquet"
    report = unround.reconstruct([table], tmp_path / "half", truth=truth, **options).to_json()
    assert (len(tallies), report["guesses"]) == (4, whole["guesses"])
    # Size and time of the file are those of before; what is in it is not.
    released, before = table.with_suffix(".parquet"), table.with_suffix(".parquet").stat()
    keys = []
    for flip in (0, 1):
        content = bytearray(released.read_bytes())
        content[9] ^= flip
        released.write_bytes(content)
        os.utime(released, ns=(before.st_atime_ns, before.st_mtime_ns))
        keys.append(job_key([], [], [released]))
    assert keys[0] != keys[1]


def test_a_run_under_another_mechanism_is_another_one(tmp_path: Path) -> None:
    """What was done under one mechanism is no answer under another: a stopped run is not resumed then."""
    (tmp_path / "table.csv").write_text("area,Total,Men,Women\na,30,15,15\nb,45,15,30\n", encoding="utf-8")
    seen: list[str] = []
    for how in ("rounding:3", "rounding:5", "rounding:3"):
        release = unround.read(tmp_path / "table.csv", mechanism=how)
        seen.append(job_key([release], [ReconstructOptions()], [tmp_path / "table.csv"]))
    assert seen[0] == seen[2] != seen[1]
