"""A plan file applied: which columns it means, and its decisions in place of the verdicts of the counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from unround.errors import InputError
from unround.mechanisms import Mechanism
from unround.release import Proposal, Release
from unround.structure.evidence import JudgedSum, Name, PlanFile
from unround.structure.residuals import SumTally
from unround.structure.verify import areas_

MOST = 0.5
"""A sum that is impossible in a larger share of areas than this is refused, whoever asks for it."""

Pair = tuple[int, int]


class AppliedPlan:
    """A plan file's overrides, with positions of columns instead of their keys.

    Parameters
    ----------
    plan_file : PlanFile
        The plan.
    release : Release
        The release that it is about.
    insist : bool
        Whether an impossible sum in the user's plan is an error; if not, it is rejected like others.

    Raises
    ------
    InputError
        Where the plan file names a column that does not exist.
    """

    def __init__(self, plan_file: PlanFile, release: Release, insist: bool = True) -> None:
        self._insist = insist
        self._overrides, self._names = plan_file, [column.key for column in release.columns]
        self._index: dict[Name, int] = {}
        for at, column in enumerate(release.columns):
            self._index |= {column.key: at, column.codes: at}
        self.mechanisms: dict[int, Mechanism] = {}
        for mechanism, keys, line in plan_file.mechanisms:
            self.mechanisms |= dict.fromkeys(self._places(keys, line), mechanism)
        self.proposals: list[Proposal] = []
        self._use: dict[tuple[int, frozenset[int]], tuple[bool, int]] = {}
        for ruling in plan_file.sums:
            total, *parts = self._places((ruling.total, *ruling.parts), ruling.line)
            self.proposals.append(Proposal(total, tuple(parts), ruling.origin))
            self._use[total, frozenset(parts)] = ruling.use, ruling.line
        self.alike: set[Pair] = set()
        self.anew: set[Pair] = set()
        self.apart: set[Pair] = set()
        for keys, alike, use, line in plan_file.repeats:
            first, *others = self._places(keys, line)
            for other in others:
                self.proposals.append(Proposal(other, (first,), "file"))
                (self.apart if not use else self.alike if alike else self.anew).add((other, first))
                if not alike:
                    self._use.setdefault((other, frozenset((first,))), (use, line))

    def _places(self, names: Sequence[Name], line: int) -> list[int]:
        missing = next((name for name in names if name not in self._index), None)
        if missing is not None:
            shown = missing if isinstance(missing, str) else ", ".join(missing)
            close = get_close_matches(shown, self._names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else " `unround inspect` lists the columns."
            spot = missing if isinstance(missing, str) else missing[0]
            raise self._error(f"there is no column {shown!r} in this release.{hint}", line, spot)
        return [self._index[name] for name in names]

    def _error(self, message: str, line: int, spot: str = "") -> InputError:
        if not line:
            return InputError(message)
        text = self._overrides.text
        lines = text.splitlines()
        column = 1
        for at in range(line - 1, len(lines)):  # the key may be a few lines below its heading
            if at > line - 1 and lines[at].lstrip().startswith("["):
                break
            if spot and f'"{spot}"' in lines[at]:
                line, column = at + 1, lines[at].index(f'"{spot}"') + 1
                break
        return InputError(message, source=text or None, line=line, column=column, where=self._overrides.where)

    def judge(self, judged: Sequence[tuple[SumTally, JudgedSum]]) -> list[JudgedSum]:
        """Return the verdicts, with the user's decisions in place of those of the counts.

        Raises
        ------
        InputError
            Where the user insists on a sum that is impossible in most areas, or cannot be used.
        """
        return [self._one(result, checked) for result, checked in judged]

    def _one(self, result: SumTally, checked: JudgedSum) -> JudgedSum:
        use, line = self._use.get((checked.total, frozenset(checked.parts)), (None, 0))
        if use is None:
            if checked.origin != "file" or checked.kept or checked.exactly:
                return checked
            use = True
        if use and not self._insist and self._complaint(result, checked, ""):
            return checked
        if use:
            self._complain(result, checked, line)
        if use == checked.kept:
            return checked
        says = self._overrides.where if line else "the file"
        words = (
            f"{says} says so; the counts suggest: {checked.why}"
            if use
            else f"left out by {says}; the counts suggest: {checked.why}"
        )
        return replace(checked, kept=use, why=words)

    def _complaint(self, result: SumTally, checked: JudgedSum, leave: str) -> str | None:
        """Return why a sum cannot be used, whoever wants it, and how to `leave` it out; None if it can."""
        names = self._names
        shown = f"{names[checked.total]} = {' + '.join(names[part] for part in checked.parts)}"
        if not result.known:
            return f"the sum {shown} cannot be used: {checked.why}. Declare their mechanism, or {leave}."
        if result.areas and result.impossible > MOST * result.areas:
            return (
                f"{shown} cannot be a sum: no true counts fit {result.impossible:,} of {areas_(result.areas)} "
                f"(the residual averages {result.all_mean:.2f}). Correct its parts (is one missing?), or {leave}."
            )
        return None

    def _complain(self, result: SumTally, checked: JudgedSum, line: int) -> None:
        # A line is that of a plan, in which sums can be switched off; a description of a table has no such switch.
        leave = "leave the sum out (use = false)" if line else "remove it from the file"
        complaint = self._complaint(result, checked, leave)
        if complaint:
            raise self._error(complaint, line, self._names[checked.total])
