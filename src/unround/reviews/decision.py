"""The decision: what a policy finds wrong with a table, and whether it is to be published, revised or stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unround.mechanisms.base import BoolArray
from unround.reviews.exposure import Exposure
from unround.reviews.policy import (
    ACCEPT,
    CHECKS,
    CONTRADICTS,
    DEPARTS,
    KINDS,
    LIKELY,
    NOT_WEIGHED,
    REVISE,
    SELF_CHECK,
    SIZE_NAMES,
    STOP,
    UNTESTED,
    Limit,
    Policy,
)

PUBLISH = "publish"
DECISIONS = (PUBLISH, REVISE, STOP)
EXIT_CODES = {PUBLISH: 0, REVISE: 4, STOP: 5}


@dataclass(frozen=True, slots=True)
class Ground:
    """What is known of the ground that the risk of a table is judged on: everything in `policy.CHECKS`, and how often."""

    verdict: str
    contradictions: int = 0
    self_check_failed: int = 0
    not_weighed: int = 0

    @property
    def found(self) -> dict[str, int]:
        """What is the case, and how often; where something is not counted, 1."""
        numbers = {
            CONTRADICTS: max(self.contradictions, int(self.verdict == CONTRADICTS)),
            DEPARTS: int(self.verdict == DEPARTS),
            UNTESTED: int(self.verdict == UNTESTED),
            SELF_CHECK: self.self_check_failed,
            NOT_WEIGHED: self.not_weighed,
        }
        return {name: numbers[name] for name in CHECKS if numbers[name]}


@dataclass(frozen=True, slots=True)
class Reason:
    """Something about a table that the policy does not accept.

    - `limit`: Which limit of the policy is exceeded, from 0 on; None where the ground of the judgement is at fault.
    - `check`: What is wrong with that, of `policy.CHECKS`.
    - `number`, `allowed`: How many counts there are, and how many are acceptable.
    - `action`: What the policy wants: "revise" or "stop".
    """

    limit: int | None
    check: str | None
    number: int
    allowed: int
    action: str

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "limit": self.limit,
            "check": self.check,
            "number": self.number,
            "allowed": self.allowed,
            "action": self.action,
        }


@dataclass(frozen=True, eq=False)
class Judgement:
    """A table under a policy.

    - `reasons`: What is not acceptable; nothing where the table is within policy.
    - `numbers`: For every limit, how many counts fall under it.
    - `act_on`: The cells that fall under a limit that is exceeded.
    """

    reasons: tuple[Reason, ...]
    numbers: tuple[int, ...]
    act_on: BoolArray

    @property
    def within(self) -> bool:
        """Whether the table is within policy."""
        return not self.reasons


def falls_under(limit: Limit, exposure: Exposure) -> BoolArray:
    """Return the cells that a limit is about."""
    sizes = np.isin(exposure.sizes, [SIZE_NAMES.index(name) for name in limit.counts]) & (exposure.values >= 0)
    certain = [KINDS.index(name) for name in limit.claims if name != LIKELY]
    found = np.isin(exposure.kinds, certain)
    if limit.probability is not None:
        found |= (exposure.kinds == KINDS.index(LIKELY)) & (exposure.highest >= limit.probability)
    return np.asarray(found & sizes)


def judge(policy: Policy, exposure: Exposure, ground: Ground, published: int, excused: BoolArray | None) -> Judgement:
    """Hold a table against a policy."""
    reasons, numbers = [], []
    act_on = np.zeros(exposure.kinds.shape, dtype=np.bool_)
    for at, limit in enumerate(policy.limits):
        cells = falls_under(limit, exposure)
        if excused is not None:
            cells &= ~excused
        number, allowed = int(cells.sum()), limit.allowed(published)
        numbers.append(number)
        if number > allowed:
            act_on |= cells
            reasons.append(Reason(at, None, number, allowed, REVISE))
    for name, number in ground.found.items():
        action = policy.checks[name]
        if action != ACCEPT:
            reasons.append(Reason(None, name, number, 0, action))
    reasons.sort(key=lambda reason: reason.action != STOP)  # what stops a table is said first
    return Judgement(tuple(reasons), tuple(numbers), act_on)


def decide(judgement: Judgement, repairs: Sequence[Mapping[str, Any]]) -> str:
    """Return the decision: publish what is within policy, revise what a repair brings within it, stop the rest."""
    if judgement.within:
        return PUBLISH
    if any(reason.action == STOP for reason in judgement.reasons):
        return STOP
    return REVISE if any(row["within_policy"] for row in repairs) else STOP
