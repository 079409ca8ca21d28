"""The policy: what may be published. A TOML file, stated word for word in every review."""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unround.audits.summary import SIZES
from unround.errors import InputError
from unround.options import THRESHOLD
from unround.small_files import parsed_toml, plain_text

UNROUNDED, PROVED, CONDITIONAL, LIKELY = "unrounded", "proved", "conditional", "likely"
KINDS = ("open", UNROUNDED, PROVED, CONDITIONAL, LIKELY)
"""What can be known of a count; the first is no claim."""

SIZE_NAMES = tuple(name for _, name in SIZES)

ACCEPT, REVISE, STOP = "accept", "revise", "stop"
ACTIONS = (ACCEPT, REVISE, STOP)

CONTRADICTS, DEPARTS, UNTESTED, SELF_CHECK, NOT_WEIGHED = "contradicts", "departs", "untested", "self_check", "not_weighed"
CHECKS = (CONTRADICTS, DEPARTS, UNTESTED, SELF_CHECK, NOT_WEIGHED)
"""What can be wrong with the ground that a risk is judged on."""

_LIMIT_KEYS = ("claims", "counts", "probability", "at_most", "per_10000")
_KEYS = ("name", "limit", "check")
_SHOW = "`unround review --show-policy` prints the default policy."

DEFAULT = Path(__file__).with_name("default_policy.toml")


@dataclass(frozen=True, slots=True)
class Limit:
    """How many counts of some kinds are acceptable.

    - `claims`: The kinds, of `KINDS`.
    - `counts`: The sizes, of `SIZE_NAMES`.
    - `probability`: For likely counts, from which probability on.
    - `at_most`: How many are acceptable, however large the table is.
    - `per_10000`: How many are acceptable per 10,000 counts.
    """

    claims: tuple[str, ...]
    counts: tuple[str, ...]
    probability: float | None
    at_most: int | None
    per_10000: float | None

    def allowed(self, cells: int) -> int:
        """Return how many are acceptable in a table of so many counts."""
        if self.at_most is not None:
            return self.at_most
        assert self.per_10000 is not None  # one of the two is given
        return int(self.per_10000 * cells / 10_000 + 1e-9)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "claims": list(self.claims),
            "counts": list(self.counts),
            "probability": self.probability,
            "at_most": self.at_most,
            "per_10000": self.per_10000,
        }


@dataclass(frozen=True, slots=True)
class Policy:
    """What may be published.

    - `name`, `source`: What it is called, and where it was read from.
    - `text`: The file, word for word.
    - `limits`: How many counts of which kinds are acceptable.
    - `checks`: For everything in `CHECKS`, what to do about it, of `ACTIONS`.
    """

    name: str
    source: str
    text: str
    limits: tuple[Limit, ...]
    checks: Mapping[str, str]

    @property
    def least_probability(self) -> float:
        """The lowest probability that any limit is about."""
        return min((one.probability for one in self.limits if one.probability is not None), default=THRESHOLD)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "name": self.name,
            "source": self.source,
            "sha256": hashlib.sha256(self.text.encode()).hexdigest(),
            "limits": [one.to_json() for one in self.limits],
            "check": dict(self.checks),
            "text": self.text,
        }


def policy_of(given: Policy | str | os.PathLike[str] | None) -> Policy:
    """Return a policy: the default one, or that of a file."""
    if isinstance(given, Policy):
        return given
    if given is None:
        return parse_policy(DEFAULT.read_text(encoding="utf-8"), "the default policy")
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"a policy is a TOML file, not {type(given).__name__}. {_SHOW}")
    return parse_policy(plain_text(given, _SHOW), os.fspath(given))


def parse_policy(text: str, source: str) -> Policy:
    """Read a policy.

    Raises `InputError` where it is no TOML, has a key that does not exist, or a value that means nothing.
    """
    told = parsed_toml(text, source)
    _known(told, _KEYS, source, "")
    limits, checks = told.get("limit", []), told.get("check", {})
    if not isinstance(limits, list) or not all(isinstance(one, dict) for one in limits):
        raise InputError(f"{source}: limits are written as [[limit]], in double brackets. {_SHOW}")
    if not limits:
        raise InputError(f"{source} has no [[limit]], so everything would be acceptable. {_SHOW}")
    if not isinstance(checks, dict):
        raise InputError(f"{source}: check is a table, [check]. {_SHOW}")
    name = told.get("name", Path(source).stem)
    if not isinstance(name, str):
        raise InputError(f"{source}: name must be text, not {name!r}.")
    return Policy(
        name,
        source,
        text,
        tuple(_limit(one, f"{source}, limit {at}") for at, one in enumerate(limits, 1)),
        _checks(checks, source),
    )


def _known(told: Mapping[str, Any], keys: tuple[str, ...], source: str, where: str) -> None:
    strange = [key for key in told if key not in keys]
    if strange:
        raise InputError(f"{source}: there is no key {strange[0]!r}{where}. Known keys are {', '.join(keys)}. {_SHOW}")


def _checks(told: Mapping[str, Any], source: str) -> dict[str, str]:
    """Read [check]; what it leaves out is as in the default policy."""
    _known(told, CHECKS, source, " in [check]")
    wrong = [key for key, action in told.items() if action not in ACTIONS]
    if wrong:
        raise InputError(f"{source}: {wrong[0]} must be one of {', '.join(ACTIONS)}, not {told[wrong[0]]!r}.")
    usual = tomllib.loads(DEFAULT.read_text(encoding="utf-8"))["check"]
    return {key: told.get(key, usual[key]) for key in CHECKS}


def _limit(told: Mapping[str, Any], where: str) -> Limit:
    _known(told, _LIMIT_KEYS, where, "")
    claims = _names(told.get("claims"), KINDS[1:], f"{where}: claims")
    counts = _names(told.get("counts", list(SIZE_NAMES)), SIZE_NAMES, f"{where}: counts")
    probability = told.get("probability")
    if LIKELY in claims and not _between(probability, 0.5, 1):
        raise InputError(f"{where} is about likely counts: give a probability from 0.5 to 1, such as 0.8.")
    if LIKELY not in claims and probability is not None:
        raise InputError(f"{where}: a probability is for likely counts, and this limit is not about them.")
    at_most, rate = told.get("at_most"), told.get("per_10000")
    if (at_most is None) == (rate is None):
        raise InputError(f"{where}: give either at_most or per_10000.")
    if at_most is not None and (not isinstance(at_most, int) or isinstance(at_most, bool) or at_most < 0):
        raise InputError(f"{where}: at_most must be a whole number of 0 or more, not {at_most!r}.")
    if rate is not None and not _between(rate, 0, 10_000):
        raise InputError(f"{where}: per_10000 must be a number from 0 to 10000, not {rate!r}.")
    return Limit(claims, counts, probability, at_most, rate)


def _between(value: Any, low: float, high: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def _names(given: Any, known: Iterable[str], where: str) -> tuple[str, ...]:
    names = [given] if isinstance(given, str) else given
    known = tuple(known)
    listed = ", ".join(f'"{name}"' for name in known)
    if not isinstance(names, list) or not names or any(name not in known for name in names):
        raise InputError(f"{where} must be a list of {listed}; not {given!r}.")
    return tuple(name for name in known if name in names)
