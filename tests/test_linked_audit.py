"""Audits of areas within areas: against truth, certificates and each other; and what must not be linked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from starlette.testclient import TestClient

import unround
from tests.conftest import Run
from tests.shapes import examples
from unround import check_proof
from unround.audits.certificates import proofs_in, read_proof, write_proofs
from unround.audits.claims import REASONS, RestsOn
from unround.bounds.prover import BETWEEN
from unround.engines import linked_weights
from unround.engines.linked_weights import CHAINS, GIBBS, METHODS, OWN, Method
from unround.explanation.cell import explain_at
from unround.job import AuditFolder, audit
from unround.job.folder import OURS, seal
from unround.mechanisms import Exact, Rounding
from unround.options import AuditOptions
from unround.release import Block, Column, Proposal, Release
from unround.show.report import page
from unround.show.words import percent
from unround.web.app import explorer_app
from unround.web.guard import hosts_for
from unround.web.trial import Bench

SEXES = ("total", "men", "women")
LINES = ("all", "young", "a", "b", "c", "old", "d", "e")
SUMS = ((0, (1, 5)), (1, (2, 3, 4)), (5, (6, 7)))
BASE = 3
WARDS = (1, 2, 3, 7, 5, 4)
"""How many wards districts have, in turn: some for every method."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Country:
    """Wards in districts in regions, true counts that add up, and what was published of them."""

    areas: pl.DataFrame
    true: Ints
    shown: Ints
    exact: bool = True

    def release(self, *, true: bool = False) -> Release:
        """Return it as a release: the rounded one, or the true one."""
        how = [Exact() if true or (self.exact and at == 0) else Rounding(BASE) for at in range(len(LINES) * len(SEXES))]
        columns = [
            Column(f"{line}/{sex}" if sex != "total" else line, (line, sex), line, "Ages", mechanism=how[at])
            for at, (line, sex) in enumerate((line, sex) for line in LINES for sex in SEXES)
        ]
        by_age = [
            Proposal(3 * total + s, tuple(3 * part + s for part in parts), "file") for total, parts in SUMS for s in range(3)
        ]
        by_sex = [Proposal(3 * line, (3 * line + 1, 3 * line + 2), "file") for line in range(len(LINES))]
        block = Block(self.areas, (self.true if true else self.shown).astype(np.int32))
        proposals = (*by_age, *by_sex)
        axes = ("characteristic_id", "sex")
        return Release("test", "test", tuple(columns), axes, ("region",), lambda _: [block], proposals=proposals)

    def without(self, gone: str) -> Country:
        """Leave an area out."""
        keep = (self.areas["region"] != gone).to_numpy()
        return replace(self, areas=self.areas.filter(pl.Series(keep)), true=self.true[keep], shown=self.shown[keep])

    def at(self, code: str) -> int:
        """Return the row of an area."""
        return self.areas["region"].to_list().index(code)


def country(seed: int = 1, districts: int = 60, mean: float = 5.0, exact: bool = True, regions: int = 12) -> Country:
    """Draw districts of some wards, and some regions of 3 districts."""
    rng = np.random.default_rng(seed)
    rows, counts = list[tuple[str, str, str | None]](), list[Ints]()
    for district in range(districts):
        name, region = f"D{district:03}", f"R{district // 3:02}"
        children = []
        for ward in range(WARDS[district % len(WARDS)]):
            people = rng.poisson(mean * rng.gamma(2.0, 0.5, (5, 1)), (5, 2))
            line = np.stack([people.sum(0), people[:3].sum(0), *people[:3], people[3:].sum(0), *people[3:]])
            children.append(np.concatenate([line.sum(1, keepdims=True), line], axis=1).ravel())
            rows.append((f"W{district:03}-{ward}", "ward", name))
        counts += [*children, np.sum(children, axis=0)]
        rows.append((name, "district", region if district < 3 * regions else None))
    for region in range(regions):
        inside = [k for k, (_, level, above) in enumerate(rows) if level == "district" and above == f"R{region:02}"]
        counts.append(np.sum([counts[k] for k in inside], axis=0))
        rows.append((f"R{region:02}", "region", None))
    true = np.array(counts)
    luck = rng.random(true.shape)
    shown = true - true % BASE + BASE * (luck < (true % BASE) / BASE)
    if exact:
        shown[:, 0] = true[:, 0]
    frame = pl.DataFrame(rows, schema={"region": pl.String, "level": pl.String, "parent": pl.String}, orient="row")
    return Country(frame.with_columns(adjustable=pl.lit(False)), true, shown, exact)


def audited(made: Country, out: Path, **options: object) -> AuditFolder:
    """Audit it against the truth."""
    return audit(made.release(), out, AuditOptions(**options), truth=made.release(true=True))  # type: ignore[arg-type]


@pytest.fixture(scope="module", autouse=True)
def messages_at_base_3() -> Iterator[None]:
    """Let large families exchange messages, which are otherwise sampled at base 3: so every method has its areas."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linked_weights, "NARROW", 0.0)
        yield


@pytest.fixture(scope="module")
def small() -> Country:
    return country()


@pytest.fixture(scope="module")
def linked(small: Country, tmp_path_factory: pytest.TempPathFactory) -> AuditFolder:
    return audited(small, tmp_path_factory.mktemp("linked"))


@pytest.fixture(scope="module")
def alone(small: Country, tmp_path_factory: pytest.TempPathFactory) -> AuditFolder:
    return audited(small, tmp_path_factory.mktemp("alone"), link=False)


def likely(folder: AuditFolder) -> tuple[int, float, float]:
    """Return how many likely claims there are, how often they should be right, and how often they are."""
    bands = folder.summary["truth"]["calibration"]["findings"]
    number = sum(band["claims"] for band in bands)
    stated, right = (sum(band["claims"] * (band[name] or 0) for band in bands) / number for name in ("stated", "right"))
    return number, stated, right


def proved_in(folder: AuditFolder) -> Iterator[dict[str, object]]:
    for line in proofs_in(folder.path / "proofs.jsonl.gz"):
        yield json.loads(line)


# -- claims -----------------------------------------------------------------------------------------------------------


def test_other_areas_give_more_away_and_claims_stay_right(linked: AuditFolder, alone: AuditFolder) -> None:
    for folder in (linked, alone):
        wrong = folder.summary["truth"]["wrong"]
        assert (wrong["proved"], wrong["conditional"]) == (0, 0)
        number, stated, right = likely(folder)
        assert abs(right - stated) < 0.02 + 2 * (stated * (1 - stated) / number) ** 0.5
    assert linked.summary["likely"] > alone.summary["likely"]
    assert linked.summary["proved"] > alone.summary["proved"]
    joined = linked.summary["linked"]
    assert sum(joined["areas_by_method"].values()) == linked.summary["areas"]
    assert set(joined["areas_by_method"]) >= {"merged", "sampled", "messages"}
    assert [(level["parents"], level["linked"]) for level in joined["levels"]] == [(60, 60), (12, 12)]
    assert sum(joined["likely_by_method"].values()) == linked.summary["likely"]
    by_method = linked.summary["truth"]["by_method"]
    assert {name: part["findings"]["cells"] for name, part in by_method.items()} == joined["likely_by_method"]
    need = joined["claims_that_need_other_areas"]
    assert need["proved"] > 0
    assert need["likely"] > 0
    routes = linked.findings.filter(pl.col("route").str.starts_with("areas "))
    assert routes.filter(pl.col("kind") == "proved").height == need["proved"]
    listed = routes.filter(pl.col("kind") == "likely").height
    assert need["likely"] - linked.summary["zeros_not_listed"] <= listed <= need["likely"]
    assert set(linked.findings["method"]) <= {method["name"] for method in joined["methods"]}


def test_without_links_it_is_the_audit_of_areas_that_have_nothing_to_do_with_each_other(
    small: Country, alone: AuditFolder, tmp_path: Path
) -> None:
    apart = replace(small, areas=small.areas.with_columns(parent=pl.lit(None, dtype=pl.String)))
    other = audited(apart, tmp_path / "apart")
    assert other.findings.equals(alone.findings)
    assert (other.path / "proofs.jsonl.gz").read_bytes() == (alone.path / "proofs.jsonl.gz").read_bytes()
    # The check of the release looks at areas within areas whether or not they are linked, and the list of areas names them.
    apart_from = dict.fromkeys(("check", "files", "seal"))
    assert other.summary | apart_from == alone.summary | apart_from


def test_blocks_of_any_size_find_the_same(tmp_path: Path) -> None:
    made = country(districts=30, regions=4)
    one, other = audited(made, tmp_path / "one"), audited(made, tmp_path / "other", block=7)
    assert other.run["blocks"] > 8 > one.run["blocks"]
    names = sorted(str(path.relative_to(one.path)) for path in one.path.rglob("*") if path.is_file())
    assert names == sorted(str(path.relative_to(other.path)) for path in other.path.rglob("*") if path.is_file())
    for name in names:
        if name.endswith(".parquet"):
            assert pl.read_parquet(other.path / name).equals(pl.read_parquet(one.path / name)), name
        elif name != "run.json":
            assert (other.path / name).read_bytes() == (one.path / name).read_bytes(), name


def test_every_certificate_checks_without_the_engine(linked: AuditFolder) -> None:
    across = 0
    for line in proved_in(linked):
        system, proof = read_proof(line)
        assert check_proof(system, proof)
        others = {str(cell.name).partition(BETWEEN)[0] for cell in system.cells if BETWEEN in cell.name}
        across += len(others) > 1
    assert across == sum(
        linked.summary["linked"]["claims_that_need_other_areas"][kind] for kind in ("proved", "conditional")
    )


def test_proofs_rest_on_families_only_where_these_are_complete_to_the_last_person(tmp_path: Path) -> None:
    folder = audited(country(exact=False, districts=36), tmp_path / "rounded")
    need = folder.summary["linked"]["claims_that_need_other_areas"]
    assert need["proved"] == 0
    assert need["conditional"] > 0
    across = folder.findings.filter((pl.col("kind") == "conditional") & pl.col("route").str.starts_with("areas "))
    assert across.height == need["conditional"]
    assert across["assumptions"].str.contains(REASONS[RestsOn.COMPLETE_FAMILY], literal=True).all()
    assert folder.summary["truth"]["wrong"] | {"likely": 0} == {"proved": 0, "conditional": 0, "likely": 0}


# -- what is not linked -----------------------------------------------------------------------------------------------


def elsewhere(folder: AuditFolder, gone: set[str]) -> pl.DataFrame:
    return folder.findings.filter(~pl.col("region").is_in(list(gone))).sort("region", "characteristic_id", "sex")


def test_an_area_that_is_no_sum_of_its_own_is_a_contradiction_and_spoils_nothing_else(tmp_path: Path) -> None:
    plain = country(districts=12, regions=0, mean=20)
    # Women become men: within the district everything still adds up, and only its wards betray it.
    district, column = plain.at("D004"), 3 * LINES.index("d") + 1
    men = [3 * LINES.index(line) + 1 for line in ("d", "old", "all")]
    shown = plain.shown.copy()
    shown[district, men] += 48
    shown[district, [at + 1 for at in men]] -= 48
    assert shown[district].min() >= 0
    tampered = replace(plain, shown=shown)
    before = audited(plain, tmp_path / "before", prior="flat")
    after = audited(tampered, tmp_path / "after", prior="flat")
    assert before.summary["contradictions"] == 0
    assert after.summary["contradictions_by_kind"].get("areas") == 1
    clashes = pl.read_csv(after.path / "contradictions.csv").filter(pl.col("kind") == "areas")
    assert clashes["region"].to_list() == ["D004"]
    assert "the 5 areas within it" in clashes["clash"][0]
    assert after.summary["linked"]["levels"][0]["rejected"] == {"some count cannot be the sum of the children's": 1}
    family = {"D004", *(f"W004-{ward}" for ward in range(5))}
    assert set(after.findings.filter(pl.col("region").is_in(list(family)))["method"]) <= {"own area"}
    assert elsewhere(before, family).equals(elsewhere(after, family))
    told = page(after)
    assert "cannot be the sum of its parts" in told
    assert explain_at(after, int(np.flatnonzero(after.areas["region"].to_numpy() == "D004")[0]), column).contradictions


def test_a_family_of_which_a_ward_is_missing_is_left_alone(tmp_path: Path) -> None:
    plain = country(districts=12, regions=0)
    before = audited(plain, tmp_path / "before", prior="flat")
    after = audited(plain.without("W004-2"), tmp_path / "after", prior="flat")
    (level,) = after.summary["linked"]["levels"]
    assert (level["parents"], sum(level["rejected"].values())) == (11, 1)
    family = {"D004", *(f"W004-{ward}" for ward in range(5))}
    assert set(after.findings.filter(pl.col("region").is_in(list(family)))["method"]) <= {"own area"}
    assert elsewhere(before, family).equals(elsewhere(after, family))
    assert after.summary["truth"]["wrong"]["proved"] == 0


# -- what is shown ----------------------------------------------------------------------------------------------------


def some(folder: AuditFolder, kind: str) -> list[dict[str, object]]:
    """Return two findings by each method, those that need other areas first."""
    rows = folder.findings.filter(pl.col("kind") == kind)
    order = rows.with_columns(first=~pl.col("route").str.starts_with("areas ")).sort("first", maintain_order=True)
    return order.group_by("method", maintain_order=True).head(2).to_dicts()


def place(folder: AuditFolder, row: dict[str, object]) -> tuple[int, int]:
    codes = row["characteristic_id"], row["sex"]
    cell = next(at for at, column in enumerate(folder.model.columns) if column.codes == codes)
    return folder.areas["region"].to_list().index(row["region"]), cell


@pytest.mark.parametrize("kind", ["likely", "proved"])
def test_explanations_show_the_numbers_that_were_claimed(linked: AuditFolder, kind: str) -> None:
    rows = some(linked, kind)
    assert len({row["method"] for row in rows}) >= 3
    for row in rows:
        one = explain_at(linked, *place(linked, row))
        assert (one.kind, one.value, one.probability) == (row["kind"], row["value"], pytest.approx(row["probability"]))
        chances = dict(one.distribution)
        assert chances[one.value] == pytest.approx(row["probability"], abs=1e-9)
        assert sum(chances.values()) == pytest.approx(1)
        assert one.mean == pytest.approx(sum(value * p for value, p in chances.items()), abs=1e-6)
        needs = str(row["route"]).startswith("areas ")
        if needs:
            assert one.others is not None
            assert {area.role for area in one.others.areas} <= {"the same area", "contains it", "beside it", "part of it"}
            assert one.others.areas
        if kind == "likely" and needs:
            assert one.others is not None
            assert one.others.method == row["method"]
            assert one.own is not None
            assert (one.others.rhat is None) == (row["method"] != "sampled")
        if kind == "proved" and needs:
            assert one.argument is not None
            named = [area.name for area in one.others.areas] if one.others else []
            assert any(f" in {name}" in one.argument for name in named)
            assert BETWEEN not in one.argument


@pytest.mark.parametrize("method", METHODS[:CHAINS], ids=lambda method: method.name)
def test_the_last_number_of_an_explanation_is_that_of_the_finding(
    linked: AuditFolder, alone: AuditFolder, method: Method
) -> None:
    """Whatever the method: the engine that made the claim explains it. `test_keys_audit` does this for keys."""
    folder = alone if method.code == OWN else linked
    claims = folder.findings.filter(pl.col("kind") == "likely")
    claims = claims if method.code == OWN else claims.filter(pl.col("method") == method.name)
    shown = claims.gather_every(max(1, claims.height // 4)).to_dicts()
    assert len(shown) >= 3
    for row in shown:
        one = explain_at(folder, *place(folder, row))
        assert one.to_json()["probability"] == pytest.approx(row["probability"], abs=1e-9)
        assert dict(one.distribution)[row["value"]] == pytest.approx(row["probability"], abs=1e-9)
        assert max(p for _, p in one.distribution) == pytest.approx(row["probability"], abs=1e-9)


def test_the_explorer_shows_linked_areas(linked: AuditFolder) -> None:
    bench = Bench()
    client = TestClient(explorer_app(linked.path, hosts_for("127.0.0.1"), bench), base_url="http://127.0.0.1")
    for kind in ("likely", "proved"):
        for row in some(linked, kind):
            line, sex = row["characteristic_id"], row["sex"]
            key = line if sex == "total" else f"{line}/{sex}"
            shown = client.get(f"/area/{row['region']}/{key}")
            assert shown.status_code == 200
            page_data = client.get(f"/area/{row['region']}/{key}.json").json()
            assert page_data["probability"] == pytest.approx(row["probability"])
            needs = str(row["route"]).startswith("areas ")
            assert ("Other areas" in shown.text) >= needs
            assert client.get(f"/area/{row['region']}").status_code == 200
            if kind == "proved":
                line = client.get(f"/certificate/{row['region']}/{key}.json").json()
                assert check_proof(*read_proof(line))
    bench.close()


def test_the_report_says_which_kind_of_number_each_is(linked: AuditFolder, alone: AuditFolder) -> None:
    for public in (False, True):
        told = page(linked, public=public)
        assert 'id="areas"' in told
        for said in (
            "ward in district",
            "district in region",
            "sampled",
            "messages",
            percent(METHODS[GIBBS].worst),
            "Claims that need other areas",
        ):
            assert said in told
    assert 'id="areas"' not in page(alone, public=True)
    assert "W004" not in page(linked, public=True)


# -- real areas -------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(examples(1) == 1, reason="half a minute: part of `make thorough`")
def test_new_zealand_small_areas_districts_and_regions_in_one_command(run: Run, census_data: Path, tmp_path: Path) -> None:
    files = [census_data / f"nz-2013-individual-{level}.csv.gz" for level in ("sa2", "ta", "rc")]
    if not all(file.exists() for file in files):
        pytest.skip("the files of 2013 are not there")
    areas = census_data / "nz-2018-areas.csv.gz"
    out = tmp_path / "nz"
    ran = run("audit", *map(str, files), "--nesting", str(areas), "-o", str(out))
    assert ran.code == 0, ran.err
    folder = AuditFolder.open(out)
    assert sum(level["linked"] for level in folder.summary["linked"]["levels"]) > 10
    for line in proved_in(folder):
        assert check_proof(*read_proof(line))


def test_certificates_of_families_are_verified_against_all_their_areas(linked: AuditFolder, tmp_path: Path) -> None:
    assert unround.verify(linked).problems == ()
    shutil.copytree(linked.path, tmp_path / "audit")
    file = tmp_path / "audit" / "proofs.jsonl.gz"
    lines = [json.loads(line) for line in proofs_in(file)]
    number, between = next(
        (k, sum_)
        for k, line in enumerate(lines)
        if "area" in line["cells"][0]
        for sum_ in line["sums"]
        if sum_["total"].split(" · ")[0] != sum_["parts"][0].split(" · ")[0]
    )
    between["parts"].pop()  # an area is left out
    write_proofs(file, lines)
    seal(tmp_path / "audit", OURS)
    problem, *_ = unround.verify(tmp_path / "audit").problems
    assert f"line {number + 1}:" in problem


def test_chains_that_cannot_move_say_nothing(tmp_path: Path) -> None:
    """Eight hidden counts in a ring: 43 tables fit, and each draw given the others leaves none but the one it began with."""
    table = """Area,Total,A,B,C,D
Aldham,188,c,c,43,37
Borwick,120,28,c,c,41
Chester,184,52,49,c,c
Dalton,177,c,55,59,c
Total,669,170,194,180,125
c confidential
"""
    (tmp_path / "ring.csv").write_text(table)
    folder = unround.audit(tmp_path / "ring.csv", tmp_path / "audit")
    hidden = pl.read_parquet(tmp_path / "audit" / "hidden.parquet")
    assert (hidden["high"] - hidden["low"]).to_list() == [42] * 8
    assert folder.findings.height == 0
    assert ["did not converge" in entry["why"] for entry in folder.summary["unsettled"]] == [True]
    assert unround.review(tmp_path / "ring.csv", repairs=()).decision == "undecided"
