"""Grounds: a claim is proved only by what is documented or declared; what was inferred makes it conditional."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import unround
from unround.audits.certificates import proofs_in
from unround.job.folder import PROOFS
from unround.job.verify import _Certificates, _claimed
from unround.mechanisms import Exact, Rounding
from unround.release import Ground
from unround.show.audit import headline, next_steps, settling
from unround.structure import find_structure

DESCRIBED = {"area": "town", "sums": {"Total": ["Men", "Women"]}}
EXACTLY = [1, 2, 0, 1, -1, 0, 2, 1, 0, -2, 1, 0]
"""By how much exact totals differ from the sums of rounded parts: eight of them are not multiples of 3."""
TOWNS = [f"Town {letter}" for letter in "ABCDEFGHIJKL"]


def _table(step: int = 3, towns: int = 12) -> pl.DataFrame:
    """Return totals that exceed their parts by two steps: at base 3 the men and women of every town follow."""
    men = [step * (5 + 7 * at % 11) for at in range(towns)]
    women = [step * (4 + 5 * at % 13) for at in range(towns)]
    total = [a + b + 2 * 3 if at % 2 else a + b for at, (a, b) in enumerate(zip(men, women, strict=True))]
    return pl.DataFrame({"town": TOWNS[:towns], "Total": total, "Men": men, "Women": women})


def test_every_base_that_fits_is_named() -> None:
    """Five areas of a table in base 6 look like base 3: the condition says that both fit."""
    structure = find_structure(unround.describe(_table(6, 5)).release)
    (how,) = structure.how
    assert (how.mechanism, how.ground) == (Rounding(3), Ground.INFERRED)
    assert how.condition == "if counts were rounded to base 3, which 15 of 15 counts support; base 6 would fit as well"


def test_exactness_that_was_inferred_says_in_how_many_areas() -> None:
    """A total that is a multiple of 3 in some areas only may be rounded in these."""
    table = _table().with_columns((pl.col("Men") + pl.col("Women") + pl.Series(EXACTLY)).alias("Total"))
    structure = find_structure(unround.describe(table).release)
    exact = next(one for one in structure.how if one.mechanism == Exact())
    assert exact.ground == Ground.INFERRED
    assert exact.condition == (
        "if Total is exact in every area (8 of 12 are not multiples of 3, so those were not rounded to it; nobody says so "
        "of the others)"
    )


def test_labels_only_suggest_a_sum() -> None:
    """Somebody may be neither man nor woman, and unprinted; a description that declares the sum says that nobody is."""
    (suggested,) = find_structure(unround.describe(_table()).release).sums
    assert suggested.ground == Ground.INFERRED
    assert suggested.condition.startswith("if Total = Men + Women leaves nobody out and counts nobody twice")
    declared = unround.read(_table(), describe=DESCRIBED)
    (sum_,) = find_structure(declared).sums
    assert (sum_.ground, sum_.condition) == (Ground.DECLARED, "")


def _mechanisms(release: unround.Release) -> dict[str, tuple[str, str]]:
    """Return how each column was published, and what that rests on."""
    structure = find_structure(release)
    keys = [column.key for column in structure.columns]
    return {
        keys[at]: (evidence.mechanism.name, evidence.ground)
        for evidence in structure.how
        if evidence.mechanism
        for at in evidence.columns
    }


def test_a_base_is_about_rounded_counts_and_leaves_exact_ones_exact() -> None:
    """What is inferred of exact counts stays unless it is overruled by name; a base that no column fits is believed."""
    table = _table().with_columns((pl.col("Men") + pl.col("Women") + pl.Series(EXACTLY)).alias("Total"))
    rounded = ("rounding:3", "declared")
    assert _mechanisms(unround.read(table, base=3, describe=DESCRIBED)) == {
        "Total": ("exact", "inferred"),
        "Men": rounded,
        "Women": rounded,
    }
    named = unround.read(table, base=3, exact=["Total"])
    assert _mechanisms(named) == {"Total": ("exact", "declared"), "Men": rounded, "Women": rounded}
    assert {how for how, _ in _mechanisms(unround.read(table, base=7)).values()} == {"rounding:7"}


def test_exact_counts_are_named_as_the_table_does() -> None:
    """A name that is in no table is an error that offers the one meant."""
    with pytest.raises(unround.InputError, match=r"names 'Totals', and there is no such column\. Did you mean 'Total'"):
        unround.read(_table(), exact=["Totals"])


@pytest.fixture(scope="module")
def inferred(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The audit of a table that nobody described."""
    out = tmp_path_factory.mktemp("grounds") / "audit"
    unround.audit(_table(), out)
    return out


def test_nothing_is_proved_of_a_table_that_nobody_described(inferred: Path) -> None:
    """Its claims are conditional, and every page and file names the conditions."""
    folder = unround.AuditFolder.open(inferred)
    assert (folder.summary["proved"], folder.summary["conditional"]) == (0, 18)
    conditions = folder.summary["conditions"]
    assert [one["claims"] for one in conditions["most_claims"]] == [18, 18]
    row = folder.findings.row(0, named=True)
    assert row["kind"] == "conditional"
    assert row["assumptions"].startswith("if counts were rounded to base 3, which 36 of 36 counts support; if Total = Men")
    cell = unround.explain(inferred, "Town B", "Men")
    assert cell.kind == "conditional"
    assert cell.because[0] == "if counts were rounded to base 3, which 36 of 36 counts support"
    line = json.loads(next(proofs_in(inferred / PROOFS)))
    assert (line["kind"], len(line["because"])) == ("conditional", 2)
    assert unround.verify(inferred).holds


def test_what_is_declared_proves(tmp_path: Path) -> None:
    """The same table, with its sum and its base declared."""
    folder = unround.audit(_table(), tmp_path / "audit", describe=DESCRIBED, base=3)
    assert (folder.summary["proved"], folder.summary["conditional"]) == (18, 0)


def test_no_headline_reassures_where_the_mechanism_contradicts_the_counts(tmp_path: Path) -> None:
    """A table in base 3 that is said to be in base 5."""
    folder = unround.audit(_table(), tmp_path / "audit", base=5)
    first = folder.summary["unsettled"][0]
    assert (first["what"], first["check"]) == ("mechanism", "contradicts")
    odd = sum(count % 5 != 0 for name in ("Total", "Men", "Women") for count in _table()[name])
    said = f"This audit cannot be relied on: {odd} of 36 published counts cannot come from rounding:5"
    assert headline(folder.summary).startswith(said)
    assert "gives nothing away" not in headline(folder.summary)


def test_a_certificate_cannot_claim_more_than_its_grounds(inferred: Path) -> None:
    """A certificate that calls a conditional claim proved does not verify."""
    folder = unround.AuditFolder.open(inferred)
    line = json.loads(next(proofs_in(inferred / PROOFS))) | {"kind": "proved"}
    _, fault = _Certificates(folder).fault(json.dumps(line), _claimed(folder))
    assert fault is not None
    assert fault.startswith("nobody documents or declares how ")


def test_of_many_unsettled_matters_the_first_are_spelt_out() -> None:
    matters = [{"what": f"sum {n}", "why": "not used", "settle": ""} for n in range(8)]
    said = settling({"unsettled": matters})
    assert said[0] == "Not settled: sum 0: not used."
    assert said[-1] == "Not settled: 3 more matters, listed in summary.json."
    assert len(said) == 6
    assert len(settling({"unsettled": matters[:5]})) == 5


def test_what_settles_all_matters_is_said_once() -> None:
    matters = [{"what": f"sum {n}", "why": "not used", "settle": "say that it holds"} for n in range(2)]
    assert settling({"unsettled": matters}) == [
        "Not settled: sum 0: not used.",
        "Not settled: sum 1: not used.",
        "To settle these: say that it holds.",
    ]
    assert settling({"unsettled": matters[:1]}) == ["Not settled: sum 0: not used. To settle it: say that it holds."]
    others = [matters[0], matters[1] | {"settle": "leave it out"}]
    assert [said.endswith(("holds.", "out.")) for said in settling({"unsettled": others})] == [True, True]


def test_what_could_not_be_tested_is_no_misfit(inferred: Path) -> None:
    summary = unround.AuditFolder.open(inferred).summary
    assert summary["check"]["verdict"] == "untested"
    steps = next_steps(summary, public=False)
    assert "Make sure how counts were published: whether the data fit it could not be tested." in steps
    assert not any("do not fit" in step for step in steps)
