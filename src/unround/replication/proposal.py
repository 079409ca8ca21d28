"""The paper's claims about other ways of publishing: larger bases, and discrete Laplace noise."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from unround.comparison.distances import Distances, distances
from unround.equations import parse
from unround.expectation import expectation
from unround.mechanisms import Laplace, Mechanism, Rounding
from unround.replication.claim import AGE, LAPLACE, SEX, Claim, number, values
from unround.replication.examples import outcomes
from unround.solution import solve


def rounding_distances(base: int = 5) -> Distances:
    """Return the distances of random rounding."""
    return _known(Rounding(base))


def laplace_distances(t: float = LAPLACE) -> Distances:
    """Return the distances of discrete Laplace noise, as far as they can be told from 0."""
    return _known(Laplace(t))


def _known(mechanism: Mechanism) -> Distances:
    """Return the distances of a mechanism that has them in closed form; `unround compare` measures the same."""
    found = distances(mechanism)
    assert found is not None
    return found


def base_claims() -> Iterator[Claim]:
    """Section 5: what a larger base would change."""
    yield values("Base 7: possible published values of 18", "5", [14, 21], outcomes(18, 7))
    yield values("Base 7: possible published values of 24", "5", [21, 28], outcomes(24, 7))
    yield number("Base 7: highest published value of 15", "5", "21", max(outcomes(15, 7)))
    farthest = max(abs(y - true) for true in range(100, 110) for y in outcomes(true, 10))
    yield number("Base 10: largest distance of a published value from the truth", "5", "9", farthest)
    for base in (7, 10):
        sexes = expectation(SEX.parts, exact_total=True, base=base, areas=SEX.groups)
        ages = expectation(AGE.parts, exact_total=True, base=base, areas=AGE.groups)
        assert sexes.expected_proofs is not None
        yield Claim(
            f"Base {base}: exact results become vanishingly unlikely; expected proofs from men and women in "
            f"{SEX.groups:,} areas",
            "5",
            "vanishingly unlikely",
            sexes.expected_proofs,
            sexes.expected_proofs < 1,
            f"Rarer, not rare: 1 in {sexes.proof_one_in:,.1f} for two parts, 1 in {ages.proof_one_in:,.1f} for three "
            f"({ages.expected_proofs:.2g} expected). With a rounded total, proofs need at least {base - 1} parts.",
        )


def noise_claims() -> Iterator[Claim]:
    """Section 5: discrete Laplace noise in place of rounding."""
    noise, rounding = laplace_distances(), rounding_distances()
    near, far = 100 * noise.within(4), 100 * noise.within(10)
    yield Claim("Laplace noise, t = 1.45: share within 4 of the truth, in per cent: more than", "5", 95, near, near > 95)
    yield Claim("Laplace noise: share within 10 of the truth, in per cent: more than", "5", 99.9, far, far > 99.9)
    five = Rounding(5)
    by_rest = [sum(abs(y - x) * five.chance(y, x) for y in (10, 15)) for x in range(10, 15)]
    printed = [Fraction(text) for text in ("0", "1.6", "2.4", "2.4", "1.6")]
    yield values("Mean distance of random rounding, by remainder", "5, Table 6", printed, by_rest)
    mean, cut, rounded = noise.mean(), noise.mean(10), rounding.mean()
    yield number("Mean distance of random rounding", "5, Table 6", "1.6", round(rounded, 12))
    yield number(
        "Mean distance of Laplace noise",
        "5",
        "1.33",
        mean,
        f"Distances up to 10 alone give {cut:.4f}, the paper's figure; the rare larger ones add {mean - cut:.4f}.",
    )
    closer = 100 * (1 - mean / rounded)
    yield number(
        "By how many per cent Laplace noise is closer than rounding",
        "5",
        "20",
        closer,
        f"Rounding is {100 * (rounded / cut - 1):.0f}% farther away than {cut:.3g}; perhaps that was meant. The "
        f"variance of the noise is larger: {noise.variance():.4g} against {rounding.variance():.4g}.",
    )


def protection_claims() -> Iterator[Claim]:
    """Section 5: what noise does to the inferences."""
    protected = solve(parse("48! = 20 + 20 + 20", Laplace(LAPLACE)))
    proofs = [cell for cell in protected.cells if cell.kind == "proved"]
    yield number("With Laplace noise, values proved in sample table 1", "5", "0", len(proofs))
    best = max(cell.probability or 0.0 for cell in protected.cells if cell.kind != "given")
    yield Claim(
        "Solutions that can be enumerated with unbounded noise",
        "5",
        "intractable",
        protected.solutions,
        protected.solutions is None,
        "Leaving out a tail of 1e-12, sums of noisy counts are solved as fast; the most likely value has probability "
        f"{best:.2f}.",
    )
