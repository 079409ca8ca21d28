"""Sums with counts too small to be judged on their own, judged by what is known of others.

If "15 to 64 years" is the sum of its five-year groups for all people, it is so for the men among them: a partition of
people is one of any of them. And if men and women make the total wherever that can be seen, they do so in rare categories
too. Small counts are those that matter most to the people in them; leaving them out would look safer than it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from unround.release import Column
from unround.structure.evidence import JudgedSum
from unround.structure.repeats import FILES
from unround.structure.residuals import SumTally

_WITNESSES = 3
"""A split along an axis needs this many tested examples before it is assumed of others."""
_HOLDING = 0.98
"""And this share of them must hold."""
_SURPLUS = 0.02
"""Parts that exceed their total by this share on average overlap."""
_FAILURES = ("impossible", "mean", "spread")
"""Why a sum that could be judged is not believed."""
_WHOLE = "total"
"""What everybody is called on the axis of sexes."""
_LAYOUT = ("indentation", "names", "data")


def by_analogy(checked: Sequence[JudgedSum], columns: Sequence[Column]) -> list[JudgedSum]:
    """Keep the sums that could not be judged, but hold for other codes of an axis along which they do not add up."""
    keys = [_pattern(one, columns) if one.origin != FILES else (1, FILES, ()) for one in checked]
    witnesses = Counter(key for one, key in zip(checked, keys, strict=True) if not one.unjudged)
    holding = Counter(key for one, key in zip(checked, keys, strict=True) if one.kept)
    found = []
    for one, key in zip(checked, keys, strict=True):
        if one.unjudged and one.areas and key is not None:
            seen, fine = witnesses[key], holding[key]
            enough = fine == seen > 0 if key[0] == 0 else fine >= max(_WITNESSES, _HOLDING * seen)
            if enough:
                words = f"kept because the same holds in {fine:,} of {seen:,} cases that can be tested"
                found.append(replace(one, kept=True, why=f"{one.why}; {words}"))
                continue
        found.append(one)
    return found


def for_everybody(checked: Sequence[JudgedSum], columns: Sequence[Column], names: Sequence[str]) -> list[JudgedSum]:
    """Reject the sums of men, or of women, that do not hold for everybody: what is missing may be too little to show."""
    patterns = [_pattern(one, columns) for one in checked]
    failed = {
        pattern: one.total
        for one, pattern in zip(checked, patterns, strict=True)
        if pattern is not None and one.cause in _FAILURES and _is_everybody(one, columns)
    }
    return [
        replace(
            one, kept=False, cause="everybody", why=f"the same does not hold for {names[failed[pattern]]}; here: {one.why}"
        )
        if one.kept and pattern in failed and not _is_everybody(one, columns)
        else one
        for one, pattern in zip(checked, patterns, strict=True)
    ]


def _is_everybody(one: JudgedSum, columns: Sequence[Column]) -> bool:
    """Say whether a sum adds up along the first axis only, for the totals of all others."""
    codes = [columns[at].codes[1:] for at in (one.total, *one.parts)]
    return all(code == _WHOLE for rest in codes for code in rest)


def overlapping(checked: Sequence[JudgedSum], results: Sequence[SumTally], names: Sequence[str]) -> list[JudgedSum]:
    """Reject the sums below a total whose parts add to more than it: where people gave several answers, groups overlap.

    In such a table small groups may add up by chance in nearly every area, and still not be partitions.
    """
    inside: dict[int, set[int]] = {}
    holds = {one.total for one in checked if one.kept and len(one.parts) > 1 and one.origin in _LAYOUT}
    doubtful: dict[int, int] = {}
    for one, result in zip(checked, results, strict=True):
        if one.origin in _LAYOUT and len(one.parts) > 1:
            inside.setdefault(one.total, set()).update(one.parts)
            if result.fails and one.total not in holds and result.all_mean < -_SURPLUS * result.mean_total:
                doubtful[one.total] = one.total
    ahead = list(doubtful)
    while ahead:
        above = ahead.pop()
        for part in inside.get(above, ()):
            if part in inside and part not in doubtful:
                doubtful[part] = doubtful[above]
                ahead.append(part)
    return [
        replace(one, kept=False, unjudged=False, why=_overlap(one, names[doubtful[one.total]]))
        if one.kept and one.origin in _LAYOUT and len(one.parts) > 1 and one.total in doubtful
        else one
        for one in checked
    ]


def _overlap(one: JudgedSum, above: str) -> str:
    return f"is below {above}, whose parts add to more than it, so people are counted in several parts; here: {one.why}"


def _pattern(one: JudgedSum, columns: Sequence[Column]) -> tuple[int, str, tuple[str, ...]] | None:
    """Return the axis along which a sum adds up, and its codes there; None where several codes change at once."""
    cells = [columns[at].codes for at in (one.total, *one.parts)]
    changing = [axis for axis in range(len(cells[0])) if len({codes[axis] for codes in cells}) > 1]
    if len(changing) != 1 or len(cells[0]) < 2 or len(one.parts) < 2:
        return None
    (axis,) = changing
    return axis, cells[0][axis], tuple(sorted(codes[axis] for codes in cells[1:]))
