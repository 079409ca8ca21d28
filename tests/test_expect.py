"""How often disclosure is to be expected: against brute force, against `solve`, and against the paper."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from docs.paper_runs import shifted
from scipy import stats

from unround import expectation as expect
from unround.equations import parse
from unround.errors import InputError
from unround.expectation import Expectation, expectation, interval, one_in, surprise
from unround.mechanisms import Rounding
from unround.solution import solve

SHAPES = [
    (base, parts, zeros, exact_total)
    for base in (2, 3, 5)
    for parts in (1, 2, 3)
    for zeros in range(parts + 1)
    for exact_total in (True, False)
    if (base, parts) != (5, 3) or zeros != 2
]


def by_brute_force(base: int, parts: int, zeros: int, exact_total: bool) -> dict[int, Fraction]:
    """Go through every remainder and every rounding; zero parts on condition that 0 is published."""
    rounding = Rounding(base)
    far = 20 * base
    full = [
        (true, y, Fraction(1, base) * rounding.chance(y, true)) for true in range(far, far + base) for y in (far, far + base)
    ]
    zero = [(true, 0, rounding.chance(0, true)) for true in range(base)]
    shares: dict[int, Fraction] = {}
    for cells in product(*[full] * (parts - zeros), *[zero] * zeros):
        weight = Fraction(1)
        for _, _, chance in cells:
            weight *= chance
        if not weight:
            continue
        total, published = sum(c[0] for c in cells), sum(c[1] for c in cells)
        ends = [(total, Fraction(1))] if exact_total else [(y, rounding.chance(y, total)) for y in _around(total, base)]
        for y, chance in ends:
            if chance:
                shares[y - published] = shares.get(y - published, Fraction(0)) + weight * chance
    whole = sum(shares.values())
    return {r: p / whole for r, p in shares.items()}


def _around(total: int, base: int) -> list[int]:
    below = total - total % base
    return [below, below + base]


@pytest.mark.parametrize(("base", "parts", "zeros", "exact_total"), SHAPES)
def test_shares_are_those_of_every_case_tried(base: int, parts: int, zeros: int, exact_total: bool) -> None:
    model = expectation(parts, base=base, zero_parts=zeros, exact_total=exact_total)
    assert {residual.residual: residual.probability for residual in model.residuals} == by_brute_force(
        base, parts, zeros, exact_total
    )
    assert sum(residual.probability for residual in model.residuals) == 1


@pytest.mark.parametrize(
    ("base", "parts", "zeros", "exact_total"), [*SHAPES, (5, 4, 0, False), (5, 5, 1, False), (7, 3, 1, True)]
)
def test_every_residual_is_what_solve_finds_there(base: int, parts: int, zeros: int, exact_total: bool) -> None:
    model = expectation(parts, base=base, zero_parts=zeros, exact_total=exact_total)
    published = [base * (4 + k) for k in range(parts - zeros)] + [0] * zeros
    for residual in model.residuals:
        total = sum(published) + residual.residual
        text = f"{total}{'!' if exact_total else ''} = {' + '.join(map(str, published))}"
        answer = solve(parse(text, Rounding(base)))
        assert answer.solutions == residual.solutions
        best = max(cell.probability or 0 for cell in answer.cells if cell.kind != "given")
        assert best == pytest.approx(float(residual.best_probability), abs=1e-12)
        kinds = {cell.kind for cell in answer.cells if cell.kind != "given"}
        expected = {"proof": "proved", "strong": "likely", "open": "open"}[residual.kind]
        assert expected in kinds
        assert residual.kind != "open" or kinds == {"open"}


def test_the_paper_in_fractions() -> None:
    assert expectation(2, exact_total=True).proof_share == Fraction(2, 5**4)
    assert expectation(3, exact_total=True).proof_share == Fraction(2, 5**6)
    assert expectation(3, exact_total=True).strong_share == 6 * Fraction(1, 5**5) * Fraction(2, 5)
    assert expectation(4).proof_share == Fraction(2, 5**9)
    assert expectation(3).strong_share == 8 * Fraction(1, 5**6) * Fraction(2, 5)
    assert expectation(3).proof_share == 0
    assert expectation(2, base=3).proof_share == Fraction(2, 3**5)  # New Zealand's sex split alone gives proofs


def test_json_has_the_fields_that_are_promised() -> None:
    data = json.loads(json.dumps(expectation(3, exact_total=True, areas=59625).to_json()))
    assert data["base"] == 5
    assert data["parts"] == 3
    assert data["zero_parts"] == 0
    assert data["exact_total"] is True
    assert data["areas"] == 59625
    assert data["proof_one_in"] == 7812.5
    assert data["expected_proofs"] == pytest.approx(7.632)
    assert data["expected_strong"] == pytest.approx(45.792)
    assert data["strong_share"] == pytest.approx(0.000768)
    assert data["residuals"][0] == {
        "residual": -12,
        "probability": 1 / 5**6,
        "solutions": 1,
        "best_probability": 1.0,
        "best_cell": "part",
        "kind": "proof",
    }
    assert any("uniform" in sentence for sentence in data["assumptions"])


def test_zero_parts_change_the_arithmetic_and_say_what_is_assumed() -> None:
    model = expectation(5, zero_parts=1)  # such as 60 = 20 + 20 + 20 + 20 + 0
    assert [residual.residual for residual in model.residuals if residual.kind == "proof"] == [-20]
    assert any("published as 0" in sentence for sentence in model.assumptions)
    assert not any("published as 0" in sentence for sentence in expectation(5).assumptions)


def test_one_part_under_an_exact_total_is_always_proved() -> None:
    assert expectation(1, exact_total=True).proof_share == 1


def test_floats_give_what_fractions_give(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = [
        {"parts": 6},
        {"parts": 7, "zero_parts": 2, "exact_total": True},
        {"parts": 4, "base": 10},
        {"parts": 3, "zero_parts": 3},
    ]
    exact = [expectation(**shape) for shape in shapes]  # type: ignore[arg-type]
    monkeypatch.setattr(expect, "EXACT_UP_TO", 0)
    for shape, model in zip(shapes, exact, strict=True):
        rough = expectation(**shape)  # type: ignore[arg-type]
        assert model.exact
        assert not rough.exact
        assert _plain(rough) == pytest.approx(_plain(model), rel=1e-12)
        assert [(r.residual, r.solutions, r.kind, r.best_cell) for r in rough.residuals] == [
            (r.residual, r.solutions, r.kind, r.best_cell) for r in model.residuals
        ]


def _plain(model: Expectation) -> list[float]:
    return [float(number) for residual in model.residuals for number in (residual.probability, residual.best_probability)]


def test_hundreds_of_parts_are_no_trouble() -> None:
    model = expectation(400, zero_parts=100)
    shares = np.array([float(residual.probability) for residual in model.residuals])
    at = np.array([residual.residual for residual in model.residuals])
    assert shares.sum() == pytest.approx(1)
    assert shares @ at == pytest.approx(100 * sum(k * (5 - k) for k in range(5)) / 15)
    assert model.proof_one_in is None
    json.dumps(model.to_json(), allow_nan=False)


@pytest.mark.parametrize("exact_total", [True, False])
def test_no_residual_is_shown_with_digits_that_a_float_has_lost(exact_total: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rough = expectation(300, exact_total=exact_total)
    assert not rough.exact
    monkeypatch.setattr(expect, "EXACT_UP_TO", 10**9)
    exact = {one.residual: one for one in expectation(300, exact_total=exact_total).residuals}
    ends = [*rough.residuals[:5], *rough.residuals[-5:]]
    for one in ends:
        assert one.probability == pytest.approx(float(exact[one.residual].probability), rel=1e-9)
        assert one.best_probability == pytest.approx(float(exact[one.residual].best_probability), rel=1e-9)
    left_out = exact.keys() - {one.residual for one in rough.residuals}
    assert max(exact[residual].probability for residual in left_out) < Fraction(1, 10**expect.RAREST)


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"parts": 0}, "at least 1 part"),
        ({"parts": 3, "zero_parts": 4}, "0 to 3"),
        ({"parts": 3, "zero_parts": -1}, "0 to 3"),
        ({"parts": 1, "zero_parts": 2}, "of 1 part, 0 to 1"),
        ({"parts": 3, "base": 0}, "at least 1"),
        ({"parts": 3, "areas": -1}, "areas"),
        ({"parts": 3, "threshold": 0.0}, "threshold"),
        ({"parts": 3, "threshold": 1.5}, "threshold"),
        ({"parts": 3000}, "at most 10,000"),
    ],
)
def test_what_makes_no_sense_is_refused(kwargs: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        expectation(**kwargs)  # type: ignore[arg-type]


def test_a_threshold_is_taken_as_written() -> None:
    assert expectation(3, threshold=0.75).strong_share == Fraction(16, 78125)
    assert expectation(3, threshold=0.7501).strong_share == 0
    assert expectation(3, exact_total=True, threshold=0.67).strong_share == 0


def test_one_in() -> None:
    assert one_in(Fraction(2, 625)) == 312.5
    assert one_in(0.0) is None
    assert one_in(Fraction(1, 10**400)) is None


@pytest.mark.parametrize("mean", [0.0859, 1.0, 7.632, 195.2, 4000.0])
def test_intervals_and_tails_are_those_of_poisson(mean: float) -> None:
    low, high = interval(mean)
    assert (low, high) == tuple(stats.poisson.interval(0.999, mean))
    for found in (0, int(mean), int(2 * mean) + 3):
        tails = stats.poisson.sf(found - 1, mean), stats.poisson.cdf(found, mean)
        assert surprise(found, mean) == pytest.approx(min(1.0, 2 * min(tails)), rel=1e-9)
    assert interval(0.0) == (0, 0)
    assert surprise(0, 0.0) == 1
    assert surprise(1, 0.0) == 0


def test_a_shifted_total_moves_the_residuals() -> None:
    model = expectation(2, exact_total=True)
    shares = shifted(model, [(0, Fraction(3, 4)), (2, Fraction(1, 4))])
    assert sum(shares.values()) == 1
    assert shares[8] == Fraction(3, 4) * model.share(8) + Fraction(1, 4) * model.share(6)
    assert shares[10] == Fraction(1, 4) * model.share(8)
