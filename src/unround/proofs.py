"""Proofs in words, and the independent checker of their certificates.

The checker shares no code with the engines: it needs the system, the certificate, and the arithmetic of one sum and of one
figure, whose inequality it works out for itself.
`unround.bounds.certificates` describes certificates.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import groupby
from math import ceil, floor
from typing import Any, cast

from unround.errors import InputError, InternalError
from unround.figures import Figure, FigureKind
from unround.mechanisms import Mechanism, Rounding, Unpublished
from unround.system import Cell, PublishedFigure, Sum, System

Step = Mapping[str, Any]

NEIGHBOURS = 100
"""How many counts beyond the end of a window the checker recomputes as impossible, exactly."""

WIDEST_GAP = 100_000
"""Impossible counts in a row inside a window that the checker goes through, one by one."""

LARGEST = 10**18
"""No number of a certificate is larger: counts are whole numbers of 64 bits."""

_FACTOR = re.compile(r"-?[0-9]{1,18}(/[1-9][0-9]{0,17})?")
"""How often a sum is added up."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A value of a cell, or the least that it can be, that holds in every dataset consistent with what was published.

    Parameters
    ----------
    cell, value
        What is proved.
    text : str
        The argument in words.
    depth : int
        The number of steps in the argument: sums in its longest chain.
    rests_on : tuple of str
        Other proved cells whose values the argument uses.
    steps : list
        The certificate, for `check_proof`.
    at_least : bool
        Whether the cell may also have more.
    """

    cell: str
    value: int
    text: str
    depth: int
    rests_on: tuple[str, ...]
    steps: Sequence[Step]
    at_least: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "cell": self.cell,
            "value": self.value,
            "text": self.text,
            "depth": self.depth,
            "rests_on": list(self.rests_on),
            "steps": list(self.steps),
            **({"at_least": True} if self.at_least else {}),
        }


def proof_of_least(system: System, name: str, steps: Sequence[Step]) -> Proof:
    """Put the certificate of the least that a cell can be into words."""
    value = int(steps[-1]["value"])
    cell = system.cells[system.index[name]]
    text = _in_words(system, cell, steps, {name: value}, "≥")
    proof = Proof(name, value, text, _depth(steps), (), steps, at_least=True)
    problem = fault_in_proof(system, proof)
    if problem is not None:
        raise InternalError(f"the proof of {name} does not check: {problem}")
    return proof


def proofs_of(system: System, certificates: Mapping[int, Sequence[Step]]) -> tuple[Proof, ...]:
    """Put certificates into words, the simplest first."""
    values = {system.cells[i].name: int(steps[-1]["value"]) for i, steps in certificates.items()}
    proofs = []
    for i, steps in certificates.items():
        cell = system.cells[i]
        proof = Proof(
            cell.name,
            values[cell.name],
            _in_words(system, cell, steps, values),
            _depth(steps),
            _rests_on(cell.name, steps, values),
            steps,
        )
        problem = fault_in_proof(system, proof)
        if problem is not None:
            raise InternalError(f"the proof of {cell.name} does not check: {problem}")
        proofs.append(proof)
    return tuple(sorted(proofs, key=lambda proof: (proof.depth, system.index[proof.cell])))


def proof_in_words(system: System, proof: Proof, names: Mapping[str, str]) -> str:
    """Put a proof into words again, with other names for its cells."""
    renamed = _renamed_system(system, names)
    steps = [_renamed_step(step, names) for step in proof.steps]
    values = {names.get(proof.cell, proof.cell): proof.value}
    return _in_words(renamed, renamed.cells[system.index[proof.cell]], steps, values)


def _renamed_system(system: System, names: Mapping[str, str]) -> System:
    def called(name: str) -> str:
        return names.get(name, name)

    cells = [Cell(called(cell.name), cell.published, cell.mechanism) for cell in system.cells]
    sums = [Sum(called(known.total), tuple(called(part) for part in known.parts)) for known in system.sums]
    return System(cells, sums, [renamed_figure(known, names) for known in system.figures])


def renamed_figure(stated: PublishedFigure, names: Mapping[str, str]) -> PublishedFigure:
    """Return a figure with other names for the counts that it is of."""
    figure = stated.figure
    groups = tuple(replace(group, count=names.get(group.count, group.count)) for group in figure.groups)
    universe, numerator = names.get(figure.universe, figure.universe), names.get(figure.numerator, figure.numerator)
    return replace(stated, figure=replace(figure, universe=universe, numerator=numerator, groups=groups))


def _renamed_step(step: Step, names: Mapping[str, str]) -> dict[str, Any]:
    """Return a step with the names that its words use replaced."""

    def renamed(added: Mapping[str, Any]) -> dict[str, Any]:
        parts = [names.get(part, part) for part in added["parts"]]
        return {**added, "total": names.get(added["total"], added["total"]), "parts": parts}

    new = {**step, "cell": names.get(step["cell"], step["cell"])}
    if "sum" in step:
        new["sum"] = renamed(step["sum"])
    if "sums" in step:
        new["sums"] = [renamed(added) for added in step["sums"]]
    if "terms" in step:
        new["terms"] = {names.get(name, name): factor for name, factor in step["terms"].items()}
    return new


def contradiction_in_words(system: System, steps: Sequence[Step]) -> str:
    """Put into words why a cell has no possible value; the last steps bound it from both sides."""
    name = steps[-1]["cell"]
    words = {"sum": _sum_in_words, "figure": _figure_in_words}
    sums = [words[step["by"]](system, step, steps) for step in steps if step["by"] in words]
    stated = [step for step in steps if step["cell"] == name and step["by"] == "published"]
    return " ".join([*sums, *([f"But {_published(system, stated)}."] if stated else ["That is impossible."])])


def _depth(steps: Sequence[Step]) -> int:
    depths: list[int] = []
    for step in steps:
        below = max((depths[use - 1] for use in step["uses"]), default=0)
        depths.append(below + (step["by"] in ("sum", "sums", "figure", "contradiction")))
    return max(depths)


def _rests_on(name: str, steps: Sequence[Step], values: Mapping[str, int]) -> tuple[str, ...]:
    """Name the other proved cells whose value the argument derives and uses."""
    used = [step["cell"] for step in steps if step["by"] != "published" and values.get(step["cell"]) == step["value"]]
    return tuple(dict.fromkeys(cell for cell in used if cell != name))


# -- in words ---------------------------------------------------------------------------------------------------------


def _in_words(system: System, cell: Cell, steps: Sequence[Step], values: Mapping[str, int], sign: str = "=") -> str:
    sentences = []
    for step in steps:
        if step["by"] == "sum":  # published bounds are stated where they are used
            sentences.append(_sum_in_words(system, step, steps))
        elif step["by"] == "sums":
            sentences.append(_sums_in_words(system, step, steps))
        elif step["by"] == "figure":
            sentences.append(_figure_in_words(system, step, steps))
        elif step["by"] == "gap":
            sentences.append(f"{_claim(step)}: the values in between cannot have produced the published count.")
        elif step["by"] == "contradiction":
            other = "smaller" if step["bound"] == "low" else "larger"
            sentences.append(f"{_claim(step)}: any {other} value leaves some cell without a possible value ({_size(step)}).")
    stated = [step for step in steps if step["cell"] == cell.name and step["by"] == "published"]
    if stated:
        sentences.append(f"{_published(system, stated)}.")
    sentences.append(f"So {cell.name} {sign} {values[cell.name]}.")
    return " ".join(sentences)


def _claim(step: Step) -> str:
    return f"{step['cell']} {'≥' if step['bound'] == 'low' else '≤'} {step['value']}"


def _published(system: System, steps: Sequence[Step]) -> str:
    """State what was published, grouping cells with the same bound: part1, part2 ≥ 16 (20 published, base 5)."""
    sides: dict[tuple[str, int], set[str]] = {}
    for step in steps:
        sides.setdefault((step["cell"], step["value"]), set()).add(step["bound"])
    groups: dict[str, list[str]] = {}
    for (name, value), bounds in sides.items():
        cell = system.cells[system.index[name]]
        sign = "=" if cell.given or len(bounds) == 2 else "≥" if bounds == {"low"} else "≤"
        groups.setdefault(f" {sign} {value} ({_how(cell)})", []).append(name)
    clauses = [_several(names) + bound for bound, names in groups.items()]
    return clauses[0] if len(clauses) == 1 else f"{', '.join(clauses[:-1])} and {clauses[-1]}"


def _how(cell: Cell) -> str:
    if cell.given:
        return "exact"
    if isinstance(cell.mechanism, Unpublished):
        return "not published"
    if cell.published is None:
        window = cell.mechanism.window(None)
        return f"hidden, {window.low} to {window.high}"
    how = f"base {cell.mechanism.base}" if isinstance(cell.mechanism, Rounding) else cell.mechanism.name
    return f"{cell.published} published, {how}"


def _several(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:3])} … {names[-1]} ({len(names)} cells)"


def _sum_in_words(system: System, step: Step, steps: Sequence[Step]) -> str:
    """Write for example: total = 48 (exact) and part2, part3 ≥ 16 (…), so part1 ≤ 48 − 16 − 16 = 16."""
    used = [steps[use - 1] for use in step["uses"]]
    sign = " + " if step["cell"] == step["sum"]["total"] else " − "
    shown = sign.join(_terms([before["value"] for before in used]))
    if len(used) > 1:
        shown += f" = {step['value']}"
    published = [before for before in used if before["by"] == "published"]
    because = f"{_published(system, published)}, so " if published else ""
    return f"{because}{step['cell']} {'≥' if step['bound'] == 'low' else '≤'} {shown}."


def _terms(values: Sequence[int]) -> list[str]:
    """Write the terms of a sum, runs of equal ones as a product where there are many."""
    runs = [(value, len(list(run))) for value, run in groupby(values)]
    if len(values) <= 8:
        return [str(value) for value in values]
    return [str(value) if times == 1 else f"{times} × {value}" for value, times in runs]


def _sums_in_words(system: System, step: Step, steps: Sequence[Step]) -> str:
    """Write for example: adding up ½ times a = x + y; ½ times b = x + z; minus ½ times c = y + z leaves x ≥ 9."""
    used = [steps[use - 1] for use in step["uses"]]
    published = [before for before in used if before["by"] == "published"]
    because = f"{_published(system, published)}, and " if published else ""
    sums = [f"{_times(before['times'])}{before['total']} = {' + '.join(before['parts'])}" for before in step["sums"]]
    return f"{because}adding up {'; '.join(sums)} leaves {_claim(step)}."


def _figure_in_words(system: System, step: Step, steps: Sequence[Step]) -> str:
    """Write for example: T ≥ 496 (…) and x / T ≥ 12.15% (12.2% published): 12.15% × 496 = 60.264, so x ≥ 61."""
    stated = system.figure_named[step["figure"]]
    used = [steps[use - 1] for use in step["uses"]]
    published = [before for before in used if before["by"] == "published"]
    because = f"{_published(system, published)}, and " if published else ""
    arithmetic = _rate_in_words if stated.figure.kind is FigureKind.RATE else _groups_in_words
    return f"{because}{arithmetic(stated, step, used)}so {_claim(step)}."


def _rate_in_words(stated: PublishedFigure, step: Step, used: Sequence[Step]) -> str:
    figure = stated.figure
    least = step["terms"].get(figure.numerator, "1").startswith("-")  # −numerator + rate × universe ≤ 0
    limit, shown, rate = _end_of_rate(stated, least)
    if not used or not rate:
        return f"{limit}, "
    known = used[0]["value"]
    if step["cell"] == figure.numerator:
        return f"{limit}: {shown} × {known} = {decimal(rate * known)}, "
    return f"{limit}: {known} ÷ {shown} = {decimal(known / rate)}, "


@lru_cache(maxsize=1 << 12)
def _end_of_rate(stated: PublishedFigure, least: bool) -> tuple[str, str, Fraction]:
    """Return what a rate is at least, or at most: as a claim, as a number, and as a fraction."""
    figure = stated.figure
    end = figure.grid.around(stated.value)[0 if least else 1]
    shown = figure_value(figure, end)
    claim = f"{figure.numerator} / {figure.universe} {'≥' if least else '≤'} {shown}"
    return f"{claim} ({figure_value(figure, stated.value)} published)", shown, end / figure.per


def _groups_in_words(stated: PublishedFigure, step: Step, _: Sequence[Step]) -> str:
    figure = stated.figure
    low, high = figure.grid.around(stated.value)
    ends = f"{figure_value(figure, low)} to {figure_value(figure, high)}, published as {figure_value(figure, stated.value)}"
    if figure.kind is FigureKind.MEDIAN:
        side = [name for name, factor in step["terms"].items() if not factor.startswith("-")]
        added = _several(side) if len(side) == 1 else f"({' + '.join(side) if len(side) <= 6 else _several(side)})"
        return f"with {figure.name} from {ends}, 2 × {added} ≤ {figure.universe} + 1, "
    lower = step["terms"] == {
        group.count: str(group.low - high) for group in figure.groups if group.low is not None and group.low != high
    }
    edge, bound = (
        ("lower", f"at most {figure_value(figure, high)}") if lower else ("upper", f"at least {figure_value(figure, low)}")
    )
    return f"with {figure.name} from {ends}, the {edge} ends of the groups average {bound}, "


def figure_value(figure: Figure, value: Fraction) -> str:
    """Return a value of a figure as people write it: 12.15%, or 34.5."""
    shown = decimal(value)
    if figure.kind is not FigureKind.RATE or figure.per == 1:
        return shown
    return f"{shown}%" if figure.per == 100 else f"{shown} per {decimal(figure.per)}"


def decimal(value: Fraction, digits: int = 4) -> str:
    """Return a number with its decimals; cut off, and marked so, where they do not end soon.

    >>> decimal(Fraction(241, 4)), decimal(Fraction(2, 3)), decimal(Fraction(60))
    ('60.25', '0.6666…', '60')
    """
    scaled = abs(value) * 10**digits
    whole = scaled.numerator // scaled.denominator
    text = f"{whole // 10**digits}.{whole % 10**digits:0{digits}}".rstrip("0").rstrip(".")
    return f"{'−' if value < 0 else ''}{text}{'' if scaled == whole else '…'}"


def _times(times: str) -> str:
    size = times.removeprefix("-").replace("1/2", "½")
    return f"{'minus ' if times.startswith('-') else ''}{'' if size == '1' else f'{size} times '}"


def _size(step: Step) -> str:
    count = _leaves(step["refutation"])
    return "one case" if count == 1 else f"{count} cases"


def _leaves(refutation: Mapping[str, Any]) -> int:
    if "split" in refutation:
        return _leaves(refutation["split"]["below"]) + _leaves(refutation["split"]["above"])
    return 1


# -- the checker: nothing below this line uses anything above it ------------------------------------------------------


def check_proof(system: System, proof: Proof) -> bool:
    """Return whether a certificate proves what it claims, from the system alone.

    Examples
    --------
    >>> import unround
    >>> system = unround.parse("48! = 20 + 20 + 20")
    >>> all(check_proof(system, proof) for proof in unround.solve(system).proofs)
    True
    """
    return fault_in_proof(system, proof) is None


def fault_in_proof(system: System, proof: Proof) -> str | None:
    """Return what is wrong with a certificate, or None if it proves what it claims."""
    try:
        known, problem = _checked(system, proof.steps, {})
        sides = ("low",) if proof.at_least is True else ("low", "high")
        missing = [side for side in sides if (proof.cell, side, proof.value) not in known]
    except RecursionError:
        return "the certificate nests its cases too deeply to be followed"
    except (ArithmeticError, AttributeError, InputError, LookupError, TypeError, ValueError) as broken:
        return f"the certificate cannot be read: {broken!r}"
    if problem is not None:
        return problem
    return f"the {missing[0]} bound {proof.value} of {proof.cell} is not among the steps" if missing else None


def _checked(
    system: System, steps: Iterable[Step], supposed: Mapping[tuple[str, str], int]
) -> tuple[set[tuple[str, str, int]], str | None]:
    """Go through steps in order; return the bounds they establish, or the first fault."""
    seen: list[tuple[str, str, int]] = []
    for step in steps:
        claim = (step["cell"], step["bound"], step["value"])
        # Between x ≤ 2.5 and x ≥ 3.5 there is a whole number: bounds that are not whole prove nothing.
        if not all(_is_whole(number) for number in (step["step"], step["value"], *step["uses"])):
            return set(), f"step {len(seen) + 1} has a number that is not whole, or too large"
        if any(not 1 <= use <= len(seen) for use in step["uses"]):
            return set(), f"step {step['step']} uses a step that does not come before it"
        if step["step"] != len(seen) + 1:
            return set(), f"step {step['step']} is out of order"
        used = {(seen[use - 1][0], seen[use - 1][1]): seen[use - 1][2] for use in step["uses"]}
        if not _holds(system, step, used, supposed):
            return set(), f"step {step['step']} does not follow: {claim}"
        seen.append(claim)
    return set(seen), None


def _is_whole(number: Any) -> bool:
    return type(number) is int and abs(number) <= LARGEST


def _holds(system: System, step: Step, used: Mapping[tuple[str, str], int], supposed: Mapping[tuple[str, str], int]) -> bool:
    name, side, value = step["cell"], step["bound"], step["value"]
    if name not in system.index:
        return False
    lower = side == "low"
    if step["by"] == "published":
        cell = system.cells[system.index[name]]
        return _published_says(cast(Hashable, cell.mechanism), cell.published, lower, value, value)
    if step["by"] == "gap":
        from_here, cell = used.get((name, side)), system.cells[system.index[name]]
        how = cast(Hashable, cell.mechanism)
        return from_here is not None and _published_says(how, cell.published, lower, from_here, value)
    if step["by"] == "supposed":
        here = supposed.get((name, side))
        return here is not None and (value <= here if lower else value >= here)
    if step["by"] == "contradiction":
        opposite = ((name, "high"), value - 1) if lower else ((name, "low"), value + 1)
        return _refuted(system, step["refutation"], _with(supposed, *opposite))
    if step["by"] == "figure":
        return _figure_holds(system, step, used)
    if step["by"] not in ("sum", "sums"):
        return False
    added = step["sums"] if step["by"] == "sums" else [{**step["sum"], "times": -1 if name == step["sum"]["total"] else 1}]
    limit = _limit(system, name, lower, added, used)
    return limit is not None and (value <= ceil(limit) if lower else value >= floor(limit))


def _limit(
    system: System, name: str, lower: bool, added: Iterable[Step], used: Mapping[tuple[str, str], int]
) -> Fraction | None:
    """Return the bound of a cell that follows when multiples of sums (total − parts = 0) are added to it, if one does."""
    factors = {name: Fraction(1)}
    for multiple in added:
        if not _FACTOR.fullmatch(str(multiple["times"])):  # 1e3000000 is a number too, and takes minutes
            return None
        times = Fraction(multiple["times"])
        if Sum(multiple["total"], tuple(multiple["parts"])) not in system.known_sums:
            return None
        factors[multiple["total"]] = factors.get(multiple["total"], Fraction(0)) + times
        for part in multiple["parts"]:
            factors[part] = factors.get(part, Fraction(0)) - times
    # Now cell = Σ factor × cell, so that each term at its least (or most) bounds it.
    limit = Fraction(0)
    for cell, factor in factors.items():
        bound = (cell, "low" if (factor > 0) == lower else "high")
        if factor and bound not in used:
            return None
        limit += factor * used[bound] if factor else 0
    return limit


def _figure_holds(system: System, step: Step, used: Mapping[tuple[str, str], int]) -> bool:
    """Whether a figure says what a step takes it to say, and that gives the bound."""
    name, value = step["cell"], step["value"]
    stated = system.figure_named.get(step["figure"])
    known = [] if stated is None else _inequalities(stated)
    said = [(terms, at_most) for terms, at_most, written in known if written == (step["terms"], step["at_most"])]
    if not said or name not in said[0][0]:
        return False
    terms, spare = said[0]
    for cell, factor in terms.items():
        if cell != name:
            bound = (cell, "low" if factor > 0 else "high")
            if bound not in used:
                return False
            spare -= factor * used[bound]
    limit = spare / terms[name]
    if step["bound"] == "low":
        return terms[name] < 0 and value <= ceil(limit)
    return step["bound"] == "high" and terms[name] > 0 and value >= floor(limit)


@lru_cache(maxsize=1 << 12)
def _inequalities(stated: PublishedFigure) -> list[tuple[dict[str, Fraction], Fraction, tuple[dict[str, str], str]]]:
    """Work out, from its kind, grid and published value, what a figure says: factors by cell, and what they are at most.

    Both also as a certificate writes them: fractions in their lowest terms.
    """
    figure, value = stated.figure, stated.value
    steps = [(start, step) for start, step in figure.grid.steps if start <= abs(value)]
    step = max(step for _, step in (steps[-2:] if steps[-1][0] == abs(value) else steps[-1:]))
    low, high = (2 * value - step) / 2, (2 * value + step) / 2
    if figure.kind is FigureKind.RATE:
        said = [([(figure.universe, low / figure.per), (figure.numerator, Fraction(-1))], 0)]
        said += [([(figure.numerator, Fraction(1)), (figure.universe, -high / figure.per)], 0)]
    elif figure.kind is FigureKind.MEAN:
        lower = [(g.count, g.low - high) for g in figure.groups if g.low is not None]
        upper = [(g.count, low - g.high) for g in figure.groups if g.high is not None]
        said = [(side, 0) for side in (lower, upper) if len(side) == len(figure.groups)]
    else:
        below = [(g.count, Fraction(2)) for g in figure.groups if g.high is not None and g.high < low]
        above = [(g.count, Fraction(2)) for g in figure.groups if g.low is not None and g.low > high]
        said = [([*side, (figure.universe, Fraction(-1))], 1) for side in (below, above)]
    inequalities = []
    for terms, at_most in said:
        factors = {cell: sum((f for c, f in terms if c == cell), Fraction(0)) for cell, _ in terms}
        kept = {cell: factor for cell, factor in factors.items() if factor}
        written = {cell: str(factor) for cell, factor in kept.items()}
        inequalities.append((kept, Fraction(at_most), (written, str(at_most))))
    return inequalities


@lru_cache(maxsize=1 << 16)
def _published_says(mechanism: Hashable, published: int | None, lower: bool, start: int, value: int) -> bool:
    """Whether the published value rules out every count below (above) `value`, or from `start` up (down) to it.

    A census repeats the same questions, so answers are cached.
    """
    assert isinstance(mechanism, Mechanism)
    window = mechanism.window(published)
    if not window.certain:
        return lower and value <= 0
    if start != value:
        outside = range(start, value) if lower else range(value + 1, start + 1)
    elif lower:
        outside = range(max(0, value - NEIGHBOURS), value)
    else:
        outside = range(value + 1, value + 1 + NEIGHBOURS)
    beyond = start != value or (value <= window.low if lower else window.high is not None and value >= window.high)
    # Impossible means probability 0 as a fraction: a float may have become 0.
    return beyond and len(outside) <= WIDEST_GAP and not any(mechanism.chance(published, true) for true in outside)


def _refuted(system: System, refutation: Mapping[str, Any], supposed: Mapping[tuple[str, str], int]) -> bool:
    """Whether every case leads to a cell whose lower bound exceeds its upper one."""
    split = refutation.get("split")
    if split is not None:
        if not _is_whole(split["at"]):
            return False
        below = _with(supposed, (split["cell"], "high"), split["at"])
        above = _with(supposed, (split["cell"], "low"), split["at"] + 1)
        return _refuted(system, split["below"], below) and _refuted(system, split["above"], above)
    known, problem = _checked(system, refutation["steps"], supposed)
    lows = [value for cell, side, value in known if (cell, side) == (refutation["cell"], "low")]
    highs = [value for cell, side, value in known if (cell, side) == (refutation["cell"], "high")]
    return problem is None and bool(lows) and bool(highs) and max(lows) > min(highs)


def _with(supposed: Mapping[tuple[str, str], int], key: tuple[str, str], value: int) -> dict[tuple[str, str], int]:
    """Add a supposition; of two about the same bound the tighter one holds."""
    here = supposed.get(key)
    if here is not None:
        value = max(here, value) if key[1] == "low" else min(here, value)
    return {**supposed, key: value}
