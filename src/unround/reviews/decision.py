"""The decision: what a policy finds wrong with a table, what is not settled, and what follows from both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from unround.evidence.block import NO_UPPER_BOUND
from unround.mechanisms.base import BoolArray
from unround.release import Entry, What
from unround.reviews.exposure import Exposure
from unround.reviews.policy import (
    ACCEPT,
    CHECKS,
    CHECKS_IN_WORDS,
    CONTRADICTS,
    DEPARTS,
    KINDS,
    LIKELY,
    NO_SUMS,
    NOT_WEIGHED,
    RANGE,
    REVISE,
    SELF_CHECK,
    STOP,
    UNDECIDED,
    UNTESTED,
    Limit,
    Policy,
    counts_in_words,
)
from unround.shown import Plain

PUBLISH = "publish"
DECISIONS = (PUBLISH, UNDECIDED, REVISE, STOP)
"""The decisions, the best first."""

EXIT_CODES = {PUBLISH: 0, REVISE: 4, STOP: 5, UNDECIDED: 6}


@dataclass(frozen=True, slots=True)
class Unsettled(Plain):
    """Something that could matter, and was not understood or not used: with it, nobody can say that a table is safe.

    - `what`: What it is: a column, a sum, a check.
    - `why`: Why it is not settled.
    - `settle`: The option or the line of TOML that settles it.
    """

    what: str
    why: str
    settle: str

    @classmethod
    def asked(cls, what: str, why: str, settle: str = "") -> Unsettled:
        """Return something that may also be left aside, with a reason."""
        aside = f'leave it aside: --ignore "{what}" --because "…"'
        return cls(what, why, f"{settle}; or {aside}" if settle else aside)


@dataclass(frozen=True, slots=True)
class CheckResults:
    """What is known of the ground that the risk of a table is judged on: everything in `policy.CHECKS`, and how often."""

    verdict: str
    contradictions: int = 0
    self_check_failed: int = 0
    not_weighed: int = 0
    no_sums: bool = False
    sumless: bool = False
    unsettled: tuple[Unsettled, ...] = ()

    @property
    def failed(self) -> dict[str, int]:
        """What is the case, and how often; where something is not counted, 1."""
        numbers = {
            CONTRADICTS: max(self.contradictions, int(self.verdict == CONTRADICTS)),
            DEPARTS: int(self.verdict == DEPARTS),
            UNTESTED: int(self.verdict == UNTESTED and not self.no_sums),
            SELF_CHECK: self.self_check_failed,
            NOT_WEIGHED: self.not_weighed,
            NO_SUMS: int(self.no_sums and not self.sumless),
        }
        return {name: numbers[name] for name in CHECKS if numbers[name]}


@dataclass(frozen=True, slots=True)
class Reason(Plain):
    """Something about a table that the policy does not accept.

    - `limit`: Which limit of the policy is exceeded, from 0 on; None where the ground of the judgement is at fault.
    - `check`: What is wrong with that, of `policy.CHECKS`.
    - `number`, `allowed`: How many counts there are, and how many are acceptable.
    - `action`: What the policy wants: "undecided", "revise" or "stop".
    - `sentence`: The same in words.
    """

    limit: int | None
    check: str | None
    number: int
    allowed: int
    action: str
    sentence: str


@dataclass(frozen=True, eq=False)
class Judgement:
    """A table under a policy.

    - `reasons`: What is not acceptable; nothing where the table is within policy.
    - `numbers`: For every limit, how many counts fall under it; `accepted`: how many more are excused.
    - `act_on`: The cells that fall under a limit that is exceeded.
    """

    reasons: tuple[Reason, ...]
    numbers: tuple[int, ...]
    accepted: tuple[int, ...]
    act_on: BoolArray

    @property
    def within(self) -> bool:
        """Whether the table is within policy, as far as can be said."""
        return all(reason.action == UNDECIDED for reason in self.reasons)


def falls_under(limit: Limit, exposure: Exposure) -> BoolArray:
    """Return the cells that a limit is about."""
    some = exposure.hidden if limit.hidden else np.ones(exposure.kinds.shape, dtype=np.bool_)
    possible = exposure.high.astype(np.int64) - exposure.low + 1
    if limit.interval is not None:
        some = some & exposure.narrowed & (exposure.high < NO_UPPER_BOUND) & (possible < limit.interval)
        return np.asarray(some & _sized(limit, exposure.low, exposure.high))
    if limit.dominance is not None:
        shares = exposure.dominance
        return np.asarray(some & (shares >= limit.dominance) & _sized(limit, exposure.low, exposure.high))
    certain = [KINDS.index(name) for name in limit.claims if name in KINDS and name != LIKELY]
    under = np.isin(exposure.kinds, certain)
    if limit.probability is not None:
        under |= (exposure.kinds == KINDS.index(LIKELY)) & (exposure.highest >= limit.probability)
    under &= (exposure.values >= 0) & _sized(limit, exposure.values, exposure.values)
    if RANGE in limit.claims:
        under |= exposure.narrowed & (possible > 1) & _sized(limit, exposure.low, exposure.high)
    return np.asarray(under & some)


def _sized(limit: Limit, low: np.ndarray, high: np.ndarray) -> BoolArray:
    """Return where everything from low to high is of one of a limit's sizes."""
    some = np.zeros(low.shape, dtype=np.bool_)
    for first, last in limit.counts:
        some |= (low >= first) & ((high <= last) if last is not None else True)
    return some


def judge(policy: Policy, exposure: Exposure, ground: CheckResults, published: int, excused: BoolArray | None) -> Judgement:
    """Hold a table against a policy."""
    reasons, numbers, accepted = [], [], []
    act_on = np.zeros(exposure.kinds.shape, dtype=np.bool_)
    for at, limit in enumerate(policy.limits):
        cells = falls_under(limit, exposure)
        whole = int(cells.sum())
        if excused is not None:
            cells &= ~excused
        number, allowed = int(cells.sum()), limit.allowed(published)
        numbers.append(number)
        accepted.append(whole - number)
        if number > allowed:
            act_on |= cells
            acceptable = "none is acceptable" if not allowed else f"{allowed:,} would be acceptable"
            reasons.append(Reason(at, None, number, allowed, REVISE, f"{counts_in_words(limit, number)}; {acceptable}."))
    for name, number in ground.failed.items():
        action = policy.checks[name]
        if action != ACCEPT:
            reasons.append(Reason(None, name, number, 0, action, _check_in_words(name, number)))
    order = (STOP, REVISE, UNDECIDED)  # what stops a table is said first
    reasons.sort(key=lambda reason: order.index(reason.action))
    return Judgement(tuple(reasons), tuple(numbers), tuple(accepted), act_on)


def decide(judgement: Judgement, mended: bool, unsettled: Sequence[Unsettled]) -> str:
    """Return the decision; `mended` says whether a repair brings the table within policy.

    What is known to be out of policy is revised, if a repair brings it within, or stopped. Of the rest, only a table of
    which everything was read and used is published.
    """
    if any(reason.action == STOP for reason in judgement.reasons):
        return STOP
    if not judgement.within:
        return REVISE if mended else STOP
    return UNDECIDED if unsettled else PUBLISH


# -- what is not settled ----------------------------------------------------------------------------------------------

_SETTLE = {
    CONTRADICTS: "correct the figures named under “What contradicts”; or say how counts were published: --mechanism, "
    "--base, --exact, or `[[exact]]` in the description",
    DEPARTS: "say how counts were published: --mechanism nearest:5 if they were rounded to the nearest 5 and not at random, "
    "--base or --exact otherwise; `unround check FILE` shows where they depart",
    UNTESTED: "say how counts were published: --mechanism or --base",
    SELF_CHECK: "give the true counts (--truth FILE), so that claims can be scored",
    NOT_WEIGHED: "leave out the sums that form loops (`unround check FILE --write FILE.toml`), or split the table",
    NO_SUMS: "say which columns or rows add up (`unround describe FILE -o draft.toml`, then `sums = …`)",
}


def unsettled_of(ground: CheckResults, judgement: Judgement) -> list[Unsettled]:
    """Return everything that keeps a table from being published: what was not read or used, and checks that failed."""
    matters = list(ground.unsettled)
    for reason in judgement.reasons:
        if reason.action == UNDECIDED and reason.check is not None:
            settle = f'{_SETTLE[reason.check]}; or accept it in the policy: `{reason.check} = "accept"` under [check]'
            matters.append(Unsettled(f"check: {reason.check}", reason.sentence, settle))
    return list(dict.fromkeys(matters))


_HARMLESS = (What.LABEL, What.CODE, What.NOTE, What.SILENT, What.SUPPRESSED)


def left_open(account: Iterable[Entry]) -> list[Unsettled]:
    """Return what the reading of a table leaves open: numbers that are not understood, or were read and not used."""
    matters = []
    for entry in account:
        if entry.what in _HARMLESS or (entry.used and entry.what is not What.UNKNOWN):
            continue
        verb = "was not understood" if entry.what is What.UNKNOWN else f"was read as {entry.what}, and not used"
        matters.append(Unsettled.asked(entry.place, f"{entry.place} {verb}: {entry.why}", entry.settle))
    return matters


def _check_in_words(name: str, number: int) -> str:
    """Say what is wrong with the ground of a judgement."""
    times = f" ({number:,} times)" if name == CONTRADICTS and number > 1 else ""
    if name == NOT_WEIGHED:
        times = f" ({number:,} counts)" if number > 1 else " (1 count)"
    return f"{CHECKS_IN_WORDS[name]}{times}."
