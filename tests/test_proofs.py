"""Proofs: what is proved, in which words, and that the checker accepts every true certificate and no false one."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests import shapes
from unround.bounds.certificates import certificates
from unround.bounds.propagation import Bounds, propagate
from unround.equations import parse
from unround.errors import InternalError
from unround.mechanisms import Rounding, Suppressed, Transition
from unround.proofs import Proof, check_proof, fault_in_proof, proofs_of
from unround.solution import solve
from unround.system import Cell, Sum, System

COMPOUND = """
    population: 108!; men: 55; women: 45
    m1: 10; m2: 5; m3: 5; m4: 5; m5: 5; m6: 5
    population = men + women
    men = m1 + m2 + m3 + m4 + m5 + m6
"""


def test_one_sum_in_words() -> None:
    proofs = solve(parse("48! = 20 + 20 + 20")).proofs
    assert [(proof.cell, proof.value, proof.depth, proof.rests_on) for proof in proofs] == [
        ("part1", 16, 1, ()),
        ("part2", 16, 1, ()),
        ("part3", 16, 1, ()),
    ]
    assert proofs[0].text == (
        "total = 48 (exact) and part2, part3 ≥ 16 (20 published, base 5), so part1 ≤ 48 − 16 − 16 = 16. "
        "part1 ≥ 16 (20 published, base 5). So part1 = 16."
    )


def test_a_rounded_total_is_proved_too() -> None:
    proof = next(proof for proof in solve(parse("60 = 20 + 20 + 20 + 20")).proofs if proof.cell == "total")
    assert proof.value == 64
    assert proof.text == (
        "part1, part2, part3, part4 ≥ 16 (20 published, base 5), so total ≥ 16 + 16 + 16 + 16 = 64. "
        "total ≤ 64 (60 published, base 5). So total = 64."
    )


def test_parts_published_as_zero_have_one_sided_windows() -> None:
    solution = solve(parse("60 = 20 + 20 + 20 + 20 + 0"))
    assert {proof.cell: proof.value for proof in solution.proofs} == {
        "total": 64,
        "part1": 16,
        "part2": 16,
        "part3": 16,
        "part4": 16,
        "part5": 0,
    }


def test_compound_inference_shows_the_chain() -> None:
    proofs = {proof.cell: proof for proof in solve(parse(COMPOUND)).proofs}
    assert {cell: proof.value for cell, proof in proofs.items()} == {
        "men": 59, "women": 49, "m1": 14, "m2": 9, "m3": 9, "m4": 9, "m5": 9, "m6": 9,
    }  # fmt: skip
    assert (proofs["men"].depth, proofs["men"].rests_on) == (1, ())
    assert (proofs["m1"].depth, proofs["m1"].rests_on) == (2, ("men",))
    start = "population = 108 (exact) and women ≤ 49 (45 published, base 5), so men ≥ 108 − 49 = 59."
    assert proofs["m1"].text.startswith(start)


def test_an_unpublished_cell_can_be_proved() -> None:
    proof = solve(parse("48! = 20! + ?")).proofs[0]
    assert (proof.cell, proof.value) == ("part2", 28)


def test_words_for_hidden_cells_and_for_windows_of_one_value() -> None:
    texts = {proof.cell: proof.text for proof in solve(parse("3! = a: ?1..4 + b: ?1..4 + c: ?1..4")).proofs}
    assert "b, c ≥ 1 (hidden, 1 to 4), so a ≤ 3 − 1 − 1 = 1." in texts["a"]
    one = next(proof for proof in solve(parse("12350 = 10000 + 2351", "digits:4")).proofs if proof.cell == "part2")
    assert one.text == "part2 = 2351 (2351 published, digits:4). So part2 = 2351."


def test_many_equal_terms_are_written_as_a_product() -> None:
    proof = solve(parse("3,200! = " + " + ".join(["20"] * 200))).proofs[0]
    assert "part2, part3, part4 … part200 (199 cells) ≥ 16 (20 published, base 5)" in proof.text
    assert "3200 − 199 × 16 = 16" in proof.text


def test_a_gap_in_a_window_is_a_reason() -> None:
    """Published as 3 can only be 1, 3 or 5 here: between 3 and 4 that leaves 3."""
    system = parse("t: 4! = a: 3 @residues:0,1,0 + b: ?0..1")
    proofs = {proof.cell: proof for proof in solve(system).proofs}
    assert {cell: proof.value for cell, proof in proofs.items()} == {"a": 3, "b": 1}
    assert "a ≤ 3: the values in between cannot have produced the published count." in proofs["a"].text
    assert all(check_proof(system, proof) for proof in proofs.values())


def test_a_gap_that_is_none_is_no_reason() -> None:
    """The same certificate, of counts that can be 4 as well: the checker looks at what lies in between."""
    (proof,) = [one for one in solve(parse("t: 4! = a: 3 @residues:0,1,0 + b: ?0..1")).proofs if one.cell == "a"]
    assert any(step["by"] == "gap" for step in proof.steps)
    assert not check_proof(parse("t: 4! = a: 3 @3 + b: ?0..1"), proof)
    assert not check_proof(parse("t: 4! = a: 3 @within:2 + b: ?0..1"), proof)


def test_a_sum_that_is_none_is_no_reason() -> None:
    """The same certificate, of counts that do not add up: the checker knows which sums there are."""
    system = parse("t: 48! = a: 20 + b: 20 + c: 20")
    proof = solve(system).proofs[0]
    assert check_proof(system, proof)
    others = [Sum("t", ("a", "b")), Sum("a", ("t", "b", "c")), Sum("t", ("a", "b", "c", "d"))]
    for other in others:
        assert not check_proof(System([*system.cells, Cell("d", 0, Rounding(5))], [other]), proof)


def test_hidden_counts_prove_what_the_others_leave() -> None:
    hides = Suppressed(1, 7)
    system = System(
        [Cell("t", 10, hides), Cell("a", None, hides), Cell("b", None, hides), Cell("c", 0, hides)],
        [Sum("t", ("a", "b", "c"))],
    )
    assert {proof.cell for proof in solve(system).proofs} == {"t", "c"}


@pytest.mark.parametrize("shape", shapes.ALL)
def test_every_proof_checks_and_is_true(shape: str) -> None:
    proofs = shapes.judge(shapes.ALL[shape], 60, proofs_hold)
    # Where all are rounded or one is hidden, hardly any draw proves anything; then it is that which is judged.
    assert proofs.total() > proofs[0] or shape in ("rounded total", "unpublished total", "unpublished part")


def proofs_hold(known: shapes.Known) -> int:
    """Return how many there are."""
    system, true = known
    solution = solve(system, top=0)
    for proof in solution.proofs:
        assert check_proof(system, proof)
        assert proof.value == true[system.index[proof.cell]]
    proved = {proof.cell for proof in solution.proofs}
    for cell in solution.cells:
        if cell.low == cell.high and cell.kind != "given":
            assert cell.name in proved
    return len(proved)


TRIANGLE = "a: 20!; b: 22!; c: 24!; x: 10; y: 10; z: 15; a = x + y; b = x + z; c = y + z"
"""A loop in which every sum alone leaves its two parts open, but all three together leave nothing open."""

PARITY = "t: 8! = x: 3 @residues:0,1,0 + y: 3 @residues:0,1,0 + w: 3 @residues:0,1,0 + z: ?0..1"
"""x, y and w can only be 1, 3 or 5, so that they add up to an odd number, and z must be 1. No bound shows that."""


def left_open_by_single_sums(system: System, cell: str) -> bool:
    bounds = Bounds.of(system.windows)
    assert propagate(system.equations, bounds)
    i = system.index[cell]
    return bounds.lows[i] < bounds.highs[i]


def test_what_no_single_sum_shows_is_proved_by_adding_sums_up() -> None:
    system = parse(TRIANGLE)
    assert left_open_by_single_sums(system, "x")
    proofs = {proof.cell: proof for proof in solve(system).proofs}
    assert {cell: proof.value for cell, proof in proofs.items()} == {"x": 9, "y": 11, "z": 13}
    assert proofs["x"].text.startswith(
        "a = 20 (exact), b = 22 (exact) and c = 24 (exact), and adding up ½ times a = x + y; ½ times b = x + z; "
        "minus ½ times c = y + z leaves x ≥ 9."
    )
    for proof in proofs.values():
        assert check_proof(system, proof)


def test_cells_that_nothing_bounds_can_still_prove_something() -> None:
    """a = b + c and c = a + d together say that b and d are 0, whatever a and c are."""
    proofs = solve(parse("a: ?; b: ?; c: ?; d: ?; a = b + c; c = a + d")).proofs
    assert {proof.cell: proof.value for proof in proofs} == {"b": 0, "d": 0}


def test_what_no_bound_shows_is_proved_by_contradiction() -> None:
    system = parse(PARITY)
    assert left_open_by_single_sums(system, "z")
    proof = next(proof for proof in solve(system).proofs if proof.cell == "z")
    assert proof.value == 1
    assert "leaves some cell without a possible value" in proof.text
    assert any("refutation" in step and "split" in step["refutation"] for step in proof.steps)
    assert check_proof(system, proof)


def test_a_proof_too_long_to_write_is_not_called_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unround.bounds.certificates.MOST_STEPS", 0)
    solution = solve(parse(PARITY))
    assert solution.proofs == ()
    assert (solution["z"].kind, solution["z"].probability) == ("likely", 1.0)
    assert any("z has one possible value" in sentence for sentence in solution.assumptions)


def test_noise_proves_nothing() -> None:
    sure = solve(parse("10! = 3 @laplace:0.02 + 7 @laplace:0.02"))
    assert sure.proofs == ()
    assert sure["part1"].kind == "likely"
    assert any("Noise is unbounded" in sentence for sentence in sure.assumptions)


def test_a_prior_proves_nothing() -> None:
    solution = solve(parse("a: 20"), prior={"a": {18: 1.0}})
    assert (solution["a"].low, solution["a"].high) == (16, 24)  # the prior shifts probabilities, never bounds
    assert (solution["a"].kind, solution["a"].mode, solution["a"].probability) == ("likely", 18, 1.0)
    assert solution.solutions == 9
    assert solution.proofs == ()


# -- the checker must be able to say no -------------------------------------------------------------------------------


def forged(proof: Proof, change: Any) -> Proof:
    steps: list[Any] = copy.deepcopy(list(proof.steps))
    change(steps)
    return replace(proof, steps=steps)


def every_number_off_by_one(steps: Sequence[Any]) -> list[tuple[int, int]]:
    return [(k, delta) for k in range(len(steps)) for delta in (-1, 1)]


def test_no_altered_certificate_passes() -> None:
    """Move each bound of each step by one: the checker refuses, unless the claim merely became weaker."""
    system = parse(COMPOUND)
    refused = 0
    for proof in solve(system).proofs:
        for k, delta in every_number_off_by_one(proof.steps):

            def shift(steps: Any, k: int = k, delta: int = delta) -> None:
                steps[k]["value"] += delta

            step = proof.steps[k]
            weaker = delta < 0 if step["bound"] == "low" else delta > 0
            problem = fault_in_proof(system, forged(proof, shift))
            # A weaker bound is still true, but then the steps that need it, or the claim itself, no longer follow.
            assert problem is not None, (proof.cell, k, delta, weaker)
            refused += 1
    assert refused > 50


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda steps: steps.pop(0), "does not come before|out of order"),
        (lambda steps: steps.reverse(), "does not come before|out of order"),
        (lambda steps: steps[-1].update(uses=steps[-1]["uses"][:-1]), "does not follow"),
        (
            lambda steps: steps[-1].update(sum={"total": "total", "parts": ["part1", "part2"]}),
            "does not follow",
        ),
        (lambda steps: steps[-1].update(cell="nobody"), "does not follow"),
        (lambda steps: steps[-1].update(by="magic"), "does not follow"),
        (lambda steps: steps[-1].update(by="supposed"), "does not follow"),
        (lambda steps: steps[-1].update(by="gap"), "does not follow"),
        (lambda steps: steps[-1].update(uses=[99]), "does not come before"),
        (lambda steps: steps.pop(), "not among the steps"),
    ],
)
def test_the_checker_refuses(change: Any, message: str) -> None:
    system = parse("48! = 20 + 20 + 20")
    proof = solve(system).proofs[0]
    problem = fault_in_proof(system, forged(proof, change))
    assert problem is not None
    assert re.search(message, problem), problem


@pytest.mark.parametrize(
    "change",
    [
        lambda step: step.update(value=step["value"] + (1 if step["bound"] == "low" else -1)),
        lambda step: step["sums"].pop(),
        lambda step: step["sums"][0].update(times="1"),
        lambda step: step["sums"][0].update(parts=["x"]),
        lambda step: step.update(uses=step["uses"][1:]),
    ],
)
def test_the_checker_refuses_sums_that_do_not_add_up(change: Any) -> None:
    system = parse(TRIANGLE)
    proof = next(proof for proof in solve(system).proofs if proof.cell == "x")
    k = next(k for k, step in enumerate(proof.steps) if step["by"] == "sums")
    assert not check_proof(system, forged(proof, lambda steps: change(steps[k])))


@pytest.mark.parametrize(
    "change",
    [
        lambda step: step.update(value=step["value"] + (1 if step["bound"] == "low" else -1)),
        lambda step: step.update(refutation=step["refutation"]["split"]["below"]),
        lambda step: step.update(refutation=step["refutation"]["split"]["above"]),
        lambda step: step.update(refutation={"cell": "z", "steps": []}),
        lambda step: step["refutation"]["split"].update(at=step["refutation"]["split"]["at"] + 1),
        lambda step: step["refutation"]["split"].update(cell="t"),
    ],
)
def test_the_checker_refuses_a_refutation_of_the_wrong_thing(change: Any) -> None:
    system = parse(PARITY)
    proof = next(proof for proof in solve(system).proofs if proof.cell == "z")
    k = next(k for k, step in enumerate(proof.steps) if step["by"] == "contradiction")
    assert not check_proof(system, forged(proof, lambda steps: change(steps[k])))
    assert not check_proof(parse("t: 5; z: 10"), proof)


def test_the_checker_refuses_numbers_that_are_not_whole() -> None:
    """Splits at fractions would lose the whole numbers between them, and "prove" any value."""

    def refute(low: float) -> dict[str, Any]:
        if low > 24:
            steps = [
                {"step": 1, "cell": "a", "bound": "low", "value": low, "by": "supposed", "uses": []},
                {"step": 2, "cell": "a", "bound": "high", "value": 24, "by": "published", "uses": []},
            ]
            return {"cell": "a", "steps": steps}
        return {"split": {"cell": "a", "at": low - 0.9, "below": refute(low + 0.1), "above": refute(low + 0.1)}}

    system = parse("a: 20")
    published = {"step": 1, "cell": "a", "bound": "high", "value": 24, "by": "published", "uses": []}
    split = {"split": {"cell": "a", "at": 23.5, "below": refute(24.5), "above": refute(24.5)}}
    claim = {"step": 2, "cell": "a", "bound": "low", "value": 24, "by": "contradiction", "uses": [], "refutation": split}
    assert not check_proof(system, Proof("a", 24, "", 1, (), [published, claim]))
    odd = {"step": 1, "cell": "a", "bound": "low", "value": 23.5, "by": "published", "uses": []}
    assert "not whole" in str(fault_in_proof(system, Proof("a", 24, "", 1, (), [odd])))


@pytest.mark.parametrize(
    "steps", [[{}], [{"cell": "a"}], ["nonsense"], [{"step": 1, "cell": "a", "bound": "low", "value": 16}]]
)
def test_the_checker_refuses_what_is_no_certificate(steps: list[Any]) -> None:
    assert "cannot be read" in str(fault_in_proof(parse("a: 20"), Proof("a", 16, "", 1, (), steps)))


def nested(depth: int) -> dict[str, Any]:
    refutation: dict[str, Any] = {"cell": "a", "steps": []}
    for _ in range(depth):
        refutation = {"split": {"cell": "a", "at": 20, "below": refutation, "above": refutation}}
    return refutation


def contradiction(**changed: Any) -> dict[str, Any]:
    return {"step": 1, "cell": "a", "bound": "low", "value": 16, "by": "contradiction", "uses": [], **changed}


@pytest.mark.parametrize(
    "step",
    [
        contradiction(by="published", value=math.inf),
        contradiction(by="published", value=10**30),
        contradiction(by="published", value=10**17),
        contradiction(by="gap", uses=[1], value=10**17),
        contradiction(by="published", step=math.nan),
        contradiction(by="published", value=True),
        contradiction(by="published", uses=[10**400]),
        contradiction(by="sums", sums=[{"total": "t", "parts": ["a", "b"], "times": "1e3000000"}]),
        contradiction(by="sums", sums=[{"total": "t", "parts": ["a", "b"], "times": "9" * 100_000}]),
        contradiction(by="sums", sums=[{"total": "t", "parts": ["a", "b"], "times": math.inf}]),
        contradiction(by="sums", sums=[{"total": "t", "parts": ["a", "b"], "times": "1/0"}]),
        contradiction(refutation=nested(20_000)),
        contradiction(refutation={"split": {"cell": "a", "at": math.inf, "below": nested(0), "above": nested(0)}}),
    ],
)
def test_hostile_certificates_are_refused_and_raise_nothing(step: dict[str, Any]) -> None:
    system = parse("t: 40 = a: 20 + b: 20")
    first = {"step": 1, "cell": "a", "bound": "low", "value": 16, "by": "published", "uses": []}
    assert check_proof(system, Proof("a", 16, "", 1, (), [step])) is False
    assert check_proof(system, Proof("a", 16, "", 1, (), [first, {**step, "step": 2}])) is False
    assert check_proof(system, Proof("a", step["value"], "", 1, (), [step])) is False


class Underflowing(Transition):
    """A mechanism whose floats say that what is possible is not."""

    def likelihood(self, published: Any, true: Any) -> Any:
        return np.where(np.asarray(true) == published, 1.0, 0.0)


def test_the_checker_takes_no_float_for_an_impossibility() -> None:
    likely = ((0, "1"),), ((-1, "1/3"), (0, "2/3"))
    system = System([Cell("x", 0, Underflowing(likely)), Cell("y", 0, Underflowing(likely))], [Sum("x", ("y",))])
    bounds = [
        {"step": k + 1, "cell": "x", "bound": side, "value": 0, "by": "published", "uses": []}
        for k, side in enumerate(("low", "high"))
    ]
    assert "step 2 does not follow" in str(fault_in_proof(system, Proof("x", 0, "", 1, (), bounds)))


def test_a_certificate_that_does_not_check_is_never_shown() -> None:
    system = parse("48! = 20 + 20 + 20")
    written = certificates(system, [1])
    written[1][-1]["value"] = 15
    with pytest.raises(InternalError, match="part1 does not check"):
        proofs_of(system, written)
