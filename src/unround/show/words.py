"""The words that terminal, report and explorer share: numbers, kinds of claims, and what is said of one count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unround.explanation.cell import Explanation, SumShown

CLAIMS = ("proved", "conditional", "likely")
"""The kinds of claims, the surest first: a copy of `audits.summary.CLAIMS`, which is slow to import. A test compares."""

LONGEST = 300
"""Characters of a name that are shown."""

# -- numbers ----------------------------------------------------------------------------------------------------------


def percent(probability: float) -> str:
    """Return a probability as a percentage that never rounds up to certainty nor down to impossibility.

    >>> percent(1.0), percent(0.75), percent(0.99999), percent(0.004), percent(1e-7), percent(0)
    ('100%', '75.0%', '>99.9%', '0.4%', '<0.1%', '0%')
    """
    if probability >= 1 or probability <= 0:
        return "100%" if probability > 0 else "0%"
    if probability > 0.9995:
        return ">99.9%"
    return "<0.1%" if probability < 0.0005 else f"{100 * probability:.1f}%"


def percent_with_error(probability: float | None, error: float | None) -> str:
    """Return a probability; with its standard error, in points, where it was estimated; nothing where there is none.

    >>> percent_with_error(0.5, None), percent_with_error(0.554, 0.0021), percent_with_error(None, None)
    ('50.0%', '55.4% ± 0.2', '')
    """
    if probability is None:
        return ""
    return percent(probability) + (f" ± {100 * error:.1f}" if error else "")


def share(probability: float) -> str:
    """Return a share that somebody chose, exactly as chosen.

    >>> share(0.66), share(0.995)
    ('66%', '99.5%')
    """
    return f"{100 * probability:.6g}%"


def number(value: int | None) -> str:
    """Return a count with separators, or a dash where there is none."""
    return "–" if value is None else f"{value:,}"


def shown(thing: Any, name: str) -> str:
    """Return a field of an object, or of plain data, as a table shows it."""
    value = _of(thing, name)
    return number(value) if value is None or isinstance(value, int) else str(value)


def large(count: int) -> str:
    """Return a count with separators, and a very large one as a power of ten.

    >>> large(1956), large(5080139920398031514507613398246)
    ('1,956', 'about 5.08 × 10^30')
    """
    if count < 10**12:
        return f"{count:,}"
    exponent = len(str(count)) - 1
    return f"about {count // 10 ** (exponent - 2) / 100} × 10^{exponent}"


def rate(mean: float) -> str:
    """Return an expected number.

    >>> rate(2.84), rate(0.01), rate(0)
    ('2.8', '<0.1', '0.0')
    """
    return f"{mean:,.1f}" if mean >= 0.05 or mean == 0 else "<0.1"


def several(count: int, what: str, more: str = "") -> str:
    """Return a number of things.

    >>> several(1, "count"), several(1200, "area"), several(2, "family", "families")
    ('1 count', '1,200 areas', '2 families')
    """
    return f"{count:,} {what if count == 1 else more or f'{what}s'}"


def plural(noun: str) -> str:
    """Return what several of a kind of area are called; a name that looks like a plural stays.

    >>> plural("district"), plural("municipality"), plural("valley"), plural("TA"), plural("areas")
    ('districts', 'municipalities', 'valleys', 'TAs', 'areas')
    """
    if noun.endswith("s"):
        return noun
    return f"{noun[:-1]}ies" if noun[-1:] == "y" and noun[-2:-1] not in "aeiou" else f"{noun}s"


def span(low: int, high: int | None) -> str:
    """Return a possible range in short.

    >>> span(3, 7), span(4, 4), span(0, None)
    ('3–7', '4', '0 or more')
    """
    return f"{low:,} or more" if high is None else f"{low:,}" if low == high else f"{low:,}–{high:,}"


def span_of(cell: Any) -> str:
    """Return the possible range of a cell, whether it is an object or plain data."""
    return span(_of(cell, "low"), _of(cell, "high"))


def either(values: Sequence[int]) -> str:
    """Say which values are meant, runs of more than three as a range.

    >>> either([27, 28, 29]), either([16]), either([1, 3, 4, 5, 6])
    ('27, 28 or 29', '16', '1 or 3–6')
    """
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    named: list[str] = []
    for run in runs:
        named += [f"{value:,}" for value in run] if len(run) <= 3 else [f"{run[0]:,}–{run[-1]:,}"]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} or {named[-1]}" if named else ""


def listed(texts: Sequence[str]) -> str:
    """Join texts as a sentence does.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b, and c')
    """
    if len(texts) < 3:
        return " and ".join(texts)
    return f"{', '.join(texts[:-1])}, and {texts[-1]}"


def few(names: Sequence[str], most: int, mark: str = ", ") -> str:
    """Name the first of many, and say how many more there are.

    >>> few(["a", "b"], 2), few(["a", "b", "c"], 2)
    ('a, b', 'a, b and 1 more')
    """
    return mark.join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def cut(text: object, longest: int = LONGEST) -> str:
    """Return a text without what goes beyond a length.

    >>> cut("Montréal"), cut("Montréal", 5)
    ('Montréal', 'Mont…')
    """
    whole = str(text)
    return whole if len(whole) <= longest else f"{whole[: longest - 1]}…"


def size_named(name: str) -> str:
    """Return a class of counts or areas with a proper dash.

    >>> size_named("1-2")
    '1–2'
    """
    return name.replace("-", "–")


def block_named(name: str, blocks: Mapping[str, object]) -> str:
    """Return a table's name, also where it has none."""
    return name or ("all columns" if len(blocks) == 1 else UNGROUPED)


UNGROUPED = "ungrouped columns"

BARS = "▁▂▃▄▅▆▇█"
WIDEST = 24
"""Bars in a small histogram; a wider distribution is shown in bins."""


def sparkline(distribution: Sequence[tuple[int, float]]) -> str:
    """Draw a distribution in one line, one bar per value where there is room.

    >>> sparkline([(33, 0.25), (34, 0.75)])
    '▃█'
    """
    if not distribution:
        return ""
    if distribution[-1][0] - distribution[0][0] >= WIDEST:  # long thin tails would leave no room for the rest
        least = max(p for _, p in distribution) / 100
        worth = [k for k, (_, p) in enumerate(distribution) if p >= least]
        distribution = distribution[worth[0] : worth[-1] + 1]
    low, high = distribution[0][0], distribution[-1][0]
    width = -(-(high - low + 1) // WIDEST)
    bins = [0.0] * ((high - low) // width + 1)
    for value, probability in distribution:
        bins[(value - low) // width] += probability
    tallest = max(bins)
    return "".join(" " if b == 0 else BARS[min(7, int(b / tallest * 8))] for b in bins)


# -- probabilities under several priors ---------------------------------------------------------------------------------

NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine"}

WHY_SEVERAL = (
    "Rounding hides part of the answer: these priors fit the published counts about equally well. The highest is the "
    "highest found, not an upper bound."
)
"""What is said where the probabilities under all priors are shown."""

WHY_FLAT_TOO = (
    "Rounding hides part of the answer: the fitted priors fit the published counts about equally well, and so few areas do "
    "not rule out the flat one. The highest is the highest found, not an upper bound."
)
"""The same for a release of few areas."""


def why_several(priors: Sequence[str]) -> str:
    """Say why there are several priors; nothing where there is one."""
    if len(priors) < 2:
        return ""
    return WHY_FLAT_TOO if "flat" in priors else WHY_SEVERAL


def spelled(number: int) -> str:
    """Return a small number as a word.

    >>> spelled(3), spelled(12)
    ('three', '12')
    """
    return NUMBERS.get(number, f"{number:,}")


def by_several(cell: Any) -> bool:
    """Return whether a count was weighed under several priors, be it an object or plain data."""
    low, high = _of(cell, "probability_low"), _of(cell, "probability_high")
    return low is not None and high is not None and low < high


def probabilities(cell: Any, priors: int = 0) -> str:
    """Return the probability of a likeliest count: where there are several priors the least, the mean and the highest.

    Only likely counts were weighed under all of them: others as long as they might have been called likely.

    >>> one = {"kind": "likely", "probability_low": 0.714, "probability": 0.778, "probability_high": 0.842}
    >>> probabilities(one, 3)
    'at least 71.4% (77.8% on average over several priors; highest found 84.2%)'
    >>> probabilities(one | {"kind": "open"}, 3)
    '71.4% to 84.2% under different priors'
    >>> probabilities(one | {"probability_low": None, "probability_high": None}, 3)
    '77.8%'
    """
    mean = _of(cell, "probability")
    if mean is None or not by_several(cell):
        return "–" if mean is None else percent(mean)
    over = " over several priors" if priors > 1 else ""
    if _of(cell, "kind") != "likely":
        return f"{percent(_of(cell, 'probability_low'))} to {percent(_of(cell, 'probability_high'))} under different priors"
    low, high = percent(_of(cell, "probability_low")), percent(_of(cell, "probability_high"))
    return f"at least {low} ({percent(mean)} on average{over}; highest found {high})"


def at_least(cell: Any) -> str:
    """Return the probability of a likeliest count in short: the least over the priors, where there are several.

    >>> at_least({"probability_low": 0.714, "probability": 0.778, "probability_high": 0.842})
    '≥ 71.4%'
    """
    return f"≥ {percent(_of(cell, 'probability_low'))}" if by_several(cell) else probabilities(cell)


def _of(cell: Any, name: str) -> Any:
    return cell[name] if isinstance(cell, Mapping) else getattr(cell, name)


CERTAINTIES = ((0.99, "almost certainly"), (0.9, "very likely"), (0.0, "probably"))
"""What is said of a likely count, by its least probability."""


def claim_in_words(finding: Any) -> str:
    """Say what is claimed of a count, as the end of a sentence about it.

    >>> one = {"kind": "likely", "value": 1, "probability_low": 0.993, "probability": 0.995, "probability_high": 0.996}
    >>> claim_in_words(one), claim_in_words(one | {"kind": "proved"}), claim_in_words(one | {"kind": "conditional"})
    ('almost certainly 1', 'proved to be 1', 'proved to be 1 on an assumption')
    """
    kind, value = _of(finding, "kind"), number(_of(finding, "value"))
    if kind in ("proved", "conditional"):
        return f"proved to be {value}" + (" on an assumption" if kind == "conditional" else "")
    least = _of(finding, "probability_low")
    least = _of(finding, "probability") if least is None else least
    return f"{next(said for start, said in CERTAINTIES if least >= start)} {value}"


# -- kinds ------------------------------------------------------------------------------------------------------------

NOT_GUARANTEED = "given an assumption the agency does not guarantee"

MEANINGS = {
    "proved": "the only possible value under every dataset consistent with the agency's documentation",
    "conditional": f"proved, {NOT_GUARANTEED}",
    "likely": "a model estimate: one value is at least as probable as the threshold, given all sums of the area, under "
    "every prior that was tried",
    "open": "nothing is claimed; that does not make the count safe",
    "given": "published unrounded",
}
"""The kinds of findings, in a phrase each."""

STYLES = {"proved": "bold red", "conditional": "dark_orange3", "likely": "yellow", "open": "", "given": "dim"}
"""The same colours in the terminal, as near as it has them."""

INCONSISTENCIES = {
    "sum": ("sum that cannot hold", "sums that cannot hold"),
    "cell": ("count its mechanism cannot produce", "counts their mechanism cannot produce"),
    "assumption": ("area whose population was adjusted", "areas whose population was adjusted"),
    "unresolved": ("area without any solution", "areas without any solution"),
    "figure": ("figure that is not of the true counts", "figures that are not of the true counts"),
    "areas": ("area that cannot be the sum of its parts", "areas that cannot be the sum of their parts"),
}
"""The kinds of inconsistencies: one of them, and more."""

ORIGINS = {
    "indentation": "indentation",
    "sex": "total, men and women",
    "names": "names",
    "universe": "counts of the same people",
    "data": "the counts themselves",
    "file": "the description",
    "labels": "labels",
    "files": "counts that appear in several files",
}
"""What proposed a sum, in words."""

NO_INCONSISTENCIES = "No inconsistencies found: in every area, some true counts fit everything that was published."

# -- whose data they are ------------------------------------------------------------------------------------------------

OFFICIAL = "Values are inferred from published tables; they are not official counts."
NOTICE = (
    "Adapted from {product}. This does not constitute an endorsement by Statistics Canada of this product. "
    f"{OFFICIAL} Tell the agency before you publish what you find."
)


def product_named(product: str | None) -> str:
    """Return what a release is called, without the marks around a command in it."""
    return (product or "").replace("`", "")


def notice(product: str | None) -> str:
    """Return what must appear under every result: whose data they are, and what the values are not."""
    from unround.tables import SIMULATED

    if product and "Statistics Canada" in product:
        return NOTICE.format(product=product)
    if product == SIMULATED:
        return f"Source: {product_named(product)}. No value refers to a real place."
    if product:
        return f"Source: {product}. {OFFICIAL} Tell the agency before you publish what you find."
    return f"{OFFICIAL} If this is a real release, tell the agency before you publish anything about it."


# -- one count --------------------------------------------------------------------------------------------------------


def conclusion(cell: Explanation) -> str:
    """Say in one sentence what is known of a count."""
    where = f"from {cell.low:,} to {cell.high:,}" if cell.high is not None else f"at least {cell.low:,}"
    if cell.kind == "given":
        return f"It was published unrounded: {cell.published:,}."
    if cell.kind in ("proved", "conditional"):
        deep = f" ({argument(cell.depth)})" if cell.depth and cell.depth > 1 else ""
        return f"It is {cell.value:,}: {cell.kind}{proviso(cell.because)}{deep}."
    if cell.probability is None:
        return f"It is {where}; how likely each count is cannot be said."
    claim = "" if cell.kind == "likely" else f" This is not a finding: {_why_open(cell)}."
    if cell.same_as is not None:
        claim = f" It is the same count as {cell.same_as}, published again; any finding is listed there."
    if cell.held_back == "conditional":
        return (
            f"It is {cell.value:,} if an assumption holds that the agency does not guarantee; but such claims are held "
            f"back: {cell.withheld or 'the published figures contradict their mechanism'}."
        )
    if cell.low == cell.high:
        return (
            f"It is {cell.low:,}.{claim}"
            if cell.same_as
            else f"It is {cell.low:,} by its published value alone; no sum is needed."
        )
    sure = probabilities(cell, len(cell.priors))
    return f"It is {where}, most likely {cell.value:,}{f': {sure}' if by_several(cell) else f' ({sure})'}.{claim}"


def proviso(conditions: Sequence[str]) -> str:
    """Return what a conditional count rests on, as the end of a sentence.

    >>> proviso(["an exact population"]), proviso(["if A = B + C leaves nobody out"]), proviso([])
    (', given an exact population', ', if A = B + C leaves nobody out', '')
    """
    said = " and ".join(conditions)
    return f", {'' if said.startswith('if ') else 'given '}{said}" if said else ""


def count_to_quote(cell: Explanation, where: str) -> str:
    """Return a sentence about one count for print: what is inferred, how surely, and what it is not."""
    published = "nothing was published" if cell.published is None else f"{cell.published:,} was published"
    value, documented = number(cell.value), "provided that the sums hold and counts were published as documented"
    if cell.kind == "given":
        return f"{where}: {number(cell.published)} was published unrounded."
    if cell.kind in ("proved", "conditional"):
        said = f"from the published tables it can be proved that the count is {value}, {documented}{proviso(cell.because)}"
    elif cell.kind == "likely":
        said = f"a model gives {value} a probability of {probabilities(cell, len(cell.priors))}, {documented}"
    else:
        said = f"the count is {span(cell.low, cell.high)}, {documented}; nothing more is claimed"
    return f"{where}: {published}; {said}. This is an inference from published tables, not an official count."


def _why_open(cell: Explanation) -> str:
    """Say why a likeliest count is not claimed."""
    least = cell.probability if cell.probability_low is None else cell.probability_low
    if cell.held_back == "likely":
        return f"likely claims are withheld here: {cell.withheld or 'the prior failed its self-check'}"
    if cell.without_sums:
        return "a sum that it belongs to could not be used, and it was judged by itself"
    if cell.known_alone:
        return "it is likely from its published value alone, and sums add little"
    if least is not None and least < cell.threshold:
        if cell.probability_high is not None and cell.probability_high >= cell.threshold:
            return f"it reaches {share(cell.threshold)} under some priors, but not under all"
        return "it is not likely enough"
    return "published figures next to it are inconsistent" if cell.contradictions else "it is likely without any sum"


def due(cell: Any) -> str:
    """Say how much the area's other counts contribute to a likely count; nothing of others.

    >>> due({"kind": "likely", "due_to_sums": 0.834})
    "The area's other counts remove 83% of the doubt that its published value alone leaves."
    """
    due_to_sums = _of(cell, "due_to_sums")
    if due_to_sums is None or _of(cell, "kind") not in ("likely", "open"):
        return ""
    removed = "none" if due_to_sums < 0.005 else f"{100 * min(due_to_sums, 0.99):.0f}%"
    return f"The area's other counts remove {removed} of the doubt that its published value alone leaves."


def argument(depth: int) -> str:
    """Name an argument of several sums.

    >>> argument(2), argument(12)
    ('a two-step argument', 'a 12-step argument')
    """
    return f"a {NUMBERS.get(depth, depth)}-step argument"


def growth(cell: Explanation) -> Iterator[tuple[str, float]]:
    """Say how the probability of the likeliest count changes as more sums are used."""
    steps = ("from its published value alone", "with the totals that include it", "with the sums next to these")
    last = len(cell.growth) - 1
    for k, probability in enumerate(cell.growth):
        if probability is not None:  # before any sum, nothing says how likely an unpublished count is
            how = "with all sums" if k == last > 1 else steps[k] if k < len(steps) else f"with sums up to {k} steps away"
            yield how, probability
    if cell.growth and cell.alone is not None:
        yield "from its published value alone, with the prior fitted to the release", cell.alone
        by_itself = cell.probability if cell.others is None else cell.own
        if by_itself is not None:
            yield (
                "within its possible range, with that prior" if cell.without_sums else f"with all sums and {_fitted(cell)}",
                by_itself,
            )
    if cell.growth and cell.others is not None and cell.probability is not None:
        yield "with the evidence from other areas", cell.probability


def _fitted(cell: Explanation) -> str:
    return "the fitted priors, on average" if by_several(cell) else "the fitted prior"


def again(cell: Explanation) -> str:
    """Say what other files show of the same count: ", and again as 230 and 235"; nothing where none does."""
    numbers = [f"{value:,}" for value in cell.again]
    return f", and again as {' and '.join(numbers)}" if numbers else ""


def added(terms: Sequence[str]) -> str:
    """Return terms with plus signs between them; of more than twelve the first six and the last."""
    return " + ".join(terms) if len(terms) <= 12 else f"{' + '.join(terms[:6])} + … + {terms[-1]}"


def arithmetic(shown: SumShown) -> str:
    """Set the published total against the sum of the published parts.

    >>> from types import SimpleNamespace
    >>> arithmetic(SimpleNamespace(total=33, parts=(9, 9, 12), residual=3))
    'published total 33; parts 9 + 9 + 12 add to 30 (difference +3)'
    >>> arithmetic(SimpleNamespace(total=None, parts=(9, None), residual=None))
    'published total ?; parts 9 + ?'
    """
    terms = added(["?" if part is None else f"{part:,}" for part in shown.parts])
    total = "?" if shown.total is None else f"{shown.total:,}"
    if shown.residual is None or shown.total is None:
        return f"published total {total}; parts {terms}"
    off = f"difference {shown.residual:+,}".replace("-", "−") if shown.residual else "no difference"
    return f"published total {total}; parts {terms} add to {shown.total - shown.residual:,} ({off})"
