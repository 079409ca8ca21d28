"""Drafts as hospitals, schools, police forces and statistical offices lay them out. All places and numbers are invented."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.drafts import files
from tests.drafts.corpus import DRAFTS, Draft, add, beside, people, special
from tests.drafts.files import Dialect, Layout, Sheet
from tests.drafts.tables import Axis, Hide, Percent, Table


def rows(name: str, labels: str, total: str = "", last: bool = True) -> Axis:
    """An axis of the labels between semicolons, under a total if one is named."""
    names = labels.split(";")
    return Axis(name, [(total, names)] if total else names, last)


TRUSTS = (
    "Ashgrove University Hospitals;Beacon Community Health;Cotswold Edge Trust;Dale and Fell Hospitals;Estuary Care;"
    "Fenland General;Gorse Valley Hospitals;Heathland Acute"
)
SCHOOLS = (
    "Abbey Road Primary;Brook Street Academy;Cathedral School;Downs View High;Elm Grove College;Forest Gate School;"
    "Grange Community School;Hilltop Primary;Inverness Road School;Jubilee Academy"
)
FORCES = "Avonshire;Borderland;Cleaveland;Dorsetshire;Eastmarch;Fordshire;Glenmore;Humberland;Islewater"
UNIVERSITIES = (
    "Aldwych University;University of Brackley;Camford University;Dunbar Institute;University of Elmet;"
    "Fosse University;Glossop College"
)
KREISE = "Altenau;Bergheim;Drosselfeld;Eichstätten;Finkenwerder;Grünbach;Hohenlinden;Ilmtal;Jägersruh"
CONCELHOS = "Alcanede;Beringel;Castro Novo;Degolados;Ervedal;Figueiró;Góis;Horta Nova"
GEMEENTEN = "Abbekerk;Berkhout;Colijnsplaat;Drimmelen;Eikendorp;Foxwolde;Gaanderen;Holten"


def side_by_side(name: str, kind: str, left: Table, right: Table, one: Layout, other: Layout, gap: int = 1) -> None:
    """Enter two tables that stand next to each other, with empty columns between them."""

    def write(path: Path) -> None:
        first, second = Sheet(), Sheet()
        files.place(first, left, one)
        files.place(second, right, other)
        width = max(map(len, first.rows)) + gap
        sheet = Sheet(merged=first.merged + [(a, b + width, c, d + width) for a, b, c, d in second.merged])
        for at in range(max(len(first.rows), len(second.rows))):
            cells = list(first.rows[at]) if at < len(first.rows) else []
            beyond = second.rows[at] if at < len(second.rows) else []
            sheet.rows.append([*cells, *[None] * (width - len(cells)), *beyond] if beyond else cells)
        {".xlsx": files.xlsx, ".ods": files.ods, ".csv": files.csv}[path.suffix](path, {"Sheet1": sheet})

    DRAFTS[name] = Draft(name, kind, (left, right), write)


def alternate_rows(sheet: Sheet) -> None:
    """Put the percentages of every row below it, as cross-tabulations are printed."""
    start = next(at for at, row in enumerate(sheet.rows) if len(row) > 3)
    number = (len(sheet.rows[start]) - 2) // 2
    out = [*sheet.rows[:start], [sheet.rows[start][0], "", *sheet.rows[start][1 : 2 + number]]]
    for row in sheet.rows[start + 1 :]:
        out.append([row[0], "Count", *row[1 : 2 + number]] if len(row) > 2 else row)
        if len(row) > 2:
            out.append([None, "%", 100.0, *row[2 + number :]])
    sheet.rows[:] = out


def padded(sheet: Sheet) -> None:
    """Write empty cells to the end of every line, as spreadsheets do that are saved as CSV."""
    width = max(map(len, sheet.rows))
    sheet.rows[:] = [[*row, *[None] * (width - len(row))] for row in sheet.rows]


def numbered(sheet: Sheet) -> None:
    """Put a rank before every row, that of the whole excepted."""
    start = next(at for at, row in enumerate(sheet.rows) if len(row) > 2)
    for at, row in enumerate(sheet.rows[start:]):
        if len(row) > 2:
            row.insert(0, "Rank" if at == 0 else at if at + start < len(sheet.rows) - 2 else None)


def broken_headings(sheet: Sheet) -> None:
    """Break headings into lines within their cells."""
    sheet.rows[:] = [[value.replace(" ", "\n") if isinstance(value, str) and at == 1 else value for value in row]
                     for at, row in enumerate(sheet.rows)]  # fmt: skip


# fmt: off
add("trusts-waiting.csv", "leaky", people(rows("Provider", TRUSTS, "England"), Axis("Wait", [("Total waiting",
    ["Within 18 weeks", "Over 18 weeks"])]), mean=300, hide=Hide(0, "*", also=(("Estuary Care", "Over 18 weeks"),))),
    Layout(above=("Referral to treatment, June 2023",), codes="RX", below=("", "* Suppressed",)))
add("pupils-unicode.csv", "leaky", people(rows("School", SCHOOLS, "All schools"), Axis("Sex", [("All pupils", ["Boys",
    "Girls"])]), mean=60, hide=Hide(0, "x", also=(("Cathedral School", "Boys"), ("Cathedral School", "Girls")))),
    Layout(below=("x: suppressed",)), dialect=Dialect("\t", encoding="utf-16"))
side_by_side("side-by-side.xlsx", "leaky", people(rows("Force", FORCES), Axis("Sex", [("Officers", ["Men", "Women"])]),
    how="rounding:5", mean=90), people(rows("Force", FORCES, "Total"), Axis("Length of service", [("All",
    ["Under 5 years", "5 to 9 years", "10 years and over"])]), mean=40, hide=Hide(0, "c", also=(("Glenmore",
    "Under 5 years"), ("Glenmore", "5 to 9 years")))), Layout(above=("Table 1a. Officers by sex (rounded to base 5)",)),
    Layout(above=("Table 1b. Officers by length of service",), below=("c = confidential",)))
side_by_side("side-by-side-healthy.xlsx", "healthy", people(rows("School", SCHOOLS), Axis("Sex", [("Pupils", ["Boys",
    "Girls"])]), how="rounding:5", seed=11, mean=90), people(rows("School", SCHOOLS), Axis("Language", [("Parents",
    ["English", "Other languages"])]), how="rounding:5", seed=12, mean=90),
    Layout(above=("Pupils by sex",), below=("Randomly rounded to base 5.",)), Layout(above=("Parents by language",)))
SMOKING = Axis("Smoking", [("All respondents", ["Never smoked", "Former smoker", "Current smoker"])])
add("percent-below.xlsx", "leaky", people(rows("Locality", FORCES), SMOKING, how="rounding:5", exact=("All respondents",),
    mean=40, percent=Percent("All respondents")), Layout(above=("Smoking status by locality",),
    below=("Counts are randomly rounded to base 5. Percentages are based on unrounded counts.",)), change=alternate_rows)
add("percent-below-healthy.csv", "healthy", people(rows("Locality", FORCES), SMOKING, how="rounding:5", mean=80,
    percent=Percent("All respondents", true=False)), Layout(
    below=("Counts are randomly rounded to base 5; percentages are calculated from rounded counts.",)),
    change=alternate_rows)
OFFENCES = "Burglary;Robbery;Theft;Criminal damage;Drug offences;Public order"
_crime = people(rows("Offence group", OFFENCES, "All offences"), Axis("Year", ["2019/20", "2020/21", "2021/22"]), mean=900)
add("crime-change.csv", "healthy", _crime, Layout(above=("Police recorded crime",), extra=(("Change 2020/21 to 2021/22 (%)",
    lambda at: round(100 * (_crime.truth[_crime.axes[0].printed[at], "2021/22"] / _crime.truth[_crime.axes[0].printed[at],
    "2020/21"] - 1), 1)),)))
add("league-table.xlsx", "healthy", people(rows("University", UNIVERSITIES, "All universities"), Axis("Mode", [("Students",
    ["Full-time", "Part-time"])]), how="rounding:5", mean=400), Layout(above=("Students by mode of study",),
    below=("", "Numbers are randomly rounded to a multiple of 5.")), change=numbered)
add("cases-rate.csv", "leaky", people(rows("Health area", FORCES), Axis("Status", [("Population", ["Cases",
    "Not infected"])]), how="rounding:10", exact=("Population",), mean=20000, weights={"Cases": 0.01},
    percent=Percent("Population", 1, heading="{} per 100,000 population", per=100_000)),
    Layout(below=("Counts of cases are randomly rounded to base 10; rates use unrounded cases.",)))
add("zweisprachig.xlsx", "leaky", people(rows("Kanton / Canton", KREISE, "Total / Total"), Axis("Geschlecht", [
    ("Total / Ensemble", ["Männer / Hommes", "Frauen / Femmes"])]), mean=60, hide=Hide(0, "( )", also=(("Ilmtal",
    "Männer / Hommes"), ("Ilmtal", "Frauen / Femmes")))), Layout(
    below=("( ) = aus Datenschutzgründen nicht angegeben / donnée confidentielle",)))
STUDY = Axis("Level", [("All levels", ["First degree", "Other undergraduate", "Postgraduate"])])
add("enrolments.ods", "healthy", people(rows("HE provider", UNIVERSITIES), STUDY, Axis("Domicile", ["UK",
    "Non-UK"]), how="nearest:5", seed=1, mean=300), Layout(above=("Table 3 - HE student enrolments by level and domicile",
    "Academic year 2021/22"), below=("In this table 0, 1, 2 are rounded to 0. All other numbers are rounded up or down to "
    "the nearest multiple of 5.",)))
add("years-down.csv", "leaky", Table((rows("Year", "2018;2019;2020;2021;2022"), rows("Court", "Aldham;Burford;Chesham;"
    "Deal;Epping", "All courts")), mean=30, hide=Hide(0, "-", also=(("2020", "Deal"),))), Layout(
    below=("- : figure withheld to avoid disclosure",)))
add("of-which-down.xlsx", "healthy", Table((Axis("Status", [("Economically active", ["Employed", ("Unemployed",
    ["of which: long-term", "~rest"])])]), rows("Town", "Ashby;Belper;Corby;Diss;Ely", "Total", last=False)),
    how="rounding:5", mean=120), Layout(indent=True, above=("Economic activity by town", ""),
    below=("All figures have been randomly rounded to multiples of 5",)))
add("kreise.csv", "leaky", people(rows("Kreis", KREISE, "Land insgesamt"), Axis("Alter", [("Insgesamt", ["davon unter 6",
    "davon 6 bis unter 18", "davon 18 und mehr"])]), mean=700, hide=Hide(0, ".", also=(("Ilmtal", "davon unter 6"),
    ("Ilmtal", "davon 18 und mehr"), ("Ilmtal", "davon 6 bis unter 18"), ("Altenau", "davon unter 6")))),
    Layout(above=("Statistisches Landesamt", "Tabelle 4: Bevölkerung am 31.12.2021", ""),
    below=(". = Zahlenwert unbekannt oder geheim zu halten", "© Statistisches Landesamt")),
    dialect=Dialect(";", ",", ".", "latin-1"), change=padded)
PROVINCES = Axis("Provincia", [("TOTAL NACIONAL", [("Andarrosa", ["Alcalá", "Baeza", "Cazorla"]), ("Castanar", ["Daimiel",
    "Estepa"]), ("Levante", ["Gandía", "Hellín", "Jumilla"])])])
add("provincias.xlsx", "leaky", people(PROVINCES, Axis("Sexo", [("Ambos sexos", ["Varones", "Mujeres"])]), mean=90,
    hide=Hide(0, "..", also=(("Estepa", "Varones"), ("Estepa", "Mujeres")))), Layout(indent=True,
    above=("Defunciones por provincia y sexo", ""), below=("..: dato protegido por secreto estadístico",)))
add("statline.csv", "leaky", people(rows("Regio's", GEMEENTEN, "Nederland", last=False), Axis("Geslacht", [
    ("Totaal mannen en vrouwen", ["Mannen", "Vrouwen"])]), mean=50, hide=Hide(0, ".", also=(("Drimmelen", "Mannen"),
    ("Drimmelen", "Vrouwen")))), Layout(-1, value="Uitkeringen (aantal)", below=("Bron: Bureau", ". = geheim")),
    dialect=Dialect(";", ",", quote=True))
add("ine.xlsx", "healthy", people(rows("Concelho", CONCELHOS, "Portugal", last=False), Axis("Ano", ["2011", "2021"]),
    Axis("Sexo", [("HM", ["H", "M"])]), how="rounding:3", mean=400), Layout(above=("População residente por sexo",),
    below=("Valores arredondados aleatoriamente à base 3.",)))
_quarter = people(rows("Office", SCHOOLS), Axis("Outcome", [("Applications", ["Approved", "Refused", "Withdrawn"])]),
    how="rounding:5", mean=90)
add("quarters.xlsx", "healthy", (_quarter, replace(_quarter, seed=5), replace(_quarter, seed=6)), Layout(
    above=("Applications by office", ""), below=("Figures are subject to random rounding to base 5",)),
    sheets=("Q1", "Q2", "Q3"), first=Sheet([["Notes"], ["1", "Figures are subject to random rounding to base 5."],
    ["2", "Contact: press@example.org"]]))


def labelled(path: Path, table: Table) -> None:
    """Write SDMX-CSV with labels beside the codes."""
    names = {"REF_AREA": "Reference area", "SEX": "Sex"}
    lines = [",".join(["STRUCTURE", "STRUCTURE_ID", "FREQ: Frequency", *(f"{axis.name}: {names[axis.name]}" for axis in
        table.axes), "TIME_PERIOD: Time", "OBS_VALUE: Value", "CONF_STATUS: Confidentiality"])]
    for cell in table.cells:
        value = table.shown[cell]
        secret = isinstance(value, str)
        lines.append(",".join(["dataflow", "OFFICE:DF(1.0)", "A: Annual", *cell, "2022",
            "" if secret else str(value), "C: Confidential" if secret else "F: Free"]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


special("labelled-sdmx.csv", "leaky", people(Axis("REF_AREA", [("XX: Utopia", [f"XX{at}: Area {at}" for at in range(1,
    9)])]), Axis("SEX", [("_T: Total", ["F: Female", "M: Male"])]), hide=Hide(0, "c", also=(("XX5: Area 5", "M: Male"),
    ("XX5: Area 5", "F: Female")))), labelled)
special("three-axes.px", "leaky", people(rows("kommune", GEMEENTEN, "Hele landet", last=False), Axis("alder", [("I alt",
    ["0-17 år", "18-66 år", "67 år og over"])]), Axis("køn", [("Begge køn", ["Mænd", "Kvinder"])]), mean=25, hide=Hide(0,
    "..",
    also=tuple(("Drimmelen", "67 år og over", sex) for sex in ("Mænd", "Kvinder")))), lambda path,
    table: files.px(path, table, "Personer efter kommune, alder og køn", ".. fortrolig (confidential)"))
add("fewer-than-10.csv", "leaky", people(rows("Clinic", TRUSTS, "All clinics"), Axis("Outcome", [("All patients",
    ["Discharged", "Readmitted"])]), mean=60, weights={"Readmitted": 0.25}, hide=Hide(10, "Fewer than 10", 0, 9)))
add("number-words.xlsx", "healthy", people(rows("District", KREISE), Axis("Household", [("All households", ["One person",
    "Two people", "Three or more people"])]), how="rounding:5", mean=70), Layout(below=("To protect confidentiality, each "
    "figure was independently and randomly rounded to a neighbouring multiple of five.",)))
add("in-thousands.csv", "healthy", people(rows("Region", FORCES), SMOKING, mean=700), Layout(
    above=("Adults by smoking status, thousands",)))
add("pivot.xlsx", "leaky", people(rows("Row Labels", "Admissions;Cardiology;Dermatology;Oncology;Paediatrics;Surgery",
    "Grand Total"), Axis("Outcome", [("Grand Total", ["Home", "Transferred", "Died"])], last=True), mean=30,
    weights={"Died": 0.1}, true={("Dermatology", "Died"): 1}), Layout(above=("Count of patient_id", ""), side="Row Labels"),
    why="a count of one")
_wards = people(rows("Ward", TRUSTS, "Borough"), Axis("Census", ["2011", "2021"]), mean=4000)


def then_and_now(at: int) -> tuple[int, int]:
    name = _wards.axes[0].printed[at]
    return _wards.truth[name, "2011"], _wards.truth[name, "2021"]


add("change-rank.xlsx", "healthy", _wards, Layout(extra=(
    ("Change", lambda at: then_and_now(at)[1] - then_and_now(at)[0]),
    ("% change", lambda at: round(100 * (then_and_now(at)[1] / then_and_now(at)[0] - 1), 1)),
)))
add("broken-headings.xlsx", "leaky", beside(rows("Library", SCHOOLS), "All members", "Adult members,Child members",
    "Resident members,Other members", how="rounding:3", exact=("All members",), seed=5, mean=60), Layout(above=("Members",),
    below=("Counts other than totals are randomly rounded to base 3.",)), change=broken_headings)
add("swiss.csv", "leaky", people(rows("Gemeinde", KREISE, "Bezirk"), Axis("Wohnsitz", [("Total", ["Schweiz", "Ausland"])]),
    mean=1500, hide=Hide(0, "X", also=(("Ilmtal", "Schweiz"), ("Ilmtal", "Ausland")))), Layout(
    below=("X: Angabe aus Gründen des Datenschutzes nicht veröffentlicht",)), dialect=Dialect(";", ".", "'"))
ETHNIC = Axis("Ethnic group", [("All pupils", ["White", "Mixed", "Asian", "Black", "Other", "Unclassified"])])
add("ethnic-groups.ods", "healthy", people(rows("School", SCHOOLS), ETHNIC, how="nearest:5", mean=90, hide=Hide(5, "[c]")),
    Layout(above=("Pupils by ethnic group",), below=("[c] = confidential", "Numbers are rounded to the nearest five.")))
# fmt: on
