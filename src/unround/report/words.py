"""What an audit says about one cell or one clash, in the words that the terminal and the pages share."""

from __future__ import annotations

from collections.abc import Iterator

from unround.explain import Explanation, SumShown

CLASHES = {
    "sum": "sums that cannot hold",
    "cell": "counts that cannot come from their mechanism",
    "assumption": "areas whose population was adjusted",
    "unresolved": "areas without any solution",
}
"""The kinds of contradictions, as more than one of them is called."""


def growth(one: Explanation) -> Iterator[tuple[str, float]]:
    """Say how the probability of the likeliest count changes with every ring of sums that is used."""
    steps = ("from its published value alone", "with the sums that it stands in", "with the sums next to these")
    last = len(one.growth) - 1
    for k, probability in enumerate(one.growth):
        yield ("with all sums" if k == last > 1 else steps[k] if k < len(steps) else f"with sums up to {k} away"), probability
    if one.growth and one.probability is not None and abs(one.probability - one.growth[-1]) > 1e-9:
        yield "with the prior that was fitted to the release", one.probability


def arithmetic(shown: SumShown) -> str:
    """Set what was published for a total against what was published for its parts."""
    numbers = ["?" if number is None else f"{number:,}" for number in shown.parts]
    listed = " + ".join(numbers) if len(numbers) <= 12 else f"{' + '.join(numbers[:6])} + … + {numbers[-1]}"
    total = "?" if shown.total is None else f"{shown.total:,}"
    off = "" if shown.residual is None else ", which adds up" if shown.residual == 0 else f", {shown.residual:+,} off"
    return f"{total} against {listed}{off}"
