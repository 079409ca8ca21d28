"""Audits of counts that were rounded by keys: against a model that goes through the keys, and against simulated truth."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl
import pytest

from tests.keyed import keyed_census
from tests.test_structure import release_of, said
from unround.audits import Auditor, Model
from unround.audits.keys import KeyedTable, Keys, SameCount
from unround.errors import InputError
from unround.evidence.keys import _ratios
from unround.explanation.cell import explain_at
from unround.job import AuditFolder, audit
from unround.mechanisms import Rounding, Weighted, mechanism
from unround.mechanisms.keyed import arc_of, meeting
from unround.options import AuditOptions
from unround.prior import Prior
from unround.release import Column
from unround.show.audit import key_rows, key_sentences

SEXES = ("total", "men", "women")
CONSTANTS = [0.31, 0.8, 0.43, 0.24, 0.62, 0.93, 0.55, 0.11, 0.73, 0.05]


# --- against brute force ---------------------------------------------------------------------------------------------


def model_of(tables: int) -> Model:
    """One count by sex, in some tables."""
    how = Rounding(5)
    columns = tuple(
        Column(f"{k}/{sex}", (f"row {k}", sex), f"row {k}", f"Table {k}", 0, how) for k in range(tables) for sex in SEXES
    )
    sums = [(3 * k, (3 * k + 1, 3 * k + 2)) for k in range(tables)]
    sums += [(sex, (3 * k + sex,)) for k in range(1, tables) for sex in range(3)]
    return Model.build(columns, (how,) * len(columns), tuple(sums), ("file",) * len(sums))


def keys_of(constants: tuple[float, ...]) -> Keys:
    tables = tuple(KeyedTable(f"Table {k}", constant, 0.0, "") for k, constant in enumerate(constants))
    repeats = tuple(
        SameCount(tuple(f"{k}/{sex}" for k in range(len(constants))), constants, (0.0,) * len(constants)) for sex in SEXES
    )
    return Keys("auto", tables, repeats if len(constants) > 1 else ())


def brute(published: np.ndarray, constants: tuple[float, ...], grid: int = 250) -> dict[tuple[int, int], float]:
    """Weigh men and women by going through their random numbers: every table rounds the same keys with its constant.

    With the sums of keys a and b of men and women, table k rounds men by a − c, women by b − c, and both by a + b − c.
    """
    key = (np.arange(grid) + 0.5) / grid
    both = key[:, np.newaxis] + key

    def fits(keys: np.ndarray, true: int, place: int) -> np.ndarray:
        """Return where all tables publish a true count as they did, 1 or 0."""
        rounded = [true - true % 5 + 5 * ((keys - constant) % 1 < true % 5 / 5) for constant in constants]
        return np.all([one == shown for one, shown in zip(rounded, published[:, place], strict=True)], axis=0).astype(float)

    men, women = ({x: fits(key, x, place) for x in possible(published[0, place])} for place in (1, 2))
    totals = {x: fits(both, x, 0) for x in {m + f for m, f in product(men, women)}}
    return {(m, f): float(men[m] @ totals[m + f] @ women[f]) / grid**2 for m, f in product(men, women)}


def possible(published: int) -> range:
    """Return the counts that may be published so."""
    return range(max(0, published - 4), published + 5)


@pytest.mark.parametrize("constants", [(0.31,), (0.0,), (0.1, 0.45), (0.31, 0.8, 0.43), (0.07, 0.62, 0.24, 0.5, 0.93)])
def test_probabilities_are_those_of_the_keys(constants):
    rng = np.random.default_rng(len(constants))
    model, keys = model_of(len(constants)), keys_of(constants)
    auditor = Auditor(model, Prior.flat(), AuditOptions(), keys)
    assert auditor.keyed is not None
    for _ in range(12):
        men, women = rng.integers(20, 60, 2)
        a, b = rng.random(2)
        published = np.array(
            [
                [
                    x - x % 5 + 5 * ((key - constant) % 1 < x % 5 / 5)
                    for x, key in ((men + women, a + b), (men, a), (women, b))
                ]
                for constant in constants
            ]
        )
        weights = brute(published, constants)
        total = sum(weights.values())
        block = published.reshape(1, -1).astype(np.int32)
        kept = auditor.infer(block, np.zeros(1, dtype=bool), keep=0).probabilities.distributions([0])[0]
        for cell in range(3):
            wanted: dict[int, float] = {}
            for (m, f), weight in weights.items():
                value = (m + f, m, f)[cell]
                wanted[value] = wanted.get(value, 0.0) + weight / total
            low, chances = kept[cell]
            off = sum(
                abs(chances[value - low] - share) if 0 <= value - low < len(chances) else share
                for value, share in wanted.items()
            )
            assert off / 2 < 0.06  # a hundredth of all counts may have random numbers of their own, and the grid is coarse
        alike = [kept[3 * k][1] for k in range(len(constants))]
        assert all(np.allclose(one, alike[0], atol=1e-9) for one in alike)


def tree_model() -> Model:
    """Two sums, one inside of the other: T = A + B + E, A = C + D."""
    how = Rounding(5)
    columns = tuple(Column(name, (name, "total"), name, "Table", 0, how) for name in "TABCDE")
    return Model.build(columns, (how,) * 6, ((0, (1, 2, 5)), (1, (3, 4))), ("file",) * 2)


def records(leaves: tuple[int, ...]) -> list[tuple[frozenset[str], int]]:
    """Return the records of every cell of the tree, as the leaves that are not empty, and its count."""
    count = dict(zip("CDBE", leaves, strict=True))
    return [
        (frozenset(leaf for leaf in inside if count[leaf]), sum(count[leaf] for leaf in inside))
        for inside in ("CDBE", "CD", "B", "C", "D", "E")
    ]


@pytest.mark.parametrize("constant", [0.3, None])
def test_cells_with_the_same_records_are_one_observation(constant):
    """Keys round them alike, whatever the constant; brute force goes through all counts of the leaves."""
    given = (KeyedTable("Table", constant, 0.0, "") if constant else KeyedTable("Another", 0.1, 0.0, ""),)
    auditor = Auditor(tree_model(), Prior.flat(), AuditOptions(), Keys("auto", given))
    rng = np.random.default_rng(5)
    for _ in range(6):
        true = tuple(int(rng.integers(1, 8)) if rng.random() < 0.4 else 0 for _ in range(4))
        keys = dict(zip("CDBE", rng.random(4).tolist(), strict=True))
        published = [
            x - x % 5 + 5 * ((sum(keys[leaf] for leaf in inside) + 0.3) % 1 < x % 5 / 5) for inside, x in records(true)
        ]
        weights: dict[tuple[int, int], float] = {}
        for leaves in product(*(possible(published[cell]) for cell in (3, 4, 2, 5))):
            weight, seen = 1.0, dict[frozenset[str], int]()
            for (inside, x), shown in zip(records(leaves), published, strict=True):
                alone = max(0.0, 1 - abs(x - shown) / 5)
                if inside in seen:
                    weight *= 0.99 * (shown == seen[inside]) + 0.01 * alone  # a few may have numbers of their own
                else:
                    weight *= alone
                    seen |= {inside: shown} if inside else {}
            for cell, (_, x) in enumerate(records(leaves)):
                weights[cell, x] = weights.get((cell, x), 0.0) + weight
        block = np.array([published], dtype=np.int32)
        kept = auditor.infer(block, np.zeros(1, dtype=bool), keep=0).probabilities.distributions([0])[0]
        total = sum(weight for (cell, _), weight in weights.items() if cell == 0)
        for cell, (low, chances) in kept.items():
            wanted = [weights.get((cell, low + k), 0.0) / total for k in range(len(chances))]
            assert np.allclose(chances, wanted, atol=1e-9)


def test_an_empty_part_leaves_the_total_the_random_number_of_the_other():
    """5 = 0 + 5: if there are no men, total and women are one observation; independent rounding takes them for two."""
    block = np.array([[5, 0, 5]], dtype=np.int32)
    chances = {}
    for name, keys in (("keys", keys_of((0.31,))), ("independent", None)):
        auditor = Auditor(model_of(1), Prior.flat(), AuditOptions(), keys)
        low, women = auditor.infer(block, np.zeros(1, dtype=bool), keep=0).probabilities.distributions([0])[0][2]
        chances[name] = women[3 - low] / women[5 - low]
    assert chances["keys"] > 1.15 * chances["independent"]


def test_bounds_and_proofs_do_not_rest_on_keys():
    model = model_of(3)
    rng = np.random.default_rng(9)
    block = 5 * rng.integers(4, 9, (1, 9)).repeat(40, axis=0) + 5 * rng.integers(-1, 2, (40, 9))
    block = block.astype(np.int32)
    found = [
        Auditor(model, Prior.flat(), AuditOptions(), keys).infer(block, np.zeros(40, dtype=bool))
        for keys in (None, keys_of((0.1, 0.3, 0.8)))
    ]
    for name in ("low", "high", "feasible"):
        assert np.array_equal(*(getattr(one.documented.tight, name) for one in found))
    certain = [one.claims.certain for one in found]
    assert np.array_equal(*certain)


# --- against simulated truth -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keyed(tmp_path_factory) -> dict[str, AuditFolder]:
    """A profile whose totals are in ten tables, audited with keys and without; `make keys` does this at length."""
    release, true = keyed_census(900, list(CONSTANTS[:6]), 2, parts=4)
    truth = release_of(true, release.columns)
    return {
        rounding: audit(release, tmp_path_factory.mktemp(rounding) / "audit", AuditOptions(rounding=rounding), truth=truth)
        for rounding in ("auto", "independent")
    }


def test_claims_are_right_as_often_as_stated_and_there_are_more(keyed):
    with_keys, without = (keyed[rounding].summary["truth"] for rounding in ("auto", "independent"))
    bands = {band["from"]: band for band in with_keys["calibration"]["findings"]}
    assert abs(bands[0.99]["right"] - bands[0.99]["stated"]) < 0.015
    sure = [
        sum(b["claims"] * (b["right"] or 0) for b in audited_["calibration"]["findings"] if b["from"] >= 0.95)
        for audited_ in (with_keys, without)
    ]
    assert sure[0] > 2 * sure[1]
    assert with_keys["wrong"]["likely"] < 0.1 * with_keys["checked"]["likely"]
    assert with_keys["wrong"]["proved"] == 0


def test_summary_report_and_explanations_tell(keyed):
    folder = keyed["auto"]
    keys = folder.summary["keys"]
    assert {table["table"] for table in keys["tables"]} <= {f"Table {k}" for k in range(6)}
    assert len(keys["tables"]) >= 5
    assert len(keys["repeats"]) == 3
    nothing = {"rounding": "independent", "tables": [], "repeats": [], "columns_withheld": 0}
    assert keyed["independent"].summary["keys"] == nothing
    likely = pl.read_parquet(folder.path / "findings.parquet").filter(kind="likely")
    place = {code: row for row, code in enumerate(folder.areas["region"].to_list())}
    cells = {column.codes: at for at, column in enumerate(folder.model.columns)}
    for claim in likely.gather_every(likely.height // 5).to_dicts():
        shown = explain_at(folder, place[claim["region"]], cells[claim["characteristic_id"], claim["sex"]])
        assert dict(shown.distribution)[claim["value"]] == pytest.approx(claim["probability"], abs=1e-9)
    said = key_sentences(folder.summary)
    assert said[0].startswith(f"In {len(keys['tables'])} tables, the random number of a total is the sum of its parts'")
    assert said[1].startswith("3 counts that appear in several tables are rounded with one random number")
    assert len(key_rows(folder.summary)) == len(keys["tables"])


def test_repeats_of_which_nothing_is_known_count_once(tmp_path):
    drift = np.linspace(0, 0.6, 700)
    release, true = keyed_census(700, [0.1, drift, 0.4], 7, parts=4)
    folder = audit(release, tmp_path / "audit", truth=release_of(true, release.columns))
    unknown = [one for one in folder.summary["keys"]["repeats"] if not one["constants"]]
    assert unknown
    score = folder.summary["truth"]
    assert score["wrong"]["likely"] <= 0.34 * score["checked"]["likely"] + 12


def test_areas_of_the_same_records_have_the_same_keys_and_add_nothing(tmp_path):
    """A subdivision of one area shows the same numbers in all its tables: they are no second rounding."""
    release, true = keyed_census(400, [0.1, 0.4, 0.75], 5, parts=4)
    counts = np.concatenate([block.counts for block in release.blocks()])
    names = [f"a{at}" for at in range(400)]
    areas = pl.DataFrame(
        {"region": [*names, *(f"p{name}" for name in names)], "parent": [*(f"p{name}" for name in names), *([None] * 400)]}
    )
    nested = release_of(np.concatenate([counts, counts]), release.columns, release.proposals, areas)
    truth = release_of(np.concatenate([true, true]), release.columns, frame=areas)
    folder = audit(nested, tmp_path / "nested", truth=truth)
    score = folder.summary["truth"]
    assert score["wrong"]["proved"] == 0
    both = [folder.summary["truth"]["checked"]["likely"], audit(release, tmp_path / "alone").summary["likely"]]
    assert both[0] <= 2.2 * both[1] + 20
    assert score["wrong"]["likely"] <= 0.3 * score["checked"]["likely"] + 10


# --- the user's word, and what cannot be -----------------------------------------------------------------------------


def test_a_plan_gives_constants_or_takes_them_away(tmp_path):
    release, _ = keyed_census(900, [0.0, 0.3], 3, parts=2)
    given = '[[keys]]\ntable = "Table 1"\nconstant = 0.25\n'
    folder = audit(said(release, given), tmp_path / "given")
    assert folder.keys.of_table("Table 1") == KeyedTable("Table 1", 0.25, 0.0, "given in the description")
    none = audit(said(release, '[[keys]]\ntable = "Table 1"\n'), tmp_path / "none")
    assert none.keys.of_table("Table 1") is None
    assert none.keys.of_table("Table 0") is not None


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ('table = "nowhere"\nconstant = 0.1', "there is no table 'nowhere'; tables: 'Table 0', 'Table 1'"),
        ('table = "Table 0"\nconstant = 1.5', "constant must be a number from 0 to below 1"),
        ('table = "Table 0"\nconstant = true', "constant must be a number from 0 to below 1"),
        ('table = "Table 0"\nshares = 0.5', "there is no key 'shares' in"),
    ],
)
def test_plans_that_cannot_be(tmp_path, entry, words):
    release, _ = keyed_census(60, [0.0, 0.3], 3)
    with pytest.raises(InputError, match=words):
        audit(said(release, f"[[keys]]\n{entry}"), tmp_path / "audit")


def test_unknown_roundings_are_refused():
    with pytest.raises(InputError, match="rounding must be auto or independent, not 'dependent'"):
        AuditOptions(rounding="dependent")


# --- weighted estimates ----------------------------------------------------------------------------------------------


def test_weighted_estimates_have_bounds_and_no_claims(tmp_path):
    release, true = keyed_census(3000, [0.5, 0.37], 4, whole=False)
    folder = audit(release, tmp_path / "audit")
    assert {how.name for how in folder.model.mechanisms} == {"weighted:rounding:5"}
    assert [folder.summary[kind] for kind in ("proved", "conditional", "likely")] == [0, 0, 0]
    assert "weighted:rounding:5" in folder.summary["mechanisms"]
    inferred = folder.auditor.infer(next(iter(release.blocks())).counts[:50], np.zeros(50, dtype=bool))
    tight = inferred.documented.tight
    assert (tight.low <= true[:50]).all()
    assert (tight.high >= true[:50]).all()


def test_windows_of_weighted_estimates_have_both_ends():
    for text, published, low, high in (
        ("rounding:5", 15, 10, 20),
        ("sample:5", 0, 0, 10),
        ("sample:5", 10, 0, 15),
        ("rounding:3", 6, 3, 9),
    ):
        how = mechanism(f"weighted:{text}")
        assert isinstance(how, Weighted)
        window = how.window(published)
        assert (window.low, window.high) == (low, high)
        assert how.name == f"weighted:{text}"
        assert how.likelihood(np.array([0, 5, 10, 15, 20, 25, 30, 3, 6, 9, 12]), np.array([[7]])).sum() == pytest.approx(1)
    with pytest.raises(InputError, match="needs the rounding of the estimates"):
        mechanism("weighted:nearest:5")


def test_keys_that_cannot_be_read_are_refused(tmp_path):
    (tmp_path / "keys.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match=r"keys\.json cannot be read"):
        Keys.load(tmp_path)
    keys = keys_of((0.1, 0.4))
    keys.save(tmp_path)
    assert Keys.load(tmp_path) == keys
    assert replace(keys, rounding="independent") != keys


def test_tables_of_ratios_are_the_law_worked_out_pair_by_pair() -> None:
    """What is looked up for plain roundings is what `meeting` gives for each pair."""
    for base, constant in ((5, 0.31), (3, 0.0), (5, 0.5)):
        ratios = _ratios(base, constant)
        assert ratios.shape == (5, 2 * base - 1, 2 * base - 1)
        for residual, first, second in product(range(-2, 3), range(1 - base, base), range(1 - base, base)):
            total = first + second + residual * base
            found = ratios[residual + 2, first + base - 1, second + base - 1]
            if abs(total) >= base:
                assert found == 1
                continue
            arcs = [arc_of(d < 0, 1 - abs(d) / base if d < 0 else abs(d) / base) for d in (total, first, second)]
            alone = np.prod([end - start for start, end in arcs])
            assert found == pytest.approx(float(meeting(tuple(arcs[1:]), arcs[0], constant)) / alone, abs=1e-9)


def test_counts_that_sums_cannot_tie_together_are_withheld(tmp_path):
    """With rows of two parts, the sums of all tables do not fit into one forest: what is left apart would count twice."""
    constants = [0.31, 0.8, 0.43, 0.62, 0.93, 0.55]
    known = {}
    for parts in (2, 3):
        release, _ = keyed_census(700, constants, 1, parts=parts)
        known[parts] = audit(release, tmp_path / str(parts)).summary
    assert known[3]["keys"]["columns_withheld"] == 0
    assert known[3]["likely"] > 5000
    assert known[2]["keys"]["columns_withheld"] > 0
    assert known[2]["held_back"]["likely"] > 1000
    assert any("likely claims there are withheld" in one for one in key_sentences(known[2]))
    assert not any("withheld" in one for one in key_sentences(known[3]))
