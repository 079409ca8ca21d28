"""Limits and reasons as sentences: the same in JSON, on the page, in the terminal and in the workbook."""

from __future__ import annotations

from collections.abc import Sequence

from unround.reviews.decision import Reason
from unround.reviews.policy import (
    CONDITIONAL,
    CONTRADICTS,
    DEPARTS,
    LIKELY,
    NOT_WEIGHED,
    PROVED,
    SELF_CHECK,
    SIZE_NAMES,
    UNROUNDED,
    UNTESTED,
    Limit,
    Policy,
)

_SIZES = {"0": "zero", "1-2": "one or two", "3-9": "three to nine", "10+": "ten or more"}
_CERTAIN = {
    UNROUNDED: "is published unrounded",
    PROVED: "can be proved",
    CONDITIONAL: "can be proved under an assumption",
}
_MANY = {
    UNROUNDED: "are published unrounded",
    PROVED: "can be proved",
    CONDITIONAL: "can be proved under an assumption",
}
_CHECKS = {
    CONTRADICTS: "Published figures contradict each other or the mechanism",
    DEPARTS: "The data depart from the mechanism",
    UNTESTED: "The mechanism could not be tested: there are too few sums",
    SELF_CHECK: "The prior fails to predict what was published, so that probabilities may be far off",
    NOT_WEIGHED: "How likely some counts are could not be worked out",
}
_ACTIONS = {"accept": "accepted", "revise": "not accepted; a repair has to mend it", "stop": "a reason to stop"}


def _either(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def share(probability: float) -> str:
    """Return a probability that somebody chose, exactly as chosen."""
    return f"{100 * probability:.6g}%"


def _of_size(limit: Limit) -> str:
    return "" if limit.counts == SIZE_NAMES else f" of {_either([_SIZES[name] for name in limit.counts])}"


def _what(limit: Limit, verbs: dict[str, str], is_are: str) -> str:
    said = [verbs[name] for name in limit.claims if name != LIKELY]
    if PROVED in limit.claims and CONDITIONAL in limit.claims:  # both can be proved: say it once
        said = [one for one in said if one not in (verbs[PROVED], verbs[CONDITIONAL])]
        said.append("can be proved, with or without an assumption")
    if limit.probability is not None:
        said.append(f"{is_are} at least {share(limit.probability)} likely")
    return _either(said)


def limit_in_words(limit: Limit) -> str:
    """Say what a limit accepts.

    Examples
    --------
    >>> limit_in_words(Limit(("proved",), ("1-2",), None, 0, None))
    'No count of one or two can be proved.'
    >>> limit_in_words(Limit(("likely",), ("0", "1-2", "3-9", "10+"), 0.95, None, 200))
    'At most 200 per 10,000 counts are at least 95% likely.'
    """
    if limit.at_most == 0 or limit.per_10000 == 0:
        return f"No count{_of_size(limit)} {_what(limit, _CERTAIN, 'is')}."
    if limit.at_most is not None:
        many = "1 count" if limit.at_most == 1 else f"{limit.at_most:,} counts"
        return f"At most {many}{_of_size(limit)} {_what(limit, _MANY, 'are')}."
    counts = f" counts{_of_size(limit)}" if not _of_size(limit) else f" of all counts are counts{_of_size(limit)} that"
    return f"At most {limit.per_10000:g} per 10,000{counts} {_what(limit, _MANY, 'are')}."


def policy_in_words(policy: Policy) -> list[str]:
    """Say what a policy accepts, a sentence each."""
    checks = [f"{_CHECKS[name]}: {_ACTIONS[policy.checks[name]]}." for name in policy.checks]
    return [*(limit_in_words(limit) for limit in policy.limits), *checks]


def counts_in_words(limit: Limit, number: int) -> str:
    """Say how many counts fall under a limit.

    Examples
    --------
    >>> limit = Limit(("proved",), ("1-2",), None, 0, None)
    >>> counts_in_words(limit, 2), counts_in_words(limit, 0)
    ('2 counts of one or two can be proved', 'No count of one or two can be proved')
    """
    if number < 2:
        return f"{'1' if number else 'No'} count{_of_size(limit)} {_what(limit, _CERTAIN, 'is')}"
    return f"{number:,} counts{_of_size(limit)} {_what(limit, _MANY, 'are')}"


def reason_in_words(reason: Reason, policy: Policy) -> str:
    """Say why a table is not acceptable."""
    if reason.limit is not None:
        allowed = "none is acceptable" if not reason.allowed else f"{reason.allowed:,} would be acceptable"
        return f"{counts_in_words(policy.limits[reason.limit], reason.number)}; {allowed}."
    assert reason.check is not None
    number = f" ({reason.number:,} times)" if reason.check == CONTRADICTS and reason.number > 1 else ""
    if reason.check == NOT_WEIGHED:
        number = f" ({reason.number:,} counts)" if reason.number > 1 else " (1 count)"
    return f"{_CHECKS[reason.check]}{number}."
