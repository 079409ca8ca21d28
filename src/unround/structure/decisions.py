"""The user's decisions, in place of the verdicts of the counts on sums and figures."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from difflib import get_close_matches

from unround.errors import ArgumentError, InputError
from unround.mechanisms import Exact, Mechanism, mechanism
from unround.release import Decisions, Release, What
from unround.structure.evidence import INFERRED, LABELS, OPTION, JudgedFigure, JudgedSum
from unround.structure.residuals import SumTally
from unround.structure.verify import areas_

MOST = 0.5
"""A sum that is impossible in a larger share of areas than this is refused, whoever asks for it."""


def decided_sums(
    results: Sequence[SumTally], verdicts: Sequence[JudgedSum], release: Release, unknown: AbstractSet[int], insist: bool
) -> list[JudgedSum]:
    """Return the verdicts on sums, with the user's decisions in place of those of the counts.

    `unknown` are columns that turned out to be perturbed, nobody knows how: no sum of theirs is insisted on.
    """
    decided = {
        (proposal.total, frozenset(proposal.parts)): proposal.use
        for proposal in release.proposals
        if proposal.use is not None and not proposal.alike
    }
    return [
        _decided(result, verdict, release, decided.get((verdict.total, frozenset(verdict.parts))), unknown, insist)
        for result, verdict in zip(results, verdicts, strict=True)
    ]


def _decided(
    result: SumTally, verdict: JudgedSum, release: Release, use: bool | None, unknown: AbstractSet[int], insist: bool
) -> JudgedSum:
    where = release.decisions.where
    left = use is None
    if use is None:
        if verdict.origin not in ("file", LABELS) or verdict.kept or verdict.exactly:
            return verdict
        if unknown & {verdict.total, *verdict.parts}:
            return verdict
        use = True
    if not use:
        words = f"left out by {where}; the counts suggest: {verdict.why}"
        return replace(verdict, kept=False, unjudged=False, cause="decided", why=words)
    complaint = _complaint(result, verdict, [column.key for column in release.columns])
    if complaint and insist and (not left or verdict.origin == "file"):
        raise InputError(f"{where}: {complaint}")
    if complaint or verdict.kept:
        return verdict
    if left and verdict.origin == LABELS:
        words = f"labels suggest it; the counts: {verdict.why}"
    else:
        words = f"{where if not left else 'the file'} says so; the counts suggest: {verdict.why}"
    return replace(verdict, kept=True, why=words)


def _complaint(result: SumTally, verdict: JudgedSum, names: Sequence[str]) -> str | None:
    """Return why a sum cannot be used, whoever wants it; None if it can."""
    shown = f"{names[verdict.total]} = {' + '.join(names[part] for part in verdict.parts)}"
    if not result.known:
        return f"the sum {shown} cannot be used: {verdict.why}. Declare their mechanism, or leave the sum out (use = false)."
    if result.areas and result.impossible > MOST * result.areas:
        return (
            f"{shown} cannot be a sum: no true counts fit {result.impossible:,} of {areas_(result.areas)} (the residual "
            f"averages {result.all_mean:.2f}). Correct its parts (is one missing?), or leave the sum out (use = false)."
        )
    return None


def decided_figures(judged: Sequence[JudgedFigure], decisions: Decisions) -> tuple[JudgedFigure, ...]:
    """Return the verdicts on figures as the user decides.

    What published counts give tells nothing, and a sample has no whole numbers, whatever anybody says; unless it is certain
    that a figure was computed from true counts.
    """
    decided = []
    for figure in judged:
        name, use = figure.figure.name, decisions.figures.get(figure.figure.name)
        if use is False and figure.verdict != "recomputable":
            why = f"left out by {decisions.where}; the data suggest: {figure.why}"
            figure = replace(figure, verdict="unclear", why=why, left_out=True)
        elif name in decisions.certain:
            figure = replace(figure, verdict="evidence", why="it was computed from true counts.", reveals=())
        elif use is True and figure.verdict == "unclear" and figure.figure.is_complete and not figure.figure.sampled:
            why = f"used because {decisions.where} says so; the data suggest: {figure.why}"
            figure = replace(figure, verdict="evidence", why=why)
        decided.append(figure)
    return tuple(decided)


def declaring(release: Release, how: Mechanism | str) -> Release:
    """Return a release of which the user says how rounded counts were published, where its description does not."""
    kind = mechanism(how) if isinstance(how, str) else how
    open_ = [at for at, column in enumerate(release.columns) if column.mechanism is None or column.basis == INFERRED]
    if not open_:
        declared = dict.fromkeys(column.mechanism.name for column in release.columns if column.mechanism is not None)
        if declared.keys() - {"exact"} == {kind.name}:
            return release  # it says so itself
        raise ArgumentError(
            "{mechanism} is for counts of which nothing is declared, and here everything is "
            f"({', '.join(declared)}): change the description instead."
        )
    columns = list(release.columns)
    for at in open_:
        columns[at] = replace(columns[at], mechanism=None, documented=(kind,), basis=OPTION)
    account = [
        replace(entry, what=What.NOTE, why=f"{kind.name}, as you say", used=True, settle="")
        if entry.settle.startswith("--base")
        else entry
        for entry in release.account
    ]
    return replace(release, columns=tuple(columns), account=tuple(account), obstacle="")  # what was missing is said


def declaring_exact(release: Release, names: Sequence[str]) -> Release:
    """Return a release of which the user says that some counts are exact, whatever else is said of them.

    A name is a column's key; else a label; else a code, and then all columns with that code are meant.
    """
    columns = list(release.columns)
    for name in names:
        ways = (
            [at for at, column in enumerate(columns) if column.key == name],
            [at for at, column in enumerate(columns) if column.label == name],
            [at for at, column in enumerate(columns) if name in column.codes],
        )
        meant = next((those for those in ways if those), None)
        if meant is None:
            known = sorted({text for column in columns for text in (column.key, column.label, *column.codes)})
            close = get_close_matches(name, known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else " `unround check` lists the columns."
            raise ArgumentError(f"{{exact}} names {name!r}, and there is no such column.{hint}")
        for at in meant:
            columns[at] = replace(columns[at], mechanism=Exact(), documented=(), basis=OPTION)
    return replace(release, columns=tuple(columns))
