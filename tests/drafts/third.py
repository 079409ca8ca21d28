"""A third set: flows, pyramids, trial reports, journeys and other tongues. All places and numbers are invented."""

from __future__ import annotations

from tests.drafts.abroad import TOWNS
from tests.drafts.corpus import Beside, SideBySide, add, changed, people
from tests.drafts.files import Dialect, Layout, Sheet
from tests.drafts.offices import FORCES, GEMEENTEN, TRUSTS, rows
from tests.drafts.tables import Axis, Hide, Percent, Table


class Flow(Beside):
    """Those there at first and those who came are those who left and those there at last; neither sum is printed."""

    @property
    def sums(self) -> list[tuple[str, list[str]]]:
        return []


def pyramid(sheet: Sheet) -> None:
    """Put the names of the rows between the columns."""
    sheet.rows[:] = [[row[1], row[0], *row[2:]] if len(row) > 2 else row for row in sheet.rows]


def with_shares(sheet: Sheet) -> None:
    """Print every count with its percentage in brackets, as in reports of trials."""
    wholes = [value if isinstance(value, int) else None for value in sheet.rows[1]]
    for at, row in enumerate(sheet.rows[1:], 1):
        sheet.rows[at] = [f"{value} ({100 * value / whole:.1f}%)" if isinstance(value, int) and whole else value
                          for value, whole in zip(row, wholes, strict=False)]  # fmt: skip


def journeys(*hidden: tuple[str, str]) -> Table:
    """Return commuters by where they live and where they work; those who do not commute are not counted."""
    towns = TOWNS.split(";")[:6]
    return Table((rows("Residence", ";".join(towns), "All residents"), rows("Workplace", ";".join(towns), "All workers")),
                 mean=60, true={(town, town): 0 for town in towns}, zero="–", hide=Hide(0, "c", also=hidden))  # fmt: skip


QUARTERS = Axis("Quarter", [("Jan-Dec", ["Jan-Mar", "Apr-Jun", "Jul-Sep", "Oct-Dec"])], last=True)
INDUSTRIES = Axis("Industry", [("0 All industries", [("1 Farming", ["1.1 Crops", "1.2 Livestock", "1.3 Forestry"]),
    ("2 Making", ["2.1 Food", "2.2 Textiles"]), ("3 Services", ["3.1 Trade", "3.2 Transport", "3.3 Care"])])])  # fmt: skip
SIZES = Axis("Size", [("Total", ["1-9 employees", "10-49 employees", "50 or more employees"])])

# fmt: off
add("prison-flow.csv", "leaky", SideBySide((rows("Prison", FORCES), Flow("~Ever held", ["Held on 1 January", "Received"],
    ["Released", "Held on 31 December"])), mean=300, hide=Hide(0, "c", also=(("Glenmore", "Received"),))),
    Layout(above=("Prisoners held, received and released, 2022",), below=("c = confidential",)))
add("pyramid.xlsx", "leaky", people(rows("Age", "0-9;10-19;20-29;30-39;40-49;50-59;60-69;70-79;80 and over", "All ages"),
    Axis("Sex", ["Males", "Females"]), mean=60, hide=Hide(0, "c", also=(("80 and over", "Males"),))),
    Layout(above=("Residents of the island by age and sex",), below=("c = confidential",)), change=pyramid)
add("year-to-date.csv", "leaky", people(rows("Registry", TOWNS), QUARTERS, mean=30, hide=Hide(0, "np", also=(("Ellon",
    "Jul-Sep"),))), Layout(above=("Adoptions registered",), below=("np not published",)))
add("powiaty.csv", "leaky", people(rows("Powiat", "Brzeski;Gorlicki;Limanowski;Nowotarski;Suski;Tarnowski;Wielicki",
    "Województwo"), Axis("Płeć", [("Ogółem", ["Mężczyźni", "Kobiety"])]), mean=800, hide=Hide(0, "#", also=(("Suski",
    "Mężczyźni"), ("Suski", "Kobiety")))), Layout(above=("Bezrobotni zarejestrowani według płci",), below=(
    "# dane nie mogą być opublikowane ze względu na tajemnicę statystyczną",)), dialect=Dialect(";", ",", " ", "cp1250"))
add("shichoson.csv", "leaky", people(rows("市町村", "青葉市;石川町;上野市;大野村;北山町;桜井市;高田町", "県計",
    last=False), Axis("性別", [("総数", ["男", "女"])]), mean=400, hide=Hide(0, "X", also=(("大野村",
    "男"), ("大野村", "女")))), Layout(above=("第3表 市町村別従業者数",), below=("X:秘匿",)),
    dialect=Dialect(encoding="shift_jis"))
add("trial-arms.csv", "leaky", people(rows("Stage", "I;II;III;IV", "All patients", last=False), Axis("Arm", [("Overall",
    ["Treatment", "Placebo"])]), mean=30, weights={"IV": 0.1}, true={("IV", "Placebo"): 3, ("IV", "Treatment"): 9},
    hide=Hide(5, "<5", 1, 4)), Layout(below=("Values are n (%).",)), change=with_shares)
add("awdurdodau.xlsx", "leaky", people(rows("Awdurdod", "Abergwaun;Bala;Corwen;Dolgellau;Llanberis;Porthmadog", "Cymru"),
    Axis("Rhyw", [("Cyfanswm", ["Gwrywod", "Benywod"])]), mean=90, hide=Hide(0, "*", also=(("Corwen", "Gwrywod"), ("Corwen",
    "Benywod")))), Layout(above=("Disgyblion yn ôl awdurdod a rhyw",), below=("* Mae'r eitem ddata yn ddatgelol",)))
add("numbered-industries.csv", "leaky", people(INDUSTRIES, SIZES, mean=40, hide=Hide(0, "D", also=(("2.2 Textiles",
    "1-9 employees"), ("2.2 Textiles", "50 or more employees")))), Layout(
    below=("D: withheld to avoid disclosing data of individual companies",)), dialect=Dialect("|"))

add("weekly-deaths.csv", "healthy", people(rows("Week ending", ";".join(f"{day:02d}/01/2023" for day in (6, 13, 20, 27))
    + ";" + ";".join(f"{day:02d}/02/2023" for day in (3, 10, 17, 24))), Axis("Region", [("England", ["North", "Midlands",
    "South"])]), mean=900), Layout(above=("Deaths registered by week, provisional",)))
add("enterprises.xlsx", "healthy", people(rows("Town", TOWNS), SIZES, how="nearest:5", mean=90), Layout(extra=(
    ("Turnover (£ million)", lambda at: round(81.4 + 17.3 * at, 1)), ("Turnover, 95% CI lower",
    lambda at: round(70.2 + 16 * at, 1)), ("Turnover, 95% CI upper", lambda at: round(92.9 + 18 * at, 1))), below=(
    "Counts of enterprises are rounded to the nearest 5.",)))
add("ilceler.csv", "healthy", people(rows("İlçe", "Akçay;Bozova;Çeşme;Didim;Fatsa;Göksun;Kaş", "Toplam"), Axis("Cinsiyet",
    [("Toplam", ["Erkek", "Kadın"])]), mean=4000), Layout(above=("Cinsiyete göre nüfus",)),
    dialect=Dialect(";", ",", ".", "cp1254"))
add("tiotal.csv", "healthy", people(rows("Kommun", GEMEENTEN), Axis("Kön", [("Totalt", ["Män", "Kvinnor"])]),
    how="nearest:10", mean=400), Layout(above=("Sysselsatta efter kommun och kön",),
    below=("Alla värden är avrundade till närmaste tiotal.",)), dialect=Dialect("\t", ","))
add("election.xlsx", "healthy", people(rows("Constituency", FORCES, "Country"), Axis("Turnout", [("Registered voters",
    ["Voted", "Did not vote"])]), mean=20000, percent=Percent("Registered voters", heading="{} (% of registered)")),
    Layout(above=("General election",)))
add("journeys.xlsx", "healthy", journeys(("Brae", "Dornoch"), ("Brae", "Ellon"), ("Cairn", "Dornoch"), ("Cairn", "Ellon")),
    Layout(above=("Commuters by residence and workplace",), below=("– not applicable", "c = confidential")))
add("base-tre.ods", "healthy", people(rows("Comune", "Alba;Bra;Cuneo;Dronero;Fossano;Mondovì;Saluzzo"), Axis("Età", [
    ("Totale", ["0-17 anni", "18-64 anni", "65 anni e più"])]), how="rounding:3", mean=90), Layout(
    above=("Popolazione per età",), below=("I valori sono arrotondati in modo casuale a multipli di 3.",)))
add("clinics-a-line.csv", "healthy", people(rows("Clinic", TRUSTS, "All clinics"), Axis("Month", ["2022-10", "2022-11",
    "2022-12"]), how="rounding:5", mean=200), Layout(-1, value="attendances", below=(
    "Attendances are randomly rounded to base 5.",)), change=changed(lambda _, value: value.upper()
    if isinstance(value, str) and "rounded" not in value else value))
# fmt: on
