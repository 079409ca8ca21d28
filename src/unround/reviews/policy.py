"""The policy: what may be published. A TOML file, stated word for word in every review; and its rules as sentences."""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unround.errors import InputError
from unround.options import THRESHOLD
from unround.small_files import parsed_toml, plain_text

UNROUNDED, PROVED, CONDITIONAL, LIKELY, RANGE = "unrounded", "proved", "conditional", "likely", "range"
KINDS = ("open", UNROUNDED, PROVED, CONDITIONAL, LIKELY)
"""What can be known of one value of a count; the first is not a claim."""

CLAIMS = (*KINDS[1:], RANGE)
"""What a limit can be about: these, and counts whose size alone is known."""

SURENESS = {UNROUNDED: 3, PROVED: 3, CONDITIONAL: 2, RANGE: 2, LIKELY: 1}
"""An exception for a claim covers no surer one."""

ACCEPT, UNDECIDED, REVISE, STOP = "accept", "undecided", "revise", "stop"
ACTIONS = (ACCEPT, UNDECIDED, REVISE, STOP)

CONTRADICTS, DEPARTS, UNTESTED, SELF_CHECK = "contradicts", "departs", "untested", "self_check"
NOT_WEIGHED, NO_SUMS = "not_weighed", "no_sums"
CHECKS = (CONTRADICTS, DEPARTS, UNTESTED, SELF_CHECK, NOT_WEIGHED, NO_SUMS)
"""What can be wrong with the ground that a risk is judged on."""

_LIMIT_KEYS = (
    "name", "claims", "counts", "hidden", "interval", "dominance", "probability", "at_most", "per_10000"
)  # fmt: skip
_KEYS = ("name", "limit", "check")
_SHOW = "`unround review --show-policy` prints the default policy."

DEFAULT = Path(__file__).with_name("default_policy.toml")

Sizes = tuple[tuple[int, int | None], ...]
"""Ranges of counts, from and up to; None where there is no upper end."""

ANY_SIZE: Sizes = ((0, None),)


@dataclass(frozen=True, slots=True)
class Limit:
    """A rule: how many counts of some kind are acceptable.

    - `claims`: The kinds, of `CLAIMS`.
    - `counts`: The sizes.
    - `probability`: For likely counts, from which probability on.
    - `at_most`: How many are acceptable, however large the table is.
    - `per_10000`: How many are acceptable per 10,000 counts.
    - `hidden`: Whether only counts are meant that the table does not print.
    - `interval`: In place of claims: counts that have fewer possible values than this.
    - `dominance`: In place of claims: counts that are at least this share of a total.
    - `name`: What it is called.
    """

    claims: tuple[str, ...]
    counts: Sizes = ANY_SIZE
    probability: float | None = None
    at_most: int | None = None
    per_10000: float | None = None
    hidden: bool = False
    interval: int | None = None
    dominance: float | None = None
    name: str = ""

    def allowed(self, cells: int) -> int:
        """Return how many are acceptable in a table of so many counts."""
        if self.at_most is not None:
            return self.at_most
        assert self.per_10000 is not None  # one of the two is given
        return int(self.per_10000 * cells / 10_000 + 1e-9)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self) | {"claims": list(self.claims), "counts": sizes_as_text(self.counts)}


@dataclass(frozen=True, slots=True)
class Policy:
    """What may be published.

    - `name`, `source`: What it is called, and where it was read from.
    - `text`: The file, word for word.
    - `limits`: How many counts are acceptable, by kind.
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
        return min((limit.probability for limit in self.limits if limit.probability is not None), default=THRESHOLD)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "name": self.name,
            "source": self.source,
            "sha256": hashlib.sha256(self.text.encode()).hexdigest(),
            "limits": [limit.to_json() for limit in self.limits],
            "check": dict(self.checks),
            "text": self.text,
            "sentences": policy_in_words(self),
        }


# -- reading ----------------------------------------------------------------------------------------------------------


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

    Raises `InputError` where it is not TOML, has a key that does not exist, or a value that means nothing.
    """
    content = parsed_toml(text, source)
    _known(content, _KEYS, source, "")
    limits, checks = content.get("limit", []), content.get("check", {})
    if not isinstance(limits, list) or not all(isinstance(limit, dict) for limit in limits):
        raise InputError(f"{source}: limits are written as [[limit]], in double brackets. {_SHOW}")
    if not limits:
        raise InputError(f"{source} has no [[limit]], so everything would be acceptable. {_SHOW}")
    if not isinstance(checks, dict):
        raise InputError(f"{source}: check is a table, [check]. {_SHOW}")
    name = content.get("name", Path(source).stem)
    if not isinstance(name, str):
        raise InputError(f"{source}: name must be text, not {name!r}.")
    return Policy(
        name,
        source,
        text,
        tuple(_limit(limit, f"{source}, limit {at}") for at, limit in enumerate(limits, 1)),
        _checks(checks, source),
    )


def _known(content: Mapping[str, Any], keys: tuple[str, ...], source: str, where: str) -> None:
    strange = [key for key in content if key not in keys]
    if strange:
        raise InputError(f"{source}: there is no key {strange[0]!r}{where}. Known keys are {', '.join(keys)}. {_SHOW}")


def _checks(content: Mapping[str, Any], source: str) -> dict[str, str]:
    """Read [check]; what it leaves out is as in the default policy."""
    _known(content, CHECKS, source, " in [check]")
    wrong = [key for key, action in content.items() if action not in ACTIONS]
    if wrong:
        raise InputError(f"{source}: {wrong[0]} must be one of {', '.join(ACTIONS)}, not {content[wrong[0]]!r}.")
    usual = tomllib.loads(DEFAULT.read_text(encoding="utf-8"))["check"]
    return {key: content.get(key, usual[key]) for key in CHECKS}


def _limit(content: Mapping[str, Any], where: str) -> Limit:
    """Read one [[limit]]; what contradicts itself, or would accept everything unnoticed, is an error."""
    _known(content, _LIMIT_KEYS, where, "")
    interval, dominance = content.get("interval"), content.get("dominance")
    if sum(given is not None for given in (content.get("claims"), interval, dominance)) != 1:
        raise InputError(f"{where}: give exactly one of claims, interval and dominance.")
    claims = _names(content["claims"], CLAIMS, f"{where}: claims") if "claims" in content else ()
    counts, probability = _sizes(content.get("counts"), where), content.get("probability")
    if LIKELY in claims and not _between(probability, 0.5, 1):
        raise InputError(f"{where} is about likely counts: give a probability from 0.5 to 1, such as 0.8.")
    if LIKELY not in claims and probability is not None:
        raise InputError(f"{where}: a probability is for likely counts, and this limit is not about them.")
    if RANGE in claims and counts == ANY_SIZE:
        raise InputError(f'{where} is about counts whose size alone is known: give counts, such as "1-2".')
    if interval is not None and (not isinstance(interval, int) or isinstance(interval, bool) or interval < 2):
        raise InputError(f"{where}: interval must be a whole number of 2 or more possible values, not {interval!r}.")
    if dominance is not None and not _between(dominance, 0.5, 1):
        raise InputError(f"{where}: dominance must be a share from 0.5 to 1, such as 0.9, not {dominance!r}.")
    hidden, name = content.get("hidden", False), content.get("name", "")
    if not isinstance(hidden, bool) or not isinstance(name, str):
        raise InputError(f"{where}: hidden must be true or false, and name text.")
    if hidden and UNROUNDED in claims:
        raise InputError(f"{where}: a hidden count is not printed unrounded; leave out one of the two.")
    at_most, rate = content.get("at_most"), content.get("per_10000")
    if (at_most is None) == (rate is None):
        raise InputError(f"{where}: give either at_most or per_10000.")
    if at_most is not None and (not isinstance(at_most, int) or isinstance(at_most, bool) or at_most < 0):
        raise InputError(f"{where}: at_most must be a whole number of 0 or more, not {at_most!r}.")
    if rate is not None and not _between(rate, 0, 10_000):
        raise InputError(f"{where}: per_10000 must be a number from 0 to 10000, not {rate!r}.")
    return Limit(claims, counts, probability, at_most, rate, hidden, interval, dominance, name)


def _between(value: Any, low: float, high: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def _names(given: Any, known: Iterable[str], where: str) -> tuple[str, ...]:
    names = [given] if isinstance(given, str) else given
    known = tuple(known)
    listed = ", ".join(f'"{name}"' for name in known)
    if not isinstance(names, list) or not names or any(name not in known for name in names):
        raise InputError(f"{where} must be a list of {listed}; not {given!r}.")
    return tuple(name for name in known if name in names)


_SIZE = re.compile(r"(\d{1,9})(?:(\+)|\s*[-–]\s*(\d{1,9}))?$")


def _sizes(given: Any, where: str) -> Sizes:
    """Read sizes of counts, such as "1-4" or ["0", "10+"]."""
    if given is None:
        return ANY_SIZE
    sizes: list[tuple[int, int | None]] = []
    for text in given if isinstance(given, list) and given else [given]:
        matched = _SIZE.match(str(text).strip()) if isinstance(text, str | int) and not isinstance(text, bool) else None
        low = int(matched[1]) if matched else 0
        high = None if matched and matched[2] else int(matched[3] or low) if matched else -1
        if matched is None or (high is not None and high < low):
            raise InputError(f'{where}: counts must be a range such as "1-4", "0" or "10+", or a list; not {given!r}.')
        sizes.append((low, high))
    return tuple(sorted(sizes, key=lambda size: size[0]))


# -- in words ---------------------------------------------------------------------------------------------------------

_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_CERTAIN = {
    UNROUNDED: "is published unrounded",
    PROVED: "can be proved",
    CONDITIONAL: "can be proved under an assumption",
    RANGE: "can be told by its size alone",
}
_MANY = _CERTAIN | {UNROUNDED: "are published unrounded", RANGE: "can be told by their size alone"}
CHECKS_IN_WORDS = {
    CONTRADICTS: "Published figures contradict each other or the mechanism",
    DEPARTS: "The data depart from the mechanism",
    UNTESTED: "The mechanism could not be tested: there are too few sums",
    SELF_CHECK: "The prior fails to predict what was published, so that probabilities may be far off",
    NOT_WEIGHED: "How likely some counts are could not be worked out",
    NO_SUMS: "No sum between the counts is known, so that nothing was inferred",
}
_ACTIONS = {
    ACCEPT: "accepted",
    UNDECIDED: "has to be settled first",
    REVISE: "not accepted; a repair has to mend it",
    STOP: "a reason to stop",
}


def sizes_as_text(sizes: Sizes) -> list[str]:
    """Return sizes as a policy writes them."""
    return [f"{low}+" if high is None else f"{low}" if low == high else f"{low}-{high}" for low, high in sizes]


def _either(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def share(probability: float) -> str:
    """Return a probability that somebody chose, exactly as chosen."""
    return f"{100 * probability:.6g}%"


def _word(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else f"{number:,}"


def _of_size(limit: Limit) -> str:
    if limit.counts == ANY_SIZE:
        return ""
    said = []
    for low, high in limit.counts:
        if high is None:
            said.append(f"{_word(low)} or more")
        elif high - low > 1:
            said.append(f"{_word(low)} to {_word(high)}")
        else:
            said += [_word(number) for number in range(low, high + 1)]
    return f" of {_either(said)}"


def _what(limit: Limit, verbs: dict[str, str], is_are: str) -> str:
    """Say what is wrong with the counts of a limit."""
    has = "has" if is_are == "is" else "have"
    if limit.interval is not None:
        return f"{has} fewer than {_word(limit.interval)} possible values"
    if limit.dominance is not None:
        return f"{is_are} {share(limit.dominance)} or more of a total"
    said = [verbs[name] for name in limit.claims if name != LIKELY]
    if PROVED in limit.claims and CONDITIONAL in limit.claims:  # both can be proved: say it once
        said = [verb for verb in said if verb not in (verbs[PROVED], verbs[CONDITIONAL])]
        said.append("can be proved, with or without an assumption")
    if limit.probability is not None:
        said.append(f"{is_are} at least {share(limit.probability)} likely")
    return _either(said)


def _count(limit: Limit, many: bool) -> str:
    return f"{'hidden ' if limit.hidden else ''}count{'s' if many else ''}{_of_size(limit)}"


def limit_in_words(limit: Limit) -> str:
    """Say what a limit accepts.

    Examples
    --------
    >>> limit_in_words(Limit(("proved",), ((1, 2),), at_most=0))
    'No count of one or two can be proved.'
    >>> limit_in_words(Limit(("likely",), probability=0.95, per_10000=200))
    'At most 200 per 10,000 counts are at least 95% likely.'
    >>> limit_in_words(Limit((), interval=5, hidden=True, at_most=0))
    'No hidden count has fewer than five possible values.'
    """
    if limit.at_most == 0 or limit.per_10000 == 0:
        return f"No {_count(limit, many=False)} {_what(limit, _CERTAIN, 'is')}."
    if limit.at_most is not None:
        many = limit.at_most > 1
        return f"At most {limit.at_most:,} {_count(limit, many)} {_what(limit, _MANY, 'are' if many else 'is')}."
    if limit.counts == ANY_SIZE and not limit.hidden:
        return f"At most {limit.per_10000:g} per 10,000 counts {_what(limit, _MANY, 'are')}."
    of_them = f"{_count(limit, many=True)} that {_what(limit, _MANY, 'are')}"
    return f"At most {limit.per_10000:g} per 10,000 of all counts are {of_them}."


def policy_in_words(policy: Policy) -> list[str]:
    """Say what a policy accepts, a sentence each."""
    checks = [f"{CHECKS_IN_WORDS[name]}: {_ACTIONS[policy.checks[name]]}." for name in policy.checks]
    return [*(limit_in_words(limit) for limit in policy.limits), *checks]


def counts_in_words(limit: Limit, number: int, accepted: int = 0) -> str:
    """Say how many counts fall under a limit, and how many more were accepted as exceptions.

    Examples
    --------
    >>> limit = Limit(("proved",), ((1, 2),), at_most=0)
    >>> counts_in_words(limit, 2), counts_in_words(limit, 0)
    ('2 counts of one or two can be proved', 'No count of one or two can be proved')
    >>> counts_in_words(limit, 0, 3)
    '3 counts of one or two can be proved, all of which were accepted'
    """
    whole = number + accepted
    said = f"{whole:,} {_count(limit, many=True)} {_what(limit, _MANY, 'are')}"
    if whole < 2:
        said = f"{'1' if whole else 'No'} {_count(limit, many=False)} {_what(limit, _CERTAIN, 'is')}"
    if not accepted:
        return said
    if number:
        return f"{said}, {accepted:,} of which {'was' if accepted == 1 else 'were'} accepted"
    return f"{said}, and was accepted" if whole == 1 else f"{said}, all of which were accepted"
