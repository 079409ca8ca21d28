"""The paper's claims about single tables and single sums: rounding, its examples, and when a sum is solved."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from unround.equations import parse
from unround.expectation import expectation
from unround.mechanisms import Rounding
from unround.replication.claim import STRONG, Claim, number, unknown, values
from unround.solution import Solution, solve

FIVE = Rounding(5)

# Table 1 as printed: the chances that 10 to 20 become 10, 15 and 20.
TABLE_1 = {
    10: "1 0 0",
    11: "4/5 1/5 0",
    12: "3/5 2/5 0",
    13: "2/5 3/5 0",
    14: "1/5 4/5 0",
    15: "0 1 0",
    16: "0 4/5 1/5",
    17: "0 3/5 2/5",
    18: "0 2/5 3/5",
    19: "0 1/5 4/5",
    20: "0 0 1",
}


def rounding_claims() -> Iterator[Claim]:
    """Section 2: random rounding itself."""
    printed = {(x, 10 + 5 * k): Fraction(p) for x, row in TABLE_1.items() for k, p in enumerate(row.split())}
    right = sum(FIVE.chance(y, x) == p for (x, y), p in printed.items())
    yield number("Table 1: correct rounding probabilities", "2.1, Table 1", str(len(printed)), right)
    window = FIVE.window(15)
    yield values("Lowest and highest true count for a published 15", "2.1", [11, 19], [window.low, window.high])
    farthest = max(abs(true - 15) for true in window)
    yield number("Largest distance of a published value from the truth", "2.1", "4", farthest)
    yield values(
        "Possible published values of a population of 108,843, if it were rounded",
        "2.2",
        [108840, 108845],
        outcomes(108843, 5),
    )


def outcomes(true: int, base: int) -> list[int]:
    """Return what a true count can be published as."""
    rounding = Rounding(base)
    return [y for y in range(max(0, true - base + 1), true + base) if rounding.chance(y, true)]


def sample_claims() -> Iterator[Claim]:
    """Section 3: the four sample tables and the small examples."""
    samples = [
        ("Sample table 1: 48 exactly, 20 + 20 + 20", "3.1.1, Table 2", "48! = 20 + 20 + 20", [48, 16, 16, 16]),
        ("Sample table 2: 72 exactly, 20 + 20 + 20", "3.1.1, Table 3", "72! = 20 + 20 + 20", [72, 24, 24, 24]),
        ("Sample table 3: 60 rounded, 20 four times", "3.1.2, Table 4", "60 = 20 + 20 + 20 + 20", [64, 16, 16, 16, 16]),
        ("Sample table 4: 80 rounded, 15 four times", "3.1.2, Table 5", "80 = 15 + 15 + 15 + 15", [76, 19, 19, 19, 19]),
    ]
    for claim, section, text, real in samples:
        solution = solve(parse(text))
        proved = len(solution.proofs)
        note = f"The only solution; {proved} values are proved." if solution.solutions == 1 else "Not the only solution."
        yield values(claim, section, real, listed(solution)[0], note)
    two = solve(parse("87! = men: 35 + women: 45"))
    chance = two["men"].probability
    yield values(
        "87 people, published as 35 men and 45 women: the solutions (men, women)",
        "3.2",
        [[38, 49], [39, 48]],
        [solution[1:] for solution in listed(two)],
        f"Each has probability {chance:.2f}.",
    )
    far, near = (Fraction(1), Fraction(1))
    for _ in range(3):
        far, near = far * FIVE.chance(15, 19), near * FIVE.chance(15, 16)
    yield Claim(
        "How many times as likely [16 16 16] is to be published as [15 15 15] than [19 19 19] is",
        "3.2.1",
        "much less likely",
        int(near / far),
        near > far,
    )


def listed(solution: Solution) -> list[list[int]]:
    """Return every solution found, as lists of values in the order of the cells, ascending."""
    return sorted([list(one.values.values()) for one in solution.top])


def condition_claims() -> Iterator[Claim]:
    """Section 3: which sums are solved, and how surely the others are."""
    several = range(2, 7)
    bounds = [max(r.residual for r in expectation(n, exact_total=True).residuals if r.kind == "proof") for n in several]
    yield values(
        "Exact total, n = 2 to 6 parts: the residual that proves them, 4n",
        "3.1.1",
        [4 * n for n in several],
        bounds,
        "Other residuals prove nothing, except for a single part, which an exact total always reveals.",
    )
    solvable = [n for n in range(1, 21) if expectation(n).proof_share]
    rare = expectation(9).proof_one_in or 0.0
    yield values(
        "Rounded total, up to 20 parts: the numbers of parts for which proofs are possible",
        "3.1.2",
        [4, 9, 14, 19],
        solvable,
        f"With 9 parts it happens in 1 of {rare:.2g} sums. The rule for base b is n ≡ −1 mod b.",
    )
    sure = [
        max(r.best_probability for r in expectation(n, exact_total=True).residuals if r.residual == 4 * n - 1)
        for n in range(2, 9)
    ]
    yield values(
        "Exact total, n = 2 to 8 parts, residual 4n − 1: the probability of each part, 1 − 1/n",
        "3.2.1",
        [1 - Fraction(1, n) for n in range(2, 9)],
        sure,
        "One part differs by one, and nothing shows which: no value is proved.",
    )
    quarter = solve(parse("30 = 15 + 15 + 15"))
    lowest = min(cell.probability or 0.0 for cell in quarter.cells)
    yield number(
        "Rounded total, three parts, residual 15: the lowest probability of any value",
        "3.2.2",
        "0.75",
        round(lowest, 12),
    )
    yield values(
        "For example 30 = 15 + 15 + 15: the solutions (total, parts)",
        "3.2.2",
        [[33, 11, 11, 11], [34, 11, 11, 12], [34, 11, 12, 11], [34, 12, 11, 11]],
        listed(quarter),
        "All four are equally likely.",
    )


def result_claims() -> Iterator[Claim]:
    """Section 4: examples among the results."""
    near = listed(solve(parse("34! = 15 + 15 + 15")))
    printed = [[11, 11, 12], [11, 12, 11], [11, 11, 12]]
    distinct = {tuple(one) for one in printed}
    ours = [one[1:] for one in near]
    missing = [f"[{' '.join(map(str, one))}]" for one in ours if tuple(one) not in distinct]
    yield Claim(
        "The three assignments one short of the bound, for parts published as 15",
        "4.2.1",
        [list(one) for one in printed],
        list(ours),
        sorted(map(list, printed)) == ours,
        f"One of them is printed twice; {' and '.join(missing)} is missing.",
    )
    half = max(r.best_probability for r in expectation(2, exact_total=True).residuals if r.kind != "proof")
    yield number(
        "Two parts: the highest probability short of a proof",
        "4.2.1",
        "0.5",
        half,
        f"Below the {STRONG} that the paper requires.",
    )
    waterloo = solve(parse("121436! = 17640 + 85080 + 18705"), threshold=STRONG)
    found = [cell for cell in waterloo.cells if cell.kind == "likely"]
    yield values("Waterloo: the most likely counts by age", "4.2.1", [17644, 85084, 18709], [cell.mode for cell in found])
    yield Claim(
        "Waterloo: the probability of each",
        "4.2.1",
        float(Fraction(2, 3)),
        min((cell.probability or 0.0 for cell in found), default=None),
        len(found) == 3 and all(abs((cell.probability or 0) - 2 / 3) < 1e-12 for cell in found),
        "The published ages differ from the population by 11. If the population was adjusted, this does not hold.",
    )
    yield unknown(
        "Colville Lake: 27, 28 or 29 people aged 0–14, with 90% probability",
        "4.2.1",
        90,
        "The published figures for the place are not in our copy of the paper, so there is nothing to solve.",
    )
    yield unknown(
        "Watson Lake: histograms of spouses and partners",
        "4.2.2",
        None,
        "The figures and the published counts are not in our copy of the paper.",
    )
