"""Does a sum hold? Its residuals, total − parts, must be possible almost everywhere, and scatter as the mechanisms say.

Random rounding without bias leaves residuals that average zero, over all areas and whatever the size of the counts; only if
areas were chosen by their published parts would they not. So nothing is chosen: a sum that misses a part of its total shows
in the average long before it shows as an impossible residual.

Sums with counts too small to be judged on their own are judged by what is known of others. If "15 to 64 years" is the sum
of its five-year groups for all people, it is so for the men among them: a partition of people is one of any of them. And if
men and women make the total wherever that can be seen, they do so in rare categories too. Small counts are those that
matter most to the people in them; leaving them out would look safer than it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from unround.mechanisms import Mechanism
from unround.release import Column, axis_of
from unround.structure.evidence import FILES, FOUND, LABELS, JudgedSum
from unround.structure.residuals import TELLING, SumTally

MANY_ERRORS, FOUND_ERRORS = 5.0, 3.5
"""A mean residual of more standard errors than this is no chance; what was only found in the data must fit better."""
SLIGHT, SLIGHT_SHARE, AT_MOST_SLIGHT = 0.1, 0.001, 0.5
"""A mean residual under this, or under this share of the total if that is no more than the last, is never held against a
sum: agencies edit their tables a little."""
WIDER, NARROWER = 1.6, 0.5  # by which factor the variance of residuals may differ from what the mechanisms say
SHARE, FOUND_SHARE = 0.03, 0.004
"""How well the parts' sum must be known, as a share of the total, to believe a proposal; and one found in the data."""
HALF = 0.5
"""Small parts may be published too low by this share of the smallest count above zero, on average, in a documented sum."""
USUAL_LEAN, _LARGEST_LEAN = 0.05, 0.25
"""How far small counts may lean, in steps between counts, even if a release shows less; and at most."""
_TYPICAL = 5  # the sums from which that can be measured

SEVERAL, FOUND_SEVERAL, FOUND_PAIRS = 10, 30, 200
"""Areas from which an average says something (with fewer, the total must be far larger than what rounding can do); for sums
found in the data; and for pairs found so: two counts that differ by a few people in a few areas look the same in few."""

Lean = Mapping[Mechanism, float]


def lean_of(results: Sequence[SumTally]) -> dict[Mechanism, float]:
    """Measure by how much small counts lean downwards, in steps between counts: the typical mean residual for each of them.

    Rounding is unbiased on paper. In the Canadian census of 2021, small counts of the 25 % sample are published as 0 more
    often than they should, so that men and women come to less than their total by up to 1.5. That is no reason not to
    believe these sums. It shows in all of them alike, in proportion to the small counts that they have; a missing part
    shows in one.
    """
    ratios: dict[Mechanism, list[float]] = {}
    for result in results:
        if (
            result.known
            and not result.fails
            and not result.exactly
            and len(result.small) == 1
            and len(result.proposal.parts) > 1
        ):
            ((kind, amount),) = result.small.items()
            if amount > 0 and result.error <= 0.02 * amount:
                ratios.setdefault(kind, []).append(result.mean / amount)
    return {
        kind: float(np.clip(np.median(leans), USUAL_LEAN, _LARGEST_LEAN))
        for kind, leans in ratios.items()
        if len(leans) >= _TYPICAL
    }


def judge(result: SumTally, names: Sequence[str], lean: Lean) -> JudgedSum:
    """Decide whether a sum holds, and say why."""
    cause, refused = _refusal(result, names, lean)
    unjudged = None if refused else _too_little(result)
    refused = refused or unjudged
    expected = float(((result.least + result.most) / 2) ** 0.5)
    return JudgedSum(
        total=result.proposal.total,
        parts=result.proposal.parts,
        origin=result.proposal.origin,
        areas=result.areas,
        impossible=result.impossible,
        mean=result.mean,
        spread=result.spread,
        expected=expected,
        kept=refused is None,
        why=_kept(result, expected) if refused is None else refused,
        exactly=result.exactly and refused is not None and unjudged is None,
        unjudged=unjudged is not None,
        cause=cause,
        residuals=result.residuals,
        against=result.proposal.against,
    )


def areas_(number: int) -> str:
    """Return a number of areas in words."""
    return f"{number:,} area" if number == 1 else f"{number:,} areas"


def _kept(result: SumTally, expected: float) -> str:
    if result.areas == 1:
        (residual,) = result.residuals
        return (
            f"one area, weak evidence: a residual of {residual} is possible, and the total is far larger than any rounding"
        )
    words = f"in {areas_(result.areas)} the residual averages {result.mean:.2f}, standard deviation {result.spread:.2f}"
    words += f" (expected {expected:.2f})"
    if result.leaning is not None and _leans(result) and _off(result, {})[1]:
        words += f"; small parts are published {result.leaning.each:.2f} too low on average, and large ones miss nothing"
    return words + (f"; impossible in {areas_(result.impossible)}" if result.impossible else "; possible everywhere")


def _refusal(result: SumTally, names: Sequence[str], lean: Lean) -> tuple[str, str | None]:
    """Return the reason not to believe a sum, the plainest first, in a word and in full; None if there is none."""
    proposal, areas = result.proposal, result.areas
    if not result.known:
        return "unknown", "it is not known how some of its counts were published"
    if not areas:
        return "absent", "its counts are never all published for the same area"
    if result.fails:
        side = "too small" if result.too_high > result.too_low else "too large"
        able = f" with large enough counts, of {areas:,}" if result.able < areas else ""
        return "impossible", (
            f"impossible in {result.impossible:,} of {areas_(result.able)}{able} ({result.impossible / result.able:.1%}): "
            f"the parts are mostly {side} (the residual averages {result.all_mean:.2f})"
        )
    if len(proposal.parts) > 1 and areas > 1 and not result.nonzero:
        return "", None  # there is nothing to judge by, as `_too_little` will say
    if result.exactly:
        return "exactly", (
            f"adds up exactly in all {areas_(areas)}, which independent rounding would not: "
            f"{names[proposal.total]} was added up after rounding, and adds no information"
        )
    mean, errors = _off(result, lean)
    if areas > 1 and errors and not _leans(result):
        side = "do not cover the total" if mean > 0 else "overlap or include too much"
        weighed = "" if mean == result.mean else ", weighted towards large areas"
        far = (
            f"{errors:.0f} standard errors beyond what rounding explains"
            if errors < 1e6
            else "far beyond what rounding explains"
        )
        return "mean", f"the residual averages {mean:.2f} in {areas_(areas)}{weighed} ({far}): the parts {side}"
    wrong = _wrong_spread(result)
    return "spread" if wrong else "", wrong


def _off(result: SumTally, lean: Lean) -> tuple[float, float]:
    """Return a mean residual too far from zero to be chance, and by how many standard errors; else two zeros.

    Two means are looked at: over all areas alike, and with the large ones weighing more. Bias is allowed for: what
    the mechanisms have of their own, and how small counts lean in this release.
    """
    leaning = result.bias + sum(2 * lean.get(kind, USUAL_LEAN) * amount for kind, amount in result.small.items())
    many = FOUND_ERRORS if result.proposal.origin == FOUND else MANY_ERRORS
    slight = max(SLIGHT, min(AT_MOST_SLIGHT, SLIGHT_SHARE * result.mean_total))
    for mean, error in ((result.mean, result.error), (result.heavy_mean, result.heavy_error)):
        off = abs(mean) - leaning
        if off > slight and off > many * error:
            return mean, off / error if error else float("inf")
    return 0.0, 0.0


def _leans(result: SumTally) -> bool:
    """Return whether a mean residual of a documented sum comes of small counts that lean: large ones miss nothing."""
    split = result.leaning
    if split is None or result.proposal.origin == FOUND or not 0 < split.each <= HALF * result.step:
        return False
    missing = abs(split.share)
    slight = max(SLIGHT, min(AT_MOST_SLIGHT, SLIGHT_SHARE * result.mean_total)) / max(result.mean_total, 1e-9)
    return missing <= slight and split.error <= slight


def _wrong_spread(result: SumTally) -> str | None:
    """Compare the variance of the residuals with what the mechanisms say; small counts leave that open to some extent."""
    # Where most counts are 0, only the few areas with others tell anything.
    telling, some = result.areas * result.changed, result.areas * result.uneven
    variance = result.spread**2
    numbers = f"the standard deviation of the residual is {result.spread:.2f} where "
    if some >= TELLING and variance > WIDER * (1 + 5 * (2 / some) ** 0.5) * result.most:
        return f"{numbers}at most {result.most**0.5:.2f} is expected: these counts differ by more than rounding"
    if telling >= TELLING and variance * (1 + 5 * (2 / telling) ** 0.5) < NARROWER * result.least:
        return f"{numbers}at least {result.least**0.5:.2f} is expected: total and parts were not rounded independently"
    return None


def _too_little(result: SumTally) -> str | None:
    """Return why there is too little evidence, if so: nothing but small counts fits any sum."""
    is_found = result.proposal.origin == FOUND
    if result.mean_total == 0:
        return f"cannot be tested: the total is 0 everywhere ({areas_(result.areas)})"
    known = max(result.error, 1e-9) / result.mean_total
    if len(result.proposal.parts) > 1 and result.areas > 1 and not result.nonzero:
        return "cannot be tested: no area has two parts above 0"
    known_to = FOUND_SHARE if is_found else SHARE
    several = SEVERAL if not is_found else FOUND_SEVERAL if len(result.proposal.parts) > 1 else FOUND_PAIRS
    if (known <= known_to and result.areas >= several) or (result.large and not is_found):
        return None
    return (
        f"too little to test: the total averages {result.mean_total:.1f} in {areas_(result.areas)}, "
        f"and the residual is known to {result.error:.2f}"
    )


_WITNESSES = 3  # A split along an axis needs this many tested examples before it is assumed of others
_HOLDING = 0.98  # and this share of them must hold
_SURPLUS = 0.02  # parts that exceed their total by this share on average overlap
_FAILURES = ("impossible", "mean", "spread")  # why a sum that could be judged is not believed
_WHOLE = "total"  # what everybody is called on the axis of sexes
_LAYOUT = ("indentation", "names", "data")


def by_analogy(checked: Sequence[JudgedSum], columns: Sequence[Column]) -> list[JudgedSum]:
    """Keep the sums that could not be judged, but hold for other codes of an axis along which they do not add up."""
    keys = [_pattern(judged, columns) if judged.origin != FILES else (1, FILES, ()) for judged in checked]
    witnesses = Counter(key for judged, key in zip(checked, keys, strict=True) if not judged.unjudged)
    holding = Counter(key for judged, key in zip(checked, keys, strict=True) if judged.kept)
    decided = []
    for judged, key in zip(checked, keys, strict=True):
        if judged.unjudged and judged.areas and key is not None:
            seen, fine = witnesses[key], holding[key]
            enough = fine == seen > 0 if key[0] == 0 else fine >= max(_WITNESSES, _HOLDING * seen)
            if enough:
                words = f"kept because the same holds in {fine:,} of {seen:,} cases that can be tested"
                decided.append(replace(judged, kept=True, why=f"{judged.why}; {words}"))
                continue
        decided.append(judged)
    return decided


def on_trust(checked: Sequence[JudgedSum], columns: Sequence[Column]) -> list[JudgedSum]:
    """Keep the sums that labels suggest where a table is too small to test any, and its mechanisms are declared."""

    def declared(judged: JudgedSum) -> bool:
        return all(columns[at].mechanism or columns[at].documented for at in (judged.total, *judged.parts))

    if any(judged.kept or not judged.unjudged for judged in checked):
        return list(checked)
    words = "taken on trust: no sum of this table can be tested"
    return [
        replace(judged, kept=True, why=f"{judged.why}; {words}")
        if judged.origin in (LABELS, "names") and judged.areas and not judged.impossible and declared(judged)
        else judged
        for judged in checked
    ]


def for_everybody(checked: Sequence[JudgedSum], columns: Sequence[Column], names: Sequence[str]) -> list[JudgedSum]:
    """Reject the sums of men, or of women, that do not hold for everybody: what is missing may be too little to show."""
    patterns = [_pattern(judged, columns) for judged in checked]
    failed = {
        pattern: judged.total
        for judged, pattern in zip(checked, patterns, strict=True)
        if pattern is not None and judged.cause in _FAILURES and _is_everybody(judged, columns)
    }
    return [
        replace(
            judged,
            kept=False,
            cause="everybody",
            why=f"the same does not hold for {names[failed[pattern]]}; here: {judged.why}",
        )
        if judged.kept and pattern in failed and not _is_everybody(judged, columns)
        else judged
        for judged, pattern in zip(checked, patterns, strict=True)
    ]


def _is_everybody(judged: JudgedSum, columns: Sequence[Column]) -> bool:
    """Return whether a sum adds up along the first axis only, for the totals of all others."""
    codes = [columns[at].codes[1:] for at in (judged.total, *judged.parts)]
    return all(code == _WHOLE for rest in codes for code in rest)


def overlapping(checked: Sequence[JudgedSum], results: Sequence[SumTally], names: Sequence[str]) -> list[JudgedSum]:
    """Reject the sums below a total whose parts add to more than it: where people gave several answers, groups overlap.

    In such a table small groups may add up by chance in nearly every area, and still not be partitions.
    """
    inside: dict[int, set[int]] = {}
    holds = {judged.total for judged in checked if judged.kept and len(judged.parts) > 1 and judged.origin in _LAYOUT}
    doubtful: dict[int, int] = {}
    for judged, result in zip(checked, results, strict=True):
        if judged.origin in _LAYOUT and len(judged.parts) > 1:
            inside.setdefault(judged.total, set()).update(judged.parts)
            if result.fails and judged.total not in holds and result.all_mean < -_SURPLUS * result.mean_total:
                doubtful[judged.total] = judged.total
    ahead = list(doubtful)
    while ahead:
        above = ahead.pop()
        for part in inside.get(above, ()):
            if part in inside and part not in doubtful:
                doubtful[part] = doubtful[above]
                ahead.append(part)
    return [
        replace(judged, kept=False, unjudged=False, why=_overlap(judged, names[doubtful[judged.total]]))
        if judged.kept and judged.origin in _LAYOUT and len(judged.parts) > 1 and judged.total in doubtful
        else judged
        for judged in checked
    ]


def _overlap(judged: JudgedSum, above: str) -> str:
    return f"is below {above}, whose parts add to more than it, so people are counted in several parts; here: {judged.why}"


def _pattern(judged: JudgedSum, columns: Sequence[Column]) -> tuple[int, str, tuple[str, ...]] | None:
    """Return the axis along which a sum adds up, and its codes there; None where several codes change at once."""
    cells = [columns[at] for at in (judged.total, *judged.parts)]
    axis = axis_of(cells)
    if axis is None or len(cells[0].codes) < 2 or len(judged.parts) < 2:
        return None
    return axis, cells[0].codes[axis], tuple(sorted(column.codes[axis] for column in cells[1:]))
