"""START HERE: find out the structure of a release while going through its areas once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace as changed

import numpy as np
from numpy.typing import NDArray

from unround.mechanisms import Exact, Mechanism
from unround.release import Block, Counts, Ground, Proposal, Release, adjustable
from unround.structure.decisions import decided_figures, decided_sums
from unround.structure.evidence import (
    FILES,
    FOUND,
    Equation,
    FoundNoise,
    JudgedFigure,
    JudgedSum,
    MechanismEvidence,
    Repeat,
    Structure,
)
from unround.structure.figure_verdicts import FigureData, judge_figures
from unround.structure.mechanism import Divisibility, detect
from unround.structure.noise import find_noise, with_noise
from unround.structure.propose import (
    SumSearch,
    equal_share,
    files_alike,
    gather,
    is_alike,
    mirrored,
    pairs_to_try,
    related,
    replace,
    stars,
)
from unround.structure.residuals import ResidualTally, ScatterWindows, SumTally, scatter
from unround.structure.verify import areas_, by_analogy, for_everybody, judge, lean_of, on_trust, overlapping

LOOK = 2_000  # The areas that are looked at before sums are searched for and mechanisms assumed. All areas verify them.
_ROUNDS = 4  # how deep sums inside sums are looked for
_DESCRIBED = "described"  # the format of a table that was described on the way: nobody says what its labels mean
_AREAS = "if the areas listed within another are all of it, as labels suggest: none is left out"
_CELLS = 2_000_000  # counts that are processed at once


def find_structure(release: Release, blocks: Iterable[Block] | None = None) -> Structure:
    """Find out the sums, repeats and mechanisms of a release."""
    survey = Survey(release)
    for block in release.blocks() if blocks is None else blocks:
        survey.add(block)
    return survey.structure()


class Survey:
    """Collects what tells the structure, block by block, so that a file is read only once.

    The first areas (`LOOK`) are kept: mechanisms are told from them, and sums searched for in them. From then on every sum
    is tallied over all areas, those first ones included. If `insist`, an impossible sum that the user insists on is an
    error; else it is rejected like others.
    """

    def __init__(self, release: Release, *, insist: bool = True) -> None:
        self._release, self._insist = release, insist
        self._columns = release.columns
        self._declared_by = [column.basis or "description" for column in self._columns]
        self._asked = _unique(release.proposals)
        self._declared = {(proposal.total, proposal.parts) for proposal in release.proposals if proposal.declared}
        self._names = [column.key for column in self._columns]
        self._adjusted = [column.adjusted for column in self._columns]
        self._divisibility = Divisibility.none(len(self._columns))
        self._waiting: list[tuple[Counts, NDArray[np.bool_]]] = []
        self._first: list[Block] = []
        self._areas = 0
        self._lean: dict[Mechanism, float] = {}
        self._doubted: list[JudgedSum] = []
        self._tried = 0
        self._tally: ResidualTally | None = None
        self._sample: Counts = np.zeros((0, len(self._columns)), dtype=np.int32)
        self._adjustable = np.zeros(0, dtype=np.bool_)
        self._figures = FigureData(release.figures, release.index)

    def add(self, block: Block) -> None:
        """Take in some areas."""
        self._areas += len(block.counts)
        self._divisibility.add(block.counts)
        self._figures.add(block)
        if self._tally is None:
            self._first.append(block)
            if sum(len(b.counts) for b in self._first) >= LOOK:
                self._look()
            return
        self._waiting.append((block.counts, adjustable(block.areas)))
        if sum(len(counts) for counts, _ in self._waiting) >= self._at_once:
            self._tally_up()

    @property
    def _at_once(self) -> int:
        return max(64, min(4096, _CELLS // max(1, len(self._columns))))

    def _tally_up(self) -> None:
        """Tally what is waiting, many areas at once."""
        assert self._tally is not None
        if self._waiting:
            counts, flags = self._all_waiting()
            self._waiting.clear()
            for start in range(0, len(counts), self._at_once):
                here = slice(start, start + self._at_once)
                self._tally.add(counts[here], flags[here])

    def _all_waiting(self) -> tuple[Counts, NDArray[np.bool_]]:
        if len(self._waiting) == 1:
            return self._waiting[0]
        counts, flags = zip(*self._waiting, strict=True)
        return np.concatenate(counts), np.concatenate(flags)

    def _look(self) -> None:
        """Decide from the first areas what is to be verified on all."""
        for block in self._first:
            self._waiting.append((block.counts, adjustable(block.areas)))
        if self._waiting:
            counts, flags = self._all_waiting()
            spread = np.unique(np.linspace(0, len(counts) - 1, min(LOOK, len(counts))).astype(np.int64))
            self._sample, self._adjustable = counts[spread], flags[spread]
        self._mechanisms, _, noise = self._told([p for p in self._asked if len(p.parts) > 1])
        if (
            noise is not None and not noise.assumed
        ):  # sums are tallied as if these counts were exact, and tell of their noise
            self._mechanisms, _ = detect(self._divisibility, self._columns, self._declared_by)
        self._windows = ScatterWindows(self._mechanisms, self._adjusted)
        candidates = _candidates(self)
        self._tally = ResidualTally(candidates, self._mechanisms, self._windows, self._adjusted)
        self._first.clear()
        self._tally_up()

    def on_sample(self, proposals: Sequence[Proposal]) -> list[JudgedSum]:
        """Judge sums by the first areas alone."""
        results = self._results(proposals, self._mechanisms)
        self._lean = {**lean_of(results), **self._lean}
        return [judge(result, self._names, self._lean) for result in results]

    def _results(self, proposals: Sequence[Proposal], mechanisms: Sequence[Mechanism | None]) -> list[SumTally]:
        """Tally sums over the first areas, with no more columns than they need."""
        if not proposals:
            return []
        used = sorted({column for p in proposals for column in (p.total, *p.parts, *p.against)})
        place = {column: at for at, column in enumerate(used)}
        kinds, adjusted = [mechanisms[column] for column in used], [self._adjusted[column] for column in used]
        moved = [
            Proposal(place[p.total], tuple(place[c] for c in p.parts), p.origin, tuple(place[c] for c in p.against))
            for p in proposals
        ]
        tally = ResidualTally(moved, kinds, ScatterWindows(kinds, adjusted), adjusted)
        for start in range(0, len(self._sample), self._at_once):
            here = slice(start, start + self._at_once)
            tally.add(self._sample[here, used], self._adjustable[here])
        return [changed(result, proposal=p) for result, p in zip(tally.results(), proposals, strict=True)]

    def structure(self) -> Structure:
        """Return what was found."""
        if self._tally is None:
            self._look()
        self._tally_up()
        assert self._tally is not None
        results = self._tally.results()
        mechanisms, how, noise = self._told(results)
        unknown = noise.columns if noise is not None and not noise.assumed else frozenset[int]()
        moved = {at for at, (old, new) in enumerate(zip(self._mechanisms, mechanisms, strict=True)) if old != new}
        if moved - unknown:
            results = self._again(results, moved - unknown, mechanisms)
        results = [changed(r, known=False) if unknown & {r.proposal.total, *r.proposal.parts} else r for r in results]
        lean = lean_of(results)
        verdicts = overlapping([judge(result, self._names, lean) for result in results], results, self._names)
        verdicts = on_trust(by_analogy(verdicts, self._columns), self._columns)
        verdicts = for_everybody(verdicts, self._columns, self._names)
        ruled = decided_sums(results, verdicts, self._release, unknown, self._insist)
        kept, rejected, repeats, alias = _sort(ruled, self._release, mechanisms)
        rejected += [judged for judged in self._doubted if judged.total not in {sum_.total for sum_ in kept}]
        kept, rejected = ([self._grounded(judged) for judged in those] for those in (kept, rejected))
        equations, sources = _equations(kept, alias)
        return Structure(
            columns=self._release.columns,
            areas=self._areas,
            mechanisms=tuple(mechanisms),
            how=tuple(how),
            sums=tuple(kept),
            rejected=tuple(rejected),
            repeats=tuple(repeats),
            alias=alias,
            guessed=frozenset(judged.total for judged in ruled if len(judged.parts) == 1 and judged.origin == "data")
            & alias.keys(),
            equations=equations,
            equation_sums=sources,
            figures=self._judged_figures(mechanisms),
            notes=tuple(self._notes(how)),
            noise=() if noise is None else (noise,),
            areas_condition=_AREAS if _DESCRIBED in self._release.file_format.split(" + ") else "",
        )

    def _told(
        self, tallied: Sequence[SumTally] | Sequence[Proposal]
    ) -> tuple[list[Mechanism | None], list[MechanismEvidence], FoundNoise | None]:
        """Tell how counts were published, by what divides them and by how sums miss: tallied ones, or proposed ones."""
        mechanisms, how = detect(self._divisibility, self._columns, self._declared_by)
        results = [tally for tally in tallied if isinstance(tally, SumTally)]
        results = results or self._results([tally for tally in tallied if isinstance(tally, Proposal)], mechanisms)
        noise = find_noise(results, self._columns, mechanisms, self._divisibility)
        if noise is not None:
            mechanisms, how = with_noise(noise, mechanisms, how)
        return mechanisms, how, noise

    def _grounded(self, judged: JudgedSum) -> JudgedSum:
        """Return a sum with what says that it holds; a claim by one that nobody says holds has to name it."""
        if judged.origin == "file" or judged.equation in self._declared:
            return changed(judged, ground=Ground.DECLARED)
        if judged.origin != FOUND and self._columns[judged.total].known_format:
            return changed(judged, ground=Ground.DOCUMENTED)
        names = [self._names[at] for at in (judged.total, *judged.parts)]
        listed = " + ".join(names[1:] if len(names) <= 5 else [*names[1:3], "…", f"{names[-1]} ({len(names) - 1} parts)"])
        if len(names) == 2:
            condition = f"if {names[0]} and {names[1]} are one count, as their numbers in {areas_(judged.areas)} suggest"
        elif judged.origin == FOUND:
            condition = (
                f"if {names[0]} = {listed}, which nobody says: it was found in {areas_(judged.areas)}, "
                f"among {self._tried:,} sums that were tried"
            )
        else:
            condition = (
                f"if {names[0]} = {listed} leaves nobody out and counts nobody twice, as labels suggest and "
                f"{areas_(judged.areas)} do not contradict: no further part is unprinted"
            )
        return changed(judged, ground=Ground.INFERRED, condition=condition)

    def _judged_figures(self, mechanisms: Sequence[Mechanism | None]) -> tuple[JudgedFigure, ...]:
        """Judge rates, means and medians by all areas."""
        self._figures.close(mechanisms, self._adjusted)
        return decided_figures(judge_figures(self._figures), self._release.decisions)

    def _again(self, results: list[SumTally], moved: set[int], mechanisms: list[Mechanism | None]) -> list[SumTally]:
        """Judge anew, by the first areas, the sums with columns that later turned out to be published otherwise."""
        stale = [r.proposal for r in results if moved & {r.proposal.total, *r.proposal.parts, *r.proposal.against}]
        anew = {(r.proposal.total, r.proposal.parts): r for r in self._results(stale, mechanisms)}
        return [anew.get((r.proposal.total, r.proposal.parts), r) for r in results]

    def _notes(self, how: Sequence[MechanismEvidence]) -> list[str]:
        """Say which declared mechanisms do not fit, and which columns nothing is known of."""
        assert self._tally is not None
        notes = []
        for evidence in how:
            if evidence.mechanism is None:
                keys = ", ".join(self._names[at] for at in evidence.columns[:5])
                keys += " …" if len(evidence.columns) > 5 else ""
                number = f"{len(evidence.columns):,} columns" if len(evidence.columns) > 1 else "1 column"
                why = (
                    evidence.why
                    if evidence.suggested is None
                    else f"perturbed; give --mechanism {evidence.suggested.name} if the agency does not say otherwise"
                )
                notes.append(f"not audited: {number} of {evidence.block!r} ({keys}): {why}.")
                continue
            # What was told from the counts fits them; and what the first areas told wrongly was tallied wrongly.
            declared = [at for at in evidence.columns if self._release.columns[at].mechanism == evidence.mechanism]
            published = int(self._divisibility.published[declared].sum())
            misfits = published - int(self._tally.seen[declared].sum())
            if misfits > 0:
                notes.append(
                    f"{misfits:,} of {published:,} counts in {evidence.block!r} cannot come from {evidence.mechanism.name}, "
                    "as declared; they are treated as not published."
                )
        return notes


def _candidates(survey: Survey) -> list[Proposal]:
    """Return the sums to verify on all areas: those proposed, and those found in the sample."""
    asked = survey._asked
    pairs = [p for p in asked if len(p.parts) == 1]
    sums = [p for p in asked if len(p.parts) > 1]
    checked = survey.on_sample(sums)
    reach = _reach(survey._mechanisms)
    search = SumSearch(survey._columns, survey._sample, reach)
    failed = [s for s, c in zip(sums, checked, strict=True) if not c.kept and s.origin in ("indentation", "names")]
    # A sum that cannot be judged may well be true: nothing is looked for that would contradict it.
    known = [c.equation for c in checked if c.kept or c.unjudged]
    tried = survey.on_sample(search.repairs(failed))
    believed = _best(tried)
    survey._tried = len(tried)
    for _ in range(_ROUNDS):  # a sum that was found may be a part of the next
        tried = survey.on_sample(search.runs([*known, *(c.equation for c in believed)]))
        survey._tried += len(tried)
        further = _best(tried)
        believed += further
        if not further:
            break
    survey._doubted = _doubted(tried, asked)
    more = [Proposal(c.total, c.parts, c.origin) for c in believed]
    more += mirrored(more, survey._columns)
    known += [(p.total, p.parts) for p in more]
    inside = related(known)
    same, refused = list[Proposal](), list[Proposal]()
    for judged in survey.on_sample([*pairs, *pairs_to_try(survey._columns, survey._sample, reach, inside)]):
        pair = Proposal(judged.total, judged.parts, judged.origin)
        if judged.kept or is_alike(judged, survey._mechanisms):
            same.append(pair)
        elif judged.origin != "data":  # what nobody proposed need not be listed as rejected
            refused.append(pair)
    return _unique(
        [
            *sums,
            *more,
            *stars(same, survey.on_sample, survey._mechanisms, inside),
            *refused,
            *(p for p in pairs if p.origin == "file"),
        ]
    )


def _doubted(tried: Sequence[JudgedSum], asked: Sequence[Proposal]) -> list[JudgedSum]:
    """Return, for every total of which nothing was proposed, the candidate that came closest and was not believed."""
    proposed = {p.total for p in asked if len(p.parts) > 1 and p.origin != "sex"}
    closest: dict[int, JudgedSum] = {}
    for candidate in tried:
        if candidate.cause and candidate.total not in proposed:
            rival = closest.get(candidate.total)
            if rival is None or (candidate.impossible, abs(candidate.mean)) < (rival.impossible, abs(rival.mean)):
                closest[candidate.total] = candidate
    return list(closest.values())


def _unique(proposals: Iterable[Proposal]) -> list[Proposal]:
    """Return every sum once, under the first of its origins, and no column twice in one."""
    first: dict[tuple[int, frozenset[int]], Proposal] = {}
    for proposal in proposals:
        parts = frozenset(proposal.parts)
        if parts and proposal.total not in parts and len(parts) == len(proposal.parts):
            known = first.setdefault((proposal.total, parts), proposal)
            if proposal.against and not known.against:  # a description names a total, but not what it was compared with
                first[proposal.total, parts] = changed(known, against=proposal.against)
    return list(first.values())


def _best(checked: Sequence[JudgedSum]) -> list[JudgedSum]:
    """Return of the sums found for each total the one with the most parts that holds; of equals the one closest to it."""
    best: dict[int, JudgedSum] = {}
    for candidate in checked:
        if candidate.kept:
            rival = best.get(candidate.total)
            if rival is None or (-len(candidate.parts), abs(candidate.mean)) < (-len(rival.parts), abs(rival.mean)):
                best[candidate.total] = candidate
    return list(best.values())


def _reach(mechanisms: Sequence[Mechanism | None]) -> NDArray[np.int32]:
    """Return how far from the true count a published one can be, roughly."""
    steps = {kind: 0 if kind is None or kind == Exact() else max(1, scatter(kind).step - 1) for kind in set(mechanisms)}
    return np.array([steps[kind] for kind in mechanisms], dtype=np.int32)


def _sort(
    checked: Sequence[JudgedSum], release: Release, mechanisms: Sequence[Mechanism | None]
) -> tuple[list[JudgedSum], list[JudgedSum], list[Repeat], dict[int, int]]:
    """Tell sums that hold from those that do not, and repeats from sums."""
    said = (proposal for proposal in release.proposals if proposal.use is not None and len(proposal.parts) == 1)
    pairs = {(proposal.total, proposal.parts[0]): proposal for proposal in said}
    apart = {pair for pair, proposal in pairs.items() if not proposal.use}
    same = {pair for pair, proposal in pairs.items() if proposal.alike}
    anew = {pair for pair, proposal in pairs.items() if proposal.alike is False}
    alike, kept, rejected = list[JudgedSum](), list[JudgedSum](), list[JudgedSum]()
    copies = files_alike(checked)
    for judged in checked:
        pair = (judged.total, judged.parts[0])
        single = len(judged.parts) == 1
        if single and pair in apart:
            rejected.append(judged)
        elif single and (pair in same or (_same(judged, mechanisms, copies) and pair not in anew)):
            alike.append(judged)
        else:
            (kept if judged.kept else rejected).append(judged)
    names = [column.key for column in release.columns]
    repeats, alias = gather(alike, [judged for judged in kept if len(judged.parts) == 1], names)
    alias |= {judged.total: judged.parts[0] for judged in alike if (judged.total, judged.parts[0]) in same}
    return kept, rejected, repeats, alias


def _same(judged: JudgedSum, mechanisms: Sequence[Mechanism | None], copies: bool) -> bool:
    """Return whether a pair is alike; of two files that were rounded anew, only columns without a single difference are."""
    return is_alike(judged, mechanisms) and (judged.origin != FILES or copies or equal_share(judged) == 1)


def _equations(kept: Sequence[JudgedSum], alias: dict[int, int]) -> tuple[tuple[Equation, ...], tuple[int, ...]]:
    """Return the kept sums with aliases replaced, each once.

    The same sum over counts that were rounded anew says nothing more: that each of them is the same count does.
    """
    equations: dict[tuple[int, frozenset[int]], tuple[Equation, int]] = {}
    anew = {judged.total: judged.parts[0] for judged in kept if len(judged.parts) == 1}
    heads = {column: _head(column, anew) for column in anew}
    for at, checked in enumerate(kept):
        total, parts = replace(checked.equation, alias)
        if len(set(parts)) < len(parts):
            total, parts = checked.equation  # siblings that are always equal are still two counts
        if total not in parts:
            key = (total, frozenset(parts))
            if len(parts) > 1:
                first, others = replace((total, parts), heads)
                key = (first, frozenset(others)) if len(set(others)) == len(others) else key
            equations.setdefault(key, ((total, parts), at))
    return tuple(equation for equation, _ in equations.values()), tuple(at for _, at in equations.values())


def _head(column: int, anew: Mapping[int, int]) -> int:
    """Return the column that a count stands in first."""
    seen = {column}
    while column in anew and anew[column] not in seen:
        column = anew[column]
        seen.add(column)
    return column
