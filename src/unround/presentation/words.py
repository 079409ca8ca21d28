"""What an audit says: the verdict, one cell, one clash, in the words that the terminal and the pages share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from unround.audits.summary import CLAIMS
from unround.explanation.cell import Explanation, SumShown
from unround.presentation.terminal import percent

CLASHES = {
    "sum": "sums that cannot hold",
    "cell": "counts that cannot come from their mechanism",
    "assumption": "areas whose population was adjusted",
    "unresolved": "areas without any solution",
    "areas": "areas that cannot be the sum of those in them",
}
"""The kinds of contradictions, as more than one of them is called."""


def growth(one: Explanation) -> Iterator[tuple[str, float]]:
    """Say how the probability of the likeliest count changes with every ring of sums that is used."""
    steps = ("from its published value alone", "with the sums that it stands in", "with the sums next to these")
    last = len(one.growth) - 1
    for k, probability in enumerate(one.growth):
        if probability is not None:  # nothing says how likely a count is that is not published, before any sum
            said = "with all sums" if k == last > 1 else steps[k] if k < len(steps) else f"with sums up to {k} away"
            yield said, probability
    if one.growth and one.alone is not None:
        yield "from its published value alone, with the prior that was fitted to the release", one.alone
        own = one.probability if one.others is None else one.own
        if own is not None:
            yield "within its possible range, with that prior" if one.without_sums else "with all sums and that prior", own
    if one.growth and one.others is not None and one.probability is not None:
        yield "with what other areas say", one.probability


def conclusion(one: Explanation) -> str:
    """Say in one sentence what is known of a cell."""
    where = f"from {one.low:,} to {one.high:,}" if one.high is not None else f"at least {one.low:,}"
    if one.kind == "given":
        return f"It was published as it is: {one.published:,}."
    if one.kind in ("proved", "conditional"):
        deep = f" (a chain of {one.depth} sums)" if one.depth and one.depth > 1 else ""
        proviso = f", given {' and '.join(one.because)}" if one.because else ""
        return f"It is {one.value:,}: {one.kind}{proviso}{deep}."
    if one.probability is None:
        return f"It is {where}; nothing says how likely each count is."
    there = "published once more; what is claimed of it is claimed there"
    claim = "" if one.kind == "likely" else " That is no claim: it is not likely enough, or likely without any sum."
    if one.same_as is not None:
        claim = f" It is the same count as {one.same_as}, {there}."
    if one.low == one.high:
        return (
            f"It is {one.low:,}.{claim}" if one.same_as else f"It is {one.low:,}, as it stands; no sum is needed for that."
        )
    return f"It is {where}, most likely {one.value:,} ({percent(one.probability)}).{claim}"


def again(one: Explanation) -> str:
    """Say what other files show of the same count: ", and again as 230 and 235"; nothing where none does."""
    numbers = [f"{number:,}" for number in one.again]
    return f", and again as {' and '.join(numbers)}" if numbers else ""


def span(low: int, high: int | None) -> str:
    """Return a possible range in short.

    Examples
    --------
    >>> span(3, 7), span(4, 4), span(0, None)
    ('3–7', '4', '0 or more')
    """
    return f"{low:,} or more" if high is None else f"{low:,}" if low == high else f"{low:,}–{high:,}"


def arithmetic(shown: SumShown) -> str:
    """Set what was published for a total against what was published for its parts."""
    numbers = ["?" if number is None else f"{number:,}" for number in shown.parts]
    listed = " + ".join(numbers) if len(numbers) <= 12 else f"{' + '.join(numbers[:6])} + … + {numbers[-1]}"
    total = "?" if shown.total is None else f"{shown.total:,}"
    off = "" if shown.residual is None else ", which adds up" if shown.residual == 0 else f", {shown.residual:+,} off"
    return f"{total} against {listed}{off}"


def verdict(told: Mapping[str, Any]) -> tuple[str, str]:
    """Say in two sentences what an audit found."""
    sure = share(told["threshold"])
    where = f"{several(told['areas'], 'area')} and {several(told['cells_published'], 'published count')}"
    claims = sum(told[name] for name in CLAIMS)
    if not claims and told["areas_not_weighed"]:
        return (
            f"Nothing is proved in {where}; what is likely could not be worked out everywhere.",
            f"In {several(told['areas_not_weighed'], 'area')} the noise leaves too many counts possible to weigh all sums "
            "at once: that is no sign of safety.",
        )
    if not claims:
        return (
            f"The sums of this release give no count away: nothing is proved, and nothing is likely ({sure} or more).",
            f"That holds for {where}, under the assumptions below; it does not say what other knowledge would reveal.",
        )
    said = f"prove {several(told['proved'], 'count')} exactly" if told["proved"] else "prove no count outright"
    if told["conditional"]:
        said += f", {told['conditional']:,} {'more ' if told['proved'] else ''}on a condition,"
    said = f"The sums of this release {said} and make {told['likely']:,} likely ({sure} or more), in {where}."
    by_value = told["what_would_hurt"]["by_value"]
    small, zero = sum(by_value["1-2"].values()), sum(by_value["0"].values())
    if claims == 1:
        return (
            said,
            "It is a count of one or two." if small else "It is a zero." if zero else "It is a count of three or more.",
        )
    few = "None" if not small else f"{small:,}"
    zeros = "none is a zero" if not zero else f"{zero:,} {'is a zero' if zero == 1 else 'are zeros'}"
    return said, f"{few} of these {claims:,} {'is a count' if small == 1 else 'are counts'} of one or two, and {zeros}."


def share(probability: float) -> str:
    """Return a share that somebody chose, as it was chosen.

    Examples
    --------
    >>> share(0.66), share(0.995)
    ('66 %', '99.5 %')
    """
    return f"{100 * probability:.6g} %"


def several(number: int, what: str, more: str = "") -> str:
    """Return a number of things.

    Examples
    --------
    >>> several(1, "count"), several(1200, "area")
    ('1 count', '1,200 areas')
    """
    return f"{number:,} {what if number == 1 else more or f'{what}s'}"
