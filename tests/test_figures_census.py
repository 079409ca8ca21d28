"""Figures of a whole census: those from published counts add no claim, those from true counts none that is wrong."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unround import simulate
from unround.audits.certificates import proofs_in
from unround.errors import InputError
from unround.explanation.cell import explain_at
from unround.job import AuditFolder, audit
from unround.job.folder import PROOFS
from unround.job.verify import verify
from unround.options import AuditOptions
from unround.show.audit import figures_used
from unround.tables import read

AREAS = 150


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("figures")
    for source in ("true", "published"):
        simulate(folder / source, areas=AREAS, seed=3, rows="income", figures=source)
    return folder


def audited(census: Path, source: str, figures: str) -> AuditFolder:
    out = census / f"audit-{source}-{figures}"
    if not out.exists():
        release = read(next((census / source).glob("*_data.csv")))
        truth = read(census / source / "truth.parquet")
        audit(release, out, AuditOptions(prior="flat", figures=figures), truth=truth)
    return AuditFolder.open(out)


def test_figures_from_published_counts_add_no_claim(census: Path) -> None:
    on, off = audited(census, "published", "verified"), audited(census, "published", "off")
    assert on.summary["figures_used"] == []
    assert on.summary["claims_because_of_figures"] == {"proved": 0, "conditional": 0, "likely": 0}
    assert on.findings.equals(off.findings)


def test_what_was_used_for_bounds_alone_is_said() -> None:
    def said(**used: tuple[int, int]) -> str:
        figures = [
            {"kind": kind, "in_probabilities": weighed} for kind, times in used.items() for weighed in (True, False)
            for _ in range(times[0 if weighed else 1])
        ]  # fmt: skip
        claims = {"proved": 0, "conditional": 7, "likely": 2}
        (sentence,) = figures_used({"figures_used": figures, "claims_because_of_figures": claims})
        return sentence

    mixed = said(rate=(3, 2), mean=(0, 1), median=(0, 4))
    assert "used for bounds and probabilities, but 2 rates, 1 mean, and 4 medians for bounds alone (--figures off" in mixed
    assert "used for bounds and probabilities (--figures off" in said(rate=(3, 0))
    assert "used for bounds alone (--figures off" in said(median=(0, 1))
    assert figures_used({"figures_used": []}) == []


def test_figures_from_true_counts_prove_nothing_false(census: Path) -> None:
    on, off = audited(census, "true", "verified"), audited(census, "true", "off")
    assert on.summary["proved"] == off.summary["proved"]
    because = on.summary["claims_because_of_figures"]
    assert because["proved"] == 0
    assert because["conditional"] > 5 * AREAS
    assert because["likely"] > 0
    wrong = on.summary["truth"]["wrong"]
    assert wrong["proved"] == wrong["conditional"] == 0
    assert on.summary["truth"]["outside_bounds"] == 0
    rest = on.findings.filter(pl.col("assumptions").str.contains("figures computed from unrounded counts"))
    assert set(rest["kind"]) == {"conditional", "likely"}


def test_explain_shows_the_arithmetic(census: Path) -> None:
    folder = audited(census, "true", "verified")
    rows = folder.findings.filter(pl.col("route").str.starts_with("rate 342 of 337"), pl.col("kind") == "conditional")
    row = rows.row(0, named=True)
    regions = folder.areas["region"].to_list()
    code, sex = row["characteristic_id"], row["sex"]
    shown = explain_at(folder, regions.index(row["region"]), folder.model.index[code if sex == "total" else f"{code}/{sex}"])
    assert shown.kind == "conditional"
    assert shown.argument is not None
    assert "% published): " in shown.argument
    assert "figures computed from unrounded counts and rounded to the nearest step" in shown.because
    assert any("Figures (rates, means, medians)" in assumption for assumption in shown.assumptions)


def test_verify_compares_figures_with_what_was_published(census: Path) -> None:
    folder = audited(census, "true", "verified")
    assert verify(folder.path).holds
    lines = list(proofs_in(folder.path / PROOFS))
    with_figures = [json.loads(line) for line in lines if '"figures"' in line]
    checker, refused = _checker(folder), list[str | None]()
    for told in with_figures[:200:5]:
        assert checker(told) is None
        changed = json.loads(json.dumps(told))
        changed["figures"][0]["value"] = str(Fraction(changed["figures"][0]["value"]) + 1)
        assert checker(changed) is not None
        coarser = json.loads(json.dumps(told))
        coarser["figures"][0]["grid"] = [["0", str(Fraction(told["figures"][0]["grid"][0][1]) / 2)]]
        assert checker(coarser) is not None
        proved = {**told, "kind": "proved"}
        other = json.loads(json.dumps(told).replace(f'"{told["figures"][0]["name"]}"', '"0"'))
        refused += [checker(proved), checker(other)]
    assert None not in refused
    assert any("was not documented to be of true counts" in one for one in refused if one)
    assert any("is not a figure of this release" in one for one in refused if one)


def _checker(folder: AuditFolder):  # type: ignore[no-untyped-def] # a function of plain data
    from unround.job.verify import _Certificates, _claimed

    checked, claimed = _Certificates(folder), _claimed(folder)
    return lambda problem: checked.fault(json.dumps(problem), claimed)[1]


def test_figures_only_narrow_what_is_possible(census: Path) -> None:
    folder = audited(census, "true", "verified")
    rows = np.arange(AREAS)
    values = folder.figures_of(rows)
    assert values is not None
    inferred = folder.auditor.infer(folder.counts_of(rows), np.zeros(AREAS, dtype=bool), figures=values)
    assert inferred.figured is not None
    assert inferred.figured.bounds.tight.feasible.all()
    width = inferred.figured.bounds.tight.high.astype(int) - inferred.figured.bounds.tight.low
    before = inferred.documented.tight.high.astype(int) - inferred.documented.tight.low
    assert (width <= before).all()
    there = before < 100  # in areas that are hidden, nothing bounds a count
    assert width[there].sum() < 0.95 * before[there].sum()


def test_figures_is_verified_or_off() -> None:
    with pytest.raises(InputError, match="figures must be verified or off, not 'on'"):
        AuditOptions(figures="on")
