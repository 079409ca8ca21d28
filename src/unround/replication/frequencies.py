"""The paper's claims about how often: probabilities, predicted counts, totals, and how far off the finds are."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp

from unround.expectation import Number, expectation, one_in, surprise
from unround.replication.claim import AGE, AGE_STRONG, AREAS, FREE, FREE_STRONG, SEX, STRONG, Claim, Search, number, unknown

CHANCE = 0.01
"""A count that is less likely than this, by its prediction, is called out of range."""


def share(search: Search, base: int = 5) -> Number:
    """Return how often a search succeeds, by the model: proofs, or strong results."""
    model = expectation(search.parts, exact_total=search.exact_total, base=base, threshold=STRONG)
    return model.share(search.residual, -search.residual)


def predicted(search: Search) -> float:
    """Return how many finds the model expects in the paper's groups."""
    return float(search.groups * share(search))


def probability_claims() -> Iterator[Claim]:
    """Section 4: how likely each search is to succeed in one place."""
    own = 100 * float(share(AGE_STRONG))
    said = f"The paper's own {own:.4g}% agrees with ours, and amounts to 1 in {100 / own:,.1f}."
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
        yield number(
            f"Predicted finds in {search.groups:,} places, {search.title}", search.section, printed, predicted(search), note
        )
    exact = SEX.found * SEX.values + AGE.found * AGE.values
    yield number(
        "Values found exactly",
        "Abstract, 4.1",
        "624",
        exact,
        f"{SEX.found} · {SEX.values} + {AGE.found} · {AGE.values}, if the population is exact.",
    )
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
    for search in (SEX, AGE, AGE_STRONG, FREE, FREE_STRONG):
        yield unknown(f"Finds, {search.title}", search.section, search.found, nowhere)
    lost = "The authors' table of categories is not in our copy of the paper."
    yield unknown("Categories of four parts and a total", "3.1.2", 20, lost)
    yield unknown("Categories of three parts and a total", "4.2.2", 42, lost)
    yield unknown(
        "“412 unique solutions”, the most likely at 4%",
        "3.2.1",
        412,
        "An illustration: the paper gives no published values that lead to it.",
    )
