"""Texts that are there to break a parser: equations, TOML, hierarchies, plans, mechanisms. All are refused, in words."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

import pytest
from fuzz.drawn import run_drawn
from fuzz.oracle import Fault, count_of, judged, limited
from fuzz.target import Target
from fuzz.targets import AUDIT_FILES, BY_NAME, CORPUS, TARGETS

from tests.test_hostile_files import MEMORY, THOROUGH, bounded, put, whole
from unround import parse
from unround.audits.certificates import proofs_in, read_proof
from unround.errors import InputError
from unround.explanation.cell import explain_in, infer_area
from unround.job import AuditFolder
from unround.mechanisms import mechanism
from unround.small_files import parsed_toml
from unround.tables import read
from unround.tables.description import make_description
from unround.tables.hierarchy import fit, read_hierarchy

DEEP = 100_000


def refused(text: str, reader: object = parse) -> str:
    with bounded(memory=4 * MEMORY), pytest.raises(InputError) as caught:
        reader(text)  # type: ignore[operator]
    assert len(str(caught.value)) < 5_000
    return str(caught.value)


# Equations


@pytest.mark.parametrize(
    "text",
    [
        "(" * DEEP + "1" + ")" * DEEP, "48! = " + "(" * DEEP, "[" * DEEP, "=" * DEEP, "+" * DEEP, "?" * DEEP, "@" * DEEP,
        "5 @" + "suppressed:1..7," * 10_000 + "exact", "1e999999999 = 5", "48! = 1e400", "9" * 1_000_000,
        "5 @" + "9" * 100_000,
        "5 @rounding:1e999999999", "5 @laplace:1e999999999", "5 @residues:0,1e999999999", "5 @residues:0,1e-999",
        "5 @digits:999999999", "5 @within:" + "9" * 5_000, "5 @transition:0=1e999999999", "5 @transition:99999999999999=1",
        "5 ~99999999999", "?0..99999999999 = 5", "-" * DEEP, "a: " * DEEP, '"' + "x" * 1_000_000, "\0", "48! = 20 +\0 20",
        "1,23 = 5", "0x10 = 5", "1_000 = 10.5", "inf = nan", "5 @graduated:0=" + "9" * 30,
        "5 @graduated:0=3,99999999999999999999=5",
        "½ = 5", "² = 5", "1" + ",111" * 100_000 + "x", "1 " * DEEP, "\ud800 = (",
    ],
    ids=lambda text: text[:24],
)  # fmt: skip
def test_equations_that_nobody_can_mean(text: str) -> None:
    refused(text)


def test_digits_of_other_scripts_are_digits() -> None:
    assert parse("١٢! = 5 + 10").cells[0].published == 12


def test_equations_of_very_many_cells() -> None:
    many = 1_000_000 if THOROUGH else 30_000
    with bounded(memory=4 * MEMORY):
        system = parse("total: 5 = " + " + ".join(f"c{n}: 5" for n in range(many)))
    assert len(system.cells) == many + 1
    assert "there is no cell named" in refused("5 = " + " + ".join(f"c{n}: 5" for n in range(many)) + " + unknown")
    assert "twice" in refused("a: 5\n5 = " + "a + " * many + "a")


def test_a_spot_in_a_line_without_end_is_shown_with_what_is_around_it() -> None:
    said = refused("5 = " + "5 + " * DEEP + "<")
    assert said.splitlines()[-1].strip() == "^"
    assert said.splitlines()[-2][said.splitlines()[-1].index("^")] == "<"


# Mechanisms


@pytest.mark.parametrize(
    "text",
    [
        "suppressed:1..7," * DEEP, "rounding:" + "9" * 100_000, "residues:" + "0," * 1_000_000,
        "transition:0=1,99999999=0.5",
        "transition:" + "0=1|" * 10 + "-99999999999=1", "x" * 2_000_000,
        "graduated:" + ",".join(f"{n}=1000003" for n in range(9)),
        "transition:/dev/null", "transition:.", "laplace:nan", "gaussian:inf", "laplace:-1", "digits:0", "within:-1",
    ],
    ids=lambda text: text[:24],
)  # fmt: skip
def test_mechanisms_that_nobody_can_mean(text: str) -> None:
    refused(text, mechanism)


def test_tables_of_probabilities_that_are_none(tmp_path: Path) -> None:
    for rows in ("99999999999,0,1", "0," + "9" * 5_000 + ",1", "0,99999999999,1", "0,0,1e999999", "-5,0,1", "0,0,\0", "0,0"):
        path = put(tmp_path / "t.csv", f"i,v,p\n0,0,1\n{rows}\n")
        refused(f"transition:{path}", mechanism)


# TOML and plans


HUGE = "9" * 5_000
TOMLS = {
    "nested": "a = " + "[" * DEEP,
    "dotted": ".".join(["a"] * 20_000) + " = 1",
    "number": f"value = {HUGE}",
    "number as code": f"value = 'n'\n[axes.a]\nsums = [{{ total = 0x{'f' * 5_000}, parts = ['b'] }}]",
    "ten megabytes": "# " + "x" * (10 << 20),
    "ten megabytes of strings": 'value = "' + "x" * (10 << 20) + '"',
    "nul": "value = '\0'",
    "not closed": 'value = """' + "x" * 1_000_000,
    "symbols": "value = 'n'\nsymbols = { x = 99999999999 }\naxes = ['a']",
    "a date": "value = 2021-13-45",
    "infinite": "value = inf",
    "names a pipe of names": "data = '/dev/zero'\nvalue = 'n'\naxes = ['a', 'b']",
    "nul in a name": 'data = "a\\u0000b"\nvalue = "n"\naxes = ["a", "b"]',
    "nul in a hierarchy": 'value = "n"\n[axes.a]\nhierarchy = "a\\u0000b"\n[axes.b]',
}


@pytest.mark.parametrize("name", TOMLS)
def test_descriptions_that_are_none(tmp_path: Path, name: str) -> None:
    table = put(tmp_path / "a.csv", "a,b,n\n1,2,3\n")
    toml = put(tmp_path / "b.toml", TOMLS[name])
    with bounded(), pytest.raises(InputError) as caught:
        whole(read(toml) if "data" in TOMLS[name] else read(table, toml=toml))
    assert len(str(caught.value)) < 5_000


def test_descriptions_beside_a_table_that_are_none_of_it(tmp_path: Path) -> None:
    table = put(tmp_path / "a.csv", "region,characteristic_id,sex,count\n1,2,total,3\n")
    for about in (
        'data = "sub/other.csv"',
        'data = ""',
        'data = "/"',
        "data = 5",
        "a = " + "[" * DEEP,
        "x" * (10 << 20),
        "\xff",
    ):
        (tmp_path / "release.toml").write_bytes(about.encode("latin-1"))
        with bounded():
            assert whole(read(table))[0].height == 1


def test_plans_of_a_hundred_thousand_entries() -> None:
    many = 100_000 if THOROUGH else 10_000
    text = "[[sums]]\ntotal = 'a'\nparts = ['b']\n" * many
    with bounded():
        assert len(make_description(parsed_toml(text, "plan.toml"), text=text).sums) == many
    words = ", ".join(f"'{n}'" for n in range(2 * many))
    with pytest.raises(InputError, match="each once"):
        make_description(parsed_toml(f"[[repeats]]\nalike = true\ncolumns = [{words}, '0']", "plan.toml"))


# Hierarchies


def test_hierarchies_a_hundred_thousand_deep(tmp_path: Path) -> None:
    chain = "".join(f"c{n},c{n + 1}\n" for n in range(DEEP))
    codes = {f"c{n}" for n in range(DEEP + 1)}
    with bounded():
        children = read_hierarchy(put(tmp_path / "h.csv", "parent,child\n" + chain), codes)
        sums, _ = fit(children, ["c0", f"c{DEEP}"], "h.csv")
    assert sums == {"c0": (f"c{DEEP}",)}
    with bounded(), pytest.raises(InputError, match="is above itself"):
        read_hierarchy(put(tmp_path / "h.csv", f"parent,child\n{chain}c{DEEP},c0\n"), codes)
    indented = "".join("@" * n + f"c{n}\n" for n in range(2_000))
    with bounded():
        assert len(read_hierarchy(put(tmp_path / "h.hrc", indented), codes)) == 2_000
    with pytest.raises(InputError, match="but nothing above it is at depth"):
        read_hierarchy(put(tmp_path / "h.hrc", "a\n" + "@" * (1 << 20) + "b"), codes)
    with pytest.raises(InputError, match="not closed"):
        read_hierarchy(put(tmp_path / "h.csv", 'a,"' + "x" * 200_000), codes)


def test_a_table_with_a_deep_hierarchy_is_read(tmp_path: Path) -> None:
    many = 3_000
    put(tmp_path / "h.csv", "parent,child\n" + "".join(f"c{n},c{n + 1}\nc{n},d{n}\n" for n in range(many)))
    put(tmp_path / "a.toml", 'value = "n"\n[axes.region]\n[axes.code]\nhierarchy = "h.csv"\n')
    codes = [f"c{n}" for n in range(many + 1)] + [f"d{n}" for n in range(many)]
    table = put(tmp_path / "a.csv", "region,code,n\n" + "".join(f"1,{code},5\n" for code in codes))
    with bounded():
        release = read(table)
    assert max(column.depth for column in release.columns) == many
    assert len(release.proposals) == many


# Audits that were damaged


@pytest.fixture(scope="module")
def damaged(hostile_audit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(hostile_audit, tmp_path_factory.mktemp("damaged") / "audit"))


def looked_through(path: Path) -> None:
    folder = AuditFolder.open(path)
    _ = folder.model, folder.areas, folder.prior, folder.findings
    explain_in(infer_area(folder, 0), 0)


@pytest.mark.parametrize("name", [name for name in AUDIT_FILES.values() if name != "proofs.jsonl.gz"])
def test_damaged_audits_are_told_as_such(hostile_audit: Path, damaged: Path, name: str) -> None:
    content = (hostile_audit / name).read_bytes()
    half = len(content) // 2
    for spoilt in (
        b"",
        b"{}",
        b"[]",
        b"null",
        content[:half],
        content[:-1],
        content[:half] + b"\0" * 50 + content[half + 50 :],
    ):
        (damaged / name).write_bytes(spoilt)
        with contextlib.suppress(InputError):
            looked_through(damaged)
            assert spoilt not in (b"", b"{}", b"[]", b"null")
    (damaged / name).unlink()
    with pytest.raises(InputError):
        looked_through(damaged)
    (damaged / name).write_bytes(content)


def test_damaged_certificates_are_told_as_such(hostile_audit: Path) -> None:
    line = json.loads(next(proofs_in(hostile_audit / "proofs.jsonl.gz")))
    for key in ("cells", "sums", "steps", "cell", "value"):
        for wrong in ({}, {key: None}, {key: [1]}, {key: "x"}):
            spoilt = {name: value for name, value in line.items() if name != key} | wrong
            with contextlib.suppress(InputError):
                from unround import check_proof

                assert not check_proof(*read_proof(spoilt))


# What Hypothesis draws, and what broke once


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_inputs_drawn_at_random(target: Target) -> None:
    few = 10 if target.name.startswith("audit") or target.name == "packed" else 30 if target.weight < 10 else 100
    drawn = run_drawn(target, few, derandomize=True)
    assert sum(drawn.values()) >= few
    assert drawn["read"] > 0


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_broke_once(path: Path) -> None:
    assert judged(BY_NAME[path.parent.name].run, path.read_bytes()) in ("read", "refused")


def test_the_second_reading_is_one() -> None:
    """The oracle knows numbers that the reader's own tests list, and takes nothing else for one."""
    from tests.test_read_source import CELLS
    from unround.release import ABSENT

    for cell, count in CELLS.items():
        assert count_of(cell) == (count if count > ABSENT else None), cell


def test_an_input_that_takes_too_long_is_a_fault() -> None:
    def busy(_data: bytes) -> None:
        while True:
            pass

    with pytest.raises(Fault, match="no end after 1 seconds of processor time"), limited(1):
        judged(busy, b"")
    with limited(1):
        assert judged(lambda _data: None, b"") == "read"
