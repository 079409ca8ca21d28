"""Solve one system: infer, prove, and return everything as one Solution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from unround.bounds.certificates import certificates
from unround.engines import Inference, infer
from unround.engines.answer import Marginal, Prior
from unround.errors import InputError
from unround.mechanisms import TAIL, Mechanism, Unpublished
from unround.mechanisms.base import ALIKE, reaches
from unround.proofs import Proof, contradiction_in_words, proofs_of
from unround.shown import Plain, Tabular, frame_of
from unround.system import Cell, PublishedFigure, System

if TYPE_CHECKING:
    import polars as pl

    from unround.bounds.clash import Clash

Kind = Literal["given", "proved", "likely", "open"]

SURE = 0.9
"""The least total probability of the values in `CellAnswer.sure`."""


@dataclass(frozen=True, slots=True)
class CellAnswer(Plain):
    """The answer for one cell.

    - `name`, `published`: As in the system.
    - `low`, `high`: The possible range; `high` is None where nothing bounds it.
    - `mode`, `probability`, `mean`: The likeliest value (the lowest of several), its probability, and the mean; None
      where not available.
    - `distribution`: Every possible value with its probability, ascending.
    - `kind`: "given" (published exactly), "proved", "likely" (at or above the threshold) or "open".
    - `error`: The standard error of the probability: 0 where it is exact; None where there is no probability.
    """

    ALSO = ("sure",)

    name: str
    published: int | None
    low: int
    high: int | None
    mode: int | None
    probability: float | None
    mean: float | None
    distribution: tuple[tuple[int, float], ...]
    kind: Kind
    error: float | None = None

    @property
    def sure(self) -> tuple[int, ...]:
        """The smallest set of values that holds at least 90% of the probability, ascending; empty if not available."""
        chosen, held = [], 0.0
        for value, probability in sorted(self.distribution, key=lambda pair: (-pair[1], pair[0])):
            if reaches(held, SURE):
                break
            chosen.append(value)
            held += probability
        return tuple(sorted(chosen))


@dataclass(frozen=True, slots=True)
class Ranked(Plain):
    """One solution: every cell's value, its probability, and how many times likelier it is than the next one.

    The probability is None where solutions were found by chains: these may have missed others, and do not tell how much all
    solutions weigh together.
    """

    values: dict[str, int]
    probability: float | None
    times_next: float | None


@dataclass(frozen=True, slots=True)
class PrintedSum:
    """A printed total beside the sum of its printed parts.

    - `total`, `parts`: The names of the cells.
    - `printed`, `added`: The total as printed, and what the printed parts add up to.
    - `printed_off`, `added_off`: How far each is from the true total on average; None where there are no probabilities.
    - `limited`: Whether there is a limit to how far they can be off: not under noise without one.
    """

    total: str
    parts: tuple[str, ...]
    printed: int
    added: int
    printed_off: float | None
    added_off: float | None
    limited: bool

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class FigureAnswer:
    """A rate, a mean or a median of a system, and how it was used.

    - `published`: As in the system.
    - `low`, `high`: What it was before it was rounded, at least and at most.
    - `in_probabilities`: Whether probabilities use it; if not, it says what is possible, and no more.
    """

    published: PublishedFigure
    low: Fraction
    high: Fraction
    in_probabilities: bool

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data; numbers are text, exactly as fractions."""
        shown = {"low": str(self.low), "high": str(self.high), "in_probabilities": self.in_probabilities}
        return self.published.to_json() | shown


@dataclass(frozen=True, slots=True)
class Solution(Tabular):
    """Everything inferred about a system.

    Parameters
    ----------
    feasible : bool
        Whether any true counts fit; if not, `clash` is a smallest inconsistent set.
    solutions : int or None
        How many sets of true counts fit; None where nothing bounds them or they were not counted.
    engine, why, prior : str
        Which engine answered, why that one was chosen, and the prior: "flat" or "given".
    assumptions : tuple of str
        The assumptions behind the answer, one sentence each.
    cells : tuple of CellAnswer
        Every cell, in the system's order.
    top : tuple of Ranked
        The best solutions.
    proofs : tuple of Proof
        What is proved, the simplest argument first.
    clash : Clash or None
        For a system without a solution: a smallest set of cells and sums that is inconsistent. None where only the given
        prior rules everything out.
    argument : str or None
        Why it is inconsistent, in words, where the arithmetic of single sums shows it.
    method : str
        What kind of probabilities these are: "exact", "estimated" (by Markov chains; see `error` of each cell), or "none".
    rhat : float or None
        Where they are estimated, how well the chains agree: 1 if nothing tells them apart.
    figures : tuple of FigureAnswer
        The rates, means and medians that were used, and how.
    sums : tuple of PrintedSum
        Every sum of which all numbers are printed: the total, what its parts add up to, and how far off each is.
    """

    feasible: bool
    solutions: int | None
    engine: str
    why: str
    prior: str
    assumptions: tuple[str, ...]
    cells: tuple[CellAnswer, ...] = ()
    top: tuple[Ranked, ...] = ()
    proofs: tuple[Proof, ...] = ()
    clash: Clash | None = None
    argument: str | None = None
    method: str = "exact"
    rhat: float | None = None
    figures: tuple[FigureAnswer, ...] = ()
    sums: tuple[PrintedSum, ...] = ()

    def __getitem__(self, name: str) -> CellAnswer:
        """Return the answer for the cell of this name."""
        for cell in self.cells:
            if cell.name == name:
                return cell
        raise KeyError(name)

    def to_polars(self) -> pl.DataFrame:
        """Return a row for every cell; the last columns are lists: the possible counts, and how likely each is."""
        import polars as pl

        numbers: dict[str, Any] = dict.fromkeys(("published", "low", "high", "mode"), pl.Int64)
        chances: dict[str, Any] = dict.fromkeys(("probability", "error", "mean"), pl.Float64)
        frame = frame_of(self.cells, name=pl.String, **numbers, **chances, kind=pl.String)
        return frame.rename({"name": "cell"})

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data, as `unround solve --json` prints it."""
        result: dict[str, Any] = {
            "feasible": self.feasible,
            "solutions": self.solutions,
            "engine": self.engine,
            "why": self.why,
            "method": self.method,
            "rhat": self.rhat,
            "prior": self.prior,
            "assumptions": list(self.assumptions),
            "cells": [cell.to_json() for cell in self.cells],
            "figures": [figure.to_json() for figure in self.figures],
            "sums": [printed.to_json() for printed in self.sums],
            "top": [ranked.to_json() for ranked in self.top],
            "proofs": [proof.to_json() for proof in self.proofs],
        }
        if self.clash is not None:
            sums = [{"total": clashing.total, "parts": list(clashing.parts)} for clashing in self.clash.sums]
            result["clash"] = {
                "cells": list(self.clash.cells),
                "sums": sums,
                "minimum": self.clash.minimum,
                "text": self.argument,
            }
            if self.clash.figures:
                result["clash"]["figures"] = [stated.figure.name for stated in self.clash.figures]
        return result


def solve(
    system: System,
    *,
    engine: str = "auto",
    prior: Prior | None = None,
    top: int = 5,
    threshold: float = 0.66,
) -> Solution:
    """Work out what the true counts of a system must have been, or probably were.

    Its arguments are those of `unround.solve`, which reads text and files, too.

    Examples
    --------
    >>> from unround import parse
    >>> answer = solve(parse("30 = 15 + 15 + 15"))
    >>> answer.solutions, answer["total"].mode, round(answer["total"].probability, 3)
    (4, 34, 0.75)
    """
    if not 0 < threshold <= 1:
        raise InputError(f"the threshold must be a probability above 0 and at most 1, not {threshold}.")
    if top < 0:
        raise InputError(f"the number of best solutions must be 0 or more, not {top}.")
    if not isinstance(system, System):
        raise TypeError(f"solve takes a System, not {type(system).__name__}: read text with unround.parse first.")
    inferred = infer(system, engine=engine, prior=prior, top=top + 1 if top else 0)
    named = "given" if prior else "flat"
    if prior:
        inferred = _with_bounds_of(infer(system, engine=engine, top=0), inferred)
    if not inferred.feasible:
        return _infeasible(system, prior, inferred)
    single = [i for i, cell in enumerate(system.cells) if inferred.lows[i] == inferred.highs[i] and not cell.given]
    proofs = proofs_of(system, certificates(system, single)) if single else ()
    proved = {proof.cell for proof in proofs}
    marginals = inferred.answer.marginals if inferred.answer is not None else None
    cells = []
    for i, cell in enumerate(system.cells):
        marginal = marginals[i] if marginals is not None else None
        low, high = inferred.lows[i], inferred.highs[i]
        if low == high:
            marginal = (low, np.ones(1))  # exactly, free of the engine's rounding errors
        error = inferred.errors[i] if inferred.errors is not None and low != high else 0.0
        cells.append(_cell_answer(cell, low, high, marginal, error, cell.name in proved, threshold))
    best = _ranked(system, inferred, top)
    solutions = inferred.answer.solutions if inferred.answer is not None else None
    assumptions = (*_assumptions(system, prior, inferred), *_unproved(system, cells, prior))
    return Solution(
        True,
        solutions,
        inferred.engine,
        inferred.why,
        named,
        assumptions,
        tuple(cells),
        best,
        proofs,
        method="none" if inferred.answer is None else "exact" if inferred.errors is None else "estimated",
        rhat=inferred.rhat,
        figures=_figures(system, inferred),
        sums=_printed_sums(system, cells),
    )


def _printed_sums(system: System, cells: Sequence[CellAnswer]) -> tuple[PrintedSum, ...]:
    """Compare every printed total with what its parts add up to, where all of them are printed."""

    def off(guess: int, chances: Sequence[tuple[int, float]]) -> float | None:
        return math.fsum(p * abs(count - guess) for count, p in chances) if chances else None

    sums, limited = [], all(window.certain for window in system.windows)
    for total, parts in system.equations:
        cell, listed = cells[total], [cells[part].published for part in parts]
        if cell.published is not None and None not in listed:
            added = sum(count for count in listed if count is not None)
            means = off(cell.published, cell.distribution), off(added, cell.distribution)
            names = tuple(cells[part].name for part in parts)
            sums.append(PrintedSum(cell.name, names, cell.published, added, *means, limited))
    return tuple(sums)


def _figures(system: System, inferred: Inference) -> tuple[FigureAnswer, ...]:
    """Say of every figure how it was used."""
    return tuple(
        FigureAnswer(
            stated,
            *stated.figure.grid.around(stated.value),
            inferred.answer is not None and stated.figure.name not in inferred.aside,
        )
        for stated in system.figures
    )


def _cell_answer(
    cell: Cell,
    low: int,
    high: int | None,
    marginal: Marginal | None,
    error: float,
    proved: bool,
    threshold: float,
) -> CellAnswer:
    mode: int | None = None
    probability: float | None = None
    mean: float | None = None
    distribution: tuple[tuple[int, float], ...] = ()
    if marginal is not None and high is not None:
        start, chances = marginal[0], marginal[1].tolist()  # mostly a few: plain numbers are faster than arrays
        least = max(chances) * (1 - ALIKE)
        distribution = tuple([(value, chance) for value, chance in enumerate(chances, start) if chance > 0])
        mode, probability = next(pair for pair in distribution if pair[1] >= least)
        mean = start + math.fsum([k * chance for k, chance in enumerate(chances)])
    kind: Kind = "open"
    if cell.given:
        kind = "given"
    elif proved:
        kind = "proved"
    elif probability is not None and reaches(probability, threshold):
        kind = "likely"
    stated = None if probability is None else error
    return CellAnswer(cell.name, cell.published, low, high, mode, probability, mean, distribution, kind, stated)


def _ranked(system: System, inferred: Inference, top: int) -> tuple[Ranked, ...]:
    best = inferred.answer.best if inferred.answer is not None else ()
    names = [cell.name for cell in system.cells]
    ranked = []
    for k, (values, probability) in enumerate(best[:top]):
        following = best[k + 1][1] if k + 1 < len(best) else None
        times = probability / following if following else None
        if times is not None and math.isclose(times, 1, rel_tol=ALIKE):
            times = 1.0
        known = None if inferred.answer is None or inferred.answer.relative else probability
        ranked.append(Ranked(dict(zip(names, values, strict=True)), known, times))
    return tuple(ranked)


def _with_bounds_of(plain: Inference, weighed: Inference) -> Inference:
    """Take bounds and the number of solutions without the prior, and everything else with it."""
    if not plain.feasible:
        return plain
    if not weighed.feasible:
        why = "the published values are consistent, but the given prior rules out every solution"
        return replace(weighed, engine=plain.engine, why=why)
    answer = weighed.answer
    if answer is not None:
        answer = replace(answer, solutions=plain.answer.solutions if plain.answer is not None else None)
    return replace(
        plain,
        engine=weighed.engine,
        why=weighed.why,
        answer=answer,
        errors=weighed.errors,
        rhat=weighed.rhat,
        aside=weighed.aside,
    )


def _infeasible(system: System, prior: Prior | None, inferred: Inference) -> Solution:
    from unround.bounds.certificates import contradiction
    from unround.bounds.clash import smallest_clash

    named = "given" if prior else "flat"
    assumptions = _assumptions(system, prior, inferred)
    if prior and infer(system, top=0).feasible:
        return Solution(False, 0, inferred.engine, inferred.why, named, assumptions)
    clash = smallest_clash(system)
    # The argument uses the inconsistent set alone: all other cells may have any value.
    alone = System(
        [cell if cell.name in clash.cells else Cell(cell.name, None, Unpublished()) for cell in system.cells],
        clash.sums,
        clash.figures,
    )
    steps = contradiction(alone)
    argument = contradiction_in_words(alone, steps) if steps is not None else None
    return Solution(False, 0, inferred.engine, inferred.why, named, assumptions, clash=clash, argument=argument)


def _assumptions(system: System, prior: Prior | None, inferred: Inference) -> tuple[str, ...]:
    """Return the assumptions behind the answer."""
    sentences = ["True counts are non-negative whole numbers, and the sums hold exactly for them."]
    inside = {name for known in system.sums for name in (known.total, *known.parts)}
    inside |= {name for stated in system.figures for name in stated.figure.counts}
    alone = [cell.name for cell in system.cells if cell.name not in inside]
    if alone:
        single = len(alone) == 1
        nowhere = "in no sum or figure" if system.figures else "in no sum"
        sentences.append(
            f"{_some(alone)} {'is' if single else 'are'} {nowhere}: only {'its' if single else 'their'} own published "
            f"{'value says' if single else 'values say'} anything about {'it' if single else 'them'}."
        )
    sentences += _mechanism_sentences(system)
    if system.figures:
        names = _some([stated.figure.name for stated in system.figures])
        sentences.append(f"Computed from true counts, and rounded to the nearest step; ties go either way: {names}.")
    if inferred.aside:
        sentences.append(
            f"{_some(list(inferred.aside))}: used for possible ranges and proofs, but not in probabilities beyond these "
            "ranges, which would take too long."
        )
    if not all(window.certain for window in system.windows):
        sentences.append(
            f"Noise is unbounded: possible ranges leave out a probability of at most {TAIL:g} per cell, and nothing that "
            "depends on them is called proved."
        )
    if inferred.feasible and inferred.answer is None:
        sentences.append("Probabilities are not available for this system; possible ranges are as narrow as they can be.")
        return tuple(sentences)
    if inferred.feasible and None in inferred.highs:
        sentences.append(
            "Some cells have no upper bound: they have no probabilities, and sums that include them add no information."
        )
    if inferred.errors is not None:
        sentences.append(
            "Probabilities are estimates by Markov chains, with a standard error of at most "
            f"{100 * max(inferred.errors):.1f} points. Possible ranges and proofs are exact."
        )
    sentences.append(
        "Prior: the given distributions, flat for the other cells. Possible ranges and proofs do not use it."
        if prior
        else "Prior: flat; all sets of true counts that fit are equally likely a priori. Possible ranges and proofs do not "
        "use it."
    )
    return tuple(sentences)


def _unproved(system: System, cells: list[CellAnswer], prior: Prior | None) -> list[str]:
    """Name cells whose value is certain although no proof short enough to write out was found."""
    if prior or not all(window.certain for window in system.windows):
        return []
    names = [cell.name for cell in cells if cell.low == cell.high and cell.kind not in ("given", "proved")]
    if not names:
        return []
    several = f"{names[0]} has" if len(names) == 1 else f"{_some(names)} have"
    return [
        f"{several} one possible value by exhaustive search; the proof is too long to write out, so it is not called proved."
    ]


def _mechanism_sentences(system: System) -> list[str]:
    """Describe how cells were protected, naming them where it differs."""
    exact = [cell.name for cell in system.cells if cell.given]
    sentences = [f"Published exactly: {_some(exact)}."] if exact else []
    cells: dict[Mechanism, list[str]] = {}
    for cell in system.cells:
        if not cell.given:
            cells.setdefault(cell.mechanism, []).append(cell.name)
    if not cells:
        return sentences
    most = max(cells, key=lambda mechanism: len(cells[mechanism]))
    sentences += [
        f"{_some(names)}: {_inside(mechanism.sentence)}" for mechanism, names in cells.items() if mechanism != most
    ]
    return [*sentences, f"Other cells: {_inside(most.sentence)}" if sentences else most.sentence]


def _inside(sentence: str) -> str:
    """Return a sentence as it continues after a colon."""
    return sentence[0].lower() + sentence[1:]


def _some(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 5 else f"{', '.join(names[:4])} and {len(names) - 4} more"
