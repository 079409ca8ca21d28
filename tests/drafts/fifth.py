"""A fifth set: files as they come, where the words of the other sets cannot say it. All places and numbers are invented.

Every file has the decisions that are right; "undecided" where a person has to be asked.
"""

from __future__ import annotations

STAFF = [
    ("North", [("Ashford", 344, 126), ("Birchley", 221, 182), ("Colwick", 141, 161)]),
    ("South", [("Dunmore", 165, 193), ("Elswick", 225, 267), ("Farnley", 213, 272)]),
    ("West", [("Hexton", 182, "c"), ("Ilkham", 91, 191)]),
]
TOTALS = {"North": (706, 469), "South": (603, 732), "West": (273, 193)}


def regions(district: str, region: str, head: str = "Area", last: bool = False) -> str:
    """Write districts and regions, as two forms of a line say; what is hidden of Hexton is 2."""
    lines = [f"{head},Jobs,Vacancies"]
    for name, districts in STAFF:
        rows = [district.format(name, *row) + f",{row[1]},{row[2]}" for row in districts]
        total = region.format(name) + ",{},{}".format(*TOTALS[name])
        lines += [*rows, total] if last else [total, *rows]
    return "\n".join([*lines, "c: confidential"])


def table(head: str, *rows: str) -> str:
    """Write a table of areas."""
    return "\n".join([head, *rows])


WOMEN = ("Ashford,48,46", "Birchley,41,39", "Colwick,45,c", "Dunmore,64,70", "Elswick,30,33", "Farnley,72,61")
"""Men and women; 2 women of Colwick are hidden, and there are 251 in all."""
MONTHS = (31, 28, "<5", 35, 41, 38, 29, 44, 36, 30, 33, 47)
MEANS = (20.7, 22.0, 26.3, 38.0, 36.0, 37.0, 36.3, 36.7, 33.0, 36.7)
VISITS = ("Ashford,48,46,{}", "Birchley,41,46,{}", "Colwick,51,45,{}", "Elswick,64,70,{}", "Farnley,30,33,{}")
CHILDREN = ("Ashford,48,46", "Birchley,41,46", "Colwick,51,c", "Dunmore,64,70", "Elswick,73,36")
WARDS = (
    "Ashford,48,46",
    "Birchley,41,46",
    "Colwick,51,45",
    "Dunmore,65,69",
    "Elswick,64,70",
    "Farnley,30,33",
    "Garth,72,112",
)
RAW: dict[str, tuple[tuple[str, ...], str]] = {
    "dots.csv": (("stop", "revise"), regions(". {1}", "{0}")),
    "arrows.csv": (("stop", "revise"), regions("> {1}", "{0}")),
    "dashes-total-below.csv": (("stop", "revise"), regions("– {1}", "{0}", last=True)),
    "two-columns.csv": (("stop", "revise"), regions(",{1}", "{0},", "Region,District")),
    "two-columns-repeated.csv": (("stop", "revise"), regions("{0},{1}", "{0},", "Region,District", last=True)),
    "two-columns-total.csv": (("stop", "revise"), regions(",{1}", "{0} total,", "Region,District", last=True)),
    "unmarked.csv": (("stop", "revise"), regions("{1}", "{0}")),
    "unmarked-total-below.csv": (("stop", "revise"), regions("{1}", "{0}", last=True)),
    "part-of.csv": (("stop", "revise"), regions("{1},{0}", "{0},", "Area,Part of")),
    "halves.csv": (("stop", "revise"), table("Office,Q1,Q2,H1,Q3,Q4,H2,2024", "A,27,13,40,56,42,98,138",
        "B,40,33,73,36,12,48,121", "C,18,s,20,36,21,57,77", "D,32,38,70,50,10,60,130")),
    "year.csv": (("publish",), table("Office,Q1,Q2,Q3,Q4,Year", "A,27,13,56,42,138", "B,40,33,36,12,121",
        "C,18,29,36,21,104", "D,32,38,50,10,130")),
    "numbered.csv": (("publish",), table("Industry,1–9,10–49,50–249,250+,All sizes", ",(1),(2),(3),(4),(5)",
        "Mining,235,72,28,13,348", "Food,158,51,38,16,263", "Paper,187,56,28,17,288", "All,580,179,94,46,899")),
    "third-sex.csv": (("stop", "revise"), table("Region,Total,Men,Women,Non-binary", "N,1723,870,851,x", "S,1471,892,577,x",
        "E,1480,633,845,x", "W,1378,825,551,x", "x: suppressed")),
    "two-codes.csv": (("publish",), table("LAD code,LAD name,LSOA code,LSOA name,Persons,Men,Women", *(
        f"E07{lad},Town {lad},E01{lad}{at},Town {lad} {at},{men + women},{men},{women}"
        for lad in range(3) for at, (men, women) in enumerate(((40, 62), (55, 31), (72, 29), (44, 58)), 5 * lad)))),
    "change.csv": (("undecided",), table("District,2023,2024,Change", *(row.format(n) for row, n in zip(
        VISITS, (-2, 5, -6, 6, 3), strict=True)), "Dunmore,<5,89,86")),
    "per-visitor.csv": (("undecided",), table("District,Visitors,Visits,Visits per visitor", *(row.format(n) for row, n in
        zip(VISITS, ("0.958", "1.122", "0.882", "1.094", "1.100"), strict=True)), "Dunmore,c,89,29.667", "c: confidential")),
    "two-rates.csv": (("undecided",), table("District,Men,Women,Sick %,Sick per 1000", *(row.format(n) for row, n in zip(
        VISITS, ("1.2,12", "2.4,24", "3.6,36", "4.1,41", "0.7,7"), strict=True)))),
    "full-width.csv": (("stop", "revise"), table("市町村,総数,男,女", "赤井町,１０２０,３６８,６５２",
        "石川町,１１３６,７２３,４１３", "上田市,１４９８,６３１,８６７", "江島町,４１,x,３９", "x: 秘匿 (confidential)")),
    "eurostat.tsv": (("stop", "revise"), table("freq,sex,unit,geo\\TIME_PERIOD\t2022 \t2023 ", *(
        f"A,{sex},NR,{geo}\t{one} \t{two} " for geo, rows in {"AT": (567, 680, 210, 333, 357, "347 p"),
        "BE": (698, 399, 366, 284, 332, 115), "CZ": (394, 169, 118, ": c", 276, 167)}.items()
        for sex, one, two in zip("TMF", rows[::2], rows[1::2], strict=True)))),
    "dates.csv": (("stop", "revise"), table("Region;Sex;31.12.2022;31.12.2023", *(
        f"{region};{sex};{one};{two}" for region, rows in {"Nord": (504, 704, 211, 351, 293, 353),
        "Süd": (461, 613, 199, 302, 262, 311), "West": (381, 42, 194, "x", 187, 40)}.items()
        for sex, one, two in zip(("insgesamt", "männlich", "weiblich"), rows[::2], rows[1::2], strict=True)),
        "x: geheim gehalten")),
    "outline.csv": (("stop", "revise"), table("Code,Cause,Men,Women", "1,Infectious,30,25", "1.1,Tuberculosis,28,24",
        "1.2,Measles,c,c", "2,Neoplasms,90,88", "2.1,Lung,40,38", "2.2,Other,50,50", "3,Injuries,45,41", "3.1,Traffic,25,20",
        "3.2,Falls,20,21")),
    "average.csv": (("undecided",), table("School,Pupils,Total score,Mean score", "A,52,2652,51", "B,61,2928,48",
        "C,47,2491,53", "D,c,98,49", "E,39,2145,55", "c: confidential")),
    "mean-of-years.csv": (("undecided",), table("District,2022,2023,Average", *(row.format(n) for row, n in zip(
        VISITS, ("47.0", "43.5", "48.0", "67.0", "31.5"), strict=True)), "Dunmore,<5,89,46.0")),
    "total-of-some.csv": (("undecided",), table("District,2022,2023,2024", *(row.format(50 + at) for at, row in
        enumerate(VISITS)), "Hexton,c,c,c", "Total of towns,112,118,130")),
    "minus-nine.csv": (("stop", "revise"), table("District,Men,Women,Total", "Ashford,48,46,94", "Birchley,41,46,87",
        "Colwick,-9,45,47", "Elswick,64,70,134", "-9 = suppressed")),
    "remarks.csv": (("undecided",), table("District,Men,Women,Total,Remarks", "Ashford,48,46,94,", "Birchley,41,46,87,",
        "Colwick,c,c,47,only 2 men", "Elswick,64,70,134,", "c: confidential")),
    "share-of-all.csv": (("undecided",), table("District,Total,Men,Men %", "Ashford,94,48,0.5106382978723404",
        "Birchley,87,41,0.471264367816092", "Colwick,47,c,0.0425531914893617", "Elswick,134,64,0.47761194029850745")),
    "one-in-words.csv": (("undecided",), table("District,Yes,No", "Ashford,one,46", "Birchley,41,46", "Colwick,37,45")),
    "about.csv": (("undecided",), table("District,Total,Men,Women", "Ashford,about 90,48,46",
        "Birchley,87,41,46", "Colwick,47,c,45", "Elswick,134,64,70")),
    "all-but.csv": (("undecided",), table("School,All pupils,Pupils without boarders", "A,120,101", "B,90,89", "C,77,60",
        "D,66,52")),
    "all-in-comment.csv": (("undecided",), table("# extracted 2024-03-01: 551 records", "District,Men,Women", *WOMEN)),
    "rounded-total-in-note.csv": (("stop", "undecided"), table("District,Men,Women", "Ashford,50,45", "Birchley,40,40",
        "Colwick,45,0", "Dunmore,65,70", "Elswick,30,35", "Farnley,70,60", "Randomly rounded to base 5.",
        "251 women in all.")),
    "total-in-label.csv": (("undecided",), table("District,Men,Women", "Ashford (94),48,46", "Birchley (80),41,39",
        "Colwick (47),45,c", "Dunmore (134),64,70", "Elswick (63),30,33", "Farnley (133),72,61")),
    "in-words.csv": (("undecided",), table("District,Men,Women", *WOMEN, "In Colwick only two women took part.")),
    "harmless-notes.csv": (("publish",), table("District,Men,Women", *WOMEN, "On 31 March 2024: Table 3 on page 251.",
        "c: fewer than 5; persons aged 16 to 64. In 2023 there were 12 offices. Phone +44 20 7946 0018.")),
    "moving-mean.csv": (("undecided",), table("Month,Cases,3-month average", *(f"{at},{cases},{mean}" for at, (cases, mean)
        in enumerate(zip(MONTHS, ("", "", *MEANS), strict=True), 1)))),
    "all-but-many.csv": (("publish",), table("School,All pupils,Pupils without boarders", "A,120,101", "B,90,79", "C,77,60",
        "D,66,52")),
    "total-in-note.csv": (("undecided",), table("Parish,Adults,Children", *CHILDREN, "c: confidential",
        "Children in the county as a whole: 201")),
    "total-in-title.csv": (("undecided",), table("Table 3: Children in care by parish (n = 201)", "Parish,Adults,Children",
        *CHILDREN, "c: confidential")),
    "total-in-heading.csv": (("undecided",), table("Parish,Adults (n=277),Children (n=201)", *CHILDREN, "c: confidential")),
    "numbers-in-notes.csv": (("publish",), table("Children in care on 31 March 2023, Table 12", "Parish,Adults,Children",
        *CHILDREN[:4], "Eastney,70,c", "c: fewer than 5, confidential", "Source: County office, 2023")),
    "row-of-region.csv": (("stop", "revise"), table("Region,District,Cases,Contacts", *(f"{region},{row}" for region, rows in
        {"North": (*WARDS[:4], "Region total,205,206"), "South": (*WARDS[4:7], "Hexton,c,c", "Region total,169,218")}.items()
        for row in rows), "c: confidential")),
    "row-of-unmarked-region.csv": (("stop", "revise"), table("Area,Cases,Contacts", "North,205,206", *WARDS[:4],
        "South,169,218", *WARDS[4:7], "Hexton,c,c", "c: confidential")),
    "row-before-unmarked-region.csv": (("stop", "revise"), table("Area,Cases,Contacts", "Hexton,c,c", *WARDS[4:7],
        "South,169,218", *WARDS[:4], "North,205,206", "c: confidential")),
    "row-of-all.csv": (("undecided",), table("Area,Cases,Contacts", *WARDS, "Hexton,c,c", "Norland,374,424",
        "c: confidential")),
    "without-one.csv": (("undecided",), table("Borough,Cases,Contacts", *WARDS, "Hexton,34,c", "City,405,424",
        "City without Hexton,371,421", "c: confidential")),
    "excluding-one.csv": (("undecided",), table("Borough,Cases,Contacts", *WARDS, "Hexton,34,c", "Greater Norland,405,424",
        "Excluding Hexton,371,421", "c: confidential")),
    "two-of-three.csv": (("undecided",), table("Hospital,Day cases,Emergencies,Maternity,Emergencies and maternity",
        "A,61,48,46,94", "B,53,41,c,43", "C,77,64,70,134", "D,69,51,45,96", "c: confidential")),
    "lowest-row.csv": (("undecided",), table("Parish,Adults,Children", *CHILDREN, "Lowest,41,3", "Highest,73,70",
        "c: confidential")),
    "size-of-row.csv": (("undecided",), table("School,Pass,Fail", *(f"{row.split(',')[0]} (n={n}),{row.split(',', 1)[1]}"
        for row, n in zip(CHILDREN, (94, 87, 54, 134, 109), strict=True)), "c: confidential")),
    "so-far.csv": (("undecided",), table("Month,Registered in month,Year to date", *(f"M{at},{one},{so_far}" for at, (one,
        so_far) in enumerate(zip((7, "<5", 9, "<5", 6, 8, "<5", 5, 9, "<5", 6, 7), (7, 10, 19, 22, 28, 36, 38, 43, 52, 56,
        62, 69), strict=True), 1)), "Counts from 1 to 4 are not shown")),
    "two-kinds-hidden.csv": (("publish",), table("Nationality,Granted,Refused,Pending,Total", "A,41,22,18,81",
        "B,17,c,c,38", "D,33,27,21,81", "E,12,c,c,37", "F,25,13,11,49", "G,19,15,16,50", "Total,147,105,84,336",
        "c: counts from 1 to 4, and further counts hidden to protect them")),
    "number-in-words.csv": (("undecided",), table("Ward,Men,Women", *CHILDREN, "c: confidential",
        "In Colwick two women applied.")),
}  # fmt: skip
"""What every file holds, and the decisions that are right."""
