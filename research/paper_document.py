"""The paper's numbers, recomputed: every claim, its searches on simulated areas, and on a release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import exp, log10
from typing import TYPE_CHECKING, Any

from research.paper import Claim
from research.searches import Experiment, FindPrediction, Outcome, condition
from unround.expectation import surprise
from unround.show.parts import QUIET, Bullets, Document, Line, Part, Section, Table, TableCell, Text
from unround.show.words import argument, notice, percent, several

if TYPE_CHECKING:
    from research.searches import Compound, Finds, ReleaseSearches

EXPLAINED = {
    None: "–",
    "both": "both",
    "sizes": "the simulated sizes",
    "uniform": "uniform remainders",
    "neither": "neither",
}


# -- claims -----------------------------------------------------------------------------------------------------------


def claims(checked_claims: Iterable[Claim]) -> Document:
    """Give the verdict, then the claims that disagree, then all others, each with the paper's value and ours."""
    listed = list(checked_claims)
    parts: list[Part] = [Text(summary(listed), "lead")]
    for title, agrees in (("Where ours differ", False), ("Where both agree", True), ("Not recomputed", None)):
        rows = [_claim(entry) for entry in listed if entry.agrees is agrees]
        if rows:
            heads = ("claim", "section", "paper", "ours", "note")
            parts.append(Section(f"{title}: {len(rows)}", [Table(heads, rows, title, left=("section", "note"))]))
    return Document("The paper's numbers, and ours", parts)


def _claim(claim: Claim) -> Line:
    note = TableCell(claim.note, tone=QUIET)
    return [claim.claim, claim.section, value_text(claim.paper), value_text(claim.computed), note]


def summary(claims: Sequence[Claim]) -> str:
    """Say how many claims agree.

    >>> summary([Claim("a", "1", 1, 1, True), Claim("b", "1", 2, None, None)])
    '1 claim agrees, 0 do not, 1 cannot be recomputed from our copy of the paper.'
    """
    agree, differ = (sum(claim.agrees is verdict for claim in claims) for verdict in (True, False))
    said = f"{agree} claim agrees" if agree == 1 else f"{agree} claims agree"
    unknown = len(claims) - agree - differ
    return (
        f"{said}, {differ} {'does' if differ == 1 else 'do'} not, {unknown} cannot be recomputed from our copy of the paper."
    )


def value_text(value: Any) -> str:
    """Return a claim's value for people.

    >>> value_text(1302.0833), value_text([38, 49]), value_text([[38, 49], [39, 48]]), value_text(None), value_text(2e-9)
    ('1,302.08', '38 49', '38 49; 39 48', '–', '2e-09')
    """
    if value is None:
        return "–"
    if isinstance(value, list):
        apart = "; " if value and isinstance(value[0], list) else " "
        return apart.join(value_text(item) for item in value)
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 10 else f"{value:,.2f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else str(value)


# -- the experiment ---------------------------------------------------------------------------------------------------


def experiment(run: Experiment, together: Compound | None = None) -> Document:
    """Say what was found on simulated areas, beside both predictions; and what an audit of them finds."""
    heads = ("search", "places", "found", "uniform", "by size", "explained by", "in the paper")
    rows = [
        [
            f"{outcome.search.title}: {condition(outcome.search)}",
            f"{outcome.groups:,}",
            f"{outcome.found:,}",
            prediction_text(outcome.uniform),
            prediction_text(outcome.sizes),
            EXPLAINED[outcome.explained_by],
            f"{outcome.search.found} in {outcome.search.groups:,}",
        ]
        for outcome in run.outcomes
    ]
    parts: list[Part] = [Table(heads, rows, "Searches", left=("explained by",)), Bullets(experiment_notes(run), QUIET)]
    return Document("The paper's searches on simulated areas", [*parts, *_compound(together)])


def release_searches(searched: ReleaseSearches) -> Document:
    """Say what the paper's searches find in a release, beside what its model predicts."""
    heads = ("search", "sums", "places", "found", "predicted", "chance", "impossible", "in the paper")
    rows = []
    for finds in searched.finds:
        search = finds.search
        numbers = (
            f"{finds.groups:,}",
            f"{finds.found:,}",
            prediction_text(finds.uniform),
            _chance(finds),
            f"{finds.impossible:,}",
        )
        shown = numbers if finds.groups else ("0", *"––––")
        name = f"{search.title}: {condition(search)}"
        rows.append([name, f"{len(finds.sums):,}", *shown, f"{search.found} in {search.groups:,}"])
    parts: list[Part] = [Table(heads, rows, "Searches"), Bullets(release_notes(searched), QUIET)]
    parts.append(Text(notice(searched.product), QUIET))
    return Document("The paper's searches on a release", parts)


def _chance(finds: Finds) -> str:
    """Return how likely a number of finds at least so far from the prediction is."""
    chance = surprise(finds.found, finds.uniform.mean)
    return f"{chance:.2f}" if chance >= 0.005 else f"{chance:.0e}"


def release_notes(searched: ReleaseSearches) -> list[str]:
    """Say how to read the table, and what it shows."""
    nowhere = [finds.search.title for finds in searched.finds if not finds.groups]
    outside = [finds.search.title for finds in searched.finds if finds.within is False]
    looked = len(searched.finds) - len(nowhere)
    exact = f" Exact population: {', '.join(searched.exact[:4])}." if searched.exact else ""
    notes = [
        f"{several(searched.areas, 'area', 'areas')} of {searched.source}; sums: those that hold in it, with so many parts "
        f"rounded to base 5; places: groups of cells with every value above 10.{exact}",
        "predicted: places × the share under uniform remainders and independent rounding, as in the paper; in brackets, the "
        "range that contains the number with 99.9% probability. chance: the probability of a number at least so far off.",
        "impossible: places whose parts cannot add up to the total however they were rounded. Adjusted populations would "
        "produce some.",
    ]
    if looked:
        inside = f"{looked - len(outside)} of {several(looked, 'number is', 'numbers are')} within the range."
        notes.append(inside + (f" Out of range: {'; '.join(outside)}." if outside else ""))
    if nowhere:
        notes.append(f"No place to look: {'; '.join(nowhere)}. The release has no such sum with values above 10.")
    if any(finds.groups for finds in searched.finds if not finds.search.exact_total):
        notes.append(
            "Under a rounded total, a table that is rounded by keys of records has fewer or more such residuals: for three "
            "parts, from none to 2.4 times as many, depending on its constant. Under an exact total keys change nothing."
        )
    return [*notes, *searched.notes]


def _compound(together: Compound | None) -> Iterator[Part]:
    """Say what all sums of age by sex give away together, beside the searches."""
    if together is None:
        return
    steps = ", ".join(
        f"{number:,} by {'one sum' if depth == 1 else argument(depth)}"
        for depth, number in sorted(together.proved_by_depth.items())
    )
    right = f", {percent(together.likely_right / together.likely)} of them correctly" if together.likely else ""
    said = [
        f"{together.proved:,} of {together.cells:,} rounded counts in {together.areas:,} areas have one possible value"
        f"{f': {steps}' if steps else ''}. {together.proved_wrong:,} of these are wrong.",
        f"{together.likely:,} more have a likeliest value of at least {together.threshold:.0%}{right} "
        "(under the paper's flat prior).",
    ]
    aside = "(an audit; the searches look at one sum at a time)"
    yield Section("All sums of age by sex together", [Bullets(said, QUIET)], aside=aside)


def prediction_text(model: FindPrediction) -> str:
    """Return a prediction as its mean and interval.

    >>> prediction_text(FindPrediction(97.6, 97.6)), prediction_text(FindPrediction(0.04, 0.04))
    ('195.2 (151–243)', '0.08 (0–2)')
    >>> prediction_text(FindPrediction(0.001, 0.001)), prediction_text(FindPrediction(0, 0))
    ('< 0.01 (0–1)', '0')
    """
    if not model.mean:
        return "0"
    low, high = model.interval
    mean = "< 0.01" if model.mean < 0.005 else f"{model.mean:,.{1 if model.mean >= 1 else 2}f}"
    return f"{mean} ({low:,}–{high:,})"


def experiment_notes(run: Experiment) -> list[str]:
    """Say how to read the table, and what it shows."""
    census = several(run.areas, "simulated area", "simulated areas")
    if len(run.seeds) > 1:
        census = f"{len(run.seeds)} × {census}"
    seeds = f"{'seed' if len(run.seeds) == 1 else 'seeds'} {', '.join(map(str, run.seeds))}"
    return [
        f"{census} (rows “{run.rows}”, {seeds}); places are groups of cells with every value above 10. No value refers "
        "to a real place.",
        "uniform: places × the share under the model, as in the paper. by size: the expected number given the simulated "
        "true counts, over the rounding alone. In brackets, the range that contains the number with 99.9% probability.",
        f"{_inside(run)} {which_explains(run)}",
        _repeated(run),
        *([KEYED] if run.keys else []),
    ]


KEYED = (
    "Counts were rounded by the keys of their records and a constant of every table. The predictions take them as rounded "
    "independently. Under an exact total that makes no difference; under a rounded one, it depends on the constants."
)


def _inside(run: Experiment) -> str:
    """Say how many counts are within the range expected by size, among searches that had somewhere to look."""
    looked = [outcome for outcome in run.outcomes if outcome.groups]
    inside = sum(outcome.inside for outcome in looked)
    nowhere = len(run.outcomes) - len(looked)
    said = f"{inside} of {several(len(looked), 'count is', 'counts are')} within the interval by size."
    return said + (f" {several(nowhere, 'search', 'searches')} had no place to look." if nowhere else "")


def _repeated(run: Experiment) -> str:
    """Say how many areas are counted twice."""
    if not run.repeated_areas:
        return "No area holds the same people as a single area within it."
    finds = sum(outcome.repeated for outcome in run.outcomes)
    areas, there = several(run.repeated_areas, "area holds", "areas hold"), several(finds, "find is", "finds are")
    return (
        f"{areas} the same people as a single area within it; {there} there. Like the paper, this counts such areas twice."
    )


def which_explains(run: Experiment) -> str:
    """Say which prediction explains what was found, and how far keeping values over 10 shifts it."""
    only = [outcome.search.key for outcome in run.outcomes if outcome.explained_by == "sizes"]
    neither = [outcome.search.key for outcome in run.outcomes if outcome.explained_by in ("neither", "uniform")]
    if neither:
        return f"The sizes do not explain {', '.join(neither)}. {weighed(run)}"
    if only:
        return f"Uniform remainders do not explain {', '.join(only)}: {_tilt(run[only[0]])} {weighed(run)}"
    if not any(outcome.found for outcome in run.outcomes):
        return "Nothing was found, and too little was expected to tell the predictions apart."
    return f"No count is out of range under either prediction. {weighed(run)}"


def weighed(run: Experiment) -> str:
    """Say which prediction makes all finds together likelier, and how many times."""
    better, worse = "the simulated sizes", "uniform remainders"
    if run.evidence_for_sizes < 0:
        better, worse = worse, better
    times = exp(min(abs(run.evidence_for_sizes), 700))
    if times < 1.05:
        return f"All finds together are about as likely under {better} as under {worse}."
    said = f"{times:,.1f}" if times < 1000 else f"more than 10^{int(log10(times))}"
    return f"All finds together are {said} times as likely under {better} as under {worse}."


def _tilt(outcome: Outcome) -> str:
    uniform, sizes = outcome.uniform, outcome.sizes
    return (
        f"keeping values over 10 favours parts published too high ({outcome.above:,} found; {uniform.above:,.0f} by uniform "
        f"remainders, {sizes.above:,.0f} by size) over parts published too low ({outcome.below:,}; {uniform.below:,.0f}, "
        f"{sizes.below:,.0f})."
    )
