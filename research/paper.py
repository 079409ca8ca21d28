"""The paper's claims beside what unround computes: about tables and sums, how often sums are solved, and noise.

The numbers of `SEARCHES` are given: inputs (how many areas there were), or what is to be explained (how many cases were
found). Everything else is worked out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from fractions import Fraction
from math import exp
from typing import Any

from unround.comparison.measure import Distances, distances
from unround.equations import parse
from unround.expectation import Number, expectation, one_in, surprise
from unround.mechanisms import Laplace, Mechanism, Rounding
from unround.shown import Plain
from unround.solution import Solution, solve

JsonValue = int | float | str | None | list[Any]  # what JSON can hold


@dataclass(frozen=True, slots=True)
class Claim(Plain):
    """One claim."""

    claim: str  # what is claimed, in our words
    section: str  # where it stands in the paper
    paper: JsonValue  # The paper's value and ours: numbers wherever the claim is one
    computed: JsonValue
    agrees: bool | None  # none where it cannot be recomputed
    note: str = ""  # why not, or what else is worth knowing


def matches(printed: str, value: float | Fraction) -> bool:
    """Whether a value, rounded or cut to the digits that were printed, gives what was printed.

    >>> matches("313", 312.5), matches("4882", 4882.8125), matches("1308", 1302.08), matches("1.02e-4", 1.024e-4)
    (True, True, False, True)
    """
    shown = Decimal(printed)
    exact = Decimal(value.numerator) / value.denominator if isinstance(value, Fraction) else Decimal(repr(value))
    unit = Decimal(1).scaleb(int(shown.as_tuple().exponent))
    return shown in (exact.quantize(unit, how) for how in (ROUND_HALF_UP, ROUND_DOWN))


def number(claim: str, section: str, printed: str, value: float | Fraction, note: str = "") -> Claim:
    """Compare a number as it was printed with its exact value."""
    shown = float(printed)
    paper = int(shown) if shown.is_integer() and "." not in printed else shown
    return Claim(claim, section, paper, plain(value), matches(printed, value), note)


def values(claim: str, section: str, printed: Sequence[Any], computed: Sequence[Any], note: str = "") -> Claim:
    """Compare values that must be the same, one by one."""
    ours = [plain(value) for value in computed]
    theirs = [plain(value) for value in printed]
    return Claim(claim, section, theirs, ours, theirs == ours, note)


def unknown(claim: str, section: str, paper: JsonValue, note: str) -> Claim:
    """List what cannot be recomputed."""
    return Claim(claim, section, paper, None, None, note)


def plain(value: Any) -> Any:
    """Return fractions as numbers, tuples as lists."""
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    return [plain(item) for item in value] if isinstance(value, tuple | list) else value


AREAS = 61_029  # all areas that the authors could query
STRONG = 0.66  # from which probability on the paper calls a result strong
OVER = 10  # only groups in which every published value is above this were looked at
LAPLACE = 1.45  # the scale of the noise that the paper proposes


@dataclass(frozen=True, slots=True)
class Search:
    """One of the paper's searches through the census."""

    key: str  # A short name, and one for people
    title: str
    parts: int  # how many parts the sums have
    exact_total: bool  # whether the total is the population, which is not rounded
    residual: int  # |total − Σ parts| that counts as a find
    section: str  # where the paper reports it
    groups: int  # in how many groups of cells the authors could look
    found: int  # how many cases they found
    values: int  # how many values one case gives away


SEX = Search("sex exact", "men and women under the exact population", 2, True, 8, "4.1.1", 61_010, 285, 2)
AGE = Search("age exact", "three ages under the exact population", 3, True, 12, "4.1.1", 59_625, 18, 3)
AGE_STRONG = Search("age strong", "three ages, one short of the bound", 3, True, 11, "4.2.1", 59_625, 83, 3)
FREE = Search("free exact", "four parts and their rounded total", 4, False, 20, "4.1.2", 83_898, 0, 5)
FREE_STRONG = Search("free strong", "three parts and their rounded total", 3, False, 15, "4.2.2", 918_192, 216, 4)
SEARCHES = (SEX, AGE, AGE_STRONG, FREE, FREE_STRONG)
"""The paper's four attacks; the one on ages comes in an exact and a strong form."""


FIVE = Rounding(5)

# Table 1 as printed: the chances that 10 to 20 become 10, 15 and 20.
TABLE_1 = """1 0 0 | 4/5 1/5 0 | 3/5 2/5 0 | 2/5 3/5 0 | 1/5 4/5 0
    | 0 1 0 | 0 4/5 1/5 | 0 3/5 2/5 | 0 2/5 3/5 | 0 1/5 4/5 | 0 0 1"""


def rounding_claims() -> Iterator[Claim]:
    """Section 2: random rounding itself."""
    rows = enumerate(TABLE_1.split("|"), start=10)
    printed = {(x, 10 + 5 * k): Fraction(p) for x, row in rows for k, p in enumerate(row.split())}
    right = sum(FIVE.chance(y, x) == p for (x, y), p in printed.items())
    yield number("Table 1: correct rounding probabilities", "2.1, Table 1", str(len(printed)), right)
    window = FIVE.window(15)
    yield values("Lowest and highest true count for a published 15", "2.1", [11, 19], [window.low, window.high])
    farthest = max(abs(true - 15) for true in window)
    yield number("Largest distance of a published value from the truth", "2.1", "4", farthest)
    claim = "Possible published values of a population of 108,843, if it were rounded"
    yield values(claim, "2.2", [108840, 108845], outcomes(108843, 5))


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
    return sorted([list(world.values.values()) for world in solution.top])


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
    claim = "Rounded total, three parts, residual 15: the lowest probability of any value"
    yield number(claim, "3.2.2", "0.75", round(lowest, 12))
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
    ours = [parts for _, *parts in near]
    missing = [f"[{' '.join(map(str, parts))}]" for parts in ours if parts not in printed]
    claim = "The three assignments one short of the bound, for parts published as 15"
    note = f"One of them is printed twice; {' and '.join(missing)} is missing."
    yield Claim(claim, "4.2.1", list(printed), list(ours), sorted(printed) == ours, note)
    half = max(r.best_probability for r in expectation(2, exact_total=True).residuals if r.kind != "proof")
    note = f"Below the {STRONG} that the paper requires."
    yield number("Two parts: the highest probability short of a proof", "4.2.1", "0.5", half, note)
    waterloo = solve(parse("121436! = 17640 + 85080 + 18705"), threshold=STRONG)
    likely = [cell for cell in waterloo.cells if cell.kind == "likely"]
    yield values("Waterloo: the most likely counts by age", "4.2.1", [17644, 85084, 18709], [cell.mode for cell in likely])
    yield Claim(
        "Waterloo: the probability of each",
        "4.2.1",
        float(Fraction(2, 3)),
        min((cell.probability or 0.0 for cell in likely), default=None),
        len(likely) == 3 and all(abs((cell.probability or 0) - 2 / 3) < 1e-12 for cell in likely),
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


CHANCE = 0.01  # A count that is less likely than this, by its prediction, is called out of range


def share(search: Search) -> Number:
    """Return how often a search succeeds, by the model: proofs, or strong results."""
    model = expectation(search.parts, exact_total=search.exact_total, threshold=STRONG)
    return model.share(search.residual, -search.residual)


def predicted(search: Search) -> float:
    """Return how many finds the model expects in the paper's groups."""
    return float(search.groups * share(search))


def probability_claims() -> Iterator[Claim]:
    """Section 4: how likely each search is to succeed in one place."""
    strong = 100 * float(share(AGE_STRONG))
    said = f"The paper's own {strong:.4g}% agrees with ours, and amounts to 1 in {100 / strong:,.1f}."
    rows = [
        (SEX, "0.32", "313", ""),
        (AGE, "0.013", "7813", ""),
        (FREE, "1.02e-4", "976562", ""),
        (AGE_STRONG, "7.68e-2", "1308", said),
        (FREE_STRONG, "2.05e-2", "4882", "Truncated, not rounded; it agrees with the model."),
    ]
    for search, percent, printed, note in rows:
        chance = share(search)
        yield number(f"Chance of success, {search.title}, in per cent", search.section, percent, 100 * chance)
        once = one_in(chance)
        assert once is not None
        yield number(f"Chance of success, {search.title}: 1 in", search.section, printed, once, note)
    ratio = share(AGE_STRONG) / share(AGE)
    yield number("How many times as likely strong age results are as exact ones", "4.2.1", "6", ratio)


def count_claims() -> Iterator[Claim]:
    """Section 4: how many finds were to be expected, and how many values they give away."""
    short, printed_share = predicted(AGE_STRONG), AGE_STRONG.groups / 1308
    rows = [
        (SEX, "195", ""),
        (AGE, "8", ""),
        (FREE, "0.0859", ""),
        (AGE_STRONG, "48", f"{AGE_STRONG.groups:,} areas give {short:.1f}; at 1 in 1,308 it would be {printed_share:.1f}."),
        (FREE_STRONG, "188", "The text says “on age”; the number is for all groups of three parts."),
    ]
    for search, printed, note in rows:
        claim = f"Predicted finds in {search.groups:,} places, {search.title}"
        yield number(claim, search.section, printed, predicted(search), note)
    exact = SEX.found * SEX.values + AGE.found * AGE.values
    note = f"{SEX.found} · {SEX.values} + {AGE.found} · {AGE.values}, if the population is exact."
    yield number("Values found exactly", "Abstract, 4.1", "624", exact, note)
    strong, free = AGE_STRONG.found * AGE_STRONG.values, FREE_STRONG.found * FREE_STRONG.values
    yield number("Values inferred with strong probability, by age", "4.2.1", "249", strong)
    yield number("Values inferred with strong probability, without an exact total", "4.2.2", "864", free)
    yield Claim("Values inferred with high probability: more than", "Abstract, 1", 1000, strong + free, strong + free > 1000)
    more = 1 - exp(-10 * predicted(FREE))
    yield Claim(
        "With ten times as many groups, a proof without an exact total might be expected; chance of at least one",
        "4.1.2",
        "might expect",
        more,
        more > 0.5,
        f"As it is, the chance was {1 - exp(-predicted(FREE)):.3f}.",
    )


def excess_claims() -> Iterator[Claim]:
    """Section 4: whether what was found is what was predicted."""
    said = {
        SEX: "within range",
        AGE: "within range",
        AGE_STRONG: "not commented on",
        FREE: "none found",
        FREE_STRONG: "relatively close",
    }
    for search, words in said.items():
        chance = surprise(search.found, predicted(search))
        fits = chance >= CHANCE
        why = "" if fits else f"Out of range: a difference like this has probability {chance:.1g} if the model is right."
        extra = " The population that the model takes as exact may have been adjusted." if search is SEX else ""
        yield Claim(
            f"{search.found} found against {predicted(search):.3g} predicted, {search.title}: chance of such a difference",
            search.section,
            words,
            chance,
            fits,
            f"{why}{extra}".strip(),
        )


def unknown_claims() -> Iterator[Claim]:
    """List what only the published tables could show."""
    nowhere = (
        "Counted by the authors in the published tables, which we do not have; --simulate counts in a simulated census."
    )
    yield unknown("Areas that could be queried", "4.1.1", AREAS, nowhere)
    for search in (SEX, AGE, FREE, FREE_STRONG):
        yield unknown(f"Places in which to look, {search.title}", search.section, search.groups, nowhere)
    for search in SEARCHES:
        yield unknown(f"Finds, {search.title}", search.section, search.found, nowhere)
    lost = "The authors' table of categories is not in our copy of the paper."
    yield unknown("Categories of four parts and a total", "3.1.2", 20, lost)
    yield unknown("Categories of three parts and a total", "4.2.2", 42, lost)
    note = "An illustration: the paper gives no published values that lead to it."
    yield unknown("“412 unique solutions”, the most likely at 4%", "3.2.1", 412, note)


def noise_distances(how: Mechanism) -> Distances:
    """Return the distances of a mechanism that has them in closed form; `unround compare` measures the same."""
    known = distances(how)
    assert known is not None
    return known


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
    noise, rounding = noise_distances(Laplace(LAPLACE)), noise_distances(FIVE)
    near, far = 100 * noise.within(4), 100 * noise.within(10)
    yield Claim("Laplace noise, t = 1.45: share within 4 of the truth, in per cent: more than", "5", 95, near, near > 95)
    yield Claim("Laplace noise: share within 10 of the truth, in per cent: more than", "5", 99.9, far, far > 99.9)
    by_rest = [sum(abs(y - x) * FIVE.chance(y, x) for y in (10, 15)) for x in range(10, 15)]
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


def claims() -> tuple[Claim, ...]:
    """Return every claim of the paper, in its order as far as it goes; what cannot be recomputed comes last.

    >>> [claim.computed for claim in claims() if claim.paper == 1308]
    [1302.0833333333333]
    """
    groups = (
        rounding_claims, sample_claims, condition_claims, probability_claims, count_claims, excess_claims, result_claims,
        base_claims, noise_claims, protection_claims, unknown_claims,
    )  # fmt: skip
    everything = [claim for group in groups for claim in group()]
    return tuple(sorted(everything, key=lambda claim: claim.agrees is None))
