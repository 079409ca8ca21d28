"""Every sentence about an audit: what it rests on, what was found and what was not used, an example, and what to do next.

`footing` is the strip on top of the report and of every page of the explorer: each entry names a check, says how it came out
in a word or two and a sentence, and leads to the reasons: `anchor` is the name of the section that has them, in the report
and on the explorer's page "About".
"""

from __future__ import annotations

import re
from collections import Counter
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
from unround.show.words import (
    CLAIMS,
    INCONSISTENCIES,
    NO_INCONSISTENCIES,
    NOT_GUARANTEED,
    UNGROUPED,
    at_least,
    listed,
    percent,
    proviso,
    several,
    share,
    spelled,
)
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
    check = summary["check"]
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
    impossible = max((family["impossible"] for family in check["families"] if family["verdict"] == CONTRADICTS), default=0)
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


# -- what was found ----------------------------------------------------------------------------------------------------


def verdict(audit: Mapping[str, Any]) -> tuple[str, str]:
    """Say in two sentences what an audit found."""
    sure = share(audit["threshold"])
    where = f"From {several(audit['cells_published'], 'published count')} in {several(audit['areas'], 'area')}"
    proved, conditional, likely = (audit[kind] for kind in CLAIMS)
    claims = proved + conditional + likely
    if not claims and audit["areas_not_weighed"]:
        return (
            f"{where}, no count can be proved; which counts are likely could not be computed everywhere.",
            f"In {several(audit['areas_not_weighed'], 'area')} the noise leaves too many counts possible to use all sums "
            "at once: that is no sign of safety.",
        )
    if not claims:
        return (
            f"{where}, no count can be proved, and none can be inferred at {sure} or more.",
            "This holds under the assumptions stated here; it does not say what other knowledge would reveal.",
        )
    parts = [f"{several(proved, 'count')} can be proved" if proved else "no count can be proved outright"]
    if conditional:
        parts.append(f"{conditional:,} {'more ' if proved else ''}can be proved {NOT_GUARANTEED}")
    none = f"{likely:,}" if likely else "none"
    parts.append(f"{none} {'more ' if claims > likely else ''}can be inferred at {sure} or more")
    by_value = audit["sensitive_claims"]["by_value"]
    small, zero = sum(by_value["1-2"].values()), sum(by_value["0"].values())
    if claims == 1:
        second = f"It is {'a count of one or two' if small else 'a zero' if zero else 'a count of three or more'}."
    elif zero == claims:
        second = "All of them are zeros."
    else:
        zeros = f"{zero:,} {'is a zero' if zero == 1 else 'are zeros'}" if zero else "none is a zero"
        few = f"{small:,} of these {claims:,} {'is a count' if small == 1 else 'are counts'}" if small else ""
        second = f"{few or f'None of these {claims:,} is a count'} of one or two, and {zeros}."
    return f"{where}, {listed(parts)}.", second


FEW_MISFITS = 0.005
"""A share of counts that do not fit their mechanism, up to which they may be slips."""


def headline(audit: Mapping[str, Any]) -> str:
    """Tell whether a release gives counts away; what contradicts or is not settled comes first: nothing may reassure."""
    said, open_ = _in_a_sentence(audit), audit["unsettled"]
    certain = audit["proved"] + audit["conditional"]
    contradicted = bool(open_) and open_[0]["what"] == "mechanism" and not certain
    if contradicted or audit["contradictions_by_kind"].get("cell", 0) > FEW_MISFITS * audit["cells_published"]:
        return f"This audit cannot be relied on: {open_[0]['why']}. {said}"
    if open_ and not certain:
        why = f"and {several(len(open_) - 1, 'more matter')}" if len(open_) > 1 else open_[0]["why"]
        return f"This is not settled: {open_[0]['what']}, {why}. {said}"
    return said


FEW_UNSETTLED = 5
"""Matters that are spelt out where not all of them can be."""


def settling(audit: Mapping[str, Any]) -> list[str]:
    """Return what is not settled, and what would settle it, a sentence each; of many the first, and how many more."""
    matters = audit["unsettled"]
    ways = [matter["settle"] for matter in matters[:FEW_UNSETTLED]]
    alike = len(ways) > 1 and len(set(ways)) == 1  # then it is said once
    sentences = [
        f"Not settled: {matter['what']}: {matter['why']}." + (f" To settle it: {way}." if way and not alike else "")
        for matter, way in zip(matters, ways, strict=False)
    ]
    sentences += [f"To settle these: {ways[0]}."] if alike and ways[0] else []
    more = len(matters) - FEW_UNSETTLED
    return [*sentences, f"Not settled: {several(more, 'more matter')}, listed in summary.json."] if more > 0 else sentences


def _in_a_sentence(audit: Mapping[str, Any]) -> str:
    """Say in one sentence whether a release gives counts away, as far as the audit can see."""
    sure, by_value = share(audit["threshold"]), audit["sensitive_claims"]["by_value"]
    proved, conditional, likely = (audit[kind] for kind in CLAIMS)

    def small(*kinds: str) -> str:
        number = sum(by_value["1-2"][kind] for kind in kinds)
        return f", {number:,} of them of one or two" if number else ""

    few = by_value["1-2"]["likely"]
    also = f"; {several(few, 'more count')} of one or two can be inferred at {sure} or more" if few else ""
    if proved:
        return f"This release gives counts away: {several(proved, 'count')} can be proved{small('proved')}{also}."
    if conditional:
        inferred = any(condition["condition"].startswith("if ") for condition in audit["conditions"]["most_claims"])
        on = "on conditions that nobody documents" if inferred else "if its unrounded counts are exact"
        return (
            f"This release gives counts away, {on}: {several(conditional, 'count')} can then be proved"
            f"{small('conditional')}{also}."
        )
    more = likely - by_value["0"]["likely"]
    if few:
        return (
            f"This release gives some counts away: none can be proved, but {several(few, 'count')} of one or two can be "
            f"inferred at {sure} or more."
        )
    if likely:
        what = f"{several(more, 'count')} of three or more" if more else several(likely, "zero")
        return f"This release gives little away: no count can be proved; {what} can be inferred at {sure} or more."
    if audit["areas_not_weighed"]:
        return "No count can be proved; what is likely could not be computed everywhere."
    nothing = f"no count can be proved, and none inferred at {sure} or more."
    if audit["unsettled"]:
        return f"That this audit lists nothing is no sign of safety: {nothing}"
    if sum(audit["held_back"].values()):
        return f"This audit lists nothing, but holds claims back, which is no sign of safety: {nothing}"
    return f"This release gives nothing away that this audit can see: {nothing}"


MOST_CONDITIONS = 5
"""Conditions that a summary names; the findings name all."""


def conditions(audit: Mapping[str, Any]) -> list[str]:
    """Return what conditional claims rest on, with how many do, and how to make proofs of them."""
    named = []
    for condition in audit["conditions"]["most_claims"][:MOST_CONDITIONS]:
        hold = several(condition["claims"], "conditional count holds", "conditional counts hold")
        named.append(f"{hold} only {'' if condition['condition'].startswith('if ') else 'with '}{condition['condition']}.")
    more = audit["conditions"]["number"] - len(named)
    if more > 0:
        named.append(f"{several(more, 'more condition')}: the column assumptions of findings.csv names them.")
    return named


def not_listed(audit: Mapping[str, Any]) -> list[str]:
    """Say which counts are not listed although they are likely in another sense: caution is not safety."""
    sure, priors = share(audit["threshold"]), len(audit["priors"]["variants"])
    because, sentences = audit["held_back_because"], list[str]()  # what the self-check withholds is said with it
    if doubtful := audit["more_likely_at_highest_found"]:
        sentences.append(
            f"At least {several(doubtful, 'more count reaches', 'more counts reach')} {sure} under one of the "
            f"{spelled(priors)} priors, but not under all of them."
        )
    for kind, held in because["mechanism"].items():
        if held:
            sentences.append(
                f"{several(held, f'{kind} claim is', f'{kind} claims are')} held back, because the published figures "
                "contradict their mechanism: too many such claims are wrong then. --doubtful lists them."
            )
    if suspect := sum(because["suspect"].values()):
        held_back = several(suspect, "claim is", "claims are")
        sentences.append(f"{held_back} held back, because the data of the area are suspect: suspects.csv lists them.")
    if odd := because["odd"]["likely"]:
        sentences.append(
            f"{several(odd, 'likely claim is', 'likely claims are')} held back, because the share of men in the area is "
            "far from the usual one, as in barracks and homes: what is likely elsewhere need not be so there."
        )
    if zeros := audit["zeros_not_listed"]:
        them = "it is" if zeros == 1 else "they are"
        sentences.append(f"{zeros_unlisted(zeros)}; {them} counted here, but listed only with --zeros.")
    if alone := audit["likely_without_sums"]:
        sentences.append(
            f"{several(alone, 'count is', 'counts are')} likely from {'its' if alone == 1 else 'their'} published value "
            f"alone; sums add little. {'It is' if alone == 1 else 'They are'} not listed."
        )
    return sentences


def zeros_unlisted(zeros: int) -> str:
    """Say how many published zeros are likely to be true ones."""
    return f"{several(zeros, 'count that was published as 0 is', 'counts that were published as 0 are')} likely to be 0"


def likely_means(audit: Mapping[str, Any]) -> str:
    """Say in a phrase what a likely count of an audit is."""
    priors = len(audit["priors"]["variants"])
    under = f" under all {spelled(priors)} priors" if priors > 1 else ""
    return f"a model estimate: one value has a probability of {share(audit['threshold'])} or more{under}"


def inconsistencies(audit: Mapping[str, Any]) -> str:
    """Say in a sentence how many inconsistencies there are, by kind."""
    if not audit["contradictions"]:
        return NO_INCONSISTENCIES
    kinds = listed([several(many, *INCONSISTENCIES[kind]) for kind, many in audit["contradictions_by_kind"].items()])
    return (
        f"{several(audit['contradictions'], 'inconsistency', 'inconsistencies')} in the published figures ({kinds}); "
        "everything else was audited."
    )


def suspected(summary: Mapping[str, Any]) -> str:
    """Say how many areas have figures that are possible, but absurd."""
    areas = summary["suspect"]["areas"]
    return (
        f"In {several(areas, 'area')}, counts add up so badly that rounding does not explain it: by chance, any such area "
        f"would appear in fewer than {share(summary['suspect']['level'])} of releases. "
        f"{'It makes' if areas == 1 else 'They make'} no likely and no conditional claims."
    )


def against_truth(score: Mapping[str, Any]) -> str:
    """Say in a line how claims compare with the truth."""
    said = []
    for kind in CLAIMS:
        checked, wrong = score["checked"][kind], score["wrong"][kind]
        how_many = f"{wrong:,} wrong ({percent(wrong / checked)})" if wrong else "none wrong"
        said += [f"{kind}: {checked:,} checked, {how_many}"] if checked else []
    failed = f" An assumption failed: {score['assumption_failed']}." if score["assumption_failed"] else ""
    return f"Compared with the truth: {'; '.join(said) or 'nothing to compare'}.{failed}"


def not_used(summary: Mapping[str, Any]) -> list[str]:
    """Say which sums told nothing, and where there were too many possibilities to use them."""
    sentences = []
    added, unweighed = summary["structure"]["sums_added_up_afterwards"], summary["areas_not_weighed"]
    if added:
        sentences.append(
            f"{several(added, 'sum adds', 'sums add')} up exactly in all areas: totals were added up after rounding, or all "
            "counts were rounded together. Such totals add no information to their parts, and their sums are not used."
        )
    singly = summary["cells_judged_singly"]
    if singly and not unweighed:
        sentences.append(
            f"{several(singly, 'count is', 'counts are')} cut off from a sum, mostly by counts that are hidden. What sums "
            "make likely there was not computed: that is no sign of safety."
        )
    apart = summary["areas_where_chains_disagree"]
    if apart:
        sentences.append(
            f"In {several(apart, 'area')} the Markov chains for multi-way tables do not agree. What sums make likely "
            "there is not known: that is no sign of safety."
        )
    if unweighed:
        sentences.append(
            f"In {unweighed:,} of {summary['areas']:,} areas the noise leaves too many counts possible to use all sums at "
            "once. What sums make likely there was not computed: that is no sign of safety."
        )
    return sentences


def tables_in_words(summary: Mapping[str, Any]) -> list[str]:
    """Say how multi-way tables got their probabilities; nothing where there are none."""
    tables, estimated = summary["structure"]["multiway_tables"], summary["estimated"]
    if not tables or not estimated["counts"]:
        return []
    shapes = " and ".join(sorted({" × ".join(map(str, table["shape"])) for table in tables}))
    return [
        f"All sums of the multi-way table ({shapes}) are used for probabilities, which Markov chains over whole "
        f"tables estimate: their standard error is {estimated['mean_error_in_points']:.1f} points on average."
    ]


def figures_used(summary: Mapping[str, Any]) -> list[str]:
    """Say how many figures were used, and how many claims exist because of them; nothing where there are none."""
    used = summary["figures_used"]
    if not used:
        return []
    claims, aside = summary["claims_because_of_figures"], [figure for figure in used if not figure["in_probabilities"]]
    single = len(used) == 1
    figures = "One published figure was" if single else f"{len(used):,} published figures were"
    how = "for bounds alone" if len(aside) == len(used) else "for bounds and probabilities"
    if 0 < len(aside) < len(used):
        how += f", but {_by_kind(aside)} for bounds alone"
    more = f"{claims['conditional']:,} more counts are conditional and {claims['likely']:,} more likely"
    return [
        f"{figures} found to be computed from true counts, and used {how} (--figures off uses none). Because of "
        f"{'it' if single else 'them'}, {more}."
    ]


def _by_kind(figures: Sequence[Mapping[str, Any]]) -> str:
    """Say how many figures of each kind there are, as in “2 rates, 1 mean, and 3 medians”."""
    times = Counter(figure["kind"] for figure in figures)
    return listed([several(times[kind], kind) for kind in ("rate", "mean", "median") if times[kind]])


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
    on = proviso([row["assumptions"]]) if row["kind"] == "conditional" and row["assumptions"] else ""
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
    check, steps = summary["check"], list[str]()
    if summary["unsettled"]:
        steps.append("Settle what is open (see “Not settled”): until then, nothing here can be taken for safe.")
    if check is None or check["verdict"] == UNTESTED:
        steps.append("Make sure how counts were published: whether the data fit it could not be tested.")
    elif check["verdict"] != FITS and not (check["verdict"] == DEPARTS and keys_explain(check["families"])):
        steps.append("Find out why the data do not fit the mechanism (see Assumptions): until then, doubt probabilities.")
    files = {"contradictions.csv": summary["contradictions"], "suspects.csv": summary["suspect"]["areas"]}
    if faults := [name for name, number in files.items() if number]:
        lists = "lists" if len(faults) == 1 else "list"
        steps.append(f"Have the faults in the data corrected: {listed(faults)} {lists} them.")
    if summary["listed"]["claims"] and not public:
        first = ", counts of one or two first" if small else ""
        steps.append(f"Go through the findings (findings.csv, or “unround serve”){first}.")
    if claims:
        steps.append("Try safer ways of publishing: “unround review” for a draft, “unround compare” for a release.")
    else:
        steps.append("Ask what other tables would add (“unround review --more”): this audit says nothing about them.")
    return steps


# -- keys: random numbers that add up as counts do --------------------------------------------------------------------


def key_sentences(summary: Mapping[str, Any]) -> list[str]:
    """Say which tables have keys, and what follows; nothing where none have."""
    keys = summary["keys"]
    known = sum(bool(repeat["constants"]) for repeat in keys["repeats"])
    once, withheld, said = len(keys["repeats"]) - known, keys["columns_withheld"], []
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
    if any(name.startswith("weighted:") for name in summary["mechanisms"]):
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
        for table in summary["keys"]["tables"]
    ]


# -- areas within areas -----------------------------------------------------------------------------------------------


def is_nested(summary: Mapping[str, Any]) -> bool:
    """Return whether areas within areas were found."""
    return bool(summary["linked"]["levels"])


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
