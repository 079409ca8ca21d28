"""estimates.parquet with whole distributions; and CSV files with or without a byte-order mark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import unround
from tests.conftest import Run
from tests.shared import EXAMPLES
from unround import InputError

SURVEY = EXAMPLES / "survey.toml"
BOM = b"\xef\xbb\xbf"


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> unround.AuditFolder:
    return unround.audit(SURVEY, tmp_path_factory.mktemp("whole") / "audit", estimates="distributions", bom=True)


def test_distributions_are_those_that_explain_shows(audited: unround.AuditFolder) -> None:
    table = pl.read_parquet(audited.path / "estimates.parquet")
    assert table.height > 900
    assert (table["counts"].list.len() == table["probabilities"].list.len()).all()
    assert table["probabilities"].list.sum().is_between(1 - 1e-6, 1 + 1e-6).all()
    assert (table["counts"].list.min() >= table["low"]).all()
    assert (table["counts"].list.max() <= table["high"]).all()
    for area, key, age, sex in (("D08", "30-44/men", "30-44", "men"), ("D03", "15-64/men", "15-64", "men")):
        row = table.filter(district=area, age=age, sex=sex).to_dicts()[0]
        shown = unround.explain(audited, area, key).distribution
        assert list(zip(row["counts"], row["probabilities"], strict=True)) == [pytest.approx(pair) for pair in shown]
        assert row["mode"] in row["counts"]


def test_distributions_have_the_stated_means(audited: unround.AuditFolder) -> None:
    table = pl.read_parquet(audited.path / "estimates.parquet").filter(pl.col("counts").list.len() > 1)
    means = [np.dot(*pair) for pair in zip(table["counts"], table["probabilities"], strict=True)]
    # Distributions average over priors, means are those of the best: they differ where priors disagree.
    assert np.abs(np.array(means) - table["mean"].to_numpy()).max() < 0.5


def test_estimates_alone_are_means(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "audit"
    assert run("audit", str(SURVEY), "--estimates", "means", "-o", str(out), "--prior", "flat").code == 0
    assert "counts" not in pl.read_parquet_schema(out / "estimates.parquet")
    assert run("audit", str(SURVEY), "-o", str(out), "--prior", "flat", "--estimates", "distributions").code == 0
    assert "counts" in pl.read_parquet_schema(out / "estimates.parquet")
    ran = run("audit", str(SURVEY), "-o", str(out), "--estimates=everything")
    assert (ran.code, ran.err) == (2, "error: --estimates must be means or distributions, not 'everything'.\n")
    with pytest.raises(InputError, match="estimates must be means or distributions"):
        unround.audit(SURVEY, out, estimates="all")


def test_linked_areas_have_distributions_too(tmp_path: Path) -> None:
    made = unround.simulate(tmp_path / "census", areas=60, seed=4, levels="da,csd")
    folder = unround.audit(made.files[0], tmp_path / "audit", nesting=made.nesting, estimates="distributions", prior="flat")
    assert folder.nested is not None
    table = pl.read_parquet(folder.path / "estimates.parquet")
    linked = table.filter(pl.col("region").is_in(folder.areas["region"].gather(folder.nested.family(0)).to_list()))
    row = linked.filter(pl.col("counts").list.len() > 2).to_dicts()[0]
    shown = unround.explain(folder, row["region"], row["characteristic_id"], row["sex"]).distribution
    assert list(zip(row["counts"], row["probabilities"], strict=True)) == [pytest.approx(pair) for pair in shown]


def test_csv_files_have_a_byte_order_mark_only_if_asked(audited: unround.AuditFolder, survey_audit: Path) -> None:
    for name in ("findings.csv", "contradictions.csv"):
        assert (audited.path / name).read_bytes().startswith(BOM)
        assert not (survey_audit / name).read_bytes().startswith(BOM)
    assert pl.read_csv(survey_audit / "findings.csv").columns == audited.findings.columns
