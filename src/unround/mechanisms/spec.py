"""Mechanisms as text: a name, and after a colon its parameters."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from unround.errors import InputError
from unround.mechanisms.bands import Band, Bands, Cutoff, Suppressed
from unround.mechanisms.base import Mechanism, fraction
from unround.mechanisms.cellkey import LARGEST_CHANGE, CellKey, largest_variance
from unround.mechanisms.noise import CLAMPED, Gaussian, Laplace
from unround.mechanisms.plain import Digits, Exact, Midpoint, Nearest, Unpublished, Within
from unround.mechanisms.rounding import Graduated, Residues, Rounding, Sample, Weighted
from unround.mechanisms.transition import Transition

LONGEST = 1_000_000  # most characters of a mechanism; a whole table of probabilities can be written out


def mechanism(spec: Mechanism | str) -> Mechanism:
    """Return the mechanism that a text such as `rounding:5` names; a mechanism is what it is.

    Parameters
    ----------
    spec : Mechanism or str
        A name and, after a colon, parameters: `rounding:5`, `sample:5`, `weighted:sample:5`, `graduated`,
        `graduated:0=3,20=5`, `residues:0,1/3,2/3`, `nearest:5`, `nearest-even:10`, `digits:4`, `digits-even:4`, `exact`,
        `midpoint:6`, `within:5`, `unpublished`, `suppressed:1..7`, `suppressed:1..7,nearest:5`, `bands:0=0,1-7=4,nearest:5`,
        `bands:1-2=0/3,exact`, `cutoff:4,rounding:5`, `laplace:1.45`, `laplace:1.45,clamped`, `gaussian:2`, `cellkey:3,2`,
        `cellkey:8,3,js=2,pstay=0.5`, `uniform:3`, `uniform:3,js=2`, `transition:FILE`.

    Examples
    --------
    >>> mechanism("rounding:3")
    Rounding(base=3)
    >>> mechanism("suppressed:1..7,nearest:5")
    Suppressed(low=1, high=7, then=Nearest(base=5, ties='up'))
    """
    if not isinstance(spec, str):
        if isinstance(spec, Mechanism):
            return spec
        raise InputError(f"a mechanism is named by text, such as rounding:5, not {spec!r}.")
    if len(spec) > LONGEST:
        raise InputError(f"this mechanism has {len(spec):,} characters; write a short one such as rounding:5.")
    name, colon, parameters = (part.strip() for part in spec.partition(":"))
    family = _FAMILIES.get(name.lower())
    if family is None:
        raise _unknown(name)
    if not colon and family.bare is not None:
        return family.bare
    if family.make is None:
        raise InputError(f"{name} takes no parameters: write {family.example}.")
    expected = f"{name} needs {family.needs}, such as {family.example}"
    if not parameters:
        raise InputError(f"{expected}.")
    try:
        return family.make(parameters)
    except ValueError:
        shown = parameters if len(parameters) <= 80 else f"{parameters[:79]}…"
        raise InputError(f"{expected}; not {shown!r}.") from None


def _unknown(name: str) -> InputError:
    from difflib import get_close_matches  # only here: it takes a while to import

    close = get_close_matches(name[:80].lower(), _FAMILIES, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    return InputError(f"there is no mechanism {name[:80]!r}.{hint} Choose one of {', '.join(_FAMILIES)}.")


def _graduated(text: str) -> Graduated:
    pairs = [band.split("=") for band in text.split(",")]
    return Graduated(tuple((int(start), int(base)) for start, base in pairs))


def _suppressed(text: str) -> Suppressed:
    bounds, comma, then = text.partition(",")
    if comma and not then.strip():
        raise ValueError("nothing after the comma")
    low, high = bounds.split("..")
    if then.strip().lower().startswith("suppressed"):  # not parsed: it could be nested without end
        raise InputError(f"what is not hidden must be published: {then.strip()[:40]} cannot follow a suppression.")
    return Suppressed(int(low), int(high), mechanism(then) if comma else Exact())


_BAND = re.compile(r"\s*(\d{1,9})\s*(?:(?:-|–|\.\.)\s*(\d{1,9})\s*)?=\s*(\d{1,9})(?:\s*/\s*(\d{1,9}))?\s*(,|$)")


def _bands(text: str) -> Bands:
    bands: list[Band] = []
    while match := _BAND.match(text):
        low, high, down, up, _ = match.groups()
        bands.append(Band(int(low), int(high or low), int(down), int(up or down)))
        text = text[match.end() :]
    if not bands:
        raise ValueError("no band")
    if text.strip().lower().startswith(("bands", "suppressed")):  # not parsed: they could be nested without end
        raise InputError(f"{text.strip()[:40]} cannot follow bands.")
    return Bands(tuple(bands), mechanism(text) if text.strip() else Exact())


def _cutoff(text: str) -> Cutoff:
    below, _, then = text.partition(",")
    then, _, share = then.partition(",unless=")
    if then.strip().lower().startswith(("bands", "suppressed", "cutoff")):  # not parsed: they could be nested without end
        raise InputError(f"{then.strip()[:40]} cannot follow a limit under which counts become 0.")
    return Cutoff(int(below), mechanism(then) if then.strip() else Rounding(), fraction(share or "0"))


def _cell_key(text: str, uniform: bool = False) -> CellKey:
    numbers = [part.strip() for part in text.split(",")]
    named = dict(part.split("=", 1) for part in numbers if "=" in part)
    plain = [part for part in numbers if "=" not in part]
    options = {name.strip().lower(): value.strip() for name, value in named.items()}
    if len(plain) != (1 if uniform else 2) or not options.keys() <= ({"js"} if uniform else {"js", "pstay"}):
        raise ValueError("not D and V")
    largest = int(plain[0])
    variance = largest_variance(min(max(largest, 1), LARGEST_CHANGE + 1)) if uniform else fraction(plain[1])
    return CellKey(largest, variance, int(options.get("js", "0")), fraction(options.get("pstay", "0")))


def _noise(text: str) -> tuple[float, bool]:
    scale, comma, rest = text.partition(",")
    if comma and rest.strip() != CLAMPED:
        raise ValueError("not a scale")
    return float(scale), bool(comma)


def _weighted(text: str) -> Weighted:
    how = mechanism(text) if text.strip().lower().startswith(("rounding", "sample")) else None
    if not isinstance(how, Rounding | Sample):
        raise ValueError("not a rounding")
    return Weighted(how)


def _transition(text: str) -> Transition:
    # A table spelt out starts with a change and its probability; anything else is a file.
    return Transition.parse(text) if re.match(r"[+-]?\d+=", text) else Transition.read(text)


class _SpecForm(NamedTuple):
    """One name: how to make its mechanism from parameters, what it means without any, and the words for errors."""

    example: str
    needs: str = ""
    make: Callable[[str], Mechanism] | None = None
    bare: Mechanism | None = None


_FAMILIES = {
    family.example.partition(":")[0]: family
    for family in (
        _SpecForm("rounding:5", "a base", lambda text: Rounding(int(text)), Rounding()),
        _SpecForm("sample:5", "a base", lambda text: Sample(int(text)), Sample()),
        _SpecForm("weighted:sample:5", "the rounding of the estimates", _weighted),
        _SpecForm("graduated:0=3,19=2,20=5", "bands of a first count and a base", _graduated, Graduated()),
        _SpecForm(
            "residues:0,1/3,2/3",
            "a probability of going up for every remainder",
            lambda text: Residues(tuple(fraction(p) for p in text.split(","))),
        ),
        _SpecForm("nearest:5", "a base", lambda text: Nearest(int(text))),
        _SpecForm("nearest-even:10", "a base", lambda text: Nearest(int(text), "even")),
        _SpecForm("digits:4", "a number of significant digits", lambda text: Digits(int(text))),
        _SpecForm("digits-even:4", "a number of significant digits", lambda text: Digits(int(text), "even")),
        _SpecForm("exact", bare=Exact()),
        _SpecForm("midpoint:6", "a base", lambda text: Midpoint(int(text))),
        _SpecForm("within:5", "the largest change", lambda text: Within(int(text))),
        _SpecForm("unpublished", bare=Unpublished()),
        _SpecForm("suppressed:1..7", "the range of hidden counts", _suppressed),
        _SpecForm("bands:0=0,1-7=4,nearest:5", "ranges of counts and what they become", _bands),
        _SpecForm("cutoff:4,rounding:5", "a limit and what becomes of the counts from it on", _cutoff),
        _SpecForm("laplace:1.45", "a scale", lambda text: Laplace(*_noise(text))),
        _SpecForm("gaussian:2", "a scale", lambda text: Gaussian(*_noise(text))),
        _SpecForm("cellkey:3,2", "the largest change D and the variance V", _cell_key),
        _SpecForm("uniform:3", "the largest change", lambda text: _cell_key(text, uniform=True)),
        _SpecForm("transition:ptable.csv", "a file or a table", _transition),
    )
}
