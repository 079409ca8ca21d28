"""inspect, audit and explain on the command line: what they print, what they write, and how they refuse."""

from __future__ import annotations

import json
import tempfile
import zipfile
from pathlib import Path

import pytest

from tests.conftest import Run
from unround import simulate
from unround.tables import fingerprint

SURVEY = str(Path(__file__).parents[1] / "examples" / "survey.toml")
ZIPPED = "98-401-X2021006_eng_CSV.zip"


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("census")
    (file, *_) = simulate(folder, areas=120, seed=3).files
    with zipfile.ZipFile(folder / ZIPPED, "w") as packed:
        packed.write(file, file.name)
    with (folder / "SIMULATED.txt").open("a", encoding="utf-8") as note:
        note.write(f"    {ZIPPED}  {fingerprint(folder / ZIPPED)}\n")
    return folder


def test_a_plan_is_drafted_edited_and_used(run: Run, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    ran = run("check", SURVEY, "--write", str(plan))
    assert ran.code == 0
    assert f"unround audit {plan} -o audit" in ran.err
    text = plan.read_text(encoding="utf-8")
    before = json.loads(run("audit", str(plan), "-o", str(tmp_path / "a"), "--json").out)
    plan.write_text(text.replace('"women"] }', '"women"], use = false }', 1), encoding="utf-8")
    assert plan.read_text(encoding="utf-8") != text
    after = json.loads(run("audit", str(plan), "-o", str(tmp_path / "b"), "--json").out)
    assert after["structure"]["sums_kept"] < before["structure"]["sums_kept"] == 18


def test_a_zipped_bulk_file_with_its_truth(run: Run, census: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit"
    ran = run(
        "audit", str(census / ZIPPED), "-o", str(out), "--truth", str(census / "truth.parquet"), "--estimates", "means"
    )
    assert ran.code == 0
    assert "Compared with the truth" in ran.out
    report = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert report["truth"]["wrong"]["proved"] == 0
    assert "--truth" in report["command"]
    assert report["product"] == "a census simulated by `unround simulate`"
    assert (out / "estimates.parquet").exists()


def test_the_same_command_gives_the_same_files(run: Run, census: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert run("audit", str(census / ZIPPED), "-o", str(tmp_path / name)).code == 0
    for name in ("findings.csv", "contradictions.csv", "proofs.jsonl.gz", "model/model.json", "report-public.html"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def refused(run: Run, *arguments: str, saying: str) -> None:
    ran = run(*arguments)
    assert ran.code == 2
    assert ran.err.startswith("error: ")
    assert saying in " ".join(ran.err.split())
    assert ran.out == ""


def test_files_that_cannot_be_read_are_refused(run: Run, census: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    refused(run, "audit", "nowhere.csv", "-o", str(out), saying="no file nowhere.csv")
    refused(run, "check", str(tmp_path), saying="folder")
    cut = tmp_path / "cut.zip"
    cut.write_bytes((census / ZIPPED).read_bytes()[:-400])
    refused(run, "audit", str(cut), "-o", str(out), saying="cut.zip")
    odd = tmp_path / "odd.csv"
    odd.write_text("region;count\nA;5\nB;10\n", encoding="utf-8")
    refused(run, "audit", str(odd), "-o", str(out), saying=f"unround describe {odd} --base 3 -o odd.toml")
    refused(run, "audit", SURVEY, "-o", str(out), "--format", "excel", saying="no format 'excel'")
    assert not out.exists()


def test_a_toml_that_names_what_is_not_there_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("area,age,n\nA,total,5\n", encoding="utf-8")
    toml = tmp_path / "t.toml"
    toml.write_text('data = "t.csv"\nvalue = "count"\ndefault = "rounding:5"\n[axes.area]\n[axes.age]\n', encoding="utf-8")
    refused(run, "audit", str(toml), "-o", str(tmp_path / "out"), saying="count")
    toml.write_text('data = "t.csv"\nvalue = "n"\nmechanisme = "rounding:5"\n', encoding="utf-8")
    refused(run, "check", str(toml), saying="mechanisme")
    assert not (tmp_path / "out").exists()


def test_folders_that_cannot_be_written_are_refused(run: Run, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    refused(run, "audit", SURVEY, "-o", str(blocked), saying="is a file")
    refused(run, "audit", SURVEY, "-o", str(blocked / "below"), saying="cannot write to")
    refused(run, "check", SURVEY, "--write", str(blocked / "plan.toml"), saying="cannot be written")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_questions_about_what_is_not_there_are_refused(run: Run, tmp_path: Path) -> None:
    out = str(tmp_path / "audit")
    refused(run, "explain", out, "D01", "total", saying="no folder")
    assert run("audit", SURVEY, "-o", out).code == 0
    refused(run, "explain", out, "D99", "total/men", saying="no area 'D99'")
    refused(run, "explain", out, "D0", "total/men", saying="no area 'D0'")
    refused(run, "explain", out, "D01", "15", "--sex", "men", saying="matches 2 characteristics")
    refused(run, "explain", out, "D01", "total", "--sex", "both", saying="no sex 'both'")


def test_a_full_temporary_folder_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("7 requested and 0 written")  # as numpy has it

    monkeypatch.setattr("unround.tables.spool.Spool.add", full)
    ran = run("check", SURVEY)
    assert ran.code == 2
    assert f"the temporary folder {tempfile.gettempdir()} cannot be used: 7 requested and 0 written" in ran.err
    assert "TMPDIR" in ran.err


def test_too_little_memory_ends_with_words(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("unround.tables.spool.Spool.add", too_much)
    ran = run("check", SURVEY)
    assert ran.code == 2
    assert "not enough memory" in ran.err
