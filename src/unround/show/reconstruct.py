"""How much of each person could be reconstructed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from unround.show import charts
from unround.show.charts import WIDE, Picture, Scale, ticks
from unround.show.page import page
from unround.show.parts import QUIET, Bullets, Chart, Columns, Part, Section, Table, Text, tabulated, titled
from unround.show.words import listed, percent
from unround.shown import plain

if TYPE_CHECKING:
    from unround.reconstruction import Reconstruction

GUESSES: Mapping[str, tuple[str, str]] = {
    "national": ("national baseline", "s5"),
    "totals": ("area's own totals", "s4"),
    "tables": ("reconstruction", "s1"),
    "unrounded": ("unrounded tables", "s2"),
}
"""What the four guesses are called, and the colour class of each."""

GROUPS: Mapping[str, str] = {
    "everyone": "everyone",
    "alone": "alone in the area with their age and sex",
    "unlike": "unlike the area's most common kind",
}


LABEL = "Shares of records"
"""What its tables are called for those who listen."""

ENOUGH = 20
"""Records by which a confidence can be judged."""


# -- tables -----------------------------------------------------------------------------------------------------------


def _shown(agreement: Mapping[str, Any] | None) -> str:
    """Return a share with twice its standard error."""
    if agreement is None:
        return "–"
    if agreement["standard_error"] is None:
        return percent(agreement["share"])
    return f"{percent(agreement['share'])} ± {200 * agreement['standard_error']:.1f}"


def _agreement_table(measured: Mapping[str, Any], measure: str) -> Table:
    """Return the share of records found, by group, in four columns."""
    groups = [group for group in GROUPS if measured["groups"][group] and group in measured["guesses"]["tables"][measure]]
    rows = [
        [
            GROUPS[group],
            f"{measured['groups'][group]:,}",
            *(_shown(measured["guesses"][guess][measure][group]) for guess in GUESSES),
        ]
        for group in groups
    ]
    return Table(["", "people", *(name for name, _ in GUESSES.values())], rows, LABEL)


def _precision(band: Mapping[str, Any]) -> str:
    return "–" if band["precision"] is None else percent(band["precision"])


CONFIDENCES: Columns = [
    ("confidence", lambda pair: f"{pair[0]['at_least']:.0%} or more"),
    ("claims", lambda pair: f"{pair[0]['claims']:,}"),
    ("right", lambda pair: _precision(pair[0])),
    ("of all people", lambda pair: percent(pair[0]["recall"])),
    ("baseline: claims", lambda pair: f"{pair[1]['claims']:,}"),
    ("right", lambda pair: _precision(pair[1])),
]
"""How many records are claimed at each confidence, and how many of them are right; beside the baseline's."""


def _compared(compared: Mapping[str, Any] | None) -> Iterator[Part]:
    """Say what other ways of publishing the same tables would give away, and what leaving out each table would save."""
    heads = ("records found", "age within one year", "alone", "unlike")
    if not compared:
        return
    sampled = f"In {compared['areas']:,} areas of a sample"
    if compared["ways"]:
        rows = [["as given", _shown(compared["as_published"])], ["no table", _shown(compared["national"])]]
        table = Table(("published", *heads), [*rows, *map(_row, compared["ways"])], LABEL)
        yield Section("What other ways of publishing give away", [Text(f"{sampled}; the same tables.", QUIET), table])
    if compared["without"]:
        ordered = sorted(compared["without"], key=lambda way: way["agreement"]["everyone"]["share"])
        said = Text(f"{sampled}; the table that gives most away comes first.", QUIET)
        yield Section("Without one of the tables", [said, Table(("left out", *heads), list(map(_row, ordered)), LABEL)])


def _row(way: Mapping[str, Any]) -> list[str]:
    agreement, close = way["agreement"], way["within_one_year"]["everyone"]
    return [way["name"], *map(_shown, (agreement["everyone"], close, agreement["alone"], agreement["unlike"]))]


# -- sentences --------------------------------------------------------------------------------------------------------


def lead(measured: Mapping[str, Any]) -> str:
    """Say what was looked at."""
    tables = measured["tables"]
    columns = sum(table["columns"] for table in tables)
    number = f"{len(tables)} tables" if len(tables) > 1 else "1 table"
    verb = "are" if len(tables) > 1 else "is"
    whom = "simulated people" if measured["simulated"] else "people"
    return (
        f"{measured['people']:,} {whom} in {measured['areas']:,} areas, of whom {number} with {columns:,} counts per area "
        f"{verb} published ({', '.join(measured['mechanisms'])}). A record is {listed(list(measured['attributes']))}."
    )


def sentences(measured: Mapping[str, Any]) -> list[str]:
    """Say what was found."""
    guesses = measured["guesses"]
    shares = {guess: guesses[guess]["agreement"]["everyone"]["share"] for guess in GUESSES}
    gain = measured["gain"]["national"]["everyone"]
    said = [
        f"From the tables, {percent(shares['tables'])} of all records are reconstructed exactly. Someone who knows the "
        f"country but uses no table of the area finds {percent(shares['national'])}; from the area's own totals alone, "
        f"{percent(shares['totals'])}; from the same tables unrounded, {percent(shares['unrounded'])}."
    ]
    error = gain["standard_error"]
    if error is not None and abs(gain["share"]) < 2 * error:
        said.append("The tables add nothing to the baseline that could be told from chance.")
    elif gain["share"] < 0:
        said.append("The tables mislead: they find fewer records than the baseline.")
    said += _confident(guesses["tables"]["confidence"])
    return said + _claims(measured["claims"])


def _confident(bands: Sequence[Mapping[str, Any]]) -> list[str]:
    # The highest confidence at which there are enough records to judge it by.
    sure = [band for band in bands if band["claims"] >= ENOUGH] or [band for band in bands if band["claims"]]
    if not sure:
        return ["No record is reconstructed with a confidence of 50% or more."]
    last = sure[-1]
    stated = f"stated with a confidence of {last['at_least']:.0%} or more"
    if last["claims"] == 1:
        return [f"One record is {stated}; it is {'right' if last['precision'] else 'wrong'}."]
    return [f"{last['claims']:,} records are {stated}; {percent(last['precision'])} of these are right."]


def _claims(claims: Mapping[str, Any] | None) -> list[str]:
    if claims is None:
        return []
    proved = claims["at_least"] + claims["exactly"]
    areas = f"{claims['areas']:,} areas of a sample"
    what = listed(claims["attributes"])
    if proved:
        right = "all of them are true" if claims["true"] == proved else f"{proved - claims['true']:,} of them are false"
        said = [
            f"In {areas}, {proved:,} claims that one, two or three persons (or more) of a given {what} live there hold "
            f"in every world that fits the tables ({claims['exactly']:,} of them say exactly how many); {right}."
        ]
        asked, done = claims["written_out"], claims["certified"]
        of_whom = "of them" if asked == proved else f"of {asked:,} of them for which that was tried"
        others = "" if asked == done else "; the other arguments are too long to be written out"
        written = f"The proofs of {'all' if asked == done else f'{done:,}'} {of_whom} are written out"
        said.append(f"{written}, and accepted by an independent checker{others}.")
    else:
        said = [
            f"In {areas}, bounds do not prove that anybody has any one combination of {what}. That is no proof of safety."
        ]
    if claims["contradictory"]:
        said.append(f"In {claims['contradictory']:,} of these areas no world fits all tables.")
    return said


def footnotes(measured: Mapping[str, Any]) -> list[str]:
    """Say how to read it, and what was left out of account."""
    said = [
        "National baseline: the most probable records by a law learnt from people of other areas, as from a public sample "
        "of records. Area's own totals: the same, given the counts about one attribute alone. Reconstruction: given all "
        "published counts. Unrounded tables: given the true counts. Every guess has as many records as people live in "
        "the area, the most confident ones.",
        "For people who are alone with their age and sex, these two are known and the rest is guessed, once per person.",
        f"±: two standard errors, over areas and over {measured['seeds']} seeds."
        + (f" Kind: {listed(measured['kind'])}." if measured["kind"] else ""),
        "That a record is found does not say whose it is, and a record that many people share is found without any table: "
        "what counts is the gain over the baseline.",
    ]
    if not measured["law_from_other_areas"]:
        said.append("There is no other area to learn from, so that all records were taken as equally likely beforehand.")
    if not measured["exact_people"]:
        said.append("How many people live in an area is not published exactly, and was estimated.")
    outside = measured["guesses"]["tables"]["steps_outside"], measured["guesses"]["unrounded"]["steps_outside"]
    said.append(
        f"Worlds do not fit perfectly: all counts of an area together are outside of their windows by {outside[0]:.1f} on "
        f"average, those of the unrounded tables by {outside[1]:.1f}."
    )
    if not measured["simulated"]:
        said.append(
            "`unround simulate` did not draw these records: aggregates alone are written, and no reconstructed person."
        )
    return [*said, *(measured["compared"] or {"notes": []})["notes"], *measured["notes"]]


# -- the page ---------------------------------------------------------------------------------------------------------


def four_guesses(measured: Mapping[str, Any], measure: str) -> Markup:
    """Draw the shares of records found by the four guesses, as bars, group by group."""
    groups = [group for group in GROUPS if measured["groups"][group] and group in measured["guesses"]["tables"][measure]]
    shares = {group: {guess: measured["guesses"][guess][measure][group] for guess in GUESSES} for group in groups}
    every = [agreed for by_guess in shares.values() for agreed in by_guess.values()]
    largest = max(agreed["share"] + 2 * (agreed["standard_error"] or 0) for agreed in every)
    said = "; ".join(
        f"{GROUPS[group]}: "
        + ", ".join(f"{GUESSES[guess][0]} {percent(agreed['share'])}" for guess, agreed in by_guess.items())
        for group, by_guess in shares.items()
    )
    left, bar, between = 126.0, 20.0, 44.0
    height = len(groups) * (4 * bar + between) - 8
    drawn = Picture(WIDE, height + 40, f"Share of records found. {said}")
    scale = Scale(0, largest or 1, left, WIDE - 58)
    for tick in ticks(0, largest or 1):
        for number in range(len(groups)):
            top = number * (4 * bar + between) + 22
            drawn.line(scale(tick), top, scale(tick), top + 4 * bar, "grid")
        drawn.text(scale(tick), height + 15, f"{tick:.0%}", "soft", "middle")
    drawn.text(WIDE, height + 34, "share of records found →", "soft", "end")
    for number, group in enumerate(groups):
        top = number * (4 * bar + between)
        drawn.text(0, top + 14, f"{GROUPS[group].capitalize()} ({measured['groups'][group]:,} people)", "title")
        for place, (guess, agreed) in enumerate(shares[group].items()):
            name, kind = GUESSES[guess]
            y = top + 22 + place * bar
            error = 2 * (agreed["standard_error"] or 0)
            drawn.text(left - 8, y + 13, name, anchor="end")
            drawn.rect(left, y + 2, scale(agreed["share"]) - left, bar - 5, f"bar {kind}", f"{name}: {_shown(agreed)}")
            end = scale(agreed["share"] + error)
            drawn.line(scale(max(0.0, agreed["share"] - error)), y + bar / 2 - 0.5, end, y + bar / 2 - 0.5, "expected")
            drawn.text(end + 6, y + 13, percent(agreed["share"]))
    return drawn.done()


@titled("How much of each person could be reconstructed", "Reconstruction")
def reconstruction(result: Reconstruction | Mapping[str, Any]) -> Iterator[Part]:
    """Give the four guesses, what confidence is worth, and what other ways of publishing would give away."""
    measured = plain(result)
    yield Text(lead(measured), "lead")
    yield Section("Four guesses", [Bullets(sentences(measured))])
    exact = Chart(four_guesses(measured, "agreement"), "", "All attributes right. Lines: two standard errors.")
    yield Section("Records found exactly", [exact, _agreement_table(measured, "agreement")])
    if measured["has_ages"]:
        note = "All other attributes right, and the age at most one year off."
        near = Chart(four_guesses(measured, "within_one_year"), "", note)
        yield Section("Records found but for a year of age", [near, _agreement_table(measured, "within_one_year")])
    bands = measured["guesses"]["tables"]["calibration"]
    drawn = charts.reliability({"": ("s1", bands)}, "confidence stated", "right")
    pairs = zip(*(measured["guesses"][guess]["confidence"] for guess in ("tables", "national")), strict=True)
    confidences = tabulated(pairs, CONFIDENCES, LABEL)
    caption = "Of records stated at this confidence, this share is right"
    yield Section("By confidence", [Text(CONFIDENCE, QUIET), Chart(drawn, caption), confidences])
    yield from _compared(measured["compared"])
    yield Section("How to read it", [Bullets(footnotes(measured), QUIET)])


CONFIDENCE = (
    "The confidence in a record is the share of worlds, drawn from those that fit the tables, that hold it, as worlds drawn "
    "anew confirm it. On the diagonal, records are right as often as stated."
)


def write_page(folder: Path, measured: Mapping[str, Any]) -> None:
    """Write the page into a folder."""
    (folder / "reconstruct.html").write_text(page(reconstruction(measured)), encoding="utf-8")
