"""A fourth set: ten people's habits, from pivot tables to statistics packages. All places and numbers are invented."""

from __future__ import annotations

from tests.drafts.abroad import TOWNS
from tests.drafts.corpus import add, beside, people
from tests.drafts.files import Dialect, Layout, Sheet
from tests.drafts.judge import FAR
from tests.drafts.offices import FORCES, SCHOOLS, TRUSTS, rows
from tests.drafts.tables import Axis, Hide, Percent


def labels_last(sheet: Sheet) -> None:
    """Put the names of the rows behind the counts."""
    sheet.rows[:] = [[*row[1:], row[0]] if len(row) > 2 else row for row in sheet.rows]


def numbered(sheet: Sheet) -> None:
    """Number the rows, as R does."""
    sheet.rows[:] = [["" if not at else str(at), *row] for at, row in enumerate(sheet.rows)]


def bracketed_shares(sheet: Sheet) -> None:
    """Print every count with its percentage of the row's first count."""
    start = next(at for at, row in enumerate(sheet.rows) if len(row) > 2) + 1
    for at, row in enumerate(sheet.rows[start:], start):
        if len(row) > 2 and isinstance(row[1], int):
            sheet.rows[at] = [*row[:2], *(f"{value} ({100 * value / row[1]:.1f})" if isinstance(value,
    int) and row[1] else value
                                          for value in row[2:])]  # fmt: skip


def frequencies(sheet: Sheet) -> None:
    """Add percentages and cumulated percentages, as Stata does."""
    total = sheet.rows[-1][1]
    sheet.rows[0] += ["Percent", "Cum."]
    so_far = 0.0
    for row in sheet.rows[1:]:
        if isinstance(row[1], int) and row[0] != "Total":
            so_far += row[1]
            row += [round(100 * row[1] / total, 2), round(100 * so_far / total, 2)]
        elif row[0] == "Total":
            row += [100.0]


OUTCOMES = Axis("Outcome", [("Admissions", ["Discharged", "Transferred", "Died"])])
GRADES = Axis("Grade", [("Total enrollment", ["Kindergarten", "Grade 1", "Grade 2", "Grade 3"])])
SWISS = Axis("Geschlecht / Sexe", [("Total", ["Männer / Hommes", "Frauen / Femmes"])])
SPANISH = Axis("Sexo", [("Ambos sexos", ["Hombres", "Mujeres"])])
CZECH = Axis("Pohlaví", [("Celkem", ["Muži", "Ženy"])])
RUSSIAN = Axis("Пол", [("Всего", ["Мужчины", "Женщины"])])
KOREAN = Axis("성별", [("합계", ["남자", "여자"])])
GREEK = Axis("Φύλο", [("Σύνολο", ["Άνδρες", "Γυναίκες"])])
OFFENCES = Axis("Offence", [("All offences", [("Violence", ["Homicide", "Assault"]), ("Property", ["Burglary", "Theft",
    "Arson"]), "Fraud"])])  # fmt: skip
SMALL_MONTHS = Axis("Month", [("Q1", ["Jan", "Feb", "Mar"])])
SNAKE = Axis("sex", [("all_persons", ["female", "male"])])

# fmt: off
# A hospital's analyst.
add("wards-n-percent.xlsx", "leaky", people(rows("Hospital", TRUSTS, "All hospitals"), OUTCOMES, mean=60,
    weights={"Died": 0.1},
    true={("Estuary Care", "Died"): 2}, hide=Hide(5, "<5", 1, 4)), Layout(above=("Admissions by outcome, n (%)",),
    below=("<5: fewer than five",)), change=bracketed_shares)
add("wards-n-percent-healthy.csv", "healthy", people(rows("Hospital", TRUSTS), OUTCOMES, mean=90, weights={"Died": 0.4}),
    Layout(below=("Figures are n (%)",)), change=bracketed_shares)
add("at-most-seven.xlsx", "leaky", people(rows("Trust", TRUSTS, "England"), OUTCOMES, mean=70, weights={"Died": 0.1},
    hide=Hide(8, "≤7", 1, 7)), Layout(above=("Table 4. Emergency admissions",),
    below=("≤7 Values from 1 to 7 have been suppressed",)))
# A school district.
add("grades.csv", "leaky", people(rows("School", SCHOOLS, "District total"), GRADES, mean=30, hide=Hide(0, "n<10", 0, 9,
    also=(("Hilltop Primary", "Grade 2"),)), true={("Hilltop Primary", "Grade 2"): 7}))
add("grades-masked.xlsx", "leaky", people(rows("School", SCHOOLS, "District total"), GRADES, mean=30, hide=Hide(0, "***",
    also=(("Cathedral School", "Grade 1"), ("Cathedral School", "Grade 3")))),
    Layout(below=("*** Masked to protect student privacy",)))
add("grades-right.xlsx", "leaky", people(rows("School", SCHOOLS, "All schools"), GRADES, mean=30, hide=Hide(0, "*",
    also=(("Cathedral School", "Grade 1"),))), Layout(below=("* withheld",)), change=labels_last)
# A Swiss canton.
add("gemeinden.csv", "healthy", people(rows("Gemeinde / Commune", "Aarmühle;Bözwil;Cham-Dorf;Delsbach;Egerkon;Fislis"),
    SWISS, mean=900),
    Layout(above=("Wohnbevölkerung nach Geschlecht / Population résidante selon le sexe",)), dialect=Dialect(";", ".",
    "'", "cp1252"))
add("gemeinden-x.csv", "leaky", people(rows("Gemeinde / Commune", "Aarmühle;Bözwil;Cham-Dorf;Delsbach;Egerkon;Fislis",
    "Kanton / Canton"),
    SWISS, mean=900, hide=Hide(0, "X", also=(("Bözwil", "Männer / Hommes"), ("Bözwil", "Frauen / Femmes")))), Layout(below=(
    "X: entfällt aus Datenschutzgründen / supprimé pour raisons de confidentialité",)), dialect=Dialect(";", ".", "'"))
# A Spanish office.
add("municipios.ods", "leaky", people(rows("Municipio", "Albares;Bermeo Alto;Cuéllar;Duero;Escalante;Fonseca",
    "Total provincia", last=False),
    SPANISH, mean=300, hide=Hide(0, ".", also=(("Cuéllar", "Hombres"), ("Cuéllar", "Mujeres")))),
    Layout(above=("Población por municipio y sexo",), below=(". Dato protegido por secreto estadístico",)))
add("municipios-pct.csv", "healthy", people(rows("Municipio", "Albares;Bermeo Alto;Cuéllar;Duero;Escalante;Fonseca"),
    SPANISH, mean=300,
    percent=Percent("Ambos sexos", heading="% {}")), dialect=Dialect(";", ",", "."))
# A Czech, a Russian, a Korean, a Greek office, each with its code page.
add("okresy.csv", "leaky", people(rows("Okres", "Blansko;Děčín;Chrudim;Jičín;Kroměříž;Třebíč;Žďár", "Kraj celkem"),
    CZECH, mean=500,
    hide=Hide(0, "i.d.", also=(("Jičín", "Muži"), ("Jičín", "Ženy")))), Layout(above=("Počet uchazečů podle pohlaví",),
    below=("i.d. = individuální data, nelze zveřejnit",)), dialect=Dialect(";", ",", "\u00a0", "cp1250"))
add("rayony.csv", "leaky", people(rows("Район", "Берёзовский;Волжский;Горный;Дальний;Заречный;Крутой",
    "Итого по области"), RUSSIAN, mean=700,
    hide=Hide(0, "…", also=(("Горный", "Мужчины"), ("Горный", "Женщины")))),
    Layout(above=("Численность населения по полу",),
    below=("… данные не публикуются в целях обеспечения конфиденциальности",)), dialect=Dialect(";", ",", " ", "cp1251"))
add("sigungu.csv", "leaky", people(rows("시군구", "가람시;나래군;다솜시;마루군;바다시;새솔군", "전체", last=False),
    KOREAN, mean=500,
    hide=Hide(0, "X", also=(("마루군", "남자"), ("마루군", "여자")))), Layout(below=("X: 비공개 (통계비밀보호)",)),
    dialect=Dialect(encoding="cp949"))
add("dimoi.xlsx", "healthy", people(rows("Δήμος", "Αίγιο;Βόλβη;Γορτύνα;Δράμα;Έδεσσα;Ζίτσα", "Σύνολο χώρας"), GREEK,
    mean=900),
    Layout(above=("Πληθυσμός κατά φύλο",)))
# A police force.
add("offences-down.xlsx", "leaky", people(OFFENCES, SMALL_MONTHS, mean=40, weights={"Homicide": 0.05}, true={("Homicide",
    "Jan"): 3,
    ("Homicide", "Feb"): 6, ("Homicide", "Mar"): 8}, hide=Hide(5, "‡")), Layout(above=("Recorded offences",), indent=True,
    below=("‡ fewer than five, not shown",)))
add("offences-rounded.csv", "healthy", people(rows("Force", FORCES), Axis("Offence", [("All", ["Burglary", "Theft",
    "Fraud", "Robbery"])]),
    how="rounding:5", mean=90), Layout(below=("Numbers have been rounded at random to multiples of five.",)))
# A charity's pivot table.
add("pivot-hidden.xlsx", "leaky", people(rows("Row Labels", TOWNS, "Grand Total"), Axis("Column Labels", [("Grand Total",
    ["Adult", "Child",
    "Not recorded"])], last=True), mean=20, hide=Hide(0, "hidden", also=(("Forfar", "Child"),))),
    Layout(above=("Count of Client ID",)))
add("pivot-small.xlsx", "leaky", people(rows("Row Labels", TOWNS, "Grand Total"), Axis("Column Labels", [("Grand Total",
    ["Adult", "Child",
    "(blank)"])], last=True), mean=20, weights={"(blank)": 0.05}))
# A user of R, and one of Stata.
add("snake.csv", "leaky", people(rows("la_name", TOWNS, "total"), SNAKE, mean=25, hide=Hide(0, "NA", also=(("Ellon",
    "female"), ("Ellon",
    "male")))), change=numbered, dialect=Dialect(quote=True))
add("snake-rounded.csv", "healthy", people(rows("la_name", TOWNS), SNAKE, how="nearest:10", mean=95), Layout(below=(
    "# counts rounded to nearest 10",)))
add("tabulate.csv", "leaky", people(rows("Region", TOWNS, "Total"), Axis("What", ["Freq."]), mean=25, hide=Hide(0, "c",
    also=(("Cairn",
    "Freq."),))), change=frequencies)
# A ministry.
add("prisoners-of-which.csv", "leaky", people(rows("Prison", FORCES, "All prisons"), Axis("Sex", [("Prisoners", ["~Men",
    "of which women"])]), mean=80,
    hide=Hide(0, "c", also=(("Glenmore", "of which women"),))))
add("change.xlsx", "healthy", people(rows("Constituency", FORCES), Axis("Year", ["2021", "2022"]), how="nearest:5",
    mean=700), Layout(extra=((
    "Comment", lambda at: ("", "see note", "revised", "")[at % 4]),), below=("All numbers are rounded to the nearest 5.",
    "Note: new boundaries.")))
add("parishes-across.xlsx", "leaky", people(rows("Benefit", "Housing;Child;Carers;Disability", "All benefits", last=False),
    Axis("Area", [("Island", ["North parish", "South parish", "East parish"])]), mean=15, true={("Carers",
    "East parish"): 2},
    hide=Hide(3, "-", 1, 2)), Layout(above=("Claims paid",), below=("- : 1 or 2, not shown",)))
add("running-totals.csv", "healthy", people(rows("Office", "Adams;Baker;Clark;Davis;Evans"), Axis("Sex", [("Total",
    ["Men", "Women"])]), mean=50,
    true={(name, sex): number for at, name in enumerate(("Adams", "Baker", "Clark", "Davis", "Evans"))
          for sex, number in (("Men", 50 + 3 * at), ("Women", 51 - 2 * at))}))
add("running-totals-hidden.csv", "leaky", people(rows("Office", "Adams;Baker;Clark;Davis;Evans"), Axis("Sex", [("Total",
    ["Men", "Women"])]),
    mean=50, true={(name, sex): number for at, name in enumerate(("Adams", "Baker", "Clark", "Davis", "Evans"))
    for sex, number in (("Men", 50 + 3 * at), ("Women", 51 - 2 * at))}, hide=Hide(0, "c", also=(("Clark", "Men"),))))
add("registered.csv", "leaky", people(rows("Ward", TOWNS), Axis("Turnout", [("Registered", ["Voted", "Did not vote"])]),
    how="rounding:5",
    exact=("Registered",), mean=60, percent=Percent("Registered", 1, heading="{} (% of registered)")),
    Layout(below=("Voters are randomly rounded to base 5; percentages are of unrounded counts.",)))
add("middle.csv", "leaky", people(rows("Town", TOWNS, "All towns"), Axis("Sex", ["Males", "Females"]), mean=60,
    hide=Hide(0, "c", also=(("Keith", "Females"),))), change=lambda sheet: sheet.rows.__setitem__(slice(None),
    [[row[1], row[0], *row[2:]] if len(row) > 2 else row for row in sheet.rows]))
add("n-a.xlsx", "leaky", people(rows("School", SCHOOLS, "All"), Axis("Phase", [("Pupils", ["Boys", "Girls"])]), mean=60,
    marks={("Cathedral School", "Girls"): ("n/a", 0, FAR), ("Elm Grove College", "Girls"): ("n/a", 0, FAR)},
    true={("Cathedral School", "Girls"): 0, ("Elm Grove College", "Girls"): 0},
    hide=Hide(0, "c", also=(("Abbey Road Primary", "Girls"), ("Abbey Road Primary", "Boys")))),
    Layout(below=("n/a not applicable",
    "c confidential")))
add("beside-dutch.xlsx", "leaky", beside(rows("Wijk", TOWNS), "Inwoners", "Man,Vrouw",
    "Jonger dan 20,20 tot 65,65 jaar of ouder",
    how="rounding:3", exact=("Inwoners",), mean=65, seed=3), Layout(above=("Inwoners per wijk",),
    below=("Afgerond op veelvouden van 3 (willekeurig).",)))
# fmt: on
