"""What is said of an audit: what it rests on, how much can be inferred, an example, what to do next, and the small sections.

`footing` is the strip on top of the report and of every page of the explorer: each entry names a check, says how it came out
in a word or two and a sentence, and leads to the reasons: `anchor` is the name of the section that has them, in the report
and on the explorer's page "About".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from unround.checks.families import CONTRADICTS, DEPARTS, FITS, UNTESTED
from unround.job import AuditFolder
from unround.job.folder import REVIEW, REVIEWED
from unround.show import selfcheck
from unround.show.charts import Share, per_10_000, waffle
from unround.show.check import keys_explain, known_by
from unround.show.parts import Bullets, Chart, Fact, Part, Text
from unround.show.strongest import Strong
from unround.show.words import CLAIMS, UNGROUPED, at_least, listed, percent, several, share
from unround.small_files import plain_json

FINE, DOUBT, UNKNOWN = "fine", "doubt", "unknown"
"""How an entry looks: as it should be; a reason for doubt; or nobody knows."""

STATES = {FITS: "fits the data", DEPARTS: "departs from the data", CONTRADICTS: "contradicted by the data"}
"""What the check of the mechanism came to."""

NOT_TESTED = "not tested"

DECISIONS = ("publish", "undecided", "revise", "stop")


def footing(summary: Mapping[str, Any], decision: str | None = None) -> list[Fact]:
    """Return what the claims of an audit rest on: what was looked at, how it came out, and the section with the reasons."""
    facts = [mechanism(summary), probabilities(summary)]
    if decision is not None:
        tone = FINE if decision == "publish" else DOUBT
        facts.insert(0, Fact("Decision", decision, "By the policy check: see review.html.", tone, "verdict"))
    suspect, clashes, held = summary["suspect"]["areas"], summary["contradictions"], sum(summary["held_back"].values())
    faults = [several(clashes, "inconsistency", "inconsistencies")] if clashes else []
    faults += [several(suspect, "area with suspect data", "areas with suspect data")] if suspect else []
    if faults:
        facts.append(Fact("Data", "faults found", f"{listed(faults)}; set apart.", DOUBT, "faults"))
    if held:
        facts.append(Fact("Held back", several(held, "claim"), "Not listed, and no sign of safety.", DOUBT, "held"))
    return facts


def decision_of(folder: AuditFolder) -> str | None:
    """Return the decision of the review that an audit belongs to; None where there is none."""
    path = folder.path.resolve().parent / REVIEW
    if folder.path.resolve().name != REVIEWED or not path.is_file():
        return None
    try:
        decision = plain_json(path)["decision"]
    except (OSError, ValueError, LookupError, TypeError):
        return None  # damaged, or none of ours: the audit stands without it
    return decision if decision in DECISIONS else None


def mechanism(summary: Mapping[str, Any]) -> Fact:
    """Tell in words whether the data fit how they are thought to have been published."""
    check = summary.get("check")
    rounded = all(name.startswith(("rounding:", "exact")) for name in summary["mechanisms"])
    noun = "rounding" if rounded else "mechanism"
    if check is None or check["verdict"] == UNTESTED:
        return Fact(noun.capitalize(), NOT_TESTED, f"A wrong {noun} would make claims wrong.", UNKNOWN, "check")
    how, verdict = f"{known_by(check)} {noun}", check["verdict"]
    what = how.capitalize()
    if verdict == FITS:
        return Fact(what, STATES[FITS], f"The data fit the {how}.", FINE, "check")
    if verdict == DEPARTS:
        why = "keys explain it." if keys_explain(check["families"]) else "probabilities may be off."
        return Fact(what, STATES[DEPARTS], f"The data depart from the {how}: {why}", DOUBT, "check")
    impossible = max(
        (family.get("impossible", 0) for family in check["families"] if family["verdict"] == CONTRADICTS), default=0
    )
    some = f"at least {impossible:,}" if impossible > 1 else "some"
    said = f"The data contradict the {how}: {some} published figures cannot come from it."
    return Fact(what, STATES[CONTRADICTS], said, DOUBT, "check")


def probabilities(summary: Mapping[str, Any]) -> Fact:
    """Say how probabilities did when published counts were hidden and predicted."""
    what, checked = "Probabilities", summary.get("selfcheck")
    if not checked:
        return Fact(what, NOT_TESTED, "No prior was fitted that could have been checked.", UNKNOWN, "selfcheck")
    failed = sum(table["verdict"] == "failed" for table in checked["tables"])
    said = selfcheck.in_a_clause(summary)
    if failed:
        state = f"failed in {several(failed, 'table')}"
        return Fact(what, state, f"{said or selfcheck.UNSURE} Likely claims there are withheld.", DOUBT, "selfcheck")
    if not said:  # a check that had nothing to look at has not been passed
        return Fact(what, "nothing to check", selfcheck.UNSURE, UNKNOWN, "selfcheck")
    return Fact(what, "self-check passed", said, FINE, "selfcheck")


# -- the first page ---------------------------------------------------------------------------------------------------


MOST_STEPS = 4
"""Steps of a proof that can be told in two lines."""

NAMED = 4
"""Cells of the arithmetic that are named."""


def picture(summary: Mapping[str, Any]) -> Chart:
    """Return the picture of 10,000 counts, its title, and what its colours mean."""
    zeros = summary["sensitive_claims"]["by_value"]["0"]["likely"]
    claims = sum(summary[kind] for kind in CLAIMS)
    whole = max(summary["cells_published"], claims)
    shares = [
        Share("proved", "proved", summary["proved"]),
        Share("conditional", "conditional", summary["conditional"]),
        Share("likely, and not 0", "likely", summary["likely"] - zeros),
        Share("likely 0", "likely zero", zeros),
        Share("open: nothing is claimed", "open", whole - claims),
    ]
    rows = [(part, per_10_000(part.number, whole)) for part in shares]
    said = "; ".join(f"{part.name}: {many}" for part, many in rows)
    drawn = waffle(shares, whole, f"10,000 squares for the published counts. {said}")
    key = [
        (part.kind, part.name, many, "" if part.kind == "open" else f"{part.number:,} in all")
        for part, many in rows
        if part.number
    ]
    return Chart(drawn, _picture_title(summary, whole), key=key, style="of")


def _picture_title(summary: Mapping[str, Any], whole: int) -> str:
    """Say how many counts are known: proved and inferred are different things, and are named apart."""
    ends = ("can be proved", "proved on an assumption", f"inferred at {share(summary['threshold'])} or more")
    said = [f"{per_10_000(summary[kind], whole)} {end}" for kind, end in zip(CLAIMS, ends, strict=True) if summary[kind]]
    return f"Of 10,000 published counts, {listed(said) if said else 'none is proved or likely'}"


def to_quote(summary: Mapping[str, Any], title: str) -> str:
    """Return a sentence for print: what was found, under which conditions, and what it is not."""
    proved, conditional, likely = (summary[kind] for kind in CLAIMS)
    said = [f"{proved:,} can be proved from the published tables alone" if proved else "none can be proved outright"]
    if conditional:
        said.append(f"{conditional:,} can be proved on an assumption that the agency does not guarantee")
    if likely:
        said.append(f"{likely:,} can be inferred by a model that gives one value at least {share(summary['threshold'])}")
    return (
        f"Of {several(summary['cells_published'], 'published count')} in {title}, {listed(said)}, provided that the sums "
        "hold and counts were published as documented. These are inferences about cells of tables, not official counts, and "
        f"not about persons (unround {summary['unround']})."
    )


# -- one example ------------------------------------------------------------------------------------------------------


def example(strong: Mapping[str, Sequence[Strong]]) -> list[Part]:
    """Return the finding that matters most, of the strongest of each kind, among those that two lines explain."""
    for kind, findings in strong.items():
        for finding in findings:
            if kind == "likely" or (len(finding.steps) <= MOST_STEPS and not finding.more_steps):
                means, lines = _likely(finding) if kind == "likely" else _certain(finding)
                row = finding.finding
                published = "nothing was published" if row["published"] is None else f"{row['published']:,} was published"
                sentence = f"{finding.what} in {finding.area or finding.code}: {published}; {means}."
                letters = Text(_letters(finding, lines), "small quiet")
                return [Text(sentence, "example"), Bullets(lines, style="arithmetic"), letters]
    return []


def _certain(strong: Strong) -> tuple[str, Sequence[str]]:
    """Say what a count must be, and the proof in two lines."""
    row, (*first, last) = strong.finding, strong.steps
    on = f", given {row['assumptions']}" if row["kind"] == "conditional" and row["assumptions"] else ""
    lines = (" ".join(first[:-1]), f"{first[-1]} {last}") if len(first) > 1 else strong.steps
    return f"it must be {row['value']:,}{on}", lines


def _likely(strong: Strong) -> tuple[str, Sequence[str]]:
    """Say what a count most likely is, and how probable it becomes."""
    row, grown = strong.finding, dict(strong.growth)
    alone = next((grown[name] for name in grown if "fitted to the release" in name), next(iter(grown.values()), None))
    lines = list(strong.steps[:1])
    if alone is not None:
        lines.append(
            f"From its published value alone, {row['value']:,} has a probability of {percent(alone)}; with everything else "
            f"that was published of the area, {at_least(row)}."
        )
    return f"most likely it is {row['value']:,} ({at_least(row)})", lines


def _letters(strong: Strong, lines: Sequence[str]) -> str:
    """Say what the letters in some lines stand for."""
    used = set(re.findall(r"\b[A-Z]+\b", " ".join(lines)))
    cells = [f"{letter} is {what}" for letter, what, _ in strong.cells if letter in used]
    more = f"; the others are {several(len(cells) - NAMED, 'more count')}" if len(cells) > NAMED else ""
    return f"{'; '.join(cells[:NAMED])}{more}."


# -- what to do next ---------------------------------------------------------------------------------------------------


def next_steps(summary: Mapping[str, Any], *, public: bool) -> list[str]:
    """Say what to do now, the most urgent first."""
    claims, small = sum(summary[kind] for kind in CLAIMS), sum(summary["sensitive_claims"]["by_value"]["1-2"].values())
    steps = []
    check = summary.get("check")
    if check is not None and not _explained(check):
        steps.append("Find out why the data do not fit the mechanism (see Assumptions): until then, doubt probabilities.")
    if summary["contradictions"] or summary["suspect"]["areas"]:
        steps.append("Have the faults in the data corrected: contradictions.csv and suspects.csv list them.")
    if claims and not public:
        first = ", counts of one or two first" if small else ""
        steps.append(f"Go through the findings (findings.csv, or “unround serve”){first}.")
    if claims:
        steps.append("Try safer ways of publishing: “unround review” for a draft, “unround compare” for a release.")
    else:
        steps.append("Ask what other tables would add (“unround review --more”): this audit says nothing about them.")
    return steps


def _explained(check: Mapping[str, Any]) -> bool:
    """Whether the data fit the mechanism, or depart from it in a way that probabilities account for."""
    return check["verdict"] == FITS or (check["verdict"] == DEPARTS and keys_explain(check["families"]))


# -- keys: random numbers that add up as counts do --------------------------------------------------------------------


def key_sentences(summary: Mapping[str, Any]) -> list[str]:
    """Say which tables have keys, and what follows; nothing where none have."""
    keys = summary.get("keys") or {"tables": (), "repeats": ()}
    known = sum(bool(repeat["constants"]) for repeat in keys["repeats"])
    once, withheld, said = len(keys["repeats"]) - known, keys.get("columns_withheld", 0), []
    if keys["tables"]:
        said.append(
            f"In {several(len(keys['tables']), 'table')}, the random number of a total is the sum of its parts' and a "
            "constant, as if every record had a key; probabilities account for it, and proofs do not depend on it."
        )
    if known:
        said.append(
            f"{several(known, 'count that appears', 'counts that appear')} in several tables "
            f"{'is' if known == 1 else 'are'} rounded with one random number, seen from another constant in each table: "
            "together the published figures say more than independent ones would."
        )
    if once:
        said.append(
            f"How {several(once, 'count that appears', 'counts that appear')} in several tables "
            f"{'was' if once == 1 else 'were'} rounded is not known: probabilities allow for any constants."
        )
    if withheld:
        said.append(
            f"In {several(withheld, 'column')}, the same count appears in several tables whose sums cannot all be used at "
            "once: probabilities would be too high, and likely claims there are withheld. That is no sign of safety."
        )
    if any(name.startswith("weighted:") for name in summary.get("mechanisms", ())):
        said.append(
            "Some tables show weighted estimates, not whole numbers. An estimate published as 15 lies anywhere between 10 "
            "and 20; it has bounds, but no whole number is claimed."
        )
    return said


def key_rows(summary: Mapping[str, Any]) -> list[list[str]]:
    """Return the constants: of every table its name, the constant, and what tells it."""
    return [
        [
            table["table"] or UNGROUPED,
            f"{table['constant']:.3f}" + (f" ± {table['error']:.3f}" if table["error"] else ""),
            table["why"],
        ]
        for table in (summary.get("keys") or {"tables": ()})["tables"]
    ]


# -- areas within areas -----------------------------------------------------------------------------------------------


def is_nested(summary: Mapping[str, Any]) -> bool:
    """Return whether areas within areas were found."""
    return bool(summary.get("linked")) and bool(summary["linked"]["levels"])


def nesting_sentences(summary: Mapping[str, Any]) -> list[str]:
    """Say how areas were linked, and what came of it."""
    linked = summary["linked"]
    families = sum(level["parents"] for level in linked["levels"])
    used = sum(level["used"] for level in linked["levels"])
    if not families:
        return ["The file places areas within other areas, but no area was found to be the sum of its parts: see below."]
    said = [
        f"{several(families, 'area is', 'areas are')} the sum of other areas in this release, so the counts of each family "
        f"must agree. {several(used, 'family is', 'families are')} inferred together."
    ]
    if families > used:
        left = families - used
        said.append(
            f"{several(left, 'family is', 'families are')} not used, not even for bounds: too many counts would have to be "
            "looked at together. What the sums of these families give away is not known."
        )
    for why, number in linked["families_not_linked"].items():
        said.append(f"{several(number, 'family is', 'families are')} linked for bounds and proofs only: {why}.")
    need = {name: linked["claims_that_need_other_areas"][name] for name in CLAIMS}
    kinds = listed([f"{number:,} {name}" for name, number in need.items() if number])
    said.append(f"Claims that need other areas: {kinds or 'none'}.")
    clashes = summary["contradictions_by_kind"].get("areas", 0)
    if clashes:
        cannot = several(clashes, "area cannot be the sum of its parts", "areas cannot be the sum of their parts")
        said.append(f"{cannot}: listed as inconsistencies, and not linked.")
    return said
