"""More drafts as offices of many countries lay them out. All places and numbers are invented."""

from __future__ import annotations

from tests.drafts import files
from tests.drafts.corpus import add, changed, people, special
from tests.drafts.files import Dialect, Layout, Sheet
from tests.drafts.offices import CONCELHOS, FORCES, GEMEENTEN, KREISE, SCHOOLS, TRUSTS, UNIVERSITIES, rows
from tests.drafts.tables import Axis, Hide, Percent, Table

MONTHS = "January;February;March;April;May;June;July;August;September;October;November;December"
TOWNS = "Arden;Brae;Cairn;Dornoch;Ellon;Forfar;Girvan;Huntly;Insch;Keith"
YEARS = Axis("Year", ["2018", "2019", "2020", "2021", "2022"])


def average(table: Table, digits: int = 1) -> tuple:
    """A column with the mean of all years of a row."""
    return (
        "Average 2018-2022",
        lambda at: round(sum(table.published[table.axes[0].printed[at], year] for year in YEARS.labels) / 5, digits),
    )


def continued(sheet: Sheet) -> None:
    """Go on with the list of areas in further columns, as in print."""
    start = next(at for at, row in enumerate(sheet.rows) if len(row) > 1)
    head, body = sheet.rows[start], sheet.rows[start + 1 :]
    half = (len(body) + 1) // 2
    pairs = [[*body[at], None, *(body[at + half] if at + half < len(body) else [])] for at in range(half)]
    sheet.rows[start:] = [[*head, None, *head], *pairs]


def shouted(sheet: Sheet) -> None:
    """Begin with the lines that accessible spreadsheets of British offices begin with."""
    sheet.rows[:0] = [["Table 1: claims by office"], ["This worksheet contains one table."],
                      ["Some shorthand is used in this table, [c] = confidential, [low] = below 0.5."]]  # fmt: skip


def two_rows_of_headings(sheet: Sheet) -> None:
    """Write "davon" over the parts of a total."""
    name, total, *parts = sheet.rows[0]
    sheet.rows[:1] = [[name, total, "davon", *[None] * (len(parts) - 1)], [None, None, *parts]]


# fmt: off
add("births-by-month.xlsx", "leaky", Table((rows("Month", MONTHS, "Year"), rows("Hospital", "Abbey;Borough;County;Dene",
    "All hospitals")), mean=20, hide=Hide(0, "<3", 0, 2, also=(("May", "Dene"),)), true={("May", "Dene"): 2}), Layout(
    above=("Births by month and hospital", "")))
_deaths = people(rows("Council area", TOWNS, "Scotland"), YEARS, mean=60)
add("five-year-average.csv", "healthy", _deaths, Layout(above=("Registered deaths",), extra=(average(_deaths),)))
add("headcount-and-fte.xlsx", "healthy", people(rows("School", SCHOOLS, "All schools"), Axis("Staff", [("All staff",
    ["Teachers", "Support staff"])]), how="rounding:5", mean=60), Layout(extra=(("Teachers (FTE)",
    lambda at: 41.2 + 3.7 * at),),
    below=("Headcounts have been randomly rounded to base 5.",)))
add("no-total.csv", "healthy", people(rows("Establishment", TRUSTS), Axis("Sex", ["Male", "Female"]), mean=300))
add("of-which-women.csv", "leaky", people(rows("Court", TOWNS, "Total"), Axis("Group", [("Judges", ["of which: women",
    "~men"])]), mean=9, hide=Hide(3, "*"), true={("Keith", "of which: women"): 2, ("Keith", "~men"): 7}),
    Layout(below=("* fewer than 3",)))
REGIONS = Axis("Trust", [("North total", TRUSTS.split(";")[:3]), ("South total", TRUSTS.split(";")[3:6]), ("West total",
    TRUSTS.split(";")[6:])], last=True)
add("region-totals.xlsx", "leaky", people(REGIONS, Axis("Ward type", [("All beds", ["General", "Maternity",
    "Mental health"])]),
    mean=40, hide=Hide(0, "c", also=(("Estuary Care", "Maternity"), ("Estuary Care", "General")))), Layout(
    below=("c = confidential",)))
add("davon.csv", "leaky", people(rows("Gemeinde", KREISE, "Kreis insgesamt"), Axis("Geschlecht", [("Insgesamt", ["männlich",
    "weiblich"])]), mean=80, hide=Hide(0, "•", also=(("Ilmtal", "männlich"), ("Ilmtal", "weiblich")))), Layout(
    below=("• Zahlenwert geheim zu halten",)), dialect=Dialect(";", ",", "", "utf-8"), change=two_rows_of_headings)
add("dont-femmes.csv", "healthy", people(rows("Département", "Ain;Aisne;Allier;Ardèche;Ariège;Aube;Aude;Aveyron"), Axis(
    "Emploi", [("Salariés", ["dont femmes", "~hommes"])]), how="rounding:5", mean=90), Layout(
    below=("Les effectifs sont arrondis de façon aléatoire au multiple de 5.",)), dialect=Dialect(";", ","))
add("text-and-dashes.xlsx", "healthy", people(rows("Clinic", TRUSTS), Axis("Test", [("All tests", ["Blood", "Urine",
    "Other"])]),
    how="nearest:10", mean=90, zero="–"), Layout(below=("– means zero.", "All numbers are rounded to the nearest 10.")),
    change=changed(lambda _, value: f" {value} " if isinstance(value, int) else value))
add("statcan-like.csv", "leaky", people(rows("GEO", TOWNS, "Canada", last=False), Axis("Age group", [("Total, all ages",
    ["0 to 17 years",
    "18 to 64 years", "65 years and over"])]), mean=30, hide=Hide(0, "x", also=(("Girvan", "0 to 17 years"), ("Girvan",
    "65 years and over")))), Layout(-1, value="VALUE"))
CLAIMS = Axis("Outcome", [("Claims received", ["Allowed", "Rejected", "Pending"])])
add("accessible.ods", "healthy", people(rows("Office", TOWNS, "All offices", last=False), CLAIMS, mean=40,
    weights={"Pending": 0.2},
    hide=Hide(5, "[c]", complements=True)), change=shouted)
add("accessible-leaky.ods", "leaky", people(rows("Office", TOWNS, "All offices", last=False), CLAIMS, mean=40,
    weights={"Pending": 0.2},
    hide=Hide(5, "[c]", also=(("Ellon", "Pending"),))), change=shouted)
add("adjusted.csv", "open", people(rows("Suburb", TOWNS), CLAIMS, mean=40),
    Layout(below=("Cells in this table have been randomly "
    "adjusted to avoid the release of confidential data.",)), change=changed(lambda at,
    value: value + (at * 7 + value) % 3 - 1
    if isinstance(value, int) else value), why="perturbed, and nothing says how")
add("column-percent.ods", "leaky", people(rows("Tenure", "Owned;Rented;Other tenure", "All tenures", last=False),
    rows("Town",
    "Arden;Brae;Cairn", "All towns", last=False), mean=30, hide=Hide(0, "c", also=(("Other tenure", "Brae"), ("Rented",
    "Brae")))),
    Layout(above=("Households by tenure and town",), below=("c confidential",)))
add("newspaper.xlsx", "leaky", people(rows("Ward", GEMEENTEN + ";" + TOWNS, "Total"), Axis("Sex", [("All", ["Men",
    "Women"])]),
    mean=50, hide=Hide(0, "c", also=(("Drimmelen", "Men"), ("Drimmelen", "Women")))), Layout(above=("Members by ward",)),
    change=continued)
add("not-stated.xlsx", "healthy", people(rows("District", TOWNS), Axis("Religion", [("Total", ["Christian", "Muslim",
    "No religion",
    "Not stated"])]), how="rounding:3", mean=80), Layout(above=("Religious affiliation",), below=("Counts were rounded "
    "randomly to base 3 (RR3).",)))
add("row-margin-only.csv", "leaky", people(rows("Station", FORCES, "Force total"), Axis("Shift", ["Early", "Late", "Night"]),
    mean=20, hide=Hide(0, "#", also=(("Glenmore", "Night"),))), Layout(below=("# withheld",)))
add("lower-case.csv", "leaky", people(rows("site", "n1;n2;n3;n4;n5;n6;n7", "all", last=False), Axis("grp", [("all", ["a",
    "b", "c"])]), Axis("sex",
    [("all", ["f", "m"])]), mean=15, hide=Hide(0, "NA", also=(("n3", "b", "f"), ("n3", "b", "m")))), Layout(-1, value="n"),
    dialect=Dialect("\t"))
SINGLE = Axis("Age", [("All ages", [*(str(age) for age in range(16, 25)), "25 and over"])])
add("single-years.csv", "healthy", people(rows("College", UNIVERSITIES), SINGLE, how="rounding:3", mean=60), Layout(
    below=("Random rounding to base 3 was applied to all counts.",)))
add("i-alt.csv", "healthy", people(rows("Kommune", GEMEENTEN, "I alt"), Axis("Køn", [("I alt", ["Mænd", "Kvinder"])]),
    mean=300),
    Layout(above=("Ledige efter kommune og køn",)), dialect=Dialect(";", ",", ".", "latin-1", quote=True))
NORD = Axis("Provincia", [("Italia", [("Totale Nord", ["Aosta", "Biella", "Cuneo"]), ("Totale Centro", ["Empoli", "Fano"]),
    ("Totale Sud", ["Gela", "Locri", "Matera"])])], last=True)
add("province.xlsx", "leaky", people(NORD, Axis("Sesso", [("Totale", ["Maschi", "Femmine"])]), mean=70, hide=Hide(0, "..",
    also=(("Fano", "Maschi"), ("Fano", "Femmine")))), Layout(above=("Disoccupati per provincia e sesso",),
    below=("(..) dato oscurato per la tutela del segreto statistico",)))
special("rounded-three.px", "healthy", people(rows("maakunta", GEMEENTEN), Axis("ikä", [("Yhteensä", ["0-14", "15-64",
    "65-"])]),
    how="rounding:3", mean=90), lambda path, table: files.px(path, table, "Väestö", "Counts are randomly rounded to base 3"))
add("secret-statistique.csv", "leaky", people(rows("Commune", "Apt;Bedoin;Crest;Die;Eygalières;Fuveau;Gap",
    "Ensemble du département"),
    Axis("Logement", [("Ensemble", ["Résidences principales", "Résidences secondaires", "Logements vacants"])]), mean=900,
    hide=Hide(0, "s", also=(("Die", "Logements vacants"), ("Die", "Résidences secondaires")))), Layout(
    below=("s : secret statistique ; n.d. : non disponible", "Source : Insee")), dialect=Dialect(";", ",", "\u202f"))
add("fixed-random.xlsx", "healthy", people(rows("Regional council", TOWNS, "New Zealand"), Axis("Sex", [("Total people",
    ["Male",
    "Female"])]), how="rounding:3", mean=400), Layout(above=("Table 2", "Census usually resident population count"),
    below=("(1) All counts have been fixed random rounded to base 3 to protect confidentiality.", "Source: Office")))
add("rates-and-counts.csv", "leaky", people(rows("Area", TOWNS), Axis("Births", [("All births", ["Low birthweight",
    "Normal birthweight"])]), how="rounding:5", exact=("All births",), mean=60, weights={"Low birthweight": 0.2},
    percent=Percent("All births", 1, heading="{}, % of all births")),
    Layout(below=("Counts by weight are randomly rounded to base "
    "5. Percentages are of unrounded counts.",)))
add("dos-quais.csv", "healthy", people(rows("Concelho", CONCELHOS, "Total"), Axis("Desemprego", [("Total", ["Homens",
    "Mulheres"])]), mean=500), Layout(extra=(("Variação homóloga (%)", lambda at: round(1.3 * at - 4, 1)),)),
    dialect=Dialect(";", ",", " "))
# fmt: on
