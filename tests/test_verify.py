"""Verifying an audit folder: whatever was changed in it is found, and every command refuses a damaged one with words."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import unround
from unround import AuditFolder
from unround.audits import certificates
from unround.audits.certificates import proofs_in, write_proofs
from unround.job.folder import OURS, Damaged, seal

Lines = list[dict[str, Any]]


@pytest.fixture
def folder(audited_census: Path, tmp_path: Path) -> Path:
    """A copy of an audit that may be damaged."""
    shutil.copytree(audited_census, tmp_path / "audit")
    return tmp_path / "audit"


def rewritten(folder: Path, change: Callable[[Lines], object]) -> Sequence[str]:
    """Change the certificates, and the hashes with them, as somebody would who knows how; return what is wrong then."""
    file = folder / "proofs.jsonl.gz"
    lines = [json.loads(line) for line in proofs_in(file)]
    change(lines)
    write_proofs(file, lines)
    seal(folder, OURS)
    return unround.verify(folder).problems


def test_an_audit_is_as_it_was_left(folder: Path) -> None:
    verification = unround.verify(folder)
    assert verification.holds
    certain = pl.read_parquet(folder / "findings.parquet").filter(pl.col("kind") != "likely").height
    assert verification.certificates == verification.findings == certain > 0
    assert verification.files == len(AuditFolder.open(folder).summary["files"]) >= 9
    assert unround.verify(AuditFolder.open(folder)) == verification


def invented(lines: Lines) -> None:
    """A certificate that checks, of a value that is false, about a system that nobody published."""
    cell = lines[0]["key"]
    exact = {"name": cell, "published": 7, "mechanism": "exact"}
    steps = [
        {"step": k, "cell": cell, "bound": side, "value": 7, "by": "published", "uses": []}
        for k, side in enumerate(("low", "high"), 1)
    ]
    claim = {"cell": cell, "value": 7, "text": f"{cell} = 7 (exact). So {cell} = 7.", "depth": 0, "rests_on": []}
    lines[0].update(claim, cells=[exact], sums=[], steps=steps)


def test_bytes_that_are_no_text_are_no_certificate(folder: Path) -> None:
    file = folder / "proofs.jsonl.gz"
    first, *others = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    file.write_bytes(gzip.compress(b"".join([first.replace(b'"text": "', b'"text": "\xb0'), *others])))
    seal(folder, OURS)
    problems = unround.verify(folder).problems
    assert problems[0].startswith("proofs.jsonl.gz, line 1: this is not a certificate")
    assert "without a certificate" in problems[1]
    assert len(problems) == 2


@pytest.mark.parametrize("how", [lambda packed: packed[:-20], lambda packed: b"{}\n" + packed])
def test_certificates_that_cannot_be_unpacked_are_none(folder: Path, how: Callable[[bytes], bytes]) -> None:
    file = folder / "proofs.jsonl.gz"
    file.write_bytes(how(file.read_bytes()))
    seal(folder, OURS)
    problems = unround.verify(folder).problems
    assert any("proofs.jsonl.gz cannot be unpacked" in problem for problem in problems), problems
    with pytest.raises(unround.InputError, match=r"proofs\.jsonl\.gz"):
        unround.audit(folder)


def test_a_line_without_an_end_does_not_fill_the_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "LONGEST_LINE", 1_000)
    with gzip.open(folder / "proofs.jsonl.gz", "wb") as file:
        file.write(b" " * 2_500)
    assert [len(line) for line in certificates.proofs_in(folder / "proofs.jsonl.gz")] == [1_000, 1_000, 500]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda lines: lines[0].update(value=lines[0]["value"] + 1), "line 1: it does not check"),
        (lambda lines: lines[0].update(text="Take it from me."), "line 1: its text is not what its steps say"),
        (lambda lines: lines[0].update(kind="certain"), "it is not what findings.parquet says"),
        (lambda lines: lines[0].update(key="no such"), "there is no count"),
        (lambda lines: lines[0].update(region="nowhere"), "there is no count nowhere"),
        (lambda lines: lines[0]["cells"][0].update(name="no such"), "this is not a certificate|does not check"),
        (lambda lines: lines[0].pop("steps"), "this is not a certificate"),
        (lambda lines: lines[0].update(cells=7), "this is not a certificate"),
        (lambda lines: lines.pop(0), "without a certificate"),
        (lambda lines: lines.append(lines[0]), "has 2 certificates"),
        (invented, "was not published as it says|it is not what"),
        (
            lambda lines: lines[0]["sums"].append(
                {"total": lines[0]["cells"][0]["name"], "parts": [lines[0]["cells"][1]["name"]]}
            ),
            "is no sum of this release",
        ),
    ],
)
def test_a_certificate_that_was_tampered_with_is_found(
    folder: Path, change: Callable[[Lines], object], problem: str
) -> None:
    problems = rewritten(folder, change)
    assert any(pl.Series([one]).str.contains(problem)[0] for one in problems), problems


def test_a_claim_that_was_made_stronger_is_found(folder: Path) -> None:
    """A finding that is conditional is not proved because somebody says so, in both files."""
    lines = [json.loads(line) for line in proofs_in(folder / "proofs.jsonl.gz")]
    frame = pl.read_parquet(folder / "findings.parquet")
    frame = frame.with_columns(pl.col("kind").replace({"conditional": "proved"}))
    frame.write_parquet(folder / "findings.parquet")
    conditional = sum(line["kind"] == "conditional" for line in lines)
    assert conditional
    problems = rewritten(folder, lambda lines: [line.update(kind="proved") for line in lines])
    assert len(problems) == conditional


@pytest.mark.parametrize("how", ["emptied", "cut", "flipped", "removed"])
def test_every_damaged_file_is_named_by_whoever_needs_it(folder: Path, how: str) -> None:
    """No damage leads to a traceback, or to a result that rests on it."""
    names = [*AuditFolder.open(folder).summary["files"], "summary.json"]
    code, cell = AuditFolder.open(folder).areas["region"][0], AuditFolder.open(folder).model.columns[0]
    for name in names:
        file, content = folder / name, (folder / name).read_bytes()
        if how == "removed":
            file.unlink()
        else:
            middle = len(content) // 2
            flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
            file.write_bytes({"emptied": b"", "cut": content[:middle], "flipped": flipped}[how])
        if name == "summary.json" and how == "removed":
            with pytest.raises(unround.InputError, match="no finished audit"):
                unround.verify(folder)
        else:
            verification = unround.verify(folder)
            assert [problem for problem in verification.problems if problem.startswith(name)], (name, verification.problems)
        if name.startswith("model/") or name == "summary.json":
            with pytest.raises(unround.InputError, match=name if name != "summary.json" else "audit"):
                unround.explain(folder, code, cell.codes[0])
        elif name in ("findings.parquet", "proofs.jsonl.gz"):
            with pytest.raises(Damaged, match=name):
                unround.audit(folder)
        file.write_bytes(content)
    assert unround.verify(folder).holds


def test_a_file_that_nobody_made_is_named(folder: Path) -> None:
    (folder / "model" / "more.npz").write_bytes(b"")
    assert unround.verify(folder).problems == ("model/more.npz was put there after the audit.",)


def test_the_command_says_what_is_wrong_and_ends_with_1(folder: Path, run: Any) -> None:
    done = run("verify", str(folder))
    assert done.code == 0
    assert "certificates checked against the published counts" in done.out
    (folder / "findings.csv").write_text("nothing", encoding="utf-8")
    done = run("verify", str(folder))
    assert done.code == 1
    assert "findings.csv is not as the audit left it" in done.out
    assert json.loads(run("verify", str(folder), "--json").out)["holds"] is False
    assert run("verify", str(folder / "model")).code == 2
